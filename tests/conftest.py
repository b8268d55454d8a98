"""Settings of all tests."""

import os

from hypothesis import HealthCheck, settings

# Timing is no property of ours; the machines of CI are slow and shared, and there the same cases are drawn each time.
settings.register_profile("default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

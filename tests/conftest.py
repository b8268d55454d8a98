"""Settings of all tests."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

import nd4jlike

# The sanitizer makes each case several times as slow.
EXAMPLES = 15 if os.environ.get("ND4JLIKE_SANITIZED") else 60
# Timing is no property of ours; the machines of CI are slow and shared, and there the same cases are drawn each time.
settings.register_profile("default", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Subprocesses test the package that the tests test, not the sources in their working directory.
os.environ["PYTHONSAFEPATH"] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(nd4jlike.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))

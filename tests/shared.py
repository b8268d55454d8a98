"""Where the conformance files and models lie; tests that need them skip where they are absent."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("ND4JLIKE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def shared_file(*parts):
    """Path of a shared file; skips the test where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not beside the checkout (set ND4JLIKE_SHARED)")
    return path


@functools.cache
def _load(path):
    return json.loads(path.read_text())


def conformance(name):
    """Read what a real library answered, from its JSON file."""
    return _load(shared_file("conformance", name))

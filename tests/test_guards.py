"""The guard pages themselves: they fault, on both sides."""

import subprocess
import sys
from pathlib import Path

import pytest

from guards import SIDES, guarded

PROGRAM = """
import ctypes
from guards import guarded
memory = guarded({nbytes}, {side!r})
ctypes.memset(memory, 7, {nbytes})
print("inside", flush=True)
ctypes.string_at(ctypes.addressof(memory) + {beyond}, 1)
print("beyond", flush=True)
"""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("nbytes", [1, 100, 4096, 5000])
def test_one_byte_beyond_the_memory_is_a_fault(side, nbytes):
    """Without this, every test that uses guards proves nothing."""
    program = PROGRAM.format(nbytes=nbytes, side=side, beyond=-1 if side == "start" else nbytes)
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).resolve().parent, capture_output=True, text=True, check=False)
    assert done.stdout == "inside\n"
    assert done.returncode < 0


def test_guarded_memory_is_writable_and_exported():
    """The buffer protocol is all that its users need."""
    memory = memoryview(guarded(10, "end")).cast("B")
    memory[:] = bytes(range(10))
    assert bytes(memory) == bytes(range(10))

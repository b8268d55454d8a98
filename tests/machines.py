"""Machines with other caches than this one."""

from contextlib import contextmanager

from nd4jlike import depthwise

# Ways, and whether it is AMD's.
MACHINES = [(12, False), (8, False), (12, True)]
# Where half a vector of 64 bytes takes half of its time.
HALVING = (8, True)


@contextmanager
def ways(count, amd=False, distance=-1):
    """Plans that are made meanwhile are made for such a machine, and for arrays that lie so far away (ADR 0017, D8); the value is what this one has."""
    before = depthwise._assume_caches(count, amd, distance)
    try:
        yield before[:2]
    finally:
        depthwise._assume_caches(*before)


@contextmanager
def second_level(nbytes):
    """Plans that are made meanwhile are made for a second-level cache of so many bytes, which sections of planes aim at (ADR 0004)."""
    before = depthwise._assume_caches(8)
    depthwise._assume_caches(*before[:3], nbytes)
    try:
        yield
    finally:
        depthwise._assume_caches(*before)

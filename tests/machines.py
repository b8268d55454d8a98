"""Machines with another first-level cache than this one."""

from contextlib import contextmanager

from nd4jlike import depthwise

# Ways, and whether it is AMD's.
MACHINES = [(12, False), (8, False), (12, True)]


@contextmanager
def ways(count, amd=False, distance=-1):
    """Plans that are made meanwhile are made for such a machine, and for arrays that lie so far away (ADR 0017, D8); the value is what this one has."""
    before = depthwise._assume_caches(count, amd, distance)
    try:
        yield before[:2]
    finally:
        depthwise._assume_caches(*before)

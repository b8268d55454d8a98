"""Machines with another first-level cache than this one."""

from contextlib import contextmanager

from nd4jlike import depthwise

# Ways, and whether it is AMD's.
MACHINES = [(12, False), (8, False), (12, True)]


@contextmanager
def ways(count, amd=False):
    """Plans that are made meanwhile are made for such a machine; the value is what this one has."""
    before = depthwise._assume_ways(count, amd)
    try:
        yield before
    finally:
        depthwise._assume_ways(*before)

"""Threads that share the work of one call."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["share"]

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


# A forked child has the pool object but none of its threads.
os.register_at_fork(after_in_child=_forget_pool)


def share(work: Callable[[int, int], object], count: int, parts: int) -> None:
    """Call ``work(begin, end)`` for consecutive parts of ``range(count)``, each in a thread of its own.

    Parameters
    ----------
    work : callable
        Releases the lock of the interpreter while it works.
    count, parts : int
        Items, and among how many threads they are shared; the caller is one of them.

    Examples
    --------
    >>> from nd4jlike.workers import share
    >>> done = []
    >>> share(lambda begin, end: done.append((begin, end)), 10, 2)
    >>> sorted(done)
    [(0, 5), (5, 10)]
    """
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=max(32, os.cpu_count() or 1), thread_name_prefix="nd4jlike")
    bounds = [count * part // parts for part in range(parts + 1)]
    others = [_pool.submit(work, begin, end) for begin, end in pairwise(bounds[1:])]
    try:
        work(0, bounds[1])
    finally:
        for other in others:
            other.result()

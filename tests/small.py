"""All small cases, and the slow, obvious oracles of layouts."""

from __future__ import annotations

import itertools
import math

import numpy as np

ORDERS = ("c", "f")


def small_cases(ranks=(1, 2, 3), sizes=(1, 2, 5), paddings=(0, 1, 3)):
    """Yield (shape, paddings, padding_offsets): ranks 1 to 3, and for each padding none, half and all of it in front."""
    for rank in ranks:
        for shape in itertools.product(sizes, repeat=rank):
            for pads in itertools.product(paddings, repeat=rank):
                for share in (0, 1, 2):
                    yield shape, pads, tuple(p * share // 2 for p in pads)


def numpy_strides(order, shape):
    """Element strides of NumPy's dense array."""
    return tuple(s // 8 for s in np.empty(shape, np.float64, order=order.upper()).strides)


def bigger(order, shape, pads, before, dtype=np.float32, fill=0):
    """Define a padded array as the ADR does: a bigger NumPy array, and the view of its inside."""
    room = np.full(tuple(n + p for n, p in zip(shape, pads, strict=True)), fill, dtype, order=order.upper())
    return room, room[(*(slice(b, b + n) for b, n in zip(before, shape, strict=True)), ...)]


def numbered(shape, dtype=np.float32):
    """Distinct values, from 1 on, in c order of the indices."""
    return np.arange(1, math.prod(shape) + 1).reshape(shape).astype(dtype)


def all_indices(shape):
    """Every index of a shape."""
    return itertools.product(*map(range, shape))

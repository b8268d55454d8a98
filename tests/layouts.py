"""The same four-axis values in many places: every way an array can lie in memory that a kernel must read."""

from itertools import permutations

import numpy as np

import nd4jlike as nd


def in_memory_order(values, order):
    """Copy `values` so that their axes lie in memory as `order` says, slowest first."""
    return np.ascontiguousarray(np.transpose(values, order)).transpose(np.argsort(order))


def hosted(values, before, after, fill):
    """`values` as a view into a bigger array full of `fill`."""
    host = np.full([n + b + a for n, b, a in zip(values.shape, before, after, strict=True)], fill, values.dtype)
    view = host[tuple(slice(b, b + n) for n, b in zip(values.shape, before, strict=True))]
    view[...] = values
    return host, view


def padded(values, paddings, padding_offsets, fill, order="c"):
    """Make an NdArray of `values` whose padding holds `fill`."""
    x = nd.NdArray(nd.ShapeDescriptor.paddedBufferDescriptor(values.dtype, order, values.shape, paddings, padding_offsets))
    x.fill_padding(fill)
    x[...] = values
    return x


def on(descriptor, values, fill=0):
    """Make an NdArray of `values` on `descriptor`, its padding full of `fill`."""
    x = nd.NdArray(descriptor)
    x.fill_padding(fill)
    x[...] = values
    return x


def arrangements(values, dirt):
    """Pairs (name, array) of the same values; `dirt` fills everything around them."""
    for order in permutations(range(4)):
        yield f"memory order {order}", in_memory_order(values, order)
    yield "f order", np.asfortranarray(values)
    for axis in range(4):
        yield (
            f"negative stride of axis {axis}",
            np.ascontiguousarray(np.flip(values, axis)).__getitem__(tuple(slice(None, None, -1) if a == axis else slice(None) for a in range(4))),
        )
    yield "all strides negative", np.ascontiguousarray(values[::-1, ::-1, ::-1, ::-1])[::-1, ::-1, ::-1, ::-1]
    yield "sub-array", hosted(values, (1, 2, 1, 3), (0, 1, 2, 1), dirt)[1]
    every_other = np.full([2 * n for n in values.shape], dirt, values.dtype)[::2, ::2, ::2, ::2]
    every_other[...] = values
    yield "every other element of each axis", every_other
    readonly = values.copy()
    readonly.setflags(write=False)
    yield "read-only", readonly
    for order in "cf":
        yield f"padded, dirty, {order} order", padded(values, (1, 2, 3, 4), (0, 1, 2, 1), dirt, order)
        yield f"padded, clean, {order} order", padded(values, (1, 2, 3, 4), (1, 1, 1, 0), 0, order)
    yield "sub-array of a padded array", padded(hosted(values, (0, 1, 1, 0), (0, 1, 1, 0), dirt)[0], (0, 1, 1, 0), (0, 1, 0, 0), 0)[:, 1:-1, 1:-1]

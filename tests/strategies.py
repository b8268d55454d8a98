"""Hypothesis strategies: what is drawn, and why so."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from nd4jlike import ShapeDescriptor

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")

# Extents up to 7 reach every carry of block sizes up to 4; rank 5 is a blocked convolution weight.
shapes = st.lists(st.integers(1, 7), max_size=5).map(tuple)


@st.composite
def paddings_of(draw, shape):
    """Draw paddings and padding offsets for a shape."""
    pads = tuple(draw(st.integers(0, 4)) for _ in shape)
    return pads, tuple(draw(st.integers(0, p)) for p in pads)


@st.composite
def padded_descriptors(draw, dtypes=DTYPES):
    """Draw a dense or padded descriptor of either order."""
    shape = draw(shapes)
    pads, before = draw(paddings_of(shape))
    return ShapeDescriptor.paddedBufferDescriptor(draw(st.sampled_from(dtypes)), draw(st.sampled_from("cf")), shape, pads, before)


@st.composite
def tags(draw, rank, max_blocks=3):
    """Draw a letter tag: any memory order, up to three inner blocks, repeated letters included."""
    outer = draw(st.permutations("abcdefghijkl"[:rank]))
    blocks = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(outer)), max_size=max_blocks)) if rank else []
    return "".join(outer) + "".join(f"{size}{letter}" for size, letter in blocks)


@st.composite
def tagged_descriptors(draw, dtypes=DTYPES, shape=None):
    """Draw a permuted, blocked and padded descriptor; padding in front of a blocked axis is whole blocks."""
    shape = draw(shapes.filter(lambda shape: len(shape) > 0)) if shape is None else shape
    tag = draw(tags(len(shape)))
    products = dict.fromkeys(range(len(shape)), 1)
    for axis, size in ShapeDescriptor.from_tag(shape, tag).inner_blocks:
        products[axis] *= size
    before = tuple(draw(st.integers(0, 2)) * products[axis] for axis in range(len(shape)))
    pads = tuple(b + draw(st.integers(0, 3)) for b in before)
    return ShapeDescriptor.from_tag(shape, tag, draw(st.sampled_from(dtypes)), pads, before)


@st.composite
def keys_of(draw, shape):
    """Draw a basic-indexing key: integers, slices of any step, Ellipsis and new axes."""
    keys = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(("index", "slice", "whole", "new")))
        if kind == "index" and n:
            keys.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 1, n + 1)
            keys.append(slice(draw(bound), draw(bound), draw(st.sampled_from((None, 1, 2, -1, -2, 3)))))
        else:
            keys.extend([None, slice(None)] if kind == "new" else [slice(None)])
    if draw(st.booleans()):
        keys.append(Ellipsis)
    return tuple(keys)


@st.composite
def extents_for(draw, shape):
    """Draw another shape of as many elements: neighbours joined, axes split, extents of 1 put in and left out."""
    found = []
    for n in shape:
        if found and draw(st.integers(0, 2)) == 0:
            found[-1] *= n
        elif n != 1 or draw(st.booleans()):
            found.append(n)
    split = []
    for n in found:
        factor = draw(st.sampled_from([f for f in range(1, n + 1) if n % f == 0])) if n and draw(st.booleans()) else 1
        split.extend([n // factor, factor] if factor > 1 or draw(st.integers(0, 3)) == 0 else [n])
    return tuple(split)


@st.composite
def selections_of(draw, shape):
    """Draw an advanced key: a mask over some axes, or lists and arrays of indices among basic ones."""
    rank = len(shape)
    begin = draw(st.integers(0, rank))
    if draw(st.booleans()):
        covered = shape[begin : draw(st.integers(begin, rank))]
        mask = np.random.default_rng(draw(st.integers(0, 9))).random(covered) < 0.5
        return (*[slice(None)] * begin, mask)
    if not rank:
        return (draw(st.booleans()),)
    count = draw(st.integers(1, 3))
    surely = draw(st.integers(0, rank - 1))
    keys = []
    for axis, n in enumerate(shape):
        indices = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
        kinds = {"array": [np.array(indices)], "list": [indices], "slice": [slice(None, None, -2)], "index": [indices[0]], "new": [None, indices]}
        keys.extend(kinds[draw(st.sampled_from(("array", "list") if axis == surely else tuple(kinds)))])
    return tuple(keys)


descriptors = st.one_of(padded_descriptors(), tagged_descriptors())

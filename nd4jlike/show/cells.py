"""Which element, padding or gap lies in which cell of a buffer, and back (ADR 0011)."""

from __future__ import annotations

import math
import operator
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nd4jlike.ndarray import NdArray
    from nd4jlike.padding import PaddingReport

__all__ = [
    "Cell",
    "DIRTY",
    "KINDS",
    "blocks_of",
    "cell_at",
    "describe",
    "dirt_of",
    "extent_of",
    "held_by",
    "index_text",
    "layout_of",
    "letter_of",
    "locate",
    "not_held",
    "plain_of",
    "plural",
    "shares_cells",
    "steps_of",
    "tag_of",
    "totals_of",
]

# Kinds of cells: the sign of one in text, what many are called, and what a legend says.
KINDS = {
    "element": ("", "element", "element"),
    "halo": (".", "padding", "padding (halo)"),
    "tail": ("~", "block tail", "block tail"),
    "gap": ("-", "gap", "gap: no cell of this layout"),
}
# Before the sign of padding and block tail that do not hold what they should.
DIRTY = "!"
# Cells are counted by looking at each where strides let elements share them, up to so many.
_COUNTED = 4096


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a buffer.

    Attributes
    ----------
    offset : int
        In elements from the start of the buffer.
    kind : {'element', 'halo', 'tail', 'gap'}
        An element; padding of an axis; what rounds an axis up to whole blocks; none of the layout's.
    index : tuple of int or None
        Of the element; of padding counted from element (0, .., 0), so negative before it; None for a gap.
    """

    offset: int
    kind: str
    index: tuple[int, ...] | None


def cell_at(descriptor: ShapeDescriptor | NdArray, offset: SupportsIndex) -> Cell:
    """Tell what lies at an offset of the buffer.

    Parameters
    ----------
    descriptor : ShapeDescriptor or NdArray
        The layout.
    offset : int
        In elements from the start of the buffer.

    Returns
    -------
    Cell
        A cell outside along several axes is block tail if it is so along any of them. Where elements share the cell,
        one of them; `ShapeDescriptor.indices_at` names all.

    Raises
    ------
    OutOfRangeError
        For an offset outside the buffer.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> from nd4jlike.show import cell_at
    >>> d = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
    >>> cell_at(d, 233)
    Cell(offset=233, kind='element', index=(0, 9, 2, 1))
    >>> cell_at(d, 479)
    Cell(offset=479, kind='tail', index=(0, 23, 4, 3))
    """
    descriptor = layout_of(descriptor)
    offset = operator.index(offset)
    start, end = extent_of(descriptor)
    if not start <= offset < end:
        raise OutOfRangeError(f"offset {offset} is outside the buffer of {end - start} cells: {start} <= offset < {end}")
    index = next(descriptor.indices_at(offset), None)
    if index is not None:
        return Cell(offset, "element", index)
    position = next(descriptor.hosting().indices_at(offset), None)
    if position is None:
        return Cell(offset, "gap", None)
    tail = any(i >= n + p for i, n, p in zip(position, descriptor.shape, descriptor.paddings, strict=True))
    return Cell(offset, "tail" if tail else "halo", tuple(i - b for i, b in zip(position, _before(descriptor), strict=True)))


def locate(descriptor: ShapeDescriptor | NdArray, index: Sequence[int]) -> dict[str, Any]:
    """Tell where an element lies: its offset, and its place among the blocks and cells of the buffer.

    Parameters
    ----------
    descriptor : ShapeDescriptor or NdArray
        The layout.
    index : sequence of int
        One index for each axis, not negative.

    Returns
    -------
    dict
        index; offset in elements, byte_offset; block: the position along each axis of the buffer, counted in whole blocks
        where the axis is blocked; cell: the position in each inner block, outermost first.

    Raises
    ------
    OutOfRangeError
        Unless ``0 <= index < extent`` on every axis.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> from nd4jlike.show import locate
    >>> locate(ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c"), (0, 9, 2, 1))
    {'index': (0, 9, 2, 1), 'offset': 233, 'byte_offset': 932, 'block': (0, 1, 2, 1), 'cell': (1,)}
    """
    descriptor = layout_of(descriptor)
    offset = descriptor.offset_of(index)
    position = [i + b for i, b in zip(index, _before(descriptor), strict=True)]
    cells = []
    for axis, size in reversed(descriptor.inner_blocks):
        position[axis], cell = divmod(position[axis], size)
        cells.append(cell)
    return {
        "index": tuple(index),
        "offset": offset,
        "byte_offset": offset * descriptor.itemsize,
        "block": tuple(position),
        "cell": tuple(reversed(cells)),
    }


def describe(descriptor: ShapeDescriptor | NdArray) -> dict[str, Any]:
    """List the figures of a layout.

    Parameters
    ----------
    descriptor : ShapeDescriptor or NdArray
        The layout.

    Returns
    -------
    dict
        Fields of the descriptor; `plain`, the layout as a plain one of more axes, ``extents:strides`` with an axis and its
        inner blocks in parentheses; `cells`, how many of each kind the buffer has, None where strides let too many elements
        share cells to count them.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> from nd4jlike.show import describe
    >>> described = describe(ShapeDescriptor.from_tag((1, 16, 2, 2), "nChw8c"))
    >>> described["plain"], described["cells"]
    ('(1,(2,8),2,2):(64,(32,1),16,8)', {'element': 64, 'halo': 0, 'tail': 0, 'gap': 0})
    """
    descriptor = layout_of(descriptor)
    start, end = extent_of(descriptor)
    return {
        "descriptor": repr(descriptor),
        "tag": descriptor.tag,
        "plain": plain_of(descriptor),
        "shape": descriptor.shape,
        "strides": descriptor.strides,
        "byte_strides": tuple(stride * descriptor.itemsize for stride in descriptor.strides),
        "paddings": descriptor.paddings,
        "padding_offsets": descriptor.padding_offsets,
        "padded_shape": descriptor.padded_shape,
        "inner_blocks": descriptor.inner_blocks,
        "offset": descriptor.offset,
        "allocation": end - start,
        "allocation_bytes": (end - start) * descriptor.itemsize,
        "cells": _counts(descriptor),
    }


class _Step(NamedTuple):
    """An axis of the layout as a plain one: the outer blocks of an axis, or one of its inner blocks."""

    stride: int
    extent: int
    axis: int
    elements: int  # of the axis in one step


def layout_of(x: ShapeDescriptor | NdArray) -> ShapeDescriptor:
    """Give the layout of an array, or a layout as it is."""
    found = getattr(x, "descriptor", x)
    if not isinstance(found, ShapeDescriptor):
        raise TypeError(f"a ShapeDescriptor or an NdArray has a layout, a {type(x).__name__} has none")
    return found


def steps_of(descriptor: ShapeDescriptor) -> list[_Step]:
    """Outer blocks of each axis, then the inner blocks; extents are those of the padded buffer."""
    elements = [1] * descriptor.rank
    inner = []
    run = 1
    for axis, size in reversed(descriptor.inner_blocks):
        inner.append(_Step(run, size, axis, elements[axis]))
        elements[axis] *= size
        run *= size
    outer = [_Step(s, n // e, axis, e) for axis, (s, n, e) in enumerate(zip(descriptor.strides, descriptor.padded_shape, elements, strict=True))]
    return outer + inner[::-1]


def _before(descriptor: ShapeDescriptor) -> tuple[int, ...]:
    """Positions in the buffer before element 0 of each axis; whole blocks where it is blocked."""
    outer = steps_of(descriptor)[: descriptor.rank]
    return tuple(before // step.elements * step.elements for before, step in zip(descriptor.padding_offsets, outer, strict=True))


def extent_of(descriptor: ShapeDescriptor) -> tuple[int, int]:
    """First offset and last offset + 1 to draw: the buffer, and what a layout that fits no buffer has before it."""
    if descriptor.is_empty:
        return 0, 0
    low = high = descriptor.hosting().offset
    for step in steps_of(descriptor):
        low += min(0, step.stride * (step.extent - 1))
        high += max(0, step.stride * (step.extent - 1))
    return min(0, low), max(0, high + 1)


def shares_cells(steps: Iterable[_Step]) -> bool:
    """Whether two cells may lie at one offset, strides of 0 aside."""
    reach = 0
    for stride, extent in sorted((abs(step.stride), step.extent) for step in steps if step.extent > 1 and step.stride):
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def _counts(descriptor: ShapeDescriptor) -> dict[str, int] | None:
    start, end = extent_of(descriptor)
    counts = dict.fromkeys(KINDS, 0)
    if start == end:
        return counts
    steps = steps_of(descriptor)
    still = {step.axis for step in steps if step.stride == 0 and step.extent > 1}
    if shares_cells(steps) or any(descriptor.paddings[axis] or steps[axis].elements > 1 for axis in still):
        if end - start > _COUNTED:
            return None
        for offset in range(start, end):
            counts[cell_at(descriptor, offset).kind] += 1
        return counts
    axes = [axis for axis in range(descriptor.rank) if axis not in still]
    counts["element"] = math.prod(descriptor.shape[axis] for axis in axes)
    padded = math.prod(descriptor.shape[axis] + descriptor.paddings[axis] for axis in axes)
    hosting = math.prod(descriptor.padded_shape[axis] for axis in axes)
    return {"element": counts["element"], "halo": padded - counts["element"], "tail": hosting - padded, "gap": end - start - hosting}


def letter_of(axis: int) -> str:
    """Name an axis by its letter in tags, by its number beyond z."""
    return string.ascii_lowercase[axis] if axis < 26 else str(axis)


def tag_of(descriptor: ShapeDescriptor) -> str:
    """Name the layout by its tag, or say that it has none."""
    return descriptor.tag or ("no tag" if descriptor.rank else "scalar")


def plain_of(descriptor: ShapeDescriptor) -> str:
    """Write nested extents and strides, those of blocks inside those of their axis."""
    steps = steps_of(descriptor)
    figures = [[(step.extent, step.stride) for step in steps if step.axis == axis] for axis in range(descriptor.rank)]

    def nested(which: int) -> str:
        words = [",".join(str(pair[which]) for pair in pairs) for pairs in figures]
        return ",".join(f"({word})" if len(pairs) > 1 else word for word, pairs in zip(words, figures, strict=True))

    return f"({nested(0)}):({nested(1)})"


def blocks_of(descriptor: ShapeDescriptor, axis: int) -> str:
    """Say the inner blocks of an axis in words."""
    inner = [step for step in steps_of(descriptor)[descriptor.rank :] if step.axis == axis]
    if not inner:
        return ""
    return f"blocks of {'x'.join(str(step.extent) for step in inner)}, stride {', '.join(str(step.stride) for step in inner)}"


def totals_of(descriptor: ShapeDescriptor) -> str:
    """Count the cells and bytes of the buffer, and the cells of each kind."""
    start, end = extent_of(descriptor)
    counts = _counts(descriptor)
    size = (end - start) * descriptor.itemsize
    words = f"{end - start} {plural('cell', end - start)}, {size} {plural('byte', size)}"
    if counts is None:
        return f"{words}, shared by {descriptor.length} elements"
    kinds = [f"{count} {plural('element', count) if kind == 'element' else KINDS[kind][1]}" for kind, count in counts.items() if count]
    return f"{words}: {', '.join(kinds)}" if kinds else words


def dirt_of(padding: PaddingReport | None) -> list[str]:
    """Say in a line what the padding holds; none where there is no padding."""
    if padding is None or not padding.cells:
        return []
    if padding:
        return [str(padding)]
    words = str(padding).partition(":")[0]
    index, offset, value, _ = next(iter(padding))
    return [f"{words}: {'the first, ' * (len(padding) > 1)}{index} at offset {offset}, holds {value}"]


def held_by(padding: PaddingReport | None) -> dict[int, Any]:
    """Offset of each dirty cell and what it holds."""
    return {} if padding is None else dict(zip(padding.offsets.tolist(), padding.values.tolist(), strict=True))


def index_text(index: Sequence[object]) -> str:
    """Write an index as labels do."""
    return ",".join(map(str, index)) or "()"


def not_held(padding: PaddingReport) -> str:
    """Say in a legend what a dirty cell is."""
    return f"dirty: does not hold {padding.expected}"


def plural(word: str, count: int) -> str:
    """Write `word` for so many."""
    return word if count == 1 else f"{word}s"

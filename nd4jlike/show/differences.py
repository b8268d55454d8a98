"""Where two layouts put the same element (ADR 0011)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import LayoutError
from nd4jlike.show.cells import index_text, layout_of, letter_of, plural, steps_of
from nd4jlike.show.drawing import Drawing
from nd4jlike.show.grid import keep_nested, with_holes
from nd4jlike.show.text import table_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from nd4jlike.ndarray import NdArray

__all__ = ["diff"]

# Offsets of one half of the axes that `diff` counts with.
_SUMS = 1 << 22


def diff(a: ShapeDescriptor | NdArray, b: ShapeDescriptor | NdArray, *, rows: int = 32) -> Drawing:
    """Show where two layouts put the same element.

    Parameters
    ----------
    a, b : ShapeDescriptor or NdArray
        Layouts of equal shape.
    rows : int, optional
        Elements to list; the others are counted.

    Returns
    -------
    Drawing
        How many elements have the same offset in both (not counted beyond some millions), strides side by side, and a list of elements
        with both offsets. Its picture has both layouts.

    Raises
    ------
    LayoutError
        If the shapes differ, or for less than 1 row.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> from nd4jlike.show import diff
    >>> diff(ShapeDescriptor("int8", "c", (2, 3)), ShapeDescriptor("int8", "f", (2, 3)))
    a  ShapeDescriptor('int8', 'c', (2, 3))
    b  ShapeDescriptor('int8', 'f', (2, 3))
    2 of 6 elements have the same offset in both
    <BLANKLINE>
    axis  extent  stride a  stride b
    a          2         3         1
    b          3         1         2
    <BLANKLINE>
    element  offset a  offset b
    0,0             0         0  same
    0,1             1         2
    0,2             2         4
    1,0             3         1
    1,1             4         3
    1,2             5         5  same
    """
    a, b = layout_of(a), layout_of(b)
    if a.shape != b.shape:
        raise LayoutError(f"layouts of equal shape can be compared, these have {a.shape} and {b.shape}")
    if rows < 1:
        raise LayoutError(f"a drawing has 1 row or more: rows={rows}")
    same = _same_offsets(a, b)
    counted = "too many to count those that" if same is None else f"{same} of {a.length} elements"
    lines = [f"a  {a!r}", f"b  {b!r}", f"{counted} have the same offset in both"]
    if a.rank:
        strides = [[_nested_stride(descriptor, axis) for axis in range(a.rank)] for descriptor in (a, b)]
        table = [[letter_of(axis), str(extent), *both, ""] for axis, (extent, *both) in enumerate(zip(a.shape, *strides, strict=True))]
        lines += ["", *table_of([["axis", "extent", "stride a", "stride b", ""], *table])]
    if not a.is_empty:
        lines += ["", *_moves(a, b, rows)]
    return Drawing("\n".join(lines), a, b)


def _nested_stride(descriptor: ShapeDescriptor, axis: int) -> str:
    strides = [str(step.stride) for step in steps_of(descriptor) if step.axis == axis]
    return f"({','.join(strides)})" if len(strides) > 1 else strides[0]


def _moves(a: ShapeDescriptor, b: ShapeDescriptor, rows: int) -> list[str]:
    table = [["element", "offset a", "offset b", ""]]
    holes: dict[int, str] = {}
    for number, left_out in with_holes(keep_nested(a.shape[::-1], a.length, rows, (0, a.length - 1)), a.length):
        if left_out:
            holes[len(table) + len(holes)] = f"... {left_out} {plural('element', left_out)}"
            continue
        index, rest = [], number
        for extent in reversed(a.shape):
            rest, i = divmod(rest, extent)
            index.append(i)
        index.reverse()
        here, there = a.offset_of(index), b.offset_of(index)
        table.append([index_text(index), str(here), str(there), "same" if here == there else ""])
    lines = table_of(table)
    for place, line in holes.items():
        lines.insert(place, line)
    return lines


def _along(descriptor: ShapeDescriptor, axis: int) -> npt.NDArray[np.int64]:
    """List what each index of an axis adds to the offset."""
    index = np.arange(descriptor.shape[axis])
    offset = np.zeros_like(index)
    run = 1
    for blocked, size in reversed(descriptor.inner_blocks):
        if blocked == axis:
            index, cell = np.divmod(index, size)
            offset += cell * run
        run *= size
    return offset + index * descriptor.strides[axis]


def _same_offsets(a: ShapeDescriptor, b: ShapeDescriptor) -> int | None:
    """How many elements have the same offset in both; None if that takes too much memory to tell."""
    if a.is_empty:
        return 0
    if max(a.shape, default=1) > _SUMS:
        return None
    # An element stays where the differences of its axes add up to 0: sums of one half of the axes meet those of the other half.
    halves = [(np.array([a.offset - b.offset]), np.array([1])), (np.array([0]), np.array([1]))]
    moves = [np.unique(_along(a, axis) - _along(b, axis), return_counts=True) for axis in range(a.rank)]
    for values, counts in sorted(moves, key=lambda move: -len(move[0])):
        smaller = min((0, 1), key=lambda half: len(halves[half][0]))
        if len(halves[smaller][0]) * len(values) > _SUMS:
            return None
        sums, place = np.unique(np.add.outer(halves[smaller][0], values), return_inverse=True)
        many = np.zeros(len(sums), np.int64)
        np.add.at(many, place.ravel(), np.multiply.outer(halves[smaller][1], counts).ravel())
        halves[smaller] = (sums, many)
    _, left, right = np.intersect1d(halves[0][0], -halves[1][0], return_indices=True)
    return int((halves[0][1][left] * halves[1][1][right]).sum())

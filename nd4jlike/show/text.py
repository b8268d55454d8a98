"""Layouts as text (ADR 0011)."""

from __future__ import annotations

import textwrap
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import LayoutError
from nd4jlike.padding import PaddingReport
from nd4jlike.show.cells import (
    DIRTY,
    KINDS,
    blocks_of,
    cell_at,
    dirt_of,
    extent_of,
    held_by,
    layout_of,
    letter_of,
    not_held,
    plain_of,
    plural,
    tag_of,
    totals_of,
)
from nd4jlike.show.drawing import Drawing
from nd4jlike.show.grid import Labels, ends_of, grid_of, with_holes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nd4jlike.ndarray import NdArray

__all__ = ["show", "table_of"]


def show(descriptor: ShapeDescriptor | NdArray, *, padding: Any = None, width: int = 80, rows: int = 32) -> Drawing:
    """Draw which element lies in which cell of the buffer: `ShapeDescriptor.show`, and `NdArray.show` of an array.

    Parameters
    ----------
    descriptor : ShapeDescriptor or NdArray
        The layout.
    padding : PaddingReport or scalar, optional
        What `NdArray.check_padding` found: its dirty cells are marked. Of an array also what clean padding holds; default: as `NdArray.show` has it.
    width : int, optional
        Columns of the text, as far as its labels permit.
    rows : int, optional
        Rows to draw; those left out are counted.

    Returns
    -------
    Drawing
        Its figures, then the cells, a row for each run of the fastest axis, labelled with the offset of its first cell.

    Raises
    ------
    LayoutError
        For less than 1 row or column.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> from nd4jlike.show import show
    >>> show(ShapeDescriptor.paddedBufferDescriptor("int8", "c", (2, 3), (1, 2), (1, 1)))
    ShapeDescriptor.paddedBufferDescriptor('int8', 'c', (2, 3), (1, 2), (1, 1))
    layout  ab
    plain   (3,5):(5,1)
    buffer  15 cells, 15 bytes: 6 elements, 9 padding
    first   element (0, 0) at offset 6, byte 6
    <BLANKLINE>
    axis  extent  before  after  tail  stride  bytes
    a          2       1      0     0       5      5
    b          3       1      1     0       1      1
    <BLANKLINE>
     0:    .    .    .    .    .
     5:    . >0,0  0,1  0,2    .
    10:    .  1,0  1,1  1,2    .
    > first element   . padding (halo)
    """
    layout = layout_of(descriptor)
    if not isinstance(padding, PaddingReport):
        if not isinstance(descriptor, ShapeDescriptor):
            return descriptor.show(padding=padding, width=width, rows=rows)
        if padding is not None:
            raise LayoutError(f"padding is what check_padding of an array found, a layout holds no values: padding={padding!r}")
    descriptor = layout
    if any(not isinstance(count, (int, np.integer)) or count < 1 for count in (width, rows)):
        raise LayoutError(f"a drawing has 1 row and 1 column or more: width={width!r}, rows={rows!r}")
    lines = [repr(descriptor)]
    lines.append(f"layout  {tag_of(descriptor)}")
    lines.append(f"plain   {plain_of(descriptor)}")
    lines.append(f"buffer  {totals_of(descriptor)}")
    if descriptor.is_empty:
        lines.append("first   none: there are no elements")
    else:
        where = (0,) * descriptor.rank
        lines.append(f"first   element {where} at offset {descriptor.offset}, byte {descriptor.offset * descriptor.itemsize}")
    status = descriptor.validate()
    if status:
        lines.append(f"breaks  {', '.join(str(bit.name) for bit in status)}")
    lines += [f"padding {line}" for line in dirt_of(padding)]
    if descriptor.rank:
        lines += ["", *table_of(_axes(descriptor))]
    drawn = _rows(descriptor, width, rows, padding)
    if drawn:
        lines += ["", *drawn]
    return Drawing("\n".join(lines), descriptor, padding=padding)


def _axes(descriptor: ShapeDescriptor) -> list[list[str]]:
    rows = [["axis", "extent", "before", "after", "tail", "stride", "bytes", ""]]
    for axis, (extent, padding, before, padded, stride) in enumerate(
        zip(descriptor.shape, descriptor.paddings, descriptor.padding_offsets, descriptor.padded_shape, descriptor.strides, strict=True)
    ):
        figures = (extent, before, padding - before, padded - extent - padding, stride, stride * descriptor.itemsize)
        rows.append([letter_of(axis), *map(str, figures), blocks_of(descriptor, axis)])
    return rows


def table_of(rows: list[list[str]]) -> list[str]:
    """Columns: the first and the last to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        words = [word.rjust(width) for word, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *words, row[-1]]).rstrip())
    return lines


def _rows(descriptor: ShapeDescriptor, width: int, most_rows: int, padding: PaddingReport | None) -> list[str]:
    labels = Labels(descriptor)
    dirty = held_by(padding)
    widest = max(labels.widest, 2) if dirty else labels.widest
    start, end = extent_of(descriptor)
    digits = max(len(str(start)), len(str(end - 1)))

    def fits(columns: Sequence[int], row: int, group: int) -> bool:
        if len(columns) > width:
            return False
        places = list(with_holes(columns, row))
        words = [max(widest, len(f"..{hole}..")) if hole else widest for _, hole in places]
        bars = sum(column > 0 and column % group == 0 and not hole for column, hole in places)
        return digits + 1 + sum(words) + len(words) + 2 * bars <= width

    grid = grid_of(descriptor, fits, most_rows, [*ends_of(descriptor), *islice(dirty, 1)])
    seen: set[str] = set()
    lines = []
    for row, left_out in grid.lines():
        first = grid.start + row * grid.row
        if left_out:
            last = min(grid.end, first + left_out * grid.row)
            lines.append(f"{'':{digits}}  ... {left_out} {plural('row', left_out)}, {last - first} cells")
            continue
        words = []
        for column, hole in grid.places():
            offset = first + column
            if column and column % grid.group == 0 and not hole and offset < grid.end:
                words.append("|")
            if hole:
                if offset < grid.end:
                    words.append(f"..{min(hole, grid.end - offset)}..".rjust(widest))
            elif offset < grid.end:
                cell = cell_at(descriptor, offset)
                is_first = cell.kind == "element" and offset == descriptor.offset
                word = ">" * is_first + DIRTY * (offset in dirty) + labels(cell)
                seen |= {cell.kind} | {">", "*", "+", DIRTY} & set(word)
                words.append(word.rjust(widest))
        lines.append(f"{first:{digits}}: {' '.join(words)}".rstrip())
    signs = {">": "first element", "*": "any index", "+": "shared with other elements"}
    legend = [f"{sign} {words}" for sign, words in signs.items() if sign in seen]
    legend += [f"{sign} {words}" for kind, (sign, _, words) in KINDS.items() if sign and kind in seen]
    if padding is not None and DIRTY in seen:
        legend.append(f"{DIRTY} {not_held(padding)}")
    if len(legend) > 1:
        lines += textwrap.wrap("   ".join(word.replace(" ", "\0") for word in legend), max(width, 20), break_long_words=False)
    return [line.replace("\0", " ") for line in lines]

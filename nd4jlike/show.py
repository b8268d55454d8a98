"""Layouts one can see: as text, as SVG, and where two of them differ (ADR 0011)."""

from __future__ import annotations

import errno
import html
import math
import os
import secrets
import shutil
import string
import textwrap
import zlib
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import LayoutError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from xml.etree.ElementTree import Element

    import numpy.typing as npt

    from nd4jlike.ndarray import NdArray
    from nd4jlike.padding import PaddingReport

__all__ = ["Cell", "Drawing", "cell_at", "describe", "diff", "locate", "show"]

# Kinds of cells: the sign of one in text, what many are called, and what a legend says.
_KINDS = {
    "element": ("", "element", "element"),
    "padding": (".", "padding", "padding (halo)"),
    "tail": ("~", "block tail", "block tail"),
    "gap": ("-", "gap", "gap: no cell of this layout"),
}
# Before the sign of padding and block tail that do not hold what they should.
_DIRTY = "!"
# Rows are not made longer than this by joining short runs.
_SHORT_RUN = 8
# Cells are counted by looking at each where strides let elements share them, up to so many.
_COUNTED = 4096
# Offsets of one half of the axes that `diff` counts with.
_SUMS = 1 << 22


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a buffer.

    Attributes
    ----------
    offset : int
        In elements from the start of the buffer.
    kind : {'element', 'padding', 'tail', 'gap'}
        An element; padding of an axis (a halo); what rounds an axis up to whole blocks; none of the layout's.
    index : tuple of int or None
        Of the element; of padding counted from element (0, .., 0), so negative before it; None for a gap.
    """

    offset: int
    kind: str
    index: tuple[int, ...] | None


class Drawing(str):
    """Text that shows itself, with the picture of the same layouts.

    Attributes
    ----------
    descriptors : tuple of ShapeDescriptor
        The layout, or the two that are compared.
    padding : PaddingReport or None
        What the padding of an array held.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> drawing = ShapeDescriptor("int8", "c", (2, 3)).show()
    >>> drawing.svg().partition(" ")[0]
    '<svg'
    """

    descriptors: tuple[ShapeDescriptor, ...]
    padding: PaddingReport | None

    def __new__(cls, text: str, *descriptors: ShapeDescriptor, padding: PaddingReport | None = None) -> Drawing:
        """Make one of its text and layouts."""
        made = super().__new__(cls, text)
        made.descriptors = descriptors
        made.padding = padding
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (str(self), *self.descriptors)

    def __repr__(self) -> str:
        return str(self)

    def svg(self) -> str:
        """Draw the picture.

        Returns
        -------
        str
            A self-contained SVG document, the same for equal layouts and reports of padding.
        """
        return _svg(self.descriptors, self.padding)

    def html(self, text: str | None = None) -> str:
        """Draw the picture below a text.

        Parameters
        ----------
        text : str, optional
            Default: the descriptors.

        Returns
        -------
        str
            A fragment of HTML.
        """
        words = "\n".join(map(repr, self.descriptors)) if text is None else text
        return f"<div><pre>{html.escape(words)}</pre>\n{self.svg()}</div>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file: all of it or nothing.

        Parameters
        ----------
        path : path-like
            A file there is replaced; a device or pipe is written to.

        Raises
        ------
        OSError
            Where the place cannot be written; what was there stays.
        """
        _write(Path(path), self.svg())

    def _repr_svg_(self) -> str:
        return self.svg()


# Where things are


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
    descriptor = _layout(descriptor)
    offset = offset.__index__()
    start, end = _extent(descriptor)
    if not start <= offset < end:
        raise OutOfRangeError(f"offset {offset} is outside the buffer of {end - start} cells: {start} <= offset < {end}")
    index = next(descriptor.indices_at(offset), None)
    if index is not None:
        return Cell(offset, "element", index)
    position = next(descriptor.hosting().indices_at(offset), None)
    if position is None:
        return Cell(offset, "gap", None)
    tail = any(i >= n + p for i, n, p in zip(position, descriptor.shape, descriptor.paddings, strict=True))
    return Cell(offset, "tail" if tail else "padding", tuple(i - b for i, b in zip(position, _before(descriptor), strict=True)))


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
    descriptor = _layout(descriptor)
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
    ('(1,(2,8),2,2):(64,(32,1),16,8)', {'element': 64, 'padding': 0, 'tail': 0, 'gap': 0})
    """
    descriptor = _layout(descriptor)
    start, end = _extent(descriptor)
    return {
        "descriptor": repr(descriptor),
        "tag": descriptor.tag,
        "plain": _plain(descriptor),
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


def _layout(x: ShapeDescriptor | NdArray) -> ShapeDescriptor:
    """Give the layout of an array, or a layout as it is."""
    found = getattr(x, "descriptor", x)
    if not isinstance(found, ShapeDescriptor):
        raise TypeError(f"a ShapeDescriptor or an NdArray has a layout, a {type(x).__name__} has none")
    return found


def _steps(descriptor: ShapeDescriptor) -> list[_Step]:
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
    outer = _steps(descriptor)[: descriptor.rank]
    return tuple(before // step.elements * step.elements for before, step in zip(descriptor.padding_offsets, outer, strict=True))


def _extent(descriptor: ShapeDescriptor) -> tuple[int, int]:
    """First offset and last offset + 1 to draw: the buffer, and what a layout that fits no buffer has before it."""
    if descriptor.is_empty:
        return 0, 0
    low = high = descriptor.hosting().offset
    for step in _steps(descriptor):
        low += min(0, step.stride * (step.extent - 1))
        high += max(0, step.stride * (step.extent - 1))
    return min(0, low), max(0, high + 1)


def _shares_cells(steps: Iterable[_Step]) -> bool:
    """Whether two cells may lie at one offset, strides of 0 aside."""
    reach = 0
    for stride, extent in sorted((abs(step.stride), step.extent) for step in steps if step.extent > 1 and step.stride):
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def _counts(descriptor: ShapeDescriptor) -> dict[str, int] | None:
    start, end = _extent(descriptor)
    counts = dict.fromkeys(_KINDS, 0)
    if start == end:
        return counts
    steps = _steps(descriptor)
    still = {step.axis for step in steps if step.stride == 0 and step.extent > 1}
    if _shares_cells(steps) or any(descriptor.paddings[axis] or steps[axis].elements > 1 for axis in still):
        if end - start > _COUNTED:
            return None
        for offset in range(start, end):
            counts[cell_at(descriptor, offset).kind] += 1
        return counts
    axes = [axis for axis in range(descriptor.rank) if axis not in still]
    counts["element"] = math.prod(descriptor.shape[axis] for axis in axes)
    padded = math.prod(descriptor.shape[axis] + descriptor.paddings[axis] for axis in axes)
    hosting = math.prod(descriptor.padded_shape[axis] for axis in axes)
    return {"element": counts["element"], "padding": padded - counts["element"], "tail": hosting - padded, "gap": end - start - hosting}


# Words


def _letter(axis: int) -> str:
    return string.ascii_lowercase[axis] if axis < 26 else str(axis)


def _tag(descriptor: ShapeDescriptor) -> str:
    return descriptor.tag or ("no tag" if descriptor.rank else "scalar")


def _plain(descriptor: ShapeDescriptor) -> str:
    steps = _steps(descriptor)
    figures = [[(step.extent, step.stride) for step in steps if step.axis == axis] for axis in range(descriptor.rank)]

    def nested(which: int) -> str:
        words = [",".join(str(pair[which]) for pair in pairs) for pairs in figures]
        return ",".join(f"({word})" if len(pairs) > 1 else word for word, pairs in zip(words, figures, strict=True))

    return f"({nested(0)}):({nested(1)})"


def _blocks(descriptor: ShapeDescriptor, axis: int) -> str:
    """Say the inner blocks of an axis in words."""
    inner = [step for step in _steps(descriptor)[descriptor.rank :] if step.axis == axis]
    if not inner:
        return ""
    return f"blocks of {'x'.join(str(step.extent) for step in inner)}, stride {', '.join(str(step.stride) for step in inner)}"


def _totals(descriptor: ShapeDescriptor) -> str:
    start, end = _extent(descriptor)
    counts = _counts(descriptor)
    size = (end - start) * descriptor.itemsize
    words = f"{end - start} {_plural('cell', end - start)}, {size} {_plural('byte', size)}"
    if counts is None:
        return f"{words}, shared by {descriptor.length} elements"
    kinds = [f"{count} {_plural('element', count) if kind == 'element' else _KINDS[kind][1]}" for kind, count in counts.items() if count]
    return f"{words}: {', '.join(kinds)}" if kinds else words


def _dirt(padding: PaddingReport | None) -> list[str]:
    """Say in a line what the padding holds; none where there is no padding."""
    if padding is None or not padding.cells:
        return []
    if padding:
        return [str(padding)]
    words = str(padding).partition(":")[0]
    index, offset, value, _ = next(iter(padding))
    return [f"{words}: {'the first, ' * (len(padding) > 1)}{index} at offset {offset}, holds {value}"]


def _held(padding: PaddingReport | None) -> dict[int, Any]:
    """Offset of each dirty cell and what it holds."""
    return {} if padding is None else dict(zip(padding.offsets.tolist(), padding.values.tolist(), strict=True))


def _index(index: Sequence[object]) -> str:
    return ",".join(map(str, index)) or "()"


class _Labels:
    """What to write into the cells of a layout."""

    def __init__(self, descriptor: ShapeDescriptor) -> None:
        self.descriptor = descriptor
        steps = _steps(descriptor)
        self.any_index = [step.stride == 0 and n > 1 and step.elements == 1 for step, n in zip(steps, descriptor.shape, strict=False)]
        self.shares = _shares_cells(steps) or any(step.stride == 0 and step.extent > 1 and step.elements > 1 for step in steps)
        first = ("*" if free else "0" for free in self.any_index)
        # Of any label, and of the first element's with its mark.
        self.widest = max(len(_index([n - 1 for n in descriptor.shape])) + self.shares, 1 + len(_index(list(first))))

    def __call__(self, cell: Cell) -> str:
        """Index of the element, with a star for any index along a stride of 0, and a plus where other elements share the cell."""
        if cell.kind != "element" or cell.index is None:
            return _KINDS[cell.kind][0]
        words = ["*" if free else str(i) for free, i in zip(self.any_index, cell.index, strict=True)]
        return (",".join(words) or "()") + "+" * (self.shares and self.others(cell) > 0)

    def others(self, cell: Cell) -> int:
        """How many more elements share the cell, strides of 0 aside; at most 99."""
        fixed = [i for i, free in enumerate(self.any_index) if not free]
        found = {tuple(index[i] for i in fixed) for index in islice(self.descriptor.indices_at(cell.offset), 100)}
        return len(found) - 1


# Which cells to draw


class _Grid(NamedTuple):
    """The buffer in rows, and which of the rows and columns to draw."""

    start: int
    end: int
    row: int
    group: int  # cells of the fastest run; a row is one or more of them
    rows: list[int]
    columns: list[int]

    def lines(self) -> Iterator[tuple[int, int]]:
        """(first row, number of rows left out) for each line: 0 for a row that is drawn."""
        count = -(-(self.end - self.start) // self.row) if self.rows else 0
        return _with_holes(self.rows, count)

    def places(self) -> list[tuple[int, int]]:
        """(first column, number of columns left out) for each place of a row."""
        return list(_with_holes(self.columns, self.row))


def _with_holes(kept: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    for here, there in pairwise([-1, *kept, count]):
        if there > here + 1:
            yield here + 1, there - here - 1
        if there < count:
            yield there, 0


def _keep(count: int, budget: int, wanted: Iterable[int]) -> list[int]:
    """Up to `budget` of the numbers below `count`: the wanted ones, both ends, and their neighbours."""
    if count <= budget:
        return list(range(count))
    anchors = [*((number, 1) for number in wanted), (0, 1), (count - 1, -1)]
    kept: set[int] = set()
    distance = 0
    while len(kept) < budget:
        for number, direction in anchors:
            near = number + direction * distance
            if 0 <= near < count and len(kept) < budget:
                kept.add(near)
        distance += 1
    return sorted(kept)


def _without_single_holes(kept: Iterable[int]) -> list[int]:
    """With each number that alone is missing between two: to leave out one takes no less room than to show it."""
    numbers = set(kept)
    return sorted(numbers | {number + 1 for number in numbers if number + 2 in numbers})


def _keep_nested(extents: Sequence[int], count: int, budget: int, wanted: Sequence[int]) -> list[int]:
    """Up to `budget` of the numbers below `count`: the wanted ones and, of loops nested fastest first, the ends of each and what fits of the fastest."""
    if count <= budget:
        return list(range(count))
    kept = [min(extent, 2) for extent in extents]
    budget = max(1, budget - len(set(wanted)))
    # Few long runs are easier to read than many short ones.
    for level in range(1, len(extents)):
        if math.prod(kept) > max(4, budget // 4):
            kept[level] = 1
    if len(extents) < 2 or math.prod(kept) > budget:
        return _keep(count, budget + len(set(wanted)), wanted)
    for level in (0, *range(len(extents) - 1, 0, -1)):
        while 1 < kept[level] < extents[level] and math.prod(kept) // kept[level] * (kept[level] + 1) <= budget:
            kept[level] += 1
    weights = [math.prod(extents[:level]) for level in range(len(extents))]
    digits = [_keep(extent, many, [number // weight % extent for number in wanted[:2]]) for extent, many, weight in zip(extents, kept, weights, strict=True)]
    rows = {sum(d * w for d, w in zip(chosen, weights, strict=True)) for chosen in product(*digits)}
    return sorted({row for row in rows if row < count} | set(wanted))


def _grid(descriptor: ShapeDescriptor, fits: Callable[[Sequence[int], int, int], bool], most_rows: int, wanted: Iterable[int]) -> _Grid:
    """Rows along the layout's own runs, the wanted offsets among them; `fits`: whether these columns of so many, in groups of so many, go into one."""
    start, end = _extent(descriptor)
    if start == end:
        return _Grid(start, end, 1, 1, [], [])
    # Strides that nest: each run, then the next larger one.
    pitches: list[int] = []
    reach = 0
    for stride, extent in sorted((abs(step.stride), step.extent) for step in _steps(descriptor) if step.extent > 1 and step.stride):
        if stride <= reach or (pitches and stride % pitches[-1]):
            break
        if reach:
            pitches.append(stride)
        reach += stride * (extent - 1)

    if pitches:
        row = group = pitches.pop(0)
        while row < _SHORT_RUN and pitches:
            times = pitches[0] // row
            more = max(n for n in range(1, min(times, _MOST_CELLS) + 1) if times % n == 0 and (n == 1 or fits(range(row * n), row * n, group)))
            row *= more
            if more < times:
                break
            pitches.pop(0)
    else:
        whole = end - start
        row = group = whole if fits(range(whole), whole, whole) else max(n for n in (1, 2, 4, 8, 16) if n == 1 or fits(range(n), n, n))

    count = -(-(end - start) // row)
    heads = [1, *(pitch // row for pitch in pitches)]
    extents = [later // head for head, later in pairwise(heads)] + [-(-count // heads[-1])]
    places = [divmod(offset - start, row) for offset in wanted]
    columns: Sequence[int] = range(row)
    most = min(row, _MOST_CELLS)
    while most > 1 and not fits(columns, row, group):
        columns = _without_single_holes(_keep(row, most, dict.fromkeys(place[1] for place in places)))
        most -= 1
    rows = _keep_nested(extents, count, most_rows, [place[0] for place in places])
    return _Grid(start, end, row, group, _without_single_holes(rows), list(columns))


def _ends(descriptor: ShapeDescriptor) -> list[int]:
    """Offsets of the first and of the last element."""
    return [] if descriptor.is_empty else [descriptor.offset, descriptor.offset_of([n - 1 for n in descriptor.shape])]


def _neighbours(descriptor: ShapeDescriptor) -> dict[int, str]:
    """Offset of the element one step along each axis, and what the step is called there."""
    found: dict[int, str] = {}
    for step in _steps(descriptor):
        if step.stride and step.elements < descriptor.shape[step.axis] and step.extent > 1:
            index = [0] * descriptor.rank
            index[step.axis] = step.elements
            found.setdefault(descriptor.offset_of(index), f"{_letter(step.axis)} {step.stride:+}")
    return found


# Text


def show(descriptor: ShapeDescriptor | NdArray, *, padding: PaddingReport | None = None, width: int = 80, rows: int = 32) -> Drawing:
    """Draw which element lies in which cell of the buffer: `ShapeDescriptor.show`, and `NdArray.show` of an array.

    Parameters
    ----------
    descriptor : ShapeDescriptor or NdArray
        The layout.
    padding : PaddingReport, optional
        What `NdArray.check_padding` found: its dirty cells are marked. Default of an array: as `NdArray.show` has it.
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
    layout = _layout(descriptor)
    if padding is None and not isinstance(descriptor, ShapeDescriptor):
        return descriptor.show(width=width, rows=rows)
    descriptor = layout
    if width < 1 or rows < 1:
        raise LayoutError(f"a drawing has 1 row and 1 column or more: width={width}, rows={rows}")
    lines = [repr(descriptor)]
    lines.append(f"layout  {_tag(descriptor)}")
    lines.append(f"plain   {_plain(descriptor)}")
    lines.append(f"buffer  {_totals(descriptor)}")
    if descriptor.is_empty:
        lines.append("first   none: there are no elements")
    else:
        where = (0,) * descriptor.rank
        lines.append(f"first   element {where} at offset {descriptor.offset}, byte {descriptor.offset * descriptor.itemsize}")
    status = descriptor.validate()
    if status:
        lines.append(f"breaks  {', '.join(str(bit.name) for bit in status)}")
    lines += [f"padding {line}" for line in _dirt(padding)]
    if descriptor.rank:
        lines += ["", *_table(_axes(descriptor))]
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
        rows.append([_letter(axis), *map(str, figures), _blocks(descriptor, axis)])
    return rows


def _table(rows: list[list[str]]) -> list[str]:
    """Columns: the first and the last to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        words = [word.rjust(width) for word, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *words, row[-1]]).rstrip())
    return lines


def _rows(descriptor: ShapeDescriptor, width: int, most_rows: int, padding: PaddingReport | None) -> list[str]:
    labels = _Labels(descriptor)
    dirty = _held(padding)
    widest = max(labels.widest, 2) if dirty else labels.widest
    start, end = _extent(descriptor)
    digits = max(len(str(start)), len(str(end - 1)))

    def fits(columns: Sequence[int], row: int, group: int) -> bool:
        if len(columns) > width:
            return False
        places = list(_with_holes(columns, row))
        words = [max(widest, len(f"..{hole}..")) if hole else widest for _, hole in places]
        bars = sum(column > 0 and column % group == 0 and not hole for column, hole in places)
        return digits + 1 + sum(words) + len(words) + 2 * bars <= width

    grid = _grid(descriptor, fits, most_rows, [*_ends(descriptor), *islice(dirty, 1)])
    seen: set[str] = set()
    lines = []
    for row, left_out in grid.lines():
        first = grid.start + row * grid.row
        if left_out:
            last = min(grid.end, first + left_out * grid.row)
            lines.append(f"{'':{digits}}  ... {left_out} {_plural('row', left_out)}, {last - first} cells")
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
                word = ">" * is_first + _DIRTY * (offset in dirty) + labels(cell)
                seen |= {cell.kind} | {">", "*", "+", _DIRTY} & set(word)
                words.append(word.rjust(widest))
        lines.append(f"{first:{digits}}: {' '.join(words)}".rstrip())
    signs = {">": "first element", "*": "any index", "+": "shared with other elements"}
    legend = [f"{sign} {words}" for sign, words in signs.items() if sign in seen]
    legend += [f"{sign} {words}" for kind, (sign, _, words) in _KINDS.items() if sign and kind in seen]
    if padding is not None and _DIRTY in seen:
        legend.append(f"{_DIRTY} {_not_held(padding)}")
    if len(legend) > 1:
        lines += textwrap.wrap("   ".join(word.replace(" ", "\0") for word in legend), max(width, 20), break_long_words=False)
    return [line.replace("\0", " ") for line in lines]


def _not_held(padding: PaddingReport) -> str:
    return f"dirty: does not hold {padding.expected}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


# Two layouts


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
    a, b = _layout(a), _layout(b)
    if a.shape != b.shape:
        raise LayoutError(f"layouts of equal shape can be compared, these have {a.shape} and {b.shape}")
    if rows < 1:
        raise LayoutError(f"a drawing has 1 row or more: rows={rows}")
    same = _same_offsets(a, b)
    counted = "too many to count those that" if same is None else f"{same} of {a.length} elements"
    lines = [f"a  {a!r}", f"b  {b!r}", f"{counted} have the same offset in both"]
    if a.rank:
        strides = [[_nested_stride(descriptor, axis) for axis in range(a.rank)] for descriptor in (a, b)]
        table = [[_letter(axis), str(extent), *both, ""] for axis, (extent, *both) in enumerate(zip(a.shape, *strides, strict=True))]
        lines += ["", *_table([["axis", "extent", "stride a", "stride b", ""], *table])]
    if not a.is_empty:
        lines += ["", *_moves(a, b, rows)]
    return Drawing("\n".join(lines), a, b)


def _nested_stride(descriptor: ShapeDescriptor, axis: int) -> str:
    strides = [str(step.stride) for step in _steps(descriptor) if step.axis == axis]
    return f"({','.join(strides)})" if len(strides) > 1 else strides[0]


def _moves(a: ShapeDescriptor, b: ShapeDescriptor, rows: int) -> list[str]:
    table = [["element", "offset a", "offset b", ""]]
    holes: dict[int, str] = {}
    for number, left_out in _with_holes(_keep_nested(a.shape[::-1], a.length, rows, (0, a.length - 1)), a.length):
        if left_out:
            holes[len(table) + len(holes)] = f"... {left_out} {_plural('element', left_out)}"
            continue
        index, rest = [], number
        for extent in reversed(a.shape):
            rest, i = divmod(rest, extent)
            index.append(i)
        index.reverse()
        here, there = a.offset_of(index), b.offset_of(index)
        table.append([_index(index), str(here), str(there), "same" if here == there else ""])
    lines = _table(table)
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


# SVG. Sizes are in pixels; a monospace character is 0.6 of its font size wide.

_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_INK, _FAINT, _PAPER, _ALARM = "#1b1f24", "#57606a", "#ffffff", "#a40e26"
_TITLE, _TEXT, _CELL_TEXT, _SMALL = 14, 11, 11, 9
_CELL_HEIGHT, _HOLE_HEIGHT, _MARGIN, _LEAST_CELL = 32, 18, 16, 34
_WIDTH = {1: 900, 2: 520}  # of the cells in a row, for one layout and for two side by side
_ROWS = 18
_MOST_CELLS = 16


def _text_width(text: str, size: float) -> float:
    return 0.6 * size * len(text)


def _svg(descriptors: Sequence[ShapeDescriptor], padding: PaddingReport | None) -> str:
    # Half of what it takes to import this module, for those who draw no picture.
    from xml.etree import ElementTree

    dirt = _dirt(padding)
    described = "; ".join([*map(repr, descriptors), *(dirt if padding is not None and not padding else [])])
    mark = f"{zlib.crc32(described.encode()):08x}"
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-labelledby": f"title-{mark} desc-{mark}"})
    _add(root, "title", {"id": f"title-{mark}"}, " and ".join(f"Memory layout {_name(d)}" for d in descriptors))
    _add(
        root,
        "desc",
        {"id": f"desc-{mark}"},
        ". ".join(f"{d!r}: {_totals(d)}; strides {d.strides}, offset {d.offset}" for d in descriptors) + "".join(f". {line}" for line in dirt),
    )
    _patterns(_add(root, "defs", {}), mark)
    card = _add(root, "rect", {"class": "card", "x": 0.5, "y": 0.5, "rx": 6, "fill": _PAPER, "stroke": "#d0d7de"})

    x, bottom = float(_MARGIN), 0.0
    for number, descriptor in enumerate(descriptors):
        other = descriptors[1 - number] if len(descriptors) == 2 else None
        panel = _add(root, "g", {"class": "layout", "font-family": _FONT, "fill": _INK})
        width, height = _panel(panel, descriptor, mark, x, _WIDTH[len(descriptors)], "ab"[number] if other is not None else "", other, padding)
        x += width + 2 * _MARGIN
        bottom = max(bottom, height)
    full_width, full_height = math.ceil(x - _MARGIN), math.ceil(bottom + _MARGIN)
    for name, value in (("width", full_width), ("height", full_height), ("viewBox", f"0 0 {full_width} {full_height}")):
        root.set(name, str(value))
    card.set("width", str(full_width - 1))
    card.set("height", str(full_height - 1))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(parent: Element, tag: str, attributes: dict[str, Any], text: str | None = None) -> Element:
    from xml.etree import ElementTree

    made = ElementTree.SubElement(parent, tag, {name: f"{value:.10g}" if isinstance(value, float) else str(value) for name, value in attributes.items()})
    made.text = text
    return made


def _write_at(parent: Element, x: float, y: float, size: float, text: str, **attributes: Any) -> float:
    """Add text; its width."""
    _add(parent, "text", {"x": x, "y": y, "font-size": size, **{name.replace("_", "-"): value for name, value in attributes.items()}}, text)
    return _text_width(text, size)


def _hole_width(hole: int) -> int:
    return math.ceil(_text_width(f"{hole} more", _SMALL)) + 8 if hole else 0


def _patterns(defs: Element, mark: str) -> None:
    """Hatching for padding, dots for block tails: told apart in print and without colours."""
    hatching = _add(defs, "pattern", {"id": f"padding-{mark}", "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"})
    _add(hatching, "rect", {"width": 6, "height": 6, "fill": "#f3f4f6"})
    _add(hatching, "path", {"d": "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", "stroke": "#8c959f", "stroke-width": 1})
    dots = _add(defs, "pattern", {"id": f"tail-{mark}", "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"})
    _add(dots, "rect", {"width": 6, "height": 6, "fill": "#fdf1e3"})
    _add(dots, "circle", {"cx": 1.5, "cy": 1.5, "r": 1.1, "fill": "#9a5b13"})
    _add(dots, "circle", {"cx": 4.5, "cy": 4.5, "r": 1.1, "fill": "#9a5b13"})


def _name(descriptor: ShapeDescriptor) -> str:
    tag = f"{descriptor.tag} " if descriptor.tag else ""
    return f"{tag}of shape {descriptor.shape}, {descriptor.dtype}"


def _box(parent: Element, kind: str, first: bool, mark: str, x: float, y: float, width: float, height: float) -> None:
    """Draw the box of a cell; `kind` is shown by its filling and its border, the first element by a corner and a thick border."""
    filling = {"element": "#eaf2fc", "padding": f"url(#padding-{mark})", "tail": f"url(#tail-{mark})", "gap": "none"}[kind]
    attributes = {"x": x + 1, "y": y + 1, "width": width - 2, "height": height - 2, "rx": 2, "fill": filling, "stroke": "#6e7781", "stroke-width": 1}
    if kind == "gap":
        attributes["stroke-dasharray"] = "3 3"
    if first:
        attributes.update({"fill": "#ffe9a8", "stroke": _INK, "stroke-width": 2})
    _add(parent, "rect", attributes)
    if first:
        _add(parent, "path", {"d": f"M{x + 1:.10g},{y + 1:.10g} h9 l-9,9 z", "fill": _INK})


def _panel(
    panel: Element, descriptor: ShapeDescriptor, mark: str, left: float, room: float, name: str, other: ShapeDescriptor | None, padding: PaddingReport | None,
) -> tuple[float, float]:  # fmt: skip
    """Draw one layout from `left` on: its width, and the height down to its end."""
    y = float(_MARGIN + _TITLE)
    heading = f"{name}: layout {_name(descriptor)}" if name else f"Layout {_name(descriptor)}"
    right = _write_at(panel, left, y, _TITLE, heading, font_weight="bold", **{"class": "heading"})
    for line in [*_facts(descriptor), *_dirt(padding)]:
        y += 16
        right = max(right, _write_at(panel, left, y, _TEXT, line))
    y += 12

    labels = _Labels(descriptor)
    notes = {**_neighbours(descriptor), descriptor.offset: f"offset {descriptor.offset}"} if not descriptor.is_empty else {}
    dirty = {offset: f"{_DIRTY}{value:.4g}" if isinstance(value, float) else f"{_DIRTY}{value}" for offset, value in _held(padding).items()}
    notes_width = max((_text_width(note, _SMALL) for note in notes.values()), default=0)
    widest = max(labels.widest + 2 * (other is not None), *map(len, dirty.values()), 0)
    cell_width = max(_LEAST_CELL, math.ceil(max(_text_width("0" * widest, _CELL_TEXT), notes_width)) + 12)

    def fits(columns: Sequence[int], row: int, group: int) -> bool:
        if len(columns) > _MOST_CELLS:
            return False
        holes = [hole for _, hole in _with_holes(columns, row)]
        return sum(max(cell_width, _hole_width(hole)) for hole in holes) + 6 * (row // group if row <= _MOST_CELLS else 0) <= room

    grid = _grid(descriptor, fits, _ROWS, [*_ends(descriptor), *islice(dirty, 1), *notes])
    if not grid.rows:
        return right, y

    start, end = _extent(descriptor)
    margin = math.ceil(max(_text_width(str(number), _SMALL) for number in (start, end - 1))) + 8
    places, x = [], left + margin
    for column, hole in grid.places():
        if column and column % grid.group == 0 and grid.row > grid.group:
            x += 6
        width = max(cell_width, _hole_width(hole))
        places.append((column, hole, x, width))
        x += width
    right = max(right, x - left)

    y += _SMALL
    header = _add(panel, "g", {"class": "columns", "fill": _FAINT, "text-anchor": "middle"})
    for column, hole, x, width in places:
        _write_at(header, x + width / 2, y, _SMALL, f"{hole} more" if hole else f"+{column}")
    y += 5
    seen: set[str] = set()
    for row, left_out in grid.lines():
        first = start + row * grid.row
        if left_out:
            last = min(end, first + left_out * grid.row)
            words = f"\u2026 {left_out} {_plural('row', left_out)} more, {last - first} cells"
            right = max(right, margin + _write_at(panel, left + margin, y + 13, _SMALL, words, fill=_FAINT, **{"class": "hole"}))
            y += _HOLE_HEIGHT
            continue
        _write_at(panel, left + margin - 6, y + 20, _SMALL, str(first), fill=_FAINT, text_anchor="end", **{"class": "offset"})
        for column, hole, x, width in places:
            if first + column >= end:
                continue
            if hole:
                _write_at(panel, x + width / 2, y + 20, _TEXT, "\u2026", text_anchor="middle", fill=_FAINT, **{"class": "hole"})
                continue
            cell = cell_at(descriptor, first + column)
            seen.add(cell.kind)
            if cell.offset in dirty:
                seen.add("dirty")
            note = notes.get(cell.offset, "") if cell.kind == "element" else ""
            _cell(panel, descriptor, cell, labels, note, dirty.get(cell.offset, ""), other, mark, x, y, width)
        y += _CELL_HEIGHT

    y += 10
    x = left
    legend = _add(panel, "g", {"class": "legend"})
    entries = [("first", "first element"), *((kind, words) for kind, (_, _, words) in _KINDS.items() if kind in seen)]
    if padding is not None and "dirty" in seen:
        entries.append(("dirty", _not_held(padding)))
    for kind, words in entries if descriptor.length > 1 or len(seen) > 1 else ():
        if x > left and x + 24 + _text_width(words, _TEXT) > left + max(right, 300):
            x, y = left, y + 22
        if kind == "dirty":
            _mark_dirty(legend, _DIRTY, x, y, 20, 16)
        else:
            _box(legend, "element" if kind == "first" else kind, kind == "first", mark, x, y, 20, 16)
        x += 26 + _write_at(legend, x + 26, y + 12, _TEXT, words) + 18
        right = max(right, x - 18 - left)
    extra = [("*", "any index: stride 0")] * any(labels.any_index) + [("+", "shared with other elements")] * labels.shares
    extra += [("=", f"same offset in {'b' if name == 'a' else 'a'}")] * (other is not None)
    for sign, words in extra:
        line = f"{sign} {words}"
        if x > left and x + _text_width(line, _TEXT) > left + max(right, 300):
            x, y = left, y + 22
        x += _write_at(legend, x, y + 12, _TEXT, line) + 18
        right = max(right, x - 18 - left)
    return right, y + 16


def _facts(descriptor: ShapeDescriptor) -> list[str]:
    lines = [f"as a plain layout {_plain(descriptor)}", f"buffer: {_totals(descriptor)}"]
    for axis, (extent, padding, before, stride) in enumerate(
        zip(descriptor.shape, descriptor.paddings, descriptor.padding_offsets, descriptor.strides, strict=True)
    ):
        tail = descriptor.padded_shape[axis] - extent - padding
        words = [f"axis {_letter(axis)}: extent {extent}, stride {stride} ({stride * descriptor.itemsize} bytes)"]
        words += [f"padding {before} before, {padding - before} after"] * (padding > 0)
        words += [_blocks(descriptor, axis)] * bool(_blocks(descriptor, axis))
        words += [f"block tail {tail}"] * (tail > 0)
        lines.append("; ".join(words))
    if descriptor.validate():
        lines.append(f"breaks {', '.join(str(bit.name) for bit in descriptor.validate())}")
    return lines


def _cell(
    panel: Element, descriptor: ShapeDescriptor, cell: Cell, labels: _Labels, note: str, held: str, other: ShapeDescriptor | None,
    mark: str, x: float, y: float, width: float,
) -> None:  # fmt: skip
    first = cell.kind == "element" and cell.offset == descriptor.offset
    group = _add(panel, "g", {"class": f"cell {cell.kind}{' first' if first else ''}"})
    kept = other is not None and cell.kind == "element" and any(other.offset_of(i) == cell.offset for i in islice(descriptor.indices_at(cell.offset), 100))
    words = f"offset {cell.offset}: {_KINDS[cell.kind][2]}" + (f" {cell.index}" if cell.index is not None else "")
    if cell.kind == "element" and labels.shares and labels.others(cell):
        words += f" and {labels.others(cell)} others"
    _add(group, "title", {}, words + f", dirty: holds {held[1:]}" * bool(held))
    _box(group, cell.kind, first, mark, x, y, width, _CELL_HEIGHT)
    if cell.kind == "element":
        label = labels(cell) + " =" * kept
        _write_at(group, x + width / 2, y + (15 if note else 20), _CELL_TEXT, label, text_anchor="middle", **{"class": "label"})
    if note:
        _write_at(group, x + width / 2, y + 26, _SMALL, note, text_anchor="middle", fill=_FAINT, **{"class": "note"})
    if held:
        _mark_dirty(group, held, x, y, width, _CELL_HEIGHT)


def _mark_dirty(group: Element, held: str, x: float, y: float, width: float, height: float) -> None:
    """Frame a cell, and write what it holds on a plate above its pattern."""
    plate = _text_width(held, _CELL_TEXT) + 4
    _add(
        group, "rect", {"class": "dirty", "x": x + 2, "y": y + 2, "width": width - 4, "height": height - 4, "fill": "none", "stroke": _ALARM, "stroke-width": 3}
    )
    _add(group, "rect", {"x": x + (width - plate) / 2, "y": y + height / 2 - 6, "width": plate, "height": 12, "fill": _PAPER})
    _write_at(group, x + width / 2, y + height / 2 + 4, _CELL_TEXT, held, text_anchor="middle", fill=_ALARM, font_weight="bold", **{"class": "held"})


# Files


def _write(path: Path, content: str) -> None:
    target = path.resolve()
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        try:
            target.write_text(content, encoding="utf-8")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        return
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()

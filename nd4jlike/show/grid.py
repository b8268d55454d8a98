"""Which cells are drawn, where, and which are left out (ADR 0011)."""

from __future__ import annotations

import math
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.show.cells import KINDS, Cell, extent_of, index_text, letter_of, shares_cells, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


__all__ = ["Labels", "MOST_CELLS", "ends_of", "grid_of", "keep_nested", "neighbours_of", "with_holes"]

# Rows are not made longer than this by joining short runs.
_SHORT_RUN = 8
MOST_CELLS = 16


class Labels:
    """What to write into the cells of a layout."""

    def __init__(self, descriptor: ShapeDescriptor) -> None:
        self.descriptor = descriptor
        steps = steps_of(descriptor)
        self.any_index = [step.stride == 0 and n > 1 and step.elements == 1 for step, n in zip(steps, descriptor.shape, strict=False)]
        self.shares = shares_cells(steps) or any(step.stride == 0 and step.extent > 1 and step.elements > 1 for step in steps)
        first = ("*" if free else "0" for free in self.any_index)
        # Of any label, and of the first element's with its mark.
        self.widest = max(len(index_text([n - 1 for n in descriptor.shape])) + self.shares, 1 + len(index_text(list(first))))

    def __call__(self, cell: Cell) -> str:
        """Index of the element, with a star for any index along a stride of 0, and a plus where other elements share the cell."""
        if cell.kind != "element" or cell.index is None:
            return KINDS[cell.kind][0]
        words = ["*" if free else str(i) for free, i in zip(self.any_index, cell.index, strict=True)]
        return (",".join(words) or "()") + "+" * (self.shares and self.others(cell) > 0)

    def others(self, cell: Cell) -> int:
        """How many more elements share the cell, strides of 0 aside; at most 99."""
        fixed = [i for i, free in enumerate(self.any_index) if not free]
        found = {tuple(index[i] for i in fixed) for index in islice(self.descriptor.indices_at(cell.offset), 100)}
        return len(found) - 1


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
        return with_holes(self.rows, count)

    def places(self) -> list[tuple[int, int]]:
        """(first column, number of columns left out) for each place of a row."""
        return list(with_holes(self.columns, self.row))


def with_holes(kept: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield (number, 0) for each kept one, and (number, how many) for each run below `count` that is left out."""
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


def keep_nested(extents: Sequence[int], count: int, budget: int, wanted: Sequence[int]) -> list[int]:
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


def grid_of(descriptor: ShapeDescriptor, fits: Callable[[Sequence[int], int, int], bool], most_rows: int, wanted: Iterable[int]) -> _Grid:
    """Rows along the layout's own runs, the wanted offsets among them; `fits`: whether these columns of so many, in groups of so many, go into one."""
    start, end = extent_of(descriptor)
    if start == end:
        return _Grid(start, end, 1, 1, [], [])
    # Strides that nest: each run, then the next larger one.
    pitches: list[int] = []
    reach = 0
    for stride, extent in sorted((abs(step.stride), step.extent) for step in steps_of(descriptor) if step.extent > 1 and step.stride):
        if stride <= reach or (pitches and stride % pitches[-1]):
            break
        if reach:
            pitches.append(stride)
        reach += stride * (extent - 1)

    if pitches:
        row = group = pitches.pop(0)
        while row < _SHORT_RUN and pitches:
            times = pitches[0] // row
            more = max(n for n in range(1, min(times, MOST_CELLS) + 1) if times % n == 0 and (n == 1 or fits(range(row * n), row * n, group)))
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
    most = min(row, MOST_CELLS)
    while most > 1 and not fits(columns, row, group):
        columns = _without_single_holes(_keep(row, most, dict.fromkeys(place[1] for place in places)))
        most -= 1
    rows = keep_nested(extents, count, most_rows, [place[0] for place in places])
    return _Grid(start, end, row, group, _without_single_holes(rows), list(columns))


def ends_of(descriptor: ShapeDescriptor) -> list[int]:
    """Offsets of the first and of the last element."""
    return [] if descriptor.is_empty else [descriptor.offset, descriptor.offset_of([n - 1 for n in descriptor.shape])]


def neighbours_of(descriptor: ShapeDescriptor) -> dict[int, str]:
    """Offset of the element one step along each axis, and what the step is called there."""
    found: dict[int, str] = {}
    for step in steps_of(descriptor):
        if step.stride and step.elements < descriptor.shape[step.axis] and step.extent > 1:
            index = [0] * descriptor.rank
            index[step.axis] = step.elements
            found.setdefault(descriptor.offset_of(index), f"{letter_of(step.axis)} {step.stride:+}")
    return found

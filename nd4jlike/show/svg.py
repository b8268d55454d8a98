"""Layouts as pictures (ADR 0011)."""

from __future__ import annotations

import math
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any

from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.show.cells import DIRTY, KINDS, Cell, blocks_of, cell_at, dirt_of, extent_of, held_by, letter_of, not_held, plain_of, plural, totals_of
from nd4jlike.show.grid import MOST_CELLS, Labels, ends_of, grid_of, neighbours_of, with_holes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from nd4jlike.padding import PaddingReport

__all__ = ["svg_of"]

_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_INK, _FAINT, _PAPER, _ALARM = "#1b1f24", "#57606a", "#ffffff", "#a40e26"
_TITLE, _TEXT, _CELL_TEXT, _SMALL = 14, 11, 11, 9
_CELL_HEIGHT, _HOLE_HEIGHT, _MARGIN, _LEAST_CELL = 32, 18, 16, 34
_WIDTH = {1: 900, 2: 520}  # of the cells in a row, for one layout and for two side by side
_ROWS = 18


def _text_width(text: str, size: float) -> float:
    return 0.6 * size * len(text)


def svg_of(descriptors: Sequence[ShapeDescriptor], padding: PaddingReport | None) -> str:
    """Draw one layout, or two side by side."""
    # Half of what it takes to import this module, for those who draw no picture.
    from xml.etree import ElementTree

    dirt = dirt_of(padding)
    described = "; ".join([*map(repr, descriptors), *(dirt if padding is not None and not padding else [])])
    mark = f"{zlib.crc32(described.encode()):08x}"
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-labelledby": f"title-{mark} desc-{mark}"})
    _add(root, "title", {"id": f"title-{mark}"}, " and ".join(f"Memory layout {_name(d)}" for d in descriptors))
    _add(
        root,
        "desc",
        {"id": f"desc-{mark}"},
        ". ".join(f"{d!r}: {totals_of(d)}; strides {d.strides}, offset {d.offset}" for d in descriptors) + "".join(f". {line}" for line in dirt),
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
    """Hatching for the halo, dots for block tails: told apart in print and without colours."""
    hatching = _add(defs, "pattern", {"id": f"halo-{mark}", "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"})
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
    filling = {"element": "#eaf2fc", "halo": f"url(#halo-{mark})", "tail": f"url(#tail-{mark})", "gap": "none"}[kind]
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
    for line in [*_facts(descriptor), *dirt_of(padding)]:
        y += 16
        right = max(right, _write_at(panel, left, y, _TEXT, line))
    y += 12

    labels = Labels(descriptor)
    notes = {**neighbours_of(descriptor), descriptor.offset: f"offset {descriptor.offset}"} if not descriptor.is_empty else {}
    dirty = {offset: f"{DIRTY}{value:.4g}" if isinstance(value, float) else f"{DIRTY}{value}" for offset, value in held_by(padding).items()}
    notes_width = max((_text_width(note, _SMALL) for note in notes.values()), default=0)
    widest = max(labels.widest + 2 * (other is not None), *map(len, dirty.values()), 0)
    cell_width = max(_LEAST_CELL, math.ceil(max(_text_width("0" * widest, _CELL_TEXT), notes_width)) + 12)

    def fits(columns: Sequence[int], row: int, group: int) -> bool:
        if len(columns) > MOST_CELLS:
            return False
        holes = [hole for _, hole in with_holes(columns, row)]
        return sum(max(cell_width, _hole_width(hole)) for hole in holes) + 6 * (row // group if row <= MOST_CELLS else 0) <= room

    grid = grid_of(descriptor, fits, _ROWS, [*ends_of(descriptor), *islice(dirty, 1), *notes])
    if not grid.rows:
        return right, y

    start, end = extent_of(descriptor)
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
            words = f"\u2026 {left_out} {plural('row', left_out)} more, {last - first} cells"
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
    entries = [("first", "first element"), *((kind, words) for kind, (_, _, words) in KINDS.items() if kind in seen)]
    if padding is not None and "dirty" in seen:
        entries.append(("dirty", not_held(padding)))
    for kind, words in entries if descriptor.length > 1 or len(seen) > 1 else ():
        if x > left and x + 24 + _text_width(words, _TEXT) > left + max(right, 300):
            x, y = left, y + 22
        if kind == "dirty":
            _mark_dirty(legend, DIRTY, x, y, 20, 16)
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
    lines = [f"as a plain layout {plain_of(descriptor)}", f"buffer: {totals_of(descriptor)}"]
    for axis, (extent, padding, before, stride) in enumerate(
        zip(descriptor.shape, descriptor.paddings, descriptor.padding_offsets, descriptor.strides, strict=True)
    ):
        tail = descriptor.padded_shape[axis] - extent - padding
        words = [f"axis {letter_of(axis)}: extent {extent}, stride {stride} ({stride * descriptor.itemsize} bytes)"]
        words += [f"padding {before} before, {padding - before} after"] * (padding > 0)
        words += [blocks_of(descriptor, axis)] * bool(blocks_of(descriptor, axis))
        words += [f"block tail {tail}"] * (tail > 0)
        lines.append("; ".join(words))
    if descriptor.validate():
        lines.append(f"breaks {', '.join(str(bit.name) for bit in descriptor.validate())}")
    return lines


def _cell(
    panel: Element, descriptor: ShapeDescriptor, cell: Cell, labels: Labels, note: str, held: str, other: ShapeDescriptor | None,
    mark: str, x: float, y: float, width: float,
) -> None:  # fmt: skip
    first = cell.kind == "element" and cell.offset == descriptor.offset
    group = _add(panel, "g", {"class": f"cell {cell.kind}{' first' if first else ''}"})
    kept = other is not None and cell.kind == "element" and any(other.offset_of(i) == cell.offset for i in islice(descriptor.indices_at(cell.offset), 100))
    words = f"offset {cell.offset}: {KINDS[cell.kind][2]}" + (f" {cell.index}" if cell.index is not None else "")
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

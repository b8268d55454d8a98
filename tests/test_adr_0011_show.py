"""ADR 0011: layouts one can see."""

import errno
import json
import math
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nd4jlike as nd
import strategies
from nd4jlike import LayoutError, ShapeDescriptor, cli
from nd4jlike.show import Cell, Drawing, cell_at, describe, diff, locate, mismatches, show

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "{http://www.w3.org/2000/svg}"
CHARACTER = 0.6  # of the font size: the width of a monospace character

PADDED = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
BLOCKED = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
EXAMPLES = {
    "padded": PADDED,
    "blocked": BLOCKED,
    "blocked and padded": ShapeDescriptor.from_tag((1, 10, 3, 3), "nChw8c", "int8", (0, 0, 2, 2), (0, 0, 1, 1)),
    "double-blocked": ShapeDescriptor.from_tag((20, 18, 3, 3), "OIhw4i16o4i"),
    "three blocks of one axis": ShapeDescriptor.from_tag((9, 5), "aB2b2a2b"),
    "permuted": ShapeDescriptor.from_tag((1, 3, 5, 4), "nhwc"),
    "reversed": ShapeDescriptor("int8", "c", (3, 4), (-4, -1), offset=11),
    "part of a wide array": ShapeDescriptor("int16", "c", (20, 4), (1000, 1), offset=500),
    "every other": ShapeDescriptor("int8", "c", (3, 4), (16, 2)),
    "broadcast": ShapeDescriptor("int8", "c", (4, 3), (0, 1)),
    "windows": ShapeDescriptor("int8", "c", (4, 3), (1, 1)),
    "aligned": ShapeDescriptor("int8", "c", (3, 5), (8, 1), offset=8),
    "scalar": ShapeDescriptor("float64", "c", (), offset=3),
    "empty": ShapeDescriptor("int8", "c", (2, 0, 3)),
    "vector": ShapeDescriptor("int8", "c", (100,)),
    "wide": ShapeDescriptor("int8", "c", (3, 40)),
    "matrix": ShapeDescriptor("int8", "c", (1000, 1000)),
    "eight axes": ShapeDescriptor("int8", "c", (2,) * 8),
    "large": ShapeDescriptor.from_tag((8, 64, 224, 224), "nChw16c", "float32", (0, 0, 2, 2), (0, 0, 1, 1)),
    "very large": ShapeDescriptor("int8", "c", (10**12,)),
    "before its buffer": ShapeDescriptor("int8", "c", (3, 2), (-2, 1)),
    "many axes": ShapeDescriptor("int8", "c", (1,) * 30 + (2, 3)),
}


@st.composite
def views(draw):
    """Draw a descriptor, or a part of a plain one: any strides, offsets and surroundings."""
    d = draw(strategies.descriptors)
    if d.inner_blocks or not draw(st.booleans()):
        return d
    return d.subarray(draw(strategies.keys_of(d.shape)))


@st.composite
def strange(draw):
    """Draw strides that overlap, repeat, point backwards or leave gaps."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4).map(tuple))
    strides = tuple(draw(st.integers(-5, 9)) for _ in shape)
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True))
    return ShapeDescriptor("int8", "c", shape, strides, offset=-low + draw(st.integers(0, 3)))


# What is looked at cell by cell.
small_views = views().filter(lambda d: math.prod(d.padded_shape) <= 3000)


def elements(d):
    """Offset to the indices there."""
    found = {}
    for index in np.ndindex(*d.shape):
        found.setdefault(d.offset_of(index), set()).add(index)
    return found


def kinds(d):
    """Kind of each cell, by looking at every element and every cell of the hosting buffer."""
    if d.is_empty:
        return []
    cells = ["gap"] * d.allocLength()
    hosting = d.hosting()
    for index in np.ndindex(*d.padded_shape):
        tail = any(i >= n + p for i, n, p in zip(index, d.shape, d.paddings, strict=True))
        cells[hosting.offset_of(index)] = "tail" if tail else "halo"
    for offset in elements(d):
        cells[offset] = "element"
    return cells


# What lies where


def test_d1_the_adr_s_examples():
    """D1: Each cell of the buffer is an element, halo (padding of an axis), block tail or a gap; block tail if it is so along any axis."""
    assert [cell_at(PADDED, offset).kind for offset in (0, 9, 10, 13, 14, 39)] == ["halo", "halo", "element", "element", "halo", "halo"]
    assert cell_at(PADDED, 0) == Cell(0, "halo", (-1, -2))
    assert cell_at(BLOCKED, 479) == Cell(479, "tail", (0, 23, 4, 3))
    both = EXAMPLES["blocked and padded"]
    corner = both.hosting().offset_of((0, 15, 0, 0))  # in the halo of both image axes, and beyond the channels
    assert cell_at(both, corner).kind == "tail"
    aligned = EXAMPLES["aligned"]
    assert [cell_at(aligned, offset).kind for offset in (0, 7, 8, 12, 13, 16)] == ["gap", "gap", "element", "element", "gap", "element"]
    for d, offset in ((PADDED, 40), (PADDED, -1), (EXAMPLES["empty"], 0)):
        with pytest.raises(nd.OutOfRangeError, match=f"offset {offset} is outside the buffer"):
            cell_at(d, offset)


@given(small_views)
def test_d1_kinds_of_all_cells(d):
    """D1: Each cell of the buffer is an element, halo, block tail or a gap; counts of the kinds are exact."""
    expected = kinds(d)
    assert [cell_at(d, offset).kind for offset in range(d.allocLength())] == expected
    assert describe(d)["cells"] == {kind: expected.count(kind) for kind in ("element", "halo", "tail", "gap")}


@given(strange())
def test_d1_counts_of_strange_strides(d):
    """D1: Counts of the kinds are exact, where elements share cells too."""
    expected = kinds(d)
    assert [cell_at(d, offset).kind for offset in range(d.allocLength())] == expected
    assert describe(d)["cells"] == {kind: expected.count(kind) for kind in ("element", "halo", "tail", "gap")}


def test_d1_counts_are_not_given_where_they_are_unknown():
    """D1: Counts of the kinds are exact, or not given."""
    assert describe(ShapeDescriptor("int8", "c", (5000, 5000), (1, 1)))["cells"] is None
    assert describe(ShapeDescriptor("int8", "c", (5000, 5000), (0, 1)))["cells"] == {"element": 5000, "halo": 0, "tail": 0, "gap": 0}


@given(st.one_of(small_views, strange()))
def test_d2_inverse(d):
    """D2: `indices_at(offset)` is the inverse of `offset_of`: every index with that offset, each once."""
    found = elements(d)
    for offset in range(-2, (d.allocLength() if not d.is_empty else 0) + 3):
        indices = list(d.indices_at(offset))
        assert len(indices) == len(set(indices))
        assert set(indices) == found.get(offset, set())


@pytest.mark.parametrize("blocks", [((0, 2),), ((1, 3), (0, 2)), ((0, 2), (1, 2), (0, 3)), ((0, 1), (0, 4))])
@pytest.mark.parametrize("strides", [(24, 200), (200, 24), (0, 24), (24, -24), (7, 5)])
def test_d2_blocks_of_any_strides(blocks, strides):
    """D2: `indices_at(offset)` is the inverse of `offset_of`, for blocks with gaps, overlaps and repetitions between them."""
    d = ShapeDescriptor("int8", "c", (5, 7), strides, offset=300, inner_blocks=blocks)
    found = elements(d)
    for offset in range(max(found) + 30):
        assert set(d.indices_at(offset)) == found.get(offset, set())


def test_d2_the_search_is_lazy():
    """D2: They are searched as they are asked for."""
    million = ShapeDescriptor("int8", "c", (10**6,) * 3, (1, 1, 1))
    indices = million.indices_at(1500000)
    first, second = next(indices), next(indices)
    assert sum(first) == sum(second) == 1500000
    assert first != second
    assert next(ShapeDescriptor("int8", "c", (10**12, 2), (0, 1)).indices_at(1)) == (0, 1)
    assert next(EXAMPLES["large"].indices_at(26147264)) == (7, 48, 223, 223)


def test_d2_no_offsets():
    """D2: `indices_at(offset)` finds nothing outside the buffer, and refuses what is no offset."""
    assert list(PADDED.indices_at(-(2**63))) == list(PADDED.indices_at(2**63 - 1)) == []
    for wrong in (1.5, "1", None, 2**63):
        with pytest.raises(nd.LayoutError, match="offset holds"):
            PADDED.indices_at(wrong)


def test_d3_the_house_example():
    """D3: 16 channels in nChw8c are `(1,(2,8),2,2):(64,(32,1),16,8)`."""
    assert describe(ShapeDescriptor.from_tag((1, 16, 2, 2), "nChw8c"))["plain"] == "(1,(2,8),2,2):(64,(32,1),16,8)"
    assert describe(EXAMPLES["double-blocked"])["plain"] == "((2,16),(2,4,4),3,3):((4608,4),(2304,64,1),768,256)"
    assert describe(EXAMPLES["scalar"])["plain"] == "():()"


@given(small_views.filter(lambda d: min(d.strides, default=0) >= 0))
def test_d3_the_plain_layout_has_the_same_cells(d):
    """D3: A layout is written as the plain layout of more axes that it is, `extents:strides` of the padded buffer."""
    extents, strides = (([int(number) for number in re.findall(r"-?\d+", part)]) for part in describe(d)["plain"].split(":"))
    plain = ShapeDescriptor("int8", "c", extents, strides)
    start = d.hosting().offset
    assert sorted(start + plain.offset_of(index) for index in np.ndindex(*extents)) == sorted(
        d.hosting().offset_of(index) for index in np.ndindex(*d.padded_shape)
    )


@given(strategies.descriptors, st.data())
def test_d9_locate(d, data):
    """D9: `--find INDEX` says where an element lies: offset, byte, block, cell."""
    index = tuple(data.draw(st.integers(0, n - 1)) for n in d.shape)
    found = locate(d, index)
    assert found["offset"] == d.offset_of(index)
    assert found["byte_offset"] == found["offset"] * d.itemsize
    offset = d.hosting().offset + sum(block * stride for block, stride in zip(found["block"], d.strides, strict=True))
    run = 1
    for (_, size), cell in zip(reversed(d.inner_blocks), reversed(found["cell"]), strict=True):
        assert 0 <= cell < size
        offset += cell * run
        run *= size
    assert offset == found["offset"]


# Text


def drawn_cells(text):
    """(offset, word) of each cell in a text, and how many cells its lines leave out."""
    cells, left_out = [], 0
    for line in text.split("\n\n")[-1].splitlines():
        hole = re.fullmatch(r" +\.\.\. \d+ rows?, (\d+) cells", line)
        row = re.fullmatch(r" *(-?\d+): (.*)", line)
        if hole:
            left_out += int(hole.group(1))
        elif row:
            offset = int(row.group(1))
            for word in row.group(2).replace("|", " ").split():
                if re.fullmatch(r"\.\.\d+\.\.", word):
                    left_out += int(word.strip("."))
                    offset += int(word.strip("."))
                else:
                    cells.append((offset, word))
                    offset += 1
    return cells, left_out


def check_text(d, **options):
    """Each cell that is drawn is what lies there; those that are not are counted."""
    cells, left_out = drawn_cells(d.show(**options))
    offsets = [offset for offset, _ in cells]
    assert offsets == sorted(set(offsets))
    start = min(0, *offsets) if offsets else 0
    assert len(cells) + left_out == describe(d)["allocation"]
    for offset, word in cells:
        cell = cell_at(d, offset)
        assert word.startswith(">") == (cell.kind == "element" and offset == d.offset)
        label = word.lstrip(">").rstrip("+")
        if cell.kind == "element":
            indices = list(d.indices_at(offset))
            shown = [int(i) if i != "*" else None for i in label.split(",")] if d.rank else []
            matching = [index for index in indices if all(s in (None, i) for s, i in zip(shown, index, strict=True))]
            assert matching
            assert word.endswith("+") == (len(matching) < len(indices))
        else:
            assert label == {"halo": ".", "tail": "~", "gap": "-"}[cell.kind]
    if not d.is_empty:
        assert {d.offset, d.offset_of([n - 1 for n in d.shape])} <= set(offsets)
    return start, offsets


def test_d4_the_adr_s_example():
    """D4: `show()` returns a `Drawing`: a `str` that shows itself; its rows are runs of the fastest axis, labelled with the offset of their first cell."""
    drawing = PADDED.show()
    assert isinstance(drawing, Drawing)
    assert isinstance(drawing, str)
    assert repr(drawing) == str(drawing) == drawing
    assert drawing.descriptors == (PADDED,)
    again = pickle.loads(pickle.dumps(drawing))
    assert (again, again.svg()) == (drawing, drawing.svg())
    assert drawing.splitlines()[-6:] == [
        " 0:    .    .    .    .    .    .    .    .",
        " 8:    .    . >0,0  0,1  0,2  0,3    .    .",
        "16:    .    .  1,0  1,1  1,2  1,3    .    .",
        "24:    .    .  2,0  2,1  2,2  2,3    .    .",
        "32:    .    .    .    .    .    .    .    .",
        "> first element   . padding (halo)",
    ]
    for wrong in ({"rows": 0}, {"width": 0}):
        with pytest.raises(nd.LayoutError, match="1 row and 1 column or more"):
            PADDED.show(**wrong)


@pytest.mark.parametrize("d", EXAMPLES.values(), ids=EXAMPLES)
def test_d4_examples(d):
    """D4: kinds have signs, the first element a mark; 80 columns if labels of 18 characters do."""
    check_text(d)
    drawing = d.show().split("\n\n")[-1]
    if len(str(d.shape)) < 40:
        assert max(map(len, drawing.splitlines())) <= 80
    assert d.show().isascii()


def test_d4_the_last_row_may_be_short():
    """D4, D6: cells left out are counted where the last row is short, too, and a narrow legend keeps its words whole."""
    d = nd.ShapeDescriptor("float32", "f", (1, 1, 1), (3, 3, 6), paddings=(0, 1, 1))
    check_text(d, rows=1, width=1)
    assert "- gap: no cell of this layout" in d.show(rows=1, width=1)


@given(st.one_of(small_views, strange()), st.integers(1, 40), st.integers(1, 120))
def test_d4_any_layout(d, rows, width):
    """D4: rows are labelled with the offset of their first cell; kinds have signs, the first element a mark."""
    check_text(d, rows=rows, width=width)
    _, left_out = drawn_cells(d.show(rows=10**6, width=10**6))
    assert left_out == 0


@given(st.lists(st.integers(1, 300), min_size=1, max_size=5), st.integers(20, 120))
def test_d4_width(shape, width):
    """D4: in 80 columns if labels of 18 characters do."""
    d = ShapeDescriptor("int8", "c", shape)
    labels = len(",".join(str(n - 1) for n in shape)) + 1
    lines = [line for line in d.show(width=width).split("\n\n")[-1].splitlines() if re.match(r" *\d+: ", line)]
    if 3 * (labels + 1) + 2 * 10 + 12 <= width:
        assert max(map(len, lines)) <= width


def test_d4_what_the_figures_say():
    """D4: a `str` that can be tested: the figures come before the cells."""
    lines = BLOCKED.show().splitlines()
    assert lines[1:5] == [
        "layout  aBcd8b",
        "plain   (1,(3,8),5,4):(480,(160,1),32,8)",
        "buffer  480 cells, 1920 bytes: 340 elements, 140 block tail",
        "first   element (0, 0, 0, 0) at offset 0, byte 0",
    ]
    assert lines[8] == "b         17       0      0     7     160    640  blocks of 8, stride 1"
    assert "breaks  INCORRECT_STRIDES, NEGATIVE_STRIDE, OUT_OF_BUFFER" in EXAMPLES["before its buffer"].show()
    assert "first   none: there are no elements" in EXAMPLES["empty"].show()
    assert "25000000 elements" in ShapeDescriptor("int8", "c", (5000, 5000), (1, 1)).show()


# SVG


def number(element, name):
    return float(element.get(name, "0"))


def check_svg(d, svg, panels=1):
    """Structure of a picture: its cells are the layout's, each inside the picture, each text inside its cell."""
    root = ElementTree.fromstring(svg)
    assert root.tag == NAMESPACE + "svg"
    _, _, width, height = map(float, root.get("viewBox").split())
    assert (width, height) == (number(root, "width"), number(root, "height"))
    texts = Counter()
    cells = {}
    groups = [group for group in root.iter(NAMESPACE + "g") if group.get("class", "").startswith("cell")]
    boxes = []
    for group in groups:
        offset, kind = re.match(r"offset (-?\d+): (\w+)", group.find(NAMESPACE + "title").text).groups()
        box, *more = group.findall(NAMESPACE + "rect")
        assert len(more) == 2 * ("dirty: holds" in group.find(NAMESPACE + "title").text)
        left, top = number(box, "x"), number(box, "y")
        right, bottom = left + number(box, "width"), top + number(box, "height")
        boxes.append((left, top, right, bottom))
        for text in group.findall(NAMESPACE + "text"):
            reach = CHARACTER * number(text, "font-size") * len(text.text) / 2
            assert left <= number(text, "x") - reach
            assert number(text, "x") + reach <= right
            assert top + number(text, "font-size") * 0.7 <= number(text, "y") <= bottom
            texts[text.get("class")] += 1
        cells.setdefault(int(offset), []).append((group.get("class"), kind, [text.text for text in group.findall(NAMESPACE + "text")]))
    # A row of boxes from left to right, rows from top to bottom: no two overlap.
    if panels == 1:
        for a, b in pairwise(boxes):
            assert a[2] <= b[0] if a[1] == b[1] else a[3] <= b[1]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    inherited = {text: group.get("text-anchor", "start") for group in root.iter(NAMESPACE + "g") for text in group.findall(NAMESPACE + "text")}
    for text in root.iter(NAMESPACE + "text"):
        reach = CHARACTER * number(text, "font-size") * len(text.text)
        anchor = text.get("text-anchor", inherited.get(text, "start"))
        start = number(text, "x") - {"start": 0, "middle": reach / 2, "end": reach}[anchor]
        assert start >= 0
        assert start + reach <= width
        assert 0 < number(text, "y") < height
    if panels == 1:
        assert all(len(found) == 1 for found in cells.values())
        for offset, [(classes, _, words)] in cells.items():
            cell = cell_at(d, offset)
            assert classes.split()[1] == cell.kind
            assert ("first" in classes.split()) == (cell.kind == "element" and offset == d.offset)
            assert (len(words) > 0) == (cell.kind == "element" or words[:1] == [word for word in words if word[0] == "!"] != [])
    return root, cells


@pytest.mark.parametrize("d", EXAMPLES.values(), ids=EXAMPLES)
def test_d5_examples(d):
    """D5: The SVG is one self-contained XML document without scripts, with title and description, on its own light ground."""
    svg = d.show().svg()
    root, cells = check_svg(d, svg)
    assert root.get("role") == "img"
    for name in ("title", "desc"):
        element = root.find(NAMESPACE + name)
        assert element.text
        assert element.get("id") in root.get("aria-labelledby").split()
    assert str(d.shape) in root.find(NAMESPACE + "title").text
    assert not list(root.iter(NAMESPACE + "script"))
    assert not re.search(r"href|@import|<image|<!|\son\w+=|url\((?!#)", svg)
    card = root.find(NAMESPACE + "rect")
    assert card.get("fill") == "#ffffff"
    assert number(card, "width") >= number(root, "width") - 1
    if not d.is_empty:
        assert {d.offset, d.offset_of([n - 1 for n in d.shape])} <= set(cells)
    else:
        assert not cells


@given(st.one_of(small_views, strange()))
def test_d5_any_layout(d):
    """D5: Kinds differ in pattern or border; of a small layout every element is there exactly once."""
    _, cells = check_svg(d, d.show().svg())
    if len(cells) == d.allocLength() and describe(d)["allocation"] == len(cells):
        assert {offset for offset, [(classes, _, _)] in cells.items() if classes.split()[1] == "element"} == set(elements(d))


def test_d5_every_element_once():
    """D5: the picture of a small layout has every element, counted by kind."""
    for d in (PADDED, EXAMPLES["permuted"], EXAMPLES["reversed"], EXAMPLES["aligned"]):
        root, _ = check_svg(d, d.show().svg())
        found = Counter(group.get("class").split()[1] for group in root.iter(NAMESPACE + "g") if group.get("class", "").startswith("cell"))
        assert found == {kind: count for kind, count in describe(d)["cells"].items() if count}
        labels = [text.text for text in root.iter(NAMESPACE + "text") if text.get("class") == "label"]
        assert sorted(labels) == sorted(",".join(map(str, index)) for index in np.ndindex(*d.shape))


def test_d5_kinds_are_told_apart_without_colour():
    """D5: Kinds differ in pattern or border, not in colour alone; a legend names them."""
    d = ShapeDescriptor("int8", "c", (10, 2), (40, 8), offset=24, paddings=(0, 2), padding_offsets=(0, 1), inner_blocks=((0, 8),))
    root, _ = check_svg(d, d.show().svg())
    looks = {}
    for group in root.iter(NAMESPACE + "g"):
        if group.get("class", "").startswith("cell"):
            box = group.find(NAMESPACE + "rect")
            filling = box.get("fill")
            pattern = filling.split("-")[0] if filling.startswith("url(") else "plain"
            corner = group.find(NAMESPACE + "path") is not None
            looks.setdefault(group.get("class"), set()).add((pattern, box.get("stroke-dasharray"), box.get("stroke-width"), corner))
    assert set(looks) == {"cell element", "cell element first", "cell halo", "cell tail", "cell gap"}
    assert all(len(look) == 1 for look in looks.values())
    assert len(set.union(*looks.values())) == 5
    patterns = {pattern.get("id"): [child.tag for child in pattern] for pattern in root.iter(NAMESPACE + "pattern")}
    assert len({tuple(shapes) for shapes in patterns.values()}) == len(patterns) == 2
    used = set(re.findall(r"url\(#([^)]+)\)", d.show().svg()))
    assert used == set(patterns)
    (legend,) = (group for group in root.iter(NAMESPACE + "g") if group.get("class") == "legend")
    words = {text.text for text in legend.iter(NAMESPACE + "text")}
    assert words == {"first element", "element", "padding (halo)", "block tail", "gap: no cell of this layout"}


def test_d5_offset_and_strides_stand_in_the_cells():
    """D5: Offset and strides stand in the cells that they lead to."""
    _, cells = check_svg(PADDED, PADDED.show().svg())
    assert cells[10][0][2] == ["0,0", "offset 10"]
    assert cells[11][0][2] == ["0,1", "b +1"]
    assert cells[18][0][2] == ["1,0", "a +8"]
    _, cells = check_svg(BLOCKED, BLOCKED.show().svg())
    assert [cells[offset][0][2][1] for offset in (0, 1, 8, 32, 160)] == ["offset 0", "b +1", "d +8", "c +32", "b +160"]
    _, cells = check_svg(EXAMPLES["reversed"], EXAMPLES["reversed"].show().svg())
    assert [cells[offset][0][2][1] for offset in (11, 10, 7)] == ["offset 11", "b -1", "a -4"]


def test_d5_the_same_bytes():
    """D5: the same bytes for equal layouts, in any process; no two layouts on a page share the name of a pattern."""
    code = "import nd4jlike as nd; print(nd.ShapeDescriptor.from_tag((1, 17, 5, 4), 'aBcd8b').show().svg(), end='')"
    for seed in "12":
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert run.stdout == BLOCKED.show().svg()
    names = [set(re.findall(r'\bid="([^"]+)"', d.show().svg())) for d in (PADDED, BLOCKED)]
    assert len(names[0]) == 4
    assert not names[0] & names[1]


# Large layouts


@pytest.mark.parametrize("name", ["large", "very large", "matrix", "double-blocked", "part of a wide array", "eight axes"])
def test_d6_elision(name):
    """D6: Large layouts are elided: the rows and columns left out are counted, the first and the last element are drawn."""
    d = EXAMPLES[name]
    check_text(d)
    assert len(d.show().splitlines()) < 90
    svg = d.show().svg()
    assert len(svg) < 120_000
    root, cells = check_svg(d, svg)
    counted = len(cells)
    rows = {number(text, "y") for text in root.iter(NAMESPACE + "text") if text.get("class") == "offset"}
    header = next(group for group in root.iter(NAMESPACE + "g") if group.get("class") == "columns")
    per_row = sum(int(text.text.split()[0]) for text in header if text.text.endswith("more"))
    for text in root.iter(NAMESPACE + "text"):
        if text.get("class") == "hole" and "row" in text.text:
            counted += int(re.search(r", (\d+) cells$", text.text).group(1))
    missing = describe(d)["allocation"] - counted - per_row * len(rows)
    # The last row may end early, within the columns that are left out.
    assert -per_row <= missing <= 0


def test_d6_rows_are_bounded():
    """D6: The cost is that of what is drawn."""
    for d in EXAMPLES.values():
        for rows in (1, 2, 5, 20):
            drawn = [line for line in d.show(rows=rows).split("\n\n")[-1].splitlines() if re.match(r" *-?\d+: ", line)]
            assert len(drawn) <= 2 * max(rows, 2) + 1


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=3).filter(lambda shape: math.prod(shape) < 2**50))
def test_d6_any_size(shape):
    """D6: Large layouts are elided, whatever their extents."""
    d = ShapeDescriptor("int8", "c", shape)
    check_text(d)
    check_svg(d, d.show().svg())


def test_d6_what_fits_no_buffer():
    """D6: Any descriptor can be drawn, one that no buffer can have included."""
    text = EXAMPLES["before its buffer"].show()
    assert text.splitlines()[-3:] == ["-4:  2,0  2,1", "-2:  1,0  1,1", " 0: >0,0  0,1"]
    assert drawn_cells(EXAMPLES["empty"].show()) == ([], 0)
    assert EXAMPLES["scalar"].show().splitlines()[-2:] == ["0:   -   -   - >()", "> first element   - gap: no cell of this layout"]


# Two layouts


def test_d7_the_adr_s_example():
    """D7: `diff(a, b)` lists elements with their offset in both layouts of one shape, and counts those that stay."""
    a, b = ShapeDescriptor.from_tag((1, 17, 5, 4), "nhwc"), BLOCKED
    drawing = diff(a, b, rows=10**6)
    lines = drawing.splitlines()
    assert lines[:2] == [f"a  {a!r}", f"b  {b!r}"]
    assert "b         17         1   (160,1)" in lines
    listed = [re.fullmatch(r"([\d,]+) +(\d+) +(\d+)( +same)?", line) for line in drawing.split("\n\n")[-1].splitlines()[1:]]
    same = 0
    for index, found in zip(np.ndindex(*a.shape), listed, strict=True):
        assert found.group(1) == ",".join(map(str, index))
        assert (int(found.group(2)), int(found.group(3))) == (a.offset_of(index), b.offset_of(index))
        assert bool(found.group(4)) == (a.offset_of(index) == b.offset_of(index))
        same += bool(found.group(4))
    assert lines[2] == f"{same} of 340 elements have the same offset in both"
    assert drawing.descriptors == (a, b)


def test_d7_arrays():
    """D7: It, and the other functions of `nd4jlike.show`, take arrays for their layouts."""
    x, y = nd.create((3, 4), paddings=(1, 1)), nd.zeros((3, 4), order="f")
    assert diff(x, y) == diff(x.descriptor, y.descriptor)
    assert (show(x), describe(x)) == (x.show(), describe(x.descriptor))
    assert (locate(x, (1, 1)), cell_at(x, 6)) == (locate(x.descriptor, (1, 1)), cell_at(x.descriptor, 6))
    with pytest.raises(TypeError, match="a ndarray has none"):
        show(np.zeros(3))


@given(st.data())
def test_d7_counts(data):
    """D7: `diff(a, b)` counts those that stay."""
    a = data.draw(st.one_of(small_views, strange()))
    order = data.draw(st.permutations(range(a.rank)))
    tag = "".join("abcdefghijkl"[axis] for axis in order) + "".join(f"2{'abcdefghijkl'[axis]}" for axis in order[: data.draw(st.integers(0, 2))])
    b = ShapeDescriptor.from_tag(a.shape, tag) if 0 < a.rank <= 12 else a
    same = sum(a.offset_of(index) == b.offset_of(index) for index in np.ndindex(*a.shape))
    assert diff(a, b).splitlines()[2] == f"{same} of {a.length} elements have the same offset in both"


def test_d1_layouts_that_begin_before_the_buffer():
    """D1: counts of the kinds are exact, of gaps of layouts that begin before the buffer, too."""
    assert "5 cells, 5 bytes: 3 elements, 2 gap" in ShapeDescriptor("int8", "c", (3,), (-2,)).show()


def test_d7_large_layouts():
    """D7: `diff(a, b)` counts those that stay of large layouts too, as far as memory permits, and lists some."""
    shape = (64, 96, 224, 224)
    a, b = ShapeDescriptor.from_tag(shape, "nchw"), ShapeDescriptor.from_tag(shape, "nChw16c")
    drawing = diff(a, b)
    # An element stays where channel mod 16 times (pixels - 1) equals pixel times 15.
    pixels = 224 * 224
    stay = sum(c * (pixels - 1) % 15 == 0 and c * (pixels - 1) // 15 < pixels for c in range(16))
    assert drawing.splitlines()[2] == f"{64 * 6 * stay} of {64 * 96 * pixels} elements have the same offset in both"
    assert len(drawing.splitlines()) < 90
    listed = drawing.split("\n\n")[-1].splitlines()[1:]
    left_out = sum(int(line.split()[1]) for line in listed if line.startswith("..."))
    assert left_out + sum(not line.startswith("...") for line in listed) == a.length
    assert listed[0].split()[0] == "0,0,0,0"
    assert listed[-1].split()[:3] == ["63,95,223,223", str(a.length - 1), str(b.length - 1)]
    line = ShapeDescriptor("int8", "c", (10**9,))
    assert diff(line, line).splitlines()[2] == "too many to count those that have the same offset in both"


def test_d7_picture():
    """D7: both layouts in one picture, the elements that stay marked."""
    a, b = ShapeDescriptor("int8", "c", (3, 4)), ShapeDescriptor("int8", "f", (3, 4))
    _, cells = check_svg(None, diff(a, b).svg(), panels=2)
    assert sum(map(len, cells.values())) == 24
    for offset, found in cells.items():
        index = next(a.indices_at(offset))
        stays = b.offset_of(index) == offset
        assert all(words[0].endswith("=") == stays for _, _, words in found)
    with pytest.raises(nd.LayoutError, match=r"equal shape .* \(3, 4\) and \(4, 3\)"):
        diff(a, ShapeDescriptor("int8", "c", (4, 3)))
    with pytest.raises(nd.LayoutError, match="1 row or more"):
        diff(a, b, rows=0)


# Padding that is dirty


def marks(drawing):
    """Offsets of the marked cells of the picture, with what stands in them."""
    found = {}
    for group in ElementTree.fromstring(drawing.svg()).iter(NAMESPACE + "g"):
        held = [text.text for text in group.findall(NAMESPACE + "text") if text.get("class") == "held"]
        if held and group.get("class").startswith("cell"):
            assert [box.get("class") for box in group.findall(NAMESPACE + "rect")][1] == "dirty"
            title = group.find(NAMESPACE + "title").text
            assert f"dirty: holds {held[0][1:]}" in title
            found[int(re.match(r"offset (-?\d+)", title).group(1))] = held[0]
    return found


def test_d13_the_adr_s_example():
    """D13: `mismatches(a, b)` lists index, both values, both offsets; it counts them all, and says how large the largest difference is, and where."""
    a = nd.NdArray(ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c", "int8"))
    b = nd.create((1, 17, 5, 4), dtype="int8", paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1))
    for number, index in enumerate(((0, 0, 0, 1), (0, 9, 2, 1), (0, 16, 4, 3))):
        a[index], b[index] = 100, -100 - 10 * number
    found = mismatches(a, b, rows=2)
    assert str(found) == repr(found)
    assert (
        repr(found)
        == f"""\
a  {a.descriptor!r}
b  {b.descriptor!r}
3 of 340 elements differ; the largest difference is 220, at 0,16,4,3

element    a     b  offset a  offset b
0,0,0,1  100  -100         8         8
0,9,2,1  100  -110       233       398
... 1 element"""
    )
    assert (found.differing, found.largest) == (3, 220)
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.differing, again.largest) == (found, 3, 220)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


@given(st.data())
def test_d13_any_layouts(data):
    """D13: of two arrays of one shape and any layouts: those that differ one by one, as Python's integers."""
    shape = data.draw(st.lists(st.integers(0, 4), max_size=4).map(tuple))
    arrays, values = [], []
    for _ in range(2):
        dtype = data.draw(st.sampled_from(INTEGERS))
        limits = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        few = st.sampled_from([*limits, 0, 1])
        values.append([data.draw(few) for _ in range(math.prod(shape))])
        paddings = data.draw(st.tuples(*[st.integers(0, 2) for _ in shape]))
        arrays.append(nd.create(shape, dtype=dtype, order=data.draw(st.sampled_from("cf")), paddings=paddings))
        for index, value in zip(np.ndindex(shape), values[-1], strict=True):
            arrays[-1][index] = value
    a, b = arrays
    found = mismatches(a, b, rows=100)
    expected = [(index, x, y) for index, x, y in zip(np.ndindex(shape), *values, strict=True) if x != y]
    assert found.differing == len(expected)
    assert found.largest == max((abs(x - y) for _, x, y in expected), default=0)
    rows = [line.split() for line in found.splitlines()[5:][:100]]
    assert [row[0] for row in rows] == [",".join(map(str, index)) or "()" for index, _, _ in expected][:100]
    assert [row[3:] for row in rows] == [[str(x.descriptor.offset_of(index)) for x in arrays] for index, _, _ in expected][:100]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_d13_floats(dtype):
    """D13: floats differ that are farther apart than `atol + rtol * |b|`, by default at all, and NaN does not differ from NaN."""
    a = nd.array([1.0, 2.0, np.nan, np.inf, 0.0, 4.0], dtype=dtype)
    b = nd.array([1.0, 2.5, np.nan, np.inf, -0.0, 3.0], dtype=dtype)
    found = mismatches(a, b)
    assert found.splitlines()[2] == "2 of 6 elements differ; the largest difference is 1, at 5"
    assert found.splitlines()[-1].split() == ["5", *(("4.0", "3.0")), "5", "5"]
    assert (found.differing, found.largest) == (2, 1.0)
    for options, count in (({"atol": 0.5}, 1), ({"rtol": 0.2}, 1), ({"rtol": 0.34}, 0), ({"atol": 1}, 0), ({"atol": 0.4, "rtol": 0.2}, 0)):
        assert mismatches(a, b, **options).differing == count
    assert mismatches(a, b, atol=0.5, rtol=0.1).splitlines()[2] == "1 of 6 elements differ by more than 0.5 + 0.1 * |b|; the largest difference is 1, at 5"
    assert mismatches(a, b, atol=1) == f"a  {a.descriptor!r}\nb  {b.descriptor!r}\n0 of 6 elements differ by more than 1 + 0 * |b|"


@pytest.mark.parametrize(("x", "y", "largest"), [(np.nan, 1, "nan"), (1, np.nan, "nan"), (np.inf, 1, "inf"), (1, np.inf, "inf"), (np.inf, -np.inf, "inf")])
def test_d13_what_is_not_finite(x, y, largest):
    """D13: NaN does not differ from NaN, but from all else, whatever the tolerance; infinities too."""
    found = mismatches(np.array([3, x], "float32"), np.array([1, y], "float32"), rtol=1e30, atol=1e30)
    assert found.splitlines()[2] == f"1 of 2 elements differ by more than 1e+30 + 1e+30 * |b|; the largest difference is {largest}, at 1"


def test_d13_more_bits_than_a_float_has():
    """D13: Integers, of several types too, are compared exactly."""
    assert mismatches(np.array([2**63 - 1]), np.array([2**63], "uint64")).largest == 1
    assert mismatches(np.array([-(2**63)]), np.array([2**64 - 1], "uint64")).largest == 2**64 - 1 + 2**63
    assert mismatches(np.array([2**53 + 1]), np.array([2**53])).differing == 1
    assert mismatches(np.array(5, "int8"), np.array(5, "int64")).splitlines()[2] == "0 of 1 elements differ"


@pytest.mark.parametrize("wide", [np.int64, np.uint64])
@pytest.mark.parametrize("narrow", [np.float64, np.float32])
def test_d13_integers_beside_floats(wide, narrow):
    """D13: elements of several types are compared exactly, integers beside floats too."""
    values = [0, 1, 2**53, 2**53 + 1, 2**62 - 1, 2**62, np.iinfo(wide).max, np.iinfo(wide).min]
    a, b = np.array(values, wide), np.array(values, narrow)
    exact = [abs(int(x) - int(y)) for x, y in zip(a, b, strict=True)]
    found = mismatches(a, b)
    assert (found.differing, found.largest) == (sum(map(bool, exact)), max(exact))
    assert mismatches(b, a).differing == found.differing
    assert mismatches(a, b, atol=max(exact)).differing == 0
    assert mismatches(np.array([2**53 + 1], wide), np.array([2**53], narrow)).splitlines()[2] == "1 of 1 elements differ; the largest difference is 1, at 0"
    assert mismatches(np.array([5, 5, 5], wide), np.array([5.5, np.nan, np.inf], narrow)).differing == 3


@pytest.mark.parametrize("shape", [(3, 50_000), (150_000,), (2, 3, 25_000)])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
def test_d13_many_elements(shape, dtype):
    """D13: it counts them all, and says how large the largest difference is, and where: of many, a part at a time."""
    a = np.zeros(shape, dtype)
    b = a.copy().T.copy().T
    b[...] = np.arange(b.size).reshape(shape) % 100 + 1
    b.flat[140_000] = 120
    b.flat[140_001] = 120
    found = mismatches(a, b, rows=2)
    assert (found.differing, found.largest) == (b.size, 120)
    where = ",".join(map(str, np.unravel_index(140_000, shape)))
    assert found.splitlines()[2] == f"{b.size} of {b.size} elements differ; the largest difference is 120, at {where}"
    assert found.endswith(f"... {b.size - 2} elements")
    assert mismatches(b, b.copy()).differing == 0
    if dtype == "float32":
        b.flat[149_999] = np.nan
        assert np.isnan(mismatches(a, b).largest)


def test_d13_memory():
    """D13: it counts them all, a part at a time: what differs everywhere needs no more memory than what does not."""
    a, b = np.zeros(4_000_000, "int8"), np.ones(4_000_000, "int8")
    tracemalloc.start()
    try:
        assert mismatches(a, b).differing == a.size
        assert tracemalloc.get_traced_memory()[1] < a.size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"b": np.zeros((2, 4), "int8")}, r"arrays of equal shape can be compared, these have \(2, 3\) and \(2, 4\)"),
        ({"atol": 1}, r"integers are compared exactly, tolerances are of floats: rtol=0.0, atol=1 for int8 and int8"),
        ({"rtol": -1}, r"tolerances must be numbers of 0 or more: rtol=-1, atol=0.0"),
        ({"atol": float("nan")}, r"tolerances must be numbers of 0 or more: rtol=0.0, atol=nan"),
        ({"atol": "x"}, r"tolerances must be numbers of 0 or more: rtol=0.0, atol='x'"),
        ({"rtol": None}, r"tolerances must be numbers of 0 or more: rtol=None, atol=0.0"),
        ({"rows": 0}, r"rows must be 1 to \d+: 0"),
    ],
)
def test_d13_refused(options, message):
    """D13: of two arrays of one shape; Integers are compared exactly."""
    with pytest.raises(LayoutError, match=message):
        mismatches(np.zeros((2, 3), "int8"), **{"b": np.zeros((2, 3), "int8"), **options})


def test_d12_the_adr_s_example():
    """D12: `NdArray.show()` marks each padding cell that does not hold what it should; the figures count them and name the first."""
    x = nd.create((3, 4), paddings=(2, 4), padding_offsets=(1, 2))
    assert marks(x.show()) == {}
    assert x.show().splitlines()[5] == "padding all 28 padding cells hold 0.0"
    x.hosting_array()[2, 7] = -5.125
    x.hosting_array()[4, 0] = np.nan
    text = x.show()
    assert text.splitlines()[5] == "padding 2 of 28 padding cells do not hold 0.0: the first, (1, 5) at offset 23, holds -5.125"
    assert text.splitlines()[-4:] == [
        "16:    .    .  1,0  1,1  1,2  1,3    .   !.",
        "24:    .    .  2,0  2,1  2,2  2,3    .    .",
        "32:   !.    .    .    .    .    .    .    .",
        "> first element   . padding (halo)   ! dirty: does not hold 0.0",
    ]
    assert marks(text) == {23: "!-5.125", 32: "!nan"}
    root = ElementTree.fromstring(text.svg())
    (legend,) = (group for group in root.iter(NAMESPACE + "g") if group.get("class") == "legend")
    assert "dirty: does not hold 0.0" in {line.text for line in legend.iter(NAMESPACE + "text")}
    assert text.splitlines()[5].removeprefix("padding ") in root.find(NAMESPACE + "desc").text
    assert marks(pickle.loads(pickle.dumps(text))) == marks(text)
    assert marks(show(x)) == marks(text)
    assert x._repr_svg_() == text.svg()
    assert text.svg() in x._repr_html_()
    assert "!" not in x.descriptor.show()
    assert marks(x.descriptor.show()) == {}
    names = [set(re.findall(r'\bid="([^"]+)"', drawing.svg())) for drawing in (text, x.descriptor.show())]
    assert not names[0] & names[1]


@given(small_views.filter(lambda d: not d.validate() and math.prod(d.padded_shape) <= 300), st.data())
def test_d12_every_dirty_cell(d, data):
    """D12: each padding cell that does not hold what it should is marked, in text before its sign, in the picture with its value."""
    x = nd.NdArray(d.astype("int8"))
    report = x.check_padding()
    cells = [offset for offset in range(x.descriptor.allocLength()) if cell_at(d, offset).kind in ("halo", "tail")]
    assert report.cells == len(cells)
    chosen = set(data.draw(st.lists(st.sampled_from(cells), max_size=4))) if cells else set()
    for offset in chosen:
        np.frombuffer(x.buffer, np.int8)[offset] = 100 + offset % 28
    drawing = x.show(rows=10**4, width=10**6)
    assert sum(line.count("!.") + line.count("!~") for line in drawing.splitlines()) == len(chosen)
    drawn = {cell: words for cell, words in marks(drawing).items() if cell in chosen}
    assert drawn == marks(drawing)
    assert all(words == f"!{100 + offset % 28}" for offset, words in drawn.items())
    assert not chosen or min(chosen) in drawn
    check_svg(d.astype("int8"), drawing.svg())


def test_d12_what_it_should_hold():
    """D12: `padding=`, by default what `fill_padding` wrote to all of it, else 0; `ShapeDescriptor.show(padding=report)` does so for a report."""
    x = nd.create((2, 3), dtype="int8", paddings=(0, 2))
    x.fill_padding(-128)
    assert "all 4 padding cells hold -128" in x.show()
    assert "the first, (0, 3) at offset 3, holds -128" in x.show(padding=0)
    assert "all 4 padding cells hold 0" in nd.NdArray(x.descriptor, bytes(10)).show()
    halves = nd.NdArray(ShapeDescriptor.from_tag((1, 3, 1, 1), "nChw8c", "bfloat16"))
    halves.fill_padding(1.5)
    assert "all 5 padding cells hold 1.5" in halves.show()
    assert "5 of 5 padding cells do not hold 0.0" in halves.show(padding=0)
    both = nd.NdArray(EXAMPLES["blocked and padded"])
    both.fill_padding(1, where="halo")
    report = both.check_padding(where="tail")
    assert marks(both.descriptor.show(padding=report)) == {}
    assert "hold 0" in both.descriptor.show(padding=report)
    assert set(marks(both.show(padding=1)).values()) == {"!0"}
    both.fill_padding(5)
    assert "padding cells hold 5" in both.show()
    both.fill_padding(1, where="halo")
    assert "do not hold 0" in both.show()
    with pytest.raises(nd.DTypeError, match=r"padding value 1\.5 is no int8"):
        x.show(padding=1.5)
    for size in ({"width": 0}, {"rows": 0}):
        with pytest.raises(nd.LayoutError, match="1 row and 1 column or more"):
            x.show(**size)
    assert "padding " not in nd.zeros(3).show()


@pytest.mark.parametrize("cell", [(0, 150), (150, 0), (200, 403), (301, 403)])
def test_d12_the_first_is_drawn(cell):
    """D12: the first dirty cell is drawn where rows and columns are left out."""
    x = nd.create((300, 400), dtype="int8", paddings=(2, 4), padding_offsets=(1, 2))
    x.hosting_array()[cell] = 1
    assert list(marks(x.show())) == [x.hosting_array().descriptor.offset_of(cell)]
    assert "!." in "".join(x.show().splitlines()[11:-1])


# Notebooks


def test_d8_values_show_themselves():
    """D8: `ShapeDescriptor` and `NdArray` have `_repr_svg_` and `_repr_html_`."""
    x = nd.ones((2, 3), paddings=(1, 1))
    for value in (x, x.descriptor):
        assert value._repr_svg_() == value.show().svg()
        page = ElementTree.fromstring(value._repr_html_())
        assert page.find("pre").text == repr(value)
        assert page.find(NAMESPACE + "svg") is not None
    y = nd.NdArray(BLOCKED)
    assert y._repr_svg_() == y.show().svg()
    assert ElementTree.fromstring(y._repr_html_()).find("pre").text == repr(y)
    assert diff(PADDED, PADDED)._repr_svg_().startswith("<svg")
    assert ElementTree.fromstring(diff(PADDED, PADDED).html()).find("pre").text == f"{PADDED!r}\n{PADDED!r}"


def test_d8_the_one_import_that_points_up():
    """D8: `ShapeDescriptor.show` imports it when called, the one import that points up, and the test of the floors lists it."""
    import test_adr_0003_names as floors

    assert {("descriptor", "show"), ("ndarray", "show")} == floors.UPWARD
    assert "nd4jlike.show import" not in (ROOT / "nd4jlike" / "ndarray.pyx").read_text()
    source = (ROOT / "nd4jlike" / "descriptor.pyx").read_text()
    assert re.findall(r"^.*nd4jlike\.show.*import.*$", source, re.MULTILINE) == ["        from nd4jlike.show import show"]
    code = "import sys, nd4jlike; assert 'xml.etree.ElementTree' not in sys.modules; nd4jlike.zeros(3).descriptor.show().svg()"
    subprocess.run([sys.executable, "-c", code], check=True)


# Command line and files


@pytest.fixture
def run(capsys):
    def run(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()

    return run


def test_d9_describe(run, tmp_path):
    """D9: `describe` prints the drawing; `--find INDEX` says where an element lies, `--at OFFSET` what lies there, `--svg FILE` writes the picture."""
    path = tmp_path / "layout.svg"
    assert run("describe", "nChw8c", "1,17,5,4") == (0, f"{BLOCKED.show()}\n", "")
    code, out, err = run("describe", "nChw8c", "1,17,5,4", "--find", "0,9,2,1", "--at", "479", "--svg", path)
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == [
        "element (0, 9, 2, 1) is at offset 233, byte 932: block (0, 1, 2, 1), cell (1,) of (8,)",
        "at offset 479, byte 1916: block tail, beyond the elements at (0, 23, 4, 3)",
    ]
    assert path.read_text(encoding="utf-8") == BLOCKED.show().svg()
    padded = ("describe", "c", "3,4", "--paddings", "2,4", "--padding-offsets", "1,2")
    assert run(*padded, "--find", "2,3", "--at", "9")[1].splitlines()[-2:] == [
        "element (2, 3) is at offset 29, byte 116: cell (3, 5) of (5, 8)",
        "at offset 9, byte 36: halo, beside the elements at (0, -1)",
    ]
    assert run(*padded, "--svg", "-") == (0, PADDED.show().svg(), "")
    for more in (("--json",), ("--at", "1"), ("--at-byte", "4"), ("--find", "0,0")):
        code, out, err = run(*padded, "--svg", "-", *more)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert run(*padded, "--at", "10")[1].splitlines()[-1] == "at offset 10, byte 40: element (0, 0)"
    for index, words in (
        ("-1,-2", "halo (-1, -2) is at offset 0, byte 0: cell (0, 0) of (5, 8)"),
        ("1,-1", "halo (1, -1) is at offset 17, byte 68: cell (2, 1) of (5, 8)"),
        ("3,5", "halo (3, 5) is at offset 39, byte 156: cell (4, 7) of (5, 8)"),
    ):
        assert run(*padded, "--find", index)[1].splitlines()[-1] == run(*padded, f"--find={index}")[1].splitlines()[-1] == words
    tail = run("describe", "nChw8c", "1,17,5,4", "--find", "0,23,4,3")
    assert tail[1].splitlines()[-1] == "block tail (0, 23, 4, 3) is at offset 479, byte 1916: block (0, 2, 4, 3), cell (7,) of (8,)"
    # Figures as debuggers and sanitizers print them.
    for at in (("--at", "9"), ("--at", "0x9"), ("--at-byte", "36"), ("--at-byte", "0X24")):
        assert run(*padded, *at)[1].splitlines()[-1] == "at offset 9, byte 36: halo, beside the elements at (0, -1)"
    assert run(*padded, "--at-byte", "0x2b")[1].splitlines()[-1] == "byte 43 is in the cell at offset 10, byte 40: element (0, 0)"
    scalar = run("describe", "c", "", "--find", "", "--at", "0")
    assert (scalar[0], scalar[1].splitlines()[-2:]) == (0, ["element () is at offset 0, byte 0: cell () of ()", "at offset 0, byte 0: element ()"])


def test_d9_json(run, tmp_path):
    """D9: `--json` gives the figures, and those of `--find` and `--at`."""
    path = tmp_path / "layout.svg"
    code, out, err = run("describe", "nChw8c", "1,17,5,4", "--find", "0,9,2,1", "--at", "479", "--json", "--svg", path)
    assert (code, err) == (0, "")
    described = json.loads(out)
    assert described["find"] == {"index": [0, 9, 2, 1], "offset": 233, "byte_offset": 932, "block": [0, 1, 2, 1], "cell": [1], "kind": "element"}
    assert described["at"] == {"offset": 479, "byte_offset": 1916, "kind": "tail", "index": [0, 23, 4, 3]}
    assert described["plain"] == "(1,(3,8),5,4):(480,(160,1),32,8)"
    assert described["inner_blocks"] == [[1, 8]]
    assert {name: described[name] for name in ("dtype", "itemsize", "order", "axes")} == {"dtype": "float32", "itemsize": 4, "order": "c", "axes": [0, 1, 2, 3]}
    assert described["cells"] == {"element": 340, "halo": 0, "tail": 140, "gap": 0}
    assert path.exists()


def test_d9_memory(run, tmp_path):
    """D9: `--memory FILE` marks what is dirty in the raw bytes of a buffer; 1 is the exit code if anything is."""
    x = nd.create((2, 3), dtype="int16", paddings=(1, 2))
    x[...] = 7
    path = tmp_path / "memory.bin"
    path.write_bytes(bytes(x.buffer))
    padded = ("describe", "c", "2,3", "--dtype", "int16", "--paddings", "1,2", "--memory", path)
    assert run(*padded) == (0, f"{x.show()}\n", "")
    x.hosting_array()[2, 4] = -9
    path.write_bytes(bytes(x.buffer))
    assert run(*padded) == (1, f"{x.show()}\n1 of 9 padding cells do not hold 0: (2, 4) at offset 14 holds -9 (halo)\n", "")
    assert run(*padded, "--svg", "-") == (1, x.show().svg(), "")
    code, out, err = run(*padded, "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["dirty"] == [{"index": [2, 4], "offset": 14, "value": -9, "kind": "halo"}]
    at = json.loads(run(*padded, "--json", "--at", "14")[1])
    assert (at["at"]["kind"], at["cells"]["halo"], at["dirty"][0]["kind"]) == ("halo", 9, "halo")
    assert run(*padded, "--fill", "-9") == (1, f"{x.show(padding=-9)}\n{x.check_padding(-9)}\n", "")
    x.fill_padding(-9)
    path.write_bytes(bytes(x.buffer))
    assert run(*padded, "--fill", "-9")[0] == 0
    for more, message in ((("--fill", "x"), "a number is needed: 'x'"), (("--fill", "1.5"), "padding value 1.5 is no int16")):
        code, out, err = run(*padded, *more)
        assert (code, out) == (2, "")
        assert message in err
    path.write_bytes(bytes(29))
    code, out, err = run(*padded)
    assert (code, out) == (2, "")
    assert err.startswith("nd4jlike: the buffer has 29 bytes, the layout needs 30")
    path.write_bytes(bytes(31))
    assert run(*padded) == (2, "", f"nd4jlike: {path} has 31 bytes, this layout 30\n")
    path.unlink()
    assert run(*padded) == (2, "", f"nd4jlike: {path}: {os.strerror(errno.ENOENT)}\n")
    assert run(*padded[:-1], "/dev/zero")[0] == 0  # what never ends is read as far as the buffer goes


def test_d9_json_of_padding(run):
    """D9: `--json` gives the figures, those of padding and of other orders and types, too."""
    described = json.loads(run("describe", "f", "3,4", "--dtype", "bfloat16", "--paddings", "2,4", "--padding-offsets", "1,2", "--find", "-1,0", "--json")[1])
    assert {name: described[name] for name in ("dtype", "itemsize", "order", "axes")} == {"dtype": "bfloat16", "itemsize": 2, "order": "f", "axes": [1, 0]}
    assert described["find"] == {"index": [-1, 0], "offset": 10, "byte_offset": 20, "block": [0, 2], "cell": [], "kind": "halo"}
    assert json.loads(run("describe", "nhwc", "1,2,3,4", "--json")[1])["axes"] == [0, 2, 3, 1]
    at = json.loads(run("describe", "c", "3", "--at-byte", "5", "--json")[1])["at"]
    assert at == {"offset": 1, "byte_offset": 4, "kind": "element", "index": [1], "byte": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--svg", ""), "argument --svg: the name of a file is needed: ''"),
        (("--fill", "3"), "--fill 3 says what the padding in --memory FILE should hold: there is no --memory"),
        (("--find", "0,24,0,0"), "index (0, 24, 0, 0) is outside the shape (1, 17, 5, 4) and its padding"),
        (("--find", "-1,0,0,0"), "index (-1, 0, 0, 0) is outside the shape"),
        (("--at", "0x1e0"), "offset 480 is outside the buffer of 480 cells"),
        (("--at", "0xg"), "an integer is needed: '0xg'"),
        (("--at-byte", "1920"), "offset 480 is outside the buffer of 480 cells"),
        (("--at-byte", "-1"), "offset -1 is outside the buffer of 480 cells"),
        (("--at", "1", "--at-byte", "4"), "argument --at-byte: not allowed with argument --at"),
        (("--find", "0,1"), "index (0, 1) is outside the shape"),
        (("--at", "480"), "offset 480 is outside the buffer of 480 cells"),
        (("--at", "-1"), "offset -1 is outside the buffer of 480 cells"),
        (("--at", "x"), "an integer is needed: 'x'"),
    ],
    ids=" ".join,
)
def test_d9_bad_questions(arguments, message, run, tmp_path):
    """D9: a question about what is not there is one line, and writes no picture."""
    path = tmp_path / "layout.svg"
    code, out, err = run("describe", "nChw8c", "1,17,5,4", *arguments, "--svg", path)
    assert (code, out) == (2, "")
    assert re.fullmatch(f"nd4jlike: .*{re.escape(message)}.*\n", err)
    assert not path.exists()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_d10_pipes(tmp_path):
    """D10: A file is written whole or not at all; a pipe, whatever names it, is written to."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for target, stdout in ((path, None), ("/dev/stdout", subprocess.PIPE), ("/dev/fd/1", subprocess.PIPE)):
        command = [sys.executable, "-m", "nd4jlike", "describe", "c", "3,4", "--json", "--svg", str(target)]
        with subprocess.Popen(command, stdout=stdout or subprocess.DEVNULL, text=True) as process:
            picture = path.read_text() if stdout is None else process.stdout.read()
        assert process.returncode == 0
        assert picture.startswith(ShapeDescriptor("float32", "c", (3, 4)).show().svg())


def test_d10_whole_or_not_at_all(run, tmp_path):
    """D10: A file is written whole or not at all."""
    path = tmp_path / "layout.svg"
    path.write_text("before")
    path.chmod(0o640)
    code = (
        "import resource, sys; from nd4jlike import cli; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000));"
        f"sys.exit(cli.main(['describe', 'nChw8c', '1,17,5,4', '--svg', {str(path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"nd4jlike: {path}: {os.strerror(errno.EFBIG)}\n"
    assert path.read_text() == "before"
    assert files(tmp_path) == ["layout.svg"]

    assert run("describe", "c", "3,4", "--svg", path)[0] == 0
    assert path.read_text().startswith("<svg")
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.svg"
    link.symlink_to(path)
    assert run("describe", "nhwc", "1,2,3,4", "--svg", link)[0] == 0
    assert link.is_symlink()
    assert "acdb" in path.read_text()
    assert run("describe", "c", "3,4", "--svg", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()
    assert files(tmp_path) == ["layout.svg", "link.svg"]


def test_d10_places_that_cannot_be_written(run, tmp_path):
    """D10: a place that cannot be written is one line and exit code 2."""
    for place, number in ((tmp_path / "absent" / "x.svg", errno.ENOENT), (tmp_path, errno.EISDIR), (tmp_path / ("x" * 300), errno.ENAMETOOLONG)):
        code, out, err = run("describe", "c", "3,4", "--svg", place)
        assert (code, out, err) == (2, "", f"nd4jlike: {place}: {os.strerror(number)}\n")
    if Path("/dev/full").exists():
        assert run("describe", "c", "3,4", "--svg", "/dev/full") == (2, "", f"nd4jlike: /dev/full: {os.strerror(errno.ENOSPC)}\n")
    assert not files(tmp_path)


def test_d10_read_only_files(tmp_path, monkeypatch):
    """D10: A file is written whole or not at all: a read-only one stays as it is."""
    path = tmp_path / "layout.svg"
    path.write_text("before")
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda place, mode: not (Path(place) == path and mode & os.W_OK))  # the superuser may write everywhere
    with pytest.raises(PermissionError):
        PADDED.show().save(path)
    assert path.read_text() == "before"
    assert files(tmp_path) == ["layout.svg"]


@pytest.mark.parametrize(("name", "d"), [("padded", PADDED), ("blocked", BLOCKED)])
def test_d11_the_pictures_are_what_the_code_draws(name, d):
    """D11: The README's pictures lie beside this record, and are what the code draws today."""
    assert (ROOT / "adr" / f"0011-{name}.svg").read_text(encoding="utf-8") == d.show().svg()
    assert re.search(rf"!\[[^]]+\]\(adr/0011-{name}\.svg\)", (ROOT / "README.md").read_text())


def test_d11_the_commands_draw_them(run, tmp_path):
    """D11: the commands that draw the pictures."""
    record = (ROOT / "adr" / "0011-layouts-one-can-see.md").read_text()
    commands = re.findall(r"`nd4jlike (describe [^`]*) adr/(0011-\w+\.svg)`", record)
    assert len(commands) == 2
    for command, name in commands:
        assert run(*command.split(), tmp_path / name)[0] == 0
        assert (tmp_path / name).read_bytes() == (ROOT / "adr" / name).read_bytes()


def test_d12_padding_of_an_array_and_of_a_layout():
    """D12: `padding=`, by default what `fill_padding` wrote to all of it, else 0; a layout holds no values to compare."""
    x = nd.create((2, 2), dtype="int8", paddings=(0, 1))
    assert "!" not in show(x, padding=0)
    assert str(show(x, padding=7)) == str(x.show(padding=7)) != str(show(x))
    with pytest.raises(LayoutError, match="what check_padding of an array found, a layout holds no values: padding=0"):
        x.descriptor.show(padding=0)
    for options in ({"width": "80"}, {"rows": 2.0}, {"rows": 0}):
        with pytest.raises(LayoutError, match="1 row and 1 column or more"):
            x.show(**options)

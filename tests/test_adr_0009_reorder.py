"""ADR 0009: reorder."""

import subprocess
import sys
from contextlib import contextmanager
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import nd4jlike as nd
from guards import SIDES, guarded, guarded_array
from locks import runs_without_lock
from nd4jlike import dtypes, moves
from nd4jlike.adapters.onednn import MemoryDesc
from nd4jlike.dtypes import bits_dtype, float32_to_bfloat16
from nd4jlike.kernels import dispatch
from strategies import DTYPES, descriptors, keys_of, shapes, tagged_descriptors, tags

ISAS = dispatch.available()
every_isa = pytest.mark.parametrize("isa", ISAS)
isas = st.sampled_from(ISAS)
# What float32 is converted to and from, integers to themselves, but for the zero point.
CONVERSIONS = {"float16": {}, "bfloat16": {}, "int8": {"scale": 1}, "uint8": {"scale": 1, "zero_point": 128}, "int16": {"scale": 1, "zero_point": -300}}
CODES = [name for name, options in CONVERSIONS.items() if options]


@contextmanager
def caches(near, streamed):
    """Machines with other caches: half of a second-level one, three eighths of the last one."""
    before = moves._assume_caches(near, streamed)
    try:
        yield
    finally:
        moves._assume_caches(*before)


def words(array):
    """See the whole buffer, a cell an unsigned integer."""
    return np.frombuffer(array.buffer, f"u{array.itemsize}")


def offsets(descriptor, shape=None):
    """Offset of every element, one at a time; `shape`: beyond the extents."""
    found = []
    for index in np.ndindex(*(descriptor.shape if shape is None else shape)):
        rest, offset, step = list(index), descriptor.offset, 1
        for axis, size in reversed(descriptor.inner_blocks):
            offset += rest[axis] % size * step
            rest[axis] //= size
            step *= size
        found.append(offset + sum(i * s for i, s in zip(rest, descriptor.strides, strict=True)))
    return np.array(found, np.intp)


def whole_blocks(descriptor):
    """Extents rounded up to whole blocks."""
    extents = list(descriptor.shape)
    for axis in range(descriptor.rank):
        block = int(np.prod([size for a, size in descriptor.inner_blocks if a == axis]))
        extents[axis] = -(-extents[axis] // block) * block
    return extents


def noise(descriptor, seed=0):
    """Make an array whose cells, padding included, are random bits."""
    x = nd.NdArray(descriptor)
    raw = np.frombuffer(x.buffer, np.uint8)
    raw[:] = np.random.default_rng(seed).integers(0, 256, raw.size, np.uint8)
    return x


def held(numbers, dtype):
    """Give what elements of a type hold for these numbers, by CONVERSIONS."""
    return numbers + CONVERSIONS.get(str(dtype), {}).get("zero_point", 0)


def pattern(value, dtype):
    """Bits of one cell."""
    return np.array(value, bits_dtype(dtype)).view(f"u{bits_dtype(dtype).itemsize}")[()]


def check(x, layout, **options):
    """Reorder to a new array and to a dirty one; every cell of both buffers is as it must be."""
    source, at = words(x), offsets(layout)
    wanted = source[offsets(x.descriptor)]
    fill = pattern(0, x.dtype)

    made = nd.reorder(x, layout, **options)
    expected = np.full(words(made).size, fill)
    expected[at] = wanted
    assert made.descriptor == layout
    np.testing.assert_array_equal(words(made), expected)

    out = noise(layout, 1)
    expected = words(out).copy()
    expected[offsets(layout, whole_blocks(layout))] = fill
    expected[at] = wanted
    assert nd.reorder(x, layout, out=out, **options) is out
    np.testing.assert_array_equal(words(out), expected)


@st.composite
def pairs(draw):
    """Draw two layouts of one shape and element type, blocked, permuted and padded."""
    one = draw(descriptors)
    if one.rank == 0:
        return one, one
    other = nd.ShapeDescriptor.from_tag(one.shape, draw(tags(one.rank)), one.dtype)
    pads = [draw(st.integers(0, 3)) for _ in one.shape]
    before = [draw(st.integers(0, 1)) * int(np.prod([s for a, s in other.inner_blocks if a == axis])) for axis in range(one.rank)]
    other = nd.ShapeDescriptor.from_tag(one.shape, other.tag, one.dtype, [p + b for p, b in zip(pads, before, strict=True)], before)
    return (one, other) if draw(st.booleans()) else (other, one)


@given(pairs(), isas, st.sampled_from(((1 << 20, 1 << 26), (1, 1 << 26), (1, 1))))
def test_d1_any_layout_to_any_other(pair, isa, machine):
    """D1: any descriptor to any other of equal shape, within the caches and beyond them."""
    source, target = pair
    with caches(*machine):
        check(noise(source), target, isa=isa)


def test_d1_an_instruction_set_that_is_none():
    """D1: `reorder` takes the instruction sets that there are."""
    for isa in (5, "sse9", b"avx2"):
        with pytest.raises(nd.Nd4jLikeError, match="available: baseline"):
            nd.reorder(np.ones((1, 8, 2, 2)), "nChw8c", isa=isa)


@every_isa
def test_d1_the_documented_example(isa):
    """D1: C = 17 into nChw8c: every element where oneDNN's documents say, and a tail of zeros."""
    x = np.arange(17 * 20, dtype=np.float32).reshape(1, 17, 5, 4)
    y = nd.reorder(x, "nChw8c", isa=isa)
    cells = np.frombuffer(y.buffer, np.float32)
    assert cells.size == 480
    for n, c, h, w in np.ndindex(1, 17, 5, 4):
        assert cells[(n * 3 + c // 8) * 160 + h * 32 + w * 8 + c % 8] == x[n, c, h, w]
    assert cells.sum() == x.sum()


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@every_isa
def test_d1_around_the_tiles(isa, width):
    """D1: any descriptor to any other, at every extent around a line and a tile, between planes, pixels and blocks."""
    line = 64 // width
    counts = sorted({1, 2, 3, 4, 8, 16, line // 4 - 1, line // 4, line // 2 + 1, line - 1, line, line + 1, 2 * line + 3} - {0})
    for channels, pixels in product(counts, counts):
        values = np.random.default_rng(pixels).integers(0, 256, (2, channels, pixels, width), np.uint8).view(f"u{width}")[..., 0]
        blocks = [(f"aBc{size}b", "abc") for size in sorted({4, 8, 16, line // 2, line})]
        for tags_ in (("abc", "acb"), ("acb", "abc"), ("acb", f"aBc{line}b"), *blocks, *(pair[::-1] for pair in blocks)):
            source, target = (nd.ShapeDescriptor.from_tag(values.shape, tag, values.dtype) for tag in tags_)
            x = nd.NdArray(source)
            words(x)[offsets_fast(source)] = values.ravel()
            y = nd.reorder(x, target, isa=isa)
            expected = np.zeros(words(y).size, values.dtype)
            expected[offsets_fast(target)] = values.ravel()
            assert (words(y) == expected).all(), (tags_, values.shape)


@every_isa
def test_d1_runs_of_every_length(isa):
    """D1: any descriptor to any other, runs of any length and any number of them side by side; D8: nothing outside is touched."""
    for run, rows, columns in product((*range(1, 34), 47, 48, 63, 64, 65, 100, 127, 128, 129, 200), (1, 4, 9), (1, 5)):
        values = np.random.default_rng(run).integers(0, 256, (rows, columns, run), np.uint8)
        for side in SIDES:
            out = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, "bac", "uint8"), guarded(values.nbytes, side))
            nd.reorder(guarded_array(values, side), "bac", out=out, isa=isa)
            assert (out.to_numpy() == values).all(), (run, rows, columns, side)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@every_isa
def test_d1_beyond_a_near_cache(isa, width):
    """D1: any descriptor to any other, where lines are fetched ahead: more than half of a second-level cache."""
    values = np.random.default_rng(0).integers(0, 256, (2, 67, 22000 // width, width), np.uint8).view(f"u{width}")[..., 0]
    for tags_ in (("abc", "acb"), ("acb", "abc"), ("abc", "aBc8b"), ("acb", "aBc16b"), ("aBc16b", "abc"), ("aBc8b", "acb")):
        x = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, tags_[0], values.dtype))
        x[...] = values
        assert (nd.reorder(x, tags_[1], isa=isa).to_numpy() == values).all(), tags_


@pytest.mark.parametrize("machine", [(1 << 18, 3 << 18), (1 << 18, 3 << 20), (1 << 18, 1 << 30), (1 << 19, 3 << 21), (1 << 19, 1 << 30), (1 << 20, 1 << 30)])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@every_isa
def test_d1_strips(isa, width, machine):
    """D1: any descriptor to any other, where the rows or columns to come are fetched in order: caches of 512 KB, 1 and 2 MB, lines whole and shared."""
    with caches(*machine):
        for shape in ((2, 96, 4270), (2, 512, 1056), (8, 512, 196), (2, 96, 1024), (2, 100, 11600 // width + 1), (2, 24, 46080 // width)):
            values = np.random.default_rng(0).integers(0, 1 << 8 * width, shape, f"u{width}")
            for tags_ in (("abc", "acb"), ("acb", "abc")):
                x = nd.NdArray(nd.ShapeDescriptor.from_tag(shape, tags_[0], values.dtype))
                x[...] = values
                assert (nd.reorder(x, tags_[1], isa=isa).to_numpy() == values).all(), (tags_, shape)


@every_isa
def test_d1_blocks_together(isa):
    """D1: any descriptor to any other, where two blocks of planes are written by turns, one left over or not, and where runs and their tails share pixels."""
    with caches(1 << 19, 1 << 30):
        for shape in ((1, 48, 3216), (2, 40, 3216), (1, 43, 4032), (3, 9, 2745), (1, 17, 2745), (1, 25, 999)):
            values = np.random.default_rng(0).integers(1, 1 << 32, shape, np.uint32)
            for tags_ in permutations(("abc", "acb", "aBc8b", "aBc16b"), 2):
                x = nd.NdArray(nd.ShapeDescriptor.from_tag(shape, tags_[0], values.dtype))
                x[...] = values
                y = noise(nd.ShapeDescriptor.from_tag(shape, tags_[1], values.dtype))
                assert (nd.reorder(x, tags_[1], out=y, isa=isa, padding_value=0).to_numpy() == values).all(), (tags_, shape)
                assert np.count_nonzero(np.frombuffer(y.buffer, np.uint32)) == values.size, (tags_, shape)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@every_isa
def test_d1_whole_pages(isa, width):
    """D1: any descriptor to any other, where rows or columns lie nearly whole pages apart and share the sets of a cache: by way of a strip."""
    cells = 4096 // width
    with caches(1 << 19, 1 << 30):
        whole = (2, 83, cells), (1, cells, 150), (2, 64 // width, 2 * cells), (1, 200 // width + 1, 3 * cells), (1, 2 * cells, cells)
        for shape in (*whole, (2, 83, cells - 1), (1, 150, cells + 2)):
            values = np.random.default_rng(0).integers(0, 1 << 8 * width, shape, f"u{width}")
            for tags_ in permutations(("abc", "acb", "aBc8b", "aBc16b"), 2):
                x = nd.NdArray(nd.ShapeDescriptor.from_tag(shape, tags_[0], values.dtype))
                x[...] = values
                assert (nd.reorder(x, tags_[1], isa=isa).to_numpy() == values).all(), (tags_, shape)
            flipped = values[:, ::-1, ::-1]
            assert (nd.reorder(flipped, "acb", isa=isa).to_numpy() == flipped).all(), shape


@pytest.mark.parametrize("near", [1 << 16, 1 << 19, 1 << 20])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@every_isa
def test_d1_past_the_caches(isa, width, near):
    """D1: any descriptor to any other, where lines are stored past the caches: at both ends far apart, or beyond the last-level cache."""
    for streamed, channels, pixels in ((1 << 30, 128, 1056), (3 << 20, 128, 1056), (1 << 18, 128, 1056), (1 << 18, 128, 1057), (1 << 18, 144, 1072)):
        values = np.random.default_rng(0).integers(0, 1 << 8 * width, (2, channels, pixels), f"u{width}")
        with caches(near, streamed):
            for tags_ in permutations(("abc", "acb", "aBc8b", "aBc16b"), 2):
                x = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, tags_[0], values.dtype))
                x[...] = values
                y = nd.reorder(x, tags_[1], isa=isa)
                assert (y.to_numpy() == values).all(), (tags_, streamed)


@pytest.mark.parametrize("near", [1 << 16, 1 << 19, 1 << 20])
@every_isa
def test_d8_past_the_caches_at_any_address(isa, near):
    """D8: no byte outside the buffers is touched, lines are stored where they lie: images of `out` that begin within a line."""
    values = np.random.default_rng(0).integers(0, 1 << 32, (3, 144, 1072), "u4")
    image = values[0].size + 5
    with caches(near, 1 << 18):
        for source, target in permutations(("abc", "acb", "aBc8b", "aBc16b"), 2):
            x = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, source, values.dtype))
            x[...] = values
            like = nd.ShapeDescriptor.from_tag(values.shape, target, values.dtype)
            memory = nd.zeros((3 * image,), values.dtype).to_numpy()
            apart = nd.ShapeDescriptor(like.dtype, like.order, like.shape, (image, *like.strides[1:]), axes=like.axes, inner_blocks=like.inner_blocks)
            out = nd.NdArray(apart, memory)
            nd.reorder(x, target, out=out, isa=isa)
            assert (out.to_numpy() == values).all(), (source, target)
            assert not memory[image - 5 : image].any()


def offsets_fast(descriptor):
    """`offsets` for three axes of which at most the second is blocked."""
    n, c, p = np.ix_(*[np.arange(e) for e in descriptor.shape])
    block = descriptor.inner_blocks[0][1] if descriptor.inner_blocks else 1
    return (n * descriptor.strides[0] + c // block * descriptor.strides[1] + c % block + p * descriptor.strides[2]).ravel()


@given(shapes, st.data(), isas)
def test_d1_sources_with_any_strides(shape, data, isa):
    """D1: the source with any strides, negative and zero ones too."""
    values = np.random.default_rng(0).integers(-100, 100, shape).astype(data.draw(st.sampled_from(["int8", "int16", "float32", "float64"])))
    view = values[data.draw(keys_of(shape))]
    if not isinstance(view, np.ndarray):
        view = np.asarray(view)
    view = np.transpose(view, data.draw(st.permutations(range(view.ndim))))
    if data.draw(st.booleans()):
        view = np.broadcast_to(view, (3, *view.shape))
    assume(0 < view.ndim <= 6)
    y = nd.reorder(view, data.draw(tags(view.ndim)), isa=isa)
    np.testing.assert_array_equal(y.to_numpy(), view)


@pytest.mark.parametrize("dtype", DTYPES)
def test_d2_bits_move(dtype):
    """D2: Bits move: every element type; a NaN keeps its payload."""
    check(noise(nd.ShapeDescriptor.from_tag((2, 5, 3, 4), "nhwc", dtype)), nd.ShapeDescriptor.from_tag((2, 5, 3, 4), "nChw4c", dtype))


@given(tagged_descriptors(), st.integers(-3, 3))
def test_d3_padding_of_a_new_array(layout, value):
    """D3: holds `padding_value` in all its padding, halo and block tails."""
    assume(str(layout.dtype).startswith(("int", "float")))
    y = nd.reorder(np.ones(layout.shape, layout.dtype), layout, padding_value=value)
    assert y.check_padding(value)
    assert (y.to_numpy() == 1).all()
    assert nd.reorder(y, layout).check_padding(0)


def test_d4_out_keeps_its_halo():
    """D4: the cells of its blocks that hold elements are written whole, and nothing else."""
    layout = nd.ShapeDescriptor.from_tag((1, 3, 2), "aBc4b", "int8", (0, 9, 1), (0, 4, 0))
    out = nd.NdArray(layout)
    out.fill_padding(7)
    nd.reorder(np.ones((1, 3, 2), np.int8), layout, out=out, padding_value=5)
    # Four blocks of four for each of three pixels: in front, that of the elements, and one behind; the third pixel is padding.
    assert np.frombuffer(out.buffer, np.int8).reshape(-1, 3, 4)[:, 0].tolist() == [[7, 7, 7, 7], [1, 1, 1, 5], [7, 7, 7, 7]]
    assert (np.frombuffer(out.buffer, np.int8).reshape(-1, 3, 4)[:, 2] == 7).all()


def test_d4_what_out_is_known_to_hold():
    """D4: by default what `fill_padding` last wrote to all tails of `out`, or it was made with, else 0, whoever else has the memory."""
    layout = nd.ShapeDescriptor.from_tag((1, 3, 2), "aBc4b", "int8")
    out = nd.NdArray(layout)
    out.fill_padding(7)
    assert nd.reorder(np.ones((1, 3, 2), np.int8), layout, out=out).check_padding(7)
    nd.reorder(np.ones((1, 3, 2), np.int8), layout, out=out, padding_value=1)
    assert out.check_padding(1)
    memory = bytearray(b"\x09" * 8)
    wrapped = nd.NdArray(layout, memory)
    nd.reorder(np.ones((1, 3, 2), np.int8), layout, out=wrapped)
    assert list(memory) == [1, 1, 1, 0, 1, 1, 1, 0]
    wrapped.fill_padding(-5)
    with memoryview(out.buffer):
        out.fill_padding(-5)
    for filled in (wrapped, out):
        nd.reorder(np.ones((1, 3, 2), np.int8), layout, out=filled)
        assert filled.check_padding(-5)


def test_d4_the_surroundings_of_a_view():
    """D4: the surroundings of a view stay as they are."""
    host = np.full((4, 6), 9, np.float32)
    nd.reorder(np.zeros((2, 3), np.float32), "ab", out=host[1:3, 2:5])
    assert host.sum() == 9 * (24 - 6)
    backwards = host[::-1, ::-1][1:3, 1:4]
    nd.reorder(np.arange(6, dtype=np.float32).reshape(2, 3), nd.NdArray(nd.ShapeDescriptor("float32", "c", (2, 3))).descriptor, out=backwards)
    assert backwards.tolist() == [[0, 1, 2], [3, 4, 5]]
    part = nd.zeros((1, 16, 2, 2), "float32")
    blocks = nd.reorder(part, "nChw8c")
    nd.reorder(np.ones((1, 8, 2, 2), np.float32), "nChw8c", out=blocks[:, 8:])
    assert blocks.to_numpy().sum(axis=(0, 2, 3)).tolist() == [0.0] * 8 + [4.0] * 8


def test_d5_out_is_checked():
    """D5: `out` must have the shape, the element type, the memory order and blocks that are asked for; writable; no byte shared."""
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4).copy()
    before = x.copy()
    readonly = np.zeros((1, 2, 3, 4), np.float32)
    readonly.flags.writeable = False
    cases = (
        (nd.LayoutError, "the shape of x", "nchw", np.zeros((1, 2, 4, 3), np.float32)),
        (nd.LayoutError, "as the layout says", "nhwc", np.zeros((1, 2, 3, 4), np.float32)),
        (nd.LayoutError, "as the layout says", "nchw", nd.NdArray(nd.ShapeDescriptor.from_tag((1, 2, 3, 4), "nChw2c"))),
        (nd.LayoutError, "read-only", "nchw", readonly),
        (nd.LayoutError, "overlap", "nchw", x),
        (nd.LayoutError, "overlap", "nchw", x[:, ::-1]),
        (nd.DTypeError, "element type", nd.ShapeDescriptor("float32", "c", (1, 2, 3, 4)), np.zeros((1, 2, 3, 4), np.int32)),
        (nd.LayoutError, "as the layout says", "nc", np.zeros((1, 2, 3, 4), np.float32)),
        (nd.LayoutError, "export a buffer or speak DLPack: a list", "nchw", [[[[np.float32(0)] * 4] * 3] * 2]),
    )
    for error, match, layout, out in cases:
        with pytest.raises(error, match=match):
            nd.reorder(x, layout, out=out)
        assert (x == before).all()
        if isinstance(out, np.ndarray) and out is not x and out.base is not x:
            assert not out.any()
    # Strides and padding are its own, and axes of one element lie anywhere.
    wide = np.zeros((1, 2, 3, 8), np.float32)
    assert nd.reorder(x, "nchw", out=wide[..., ::2]) is not None
    assert (wide[..., ::2] == x).all()
    nd.reorder(x[:, :1], "nhwc", out=np.zeros((1, 1, 3, 4), np.float32))


def test_d5_axes_of_one_block_lie_anywhere():
    """D5: for axes of more than one block, the memory order and blocks that are asked for: what oneDNN's adapter makes of a tag is that layout."""
    layout = nd.ShapeDescriptor.from_tag((10, 11, 4), "BAc16b16a")
    twin = MemoryDesc.from_tag(layout.shape, "BAc16b16a").to_descriptor()
    assert (twin.strides, twin.inner_blocks) == (layout.strides, layout.inner_blocks)
    assert twin.axes != layout.axes
    x = nd.arange(440).reshape(10, 11, 4)
    wide = nd.ShapeDescriptor.from_tag(layout.shape, "ABc16b16a", paddings=(0, 0, 2), padding_offsets=(0, 0, 1))
    for wanted, laid in ((layout, twin), (twin, layout), ("BAc16b16a", twin), (layout, wide), ("BAc16b16a", wide)):
        out = noise(laid)
        assert (nd.reorder(x, wanted, out=out) == x).all()
        assert laid is wide or out.check_padding(where="tail")
    with pytest.raises(nd.LayoutError, match="as the layout says"):  # of two blocks the order counts
        nd.reorder(nd.zeros((17, 17, 4)), "BAc16b16a", out=nd.NdArray(nd.ShapeDescriptor.from_tag((17, 17, 4), "ABc16b16a")))


def test_d5_the_same_places_in_other_words():
    """D5: or put each element as far from the first as they do: all small shapes, each tag beside each other one."""
    names = ("ab", "ba", "aB2b", "aB4b", "Ab4a", "BA2a2b", "aB1b", "AB2a2b", "aB2b2b", "bA3a")
    for shape in product((1, 2, 3, 5), repeat=2):
        x = nd.arange(shape[0] * shape[1]).reshape(*shape)
        for one, other in product(names, repeat=2):
            wanted, out = (nd.ShapeDescriptor.from_tag(shape, name) for name in (one, other))
            if (offsets(wanted) == offsets(out)).all():
                for layout in (wanted, one):
                    assert (nd.reorder(x, layout, out=nd.NdArray(out)) == x).all(), (shape, one, other)
            elif one[0] != other[0] and min(shape) == 5:
                with pytest.raises(nd.LayoutError, match="as the layout says"):
                    nd.reorder(x, wanted, out=nd.NdArray(out))
    # In the middle of something bigger; of no element.
    whole = nd.zeros((4, 3, 8))
    nd.reorder(nd.ones((3, 8)), "aB8b", out=whole[1])
    assert whole.sum() == 24 == whole[1].sum()
    assert nd.reorder(nd.zeros((0, 3)), "ba", out=nd.zeros((0, 3))).size == 0


@given(pairs())
def test_d5_the_same_places_at_random(pair):
    """D5: or put each element as far from the first as they do: refused only where one of them lies elsewhere."""
    layout, other = pair
    x, alike = noise(layout), (offsets(layout) - layout.offset == offsets(other) - other.offset).all()
    try:
        out = nd.reorder(x, layout, out=nd.NdArray(other))
    except nd.LayoutError:
        assert not alike
    else:
        np.testing.assert_array_equal(words(out)[offsets(other)], words(x)[offsets(layout)])


def test_d5_other_arguments_are_checked():
    """D5: Else an error, and nothing is written."""
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(nd.LayoutError, match=r"keeps the shape: x has \(2, 3\), the layout \(3, 2\)"):
        nd.reorder(x, nd.ShapeDescriptor("float32", "c", (3, 2)))
    with pytest.raises(nd.LayoutError, match="position 1"):
        nd.reorder(x, "a?")
    with pytest.raises(nd.LayoutError, match="the tag has 3 axes"):
        nd.reorder(x, "abc")
    with pytest.raises(nd.LayoutError, match="layout tag"):
        nd.reorder(x, 7)
    with pytest.raises(nd.LayoutError, match="threads must be at least 1: 0"):
        nd.reorder(x, "ab", threads=0)
    with pytest.raises(nd.LayoutError, match="threads must be an integer: True"):
        nd.reorder(x, "ab", threads=True)
    with pytest.raises(nd.IsaError, match="mmx"):
        nd.reorder(x, "ab", isa="mmx")
    with pytest.raises(nd.DTypeError, match="padding value"):
        nd.reorder(x, "ab", padding_value="much")
    with pytest.raises(nd.DTypeError, match="dtype is int8, the layout is one of float32"):
        nd.reorder(x, nd.ShapeDescriptor("float32", "c", (2, 3)), dtype="int8")
    with pytest.raises(nd.LayoutError, match="no memory can be laid out so"):
        nd.reorder(x, nd.ShapeDescriptor("float32", "c", (2, 3), (1, 1)))


def hard_floats():
    """Bit patterns of float32: a comb through all of them, and what lies around the edges of narrower types."""
    edges = [0x33000000, 0x33000001, 0x337FFFFF, 0x387FFFFF, 0x38800000, 0x38801000, 0x38803000, 0x477FEFFF, 0x477FF000, 0x47800000, 0x7F7F7FFF, 0x7F7F8000]
    edges += [0, 1, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40200000]
    bits = np.concatenate([np.arange(0, 2**32, 65521 * 3, np.uint64), np.array(edges, np.uint64), np.array(edges, np.uint64) | 0x80000000])
    return bits.astype(np.uint32).view(np.float32)


@every_isa
def test_d6_float16(isa):
    """D6: To float16 half to even; a NaN stays one, made quiet, with its sign and upper bits; and back, exactly."""
    values = hard_floats()
    bits = values.view(np.uint32)
    with np.errstate(all="ignore"):
        halves = values.astype(np.float16).view(np.uint16)
    expected = np.where(np.isnan(values), (bits >> 16 & 0x8000) | 0x7E00 | (bits >> 13 & 0x3FF), halves)
    np.testing.assert_array_equal(nd.reorder(values, "a", dtype="float16", isa=isa).to_numpy().view(np.uint16), expected)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        wide = halves.astype(np.float32).view(np.uint32)
    expected = np.where(np.isnan(halves), wide | 0x400000, wide)
    np.testing.assert_array_equal(nd.reorder(halves, "a", dtype="float32", isa=isa).to_numpy().view(np.uint32), expected)


@every_isa
def test_d6_bfloat16(isa):
    """D6: To bfloat16 half to even; and back, exactly."""
    values = hard_floats()
    narrow = nd.reorder(values, "a", dtype="bfloat16", isa=isa)
    np.testing.assert_array_equal(words(narrow), float32_to_bfloat16(values))
    every = nd.NdArray(nd.ShapeDescriptor("bfloat16", "c", (2**16,)))
    words(every)[:] = np.arange(2**16)
    np.testing.assert_array_equal(nd.reorder(every, "a", dtype="float32", isa=isa).to_numpy().view(np.uint32), np.arange(2**16, dtype=np.uint32) << 16)


def test_d6_what_is_refused():
    """D6: all else is refused."""
    for one, other in (("float32", "int32"), ("float16", "bfloat16"), ("float64", "float32"), ("int8", "float16"), ("int8", "uint8"), ("int16", "int8")):
        with pytest.raises(nd.DTypeError, match=f"not from {one} to {other}; astype"):
            nd.reorder(nd.zeros((2, 3), one), "ab", dtype=other)


@pytest.mark.parametrize(
    ("scale", "zero"),
    [
        (0.1, 3),
        (1, -128),
        (0.007, 127),
        (0.5, 0),
        (3.7e5, 1),
        (1e-40, -7),
        (2.0**-90, 5),
        (2.0**-149, 0),
        (2.0**90, 3),
        (2.0**110, -1),
        (0.9999999, 0),
        (1.0000001, 7),
        (0.33333334, -7),
        (1.9999999, 3),
        (1e-28, 2),
        (2e-27, 1),
        (9e26, 4),
        (3e27, 0),
    ],
)
@pytest.mark.parametrize("dtype", CODES)
@every_isa
def test_d7_codes(isa, dtype, scale, zero):
    """D7: `round(x / scale) + zero_point`, computed in float32, halves to even, saturated; NaN gives the zero point; and back."""
    step, limits = np.float32(scale), np.iinfo(dtype)
    # The same place among the codes of each type.
    for zero_point in {zero, limits.min + zero + 128, limits.max + zero - 127} if dtype != "int8" else {zero}:
        if not limits.min <= zero_point <= limits.max:
            continue
        halves = (np.arange(-600, 600) / 2 * float(step)).astype(np.float32)
        ends = ((np.array([limits.min, limits.max])[:, None] - zero_point + np.arange(-8, 9) / 2) * float(step)).astype(np.float32).ravel()
        around = np.concatenate([halves, ends[np.isfinite(ends)]]).view(np.int32)
        values = np.concatenate([hard_floats(), *((around + near).view(np.float32) for near in range(-3, 4))])
        with np.errstate(all="ignore"):
            steps = np.where(np.isnan(values), np.float32(0), np.rint(values / step))
        steps = np.where(np.isnan(steps), 0, steps)
        expected = np.clip(np.clip(steps, -1000000, 1000000) + zero_point, limits.min, limits.max).astype(dtype)
        options = {"scale": scale, "zero_point": zero_point, "isa": isa}
        np.testing.assert_array_equal(nd.reorder(values, "a", dtype=dtype, **options).to_numpy(), expected)
        codes = np.arange(limits.min, limits.max + 1).astype(dtype)
        with np.errstate(all="ignore"):
            expected = (codes.astype(np.float32) - np.float32(zero_point)) * step
        np.testing.assert_array_equal(nd.reorder(codes, "a", dtype="float32", **options).to_numpy(), expected)


@given(pairs(), st.sampled_from([*CONVERSIONS]), st.booleans(), isas, st.sampled_from(((1 << 20, 1 << 26), (1, 1))))
def test_d7_conversions_between_any_layouts(pair, narrow, widen, isa, machine):
    """D7: to int8, uint8 and int16, and padding and tails by default; D6 between any layouts."""
    names = (narrow, "float32") if widen else ("float32", narrow)
    source, target = (d.astype(name) for d, name in zip(pair, names, strict=True))
    options = {"scale": 0.25, "zero_point": 103} if narrow in CODES else {}
    # Numbers that every type here holds.
    numbers = np.random.default_rng(0).integers(-20, 20, source.shape).astype(np.float32) / 4
    x = nd.NdArray(source)
    x.fill_padding(0)
    x[...] = numbers if names[0] not in CODES else (numbers * 4 + 103).astype(names[0])
    with caches(*machine):
        y = nd.reorder(x, target, isa=isa, **options)
    assert y.check_padding(103 if names[1] in CODES else 0)
    got = y.to_numpy().astype(np.float32)
    np.testing.assert_array_equal(got, numbers if names[1] not in CODES else numbers * 4 + 103)


def test_d7_the_zero_point_is_the_padding():
    """D7: NaN gives the zero point, and so do padding and tails by default."""
    for dtype, zero in (("int8", -5), ("uint8", 200), ("int16", -5000)):
        y = nd.reorder(np.full((1, 3, 2), np.nan, np.float32), "aBc4b", dtype=dtype, scale=1, zero_point=zero)
        assert (np.frombuffer(y.buffer, dtype) == zero).all()
        assert not y.buffer.shared or y.check_padding(zero)


def test_d7_scale_and_zero_point_are_checked():
    """D7: scale is a positive float32 number and zero_point a code, given for codes and for nothing else."""
    x = np.zeros(3, np.float32)
    for dtype in CODES:
        for scale in (None, 0, -1, float("nan"), float("inf"), 1e39, 1e-50, "1x"):
            with pytest.raises(nd.LayoutError, match="scale"):
                nd.reorder(x, "a", dtype=dtype, scale=scale)
        limits = np.iinfo(dtype)
        for zero in (limits.max + 1, limits.min - 1, 0.5, "a"):
            with pytest.raises(nd.LayoutError, match=f"zero_point .*{dtype} code, {limits.min} to {limits.max}: |zero_point must be a number"):
                nd.reorder(x, "a", dtype=dtype, scale=1, zero_point=zero)
            with pytest.raises(nd.LayoutError, match="zero_point"):
                nd.reorder(np.zeros(3, dtype), "a", dtype="float32", scale=1, zero_point=zero)
    for options in ({"scale": 1}, {"zero_point": 0}):
        with pytest.raises(nd.LayoutError, match="belong to conversions"):
            nd.reorder(x, "a", **options)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d8_nothing_outside_is_touched(isa, side):
    """D8: No byte outside the buffers is touched, in the source none outside the span of the elements."""
    for width, channels, pixels in product((1, 2, 4, 8), (1, 3, 5, 8, 16, 17, 67), (1, 7, 61, 133)):
        values = np.random.default_rng(0).integers(0, 256, (channels, pixels, width), np.uint8).view(f"u{width}")[..., 0]
        for x in (guarded_array(values, side), guarded_array(values.T, side).T, guarded_array(values[::-1, ::-1], side)[::-1, ::-1]):
            for tag in ("ab", "ba", "Ab8a", "Ba16b"):
                layout = nd.ShapeDescriptor.from_tag(values.shape, tag, values.dtype)
                out = nd.NdArray(layout, guarded(layout.allocLength() * width, side))
                np.testing.assert_array_equal(nd.reorder(x, layout, out=out, isa=isa).to_numpy(), values)
                back = nd.NdArray(nd.ShapeDescriptor(values.dtype, "c", values.shape), guarded(values.nbytes, side))
                np.testing.assert_array_equal(nd.reorder(out, "ab", out=back, isa=isa).to_numpy(), values)
        # A view of every other row, whose surroundings nobody may read or write.
        parts = guarded_array(np.repeat(values, 2, axis=0), side)[:: 2 if side == "start" else -2]
        expected = values if side == "start" else values[::-1]
        np.testing.assert_array_equal(nd.reorder(parts, "ba", isa=isa).to_numpy(), expected)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d8_conversions_stay_inside(isa, side):
    """D8: No byte outside the buffers is touched by conversions."""
    for count, near in product((1, 3, 15, 16, 17, 33, 63, 64, 65, 129, 1500, 5003), (1 << 20, 1)):
        values = np.arange(count, dtype=np.float32) % 128
        for narrow, options in CONVERSIONS.items():
            layout = nd.ShapeDescriptor(narrow, "c", (count,))
            out = nd.NdArray(layout, guarded(count * layout.itemsize, side))
            back = nd.NdArray(nd.ShapeDescriptor("float32", "c", (count,)), guarded(count * 4, side))
            with caches(near, near):
                nd.reorder(guarded_array(values, side), "a", out=out, isa=isa, **options)
                assert (out.to_numpy().astype(np.float32) == held(values, narrow)).all()
                assert (nd.reorder(out, "a", out=back, isa=isa, **options).to_numpy() == values).all()


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d8_conversions_of_rows_stay_inside(isa, side):
    """D8: No byte outside the buffers is touched, nor between the rows of `out`, by conversions of runs of any length."""
    for run, rows in product((1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1100), (1, 5, 70)):
        values = (np.arange(rows * (run + 3), dtype=np.float32) % 251 - 125).reshape(rows, run + 3)
        for narrow, options in CONVERSIONS.items():
            for one, other in (("float32", narrow), (narrow, "float32")):
                source = guarded_array(held(values, one).astype("float32" if one == "bfloat16" else one), side)
                if one == "bfloat16":
                    source = nd.reorder(source, "ab", dtype=one)
                layout = nd.ShapeDescriptor.from_tag((rows, run), "ab", other, (0, 2))
                out = nd.NdArray(layout, guarded(layout.allocLength() * layout.itemsize, side))
                np.frombuffer(out.buffer, np.uint8)[:] = 99
                with caches(1, 1) if rows == 5 else caches(1 << 20, 1 << 26):
                    nd.reorder(source[:, 2 : run + 2], "ab", out=out, isa=isa, **options)
                cells = words(out).reshape(rows, run + 2)
                assert (cells[:, run:] == int.from_bytes(b"\x63" * layout.itemsize)).all()
                assert (out.to_numpy().astype(np.float32) == held(values, other)[:, 2 : run + 2]).all(), (run, rows, one, other)


@pytest.mark.parametrize("machine", [(1 << 18, 1 << 30), (1 << 18, 1)])
@every_isa
def test_d7_conversions_beyond_their_scratch(isa, machine):
    """D7, D6: between any layouts, of more elements than what is narrow has room for on its way."""
    for shape in ((2, 64, 1500), (3, 17, 5003), (1, 300, 400), (2, 5, 30000), (70000, 2, 1)):
        numbers = np.random.default_rng(0).integers(-100, 100, shape).astype(np.float32)
        for tags_ in (*permutations(("abc", "acb", "aBc8b", "aBc16b"), 2), ("aBc8b", "aBc8b"), ("abc", "ABc16b4a"), ("ABc4a16b", "acb")):
            for narrow, options in CONVERSIONS.items():
                with caches(*machine):
                    x = nd.reorder(nd.reorder(numbers, tags_[0]), tags_[1], dtype=narrow, padding_value=3, isa=isa, **options)
                    y = nd.reorder(nd.reorder(x, tags_[0]), tags_[1], dtype="float32", padding_value=5, isa=isa, **options)
                assert (x.to_numpy().astype(np.float32) == held(numbers, narrow)).all(), (shape, tags_, narrow)
                assert (y.to_numpy() == numbers).all(), (shape, tags_, narrow)
                assert x.check_padding(3)
                assert y.check_padding(5)


@pytest.mark.parametrize("shape", [(3, 40, 60, 61), (1, 1_000_003), (70, 9, 8, 400), (2, 1_300_000, 1)])
def test_d8_threads_give_the_same_bits(shape):
    """D8: every number of threads gives the same bits."""
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(np.int32)
    for tag in ("acdb", "aBcd16b", "dcba")[: 3 if len(shape) == 4 else 0] or (("ab", "Ba16b") if len(shape) == 2 else ("aBc16b", "acb")):
        alone = nd.reorder(x, tag)
        for threads in (2, 3, 7):
            together = nd.reorder(x, tag, threads=threads)
            assert (words(together) == words(alone)).all()
    for dtype in CODES:
        narrow = nd.reorder(x.astype(np.float32), "abcd"[: len(shape)], dtype=dtype, **CONVERSIONS[dtype], threads=3)
        assert (narrow.to_numpy() == held(x, dtype)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_d9_other_threads_run(threads):
    """D9: The lock of the interpreter is released while elements move."""
    x, out = np.ones((64, 512, 512), np.float32), nd.zeros((64, 512, 512))
    written = memoryview(out.buffer).cast("f")
    assert runs_without_lock(lambda: nd.reorder(x, "abc", out=out, threads=threads), lambda: all(written[:: 1 << 18]), lambda: out.fill(0))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the threads of a process are listed on Linux alone")
def test_d9_threads_have_enough_to_do():
    """D9: `threads` share whole blocks of one axis, from 512 KiB a thread on."""
    program = """
import os
import numpy as np, nd4jlike as nd
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
nd.reorder(np.ones((1023, 1024), np.int8), "ba", threads=8)
assert threads() == before
nd.reorder(np.ones((1024, 1024), np.int8), "ba", threads=8)
assert threads() == before + 1
nd.reorder(np.ones((2048, 1024), np.int8), "ba", threads=8)
assert threads() == before + 3
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("tag", ["abc", "aBc8b", "aBc16b"])
def test_d10_arrays_convert_with_it(tag):
    """D10: Arrays copy blocked layouts with it, those they convert too: tails that nobody asked about stay as they are."""
    values = np.arange(2 * 17 * 70, dtype=np.float32).reshape(2, 17, 70) % 256
    narrow = nd.reorder(values, "abc", dtype="bfloat16")
    wide = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, tag, "float32"))
    wide.fill_padding(7)
    wide[...] = narrow
    assert wide.check_padding(7)
    assert (wide.to_numpy() == values).all()
    back = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, "aBc4b", "bfloat16"))
    back.fill_padding(7)
    back[...] = wide
    assert back.check_padding(7)
    assert (nd.reorder(back, "abc", dtype="float32").to_numpy() == values).all()


@given(tagged_descriptors())
def test_d10_arrays_copy_blocked_layouts_with_it(layout):
    """D10: Arrays copy blocked layouts with it."""
    x = noise(layout)
    expected = words(x)[offsets(layout)].reshape(layout.shape)
    if str(layout.dtype) != "bfloat16":
        got = x.to_numpy(copy=True)
        np.testing.assert_array_equal(got.view(expected.dtype), expected)
    y = nd.NdArray(layout)
    y.fill_padding(1)
    y[...] = x if str(layout.dtype) not in ("bfloat16", "bool") else 0
    if str(layout.dtype) not in ("bfloat16", "bool"):
        np.testing.assert_array_equal(words(y)[offsets(layout)], expected.ravel())
    assert y.check_padding(1)


def test_d11_plans_are_remembered_and_memory_is_not():
    """D11: Memory is looked at each time: overlap, write access, what padding is known to hold."""
    x = nd.asarray(np.arange(6, dtype=np.int8).reshape(1, 3, 2))
    out = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 3, 2), "aBc4b", "int8"))
    for value in (0, 5, 0, -1):
        out.fill_padding(value)
        assert nd.reorder(x, "aBc4b", out=out).check_padding(value)
        assert (out.to_numpy() == x.to_numpy()).all()
        assert list(np.frombuffer(nd.reorder(x, "aBc4b", padding_value=value).buffer, np.int8)) == [0, 2, 4, value, 1, 3, 5, value]
        # The same layouts on other memory.
        again = nd.NdArray(out.descriptor, bytearray(b"\x09" * 8))
        assert list(np.frombuffer(nd.reorder(x * 2, "aBc4b", out=again).buffer, np.int8)) == [0, 4, 8, 0, 2, 6, 10, 0]
    fixed = nd.NdArray(out.descriptor, bytes(8))
    memory = bytearray(12)
    left, right = nd.NdArray(x.descriptor, memoryview(memory)[:6]), nd.NdArray(x.descriptor, memoryview(memory)[5:11])
    other = nd.NdArray(x.descriptor, bytearray(6))
    for _ in range(3):
        nd.reorder(left, "abc", out=other)
        with pytest.raises(nd.LayoutError, match="overlap"):
            nd.reorder(left, "abc", out=right)
        with pytest.raises(nd.LayoutError, match="read-only"):
            nd.reorder(x, "aBc4b", out=fixed)
    assert not any(memory)


def test_d11_arguments_that_change():
    """D11: Plans are remembered by the layouts and arguments they were made for."""
    x = nd.asarray(np.ones((2, 3), np.float32))
    scale, value = np.array(0.5), np.array(7)
    for step in (0.5, 0.25, 0.125):
        scale[...], value[...] = step, step * 8
        y = nd.reorder(x, "aB4b", dtype="int8", scale=scale, padding_value=value)
        assert y.to_numpy().max() == 1 / step
        assert y.check_padding(int(step * 8))
        assert nd.reorder(x, "ab", dtype="int8", scale=step).to_numpy().max() == 1 / step
    for isa in (*ISAS, None):
        assert nd.reorder(x, "ba", isa=isa).to_numpy().sum() == 6
    with pytest.raises(nd.LayoutError, match="threads"):
        nd.reorder(x, "ba", threads=0)
    for dtype in ("float16", None, *CONVERSIONS):
        assert nd.reorder(x, "ba", dtype=dtype, **CONVERSIONS.get(dtype, {})).dtype == dtypes.dtype(dtype or "float32")


def test_d1_empty_and_scalar():
    """D1: any descriptor to any other, the ones of no element and of no axis too."""
    assert nd.reorder(np.zeros((0, 3), np.float32), "ba").shape == (0, 3)
    assert nd.reorder(np.zeros((2, 0, 3), np.int8), "aBc8b", threads=4).size == 0
    assert nd.reorder(np.float64(3), nd.ShapeDescriptor("float64", "c", ())).item() == 3


def test_d1_never_a_view():
    """D1: a new array, never a view."""
    x = nd.zeros((2, 3))
    y = nd.reorder(x, x.descriptor)
    y[...] = 1
    assert x.to_numpy().sum() == 0
    assert nd.reorder(x, "ab").descriptor == x.descriptor


def test_d1_blocks_that_cut_each_other():
    """D1: any descriptor to any other, where neither block is a multiple of the other."""
    for one, other in (("A4a3ab", "A6ab"), ("A8a", "A12a"), ("A12a", "A18a"), ("A10a", "A4a2a"), ("A3a5a", "A5a3a"), ("A7a", "A16a")):
        axes = one.count("b") + 1
        for count in (1, 5, 12, 30, 61):
            shape = (count, 5)[:axes]
            pair = []
            for tag in (one, other):
                outer = "Ab"[:axes]
                blocks = tag[1:].removesuffix("b")
                pair.append(nd.ShapeDescriptor.from_tag(shape, outer + blocks, "int16"))
            check(noise(pair[0]), pair[1])
            check(noise(pair[1]), pair[0])


@pytest.mark.parametrize("tags_", [("Abc16a", "CbA6a32c"), ("Abc12a", "CAb8a16c")])
def test_d4_tails_where_blocks_cut_each_other(tags_):
    """D4: a block tail is written whole, and nothing else, where what is converted is cut within blocks."""
    for narrow, options in CONVERSIONS.items():
        source = nd.reorder(np.random.default_rng(0).integers(-100, 100, (65, 150, 5)).astype(np.float32), tags_[0], dtype=narrow, **options)
        out = noise(nd.ShapeDescriptor.from_tag(source.shape, tags_[1], "float32", (7, 9, 7)))
        expected = words(out).copy()
        expected[offsets(out.descriptor, whole_blocks(out.descriptor))] = 0
        numbers = source.to_numpy().astype(np.float32) - np.float32(held(0, narrow))
        expected[offsets(out.descriptor)] = numbers.view(np.uint32).ravel()
        nd.reorder(source, out.descriptor, out=out, **options)
        np.testing.assert_array_equal(words(out), expected)


def test_d1_the_layout_of_out():
    """D1: without a layout it is that of `out`."""
    x = nd.arange(2 * 17 * 3).reshape(2, 17, 3, 1)
    for tag in ("nhwc", "nChw8c"):
        out = nd.NdArray(nd.ShapeDescriptor.from_tag(x.shape, tag, x.dtype, paddings=(0, 0, 2, 1)))
        assert nd.reorder(x, out=out) is out
        np.testing.assert_array_equal(out, x)
        assert out.check_padding()
    codes = nd.zeros(x.shape, "int8")
    np.testing.assert_array_equal(nd.reorder(x, out=codes, scale=1), np.minimum(np.asarray(x), 127))
    with pytest.raises(nd.LayoutError, match="a reorder needs a layout, or an out that has one"):
        nd.reorder(x)

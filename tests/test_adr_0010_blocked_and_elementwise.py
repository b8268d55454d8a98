"""ADR 0010: blocked arrays, padding of two kinds, NumPy's operations."""

import copy
import ctypes
import gc
import itertools
import mmap
import operator
import pickle
import tracemalloc
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nd4jlike as nd
from guards import guarded
from nd4jlike import LayoutError, NdArray, OutOfRangeError, ShapeDescriptor, UnsupportedLayoutError
from nd4jlike.elementwise import writes_in_runs
from small import all_indices, numbered
from strategies import DTYPES, descriptors, keys_of, padded_descriptors, selections_of, tagged_descriptors

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMPY_DTYPES = (*FLOATS, *INTEGERS, "bool")
BINARY = (np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.less, np.equal, np.logical_and, np.true_divide, np.floor_divide, np.arctan2)
UNARY = (np.negative, np.absolute, np.square, np.sign, np.isfinite, np.sqrt, np.exp, np.logical_not)
C8 = ShapeDescriptor.from_tag((2, 17, 3, 2), "nChw8c")
OI = ShapeDescriptor.from_tag((17, 6, 3, 3), "OIhw4i16o2i")

blocked_descriptors = tagged_descriptors().filter(lambda d: d.inner_blocks and d.allocLength() < 5000)


def values_for(d, seed=0):
    """Random values of the shape and element type of `d`, no zeros."""
    rng = np.random.default_rng(seed)
    if d.dtype == "bool":
        return rng.integers(0, 2, d.shape).astype(bool)
    if d.dtype != "bfloat16" and d.dtype.kind in "iu":
        return rng.integers(1, 100, d.shape).astype(d.dtype)
    return (rng.standard_normal(d.shape) * 3 + 0.01).astype(np.float32 if d.dtype == "bfloat16" else d.dtype)


def dirty(d, values=None):
    """Make an array of `values` on memory in which all other bits are set: NaN for floats, -1 or the largest for integers."""
    memory = bytearray(b"\xff" * (d.allocLength() * d.itemsize))
    x = NdArray(d, memory)
    x[...] = values_for(d) if values is None else values
    return x, memory


def outside(d):
    """Offsets of all cells that hold no element."""
    return np.setdiff1d(np.arange(d.allocLength()), [d.offset_of(i) for i in all_indices(d.shape)])


def cells(memory, d):
    """Copy all cells of a buffer as unsigned integers."""
    return np.frombuffer(bytes(memory), f"u{d.itemsize}")


def same(found, expected):
    """Whether two results agree in type, shape and every bit, NaNs being alike."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype.name == "bfloat16" == expected.dtype.name:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    alike = found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
    return alike and np.array_equal(np.signbit(found), np.signbit(expected)) if found.dtype.kind == "f" and not np.isnan(expected).any() else alike


def shapes_like(shape):
    """Draw a descriptor of this shape: another layout, another padding."""
    return tagged_descriptors(NUMPY_DTYPES, shape)


# Views


def test_d1_plain_axes_leave_their_padding_behind():
    """D1: Axes that become plain leave their padding behind."""
    part = ShapeDescriptor.from_tag((6, 2), "AB4a2b", paddings=(4, 0)).subarray((slice(None), 0))
    assert (part.shape, part.strides, part.paddings, part.inner_blocks) == ((6,), (2,), (0,), ())


def test_d1_any_two_elements_are_evenly_spaced():
    """D1: a slice of a blocked axis whose elements are evenly spaced in memory is a view."""
    x = nd.reorder(np.arange(8, dtype=np.float32).reshape(2, 4), "Ba3b")
    part = x[:, ::-2]
    assert (part.to_numpy().tolist(), part.buffer is x.buffer) == ([[3, 1], [7, 5]], True)
    with pytest.raises(UnsupportedLayoutError, match="reorder"):
        x[:, 1:]


@given(blocked_descriptors, st.data())
def test_d1_parts_are_views(d, data):
    """D1: Basic indexing of a blocked array is a view wherever a descriptor can say it."""
    x, memory = dirty(d)
    values = x.to_numpy()
    key = data.draw(keys_of(d.shape))
    where = np.array([d.offset_of(i) for i in all_indices(d.shape)]).reshape(d.shape)[key]
    spaced = [np.diff(where, axis=axis) for axis in range(where.ndim)]
    try:
        part = x[key]
    except UnsupportedLayoutError:
        assert not all((steps == steps.flat[0]).all() for steps in spaced if steps.size), "strides alone describe it"
        return
    expected = values[key]
    assert same(part, expected if isinstance(part, NdArray) or d.dtype != "bfloat16" else np.float32(expected))
    if isinstance(part, NdArray) and part.size:
        assert part.buffer is x.buffer
        before = cells(memory, d)
        part[...] = 1
        values[key] = 1
        assert same(x.to_numpy(), values)
        assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])


@pytest.mark.parametrize(
    ("d", "key", "shape", "strides", "blocks"),
    [
        (C8, np.s_[1], (17, 3, 2), (48, 16, 8), ((0, 8),)),
        (C8, np.s_[:, 8:16], (2, 8, 3, 2), (144, 48, 16, 8), ((1, 8),)),
        (C8, np.s_[:, 8:, 1], (2, 9, 2), (144, 48, 8), ((1, 8),)),
        (C8, np.s_[:, :, ::2, ::-1], (2, 17, 2, 2), (144, 48, 32, -8), ((1, 8),)),
        (C8, np.s_[:, 11], (2, 3, 2), (144, 16, 8), ()),
        (C8, np.s_[:, -1], (2, 3, 2), (144, 16, 8), ()),
        (C8, np.s_[:, 2:5], (2, 3, 3, 2), (144, 1, 16, 8), ()),
        (C8, np.s_[:, 7:2:-2], (2, 3, 3, 2), (144, -2, 16, 8), ()),
        (C8, np.s_[:, 3::8], (2, 2, 3, 2), (144, 48, 16, 8), ()),
        (C8, np.s_[:, ::-16], (2, 2, 3, 2), (144, -96, 16, 8), ()),
        (OI, np.s_[3, 5], (3, 3), (384, 128), ()),
        (OI, np.s_[:16, 5], (16, 3, 3), (2, 384, 128), ()),
        (OI, np.s_[1:2, :2, 0, 0], (1, 2), (1152, 1), ()),
        (OI, np.s_[:, :, 1], (17, 6, 3), (1152, 1152, 128), ((1, 4), (0, 16), (1, 2))),
        (ShapeDescriptor.from_tag((17, 8, 3), "ABc8b4a"), np.s_[:, 2], (17, 3), (96, 32), ((0, 4),)),
        (ShapeDescriptor.from_tag((17, 8, 3), "ABc8b4a"), np.s_[5], (8, 3), (4, 32), ()),
        (ShapeDescriptor.from_tag((4, 16), "aB8b"), np.s_[:, 3:11:8], (4, 1), (16, 8), ()),
        (ShapeDescriptor.from_tag((8, 3), "AB4a1b"), np.s_[:, 1], (8,), (12,), ((0, 4),)),
        (OI, np.s_[:, :0], (17, 0, 3, 3), OI.strides, OI.inner_blocks),
    ],
)
def test_d1_what_a_descriptor_can_say(d, key, shape, strides, blocks):
    """D1: an index or a slice of a blocked axis whose elements are evenly spaced, if the blocks that remain are one run, or strides alone do."""
    part = d.subarray(key)
    assert (part.shape, part.strides, part.inner_blocks) == (shape, strides, blocks)
    where = np.array([d.offset_of(i) for i in all_indices(d.shape)]).reshape(d.shape)[key]
    assert [part.offset_of(i) for i in all_indices(part.shape)] == list(where.ravel())


def test_d1_axes_that_become_plain_leave_their_padding_behind():
    """D1: Axes that become plain leave their padding behind; the others keep theirs."""
    d = ShapeDescriptor.from_tag((2, 5, 3, 2), "nChw8c", paddings=(0, 8, 2, 1), padding_offsets=(0, 8, 1, 1))
    assert d.subarray(np.s_[:, 3]).paddings == (0, 2, 1)
    assert d.subarray(np.s_[:, :2]).paddings == (0, 0, 2, 1)
    assert d.subarray(np.s_[:, :, 1]).paddings == (0, 8, 1)
    assert d.subarray(np.s_[:, 3]).offset == d.offset_of((0, 3, 0, 0))


@pytest.mark.parametrize(
    ("d", "key"), [(C8, np.s_[:, 3:12]), (C8, np.s_[:, ::-1]), (C8, np.s_[:, ::3]), (C8, np.s_[:, 1:]), (OI, np.s_[3]), (OI, np.s_[:, 2]), (OI, np.s_[:20, :3])]
)
def test_d2_refused(d, key):
    """D2: Else it is refused with `UnsupportedLayoutError`, which names `reorder`; it is never a copy."""
    x = NdArray(d)
    with pytest.raises(UnsupportedLayoutError, match=r"axis \d is blocked by \d+.*reorder"):
        x[key]


@given(blocked_descriptors, st.data())
def test_d3_assignment(d, data):
    """D3: `x[key] = y` writes exactly the selected elements for every basic key, whether that is a view or not."""
    x, memory = dirty(d)
    values, before = x.to_numpy(), cells(memory, d)
    key = data.draw(keys_of(d.shape))
    shape = values[key].shape
    new = np.ones(shape, bool) if d.dtype == "bool" else numbered(shape, np.int64) % 100
    x[key] = new.astype(np.float32) if d.dtype == "bfloat16" else new.astype(values.dtype)
    values[key] = new
    assert same(x.to_numpy(), values)
    assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])


def test_d3_assignment_that_fails_writes_nothing():
    """D3: `x[key] = y` writes exactly the selected elements: none when the value or the key does not fit."""
    x, memory = dirty(C8)
    before = bytes(memory)
    for key, value, error in (
        (np.s_[:, 3:12], np.zeros((2, 8, 3, 2)), LayoutError), (np.s_[:, 3:12], "a", nd.Nd4jLikeError), (np.s_[:, 3:12], 1j, nd.DTypeError),
        (np.s_[:, 3:12, 5], 0, OutOfRangeError), (np.s_[:, 3:12, 0, 0, 0], 0, OutOfRangeError), (np.s_[:, 17], 0, OutOfRangeError),
        (np.s_[:, "a"], 0, OutOfRangeError),
    ):  # fmt: skip
        with pytest.raises(error):
            x[key] = value
    locked = NdArray(C8, bytes(memory))
    with pytest.raises(LayoutError, match="read-only"):
        locked[:, 3:12] = 1
    assert bytes(memory) == before


@given(descriptors)
@example(ShapeDescriptor.from_tag((2, 16), "aB8b", paddings=(0, 1)))
def test_d4_exploded(d):
    """D4: `exploded()` is the plain view: outer blocks in the order of the axes, then the inner blocks, outermost first."""
    x, _ = dirty(d)
    view = x.exploded()
    assert view.buffer is x.buffer
    assert not view.descriptor.inner_blocks
    products = [1] * d.rank
    for axis, size in d.inner_blocks:
        products[axis] *= size
    assert view.shape == (*(-(-n // b) for n, b in zip(d.shape, products, strict=True)), *(size for _, size in d.inner_blocks))
    for index in all_indices(d.shape):
        rest, digits = list(index), []
        for axis, size in reversed(d.inner_blocks):
            digits.insert(0, rest[axis] % size)
            rest[axis] //= size
        assert view.descriptor.offset_of((*rest, *digits)) == d.offset_of(index)
    # Whole blocks of padding stay padding: of the same cells, the hosting buffers are one.
    assert view.descriptor.allocLength() == d.allocLength()
    assert view.check_padding().cells <= x.check_padding().cells
    if not d.inner_blocks:
        assert view.descriptor == d


def test_d4_exploded_shows_the_tail():
    """D4: The tail of the last block is visible; a view that shows a writable tail makes the padding one that is looked at."""
    x = NdArray(C8)
    x[...] = 1
    seen = x.exploded().to_numpy(copy=False)
    assert seen.shape == (2, 3, 3, 2, 8)
    assert seen.flags.c_contiguous
    assert seen[:, 2, :, :, 1:].sum() == 0
    assert seen.sum() == x.size
    assert x.buffer.shared
    seen[0, 2, 0, 0, 1] = np.nan
    assert x.check_padding().kinds == ("tail",)
    whole = NdArray(ShapeDescriptor.from_tag((1, 16, 2, 2), "nChw8c"))
    assert whole.exploded().shape == (1, 2, 2, 2, 8)
    assert not whole.buffer.shared


def test_d4_more_axes_than_there_can_be():
    """D4: `exploded()` is the plain view of more axes, at most 32."""
    d = ShapeDescriptor("int8", "c", (1,) * 32, inner_blocks=((0, 2),))
    with pytest.raises(LayoutError, match="32"):
        d.exploded()


# Padding


def kinds_of(d):
    """Offset to kind of every padding cell, cell by cell: the definition."""
    found = {}
    low = d.hosting().offset if d.length else 0
    hosting = d.hosting()
    for position in all_indices(d.padded_shape if d.length else (0,)):
        index = tuple(p - b for p, b in zip(position, d.padding_offsets, strict=True))
        if not all(0 <= i < n for i, n in zip(index, d.shape, strict=True)):
            tail = any(p >= n + pad for p, n, pad in zip(position, d.shape, d.paddings, strict=True))
            found[hosting.offset_of(position)] = ("tail" if tail else "halo", index)
    assert low >= 0
    return found


@given(descriptors.filter(lambda d: d.allocLength() < 20_000))
def test_d5_tail_and_halo(d):
    """D5: A tail cell is one that rounding up to whole blocks adds, on any axis; every other padding cell is halo."""
    expected = kinds_of(d)
    x, memory = dirty(d)
    before = cells(memory, d)
    report = x.check_padding()
    assert dict(zip(report.offsets.tolist(), zip(report.kinds, report.indices, strict=True), strict=True)) == expected
    assert report.offsets.tolist() == sorted(expected)
    assert report.cells == len(expected)
    for kind in ("halo", "tail"):
        part = x.check_padding(where=kind)
        assert part.offsets.tolist() == sorted(offset for offset, (k, _) in expected.items() if k == kind)
        assert set(part.kinds) <= {kind}
        assert part.cells == len(part)
        assert part.where == kind
    x.fill_padding(0, where="tail")
    assert x.check_padding(where="tail")
    assert len(x.check_padding(where="halo")) == sum(k == "halo" for k, _ in expected.values())
    x.fill_padding(1, where="halo")
    assert x.check_padding(1, where="halo")
    assert x.check_padding(where="tail")
    inside = np.setdiff1d(np.arange(d.allocLength()), sorted(expected))
    assert np.array_equal(cells(memory, d)[inside], before[inside])


def test_d5_the_report_names_the_kind():
    """D5: `where="all"`, `"halo"` or `"tail"`, and the report says which kind each dirty cell is."""
    x = NdArray(ShapeDescriptor.from_tag((1, 3, 1, 2), "nChw4c", "int8", (0, 0, 0, 1)))
    x.hosting_array()[0, 2, 0, 2] = 5
    x.hosting_array()[0, 3, 0, 2] = 6
    assert str(x.check_padding()) == "2 of 6 padding cells do not hold 0: (0, 2, 0, 2) at offset 10 holds 5 (halo), (0, 3, 0, 2) at offset 11 holds 6 (tail)"
    assert str(x.check_padding(where="tail")) == "1 of 3 tail cells do not hold 0: (0, 3, 0, 2) at offset 11 holds 6 (tail)"
    x.fill_padding(0)
    assert str(x.check_padding(where="halo")) == "all 3 halo cells hold 0"
    for call in (x.check_padding, x.fill_padding):
        with pytest.raises(LayoutError, match="'all', 'halo' or 'tail'"):
            call(0, where="inside")


def test_d5_what_the_buffer_remembers_of_two_kinds():
    """D5: what is written to all cells of one kind is remembered of that kind; D9: halo and tails of results hold what those of the array do."""
    x = NdArray(ShapeDescriptor.from_tag((1, 3, 1, 2), "nChw4c", "int8", (0, 0, 0, 1)))
    x.fill_padding(-128, where="halo")
    assert (x + x).check_padding(-128, where="halo")
    assert (x + x).check_padding(0, where="tail")
    x.fill_padding(-3, where="tail")
    for y in (x + x, x.copy() + 1, pickle.loads(pickle.dumps(x)) + 1):
        assert y.check_padding(-128, where="halo")
        assert y.check_padding(-3, where="tail")
    x.fill_padding(-128, where="tail")
    assert (x + x).check_padding(-128)
    plain = nd.create((2, 2), dtype="int8", paddings=(1, 1))
    plain.fill_padding(7, where="tail")
    assert plain.check_padding(0)
    plain.fill_padding(7, where="halo")
    assert (plain + plain).check_padding(7)


def test_d5_a_part_of_a_kind():
    """D5: a view has a part of the padding: the rest may hold something else, and nothing is remembered."""
    x = NdArray(ShapeDescriptor.from_tag((2, 3, 1, 2), "nChw4c", "int8", (0, 0, 0, 1)))
    x[1].fill_padding(5, where="tail")
    assert x.check_padding(5, where="tail").offsets.tolist() == [3, 7, 11]
    assert (x + x).check_padding(0)
    x.fill_padding(5, where="tail")
    assert (x + x).check_padding(5, where="tail")
    assert (x + x).check_padding(0, where="halo")


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("value", [None, 3])
def test_d5_a_block_with_halo(value, first):
    """D5: the last block has halo before its tail, both are tail of a view: nothing is remembered of the halo after a reorder; D9: of results it is 0 then."""
    x = NdArray(ShapeDescriptor.from_tag((1, 6, 1, 2), "nChw4c", "int8", (0, 4, 0, 0)))
    x.fill_padding(5, where="halo")
    x.fill_padding(3, where="tail")
    nd.reorder(np.ones((1, 6 - first, 1, 2), np.int8), out=x[:, first:], padding_value=value)
    y = x + x
    assert y.check_padding(0, where="halo")
    assert y.check_padding(3, where="tail")
    assert x.check_padding(3, where="tail")
    assert x.check_padding(5, where="halo").offsets.tolist() == [10, 11, 14, 15]


@pytest.mark.parametrize("tag", ["ab", "aB4096b"])
def test_d6_padding_cells_alone(tag):
    """D6: Both touch padding cells alone: the elements may lie where the process may not read."""
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 6 * page)
    anchor = ctypes.c_char.from_buffer(area)
    start = ctypes.addressof(anchor)
    d = ShapeDescriptor.from_tag((1, page), tag.replace("4096", str(page)), "int8", (2, 0), (1, 0))
    first = page - (start % page) if start % page else 0
    x = NdArray(d, memoryview(area)[first : first + 3 * page])
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert libc.mprotect(start + first + page, page, 0) == 0
    try:
        x.fill_padding(3)
        assert x.check_padding(3)
        assert len(x.check_padding(4)) == 2 * page
    finally:
        assert libc.mprotect(start + first + page, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert x.to_numpy().sum() == 0


@given(descriptors, st.sampled_from(("start", "end")))
def test_d6_nothing_beyond_the_buffer(d, side):
    """D6: Both touch padding cells alone, right up to the ends of the buffer."""
    x = NdArray(d, guarded(d.allocLength() * d.itemsize, side))
    x.fill_padding(1)
    assert x.check_padding(1)
    assert x.check_padding().cells == len(x.check_padding())


def test_d6_memory():
    """D6: only dirty cells cost memory."""
    x = NdArray(ShapeDescriptor.from_tag((4, 67, 128, 128), "nChw16c", paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1)))
    x.check_padding()
    tracemalloc.start()
    assert x.check_padding().cells == 5408000 - x.size
    x.fill_padding(1)
    x.fill_padding(0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@given(descriptors.filter(lambda d: d.allocLength() < 20_000), st.data())
def test_d7_padding_of_views(d, data):
    """D7: The padding of a view is that of its axes taken whole, for blocked, padded and permuted arrays alike."""
    x, memory = dirty(d)
    axes = tuple(data.draw(st.permutations(range(d.rank))))
    turned = x.permute(axes)
    assert [tuple(i[a] for a in axes) for i in x.check_padding().indices] == list(turned.check_padding().indices)
    key = tuple(slice(None) if data.draw(st.booleans()) else slice(0, 1) if d.shape[a] > 1 else slice(None) for a in range(d.rank))
    try:
        part = x[(*key, Ellipsis)]
    except UnsupportedLayoutError:
        return
    expected = kinds_of(part.descriptor)
    before = cells(memory, d)
    part.fill_padding(0)
    after = cells(memory, d)
    touched = np.nonzero(before != after)[0].tolist()
    assert touched == sorted(expected)
    # Never an element of the whole array.
    assert not {d.offset_of(i) for i in all_indices(d.shape)} & set(touched)


# Element-wise operations


@given(descriptors, st.data())
def test_d8_d9_binary_operations(d, data):
    """D8, D9: A ufunc gives the bits and the element type that NumPy gives on `to_numpy()`; the layout of the first array, clean padding."""
    other = data.draw(shapes_like(d.shape) if d.rank else padded_descriptors(NUMPY_DTYPES).filter(lambda e: e.rank == 0))
    x, mine = dirty(d)
    y, theirs = dirty(other, values_for(other, 1))
    untouched = bytes(mine), bytes(theirs)
    ufunc = data.draw(st.sampled_from(BINARY))
    a, b = x.to_numpy(), y.to_numpy()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, numpys in (
            ((x, y), (a, b)),
            ((x, b), (a, b)),
            ((b, x), (b, a)),
            ((x, x), (a, a)),
            ((x, 3), (a, 3)),
            ((x, b.ravel()[:1]), (a, b.ravel()[:1])),
        ):
            try:
                expected = ufunc(*numpys)
            except TypeError:
                with pytest.raises(TypeError):
                    ufunc(*ours)
                continue
            found = ufunc(*ours)
            assert same(found, expected)
            if expected.ndim:
                assert isinstance(found, NdArray)
                assert found.check_padding()
                if expected.shape == x.shape:
                    assert (found.descriptor.strides, found.descriptor.paddings, found.descriptor.inner_blocks) == (d.strides, d.paddings, d.inner_blocks)
    assert (bytes(mine), bytes(theirs)) == untouched


@given(descriptors, st.sampled_from(UNARY))
def test_d8_unary_operations(d, ufunc):
    """D8: A ufunc gives for each element the bits and the element type that NumPy gives on `to_numpy()`."""
    x, _ = dirty(d)
    with np.errstate(all="ignore"):
        try:
            expected = ufunc(x.to_numpy())
        except TypeError:
            with pytest.raises(TypeError):
                ufunc(x)
            return
        assert same(ufunc(x), expected)


def test_d9_padding_of_a_part_is_not_that_of_all():
    """D9: Their padding holds what that array's padding is known to hold if the element type is the same, else 0: a part that was filled tells of no other."""
    x = nd.create((2, 3, 4), dtype="int8", paddings=(0, 1, 1))
    x[0].fill_padding(7)
    assert x[0].check_padding(7)
    assert x[1].check_padding(0)
    assert (x + x).check_padding(0)
    x.fill_padding(7)
    assert (x + x).check_padding(7)


@pytest.mark.parametrize("ufunc", [np.negative, np.isnan, np.isinf, np.isfinite, np.signbit])
@pytest.mark.parametrize("pitch", [1, 2, 4, 8, 11])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_d8_elements_apart(dtype, pitch, ufunc):
    """D8: A ufunc gives for each element the bits that it gives on dense elements, with gaps between them too."""
    values = np.arange(40).reshape(40, 1).astype(dtype) - 7
    if dtype != "int32":
        values[[3, 8, 33, 39], 0] = np.nan, np.inf, -np.inf, -0.0
    x = nd.create((40, 1), dtype=dtype, paddings=(0, pitch - 1))
    x[...] = values
    x.fill_padding(9)
    assert same(ufunc(x), ufunc(values))
    mask = np.arange(40).reshape(40, 1) % 3 == 0
    expected = ufunc(values, out=np.zeros((40, 1), ufunc(values).dtype), where=mask)
    out = nd.create((40, 1), dtype=expected.dtype, paddings=(0, pitch - 1))
    assert same(ufunc(x, out=out, where=mask), expected)


@given(st.lists(st.sampled_from((1, 2, 3, 17, 20)), min_size=1, max_size=3).map(tuple), st.data())
def test_d8_elements_apart_in_any_layout(shape, data):
    """D8: A ufunc gives for each element the bits that it gives on dense elements: where NumPy's loops run along gaps, out= lies otherwise, axes are turned."""
    ufunc = data.draw(st.sampled_from((np.negative, np.isnan, np.isinf, np.isfinite, np.signbit)))
    dtype = data.draw(st.sampled_from(("float32", "float64")))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.0], shape).astype(dtype)
    expected = ufunc(values)
    x = nd.NdArray(data.draw(tagged_descriptors((dtype,), shape)))
    x[...] = values
    flips = tuple(slice(None, None, data.draw(st.sampled_from((1, 1, -1)))) for _ in shape)
    for given_array, wanted in ((x, expected), (x.exploded().T, ufunc(x.exploded().to_numpy().T.copy()))):
        assert same(ufunc(given_array), wanted)
    if not x.descriptor.inner_blocks:
        assert same(ufunc(x[flips]), expected[flips])
    out = nd.NdArray(data.draw(tagged_descriptors((str(expected.dtype),), shape)))
    assert ufunc(x, out=out) is out
    assert same(out.to_numpy(), expected)
    theirs = np.zeros([2 * n for n in shape], expected.dtype)[tuple(slice(None, None, 2) for _ in shape)]
    assert ufunc(x, out=theirs) is theirs
    assert same(theirs, expected)
    mask = nd.NdArray(data.draw(tagged_descriptors(("bool",), shape)))
    mask[...] = rng.random(shape) < 0.5
    out[...] = 1
    assert same(ufunc(x, out=out, where=mask).to_numpy(), np.where(mask.to_numpy(), expected, np.ones_like(expected)))
    assert out.check_padding()


@given(st.one_of(padded_descriptors(NUMPY_DTYPES), tagged_descriptors(NUMPY_DTYPES)).filter(lambda d: d.rank), st.data())
def test_d8_masks_outputs_broadcasts(d, data):
    """D8: mixed, broadcast, masked with `where=`, with one output or several."""
    x, _ = dirty(d)
    values = x.to_numpy()
    mask = np.random.default_rng(2).integers(0, 2, d.shape).astype(bool)
    row = np.ones(d.shape[-1:], values.dtype)
    column = np.ones((*d.shape[:1], *(1,) * (d.rank - 1)), values.dtype)
    layout = data.draw(shapes_like(d.shape)).astype(d.dtype)
    given_mask = nd.NdArray(layout.astype("bool"))
    given_mask[...] = mask
    for where in (mask, given_mask, mask[:1]):
        found, expected = np.add(x, row, where=where), np.add(values, row, where=np.asarray(where), out=np.zeros_like(values + row))
        assert same(found, expected)
        out, memory = dirty(layout, values)
        before = cells(memory, layout)
        assert np.add(x, row, out=out, where=where) is out
        assert same(out.to_numpy(), np.add(values, row, out=values.copy(), where=np.asarray(where)))
        assert np.array_equal(cells(memory, layout)[outside(layout)], before[outside(layout)])
    assert same(np.add(x, column), values + column)
    for part in (row, column):
        given, _ = dirty(ShapeDescriptor.paddedBufferDescriptor(values.dtype, "c", part.shape, (2,) * part.ndim, (1,) * part.ndim), part)
        for ours, theirs in ((x + given, values + part), (given + x, part + values)):
            assert same(ours, theirs)
            assert part.shape == d.shape or ours.descriptor == (x + part).descriptor
    assert same(np.add(column, x[None]), column + values[None])
    if values.dtype.kind in "iu":
        for found, expected in zip(np.divmod(x, 3), np.divmod(values, 3), strict=True):
            assert same(found, expected)
        quotient, _ = dirty(layout)
        first, second = np.divmod(x, values.dtype.type(3), out=(quotient, None))
        assert first is quotient
        assert same(second, values % 3)
        assert same(quotient.to_numpy(), values // 3)
        taller = np.zeros((2, *d.shape), values.dtype)
        first, second = np.divmod(x, values.dtype.type(3), out=(taller, None))
        assert first is taller
        assert same(second, np.stack([values % 3, values % 3]))
    if values.dtype.kind == "f":
        for found, expected in zip(np.frexp(x), np.frexp(values), strict=True):
            assert same(found, expected)
        assert same(np.add(x, x, dtype=np.float64), np.add(values, values, dtype=np.float64))


def test_d8_scalars_are_computed_once():
    """D8: what NumPy gives on `to_numpy()`, masked with `where=`: warnings and errors too."""
    x = nd.zeros(())
    with np.errstate(all="raise"):
        assert np.divide(x, x, where=np.array([False, False])).shape == (2,)
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        assert np.isinf(np.log(x, where=np.array([True, True])).to_numpy()).all()
    assert len(caught) == 1


def test_d8_bfloat16():
    """D8: the bits and the element type that NumPy gives on `to_numpy()`: bfloat16 is the type of ml_dtypes."""
    pytest.importorskip("ml_dtypes")
    x, _ = dirty(C8.astype("bfloat16"))
    y = x * x + x
    assert y.dtype == nd.bfloat16
    assert y.descriptor == x.descriptor
    assert same(y.to_numpy(), x.to_numpy() * x.to_numpy() + x.to_numpy())
    assert y.check_padding()
    assert same((x > 0).to_numpy(), x.to_numpy() > 0)


@pytest.mark.parametrize("tag", ["ABC2a2b2c", "ABC2c2b2a", "aBC2b2c", "CBA2b2a2c", "ABc2a4b2a"])
def test_d5_a_tail_of_one_axis_in_the_halo_of_another(tag):
    """D5: A tail cell is one that rounding up to whole blocks adds, on any axis; every other padding cell is halo."""
    for shape, paddings in itertools.product([(3, 1, 2), (1, 3, 2), (2, 1, 3)], [(0, 1, 0), (1, 0, 0), (0, 0, 1), (1, 1, 1), (1, 2, 0)]):
        d = ShapeDescriptor.from_tag(shape, tag, "int8", paddings)
        kinds = {}
        for cell in itertools.product(*map(range, d.padded_shape)):
            if any(i >= n + p for i, n, p in zip(cell, shape, paddings, strict=True)):
                kinds[cell] = "tail"
            elif any(i >= n for i, n in zip(cell, shape, strict=True)):
                kinds[cell] = "halo"
        x = NdArray(d)
        x.fill_padding(1)
        report = x.check_padding(0)
        assert dict(zip(report.indices, report.kinds, strict=True)) == kinds
        for kind in ("halo", "tail"):
            x = NdArray(d)
            x.fill_padding(1, kind)
            assert set(x.check_padding(0).indices) == {cell for cell, each in kinds.items() if each == kind}


def test_d6_no_memory_has_no_padding():
    """D6: Both touch padding cells alone: an array without elements has none, whatever padding is declared."""
    for shape in ((3, 0), (0, 3), (0, 0)):
        x = nd.create(shape, paddings=(2, 4), padding_offsets=(1, 1))
        x.fill_padding(7)
        assert x.check_padding(7).cells == x.check_padding(0).cells == 0
        assert x.check_padding(0)


def test_d9_layout_of_results():
    """D9: New results have the layout of the first NdArray that has their shape, where memory can be laid out so, else they are dense."""
    plain, padded = nd.ones((2, 17, 3, 2)), nd.create((2, 17, 3, 2), paddings=(0, 0, 1, 1))
    x = NdArray(C8)
    assert (x + plain).descriptor == C8
    assert (plain + x).descriptor == plain.descriptor
    assert (padded + x).descriptor == padded.descriptor
    assert (np.ones(x.shape, np.float32) + x).descriptor == C8
    assert (x[0, 0, 0] + padded).descriptor == padded.descriptor
    assert (x > 0).descriptor == C8.astype("bool")
    whole = NdArray(ShapeDescriptor.from_tag((2, 16, 3, 2), "nChw8c"))
    assert (whole + whole).descriptor == whole.descriptor
    for part in (plain[:, 1:], plain[::-1], np.broadcast_to(plain[:1], plain.shape), x[:, 8:], whole[:, 8:]):
        assert (part + 1).descriptor == ShapeDescriptor("float32", "c", part.shape)
    nhwc = nd.ones((1, 4, 5, 3)).permute((0, 3, 1, 2))
    assert (nhwc + 1).descriptor.tag == "acdb"
    grown = x[:1] + x
    assert grown.shape == x.shape
    assert grown.descriptor == C8
    assert (nd.ones((3, 1)) + nd.ones(4)).descriptor == ShapeDescriptor("float32", "c", (3, 4))


@pytest.mark.parametrize("shape", [(2, 3), (3, 1, 2), (2, 2, 3)])
def test_d8_where_numpy_writes_in_runs(shape):
    """D8: A ufunc gives the bits that NumPy gives: where its loop is said to write elements side by side, it does."""

    def laid(extents, order):
        host = np.zeros([extents[axis] + (axis == order[-1]) for axis in order], np.float32)
        return host[..., : extents[order[-1]]].transpose(np.argsort(order))

    axes, sure = range(len(shape)), 0
    for target_order, order, whole, turned in itertools.product(
        itertools.permutations(axes), itertools.permutations(axes), itertools.product((True, False), repeat=len(shape)), (False, True)
    ):
        target = laid(shape, target_order)
        read = laid([n if keep else 1 for n, keep in zip(shape, whole, strict=True)], order)
        read = read[0] if not whole[0] else read
        target = target[::-1] if turned else target
        side_by_side = all(out.strides == (4,) or out.size == 1 for _, out in np.nditer([read, target], ["external_loop"], [["readonly"], ["writeonly"]]))
        assert side_by_side or not writes_in_runs(read, target)
        if order == target_order and all(whole) and not turned and shape[order[-1]] > 1:
            assert writes_in_runs(read, target)
        sure += writes_in_runs(read, target) and target_order != tuple(axes)
    assert sure > 0
    assert writes_in_runs(np.float32(1), laid(shape, tuple(axes)[::-1]))


def test_d9_padding_of_results():
    """D9: Their padding holds what that array's padding is known to hold if the element type is the same, else 0."""
    for x in (NdArray(C8.astype("int8")), nd.create((2, 3), dtype="int8", paddings=(1, 2), padding_offsets=(1, 1))):
        x[...] = 5
        x.fill_padding(-128)
        assert np.maximum(x, 6).check_padding(-128)
        assert np.maximum(6, x).check_padding(-128)
        assert (x > 0).check_padding(False)
        assert (x + np.int32(1)).check_padding(0)
        x += 1
        assert x.check_padding(-128)
        assert all(y.check_padding(-128) for y in (*np.divmod(x, 2), np.add(x, 1, where=x > 0)))
        wrapped = NdArray(x.descriptor, bytearray(bytes(x.buffer)))
        assert wrapped.check_padding(-128)
        assert (wrapped + wrapped).check_padding(0)
        x.hosting_array()  # whoever has it may write what nobody remembers
        assert np.maximum(x, 6).check_padding(0)


@given(st.one_of(padded_descriptors(INTEGERS), tagged_descriptors(INTEGERS)), st.data())
def test_d10_in_place(d, data):
    """D10: `out=` and the in-place operators write elements only and return the object that they were given."""
    x, memory = dirty(d)
    values, before, same_object = x.to_numpy().copy(), cells(memory, d), x
    y, _ = dirty((data.draw(shapes_like(d.shape)) if d.rank else d).astype(d.dtype))
    for op in (operator.iadd, operator.isub, operator.imul, operator.iand, operator.ior, operator.ixor, operator.ifloordiv):
        with np.errstate(all="ignore"):
            x = op(x, y)
            values = op(values, y.to_numpy())
    x **= 2
    values **= 2
    assert x is same_object
    assert same(x.to_numpy(), values)
    assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])
    target = np.zeros(d.shape, d.dtype)
    assert np.add(x, y, out=target) is target
    assert np.array_equal(target, values + y.to_numpy())


def test_d10_one_of_two_results_is_given():
    """D10: `out=` writes elements only and returns the object that it was given; a result beside it has the shape that both are broadcast to."""
    x, out = nd.arange(3), nd.create((2, 3), paddings=(0, 2))
    whole, rest = np.divmod(x, 2, out=(None, out))
    assert rest is out
    assert whole.tolist() == [[0, 0, 1]] * 2
    assert rest.tolist() == [[0, 1, 0]] * 2
    assert out.check_padding()


def test_d10_refused():
    """D10: read-only arrays are refused, and so is what NumPy refuses: shapes and types that do not fit."""
    for d in (C8, ShapeDescriptor("float32", "c", C8.shape)):
        x, memory = dirty(d)
        locked = NdArray(d, bytes(memory))
        with pytest.raises(LayoutError, match="read-only"):
            locked += 1
        with pytest.raises(TypeError):
            np.add(x[:0], 1.5, out=nd.empty_like(x[:0], dtype="int8"))
        for out, error in ((NdArray(d.astype("int8")), TypeError), (nd.zeros((17, 3, 2)), ValueError), (NdArray(C8.subarray(0)), ValueError)):
            with pytest.raises(error):
                np.add(x, x, out=out)
        with pytest.raises(LayoutError, match="read-only"):
            np.add.at(locked, 0, 1)
        with pytest.raises(LayoutError, match="read-only"):
            np.sum(x, axis=0, out=NdArray(d.subarray(0), bytes(memory)))


@pytest.mark.parametrize("tag", ["abcd", "aBcd8b", "Abcd2a", "acdb"])
def test_d10_overlap(tag):
    """D10: overlapping ones are computed as if there were a copy."""
    x = NdArray(ShapeDescriptor.from_tag((5, 17, 3, 2), tag))
    x[...] = numbered(x.shape)
    values = numbered(x.shape)
    if tag != "Abcd2a":
        np.add(x[:-1], x[1:], out=x[1:])
        values[1:] = values[:-1] + values[1:]
    else:
        np.add(x[:2], x[2:4], out=x[2:4])
        values[2:4] += values[:2]
    assert same(x.to_numpy(), values)
    np.multiply(x.permute((0, 1, 2, 3)), 2, out=x)
    assert same(x.to_numpy(), values * 2)
    square = NdArray(ShapeDescriptor.from_tag((17, 17), "AB8a4b"))
    square[...] = numbered(square.shape)
    square += square.T
    assert same(square.to_numpy(), numbered(square.shape) + numbered(square.shape).T)
    flat = NdArray(ShapeDescriptor.from_tag((17,), "A8a"))
    flat[...] = numbered((17,))
    np.add(flat, nd.NdArray(flat.descriptor, flat.buffer), out=flat)
    assert same(flat.to_numpy(), 2 * numbered((17,)))


@pytest.mark.parametrize(("shape", "tag"), [((10,), "A8a"), ((19,), "A4a"), ((3, 17), "aB8b")])
def test_d10_overlap_across_blocks(shape, tag):
    """D10: overlapping ones are computed as if there were a copy: what one block writes is not read by another."""
    for ufunc in (np.add, np.multiply, np.subtract):
        x = NdArray(ShapeDescriptor.from_tag(shape, tag))
        x[...] = values = numbered(x.shape)
        cells = np.asarray(x.exploded()).reshape(-1)
        backwards = cells[x.size - 1 :: -1].reshape(shape)
        want = ufunc(values, backwards.copy())
        assert ufunc(x, backwards, out=x) is x
        assert same(x.to_numpy(), want)


@given(st.one_of(padded_descriptors(FLOATS), tagged_descriptors(FLOATS)), st.sampled_from(("nan", "huge")))
def test_d11_dirty_padding(d, dirt):
    """D11: dirty padding reaches no result and raises no floating-point warning."""
    x, memory = dirty(d, np.ones(d.shape))
    if dirt == "huge":
        np.frombuffer(memory, d.dtype)[outside(d)] = np.finfo(d.dtype).max
    with np.errstate(all="raise"):
        for found in (
            x + x,
            x * x,
            np.exp(x),
            x.sum(),
            x.mean(axis=-1) if d.rank else x.mean(),
            np.sqrt(x),
            x == x,
            np.concatenate([x[None], x[None]]),
            x.astype("float16"),
        ):
            assert np.isfinite(np.asarray(found)).all()
        x *= x
        np.subtract(x, 1, out=x)
    assert not np.asarray(x).any()


SHORT_ROWS = {
    "halo": lambda dtype: nd.create((2, 16, 14, 14), dtype=dtype, paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1)),
    "pitch": lambda dtype: nd.create((1, 20, 21, 24), dtype=dtype, paddings=(0, 0, 0, 8)),
    "front": lambda dtype: nd.create((6, 9, 100), dtype=dtype, order="f", paddings=(5, 1, 0), padding_offsets=(5, 0, 0)),
    "tail": lambda dtype: NdArray(ShapeDescriptor.from_tag((1, 35, 14, 14), "nChw8c", dtype)),
    "blocked": lambda dtype: NdArray(ShapeDescriptor.from_tag((1, 32, 14, 14), "nChw8c", dtype, (0, 8, 1, 3), (0, 8, 0, 2))),
}
ALONG = (
    lambda x, y: np.add(x, y),
    lambda x, y: np.multiply(x, y),
    lambda x, y: np.maximum(x, 1),
    lambda x, y: np.subtract(1, x),
    lambda x, y: np.true_divide(x, y),  # 0 / 0 in the padding
    lambda x, y: np.multiply(x, np.float32("inf")),
    lambda x, y: np.exp(x),
    lambda x, y: np.less(x, y),
    lambda x, y: np.logical_not(x),
    lambda x, y: np.subtract(x, y, out=y),
    lambda x, y: np.multiply(y, y, out=y),
    lambda x, y: np.add(y, 1, out=y),
    lambda x, y: np.minimum(y, x, out=x),
)


@pytest.mark.parametrize("layout", SHORT_ROWS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "float64"])
@pytest.mark.parametrize("fill", [0, 3])
def test_d21_padding_computed_along(layout, dtype, fill):
    """D21: the padding, computed along with the elements, raises no warning, and afterwards it is what D9 and D10 say."""
    for i, act in enumerate(ALONG):
        x, y = SHORT_ROWS[layout](dtype), SHORT_ROWS[layout](dtype)
        for array, low in ((x, 4), (y, 1)):
            array[...] = (np.arange(array.size).reshape(array.shape) % 5 + low).astype(dtype)
            array.fill_padding(fill)
        values = x.to_numpy(copy=True), y.to_numpy(copy=True)
        with np.errstate(all="raise"):
            found, expected = act(x, y), act(*values)
        assert same(found, expected), i
        assert found.descriptor == x.descriptor.astype(found.dtype), i
        assert found.check_padding(fill if found.dtype == x.dtype else 0), i
        for array, value in zip((x, y), values, strict=True):
            assert same(array, value), i
            assert array.check_padding(fill), i


@pytest.mark.parametrize("layout", SHORT_ROWS)
@pytest.mark.parametrize("fill", [0, 3])
@pytest.mark.parametrize("dirty", [False, True])
def test_d21_padding_looked_for(layout, fill, dirty):
    """D21: the padding holds one value, known or looked for, and afterwards it is what D9 and D10 say."""
    for i, act in enumerate(ALONG):
        x, y = SHORT_ROWS[layout]("int8"), SHORT_ROWS[layout]("int8")
        x.fill_padding(fill)
        y.fill_padding(fill)
        cells = np.frombuffer(y.buffer, np.int8)
        if dirty:
            cells[:] = np.arange(len(cells))
        for array in (x, y):
            array[...] = (np.arange(array.size).reshape(array.shape) % 5 + 1).astype("int8")
        mark = NdArray(y.descriptor)
        mark[...] = 1
        padding = np.frombuffer(mark.buffer, np.int8) == 0
        values, before = (x.to_numpy(copy=True), y.to_numpy(copy=True)), cells[padding]
        found, expected = act(x, y), act(*values)
        assert same(found, expected), i
        assert np.array_equal(cells[padding], before), i
        assert found is y or found.check_padding(fill if found.dtype == "int8" else 0), i


def test_d21_what_might_be_told():
    """D21: if nobody can tell: padding that others may write, or that warns, is left alone."""
    x, y = SHORT_ROWS["halo"]("float32"), SHORT_ROWS["halo"]("float32")
    memory = x.hosting_array().to_numpy()
    memory[0, 0, 0] = np.nan
    y[...] = 1
    before = memory.copy()
    with np.errstate(all="raise"):
        assert (x + y).check_padding(0)
        np.add(y, y, out=x)
    before[:, :, 1:-1, 1:-1] = 2
    assert np.array_equal(before, memory, equal_nan=True)
    with np.errstate(all="raise"):
        assert not np.log(y).to_numpy().any()
        y /= y
    assert y.check_padding(0)


def test_d15_ravel():
    """D15: Functions of NumPy: `ravel` is the method, a copy of blocked arrays."""
    x = nd.reorder(nd.arange(2 * 17 * 4).reshape(2, 17, 4), "aBc8b")
    assert np.array_equal(np.ravel(x).to_numpy(), np.arange(2 * 17 * 4))


@pytest.mark.parametrize("d", [C8, ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3), (0, 2))])
def test_d13_masks_are_not_lost(d):
    """D13: NumPy's classes that rank above its arrays give results their class, in operators and in ufuncs, from either side."""
    x = NdArray(d)
    x[...] = numbered(d.shape)
    values = x.to_numpy(copy=True)
    masked = np.ma.array(values + 1, mask=values % 2 == 0)
    for op in (operator.add, operator.sub, operator.truediv, operator.mul, operator.lt, operator.eq, operator.floordiv, np.add, np.maximum, np.less):
        for found, expected in ((op(x, masked), op(values, masked)), (op(masked, x), op(masked, values))):
            assert type(found) is np.ma.MaskedArray
            assert np.array_equal(found.mask, expected.mask)
            assert np.array_equal(found.compressed(), expected.compressed())
    out = nd.zeros(d.shape)
    assert np.add(x, masked, out=out) is out
    assert np.array_equal(out.to_numpy()[~masked.mask], (values + masked).compressed())


def test_d14_membership_and_indices():
    """D14: The operators are the ufuncs: `in` asks `==`; an integer without axes is an index, also of an array (D19)."""
    x = nd.arange(6, dtype="int32").reshape(2, 3)
    assert 5 in x
    assert "5" not in x
    assert None not in x
    assert 6 not in x
    assert [10, 20, 30][nd.asarray(np.array(2))] == 30
    assert x[nd.asarray(np.array(1)), 2] == 5
    for bad in (nd.ones(()), nd.ones(1, "int32")):
        with pytest.raises(nd.DTypeError, match="an index"):
            [1, 2][bad]


@pytest.mark.parametrize(("dtype", "value"), [("int8", 300), ("uint8", -1), ("int8", np.int64(300)), ("uint16", 2**70)])
def test_d5_values_that_no_cell_holds(dtype, value):
    """D5: `check_padding` and `fill_padding` take what an element can hold; no other value is written, wrapped or found."""
    x = nd.create((2, 2), dtype=dtype, paddings=(0, 1))
    for act in (x.fill_padding, x.check_padding):
        with pytest.raises(nd.DTypeError, match=f"is no {dtype}"):
            act(value)
    assert x.check_padding(0)


REDUCTIONS = ("sum", "prod", "mean", "std", "var", "min", "max", "argmin", "argmax", "all", "any")


@given(st.one_of(padded_descriptors(NUMPY_DTYPES), tagged_descriptors(NUMPY_DTYPES)), st.sampled_from(REDUCTIONS), st.data())
def test_d12_reductions(d, name, data):
    """D12: Reductions give what NumPy gives on `to_numpy()`, dense; they are methods too."""
    x, memory = dirty(d)
    before = bytes(memory)
    values = x.to_numpy()
    axis = data.draw(st.none() | st.integers(-d.rank, d.rank - 1)) if d.rank else None
    keepdims = data.draw(st.booleans())
    with np.errstate(all="ignore"):
        expected = getattr(values, name)(axis=axis, keepdims=keepdims)
        for found in (getattr(x, name)(axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims)):
            assert same(found, expected)
            assert isinstance(found, NdArray if isinstance(expected, np.ndarray) else np.generic)
            assert not isinstance(found, NdArray) or found.descriptor.is_contiguous
        if isinstance(expected, np.ndarray):
            out = NdArray(ShapeDescriptor.paddedBufferDescriptor(expected.dtype, "c", expected.shape, (1,) * expected.ndim))
            assert getattr(x, name)(axis=axis, keepdims=keepdims, out=out) is out
            # NumPy's mean of float16 rounds once more on its way through an output, whose strides tell it in which order to sum.
            into = np.empty([n + 1 for n in expected.shape], expected.dtype)[tuple(map(slice, expected.shape))]
            assert same(out.to_numpy(), getattr(values, name)(axis=axis, keepdims=keepdims, out=into))
            assert out.check_padding()
    assert bytes(memory) == before


@given(st.one_of(padded_descriptors(("float32", "int16", "uint8")), tagged_descriptors(("float32", "int16", "uint8"))).filter(lambda d: d.rank))
def test_d12_methods_of_ufuncs(d):
    """D12: `reduce`, `accumulate`, `reduceat`, `outer` and the generalized ufuncs give what NumPy gives; `at` writes through."""
    x, memory = dirty(d)
    values, before = x.to_numpy().copy(), cells(memory, d)
    mask = values > np.median(values)
    assert same(np.add.reduce(x, axis=0, where=mask, initial=5), np.add.reduce(values, axis=0, where=mask, initial=5))
    assert same(np.add.accumulate(x, axis=-1), np.add.accumulate(values, axis=-1))
    assert same(np.cumsum(x), np.cumsum(values))
    assert same(np.add.reduceat(x, [0], axis=0), np.add.reduceat(values, [0], axis=0))
    assert same(np.subtract.outer(x, x[(0,) * d.rank]), np.subtract.outer(values, values[(0,) * d.rank]))
    if d.rank > 1:
        turned = x.permute((*range(d.rank - 2), d.rank - 1, d.rank - 2))
        # The order of the sums goes by the strides: those of the operands themselves.
        assert same(x @ turned, x.to_numpy() @ turned.to_numpy())
        out = NdArray(ShapeDescriptor("float64", "c", (*d.shape[:-1], d.shape[-2])))
        assert np.matmul(x, turned, out=out) is out
        assert same(out.to_numpy(), np.matmul(x.to_numpy(), turned.to_numpy(), out=np.empty(out.shape)))
    np.add.at(x, 0, 1)
    np.add.at(values, 0, 1)
    assert same(x.to_numpy(), values)
    assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])


@pytest.mark.parametrize("layout", [ShapeDescriptor("bfloat16", "c", (40, 50)), ShapeDescriptor.from_tag((40, 50), "aB8b", "bfloat16", (1, 2), (1, 0))])
def test_d12_sums_of_bfloat16(layout):
    """D12: Sums, products, means and deviations of bfloat16 are those of float32, rounded once, unless a `dtype` or an `out` of another type is given."""
    x = NdArray(layout)
    x[...] = np.random.default_rng(0).standard_normal(x.shape) / 8 + 1
    wide, kind = x.astype("float32").to_numpy(), ml_dtypes.bfloat16
    for name in ("sum", "prod", "mean", "std", "var", "cumsum"):
        for axis in (None, 0, -1):
            expected = getattr(wide, name)(axis=axis).astype(kind)
            for found in (getattr(x, name)(axis=axis), getattr(np, name)(x, axis=axis), getattr(np, f"nan{name}")(x, axis=axis)):
                assert same(np.asarray(found), expected)
                assert isinstance(found, NdArray if expected.ndim else kind)
            out = NdArray(ShapeDescriptor("bfloat16", "c", expected.shape))
            assert getattr(np, name)(x, axis=axis, out=out) is out
            assert same(out.to_numpy(), expected)
    assert same(np.asarray(np.add.reduce(x, axis=1, keepdims=True)), wide.sum(axis=1, keepdims=True).astype(kind))
    assert same(np.asarray(np.multiply.accumulate(x, 1)), np.multiply.accumulate(wide, 1).astype(kind))
    ones = nd.ones((1000,)).astype("bfloat16")
    for call in (ones.sum, lambda: np.sum(a=ones), lambda: np.sum(ones, None, None), lambda: ones.sum(None, None), lambda: np.add.reduce(ones, 0, None)):
        assert call() == 1000
        assert isinstance(call(), kind)
    assert np.cumulative_sum(ones)[-1] == 1000
    assert np.average(ones) == np.average(ones, returned=False) == 1
    mean, weight = np.average(x, axis=0, returned=True)
    assert mean.shape == weight.shape == x.shape[1:]
    assert np.average(ones, weights=np.arange(1000.0)).dtype == np.average(ones, None, np.arange(1000.0)).dtype == np.float64
    for out in (nd.zeros((5, 50), "bfloat16"), nd.zeros((5, 50)), np.zeros((5, 50), np.float32)):
        with pytest.raises(ValueError, match="dimensions"):
            np.sum(x, axis=0, out=out)
        assert not np.any(out)
    with pytest.raises(TypeError, match="cast"):
        np.std(x, axis=0, out=np.zeros(50, np.int64))
    assert np.sum(x, axis=0, out=np.zeros(50, np.float32)).dtype == np.float32
    assert np.add.reduce(nd.ones((300,)).astype("bfloat16"), dtype=kind) == 256


class Wants:
    """A class with ufuncs and functions of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "mine"

    def __array_function__(self, func, types, args, kwargs):
        return "mine too"


class WantsNone:
    """A class that takes part in no ufunc."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "added"


def test_d13_scalars_foreign_types_foreign_classes():
    """D13: Results without axes are NumPy's scalars, others of unknown types NumPy's arrays; other classes get their turn."""
    x = NdArray(C8)
    x[...] = 2
    assert type(nd.full((), 3) + 1) is np.float32
    assert type(x.sum()) is np.float32
    assert type(np.add(x, 1j)) is np.ndarray
    assert np.add(x, 1j).dtype == np.complex64
    assert type(np.fft.fft(x[0, 0, 0])) is np.ndarray
    for each in (x, nd.ones((2, 3), paddings=(0, 1))):
        assert type(each.sum(0, dtype=complex)) is np.ndarray
    assert np.add(x, Wants()) == "mine"
    assert x + Wants() == "mine"
    assert np.concatenate([x, Wants()]) == "mine too"
    assert x + WantsNone() == "added"
    with pytest.raises(TypeError):
        WantsNone() - x
    assert type(np.ma.masked_array([1.0, 2.0], [0, 1]) + nd.ones(2)) is np.ma.MaskedArray


@given(st.one_of(padded_descriptors(("int16", "float32")), tagged_descriptors(("int16", "float32"))))
def test_d14_operators(d):
    """D14: The operators are the ufuncs; comparisons are element-wise."""
    x, _ = dirty(d)
    values = x.to_numpy().copy()
    ops = [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.lt,
        operator.le,
        operator.eq,
        operator.ne,
        operator.gt,
        operator.ge,
        divmod,
    ]
    if d.dtype.kind == "i":
        ops += [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.pow]
    two = values.dtype.type(2)
    with np.errstate(all="ignore"):
        for op in ops:
            for ours, theirs in (
                (op(x, two), op(values, two)),
                (op(two, x), op(two, values)),
                (op(x, np.full_like(values, 3)), op(values, np.full_like(values, 3))),
            ):
                for found, expected in zip(ours, theirs, strict=True) if op is divmod else ((ours, theirs),):
                    assert same(found, expected)
        for op in (operator.neg, operator.pos, operator.abs, *([operator.invert] if d.dtype.kind == "i" else [])):
            assert same(op(x), op(values))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint32", "bool"])
def test_d14_powers_are_those_of_the_operator(dtype):
    """D14: `**` those that NumPy's operator takes (`square` for 2, of floats `reciprocal` for -1 and `sqrt` for 0.5)."""
    for d in (ShapeDescriptor.from_tag((2, 17), "aB8b", dtype), ShapeDescriptor.paddedBufferDescriptor(dtype, "c", (2, 17), (1, 3), (0, 1))):
        x, memory = dirty(d)
        values, before = x.to_numpy().copy(), cells(memory, d)
        with np.errstate(all="ignore"):
            for exponent in (2, 0.5, 2.0, 3, 0, np.float32(0.5), *((-1, -1.0) if d.dtype.kind == "f" else ())):
                assert same(x**exponent, values**exponent), exponent
            for exponent in (2, 0.5, -1) if d.dtype.kind == "f" else () if dtype == "bool" else (2,):
                y = x
                y **= exponent
                values **= exponent
                assert y is x
                assert same(x.to_numpy(), values), exponent
        assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)], equal_nan=True)


def test_d14_no_hash_and_no_order_with_strangers():
    """D14: arrays have no hash. What cannot be compared is not equal."""
    x = nd.ones(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert (x == x).all()
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        pow(x, 2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        x + nd.ones(4)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


# Other protocols


@given(st.one_of(padded_descriptors(("float32", "int16")), tagged_descriptors(("float32", "int16"))).filter(lambda d: d.rank > 1))
def test_d15_functions(d):
    """D15: Functions of NumPy run on views, and their arrays come back as NdArrays."""
    x, memory = dirty(d)
    before = bytes(memory)
    values = x.to_numpy().copy()
    calls = [
        lambda a: np.concatenate([a, a], axis=1), lambda a: np.stack([a, a]), lambda a: np.pad(a, 1, constant_values=3), lambda a: np.where(a > 2, a, 0),
        lambda a: np.clip(a, 2, 50), lambda a: np.sort(a, axis=0), lambda a: np.tensordot(a, a, axes=((0,), (0,))), lambda a: np.round(a, 1),
        lambda a: np.take(a, [0], axis=1), lambda a: np.tile(a, 2), lambda a: np.count_nonzero(a), lambda a: np.median(a), lambda a: np.roll(a, 1, axis=0),
        lambda a: np.nan_to_num(a), lambda a: np.array_equal(a, a), lambda a: np.isclose(a, a), lambda a: np.diff(a, axis=0), lambda a: np.zeros_like(a),
        lambda a: np.full_like(a, 4, dtype="int8"), lambda a: np.zeros_like(a, np.float32, "C"), lambda a: np.full_like(a, 3, np.int8, "F"),
        lambda a: np.ones_like(a, None, "K", True, (4,)), lambda a: np.zeros_like(a, np.int16, "K", False),
        lambda a: np.ones_like(a, shape=(3,)), lambda a: np.zeros((2, 2), like=a) if a is x else np.zeros((2, 2)),
        lambda a: np.reshape(a, (-1,)), lambda a: np.transpose(a), lambda a: np.swapaxes(a, 0, 1), lambda a: np.moveaxis(a, 0, -1),
        lambda a: np.expand_dims(a, (0, -1)),
        lambda a: np.squeeze(np.expand_dims(a, 1), 1), lambda a: np.copy(a), lambda a: np.bincount(np.abs(np.reshape(a, -1)).astype("int64")),
        lambda a: np.shape(a), lambda a: np.ndim(a), lambda a: np.size(a), lambda a: np.average(a, axis=0), lambda a: np.unique(a),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        found, expected = call(x), call(values)
        assert same(found, expected) or np.asarray(expected).dtype == object, number
        assert isinstance(found, NdArray) == isinstance(expected, np.ndarray), number
    assert bytes(memory) == before


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_d20_overlapping_assignment(data):
    """D20: elements that are assigned to others of the same memory arrive as they were, whatever the steps; NumPy's `copyto`, too."""
    dtype = data.draw(st.sampled_from(("int32", "float32", "bfloat16")))
    step, other = data.draw(st.sampled_from((1, 2, 3, -1, -2))), data.draw(st.sampled_from((1, 2, 3, -1)))
    count, first, second = (data.draw(st.integers(low, 8)) for low in (1, 0, 0))
    here, there = (slice(None, None, sign) for sign in (1 if step > 0 else -1, 1 if other > 0 else -1))
    room = np.arange(48).astype("float32")
    x = nd.create((48,), dtype=dtype, paddings=(5,), padding_offsets=(2,))
    x[...] = room.astype("int32") if dtype == "int32" else room
    target, source = x[first : first + abs(step) * count : abs(step)][here], x[second : second + abs(other) * count : abs(other)][there]
    want, values = x.to_numpy(copy=True) if dtype != "bfloat16" else room, np.array(source.tolist())
    want[first : first + abs(step) * count : abs(step)][here] = values
    how = data.draw(st.integers(0, 2))
    if how == 0:
        target[...] = source
    elif how == 1 and dtype != "bfloat16":
        x[first : first + abs(step) * count : abs(step)][here][...] = source.to_numpy()
    else:
        np.copyto(target, source)
    assert x.tolist() == want.tolist()
    assert x.check_padding()


@pytest.mark.parametrize("row", [False, True])
@pytest.mark.parametrize("values", [lambda x: x, NdArray.to_numpy], ids=["ours", "numpy"])
@pytest.mark.parametrize(
    "assign",
    [
        lambda x, values: x.__setitem__(..., values),
        lambda x, values: np.copyto(x, values),
        lambda x, values: np.copyto(dst=x, src=values),
        lambda x, values: np.copyto(x, values, "no", where=nd.ones(5, dtype="bool")),
    ],
    ids=["setitem", "copyto", "keywords", "where"],
)
def test_d20_overlapping_assignment_small(assign, values, row):
    """D20: elements that are assigned to others of the same memory arrive as they were: small cases, by each way; NumPy drops axes of one, too."""
    for step, other in itertools.product((1, 2, 3, -1, -2), repeat=2):
        for first, second in itertools.product(range(4), repeat=2):
            x = nd.asarray(np.arange(16, dtype="int32"), copy=True)
            target, source = (x[start:][:: abs(gap)][:5][:: gap // abs(gap)] for start, gap in ((first, step), (second, other)))
            want = source.tolist()
            assign(target, values(source.reshape((1, 5)) if row else source))
            assert target.tolist() == want, (step, other, first, second)


@pytest.mark.parametrize("layout", ["c", "padded", "blocked"])
def test_d20_products_in_place(layout):
    """D20: what NumPy's methods give: `@=` takes a matrix, and is refused where it would be written to more places than it has."""
    x = nd.create((4, 4), paddings=(0, 3) if layout == "padded" else None)
    if layout == "blocked":
        x = nd.reorder(x, "aB2b")
    x[...] = np.arange(16, dtype="float32").reshape(4, 4)
    values = x.to_numpy(copy=True) if layout != "blocked" else np.asarray(nd.reorder(x, "ab"))
    y = x
    y @= np.eye(4, dtype="float32") * 2
    assert y is x
    assert np.array_equal(np.array(x.tolist()), values * 2)
    for bad in (np.ones(4, np.float32), nd.ones(4)):
        with pytest.raises(nd.LayoutError, match="@= needs"):
            y @= bad
    row = nd.ones(4)
    with pytest.raises(nd.LayoutError, match="1 and 1 axes"):
        row @= nd.ones(4)
    row @= nd.asarray(values)
    assert row.tolist() == values.sum(0).tolist()
    with pytest.raises(ValueError, match="cannot be deleted"):
        del row[0]
    with pytest.raises(ValueError, match="each once"):
        nd.zeros((1, 3)).squeeze((0, 0))


@pytest.mark.parametrize("start", [0, 1, 33, 64])
@pytest.mark.parametrize("readonly", [False, True])
def test_d17_a_part_of_a_message(start, readonly):
    """D17: out of band with protocol 5: memory that begins anywhere, as a part of a message does, becomes new, aligned memory."""
    x = nd.create((3, 4), paddings=(2, 4))
    x[...] = np.arange(12, dtype="float32").reshape(3, 4)
    x = NdArray(x.descriptor, bytes(x.buffer)) if readonly else x
    buffers = []
    content = pickle.dumps(x, 5, buffer_callback=buffers.append)
    message = bytearray(start) + bytes(buffers[0].raw())
    y = pickle.loads(content, buffers=[memoryview(message)[start:]])
    assert y.tolist() == x.tolist()
    assert y.readonly == readonly
    assert y.check_padding()
    with pytest.raises(LayoutError, match="the layout needs"):
        pickle.loads(content, buffers=[memoryview(message)[start:-1]])


def test_d15_layouts_are_kept():
    """D15: `*_like`, `reshape`, `transpose`, `swapaxes`, `moveaxis`, `squeeze`, `expand_dims` keep the layout."""
    x = NdArray(C8)
    for like in (np.zeros_like, np.empty_like, np.ones_like):
        assert like(x).descriptor == C8
        assert like(x, dtype="int8").descriptor == C8.astype("int8")
        assert like(x, dtype=nd.bfloat16).descriptor == C8.astype("bfloat16")
        assert like(x, dtype=complex).dtype == complex
    assert np.full_like(x, 3).descriptor == C8
    assert np.full_like(x, 3, order="C").descriptor.tag == "abcd"
    for view in (np.transpose(x, (1, 0, 2, 3)), np.swapaxes(x, 0, 1), np.moveaxis(x, 1, 0)):
        assert view.buffer is x.buffer
        assert view.shape == (17, 2, 3, 2)
        assert view.descriptor.inner_blocks == ((0, 8),)
    assert np.expand_dims(x, 0).descriptor.inner_blocks == ((2, 8),)
    assert np.squeeze(np.expand_dims(x, 0)).descriptor.inner_blocks == ((1, 8),)
    assert np.reshape(nd.zeros((2, 3)), (3, 2)).shape == (3, 2)
    with pytest.raises(OutOfRangeError):
        np.expand_dims(x, 7)
    with pytest.raises(LayoutError, match="twice"):
        np.expand_dims(x, (0, 0))
    with pytest.raises(TypeError):
        np.expand_dims(x, 0.5)
    assert np.transpose(x, axes=(1, 0, 2, 3)).shape == np.permute_dims(a=x, axes=(1, 0, 2, 3)).shape == (17, 2, 3, 2)
    assert np.squeeze(x[:1], axis=0).shape == (17, 3, 2)
    assert np.matrix_transpose(x).descriptor == x.mT.descriptor
    assert np.expand_dims(x, -5).shape == np.expand_dims(x, 0).shape == (1, *x.shape)
    for axis in (-6, 5):
        with pytest.raises(OutOfRangeError, match=f"new axes {axis} are outside the 5 axes"):
            np.expand_dims(x, axis)
    assert np.empty_like(prototype=x).descriptor == C8
    long = nd.zeros((1,) * 29 + (2, 3, 4))
    assert np.moveaxis(long, -1, 0).shape == (4, *long.shape[:-1])
    assert np.swapaxes(long, -1, -2).strides == (*long.strides[:-2], 1, 4)
    assert np.shares_memory(x, x[1:])
    assert np.may_share_memory(x, x)
    assert not np.shares_memory(x[:1], x[1:])


def test_d15_writes_go_through_and_views_are_refused():
    """D15: A function that writes into a blocked array writes through where it says so; one that would return a view of it is refused."""
    x, memory = dirty(C8, np.zeros(C8.shape))
    before = cells(memory, C8)
    values = np.zeros(x.shape, np.float32)
    np.copyto(x, 3, where=values == 0)
    np.put(x, [5], 7)
    np.clip(x, 0, 5, out=x)
    values[...] = 3
    values.flat[5] = 5
    assert same(x.to_numpy(), values)
    assert np.concatenate([x[:1], x[1:]], out=x) is x
    assert np.array_equal(cells(memory, C8)[outside(C8)], before[outside(C8)])
    for call in (np.flip, lambda a: np.broadcast_to(a, (2, *a.shape)), np.rot90, np.fliplr):
        with pytest.raises(UnsupportedLayoutError, match="reorder"):
            call(x)
    assert np.atleast_1d(x) is x
    plain = nd.zeros((2, 3))
    np.flip(plain)[0, 0] = 1
    assert plain[1, 2] == 1
    assert np.broadcast_to(plain, (4, 2, 3)).readonly


@pytest.mark.parametrize(
    "write",
    [
        lambda a, out: a.clip(1, 3, out), lambda a, out: a.round(0, out), lambda a, out: a.cumsum(1, None, out), lambda a, out: a.cumprod(1, out=out),
        lambda a, out: a.take([0, 1, 2, 3, 3], 1, out), lambda a, out: np.clip(a, 1, 3, out), lambda a, out: np.cumsum(a, 1, None, out),
        lambda a, out: np.take(a, [1] * 5, 1, out), lambda a, out: np.round(a, 0, out),
        lambda a, out: np.compress([True] * 5, a, 1, out), lambda a, out: np.choose(np.zeros((5, 5), int), [a], out),
        lambda a, out: np.outer(np.arange(5.0, dtype="float32"), a[0], out), lambda a, out: np.dot(a, np.eye(5, dtype="float32"), out),
        lambda a, out: a.dot(np.eye(5, dtype="float32"), out=out), lambda a, out: np.concatenate([a[:2], a[2:]], 0, out),
        lambda a, out: np.sum(a[None], 0, None, out), lambda a, out: np.max(a[None], 0, out), lambda a, out: np.median(a[None], 0, out),
        # Deprecated since.
        *([lambda a, out: np.fix(a, out)] if np.lib.NumpyVersion(np.__version__) < "2.5.0" else []),
    ],
)  # fmt: skip
def test_d15_out_by_position(write):
    """D15: A function that writes into a blocked array writes through where it says so (`out=`), whichever way it is told of it."""
    values = np.arange(25, dtype=np.float32).reshape(5, 5)
    layout = ShapeDescriptor.from_tag((5, 5), "aB4b")
    x = nd.reorder(values, layout)
    out, memory = dirty(layout, np.zeros((5, 5)))
    before = cells(memory, layout)
    expected = np.zeros((5, 5), np.float32)
    write(values, expected)
    write(x, out)
    assert same(out.to_numpy(), expected)
    assert expected.any()
    assert np.array_equal(cells(memory, layout)[outside(layout)], before[outside(layout)])


def test_d15_what_is_written_may_be_given_by_name():
    """D15: A function that writes into a blocked array writes through where it says so (`copyto`, `put`, ..), whichever way it is told of it."""
    x, values = NdArray(C8), np.zeros(C8.shape)
    np.copyto(dst=x, src=2)
    np.put(a=x, ind=[5], v=7)
    np.place(arr=x, mask=values == 1, vals=[9])
    np.put_along_axis(arr=x, indices=np.zeros((2, 1, 3, 2), int), values=4, axis=1)
    values[...] = 2
    values.flat[5] = 7
    values[:, 0] = 4
    assert same(x.to_numpy(), values.astype(np.float32))
    assert x.check_padding()
    with pytest.raises(LayoutError, match="read-only"):
        np.copyto(dst=NdArray(C8, bytes(C8.allocLength() * 4)), src=1)
    with pytest.raises(UnsupportedLayoutError, match="nan_to_num writes into a blocked array"):
        np.nan_to_num(x, copy=False)


def test_d15_read_only_arrays_are_read():
    """D15: Functions of NumPy run on views: of arrays that are read-only too, given by position, by name or in a list."""
    values = numbered((2, 17, 3, 2))
    for d in (C8, ShapeDescriptor("float32", "c", C8.shape)):
        x = NdArray(d)
        x[...] = values
        x = NdArray(d, bytes(x.buffer))
        assert x.readonly
        even = nd.asarray(values % 2 == 0)
        assert same(np.sort(x).to_numpy(), np.sort(values.astype(np.float32)))
        assert np.sum(a=x, where=even) == values[values % 2 == 0].sum()
        assert np.count_nonzero(np.select(condlist=[even], choicelist=[x], default=0)) == np.count_nonzero(values[values % 2 == 0])
        for call in (np.add.reduce, np.maximum.accumulate, lambda a: np.add.outer(a, [1, 2]), lambda a: np.add.reduceat(a, [0, 1])):
            assert same(call(x).to_numpy(), call(values.astype(np.float32)))


@given(st.one_of(padded_descriptors(NUMPY_DTYPES), tagged_descriptors()))
def test_d16_array_interface(d):
    """D16: `__array_interface__` describes plain layouts; for others it raises an `UnsupportedLayoutError` that is an `AttributeError` too."""
    x, memory = dirty(d)
    if d.inner_blocks or d.dtype == "bfloat16":
        with pytest.raises(UnsupportedLayoutError, match="exploded"):
            x.__array_interface__  # noqa: B018
        assert not hasattr(x, "__array_interface__")
        return

    class Only:
        __array_interface__ = x.__array_interface__
        keeps = x

    seen = np.asarray(Only())
    assert same(seen, x.to_numpy())
    assert seen.strides == x.to_numpy().strides or seen.size < 2
    assert np.shares_memory(seen, x.to_numpy()) or not x.size
    assert not np.asarray(type("Locked", (), {"__array_interface__": NdArray(d, bytes(memory)).__array_interface__})()).flags.writeable


def test_d16_array():
    """D16: `__array__(dtype, copy)` copies where it must and refuses to with `copy=False`; a copy that nobody asked for is read-only."""
    for x in (NdArray(C8), nd.zeros((2, 3))):
        must = bool(x.descriptor.inner_blocks)
        assert np.shares_memory(x.__array__(), x.exploded().to_numpy()) != must
        assert x.__array__(np.float64).dtype == np.float64
        assert x.__array__(np.float64, copy=True).dtype == np.float64
        assert not np.shares_memory(x.__array__(copy=True), x.exploded().to_numpy())
        with pytest.raises((ValueError, BufferError)):
            x.__array__(np.float64, copy=False)
        assert np.asarray(x).flags.writeable != must
        assert np.array(x).flags.writeable
        if must:
            with pytest.raises(UnsupportedLayoutError):
                x.__array__(copy=False)
    assert np.array(nd.ones(2), dtype="int8").tolist() == [1, 1]


@given(descriptors, st.integers(2, 5))
def test_d17_pickle(d, protocol):
    """D17: Pickles hold the descriptor and the whole buffer, padding included."""
    x = NdArray(d)
    x[...] = values_for(d)
    x.fill_padding(1)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert x.buffer.shared == y.buffer.shared == (protocol == 5)
    if protocol < 5 and d.rank:
        assert np.bitwise_or(y, y).check_padding(1) if d.dtype != "bfloat16" and d.dtype.kind in "iu" else True
    assert y.descriptor == d
    assert same(y.to_numpy(), x.to_numpy())
    assert y.check_padding(1)
    assert not y.readonly
    if protocol < 5 and d.rank:
        assert not y.size or (y.buffer.address + d.offset * d.itemsize) % 64 == 0
    dirt, memory = dirty(d)
    assert bytes(pickle.loads(pickle.dumps(dirt, protocol)).buffer) == bytes(memory)


@given(descriptors)
def test_d17_out_of_band(d):
    """D17: out of band with protocol 5: the buffer itself, zero-copy on both sides."""
    x, memory = dirty(d)
    buffers = []
    head = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(head) < 2500
    assert len(buffers) == 1
    raw = buffers[0].raw()
    assert raw.nbytes == len(memory)
    received = bytearray(raw)
    y = pickle.loads(head, buffers=[received])
    assert y.buffer.owner is received or not received
    assert same(y.to_numpy(), x.to_numpy())
    assert bytes(received) == bytes(memory)
    y[...] = 1
    assert same(NdArray(d, received).to_numpy(), y.to_numpy())
    again = pickle.loads(head, buffers=buffers)
    assert not x.size or again.buffer.address == x.buffer.address
    locked = pickle.loads(pickle.dumps(NdArray(d, bytes(memory)), 5))
    assert locked.readonly
    assert pickle.loads(head, buffers=[memoryview(memory).toreadonly()]).readonly
    assert not pickle.loads(head, buffers=[bytes(memory)]).readonly
    del x
    assert same(again.to_numpy(), pickle.loads(pickle.dumps(again)).to_numpy())


def test_d17_parts_and_damage():
    """D17: parts of a buffer are pickled as their `copy()`; a pickle whose buffer is too small is refused."""
    big = nd.ones((1000, 1000))
    for part in (big[3], big[::2, ::-1][:3, :3], big[5:6]):
        data = pickle.dumps(part)
        assert len(data) < 5000
        assert same(pickle.loads(data).to_numpy(), part.to_numpy())
    x = NdArray(C8)
    x[...] = 1
    part = pickle.loads(pickle.dumps(x[:, 3]))
    assert (part.to_numpy() == 1).all()
    head = pickle.dumps(x, 5, buffer_callback=[].append)
    for memory in (bytearray(10), b"short"):
        with pytest.raises(LayoutError, match="bytes"):
            pickle.loads(head, buffers=[memory])


@given(descriptors)
def test_d18_copies_and_tokens(d):
    """D18: `copy.copy` and `copy.deepcopy` are `copy()`; `__dask_tokenize__` is equal for equal descriptors and elements."""
    x = NdArray(d)
    x[...] = values_for(d)
    x.fill_padding(1)
    for y in (copy.copy(x), copy.deepcopy(x), x.copy(), np.copy(x)):
        assert y.buffer is not x.buffer
        assert same(y.to_numpy(), x.to_numpy())
        assert y.descriptor == d
        assert y.check_padding(1)
    twin, _ = dirty(d)
    assert twin.__dask_tokenize__() == x.__dask_tokenize__() == pickle.loads(pickle.dumps(x)).__dask_tokenize__()
    if x.size:
        one = (0,) * d.rank
        twin[one] = 0 if bool(twin[one]) else 1
        assert twin.__dask_tokenize__() != x.__dask_tokenize__()
    assert x.astype("float64" if d.dtype != "float64" else "int64").__dask_tokenize__() != x.__dask_tokenize__()


def test_d18_dask():
    """D18: `__dask_tokenize__`, and what Dask needs to cut an array and put it together, halos included."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    for x in (nd.create((8, 8), paddings=(0, 3)), NdArray(ShapeDescriptor.from_tag((8, 8), "Ab4a"))):
        x[...] = numbered(x.shape)
        lazy = da.from_array(x, chunks=(4, 8), asarray=False)
        assert np.array_equal(np.asarray((lazy + 1).compute()), numbered(x.shape) + 1)
        assert float(lazy.sum().compute()) == numbered(x.shape).sum()
        spread = lazy.map_overlap(lambda block: block * 2, depth=(1, 0), boundary=7, meta=np.empty((0, 0), np.float32))
        assert np.array_equal(np.asarray(spread.compute()), numbered(x.shape) * 2)
        assert da.from_array(x, chunks=4, asarray=False).name == da.from_array(x.copy(), chunks=4, asarray=False).name


def test_all_dtypes_are_drawn():
    """D8: the element types of the property tests are all that there are."""
    assert {*NUMPY_DTYPES, "bfloat16"} == set(DTYPES)


# Selections, and the methods users type


@given(descriptors.filter(lambda d: d.allocLength() < 5000), st.data())
def test_d19_selections(d, data):
    """D19: `x[key]` is a new dense array of the elements that NumPy selects, `x[key] = y` writes exactly these."""
    x, memory = dirty(d)
    values, before = x.to_numpy().copy(), cells(memory, d)
    key = data.draw(selections_of(d.shape))
    ours = tuple(nd.asarray(k) if isinstance(k, np.ndarray) and k.ndim else k for k in key)
    found = x[ours]
    assert same(found.to_numpy(), values[key])
    assert found.dtype == d.dtype
    assert found.descriptor == ShapeDescriptor(d.dtype, "c", values[key].shape)
    found.fill(0)
    assert same(x.to_numpy(), values), "a selection shares no memory"
    x[ours] = 1
    values[key] = 1
    assert same(x.to_numpy(), values)
    each = np.zeros(values[key].shape[-1:], bool if d.dtype == "bool" else np.uint8)
    x[ours] = each
    values[key] = each
    assert same(x.to_numpy(), values)
    assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])


def test_d19_what_is_one_key():
    """D19: A key with masks, arrays or other sequences of integers: a list alone, a boolean, an array of ours in any layout."""
    for x in (nd.arange(34).reshape(2, 17), nd.reorder(nd.arange(34).reshape(2, 17), "aB8b")):
        assert x[[1]].shape == (1, 17)
        assert x[True].shape == (1, 2, 17)
        assert x[False].shape == (0, 2, 17)
        assert x[x > 30].tolist() == [31.0, 32.0, 33.0]
        assert x[nd.ones(2, dtype="int8"), 3].tolist() == [20.0, 20.0]
        assert x[(0, 1), range(2)].tolist() == [0.0, 18.0]
        assert x[(1, 1),].shape == (2, 17)
        for mask in (np.array(True), nd.asarray(True)):
            assert x[mask].shape == (1, 2, 17)
        x[x > 1] = 0
        assert x.sum() == 1
        x[[0, 1], [0, 16]] = nd.array([5, 6])
        assert (x[0, 0], x[1, 16]) == (5, 6)


@pytest.mark.parametrize("d", [C8, ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 17, 3, 2), (1, 0, 2, 1))])
def test_d19_what_does_not_fit(d):
    """D19: `x[key] = y` casts within a kind; what does not fit is refused before anything is written."""
    x, memory = dirty(d)
    before = bytes(memory)
    for key, value, error in (
        ([2], 0, OutOfRangeError), (np.ones((2, 16), bool), 0, OutOfRangeError), ([[1], [0, 1]], 0, OutOfRangeError), ([1.5], 0, OutOfRangeError),
        (["a"], 0, OutOfRangeError), (([0], 0, 0, 0, 0), 0, OutOfRangeError), ([0, 1], 1j, nd.DTypeError), ([0, 1], np.zeros(3), LayoutError),
        (([0, 1], [0, 1, 2]), 0, OutOfRangeError), ([0, 5], 1, OutOfRangeError),
    ):  # fmt: skip
        with pytest.raises(error):
            x[key] = value
        if error is OutOfRangeError:
            with pytest.raises(error, match=r"shape \(2, 17, 3, 2\)"):
                x[key]
    with pytest.raises(LayoutError, match="read-only"):
        NdArray(d, bytes(memory))[[0]] = 1
    assert bytes(memory) == before


@given(descriptors, st.data())
def test_d20_methods(d, data):
    """D20: methods give what NumPy's methods of these names give on `to_numpy()`; `fill` leaves padding alone, `swapaxes` is a view."""
    x, memory = dirty(d)
    values, before = x.to_numpy().copy(), cells(memory, d)
    assert x.tolist() == (values.astype(np.float32) if d.dtype == "bfloat16" else values).tolist()
    assert x.tobytes() == values.tobytes()
    assert [x.item(i) for i in range(-x.size, x.size)] == [values.item(i) for i in range(-x.size, x.size)]
    assert [x.item(*index) for index in all_indices(d.shape)] == [x.item(index) for index in all_indices(d.shape)] == list(map(float, values.ravel()))
    assert same(x.ravel(), values.ravel())
    assert same(x.flatten(), values.ravel())
    assert x.flatten().buffer is not x.buffer
    if d.rank:
        a, b = data.draw(st.tuples(*[st.integers(-d.rank, d.rank - 1)] * 2))
        turned = x.swapaxes(a, b)
        assert same(turned, values.swapaxes(a, b))
        assert turned.buffer is x.buffer
    if d.dtype not in ("bool", "bfloat16"):
        assert same(x.clip(1, 2), values.clip(1, 2))
        assert same(x.clip(min=1), values.clip(min=1))
        assert same(x.round(1), values.round(1))
        assert same(round(x), values.round())
        with np.errstate(all="ignore"):
            assert same(x.cumsum(), values.cumsum())
            assert same(x.cumprod(), values.cumprod())
        assert [i.tolist() for i in x.nonzero()] == [i.tolist() for i in np.nonzero(values)] if d.rank else True
        assert same(x.argsort(None, kind="stable"), values.argsort(None, kind="stable"))
        assert same(x.repeat(2), values.repeat(2))
        assert same(x.take([0, -1], mode="clip"), values.take([0, -1], mode="clip")) if values.size else True
        if d.rank:
            axis = data.draw(st.integers(-d.rank, d.rank - 1))
            x.sort(axis)
            values.sort(axis)
            assert same(x, values)
        if d.rank == 2:
            assert same(x.trace(), values.trace())
            assert same(x.dot(np.ones(d.shape[1], values.dtype)), x.to_numpy().dot(np.ones(d.shape[1], values.dtype)))
            if not d.inner_blocks:
                assert same(x.diagonal(1), values.diagonal(1))
    x.fill(1)
    assert same(x.to_numpy(), np.ones_like(values))
    assert np.array_equal(cells(memory, d)[outside(d)], before[outside(d)])


def test_d20_read_only():
    """D20: `sort` writes through, so a read-only array is refused."""
    with pytest.raises(LayoutError, match="read-only"):
        nd.asarray(np.broadcast_to(np.float32(1), (3,))).sort()


@given(descriptors)
def test_d22_views_of_bits(d):
    """D22: `view(dtype)` shows the same memory, padding included, with its bits read as another element type of as many bytes."""
    x, _ = dirty(d)
    bits = x.view(f"uint{8 * d.itemsize}")
    assert bits.buffer is x.buffer
    assert bits.tobytes() == x.tobytes()
    assert bits.descriptor == d.astype(bits.dtype)
    assert bits.view(d.dtype).descriptor == d
    assert x.view().descriptor == d
    assert len(bits.check_padding(2 ** (8 * d.itemsize) - 1)) == 0
    if d.length:
        bits[(-1,) * d.rank] = 0
        assert x.item(*[-1] * d.rank) == 0
    with pytest.raises(nd.DTypeError, match="as many bytes"):
        x.view("float64" if d.itemsize < 8 else "float32")


@pytest.mark.parametrize("convert", [float, int, complex])
def test_d22_numbers(convert):
    """D22: An array of one element is a number to `float`, `int` and `complex`; any other is a `LayoutError` that is a `TypeError` too."""
    for x in (nd.full((), 3), nd.full((1, 1), 3, "int8"), nd.reorder(nd.full((1, 1), 3), "aB8b"), nd.full((1,), 3, "bfloat16")):
        assert convert(x) == 3
    for x in (nd.zeros(0), nd.zeros((2, 3), paddings=(1, 1)), nd.reorder(nd.zeros((1, 2)), "aB8b")):
        with pytest.raises(LayoutError, match=f"{x.size} elements is not one number") as caught:
            convert(x)
        assert isinstance(caught.value, TypeError)


@given(descriptors)
def test_d20_order(d):
    """D20: an `order` other than that of c, or of the layout for `copy`, gives what NumPy gives, dense or a view of a plain layout."""
    x, _ = dirty(d)
    values = x.to_numpy()
    for order in "CFA":
        assert x.tobytes(order) == values.tobytes(order)
        assert same(x.flatten(order), values.flatten(order))
        assert x.flatten(order).buffer is not x.buffer
        copied = x.copy(order)
        assert same(copied, values)
        assert copied.to_numpy().flags[{"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "A": "FORC"}[order]]
        assert not np.shares_memory(copied, x)
        if not d.inner_blocks:
            assert same(x.ravel(order), values.ravel(order))
            assert same(x.reshape(d.shape[::-1], order=order), values.reshape(d.shape[::-1], order=order))
    with pytest.raises(ValueError, match="order"):
        x.copy("Z")


def test_d20_tofile(tmp_path):
    """D20: `tofile` gives what NumPy's method of this name gives on `to_numpy()`: bytes, in c order."""
    for x in (
        nd.reorder(numbered((2, 17, 3)), "aBc8b"),
        nd.create((4, 3), dtype="bfloat16", paddings=(0, 2)),
        nd.arange(6).reshape(2, 3).T,
        nd.ones(()),
    ):
        x.tofile(tmp_path / "elements")
        assert (tmp_path / "elements").read_bytes() == x.tobytes()
        with (tmp_path / "elements").open("wb") as file:
            x.tofile(file)
            assert file.tell() == x.nbytes


def test_d20_astype():
    """D20: `casting` as NumPy has it, and with `copy=False` the array itself where the type stays."""
    x = nd.reorder(nd.arange(34).reshape(2, 17), "aB8b")
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32").buffer is not x.buffer
    assert same(x.astype("float64", casting="safe"), x.to_numpy().astype("float64"))
    assert x.astype("bfloat16", casting="same_kind").dtype == "bfloat16"
    for to in ("int8", "bfloat16"):
        with pytest.raises(nd.DTypeError, match=f"casting='safe' does not take float32 to {to}"):
            x.astype(to, casting="safe", copy=False)
    with pytest.raises(nd.UnsupportedLayoutError, match="reorder"):
        x.diagonal()


def test_d20_what_does_not_fit():
    """D20: `item` needs one element, `fill` one value."""
    x = nd.zeros((2, 3))
    for index in ((), (6,), (-7,), (0, 3), (0, 0, 0), ("a",), (0.5, 1)):
        with pytest.raises(nd.Nd4jLikeError):
            x.item(*index)
    with pytest.raises(LayoutError, match="one value"):
        x.fill([1, 2, 3])


def test_d22_an_array_without_axes_is_formatted_as_its_element():
    """D22: one without axes is formatted as its element."""
    for dtype in ("float32", "int8", "bfloat16", "bool"):
        x = nd.zeros((), dtype)
        x[...] = 1
        element = np.float32(1) if dtype == "bfloat16" else np.dtype(dtype).type(1)
        assert (f"{x}", f"{x:>8}") == (f"{element}", f"{element:>8}")
    assert f"{nd.asarray(np.float64(np.pi)):.3f}" == "3.142"
    assert f"{nd.arange(2)}" == str(nd.arange(2))
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{nd.arange(1):.3f}"


@pytest.mark.parametrize("tag", ["abcd", "nChw8c", "acdb"])
def test_d15_parts_are_views(tag):
    """D15: `flip`, `split` and its kin, and `unstack` are views as basic indexing has them: of blocks where these are whole, else refused."""
    x = nd.reorder(nd.array(numbered((2, 24, 4, 6))), tag)
    values = x.to_numpy()
    for function, arguments in (
        (np.split, (3, 1)), (np.split, ([8], 1)), (np.split, (2,)), (np.array_split, (4, 3)), (np.vsplit, (2,)), (np.hsplit, (3,)), (np.dsplit, (2,)),
        (np.unstack, ()), (lambda a: np.unstack(a, axis=2), ()), (np.flip, (0,)), (np.flip, ((2, -1),)),
    ):  # fmt: skip
        found, expected = function(x, *arguments), function(values, *arguments)
        for part, wanted in zip(*((found, expected) if isinstance(found, list | tuple) else ([found], [expected])), strict=True):
            assert part.buffer is x.buffer
            assert np.array_equal(part.to_numpy(), wanted)
    for part in np.split(x, 3, 1):
        assert part.descriptor.inner_blocks == x.descriptor.inner_blocks
    if x.descriptor.inner_blocks:
        for refused in (lambda: np.split(x, 2, 1), lambda: np.flip(x), lambda: np.flip(x, 1), lambda: np.rot90(x)):
            with pytest.raises(UnsupportedLayoutError, match="reorder to a plain layout first"):
                refused()
    for wrong, error in ((lambda: np.split(x, 5, 1), ValueError), (lambda: np.flip(x, 4), ValueError), (lambda: np.split(x, 2, 4), IndexError)):
        with pytest.raises(error):
            wrong()


@pytest.mark.parametrize("tag", [None, "ab", "aB8b", "ba"])
def test_d14_strangers_are_nowhere_equal(tag):
    """D14: What cannot be compared is nowhere equal: the arrays of bool that NumPy's operators give, in the layout of the array."""
    x = nd.ones((3, 9), paddings=(0, 2)) if tag is None else nd.reorder(nd.ones((3, 9)), tag)
    for stranger in ("a", b"a", np.array("a"), np.array(["a"] * 9), np.datetime64("2001")):
        for compare in (operator.eq, operator.ne):
            found = compare(x, stranger)
            assert np.array_equal(found.to_numpy(), compare(x.to_numpy(), stranger))
            assert found.descriptor == x.descriptor.astype("bool")
            assert found.check_padding()
    assert (nd.ones(3) == np.array([["a"], ["b"]])).tolist() == [[False] * 3] * 2
    assert nd.array(1.5) != "a"
    assert "a" not in x
    with pytest.raises(ValueError, match=r"mismatch|broadcast"):
        x == np.array(["a", "b"])  # noqa: B015


def test_d19_values_beyond_the_type():
    """D19: `x[key] = y` with a mask or an array in the key: a number that the type cannot hold is an OverflowError, as in NumPy; nothing is written."""
    x = nd.zeros((2, 3), dtype="uint8")
    for key in ((slice(None), np.array([True, False, True])), (0, [1, 2]), ([0, 1], slice(None))):
        with pytest.raises(OverflowError, match="-1"):
            x[key] = -1
    assert not x.any()


def test_d23_array_api():
    """D23: `device` (`"cpu"`), `to_device`, `mT` and `__array_namespace__`, which is NumPy, are those of the array API standard."""
    x = nd.create((2, 3, 4), paddings=(0, 1))
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    assert x.mT.shape == (2, 4, 3)
    assert x.mT.buffer is x.buffer
    assert x.__array_namespace__() is np
    assert x.__array_namespace__(api_version="2022.12") is np
    for bad in ({"device": "gpu"}, {"device": "cpu", "stream": 1}):
        with pytest.raises(nd.UnsupportedLayoutError, match="the memory is on the CPU, which has no streams"):
            x.to_device(**bad)
    for shape in ((), (3,)):
        for transpose in (operator.attrgetter("mT"), np.matrix_transpose):
            with pytest.raises(nd.LayoutError, match="two axes at least"):
                transpose(nd.zeros(shape))


ORDERS = ("nchw", "nhwc", "nChw8c", "nChw16c", "padded", "flipped")


def in_order(values, order):
    """Many elements in a layout."""
    if order == "padded":
        made = nd.create(values.shape, dtype=values.dtype, paddings=(0, 0, 2, 3), padding_offsets=(0, 0, 1, 1))
    elif order == "flipped":
        made = nd.zeros(values.shape, values.dtype)[:, :, ::-1, ::-1]
    else:
        made = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, order, values.dtype))
    made[...] = values
    return made


@pytest.mark.parametrize("second", ORDERS)
@pytest.mark.parametrize("first", ORDERS)
def test_d8_many_elements_in_different_orders(first, second):
    """D8: gives for each element the bits and the element type that NumPy gives on `to_numpy()`; D9: the layout of the first NdArray that has their shape."""
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 17, 13, 12)).astype("float32"), rng.integers(-9, 9, (2, 17, 13, 12))
    x, y = in_order(a, first), in_order(b, second)
    for ufunc in (np.add, np.subtract, np.greater):
        got, want = ufunc(x, y), ufunc(a, b)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
        assert got.check_padding()
        if first != "flipped":
            assert got.descriptor == x.descriptor.astype(want.dtype)
    x *= y.astype("float32")
    np.testing.assert_array_equal(x, a * b.astype("float32"))
    assert x.check_padding()
    out = in_order(np.zeros_like(a, "float64"), second)
    assert np.multiply(y, x, out=out) is out
    np.testing.assert_array_equal(out, b * np.asarray(x), strict=False)
    assert out.check_padding()
    half = y[:, :, :, :6]
    half += y[:, :, :, 6:]
    np.testing.assert_array_equal(y, np.concatenate([b[..., :6] + b[..., 6:], b[..., 6:]], -1))


def test_d8_results_of_bfloat16():
    """D8: the element type that NumPy gives, with NdArrays, NumPy arrays and numbers mixed: bfloat16 beside small integers, too."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy's bfloat16")
    for kind in ("uint8", "int8", "bool"):
        values, halves = np.ones((3, 5), kind), np.arange(5).astype(ml_dtypes.bfloat16)
        for x in (nd.asarray(values), in_order(values.reshape(1, 3, 5, 1), "nChw8c")):
            for got in (x + halves[1], halves[1] + x):
                assert got.dtype == nd.dtypes.bfloat16
                np.testing.assert_array_equal(got, np.full(x.shape, 2))
        np.testing.assert_array_equal(nd.asarray(values) + halves, values + halves)


def test_d8_rounding_is_numpys_way_through_both():
    """D8: gives for each element the bits that NumPy gives: of functions whose last bits depend on the way, too."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(1, 2, (2, 100, 200)).astype("float32")
    x, y = nd.NdArray(nd.ShapeDescriptor("float32", "f", a.shape)), nd.zeros(b.shape)[::-1, ::-1]
    x[...], y[...] = a, b
    for ufunc in (np.arctan2, np.power, np.hypot, np.add, np.divide):
        np.testing.assert_array_equal(ufunc(x, y), ufunc(x.to_numpy(), y.to_numpy()))


@pytest.mark.parametrize("call", [lambda a: np.clip(a, -1, 1), lambda a: a.clip(-1, a), lambda a: a.round(1), np.round, np.nan_to_num])
def test_d20_clip_and_round_keep_the_layout(call):
    """D20: `clip` and `round`, and NumPy's functions `clip`, `round` and `nan_to_num`, give new results the layout that a ufunc would (D9)."""
    x = NdArray(ShapeDescriptor.from_tag((1, 5, 2, 3), "nChw4c", "float32", (0, 0, 1, 0)))
    x.fill_padding(9)
    x[...] = np.linspace(-3, 3, 30).reshape(x.shape)
    y = call(x)
    assert y.descriptor == x.descriptor
    assert y.check_padding(9)
    assert np.array_equal(y.to_numpy(), call(x.to_numpy()))
    plain = nd.asarray(np.asfortranarray(x.to_numpy()))
    assert call(plain).strides == plain.strides


def test_d20_clip_into_an_array():
    """D20: `clip` gives what NumPy gives: the array that it was told to write to."""
    x = NdArray(ShapeDescriptor.from_tag((1, 5, 2, 3), "nChw4c"))
    x[...] = 7
    out = nd.empty(x.shape)
    assert np.clip(x, 0, 6, out=out) is out
    assert x.clip(0, 6, x) is x
    assert (x == 6).all()
    assert (out == 6).all()

"""ADR 0002: buffers and ownership (D5, lifetimes, is in test_lifetimes.py)."""

import array
import ctypes
import dataclasses
import math
import mmap
import operator
import os
import platform
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nd4jlike as nd
from nd4jlike import LayoutError, NdArray, ShapeDescriptor, UnsupportedLayoutError
from nd4jlike.kernels import dispatch
from nd4jlike.ndarray import _seen
from small import ORDERS, bigger, numbered, small_cases
from strategies import DTYPES, descriptors, keys_of, padded_descriptors

NUMPY_DTYPES = tuple(name for name in DTYPES if name != "bfloat16")


def cells(x):
    """Copy the whole buffer, through the elements of the hosting array and not through an export of the buffer."""
    return x.hosting_array().to_numpy(copy=True)


def padded_pair(shape, pads, before, order, dtype=np.float32, fill=9):
    """Make an NdArray and its oracle, a NumPy array inside a bigger one: same elements, same padding."""
    x = nd.create(shape, dtype=dtype, order=order, paddings=pads, padding_offsets=before)
    x.fill_padding(fill)
    x[...] = numbered(shape, dtype)
    room, inside = bigger(order, shape, pads, before, dtype, fill)
    inside[...] = numbered(shape, dtype)
    return x, room, inside


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_d1_new_memory_is_zero_and_aligned_at_the_first_element(dtype, order):
    """D1: New memory is zeroed, elements and padding, and element (0, .., 0) lies on a multiple of 64 bytes."""
    for shape, pads, before in ((), (), ()), ((5,), (3,), (2,)), ((3, 4, 7), (1, 2, 5), (1, 0, 3)), ((0, 3), (1, 1), (1, 1)):
        x = NdArray(ShapeDescriptor.paddedBufferDescriptor(dtype, order, shape, pads, before))
        assert x.buffer.nbytes == x.descriptor.allocLength() * x.itemsize
        assert (x.buffer.address + x.descriptor.offset * x.itemsize) % 64 == 0
        assert not any(bytes(x.buffer))


@given(padded_descriptors(), st.sampled_from([0, 1, -0.0, 3]), st.integers(0, 4))
def test_d1_padding_of_another_value(d, value, which):
    """D1: padding holds `padding_value` instead, where the function that makes an array is given one; it is remembered as that of `fill_padding`."""
    value = value if d.dtype.kind in "fV" else bool(value) if d.dtype == "bool" else int(value)
    options = {"dtype": d.dtype, "order": d.order, "paddings": d.paddings, "padding_offsets": d.padding_offsets, "padding_value": value}
    make = (nd.create, nd.zeros, nd.empty, nd.ones, lambda shape, **options: nd.full(shape, 1, **options))[which]
    x = make(d.shape, **options)
    assert x.descriptor == d
    assert x.check_padding(value)
    if which != 2:
        assert (x == which // 3).all()
    like = (nd.zeros_like, nd.empty_like, nd.ones_like, lambda x, **options: nd.full_like(x, 1, **options))[which % 4]
    again = like(x, padding_value=value)
    assert again.descriptor == d
    assert again.check_padding(value)
    # Results in this layout keep what the padding is known to hold (ADR 0010, D9).
    if d.rank and d.dtype == "float32":
        assert (-again).check_padding(value)


def test_d1_the_zero_point_as_padding():
    """D1: padding holds `padding_value` instead: a quantized input whose halo is read in place; one that is no element is refused."""
    quantization = nd.Quantization(input=(0.5, -7), weights=1.0, output=(0.5, -7))
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=quantization)
    x = nd.create((1, 5, 6, 4), dtype="int8", paddings=(0, 2, 2, 0), padding_offsets=(0, 1, 1, 0), padding_value=-7)
    assert x.check_padding(-7)
    assert not x.buffer.shared
    assert plan(x).tolist() == plan(np.zeros((1, 5, 6, 4), np.int8)).tolist()
    y = nd.reorder(nd.zeros((1, 5, 6, 4), "int8"), x.descriptor, out=nd.zeros_like(x, padding_value=9))
    assert y.check_padding(9)
    assert (y + y).check_padding(9)
    for make in (nd.create, nd.zeros, nd.empty, nd.ones):
        with pytest.raises(nd.DTypeError, match="padding value 300 is no int8"):
            make((2,), dtype="int8", paddings=(1,), padding_value=300)


@pytest.mark.parametrize("kind", ["bytearray", "mmap", "numpy", "array", "buffer", "memoryview"])
def test_d2_wrapping_is_zero_copy(kind):
    """D2: Wrapping is zero-copy: any object that exports one contiguous run of bytes."""
    memory = {
        "bytearray": lambda: bytearray(64), "mmap": lambda: mmap.mmap(-1, 64), "numpy": lambda: np.zeros(16, np.float32),
        "array": lambda: array.array("f", [0] * 16), "buffer": lambda: nd.zeros(16).buffer, "memoryview": lambda: memoryview(bytearray(64)),
    }[kind]()  # fmt: skip
    x = NdArray(ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3), (1, 2), (1, 1)), memory)
    x[1, 2] = 5
    assert np.frombuffer(memory, np.float32)[x.descriptor.offset_of((1, 2))] == 5
    assert x.buffer.owner is memory or kind == "buffer"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a[::2, :, 1:],
        lambda a: a[::-1, ::-2],
        lambda a: a.transpose(2, 0, 1),
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: a[1, 2, 3, ...],
        lambda a: a[:0],
    ],
)
def test_d2_asarray_wraps_strided_exports(dtype, view):
    """D2: `asarray` wraps strided exports (NumPy arrays of any strides) too."""
    import ml_dtypes

    base = np.arange(60).reshape(3, 4, 5).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    source = view(base)
    x = nd.asarray(source)
    assert x.shape == source.shape
    assert np.array_equal(x.to_numpy().astype(float), np.asarray(source).astype(float))
    if source.size > 1 and source.flags.writeable:
        x[...] = 1
        assert (source.astype(float) == 1).all()
    assert x.readonly == (not source.flags.writeable)


@given(st.data())
def test_d2_arrays_that_were_wrapped_before(data):
    """D2: `asarray` wraps strided exports (NumPy arrays of any strides) too."""
    figures = st.lists(st.tuples(st.sampled_from((0, 1, 2, 3)), st.sampled_from((-4, -1, 0, 1, 2, 3, 4))), max_size=3)
    for pairs in data.draw(st.lists(figures, min_size=2, max_size=8)):
        for dtype in (np.int32, np.float32):
            shape, strides = [extent for extent, _ in pairs], [4 * step for _, step in pairs]
            source = np.lib.stride_tricks.as_strided(np.arange(64, dtype=dtype)[32:], shape, strides)
            x = nd.asarray(source)
            assert (x.shape, x.dtype) == (source.shape, source.dtype)
            assert x.strides == tuple(step // 4 for step in memoryview(source).strides)
            assert np.array_equal(x.to_numpy(), source)


def test_d2_asarray():
    """D2: Wrapping is zero-copy; what exports no memory is copied, unless that is forbidden."""
    x = nd.zeros((2, 3))
    assert nd.asarray(x) is nd.asarray(x, copy=False, dtype=x.dtype) is x
    for run in (bytearray(8), array.array("B", [0] * 8), memoryview(bytearray(8))):  # which have no array protocol
        nd.asarray(run, copy=False, dtype="uint8")[3] = 7
        assert bytes(run)[3] == 7
    assert nd.asarray([[1, 2], [3, 4]]).shape == (2, 2)
    assert nd.asarray(np.zeros(3), dtype="float32").dtype == np.float32
    assert not np.shares_memory(nd.array(base := np.zeros(3)).to_numpy(), base)
    assert nd.array(x) is not x
    for obj, kw in (([1, 2], {}), (np.float64(3), {}), (np.zeros(3), {"dtype": "float32"})):
        with pytest.raises(UnsupportedLayoutError, match="copy=False"):
            nd.asarray(obj, copy=False, **kw)
    for make in (nd.asarray, nd.from_dlpack):
        for copy in ("no", 5):
            with pytest.raises(LayoutError, match=f"copy is {copy!r}, it must be None or a bool$"):
                make(np.zeros(3), copy=copy)


class _View(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = (
        [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int)]
        + [("ndim", ctypes.c_int), ("format", ctypes.c_char_p)]
        + [(name, ctypes.c_void_p) for name in ("shape", "strides", "suboffsets", "internal")]
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_d8_bytes_without_a_shape(shape):
    """D8: Who asks for no shape gets one run of bytes, without axes, as from a memoryview: readers of `ndim` look for that many extents."""
    x, view = nd.zeros(shape), _View()
    for flags in (0, 1, 4):  # PyBUF_SIMPLE, PyBUF_WRITABLE, PyBUF_FORMAT
        assert ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(x), ctypes.byref(view), flags) == 0
        assert (view.ndim, view.shape, view.strides, view.len) == (1, None, None, x.nbytes)
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    with pytest.raises(UnsupportedLayoutError, match="contiguous"):
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(nd.zeros((2, 3))[:, :2]), ctypes.byref(view), 0)


def test_d7_what_is_no_array():
    """D7: A failing operation raises an error of this library: rows of different lengths make no array."""
    for make in (nd.array, nd.asarray, nd.zeros_like, lambda rows: nd.reorder(rows, "ab")):
        with pytest.raises(LayoutError, match="no array can be made of a list"):
            make([[1], [2, 3]])


def test_d7_integers_of_arange_are_exact():
    """D7: what an element type cannot hold is refused, what it can hold is exact."""
    assert nd.arange(2**63, 2**63 + 3, dtype="uint64").tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    assert nd.arange(np.int64(5), 0, -2, dtype="uint8").tolist() == [5, 3, 1]
    assert nd.arange(0.5, 3, dtype="int8").tolist() == [0, 1, 2]
    with pytest.raises(OverflowError):
        nd.arange(200, 203, dtype="int8")


@pytest.mark.parametrize(
    ("ends", "words"),
    [(("a",), "real numbers: .*stop='a'"), (([2, 3],), "real numbers"), (((1, (2, 3)),), "real numbers"), ((0, 2, np.array([1, 2])), "real numbers"),
     ((1j,), "real numbers"), ((np.datetime64("2020-01-01"), np.datetime64("2020-01-05")), "real numbers"), ((math.nan,), "cannot be counted: .*stop=nan"),
     ((math.inf,), "cannot be counted"), ((2**70,), "cannot be counted"), ((object(),), "cannot be counted"), ((0, 10, 0.0), "steps that reach"),
     ((None,), "need an end")],
)  # fmt: skip
def test_d7_ends_of_arange(ends, words):
    """D7: A failing operation raises an error of this library: what is no row of numbers is no array."""
    with pytest.raises(LayoutError, match=words):
        nd.arange(*ends)
    assert nd.arange(np.array(1), np.float16(3)).tolist() == [1, 2]


def test_d2_other_byte_orders():
    """D2: With a `dtype` it also converts NumPy's other byte orders and its long double, which are refused else."""
    for foreign in (np.arange(3, dtype=">f4"), np.arange(3, dtype=">i2"), np.arange(3, dtype=np.longdouble)):
        with pytest.raises(nd.DTypeError):
            nd.asarray(foreign)
        with pytest.raises(nd.DTypeError):
            nd.asarray(foreign, copy=False, dtype="float32")
        for dtype in ("float32", "int8", "bfloat16"):
            for make in (nd.asarray, nd.array):
                x = make(foreign, dtype=dtype)
                assert x.dtype == dtype
                assert x.tolist() == [0, 1, 2]
    with pytest.raises(nd.DTypeError):
        nd.asarray(["1"], dtype="float32")


class HandsOutItsOwn:
    """What other libraries' arrays are, torch's tensors among them: no buffer, and `__array__` without a copy."""

    def __init__(self):
        self.values = np.zeros(3, np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_d2_a_copy_is_one_whatever_hands_out_the_memory():
    """D2: Wrapping is zero-copy, and a copy that is asked for shares nothing: whoever hands out memory of its own."""
    for make in (nd.array, lambda obj: nd.array(obj, dtype="float32"), lambda obj: nd.asarray(obj, copy=True)):
        obj = HandsOutItsOwn()
        make(obj)[0] = 7
        assert obj.values[0] == 0
    obj = HandsOutItsOwn()
    nd.asarray(obj)[0] = 7
    assert obj.values[0] == 7


@pytest.mark.parametrize("make", [nd.array, nd.asarray])
def test_d2_numbers_become_their_type_one_by_one(make):
    """D2: Python's numbers, and sequences of them, become that type one by one: none that it cannot hold is taken for another."""
    assert make([2**63 + 1, 1], dtype="uint64").tolist() == [2**63 + 1, 1]
    assert make([2**53 + 1, 0.5], dtype="int64").tolist() == [2**53 + 1, 0]
    assert make([[1.9, -1.9], (True, 3)], dtype="int8").tolist() == [[1, -1], [1, 3]]
    assert make([2**70], dtype="float32").tolist() == make([2**70], dtype="bfloat16").tolist() == [2.0**70]
    for numbers, dtype in (([300], "int8"), ((70000,), "uint16"), ([-1], "uint8"), (-1, "uint64"), (range(255, 257), "uint8"), ([2**64, 1], "uint64")):
        with pytest.raises(OverflowError, match=r"out of bounds|too large"):
            make(numbers, dtype=dtype)
    with pytest.raises(ValueError, match="NaN"):
        make([math.nan], dtype="int8")
    for others in ([1.0, None], ["1"]):
        with pytest.raises(nd.DTypeError, match="no element type"):
            make(others, dtype="float32")
    with pytest.raises(LayoutError, match=r"copy is <class 'numpy.float32'>, it must be None or a bool; an element type is dtype=$"):
        nd.asarray([1, 2], np.float32)
    with pytest.raises(nd.DTypeError, match=r"a shape is one tuple, as \(2, 3\)$"):
        nd.zeros(2, 3)


@pytest.mark.parametrize("layout", ["a", "A2a"])
def test_d2_integers_that_no_type_of_numpy_holds_together(layout):
    """D2: Python's numbers, and sequences of them, become that type one by one."""
    numbers = [2**63 + 1, 1]
    x = nd.reorder(nd.zeros(2, dtype="uint64"), layout)
    x[...] = numbers
    assert x.tolist() == numbers
    x[[1, 0]] = numbers
    assert x.tolist() == numbers[::-1]
    with pytest.raises(OverflowError):
        x[...] = [2**64, 1]
    with pytest.raises(nd.DTypeError):
        x[...] = [2**63 + 1, 1.0]
    assert x.tolist() == numbers[::-1]
    assert nd.full((2,), numbers, dtype="uint64").tolist() == numbers
    for dtype in ("bfloat16", "float32"):
        y = nd.zeros(2, dtype=dtype)
        y[...] = [2**70, 1]
        assert y.tolist() == [2.0**70, 1]


@pytest.mark.parametrize("layout", ["a", "A4a"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_d6_integers_are_written_one_by_one(layout, dtype):
    """D6: Python's integers, sequences and NumPy's scalars of them become the element type one by one, as in D2."""
    x = nd.reorder(nd.zeros(3, dtype=dtype), layout)
    limits = np.iinfo(dtype)
    for values in ([1, 2, 3], (1, 2, 3), range(1, 4), [np.int64(1), 2, 3], np.int64(3), [True, False, True]):
        x[...] = values
        assert x.tolist() == np.broadcast_to(values, 3).tolist()
    x[...] = [int(limits.max), int(limits.min), 0]
    before = x.tolist()
    assert before == [limits.max, limits.min, 0]
    for beyond in (int(limits.max) + 1, int(limits.min) - 1):
        ways = [
            lambda n: x.__setitem__(..., [n, 1, 2]),
            lambda n: x.__setitem__([0, 1], [n, 1]),
            lambda n: x.__setitem__(0, n),
            lambda n: nd.full(3, [n, 1, 2], dtype),
        ]
        ways += [lambda n: nd.full_like(x, [n, 1, 2]), lambda n: np.full_like(x, [n, 1, 2])]
        if -(2**63) <= beyond < 2**63:
            ways += [lambda n: x.__setitem__(..., np.int64(n)), lambda n: x.__setitem__([2, 0], np.int64(n))]
        for write in ways:
            with pytest.raises(OverflowError):
                write(beyond)
            assert x.tolist() == before
    with pytest.raises(LayoutError, match="no array"):
        x[...] = [[1], [2, 3]]


def test_d3_too_small():
    """D3: A buffer that is smaller than `allocLength()` is refused, with both figures."""
    d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3), (0, 1))
    assert NdArray(d, bytearray(32)).shape == (2, 3)
    with pytest.raises(LayoutError, match="31 bytes, the layout needs 32"):
        NdArray(d, bytearray(31))


def test_d3_misaligned():
    """D3: misaligned for its element type: refused."""
    memory = memoryview(bytearray(64))
    with pytest.raises(LayoutError, match="misaligned"):
        NdArray(ShapeDescriptor("float32", "c", (2,)), memory[1:])
    assert NdArray(ShapeDescriptor("int8", "c", (2,)), memory[1:]).size == 2
    with pytest.raises(LayoutError, match="misaligned"):
        nd.asarray(np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64))


@pytest.mark.parametrize("memory", [5, "text", None.__class__, [1, 2]])
def test_d3_no_buffer(memory):
    """D3: no buffer at all: refused."""
    with pytest.raises(UnsupportedLayoutError, match=f"{type(memory).__name__} exports no buffer") as refused:
        NdArray(ShapeDescriptor("int8", "c", (2,)), memory)
    assert ("from_address" in str(refused.value)) == (memory == 5)


def test_d3_what_to_do_with_an_address():
    """D3: an address is no buffer: what the refusal names is one."""
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    x = NdArray(ShapeDescriptor("float32", "c", (2, 2)), (ctypes.c_char * 16).from_address(ctypes.addressof(memory)))
    x[1, 1] = 5
    assert list(memory) == [1, 2, 3, 5]


@pytest.mark.parametrize("dtype", ["O", [("a", "i4"), ("b", "O")]])
def test_d3_references(dtype):
    """D3: of references to Python objects: refused; what is only named so is bytes."""
    with pytest.raises(UnsupportedLayoutError, match="references to Python objects"):
        NdArray(ShapeDescriptor("int8", "c", (4,)), np.zeros(4, dtype))
    assert NdArray(ShapeDescriptor("int8", "c", (4,)), np.zeros(4, [("O", "i4"), ("OO", "i1")])).shape == (4,)


@pytest.mark.parametrize("kind", [ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes.CFUNCTYPE(None)])
def test_d3_pointers(kind):
    """D3: a pointer's own: refused."""
    with pytest.raises(UnsupportedLayoutError, match="not the memory that it points to"):
        NdArray(ShapeDescriptor("int8", "c", (4,)), kind())
    memory = (ctypes.c_float * 6)(*range(6))
    pointer = ctypes.cast(memory, ctypes.POINTER(ctypes.c_float))
    assert NdArray(ShapeDescriptor("float32", "c", (2, 3)), np.ctypeslib.as_array(pointer, (6,))).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_d8_where_the_elements_are():
    """D8: describe the logical elements: the buffer's address and the offset of the first one say where they are, in any layout."""
    x = nd.create((2, 3), paddings=(1, 2), padding_offsets=(0, 1))
    assert x.buffer.address + x.descriptor.offset * x.itemsize == x.__array_interface__["data"][0]
    blocked = nd.reorder(nd.ones((1, 17, 2, 2)), "nChw8c")
    where = blocked.buffer.address + blocked.descriptor.offset_of((0, 16, 1, 1)) * 4
    ctypes.c_float.from_address(where).value = 5
    assert blocked[0, 16, 1, 1] == 5


def test_d3_not_contiguous():
    """D3: not contiguous: refused."""
    with pytest.raises(UnsupportedLayoutError, match="contiguous"):
        NdArray(ShapeDescriptor("int8", "c", (2,)), np.zeros((4, 4), np.int8)[:, ::2])
    row = np.zeros((3, 4), np.dtype([("a", "i1"), ("b", "f4")]))["b"]
    with pytest.raises(UnsupportedLayoutError, match="bytes"):
        nd.asarray(row)


@pytest.mark.parametrize("odd", ["misaligned", "strides"])
def test_d3_what_cannot_be_shared_is_copied(odd):
    """D3: misaligned memory and strides of no whole elements are refused where they are to be shared: a copy has neither."""
    values = numbered((3, 4))
    base = np.zeros(49, np.int8)[1:].view(np.float32).reshape(3, 4) if odd == "misaligned" else np.zeros((3, 4), np.dtype([("a", "i1"), ("b", "f4")]))["b"]
    base[...] = values
    for copied in (nd.array(base), nd.asarray(base, copy=True), nd.array(base, "float64"), *[nd.asarray(base, dtype=t) for t in ("float16", "bfloat16")]):
        assert np.array_equal(copied.astype("float32").to_numpy(), values)
        assert not copied.readonly
        copied[...] = -1
    assert np.array_equal(base, values)
    for shared in ({}, {"copy": False}, {"copy": False, "dtype": "float64"}):
        with pytest.raises((LayoutError, UnsupportedLayoutError), match=r"nd4jlike\.array copies it"):
            nd.asarray(base, **shared)
    with pytest.raises(LayoutError, match="as many at each place"):
        nd.array([[1], [1, 2]])


@pytest.mark.parametrize(("shape", "strides", "status"), [((3, 4), (3, 1), 1), ((3, 4), (0, 1), 9), ((3,), (-1,), 16 | 32)])
def test_d3_layouts_that_no_memory_can_have(shape, strides, status):
    """D3: a layout that no memory can have is refused with its status."""
    with pytest.raises(LayoutError) as caught:
        NdArray(ShapeDescriptor("float32", "c", shape, strides))
    assert caught.value.status & status


def test_d3_arguments():
    """D3: no buffer at all, no descriptor at all."""
    with pytest.raises(TypeError):
        NdArray(None)
    with pytest.raises(TypeError):
        NdArray((2, 3))
    with pytest.raises(TypeError):
        nd.Buffer()
    with pytest.raises(AttributeError):
        nd.zeros(3).__init__(ShapeDescriptor("int8", "c", (1,)))


def test_d2_bytes_are_bytes():
    """D2: any object that exports one contiguous run of bytes: of `bytes` themselves an array of them is made, read-only."""
    run = bytes(range(5))
    x = nd.asarray(run, copy=False)
    assert (x.dtype, x.tolist(), x.readonly) == (np.uint8, [0, 1, 2, 3, 4], True)
    assert np.shares_memory(x, np.frombuffer(run, np.uint8))
    assert nd.array(run).tolist() == x.tolist()


@pytest.mark.parametrize("memory", [bytes(64), memoryview(bytearray(64)).toreadonly()])
def test_d4_read_only_memory(memory):
    """D4: An array over read-only memory is read-only: writing to it raises, and so does asking for a writable export."""
    x = NdArray(ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3), (1, 1)), memory)
    assert x.readonly
    assert x[1:].readonly
    assert x.permute((1, 0)).readonly
    assert x.hosting_array().readonly
    assert not x.to_numpy().flags.writeable
    for write in (lambda: operator.setitem(x, 0, 1), lambda: operator.setitem(x, (0, 0), 1), lambda: x.fill_padding(1)):
        with pytest.raises(LayoutError, match="read-only"):
            write()
    with pytest.raises(BufferError):
        memoryview(x.buffer).cast("B").__setitem__(0, 1) if not memoryview(x.buffer).readonly else (_ for _ in ()).throw(BufferError)
    assert bytes(memory) == bytes(64)


def test_d4_shared_cells():
    """D4: so is one whose strides let two elements share a cell."""
    windows = NdArray(ShapeDescriptor("float32", "c", (3, 2), (1, 1)), bytearray(64))
    assert windows.readonly
    with pytest.raises(LayoutError, match="read-only"):
        windows[...] = 1


@given(st.data())
def test_d4_parts_of_dense_arrays_have_cells_of_their_own(data):
    """D4: read-only is one whose strides let two elements share a cell; those of a part of an array, whatever its steps, do not."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    dense = np.zeros(shape, np.int8, order=data.draw(st.sampled_from("CF"))).transpose(data.draw(st.permutations(range(len(shape)))))
    part = dense[data.draw(keys_of(dense.shape))]
    if isinstance(part, np.ndarray):
        assert not nd.asarray(part).readonly
        assert not nd.from_dlpack(part).readonly


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-7, 7)), max_size=3))
def test_d4_cells_that_are_shared(axes):
    """D4: An array is read-only if its strides let two elements share a cell: whichever those are."""
    view = np.lib.stride_tricks.as_strided(np.zeros(64, np.int8)[32:], *zip(*axes, strict=True)) if axes else np.zeros((), np.int8)
    places = [sum(i * step for i, (_, step) in zip(index, axes, strict=True)) for index in np.ndindex(view.shape)]
    assert nd.asarray(view).readonly or len(set(places)) == len(places)


@given(padded_descriptors(NUMPY_DTYPES), st.data())
def test_d6_views_and_elements(d, data):
    """D6: Basic indexing makes views that share the buffer; an index for every axis gives the element."""
    x, room, inside = padded_pair(d.shape, d.paddings, d.padding_offsets, d.order, d.dtype, 1)
    key = data.draw(keys_of(d.shape))
    expected = inside[key]
    view = x[key]
    assert np.array_equal(np.asarray(view), expected)
    if isinstance(view, NdArray):
        assert view.buffer is x.buffer
        assert np.array_equal(view.to_numpy(), expected)
        view[...] = numbered(view.shape, d.dtype)
        expected[...] = numbered(expected.shape, d.dtype)
    else:
        assert isinstance(view, np.generic)
        x[key] = 1
        inside[key] = 1
    assert np.array_equal(cells(x), room), "elements and padding of the whole buffer"


@pytest.mark.parametrize("order", ORDERS)
def test_d6_assignment_writes_elements_only(order):
    """D6: `x[key] = y` broadcasts and writes logical elements only."""
    for shape, pads, before in small_cases():
        x, room, inside = padded_pair(shape, pads, before, order)
        for value in (7, np.arange(shape[-1]), numbered(shape) * 2, x):
            x[...] = value
            inside[...] = inside.copy() if value is x else value
            assert np.array_equal(cells(x), room), (shape, pads, value)
        x[0] = 3
        inside[0] = 3
        x[..., ::-1] = numbered(shape)
        inside[..., ::-1] = numbered(shape)
        assert np.array_equal(cells(x), room)


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_d6_elements_of_every_type(dtype):
    """D6: an index for every axis gives the element, of the type and the bits that NumPy gives."""
    raw = np.random.default_rng(3).integers(0, 256, 64 * np.dtype(dtype).itemsize).astype(np.uint8)
    values = (raw & 1).astype(bool)[:64] if dtype == "bool" else raw.view(dtype)
    x = nd.asarray(values.reshape(8, 8))
    for i, j in np.ndindex(8, 8):
        found, expected = x[i, j], values.reshape(8, 8)[i, j]
        assert type(found) is type(expected)
        assert found == expected or np.isnan(expected)
        assert np.array_equal(x[i - 8, np.int64(j)], found, equal_nan=np.dtype(dtype).kind == "f")
    for outside in ((8, 0), (-9, 0), (0, 1 << 70), (True, 1.5)):
        with pytest.raises(IndexError):
            x[outside]


def test_d7_more_axes_than_there_can_be():
    """D7: A failing operation raises an error of this library: 32 axes are all there are, whatever NumPy allows."""
    x = nd.zeros((2, 3))
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        for make in (lambda: nd.asarray(np.zeros((1,) * 40)), lambda: x.reshape((2, 3) + (1,) * 40), lambda: np.add.outer(np.zeros((1,) * 31), x)):
            with pytest.raises(LayoutError, match="beyond 32"):
                make()
    with pytest.raises(LayoutError, match="32"):
        x[(None,) * 31]


def test_d6_overlapping_assignment():
    """D6: `x[key] = y` writes what y was before."""
    x = nd.arange(8, dtype="int32")
    x[1:] = x[:-1]
    assert x.to_numpy().tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("x", [nd.arange(3), nd.zeros((3, 2)), NdArray(ShapeDescriptor.from_tag((3, 9), "aB8b"))])
def test_d6_iteration(x):
    """D6: iterating gives the parts along the first axis, each when it is asked for."""
    parts = iter(x)
    next(parts)
    x[1] = 7
    assert np.asarray(next(parts)).min() == 7
    assert len(list(parts)) == 1
    assert len(list(iter(nd.zeros((0, 2))))) == 0
    with pytest.raises(TypeError, match="cannot be iterated over"):
        iter(nd.zeros(()))


@pytest.mark.parametrize("x", [nd.zeros((2, 3)), NdArray(ShapeDescriptor.from_tag((2, 3), "aB8b"))])
def test_d6_indices_beyond_the_machine_word(x):
    """D6: an index for every axis gives the element: one that no machine word holds is outside, whatever is written there."""
    for index in (1 << 63, -(1 << 63) - 1, 1 << 200):
        with pytest.raises(nd.OutOfRangeError, match=f"index {index} is outside axis 0 of extent 2"):
            x[index]
        for value in (1.0, 1, np.ones(3), 1 << 200):
            with pytest.raises(nd.OutOfRangeError, match=f"index {index} is outside"):
                x[index] = value
    with pytest.raises(OverflowError):
        nd.zeros(3, "int8")[0] = 300


def test_d9_axes_in_an_array():
    """D9: `permute`, `transpose`, `squeeze` are views: axes may be an array; None permutes nothing."""
    x = nd.zeros((2, 3, 4))
    assert x.transpose(np.array([2, 0, 1])).shape == x.permute(np.array([2, 0, 1])).shape == (4, 2, 3)
    for none in ((), []):  # no axes are not all of them
        with pytest.raises(LayoutError, match="no permutation"):
            x.transpose(none)
    assert nd.zeros(()).transpose(()).shape == ()
    assert x.transpose(*map(np.array, (-1, 0, 1))).shape == (4, 2, 3)
    for none in (("a", 0, 1), (1.5, 0, 1), ([0], 1, 2)):
        with pytest.raises(LayoutError, match="axes holds"):
            x.transpose(*none)
    assert x.permute(2, 0, 1).shape == x.permute(axes=(2, 0, 1)).shape == (4, 2, 3)
    assert nd.zeros(3).permute(0).shape == (3,)
    for make in (x.permute, x.descriptor.permute):
        with pytest.raises(LayoutError, match="no permutation"):
            make(None)


def test_d6_blocked_elements():
    """D6: an index for every axis gives the element, blocked axes included."""
    x = NdArray(ShapeDescriptor.from_tag((2, 17, 3, 2), "nChw8c"))
    x[...] = numbered(x.shape)
    assert np.array_equal(x.to_numpy(), numbered(x.shape))
    assert x[1, 16, 2, -1] == numbered(x.shape)[1, 16, 2, 1]
    x[0, -1, 0, 0] = 99
    assert x.to_numpy()[0, 16, 0, 0] == 99
    assert x[1, :, 2].shape == (17, 2)
    assert x.check_padding()
    with pytest.raises(UnsupportedLayoutError, match="reorder"):
        x[:, 3:12]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda x: operator.setitem(x, Ellipsis, [[1, 2]]), LayoutError),
        (lambda x: operator.setitem(x, Ellipsis, np.zeros((2, 2), np.int8)), LayoutError),
        (lambda x: operator.setitem(x, 5, 0), IndexError),
        (lambda x: operator.setitem(x, Ellipsis, 1.5), nd.DTypeError),
        (lambda x: operator.setitem(x, Ellipsis, "a"), nd.Nd4jLikeError),
        (lambda x: operator.setitem(x, Ellipsis, [[1, 2, 3], [4, 5, 1j]]), nd.DTypeError),
        (lambda x: operator.setitem(x, Ellipsis, 300), OverflowError),
        (lambda x: x.fill_padding(300), nd.DTypeError),
        (lambda x: x.fill_padding(0.5), nd.DTypeError),
        (lambda x: x.fill_padding([1, 2]), nd.DTypeError),
        (lambda x: x.check_padding("x"), nd.DTypeError),
        (lambda x: x.reshape(4, 2), LayoutError),
        (lambda x: x.squeeze(0), LayoutError),
        (lambda x: x.squeeze("0"), LayoutError),
        (lambda x: x.swapaxes(0, None), nd.OutOfRangeError),
        (lambda x: x.swapaxes(0, 9), nd.LayoutError),
        (lambda x: np.expand_dims(x, 9), nd.LayoutError),
        (lambda x: x.squeeze(9), nd.OutOfRangeError),
        (lambda x: x.squeeze(9), nd.LayoutError),
        (lambda x: x.permute((0, 0)), LayoutError),
        (lambda x: bool(x), ValueError),
        (lambda x: float(x), ValueError),
        (lambda x: len(x[0, 0:1].reshape(())), TypeError),
        (lambda x: x[1.5], IndexError),
        (lambda x: x[[0, 2]], IndexError),
        (lambda x: operator.setitem(x, ([0, 2], 0), 1), IndexError),
    ],
)
def test_d7_failing_operations_write_nothing(make, error):
    """D7: A failing operation raises an error of this library or the builtin that Python's protocols ask for, and writes nothing."""
    x, room, _ = padded_pair((2, 3), (1, 2), (1, 1), "c", np.int8)
    with pytest.raises(error):
        make(x)
    assert np.array_equal(cells(x), room)


@given(padded_descriptors(NUMPY_DTYPES), st.data())
def test_d8_protocols_describe_the_elements(d, data):
    """D8: The buffer protocol, `__array__` and `to_numpy` describe the logical elements with their strides."""
    x, _, inside = padded_pair(d.shape, d.paddings, d.padding_offsets, d.order, d.dtype, 1)
    key = data.draw(keys_of(d.shape))
    key = key if Ellipsis in key else (*key, Ellipsis)
    view, expected = x[key], inside[key]
    assert isinstance(view, NdArray)
    exported = memoryview(view)
    assert exported.shape == expected.shape
    assert exported.format == memoryview(expected).format.replace("l", "q").replace("L", "Q")
    if d.dtype != np.float16:  # memoryview knows no half floats
        assert exported.tolist() == expected.tolist()
    if expected.size:
        for found, wanted, extent in zip(exported.strides, expected.strides, expected.shape, strict=True):
            assert found == wanted or extent == 1
    assert (exported.c_contiguous, exported.f_contiguous) == (expected.flags.c_contiguous, expected.flags.f_contiguous)
    for seen in (np.asarray(view), view.to_numpy(), view.to_numpy(copy=False), view.__array__()):
        assert np.array_equal(seen, expected)
        assert seen.dtype == expected.dtype
        assert not seen.size or np.shares_memory(seen, x.to_numpy())
    for copied in (np.array(view), view.to_numpy(copy=True), view.__array__(copy=True)):
        assert np.array_equal(copied, expected)
        assert not np.shares_memory(copied, x.to_numpy())


def test_d8_what_cannot_be_expressed_is_refused():
    """D8: what they cannot express (blocked layouts, bfloat16, contiguity that is not there) they refuse, and never copy silently."""
    blocked = NdArray(ShapeDescriptor.from_tag((1, 17, 2, 2), "nChw8c"))
    half = nd.zeros((2, 2), dtype="bfloat16")
    inner = nd.create((2, 2), paddings=(0, 1))
    for x in (blocked, half):
        with pytest.raises(BufferError):
            memoryview(x)
    with pytest.raises(UnsupportedLayoutError, match="reorder"):
        blocked.to_numpy(copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        nd.zeros(3).__array__(np.float64, copy=False)
    with pytest.raises(UnsupportedLayoutError, match="contiguous"):
        zlib.crc32(inner)
    assert nd.zeros(3).__array__(np.float64).dtype == np.float64
    assert half.to_numpy().dtype.name == "bfloat16"
    assert np.asarray(half).dtype.name == "bfloat16"


def test_d8_bfloat16_without_ml_dtypes(monkeypatch):
    """D8: bfloat16: refused, saying what to install."""
    import sys

    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(nd.MissingLibraryError, match="ml_dtypes"):
        nd.zeros(2, dtype="bfloat16").to_numpy()


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 1.00390625, 1.01171875, 3.4e38, float("inf"), float("nan"), 1e-40])
def test_d8_bfloat16_rounds_half_to_even(value):
    """D8: bfloat16 values are float32 values rounded half to even (oracle: ml_dtypes)."""
    import ml_dtypes

    x = nd.full((3,), value, dtype="bfloat16")
    expected = np.float32(value).astype(ml_dtypes.bfloat16)
    assert np.array_equal(x.to_numpy()[0], expected, equal_nan=True)
    assert np.array_equal(x[1], np.float32(expected), equal_nan=True)
    assert np.array_equal(np.asarray(x.astype("float32")), np.full(3, np.float32(expected)), equal_nan=True)


@given(padded_descriptors(NUMPY_DTYPES), st.data())
def test_d9_views(d, data):
    """D9: `permute`, `transpose`, `squeeze` are views; `reshape` is one wherever strides and blocks allow, and says so with `copy=False`."""
    x, _, inside = padded_pair(d.shape, d.paddings, d.padding_offsets, d.order, d.dtype, 1)
    axes = tuple(data.draw(st.permutations(range(d.rank))))
    for view, expected in (
        (x.permute(axes), inside.transpose(axes)),
        (x.transpose(), inside.T),
        (x.transpose(tuple(a - d.rank for a in axes)) if d.rank else x.T, inside.transpose(axes)),
        (x.squeeze(), inside.squeeze()),
    ):
        assert np.array_equal(view.to_numpy(), expected)
        assert view.buffer is x.buffer
    new_shape = data.draw(st.sampled_from([(-1,), (x.size,), (1, *x.shape), (*x.shape, 1), tuple(reversed(x.shape))]))
    expected = inside.reshape(new_shape)
    shares = expected.size > 0 and np.may_share_memory(expected, inside)
    reshaped = x.reshape(new_shape)
    assert np.array_equal(reshaped.to_numpy(), expected)
    assert (reshaped.buffer is x.buffer) == shares
    assert x.reshape(new_shape, copy=True).buffer is not x.buffer
    if not shares:
        with pytest.raises(UnsupportedLayoutError, match="copy=False"):
            x.reshape(new_shape, copy=False)


class Tensor:
    """What torch's tensors of bfloat16 are: NumPy cannot read them, DLPack hands them over."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_d2_what_numpy_cannot_read_comes_by_dlpack():
    """D2: what NumPy cannot read and DLPack hands over is wrapped by its capsule, zero-copy: wherever an array is taken."""
    base = nd.create((1, 4, 4, 2), dtype="bfloat16", paddings=(0, 0, 2, 0))
    base[...] = numbered(base.shape).astype(np.float32)
    given = Tensor(base)
    x = nd.asarray(given)
    assert (x.dtype, x.strides[1:]) == (base.dtype, base.strides[1:])
    assert x.data_ptr() == base.data_ptr()
    assert nd.array(given).data_ptr() != base.data_ptr()
    assert nd.asarray(given, dtype="float32").tolist() == base.tolist() == nd.reorder(given, "abcd").tolist()
    weights = nd.ones((3, 3, 2, 1), "bfloat16")
    assert nd.depthwise_conv2d(given, weights).tolist() == nd.depthwise_conv2d(base, weights).tolist()
    x[0, 0, 0, 0] = 9
    assert base[0, 0, 0, 0] == 9
    # What DLPack does not hand over either is an error in the words of the producer.
    for refused in (base[:, ::-1], nd.reorder(base, "aBcd4b")):
        with pytest.raises(UnsupportedLayoutError, match=r"ScalarType.*; by DLPack: .*(strides|blocked)"):
            nd.asarray(Tensor(refused))
    with pytest.raises(UnsupportedLayoutError, match="exports no buffer to share"):
        nd.asarray(given, copy=False)


def test_d2_one_run_in_any_order():
    """D2: any object that exports one contiguous run of bytes, whichever axis of it is the fastest."""
    for values in (np.arange(12, dtype=np.float32).reshape(3, 4, order="F"), nd.arange(12).reshape(3, 4).T.copy()):
        x = NdArray(ShapeDescriptor("float32", "f", values.shape), values)
        assert np.array_equal(x.to_numpy(), np.asarray(values))
        x[1, 2] = 99
        assert np.asarray(values)[1, 2] == 99


@pytest.mark.parametrize(
    "address",
    [
        lambda x: x.buffer.address,
        lambda x: x.__array_interface__["data"][0] - 4 * x.descriptor.offset,
        lambda x: x.data_ptr() - 4 * x.descriptor.offset,
        lambda x: x[:, 1:].data_ptr() - 4 * x[:, 1:].descriptor.offset,
    ],
)
def test_d13_who_has_the_address_can_write(address):
    """D13: memory whose padding was handed out writable (its address, that of the elements) is looked at: dirty padding never reaches a result."""
    x = nd.create((1, 2, 4, 4), paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1))
    x[...] = 1
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 2, 1), np.float32), data_format="NCHW")
    expected = plan(x).to_numpy()
    ctypes.memset(address(x), 0x42, 28)
    assert not x.check_padding()
    assert np.array_equal(plan(x).to_numpy(), expected)
    assert (x + x).check_padding()


def test_d13_the_address_of_the_first_element():
    """D13: its address, that of the elements in `data_ptr()`: of element (0, .., 0), of every layout; reading it off read-only memory shares nothing."""
    for d in (ShapeDescriptor.paddedBufferDescriptor("float32", "f", (2, 3), (1, 4), (1, 2)), ShapeDescriptor.from_tag((1, 17, 2, 2), "nChw8c", "bfloat16")):
        x = nd.NdArray(d)
        x[(0,) * d.rank], x[(0, 1) + (0,) * (d.rank - 2)] = 1, 2
        assert not x.buffer.shared
        place = x.data_ptr()
        assert x.buffer.shared
        assert place == x.buffer.address + d.offset * x.itemsize
        second = place + (d.strides[1] if not d.inner_blocks else 1) * x.itemsize
        for at, number in ((place, 1), (second, 2)):
            assert ctypes.string_at(at, x.itemsize) == nd.full((), number, d.dtype).tobytes()
    whole = nd.arange(6).reshape(2, 3)
    assert whole[1, ::-1].data_ptr() == whole.data_ptr() + 5 * 4
    assert nd.zeros((0, 3)).data_ptr()
    kept = nd.asarray(np.frombuffer(bytes(8), np.int8))
    assert kept.data_ptr() == np.asarray(kept).ctypes.data == kept.ctypes.data
    x = nd.create((2, 3), dtype="int8", paddings=(0, 5))
    assert (x.ctypes.data, list(x.ctypes.strides), x.buffer.shared) == (x.data_ptr(), [8, 1], True)
    with pytest.raises(UnsupportedLayoutError, match="no view of the blocked layout"):
        NdArray(ShapeDescriptor.from_tag((1, 17, 2, 2), "nChw8c")).ctypes  # noqa: B018


def test_d13_every_way_out_is_seen():
    """D13: memory whose padding was handed out writable (.., the elements as NumPy, DLPack or the buffer protocol give them) is looked at."""
    ways_out = (
        np.asarray,
        NdArray.to_numpy,
        memoryview,
        np.from_dlpack,
        np.diagonal,  # a view, as NumPy's functions may make
        lambda x: np.array(x, copy=False)[0],
        lambda x: NdArray.__dlpack__(x, max_version=(1, 0)),
        lambda x: np.apply_along_axis(np.sum, 0, x),  # calls back with views
        lambda x: np.apply_over_axes(np.sum, x, [0]),
        lambda x: np.add(x, np.ma.ones((2, 3))),
    )
    for way in ways_out:
        x = nd.ones((2, 3), paddings=(0, 2))
        unseen = np.lib.stride_tricks.as_strided(_seen(x), (2, 5))
        held = way(x)
        assert x.buffer.shared, way
        del held
        assert x.buffer.shared, way
        unseen[:, 3:] = np.inf
        assert (x * 2).check_padding(), way
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.int8), quantization=nd.Quantization((0.02, 5), 0.1, None))
    x = nd.create((1, 24, 24, 32), dtype="int8", paddings=(0, 2, 2, 0), padding_offsets=(0, 1, 1, 0))
    x.fill_padding(5)
    x[...] = 1
    expected = plan(x).to_numpy()
    ctypes.memset(np.asarray(x).ctypes.data - x.strides[1], 0, 24 * 32)
    assert np.array_equal(plan(x).to_numpy(), expected)


def test_d13_dirt_that_was_found_is_not_forgotten():
    """D13: memory whose padding was found dirty by `check_padding` is looked at: dirty padding never reaches a result."""
    for isa in dispatch.available():
        plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.int8), quantization=nd.Quantization((0.02, 5), 0.1, None), isa=isa)
        x = nd.create((1, 24, 24, 32), dtype="int8", paddings=(0, 2, 2, 0), padding_offsets=(0, 1, 1, 0))
        x.fill_padding(5)
        x[...] = 1
        expected = plan(x).to_numpy()
        ctypes.memset(_seen(x).ctypes.data - x.strides[1], 0, 24 * 32)  # the library's own view, which is not for others
        assert not x.buffer.shared
        assert not x.check_padding(5)
        assert x.buffer.shared
        assert np.array_equal(plan(x).to_numpy(), expected)


def test_d13_what_stays_inside_is_not_handed_out():
    """D13: The buffer remembers what its padding holds: results, copies and element access hand nothing out."""
    x, y = nd.ones((4, 6), paddings=(1, 2)), nd.ones((4, 6), paddings=(1, 2))
    x += y
    x[x > 1] = y[0, 0]
    x[:, 1:3] = y[:, 2:4]
    _ = x.copy(), x.to_numpy(copy=True), np.sum(x), x.sum(axis=0), np.concatenate([x, y]), x[y > 0], x.flatten("F"), x.tolist(), repr(x)
    np.add(x, y, out=x)
    assert not x.buffer.shared
    assert not y.buffer.shared
    assert not NdArray(ShapeDescriptor.from_tag((1, 9, 2, 2), "nChw8c")).buffer.shared


def test_an_array_that_was_never_made():
    """D1: elements lie in a buffer: an array whose `__init__` nobody called has none."""
    x = NdArray.__new__(NdArray)
    assert x.shape == (0,)
    assert repr(x + x).startswith("NdArray(")
    x.__init__(ShapeDescriptor("int8", "c", (2,)))
    with pytest.raises(AttributeError):
        x.__init__(ShapeDescriptor("int8", "c", (2,)))


def test_d10_copies_and_conversions_keep_the_layout():
    """D10: Operations write logical elements only: a copy has the padding of its source, a conversion has zeros."""
    for order in ORDERS:
        x, room, inside = padded_pair((2, 3), (1, 2), (1, 1), order)
        same, converted = x.copy(), x.astype("int16")
        assert same.descriptor == x.descriptor
        assert same.buffer is not x.buffer
        assert np.array_equal(cells(same), room)
        assert converted.descriptor == x.descriptor.astype("int16")
        assert np.array_equal(converted.to_numpy(), inside.astype(np.int16))
        assert converted.check_padding()
        assert np.array_equal(x[::-1].copy().to_numpy(), inside[::-1])
        assert nd.zeros_like(x).descriptor == x.descriptor
        assert nd.full_like(x[1:], 4).to_numpy().tolist() == np.full((1, 3), 4.0).tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_d11_hosting_array(order):
    """D11: `hosting_array()` is the padded buffer itself as an array of shape `padded_shape`."""
    for shape, pads, before in small_cases():
        x, room, _ = padded_pair(shape, pads, before, order)
        host = x.hosting_array()
        assert host.shape == x.descriptor.padded_shape == room.shape
        assert host.buffer is x.buffer
        assert np.array_equal(host.to_numpy(), room)
        assert not host.descriptor.has_padded_buffer


def test_d11_no_elements():
    """D11: `hosting_array()` is the padded buffer itself: without elements there is none, so it has no cells to write to."""
    x = nd.create((0, 3), paddings=(2, 2), padding_offsets=(1, 1))
    assert (x.buffer.nbytes, x.hosting_array().size, x.descriptor.hosting().allocLength()) == (0, 0, 0)


@given(descriptors, st.data())
def test_d12_check_and_fill_padding(d, data):
    """D12: `check_padding(value)` reports every padding cell that differs, with index, offset and value; neither touches an element."""
    x = NdArray(d)
    values = np.ones(d.shape) if d.dtype == "bool" else numbered(d.shape) % 100
    x[...] = values.astype(np.float32 if d.dtype == "bfloat16" else d.dtype)
    elements = {d.offset_of(i) for i in np.ndindex(d.shape)}
    total = d.allocLength()
    assert x.check_padding()
    assert x.check_padding().cells == total - len(elements)
    x.fill_padding(1)
    assert np.array_equal(np.asarray(x.astype("float32").to_numpy()), values.astype(np.float32))
    report = x.check_padding()
    assert len(report) == total - len(elements)
    assert bool(report) == (len(report) == 0)
    assert x.check_padding(1)
    assert set(report.offsets.tolist()) == set(range(total)) - elements
    assert list(report) == list(zip(report.indices, report.offsets.tolist(), [1] * len(report), report.kinds, strict=True))
    x.fill_padding(0)
    assert x.check_padding()
    if len(report):
        at = data.draw(st.integers(0, len(report) - 1))
        host = x.hosting_array()
        position = tuple(i + b for i, b in zip(report.indices[at], d.padding_offsets, strict=True))
        host[position] = 1
        again = x.check_padding()
        assert again.indices == (report.indices[at],)
        assert again.offsets.tolist() == [report.offsets[at]]
        assert [float(v) for v in again.values] == [1.0]
        assert f"{report.indices[at]} at offset {report.offsets[at]} holds" in str(again)


def test_d12_bit_by_bit():
    """D12: `check_padding(value)` reports every padding cell that differs bit by bit: -0.0 is not 0.0, a NaN equals itself."""
    x = nd.create((1, 1), paddings=(0, 1))
    x.fill_padding(-0.0)
    assert not x.check_padding(0.0)
    assert x.check_padding(-0.0)
    x.fill_padding(float("nan"))
    assert x.check_padding(float("nan"))


@pytest.mark.parametrize(
    ("dtype", "largest", "beyond"),
    [
        ("float16", 65519.9, 65520),
        ("float16", 65504, 10**30),
        ("bfloat16", 3.39e38, 3.4e38),
        ("float32", 3.4028235e38, np.float64(1e39)),
        ("bfloat16", 1, 1e300),
    ],
)
def test_d12_padding_does_not_overflow(dtype, largest, beyond):
    """D12: A finite value that would become infinite is no padding; infinity is, and elements overflow as NumPy's do."""
    x = nd.create((2, 2), dtype=dtype, paddings=(0, 1))
    x.fill_padding(3)
    target = nd.NdArray(x.descriptor.from_tag((2, 2), "aB4b", dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (x.fill_padding, x.check_padding, lambda value: nd.reorder(x, "aB4b", padding_value=value), lambda value: x.show(padding=value),
                     lambda value: nd.reorder(x, "aB4b", out=target, padding_value=value)):  # fmt: skip
            for sign in (1, -1):
                with pytest.raises(nd.DTypeError, match=rf"padding value .* is no {dtype}: it overflows to {sign * math.inf}"):
                    call(sign * beyond)
            call(sign * largest)
            assert np.isfinite(nd.reorder(x, "aB4b", padding_value=largest).exploded().to_numpy().astype(np.float32)).all()
        for value in (math.inf, -math.inf, math.nan, np.float64("inf"), np.array(-math.inf)):
            x.fill_padding(value)
            assert x.check_padding(value)
            assert np.array_equal(np.float32(x.hosting_array()[1, 2]), np.float32(value), equal_nan=True)
    if dtype != "bfloat16":
        for write in (x.hosting_array().fill, x.fill, lambda value: x.__setitem__(0, value)):
            with pytest.warns(RuntimeWarning, match="overflow"):
                write(beyond)
        assert np.isinf(x.to_numpy()).all()


def test_d12_the_report_is_a_value_of_its_own():
    """D12: `check_padding(value)` reports: what was found does not change; the text names ten cells and counts the others."""
    x = nd.create((1,), paddings=(11,))
    x.fill_padding(1)
    report = x.check_padding()
    assert len(report) == 11
    assert str(report).count(" holds ") == 10
    assert str(report).endswith(", and 1 more")
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.expected = 1
    assert repr(report) == f"<PaddingReport: {report}>"
    assert report == report  # arrays inside are not compared
    assert len({report, x.check_padding()}) == 2
    ten = nd.NdArray(x.descriptor, x.buffer)[:]
    ten.hosting_array()[1] = 0
    assert "more" not in str(ten.check_padding())


def test_d12_no_padding():
    """D12: `check_padding` reports every padding cell; where there is none, the report says so."""
    x = nd.create((2, 2), paddings=(0, 1))
    assert str(x[:, :1].check_padding()) == "there are no padding cells"
    assert str(x.check_padding(where="tail")) == "there are no tail cells"
    assert repr(x.check_padding()) == "<PaddingReport: all 2 padding cells hold 0.0>"


def test_d12_a_view_owns_the_padding_of_its_whole_axes():
    """D12: `fill_padding(value)` of a view writes the padding that the view owns."""
    x, room, _ = padded_pair((3, 2, 2), (0, 1, 2), (0, 1, 1), "c")
    x[1].fill_padding(5)
    mask = np.ones((3, 4), bool)
    mask[1:, 1:3] = False
    room[1][mask] = 5
    assert np.array_equal(cells(x), room)
    assert x[1].check_padding(5)
    assert x[0].check_padding(9)
    assert not x.check_padding(9)


def test_d13_the_buffer_remembers_and_looks():
    """D13: Wrapped memory, and memory whose padding was handed out writable, is looked at: dirty padding never reaches a result."""
    # Of int16, whose kernel reads the halo on every instruction set.
    quantization = nd.Quantization(input=(1.0, 0), weights=1.0, output=(1.0, 0))
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=quantization, dtype="int16")
    dense = numbered((1, 5, 6, 4)).astype(np.int16)
    expected = np.asarray(plan(dense))
    for dirt in ("fill", "host", "buffer", "wrapped"):
        layout = plan.input_descriptor(dense.shape)
        x = NdArray(layout, bytearray(layout.allocLength() * 2 + 64)) if dirt == "wrapped" else NdArray(layout)
        x[...] = dense
        assert np.array_equal(np.asarray(plan(x)), expected)
        assert "read in place" in plan.explain(x)
        assert x.buffer.shared == (dirt == "wrapped")
        if dirt == "fill":
            x.fill_padding(7)
        elif dirt == "buffer":
            inside = {x.descriptor.offset_of(i) for i in np.ndindex(x.shape)}
            raw = np.frombuffer(x.buffer, np.int16)
            raw[[i for i in range(raw.size) if i not in inside]] = 99
        else:
            host = x.hosting_array()
            for cell in x.check_padding(1).indices:
                host[tuple(i + b for i, b in zip(cell, layout.padding_offsets, strict=True))] = 99
        assert not x.check_padding()
        assert np.array_equal(np.asarray(plan(x)), expected), dirt
        assert "other values" in plan.explain(x)
        x.fill_padding(0)
        assert np.array_equal(np.asarray(plan(x)), expected), dirt


def test_d14_repr():
    """D14: `repr` shows elements, shape, element type, layout, padding and whether it is read-only."""
    x = nd.create((1, 2), dtype="int8", paddings=(1, 2), padding_offsets=(0, 1))
    assert repr(x) == "NdArray([[0, 0]], shape=(1, 2), dtype=int8, layout='ab', paddings=(1, 2), padding_offsets=(0, 1))"
    assert repr(nd.asarray(np.frombuffer(b"ab", np.int8))) == "NdArray([97, 98], shape=(2,), dtype=int8, layout='a', readonly)"
    assert "strides=(8,)" in repr(nd.zeros((8, 8))[:, 1])
    assert "..." in repr(nd.zeros(1000))
    assert "layout='aBcd8b'" in repr(NdArray(ShapeDescriptor.from_tag((1, 3, 1, 1), "nChw8c")))
    assert repr(x.buffer) == "<nd4jlike.Buffer of 8 bytes, writable, our own>"


# Under an allocator that fills what it gives out.
WRITTEN_WHOLE = """
import numpy as np, nd4jlike as nd
kept = np.asarray(nd.empty((50, 40), "uint8"))
assert kept.any(), "the allocator does not fill"
for padded in (nd.empty((5, 4), paddings=(2, 3)), nd.empty_like(nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 3, 3), "nChw8c")))):
    assert padded.check_padding()
x = nd.arange(4000).reshape(2, 10, 10, 20)
expected = np.arange(4000, dtype=np.float32).reshape(2, 10, 10, 20)
assert np.array_equal(x.copy(), expected) and np.array_equal(x.astype("int32"), expected) and np.array_equal(x + 1, expected + 1)
assert np.array_equal(nd.reorder(x, "nChw8c"), expected) and nd.reorder(x, "nChw8c").check_padding()
assert np.array_equal(np.add(x, 1, where=expected > 7), np.where(expected > 7, expected + 1, 0))
assert not np.asarray(nd.zeros_like(x)).any() and not np.asarray(nd.create((50, 40))).any()
weights = np.ones((3, 3, 20, 1), np.float32)
for stride in (1, 3):
    y = np.zeros((2, (9 + stride) // stride, (9 + stride) // stride, 20), np.float32)
    assert nd.depthwise_conv2d(nd.zeros_like(x), weights, stride=stride).shape == y.shape
    assert np.array_equal(nd.depthwise_conv2d(nd.zeros_like(x), weights, stride=stride), y)
    assert not any(np.asarray(grad).any() for grad in nd.depthwise_conv2d_backward(y, x, weights, stride=stride))
"""


@pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="MALLOC_PERTURB_ is glibc's")
def test_d15_what_is_written_as_a_whole_is_not_cleared_before():
    """D15: What is about to be written as a whole is not cleared before: the elements of results, copies and `empty` start with what the memory held."""
    subprocess.run([sys.executable, "-c", WRITTEN_WHOLE], env=os.environ | {"MALLOC_PERTURB_": "90"}, check=True)


def test_d16_large_arrays_lie_by_turns_at_two_places_of_a_page():
    """D16: Element (0, .., 0) of new memory of 1 MiB and more lies by turns at the start and in the middle of a page of 4096 bytes."""
    places = []
    for extent in (1 << 20, 9 << 20, 1 << 20):
        array = nd.NdArray(nd.ShapeDescriptor.padded_buffer_descriptor("int8", "c", (extent,), (5,), (3,)))
        places.append(array.to_numpy().ctypes.data % 4096)
        assert not array.hosting_array().to_numpy().any()
    assert places in ([0, 2048, 0], [2048, 0, 2048])
    assert nd.NdArray(nd.ShapeDescriptor.padded_buffer_descriptor("int8", "c", (1 << 19,), (5,), (3,))).to_numpy().ctypes.data % 64 == 0


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this system has no large pages")
def test_d17_large_arrays_ask_for_large_pages():
    """D17: For new memory of 4 MiB and more the system is asked for large pages, where it has them (Linux)."""
    large = nd.zeros((40 << 20,), "int8")
    address = large.to_numpy().ctypes.data + large.nbytes // 2
    flags = []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        key, _, rest = line.partition(" ")
        if not key.endswith(":"):
            begin, end = (int(part, 16) for part in key.split("-"))
        elif key == "VmFlags:" and begin <= address < end:
            flags = rest.split()
    assert "hg" in flags
    assert not large.to_numpy().any()

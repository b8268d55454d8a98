"""Arm Compute Library's descriptions: clauses of ADR 0007 against what the real library printed and against plain NumPy."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nd4jlike
from nd4jlike import NdArray, ShapeDescriptor
from nd4jlike.adapters.arm_compute import PaddingSize, Tensor, TensorInfo, require_library
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError, OutOfRangeError, UnsupportedLayoutError
from shared import conformance
from small import numbered

SIDES = ("top", "right", "bottom", "left")

# Printed by version 20.08 (arm64): shape, data type, padding (top, right, bottom, left) or "auto", then tensor shape, strides,
# offset of the first element and total size, in bytes.
FIGURES = [
    ((2, 2, 5, 5), "F32", (0, 0, 0, 0), (5, 5, 2, 2), (4, 20, 100, 200), 0, 400),
    ((2, 2, 5, 5), "F32", (0, 1, 1, 0), (5, 5, 2, 2), (4, 24, 144, 288), 0, 576),
    ((2, 2, 5, 5), "F32", "auto", (5, 5, 2, 2), (4, 180, 2340, 4680), 736, 9360),
    ((3, 5, 7), "QASYMM8", (3, 2, 4, 1), (7, 5, 3), (1, 10, 120), 31, 360),
    ((5,), "F32", "auto", (5,), (4, 180), 16, 180),
    ((1, 6), "F32", (1, 2, 3, 1), (6,), (4, 36), 40, 180),
    ((5, 1, 1, 6), "S32", "auto", (6, 1, 1, 5), (4, 184, 1656, 1656), 752, 8280),
    ((1, 3, 4, 1, 1, 5), "QASYMM8_SIGNED", (6, 0, 0, 3), (5, 1, 1, 4, 3), (1, 8, 56, 56, 224), 51, 672),
    ((0,), "F32", (0, 0, 0, 0), (0,), (4, 0), 0, 0),
    ((3, 0, 4), "F32", (1, 1, 1, 1), (4, 0, 3), (4, 24, 48), 28, 144),
    ((0, 3, 4), "F32", "auto", (4, 3, 0), (4, 176, 1936), 720, 0),
]


def small_shapes() -> Iterator[tuple[int, ...]]:
    for rank in (1, 2, 3):
        yield from itertools.product((1, 2, 5), repeat=rank)


def small_cases() -> Iterator[tuple[tuple[int, ...], PaddingSize]]:
    for shape in small_shapes():
        for sides in itertools.product((0, 1, 3), repeat=4):
            yield shape, PaddingSize(*sides)


def hosted_offsets(shape: tuple[int, ...], padding: PaddingSize) -> np.ndarray:
    """Element offsets of an array of `shape` inside a bigger, dense one: the oracle."""
    two = (1,) * (2 - len(shape)) + shape
    room = (*two[:-2], padding.top + two[-2] + padding.bottom, padding.left + two[-1] + padding.right)
    host = np.arange(math.prod(room)).reshape(room)
    return host[..., padding.top : padding.top + two[-2], padding.left : padding.left + two[-1]].reshape(shape)


def described_offsets(descriptor: ShapeDescriptor) -> np.ndarray:
    offsets = np.zeros(descriptor.shape, np.int64)
    for index in np.ndindex(descriptor.shape):
        offsets[index] = descriptor.offset_of(index)
    return offsets


def info_offsets(info: TensorInfo, shape: tuple[int, ...]) -> np.ndarray:
    """Element offsets by the info's own answers, which are in bytes."""
    offsets = np.zeros(shape, np.int64)
    for index in np.ndindex(shape):
        offset = info.byte_offset_of(index)
        assert offset % info.element_size == 0
        offsets[index] = offset // info.element_size
    return offsets


def padded_info(shape: tuple[int, ...], data_type: str, padding: tuple[int, int, int, int] | str) -> TensorInfo:
    info = TensorInfo.from_shape(shape, data_type)
    if padding == "auto":
        info.auto_padding()
    else:
        info.extend_padding(PaddingSize(*padding))
    return info


# Adapters in general


def test_d1_importing_the_adapter_imports_no_foreign_library():
    """D1: importing it imports no foreign library; the names are the library's own."""
    code = (
        "import sys; import nd4jlike; before = set(sys.modules); import nd4jlike.adapters.arm_compute; "
        "assert {name for name in set(sys.modules) - before if not name.startswith('nd4jlike.')} <= sys.stdlib_module_names"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    info = TensorInfo.from_shape((4, 3), "F32")
    assert (info.num_dimensions, info.element_size, info.num_channels, info.is_resizable, info.has_padding) == (2, 4, 1, True, False)
    assert [info.dimension(i) for i in range(6)] == [3, 4, 1, 1, 1, 1]
    for bad in (6, -1):
        with pytest.raises(OutOfRangeError, match="0 to 5"):
            info.dimension(bad)


@pytest.mark.parametrize(
    ("descriptor", "reason"),
    [
        (lambda: ShapeDescriptor("float32", "f", (3, 4)), r"axis 1: stride 3.*permute"),
        (lambda: ShapeDescriptor("float32", "c", (3, 4), (8, 2)), "axis 1: stride 2"),
        (lambda: ShapeDescriptor("float32", "c", (2, 3, 4), (17, 5, 1)), "axis 0: stride 17"),
        (lambda: ShapeDescriptor("float32", "c", (2, 2, 3, 4), (50, 20, 5, 1)), "axis 0: stride 50"),
        (lambda: ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 3, 4), (1, 0, 0), (0, 0, 0)), "axis 0: 1 elements of padding"),
        (lambda: ShapeDescriptor.paddedBufferDescriptor("float32", "f", (2, 3), (1, 1), (0, 0)), "axis 1: stride 3"),
        (lambda: ShapeDescriptor("float32", "c", (1,) * 7), "7 axes"),
    ],
)
def test_d2_layouts_that_cannot_be_expressed_are_refused(descriptor, reason):
    """D2: A layout or element type that the library cannot express is refused, naming the axis, the reason and the values."""
    with pytest.raises(UnsupportedLayoutError, match=reason):
        TensorInfo.from_descriptor(descriptor())


def test_d2_blocked_and_reversed_layouts_are_refused():
    """D2: it is never copied silently."""
    with pytest.raises(UnsupportedLayoutError, match="blocks"):
        TensorInfo.from_descriptor(ShapeDescriptor.from_tag((1, 16, 2, 2), "nChw8c"))
    x = nd4jlike.array(numbered((4, 5)))
    for view, reason in ((x[:, ::-1], "axis 1: stride -1"), (x[::-1], "axis 0: stride -5"), (x.transpose(), "axis 1: stride 5")):
        with pytest.raises(UnsupportedLayoutError, match=reason):
            Tensor.from_array(view)


def test_d2_explicit_strides_that_the_library_lacks_are_refused():
    """D2: naming the axis, the reason and the values: strides that are taken as they are, too."""
    x = nd4jlike.array(numbered((4, 5)))
    for descriptor, reason in (
        (x[:, ::-1].descriptor, "axis 1: stride -1 for 5 elements"),
        (x[::-1].descriptor, "axis 0: stride -5 for 4 elements"),
        (ShapeDescriptor("float32", "c", (3, 4), (0, 1)), "axis 0: stride 0 for 3 elements"),
    ):
        with pytest.raises(UnsupportedLayoutError, match=f"{reason}.*shape"):
            TensorInfo.from_descriptor(descriptor, explicit_strides=True)
    assert TensorInfo.from_descriptor(ShapeDescriptor("float32", "c", (3, 1, 0), (0, 0, 1)), explicit_strides=True).strides_in_bytes == (4, 0, 0)


def test_d2_element_types_that_cannot_be_expressed_are_refused():
    """D2: or element type that the library cannot express is refused."""
    with pytest.raises(DTypeError, match="no data type for bool"):
        TensorInfo.from_descriptor(ShapeDescriptor("bool", "c", (3,)))
    with pytest.raises(DTypeError, match=r"'float16': it must be one of F32, .*; float16 is F16 there"):
        TensorInfo((2,), "float16")
    with pytest.raises(DTypeError, match="'F31'"):
        TensorInfo((3,), "F31")


def test_d3_the_absent_library_is_named():
    """D3: `MissingLibraryError` says what to install; nothing pretends to be the library."""
    with pytest.raises(MissingLibraryError, match="libarm-compute-dev"):
        require_library()


def replay(info: TensorInfo, operations: list, returns: list) -> TensorInfo:
    """Make the calls of an extra case; the info that they leave."""
    for (name, *arguments), returned in zip(operations, returns, strict=True):
        if name == "extend_padding":
            assert info.extend_padding(PaddingSize(**arguments[0])) is returned
        elif name == "auto_padding":
            assert info.auto_padding() is returned
        elif name == "reset_padding":
            info.reset_padding()
        elif name == "init_strides":
            info.init(*arguments)
        else:
            assert name == "allocate"
            tensor = Tensor(info)
            tensor.allocate()
            info = tensor.info
    return info


def assert_as_the_library(info: TensorInfo, case: dict) -> None:
    told = {
        "element_size": info.element_size,
        "num_dimensions": info.num_dimensions,
        "tensor_shape": list(info.tensor_shape),
        "strides_in_bytes": list(info.strides_in_bytes),
        "offset_first_element_in_bytes": info.offset_first_element_in_bytes,
        "total_size": info.total_size,
        "resulting_padding": {side: getattr(info.padding, side) for side in SIDES},
        "has_padding": info.has_padding,
        "is_resizable": info.is_resizable,
        "element_offsets": [[index, info.byte_offset_of(index)] for index, _ in case["element_offsets"]],
    }
    assert told == {name: case[name] for name in told}, case["id"]


def test_d4_every_vector_of_the_real_library():
    """D4: What the real library answered is reproduced whole."""
    for case in conformance("arm_compute_tensor_info.json")["cases"]:
        info = TensorInfo.from_shape(case["shape_nd"], case["dtype"])
        if case["mode"] == "manual":
            info.extend_padding(PaddingSize(**case["padding"]))
        elif case["mode"] == "auto":
            info.auto_padding()
        if case["allocated"]:
            tensor = Tensor(info)
            tensor.allocate()
            info = tensor.info
        assert_as_the_library(info, case)


def test_d4_every_vector_through_a_descriptor():
    """D4: from rules and not from a list of answers."""
    for case in conformance("arm_compute_tensor_info.json")["cases"]:
        asked = PaddingSize(**case["resulting_padding"])
        shape = tuple(case["shape_nd"])
        info = TensorInfo.from_shape(shape, case["dtype"], padding=asked)
        if len(shape) == 1 and asked.top + asked.bottom:
            shape = (1, *shape)
        descriptor = info.to_descriptor(shape)
        again = TensorInfo.from_descriptor(descriptor, data_type=case["dtype"])
        assert again == info, case["id"]
        assert descriptor.allocLength() * descriptor.itemsize == case["total_size"]
        for index, offset in case["element_offsets"]:
            full = (0,) * (descriptor.rank - len(index)) + tuple(index)
            assert descriptor.offset_of(full) * descriptor.itemsize == offset, (case["id"], index)


def test_d4_every_sequence_of_calls_of_the_real_library():
    """D4: What the real library answered is reproduced whole, the sequences of calls included."""
    refused = 0
    for case in conformance("arm_compute_tensor_info.json")["extra_cases"]:
        assert_as_the_library(replay(TensorInfo.from_shape(case["shape_nd"], case["dtype"], strict=False), case["ops"], case["op_returns"]), case)
        names = [name for name, *_ in case["ops"]]
        contradicts = names[:1] in (["allocate"], ["init_strides"]) and len(names) > 1
        try:
            info = replay(TensorInfo.from_shape(case["shape_nd"], case["dtype"]), case["ops"], case["op_returns"])
            assert_as_the_library(info, case)
        except Nd4jLikeError:
            refused += 1
            assert contradicts or "wrap" in case["note"], case["id"]
        else:
            assert not contradicts, case["id"]
    assert refused


def sides(left: int, right: int, top: int, bottom: int) -> PaddingSize:
    """Build a padding from the order in which the depthwise vectors list its sides."""
    return PaddingSize(top, right, bottom, left)


def test_d4_every_padding_that_a_configure_step_asked_for():
    """D4: reproduced whole: the sizes of the tensors of 432 depthwise layers after configure()."""
    for row in conformance("arm_compute_depthwise_padding.json")["rows"]:
        for tensor in ("input", "output"):
            info = TensorInfo.from_shape(row[f"{tensor}_shape_nd"], row["dtype"], data_layout=row["layout"])
            info.extend_padding(sides(*row[tensor]))
            assert info.total_size == row[f"{tensor}_total_size"], row


def test_d4_explicit_strides_before_a_configure_step():
    """D4: reproduced whole: explicit strides that configure() kept, and those that it dropped."""
    for row in conformance("arm_compute_depthwise_padding.json")["explicit_strides"]:
        for strict in (True, False):
            # The check's tensors: 8 x 8 x 8, kernels of 3 x 3 or 5 x 5 by 8 channels, whose padding was 2, 3, 1, 2 in the strides given.
            stride_x, stride_y, stride_z = row["before"]["strides_in_bytes"]
            width, height = stride_y // stride_x - 5, stride_z // stride_y - 3
            info = TensorInfo((width, height, row["before"]["total_size"] // stride_z), row["dtype"], strict=strict)
            assert TensorInfo(info.tensor_shape, row["dtype"], padding=sides(2, 3, 1, 2)).strides_in_bytes == (stride_x, stride_y, stride_z)
            info.init(*row["before"].values())
            if not row["kept"]:
                if strict:
                    with pytest.raises(LayoutError, match="drop"):
                        info.extend_padding(sides(*row["after"]["padding"]))
                    continue
                info.extend_padding(sides(*row["after"]["padding"]))
            after = row["after"]
            assert list(info.strides_in_bytes) == after["strides_in_bytes"], row
            assert (info.offset_first_element_in_bytes, info.total_size) == (after["offset"], after["total_size"]), row


# Shape, strides and padding


@pytest.mark.parametrize(("shape", "data_type", "padding", "tensor_shape", "strides", "offset", "total_size"), FIGURES)
def test_d6_figures(shape, data_type, padding, tensor_shape, strides, offset, total_size):
    """D6: `strides_in_bytes` (two at least), `offset_first_element_in_bytes` and `total_size` (printed by the library)."""
    info = padded_info(shape, data_type, padding)
    assert info.tensor_shape == tensor_shape
    assert info.strides_in_bytes == strides
    assert (info.offset_first_element_in_bytes, info.total_size) == (offset, total_size)


def test_d5_shape_is_reversed_and_loses_its_slow_ones():
    """D5: `tensor_shape` is the NdArray shape reversed, without the size-1 dimensions at its slow end, down to one dimension; at most 6."""
    for shape, expected in [((1, 1, 3), (3,)), ((1, 3, 1), (1, 3)), ((1,), (1,)), ((1, 1), (1,)), ((), (1,)), ((2, 1, 1), (1, 1, 2)), ((1, 0), (0,))]:
        assert TensorInfo.from_shape(shape, "U8").tensor_shape == expected
        assert TensorInfo(shape[::-1], "U8").tensor_shape == expected
    assert TensorInfo.from_shape((2,) * 6, "U8").num_dimensions == 6
    with pytest.raises(LayoutError, match="at most 6"):
        TensorInfo.from_shape((2,) * 7, "U8")


@pytest.mark.parametrize(("shape", "reason"), [((3, -1), "0 or more"), ((2.5,), "integers"), (("a",), "integers")])
def test_d5_shapes_that_are_none(shape, reason):
    """D5: at most 6; extents are integers of 0 or more."""
    with pytest.raises(LayoutError, match=reason):
        TensorInfo(shape, "F32")


def test_d6_the_example_of_the_design():
    """D6: of a bigger array, padded around the last two axes, that hosts the tensor: (2,2,5,5), right 1, bottom 1, float32."""
    d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 2, 5, 5), (0, 0, 1, 1), (0, 0, 0, 0))
    info = TensorInfo.from_descriptor(d)
    assert (info.strides_in_bytes, info.total_size) == ((4, 24, 144, 288), 576)
    assert d.allocLength() * d.itemsize == 576


def test_d6_all_small_cases():
    """D6: are those of a bigger array, padded around the last two axes, that hosts the tensor."""
    for shape, padding in small_cases():
        info = TensorInfo.from_shape(shape, "S16", padding=padding)
        expected = hosted_offsets(shape, padding)
        assert np.array_equal(info_offsets(info, shape), expected), (shape, padding)
        assert info.offset_first_element_in_bytes == 2 * expected.flat[0]
        rows = (shape[-2] if len(shape) > 1 else 1) + padding.top + padding.bottom
        assert info.total_size == 2 * math.prod(shape[:-2]) * rows * (shape[-1] + padding.left + padding.right)
        assert len(info.strides_in_bytes) == max(2, info.num_dimensions)


def test_d7_padding_size():
    """D7: `PaddingSize(top, right, bottom, left)` is immutable."""
    p = PaddingSize(1, 2, 3, 4)
    assert (p.top, p.right, p.bottom, p.left) == (1, 2, 3, 4)
    assert eval(repr(p)) == p
    assert len({p, PaddingSize(1, 2, 3, 4), PaddingSize()}) == 2
    assert (p.empty, p.uniform, PaddingSize().empty, PaddingSize(2, 2, 2, 2).uniform) == (False, False, True, True)
    with pytest.raises(AttributeError):
        p.top = 3
    for bad in ((-1,), (0, 1.5), (0, 0, "1")):
        with pytest.raises(LayoutError):
            PaddingSize(*bad)


def test_d7_paddings_that_are_none():
    """D7: `PaddingSize(top, right, bottom, left)`: the order of sides is said by its name, so nothing else is taken for it."""
    info = TensorInfo.from_shape((3, 4), "F32")
    for bad in ((0, 1, 1, 0), None, 3):
        with pytest.raises(LayoutError, match="PaddingSize"):
            info.extend_padding(bad)
        with pytest.raises(LayoutError, match="PaddingSize"):
            TensorInfo.from_shape((3, 4), "F32", padding=bad)
    assert info == TensorInfo.from_shape((3, 4), "F32")


def test_d7_extend_padding_keeps_maxima():
    """D7: `extend_padding` keeps each side's maximum and returns whether one grew."""
    for first, second in itertools.product(itertools.product((0, 2), repeat=4), itertools.product((0, 1, 3), repeat=4)):
        info = TensorInfo.from_shape((2, 3, 4), "F32")
        assert info.extend_padding(PaddingSize(*first)) is any(first)
        assert info.extend_padding(PaddingSize(*second)) is any(b > a for a, b in zip(first, second, strict=True))
        assert info.padding == PaddingSize(*map(max, first, second))
        info.reset_padding()
        assert info == TensorInfo.from_shape((2, 3, 4), "F32")


def test_d7_auto_padding():
    """D7: `auto_padding` asks for 4 left, 36 right, and 4 rows above and below unless the tensor is one-dimensional."""
    for shape in small_shapes():
        info = TensorInfo.from_shape(shape, "F32")
        rows = 0 if math.prod(shape[:-1]) == 1 else 4
        assert info.auto_padding()
        assert info.padding == PaddingSize(rows, 36, rows, 4)
        assert not info.auto_padding()


# There and back


def test_d8_infos_there_and_back():
    """D8: there and back gives an equal info."""
    for shape, padding in small_cases():
        info = TensorInfo.from_shape(shape, "QSYMM8", padding=padding, data_layout="NHWC")
        assert TensorInfo.from_descriptor(info.to_descriptor(), "QSYMM8", "NHWC") == info


def test_d8_descriptors_there_and_back():
    """D8: and an equal descriptor once its shape is given."""
    for shape, padding in small_cases():
        rank = len(shape)
        if rank == 1 and padding.top + padding.bottom:
            continue
        paddings = (*(0,) * (rank - 2), padding.top + padding.bottom, padding.left + padding.right)[-rank:]
        offsets = (*(0,) * (rank - 2), padding.top, padding.left)[-rank:]
        d = ShapeDescriptor.paddedBufferDescriptor("float64", "c", shape, paddings, offsets)
        info = TensorInfo.from_descriptor(d)
        assert info.padding == padding
        assert info.to_descriptor(shape) == d
        assert info.total_size == d.allocLength() * d.itemsize
        assert info.offset_first_element_in_bytes == d.offset * d.itemsize


@given(
    st.lists(st.integers(0, 20), max_size=6),  # strides stay within 32 bits
    st.lists(st.integers(0, 40), min_size=4, max_size=4),
    st.sampled_from(["F32", "U8", "QASYMM8", "BFLOAT16", "F64", "SIZET"]),
)
def test_d8_there_and_back_at_large(shape, sides, data_type):
    """D8: `from_descriptor` and `to_descriptor` lose nothing."""
    info = TensorInfo.from_shape(shape, data_type, padding=PaddingSize(*sides))
    d = info.to_descriptor()
    assert TensorInfo.from_descriptor(d, data_type) == info
    assert TensorInfo.from_descriptor(d, data_type).to_descriptor(d.shape) == d
    if d.length:
        last = tuple(extent - 1 for extent in d.shape)
        for index in ((0,) * d.rank, last):
            offset = d.offset_of(index) * d.itemsize
            assert info.offset_first_element_in_bytes <= offset <= info.total_size - info.element_size
            if offset < 2**31:
                assert info.byte_offset_of(index) == offset


def test_d8_leading_axes_come_back_by_shape():
    """D8: and an equal descriptor once its shape is given; another shape is refused."""
    info = TensorInfo.from_shape((1, 1, 3, 5), "F32", padding=PaddingSize(1, 2, 3, 4))
    assert info.to_descriptor().shape == (3, 5)
    assert info.to_descriptor((1, 1, 3, 5)).paddings == (0, 0, 4, 6)
    for shape in ((5, 3), (3, 5, 1), (3,), (3, -5)):
        with pytest.raises(LayoutError):
            info.to_descriptor(shape)
    rows = TensorInfo.from_shape((5,), "F32", padding=PaddingSize(top=1))
    assert rows.to_descriptor().shape == (1, 5)
    with pytest.raises(LayoutError, match="needs 2 axes"):
        rows.to_descriptor((5,))


def test_d8_scalars():
    """D8: there and back, for an array without axes too."""
    d = ShapeDescriptor("float32", "c", ())
    info = TensorInfo.from_descriptor(d)
    assert (info.tensor_shape, info.total_size) == ((1,), 4)
    assert info.to_descriptor(()) == d
    with pytest.raises(TypeError, match="descriptor"):
        TensorInfo.from_descriptor(nd4jlike.zeros(()))


def test_d9_gaps_become_right_and_bottom_padding():
    """D9: A strided layout is expressed as right and bottom padding when that reaches every element at the same offset."""
    for shape, (right, bottom) in itertools.product(small_shapes(), itertools.product((0, 1, 3), repeat=2)):
        padding = PaddingSize(right=right, bottom=bottom)
        two = (1,) * (2 - len(shape)) + shape
        room = (*two[:-2], two[-2] + bottom, two[-1] + right)
        strides = tuple(math.prod(room[axis + 1 :]) for axis in range(len(room)))[-len(shape) :]
        d = ShapeDescriptor("float32", "c", shape, strides)
        info = TensorInfo.from_descriptor(d)
        assert np.array_equal(info_offsets(info, shape), described_offsets(d)), (shape, padding)
        assert np.array_equal(described_offsets(info.to_descriptor(shape)), described_offsets(d)), (shape, padding)
        assert (info.padding.top, info.padding.left) == (0, 0)


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4).flatmap(
        lambda shape: st.tuples(st.just(tuple(shape)), st.lists(st.integers(1, 40), min_size=len(shape), max_size=len(shape)).map(tuple))
    )
)
def test_d9_expressed_exactly_or_refused(case):
    """D9: else refused."""
    shape, strides = case
    d = ShapeDescriptor("float32", "c", shape, strides)
    try:
        info = TensorInfo.from_descriptor(d)
    except UnsupportedLayoutError:
        # No dense bigger array with these trailing gaps can host the elements: look at all that could.
        expected = described_offsets(d)
        for right, bottom in itertools.product(range(41), repeat=2):
            assert not np.array_equal(hosted_offsets(shape, PaddingSize(right=right, bottom=bottom)), expected)
    else:
        assert np.array_equal(info_offsets(info, shape), described_offsets(d))


def test_d9_planes_of_one_row_with_rows_above_and_below():
    """D9: A strided layout is expressed as right and bottom padding when that reaches every element: planes of one padded row, whatever is between them."""
    expressed = set()
    for plane, offset in itertools.product(range(6, 13), range(2, 6)):
        d = ShapeDescriptor("int8", "c", (2, 1, 2), (plane, 2, 1), paddings=(0, 2, 0), padding_offsets=(0, 1, 0), offset=offset)
        # Below one row of padding, the offset is the width of rows; three of them at least.
        if plane % offset or plane < 3 * offset:
            with pytest.raises(UnsupportedLayoutError):
                TensorInfo.from_descriptor(d)
            continue
        info = TensorInfo.from_descriptor(d)
        assert np.array_equal(info_offsets(info, d.shape), described_offsets(d)), (plane, offset)
        assert info.padding == PaddingSize(top=1, right=offset - 2, bottom=plane // offset - 2, left=0)
        expressed.add((plane, offset))
    assert expressed == {(6, 2), (8, 2), (10, 2), (12, 2), (9, 3), (12, 3), (12, 4)}


def test_d2_what_a_refusal_advises():
    """D2: refused, naming the axis, the reason and the values: who has the axes in order is not told to permute them."""
    with pytest.raises(UnsupportedLayoutError, match="axis 0: stride 8, a plane is a whole number of rows of 3 elements") as caught:
        TensorInfo.from_descriptor(ShapeDescriptor("int8", "c", (2, 2, 3), (8, 3, 1)))
    assert "permute" not in str(caught.value)
    with pytest.raises(UnsupportedLayoutError, match="permute them to that order"):
        TensorInfo.from_descriptor(ShapeDescriptor("int8", "c", (2, 2, 3)).permute((1, 0, 2)))


def test_d10_unexplained_offsets():
    """D10: An offset that the declared padding does not explain is refused, unless `rebase=True` leaves it to the address of the memory."""
    d = ShapeDescriptor("float32", "c", (3, 4), offset=7)
    with pytest.raises(UnsupportedLayoutError, match=r"offset 7.*rebase"):
        TensorInfo.from_descriptor(d)
    assert TensorInfo.from_descriptor(d, rebase=True) == TensorInfo.from_shape((3, 4), "F32")

    x = nd4jlike.array(numbered((4, 3, 5)))
    tensor = Tensor.from_array(x[2])
    assert tensor.buffer == (x.buffer.address + 4 * 30, 60)


# Where the library would be silent


def test_d11_explicit_strides_are_kept_or_refused():
    """D11: Explicit strides are taken only when asked for (`init`, `explicit_strides=True`)."""
    info = TensorInfo.from_shape((3, 2, 2), "F16")
    info.init((8, 24, 96), 16, 1000)
    assert (info.strides_in_bytes, info.offset_first_element_in_bytes, info.total_size) == ((8, 24, 96), 16, 1000)
    assert (info.has_padding, info.byte_offset_of((2, 1, 1))) == (False, 240)
    d = info.to_descriptor()
    assert (d.strides, d.offset) == ((48, 12, 4), 8)

    for d in (ShapeDescriptor("float32", "f", (3, 4)), ShapeDescriptor("float32", "c", (1, 2, 3), (99, 20, 2), offset=5)):
        info = TensorInfo.from_descriptor(d, explicit_strides=True)
        assert np.array_equal(info_offsets(info, d.shape), described_offsets(d))
        assert np.array_equal(described_offsets(info.to_descriptor(d.shape)), described_offsets(d))
        assert TensorInfo.from_descriptor(info.to_descriptor(), explicit_strides=True).strides_in_bytes == info.strides_in_bytes


@pytest.mark.parametrize(
    "call", [lambda i: i.extend_padding(PaddingSize(1, 1, 1, 1)), lambda i: i.extend_padding(PaddingSize()), TensorInfo.auto_padding, TensorInfo.reset_padding]
)
def test_d11_no_padding_after_explicit_strides(call):
    """D11: changing the padding then, even by zeros, is refused because the library would drop them."""
    info = TensorInfo.from_shape((4, 3), "F32")
    info.init((4, 64), 0, 256)
    with pytest.raises(LayoutError, match=r"drop the explicit strides \(4, 64\)"):
        call(info)
    assert info.strides_in_bytes == (4, 64)


@pytest.mark.parametrize(
    ("strides", "offset", "total_size", "reason"),
    [
        ((4,), 0, 256, "1 strides for 2 dimensions"),
        ((4, 64, 0, 0, 0, 0, 0), 0, 256, "7 strides"),
        ((4, 64), 0, 203, "ends at byte 204"),
        ((4, 0), 0, 256, "stride 0"),
        ((4, 62), 0, 256, "multiples"),
        ((4, 64), 2, 256, "multiples"),
        ((4, -64), 0, 256, "0 or more"),
        ((4, 64), -4, 256, "0 or more"),
        ((4, 2**32), 0, 2**40, "32 bits"),
    ],
)
def test_d11_explicit_strides_that_are_none(strides, offset, total_size, reason):
    """D11: Explicit strides are taken only when they reach each element within the total size."""
    info = TensorInfo.from_shape((4, 3), "F32")
    with pytest.raises((LayoutError, UnsupportedLayoutError), match=reason):
        info.init(strides, offset, total_size)
    assert info == TensorInfo.from_shape((4, 3), "F32")
    padded = TensorInfo.from_shape((4, 3), "F32", padding=PaddingSize(left=1))
    with pytest.raises(LayoutError, match="reset_padding"):
        padded.init((4, 64), 0, 256)


def test_d12_wrapping_strides_are_refused():
    """D12: Strides beyond unsigned 32 bits are refused where the library wraps."""
    side = 2**16
    assert TensorInfo.from_shape((2, side - 1, side), "U8").strides_in_bytes[2] == 2**32 - side
    for shape, data_type in (((2, side, side), "U8"), ((2, side // 2, side), "U16"), ((3, 2, side, side), "U8"), ((3, 2**30), "F32")):
        with pytest.raises(UnsupportedLayoutError, match="wrap"):
            TensorInfo.from_shape(shape, data_type)
    info = TensorInfo.from_shape((2, side - 1, side), "U8")
    with pytest.raises(UnsupportedLayoutError, match="32 bits"):
        info.extend_padding(PaddingSize(bottom=1))
    assert (info.padding, info.total_size) == (PaddingSize(), 2 * (2**32 - side))
    with pytest.raises(UnsupportedLayoutError, match="wrap"):
        TensorInfo.from_descriptor(ShapeDescriptor("uint8", "c", (2, side, side)))
    with pytest.raises(LayoutError, match="machine word"):
        TensorInfo((2**31, 2**33), "U8")


def test_d12_wrapping_offsets_are_refused():
    """D12: and element offsets beyond signed 32 bits are refused where the library wraps."""
    info = TensorInfo.from_shape((2**15, 2**16), "F32")
    assert info.byte_offset_of((2**13 - 1, 2**16 - 1)) == 2**31 - 4
    with pytest.raises(UnsupportedLayoutError, match=f"as {-(2**31)}"):
        info.byte_offset_of((2**13, 0))


@pytest.mark.parametrize("memory", ["allocate", "import"])
def test_d13_memory_freezes_the_info(memory):
    """D13: what would change its padding or strides is refused."""
    tensor = Tensor(TensorInfo.from_shape((2, 3), "F32", padding=PaddingSize(1, 1, 1, 1)))
    if memory == "allocate":
        tensor.allocate()
    else:
        tensor.import_memory(NdArray(tensor.info.to_descriptor()))
    before = tensor.info.copy()
    assert not tensor.info.is_resizable
    assert tensor.info.extend_padding(PaddingSize(1, 0, 1, 0)) is False
    for call in (lambda i: i.extend_padding(PaddingSize(right=2)), TensorInfo.auto_padding, TensorInfo.reset_padding, lambda i: i.init((4, 16), 0, 64)):
        with pytest.raises(LayoutError, match="memory"):
            call(tensor.info)
    assert tensor.info == before
    tensor.free()
    assert (tensor.buffer, tensor.ndarray) == (None, None)
    assert tensor.info.auto_padding()


def test_d13_the_tensor_has_an_info_of_its_own():
    """D13: The info of a tensor that has memory does not change, whatever happens to the one it was made from."""
    info = TensorInfo.from_shape((2, 3), "F32")
    tensor = Tensor(info)
    tensor.allocate()
    assert info.auto_padding()
    assert not tensor.info.has_padding
    assert not copy.copy(tensor.info).is_resizable
    assert Tensor(tensor.info).info.is_resizable


def test_d14_biases():
    """D14: Infos of biases refuse left and top padding, and an offset: the library reads biases from the start of the buffer."""
    info = TensorInfo.from_shape((8,), "F32", biases=True)
    assert info.extend_padding(PaddingSize(right=3, bottom=2))
    before = info.copy()
    for call in (lambda: info.extend_padding(PaddingSize(left=1)), lambda: info.extend_padding(PaddingSize(top=1)), info.auto_padding):
        with pytest.raises(UnsupportedLayoutError, match="biases"):
            call()
    assert info == before
    with pytest.raises(UnsupportedLayoutError, match="biases"):
        TensorInfo.from_descriptor(ShapeDescriptor.paddedBufferDescriptor("float32", "c", (8,), (1,), (1,)), biases=True)
    with pytest.raises(UnsupportedLayoutError, match="biases"):
        TensorInfo.from_shape((8,), "F32", biases=True).init((4,), 8, 40)
    assert TensorInfo.from_shape((8,), "F32").extend_padding(PaddingSize(left=1))


def test_d15_coordinates():
    """D15: Coordinates reach elements and padding; others are refused."""
    info = TensorInfo.from_shape((2, 2, 5, 5), "F32", padding=PaddingSize(top=1, right=2, bottom=3, left=4))
    assert info.byte_offset_of((0, 0, -1, -4)) == info.offset_element_in_bytes((-4, -1)) == 0
    assert info.byte_offset_of((1, 1, 7, 6)) == 1580 == info.total_size - 4
    for index in ((0, 0, -2, 0), (0, 0, 8, 0), (0, 0, 0, -5), (0, 0, 0, 7), (0, 2, 0, 0), (-1, 0, 0, 0), (1, 0, 0, 0, 0)):
        with pytest.raises(OutOfRangeError, match="coordinate"):
            info.byte_offset_of(index)
    assert info.byte_offset_of((0, 0, 0, 0, 0, 0)) == 60
    with pytest.raises(LayoutError, match="integers"):
        info.offset_element_in_bytes((0.5,))
    with pytest.raises(OutOfRangeError, match="coordinate"):
        TensorInfo((0, 3), "F32").offset_element_in_bytes((0, 0))


def test_d16_the_librarys_own_answers():
    """D16: `strict=False` gives the library's own answers for D11, D12, D13 and D15, wrapped and contradictory as they are."""
    # Printed by the library: strides of explicit strides [8, 24, 96], offset 16 after extend_padding of zeros.
    info = TensorInfo.from_shape((3, 2, 2), "F16", strict=False)
    info.init((8, 24, 96), 16, 1000)
    assert info.extend_padding(PaddingSize()) is False
    assert (info.strides_in_bytes, info.offset_first_element_in_bytes, info.total_size) == ((2, 4, 8), 0, 24)

    # Printed by the library: extend_padding after allocate.
    tensor = Tensor(TensorInfo.from_shape((4, 6), "F32", strict=False))
    tensor.allocate()
    assert tensor.info.extend_padding(PaddingSize(1, 1, 1, 1)) is True
    assert (tensor.info.strides_in_bytes, tensor.info.total_size, tensor.info.is_resizable) == ((4, 32), 192, False)

    wrapped = TensorInfo.from_shape((2, 2**16, 2**16), "U8", strict=False)
    assert (wrapped.strides_in_bytes, wrapped.total_size) == ((1, 2**16, 0), 0)
    assert TensorInfo.from_shape((2**15, 2**16), "F32", strict=False).byte_offset_of((2**13, 0)) == -(2**31)


def test_d16_wrapped_infos_are_no_layout():
    """D16: such an info makes no descriptor and takes no memory when its strides are no layout."""
    wrapped = TensorInfo.from_shape((2, 2**16, 2**16), "U8", strict=False)
    with pytest.raises(Nd4jLikeError):
        wrapped.to_descriptor()
    with pytest.raises(Nd4jLikeError):
        Tensor(wrapped).allocate()


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("float32", ["F32"]),
        ("float16", ["F16"]),
        ("bfloat16", ["BFLOAT16"]),
        ("float64", ["F64"]),
        ("int8", ["S8", "QASYMM8_SIGNED", "QSYMM8", "QSYMM8_PER_CHANNEL"]),
        ("uint8", ["U8", "QASYMM8"]),
        ("int16", ["S16", "QSYMM16"]),
        ("uint16", ["U16", "QASYMM16"]),
        ("int32", ["S32"]),
        ("uint32", ["U32"]),
        ("int64", ["S64"]),
        ("uint64", ["U64", "SIZET"]),
    ],
)
def test_d17_data_types(dtype, names):
    """D17: Element types map to the plain data type; a quantized one is given by name and must have the same elements."""
    d = ShapeDescriptor(dtype, "c", (2, 3))
    assert TensorInfo.from_descriptor(d).data_type == names[0]
    for name in names:
        info = TensorInfo.from_descriptor(d, data_type=name)
        assert (info.data_type, info.element_size) == (name, d.itemsize)
        assert info.to_descriptor() == d
    with pytest.raises(DTypeError, match=names[-1]):
        TensorInfo.from_descriptor(d, data_type="F32" if dtype != "float32" else "S32")


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_d8_explicit_strides_in_any_order_of_axes(axes):
    """D8: `from_descriptor` and `to_descriptor` lose nothing: an equal descriptor once its shape is given, for explicit strides in any memory order."""
    d = ShapeDescriptor("int16", "c", (2, 3, 5)).permute(axes)
    assert TensorInfo.from_descriptor(d, explicit_strides=True).to_descriptor(shape=d.shape) == d


def test_d11_explicit_strides_of_few_and_of_many_dimensions():
    """D11: Explicit strides are taken only when asked for: one for each dimension, at most 6; a scalar is one dimension."""
    scalar = ShapeDescriptor("float32", "c", ())
    info = TensorInfo.from_descriptor(scalar, explicit_strides=True)
    assert (info.strides_in_bytes, info.total_size) == ((4,), 4)
    assert info.to_descriptor(shape=()) == scalar
    info = TensorInfo((2, 3), "U8")
    info.init((1, 2, 6, 6, 6, 6), 0, 6)
    assert info.strides_in_bytes == (1, 2, 6, 6, 6, 6)
    for strides in ((1,), (1, 2, 6, 6, 6, 6, 6)):
        with pytest.raises(LayoutError, match=f"{len(strides)} strides for 2 dimensions"):
            info.init(strides, 0, 6)
    for shape in ((1, 3), (3,), (3, 1, 2)):  # extents of 1 excuse nothing
        with pytest.raises(LayoutError):
            TensorInfo(shape, "U8").init((1,) * len(shape), 0, 2)
    empty = TensorInfo((0, 3), "U8")
    empty.init((0, 0), 0, 0)
    assert empty.strides_in_bytes == (0, 0)


def test_d15_only_height_and_width_have_padding():
    """D15: Coordinates reach elements and padding; others are refused, in each of six dimensions."""
    info = TensorInfo((2, 3, 2, 2, 2, 2), "U8", padding=PaddingSize(1, 2, 3, 4))
    assert info.offset_element_in_bytes((-4, -1, 0, 0, 0, 0)) == 0
    assert info.offset_element_in_bytes((3, 5, 1, 1, 1, 1)) == info.total_size - 1
    for dimension, (first, stop) in enumerate([(-4, 4), (-1, 6), (0, 2), (0, 2), (0, 2), (0, 2)]):
        for coordinate in (first - 1, stop):
            with pytest.raises(OutOfRangeError, match=f"coordinate {coordinate} in dimension {dimension}, from {first} to below {stop}"):
                info.offset_element_in_bytes([coordinate if each == dimension else 0 for each in range(6)])


def test_d17_what_names_no_data_type():
    """D17: a quantized one is given by name: what is no name is refused, and so are extents that are none."""
    for name in ("Q7", ["F32"], np.float32, None):
        with pytest.raises(DTypeError, match="arm_compute's"):
            TensorInfo((2, 3), name)
    with pytest.raises(LayoutError, match="extents of a tensor shape must be integers: 2"):
        TensorInfo(2, "F32")


def test_d17_data_layouts():
    """D17: The data layout is `UNKNOWN` unless given."""
    d = ShapeDescriptor("float32", "c", (2, 3))
    assert TensorInfo.from_descriptor(d).data_layout == "UNKNOWN"
    assert TensorInfo.from_descriptor(d, data_layout="NHWC").data_layout == "NHWC"
    assert TensorInfo.from_descriptor(d, data_layout="NHWC") != TensorInfo.from_descriptor(d)
    with pytest.raises(LayoutError, match="NDHWC"):
        TensorInfo.from_descriptor(d, data_layout="NDHWC")


# Memory


@pytest.mark.parametrize(("shape", "data_type", "padding"), [figure[:3] for figure in FIGURES])
def test_d18_allocate(shape, data_type, padding):
    """D18: `Tensor.allocate` gives zeroed memory of at least `total_size` bytes, empty tensors with padding included."""
    tensor = Tensor(padded_info(shape, data_type, padding))
    assert tensor.buffer is None
    tensor.allocate()
    address, nbytes = tensor.buffer
    memory = tensor.ndarray.buffer
    assert nbytes == tensor.info.total_size
    assert memory.address <= address
    assert address + nbytes <= memory.address + memory.nbytes
    assert not tensor.ndarray.to_numpy().any()
    assert bool(tensor.ndarray.check_padding())
    if not tensor.ndarray.size:
        tensor.ndarray.fill_padding(1)
        assert not np.frombuffer(tensor.ndarray.buffer, np.uint8).any()
    with pytest.raises(LayoutError, match="has memory"):
        tensor.allocate()


def test_d18_allocate_explicit_strides():
    """D18: memory of at least `total_size` bytes, whatever was given as total size."""
    tensor = Tensor(TensorInfo.from_shape((3, 2, 2), "F16"))
    tensor.info.init((8, 24, 96), 16, 1000)
    tensor.allocate()
    assert tensor.ndarray.buffer.nbytes >= 1000
    tensor.copy_from(numbered((3, 2, 2), "float16"))
    assert np.array_equal(tensor.copy_to().to_numpy(), numbered((3, 2, 2), "float16"))


def test_d19_import_is_zero_copy():
    """D19: `Tensor.import_memory` is zero-copy and takes an array only if each element lies where the info says."""
    for shape, padding in itertools.islice(small_cases(), 0, None, 7):
        info = TensorInfo.from_shape(shape, "F32", padding=padding)
        x = NdArray(info.to_descriptor())
        tensor = Tensor(info)
        tensor.import_memory(x)
        assert tensor.ndarray is x
        assert tensor.buffer == (x.buffer.address, info.total_size)
        assert not tensor.info.is_resizable


def test_d19_arrays_only():
    """D19: `Tensor.import_memory` takes an array only, and so does `from_array`; a tensor is made of an info."""
    for call in (Tensor(TensorInfo.from_shape((3,), "F32")).import_memory, Tensor.from_array):
        with pytest.raises(TypeError, match="takes an NdArray, not ndarray"):
            call(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="a TensorInfo, not ndarray"):
        Tensor(np.zeros(3, np.float32))


def test_d19_the_bytes_are_where_the_info_says():
    """D19: only if each element lies where the info says: read the raw bytes as the library would."""
    host = bytearray(4 * 1000)
    shape, padding = (3, 4, 5), PaddingSize(1, 2, 3, 4)
    info = TensorInfo.from_shape(shape, "F32", padding=padding)
    room = ShapeDescriptor("float32", "c", (1000,))
    offset = 16 + info.offset_first_element_in_bytes // 4
    strides = info.to_descriptor().strides
    x = NdArray(ShapeDescriptor("float32", "c", shape, strides, offset=offset), NdArray(room, host))
    tensor = Tensor(info)
    tensor.import_memory(x, gaps=True)
    tensor.copy_from(numbered(shape))
    start = tensor.buffer.address - x.buffer.address
    assert start == 64
    raw = np.frombuffer(host, np.float32, count=info.total_size // 4, offset=start)
    assert np.array_equal(raw[hosted_offsets(shape, padding)], numbered(shape))
    assert np.count_nonzero(raw) == np.count_nonzero(np.frombuffer(host, np.float32)) == 60


def test_d19_leading_axes_and_views():
    """D19: zero-copy, for arrays with leading size-1 axes and for views."""
    info = TensorInfo.from_shape((1, 1, 3, 5), "F32", padding=PaddingSize(right=3))
    x = NdArray(info.to_descriptor((1, 1, 3, 5)))
    tensor = Tensor(info)
    tensor.import_memory(x)
    assert tensor.ndarray.shape == (1, 1, 3, 5)

    image = nd4jlike.array(numbered((6, 8)))
    crop = Tensor.from_array(image[1:4, :5], gaps=True)
    assert crop.buffer == (image.buffer.address + 4 * 8, 3 * 8 * 4)
    crop.copy_from(np.zeros((3, 5), np.float32))
    assert np.count_nonzero(image.to_numpy()) == 48 - 15


def test_d19_blocks_that_have_the_right_strides():
    """D19: only if each element lies where the info says: outer strides alone do not tell."""
    blocked = NdArray(ShapeDescriptor.from_tag((8, 1), "Ab8a"))
    tensor = Tensor(TensorInfo.from_shape((8, 1), "F32", padding=PaddingSize(right=7)))
    assert blocked.descriptor.strides[0] == tensor.info.to_descriptor().strides[0]
    rejected(tensor, blocked, LayoutError, "inner blocks", gaps=True)


def test_d19_empty_arrays_have_no_wrong_strides():
    """D19: each element lies where the info says: an empty array has none that does not."""
    tensor = Tensor(TensorInfo.from_shape((0, 3, 4), "F32"))
    tensor.import_memory(NdArray(ShapeDescriptor("float32", "c", (0, 3, 4), (99, 9, 1))))
    assert tensor.buffer.nbytes == 0
    tensor.copy_from(np.zeros((0, 3, 4), np.float32))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (1, 2, 1, 0), (0, 3, 4)])
@pytest.mark.parametrize("padding", [PaddingSize(), PaddingSize(top=3), PaddingSize(1, 0, 3, 0), PaddingSize(1, 2, 3, 4)])
def test_d19_empty_arrays_with_padding(shape, padding):
    """D19: takes an array if `total_size` bytes are there: an empty one has no first element that could lie elsewhere."""
    info = TensorInfo.from_shape(shape, "F32", padding=padding)
    tensor = Tensor(info)
    tensor.allocate()
    twin = Tensor.from_array(tensor.ndarray)
    assert twin.info == info
    assert twin.buffer == tensor.buffer

    if info.total_size:
        rejected(Tensor(info), NdArray(info.to_descriptor(), bytearray(info.total_size - 1)), LayoutError, "total size is")


def test_d19_padding_belongs_to_the_array():
    """D19: and the info's padding is padding of the array too, cell by cell (`gaps=True`: or a gap)."""
    image = nd4jlike.array(numbered((6, 8)))
    with pytest.raises(LayoutError, match=r"{'right': 3}.*gaps=True"):
        Tensor.from_array(image[1:4, :5])
    rows = NdArray(ShapeDescriptor("uint8", "c", (4, 6), (10, 1)), bytearray(40))
    with pytest.raises(LayoutError, match=r"{'right': 4}"):
        Tensor.from_array(rows)
    assert Tensor.from_array(rows, gaps=True).buffer.nbytes == 40
    declared = NdArray(ShapeDescriptor("uint8", "c", (4, 6), (10, 1), paddings=(0, 4)), bytearray(40))
    assert Tensor.from_array(declared).buffer.nbytes == 40
    padded = nd4jlike.zeros((4, 3, 5), paddings=(0, 3, 2), padding_offsets=(0, 1, 1))
    assert Tensor.from_array(padded[1:3]).info.padding == PaddingSize(1, 1, 2, 1)


@pytest.mark.parametrize("side", SIDES)
def test_d19_each_side_of_the_padding_belongs_to_the_array(side):
    """D19: the info's padding is padding of the array too, on each side: as wide rows and as many of them do not make it so."""
    opposite = dict(zip(SIDES, ("bottom", "left", "top", "right"), strict=True))[side]
    shape = (3, 4, 5)
    info = TensorInfo.from_shape(shape, "F32", padding=PaddingSize(**{side: 2, opposite: 1}))
    other = TensorInfo.from_shape(shape, "F32", padding=PaddingSize(**{side: 1, opposite: 2}))
    room = NdArray(ShapeDescriptor("float32", "c", (1000,)))
    d = other.to_descriptor()
    x = NdArray(ShapeDescriptor("float32", "c", shape, d.strides, offset=100, paddings=d.paddings, padding_offsets=d.padding_offsets), room)
    rejected(Tensor(info), x, LayoutError, f"pads {{'{side}': 1}} elements more")
    Tensor(info).import_memory(x, gaps=True)
    Tensor(other).import_memory(x)


def test_d19_the_padding_of_one_row_is_as_far_away_as_the_info_says():
    """D19: the info's padding is padding of the array too, cell by cell: of one row of a wider array, the rows above and below lie elsewhere."""
    wide = nd4jlike.ones((1, 4), paddings=(2, 2), padding_offsets=(1, 1))
    part = wide[:, :2]
    with pytest.raises(LayoutError, match=r"{'top': 1, 'bottom': 1} elements more"):
        Tensor.from_array(part)
    rejected(Tensor(TensorInfo.from_shape((1, 2), "F32", padding=PaddingSize(bottom=1))), part, LayoutError, r"{'bottom': 1}")
    assert Tensor.from_array(part, gaps=True).info.strides_in_bytes == (4, 8)
    assert Tensor.from_array(wide).info.padding == PaddingSize(1, 1, 1, 1)
    row = nd4jlike.ones((3,), paddings=(2,), padding_offsets=(1,))
    assert Tensor.from_array(row).info.padding == PaddingSize(left=1, right=1)
    room = NdArray(ShapeDescriptor("float32", "c", (100,)))
    for strides, own in (((3, 1), True), ((3, 5), False)):  # one column: the cells beside it lie at its axis's stride
        column = NdArray(ShapeDescriptor("float32", "c", (4, 1), strides, offset=9, paddings=(0, 2), padding_offsets=(0, 1)), room)
        tensor = Tensor(TensorInfo.from_shape((4, 1), "F32", padding=PaddingSize(left=1, right=1)))
        if own:
            tensor.import_memory(column)
        else:
            rejected(tensor, column, LayoutError, r"{'right': 1, 'left': 1}", readonly=True)
    explicit = TensorInfo.from_descriptor(ShapeDescriptor("float32", "c", (1, 5)), explicit_strides=True)
    Tensor(explicit).import_memory(nd4jlike.ones((1, 5)))


def test_d19_axes_of_one_element_have_any_stride():
    """D19: each element lies where the info says: an axis of one element has none that does not, an axis of two has."""
    for shape, strides in (((1, 3, 5), (999, 5, 1)), ((3, 1, 5), (5, 999, 1)), ((3, 5, 1), (5, 1, 999))):
        x = NdArray(ShapeDescriptor("float32", "c", shape, strides), bytearray(4000))
        Tensor(TensorInfo.from_shape(shape, "F32")).import_memory(x)
    x = NdArray(ShapeDescriptor("float32", "c", (2, 5), (6, 1)), bytearray(4000))
    rejected(Tensor(TensorInfo.from_shape((2, 5), "F32")), x, LayoutError, r"axes \[0\] differ")


def rejected(tensor: Tensor, array: object, error: type[Exception], reason: str, **options: object) -> None:
    before = (tensor.info.copy(), tensor.info.is_resizable, tensor.buffer, tensor.ndarray)
    with pytest.raises(error, match=reason):
        tensor.import_memory(array, **options)
    assert (tensor.info, tensor.info.is_resizable, tensor.buffer) == before[:3]
    assert tensor.ndarray is before[3]


@pytest.mark.parametrize("holds", [False, True])
def test_d20_failing_imports_change_nothing(holds):
    """D20: A call that fails leaves info and tensor as they were."""
    padding = PaddingSize(1, 1, 1, 1)
    tensor = Tensor(TensorInfo.from_shape((3, 5), "F32", padding=padding))
    if holds:
        tensor.import_memory(NdArray(tensor.info.to_descriptor()))
    rejected(tensor, nd4jlike.zeros((3, 5)), LayoutError, r"strides \(5, 1\).*\(7, 1\)")
    rejected(tensor, nd4jlike.zeros((5, 3)), LayoutError, "shape")
    rejected(tensor, NdArray(TensorInfo.from_shape((3, 5), "S32", padding=padding).to_descriptor()), DTypeError, "int32")
    rejected(tensor, np.zeros((3, 5), np.float32), TypeError, "NdArray")
    room = NdArray(ShapeDescriptor("float32", "c", (100,)))
    rejected(tensor, NdArray(ShapeDescriptor("float32", "c", (3, 5), (7, 1), offset=7), room), LayoutError, "28 bytes before the first element.*32")
    buffer = NdArray(ShapeDescriptor("float32", "c", (34,)))
    rejected(tensor, NdArray(ShapeDescriptor("float32", "c", (3, 5), (7, 1), offset=8), buffer), LayoutError, r"136 bytes.*140")


def test_d19_alignment_and_writability():
    """D19: the element type fits, and the memory is aligned and writable."""
    info = TensorInfo.from_shape((3, 5), "F32")
    d = info.to_descriptor()
    frozen = NdArray(d, bytes(60))
    rejected(Tensor(info), frozen, LayoutError, "read-only")
    with pytest.raises(LayoutError, match="read-only"):
        Tensor.from_array(frozen)
    assert Tensor.from_array(frozen, readonly=True).ndarray is frozen
    tensor = Tensor(info)
    tensor.import_memory(frozen, readonly=True)
    assert tensor.ndarray is frozen

    with pytest.raises(LayoutError, match="misaligned"):
        NdArray(d, memoryview(bytearray(64))[1:])

    x = NdArray(ShapeDescriptor("float32", "c", (3, 5), offset=1), bytearray(64))
    first = x.buffer.address + 4
    multiple = 2 * (first & -first)
    rejected(Tensor(info), x, LayoutError, f"{multiple} bytes asked for", alignment=multiple)
    Tensor(info).import_memory(x, alignment=first & -first)


def test_d20_wrapped_infos_take_no_memory():
    """D20: A call that fails leaves info and tensor as they were, the contradictory ones of `strict=False` too."""
    tensor = Tensor(TensorInfo.from_shape((4, 6), "F32", strict=False))
    tensor.allocate()
    tensor.info.extend_padding(PaddingSize(1, 1, 1, 1))
    rejected(tensor, nd4jlike.zeros((4, 6)), LayoutError, "strides")


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_d21_copies_between_layouts(dtype):
    """D21: `copy_from` and `copy_to` copy elements between layouts and leave padding as it is."""
    for shape in small_shapes():
        values = numbered(shape, dtype)
        descriptor = ShapeDescriptor(dtype, "c", shape)
        source = Tensor(TensorInfo.from_descriptor(descriptor))
        source.allocate()
        source.copy_from(nd4jlike.array(values))

        wanted = source.info.copy()
        wanted = TensorInfo.from_shape(shape, wanted.data_type, padding=PaddingSize(1, 2, 3, 4))
        target = Tensor(wanted)
        target.allocate()
        target.ndarray.fill_padding(9)
        target.copy_from(source.ndarray)
        assert np.array_equal(target.ndarray.to_numpy().reshape(shape), values)
        assert target.ndarray.check_padding(9)
        assert np.array_equal(target.copy_to().to_numpy().reshape(shape), values)

        back = NdArray(ShapeDescriptor.paddedBufferDescriptor(dtype, "f", shape, (3,) * len(shape), (1,) * len(shape)))
        back.fill_padding(7)
        assert target.copy_to(back) is back
        assert np.array_equal(back.to_numpy(), values)
        assert back.check_padding(7)


def test_d21_copies_convert_nothing():
    """D21: convert nothing; other shapes and element types are refused."""
    tensor = Tensor(TensorInfo.from_shape((2, 3), "F32"))
    for call in (lambda: tensor.copy_from(np.zeros((2, 3), np.float32)), tensor.copy_to):
        with pytest.raises(LayoutError, match="without memory"):
            call()
    tensor.allocate()
    tensor.copy_from(numbered((1, 1, 2, 3)))
    for wrong in (np.zeros((3, 2), np.float32), np.zeros(3, np.float32), np.zeros((2, 3, 1), np.float32), np.float32(1)):
        with pytest.raises(LayoutError, match="shape"):
            tensor.copy_from(wrong)
        with pytest.raises(LayoutError, match="shape"):
            tensor.copy_to(nd4jlike.array(wrong))
    with pytest.raises(TypeError, match="copy_to takes an NdArray, not list"):
        tensor.copy_to([[0] * 3] * 2)
    for dtype in ("float64", "int32"):
        with pytest.raises(DTypeError, match=dtype):
            tensor.copy_from(np.zeros((2, 3), dtype))
        with pytest.raises(DTypeError, match=dtype):
            tensor.copy_to(nd4jlike.zeros((2, 3), dtype=dtype))
    assert np.array_equal(tensor.copy_to().to_numpy(), numbered((2, 3)))


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda f: f.__name__)
def test_d21_tensors_are_not_copied(twin_of):
    """D21: A tensor itself is neither copied nor pickled: the buffer of a twin was elsewhere than its memory."""
    tensor = Tensor.from_array(nd4jlike.zeros((100, 100))[50:53, 20:25], gaps=True)
    with pytest.raises(TypeError, match="copy_from"):
        twin_of(tensor)

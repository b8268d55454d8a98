"""ADR 0001: the shape descriptor."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

import nd4jlike as nd
from nd4jlike import LayoutError, OutOfRangeError, ShapeDescriptor, ShapeStatus, UnsupportedLayoutError, tags
from shared import conformance
from small import ORDERS, all_indices, numbered, numpy_strides, small_cases
from strategies import descriptors, extents_for, keys_of, padded_descriptors, shapes, tagged_descriptors

padded = ShapeDescriptor.paddedBufferDescriptor


def extents_in_memory_order(d):
    """(outer extent, stride) from the fast to the slow axis."""
    products = [math.prod(size for a, size in d.inner_blocks if a == axis) for axis in range(d.rank)]
    return [(d.padded_shape[axis] // products[axis], d.strides[axis]) for axis in reversed(d.axes)]


@pytest.mark.parametrize(
    ("order", "shape", "strides", "status"),
    [
        ("c", (2, 3, 4, 5), (60, 20, 5, 1), 0),
        ("c", (2, 3, 4, 5), (800, 200, 40, 5), 0),
        ("c", (2, 3, 4, 5), (20, 20, 5, 1), 1),
        ("f", (5, 4, 3, 2), (1, 5, 20, 60), 0),
        ("f", (5, 4, 3, 2), (1, 5, 19, 60), 1),
        ("c", (3, 4), (1, 3), 1),
    ],
)
def test_d1_strides_may_be_larger_than_packed_and_never_smaller(order, shape, strides, status):
    """D1: Along the memory order each stride reaches over its inner neighbour (figures of libnd4j's ShapeDescriptor_validation)."""
    assert ShapeDescriptor("float32", order, shape, strides).validate() == status


@given(st.data())
def test_d1_any_strides(data):
    """D1: strides may be larger than the packed ones."""
    shape = data.draw(st.lists(st.integers(2, 5), min_size=2, max_size=4))
    factors = [data.draw(st.integers(0, 3)) for _ in shape]
    strides, reach = [0] * len(shape), 1
    holds = True
    for axis in reversed(range(len(shape))):
        strides[axis] = max(1, reach - 1 + factors[axis])
        holds = holds and strides[axis] >= reach
        reach = strides[axis] * shape[axis]
    d = ShapeDescriptor("int8", "c", shape, strides)
    assert bool(d.validate() & ShapeStatus.INCORRECT_STRIDES) == (not holds)


@pytest.mark.parametrize(
    ("shape", "strides", "ews", "status"),
    [((4, 5), (5, 1), 1, 0), ((4, 5), (10, 2), 2, 0), ((4, 5), (10, 2), 1, 2), ((4, 5), (6, 1), 0, 0), ((4, 5), (6, 1), 1, 2), ((31,), (1,), 0, 2)],
)
def test_d2_ews(shape, strides, ews, status):
    """D2: `ews` is the fastest stride if all elements are equally spaced, else 0."""
    assert ShapeDescriptor("float32", "c", shape, strides, ews).validate() == status
    computed = ShapeDescriptor("float32", "c", shape, strides)
    assert computed.validate() == 0
    assert (computed.ews == ews) == (status == 0)


@given(descriptors)
def test_d2_ews_visits_every_element(d):
    """D2: a stride that is stored visits all elements, and padded or blocked buffers store 0."""
    assert d.validate() == 0
    if d.has_padded_buffer or d.inner_blocks:
        assert d.ews == 0
    elif d.ews:
        assert sorted(d.offset_of(i) for i in all_indices(d.shape)) == [d.offset + k * d.ews for k in range(d.length)]


@pytest.mark.parametrize(
    ("d", "length"),
    [
        (ShapeDescriptor("float32", "c", (2, 3, 4, 5), (800, 200, 40, 5)), 1341),
        (ShapeDescriptor("float32", "c", (2, 3, 4, 5), (300, 100, 25, 5)), 596),
        (ShapeDescriptor("float32", "c", (3, 4), offset=7), 19),
        (ShapeDescriptor("float32", "c", ()), 1),
        (ShapeDescriptor("float32", "c", (3, 0)), 0),
        (ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c"), 480),
        (padded("float32", "c", (2, 3, 3, 2), (0, 0, 8, 40), (0, 0, 4, 4)), 2772),
    ],
)
def test_d3_alloc_length(d, length):
    """D3: `allocLength()` is what the buffer must hold from its start."""
    assert d.allocLength() == length


def test_d4_the_example_of_the_adr():
    """D4: shape (2, 2, 5, 5), right 1, bottom 1: 576 bytes, byte strides 4, 24, 144, 288 from the fast axis (libnd4j's ADR 0003)."""
    d = padded("float32", "c", (2, 2, 5, 5), (0, 0, 1, 1))
    assert d.allocLength() * d.itemsize == 576
    assert [s * d.itemsize for s in reversed(d.strides)] == [4, 24, 144, 288]


@pytest.mark.parametrize("order", ORDERS)
def test_d4_padded_strides_are_those_of_the_bigger_array(order):
    """D4: A padded buffer is the buffer of a bigger array."""
    for shape, pads, before in small_cases():
        room = tuple(n + p for n, p in zip(shape, pads, strict=True))
        d = padded("float32", order, shape, pads, before)
        assert d.strides == numpy_strides(order, room), (shape, pads)
        assert d.allocLength() == math.prod(room)
        assert d.padded_shape == room
        assert d.hosting().offset == 0


@pytest.mark.parametrize("order", ORDERS)
def test_d5_offsets(order):
    """D5: `offset` is the sum of `padding_offset * stride`; paddings and offsets are stored."""
    for shape, pads, before in small_cases():
        d = padded("float32", order, shape, pads, before)
        assert d.offset == sum(b * s for b, s in zip(before, d.strides, strict=True))
        assert (d.paddings, d.padding_offsets) == (pads, before)
        assert d.validate() == 0


def test_d5_missing_paddings_are_zero():
    """D5: The ones not given are 0."""
    d = padded("float32", "c", (2, 3, 4, 5), (2, 3), (1,))
    assert d.paddings == (2, 3, 0, 0)
    assert d.padding_offsets == (1, 0, 0, 0)
    assert d.allocLength() == 480


@given(descriptors)
def test_d6_distinct_elements_have_distinct_offsets(d):
    """D6: `offset_of(index)` is the physical offset; distinct indices have distinct offsets."""
    offsets = [d.offset_of(i) for i in all_indices(d.shape)]
    assert len(set(offsets)) == len(offsets) == d.length
    products = [math.prod(size for a, size in d.inner_blocks if a == axis) for axis in range(d.rank)]
    if not any(p > 1 for p in products):
        assert offsets == [d.offset + sum(i * s for i, s in zip(index, d.strides, strict=True)) for index in all_indices(d.shape)]


def test_d6_outside_the_shape():
    """D6: `offset_of(index)` is the physical offset of a logical index; there is none outside the shape."""
    d = ShapeDescriptor("float32", "c", (2, 3))
    for index in ((2, 0), (0, 3), (-1, 0), (0,), (0, 0, 0)):
        with pytest.raises(OutOfRangeError, match=r"\(2, 3\)"):
            d.offset_of(index)


@given(descriptors)
def test_d6_padding_has_offsets_too(d):
    """D6: `padding=True` takes the index of a padding cell, counted from element (0, .., 0): each cell of the buffer has one."""
    ranges = [range(-before, extent - before) for before, extent in zip(d.padding_offsets, d.padded_shape, strict=True)]
    found = [d.offset_of(index, padding=True) for index in itertools.product(*ranges)]
    assert sorted(found) == list(range(d.allocLength()))
    for index in all_indices(d.shape):
        assert d.offset_of(index, padding=True) == d.offset_of(index)
    for axis, reach in enumerate(ranges):
        for beyond in (reach.start - 1, reach.stop):
            with pytest.raises(OutOfRangeError, match="is outside the shape"):
                d.offset_of([beyond if other == axis else 0 for other in range(d.rank)], padding=True)


@given(descriptors, st.data())
def test_d6_as_reports_count_padding(d, data):
    """D6: the index of a padding cell, as `check_padding` counts it; that of views, which have the padding of their whole axes, too."""
    x = nd.create((1,), dtype=d.dtype) if not d.rank else nd.NdArray(d)
    if x.ndim and data.draw(st.booleans()):
        x = x[:, None].permute(tuple(range(x.ndim, -1, -1)))
    if x.ndim and data.draw(st.booleans()) and not x.descriptor.inner_blocks:
        x = x[::-1]
    report = x.check_padding(1)
    assert [x.descriptor.offset_of(index, padding=True) for index in report.indices] == report.offsets.tolist()


def test_d6_an_example_of_padding():
    """D6: negative before element (0, .., 0), never from the end: the halo of a padded image, the tail of a block; none where the shape is empty."""
    d = padded("float32", "c", (3, 4), (2, 4), (1, 2))
    assert [d.offset_of(index, padding=True) for index in ((0, 0), (-1, -2), (-1, 0), (0, -1), (3, 5))] == [10, 0, 2, 9, 39]
    for index in ((-2, 0), (4, 0), (0, 6), (0,), (-1, -2, 0)):
        with pytest.raises(OutOfRangeError, match=r"the rule is -1 <= i < 4, -2 <= i < 6"):
            d.offset_of(index, padding=True)
    blocked = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
    assert blocked.offset_of((0, 23, 4, 3), padding=True) == 479
    with pytest.raises(OutOfRangeError, match=r"outside the shape \(1, 17, 5, 4\): .*padding=True"):
        blocked.offset_of((0, 23, 4, 3))
    with pytest.raises(OutOfRangeError, match=r"outside the shape \(0, 2\)"):
        padded("int8", "c", (0, 2), (1, 1)).offset_of((0, 0), padding=True)


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 9)),
    st.tuples(st.integers(1, 5), st.integers(1, 30)),
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), max_size=2),
)
def test_d6_no_two_elements_of_a_valid_descriptor_share_a_cell(inner, outer, blocks):
    """D6: distinct indices of a valid descriptor have distinct offsets."""
    d = ShapeDescriptor("int8", "c", (outer[0], inner[0]), (outer[1], inner[1]), inner_blocks=blocks)
    offsets = list(map(d.offset_of, all_indices(d.shape)))
    assert d.validate() or len(set(offsets)) == len(offsets)


@given(descriptors)
def test_d7_everything_lies_in_the_allocation(d):
    """D7: `offset <= offset_of(index) < span_length() <= allocLength()` for every index."""
    offsets = [d.offset_of(i) for i in all_indices(d.shape)]
    assert d.offset == min(offsets)
    assert d.span_length() == max(offsets) + 1
    assert d.span_length() <= d.allocLength()


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-9, 9)), min_size=1, max_size=3), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=3)
)
@example(axes=[(17, 3)], blocks=[(0, 8)])
def test_d7_the_span_of_any_strides(axes, blocks):
    """D7: `offset_of(index) < span_length()` for every index, and no more, where blocks overlap or run backwards, too."""
    shape, strides = zip(*axes, strict=True)
    d = ShapeDescriptor("int8", "c", shape, strides, offset=200, inner_blocks=[block for block in blocks if block[0] < len(axes)])
    assert d.span_length() == max(map(d.offset_of, all_indices(shape))) + 1


@given(st.data())
def test_d8_validate_explains_and_never_raises(data):
    """D8: `validate()` never raises; its result explains each broken rule with its values."""
    shape = data.draw(shapes)
    strides = [data.draw(st.integers(-3, 30)) for _ in shape]
    d = ShapeDescriptor("float32", data.draw(st.sampled_from("cf")), shape, strides, data.draw(st.integers(-1, 5)), offset=data.draw(st.integers(0, 9)))
    status = d.validate()
    text = status.explain()
    assert isinstance(status, ShapeStatus)
    if status == 0:
        assert status is ShapeStatus.OK
        assert text == "OK: no rule is broken"
    else:
        broken = [bit for bit in ShapeStatus if bit & status]
        assert len(text.splitlines()) == len(broken)
        for bit, line in zip(broken, text.splitlines(), strict=True):
            assert line.startswith(f"{bit.name}: ")
            assert line.split("; ")[1]


@pytest.mark.parametrize("strides", [(-1, 0), (-7, 0), (0, -1), (0, 0)])
def test_d8_a_broadcast_axis_beside_a_reversed_one(strides):
    """D8: `validate()` never raises, nor divides by a stride of 0."""
    status = ShapeDescriptor("int8", "c", (2, 3), strides, offset=7).validate()
    assert status & ShapeStatus.ZERO_STRIDE
    assert len(status.explain().splitlines()) == len(status)


def test_d8_the_flag_alone_explains_the_rule():
    """D8: its result explains each broken rule; a plain flag has no values to tell."""
    assert ShapeStatus.INCORRECT_EWS.explain() == "INCORRECT_EWS: " + ShapeStatus.INCORRECT_EWS.explain().partition(": ")[2]
    assert "; " not in ShapeStatus.INCORRECT_EWS.explain()
    assert ShapeStatus(3).explain().count("\n") == 1


@given(descriptors, st.data())
def test_d9_a_value(d, data):
    """D9: equality, hash and order compare every field, and `eval(repr(d)) == d`; pickle keeps them."""
    names = {"ShapeDescriptor": ShapeDescriptor}
    views = [d, d.permute(data.draw(st.permutations(range(d.rank)))) if d.rank else d]
    if not d.inner_blocks:
        views.append(d.subarray(data.draw(keys_of(d.shape))))
    for one in views:
        again = eval(repr(one), names)
        assert again == one
        assert hash(again) == hash(one)
        assert not again < one
        assert not one < again
        assert pickle.loads(pickle.dumps(one)) == one
        assert copy.copy(one) == one


def test_d9_every_field_counts():
    """D9: equality, hash and order compare every field."""
    base = ShapeDescriptor("float32", "c", (2, 3), (3, 1), 1, offset=4)
    others = [
        ShapeDescriptor("int32", "c", (2, 3), (3, 1), 1, offset=4),
        ShapeDescriptor("float32", "f", (2, 3), (3, 1), 1, offset=4),
        ShapeDescriptor("float32", "c", (3, 2), (3, 1), 1, offset=4),
        ShapeDescriptor("float32", "c", (2, 3), (4, 1), 1, offset=4),
        ShapeDescriptor("float32", "c", (2, 3), (3, 1), 0, offset=4),
        ShapeDescriptor("float32", "c", (2, 3), (3, 1), 1, offset=5),
        ShapeDescriptor("float32", "c", (2, 3), (3, 1), 1, offset=4, paddings=(0, 1)),
        ShapeDescriptor("float32", "c", (2, 3), (3, 1), 1, offset=4, paddings=(0, 1), padding_offsets=(0, 1)),
        ShapeDescriptor("float32", "c", (2, 3), (3, 1), 1, offset=4, inner_blocks=((0, 1),)),
    ]
    everything = [base, *others]
    assert len(set(everything)) == len(everything)
    assert len({hash(one) for one in everything}) == len(everything)
    for other in others:
        assert other != base
        assert (other < base) != (base < other)
    assert base != "float32"


def test_d9_lower_rank_sorts_first():
    """D9: equality and order compare every field, the rank first (libnd4j's basic_test_6); letter and axes also where they alone differ."""
    assert ShapeDescriptor("int8", "c", (3,)) != ShapeDescriptor("int8", "f", (3,))
    assert ShapeDescriptor("int8", "c", (2, 1, 1), axes=(0, 1, 2)) != ShapeDescriptor("int8", "c", (2, 1, 1), (1, 1, 1), axes=(0, 2, 1))
    assert ShapeDescriptor("int32", "c", ()) < ShapeDescriptor("float32", "c", (10, 10))


def test_d9_immutable():
    """D9: Descriptors are immutable."""
    d = ShapeDescriptor("float32", "c", (2, 3))
    for name in ("shape", "strides", "dtype", "order", "offset", "ews", "paddings"):
        with pytest.raises(AttributeError):
            setattr(d, name, None)
    with pytest.raises(AttributeError):
        d.__init__("int8", "c", (1,))
    assert d == ShapeDescriptor("float32", "c", (2, 3))


def test_d10_bit_25():
    """D10: `has_padded_buffer` is libnd4j's `ARRAY_HAS_PADDED_BUFFER`: bit 25, never shared with another flag."""
    plain, with_padding = ShapeDescriptor("int8", "c", (3, 4)), padded("int8", "c", (3, 4), (0, 1))
    assert with_padding.to_shape_info()[-3] == plain.to_shape_info()[-3] | 1 << 25
    assert (plain.has_padded_buffer, with_padding.has_padded_buffer) == (False, True)
    for view in (plain.subarray((slice(1, 3), 2)), plain.permute((1, 0)), plain.subarray((slice(None, None, -1),))):
        assert not view.to_shape_info()[-3] & 1 << 25


@given(padded_descriptors())
def test_d11_shape_info_round_trip(d):
    """D11: Read back, a plain or padded layout has the same shape, strides, type and order."""
    info = d.to_shape_info()
    back = ShapeDescriptor.from_shape_info(info)
    assert back.to_shape_info()[: 2 * d.rank + 1] == info[: 2 * d.rank + 1]
    assert (back.shape, back.strides, back.dtype, back.order) == (d.shape, d.strides, d.dtype, d.order)
    assert back.validate() == 0
    if d.rank and any(d.paddings[axis] for axis in d.axes[1:]):
        assert [back.paddings[axis] for axis in d.axes[1:]] == [d.paddings[axis] for axis in d.axes[1:]]
        assert back.has_padded_buffer
        assert back.ews == d.ews
    if not d.has_padded_buffer:
        assert back == d


STEPS = [slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(1, 3), slice(1, 2), 1]


@pytest.mark.parametrize("order", ["c", "f"])
def test_d11_shape_info_of_parts_of_padded_buffers(order):
    """D11: A part whose strides are not those of a padded buffer of its own has no bit 25: it is read as a plain layout."""
    flagged = 0
    for key in itertools.product(STEPS, repeat=3):
        part = padded("int8", order, (4, 3, 5), (1, 2, 3), (1, 1, 2)).subarray(key)
        info = part.to_shape_info()
        back = ShapeDescriptor.from_shape_info(info)
        assert (back.shape, back.strides) == (part.shape, part.strides)
        assert not back.validate() & ~ShapeStatus.NEGATIVE_STRIDE & ~ShapeStatus.OUT_OF_BUFFER & ~ShapeStatus.INCORRECT_STRIDES
        assert (back.validate() & ShapeStatus.INCORRECT_STRIDES) == (part.validate() & ShapeStatus.INCORRECT_STRIDES)
        # All that is read as padding is padding: an axis without any gets none.
        assert all(theirs in (0, ours) for ours, theirs in zip(part.paddings, back.paddings, strict=True))
        if info[-3] >> 25 & 1:
            assert part.tag is not None
            flagged += 1
        else:
            assert info[-2] == back.ews
    assert 0 < flagged < len(STEPS) ** 3 / 2


@pytest.mark.parametrize("d", [padded("int8", "c", (4,), (4,)), padded("int8", "c", (3, 4), (2, 0)), padded("int8", "f", (3, 4), (0, 2))])
def test_d11_shape_info_of_a_padded_slowest_axis(d):
    """D11: paddings of all axes but the slowest come back: without any, what is read is a plain layout that can be allocated."""
    assert d.to_shape_info()[-3] >> 25 & 1
    assert ShapeDescriptor.from_shape_info(d.to_shape_info()) == ShapeDescriptor("int8", d.order, d.shape)


@pytest.mark.parametrize("order", ["c", "f"])
def test_d11_shape_info_of_padded_buffers_without_elements(order):
    """D11: paddings of all axes but the slowest come back from the strides, whatever the memory order; of arrays without elements, too."""
    for shape in itertools.product((0, 1, 4), repeat=3):
        d = padded("int8", order, shape, (1, 2, 3), (0, 1, 3))
        back = ShapeDescriptor.from_shape_info(d.to_shape_info())
        assert back.shape == shape
        assert [back.paddings[axis] for axis in d.axes[1:]] == [d.paddings[axis] for axis in d.axes[1:]]
        assert back.to_shape_info() == d.to_shape_info()
    assert ShapeDescriptor.from_shape_info([2, 0, 3, 0, 0, 8200 | 1 << 25, 0, 99]).shape == (0, 3)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_d11_shape_info_of_permuted_padded_buffers(axes):
    """D11: Paddings of all axes but the slowest come back from the strides, whatever the memory order; axes of extent 1 included."""
    for shape in itertools.product((1, 5), repeat=3):
        d = padded("float32", "c", shape, (2, 0, 3)).permute(axes)
        back = ShapeDescriptor.from_shape_info(d.to_shape_info())
        assert (back.shape, back.strides, back.order) == (d.shape, d.strides, d.order)
        assert back.has_padded_buffer
        assert back.validate() == 0
        if 1 not in shape:
            assert [back.paddings[axis] for axis in d.axes[1:]] == [0, 3]


@pytest.mark.parametrize(
    ("sequence", "error"),
    [([2, 3, 4, 4, 1, 8192, 1], LayoutError), ([33] + [1] * 70, LayoutError), ([], LayoutError), ([2, 3, 4, 4, 1, 8192, 1, 100], LayoutError),
     ([1, 5, 1, 8194, 1, 99], UnsupportedLayoutError), ([1, 5, 1, 1 << 11 | 1 << 12, 1, 99], nd.DTypeError), ([1, "a", 1, 8192, 1, 99], LayoutError),
     ([2, 3, 4, 9, 2, 8192 | 1 << 25, 0, 99], LayoutError), ([2, 1, 4, 2, 1, 8192 | 1 << 25, 0, 99], LayoutError)],
)  # fmt: skip
def test_d11_bad_shape_info(sequence, error):
    """D11: shapeInfo is read; what is no shapeInfo is refused."""
    with pytest.raises(error):
        ShapeDescriptor.from_shape_info(sequence)


@pytest.mark.parametrize("bit", [1, 2, 4, 9])
def test_d11_flags_of_other_arrays(bit):
    """D11: shapeInfo is read: sparse, compressed, ragged and complex arrays are refused."""
    with pytest.raises(UnsupportedLayoutError, match="sparse, compressed, ragged or complex"):
        ShapeDescriptor.from_shape_info([1, 5, 1, 8192 | 1 << bit, 1, 99])


def test_d11_blocked_layouts_have_no_shape_info():
    """D11: shapeInfo is written: plain and padded layouts only."""
    with pytest.raises(UnsupportedLayoutError, match="aBcd8b"):
        ShapeDescriptor.from_tag((1, 16, 2, 2), "nChw8c").to_shape_info()


def test_d12_letters_of_no_tag():
    """D12: letter `a` is axis 0; what is no letter of an axis is refused, saying which there are."""
    rule = "position 0: letter 'x' is none of g, o, i, d, h, w; letters are a to l, or l, d, n, i, g, o, c; t, n, c; n, c, d, h, w"
    with pytest.raises(LayoutError, match=rule):
        ShapeDescriptor.from_tag((1, 2), "xy")
    with pytest.raises(LayoutError, match="'any' is no layout, it asks oneDNN for one"):
        ShapeDescriptor.from_tag((1, 2), "any")


@pytest.mark.parametrize(
    ("tag", "letters"),
    [("nchw", "abcd"), ("nhwc", "acdb"), ("chwn", "bcda"), ("ncdhw", "abcde"), ("ndhwc", "acdeb"), ("nwc", "acb"), ("ncw", "abc"), ("oihw", "abcd"),
     ("hwio", "cdba"), ("goihw", "abcde"), ("hwigo", "decab"), ("tnc", "abc"), ("ntc", "bac"), ("ldnc", "abcd"), ("ldigo", "abcde"), ("x", "a"), ("nc", "ab"),
     ("io", "ba"), ("nChw8c", "aBcd8b"), ("nchw8c", "aBcd8b"), ("OIhw4i16o4i", "ABcd4b16a4b"), ("gOIhw16i16o", "aBCde16c16b"), ("Goihw16g", "Abcde16a"),
     ("OhwI24o", "Acdb24a"), ("gIOhw2i8o16i2o", "aBCde2c8b16c2b")],
)  # fmt: skip
def test_d12_named_tags(tag, letters):
    """D12: letter `a` is axis 0; named tags are parsed by rule (names of oneDNN's dnnl_format_tag_t)."""
    assert tags.canonical(*tags.parse(tag)) == letters
    assert tags.parse(letters) == tags.parse(tag) == tags.parse(tag.lower())


def test_d12_every_tag_of_onednn():
    """D12: Canonical letter tags and named tags are parsed by rule (all tags of the conformance file)."""
    for letters, row in conformance("onednn_memory_desc.json")["tags"].items():
        for name in (letters, *row["aliases"]):
            assert tags.canonical(*tags.parse(name)) == letters, name


@given(tagged_descriptors())
def test_d12_tag_and_from_tag_are_inverse(d):
    """D12: letter `a` is axis 0: the tag of a layout describes it again."""
    assert ShapeDescriptor.from_tag(d.shape, d.tag, d.dtype, d.paddings, d.padding_offsets) == d


def test_d13_c17_in_nchw8c():
    """D13: A blocked axis is rounded up to whole blocks: C = 17 in nChw8c has padded C 24 (oneDNN)."""
    d = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
    assert d.padded_shape == (1, 24, 5, 4)
    assert d.strides == (480, 160, 32, 8)
    assert d.inner_blocks == ((1, 8),)
    assert d.offset_of((0, 16, 4, 3)) == 2 * 160 + 4 * 32 + 3 * 8


def test_d13_every_vector_of_onednn():
    """D13: strides are those between outer blocks; all inner blocks together are one dense run (real oneDNN's answers)."""
    data = conformance("onednn_memory_desc.json")
    for case in data["vectors"] + data["zero_dims"]:
        d = ShapeDescriptor.from_tag(case["dims"], case["tag"])
        assert list(d.padded_shape) == case["padded_dims"]
        assert list(d.strides) == case["strides"]
        assert [list(pair) for pair in d.inner_blocks] == [list(pair) for pair in zip(case["inner_idxs"], case["inner_blks"], strict=True)]
        itemsize = {"f64": 8, "f32": 4, "s32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1}[case.get("data_type", "f32")]
        assert d.allocLength() * itemsize == case["size_bytes"]
        for index, offset in case.get("offsets", ()):
            assert d.offset_of(index) == offset


@given(tagged_descriptors())
def test_d13_blocks_by_reshape(d):
    """D13: the outermost block first: the same as NumPy's reshape, transpose and flatten of the padded array."""
    values = np.zeros(d.padded_shape, np.int64)
    inside = tuple(slice(b, b + n) for b, n in zip(d.padding_offsets, d.shape, strict=True))
    values[inside] = numbered(d.shape, np.int64)
    split, place = [], {}
    for axis in range(d.rank):
        sizes = [size for a, size in d.inner_blocks if a == axis]
        place[axis] = len(split)
        split += [d.padded_shape[axis] // math.prod(sizes), *sizes]
    taken = dict.fromkeys(range(d.rank), 0)
    order = [place[axis] for axis in d.axes]
    for axis, _ in d.inner_blocks:
        taken[axis] += 1
        order.append(place[axis] + taken[axis])
    memory = values.reshape(split).transpose(order).ravel()
    assert memory.size == d.allocLength()
    for index, value in np.ndenumerate(numbered(d.shape, np.int64)):
        assert memory[d.offset_of(index)] == value


def test_d9_blocks_too_large_for_a_tag():
    """D9: Descriptors are immutable; equality, hash and order compare every field, and `eval(repr(d)) == d`."""
    for size in (10**18 - 1, 10**18, 2**63 - 1):
        d = ShapeDescriptor("int8", "c", (0,), inner_blocks=[(0, size)])
        assert eval(repr(d)) == d
        assert d.tag == (f"A{size}a" if size < 10**18 else None)


def test_d12_the_most_axes_of_a_tag():
    """D12: letter `a` is axis 0; twelve axes have letters, more have no tag."""
    assert ShapeDescriptor.from_tag((1,) * 12, "abcdefghijkl").tag == ShapeDescriptor("float32", "c", (1,) * 12).tag == "abcdefghijkl"
    assert ShapeDescriptor("float32", "c", (1,) * 13).tag is None


@pytest.mark.parametrize(
    ("tag", "position"),
    [("", 0), ("8c", 0), ("nqhw", 1), ("abce", 3), ("nchwc", 4), ("nChw8", 5), ("nChw0c", 4), ("nChw8x", 5), ("nChw8c!", 6), ("abcdefghijklm", 12),
     ("nChw8g", 5), ("n-chw", 1), ("bcd", 0), ("aacd", 1), ("aBcb", 3), ("abcd0a", 4), ("aBcd8b0b", 6), ("abcd8", 5), ("aBcd8bb", 6), ("nhwx", 3),
     ("xnhw", 0), ("xx", 0), ("abc\u0130", 3), ("\u0130", 0), ("ab\u212ad", 2), ("aBcd\u0668b", 4), ("abc d", 3)],
)  # fmt: skip
def test_d14_errors_name_the_position(tag, position):
    """D14: A tag that breaks the grammar raises `LayoutError` with the position."""
    with pytest.raises(LayoutError, match=f"position {position}: ") as caught:
        ShapeDescriptor.from_tag((1,) * 4, tag)
    assert caught.value.status == ShapeStatus.INCORRECT_TAG


def test_d14_too_many_axes():
    """D14: with the position: that of the first axis too many, and how many there may be, whatever its letter."""
    for letter in "mz1a":
        with pytest.raises(LayoutError, match="at most 12 axes" if letter != "1" else "block 1 has no letter"):
            ShapeDescriptor.from_tag((1,) * 13, f"abcdefghijkl{letter}")
    with pytest.raises(LayoutError, match="position 12: a tag has at most 12 axes"):
        ShapeDescriptor.from_tag((1,) * 14, "abcdefghijklmn")


@pytest.mark.parametrize(
    ("shape", "tag", "position"), [((1, 2, 3), "nchw", 3), ((1, 2, 3, 4, 5), "nhwc", 4), ((), "a", 0), ((1, 2, 3), "aBcd8b", 3), ((1,) * 5, "aBcd8b", 4)]
)
def test_d14_rank_differs(shape, tag, position):
    """D14: so does a rank that differs from the shape's: the position is that of the first letter too many, or of the missing one."""
    with pytest.raises(LayoutError, match=f"position {position}: the tag has . axes, the shape .* has {len(shape)}") as caught:
        ShapeDescriptor.from_tag(shape, tag)
    assert caught.value.status == ShapeStatus.INCORRECT_TAG


def test_d14_no_string():
    """D14: A tag that breaks the grammar raises `LayoutError`, a tag that is no string too."""
    with pytest.raises(LayoutError, match="str"):
        ShapeDescriptor.from_tag((1, 2), 5)


@given(padded_descriptors(), st.data())
def test_d15_permuted_layouts_are_valid(d, data):
    """D15: a permuted layout is as valid as its dense twin, so `permute` and `from_tag` meet in equal descriptors."""
    axes = data.draw(st.permutations(range(d.rank)))
    turned = d.permute(axes)
    assert turned.validate() == 0
    for index in all_indices(d.shape):
        assert turned.offset_of([index[axis] for axis in axes]) == d.offset_of(index)
    if d.rank > 1:
        assert ShapeDescriptor.from_tag(turned.shape, turned.tag, d.dtype, turned.paddings, turned.padding_offsets) == turned.permute(range(d.rank))
    with pytest.raises(LayoutError):
        d.permute([*axes, 0])


@given(padded_descriptors(), st.data())
def test_d16_subarray_is_basic_indexing(d, data):
    """D16: `subarray` is basic indexing (oracle: NumPy's offsets)."""
    key = data.draw(keys_of(d.shape))
    where = np.array([d.offset_of(i) for i in all_indices(d.shape)], np.int64).reshape(d.shape)
    expected = where[key]
    part = d.subarray(key)
    assert part.shape == expected.shape
    assert [part.offset_of(i) for i in all_indices(part.shape)] == list(expected.ravel())


def test_d16_axes_taken_whole_keep_their_padding():
    """D16: Axes taken whole keep their padding; the surroundings of a part are elements of others, not padding."""
    d = padded("float32", "c", (4, 5, 6), (2, 3, 4), (1, 1, 2))
    image = d.subarray(2)
    assert (image.paddings, image.padding_offsets) == ((3, 4), (1, 2))
    assert image.hosting().offset == 3 * 80
    assert d.subarray((slice(1, 3), slice(None), slice(0, 6))).paddings == (0, 3, 4)
    assert d.subarray((Ellipsis, slice(0, 5))).paddings == (2, 3, 0)
    assert d.subarray((slice(None, None, -1),)).paddings == (0, 3, 4)
    assert d.subarray((None, Ellipsis)).paddings == (0, 2, 3, 4)
    for key in (slice(-9, None, -1), slice(9, None), slice(2, 2)):  # no elements lie nowhere, so not before the buffer either
        none = padded("float32", "c", (3, 5), (0, 2)).subarray((key,))
        assert (none.shape, none.offset, none.paddings) == ((0, 5), 0, (0, 2))
    one = padded("float32", "c", (1, 5), (2, 3), (1, 1))
    for step in (1, -1, 2):  # of one element each takes the whole axis
        assert one.subarray((slice(None, None, step),)) == one


@pytest.mark.parametrize(
    ("order", "key", "shape", "strides", "ews"),
    [("c", (slice(None), 0, 0), (2,), (12,), 12), ("c", (slice(None), slice(0, 1), slice(0, 1)), (2, 1, 1), (12, 4, 1), 12),
     ("c", (slice(None), slice(2, 3)), (2, 1, 4), (12, 4, 1), 0), ("f", (slice(None), 0, 0), (2,), (1,), 1),
     ("f", (slice(None), slice(0, 1), slice(0, 1)), (2, 1, 1), (1, 2, 6), 1), ("f", (slice(None), slice(2, 3)), (2, 1, 4), (1, 2, 6), 0)],
)  # fmt: skip
def test_d16_subarrays_of_libnd4j(order, key, shape, strides, ews):
    """D16: `subarray` is basic indexing (figures of libnd4j's NDArrayTest2.subarray_1)."""
    part = ShapeDescriptor("float32", order, (2, 3, 4)).subarray(key)
    assert (part.shape, part.strides, part.ews, part.order) == (shape, strides, ews, order)


@pytest.mark.parametrize("key", [5, (0, 3), (0, 0, 0), (Ellipsis, Ellipsis), 1.5, "a", [0, 1]])
def test_d16_what_is_no_basic_index(key):
    """D16: `subarray` is basic indexing, and refuses all else."""
    with pytest.raises(OutOfRangeError):
        ShapeDescriptor("float32", "c", (2, 3)).subarray(key)


def test_d16_blocked_axes():
    """D16: the surroundings of a part are elements of others: a blocked axis is cut between blocks, or evenly spaced (ADR 0010)."""
    d = ShapeDescriptor.from_tag((2, 17, 5, 4), "nChw8c")
    part = d.subarray((slice(None), slice(16, 17)))
    assert (part.padded_shape, part.strides, part.offset) == ((2, 8, 5, 4), (480, 160, 32, 8), 320)  # oneDNN's create_submemory says the same
    assert d.subarray((1, slice(None), 2)).inner_blocks == ((0, 8),)
    for key in ((0, slice(0, 12)), (0, slice(3, None)), (0, slice(None, None, -1))):
        with pytest.raises(UnsupportedLayoutError, match="reorder"):
            d.subarray(key)
    hosted = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c", "float32", (0, 0, 2, 2), (0, 0, 1, 1))
    assert hosted.subarray((slice(0), slice(None, None, -1))).shape == (0, 17, 5, 4)


@given(st.one_of(padded_descriptors(), tagged_descriptors()), st.data())
def test_d24_reshape(d, data):
    """D24: `reshape` reads indices in c order; what neither strides nor blocks describe is refused (oracle: NumPy, where there are no blocks)."""
    if data.draw(st.booleans()):
        d = d.permute(data.draw(st.permutations(range(d.rank))))
    if data.draw(st.booleans()):
        try:
            d = d.subarray(data.draw(keys_of(d.shape)))
        except UnsupportedLayoutError:
            reject()
    extents = data.draw(extents_for(d.shape))
    assume(len(extents) <= 8)
    try:
        made = d.reshape(extents)
    except UnsupportedLayoutError:
        made = None
    if d.length == 0:
        assert made.shape == extents
        return
    if not d.inner_blocks:
        strides = [s * d.itemsize for s in d.strides]
        numbers = np.dtype(f"u{d.itemsize}")
        view = np.lib.stride_tricks.as_strided(np.empty(0, numbers), d.shape, strides)
        try:
            expected = np.reshape(view, extents, copy=False)
        except ValueError:
            assert made is None
            return
        assert all(s * d.itemsize == e for s, e, n in zip(made.strides, expected.strides, extents, strict=True) if n > 1)
    if made is not None:
        assert made.shape == extents
        assert [made.offset_of(i) for i in np.ndindex(*extents)] == [d.offset_of(i) for i in np.ndindex(*d.shape)]
        assert made.validate() & ~d.validate() == 0


def test_d24_axes_that_stay():
    """D24: Axes that stay keep their padding and blocks; others are joined and split where their strides run on."""
    d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 6, 5, 3), (0, 1, 2, 1), (0, 1, 0, 1))
    made = d.reshape((2, 2, 3, -1, 1, 3))
    assert made.shape == (2, 2, 3, 5, 1, 3)
    assert made.paddings == (0, 0, 0, 2, 0, 1)
    assert made.padding_offsets == (0, 0, 0, 0, 0, 1)
    assert made.strides == (196, 84, 28, 4, 4, 1)
    assert made.offset == d.offset
    with pytest.raises(UnsupportedLayoutError, match=r"neither strides nor blocks describe shape \(2, 6, 15\)"):
        d.reshape((2, 6, 15))
    blocked = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c", paddings=(0, 0, 1, 1))
    made = blocked.reshape((1, 1, 17, 5, 1, 4))
    assert made.inner_blocks == ((2, 8),)
    assert made.padded_shape == (1, 1, 24, 6, 1, 5)
    for extents in ((1, 17, 20), (1, 17, 4, 5), (340,)):
        with pytest.raises(UnsupportedLayoutError, match="neither strides nor blocks"):
            blocked.reshape(extents)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 2), "number of elements, 6, stays"),
        ((-1, -1), "one may be -1"),
        ((-2, 3), "0 or more"),
        ((-1, 4), "number of elements, 6"),
        ((-1, 0), "beside an extent of 0"),
        ((1,) * 33, "beyond 32"),
        (None, "it must hold integers"),
    ],
)
def test_d24_what_is_no_shape(shape, message):
    """D24: `reshape` reads indices in c order, of as many elements."""
    with pytest.raises(LayoutError, match=message):
        ShapeDescriptor("float32", "c", (2, 3)).reshape(shape)


def test_d9_other_element_types_keep_every_field():
    """D9: equality compares every field: `astype` changes the element type alone, an `ews` that was given too."""
    d = ShapeDescriptor("float32", "c", (2, 3), (6, 2), ews=1, offset=4)
    for dtype in ("int8", "float64", "int8", "bfloat16", "float32"):
        other = d.astype(dtype)
        assert (other.dtype, other.itemsize, other.ews, other.strides, other.offset) == (nd.dtypes.dtype(dtype), nd.dtypes.dtype(dtype).itemsize, 1, (6, 2), 4)
        assert other.astype("float32") == d
    with pytest.raises(LayoutError, match="outgrows the signed machine word"):
        ShapeDescriptor("int8", "c", (2**61,)).astype("float64")


@pytest.mark.parametrize(
    "make",
    [
        lambda before: ShapeDescriptor("int8", "c", (4,), offset=2, paddings=(3,), padding_offsets=(before,), inner_blocks=((0, 2),)),
        lambda before: ShapeDescriptor.from_tag((4,), "A2a", "int8", (3,), (before,)),
    ],
)
def test_d19_padding_before_a_blocked_axis_is_whole_blocks(make):
    """D19: on a blocked axis offsets of no whole blocks are refused: padding there could not be told from elements."""
    with pytest.raises(LayoutError, match=r"axis 0 has padding offset 3, on a blocked axis it is whole blocks of 2.*padding_offsets=\(3,\)") as refused:
        make(3)
    assert refused.value.status == ShapeStatus.INCORRECT_PADDING
    x = nd.NdArray(make(2))
    x[...] = [1, 2, 3, 4]
    x.fill_padding(9)
    assert bytes(x.buffer) == b"\t\t\1\2\3\4\t\t"
    assert eval(repr(x.descriptor)) == x.descriptor


def test_d19_one_number_for_several_axes():
    """D19: one padding for several axes, which `numpy.pad` would give to all of them, is refused with `INCORRECT_PADDING`; one axis has one."""
    for options in ({"paddings": 1}, {"paddings": (1, 1), "padding_offsets": 1}):
        with pytest.raises(LayoutError, match="is 1 for 2 axes, it must hold one number for each") as refused:
            nd.create((2, 2), **options)
        assert refused.value.status == ShapeStatus.INCORRECT_PADDING
    assert nd.create(3, paddings=2, padding_offsets=1).descriptor == nd.create((3,), paddings=(2,), padding_offsets=(1,)).descriptor


@pytest.mark.parametrize("kind", [list, np.array, iter, lambda figures: map(np.int8, figures)])
def test_d5_any_integers_are_paddings(kind):
    """D5: paddings and offsets are stored, whatever iterable of integers they came as, one that can be read once included."""
    want = padded("float32", "f", (2, 3), (1, 2), (0, 1))
    assert padded("float32", "f", kind((2, 3)), kind((1, 2)), kind((0, 1))) == want
    assert ShapeDescriptor.from_tag(kind((2, 3)), "ba", "float32", kind((1, 2)), kind((0, 1))) == want
    for make in (nd.create, nd.zeros, nd.ones, nd.empty):
        assert make((2, 3), order="f", paddings=kind((1, 2)), padding_offsets=kind((0, 1))).descriptor == want
    with pytest.raises(LayoutError, match=r"padding_offsets=\(0, 1\), paddings=\(2,\)"):
        nd.create((2, 3), paddings=kind((2,)), padding_offsets=kind((0, 1)))


def test_d5_pairs_of_paddings():
    """D5: paddings are the total of each axis: pairs as `numpy.pad` takes them are refused with what would do."""
    with pytest.raises(LayoutError, match=r"paddings holds \(1, 1\), it must hold integers: the total of each axis, of which padding_offsets"):
        nd.create((2, 2), paddings=((1, 1), (1, 1)))


def test_d24_no_elements():
    """D24: `reshape` reads indices in c order, of no elements too."""
    for shape, extents, found in (((0, 3), -1, (0,)), ((0, 3), (-1, 3), (0, 3)), ((2, 0), (5, -1), (5, 0)), ((0,), (4, 0), (4, 0))):
        assert ShapeDescriptor("float32", "c", shape).reshape(extents).shape == found
        assert nd.zeros(shape).reshape(extents).shape == np.zeros(shape).reshape(extents).shape == found
    assert nd.zeros((0, 3)).ravel().shape == nd.zeros((0, 3)).flatten().shape == (0,)


BEYOND = 2**63 - 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: padded("float32", "c", (2, 2), (0, BEYOND)),
        lambda: padded("float32", "c", (2, 2), (BEYOND, BEYOND)),
        lambda: nd.create((2, 2), paddings=(0, BEYOND)),
        lambda: ShapeDescriptor.from_tag((4, 2**32, 2**32), "abc"),
        lambda: ShapeDescriptor.from_tag((4, 2**32, 2**32), "abC8c"),
        lambda: ShapeDescriptor("int8", "c", (4, 2**32, 2**32), axes=(0, 1, 2)),
        lambda: ShapeDescriptor("int8", "c", (4, 2**32, 2**32), offset=1),
        lambda: ShapeDescriptor("int8", "c", (4, 2**32, 2**32), inner_blocks=((0, 4),)),
    ],
)
def test_d20_products_beyond_a_word(make):
    """D20: sizes in bytes that outgrow the signed machine word are refused with `OVERFLOW`, whichever way they come."""
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.status & ShapeStatus.OVERFLOW


@pytest.mark.parametrize(
    ("shape", "blocks", "length"),
    [
        ((2**63 - 1,), ((0, 2**63 - 1),), 2**63 - 1),
        ((5,), ((0, 2**63 - 1),), 2**63 - 1),
        ((2**60,), ((0, 16),), 2**60),
        ((2**63 - 20,), ((0, 16),), 2**63 - 16),
    ],
)
def test_d20_products_of_just_a_word(shape, blocks, length):
    """D20: sizes in bytes that fit the signed machine word are not refused: blocks count once, whatever their size."""
    d = ShapeDescriptor("int8", "c", shape, inner_blocks=blocks)
    assert d.validate() == ShapeStatus.OK
    assert d.allocLength() == length == math.prod(d.hosting().shape) == math.prod(d.exploded().padded_shape)
    assert d.offset_of((shape[0] - 1,)) == shape[0] - 1
    assert "buffer" in str(d.show())


def test_d16_parts_of_huge_blocks():
    """D16: `subarray` is basic indexing: whether a part is evenly spaced is not found out element by element."""
    size = 10**17  # would take years
    d = ShapeDescriptor("int8", "c", (3 * size,), (size - 5,), inner_blocks=((0, size),))
    for step in (-1, 3):
        with pytest.raises(UnsupportedLayoutError, match="evenly spaced"):
            d.subarray((slice(2 * size, size, step) if step < 0 else slice(size, 3 * size, step),))


@pytest.mark.parametrize("order", ORDERS)
def test_d16_new_axes(order):
    """D16: `subarray` is basic indexing: a part with new axes is the dense layout of their shape, in either order."""
    d = ShapeDescriptor("int8", order, (3, 4))
    for key, shape in (((None,), (1, 3, 4)), ((slice(None), None), (3, 1, 4)), ((..., None), (3, 4, 1))):
        assert d.subarray(key) == ShapeDescriptor("int8", order, shape)


def test_d16_parts_of_as_many_axes_as_there_can_be():
    """D16: `subarray` is basic indexing: 32 axes are not too many, whatever follows them that adds none."""
    d = ShapeDescriptor("int8", "c", (1,) * 32)
    assert d.subarray((slice(None),) * 32 + (Ellipsis,)) == d
    assert d.subarray((None, *(slice(None),) * 31, np.int64(0), Ellipsis)).rank == 32
    assert nd.zeros((1,) * 32).squeeze(axis=()).ndim == 32
    for key in ((None,), (Ellipsis, None), (slice(None),) * 32 + (None,)):
        with pytest.raises(LayoutError, match="more than 32 axes"):
            d.subarray(key)


def test_d17_views_may_have_zero_and_negative_strides():
    """D17: `validate()` tells what a fresh allocation cannot have."""
    turned = ShapeDescriptor("float32", "c", (4, 5)).subarray((slice(None, None, -1),))
    assert turned.strides == (-5, 1)
    assert turned.offset == 15
    assert turned.validate() & ShapeStatus.NEGATIVE_STRIDE
    assert not turned.validate() & ShapeStatus.OUT_OF_BUFFER
    assert turned.allocLength() == 20
    broadcast = ShapeDescriptor("float32", "c", (4, 5), (0, 1))
    assert broadcast.validate() & ShapeStatus.ZERO_STRIDE
    assert broadcast.allocLength() == 5
    assert ShapeDescriptor("float32", "c", (2,), (-1,), offset=1).allocLength() == 2
    for extent in (2, 3):
        outside = ShapeDescriptor("float32", "c", (extent,), (-1,))
        assert outside.validate() & ShapeStatus.OUT_OF_BUFFER
        with pytest.raises(LayoutError, match=f"no buffer holds offset {1 - extent}:") as caught:
            outside.allocLength()
        assert caught.value.status == ShapeStatus.OUT_OF_BUFFER


@pytest.mark.parametrize(("order", "shape", "pads", "length"), [("c", (4, 5), (2, 0), 30), ("f", (4, 5), (0, 3), 32), ("c", (5,), (3,), 8)])
def test_d18_outermost_padding_counts(order, shape, pads, length):
    """D18: Padding of the outermost axis, and of a vector, counts."""
    d = padded("float32", order, shape, pads, pads)
    assert d.has_padded_buffer
    assert d.allocLength() == length
    assert d.span_length() == length


@pytest.mark.parametrize(
    ("pads", "before"), [((-1, 0), None), ((1, 2), (2, 0)), ((0, 2), (0, -1)), ((1,), (0, 0)), ((1, 2, 3), None), ((1, 2, 3), (0, 0)), (None, (0,)), ((), 1)]
)
@pytest.mark.parametrize("order", ORDERS)
def test_d19_padding_rules(order, pads, before):
    """D19: Negative paddings, offsets beyond their padding, more offsets than paddings and more paddings than axes are refused."""
    with pytest.raises(LayoutError) as caught:
        padded("float32", order, (4, 5), pads, before)
    assert caught.value.status == ShapeStatus.INCORRECT_PADDING


@pytest.mark.parametrize(
    "make",
    [
        lambda: ShapeDescriptor("float32", "c", (2**62,)),
        lambda: ShapeDescriptor("int8", "c", (2**40, 2**40)),
        lambda: ShapeDescriptor("int8", "c", (0, 2**40, 2**40)),
        lambda: ShapeDescriptor("float64", "c", (2, 2), (2**62, 1)),
        lambda: ShapeDescriptor("int8", "c", (2**70,)),
        lambda: ShapeDescriptor("int8", "c", (2, 2), (2**70, 1)),
        lambda: ShapeDescriptor("int8", "c", (2, 2), (-(2**63), 1)),
        lambda: ShapeDescriptor("int8", "c", (2,), offset=2**63 - 1),
        lambda: padded("float32", "c", (2**30, 2**30), (2**31, 2**31)),
        lambda: padded("int8", "c", (1,), (2**63 - 1,)),
        lambda: ShapeDescriptor.from_tag((2**61, 3), "aB8b", "float32"),
        lambda: ShapeDescriptor.from_tag((2**62, 2**62), "aB16b", "int8"),
        lambda: ShapeDescriptor("int8", "c", (4,), (2**62,)),
        lambda: ShapeDescriptor("int8", "c", (2, 2), (2**63 - 1, 2**63 - 1)),
    ],
)
def test_d20_overflow(make):
    """D20: sizes in bytes that outgrow the signed machine word are refused with `OVERFLOW`."""
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.status == ShapeStatus.OVERFLOW


@pytest.mark.parametrize("shape", [(-1,), (3, -2), (2.5,), ("a",), "ab", None, ((1, 2),)])
def test_d20_extents(shape):
    """D20: negative extents with `INCORRECT_SHAPE`, and all that is no integer."""
    with pytest.raises(LayoutError) as caught:
        ShapeDescriptor("float32", "c", shape)
    assert caught.value.status == ShapeStatus.INCORRECT_SHAPE


def test_d20_other_arguments():
    """D20: what is no order, offset or block is refused too."""
    for make, status in (
        (lambda: ShapeDescriptor("float32", "a", (1,)), ShapeStatus.INCORRECT_SHAPE),
        (lambda: ShapeDescriptor("float32", "c", (1,), offset=-1), ShapeStatus.OUT_OF_BUFFER),
        (lambda: ShapeDescriptor("float32", "c", (1, 2), axes=(0, 0)), ShapeStatus.INCORRECT_RANK),
        (lambda: ShapeDescriptor("float32", "c", (1, 2), inner_blocks=((2, 4),)), ShapeStatus.INCORRECT_BLOCKS),
        (lambda: ShapeDescriptor("float32", "c", (1, 2), inner_blocks=((0, 0),)), ShapeStatus.INCORRECT_BLOCKS),
        (lambda: ShapeDescriptor("float32", "c", (1, 2), inner_blocks=8), ShapeStatus.INCORRECT_BLOCKS),
        (lambda: ShapeDescriptor("int8", "c", (1,), inner_blocks=((0, 1),) * 33), ShapeStatus.INCORRECT_BLOCKS),
        (lambda: ShapeDescriptor("int8", "c", (1,), inner_blocks=((0, 2**32), (0, 2**31))), ShapeStatus.INCORRECT_BLOCKS),
        (lambda: ShapeDescriptor.from_tag((1, 17), "aB8b", paddings=(0, 4), padding_offsets=(0, 4)), ShapeStatus.INCORRECT_PADDING),
        (lambda: ShapeDescriptor("float32", "c", (1, 2), paddings=(1, 1), padding_offsets=(1, 1)), ShapeStatus.OUT_OF_BUFFER),
        (lambda: ShapeDescriptor("float32", "c", (2,), (1,), paddings=(1,), padding_offsets=(1,)), ShapeStatus.OUT_OF_BUFFER),
    ):
        with pytest.raises(LayoutError) as caught:
            make()
        assert caught.value.status == status


@pytest.mark.parametrize("dtype", ["complex64", "U3", object, "nothing", "f4,,", "f4,(", "\ud800", None, np.dtype(">f4"), np.dtype([("a", "f4")])])
def test_d20_unknown_element_types(dtype):
    """D20: the sizes in bytes are those of a known element type."""
    with pytest.raises(nd.DTypeError, match="bfloat16"):
        ShapeDescriptor(dtype, "c", (1,))


def test_d21_rank():
    """D21: More than 32 axes, and a number of strides other than the rank, are refused with `INCORRECT_RANK`."""
    assert ShapeDescriptor("int8", "c", (1,) * 32).rank == 32
    for make in (lambda: ShapeDescriptor("int8", "c", (1,) * 33), lambda: ShapeDescriptor("int8", "c", (2, 3), (1,))):
        with pytest.raises(LayoutError) as caught:
            make()
        assert caught.value.status == ShapeStatus.INCORRECT_RANK


@given(st.data())
def test_d22_unit_axes_never_break_a_rule(data):
    """D22: Axes of extent 1 never break a rule."""
    dense = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    shape, strides = [], []
    for n, s in zip(dense, numpy_strides("c", tuple(dense)), strict=True):
        shape += [n, 1]
        strides += [s, data.draw(st.integers(-5, 100))]
    d = ShapeDescriptor("float32", "c", shape, strides)
    assert d.validate() == 0
    assert d.allocLength() == math.prod(dense)
    assert d.is_contiguous


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
@pytest.mark.parametrize("strides", [None, "ones"])
def test_d23_empty(order, shape, strides):
    """D23: Empty shapes are valid, whatever their strides, with length, span and allocation 0."""
    plain = ShapeDescriptor("float32", order, shape, None if strides is None else (1,) * len(shape))
    for d in (plain, padded("float32", order, shape, (2,) * len(shape), (1,) * len(shape))):
        assert d.is_empty
        assert d.validate() == 0
        assert (d.length, d.span_length(), d.allocLength()) == (0, 0, 0)
        assert d.to_shape_info()[-3] & 8
        assert d.is_contiguous


def test_d23_a_scalar_is_not_empty():
    """D23: Empty shapes have length 0: a shape without axes is no such one, but a scalar."""
    for shape in ((), (0,), (1,), (1, 1), (2, 3)):
        d = ShapeDescriptor("float32", "c", shape)
        assert (d.is_scalar, d.is_empty, d.length) == (shape == (), 0 in shape, math.prod(shape)), shape


def test_d2_axes_of_one_element_may_count_or_not():
    """D2: `validate()` reports `INCORRECT_EWS` else: beside axes of one element libnd4j stores 0 or the stride, and both are accepted."""
    for shape, strides, accepted in (((1, 3), (7, 2), {0, 2}), ((3, 1), (4, 1), {0, 4}), ((3, 1), (1, 1), {1}), ((1, 1, 4), (4, 4, 1), {1})):
        found = {ews for ews in range(9) if not ShapeDescriptor("int8", "c", shape, strides, ews=ews).validate()}
        assert found == accepted, (shape, strides)


@pytest.mark.parametrize(("layout", "tag"), [("c", "ab"), ("f", "ba"), ("ba", "ba"), ("aB8b", "aB8b")])
def test_d12_tags_of_empty_shapes(layout, tag):
    """D12: Canonical letter tags: empty shapes have them, too."""
    d = ShapeDescriptor("int8", layout, (0, 3)) if layout in ORDERS else ShapeDescriptor.from_tag((0, 3), layout, "int8")
    assert d.tag == tag


def test_d2_elements_that_share_cells_are_not_equally_spaced():
    """D2: `ews` is the fastest stride if all elements are equally spaced in the order of the letter, else 0: broadcast axes have none."""
    for shape, strides in (((3, 8), (1, 0)), ((1, 3, 8), (8, 1, 0)), ((2, 3), (3, 0)), ((4,), (0,)), ((2, 3), (0, 0))):
        d = ShapeDescriptor("int8", "c", shape, strides)
        assert (d.ews, d.is_contiguous) == (0, False), (shape, strides)
    assert not nd.asarray(np.broadcast_to(np.zeros((3, 1), np.int8), (3, 8))).descriptor.is_contiguous
    one = ShapeDescriptor("int8", "c", (1, 1), (7, 5))
    assert (one.ews, one.is_contiguous) == (5, True)
    for channels in (16, 17):  # whole blocks, and a tail
        assert ShapeDescriptor.from_tag((2, channels, 3, 3), "nChw8c").is_contiguous == (channels == 16)
    assert not ShapeDescriptor.from_tag((2, 16, 3, 3), "nChw8c").subarray((..., slice(0, 2))).is_contiguous
    assert ShapeDescriptor("int8", "c", (3,), inner_blocks=((0, 1),) * 32).is_contiguous


def test_libnd4j_conformance():
    """D1: libnd4j's own expectations; cases with a quirk are the deviations D18 to D23."""
    deviations = {
        "outer_padding_dropped", "rank1_padding_dropped", "negative_padding_accepted", "negative_offset_accepted", "padded_empty_not_flagged_empty",
        "negative_alloc_length", "empty_alloc_not_zero", "empty_fails_own_validate", "unit_dim_stride_checked", "zero_stride_asymmetry",
        "negative_stride_accepted", "ews_bit_depends_on_scan_order", "address_out_of_buffer",
    }  # fmt: skip
    checked = 0
    for case in conformance("libnd4j_shape_descriptor.json")["cases"]:
        if case.get("quirks"):
            assert set(case["quirks"]) <= deviations, case["id"]
            continue
        expect = case["expect"]
        head = case["dtype"], case["order"], case["shape"]

        if "create_error" in expect:
            with pytest.raises(LayoutError) as caught:
                padded(*head, case["paddings"], case["padding_offsets"])
            assert caught.value.status == ShapeStatus.INCORRECT_PADDING
            checked += 1
            continue
        if case["call"] == "ShapeDescriptor":
            d = ShapeDescriptor(*head, case.get("strides"), case.get("ews"))
        else:
            d = padded(*head, case["paddings"], case.get("padding_offsets"))
        found = {
            "validate": int(d.validate()), "strides": list(d.strides), "ews": d.ews, "has_padded_buffer": d.has_padded_buffer,
            "shape_info": d.to_shape_info(), "offset": d.offset,
        }  # fmt: skip
        if d.validate() == 0:
            found |= {"alloc_length": d.allocLength(), "alloc_bytes": d.allocLength() * d.itemsize}
            found["first_last_address"] = [d.offset_of((0,) * d.rank), d.span_length() - 1]
        for name, value in found.items():
            if expect.get(name) is not None:
                assert value == expect[name], (case["id"], name)
        checked += 1
    assert checked >= 70


def test_libnd4j_relations():
    """D9: equality compares every field (libnd4j's relation cases)."""

    def build(spec):
        return ShapeDescriptor.from_shape_info(spec["shape_info"]) if "shape_info" in spec else ShapeDescriptor(spec["dtype"], spec["order"], spec["shape"])

    for case in conformance("libnd4j_shape_descriptor.json")["relation_cases"]:
        a, b = build(case["a"]), build(case["b"])
        found = a < b if case["call"] == "less than" else a.shape == b.shape if "soft" in case["call"] else a == b
        assert found == case["expect"], case["id"]


def test_libnd4j_views():
    """D16: libnd4j's view cases: subarrays, permutes and transposes."""
    for case in conformance("libnd4j_shape_descriptor.json")["view_cases"]:
        expect = case["expect"]
        if case["call"] == "transpose shape info":
            d = ShapeDescriptor.from_shape_info(case["shape_info"])
            turned = d.permute(tuple(reversed(range(d.rank))))
            want = ShapeDescriptor.from_shape_info(expect["shape_info"])
            assert (turned.shape, turned.strides, turned.order) == (want.shape, want.strides, want.order), case["id"]
            continue
        base = case["array"]
        d = ShapeDescriptor(base["dtype"], base["order"], base["shape"], base.get("strides"), base.get("ews"))
        if case["call"] == "subarray":
            fixed = {int(axis): i for axis, i in case["fixed_axes"].items()}
            keep = case["keep_unit_dims"]
            d = d.subarray(tuple((slice(fixed[a], fixed[a] + 1) if keep else fixed[a]) if a in fixed else slice(None) for a in range(d.rank)))
        elif case["call"] == "permute":
            d = d.permute(case["axes"])
        else:
            x = nd.NdArray(d) if d.validate() == 0 else nd.zeros(d.shape)
            if "axes" in case:
                x = x.permute(case["axes"])
            d = x.reshape(tuple(case["new_shape"])).descriptor
        for name in ("shape", "strides"):
            if name in expect:
                assert list(getattr(d, name)) == expect[name], case["id"]
        for name in ("ews", "order", "offset"):
            if name in expect:
                assert getattr(d, name) == expect[name], case["id"]

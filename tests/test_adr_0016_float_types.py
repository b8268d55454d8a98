"""ADR 0016: float64, float16 and bfloat16 convolutions."""

import itertools
import math
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nd4jlike as nd
from guards import SIDES, guarded, guarded_array
from layouts import arrangements, hosted, on, padded
from machines import HALVING, MACHINES, ways
from nd4jlike.kernels import dispatch
from reference import depthwise_float, same_padding

ISAS = dispatch.available()
DTYPES = {"float64": np.dtype("float64"), "float16": np.dtype("float16"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
HALVES = [name for name in DTYPES if name != "float64"]
every_isa = pytest.mark.parametrize("isa", ISAS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_half = pytest.mark.parametrize("dtype", HALVES)


def random(shape, dtype, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(DTYPES[dtype])


def in_numpy(array):
    """Convert the elements to float64."""
    return np.asarray(array.astype("float32") if isinstance(array, nd.NdArray) and array.dtype == nd.bfloat16 else array).astype(np.float64)


def interval(dtype, x, weights, bias=None, activation=(-math.inf, math.inf), **steps):
    """Least and greatest result: within D2's bound of the exact value, or the roundings of all float32 sums within D16's."""
    want, bound = depthwise_float(*[None if a is None else in_numpy(a) for a in (x, weights, bias)], activation, **steps)
    if dtype == "float64":
        return want - bound * 2.0**-29, want + bound * 2.0**-29
    # Rounding is monotonic, and the sum is a float32.
    return tuple((want + sign * bound).astype(np.float32).astype(DTYPES[dtype]).astype(np.float64) for sign in (-1, 1))


def assert_within(got, dtype, limits, case=None):
    """Every element lies in its interval."""
    assert got.dtype == (nd.bfloat16 if dtype == "bfloat16" and isinstance(got, nd.NdArray) else DTYPES[dtype])
    got = in_numpy(got)
    assert got.shape == limits[0].shape
    right = (limits[0] <= got) & (got <= limits[1])
    assert right.all(), (case, np.argwhere(~right)[:3])


def assert_close(got, dtype, *given, **steps):
    """Compare with float64."""
    assert_within(got, dtype, interval(dtype, *given, **steps))


def same(size, kernel, stride, dilation):
    return tuple(same_padding(n, k, s, d) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True))


# Kernel, image, stride, dilation, channels, multiplier.
CASES = [
    (kernel, size, stride, dilation, channels, multiplier)
    for kernel, size in (((1, 1), (3, 9)), ((3, 3), (5, 15)), ((5, 5), (7, 7)), ((7, 7), (4, 21)), ((2, 4), (3, 4)), ((3, 1), (6, 1)))
    for stride, dilation in (((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 1), (2, 2)), ((2, 1), (1, 3)))
    for channels, multiplier in ((1, 1), (3, 1), (9, 1), (17, 1), (32, 1), (3, 8), (5, 3))
] + [
    (kernel, size, (step, step), (1, 1), channels, 1)
    for kernel, step, size in (
        ((4, 4), 1, (9, 13)),
        ((4, 4), 2, (10, 13)),
        ((2, 2), 2, (9, 12)),
        ((2, 2), 3, (10, 11)),
        ((3, 3), 3, (10, 11)),
        ((5, 5), 1, (9, 3)),
        ((7, 7), 1, (9, 2)),
    )
    for channels in (16, 17, 40, 130)
]


@cache
def solved(dtype, case):
    """Input, weights, bias, steps and the interval of results."""
    kernel, size, stride, dilation, channels, multiplier = case
    steps = {"stride": stride, "dilation": dilation, "padding": same(size, kernel, stride, dilation)}
    x, weights, bias = random((1, *size, channels), dtype, 1), random((*kernel, channels, multiplier), dtype, 2), random(channels * multiplier, dtype, 3)
    return x, weights, bias, steps, interval(dtype, x, weights, bias, **steps)


@every_isa
@every_dtype
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d1_d2_d3_every_kernel_gives_the_value_and_stays_within_its_buffers(isa, dtype, side, data_format):
    """D1, D2, D3: all of ADR 0005 holds for it: layouts, geometry, padding."""
    turn = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    for case in CASES:
        x, weights, bias, steps, limits = solved(dtype, case)
        out = guarded_array(np.full([limits[0].shape[axis] for axis in turn], np.nan, DTYPES[dtype]), side)
        plan = nd.DepthwiseConv2d(guarded_array(weights, side), bias, isa=isa, data_format=data_format, **steps)
        plan(guarded_array(x.transpose(turn), side), out)
        assert_within(out.transpose(np.argsort(turn)), dtype, limits, case)


@every_isa
@every_dtype
@pytest.mark.parametrize("side", SIDES)
def test_d1_nothing_beyond_a_padded_buffer_is_touched_and_padding_stays(isa, dtype, side):
    """D1: all of ADR 0005 holds for it: layouts, geometry, padding."""
    for channels in (1, 3, 8, 15, 17, 31, 33, 64, 67):
        x, weights = random((2, 5, 4, channels), dtype, 1), random((3, 3, channels, 1), dtype, 2)
        for stride in (1, 2):
            plan = nd.DepthwiseConv2d(weights, stride=stride, isa=isa)
            layout = plan.input_descriptor(x.shape)
            assert layout.dtype.name == dtype
            assert layout.strides[2] >= channels
            array = nd.NdArray(layout, guarded(layout.allocLength() * x.itemsize, side))
            array[...] = x
            layout = plan.output_descriptor(array, paddings=(0, 2, 1, 3), padding_offsets=(0, 1, 1, 1))
            out = nd.NdArray(layout, guarded(layout.allocLength() * x.itemsize, side))
            out.fill_padding(7)
            plan(array, out)
            assert out.check_padding(7)
            assert_close(out, dtype, x, weights, stride=(stride, stride), padding=same((5, 4), (3, 3), (stride, stride), (1, 1)))


@every_dtype
def test_d1_pixels_start_on_cache_lines(dtype):
    """D1: all of ADR 0005 holds for it: layouts."""
    itemsize = DTYPES[dtype].itemsize
    for channels in (3, 17, 40, 64, 2048 // itemsize):
        plan = nd.DepthwiseConv2d(random((3, 3, channels, 1), dtype))
        for layout in (plan.input_descriptor((1, 4, 4, channels)), plan.output_descriptor(plan.input_descriptor((1, 4, 4, channels)))):
            pitch = layout.strides[2] * itemsize
            assert pitch == channels * itemsize < 48 or pitch % 64 == 0, channels
            assert pitch % 2048


@every_isa
@every_dtype
def test_d1_elements_may_lie_anywhere(isa, dtype):
    """D1: all of ADR 0005 holds for it: layouts."""
    steps = {"padding": ((1, 1), (1, 1))}
    for channels, multiplier in ((1, 2), (3, 1), (17, 1), (16, 2)):
        x, weights, bias = (
            random((2, 4, 5, channels), dtype, 1),
            random((3, 3, channels, multiplier), dtype, 2),
            random(channels * multiplier, dtype, 3),
        )
        plan, limits = nd.DepthwiseConv2d(weights, bias, isa=isa, **steps), interval(dtype, x, weights, bias, **steps)
        for name, array in arrangements(x, DTYPES[dtype].type(3e4)):
            assert_within(plan(array), dtype, limits, name)
        for name, out in arrangements(np.zeros((2, 4, 5, channels * multiplier), DTYPES[dtype]), DTYPES[dtype].type(3e4)):
            if name != "read-only":
                assert plan(x, out) is out
                assert_within(out, dtype, limits, name)


@every_isa
@every_dtype
@pytest.mark.parametrize("fill", [5.0, math.inf, math.nan])
def test_d1_padding_never_reaches_a_result(isa, dtype, fill):
    """D1: all of ADR 0005 holds for it: padding."""
    for channels in (3, 17, 64):
        x, weights = random((2, 4, 5, channels), dtype, 1), random((3, 3, channels, 1), dtype, 2)
        plan = nd.DepthwiseConv2d(weights, isa=isa)
        for array in (
            on(plan.input_descriptor(x.shape), x, fill),
            padded(x, (1, 1, 9, 2), (0, 0, 4, 0), fill),
            padded(x, (1, 1, 9, 2), (0, 0, 4, 0), fill, "f"),
        ):
            assert_close(plan(array), dtype, x, weights, padding=((1, 1), (1, 1)))


@every_isa
@every_dtype
def test_d1_what_is_between_the_elements_of_out_stays(isa, dtype):
    """D1: all of ADR 0005 holds for it: views."""
    for channels in (1, 3, 9, 17, 32):
        x, weights = random((2, 5, 6, channels), dtype, 1), random((3, 3, channels, 1), dtype, 2)
        host, out = hosted(np.zeros_like(x), (1, 1, 2, 1), (1, 2, 1, 3), 7)
        every_third = np.full((2, 5, 6, 3 * channels), 7, x.dtype)
        for whole, part in ((host, out), (every_third, every_third[..., ::3])):
            nd.depthwise_conv2d(x, weights, out=part, isa=isa)
            assert_close(part, dtype, x, weights, padding=((1, 1), (1, 1)))
            part[...] = 7
            assert (whole == 7).all()


@every_isa
@every_dtype
def test_d1_infinite_weights_meet_no_padding(isa, dtype):
    """D1: all of ADR 0005 holds for it: padding."""
    for channels, multiplier in ((3, 1), (17, 1), (5, 3)):
        for kernel in ((3, 3), (2, 4), (5, 5)):
            weights = np.ones((*kernel, channels, multiplier), DTYPES[dtype])
            weights[0, 0] = weights[-1, -1] = math.inf
            for data_format, shape in (("NHWC", (1, 6, 7, channels)), ("NCHW", (1, channels, 6, 7))):
                both = (weights, np.minimum(weights, DTYPES[dtype].type(2048)))
                plan, limited = (nd.DepthwiseConv2d(w, isa=isa, data_format=data_format, padding=1) for w in both)
                got, finite = (np.asarray(p(np.ones(shape, DTYPES[dtype]))).astype(np.float64) for p in (plan, limited))
                assert (got == np.where(finite >= 2048, math.inf, finite)).all(), (data_format, kernel, channels, multiplier)


@every_dtype
def test_d1_any_number_of_threads_gives_the_same_bits(dtype):
    """D1: all of ADR 0005 holds for it: threads."""
    x, weights = random((2, 40, 40, 64), dtype, 1), random((5, 5, 64, 1), dtype, 2)
    one, three = (np.asarray(nd.DepthwiseConv2d(weights, threads=threads)(x)) for threads in (1, 3))
    assert (one == three).all()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_d1_any_geometry(data):
    """D1: all of ADR 0005 holds for it: layouts, geometry, padding."""
    dtype, small = data.draw(st.sampled_from(list(DTYPES))), st.integers(1, 3)
    kernel, stride, dilation = (data.draw(st.tuples(up_to, up_to)) for up_to in (st.integers(1, 5), small, small))
    sides = data.draw(st.tuples(*[st.tuples(st.integers(0, 4), st.integers(0, 4))] * 2))
    size = tuple(data.draw(st.integers(max(1, (k - 1) * d + 1 - sum(p)), (k - 1) * d + 12)) for k, d, p in zip(kernel, dilation, sides, strict=True))
    batch, channels, multiplier = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 70)), data.draw(st.sampled_from([1, 1, 1, 2, 3]))
    x, weights = random((batch, *size, channels), dtype, 1), random((*kernel, channels, multiplier), dtype, 2)
    bias = random(channels * multiplier, dtype, 3) if data.draw(st.booleans()) else None
    steps = {"stride": stride, "dilation": dilation, "padding": sides}
    data_format = data.draw(st.sampled_from(["NHWC", "NCHW"]))
    turn = (0, 1, 2, 3) if data_format == "NHWC" else (0, 3, 1, 2)
    plan = nd.DepthwiseConv2d(weights, bias, isa=data.draw(st.sampled_from(ISAS)), data_format=data_format, **steps)
    array = np.ascontiguousarray(x.transpose(turn))
    if data.draw(st.booleans()):
        array = on(plan.input_descriptor(array.shape), array, data.draw(st.sampled_from([0, 5])))
    assert_close(plan(array).transpose(*np.argsort(turn)), dtype, x, weights, bias, **steps)


def test_d1_refusals_name_the_types():
    """D1: Weights of float64, float16 or bfloat16 make a plan whose inputs and outputs are of that type."""
    for dtype in DTYPES:
        plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), DTYPES[dtype]))
        assert plan.dtype.name == dtype
        assert dtype in plan.explain(plan.input_descriptor((1, 4, 4, 4)))
        for other in DTYPES:
            if other != dtype:
                with pytest.raises(nd.DTypeError, match=f"input of {other}, weights of {dtype}, which take {dtype} inputs"):
                    plan(np.zeros((1, 4, 4, 4), DTYPES[other]))
                with pytest.raises(nd.DTypeError, match=f"{dtype}: {other}"):
                    plan(np.zeros((1, 4, 4, 4), DTYPES[dtype]), np.zeros((1, 4, 4, 4), DTYPES[other]))
        with pytest.raises(nd.LayoutError, match="int8"):
            nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), DTYPES[dtype]), quantization=nd.Quantization((0.5, 0), 0.5, (0.5, 0)))


@every_isa
def test_d2_float64_is_summed_in_float64(isa):
    """D2: float64 is summed in float64."""
    x, weights = np.full((1, 3, 3, 9), 1.0), np.full((3, 3, 9, 1), 2.0**-40)
    weights[1, 1] = 1.0
    assert (np.asarray(nd.depthwise_conv2d(x, weights, padding="valid", isa=isa)) == 1 + 8 * 2.0**-40).all()


def every_number(dtype):
    """All numbers of a half type, NaN and infinity last."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype])
    finite = np.isfinite(numbers.astype(np.float32))
    return numbers[finite], numbers[~finite]


@every_isa
@every_half
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d3_every_number_comes_back(isa, dtype, data_format):
    """D3: float16 and bfloat16 are widened to float32, which is exact, subnormal numbers too."""
    finite, others = every_number(dtype)
    for channels in (1, 16, 64):
        values = np.resize(finite, (2, 4, -(-len(finite) // (8 * channels)), channels))
        values = values if data_format == "NHWC" else np.ascontiguousarray(values.transpose(0, 3, 1, 2))
        got = np.asarray(nd.depthwise_conv2d(values, np.ones((1, 1, channels, 1), DTYPES[dtype]), data_format=data_format, isa=isa))
        assert (got.astype(np.float32) == values.astype(np.float32)).all()
        got = np.asarray(nd.depthwise_conv2d(np.resize(others, (1, 16, 8, 16)), np.ones((1, 1, 16, 1), DTYPES[dtype]), isa=isa)).astype(np.float32)
        assert np.array_equal(got, np.resize(others, (1, 16, 8, 16)).astype(np.float32), equal_nan=True)


@every_isa
@every_half
def test_d3_sums_are_rounded_once_half_to_even(isa, dtype):
    """D3: is rounded once, to nearest, half to even."""
    finite, _ = every_number(dtype)
    finite = np.sort(finite.astype(np.float32))
    middles = (finite[1:].astype(np.float64) + finite[:-1]) / 2
    for factor in (1.0, 1 - 2.0**-23, 1 + 2.0**-23):
        # A bias may be float32: every number, and every tie between two of them, comes out of a sum.
        sums = (middles * factor).astype(np.float32)
        for multiplier in (1, 16):
            bias = np.resize(sums, -(-len(sums) // 16) * 16)
            weights = np.zeros((1, 1, len(bias) // multiplier, multiplier), DTYPES[dtype])
            got = np.asarray(nd.depthwise_conv2d(np.ones((1, 1, 1, len(bias) // multiplier), DTYPES[dtype]), weights, bias, isa=isa))
            assert np.array_equal(got[0, 0, 0].view(np.uint16), (bias + np.float32(0)).astype(DTYPES[dtype]).view(np.uint16))


@every_isa
@every_half
def test_d3_sums_are_float32(isa, dtype):
    """D3: and summed there."""
    # In halves each of these additions would be lost.
    x = np.ones((1, 3, 3, 17), DTYPES[dtype])
    weights = np.full((3, 3, 17, 1), 2.0**-12, DTYPES[dtype])
    weights[0, 0], weights[2, 2] = 1, -1
    for order in (weights, weights[::-1, ::-1]):
        assert (np.asarray(nd.depthwise_conv2d(x, order, padding="valid", isa=isa)).astype(np.float32) == 7 * 2.0**-12).all()


@every_isa
@every_dtype
def test_d4_clamps_and_what_is_not_finite(isa, dtype):
    """D4: `activation` clamps before that rounding; NaN stays NaN, and what is beyond the largest number of the type becomes infinity."""
    for channels in (1, 3, 17, 32):
        x, weights, bias = random((2, 5, 6, channels), dtype, 1), random((3, 3, channels, 1), dtype, 2), random(channels, dtype, 3)
        for activation, bounds in (("relu", (0, math.inf)), ("relu6", (0, 6)), ("relu_n1_to_1", (-1, 1))):
            got = nd.depthwise_conv2d(x, weights, bias, activation=activation, isa=isa)
            assert_close(got, dtype, x, weights, bias, bounds, padding=((1, 1), (1, 1)))
        x[0, 2, 2], x[1, 2, 2, 0] = math.nan, math.inf
        ones = np.ones((3, 3, channels, 1), DTYPES[dtype])
        got = in_numpy(nd.depthwise_conv2d(x, ones, activation="relu6", isa=isa))
        assert np.isnan(got[0, 1:4, 1:4]).all()
        assert not np.isnan(got[0, :, 4:]).any()
        assert (got[1, 1:4, 1:4, 0] == 6).all()
        largest = np.full((1, 3, 3, channels), {"float64": 1e308, "float16": 6e4, "bfloat16": 3e38}[dtype], DTYPES[dtype])
        assert np.isposinf(in_numpy(nd.depthwise_conv2d(largest, ones, isa=isa))).all()
        assert np.isneginf(in_numpy(nd.depthwise_conv2d(-largest, ones, isa=isa))).all()
        assert (in_numpy(nd.depthwise_conv2d(largest, ones, activation="relu6", isa=isa)) == 6).all()


@every_isa
@every_half
def test_d4_a_nan_of_any_bits_stays_nan(isa, dtype):
    """D4: NaN stays NaN."""
    nan = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001], np.uint32).view(np.float32)
    for channels in (4, 32):
        got = nd.depthwise_conv2d(random((1, 5, 9, channels), dtype), random((3, 3, channels, 1), dtype, 2), np.resize(nan, channels), isa=isa)
        assert np.isnan(in_numpy(got)).all()


@every_isa
@every_half
def test_d3_halves_are_read_in_place(isa, dtype):
    """D3: float16 and bfloat16 are widened to float32."""
    for size in (3, 5, 7):
        kernel = f"in place, tiles of {3 if size == 3 and isa.startswith('avx512') else 2} rows"
        if isa == "baseline" or (isa, dtype, size) == ("avx2", "bfloat16", 5):
            kernel = "widened to float32"
        plan = nd.DepthwiseConv2d(random((size, size, 40, 1), dtype), isa=isa)
        text = plan.explain(plan.input_descriptor((1, 28, 28, 40)))
        assert "sums in float32" in text
        assert kernel in text
    for size, stride, kernel in ((4, 1, "tiles of 2 rows and 6"), (4, 2, "tiles of 2 rows and 4"), (2, 2, "output by output"), (3, 3, "output by output")):
        plan = nd.DepthwiseConv2d(random((size, size, 40, 1), dtype), stride=stride, isa=isa)
        assert (f"in place, {kernel}" in plan.explain(plan.input_descriptor((1, 28, 28, 40)))) == (isa != "baseline")


@every_isa
@every_half
@pytest.mark.parametrize("side", SIDES)
def test_d3_columns_side_by_side_are_read_in_place(isa, dtype, side):
    """D3: widened to float32, which is exact, and summed there: by 3x3 with AVX-512 where they lie."""
    in_place = 0
    for place, (width, channels) in enumerate(itertools.product((1, 2, 9, 15, 16, 17, 31, 33, 48, 66, 97, 130), (1, 3, 7, 16))):
        stride, dilation = ((1, 1), (2, 2), (1, 1), (2, 2), (1, 1), (1, 1))[place % 6], ((1, 1), (1, 1), (2, 1), (1, 1), (1, 3), (3, 2))[place % 6]
        sides = (place % 3, (place + 1) % 3), (place // 3 % 3, place // 2 % 3)
        height = (1, 3, 8, 21, 40)[place % 5]
        if min(height + sum(sides[0]) - 2 * dilation[0], width + sum(sides[1]) - 2 * dilation[1]) < 1:
            sides = (6, 5), (5, 6)
        x, weights, bias = random((2, channels, height, width), dtype, place), random((3, 3, channels, 1), dtype, 2), random(channels, dtype, 3)
        steps = {"stride": stride, "dilation": dilation, "padding": sides}
        limits = [limit.transpose(0, 3, 1, 2) for limit in interval(dtype, x.transpose(0, 2, 3, 1), weights, bias, (0, math.inf), **steps)]
        plan = nd.DepthwiseConv2d(weights, bias, activation="relu", data_format="NCHW", isa=isa, threads=1 + place % 2, **steps)
        out = guarded_array(np.full(limits[0].shape, 7, DTYPES[dtype]), side)
        plan(guarded_array(x, side), out)
        assert_within(out, dtype, limits, (x.shape, steps))
        in_place += "in place, columns of planes from top to bottom" in plan.explain()
    assert (in_place > 30) == isa.startswith("avx512")


@every_isa
@every_half
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("activation", [None, "relu6"])
def test_d3_even_columns_and_narrow_planes(isa, dtype, side, activation):
    """D3: widened to float32, which is exact, and summed there: bfloat16 two columns a lane, rows of two planes in one register, as the width allows."""
    for place, (width, sides) in enumerate(itertools.product((18, 28, 32, 56, 64, 96, 98, 112, 130, 200), ((1, 1), (1, 3), (3, 1), (1, 0), (0, 2)))):
        height, channels, dilation = (2, 5, 19)[place % 3], 1 + place % 4, 1 + place % 2
        steps = {"stride": (1, 1), "dilation": (dilation, 1), "padding": ((2, 1), sides)}
        check_planes(isa, dtype, side, (1, channels, height, width), 1 + place % 5 // 4, activation, steps)
    for width, sides in itertools.product(range(1, 18), ((0, 1), (1, 1), (2, 0))):
        if width + sum(sides) >= 3:
            steps = {"stride": (2, 2), "dilation": (1, 1), "padding": ((1, 1), sides)}
            check_planes(isa, dtype, side, (2, 1 + width % 5, 1 + width % 9, width), 1 + width % 7 // 6, activation, steps)


def check_planes(isa, dtype, side, shape, multiplier, activation, steps):
    outputs = shape[1] * multiplier
    x, weights, bias = random(shape, dtype, 1), random((3, 3, shape[1], multiplier), dtype, 2), random(outputs, dtype, 3)
    bounds = (0, 6) if activation == "relu6" else (-math.inf, math.inf)
    limits = [limit.transpose(0, 3, 1, 2) for limit in interval(dtype, x.transpose(0, 2, 3, 1), weights, bias, bounds, **steps)]
    plan = nd.DepthwiseConv2d(weights, bias, activation=activation, data_format="NCHW", isa=isa, **steps)
    out = guarded_array(np.full(limits[0].shape, 7, DTYPES[dtype]), side)
    plan(guarded_array(x, side), out)
    assert_within(out, dtype, limits, (shape, multiplier, steps))


@every_isa
@every_half
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (7, 7), (2, 3), (1, 5)])
def test_d3_pixels_side_by_side_are_read_in_place(isa, dtype, side, kernel):
    """D3: widened to float32, which is exact, and summed there: with AVX-512 where they lie, by square filters at steps of 1 and by others at larger ones."""
    in_place = set()
    for place, (width, channels) in enumerate(itertools.product((1, 2, 5, 8, 11, 16, 33, 70), range(1, 9))):
        stride = (1, 1) if kernel[0] > 3 else ((1, 1), (2, 2), (1, 1), (1, 3))[place // 8 % 4]
        steps = {"stride": stride, "dilation": ((1, 1), (2, 1), (1, 2))[place % 3], "padding": ((place % 4 + 3, 9), (6, place // 4 % 4 + 7))}
        x = random((2, (1, 4, 19, 40)[place // 2 % 4], width, channels), dtype, place)
        weights, bias = random((*kernel, channels, 1), dtype, 2), random(channels, dtype, 3)
        plan = nd.DepthwiseConv2d(weights, bias, activation="relu6", isa=isa, threads=1 + place % 2, **steps)
        limits = interval(dtype, x, weights, bias, (0, 6), **steps)
        out = guarded_array(np.full(limits[0].shape, 7, DTYPES[dtype]), side)
        plan(guarded_array(x, side), out)
        assert_within(out, dtype, limits, (x.shape, steps))
        if "in place, pixels side by side" in plan.explain():
            in_place.add((stride[1], channels))
    if not isa.startswith("avx512"):
        assert not in_place
        return
    alone = {(stride, channels) for stride, channels in in_place if stride == 1}
    assert alone == ({(1, channels) for channels in range(2, 9)} if kernel[0] == kernel[1] else set())
    assert (len(in_place) > len(alone)) == (kernel[0] <= 3)


@every_isa
@every_half
@pytest.mark.parametrize("side", SIDES)
def test_d3_planes_are_widened_some_at_a_time(isa, dtype, side):
    """D3: widened to float32, which is exact, and summed there; rounded once: the sums of a float32 plan, whatever is widened together."""
    for number, (shape, kernel, multiplier, steps) in enumerate(
        [
            ((2, 7, 60, 50), (5, 5), 1, {}),  # several groups of planes, the last one smaller
            ((1, 17, 7, 7), (5, 5), 1, {}),  # planes that become pixels on the stack, with AVX-512
            ((1, 3, 90, 131), (5, 5), 1, {"stride": 2}),  # several parts of each plane
            ((1, 2, 61, 300), (5, 3), 3, {"dilation": (3, 1), "padding": ((9, 4), (0, 2))}),
            ((1, 2, 4, 2100), (2, 9), 1, {"padding": ((0, 5), (4, 4))}),  # rows without any input at the end
            ((1, 1, 3, 5), (5, 5), 20, {"activation": "relu"}),
        ]
    ):
        x, weights, bias = random(shape, dtype, number), random((*kernel, shape[1], multiplier), dtype, 2), random(shape[1] * multiplier, dtype, 3)
        bias = bias.astype(np.float32)
        plan = nd.DepthwiseConv2d(weights, bias, data_format="NCHW", isa=isa, **steps)
        # 17 channels fill the short vectors of `baseline` well enough for pixels, which float16 is not there.
        assert ("plane by plane" in plan.explain(x)) != (shape[1] == 17 and (isa, dtype) == ("baseline", "bfloat16"))
        wide = nd.DepthwiseConv2d(weights.astype(np.float32), bias, data_format="NCHW", isa=isa, **steps)(x.astype(np.float32))
        wanted = wide.to_numpy().astype(DTYPES[dtype])
        given = guarded_array(x, side)
        for threads in (1, 2):
            out = guarded_array(np.full(wanted.shape, np.nan, DTYPES[dtype]), side)
            nd.DepthwiseConv2d(weights, bias, data_format="NCHW", isa=isa, threads=threads, **steps)(given, out)
            np.testing.assert_array_equal(out.view(np.uint16), wanted.view(np.uint16))
        # Rows and planes apart.
        apart = np.full((*shape[:2], shape[2] + 1, shape[3] + 3), np.nan, DTYPES[dtype])[:, :, :-1, :-3]
        apart[...] = x
        room = np.full((*wanted.shape[:3], wanted.shape[3] + 5), 7, DTYPES[dtype])
        plan(apart, room[..., 2:-3])
        np.testing.assert_array_equal(np.ascontiguousarray(room[..., 2:-3]).view(np.uint16), wanted.view(np.uint16))
        assert (room[..., :2] == 7).all()
        assert (room[..., -3:] == 7).all()


@every_isa
@every_half
@pytest.mark.parametrize("side", SIDES)
def test_d3_pixels_are_widened_some_at_a_time(isa, dtype, side):
    """D3: widened to float32, which is exact, and summed there; rounded once: the sums of a float32 plan, whatever is widened together."""
    widened = 0
    for number, (shape, kernel, multiplier, steps) in enumerate(
        [
            ((2, 37, 29, 24), (9, 9), 1, {}),  # several groups of rows
            ((1, 9, 8, 301), (9, 9), 1, {}),  # and of channels, the last one smaller
            ((1, 3, 1055, 33), (5, 9), 1, {"padding": ((2, 2), (4, 4))}),  # and of columns, the last one of 1 if they were equal
            ((1, 2, 700, 4), (3, 3), 1, {"stride": (1, 2), "padding": ((0, 4), (300, 1))}),  # columns and rows without any input
            ((1, 30, 40, 3), (3, 3), 1, {"stride": 2}),  # few channels side by side
            ((1, 30, 40, 5), (4, 2), 1, {"stride": 3}),
            ((2, 17, 23, 3), (3, 3), 3, {"activation": "relu"}),
            ((1, 12, 31, 2), (5, 5), 16, {"dilation": (2, 1)}),
            ((1, 9, 14, 40), (2, 2), 1, {}),
            ((1, 9, 14, 40), (2, 6), 1, {"stride": 2}),
            ((1, 200, 1, 19), (31, 1), 1, {}),
            ((1, 1, 70, 65), (1, 31), 1, {}),
        ]
    ):
        x, weights, bias = random(shape, dtype, number), random((*kernel, shape[3], multiplier), dtype, 2), random(shape[3] * multiplier, dtype, 3)
        bias = bias.astype(np.float32)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, **steps)
        widened += "widened to float32" in plan.explain(x)
        wanted = nd.DepthwiseConv2d(weights.astype(np.float32), bias, isa=isa, **steps)(x.astype(np.float32)).to_numpy().astype(DTYPES[dtype])
        given = guarded_array(x, side)
        for threads in (1, 2):
            out = guarded_array(np.full(wanted.shape, np.nan, DTYPES[dtype]), side)
            nd.DepthwiseConv2d(weights, bias, isa=isa, threads=threads, **steps)(given, out)
            np.testing.assert_array_equal(out.view(np.uint16), wanted.view(np.uint16))
        # Rows, columns and channels apart, and as the plan has them.
        apart = np.full((*shape[:3], shape[3] + 3), np.nan, DTYPES[dtype])[..., :-3]
        apart[...] = x
        room = np.full((*wanted.shape[:3], wanted.shape[3] + 5), 7, DTYPES[dtype])
        plan(apart[:, ::-1, ::-1][:, ::-1, ::-1], room[..., 2:-3])
        np.testing.assert_array_equal(np.ascontiguousarray(room[..., 2:-3]).view(np.uint16), wanted.view(np.uint16))
        assert (room[..., :2] == 7).all()
        assert (room[..., -3:] == 7).all()
        got = plan(on(plan.input_descriptor(shape), x, 5))
        np.testing.assert_array_equal(np.asarray(got.to_numpy()).view(np.uint16), wanted.view(np.uint16))
    assert widened >= (7 if isa.startswith("avx512") else 8)  # there few channels side by side are read in place


@every_half
def test_d3_scratch_does_not_grow_with_the_image(dtype):
    """D3: float16 and bfloat16 are widened to float32."""
    for channels in (24, 500):
        plan, sizes = nd.DepthwiseConv2d(random((9, 9, channels, 1), dtype)), []
        for size in ((90, 90), (30, 3000)):
            text = plan.explain(plan.input_descriptor((1, *size, channels)))
            sizes.append(int(re.search(r"(\d+) bytes of scratch", text)[1]))
        assert max(sizes) < 2**20
        assert sizes[1] <= 2 * sizes[0]


@every_half
def test_d5_weights_and_bias_of_other_types(dtype):
    """D5: A bias of float16 or bfloat16 weights may be float32 as well."""
    x, weights, bias = random((1, 4, 5, 6), dtype, 1), random((3, 3, 6, 1), dtype, 2), random(6, dtype, 3)
    want = in_numpy(nd.depthwise_conv2d(x, weights, bias))
    bits = nd.zeros(weights.shape, dtype=dtype)
    bits[...] = weights
    same_bias = nd.zeros(bias.shape, dtype=dtype)
    same_bias[...] = bias
    for some_weights in (weights, bits, weights[::-1].copy()[::-1]):
        for some_bias in (bias, bias.astype(np.float32), same_bias, same_bias.astype("float32"), bias[None]):
            got = nd.depthwise_conv2d(x, some_weights, some_bias)
            assert got.dtype.name == dtype
            assert (in_numpy(got) == want).all()
    for other in ("float64", "int32", HALVES[dtype == "float16"]):
        with pytest.raises(nd.DTypeError, match=f"{dtype} or float32 for these weights: {other}"):
            nd.DepthwiseConv2d(weights, np.ones(6, DTYPES.get(other, other)))


def test_d5_float64_takes_a_float64_bias():
    """D5: one of float64 weights is float64."""
    with pytest.raises(nd.DTypeError, match="float64 for these weights: float32"):
        nd.DepthwiseConv2d(np.ones((3, 3, 4, 1)), np.ones(4, np.float32))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("size", "kernel", "stride"),
    [
        *(((14, 14), (3, 3), 1), ((9, 28), (3, 3), 1), ((5, 12), (3, 3), 1), ((15, 15), (3, 3), 2), ((9, 24), (3, 3), 2), ((14, 28), (3, 3), 2)),
        *(((10, 22), (3, 3), 3), ((7, 13), (4, 4), 1)),
        *(((5, 21), (1, taps), 1) for taps in (3, 4, 5, 7)),
        *(((21, 6), (taps, 1), 1) for taps in (3, 5, 7)),
    ],
)
@pytest.mark.parametrize("channels", [16, 37, 64])
@every_isa
def test_d6_words_move_as_bytes(isa, channels, size, kernel, stride, side):
    """D6: Where half a vector of 64 bytes takes half of its time, by a move of words, elsewhere by one of bytes. The bits are the same."""
    x, weights = guarded_array(random((1, *size, channels), "bfloat16"), side), random((*kernel, channels, 1), "bfloat16", 1)
    padding, got = same(size, kernel, (stride, stride), (1, 1)), []
    for machine in (*MACHINES, HALVING):
        with ways(*machine):
            plan = nd.DepthwiseConv2d(weights, stride=stride, padding=padding, isa=isa)
            out = guarded_array(np.zeros((1, *(-(-n // stride) for n in size), channels), x.dtype), side)
            plan(x, out)
            got.append(out)
    assert len({array.tobytes() for array in got}) == 1
    assert_close(got[0], "bfloat16", x, weights, stride=(stride, stride), padding=padding)

"""ADR 0005: the depthwise contract."""

import copy
import enum
import functools
import gc
import itertools
import math
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nd4jlike as nd
from guards import SIDES, guarded, guarded_array
from layouts import arrangements, hosted, on, padded
from machines import HALVING, second_level, ways
from nd4jlike import geometry
from nd4jlike.kernels import cpu, dispatch
from reference import accumulate, depthwise_float, depthwise_quantized, out_size, same_padding
from shared import conformance
from small import numbered

ISAS = dispatch.available()
# One less than, as many as and one more than the lanes of every vector, once, twice and four times.
# Wider than what the kernels compute in place (ADR 0017): through bands, which read a halo.
WIDE = 60
CHANNELS = (1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 67)
FLOATS = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
every_isa = pytest.mark.parametrize("isa", ISAS)
LANES = {"baseline": 4, "avx2": 8}


def random(shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def explicit(padding, size, kernel, stride, dilation):
    """Sides of "same" and "valid" as the oracle takes them."""
    if padding == "same":
        return tuple(same_padding(n, k, s, d) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True))
    return ((0, 0), (0, 0)) if padding == "valid" else padding


def assert_close(got, x, weights, bias=None, activation=(-math.inf, math.inf), **steps):
    """Compare with float64, each element within its own bound."""
    want, bound = depthwise_float(x, weights, bias, activation, **steps)
    got = np.asarray(got)
    assert got.shape == want.shape
    assert got.dtype == np.float32
    worst = np.max(abs(got - want) - bound, initial=-1)
    assert worst <= 0, f"{worst} beyond the bound at {np.unravel_index(np.argmax(abs(got - want) - bound), want.shape)}"


@every_isa
@pytest.mark.parametrize("channels", CHANNELS)
def test_d1_value_is_the_sum_over_the_window_for_channels_around_the_lanes(isa, channels):
    """D1: y[n, i, j, c*M + m] = bias[c*M + m] + sum over a, b of x[n, i*sh - top + a*dh, j*sw - left + b*dw, c] * w[a, b, c, m]."""
    for size, kernel, stride, dilation in (
        ((5, 6), (3, 3), (1, 1), (1, 1)),
        ((6, 7), (3, 3), (2, 2), (1, 1)),
        ((7, 9), (2, 5), (1, 2), (2, 1)),
        ((1, 1), (3, 3), (1, 1), (1, 1)),
        ((4, 5), (1, 1), (3, 2), (1, 1)),
    ):
        x, weights, bias = random((2, *size, channels), 1), random((*kernel, channels, 1), 2), random(channels, 3)
        padding = explicit("same", size, kernel, stride, dilation)
        got = nd.depthwise_conv2d(x, weights, bias, stride=stride, dilation=dilation, isa=isa)
        assert_close(got, x, weights, bias, stride=stride, dilation=dilation, padding=padding)


@every_isa
@pytest.mark.parametrize("multiplier", [1, 2, 3, 8])
def test_d1_output_channel_is_input_channel_times_multiplier_plus_index(isa, multiplier):
    """D1: y[n, i, j, c*M + m] = bias[c*M + m] + sum over a, b of x[n, i*sh - top + a*dh, j*sw - left + b*dw, c] * w[a, b, c, m]."""
    for channels in (1, 2, 5, 16, 17):
        x, weights, bias = random((1, 4, 5, channels), 1), random((3, 2, channels, multiplier), 2), random((channels * multiplier,), 3)
        for stride in (1, 2):
            got = nd.depthwise_conv2d(x, weights, bias, stride=stride, padding=((1, 1), (0, 2)), isa=isa)
            assert_close(got, x, weights, bias, stride=(stride, stride), padding=((1, 1), (0, 2)))


@every_isa
def test_d1_images_down_to_one_pixel_and_kernels_larger_than_them(isa):
    """D1: taps outside the image add nothing."""
    for height in (1, 2, 3):
        for width in (1, 2, 5):
            for kernel in ((1, 1), (1, 7), (7, 1), (5, 5), (4, 2)):
                x, weights = random((1, height, width, 17), 1), random((*kernel, 17, 1), 2)
                padding = explicit("same", (height, width), kernel, (1, 1), (1, 1))
                assert_close(nd.depthwise_conv2d(x, weights, isa=isa), x, weights, padding=padding)


@every_isa
def test_d1_strides_beyond_the_kernel_and_dilations_beyond_the_image(isa):
    """D1: y[n, i, j, c*M + m] = bias[c*M + m] + sum over a, b of x[n, i*sh - top + a*dh, j*sw - left + b*dw, c] * w[a, b, c, m]."""
    x = random((3, 7, 8, 9), 1)
    for kernel in ((1, 1), (2, 2), (3, 3)):
        for stride in ((3, 3), (5, 2), (9, 1)):
            for dilation in ((1, 1), (2, 3), (8, 9)):
                weights = random((*kernel, 9, 1), 2)
                padding = explicit("same", (7, 8), kernel, stride, dilation)
                assert_close(
                    nd.depthwise_conv2d(x, weights, stride=stride, dilation=dilation, isa=isa), x, weights, stride=stride, dilation=dilation, padding=padding
                )


@every_isa
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_d1_the_longest_steps(isa, dtype):
    """D1: taps outside the image add nothing; a step that is never taken needs no scratch, the longest one with the most padding finds the image."""
    far = 2**30 - 1
    weights = np.arange(1, 73, dtype=dtype).reshape(3, 3, 8, 1)
    x = np.ones((1, 1, 1, 8), dtype)
    plan = nd.DepthwiseConv2d(weights, stride=far, padding=1, isa=isa)
    assert np.array_equal(plan(x), weights[1, 1].reshape(1, 1, 1, 8))
    assert plan.explain() == nd.DepthwiseConv2d(weights, stride=3, padding=1, isa=isa).explain(x).replace("stride (3, 3)", f"stride ({far}, {far})")
    rows = nd.depthwise_conv2d(x.repeat(4, axis=1), weights, stride=(far, 1), padding=((far, far), (1, 1)), isa=isa).to_numpy()
    assert np.array_equal(rows[0, :, 0], [np.zeros(8), weights[:, 1, :, 0].sum(axis=0), np.zeros(8)])


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kernel", [(2, 2), (4, 4), (3, 5), (6, 2), (9, 9), (4, 16)])
def test_d1_any_filter_on_pixels_of_a_few_channels_stays_within_its_buffers(isa, side, kernel):
    """D1: taps outside the image add nothing."""
    found = set()
    for place, (width, channels) in enumerate(itertools.product((1, 2, 3, 5, 8, 13, 33, 70), (2, 3, 4))):
        dilation = ((1, 1), (1, 1), (2, 3), (1, 2), (3, 1))[place % 5]
        sides = (place % kernel[1], place % 3)
        above = (place % kernel[0], (place + 1) % 4)
        height = (1, 5, 6, 7, 19)[place % 5]
        if min(height + sum(above) - (kernel[0] - 1) * dilation[0], width + sum(sides) - (kernel[1] - 1) * dilation[1]) < 1:
            above, sides = (kernel[0] * dilation[0],) * 2, (kernel[1] * dilation[1],) * 2
        steps = {"dilation": dilation, "padding": (above, sides)}
        values, weights, bias = random((2, height, width, channels), 1), random((*kernel, channels, 1), 2), random((channels,), 3)
        want, bound = depthwise_float(values, weights, bias, (-1.0, 1.0), **steps)
        out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, activation="relu_n1_to_1", threads=1 + place % 2, **steps)
        plan(guarded_array(values, side), out)
        assert (abs(out - want) <= bound).all(), (values.shape, weights.shape, steps)
        found.add("pixels side by side in a vector, from top to bottom" in plan.explain())
    assert (True in found) == (isa == "avx2")


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d1_nothing_beyond_the_buffers_is_touched(isa, side, data_format):
    """D1: taps outside the image add nothing."""
    turn = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    for channels in CHANNELS:
        for multiplier, size, kernel, stride in ((1, (4, 5), (3, 3), 1), (1, (5, 4), (3, 3), 2), (1, (1, 2), (5, 2), 1), (2, (3, 3), (2, 2), 1)):
            values, weights, bias = random((1, *size, channels), 1), random((*kernel, channels, multiplier), 2), random((channels * multiplier,), 3)
            padding = explicit("same", size, kernel, (stride, stride), (1, 1))
            want = accumulate(values, weights, stride=(stride, stride), padding=padding)
            x = guarded_array(values.transpose(turn), side)
            out = guarded_array(np.zeros(want.transpose(turn).shape, np.float32), side)
            plan = nd.DepthwiseConv2d(guarded_array(weights, side), guarded_array(bias, side), stride=stride, data_format=data_format, isa=isa)
            plan(x, out)
            assert_close(out.transpose(np.argsort(turn)), values, weights, bias, stride=(stride, stride), padding=padding)


# Kernel, image, stride, dilation, channels, multiplier: every tile of rows, whole and cut off, and what is near them.
TILES = [
    (kernel, size, stride, dilation, channels, multiplier)
    for kernel, size in (((1, 1), (3, 9)), ((3, 3), (2, 7)), ((3, 3), (5, 15)), ((5, 5), (7, 7)), ((7, 7), (4, 21)), ((2, 3), (1, 3)), ((3, 1), (6, 2)))
    for stride, dilation in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 3), (2, 4), ((2, 1), (1, 3)))
    for channels, multiplier in ((5, 1), (17, 1), (24, 1), (32, 1), (3, 8), (1, 16), (5, 3))
]


@functools.cache
def tile_cases(padding):
    """List the layers of `TILES` that have results, and what comes of them."""
    cases = []
    for kernel, size, stride, dilation, channels, multiplier in TILES:
        steps = {"stride": stride if isinstance(stride, tuple) else (stride,) * 2, "dilation": dilation if isinstance(dilation, tuple) else (dilation,) * 2}
        steps["padding"] = ((2, 2), (2, 2)) if padding == 2 else explicit(padding, size, kernel, **steps)
        if all(out_size(n, k, s, d, *p) > 0 for n, k, s, d, p in zip(size, kernel, *steps.values(), strict=True)):
            values, weights, bias = random((1, *size, channels), 1), random((*kernel, channels, multiplier), 2), random((channels * multiplier,), 3)
            cases.append((values, weights, bias, steps, *depthwise_float(values, weights, bias, **steps)))
    return cases


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("padding", ["same", "valid", 2])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d1_every_tile_stays_within_its_buffers(isa, side, padding, data_format):
    """D1: taps outside the image add nothing."""
    turn = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    for values, weights, bias, steps, want, bound in tile_cases(padding):
        out = guarded_array(np.full(want.transpose(turn).shape, np.nan, np.float32), side)
        nd.DepthwiseConv2d(weights, bias, isa=isa, data_format=data_format, **steps)(guarded_array(values.transpose(turn), side), out)
        assert (abs(out.transpose(np.argsort(turn)) - want) <= bound).all(), (values.shape, weights.shape, steps)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_planes_of_any_width_stay_within_their_buffers(isa, side):
    """D1: taps outside the image add nothing."""
    for width in (*range(1, 20), 31, 32, 33, 47, 48, 63, 64, 65, 96, 131):
        for kernel, stride, dilation, sides in (
            ((3, 3), 1, 1, (1, 1)),
            ((3, 3), 2, 1, (0, 1)),
            ((1, 7), 1, 2, (6, 6)),
            ((2, 5), 2, 2, (4, 3)),
            ((1, 16), 1, 1, (20, 9)),
        ):
            if width + sum(sides) < (kernel[1] - 1) * dilation + 1:
                continue
            values, weights = random((2, 3, width, 3), 1), random((*kernel, 3, 2), 2)
            steps = {"stride": (1, stride), "dilation": (1, dilation), "padding": ((1, 1), sides)}
            want, bound = depthwise_float(values, weights, **steps)
            out = guarded_array(np.full(want.transpose(0, 3, 1, 2).shape, np.nan, np.float32), side)
            plan = nd.DepthwiseConv2d(weights, isa=isa, data_format="NCHW", **steps)
            plan(guarded_array(values.transpose(0, 3, 1, 2), side), out)
            assert "through bands" not in plan.explain()
            assert (abs(out.transpose(0, 2, 3, 1) - want) <= bound).all(), (width, kernel, steps)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_planes_by_any_filter_stay_within_their_buffers(isa, side):
    """D1: taps outside the image add nothing."""
    for size, kernel, multiplier, steps in (
        ((7, 50), (3, 3), 1, {"stride": (3, 3), "padding": ((1, 1), (0, 2))}),
        ((9, 40), (2, 5), 2, {"stride": (1, 4), "dilation": (2, 3), "padding": ((0, 3), (7, 9))}),
        ((11, 33), (3, 2), 1, {"stride": (7, 5), "dilation": (1, 2), "padding": ((2, 2), (3, 1))}),
        ((21, 17), (9, 9), 1, {"padding": ((4, 4), (4, 4))}),
        ((6, 90), (11, 2), 1, {"padding": ((5, 9), (2, 0))}),
        ((2, 1100), (1, 4), 1, {"stride": (1, 2), "padding": ((0, 0), (1, 2))}),  # more columns than are staged at a time
        ((5, 540), (2, 64), 1, {"padding": ((1, 0), (30, 33))}),
        ((3, 80), (2, 65), 1, {"padding": ((1, 0), (30, 33))}),  # a filter too wide for it
        ((300, 3), (7, 2), 1, {"padding": ((3, 3), (0, 1))}),  # several parts of a plane
        ((1, 70), (1, 6), 3, {"padding": ((0, 0), (5, 0))}),
        ((75, 1), (5, 1), 2, {"stride": (2, 1), "padding": ((3, 2), (0, 0))}),  # a column is a row
        ((40, 1), (3, 1), 1, {"dilation": (6, 1), "padding": ((0, 20), (0, 0))}),
        ((33, 1), (2, 1), 1, {"padding": ((1, 0), (0, 0))}),
    ):
        values, weights = random((2, *size, 5), 1), random((*kernel, 5, multiplier), 2)
        want, bound = depthwise_float(values, weights, **steps)
        given = guarded_array(values.transpose(0, 3, 1, 2), side)
        for threads in (1, 3):
            out = guarded_array(np.full(want.transpose(0, 3, 1, 2).shape, np.nan, np.float32), side)
            plan = nd.DepthwiseConv2d(weights, isa=isa, data_format="NCHW", threads=threads, **steps)
            plan(given, out)
            assert (abs(out.transpose(0, 2, 3, 1) - want) <= bound).all(), (size, kernel, steps, threads)
            in_strips = LANES.get(isa, 16) == 16 and kernel == (3, 1)  # D26: without a step, planes of one column are rows
            assert ("plane by plane" in plan.explain()) == (kernel[1] < 65 and not in_strips)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_pixels_of_a_few_channels_stay_within_their_buffers(isa, side):
    """D1: taps outside the image add nothing."""
    mixed = {1: 0, 2: 0}
    for place, (width, channels) in enumerate(itertools.product((1, 2, 5, 6, 10, 11, 33, 170), (1, 2, 3, 4, 5))):
        for kernel, stride, dilation, sides in (
            ((3, 3), (1, 1), 1, (1, 1)),
            ((2, 5), (2, 1), 2, (4, 3)),
            ((9, 1), (1, 1), 3, (0, 0)),
            ((1, 16), (1, 1), 1, (20, 9)),
            ((3, 3), (2, 2), 1, (0, 1)),
            ((5, 5), (1, 3), 2, (3, 5)),
            ((1, 3), (3, 5), 1, (1, 1)),
            ((3, 16), (2, 6), 1, (18, 0)),
        ):
            size = (3 + place % 3, width)
            if width + sum(sides) < (kernel[1] - 1) * dilation + 1:
                continue
            values, weights, bias = random((2, *size, channels), 1), random((*kernel, channels, 1), 2), random((channels,), 3)
            steps = {"stride": stride, "dilation": (1, dilation), "padding": ((4, 5), sides)}
            want, bound = depthwise_float(values, weights, bias, **steps)
            out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
            plan = nd.DepthwiseConv2d(weights, bias, isa=isa, **steps)
            plan(guarded_array(values, side), out)
            mixed[min(stride[1], 2)] += "pixels side by side" in plan.explain()
            assert (abs(out - want) <= bound).all(), (values.shape, weights.shape, steps)
    assert (mixed[1] > 50) == isa.startswith("avx512")
    assert (mixed[2] > 30) == (isa != "baseline")


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kernel", [3, 5, 7])
def test_d1_strips_of_pixels_of_a_few_channels_stay_within_their_buffers(isa, side, kernel):
    """D1: taps outside the image add nothing."""
    mixed = set()
    for place, (width, channels) in enumerate(itertools.product((1, 2, 3, 5, 8, 11, 16, 21, 33, 70), range(2, 9))):
        dilation = ((1, 1), (1, 1), (2, 3), (1, 2), (3, 1))[place % 5]
        before, after = divmod(place % (kernel * kernel), kernel)
        height = (1, 4, 9, 19, 40)[place % 5]
        if min(height + before + after - (kernel - 1) * dilation[0], width + before + after - (kernel - 1) * dilation[1]) < 1:
            before = after = (kernel - 1) * max(dilation)
        steps = {"dilation": dilation, "padding": ((before, after), (after, before))}
        values, weights, bias = random((2, height, width, channels), 1), random((kernel, kernel, channels, 1), 2), random((channels,), 3)
        want, bound = depthwise_float(values, weights, bias, (-1.0, 1.0), **steps)
        out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, activation="relu_n1_to_1", threads=1 + place % 2, **steps)
        plan(guarded_array(values, side), out)
        assert (abs(out - want) <= bound).all(), (values.shape, weights.shape, steps)
        if "pixels side by side in a vector, from top to bottom" in plan.explain():
            mixed.add(channels)
        halves = guarded_array(values.astype(np.float16), side)
        plan = nd.DepthwiseConv2d(weights.astype(np.float16), bias.astype(np.float16), isa=isa, activation="relu_n1_to_1", **steps)
        same = nd.DepthwiseConv2d(
            weights.astype(np.float16).astype(np.float32), bias.astype(np.float16).astype(np.float32), isa=isa, activation="relu_n1_to_1", **steps
        )
        out = guarded_array(np.zeros(want.shape, np.float16), side)
        plan(halves, out)
        assert (abs(np.asarray(out, np.float32) - np.asarray(same(halves.astype(np.float32)))) <= 2e-3).all(), (values.shape, weights.shape, steps)
    most = 8 if isa.startswith("avx512") else 4 if isa == "avx2" else 1
    assert mixed == set(range(2, most + 1))


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("width", [33, 34, 50, 63, 64, 65, 66, 97, 100, 129])
def test_d1_strips_by_steps_of_2_stay_within_their_buffers(isa, side, width):
    """D1: taps outside the image add nothing."""
    for place, (kernel, rows) in enumerate(itertools.product((3, 5), (1, 4, 9))):
        padding = tuple(((1 + i) % kernel, (2 + i) % kernel) for i in (place, place + width))
        values, weights, bias = random((1 + place % 2, rows, width, 3), 1), random((kernel, kernel, 3, 1), 2), random((3,), 3)
        if rows + sum(padding[0]) < kernel:
            continue
        want, bound = depthwise_float(values, weights, bias, (0.0, 6.0), stride=(2, 2), padding=padding)
        out = guarded_array(np.full(want.transpose(0, 3, 1, 2).shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, data_format="NCHW", activation="relu6", stride=2, padding=padding, threads=1 + place % 2)
        plan(guarded_array(values.transpose(0, 3, 1, 2), side), out)
        assert (abs(out.transpose(0, 2, 3, 1) - want) <= bound).all(), (values.shape, weights.shape, padding)
        if isa.startswith("avx512") and rows > 4:
            assert "columns of planes from top to bottom" in plan.explain()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d1_filters_of_one_row_or_column_and_even_ones_stay_within_their_buffers(isa, side, data_format):
    """D1: taps outside the image add nothing."""
    turn = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    found = set()
    filters = [((1, taps), (1, 1)) for taps in (2, 3, 5, 7, 9, 20)] + [((taps, 1), (1, 1)) for taps in (2, 3, 5, 7, 9, 20)]
    for place, (width, (kernel, stride)) in enumerate(
        itertools.product(
            (1, 2, 7, 8, 15, 16, 17, 30, 33, 50, 64, 70, 100, 170, 460), [*filters, ((3, 1), (2, 1)), ((1, 5), (2, 1)), ((2, 2), (2, 2)), ((4, 4), (2, 2))]
        )
    ):
        channels = (1, 2, 3, 5, 8, 17)[place % 6]
        dilation = (1 + place % 2, 1 + place % 3) if stride == (1, 1) else (1, 1)
        reach = [(taps - 1) * step for taps, step in zip(kernel, dilation, strict=True)]
        steps = {"stride": stride, "dilation": dilation, "padding": ((reach[0], place % 3), (place % 4, reach[1]))}
        values, weights, bias = random((1 + place % 2, 5, width, channels), 1), random((*kernel, channels, 1), 2), random((channels,), 3)
        want, bound = depthwise_float(values, weights, bias, (-1.0, 1.0), **steps)
        out = guarded_array(np.full(want.transpose(turn).shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, data_format=data_format, activation="relu_n1_to_1", threads=1 + place % 3, **steps)
        plan(guarded_array(values.transpose(turn), side), out)
        assert (abs(out.transpose(np.argsort(turn)) - want) <= bound).all(), (values.shape, weights.shape, steps)
        found.add(plan.explain().partition("in place, ")[2].partition("\n")[0])
    if isa != "baseline":
        strips = "plane by plane, stacks of rows" if isa == "avx2" else "columns of planes from top to bottom"
        assert {"plane by plane, row by row", strips, "pixels side by side in a vector, row by row"} - found == (
            {"pixels side by side in a vector, row by row"} if data_format == "NCHW" else set()
        )


@every_isa
@pytest.mark.parametrize("channels", [2, 3, 4, 7])
def test_d1_halves_of_a_few_channels_far_beside_the_image(isa, channels):
    """D1: taps outside the image add nothing: nor do parts of a row of outputs that meet no column of it."""
    for kernel, width, sides in ((3, 1200, (1, 1500)), (5, 1200, (1500, 1)), (5, 9, (900, 900)), (7, 3000, (3, 900))):
        steps = {"padding": ((1, 1), sides)}
        values, weights = random((1, 8, width, channels), 1).astype(np.float16), random((kernel, kernel, channels, 1), 2).astype(np.float16)
        want, bound = depthwise_float(values.astype(np.float32), weights.astype(np.float32), **steps)
        got = np.asarray(nd.DepthwiseConv2d(weights, isa=isa, **steps)(values), np.float32)
        assert (abs(got - want) <= bound + 2e-3 * abs(want) + 1e-6).all(), (kernel, width)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_four_taps_by_steps_of_two_stay_within_their_buffers(isa, side):
    """D1: taps outside the image add nothing."""
    for place, (width, channels, sides) in enumerate(itertools.product((1, 4, 7, 8, 9, 17, 30), (8, 16, 33, 64), ((0, 0), (1, 1), (3, 3), (0, 2)))):
        if width + sum(sides) < 4:
            continue
        values, weights, bias = random((1, 2 + place % 7, width, channels), 1), random((4, 4, channels, 1), 2), random((channels,), 3)
        steps = {"stride": (2, 2), "padding": ((1 + place % 3, 2), sides)}
        want, bound = depthwise_float(values, weights, bias, **steps)
        out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, **steps)
        plan(guarded_array(values, side), out)
        assert (abs(out - want) <= bound).all(), (values.shape, steps)
        x = nd.NdArray(plan.input_descriptor(values.shape))
        x[...] = values
        assert (abs(np.asarray(plan(x)) - want) <= bound).all(), (values.shape, steps)


@functools.cache
def planes_cases(kernel, stride, dilation):
    """Planes of any height and width, of several rows at a time and few, and any number of them; and what comes of them."""
    cases = []
    sizes = [(h, w) for h in (1, 2, 5, 7) for w in (1, 6, 7, 8, 9, 14, 15, 16, 17, 28, 32, 33, 47)] + [(10, 455), (3, 456)]
    for place, size in enumerate(sizes):
        before, after = divmod(place % (kernel * kernel), kernel)
        channels, multiplier, batch = ((1, 2, 3, 5, 17)[place % 5], 1 + place % 3 // 2, 1 + place % 2) if place < len(sizes) - 2 else (1 + place % 2, 1, 1)
        if min(size) + before + after < (kernel - 1) * max(dilation) + 1:
            before = after = (kernel - 1) * max(dilation)
        values, weights, bias = random((batch, *size, channels), 1), random((kernel, kernel, channels, multiplier), 2), random((channels * multiplier,), 3)
        steps = {"stride": (stride, stride), "dilation": dilation, "padding": ((before, after), (after, before))}
        cases.append((values.transpose(0, 3, 1, 2), weights, bias, steps, *(a.transpose(0, 3, 1, 2) for a in depthwise_float(values, weights, bias, **steps))))
    return cases


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [(3, 1, (1, 1)), (3, 2, (1, 1)), (5, 1, (1, 1)), (5, 2, (1, 1)), (7, 1, (1, 1)), (3, 1, (2, 3)), (3, 1, (4, 1)), (5, 1, (2, 2)), (7, 1, (1, 3))],
)
def test_d1_square_filters_on_planes_stay_within_their_buffers(isa, side, kernel, stride, dilation):
    """D1: taps outside the image add nothing."""
    for values, weights, bias, steps, want, bound in planes_cases(kernel, stride, dilation):
        out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, data_format="NCHW", **steps)
        plan(guarded_array(values, side), out)
        assert "through bands" not in plan.explain()
        assert (abs(out - want) <= bound).all(), (values.shape, weights.shape, steps)


@every_isa
@pytest.mark.parametrize(("data_format", "channels"), [("NCHW", 5), ("NHWC", 3)])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(2, 2, 1), (3, 1, 1), (3, 1, 2), (3, 2, 1), (5, 1, 1), (5, 2, 1), (7, 1, 1)])
def test_d15_rows_have_the_same_bits_with_any_others(isa, data_format, channels, kernel, stride, dilation):
    """D15: each on its own rows, the result has the same bits for any number of threads; D7: what is between the elements stays as it was."""
    compared, rows = 0, data_format.index("H")
    for place, (height, width) in enumerate(itertools.product((3, 4, 6, 7, 8, 11, 12, 15, 30, 61), (4, 7, 8, 9, 27, 40))):
        before, after = ((kernel // 2 * dilation, (kernel - 1) // 2 * dilation), (0, 3), (kernel, 1), (1, 2 * kernel))[place % 4]
        height, width = height * stride, width * stride
        if min(height, width) + before + after < (kernel - 1) * dilation + 1:
            continue
        x = random((1, channels, height, width) if rows == 2 else (1, height, width, channels), place)
        steps = {"stride": stride, "dilation": dilation, "padding": ((before, after), (after, before)), "data_format": data_format, "isa": isa}
        weights = random((kernel, kernel, channels, 1), 2)
        plan = nd.DepthwiseConv2d(weights, **steps)
        want = np.asarray(plan(x))
        outputs, columns = want.shape[rows], want.shape[rows + 1]
        around = np.full((*want.shape[: rows + 1], columns + place % 5, *want.shape[rows + 2 :]), 7, np.float32)
        inner, outer = np.split(around, [columns], rows + 1)
        plan(x, inner)
        assert inner.tobytes() == want.tobytes(), (height, width)
        assert (outer == 7).all()
        for first in {first for first in (1, outputs // 3, outputs - 1) if 0 < first < outputs}:
            top, last = first * stride - before, (outputs - 1) * stride - before + (kernel - 1) * dilation + 1
            inside = np.ascontiguousarray(np.split(x, [max(top, 0), min(last, height)], rows)[1])
            if not inside.size:
                continue
            pads = ((max(-top, 0), max(last - height, 0)), steps["padding"][1])
            some = nd.DepthwiseConv2d(weights, **(steps | {"padding": pads}))
            texts = [one.explain(given).splitlines() for one, given in ((plan, x), (some, inside))]
            if texts[0][1] == texts[1][1] and texts[0][2].partition(",")[0] == texts[1][2].partition(",")[0]:  # the same kernel and taps
                assert np.asarray(some(inside)).tobytes() == np.split(want, [first], rows)[1].tobytes(), (height, width, first)
                compared += 1
    assert compared > 50


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1)])
def test_d1_planes_of_few_columns_stay_within_their_buffers(isa, side, kernel, stride):
    """D1: taps outside the image add nothing."""
    half, turned = kernel // 2, set()
    sizes = {
        1: ((7, 7), (1, 4), (2, 2), (3, 1), (4, 4), (5, 7), (3, 9), (40, 6), (36, 7), (37, 7), (9, 8), (21, 12), (3, 12), (5, 5), (6, 6), (51, 5), (20, 13)),
        2: ((7, 7), (8, 8), (5, 8), (9, 7), (3, 7), (31, 8), (12, 12), (11, 11), (2, 12), (21, 11), (10, 9), (9, 10), (6, 13)),
    }[stride]
    for size, channels in itertools.product(sizes, (16, 33)):
        steps = {"stride": (stride, stride), "padding": ((half, half), (half, half - size[1] // 8))}
        values, weights, bias = random((2, *size, channels), 1), random((kernel, kernel, channels, 1), 2), random((channels,), 3)
        want, bound = (a.transpose(0, 3, 1, 2) for a in depthwise_float(values, weights, bias, **steps))
        out = guarded_array(np.full(want.shape, np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, data_format="NCHW", stride=stride, padding=steps["padding"], threads=1 + size[0] % 2)
        plan(guarded_array(values.transpose(0, 3, 1, 2), side), out)
        assert "through bands" not in plan.explain()
        assert (abs(out - want) <= bound).all(), (size, channels)
        if "a vector of planes at a time turned into pixels" in plan.explain():
            turned.add(want.shape[3])
    columns = {(3, 1): {5, 6}, (3, 2): {4}, (5, 2): {6}}.get((kernel, stride), {2, 4, 5, 6, 7, 8, 11})
    assert turned == (columns if isa.startswith("avx512") else set())


@every_isa
def test_d6_no_tile_multiplies_an_infinite_weight_with_padding(isa):
    """D6: and all weights are finite."""
    for kernel, size, stride, dilation, channels, multiplier in TILES:
        weights = np.ones((*kernel, channels, multiplier), np.float32)
        weights[0, 0], weights[-1, -1] = math.inf, math.inf
        steps = {"stride": stride, "dilation": dilation, "padding": ((1, 1), (1, 1))}
        if any((k - 1) * np.max(dilation) + 1 > n + 2 for n, k in zip(size, kernel, strict=True)):
            continue
        for data_format, shape in (("NHWC", (1, *size, channels)), ("NCHW", (1, channels, *size))):
            plan, limited = (nd.DepthwiseConv2d(w, isa=isa, data_format=data_format, **steps) for w in (weights, np.minimum(weights, 2.0**20)))
            got, finite = (np.asarray(p(np.ones(shape, np.float32))) for p in (plan, limited))
            assert (got == np.where(finite >= 2.0**20, math.inf, finite)).all(), (data_format, kernel, size, stride, dilation, channels, multiplier)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_nothing_beyond_a_padded_buffer_is_touched(isa, side):
    """D1: taps outside the image add nothing."""
    for channels in CHANNELS:
        values, weights = random((2, 5, 4, channels), 1), random((3, 3, channels, 1), 2)
        for stride in (1, 2, 3):
            plan = nd.DepthwiseConv2d(weights, stride=stride, isa=isa)
            haloed = nd.ShapeDescriptor.from_tag(values.shape, "nhwc", paddings=(0, 2, 2, 0), padding_offsets=(0, 1, 1, 0))
            for layout in (plan.input_descriptor(values.shape), haloed):
                x = nd.NdArray(layout, guarded(layout.allocLength() * 4, side))
                x[...] = values
                layout = plan.output_descriptor(x, paddings=(0, 2, 1, 3), padding_offsets=(0, 1, 1, 1))
                out = nd.NdArray(layout, guarded(layout.allocLength() * 4, side))
                out.fill_padding(7)
                plan(x, out)
                assert out.check_padding(7)
                assert_close(out, values, weights, stride=(stride, stride), padding=explicit("same", (5, 4), (3, 3), (stride, stride), (1, 1)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_d1_any_geometry(data):
    """D1: y[n, i, j, c*M + m] = bias[c*M + m] + sum over a, b of x[n, i*sh - top + a*dh, j*sw - left + b*dw, c] * w[a, b, c, m]."""
    small = st.integers(1, 3)
    kernel, stride, dilation = (data.draw(st.tuples(up_to, up_to)) for up_to in (st.integers(1, 5), small, small))
    sides = data.draw(st.tuples(*[st.tuples(st.integers(0, 4), st.integers(0, 4))] * 2))
    size = tuple(data.draw(st.integers(max(1, (k - 1) * d + 1 - sum(p)), (k - 1) * d + 12)) for k, d, p in zip(kernel, dilation, sides, strict=True))
    batch, channels, multiplier = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 70)), data.draw(st.sampled_from([1, 1, 1, 2, 3]))
    x, weights = random((batch, *size, channels), 1), random((*kernel, channels, multiplier), 2)
    bias = random(channels * multiplier, 3) if data.draw(st.booleans()) else None
    plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, padding=sides, isa=data.draw(st.sampled_from(ISAS)))
    if data.draw(st.booleans()):
        x = on(plan.input_descriptor(x.shape), x, data.draw(st.sampled_from([0, 5])))
    elif data.draw(st.booleans()):
        x = np.asfortranarray(x)
    assert_close(plan(x), np.asarray(x), weights, bias, stride=stride, dilation=dilation, padding=sides)


@every_isa
def test_d1_libnd4j_cases(isa):
    """D1: y[n, i, j, c*M + m] = bias[c*M + m] + sum over a, b of x[n, i*sh - top + a*dh, j*sw - left + b*dw, c] * w[a, b, c, m]."""
    cases = conformance("libnd4j_depthwise_conv2d.json")["cases"]

    def tensor(description):
        if description is None:
            return None
        shape = description.get("fill_shape", description["shape"])
        if "values" in description:
            flat = np.array(description["values"])
        elif "constant" in description["fill"]:
            flat = np.full(math.prod(shape), description["fill"]["constant"])
        else:
            line = description["fill"]["linspace"]
            flat = line["start"] + np.arange(math.prod(shape)) * line["step"]
        values = flat.astype(np.float32).reshape(shape)
        return values.transpose(description["permuted_by"]) if "permuted_by" in description else values

    for case in cases:
        how = case["attributes"]
        padding = "same" if how["mode"] == "SAME" else tuple(how["padding"])
        got = nd.depthwise_conv2d(
            tensor(case["input"]),
            tensor(case["weights"]),
            tensor(case["bias"]),
            stride=tuple(how["stride"]),
            dilation=tuple(how["dilation"]),
            padding=padding,
            data_format=how["data_format"],
            weights_format=("HWCM", "MCHW", "MHWC")[how["weights_format"]],
            isa=isa,
        )
        want = np.array(case["expect"]["values"]).reshape(case["expect"]["shape"])
        tolerance = case["tolerance"]["value"]
        assert got.shape == want.shape
        difference = abs(np.asarray(got) - want)
        assert ((difference <= tolerance) | (difference <= tolerance * np.maximum(abs(np.asarray(got)), abs(want)))).all(), case["id"]
    assert len(cases) == 6


def test_d2_every_weights_format_means_the_same_weights():
    """D2: Weights come as `"HWCM"` (kH, kW, C, M), `"MCHW"`, `"MHWC"` (libnd4j's formats 0, 1, 2) or `"C1HW"` (C*M, 1, kH, kW)."""
    weights = random((3, 2, 5, 4), 1)
    x = random((1, 6, 5, 5), 2)
    want = np.asarray(nd.depthwise_conv2d(x, weights))
    for weights_format, same in (
        ("MCHW", weights.transpose(3, 2, 0, 1)),
        ("MHWC", weights.transpose(3, 0, 1, 2)),
        ("C1HW", weights.reshape(3, 2, 20).transpose(2, 0, 1)[:, None]),
    ):
        for arranged in (same, np.ascontiguousarray(same), np.asfortranarray(same), nd.array(np.ascontiguousarray(same))):
            assert (np.asarray(nd.depthwise_conv2d(x, arranged, weights_format=weights_format)) == want).all(), weights_format


def test_d2_weights_of_any_strides_and_bias_of_two_axes():
    """D2: as anything NumPy reads, with any strides."""
    weights, bias, x = random((3, 3, 4, 2), 1), random(8, 2), random((1, 5, 5, 4), 3)
    want = np.asarray(nd.depthwise_conv2d(x, weights, bias))
    for name, arranged in arrangements(weights, 99):
        for many in (bias, bias[None], np.repeat(bias, 2)[::2], nd.array(bias)):
            assert (np.asarray(nd.depthwise_conv2d(x, arranged, many)) == want).all(), name


def test_d2_a_list_is_a_bias():
    """D2: A bias without an element type (a list) takes the one that belongs to the weights, where that holds its values."""
    weights, x = random((3, 3, 4, 1), 1), random((1, 5, 5, 4), 3)
    for many in ([1, 2, 3, 4], [0.5, 2.0, 3.0, 4.0]):
        assert (np.asarray(nd.depthwise_conv2d(x, weights, many)) == np.asarray(nd.depthwise_conv2d(x, weights, np.array(many, np.float32)))).all()
    sums = nd.Quantization(input=(0.5, 0), weights=0.1, output=None)
    whole, codes = np.ones((3, 3, 4, 1), np.int8), np.ones((1, 5, 5, 4), np.int8)
    assert nd.depthwise_conv2d(codes, whole, [1, 2, 3, 4], quantization=sums)[0, 2, 2].tolist() == [10, 11, 12, 13]
    large = nd.DepthwiseConv2d(whole, [1, 2, 3, 1 << 40], quantization=sums, dtype="int16")
    assert large(codes.astype("int16"))[0, 2, 2].tolist() == [10, 11, 12, 9 + (1 << 40)]
    for many in ([0, 0, 0, 1 << 31], [0.5] * 4, [1j] * 4, ["1"] * 4):
        with pytest.raises(nd.DTypeError, match="bias must be int32"):
            nd.depthwise_conv2d(codes, whole, many, quantization=sums)
    with pytest.raises(nd.DTypeError, match="bias must be float32"):
        nd.depthwise_conv2d(x, weights, [1e300, 0, 0, 0])
    assert np.isinf(nd.depthwise_conv2d(x, weights, [math.inf, 0, 0, 0])[..., 0]).all()


def test_d4_figures_in_arrays():
    """D4: a number, a pair, or ((top, bottom), (left, right)) is explicit: also in NumPy's arrays; others are refused."""
    weights, x = random((3, 3, 4, 1), 1), random((1, 5, 5, 4), 3)
    assert nd.depthwise_conv2d(x, weights, padding=np.array([[1, 2], [0, 3]]), stride=np.array([1, 2])).shape == (1, 6, 3, 4)
    for bad in ({"stride": np.array([1, 2, 3])}, {"dilation": np.array([[1, 2], [3, 4]])}, {"padding": np.array(1.5)}, {"stride": nd.ones(2, "int8")}):
        with pytest.raises(nd.LayoutError, match="must be an integer"):
            nd.depthwise_conv2d(x, weights, **bad)


def test_d2_later_writes_to_the_weights_change_nothing():
    """D2: they are copied."""
    weights, bias, x = random((3, 3, 4, 1), 1), random(4, 2), random((1, 5, 5, 4), 3)
    plan = nd.DepthwiseConv2d(weights, bias)
    want = np.asarray(nd.depthwise_conv2d(x, weights, bias)).copy()
    weights[...] = 0
    bias[...] = 0
    assert (np.asarray(plan(x)) == want).all()


def test_d3_tflite_weights_are_taken_where_the_format_itself_does_not_fit():
    """D3: they are read as TensorFlow Lite's (1, kH, kW, C*M) only where the first extent is 1 and the first reading does not fit."""
    weights = random((3, 3, 2, 4), 1)
    x = random((1, 5, 5, 2), 2)
    want = np.asarray(nd.depthwise_conv2d(x, weights))
    assert (np.asarray(nd.depthwise_conv2d(x, weights.reshape(1, 3, 3, 8))) == want).all()
    # One plan serves inputs of different channels, as the file format does.
    plan = nd.DepthwiseConv2d(weights.reshape(1, 3, 3, 8))
    assert plan(random((1, 5, 5, 8))).shape == (1, 5, 5, 8)
    assert plan(random((1, 5, 5, 1))).shape == (1, 5, 5, 8)


def test_d3_the_format_itself_wins_where_both_readings_fit():
    """D3: `"HWCM"` weights are read as (kH, kW, C, M) wherever that fits the channels of the input and the lengths of bias and scales."""
    weights = random((1, 3, 3, 9), 1)  # a row of 3 on 3 channels, multiplier 9; or 3x3 on 3 channels, multiplier 3
    x = random((1, 5, 5, 3), 2)
    assert nd.depthwise_conv2d(x, weights).shape == (1, 5, 5, 27)
    assert nd.depthwise_conv2d(x, weights, random(27)).shape == (1, 5, 5, 27)
    assert nd.depthwise_conv2d(x, weights, random(9)).shape == (1, 5, 5, 9)
    assert nd.depthwise_conv2d(x, weights.reshape(3, 3, 3, 3)).shape == (1, 5, 5, 9)


def test_d3_scales_tell_the_readings_apart():
    """D3: `"HWCM"` weights are read as (kH, kW, C, M) wherever that fits the channels of the input and the lengths of bias and scales."""
    weights = np.ones((1, 3, 3, 9), np.int8)
    x = np.ones((1, 5, 5, 3), np.int8)
    for count in (9, 27):
        assert nd.depthwise_conv2d(x, weights, quantization=nd.Quantization((1.0, 0), np.ones(count), (1.0, 0))).shape == (1, 5, 5, count)


def test_d4_same_is_the_rule_of_tensorflow_lite():
    """D4: `"same"` is TensorFlow Lite's: `out = ceil(in / s)`, total padding `max((out-1)*s + (k-1)*d + 1 - in, 0)`, its smaller half before."""
    for size in range(1, 9):
        for kernel in range(1, 6):
            for stride in range(1, 4):
                for dilation in (1, 2):
                    x, weights = random((1, size, 3, 1), 1), random((kernel, 1, 1, 1), 2)
                    got = nd.depthwise_conv2d(x, weights, stride=(stride, 1), dilation=(dilation, 1))
                    total = max((math.ceil(size / stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
                    assert got.shape[1] == math.ceil(size / stride)
                    sides = ((total // 2, total - total // 2), (0, 0))
                    assert_close(got, x, weights, stride=(stride, 1), dilation=(dilation, 1), padding=sides)


@pytest.mark.parametrize(
    ("padding", "sides"),
    [
        ("valid", ((0, 0), (0, 0))),
        (2, ((2, 2), (2, 2))),
        ((1, 2), ((1, 1), (2, 2))),
        (((0, 3), (2, 1)), ((0, 3), (2, 1))),
        ([[1, 0], [0, 4]], ((1, 0), (0, 4))),
    ],
)
def test_d4_explicit_padding(padding, sides):
    """D4: a number, a pair, or ((top, bottom), (left, right)) is explicit; `out = (in + padding - (k-1)*d - 1) // s + 1`."""
    x, weights = random((2, 6, 7, 5), 1), random((3, 4, 5, 1), 2)
    for stride in ((1, 1), (2, 3)):
        got = nd.depthwise_conv2d(x, weights, stride=stride, padding=padding)
        assert got.shape == (2, *(out_size(n, k, s, 1, *p) for n, k, s, p in zip((6, 7), (3, 4), stride, sides, strict=True)), 5)
        assert_close(got, x, weights, stride=stride, padding=sides)


@every_isa
@pytest.mark.parametrize("channels", [1, 3, 16, 17])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d5_elements_may_lie_anywhere(isa, channels, data_format):
    """D5: any order, stride and sign of input and output gives the same result."""
    values, weights, bias = random((2, 4, 5, channels), 1), random((3, 3, channels, 2), 2), random(2 * channels, 3)
    turn = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    plan = nd.DepthwiseConv2d(weights, bias, padding=1, data_format=data_format, isa=isa)
    back = np.argsort(turn)
    for name, x in arrangements(values.transpose(turn), np.float32(3e30)):
        got = np.asarray(plan(x)).transpose(back)
        assert np.isfinite(got).all(), name
        assert_close(got, values, weights, bias, padding=((1, 1), (1, 1)))
    for name, out in arrangements(np.zeros((2, 4, 5, 2 * channels), np.float32).transpose(turn), np.float32(3e30)):
        if name != "read-only":
            assert plan(np.ascontiguousarray(values.transpose(turn)), out) is out
            assert_close(np.asarray(out).transpose(back), values, weights, bias, padding=((1, 1), (1, 1)))


def test_d5_a_broadcast_input_is_read_like_any_other():
    """D5: any order, stride and sign of input and output gives the same result."""
    weights = random((3, 3, 4, 1), 1)
    for shape in ((1, 5, 6, 4), (2, 1, 6, 4), (2, 5, 1, 4), (2, 5, 6, 1)):
        x = np.broadcast_to(random(shape, 2), (2, 5, 6, 4))
        assert_close(nd.depthwise_conv2d(x, weights), x, weights, padding=((1, 1), (1, 1)))


@every_isa
@pytest.mark.parametrize("fill", [0.0, 5.0, math.inf, math.nan])
def test_d6_padding_never_reaches_a_result(isa, fill):
    """D6: Padding never reaches a result."""
    for channels in (3, 8, 17, 64):
        values, weights = random((2, 4, 5, channels), 1), random((3, 3, channels, 1), 2)
        for stride in (1, 2, 3):
            plan = nd.DepthwiseConv2d(weights, stride=stride, isa=isa)
            padding = explicit("same", (4, 5), (3, 3), (stride, stride), (1, 1))
            for x in (
                on(plan.input_descriptor(values.shape), values, fill),
                padded(values, (1, 1, 9, 2), (0, 0, 4, 0), fill),
                padded(values, (0, 2, 2, 13), (0, 1, 1, 0), fill),
            ):
                assert_close(plan(x), values, weights, stride=(stride, stride), padding=padding)


def test_d6_padding_that_becomes_dirty_between_two_calls_is_seen():
    """D6: only where every padding cell holds the padding value in this very call."""
    values, weights = random((1, 4, 5, 16), 1), random((3, WIDE, 16, 1), 2)
    plan = nd.DepthwiseConv2d(weights, padding=((1, 1), (1, WIDE)))
    x = on(plan.input_descriptor(values.shape), values)
    out = nd.NdArray(plan.output_descriptor(x))
    want = np.asarray(plan(x)).copy()
    assert "read in place" in plan.explain()
    for change in (
        lambda: x.fill_padding(9),
        lambda: x.hosting_array().__setitem__((0, 0, 3, 2), 1e30),
        lambda: np.asarray(x.hosting_array()).__setitem__((0, -1, -1, -1), math.nan),
    ):
        change()
        assert (np.asarray(plan(x, out)) == want).all()
        assert "held other values" in plan.explain()
        x.fill_padding(0)
        assert (np.asarray(plan(x, out)) == want).all()
        assert "read in place" in plan.explain()


def test_d6_wrapped_memory_is_looked_at():
    """D6: only where every padding cell holds the padding value in this very call."""
    values, weights = random((1, 4, 5, 16), 1), random((3, WIDE, 16, 1), 2)
    plan = nd.DepthwiseConv2d(weights)
    layout = plan.input_descriptor(values.shape)
    memory = np.zeros(layout.allocLength(), np.float32)
    x = nd.NdArray(layout, memory)
    x[...] = values
    want = np.asarray(plan(x)).copy()
    memory[0] = 1e30
    assert (np.asarray(plan(x)) == want).all()
    assert x.check_padding() or memory[0] == np.float32(1e30)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_d6_weights_that_are_not_finite_read_no_padding(value):
    """D6: and all weights are finite."""
    weights = np.ones((3, 3, 8, 1), np.float32)
    weights[0, 0] = value
    plan = nd.DepthwiseConv2d(weights)
    x = padded(np.ones((1, 3, 3, 8), np.float32), (0, 2, 2, 0), (0, 1, 1, 0), 0)
    got = np.asarray(plan(x))
    assert (got[0, 0] == [[[4] * 8, [6] * 8, [4] * 8]]).all()
    assert not np.isfinite(got[0, 1, 1]).any()
    assert "not finite" in plan.explain()


def test_d6_views_of_padded_arrays_do_not_take_their_elements_for_padding():
    """D6: Padding never reaches a result."""
    weights = random((3, WIDE, 8, 1), 2)
    x = padded(random((3, 6, 7, 8), 1), (0, 2, 2, 0), (0, 1, 1, 0), 0)
    plan = nd.DepthwiseConv2d(weights)
    for index in (np.s_[1:2], np.s_[:, 1:], np.s_[:, :4], np.s_[:, 1:-1, 2:5], np.s_[:, ::2], np.s_[:, :, ::-1], np.s_[:, ::-1], np.s_[::2, :, 1::3]):
        values = np.asarray(x)[index]
        height, width = values.shape[1:3]
        assert_close(plan(x[index]), values, weights, padding=explicit("same", (height, width), (3, WIDE), (1, 1), (1, 1)))


@every_isa
def test_d7_the_padding_of_out_stays_as_it_is(isa):
    """D7: its elements are written, its padding and everything between its elements stay as they were."""
    for channels in (1, 3, 8, 17, 32, 67):
        x, weights = random((2, 5, 6, channels), 1), random((3, 3, channels, 1), 2)
        out = padded(np.zeros_like(x), (1, 2, 3, 5), (1, 1, 1, 2), 7)
        nd.depthwise_conv2d(x, weights, out=out, isa=isa)
        assert out.check_padding(7)
        assert_close(out, x, weights, padding=((1, 1), (1, 1)))


@every_isa
def test_d7_cells_between_the_elements_of_out_stay_as_they_are(isa):
    """D7: its elements are written, its padding and everything between its elements stay as they were."""
    for channels in (1, 3, 8, 17, 32):
        x, weights = random((2, 5, 6, channels), 1), random((3, 3, channels, 1), 2)
        host, out = hosted(np.zeros_like(x), (1, 1, 2, 1), (1, 2, 1, 3), 7)
        nd.depthwise_conv2d(x, weights, out=out, isa=isa)
        assert_close(out, x, weights, padding=((1, 1), (1, 1)))
        out[...] = 7
        assert (host == 7).all()
        host = np.full((2, 5, 6, 3 * channels), 7, np.float32)
        out = host[..., ::3]
        nd.depthwise_conv2d(x, weights, out=out, isa=isa)
        assert_close(out, x, weights, padding=((1, 1), (1, 1)))
        out[...] = 7
        assert (host == 7).all()


def test_d8_overlapping_memory_is_refused():
    """D8: Input and output do not overlap: the ranges of addresses that a call may touch are disjoint, or the call is refused."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.float32))
    memory = np.zeros(200, np.float32)
    x = memory[:80].reshape(1, 4, 5, 4)
    for start, overlaps in ((0, True), (1, True), (79, True), (80, False), (120, False)):
        out = memory[start : start + 80].reshape(1, 4, 5, 4)
        if overlaps:
            before = memory.copy()
            with pytest.raises(nd.LayoutError, match="overlap"):
                plan(x, out)
            assert (memory == before).all()
        else:
            plan(x, out)
    plan(memory[80:160].reshape(1, 4, 5, 4), memory[:80].reshape(1, 4, 5, 4))
    with pytest.raises(nd.LayoutError, match="overlap"):
        plan(memory[79:159].reshape(1, 4, 5, 4), memory[:80].reshape(1, 4, 5, 4))
    with pytest.raises(nd.LayoutError, match="overlap"):
        plan(x[:, ::-1], x)


def test_d8_the_halo_that_a_call_reads_counts():
    """D8: the ranges of addresses that a call may touch are disjoint."""
    plan = nd.DepthwiseConv2d(np.ones((3, WIDE, 2, 1), np.float32), padding=((1, 1), (1, WIDE - 2)))
    memory = np.zeros(1000, np.float32)
    layout = plan.input_descriptor((1, 3, 3, 2))
    x = nd.NdArray(layout, memory)
    x[...] = 1
    cells = layout.allocLength()
    assert layout.padded_shape == (1, 5, WIDE + 2, 2)
    with pytest.raises(nd.LayoutError, match="overlap"):
        plan(x, memory[cells - 1 : cells + 17].reshape(1, 3, 3, 2))
    plan(x, memory[cells : cells + 18].reshape(1, 3, 3, 2))


GOOD = {"weights": np.ones((3, 3, 4, 1), np.float32)}
Q = nd.Quantization((0.5, 0), 0.5, (0.5, 0))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"weights": np.ones((3, 3, 4), np.float32)}, ValueError, "four axes"),
        ({"weights": np.ones((0, 3, 4, 1), np.float32)}, ValueError, "empty"),
        ({"weights": np.ones((4, 2, 3, 3), np.float32), "weights_format": "C1HW"}, ValueError, "one input channel"),
        ({"weights": [[[[1.0]], [[1.0], [2.0]]]]}, ValueError, "array of numbers"),
        ({"weights": "weights"}, TypeError, "no kernel"),
        ({"weights": np.ones((3, 3, 4, 1), ">f4")}, TypeError, "native"),
        ({"bias": np.ones(3, np.float32)}, ValueError, "4 output channels, as weights_format reads the weights: 3"),
        ({"bias": np.ones((2, 2), np.float32)}, ValueError, "(1, C*M)"),
        ({"bias": np.float32(1)}, ValueError, "(1, C*M)"),
        ({"bias": np.ones(4)}, TypeError, "float32 for these weights: float64"),
        ({"bias": np.ones(4, np.int32)}, TypeError, "float32 for these weights: int32"),
        ({"stride": 0}, ValueError, "stride must be 1"),
        ({"stride": (1, -1)}, ValueError, "stride must be 1"),
        ({"stride": (1, 1, 1)}, ValueError, "pair"),
        ({"stride": 1.5}, ValueError, "integer"),
        ({"stride": True}, ValueError, "integer"),
        ({"stride": 2**70}, ValueError, "stride must be 1 to"),
        ({"dilation": 0}, ValueError, "dilation must be 1"),
        ({"dilation": (2, "2")}, ValueError, "integer"),
        ({"padding": -1}, ValueError, "padding must be 0"),
        ({"padding": ((1, 1), (0, -1))}, ValueError, "0 to"),
        ({"padding": ((1, 1), 1)}, ValueError, "((top, bottom), (left, right)): ((1, 1), 1)"),
        ({"padding": ((1, 1), (3,))}, ValueError, "((top, bottom), (left, right)): ((1, 1), (3,))"),
        ({"padding": "full"}, ValueError, "'same', 'valid' or one of an integer, (height, width), ((top, bottom), (left, right)): 'full'"),
        ({"padding": (1, 1, 1, 1)}, ValueError, "((top, bottom), (left, right)): (1, 1, 1, 1)"),
        ({"padding": None}, ValueError, "'same', 'valid'"),
        ({"padding": 2**30}, ValueError, "1073741823"),
        ({"data_format": "NHCW"}, ValueError, "'NHWC', 'NCHW'"),
        ({"data_format": 1}, ValueError, "'NHWC', 'NCHW'"),
        ({"data_format": np.array(["NHWC", "NCHW"])}, ValueError, "'NHWC', 'NCHW'"),
        ({"activation": ["relu"]}, ValueError, "None, 'relu', 'relu6', 'relu_n1_to_1'"),
        ({"stride": np.int64(0)}, ValueError, "stride must be 1 to 1073741823: 0"),
        ({"stride": np.int64(2**30)}, ValueError, "stride must be 1 to 1073741823"),
        ({"stride": np.array([1, 2, 3])}, ValueError, "pair"),
        ({"weights_format": "OIHW"}, ValueError, "'HWCM', 'MCHW', 'MHWC', 'C1HW'"),
        ({"activation": "gelu"}, ValueError, "None, 'relu', 'relu6', 'relu_n1_to_1'"),
        ({"rounding": "up"}, ValueError, "'tflite', 'xnnpack'"),
        ({"rounding": None}, ValueError, "'tflite', 'xnnpack'"),
        ({"threads": 0}, ValueError, "threads must be 1"),
        ({"threads": True}, ValueError, "integer"),
        ({"threads": 1.0}, ValueError, "integer"),
        ({"isa": "sse9"}, RuntimeError, "baseline"),
        ({"quantization": Q}, ValueError, "int8"),
        ({"weights": np.ones((3, 3, 4, 1), np.int8)}, ValueError, "int8"),
        ({"weights": np.ones((3, 3, 4, 1), np.int8), "quantization": (0.5, 0)}, ValueError, "must be a Quantization"),
        ({"weights": np.ones((3, 3, 4, 1), np.int8), "quantization": Q, "bias": np.ones(4, np.float32)}, TypeError, "int32"),
    ],
)
def test_d9_bad_arguments_of_a_plan(change, error, words):
    """D9: A refused call says what, the rule and the values, and has written nothing."""
    with pytest.raises(error) as caught:
        nd.DepthwiseConv2d(**{**GOOD, **change})
    assert isinstance(caught.value, nd.Nd4jLikeError)
    assert words in str(caught.value)


def test_d9_types_that_do_not_go_together():
    """D9: A refused call says what, the rule and the values: of floats also what makes them go together."""
    image, weights = np.ones((1, 5, 5, 4), np.float32), np.ones((3, 3, 4, 1))
    with pytest.raises(nd.DTypeError, match=r"input of float32, weights of float64, which take float64 inputs; astype\(\) converts either$"):
        nd.depthwise_conv2d(image, weights)
    with pytest.raises(nd.DTypeError, match=r"input of int16, weights of float64, which take float64 inputs$"):
        nd.depthwise_conv2d(image.astype(np.int16), weights)


def test_d4_large_letters():
    """D4: `"same"` is TensorFlow Lite's; `"valid"` is none; also in the large letters of TensorFlow."""
    for name in ("same", "valid"):
        assert nd.DepthwiseConv2d(GOOD["weights"], padding=name.upper()).padding == nd.DepthwiseConv2d(GOOD["weights"], padding=name).padding


def test_d9_unknown_options():
    """D9: A refused call says what, the rule and the values."""
    for name in ("groups", "strides"):
        with pytest.raises(TypeError, match=rf"^DepthwiseConv2d\(\) got an unexpected keyword argument '{name}'$"):
            nd.DepthwiseConv2d(**GOOD, **{name: 1})
        with pytest.raises(TypeError, match=rf"^depthwise_conv2d\(\) got an unexpected keyword argument '{name}'$"):
            nd.depthwise_conv2d(nd.ones((1, 3, 3, 4)), **GOOD, **{name: 1})


def test_d9_any_string_is_a_word():
    """D9: what keeps the rule is taken: strings of NumPy, and of enumerations."""

    class Word(enum.StrEnum):
        NHWC = "NHWC"
        RELU = "relu"
        HWCM = "HWCM"
        ROUNDING = "tflite"

    for word in (np.str_, Word):
        plan = nd.DepthwiseConv2d(**GOOD, data_format=word("NHWC"), activation=word("relu"), weights_format=word("HWCM"), rounding=word("tflite"))
        assert plan.explain().startswith("depthwise float32 NHWC")


def test_d9_the_edges_of_what_is_taken():
    """D9: A refused call says the rule: what keeps it is taken, whichever type of integer says it."""
    for kind in (int, np.int64, np.uint32):
        assert nd.DepthwiseConv2d(**{**GOOD, "stride": kind(2**30 - 1), "dilation": kind(1), "padding": kind(0)}).output_descriptor((1, 3, 3, 4)).shape[
            1:3
        ] == (1, 1)
    for weights_format, weights in (("C1HW", np.ones((4, 1, 3, 3), np.float32)), ("HWCM", np.ones((1, 3, 3, 4), np.float32))):
        with pytest.raises(nd.LayoutError, match="0"):  # no channels divide any
            nd.depthwise_conv2d(np.zeros((1, 5, 5, 0), np.float32), weights, weights_format=weights_format)


@pytest.mark.parametrize(
    ("x", "out", "error", "words"),
    [
        (np.zeros((5, 5, 4), np.float32), None, ValueError, "four axes"),
        (np.zeros((1, 5, 5, 4)), None, TypeError, "input of float64, weights of float32, which take float32 inputs"),
        (np.zeros((1, 5, 5, 4), np.int8), None, TypeError, "input of int8, weights of float32, which take float32 inputs"),
        (np.zeros((1, 5, 5, 3), np.float32), None, ValueError, "4: 3"),
        (np.zeros((1, 5, 5, 0), np.float32), None, ValueError, "4: 0"),
        (np.zeros((1, 2, 5, 4), np.float32), None, ValueError, "the height of the image"),
        (np.zeros((1, 5, 0, 4), np.float32), None, ValueError, "the width of the image"),
        (np.zeros((1, 5, 5, 4), np.float32), np.zeros((1, 3, 3, 3), np.float32), ValueError, "(1, 3, 3, 4)"),
        (np.zeros((1, 5, 5, 4), np.float32), np.zeros((3, 3, 4), np.float32), ValueError, "four axes"),
        (np.zeros((1, 5, 5, 4), np.float32), np.zeros((1, 3, 3, 4)), TypeError, "float64"),
        (np.zeros((1, 5, 5, 4), np.float32), [[[[0.0] * 4] * 3] * 3], ValueError, "export a buffer or speak DLPack: a list"),
        (np.zeros((1, 5, 5, 4), np.float32), bytearray(144), ValueError, "four axes"),
    ],
)
def test_d9_bad_arguments_of_a_call(x, out, error, words):
    """D9: A refused call says what, the rule and the values, and has written nothing."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.float32), np.ones(4, np.float32), padding="valid")
    with pytest.raises(error) as caught:
        plan(x, out)
    assert isinstance(caught.value, nd.Nd4jLikeError)
    assert words in str(caught.value)
    assert out is None or not np.any(out)


def test_d9_out_of_another_library():
    """D9: A refused call says what, the rule and the values: what has no memory to share."""
    tensor = type("Tensor", (), {"__dlpack__": None})()
    with pytest.raises(nd.LayoutError, match="export a buffer or speak DLPack: a Tensor"):
        nd.DepthwiseConv2d(**GOOD)(np.zeros((1, 5, 5, 4), np.float32), tensor)


def test_d9_none_is_no_input():
    """D9: A refused call says what, the rule and the values, and has written nothing."""
    with pytest.raises(TypeError, match="x"):
        nd.DepthwiseConv2d(**GOOD)(None)
    with pytest.raises(TypeError, match="x"):
        nd.depthwise_conv2d(None, **GOOD)


def test_d9_a_read_only_or_broadcast_out_is_refused():
    """D9: A refused call says what, the rule and the values, and has written nothing."""
    plan = nd.DepthwiseConv2d(**GOOD)
    x = np.ones((1, 5, 5, 4), np.float32)
    out = np.zeros_like(x)
    readonly = out.view()
    readonly.setflags(write=False)
    with pytest.raises(nd.LayoutError, match="read-only"):
        plan(x, readonly)
    with pytest.raises(nd.LayoutError, match="a cell for each element"):
        plan(x, np.lib.stride_tricks.as_strided(out, (1, 5, 5, 4), (400, 0, 16, 4)))
    with pytest.raises(nd.LayoutError, match="a cell for each element"):
        plan(x[:, :2], np.lib.stride_tricks.as_strided(out, (1, 2, 5, 4), (400, 0, 16, 4)))
    assert not out.any()


@pytest.mark.parametrize("shape", [(1, 5, 5), (1, 5, 5, 4, 1), 5, (1, 5, 5, 3), (1, 2, 5, 4), (1, -5, 5, 4), (1, 5.0, 5, 4), (1, 2**40, 5, 4)])
def test_d9_bad_shapes_of_an_input_descriptor(shape):
    """D9: A refused call says what, the rule and the values, and has written nothing."""
    with pytest.raises(nd.LayoutError):
        nd.DepthwiseConv2d(**GOOD, padding="valid").input_descriptor(shape)


def test_d10_halo_is_what_the_windows_reach():
    """D10: `input_descriptor` has channels fastest; where the kernel reads a halo, it has what the windows reach on each side, no more."""
    found = {}
    for data_format in ("NHWC", "NCHW"):
        h, w, c = (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)
        for size in range(2, 10):  # of one row, taps are left out (D24)
            for kernel in range(1, 6):
                for stride in range(1, 4):
                    for padding in ("same", "valid", 2, ((0, 3), (1, 2))):
                        dtype, isa = (np.float64, "baseline") if stride == kernel - 1 else (np.float32, None)
                        plan = nd.DepthwiseConv2d(np.ones((kernel, kernel, 16, 1), dtype), stride=stride, padding=padding, data_format=data_format, isa=isa)
                        sides = explicit(padding if padding != 2 else ((2, 2), (2, 2)), (size, 9), (kernel, kernel), (stride, stride), (1, 1))
                        shape = [2, size, 9, 16] if data_format == "NHWC" else [2, 16, size, 9]
                        if out_size(size, kernel, stride, 1, *sides[0]) < 1:
                            continue
                        d = plan.input_descriptor(shape)
                        assert d.shape == tuple(shape)
                        assert d.strides[c] == 1
                        assert d.paddings[0] == 0
                        reach = []
                        for extent, (lead, trail) in ((size, sides[0]), (9, sides[1])):
                            last = (out_size(extent, kernel, stride, 1, lead, trail) - 1) * stride - lead + kernel - 1
                            reach += [lead, max(last - (extent - 1), 0)]
                        got = [d.padding_offsets[h], d.paddings[h] - d.padding_offsets[h], d.padding_offsets[w], d.paddings[w] - d.padding_offsets[w]]
                        paddings, before = [0] * 4, [0] * 4
                        paddings[h], paddings[w], before[h], before[w] = sum(reach[:2]), sum(reach[2:]), reach[0], reach[2]
                        haloed = nd.ShapeDescriptor.from_tag(shape, "abcd" if data_format == "NHWC" else "acdb", dtype, paddings, before)
                        reads = "halo      read in place" in plan.explain(haloed)
                        assert got == (reach if reads else [0] * 4), plan
                        found[kernel, stride] = found.get((kernel, stride), False) or reads
    assert [found[case] for case in ((3, 1), (4, 2), (5, 3), (3, 2), (4, 3))] == [False, False, False, True, True]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("side", range(4))
def test_d10_no_halo_of_more_than_two_windows(side, data_format):
    """D10: it has what the windows reach on each side, no more, unless that is more than two windows; else none."""
    shape = (2, 15, 18, 16) if data_format == "NHWC" else (2, 16, 15, 18)
    h, w = (1, 2) if data_format == "NHWC" else (2, 3)
    for more in (0, 3):
        # Rows are 4 taps at distances of 2, columns 4 side by side: windows of 7 and 4 that end with the padding.
        sides = [0, 1, 0, 1]
        sides[side] = (14, 13, 8, 7)[side] + more
        sides[side ^ 1] += -(shape[h if side < 2 else w] + sum(sides[side & 2 : (side & 2) + 2]) - (7 if side < 2 else 4)) % 3
        padding = ((sides[0], sides[1]), (sides[2], sides[3]))
        how = {"stride": 3, "dilation": (2, 1), "padding": padding, "data_format": data_format, "isa": "baseline"}
        d = nd.DepthwiseConv2d(np.ones((4, 4, 16, 1)), **how).input_descriptor(shape)
        assert any(d.paddings[axis] for axis in (h, w)) == (more == 0), (padding, d)


def test_d10_a_logical_nchw_input_lies_channels_last():
    """D10: `input_descriptor` has channels fastest."""
    values, weights = random((2, 16, 5, 6), 1), random((3, 3, 16, 1), 2)
    plan = nd.DepthwiseConv2d(weights, data_format="NCHW")
    d = plan.input_descriptor(values.shape)
    assert (d.shape, d.strides) == ((2, 16, 5, 6), (5 * 6 * 16, 1, 6 * 16, 16))
    x = on(d, values)
    assert_close(np.asarray(plan(x)).transpose(0, 2, 3, 1), values.transpose(0, 2, 3, 1), weights, padding=((1, 1), (1, 1)))
    assert "in place, tiles of" in plan.explain()


@pytest.mark.parametrize(
    ("dtype", "channels", "pitch"),
    [
        ("float32", 1, 1), ("float32", 3, 3), ("float32", 8, 8), ("float32", 11, 11), ("float32", 12, 16), ("float32", 15, 16), ("float32", 16, 16),
        ("float32", 17, 32), ("float32", 33, 48), ("float32", 96, 112), ("float32", 120, 144), ("float32", 511, 528), ("float32", 512, 528),
        ("float32", 1024, 1040), ("float32", 255, 272), ("float32", 256, 272), ("float32", 768, 784), ("int8", 1024, 1088),
        ("float32", 5, 5), ("float32", 6, 8), ("float32", 7, 8), ("float16", 11, 11), ("float16", 12, 16), ("float16", 16, 16), ("float16", 17, 17),
        ("float16", 24, 32), ("float64", 3, 3), ("float64", 5, 5), ("int8", 15, 15), ("int8", 24, 24), ("int8", 25, 32), ("int8", 31, 32), ("int8", 32, 32),
        ("int8", 1, 1), ("int8", 17, 17), ("int8", 47, 47), ("int8", 48, 64), ("int8", 64, 64), ("int8", 65, 128), ("int8", 2048, 2112), ("int8", 4096, 4160),
    ],
)  # fmt: skip
def test_d11_pixels_start_on_cache_lines(dtype, channels, pitch):
    """D11: whole cache lines of 64 bytes where that adds at most a third; pixels of up to half a line start on half lines by the same rule."""
    q = Q if dtype == "int8" else None
    plan = nd.DepthwiseConv2d(np.ones((2, 3, channels, 1), dtype), quantization=q)
    d = plan.input_descriptor((1, 4, 4, channels))
    assert d.strides[2] == pitch
    assert plan.output_descriptor(d).strides[2] == pitch


@every_isa
@pytest.mark.parametrize("channels", [5, 6, 7, 9, 12])
def test_d11_pixels_that_share_vectors_have_no_room(isa, channels):
    """D11: with vectors of 64 bytes 6 and 7 of float32 by square filters of 3, 5 and 7 at step 1 have no room."""
    for kernel, stride in itertools.product(((3, 3), (5, 5), (7, 7), (2, 3), (4, 4)), (1, 2)):
        plan = nd.DepthwiseConv2d(np.ones((*kernel, channels, 1), np.float32), stride=stride, isa=isa)
        d = plan.input_descriptor((1, 4, 4, channels))
        share = isa.startswith("avx512") and channels < 8 and stride == 1 and kernel[0] in (3, 5, 7)
        assert d.strides[2] == (channels if share else {6: 8, 7: 8, 12: 16}.get(channels, channels))
        assert plan.output_descriptor(d).strides[2] == d.strides[2]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_d11_pixels_of_large_arrays_have_no_room_to_begin_with_a_line(dtype):
    """D11: at most a sixteenth in arrays larger than half a second-level cache."""
    channels, pitch = (17, 32) if dtype == "float32" else (72, 128)
    plan = nd.DepthwiseConv2d(np.ones((3, 3, channels, 1), dtype), stride=2, quantization=None if dtype == "float32" else Q)
    rows = cpu.caches()[0] // 2 // (128 * 64)
    for height, found in ((rows, pitch), (rows + 1, channels)):
        d = plan.input_descriptor((1, height, 64, channels))
        assert d.strides[2] == found
        assert plan.output_descriptor(d).strides[2] == pitch
    line = 64 // d.itemsize
    assert geometry.pixel_pitch(1 << 20, 17 * line - 1, d.itemsize, 2 << 20) == 17 * line
    assert geometry.pixel_pitch(1 << 20, 15 * line + 1, d.itemsize, 2 << 20) == (15 * line + 1 if line == 64 else 17 * line)


@pytest.mark.parametrize(
    ("dtype", "channels", "pitch", "part", "beyond"),
    [
        ("float32", 32, 32, None, 32), ("float32", 48, 48, None, 48), ("float32", 64, 80, 4, 64), ("float32", 96, 112, 4, 96), ("float32", 128, 144, 2, 128),
        ("float16", 448, 480, 2, 448), ("float64", 128, 136, None, 136), ("float32", 256, 272, None, 272), ("float32", 272, 272, None, 272),
        ("int8", 128, 128, None, 128), ("int8", 256, 320, None, 320), ("uint8", 320, 320, None, 320),
    ],
)  # fmt: skip
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d11_pixels_have_an_odd_number_of_lines(data_format, dtype, channels, pitch, part, beyond):
    """D11: where that adds at most a sixteenth, an eighth in arrays of up to half a second-level cache, a quarter in arrays of up to a quarter of it."""
    q = nd.Quantization((0.5, 0), 0.5, (0.5, 0)) if "int" in dtype else None
    plan = nd.DepthwiseConv2d(np.ones((3, 3, channels, 1), dtype), stride=2, quantization=q, data_format=data_format)
    # Rows of 16 pixels.
    rows = cpu.caches()[0] // (part or 1) // (16 * channels * np.dtype(dtype).itemsize)
    for height, found in ((rows, pitch), (rows + 1, beyond)):
        d = plan.input_descriptor((1, height, 16, channels) if data_format == "NHWC" else (1, channels, height, 16))
        assert d.strides[data_format.index("W")] == found
        assert plan.output_descriptor(d).strides[data_format.index("W")] == pitch


def test_d11_pixels_of_int16_have_an_odd_number_of_lines():
    """D11: a quarter in arrays of up to a quarter of it and of integers."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 128, 1), np.int8), quantization=Q)
    x = np.zeros((1, 1 + cpu.caches()[0] // (256 * 64), 64, 128), np.int16)
    assert plan.output_descriptor(x).strides == (x.shape[1] * 64 * 160, 64 * 160, 160, 1)


def test_d11_pixels_of_many_rows_and_of_dilated_filters_have_an_odd_number_of_lines():
    """D11: an eighth by filters of five rows and more, and by those that dilate columns where pixels crowd each other out of the first-level cache."""
    size = 1 + cpu.caches()[0] // (256 * 64)
    for channels, kernel, dilation, count, amd, pitch in (
        (128, (5, 3), 1, 12, False, 144), (128, (4, 7), 1, 12, False, 128), (64, (5, 5), 1, 12, False, 64), (128, (3, 3), 4, 8, False, 144),
        (128, (3, 3), 3, 12, True, 144), (128, (3, 3), 4, 12, False, 128), (128, (3, 3), 1, 8, False, 128), (128, (3, 3), (2, 1), 8, False, 128),
    ):  # fmt: skip
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(np.ones((*kernel, channels, 1), np.float32), dilation=dilation)
            assert plan.input_descriptor((1, size, 64, channels)).strides[2] == pitch


def test_d11_pixels_of_nine_rows_have_an_odd_number_of_lines():
    """D11: of float32 and float64 by filters of nine rows and more in arrays of up to all of it."""
    fits = cpu.caches()[0] // (256 * 64)
    for dtype, kernel, height, pitch in (
        ("float32", (9, 9), fits, 320), ("float32", (9, 1), fits, 320), ("float32", (8, 9), fits, 256), ("float32", (9, 9), fits + 1, 256),
        ("float64", (9, 9), fits, 320), ("float16", (9, 9), fits, 256),
    ):  # fmt: skip
        channels, item = 256 // np.dtype(dtype).itemsize, np.dtype(dtype).itemsize
        plan = nd.DepthwiseConv2d(np.ones((*kernel, channels, 1), dtype))
        assert plan.input_descriptor((1, height, 64, channels)).strides[2] * item == pitch


def test_d12_output_descriptor():
    """D12: `output_descriptor` has channels fastest and pixels as in D11; paddings that are asked for are taken as they are."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 17, 1), np.float32), stride=2)
    x = np.zeros((1, 8, 9, 17), np.float32)
    d = plan.output_descriptor(x)
    assert (d.shape, d.paddings) == ((1, 4, 5, 17), (0, 0, 0, 15))
    assert d == plan.output_descriptor(nd.asarray(x).descriptor) == plan.output_descriptor(nd.asarray(x))
    d = plan.output_descriptor(x, paddings=(0, 2, 3, 0), padding_offsets=(0, 1, 2, 0))
    assert (d.paddings, d.padding_offsets) == ((0, 2, 3, 0), (0, 1, 2, 0))
    with pytest.raises(nd.LayoutError):
        plan.output_descriptor(x, paddings=(0, 1, 1, 0), padding_offsets=(0, 2, 0, 0))
    nchw = nd.DepthwiseConv2d(np.ones((3, 3, 17, 1), np.float32), data_format="NCHW")
    d = nchw.output_descriptor(x.transpose(0, 3, 1, 2), paddings=(0, 0, 2, 0), padding_offsets=(0, 0, 1, 0))
    assert (d.shape, d.strides) == ((1, 17, 8, 9), (17 * 90, 1, 17 * 9, 17))


def test_d12_a_shape_is_one_of_an_input_on_the_layout_of_the_plan():
    """D12: A tuple of four integers is the shape of an input on `input_descriptor`."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 17, 1), np.float32), stride=2)
    own = plan.input_descriptor((1, 9, 8, 17))
    assert plan.output_descriptor((1, 9, 8, 17)) == plan.output_descriptor(own)
    assert plan.output_descriptor((1, np.int64(9), 8, 17), paddings=(0, 2, 2, 0)) == plan.output_descriptor(own, paddings=(0, 2, 2, 0))
    assert plan.explain((1, 9, 8, 17)) == plan.explain(own)
    for refused in ((9, 8, 17), (1, 9, 8, 16), (1, 9.0, 8, 17), [1, 9, 8, 17]):
        with pytest.raises(nd.Nd4jLikeError):
            plan.output_descriptor(refused)


def test_d12_one_layer_writes_into_the_halo_layout_of_the_next():
    """D12: paddings that are asked for are taken as they are."""
    x, first, second = random((1, 9, 8, 17), 1), random((3, 3, 17, 1), 2), random((5, WIDE, 17, 1), 3)
    one, two = nd.DepthwiseConv2d(first, stride=2), nd.DepthwiseConv2d(second)
    between = two.input_descriptor(one.output_descriptor(x).shape)
    assert one.output_descriptor(x, between.paddings, between.padding_offsets) == between
    got = two(one(x, nd.NdArray(between)))
    assert "halo      read in place" in two.explain()
    assert (np.asarray(got) == np.asarray(nd.depthwise_conv2d(nd.depthwise_conv2d(x, first, stride=2), second))).all()


def test_d13_the_result_lies_like_the_input():
    """D13: Without `out` the result is dense with its axes in the memory order of `x`, or on `output_descriptor` where `x` has padding."""
    weights = random((3, 3, 4, 2), 1)
    values = random((2, 5, 6, 4), 2)
    plan = nd.DepthwiseConv2d(weights)
    for name, x in arrangements(values, 0):
        got = plan(x)
        assert isinstance(got, nd.NdArray)
        if isinstance(x, nd.NdArray) and any(x.descriptor.paddings):
            assert got.descriptor == plan.output_descriptor(x), name
        else:
            assert not any(got.descriptor.paddings)
            assert got.descriptor.axes == nd.asarray(x).descriptor.axes, name
            assert got.descriptor.allocLength() == got.size
    channels_last = np.ascontiguousarray(values).transpose(0, 3, 1, 2)
    got = nd.depthwise_conv2d(channels_last, weights, data_format="NCHW")
    assert got.shape == (2, 8, 5, 6)
    assert got.strides == (5 * 6 * 8, 1, 6 * 8, 8)


def test_d14_layouts_are_checked_once(monkeypatch):
    """D14: weights are packed and checks of a pair of layouts are made when that pair is first seen, and later calls reuse them."""
    walks = []
    over = geometry.Window.over
    monkeypatch.setattr(geometry.Window, "over", lambda self, size: walks.append(size) or over(self, size))
    plan = nd.DepthwiseConv2d(random((3, 3, 4, 1)))
    arrays = [np.ones((1, 5, 5, 4), np.float32), nd.ones((1, 6, 5, 4)), on(plan.input_descriptor((1, 7, 7, 4)), 1)]
    outs = [plan(x) for x in arrays]
    assert walks
    walks.clear()
    for _ in range(3):
        for x, out in zip(arrays, outs, strict=True):
            plan(x, out)
            plan(x)
    assert not walks


def test_d14_more_layouts_than_the_plan_remembers():
    """D14: weights are packed and checks of a pair of layouts are made when that pair is first seen, and later calls reuse them."""
    weights = random((3, 1, 3, 1), 1)
    plan = nd.DepthwiseConv2d(weights)
    for _ in range(2):
        for height in range(1, 90):
            x = random((1, height, 2, 3), height)
            assert_close(plan(x), x, weights, padding=explicit("same", (height, 2), (3, 1), (1, 1), (1, 1)))


def test_d14_what_the_plan_remembers_has_an_end(monkeypatch):
    """D14: checks of a pair of layouts are made when that pair is first seen, and later calls reuse them: of 64 pairs, then it begins anew."""
    walks = []
    over = geometry.Window.over
    monkeypatch.setattr(geometry.Window, "over", lambda self, size: walks.append(size) or over(self, size))
    plan = nd.DepthwiseConv2d(random((3, 1, 3, 1), 1))
    for last, anew in ((64, False), (65, True)):
        for height in range(1, last + 1):
            plan(np.ones((1, height, 2, 3), np.float32), np.empty((1, height, 2, 3), np.float32))
        walks.clear()
        plan(np.ones((1, 2, 2, 3), np.float32), np.empty((1, 2, 2, 3), np.float32))
        assert bool(walks) == anew


@every_isa
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_d14_arrays_whose_halos_alone_differ(isa, kind):
    """D14: when that pair is first seen, and later calls reuse them: a pair with another halo, or one elsewhere, is another pair."""
    values, weights = random((1, 4, 5, 3), 1).astype(kind), random((3, WIDE, 3, 1), 2).astype(kind)
    options = {"padding": ((2, 2), (1, WIDE)), "isa": isa}
    want = np.asarray(nd.DepthwiseConv2d(weights, **options)(values))
    plan, read = nd.DepthwiseConv2d(weights, **options), set()
    # Rows are outermost: strides tell nothing about the halo above and below.
    layouts = [nd.ShapeDescriptor.from_tag(values.shape, "bacd", kind, (0, rows, WIDE + 2, 0), (0, above, left, 0))
               for rows, above in ((4, 2), (4, 0), (4, 4), (2, 2), (2, 0)) for left in (1, 0, 2)]  # fmt: skip
    for pair in itertools.permutations(layouts, 2):
        for d in pair:
            # Padding of zeros with other numbers around it.
            memory = np.full(2000 + d.allocLength() + 2000, 1e30, kind)
            x = nd.NdArray(d, memory[2000:-2000])
            x.fill_padding(0)
            x[...] = values
            out = np.empty_like(want)
            assert np.allclose(plan(x, out), want, atol=1e-4), pair
            read.add(next(line for line in plan.explain().splitlines() if line.startswith("halo")))
    assert len(read) == len(layouts)


@every_isa
@pytest.mark.parametrize("threads", [2, 3, 7, 100])
def test_d15_any_number_of_threads_gives_the_same_bits(isa, threads):
    """D15: the result has the same bits for any number of threads."""
    weights, bias = random((3, 3, 33, 1), 2), random(33, 3)
    one, many = nd.DepthwiseConv2d(weights, bias, isa=isa), nd.DepthwiseConv2d(weights, bias, threads=threads, isa=isa)
    for shape in ((2, 151, 60, 33), (5, 1, 800, 33), (1, 2, 3, 33)):
        for x in (random(shape, 1), on(one.input_descriptor(shape), random(shape, 1))):
            assert (np.asarray(many(x)) == np.asarray(one(x))).all()
    assert "threads   1 of" in many.explain()
    many(random((2, 151, 60, 33), 1))
    assert "threads   1 of" not in many.explain()


def test_d15_a_plan_serves_callers_on_many_threads():
    """D15: each on its own ones with its own scratch."""
    from concurrent.futures import ThreadPoolExecutor

    weights = random((3, 3, 16, 1), 1)
    plan = nd.DepthwiseConv2d(weights, threads=2)
    inputs = [random((1, 3 + i % 7, 4, 16), i) for i in range(40)]
    want = [np.asarray(nd.depthwise_conv2d(x, weights)) for x in inputs]
    with ThreadPoolExecutor(8) as callers:
        for got, right in zip(callers.map(lambda i: np.asarray(plan(inputs[i % 40])), range(400)), want * 10, strict=True):
            assert (got == right).all()


@every_isa
def test_d16_float_results_stay_within_the_bound(isa):
    """D16: Each instruction set gives float32 results within `(taps + 2) * 2**-23 * sum |x*w|` of the exact value."""
    for kernel in (3, 5, 7, 11):
        for seed in range(3):
            x, weights = random((1, 12, 13, 35), seed), random((kernel, kernel, 35, 1), seed + 9)
            x[..., ::2] *= 1e6
            assert_close(nd.depthwise_conv2d(x, weights, isa=isa), x, weights, padding=explicit("same", (12, 13), (kernel, kernel), (1, 1), (1, 1)))


@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
def test_d16_every_instruction_set_gives_the_same_int8_results(rounding):
    """D16: and the same int8 results."""
    rng = np.random.default_rng(5)
    few = [(channels, multiplier, stride) for channels in (1, 3, 8, 24) for multiplier in (1, 2, 5, 8, 16) for stride in (1, 2, 3)]
    for channels, multiplier, stride in (*few, (16, 1, 1), (67, 1, 1), (33, 2, 1), (64, 1, 2), (96, 1, 2)):
        x = rng.integers(-128, 128, (2, 7, 19, channels), np.int8)
        weights = rng.integers(-128, 128, (3, 3, channels, multiplier), np.int8)
        q = nd.Quantization((0.1, -5), rng.uniform(0.001, 0.1, channels * multiplier), (0.7, 3))
        results = [np.asarray(nd.depthwise_conv2d(x, weights, stride=stride, quantization=q, rounding=rounding, isa=isa)) for isa in ISAS]
        assert all((result == results[0]).all() for result in results), (channels, multiplier, stride)


@every_isa
@pytest.mark.parametrize(("activation", "bounds"), [(None, (-math.inf, math.inf)), ("relu", (0, math.inf)), ("relu6", (0, 6)), ("relu_n1_to_1", (-1, 1))])
def test_d17_activations_are_clamps(isa, activation, bounds):
    """D17: `activation` clamps the result: `"relu"` to [0, inf), `"relu6"` to [0, 6], `"relu_n1_to_1"` to [-1, 1]."""
    x, weights, bias = random((1, 6, 7, 19), 1), random((3, 3, 19, 1), 2), random(19, 3)
    got = np.asarray(nd.depthwise_conv2d(x, weights, bias, activation=activation, isa=isa))
    assert_close(got, x, weights, bias, bounds, padding=((1, 1), (1, 1)))
    assert got.min() >= bounds[0]
    assert got.max() <= bounds[1]
    assert activation is None or (got == bounds[0]).any()


@pytest.mark.parametrize("dtype", ["int16", "int32", "bool", "complex64"])
def test_d18_other_element_types_are_refused_by_name(dtype):
    """D18: Element types and layouts without kernels are refused by name, saying what there is and what to do."""
    with pytest.raises(nd.DTypeError, match=f"{dtype}: there are float32, float64, float16, bfloat16, int8, uint8,"):
        nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), dtype))


def test_d18_layouts_without_kernels_are_refused():
    """D18: Element types and layouts without kernels are refused by name, saying what there is and what to do."""
    blocked = nd.ShapeDescriptor.from_tag((1, 16, 4, 4), "aBcd4b4b")
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 16, 1), np.float32), data_format="NCHW")
    with pytest.raises(nd.UnsupportedLayoutError, match="reorder"):
        plan.output_descriptor(blocked)
    with pytest.raises(nd.UnsupportedLayoutError, match="reorder"):
        plan(nd.NdArray(blocked))
    with pytest.raises(nd.UnsupportedLayoutError, match="reorder"):
        plan(np.zeros((1, 16, 4, 4), np.float32), nd.NdArray(blocked))


@every_isa
def test_d19_explain(isa):
    """D19: `explain()` tells the kernel, instruction set, geometry, whether the halo is read and why not, channel padding and scratch bytes."""
    plan = nd.DepthwiseConv2d(random((3, WIDE, 17, 1)), stride=2, isa=isa)
    assert "no input seen yet" in plan.explain()
    text = plan.explain(plan.input_descriptor((1, 9, 9, 17)))
    for part in (isa, "3x60", "17 channels", "stride (2, 2)", "top 1, bottom 1, left 29, right 30", "15 cells of room", "every 128 bytes", "bytes of scratch"):
        assert part in text, part
    plan(np.zeros((1, 9, 9, 17), np.float32))
    assert "implied, x has no padding there" in plan.explain()
    plan = nd.DepthwiseConv2d(random((3, 5, 17, 1)), stride=(2, 1), isa=isa)
    text = plan.explain(plan.input_descriptor((1, 9, 9, 17)))
    for part in ("in place, tiles of 2 rows and 4 columns", "leaves taps outside the image out", " 0 bytes of scratch"):
        assert part in text, part
    assert f"{4 if isa == 'baseline' else 7} columns" in plan.explain(plan.input_descriptor((1, 9, 14, 17)))
    plan = nd.DepthwiseConv2d(random((3, 5, 17, 1)), padding="valid", isa=isa)
    assert "implied, no window reaches beyond the image" in plan.explain(np.zeros((1, 9, 9, 17), np.float32))
    assert repr(plan) == f"<nd4jlike.DepthwiseConv2d 3x5, 17 output channels, float32, NHWC, {isa}>"


@every_isa
def test_d20_an_empty_batch_gives_an_empty_result(isa):
    """D20: An empty batch gives an empty result."""
    plan = nd.DepthwiseConv2d(random((3, 3, 4, 2)), isa=isa, threads=2)
    assert plan(np.zeros((0, 5, 6, 4), np.float32)).shape == (0, 5, 6, 8)
    out = np.zeros((0, 5, 6, 8), np.float32)
    assert plan(np.zeros((0, 5, 6, 4), np.float32), out) is out
    assert plan(np.zeros((0, 5, 6, 4), np.float32), nd.zeros((0, 5, 6, 8))).shape == out.shape
    x = nd.NdArray(plan.input_descriptor((0, 5, 6, 4)))
    assert plan(x).shape == (0, 5, 6, 8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16"])
def test_d21_plans_travel(dtype):
    """D21: Plans are pickled and copied as what made them, weights, bias and options."""
    quantized = dtype in ("int8", "uint8", "int16")
    values = (numbered((3, 2, 5, 2)) % 7).astype(np.float32)
    weights = nd.array(values.astype("uint8" if dtype == "uint8" else "int8" if quantized else "float32")).astype("int8" if dtype == "int16" else dtype)
    zero_point = 0 if dtype == "int16" else 3
    options = {"quantization": nd.Quantization(input=(0.1, zero_point), weights=[0.1], output=(0.4, zero_point))} if quantized else {}
    bias = None if not quantized else np.arange(10, dtype=np.int64 if dtype == "int16" else np.int32)
    plan = nd.DepthwiseConv2d(weights, bias, stride=(2, 1), padding=((1, 0), (2, 1)), data_format="NCHW", activation="relu", **options)
    x = nd.array((numbered((2, 5, 6, 4)) % 11).astype(np.float32)).astype(dtype)
    expected = plan(x)
    for other in (pickle.loads(pickle.dumps(plan)), copy.copy(plan), copy.deepcopy(plan), weakref.ref(plan)()):
        found = other(x)
        assert repr(other) == repr(plan)
        assert other.dtype == plan.dtype == x.dtype
        assert found.tobytes() == expected.tobytes()
        assert found.descriptor == expected.descriptor


def test_d27_what_a_plan_tells():
    """D27: A plan tells how it is configured, as it was understood and for reading only."""
    weights = np.ones((3, 5, 4, 2), np.float32)
    plain = nd.DepthwiseConv2d(weights)
    assert (plain.stride, plain.dilation, plain.padding, plain.data_format) == ((1, 1), (1, 1), "same", "NHWC")
    assert (plain.activation, plain.quantization, plain.rounding, plain.threads) == (None, None, "tflite", 1)
    assert nd.DepthwiseConv2d(weights, padding="valid").padding == ((0, 0), (0, 0))
    assert nd.DepthwiseConv2d(weights, padding=(1, 2)).padding == ((1, 1), (2, 2))
    q = nd.Quantization((0.1, 3), 0.1, (0.4, 1))
    plan = nd.DepthwiseConv2d(
        weights.astype("int8"), stride=2, dilation=[1, 3], padding=((1, 2), (3, 4)), activation="relu6", quantization=q, rounding="xnnpack"
    )
    for other in (plan, pickle.loads(pickle.dumps(plan))):
        assert (other.stride, other.dilation, other.padding) == ((2, 2), (1, 3), ((1, 2), (3, 4)))
        assert (other.activation, other.quantization, other.rounding, other.dtype, other.output_dtype) == ("relu6", q, "xnnpack", np.int8, np.int8)
    for name in ("stride", "dilation", "padding", "activation", "quantization", "rounding", "dtype", "output_dtype", "data_format", "threads", "isa"):
        with pytest.raises(AttributeError):
            setattr(plan, name, None)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", *FLOATS])
def test_d23_channels_apart_give_the_bits_of_channels_last(isa, side, kind):
    """D23: computed as pixels: the bits are those of the same elements with channels last."""
    rng = np.random.default_rng(5)
    turned = cut = single = 0
    for size, channels, kernel, multiplier, steps in (
        ((5, 6), 3, (3, 3), 1, {"padding": ((1, 1), (1, 1))}),
        ((7, 7), 130, (5, 5), 1, {"padding": ((2, 2), (2, 2))}),
        ((9, 4), 17, (2, 3), 2, {"stride": (2, 1), "padding": ((0, 1), (2, 0))}),
        ((6, 5), 2, (3, 3), 8, {"stride": 2, "padding": ((0, 1), (1, 0))}),
        ((1, 40), 70, (1, 5), 1, {"dilation": (1, 2), "padding": ((0, 0), (8, 0))}),
        ((11, 30), 64, (2, 5), 1, {"padding": ((0, 1), (2, 2))}),
        ((9, 12), 48, (1, 6), 1, {"padding": ((0, 0), (2, 3))}),
        ((41, 61), 67, (3, 3), 1, {"padding": ((1, 1), (1, 1))}),  # sections of rows
        ((60, 70), 33, (5, 3), 1, {"stride": (2, 1), "dilation": (3, 1), "padding": ((9, 15), (1, 1))}),
        ((12, 160), 64, (3, 3), 1, {"padding": ((40, 40), (1, 1))}),  # sections without a row of the image
        ((50, 90), 20, (2, 2), 2, {"stride": (3, 2), "padding": ((0, 0), (0, 0))}),
        ((65, 64), 5, (3, 3), 1, {"padding": ((1, 1), (1, 1))}),  # one by one
        ((9, 8), 2, (3, 5), 1, {"padding": ((1, 1), (2, 2))}),
        ((130, 64), 7, (5, 2), 1, {"stride": (2, 1), "dilation": (1, 3), "padding": ((1, 4), (0, 3))}),
    ):
        outputs = channels * multiplier
        if kind in FLOATS:
            values, weights = rng.standard_normal((2, *size, channels)), rng.standard_normal((*kernel, channels, multiplier))
            values, weights, bias = (np.asarray(a, FLOATS[kind]) for a in (values, weights, rng.standard_normal(outputs)))
            options = {}
        else:
            limits, types = np.iinfo(kind), np.iinfo("int8" if kind == "int16" else kind)
            values = rng.integers(limits.min, limits.max, (2, *size, channels), kind, endpoint=True)
            weights = rng.integers(types.min, types.max, (*kernel, channels, multiplier), types.dtype, endpoint=True)
            bias, zero = rng.integers(-999, 999, outputs, "int32"), 0 if kind == "int16" else 3
            steepness = (0.02, 7) if kind == "uint8" else rng.uniform(0.01, 0.02, outputs)
            options = {"quantization": nd.Quantization((0.1, zero), steepness, (0.5, zero)), "dtype": kind}
        want = nd.depthwise_conv2d(values, weights, bias, isa=isa, **steps, **options).to_numpy()
        for threads, flips in ((1, False), (3, True)):
            plan = nd.DepthwiseConv2d(weights, bias, isa=isa, threads=threads, **steps, **options)
            given = guarded_array(values[:, :: -1 if flips else 1].transpose(0, 3, 1, 2), side).transpose(0, 2, 3, 1)[:, :: -1 if flips else 1]
            out = guarded_array(np.full(want.transpose(0, 3, 1, 2).shape, 77, want.dtype), side).transpose(0, 2, 3, 1)
            with second_level(256 << 10):
                plan(given, out)
            single += "plane by plane:" in plan.explain()
            if not ("planes as pixels:" in plan.explain() or "plane by plane:" in plan.explain()):
                continue
            turned += "planes as pixels:" in plan.explain()
            cut += f"apart, {want.shape[1]} rows" not in plan.explain() and "apart: " not in plan.explain()
            for x, y in ((given, out), (values, out), (given, want.copy())):
                y[...] = 77
                plan(x, y)
                assert (y == want).all(), (size, channels, kernel, steps)
    if kind in ("float32", "float16", "bfloat16"):  # of few types and filters; half of the vectors of 33 channels would be idle
        assert turned >= (0 if (kind, isa) == ("float16", "baseline") else 2 if kind == "float32" else 4 if isa.startswith("avx512") else 8)
    else:
        assert (turned, single) == (22, 6)
        assert cut >= 6


@every_isa
def test_d23_weights_that_are_not_finite_meet_no_padding(isa):
    """D23: computed as pixels: the bits are those of the same elements with channels last."""
    values, weights = np.ones((1, 41, 61, 67)), np.ones((3, 3, 67, 1))
    weights[0, 0, 5], weights[2, 2, 66] = np.inf, -np.inf
    got = nd.depthwise_conv2d(values.transpose(0, 3, 1, 2).copy(), weights, data_format="NCHW", isa=isa)
    assert (np.asarray(got).transpose(0, 2, 3, 1) == np.asarray(nd.depthwise_conv2d(values, weights, isa=isa))).all()


def living_plans():
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) is nd.DepthwiseConv2d]


def test_d22_single_calls_are_remembered():
    """D22: `depthwise_conv2d` remembers its last sixteen plans, of weights of up to 256 KiB that lie densely."""
    x, weights, bias = random((1, 5, 6, 4), 1), random((3, 3, 4, 1), 2), random(4, 3)
    for calls in (
        [lambda: nd.depthwise_conv2d(x, weights, bias, stride=(1, 2), activation="relu")] * 3,
        [lambda: nd.depthwise_conv2d(x, nd.asarray(weights.copy()), bias.copy())] * 3,
        [lambda k=k: nd.depthwise_conv2d(x, weights + k) for k in range(40)],
    ):
        before = living_plans()
        for call in calls:
            call()
        assert sum(all(plan is not other for other in before) for plan in living_plans()) == min(16, len(set(calls)))
    for count, kept in ((65536, 1), (65537, 0)):
        before = living_plans()
        nd.depthwise_conv2d(np.ones((1, 2, 2, count), np.float32), np.ones((1, 1, count, 1), np.float32))
        assert sum(all(plan is not other for other in before) for plan in living_plans()) == kept
    before = living_plans()
    nd.depthwise_conv2d(x, weights[:, ::-1])
    nd.depthwise_conv2d(x.astype(np.float64), weights.tolist())
    assert all(any(plan is other for other in before) for plan in living_plans())


def test_d22_what_changed_is_seen(monkeypatch):
    """D22: by its arguments and by the bits of weights and bias, which are compared in each call: numbers that were changed in place are seen."""
    x, weights, bias = random((1, 7, 6, 4), 1), random((3, 3, 4, 1), 2), random(4, 3)
    sides, steps = [[1, 0], [0, 2]], np.array([1, 2])

    def check(**options):
        expected = nd.DepthwiseConv2d(weights, bias, **options)(x)
        for _ in range(2):
            assert nd.depthwise_conv2d(x, weights, bias, **options).tobytes() == expected.tobytes()

    for array, place, value in ((weights, (2, 2, 3, 0), 9), (bias, 3, 9), (weights, ..., -0.0)):
        for options in ({}, {"stride": 2}, {"stride": (2, 1)}, {"padding": sides}, {"stride": steps}, {"padding": ((1, 0), (0, 2)), "activation": "relu6"}):
            check(**options)
        array[place] = value
        check()
    sides[0][0], steps[0] = 3, 2
    check(padding=sides)
    check(stride=steps)
    for options in ({"stride": True}, {"stride": (True, 1)}, {"threads": True}):
        with pytest.raises(nd.LayoutError, match="must be an integer"):
            nd.depthwise_conv2d(x, weights, bias, **options)
    monkeypatch.setenv("ND4JLIKE_ISA", "mmx")
    with pytest.raises(nd.IsaError, match="mmx"):
        nd.depthwise_conv2d(x, weights, bias)


def test_d22_numbers_of_other_types():
    """D22: by its arguments and by the bits of weights and bias, which are compared in each call."""
    ones, twos = np.ones((2, 2, 3, 1), np.int8), np.full((2, 2, 3, 1), 2, np.int8)
    x = np.ones((1, 3, 3, 3), np.int8)
    sums = nd.Quantization(input=(0.5, 0), weights=[0.25], output=None)
    for _ in range(2):
        for weights, factor in ((ones, 1), (twos, 2), (nd.asarray(ones), 1)):
            assert (np.asarray(nd.depthwise_conv2d(x, weights, quantization=sums, padding="valid")) == 4 * factor).all()
        with pytest.raises(nd.LayoutError, match="quantization belongs to"):
            nd.depthwise_conv2d(x, ones, padding="valid")
        for dtype in ("float16", "bfloat16", "float64"):
            values = nd.ones((2, 2, 3, 1), dtype=dtype)
            assert nd.depthwise_conv2d(nd.ones((1, 3, 3, 3), dtype=dtype), values, padding="valid").dtype == values.dtype
        for weights in (nd.ones((2, 2, 3, 1), paddings=(0, 0, 5, 0)), nd.reorder(np.ones((2, 2, 3, 1), np.float32), "abCd2c")):
            assert (np.asarray(nd.depthwise_conv2d(x.astype(np.float32), weights, padding="valid")) == 4).all()


def test_d20_element_types_do_not_mix():
    """D20: a plan takes the element type of its weights only, int8 weights also int16 (ADR 0006, D15), and integers need a quantization; both are named."""
    integers = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=Q)
    assert integers.dtype == np.int8
    for dtype, way in (("float32", ""), ("uint8", "; uint8 inputs take .*"), ("int32", "")):
        with pytest.raises(
            nd.DTypeError, match=f"go together: input of {dtype}, weights of int8, which take int8 inputs, or int16 where zero points are 0{way}$"
        ):
            integers(np.zeros((1, 4, 4, 4), dtype))
    with pytest.raises(nd.DTypeError, match=r"go together: input of int8, weights of float32, which take float32 inputs$"):
        nd.DepthwiseConv2d(**GOOD)(np.zeros((1, 4, 4, 4), np.int8))
    for dtype, other in (("int8", "int16"), ("int16", "int8")):
        asked = nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=nd.Quantization((1.0, 0), 1.0, (1.0, 0)), dtype=dtype)
        with pytest.raises(nd.DTypeError, match=f"input of {other}, weights of int8, which take {dtype} inputs, as dtype says$"):
            asked(np.zeros((1, 4, 4, 4), other))


@every_isa
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_d24_taps_that_no_output_has_inside_the_image(isa, data):
    """D24: Taps at the ends of a dilated filter that are outside the image for every output are left out."""
    kernel = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    dilation = data.draw(st.tuples(*[st.sampled_from((1, 2, 3, 7, 1000, 2**20))] * 2))
    stride = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    size = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    padding = [same_padding(n, k, s, d) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)]
    if data.draw(st.booleans()):
        padding = [(before + data.draw(st.integers(0, 5)), after + data.draw(st.integers(0, 5))) for before, after in padding]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind, channels = data.draw(st.sampled_from(("float32", "float16", "float64", "int8", "int16"))), data.draw(st.sampled_from((1, 3, 16, 17, 64)))
    x, weights = rng.integers(-4, 5, (2, *size, channels)).astype(kind), rng.integers(-4, 5, (*kernel, channels, 1)).astype(kind)
    quantization = None
    if kind.startswith("int"):
        weights, quantization = weights.astype("int8"), nd.Quantization((1.0, 0), 1.0, None)
    want = accumulate(x, weights, stride=stride, dilation=dilation, padding=padding)
    for data_format in ("NHWC", "NCHW"):
        how = {"stride": stride, "dilation": dilation, "padding": tuple(padding), "data_format": data_format, "isa": isa, "dtype": kind}
        plan = nd.DepthwiseConv2d(weights, quantization=quantization, **how)
        values = x if data_format == "NHWC" else x.transpose(0, 3, 1, 2)
        room = plan.input_descriptor(values.shape)
        assert room.allocLength() <= math.prod(n + 2 * 12 * 7 + 12 for n in size) * 2 * 80
        for side in SIDES:
            for given_x in (guarded_array(values, side), on(room, values)):
                got = np.asarray(plan(given_x))
                assert np.array_equal(got if data_format == "NHWC" else got.transpose(0, 2, 3, 1), want)


@every_isa
@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "int16"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d24_neither_halo_nor_scratch_grows(isa, kind, data_format):
    """D24: neither halo nor scratch has room for them, and `explain()` says how many taps reach the image."""
    quantization = nd.Quantization((0.1, 0), 0.1, (1.0, 0)) if kind.startswith("int") else None
    weights = np.ones((9, 9, 64, 1), "int8" if quantization else kind)
    shape = (1, 7, 7, 64) if data_format == "NHWC" else (1, 64, 7, 7)
    said = []
    for dilation in (1, 10_000):
        plan = nd.DepthwiseConv2d(weights if dilation > 1 else weights[:1, :1], dilation=dilation, data_format=data_format, quantization=quantization, isa=isa,
                                  dtype=kind)  # fmt: skip
        assert plan.input_descriptor(shape).allocLength() <= 7 * 7 * 96
        said.append(plan.explain(shape).splitlines())
    assert "window    9x9, of which 1x1 reach the image, 64 channels" in said[1][2]
    assert said[0][-1] == said[1][-1]


@every_isa
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "int16"])
@pytest.mark.parametrize(("shape", "how"), [((4000, 4000, 4), {"stride": 1500}), ((20000, 64, 16), {"dilation": (9000, 1)})], ids=["stride", "dilation"])
def test_d25_planes_of_which_little_is_read(isa, kind, shape, how):
    """D25: what lies between the inputs of neighbouring outputs takes no scratch: `explain()` says 16 MiB at most for a plane of few outputs."""
    quantization = nd.Quantization((1.0, 0), 1.0, None) if kind.startswith("int") else None
    rng = np.random.default_rng(7)
    height, width, channels = shape
    # The columns are one in memory.
    x = np.broadcast_to(rng.integers(-4, 5, (1, channels, height, 1)).astype(kind), (1, channels, height, width))
    weights = rng.integers(-4, 5, (3, 3, channels, 1)).astype("int8" if quantization else kind)
    plan = nd.DepthwiseConv2d(weights, quantization=quantization, padding="valid", data_format="NCHW", isa=isa, dtype=kind, **how)
    got = np.asarray(plan(x))
    scratch = next(line for line in plan.explain().splitlines() if "of scratch" in line)
    assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20
    rows = np.arange(got.shape[2])[:, None] * how.get("stride", 1) + np.arange(3) * how.get("dilation", (1, 1))[0]
    want = np.einsum("cyk,kc->cy", x[0, :, :, 0].astype(int)[:, rows], weights[..., 0].astype(int).sum(1))
    assert np.array_equal(got[0], np.broadcast_to(want[..., None], got.shape[1:]))


# Planes larger than a section in scratch: channels, image, filter, steps, dilation and padding of (rows, columns).
NOT_WHOLE = (
    (64, (60, 60), (3, 3), (1000, 1000), (1, 1), (1000, 1000)),
    (64, (60, 60), (3, 3), (40, 7), (1, 1), (300, 5)),
    (100, (30, 50), (8, 3), (1000, 50), (1, 1), (2000, 2000)),
    (17, (1, 3000), (6, 5), (3000, 1000), (900, 2), (20000, 20000)),
    (16, (2, 90000), (3, 2), (1, 40000), (1, 30000), (1, 0)),
)


@every_isa
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16"])
@pytest.mark.parametrize(("channels", "size", "kernel", "stride", "dilation", "padding"), NOT_WHOLE, ids=[str(case[1]) for case in NOT_WHOLE])
def test_d25_planes_of_several_sections(isa, kind, channels, size, kernel, stride, dilation, padding):
    """D25: However large steps and padding are, what lies between takes no scratch: 16 MiB at most for a plane of few outputs, and the result is the same."""
    rng = np.random.default_rng(7)
    x, weights = rng.integers(0, 5, (1, *size, channels)), rng.integers(0, 5, (*kernel, channels, 1))
    sides = tuple((both, both) for both in padding)
    want = accumulate(x, weights, stride=stride, dilation=dilation, padding=sides)
    element = FLOATS.get(kind, kind)
    quantization = None if kind in FLOATS else nd.Quantization((1.0, 0), 1.0, None)
    weights = weights.astype("int8" if kind == "int16" else element)
    how = {"stride": stride, "dilation": dilation, "padding": sides, "data_format": "NCHW", "isa": isa, "dtype": kind, "quantization": quantization}
    found = []
    for threads in (1, 3):
        plan = nd.DepthwiseConv2d(weights, threads=threads, **how)
        out = np.zeros(want.transpose(0, 3, 1, 2).shape, element if kind in FLOATS else plan.output_dtype)
        planes, out = (guarded_array(values, SIDES[threads == 1]) for values in (x.transpose(0, 3, 1, 2).astype(element), out))
        found.append(np.asarray(plan(planes, out)))
        scratch = next(line for line in plan.explain().splitlines() if "of scratch" in line)
        assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20
    assert found[0].tobytes() == found[1].tobytes()
    assert np.array_equal(found[0].astype(float), np.asarray(want, element if kind in FLOATS else float).transpose(0, 3, 1, 2).astype(float))


@every_isa
def test_d25_scratch_of_repeated_channels(isa):
    """D25: However large steps and padding are, what lies between the inputs of neighbouring outputs takes no scratch: 16 MiB at most."""
    q, found = nd.Quantization((1.0, 0), 1.0, (1.0, 0)), set()
    for shape, stride in (((1, 90000, 2000, 64), (30000, 3)), ((1, 50, 1000000, 64), 1), ((1, 40, 2000, 64), 1), ((1, 400, 90, 100), (100, 2))):
        plan = nd.DepthwiseConv2d(np.ones((3, 3, shape[3], 4), np.int8), stride=stride, padding="valid", quantization=q, isa=isa)
        text = plan.explain(shape)
        scratch = next(line for line in text.splitlines() if "of scratch" in line)
        assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20
        found.add("channels repeated" in text)
    assert (True in found) == (isa in ("avx2", "avx512_vnni"))
    assert False in found


@every_isa
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16"])
def test_d25_scratch_of_planes_of_few_outputs(isa, kind):
    """D25: `explain()` says 16 MiB at most for a plane of few outputs."""
    quantization = None if kind in FLOATS else nd.Quantization((1.0, 0), 1.0, None)
    element = "int8" if kind == "int16" else FLOATS.get(kind, kind)
    for shape, kernel, multiplier, stride, dilation in (
        ((1, 1024, 82435, 8), (8, 8), 2, (15568, 2009), (1, 1)),
        ((1, 64, 12, 300000), (3, 3), 1, (9, 150000), (1, 1)),
        ((1, 64, 9000, 9000), (3, 3), 2, (8000, 8000), (1, 1)),
        ((1, 33, 7, 60000), (3, 3), 1, (1, 20000), (2, 15000)),
        ((1, 3, 50000, 50000), (2, 2), 1, (40000, 9000), (5000, 40000)),
    ):
        how = {"stride": stride, "dilation": dilation, "padding": "valid", "data_format": "NCHW", "quantization": quantization, "isa": isa, "dtype": kind}
        plan = nd.DepthwiseConv2d(np.ones((*kernel, shape[1], multiplier), element), **how)
        scratch = next(line for line in plan.explain(nd.ShapeDescriptor("float32", "c", shape).astype(kind)).splitlines() if "of scratch" in line)
        assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20, shape


@every_isa
@pytest.mark.parametrize(("kind", "channels", "width", "height"), [("int8", 8, 3, 1_000_000), ("uint8", 3, 4, 2_000_000), ("float32", 1, 1, 5_000_000)])
def test_d25_tall_images_of_a_few_columns(isa, kind, channels, width, height):
    """D25: However large steps and padding are, what lies between the inputs of neighbouring outputs takes no scratch."""
    stride, rng = height // 17, np.random.default_rng(7)
    x = np.zeros((1, height, width, channels), kind)
    rows = (np.arange(17)[:, None] * stride + np.arange(13)).ravel()
    x[:, rows] = read = rng.integers(0, 5, (1, rows.size, width, channels))
    weights = rng.integers(0, 5, (13, min(width, 3), channels, 1))
    quantization = None if kind in FLOATS else nd.Quantization((1.0, 0), 1.0, None)
    plan = nd.DepthwiseConv2d(weights.astype(kind), stride=(stride, 1), padding="valid", quantization=quantization, isa=isa)
    assert np.array_equal(np.asarray(plan(x)), accumulate(read, weights, stride=(13, 1)))
    scratch = next(line for line in plan.explain().splitlines() if "of scratch" in line)
    assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20


@every_isa
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_d25_halves_that_lie_far_apart(isa, kind):
    """D25: what lies between the inputs of neighbouring outputs takes no scratch: 16 MiB at most, and the result is the same."""
    weights, x = nd.array(random((1, 1, 16, 2), 1), dtype=kind), nd.array(random((1, 101, 3101, 16), 2), dtype=kind)
    plan, near = (nd.DepthwiseConv2d(weights, stride=stride, isa=isa) for stride in (100, 1))
    scratch = next(line for line in plan.explain(x).splitlines() if "of scratch" in line)
    assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20
    assert plan(x).tobytes() == near(x[:, ::100, ::100].copy(order="C")).tobytes()
    wide = nd.ShapeDescriptor(kind, "c", (1, 2000, 2000, 64))
    plan = nd.DepthwiseConv2d(nd.ones((1, 1, 64, 2), dtype=kind), stride=500, isa=isa)
    scratch = next(line for line in plan.explain(wide).splitlines() if "of scratch" in line)
    assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20


@every_isa
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "int16"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kernel", [(3, 3), (4, 2), (1, 5), (5, 1)], ids=str)
def test_d25_huge_steps_and_padding(isa, kind, data_format, kernel):
    """D25: However large steps and padding are, what lies between the inputs of neighbouring outputs takes no scratch."""
    quantization = nd.Quantization((1.0, 0), 1.0, None) if kind.startswith("int") else None
    rng = np.random.default_rng(7)
    for channels, size in ((1, (5, 5)), (3, (5, 6)), (16, (5, 5)), (1, (7, 1)), (2, (1, 9))):
        x = rng.integers(-4, 5, (1, *size, channels)).astype(kind)
        weights = rng.integers(-4, 5, (*kernel, channels, 1)).astype("int8" if quantization else kind)
        rows, columns = min(kernel[0], size[0]), min(kernel[1], size[1])
        corner = (x[:, :rows, :columns].astype(int) * weights[:rows, :columns, :, 0].astype(int)).sum((1, 2))
        for step in (2**10, 2**20, 2**28, 2**29, 2**30 - 1):
            how = {"stride": step, "padding": ((step, step), (step, step)), "data_format": data_format, "isa": isa, "dtype": kind}
            plan = nd.DepthwiseConv2d(weights, quantization=quantization, **how)
            values = x if data_format == "NHWC" else x.transpose(0, 3, 1, 2)
            scratch = next(line for line in plan.explain(values.shape).splitlines() if "of scratch" in line)
            assert int(scratch.partition(" bytes of scratch")[0].rpartition(" ")[2]) <= 16 << 20
            got = np.asarray(plan(np.ascontiguousarray(values)))
            got = got if data_format == "NHWC" else got.transpose(0, 2, 3, 1)
            # The output in the middle begins where the image does, all others are beside it.
            assert np.array_equal(got[:, 1, 1], corner)
            got[:, 1, 1] = 0
            assert not got.any()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("axis", [1, 2])
def test_d26_signals(isa, axis, side):
    """D26: Rows and columns of an image of one row or one column change places where the other kernels are faster: the result is the same."""
    changed = 0
    for channels, taps, (step, dilation), multiplier in itertools.product((1, 3, 8, 16, 20), (3, 9, 23, 65), ((1, 1), (2, 1), (1, 2)), (1, 2)):
        size, kernel = (50, 1)[:: 1 if axis == 1 else -1], (taps, 1)[:: 1 if axis == 1 else -1]
        steps = {"stride": (step, step), "dilation": (dilation, dilation)}
        padding = explicit("same", size, kernel, *steps.values())
        x, weights = random((2, *size, channels), 1), random((*kernel, channels, multiplier), 2)
        bias = random(channels * multiplier, 3)
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa, threads=1 + taps % 2, **steps)
        out = guarded_array(np.full(plan(x).shape, np.nan, np.float32), side)
        plan(guarded_array(x, side), out)
        assert_close(out, x, weights, bias, padding=padding, **steps)
        changed += "rows as columns" in plan.explain(x)
        with_halo = nd.NdArray(plan.input_descriptor(x.shape))
        with_halo[...] = x
        assert_close(plan(with_halo), x, weights, bias, padding=padding, **steps)

        x, weights = (64 * x).astype(np.int8), (64 * weights).astype(np.int8)
        for output in (None, (0.5, 3)):
            quantization = nd.Quantization((0.05, -5), 0.1, output)
            plan = nd.DepthwiseConv2d(weights, quantization=quantization, isa=isa, **steps)
            want = depthwise_quantized(x, weights, None, quantization, "tflite", padding=padding, **steps)
            out = guarded_array(np.zeros(want.shape, want.dtype), side)
            plan(guarded_array(x, side), out)
            np.testing.assert_array_equal(out, want)
        changed += "rows as columns" in plan.explain(x)
        with_halo = nd.NdArray(plan.input_descriptor(x.shape))
        with_halo.fill_padding(-5)
        with_halo[...] = x
        np.testing.assert_array_equal(plan(with_halo), want)
    assert changed > 30


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_d28_narrow_images(isa, data_format, side):
    """D28: Rows and columns of a tall image of a few columns change places where that is faster: the result is the same, bit for bit of integers."""
    turned, in_scratch = 0, 0
    for channels, kernel, (step, dilation), size in itertools.product(
        (1, 2, 3, 8, 13, 20, 70), ((3, 3), (5, 3), (2, 5)), ((1, 1), (2, 1), (1, 2)), ((90, 2), (60, 7), (700, 13))
    ):
        if size[0] > 100 and (channels > 3 or kernel != (5, 3)):
            continue
        steps = {"stride": (step, step), "dilation": (dilation, dilation)}
        padding = explicit("same", size, kernel, *steps.values())
        x, weights, bias = random((2, *size, channels), 1), random((*kernel, channels, 1), 2), random(channels, 3)
        shaped = (lambda array: array) if data_format == "NHWC" else (lambda array: np.ascontiguousarray(array.transpose(0, 3, 1, 2)))
        last = (lambda array: array) if data_format == "NHWC" else (lambda array: array.transpose(0, 2, 3, 1))
        for dtype in ("float32", "int8", "uint8"):
            options = {"data_format": data_format, "isa": isa, **steps}
            values, taps = x, weights
            if dtype != "float32":
                values, taps = (64 * x).astype(np.int8), (64 * weights).astype(np.int8)
                zero_point = 128 if dtype == "uint8" else 0
                if zero_point:
                    values, taps = values.view(np.uint8) ^ 0x80, taps.view(np.uint8) ^ 0x80
                options["quantization"] = nd.Quantization((0.05, zero_point - 5), (0.1, zero_point), (0.5, zero_point + 3))
            plan = nd.DepthwiseConv2d(taps, None if dtype != "float32" else bias, **options)
            out = guarded_array(np.zeros_like(np.asarray(plan(shaped(values)))), side)
            plan(guarded_array(shaped(values), side), out)
            with_halo = nd.NdArray(plan.input_descriptor(shaped(values).shape))
            with_halo.fill_padding(0 if dtype == "float32" else zero_point - 5)
            with_halo[...] = shaped(values)
            if dtype == "float32":
                assert_close(last(out), x, weights, bias, padding=padding, **steps)
                assert_close(last(np.asarray(plan(with_halo))), x, weights, bias, padding=padding, **steps)
            else:
                want = depthwise_quantized(values, taps, None, options["quantization"], "tflite", padding=padding, **steps)
                np.testing.assert_array_equal(last(out), want)
                np.testing.assert_array_equal(last(np.asarray(plan(with_halo))), want)
            text = plan.explain(shaped(values))
            turned += "rows as columns: " in text
            in_scratch += "rows as columns, in scratch: " in text
            assert f"window    {kernel[0]}x{kernel[1]}, " in text
    assert in_scratch > (30 if data_format == "NHWC" else 5)
    assert turned > (30 if data_format == "NHWC" else 0)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d26_planes_of_one_column(isa, side):
    """D26: so do, with AVX-512, float32 planes of one column without a step."""
    for channels, height, kernel, step, dilation, threads in itertools.product((3, 16, 37), (1, 2, 9, 40, 300), (2, 3, 5, 7, 9), (1, 2), (1, 3), (1, 3)):
        steps = {"stride": (step, step), "dilation": (dilation, 1)}
        padding = explicit("same", (height, 1), (kernel, 3), *steps.values())
        x, weights, bias = random((2, height, 1, channels), 1), random((kernel, 3, channels, 1), 2), random(channels, 3)
        given = guarded_array(x.transpose(0, 3, 1, 2), side)
        plan = nd.DepthwiseConv2d(weights, bias, data_format="NCHW", threads=threads, isa=isa, **steps)
        shape = nd.depthwise_conv2d(given, weights, data_format="NCHW", **steps).shape
        out = guarded_array(np.full(shape, np.nan, np.float32), side)
        plan(given, out)
        assert_close(out.transpose(0, 2, 3, 1), x, weights, bias, padding=padding, **steps)
        reached = height > 1 and step == 1 and LANES.get(isa, 16) == 16
        assert ("rows as columns" in plan.explain()) == reached


@every_isa
def test_d26_threads_share_long_planes_of_one_column(isa):
    """D26: or where threads may share what is a row. D15: the result has the same bits for any number of threads."""
    x, weights = random((1, 4, 20000, 1), 1), random((5, 1, 4, 1), 2)
    alone, shared = [nd.DepthwiseConv2d(weights, data_format="NCHW", threads=threads, isa=isa) for threads in (1, 2)]
    assert np.asarray(alone(x)).tobytes() == np.asarray(shared(x)).tobytes()
    assert ("rows as columns" in alone.explain(), "rows as columns" in shared.explain()) == (LANES.get(isa, 16) == 16, False)


@every_isa
@pytest.mark.parametrize(("side", "machine"), [("start", HALVING), ("end", HALVING), ("start", (12, False))])
def test_d23_planes_whose_strips_are_idle(isa, side, machine):
    """D23: float32 by filters that planes have no strips for, or slower ones: the bits are those of the same elements with channels last."""
    as_pixels = set()
    for (height, width), kernel, stride, channels in itertools.product(((5, 3), (6, 17), (9, 9), (21, 33), (3, 64)), (3, 5, 7), (1, 2), (20, 40, 96)):
        x, weights = random((2, height, width, channels), 1), random((kernel, kernel, channels, 1), 2)
        given = guarded_array(x.transpose(0, 3, 1, 2), side)
        last = np.asarray(nd.DepthwiseConv2d(weights, stride=stride, isa=isa)(x))
        out = guarded_array(np.full(last.transpose(0, 3, 1, 2).shape, np.nan, np.float32), side)
        with ways(*machine):
            plan = nd.DepthwiseConv2d(weights, stride=stride, data_format="NCHW", isa=isa)
            plan(given, out)
        np.testing.assert_allclose(out.transpose(0, 2, 3, 1), last, atol=4e-6 * kernel)
        if "planes as pixels" in plan.explain():
            as_pixels.add((width, kernel, stride, channels))
            assert out.transpose(0, 2, 3, 1).tobytes() == last.tobytes()
    if LANES.get(isa, 16) == 16:
        assert {(17, 7, 2, 40), (17, 5, 2, 96), (17, 5, 1, 96), (3, 5, 2, 96)} < as_pixels
        assert ((33, 7, 1, 40) in as_pixels) == (machine != HALVING)
        assert not as_pixels & {(64, 5, 1, 40), (64, 7, 1, 20), (33, 3, 1, 96), (9, 3, 1, 40), (3, 3, 1, 40)}
    if LANES.get(isa, 16) == 8:
        assert {(9, 3, 1, 96), (9, 3, 2, 96), (64, 5, 1, 40), (33, 7, 1, 40)} < as_pixels
        assert not as_pixels & {(9, 3, 1, 40), (9, 3, 2, 40), (33, 3, 1, 96), (33, 5, 1, 40), (33, 3, 2, 96), (64, 3, 1, 20), (33, 5, 1, 20)}


@every_isa
def test_d28_threads_share_columns(isa):
    """D28: a few channels as a copy in scratch, which `explain()` reports: threads share columns."""
    x = (100 * random((2, 20000, 7, 1), 1)).astype(np.int8)
    weights, quantization = (50 * random((5, 3, 1, 1), 2)).astype(np.int8), nd.Quantization((0.05, 3), 0.1, (8.0, 0))
    alone, shared = [nd.DepthwiseConv2d(weights, quantization=quantization, threads=threads, isa=isa) for threads in (1, 2)]
    text = shared.explain(x)
    assert "rows as columns, in scratch" in text
    assert "threads   2 of 2, 14 columns\n" in text
    assert " 0 bytes of scratch" not in text
    np.testing.assert_array_equal(alone(x), shared(x))


@every_isa
def test_d26_threads_share_a_row(isa):
    """D26: change places where threads may share what is a row: and say so."""
    x = random((1, 1, 40000, 16), 1)
    alone, shared = [nd.DepthwiseConv2d(random((1, 9, 16, 1), 2), threads=threads, isa=isa) for threads in (1, 2)]
    assert "threads   2 of 2, 40000 outputs of 1 row\n" in shared.explain(x)
    assert "rows as columns" in shared.explain(x)
    assert "1x9, 16 channels" in shared.explain(x)
    np.testing.assert_array_equal(alone(x), shared(x))
    for batch, words in ((1, "1 column of 40000 outputs"), (3, "3 columns of 40000 outputs")):
        text = nd.DepthwiseConv2d(random((3, 1, 1, 1), 2), threads=2, isa=isa).explain(np.zeros((batch, 40000, 1, 1), np.float32))
        assert "rows as columns" in text
        assert f" of 2, {words}, each for one thread\n" in text


@every_isa
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16"])
def test_d24_taps_beside_a_single_row_or_column(isa, dtype):
    """D24: Taps beside an image of one row or column that are outside the image for every output are left out, and `explain()` says how many reach."""
    for (height, width), kernel, reaching, padding in (
        ((1, 40), (3, 3), "1x3", "same"),
        ((40, 1), (3, 5), "3x1", "same"),
        ((1, 1), (3, 3), "1x1", "same"),
        ((1, 9), (5, 3), "3x3", ((3, 3), (0, 0))),  # three rows of outputs
        ((2, 1), (3, 3), "3x1", ((1, 1), (1, 1))),
    ):
        for channels, step in itertools.product((1, 3, 16), (1, 2)):
            if dtype in ("int8", "int16"):
                x, weights = (np.asarray(20 * random(shape), np.int8) for shape in ((1, height, width, channels), (*kernel, channels, 1)))
                options = {"quantization": nd.Quantization((1.0, 0), 1.0, None), "dtype": dtype}
                x = x.astype(dtype)
            else:
                x, weights, options = random((1, height, width, channels), 1).astype(dtype), random((*kernel, channels, 1), 2).astype(dtype), {}
            plan = nd.DepthwiseConv2d(weights, padding=padding, stride=step, isa=isa, **options)
            sides = explicit(padding, (height, width), kernel, (step, step), (1, 1))
            want = accumulate(x, weights, stride=(step, step), padding=sides)
            tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2}.get(dtype, 0)
            np.testing.assert_allclose(np.asarray(plan(x), want.dtype), want, rtol=tolerance, atol=tolerance)
            assert step > 1 or f"of which {reaching} reach the image" in plan.explain()

"""ADR 0006: quantization, and two roundings, each exact."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nd4jlike as nd
import reference
from guards import SIDES, guarded, guarded_array
from layouts import arrangements, on, padded
from machines import HALVING, MACHINES, ways
from nd4jlike.kernels import dispatch
from nd4jlike.quantization import ACTIVATIONS, ROUNDINGS, quantize_multiplier, quantized_activation_range
from reference import depthwise_quantized, multiply_by_quantized_multiplier, same_padding

ISAS = dispatch.available()
CHANNELS = (1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 67)
every_isa = pytest.mark.parametrize("isa", ISAS)
every_rounding = pytest.mark.parametrize("rounding", ROUNDINGS)


def integers(shape, seed=0, low=-128):
    return np.random.default_rng(seed).integers(low, 128, shape, np.int8)


def layer(channels, multiplier=1, kernel=(3, 3), seed=0, largest=0.05, zero_points=(-5, 7)):
    """Weights, bias and a quantization that spreads results over the whole range."""
    rng = np.random.default_rng(seed)
    weights = integers((*kernel, channels, multiplier), seed + 1)
    bias = rng.integers(-20000, 20000, channels * multiplier, np.int32)
    scales = rng.uniform(largest / 50, largest, channels * multiplier).astype(np.float32)
    return weights, bias, nd.Quantization((0.1, zero_points[0]), scales, (0.2, zero_points[1]))


def assert_equal(got, x, weights, bias, q, rounding, activation=None, **steps):
    """Compare every element with the oracle."""
    clamp = quantized_activation_range(activation, q.output, "int8", rounding)
    want = depthwise_quantized(x, weights, bias, q, rounding, clamp, **steps)
    got = np.asarray(got)
    assert got.shape == want.shape
    assert got.dtype == np.int8
    wrong = np.argwhere(got != want)
    assert not wrong.size, f"{len(wrong)} of {want.size}, first at {wrong[0]}: {got[tuple(wrong[0])]} instead of {want[tuple(wrong[0])]}"


def test_d1_scales_are_float32_and_the_value_compares():
    """D1: scales are float32, one for the input, one for the output, one or one for each output channel for the weights."""
    q = nd.Quantization(input=(0.1, -1), weights=[0.2, 0.3], output=(1, np.int8(3)))
    assert q.input == (float(np.float32(0.1)), -1)
    assert q.weights == (float(np.float32(0.2)), float(np.float32(0.3)))
    assert q.output == (1.0, 3)
    assert q == nd.Quantization((np.float32(0.1), -1), np.array([0.2, 0.3]), (1.0, 3))
    assert hash(q) == hash(nd.Quantization((np.float32(0.1), -1), (0.2, 0.3), (1.0, 3)))
    assert q != nd.Quantization((0.1, 0), [0.2, 0.3], (1.0, 3))
    assert eval(repr(q), {"Quantization": nd.Quantization}) == q
    assert nd.Quantization((1.0, 0), 0.5, (1.0, 0)).weights == (0.5,)
    assert nd.Quantization((1.0, 0), (2, 0), None).weights == (2.0,)
    assert nd.Quantization((1.0, 0), [2, 3], None).weights == nd.Quantization((1.0, 0), (2.0, 3.0), None).weights == (2.0, 3.0)
    with pytest.raises(nd.LayoutError, match=r"two scales or a scale and its zero point: say \[2, 3\], or weights_zero_point=3"):
        nd.Quantization((1.0, 0), (2, 3), None)
    with pytest.raises(AttributeError):
        q.input = (1.0, 0)


def test_d22_repr():
    """D22: The `repr` of a Quantization has the first and the last three of more than eight scales."""
    for count in (1, 2, 8):
        q = nd.Quantization((0.5, 1), [0.25 * (i + 1) for i in range(count)], (0.5, 3), 7)
        assert eval(repr(q), {"Quantization": nd.Quantization}) == q
    q = nd.Quantization((0.5, 1), [0.25 * (i + 1) for i in range(9)], None)
    assert repr(q) == "Quantization(input=(0.5, 1), weights=(0.25, 0.5, 0.75, ..., 1.75, 2.0, 2.25), output=None, weights_zero_point=0)"
    assert repr(nd.Quantization((0.5, 1), 0.25, "float32", 7)) == "Quantization(input=(0.5, 1), weights=(0.25,), output='float32', weights_zero_point=7)"
    q = nd.Quantization((0.1, 1), np.random.default_rng(0).uniform(0.1, 0.2, 4096), (0.1, 0))
    with pytest.raises(nd.LayoutError, match="quantization=Quantization") as caught:
        nd.DepthwiseConv2d(np.ones((3, 3, 4096, 1), np.float32), quantization=q)
    assert len(str(caught.value)) < 500


@every_isa
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [192, 160])
def test_d4_images_beyond_the_second_level_cache(isa, stride, channels):
    """D4: The accumulator is `bias + sum of (x - input zero point) * w`, whether the next rows are fetched ahead or not."""
    weights, bias, q = layer(channels)
    x = integers((1, 83, 101, channels), 9)
    padding = tuple(same_padding(n, 3, stride, 1) for n in x.shape[1:3])
    for machine in (*MACHINES, HALVING, (12, False, 2)):
        with ways(*machine):
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, quantization=q, rounding="xnnpack", isa=isa)
            assert_equal(plan(x), x, weights, bias, q, "xnnpack", stride=(stride, stride), padding=padding)


@every_isa
@every_rounding
def test_d1_one_weight_scale_serves_all_channels(isa, rounding):
    """D1: one or one for each output channel for the weights."""
    weights, bias, _ = layer(19)
    x = integers((1, 4, 5, 19), 9)
    one, many = (nd.Quantization((0.1, 3), scales, (0.2, -4)) for scales in (0.03, [0.03] * 19))
    got = nd.depthwise_conv2d(x, weights, bias, quantization=one, rounding=rounding, isa=isa)
    assert (np.asarray(got) == np.asarray(nd.depthwise_conv2d(x, weights, bias, quantization=many, rounding=rounding, isa=isa))).all()
    assert_equal(got, x, weights, bias, one, rounding, padding=((1, 1), (1, 1)))


@given(st.floats(2.0**-60, 2.0**30, exclude_max=True))
def test_d2_fixed_point_multipliers_are_the_nearest(effective):
    """D2: its fixed-point form is a multiplier in [2**30, 2**31) and a shift."""
    multiplier, shift = quantize_multiplier(effective)
    assert (multiplier, shift) == reference.quantize_multiplier(effective)
    if multiplier:
        assert 2**30 <= multiplier < 2**31
        assert -31 <= shift <= 31
        assert abs(Fraction(multiplier) * Fraction(2) ** (shift - 31) - Fraction(effective)) <= Fraction(2) ** (shift - 32)
    else:
        assert effective < 2.0**-32


@pytest.mark.parametrize(
    ("effective", "fixed"),
    [
        (1.0, (2**30, 1)),
        (0.5, (2**30, 0)),
        (0.75, (3 * 2**29, 0)),
        (1 - 2.0**-40, (2**30, 1)),  # the carry
        (1 - 2.0**-32, (2**30, 1)),  # exactly one half goes away from zero
        (1 - 2.0**-32 - 2.0**-50, (2**31 - 1, 0)),
        ((2**30 + 0.5) / 2**31, (2**30 + 1, 0)),  # so does one half behind an even number
        (2.0**-32, (2**30, -31)),
        (2.0**-33, (0, 0)),
        (2.0**-33 * (1 - 2.0**-40), (0, 0)),
        (0.0, (0, 0)),
    ],
)
def test_d2_multipliers_at_the_edges(effective, fixed):
    """D2: frexp, the fraction times 2**31 rounded half away from zero, a carry halved into the shift, and 0 for shifts below -31."""
    assert quantize_multiplier(effective) == fixed == reference.quantize_multiplier(effective)


def test_d2_the_product_is_taken_in_float64():
    """D2: The effective multiplier is `input * weights / output` in float64."""
    q = nd.Quantization((0.1, 0), [0.2, 0.3, 0.7], (0.9, 0))
    multipliers, shifts = q.multipliers_and_shifts()
    for multiplier, shift, scale in zip(multipliers, shifts, (0.2, 0.3, 0.7), strict=True):
        effective = float(np.float32(0.1)) * float(np.float32(scale)) / float(np.float32(0.9))
        assert (multiplier, shift) == reference.quantize_multiplier(effective)
    assert multipliers.dtype == shifts.dtype == np.int32
    repeated = nd.Quantization((0.1, 0), 0.2, (0.9, 0)).multipliers_and_shifts(channels=3)
    assert [column.tolist() for column in repeated] == [[multipliers[0]] * 3, [shifts[0]] * 3]
    with pytest.raises(nd.LayoutError, match="3 scales for 4 channels"):
        q.multipliers_and_shifts(channels=4)


def test_d3_xnnpacks_scale_is_rounded_at_each_step():
    """D3: XNNPACK's scale is `input * weights / output`, each operation in float32."""
    rng = np.random.default_rng(1)
    for a, b, c in rng.uniform(0.001, 1, (200, 3)).astype(np.float32):
        (scale,) = nd.Quantization((a, 0), b, (c, 0)).float_scales()
        assert scale.dtype == np.float32
        assert scale == np.float32(np.float32(a * b) / c)


@every_isa
@every_rounding
def test_d4_accumulators_near_the_limits_of_int32(isa, rounding):
    """D4: The accumulator is `bias + sum of (x - input zero point) * w`, an int32 that wraps around."""
    for bias in (2**31 - 1, -(2**31), 2**31 - 255 * 127 * 9, 2**30, -(2**30) - 1):
        for sign in (-127, 127):
            for zero_point in (-128, 0, 127):
                x = integers((1, 3, 3, 33), 1)
                weights = np.full((3, 3, 33, 1), sign, np.int8)
                q = nd.Quantization((1.0, zero_point), 2.0**-25, (1.0, 5))
                full = np.full(33, bias, np.int32)
                got = nd.depthwise_conv2d(x, weights, full, quantization=q, rounding=rounding, padding="valid", isa=isa)
                assert_equal(got, x, weights, full, q, rounding)


@every_isa
@every_rounding
@pytest.mark.parametrize("value", [-128, 127])
def test_d4_all_inputs_and_weights_at_their_limits(isa, rounding, value):
    """D4: The accumulator is `bias + sum of (x - input zero point) * w`, an int32 that wraps around."""
    for weight in (-128, 127):
        for zero_point in (-128, 127):
            for kernel in ((3, 3), (7, 7), (1, 21)):
                x = np.full((1, 5, 8, 17), value, np.int8)
                weights = np.full((*kernel, 17, 1), weight, np.int8)
                q = nd.Quantization((1.0, zero_point), 1e-4, (1.0, -3))
                padding = tuple(same_padding(n, k, 1, 1) for n, k in zip((5, 8), kernel, strict=True))
                assert_equal(nd.depthwise_conv2d(x, weights, quantization=q, rounding=rounding, isa=isa), x, weights, None, q, rounding, padding=padding)


def through_one_by_one(accumulators, q, rounding, isa):
    """Requantize chosen accumulators: a 1x1 kernel of zeros, and the accumulators as bias; on two rows of four pixels, which a tile computes together."""
    accumulators = np.asarray(accumulators, np.int32)
    count = len(accumulators)
    x, weights = np.zeros((1, 2, 4, count), np.int8), np.zeros((1, 1, count, 1), np.int8)
    y = np.asarray(nd.depthwise_conv2d(x, weights, accumulators, quantization=q, rounding=rounding, isa=isa))
    assert (y == y[0, 0, 0]).all()
    return y[0, 0, 0]


def rescaled_twice(accumulators, multiplier, shift):
    """`multiply_by_quantized_multiplier` of an array, for shifts to the right."""
    high = (accumulators.astype(np.int64) * multiplier + 2**30) >> 31
    return np.sign(high) * ((np.abs(high) + 2.0 ** (-shift - 1)) // 2.0**-shift).astype(np.int64)


@every_isa
@every_rounding
def test_d5_d6_every_accumulator_around_every_tie(isa, rounding):
    """D5: `rounding="tflite"`: shift left; saturating rounding doubling high multiply, one half going up."""
    rng = np.random.default_rng(2)
    for effective in (1.0, 0.5, 0.25, 0.1, 1 / 3, 3.0, 2.0**-10, 0.0123, 1.9e-5, 7.3e-7, 2.0**-20 * 1.5, 30.0, 2.0**12, *rng.uniform(1e-4, 0.1, 8)):
        ties = np.clip([(k + 0.5) / effective for k in range(-390, 390)], -(2**31) + 9, 2**31 - 9)
        accumulators = np.array(sorted({int(tie) + near for tie in ties for near in range(-3, 4)} | {0, 1, -1, 2**31 - 1, -(2**31)}))
        for zero_point in (0, -128):
            q = nd.Quantization((effective, 0), 1.0, (1.0, zero_point))
            multiplier, shift = (int(column[0]) for column in q.multipliers_and_shifts())
            if rounding == "tflite":
                values = multiply_by_quantized_multiplier(accumulators, multiplier, shift)
            else:
                scale = np.float32(q.input[0])
                values = np.rint(accumulators.astype(np.float32) * scale).astype(np.int64)
            # All at once, and those that leave room for a shorter computation.
            for some in (np.full(len(accumulators), True), np.abs(accumulators) < 2**29):
                got = through_one_by_one(accumulators[some], q, rounding, isa)
                expected = np.clip(values[some] + zero_point, -128, 127)
                wrong = np.flatnonzero(got != expected)
                assert not wrong.size, (effective, zero_point, accumulators[some][wrong[0]], got[wrong[0]], expected[wrong[0]])


@every_isa
def test_d12_random_accumulators(isa):
    """D12: `rounding="tflite"` may be computed in float32 where every shift is to the right and no sum reaches 2**30."""
    rng = np.random.default_rng(3)
    for effective in (0.4999, 0.26, 0.03, *rng.uniform(1e-3, 0.02, 4), 3e-5, 2.0**-22):
        for zero_point in (3, -128):
            q = nd.Quantization((effective, 0), 1.0, (1.0, zero_point))
            multiplier, shift = (int(column[0]) for column in q.multipliers_and_shifts())
            reach = min(300 / effective, 2**29)
            accumulators = rng.integers(-reach, reach, 30_000)
            got = through_one_by_one(accumulators, q, "tflite", isa)
            assert np.array_equal(got, np.clip(rescaled_twice(accumulators, multiplier, shift) + zero_point, -128, 127)), (effective, zero_point)


def through_three_by_three(accumulators, q, rounding, isa):
    """Requantize chosen accumulators that are a few of the many that a filter of 3x3 can reach: inputs that are zero points add nothing to the bias."""
    accumulators = np.asarray(accumulators, np.int32)
    count = len(accumulators)
    x, weights = np.full((1, 2, 5, count), q.input[1], np.int8), np.full((3, 3, count, 1), 127, np.int8)
    weights[..., 1::2, :] = -127
    y = np.asarray(nd.depthwise_conv2d(x, weights, accumulators, quantization=q, rounding=rounding, isa=isa))
    assert (y == y[0, 0, 0]).all()
    return y[0, 0, 0]


@every_isa
@every_rounding
def test_d12_lines_through_many_sums(isa, rounding):
    """D12: `rounding="tflite"` may be computed in float32 where every shift is to the right and no sum reaches 2**30."""
    rng = np.random.default_rng(4)
    for effective in (0.125, 0.01, 2.0**-7 * 1.75, 2.0**-11, *rng.uniform(1e-3, 0.02, 2)):
        for zero_point in (-128, 0, 5):
            ties = [(k + 0.5) / effective for k in range(-130 - zero_point - 8, 140 - zero_point)]
            accumulators = np.array(sorted({int(tie) + near for tie in ties for near in range(-2, 3)}))
            q = nd.Quantization((effective, -128), 1.0, (1.0, zero_point))
            multiplier, shift = (int(column[0]) for column in q.multipliers_and_shifts())
            if rounding == "tflite":
                values = rescaled_twice(accumulators, multiplier, shift)
            else:
                values = np.rint(accumulators.astype(np.float32) * np.float32(effective)).astype(np.int64)
            got = through_three_by_three(accumulators, q, rounding, isa)
            wrong = np.flatnonzero(got != np.clip(values + zero_point, -128, 127))
            assert not wrong.size, (effective, zero_point, accumulators[wrong[0]], got[wrong[0]], values[wrong[0]])


@every_isa
@every_rounding
def test_d12_results_far_beyond_the_clamp(isa, rounding):
    """D12: `rounding="tflite"` may be computed in float32 where every shift is to the right and no sum reaches 2**30."""
    for value, channels in itertools.product((-128, 127), (160, 24, 8)):
        for width in (1, 2, 9):
            x = np.full((1, 3, width, channels), value, np.int8)
            x[:, 1, width // 2] = -1 - value
            weights = np.full((3, 3, channels, 1), 127, np.int8)
            weights[..., 1::2, :] = -127
            # 9 * 127 * 255 times these is below and above what 16 bits hold.
            for effective in (0.03, 0.1096, 0.1124, 0.19, 0.39, 0.62, 0.97):
                for stride, zero_point in itertools.product((1, 2), (-128, -3)):
                    q = nd.Quantization((effective, -128), 1.0, (1.0, zero_point))
                    got = nd.depthwise_conv2d(x, weights, stride=stride, quantization=q, rounding=rounding, isa=isa)
                    padding = tuple(same_padding(n, 3, stride, 1) for n in (3, width))
                    assert_equal(got, x, weights, None, q, rounding, stride=(stride, stride), padding=padding)


# Channels, multiplier and filter: one layer for each way of computing.
WAYS = [(64, 1, (3, 3)), (96, 1, (3, 3)), (72, 1, (5, 5)), (24, 1, (3, 3)), (5, 1, (3, 3)), (3, 8, (3, 3)), (2, 6, (5, 3)), (64, 1, (1, 9)), (32, 1, (2, 7))]


@every_isa
@every_rounding
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_d12_sums_of_one_sign_and_of_one_value(isa, rounding, way):
    """D12: Either rounding may be a straight line, or two that meet, rounded once."""
    channels, multiplier, kernel = way
    outputs = channels * multiplier
    for zero_point, activation in itertools.product((-128, -5, 90), (None, "relu", "relu_n1_to_1")):
        weights, bias, q = layer(channels, multiplier, kernel, zero_point + 200, zero_points=(-5, zero_point))
        columns = weights.reshape(-1, outputs)
        # No weights at all; sums that are never below, or never above, zero, and beyond the clamp; or just one step from it.
        columns[:, ::5] = 0
        bias[1::5] = 400_000
        bias[2::5] = -400_000
        reach = np.abs(columns.astype(np.int64)).sum(0) * 130
        bias[3::10], bias[8::10] = reach[3::10], -reach[8::10]
        x = integers((1, 7, 13, channels), zero_point + 300)
        got = nd.depthwise_conv2d(x, weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa)
        padding = tuple(same_padding(n, k, 1, 1) for n, k in zip((7, 13), kernel, strict=True))
        assert_equal(got, x, weights, bias, q, rounding, activation, padding=padding)


@every_isa
@every_rounding
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_d12_sums_that_wrap_around(isa, rounding, way):
    """D12: `rounding="tflite"` may be computed in float32 where every shift is to the right and no sum reaches 2**30."""
    channels, multiplier, kernel = way
    padding = tuple(same_padding(n, k, 1, 1) for n, k in zip((5, 8), kernel, strict=True))
    for value, bias in ((127, 2**31 - 1), (-128, -(2**31)), (127, -(2**31)), (127, 2**30 - 100), (-128, 100 - 2**30)):
        x, weights = np.full((1, 5, 8, channels), value, np.int8), np.full((*kernel, channels, multiplier), 127, np.int8)
        # Such sums have results of 16 bits under the smaller scale, of more under the larger one.
        for effective, zero_point in itertools.product((5e-6, 1e-4), (-128, 7)):
            q = nd.Quantization((effective, 0), 1.0, (1.0, zero_point))
            biases = np.full(channels * multiplier, bias, np.int32)
            got = nd.depthwise_conv2d(x, weights, biases, quantization=q, rounding=rounding, isa=isa)
            assert_equal(got, x, weights, biases, q, rounding, padding=padding)


@every_isa
@every_rounding
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_d12_a_channel_with_large_sums_beside_others(isa, rounding, way):
    """D12: Either rounding may be a straight line, or two that meet, rounded once."""
    channels, multiplier, kernel = way
    outputs = channels * multiplier
    x, weights = integers((1, 12, 14, channels), 5), np.ones((*kernel, channels, multiplier), np.int8)
    padding = tuple(same_padding(n, k, 1, 1) for n, k in zip((12, 14), kernel, strict=True))
    for large, first in itertools.product((8_388_500, 8_700_000, 9_000_000, 25_000_000, -9_000_000), (0, outputs // 2)):
        for effective in (5.28372e-06, 7e-4):
            bias = np.zeros(outputs, np.int32)
            bias[first] = large
            q = nd.Quantization((1.0, 0), effective, (1.0, -36))
            got = nd.depthwise_conv2d(x, weights, bias, quantization=q, rounding=rounding, isa=isa)
            assert_equal(got, x, weights, bias, q, rounding, padding=padding)


def test_d5_the_first_rounding_moves_what_the_second_sees():
    """D5: rounding division by a power of two, one half going away from zero; add the output zero point; clamp."""
    # 4 * 0.369 is 1.477; the high multiply makes 2.95 a 3, and half of that is a tie.
    q = nd.Quantization((0.375 * 63 / 64, 0), 1.0, (1.0, 10))
    assert through_one_by_one([4, -4], q, "tflite", None).tolist() == [12, 8]
    assert through_one_by_one([4, -4], q, "xnnpack", None).tolist() == [11, 9]


def test_d5_one_half_goes_up_in_the_first_rounding_and_away_from_zero_in_the_second():
    """D5: saturating rounding doubling high multiply, one half going up; rounding division by a power of two, one half going away from zero."""
    half, quarter = nd.Quantization((0.5, 0), 1.0, (1.0, 10)), nd.Quantization((0.25, 0), 1.0, (1.0, 10))
    assert through_one_by_one([1, 3, 5, -1, -3, -5], half, "tflite", None).tolist() == [11, 12, 13, 10, 9, 8]
    assert through_one_by_one([2, 6, -2, -6], quarter, "tflite", None).tolist() == [11, 12, 9, 8]


def test_d6_one_half_goes_to_even():
    """D6: `rounding="xnnpack"`: the accumulator as float32 times the float32 scale, rounded half to even; add the output zero point; clamp."""
    q = nd.Quantization((0.5, 0), 1.0, (1.0, 10))
    assert through_one_by_one([1, 3, 5, -1, -3, -5], q, "xnnpack", None).tolist() == [10, 12, 12, 10, 8, 8]


@every_isa
@every_rounding
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_d7_activations_are_clamps(isa, rounding, activation):
    """D7: An activation is a clamp of the quantized result at `zero point + round(bound / scale)`, divided in float32."""
    weights, bias, q = layer(35)
    x = integers((1, 5, 6, 35), 9)
    got = nd.depthwise_conv2d(x, weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa)
    assert_equal(got, x, weights, bias, q, rounding, activation, padding=((1, 1), (1, 1)))
    lowest, highest = ACTIVATIONS[activation]
    assert np.asarray(got).min() == max(-128, 7 + lowest / 0.2)
    assert np.asarray(got).max() == min(127, 7 + highest / 0.2)


@pytest.mark.parametrize(
    ("activation", "output", "bounds"),
    [
        (None, (0.1, 0), (-128, 127)),
        ("relu", (0.1, -20), (-20, 127)),
        ("relu6", (0.1, 0), (0, 60)),
        ("relu6", (0.001, 0), (0, 127)),
        ("relu6", (1e-40, 0), (0, 127)),
        ("relu_n1_to_1", (0.1, 5), (-5, 15)),
        ("relu_n1_to_1", (0.001, 5), (-128, 127)),
        ("relu6", (1e30, -128), (-128, -128)),
    ],
)
def test_d7_bounds_stay_within_the_element_type(activation, output, bounds):
    """D7: An activation is a clamp of the quantized result: bounds beyond the type are its own."""
    for rounding in ROUNDINGS:
        assert quantized_activation_range(activation, output, "int8", rounding) == bounds


@pytest.mark.parametrize(
    ("output", "dtype", "rounding", "words"),
    [
        ((1, 300), "uint8", "tflite", "the output zero point must be an uint8, 0 to 255: 300"),
        ((1, -129), "int8", "xnnpack", "the output zero point must be an int8, -128 to 127: -129"),
        ((1, 7), "int16", "tflite", "the output zero point must be 0 for int16 inputs: 7"),
        ((1, 0), "int16", "xnnpack", "rounding must be 'tflite' for int16 inputs"),
    ],
)
def test_d21_bounds_refuse_what_results_do(output, dtype, rounding, words):
    """D21: `requantize` and `bounds` refuse what D11, D15 and D16 do."""
    q = nd.Quantization((1, 0), 1, output)
    for call in (q.bounds, lambda **how: q.requantize([1], **how)):
        with pytest.raises(nd.LayoutError, match=words):
            call(dtype=dtype, rounding=rounding)


# Activation, output scale and zero point, type; the least and largest outputs that XNNPACK gave (ai-edge-litert 2.3.0).
SEEN_BOUNDS = [
    ("relu_n1_to_1", 2.0, 1, "int8", (0, 2)),
    ("relu6", 4.0, 69, "int8", (69, 70)),
    ("relu6", 12.0, 3, "int8", (3, 4)),
    ("relu_n1_to_1", 2 / 3, 5, "int8", (4, 6)),
    ("relu_n1_to_1", 0.4, -1, "int8", (-4, 2)),
    ("relu6", 0.32432428002357483, 58, "int8", (58, 76)),  # no tie before the zero point is added in float32
    ("relu6", 4.0, 69, "uint8", (69, 70)),
    ("relu_n1_to_1", 2.0, 129, "uint8", (128, 130)),
]


@pytest.mark.parametrize(("activation", "scale", "zero_point", "kind", "bounds"), SEEN_BOUNDS)
def test_d7_xnnpack_rounds_with_the_zero_point(activation, scale, zero_point, kind, bounds):
    """D7: with `"xnnpack"` at `round(bound / scale + zero point)`, one half going to even."""
    assert quantized_activation_range(activation, (scale, zero_point), kind, "xnnpack") == bounds


def test_d7_half_a_step_goes_where_the_library_has_it():
    """D7: one half goes away from zero with `"tflite"`, to even with `"xnnpack"`."""
    for steps, away, even in ((10.5, 11, 10), (11.5, 12, 12), (12.5, 13, 12)):
        scale = np.float32(6) / np.float32(steps)
        assert np.float32(6) / scale == np.float32(steps)
        assert quantized_activation_range("relu6", (scale, 0), "int8", "tflite") == (0, away)
        assert quantized_activation_range("relu6", (scale, 0), "int8", "xnnpack") == (0, even)


@every_isa
@every_rounding
@pytest.mark.parametrize("zero_point", [-128, -1, 0, 127])
def test_d8_padding_is_the_input_zero_point(isa, rounding, zero_point):
    """D8: outside the image, in a halo and in a border alike, the input is its zero point."""
    read = []
    for channels, multiplier, sums in ((3, 1, False), (16, 1, False), (33, 1, False), (64, 1, False), (16, 9, False), (16, 9, True)):
        weights, bias, q = layer(channels, multiplier, zero_points=(zero_point, 3))
        if sums:
            q = nd.Quantization(q.input, q.weights, None)
        for stride in (1, 2):
            x = integers((2, 5, 4, channels), 9)
            padding = tuple(same_padding(n, 3, stride, 1) for n in (5, 4))
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, quantization=q, rounding=rounding, isa=isa)
            halo = padded(x, (0, 2, 2, 0), (0, 1, 1, 0), zero_point)
            if sums:
                assert np.array_equal(plan(halo), depthwise_quantized(x, weights, bias, q, rounding, None, stride=(stride, stride), padding=padding))
            else:
                assert_equal(plan(halo), x, weights, bias, q, rounding, stride=(stride, stride), padding=padding)
            read.append("read in place" in plan.explain())
            dirty = padded(x, (0, 2, 2, 0), (0, 1, 1, 0), (zero_point + 1 + 128) % 256 - 128)
            want = np.asarray(plan(halo)).copy()
            assert (np.asarray(plan(dirty)) == want).all()
            assert ("held other values" in plan.explain()) == read[-1]
            assert (np.asarray(plan(x)) == want).all()
    assert set(read) == {False, True}


@every_isa
@every_rounding
@pytest.mark.parametrize("channels", CHANNELS)
def test_d9_d10_channels_around_the_lanes(isa, rounding, channels):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    for size, kernel, stride, dilation, multiplier in (
        ((4, 5), (3, 3), (1, 1), (1, 1), 1),
        ((5, 7), (3, 3), (2, 2), (1, 1), 1),
        ((6, 5), (2, 5), (1, 2), (2, 1), 1),
        ((1, 1), (3, 3), (1, 1), (1, 1), 1),
        ((3, 4), (3, 2), (1, 1), (1, 1), 2),
        ((1, 21), (1, 21), (1, 1), (1, 1), 1),
    ):
        weights, bias, q = layer(channels, multiplier, kernel)
        x = integers((1, *size, channels), 9)
        padding = tuple(same_padding(*numbers) for numbers in zip(size, kernel, stride, dilation, strict=True))
        got = nd.depthwise_conv2d(x, weights, bias, stride=stride, dilation=dilation, quantization=q, rounding=rounding, isa=isa)
        assert_equal(got, x, weights, bias, q, rounding, stride=stride, dilation=dilation, padding=padding)


@every_isa
@every_rounding
def test_d9_windows_that_share_no_input(isa, rounding):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter; D10: those of XNNPACK."""
    for channels in (16, 20, 24, 31, 32, 40, 57, 100):
        for kernel, stride in (((3, 3), (3, 3)), ((2, 2), (2, 2)), ((2, 2), (1, 1)), ((5, 5), (3, 4)), ((3, 2), (1, 2)), ((7, 9), (2, 9))):
            weights, bias, q = layer(channels, 1, kernel)
            for size, edge in (((7, 10), 1), ((2, 3), 2), ((5, 22), 0)):
                if size[0] + 2 * edge < kernel[0] or size[1] + 2 * edge < kernel[1]:
                    continue
                x = integers((2, *size, channels), 9)
                got = nd.depthwise_conv2d(x, weights, bias, stride=stride, padding=edge, quantization=q, rounding=rounding, isa=isa)
                assert_equal(got, x, weights, bias, q, rounding, stride=stride, padding=((edge, edge), (edge, edge)))


@every_isa
@pytest.mark.parametrize("multiplier", [1, 2, 3, 8])
def test_d9_multipliers_without_bias(isa, multiplier):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    for channels in (1, 2, 5, 16):
        weights, _, q = layer(channels, multiplier, (3, 2))
        x = integers((2, 4, 5, channels), 9)
        got = nd.depthwise_conv2d(x, weights, stride=2, quantization=q, isa=isa)
        assert_equal(got, x, weights, None, q, "tflite", stride=(2, 2), padding=tuple(same_padding(n, k, 2, 1) for n, k in ((4, 3), (5, 2))))


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d9_nothing_beyond_the_buffers_is_touched(isa, side):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    for channels in CHANNELS:
        for multiplier, size, stride, kernel in (
            (1, (4, 5), 1, (3, 3)), (1, (5, 4), 2, (3, 3)), (2, (3, 3), 1, (3, 3)), (1, (3, 9), 1, (3, 3)), (1, (4, 15), 2, (3, 3)),
            (1, (3, 7), 1, (1, 6)), (1, (7, 3), 2, (4, 1)), (1, (6, 1), 1, (6, 1)), (8, (5, 9), 2, (3, 3)), (16, (3, 4), 1, (3, 6)), (6, (5, 4), 2, (3, 3)),
            (1, (5, 8), 3, (3, 3)), (1, (4, 2), 1, (3, 3)), (1, (3, 3), 1, (5, 5)), (1, (2, 3), 1, (7, 7)), (1, (9, 2), 1, (3, 1)), (1, (3, 9), 1, (1, 3)),
            (1, (3, 18), 1, (5, 5)), (1, (4, 15), 2, (5, 5)), (1, (3, 17), 1, (7, 7)), (1, (3, 11), 2, (7, 7)),
        ):  # fmt: skip
            weights, bias, q = layer(channels, multiplier, kernel)
            values = integers((1, *size, channels), 9)
            plan = nd.DepthwiseConv2d(guarded_array(weights, side), guarded_array(bias, side), stride=stride, quantization=q, isa=isa)
            want = np.asarray(plan(values))
            out = guarded_array(np.zeros_like(want), side)
            plan(guarded_array(values, side), out)
            assert (out == want).all()
            haloed = nd.ShapeDescriptor.from_tag(values.shape, "nhwc", "int8", paddings=(0, 2, 2, 0), padding_offsets=(0, 1, 1, 0))
            for layout in (plan.input_descriptor(values.shape), haloed):
                x = nd.NdArray(layout, guarded(layout.allocLength(), side))
                x.fill_padding(-5)
                x[...] = values
                out[...] = 0
                plan(x, out)
                assert (out == want).all()


@every_isa
@every_rounding
def test_d9_elements_may_lie_anywhere(isa, rounding):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    for channels in (3, 17):
        weights, bias, q = layer(channels)
        values = integers((2, 4, 5, channels), 9)
        plan = nd.DepthwiseConv2d(weights, bias, padding=1, quantization=q, rounding=rounding, isa=isa)
        want = np.asarray(plan(values)).copy()
        assert_equal(want, values, weights, bias, q, rounding, padding=((1, 1), (1, 1)))
        for name, x in arrangements(values, 99):
            assert (np.asarray(plan(x)) == want).all(), name
        for name, out in arrangements(np.zeros_like(want), 99):
            if name != "read-only":
                assert (np.asarray(plan(values, out)) == want).all(), name


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_d9_any_geometry(data):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    small = st.integers(1, 3)
    kernel, stride, dilation = (data.draw(st.tuples(up_to, up_to)) for up_to in (st.integers(1, 5), small, small))
    sides = data.draw(st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 2))
    size = tuple(data.draw(st.integers(max(1, (k - 1) * d + 1 - sum(p)), (k - 1) * d + 5)) for k, d, p in zip(kernel, dilation, sides, strict=True))
    channels, multiplier = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([1, 1, 1, 2, 3]))
    zero_points = data.draw(st.tuples(st.integers(-128, 127), st.integers(-128, 127)))
    weights, bias, q = layer(channels, multiplier, kernel, data.draw(st.integers(0, 99)), data.draw(st.sampled_from([1e-6, 0.05, 20.0])), zero_points)
    activation, rounding = data.draw(st.sampled_from(list(ACTIVATIONS))), data.draw(st.sampled_from(ROUNDINGS))
    x = integers((1, *size, channels), 9)
    how = {"stride": stride, "dilation": dilation, "padding": sides}
    plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, activation=activation, isa=data.draw(st.sampled_from(ISAS)), **how)
    given_x = on(plan.input_descriptor(x.shape), x, data.draw(st.sampled_from([q.input[1], 1]))) if data.draw(st.booleans()) else x
    assert_equal(plan(given_x), x, weights, bias, q, rounding, activation, **how)


@every_isa
def test_d9_d10_square_filters_of_any_width_and_depth(isa):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    rng = np.random.default_rng(11)
    for case in range(140):
        k, channels = int(rng.choice((3, 4, 5, 7))), int(rng.choice((8, 9, 13, 15, 16, 17, 20, 24, 31, 32, 33, 40, 47, 60, 64, 72, 96, 120, 130)))
        zero_point = int(rng.choice((-128, -128, 3)))
        stride = int(rng.choice((1, 2)))
        dilation = int(rng.choice((1, 1, 2, 3))) if stride == 1 else 1
        size = tuple(int(v) for v in (rng.integers(1, 12), rng.choice((2, 3, 4, 5, 7, 9, 14, 15, 31, 70))))
        # Now and then several columns of outputs see nothing of the image.
        most = k if case % 6 else 2 * k * dilation
        sides = tuple((int(rng.integers(0, most)), int(rng.integers((k - 1) * dilation // 2, k * dilation))) for _ in range(2))
        if any(n + sum(p) <= (k - 1) * dilation for n, p in zip(size, sides, strict=True)):
            continue
        weights, bias, q = layer(channels, 1, (k, k), case, float(rng.choice((1e-3, 0.02, 0.3))), (int(rng.choice((-128, 5))), zero_point))
        x = integers((int(rng.integers(1, 3)), *size, channels), case)
        rounding, activation = ROUNDINGS[case % 2], list(ACTIVATIONS)[case % 4]
        how = {"stride": (stride, stride), "dilation": (dilation, dilation), "padding": sides}
        plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa, **how)
        given_x = on(plan.input_descriptor(x.shape), x, q.input[1]) if case % 3 else x
        assert_equal(plan(given_x), x, weights, bias, q, rounding, activation, **how)


@every_isa
def test_d9_d10_filters_of_one_row_or_one_column(isa):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    rng = np.random.default_rng(12)
    for case in range(80):
        taps, channels = int(rng.choice((2, 3, 4, 5, 7, 9, 13, 21, 60))), int(rng.choice((8, 16, 24, 28, 32, 40, 60, 64, 72, 130)))
        stride = int(rng.choice((1, 1, 2, 3, 4, 5)))
        dilation = int(rng.choice((1, 1, 2, 3))) if stride == 1 else 1
        reach = (taps - 1) * dilation
        along, across = int(rng.choice((1, 2, 5, 9, 22, 40))), int(rng.choice((1, 1, 2, 5, 19)))
        before, after = int(rng.integers(0, reach + 2)), int(rng.integers(reach // 2, reach + 1))
        if along + before + after <= reach:
            continue
        # Now and then outputs lie beside the image.
        sides = ((before, after), (0, 0) if case % 7 else (1, 2))
        kernel, size, strides, dilations = (taps, 1), (along, across), (stride, int(rng.integers(1, 3))), (dilation, int(rng.integers(1, 3)))
        if case % 2:
            sides, kernel, size, strides, dilations = (pair[::-1] for pair in (sides, kernel, size, strides, dilations))
        weights, bias, q = layer(channels, 1, kernel, case, float(rng.choice((1e-3, 0.02, 0.3))), (int(rng.choice((-128, 5))), int(rng.choice((-128, 3)))))
        x = integers((int(rng.integers(1, 3)), *size, channels), case)
        rounding, activation = ROUNDINGS[case // 2 % 2], list(ACTIVATIONS)[case % 4]
        how = {"stride": strides, "dilation": dilations, "padding": sides}
        plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa, **how)
        given_x = on(plan.input_descriptor(x.shape), x, q.input[1]) if case % 3 else x
        assert_equal(plan(given_x), x, weights, bias, q, rounding, activation, **how)


@every_isa
@every_rounding
def test_d9_d10_several_filters_for_a_channel(isa, rounding):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT.
    """
    geometries = [
        # Kernel, size, stride, dilation, sides of the padding.
        ((3, 3), (11, 50), (2, 2), (1, 1), ((0, 1), (0, 1))),
        ((3, 3), (6, 33), (1, 1), (1, 1), ((1, 1), (1, 1))),
        ((10, 8), (19, 21), (2, 2), (1, 1), ((4, 4), (3, 3))),
        ((3, 3), (13, 20), (1, 1), (2, 3), ((2, 2), (3, 3))),
        ((5, 2), (7, 1), (3, 1), (1, 1), ((2, 3), (0, 2))),
        ((1, 4), (3, 700), (1, 3), (1, 1), ((0, 0), (2, 1))),
    ]
    layers = [(1, 8, (-128, -128)), (3, 8, (-5, -128)), (3, 16, (127, 7)), (2, 6, (-128, -128)), (4, 12, (0, 3)), (5, 8, (-128, -128)), (16, 4, (3, -128))]
    for place, (kernel, size, stride, dilation, padding) in enumerate(geometries):
        for channels, multiplier, zero_points in layers:
            weights, bias, q = layer(channels, multiplier, kernel, place, zero_points=zero_points)
            x = integers((1 + place % 2, *size, channels), place)
            how = {"stride": stride, "dilation": dilation, "padding": padding}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, activation=(None, "relu6")[place % 2], **how)
            out = plan(x)
            assert_equal(out, x, weights, bias, q, rounding, (None, "relu6")[place % 2], **how)
            # Pixels with a gap.
            wide = padded(np.zeros(out.shape, np.int8), (0, 0, 0, 3), (0, 0, 0, 0), 77)
            plan(padded(x, (0, 0, 0, 1), (0, 0, 0, 0), 99), wide)
            assert (np.asarray(wide) == np.asarray(out)).all()
            assert wide.check_padding(77)


@every_isa
@pytest.mark.parametrize("channels", [8, 13, 16, 24, 32, 72, 80])
def test_d9_d10_columns_in_parts(isa, channels):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter."""
    # The lanes of such channels may hold halves or quarters of the columns.
    for case, width in enumerate((*range(1, 21), 28, 33, 47, 300) if channels == 16 else (*range(7, 13), 300)):
        for stride, dilation, right in ((1, 1, 1), (2, 1, 0), (2, 1, 1), (1, 2, 2), (1, 1, 4), (1, 3, 9), (2, 1, 7)):
            sides = ((1, 1), ((1, 0)[stride - 1] * dilation, right))
            rows = 2 * dilation + case % 3
            if width + sum(sides[1]) <= 2 * dilation:
                continue
            weights, bias, q = layer(channels, 1, (3, 3), case, (1e-3, 0.02, 0.3)[case % 3], ((-128, 5)[case % 2], (-128, -128, 3)[width % 3]))
            x = integers((1, rows, width, channels), case)
            rounding = ROUNDINGS[(case + right) % 2]
            how = {"stride": (stride, stride), "dilation": (dilation, dilation), "padding": sides}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, **how)
            assert_equal(plan(x), x, weights, bias, q, rounding, **how)


@every_isa
@pytest.mark.parametrize("kernel", [4, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_d9_d10_large_filters_and_columns_in_parts(isa, kernel, stride):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT.
    """
    for case, channels in enumerate((8, 11, 16, 17, 20, 33, 36, 68, 72, 80, 90, 128)):
        for width in (1, 7, 14, 21, 33, 47, 90):
            weights, bias, q = layer(channels, 1, (kernel, kernel), case, (1e-3, 0.02, 0.3)[case % 3], ((-128, 5)[case % 2], (-128, -128, 3)[width % 3]))
            x = integers((1, 3 + case % 4, width, channels), case)
            rounding = ROUNDINGS[(case + width) % 2]
            how = {"stride": (stride, stride), "padding": ((kernel // 2, kernel // 2), (kernel // 2, kernel // 2))}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, **how)
            out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
            plan(guarded_array(x, SIDES[width % 2]), out)
            assert_equal(nd.asarray(out), x, weights, bias, q, rounding, **how)


@every_isa
@pytest.mark.parametrize(
    ("kernel", "stride"),
    [
        ((3, 3), (2, 1)),
        ((3, 3), (1, 2)),
        ((4, 4), (1, 2)),
        ((5, 5), (1, 2)),
        ((7, 7), (1, 2)),
        ((3, 3), (3, 3)),
        ((5, 5), (3, 3)),
        ((7, 7), (3, 1)),
        ((11, 9), (3, 4)),
        ((4, 4), (3, 2)),
        ((6, 6), (1, 1)),
        ((5, 3), (1, 1)),
        ((2, 5), (1, 2)),
        ((5, 5), (2, 1)),
        ((13, 2), (2, 2)),
        ((1, 21), (1, 1)),
        ((9, 1), (1, 1)),
        ((1, 4), (1, 3)),
        ((2, 2), (2, 2)),
        ((4, 4), (4, 3)),
        ((1, 3), (1, 1)),
    ],
)
def test_d9_d10_unequal_steps_and_long_filters(isa, kernel, stride):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT.
    """
    for case, channels in enumerate((1, 3, 6, 7, 13, 16, 24, 32, 40, 48, 64, 72, 96)):
        for height, width in ((1, 9), (4, 8), (7, 23), (18, 3), (10, 31)):
            weights, bias, q = layer(channels, 1, kernel, case, (1e-3, 0.02, 0.3)[case % 3], ((-128, 5)[case % 2], (-128, -128, 3)[width % 3]))
            x = integers((2, height, width, channels), case)
            rounding = ROUNDINGS[(case + width) % 2]
            how = {"stride": stride, "padding": tuple((extent // 2, extent // 2) for extent in kernel)}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, **how)
            out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
            plan(guarded_array(x, SIDES[width % 2]), out)
            assert_equal(nd.asarray(out), x, weights, bias, q, rounding, **how)


@every_isa
def test_d9_d10_steps_over_few_channels(isa):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT.
    """
    for case, (channels, multiplier) in enumerate(((1, 1), (2, 3), (3, 1), (3, 8), (5, 1), (6, 1), (8, 2), (10, 1), (15, 1), (16, 1))):
        for width, kernel, stride, dilation in ((1700 // channels, (3, 3), (2, 2), 1), (29, (2, 4), (1, 3), 2), (40, (5, 5), (2, 2), 1)):
            zero_points = ((-128, 5)[case % 2], (-128, -128, 3)[width % 3])
            weights, bias, q = layer(channels, multiplier, kernel, case, (1e-3, 0.02, 0.3)[case % 3], zero_points)
            x = integers((2, 7, width, channels), case)
            rounding = ROUNDINGS[(case + width) % 2]
            how = {"stride": stride, "dilation": (dilation, dilation), "padding": ((1, 2), (2, 1))}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, **how)
            n, height, columns, outputs = plan(x).shape
            room = guarded_array(np.full((n, height, columns, outputs + case % 3), 99, np.int8), SIDES[case % 2])
            plan(guarded_array(x, SIDES[width % 2]), room[..., :outputs])
            assert_equal(room[..., :outputs], x, weights, bias, q, rounding, **how)
            assert (room[..., outputs:] == 99).all()


@every_isa
@pytest.mark.parametrize("kernel", [(2, 2), (2, 3), (3, 2), (4, 4), (5, 3), (4, 5), (5, 4), (6, 6), (5, 6), (7, 6), (5, 7)])
def test_d9_d10_squares_with_zeros_around_a_filter(isa, kernel):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT. With VNNI a filter is computed as the next square (ADR 0004).
    """
    for case, (channels, width) in enumerate(((17, 23), (40, 9), (64, 14), (120, 33), (130, 7))):
        weights, bias, q = layer(channels, 1, kernel, case, (1e-3, 0.02, 0.3)[case % 3], ((-128, 5)[case % 2], (-128, 3)[case // 2 % 2]))
        x = integers((2, 6, width, channels), case)
        for stride, dilation, padding in (
            ((1, 1), (1, 1), tuple(((extent - 1) // 2, extent // 2) for extent in kernel)),
            ((1, 1), (2, 1), ((4, 3), (1, 0))), ((2, 2), (1, 1), ((1, 2), (0, 3))), ((1, 2), (1, 1), ((2, 1), (2, 0))), ((2, 1), (1, 1), ((0, 4), (1, 2))),
        ):  # fmt: skip
            how = {"stride": stride, "dilation": dilation, "padding": padding}
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=ROUNDINGS[case % 2], isa=isa, **how)
            out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
            plan(guarded_array(x, SIDES[case // 2 % 2]), out)
            assert_equal(out, x, weights, bias, q, ROUNDINGS[case % 2], **how)
            if isa == "avx512_vnni" and stride == dilation == (1, 1) and channels > 17:
                assert ("windows of 3x3" if max(kernel) < 4 else "rows in pairs") in plan.explain()


@every_isa
def test_d9_d10_dilated_windows_of_few_columns(isa):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT. They are no windows from a dilation of 5 on (ADR 0004).
    """
    layers = (
        (64, 12, (5, 5)),
        (64, 13, (5, 5)),
        (64, 10, (4, 4)),
        (32, 12, (6, 6)),
        (40, 15, (6, 6)),
        (131, 30, (18, 18)),
        (80, 20, (2, 9)),
        (70, 17, (12, 7)),
    )
    for case, (channels, width, dilation) in enumerate(layers):
        weights, bias, q = layer(channels, 1, (3, 3), case, (1e-3, 0.02, 0.3)[case % 3], ((-128, 5)[case % 2], (-128, 3)[case // 2 % 2]))
        x = integers((2, 23, width, channels), case)
        how = {"dilation": dilation, "padding": tuple((by, by) for by in dilation)}
        plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=ROUNDINGS[case % 2], isa=isa, **how)
        out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
        plan(guarded_array(x, SIDES[case // 2 % 2]), out)
        assert_equal(out, x, weights, bias, q, ROUNDINGS[case % 2], **how)
        if isa == "avx512_vnni":
            few = channels > 32 and dilation[1] > 4 and width <= 2.5 * dilation[1]
            assert ("windows of 3x3" in plan.explain()) == (not few), (channels, width, dilation)


@every_isa
@pytest.mark.parametrize(("kernel", "dilation"), [((9, 9), 4), ((7, 9), 4), ((15, 15), 1), ((4, 12), 3), ((8, 9), 2)])
def test_d9_d10_windows_that_reach_far(isa, kernel, dilation):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT. The columns that an output reaches fill the cells of most others.
    """
    for case, (channels, width) in enumerate(((5, 61), (64, 35), (70, 50), (144, 21))):
        weights, bias, q = layer(channels, 1, kernel, case, (1e-3, 0.02, 0.3)[case % 3])
        x = integers((1, 7, width, channels), case)
        how = {"dilation": (dilation, dilation), "padding": tuple(((extent - 1) * dilation // 2,) * 2 for extent in kernel)}
        plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=ROUNDINGS[case % 2], isa=isa, **how)
        out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
        plan(guarded_array(x, SIDES[case // 2]), out)
        assert_equal(out, x, weights, bias, q, ROUNDINGS[case % 2], **how)


@every_isa
@every_rounding
@pytest.mark.parametrize(
    ("size", "kernel", "steps", "padding"),
    [
        ((7, 9), (13, 13), {}, ((6, 6), (6, 6))),
        ((5, 14), (27, 27), {}, ((13, 13), (13, 13))),
        # Windows that reach beyond all cells of a strip; outputs without any input, above and below, on the left and on the right.
        ((6, 40), (31, 31), {}, ((15, 15), (15, 15))),
        ((3, 2), (5, 7), {}, ((9, 8), (11, 12))),
        ((2, 3), (12, 11), {"stride": (2, 3)}, ((14, 17), (13, 15))),
        ((9, 8), (7, 9), {"dilation": (3, 2)}, ((19, 20), (9, 17))),
        ((3, 17), (33, 5), {}, ((40, 40), (7, 5))),
        ((8, 30), (1, 25), {}, ((1, 2), (12, 12))),
    ],
)
def test_d9_d10_windows_that_lie_mostly_outside(isa, rounding, size, kernel, steps, padding):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT.
    """
    how = {"padding": padding, **steps}
    for case, channels in enumerate((5, 17, 24, 64, 100, 144)):
        # Taps outside add nothing with one of two zero points, by the way that bytes are multiplied; of large weights no float32 holds the sums.
        weights, bias, q = layer(channels, 1, kernel, case, 1e-3, ((-128, 0, 3)[case % 3], 7))
        weights = weights if case % 2 else weights // 16
        x = integers((1, *size, channels), case)
        plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, isa=isa, **how)
        out = guarded_array(np.zeros(plan(x).shape, np.int8), SIDES[case % 2])
        plan(guarded_array(x, SIDES[case // 3]), out)
        assert_equal(out, x, weights, bias, q, rounding, **how)
        assert_equal(plan(on(plan.input_descriptor(x.shape), x, q.input[1])), x, weights, bias, q, rounding, **how)


@every_isa
@pytest.mark.parametrize("channels", [3, 5, 6, 7, 9, 11, 24])
def test_d9_d10_rows_that_are_short_for_their_vectors(isa, channels):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter.

    D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT. Vectors that begin with a pixel overlap, and the last one ends with the row.
    """
    for case, width in enumerate((2, 7, 11, 21, 22, 43, 64, 85, 112, 200)):
        multiplier, kernel, stride = ((1, (3, 3), 1), (1, (5, 5), 1), (2, (3, 3), 1), (1, (3, 3), 2))[case % 4]
        weights, bias, q = layer(channels, multiplier, kernel, case, (1e-3, 0.02, 0.3)[case % 3])
        x = integers((1, 3, width, channels), case)
        rounding, side = ROUNDINGS[case % 2], SIDES[case // 2 % 2]
        plan = nd.DepthwiseConv2d(weights, bias, stride=stride, padding=1, quantization=q, rounding=rounding, isa=isa)
        out = guarded_array(np.zeros(plan(x).shape, np.int8), side)
        plan(guarded_array(x, side), out)
        assert_equal(out, x, weights, bias, q, rounding, stride=(stride, stride), padding=((1, 1), (1, 1)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input": (0.0, 0)}, "finite and positive as float32: 0.0"),
        ({"input": (-0.5, 0)}, "-0.5"),
        ({"output": (math.nan, 0)}, "nan"),
        ({"output": (math.inf, 0)}, "inf"),
        ({"input": (1e-50, 0)}, "1e-50"),
        ({"input": (1e39, 0)}, "1e+39"),
        ({"weights": [0.5, 0.0]}, "0.0 at index 1"),
        ({"weights": [0.5, -1.0]}, "-1.0 at index 1"),
        ({"weights": math.nan}, "nan"),
        ({"weights": []}, "one number or one for each"),
        ({"weights": [[0.5]]}, "one number or one for each"),
        ({"weights": [0.5, [0.5]]}, "numbers"),
        ({"weights": "0.5"}, "numbers"),
        ({"weights": True}, "numbers"),
        ({"weights": None}, "numbers"),
        ({"input": ([0.5], 0)}, "one number"),
        ({"input": 0.5}, "pair"),
        ({"input": (0.5, 0, 0)}, "pair"),
        ({"input": (0.5, 1.5)}, "integer: 1.5"),
        ({"output": (0.5, True)}, "integer: True"),
        ({"output": (0.5, "3")}, "integer: '3'"),
        ({"output": (0.5, 2**31)}, "int32"),
        ({"input": (0.5, -(2**31) - 1)}, "int32"),
        ({"input": (0.5, np.array([1, 2]))}, "integer: array"),
        ({"output": "int8"}, "None for accumulators"),
        ({"output": np.int8}, "None for accumulators"),
        ({"weights": 2.0**30}, "below 2**30"),
        ({"weights": [0.5, 2.0**30]}, "below 2**30"),
        ({"weights": math.nextafter(2.0**30, 0)}, "below 2**30"),
        ({"input": (3e38, 0), "weights": 3e38, "output": (3e38, 0)}, "below 2**30"),
        ({"input": (3e30, 0), "weights": 3e30, "output": (3e38, 0)}, "below 2**30"),
        ({"input": (1e20, 0), "weights": 1e20, "output": (3e38, 0)}, "representable as a float32"),
        ({"input": (1e-23, 0), "weights": 1e-23, "output": (1e-44, 0)}, "must be a normal float32, 1.1754944e-38 or more, unless"),
        ({"input": (1e-20, 0), "weights": [1e-15, 1e-20], "output": (1e-37, 0)}, "must be a normal float32"),
        ({"input": (1e-23, 0), "weights": 1e-23, "output": "float32"}, "must be a normal float32"),
        ({"input": (2.0**-63, 0), "weights": [1, 2.0**-64], "output": "float32"}, "must be a normal float32"),
        ({"weights": [True, 0.5]}, "no truth values and none masked: [True, 0.5]"),
        ({"weights": (0.5, np.bool_(True))}, "no truth values"),
        ({"weights": np.ma.array([0.5, 0.25], mask=[False, True])}, "none masked"),
        ({"weights": [0.5, np.ma.masked]}, "none masked"),
        ({"input": (np.ma.array(0.5), 0)}, "none masked"),
    ],
)
def test_d11_bad_scales_and_zero_points(change, words):
    """D11: Refused: scales that are not finite and positive as float32, effective multipliers that are not below 2**30."""
    with pytest.raises(nd.LayoutError) as caught:
        nd.Quantization(**{"input": (0.5, 0), "weights": 0.5, "output": (0.5, 0), **change})
    assert words in str(caught.value)


def test_d11_products_that_nothing_shows():
    """D11: Refused: products `input * weights` that float32 does not hold where a result shows them: accumulators do not, nor multipliers below 2**-32."""
    assert nd.Quantization((1e-23, 0), 1e-23, None).output is None
    for output in ("float32", (2.0**-94, 0)):  # the least product, and the least multiplier
        assert nd.Quantization((2.0**-63, 0), 2.0**-63, output).float_scales() > 0
    q = nd.Quantization((2.0**-63, 0), [2.0**-63, 2.0**-64], (1.0, 5))
    sums = np.array([[2**31 - 1] * 2, [-(2**31)] * 2])
    for dtype, rounding in (("int8", "tflite"), ("int8", "xnnpack"), ("uint8", "tflite"), ("uint8", "xnnpack")):
        assert (q.requantize(sums, dtype=dtype, rounding=rounding) == 5).all()


def test_d11_scales_that_numpy_cannot_read():
    """D11: Refused: scales that are not finite and positive as float32: nor those that are none to NumPy, such as torch's bfloat16."""

    class Tensor:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Got unsupported ScalarType BFloat16")

    with pytest.raises(nd.LayoutError, match=r"weight scales must be numbers that NumPy reads: .*Tensor.*BFloat16"):
        nd.Quantization((0.5, 0), Tensor(), (0.5, 0))


def test_d11_the_edges_of_what_is_taken():
    """D11: Refused: zero points of more than 32 bits, and scales of which nothing is left as float32, whatever NumPy is told to do about it."""
    assert nd.Quantization((0.5, -(2**31)), 0.5, (0.5, 2**31 - 1)).input == (0.5, -(2**31))
    with np.errstate(all="raise"), pytest.raises(nd.LayoutError, match="finite and positive as float32: 1e-50"):
        nd.Quantization((1e-50, 0), 0.5, (0.5, 0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        nd.Quantization((0.5, 0), 0.5, (0.5, 0)).input = (1.0, 0)


@pytest.mark.parametrize("zero_points", [(128, 0), (-129, 0), (0, 128), (0, -129)])
def test_d11_zero_points_that_int8_cannot_hold(zero_points):
    """D11: zero points that the element type cannot hold."""
    q = nd.Quantization((0.5, zero_points[0]), 0.5, (0.5, zero_points[1]))
    with pytest.raises(nd.LayoutError, match="must be an int8, -128 to 127"):
        nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=q)


@pytest.mark.parametrize("channels", [0, -1, 1.5, True, "a", np.float32(2)])
def test_d11_numbers_of_channels(channels):
    """D11: Refused: numbers of channels that are no integer of 1 or more."""
    q = nd.Quantization((0.5, 0), 0.5, (0.5, 0))
    for call in (q.float_scales, q.multipliers_and_shifts, lambda count: q.check("int8", count)):
        with pytest.raises(nd.LayoutError, match="channels must be "):
            call(channels)
    assert q.float_scales(np.int64(2)).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", ["float32", "int32", "zzz", ">i2", None, "bfloat16"])
def test_d11_other_element_types(dtype):
    """D11: Refused: element types other than int8, uint8 and int16 (`DTypeError`)."""
    q = nd.Quantization((0.5, 0), 0.5, (0.5, 0))
    with pytest.raises(nd.DTypeError):
        q.check(dtype, 1)
    with pytest.raises(nd.DTypeError):
        q.multipliers_and_shifts(2, dtype)


def test_d11_numbers_of_scales():
    """D11: numbers of scales other than 1 and the number of output channels."""
    weights = np.ones((3, 3, 4, 2), np.int8)
    for count in (2, 3, 4, 7, 9):
        with pytest.raises(nd.LayoutError, match=f"{count} scales for 8 channels"):
            nd.DepthwiseConv2d(weights, quantization=nd.Quantization((0.5, 0), [0.5] * count, (0.5, 0)))
    for count in (1, 8):
        nd.DepthwiseConv2d(weights, quantization=nd.Quantization((0.5, 0), [0.5] * count, (0.5, 0)))

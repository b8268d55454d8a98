"""ADR 0006: uint8, int16, sums and float32 as results; every element type against the real interpreters; footprint."""

import os
import re
import subprocess
import sys
import sysconfig
from shutil import which

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nd4jlike as nd
from guards import SIDES, guarded, guarded_array
from layouts import arrangements, on
from nd4jlike.kernels import dispatch
from nd4jlike.quantization import ACTIVATIONS, quantize_multiplier, quantized_activation_range
from reference import depthwise_quantized, same_padding

ISAS = dispatch.available()
every_isa = pytest.mark.parametrize("isa", ISAS)
KINDS = ("int8", "uint8", "int16")
every_kind = pytest.mark.parametrize("kind", KINDS)
OUTPUTS = ("quantized", None, "float32")
CHANNELS = (1, 3, 7, 8, 15, 16, 17, 31, 33, 47, 64, 67, 130)


def numbers(kind, shape, rng):
    """Draw from all values of an element type."""
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max + 1, shape).astype(kind)


def layer(kind, channels, multiplier=1, kernel=(3, 3), seed=0, output="quantized", spread=1.0, wide=True):
    """Weights, bias and a quantization whose results use the whole range; `wide` uint8 weights are beyond int8 without their zero point."""
    rng = np.random.default_rng(seed)
    if kind == "uint8":
        weights_zero_point = int(rng.integers(0, 256)) if wide else 128
        weights = numbers("uint8", (*kernel, channels, multiplier), rng)
        zero_points = tuple(int(v) for v in rng.integers(0, 256, 2))
    else:
        weights, weights_zero_point = numbers("int8", (*kernel, channels, multiplier), rng), 0
        zero_points = (0, 0) if kind == "int16" else tuple(int(v) for v in rng.integers(-128, 128, 2))
    count = channels * multiplier
    reach = (2.0**15 if kind == "int16" else 2.0**7) * 70 * np.sqrt(kernel[0] * kernel[1])
    bias = rng.integers(-reach / 4, reach / 4, count).astype("int64" if kind == "int16" else "int32")
    scales = rng.uniform(0.02, 0.1, 1 if kind == "uint8" else count).astype(np.float32)
    largest = reach * 0.1 * float(scales.max()) / (2.0**15 if kind == "int16" else 2.0**7) / spread
    q = nd.Quantization((0.1, zero_points[0]), scales, (largest, zero_points[1]) if output == "quantized" else output, weights_zero_point)
    return weights, bias, q


def bounds(q, kind, rounding, activation=None):
    """Give what a result is clamped to."""
    if q.output == "float32":
        return ACTIVATIONS[activation]
    return quantized_activation_range(activation, q.output, kind, rounding) if q.output else None


def assert_equal(got, x, weights, bias, q, rounding="tflite", activation=None, **geometry):
    """Compare every element, bit by bit, with the oracle."""
    want = depthwise_quantized(x, weights, bias, q, rounding, bounds(q, x.dtype, rounding, activation), **geometry)
    got = np.asarray(got)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    wrong = np.argwhere(got != want)
    assert not wrong.size, f"{len(wrong)} of {want.size}, first at {wrong[0]}: {got[tuple(wrong[0])]} instead of {want[tuple(wrong[0])]}"


def roundings(kind, output="quantized"):
    return ("tflite",) if kind == "int16" or output != "quantized" else ("tflite", "xnnpack")


GEOMETRIES = (
    ((4, 5), (3, 3), (1, 1), (1, 1), 1),
    ((5, 9), (3, 3), (2, 2), (1, 1), 1),
    ((6, 5), (2, 5), (1, 2), (2, 1), 1),
    ((6, 5), (5, 5), (1, 1), (1, 1), 1),
    ((1, 1), (3, 3), (1, 1), (1, 1), 1),
    ((9, 8), (3, 3), (1, 1), (1, 1), 1),
    ((3, 4), (3, 2), (1, 1), (1, 1), 2),
    ((9, 1), (5, 1), (1, 1), (1, 1), 1),
)


def check_geometries(isa, kind, output, channels):
    """Every geometry on dense arrays and on the plan's layouts."""
    for seed, (size, kernel, stride, dilation, multiplier) in enumerate(GEOMETRIES):
        for rounding in roundings(kind, output):
            weights, bias, q = layer(kind, channels, multiplier, kernel, seed, output, wide=seed % 2 == 0)
            x = numbers(kind, (1, *size, channels), np.random.default_rng(seed))
            padding = tuple(same_padding(*figures) for figures in zip(size, kernel, stride, dilation, strict=True))
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, quantization=q, rounding=rounding, isa=isa)
            got = np.asarray(plan(x))
            assert_equal(got, x, weights, bias, q, rounding, stride=stride, dilation=dilation, padding=padding)
            halo = on(plan.input_descriptor(x.shape), x, q.input[1])
            y = nd.NdArray(plan.output_descriptor(halo))
            assert (np.asarray(plan(halo, y)) == got).all()


@every_isa
@pytest.mark.parametrize("channels", CHANNELS)
def test_d13_uint8_of_any_geometry(isa, channels):
    """D13: the accumulator is `bias + sum of (x - input zero point) * (w - weights zero point)`."""
    check_geometries(isa, "uint8", "quantized", channels)


@pytest.mark.parametrize("weights", [(0.25, 100), ([0.25], 100), (np.float32(0.25), np.uint8(100)), (np.array([0.25]), np.int64(100))])
def test_d13_the_spelling_of_a_weights_zero_point(weights):
    """D13: a tuple whose last item is an integer, or as `weights_zero_point`."""
    q = nd.Quantization(input=(0.5, 3), weights=weights, output=(0.5, 4))
    assert q == nd.Quantization(input=(0.5, 3), weights=0.25, output=(0.5, 4), weights_zero_point=100)
    assert q.weights == (0.25,)
    assert q.weights_zero_point == 100
    assert eval(repr(q), {"Quantization": nd.Quantization}) == q
    assert nd.Quantization((0.5, 3), (0.25, 0.5), (0.5, 4)).weights == (0.25, 0.5)
    assert nd.Quantization((0.5, 3), [1, 2], (0.5, 4)).weights == (1.0, 2.0)
    with pytest.raises(nd.LayoutError, match="given once"):
        nd.Quantization((0.5, 3), weights, (0.5, 4), weights_zero_point=1)
    for wrong in (1.5, True, None, "3"):
        with pytest.raises(nd.LayoutError, match="weights zero point must be an integer"):
            nd.Quantization((0.5, 3), 0.25, (0.5, 4), wrong)


@pytest.mark.parametrize(
    ("kind", "zero_points", "words"),
    [
        ("uint8", (-1, 0, 0), "input zero point must be an uint8, 0 to 255: -1"),
        ("uint8", (0, 256, 0), "weights zero point must be an uint8, 0 to 255: 256"),
        ("uint8", (0, 0, 300), "output zero point must be an uint8, 0 to 255: 300"),
        ("int8", (0, 1, 0), "weights zero point must be 0 for int8 inputs: 1"),
        ("int16", (1, 0, 0), "input zero point must be 0 for int16 inputs: 1"),
        ("int16", (0, -1, 0), "weights zero point must be 0 for int16 inputs: -1"),
        ("int16", (0, 0, 5), "output zero point must be 0 for int16 inputs: 5"),
    ],
)
def test_d13_d15_zero_points_that_a_type_has_not(kind, zero_points, words):
    """D13: The zero point of int8 weights is 0."""
    q = nd.Quantization((0.5, zero_points[0]), (0.5, zero_points[1]), (0.5, zero_points[2]))
    weights = np.ones((3, 3, 4, 1), "uint8" if kind == "uint8" else "int8")
    with pytest.raises(nd.LayoutError, match=words):
        nd.DepthwiseConv2d(weights, quantization=q, dtype=kind)
    with pytest.raises(nd.LayoutError, match=words):
        nd.depthwise_conv2d(np.zeros((1, 4, 4, 4), kind), weights, quantization=q, dtype=kind)


def test_d13_int8_weights_beside_uint8_inputs():
    """D13: int8 weights are refused beside them, with the way to say the same: plus 128, with that as their zero point."""
    rng = np.random.default_rng(0)
    x, weights = numbers("uint8", (1, 5, 5, 4), rng), rng.integers(-128, 128, (3, 3, 4, 1)).astype(np.int8)
    way = r"; uint8 inputs take uint8 weights.*these plus 128, with Quantization\(..., weights_zero_point=128\)$"
    q = nd.Quantization((0.5, 3), 0.25, None)
    for ask in (lambda: nd.depthwise_conv2d(x, weights, quantization=q), lambda: nd.DepthwiseConv2d(weights, quantization=q, dtype="uint8")):
        with pytest.raises(nd.DTypeError, match=way):
            ask()
    said = nd.depthwise_conv2d(x, (weights.astype(np.int16) + 128).astype(np.uint8), quantization=nd.Quantization((0.5, 3), 0.25, None, weights_zero_point=128))
    halves = x.astype(np.int16) - 3  # whose zero point is 0, as int16 has it
    assert np.array_equal(said, nd.depthwise_conv2d(halves, weights, quantization=nd.Quantization((0.5, 0), 0.25, None), dtype="int16"))


@every_isa
@pytest.mark.parametrize("channels", [16, 17, 39, 64, 96])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1), (3, 3)])
def test_d13_uint8_of_few_weights_beyond_int8(isa, channels, stride):
    """D13: `bias + sum of (x - input zero point) * (w - weights zero point)`, of which a few weights are beyond int8 without their zero point."""
    for seed, size in enumerate([(5, 8), (4, 9), (3, 33), (7, 34), (9, 3)]):
        rng = np.random.default_rng(seed)
        x, weights = numbers("uint8", (1, *size, channels), rng), rng.integers(40, 161, (3, 3, channels, 1)).astype(np.uint8)
        weights.reshape(-1)[rng.integers(0, weights.size, 1 + 3 * seed)] = rng.choice([229, 255])
        q = nd.Quantization((1.0, seed * 60), (2e-3, 100), (1.0, 256 - (seed + 1) * 50))
        bias = rng.integers(-9999, 9999, channels).astype(np.int32)
        padding = tuple(same_padding(n, 3, step, 1) for n, step in zip(size, stride, strict=True))
        for rounding in ("tflite", "xnnpack"):
            got = nd.depthwise_conv2d(x, weights, bias, stride=stride, quantization=q, rounding=rounding, isa=isa)
            assert_equal(got, x, weights, bias, q, rounding, stride=stride, padding=padding)


@every_isa
@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
def test_d13_uint8_at_its_limits(isa, rounding):
    """D13: `bias + sum of (x - input zero point) * (w - weights zero point)`, an int32 that wraps around."""
    for value in (0, 255):
        for weight in (0, 255):
            for zero_points in ((0, 0), (255, 255), (0, 255), (255, 0), (128, 128)):
                for kernel in ((3, 3), (7, 7), (1, 21)):
                    x, weights = np.full((1, 5, 8, 17), value, np.uint8), np.full((*kernel, 17, 1), weight, np.uint8)
                    q = nd.Quantization((1.0, zero_points[0]), (1e-4, zero_points[1]), (1.0, 100))
                    bias = np.full(17, (2**31 - 1, -(2**31), 0)[value // 255 + weight // 255], np.int32)
                    padding = tuple(same_padding(n, k, 1, 1) for n, k in zip((5, 8), kernel, strict=True))
                    got = nd.depthwise_conv2d(x, weights, bias, quantization=q, rounding=rounding, isa=isa)
                    assert_equal(got, x, weights, bias, q, rounding, padding=padding)


@every_isa
@every_kind
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_d13_d16_activations(isa, kind, activation):
    """D13: uint8 inputs have uint8 weights."""
    weights, bias, q = layer(kind, 35)
    x = numbers(kind, (1, 5, 6, 35), np.random.default_rng(1))
    for rounding in roundings(kind):
        got = nd.depthwise_conv2d(x, weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa)
        assert_equal(got, x, weights, bias, q, rounding, activation, padding=((1, 1), (1, 1)))


def test_d14_the_product_of_scales_is_a_float32_for_uint8():
    """D14: `"tflite"` rounds `input * weights` to float32 before D2 for uint8."""
    q = nd.Quantization((0.1, 0), (0.3, 0), (0.7, 0))
    product = np.float32(0.1) * np.float32(0.3)
    assert [int(c[0]) for c in q.multipliers_and_shifts(dtype="uint8")] == list(quantize_multiplier(float(product) / float(np.float32(0.7))))
    assert q.multipliers_and_shifts(dtype="uint8")[0] != q.multipliers_and_shifts()[0]


def test_d11_a_product_that_only_uint8_rounds_up():
    """D11: Refused: effective multipliers that are not below 2**30 (of uint8, after the rounding of D14)."""
    q = nd.Quantization(((1 + 2**-13) * 2**15, 0), (1 - 2**-13) * 2**15, (1.0, 0))
    assert q.multipliers_and_shifts()[1] == 30
    nd.DepthwiseConv2d(np.ones((1, 1, 1, 1), "int8"), quantization=q)
    with pytest.raises(nd.LayoutError, match=r"below 2\*\*30 for uint8 inputs: .* = 1073741824\.0"):
        nd.DepthwiseConv2d(np.ones((1, 1, 1, 1), "uint8"), quantization=q)


@every_isa
@pytest.mark.parametrize("channels", CHANNELS)
def test_d15_int16_of_any_geometry(isa, channels):
    """D15: int16 inputs have int8 weights, zero points of 0, and accumulators of 64 bits that wrap around."""
    check_geometries(isa, "int16", "quantized", channels)


def test_d15_where_a_plan_takes_int16():
    """D15: A plan takes them where `dtype="int16"`, where the bias is int64, and beside int8 where neither is said and zero points are 0."""
    weights, bias, q = layer("int16", 5)
    x = numbers("int16", (1, 4, 5, 5), np.random.default_rng(1))
    narrow = bias.astype(np.int32)
    want = depthwise_quantized(x, weights, bias, q, "tflite", padding=((1, 1), (1, 1)))
    for plan in (
        nd.DepthwiseConv2d(weights, bias, quantization=q),
        nd.DepthwiseConv2d(weights, bias, quantization=q, dtype="int16"),
        nd.DepthwiseConv2d(weights, narrow, quantization=q, dtype=np.int16),
    ):
        assert plan.dtype == plan.output_dtype == np.int16
        assert (np.asarray(plan(x)) == want).all()
        with pytest.raises(nd.DTypeError, match="input of int8, weights of int8, which take int16 inputs"):
            plan(x.astype(np.int8))
    plan = nd.DepthwiseConv2d(weights, narrow, quantization=q)
    assert plan.dtype == np.int8
    assert (np.asarray(plan(x)) == want).all()
    out = np.empty_like(want)
    assert plan(x, out) is out
    assert (out == want).all()
    assert "depthwise int16" in plan.explain()
    assert plan.output_descriptor(x).dtype == np.int16
    assert np.asarray(plan(x.astype(np.int8))).dtype == np.int8
    assert "depthwise int16" in plan.explain(x)
    with pytest.raises(nd.LayoutError, match="input zero point must be 0 for int16 inputs: 3"):
        nd.DepthwiseConv2d(weights, quantization=nd.Quantization((0.1, 3), 0.1, (1.0, 0)))(x)
    for dtype in ("uint8", "float32", "int32"):
        with pytest.raises(nd.DTypeError, match="or int16 for int8 weights"):
            nd.DepthwiseConv2d(weights, quantization=q, dtype=dtype)
    with pytest.raises(nd.DTypeError, match="bias must be int32 or int64"):
        nd.DepthwiseConv2d(weights, bias.astype(np.float32), quantization=q, dtype="int16")
    with pytest.raises(nd.DTypeError, match="bias must be int32"):
        nd.DepthwiseConv2d(weights, bias, quantization=q, dtype="int8")


def test_d15_an_int64_bias_beside_int8():
    """D15: A plan takes int16 where the bias is int64: who meant int8 is told so."""
    quantization = nd.Quantization(input=(0.5, 0), weights=0.5, output=(0.5, 0))
    with pytest.raises(nd.DTypeError, match="which take int16 inputs beside an int64 bias, int8 inputs have a bias of int32"):
        nd.depthwise_conv2d(np.zeros((1, 3, 3, 2), np.int8), np.ones((3, 3, 2, 1), np.int8), np.array([1, 2], np.int64), quantization=quantization)


@every_isa
@pytest.mark.parametrize("value", [-32768, 32767])
def test_d15_int16_at_its_limits(isa, value):
    """D15: accumulators of 64 bits that wrap around."""
    for weight in (-128, 127):
        # The last one has more products than 32 bits can hold.
        for kernel in ((3, 3), (7, 7), (1, 21), (25, 25), (1, 600)):
            x = np.full((1, 25 if kernel[0] == 25 else 3, 601 if kernel[1] == 600 else 27, 3), value, np.int16)
            weights = np.full((*kernel, 3, 1), weight, np.int8)
            for bias in (None, np.array([2**31 - 1, -(2**31), 2**46]), np.array([2**63 - 1, -(2**63), -(2**40)])):
                q = nd.Quantization((1.0, 0), 2.0 ** (-9 if bias is None else -30), (1.0, 0))
                padding = ((0, 0), (0, 0)) if kernel[0] in (1, 25) else ((kernel[0] // 2,) * 2, (kernel[1] // 2,) * 2)
                for wanted in (q, nd.Quantization((1.0, 0), 2.0**-30, None)):
                    got = nd.depthwise_conv2d(x, weights, bias, padding=padding, quantization=wanted, isa=isa)
                    assert_equal(got, x, weights, bias, wanted, padding=padding)


def through_one_by_one(sums, q, isa, kind):
    """Rescale chosen accumulators: a 1x1 kernel of zeros, and the accumulators as bias."""
    x, weights = np.zeros((1, 2, 4, len(sums)), kind), np.zeros((1, 1, len(sums), 1), "uint8" if kind == "uint8" else "int8")
    y = np.asarray(nd.depthwise_conv2d(x, weights, sums, quantization=q, isa=isa))
    assert (y == y[0, 0, 0]).all()
    return y


@every_isa
def test_d16_every_accumulator_around_ties(isa):
    """D16: one rounding: the multiplier of D2 in 15 bits, one half going up, 32 bits kept, clamped."""
    rng = np.random.default_rng(4)
    edges = (1.0, 0.5, 0.49, 0.1, 1 / 3, 3.0, 2.0**-9, 2.0**-16, 1.9e-5, 7.3e-7, 2.0**-31, 100.0, 2.0**13.9, 0.9999999 * 2.0**-4)
    for effective in (*edges, *rng.uniform(1e-4, 0.4, 4)):
        q = nd.Quantization((effective, 0), 1.0, (1.0, 0))
        ties = [int((k + 0.5) / effective) for k in rng.integers(-33000, 33000, 60)]
        small = [tie + near for tie in ties for near in (-1, 0, 1) if abs(tie) < 2**31 - 2]
        for sums in (small, [*ties, 2**47 - 1, -(2**47), 2**63 - 1, -(2**63), 2**31, -(2**31), 0]):
            sums = np.array(sums or [0], np.int64)
            got = through_one_by_one(sums, q, isa, "int16")
            want = depthwise_quantized(np.zeros((1, 2, 4, len(sums)), np.int16), np.zeros((1, 1, len(sums), 1), np.int8), sums, q, "tflite")
            wrong = np.argwhere(got != want)
            assert not wrong.size, (effective, sums[wrong[0][3]], got[tuple(wrong[0])], want[tuple(wrong[0])])


def test_d16_what_int16_has_not():
    """D16: Effective multipliers of int16 are below 2**14, and `rounding="xnnpack"` is refused."""
    weights = np.ones((3, 3, 4, 1), np.int8)
    for scale in (2.0**14, 2.0**20):
        with pytest.raises(nd.LayoutError, match=re.escape("below 2**14 for int16 inputs")):
            nd.DepthwiseConv2d(weights, quantization=nd.Quantization((scale, 0), 1.0, (1.0, 0)), dtype="int16")
    nd.DepthwiseConv2d(weights, quantization=nd.Quantization((2.0**14, 0), 1.0, None), dtype="int16")
    largest = float(np.nextafter(np.float32(2**14), np.float32(0)))
    nd.DepthwiseConv2d(weights, quantization=nd.Quantization((largest, 0), 1.0, (1.0, 0)), dtype="int16")
    nd.Quantization((float(np.nextafter(np.float32(2**30), np.float32(0))), 0), 1.0, (1.0, 0))
    for output in ((1.0, 0), None, "float32"):
        with pytest.raises(nd.LayoutError, match="XNNPACK has none"):
            nd.DepthwiseConv2d(weights, quantization=nd.Quantization((1.0, 0), 1.0, output), dtype="int16", rounding="xnnpack")


@every_isa
@every_kind
@pytest.mark.parametrize("output", [None, "float32"])
def test_d17_d18_sums_and_reals_of_any_geometry(isa, kind, output):
    """D17: `output=None` gives the accumulators, int32, or int64 of int16 inputs."""
    for channels in (1, 3, 8, 17, 64, 67):
        check_geometries(isa, kind, output, channels)


@every_kind
def test_d17_accumulators(kind):
    """D17: `output=None` gives the accumulators, int32, or int64 of int16 inputs; an activation is refused."""
    weights, bias, q = layer(kind, 5, output=None)
    plan = nd.DepthwiseConv2d(weights, bias, quantization=q)
    assert plan.output_dtype == (np.int64 if kind == "int16" else np.int32)
    assert plan.dtype == np.dtype(kind)
    x = np.full((1, 3, 3, 5), q.input[1], kind)
    assert (np.asarray(plan(x)) == bias).all()
    with pytest.raises(nd.LayoutError, match="which accumulators have not: activation='relu'"):
        nd.DepthwiseConv2d(weights, bias, quantization=q, activation="relu")
    with pytest.raises(nd.DTypeError, match=f"out must have the element type of the plan's out, {plan.output_dtype}: {kind}"):
        plan(x, np.zeros((1, 3, 3, 5), kind))


@every_isa
@every_kind
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_d18_float32_results(isa, kind, activation):
    """D18: `output="float32"` gives `float32(accumulator) * float32(input * weights)`, clamped at the activation's bounds."""
    weights, bias, q = layer(kind, 19, output=float)
    assert q.output == "float32"
    x = numbers(kind, (1, 4, 5, 19), np.random.default_rng(1))
    got = nd.depthwise_conv2d(x, weights, bias, quantization=q, activation=activation, isa=isa)
    assert_equal(got, x, weights, bias, q, "tflite", activation, padding=((1, 1), (1, 1)))
    sums = np.asarray(nd.depthwise_conv2d(x, weights, bias, quantization=nd.Quantization(q.input, q.weights, None, q.weights_zero_point), isa=isa))
    scales = np.float32(q.input[0]) * np.array(q.weights, np.float32)
    assert (np.asarray(got) == np.clip(sums.astype(np.float32) * scales, *np.float32(ACTIVATIONS[activation]))).all()


@pytest.mark.parametrize("output", ["float32", float, np.float32, np.dtype("float32")])
def test_d18_spellings(output):
    """D18: `output="float32"`, also said `float`."""
    assert nd.Quantization((0.5, 0), 0.5, output).output == "float32"
    for wrong in ("float64", "int8", np.float64, int, np.dtype("int32"), 0.5):
        with pytest.raises(nd.LayoutError, match="output must be a pair"):
            nd.Quantization((0.5, 0), 0.5, wrong)


def test_d19_no_third_rounding():
    """D19: There is no name for TensorFlow Lite built with a single rounding: no interpreter that can be installed shows it."""
    q = nd.Quantization((0.5, 0), 0.5, (0.5, 0))
    for name in ("single", "tflite-single", "tflite_single"):
        with pytest.raises(nd.LayoutError, match="rounding must be one of"):
            nd.DepthwiseConv2d(np.ones((3, 3, 4, 1), np.int8), quantization=q, rounding=name)


@every_isa
@every_kind
@pytest.mark.parametrize("output", OUTPUTS)
def test_d13_d18_elements_may_lie_anywhere(isa, kind, output):
    """D13: uint8 inputs have uint8 weights."""
    for channels in (3, 17):
        weights, bias, q = layer(kind, channels, output=output)
        values = numbers(kind, (2, 4, 5, channels), np.random.default_rng(1))
        for rounding in roundings(kind, output):
            plan = nd.DepthwiseConv2d(weights, bias, padding=1, quantization=q, rounding=rounding, isa=isa)
            want = np.asarray(plan(values)).copy()
            for name, x in arrangements(values, 99):
                assert (np.asarray(plan(x)) == want).all(), name
            for name, out in arrangements(np.zeros_like(want), 99):
                if name != "read-only":
                    assert (np.asarray(plan(values, out)) == want).all(), name


@every_isa
@every_kind
@pytest.mark.parametrize("side", SIDES)
def test_d15_nothing_beyond_the_buffers_is_touched(isa, kind, side):
    """D15: int16 inputs have int8 weights, zero points of 0, and accumulators of 64 bits that wrap around."""
    for channels in (1, 3, 8, 15, 17, 33, 47, 64, 67):
        for output in OUTPUTS:
            for multiplier, size, stride in ((1, (4, 5), 1), (2, (5, 4), 2)):
                weights, bias, q = layer(kind, channels, multiplier, output=output)
                values = numbers(kind, (1, *size, channels), np.random.default_rng(1))
                plan = nd.DepthwiseConv2d(guarded_array(weights, side), guarded_array(bias, side), stride=stride, quantization=q, isa=isa)
                want = np.asarray(plan(values))
                out = guarded_array(np.zeros_like(want), side)
                plan(guarded_array(values, side), out)
                assert (out == want).all()
                layout = plan.input_descriptor(values.shape)
                x = nd.NdArray(layout, guarded(layout.allocLength() * layout.itemsize, side))
                x.fill_padding(q.input[1])
                x[...] = values
                out[...] = 0
                plan(x, out)
                assert (out == want).all()


@every_isa
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_d13_several_filters_for_many_channels(isa, kind):
    """D13: uint8 inputs have uint8 weights: channels are repeated for their filters where no kernel takes several."""
    for seed, (size, channels, multiplier, kernel, stride) in enumerate((
        ((50, 40), 40, 8, (3, 3), (1, 1)), ((9, 7), 70, 3, (5, 5), (2, 2)), ((41, 5), 65, 16, (7, 3), (2, 1)), ((3, 30), 100, 17, (3, 3), (1, 2)),
        ((1, 9), 130, 2, (1, 3), (1, 1)),
    )):  # fmt: skip
        weights, bias, q = layer(kind, channels, multiplier, kernel, seed)
        values = numbers(kind, (2, *size, channels), np.random.default_rng(seed))
        padding = tuple(same_padding(*axis, 1) for axis in zip(size, kernel, stride, strict=True))
        wanted = depthwise_quantized(values, weights, bias, q, "tflite", bounds(q, kind, "tflite"), stride=stride, padding=padding)
        for threads, side in ((1, SIDES[0]), (2, SIDES[1]), (3, SIDES[0])):
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, quantization=q, isa=isa, threads=threads)
            out = guarded_array(np.zeros_like(wanted), side)
            plan(guarded_array(values, side), out)
            assert (out == wanted).all()
        assert ("channels repeated for their filters" in plan.explain()) == (isa in ("avx2", "avx512_vnni"))
        # With a gap between pixels, in planes, and on the layouts of the plan.
        apart = np.zeros((*values.shape[:3], channels + 9), kind)
        apart[..., 4:-5] = values
        assert (plan(apart[..., 4:-5]).to_numpy() == wanted).all()
        planes = nd.DepthwiseConv2d(weights, bias, stride=stride, quantization=q, isa=isa, data_format="NCHW", threads=2)(values.transpose(0, 3, 1, 2).copy())
        assert (planes.to_numpy().transpose(0, 2, 3, 1) == wanted).all()
        x = nd.NdArray(plan.input_descriptor(values.shape))
        x.fill_padding(q.input[1])
        x[...] = values
        assert (plan(x, nd.NdArray(plan.output_descriptor(x))).to_numpy() == wanted).all()


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_d13_d18_any_geometry(data):
    """D13: the accumulator is `bias + sum of (x - input zero point) * (w - weights zero point)`."""
    kind, output = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(OUTPUTS))
    small = st.integers(1, 3)
    kernel, stride, dilation = (data.draw(st.tuples(up_to, up_to)) for up_to in (st.integers(1, 5), small, small))
    sides = data.draw(st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 2))
    size = tuple(data.draw(st.integers(max(1, (k - 1) * d + 1 - sum(p)), (k - 1) * d + 5)) for k, d, p in zip(kernel, dilation, sides, strict=True))
    channels, multiplier = data.draw(st.integers(1, 70)), data.draw(st.sampled_from([1, 1, 1, 2, 3]))
    seed, spread, wide = data.draw(st.integers(0, 99)), data.draw(st.sampled_from([1e-4, 1.0, 30.0])), data.draw(st.booleans())
    weights, bias, q = layer(kind, channels, multiplier, kernel, seed, output, spread, wide)
    activation = None if output is None else data.draw(st.sampled_from(list(ACTIVATIONS)))
    rounding = data.draw(st.sampled_from(roundings(kind, output)))
    x = numbers(kind, (2, *size, channels), np.random.default_rng(seed))
    how = {"stride": stride, "dilation": dilation, "padding": sides}
    isa, bias = data.draw(st.sampled_from(ISAS)), data.draw(st.sampled_from([bias, None]))
    plan = nd.DepthwiseConv2d(weights, bias, quantization=q, rounding=rounding, activation=activation, isa=isa, dtype=kind, **how)
    given_x = on(plan.input_descriptor(x.shape), x, data.draw(st.sampled_from([q.input[1], 1]))) if data.draw(st.booleans()) else x
    assert_equal(plan(given_x), x, weights, bias, q, rounding, activation, **how)


HOOKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

static long count;
long allocations(void) { return count; }
#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
void *malloc(size_t size) { REAL(void *, "malloc", size_t); count++; return real(size); }
void *realloc(void *old, size_t size) { REAL(void *, "realloc", void *, size_t); count++; return real(old, size); }
void *memalign(size_t to, size_t size) { REAL(void *, "memalign", size_t, size_t); count++; return real(to, size); }
void *aligned_alloc(size_t to, size_t size) { return memalign(to, size); }
int posix_memalign(void **memory, size_t to, size_t size) { return (*memory = memalign(to, size)) ? 0 : ENOMEM; }
extern void *__libc_calloc(size_t, size_t);
void *calloc(size_t number, size_t size) { count++; return __libc_calloc(number, size); }
"""

COUNTED = """
import ctypes, itertools
import numpy as np
import nd4jlike as nd
allocations = ctypes.PyDLL(None).allocations
allocations.restype = ctypes.c_long

def counted(call, *arguments, times=50):
    rounds = list(range(times))
    before = allocations()
    for _ in rounds:
        call(*arguments)
    return allocations() - before

def nothing(*arguments):
    pass

def layers():
    rng = np.random.default_rng(0)
    for channels in (3, 64, 1000):
        for dtype in ("float32", "int8", "uint8", "int16"):
            weights = np.ones((3, 3, channels, 1), "int8" if dtype == "int16" else dtype)
            q = None if dtype == "float32" else nd.Quantization((1.0, 0), 0.01, (1.0, 0))
            yield dtype, channels, nd.DepthwiseConv2d(weights, quantization=q, dtype=dtype), nd.zeros((1, 9, 10, channels), dtype=dtype)

idle = counted(nothing, None, None)
for dtype, channels, plan, dense in layers():
    x = nd.NdArray(plan.input_descriptor(dense.shape))
    planar = nd.zeros((1, channels, 9, 10), dtype=dtype).transpose((0, 2, 3, 1))
    for name, given in (("plan", x), ("dense", dense), ("planar", planar)):
        y = plan(given)
        print(dtype, channels, name, counted(plan, given, y) - idle)
# The hooks see what a call without an output makes, and scratch where a layout is new.
print("new", counted(plan, x) - idle)
fresh = nd.DepthwiseConv2d(np.ones((3, 3, 8, 1), "int8"), quantization=nd.Quantization((1.0, 0), 0.01, (1.0, 0)))
planar, y = nd.zeros((1, 8, 9, 10), dtype="int8").transpose((0, 2, 3, 1)), nd.zeros((1, 9, 10, 8), dtype="int8")
print("first", counted(fresh, planar, y, times=1) - idle)
print("scratch", int("0 bytes of scratch" not in fresh.explain()))
"""


def test_d20_a_call_with_out_allocates_nothing(tmp_path):
    """D20: A call with `out` allocates no memory once its layouts were seen."""
    if os.environ.get("ND4JLIKE_SANITIZED"):
        pytest.skip("the sanitizer has hooks of its own")
    compiler = which(sysconfig.get_config_var("CC").split()[0]) or which("cc")
    if not compiler or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded builds have an allocator of their own, which nothing replaces")
    (tmp_path / "hooks.c").write_text(HOOKS)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", tmp_path / "hooks.so", tmp_path / "hooks.c", "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "hooks.so"), "PYTHONMALLOC": "malloc"}
    lines = subprocess.run([sys.executable, "-c", COUNTED], env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    counts = dict(line.rsplit(" ", 1) for line in lines)
    assert len(counts) == 3 * 4 * 3 + 3
    assert int(counts.pop("new")) >= 50
    assert int(counts.pop("first")) > 0
    assert counts.pop("scratch") == "1"
    assert set(counts.values()) == {"0"}, counts


def scratch_of(plan, x):
    return int(re.search(r"(\d+) bytes of scratch a thread", plan.explain(x)).group(1))


@every_isa
@every_kind
def test_d20_memory_does_not_grow_with_the_channels(isa, kind):
    """D20: `explain()` states the scratch that a layout needs, which, like the stack, does not grow with the number of channels."""
    seen = {}
    for layout in ("plan", "planar"):
        for channels in (128, 256, 4096):
            weights, bias, q = layer(kind, channels, kernel=(3, 3))
            plan = nd.DepthwiseConv2d(weights, bias, quantization=q, isa=isa)
            x = nd.ShapeDescriptor.from_tag((1, 20, 24, channels), "adbc", kind) if layout == "planar" else plan.input_descriptor((1, 20, 24, channels))
            seen.setdefault(layout, set()).add(scratch_of(plan, x))
    assert all(len(found) == 1 for found in seen.values()), seen
    assert 0 < max(seen["planar"]) <= 250_000

"""ADR 0006: the rules of requantization by themselves, on sums that anybody made."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nd4jlike as nd
from nd4jlike.quantization import ACTIVATIONS, ROUNDINGS, quantized_activation_range
from reference import depthwise_quantized

KINDS = ("int8", "uint8", "int16")


def oracle(sums, q, kind, rounding, activation=None):
    """Requantize sums (.., channels) as the biases of a layer whose products are all 0."""
    pixels = np.full((1, 1, math.prod(sums.shape[:-1]), sums.shape[-1]), q.input[1], kind)
    weights = np.full((1, 1, sums.shape[-1], 1), q.weights_zero_point)
    clamp = ACTIVATIONS[activation] if q.output == "float32" else quantized_activation_range(activation, q.output, kind, rounding)
    return depthwise_quantized(pixels, weights, sums.reshape(pixels.shape), q, rounding, clamp).reshape(sums.shape)


@st.composite
def quantizations(draw, kind, channels):
    """Draw multipliers over all of their range."""
    exponent = st.floats(-33, 13.9 if kind == "int16" else 29.9)
    scales = [2.0 ** draw(exponent) for _ in range(draw(st.sampled_from([1, channels])))]
    limits = np.iinfo(kind)
    zero_points = [0] * 3 if kind == "int16" else [draw(st.integers(int(limits.min), int(limits.max))) for _ in range(3)]
    output = draw(st.sampled_from([(1.0, zero_points[1]), (0.0625, zero_points[1]), "float32"]))
    scales = [scale * 0.0625 for scale in scales] if output != "float32" else scales
    return nd.Quantization((1.0, zero_points[0]), scales, output, zero_points[2] if kind == "uint8" else 0)


@given(st.data())
def test_d21_any_sums(data):
    """D21: `Quantization.requantize(sums)` is D5, D6, D16 or D18 on sums that anybody made, with the scale of their channel."""
    kind = data.draw(st.sampled_from(KINDS))
    rounding = "tflite" if kind == "int16" else data.draw(st.sampled_from(ROUNDINGS))
    shape = (data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5)))
    bits = data.draw(st.sampled_from([8, 16, 24, 31, 31, 63]))
    few = st.integers(-(2**bits), 2**bits - 1) | st.sampled_from([0, -(2**bits), 2**bits - 1])
    sums = np.array(
        [[data.draw(few) for _ in range(shape[1])] for _ in range(shape[0])], data.draw(st.sampled_from(["int64", "int32"])) if bits < 32 else "int64"
    )
    q, activation = data.draw(quantizations(kind, shape[1])), data.draw(st.sampled_from(list(ACTIVATIONS)))
    got = q.requantize(sums, dtype=kind, rounding=rounding, activation=activation)
    want = oracle(sums, q, kind, rounding, activation)
    assert (got.shape, got.dtype) == (shape, np.dtype("float32" if q.output == "float32" else kind))
    assert np.array_equal(got, want), (sums[got != want][0], got[got != want][0], want[got != want][0])
    sideways = q.requantize(np.moveaxis(sums, -1, 0), dtype=kind, rounding=rounding, activation=activation, axis=0)
    assert np.array_equal(sideways, got.T)


@pytest.mark.parametrize(("kind", "rounding"), [("int8", "tflite"), ("int8", "xnnpack"), ("uint8", "tflite"), ("uint8", "xnnpack"), ("int16", "tflite")])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_d21_sums_of_the_kernels(kind, rounding, activation):
    """D21: on sums that anybody made: those of a plan, beside the results of a plan."""
    rng = np.random.default_rng(1)
    zero_points = {"int8": (-5, 0, 7), "uint8": (120, 131, 3), "int16": (0, 0, 0)}[kind]
    limits = np.iinfo(kind)
    x = rng.integers(limits.min, limits.max, (2, 9, 8, 19), kind, endpoint=True)
    weights = rng.integers(0, 256, (3, 3, 19, 2)).astype("uint8").view("uint8" if kind == "uint8" else "int8")
    bias = rng.integers(-3000, 3000, 38).astype("int64" if kind == "int16" else "int32")
    scales = rng.uniform(1e-5, 2e-4, 1 if kind == "uint8" else 38) / (256 if kind == "int16" else 1)
    output = (0.01, zero_points[2])
    quantized, sums = (nd.Quantization((0.1, zero_points[0]), scales, o, zero_points[1]) for o in (output, None))
    want = nd.depthwise_conv2d(x, weights, bias, quantization=quantized, rounding=rounding, activation=activation)
    got = quantized.requantize(nd.depthwise_conv2d(x, weights, bias, quantization=sums), dtype=kind, rounding=rounding, activation=activation)
    assert np.array_equal(got, want.to_numpy())
    assert len(np.unique(got)) > 2


def test_d21_one_half():
    """D21: is D5, D6 or D16: one half goes up, or away from zero in the second rounding, or to even."""
    half, quarter = (nd.Quantization((scale, 0), 1.0, (1.0, 0)) for scale in (0.5, 0.25))
    sums = np.array([-6, -5, -3, -2, -1, 1, 2, 3, 5, 6])
    assert half.requantize(sums).tolist() == [-3, -2, -1, -1, 0, 1, 1, 2, 3, 3]
    assert quarter.requantize(sums).tolist() == [-2, -1, -1, -1, 0, 1, 1, 1, 2, 2]
    assert quarter.requantize(sums, dtype="int16").tolist() == [-1, -1, -1, 0, 0, 0, 1, 1, 1, 2]
    assert quarter.requantize(sums, rounding="xnnpack").tolist() == [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2]


def test_d21_sums_wrap_around():
    """D21: Sums of int8 and uint8 are those of D4: beyond int32 they wrap around; those of int16 have 64 bits."""
    q = nd.Quantization((2.0**-30, 0), 1.0, (1.0, 0))
    assert q.requantize([2**31 - 1, 2**31, 2**32 + 2**30]).tolist() == [2, -2, 1]
    assert q.requantize([2**31, 2**32]).tolist() == [-2, 0]
    assert q.requantize([2**31, 2**40], dtype="int16").tolist() == [2, 1024]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32"])
def test_d21_any_integers(dtype):
    """D21: on sums that anybody made, of whatever integers, a single one too."""
    q = nd.Quantization((0.5, 0), 1.0, (1.0, 3))
    assert q.requantize(np.array([100], dtype)).tolist() == [53]
    assert (q.requantize(100), q.requantize(100).shape) == (53, ())
    assert q.requantize(np.zeros((0, 4), dtype)).shape == (0, 4)
    assert q.requantize(nd.array([[100]], dtype="int32")).tolist() == [[53]]


def test_d21_bounds():
    """D21: the clamp of D7, which `Quantization.bounds` gives."""
    q = nd.Quantization((0.5, 0), 0.25, (0.05, -100))
    assert (q.bounds(), q.bounds("relu"), q.bounds("relu6"), q.bounds("relu_n1_to_1")) == ((-128, 127), (-100, 127), (-100, 20), (-120, -80))
    assert nd.Quantization((0.5, 0), 0.25, (0.05, 100), 3).bounds("relu_n1_to_1", dtype="uint8") == (80, 120)
    assert nd.Quantization((0.5, 0), 0.25, (2.0**-8, 0)).bounds("relu6", "int16") == (0, 1536)
    for rounding in ROUNDINGS:
        assert nd.Quantization((0.5, 0), 0.25, (4.0, 0)).bounds("relu6", rounding=rounding) == (0, 2)
        assert nd.Quantization((0.5, 0), 0.25, (4.0, 1)).bounds("relu6", rounding=rounding) == (1, 3 if rounding == "tflite" else 2)
    assert q.requantize([-(10**6), 10**6], activation="relu6").tolist() == list(q.bounds("relu6"))


def test_d16_the_bits_of_a_multiplier_that_int16_uses():
    """D16: the multiplier of D2 in 15 bits: what `multipliers_and_shifts` says of it is what `requantize` does."""
    for scale in (0.3, 0.7, 1 - 2.0**-17, 5.0):
        q = nd.Quantization((scale, 0), 1.0, (1.0, 0))
        ((multiplier,), (shift,)) = (column.tolist() for column in q.multipliers_and_shifts(dtype="int16"))
        reduced = min((multiplier + 2**15) >> 16, 0x7FFF)
        for total in (-1000, -1, 3, 777, 30000):  # 30000 shows the last of 15 bits
            scaled = (total * reduced + 2 ** (14 - shift)) >> (15 - shift)
            assert q.requantize(total, dtype="int16") == min(max(scaled, -32768), 32767)


Q = nd.Quantization((0.5, 3), [0.25, 0.5], (1.0, 0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Q.requantize([1.0, 2.0]), nd.DTypeError, "accumulators must be integers that an int64 holds: float64"),
        (lambda: Q.requantize([True, False]), nd.DTypeError, "accumulators must be integers that an int64 holds: bool"),
        (lambda: Q.requantize(np.zeros(2, "uint64")), nd.DTypeError, "accumulators must be integers that an int64 holds: uint64"),
        (lambda: Q.requantize([2**70, 0]), nd.DTypeError, "accumulators must be integers that an int64 holds: object"),
        (lambda: Q.requantize([1, 2], dtype="int32"), nd.DTypeError, "quantized activations are int8, uint8 or int16: int32"),
        (lambda: Q.requantize([1, 2, 3]), nd.LayoutError, "2 scales for 3 channels"),
        (lambda: Q.requantize(1), nd.LayoutError, "2 scales for 1 channels"),
        (lambda: Q.requantize([1, 2], axis=1), nd.LayoutError, r"axis must be one of the 1 of the accumulators, of shape \(2,\): 1"),
        (lambda: Q.requantize([1, 2], axis=None), nd.LayoutError, r"axis must be one of the 1 of the accumulators, of shape \(2,\): None"),
        (lambda: Q.requantize([1, 2], dtype="int16"), nd.LayoutError, "the input zero point must be 0 for int16 inputs: 3"),
        (lambda: nd.Quantization((1.0, 0), 1.0, (1.0, 0)).requantize(1, dtype="int16", rounding="xnnpack"), nd.LayoutError, "XNNPACK has none"),
        (lambda: Q.requantize([1, 2], rounding="up"), nd.LayoutError, "rounding must be one of 'tflite', 'xnnpack': 'up'"),
        (lambda: Q.requantize([1, 2], activation="tanh"), nd.LayoutError, "activation must be one of None, 'relu', .*: 'tanh'"),
        (lambda: nd.Quantization((1.0, 0), 1.0, None).requantize(1), nd.LayoutError, "a quantized result needs a scale and a zero point: output=None"),
        (lambda: nd.Quantization((1.0, 0), 1.0, "float32").bounds(), nd.LayoutError, "a quantized result needs a scale and a zero point: output='float32'"),
        (lambda: Q.bounds("tanh"), nd.LayoutError, "activation must be one of None, 'relu', .*: 'tanh'"),
        (lambda: Q.bounds(dtype="float32"), nd.DTypeError, "quantized activations are int8, uint8 or int16: float32"),
    ],
)
def test_d21_refused(call, error, message):
    """D21: on sums, an int32 or int64 each, with the scale of their channel along `axis` and the clamp of D7; all else is refused."""
    with pytest.raises(error, match=message):
        call()

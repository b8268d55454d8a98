"""ADR 0006: hundreds of random and extreme layers, bit by bit as the real interpreters compute them."""

import dataclasses

import numpy as np
import pytest

import nd4jlike as nd
from nd4jlike.kernels import dispatch
from nd4jlike.quantization import ACTIVATIONS
from reference import out_size, same_padding
from single_layer import models, run_litert, run_tflite_micro

ISAS = dispatch.available()
# Layers of one model: opening an interpreter costs more than running a layer.
TOGETHER = 60


def random_layer(kind, case, rng, bias_needed):
    """Draw a layer that the interpreters take, as (keywords of `models`, input, keywords of ours)."""
    limits = np.iinfo(kind)
    kernel = tuple(int(v) for v in rng.integers(1, 6, 2)) if case % 5 else ((1, 15), (15, 1), (7, 7))[case // 5 % 3]
    stride = (int(rng.integers(1, 4)),) * 2
    dilation = tuple(int(v) for v in rng.integers(1, 3, 2)) if stride == (1, 1) else (1, 1)
    channels, multiplier = int(rng.choice((1, 3, 8, 16, 17, 33, 64, 70))), int(rng.choice((1, 1, 1, 2, 8)))
    outputs = channels * multiplier
    same = bool(rng.integers(2))
    size = [int(v) for v in rng.integers(1, 9, 2)]
    if not same:
        size = [max(n, (k - 1) * d + 1) for n, k, d in zip(size, kernel, dilation, strict=True)]
    padding = [same_padding(*figures) if same else (0, 0) for figures in zip(size, kernel, stride, dilation, strict=True)]
    out = [out_size(n, k, s, d, *p) for n, k, s, d, p in zip(size, kernel, stride, dilation, padding, strict=True)]

    def values(dtype, shape, low=0):
        info = np.iinfo(dtype)
        return rng.integers(info.min + low, info.max + 1, shape).astype(dtype)

    x = values(kind, (1, *size, channels))
    weights = values("uint8", (*kernel, channels, multiplier)) if kind == "uint8" else values("int8", (*kernel, channels, multiplier), 1)
    zero_points = [0, 0, 0] if kind == "int16" else [int(v) for v in values(kind, 3)]
    if kind == "int8":
        zero_points[1] = 0
    reach = float(limits.max) * 40 * np.sqrt(kernel[0] * kernel[1])
    bias = rng.integers(-reach, reach, outputs).astype("int64" if kind == "int16" else "int32")
    scales = rng.uniform(0.001, 0.02, 1 if kind == "uint8" else outputs).astype(np.float32)
    input_scale = np.float32(rng.uniform(0.01, 0.2))
    effective = 1.5 * limits.max / reach
    extreme = case % 7
    if extreme == 1:
        x[...] = limits.min if case % 2 else limits.max
        weights[...] = np.iinfo(weights.dtype).max if case % 4 < 2 else np.iinfo(weights.dtype).min + (kind != "uint8")
    elif extreme == 2:
        bias[...] = {"int16": 2**46, "uint8": 2**31 - 1, "int8": 2**31 - 1}[kind] * (1 if case % 2 else -1)
        bias[::2] //= 3
        effective = limits.max / float(abs(bias).max())
    elif extreme == 3:
        effective = float(rng.choice((1.0, 3.7, 60.0)))
    elif extreme == 4:
        effective = 2.0 ** -float(rng.integers(20, 31))
    elif extreme == 5:
        # The bias alone, right at the ties of the rounding.
        weights[...] = zero_points[1]
        effective = float(rng.uniform(0.4, 1) * 2.0 ** -rng.integers(1, 24))
    output_scale = np.float32(float(input_scale) * float(scales.max()) / effective)
    q = nd.Quantization((input_scale, zero_points[0]), scales, (output_scale, zero_points[2]), zero_points[1])
    if extreme == 5:
        steps = rng.integers(limits.min - 3, limits.max + 4, outputs) + 0.5 - (0 if kind == "int16" else zero_points[2])
        ties = steps / (float(input_scale) * np.broadcast_to(scales, outputs).astype(float) / float(output_scale)) + rng.integers(-1, 2, outputs)
        bias = np.clip(ties, -(2**31) + 1, 2**31 - 1).astype(bias.dtype)
    if case % 6 == 0 and not bias_needed:
        bias = None
    activation = list(ACTIVATIONS)[case % 4]
    how = {"weights": weights, "bias": bias, "stride": stride, "dilation": dilation, "activation": activation}
    ours = {**how, "quantization": q, "padding": "same" if same else "valid"}
    theirs = {**how, "x_shape": x.shape, "out_shape": (1, *out, outputs), "quantization": (q.input, scales, q.output), "same": same}
    return {**theirs, "dtype": kind, "weights_zero_point": zero_points[1]}, x, ours


REFERENCES = {
    "tflite-micro": lambda content, inputs: run_tflite_micro(content, inputs),
    "LiteRT": lambda content, inputs: run_litert(content, inputs, xnnpack=False),
    "XNNPACK": lambda content, inputs: run_litert(content, inputs, xnnpack=True),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("reference", "kind"), [("tflite-micro", "int8"), ("tflite-micro", "int16"), ("LiteRT", "int8"), ("LiteRT", "uint8"), ("LiteRT", "int16")]
)
def test_d9_d14_d16_random_and_extreme_layers(reference, kind, seed):
    """D9: `rounding="tflite"` gives the bits of TensorFlow Lite Micro's interpreter; D21: `requantize` does so of sums."""
    compare(reference, kind, seed)


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_d10_d14_random_and_extreme_layers(kind, seed):
    """D10: `rounding="xnnpack"` gives the bits of the XNNPACK delegate of LiteRT; D21: `requantize` does so of sums."""
    compare("XNNPACK", kind, seed)


@pytest.mark.parametrize("reference", ["LiteRT", "XNNPACK"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_d7_bounds_of_activations(reference, kind):
    """D7: An activation is a clamp of the quantized result, its bounds computed in float32."""
    rng = np.random.default_rng(5)
    limits = np.iinfo(kind)
    x = np.tile(np.array([limits.min, limits.max], kind), 4).reshape(1, 2, 2, 2)
    weights = np.full((1, 1, 2, 1), limits.max, kind)
    layers = []
    for case in range(200):
        # The bounds are at a tie, or next to one, or anywhere.
        steps = np.float32(rng.integers(0, 40) + 0.5) if case % 2 else np.float32(rng.uniform(0.1, 40))
        activation, reach = (("relu6", 6), ("relu_n1_to_1", 1))[case // 2 % 2]
        scale = np.nextafter(np.float32(reach) / steps, np.float32(rng.choice((0, 1, 1e3))), dtype=np.float32)
        zero_point = int(rng.integers(limits.min, limits.max + 1))
        middle = limits.min + 128
        how = {"weights": weights, "bias": np.zeros(2, "int32"), "stride": (1, 1), "dilation": (1, 1), "activation": activation}
        given, scales, output = (np.float32(1), middle), np.float32(1), (scale, zero_point)
        theirs = {**how, "x_shape": x.shape, "out_shape": x.shape, "quantization": (given, scales, output), "same": True}
        layers.append(({**theirs, "dtype": kind, "weights_zero_point": middle}, how, nd.Quantization(given, scales, output, middle)))
    wants = REFERENCES[reference](models([theirs for theirs, _, _ in layers]), [x] * len(layers))
    rounding = "xnnpack" if reference == "XNNPACK" else "tflite"
    for (theirs, how, q), want in zip(layers, wants, strict=True):
        got = np.asarray(nd.depthwise_conv2d(x, **how, quantization=q, padding="same", rounding=rounding))
        assert np.array_equal(got, want), (theirs["activation"], theirs["quantization"], got.ravel()[:2], want.ravel()[:2])


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_d11_products_that_float32_does_not_hold(reference, kind):
    """D11: products `input * weights` that float32 does not hold: interpreters have zero points where multipliers move every sum to 0."""
    if (reference, kind) == ("tflite-micro", "uint8"):
        pytest.skip("tflite-micro has no uint8 layers")
    middle = 0 if kind == "int8" else 128
    x = np.full((1, 1, 1, 2), middle, kind)
    how = {"weights": np.full((1, 1, 2, 1), middle, kind), "bias": np.array([2**31 - 1, -(2**31)], "int32"), "stride": (1, 1), "dilation": (1, 1)}
    layers = []
    for product in (2.0**-127, 2.0**-140, 2.0**-160):
        given, scales, output = (np.float32(product * 2.0**80), middle), np.float32(2.0**-80), (np.float32(1), middle + 5)
        theirs = {**how, "x_shape": x.shape, "out_shape": x.shape, "quantization": (given, scales, output), "same": True, "activation": None}
        layers.append(({**theirs, "dtype": kind, "weights_zero_point": middle}, nd.Quantization(given, scales, output, middle)))
    wants = REFERENCES[reference](models([theirs for theirs, _ in layers]), [x] * len(layers))
    rounding = "xnnpack" if reference == "XNNPACK" else "tflite"
    for (_, q), want in zip(layers, wants, strict=True):
        got = np.asarray(nd.depthwise_conv2d(x, **how, quantization=q, rounding=rounding))
        assert np.array_equal(got, want), (got, want)
        assert (got == middle + 5).all()


def compare(reference, kind, seed):
    """Run many layers in the interpreter at once and each here, on every instruction set."""
    rng = np.random.default_rng(seed)
    layers = [random_layer(kind, case, rng, reference == "XNNPACK") for case in range(TOGETHER)]
    wants = REFERENCES[reference](models([theirs for theirs, _, _ in layers]), [x for _, x, _ in layers])
    rounding, other = ("xnnpack", "tflite") if reference == "XNNPACK" else ("tflite", "xnnpack")
    differ = 0
    for (theirs, x, ours), want in zip(layers, wants, strict=True):
        for isa in ISAS:
            got = np.asarray(nd.depthwise_conv2d(x, **ours, rounding=rounding, isa=isa))
            assert got.dtype == want.dtype
            assert np.array_equal(got, want), (isa, theirs, np.argwhere(got != want)[:3])
        q = ours["quantization"]
        sums = nd.depthwise_conv2d(x, **{**ours, "activation": None, "quantization": dataclasses.replace(q, output=None)}, dtype=kind)
        ruled = q.requantize(sums, dtype=kind, rounding=rounding, activation=ours["activation"])
        assert ruled.dtype == want.dtype
        assert np.array_equal(ruled, want), (theirs, np.argwhere(ruled != want)[:3])
        if kind != "int16":
            differ += (np.asarray(nd.depthwise_conv2d(x, **ours, rounding=other)) != want).sum()
    assert differ or kind == "int16", "the layers tell the two roundings apart"

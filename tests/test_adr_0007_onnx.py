"""ADR 0007: ONNX files as depthwise layers."""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest

import tiny_onnx
from nd4jlike import DTypeError, LayoutError, MissingLibraryError, Quantization
from nd4jlike.adapters.onnx import depthwise_layers, read_model
from tiny_onnx import conv

pytestmark = pytest.mark.usefixtures("written")


@pytest.fixture
def written():
    """Models are written with the onnx package."""
    tiny_onnx.onnx()


def read(model):
    return read_model(model.content())


def layer_of(model):
    found = read(model)
    assert found.skipped == ()
    (layer,) = found.layers
    return layer


def stored(model, name):
    return next(tiny_onnx.onnx().numpy_helper.to_array(tensor) for tensor in model.constants if tensor.name == name)


def test_d1_import_is_light():
    """D1: importing it imports no foreign library."""
    code = "import sys, nd4jlike.adapters.onnx; print('onnx' in sys.modules, 'onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False False\n"


def test_d3_missing_package(monkeypatch):
    """D3: where the library itself is absent, `MissingLibraryError` says what to install."""
    content = conv().content()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingLibraryError, match=r"pip install nd4jlike\[onnx\]"):
        depthwise_layers(content)


def test_d24_what_replaces_the_file_s():
    """D24: one that is given, `quantization=` for the sums, replaces the file's: of ONNX layers, too."""
    (layer,) = depthwise_layers(conv("int8").content())
    x = np.random.default_rng(0).integers(-100, 100, (1, 3, 9, 8)).astype("int8")
    sums = layer.plan(quantization=dataclasses.replace(layer.quantization, output=None))(x)
    assert (sums.dtype, layer.plan(stride=2).stride) == (np.int32, (2, 2))
    assert np.array_equal(layer.quantization.requantize(sums, rounding="xnnpack", axis=1), layer.plan(rounding="xnnpack")(x).to_numpy())


def test_d28_conv():
    """D28: `depthwise_layers` reads every 2-D Conv with as many groups as channels."""
    model = conv(shape=(2, 3, 9, 8), kernel=(5, 2), multiplier=2, strides=[2, 1], dilations=[1, 3], pads=[1, 2, 3, 4])
    layer = layer_of(model)
    assert (layer.operator, layer.dtype, layer.index, layer.subgraph, layer.input, layer.output) == ("Conv", "float32", 0, 0, "x", "y")
    assert (layer.kernel, layer.channels, layer.multiplier) == ((5, 2), 3, 2)
    assert (layer.stride, layer.dilation, layer.padding, layer.activation) == ((2, 1), (1, 3), ((1, 3), (2, 4)), None)
    assert (layer.input_shape, layer.output_shape) == ((2, 3, 9, 8), (2, 6, 5, 11))
    assert layer.quantization is None
    assert not layer.weights.flags.writeable
    weights = stored(model, "w")
    for c, m in np.ndindex(3, 2):
        assert np.array_equal(layer.weights[:, :, c, m], weights[2 * c + m, 0])
    assert np.array_equal(layer.bias, stored(model, "b"))
    assert layer.plan()(np.zeros((2, 3, 9, 8), "float32")).shape == (2, 6, 5, 11)
    assert layer.fused() is layer


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("how", ["initializer", "Constant", "Identity"])
def test_d28_quantized(operator, per_channel, bias, how):
    """D28, D29: every QLinearConv, and a Conv between DequantizeLinear and QuantizeLinear as one quantized layer; constants in any of their forms."""
    model = conv("int8", operator=operator, per_channel=per_channel, bias=bias, multiplier=2, how=how)
    layer = layer_of(model)
    assert (layer.operator, layer.dtype, layer.input, layer.output) == (operator, "int8", "x", "y")
    values = layer_of(conv("int8", operator=operator, per_channel=per_channel, bias=bias, multiplier=2))
    assert np.array_equal(layer.weights, values.weights)
    assert layer.weights.dtype == np.int8
    scales = stored(conv("int8", per_channel=per_channel, multiplier=2), "w_scale")
    assert layer.quantization == Quantization((0.05, 3), scales, (0.09, -7))
    assert len(layer.quantization.weights) == (6 if per_channel else 1)
    assert (layer.bias is not None) == bias
    assert not bias or layer.bias.dtype == np.int32


def between(**changes):
    """Make a QDQ model that is bent in one way."""
    model = conv("int8", operator="QDQ", zero_points=(3, 0 if "types" in changes else 5, -7))
    if "bias" in changes:  # neither floats nor int32
        model.constant("b bytes", np.ones(3, "int8"))
        next(node for node in model.nodes if "b" in node.input).input[0] = "b bytes"
        del next(node for node in model.nodes if "b bytes" in node.input).input[2]
    if "bias_zero" in changes:
        model.constants = [tensor for tensor in model.constants if tensor.name != "b_zero"]
        model.constant("b_zero", np.array([0, 1, 0], "int32"))
    if "types" in changes:
        model.constants = [tensor for tensor in model.constants if tensor.name != "y_zero"]
        model.constant("y_zero", np.uint8(7))
        model.outputs[:] = []
        model.output("y", "uint8")
    if "zero_points" in changes:
        model.constants = [tensor for tensor in model.constants if tensor.name != "w_zero"]
        model.constant("w_zero", np.array([4, 5, 6], "int8"))
    if "bias_scale" in changes:
        model.constants = [tensor for tensor in model.constants if tensor.name != "b_scale"]
        model.constant("b_scale", np.float32(0.05) * stored(conv("int8"), "w_scale") * np.float32([1, 1.01, 1]))
    if "scale" in changes:  # what the input is scaled by is computed
        model.constants = [tensor for tensor in model.constants if tensor.name != "x_scale"]
        model.input("x_scale", "float32", ())
    if "reader" in changes:  # somebody else reads the float output
        model.node("Relu", ["y real"], ["z"])
        model.output("z", "float32")
    if "output" in changes:
        model.output("y real", "float32")
    if "float" in changes:  # no QuantizeLinear behind
        del model.nodes[-1], model.outputs[:]
        model.output("y real", "float32")
    return model


CONSTANT = "scales and zero points must be constants of the file"
NOT_INTEGER = {
    "bias": r"its bias \(b real\) must be an int32 with zero point 0 and constant scales, or floats",
    "bias_zero": r"its bias \(b real\) must be an int32 with zero point 0",
    "bias_scale": r"the scales of its bias \(b real\) are not those of input times weights",
    "scale": CONSTANT,
    "reader": "its result is read elsewhere, too, before it is quantized",
    "output": "its result is read elsewhere, too",
    "types": "input int8, output uint8; one element type for both",
    "zero_point": "int8 weights with zero point 5 for int8 inputs; int8 with zero point 0",
    "zero_points": "weights have one zero point here, these have several",
}


@pytest.mark.parametrize("change", [*NOT_INTEGER, "float"])
def test_d28_a_float_conv_between(change):
    """D28, D35: where that cannot be, it is a float Conv on dequantized weights; `DepthwiseLayer.not_integer` says why, of all other layers it is None."""
    model = between(**({} if change == "zero_point" else {change: True}))
    layer = layer_of(model)
    assert (layer.operator, layer.dtype, layer.input, layer.output) == ("Conv", "float32", "x real", "y real")
    w, scales, zero = stored(model, "w"), stored(model, "w_scale"), stored(model, "w_zero")
    assert np.array_equal(layer.weights[:, :, 1, 0], (w[1, 0].astype("float32") - zero[1]) * scales[1])
    if change == "float":
        assert layer.not_integer is None
    else:
        assert re.search(NOT_INTEGER[change], layer.not_integer), layer.not_integer


@pytest.mark.parametrize(("dtype", "weights_dtype"), [("int16", "int16"), ("int16", "int8"), ("uint16", "uint8"), ("int8", "uint8")])
def test_d28_types_between(dtype, weights_dtype):
    """D28: where that cannot be, it is a float Conv on dequantized weights: of 16-bit activations, and of int8 beside uint8."""
    model = conv(dtype, operator="QDQ", weights_dtype=weights_dtype, zero_points=(3, 0, 7))
    layer = layer_of(model)
    assert (layer.operator, layer.dtype, layer.quantization) == ("Conv", "float32", None)
    assert np.array_equal(layer.weights[:, :, 2, 0], stored(model, "w")[2, 0].astype("float32") * stored(model, "w_scale")[2])
    assert re.match(f"input {dtype}, weights {weights_dtype}" if "16" in dtype else f"{weights_dtype} weights", layer.not_integer)


@pytest.mark.parametrize("axis", [2, 3, -1])
def test_d28_scales_along_another_axis(axis):
    """D28: where that cannot be, it is a float Conv on dequantized weights: with scales along the kernel, which has as many rows as there are channels."""
    model = with_axis(axis)
    layer = layer_of(model)
    scales = stored(model, "w_scale").reshape([3 if i == axis % 4 else 1 for i in range(4)])
    assert np.array_equal(layer.weights[..., 0].transpose(2, 0, 1), (stored(model, "w").astype("float32") * scales)[:, 0])
    assert layer.not_integer == f"its weights have scales along axis {axis}; along axis 0, or one, are computed in integers here"


def test_d35_weights_of_floats():
    """D35: `DepthwiseLayer.not_integer` says why: weights that nobody quantized."""
    model = conv("int8", operator="QDQ")
    model.nodes = [node for node in model.nodes if node.output[0] != "w real"]
    model.constant("w real", np.ones((3, 1, 3, 3), "float32"))
    assert layer_of(model).not_integer == "its weights (w real) are floats in the file"


def test_d35_no_reason():
    """D35: of all other layers it is None: quantized ones, and Convs whose results are not quantized or whose inputs never were."""
    model = conv()
    model.node("QuantizeLinear", ["y", model.constant("scale", np.float32(1)), model.constant("zero", np.int8(0))], ["z"])
    for other in (conv(), conv("int8"), conv("int8", operator="QDQ"), clamped("Sigmoid"), model):
        assert layer_of(other).not_integer is None


def with_float_bias(bias, x_scale, w_scale, dtype="int8", **options):
    """Make a QDQ model whose bias nobody quantized."""
    bias = np.asarray(bias, "float32")
    model = conv(dtype, (1, bias.size, 9, 8), operator="QDQ", bias=False, zero_points=(3, 0, 7), **options)
    model.constants = [tensor for tensor in model.constants if tensor.name not in ("x_scale", "w_scale", "w_zero", "x_zero")]
    for name, scale, kind in (("x", x_scale, dtype), ("w", w_scale, options.get("weights_dtype", dtype))):
        model.constant(f"{name}_scale", np.asarray(scale, "float32"))
        model.constant(f"{name}_zero", np.full(np.shape(scale), 3 if name == "x" else 0, kind))
    next(node for node in model.nodes if node.op_type == "Conv").input.append(model.constant("b float", bias))
    return model


@pytest.mark.parametrize(
    ("bias", "x_scale", "w_scale", "whole"),
    [
        ([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -(2.0**31)], 1, 1, [0, 2, 2, 0, -2, 10**9, -(2**31)]),
        ([0.5, 0.5, -0.75], 0.5, [1, 0.25, 0.5], [1, 4, -3]),
        # The exact quotients are below 1.5 and 33.5; so is the second over the product as float32 has it, before it is rounded itself.
        ([0.045, 1.005], 0.1, 0.3, [2, 34]),
    ],
)
def test_d34_float_bias(bias, x_scale, w_scale, whole):
    """D34: a bias of floats is int32 as onnxruntime makes it: `bias / (input * weights)`, each operation in float32, rounded half to even."""
    layer = layer_of(with_float_bias(bias, x_scale, w_scale))
    assert (layer.operator, layer.bias.dtype, layer.bias.tolist()) == ("QDQ", np.int32, whole)


@pytest.mark.parametrize(
    ("bias", "x_scale", "w_scale", "reason"),
    [
        ([0, 2.0**31], 1, 1, "in steps of input scale * weight scale is beyond int32"),
        ([0, np.nan], 1, 1, "is beyond int32"),
        ([0, 1], [1], 1, "the scale of its input has one axis and that of its weights none"),
        ([0, 1], [1], [1], None),
        ([0, 1], [1], [1, 2], None),
    ],
)
def test_d34_float_bias_of_floats(bias, x_scale, w_scale, reason):
    """D34: where it leaves int32, or onnxruntime makes none, the layer is a float Conv."""
    layer = layer_of(with_float_bias(bias, x_scale, w_scale))
    assert layer.operator == ("Conv" if reason else "QDQ")
    assert reason is None or reason in layer.not_integer


def clamped(operator, bounds=(), zero_point=-128, scale=6 / 255, **attributes):
    """Make a QDQ model with a Relu or Clip before the QuantizeLinear."""
    model = conv("int8", operator="QDQ", zero_points=(3, 0, zero_point), scales=(0.05, 0.02, scale), pads=[1, 1, 1, 1])
    inputs = ["y real", *(name and model.constant(name, np.float32(bound)) for name, bound in bounds)]
    quantize = model.nodes.pop()
    model.node(operator, inputs, ["clamped"], **attributes)
    quantize.input[0] = "clamped"
    model.nodes.append(quantize)
    return model


CLIPS = [("low", 0.0), ("high", 6.0)]


@pytest.mark.parametrize(
    ("model", "operator"),
    [
        (lambda: clamped("Relu"), "QDQ"),
        (lambda: clamped("Relu", zero_point=-127), "Conv"),
        (lambda: clamped("Clip"), "QDQ"),
        (lambda: clamped("Clip", CLIPS), "QDQ"),
        (lambda: clamped("Clip", [("", 0), ("high", 6.0)]), "QDQ"),
        (lambda: clamped("Clip", CLIPS, scale=7 / 255), "Conv"),
        (lambda: clamped("Clip", [("low", 0.1)]), "Conv"),
        (lambda: clamped("Clip", [("", 0), ("high", 254.0)], scale=1.0), "Conv"),  # 254 - 128 is one less than the largest int8
        (lambda: clamped("Clip", [("", 0), ("high", 255.0)], scale=1.0), "QDQ"),
        (lambda: clamped("Clip", min=0.0, max=3.0), "Conv"),  # before version 11 bounds were attributes
        (lambda: clamped("Sigmoid"), "Conv"),
    ],
)
def test_d28_idle_clamps(model, operator):
    """D28: a Conv between DequantizeLinear and QuantizeLinear as one quantized layer, with a Relu or Clip that the quantization makes idle."""
    layer = layer_of(model())
    assert layer.operator == operator
    assert layer.output == ("y" if operator == "QDQ" else "y real")


def test_d28_other_convolutions_are_none():
    """D28: with as many groups as channels: dense and grouped convolutions are none of them."""
    model = tiny_onnx.Model()
    model.input("x", "float32", (1, 4, 5, 5))
    for name, shape, group in (("dense", (4, 4, 1, 1), 1), ("grouped", (4, 2, 1, 1), 2)):
        model.node("Conv", ["x", model.constant(f"{name} w", np.zeros(shape, "float32"))], [name], group=group)
        model.output(name, "float32")
    assert (read(model).layers, read(model).skipped) == ((), ())


def test_d28_the_order_of_the_file():
    """D28: `depthwise_layers` reads in the order of the file."""
    model = conv(pads=[1, 1, 1, 1])
    model.node("Conv", ["y", "w"], ["z"], group=3, kernel_shape=[3, 3])
    model.output("z", "float32")
    first, second = depthwise_layers(model.content())
    assert (first.output, second.input, second.output, second.bias) == ("y", "y", "z", None)


def test_d29_a_quantized_constant():
    """D29: constants: a QuantizeLinear of one, as training for quantization leaves it."""
    model = conv("int8", operator="QDQ")
    values = np.random.default_rng(0).standard_normal((3, 1, 3, 3)).astype("float32")
    scales = stored(model, "w_scale")
    model.constants = [tensor for tensor in model.constants if tensor.name != "w"]
    model.constant("w float", values)
    model.nodes.insert(0, tiny_onnx.onnx().helper.make_node("QuantizeLinear", ["w float", "w_scale", "w_zero"], ["w"], axis=0))
    layer = layer_of(model)
    expected = np.clip(np.rint(values / scales.reshape(3, 1, 1, 1)), -128, 127)
    assert np.array_equal(layer.weights[..., 0], expected[:, 0].transpose(1, 2, 0))


@pytest.mark.parametrize("named", [True, False])
def test_d28_what_is_left_out(named):
    """D28: a Conv between DequantizeLinear and QuantizeLinear as one quantized layer: without zero points they are 0, without a name there is no bias."""
    model = conv("uint8", operator="QDQ", zero_points=(0, 0, 0), bias=False, shape=("n", 3, "h", "w"))
    for node in model.nodes:
        if node.op_type == "Conv":
            node.input.extend([""] * named)
        else:
            del node.input[2:]
            node.input.extend([""] * named)
    layer = layer_of(model)
    assert (layer.operator, layer.dtype, layer.bias, layer.weights.dtype) == ("QDQ", "uint8", None, np.uint8)
    assert layer.quantization == Quantization((0.05, 0), stored(model, "w_scale"), (0.09, 0), 0)
    assert (layer.input_shape, layer.output_shape[:2]) == ((-1, 3, -1, -1), (-1, 3))


def test_d28_scales_that_do_not_fit():
    """D28: one quantized layer: where an axis is none of the weights', or zero points are not as many as scales, their values are not guessed."""
    for axis in (-5, 1, 4):
        model = conv("int8", operator="QDQ")
        next(node for node in model.nodes if node.input[0] == "w").attribute[0].i = axis
        assert read(model).layers == ()
        assert "its weights (w real) must be a constant" in read(model).skipped[0]
    model = conv("int8", operator="QDQ")
    model.constants = [tensor for tensor in model.constants if tensor.name != "w_zero"]
    model.constant("w_zero", np.int8(0))
    assert read(model).layers == ()
    last = conv("int8", operator="QDQ")
    next(node for node in last.nodes if node.input[0] == "w").attribute[0].i = -4
    assert layer_of(last).quantization == layer_of(conv("int8", operator="QDQ")).quantization


def without_zero_points(model, *tensors):
    """Take the third input from the nodes that read one of the tensors; the model."""
    for node in model.nodes:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.input[0] in tensors:
            del node.input[2]
    return model


def test_d28_zero_points_left_out():
    """D28: one quantized layer: without a zero point it is 0, of the type of what is dequantized, of `output_dtype` or uint8 for what is quantized."""
    zero = {"zero_points": (0, 0, 0)}
    full = layer_of(conv("int8", operator="QDQ", **zero))
    layer = layer_of(without_zero_points(conv("int8", operator="QDQ", **zero), "x", "w", "b"))
    assert (layer.dtype, layer.quantization) == ("int8", full.quantization)
    model = without_zero_points(conv("int8", operator="QDQ", **zero), "x", "y real")
    model.nodes[-1].attribute.append(tiny_onnx.onnx().helper.make_attribute("output_dtype", int(tiny_onnx.onnx().TensorProto.INT8)))
    model.outputs[:] = []
    model.output("y", "int8")
    layer = layer_of(model)
    assert (layer.dtype, layer.quantization) == ("int8", full.quantization)
    layer = layer_of(without_zero_points(conv("uint8", operator="QDQ", weights_dtype="int8", **zero), "x", "w", "y real"))
    assert (layer.dtype, layer.quantization.input[1], layer.quantization.output[1], layer.quantization.weights_zero_point) == ("uint8", 0, 0, 128)
    mixed = without_zero_points(conv("int8", operator="QDQ", **zero), "y real")
    assert "input int8, output uint8" in layer_of(mixed).not_integer
    # Nobody tells the type of what an unknown operator makes: no quantized layer, a float one.
    model = without_zero_points(conv("int8", operator="QDQ", **zero), "x")
    next(node for node in model.nodes if node.input[0] == "x").input[0] = "made"
    model.nodes.insert(0, tiny_onnx.onnx().helper.make_node("Unknown", ["x"], ["made"], domain="elsewhere"))
    assert (layer_of(model).operator, layer_of(model).dtype) == ("Conv", "float32")


def quantizing(model, zero_point):
    """Have the weights quantized by the model, to the type of the zero point."""
    model.constants = [tensor for tensor in model.constants if tensor.name not in ("w", "w_zero")]
    model.constant("w float", np.ones((3, 1, 3, 3), "float32"))
    model.constant("w_zero", zero_point)
    model.nodes.insert(0, tiny_onnx.onnx().helper.make_node("QuantizeLinear", ["w float", "w_scale", "w_zero"], ["w"]))
    return model


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int4"])
def test_d31_types_that_are_not_computed(name):
    """D31: What a plan cannot compute is skipped, not refused: weights, or results, of types beside int8 and uint8."""
    dtype = getattr(pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: it has the element types"), name)
    model = quantizing(conv("int8", operator="QDQ", per_channel=False), np.zeros((), dtype))
    assert read(model).layers == ()
    assert "must be a constant of the file" in read(model).skipped[0]
    model = conv("int8", operator="QDQ")
    model.constants = [tensor for tensor in model.constants if tensor.name != "y_zero"]
    model.constant("y_zero", np.zeros((), dtype))
    model.nodes.insert(-1, tiny_onnx.onnx().helper.make_node("Relu", ["y real"], ["y clamped"]))
    model.nodes[-1].input[0] = "y clamped"
    assert (layer_of(model).operator, layer_of(model).dtype) == ("Conv", "float32")


def test_d29_dequantized_floats_of_a_byte():
    """D29: weights behind DequantizeLinear keep the fractions of floats of a byte."""
    dtype = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: it has the element types").float8_e4m3fn
    values = np.linspace(-2, 2, 27).reshape(3, 1, 3, 3).astype(dtype)
    model = conv()
    model.constants = [tensor for tensor in model.constants if tensor.name != "w"]
    model.constant("w stored", values)
    model.constant("scale", np.float32(0.5))
    model.nodes.insert(0, tiny_onnx.onnx().helper.make_node("DequantizeLinear", ["w stored", "scale"], ["w"]))
    assert np.array_equal(layer_of(model).weights[..., 0].transpose(2, 0, 1), values[:, 0].astype(np.float32) / 2)


@pytest.mark.parametrize("scale", [0, np.inf])
def test_d35_scales_that_are_none(scale):
    """D35: `DepthwiseLayer.not_integer` says why, without a warning: weights that the model quantizes by a scale that is none."""
    model = quantizing(conv("int8", operator="QDQ", per_channel=False, bias=False), np.int8(0))
    model.constants = [tensor for tensor in model.constants if tensor.name != "w_scale"]
    model.constant("w_scale", np.float32(scale))
    assert "weight scales must be finite and positive" in layer_of(model).not_integer


def test_d29_constants_of_numbers():
    """D29: scales are constants of the file: a Constant may hold them as numbers, not as a tensor."""
    model = conv("int8")
    for name, how in (("x_scale", "value_float"), ("w_scale", "value_floats")):
        values = stored(model, name).tolist()
        model.constants = [tensor for tensor in model.constants if tensor.name != name]
        model.nodes.insert(0, tiny_onnx.onnx().helper.make_node("Constant", [], [name], **{how: values}))
    assert layer_of(model).quantization == layer_of(conv("int8")).quantization


@pytest.mark.parametrize(
    ("attributes", "padding"),
    [
        ({}, ((0, 0), (0, 0))),
        ({"pads": [1, 2, 3, 4]}, ((1, 3), (2, 4))),
        ({"auto_pad": "VALID"}, ((0, 0), (0, 0))),
        ({"auto_pad": "SAME_UPPER"}, "same"),
        ({"auto_pad": "SAME_LOWER"}, ((1, 1), (1, 1))),
        ({"auto_pad": "SAME_LOWER", "kernel_shape": [2, 4]}, ((1, 0), (2, 1))),
        ({"auto_pad": "SAME_LOWER", "kernel_shape": [1, 1]}, ((0, 0), (0, 0))),
        # (3 - 1) * 3 + 2 - 9 rows or 8 columns are less than none
        ({"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2], "strides": [3, 3]}, ((0, 0), (0, 0))),
        # 9 rows in steps of 2 are 5: (5 - 1) * 2 + 3 - 9 = 2; 8 columns in steps of 3 are 3: (3 - 1) * 3 + 3 - 8 = 1, on the left.
        ({"auto_pad": "SAME_LOWER", "strides": [2, 3]}, ((1, 1), (1, 0))),
    ],
)
def test_d30_padding(attributes, padding):
    """D30: `pads`, VALID and SAME_LOWER are ((top, bottom), (left, right)); SAME_UPPER is `"same"`."""
    assert layer_of(conv(kernel=tuple(attributes.get("kernel_shape", (3, 3))), **attributes)).padding == padding


def computed(name, kind, shape, **options):
    """Make a model in which a constant is an input instead."""
    model = conv(**options)
    model.constants = [tensor for tensor in model.constants if tensor.name != name]
    model.input(name, kind, shape)
    return model


def of_integers():
    model = conv(bias=False)
    model.constants = []
    model.constant("w", np.zeros((3, 1, 3, 3), "int32"))
    return model


def integer():
    model = tiny_onnx.Model()
    model.input("x", "uint8", (1, 3, 5, 5))
    model.node("ConvInteger", ["x", model.constant("w", np.zeros((3, 1, 3, 3), "uint8"))], ["y"], group=3)
    return model


SKIPPED = {
    "1-D": (lambda: conv(shape=(1, 3, 9), kernel=(3,)), r"it is a 1-D convolution, weights \(3, 1, 3\); only 2-D ones"),
    "3-D": (lambda: conv(shape=(1, 3, 5, 5, 5), kernel=(3, 3, 3)), r"it is a 3-D convolution"),
    "int32": (of_integers, "weights of int32; float16, float32, float64, and int8 or uint8 with scales"),
    "negative": (lambda: conv(pads=[1, -1, 0, 0]), r"pads \(1, -1, 0, 0\); four, none negative"),
    "lower": (
        lambda: conv(shape=(1, 3, "height", "width"), auto_pad="SAME_LOWER", strides=[2, 2]),
        "SAME_LOWER with a stride depends on the size of the image",
    ),
    "rule": (lambda: conv(auto_pad="SAME"), "auto_pad SAME; NOTSET, SAME_UPPER, SAME_LOWER and VALID are known"),
    "strides": (lambda: conv(strides=[0, 1]), r"strides \(0, 1\); two, both 1 or more"),
    "kernel": (lambda: conv(kernel_shape=[3, 5]), r"kernel_shape \(3, 5\) but weights of shape \(3, 1, 3, 3\)"),
    "weights": (lambda: computed("w", "float32", (3, 1, 3, 3)), r"its weights \(w\) must be a constant of the file"),
    "bias": (lambda: computed("b", "float32", (3,)), r"its bias \(b\) must be a constant of the file"),
    "linear bias": (lambda: computed("b", "int32", (3,), dtype="int8"), "bias must be a constant of the file"),
    "scale": (lambda: computed("y_scale", "float32", (), dtype="int8"), "output scale must be a constant of the file"),
    "infinite": (lambda: conv("int8", scales=(0.05, float("inf"), 0.09)), "weight scales must be finite and positive"),
    "asymmetric": (lambda: conv("int8", zero_points=(3, -4, -7)), "int8 weights with zero point -4 for int8 inputs; int8 with zero point 0"),
    "mixed": (lambda: conv("int8", weights_dtype="uint8"), "uint8 weights with zero point 0 for int8 inputs"),
    "types": (lambda: conv("int16"), "input int16, weights int16, output int16; int8 and uint8 are read"),
    "integer": (integer, "only Conv and QLinearConv are read"),
}


@pytest.mark.parametrize("group", [0, -3])
def test_d31_no_groups(group):
    """D31: `OnnxModel.skipped` names each such convolution with the reason: a number of groups that is none."""
    model = conv()
    next(entry for entry in model.nodes[-1].attribute if entry.name == "group").i = group
    assert read(model).layers == ()
    assert f"group {group}; 1 or more" in read(model).skipped[0]


@pytest.mark.parametrize("name", SKIPPED)
def test_d31_skipped(name):
    """D31: what a plan cannot compute is skipped, not refused: `OnnxModel.skipped` names each such convolution with the reason."""
    make, reason = SKIPPED[name]
    model = make()
    found = read(model)
    assert found.layers == ()
    (said,) = found.skipped
    node = model.nodes[-1]
    assert said.startswith(f"{node.name} ({node.op_type}): ")
    assert re.search(reason, said), said


def test_d31_bodies():
    """D31: what a plan cannot compute is skipped: convolutions in the bodies of control flow, too."""
    helper = tiny_onnx.onnx().helper
    inner = conv()
    body = helper.make_graph([*inner.nodes], "body", [], [helper.make_tensor_value_info("y", 1, None)], inner.constants)
    model = tiny_onnx.Model()
    model.input("x", "float32", (1, 3, 9, 8))
    model.node("If", [model.constant("condition", np.array(True))], ["out"], then_branch=body, else_branch=body)
    model.output("out", "float32")
    assert read(model).skipped == ("Conv 0 (Conv): it is in the body of If 0 (If)",) * 2


@pytest.mark.parametrize("content", [b"", b"no model", b"TFL3" * 20, bytes(100)])
def test_d32_no_model(content, tmp_path):
    """D32: a file that is no ONNX model is a `LayoutError`."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    for source, where in ((path, f"{path}: "), (content, "")):
        with pytest.raises(LayoutError) as caught:
            read_model(source)
        assert str(caught.value).startswith(f"{where}not an ONNX model: ")


def test_d32_truncated():
    """D32: a damaged file is a `LayoutError`, or what is left of it is read; nothing else happens."""
    content = conv("int8", operator="QDQ").content()
    for length in range(0, len(content), 3):
        try:
            read_model(content[:length])
        except LayoutError:
            continue


@pytest.mark.parametrize("attribute", ["group", "strides", "pads", "kernel_shape", "auto_pad"])
def test_d32_attributes_of_another_kind(attribute):
    """D32: a file whose nodes contradict themselves is a `LayoutError`: attributes of another type."""
    model = conv(pads=[0, 0, 0, 0], **({"auto_pad": "NOTSET"} if attribute == "auto_pad" else {}))
    node = model.nodes[-1]
    kept = [entry for entry in node.attribute if entry.name != attribute]
    del node.attribute[:]
    node.attribute.extend([*kept, tiny_onnx.onnx().helper.make_attribute(attribute, "three" if attribute == "group" else 3.5)])
    with pytest.raises(LayoutError, match="damaged ONNX model"):
        read(model)


@pytest.mark.parametrize("attributes", [{"group": 3.0}, {"pads": "abcd"}, {"strides": [1.0, 1.0]}, {"kernel_shape": 3}, {"auto_pad": 3}])
def test_d32_attributes_that_would_convert(attributes):
    """D32: whose nodes have attributes of another type: one that Python converts, too."""
    (name,) = attributes
    with pytest.raises(LayoutError, match=rf"damaged ONNX model: Conv 0 \(Conv\): attribute {name} is no (INTS?|STRING)$"):
        read(conv(**attributes))
    with pytest.raises(LayoutError, match=r"DequantizeLinear \d \(DequantizeLinear\): attribute axis is no INT$"):
        read(with_axis(0.0))


def with_axis(axis):
    """Make a QDQ model whose weights are scaled along `axis`."""
    model = conv("int8", operator="QDQ")
    node = next(node for node in model.nodes if node.output[0] == "w real")
    del node.attribute[:]
    node.attribute.append(tiny_onnx.onnx().helper.make_attribute("axis", axis))
    return model


@pytest.mark.parametrize("how", ["initializer", "Constant"])
def test_d32_constants_in_another_file(how, tmp_path, monkeypatch):
    """D32: and so is the content of a model whose constants are in files beside it; by its path it is read."""
    model = tiny_onnx.onnx().load_model_from_string(conv(how=how).content())
    path = tmp_path / "model.onnx"
    tiny_onnx.onnx().save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0, convert_attribute=True)
    (layer,) = depthwise_layers(path)
    assert np.array_equal(layer.weights, layer_of(conv()).weights)
    content = path.read_bytes()
    for folder in (tmp_path.parent, tmp_path):
        monkeypatch.chdir(folder)
        with pytest.raises(LayoutError, match=r"the values of 2 constants \(w the first\) lie in another file.*give the path"):
            read_model(content)
    (tmp_path / "w.bin").write_bytes(b"short")
    for _ in range(2):
        with pytest.raises(LayoutError, match=r"model.onnx: values that lie in another file cannot be read: .*\bw\b"):
            read_model(path)
        (tmp_path / "w.bin").unlink(missing_ok=True)


def test_d32_input_without_a_type():
    """D32: a file whose inputs have no element type here is a `DTypeError`."""
    model = conv()
    model.inputs[0].type.tensor_type.elem_type = 999
    with pytest.raises(DTypeError, match="model input x: no element type here for ONNX's 999"):
        read(model)


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
@pytest.mark.parametrize(("weights_dtype", "zero_point"), [("uint8", 0), ("uint8", 131), ("int8", 0), ("int8", -4)])
def test_d33_uint8(operator, weights_dtype, zero_point):
    """D33: uint8 layers have weights with a zero point; int8 weights and their zero point are uint8 here, 128 more."""
    model = conv("uint8", operator=operator, weights_dtype=weights_dtype, zero_points=(3, zero_point, 200), multiplier=2)
    layer = layer_of(model)
    more = 128 if weights_dtype == "int8" else 0
    assert (layer.dtype, layer.weights.dtype, layer.stored_dtype) == ("uint8", np.uint8, weights_dtype)
    assert layer.quantization.weights_zero_point == zero_point + more
    assert np.array_equal(layer.weights[:, :, 2, 1], stored(model, "w")[5, 0].astype(int) + more)
    assert layer.plan().dtype == np.uint8


def test_d33_one_zero_point():
    """D33: weights with a zero point: one for all."""
    model = conv("uint8", zero_points=(3, 0, 200))
    model.constants = [tensor for tensor in model.constants if tensor.name != "w_zero"]
    model.constant("w_zero", np.array([1, 1, 2], "uint8"))
    assert "weights have one zero point here, these have several" in read(model).skipped[0]

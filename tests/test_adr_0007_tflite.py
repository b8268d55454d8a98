"""ADR 0007: TensorFlow Lite files as depthwise layers."""

import contextlib
import dataclasses
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import tiny_models
from nd4jlike import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError
from nd4jlike.adapters.tflite import Pad, depthwise_layers, read_model
from shared import shared_file
from tiny_models import BIAS, INPUT, OUTPUT, WEIGHTS

pytest.importorskip("tflite", reason="models are read with the tflite package")


def layer_of(tiny):
    (layer,) = depthwise_layers(tiny_models.pack(tiny.model))
    return layer


@pytest.mark.parametrize(("name", "count"), [("alexa", 4), ("hey_jarvis", 4), ("hey_mycroft", 4), ("okay_nabu", 8)])
def test_d22_wake_word_models(name, count):
    """D22: every DEPTHWISE_CONV_2D of all subgraphs."""
    layers = depthwise_layers(tiny_models.packaged_models("pymicro-wakeword")[name])
    assert len(layers) == count
    for layer in layers:
        assert layer.dtype == "int8"
        assert layer.padding == "valid"
        assert layer.kernel == layer.input_shape[1:3]
        assert len(layer.quantization.weights) == layer.channels


def test_d22_person_detect():
    """D22: every DEPTHWISE_CONV_2D of all subgraphs."""
    layers = depthwise_layers(shared_file("models", "person_detect.tflite"))
    assert len(layers) == 14
    assert [layer.multiplier for layer in layers] == [8] + [1] * 13
    assert all(layer.activation == "relu6" and layer.padding == "same" and layer.kernel == (3, 3) for layer in layers)
    assert layers[0].input_shape == (1, 96, 96, 1)


def test_d22_a_layer_prints_its_figures():
    """D22: every DEPTHWISE_CONV_2D of all subgraphs: what one is called and how it is computed fits a line or two, weights are left out."""
    text = repr(depthwise_layers(shared_file("models", "person_detect.tflite"))[-1])
    assert "input_shape=(1, 3, 3, 256)" in text
    assert "stride=(1, 1)" in text
    assert len(text) < 400


def test_d22_every_subgraph():
    """D22: every DEPTHWISE_CONV_2D of all subgraphs, in the order of the file."""
    tiny = tiny_models.depthwise("int8")
    tiny_models.depthwise("float32", model=tiny.model)
    layers = depthwise_layers(tiny_models.pack(tiny.model))
    assert [(layer.subgraph, layer.index, layer.dtype) for layer in layers] == [(0, 0, "int8"), (1, 0, "float32")]


@pytest.mark.parametrize(("old", "new"), [(4, 0), (0, 4), (4, 4)])
def test_d22_both_encodings_of_the_operator(old, new):
    """D22: every DEPTHWISE_CONV_2D, whether its code is in the old byte, the new word or both."""
    tiny = tiny_models.depthwise()
    tiny.model.operatorCodes[0].deprecatedBuiltinCode, tiny.model.operatorCodes[0].builtinCode = old, new
    assert layer_of(tiny).kernel == (3, 3)


def test_d22_none():
    """D22: every DEPTHWISE_CONV_2D: a model without one gives an empty list."""
    assert depthwise_layers(tiny_models.pack(tiny_models.relu())) == []


def test_d23_one_channel():
    """D23: weights come as (kernel height, kernel width, channels, multiplier): of one channel with several filters, as first layers have it."""
    layer = layer_of(tiny_models.depthwise(shape=(1, 5, 6, 1), multiplier=8))
    assert (layer.channels, layer.multiplier, layer.weights.shape) == (1, 8, (3, 3, 1, 8))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("multiplier", [1, 4])
def test_d23_weights_in_four_axes(dtype, multiplier):
    """D23: weights come as (kernel height, kernel width, channels, multiplier), read-only."""
    tiny = tiny_models.depthwise(dtype, kernel=(3, 2), multiplier=multiplier)
    layer = layer_of(tiny)
    assert layer.weights.shape == (3, 2, 3, multiplier)
    assert np.array_equal(layer.weights.reshape(tiny.weights.shape), tiny.weights)
    assert np.array_equal(layer.bias, tiny.bias)
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        layer.bias[0] = 0


def test_d23_float16_behind_dequantize():
    """D23: a constant behind DEQUANTIZE is dequantized."""
    tiny = tiny_models.depthwise("float32")
    for index, values in ((WEIGHTS, tiny.weights), (BIAS, tiny.bias)):
        tiny_models.dequantized(tiny, index, {"dtype": "float16", "values": values})
    layer = layer_of(tiny)
    assert layer.weights.dtype == layer.bias.dtype == np.float32
    assert np.array_equal(layer.weights.reshape(tiny.weights.shape), tiny.weights.astype("float16").astype("float32"))
    assert np.array_equal(layer.bias, tiny.bias.astype("float16").astype("float32"))


@pytest.mark.parametrize(("scales", "zero_points"), [([0.1], [5]), ([0.1, 0.2, 0.3], [1, -2, 3])])
def test_d23_int8_behind_dequantize_is_what_the_interpreter_makes(scales, zero_points):
    """D23: a constant behind DEQUANTIZE is dequantized as the interpreters do it."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    tiny = tiny_models.depthwise("float32")
    stored = np.random.default_rng(1).integers(-128, 128, tiny.weights.shape)
    tiny_models.dequantized(tiny, WEIGHTS, {"dtype": "int8", "values": stored, "scales": scales, "zero_points": zero_points, "axis": 3})
    content = tiny_models.pack(tiny.model)
    interpreter = litert.Interpreter(
        model_content=content, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF, experimental_preserve_all_tensors=True
    )
    interpreter.allocate_tensors()
    interpreter.invoke()
    (layer,) = depthwise_layers(content)
    assert np.array_equal(layer.weights.reshape(tiny.weights.shape), interpreter.get_tensor(WEIGHTS))


def test_d23_a_bias_behind_dequantize():
    """D23: a constant behind DEQUANTIZE is dequantized: scales along its first axis."""
    tiny = tiny_models.depthwise("float32")
    tiny_models.dequantized(tiny, BIAS, {"dtype": "int8", "values": [1, 2, 3], "scales": [0.5, 0.25, 2], "zero_points": [0, 4, 1], "axis": 0})
    assert layer_of(tiny).bias.tolist() == [0.5, -0.5, 4]
    for axis in (1, -1):
        tiny.graph.tensors[-1].quantization.quantizedDimension = axis
        with pytest.raises(LayoutError, match=rf"3 scales along axis {axis} of shape \(3,\)"):
            layer_of(tiny)
    tiny.graph.tensors[-1].quantization = None
    with pytest.raises(LayoutError, match="DEQUANTIZE of INT8 without a scale"):
        layer_of(tiny)


def test_d23_multiplier_from_the_shapes():
    """D23: the multiplier follows from the shapes; an option that contradicts them is refused."""
    tiny = tiny_models.depthwise(multiplier=2)
    tiny.options.depthMultiplier = 0
    assert layer_of(tiny).multiplier == 2
    tiny.options.depthMultiplier = 3
    with pytest.raises(LayoutError, match=r"depthwise layer 0/0 \(output\): depth multiplier 3, but 6 weights for 3 channels"):
        layer_of(tiny)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("activation", [None, "relu", "relu6", "relu_n1_to_1"])
@pytest.mark.parametrize("same", [True, False])
def test_d24_geometry_of_the_file(dtype, activation, same):
    """D24: bias, scales, stride, dilation, padding and activation are the file's."""
    tiny = tiny_models.depthwise(dtype, (2, 9, 8, 3), (2, 3), 2, stride=(1, 2), dilation=(2, 1), same=same, activation=activation)
    layer = layer_of(tiny)
    assert (layer.stride, layer.dilation, layer.padding, layer.activation) == ((1, 2), (2, 1), "same" if same else "valid", activation)
    assert (layer.input_shape, layer.output_shape) == ((2, 9, 8, 3), tuple(tiny.graph.tensors[OUTPUT].shape))
    if dtype == "int8":
        assert layer.quantization.input == (float(np.float32(0.05)), 3)
        assert layer.quantization.output == (float(np.float32(0.09)), -7)
        assert np.array_equal(layer.quantization.weights, tiny.scales.astype("float32"))
    else:
        assert layer.quantization is None


def test_d24_per_tensor_scale_and_no_bias():
    """D24: bias, scales, stride, dilation, padding and activation are the file's: one scale, no bias."""
    layer = layer_of(tiny_models.depthwise(per_channel=False, bias=False))
    assert len(layer.quantization.weights) == 1
    assert layer.bias is None
    tiny = tiny_models.depthwise()
    tiny.layer.inputs = [INPUT, WEIGHTS, -1]
    assert layer_of(tiny).bias is None


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_d24_what_replaces_the_file_s(dtype):
    """D24: one that is given, `quantization=` for the sums or `padding=` for another halo, replaces the file's."""
    layer = layer_of(tiny_models.depthwise(dtype, multiplier=2, activation="relu6"))
    x = np.random.default_rng(0).integers(0, 100, (1, 5, 6, 3)).astype(dtype)
    sums = layer.plan(activation=None, quantization=dataclasses.replace(layer.quantization, output=None))(x).to_numpy()
    assert sums.dtype == ("int64" if dtype == "int16" else "int32")
    assert np.array_equal(layer.quantization.requantize(sums, dtype=dtype, activation=layer.activation), layer.plan()(x).to_numpy())
    assert layer.plan(padding="valid")(x).shape == (1, 3, 4, 6)
    with pytest.raises(TypeError, match=r"^a plan has no option dilatation; it takes weights, bias, stride, dilation, .* isa, dtype, algorithm$"):
        layer.plan(dilatation=2)


@pytest.mark.parametrize("shape", [[-1, 5, 6, 3], [1, 5, 6, 3]])
def test_d24_open_batch(shape):
    """D24: bias, scales, stride, dilation, padding and activation are the file's; an open batch is 1."""
    tiny = tiny_models.depthwise()
    for index in (INPUT, OUTPUT):
        entry = tiny.graph.tensors[index]
        entry.shape, entry.shapeSignature = [*shape[:1], *entry.shape[1:]], [-1, *entry.shape[1:]]
    model = read_model(tiny_models.pack(tiny.model))
    assert model.inputs[0].shape == model.layers[0].input_shape == (1, 5, 6, 3)
    assert model.layers[0].output_shape == (1, 5, 6, 3)


@pytest.mark.parametrize("dtype", ["int64", "float16"])
def test_d25_element_types(dtype):
    """D25: what a plan cannot compute is refused, naming the layer: element types."""
    tiny = tiny_models.depthwise()
    tiny.graph.tensors[INPUT].type = tiny_models.TYPES[dtype]
    for _ in ("the input alone", "the output too"):
        with pytest.raises(DTypeError, match=rf"depthwise layer 0/0 \(output\): input {dtype.upper()}, .* supported are all FLOAT32, all INT8, all UINT8,"):
            layer_of(tiny)
        tiny.graph.tensors[OUTPUT].type = tiny_models.TYPES[dtype]


def test_d25_hybrid():
    """D25: what a plan cannot compute is refused, naming the layer: int8 weights of a float32 layer."""
    tiny = tiny_models.depthwise("float32")
    tiny.graph.tensors[WEIGHTS].type = tiny_models.INT8
    with pytest.raises(DTypeError, match="weights INT8"):
        layer_of(tiny)


def bend_activation(tiny):
    tiny.options.fusedActivationFunction = tiny_models.ACTIVATIONS["tanh"]


def bend_padding(tiny):
    tiny.options.padding = 7


def bend_stride(tiny):
    tiny.options.strideH = 0


def bend_dilation(tiny):
    tiny.options.dilationWFactor = -1


def bend_options(tiny):
    tiny.layer.builtinOptionsType, tiny.layer.builtinOptions = 0, None


def bend_weights_to_variable(tiny):
    tiny.graph.tensors[WEIGHTS].buffer = 0


def bend_weight_zero_point(tiny):
    tiny.graph.tensors[WEIGHTS].quantization.zeroPoint = np.array([0, 1, 0])


def bend_weight_scales(tiny):
    tiny.graph.tensors[WEIGHTS].quantization.scale = np.ones(2, np.float32)
    tiny.graph.tensors[WEIGHTS].quantization.zeroPoint = np.zeros(2, np.int64)


def bend_weight_axis(tiny):
    tiny.graph.tensors[WEIGHTS].quantization.quantizedDimension = 0


def bend_scale_to_nan(tiny):
    tiny.graph.tensors[INPUT].quantization.scale = np.array([np.nan], np.float32)


def bend_no_scale(tiny):
    tiny.graph.tensors[OUTPUT].quantization = None


def bend_zero_point(tiny):
    tiny.graph.tensors[OUTPUT].quantization.zeroPoint = np.array([128])


def bend_bias_shape(tiny):
    tiny.graph.tensors[BIAS].shape = [2]


def bend_input_channels(tiny):
    tiny.graph.tensors[INPUT].shape = [1, 5, 6, 2]


def bend_rank(tiny):
    tiny.graph.tensors[INPUT].shape = [5, 6, 3]


def bend_output_rank(tiny):
    tiny.graph.tensors[OUTPUT].shape = [5, 6, 3]


def bend_other_options(tiny):
    names = tiny_models.schema()
    tiny.layer.builtinOptionsType, tiny.layer.builtinOptions = names.BuiltinOptions.Conv2DOptions, names.Conv2DOptionsT()


def bend_no_weights(tiny):
    tiny.layer.inputs = [INPUT, -1, BIAS]


def bend_one_input(tiny):
    tiny.layer.inputs = [INPUT]


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (bend_activation, "fused activation TANH is not supported; NONE, RELU, RELU_N1_TO_1, RELU6 are"),
        (bend_padding, "padding 7 is not supported; SAME, VALID are"),
        (bend_stride, r"stride \(0, 1\): both are 1 or more"),
        (bend_dilation, r"dilation \(1, -1\): both are 1 or more"),
        (bend_options, "it has no DepthwiseConv2DOptions"),
        (bend_weights_to_variable, r"its weights \(weights\) must be a constant of the file, or one behind DEQUANTIZE"),
        (bend_weight_zero_point, "INT8 weights have zero point 0, these have 1"),
        (bend_weight_scales, "2 scales along axis 3 of its weights; one, or one for each of 3 along axis 3"),
        (bend_weight_axis, "3 scales along axis 0 of its weights"),
        (bend_scale_to_nan, "nan"),
        (bend_no_scale, "0 scales for its output; INT8 activations have one"),
        (bend_zero_point, r"the output zero point must be an int8, -128 to 127: 128"),
        (bend_bias_shape, r"bias of shape \(2,\) for 3 output channels"),
        (bend_input_channels, "2 channels of input, 3 of weights, 3 of output"),
        (bend_rank, r"input \(5, 6, 3\), weights \(1, 3, 3, 3\)"),
        (bend_output_rank, r"output \(5, 6, 3\); \[N, H, W, C\]"),
        (bend_other_options, "it has no DepthwiseConv2DOptions"),
        (bend_no_weights, "it takes an input, weights and an optional bias"),
        (bend_one_input, "it takes an input, weights and an optional bias"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_d25_refusals(bend, message):
    """D25: what a plan cannot compute is refused, naming the layer."""
    tiny = tiny_models.depthwise()
    bend(tiny)
    with pytest.raises(LayoutError, match=f"depthwise layer 0/0.*{message}"):
        layer_of(tiny)


def test_d25_several_zero_points():
    """D25: refused, naming the layer: uint8 weights with several zero points, of which a plan would take the first; no interpreter here takes them either."""
    tiny = tiny_models.depthwise("uint8")
    quantization = tiny.graph.tensors[WEIGHTS].quantization
    quantization.scale = np.full(3, 0.01, np.float32)
    quantization.zeroPoint = np.array([120, 121, 120])
    with pytest.raises(LayoutError, match=r"depthwise layer 0/0.*UINT8 weights have one zero point, these have \[120, 121, 120\]"):
        layer_of(tiny)


def test_d26_truncated_anywhere():
    """D26: a truncated file is a LayoutError, wherever it ends."""
    content = tiny_models.pack(tiny_models.depthwise().model)
    for size in range(len(content)):
        with pytest.raises(LayoutError, match="TensorFlow Lite model"):
            depthwise_layers(content[:size])


def test_d26_real_model_truncated():
    """D26: a truncated file is a LayoutError, wherever it ends."""
    content = tiny_models.packaged_models("pymicro-wakeword")["alexa"].read_bytes()
    for size in [*range(0, len(content), 977), len(content) - 1]:
        with pytest.raises(LayoutError, match="TensorFlow Lite model"):
            depthwise_layers(content[:size])


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\x89PNG\r\n\x1a\n" + bytes(100), b"\x08\0\0\0TFL3", bytes(1000), b"\xff\xff\xff\xffTFL3" + bytes(100)])
def test_d26_foreign(content, tmp_path):
    """D26: a foreign file is a LayoutError."""
    path = tmp_path / "foreign.tflite"
    path.write_bytes(content)
    for source in (content, path, str(path)):
        with pytest.raises(LayoutError, match="TensorFlow Lite model"):
            depthwise_layers(source)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_d26_a_device_is_not_read_whole(path):
    """D26: a foreign file is a LayoutError, found in its first bytes."""
    if not os.path.exists(path):  # noqa: PTH110
        pytest.skip(f"no {path}")
    with pytest.raises(LayoutError, match=f"{path}: not a TensorFlow Lite model"):
        depthwise_layers(path)


def test_d26_damaged_anywhere():
    """D26: a damaged file is refused or read; it raises nothing but this library's errors, and soon."""
    content = tiny_models.pack(tiny_models.depthwise().model)
    numbers = random.Random(0)
    for _ in range(3000):
        damaged = bytearray(content)
        for _ in range(numbers.choice([1, 1, 2, 8])):
            damaged[numbers.randrange(len(damaged))] = numbers.choice([0, 1, 127, 128, 255, numbers.randrange(256)])
        with contextlib.suppress(Nd4jLikeError):
            depthwise_layers(bytes(damaged))


def bend_tensor_index(tiny):
    tiny.layer.inputs = [INPUT, 4, BIAS]


def bend_code_index(tiny):
    tiny.layer.opcodeIndex = 1


def bend_buffer_index(tiny):
    tiny.graph.tensors[WEIGHTS].buffer = 3


def bend_short_constant(tiny):
    tiny.model.buffers[1].data = tiny.model.buffers[1].data[:-1]


def bend_huge_shape(tiny):
    tiny.graph.tensors[WEIGHTS].shape = [1, 2**31 - 1, 2**31 - 1, 3]


def bend_negative_shape(tiny):
    tiny.graph.tensors[INPUT].shape = [1, -2, 6, 3]


def bend_input_index(tiny):
    tiny.graph.inputs = [4]


def bend_subgraphs(tiny):
    tiny.model.subgraphs = []


def bend_distant_buffer(tiny):
    tiny.model.buffers[1].data, tiny.model.buffers[1].offset, tiny.model.buffers[1].size = None, 2**40, 2**40


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (bend_tensor_index, "operator 0/0 names tensor 4 of 4"),
        (bend_code_index, "operator 0/0 has code 1 of 1"),
        (bend_buffer_index, "tensor 0/1 is in buffer 3 of 3"),
        (bend_short_constant, r"tensor 0/1 \(weights\) of shape \(1, 3, 3, 3\) has 26 of 27 bytes"),
        (bend_huge_shape, rf".* has 27 of {3 * (2**31 - 1) ** 2} bytes"),
        (bend_negative_shape, r"tensor 0/0 \(input\) has shape \(1, -2, 6, 3\)"),
        (bend_input_index, "input 0 is tensor 4 of 4"),
        (bend_subgraphs, "it has no subgraph"),
        (bend_distant_buffer, "buffer 1 ends at byte 2199023255552 of"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_d26_indices_and_sizes(bend, message):
    """D26: every count, index and size in the file is checked before it is used."""
    tiny = tiny_models.depthwise()
    bend(tiny)
    with pytest.raises(LayoutError, match=f"damaged TensorFlow Lite model: {message}"):
        layer_of(tiny)


def test_d26_data_behind_the_tables():
    """D26: every count, index and size is checked; files of more than 2 GB keep their data behind the tables."""
    tiny = tiny_models.depthwise()
    values = bytes(tiny.model.buffers[1].data)
    buffer = tiny.model.buffers[1]
    buffer.data, buffer.offset, buffer.size = None, 2**20, len(values)
    size = len(tiny_models.pack(tiny.model))
    buffer.offset = size
    (layer,) = depthwise_layers(tiny_models.pack(tiny.model) + values)
    assert np.array_equal(layer.weights.reshape(tiny.weights.shape), tiny.weights)


def test_d26_missing_file(tmp_path):
    """D26: a file that is not there is what Python says it is."""
    with pytest.raises(FileNotFoundError):
        depthwise_layers(tmp_path / "none.tflite")


def test_d3_missing_package(monkeypatch):
    """D3: MissingLibraryError says what to install."""
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(MissingLibraryError, match=r"pip install nd4jlike\[cli\]"):
        depthwise_layers(b"\0\0\0\0TFL3")


def test_d1_import_is_light():
    """D1: importing an adapter imports no foreign library."""
    program = "import sys, nd4jlike.adapters.tflite, nd4jlike.verify, nd4jlike.cli; print({'tflite', 'flatbuffers', 'rich', 'tflite_micro'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


PAD = [(0, 0), (1, 2), (2, 3), (0, 0)]


def padded(dtype="int8", amounts=PAD, value=None, **options):
    tiny = tiny_models.depthwise(dtype, (1, 11, 10, 5), **{"same": False, **options})
    tiny.small = tiny_models.padded(tiny, amounts, value=value)
    return tiny


@pytest.mark.parametrize(("dtype", "value"), [("int8", None), ("int8", 3), ("float32", None), ("float32", 0.0)])
def test_d27_pad(dtype, value):
    """D27: `layer.pad` tells of a PAD, or a PADV2 of the zero point; `layer.fused()` is both as one layer."""
    tiny = padded(dtype, value=value)
    (layer,) = depthwise_layers(tiny_models.pack(tiny.model))
    assert (layer.input, layer.padding, layer.input_shape) == (INPUT, "valid", (1, 11, 10, 5))
    assert layer.pad == Pad(tiny.small, ((1, 2), (2, 3)))
    fused = layer.fused()
    assert (fused.input, fused.padding, fused.input_shape, fused.pad) == (tiny.small, ((1, 2), (2, 3)), (1, 8, 5, 5), None)
    assert fused.fused() is fused
    x = np.random.default_rng(0).integers(-9, 9, (1, 8, 5, 5)).astype(dtype)
    pad = np.pad(x, PAD, constant_values=3 if dtype == "int8" else 0)
    assert np.allclose(fused.plan()(x).to_numpy(), layer.plan()(pad).to_numpy(), rtol=1e-5, atol=1e-5)
    if dtype == "int8":
        assert np.array_equal(fused.plan()(x).to_numpy(), layer.plan()(pad).to_numpy())


def bent(what):
    """Make a layer behind a PAD that is no part of it."""
    if what == "same":
        return padded(same=True)
    if what == "value":
        return padded(value=4)
    if what in ("channels", "batch"):
        tiny = padded(amounts=[(0, 0), (0, 0), (0, 0), (0, 1)] if what == "channels" else PAD)
        if what == "batch":
            tiny.graph.tensors[tiny.small].shape[0] = 2
        return tiny
    tiny = padded()
    pad = tiny.graph.operators[0]
    if what == "computed":
        tiny.graph.tensors[pad.inputs[1]].buffer = 0
    elif what == "negative":
        tiny.model.buffers[tiny.graph.tensors[pad.inputs[1]].buffer].data = np.array([[0, 0], [-1, 4], [2, 3], [0, 0]], np.int32).view(np.uint8).reshape(-1)
    elif what == "shape":
        tiny.graph.tensors[pad.inputs[1]].shape = [2, 4]
    elif what == "scale":
        tiny.graph.tensors[tiny.small].quantization.scale = np.array([0.06], np.float32)
    elif what == "type":
        tiny.graph.tensors[tiny.small].type = tiny_models.FLOAT32
    elif what == "inputs":
        pad.inputs = pad.inputs[:1]
    elif what == "mirror":
        code = tiny.model.operatorCodes[pad.opcodeIndex]
        code.builtinCode = code.deprecatedBuiltinCode = tiny_models.schema().BuiltinOperator.MIRROR_PAD
    return tiny


@pytest.mark.parametrize("what", ["same", "value", "channels", "batch", "computed", "negative", "shape", "scale", "type", "inputs", "mirror"])
def test_d27_other_pads(what):
    """D27: `layer.pad` tells of a PAD that pads height and width by constants before a VALID layer, and of no other."""
    (layer,) = depthwise_layers(tiny_models.pack(bent(what).model))
    assert layer.pad is None
    assert layer.fused() is layer

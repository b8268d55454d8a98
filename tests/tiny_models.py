"""TensorFlow Lite models of a layer or two, as trees that a test can bend before they are packed; and where real models lie."""

import importlib.metadata
from types import SimpleNamespace

import numpy as np
import pytest

FLOAT32, FLOAT16, INT32, UINT8, INT64, INT16, INT8 = 0, 1, 2, 3, 4, 7, 9
TYPES = {"float32": FLOAT32, "float16": FLOAT16, "int32": INT32, "uint8": UINT8, "int64": INT64, "int16": INT16, "int8": INT8}
ACTIVATIONS = {None: 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3, "tanh": 4}
INPUT, WEIGHTS, BIAS, OUTPUT = range(4)


def schema():
    """Import the classes that write models."""
    return pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated", reason="models are written with tflite-micro's schema")


def packaged_models(package, suffix=".tflite"):
    """Paths of the models that an installed package brings, by name; a skip without it."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the models of {package} are not here")
    return {file.stem: file.locate() for file in files if file.suffix == suffix}


def pack(model):
    """Bytes of the file."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def tensor(model, graph, name, dtype, shape, *, values=None, scales=None, zero_points=0, axis=0):
    """Add a tensor; its index."""
    result = schema().TensorT()
    result.name, result.type, result.shape, result.buffer = name, TYPES[dtype], list(shape), 0
    if values is not None:
        result.buffer = len(model.buffers)
        model.buffers.append(schema().BufferT())
        model.buffers[-1].data = np.frombuffer(np.ascontiguousarray(values, dtype).tobytes(), np.uint8)
    if scales is not None:
        result.quantization = schema().QuantizationParametersT()
        result.quantization.scale = np.asarray(scales, np.float32).reshape(-1)
        result.quantization.zeroPoint = np.broadcast_to(np.int64(zero_points), result.quantization.scale.shape).copy()
        result.quantization.quantizedDimension = axis
    graph.tensors.append(result)
    return len(graph.tensors) - 1


def operator(model, graph, code, inputs, outputs, options=None):
    """Add an operator of the builtin `code`; the operator."""
    entry = schema().OperatorCodeT()
    entry.builtinCode = entry.deprecatedBuiltinCode = code
    entry.version = 3
    result = schema().OperatorT()
    result.opcodeIndex, result.inputs, result.outputs = len(model.operatorCodes), inputs, outputs
    if options is not None:
        result.builtinOptionsType, result.builtinOptions = options
    model.operatorCodes.append(entry)
    graph.operators.append(result)
    return result


def subgraph(model):
    """Add an empty graph."""
    graph = schema().SubGraphT()
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
    model.subgraphs.append(graph)
    return graph


def empty():
    """Make a model without a graph."""
    model = schema().ModelT()
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [], [], [schema().BufferT()]
    return model


def depthwise(
    dtype="int8",
    shape=(1, 5, 6, 3),
    kernel=(3, 3),
    multiplier=1,
    *,
    stride=(1, 1),
    dilation=(1, 1),
    same=True,
    activation=None,
    per_channel=True,
    bias=True,
    seed=0,
    model=None,
):
    """Add a graph of one depthwise layer, with tensors INPUT, WEIGHTS, BIAS, OUTPUT; the tree and what is in it."""
    random = np.random.default_rng(seed)
    batch, *extents, channels = shape
    outputs = channels * multiplier
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    made = [-(-n // s) if same else (n - r) // s + 1 for n, r, s in zip(extents, reach, stride, strict=True)]

    model = model or empty()
    graph = subgraph(model)
    quantized = dtype != "float32"
    if quantized:
        weights = random.integers(-127, 128, (1, *kernel, outputs)).astype("int8")
        values = random.integers(-5000, 5000, outputs).astype("int64" if dtype == "int16" else "int32")
        if dtype == "uint8":
            weights = (weights + np.int16(128)).astype("uint8")
            per_channel = False
        scales = random.uniform(0.005, 0.02, outputs if per_channel else 1)
    else:
        weights, values, scales = random.standard_normal((1, *kernel, outputs), "float32"), random.standard_normal(outputs, "float32"), None

    def quantization(scale, zero_point):
        return {"scales": scale, "zero_points": zero_point} if quantized else {}

    zero_points = {"uint8": (131, 120, 121), "int16": (0, 0, 0)}.get(dtype, (3, 0, -7))
    tensor(model, graph, "input", dtype, shape, **quantization(0.05, zero_points[0]))
    tensor(model, graph, "weights", str(weights.dtype), weights.shape, values=weights, **quantization(scales, zero_points[1]), axis=3)
    tensor(model, graph, "bias", str(values.dtype), (outputs,), values=values, **quantization(0.05 * scales if quantized else None, 0))
    tensor(model, graph, "output", dtype, (batch, *made, outputs), **quantization(0.09, zero_points[2]))
    options = schema().DepthwiseConv2DOptionsT()
    options.padding = 0 if same else 1
    options.strideH, options.strideW = stride
    options.dilationHFactor, options.dilationWFactor = dilation
    options.depthMultiplier, options.fusedActivationFunction = multiplier, ACTIVATIONS[activation]
    code = schema().BuiltinOperator.DEPTHWISE_CONV_2D
    inputs = [INPUT, WEIGHTS, BIAS] if bias else [INPUT, WEIGHTS]
    layer = operator(model, graph, code, inputs, [OUTPUT], (schema().BuiltinOptions.DepthwiseConv2DOptions, options))
    graph.inputs, graph.outputs = [INPUT], [OUTPUT]
    return SimpleNamespace(model=model, graph=graph, layer=layer, options=options, weights=weights, bias=values, scales=scales)


def padded(tiny, amounts, *, value=None):
    """Put a PAD (a PADV2 of `value`) before the layer: its input becomes as much smaller as `amounts`, four pairs, say; the index of that tensor."""
    model, graph = tiny.model, tiny.graph
    after = graph.tensors[INPUT]
    shape = [extent - before - behind for extent, (before, behind) in zip(after.shape, amounts, strict=True)]
    dtype = next(name for name, code in TYPES.items() if code == after.type)
    q = after.quantization
    small = tensor(model, graph, "small", dtype, shape, **({} if q is None else {"scales": q.scale, "zero_points": q.zeroPoint[0]}))
    inputs = [small, tensor(model, graph, "amounts", "int32", (4, 2), values=np.array(amounts))]
    if value is not None:
        inputs.append(
            tensor(model, graph, "value", dtype, (), values=np.array(value), **({} if q is None else {"scales": q.scale, "zero_points": q.zeroPoint[0]}))
        )
    layer = graph.operators.pop()
    names = schema().BuiltinOptions
    options = (names.PadV2Options, schema().PadV2OptionsT()) if value is not None else (names.PadOptions, schema().PadOptionsT())
    operator(model, graph, getattr(schema().BuiltinOperator, "PAD" if value is None else "PADV2"), inputs, [INPUT], options)
    graph.operators.append(layer)
    graph.inputs = [small]
    return small


def dequantized(tiny, index, stored):
    """Put the constant `index` of a float32 layer behind a DEQUANTIZE of `stored`, the values and scales of another tensor."""
    graph = tiny.graph
    source = tensor(tiny.model, graph, "stored", stored["dtype"], graph.tensors[index].shape, **{k: v for k, v in stored.items() if k != "dtype"})
    graph.tensors[index].buffer = 0
    layer = graph.operators.pop()
    operator(tiny.model, graph, schema().BuiltinOperator.DEQUANTIZE, [source], [index])
    graph.operators.append(layer)


def relu():
    """Make a model without a depthwise layer."""
    model = empty()
    graph = subgraph(model)
    for name in ("input", "output"):
        tensor(model, graph, name, "float32", (1, 4))
    operator(model, graph, schema().BuiltinOperator.RELU, [0], [1])
    graph.inputs, graph.outputs = [0], [1]
    return model

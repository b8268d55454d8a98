"""Models of one layer, as the reference interpreters read them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nd4jlike.adapters.onnx import DepthwiseLayer as OnnxLayer
    from nd4jlike.adapters.tflite import DepthwiseLayer

    _Array = npt.NDArray[Any]

__all__ = ["onnx_model_of", "tflite_model_of"]

_CODES = {None: "NONE", "relu": "RELU", "relu6": "RELU6", "relu_n1_to_1": "RELU_N1_TO_1"}


def tflite_model_of(schema: Any, layer: DepthwiseLayer, shape: tuple[int, ...], copies: int) -> bytes:
    """Write a model of one layer."""
    quantization, outputs = layer.quantization, layer.channels * layer.multiplier
    dtype = np.dtype(layer.dtype)
    buffers: list[Any] = [schema.BufferT()]
    tensors: list[Any] = []
    operators: list[Any] = []

    def tensor(kind: np.dtype[Any], extents: Sequence[int], data: _Array | None, scales: Any, zero_point: int = 0, axis: int = 0) -> None:
        result = schema.TensorT()
        result.name, result.type, result.shape, result.buffer = f"tensor {len(tensors)}", getattr(schema.TensorType, kind.name.upper()), list(extents), 0
        if data is not None:
            result.buffer = len(buffers)
            buffers.append(schema.BufferT())
            buffers[-1].data = np.frombuffer(np.ascontiguousarray(data, kind).tobytes(), np.uint8)
        if quantization is not None:
            result.quantization = schema.QuantizationParametersT()
            result.quantization.scale = np.asarray(scales, np.float32).reshape(-1)
            result.quantization.zeroPoint = np.full(len(result.quantization.scale), zero_point, np.int64)
            result.quantization.quantizedDimension = axis
        tensors.append(result)

    x_scale, scales, y_scale = ((1.0, 0), (1.0,), (1.0, 0)) if quantization is None else (quantization.input, quantization.weights, quantization.output)
    tensor(dtype, shape, None, *x_scale)
    zero_point = quantization.weights_zero_point if quantization else 0
    # XNNPACK takes one scale of uint8 weights along the first axis only.
    tensor(layer.weights.dtype, (1, *layer.kernel, outputs), layer.weights, scales, zero_point, axis=0 if layer.dtype == "uint8" else 3)
    # A bias always, of zeros where the layer has none: XNNPACK crashes without.
    bias = layer.bias if layer.bias is not None else np.zeros(outputs, {"float32": "float32", "int16": "int64"}.get(layer.dtype, "int32"))
    tensor(bias.dtype, (outputs,), bias, np.float32(x_scale[0]) * np.array(scales, np.float32))

    options = schema.DepthwiseConv2DOptionsT()
    options.padding = getattr(schema.Padding, str(layer.padding).upper())
    options.strideH, options.strideW = layer.stride
    options.dilationHFactor, options.dilationWFactor = layer.dilation
    options.depthMultiplier = layer.multiplier
    options.fusedActivationFunction = getattr(schema.ActivationFunctionType, _CODES[layer.activation])
    for _ in range(copies):
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0, 1, 2], [len(tensors)]
        operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.DepthwiseConv2DOptions, options
        operators.append(operator)
        tensor(dtype, (shape[0], *layer.output_shape[1:]), None, *y_scale)

    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEPTHWISE_CONV_2D
    code.version = 3
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = tensors, operators
    graph.inputs, graph.outputs = [0], [operator.outputs[0] for operator in operators]
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [code], [graph], buffers
    builder = importlib.import_module("flatbuffers").Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def onnx_model_of(onnx: Any, layer: OnnxLayer, shape: tuple[int, ...], copies: int) -> bytes:
    """Write a model of one layer: a node, or three of a QDQ layer."""
    helper, q = onnx.helper, layer.quantization
    outputs = layer.channels * layer.multiplier
    element = helper.np_dtype_to_tensor_dtype(np.dtype(layer.dtype))
    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, values: Any) -> str:
        constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    weights = layer.weights.transpose(2, 3, 0, 1).reshape(outputs, 1, *layer.kernel)
    if str(weights.dtype) != layer.stored_dtype:
        weights = (weights ^ np.uint8(128)).view(np.int8)
    b = [] if layer.bias is None else [constant("b", layer.bias)]
    attributes = {"kernel_shape": layer.kernel, "strides": layer.stride, "dilations": layer.dilation, "group": layer.channels}
    if isinstance(layer.padding, str):
        attributes["auto_pad"] = "SAME_UPPER"
    else:
        attributes["pads"] = [sides[side] for side in (0, 1) for sides in layer.padding]
    if q is not None:
        scales = np.array(q.weights, np.float32).reshape(-1 if len(q.weights) > 1 else ())
        zero_points = np.full(scales.shape, layer.stored_zero_point, layer.stored_dtype)
        x_scaling = [constant("x_scale", np.float32(q.input[0])), constant("x_zero_point", np.array(q.input[1], layer.dtype))]
        w_scale = constant("w_scale", scales)
        y_scaling = [constant("y_scale", np.float32(q.output[0])), constant("y_zero_point", np.array(q.output[1], layer.dtype))]
        if b and layer.operator == "QDQ":
            b_scale = constant("b_scale", np.float32(q.input[0]) * scales)
    for i in range(copies):
        w = constant(f"w_{i}", weights)  # onnxruntime fails to convert weights that nodes share
        w_scaling = [] if q is None else [w_scale, constant(f"w_zero_point_{i}", zero_points)]
        if q is None:
            nodes.append(helper.make_node("Conv", ["x", w, *b], [f"y{i}"], **attributes))
        elif layer.operator == "QLinearConv":
            nodes.append(helper.make_node("QLinearConv", ["x", *x_scaling, w, *w_scaling, *y_scaling, *b], [f"y{i}"], **attributes))
        else:
            nodes.append(helper.make_node("DequantizeLinear", ["x", *x_scaling], [f"x{i}"]))
            nodes.append(helper.make_node("DequantizeLinear", [w, *w_scaling], [f"w{i}"], axis=0))
            nodes += [helper.make_node("DequantizeLinear", [*b, b_scale], [f"b{i}"], axis=0)] if b else []
            nodes.append(helper.make_node("Conv", [f"x{i}", f"w{i}", *([f"b{i}"] if b else [])], [f"z{i}"], **attributes))
            nodes.append(helper.make_node("QuantizeLinear", [f"z{i}", *y_scaling], [f"y{i}"]))
    graph = helper.make_graph(
        nodes,
        "one layer",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info(f"y{i}", element, None) for i in range(copies)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content

"""TensorFlow Lite models of quantized depthwise convolutions side by side, and the interpreters that run them."""

import numpy as np
import pytest

from tiny_models import TYPES

ACTIVATION_CODES = {None: 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}


def models(layers):
    """Bytes of a model whose layers each have an input and an output.

    Of each layer: x_shape, weights (kH, kW, C, M), bias or None, quantization ((scale, zero), scales, (scale, zero)), out_shape, stride, dilation,
    same, activation; dtype (of input and output, int8), weights_zero_point (0).
    """
    schema = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated", reason="models are written with tflite-micro's schema")
    import flatbuffers

    whole, graph = schema.ModelT(), schema.SubGraphT()
    whole.buffers = [schema.BufferT()]
    graph.tensors, graph.inputs, graph.outputs, graph.operators = [], [], [], []

    def tensor(name, dtype, shape, scale, zero, values=None, axis=0):
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.shape, tensor.buffer = name, TYPES[str(dtype)], list(shape), 0
        if values is not None:
            tensor.buffer = len(whole.buffers)
            whole.buffers.append(schema.BufferT())
            whole.buffers[-1].data = values.tobytes()
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = np.asarray(scale, np.float32).reshape(-1)
        tensor.quantization.zeroPoint = np.broadcast_to(np.int64(zero), tensor.quantization.scale.shape).copy()
        tensor.quantization.quantizedDimension = axis
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    for layer in layers:
        (input_scale, input_zero), scales, (output_scale, output_zero) = layer["quantization"]
        weights, bias, dtype = layer["weights"], layer["bias"], layer.get("dtype", "int8")
        kh, kw, channels, multiplier = weights.shape
        scales = np.asarray(scales, np.float32).reshape(-1)
        # One scale, along axis 0, or XNNPACK leaves a uint8 layer to the other kernels.
        if dtype != "uint8":
            scales = np.broadcast_to(scales, channels * multiplier)
        x = tensor("input", dtype, layer["x_shape"], input_scale, input_zero)
        w_zero, axis = layer.get("weights_zero_point", 0), 0 if dtype == "uint8" else 3
        w = tensor("weights", weights.dtype, (1, kh, kw, channels * multiplier), scales, w_zero, weights, axis)
        inputs = [x, w]
        if bias is not None:
            inputs.append(tensor("bias", bias.dtype, bias.shape, np.float32(input_scale) * scales, 0, bias))
        y = tensor("output", dtype, layer["out_shape"], output_scale, output_zero)

        options = schema.DepthwiseConv2DOptionsT()
        options.padding = 0 if layer["same"] else 1
        options.strideH, options.strideW = layer["stride"]
        options.dilationHFactor, options.dilationWFactor = layer["dilation"]
        options.depthMultiplier = multiplier
        options.fusedActivationFunction = ACTIVATION_CODES[layer["activation"]]
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = 0, inputs, [y]
        operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.DepthwiseConv2DOptions, options
        graph.operators.append(operator)
        graph.inputs.append(x)
        graph.outputs.append(y)

    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEPTHWISE_CONV_2D
    code.version = 3
    whole.version, whole.operatorCodes, whole.subgraphs = 3, [code], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run_tflite_micro(content, inputs):
    """Give the outputs of TensorFlow Lite Micro's interpreter."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime", reason="tflite-micro is the reference")
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 24)
    for i, x in enumerate(inputs):
        interpreter.set_input(x, i)
    interpreter.invoke()
    return [np.array(interpreter.get_output(i)) for i in range(len(inputs))]


def run_litert(content, inputs, *, xnnpack):
    """Give the outputs of LiteRT's interpreter: its XNNPACK delegate, or its reference kernels."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    kind = litert.OpResolverType.BUILTIN if xnnpack else litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model_content=content, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    for detail, x in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

"""TensorFlow Lite models of one int8 depthwise convolution, and the interpreters that run them."""

import numpy as np
import pytest

ACTIVATION_CODES = {None: 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}


def model(x_shape, weights, bias, quantization, out_shape, *, stride, dilation, same, activation):
    """Bytes of the model; weights (kH, kW, C, M), quantization ((scale, zero), scales, (scale, zero))."""
    schema = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated", reason="models are written with tflite-micro's schema")
    import flatbuffers

    (input_scale, input_zero), scales, (output_scale, output_zero) = quantization
    kh, kw, channels, multiplier = weights.shape
    scales = np.broadcast_to(np.asarray(scales, np.float32), channels * multiplier)
    int32, int8 = 2, 9

    def buffer(data):
        buffer = schema.BufferT()
        buffer.data = data
        return buffer

    def tensor(name, kind, shape, buffer_index, scale, zero, axis=0):
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.shape, tensor.buffer = name, kind, list(shape), buffer_index
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = np.asarray(scale, np.float32).reshape(-1)
        tensor.quantization.zeroPoint = np.broadcast_to(np.int64(zero), tensor.quantization.scale.shape).copy()
        tensor.quantization.quantizedDimension = axis
        return tensor

    options = schema.DepthwiseConv2DOptionsT()
    options.padding = 0 if same else 1
    options.strideH, options.strideW = stride
    options.dilationHFactor, options.dilationWFactor = dilation
    options.depthMultiplier = multiplier
    options.fusedActivationFunction = ACTIVATION_CODES[activation]

    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0, 1, 2], [3]
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.DepthwiseConv2DOptions, options

    graph = schema.SubGraphT()
    graph.tensors = [
        tensor("input", int8, x_shape, 0, input_scale, input_zero),
        tensor("weights", int8, (1, kh, kw, channels * multiplier), 1, scales, 0, axis=3),
        tensor("bias", int32, (channels * multiplier,), 2, np.float32(input_scale) * scales, 0),
        tensor("output", int8, out_shape, 0, output_scale, output_zero),
    ]
    graph.inputs, graph.outputs, graph.operators = [0], [3], [operator]

    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEPTHWISE_CONV_2D
    code.version = 3

    whole = schema.ModelT()
    whole.version, whole.operatorCodes, whole.subgraphs = 3, [code], [graph]
    whole.buffers = [buffer(data) for data in (None, weights.tobytes(), np.ascontiguousarray(bias, np.int32).tobytes())]
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run_tflite_micro(content, x):
    """Run TensorFlow Lite Micro's interpreter."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime", reason="tflite-micro is the reference")
    interpreter = runtime.Interpreter.from_bytes(content)
    interpreter.set_input(x, 0)
    interpreter.invoke()
    return np.array(interpreter.get_output(0))


def run_litert(content, x, *, xnnpack):
    """Run LiteRT's interpreter: its XNNPACK delegate, or its reference kernels."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    kind = litert.OpResolverType.BUILTIN if xnnpack else litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model_content=content, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

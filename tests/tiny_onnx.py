"""ONNX models of a layer or two, as graphs that a test can bend before they are saved."""

import numpy as np
import pytest


def onnx():
    """Import the package that writes models."""
    return pytest.importorskip("onnx", reason="onnx is not installed: models are written with it")


def runtime():
    """Import the reference."""
    onnx()
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: it is the reference")


class Model:
    """Nodes, constants, inputs and outputs, by name."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, name, values, how="initializer"):
        """Add a constant; its name."""
        tensor = onnx().numpy_helper.from_array(np.asarray(values), name)
        if how == "initializer":
            self.constants.append(tensor)
        elif how == "Constant":
            self.nodes.append(onnx().helper.make_node("Constant", [], [name], value=tensor))
        else:
            tensor.name = f"{name} stored"
            self.constants.append(tensor)
            self.nodes.append(onnx().helper.make_node("Identity", [tensor.name], [name]))
        return name

    def node(self, operator, inputs, outputs, **attributes):
        """Add a node; its first output."""
        self.nodes.append(onnx().helper.make_node(operator, inputs, outputs, name=f"{operator} {len(self.nodes)}", **attributes))
        return outputs[0]

    def input(self, name, dtype, shape):
        """Add an input; its name."""
        element = onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(onnx().helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name, dtype):
        """Add an output of any shape."""
        self.outputs.append(onnx().helper.make_tensor_value_info(name, onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None))

    def content(self):
        """Bytes of the file."""
        graph = onnx().helper.make_graph(self.nodes, "tiny", self.inputs, self.outputs, self.constants)
        return onnx().helper.make_model(graph, opset_imports=[onnx().helper.make_opsetid("", 17)], ir_version=8).SerializeToString()

    def save(self, folder):
        """Write the file; its path."""
        path = folder / "model.onnx"
        path.write_bytes(self.content())
        return path


def conv(
    dtype="float32",
    shape=(1, 3, 9, 8),
    kernel=(3, 3),
    multiplier=1,
    *,
    bias=True,
    how="initializer",
    operator="QLinearConv",
    weights_dtype=None,
    per_channel=True,
    zero_points=(3, 0, -7),
    scales=(0.05, 0.02, 0.09),
    seed=0,
    **attributes,
):
    """Make a model of one depthwise convolution from "x" to "y"; quantized as a QLinearConv, or as "QDQ"."""
    random = np.random.default_rng(seed)
    channels, spatial = shape[1], len(kernel)
    outputs = channels * multiplier
    model = Model()
    attributes = {"group": channels, "kernel_shape": kernel, "strides": [1] * spatial, "dilations": [1] * spatial, **attributes}
    quantized = np.dtype(dtype).kind in "iu"
    if not quantized:
        x = model.input("x", dtype, shape)
        weights = model.constant("w", random.standard_normal((outputs, 1, *kernel)).astype(dtype), how)
        b = [model.constant("b", random.standard_normal(outputs).astype(dtype), how)] if bias else []
        model.node("Conv", [x, weights, *b], ["y"], **attributes)
        model.output("y", dtype)
        return model
    weights_dtype = weights_dtype or dtype
    limits = np.iinfo(weights_dtype)
    x = model.input("x", dtype, shape)
    w_scales = (scales[1] * random.uniform(0.3, 1, outputs if per_channel else ())).astype("float32")
    w = model.constant("w", random.integers(limits.min, limits.max, (outputs, 1, *kernel), weights_dtype, endpoint=True), how)
    b = [model.constant("b", random.integers(-5000, 5000, outputs).astype("int32"), how)] if bias else []
    x_scaling = [model.constant("x_scale", np.float32(scales[0]), how), model.constant("x_zero", np.array(zero_points[0], dtype), how)]
    w_scaling = [model.constant("w_scale", w_scales, how), model.constant("w_zero", np.full(w_scales.shape, zero_points[1], weights_dtype), how)]
    y_scaling = [model.constant("y_scale", np.float32(scales[2]), how), model.constant("y_zero", np.array(zero_points[2], dtype), how)]
    if operator == "QLinearConv":
        model.node("QLinearConv", [x, *x_scaling, w, *w_scaling, *y_scaling, *b], ["y"], **attributes)
    else:
        real = [model.node("DequantizeLinear", [x, *x_scaling], ["x real"]), model.node("DequantizeLinear", [w, *w_scaling], ["w real"], axis=0)]
        if b:
            b_scaling = [model.constant("b_scale", np.float32(scales[0]) * w_scales, how), model.constant("b_zero", np.zeros(w_scales.shape, "int32"), how)]
            real.append(model.node("DequantizeLinear", [*b, *b_scaling], ["b real"], axis=0))
        model.node("Conv", real, ["y real"], **attributes)
        model.node("QuantizeLinear", ["y real", *y_scaling], ["y"])
    model.output("y", dtype)
    return model

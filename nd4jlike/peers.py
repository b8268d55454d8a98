"""Other libraries' depthwise convolutions, each prepared once and called often, for `nd4jlike.bench` (ADR 0014)."""

from __future__ import annotations

import ctypes
import importlib
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nd4jlike.dtypes import dtype as element_type
from nd4jlike.dtypes import numpy_dtype
from nd4jlike.errors import LayoutError, MissingLibraryError, Nd4jLikeError, UnsupportedLayoutError
from nd4jlike.geometry import Window
from nd4jlike.interpreters import LiteRtXnnpack, TfliteMicro
from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from nd4jlike.interpreters import Reference

    _Array = npt.NDArray[Any]

__all__ = ["DTYPES", "PEERS", "Call", "Case", "UnsupportedCaseError", "prepare"]


DTYPES = ("float32", "int8", "uint8", "int16", "float16", "bfloat16", "float64")
_FLOATS = ("float32", "float16", "bfloat16", "float64")


class UnsupportedCaseError(Nd4jLikeError):
    """A library has no such convolution, or this module does not ask for it."""


class Call(NamedTuple):
    """A convolution that is ready to run.

    Attributes
    ----------
    run : callable
        Computes; takes nothing.
    result : callable
        Gives what the last run computed, shape (N, H, W, C*M), of the case's element type.
    note : str
        Version, and in what layout it reads and writes.
    """

    run: Callable[[], object]
    result: Callable[[], _Array]
    note: str


@dataclass(frozen=True)
class Case:
    """One layer with its values: TensorFlow Lite's ``"same"`` padding, a bias, no activation.

    Attributes
    ----------
    shape : (int, int, int, int)
        Of the input: N, H, W, C.
    kernel, stride, dilation : (int, int)
        Height and width.
    multiplier : int
        Output channels for each input channel.
    dtype : {"float32", "int8", "uint8", "int16", "float16", "bfloat16", "float64"}
        Of input and result, and of floats' weights and bias. int8 and uint8: the lowest number stands for 0, as behind a ReLU. Integers' weights are int8
        with a scale for each output channel, but uint8 for uint8, with one scale and a zero point.
    threads : int
        That a library may use.
    seed : int
        Of the values.
    data_format : {"NHWC", "NCHW"}
        In what order dense arrays lie in memory. Shapes and values are NHWC in either.

    Raises
    ------
    LayoutError
        For extents below 1, other element types and other formats.
    MissingLibraryError
        For bfloat16 where `ml_dtypes` is not installed.

    Examples
    --------
    >>> from nd4jlike.peers import Case
    >>> case = Case((1, 7, 7, 16), (3, 3), (2, 2))
    >>> case.output_shape, case.pads, case.operations
    ((1, 4, 4, 16), ((1, 1), (1, 1)), 4608)
    """

    shape: tuple[int, int, int, int]
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    multiplier: int = 1
    dtype: str = "float32"
    threads: int = 1
    seed: int = 0
    data_format: str = "NHWC"

    def __post_init__(self) -> None:
        if min(*self.shape, *self.kernel, *self.stride, *self.dilation, self.multiplier, self.threads) < 1:
            raise LayoutError(f"every extent of a layer is at least 1: {self}")
        reach = [extent + (taps - 1) * step for extent, taps, step in zip(self.shape[1:3], self.kernel, self.dilation, strict=True)]
        if 8 * math.prod((self.shape[0], *reach, self.channels, self.multiplier)) > sys.maxsize:
            raise LayoutError(f"the image and what windows reach around it outgrow the signed machine word in bytes: {self}")
        if self.dtype not in DTYPES:
            raise LayoutError(f"the element type of a layer is one of {', '.join(DTYPES)}: {self.dtype!r}")
        numpy_dtype(element_type(self.dtype))
        if self.data_format not in ("NHWC", "NCHW"):
            raise LayoutError(f"the format of a layer is NHWC or NCHW: {self.data_format!r}")

    @property
    def element(self) -> np.dtype[Any]:
        """NumPy's dtype of input and result; `ml_dtypes` has that of bfloat16."""
        return numpy_dtype(element_type(self.dtype))

    @property
    def channels(self) -> int:
        """Of the input."""
        return self.shape[3]

    @property
    def outputs(self) -> int:
        """Output channels."""
        return self.shape[3] * self.multiplier

    @cached_property
    def _walk(self) -> Any:
        return Window(self.kernel, self.stride, self.dilation, "same").over(self.shape[1:3])

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Of the result: N, H, W, C*M."""
        height, width = self._walk.out
        return self.shape[0], height, width, self.outputs

    @property
    def pads(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Implied pixels: ((top, bottom), (left, right))."""
        pads = []
        for size, out, kernel, stride, dilation in zip(self.shape[1:3], self._walk.out, self.kernel, self.stride, self.dilation, strict=True):
            total = max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
            pads.append((total // 2, total - total // 2))
        return pads[0], pads[1]

    @property
    def operations(self) -> int:
        """Multiplications and additions, those on padding too, as everybody counts them."""
        return 2 * self.kernel[0] * self.kernel[1] * int(np.prod(self.output_shape))

    @property
    def bytes(self) -> tuple[int, int]:
        """Least traffic: bytes of the input and of the result."""
        itemsize = self.element.itemsize
        return int(np.prod(self.shape)) * itemsize, int(np.prod(self.output_shape)) * itemsize

    @property
    def _lowest(self) -> int:
        return int(np.iinfo(self.dtype).min)

    @cached_property
    def quantization(self) -> Quantization | None:
        """Scales that spread the sums over the range of the result."""
        if self.dtype in _FLOATS:
            return None
        taps = (self.kernel[0] * self.kernel[1]) ** 0.5
        step, deviation, zero = (12 / 65535, taps * 8000 * 45, 0) if self.dtype == "int16" else (6 / 255, taps * 85 * 45, self._lowest)
        scales: Any = self._random(1).uniform(0.7, 1.4, self.outputs) * (2.5 / (step * deviation))
        if self.dtype == "uint8":
            scales = (float(scales[0]), 131)
        return Quantization(input=(step, zero), weights=scales, output=(step, zero))

    @cached_property
    def x(self) -> _Array:
        """The input."""
        values = self._random(2).standard_normal(self.shape, np.float32)
        if self.quantization is None:
            return values.astype(self.element, copy=False)
        values = values * 8000 if self.dtype == "int16" else values * 60 + (68 + self._lowest)
        return np.clip(np.rint(values), self._lowest, np.iinfo(self.dtype).max).astype(self.dtype)

    @cached_property
    def weights(self) -> _Array:
        """Of shape (kH, kW, C, M)."""
        values = self._random(3).standard_normal((*self.kernel, self.channels, self.multiplier), np.float32)
        if self.quantization is None:
            return values.astype(self.element, copy=False)
        if self.dtype == "uint8":
            return np.clip(np.rint(values * 45 + self._weights_zero), 0, 255).astype(np.uint8)
        return np.clip(np.rint(values * 45), -127, 127).astype(np.int8)

    @cached_property
    def bias(self) -> _Array:
        """Of shape (C*M,)."""
        values = self._random(4).standard_normal(self.outputs, np.float32)
        if self.quantization is None:
            return values.astype(self.element, copy=False)
        return np.rint((values + 2) / (self.quantization.input[0] * self._scales)).astype(np.int64 if self.dtype == "int16" else np.int32)

    @property
    def _weights_zero(self) -> int:
        return self.quantization.weights_zero_point if self.quantization else 0

    @property
    def _scales(self) -> npt.NDArray[np.float64]:
        assert self.quantization is not None
        return np.asarray(self.quantization.weights, np.float64)

    def expected(self) -> npt.NDArray[np.float64]:
        """Compute the layer in float64: the result, before rounding for integers."""
        zero, weights = (0 if self.quantization is None else self.quantization.input[1]), self.weights.astype(np.float64) - self._weights_zero
        padded = np.pad(self.x.astype(np.float64) - zero, ((0, 0), *self.pads, (0, 0)))
        _, height, width, _ = self.output_shape
        total = np.zeros((self.shape[0], height, width, self.channels, self.multiplier))
        for row, column in np.ndindex(self.kernel):
            top, left = row * self.dilation[0], column * self.dilation[1]
            rows = slice(top, top + (height - 1) * self.stride[0] + 1, self.stride[0])
            columns = slice(left, left + (width - 1) * self.stride[1] + 1, self.stride[1])
            total += padded[:, rows, columns, :, None] * weights[row, column]
        sums = total.reshape(self.output_shape) + self.bias.astype(np.float64)
        if self.quantization is None:
            return sums
        (scale, _), (out_scale, out_zero) = self.quantization.input, self.quantization.output
        clipped: npt.NDArray[np.float64] = np.clip(sums * (scale * self._scales / out_scale) + out_zero, self._lowest, np.iinfo(self.dtype).max)
        return clipped

    def _random(self, what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, what, *self.shape, *self.kernel, *self.stride, *self.dilation, self.multiplier])


def _load(package: str, module: str | None = None) -> Any:
    try:
        return importlib.import_module(module or package)
    except ImportError as error:
        raise MissingLibraryError(f"{package} is not installed: pip install nd4jlike[bench]") from error


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise UnsupportedCaseError(what)


def _onednn(case: Case) -> Call:
    from nd4jlike.adapters import onednn
    from nd4jlike.ndarray import NdArray

    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(case.threads)
    _need(case.dtype in (*_FLOATS, "int8"), "its weights are int8, its activations bytes")
    quantization, offset, dtype = case.quantization, 0, case.dtype
    if quantization is not None:  # unsigned bytes are its native ones
        (scale, zero), (out_scale, out_zero), offset, dtype = quantization.input, quantization.output, 128, "uint8"
        quantization = Quantization((scale, zero + offset), quantization.weights, (out_scale, out_zero + offset))
    try:
        plan = onednn.DepthwiseConv2d(case.shape, case.weights, case.bias, dtype=dtype, stride=case.stride, dilation=case.dilation, quantization=quantization)
    except UnsupportedLayoutError as error:  # its cause is the same for all layers of a type
        raise UnsupportedCaseError(f"no convolution of {dtype}: {error.__cause__ or error}") from error
    x, y = NdArray(plan.src_descriptor), NdArray(plan.dst_descriptor)
    x[...] = _shifted(case.x, offset)
    tag = plan.src_descriptor.permute((0, 3, 1, 2)).tag
    return Call(plan.bind(x, y), lambda: _shifted(y.to_numpy(), -offset), f"oneDNN {onednn.Engine().version}, {plan.implementation}, {tag}")


def _shifted(values: _Array, offset: int) -> _Array:
    """Bytes of the other sign, `offset` higher."""
    return values if offset == 0 else (values.astype(np.int16) + offset).astype(np.uint8 if offset > 0 else np.int8)


def _torch(case: Case) -> Call:
    _need(case.dtype in _FLOATS, "its quantized operators are not asked here")
    torch = _load("torch")
    torch.set_num_threads(case.threads)
    (top, bottom), (left, right) = case.pads
    x, padding = case.x, (top, left)
    if (top, left) != (bottom, right):  # it pads both sides alike: the pixels are there before the clock starts
        x, padding = np.pad(x, ((0, 0), *case.pads, (0, 0))), (0, 0)

    def tensor(values: _Array) -> Any:
        values = np.ascontiguousarray(values)
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16) if case.dtype == "bfloat16" else torch.from_numpy(values)

    image, bias = tensor(x).permute(0, 3, 1, 2), tensor(case.bias)
    weights = tensor(case.weights.transpose(2, 3, 0, 1).reshape(case.outputs, 1, *case.kernel))
    results: list[Any] = [None]

    def call(layout: str, memory_format: Any) -> Call:
        given, kernels = image.contiguous(memory_format=memory_format), weights.contiguous(memory_format=memory_format)

        def run() -> None:
            with torch.inference_mode():
                results[0] = torch.nn.functional.conv2d(given, kernels, bias, case.stride, padding, case.dilation, case.channels)

        return Call(run, result, f"torch {torch.__version__}, {layout}")

    def result() -> _Array:
        numbers = results[0].view(torch.int16) if case.dtype == "bfloat16" else results[0]
        values: _Array = numbers.permute(0, 2, 3, 1).numpy().view(case.element)
        return values

    last, planes = ("channels last", torch.channels_last), ("NCHW", torch.contiguous_format)
    if case.data_format == "NCHW":
        return call(*planes)
    if case.dtype == "float32":
        return call(*last)
    return min(call(*last), call(*planes), key=_seconds)  # where its oneDNN has no such type, channels last take up to 7 times as long


def _seconds(call: Call) -> float:
    """Least time of two runs, after one."""
    call.run()
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        call.run()
        times.append(time.perf_counter() - begin)
    return min(times)


def _onnxruntime(case: Case) -> Call:
    _need(case.dtype != "int16", "QLinearConv has bytes only")
    runtime, onnx = _load("onnxruntime"), _load("onnx")
    helper, values = onnx.helper, onnx.numpy_helper.from_array
    (top, bottom), (left, right) = case.pads
    geometry = {
        "kernel_shape": case.kernel, "strides": case.stride, "dilations": case.dilation, "group": case.channels, "pads": [top, left, bottom, right],
    }  # fmt: skip
    constants: dict[str, Any] = {"w": case.weights.transpose(2, 3, 0, 1).reshape(case.outputs, 1, *case.kernel), "b": case.bias}
    names, operator = ["x", "w", "b"], "Conv"
    if case.quantization is not None:
        (scale, zero), (out_scale, out_zero) = case.quantization.input, case.quantization.output
        constants |= {"xs": np.float32(scale), "xz": case.x.dtype.type(zero), "ys": np.float32(out_scale), "yz": case.x.dtype.type(out_zero)}
        constants |= {
            "ws": np.array(case.quantization.weights, np.float32),
            "wz": np.full(len(case.quantization.weights), case.quantization.weights_zero_point, case.weights.dtype),
        }
        names, operator = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], "QLinearConv"
    element = helper.np_dtype_to_tensor_dtype(case.element)
    planes = [(n, c, h, w) for n, h, w, c in (case.shape, case.output_shape)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **geometry)],
        "layer",
        [helper.make_tensor_value_info("x", element, planes[0])],
        [helper.make_tensor_value_info("y", element, planes[1])],
        [values(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22 if case.dtype == "bfloat16" else 17)], ir_version=9)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = case.threads, 3
    with tempfile.TemporaryDirectory() as folder:
        if case.dtype == "float16":
            options.optimized_model_filepath = str(Path(folder) / "layer.onnx")
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"], enable_fallback=0)
        if case.dtype == "float16":  # without a kernel of its own, casts to float32 and back are put around that one
            _need("Cast" not in {node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node}, "it computes float16 in float32")
    x, y = np.ascontiguousarray(case.x.transpose(0, 3, 1, 2)), np.empty(planes[1], case.element)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, y.dtype, y.shape, y.ctypes.data)
    keep = (x, y)
    return Call(lambda: session.run_with_iobinding(binding), lambda: keep[1].transpose(0, 2, 3, 1), f"ONNX Runtime {runtime.__version__}, NCHW")


def _openvino(case: Case) -> Call:
    _need(case.dtype in (*_FLOATS, "int8"), "of integers only int8 is asked of it here")
    openvino = _load("openvino")
    ops = _load("openvino", "openvino.opset13")
    quantization = case.quantization
    # Unsigned bytes are its native ones.
    name = {"float16": "f16", "bfloat16": "bf16", "float64": "f64", "int8": "u8"}.get(case.dtype, "f32")
    offset, element = (0 if quantization is None else 128), getattr(openvino.Type, name)
    image = parameter = ops.parameter(case.shape, element)
    weights = np.ascontiguousarray(case.weights.transpose(2, 3, 0, 1).reshape(case.channels, case.multiplier, 1, *case.kernel))
    # NumPy's float64 holds them all, and it reads no bfloat16.
    kernels, bias = ops.constant(weights) if quantization else ops.constant(weights.astype(np.float64), element), case.bias.astype(np.float64)
    if quantization is not None:
        (scale, zero), scales = quantization.input, np.array(quantization.weights, np.float32)
        image = ops.convert(image, "f32")
        if zero + offset:
            image = ops.subtract(image, ops.constant(np.float32(zero + offset)))
        image = ops.multiply(image, ops.constant(np.float32(scale)))
        kernels = ops.multiply(ops.convert(kernels, "f32"), ops.constant(scales.reshape(case.channels, case.multiplier, 1, 1, 1)))
        bias = bias * (scale * scales.astype(np.float64))
    (top, bottom), (left, right) = case.pads
    image = ops.transpose(image, ops.constant(np.array([0, 3, 1, 2])))
    image = ops.group_convolution(image, kernels, list(case.stride), [top, left], [bottom, right], list(case.dilation))
    image = ops.add(image, ops.constant(bias.reshape(1, -1, 1, 1), openvino.Type.f32 if quantization else element))
    if quantization is not None:
        out_scale, out_zero = quantization.output
        low, high = ((end - (out_zero + offset)) * out_scale for end in (0, 255))
        image = ops.fake_quantize(image, *(ops.constant(np.float32(end)) for end in (low, high, 0, 255)), 256)
    image = ops.transpose(image, ops.constant(np.array([0, 2, 3, 1])))
    if quantization is not None:
        image = ops.convert(image, "u8")
    settings = {
        "INFERENCE_PRECISION_HINT": name if name in ("f16", "bf16") else "f32",
        "INFERENCE_NUM_THREADS": case.threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = openvino.Core().compile_model(openvino.Model([image], [parameter], "layer"), "CPU", settings)
    if case.dtype in _FLOATS[1:]:  # what the machine has no instructions for it computes in another type, and says so
        told = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
        precisions = {info["runtimePrecision"].astype(str) for info in told if info["layerType"].astype(str) == "Convolution"}
        _need(precisions == {name}, f"it computes {case.dtype} in {', '.join(sorted(precisions))}")
    request = compiled.create_infer_request()
    x = np.ascontiguousarray(_shifted(case.x, offset))
    y = np.empty(case.output_shape, x.dtype)
    request.set_input_tensor(openvino.Tensor(x.view(np.uint16) if name == "bf16" else x, x.shape, element))
    request.set_output_tensor(openvino.Tensor(y.view(np.uint16) if name == "bf16" else y, y.shape, element))
    keep = (x, y)
    return Call(request.infer, lambda: _shifted(keep[1], -offset), f"OpenVINO {openvino.__version__.split('-')[0]}, NHWC")


def _interpreted(case: Case, kind: type[Reference], what: str) -> Call:
    from nd4jlike.adapters.tflite import DepthwiseLayer

    _need(case.threads == 1, "one thread is what it is asked for here")
    layer = DepthwiseLayer(
        "layer", 0, 0, 0, 1, case.shape, case.output_shape, case.dtype, case.weights, case.bias, case.quantization, case.stride, case.dilation, "same", None
    )
    model = kind.alone(layer, case.shape)
    model.run([case.x])
    return Call(model.invoke, model.output, f"{kind.description()}, {what}")


def _litert(case: Case) -> Call:
    return _interpreted(case, LiteRtXnnpack, "XNNPACK where it has the type, NHWC")


def _tflite_micro(case: Case) -> Call:
    _need(case.dtype == "float32" or case.quantization is not None, "its floats are float32")
    return _interpreted(case, TfliteMicro, "reference kernels, NHWC")


PEERS: dict[str, Callable[[Case], Call]] = {
    "onednn": _onednn,
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
    "torch": _torch,
    "litert": _litert,
    "tflite-micro": _tflite_micro,
}

_OF_NHWC = ("onednn", "openvino", "litert", "tflite-micro")


def prepare(name: str, case: Case) -> Call:
    """Prepare a library for a case.

    Parameters
    ----------
    name : str
        One of `PEERS`.
    case : Case
        The layer.

    Returns
    -------
    Call
        Ready to run; it has not run yet.

    Raises
    ------
    MissingLibraryError
        Without the library.
    UnsupportedCaseError
        For a case that it cannot do, or refuses, in its own words.
    """
    try:
        _need(case.data_format == "NHWC" or name not in _OF_NHWC, "NHWC is what it is asked for here")
        return PEERS[name](case)
    except Nd4jLikeError:
        raise
    except Exception as error:  # whatever a foreign library throws
        raise UnsupportedCaseError(f"{name}: {' '.join(str(error).split())[:200]}") from error

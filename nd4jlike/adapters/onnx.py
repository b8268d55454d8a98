"""ONNX: every depthwise convolution of a model, float or quantized, ready to run (ADR 0007)."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from nd4jlike.depthwise import DepthwiseConv2d
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError
from nd4jlike.geometry import plan_options
from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

__all__ = ["DepthwiseLayer", "ModelInput", "OnnxModel", "depthwise_layers", "read_model"]

Sides = tuple[tuple[int, int], tuple[int, int]]

_INTEGERS = ("int8", "uint8")
_FLOATS = ("float16", "float32", "float64")
_CLAMPS = ("Relu", "Clip")
# Types of the attributes that are read.
_ATTRIBUTES = {
    "group": "INT", "kernel_shape": "INTS", "strides": "INTS", "dilations": "INTS", "pads": "INTS", "auto_pad": "STRING",
    "axis": "INT", "block_size": "INT", "output_dtype": "INT",
}  # fmt: skip
# What reading a message whose fields contradict each other may raise.
_DAMAGE = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)


@dataclass(frozen=True)
class ModelInput:
    """One input of a model.

    Attributes
    ----------
    name : str
        Of the tensor.
    shape : tuple of int or None
        Extents; -1 where the file leaves one open. None where it does not tell how many axes there are.
    dtype : numpy.dtype
        Element type.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class DepthwiseLayer:
    """One depthwise convolution of a model.

    Attributes
    ----------
    name : str
        Of the node, or of its output where it has none.
    operator : str
        ``"Conv"``, ``"QLinearConv"``, or ``"QDQ"``: DequantizeLinear, Conv and QuantizeLinear as one quantized layer.
    subgraph, index : int
        0, and the node's place in the graph.
    input, output : str
        Tensors: of a QDQ layer the quantized ones.
    input_shape, output_shape : tuple of int
        (N, C, H, W); -1 where the file does not tell.
    dtype : str
        Of input and output.
    weights : numpy.ndarray
        (kernel height, kernel width, channels, multiplier), read-only; dequantized for a Conv behind a DequantizeLinear; int8 weights of
        uint8 inputs are uint8 here, they and their zero point 128 more.
    stored_dtype, stored_zero_point : str, int
        Of the weights in the file.
    bias : numpy.ndarray or None
        (channels * multiplier,), int32 for quantized layers.
    quantization : Quantization or None
        None for floats.
    stride, dilation : tuple of int
        (height, width).
    padding : str or ((int, int), (int, int))
        ``"same"``, or ((top, bottom), (left, right)).
    not_integer : str or None
        Why a Conv between DequantizeLinear and QuantizeLinear is one of floats here; None for all others.
    """

    data_format: ClassVar[Literal["NCHW"]] = "NCHW"
    pad: ClassVar[None] = None

    name: str
    operator: str
    index: int
    input: str
    output: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    weights: npt.NDArray[Any] = field(repr=False)
    stored_dtype: str
    stored_zero_point: int
    bias: npt.NDArray[Any] | None = field(repr=False)
    quantization: Quantization | None = field(repr=False)
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: Literal["same"] | Sides
    activation: None = None
    subgraph: int = 0
    not_integer: str | None = None

    @property
    def kernel(self) -> tuple[int, int]:
        """(height, width) of the kernel, before dilation."""
        return self.weights.shape[0], self.weights.shape[1]

    @property
    def channels(self) -> int:
        """Input channels."""
        return int(self.weights.shape[2])

    @property
    def multiplier(self) -> int:
        """Output channels of each input channel."""
        return int(self.weights.shape[3])

    def plan(self, **options: Any) -> DepthwiseConv2d:
        """Configure this layer's convolution.

        Parameters
        ----------
        **options
            Of `nd4jlike.DepthwiseConv2d`: `rounding`, `threads`, `isa`, and what replaces the layer's own: with
            ``activation=None, quantization=dataclasses.replace(layer.quantization, output=None)`` the result is the accumulators.

        Returns
        -------
        DepthwiseConv2d
            Takes arrays of shape (N, C, H, W).

        Raises
        ------
        TypeError
            An option that it has not.
        """
        own = {
            "weights": self.weights,
            "bias": self.bias,
            "stride": self.stride,
            "dilation": self.dilation,
            "padding": self.padding,
            "data_format": self.data_format,
            "activation": self.activation,
            "quantization": self.quantization,
        }
        return DepthwiseConv2d(**own | plan_options(DepthwiseConv2d, options))

    def fused(self) -> DepthwiseLayer:
        """Give this layer: padding is its own, no operator before it is part of it."""
        return self


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """What an `.onnx` file holds, as far as depthwise convolutions are concerned.

    Attributes
    ----------
    inputs : tuple of ModelInput
        Those that must be fed.
    layers : tuple of DepthwiseLayer
        In the order of the file.
    skipped : tuple of str
        What else is depthwise, each with the reason why it is no layer here.
    content : bytes
        The model, with the inputs of all layers as its outputs.
    """

    format: ClassVar[str] = "onnx"
    tensor_bytes: ClassVar[int] = 0

    inputs: tuple[ModelInput, ...]
    layers: tuple[DepthwiseLayer, ...]
    skipped: tuple[str, ...]
    content: bytes = field(repr=False)


def depthwise_layers(path: str | os.PathLike[str] | bytes) -> list[DepthwiseLayer]:
    """Read every depthwise convolution of an `.onnx` file that a plan can compute.

    Parameters
    ----------
    path : str, path-like or bytes
        The file, or its content.

    Returns
    -------
    list of DepthwiseLayer
        In the order of the file; empty when there is none. `read_model` tells what was left out, and why.

    Raises
    ------
    LayoutError
        For a file that is no ONNX model or is damaged, and for the content of one with external data.
    DTypeError
        For a model input of an element type that NumPy does not have.
    MissingLibraryError
        Without the `onnx` package.
    OSError
        For a file that cannot be read.

    Notes
    -----
    ONNX's operators Conv-11 and later, QLinearConv-10, DequantizeLinear-10 and QuantizeLinear-10.

    Examples
    --------
    >>> from nd4jlike.adapters.onnx import depthwise_layers
    >>> depthwise_layers("/no/such/model.onnx")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: '/no/such/model.onnx'
    """
    return list(read_model(path).layers)


def read_model(path: str | os.PathLike[str] | bytes, shapes: Mapping[str, Sequence[int]] | None = None) -> OnnxModel:
    """Read an `.onnx` file.

    Parameters
    ----------
    path : str, path-like or bytes
        The file, or its content.
    shapes : mapping from str to sequence of int, optional
        Of inputs that the file leaves open, -1 where an extent stays so: the padding of some layers follows from them.

    Returns
    -------
    OnnxModel
        Inputs, depthwise layers, and what was skipped.

    Raises
    ------
    LayoutError, DTypeError, MissingLibraryError, OSError
        As `depthwise_layers`.
    """
    if not isinstance(path, bytes):
        Path(path).stat()  # a missing file is told of before a missing package
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise MissingLibraryError("reading an .onnx file needs the onnx package: pip install nd4jlike[onnx]") from error
    where = "" if isinstance(path, bytes) else f"{os.fspath(path)}: "
    try:
        model = onnx.load_model_from_string(path) if isinstance(path, bytes) else onnx.load(os.fspath(path), load_external_data=False)
    except OSError:
        raise
    except Exception as error:  # of the protobuf package: which one depends on its version
        raise LayoutError(f"{where}not an ONNX model: {' '.join(str(error).split())}") from error
    if not isinstance(path, bytes):
        try:
            onnx.load_external_data_for_model(model, os.fspath(Path(path).parent))
        except Exception as error:  # of the onnx package: files that are missing, too short, or not beside the model
            raise LayoutError(f"{where}values that lie in another file cannot be read: {' '.join(str(error).split())}") from error
    if not model.HasField("graph") or not model.graph.node:
        raise LayoutError(f"{where}not an ONNX model: it has no graph of nodes")
    try:
        if outside := _outside(onnx, model.graph):  # of a file they are inside by now
            raise LayoutError(
                f"the values of {len(outside)} constants ({outside[0]} the first) lie in another file, which is found beside a path only: give the path of "
                "the model, not its content"
            )
        return _Reader(onnx, model, shapes or {}).model()
    except Nd4jLikeError:
        raise
    except _DAMAGE as error:
        raise LayoutError(f"{where}damaged ONNX model: {error}") from error


class _Skip(Exception):  # noqa: N818 - no error: a layer that is passed over
    """Why a depthwise convolution is no layer here."""


class _Reader:
    """The graph of one model."""

    def __init__(self, onnx: Any, model: Any, shapes: Mapping[str, Sequence[int]]) -> None:
        self.onnx = onnx
        self.proto = model
        self.graph = model.graph
        self.sources = {name: node for node in self.graph.node for name in node.output if name}
        self.readers = Counter(name for node in self.graph.node for name in node.input)
        self.readers.update(output.name for output in self.graph.output)
        self.initializers = {tensor.name: tensor for tensor in self.graph.initializer}
        self.known: dict[str, npt.NDArray[Any] | None] = {}
        self.elements: dict[str, int] = {}
        self.shapes = self._shapes(shapes)

    def _shapes(self, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Shapes that the file tells, that are given or that follow, -1 for open extents; element types on the way."""
        told = self.proto
        if given:
            told = self.onnx.ModelProto()
            told.CopyFrom(self.proto)
            for entry in told.graph.input:
                if entry.name in given:
                    extents = (self.onnx.TensorShapeProto.Dimension(**({} if extent < 0 else {"dim_value": extent})) for extent in given[entry.name])
                    entry.type.tensor_type.shape.CopyFrom(self.onnx.TensorShapeProto(dim=extents))
        try:
            graph = self.onnx.shape_inference.infer_shapes(told).graph
        except Exception:  # a model of 2 GB and more, or one that contradicts itself: shapes are only asked for one kind of padding
            graph = told.graph
        entries = [*graph.value_info, *graph.input, *graph.output]
        self.elements = {entry.name: entry.type.tensor_type.elem_type for entry in entries}
        return {entry.name: self.extents(entry.type.tensor_type) for entry in entries if entry.type.tensor_type.HasField("shape")}

    @staticmethod
    def extents(tensor_type: Any) -> tuple[int, ...]:
        """Read a shape; -1 for open extents."""
        return tuple(int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value > 0 else -1 for dim in tensor_type.shape.dim)

    def model(self) -> OnnxModel:
        """Read all layers."""
        layers: list[DepthwiseLayer] = []
        skipped: list[str] = []
        for index, node in enumerate(self.graph.node):
            try:
                if (layer := self.layer(index, node)) is not None:
                    # Whether there are kernels for it is known to the plan.
                    layer.plan()
                    layers.append(layer)
            except (_Skip, Nd4jLikeError) as reason:
                skipped.append(f"{_name(node)} ({node.op_type}): {reason}")
            skipped += [
                f"{_name(inner)} ({inner.op_type}): it is in the body of {_name(node)} ({node.op_type})"
                for body in _bodies(node)
                for inner in _all_nodes(body)
                if inner.op_type in ("Conv", "QLinearConv") and self.attributes(inner).get("group", 1) > 1
            ]
        wanted = self.onnx.ModelProto()
        wanted.CopyFrom(self.proto)
        del wanted.graph.output[:]
        wanted.graph.output.extend(self.onnx.ValueInfoProto(name=name) for name in dict.fromkeys(layer.input for layer in layers))
        return OnnxModel(tuple(self.inputs()), tuple(layers), tuple(skipped), wanted.SerializeToString())

    def inputs(self) -> Iterator[ModelInput]:
        """Describe the inputs that have no value in the file."""
        for entry in self.graph.input:
            if entry.name in self.initializers:
                continue
            element = entry.type.tensor_type.elem_type
            try:
                dtype = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(element))
            except KeyError:
                raise DTypeError(f"model input {entry.name}: no element type here for ONNX's {element}") from None
            known = entry.type.tensor_type.HasField("shape")
            yield ModelInput(entry.name, self.extents(entry.type.tensor_type) if known else None, dtype)

    def attributes(self, node: Any) -> dict[str, Any]:
        """Read a node's attributes."""
        for attribute in node.attribute:
            kind = _ATTRIBUTES.get(attribute.name)
            if kind is not None and attribute.type != getattr(self.onnx.AttributeProto, kind):
                raise TypeError(f"{_name(node)} ({node.op_type}): attribute {attribute.name} is no {kind}")
        return {attribute.name: self.onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """Read a value of the file: an initializer, a Constant, an Identity or a QuantizeLinear of one; None when it is computed otherwise."""
        if name not in self.known:
            self.known[name] = None  # of a circle
            self.known[name] = self._constant(name)
        return self.known[name]

    def _constant(self, name: str) -> npt.NDArray[Any] | None:
        to_array = self.onnx.numpy_helper.to_array
        if name in self.initializers:
            return np.asarray(to_array(self.initializers[name]))
        node = self.sources.get(name)
        if node is None:
            return None
        attributes = self.attributes(node)
        if node.op_type == "Constant":
            for key, value in attributes.items():
                if key == "value":
                    return np.asarray(to_array(value))
                if key in ("value_float", "value_floats", "value_int", "value_ints"):
                    return np.asarray(value, np.float32 if "float" in key else np.int64)
        if node.op_type == "Identity":
            return self.constant(node.input[0])
        if node.op_type == "QuantizeLinear" and (values := self.constant(node.input[0])) is not None and (scaled := self.scaling(node, values)) is not None:
            scales, zero_points, _ = scaled
            if zero_points.dtype.kind not in "iu":
                return None
            limits = np.iinfo(zero_points.dtype)
            with np.errstate(divide="ignore", invalid="ignore"):  # by scales that the layer refuses
                quantized: npt.NDArray[Any] = np.clip(np.rint(values / scales) + zero_points, limits.min, limits.max).astype(zero_points.dtype)
            return quantized
        return None

    def scaling(self, node: Any, values: npt.NDArray[Any] | None = None) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any], int] | None:
        """Read scales and zero points of a QuantizeLinear or DequantizeLinear, in a shape that goes with `values`; None when they are computed or in blocks."""
        scales = self.constant(node.input[1])
        if scales is None or scales.dtype != np.float32 or self.attributes(node).get("block_size", 0):
            return None
        zero_points: npt.NDArray[Any] | None = None
        if len(node.input) > 2 and node.input[2]:
            zero_points = self.constant(node.input[2])
        elif (dtype := self.quantized_type(node, values)) is not None:
            zero_points = np.zeros(scales.shape, dtype)
        if zero_points is None or zero_points.shape != scales.shape:
            return None
        axis = int(self.attributes(node).get("axis", 1))
        if scales.size > 1:
            if values is None or scales.ndim != 1 or not -values.ndim <= axis < values.ndim or values.shape[axis] != scales.size:
                return None
            extents = [1] * values.ndim
            extents[axis] = scales.size
            scales, zero_points = scales.reshape(extents), zero_points.reshape(extents)
        elif scales.size:
            scales, zero_points = scales.reshape(()), zero_points.reshape(())
        return scales, zero_points, axis

    def quantized_type(self, node: Any, values: npt.NDArray[Any] | None) -> np.dtype[Any] | None:
        """Find the element type that a QuantizeLinear or DequantizeLinear without zero points stores; None where the file does not tell."""
        if node.op_type == "DequantizeLinear" and values is not None:
            return values.dtype
        if node.op_type == "DequantizeLinear":
            element = self.elements.get(node.input[0], 0)
        else:
            element = int(self.attributes(node).get("output_dtype", 0)) or self.onnx.TensorProto.UINT8
        try:
            dtype: np.dtype[Any] = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(element))
        except KeyError:
            return None
        return dtype

    def source(self, name: str, operator: str) -> Any:
        """Find the node that makes a tensor, if it is of that kind."""
        node = self.sources.get(name)
        return node if node is not None and node.op_type == operator else None

    def reader(self, node: Any) -> Any:
        """Find the only node that reads the output of a node; None where there are more, or the model gives that output."""
        name = node.output[0]
        return next((reader for reader in self.graph.node if name in reader.input), None) if self.readers[name] == 1 else None

    def idle(self, clamp: Any, scaling: tuple[Any, Any, int]) -> bool:
        """Tell whether a Relu or Clip does nothing that the quantization behind it does not do."""
        scale, zero_point, _ = scaling
        low, high = (float("-inf"), float("inf")) if clamp.op_type == "Clip" else (0.0, float("inf"))
        for i, name in enumerate(clamp.input[1:3]):
            bound = self.constant(name) if name else None
            if name and bound is None:
                return False
            if bound is not None:
                low, high = (float(bound), high) if i == 0 else (low, float(bound))
        if scale.size != 1 or zero_point.dtype.kind not in "iu" or self.attributes(clamp):  # before version 11 the bounds were attributes
            return False
        limits = np.iinfo(zero_point.dtype)
        # Where the bounds are quantized, saturation is already.
        lowest, highest = (np.rint(bound / np.float64(scale)) + int(zero_point) for bound in (low, high))
        return bool(lowest <= limits.min and highest >= limits.max)

    def weights(self, name: str) -> npt.NDArray[Any] | None:
        """Read the values of a constant, or of one behind DequantizeLinear."""
        values = self.constant(name)
        node = self.source(name, "DequantizeLinear")
        if values is None and node is not None and (stored := self.constant(node.input[0])) is not None and (scaled := self.scaling(node, stored)) is not None:
            scales, zero_points, _ = scaled
            # The product of two float32 numbers is exact in float64, so it is rounded once, as in onnxruntime.
            with np.errstate(over="ignore", invalid="ignore"):
                return ((stored.astype(np.float64) - zero_points.astype(np.float64)) * scales.astype(np.float64)).astype(np.float32)
        return values

    def layer(self, index: int, node: Any) -> DepthwiseLayer | None:
        """Read a node; None when it is no depthwise convolution."""
        if node.op_type not in ("Conv", "QLinearConv", "ConvInteger", "FusedConv") or (node.domain and node.op_type != "FusedConv"):
            return None
        linear = node.op_type == "QLinearConv"
        attributes = self.attributes(node)
        group = int(attributes.get("group", 1))
        if group < 1:
            raise _Skip(f"group {group}; 1 or more is needed")
        weights = self.weights(node.input[3 if linear else 1])
        if weights is None:
            if group == 1:
                return None
            raise _Skip(f"its weights ({node.input[3 if linear else 1]}) must be a constant of the file, or one behind DequantizeLinear")
        if weights.ndim < 3 or weights.shape[1] != 1 or weights.shape[0] % group or 0 in weights.shape:
            return None
        if node.op_type not in ("Conv", "QLinearConv"):
            raise _Skip("only Conv and QLinearConv are read")
        if weights.ndim != 4:
            raise _Skip(f"it is a {weights.ndim - 2}-D convolution, weights {weights.shape}; only 2-D ones are computed here")
        kernel = weights.shape[2:]
        if tuple(attributes.get("kernel_shape", kernel)) != kernel:
            raise _Skip(f"kernel_shape {tuple(attributes['kernel_shape'])} but weights of shape {weights.shape}")
        stride, dilation = (_pair(attributes.get(name, (1, 1)), name) for name in ("strides", "dilations"))
        fused, not_integer = (self.linear(node), None) if linear else self.between(node)
        fused = fused or self.plain(node, weights)
        shape = self.shapes.get(fused["input"], ())
        shape = shape if len(shape) == 4 else (-1,) * 4
        made = self.shapes.get(fused["output"], ())
        stored = fused.pop("stored")
        return DepthwiseLayer(
            name=_name(node),
            index=index,
            input_shape=(shape[0], group, *shape[2:]),
            output_shape=(shape[0], weights.shape[0], *(made[2:] if len(made) == 4 else (-1, -1))),
            weights=_frozen(np.ascontiguousarray(stored[:, 0].transpose(1, 2, 0)).reshape(*kernel, group, weights.shape[0] // group)),
            stride=stride,
            dilation=dilation,
            padding=_padding(attributes, kernel, stride, dilation, shape[2:]),
            not_integer=not_integer,
            **fused,
        )

    def plain(self, node: Any, weights: npt.NDArray[Any]) -> dict[str, Any]:
        """Read what a float Conv computes with."""
        bias = None
        if len(node.input) > 2 and node.input[2]:
            bias = self.weights(node.input[2])
            if bias is None:
                raise _Skip(f"its bias ({node.input[2]}) must be a constant of the file, or one behind DequantizeLinear")
        dtype = str(weights.dtype)
        if dtype not in _FLOATS:
            raise _Skip(f"weights of {dtype}; {', '.join(_FLOATS)}, and int8 or uint8 with scales, are computed here")
        return {
            "operator": "Conv", "input": node.input[0], "output": node.output[0], "dtype": dtype, "stored": weights,
            "stored_dtype": dtype, "stored_zero_point": 0,
            "bias": None if bias is None else _frozen(bias), "quantization": None,
        }  # fmt: skip

    def linear(self, node: Any) -> dict[str, Any]:
        """Read what a QLinearConv computes with."""
        names = ("input", "its scale", "its zero point", "weights", "their scales", "their zero points", "output scale", "output zero point", "bias")
        values = dict(zip(names, map(self.constant, node.input), strict=False))
        for name in names[1:8]:
            if values[name] is None:
                raise _Skip(f"{name} must be a constant of the file")
        if len(node.input) > 8 and node.input[8] and values["bias"] is None:
            raise _Skip("bias must be a constant of the file")
        _, scale, zero_point, weights, scales, zero_points, y_scale, y_zero_point, bias = (values.get(name) for name in names)
        return self.quantized("QLinearConv", node.input[0], node.output[0], (scale, zero_point), (weights, scales, zero_points), (y_scale, y_zero_point), bias)

    def between(self, node: Any) -> tuple[dict[str, Any] | None, str | None]:
        """Read a Conv between DequantizeLinear and QuantizeLinear; nothing where it is none, the reason where it is one of floats here."""
        x, w = (self.source(name, "DequantizeLinear") for name in node.input[:2])
        if x is None or not self.quantizes(node):
            return None, None
        try:
            return self.integers(node, x, w), None
        except (_Skip, Nd4jLikeError) as reason:
            return None, str(reason)

    def quantizes(self, node: Any, clamped: bool = False) -> bool:
        """Tell whether a QuantizeLinear reads what a node makes, or what a Relu or Clip makes of it."""
        readers = [reader for reader in self.graph.node if node.output[0] in reader.input[:1]]
        return any(reader.op_type == "QuantizeLinear" or (reader.op_type in _CLAMPS and not clamped and self.quantizes(reader, True)) for reader in readers)

    def integers(self, node: Any, x: Any, w: Any) -> dict[str, Any]:
        """Read what a Conv between DequantizeLinear and QuantizeLinear computes with, as one quantized layer."""
        after = self.reader(node)
        clamp = after if after is not None and after.op_type in _CLAMPS else None
        after = after if clamp is None else self.reader(clamp)
        if after is None or after.op_type != "QuantizeLinear":
            raise _Skip("its result is read elsewhere, too, before it is quantized")
        if w is None:
            raise _Skip(f"its weights ({node.input[1]}) are floats in the file")
        stored = self.constant(w.input[0])
        x_scaling, y_scaling, w_scaling = self.scaling(x), self.scaling(after), self.scaling(w, stored)
        if stored is None or x_scaling is None or y_scaling is None or w_scaling is None:
            raise _Skip("scales and zero points must be constants of the file, float32 scales, one of input and of output each")
        if clamp is not None and not self.idle(clamp, y_scaling):
            raise _Skip(f"its {clamp.op_type} does what the quantization behind it does not")
        if w_scaling[0].size > 1 and w_scaling[2] not in (0, -4):
            raise _Skip(f"its weights have scales along axis {w_scaling[2]}; along axis 0, or one, are computed in integers here")
        bias = None
        if len(node.input) > 2 and node.input[2]:
            bias = self.whole_bias(node.input[2], (x_scaling[0] * w_scaling[0]).reshape(-1), stored.shape[0])
            ranks = [np.ndim(self.constant(scaled.input[1])) for scaled in (x, w)]  # type: ignore[arg-type]
            if self.source(node.input[2], "DequantizeLinear") is None and ranks == [1, 0]:  # onnxruntime takes their product for one of rank 0, and gives up
                raise _Skip("beside a bias of floats the scale of its input has one axis and that of its weights none, which onnxruntime computes in floats")
        weights = stored, w_scaling[0].reshape(-1), w_scaling[1].reshape(-1)
        return self.quantized("QDQ", x.input[0], after.output[0], x_scaling[:2], weights, y_scaling[:2], bias)

    def whole_bias(self, name: str, steps: npt.NDArray[np.float32], outputs: int) -> npt.NDArray[Any]:
        """Read a bias as int32 in `steps`: that behind a DequantizeLinear, or one of floats as onnxruntime rounds it."""
        node = self.source(name, "DequantizeLinear")
        values = self.constant(name if node is None else node.input[0])
        if values is None:
            raise _Skip(f"its bias ({name}) must be a constant of the file, or one behind DequantizeLinear")
        if node is not None:
            scaling = self.scaling(node, values)
            if values.dtype != np.int32 or scaling is None or scaling[1].any():
                raise _Skip(f"its bias ({name}) must be an int32 with zero point 0 and constant scales, or floats")
            if not np.allclose(scaling[0].reshape(-1), steps, rtol=1e-5, atol=0):
                raise _Skip(f"the scales of its bias ({name}) are not those of input times weights")
            return values
        if values.dtype != np.float32 or values.shape != (outputs,):
            raise _Skip(f"its bias ({name}) is {values.dtype} of shape {values.shape}; float32, one for each of {outputs} output channels")
        with np.errstate(all="ignore"):  # of scales that the quantization refuses
            whole = np.rint(values / steps)
        if not ((whole >= -(2.0**31)) & (whole < 2.0**31)).all():  # what a cast makes of it depends on the processor
            raise _Skip(f"its bias ({name}) in steps of input scale * weight scale is beyond int32")
        return whole.astype(np.int32)

    @staticmethod
    def quantized(
        operator: str, x: str, y: str, x_scaling: Sequence[Any], weights: tuple[Any, Any, Any], y_scaling: Sequence[Any], bias: Any
    ) -> dict[str, Any]:
        """Put together what a quantized layer computes with."""
        stored, scales, zero_points = weights
        dtypes = [str(values.dtype) for values in (x_scaling[1], stored, y_scaling[1])]
        if any(dtype not in _INTEGERS for dtype in dtypes):
            raise _Skip(f"input {dtypes[0]}, weights {dtypes[1]}, output {dtypes[2]}; int8 and uint8 are read")
        if dtypes[0] != dtypes[2]:
            raise _Skip(f"input {dtypes[0]}, output {dtypes[2]}; one element type for both is computed here")
        if any(values.size != 1 for values in (*x_scaling, *y_scaling)):
            raise _Skip("input and output have one scale and one zero point each")
        if (zero_points != zero_points.flat[0]).any():
            raise _Skip("weights have one zero point here, these have several")
        weights_zero_point = int(zero_points.flat[0])
        if dtypes[0] == "int8" and (dtypes[1] != "int8" or weights_zero_point):
            raise _Skip(f"{dtypes[1]} weights with zero point {weights_zero_point} for int8 inputs; int8 with zero point 0 are computed here")
        if dtypes[:2] == ["uint8", "int8"]:
            stored, weights_zero_point = stored.view(np.uint8) ^ np.uint8(128), weights_zero_point + 128
        if bias is not None and (bias.dtype != np.int32 or bias.shape != (stored.shape[0],)):
            raise _Skip(f"bias {bias.dtype} of shape {bias.shape}; int32 and one for each of {stored.shape[0]} output channels")
        quantization = Quantization(
            input=(x_scaling[0].item(), x_scaling[1].item()),
            weights=scales.reshape(-1),
            output=(y_scaling[0].item(), y_scaling[1].item()),
            weights_zero_point=weights_zero_point,
        )
        return {
            "operator": operator, "input": x, "output": y, "dtype": dtypes[0], "stored": stored,
            "stored_dtype": dtypes[1], "stored_zero_point": int(zero_points.flat[0]),
            "bias": None if bias is None else _frozen(np.array(bias)), "quantization": quantization,
        }  # fmt: skip


def _padding(attributes: dict[str, Any], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], size: Sequence[int]) -> Literal["same"] | Sides:
    """Read `auto_pad` and `pads`."""
    rule = attributes.get("auto_pad", b"NOTSET").decode("utf-8", "replace")
    if rule == "SAME_UPPER":
        return "same"
    sides = []
    pads = attributes.get("pads", (0, 0, 0, 0))
    if len(pads) != 4 or min(pads) < 0:
        raise _Skip(f"pads {tuple(pads)}; four, none negative, are computed here")
    for axis in range(2):
        if rule == "VALID":
            sides.append((0, 0))
        elif rule == "NOTSET":
            sides.append((pads[axis], pads[axis + 2]))
        elif rule == "SAME_LOWER":
            window = (kernel[axis] - 1) * dilation[axis] + 1
            extent = size[axis] if stride[axis] > 1 else 1
            if extent < 1:
                raise _Skip("auto_pad SAME_LOWER with a stride depends on the size of the image, which the file leaves open")
            total = max((-(-extent // stride[axis]) - 1) * stride[axis] + window - extent, 0)
            sides.append((total - total // 2, total // 2))
        else:
            raise _Skip(f"auto_pad {rule}; NOTSET, SAME_UPPER, SAME_LOWER and VALID are known")
    return sides[0], sides[1]


def _pair(values: Sequence[int], name: str) -> tuple[int, int]:
    if len(values) != 2 or min(values) < 1:
        raise _Skip(f"{name} {tuple(values)}; two, both 1 or more, are needed")
    return int(values[0]), int(values[1])


def _name(node: Any) -> str:
    return str(node.name or (node.output[0] if node.output else "a node without a name"))


def _bodies(node: Any) -> list[Any]:
    """Graphs inside a node."""
    return [graph for attribute in node.attribute for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)]


def _all_nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for body in _bodies(node):
            yield from _all_nodes(body)


def _outside(onnx: Any, graph: Any) -> list[str]:
    """Names of the constants whose values are in another file."""
    tensors = [*graph.initializer, *(attribute.t for node in _all_nodes(graph) for attribute in node.attribute)]
    return [tensor.name for tensor in tensors if tensor.data_location == onnx.TensorProto.EXTERNAL]


def _frozen(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = np.array(values)
    values.flags.writeable = False
    return values

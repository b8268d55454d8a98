"""TensorFlow Lite: every DEPTHWISE_CONV_2D of a real `.tflite` file, ready to run (ADR 0007)."""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from nd4jlike.depthwise import DepthwiseConv2d
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError
from nd4jlike.geometry import plan_options
from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["DepthwiseLayer", "ModelInput", "Pad", "TfliteModel", "depthwise_layers", "read_model"]

Sides = tuple[tuple[int, int], tuple[int, int]]

IDENTIFIER = b"TFL3"
# FlatBuffers address with 32 bits signed; no valid model is larger.
LARGEST_FILE = 2**31

# Element types of constants and activations, by their name in the TensorFlow Lite schema, little-endian as the file is.
_DTYPES = {
    "FLOAT32": "<f4",
    "FLOAT16": "<f2",
    "FLOAT64": "<f8",
    "INT32": "<i4",
    "UINT8": "|u1",
    "INT64": "<i8",
    "BOOL": "|b1",
    "INT16": "<i2",
    "INT8": "|i1",
    "UINT64": "<u8",
    "UINT32": "<u4",
    "UINT16": "<u2",
}
# By the type of input and output: that of the weights, and of the bias.
_KINDS = {"FLOAT32": ("FLOAT32", "FLOAT32"), "INT8": ("INT8", "INT32"), "UINT8": ("UINT8", "INT32"), "INT16": ("INT8", "INT64")}
_ACTIVATIONS = {"NONE": None, "RELU": "relu", "RELU_N1_TO_1": "relu_n1_to_1", "RELU6": "relu6"}
_PADDINGS = {"SAME": "same", "VALID": "valid"}

# What reading a damaged FlatBuffer through the Python package may raise: it is memory safe, not polite.
_DAMAGE = (struct.error, ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError, MemoryError)


@dataclass(frozen=True)
class ModelInput:
    """One input of a model.

    Attributes
    ----------
    name : str
        Of the tensor.
    index : int
        Of the tensor in the first subgraph.
    shape : tuple of int
        Extents; 1 where the file leaves one open.
    dtype : numpy.dtype
        Element type.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Pad:
    """A PAD or PADV2 of zeros (the zero point) whose output a layer reads.

    Attributes
    ----------
    input : int
        Tensor that it pads.
    sides : ((int, int), (int, int))
        ((top, bottom), (left, right)), in pixels.
    """

    input: int
    sides: Sides


@dataclass(frozen=True, eq=False)
class DepthwiseLayer:
    """One DEPTHWISE_CONV_2D of a model.

    Attributes
    ----------
    name : str
        Of the output tensor.
    subgraph, index : int
        Where the operator is: the subgraph, and its place in there.
    input, output : int
        Tensors of that subgraph.
    input_shape, output_shape : tuple of int
        (N, H, W, C) as the file says; an open batch is 1.
    dtype : str
        Of input and output: ``"int8"``, ``"uint8"``, ``"int16"`` (with int8 weights) or ``"float32"``.
    weights : numpy.ndarray
        (kernel height, kernel width, channels, multiplier), read-only; dequantized where the file has a DEQUANTIZE before them.
    bias : numpy.ndarray or None
        (channels * multiplier,), int32, int64 for int16, or float32.
    quantization : Quantization or None
        None for float32.
    stride, dilation : tuple of int
        (height, width).
    padding : str or ((int, int), (int, int))
        ``"same"`` or ``"valid"``; ((top, bottom), (left, right)) of a fused layer.
    activation : str or None
        None, ``"relu"``, ``"relu6"`` or ``"relu_n1_to_1"``.
    pad : Pad or None
        Before a layer with ``"valid"`` padding: what `fused` makes part of it.
    stored_multiplier : int
        Depth multiplier in the file: that of the weights, or 0.
    """

    data_format: ClassVar[Literal["NHWC"]] = "NHWC"

    name: str
    subgraph: int
    index: int
    input: int
    output: int
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    weights: npt.NDArray[Any] = field(repr=False)
    bias: npt.NDArray[Any] | None = field(repr=False)
    quantization: Quantization | None = field(repr=False)
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: Literal["same", "valid"] | Sides
    activation: Literal["relu", "relu6", "relu_n1_to_1"] | None
    pad: Pad | None = None
    stored_multiplier: int = 1

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
            Takes arrays of shape (N, H, W, C).

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
            "dtype": self.dtype,
        }
        return DepthwiseConv2d(**own | plan_options(DepthwiseConv2d, options))

    def fused(self) -> DepthwiseLayer:
        """Make the PAD before this layer part of it: the same layer with explicit padding, on what the PAD takes.

        Returns
        -------
        DepthwiseLayer
            This one where there is no such PAD.
        """
        if self.pad is None:
            return self
        (top, bottom), (left, right) = self.pad.sides
        batch, height, width, channels = self.input_shape
        return dataclasses.replace(
            self, input=self.pad.input, input_shape=(batch, height - top - bottom, width - left - right, channels), padding=self.pad.sides, pad=None
        )


@dataclass(frozen=True, eq=False)
class TfliteModel:
    """What a `.tflite` file holds, as far as depthwise convolutions are concerned.

    Attributes
    ----------
    content : bytes
        The file.
    inputs : tuple of ModelInput
        Of the first subgraph.
    layers : tuple of DepthwiseLayer
        Of all subgraphs, in the order of the file.
    tensor_bytes : int
        Sum of the sizes of all tensors.
    """

    format: ClassVar[str] = "tflite"
    skipped: ClassVar[tuple[str, ...]] = ()

    content: bytes
    inputs: tuple[ModelInput, ...]
    layers: tuple[DepthwiseLayer, ...]
    tensor_bytes: int


def depthwise_layers(path: str | os.PathLike[str] | bytes) -> list[DepthwiseLayer]:
    """Read every DEPTHWISE_CONV_2D of a `.tflite` file.

    Parameters
    ----------
    path : str, path-like or bytes
        The file, or its content.

    Returns
    -------
    list of DepthwiseLayer
        Of all subgraphs, in the order of the file; empty when there is none.

    Raises
    ------
    LayoutError
        For a file that is no TensorFlow Lite model, is damaged, or holds a depthwise layer that breaks a rule of its own format.
    DTypeError
        For a depthwise layer of element types that no kernel here takes; it names the layer.
    MissingLibraryError
        Without the `tflite` package.
    OSError
        For a file that cannot be read.

    Examples
    --------
    >>> from nd4jlike.adapters.tflite import depthwise_layers
    >>> depthwise_layers(b"no model at all")
    Traceback (most recent call last):
    nd4jlike.errors.LayoutError: not a TensorFlow Lite model: bytes 4 to 8 must be b'TFL3', they are b'odel'
    """
    return list(read_model(path).layers)


def read_model(path: str | os.PathLike[str] | bytes) -> TfliteModel:
    """Read a `.tflite` file, checking every index in it.

    Parameters
    ----------
    path : str, path-like or bytes
        The file, or its content.

    Returns
    -------
    TfliteModel
        Inputs and depthwise layers.

    Raises
    ------
    LayoutError, DTypeError, MissingLibraryError, OSError
        As `depthwise_layers`.
    """
    try:
        return _read(_content(path))
    except MissingLibraryError:
        raise
    except Nd4jLikeError as error:
        if not isinstance(path, bytes):
            error.args = (f"{os.fspath(path)}: {error}",)
        raise


def _read(content: bytes) -> TfliteModel:
    try:
        tflite = importlib.import_module("tflite")
    except ImportError as error:
        raise MissingLibraryError("reading a .tflite file needs the tflite package: pip install nd4jlike[cli]") from error
    try:
        return _Reader(tflite, content).model()
    except Nd4jLikeError:
        raise
    except _DAMAGE as error:
        raise LayoutError(f"damaged or truncated TensorFlow Lite model: its {len(content)} bytes refer to others outside them ({error})") from error


def _content(path: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(path, bytes):
        return _identified(path, path[:8])
    with Path(path).open("rb") as file:
        # The head first: a device or a disk image is refused without reading it whole.
        head = file.read(8)
        content = _identified(head, head) + file.read(LARGEST_FILE)
    if len(content) > LARGEST_FILE:
        raise LayoutError(f"a TensorFlow Lite model has at most {LARGEST_FILE} bytes")
    return content


def _identified(content: bytes, head: bytes) -> bytes:
    if head[4:8] != IDENTIFIER:
        found = repr(head[4:8]) if len(head) >= 8 else f"missing ({len(head)} bytes in all)"
        raise LayoutError(f"not a TensorFlow Lite model: bytes 4 to 8 must be {IDENTIFIER!r}, they are {found}")
    return content


def _names(enumeration: Any) -> dict[int, str]:
    """Names of the values of one of the schema's enumerations."""
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int) and not name.startswith("_")}


class _Reader:
    """The tables of one file; every count and index is checked before it is used."""

    def __init__(self, tflite: Any, content: bytes) -> None:
        self.tflite = tflite
        self.content = content
        self.root = tflite.Model.GetRootAs(content, 0)
        self.types = _names(tflite.TensorType)
        self.codes = [self.operator_code(self.root.OperatorCodes(i)) for i in self.counted("operator codes", self.root.OperatorCodesLength())]
        self.buffers = len(self.counted("buffers", self.root.BuffersLength()))

    def counted(self, what: str, length: int) -> range:
        """Give the indices of a vector of `length` tables or numbers, which cannot be longer than the file."""
        if length * 4 > len(self.content):
            raise LayoutError(f"damaged TensorFlow Lite model: {length} {what} in a file of {len(self.content)} bytes")
        return range(length)

    @staticmethod
    def operator_code(code: Any) -> int:
        """Take the larger of the deprecated byte, all that files before schema 3a have, and the word that later files have."""
        # The accessor of the package ignores small numbers in the word; the interpreters do not.
        slot = code._tab.Offset(10)
        word = code._tab.Get(importlib.import_module("flatbuffers.number_types").Int32Flags, slot + code._tab.Pos) if slot else 0
        return max(int(word), int(code.DeprecatedBuiltinCode()))

    def model(self) -> TfliteModel:
        """Read all subgraphs."""
        subgraphs = [_Subgraph(self, i, self.root.Subgraphs(i)) for i in self.counted("subgraphs", self.root.SubgraphsLength())]
        if not subgraphs:
            raise LayoutError("damaged TensorFlow Lite model: it has no subgraph")
        return TfliteModel(
            content=self.content,
            inputs=tuple(subgraphs[0].inputs()),
            layers=tuple(layer for subgraph in subgraphs for layer in subgraph.layers()),
            tensor_bytes=sum(tensor.nbytes for subgraph in subgraphs for tensor in subgraph.tensors),
        )

    def buffer(self, index: int) -> memoryview:
        """Find the bytes of one buffer: inside its table, or behind the tables in files of more than 2 GB."""
        buffer = self.root.Buffers(index)
        start, size = int(buffer.Offset()), int(buffer.Size())
        if start > 1:
            if start + size > len(self.content):
                raise LayoutError(f"damaged TensorFlow Lite model: buffer {index} ends at byte {start + size} of {len(self.content)}")
            return memoryview(self.content)[start : start + size]
        self.counted("words of data", buffer.DataLength() // 4)
        data = buffer.DataAsNumpy()
        return data.data if isinstance(data, np.ndarray) else memoryview(b"")


class _Tensor:
    """One row of a subgraph's table of tensors."""

    def __init__(self, reader: _Reader, subgraph: int, index: int, table: Any) -> None:
        self.reader = reader
        self.table = table
        self.name = (table.Name() or b"").decode("utf-8", "replace") or f"tensor {index}"
        self.type = reader.types.get(table.Type(), f"type {table.Type()}")
        self.shape = tuple(int(table.Shape(i)) for i in reader.counted("extents", table.ShapeLength()))
        self.dtype = np.dtype(_DTYPES[self.type]) if self.type in _DTYPES else None
        self.nbytes = math.prod(self.shape) * (self.dtype.itemsize if self.dtype else 8)
        self.buffer = int(table.Buffer())
        if not 0 <= self.buffer < reader.buffers:
            raise LayoutError(f"damaged TensorFlow Lite model: tensor {subgraph}/{index} is in buffer {self.buffer} of {reader.buffers}")
        if any(extent < -1 for extent in self.shape):
            raise LayoutError(f"damaged TensorFlow Lite model: tensor {subgraph}/{index} ({self.name}) has shape {self.shape}")
        # What a reference interpreter would read unchecked: a constant shorter than its shape.
        stored = len(reader.buffer(self.buffer))
        if stored and self.dtype is not None and table.Sparsity() is None and stored < self.nbytes:
            raise LayoutError(
                f"damaged TensorFlow Lite model: tensor {subgraph}/{index} ({self.name}) of shape {self.shape} has {stored} of {self.nbytes} bytes"
            )

    @property
    def known_shape(self) -> tuple[int, ...]:
        """The shape with 1 for what the file leaves open."""
        return tuple(abs(extent) for extent in self.shape)

    def constant(self) -> npt.NDArray[Any] | None:
        """Read the values in the file; None when they are computed."""
        data = self.reader.buffer(self.buffer)
        if not data or self.dtype is None or self.table.Sparsity() is not None:
            return None
        values = np.frombuffer(data, self.dtype, math.prod(self.shape)).reshape(self.shape)
        values = np.require(values, requirements="A")
        values.flags.writeable = False
        return values

    def scales(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], int]:
        """Read scales, zero points (as many) and the axis they belong to; no scales when there is no quantization."""
        table = self.table.Quantization()
        if table is None or table.ScaleLength() == 0:
            return np.empty(0, np.float32), np.empty(0, np.int64), 0
        self.reader.counted("scales", table.ScaleLength())
        scales = np.array(table.ScaleAsNumpy(), np.float32)
        zero_points = np.array(table.ZeroPointAsNumpy(), np.int64) if table.ZeroPointLength() else np.zeros(1, np.int64)
        if len(zero_points) not in (1, len(scales)):
            raise LayoutError(f"tensor {self.name}: {len(scales)} scales and {len(zero_points)} zero points; as many or one")
        return scales, np.broadcast_to(zero_points, len(scales)), int(table.QuantizedDimension())

    def dequantized(self) -> npt.NDArray[np.float32] | None:
        """Read the constant as float32: what DEQUANTIZE makes of it."""
        values = self.constant()
        if values is None or values.dtype.kind == "f":
            return None if values is None else _frozen(values.astype(np.float32))
        scales, zero_points, axis = self.scales()
        extents = [1] * values.ndim
        if len(scales) > 1:
            if not 0 <= axis < values.ndim or values.shape[axis] != len(scales):
                raise LayoutError(f"tensor {self.name}: {len(scales)} scales along axis {axis} of shape {values.shape}")
            extents[axis] = len(scales)
        elif not len(scales):
            raise LayoutError(f"tensor {self.name}: DEQUANTIZE of {self.type} without a scale")
        # The product of two float32 numbers is exact in float64, so it is rounded once, as in the interpreters.
        exact = (values.astype(np.int64) - zero_points.reshape(extents)) * scales.astype(np.float64).reshape(extents)
        return _frozen(exact.astype(np.float32))


class _Subgraph:
    """One graph of operators and tensors."""

    def __init__(self, reader: _Reader, number: int, table: Any) -> None:
        self.reader = reader
        self.number = number
        self.table = table
        self.tensors = [_Tensor(reader, number, i, table.Tensors(i)) for i in reader.counted("tensors", table.TensorsLength())]
        self.operators = [table.Operators(i) for i in reader.counted("operators", table.OperatorsLength())]
        self.sources: dict[int, Any] = {}
        # What came first of each tensor: one that is written later than that is not, after a run, what its readers saw.
        first = {table.Inputs(i): "is an input of the graph" for i in reader.counted("inputs", table.InputsLength())}
        for index, operator in enumerate(self.operators):
            if not 0 <= operator.OpcodeIndex() < len(reader.codes):
                raise LayoutError(f"damaged TensorFlow Lite model: operator {number}/{index} has code {operator.OpcodeIndex()} of {len(reader.codes)}")
            inputs = [operator.Inputs(i) for i in reader.counted("operator inputs", operator.InputsLength())]
            outputs = [operator.Outputs(i) for i in reader.counted("operator outputs", operator.OutputsLength())]
            for tensor in (*inputs, *outputs):
                # -1 is an optional input left out.
                if not -1 <= tensor < len(self.tensors):
                    raise LayoutError(f"damaged TensorFlow Lite model: operator {number}/{index} names tensor {tensor} of {len(self.tensors)}")
            for tensor in inputs:
                first.setdefault(tensor, f"is read by operator {number}/{index}")
            for tensor in outputs:
                if tensor >= 0 and tensor in first:
                    raise LayoutError(f"damaged TensorFlow Lite model: tensor {number}/{tensor} {first[tensor]} before operator {number}/{index} writes it")
                first[tensor] = f"is written by operator {number}/{index}"
            self.sources.update((tensor, operator) for tensor in outputs)

    def inputs(self) -> Iterator[ModelInput]:
        """Describe the inputs of the graph."""
        for i in self.reader.counted("inputs", self.table.InputsLength()):
            index = int(self.table.Inputs(i))
            if not 0 <= index < len(self.tensors):
                raise LayoutError(f"damaged TensorFlow Lite model: input {i} is tensor {index} of {len(self.tensors)}")
            tensor = self.tensors[index]
            if tensor.dtype is None:
                raise DTypeError(f"model input {tensor.name}: no element type here for {tensor.type}")
            yield ModelInput(tensor.name, index, tensor.known_shape, tensor.dtype)

    def layers(self) -> Iterator[DepthwiseLayer]:
        """Read the depthwise convolutions of the graph."""
        depthwise = self.reader.tflite.BuiltinOperator.DEPTHWISE_CONV_2D
        for index, operator in enumerate(self.operators):
            if self.reader.codes[operator.OpcodeIndex()] == depthwise:
                yield self.layer(index, operator)

    def layer(self, index: int, operator: Any) -> DepthwiseLayer:
        """Read one depthwise convolution."""
        if operator.InputsLength() not in (2, 3) or operator.OutputsLength() != 1 or min(operator.Inputs(0), operator.Inputs(1), operator.Outputs(0)) < 0:
            raise LayoutError(f"depthwise layer {self.number}/{index}: it takes an input, weights and an optional bias, and makes one output")
        x, y, weights = self.tensors[operator.Inputs(0)], self.tensors[operator.Outputs(0)], self.tensors[operator.Inputs(1)]
        where = f"depthwise layer {self.number}/{index} ({y.name})"
        if x.type not in _KINDS or y.type != x.type or weights.type != _KINDS[x.type][0]:
            raise DTypeError(
                f"{where}: input {x.type}, weights {weights.type}, output {y.type}; supported are all FLOAT32, all INT8, all UINT8, and INT16 with INT8 weights"
            )
        dtype = x.type.lower()

        kernel = self.values(operator.Inputs(1), f"{where}: its weights")
        bias = None
        if operator.InputsLength() == 3 and operator.Inputs(2) >= 0:
            bias = self.values(operator.Inputs(2), f"{where}: its bias")
            expected = _KINDS[x.type][1]
            if self.tensors[operator.Inputs(2)].type != expected:
                raise DTypeError(f"{where}: bias {self.tensors[operator.Inputs(2)].type}; {expected} belongs to {x.type}")
        if len(x.shape) != 4 or len(y.shape) != 4 or kernel.ndim != 4 or kernel.shape[0] != 1 or 0 in kernel.shape:
            raise LayoutError(
                f"{where}: input {x.shape}, weights {kernel.shape}, output {y.shape}; [N, H, W, C], [1, kH, kW, C*M], [N, H', W', C*M] are needed"
            )
        channels, outputs = x.known_shape[3], kernel.shape[3]
        if channels < 1 or outputs % channels or y.known_shape[3] != outputs:
            raise LayoutError(
                f"{where}: {channels} channels of input, {outputs} of weights, {y.shape[3]} of output; the weights need a multiple, the output as many as they"
            )
        if bias is not None and bias.shape != (outputs,):
            raise LayoutError(f"{where}: bias of shape {bias.shape} for {outputs} output channels")

        options = self.options(operator, where)
        # The schema calls it redundant; TensorFlow Lite Micro still reads it.
        if options.DepthMultiplier() not in (0, outputs // channels):
            raise LayoutError(f"{where}: depth multiplier {options.DepthMultiplier()}, but {outputs} weights for {channels} channels")
        padding = _supported(options.Padding(), _names(self.reader.tflite.Padding), _PADDINGS, f"{where}: padding")
        quantization = self.quantization(x, weights, y, outputs, where) if dtype != "float32" else None
        return DepthwiseLayer(
            name=y.name,
            subgraph=self.number,
            index=index,
            input=int(operator.Inputs(0)),
            output=int(operator.Outputs(0)),
            input_shape=x.known_shape,
            output_shape=y.known_shape,
            dtype=dtype,
            weights=_frozen(kernel.reshape(*kernel.shape[1:3], channels, outputs // channels)),
            bias=bias,
            quantization=quantization,
            stride=_positive((int(options.StrideH()), int(options.StrideW())), f"{where}: stride"),
            dilation=_positive((int(options.DilationHFactor()), int(options.DilationWFactor())), f"{where}: dilation"),
            padding=padding,
            activation=_supported(
                options.FusedActivationFunction(), _names(self.reader.tflite.ActivationFunctionType), _ACTIVATIONS, f"{where}: fused activation"
            ),
            pad=self.pad(int(operator.Inputs(0)), quantization) if padding == "valid" else None,
            stored_multiplier=int(options.DepthMultiplier()),
        )

    def pad(self, padded: int, quantization: Quantization | None) -> Pad | None:
        """Read the operator that makes tensor `padded`, if it is one that pads height and width with zeros."""
        source = self.sources.get(padded)
        builtin = self.reader.tflite.BuiltinOperator
        if source is None or self.reader.codes[source.OpcodeIndex()] not in (builtin.PAD, builtin.PADV2):
            return None
        if source.InputsLength() not in (2, 3) or min(source.Inputs(i) for i in range(source.InputsLength())) < 0:
            return None
        x, y, zero = self.tensors[source.Inputs(0)], self.tensors[padded], 0 if quantization is None else quantization.input[1]
        amounts = self.tensors[source.Inputs(1)].constant()
        values = self.tensors[source.Inputs(2)].constant() if source.InputsLength() == 3 else np.array(zero)
        if amounts is None or amounts.shape != (4, 2) or amounts.dtype.kind != "i" or values is None or values.size != 1 or values.item() != zero:
            return None
        before, after = amounts.T.tolist()
        grown = tuple(extent if extent < 0 else extent + b + a for extent, b, a in zip(x.shape, before, after, strict=False))
        if amounts.min() < 0 or amounts[[0, 3]].any() or x.type != y.type or grown != y.shape:
            return None
        if quantization is not None and [part.tolist() for part in x.scales()[:2]] != [part.tolist() for part in y.scales()[:2]]:
            return None
        return Pad(int(source.Inputs(0)), ((before[1], after[1]), (before[2], after[2])))

    def options(self, operator: Any, where: str) -> Any:
        """Find the operator's table of options."""
        tflite = self.reader.tflite
        table = operator.BuiltinOptions()
        if operator.BuiltinOptionsType() != tflite.BuiltinOptions.DepthwiseConv2DOptions or table is None:
            raise LayoutError(f"{where}: it has no DepthwiseConv2DOptions")
        options = tflite.DepthwiseConv2DOptions()
        options.Init(table.Bytes, table.Pos)
        return options

    def values(self, index: int, what: str) -> npt.NDArray[Any]:
        """Read the values of a constant tensor, or of a constant behind DEQUANTIZE."""
        tensor = self.tensors[index]
        source = self.sources.get(index)
        if source is None:
            values = tensor.constant()
        elif (
            self.reader.codes[source.OpcodeIndex()] == self.reader.tflite.BuiltinOperator.DEQUANTIZE
            and source.InputsLength() == 1
            and source.Inputs(0) >= 0
            and source.Inputs(0) not in self.sources
        ):
            values = self.tensors[source.Inputs(0)].dequantized()
            if values is not None and values.shape != tensor.shape:
                raise LayoutError(f"{what}: DEQUANTIZE of shape {values.shape} into {tensor.shape}")
        else:
            values = None
        if values is None:
            raise LayoutError(f"{what} ({tensor.name}) must be a constant of the file, or one behind DEQUANTIZE")
        return values

    @staticmethod
    def quantization(x: _Tensor, weights: _Tensor, y: _Tensor, outputs: int, where: str) -> Quantization:
        """Read the scales and zero points of a layer."""
        pairs = []
        for what, tensor in (("input", x), ("output", y)):
            scales, zero_points, _ = tensor.scales()
            if len(scales) != 1:
                raise LayoutError(f"{where}: {len(scales)} scales for its {what}; {x.type} activations have one")
            pairs.append((float(scales[0]), int(zero_points[0])))
        scales, zero_points, axis = weights.scales()
        if len(scales) not in (1, outputs) or (len(scales) > 1 and axis != 3):
            raise LayoutError(f"{where}: {len(scales)} scales along axis {axis} of its weights; one, or one for each of {outputs} along axis 3")
        if weights.type == "INT8" and zero_points.any():
            raise LayoutError(f"{where}: INT8 weights have zero point 0, these have {zero_points[zero_points != 0][0]}")
        if (zero_points != zero_points[0]).any():
            raise LayoutError(f"{where}: {weights.type} weights have one zero point, these have {zero_points.tolist()}")
        try:
            found = Quantization(input=pairs[0], weights=scales, output=pairs[1], weights_zero_point=int(zero_points[0]))
            found.check(x.type.lower(), outputs)
        except Nd4jLikeError as error:
            raise LayoutError(f"{where}: {error}") from error
        return found


def _frozen(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values.flags.writeable = False
    return values


def _positive(pair: tuple[int, int], what: str) -> tuple[int, int]:
    if min(pair) < 1:
        raise LayoutError(f"{what} {pair}: both are 1 or more")
    return pair


def _supported(value: int, names: dict[int, str], known: dict[str, Any], what: str) -> Any:
    name = names.get(value, str(value))
    if name not in known:
        raise LayoutError(f"{what} {name} is not supported; {', '.join(known)} are")
    return known[name]

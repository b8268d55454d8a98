"""A kernel of the user's: what it is told of a layer, and what it may return."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike.creation import asarray
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import DTypeError, LayoutError, Nd4jLikeError
from nd4jlike.geometry import AXES, Window
from nd4jlike.ndarray import NdArray
from nd4jlike.quantization import ACTIVATIONS
from nd4jlike.verify.formats import called

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from nd4jlike.quantization import Quantization
    from nd4jlike.verify.formats import Layer

    _Array = npt.NDArray[Any]

__all__ = ["KernelLayer", "OwnKernel", "kernel_layer"]

# Bytes on each side of what a kernel is given: a row of most layers. No two neighbours are alike.
_GUARD = (np.arange(4096) * 167 + 91).astype(np.uint8)
_ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class KernelLayer:
    """One layer on one input, as a kernel of your own computes it: nothing is left open.

    Attributes
    ----------
    name : str
        Of the layer in the model.
    subgraph, index : int
        Where its operator is in the model.
    dtype : str
        Of input and output: ``"int8"``, ``"uint8"``, ``"int16"`` (with int8 weights), ``"float16"``, ``"float32"`` or ``"float64"``.
    input_shape, output_shape : tuple of int
        (N, H, W, C) and (N, OH, OW, C*M), whatever the order in the model.
    weights : numpy.ndarray
        (kernel height, kernel width, C, M), C-contiguous; output channel c*M + m. It and the other arrays are copies, read-only.
    bias : numpy.ndarray or None
        (C*M,), int32, int64 for int16, or the type of floats; None where the layer has none.
    stride, dilation : (int, int)
        (height, width).
    padding : ((int, int), (int, int))
        ((top, bottom), (left, right)): pixels that stand for 0, which is the input zero point of integers.
    activation : str or None
        None, ``"relu"``, ``"relu6"`` or ``"relu_n1_to_1"``: what `bounds` come from.
    bounds : (int, int) or (float, float)
        Lowest and highest result: of integers the quantized ones, zero point added.
    quantization : Quantization or None
        Scales and zero points; None for floats.
    rounding : {"tflite", "xnnpack", None}
        Whose bits the result is compared with; None for floats.
    multipliers, shifts : numpy.ndarray of int32, or None
        (C*M,): of `Quantization.multipliers_and_shifts`, what ``"tflite"`` scales with.
    scales : numpy.ndarray of float32, or None
        (C*M,): of `Quantization.float_scales`, what ``"xnnpack"`` scales with.
    probe : bool
        Whether bias, scales and zero points are others than the model's, to find what a mismatch accumulated. A kernel may raise then.
    """

    name: str
    subgraph: int
    index: int
    dtype: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    weights: _Array = field(repr=False)
    bias: _Array | None = field(repr=False)
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    activation: Literal["relu", "relu6", "relu_n1_to_1"] | None
    bounds: tuple[float, float]
    quantization: Quantization | None = field(repr=False)
    rounding: str | None
    multipliers: npt.NDArray[np.int32] | None = field(repr=False)
    shifts: npt.NDArray[np.int32] | None = field(repr=False)
    scales: npt.NDArray[np.float32] | None = field(repr=False)
    probe: bool = False


def kernel_layer(layer: Layer, rounding: str, shape: tuple[int, ...], probe: bool = False) -> KernelLayer:
    """Say what a layer, or a probe of one, computes of an input of `shape`, (N, H, W, C), with a rounding."""
    batch, height, width, _ = shape
    sides: Any = ((0, 0), (0, 0)) if layer.padding == "valid" else layer.padding
    walk = Window(layer.kernel, layer.stride, layer.dilation, sides).over((height, width))
    outputs = layer.channels * layer.multiplier
    bounds, multipliers, shifts, scales = ACTIVATIONS[layer.activation], None, None, None
    if layer.quantization is not None:
        bounds = layer.quantization.bounds(layer.activation, layer.dtype, rounding)
        multipliers, shifts = layer.quantization.multipliers_and_shifts(outputs, layer.dtype)
        scales = layer.quantization.float_scales(outputs)
    return KernelLayer(
        name=layer.name,
        subgraph=layer.subgraph,
        index=layer.index,
        dtype=layer.dtype,
        input_shape=shape,
        output_shape=(batch, *walk.out, outputs),
        weights=np.ascontiguousarray(layer.weights),
        bias=layer.bias,
        stride=layer.stride,
        dilation=layer.dilation,
        padding=walk.reach if sides == "same" else sides,
        activation=layer.activation,
        bounds=bounds,
        quantization=layer.quantization,
        rounding=rounding if layer.quantization else None,
        multipliers=multipliers,
        shifts=shifts,
        scales=scales,
        probe=probe,
    )


class _Guarded:
    """Memory of its own between guards: whoever writes to it by a pointer is seen."""

    def __init__(self, cells: int, dtype: Any) -> None:
        size = cells * np.dtype(dtype).itemsize
        block = np.empty(_ALIGNMENT + 2 * _GUARD.size + size, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        self._before, inside, self._behind = np.split(block[start : start + 2 * _GUARD.size + size], [_GUARD.size, _GUARD.size + size])
        self._before[:] = self._behind[:] = _GUARD
        self._inside, self._was = inside, inside
        self.cells: _Array = inside.view(dtype)

    @classmethod
    def copy(cls, values: _Array) -> tuple[_Guarded, _Array]:
        """Copy an array, C-contiguous and read-only."""
        made = cls(values.size, values.dtype)
        made.cells[:] = values.ravel()
        made.seal()
        array = made.cells.reshape(values.shape)
        array.flags.writeable = False
        return made, array

    def seal(self) -> None:
        """Remember what it holds: what is written from now on is not meant to be."""
        self._was = self._inside.copy()

    def written(self) -> str:
        """Tell how many bytes have changed, and where; nothing if none has."""
        pairs = ((self._before, _GUARD), (self._inside, self._was), (self._behind, _GUARD))
        before, inside, behind = (int(np.count_nonzero(now != was)) for now, was in pairs)
        return f"bytes that changed: {before} before it, {inside} in it, {behind} behind it" if before or inside or behind else ""


class OwnKernel:
    """A callable that computes layers: (x, KernelLayer) to an output."""

    def __init__(self, function: Callable[[NdArray, KernelLayer], Any], halo: bool) -> None:
        self.function = function
        self.halo = halo
        self.name = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', type(function).__name__)}"

    def run(self, layer: Layer, rounding: str, seen: _Array, probe: bool = False) -> tuple[NdArray, NdArray]:
        """Compute the layer; its input and its output, axes as in the layer."""
        axes = AXES[layer.data_format]
        values = seen.transpose(axes)
        told = kernel_layer(layer, rounding, values.shape, probe)
        sides = told.padding if self.halo else ((0, 0), (0, 0))
        before, after = zip((0, 0), *sides, (0, 0), strict=True)
        paddings = tuple(b + a for b, a in zip(before, after, strict=True))
        descriptor = ShapeDescriptor.paddedBufferDescriptor(layer.dtype, "c", values.shape, paddings, before)
        given = {"x": _Guarded(descriptor.allocLength(), layer.dtype)}
        x = NdArray(descriptor, given["x"].cells)
        x.fill_padding(told.quantization.input[1] if told.quantization else 0)
        x[...] = values
        given["x"].seal()
        copies: dict[str, Any] = {}
        for name in ("weights", "bias", "multipliers", "shifts", "scales"):
            array = getattr(told, name)
            if array is not None:
                given[name], copies[name] = _Guarded.copy(array)
        told = replace(told, **copies)

        where = f"{called(layer)}: kernel {self.name}"
        try:
            made = self.function(x, told)
        except (Exception, SystemExit) as error:
            raise Nd4jLikeError(f"{where} raised {type(error).__name__}: {error}{_place(error)}") from error
        for name, memory in given.items():
            if written := memory.written():
                raise Nd4jLikeError(f"{where} wrote to {name}: {written}; it may write to what it returns alone")
        try:
            y = asarray(made)
        except Nd4jLikeError as error:
            raise type(error)(f"{where} must return an array of shape {told.output_shape} and {told.dtype}, not a {type(made).__name__}: {error}") from error
        if y.shape != told.output_shape:
            raise LayoutError(f"{where} returned shape {y.shape}; the output (N, OH, OW, C*M) has {told.output_shape}")
        if y.dtype != np.dtype(told.dtype):
            raise DTypeError(f"{where} returned {y.dtype}; the output has the element type of the input, {told.dtype}")
        back = tuple(np.argsort(axes).tolist())
        return x.permute(back), y.permute(back)


def _place(error: BaseException) -> str:
    """Name the last line outside of this package that an error came through."""
    here = (str(Path(__file__).parents[1]) + os.sep, "nd4jlike/")  # compiled modules know a relative path
    places = [f" ({frame.filename}, line {frame.lineno})" for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(here)]
    return places[-1] if places else ""

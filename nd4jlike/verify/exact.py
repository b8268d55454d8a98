"""A layer of floats in a wider type, and how far from that any order of operations may end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.geometry import AXES
from nd4jlike.quantization import ACTIVATIONS

if TYPE_CHECKING:
    import numpy.typing as npt

    from nd4jlike.verify.formats import Layer

    _Array = npt.NDArray[Any]

__all__ = ["beyond", "exactly"]


def beyond(layer: Layer, axis: int, extent: int, made: int) -> tuple[int, int]:
    """How far the windows reach beyond the image before and behind it, along its rows (0) or columns (1)."""
    missing = max((made - 1) * layer.stride[axis] + (layer.kernel[axis] - 1) * layer.dilation[axis] + 1 - extent, 0)
    before = missing // 2 if isinstance(layer.padding, str) else layer.padding[axis][0]
    return before, max(missing - before, 0)


def exactly(layer: Layer, x: _Array, output_shape: tuple[int, ...]) -> tuple[_Array, _Array]:
    """Compute the layer in a wider type, and how far from it any order of operations may end: K products and K sums, each rounded once; halves the result."""
    wide, narrow = (np.longdouble, np.float64) if layer.dtype == "float64" else (np.float64, np.float32)
    axes = AXES[layer.data_format]
    padded, taps = x.astype(wide).transpose(axes), []
    inside = np.ones((1, *padded.shape[1:3], 1, 1), bool)
    made = tuple(output_shape[axis] for axis in axes)
    for axis, (kernel, stride, dilation) in enumerate(zip(layer.kernel, layer.stride, layer.dilation, strict=True), start=1):
        sides = beyond(layer, axis - 1, padded.shape[axis], made[axis])
        padded, inside = (np.pad(values, [sides if a == axis else (0, 0) for a in range(values.ndim)]) for values in (padded, inside))
        taps.append([slice(t * dilation, t * dilation + (made[axis] - 1) * stride + 1, stride) for t in range(kernel)])

    shape = (*made[:3], layer.channels, layer.multiplier)
    bias: _Array = np.zeros(1, wide) if layer.bias is None else layer.bias.astype(wide).reshape(layer.channels, layer.multiplier)
    total: _Array = np.zeros(shape, wide) + bias
    magnitude: _Array = np.zeros(shape, wide) + np.abs(bias)
    for row, weights in zip(taps[0], layer.weights.astype(wide), strict=True):
        for column, weight in zip(taps[1], weights, strict=True):
            # A weight that is not finite times a zero of the padding would be NaN.
            term = np.where(inside[:, row, column], padded[:, row, column, :, None] * weight, 0)
            total += term
            magnitude += np.abs(term)
    operations = len(taps[0]) * len(taps[1]) + 1
    # The second term: what a processor that flushes denormal numbers to zero may lose.
    unit = float(np.finfo(narrow).eps) / 2
    bound = operations * unit / (1 - operations * unit) * magnitude + operations * np.finfo(narrow).tiny
    if layer.dtype == "float16":
        half = np.finfo(np.float16)
        bound += float(half.eps) / 2 * (np.abs(total) + bound) + float(half.smallest_subnormal) / 2
    low, high = ACTIVATIONS[layer.activation]
    back = np.argsort(axes)
    return np.clip(total, low, high).reshape(made).transpose(back), bound.reshape(made).transpose(back)

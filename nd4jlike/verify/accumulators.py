"""What a quantized layer rounds, seen from outside."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.geometry import AXES
from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from nd4jlike.verify.formats import Layer

    _Array = npt.NDArray[Any]

__all__ = ["accumulator_of"]

# Powers of two of the coarse scales: what one leaves over fits the next one's output. No multiplier is below 2**-32, none above a half: models have no other.
_SHIFTS = {8: (24, 17, 10, 3, 1), 16: (32, 18, 4, 1)}
# Beyond it the first output of int16 saturates; the products of a window are far below.
_LARGEST_BIAS = 1 << 46
# Halves of what is moved there by the bias in the end, however ties round: a kernel that goes by its scale and bias follows.
_MOVES = ((10, 5), (-6, -3), (3, 2), (2, 1))


def accumulator_of(layer: Layer, run: Callable[[Layer], _Array], index: tuple[int, ...]) -> int | None:
    """Find what `run` accumulates for one output, a few bits at a time: by the output on a coarse scale, then by a bias that takes away what is known.

    None where outputs do not go by scales and biases.
    """
    q = layer.quantization
    assert q is not None
    limits = np.iinfo(np.dtype(layer.dtype))
    zero_point = (int(limits.max) + int(limits.min) + 1) // 2
    outputs = layer.channels * layer.multiplier
    bias = np.zeros(outputs, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    if abs(int(bias[index[AXES[layer.data_format][3]]])) >= _LARGEST_BIAS:
        return None

    def rest(known: int, shift: int) -> int:
        quantization = Quantization((1.0, q.input[1]), 1.0, (2.0**shift, zero_point), q.weights_zero_point)
        bias_then = (bias - known).astype(np.int64 if layer.dtype == "int16" else np.int32)
        probe = dataclasses.replace(layer, bias=bias_then, quantization=quantization, activation=None)
        return (int(run(probe)[index]) - zero_point) << shift

    known = 0
    for shift in _SHIFTS[limits.bits]:
        known += rest(known, shift)
    # Of halves the rounding of ties is not known: 3 is the first that makes 2, whatever that is.
    known += next((3 - move for move in range(1, 6) if rest(known - move, 1) >= 4), 0)
    return known if all(rest(known - move, 1) == 2 * half for move, half in _MOVES) else None

"""What a quantized layer rounds, seen from outside."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from nd4jlike.verify.formats import Layer

    _Array = npt.NDArray[Any]

__all__ = ["accumulator_of"]


def accumulator_of(layer: Layer, run: Callable[[Layer], _Array], index: tuple[int, ...]) -> int:
    """Find what `run` accumulates for one output, 7 bits at a time: by the output on a coarse scale, then by a bias that takes away what is known."""
    assert layer.quantization is not None
    limits = np.iinfo(np.dtype(layer.dtype))
    zero_point = (int(limits.max) + int(limits.min) + 1) // 2
    outputs = layer.channels * layer.multiplier
    bias = np.zeros(outputs, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    known = 0
    for shift in (24, 17, 10, 3, 0):
        quantization = Quantization((1.0, layer.quantization.input[1]), 1.0, (2.0**shift, zero_point), layer.quantization.weights_zero_point)
        bias_then = (bias - known).astype(np.int64 if layer.dtype == "int16" else np.int32)
        probe = dataclasses.replace(layer, bias=bias_then, quantization=quantization, activation=None)
        known += (int(run(probe)[index]) - zero_point) << shift
    return known

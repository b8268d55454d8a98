"""Scales, zero points and the numbers that requantize an accumulator (ADR 0006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from nd4jlike.errors import LayoutError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ACTIVATIONS", "ROUNDINGS", "Quantization", "quantize_multiplier", "quantized_activation_range"]

# Bounds of the real result, lowest and highest.
ACTIVATIONS: dict[str | None, tuple[float, float]] = {
    None: (-math.inf, math.inf),
    "relu": (0.0, math.inf),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
}
# The position is the code that kernels know.
ROUNDINGS = ("tflite", "xnnpack")
# An int32 accumulator can be shifted left by no more.
MAX_SHIFT = 30
# A smaller multiplier moves every int32 to 0, so it is 0.
MIN_SHIFT = -31


@dataclass(frozen=True, init=False)
class Quantization:
    """How integers stand for real numbers: ``real = scale * (integer - zero_point)``.

    Parameters
    ----------
    input, output : (float, int)
        Scale and zero point of the activations before and after the layer.
    weights : float or array_like of float
        One scale, or one for each output channel. Weights have no zero point.

    Attributes
    ----------
    input, output : (float, int)
        As given, scales rounded to float32.
    weights : tuple of float
        One scale, or one for each output channel, rounded to float32.

    Raises
    ------
    LayoutError
        A scale that is no number, or not finite and positive as a float32; a zero point that is no integer of 32 bits;
        an effective multiplier ``input * weights / output`` of 2**30 or more, or not representable as a float32.

    Notes
    -----
    Scales are float32 because that is what model files hold: the multipliers follow from them exactly (ADR 0006).

    Examples
    --------
    >>> from nd4jlike import Quantization
    >>> q = Quantization(input=(0.5, -1), weights=[0.25, 0.125], output=(0.5, 3))
    >>> q.weights
    (0.25, 0.125)
    >>> multipliers, shifts = q.multipliers_and_shifts()
    >>> multipliers.tolist() == [2**30, 2**30], shifts.tolist()
    (True, [-1, -2])
    """

    input: tuple[float, int]
    weights: tuple[float, ...]
    output: tuple[float, int]

    def __init__(self, input: tuple[float, int], weights: npt.ArrayLike, output: tuple[float, int]) -> None:  # noqa: A002
        object.__setattr__(self, "input", _scale_and_zero_point("input", input))
        object.__setattr__(self, "weights", _weight_scales(weights))
        object.__setattr__(self, "output", _scale_and_zero_point("output", output))

        largest = self._effective(max(self.weights))
        if quantize_multiplier(largest)[1] > MAX_SHIFT:
            raise LayoutError(
                f"the effective multiplier input scale * weight scale / output scale must be below 2**{MAX_SHIFT}: "
                f"{self.input[0]!r} * {max(self.weights)!r} / {self.output[0]!r} = {largest!r}"
            )
        with np.errstate(over="ignore"):
            if not np.isfinite(self.float_scales()).all():
                raise LayoutError(f"input scale * weight scale must be representable as a float32: {self.input[0]!r} * {max(self.weights)!r} is not")

    def multipliers_and_shifts(self, channels: int | None = None) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Fixed-point effective multipliers: ``multiplier * 2**(shift - 31)`` is ``input * weights / output``.

        Parameters
        ----------
        channels : int, optional
            Number of output channels, to repeat a single weight scale. None: as many as there are weight scales.

        Returns
        -------
        multipliers, shifts : ndarray of int32
            Multipliers in [2**30, 2**31), or 0; positive shifts go left.

        Notes
        -----
        TensorFlow Lite's `QuantizeMultiplier` on the product in double precision.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((1.0, 0), 1.0, (1.0, 0)).multipliers_and_shifts()
        (array([1073741824], dtype=int32), array([1], dtype=int32))
        """
        pairs = np.array([quantize_multiplier(self._effective(scale)) for scale in self.weights], np.int32)
        multipliers, shifts = np.repeat(pairs, self._repeats(channels), axis=0).T
        return np.ascontiguousarray(multipliers), np.ascontiguousarray(shifts)

    def float_scales(self, channels: int | None = None) -> npt.NDArray[np.float32]:
        """Effective multipliers ``input * weights / output``, each operation in float32, as XNNPACK has them.

        Parameters
        ----------
        channels : int, optional
            Number of output channels, to repeat a single weight scale. None: as many as there are weight scales.

        Returns
        -------
        ndarray of float32
            One for each channel.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((0.5, 0), 0.25, (1.0, 0)).float_scales(channels=2)
        array([0.125, 0.125], dtype=float32)
        """
        scales = np.float32(self.input[0]) * np.array(self.weights, np.float32) / np.float32(self.output[0])
        return np.repeat(scales, self._repeats(channels))

    def check(self, dtype: npt.DTypeLike, channels: int) -> None:
        """Check what only a layer can know: the range of the zero points and the number of scales.

        Parameters
        ----------
        dtype : dtype
            Integer type of the activations.
        channels : int
            Number of output channels.

        Raises
        ------
        LayoutError
            A zero point that `dtype` cannot hold; a number of weight scales other than 1 and `channels`.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((0.5, 128), 0.25, (1.0, 0)).check("int8", 4)
        Traceback (most recent call last):
        ...
        nd4jlike.errors.LayoutError: the input zero point must be an int8, -128 to 127: 128
        """
        limits = np.iinfo(np.dtype(dtype))
        for name, (_, zero_point) in (("input", self.input), ("output", self.output)):
            if not limits.min <= zero_point <= limits.max:
                raise LayoutError(f"the {name} zero point must be an {limits.dtype}, {limits.min} to {limits.max}: {zero_point}")
        if len(self.weights) not in (1, channels):
            raise LayoutError(f"weight scales must be one or one for each output channel: {len(self.weights)} scales for {channels} channels")

    def _effective(self, weight_scale: float) -> float:
        return self.input[0] * weight_scale / self.output[0]

    def _repeats(self, channels: int | None) -> int:
        if channels is None or len(self.weights) == channels:
            return 1
        if len(self.weights) != 1:
            raise LayoutError(f"weight scales must be one or one for each output channel: {len(self.weights)} scales for {channels} channels")
        return channels


def quantize_multiplier(effective: float) -> tuple[int, int]:
    """Fixed-point form of a positive number: ``multiplier * 2**(shift - 31)``.

    Parameters
    ----------
    effective : float
        The number, 0 or more.

    Returns
    -------
    multiplier : int
        In [2**30, 2**31), or 0.
    shift : int
        -31 or more; positive shifts go left.

    Notes
    -----
    TensorFlow Lite's `QuantizeMultiplier`: the fraction is rounded half away from zero; what a shift by more than 31 would
    remove is 0.

    Examples
    --------
    >>> from nd4jlike.quantization import quantize_multiplier
    >>> quantize_multiplier(0.75)
    (1610612736, 0)
    """
    fraction, shift = math.frexp(effective)
    # Exact: the product has 53 bits, and adding one half to a positive number below 2**31 loses none that matter.
    multiplier = math.floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    return (0, 0) if multiplier == 0 or shift < MIN_SHIFT else (multiplier, shift)


def quantized_activation_range(activation: str | None, output: tuple[float, int], dtype: npt.DTypeLike, rounding: str = "tflite") -> tuple[int, int]:
    """Bounds of the quantized result: an activation as a clamp.

    Parameters
    ----------
    activation : str or None
        A key of `ACTIVATIONS`.
    output : (float, int)
        Scale and zero point of the result.
    dtype : dtype
        Integer type of the result.
    rounding : {"tflite", "xnnpack"}
        Where one half goes: away from zero, or to even.

    Returns
    -------
    lowest, highest : int
        ``zero_point + round(bound / scale)``, divided in float32, within `dtype`.

    Notes
    -----
    TensorFlow Lite's `CalculateActivationRangeQuantized`, and XNNPACK's `xnn_qs8_quantize` (seen to round half to even).

    Examples
    --------
    >>> from nd4jlike.quantization import quantized_activation_range
    >>> quantized_activation_range("relu6", (0.05, -128), "int8")
    (-128, -8)
    """
    limits = np.iinfo(np.dtype(dtype))
    scale, zero_point = output

    def quantized(bound: float) -> int:
        with np.errstate(over="ignore"):
            steps = float(np.float32(bound) / np.float32(scale))
        if math.isinf(steps):
            return limits.max if steps > 0 else limits.min
        size = round(abs(steps)) if rounding == "xnnpack" else math.floor(abs(steps) + 0.5)
        return min(max(zero_point + (size if steps > 0 else -size), limits.min), limits.max)

    lowest, highest = ACTIVATIONS[activation]
    return quantized(lowest), quantized(highest)


def _scale_and_zero_point(name: str, pair: tuple[float, int]) -> tuple[float, int]:
    try:
        scale, zero_point = pair
    except (TypeError, ValueError):
        raise LayoutError(f"{name} must be a pair (scale, zero_point): {pair!r}") from None
    if isinstance(zero_point, (bool, np.bool_)) or not hasattr(zero_point, "__index__"):
        raise LayoutError(f"the {name} zero point must be an integer: {zero_point!r}")
    if not -(2**31) <= index(zero_point) < 2**31:
        raise LayoutError(f"the {name} zero point must be an int32: {zero_point}")
    scales = _scales(name, scale)
    if scales.ndim:
        raise LayoutError(f"the {name} scale must be one number: {scale!r}")
    return scales.item(), index(zero_point)


def _weight_scales(values: npt.ArrayLike) -> tuple[float, ...]:
    scales = _scales("weight", values)
    if scales.ndim > 1 or scales.size == 0:
        raise LayoutError(f"weight scales must be one number or one for each output channel: an array of shape {scales.shape}")
    return tuple(np.ravel(scales).tolist())


def _scales(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    try:
        numbers = np.asarray(values)
    except ValueError:  # ragged
        raise LayoutError(f"{name} scales must be numbers: {values!r}") from None
    if numbers.dtype.kind not in "fiu":
        raise LayoutError(f"{name} scales must be numbers: {values!r}")
    with np.errstate(over="ignore", under="ignore"):
        scales = numbers.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(scales) & (scales > 0)))
    if bad.size:
        raise LayoutError(f"{name} scales must be finite and positive as float32: {numbers.flat[bad[0]].item()!r} at index {bad[0]}")
    return scales

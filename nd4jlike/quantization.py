"""Scales, zero points and the numbers that requantize an accumulator (ADR 0006)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike.dtypes import codes
from nd4jlike.errors import DTypeError, LayoutError
from nd4jlike.geometry import choice, integer

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
# An int32 accumulator can be shifted left by no more; the multiplier of int16 has 15 bits and is shifted right by 1 at least.
MAX_SHIFT = 30
MAX_SHIFT_INT16 = 14
# Scales of which a repr has all, and how many of each end of more.
_SHOWN, _ENDS = 8, 3
# A smaller multiplier moves every int32 to 0, so it is 0.
MIN_SHIFT = -31
# Of float32: below, numbers have fewer digits.
_SMALLEST_NORMAL = 2.0**-126


@dataclass(frozen=True, init=False)
class Quantization:
    """How integers stand for real numbers: ``real = scale * (integer - zero_point)``.

    Parameters
    ----------
    input : (float, int)
        Scale and zero point of the activations before the layer.
    weights : float, array_like of float, or (scales, int)
        One scale, or one for each output channel; with a zero point for uint8. A tuple of two whose last item is an integer is the
        pair (scales, zero point); two positive integers might be either, and are refused.
    output : (float, int), None or "float32"
        Scale and zero point of the activations after the layer. None: the result is the accumulators, int32 (int64 of int16 inputs).
        ``"float32"``: the result is real numbers, accumulator times ``input * weights``.
    weights_zero_point : int
        The zero point of the weights, another way to say it.

    Attributes
    ----------
    input : (float, int)
        As given, the scale rounded to float32.
    weights : tuple of float
        One scale, or one for each output channel, rounded to float32.
    output : (float, int), None or "float32"
        As given, the scale rounded to float32.
    weights_zero_point : int
        Of all weights.

    Raises
    ------
    LayoutError
        A scale that is no number, or not finite and positive as a float32; a zero point that is no integer of 32 bits, or given twice;
        an effective multiplier ``input * weights / output`` of 2**30 or more, or not representable as a float32; a product
        ``input * weights`` below 2**-126, where float32 loses digits, unless it moves every sum to 0 or is not used.

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
    >>> Quantization(input=(0.5, 3), weights=(0.25, 128), output=None).weights_zero_point
    128
    """

    input: tuple[float, int]
    weights: tuple[float, ...]
    # A pair nearly always, which is what most readers rely on: tuple[float, int] | Literal["float32"] | None.
    output: Any
    weights_zero_point: int = 0

    def __init__(
        self,
        input: tuple[float, int],  # noqa: A002
        weights: npt.ArrayLike | tuple[npt.ArrayLike, int],
        output: tuple[float, int] | npt.DTypeLike | None,
        weights_zero_point: int = 0,
    ) -> None:
        scales: Any = weights
        if isinstance(weights, tuple) and len(weights) == 2 and _is_integer(weights[1]):
            if weights_zero_point != 0:
                raise LayoutError(f"the weights zero point must be given once: {weights[1]} beside the scales, and weights_zero_point={weights_zero_point!r}")
            if _is_integer(weights[0]) and min(scales) > 0:
                raise LayoutError(
                    f"weights={weights!r} might be two scales or a scale and its zero point: say {list(weights)!r}, or weights_zero_point={weights[1]!r}"
                )
            scales, weights_zero_point = weights
        object.__setattr__(self, "input", _scale_and_zero_point("input", input))
        object.__setattr__(self, "weights", _weight_scales(scales))
        object.__setattr__(self, "output", _output(output))
        object.__setattr__(self, "weights_zero_point", _zero_point("weights", weights_zero_point))

        self._check_multiplier(MAX_SHIFT, "")
        with np.errstate(over="ignore"):
            if not np.isfinite(self.float_scales()).all():
                raise LayoutError(f"input scale * weight scale must be representable as a float32: {self.input[0]!r} * {max(self.weights)!r} is not")
        self._check_products()

    def __repr__(self) -> str:
        weights = repr(self.weights)
        if len(self.weights) > _SHOWN:
            ends = (", ".join(map(repr, some)) for some in (self.weights[:_ENDS], self.weights[-_ENDS:]))
            weights = f"({', ..., '.join(ends)})"
        return f"Quantization(input={self.input}, weights={weights}, output={self.output!r}, weights_zero_point={self.weights_zero_point})"

    def multipliers_and_shifts(self, channels: int | None = None, dtype: npt.DTypeLike = "int8") -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Fixed-point effective multipliers: ``multiplier * 2**(shift - 31)`` is ``input * weights / output``.

        Parameters
        ----------
        channels : int, optional
            Number of output channels, to repeat a single weight scale. None: as many as there are weight scales.
        dtype : dtype
            Element type of the activations. That of uint8 must be said: its multipliers may differ from int8's in the last bits.

        Returns
        -------
        multipliers, shifts : ndarray of int32
            Multipliers in [2**30, 2**31), or 0; positive shifts go left.

        Raises
        ------
        LayoutError
            `channels` that are no integer of 1 or more, or not as many as there are weight scales where these are several.
        DTypeError
            A `dtype` other than int8, uint8 and int16.

        Notes
        -----
        TensorFlow Lite's `QuantizeMultiplier` on the product in double precision; ``input * weights`` is rounded to float32 for uint8.

        For int16 the multipliers are those of int8, and 15 bits of them are used: with ``m = min((multiplier + 2**15) >> 16, 0x7FFF)``
        the result is ``(accumulator * m + 2**(14 - shift)) >> (15 - shift)``, in 64 bits.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((1.0, 0), 1.0, (1.0, 0)).multipliers_and_shifts()
        (array([1073741824], dtype=int32), array([1], dtype=int32))
        """
        quantized = _limits(dtype).dtype
        pairs = np.array([quantize_multiplier(self._effective(scale, quantized)) for scale in self.weights], np.int32)
        multipliers, shifts = np.repeat(pairs, self._repeats(channels), axis=0).T
        return np.ascontiguousarray(multipliers), np.ascontiguousarray(shifts)

    def float_scales(self, channels: int | None = None) -> npt.NDArray[np.float32]:
        """Effective multipliers ``input * weights / output``, each operation in float32, as XNNPACK has them. Without an output scale: ``input * weights``.

        Parameters
        ----------
        channels : int, optional
            Number of output channels, to repeat a single weight scale. None: as many as there are weight scales.

        Returns
        -------
        ndarray of float32
            One for each channel.

        Raises
        ------
        LayoutError
            As `multipliers_and_shifts`.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((0.5, 0), 0.25, (1.0, 0)).float_scales(channels=2)
        array([0.125, 0.125], dtype=float32)
        """
        scales = np.float32(self.input[0]) * np.array(self.weights, np.float32) / np.float32(self._output_scale)
        return np.repeat(scales, self._repeats(channels))

    def bounds(self, activation: str | None = None, dtype: npt.DTypeLike = "int8", rounding: str = "tflite") -> tuple[int, int]:
        """Lowest and highest quantized result: an activation as a clamp.

        Parameters
        ----------
        activation : {None, "relu", "relu6", "relu_n1_to_1"}
            Of the layer.
        dtype : dtype
            Element type of the result.
        rounding : {"tflite", "xnnpack"}
            Whose rule.

        Returns
        -------
        lowest, highest : int
            With the output zero point, within `dtype`.

        Raises
        ------
        LayoutError
            For another activation or rounding, XNNPACK's with int16; where `output` has no scale, or a zero point that `dtype` does not hold.
        DTypeError
            A `dtype` other than int8, uint8 and int16.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((0.5, 0), 0.25, (0.05, -128)).bounds("relu6")
        (-128, -8)
        """
        choice("activation", activation, tuple(ACTIVATIONS))
        limits = _limits(dtype)
        _check_rounding(rounding, limits)
        if not isinstance(self.output, tuple):
            raise LayoutError(f"a quantized result needs a scale and a zero point: output={self.output!r}")
        _check_zero_point("output", self.output[1], limits)
        return quantized_activation_range(activation, self.output, limits.dtype, rounding)

    def requantize(
        self,
        accumulators: npt.ArrayLike,
        *,
        dtype: npt.DTypeLike = "int8",
        rounding: str = "tflite",
        activation: str | None = None,
        axis: int = -1,
    ) -> npt.NDArray[Any]:
        """Results of sums: what a layer's kernel does once it has added up its products and the bias.

        Parameters
        ----------
        accumulators : array_like of integers
            Sums, zero points taken off; any shape. Those of int8 and uint8 wrap around beyond int32, as they do in kernels.
        dtype : dtype
            Element type of the activations: int8, uint8 or int16.
        rounding : {"tflite", "xnnpack"}
            Whose bits; XNNPACK has no int16.
        activation : {None, "relu", "relu6", "relu_n1_to_1"}
            Clamp of the result.
        axis : int
            That of the output channels.

        Returns
        -------
        ndarray
            Of the shape of `accumulators` and of `dtype`, or float32 for that `output`.

        Raises
        ------
        LayoutError
            As `check` and `bounds`; for an `axis` that is not there.
        DTypeError
            Accumulators other than integers that an int64 holds; another `dtype`.

        Notes
        -----
        The rules of ADR 0006, D5, D6, D16 and D18, as they are stated there; kernels take shorter ways to the same bits.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> q = Quantization((0.1, 0), [0.01, 0.02], (0.05, 3))
        >>> q.requantize([[125, 125], [-3000, 9999]])
        array([[  6,   8],
               [-57, 127]], dtype=int8)
        """
        limits = _limits(dtype)
        _check_rounding(rounding, limits)
        given = np.asarray(accumulators)
        if given.dtype.kind not in "iu" or not np.can_cast(given.dtype, np.int64):
            raise DTypeError(f"accumulators must be integers that an int64 holds: {given.dtype}")
        if not _is_integer(axis) or not -max(given.ndim, 1) <= axis < max(given.ndim, 1):
            raise LayoutError(f"axis must be one of the {given.ndim} of the accumulators, of shape {given.shape}: {axis!r}")
        sums = np.moveaxis(np.atleast_1d(given).astype(np.int64 if limits.bits == 16 else np.int32).astype(np.int64), axis, -1)
        channels = sums.shape[-1]
        self.check(limits.dtype, channels)
        result: npt.NDArray[Any]
        if self.output == "float32":
            lowest, highest = ACTIVATIONS[choice("activation", activation, tuple(ACTIVATIONS))]
            result = np.clip(sums.astype(np.float32) * self.float_scales(channels), np.float32(lowest), np.float32(highest))
        else:
            bounds = self.bounds(activation, limits.dtype, rounding)
            if rounding == "xnnpack":
                result = np.rint(sums.astype(np.float32) * self.float_scales(channels)).astype(np.float64)
            else:
                multipliers, shifts = (column.astype(np.int64) for column in self.multipliers_and_shifts(channels, limits.dtype))
                result = (_rescale_sums_of_int16 if limits.bits == 16 else _rescale)(sums, multipliers, shifts)
            result = np.clip(result + self.output[1], *bounds).astype(limits.dtype)
        return np.moveaxis(result, -1, axis).reshape(given.shape)

    def check(self, dtype: npt.DTypeLike, channels: int, output_dtype: npt.DTypeLike | None = None) -> None:
        """Check what only a layer can know: the range of the zero points and the number of scales.

        Parameters
        ----------
        dtype : dtype
            Integer type of the activations.
        channels : int
            Number of output channels.
        output_dtype : dtype, optional
            Integer type of the results. Default: `dtype`.

        Raises
        ------
        LayoutError
            A zero point that its type cannot hold, or other than 0 for int16 and for weights of int8; a number of weight scales other than 1
            and `channels`, which are no integer of 1 or more; an effective multiplier of 2**14 or more for int16, of 2**30 or more for uint8.
        DTypeError
            Another `dtype` or `output_dtype`.

        Examples
        --------
        >>> from nd4jlike import Quantization
        >>> Quantization((0.5, 128), 0.25, (1.0, 0)).check("int8", 4)
        Traceback (most recent call last):
        ...
        nd4jlike.errors.LayoutError: the input zero point must be an int8, -128 to 127: 128
        """
        limits = _limits(dtype)
        zero_points = {"input": self.input[1], "weights": self.weights_zero_point}
        if isinstance(self.output, tuple):
            zero_points["output"] = self.output[1]
        for name, zero_point in zero_points.items():
            if zero_point and (limits.bits == 16 or (name == "weights" and limits.min < 0)):
                raise LayoutError(f"the {name} zero point must be 0 for {limits.dtype} inputs: {zero_point}")
            _check_zero_point(name, zero_point, limits if output_dtype is None or name != "output" else _limits(output_dtype))
        if limits.bits == 16:
            self._check_multiplier(MAX_SHIFT_INT16, " for int16 inputs")
        if limits.min == 0:
            self._check_multiplier(MAX_SHIFT, " for uint8 inputs", limits.dtype)
        self._repeats(channels)

    @property
    def _output_scale(self) -> float:
        return self.output[0] if isinstance(self.output, tuple) else 1.0

    def _effective(self, weight_scale: float, dtype: npt.DTypeLike = "int8") -> float:
        product = self.input[0] * weight_scale
        return (float(np.float32(product)) if np.dtype(dtype) == np.uint8 else product) / self._output_scale

    def _check_multiplier(self, limit: int, where: str, dtype: npt.DTypeLike = "int8") -> None:
        largest = self._effective(max(self.weights), dtype)
        if isinstance(self.output, tuple) and quantize_multiplier(largest)[1] > limit:
            raise LayoutError(
                f"the effective multiplier input scale * weight scale / output scale must be below 2**{limit}{where}: "
                f"{self.input[0]!r} * {max(self.weights)!r} / {self.output[0]!r} = {largest!r}"
            )

    def _check_products(self) -> None:
        """Refuse products of scales that float32 holds with fewer digits or none, where one is seen in a result."""
        for scale in self.weights:
            product = self.input[0] * scale
            if product < _SMALLEST_NORMAL and (self.output == "float32" or quantize_multiplier(product / self._output_scale)[0]):
                raise LayoutError(
                    f"input scale * weight scale must be a normal float32, {_SMALLEST_NORMAL:.8g} or more, unless the effective multiplier "
                    f"moves every sum to 0: {self.input[0]!r} * {scale!r} = {product!r}"
                )

    def _repeats(self, channels: int | None) -> int:
        if channels is None:
            return 1
        channels = integer("channels", channels, 1)
        if len(self.weights) == channels:
            return 1
        if len(self.weights) != 1:
            raise LayoutError(f"weight scales must be one or one for each output channel: {len(self.weights)} scales for {channels} channels")
        return channels


def _rescale(sums: npt.NDArray[np.int64], multipliers: npt.NDArray[np.int64], shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Scale sums of 32 bits: shift left, keep the high half of twice the product, divide by a power of two."""
    left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    shifted = (sums << left).astype(np.int32).astype(np.int64)
    high = (shifted * multipliers + (1 << 30)) >> 31  # one half goes up
    mask = (1 << right) - 1
    scaled: npt.NDArray[np.int64] = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))  # and here away from zero
    return scaled


def _rescale_sums_of_int16(sums: npt.NDArray[np.int64], multipliers: npt.NDArray[np.int64], shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Scale sums of 64 bits: 15 bits of the multiplier, one rounding, 32 bits of the result."""
    reduced = np.minimum((multipliers + (1 << 15)) >> 16, 0x7FFF)
    scaled: npt.NDArray[np.int64] = ((sums * reduced + (1 << (14 - shifts))) >> (15 - shifts)).astype(np.int32).astype(np.int64)
    return scaled


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
    return (0, 0) if shift < MIN_SHIFT else (multiplier, shift)


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
        Whose rule: ``zero_point + round(bound / scale)``, one half away from zero, or ``round(bound / scale + zero_point)``, one half to even.

    Returns
    -------
    lowest, highest : int
        Computed in float32, within `dtype`.

    Notes
    -----
    TensorFlow Lite's `CalculateActivationRangeQuantized`, and XNNPACK's `xnn_qs8_quantize` (ADR 0006, D7).

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
            steps = np.float32(bound) / np.float32(scale)
        if rounding == "xnnpack":
            return round(float(np.clip(steps + np.float32(zero_point), limits.min, limits.max)))
        if np.isinf(steps):
            return limits.max if steps > 0 else limits.min
        size = math.floor(abs(float(steps)) + 0.5)
        return min(max(zero_point + (size if steps > 0 else -size), limits.min), limits.max)

    lowest, highest = ACTIVATIONS[activation]
    return quantized(lowest), quantized(highest)


def _scale_and_zero_point(name: str, pair: tuple[float, int]) -> tuple[float, int]:
    try:
        scale, zero_point = pair
    except (TypeError, ValueError):
        raise LayoutError(f"{name} must be a pair (scale, zero_point): {pair!r}") from None
    zero_point = _zero_point(name, zero_point)
    scales = _scales(name, scale)
    if scales.ndim:
        raise LayoutError(f"the {name} scale must be one number: {scale!r}")
    return scales.item(), zero_point


def _output(given: object) -> tuple[float, int] | Literal["float32"] | None:
    if given is None:
        return None
    if isinstance(given, (str, type, np.dtype)):
        if (given if isinstance(given, str) else given.__name__ if isinstance(given, type) else given.name) in ("float32", "float"):
            return "float32"
        raise LayoutError(f'output must be a pair (scale, zero_point), None for accumulators, or "float32": {given!r}')
    return _scale_and_zero_point("output", given)  # type: ignore[arg-type]


def _limits(dtype: npt.DTypeLike) -> np.iinfo[Any]:
    name = codes(dtype).name
    if name not in ("int8", "uint8", "int16"):
        raise DTypeError(f"quantized activations are int8, uint8 or int16: {name}")
    return np.iinfo(name)


def _is_integer(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_)) and getattr(value, "ndim", 0) == 0


def _check_rounding(rounding: str, limits: np.iinfo[Any]) -> None:
    choice("rounding", rounding, ROUNDINGS)
    if limits.bits == 16 and rounding == "xnnpack":
        raise LayoutError("rounding must be 'tflite' for int16 inputs: XNNPACK has none")


def _check_zero_point(name: str, zero_point: int, held: np.iinfo[Any]) -> None:
    if zero_point and held.bits == 16:
        raise LayoutError(f"the {name} zero point must be 0 for {held.dtype} inputs: {zero_point}")
    if not held.min <= zero_point <= held.max:
        raise LayoutError(f"the {name} zero point must be an {held.dtype}, {held.min} to {held.max}: {zero_point}")


def _zero_point(name: str, value: Any) -> int:
    if not _is_integer(value):
        raise LayoutError(f"the {name} zero point must be an integer: {value!r}")
    if not -(2**31) <= index(value) < 2**31:
        raise LayoutError(f"the {name} zero point must be an int32: {value}")
    return index(value)


def _weight_scales(values: npt.ArrayLike) -> tuple[float, ...]:
    scales = _scales("weight", values)
    if scales.ndim > 1 or scales.size == 0:
        raise LayoutError(f"weight scales must be one number or one for each output channel: an array of shape {scales.shape}")
    return tuple(np.ravel(scales).tolist())


def _scales(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    try:
        # NumPy makes numbers of truth values beside numbers, and forgets what is masked.
        parts = [values] if hasattr(values, "dtype") or not isinstance(values, Iterable) else list(values)
        if any(isinstance(part, np.ma.MaskedArray) or np.asarray(part).dtype.kind == "b" for part in parts):
            raise LayoutError(f"{name} scales must be numbers, no truth values and none masked: {values!r}")
        numbers = np.asarray(values)
    except LayoutError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:  # ragged, or another library's that NumPy cannot read
        raise LayoutError(f"{name} scales must be numbers that NumPy reads: {values!r} ({error})") from None
    if numbers.dtype.kind not in "fiu":
        raise LayoutError(f"{name} scales must be numbers: {values!r}")
    with np.errstate(over="ignore", under="ignore"):
        scales = numbers.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(scales) & (scales > 0)))
    if bad.size:
        raise LayoutError(f"{name} scales must be finite and positive as float32: {numbers.flat[bad[0]].item()!r} at index {bad[0]}")
    return scales

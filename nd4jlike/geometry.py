"""How a window walks over an image, and how far apart pixels should lie: integers only, and how they are read (ADR 0005)."""

from __future__ import annotations

import inspect
from math import gcd
from operator import index
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nd4jlike.errors import DTypeError, LayoutError, ShapeStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

__all__ = [
    "ALGORITHMS",
    "AXES",
    "WEIGHT_AXES",
    "WINOGRAD_FILTERS",
    "Phase",
    "Walk",
    "WeightReading",
    "Window",
    "check_winograd",
    "choice",
    "integer",
    "integers",
    "pair",
    "pixel_pitch",
    "plan_options",
    "sides",
    "weight_readings",
]

Sides = tuple[tuple[int, int], tuple[int, int]]

# Positions of batch, height, width and channel in the shape.
AXES = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1)}
# What each weights format calls its axes.
WEIGHT_AXES = {"HWCM": "(kH, kW, C, M)", "MCHW": "(M, C, kH, kW)", "MHWC": "(M, kH, kW, C)", "C1HW": "(C*M, 1, kH, kW)"}
# How outputs are summed (ADR 0019); the filters that all but the first of them take.
ALGORITHMS = ("direct", "winograd")
WINOGRAD_FILTERS = ((5, 5), (7, 7))
# Beyond any image; keeps every product with an offset that memory can hold inside a machine word, and the sum of two of them inside a C int.
LARGEST = 2**30 - 1

CACHE_LINE = 64
# Rows of a filter from which on an odd number of lines is worth an eighth of room anywhere; and a quarter in a second-level cache.
TALL = 5
TALLER = 9


class Walk(NamedTuple):
    """A window on one image: figures in pixels."""

    out: tuple[int, int]  # rows and columns of the result
    before: tuple[int, int]  # implied rows above and columns left of the image
    reach: Sides  # how far the windows read beyond the image: ((top, bottom), (left, right))


class Phase(NamedTuple):
    """Every `stride`-th pixel of an image along one axis: those that the same taps reach, each from the next window (ADR 0018)."""

    first: int  # pixel
    pixels: int  # of them
    taps: slice  # of the filter
    skip: int  # windows before the first that is reached
    extent: int  # windows from there on
    pad: int  # windows that the last tap of the first pixel would reach before there are any
    dilation: int  # windows from one tap to the next


class Window(NamedTuple):
    """Kernel extents, steps and padding, each (height, width)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: Literal["same"] | Sides

    def over(self, size: tuple[int, int]) -> Walk:
        """Walk over an image of `size` (height, width) pixels.

        Raises
        ------
        LayoutError
            When no window fits.
        """
        out, before, reach = [], [], []
        for axis, name in enumerate(("height", "width")):
            extent, stride = size[axis], self.stride[axis]
            window = (self.kernel[axis] - 1) * self.dilation[axis] + 1
            if self.padding == "same":
                count = -(-extent // stride)
                total = max((count - 1) * stride + window - extent, 0)
                lead = total // 2
            else:
                lead, trail = self.padding[axis]
                total = lead + trail
                count = (extent + total - window) // stride + 1
            if extent < 1:
                raise LayoutError(f"no window fits: the {name} of the image is {extent}, it must be 1 or more")
            if count < 1:
                raise LayoutError(
                    f"no window fits: the {name} of the image and its padding must reach a window's, "
                    f"{extent} + {total} < ({self.kernel[axis]} - 1) * {self.dilation[axis]} + 1 = {window}"
                )
            out.append(count)
            before.append(lead)
            reach.append((lead, max((count - 1) * stride + window - extent - lead, 0)))
        return Walk((out[0], out[1]), (before[0], before[1]), (reach[0], reach[1]))

    def reaching(self, size: tuple[int, int], walk: Walk) -> tuple[tuple[slice, slice], Walk]:
        """Leave out taps at the ends of a dilated filter, or beside a single row or column, that are outside an image of `size`, whichever the output.

        Gives the others, and how they walk.
        """
        taps, before, reach = [], [], []
        for axis in range(2):
            kernel, stride, dilation, lead = self.kernel[axis], self.stride[axis], self.dilation[axis], walk.before[axis]
            last = (walk.out[axis] - 1) * stride
            first, end = 0, kernel
            if dilation > 1 or size[axis] == 1:
                first, end = max(-(-(lead - last) // dilation), 0), min((size[axis] - 1 + lead) // dilation + 1, kernel)
            if first < end:
                lead -= first * dilation
            else:
                first, end, lead = 0, 1, last + 1  # one that stays just outside
            taps.append(slice(first, end))
            before.append(lead)
            reach.append((max(lead, 0), max(last + (end - first - 1) * dilation + 1 - size[axis] - lead, 0)))
        return (taps[0], taps[1]), Walk(walk.out, (before[0], before[1]), (reach[0], reach[1]))

    def phases(self, axis: int, size: int, walk: Walk) -> list[Phase]:
        """Divide the pixels of one axis (0: rows, 1: columns) by the taps that reach them; pixels that none reaches are left out.

        A tap ``a`` of window ``i`` reaches pixel ``i * stride - before + a * dilation``. Pixels ``first + u * stride`` are reached by every
        ``stride / gcd``-th tap, and tap ``t`` of those comes from window ``u - pad + (taps - 1 - t) * dilation``: a convolution of what there is for
        each window, with these taps in reverse.
        """
        stride, dilation, kernel = self.stride[axis], self.dilation[axis], self.kernel[axis]
        common = gcd(stride, dilation)
        found = []
        for tap in range(min(kernel, stride // common)):
            taps = range(tap, kernel, stride // common)
            first = (tap * dilation - walk.before[axis]) % stride
            window = (first + walk.before[axis] - tap * dilation) // stride  # that of the first tap at the first pixel
            pad = (len(taps) - 1) * (dilation // common) - window
            skip = max(0, -pad)
            if first < size and skip < walk.out[axis]:
                found.append(
                    Phase(
                        first,
                        (size - first - 1) // stride + 1,
                        slice(tap, kernel, stride // common),
                        skip,
                        walk.out[axis] - skip,
                        max(0, pad),
                        dilation // common,
                    )
                )
        return found


class WeightReading(NamedTuple):
    """One way to understand an array of weights."""

    weights: npt.NDArray[Any]  # (kH, kW, C*M)
    channels: int | None  # C; None: any divisor of C*M, the input tells

    def fits(self, channels: int) -> bool:
        """Whether these can be weights for `channels` input channels."""
        return channels == self.channels or (self.channels is None and channels > 0 and self.weights.shape[2] % channels == 0)


def weight_readings(weights: npt.NDArray[Any], weights_format: str) -> list[WeightReading]:
    """All ways to read `weights`, the literal one first.

    Parameters
    ----------
    weights : ndarray
        Four axes, named by `weights_format`.
    weights_format : str
        A key of `WEIGHT_AXES`.

    Returns
    -------
    list of WeightReading
        Two for ``"HWCM"`` with a first extent of 1, which may be TensorFlow Lite's (1, kH, kW, C*M); else one.

    Raises
    ------
    LayoutError
        For a rank other than 4, an extent of 0, and a second extent other than 1 in ``"C1HW"``.
    """
    shape = weights.shape
    if weights.ndim != 4 or 0 in shape:
        raise LayoutError(f"weights must have the four axes {WEIGHT_AXES[weights_format]}, none of them empty: shape {shape}")
    if weights_format == "C1HW":
        if shape[1] != 1:
            raise LayoutError(f"depthwise weights {WEIGHT_AXES['C1HW']} have one input channel for each group: shape {shape}")
        return [WeightReading(np.ascontiguousarray(weights[:, 0].transpose(1, 2, 0)), None)]
    order = {"HWCM": (0, 1, 2, 3), "MCHW": (2, 3, 1, 0), "MHWC": (1, 2, 3, 0)}[weights_format]
    dense = np.ascontiguousarray(weights.transpose(order))
    kh, kw, channels, multiplier = dense.shape
    readings = [WeightReading(dense.reshape(kh, kw, channels * multiplier), channels)]
    if weights_format == "HWCM" and kh == 1:
        readings.append(WeightReading(dense[0], None))
    return readings


def pixel_pitch(pixels: int, channels: int, itemsize: int, second_level: int, kind: str = "f", rows: int = 1, apart: int = 1) -> int:
    """Channels from one pixel to the next that a kernel reads fastest (ADR 0005, D11).

    Parameters
    ----------
    pixels : int
        Pixels of all images.
    channels : int
        Channels that hold data.
    itemsize : int
        Bytes of one element.
    second_level : int
        Bytes of the second-level cache: beyond half of it room costs more.
    kind : str
        NumPy's kind of the elements: of integers one cache line of all pixels is read before the next one, and room never.
    rows : int
        Rows of the filter.
    apart : int
        Pixels from tap to tap, where a first-level cache has few places for them.

    Returns
    -------
    int
        `channels` or more.

    Examples
    --------
    >>> from nd4jlike.geometry import pixel_pitch
    >>> [pixel_pitch(pixels, channels, 4, 2 << 20) for pixels, channels in ((64, 17), (64, 3), (64, 512), (1 << 15, 17), (64, 64), (1 << 15, 64))]
    [32, 3, 528, 17, 80, 64]
    """
    nbytes = channels * itemsize
    line = CACHE_LINE if nbytes > CACHE_LINE // 2 else CACHE_LINE // 2
    pitch = -(-nbytes // line) * line
    size = pixels * pitch
    # A pixel of one line or more pays for unaligned loads with a second line on every one of them, which costs more than the
    # room. A short pixel would be mostly room, and an image of three channels five times its size.
    # Where it comes from beyond the second-level cache, every byte counts. 24 channels of bytes fill whole vectors by themselves, 3 doubles none.
    if (nbytes < CACHE_LINE and 3 * pitch > 4 * nbytes) or (16 * pitch > 17 * nbytes and size > second_level // 2) or (nbytes == 24 and channels in (3, 24)):
        return channels
    # Blocks of channels of neighbouring pixels are read one after another: at an even number of lines all even ones or all odd ones, which caches give slower.
    near = size <= (second_level if rows >= TALLER and itemsize > 2 else second_level // 4)
    least = 4 if kind in "iu" or near else 8 if rows >= TALL or apart > 1 or size <= second_level // 2 else 16
    if pitch >= least * CACHE_LINE and pitch // CACHE_LINE % 2 == 0:
        pitch += CACHE_LINE
    return pitch // itemsize


def plan_options(plan: type, options: dict[str, Any]) -> dict[str, Any]:
    """Return `options`, which must be parameters of `plan`.

    Raises
    ------
    TypeError
        When one is none of them.
    """
    known = inspect.signature(plan).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"a plan has no option {', '.join(unknown)}; it takes {', '.join(known)}")
    return options


def check_winograd(dtype: np.dtype[Any], readings: Iterable[WeightReading], stride: tuple[int, int], dilation: tuple[int, int]) -> None:
    """Check what ``algorithm="winograd"`` needs, as far as it is known without an image.

    Raises
    ------
    DTypeError, LayoutError
        When it is not there.
    """
    sizes = {reading.weights.shape[:2] for reading in readings}
    if dtype != np.float32:
        raise DTypeError(f"algorithm 'winograd' needs float32: {dtype}")
    if not sizes.intersection(WINOGRAD_FILTERS):
        raise LayoutError(f"algorithm 'winograd' needs a filter of 5x5 or 7x7: {' or '.join(f'{height}x{width}' for height, width in sizes)}")
    if stride != (1, 1) or dilation != (1, 1):
        raise LayoutError(f"algorithm 'winograd' needs a stride and a dilation of 1: stride {stride}, dilation {dilation}")
    if not all(np.isfinite(reading.weights).all() for reading in readings):
        raise LayoutError("algorithm 'winograd' needs finite weights, differences of others are no numbers")


def choice(name: str, value: object, choices: Sequence[str | None]) -> Any:
    """Return `value`, which must be one of `choices`.

    Raises
    ------
    LayoutError
        When it is none of them.
    """
    if (value is None or isinstance(value, str)) and value in choices:
        return value if value is None else str(value)
    raise LayoutError(f"{name} must be one of {', '.join(map(repr, choices))}: {value!r}")


def integer(name: str, value: Any, least: int) -> int:
    """Read `value` as an int of `least` or more.

    Raises
    ------
    LayoutError
        For anything that is no integer, for bool, and for values outside ``least .. 2**30 - 1``.
    """
    if type(value) is int and least <= value <= LARGEST:
        return value
    try:
        number = None if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:  # arrays have an __index__ that refuses
        number = None
    if number is None:
        raise LayoutError(f"{name} must be an integer: {value!r}")
    if not least <= number <= LARGEST:
        raise LayoutError(f"{name} must be {least} to {LARGEST}: {value}")
    return number


def integers(values: Iterable[Any], what: str, signed: bool = False) -> tuple[int, ...]:
    """Tuple of `values`, all integers, and of 0 or more unless `signed`.

    Raises
    ------
    LayoutError
        For anything else.
    """
    try:
        values = tuple(values)
        numbers = tuple(map(index, values))
    except TypeError:
        raise LayoutError(f"{what} must be integers: {values!r}") from None
    if not signed and any(number < 0 for number in numbers):
        raise LayoutError(f"{what} must be 0 or more: {numbers}", ShapeStatus.INCORRECT_SHAPE)
    return numbers


def pair(name: str, value: Any, least: int) -> tuple[int, int]:
    """Read `value` as (height, width): one integer for both, or two."""
    if type(value) is int:
        return (integer(name, value, least),) * 2
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(value, (tuple, list)):
        return (integer(name, value, least),) * 2
    if len(value) != 2:
        raise LayoutError(f"{name} must be an integer or a pair (height, width): {value!r}")
    return integer(name, value[0], least), integer(name, value[1], least)


_SIDES = "an integer, (height, width), ((top, bottom), (left, right))"


def sides(padding: Any) -> Literal["same"] | Sides:
    """Read `padding` as ``"same"`` or ((top, bottom), (left, right))."""
    padding = padding.tolist() if isinstance(padding, np.ndarray) else padding
    if isinstance(padding, str) or padding is None:
        name = str(padding).lower()  # TensorFlow writes them large
        if name not in {"same", "valid"}:
            raise LayoutError(f"padding must be 'same', 'valid' or one of {_SIDES}: {padding!r}")
        return "same" if name == "same" else ((0, 0), (0, 0))
    if isinstance(padding, (tuple, list)):
        pairs = [isinstance(side, (tuple, list)) for side in padding]
        if len(padding) != 2 or (any(pairs) and (not all(pairs) or any(len(side) != 2 for side in padding))):
            raise LayoutError(f"padding must be one of {_SIDES}: {padding!r}")
        if all(pairs):
            return pair("padding (top, bottom)", padding[0], 0), pair("padding (left, right)", padding[1], 0)
    height, width = pair("padding", padding, 0)
    return (height, height), (width, width)

"""Our depthwise convolution beside other libraries': results compared first, then all in turns, ratios within one run (ADR 0014)."""

from __future__ import annotations

import math
import re
import statistics
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nd4jlike.creation import asarray
from nd4jlike.depthwise import DepthwiseConv2d
from nd4jlike.errors import LayoutError, Nd4jLikeError
from nd4jlike.geometry import WINOGRAD_FILTERS
from nd4jlike.ndarray import NdArray
from nd4jlike.peers import PEERS, Call, Case, UnsupportedCaseError, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

__all__ = ["LAYERS", "LayerResult", "Timing", "measure", "parse_layer"]

# Of MobileNetV1 and V3, ConvNeXt and a first layer with a depth multiplier.
LAYERS = (
    "112x112x32", "112x112x64:s2", "56x56x128", "28x28x256", "14x14x512", "14x14x512:s2", "7x7x1024",
    "28x28x120:k5", "7x7x960:k5", "56x56x96:k7", "28x28x256:d2", "96x96x3:s2:m8",
)  # fmt: skip

# Seconds that one turn of one contender takes at least: the clock, the loop and what the turns before left in the caches disappear.
_TURN = 3e-3
# How far from the exact result a result may be, of itself and of the root mean square of all; of halves the unit in the last place.
_TOLERANCES = {"float32": 1e-4, "float64": 1e-4 * 2**-29, "float16": 2**-10, "bfloat16": 2**-7}
# What ours on the same layer in float32 is called, beside the other floats.
_FLOAT32 = "nd4jlike float32"
# Python reads no more than a few thousand digits; what has more than these has no memory either.
_NUMBER = r"\d{1,99}"
_LAYER = re.compile(rf"(?:(?P<n>{_NUMBER})x)?(?P<h>{_NUMBER})x(?P<w>{_NUMBER})x(?P<c>{_NUMBER})(?P<rest>(?::[a-z]{_NUMBER}(?:x{_NUMBER})?)*)(?P<planes>:nchw)?")


def parse_layer(text: str, dtype: str = "float32", threads: int = 1) -> Case:
    """Read a layer such as ``"112x112x64:k3:s2"``.

    Parameters
    ----------
    text : str
        Height, width and channels of the input (with the batch before them where it is not 1), then ``:k`` kernel (3), ``:s`` stride (1),
        ``:d`` dilation (1), each a number or height x width, and ``:m`` depth multiplier (1); at the end ``:nchw`` for dense arrays of that order.
    dtype, threads
        See `Case`.

    Returns
    -------
    Case
        The layer, with values to compute on.

    Raises
    ------
    LayoutError
        For another text.

    Examples
    --------
    >>> from nd4jlike.bench import parse_layer
    >>> parse_layer("8x45x61x17:k1x9:s2").output_shape
    (8, 23, 31, 17)
    """
    found = _LAYER.fullmatch(text)
    rest = {part[0]: part[1:] for part in found["rest"].split(":")[1:]} if found else {}
    if found is None or not set(rest) <= set("ksdm") or "x" in rest.get("m", ""):
        raise LayoutError(f"a layer is [N x] H x W x C with :k, :s, :d and :m behind it, then :nchw, as in 112x112x64:k3:s2: {text!r}")

    def pair(key: str, default: int) -> tuple[int, int]:
        numbers = [int(number) for number in rest.get(key, str(default)).split("x")]
        return numbers[0], numbers[-1]

    shape = (int(found["n"] or 1), int(found["h"]), int(found["w"]), int(found["c"]))
    data_format = "NCHW" if found["planes"] else "NHWC"
    return Case(shape, pair("k", 3), pair("s", 1), pair("d", 1), int(rest.get("m", 1)), dtype, threads, data_format=data_format)


@dataclass(frozen=True)
class Timing:
    """One contender.

    Attributes
    ----------
    name : str
        A key of `PEERS`, or ours: ``"nd4jlike"`` on the layouts that the plan chooses, ``"nd4jlike dense"`` on plain arrays,
        ``"nd4jlike tflite"`` with TensorFlow Lite's rounding where both are XNNPACK's, ``"nd4jlike winograd"`` with that algorithm
        (ADR 0019) where both are direct.
    note : str
        Version and layout.
    microseconds, least_microseconds : float
        Median and least time of one call, through the contender's own interface in Python.
    """

    name: str
    note: str
    microseconds: float
    least_microseconds: float


@dataclass
class LayerResult:
    """One layer.

    Attributes
    ----------
    case : Case
        The layer.
    timings : list of Timing
        Ours first.
    left_out : dict of str
        Why a peer has no timing.
    float32 : Timing, optional
        Ours on the same layer in float32, on the layouts that its plan chooses; beside the other floats.
    """

    case: Case
    timings: list[Timing] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    float32: Timing | None = None

    @property
    def best_peer(self) -> Timing | None:
        """The fastest of the others; None where there is none."""
        peers = [timing for timing in self.timings if timing.name in PEERS]
        return min(peers, key=lambda timing: timing.microseconds, default=None)

    def ratio(self, timing: Timing) -> float | None:
        """Time of the best peer over that of `timing`: above 1, `timing` is faster."""
        return None if self.best_peer is None else self.best_peer.microseconds / timing.microseconds

    def times_float32(self, timing: Timing) -> float | None:
        """How many times as fast as our float32 `timing` is."""
        return None if self.float32 is None else self.float32.microseconds / timing.microseconds

    def gflops(self, timing: Timing) -> float:
        """Billions of multiplications and additions a second."""
        return self.case.operations / timing.microseconds / 1e3

    def gigabytes(self, timing: Timing) -> float:
        """Billions of bytes a second: the input read once and the result written once."""
        return sum(self.case.bytes) / timing.microseconds / 1e3

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        case = self.case
        layer = {
            name: getattr(case, name) for name in ("shape", "kernel", "stride", "dilation", "multiplier", "dtype", "threads", "data_format", "output_shape")
        }
        rows = [
            {"name": t.name, "note": t.note, "microseconds": t.microseconds, "least_microseconds": t.least_microseconds}
            | {"gflops": self.gflops(t), "gigabytes_per_second": self.gigabytes(t), "best_peer_over_this": self.ratio(t), "float32": self.times_float32(t)}
            for t in self.timings
        ]
        best, twin = self.best_peer, self.float32
        layer |= {"timings": rows, "best_peer": None if best is None else best.name, "left_out": self.left_out}
        return layer | {"float32_microseconds": None if twin is None else twin.microseconds}


def _ours(case: Case, dense: bool, rounding: Literal["tflite", "xnnpack"], algorithm: Literal["direct", "winograd"] = "direct") -> Call:
    planes = dense and case.data_format == "NCHW"
    plan = DepthwiseConv2d(
        case.weights, case.bias, stride=case.stride, dilation=case.dilation, quantization=case.quantization, rounding=rounding, threads=case.threads,
        dtype=case.dtype, data_format="NCHW" if planes else "NHWC", algorithm=algorithm,
    )  # fmt: skip
    if dense:
        turn = (0, 3, 1, 2) if planes else (0, 1, 2, 3)
        x, y = asarray(np.ascontiguousarray(case.x.transpose(turn))), asarray(np.empty([case.output_shape[axis] for axis in turn], case.element))
    else:
        x = NdArray(plan.input_descriptor(case.shape))
        if case.quantization is not None:
            x.fill_padding(case.quantization.input[1])
        x[...] = case.x
        y = NdArray(plan.output_descriptor(x))
    how = f"dense{', NCHW' * planes}" if dense else "layouts of the plan"
    return Call(lambda: plan(x, y), lambda: y.to_numpy().transpose(0, 2, 3, 1) if planes else y.to_numpy(), f"{plan.isa}, {how}")


def _check(case: Case, expected: npt.NDArray[np.float64], call: Call) -> None:
    """Run once, and refuse a result that is not that of the layer."""
    call.run()
    result = call.result()
    if result.shape != expected.shape:
        raise UnsupportedCaseError(f"its result has shape {result.shape}, not {expected.shape}")
    if case.quantization is None:
        # Some round halves after each tap: what that adds up to grows with the root of their number.
        tolerance = _TOLERANCES[case.dtype] * (1 + math.prod(case.kernel) ** 0.5 if case.element.itemsize == 2 else 1)
        off = np.abs(result.astype(np.float64) - expected) - tolerance * (np.abs(expected) + float(np.sqrt(np.mean(expected**2))))
    else:  # roundings differ where the exact result lies near one half; the multiplier of int16 has 15 bits
        off = np.abs(result.astype(np.int64) - expected) - (2 if case.dtype == "int16" else 1)
    if not (off <= 0).all():
        index = tuple(int(i) for i in np.unravel_index(np.argmax(off), off.shape))
        raise UnsupportedCaseError(f"its result is wrong at {index}: {result[index]}, not {expected[index]:.7g}")


def measure(case: Case, peers: Sequence[str] = tuple(PEERS), rounds: int = 15, progress: Callable[[str], None] | None = None) -> LayerResult:
    """Measure one layer.

    Parameters
    ----------
    case : Case
        The layer.
    peers : sequence of str
        Keys of `PEERS`; those that are missing or cannot do the layer are in `left_out`.
    rounds : int
        In each of them every contender has one turn of at least 3 ms, in an order drawn anew.
    progress : callable, optional
        Called with the name of each contender before it is prepared.

    Returns
    -------
    LayerResult
        Medians over the rounds.

    Raises
    ------
    LayoutError
        For an unknown peer, and for less than one round.
    Nd4jLikeError
        Where our own result is wrong.

    Examples
    --------
    >>> from nd4jlike.bench import measure, parse_layer
    >>> result = measure(parse_layer("5x5x8"), peers=(), rounds=1)
    >>> [timing.name for timing in result.timings]
    ['nd4jlike', 'nd4jlike dense']
    """
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise LayoutError(f"peers are {', '.join(PEERS)}: {', '.join(unknown)}")
    if rounds < 1:
        raise LayoutError(f"rounds must be at least 1: {rounds}")
    result = LayerResult(case)
    expected = case.expected()
    rounding: Literal["tflite", "xnnpack"] = "tflite" if case.dtype == "int16" else "xnnpack"  # which has no int16
    calls = {"nd4jlike": _ours(case, False, rounding), "nd4jlike dense": _ours(case, True, rounding)}
    twin = case
    if case.quantization is not None and rounding != "tflite":
        calls["nd4jlike tflite"] = _ours(case, False, "tflite")
    if case.quantization is None and case.dtype != "float32":
        twin = replace(case, dtype="float32")
        calls[_FLOAT32] = _ours(twin, False, rounding)
    if case.dtype == "float32" and case.kernel in WINOGRAD_FILTERS and case.stride == case.dilation == (1, 1) and case.multiplier == 1:
        calls["nd4jlike winograd"] = _ours(case, False, rounding, "winograd")
    for name, call in calls.items():
        layer = twin if name == _FLOAT32 else case
        try:
            _check(layer, expected if layer is case else layer.expected(), call)
        except UnsupportedCaseError as error:
            raise Nd4jLikeError(f"{name}: {error}") from error
    for name in peers:
        if progress is not None:
            progress(name)
        try:
            call = prepare(name, case)
            _check(case, expected, call)
        except Nd4jLikeError as error:
            result.left_out[name] = str(error)
        else:
            calls[name] = call
    found: dict[str, list[float]] = {name: [] for name in calls}
    repeats = {name: max(1, round(_TURN / max(_time(call, 3), 1e-9))) for name, call in calls.items()}
    order = np.random.default_rng(case.seed)
    for _ in range(rounds):
        for name in order.permutation(list(calls)):
            found[name].append(_time(calls[name], repeats[name]))
    timings = {name: Timing(name, call.note, statistics.median(found[name]) * 1e6, min(found[name]) * 1e6) for name, call in calls.items()}
    result.float32 = timings.pop(_FLOAT32, None)
    result.timings = list(timings.values())
    return result


def _time(call: Call, repeats: int) -> float:
    """Seconds of one of `repeats` calls; one before them brings the data back into the caches."""
    run = call.run
    run()
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats

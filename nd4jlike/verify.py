"""Every depthwise layer of a real model: run here and by a reference interpreter, compared output by output."""

from __future__ import annotations

import dataclasses
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.adapters import onnx, tflite
from nd4jlike.adapters.arm_compute import TensorInfo
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import DTypeError, LayoutError, Nd4jLikeError, UnsupportedLayoutError
from nd4jlike.geometry import AXES
from nd4jlike.interpreters import LiteRtXnnpack, Reference, open_reference
from nd4jlike.ndarray import NdArray
from nd4jlike.quantization import ACTIVATIONS, ROUNDINGS, Quantization

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    _Layer = tflite.DepthwiseLayer | onnx.DepthwiseLayer
    _Model = tflite.TfliteModel | onnx.OnnxModel
    # Their layers and inputs have the same fields.
    _Input = tflite.ModelInput | onnx.ModelInput

    _Array = npt.NDArray[Any]

__all__ = ["ROUNDING_CHOICES", "TIMING", "LayerReport", "Mismatch", "ModelReport", "read_input", "verify"]

# "auto" is the rounding of what the model was made for; "both" tries each against a reference that rounds so.
ROUNDING_CHOICES = ("auto", *ROUNDINGS, "both")

TIMING = (
    "best of repeated calls, both sides in turns, memory warm, one call's own cost cancelled on both sides. Here: a batch of many inputs minus a batch of one, "
    "over their difference; reference: a model of 5 copies of the layer minus a model of 1, over 4. "
    "call_microseconds is plan(x, out=y) with one input, as Python calls it"
)

_COPIES = 5
# Of images, where a model leaves them open.
_OPEN_EXTENT = 64
# Of arrays that stay in the second-level cache.
_WARM_BYTES = 1 << 19
_MEASURE_SECONDS = 0.1


@dataclass(frozen=True)
class Mismatch:
    """The first output of a layer that differs.

    Attributes
    ----------
    run : int
        From 0.
    index : tuple of int
        Of the element in the output.
    offset : int
        Where that lies in the buffer here, in elements.
    here, reference : int or float
        The two values.
    accumulator, reference_accumulator : int or None
        What was rounded, seen through the same layer with an output scale of powers of two; None for floats, and where the
        reference runs no such layer.
    """

    run: int
    index: tuple[int, ...]
    offset: int
    here: float
    reference: float
    accumulator: int | None = None
    reference_accumulator: int | None = None

    def __str__(self) -> str:
        words = f"run {self.run + 1}, element {self.index} at offset {self.offset}: {self.here:.9g} here, {self.reference:.9g} in the reference"
        if self.accumulator is None:
            return words
        theirs = "unknown" if self.reference_accumulator is None else self.reference_accumulator
        return f"{words}; accumulators {self.accumulator} here, {theirs} there"


@dataclass(frozen=True)
class LayerReport:
    """What was seen of one layer with one rounding, over all runs.

    Attributes
    ----------
    subgraph, index, name
        Of the operator in the model.
    dtype, axes, input_shape, output_shape, kernel, stride, dilation, padding, activation, multiplier
        Geometry; shapes are in the order of `axes` (``"NHWC"`` or ``"NCHW"``), pairs are (height, width). Explicit padding is
        ``"pads (top, bottom, left, right)"``, a PAD that became the halo of the input ``"fused pad (top, bottom, left, right)"``.
    layout : str
        Tag of the input's layout, or ``"strided"``.
    paddings, padding_offsets : tuple of int
        Of the input, in elements.
    allocation_bytes : int
        Of the input, padding included.
    arm_compute_offset, arm_compute_total_size : int or None
        `offset_first_element_in_bytes` and `total_size` of the input as a TensorInfo; None where it has none.
    arm_compute_refusal : str or None
        Why it has none.
    plan : str
        What the plan says of itself.
    rounding : str or None
        Of the results; None for floats.
    kernels : str
        What the outputs were compared with.
    elements : int
        Compared outputs.
    mismatches : int
        Outputs that differ: at all for integers; by more than rounding explains for floats. Cells of a fused PAD's output that
        the padded array does not equal count, too.
    first_mismatch : Mismatch or None
        The first of them.
    largest_difference : float
        Largest absolute difference from the reference.
    relative_error_float64, relative_error_reference : float or None
        Largest difference from a float64 computation (for float64: long double) and from the reference, over the layer's largest output; None for integers.
    microseconds, reference_microseconds, ratio : float
        Of one input in the kernels, see `TIMING`; the ratio is reference over here.
    call_microseconds : float
        Of one input, with what it costs to call the plan from Python.
    """

    subgraph: int
    index: int
    name: str
    dtype: str
    axes: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: str
    activation: str | None
    multiplier: int
    layout: str
    paddings: tuple[int, ...]
    padding_offsets: tuple[int, ...]
    allocation_bytes: int
    arm_compute_offset: int | None
    arm_compute_total_size: int | None
    arm_compute_refusal: str | None
    plan: str
    rounding: str | None
    kernels: str
    elements: int
    mismatches: int
    first_mismatch: Mismatch | None
    largest_difference: float
    relative_error_float64: float | None
    relative_error_reference: float | None
    microseconds: float
    reference_microseconds: float
    ratio: float
    call_microseconds: float


@dataclass(frozen=True)
class ModelReport:
    """The layers of one model, and what to make of them.

    Attributes
    ----------
    model : str
        Its path.
    reference : str
        The interpreter that ran the model, with its version.
    kernels : str
        What the layers' outputs were compared with.
    rounding : str
        Of the quantized layers; ``"both"`` gives each of them a row for each.
    seed : int or None
        Of the inputs; None for inputs from files.
    runs, threads : int
        Inputs that the model was run on; threads here, the reference has one.
    layers : tuple of LayerReport
        In the order of the file.
    skipped : tuple of str
        Depthwise convolutions that were not run, each with the reason.
    """

    model: str
    reference: str
    kernels: str
    rounding: str
    seed: int | None
    runs: int
    threads: int
    layers: tuple[LayerReport, ...]
    skipped: tuple[str, ...] = ()

    @property
    def matches(self) -> dict[str, bool]:
        """For each rounding that was tried, whether every output of every quantized layer matched."""
        rows = self._quantized
        return {name: not any(row.mismatches for row in rows if row.rounding == name) for name in dict.fromkeys(row.rounding or "" for row in rows)}

    @property
    def passed(self) -> bool:
        """Whether no float layer has a mismatch, and each reference is matched under a rounding that was tried."""
        rows = self._quantized
        return not any(row.mismatches for row in self._floats) and all(
            any(match for name, match in self.matches.items() if (kernels, name) in {(row.kernels, row.rounding) for row in rows})
            for kernels in {row.kernels for row in rows}
        )

    @property
    def bit_exact(self) -> bool | None:
        """Whether every output of every quantized layer matched; None when there is none."""
        return all(self.matches.values()) if self._quantized else None

    @property
    def verdict(self) -> str:
        """One line."""
        names = list(self.matches)
        if len(names) < 2:
            return _verdict(self.layers)
        parts = [f"rounding {name}: {_verdict([row for row in self._quantized if row.rounding == name])}" for name in names]
        return "; ".join([*parts, *([_verdict(self._floats)] if self._floats else [])])

    @property
    def _quantized(self) -> list[LayerReport]:
        return [row for row in self.layers if row.rounding is not None]

    @property
    def _floats(self) -> list[LayerReport]:
        return [row for row in self.layers if row.rounding is None]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON takes it."""
        return {
            **dataclasses.asdict(self),
            "timing": TIMING,
            "passed": self.passed,
            "bit_exact": self.bit_exact,
            "matches": self.matches,
            "verdict": self.verdict,
        }


def _verdict(rows: Sequence[LayerReport]) -> str:
    bad = [row for row in rows if row.mismatches]
    if bad:
        return (
            f"MISMATCH: {sum(row.mismatches for row in bad)} of {sum(row.elements for row in rows)} outputs, in {len(bad)} of "
            f"{len(rows)} layers, largest difference {max(row.largest_difference for row in bad):g}"
        )
    parts = []
    quantized, floats = [row for row in rows if row.rounding is not None], [row for row in rows if row.rounding is None]
    for dtype in dict.fromkeys(row.dtype for row in quantized):
        alike = [row for row in quantized if row.dtype == dtype]
        parts.append(f"bit-exact: all {sum(row.elements for row in alike)} outputs of {len(alike)} {dtype} layers")
    for dtype in dict.fromkeys(row.dtype for row in floats):
        alike = [row for row in floats if row.dtype == dtype]
        exact = max(row.relative_error_float64 or 0.0 for row in alike)
        reference = max(row.relative_error_reference or 0.0 for row in alike)
        parts.append(
            f"within {dtype} rounding: all {sum(row.elements for row in alike)} outputs of {len(alike)} {dtype} layers, "
            f"largest relative error {exact:.2g} against {'long double' if dtype == 'float64' else 'float64'}, {reference:.2g} against the reference"
        )
    return "; ".join(parts)


def verify(
    path: str | os.PathLike[str],
    *,
    runs: int = 3,
    seed: int = 0,
    inputs: Sequence[str | os.PathLike[str]] = (),
    rounding: str = "auto",
    reference: str = "auto",
    threads: int = 1,
    isa: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ModelReport:
    """Compare every depthwise layer of a model with a reference interpreter.

    The whole model runs in the interpreter, all its tensors preserved; each layer is then fed what it saw there, on an array laid
    out by `plan.input_descriptor`. Models that keep state keep it from run to run. Layers of other subgraphs than the first, which
    need not have run, are fed random numbers and compared with a model of that layer alone; layers of ONNX models are fed what they
    saw and compared so, too.

    Parameters
    ----------
    path : str or path-like
        A `.tflite` file, or one whose name ends with `.onnx`.
    runs : int
        Random inputs to try; with `inputs`, as many as these make.
    seed : int
        Of the random inputs.
    inputs : sequence of path
        Files for `read_input`, one for each input of the model, run after run.
    rounding : {"auto", "tflite", "xnnpack", "both"}
        Of quantized layers. ``"tflite"`` compares with the reference kernels; ``"xnnpack"`` with XNNPACK, each layer in a model of that
        layer alone; ONNX models with onnxruntime under both. ``"auto"`` is ``"tflite"``, and ``"xnnpack"`` for ONNX models.
    reference : {"auto", "tflite-micro", "litert", "onnxruntime", "onnx"}
        ``"auto"``: tflite-micro, and ai-edge-litert for what that cannot run; onnxruntime for ONNX models, and the onnx package's reference
        evaluator for those of float64 that it refuses.
    threads : int
        Of the plans here.
    isa : str, optional
        Of the plans here.
    progress : callable, optional
        Called with steps done, steps in all, and what comes next.

    Returns
    -------
    ModelReport
        One row a layer.

    Raises
    ------
    LayoutError
        A file that is no model, a model without depthwise layers, an input that does not fit.
    DTypeError
        A layer of unsupported element types.
    IsaError
        An instruction set that this machine or build does not have.
    MissingLibraryError
        An interpreter that is not installed.
    Nd4jLikeError
        A model that no interpreter can run.
    OSError
        A file that cannot be read.
    """
    if rounding not in ROUNDING_CHOICES:
        raise LayoutError(f"rounding must be one of {', '.join(ROUNDING_CHOICES)}: {rounding!r}")
    foreign = os.fspath(path).lower().endswith(".onnx")
    model: _Model = onnx.read_model(path) if foreign else tflite.read_model(path)
    if not model.layers:
        what = f"no depthwise convolution that can be computed here: {'; '.join(model.skipped)}" if model.skipped else "no depthwise convolution in this model"
        raise LayoutError(f"{os.fspath(path)}: {what}" if foreign else f"{os.fspath(path)}: no DEPTHWISE_CONV_2D in this model")
    if runs < 1:
        raise LayoutError(f"runs must be 1 or more: {runs}")
    feeds = _feeds_from_files(model, inputs) if inputs else _random_feeds(model, runs, seed)
    tried = {"auto": ("xnnpack" if foreign else "tflite",), "both": ("tflite", "xnnpack")}.get(rounding, (rounding,))
    options = {"threads": threads, "isa": isa}
    for layer in model.layers:
        try:
            layer.plan(rounding=tried[0], **options)
        except (LayoutError, DTypeError) as error:
            raise type(error)(f"{os.fspath(path)}: depthwise layer {layer.name}: {error}") from error
    interpreter = open_reference(model, reference)
    tallies = []
    for layer in model.layers:
        # XNNPACK has no int16.
        for name in tried if layer.quantization and layer.dtype != "int16" else tried[:1]:
            judge = LiteRtXnnpack if name == "xnnpack" and layer.quantization and not foreign else type(interpreter)
            tallies.append(_Tally(layer, name, judge, **options))

    total = (len(feeds) + 1) * len(tallies)
    random = np.random.default_rng(seed)
    for run, feed in enumerate(feeds):
        interpreter.run(feed)
        for i, tally in enumerate(tallies):
            if progress:
                progress(run * len(tallies) + i, total, f"run {run + 1} of {len(feeds)}")
            layer = tally.layer
            if layer.subgraph == 0:
                expected = interpreter.tensor(layer.output) if isinstance(interpreter, tally.judge) and not foreign else None
                tally.add(interpreter.tensor(tally.fused.input), expected, interpreter.tensor(layer.input))
            else:
                tally.add(_random_values(random, tally.fused.input_shape, np.dtype(layer.dtype)))
    reports = []
    for i, tally in enumerate(tallies):
        if progress:
            progress(len(feeds) * len(tallies) + i, total, "timing")
        reports.append(tally.report(_Seconds.of(tally)))
    if progress:
        progress(total, total, "done")
    return ModelReport(
        model=os.fspath(path),
        reference=interpreter.description(),
        kernels=" and ".join(sorted({tally.judge.kernels for tally in tallies})),
        rounding=tried[0] if rounding == "auto" else rounding,
        seed=None if inputs else seed,
        runs=len(feeds),
        threads=threads,
        layers=tuple(reports),
        skipped=model.skipped,
    )


# Inputs


def _random_values(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    """All values of the narrow integer types, [-1, 1) of the floats, 0 and 1 of the others, which may be indices."""
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return random.integers(0, 2, shape).astype(dtype)


def _random_feeds(model: _Model, runs: int, seed: int) -> list[list[_Array]]:
    random = np.random.default_rng(seed)
    entries: Sequence[_Input] = model.inputs
    shapes = [tuple((1 if axis == 0 else _OPEN_EXTENT) if extent < 0 else extent for axis, extent in enumerate(entry.shape)) for entry in entries]
    return [[_random_values(random, shape, entry.dtype) for shape, entry in zip(shapes, entries, strict=True)] for _ in range(runs)]


def _feeds_from_files(model: _Model, paths: Sequence[str | os.PathLike[str]]) -> list[list[_Array]]:
    entries: Sequence[_Input] = model.inputs
    count = len(entries)
    if count == 0 or len(paths) % count:
        raise LayoutError(f"{len(paths)} input files for a model of {count} inputs: as many for each run")
    return [[read_input(path, entry) for path, entry in zip(paths[i : i + count], entries, strict=True)] for i in range(0, len(paths), count)]


def read_input(path: str | os.PathLike[str], entry: _Input) -> _Array:
    """Read a file as one input of a model.

    Parameters
    ----------
    path : str or path-like
        An ``.npy`` file of the input's element type, or an uncompressed 8-bit grey ``.bmp`` image for int8 (pixel - 128) and uint8.
    entry : ModelInput
        The input.

    Returns
    -------
    numpy.ndarray
        Of the input's shape and element type.

    Raises
    ------
    LayoutError
        For another kind of file, and for another number of elements.
    DTypeError
        For another element type.
    OSError
        For a file that cannot be read.
    """
    content = Path(path).read_bytes()
    if content[:2] == b"BM":
        values = _grey_bitmap(content, os.fspath(path))
        if entry.dtype == np.int8:
            values = (values.astype(np.int16) - 128).astype(np.int8)
    elif content[:6] == b"\x93NUMPY":
        try:
            values = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise LayoutError(f"{os.fspath(path)}: {error}") from error
    else:
        raise LayoutError(f"{os.fspath(path)}: an input is an .npy file or an 8-bit grey .bmp image; this begins with {content[:6]!r}")
    if values.dtype != entry.dtype:
        raise DTypeError(f"{os.fspath(path)}: {values.dtype} for model input {entry.name} of {entry.dtype}")
    shape = entry.shape
    if min(shape, default=0) < 0 and len(shape) == values.ndim:
        shape = tuple(there if extent < 0 else extent for extent, there in zip(shape, values.shape, strict=True))
    if values.size != int(np.prod(shape)) or min(shape, default=0) < 0:
        raise LayoutError(f"{os.fspath(path)}: shape {values.shape} for model input {entry.name} of shape {entry.shape}")
    return np.ascontiguousarray(values).reshape(shape)


def _grey_bitmap(content: bytes, path: str) -> npt.NDArray[np.uint8]:
    """Rows from the top of an uncompressed image of 8 bits a pixel whose palette is grey."""
    try:
        start, header, width, height, _, bits, compression, colours = struct.unpack_from("<10xIIiiHHI12xI", content)
        if bits != 8 or compression != 0 or width < 1 or height == 0:
            raise LayoutError(f"{path}: {bits} bits a pixel, compression {compression}, {width} x {height}; uncompressed 8-bit images only")
        palette = np.frombuffer(content, np.uint8, 4 * (colours or 256), 14 + header).reshape(-1, 4)
        if (palette[:, 0] != palette[:, 1]).any() or (palette[:, 1] != palette[:, 2]).any():
            raise LayoutError(f"{path}: the palette has colours; grey images only")
        pitch = (width + 3) // 4 * 4
        rows = np.frombuffer(content, np.uint8, pitch * abs(height), start).reshape(abs(height), pitch)[:, :width]
        pixels: npt.NDArray[np.uint8] = palette[rows, 0]
    except (struct.error, ValueError, IndexError) as error:
        raise error if isinstance(error, LayoutError) else LayoutError(f"{path}: damaged image of {len(content)} bytes: {error}") from error
    return pixels if height < 0 else pixels[::-1]


# Comparison


class _Tally:
    """One layer with one rounding: its plan, and what was seen so far."""

    def __init__(self, layer: _Layer, rounding: str, judge: type[Reference], **options: Any) -> None:
        self.layer = layer
        # With the PAD before it, where there is one.
        self.fused = layer.fused()
        self.rounding = rounding
        self.judge = judge
        self.options = options
        self.plan = self.fused.plan(rounding=rounding, **options)
        self.zero_point = layer.quantization.input[1] if layer.quantization else 0
        self.x: Any = None
        self.y: Any = None
        self.seen: Any = None
        # What the reference reads: the output of the PAD, or the same.
        self.padded: Any = None
        self.runs = self.elements = self.mismatches = 0
        self.first: Mismatch | None = None
        self.first_padded: Any = None
        self.largest_difference = self.error_float64 = self.error_reference = 0.0
        self._alone: tuple[tuple[int, ...], Reference] | None = None

    def add(self, seen: _Array, expected: _Array | None = None, padded: _Array | None = None) -> None:
        """Run the layer on `seen` and compare with `expected`, by default what a model of it alone makes; `padded` is what a PAD made of `seen`."""
        if padded is None:
            padded = np.pad(seen, self._amounts(), constant_values=self.zero_point)
        self.seen, self.padded = seen, padded
        if expected is None:
            expected = self.alone(padded)
        self.x = self.laid_out(seen.shape)
        self.x[...] = seen
        self.y = NdArray(self.plan.output_descriptor(self.x))
        self.plan(self.x, out=self.y)
        result = self.y.to_numpy()
        if result.shape != expected.shape:
            raise LayoutError(f"layer {self.layer.name}: output of shape {result.shape}, the reference makes {expected.shape}")
        if self.fused is not self.layer:
            self.mismatches += int(np.count_nonzero(self.x.hosting_array().to_numpy() != padded))
        self.elements += result.size
        self.runs += 1
        if result.size == 0:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(result.astype(np.float64) - expected)
            self.largest_difference = _larger(self.largest_difference, difference)
            wrong = difference != 0 if self.layer.quantization else self._wrong_floats(result, expected, difference)
        self.mismatches += int(np.count_nonzero(wrong))
        if self.first is None and wrong.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            self.first = Mismatch(self.runs - 1, index, self.y.descriptor.offset_of(index), result[index].item(), expected[index].item())
            self.first_padded = padded

    def laid_out(self, shape: tuple[int, ...]) -> Any:
        """Make an array for the input, its padding at the zero point: as the plan asks, with a halo that windows reach, or as large as the PAD's output."""
        first, second, third, fourth = shape
        descriptor = self.plan.input_descriptor((first, second, third, fourth))
        if self.fused is not self.layer:
            before, after = zip(*self._amounts(), strict=True)
            paddings = tuple(b + a for b, a in zip(before, after, strict=True))
            descriptor = ShapeDescriptor.paddedBufferDescriptor(self.layer.dtype, "c", shape, paddings, before)
        else:
            descriptor = _with_halo(self.layer, descriptor, self.plan.output_descriptor(descriptor).shape)
        x = NdArray(descriptor)
        x.fill_padding(self.zero_point)
        return x

    def _amounts(self) -> list[tuple[int, int]]:
        return [(0, 0), *(self.layer.pad.sides if self.layer.pad else ((0, 0), (0, 0))), (0, 0)]

    def alone(self, padded: _Array) -> _Array:
        """Run the reference on a model of this layer alone."""
        if self._alone is None or self._alone[0] != padded.shape:
            self._alone = padded.shape, self.judge.alone(self.layer, padded.shape)
        self._alone[1].run([padded])
        return self._alone[1].output()

    def _wrong_floats(self, result: _Array, expected: _Array, difference: _Array) -> _Array:
        exact, bound = _exactly(self.fused, self.seen, result.shape)
        error = np.abs(result - exact)
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        largest = float(np.max(np.abs(exact), initial=0.0, where=np.isfinite(exact))) or 1.0
        self.error_float64 = _larger(self.error_float64, error / largest)
        self.error_reference = _larger(self.error_reference, difference / largest)
        # Both lie within the bound of the exact value, so within twice the bound of each other.
        wrong: _Array = ~same & ~((error <= bound) & (difference <= 2 * bound))
        return wrong

    def _explained(self) -> Mismatch | None:
        """Look at the accumulators of the first mismatch."""
        first, layer = self.first, self.layer
        if first is None or layer.quantization is None:
            return first

        def here(probe: _Layer) -> _Array:
            result: _Array = probe.plan(rounding=self.rounding, **self.options)(self.first_padded).to_numpy()
            return result

        def there(probe: _Layer) -> _Array:
            reference = self.judge.alone(probe, self.first_padded.shape)
            reference.run([self.first_padded])
            return reference.output()

        try:
            theirs = _accumulator(layer, there, first.index)
        except Nd4jLikeError:
            theirs = None
        return dataclasses.replace(first, accumulator=_accumulator(layer, here, first.index), reference_accumulator=theirs)

    def report(self, seconds: _Seconds) -> LayerReport:
        """Sum up."""
        layer, descriptor = self.fused, self.x.descriptor
        offset = total_size = refusal = None
        try:
            info = TensorInfo.from_descriptor(descriptor)
            offset, total_size = info.offset_first_element_in_bytes, info.total_size
        except UnsupportedLayoutError as error:
            refusal = str(error)
        floating = layer.quantization is None
        return LayerReport(
            subgraph=layer.subgraph,
            index=layer.index,
            name=layer.name,
            dtype=layer.dtype,
            axes=layer.data_format,
            input_shape=tuple(self.x.shape),
            output_shape=tuple(self.y.shape),
            kernel=layer.kernel,
            stride=layer.stride,
            dilation=layer.dilation,
            padding=_padding(layer.padding, "pads" if layer is self.layer else "fused pad"),
            activation=layer.activation,
            multiplier=layer.multiplier,
            layout=descriptor.tag or "strided",
            paddings=descriptor.paddings,
            padding_offsets=descriptor.padding_offsets,
            allocation_bytes=descriptor.allocLength() * descriptor.itemsize,
            arm_compute_offset=offset,
            arm_compute_total_size=total_size,
            arm_compute_refusal=refusal,
            plan=self.plan.explain(self.x),
            rounding=None if floating else self.rounding,
            kernels=self.judge.kernels,
            elements=self.elements,
            mismatches=self.mismatches,
            first_mismatch=self._explained(),
            largest_difference=self.largest_difference,
            relative_error_float64=self.error_float64 if floating else None,
            relative_error_reference=self.error_reference if floating else None,
            microseconds=seconds.here * 1e6,
            reference_microseconds=seconds.reference * 1e6,
            ratio=seconds.reference / seconds.here,
            call_microseconds=seconds.call * 1e6,
        )

    def batched(self) -> tuple[Callable[[], object], int]:
        """Give a call on many inputs at once, and how many."""
        batch = min(max(_WARM_BYTES // (self.x.nbytes + self.y.nbytes + 1), 5), 65)
        many = self.laid_out((batch * self.x.shape[0], *self.x.shape[1:]))
        for start in range(0, many.shape[0], max(self.x.shape[0], 1)):
            many[start : start + self.x.shape[0]] = self.seen
        many_out = NdArray(self.plan.output_descriptor(many))
        return lambda: self.plan(many, out=many_out), batch


def _padding(padding: Any, what: str) -> str:
    return padding if isinstance(padding, str) else f"{what} {(*padding[0], *padding[1])}"


def _beyond(layer: _Layer, axis: int, extent: int, made: int) -> tuple[int, int]:
    """How far the windows reach beyond the image before and behind it, along its rows (0) or columns (1)."""
    missing = max((made - 1) * layer.stride[axis] + (layer.kernel[axis] - 1) * layer.dilation[axis] + 1 - extent, 0)
    before = missing // 2 if isinstance(layer.padding, str) else layer.padding[axis][0]
    return before, max(missing - before, 0)


def _with_halo(layer: _Layer, descriptor: ShapeDescriptor, made: tuple[int, ...]) -> ShapeDescriptor:
    """Add the halo that windows reach where a plan does not ask for it."""
    before, after = list(descriptor.padding_offsets), [p - o for p, o in zip(descriptor.paddings, descriptor.padding_offsets, strict=True)]
    for side, axis in enumerate(AXES[layer.data_format][1:3]):
        reach = _beyond(layer, side, descriptor.shape[axis], made[axis])
        before[axis], after[axis] = max(before[axis], reach[0]), max(after[axis], reach[1])
    order = descriptor.axes
    figures = [tuple(values[axis] for axis in order) for values in (descriptor.shape, [b + a for b, a in zip(before, after, strict=True)], before)]
    hosted = ShapeDescriptor.paddedBufferDescriptor(descriptor.dtype, "c", *figures)
    return hosted.permute([order.index(axis) for axis in range(descriptor.rank)])


def _larger(so_far: float, values: _Array) -> float:
    return float(np.max(values, initial=so_far, where=np.isfinite(values)))


def _accumulator(layer: _Layer, run: Callable[[_Layer], _Array], index: tuple[int, ...]) -> int:
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


def _exactly(layer: _Layer, x: _Array, output_shape: tuple[int, ...]) -> tuple[_Array, _Array]:
    """Compute the layer in a wider type, and how far from it any order of operations may end: K products and K sums, each rounded once; halves the result."""
    wide, narrow = (np.longdouble, np.float64) if layer.dtype == "float64" else (np.float64, np.float32)
    axes = AXES[layer.data_format]
    padded, taps = x.astype(wide).transpose(axes), []
    made = tuple(output_shape[axis] for axis in axes)
    for axis, (kernel, stride, dilation) in enumerate(zip(layer.kernel, layer.stride, layer.dilation, strict=True), start=1):
        sides = _beyond(layer, axis - 1, padded.shape[axis], made[axis])
        padded = np.pad(padded, [sides if a == axis else (0, 0) for a in range(4)])
        taps.append([slice(t * dilation, t * dilation + (made[axis] - 1) * stride + 1, stride) for t in range(kernel)])

    shape = (*made[:3], layer.channels, layer.multiplier)
    bias: _Array = np.zeros(1, wide) if layer.bias is None else layer.bias.astype(wide).reshape(layer.channels, layer.multiplier)
    total: _Array = np.zeros(shape, wide) + bias
    magnitude: _Array = np.zeros(shape, wide) + np.abs(bias)
    for row, weights in zip(taps[0], layer.weights.astype(wide), strict=True):
        for column, weight in zip(taps[1], weights, strict=True):
            term = padded[:, row, column, :, None] * weight
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


# Time


def _seconds(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Best time of each call, measured in turns."""
    repeats = []
    for call in calls:
        call()
        begin = time.perf_counter()
        call()
        # Blocks of 1 ms or more: the clock and the loop disappear.
        repeats.append(max(1, int(1e-3 / max(time.perf_counter() - begin, 1e-9))))
    best = [float("inf")] * len(calls)
    deadline = time.perf_counter() + _MEASURE_SECONDS
    turns = 0
    while turns < 3 or time.perf_counter() < deadline:
        turns += 1
        for i, (call, repeat) in enumerate(zip(calls, repeats, strict=True)):
            begin = time.perf_counter()
            for _ in range(repeat):
                call()
            best[i] = min(best[i], (time.perf_counter() - begin) / repeat)
    return best


@dataclass(frozen=True)
class _Seconds:
    """Of one input: in the kernel here, of a whole call here, in the kernel of the reference; see TIMING."""

    here: float
    call: float
    reference: float

    @classmethod
    def of(cls, tally: _Tally) -> _Seconds:
        """Measure all sides in turns, so that a machine that changes its speed changes it for all."""
        alone = [tally.judge.alone(tally.layer, tally.padded.shape, copies) for copies in (1, _COPIES)]
        for interpreter in alone:
            interpreter.run([tally.padded])
        many, batch = tally.batched()
        call, batched, one, several = _seconds([lambda: tally.plan(tally.x, out=tally.y), many, alone[0].invoke, alone[1].invoke])
        return cls(here=_one_of(batched, batch, call), call=call, reference=_one_of(several, _COPIES, one))


def _one_of(several: float, count: int, one: float) -> float:
    """Cancel the cost of a call; where the machine was too restless for a difference, one is its share of several."""
    return min((several - one) / (count - 1) if several > one else several / count, one)

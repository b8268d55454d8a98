"""Every depthwise layer of a real model: run here and by a reference interpreter, compared output by output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.adapters import onnx, tflite
from nd4jlike.errors import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError
from nd4jlike.geometry import integer, integers
from nd4jlike.interpreters import LiteRtXnnpack, open_reference
from nd4jlike.quantization import ROUNDINGS
from nd4jlike.verify.formats import called, naming
from nd4jlike.verify.inputs import common_shapes, feeds_from_files, random_feeds, random_values
from nd4jlike.verify.kernels import OwnKernel
from nd4jlike.verify.reports import ModelReport
from nd4jlike.verify.tally import Tally
from nd4jlike.verify.timing import Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nd4jlike.ndarray import NdArray
    from nd4jlike.verify.formats import Layer, Model
    from nd4jlike.verify.kernels import KernelLayer

__all__ = ["ROUNDING_CHOICES", "verify"]

# "auto" is the rounding of what the model was made for; "both" tries each against a reference that rounds so.
ROUNDING_CHOICES = ("auto", *ROUNDINGS, "both")


def verify(
    path: str | os.PathLike[str],
    *,
    runs: int = 3,
    seed: int = 0,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    rounding: str = "auto",
    reference: str = "auto",
    threads: int = 1,
    isa: str | None = None,
    kernel: Callable[[NdArray, KernelLayer], Any] | None = None,
    halo: bool = False,
    layer: int | tuple[int, int] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ModelReport:
    """Compare every depthwise layer of a model with a reference interpreter.

    The whole model runs in the interpreter, all its tensors preserved; each layer is then fed what it saw there, on an array laid
    out by `plan.input_descriptor`. Models that keep state keep it from run to run. Layers of other subgraphs than the first, which
    need not have run, are fed random numbers and compared with a model of that layer alone; layers of ONNX models are fed what they
    saw and compared so, too.

    With `kernel`, that computes the layers instead of the plans here: is a port of it bit-exact with the device, on this model?

    Parameters
    ----------
    path : str or path-like
        A `.tflite` file, or one whose name ends with `.onnx`.
    runs : int
        Random inputs to try; with `inputs`, as many as these make.
    seed : int
        Of the random inputs, 0 or more.
    inputs : path or sequence of path
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
    kernel : callable, optional
        Takes `x`, an NdArray of shape (N, H, W, C), and `layer`, a `KernelLayer`; gives an array_like of `layer.output_shape` and
        `layer.dtype`. It may write to that array alone: what it is given is compared with what it was; other memory cannot be. It is asked
        for each layer in each run and, to find what a mismatch accumulated, for that layer with other scales and biases. A PAD before a
        layer is an operator of its own then. No times are taken.
    halo : bool
        Whether `x` lies in a buffer with `layer.padding` around it, at the input zero point: ``x.hosting_array()``. Else it is dense.
    layer : int or (int, int), optional
        The index of an operator, in the first subgraph, or that of a subgraph and of an operator there, as rows of the report have them:
        that layer alone is compared. All are by default.
    progress : callable, optional
        Called with steps done, steps in all, and what comes next.

    Returns
    -------
    ModelReport
        One row a layer.

    Raises
    ------
    LayoutError
        A file that is no model, a model without depthwise layers, an input that does not fit; `runs`, `seed`, `inputs` or `halo` of
        another kind; a `layer` that the model has not; a `kernel` that is not callable, beside `threads` or `isa`, or returns another
        shape; `halo` without a `kernel`.
    DTypeError
        A layer of unsupported element types; a `kernel` that returns another one.
    IsaError
        An instruction set that this machine or build does not have.
    MissingLibraryError
        An interpreter that is not installed.
    Nd4jLikeError
        A model that no interpreter can run; a `kernel` that writes to what it is given, or raises: from what it raised.
    OSError
        A file that cannot be read.

    Examples
    --------
    Of a kernel in a library that ctypes has loaded:

    >>> def depthwise(x, layer):
    ...     y = np.empty(layer.output_shape, layer.dtype)
    ...     library.depthwise(np.asarray(x).ctypes.data, layer.weights.ctypes.data, y.ctypes.data, *layer.stride)  # and so on
    ...     return y
    >>> verify("model.tflite", kernel=depthwise).verdict  # doctest: +SKIP
    'bit-exact: all 214272 outputs of 14 int8 layers'
    """
    if rounding not in ROUNDING_CHOICES:
        raise LayoutError(f"rounding must be one of {', '.join(ROUNDING_CHOICES)}: {rounding!r}")
    runs = integer("runs", runs, 1)
    (seed,) = integers((seed,), "seeds")
    if kernel is not None and not callable(kernel):
        raise LayoutError(f"kernel must be callable, with an array and a KernelLayer: {kernel!r}")
    if kernel is not None and (threads != 1 or isa is not None):
        raise LayoutError(f"threads and isa are those of the plans here, a kernel has its own: threads={threads}, isa={isa!r}")
    if not isinstance(halo, (bool, np.bool_)):
        raise LayoutError(f"halo must be True or False: {halo!r}")
    if halo and kernel is None:
        raise LayoutError("halo is how the input of a kernel lies, and there is none: halo=True, kernel=None")
    own = None if kernel is None else OwnKernel(kernel, halo)
    files: tuple[Any, ...] = tuple(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, str) else (inputs,)
    if not all(isinstance(file, (str, os.PathLike)) for file in files):
        raise LayoutError(f"inputs must be paths of files: {inputs!r}")
    foreign = os.fspath(path).lower().endswith(".onnx")
    model: Model = onnx.read_model(path) if foreign else tflite.read_model(path)
    feeds = None

    def fed() -> list[list[Any]]:
        return feeds_from_files(model, files) if files else random_feeds(model, runs, seed)

    # A layer may be skipped for what the file leaves open and inputs tell; once it is read, it tells how many channels random ones have.
    for _ in range(2 if foreign and model.skipped else 0):
        feeds = fed()
        shapes = common_shapes(model, feeds)
        if not shapes:
            break
        model = onnx.read_model(path, shapes)
        if files:
            break
    if not model.layers:
        what = f"no depthwise convolution that can be computed here: {'; '.join(model.skipped)}" if model.skipped else "no depthwise convolution in this model"
        raise LayoutError(f"{os.fspath(path)}: {what}" if foreign else f"{os.fspath(path)}: no DEPTHWISE_CONV_2D in this model")
    layers = model.layers if layer is None else _one(model, layer, os.fspath(path))
    feeds = fed() if feeds is None else feeds
    tried = {"auto": ("xnnpack" if foreign else "tflite",), "both": ("tflite", "xnnpack")}.get(rounding, (rounding,))
    options = {"threads": threads, "isa": isa}
    for entry in layers:
        try:
            entry.plan(rounding=tried[0], **options)
        except (LayoutError, DTypeError) as error:
            raise type(error)(f"{os.fspath(path)}: {called(entry)}: {error}") from error
    with naming(os.fspath(path)):
        interpreter = open_reference(model, reference, feeds[0])
    tallies = []
    for entry in layers:
        # XNNPACK has no int16.
        for name in tried if entry.quantization and entry.dtype != "int16" else tried[:1]:
            judge = LiteRtXnnpack if name == "xnnpack" and entry.quantization and not foreign else type(interpreter)
            tallies.append(Tally(entry, name, judge, own, **options))

    skipped = list(model.skipped)
    if rounding == "both":
        tallies = [tally for tally in tallies if _has_reference(tally, skipped)]
    total = (len(feeds) + 1) * len(tallies)
    randoms = {(entry.subgraph, entry.index): np.random.default_rng((seed, entry.subgraph, entry.index)) for entry in layers}
    for run, feed in enumerate(feeds):
        if run:  # the choice of the interpreter was the first
            with naming(os.fspath(path)):
                interpreter.run(feed)
        for i, tally in enumerate(tallies):
            if progress:
                progress(run * len(tallies) + i, total, f"run {run + 1} of {len(feeds)}")
            entry = tally.layer
            if entry.subgraph == 0:
                expected = interpreter.tensor(entry.output) if isinstance(interpreter, tally.judge) and not foreign else None
                tally.add(interpreter.tensor(tally.fused.input), expected, interpreter.tensor(entry.input))
            else:
                tally.add(random_values(randoms[entry.subgraph, entry.index], tally.fused.input_shape, np.dtype(entry.dtype)))
    if not any(tally.elements for tally in tallies):
        raise LayoutError(f"{os.fspath(path)}: nothing to compare: no depthwise layer has outputs")
    reports = []
    for i, tally in enumerate(tallies):
        if progress:
            progress(len(feeds) * len(tallies) + i, total, "summing up" if own else "timing")
        reports.append(tally.report(None if own else Seconds.of(tally)))
    if progress:
        progress(total, total, "done")
    return ModelReport(
        model=os.fspath(path),
        reference=interpreter.description(),
        kernels=" and ".join(sorted({tally.judge.kernels for tally in tallies})),
        rounding=tried[0] if rounding == "auto" else rounding,
        seed=None if files else seed,
        runs=len(feeds),
        threads=threads,
        layers=tuple(reports),
        skipped=tuple(skipped),
        kernel=own.name if own else None,
    )


def _has_reference(tally: Tally, skipped: list[str]) -> bool:
    """Whether XNNPACK takes a layer that is to be compared with it too; else that is `skipped`, with the reason."""
    if tally.judge is LiteRtXnnpack:
        shape = tally.layer.input_shape
        try:
            tally.alone(np.full(shape, tally.zero_point, tally.layer.dtype))
        except MissingLibraryError:
            raise
        except Nd4jLikeError as error:
            skipped.append(str(error))
            return False
    return True


def _one(model: Model, layer: Any, path: str) -> list[Layer]:
    """Find a layer by the index of its operator, in the first subgraph or that beside it."""
    wanted = layer if isinstance(layer, tuple) else (0, layer)
    if len(wanted) != 2 or not all(isinstance(number, Integral) for number in wanted):
        raise LayoutError(f"layer must be the index of an operator, or that of its subgraph and it: {layer!r}")
    found = [entry for entry in model.layers if (entry.subgraph, entry.index) == wanted]
    if not found:
        known = ", ".join(f"{entry.subgraph}/{entry.index}" for entry in model.layers)
        raise LayoutError(f"{path}: no depthwise layer {wanted[0]}/{wanted[1]} in this model, which has {known}")
    return found

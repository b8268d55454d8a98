"""``verify`` and ``demo``: every depthwise layer of a model beside its reference interpreter."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from contextlib import nullcontext
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nd4jlike import verify
from nd4jlike.cli.child import cautious, doing
from nd4jlike.cli.output import FINE, MISMATCH, check_output, foreign_output, or_dash, print_json, print_rich, progress_bar
from nd4jlike.errors import MissingLibraryError, Nd4jLikeError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from nd4jlike.ndarray import NdArray
    from nd4jlike.verify import KernelLayer, LayerReport, ModelReport

__all__ = ["run_demo", "run_verify"]

DEMO_PACKAGE = "pymicro-wakeword"


def run_verify(arguments: argparse.Namespace) -> int:
    """Run ``verify``."""
    check_output(arguments)
    with foreign_output() if arguments.kernel else nullcontext():
        kernel = _load_kernel(arguments.kernel) if arguments.kernel else None
        report = _report(arguments.model, arguments, inputs=arguments.input, kernel=kernel, halo=arguments.halo, layer=arguments.layer)
    if arguments.json:
        print_json(report.to_dict())
    else:
        _print_report(report)
    return FINE if report.passed else MISMATCH


def run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``."""
    check_output(arguments)
    try:
        files = importlib.metadata.files(DEMO_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    models = sorted(str(file.locate()) for file in files if file.suffix == ".tflite")
    if not models:
        raise MissingLibraryError(f"the models of {DEMO_PACKAGE} are not installed: pip install nd4jlike[demo]")

    reports = [_report(model, arguments) for model in models]
    passed = all(report.passed for report in reports)
    if arguments.json:
        print_json({"models": [report.to_dict() for report in reports], "passed": passed})
    else:
        for report in reports:
            _print_report(report)
        print(f"{len(reports)} models, {sum(len(report.layers) for report in reports)} depthwise layers: {'passed' if passed else 'FAILED'}")
    return FINE if passed else MISMATCH


def _load_kernel(name: str) -> Callable[..., Any]:
    """Import ``module:function``, from the current directory too."""
    module_name, _, function_name = name.partition(":")
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)
    try:
        with doing(f"--kernel {name}: its module"):
            function = attrgetter(function_name)(importlib.import_module(module_name))
    except (Exception, SystemExit) as error:  # whatever a module raises that is imported
        raise Nd4jLikeError(f"--kernel {name}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise Nd4jLikeError(f"--kernel {name}: no callable but {type(function).__name__}: {function!r}")

    def called(x: NdArray, layer: KernelLayer) -> Any:
        if layer.probe and cautious():
            raise Nd4jLikeError("it ended the process before")
        asked = ", asked for its accumulators" if layer.probe else ""
        with doing(f"depthwise layer {layer.subgraph}/{layer.index} ({layer.name}){asked}: kernel {name}", spare=layer.probe):
            return function(x, layer)

    called.__module__, called.__qualname__ = module_name, function_name  # as it was asked for
    return called


def _report(model: str, arguments: argparse.Namespace, **options: Any) -> ModelReport:
    with progress_bar(os.path.basename(model)) as progress:  # noqa: PTH119 - of any text
        return verify.verify(
            model,
            runs=arguments.runs,
            seed=arguments.seed,
            rounding=arguments.rounding,
            reference=arguments.reference,
            threads=arguments.threads,
            isa=arguments.isa,
            progress=progress,
            **options,
        )


def _print_report(report: ModelReport) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rounding = f", rounding {report.rounding}" if report.matches else ""  # of floats there is none
    title = Text(f"{report.model}: {report.reference}, compared with {report.kernels}{rounding}, runs {report.runs}")
    if report.kernel:
        title.append(f"\nkernel {report.kernel}")
        if any(row.axes != "NHWC" for row in report.layers):
            title.append("\naxes here are those of the file, (N, C, H, W); those of the kernel's arrays are (N, H, W, C)")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns: dict[str, Callable[[LayerReport], str]] = {
        "layer": lambda layer: f"{layer.subgraph}/{layer.index}",
        "input": lambda layer: "x".join(map(str, layer.input_shape)),
        "kernel": _kernel,
        "dtype": lambda layer: layer.dtype,
        "layout": lambda layer: layer.layout,
        "padding": _padding,
        "bytes": lambda layer: str(layer.allocation_bytes),
        "arm\noffset": lambda layer: or_dash(layer.arm_compute_offset),
        "arm\nsize": lambda layer: or_dash(layer.arm_compute_total_size),
        "rounding": lambda layer: layer.rounding or "-",
        "mis-\nmatches": lambda layer: f"{layer.mismatches}/{layer.elements}",
        "largest\ndiff.": lambda layer: f"{layer.largest_difference:.3g}",
        "rel. to\nfloat64": lambda layer: or_dash(layer.relative_error_float64),
        "rel. to\nref.": lambda layer: or_dash(layer.relative_error_reference),
        "us": lambda layer: f"{layer.microseconds:.2f}",
        "ref.\nus": lambda layer: f"{layer.reference_microseconds:.2f}",
        "ratio": lambda layer: f"{layer.ratio:.1f}",
        "call\nus": lambda layer: f"{layer.call_microseconds:.2f}",
    }
    if report.kernel:
        del columns["us"], columns["ref.\nus"], columns["ratio"], columns["call\nus"]
    if len(report.matches) < 2:
        del columns["rounding"]
    if all(layer.relative_error_float64 is None for layer in report.layers):
        del columns["rel. to\nfloat64"], columns["rel. to\nref."]
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=True, justify="left" if number < 6 else "right")
    for layer in report.layers:
        table.add_row(*(Text(text(layer)) for text in columns.values()), style="red" if layer.mismatches else None)
    mismatches = [Text(f"layer {row.subgraph}/{row.index} {row.name}: {row.first_mismatch}", style="red") for row in report.layers if row.first_mismatch]
    mismatches += [Text(f"layer {row.subgraph}/{row.index}: {row.places}", style="red") for row in report.layers if row.places]
    notes = [
        Text(f"layer {row.subgraph}/{row.index} {row.name}: not an integer layer: {row.not_integer}", style="yellow")
        for row in report.layers
        if row.not_integer
    ]
    notes += [Text(f"skipped: {reason}", style="yellow") for reason in report.skipped]
    print_rich(title, table, *notes, *mismatches, Text(report.verdict, style="bold green" if report.passed else "bold red"))


def _kernel(layer: LayerReport) -> str:
    """Geometry in few letters: kernel, stride, dilation, padding, multiplier, activation; what is usual is left out."""
    words = [f"{layer.kernel[0]}x{layer.kernel[1]}", layer.padding]
    words += [f"s{layer.stride[0]}x{layer.stride[1]}"] * (layer.stride != (1, 1))
    words += [f"d{layer.dilation[0]}x{layer.dilation[1]}"] * (layer.dilation != (1, 1))
    words += [f"m{layer.multiplier}"] * (layer.multiplier != 1)
    words += [str(layer.activation)] * (layer.activation is not None)
    return " ".join(words)


def _padding(layer: LayerReport) -> str:
    """Before and after, for the axes that have any."""
    words = [f"{axis}{before}+{padding - before}" for axis, padding, before in zip(layer.axes, layer.paddings, layer.padding_offsets, strict=True) if padding]
    return " ".join(words) or "none"

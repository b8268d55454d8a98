"""What can be asked, and in which words."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any, NoReturn

from nd4jlike import __version__
from nd4jlike.cli import benchmark, layouts, machine, verification
from nd4jlike.cli.output import BAD_INPUT, complain
from nd4jlike.interpreters import REFERENCES
from nd4jlike.peers import DTYPES
from nd4jlike.verify import ROUNDING_CHOICES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["parse"]

# Who is suspected of a crash where nobody is known to be at work, what is said of it, and what helps where it was a signal.
_KERNEL_CRASH = ("the kernel or the reference interpreter", "{who} {what}", "; PYTHONFAULTHANDLER=1 in the environment shows where")
_INTERPRETER_CRASH = ("the reference interpreter", "{who} {what} on this model; --reference names another", "")
_PEER_CRASH = ("a peer", "{who} {what}; --peers names those to measure", "")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Complain in one line."""
        self.exit(complain(f"{message} (see {self.prog} --help)", BAD_INPUT))


class _Kernel(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        """Remember what else may crash."""
        namespace.kernel, namespace.crash = values, _KERNEL_CRASH


def parse(texts: Sequence[str]) -> argparse.Namespace:
    """Read the arguments of the command. What begins with a minus and a digit is a value of the option before it, lists of numbers, too."""
    joined: list[str] = []
    for text in texts:
        if joined and joined[-1].startswith("--") and "=" not in joined[-1] and re.match(r"-\.?\d", text):
            joined[-1] += f"={text}"
        else:
            joined.append(text)
    return _build_parser().parse_args(joined)


def _build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; each sets what runs it and, where that calls foreign code, what is said when it crashes."""
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
    verify.add_argument(
        "--kernel",
        action=_Kernel,
        type=_entry_point,
        metavar="MODULE:FUNCTION",
        help="compare this function with the reference instead of the kernels here: it takes an array and a nd4jlike.verify.KernelLayer and returns the output",
    )
    verify.add_argument("--halo", action="store_true", help="give --kernel its input in a buffer with the layer's padding around it")
    verify.add_argument("--layer", type=_place, metavar="INDEX", help="compare this layer alone: its INDEX or SUBGRAPH/INDEX, as the report writes it")
    _add_verification(verify)
    verify.set_defaults(run=verification.run_verify, crash=_INTERPRETER_CRASH)

    demo = commands.add_parser("demo", help=f"verify the models of the {verification.DEMO_PACKAGE} package")
    _add_verification(demo)
    demo.set_defaults(run=verification.run_demo, crash=_INTERPRETER_CRASH)

    describe = commands.add_parser("describe", help="show where each element of a layout lives")
    describe.add_argument("layout", metavar="LAYOUT", help="c, f, or a tag such as nchw, nhwc or acdb")
    describe.add_argument(
        "shape",
        metavar="SHAPE",
        type=_integers,
        help="extents such as 1,17,5,4, in the order of the tag's letters a, b, c, ...: N, C, H, W; empty for a scalar",
    )
    describe.add_argument("--dtype", default="float32", help="element type (default: %(default)s)")
    describe.add_argument("--paddings", type=_integers, metavar="P,..", help="elements of padding along each axis, both sides together")
    describe.add_argument("--padding-offsets", type=_integers, metavar="P,..", help="elements of it before the first element of each axis")
    describe.add_argument(
        "--find", type=_integers, metavar="I,..", help="say where the element of this index lies: its offset, block and cell; padding has negative ones, too"
    )
    at = describe.add_mutually_exclusive_group()
    at.add_argument("--at", type=_integer, metavar="OFFSET", help="say what lies at this offset of the buffer, counted in elements; 0x1f is one, too")
    at.add_argument("--at-byte", type=_integer, metavar="OFFSET", help="the same, counted in bytes, as debuggers and sanitizers do")
    describe.add_argument("--memory", metavar="FILE", help="mark padding that is dirty in these raw bytes of the whole buffer, and end with 1 if any is")
    describe.add_argument("--fill", type=_number, metavar="VALUE", help="what clean padding holds in --memory (default: 0)")
    describe.add_argument("--svg", type=_file, metavar="FILE", help="draw the layout into this file; - is standard output, for the picture alone")
    describe.add_argument("--json", action="store_true", help="print JSON")
    describe.set_defaults(run=layouts.run_describe, crash=None)

    bench = commands.add_parser("bench", help="measure depthwise layers beside the libraries that are installed")
    bench.add_argument(
        "layers", metavar="LAYER", nargs="*",
        help="such as 112x112x64:k3:s2: height, width, channels; kernel, stride, d dilation, m multiplier; at the end :nchw for that order (default: some)",
    )  # fmt: skip
    bench.add_argument("--dtype", choices=DTYPES, default="float32", help="element type (default: %(default)s)")
    bench.add_argument("--threads", type=_positive, default=1, help="for each contender (default: %(default)s)")
    bench.add_argument(
        "--peers", type=lambda text: tuple(text.split(",")) if text else (), metavar="NAME,..", help="only these (default: all that are installed)"
    )
    bench.add_argument("--rounds", type=_positive, default=15, help="turns of each contender (default: %(default)s)")
    bench.add_argument("--json", action="store_true", help="print JSON")
    bench.set_defaults(run=benchmark.run_bench, crash=_PEER_CRASH)

    info = commands.add_parser("info", help="show instruction sets, threads and versions")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=machine.run_info, crash=None)
    return parser


def _add_verification(parser: argparse.ArgumentParser) -> None:
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
        return int(text, 16 if "x" in text.lower() else 10)
    except ValueError:
        raise argparse.ArgumentTypeError(f"an integer is needed: {text!r}") from None


def _number(text: str) -> float:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number is needed: {text!r}") from None


def _entry_point(text: str) -> str:
    if not all(text.partition(":")):
        raise argparse.ArgumentTypeError(f"a module and a function in it are needed, MODULE:FUNCTION: {text!r}")
    module = text.partition(":")[0]
    if os.sep in module or module.endswith(".py"):
        raise argparse.ArgumentTypeError(f"the name of a module is needed, not of a file: {text!r}")
    return text


def _place(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(?:(\d+)/)?(\d+)", text, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"INDEX or SUBGRAPH/INDEX is needed, as reports write it: {text!r}")
    return int(found[1] or 0), int(found[2])


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

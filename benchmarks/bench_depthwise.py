"""Depthwise layers of known networks beside the libraries that are installed: `nd4jlike.bench`, with the share of what this machine can do.

python benchmarks/bench_depthwise.py [--networks mobilenet_v1,..] [--layers 14x14x512:k3,..] [--dtype float32,int8,float16,..] [--threads N] [--peers NAME,..]
    [--rounds N] [--json FILE] [--svg FILE] [--check]

us: median time of a call. ratios: best peer's time over ours, on the layouts of the plan, on dense arrays, with TensorFlow Lite's rounding and by Winograd's
algorithm; micro: the time of TensorFlow Lite Micro's reference kernel over ours; float32: of float64 and halves, our own time on the same layer in float32
over theirs.
The bound is the longer of two times: all multiplications inside the image at the measured peak of one thread, and the input read and the result written
once by a loop that does nothing else, measured here on as many bytes. It needs a C compiler (cc); without, there is no such column. Extra: nd4jlike[bench].
"""

import argparse
import ctypes
import importlib.util
import itertools
import json
import math
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import nd4jlike as nd
from nd4jlike import bench
from nd4jlike.peers import PEERS

# Depthwise layers that differ, input sizes 224 (ConvNeXt's first stages too), in the order of the networks.
NETWORKS = {
    "mobilenet_v1": (
        "112x112x32", "112x112x64:s2", "56x56x128", "56x56x128:s2", "28x28x256", "28x28x256:s2", "14x14x512", "14x14x512:s2", "7x7x1024",
    ),
    "mobilenet_v2": (
        "112x112x32", "112x112x96:s2", "56x56x144", "56x56x144:s2", "28x28x192", "28x28x192:s2", "14x14x384", "14x14x576", "14x14x576:s2", "7x7x960",
    ),
    "mobilenet_v3": (
        "112x112x16", "112x112x64:s2", "56x56x72", "56x56x72:k5:s2", "28x28x120:k5", "28x28x240:s2", "14x14x200", "14x14x184", "14x14x480", "14x14x672:k5",
        "14x14x672:k5:s2", "7x7x960:k5",
    ),
    "efficientnet_b0": (
        "112x112x32", "112x112x96:s2", "56x56x144", "56x56x144:k5:s2", "28x28x240:k5", "28x28x240:s2", "14x14x480", "14x14x480:k5", "14x14x672:k5",
        "14x14x672:k5:s2", "7x7x1152:k5", "7x7x1152",
    ),
    "convnext_t": ("56x56x96:k7", "28x28x192:k7", "14x14x384:k7", "7x7x768:k7"),
    "other": ("28x28x256:d2", "96x96x3:s2:m8", "513x513x32", "61x45x17", "4x14x14x67:k5:s2", "1x128x40:k1x9", "3x3x8"),
}  # fmt: skip
# Ours with another option, by element type.
VARIANTS = dict.fromkeys(("int8", "uint8", "int16"), "nd4jlike tflite") | {"float32": "nd4jlike winograd"}


class Bound:
    """What this machine can do, one thread, measured anew for each layer: its clock moves."""

    def __init__(self, folder):
        library = Path(folder) / "peak.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", Path(__file__).with_name("peak.c"), "-o", library], check=True)
        self.native = ctypes.CDLL(library)
        self.native.peak.restype = self.native.touch.restype = ctypes.c_double
        self.native.touch.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2 + [ctypes.c_int] * 2

    def microseconds(self, case):
        """Least time of a case: (computing, touching memory)."""
        inside = [
            sum(0 <= o * stride + k * dilation - before < size for o in range(out) for k in range(kernel))
            for size, out, kernel, stride, dilation, (before, _) in zip(
                case.shape[1:3], case.output_shape[1:3], case.kernel, case.stride, case.dilation, case.pads, strict=True
            )
        ]
        operations = 2 * case.shape[0] * case.outputs * math.prod(inside)
        read, written = case.bytes
        x, y = np.ones(read + 64, np.int8), np.ones(written + 64, np.int8)
        at, to = x.ctypes.data + -x.ctypes.data % 64, y.ctypes.data + -y.ctypes.data % 64
        memory = self.native.touch(at, read, to, written, max(1, int(2e6 / (read + written))), 10)
        # Halves are widened and summed as float32; a vector has half as many of float64.
        peak = self.native.peak(4 if case.quantization is None else case.x.itemsize) / (2 if case.dtype == "float64" else 1)
        return operations / peak / 1e3, memory * 1e6


def row(text, result, bound):
    """One line of the table, and what goes into the JSON file."""
    times = {timing.name: timing for timing in result.timings}
    ours, best = times["nd4jlike"], result.best_peer
    found = {"layer": text} | result.to_dict()
    line = f"{text:18}{ours.microseconds:10.2f}{result.gflops(ours):9.1f}{result.gigabytes(ours):8.1f}"
    if bound is not None:
        computing, memory = bound.microseconds(result.case)
        found |= {"bound_microseconds": max(computing, memory), "bound_by": "computing" if computing > memory else "memory"}
        line += f"{100 * max(computing, memory) / ours.microseconds:7.0f} {found['bound_by'][:3]}"
    line += f"  {best.name:12}{best.microseconds:10.2f}" if best else f"  {'-':12}{'-':>10}"
    for name, width in (("nd4jlike", 8), ("nd4jlike dense", 8), (VARIANTS.get(result.case.dtype), 9)):
        if name in times:
            line += f"{result.ratio(times[name]):{width}.2f}" if best else f"{'-':>{width}}"
        elif name is not None:
            line += " " * width
    if result.float32 is not None:
        line += f"{result.times_float32(ours):9.2f}"
    if "tflite-micro" in times:
        line += f"{times['tflite-micro'].microseconds / ours.microseconds:8.1f}"
    return line, found


def plot(rows, path):
    """Draw the ratios as bars."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    rows = [row for row in rows if row["best_peer"]]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.3 * len(rows)), layout="constrained")
    names = [f"{row['layer']} {row['dtype']}" for row in rows]
    for shift, name, hatch in ((-0.2, "nd4jlike", ""), (0.2, "nd4jlike dense", "//")):
        ratios = [next(t["best_peer_over_this"] for t in row["timings"] if t["name"] == name) for row in rows]
        axes.barh([i + shift for i in range(len(rows))], ratios, height=0.38, hatch=hatch, label=name)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel("time of the best peer / ours (right of the line: we are faster)")
    axes.legend()
    figure.savefig(path)


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message):
        """Say what is wrong."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def names_of(known):
    """Read names with commas, each of `known`."""

    def read(text):
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(known)} are known: {', '.join(map(repr, unknown))}")
        return names

    return read


def at_least_one(text):
    """Read a count."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1: {text!r}")
    return int(text)


def writable(text):
    """Read the name of a file that can be written; what is there stays until then."""
    path = Path(text)
    try:
        target = path.resolve()  # of a link, which stays
        is_new = not target.exists()
        target.open("ab").close()
        if is_new:
            target.unlink()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"cannot be written: {error}") from error
    return path


def parsed():
    """Read the arguments: all that can be wrong with them is said before anything is measured."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=names_of(NETWORKS), default=",".join(NETWORKS), help="of %(default)s")
    parser.add_argument("--layers", help="these instead, as nd4jlike bench takes them, with commas")
    parser.add_argument("--dtype", default="float32,int8", help="element types, with commas")
    parser.add_argument("--threads", type=at_least_one, default=1)
    parser.add_argument("--peers", type=names_of(PEERS), default=",".join(PEERS), help="of %(default)s")
    parser.add_argument("--rounds", type=at_least_one, default=15, help="turns of each contender")
    parser.add_argument("--json", type=writable, metavar="FILE", help="everything that was measured")
    parser.add_argument("--svg", type=writable, metavar="FILE", help="a plot of the ratios (matplotlib)")
    parser.add_argument("--check", action="store_true", help="one round: results compared, times meaningless")
    arguments = parser.parse_args()
    arguments.layers = (
        dict.fromkeys(layer for name in arguments.networks for layer in NETWORKS[name]) if arguments.layers is None else arguments.layers.split(",")
    )
    if not arguments.layers:
        parser.error(f"argument --networks: at least one of {', '.join(NETWORKS)}")
    if arguments.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("argument --svg: matplotlib is not installed")
    arguments.dtype = arguments.dtype.split(",")
    try:
        for dtype, text in itertools.product(arguments.dtype, arguments.layers):
            bench.parse_layer(text, dtype, arguments.threads)
    except nd.Nd4jLikeError as error:
        parser.error(str(error))
    return arguments


def main():
    """Print the table."""
    arguments = parsed()
    try:
        with tempfile.TemporaryDirectory() as folder:
            bound = Bound(folder) if arguments.threads == 1 else None
    except (OSError, subprocess.CalledProcessError) as error:
        bound = None
        print(f"no bound: {error}", file=sys.stderr)
    rows, notes, left_out = [], {}, {}
    for dtype in arguments.dtype:
        print(
            f"{dtype:18}{'us':>10}{'GFLOP/s':>9}{'GB/s':>8}"
            + f"{'% bound':>11}" * (bound is not None)
            + f"  {'best peer':12}{'us':>10}{'ratio':>8}{'dense':>8}"
            + f"{VARIANTS.get(dtype, '').rpartition(' ')[2]:>9}" * (dtype in VARIANTS)
            + f"{'float32':>9}" * (dtype in ("float16", "bfloat16", "float64"))
            + f"{'micro':>8}" * ("tflite-micro" in arguments.peers and dtype in ("float32", "int8", "uint8", "int16"))
        )
        for text in arguments.layers:
            result = bench.measure(bench.parse_layer(text, dtype, arguments.threads), arguments.peers, 1 if arguments.check else arguments.rounds)
            line, found = row(text, result, bound)
            print(line, flush=True)
            rows.append(found)
            notes |= {timing.name: timing.note for timing in result.timings}
            left_out |= {f"{dtype}, {name}: {reason}": None for name, reason in result.left_out.items()}
        ours = [t for row in rows for t in row["timings"] if row["dtype"] == dtype and t["name"] == "nd4jlike"]
        for what, key in (("geometric mean", "best_peer_over_this"), ("times float32", "float32")):
            ratios = [t[key] for t in ours if t[key]]
            if ratios:
                print(f"{what:18}{statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    for name, note in notes.items():
        print(f"{name}: {note}")
    for reason in left_out:
        print(f"left out, {reason}")
    if arguments.json:
        conditions = {
            "machine": platform.processor() or platform.machine(),
            "nd4jlike": nd.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        arguments.json.write_text(json.dumps({"conditions": conditions, "contenders": notes, "layers": rows}, indent=1))
    if arguments.svg:
        plot(rows, arguments.svg)


if __name__ == "__main__":
    main()

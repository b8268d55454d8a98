"""``bench``: layers beside the libraries that are installed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from nd4jlike.bench import LAYERS, measure, parse_layer
from nd4jlike.cli.machine import describe_machine
from nd4jlike.cli.output import FINE, check_output, or_dash, print_json, print_rich, progress_bar
from nd4jlike.peers import PEERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from nd4jlike.bench import LayerResult

__all__ = ["run_bench"]


def run_bench(arguments: argparse.Namespace) -> int:
    """Run ``bench``."""
    check_output(arguments)
    cases = [parse_layer(text, arguments.dtype, arguments.threads) for text in arguments.layers or LAYERS]
    peers = tuple(PEERS) if arguments.peers is None else arguments.peers
    results = []
    with progress_bar("bench") as progress:
        for number, (case, text) in enumerate(zip(cases, arguments.layers or LAYERS, strict=True)):
            said = None if progress is None else functools.partial(_say, progress, number, len(cases), text)
            results.append(measure(case, peers, arguments.rounds, said))
    if arguments.json:
        print_json({"machine": describe_machine(), "layers": [result.to_dict() for result in results]})
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
    beside = ["float32\n/ ours"] if results[0].float32 else []
    for number, name in enumerate(
        ["layer", *(f"{name.replace(' ', chr(10))}\nus" for name in names), "GFLOP/s", "GB/s", "best peer\n/ ours", "best peer\n/ dense", *beside]
    ):
        table.add_column(name, no_wrap=True, justify="right" if number else "left")
    for layer, result in zip(layers, results, strict=True):
        times = {timing.name: timing for timing in result.timings}
        ours, dense = times["nd4jlike"], times["nd4jlike dense"]
        cells = [f"{times[name].microseconds:.1f}" if name in times else "-" for name in names]
        cells += [f"{result.gflops(ours):.1f}", f"{result.gigabytes(ours):.1f}", *(or_dash(result.ratio(timing)) for timing in (ours, dense))]
        cells += [or_dash(result.times_float32(ours))] if beside else []
        table.add_row(*(Text(cell) for cell in (layer, *cells)))
    notes = {timing.note.split(",")[0] for result in results for timing in result.timings if not timing.name.startswith("nd4jlike")}
    formats = ", ".join(dict.fromkeys(result.case.data_format for result in results))
    title = f"{formats}, same padding, bias, {arguments.dtype}, threads {arguments.threads}, medians of {arguments.rounds} rounds"
    title += f"; ours {results[0].timings[0].note}"
    reasons = dict.fromkeys(f"{name}: {reason}" for result in results for name, reason in result.left_out.items())
    print_rich(Text("; ".join([title, *sorted(notes)])), table, *(Text(f"left out, {reason}") for reason in reasons))

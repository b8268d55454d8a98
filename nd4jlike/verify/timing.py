"""Times of a layer, here and in the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nd4jlike.verify.tally import Tally

__all__ = ["TIMING", "Seconds"]

TIMING = (
    "best of repeated calls, both sides in turns, memory warm, one call's own cost cancelled on both sides. Here: a batch of many inputs minus a batch of one, "
    "over their difference; reference: a model of 5 copies of the layer minus a model of 1, over 4. "
    "call_microseconds is plan(x, out=y) with one input, as Python calls it"
)

_COPIES = 5
_MEASURE_SECONDS = 0.1


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
class Seconds:
    """Of one input: in the kernel here, of a whole call here, in the kernel of the reference; see TIMING."""

    here: float
    call: float
    reference: float

    @classmethod
    def of(cls, tally: Tally) -> Seconds:
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

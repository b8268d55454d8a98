"""What was seen of a layer and of a model, and what to make of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.verify.timing import TIMING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LayerReport", "Mismatch", "ModelReport"]

# Channels that a line names.
_LISTED = 8


@dataclass(frozen=True)
class Mismatch:
    """The first element of a layer that differs: of a fused PAD's output, then of its own.

    Attributes
    ----------
    run : int
        From 0.
    index : tuple of int
        Of the element in that tensor.
    offset : int
        Where that lies in the buffer here, in elements.
    here, reference : int or float
        The two values.
    accumulator, reference_accumulator : int or None
        What was rounded, seen through the same layer with an output scale of powers of two; None for floats, for a PAD, which
        rounds nothing, where the reference runs no such layer, where a kernel does not go by scales and biases that it is given, and
        for int16 beside a bias of 2**46 or more.
    multiplier, shift : int or None
        What the accumulator is scaled with: `Quantization.multipliers_and_shifts` of its channel; None for floats, for a PAD and with
        ``rounding="xnnpack"``.
    scale : float or None
        The same with ``rounding="xnnpack"``: `Quantization.float_scales`.
    tensor : {"output", "pad"}
        Which one: the output of the layer, or that of a fused PAD, here the padded array of the input.
    """

    run: int
    index: tuple[int, ...]
    offset: int
    here: float
    reference: float
    accumulator: int | None = None
    reference_accumulator: int | None = None
    tensor: str = "output"
    multiplier: int | None = None
    shift: int | None = None
    scale: float | None = None

    def __str__(self) -> str:
        where = " of the PAD's output" if self.tensor == "pad" else ""
        words = f"run {self.run + 1}, element {self.index}{where} at offset {self.offset}: {self.here:.9g} here, {self.reference:.9g} in the reference"
        if self.accumulator is not None or self.reference_accumulator is not None:
            ours, theirs = ("unknown" if found is None else found for found in (self.accumulator, self.reference_accumulator))
            words += f"; accumulators {ours} here, {theirs} there"
        if self.multiplier is not None:
            words += f"; multiplier {self.multiplier}, shift {self.shift}"
        return words if self.scale is None else f"{words}; scale {self.scale:.9g}"


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
        What the plan says of itself; the name of a kernel of the user's.
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
    border_elements, border_mismatches, inner_mismatches : int
        Outputs whose windows reach beyond the image; how many of them differ, and of the others.
    mismatched_channels : tuple of int
        Channels of the output in which one differs.
    not_integer : str or None
        Why a Conv between DequantizeLinear and QuantizeLinear was compared as one of floats; None for all other layers.
    largest_difference : float
        Largest absolute difference from the reference, of a fused PAD's output too; NaN where one of two is NaN and not the other.
    relative_error_float64, relative_error_reference : float or None
        Largest difference from a float64 computation (for float64: long double) and from the reference, over the layer's largest output; None for integers.
    microseconds, reference_microseconds, ratio : float or None
        Of one input in the kernels, see `TIMING`; the ratio is reference over here. None with a kernel of the user's.
    call_microseconds : float or None
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
    microseconds: float | None
    reference_microseconds: float | None
    ratio: float | None
    call_microseconds: float | None
    border_elements: int = 0
    border_mismatches: int = 0
    inner_mismatches: int = 0
    mismatched_channels: tuple[int, ...] = ()
    not_integer: str | None = None

    @property
    def places(self) -> str:
        """Where outputs differ, in one line; nothing where none does."""
        if not self.mismatched_channels:
            return ""
        made, found = self.output_shape[self.axes.index("C")], self.mismatched_channels
        listed = ", ".join(map(str, found[:_LISTED])) + (", .." if len(found) > _LISTED else "")
        channels = f"in all {made} channels" if len(found) == made else f"in {len(found)} of {made} channels: {listed}"
        others = f"{self.inner_mismatches} of {self.elements - self.border_elements} others"
        return f"outputs that differ: {self.border_mismatches} of {self.border_elements} whose windows reach beyond the image, {others}; {channels}"


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
    kernel : str or None
        What computed the layers here, ``"module:function"``: as the command was given it; of a callable that `verify` was given its
        `__module__` and `__qualname__`, or those of its type. None: the plans.
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
    kernel: str | None = None

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
            "timing": None if self.kernel else TIMING,
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
            f"{len(rows)} layers, largest difference {np.max([row.largest_difference for row in bad]):g}"
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

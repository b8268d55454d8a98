"""One layer, laid out, run and compared, run after run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike.adapters.arm_compute import TensorInfo
from nd4jlike.adapters.onnx import DepthwiseLayer as OnnxLayer
from nd4jlike.descriptor import ShapeDescriptor
from nd4jlike.errors import LayoutError, Nd4jLikeError, UnsupportedLayoutError
from nd4jlike.geometry import AXES
from nd4jlike.ndarray import NdArray
from nd4jlike.verify.accumulators import accumulator_of
from nd4jlike.verify.exact import beyond, exactly
from nd4jlike.verify.formats import called, naming
from nd4jlike.verify.reports import LayerReport, Mismatch

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from nd4jlike.interpreters import Reference
    from nd4jlike.verify.formats import Layer
    from nd4jlike.verify.kernels import OwnKernel
    from nd4jlike.verify.timing import Seconds

    _Array = npt.NDArray[Any]

__all__ = ["Tally"]

# Of arrays that stay in the second-level cache.
_WARM_BYTES = 1 << 19


class Tally:
    """One layer with one rounding: its plan or the user's kernel, and what was seen so far."""

    def __init__(self, layer: Layer, rounding: str, judge: type[Reference], kernel: OwnKernel | None = None, **options: Any) -> None:
        self.layer = layer
        self.kernel = kernel
        # With the PAD before it, where there is one.
        self.fused = layer if kernel else layer.fused()
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
        self.border_elements = self.border_mismatches = self.inner_mismatches = 0
        self.channels: set[int] = set()
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
        if self.kernel:
            self.x, self.y = self.kernel.run(self.layer, self.rounding, seen)
        else:
            self.x = self.laid_out(seen.shape)
            self.x[...] = seen
            self.y = NdArray(self.plan.output_descriptor(self.x))
            self.plan(self.x, out=self.y)
        result = self.y.to_numpy()
        if result.shape != expected.shape:
            raise LayoutError(f"{called(self.layer)}: output of shape {result.shape}, the reference makes {expected.shape}")
        self.elements += result.size
        self.runs += 1
        if self.fused is not self.layer:
            hosting = self.x.hosting_array()
            cells = hosting.to_numpy()
            # NaN of both sides is no difference.
            wrong = (cells != padded) & ((cells == cells) | (padded == padded))
            with np.errstate(invalid="ignore", over="ignore"):
                self._measure(np.abs(cells.astype(np.float64) - padded), wrong)
            self._count(wrong, hosting, padded, "pad")
        if result.size == 0:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(result.astype(np.float64) - expected)
            wrong = difference != 0 if self.layer.quantization else self._wrong_floats(result, expected)
        self._measure(difference, wrong)
        self._place(wrong, seen.shape)
        self._count(wrong, self.y, expected, "output")

    def _place(self, wrong: _Array, shape: tuple[int, ...]) -> None:
        """Count the outputs whose windows reach beyond the image, and those of them and of the others that are wrong."""
        layer, axes = self.fused, AXES[self.layer.data_format]
        wrong = wrong.transpose(axes)
        beside = []
        for side, axis in enumerate(axes[1:3]):
            made = wrong.shape[1 + side]
            before, _ = beyond(layer, side, shape[axis], made)
            starts = np.arange(made) * layer.stride[side] - before
            beside.append((starts < 0) | (starts + (layer.kernel[side] - 1) * layer.dilation[side] >= shape[axis]))
        border = (beside[0][:, None] | beside[1])[:, :, None]
        self.border_elements += int(np.count_nonzero(border)) * wrong.shape[0] * wrong.shape[3]
        if wrong.any():
            self.border_mismatches += int(np.count_nonzero(wrong & border))
            self.inner_mismatches += int(np.count_nonzero(wrong & ~border))
            self.channels |= set(np.flatnonzero(wrong.any(axis=(0, 1, 2))).tolist())

    def _measure(self, difference: _Array, wrong: _Array) -> None:
        """Keep the largest difference; infinite ones and NaN where they are wrong."""
        self.largest_difference = float(np.max(difference, initial=self.largest_difference, where=np.isfinite(difference) | wrong))

    def _count(self, wrong: _Array, found: Any, expected: _Array, tensor: str) -> None:
        """Count the elements that are wrong; keep the first."""
        self.mismatches += int(np.count_nonzero(wrong))
        if self.first is None and wrong.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            self.first = Mismatch(self.runs - 1, index, found.descriptor.offset_of(index), found[index].item(), expected[index].item(), tensor=tensor)
            self.first_padded = self.padded

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
        with naming(called(self.layer)):
            if self._alone is None or self._alone[0] != padded.shape:
                self._alone = padded.shape, self.judge.alone(self.layer, padded.shape)
            self._alone[1].run([padded])
        return self._alone[1].output()

    def _wrong_floats(self, result: _Array, expected: _Array) -> _Array:
        exact, bound = exactly(self.fused, self.seen, result.shape)
        known = np.isfinite(exact) & np.isfinite(bound)
        # "No activation" of some interpreters is a clamp to the range of the type.
        end = float(np.finfo(result.dtype).max)
        result, expected, exact = (np.clip(values, -end, end) for values in (result, expected, exact))
        error, difference = np.abs(result - exact), np.abs(result.astype(np.float64) - expected)
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        largest = float(np.max(np.abs(exact), initial=0.0, where=known)) or 1.0
        within = known & (np.abs(result) < end)
        self.error_float64 = _larger(self.error_float64, error[within] / largest)
        self.error_reference = _larger(self.error_reference, difference[within] / largest)
        # Both lie within the bound of the exact value, so within twice the bound of each other.
        wrong: _Array = ~same & ~(known & (error <= bound) & (difference <= 2 * bound))
        return wrong

    def _explained(self) -> Mismatch | None:
        """Look at the accumulators of the first mismatch."""
        first, layer = self.first, self.layer
        if first is None or first.tensor == "pad" or layer.quantization is None:
            return first

        def here(probe: Layer) -> _Array:
            if self.kernel:
                made = self.kernel.run(probe, self.rounding, self.first_padded, probe=True)[1]
            else:
                made = probe.plan(rounding=self.rounding, **self.options)(self.first_padded)
            result: _Array = made.to_numpy()
            return result

        def there(probe: Layer) -> _Array:
            reference = self.judge.alone(probe, self.first_padded.shape)
            reference.run([self.first_padded])
            return reference.output()

        def accumulated(run: Callable[[Layer], _Array]) -> int | None:
            try:
                return accumulator_of(layer, run, first.index)
            except Nd4jLikeError:
                return None

        channel, outputs = first.index[AXES[layer.data_format][3]], layer.channels * layer.multiplier
        scaled: dict[str, Any]
        if self.rounding == "xnnpack":
            scaled = {"scale": float(layer.quantization.float_scales(outputs)[channel])}
        else:
            multipliers, shifts = layer.quantization.multipliers_and_shifts(outputs, layer.dtype)
            scaled = {"multiplier": int(multipliers[channel]), "shift": int(shifts[channel])}
        return dataclasses.replace(first, accumulator=accumulated(here), reference_accumulator=accumulated(there), **scaled)

    def report(self, seconds: Seconds | None) -> LayerReport:
        """Sum up."""
        layer, descriptor = self.fused, self.x.descriptor
        offset = total_size = refusal = None
        try:
            info = TensorInfo.from_descriptor(descriptor)
            offset, total_size = info.offset_first_element_in_bytes, info.total_size
        except UnsupportedLayoutError as error:
            refusal = str(error)
        here, there, call = (s * 1e6 for s in (seconds.here, seconds.reference, seconds.call)) if seconds else (None, None, None)
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
            plan=self.kernel.name if self.kernel else self.plan.explain(self.x),
            rounding=None if floating else self.rounding,
            kernels=self.judge.kernels,
            elements=self.elements,
            mismatches=self.mismatches,
            first_mismatch=self._explained(),
            largest_difference=self.largest_difference,
            relative_error_float64=self.error_float64 if floating else None,
            relative_error_reference=self.error_reference if floating else None,
            microseconds=here,
            reference_microseconds=there,
            ratio=seconds.reference / seconds.here if seconds else None,
            call_microseconds=call,
            border_elements=self.border_elements,
            border_mismatches=self.border_mismatches,
            inner_mismatches=self.inner_mismatches,
            mismatched_channels=tuple(sorted(self.channels)),
            not_integer=layer.not_integer if isinstance(layer, OnnxLayer) else None,
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


def _with_halo(layer: Layer, descriptor: ShapeDescriptor, made: tuple[int, ...]) -> ShapeDescriptor:
    """Add the halo that windows reach where a plan does not ask for it."""
    before, after = list(descriptor.padding_offsets), [p - o for p, o in zip(descriptor.paddings, descriptor.padding_offsets, strict=True)]
    for side, axis in enumerate(AXES[layer.data_format][1:3]):
        reach = beyond(layer, side, descriptor.shape[axis], made[axis])
        before[axis], after[axis] = max(before[axis], reach[0]), max(after[axis], reach[1])
    order = descriptor.axes
    figures = [tuple(values[axis] for axis in order) for values in (descriptor.shape, [b + a for b, a in zip(before, after, strict=True)], before)]
    hosted = ShapeDescriptor.paddedBufferDescriptor(descriptor.dtype, "c", *figures)
    return hosted.permute([order.index(axis) for axis in range(descriptor.rank)])


def _larger(so_far: float, values: _Array) -> float:
    return float(np.max(values, initial=so_far, where=np.isfinite(values)))

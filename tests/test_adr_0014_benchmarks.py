"""ADR 0014: benchmarks that compare before they measure."""

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nd4jlike as nd
from nd4jlike import bench, cli, peers
from nd4jlike.adapters import onednn
from nd4jlike.peers import Call, Case
from reference import accumulate

ROOT = Path(__file__).resolve().parents[1]
OTHER_FLOATS = ("float16", "bfloat16", "float64")
SMALL = Case((1, 6, 7, 5), (3, 5), (2, 1), (1, 2), 2)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Time nothing longer than it takes to see that it works."""
    monkeypatch.setattr(bench, "_TURN", 0.0)


def exact(case):
    return Call(lambda: None, lambda: (case.expected() if case.quantization is None else np.rint(case.expected())).astype(case.element), "exact 1")


def off_by(amount):
    def peer(case):
        right = exact(case).result().copy()
        right[0, 1, 2, 3] += amount
        return Call(lambda: None, lambda: right, "wrong 1")

    return peer


@pytest.mark.parametrize("dtype", peers.DTYPES)
def test_d1_the_layer_is_what_the_oracle_says(dtype):
    """D1: A contender is timed only after its result was compared with the layer computed in float64."""
    case = Case(SMALL.shape, SMALL.kernel, SMALL.stride, SMALL.dilation, SMALL.multiplier, dtype)
    q, x, weights = case.quantization, case.x.astype(np.float64), case.weights.astype(np.float64)
    if q is not None:
        x, weights = x - q.input[1], weights - q.weights_zero_point
    sums = accumulate(x, weights, stride=case.stride, dilation=case.dilation, padding=case.pads) + case.bias
    if q is not None:
        limits = np.iinfo(dtype)
        sums = np.clip(sums * (q.input[0] * np.asarray(q.weights) / q.output[0]) + q.output[1], limits.min, limits.max)
        assert len(np.unique(np.rint(sums))) > 50  # the scales spread the values
    np.testing.assert_allclose(case.expected(), sums, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "harmless", "wrong"),
    [
        ("float32", 1e-5, 0.01), ("float64", 1e-12, 3e-12), ("float16", 0.03, 0.05), ("bfloat16", 0.24, 0.4),  # itself and the root mean square: 10
        ("int8", 1, 2), ("uint8", 1, 2), ("int16", 1, 3),
    ],
)  # fmt: skip
def test_d1_wrong_results_are_not_timed(monkeypatch, dtype, harmless, wrong):
    """D1: float64 within 2**-29 of that, float16 and bfloat16 within `1 + sqrt(taps)` units in the last place, int8 and uint8 within one, int16 within two."""
    monkeypatch.setattr(bench, "PEERS", peers.PEERS | {"near": off_by(harmless), "wrong": off_by(wrong)})
    monkeypatch.setattr(peers, "PEERS", bench.PEERS)
    result = bench.measure(Case((1, 4, 5, 4), dtype=dtype), ("near", "wrong"), rounds=1)
    assert [timing.name for timing in result.timings if timing.name in bench.PEERS] == ["near"]
    assert "wrong at (0, 1, 2, 3)" in result.left_out["wrong"]


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2**-10), ("bfloat16", 2**-7)])
@pytest.mark.parametrize(("kernel", "units"), [((1, 1), 2), ((5, 5), 6), ((2, 8), 5)])
def test_d1_halves_that_are_rounded_after_each_tap(dtype, unit, kernel, units):
    """D1: float16 and bfloat16 within `1 + sqrt(taps)` units in the last place of both."""
    case = Case((1, 6, 6, 4), kernel, dtype=dtype)
    expected = case.expected()
    one = unit * (abs(expected[0, 1, 2, 3]) + np.sqrt(np.mean(expected**2)))
    bench._check(case, expected, off_by((units - 0.6) * one)(case))
    with pytest.raises(peers.UnsupportedCaseError, match=r"wrong at \(0, 1, 2, 3\)"):
        bench._check(case, expected, off_by((units + 0.6) * one)(case))


def test_d1_a_wrong_result_of_ours_ends_the_run(monkeypatch):
    """D1: A wrong result of ours ends the run."""
    monkeypatch.setattr(bench, "_ours", lambda case, dense, rounding: off_by(1)(case))
    with pytest.raises(nd.Nd4jLikeError, match=r"nd4jlike: its result is wrong at \(0, 1, 2, 3\)"):
        bench.measure(Case((1, 4, 5, 4)), (), rounds=1)


def test_d2_turns(monkeypatch):
    """D2: Contenders take turns in one process, in an order drawn anew for each round."""
    calls = []
    fakes = {name: lambda case, name=name: exact(case)._replace(run=lambda: calls.append(name)) for name in "abc"}
    monkeypatch.setattr(bench, "PEERS", fakes)
    monkeypatch.setattr(peers, "PEERS", fakes)
    clock = iter(range(10**6))
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    result = bench.measure(Case((1, 4, 5, 4)), "abc", rounds=20)
    assert {calls.count(name) for name in "abc"} == {1 + 4 + 2 * 20}  # the check, how long it takes, then one to warm and one to time in each round
    turns = "".join(calls[-120:])
    rounds = {turns[i : i + 6] for i in range(0, 120, 6)}
    assert all(sorted(turn) == sorted("aabbcc") for turn in rounds)
    assert len(rounds) > 2
    assert {timing.microseconds for timing in result.timings} == {1e6}


def test_d3_left_out(monkeypatch):
    """D3: A peer that is missing, refuses the layer or computes it wrongly has no figure; its reason is in the result."""
    monkeypatch.setitem(sys.modules, "torch", None)

    def clumsy(case):
        raise RuntimeError("no\nkernel")

    monkeypatch.setattr(bench, "PEERS", {"torch": peers.PEERS["torch"], "clumsy": clumsy})
    monkeypatch.setattr(peers, "PEERS", bench.PEERS)
    result = bench.measure(Case((1, 3, 3, 2)), rounds=1, peers=("torch", "clumsy"))
    assert result.best_peer is None
    assert result.ratio(result.timings[0]) is None
    assert result.left_out == {"torch": "torch is not installed: pip install nd4jlike[bench]", "clumsy": "clumsy: no kernel"}
    with pytest.raises(nd.LayoutError, match="peers are torch, clumsy: nobody"):
        bench.measure(Case((1, 3, 3, 2)), ("nobody",))


@pytest.mark.parametrize("dtype", peers.DTYPES)
@pytest.mark.parametrize("name", sorted(peers.PEERS))
@pytest.mark.parametrize("layer", ["9x8x16", "2x9x8x17:s2", "7x9x4:k5x3:d2", "6x6x3:m8:s2", "9x8x16:s2:nchw"])
def test_d4_real_peers(name, layer, dtype):
    """D4: A peer has what it likes best where its interface lets us choose; its result is that of the layer."""
    case = bench.parse_layer(layer, dtype)
    try:
        result = bench.measure(case, (name,), rounds=1)
    except nd.Nd4jLikeError as error:  # pragma: no cover - says which
        pytest.fail(str(error))
    if name in result.left_out:
        assert "wrong" not in result.left_out[name]
        pytest.skip(result.left_out[name])
    assert result.best_peer.name == name
    assert result.best_peer.microseconds >= result.best_peer.least_microseconds > 0


def test_d5_ratio():
    """D5: A ratio is the time of the fastest peer over ours."""
    ours, slow, fast = bench.Timing("nd4jlike", "", 10.0, 9.0), bench.Timing("torch", "", 50.0, 49.0), bench.Timing("onednn", "", 25.0, 24.0)
    result = bench.LayerResult(Case((1, 4, 4, 10)), [ours, slow, fast])
    assert result.best_peer is fast
    assert result.ratio(ours) == 2.5
    assert result.gflops(ours) == 2 * 9 * 160 / 10e3
    assert result.gigabytes(ours) == 2 * 160 * 4 / 10e3
    row = result.to_dict()["timings"][0]
    assert (row["best_peer_over_this"], row["microseconds"]) == (2.5, 10.0)


@pytest.mark.parametrize(("dtype", "weights", "bias", "scales"), [("int8", "int8", "int32", 6), ("uint8", "uint8", "int32", 1), ("int16", "int8", "int64", 6)])
def test_d7_integers(dtype, weights, bias, scales):
    """D7: Element types are float32, int8, uint8 with one scale and asymmetric weights, int16 with int8 weights, and float16, bfloat16 and float64."""
    case = Case((1, 4, 5, 3), multiplier=2, dtype=dtype)
    assert (case.x.dtype, case.weights.dtype, case.bias.dtype, len(case.quantization.weights)) == (dtype, weights, bias, scales)
    assert (case.quantization.weights_zero_point != 0) == (dtype == "uint8")
    with pytest.raises(nd.LayoutError, match="one of float32, int8, uint8, int16, float16, bfloat16, float64: 'float80'"):
        Case((1, 4, 5, 3), dtype="float80")


@pytest.mark.parametrize("dtype", OTHER_FLOATS)
def test_d7_floats(dtype):
    """D7: float16, bfloat16 and float64, whose weights and bias are of the same type."""
    case = Case((1, 4, 5, 3), multiplier=2, dtype=dtype)
    assert {case.x.dtype, case.weights.dtype, case.bias.dtype} == {case.element} == {np.dtype(dtype)}
    assert case.quantization is None
    assert case.bytes == (60 * case.element.itemsize, 120 * case.element.itemsize)
    ours = bench._ours(case, False, "xnnpack")
    ours.run()
    assert ours.result().dtype == dtype


def test_d7_bfloat16_without_its_numbers(monkeypatch, capsys):
    """D7: Element types are bfloat16 and others; NumPy's numbers of it are those of ml_dtypes."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(nd.MissingLibraryError, match="ml_dtypes"):
        Case((1, 4, 5, 3), dtype="bfloat16")
    monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--dtype", "bfloat16", "--layers", "3x3x8"])
    with pytest.raises(SystemExit) as raised:
        script().main()
    assert raised.value.code == 2
    assert re.fullmatch("bench_depthwise.py: .*ml_dtypes.*\n", capsys.readouterr().err)


def reason(name, dtype):
    """Why a peer has no figure."""
    return bench.measure(Case((1, 4, 5, 8), dtype=dtype), (name,), rounds=1).left_out[name]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of float16 are elsewhere")
def test_d8_conversions_of_onnxruntime():
    """D8: Who has no kernel of a type and computes it in another, between conversions, has no figure; its reason names the other type."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    assert reason("onnxruntime", "float16") == "it computes float16 in float32"
    for dtype in ("bfloat16", "float64"):  # which the models may have
        assert "NOT_IMPLEMENTED" in reason("onnxruntime", dtype)


def test_d8_conversions_of_openvino(monkeypatch):
    """D8: its reason names the other type, as the library itself tells it on this machine."""
    openvino = pytest.importorskip("openvino")
    assert reason("openvino", "float64") == "it computes float64 in f32"
    able = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    for dtype, capability in (("float16", "FP16"), ("bfloat16", "BF16")):
        case = Case((1, 4, 5, 8), dtype=dtype)
        left_out = bench.measure(case, ("openvino",), rounds=1).left_out
        assert left_out == {} if capability in able else left_out["openvino"].startswith(f"it computes {dtype} in ")


def test_d8_kernels_that_are_missing():
    """D8: Who has no kernel of a type has no figure."""
    for dtype in OTHER_FLOATS:
        assert reason("tflite-micro", dtype) == "its floats are float32"
    pytest.importorskip("ai_edge_litert")
    for dtype in ("bfloat16", "float64"):
        assert reason("litert", dtype).startswith("ai-edge-litert cannot run this model")


def test_d8_a_type_that_onednn_lacks():
    """D8: Who has no kernel of a type has no figure; its reason is the same for all layers."""
    if not onednn.find_library():
        pytest.skip("no oneDNN")
    assert re.match(r"no convolution of float64: dnnl_\w+: unimplemented", reason("onednn", "float64"))


def test_d4_torch_has_the_layout_that_it_is_faster_with(monkeypatch):
    """D4: torch has the faster of channels last and NCHW, but in float32, where channels last is."""
    pytest.importorskip("torch")
    for fastest in ("channels last", "NCHW"):
        monkeypatch.setattr(peers, "_seconds", lambda call, fastest=fastest: 1 - call.note.endswith(fastest))
        for dtype in OTHER_FLOATS:
            assert peers.prepare("torch", Case((1, 4, 5, 8), dtype=dtype)).note.endswith(fastest)
        assert peers.prepare("torch", Case((1, 4, 5, 8))).note.endswith("channels last")


def test_d4_the_faster_call_is_the_one_that_takes_less_time(monkeypatch):
    """D4: torch has the faster of two: the lesser time of two runs after one."""
    times = iter([0.0, 3.0, 10.0, 12.0])
    monkeypatch.setattr(peers.time, "perf_counter", lambda: next(times))
    runs = []
    assert peers._seconds(Call(lambda: runs.append(1), lambda: None, "")) == 2.0
    assert len(runs) == 3


@pytest.mark.parametrize("dtype", OTHER_FLOATS)
def test_d9_times_float32(monkeypatch, dtype):
    """D9: our own float32, on the same layer, is compared and takes turns as all do; `float32` tells how many times as fast as that they are."""
    case, asked, runs, ours = Case((1, 4, 5, 8), dtype=dtype), [], [], bench._ours

    def recorded(layer, *how):
        asked.append((layer, *how))
        call = ours(layer, *how)
        return call._replace(run=lambda: runs.append(layer.dtype) or call.run())

    monkeypatch.setattr(bench, "_ours", recorded)
    result = bench.measure(case, (), rounds=7)
    twin = Case((1, 4, 5, 8))
    assert asked == [(case, False, "xnnpack"), (case, True, "xnnpack"), (twin, False, "xnnpack")]
    assert runs.count("float32") == 1 + 4 + 2 * 7
    assert [timing.name for timing in result.timings] == ["nd4jlike", "nd4jlike dense"]
    assert result.float32.microseconds > 0
    found = result.to_dict()
    assert found["float32_microseconds"] == result.float32.microseconds
    assert [row["float32"] for row in found["timings"]] == [result.float32.microseconds / timing.microseconds for timing in result.timings]


def test_d11_winograd_is_one_more_contender(capsys, monkeypatch):
    """D11: Where `algorithm="winograd"` takes a float32 layer of one filter a channel, ours with it is one more contender."""
    for steps, dtype, more in (
        (":k5", "float32", True), (":k7", "float32", True), (":k3", "float32", False), (":k5:s2", "float32", False), (":k5:m2", "float32", False),
        (":k5:d2", "float32", False), (":k5", "float16", False),
    ):  # fmt: skip
        result = bench.measure(bench.parse_layer(f"8x7x16{steps}", dtype), (), rounds=1)
        assert [timing.name for timing in result.timings][2:] == (["nd4jlike winograd"] if more else []), steps
    names = ("nd4jlike", "nd4jlike dense", "nd4jlike winograd", "torch")
    timings = [bench.Timing(name, "", time, time) for name, time in zip(names, (10.0, 20.0, 8.0, 40.0), strict=True)]
    times = bench.LayerResult(Case((1, 8, 7, 16), kernel=(5, 5)), timings)
    assert times.best_peer.name == "torch"
    module = script()
    monkeypatch.setattr(bench, "measure", lambda *_: times)
    monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--threads", "2", "--dtype", "float32", "--peers", "", "--layers", "8x7x16:k5"])
    module.main()
    title, line, mean = capsys.readouterr().out.splitlines()[-7:-4]
    assert title.split()[-3:] == ["ratio", "dense", "winograd"]
    assert line.split()[-3:] == ["4.00", "2.00", "5.00"]
    assert mean == "geometric mean    4.00, least 4.00"


def test_d9_only_beside_other_floats():
    """D9: Beside float16, bfloat16 and float64; nothing else has such a figure."""
    for dtype in ("float32", "int8", "int16"):
        result = bench.measure(Case((1, 4, 5, 8), dtype=dtype), (), rounds=1)
        assert result.float32 is None
        assert {row["float32"] for row in result.to_dict()["timings"]} == {None}


def test_d9_its_own_result_is_compared(monkeypatch):
    """D9: our own float32 is compared as all are: a wrong result ends the run."""
    monkeypatch.setattr(bench, "_ours", lambda case, dense, rounding: off_by(0.01 if case.dtype == "float32" else 0)(case))
    with pytest.raises(nd.Nd4jLikeError, match=r"nd4jlike float32: its result is wrong at \(0, 1, 2, 3\)"):
        bench.measure(Case((1, 4, 5, 4), dtype="float16"), (), rounds=1)


def test_d9_it_is_no_peer():
    """D9: `float32` tells how many times as fast; it is no peer, and 2 is twice as fast."""
    ours, twin = bench.Timing("nd4jlike", "", 10.0, 9.0), bench.Timing("nd4jlike float32", "", 20.0, 19.0)
    result = bench.LayerResult(Case((1, 4, 4, 10), dtype="float16"), [ours], float32=twin)
    assert result.times_float32(ours) == 2.0
    assert result.best_peer is None


def test_d9_tables(capsys, monkeypatch):
    """D9: `float32` tells how many times as fast as that they are, in both tables."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    for dtype, has_column in (("float16", True), ("float32", False)):
        assert cli.main(["bench", "3x3x8", "--dtype", dtype, "--peers", "", "--rounds", "1"]) == 0
        table = capsys.readouterr().out.partition("\n")[2]  # the first line names the type
        assert ("float32" in table) == has_column
    ours = [bench.Timing("nd4jlike", "", 10.0, 9.0), bench.Timing("nd4jlike dense", "", 20.0, 19.0)]
    times = bench.LayerResult(Case((1, 3, 3, 8), dtype="float16"), ours, float32=bench.Timing("nd4jlike float32", "", 37.0, 36.0))
    module = script()
    monkeypatch.setattr(bench, "measure", lambda *_: times)
    monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--threads", "2", "--dtype", "float16", "--peers", "", "--layers", "3x3x8"])
    module.main()
    head, line, mean = capsys.readouterr().out.splitlines()[:3]
    assert head.endswith(" float32")
    assert line.endswith(" 3.70")
    assert len(head) == len(line)
    assert mean.split() == ["times", "float32", "3.70,", "least", "3.70"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_d10_planes(monkeypatch, dtype):
    """D10: A layer with `:nchw` has dense arrays of that order; the layouts that our plan chooses stay what they are."""
    case, seen = bench.parse_layer("4x5x8:s2:nchw", dtype), []

    class Plan:
        """Remembers what it is called on."""

        def __init__(self, *given, **options):
            self.plan = nd.DepthwiseConv2d(*given, **options)

        def __getattr__(self, name):
            return getattr(self.plan, name)

        def __call__(self, x, y):
            seen.append((self.plan.data_format, x.shape, y.shape))
            return self.plan(x, y)

    monkeypatch.setattr(bench, "DepthwiseConv2d", Plan)
    for dense in (True, False):
        bench._check(case, case.expected(), bench._ours(case, dense, "xnnpack"))
    assert seen == [("NCHW", (1, 8, 4, 5), (1, 8, 2, 3)), ("NHWC", (1, 4, 5, 8), (1, 2, 3, 8))]
    assert case.output_shape == (1, 2, 3, 8)
    assert bench.LayerResult(case).to_dict()["data_format"] == "NCHW"


def test_d10_the_command(capsys):
    """D10: A layer with `:nchw` has dense arrays of that order, and the table says so."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    assert cli.main(["bench", "3x3x8:nchw", "--peers", "", "--rounds", "1"]) == 0
    assert capsys.readouterr().out.startswith("NCHW, same padding")
    assert cli.main(["bench", "3x3x8", "--peers", "", "--rounds", "1"]) == 0
    assert capsys.readouterr().out.startswith("NHWC, same padding")


def test_d10_peers():
    """D10: dense arrays of that order, ours, torch's and ONNX Runtime's; others have no figure."""
    result = bench.measure(bench.parse_layer("4x5x8:nchw"), rounds=1)
    for name in ("onednn", "openvino", "litert", "tflite-micro"):
        assert result.left_out[name] == "NHWC is what it is asked for here"
    with pytest.raises(nd.LayoutError, match="the format of a layer is NHWC or NCHW: 'CHWN'"):
        Case((1, 4, 5, 8), data_format="CHWN")
    for name, package in (("torch", "torch"), ("onnxruntime", "onnx")):
        pytest.importorskip(package)
        (timing,) = (timing for timing in result.timings if timing.name == name)
        assert timing.note.endswith(", NCHW")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_d7_one_thread(dtype):
    """D7: peers through a model of the one layer; one thread."""
    pytest.importorskip("tflite_micro")
    result = bench.measure(Case((1, 4, 5, 3), dtype=dtype), ("tflite-micro",), rounds=1)
    assert result.best_peer.note.startswith("tflite-micro ")
    result = bench.measure(Case((1, 4, 5, 3), dtype=dtype, threads=2), ("tflite-micro",), rounds=1)
    assert result.left_out == {"tflite-micro": "one thread is what it is asked for here"}


def script():
    spec = importlib.util.spec_from_file_location("bench_depthwise", ROOT / "benchmarks" / "bench_depthwise.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("cc") is None, reason="the bound is measured by compiled C")
def test_d6_bound(tmp_path):
    """D6: the taps inside the image at the measured peak, reading and writing once; Halves are computed at the peak of float32, float64 at half of it."""
    bound = script().Bound(tmp_path)
    inside = (3 * 5 - 2) * (3 * 6 - 2)  # of 3x3 on 5x6 pixels
    bound.native = type("Native", (), {"peak": lambda _, itemsize: itemsize / 2, "touch": lambda _, *what: 1e-6 * what[1] + 1e-3 * what[3]})()
    computing = 2 * 2 * 4 * inside / 2e3  # of float32: the native peak is 2 for 4 bytes, 1 for 2
    for dtype, times, size in (("float32", 1, 4), ("float16", 1, 2), ("bfloat16", 1, 2), ("float64", 2, 8), ("int16", 2, 2), ("int8", 4, 1)):
        assert bound.microseconds(Case((2, 5, 6, 4), dtype=dtype)) == pytest.approx((times * computing, 240 * size * 1001)), dtype
    real = script().Bound(tmp_path)
    computing, memory = real.microseconds(Case((1, 28, 28, 64)))
    assert computing > 0
    assert memory > 0


def test_d6_networks():
    """D6: The bound of a layer is printed for every layer of the networks, and all of them can be read."""
    for layers in script().NETWORKS.values():
        assert [bench.parse_layer(layer).shape for layer in layers]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "bench_depthwise.py", "--check", "--peers", "", "--layers", "3x3x8,4x6x5:k5:s2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("3x3x8 ") == 2
    assert done.stdout.count("4x6x5:k5:s2") == 2


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--networks", "resnet", "argument --networks: mobilenet_v1, "),
        ("--networks", "", "argument --networks: at least one of mobilenet_v1, "),
        ("--networks", "other,resnet", "are known: 'resnet'"),
        ("--layers", "", "a layer is"),
        ("--layers", "3x3x8,foo", "a layer is"),
        ("--layers", "14x14x0", "every extent of a layer is at least 1"),
        ("--dtype", "float32,float33", "the element type of a layer is one of float32, int8, uint8, int16, float16, bfloat16, float64: 'float33'"),
        ("--dtype", "", "the element type of a layer is one of"),
        ("--peers", "torch,foo", "are known: 'foo'"),
        ("--threads", "0", "argument --threads: must be an integer of at least 1: '0'"),
        ("--threads", "two", "argument --threads: must be an integer of at least 1: 'two'"),
        ("--rounds", "0", "argument --rounds: must be an integer of at least 1: '0'"),
        ("--json", "{folder}/none/x.json", "argument --json: cannot be written: [Errno 2]"),
        ("--svg", "{folder}/none/x.svg", "argument --svg: cannot be written: [Errno 2]"),
        ("--json", "{folder}", "argument --json: cannot be written: [Errno 21]"),
    ],
)
def test_d2_the_script_refuses_before_it_measures(monkeypatch, capsys, tmp_path, option, value, words):
    """D2: Contenders take turns in one process, once all arguments are understood: a bad one is one line and status 2, and nothing was measured."""
    module = script()
    monkeypatch.setattr(bench, "measure", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(module, "Bound", lambda _: pytest.fail("measured"))
    monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--peers", "", "--layers", "3x3x8"][: 3 if option == "--networks" else 5])
    sys.argv += [option, value.format(folder=tmp_path)]
    with pytest.raises(SystemExit) as raised:
        module.main()
    assert raised.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bench_depthwise.py: ")
    assert words in err
    assert err.count("\n") == 1


def test_d2_the_script_keeps_files_until_it_has_measured(monkeypatch, capsys, tmp_path):
    """D2: Contenders take turns: what a file holds stays until all had theirs, and where one is refused no file is made."""
    module, known, new = script(), tmp_path / "known.json", tmp_path / "new.json"
    known.write_text("of before")
    for path in (known, new):
        monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--peers", "", "--json", str(path), "--layers", "foo"])
        with pytest.raises(SystemExit):
            module.main()
    assert known.read_text() == "of before"
    assert not new.exists()
    measure = bench.measure
    monkeypatch.setattr(bench, "measure", lambda *given: [measure(*given), known.read_text() == "of before" or pytest.fail("truncated")][0])
    monkeypatch.setattr(sys, "argv", ["bench_depthwise.py", "--check", "--threads", "2", "--peers", "", "--layers", "3x3x8", "--json", str(known)])
    module.main()
    assert [layer["layer"] for layer in json.loads(known.read_text())["layers"]] == ["3x3x8"] * 2
    assert "3x3x8" in capsys.readouterr().out


@pytest.mark.parametrize("rounds", [0, -1])
def test_d2_no_round_has_no_median(rounds):
    """D2: a figure is the median over the rounds."""
    with pytest.raises(nd.LayoutError, match=f"rounds must be at least 1: {rounds}"):
        bench.measure(Case((1, 4, 5, 4)), (), rounds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3x3",
        "3x3x8:q2",
        "3x3x8:k",
        "3x3x8:m2x2",
        "3x3x8k3",
        "0x3x8",
        "3x3x8:s0",
        "3x3x8:nchw:s2",
        "3x3x8:nhwc",
        f"3x3x8:k{5000 * '9'}",
        f"3x3x{5000 * '9'}",
    ],
)
def test_d2_layers_that_nobody_can_read(text):
    """D2: Contenders take turns on a layer that was understood; other texts are refused."""
    with pytest.raises(nd.LayoutError, match="layer"):
        bench.parse_layer(text)


def test_d2_the_command(capsys):
    """D2: a figure is the median over the rounds; `nd4jlike bench` prints them."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    assert cli.main(["bench", "3x3x8", "4x5x6:k5x3:d2", "--peers", "", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    assert "4x5x6:k5x3:d2" in out
    assert "medians of 2 rounds" in out
    assert cli.main(["bench", "3x3x8", "--dtype", "int8", "--peers", "", "--rounds", "1", "--json"]) == 0
    (layer,) = json.loads(capsys.readouterr().out)["layers"]
    assert [timing["name"] for timing in layer["timings"]] == ["nd4jlike", "nd4jlike dense", "nd4jlike tflite"]
    assert cli.main(["bench", "3x3", "--peers", ""]) == 2
    assert "a layer is" in capsys.readouterr().err
    for layer in ("8x8x8:d999999999999", "8x8x99999999999999999999"):
        assert cli.main(["bench", layer]) == 2
        assert "outgrow the signed machine word in bytes" in capsys.readouterr().err

"""ADR 0014: benchmarks that compare before they measure."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nd4jlike as nd
from nd4jlike import bench, cli, peers
from nd4jlike.peers import Call, Case
from reference import accumulate

ROOT = Path(__file__).resolve().parents[1]
SMALL = Case((1, 6, 7, 5), (3, 5), (2, 1), (1, 2), 2)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Time nothing longer than it takes to see that it works."""
    monkeypatch.setattr(bench, "_TURN", 0.0)


def exact(case):
    return Call(lambda: None, lambda: (case.expected() if case.dtype == "float32" else np.rint(case.expected())).astype(case.dtype), "exact 1")


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


@pytest.mark.parametrize(("dtype", "harmless", "wrong"), [("float32", 1e-5, 0.01), ("int8", 1, 2), ("uint8", 1, 2), ("int16", 1, 3)])
def test_d1_wrong_results_are_not_timed(monkeypatch, dtype, harmless, wrong):
    """D1: A contender is timed only after its result was compared: float32 within 1e-4, int8 and uint8 within one, int16 within two."""
    monkeypatch.setattr(bench, "PEERS", peers.PEERS | {"near": off_by(harmless), "wrong": off_by(wrong)})
    monkeypatch.setattr(peers, "PEERS", bench.PEERS)
    result = bench.measure(Case((1, 4, 5, 4), dtype=dtype), ("near", "wrong"), rounds=1)
    assert [timing.name for timing in result.timings if timing.name in bench.PEERS] == ["near"]
    assert "wrong at (0, 1, 2, 3)" in result.left_out["wrong"]


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
@pytest.mark.parametrize("layer", ["9x8x16", "2x9x8x17:s2", "7x9x4:k5x3:d2", "6x6x3:m8:s2"])
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
    """D7: Element types are float32, int8, uint8 with one scale and asymmetric weights, and int16 with int8 weights."""
    case = Case((1, 4, 5, 3), multiplier=2, dtype=dtype)
    assert (case.x.dtype, case.weights.dtype, case.bias.dtype, len(case.quantization.weights)) == (dtype, weights, bias, scales)
    assert (case.quantization.weights_zero_point != 0) == (dtype == "uint8")
    with pytest.raises(nd.LayoutError, match="one of float32, int8, uint8, int16: 'float80'"):
        Case((1, 4, 5, 3), dtype="float80")


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
    """D6: The bound of a layer is the longer of computing the taps inside the image at the measured peak, and reading and writing once."""
    bound = script().Bound(tmp_path)
    inside = (3 * 5 - 2) * (3 * 6 - 2)  # of 3x3 on 5x6 pixels
    bound.native = type("Native", (), {"peak": lambda _, itemsize: itemsize / 2, "touch": lambda _, *what: 1e-6 * what[1] + 1e-3 * what[3]})()
    assert bound.microseconds(Case((2, 5, 6, 4))) == pytest.approx((2 * 2 * 4 * inside / 2e3, 960 + 960e3))
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
        ("--dtype", "float32,float33", "the element type of a layer is one of float32, int8, uint8, int16: 'float33'"),
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


@pytest.mark.parametrize("text", ["", "3x3", "3x3x8:q2", "3x3x8:k", "3x3x8:m2x2", "3x3x8k3", "0x3x8", "3x3x8:s0", f"3x3x8:k{5000 * '9'}", f"3x3x{5000 * '9'}"])
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

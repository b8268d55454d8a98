"""The command, as a function and as a process."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tiny_models
from nd4jlike import ShapeDescriptor, __version__, cli
from nd4jlike import verify as engine
from nd4jlike.adapters import onednn
from nd4jlike.adapters.tflite import DepthwiseLayer
from nd4jlike.cli import machine, verification
from nd4jlike.cli.output import print_json
from nd4jlike.verify import timing
from shared import shared_file

pytest.importorskip("rich", reason="tables are drawn by rich")
pytest.importorskip("tflite", reason="models are read with the tflite package")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Time nothing longer than it takes to see that it works."""
    monkeypatch.setattr(timing, "_MEASURE_SECONDS", 0.0)


@pytest.fixture
def run(capsys):
    """Run the command in this process: its code and what it printed."""

    def run(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()

    return run


def process(*arguments, **options):
    """Run the command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "nd4jlike", *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.pack(tiny_models.depthwise(shape=(1, 9, 8, 5), multiplier=2, stride=(2, 1), activation="relu").model))
    return path


@pytest.fixture
def reference():
    pytest.importorskip("tflite_micro", reason="tflite-micro is the reference")


@pytest.fixture
def wrong(monkeypatch):
    """Every weight of ours negated."""
    plan = DepthwiseLayer.plan

    def negated(layer, **options):
        import dataclasses

        return plan(dataclasses.replace(layer, weights=-layer.weights), **options)

    monkeypatch.setattr(DepthwiseLayer, "plan", negated)


def test_d9_verify_fine(run, model, reference):
    """D9: 0 when all is well."""
    code, out, err = run("verify", model, "--runs", 2)
    assert (code, err) == (0, "")
    assert "3x3 same s2x1 m2 relu" in out
    assert "1x9x8x5" in out
    assert out.splitlines()[-1].rstrip() == "bit-exact: all 800 outputs of 1 int8 layers"


def test_d9_verify_mismatch(run, model, reference, wrong):
    """D9: 1 when a mismatch was found."""
    code, out, err = run("verify", model)
    assert (code, err) == (1, "")
    assert re.search(r"^MISMATCH: \d+ of 1200 outputs, in 1 of 1 layers, largest difference \d+", out, re.MULTILINE)
    assert "bit-exact" not in out
    assert re.search(
        r"^layer 0/0 output: run 1, element \(0, .*\) at offset \d+: -?\d+ here, -?\d+ in the reference; accumulators -?\d+ here", out, re.MULTILINE
    )
    code, out, err = run("verify", model, "--json")
    assert (code, err) == (1, "")
    assert set(json.loads(out)["layers"][0]["first_mismatch"]) == {
        "run", "index", "offset", "here", "reference", "accumulator", "reference_accumulator", "tensor", "multiplier", "shift", "scale",
    }  # fmt: skip
    assert json.loads(out)["bit_exact"] is json.loads(out)["passed"] is False


def bad_models(tmp_path):
    """Write what is no model to verify; the path, and what is said of it."""
    content = tiny_models.pack(tiny_models.depthwise().model)
    tanh = tiny_models.depthwise()
    tanh.options.fusedActivationFunction = tiny_models.ACTIVATIONS["tanh"]
    unknown = tiny_models.depthwise()
    unknown.graph.tensors[tiny_models.INPUT].type = tiny_models.TYPES["int64"]
    strange = tiny_models.depthwise()
    strange.graph.tensors[tiny_models.INPUT].type = tiny_models.TYPES["int32"]
    strange.graph.tensors[tiny_models.OUTPUT].name = "two\nlines\x1b[31m"
    cases = {
        "none.tflite": (tiny_models.pack(tiny_models.relu()), "no DEPTHWISE_CONV_2D in this model"),
        "short.tflite": (content[: len(content) // 2], r"short\.tflite: damaged or truncated TensorFlow Lite model"),
        "empty.tflite": (b"", "not a TensorFlow Lite model"),
        "image.png": (b"\x89PNG\r\n\x1a\n" + bytes(50), "not a TensorFlow Lite model"),
        "int64.tflite": (tiny_models.pack(unknown.model), r"int64\.tflite: .*input INT64"),
        "tanh.tflite": (tiny_models.pack(tanh.model), "fused activation TANH is not supported"),
        "strange.tflite": (tiny_models.pack(strange.model), r"\(two lines\?\[31m\): input INT32"),
    }
    for name, (data, message) in cases.items():
        (tmp_path / name).write_bytes(data)
        yield tmp_path / name, message
    yield tmp_path / "absent.tflite", "absent.tflite: No such file or directory"
    yield tmp_path, "Is a directory"


def test_d9_bad_models(run, tmp_path, reference):
    """D9: 2 for bad input; errors are one line on standard error, without a traceback."""
    for path, message in bad_models(tmp_path):
        for option in ((), ("--json",)):
            code, out, err = run("verify", path, *option)
            assert (code, out) == (2, ""), path
            assert re.fullmatch(f"nd4jlike: .*{message}.*\n", err), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("dance",), "invalid choice: 'dance'"),
        (("verify",), "the following arguments are required: MODEL"),
        (("describe", "c", "2,3", "--at", "1.5"), "an integer is needed: '1.5'"),
        (("verify", "MODEL", "--runs", "0"), "an integer of 1 or more is needed: '0'"),
        (("verify", "MODEL", "--seed", "-1"), "an integer of 0 or more is needed: '-1'"),
        (("verify", "MODEL", "--threads", "many"), "an integer of 1 or more is needed: 'many'"),
        (("verify", "MODEL", "--rounding", "up"), "invalid choice: 'up'"),
        (("verify", "MODEL", "--reference", "tosa"), "invalid choice: 'tosa'"),
        (("verify", "MODEL", "--isa", "mmx"), "mmx"),
        (("verify", "MODEL", "--input", "/absent.npy"), "/absent.npy: No such file or directory"),
        (("describe", "nhwc"), "the following arguments are required: SHAPE"),
        (("describe", "nhwc", "1,x"), "integers separated by commas are needed: '1,x'"),
        (("describe", "nhwc", "1,2"), "position 2: the tag has 4 axes, the shape"),
        (("describe", "zzz", "1,2,3"), "zzz"),
        (("describe", "c", "3", "--dtype", "int3"), "no element type 'int3'"),
        (("describe", "c", "3", "--dtype", "f4,,"), "no element type 'f4,,'"),
        (("describe", "c", "3,4", "--paddings", "1,-1"), "-1"),
        (("describe", "c", "3,4", "--paddings", "1,1", "--padding-offsets", "2,0"), "padding offset"),
        (("describe", "c", "3,4", "--find", "3,0"), "index (3, 0) is outside the shape"),
        (("describe", "c", "3,4", "--find", "0"), "index (0,) is outside the shape"),
        (("describe", "c", "9999999999,9999999999"), "9999999999"),
    ],
    ids=" ".join,
)
def test_d9_bad_usage(arguments, message, run, model, reference):
    """D9: 2 for bad usage; errors are one line on standard error."""
    code, out, err = run(*(model if argument == "MODEL" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert re.fullmatch(f"nd4jlike: .*{re.escape(message)}.*\n", err), err


def test_d9_missing_packages(run, model, monkeypatch):
    """D9: 2 where a package is missing; the line says what to install."""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert run("verify", model) == (2, "", "nd4jlike: tables need the rich package: pip install nd4jlike[cli]; --json works without\n")
    monkeypatch.setitem(sys.modules, "tflite", None)
    assert run("verify", model, "--json") == (2, "", "nd4jlike: reading a .tflite file needs the tflite package: pip install nd4jlike[cli]\n")
    monkeypatch.setattr(verification, "DEMO_PACKAGE", "no-such-package")
    assert run("demo", "--json") == (2, "", "nd4jlike: the models of no-such-package are not installed: pip install nd4jlike[demo]\n")


def test_d9_interrupted(run, model, monkeypatch):
    """D9: 130 when interrupted."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "verify", interrupt)
    assert run("verify", model) == (130, "", "nd4jlike: interrupted\n")


@pytest.mark.parametrize(("words", "said"), [((), "not enough memory"), (("cannot allocate 7 bytes",), "not enough memory: cannot allocate 7 bytes")])
def test_d9_memory_that_is_not_there(words, said, run, model, monkeypatch):
    """D9: errors are one line on standard error: memory that could not be had too, and how much."""

    def fails(*_, **__):
        raise MemoryError(*words)

    monkeypatch.setattr(engine, "verify", fails)
    assert run("verify", model) == (2, "", f"nd4jlike: {said}\n")


def supervised(program, arguments=("verify", "model"), interrupts=signal.SIG_DFL):
    """Run the command on a model in a process whose `verify`, or `measure` of `bench`, is replaced."""
    before = "import os, signal, sys, time\nfrom nd4jlike import cli, verify\nfrom nd4jlike.cli import benchmark\n"
    program = f"{before}{program}\nverify.verify = benchmark.measure = replaced\nsys.argv[1:] = {arguments}\nsys.exit(cli.main())"

    def default():
        """Undo what processes inherit: a shell ignores SIGINT and SIGQUIT for what it starts in the background, nohup SIGHUP."""
        signal.signal(signal.SIGINT, interrupts)
        for number in (signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default, start_new_session=True
    )


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT"])
def test_d9_crash_of_the_reference(name):
    """D9: errors are one line on standard error, a crash of the reference interpreter included."""
    child = supervised(f"def replaced(*_, **__): os.kill(os.getpid(), signal.{name})")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (2, "")
    assert err == f"nd4jlike: the reference interpreter crashed ({name}) on this model; --reference names another\n"


def test_d9_crash_of_a_peer():
    """D9: a crash of the reference interpreter included, or of a peer, and which option leaves it out."""
    child = supervised("def replaced(*_, **__): os.kill(os.getpid(), signal.SIGSEGV)", ("bench", "3x3x8"))
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (2, "nd4jlike: a peer crashed (SIGSEGV); --peers names those to measure\n")


def test_d9_no_memory():
    """D9: errors are one line on standard error: the end that a system without memory makes, too."""
    child = supervised("def replaced(*_, **__): os.kill(os.getpid(), signal.SIGKILL)")
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (2, "nd4jlike: ended by SIGKILL: not enough memory?\n")


SLEEPS = "def replaced(*_, **__):\n    print(os.getpid(), flush=True)\n    time.sleep(60)"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "nd4jlike: interrupted\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, ""), (signal.SIGQUIT, 131, "")],
)
def test_d9_signals(number, code, said, terminal):
    """D9: 130 when interrupted, 143, 129 and 131 when ended otherwise, by the terminal or alone: What is sent to the command alone ends its child too."""
    child = supervised(SLEEPS)
    inner = int(child.stdout.readline())
    if terminal:  # which sends to both at once: one after the other, the command may be on its way out already, where Python has let go of its handlers
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (code, said)
    with pytest.raises(ProcessLookupError):
        os.kill(inner, 0)


def test_d9_interrupted_again():
    """D9: 130 when interrupted, errors without a traceback: while the first interrupt is told of, too."""
    again = "said = cli.complain\ndef complain(*what):\n    os.kill(os.getpid(), signal.SIGINT)\n    return said(*what)\n"
    child = supervised(f"{again}cli.complain = complain\n{SLEEPS}")
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "nd4jlike: interrupted\n")


def test_d9_interrupted_at_the_same_moment():
    """D9: 130 when interrupted, errors without a traceback: one from the terminal while that from the parent is at work, a hundred times."""
    child = supervised("""import contextlib
from nd4jlike.cli import child
def replaced(*_, **__):
    child._interrupted, handler = True, signal.getsignal(signal.SIGINT)
    print(os.getpid(), flush=True)
    for _ in range(100):
        with contextlib.suppress(KeyboardInterrupt):
            child._interrupted = False
            signal.signal(signal.SIGINT, handler)
            time.sleep(0.1)
    raise MemoryError""")
    inner = int(child.stdout.readline())
    with contextlib.suppress(ProcessLookupError):
        while child.poll() is None:
            os.kill(inner, signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (2, "nd4jlike: not enough memory\n")


def test_d9_interrupts_that_are_ignored():
    """D9: 130 when interrupted: not where whoever started the command has it ignore that, as a shell does in the background."""
    child = supervised(f"{SLEEPS.replace('60', '1')}\n    raise MemoryError", interrupts=signal.SIG_IGN)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (2, "nd4jlike: not enough memory\n")


@pytest.mark.parametrize("code", [0, 7])
def test_d9_a_child_that_leaves(code):
    """D9: errors are one line on standard error: so is a child that ends without having come to its end, with whatever code."""
    child = supervised(f"def replaced(*_, **__): os._exit({code})")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (2, "")
    assert err == f"nd4jlike: the reference interpreter ended the process (exit code {code}) on this model; --reference names another\n"


def test_d9_a_child_that_does_not_stop():
    """D9: A child that has not stopped 2 seconds after an interrupt is killed."""
    child = supervised(SLEEPS.replace("time.sleep", "signal.signal(signal.SIGINT, signal.SIG_IGN)\n    print(flush=True)\n    time.sleep"))
    inner = int(child.stdout.readline())
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, "nd4jlike: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(inner, 0)


def test_d9_nobody_reads(model):
    """D9: errors without a traceback: none either when the reader of the output has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "nd4jlike", "describe", "c", "20,20"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (cli.BROKEN_PIPE, b"")


@pytest.mark.parametrize("arguments", [("describe", "nchw", "1,2"), ("verify", "nowhere.tflite"), ("describe", "c", "a")])
def test_d9_nobody_reads_errors(arguments):
    """D9: The code is the same where standard error is closed or cannot be written."""
    command = [sys.executable, "-m", "nd4jlike", *arguments]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False).returncode == 2
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_d9_names_that_the_terminal_cannot_show(encoding, model, tmp_path, reference):
    """D9: errors without a traceback: none where the path has bytes or letters that the output's encoding has not, the model is fine all the same."""
    twin = tmp_path / os.fsdecode(b"n\xff\xc3\xa4.tflite")
    twin.write_bytes(Path(model).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "nd4jlike", "verify", twin],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"n\\udcff" in done.stdout


@pytest.mark.parametrize(("arguments", "code"), [(("describe", "c", "2,3"), 0), (("info", "--json"), 0), (("describe", "c", "a"), 2)])
def test_d9_closed_output(arguments, code):
    """D9: The code is the same where standard output is closed; errors are one line without a traceback."""
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "nd4jlike", *arguments], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1 if code else 0), done.stderr


def test_d10_numbers_that_json_has_not(capsys):
    """D10: `--json` prints one JSON document, infinities and NaN as text."""
    print_json({"a": [1.5, float("inf")], "b": {"c": float("nan")}, "d": None})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, "inf"], "b": {"c": "nan"}, "d": None}


def test_d10_json(run, model, reference):
    """D10: `--json` prints one JSON document on standard output and nothing else there."""
    code, out, err = run("verify", model, "--json", "--seed", 7, "--runs", 1, "--threads", 2)
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert (report["seed"], report["runs"], report["threads"], report["rounding"]) == (7, 1, 2, "tflite")
    assert report["passed"] is report["bit_exact"] is True
    assert report["verdict"] == "bit-exact: all 400 outputs of 1 int8 layers"
    assert "minus a model of 1" in report["timing"]
    (row,) = report["layers"]
    assert {
        "dtype", "kernel", "stride", "layout", "paddings", "allocation_bytes", "arm_compute_offset", "arm_compute_total_size", "arm_compute_refusal",
        "mismatches", "largest_difference", "microseconds", "reference_microseconds", "ratio",
    } < set(row)  # fmt: skip
    assert (row["input_shape"], row["multiplier"], row["mismatches"]) == ([1, 9, 8, 5], 2, 0)


def test_d10_progress_on_a_terminal_only(model, reference):
    """D10: progress is drawn on standard error, and only on a terminal."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nd4jlike", "verify", str(model), "--json", "--runs", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 4096):
            drawn += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert json.loads(done.stdout)["passed"]
    assert b"model.tflite" in drawn
    assert process("verify", model, "--json", "--runs", "1").stderr == ""


def test_person_detect_with_an_image(run, reference):
    """D8: inputs are files: 8-bit grey images, one for each run."""
    image = shared_file("models", "person.bmp")
    code, out, _ = run("verify", shared_file("models", "person_detect.tflite"), "--input", image, "--input", image, "--json")
    assert code == 0
    assert (json.loads(out)["runs"], len(json.loads(out)["layers"])) == (2, 14)


def test_input_array(run, model, reference, tmp_path):
    """D8: inputs are files: `.npy` of the input's element type."""
    np.save(tmp_path / "x.npy", np.zeros((1, 9, 8, 5), "int8"))
    assert run("verify", model, "--input", tmp_path / "x.npy")[0] == 0


def test_d13_both_roundings(run, model, reference):
    """D13: `rounding="both"` tells under which of them the model matches."""
    pytest.importorskip("ai_edge_litert.interpreter", reason="XNNPACK comes with ai-edge-litert")
    code, out, err = run("verify", model, "--rounding", "both", "--runs", 1)
    assert (code, err) == (0, "")
    assert [line.split().count("xnnpack") for line in out.splitlines() if line.lstrip().startswith("0/0")] == [0, 1]
    assert out.splitlines()[-1] == "; ".join(f"rounding {name}: bit-exact: all 400 outputs of 1 int8 layers" for name in ("tflite", "xnnpack"))
    assert json.loads(run("verify", model, "--rounding", "both", "--runs", 1, "--json")[1])["matches"] == {"tflite": True, "xnnpack": True}


@pytest.mark.parametrize("rounding", ["tflite", "xnnpack"])
def test_demo(rounding, run, reference):
    """D3: "bit-exact" is said only if every output equals the reference's: the models that the demo extra installs."""
    tiny_models.packaged_models("pymicro-wakeword")
    if rounding == "xnnpack":
        pytest.importorskip("ai_edge_litert.interpreter", reason="XNNPACK comes with ai-edge-litert")
    code, out, err = run("demo", "--runs", 1, "--rounding", rounding)
    assert (code, err) == (0, "")
    assert out.count("bit-exact: all") == 4
    assert out.endswith("4 models, 20 depthwise layers: passed\n")


def test_demo_json(run, reference, wrong):
    """D9: 1 when a mismatch was found, in any model."""
    tiny_models.packaged_models("pymicro-wakeword")
    code, out, _ = run("demo", "--runs", 1, "--json")
    assert code == 1
    assert json.loads(out)["passed"] is False
    assert len(json.loads(out)["models"]) == 4


def test_d11_describe(run):
    """D11: `describe` says where each element of a layout lives: libnd4j's example."""
    code, out, err = run("describe", "c", "2,2,5,5", "--paddings", "0,0,1,1", "--find", "1,1,4,4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == repr(ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 2, 5, 5), (0, 0, 1, 1)))
    assert [line.split()[-2:] for line in lines[7:11]] == [["72", "288"], ["36", "144"], ["6", "24"], ["1", "4"]]
    assert "buffer  144 cells, 576 bytes: 100 elements, 44 padding" in lines
    assert lines[-1] == "element (1, 1, 4, 4) is at offset 136, byte 544: cell (1, 1, 4, 4) of (2, 2, 6, 6)"


@pytest.mark.parametrize("layout", ["c", "f", "nchw", "nhwc", "acdb", "chwn"])
def test_d11_the_drawing_is_the_buffer(layout, run):
    """D11: `describe` draws small buffers: every place, with the index of the element there or a dot."""
    code, out, _ = run("describe", layout, "2,3,2,3", "--paddings", "0,1,2,1", "--padding-offsets", "0,1,1,0", "--json")
    described = json.loads(out)
    assert code == 0
    descriptor = eval(described["descriptor"], {"ShapeDescriptor": ShapeDescriptor})
    assert described["strides"] == list(descriptor.strides)
    _, out, _ = run("describe", layout, "2,3,2,3", "--paddings", "0,1,2,1", "--padding-offsets", "0,1,1,0")
    rows = [re.sub("[>|]", " ", line.split(": ")[1]).split() for line in out.splitlines() if re.match(r" *\d+: ", line)]
    cells = [cell for row in rows for cell in row]
    assert len(cells) == descriptor.allocLength() == described["allocation"]
    for index in np.ndindex(2, 3, 2, 3):
        assert cells[descriptor.offset_of(index)] == ",".join(map(str, index))
    assert cells.count(".") == len(cells) - 36


@pytest.mark.parametrize("shape", ["0,3", "1000,1000", "1", "7"])
def test_d11_nothing_to_draw_or_too_much(shape, run):
    """D11: `describe` draws small buffers; of large ones it draws some rows."""
    code, out, _ = run("describe", "c", shape)
    assert code == 0
    assert bool(re.search(r"^ *0: ", out, re.MULTILINE)) == (shape != "0,3")
    assert len(out.splitlines()) < 50


def test_d11_info(run):
    """D11: `info` names the instruction sets, threads and versions."""
    code, out, err = run("info", "--json")
    assert (code, err) == (0, "")
    described = json.loads(out)
    assert described["nd4jlike"] == __version__
    assert described["numpy"] == np.__version__
    assert described["isa"] in described["isa_supported"]
    assert "baseline" in described["isa_compiled"]
    assert described["threads"] >= 1
    assert set(described["optional"]) == set(machine.OPTIONAL_PACKAGES)
    assert described["libdnnl"] is None if onednn.find_library() is None else re.match(r"3\.\d+\.\d+ ", described["libdnnl"])
    code, out, _ = run("info")
    assert code == 0
    assert re.search(rf"^isa +{described['isa']}$", out, re.MULTILINE)


def test_version_and_help(run):
    """D9: the command ends with 0 when all is well."""
    assert run("--version") == (0, f"nd4jlike {__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in ("verify", "demo", "describe", "info"))


def test_process():
    """D9: the command ends with 0 when all is well, as a process too."""
    done = process("describe", "nhwc", "1,2,1,3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ShapeDescriptor")


def test_process_refuses_an_unknown_isa(model):
    """D9: 2 for bad usage: an instruction set in ND4JLIKE_ISA that is none."""
    done = process("verify", model, env={**os.environ, "ND4JLIKE_ISA": "mmx"})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"nd4jlike: .*mmx.*baseline.*\n", done.stderr), done.stderr
    done = process("info", env={**os.environ, "ND4JLIKE_ISA": "mmx"})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"nd4jlike: .*mmx.*baseline.*\n", done.stderr), done.stderr

"""ADR 0015: threads that share a call."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import nd4jlike as nd
from locks import runs_without_lock
from machines import second_level, ways
from nd4jlike.kernels import dispatch
from nd4jlike.workers import share

TASKS = Path("/proc/self/task")
has_tasks = pytest.mark.skipif(not TASKS.exists(), reason="the threads of a process are listed on Linux alone")


def run(program):
    return subprocess.run([sys.executable, "-c", program], timeout=60, check=False, capture_output=True, text=True)


@has_tasks
def test_d1_threads_are_started_when_needed_and_kept():
    """D1: All operations share calls by OpenMP: its threads, started when a call first needs them and kept by it, at most 63 beside the caller."""
    program = """
import os
import numpy as np, nd4jlike as nd
from nd4jlike.workers import share
count = lambda: len(os.listdir("/proc/self/task"))
plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.float32), threads=3)
x = np.ones((1, 256, 256, 32), np.float32)
before = count()
plan(x[:, :3, :3])
assert count() == before
plan(x)
assert "threads   3 of 3" in plan.explain(x)
assert count() == before + 2
nd.reorder(x, "nchw", threads=3)
share(lambda begin, end: None, 100, 3)
assert count() == before + 2
share(lambda begin, end: None, 1000, 1000)
assert count() == before + 63
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("parts", [-1, 0, 1, 2, 3, 8, 64, 100, 1 << 30, 1 << 70])
def test_d2_every_item_is_done_once(parts):
    """D2: every item is done once."""
    for count in (0, 1, 2, 3, 7, 64, 101, 1000):
        done = []
        share(lambda begin, end, done=done: done.extend(range(begin, end)), count, parts)
        assert sorted(done) == list(range(count))


def test_d2_who_is_late_takes_fewer():
    """D2: taken one by one: who wakes up late takes fewer."""
    others = threading.Event()
    done = []
    caller = threading.get_ident()

    def work(begin, end):
        if threading.get_ident() != caller:
            assert others.wait(30)
        done.append((threading.get_ident() == caller, begin, end))
        if sum(e - b for own, b, e in done if own) >= 25:
            others.set()

    share(work, 50, 2)
    assert sorted(i for _, b, e in done for i in range(b, e)) == list(range(50))
    assert sum(e - b for own, b, e in done if own) >= 25


def test_d2_own_pieces_come_first():
    """D2: taken one by one, each thread's own part of them first."""
    together = threading.Barrier(2, timeout=30)
    done = []

    def work(begin, end):
        together.wait()
        done.append((threading.get_ident(), begin, end))

    share(work, 80, 2)
    mine = sorted((begin, end) for who, begin, end in done if who == threading.get_ident())
    others = sorted((begin, end) for who, begin, end in done if who != threading.get_ident())
    assert mine == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert others == [(40, 50), (50, 60), (60, 70), (70, 80)]


def test_d2_callers_do_not_disturb_each_other():
    """D2: every item is done once."""

    def call(seed):
        done = []
        share(lambda begin, end: done.extend(range(begin, end)), 10 + seed % 50, 2 + seed % 3)
        return sorted(done) == list(range(10 + seed % 50))

    with ThreadPoolExecutor(6) as callers:
        assert all(callers.map(call, range(600)))


@pytest.mark.parametrize("isa", dispatch.available())
def test_d3_threads_follow_the_estimated_time(isa):
    """D3: A convolution gets a thread for each 20 us of its estimated time, `multiply-adds / (3 * lanes) ns + bytes / 40 ns`."""
    lanes = {"baseline": 4, "avx2": 8}.get(isa, 16)
    found = set()
    for size in (1, 4, 8, 12, 16, 24, 48, 64, 96):
        plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.float32), threads=4, isa=isa)
        elements = size * size * 32
        parts = max(1, min(4, size // 2, (elements * 9 // (3 * lanes) + 2 * elements * 4 // 40) // 20000))
        assert f"threads   {parts} of 4, {size} row{'s' * (size > 1)}\n" in plan.explain(np.zeros((1, size, size, 32), np.float32))
        found.add(parts)
    assert {1, 4} < found


@pytest.mark.parametrize("isa", dispatch.available())
def test_d3_bytes_take_less_time(isa):
    """D3: multiply-adds of bytes count two fifths."""
    lanes = {"baseline": 4, "avx2": 8}.get(isa, 16)
    quantization = nd.Quantization(input=(0.1, 0), weights=[0.1], output=(0.1, 0))
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.int8), quantization=quantization, threads=4, isa=isa)
    for size in (24, 48, 96, 192):
        elements = size * size * 32
        parts = max(1, min(4, (elements * 9 // (3 * lanes) * 2 // 5 + 2 * elements // 40) // 20000))
        assert f"threads   {parts} of 4, {size} rows" in plan.explain(np.zeros((1, size, size, 32), np.int8))


@pytest.mark.parametrize("isa", dispatch.available())
def test_d3_bytes_of_planes_take_longer(isa):
    """D3: (multiply-adds of bytes count two fifths; `bytes / 15 ns` of planes computed as pixels)."""
    lanes, found = {"baseline": 4, "avx2": 8}.get(isa, 16), set()
    sums = nd.Quantization((0.1, 0), 0.1, (0.1, 0))
    for dtype, work in (("float64", lambda products: products // (3 * (lanes // 2))), ("int8", lambda products: products // (3 * lanes) * 2 // 5)):
        plan = nd.DepthwiseConv2d(np.ones((1, 1, 16, 1), dtype), quantization=sums if dtype == "int8" else None, data_format="NCHW", threads=6, isa=isa)
        for height in (50, 200, 400, 800, 1600):
            elements = 16 * height * 20
            text = plan.explain(np.zeros((1, 16, height, 20), dtype))
            assert "planes as pixels" in text
            parts = max(1, min(6, height // 2, (work(elements) + 2 * elements * np.dtype(dtype).itemsize // 15) // 20000))
            assert f"threads   {parts} of 6, {height} rows\n" in text
            found.add(parts)
    assert len(found) > 2


def test_d3_planes_are_shared_by_parts_of_the_channels():
    """D3: those of planes computed as pixels by parts of the channels, whole ones where each thread has four."""
    rng = np.random.default_rng(3)
    for channels, batch, parts in ((256, 1, 4), (130, 3, 3), (64, 2, 1)):
        weights, x = rng.integers(-127, 127, (5, 5, channels, 1), "int8"), rng.integers(-128, 127, (batch, channels, 28, 28), "int8")
        options = {"quantization": nd.Quantization((0.1, 3), 0.01, (0.5, 3)), "data_format": "NCHW", "padding": 2}
        alone = nd.DepthwiseConv2d(weights, threads=1, **options)
        wanted = alone(x).to_numpy()
        assert (f"{batch * 28} rows of {parts} parts of the channels\n" in alone.explain(x)) == (parts > 1)
        for threads in (2, 3, 5, 16):
            assert (nd.DepthwiseConv2d(weights, threads=threads, **options)(x).to_numpy() == wanted).all()


@pytest.mark.parametrize("isa", dispatch.available())
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_d3_planes_in_strips_are_shared_plane_by_plane(isa, dtype):
    """D3: of planes in strips (ADR 0004), four and more for each thread, each has all rows of its share of the planes instead."""
    rng = np.random.default_rng(3)
    for batch, channels, (height, width), kernel, stride, multiplier in (
        (1, 70, (31, 40), 3, 1, 1), (2, 131, (13, 20), 5, 1, 1), (3, 96, (9, 9), 5, 1, 1), (1, 37, (70, 24), 3, 2, 1), (2, 40, (28, 28), 3, 1, 2),
        (1, 20, (66, 33), 3, 1, 1), (5, 200, (7, 7), 3, 1, 1), (1, 16, (40, 48), 7, 1, 1), (1, 3, (64, 200), 3, 1, 1),
        (1, 9, (150, 150), 3, 1, 1), (2, 29, (64, 90), 5, 1, 1),
    ):  # fmt: skip
        weights = nd.array(rng.standard_normal((kernel, kernel, channels, multiplier)).astype(np.float32), dtype=dtype)
        x = nd.array(rng.standard_normal((batch, channels, height, width)).astype(np.float32), dtype=dtype)
        wanted = np.asarray(nd.DepthwiseConv2d(weights, stride=stride, data_format="NCHW", isa=isa)(x)).tobytes()
        for threads in (2, 3, 7):
            plan = nd.DepthwiseConv2d(weights, stride=stride, data_format="NCHW", threads=threads, isa=isa)
            out = nd.full(plan(x).shape, 7, dtype=dtype)
            plan(x, out)
            assert np.asarray(out).tobytes() == wanted


@pytest.mark.parametrize("isa", dispatch.available())
def test_d3_bands_are_shared_block_by_block(isa):
    """D3: and of bands of as many blocks, twice as many where images have 64 rows, of its share of the blocks."""
    rng = np.random.default_rng(3)
    for batch, channels, (height, width), kernel, stride, multiplier in (
        (1, 270, (21, 10), (5, 5), 1, 1), (2, 131, (13, 20), (3, 3), 2, 1), (3, 40, (40, 9), (3, 3), 1, 4), (1, 300, (70, 11), (3, 3), 1, 1),
        (1, 140, (70, 11), (3, 3), 1, 1), (1, 1000, (30, 1), (5, 1), 1, 1), (1, 150, (66, 5), (3, 3), 1, 2),
    ):  # fmt: skip
        weights = rng.integers(-127, 127, (*kernel, channels, multiplier), "int8")
        x = rng.integers(-999, 999, (batch, height, width, channels), "int16")
        options = {"quantization": nd.Quantization((0.1, 0), 0.01, (0.5, 0)), "stride": stride, "dtype": "int16", "isa": isa}
        alone = nd.DepthwiseConv2d(weights, **options)
        wanted = alone(x).to_numpy().tobytes()
        assert "through bands" in alone.explain(x)
        for threads in (2, 3, 7):
            out = nd.full((batch, -(-height // stride), -(-width // stride), channels * multiplier), 7, dtype="int16")
            nd.DepthwiseConv2d(weights, threads=threads, **options)(x, out)
            assert out.to_numpy().tobytes() == wanted


def test_d3_rows_are_shared_in_pairs():
    """D3: its rows are shared in pairs, which kernels compute together."""
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 512, 1), np.float32), threads=64)
    for height, parts in ((7, 3), (9, 4), (2, 1)):
        assert f"threads   {parts} of 64, {height} rows\n" in plan.explain(np.zeros((1, height, 400, 512), np.float32))
    assert "threads   5 of 64, 10 rows" in plan.explain(np.zeros((5, 2, 400, 512), np.float32))


def test_d4_those_that_compute_take_no_lock_of_the_interpreter():
    """D4: Those that compute take no lock of the interpreter."""
    x, out = nd.ones((1, 300, 600, 32)), nd.zeros((1, 300, 600, 32))
    plan = nd.DepthwiseConv2d(np.ones((7, 7, 32, 1), np.float32), threads=2)
    plan(x, out)
    assert "threads   2 of 2" in plan.explain()
    written = memoryview(out.buffer).cast("f")
    assert runs_without_lock(lambda: plan(x, out), lambda: all(written[:: 600 * 32]), lambda: out.fill(0))


def test_d4_what_takes_the_lock_is_seen():
    """D4: Those that compute take no lock of the interpreter: a call that keeps it would not pass."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this interpreter has no lock")
    done = bytearray(64)

    def keep():
        done[:] = bytes(1 << 26).replace(b"\0\0", b"\1\1")[:64]

    assert not runs_without_lock(keep, lambda: all(done), lambda: done.__setitem__(slice(None), bytes(64)), tries=3)


def test_d4_an_error_reaches_the_caller():
    """D4: an error that a piece of Python raises reaches the caller."""
    done = []

    def work(begin, end):
        done.append(begin)
        if begin == 0:
            raise KeyError(begin)

    with pytest.raises(KeyError):
        share(work, 10, 4)
    assert len(done) > 1


def test_d5_a_forked_child_computes_alone():
    """D5: A forked child computes on the thread that forked."""
    program = """
import os
from nd4jlike.workers import share
import numpy as np, nd4jlike as nd
plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.float32), threads=2)
x = np.ones((1, 128, 128, 32), np.float32)
want = np.asarray(plan(x)).copy()
def work():
    done = []
    share(lambda begin, end: done.extend(range(begin, end)), 100, 4)
    return sorted(done) == list(range(100)) and np.array_equal(np.asarray(plan(x)), want)
assert work()
threads = lambda: len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 1
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() and work() and threads() == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
assert work()
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_d5_a_child_that_starts_threads():
    """D5: `explain()` says one thread. Who forks before anything is computed says so in the child (`threads_are_new`)."""
    program = """
import os, threading
from nd4jlike import workers
import numpy as np, nd4jlike as nd
plan = nd.DepthwiseConv2d(np.ones((3, 3, 32, 1), np.float32), threads=2)
x = np.ones((1, 128, 128, 32), np.float32)
def places():
    found = set()
    together = threading.Barrier(2)
    def work(begin, end):
        found.add(threading.get_ident())
        if begin in (0, 40):
            together.wait(30)
    workers.share(work, 80, 2)
    return len(found)
child = os.fork()
if child == 0:
    alone = "threads   1 of 2" in plan.explain(x)
    workers.threads_are_new()
    os._exit(0 if alone and "threads   2 of 2" in plan.explain(x) and places() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_d5_the_child_of_the_command_line():
    """D5: Who forks before anything is computed says so in the child, as the command line does (`threads_are_new`)."""
    pytest.importorskip("rich", reason="tables are drawn by rich")
    program = """
import sys, threading
from nd4jlike import cli, verify
from nd4jlike.workers import share
def replaced(*_, **__):
    together = threading.Barrier(2, timeout=30)
    share(lambda begin, end: together.wait(), 2, 2)
    print("two", flush=True)
    raise MemoryError
verify.verify = replaced
sys.argv[1:] = ["verify", "model", "--threads", "2"]
sys.exit(cli.main())
"""
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (2, "two\n", "nd4jlike: not enough memory\n")


def test_d6_threads_share_what_remembers():
    """D6: Descriptors, arrays and plans may be read and called by several threads at a time: what they remember of the last call is exchanged."""
    weights = np.ones((3, 3, 8, 1), np.float32)
    plan = nd.DepthwiseConv2d(weights)
    layout = nd.ShapeDescriptor.from_tag((1, 8, 4, 5), "nChw8c")
    arrays = [nd.reorder(nd.asarray(np.full((1, 8, 4, 5), i, np.float32)), layout) for i in range(3)]
    images = [nd.full((1, 3 + i, 4, 8), i) for i in range(3)]
    want = [np.asarray(nd.depthwise_conv2d(x, weights)) for x in images]

    def call(seed):
        i = seed % 3
        types = [layout.astype(name).dtype for name in ("int8", "float64", "int16")[i:]]
        back = nd.depthwise_conv2d_backward(want[i], images[i], weights, needs="bias").bias
        return (
            layout.exploded().shape == (1, 1, 4, 5, 8)
            and types == list(map(np.dtype, ("int8", "float64", "int16")[i:]))
            and ((arrays[i] + arrays[i]).to_numpy() == 2 * i).all()
            and np.array_equal(plan(images[i]), want[i])
            and np.array_equal(nd.depthwise_conv2d(images[i], weights), want[i])
            and np.allclose(back, want[i].sum((0, 1, 2)))
        )

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(call, range(600)))


def test_d7_the_last_items_come_first():
    """D7: from the last to the first, a quarter of that cache at a time (..), threads those of their own part."""
    done = []
    share(lambda begin, end: done.append((begin, end)), 10, 1, 4)
    assert done == [(8, 10), (4, 8), (0, 4)]

    together, places = threading.Barrier(2), {}

    def work(begin, end):
        mine = places.setdefault(threading.get_ident(), [])
        mine.append((begin, end))
        if len(mine) == 1:
            together.wait(30)

    share(work, 80, 2, 4)
    assert sorted(piece for taken in places.values() for piece in taken) == [(begin, begin + 4) for begin in range(0, 80, 4)]
    for begin, own in ((36, range(36, -4, -4)), (76, range(76, 36, -4))):
        (mine,) = [[first for first, _ in taken] for taken in places.values() if taken[0][0] == begin]
        # What is taken of its own part comes in this order; then it may help the other.
        assert mine[: len([first for first in mine if first in own])] == [first for first in own if first in mine]


def directions(*calls):
    """Which row each of some calls began with, as `explain()` says."""
    found = []
    for plan, x, out in calls:
        plan(x, out)
        (line,) = [line for line in plan.explain().splitlines() if line.startswith("memory")]
        found.append(line.rpartition(", from the ")[2].partition(" ")[0])
    return found


def test_d7_a_call_begins_where_the_last_one_ended():
    """D7: Where the last such call of the caller read or wrote what is now `x`, and took its rows so, the first ones come first."""
    with second_level(1 << 16):
        plan, other = (nd.DepthwiseConv2d(np.ones((3, 3, 16, 1), np.float32)) for _ in range(2))
        a, b, c, d = (nd.ones((1, 32, 32, 16)) for _ in range(4))
        near = nd.ones((1, 8, 8, 16))
        # What an earlier test called may have lain where `a` is.
        other(d, c)
        # A call on the same input, on the result, on the result of that one, on another array; those in caches are no such calls.
        assert directions((plan, a, b), (plan, a, b), (plan, a, b)) == ["last", "first", "last"]
        assert directions((plan, a, b), (other, b, c), (plan, c, d)) == ["first", "last", "first"]
        assert directions((plan, a, b), (other, c, d), (other, a, b)) == ["last", "last", "last"]
        plan(near)
        assert "row on" not in plan.explain()
        assert directions((other, a, c)) == ["first"]
        # Every thread has a last call of its own.
        with ThreadPoolExecutor(1) as caller:
            assert caller.submit(directions, (other, c, d)).result() == ["last"]
        assert directions((other, c, d)) == ["last"]


@pytest.mark.parametrize("distance", range(4))
def test_d7_in_memory_the_first_rows_come_first(distance):
    """D7: more than half of its second-level cache, but not in memory (ADR 0017, D8)."""
    with ways(12, distance=distance):
        plan = nd.DepthwiseConv2d(np.ones((3, 3, 16, 1), np.float32))
        assert (", from the last row on" in plan.explain(np.ones((1, 160, 160, 16), np.float32))) == (distance in (1, 2))


def test_d7_each_thread_counts_its_own():
    """D7: Where inputs and outputs, of each thread, are more than half of its second-level cache."""
    x = np.ones((1, 64, 64, 64), np.float32)
    with second_level(3 << 20):
        for threads, found in ((1, True), (2, False)):
            plan = nd.DepthwiseConv2d(np.ones((9, 9, 64, 1), np.float32), threads=threads)
            assert f"threads   {threads} of {threads}" in plan.explain(x)
            assert ("from the last row on" in plan.explain(x)) == found


@pytest.mark.parametrize(
    ("least", "options"),
    [
        (8, {}),
        (16, {"dilation": 2}),
        (24, {"dilation": (3, 1)}),
        (8, {"dilation": (1, 3)}),
        (8, {"dilation": 2, "stride": 2}),
        (32, {"dilation": 4, "stride": (3, 1)}),
    ],
)
def test_d7_what_kernels_compute_together_stays_together(least, options):
    """D7: no fewer than four times what is shared together (D3); D3: of dilated filters those of all phases, `2 * dilation / gcd(dilation, stride)` of them."""
    stride = np.broadcast_to(options.get("stride", 1), 2)[0]
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 64, 1), np.float32), **options)
    with second_level(1 << 16):
        for rows in (least, least + 1):
            assert ("from the last row on" in plan.explain(np.ones((1, rows * stride, 64, 64), np.float32))) == (rows > least)
    # Of one row no other is in reach.
    plan = nd.DepthwiseConv2d(np.ones((1, 3, 64, 1), np.float32), dilation=2)
    with second_level(1 << 16):
        assert "from the last row on" in plan.explain(np.ones((1, 9, 64, 64), np.float32))


@pytest.mark.parametrize("isa", dispatch.available())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16"])
@pytest.mark.parametrize("threads", [1, 3])
def test_d7_the_bits_do_not_depend_on_it(isa, dtype, threads):
    """D7: The bits do not depend on it."""
    rng, turns = np.random.default_rng(7), []
    # What takes less than 100 us is one piece for each of several threads.
    large = [((1, 128, 130, 64), (3, 3, 64, 1), {})] if threads > 1 else []
    for shape, filters, options in (
        *large,
        ((2, 45, 31, 33), (3, 3, 33, 1), {}),
        ((1, 50, 40, 16), (5, 4, 16, 2), {"stride": (2, 1)}),
        ((1, 64, 40, 24), (3, 3, 24, 1), {"dilation": 3}),
        ((1, 1, 4000, 8), (1, 9, 8, 1), {}),
        ((1, 24, 40, 40), (3, 3, 24, 1), {"data_format": "NCHW", "stride": 2}),
    ):
        if dtype in ("int8", "uint8", "int16"):
            low = 0 if dtype == "uint8" else -100
            x, weights = (rng.integers(low, 100, extents).astype(kind) for extents, kind in ((shape, dtype), (filters, dtype if dtype == "uint8" else "int8")))
            options = {**options, "quantization": nd.Quantization(input=(0.1, 0), weights=0.02, output=(0.5, 0))}
        else:
            x, weights = (nd.asarray(rng.standard_normal(extents).astype(np.float32)).astype(dtype) for extents in (shape, filters))
        plan = nd.DepthwiseConv2d(weights, isa=isa, threads=threads, **options)
        x = nd.asarray(x)
        found = []
        for nbytes in (1 << 30, 1 << 14):
            with second_level(nbytes):
                plan = nd.DepthwiseConv2d(weights, isa=isa, threads=threads, **options)
                out = plan(x)
                for _ in range(2):
                    out.fill(0)
                    plan(x, out)
                    found.append((plan.explain().count("last row on"), plan.explain().count("first row on"), out.tobytes()))
        assert len({bits for *_, bits in found}) == 1
        assert not large or shape[1] < 128 or "threads   1" not in plan.explain()
        assert [which for *which, _ in found[:2]] == [[0, 0], [0, 0]]
        turns.append(sorted(which for *which, _ in found[2:]))
    # Few rows have no bands, nor has one piece for each thread.
    both = [[0, 1], [1, 0]]
    assert all(found in (both, [[0, 0], [0, 0]]) for found in turns)
    assert turns[0] == both
    assert turns.count(both) >= (3 if threads == 1 else 1)

"""Reorders beside memcpy, NumPy and oneDNN, on one thread: the same two buffers, outputs compared first, candidates in random turns, medians.

python benchmarks/bench_reorder.py [--check] [--dtype float32,int8] [--sizes L2,L3,memory,odd,small] [--moves nchw:nhwc,..] [--onednn PATH] [--isa NAME]

GB/s counts bytes read and bytes written. Ratios are the other's time over ours: above 1 we are faster; that to memcpy is of as many bytes as the
larger of the two buffers, by ctypes, whose call is as long as ours. NumPy copies between strided views of the blocks; oneDNN is called through its C
interface where libdnnl is found, kept to one thread by OMP_NUM_THREADS.
"""

import argparse
import ctypes
import os
import random
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import nd4jlike as nd

SIZES = {
    "small": [(1, 16, 4, 4)],
    "L2": [(1, 64, 28, 28)],
    "L3": [(1, 64, 112, 112), (8, 256, 28, 28)],
    "memory": [(32, 256, 56, 56)],
    "odd": [(1, 3, 61, 45), (1, 17, 61, 45), (4, 17, 61, 45), (16, 17, 61, 45), (1, 67, 61, 45), (8, 67, 61, 45)],
}
MOVES = ("nchw:nChw16c", "nchw:nChw8c", "nChw16c:nchw", "nChw8c:nchw", "nchw:nhwc", "nhwc:nchw", "nhwc:nChw16c", "nChw8c:nhwc")
LETTERS = {"nchw": "abcd", "nhwc": "acdb", "nChw8c": "aBcd8b", "nChw16c": "aBcd16b"}
ONEDNN_TYPES = {"float32": 3, "float16": 1, "int32": 4, "int8": 5, "uint8": 6}
SECONDS = 0.15  # that a row is measured for, about


class OneDnn:
    """oneDNN's reorder primitive."""

    def __init__(self, path):
        os.environ["OMP_NUM_THREADS"] = "1"
        self.lib = ctypes.CDLL(path)
        for name, arguments in {
            "engine_create": "pis", "stream_create": "ppi", "stream_wait": "p", "memory_desc_create_with_string_tag": "pipip", "memory_create": "pppp",
            "reorder_primitive_desc_create": "pppppp", "primitive_create": "pp", "primitive_execute": "ppip",
        }.items():  # fmt: skip
            kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int, "s": ctypes.c_size_t}
            getattr(self.lib, f"dnnl_{name}").argtypes = [kinds[a] for a in arguments]
        self.engine, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("engine_create", ctypes.byref(self.engine), 1, 0)
        self._call("stream_create", ctypes.byref(self.stream), self.engine, 1)

    def _call(self, name, *arguments):
        status = getattr(self.lib, f"dnnl_{name}")(*arguments)
        if status:
            raise RuntimeError(f"dnnl_{name} failed: {status}")

    def _description(self, shape, tag, dtype):
        made = ctypes.c_void_p()
        dims = (ctypes.c_int64 * 12)(*shape)
        self._call("memory_desc_create_with_string_tag", ctypes.byref(made), len(shape), dims, ONEDNN_TYPES[dtype], LETTERS[tag].encode())
        return made

    def reorder(self, shape, dtype, one, other, x, y):
        """Make the call that moves `x` to `y`."""
        descriptions = [self._description(shape, tag, dtype) for tag in (one, other)]
        plan, primitive = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("reorder_primitive_desc_create", ctypes.byref(plan), descriptions[0], self.engine, descriptions[1], self.engine, None)
        self._call("primitive_create", ctypes.byref(primitive), plan)

        class Argument(ctypes.Structure):
            _fields_ = (("index", ctypes.c_int), ("memory", ctypes.c_void_p))

        arguments = (Argument * 2)()
        for i, (index, array) in enumerate(((1, x), (17, y))):
            memory = ctypes.c_void_p()
            self._call("memory_create", ctypes.byref(memory), descriptions[i], self.engine, array.buffer.address)
            arguments[i] = Argument(index, memory.value)
        execute, stream = self.lib.dnnl_primitive_execute, self.stream
        return lambda: execute(primitive, stream, 2, arguments)


def planes(array, tag, block):
    """NumPy's view of a buffer as N, blocks of channels, channels of a block, H, W: whole blocks, and what is left of the last one."""
    n, c, h, w = array.shape
    cells = np.frombuffer(array.buffer, array.dtype)
    own = array.descriptor.inner_blocks
    if own:
        whole = cells.reshape(n, -1, h, w, own[0][1]).transpose(0, 1, 4, 2, 3)
        parts = [whole[:, : c // block], whole[:, c // block :, : c % block]]
    else:
        plain = cells.reshape(n, c, h, w) if tag == "nchw" else cells.reshape(n, h, w, c).transpose(0, 3, 1, 2)
        cut = c - c % block
        parts = [np.lib.stride_tricks.as_strided(plain, (n, c // block, block, h, w), (plain.strides[0], plain.strides[1] * block, *plain.strides[1:]))]
        parts.append(plain[:, None, cut:])
    return [part for part in parts if part.size]


def numpy_copy(one, other, x, y):
    """Make NumPy's call: it copies the views of whole blocks, then the rest; the tail stays zero."""
    block = max([size for array in (x, y) for _, size in array.descriptor.inner_blocks], default=1)
    pairs = list(zip(planes(y, other, block), planes(x, one, block), strict=True))

    def call():
        for target, source in pairs:
            np.copyto(target, source)

    return call


def median_times(calls, rounds):
    """Seconds of one call of each, in turns."""
    times = [[] for _ in calls]
    repeats = []
    for call in calls:
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(2e-4 / (time.perf_counter() - start))))
    order = list(range(len(calls)))
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        # None finds what the same other one left in the caches each time.
        shuffle(order)
        for i in order:
            call, repeat = calls[i], repeats[i]
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[i].append((time.perf_counter() - start) / repeat)
    return [statistics.median(found) for found in times]


def row(shape, dtype, move, onednn, isa, check):
    """Measure one move; returns the line of the table."""
    one, other = move.split(":")
    layouts = [nd.ShapeDescriptor.from_tag(shape, tag, dtype) for tag in (one, other)]
    size = max(layout.allocLength() * layout.itemsize for layout in layouts)
    # Both as large as the larger one: memcpy moves the same memory.
    memory = [np.frombuffer(nd.zeros((size,), "uint8").buffer, np.uint8) for _ in layouts]
    x, y = (nd.NdArray(layout, bytes_[: layout.allocLength() * layout.itemsize]) for layout, bytes_ in zip(layouts, memory, strict=True))
    values = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    x[...] = values
    names = ["nd4jlike", "memcpy", "numpy"] + (["onednn"] if onednn else [])
    copy = ctypes.memmove
    calls = [lambda: nd.reorder(x, other, out=y, isa=isa), lambda: copy(y.buffer.address, x.buffer.address, size), numpy_copy(one, other, x, y)]
    if onednn:
        calls.append(onednn.reorder(shape, dtype, one, other, x, y))
    cells = np.frombuffer(y.buffer, f"u{y.itemsize}")
    nd.reorder(x, other, out=y, isa=isa)
    expected = cells.copy()
    if not np.array_equal(y.to_numpy(), values):
        raise AssertionError(f"{shape} {move}: not the elements of the source")
    for name, call in zip(names, calls, strict=True):
        if name != "memcpy":
            cells[:] = 0
            call()
            if not np.array_equal(cells, expected):
                raise AssertionError(f"{shape} {move}: {name} has other bytes")
    rounds = 1 if check else max(7, min(41, int(SECONDS / (8 * size / 10e9))))
    times = median_times(calls, rounds)
    ratios = "".join(f"{t / times[0]:9.2f}" for t in times[1:])
    return f"{shape!s:18}{dtype:9}{move:15}{times[0] * 1e6:10.1f}{(x.buffer.nbytes + y.buffer.nbytes) / times[0] / 1e9:8.1f}{ratios}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="every case once, outputs compared, times meaningless")
    parser.add_argument("--dtype", default="float32", help="element types, with commas")
    parser.add_argument("--sizes", default="small,L2,L3,memory,odd", help="groups of shapes, with commas, or shapes such as 1x3x61x45")
    parser.add_argument("--moves", default=",".join(MOVES), help="source:target, with commas")
    parser.add_argument("--onednn", default=str(Path(sys.prefix) / "lib" / "libdnnl.so.3"), help="path of the library (PyPI: onednn-cpu-gomp)")
    parser.add_argument("--isa", help="instruction set of our kernels")
    arguments = parser.parse_args()
    onednn = OneDnn(arguments.onednn) if Path(arguments.onednn).exists() else None
    print(f"{'shape':18}{'type':9}{'move':15}{'us':>10}{'GB/s':>8}{'memcpy':>9}{'NumPy':>9}" + (f"{'oneDNN':>9}" if onednn else ""))
    for size in arguments.sizes.split(","):
        for shape in SIZES.get(size) or [tuple(int(n) for n in size.split("x"))]:
            if arguments.check and size == "memory":
                continue
            for dtype in arguments.dtype.split(","):
                for move in arguments.moves.split(","):
                    print(row(shape, dtype, move, onednn if dtype in ONEDNN_TYPES else None, arguments.isa, arguments.check), flush=True)


if __name__ == "__main__":
    main()

"""What a call costs before it does any work: arrays, views, descriptors, plans; beside NumPy where NumPy has the same.

python benchmarks/bench_overhead.py [--repeat N]     medians in microseconds, one process, warm
"""

import argparse
import statistics
import timeit

import numpy as np

import nd4jlike as nd

dense = np.zeros((1, 14, 14, 512), np.float32)
x = nd.asarray(dense)
tiny = nd.zeros((1, 1, 1, 16))
out = nd.zeros((1, 1, 1, 16))
weights = np.ones((3, 3, 16, 1), np.float32)
plan = nd.DepthwiseConv2d(weights)
blocked = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 512, 14, 14), "nChw8c"))
odd = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 515, 14, 14), "nChw8c"))
ragged = np.zeros((1, 515, 14, 14), np.float32)
halo = nd.create((1, 512, 14, 14), paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1))
small = np.zeros((1, 1, 1, 16), np.float32)
other = nd.ShapeDescriptor("float32", "c", (1, 14, 14, 512))

# What, ours, NumPy's where there is one.
ROWS = (
    ("wrap an array", lambda: nd.asarray(dense), lambda: np.asarray(memoryview(dense))),
    ("back to NumPy", lambda: np.asarray(x), lambda: np.asarray(memoryview(dense))),
    ("view x[0]", lambda: x[0], lambda: dense[0]),
    ("element x[0, 1, 2, 3]", lambda: x[0, 1, 2, 3], lambda: dense[0, 1, 2, 3]),
    ("view of 8 channels, nChw8c", lambda: blocked[:, 8:16], lambda: dense[..., 8:16]),
    ("permute", lambda: x.permute((0, 3, 1, 2)), lambda: dense.transpose(0, 3, 1, 2)),
    ("zeros, 16 elements", lambda: nd.zeros((1, 1, 1, 16)), lambda: np.zeros((1, 1, 1, 16), np.float32)),
    ("x + 1, 16 elements", lambda: tiny + 1, lambda: small + 1),
    ("x += 1, 16 elements", lambda: tiny.__iadd__(1), lambda: small.__iadd__(1)),
    ("x + x, 100352 elements", lambda: x + x, lambda: dense + dense),
    ("x += x, 100352, nChw8c", lambda: blocked.__iadd__(blocked), lambda: dense.__iadd__(dense)),
    ("x += x, 100940, nChw8c, C = 515", lambda: odd.__iadd__(odd), lambda: ragged.__iadd__(ragged)),
    ("x + x, 100352, halo 1, 512x14x14", lambda: halo + halo, lambda: dense + dense),
    ("x.sum(), 100352 elements", lambda: x.sum(), lambda: dense.sum()),
    ("check_padding, halo 1, 512x14x14", lambda: halo.check_padding(), None),
    ("check_padding, tail, C = 515", lambda: odd.check_padding(), None),
    ("make a descriptor", lambda: nd.ShapeDescriptor("float32", "c", (1, 14, 14, 512)), None),
    ("compare descriptors", lambda: x.descriptor == other, None),
    ("configure a plan", lambda: nd.DepthwiseConv2d(weights), None),
    ("plan(x, out), 1x1x1x16, 3x3", lambda: plan(tiny, out), None),
)


def microseconds(call, repeat):
    """Median time of one call."""
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    count = max(1, count // 20)
    return statistics.median(timer.repeat(repeat, count)) / count * 1e6


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=11, help="samples of each row; the median is shown")
    repeat = parser.parse_args().repeat
    print(f"{'':34}{'us':>8}{'NumPy us':>10}{'ratio':>8}")
    for name, ours, numpys in ROWS:
        mine = microseconds(ours, repeat)
        theirs = microseconds(numpys, repeat) if numpys else None
        print(f"{name:34}{mine:8.2f}" + (f"{theirs:10.2f}{mine / theirs:8.1f}" if theirs else ""))


if __name__ == "__main__":
    main()

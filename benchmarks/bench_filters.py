"""One filter on each channel of a photo, float32 also as a row and a column, beside OpenCV's `filter2D` (any filter) and `GaussianBlur` (a row and a column).

python benchmarks/bench_filters.py [--rounds N]     medians in microseconds, one thread each, by turns
python benchmarks/bench_filters.py --check          ours once, against NumPy
"""

import argparse
import itertools
import statistics
import sys
import timeit

import numpy as np

import nd4jlike as nd

SIZES = ((480, 640), (1080, 1920))
CHANNELS = (1, 3, 4)
TAPS = (3, 5, 7, 11)


def binomial(taps):
    """Make the row whose square is the filter, of integers whose products fit bytes."""
    row = np.array([1])
    for _ in range(taps - 1):
        row = np.convolve(row, [1, 1])
    return np.maximum(1, np.rint(row * min(1, 15.4 / row.max()))).astype(int)


def square(taps):
    """Make the two-dimensional filter; and add it up."""
    row = binomial(taps)
    return np.outer(row, row), int(row.sum()) ** 2


def ours(image, taps):
    """Configure a call; return it, and its result."""
    kernel, total = square(taps)
    weights = np.broadcast_to(kernel[:, :, None, None], (taps, taps, image.shape[2], 1))
    if image.dtype == np.float32:
        plan = nd.DepthwiseConv2d((weights / total).astype(np.float32))
    else:
        quantization = nd.Quantization((1.0, 0), 1 / total, (1.0, 0))
        plan = nd.DepthwiseConv2d(weights.astype(np.uint8), quantization=quantization, rounding="xnnpack")
    x = nd.array(image[None])
    y = plan(x)
    return lambda: plan(x, y), np.asarray(y[0])


def apart(image, taps):
    """Configure a row and a column, one after the other; return a call of both, and the result."""
    row = binomial(taps)[None, :, None, None] / binomial(taps).sum()
    weights = np.broadcast_to(row, (1, taps, image.shape[2], 1)).astype(np.float32)
    along, down = nd.DepthwiseConv2d(weights), nd.DepthwiseConv2d(weights.transpose(1, 0, 2, 3))
    x = nd.array(image[None])
    between = along(x)
    y = down(between)
    return lambda: down(along(x, between), y), np.asarray(y[0])


def opencv(image, taps):
    """Return a call of each of its functions."""
    import cv2

    cv2.setNumThreads(1)
    kernel, total = square(taps)
    result = np.empty_like(image)
    return (
        lambda: cv2.filter2D(image, -1, kernel / total, result, borderType=cv2.BORDER_CONSTANT),
        lambda: cv2.GaussianBlur(image, (taps, taps), 0, result, borderType=cv2.BORDER_CONSTANT),
    )


def is_right(result, image, taps):
    """Compare with float64; bytes are the nearest ones, either of two that are equally near."""
    kernel, total = square(taps)
    height, width, _ = image.shape
    padded = np.pad(image.astype(np.float64), ((taps // 2,) * 2, (taps // 2,) * 2, (0, 0)))
    exact = sum(kernel[i, j] * padded[i : i + height, j : j + width] for i in range(taps) for j in range(taps)) / total
    return abs(result - exact).max() <= (0.001 if image.dtype == np.float32 else 0.501)


def main():
    """Print a line for each size, number of channels, filter and type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    if not arguments.check:
        print("microseconds (a row and a column), and how many times as long as the faster OpenCV's filter2D and GaussianBlur take")
    sizes = ((61, 45),) if arguments.check else SIZES
    for (height, width), channels, taps, dtype in itertools.product(sizes, CHANNELS, TAPS, (np.float32, np.uint8)):
        image = rng.integers(0, 256, (height, width, channels)).astype(dtype)
        what = f"{height}x{width}x{channels} {taps}x{taps} {np.dtype(dtype)}"
        ways = [ours(image, taps), *([apart(image, taps)] if dtype == np.float32 else [])]
        if not all(is_right(result, image, taps) for _, result in ways):
            sys.exit(f"wrong: {what}")
        if arguments.check:
            continue
        calls = *(call for call, _ in ways), *opencv(image, taps)
        rounds = [[min(timeit.repeat(each, number=1, repeat=5)) for each in calls] for _ in range(arguments.rounds)]
        times = [statistics.median(each) * 1e6 for each in zip(*rounds, strict=True)]
        mine, others = times[: len(ways)], times[len(ways) :]
        print(f"{what}: {mine[0]:.0f}", *(f"({other:.0f})" for other in mine[1:]), *(f"{other / min(mine):.2f}" for other in others), flush=True)


if __name__ == "__main__":
    main()

"""Gradients of depthwise layers beside torch, channels-last, one thread, in one process.

python benchmarks/bench_backward.py [--layers 14x14x512:k3,..] [--rounds N] [--json FILE] [--check]

us: median time of a call that makes new arrays, as torch does; `out`: ours into arrays that are there. ratio: torch's time over ours, both making new
arrays; torch's operator is called without the autograd engine around it. Padding is symmetric, (kernel - 1) * dilation // 2. All results are compared
with float64 before anything is timed. Without torch only our times are shown.
"""

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np

import nd4jlike as nd
from nd4jlike import bench

LAYERS = (
    "112x112x32", "112x112x64:s2", "56x56x128", "28x28x256", "14x14x512", "14x14x512:s2", "7x7x1024", "28x28x120:k5", "7x7x960:k5", "56x56x72:k5:s2",
    "56x56x96:k7", "28x28x256:d2", "96x96x3:s2:m8", "33x33x17", "8x14x14x67", "56x56x32:k2x3",
)  # fmt: skip
# Seconds that one turn of one contender takes at least: the clock and the loop disappear.
TURN = 1e-3


def exact(grad, x, weights, stride, dilation, padding):
    """Gradients by input, weights and bias in float64, and the sums of absolute values."""
    grad, x, weights = (np.asarray(a, np.float64) for a in (grad, x, weights))
    (batch, height, width, channels), (kh, kw, _, multiplier) = x.shape, weights.shape
    (top, left), (rows, columns) = padding, grad.shape[1:3]
    grad = grad.reshape(batch, rows, columns, channels, multiplier)
    found = []
    for g, v, w in ((grad, x, weights), (abs(grad), abs(x), abs(weights))):
        room = np.pad(v, ((0, 0), (top, top), (left, left), (0, 0)))
        by_room, by_weights = np.zeros_like(room), np.zeros_like(w)
        for a in range(kh):
            for b in range(kw):
                at = np.s_[
                    :,
                    a * dilation[0] : a * dilation[0] + (rows - 1) * stride[0] + 1 : stride[0],
                    b * dilation[1] : b * dilation[1] + (columns - 1) * stride[1] + 1 : stride[1],
                ]
                by_room[at] += np.einsum("nijcm,cm->nijc", g, w[a, b])
                by_weights[a, b] = np.einsum("nijcm,nijc->cm", g, room[at])
        found.append((by_room[:, top : top + height, left : left + width], by_weights, g.sum((0, 1, 2)).ravel()))
    return found


def contenders(text):
    """Functions by name, verified: (what, who) to a call without arguments."""
    case = bench.parse_layer(text)
    rng = np.random.default_rng(0)
    padding = tuple((k - 1) * d // 2 for k, d in zip(case.kernel, case.dilation, strict=True))
    out = [(n + 2 * p - (k - 1) * d - 1) // s + 1 for n, p, k, d, s in zip(case.shape[1:3], padding, case.kernel, case.dilation, case.stride, strict=True)]
    x = rng.standard_normal(case.shape, np.float32)
    weights = rng.standard_normal((*case.kernel, case.channels, case.multiplier), np.float32)
    grad = rng.standard_normal((case.shape[0], *out, case.outputs), np.float32)
    steps = {"stride": case.stride, "dilation": case.dilation, "padding": padding}
    # Aligned, as both libraries have it.
    x, grad = nd.array(x), nd.array(grad)
    outs = (nd.empty_like(x), nd.empty(weights.shape), nd.empty((case.outputs,)))

    def ours(needs, given):
        given = tuple(array if given and name in needs else None for name, array in zip(("input", "weights", "bias"), outs, strict=True))
        return nd.depthwise_conv2d_backward(grad, x, weights, needs=needs, out=given, **steps)

    calls = {}
    for what, needs in (("input", ("input",)), ("weights", ("weights", "bias"))):
        calls[what, "ours"] = lambda needs=needs: ours(needs, False)
        calls[what, "out"] = lambda needs=needs: ours(needs, True)
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        # Channels-last: the memory of our arrays under torch's order of axes.
        g, v = (torch.from_numpy(array.to_numpy()).permute(0, 3, 1, 2) for array in (grad, x))
        w = torch.from_numpy(weights.reshape(*case.kernel, case.outputs)).permute(2, 0, 1).unsqueeze(1).contiguous()
        for what, mask in (("input", [True, False, False]), ("weights", [False, True, True])):
            calls[what, "torch"] = lambda mask=mask: torch.ops.aten.convolution_backward(
                g, v, w, [case.outputs], case.stride, padding, case.dilation, False, [0, 0], case.channels, mask
            )

    want, reach = exact(grad, x, weights, case.stride, case.dilation, padding)
    for (_, who), call in calls.items():
        got = call()
        if who == "torch":
            by_input, by_weights, by_bias = got
            got = (
                None if by_input is None else by_input.permute(0, 2, 3, 1).numpy(),
                None if by_weights is None else by_weights[:, 0].permute(1, 2, 0).numpy().reshape(weights.shape),
                None if by_bias is None else by_bias.numpy(),
            )
        for name, array, expected, size in zip(("input", "weights", "bias"), got, want, reach, strict=True):
            if array is not None and not (abs(np.asarray(array) - expected) <= 1e-4 * size + 1e-6).all():
                raise SystemExit(f"{text}: the gradient by the {name} of {who} is wrong")
    return calls


def measure(calls, rounds):
    """Median microseconds by contender, which take turns."""
    found = {key: [] for key in calls}
    repeats = {key: max(1, round(TURN / max(once(call, 2), 1e-9))) for key, call in calls.items()}
    order = np.random.default_rng(0)
    for _ in range(rounds):
        for i in order.permutation(len(calls)):
            key = list(calls)[i]
            found[key].append(once(calls[key], repeats[key]))
    return {key: statistics.median(times) * 1e6 for key, times in found.items()}


def once(call, repeats):
    """Seconds of a call; one before brings the data back into the caches."""
    call()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default=",".join(LAYERS), help="as nd4jlike bench takes them, with commas")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contender")
    parser.add_argument("--json", metavar="FILE", help="everything that was measured")
    parser.add_argument("--check", action="store_true", help="every case once: results compared, times meaningless")
    arguments = parser.parse_args()
    rows = []
    print(f"{'layer':16}" + "".join(f"{what:>10}{'out':>9}{'torch':>9}{'ratio':>7}" for what in ("input", "weights")))
    for text in arguments.layers.split(","):
        times = measure(contenders(text), 1 if arguments.check else arguments.rounds)
        line = f"{text:16}"
        for what in ("input", "weights"):
            peer = times.get((what, "torch"))
            line += f"{times[what, 'ours']:10.1f}{times[what, 'out']:9.1f}" + (f"{peer:9.1f}{peer / times[what, 'ours']:7.2f}" if peer else f"{'-':>9}{'-':>7}")
        print(line, flush=True)
        rows.append({"layer": text, "microseconds": {f"{what}, {who}": value for (what, who), value in times.items()}})
    for what in ("input", "weights"):
        ratios = [row["microseconds"][f"{what}, torch"] / row["microseconds"][f"{what}, ours"] for row in rows if f"{what}, torch" in row["microseconds"]]
        if ratios:
            print(f"{what}: geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    if arguments.json:
        conditions = {"machine": platform.processor() or platform.machine(), "nd4jlike": nd.__version__, "numpy": np.__version__}
        Path(arguments.json).write_text(json.dumps({"conditions": conditions, "layers": rows}, indent=1))


if __name__ == "__main__":
    main()

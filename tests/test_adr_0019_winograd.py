"""ADR 0019: fewer products: pairs of rows by Winograd's algorithm."""

import copy
import pickle

import numpy as np
import pytest

import nd4jlike as nd
from guards import SIDES, guarded_array
from machines import MACHINES, ways
from nd4jlike.kernels import dispatch
from reference import accumulate, same_padding

ISAS = dispatch.available()
every_isa = pytest.mark.parametrize("isa", ISAS)
with_pairs = pytest.mark.skipif("avx512" not in ISAS, reason="pairs of rows need AVX-512, which this machine has not")
every_filter = pytest.mark.parametrize("kernel", [5, 7])


def random(shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def around(size, kernel):
    """Give the padding that `"same"` stands for."""
    return tuple(same_padding(extent, kernel, 1, 1) for extent in size)


def exact_and_bound(x, weights, bias, padding):
    """Compute the result in float64, and for each element D3's bound."""
    exact = accumulate(x, weights, padding=padding) + bias
    # The sum over a column's rows of |x| and of |w|, column by column: ones down the filter, then its sums along a row.
    columns = accumulate(abs(x), np.ones((len(weights), 1, x.shape[3], 1)), padding=(padding[0], (0, 0)))
    reach = accumulate(columns, abs(weights).sum(0, dtype=np.float64)[None], padding=((0, 0), padding[1]))
    taps = weights.shape[0] * weights.shape[1]
    return exact, (taps + 2) * 2.0**-23 * (reach + abs(bias)) + 1e-37


def pairs_of(plan, x):
    return "pairs of rows by Winograd" in plan.explain(x)


@pytest.mark.parametrize(
    ("changes", "error", "needs"),
    [
        ({"weights": np.ones((3, 3, 16, 1), np.float32)}, nd.LayoutError, "a filter of 5x5 or 7x7: 3x3"),
        ({"weights": np.ones((5, 7, 16, 1), np.float32)}, nd.LayoutError, "a filter of 5x5 or 7x7: 5x7"),
        ({"weights": np.ones((5, 5, 16, 1), np.float64)}, nd.DTypeError, "float32: float64"),
        ({"weights": np.ones((5, 5, 16, 1), np.float16)}, nd.DTypeError, "float32: float16"),
        ({"stride": 2}, nd.LayoutError, r"a stride and a dilation of 1: stride \(2, 2\), dilation \(1, 1\)"),
        ({"dilation": (1, 2)}, nd.LayoutError, r"a stride and a dilation of 1: stride \(1, 1\), dilation \(1, 2\)"),
        ({"weights": np.full((5, 5, 16, 1), np.inf, np.float32)}, nd.LayoutError, "finite weights"),
    ],
)
def test_d1_what_it_cannot_is_refused_by_name(changes, error, needs):
    """D1: float32, filters of 5x5 or 7x7, a stride and a dilation of 1, finite weights; others are refused by name."""
    arguments = {"weights": np.ones((5, 5, 16, 1), np.float32), "algorithm": "winograd", **changes}
    with pytest.raises(error, match=f"algorithm 'winograd' needs {needs}"):
        nd.DepthwiseConv2d(**arguments)


def test_d1_direct_is_the_default():
    """D1: `algorithm="direct"`, the default, sums the products of inputs and weights."""
    x, weights = random((1, 14, 14, 32)), random((5, 5, 32, 1), 1)
    plain, named = nd.DepthwiseConv2d(weights), nd.DepthwiseConv2d(weights, algorithm="direct")
    assert plain.algorithm == named.algorithm == "direct"
    assert not pairs_of(plain, x)
    assert (np.asarray(plain(x)) == np.asarray(named(x))).all()
    with pytest.raises(nd.LayoutError, match="algorithm must be one of 'direct', 'winograd': 'fft'"):
        nd.DepthwiseConv2d(weights, algorithm="fft")


@with_pairs
@every_filter
def test_d2_products_of_a_pair(kernel):
    """D2: three rows of taps make two rows of outputs by four products instead of six, F(2, 3), then two rows each by three instead of four, F(2, 2)."""
    weights = random((kernel, kernel, 16, 1))
    packed = []
    for algorithm in ("direct", "winograd"):
        text = nd.DepthwiseConv2d(weights, isa="avx512", algorithm=algorithm).explain((1, 28, 28, 16))
        packed.append(int(text.partition(" bytes of packed weights")[0].rpartition(" ")[2]))
    # A vector of weights, 64 bytes, for each product of a pair.
    assert packed[1] - packed[0] == {5: 35, 7: 70}[kernel] * 64


@every_isa
@every_filter
@pytest.mark.parametrize("side", SIDES)
def test_d3_results_stay_within_the_bound(isa, kernel, side):
    """D3: Results are within `(taps + 2) * 2**-23 * (|bias| + the sum over the columns of the window of sum |x| * sum |w|)` of the exact value."""
    found = set()
    sizes = (((12, 14), 35), ((14, 7), 16), ((9, 28), 64), ((30, 7), 8), ((31, 7), 11), ((12, 14), 130))
    same = [(size, channels, around(size, kernel)) for size, channels in sizes]
    others = [
        ((13, 13 + kernel), 48, ((0, 0), (0, 0))), ((11, 16 + kernel), 33, ((kernel - 1, 1), (2, 2))), ((17, 5 + kernel), 40, ((1, 0), (0, 1)))
    ]  # fmt: skip
    for seed, ((height, width), channels, padding) in enumerate([*same, *others]):
        x, weights, bias = random((2, height, width, channels), seed), random((kernel, kernel, channels, 1), seed + 9), random(channels, seed + 7)
        x[..., ::2] *= 1e6
        plan = nd.DepthwiseConv2d(weights, bias, padding=padding, isa=isa, algorithm="winograd")
        exact, bound = exact_and_bound(x, weights, bias, padding)
        source, out = guarded_array(x, side), guarded_array(np.zeros(exact.shape, np.float32), side)
        plan(source, out)
        assert (abs(np.asarray(out) - exact) <= bound).all(), (height, width, channels)
        own = nd.NdArray(plan.input_descriptor(x.shape))
        own[...] = x
        assert (abs(np.asarray(plan(own)) - exact) <= bound).all(), (height, width, channels)
        found.add(pairs_of(plan, source))
    assert (True in found) == isa.startswith("avx512")


@with_pairs
@every_filter
def test_d3_activations_and_blocks(kernel):
    """D3: Results are within the bound: clamped ones, and those of channels in blocks, are the same bits."""
    x, weights, bias = random((1, 28, 28, 48), 1), random((kernel, kernel, 48, 1), 2), random(48, 3)
    plain = np.asarray(nd.depthwise_conv2d(x, weights, bias, isa="avx512", algorithm="winograd"))
    clamped = nd.depthwise_conv2d(x, weights, bias, isa="avx512", algorithm="winograd", activation="relu6")
    assert (np.asarray(clamped) == np.clip(plain, 0, 6)).all()
    plan = nd.DepthwiseConv2d(weights, bias, data_format="NCHW", isa="avx512", algorithm="winograd")
    blocked = nd.reorder(nd.asarray(x).permute(0, 3, 1, 2), "nChw16c")
    assert pairs_of(plan, blocked)
    assert (np.asarray(plan(blocked)).transpose(0, 2, 3, 1) == plain).all()


@every_isa
@every_filter
def test_d3_small_integers_are_exact(isa, kernel):
    """D3: Results are within the bound; numbers of few bits give the exact ones."""
    rng = np.random.default_rng(kernel)
    x, weights = rng.integers(-100, 101, (1, 16, 21, 32)).astype(np.float32), rng.integers(-9, 10, (kernel, kernel, 32, 1)).astype(np.float32)
    got = nd.depthwise_conv2d(x, weights, isa=isa, algorithm="winograd")
    assert (np.asarray(got) == accumulate(x, weights, padding=around((16, 21), kernel))).all()


@every_isa
@every_filter
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_d4_what_is_not_in_the_window_changes_nothing(isa, kernel, value):
    """D4: An output depends on its own window alone: what is elsewhere, not even NaN or infinity, changes none of its bits."""
    x, weights = random((1, 15, 14, 33), 4), random((kernel, kernel, 33, 1), 5)
    plan = nd.DepthwiseConv2d(weights, isa=isa, algorithm="winograd")
    want, reach = np.asarray(plan(x)), kernel // 2
    for row, column in ((0, 0), (3, 6), (4, 7), (7, 13), (8, 2), (14, 5)):
        spoilt = x.copy()
        spoilt[0, row, column, 7] = value
        got = np.asarray(plan(spoilt))
        reached = np.zeros(got.shape, bool)
        reached[0, max(row - reach, 0) : row + reach + 1, max(column - reach, 0) : column + reach + 1, 7] = True
        assert (got[~reached] == want[~reached]).all()
        assert not np.isfinite(got[reached]).any()
        direct = np.asarray(nd.depthwise_conv2d(spoilt, weights, isa=isa))
        assert (np.isnan(got[reached]) | (got[reached] == direct[reached])).all()


@with_pairs
def test_d5_where_there_are_no_pairs():
    """D5: Direct are whole calls where there are no pairs; `explain()` tells by its line of the kernel."""
    weights = random((5, 5, 32, 1))
    plan = nd.DepthwiseConv2d(weights, isa="avx512", algorithm="winograd")
    for shape, pairs in (
        ((1, 8, 7, 32), True), ((1, 7, 7, 32), False), ((1, 28, 32, 32), True), ((1, 28, 24, 32), False), ((1, 28, 6, 32), False), ((3, 28, 28, 32), True)
    ):  # fmt: skip
        assert pairs_of(plan, shape) == pairs, shape
    planes = nd.DepthwiseConv2d(weights, data_format="NCHW", isa="avx512", algorithm="winograd")
    for x, pairs in ((nd.zeros((1, 32, 28, 28)), False), (nd.zeros((1, 28, 28, 32)).permute(0, 3, 1, 2), True)):
        assert pairs_of(planes, x) == pairs
    several = nd.DepthwiseConv2d(random((5, 5, 16, 2)), isa="avx512", algorithm="winograd")
    assert not pairs_of(several, (1, 28, 28, 16))
    for isa in ISAS:
        if not isa.startswith("avx512"):
            narrow = nd.DepthwiseConv2d(weights, isa=isa, algorithm="winograd")
            assert not pairs_of(narrow, (1, 28, 28, 32))
            x = random((1, 28, 28, 32), 3)
            assert (np.asarray(narrow(x)) == np.asarray(nd.depthwise_conv2d(x, weights, isa=isa))).all()


@with_pairs
@every_filter
def test_d5_rows_at_the_edges_are_direct(kernel):
    """D5: Direct, in the same call, are rows whose windows reach above or below the image, and the last one of an odd number of others."""
    for height in (15, 16):
        x, weights = random((1, height, 14, 32), 6), random((kernel, kernel, 32, 1), 7)
        same = [(np.asarray(nd.depthwise_conv2d(x, weights, isa="avx512", algorithm=algorithm))[0]) for algorithm in ("direct", "winograd")]
        direct = [row for row in range(height) if (same[0][row] == same[1][row]).all()]
        first, inside = kernel // 2, height - kernel + 1
        assert direct == [*range(first), *range(first + inside // 2 * 2, height)]


@every_filter
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_d6_the_bits_do_not_depend_on_threads_and_addresses(kernel, threads):
    """D6: the result has the same bits for any number of threads and at every address."""
    weights, bias = random((kernel, kernel, 144, 1), 2), random(144, 3)
    for shape in ((1, 33, 28, 144), (3, 15, 14, 144)):
        x = random(shape, 1)
        one, many = [nd.DepthwiseConv2d(weights, bias, threads=count, algorithm="winograd") for count in (1, threads)]
        want = np.asarray(one(x))
        assert (np.asarray(many(x)) == want).all()
        assert "threads   1 of" not in many.explain()
        for shift in (1, 4, 9, 16):
            room = np.zeros(x.size + shift, np.float32)
            room[shift:] = x.ravel()
            out = np.zeros(x.size + 16 - shift, np.float32)[16 - shift :].reshape(shape)
            many(room[shift:].reshape(shape), out)
            assert (out == want).all()


@every_filter
def test_d6_other_caches_give_the_same_bits(kernel):
    """D6: Which rows are pairs depends on the layer and its layout alone: not on how far away arrays lie."""
    x, weights = random((1, 20, 21, 256), 1), random((kernel, kernel, 256, 1), 2)
    want = np.asarray(nd.depthwise_conv2d(x, weights, algorithm="winograd"))
    for machine in MACHINES:
        for distance in range(4):
            with ways(*machine, distance):
                plan = nd.DepthwiseConv2d(weights, algorithm="winograd")
                assert (np.asarray(plan(x)) == want).all(), (machine, distance)


def test_d7_a_plan_tells_its_algorithm():
    """D7: A plan tells its `algorithm`, also to those who copy it."""
    plan = nd.DepthwiseConv2d(random((5, 5, 16, 1)), algorithm="winograd")
    for one in (plan, pickle.loads(pickle.dumps(plan)), copy.copy(plan)):
        assert one.algorithm == "winograd"
        assert ", algorithm winograd" in one.explain()
    x = random((1, 14, 14, 16), 1)
    single = nd.depthwise_conv2d(x, random((5, 5, 16, 1)), algorithm="winograd")
    assert (np.asarray(single) == np.asarray(plan(x))).all()
    direct = nd.depthwise_conv2d(x, random((5, 5, 16, 1)))
    assert ((np.asarray(direct) != np.asarray(single)).any()) == dispatch.downwards(None)[0].startswith("avx512")

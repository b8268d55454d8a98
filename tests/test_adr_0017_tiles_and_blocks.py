"""ADR 0017: float32 in place: any filter, channels in blocks."""

import functools
import math
import re
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nd4jlike as nd
from guards import SIDES, guarded, guarded_array
from machines import HALVING, MACHINES, ways
from nd4jlike.kernels import cpu, dispatch
from reference import depthwise_float, out_size, same_padding

ISAS = dispatch.available()
# Of D8, as `ways` takes it.
BEYOND, EDGE = 1, 2
FIRST_LEVEL = Path("/sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity")
every_isa = pytest.mark.parametrize("isa", ISAS)
LANES = {"baseline": 4, "avx2": 8}


def random(shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def assert_close(got, x, weights, bias, **steps):
    """Compare arrays of NHWC with float64, each element within its own bound."""
    want, bound = depthwise_float(x, weights, bias, (-math.inf, math.inf), **steps)
    assert (abs(np.asarray(got) - want) <= bound).all()


def steps_of(size, kernel, stride, dilation):
    return {"stride": stride, "dilation": dilation, "padding": tuple(same_padding(*figures) for figures in zip(size, kernel, stride, dilation, strict=True))}


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_any_filter_is_computed_in_place(isa, side):
    """D1: float32 with the channels of a vector side by side is computed in place, without scratch."""
    for kernel, size in (((1, 2), (3, 9)), ((4, 4), (5, 13)), ((6, 6), (7, 7)), ((1, 9), (2, 21)), ((9, 9), (6, 4)), ((2, 11), (4, 30)), ((2, 48), (3, 60))):
        for stride, dilation in (((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 3), (1, 1)), ((3, 1), (2, 2)), ((2, 3), (1, 2))):
            for channels, multiplier in ((17, 1), (33, 1), (8, 3)):
                values, weights, bias = random((1, *size, channels), 1), random((*kernel, channels, multiplier), 2), random(channels * multiplier, 3)
                steps = steps_of(size, kernel, stride, dilation)
                plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, isa=isa)
                shape = (1, *[out_size(n, k, s, d, *p) for n, k, s, d, p in zip(size, kernel, stride, dilation, steps["padding"], strict=True)])
                out = guarded_array(np.zeros((*shape, channels * multiplier), np.float32), side)
                plan(guarded_array(values, side), out)
                assert_close(out, values, weights, bias, **steps)
                text = plan.explain()
                inner = stride[1] // math.gcd(stride[1], dilation[1])
                if kernel[1] + 5 * inner <= 63 and channels >= 17:
                    assert "in place, " in text
                    assert " 0 bytes of scratch" in text


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("padding", [((1, 1), (7, 0)), ((4, 2), (7, 0)), ((1, 1), (3, 3))])
def test_d1_the_last_columns_of_an_image_narrower_than_its_padding(isa, side, padding):
    """D1: columns left over may begin in the padding before the image."""
    steps = {"stride": (2, 2), "dilation": (1, 1), "padding": padding}
    values, weights = random((1, 6, 5, 160), 1), random((3, 3, 160, 1), 2)
    plan = nd.DepthwiseConv2d(weights, stride=2, padding=padding, isa=isa)
    shape = [out_size(n, 3, 2, 1, *p) for n, p in zip((6, 5), padding, strict=True)]
    out = guarded_array(np.zeros((1, *shape, 160), np.float32), side)
    plan(guarded_array(values, side), out)
    assert_close(out, values, weights, np.zeros(160, np.float32), **steps)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_d1_images_of_any_height_fill_their_tiles(isa, side, dtype):
    """D1: any height, any width: tiles of several rows meet the first rows, the last ones, and what is left between them."""
    for kernel, step in product((3, 5, 7), (1, 2)):
        for height, width in product(range(1, 11) if kernel == 3 else (2, 6, 9), (7, 9, 10)):
            for channels, multiplier in ((17, 1), (5, 4), (3, 8)) if kernel == 3 else ((17, 1),):
                values, weights = random((1, height, width, channels), 1).astype(dtype), random((kernel, kernel, channels, multiplier), 2).astype(dtype)
                steps = steps_of((height, width), (kernel, kernel), (step, step), (1, 1))
                out = guarded_array(np.zeros((1, -(-height // step), -(-width // step), channels * multiplier), dtype), side)
                nd.DepthwiseConv2d(weights, stride=step, isa=isa)(guarded_array(values, side), out)
                assert_close(out, values, weights, None, **steps)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d1_images_of_fewer_columns_than_a_tile(isa, side):
    """D1: any height, any width, any dilation: rows of two or three outputs, of each phase, whose last row may be computed twice."""
    for kernel, (step, dilation), size in product((3, 5, 7), ((1, 1), (2, 1), (1, 2)), ((21, 9), (17, 6), (20, 5), (9, 3), (8, 2), (3, 2), (5, 4), (2, 3))):
        values, weights, bias = random((2, *size, 19), 1), random((kernel, kernel, 19, 1), 2), random(19, 3)
        for padding in ("same", dilation * kernel // 2):
            steps = steps_of(size, (kernel, kernel), (step, step), (dilation, dilation))
            if padding != "same":
                steps["padding"] = ((padding, padding),) * 2
            if min(size) + 2 * dilation * kernel // 2 <= (kernel - 1) * dilation:
                continue
            plan = nd.DepthwiseConv2d(weights, bias, stride=step, dilation=dilation, padding=padding, isa=isa)
            out = guarded_array(np.zeros(plan(values).shape, np.float32), side)
            plan(guarded_array(values, side), out)
            assert_close(out, values, weights, bias, **steps)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_d1_pixels_of_fewer_channels_than_lanes(isa, side, dtype):
    """D1: channels side by side are computed in place: whole vectors are read behind a pixel only where the image goes on, and never written."""
    for channels, kernel, step, size in product((5, 6, 9, 12, 15), (3, 5), (1, 2), ((28, 21), (7, 90), (2, 300), (1, 600))):
        values, weights = random((2, *size, channels), 1).astype(dtype), random((kernel, kernel, channels, 1), 2).astype(dtype)
        shape = (2, -(-size[0] // step), -(-size[1] // step), channels)
        plan, out = nd.DepthwiseConv2d(weights, stride=step, isa=isa), guarded_array(np.zeros(shape, dtype), side)
        plan(guarded_array(values, side), out)
        steps = steps_of(size, (kernel, kernel), (step, step), (1, 1))
        want, bound = depthwise_float(values.astype(np.float32), weights.astype(np.float32), None, (-math.inf, math.inf), **steps)
        assert (abs(out - want) <= (bound if dtype == "float32" else bound + 2.0**-11 * abs(want) + 2.0**-24)).all()
        # What lies between pixels is no number, and stays as it is.
        apart, between = np.full((2, *size, channels + 3), np.nan, dtype), np.full((*shape[:3], channels + 2), 7, dtype)
        apart[..., :channels] = values
        plan(apart[..., :channels], between[..., :channels])
        assert (between[..., :channels] == out).all()
        assert (between[..., channels:] == 7).all()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kernel", [3, 5, 7])
def test_d18_images_of_one_tile(isa, side, kernel):
    """D18: an image at a time (..) of 3 rows and 3 columns or 5 of each (..) 7 (..) 6; its neighbours, and a part of its rows, are not."""
    for channels, batch, threads in ((3, 1, 1), (16, 2, 1), (17, 1, 1), (48, 2, 1), (130, 1, 1), (528, 1, 2)):
        for size, padding in (
            *(((n, n), "same") for n in range(1, 8)),
            *((size, "same") for size in ((5, 6), (5, 3), (7, 8), (8, 7))),
            ((kernel + 2, kernel + 2), "valid"),
            ((7, 7), "valid"),
            ((9, 7), ((kernel // 2 - 1,) * 2, (kernel // 2,) * 2)),
        ):
            values, weights, bias = random((batch, *size, channels), 1), random((kernel, kernel, channels, 1), 2), random(channels, 3)
            steps = steps_of(size, (kernel, kernel), (1, 1), (1, 1))
            if padding != "same":
                steps["padding"] = ((0, 0), (0, 0)) if padding == "valid" else padding
            shape = [n + sum(p) - kernel + 1 for n, p in zip(size, steps["padding"], strict=True)]
            out = guarded_array(np.zeros((batch, *shape, channels), np.float32), side)
            plan = nd.DepthwiseConv2d(weights, bias, padding=padding, threads=threads, isa=isa)
            plan(guarded_array(values, side), out)
            assert_close(out, values, weights, bias, **steps)


@every_isa
@pytest.mark.parametrize(
    ("dtype", "kernel", "sides"),
    [
        (np.float32, 3, {"avx2": (2, 3, 5, 6), "avx512": (2, 3, 5, 7)}), (np.float32, 5, {"avx2": (3, 5), "avx512": (3, 5, 7)}), (np.float32, 7, {}),
        (np.float16, 3, {"avx2": (2, 3, 5), "avx512": (2, 3, 5)}), (np.float16, 5, {"avx512": (5,)}), (np.float16, 7, {}),
        (ml_dtypes.bfloat16, 3, {"avx2": (2, 3, 5), "avx512": (2, 3, 5, 7)}), (ml_dtypes.bfloat16, 5, {"avx512": (5,)}), (ml_dtypes.bfloat16, 7, {}),
    ],
)  # fmt: skip
def test_d18_which_images(isa, dtype, kernel, sides):
    """D18: of each (..), with those of 32 bytes by 3x3 6 of each, with those of 64 7 of each; of float16 and bfloat16 (..). The bits do not depend on it."""
    weights, bias = random((kernel, kernel, 40, 1), 1).astype(dtype), random(40, 2)
    with ways(*HALVING, 0):
        for size in range(1, 9):
            plan, steps = nd.DepthwiseConv2d(weights, bias, isa=isa), nd.DepthwiseConv2d(weights, bias, padding=kernel // 2, isa=isa)
            values = random((2, size, size, 40), size).astype(dtype)
            whole = size in sides.get(isa.removesuffix("_vnni"), ()) or (size == 1 and isa != "baseline")
            assert ("a whole image at a time" in plan.explain(values)) == whole
            # A column more, which no output reads but the last ones.
            wider = np.concatenate([values, np.zeros((2, size, 1, 40), dtype)], 2)
            assert "a whole image" not in steps.explain(wider)
            assert np.asarray(plan(values)).tobytes() == np.ascontiguousarray(np.asarray(steps(wider))[:, :, :size]).tobytes()


def assert_halves_are_rounded(values, weights, bias, side, **options):
    """Halves give the bits of float32, rounded, beside guard pages, and where what lies between pixels is no number; return what explains the first call."""
    channels, plan = values.shape[3], nd.DepthwiseConv2d(weights, bias, **options)
    want = np.asarray(nd.DepthwiseConv2d(weights.astype(np.float32), bias, **options)(values.astype(np.float32))).astype(values.dtype)
    x = nd.NdArray(plan.input_descriptor(values.shape))
    x.fill_padding(math.nan)
    x[...] = values
    assert np.asarray(plan(x)).tobytes() == want.tobytes()
    said = plan.explain()
    out = guarded_array(np.full(want.shape, 7, want.dtype), side)
    plan(guarded_array(values, side), out)
    assert out.tobytes() == want.tobytes()
    apart, between = np.full((*values.shape[:3], channels + 3), np.nan, want.dtype), np.full((*want.shape[:3], channels + 2), 7, want.dtype)
    apart[..., :channels] = values
    plan(apart[..., :channels], between[..., :channels])
    assert between[..., :channels].tobytes() == want.tobytes()
    assert (between[..., channels:] == 7).all()
    return said


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("kernel", "size"), [(3, 1), (3, 2), (3, 3), (3, 5), (3, 7), (5, 1), (5, 5)])
def test_d18_images_of_halves(isa, side, dtype, kernel, size):
    """D18: of float16 and bfloat16 2, 3 or 5 of each by 3x3 (..) 5 by 5x5, and of bfloat16 7 by 3x3; (..) an image of one pixel by any filter."""
    for channels, batch, threads in ((16, 2, 1), (17, 1, 1), (24, 3, 1), (48, 2, 1), (130, 1, 1), (528, 1, 2)):
        values, weights = (random(shape, i).astype(dtype) for i, shape in enumerate(((batch, size, size, channels), (kernel, kernel, channels, 1))))
        bias = random(channels, 3)
        assert_halves_are_rounded(values, weights, bias, side, threads=threads, activation="relu6", isa=isa)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("channels", [16, 41, 130])
def test_d1_filters_of_one_row_or_column(isa, side, channels):
    """D1: any height, any dilation, any width: whole tiles, what is left of them, and padding on the side that has no taps."""
    for taps, upright, extent, dilation in product((2, 3, 4, 5, 7), (False, True), (1, 5, 6, 7, 13, 20), (1, 2)):
        kernel, size = ((taps, 1), (extent, 5)) if upright else ((1, taps), (5, extent))
        for padding in ("same", ((taps * dilation, 1), (1, taps * dilation))):
            values, weights, bias = random((1, *size, channels), 1), random((*kernel, channels, 1), 2), random(channels, 3)
            steps = steps_of(size, kernel, (1, 1), (dilation, dilation))
            if padding != "same":
                steps["padding"] = padding
            shape = [out_size(n, k, 1, dilation, *p) for n, k, p in zip(size, kernel, steps["padding"], strict=True)]
            out = guarded_array(np.full((1, *shape, channels), np.nan, np.float32), side)
            plan = nd.DepthwiseConv2d(weights, bias, dilation=dilation, padding=padding, activation="relu6", isa=isa)
            plan(guarded_array(values, side), out)
            want, bound = depthwise_float(values, weights, bias, (0, 6), **steps)
            assert (abs(out - want) <= bound).all(), (kernel, size, dilation, padding)
            if "reach the image" not in plan.explain() and "output by output" not in plan.explain():
                assert ("tiles of 1 row" in plan.explain()) == (isa != "baseline" and not upright)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("taps", [3, 4, 5, 7])
def test_d1_rows_that_tiles_fit(isa, side, taps):
    """D1: any width: tiles of one row and 7, 6 and 4 columns, which fit every length of a row but 5 and 9."""
    for columns in range(1, 31):
        values, weights, bias = random((1, 2, columns, 40), columns), random((1, taps, 40, 1), 2), random(40, 3)
        for dilation, above in product((1, 2), (0, 1)):
            steps = steps_of((2, columns), (1, taps), (1, 1), (1, dilation))
            steps["padding"] = ((above, 2 * above), steps["padding"][1])  # of rows of outputs without inputs
            plan = nd.DepthwiseConv2d(weights, bias, dilation=(1, dilation), padding=steps["padding"], activation="relu6", isa=isa)
            out = guarded_array(np.full((1, 2 + 3 * above, columns, 40), np.nan, np.float32), side)
            plan(guarded_array(values, side), out)
            want, bound = depthwise_float(values, weights, bias, (0, 6), **steps)
            assert (abs(out - want) <= bound).all(), (columns, dilation, above)
        for dtype in (np.float16, ml_dtypes.bfloat16):
            assert_halves_are_rounded(values.astype(dtype), weights.astype(dtype), bias, side, activation="relu6", isa=isa)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("taps", [3, 4, 5, 7])
def test_d1_columns_by_four_rows(isa, side, taps):
    """D1: any height: filters of one column have tiles of 4 rows with vectors of 64 bytes, of 2 elsewhere; the last three rows are four."""
    for rows in range(1, 17):
        values, weights, bias = random((1, rows, 6, 40), rows), random((taps, 1, 40, 1), 2), random(40, 3)
        for dilation, beside in product((1, 2), (0, 1)):
            steps = steps_of((rows, 6), (taps, 1), (1, 1), (dilation, 1))
            steps["padding"] = (steps["padding"][0], (beside, 2 * beside))  # of columns of outputs without inputs
            plan = nd.DepthwiseConv2d(weights, bias, dilation=(dilation, 1), padding=steps["padding"], activation="relu6", isa=isa, threads=1 + beside)
            out = guarded_array(np.full((1, rows, 6 + 3 * beside, 40), np.nan, np.float32), side)
            plan(guarded_array(values, side), out)
            want, bound = depthwise_float(values, weights, bias, (0, 6), **steps)
            assert (abs(out - want) <= bound).all(), (rows, dilation, beside)
            if rows > taps // 2 and not beside and dilation == 1:
                assert ("tiles of 4 rows and 4 columns" in plan.explain()) == (isa.startswith("avx512") and rows >= 4), plan.explain()
        for dtype in (np.float16, ml_dtypes.bfloat16):
            assert_halves_are_rounded(values.astype(dtype), weights.astype(dtype), bias, side, activation="relu6", isa=isa)


@every_isa
@pytest.mark.parametrize("taps", [3, 5])
def test_d1_filters_of_one_row_from_memory(isa, taps):
    """D1: any height, any width: with vectors of 64 bytes tiles of 4 rows from memory, of 2 where fewer are left; of one row from anywhere else."""
    values, weights = random((1, 7, 30, 66), 1), random((1, taps, 66, 1), 2)
    for machine, distance in product((*MACHINES, HALVING), range(4)):
        with ways(*machine, distance):
            plan = nd.DepthwiseConv2d(weights, isa=isa, threads=2)
            assert_close(plan(values), values, weights, None, **steps_of((7, 30), (1, taps), (1, 1), (1, 1)))
        assert ("tiles of 4 rows and 2 columns" in plan.explain()) == (distance == 3 and isa.startswith("avx512"))
        assert ("tiles of 1 row and 4 to 7 columns" in plan.explain()) == (isa != "baseline" and (distance < 3 or (isa == "avx2" and taps == 5)))


def by_outputs(kernel, step, isa, far=False, phase=math.inf, pixel=0, room=False):
    """Whether D13, D14 or D15 has outputs computed one by one: size and step, of the dilation, outputs of a phase across, bytes of a pixel, room behind it."""
    times = math.prod(max(1, taps / by) for taps, by in zip(kernel, step, strict=True))
    by_two = (1, 3, 5, 7) if isa == "baseline" else (1, 3, 4, 5, 7)
    in_table, wide = kernel[1] in ((), (1, 2, 3, 5, 7), by_two)[step[1] if step[1] < 3 else 0], isa.startswith("avx512")
    if phase <= (4 if in_table or step[1] > 1 else 6) * (0.5 if wide and far else 0.625) and (isa != "baseline" or not in_table):
        return True
    near = pixel <= 512 or (pixel <= 1536 and room) or (phase <= 3.5 and not far)
    if wide and kernel in ((2, 2), (3, 3)) and near and (phase <= 3.5 or 4.5 <= phase <= 5.75):
        return True
    if not in_table:
        return times <= (2.4 if wide and not far else 3)
    return isa != "baseline" and far and math.prod(kernel) > 1 and times <= 1.5


def one_by_one(plan, kernel, isa):
    """Whether `explain` says that outputs are computed so, 2x2 and 3x3 with AVX-512 by D15."""
    by_rows = tuple(kernel) in ((2, 2), (3, 3)) and isa.startswith("avx512")
    assert ("output by output" if by_rows else "row of outputs by row of outputs") not in plan.explain()
    return ("row of outputs by row of outputs" if by_rows else "output by output") in plan.explain()


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d13_filters_that_share_little(isa, side):
    """D13: computed output by output, where no tile has their width and step, if they multiply an input at most 3 times (2.4 times in caches with AVX-512)."""
    found = set()
    for place, (kernel, step) in enumerate(
        product(((1, 3), (1, 7), (3, 1), (2, 3), (4, 4), (5, 5), (6, 6), (7, 7), (3, 5), (5, 2)), ((1, 3), (3, 3), (2, 3), (4, 4), (3, 2), (5, 6)))
    ):
        # Within half of any second-level cache.
        channels, size = (64, 131, 144, 176)[place % 4], (8 + place % 5, 11 + place % 7)
        values, weights, bias = random((1, *size, channels), place), random((*kernel, channels, 1), 2), random(channels, 3)
        steps = {"stride": step, "dilation": (1, 1), "padding": ((place % 3, 2), (place % 2, 3))}
        if any(n + sum(sides) < taps for n, sides, taps in zip(size, steps["padding"], kernel, strict=True)):
            continue
        shape = [out_size(n, k, s, 1, *p) for n, k, s, p in zip(size, kernel, step, steps["padding"], strict=True)]
        out = guarded_array(np.full((1, *shape, channels), np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, threads=2, isa=isa, **steps)
        plan(guarded_array(values, side), out)
        assert_close(out, values, weights, bias, **steps)
        # One row of taps has no step down, and images of one column are rows.
        taken = [1 if taps == 1 else s for taps, s in zip(kernel, step, strict=True)]
        if shape[1] > 1:
            assert one_by_one(plan, kernel, isa) == by_outputs(kernel, taken, isa), (kernel, step)
            found.add(one_by_one(plan, kernel, isa))
        weights[0, 0] = np.inf
        got = np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, isa=isa, **steps))
        assert not np.isnan(got).any()
    assert found == {False, True}


@every_isa
def test_d13_filters_that_share_little_far_away(isa):
    """D13: with vectors of 32 bytes and more also beyond the second-level cache, if they multiply an input at most 1.5 times, and not once alone (1x1)."""
    kernels = [((1, 3), (1, 2)), ((3, 1), (2, 1)), ((2, 3), (2, 2)), ((3, 3), (2, 2)), ((1, 1), (1, 1)), ((5, 5), (3, 3)), ((1, 2), (1, 1))]
    for (kernel, step), machine in product(kernels, (*MACHINES, HALVING)):
        values, weights = random((1, 9, 20, 80), 1), random((*kernel, 80, 1), 2)
        steps = steps_of(values.shape[1:3], kernel, step, (1, 1))
        with ways(*machine, 1):
            plan = nd.DepthwiseConv2d(weights, stride=step, isa=isa, threads=2)
            assert_close(plan(values), values, weights, None, **steps)
        others = kernel == (5, 5) or machine != HALVING
        assert one_by_one(plan, kernel, isa) == (others and by_outputs(kernel, step, isa, far=True, pixel=320)), (kernel, step, machine)


@every_isa
@pytest.mark.parametrize(("kernel", "step"), [((1, 3), (1, 2)), ((3, 1), (2, 1)), ((2, 3), (2, 2))])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_d13_what_shares_little_where_half_a_vector_takes_half_of_its_time(isa, kernel, step, dtype):
    """D13: on D12's machines only pixels that share one or two sets (D10), and, from memory, filters of one column and halves."""
    for channels, distance in product((64, 512, 1024), range(4)):
        values, weights = random((1, 9, 20, channels), 1).astype(dtype), random((*kernel, channels, 1), 2).astype(dtype)
        with ways(*HALVING, distance):
            plan = nd.DepthwiseConv2d(weights, stride=step, isa=isa)
            out = np.asarray(plan(values))
        want = np.asarray(nd.DepthwiseConv2d(weights.astype(np.float32), stride=step, isa="baseline")(values.astype(np.float32)))
        assert abs(out.astype(np.float64) - want).max() <= (1e-5 if dtype == np.float32 else 2e-3) * abs(want).max()
        shared = channels * np.dtype(dtype).itemsize >= 2048
        little = distance > 0 and (shared or (distance == 3 and (kernel[1] == 1 or dtype == np.float16)))
        # Pixels of one set are computed in scratch by filters of several rows and columns (D10).
        if isa != "baseline" and not (channels == 1024 and dtype == np.float32 and min(kernel) > 1):
            assert ("output by output" in plan.explain()) == little, (channels, distance, plan.explain())


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d14_dilated_filters_of_few_columns(isa, side):
    """D14: So are dilated filters of which a row of outputs, in a phase, has at most five eighths of the columns of a tile."""
    found = set()
    for place, (kernel, dilation, width) in enumerate(
        product(((3, 3), (1, 3), (3, 5), (4, 4), (7, 7), (2, 6), (9, 2)), ((2, 2), (3, 4), (1, 7), (6, 6)), (3, 8, 10, 15, 17, 26))
    ):
        channels, size, stride = (48, 131, 144, 67)[place % 4], (5 + place % 9, width), ((1, 1), (1, 2), (2, 1))[place % 3]
        values, weights, bias = random((1, *size, channels), place), random((*kernel, channels, 1), 2), random(channels, 3)
        steps = steps_of(size, kernel, stride, dilation)
        if place % 2:
            steps["padding"] = tuple((reach * by, place % 4) for reach, by in zip(kernel, dilation, strict=True))
        shape = [out_size(n, k, s, d, *p) for n, k, s, d, p in zip(size, kernel, stride, dilation, steps["padding"], strict=True)]
        if min(shape) < 2 or width < 2:
            continue
        out = guarded_array(np.full((1, *shape, channels), np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, threads=1 + place % 2, isa=isa, **steps)
        plan(guarded_array(values, side), out)
        assert_close(out, values, weights, bias, **steps)
        across = dilation[1] // math.gcd(dilation[1], stride[1]) if kernel[1] > 1 else 1
        steps_taken = [(s // math.gcd(d, s) if k > 1 else s) for k, d, s in zip(kernel, dilation, stride, strict=True)]
        if "reach the image" not in plan.explain():
            phase = shape[1] / across if across > 1 else math.inf
            want = (isa != "baseline" or channels >= 64) and by_outputs(kernel, steps_taken, isa, phase=phase, pixel=4 * channels)
            assert one_by_one(plan, kernel, isa) == want, (kernel, dilation, size, stride)
            found.add(want)
        weights[0, 0] = np.inf
        assert not np.isnan(np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, isa=isa, **steps))).any()
    assert found == {False, True}


@every_isa
def test_d14_dilated_filters_of_few_columns_far_away(isa):
    """D14: beyond the second-level cache with vectors of 64 bytes half, 2 or 3, with those of 32 where a phase has fewer than 4 rows of outputs."""
    height, found = 40, set()
    for width, dilation in ((30, (18, 15)), (30, (18, 14)), (30, (18, 12)), (30, (18, 11)), (30, (10, 15)), (30, (11, 15)), (16, (20, 8))):
        # Pixels of more than 512 bytes: D15 has shorter ones.
        channels = max(144, 16 * (2 + SECOND_LEVEL // (8 * height * width * 16)))
        values, weights = random((1, height, width, channels), 1), random((3, 3, channels, 1), 2)
        plan = nd.DepthwiseConv2d(weights, dilation=dilation, isa=isa)
        assert_close(plan(values), values, weights, None, **steps_of((height, width), (3, 3), (1, 1), dilation))
        near = width / dilation[1] <= (2 if isa.startswith("avx512") else 2.5) and (isa != "avx2" or height < 4 * dilation[0])
        assert one_by_one(plan, (3, 3), isa) == (near and isa != "baseline"), (width, dilation)
        found.add(near)
    assert found == {False, True}


@every_isa
@pytest.mark.parametrize(
    ("taps", "stride", "dilation", "channels", "alone"),
    [
        (2, 2, 1, 256, 12),
        (3, 3, 1, 300, 12),
        (2, 2, 1, 240, 0),
        (3, 1, 10, 256, 0),
        (2, 2, 1, 512, 8),
        (3, 4, 1, 512, 8),
        (2, 2, 1, 1024, 8),
        (3, 3, 1, 1024, 8),
    ],
)
def test_d15_long_pixels_output_by_output(isa, taps, stride, dilation, channels, alone):
    """D15: Undilated filters (..) stay as D13 has them: on pixels of 1 KiB and more (..), and where pixels share one or two sets of 8 ways."""
    values, weights, bias = random((1, 12, 15, channels), 1), random((taps, taps, channels, 1), 2), random(channels, 3)
    got = set()
    for count, amd in (*MACHINES, HALVING):
        with ways(count, amd, BEYOND):
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, isa=isa)
            out = np.asarray(plan(values))
            got.add(out.tobytes())
            text = plan.explain()
            assert "copied into scratch" not in text
            if LANES.get(isa, 16) == 16:
                by_output = (amd or count == 8) and 0 < alone <= count
                assert ("output by output" in text, "row of outputs by row" in text) == (by_output, not by_output)
    assert_close(out, values, weights, bias, **steps_of((12, 15), (taps, taps), (stride, stride), (dilation, dilation)))
    assert len(got) == 1


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d15_rows_of_outputs(isa, side):
    """D15: a row of outputs of two blocks of channels before the next two; what is outside the image is left out; one block left over, and parts of one."""
    found = set()
    for place, (taps, channels, (size, dilation, stride)) in enumerate(
        product(
            (2, 3),
            (32, 48, 131, 208),
            (
                ((9, 14), (3, 5), (1, 1)),
                ((7, 12), (9, 11), (1, 1)),
                ((13, 17), (1, 6), (1, 1)),
                ((11, 31), (4, 9), (2, 1)),
                ((9, 13), (1, 1), (3, 3)),
                ((8, 11), (2, 5), (1, 2)),
                ((6, 22), (7, 4), (1, 1)),
                ((9, 85), (4, 4), (6, 6)),
            ),
        )
    ):
        values, weights, bias = random((2, *size, channels), place), random((taps, taps, channels, 1), 2), random(channels, 3)
        steps = steps_of(size, (taps, taps), stride, dilation)
        if place % 2:
            # None of the taps of some outputs is inside.
            steps["padding"] = (((3 + place % 4 * 4) * dilation[0], 1), (place % 5, 3 * dilation[1]))
        shape = [out_size(n, taps, s, d, *p) for n, s, d, p in zip(size, stride, dilation, steps["padding"], strict=True)]
        out = guarded_array(np.full((2, *shape, channels), np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, threads=1 + place % 2, activation="relu6" if place % 3 else None, isa=isa, **steps)
        plan(guarded_array(values, side), out)
        want, bound = depthwise_float(values, weights, bias, (0, 6) if place % 3 else (-math.inf, math.inf), **steps)
        assert (abs(out - want) <= bound).all(), (taps, channels, size, dilation, stride)
        found.add("row of outputs by row of outputs" in plan.explain())
        # The same bits as of channels that are too few.
        few = nd.DepthwiseConv2d(weights[:, :, :16], bias[:16], activation=plan.activation, isa=isa, **steps)
        assert (np.asarray(few(np.ascontiguousarray(values[..., :16]))) == out[..., :16]).all()
        assert "row of outputs by row of outputs" not in few.explain()
        # A weight that meets nothing but what is outside reaches no result.
        weights[0, 0] = np.inf
        assert not np.isnan(np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, isa=isa, **steps))).any()
    assert found == {False, isa.startswith("avx512")}


@every_isa
def test_d15_where_pixels_have_room(isa):
    """D15: of pixels of up to 512 bytes, or of up to 1.5 KiB with room beside their channels, or of any in caches that have at most 3.5."""
    for taps, channels, extents, room in product((2, 3), (64, 128, 144, 352, 416), ((28, 8), (28, 7), (25, 5), (27, 6), (36, 6)), (False, True)):
        values, weights = random((1, 5, extents[0], channels), 1), random((taps, taps, channels, 1), 2)
        plan = nd.DepthwiseConv2d(weights, dilation=(1, extents[1]), isa=isa)
        x = np.zeros((1, 5, extents[0], channels + 16 * room), np.float32)[..., :channels]
        x[...] = values
        assert_close(plan(x), values, weights, None, **steps_of((5, extents[0]), (taps, taps), (1, 1), (1, extents[1])))
        phase, pixel = extents[0] / extents[1], 4 * (channels + 16 * room)
        # Within half of any second-level cache.
        want = by_outputs((taps, taps), (1, 1), isa, phase=phase, pixel=pixel, room=room)
        assert one_by_one(plan, (taps, taps), isa) == want, (taps, channels, extents, room)
    # As many as there are, in two phases, where windows share nothing (D13).
    plan = nd.DepthwiseConv2d(random((3, 3, 64, 1), 2), stride=6, dilation=4, isa=isa)
    plan(random((1, 12, 85, 64), 1))
    assert one_by_one(plan, (3, 3), isa)


@every_isa
@pytest.mark.parametrize(("channels", "room"), [(64, 0), (128, 0), (160, 0), (160, 16), (368, 16), (384, 16)])
def test_d15_at_any_distance(isa, channels, room):
    """D15: at any distance, of pixels of up to 512 bytes, or of up to 1.5 KiB with room beside their channels, at most 3.5, or 4.5 to 5.75."""
    height = SECOND_LEVEL // (8 * 28 * channels) + 9
    values, weights = random((1, height, 28, channels), 1), random((3, 3, channels, 1), 2)
    x = np.zeros((1, height, 28, channels + room), np.float32)[..., :channels]
    x[...] = values
    for dilation in (5, 6, 8):
        plan = nd.DepthwiseConv2d(weights, dilation=dilation, isa=isa)
        out = plan(x)
        assert "in caches" not in plan.explain()
        want = isa.startswith("avx512") and by_outputs((3, 3), (1, 1), isa, far=True, phase=28 / dilation, pixel=4 * (channels + room), room=bool(room))
        assert one_by_one(plan, (3, 3), isa) == want, dilation
        # The same bits as of few enough for any second-level cache.
        few = nd.DepthwiseConv2d(weights[:, :, :16], dilation=dilation, isa=isa)
        assert (np.asarray(few(values[..., :16].copy())) == np.asarray(out)[..., :16]).all()


def is_long(taps, outputs, rows=2):
    """Whether D16 has a filter of so many taps in a row, no wider than D1's, for so many outputs of a row, or of a phase of it."""
    near = 10 * (taps - 1) >= 3 * outputs if taps < (11 if rows == 1 else 12) else 8 * (taps - 1) >= outputs
    return taps in (6, *range(8, 59)) and outputs >= 7 and near and 10 * 8 * math.ceil(outputs / 8) <= 11 * 6 * math.ceil(outputs / 6)


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d16_long_filters(isa, side):
    """D16: 8 outputs of a row, or of a phase of it, at a time, each from the taps that it has inside, two rows of outputs side by side."""
    for place, (channels, (size, taps, stride, dilation)) in enumerate(
        product(
            (16, 40, 131, 208),
            (
                ((3, 14), (1, 9), (1, 1), (1, 1)),
                ((7, 7), (9, 13), (1, 1), (1, 1)),
                ((2, 30), (1, 31), (1, 1), (1, 1)),
                ((7, 16), (9, 9), (1, 1), (1, 1)),
                ((6, 15), (2, 6), (3, 1), (1, 1)),
                ((9, 8), (4, 13), (2, 1), (2, 1)),
                ((8, 45), (3, 10), (1, 1), (3, 3)),
                ((5, 32), (12, 8), (1, 2), (1, 2)),
                ((2, 75), (1, 70), (1, 1), (1, 1)),
            ),
        )
    ):
        values, weights, bias = random((2, *size, channels), place), random((*taps, channels, 1), 2), random(channels, 3)
        steps = steps_of(size, taps, stride, dilation)
        if place % 3 == 0:
            # None of the taps of some rows is inside, one of some columns.
            reach = (taps[1] - 1) * dilation[1]
            steps["padding"] = ((taps[0] * dilation[0] + 1, 2), (reach, max(0, reach - size[1] % 8)) if place % 2 else (reach // 3, reach - reach // 3))
        shape = [out_size(n, t, s, d, *p) for n, t, s, d, p in zip(size, taps, stride, dilation, steps["padding"], strict=True)]
        out = guarded_array(np.full((2, *shape, channels), np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, threads=1 + place % 2, activation="relu6" if place % 4 else None, isa=isa, **steps)
        plan(guarded_array(values, side), out)
        want, bound = depthwise_float(values, weights, bias, (0, 6) if place % 4 else (-math.inf, math.inf), **steps)
        assert (abs(out - want) <= bound).all(), (taps, channels, size, dilation, stride)
        outputs = shape[1] * stride[1] // dilation[1] if stride[1] < dilation[1] else shape[1]
        assert ("2 rows of 8 outputs" in plan.explain()) == (isa.startswith("avx512") and (taps[1] > 58 or is_long(taps[1], outputs))), (taps, outputs)
        # The same bits as of channels in blocks, which have tiles, or bands if tiles are too narrow.
        x = nd.reorder(nd.asarray(values[..., :16].transpose(0, 3, 1, 2).copy()), "nChw16c")
        tiles = nd.DepthwiseConv2d(weights[:, :, :16], bias[:16], activation=plan.activation, data_format="NCHW", isa=isa, **steps)
        if taps[1] <= 58:
            assert (np.asarray(tiles(x)).transpose(0, 2, 3, 1) == out[..., :16]).all()
            assert "2 rows of 8 outputs" not in tiles.explain()
        # A weight that meets nothing but what is outside reaches no result, and an input that is not finite no output that has no tap there.
        weights[0, 0] = np.inf
        assert not np.isnan(np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, isa=isa, **steps))).any()
        values[:, -1, -1] = np.inf
        finite = np.isfinite(np.asarray(nd.depthwise_conv2d(values, np.ones_like(weights), isa=isa, **steps)))
        values[:, -1, -1] = 1
        marked = np.zeros_like(values)
        marked[:, -1, -1] = 1
        assert (finite == (np.asarray(nd.depthwise_conv2d(marked, np.ones_like(weights), isa=isa, **steps)) == 0)).all()


@every_isa
def test_d16_which_filters_are_long(isa):
    """D16: by filters of 6 taps in a row and more all of which but one are as many as three tenths of the outputs, unless eights compute a tenth more."""
    found = set()
    sizes = (6, 7, 8, 12, 14, 16, 21, 22, 27, 28, 30, 31, 32, 33, 34, 55, 56, 80, 81, 88, 89, 96, 97, 160, 161)
    for rows, taps, outputs in product((1, 2), (4, 6, 7, 8, 9, 10, 11, 12, 13, 21), sizes):
        if rows == 1 and taps < 6:
            continue
        plan = nd.DepthwiseConv2d(random((rows, taps, 32, 1)), padding="same", isa=isa)
        long = isa.startswith("avx512") and is_long(taps, outputs, rows)
        assert ("2 rows of 8 outputs" in plan.explain(np.zeros((1, 3, outputs, 32), np.float32))) == long, (rows, taps, outputs)
        found.add(long)
    # A row alone, and rows of pixels that share two sets.
    for taps, outputs in product((11, 15, 21, 31), (28, 32, 40, 56, 64, 80, 88)):
        for machine in (*MACHINES, HALVING):
            with ways(*machine):
                plan = nd.DepthwiseConv2d(random((1, taps, 32, 1)), padding="same", isa=isa)
                long = isa.startswith("avx512") and is_long(taps, outputs, 1) and (machine != HALVING or 5 * (taps - 1) >= 2 * outputs)
                assert ("2 rows of 8 outputs" in plan.explain(np.zeros((1, 1, outputs, 32), np.float32))) == long, (taps, outputs)
    for machine, outputs in product((*MACHINES, HALVING), (14, 16, 32)):
        with ways(*machine):
            plan = nd.DepthwiseConv2d(random((1, 13, 512, 1)), padding="same", isa=isa)
            long = isa.startswith("avx512") and is_long(13, outputs, 1) and (outputs <= 16 or machine != HALVING)
            assert ("2 rows of 8 outputs" in plan.explain(np.zeros((1, 3, outputs, 512), np.float32))) == long, (machine, outputs)
    # Filters of one column, steps, multipliers and blocks have others.
    for shape, steps in (((21, 1, 32, 1), {}), ((2, 13, 32, 1), {"stride": (1, 2)}), ((2, 13, 16, 2), {}), ((2, 13, 32, 1), {"padding": ((0, 0), (13, 0))})):
        plan = nd.DepthwiseConv2d(random(shape), **{"padding": "same", **steps}, isa=isa)
        assert "2 rows of 8 outputs" not in plan.explain(np.zeros((1, 16, 16, shape[2]), np.float32)), (shape, steps)
    assert found == {False, isa.startswith("avx512")}


@every_isa
def test_d16_beyond_the_second_level_cache(isa):
    """D16: the bits do not depend on it: nor on what is fetched ahead."""
    height = SECOND_LEVEL // (8 * 32 * 64) + 9
    values, weights = random((1, height, 32, 64), 1), random((3, 13, 64, 1), 2)
    plan = nd.DepthwiseConv2d(weights, padding="same", isa=isa)
    out = np.asarray(plan(values))
    assert "in caches" not in plan.explain()
    few = nd.DepthwiseConv2d(weights[:, :, :16], padding="same", isa=isa)
    assert (np.asarray(few(values[..., :16].copy())) == out[..., :16]).all()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("channels", [8, 16, 19, 63, 64, 83, 130])
def test_d1_filters_that_share_no_inputs(isa, side, channels):
    """D1: any height, any dilation, any width and stride: outputs are computed one by one where windows do not overlap."""
    for kernel, stride, dilation, padding in product((2, 3), ((2, 2), (3, 3), (4, 5)), (1, 2), ("same", ((3, 0), (1, 4)))):
        size = (9 + stride[0], 13)
        values, weights, bias = random((2, *size, channels), 1), random((kernel, kernel, channels, 1), 2), random(channels, 3)
        steps = steps_of(size, (kernel, kernel), stride, (dilation, dilation))
        if padding != "same":
            steps["padding"] = padding
        shape = [out_size(n, kernel, s, dilation, *p) for n, s, p in zip(size, stride, steps["padding"], strict=True)]
        out = guarded_array(np.full((2, *shape, channels), np.nan, np.float32), side)
        plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, padding=padding, threads=2, isa=isa)
        plan(guarded_array(values, side), out)
        assert_close(out, values, weights, bias, **steps)
        wide = channels > (63 if isa == "baseline" else LANES.get(isa, 16))
        taken, phase = [s // math.gcd(s, dilation) for s in stride], shape[1] * math.gcd(stride[1], dilation) / dilation
        phase = phase if dilation > math.gcd(stride[1], dilation) else math.inf
        assert one_by_one(plan, (kernel, kernel), isa) == (wide and by_outputs((kernel, kernel), taken, isa, phase=phase, pixel=4 * channels))
        weights[0, 0] = np.inf
        got = np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, stride=stride, dilation=dilation, padding=padding, isa=isa))
        assert not np.isnan(got).any()


@every_isa
def test_d1_wider_filters_go_through_bands(isa):
    """D1: any width and stride with `width + 5 * stride <= 63` in steps of the dilation; wider ones where D16 has them."""
    for width, stride, dilation, in_place in ((58, 1, 1, True), (59, 1, 1, False), (53, 2, 1, True), (54, 2, 1, False), (58, 3, 3, True), (59, 3, 3, False)):
        plan = nd.DepthwiseConv2d(random((1, width, 16, 1)), stride=(1, stride), dilation=(1, dilation), isa=isa)
        long = isa.startswith("avx512") and stride == dilation
        assert ("in place" in plan.explain(np.zeros((1, 2, 90, 16), np.float32)).splitlines()[1]) == (in_place or long)


def test_d1_weights_that_are_not_finite_meet_no_padding():
    """D1: any width and stride."""
    weights = np.ones((1, 9, 16, 1), np.float32)
    weights[0, 0] = np.nan
    got = np.asarray(nd.depthwise_conv2d(np.ones((1, 1, 12, 16), np.float32), weights))
    assert np.isnan(got[0, 0, 4:]).all()
    assert (got[0, 0, :4, 0] == [5, 6, 7, 8]).all()


def tagged(shape, block):
    """Blocks of channels on (N, C, H, W), or channels last where `block` is None."""
    return nd.ShapeDescriptor.from_tag(shape, "acdb" if block is None else f"aBcd{block}b")


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("channels", [1, 7, 8, 16, 17, 32, 40])
def test_d2_blocks_are_computed_where_they_lie(isa, side, channels):
    """D2: Input and output may each have their channels in blocks, with any strides and paddings, or one of them plain."""
    size = (6, 9)
    for kernel, stride, dilation in (
        ((3, 3), (1, 1), (1, 1)),
        ((3, 3), (2, 2), (1, 1)),
        ((5, 5), (1, 1), (2, 2)),
        ((1, 4), (1, 3), (1, 1)),
        ((7, 7), (1, 1), (1, 1)),
    ):
        values, weights, bias = random((2, *size, channels), 1), random((*kernel, channels, 1), 2), random(channels, 3)
        steps = steps_of(size, kernel, stride, dilation)
        plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, data_format="NCHW", isa=isa)
        x_shape = (2, channels, *size)
        y_shape = (2, channels, *[out_size(n, k, s, d, *p) for n, k, s, d, p in zip(size, kernel, stride, dilation, steps["padding"], strict=True)])
        for from_block, to_block in ((8, 8), (16, 16), (4, 16), (16, 8), (16, None), (None, 8)):
            if (from_block is None and channels % 8) or (to_block is None and channels < 16):
                continue
            layout = tagged(x_shape, from_block)
            x = nd.NdArray(layout, guarded(layout.allocLength() * 4, side))
            x.fill_padding(np.nan)
            x[...] = values.transpose(0, 3, 1, 2)
            layout = tagged(y_shape, to_block)
            out = nd.NdArray(layout, guarded(layout.allocLength() * 4, side))
            out.fill_padding(5)
            plan(x, out)
            assert_close(out.to_numpy().transpose(0, 2, 3, 1), values, weights, bias, **steps)
            assert out.check_padding(5)
            assert " 0 bytes of scratch" in plan.explain()


@every_isa
def test_d2_views_halos_and_other_orders(isa):
    """D2: with any strides and paddings."""
    weights = random((3, 3, 16, 1), 2)
    plan = nd.DepthwiseConv2d(weights, data_format="NCHW", isa=isa)
    for tag in ("aBcd8b", "acdB8b", "cdaB8b", "aBdc16b"):
        x = nd.NdArray(nd.ShapeDescriptor.from_tag((2, 48, 9, 8), tag, paddings=(0, 0, 3, 2), padding_offsets=(0, 0, 1, 1)))
        x.fill_padding(np.inf)
        x[...] = random(x.shape, 1)
        for index in (np.s_[:, 16:32], np.s_[:, 16:32, 1:-1, 2:7], np.s_[1:, 32:], np.s_[:, :16, ::2, ::-1]):
            view = x[index]
            values = view.to_numpy().transpose(0, 2, 3, 1)
            steps = steps_of(values.shape[1:3], (3, 3), (1, 1), (1, 1))
            assert view.descriptor.inner_blocks
            assert_close(plan(view).to_numpy().transpose(0, 2, 3, 1), values, weights, None, **steps)


@every_isa
def test_d2_threads_and_repeated_calls(isa):
    """D2: they are computed where they lie."""
    weights = random((3, 3, 32, 1), 2)
    one, many = (nd.DepthwiseConv2d(weights, data_format="NCHW", threads=threads, isa=isa) for threads in (1, 3))
    for block in (8, 16, 8):
        x = nd.NdArray(tagged((2, 32, 50, 50), block))
        x[...] = random(x.shape, 1)
        out = nd.NdArray(x.descriptor)
        for _ in range(2):
            assert many(x, out) is out
            assert (out.to_numpy() == one(x).to_numpy()).all()


@every_isa
@pytest.mark.parametrize("block", [4, 8, 16, 32])
def test_d3_the_fastest_instruction_set_whose_vectors_fill_the_blocks(isa, block):
    """D3: Blocks are computed by the fastest instruction set, up to the plan's, whose vectors fill them; `explain()` names it."""
    want = [level for level in ISAS[: ISAS.index(isa) + 1] if block % LANES.get(level, 16) == 0][-1]
    for channels in (5, 17, 32, 67):
        plan = nd.DepthwiseConv2d(random((3, 3, channels, 1)), data_format="NCHW", isa=isa)
        plan(nd.NdArray(tagged((1, channels, 5, 5), block)))
        assert plan.explain().splitlines()[1].startswith(f"kernel    {want}, {LANES.get(want, 16)} channels a step"), channels


@every_isa
@pytest.mark.parametrize("dirt", [7.0, math.inf, math.nan])
def test_d4_tails_stay_apart(isa, dirt):
    """D4: Block tails of the input never reach a result, those of `out` stay as they are."""
    for channels, block in product((3, 9, 17, 31), (4, 8, 16)):
        values, weights = random((1, channels, 5, 6), 1), random((3, 3, channels, 1), 2)
        x, out = nd.NdArray(tagged(values.shape, block)), nd.NdArray(tagged(values.shape, block))
        x.fill_padding(dirt)
        x[...] = values
        out.fill_padding(dirt)
        nd.DepthwiseConv2d(weights, data_format="NCHW", isa=isa)(x, out)
        assert out.check_padding(dirt)
        assert x.check_padding(dirt)
        assert_close(out.to_numpy().transpose(0, 2, 3, 1), values.transpose(0, 2, 3, 1), weights, None, **steps_of((5, 6), (3, 3), (1, 1), (1, 1)))


def test_d5_the_result_has_the_blocks_of_the_input():
    """D5: Without `out`, a blocked input gives a dense output with the same blocks and memory order."""
    plan = nd.DepthwiseConv2d(random((3, 3, 17, 1)), stride=2, data_format="NCHW")
    for tag in ("aBcd8b", "aBcd16b", "acdB16b", "cBda8b"):
        x = nd.NdArray(nd.ShapeDescriptor.from_tag((2, 17, 5, 6), tag, paddings=(0, 0, 2, 2), padding_offsets=(0, 0, 1, 1)))
        assert plan(x).descriptor == nd.ShapeDescriptor.from_tag((2, 17, 3, 3), tag)


def test_d5_channels_may_be_the_last_axis():
    """D5: Without `out`, a blocked input gives a dense output with the same blocks and memory order."""
    values, weights = random((1, 5, 6, 17), 1), random((3, 3, 17, 1), 2)
    x = nd.NdArray(nd.ShapeDescriptor.from_tag(values.shape, "aDbc16d"))
    x[...] = values
    got = nd.depthwise_conv2d(x, weights)
    assert got.descriptor == x.descriptor
    assert_close(got.to_numpy(), values, weights, None, **steps_of((5, 6), (3, 3), (1, 1), (1, 1)))


@pytest.mark.parametrize("tag", ["ABcd4a8b", "aBCd4b4c", "abCd4c", "aBcd3b"])
def test_d6_other_blocks_are_refused(tag):
    """D6: Other blocks are refused by name."""
    plan = nd.DepthwiseConv2d(random((3, 3, 17, 1)), data_format="NCHW")
    blocks = nd.ShapeDescriptor.from_tag((1, 17, 4, 4), tag)
    with pytest.raises(nd.UnsupportedLayoutError, match=r"inner blocks \(\(.*reorder"):
        plan(nd.NdArray(blocks))


def test_d6_element_types_multipliers_and_plain_neighbours():
    """D6: other element types with blocks, and blocks beside a plain layout without room for whole vectors are refused by name."""
    blocked, plain = nd.ShapeDescriptor.from_tag((1, 17, 4, 4), "aBcd16b"), nd.ShapeDescriptor.from_tag((1, 17, 4, 4), "acdb")
    plan = nd.DepthwiseConv2d(random((3, 3, 17, 1)), data_format="NCHW")
    with pytest.raises(nd.UnsupportedLayoutError, match=r"from inner blocks \(\) to .* needs room for whole vectors, 17 channels have none .* 'acdb'"):
        plan(nd.NdArray(plain), nd.NdArray(blocked))
    with pytest.raises(nd.UnsupportedLayoutError, match="must lie side by side, these are 16 apart"):
        plan(nd.NdArray(blocked), np.empty((1, 17, 4, 4), np.float32))
    with pytest.raises(nd.UnsupportedLayoutError, match="the multiplier must be 1: 2"):
        nd.DepthwiseConv2d(random((3, 3, 17, 2)), data_format="NCHW")(nd.NdArray(blocked))
    with pytest.raises(nd.UnsupportedLayoutError, match="of float32 are taken"):
        nd.DepthwiseConv2d(np.ones((3, 3, 17, 1)), data_format="NCHW")(nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 4, 4), "aBcd16b", "float64")))
    quantization = nd.Quantization(input=(1.0, 0), weights=1.0, output=(1.0, 0))
    int8 = nd.NdArray(nd.ShapeDescriptor.from_tag((1, 17, 4, 4), "aBcd16b", "int8"))
    with pytest.raises(nd.UnsupportedLayoutError, match="of float32 are taken"):
        nd.DepthwiseConv2d(np.ones((3, 3, 17, 1), np.int8), data_format="NCHW", quantization=quantization)(int8)


def at_address(values, pitch, skip, side):
    """Copy `values` to guarded memory, `skip` elements beyond a line of 64 bytes or right before the guard, pixels `pitch` elements apart."""
    _, height, width, channels = values.shape
    count = (height * width - 1) * pitch + channels
    memory = np.frombuffer(guarded((skip + count) * values.itemsize, side), values.dtype, count, skip * values.itemsize)
    copy = np.lib.stride_tricks.as_strided(memory, values.shape, [values.itemsize * n for n in (height * width * pitch, width * pitch, pitch, 1)])
    copy[...] = values
    return copy


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("machine", [(12, False), HALVING], ids=str)
def test_d7_the_same_bits_at_every_address(isa, side, dtype, machine):
    """D7: the bits are the same at every address."""
    leads = set()
    for (channels, pitch), kernel, stride, dilation, width in (
        ((128, 128), (3, 3), 1, 1, 9), ((131, 192), (3, 3), 2, 1, 9), ((144, 160), (5, 5), 1, 1, 9), ((257, 320), (3, 4), 1, 2, 9),
        ((160, 160), (7, 1), 1, 1, 9), ((70, 80), (3, 3), 1, 1, 9), ((64, 64), (2, 3), 1, 2, 33),
        ((144, 144), (3, 3), 2, 1, 34), ((150, 160), (3, 3), 2, 1, 14),
        ((32, 32), (3, 3), 2, 1, 34), ((37, 48), (3, 3), 2, 1, 17), ((48, 48), (2, 3), 2, 1, 18),
        ((144, 160), (3, 3), 1, 4, 9), ((131, 144), (3, 3), 1, 4, 14), ((128, 128), (3, 3), 3, 1, 20), ((257, 320), (2, 2), 2, 1, 11),
    ):  # fmt: skip
        values, weights, bias = (random(shape, i).astype(dtype) for i, shape in enumerate(((1, 5, width, channels), (*kernel, channels, 1), (channels,))))
        options = {"stride": stride, "dilation": dilation, "activation": "relu6" if stride > 1 else None, "isa": isa}
        with ways(*machine):
            plan, one = (nd.DepthwiseConv2d(weights, bias, threads=threads, **options) for threads in (1, 2))
            x = nd.NdArray(plan.input_descriptor(values.shape))
            x[...] = values
            want = np.asarray(one(x))
            for x_skip, y_skip in ((0, 0), (4, 4), (1, 9), (12, 0), (0, 15), (8, 24), (4, 4)):
                out = at_address(np.full(want.shape, 7, dtype), pitch, y_skip, side)
                plan(at_address(values, pitch, x_skip, side), out)
                assert out.tobytes() == want.tobytes()
                leads.add(lead_in(plan.explain()))
    halves = dtype == "float16" and machine == HALVING and LANES.get(isa, 16) == 16
    assert (len(leads) > 1) == (LANES.get(isa, 16) > (8 if dtype == "float64" else 4) and not halves)


def differing(size, outputs, options, count, amd):
    """Tell what `explain` says on such a machine where `x` and `out` lie differently, 4 and 9 elements beyond a line."""
    with ways(count, amd):
        plan = nd.DepthwiseConv2d(**options)
        plan(at_address(random((1, *size, 144), 1), 144, 4, "start"), at_address(np.zeros((1, *outputs, 144), np.float32), 144, 9, "start"))
        return plan.explain()


def lead_in(text):
    """Channels before the first whole vector, as `explain` has them; empty where there are none."""
    return text.partition("vectors from ")[2].split(" ")[0]


@every_isa
def test_d7_explain_looks_at_the_address(isa):
    """D7: the address of `out` says where, or that of `x` where the step along the row is 2 or more."""
    plan = nd.DepthwiseConv2d(random((3, 3, 128, 1), 2), stride=2, isa=isa)
    leads = set()
    for skip in (0, 4, 12):
        x = at_address(random((1, 5, 9, 128), skip), 128, skip, "start")
        plan(x)
        assert lead_in(plan.explain(x)) == lead_in(plan.explain())
        leads.add(lead_in(plan.explain(x)))
    assert (len(leads) > 1) == (LANES.get(isa, 16) > 4)


@every_isa
@pytest.mark.parametrize(("kernel", "of_out"), [((1, 3), True), ((2, 3), True), ((1, 7), True), ((3, 3), False), ((2, 5), False)])
def test_d7_few_taps_by_steps_of_2(isa, kernel, of_out):
    """D7: that of `out` where a tile loads little for each output: (..) by a step of 2, up to 7 taps in all."""
    lanes = LANES.get(isa, 16)
    for count, amd in MACHINES:
        text = differing((5, 9), (5, 5), {"weights": random((*kernel, 144, 1), 2), "stride": (1, 2), "isa": isa}, count, amd)
        assert lead_in(text) == ("" if lanes == 4 else str(-(9 if of_out and lanes == 16 and not (count == 8 or amd) else 4) % lanes))


@every_isa
@pytest.mark.parametrize(("dilation", "of_out"), [(1, True), (2, True), (5, False)])
def test_d7_rows_of_outputs(isa, dilation, of_out):
    """D7: neither where D15 computes them nor where the first-level cache has 8 ways or fewer, or is AMD's."""
    lanes = LANES.get(isa, 16)
    for count, amd in MACHINES:
        text = differing((9, 12), (9, 12), {"weights": random((3, 3, 144, 1), 2), "dilation": dilation, "isa": isa}, count, amd)
        out = of_out and not (count == 8 or amd)
        assert lead_in(text) == ("" if lanes == 4 or (lanes == 8 and not of_out) else str(-(9 if out else 4) % lanes))


@every_isa
@pytest.mark.parametrize(
    ("kernel", "of_out"), [((5, 5), True), ((4, 4), True), ((1, 7), True), ((9, 1), True), ((2, 7), False), ((7, 7), False), ((1, 9), False)]
)
def test_d7_wide_filters(isa, kernel, of_out):
    """D7: that of `out` where a tile loads little for each output: without a step, up to 5 taps in a row, of one row 7."""
    lanes = LANES.get(isa, 16)
    for count, amd in MACHINES:
        text = differing((9, 14), (9, 14), {"weights": random((*kernel, 144, 1), 2), "isa": isa}, count, amd)
        assert lead_in(text) == ("" if lanes == 4 else str(-(9 if (lanes == 8 or of_out) and not (count == 8 or amd) else 4) % lanes))


@every_isa
@pytest.mark.parametrize(("kernel", "channels", "width", "aligned"), [
    ((1, 3), 48, 8, True), ((7, 1), 48, 8, True), ((1, 9), 48, 14, True), ((1, 3), 32, 9, False), ((1, 3), 48, 7, False),
    ((1, 1), 48, 9, True), ((1, 1), 32, 9, False)])  # fmt: skip
def test_d7_three_vectors_of_a_line(isa, kernel, channels, width, aligned):
    """D7: of float32 by one row or column without a step, and by one tap with any step, three."""
    plan = nd.DepthwiseConv2d(random((*kernel, channels, 1), 2), isa=isa)
    leads = set()
    for skip in (0, 4, 12):
        x, weights = random((1, 5, width, channels), skip), random((*kernel, channels, 1), 2)
        out = at_address(np.zeros_like(x), channels, skip, "start")
        plan(at_address(x, channels, skip, "start"), out)
        assert_close(out, x, weights, None, **steps_of((5, width), kernel, (1, 1), (1, 1)))
        leads.add(lead_in(plan.explain()))
    assert (len(leads) > 1) == (aligned and LANES.get(isa, 16) == 16)


@every_isa
@pytest.mark.parametrize(("kernel", "stride", "width", "aligned"), [
    ((3, 3), 1, 8, True), ((2, 2), 1, 9, True), ((3, 3), 1, 7, False), ((1, 3), 1, 7, False),
    ((3, 3), 2, 20, True), ((3, 3), 2, 14, False), ((3, 4), 1, 9, False)])  # fmt: skip
def test_d7_four_vectors_of_a_line(isa, kernel, stride, width, aligned):
    """D7: With vectors of 64 bytes and more than 7 outputs in a row fewer are: by filters of 2x2 to 3x3 four."""
    plan = nd.DepthwiseConv2d(random((*kernel, 64, 1), 2), stride=stride, isa=isa)
    leads = set()
    for skip in (0, 4, 12):
        x = at_address(random((1, 5, width, 64), skip), 64, skip, "start")
        plan(x, at_address(np.zeros((1, -(-5 // stride), -(-width // stride), 64), np.float32), 64, skip, "start"))
        leads.add(lead_in(plan.explain()))
    assert (len(leads) > 1) == (aligned if LANES.get(isa, 16) == 16 else LANES[isa] == 8)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("kernel", "stride", "channels", "width", "dtype", "alike", "apart"), [
    (5, 3, 48, 24, "float32", True, True), (9, 2, 70, 40, "float32", True, True), (3, 3, 48, 26, "float32", True, True), (4, 3, 90, 30, "float32", True, True),
    (9, 1, 96, 20, "float32", True, True), (7, 1, 101, 17, "float32", True, True), (5, 1, 96, 8, "float32", True, False),
    (4, 1, 100, 9, "float32", True, False), (5, 3, 32, 24, "float32", False, False), (5, 2, 48, 14, "float32", False, False),
    (5, 1, 80, 9, "float32", False, False), (5, 1, 96, 7, "float32", False, False), (5, 3, 48, 24, "float16", False, False)])  # fmt: skip
def test_d7_where_the_address_of_x_decides(isa, side, kernel, stride, channels, width, dtype, alike, apart):
    """D7: of other float32 six, by steps along both three, if both addresses say the same or that of `x` decides."""
    weights, pitch = random((kernel, kernel, channels, 1), 2).astype(dtype), -(-channels // 16) * 16
    for count, amd in MACHINES:
        leads, others = set(), set()
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(weights, stride=stride, isa=isa)
            for skip in (0, 4, 12):
                values = random((1, 5, width, channels), skip).astype(dtype)
                out = np.full((1, -(-5 // stride), -(-width // stride), channels), 7, dtype)
                want = np.asarray(plan(values)).copy()
                for found, other in ((leads, skip), (others, skip + 3)):
                    result = at_address(out, pitch, other, side)
                    plan(at_address(values, pitch, skip, side), result)
                    assert result.tobytes() == want.tobytes()
                    found.add(lead_in(plan.explain()))
        # Eight shorter vectors have another rule. Where caches are crowded the address of `x` decides for all; of 12 ways six vectors are eight, but by D16.
        if LANES.get(isa, 16) == 16 and side == "start":
            lined = alike and (stride > 1 or kernel == 9 or (count, amd) != (12, True))
            assert (len(leads) > 1, len(others) > 1) == (lined, lined and (apart or count == 8 or amd))


@every_isa
@pytest.mark.parametrize(("kernel", "stride", "channels", "apart"), [
    ((3, 3), 1, 64, False), ((3, 3), 1, 96, True), ((1, 3), 1, 80, False), ((1, 1), 1, 48, False), ((3, 3), 2, 32, True), ((7, 7), 1, 128, True),
    ((9, 9), 1, 48, True), ((1, 13), 1, 48, True)])  # fmt: skip
def test_d7_few_vectors_where_stores_across_lines_cost_little(isa, kernel, stride, channels, apart):
    """D7: With AMD's of 12 ways (..) fewer than six vectors (..) begin there only if both addresses say the same."""
    values, weights = random((1, 5, 20, channels), 1), random((*kernel, channels, 1), 2)
    with ways(12, True):
        plan = nd.DepthwiseConv2d(weights, stride=stride, padding="same", isa=isa)
        want = np.asarray(plan(values))
        for x_skip, skip in ((4, 4), (4, 7), (0, 9), (12, 0)):
            out = at_address(np.full_like(want, 7), channels, skip, "start")
            plan(at_address(values, channels, x_skip, "start"), out)
            assert out.tobytes() == want.tobytes()
            if LANES.get(isa, 16) == 16:
                assert lead_in(plan.explain()) == (str(-x_skip % 16) if x_skip and (apart or x_skip == skip) else "")


@every_isa
@pytest.mark.parametrize(("kernel", "dilation", "channels", "dtype", "alike", "apart"), [
    (3, 1, 144, "float32", True, False), (2, 1, 80, "float32", True, False), (5, 1, 144, "float32", False, False), (7, 1, 496, "float32", False, False),
    (5, 1, 528, "float32", True, False), (7, 1, 528, "float32", True, False), (3, 1, 256, "float32", True, True), (3, 1, 128, "float32", True, False),
    (3, 2, 144, "float32", True, True), (5, 2, 144, "float32", True, True), (9, 1, 144, "float32", True, True), (3, 1, 144, "float16", False, False),
    (3, 1, 256, "float16", False, False), (3, 2, 256, "float16", True, True), (5, 1, 512, "bfloat16", True, True),
    (3, 1, 144, "float64", True, True), ((1, 5), 1, 64, "float32", True, False), ((7, 1), 1, 112, "float32", True, False),
    ((1, 11), 1, 112, "float32", True, False), ((1, 3), 1, 128, "float32", True, True), ((3, 1), 2, 128, "float32", True, True)])  # fmt: skip
def test_d7_where_half_a_vector_takes_half_of_its_time(isa, kernel, dilation, channels, dtype, alike, apart):
    """D7: On D12's machines (..) they begin there only if both addresses say the same (..); those of halves begin with the channels."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    values, weights = (random(shape, i).astype(dtype) for i, shape in enumerate(((1, 5, 20, channels), (*size, channels, 1))))
    lanes = 8 if dtype == np.float64 else 16
    with ways(*HALVING):
        plan = nd.DepthwiseConv2d(weights, dilation=dilation, isa=isa)
        want = np.asarray(plan(values)).copy()
        for x_skip, skip in ((4, 4), (4, 0), (0, 9), (6, 12)):
            out = at_address(np.full_like(want, 7), channels, skip, "start")
            plan(at_address(values, channels, x_skip, "start"), out)
            assert out.tobytes() == want.tobytes()
            if LANES.get(isa, 16) == 16 and not (dtype == np.float64 and x_skip != skip):
                assert lead_in(plan.explain()) == (str(-x_skip % lanes) if x_skip and (alike if x_skip == skip else apart) else "")


@every_isa
@pytest.mark.parametrize("skip", [0, 4])
def test_d7_one_tap_by_any_step(isa, skip):
    """D7: by one tap with any step, three."""
    values, weights = random((1, 6, 24, 48), 3), random((1, 1, 48, 1), 2)
    for count, amd in MACHINES:
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(weights, stride=3, isa=isa)
            out = at_address(np.zeros((1, 2, 8, 48), np.float32), 48, skip + 5, "start")
            plan(at_address(values, 48, skip, "start"), out)
            assert_close(out, values, weights, None, **steps_of((6, 24), (1, 1), (3, 3), (1, 1)))
            assert (lead_in(plan.explain()) != "") == (LANES.get(isa, 16) == 16 and not (count == 12 and amd) and (count == 12 or skip > 0))


@every_isa
@pytest.mark.parametrize(("channels", "dtype", "stride", "aligned"), [
    (32, "float32", 2, True), (24, "float32", 2, False), (32, "float32", 1, False), (32, "float32", 3, False), (32, "float16", 2, False)])  # fmt: skip
def test_d7_two_vectors_by_steps_of_2(isa, channels, dtype, stride, aligned):
    """D7: by filters of 2x2 to 3x3 four, of float32 by steps of 2 two."""
    plan = nd.DepthwiseConv2d(random((3, 3, channels, 1), 2).astype(dtype), stride=stride, isa=isa)
    leads = set()
    for skip in (0, 4, 12):
        plan(at_address(random((1, 5, 40, channels), skip).astype(dtype), channels, skip, "start"))
        leads.add(lead_in(plan.explain()))
    assert (len(leads) > 1) == (aligned and LANES.get(isa, 16) == 16)


def test_d7_more_addresses_than_launches_are_kept():
    """D7: the bits are the same at every address."""
    weights, memory = random((3, 3, 128, 1), 2), np.zeros(1 << 15, np.float32)
    plan = nd.DepthwiseConv2d(weights)
    for height, skip in product(range(1, 6), range(16)):
        values = memory[skip : skip + height * 6 * 128].reshape(1, height, 6, 128)
        values[...] = random(values.shape, skip)
        assert_close(plan(values), values, weights, None, **steps_of((height, 6), (3, 3), (1, 1), (1, 1)))


def test_d2_overlap_counts_all_blocks():
    """D2: they are computed where they lie."""
    layout = tagged((1, 32, 4, 4), 16)
    memory = np.zeros(3 * layout.allocLength(), np.float32)
    plan = nd.DepthwiseConv2d(random((3, 3, 32, 1)), data_format="NCHW")
    x = nd.NdArray(layout, memory)
    for begin, fine in ((256, False), (511, False), (512, True)):
        out = nd.NdArray(layout, memory[begin:])
        if fine:
            plan(x, out)
        else:
            with pytest.raises(nd.LayoutError, match="overlap"):
                plan(x, out)


SECOND_LEVEL, LAST_LEVEL = cpu.caches()


@functools.lru_cache(1)
def two_images_in_memory(channels, dtype):
    """Twice the same image, together two thirds of the last-level cache or 35 MiB and a little more; few numbers, over and over."""
    width = 22
    height = min(LAST_LEVEL // 3 * 2, 35 << 20) // (2 * width * channels * dtype.itemsize) + 8
    return np.repeat(np.resize(random((99_991,)).astype(dtype), (1, height, width, channels)), 2, axis=0)


@every_isa
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize(
    ("channels", "kernel", "stride"), [(1040, 3, 1), (1040, 5, 1), (1040, 7, 1), (1040, 3, 2), (48, 3, 1), (48, 7, 2), (48, 3, 2), (3, 3, 1)]
)
def test_d8_the_same_bits_wherever_images_lie(isa, channels, kernel, stride, dtype):
    """D8: The plan tells kernels where inputs and outputs of a call lie, and `explain()` says so: in caches, or in memory."""
    images = two_images_in_memory(channels, dtype)
    image, height = images[:1], images.shape[1]
    weights, bias = random((kernel, kernel, channels, 1), 1).astype(dtype), random((channels,), 2).astype(dtype)
    plan = nd.DepthwiseConv2d(weights, bias, stride=stride, padding=kernel // 2, isa=isa)
    assert plan.explain(images).endswith("inputs and outputs in memory")
    whole = np.asarray(plan(images))
    assert (whole[0] == whole[1]).all()
    assert plan.explain(image[:, :2, :4]).endswith("inputs and outputs in caches")
    middle = height // 2 // stride * stride
    for first, last in ((0, 16), (middle, middle + 20), ((height - 20) // stride * stride, height)):
        part = np.asarray(plan(image[:, first:last]))[0]
        # Rows that padding reaches in the part alone are left out.
        begin, end = kernel if first else 0, len(part) - (kernel if last < height else 0)
        assert (part[begin:end] == whole[0, first // stride + begin : first // stride + end]).all(), (first, last)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("count", "amd"), MACHINES)
@pytest.mark.parametrize(
    ("channels", "width", "stride", "dilation"),
    [(64, 28, 1, 1), (100, 31, 1, 1), (300, 29, 1, 1), (200, 20, 1, 1), (131, 58, 2, 1), (200, 30, 2, 1), (128, 61, 1, 2), (67, 113, 2, 2)],
)
def test_d8_the_same_bits_beyond_the_second_level_cache(isa, side, channels, width, stride, dilation, count, amd):
    """D8: beyond the second-level cache (more than half of it). The bits do not depend on it."""
    split = (
        isa != "baseline"
        and width >= 28 * stride
        and (not amd or stride > 1 or (dilation > 1 and isa == "avx2"))
        and (isa == "avx2" or count == 12 or width >= 56)
    )
    with ways(count, amd):
        beyond_the_second_level_cache(isa, side, channels, width, stride, dilation, split)


def beyond_the_second_level_cache(isa, side, channels, width, stride, dilation, split):
    """Check a layer there, as a whole and in parts; `split`: its tiles have 4 rows and 2 columns."""
    height = SECOND_LEVEL // (8 * width * channels) + 31
    values, weights, bias = random((1, height, width, channels), 1), random((3, 3, channels, 1), 2), random(channels, 3)
    plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, padding=dilation, activation="relu6", isa=isa)
    x = nd.NdArray(plan.input_descriptor(values.shape))
    x[...] = values
    want = np.asarray(plan(x))
    assert "in caches" not in plan.explain()
    assert ("4 rows and 2 columns" in plan.explain()) == split
    for skip in (0, 4):
        out = at_address(np.full(want.shape, 7, np.float32), channels, skip, side)
        plan(at_address(values, channels, skip, side), out)
        assert out.tobytes() == want.tobytes()
    for first in (0, 4 * stride * dilation, (height - 16) // (stride * dilation) * stride * dilation):
        part = np.asarray(plan(values[:, first : first + 16]))[0]
        begin, end = 3 if first else 0, len(part) - (3 if first + 16 < height else 0)
        assert (part[begin:end] == want[0, first // stride + begin : first // stride + end]).all(), first


@every_isa
@pytest.mark.parametrize("count", [8, 12])
@pytest.mark.parametrize(
    ("channels", "width", "dilation", "padding"),
    [(150, 33, 2, "same"), (72, 61, 3, "same"), (80, 29, 17, "same"), (64, 60, (3, 2), "valid"), (131, 47, (2, 5), ((1, 2), (5, 3))), (40, 64, (1, 4), "same")],
)
def test_d8_the_same_bits_of_dilated_filters(isa, channels, width, dilation, padding, count):
    """D8: The bits do not depend on it."""
    height = SECOND_LEVEL // (8 * width * channels) + 9
    values, weights, bias = random((1, height, width, channels), 1), random((3, 3, channels, 1), 2), random(channels, 3)
    with ways(count):
        plan = nd.DepthwiseConv2d(weights, bias, dilation=dilation, padding=padding, isa=isa)
        got = np.asarray(plan(values))
        assert "in caches" not in plan.explain()
        if count == 12:
            by_pixels = dilation == 17 and (isa.startswith("avx512") or (isa == "avx2" and height < 4 * 17))
            assert one_by_one(plan, (3, 3), isa) == by_pixels
            assert ("4 rows and 2 columns" in plan.explain()) == (isa != "baseline" and not by_pixels)
    # Few enough for half a second-level cache of any size.
    channels_together = 8 if channels < 64 else 16
    for first in (0, channels // 2, channels - channels_together):
        few = slice(first, first + channels_together)
        part = nd.DepthwiseConv2d(weights[:, :, few], bias[few], dilation=dilation, padding=padding, isa=isa)
        assert np.asarray(part(values[..., few].copy())).tobytes() == got[..., few].tobytes(), first
        assert "in caches" in part.explain()


@every_isa
@pytest.mark.parametrize("channels", [24, 64, 128, 256, 512, 1024])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (3, 1, 2), (5, 1, 1), (5, 2, 1), (7, 1, 1), (2, 3, 1), (3, 3, 1)])
def test_d8_the_same_bits_wherever_arrays_are_said_to_lie(isa, channels, kernel, stride, dilation):
    """D8: The bits do not depend on it."""
    weights, bias = random((kernel, kernel, channels, 1), 1), random((channels,), 2)
    for width, height in ((7, 7), (30, 6), (56, 9), (64, 5)):
        values = random((1, height, width, channels), 3)
        got = set()
        for (count, amd), distance in product((*MACHINES, HALVING), range(4)):
            with ways(count, amd, distance):
                plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, isa=isa)
                got.add(plan(at_address(values, channels, 4, "end")).tobytes())
        assert len(got) == 1


@every_isa
@pytest.mark.parametrize(
    ("channels", "stride", "by_halves", "whole"),
    [
        (16, 1, True, False),
        (24, 1, True, False),
        (32, 1, True, True),
        (80, 1, True, True),
        (96, 1, False, False),
        (16, 2, True, True),
        (47, 2, True, True),
        (48, 2, False, False),
        (80, 2, False, False),
    ],
)
def test_d8_what_is_fetched_from_memory(isa, channels, stride, by_halves, whole):
    """D8: fetch (..) of 384 bytes by 3x3 (..), with steps of 2 of 192; tiles of 4 rows and 2 columns (..) in memory, for pixels of 64 bytes and more."""
    values = random((1, 9, 60 * stride, channels), 1)
    with ways(*HALVING, 3):
        text = nd.DepthwiseConv2d(random((3, 3, channels, 1), 2), stride=stride, isa=isa).explain(values)
    if isa != "baseline":
        assert ("4 rows and 2 columns" in text) == (by_halves if LANES.get(isa, 16) == 8 else whole)
    if LANES.get(isa, 16) == 16:
        assert ("2 rows and 2 columns" in text) == (stride == 2 and not whole)


@every_isa
@pytest.mark.parametrize(
    ("shape", "by_halves", "whole"),
    [((9, 60, 64), True, False), ((9, 64, 64), False, False), ((480, 60, 64), True, True), ((480, 64, 64), False, False), ((9, 60, 176), True, True)],
)
def test_d8_rows_of_tiles_of_two_columns(isa, shape, by_halves, whole):
    """D8: without a step, not for rows that are a multiple of 4 KiB apart, with vectors of 64 bytes, below 14 MiB (..), for pixels of 704 bytes and more."""
    weights = random((3, 3, shape[2], 1), 2)
    with ways(*HALVING, 2):
        text = nd.DepthwiseConv2d(weights, padding=1, isa=isa).explain(np.zeros((1, *shape), np.float32))
    if isa != "baseline":
        assert ("4 rows and 2 columns" in text) == (by_halves if LANES.get(isa, 16) == 8 else whole)


@every_isa
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "channels", "alone"),
    [(2, 2, 1, 64, True), (2, 2, 1, 48, False), (3, 3, 1, 160, True), (3, 1, 10, 128, False), (1, 1, 1, 100, True), (1, 2, 1, 100, False)],
)
def test_d15_in_memory(isa, kernel, stride, dilation, channels, alone):
    """D15: on D12's machines in memory on pixels of 256 bytes and more; D13: not once alone (1x1), but on D12's machines in memory without a step."""
    values, weights = random((1, 12, 30, channels), 1), random((kernel, kernel, channels, 1), 2)
    with ways(*HALVING, 3):
        plan = nd.DepthwiseConv2d(weights, stride=stride, dilation=dilation, isa=isa)
        out = plan(values)
    if LANES.get(isa, 16) == 16:
        assert ("output by output" in plan.explain()) == alone
    assert_close(out, values, weights, None, **steps_of((12, 30), (kernel, kernel), (stride, stride), (dilation, dilation)))


@every_isa
@pytest.mark.parametrize(
    ("channels", "dilation", "distance", "twos"),
    [(64, 1, 1, False), (64, 1, 2, False), (160, 1, 2, False), (192, 1, 1, True), (192, 1, 2, True), (64, 2, 2, False), (96, 2, 1, False), (64, 2, 3, True)],
)
def test_d8_tiles_of_two_columns(isa, channels, dilation, distance, twos):
    """D8: float32 by 3x3 without a step has tiles of 2 columns in memory alone, but undilated from pixels of 704 bytes on."""
    values, weights = random((1, 11, 61, channels), 1), random((3, 3, channels, 1), 2)
    with ways(*HALVING, distance):
        plan = nd.DepthwiseConv2d(weights, dilation=dilation, isa=isa)
        out = plan(values)
    if LANES.get(isa, 16) == 16:
        assert ("and 2 columns" in plan.explain()) == twos
    assert_close(out, values, weights, None, **steps_of((11, 61), (3, 3), (1, 1), (dilation, dilation)))


@every_isa
def test_d8_the_edge_of_the_last_level_cache(isa):
    """D8: at the edge of the last-level cache (more than a third of it, or than 6720 KiB) or in memory (more than two thirds, or than 35 MiB)."""
    plan = nd.DepthwiseConv2d(np.ones((1, 1, 4, 1), np.float32), isa=isa)
    edge, memory = min(LAST_LEVEL // 3, 6720 << 10), min(LAST_LEVEL // 3 * 2, 35 << 20)
    near = "beyond the second-level cache" if edge // 32 * 32 > SECOND_LEVEL // 2 else "in caches"
    places = ((edge, near), (edge + 32, "at the edge of the last-level cache"), (memory, "at the edge of the last-level cache"), (memory + 32, "in memory"))
    for nbytes, place in places:
        d = plan.input_descriptor((1, 1, nbytes // 32, 4))
        assert plan.explain(d).endswith(f"inputs and outputs {place}"), nbytes


@every_isa
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_d8_planes_in_memory(isa, dtype):
    """D8: where inputs and outputs of a call lie, and `explain()` says so: in caches, or in memory: of planes too, whose sections stay in caches."""
    quantization = nd.Quantization((1.0, 0), 1.0, None) if dtype == "int8" else None
    plan = nd.DepthwiseConv2d(np.ones((3, 3, 64, 1), dtype), quantization=quantization, data_format="NCHW", isa=isa)
    for side, place in ((1000, "in memory"), (10, "in caches")):
        text = plan.explain(nd.ShapeDescriptor.from_tag((1, 64, side, side), "abcd", dtype))
        assert "planes as pixels" in text
        assert text.endswith(f"inputs and outputs {place}")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize(("channels", "kernel"), [(4, 3), (7, 3), (8, 3), (8, 5), (8, 7), (9, 3)])
def test_d9_8_channels_have_shorter_vectors(monkeypatch, channels, kernel, side_by_side, dtype):
    """D9: 8 channels are computed by the fastest one whose vectors hold fewer than 16, but halves by 3x3 and 5x5 at steps of 1 by two pixels a vector."""
    weights, values = random((kernel, kernel, channels, 1), 1).astype(dtype), random((1, 9, 11, channels), 2).astype(dtype)
    if not side_by_side:
        values = np.ascontiguousarray(values.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)

    def runs(**options):
        plan = nd.DepthwiseConv2d(weights, padding=kernel // 2, **options)
        assert plan.isa == (options.get("isa") or dispatch.chosen())
        return plan, plan.explain(values).split("kernel")[1].split(",")[0].strip()

    monkeypatch.delenv("ND4JLIKE_ISA", raising=False)
    plan, free = runs()
    shorter = channels == 8 and side_by_side and dispatch.chosen().startswith("avx512") and (dtype == np.float32 or kernel == 7)
    assert free == ("avx2" if shorter else dispatch.chosen())
    asked, name = runs(isa=dispatch.chosen())
    assert name == dispatch.chosen()
    np.testing.assert_allclose(plan(values), asked(values), rtol=1e-5 if dtype == np.float32 else 2e-3, atol=1e-6 if dtype == np.float32 else 2e-3)
    monkeypatch.setenv("ND4JLIKE_ISA", dispatch.chosen())
    assert runs()[1] == dispatch.chosen()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("size", "channels", "dilation", "flat"),
    [((9, 28), 256, 2, True), ((11, 13), 256, (1, 2), True), ((8, 14), 512, 2, True), ((7, 11), 768, (3, 2), True), ((5, 4), 256, 2, False),
     ((9, 21), 256, (2, 3), False), ((9, 28), 128, 2, False), ((9, 42), 256, 2, False)],
)  # fmt: skip
def test_d10_four_columns_side_by_side(isa, side, size, channels, dilation, flat):
    """D10: 2 rows of a phase and 4 columns side by side at a time, with vectors of 32 bytes in 8 ways: centred 3x3 that is dilated by 2 along the row (..)."""
    values, weights, bias = random((2, *size, channels), 1), random((3, 3, channels, 1), 2), random(channels, 3)
    given, out = guarded_array(values, side), guarded_array(np.full(values.shape, np.nan, np.float32), side)
    got = []
    for distance in (0, 1, 2, 3):
        for count, amd in MACHINES:
            with ways(count, amd, distance):
                plan = nd.DepthwiseConv2d(weights, bias, dilation=dilation, isa=isa)
                plan(given, out)
                got.append(out.tobytes())
                # With AMD's of 12 ways tiles of 4 columns are those of a phase.
                if LANES.get(isa, 16) == 8 and not amd and size[1] > 14 and (distance == 0 or size[1] < 42):
                    assert f"tiles of 2 rows and {4 if flat and count == 8 and distance < 2 else 7} columns" in plan.explain()
    assert_close(out, values, weights, bias, **steps_of(size, (3, 3), (1, 1), np.broadcast_to(dilation, 2)))
    assert len(set(got)) == 1


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("channels", "pitch", "scratch"), [(1024, 1024, True), (1000, 1024, True), (512, 512, True), (500, 512, True), (256, 256, False), (1024, 1040, False)]
)
def test_d10_pixels_that_share_sets_of_the_first_level_cache(isa, side, channels, pitch, scratch):
    """D10: other undilated filters of 2x2 and more in scratch (of two sets the inputs alone), or output by output. The bits do not depend on it."""
    for size, kernel, stride, dilation in (
        ((7, 6), (3, 3), 1, 1), ((3, 13), (3, 3), 1, 1), ((5, 14), (3, 3), 2, 1), ((3, 8), (3, 3), 1, 1), ((4, 16), (3, 3), 2, 1),
        ((7, 9), (3, 3), 2, 1), ((7, 7), (3, 3), 1, 1), ((4, 15), (3, 3), 1, 1), ((5, 4), (2, 4), 1, 1), ((21, 6), (5, 5), 1, 1), ((6, 6), (4, 4), 3, 1),
        ((9, 9), (3, 3), 1, 2), ((5, 9), (1, 3), 1, 1), ((6, 3), (3, 3), 1, 1), ((9, 9), (5, 5), 2, 1), ((5, 6), (5, 5), 2, 1),
    ):  # fmt: skip
        values, weights, bias = (random(shape, i) for i, shape in enumerate(((1, *size, channels), (*kernel, channels, 1), (channels,))))
        options = {"stride": stride, "dilation": dilation, "activation": "relu6" if stride > 1 else None, "isa": isa}
        got = []
        for count, amd in MACHINES:
            with ways(count, amd):
                plan = nd.DepthwiseConv2d(weights, bias, **options)
                out = guarded_array(np.full((1, -(-size[0] // stride), -(-size[1] // stride), channels), 7, np.float32), side)
                plan(at_address(values, pitch, 4, side), out)
                got.append(out.tobytes())
                few = (count == 8 or amd) and scratch and dilation == 1 and min(kernel) > 1
                two = pitch == 512
                wide = LANES.get(isa, 16) == 16
                by_rows = few and wide and kernel in ((3, 3), (5, 5)) and -(-size[1] // stride) >= 4 and (stride == 2 or not two)
                by_output = few and (two or amd or wide) and stride == 2 and not by_rows and kernel == (3, 3)
                copied = few and not (by_rows or by_output) and not (two and (stride > 1 or wide)) and not (amd and stride > 1)
                by_output = by_output or (dilation == 1 and not copied and not by_rows and by_outputs(kernel, (stride, stride), isa))
                assert ("copied into scratch" in plan.explain()) == copied
                assert ("row of inputs by row of inputs" in plan.explain()) == by_rows
                assert ("output by output" in plan.explain()) == by_output
        assert got[0] == got[1] == got[2]


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "padding", "channels", "walked"),
    [
        ((14, 14), 1, 1, "same", 48, 2), ((14, 14), 2, 1, "same", 100, 2), ((15, 13), 2, 1, ((1, 0), (1, 1)), 33, 2),
        ((5, 14), 1, 1, ((0, 1), (1, 1)), 64, 2), ((4, 21), 1, 1, ((1, 0), (1, 1)), 65, 1), ((9, 27), 2, 1, "same", 112, 2),
        ((8, 29), 2, 1, "valid", 40, 2), ((3, 28), 2, 1, ((1, 1), (0, 1)), 36, 2), ((28, 28), 1, 2, "same", 48, 2),
        ((15, 22), 1, (2, 3), "same", 33, 1), ((19, 28), 2, 2, "same", 36, 1), ((18, 42), 2, 3, "same", 36, 2),
        ((20, 20), 2, 1, "same", 36, 1), ((19, 33), 1, 2, "same", 40, 1), ((10, 18), 2, 1, "same", 48, 3), ((8, 16), 1, 1, "same", 48, 0),
        ((14, 14), 1, 1, "same", 128, 0), ((14, 14), 1, 1, "same", 16, 3), ((33, 14), 1, 1, "same", 48, 3),
        ((14, 14), (2, 1), 1, "same", 48, 0), ((9, 12), 1, 1, "same", 48, 4), ((7, 7), 1, 1, "same", 48, 0),
        ((14, 14), 1, 1, ((2, 1), (1, 1)), 48, 0), ((28, 28), 1, 2, "same", 128, 0), ((14, 26), 1, 4, "same", 48, 0),
        ((14, 14), 1, 1, "same", 120, 2), ((14, 14), 1, 1, "same", 72, 1), ((18, 21), 1, 1, "same", 272, 1),
    ],
)  # fmt: skip
def test_d17_one_block_of_an_image_after_another(isa, side, size, stride, dilation, padding, channels, walked):
    """D17: all rows of it before the next block: where the sets that the pixels share have room for all; of 8 ways where tiles have 7 columns in any case."""
    values, weights, bias = random((2, *size, channels), 1), random((3, 3, channels, 1), 2), random(channels, 3)
    got = []
    for (count, amd), distance in product((*MACHINES, HALVING), (0, 1, 2)):
        with ways(count, amd, distance):
            for threads in (1, 2):
                options = {"stride": stride, "dilation": dilation, "padding": padding, "isa": isa}
                plan = nd.DepthwiseConv2d(weights, bias, activation="relu6", threads=threads, **options)
                want = np.asarray(plan(values))
                out = guarded_array(np.full(want.shape, 7, np.float32), side)
                plan(guarded_array(values, side), out)
                got += [want.tobytes(), out.tobytes()]
            said = "all of one block before the next" in plan.explain()
            kinds = {16: (1, 2) if count == 12 else (2, 3, 4), 8: () if count == 12 else (4,), 4: ()}
            assert said == (amd and walked in kinds[LANES.get(isa, 16)]), plan.explain()
    assert len(set(got)) == 1
    # What is outside is left out, not multiplied.
    weights[0, 0] = np.inf
    with ways(12, True):
        assert not np.isnan(np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, **options))).any()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "channels", "anywhere", "halving"),
    [
        ((5, 5), 3, 2, "same", 33, 3, 3), ((6, 6), 3, 2, ((1, 0), (1, 0)), 48, 3, 3), ((9, 10), 3, 2, "same", 40, 5, 5), ((3, 12), 3, 2, "same", 50, 6, 6),
        ((10, 9), 5, 2, "same", 48, 5, 5), ((4, 11), 5, 2, ((2, 1), (2, 2)), 60, 6, 6), ((6, 6), 5, 2, "same", 48, 0, 0), ((4, 4), 3, 2, "same", 48, 0, 0),
        ((8, 7), 3, 2, "same", 48, 0, 4), ((8, 7), 3, 2, "same", 40, 0, 0), ((9, 20), 3, 2, "same", 48, 0, 5), ((9, 20), 3, 2, "same", 40, 0, 0),
        ((5, 48), 3, 2, "same", 32, 0, 6), ((5, 50), 3, 2, "same", 32, 0, 0),
        ((3, 50), 3, 2, "same", 16, 0, 7), ((7, 6), 3, 1, "same", 48, 6, 6), ((4, 5), 3, 1, "same", 40, 5, 5),
        ((7, 31), 3, 2, ((0, 1), (1, 0)), 112, 0, 5), ((7, 32), 3, 2, "same", 48, 0, 6),
        ((7, 24), 5, 2, "same", 60, 0, 6), ((7, 19), 5, 2, "valid", 48, 0, 0), ((5, 48), 5, 2, "same", 44, 0, 6), ((5, 50), 5, 2, "same", 33, 0, 0),
        ((7, 9), 3, 1, "same", 44, 0, 5), ((4, 12), 3, 1, ((1, 0), (0, 1)), 112, 0, 6),
        ((3, 17), 3, 1, "same", 60, 0, 6), ((3, 13), 3, 1, "same", 48, 0, 0),
        ((3, 16), 3, 1, "same", 48, 0, 0), ((3, 19), 3, 1, "same", 48, 0, 0), ((9, 9), 5, 1, "same", 48, 0, 5), ((6, 10), 3, 1, "same", 16, 0, 5),
        ((6, 5), 5, 1, "same", 48, 5, 5), ((5, 7), 5, 1, ((2, 1), (1, 2)), 40, 6, 6), ((5, 10), 5, 1, "same", 72, 0, 5), ((4, 12), 5, 1, "same", 40, 0, 6),
        ((3, 24), 5, 1, "same", 48, 0, 6), ((3, 14), 5, 1, "same", 48, 0, 0), ((3, 28), 5, 1, "same", 48, 0, 0), ((3, 10), 5, 1, "same", 16, 0, 5),
        ((6, 8), 3, 1, "same", 16, 0, 0), ((3, 19), 3, 1, "same", 16, 0, 7), ((17, 28), 3, 1, "same", 48, 0, 7), ((17, 28), 3, 1, "same", 128, 0, 0),
        ((14, 40), 3, 2, "same", 256, 0, 0), ((3, 9), 3, 1, "same", 256, 0, 5), ((4, 9), 3, 1, "same", 256, 0, 0),
    ],
)  # fmt: skip
def test_d17_tiles_that_share_a_row_evenly(isa, side, size, kernel, stride, padding, channels, anywhere, halving):
    """D17: In tiles of as many columns as share a row evenly; with AMD's caches of 8 ways, but in memory, (..). The bits do not depend on it."""
    values, weights, bias = random((2, *size, channels), 1), random((kernel, kernel, channels, 1), 2), random(channels, 3)
    got, options, lanes = [], {"stride": stride, "padding": padding, "activation": "relu6", "isa": isa}, LANES.get(isa, 16)
    # With vectors of 32 bytes, too.
    pays = halving in (5, 6) and ((kernel, stride) == (5, 2) or (stride == 1 and size[1] <= 18))
    for machine, distance in product((*MACHINES, HALVING), (0, 1, 2, 3)):
        with ways(*machine, distance):
            for threads in (1, 2):
                plan = nd.DepthwiseConv2d(weights, bias, threads=threads, **options)
                x = nd.NdArray(plan.input_descriptor(values.shape))
                x[...] = values
                got.append(np.asarray(plan(x)).tobytes())
                out = guarded_array(np.full(plan(values).shape, 7, np.float32), side)
                plan(guarded_array(values, side), out)
                got.append(out.tobytes())
            said = re.search("tiles of 2 rows and (.) columns, all of one block before the next", plan.explain())
            columns = anywhere or (halving if machine == HALVING and distance < 3 and (lanes == 16 or pays) else 0)
            # In memory D8 may fetch instead.
            want = {columns} if columns and distance < 3 else {0, 7, anywhere}
            assert int(said[1] if said else 0) in (want if lanes > 4 else {0}), plan.explain()
    assert len(set(got)) == 1
    want = nd.depthwise_conv2d(*(array.astype(np.float64) for array in (values, weights, bias)), stride=stride, padding=padding, activation="relu6")
    np.testing.assert_allclose(np.frombuffer(got[0], np.float32).reshape(want.shape), np.asarray(want), rtol=1e-4, atol=1e-4)
    # What is outside is left out, not multiplied.
    weights[0, 0] = np.inf
    with ways(*HALVING):
        assert not np.isnan(np.asarray(nd.depthwise_conv2d(abs(values) + 1, weights, **options))).any()


@every_isa
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("kernel", "width", "channels", "columns"),
    [
        (3, 9, 40, 5), (3, 10, 24, 5), (3, 11, 72, 6), (3, 12, 40, 0), (3, 12, 72, 0), (3, 12, 88, 6), (3, 17, 56, 6), (3, 14, 40, 0), (3, 5, 40, 5),
        (5, 10, 40, 5), (5, 12, 72, 6), (5, 12, 24, 6), (5, 14, 40, 0),
    ],
)  # fmt: skip
def test_d17_the_last_8_channels(isa, dtype, kernel, width, channels, columns):
    """D17: So do D12's last 8 channels (..), but where 5 or 6 columns that are walked share a row, by 3x3 of no multiple of 4 outputs."""
    values, weights = random((1, 4, width, channels), 1).astype(dtype), random((kernel, kernel, channels, 1), 2).astype(dtype)
    got = set()
    for machine in (*MACHINES, HALVING):
        with ways(*machine, 0):
            plan = nd.DepthwiseConv2d(weights, random(channels, 3), isa=isa)
            x = nd.NdArray(plan.input_descriptor(values.shape))
            x[...] = values
            got.add(plan(x).tobytes())
        # Rows of one tile are walked on any machine; where there are no last 8 channels, those of 14 and 12 may be in sevens.
        if LANES.get(isa, 16) == 16 and (machine == HALVING or width == columns):
            said = re.search("tiles of 2 rows and (.) columns, all of one block before the next", plan.explain())
            assert int(said[1] if said else 0) == columns
    assert len(got) == 1


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "channels", "anywhere", "halving"),
    [
        ((5, 5), 3, 2, "same", 33, 3, 3), ((6, 6), 3, 2, ((1, 0), (1, 0)), 96, 3, 3), ((9, 10), 3, 2, "same", 40, 5, 5), ((3, 12), 3, 2, "same", 50, 6, 6),
        ((10, 9), 5, 2, "same", 48, 5, 5), ((4, 11), 5, 2, ((2, 1), (2, 2)), 60, 6, 6), ((8, 7), 3, 2, "same", 64, 0, 0), ((9, 20), 3, 2, "same", 48, 0, 5),
        ((7, 17), 3, 2, "same", 77, 0, 5), ((7, 22), 3, 2, "same", 64, 0, 6), ((7, 24), 3, 2, "same", 64, 0, 0), ((3, 33), 3, 2, "same", 40, 0, 6),
        ((3, 48), 3, 2, "same", 64, 0, 0), ((3, 50), 3, 2, "same", 32, 0, 0),
        ((7, 6), 3, 1, "same", 56, 6, 6), ((4, 5), 3, 1, "same", 40, 5, 5), ((7, 9), 3, 1, "same", 56, 0, 5), ((7, 9), 3, 1, "same", 64, 0, 5),
        ((5, 6), 5, 1, "same", 40, 6, 6), ((4, 10), 5, 1, "same", 72, 0, 5), ((3, 24), 5, 1, "same", 48, 0, 6), ((3, 14), 5, 1, "same", 48, 0, 0),
        ((7, 24), 5, 2, "same", 60, 0, 6), ((5, 48), 5, 2, "same", 88, 0, 6), ((5, 50), 5, 2, "same", 40, 0, 0), ((3, 17), 3, 1, "same", 60, 0, 6),
        ((17, 28), 3, 1, "same", 96, 0, 0), ((14, 14), 3, 2, "same", 96, 0, 0), ((6, 10), 3, 1, "same", 32, 0, 5), ((6, 10), 3, 1, "same", 16, 0, 0),
    ],
)  # fmt: skip
def test_d17_tiles_of_halves_that_share_a_row_evenly(isa, side, dtype, size, kernel, stride, padding, channels, anywhere, halving):
    """D17: float16 and bfloat16 in tiles of 3, 5 and 6 columns that share a row evenly (..). The bits do not depend on it."""
    values, weights, bias = random((2, *size, channels), 1).astype(dtype), random((kernel, kernel, channels, 1), 2).astype(dtype), random(channels, 3)
    for machine, distance, threads in product((*MACHINES, HALVING), (0, 3), (1, 2)):
        with ways(*machine, distance):
            options = {"stride": stride, "padding": padding, "activation": "relu6", "threads": threads, "isa": isa}
            text = assert_halves_are_rounded(values, weights, bias, side, **options)
        said = re.search("tiles of 2 rows and (.) columns, all of one block before the next", text)
        columns, lanes = anywhere or (halving if machine == HALVING and distance == 0 else 0), LANES.get(isa, 16)
        if lanes == 8 and (kernel != 3 or columns not in ((5, 6) if stride == 1 else (5,)) or not (anywhere or (stride == 1 and size[1] <= 18))):
            columns = 0
        assert int(said[1] if said else 0) == (columns if lanes > 4 else 0), text


@every_isa
@pytest.mark.parametrize("skip", [0, 4, 12])
def test_d17_where_vectors_begin_with_lines(isa, skip):
    """D17: The bits do not depend on it, nor on the address (D7)."""
    values, weights, bias = random((1, 14, 14, 240), 1), random((3, 3, 240, 1), 2), random(240, 3)
    with ways(12, True):
        plan = nd.DepthwiseConv2d(weights, bias, isa=isa)
        x = nd.NdArray(plan.input_descriptor(values.shape))
        x[...] = values
        want = plan(x).tobytes()
        out = at_address(np.full(values.shape, 7, np.float32), 240, skip + 3, "start")
        plan(at_address(values, 240, skip, "start"), out)
        assert ("all of one block before the next" in plan.explain()) == (LANES.get(isa, 16) == 16)
    assert out.tobytes() == want


def within_page(values, at, pitch):
    """Copy `values` to memory that is NaN elsewhere, `at` bytes beyond a page, pixels `pitch` elements apart; and all of it."""
    _, height, width, _ = values.shape
    memory = np.full(height * width * pitch + 3 * 4096 // values.itemsize, np.nan, values.dtype)
    skip = (-memory.ctypes.data % 4096 + 4096 + at) // values.itemsize
    copy = np.lib.stride_tricks.as_strided(memory[skip:], values.shape, [values.itemsize * n for n in (height * width * pitch, width * pitch, pitch, 1)])
    copy[...] = values
    return copy, memory


@every_isa
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1), (4, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("dilation", [(2, 2), (2, 1), (1, 2), (3, 3)], ids=str)
def test_d10_dilated_filters_over_few_sets(isa, stride, dilation):
    """D10: dilated ones where that is said of the pixels of a phase. The bits do not depend on it."""
    values, weights, bias = random((1, 21, 23, 512), 1), random((3, 3, 512, 1), 2), random(512, 3)
    steps = steps_of((21, 23), (3, 3), stride, dilation)
    down, across = (step // math.gcd(step, apart) for step, apart in zip(stride, dilation, strict=True))
    outputs, sets = -(-23 // stride[1]) / (dilation[1] // math.gcd(stride[1], dilation[1])), 1 if dilation[1] == 2 else 2
    got = []
    for count, amd in MACHINES:
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, isa=isa)
            got.append(np.asarray(plan(values)))
            assert_close(got[-1], values, weights, bias, **steps)
            by_rows = (count == 8 or amd) and LANES.get(isa, 16) == 16 and down == across <= 2 and outputs >= 5
            by_rows = by_rows and sets <= (2 if across == 2 else 1)
            assert ("row of inputs by row of inputs" in plan.explain()) == by_rows
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes()


@every_isa
@pytest.mark.parametrize(
    ("width", "channels", "dilation"), [(14, 512, 1), (14, 256, 2), (14, 256, 1), (28, 80, 1), (27, 80, 1), (28, 512, 1), (7, 512, 1), (14, 512, 2)]
)
def test_d10_narrow_tiles_over_two_sets(isa, width, channels, dilation):
    """D10: over two with a step of 2; else by tiles, of 4 columns in AMD's caches of 12 ways, as for 28 columns. The bits do not depend on it."""
    values, weights = random((1, 9, width * dilation, channels), 1), random((3, 3, channels, 1), 2)
    got = []
    for count, amd in MACHINES:
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(weights, dilation=dilation, padding=dilation, isa=isa)
            got.append(plan(values).tobytes())
            text = plan.explain()
            assert "row of inputs by row of inputs" not in text or (channels * dilation == 1024 and LANES.get(isa, 16) == 16)
            if "tiles of" in text and LANES.get(isa, 16) == 16 and not (width < 14 and channels == 512):
                narrow = width >= 28 or (channels * dilation == 512 and amd and width >= 14) if amd else width > 28
                assert ("and 4 columns" in text) == narrow, text
    assert got[0] == got[1] == got[2]


@every_isa
@pytest.mark.parametrize("tag", ["aBcd8b", "aBcd16b"])
@pytest.mark.parametrize("stride", [1, 2])
def test_d8_channels_in_blocks(isa, tag, stride):
    """D8: The bits do not depend on it: nor on how many blocks of channels are walked together."""
    values, weights, bias = random((2, 83, 9, 11), 1), random((83, 1, 3, 3), 2), random(83, 3)
    x = nd.reorder(nd.asarray(values), nd.ShapeDescriptor.from_tag(values.shape, tag))
    got = set()
    for distance in range(4):
        with ways(8, True, distance):
            plan = nd.DepthwiseConv2d(weights, bias, stride=stride, data_format="NCHW", weights_format="C1HW", isa=isa)
            out = nd.NdArray(nd.ShapeDescriptor.from_tag((2, 83, -(-9 // stride), -(-11 // stride)), tag))
            got.add(np.asarray(plan(x, out)).tobytes())
            assert out.check_padding()
    assert len(got) == 1
    steps = steps_of((9, 11), (3, 3), (stride, stride), (1, 1))
    assert_close(np.asarray(out).transpose(0, 2, 3, 1), values.transpose(0, 2, 3, 1), weights.transpose(2, 3, 0, 1), bias, **steps)


@every_isa
@pytest.mark.parametrize("distance", range(4))
@pytest.mark.parametrize(("width", "stride", "channels"), [(7, 1, 1024), (8, 1, 1024), (14, 2, 1024), (16, 2, 1024), (16, 2, 512), (8, 1, 512)])
def test_d10_few_sets_far_away(isa, distance, width, stride, channels):
    """D10: none of these in memory, in more than 8 ways at the edge of the last-level cache; but vectors of less than 64 bytes go through scratch."""
    values, weights = random((1, 5, width, channels), 1), random((3, 3, channels, 1), 2)
    wide, one = LANES.get(isa, 16) == 16, channels == 1024
    got = []
    for count, amd in MACHINES:
        with ways(count, amd, distance):
            plan = nd.DepthwiseConv2d(weights, stride=stride, isa=isa)
            got.append(np.asarray(plan(values)))
            few, near = count == 8 or amd, distance < (2 if amd else 3)
            by_rows = few and near and wide and (one or stride == 2)
            by_output = few and stride == 2 and not by_rows and (not one or amd or wide)
            copied = few and (near or (not wide and not amd)) and not (by_rows or by_output) and (stride == 1 or not amd) and (one or not wide)
            text = plan.explain()
            assert ("row of inputs by row of inputs" in text, "output by output" in text, "copied into scratch" in text) == (by_rows, by_output, copied)
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes()


@every_isa
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [1024, 1000, 136, 20, 16, 10])
@pytest.mark.parametrize("taps", [3, 5])
def test_d10_rows_of_inputs(isa, taps, stride, channels):
    """D10: row of inputs by row of inputs: centred 3x3 and 5x5 filters; a row has 4 outputs and more, as few tiles of 4 to 7 columns as hold them (..)."""
    weights, bias = (random(shape, i) for i, shape in enumerate(((taps, taps, channels, 1), (channels,))))
    pitch, edge = 1024 if stride == 1 else 512 * -(-channels // 512), taps // 2
    for (height, outputs), (padding, least), (at, ahead) in product(
        ((1, 4), (2, 3), (3, 10), (6, 11), (7, 13)), (("same", 1), ("valid", taps), (((edge, edge - 1), (0, 1)), 2), ((edge + 1, edge + 1), 1)),
        ((0, 0), (16, 64), (48, -32), (4, 272)),
    ):  # fmt: skip
        if height < least:
            continue
        values = random((1, height, outputs * stride + (0 if padding == "same" else taps - 1), channels), 3)
        got = []
        for count, amd in MACHINES:
            with ways(count, amd):
                plan = nd.DepthwiseConv2d(weights, bias, stride=stride, padding=padding, activation="relu6", isa=isa)
                given, _ = within_page(values, at, pitch)
                shape = plan.output_descriptor(nd.asarray(given)).shape
                out, memory = within_page(np.zeros(shape, np.float32), 512 + at + ahead, pitch)
                untouched = np.isnan(memory)
                plan(given, out)
                assert (np.isnan(memory) == untouched).all()
                got.append(out.tobytes())
                centred = padding != (edge + 1, edge + 1)
                by_rows = (count == 8 or amd) and LANES.get(isa, 16) == 16 and centred and channels != 10 and height > 1  # of one row, one of taps (D24)
                assert ("row of inputs by row of inputs" in plan.explain()) == (by_rows and shape[2] >= 4)
        assert got[0] == got[1] == got[2]


@every_isa
def test_d10_threads_share_rows_of_outputs(isa):
    """D10: row of inputs by row of inputs; rows of outputs that two threads compute reach the same ones."""
    values = random((3, 17, 15, 1024), 1)
    with ways(8):
        for taps, stride in product((3, 5), (1, 2)):
            weights = random((taps, taps, 1024, 1), 2)
            one, more = (nd.DepthwiseConv2d(weights, stride=stride, threads=threads, isa=isa)(values) for threads in (1, 5))
            assert one.tobytes() == more.tobytes()


@every_isa
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_d11_outputs_just_ahead_of_inputs(isa, dtype):
    """D11: the bits do not depend on it. D7: what lies beside the channels is neither used nor written."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for size, (channels, pitch), kernel, stride, dilation in (
        ((9, 8), (256, 256), 3, 1, 1), ((8, 9), (250, 256), 3, 1, 2), ((9, 10), (512, 512), 3, 2, 1), ((7, 7), (384, 384), 3, 1, 1),
        ((6, 31), (128, 128), 3, 1, 2), ((6, 9), (200, 256), 5, 1, 1), ((5, 6), (140, 256), 4, 1, 1), ((7, 6), (256, 256), 2, 2, 1),
    ):  # fmt: skip
        values, weights, bias = (random(shape, i).astype(dtype) for i, shape in enumerate(((1, *size, channels), (kernel, kernel, channels, 1), (channels,))))
        plan = nd.DepthwiseConv2d(weights, bias, stride=stride, dilation=dilation, activation="relu6" if kernel == 2 else None, isa=isa)
        x = nd.NdArray(plan.input_descriptor(values.shape))
        x[...] = values
        want = np.asarray(plan(x))
        for at, ahead in product((0, 16, 48), (-64, 0, 16, 64, 256, 272, 2048)):
            given, _ = within_page(values, at, pitch)
            out, memory = within_page(np.zeros_like(want), 512 + at + ahead, pitch)
            untouched = np.isnan(memory)
            plan(given, out)
            assert out.tobytes() == want.tobytes()
            assert (np.isnan(memory) == untouched).all()


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("size", [(9, 9), (9, 10), (4, 11), (3, 12), (2, 9), (1, 9), (12, 8), (7, 17)])
def test_d10_four_sets_and_a_step_of_2(isa, side, size):
    """D10: four sets (1 KiB), 3x3 and a step of 2, with vectors of 32 bytes and more and more than 4 outputs in a row: 2 rows and 2 columns at a time."""
    values, weights, bias = (random(shape, i) for i, shape in enumerate(((1, *size, 256), (3, 3, 256, 1), (256,))))
    got = []
    for (count, amd), padding in product(MACHINES, ("same", "valid", (2, 1))):
        with ways(count, amd):
            plan = nd.DepthwiseConv2d(weights, bias, stride=2, padding=padding, isa=isa)
            shape = plan.output_descriptor(plan.input_descriptor(values.shape)).shape if min(size) >= 3 or padding != "valid" else None
            if shape is None:
                continue
            out = guarded_array(np.full(shape, 7, np.float32), side)
            plan(at_address(values, 256, 4, side), out)
            got.append((padding, out.tobytes()))
            assert ("2 rows and 2 columns" in plan.explain()) == (
                count == 8 and isa != "baseline" and shape[2] > 4 and (size[0] > 1 or padding != "same")  # else one row of taps reaches it
            )
    assert len(set(got)) * len(MACHINES) == len(got)


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("width", "channels"), [(64, 64), (63, 64), (128, 64), (62, 128), (64, 320), (56, 512), (60, 512)])
@pytest.mark.parametrize("distance", [BEYOND, EDGE])
def test_d10_rows_that_share_sets_and_a_step_of_2(isa, side, width, channels, distance):
    """D10: beyond the second-level cache, for pixels of up to 1 KiB also at the edge of the last-level cache, rows of `x` that share them."""
    values, weights, bias = (random(shape, i) for i, shape in enumerate(((1, 7, width, channels), (3, 3, channels, 1), (channels,))))
    got = set()
    for count, amd in MACHINES:
        with ways(count, amd, distance):
            plan = nd.DepthwiseConv2d(weights, bias, stride=2, isa=isa)
            out = guarded_array(np.full((1, 4, -(-width // 2), channels), 7, np.float32), side)
            plan(at_address(values, channels, 4, side), out)
            got.add(out.tobytes())
            shared = width * channels % 1024 == 0 and channels < (512 if distance == BEYOND else 257)
            assert ("2 rows and 2 columns" in plan.explain()) == (count == 8 and isa != "baseline" and shared)
    assert len(got) == 1


@every_isa
@pytest.mark.parametrize(("width", "channels", "taken"), [(60, 32, True), (64, 32, False), (60, 24, False), (60, 48, True)])
def test_tiles_of_four_rows_by_steps_of_2(isa, width, channels, taken):
    """D8: The plan tells kernels where inputs and outputs of a call lie: in 8 ways pixels of 128 bytes go four rows at a time, unless rows share sets."""
    with ways(8, False, BEYOND):
        plan = nd.DepthwiseConv2d(random((3, 3, channels, 1), 1), stride=2, isa=isa)
        plan(random((1, 9, width, channels), 2))
    assert ("4 rows and 2 columns" in plan.explain()) == (taken and isa != "baseline")


@every_isa
@pytest.mark.parametrize(("kernel", "shape"), [((3, 1), (1, 7, 2, 64)), ((3, 5), (1, 5, 1, 256)), ((3, 3), (1, 1, 7, 64)), ((3, 3), (1, 7, 7, 64))])
def test_d10_rows_or_columns_in_one_place(isa, kernel, shape):
    """D10: The bits do not depend on it: not where all rows, or all columns, are one."""
    for axis, (count, amd), distance in product((1, 2), MACHINES, range(4)):
        one = random([1 if i == axis else n for i, n in enumerate(shape)], 1)
        values = np.broadcast_to(one, shape)
        with ways(count, amd, distance):
            plan = nd.DepthwiseConv2d(random((*kernel, shape[3], 1), 2), stride=(2, 1) if kernel[1] == 5 else 2, padding="same", isa=isa)
            assert np.asarray(plan(values)).tobytes() == np.asarray(plan(values.copy())).tobytes()


def packed_bytes(plan):
    return int(plan.explain().partition(" bytes of packed weights")[0].split()[-1])


@every_isa
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize(
    ("kernel", "stride", "channels", "multiplier"),
    [(3, 1, 24, 1), (3, 2, 24, 1), (5, 1, 40, 1), (5, 2, 72, 1), (3, 1, 1, 24), (3, 2, 3, 8), (3, 2, 5, 8), (3, 1, 33, 8), (3, 1, 2, 16), (3, 2, 1, 48)],
)
def test_d12_blocks_of_8_lanes(isa, dtype, kernel, stride, channels, multiplier):
    """D12: where half a vector takes half of its time; elsewhere (..) vectors, of float32 from 32 outputs of a pixel on. The bits do not depend on it."""
    values, weights = (random(shape, i).astype(dtype) for i, shape in enumerate(((1, 15, 21, channels), (kernel, kernel, channels, multiplier))))
    outputs, single, got = channels * multiplier, dtype == np.float32, set()
    for machine in (*MACHINES, HALVING):
        with ways(*machine):
            plan = nd.DepthwiseConv2d(weights, random(outputs, 3), stride=stride, isa=isa)
            x = nd.NdArray(plan.input_descriptor(values.shape))
            x[...] = values
            got.add(np.asarray(plan(x)).tobytes())
            eights = multiplier > 1 and ((machine == HALVING and single) or (outputs % 16 != 0 and (machine == HALVING or (single and outputs < 32))))
            blocks = outputs // 8 if eights else -(-outputs // 16) + (multiplier == 1 and (single or (kernel, stride) == (3, 1)) and machine == HALVING)
            one = nd.DepthwiseConv2d(random((1, 1, 16, 1), 2), isa=isa)
            one(random((1, 1, 1, 16), 1))
            if LANES.get(isa, 16) == 16:  # a bias, and what spreads inputs over the lanes, besides the taps; one block has two vectors
                assert packed_bytes(plan) - packed_bytes(one) == 64 * (blocks * (kernel * kernel + (1 if multiplier == 1 else 3)) - 2)
    wide = nd.DepthwiseConv2d(weights.astype(np.float32), random(outputs, 3), stride=stride, isa=isa)(values.astype(np.float32))
    assert got == {np.asarray(wide).astype(dtype).tobytes()}


@every_isa
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (5, 1), (7, 1), (2, 2), (3, 2), (4, 2), (5, 2)])
def test_d12_halves_of_vectors_of_columns(isa, side, kernel, stride):
    """D12: the last vector of columns of a row of a plane (..), of which at most half are there, is a half one. The bits do not depend on it."""
    for outputs, left, right in product((8, 14, 17, 20, 24, 33, 39, 56, 72), (0, 1, kernel - 1), (0, 1, kernel // 2)):
        width = (outputs - 1) * stride + kernel - left - right + (outputs % stride if right == 0 else 0)
        values, weights = random((1, 3, 7, width), outputs), random((kernel, kernel, 3, 1), 2)
        around = np.full((1, 3, 7, width + 40), np.nan, np.float32)
        around[..., 20:-20] = values
        got, padding = set(), ((kernel // 2, kernel // 2), (left, right))
        for machine in ((12, False), HALVING):
            with ways(*machine):
                plan = nd.DepthwiseConv2d(weights, random(3, 3), stride=stride, padding=padding, data_format="NCHW", activation="relu6", isa=isa)
                out = guarded_array(np.full(plan(values).shape, np.nan, np.float32), side)
                plan(guarded_array(values, side), out)
                assert np.asarray(plan(around[..., 20:-20])).tobytes() == out.tobytes()
                got.add(out.tobytes())
        assert len(got) == 1
        want, bound = depthwise_float(values.transpose(0, 2, 3, 1), weights, random(3, 3), (0, 6), stride=(stride, stride), dilation=(1, 1), padding=padding)
        assert (abs(out.transpose(0, 2, 3, 1) - want) <= bound).all()


@pytest.mark.skipif(not FIRST_LEVEL.exists(), reason="the system does not describe the first-level cache in /sys")
def test_d10_the_ways_of_this_machine():
    """D10: where the first-level cache has 8 ways or fewer, or is AMD's, as the processor describes it."""
    with ways(8) as (count, amd):
        assert count == int(FIRST_LEVEL.read_text())
        assert amd == ("AuthenticAMD" in Path("/proc/cpuinfo").read_text())

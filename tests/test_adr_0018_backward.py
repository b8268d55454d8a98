"""ADR 0018: gradients of the depthwise convolution."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nd4jlike as nd
from guards import SIDES, guarded_array
from layouts import arrangements, hosted, padded
from machines import HALVING, MACHINES, ways
from nd4jlike import geometry
from nd4jlike.kernels import dispatch
from reference import accumulate, differentiate, out_size, same_padding

ISAS = dispatch.available()
every_isa = pytest.mark.parametrize("isa", ISAS)
# One less than, as many as and one more than the lanes of every vector.
CHANNELS = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 67)
NONE = ((0, 0), (0, 0))
# Kernel, stride, dilation: every width of a part and what is put together from them, steps within and beyond the tiles'.
WINDOWS = [
    (kernel, stride, dilation)
    for kernel in ((1, 1), (3, 3), (5, 5), (7, 7), (2, 4), (9, 6), (3, 11))
    for stride, dilation in (((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 1), (2, 3)), ((3, 3), (1, 1)), ((2, 4), (2, 2)), ((3, 2), (2, 3)), ((6, 4), (4, 6)))
]


def random(shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def layer(size, channels, multiplier, kernel, stride=(1, 1), dilation=(1, 1), padding=NONE, batch=1):
    """Gradient, input and weights of a layer; None where no window fits."""
    out = [out_size(n, k, s, d, *p) for n, k, s, d, p in zip(size, kernel, stride, dilation, padding, strict=True)]
    if min(out) < 1:
        return None
    return random((batch, *out, channels * multiplier), 1), random((batch, *size, channels), 2), random((*kernel, channels, multiplier), 3)


def same(size, kernel, stride=(1, 1), dilation=(1, 1)):
    return tuple(same_padding(n, k, s, d) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True))


@functools.cache
def answers(arrays, steps):
    """Gradients and sums of absolute values, once for all instruction sets."""
    arrays = [np.frombuffer(values, np.float32).reshape(shape) for values, shape in arrays]
    return differentiate(*arrays, **dict(steps)), differentiate(*arrays, **dict(steps), absolute=True)


def assert_close(got, grad, x, weights, **steps):
    """Compare what is there with float64, each element within its own bound (D7, D8)."""
    want, size = answers(tuple((array.tobytes(), array.shape) for array in (grad, x, weights)), tuple(steps.items()))
    kh, kw, channels, multiplier = weights.shape
    terms = min(256, grad.size // (channels * multiplier))
    bounds = (kh * kw * multiplier + 2) * 2.0**-23, (terms + 2) * 2.0**-24, (terms + 2) * 2.0**-24
    for name, array, exact, reach, bound in zip(got._fields, got, want, size, bounds, strict=True):
        if array is not None:
            array = np.asarray(array)
            assert array.dtype == np.float32
            assert array.shape == exact.shape, name
            worst = np.max(abs(array - exact) - bound * reach, initial=-1)
            assert worst <= 1e-37, f"{name}: {worst} beyond the bound"


def bits(gradients):
    return [np.asarray(gradient).tobytes() for gradient in gradients]


@every_isa
def test_d1_every_channel_count_around_the_lanes(isa):
    """D1: `depthwise_conv2d_backward(grad, x, weights, ...)` returns a `DepthwiseGradients(input, weights, bias)`."""
    for channels, multiplier in [(channels, 1) for channels in CHANNELS] + [(1, 2), (3, 8), (2, 16), (5, 3), (17, 4), (16, 1)]:
        for kernel, stride, dilation in (((3, 3), (1, 1), (1, 1)), ((3, 3), (2, 2), (1, 1)), ((5, 2), (1, 3), (2, 1))):
            padding = same((6, 9), kernel, stride, dilation)
            grad, x, weights = layer((6, 9), channels, multiplier, kernel, stride, dilation, padding, batch=2)
            got = nd.depthwise_conv2d_backward(grad, x, weights, stride=stride, dilation=dilation, isa=isa)
            assert type(got) is nd.DepthwiseGradients
            assert_close(got, grad, x, weights, stride=stride, dilation=dilation, padding=padding)


@every_isa
@pytest.mark.parametrize("padding", [NONE, ((1, 2), (2, 1)), ((6, 0), (0, 12))])
def test_d1_every_window(isa, padding):
    """D1: sums over all taps (a, b) of windows (i, j) that lie on pixel (r, q)."""
    for kernel, stride, dilation in WINDOWS:
        for size in ((8, 13), (1, 2)):
            for channels, multiplier in ((17, 1), (3, 2)):
                arrays = layer(size, channels, multiplier, kernel, stride, dilation, padding)
                if arrays is not None:
                    got = nd.depthwise_conv2d_backward(*arrays, stride=stride, dilation=dilation, padding=padding, isa=isa)
                    assert_close(got, *arrays, stride=stride, dilation=dilation, padding=padding)


@settings(max_examples=100)
@given(st.data())
def test_d1_any_layer(data):
    """D1: sums over all taps (a, b) of windows (i, j) that lie on pixel (r, q)."""
    small = st.integers(1, 4)
    pairs = st.tuples(small, small)
    size, kernel, stride, dilation = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 30))), data.draw(pairs), data.draw(pairs), data.draw(pairs)
    sides = st.tuples(st.integers(0, 5), st.integers(0, 5))
    padding = data.draw(st.sampled_from(("same", "valid")) | st.tuples(sides, sides))
    explicit = same(size, kernel, stride, dilation) if padding == "same" else NONE if padding == "valid" else padding
    arrays = layer(size, data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3)), kernel, stride, dilation, explicit, data.draw(st.integers(1, 2)))
    if arrays is None:
        return
    threads, isa = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(ISAS))
    turn = data.draw(st.permutations(range(4)))
    grad, x = (np.ascontiguousarray(array.transpose(turn)).transpose(np.argsort(turn)) for array in arrays[:2])
    got = nd.depthwise_conv2d_backward(grad, x, arrays[2], stride=stride, dilation=dilation, padding=padding, threads=threads, isa=isa)
    assert_close(got, *arrays, stride=stride, dilation=dilation, padding=explicit)


def test_d1_the_oracle_agrees_with_finite_differences():
    """D1: `weights[a, b, c, m]` sums `grad[n, i, j, c*M + m] * x[n, i*sh - top + a*dh, j*sw - left + b*dw, c]`."""
    for kernel, stride, dilation in (((3, 2), (2, 1), (1, 2)), ((2, 2), (3, 3), (1, 1))):
        padding = ((1, 0), (2, 1))
        grad, x, weights = (array.astype(np.float64) for array in layer((5, 6), 2, 2, kernel, stride, dilation, padding, batch=2))
        steps = {"stride": stride, "dilation": dilation, "padding": padding}
        by_x, by_weights, by_bias = differentiate(grad, x, weights, **steps)
        for gradient, array in ((by_x, x), (by_weights, weights)):
            for index in np.ndindex(array.shape):
                kept, losses = array[index], []
                for step in (0.5, -0.5):  # the loss is linear in each number: any step is exact but for rounding
                    array[index] = kept + step
                    losses.append((accumulate(x, weights, **steps) * grad).sum())
                array[index] = kept
                assert abs(losses[0] - losses[1] - gradient[index]) < 1e-9
        assert np.allclose(by_bias, grad.sum((0, 1, 2)))


def test_d1_gradients_are_those_of_our_own_convolution():
    """D1: `depthwise_conv2d_backward(grad, x, weights, ...)` returns a `DepthwiseGradients(input, weights, bias)`."""
    grad, x, weights = layer((7, 8), 5, 2, (3, 3), (2, 2), padding=same((7, 8), (3, 3), (2, 2)))
    got = nd.depthwise_conv2d_backward(grad, x, weights, stride=2)
    for array, gradient, other in ((x, got.input, weights), (weights, got.weights, x)):
        direction = random(array.shape, 7)
        y = nd.depthwise_conv2d(direction, other, stride=2) if array is x else nd.depthwise_conv2d(other, direction, stride=2)
        assert abs((y.to_numpy().astype(float) * grad).sum() - (direction.astype(float) * gradient.to_numpy()).sum()) < 1e-2


def test_d1_torch_agrees():
    """D1: `depthwise_conv2d_backward(grad, x, weights, ...)` returns a `DepthwiseGradients(input, weights, bias)`."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for channels, multiplier, kernel, stride, dilation, padding in (
        (16, 1, 3, 1, 1, 1), (17, 1, 3, 2, 1, 1), (8, 2, 5, 2, 1, 0), (3, 8, 3, 1, 2, 2), (24, 1, 7, 3, 1, 3),
    ):  # fmt: skip
        grad, x, weights = layer((15, 17), channels, multiplier, (kernel,) * 2, (stride,) * 2, (dilation,) * 2, ((padding,) * 2,) * 2, batch=2)
        c1hw = np.ascontiguousarray(weights.reshape(kernel, kernel, -1).transpose(2, 0, 1)[:, None])
        tensors = [torch.from_numpy(a).requires_grad_() for a in (x.transpose(0, 3, 1, 2), c1hw, np.zeros(channels * multiplier, np.float32))]
        y = torch.nn.functional.conv2d(*tensors, stride=stride, padding=padding, dilation=dilation, groups=channels)
        want = torch.autograd.grad(y, tensors, torch.from_numpy(grad.transpose(0, 3, 1, 2)))
        got = nd.depthwise_conv2d_backward(
            grad.transpose(0, 3, 1, 2), x.transpose(0, 3, 1, 2), c1hw, stride=stride, dilation=dilation, padding=padding,
            data_format="NCHW", weights_format="C1HW",
        )  # fmt: skip
        for ours, theirs in zip(got, want, strict=True):
            assert np.allclose(ours.to_numpy(), theirs.numpy(), rtol=1e-4, atol=1e-3)


def test_d2_formats_of_weights_and_axes():
    """D2: stride, dilation, padding, formats and the reading of weights are those of the forward call."""
    grad, x, weights = layer((5, 6), 3, 2, (2, 3))
    want = nd.depthwise_conv2d_backward(grad, x, weights, padding="valid")
    for name, order in (("HWCM", (0, 1, 2, 3)), ("MCHW", (3, 2, 0, 1)), ("MHWC", (3, 0, 1, 2))):
        for layout in (np.ascontiguousarray, np.asfortranarray, nd.array):
            got = nd.depthwise_conv2d_backward(grad, x, layout(weights.transpose(order)), padding="valid", weights_format=name)
            assert got.weights.shape == tuple(weights.shape[axis] for axis in order)
            assert np.array_equal(got.weights.to_numpy(), want.weights.to_numpy().transpose(order)), name
            assert bits((got.input, got.bias)) == bits((want.input, want.bias))
    lite = weights.reshape(1, 2, 3, 6)
    assert np.array_equal(nd.depthwise_conv2d_backward(grad, x, lite, padding="valid").weights.to_numpy(), want.weights.to_numpy().reshape(1, 2, 3, 6))
    c1hw = weights.reshape(2, 3, 6).transpose(2, 0, 1)[:, None]
    got = nd.depthwise_conv2d_backward(grad, x, c1hw, padding="valid", weights_format="C1HW")
    assert np.array_equal(got.weights.to_numpy(), want.weights.to_numpy().reshape(2, 3, 6).transpose(2, 0, 1)[:, None])
    turned = nd.depthwise_conv2d_backward(grad.transpose(0, 3, 1, 2), x.transpose(0, 3, 1, 2), weights, padding="valid", data_format="NCHW")
    assert_close(turned._replace(input=turned.input.permute((0, 2, 3, 1))), grad, x, weights)


def test_d2_behind_an_activation():
    """D2: `grad` is the gradient behind the convolution and before its activation."""
    grad, x, weights = layer((5, 6), 3, 1, (3, 3), padding=same((5, 6), (3, 3)))
    y = nd.depthwise_conv2d(x, weights, activation="relu").to_numpy()
    got = nd.depthwise_conv2d_backward(grad * (y > 0), x, weights, needs="input").input.to_numpy().astype(float)
    direction = random(x.shape, 5).astype(float)
    ahead, behind = (np.maximum(accumulate(x + step * direction, weights, padding=same((5, 6), (3, 3))), 0) for step in (1e-7, -1e-7))
    assert abs((got * direction).sum() - ((ahead - behind) / 2e-7 * grad).sum()) < 1e-4 * abs(got * direction).sum()


@every_isa
def test_d3_infinite_values_stay_with_their_taps(isa):
    """D3: Taps outside the image add nothing: no value that is not finite reaches a gradient that its own sum does not contain."""
    for kernel, stride, size in (((3, 3), (1, 1), (4, 11)), ((3, 3), (2, 2), (5, 9)), ((2, 5), (1, 2), (3, 7)), ((1, 1), (2, 2), (3, 3))):
        for channels, multiplier in ((17, 1), (2, 3)):
            padding = same(size, kernel, stride)
            arrays = layer(size, channels, multiplier, kernel, stride, (1, 1), padding)
            for which, value in itertools.product(range(3), (np.inf, np.nan)):
                spoilt = [array.copy() for array in arrays]
                spoilt[which].reshape(-1, spoilt[which].shape[-1])[:: 3 if which == 2 else 7] = value
                with np.errstate(invalid="ignore"):
                    want = differentiate(*spoilt, stride=stride, padding=padding)
                got = nd.depthwise_conv2d_backward(*spoilt, stride=stride, isa=isa)
                for gradient, exact in zip(got, want, strict=True):
                    assert np.array_equal(np.isfinite(gradient.to_numpy()), np.isfinite(exact)), (kernel, which, gradient)


def test_d4_only_what_is_needed():
    """D4: `needs` names what is computed; the rest is None."""
    grad, x, weights = layer((5, 6), 17, 1, (3, 3))
    full = nd.depthwise_conv2d_backward(grad, x, weights, padding="valid")
    for count in (1, 2, 3):
        for needs in itertools.permutations(full._fields, count):
            got = nd.depthwise_conv2d_backward(grad, x, weights, padding="valid", needs=needs[0] if count == 1 else needs)
            for name, part, whole in zip(full._fields, got, full, strict=True):
                assert (part is None) == (name not in needs)
                assert part is None or np.allclose(part.to_numpy(), whole.to_numpy(), atol=1e-5)
    layout = nd.asarray(x).descriptor
    got = nd.depthwise_conv2d_backward(grad, layout, weights, padding="valid", needs=("input", "bias"))
    assert bits((got.input,)) == bits((full.input,))
    assert np.allclose(got.bias.to_numpy(), full.bias.to_numpy(), atol=1e-5)


def test_d5_every_layout():
    """D5: Every order, stride and sign of `grad`, `x` and `out` gives the same gradients."""
    for multiplier, stride in ((1, 1), (1, 2), (2, 2)):
        padding = same((5, 6), (3, 3), (stride,) * 2)
        grad, x, weights = layer((5, 6), 3, multiplier, (3, 3), (stride,) * 2, (1, 1), padding)
        for (name, g), (_, v) in zip(arrangements(grad, np.nan), arrangements(x, np.nan), strict=True):
            got = nd.depthwise_conv2d_backward(g, v, weights, stride=stride)
            assert_close(got, grad, x, weights, stride=(stride,) * 2, padding=padding)
            assert got.input.descriptor.axes == nd.asarray(v).descriptor.axes, name
            assert not any(got.input.descriptor.paddings)
        for name, target in arrangements(np.zeros_like(x), 7):
            if "read-only" not in name:
                got = nd.depthwise_conv2d_backward(grad, x, weights, stride=stride, needs="input", out=(target, None, None))
                assert_close(got, grad, x, weights, stride=(stride,) * 2, padding=padding)
    broadcast = np.broadcast_to(np.float32(1), grad.shape)
    assert_close(nd.depthwise_conv2d_backward(broadcast, x, weights, stride=2), broadcast, x, weights, stride=(2, 2), padding=padding)


@every_isa
def test_d6_elements_of_out_are_written_and_nothing_else(isa):
    """D6: elements are written, padding and what lies between elements stays as it was."""
    for kernel, stride, multiplier in (((3, 3), (1, 1), 1), ((3, 3), (2, 2), 1), ((1, 2), (3, 3), 2)):
        padding = same((5, 6), kernel, stride)
        arrays = layer((5, 6), 17, multiplier, kernel, stride, (1, 1), padding)
        hosts = [hosted(np.zeros_like(array), (1,) * array.ndim, (2,) * array.ndim, 7) for array in (*arrays[1:], np.zeros(17 * multiplier, np.float32))]
        out = tuple(view for _, view in hosts)
        got = nd.depthwise_conv2d_backward(*arrays, stride=stride, out=out, isa=isa)
        assert all(ours is theirs for ours, theirs in zip(got, out, strict=True))
        assert_close(got, *arrays, stride=stride, padding=padding)
        for host, view in hosts:
            view[...] = 7
            assert (host == 7).all()
    target = padded(np.zeros((1, 5, 6, 17), np.float32), (0, 2, 3, 15), (0, 1, 1, 0), 9)
    grad, x, weights = layer((5, 6), 17, 1, (3, 3), padding=same((5, 6), (3, 3)))
    assert nd.depthwise_conv2d_backward(grad, x, weights, out=(target, None, None), isa=isa).input is target
    assert target.check_padding(9)
    padding = same((5, 6), (3, 3), (2, 2))
    arrays = layer((5, 6), 17, 2, (3, 3), (2, 2), (1, 1), padding)
    planes = padded(np.zeros((1, 17, 5, 6), np.float32), (0, 2, 2, 3), (0, 1, 1, 1), 9)
    got = nd.depthwise_conv2d_backward(*arrays, stride=2, out=(planes.transpose(0, 2, 3, 1), None, None), isa=isa)
    assert_close(got, *arrays, stride=(2, 2), padding=padding)
    assert planes.check_padding(9)


def test_d6_overlap_is_refused():
    """D6: one that overlaps another, `grad`, `x` or `weights` is refused."""
    grad, x, weights = layer((5, 6), 3, 1, (3, 3), padding=same((5, 6), (3, 3)))
    memory = np.zeros(200, np.float32)
    for out in ((grad, None, None), (x, None, None), (x[:, ::-1], None, None), (None, x.reshape(-1)[:27].reshape(3, 3, 3, 1), None),
                (memory[:90].reshape(x.shape), memory[63:90].reshape(weights.shape), None), (None, None, grad[0, 0, 0]),
                (None, weights, None), (None, None, weights.reshape(-1)[5:8])):  # fmt: skip
        kept = grad.copy(), x.copy(), weights.copy()
        with pytest.raises(nd.LayoutError, match=r"^out for (input|weights|bias) must not overlap (grad|x|weights|input): bytes 0x"):
            nd.depthwise_conv2d_backward(grad, x, weights, out=out)
        assert np.array_equal(grad, kept[0])
        assert np.array_equal(x, kept[1])
        assert np.array_equal(weights, kept[2])


@every_isa
def test_d7_the_error_does_not_grow_with_the_image(isa):
    """D7: Gradients by weights and bias are within `(min(terms, 256) + 2) * 2**-24 * sum |grad*x|` of the exact value."""
    for shape, multiplier in (((3, 40, 50, 16), 1), ((1, 2, 700, 3), 1), ((2, 300, 1, 2), 3)):
        rng = np.random.default_rng(1)
        # All of one sign: each rounding of a sum goes the same way.
        x = rng.uniform(1, 1.001, shape).astype(np.float32)
        grad = rng.uniform(1, 1.001, (*shape[:3], shape[3] * multiplier)).astype(np.float32)
        weights = np.ones((3, 3, shape[3], multiplier), np.float32)
        got = nd.depthwise_conv2d_backward(grad, x, weights, needs=("weights", "bias"), isa=isa)
        room = np.pad(x.astype(float), ((0, 0), (1, 1), (1, 1), (0, 0)))
        wide = grad.astype(float).reshape(*shape, multiplier)
        for a, b in np.ndindex(3, 3):
            exact = (wide * room[:, a : a + shape[1], b : b + shape[2], :, None]).sum((0, 1, 2))
            assert (abs(got.weights.to_numpy()[a, b] - exact) <= 258 * 2.0**-24 * exact).all()
        exact = wide.sum((0, 1, 2)).reshape(-1)
        assert (abs(got.bias.to_numpy() - exact) <= 258 * 2.0**-24 * exact).all()


def test_d8_bound_of_the_input():
    """D8: Gradients by the input are within `(taps*M + 2) * 2**-23 * sum |grad*w|` of the exact value."""
    for multiplier in (1, 5, 16):
        grad, x, weights = layer((9, 9), 4, multiplier, (7, 7), padding=same((9, 9), (7, 7)))
        grad, weights = abs(grad) + 1, abs(weights) + 1
        for isa in ISAS:
            assert_close(nd.depthwise_conv2d_backward(grad, x, weights, needs="input", isa=isa), grad, x, weights, padding=same((9, 9), (7, 7)))


@every_isa
def test_d9_threads_change_no_bit(isa):
    """D9: the result has the same bits for any number of threads."""
    for channels, multiplier, stride in ((131, 1, 1), (64, 1, 2), (40, 3, 2)):
        padding = same((60, 61), (3, 3), (stride,) * 2)
        arrays = layer((60, 61), channels, multiplier, (3, 3), (stride,) * 2, (1, 1), padding, batch=3)
        want = bits(nd.depthwise_conv2d_backward(*arrays, stride=stride, isa=isa))
        for threads in (2, 3, 8):
            assert bits(nd.depthwise_conv2d_backward(*arrays, stride=stride, threads=threads, isa=isa)) == want


@every_isa
@pytest.mark.parametrize("side", SIDES)
def test_d10_guard_pages(isa, side):
    """D10: Nothing outside the buffers is read or written, on any instruction set."""
    for kernel, stride, dilation in WINDOWS[::2]:
        for channels, multiplier in ((5, 1), (17, 1), (3, 8), (1, 1)):
            padding = same((6, 9), kernel, stride, dilation)
            arrays = layer((6, 9), channels, multiplier, kernel, stride, dilation, padding)
            grad, x, weights = (guarded_array(array, side) for array in arrays)
            out = tuple(guarded_array(np.zeros_like(a), side) for a in (x, weights, np.zeros(channels * multiplier, np.float32)))
            got = nd.depthwise_conv2d_backward(grad, x, weights, stride=stride, dilation=dilation, out=out, isa=isa)
            assert_close(got, *arrays, stride=stride, dilation=dilation, padding=padding)


def test_d11_refusals_write_nothing():
    """D11: A refused call says what, the rule and the values, and has written nothing."""
    grad, x, weights = layer((5, 6), 3, 1, (3, 3), padding=same((5, 6), (3, 3)))
    readonly = np.zeros_like(x)
    readonly.setflags(write=False)
    blocked = nd.reorder(x, "aBcd8b")
    out = (np.full_like(x, 7), np.full_like(weights, 7), np.full(3, 7, np.float32))
    layout = nd.asarray(x).descriptor
    for error, match, arguments, options in (
        (nd.LayoutError, r"grad must have the shape of the result, \(1, 5, 6, 3\) for x of shape", (grad[:, 1:], x, weights), {}),
        (nd.LayoutError, r"grad must have 4 axes", (grad[0], x, weights), {}),
        (nd.LayoutError, r"x must have 4 axes", (grad, x[0], weights), {}),
        (nd.LayoutError, r"x and grad must have the input and output channels of the weights, 3 and 3: 2 and 3", (grad, x[..., :2], weights), {}),
        (nd.LayoutError, r"weights must have the four axes", (grad, x, weights[0]), {}),
        (nd.LayoutError, r"no window fits", (grad, x, np.ones((9, 9, 3, 1), np.float32)), {"padding": "valid"}),
        (nd.LayoutError, r"stride must be 1 to", (grad, x, weights), {"stride": 0}),
        (nd.LayoutError, r"threads must be 1 to", (grad, x, weights), {"threads": 0}),
        (nd.LayoutError, r"data_format must be one of", (grad, x, weights), {"data_format": "NWHC"}),
        (nd.LayoutError, r"weights_format must be one of", (grad, x, weights), {"weights_format": "WHCM"}),
        (nd.LayoutError, r"needs must be one of 'input', 'weights', 'bias': 'x'", (grad, x, weights), {"needs": ("x",)}),
        (nd.LayoutError, r"needs must be a tuple of .* and not empty: \(\)", (grad, x, weights), {"needs": ()}),
        (nd.LayoutError, r"needs must be a tuple of .* and not empty: None", (grad, x, weights), {"needs": None}),
        (nd.LayoutError, r"the gradient by the weights needs the elements of x", (grad, layout, weights), {}),
        (nd.LayoutError, r"out must be a tuple of three", (grad, x, weights), {"out": out[0]}),
        (nd.LayoutError, r"out must be None for what is not needed: input", (grad, x, weights), {"needs": "bias", "out": (out[0], None, None)}),
        (nd.LayoutError, r"out for weights must have its shape, \(3, 3, 3, 1\): \(3, 3, 1, 3\)", (grad, x, weights),
         {"out": (out[0], np.zeros((3, 3, 1, 3), np.float32), out[2])}),
        (nd.LayoutError, r"out for input must be writable", (grad, x, weights), {"out": (readonly, *out[1:])}),
        (nd.LayoutError, "out for bias must be an NdArray, export a buffer or speak DLPack: a list", (grad, x, weights), {"out": (*out[:2], [0, 0, 0])}),
        (nd.DTypeError, r"no kernel for gradients with grad of float64: there is float32", (grad.astype(float), x, weights), {}),
        (nd.DTypeError, r"no kernel for gradients with x of int8: there is float32", (grad, x.astype(np.int8), weights), {}),
        (nd.DTypeError, r"no kernel for gradients with weights of float16: there is float32", (grad, x, weights.astype(np.float16)), {}),
        (nd.DTypeError, r"no kernel for gradients with weights of bfloat16: there is float32", (grad, x, nd.zeros((3, 3, 3, 1), dtype="bfloat16")), {}),
        (nd.DTypeError, r"no kernel for gradients with out for bias of float64", (grad, x, weights), {"out": (*out[:2], np.zeros(3))}),
        (nd.UnsupportedLayoutError, r"grad has inner blocks .* reorder makes it plain", (nd.reorder(grad, "aBcd8b"), x, weights), {}),
        (nd.UnsupportedLayoutError, r"x has inner blocks", (grad, blocked, weights), {}),
        (nd.UnsupportedLayoutError, r"out for input has inner blocks", (grad, x, weights), {"out": (nd.zeros_like(blocked), *out[1:])}),
        (nd.IsaError, r"isa='mmx': unknown", (grad, x, weights), {"isa": "mmx"}),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            nd.depthwise_conv2d_backward(*arguments, **({"out": out if "needs" not in options else None} | options))
        assert all((array == 7).all() for array in out), match


def test_d12_empty_batches():
    """D12: An empty batch gives zeros for weights and bias, and an empty gradient by the input."""
    for multiplier, stride in ((1, 1), (2, 2)):
        out = (-(-5 // stride), -(-6 // stride))
        got = nd.depthwise_conv2d_backward(
            np.zeros((0, *out, 3 * multiplier), np.float32), np.zeros((0, 5, 6, 3), np.float32), random((3, 3, 3, multiplier)), stride=stride, threads=2
        )
        assert got.input.shape == (0, 5, 6, 3)
        assert not got.weights.to_numpy().any()
        assert got.weights.shape == (3, 3, 3, multiplier)
        assert not got.bias.to_numpy().any()


def test_d1_phases_visit_each_tap_of_each_pixel_once():
    """D1: sums over all taps (a, b) of windows (i, j) that lie on pixel (r, q)."""
    for size, kernel, stride, dilation, before, after in itertools.product(range(1, 8), range(1, 5), range(1, 5), range(1, 5), (0, 1, 6), (0, 3)):
        out = out_size(size, kernel, stride, dilation, before, after)
        if out < 1:
            continue
        window = geometry.Window((kernel, 1), (stride, 1), (dilation, 1), ((before, after), (0, 0)))
        found = []
        for phase in window.phases(0, size, window.over((size, 1))):
            taps = range(kernel)[phase.taps]
            for u, (t, tap) in itertools.product(range(phase.pixels), enumerate(reversed(taps))):
                i = u - phase.pad + t * phase.dilation
                if 0 <= i < phase.extent:
                    found.append((phase.first + u * stride, i + phase.skip, tap))
        want = [(r, i, a) for i in range(out) for a in range(kernel) for r in [i * stride - before + a * dilation] if 0 <= r < size]
        assert sorted(found) == sorted(want)


@every_isa
@pytest.mark.parametrize("stride", [(2, 2), (1, 2), (2, 1)])
def test_d8_large_images_of_a_few_channels(isa, stride):
    """D8: within `(taps*M + 2) * 2**-23 * sum |grad*w|`; D3: no value that is not finite reaches a gradient that its own sum does not contain."""
    for place, (channels, dilation) in enumerate(itertools.product((2, 3, 4), ((1, 1), (2, 3)))):
        size = (90 + place % 3, 93 + place)
        for padding in (same(size, (3, 3), stride, dilation), NONE, ((5, 0), (1, 7))):
            steps = {"stride": stride, "dilation": dilation, "padding": padding}
            grad, x, weights = layer(size, channels, 1, (3, 3), batch=2, **steps)
            grad, x = guarded_array(grad, SIDES[place % 2]), guarded_array(x, SIDES[place % 2])
            got = nd.depthwise_conv2d_backward(grad, x, weights, needs="input", isa=isa, **steps)
            assert_close(got, grad, x, weights, **steps)
            shared = nd.depthwise_conv2d_backward(grad, x, weights, needs="input", isa=isa, threads=3, **steps)
            assert got.input.tobytes() == shared.input.tobytes()
            turned = grad.transpose(0, 3, 1, 2).copy()
            planes = nd.depthwise_conv2d_backward(turned, x.transpose(0, 3, 1, 2), weights, needs="input", data_format="NCHW", isa=isa, **steps)
            np.testing.assert_allclose(planes.input.transpose(0, 2, 3, 1), got.input, rtol=1e-5, atol=1e-5)
            weights[1, 1] = np.inf
            infinite = np.asarray(nd.depthwise_conv2d_backward(np.ones_like(grad), x, weights, needs="input", isa=isa, **steps).input)
            assert not np.isnan(infinite).any()


def placed(values, pitch, at):
    """Copy pixels to memory that is NaN elsewhere, `pitch` elements apart, `at` bytes beyond a line."""
    _, height, width, channels = values.shape
    memory = np.full(height * width * pitch + 32, np.nan, np.float32)
    skip = (-memory.ctypes.data % 64 + at) // 4
    copy = memory[skip : skip + height * width * pitch].reshape(1, height, width, pitch)[..., :channels]
    copy[...] = values
    return copy


@every_isa
@pytest.mark.parametrize(("kernel", "channels", "pitch"), [(3, 64, 64), (3, 67, 80), (3, 131, 144), (3, 129, 130), (3, 24, 32), (5, 272, 272), (1, 79, 80)])
def test_d13_vectors_that_begin_on_lines(isa, kernel, channels, pitch):
    """D13: vectors of channels that begin on lines of `x`; the bits do not depend on where `x` and `grad` lie."""
    for stride, threads in ((1, 1), (2, 3)):
        padding = same((7, 9), (kernel,) * 2, (stride,) * 2)
        grad, x, weights = layer((7, 9), channels, 1, (kernel,) * 2, (stride,) * 2, (1, 1), padding)
        options = {"stride": stride, "needs": ("weights", "bias"), "threads": threads, "isa": isa}
        want = nd.depthwise_conv2d_backward(grad, x, weights, **options)
        assert_close(want, grad, x, weights, stride=(stride,) * 2, padding=padding)
        for at, other in ((0, 0), (4, 4), (16, 16), (32, 48), (60, 20)):
            got = nd.depthwise_conv2d_backward(placed(grad, channels, other), placed(x, pitch, at), weights, **options)
            assert [np.asarray(a).tobytes() for a in got[1:]] == [np.asarray(a).tobytes() for a in want[1:]]


@every_isa
@pytest.mark.parametrize(("kernel", "channels", "multiplier"), [(3, 1024, 1), (3, 144, 1), (5, 256, 1), (7, 512, 1), (3, 40, 2)])
def test_d14_caches_and_addresses(isa, kernel, channels, multiplier):
    """D14: planned for this machine's caches, and without a stride for the addresses (..); the bits do not depend on them."""
    for stride in (1, 2):
        padding = same((9, 8), (kernel,) * 2, (stride,) * 2)
        grad, x, weights = layer((9, 8), channels, multiplier, (kernel,) * 2, (stride,) * 2, (1, 1), padding)
        want = nd.depthwise_conv2d_backward(grad, x, weights, stride=stride, needs="input", isa=isa)
        assert_close(want, grad, x, weights, stride=(stride,) * 2, padding=padding)
        # Each lies elsewhere than the one before, or its plan would be kept.
        places = ((0, 0), (16, 16), (48, 16), (16, 0), (0, 32))
        for (count, amd), distance, (at, other) in zip((*MACHINES, HALVING, HALVING), (0, 1, 2, 3, 0), places, strict=True):
            with ways(count, amd, distance):
                given, out = placed(grad, channels * multiplier, at), placed(np.zeros_like(x), channels, other)
                nd.depthwise_conv2d_backward(given, x, weights, stride=stride, needs="input", out=(out, None, None), isa=isa)
                assert out.tobytes() == np.asarray(want.input).tobytes()

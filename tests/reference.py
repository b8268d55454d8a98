"""Obvious oracles: depthwise convolution as a loop over taps, requantization step by step as the references define it."""

import functools
import math

import numpy as np


def out_size(size, kernel, stride, dilation, before, after):
    """How many windows fit."""
    return (size + before + after - ((kernel - 1) * dilation + 1)) // stride + 1


def same_padding(size, kernel, stride, dilation):
    """TensorFlow Lite's SAME, as (before, after)."""
    out = math.ceil(size / stride)
    total = max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


@functools.cache
def along(size, kernel, stride, dilation, padding):
    """Extent of the result along an axis, and (tap, windows, pixels) of each tap that lies inside the image of some windows."""
    out, joins = out_size(size, kernel, stride, dilation, *padding), []
    for tap in range(kernel):
        place = tap * dilation - padding[0]
        windows = [i for i in range(out) if 0 <= i * stride + place < size]
        if windows:
            first, last = windows[0], windows[-1]
            joins.append((tap, slice(first, last + 1), slice(first * stride + place, last * stride + place + 1, stride)))
    return out, joins


def joined(x_shape, weights_shape, stride=(1, 1), dilation=(1, 1), padding=((0, 0), (0, 0))):
    """Extents of the result; and of each tap its place in the kernel, and the indices of the windows and of the pixels that it joins."""
    (height, rows), (width, columns) = map(along, x_shape[1:3], weights_shape[:2], stride, dilation, padding)
    every = slice(None)
    return (height, width), [((a, b), (every, i, j), (every, y, x)) for a, i, y in rows for b, j, x in columns]


def accumulate(x, weights, *, absolute=False, **geometry):
    """Sum over the window: x (N, H, W, C) and weights (kH, kW, C, M) to (N, OH, OW, C*M); float64 for floats, int64 for integers."""
    wide = np.float64 if np.asarray(x).dtype.kind == "f" else np.int64
    x, weights = np.asarray(x, wide), np.asarray(weights, wide)
    if absolute:
        x, weights = abs(x), abs(weights)
    out, joins = joined(x.shape, weights.shape, **geometry)
    sums = np.zeros((len(x), *out, *weights.shape[2:]), wide)
    for tap, windows, pixels in joins:
        sums[windows] += x[pixels][..., None] * weights[tap]
    return sums.reshape(len(x), *out, -1)


def depthwise_float(x, weights, bias=None, activation=(-math.inf, math.inf), **geometry):
    """Compute the result in float64, and for each element a bound on what float32 may make of it."""
    exact = accumulate(x, weights, **geometry)
    reach = accumulate(x, weights, absolute=True, **geometry)
    if bias is not None:
        exact = exact + np.asarray(bias, np.float64)
        reach = reach + abs(np.asarray(bias, np.float64))
    taps = weights.shape[0] * weights.shape[1]
    # Each of the taps+1 additions and products may round once (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
    return np.clip(exact, *activation), (taps + 2) * 2.0**-23 * reach + 1e-37


def differentiate(grad, x, weights, *, absolute=False, **geometry):
    """Gradients by x, weights and bias of what `accumulate` computes, in float64."""
    grad, x, weights = (np.asarray(a, np.float64) for a in (grad, x, weights))
    if absolute:
        grad, x, weights = abs(grad), abs(x), abs(weights)
    out, joins = joined(x.shape, weights.shape, **geometry)
    grad = grad.reshape(len(x), *out, *weights.shape[2:])
    by_x, by_weights = np.zeros_like(x), np.zeros_like(weights)
    for tap, windows, pixels in joins:
        by_x[pixels] += (grad[windows] * weights[tap]).sum(-1)
        by_weights[tap] = (grad[windows] * x[pixels][..., None]).sum((0, 1, 2))
    return by_x, by_weights, grad.sum((0, 1, 2)).reshape(-1)


def depthwise_quantized(x, weights, bias, quantization, rounding, clamp=None, **geometry):
    """Compute the result of a layer of any integer type, a `Quantization` telling its kind.

    `clamp`: bounds of the quantized or float32 result.
    """
    kind = np.asarray(x).dtype
    bits = 64 if kind == np.int16 else 32
    sums = accumulate(np.asarray(x, np.int64) - quantization.input[1], np.asarray(weights, np.int64) - quantization.weights_zero_point, **geometry)
    sums = sums + (0 if bias is None else np.asarray(bias, np.int64))  # arrays of int64 wrap around
    sums = sums if bits == 64 else wrap32(sums)
    if quantization.output is None:
        return sums.astype(f"int{bits}")
    scales = np.broadcast_to(np.asarray(quantization.weights, np.float32), sums.shape[-1])
    products = np.float32(quantization.input[0]) * scales
    if quantization.output == "float32":
        return np.clip(sums.astype(f"int{bits}").astype(np.float32) * products, *(np.float32(clamp) if clamp else ()))
    scale, zero_point = quantization.output
    if rounding == "xnnpack":
        result = np.rint(sums.astype(np.float32) * (products / np.float32(scale))).astype(np.float64)
    else:
        wide = products.astype(np.float64) if kind == np.uint8 else float(np.float32(quantization.input[0])) * scales.astype(np.float64)
        fixed = [quantize_multiplier(float(product) / float(np.float32(scale))) for product in wide]
        rescale = multiply_64_by_quantized_multiplier if kind == np.int16 else multiply_by_quantized_multiplier
        result = rescale(sums, *np.array(fixed).T)
    return np.clip(result + zero_point, *(clamp or (np.iinfo(kind).min, np.iinfo(kind).max))).astype(kind)


def multiply_64_by_quantized_multiplier(value, multiplier, shift):
    """Apply TensorFlow Lite's rescaling of a 64-bit sum: 15 bits of the multiplier, one rounding; what leaves 32 bits is cut off."""
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + 2**15) // 2**16, 0x7FFF)
    return wrap32((value * reduced + 2 ** (14 - shift)) >> (15 - shift))  # 64 bits wrap around


def wrap32(value):
    """Two's complement of 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


def quantize_multiplier(effective):
    """TensorFlow Lite's QuantizeMultiplier."""
    fraction, shift = math.frexp(effective)
    fixed = round_half_away(fraction * (1 << 31))
    if fixed == 1 << 31:
        fixed //= 2
        shift += 1
    if shift < -31:
        fixed = shift = 0
    return fixed, shift


def round_half_away(value):
    """C's round."""
    floor = math.floor(abs(value))
    return int(math.copysign(floor + (abs(value) - floor >= 0.5), value))


def multiply_by_quantized_multiplier(value, multiplier, shift):
    """Apply gemmlowp's SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT; arrays of int64 (no product of multipliers from 0 on saturates)."""
    value = wrap32(value << np.maximum(shift, 0))
    product = value * multiplier
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = abs(nudged) // 2**31 * np.sign(nudged)  # C divides toward zero
    exponent = np.maximum(-shift, 0)
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> exponent) + ((high & mask) > threshold)

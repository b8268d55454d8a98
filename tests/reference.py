"""Slow, obvious oracles: depthwise convolution as a loop over taps, requantization on integers of any size."""

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


def accumulate(x, weights, stride=(1, 1), dilation=(1, 1), padding=((0, 0), (0, 0)), absolute=False):
    """Sum over the window: x (N, H, W, C) and weights (kH, kW, C, M) to (N, OH, OW, C*M); float64 for floats, int64 for integers."""
    wide = np.float64 if np.asarray(x).dtype.kind == "f" else np.int64
    x, weights = np.asarray(x, wide), np.asarray(weights, wide)
    if absolute:
        x, weights = abs(x), abs(weights)
    (batch, height, width, channels), (kh, kw, _, multiplier) = x.shape, weights.shape
    (top, bottom), (left, right) = padding
    oh = out_size(height, kh, stride[0], dilation[0], top, bottom)
    ow = out_size(width, kw, stride[1], dilation[1], left, right)
    sums = np.zeros((batch, oh, ow, channels, multiplier), wide)
    for i in range(oh):
        for j in range(ow):
            for a in range(kh):
                for b in range(kw):
                    row, column = i * stride[0] - top + a * dilation[0], j * stride[1] - left + b * dilation[1]
                    if 0 <= row < height and 0 <= column < width:
                        sums[:, i, j] += x[:, row, column, :, None] * weights[a, b]
    return sums.reshape(batch, oh, ow, channels * multiplier)


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


def differentiate(grad, x, weights, stride=(1, 1), dilation=(1, 1), padding=((0, 0), (0, 0)), absolute=False):
    """Gradients by x, weights and bias of what `accumulate` computes: a loop over windows and taps, in float64."""
    grad, x, weights = (np.asarray(a, np.float64) for a in (grad, x, weights))
    if absolute:
        grad, x, weights = abs(grad), abs(x), abs(weights)
    (_, height, width, channels), (kh, kw, _, multiplier) = x.shape, weights.shape
    batch, oh, ow, _ = grad.shape
    grad = grad.reshape(batch, oh, ow, channels, multiplier)
    by_x, by_weights = np.zeros_like(x), np.zeros_like(weights)
    for i in range(oh):
        for j in range(ow):
            for a in range(kh):
                for b in range(kw):
                    row, column = i * stride[0] - padding[0][0] + a * dilation[0], j * stride[1] - padding[1][0] + b * dilation[1]
                    if 0 <= row < height and 0 <= column < width:
                        by_x[:, row, column] += (grad[:, i, j] * weights[a, b]).sum(-1)
                        by_weights[a, b] += (grad[:, i, j] * x[:, row, column, :, None]).sum(0)
    return by_x, by_weights, grad.sum((0, 1, 2)).reshape(-1)


def depthwise_int8(x, weights, bias, quantization, rounding, clamp=(-128, 127), **geometry):
    """Compute the int8 result. `quantization`: ((scale, zero point), weight scales, (scale, zero point)), scales as float32 values."""
    (input_scale, input_zero), weight_scales, (output_scale, output_zero) = quantization
    sums = accumulate(np.asarray(x, np.int64) - input_zero, weights, **geometry)
    channels = sums.shape[-1]
    scales = np.broadcast_to(np.asarray(weight_scales, np.float32), channels)
    result = np.empty(sums.shape, np.int8)
    for channel in range(channels):
        if rounding == "tflite":
            multiplier, shift = quantize_multiplier(float(np.float32(input_scale)) * float(scales[channel]) / float(np.float32(output_scale)))
        for where in np.ndindex(sums.shape[:-1]):
            total = wrap32(int(sums[(*where, channel)]) + (0 if bias is None else int(bias[channel])))
            if rounding == "tflite":
                value = multiply_by_quantized_multiplier(total, multiplier, shift) + output_zero
            else:
                scale = np.float32(input_scale) * scales[channel] / np.float32(output_scale)
                value = round(float(np.float32(total) * scale)) + output_zero  # Python rounds half to even
            result[(*where, channel)] = min(max(value, clamp[0]), clamp[1])
    return result


def depthwise_quantized(x, weights, bias, quantization, rounding, clamp=None, **geometry):
    """Compute the result of a layer of any integer type, a `Quantization` telling its kind; arrays of Python integers, exact at any size.

    `clamp`: bounds of the quantized or float32 result.
    """
    kind = np.asarray(x).dtype
    bits = 64 if kind == np.int16 else 32
    sums = accumulate(np.asarray(x, np.int64) - quantization.input[1], np.asarray(weights, np.int64) - quantization.weights_zero_point, **geometry)
    sums = sums.astype(object) if bias is None else sums + np.asarray(bias, object)
    sums = (sums + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    if quantization.output is None:
        return sums.astype(f"int{bits}")
    scales = np.broadcast_to(np.asarray(quantization.weights, np.float32), sums.shape[-1])
    products = np.float32(quantization.input[0]) * scales
    if quantization.output == "float32":
        return np.clip(sums.astype(f"int{bits}").astype(np.float32) * products, *(np.float32(clamp) if clamp else ()))
    scale, zero_point = quantization.output
    result = np.empty(sums.shape, object)
    for channel in range(sums.shape[-1]):
        if rounding == "xnnpack":
            values = sums[..., channel].astype(np.float32) * (products[channel] / np.float32(scale))
            result[..., channel] = np.rint(values).astype(np.float64).astype(object)
            continue
        product = float(products[channel]) if kind == np.uint8 else float(np.float32(quantization.input[0])) * float(scales[channel])
        multiplier, shift = quantize_multiplier(product / float(np.float32(scale)))
        rescale = multiply_64_by_quantized_multiplier if kind == np.int16 else multiply_by_quantized_multiplier
        result[..., channel] = np.vectorize(rescale, otypes=[object], excluded=[1, 2])(sums[..., channel], multiplier, shift)
    return np.clip(result + zero_point, *(clamp or (np.iinfo(kind).min, np.iinfo(kind).max))).astype(kind)


def multiply_64_by_quantized_multiplier(value, multiplier, shift):
    """Apply TensorFlow Lite's rescaling of a 64-bit sum: 15 bits of the multiplier, one rounding; what leaves 32 bits is cut off."""
    reduced = (multiplier + 2**15) // 2**16 if multiplier < 0x7FFF0000 else 0x7FFF
    product = (value * reduced + 2 ** (14 - shift) + 2**63) % 2**64 - 2**63
    return wrap32(product >> (15 - shift))


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
    """Apply gemmlowp's SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT."""
    value = wrap32(value << max(shift, 0))
    if value == multiplier == -(2**31):
        high = 2**31 - 1
    else:
        product = value * multiplier
        nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
        high = abs(product + nudge) // 2**31 * (1 if product + nudge >= 0 else -1)  # C divides toward zero
    exponent = max(-shift, 0)
    mask = (1 << exponent) - 1
    remainder = high & mask
    threshold = (mask >> 1) + (high < 0)
    return (high >> exponent) + (remainder > threshold)

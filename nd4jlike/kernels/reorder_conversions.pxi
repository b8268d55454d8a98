# Conversions between float32 and something narrower, of dense numbers.

cdef extern from "tiles.h" nogil:
    ctypedef unsigned short vhalves
    ctypedef signed char vi8
    vhalves half_of_f32(vf32 value)
    vf32 f32_of_half(vhalves half)
    vhalves brain_of_f32(vf32 value)
    vf32 f32_of_brain(vhalves brain)
    vi8 quantized(vf32 value, vf32 scale, vf32 low, vf32 high, vi32 zero_point)
    vf32 dequantized(vi8 code, vf32 scale, vi32 zero_point)

# What float32 is converted to and from: bits of float16, bits of bfloat16, int8.
ctypedef unsigned short half
ctypedef short brain
ctypedef signed char code

ctypedef fused narrower:
    half
    brain
    code


cdef inline void narrow(const float *source, narrower *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    """Dense float32 numbers to half as many bits, or a quarter."""
    cdef vf32 steps = splat_f32(scale), low = splat_f32(-128 - zero_point), high = splat_f32(127 - zero_point)
    cdef vi32 zero = splat_i32(zero_point)
    cdef vhalves halves
    cdef vi8 codes
    cdef Py_ssize_t i = 0, some
    while i < count:
        some = min(count - i, LANES)
        if narrower is code:
            codes = quantized(load_f32(source + i, some), steps, low, high, zero)
            if some == LANES:
                (<vi8 *> (target + i))[0] = codes
            else:
                copy_run(<char *> (target + i), <const char *> &codes, some)
        else:
            if narrower is half:
                halves = half_of_f32(load_f32(source + i, some))
            else:
                halves = brain_of_f32(load_f32(source + i, some))
            if some == LANES:
                (<vhalves *> (target + i))[0] = halves
            else:
                copy_run(<char *> (target + i), <const char *> &halves, some * 2)
        i += LANES


cdef inline void widen(const narrower *source, float *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    """And back."""
    cdef vf32 steps = splat_f32(scale)
    cdef vi32 zero = splat_i32(zero_point)
    cdef vhalves halves
    cdef vi8 codes
    cdef Py_ssize_t i = 0, some
    memset(&halves, 0, sizeof(halves))
    memset(&codes, 0, sizeof(codes))
    while i < count:
        some = min(count - i, LANES)
        if narrower is code:
            if some == LANES:
                codes = (<const vi8 *> (source + i))[0]
            else:
                copy_run(<char *> &codes, <const char *> (source + i), some)
            store_f32(target + i, dequantized(codes, steps, zero), some)
        else:
            if some == LANES:
                halves = (<const vhalves *> (source + i))[0]
            else:
                copy_run(<char *> &halves, <const char *> (source + i), some * 2)
            if narrower is half:
                store_f32(target + i, f32_of_half(halves), some)
            else:
                store_f32(target + i, f32_of_brain(halves), some)
        i += LANES


cdef void to_half(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    narrow(<const float *> source, <half *> target, count, scale, zero_point)


cdef void from_half(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    widen(<const half *> source, <float *> target, count, scale, zero_point)


cdef void to_brain(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    narrow(<const float *> source, <brain *> target, count, scale, zero_point)


cdef void from_brain(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    widen(<const brain *> source, <float *> target, count, scale, zero_point)


cdef void to_codes(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    narrow(<const float *> source, <code *> target, count, scale, zero_point)


cdef void from_codes(const void *source, void *target, Py_ssize_t count, float scale, int zero_point) noexcept nogil:
    widen(<const code *> source, <float *> target, count, scale, zero_point)

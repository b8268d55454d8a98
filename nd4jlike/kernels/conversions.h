/* The words of a converting reorder: float32 to and from codes, and to bfloat16, some vectors together (ADR 0004, 0009). */
#ifndef ND4JLIKE_CONVERSIONS_H
#define ND4JLIKE_CONVERSIONS_H

#include "bytes.h"
#include "floats.h"

/* How numbers are divided by a scale: as they are; times one over it where that is exact, it is a power of 2; times one over it, and then the remainder of
 * that times one over it once more, which is as exact where nothing over- or underflows, and with vectors of 64 bytes takes three quarters of the time. */
enum { DIVIDES, MULTIPLIES, CORRECTS };
enum { MAY_CORRECT = PIECES == 4 };

/* Four vectors to steps of the scale, saturated; NaN is 0. */
static __attribute__((noinline, unused)) void steps_of_any(const float *source, vf32 scale, vi16 *steps)
{
    vi32 whole[QUADS];
    for (int i = 0; i < QUADS; i++) {
        const vf32 ratio = load_f32(source + i * LANES, LANES) / scale;
        /* What is below all integers becomes the least one. */
        whole[i] = round_f32(at_most_f32((vf32)((vi32)ratio & (vi32)(ratio == ratio)), splat_f32(512.0f)));
    }
    steps[0] = pack_i32(whole[0], whole[1]);
    steps[1] = pack_i32(whole[2], whole[3]);
}

/* Four vectors to one of codes: round(number / scale) + zero_point, saturated; NaN counts as 0. `inverse` is one over the scale, `order` is order_of(1),
 * `flip` the bits that codes have otherwise: the upper one where they are unsigned and `zero_point` is 128 less. */
WORD vbytes quantized(const float *source, vf32 scale, vf32 inverse, const int how, vi16 zero_point, vbytes order, vbytes flip)
{
    vi32 whole[QUADS];
    vi16 steps[2];
    _Pragma("GCC unroll 4") for (int i = 0; i < QUADS; i++)
    {
        const vf32 number = load_f32(source + i * LANES, LANES);
        vf32 ratio = how == DIVIDES ? number / scale : number * inverse;
#if VECTOR_BYTES == 64
        if (how == CORRECTS)
            ratio = (vf32)_mm512_fmadd_ps(_mm512_fnmadd_ps((__m512)ratio, (__m512)scale, (__m512)number), (__m512)inverse, (__m512)ratio);
#endif
        whole[i] = round_f32(ratio);
    }
    steps[0] = pack_i32(whole[0], whole[1]);
    steps[1] = pack_i32(whole[2], whole[3]);
    /* NaN, and what is beyond all integers, is the least one here. */
    if (__builtin_expect(any_least_i16(steps[0], steps[1]), 0))
        steps_of_any(source, scale, steps);
    return in_order(pack_i16(add_saturated_i16(steps[0], zero_point), add_saturated_i16(steps[1], zero_point)), order) ^ flip;
}

/* VECTOR_BYTES numbers to bfloat16, half to even; a NaN stays one, made quiet. */
WORD void narrowed_brains(const float *source, vhalves *target)
{
#if VECTOR_BYTES == 64
    const __m512i lower = _mm512_set1_epi32(0x7FFF), one = _mm512_set1_epi32(1);
    vi16 uppers;
    _Pragma("GCC unroll 32") for (int i = 0; i < 32; i++) uppers[i] = (int16_t)(2 * i + 1);
    _Pragma("GCC unroll 2") for (int k = 0; k < 2; k++)
    {
        __m512i cells[2];
        _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++)
        {
            const __m512i bits = _mm512_loadu_si512(source + (2 * k + i) * LANES);
            const __mmask16 nan = _mm512_cmp_ps_mask((__m512)bits, (__m512)bits, _CMP_UNORD_Q);
            cells[i] = _mm512_add_epi32(_mm512_add_epi32(bits, lower), _mm512_and_si512(_mm512_srli_epi32(bits, 16), one));
            cells[i] = _mm512_mask_or_epi32(cells[i], nan, bits, _mm512_set1_epi32(0x400000));
        }
        _mm512_storeu_si512(target + 2 * k, _mm512_permutex2var_epi16(cells[0], (__m512i)uppers, cells[1]));
    }
#else
    for (int i = 0; i < QUADS; i++)
        target[i] = brain_of_f32(load_f32(source + i * LANES, LANES));
#endif
}

/* `mask`: the bits of a code, all of them where it is signed. */
WORD void dequantize(const int8_t *source, float *target, vf32 scale, vi32 zero_point, vi32 mask)
{
    _Pragma("GCC unroll 4") for (int i = 0; i < QUADS; i++)
    {
#if VECTOR_BYTES == 64
        const vi32 code = (vi32)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(source + i * LANES)));
#elif VECTOR_BYTES == 32
        const vi32 code = (vi32)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(source + i * LANES)));
#elif VECTOR_BYTES == 16 && defined(__SSE2__)
        const vbytes all = *(const vbytes *)source, words = i < 2 ? UNPACK(lo, 8, all, all) : UNPACK(hi, 8, all, all);
        const vi32 code = (vi32)(i % 2 ? UNPACK(hi, 16, words, words) : UNPACK(lo, 16, words, words)) >> 24;
#else
        const vi8 some = *(const vi8 *)(source + i * LANES);
        const vi32 code = cells_of(some, some) >> 16;
#endif
        store_f32(target + i * LANES, scaled((code & mask) - zero_point, scale), LANES);
    }
}

/* The same of codes of 16 bits, as many, in a loop: a division is what takes time. Bounded before it is rounded, by integers, a sum is a code. */
WORD void quantize_shorts(const float *source, int16_t *target, vf32 scale, vi32 zero_point)
{
    const vf32 zero = __builtin_convertvector(zero_point, vf32);
    _Pragma("GCC unroll 1") for (int i = 0; i < VECTOR_BYTES; i += LANES)
    {
        const vf32 ratio = load_f32(source + i, LANES) / scale;
        const vf32 bounded = at_least_f32(at_most_f32((vf32)((vi32)ratio & (vi32)(ratio == ratio)), INT16_MAX - zero), INT16_MIN - zero);
        store_i16(target + i, round_f32(bounded) + zero_point, LANES);
    }
}

WORD void dequantize_shorts(const int16_t *source, float *target, vf32 scale, vi32 zero_point)
{
    _Pragma("GCC unroll 1") for (int i = 0; i < VECTOR_BYTES; i += LANES)
        store_f32(target + i, scaled(__builtin_convertvector(load_i16(source + i, LANES), vi32) - zero_point, scale), LANES);
}

#endif

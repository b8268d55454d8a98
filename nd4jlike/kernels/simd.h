/* The vector words, once per instruction set: a kernel is Cython text over these names (ADR 0004).
 *
 * A vector has LANES lanes of 4 bytes. vf32 holds one float32 a lane; vi32 holds one int32 a lane, or a cell: two int16, the inputs of two
 * filter taps of one channel. GCC vector extensions give +, -, *, shifts and comparisons; only what they lack is spelled per instruction set.
 * Counts are in elements. Partial words touch exactly their first `count` elements of memory, 0 <= count <= LANES.
 */
#ifndef ND4JLIKE_SIMD_H
#define ND4JLIKE_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elements.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

/* PASS_ROWS x TILE_COLUMNS: outputs of which two vectors each fit the registers. */
enum { LANES = VECTOR_BYTES / 4, PASS_ROWS = VECTOR_BYTES == 64 ? 2 : 1, TILE_COLUMNS = 4 };

/* Aligned like their elements: loads and stores accept any address. */
typedef float vf32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t vi32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t vu32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int16_t vi16 __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef uint16_t vu16 __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef int8_t vbytes __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef uint16_t vhalves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));
typedef double vf64 __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef int64_t vi64 __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef int8_t vi8 __attribute__((vector_size(LANES), aligned(1), may_alias));
/* One int16 a lane. */
typedef int16_t vshort __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));

/* Inlined whatever the size: called with constants, the branches on them and the loops over registers disappear. */
#define WORD static inline __attribute__((always_inline, unused))

#if VECTOR_BYTES != 64
/* Part of a vector, fewer than 32 bytes. No word, but a function: tails are worth no room in every tile. */
static __attribute__((noinline, unused)) void copy_part(void *target, const void *source, ptrdiff_t bytes)
{
    char *to = target;
    const char *from = source;
    if (bytes & 16)
        memcpy(to, from, 16);
    to += bytes & 16, from += bytes & 16;
    if (bytes & 8)
        memcpy(to, from, 8);
    to += bytes & 8, from += bytes & 8;
    if (bytes & 4)
        memcpy(to, from, 4);
    to += bytes & 4, from += bytes & 4;
    if (bytes & 2)
        memcpy(to, from, 2);
    to += bytes & 2, from += bytes & 2;
    if (bytes & 1)
        *to = *from;
}
#endif

WORD vf32 splat_f32(float value) { return value - (vf32){0}; }

WORD vi32 splat_i32(int32_t value) { return value - (vi32){0}; }

WORD vi32 select_i32(vi32 mask, vi32 yes, vi32 no) { return (mask & yes) | (~mask & no); }

#if VECTOR_BYTES > 16
/* 8 floats, whatever LANES is: one for all; none below or above bounds, where NaN stays. */
typedef float veight __attribute__((vector_size(32), aligned(4), may_alias));
WORD veight splat_eight(const float *source) { return (veight)_mm256_broadcast_ss(source); }
WORD veight between_eight(veight value, veight low, veight high) { return (veight)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)value)); }
#endif

#if VECTOR_BYTES == 64

WORD vi32 min_i32(vi32 a, vi32 b) { return (vi32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return (vi32)_mm512_max_epi32((__m512i)a, (__m512i)b); }
/* value < bound ? bound : value and value > bound ? bound : value: a NaN value stays, as in std::min(std::max(x, lo), hi). */
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)_mm512_max_ps((__m512)bound, (__m512)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)_mm512_min_ps((__m512)bound, (__m512)value); }

WORD vi32 round_f32(vf32 value) { return (vi32)_mm512_cvtps_epi32((__m512)value); }
WORD vf32 with_sign_of(vf32 magnitude, vf32 sign)
{
    return (vf32)_mm512_ternarylogic_epi32((__m512i)magnitude, (__m512i)sign, _mm512_set1_epi32(INT32_MIN), 0xF8);
}
WORD vf32 larger_magnitude(vf32 a, vf32 b) { return (vf32)_mm512_range_ps((__m512)a, (__m512)b, 11); }
WORD int any_above(vf32 value, float bound) { return _mm512_cmp_ps_mask((__m512)value, _mm512_set1_ps(bound), _CMP_GT_OQ) != 0; }

WORD __mmask16 first_lanes(ptrdiff_t count) { return (__mmask16)((1u << count) - 1u); }

WORD vf32 load_part_f32(const float *source, ptrdiff_t count) { return (vf32)_mm512_maskz_loadu_ps(first_lanes(count), source); }
WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count) { _mm512_mask_storeu_ps(target, first_lanes(count), (__m512)value); }
WORD void store_chosen_f32(float *target, vf32 value, ptrdiff_t mask) { _mm512_mask_storeu_ps(target, (__mmask16)mask, (__m512)value); }
/* Of at most half a vector: a vector crosses cache lines with what its mask leaves out, too. */
WORD vf32 load_half_f32(const float *source, ptrdiff_t count)
{
    return (vf32)_mm512_castps256_ps512(_mm256_maskz_loadu_ps((__mmask8)first_lanes(count), source));
}
WORD void store_half_f32(float *target, vf32 value, ptrdiff_t count)
{
    _mm256_mask_storeu_ps(target, (__mmask8)first_lanes(count), _mm512_castps512_ps256((__m512)value));
}
/* The same of its own. */
WORD veight lower_eight(vf32 value) { return (veight)_mm512_castps512_ps256((__m512)value); }
WORD veight upper_eight(vf32 value) { return (veight)_mm512_extractf32x8_ps((__m512)value, 1); }
WORD vf32 widened_eight(veight value) { return (vf32)_mm512_castps256_ps512((__m256)value); }
/* 8 lanes of both, from the first one. */
WORD veight eight_from(veight a, veight b, const int first)
{
    switch (first) {
    case 1: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 1);
    case 2: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 2);
    case 3: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 3);
    case 5: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 5);
    case 6: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 6);
    default: return (veight)_mm256_alignr_epi32((__m256i)b, (__m256i)a, 7);
    }
}
/* The words of every second lane, below, of 8. */
WORD veight seconds_of_eight(veight a, veight b, const int first)
{
    return (veight)(first ? _mm256_shuffle_ps((__m256)a, (__m256)b, 0xDD) : _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88));
}
WORD veight next_of_eight(veight seconds, veight behind)
{
    return (veight)_mm256_mask_permutexvar_ps((__m256)behind, 0x7F, _mm256_setr_epi32(1, 4, 3, 6, 5, 2, 7, 7), (__m256)seconds);
}
WORD veight eight_in_order(veight seconds) { return (veight)_mm256_permute4x64_pd((__m256d)seconds, 0xD8); }
typedef __mmask16 vmask;
WORD veight load_eight_where(const float *source, vmask mask) { return (veight)_mm256_maskz_loadu_ps((__mmask8)mask, source); }
WORD vmask mask_of(vi32 lanes) { return _mm512_movepi32_mask((__m512i)lanes); }
/* Lanes whose mask is set; nothing else is touched, the other lanes are 0. */
WORD vf32 load_where_f32(const float *source, vmask mask) { return (vf32)_mm512_maskz_loadu_ps(mask, source); }
/* The lanes from `begin` to before `end`, which may lie anywhere. */
WORD vf32 load_between_f32(const float *source, ptrdiff_t begin, ptrdiff_t end)
{
    const unsigned before = begin <= 0 ? 0 : begin >= 16 ? 0xFFFF : (1u << begin) - 1, all = end <= 0 ? 0 : end >= 16 ? 0xFFFF : (1u << end) - 1;
    return (vf32)_mm512_maskz_loadu_ps((__mmask16)(all & ~before), source);
}
/* Lane i is lane index[i], of one vector or of both, 0 where the mask is not set. */
WORD vf32 pick_from_one(vf32 value, vi32 index, vmask mask) { return (vf32)_mm512_maskz_permutexvar_ps(mask, (__m512i)index, (__m512)value); }
WORD vf32 pick_from_two(vf32 first, vf32 second, vi32 index, vmask mask)
{
    return (vf32)_mm512_maskz_permutex2var_ps(mask, (__m512)first, (__m512i)index, (__m512)second);
}
WORD vf32 pick_f32(vf32 first, vf32 second, vi32 index) { return (vf32)_mm512_permutex2var_ps((__m512)first, (__m512i)index, (__m512)second); }
WORD vf32 join_halves_f32(vf32 lower, vf32 upper) { return (vf32)_mm512_insertf32x8((__m512)lower, _mm512_castps512_ps256((__m512)upper), 1); }
/* The order of seconds_of_f32. */
WORD vf32 halves_of_seconds(float lower, float upper) { return (vf32)_mm512_mask_blend_ps(0xCCCC, _mm512_set1_ps(lower), _mm512_set1_ps(upper)); }
WORD vf32 halves_f32(float lower, float upper) { return (vf32)_mm512_insertf32x8(_mm512_set1_ps(lower), _mm256_set1_ps(upper), 1); }
WORD vf32 upper_half_f32(vf32 value) { return (vf32)_mm512_shuffle_f32x4((__m512)value, (__m512)value, 0x0E); }
/* Lane i takes source[index[i]], 0 <= index[i] < count <= LANES. */
WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    /* A short load rarely crosses a cache line. */
    __m512 few = count <= 4 ? _mm512_castps128_ps512(_mm_maskz_loadu_ps((__mmask8)first_lanes(count), source))
                 : count <= 8 ? _mm512_castps256_ps512(_mm256_maskz_loadu_ps((__mmask8)first_lanes(count), source))
                              : _mm512_maskz_loadu_ps(first_lanes(count), source);
    return (vf32)_mm512_permutexvar_ps((__m512i)index, few);
}
WORD vi8 load_part_i8(const int8_t *source, ptrdiff_t count) { return (vi8)_mm_maskz_loadu_epi8(first_lanes(count), source); }
WORD void store_part_i8(int8_t *target, vi8 value, ptrdiff_t count) { _mm_mask_storeu_epi8(target, first_lanes(count), (__m128i)value); }

/* `first` in the low and `second` in the high int16 of each lane; and what cuts off what int8 has no room for. */
WORD vi32 cells_of(vi8 first, vi8 second)
{
    return ((vi32)_mm512_cvtepi8_epi32((__m128i)first) & 0xFFFF) | (vi32)((vu32)_mm512_cvtepi8_epi32((__m128i)second) << 16);
}
WORD vi8 narrow_i32(vi32 value) { return (vi8)_mm512_cvtepi32_epi8((__m512i)value); }

/* sum + the products of the two int16 of each lane; exact, wraps like int32. */
WORD vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights)
{
#if defined(__AVX512VNNI__)
    return (vi32)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)cells, (__m512i)weights);
#else
    return sum + (vi32)_mm512_madd_epi16((__m512i)cells, (__m512i)weights);
#endif
}

/* (a * b + 2**30) >> 31 on 64-bit products: TensorFlow Lite's doubling high multiply, b >= 0. */
WORD vi32 high_multiply(vi32 a, vi32 b)
{
    const __m512i half = _mm512_set1_epi64(1 << 30);
    __m512i even = _mm512_add_epi64(_mm512_mul_epi32((__m512i)a, (__m512i)b), half);
    __m512i odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64((__m512i)a, 32), _mm512_srli_epi64((__m512i)b, 32)), half);
    return (vi32)_mm512_mask_mov_epi32(_mm512_srli_epi64(even, 31), 0xAAAA, _mm512_add_epi64(odd, odd));
}

#elif VECTOR_BYTES == 32

WORD vi32 min_i32(vi32 a, vi32 b) { return (vi32)_mm256_min_epi32((__m256i)a, (__m256i)b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return (vi32)_mm256_max_epi32((__m256i)a, (__m256i)b); }
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)_mm256_max_ps((__m256)bound, (__m256)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)_mm256_min_ps((__m256)bound, (__m256)value); }

WORD vi32 round_f32(vf32 value) { return (vi32)_mm256_cvtps_epi32((__m256)value); }
WORD vf32 with_sign_of(vf32 magnitude, vf32 sign) { return (vf32)((vi32)magnitude | ((vi32)sign & INT32_MIN)); }
WORD vf32 larger_magnitude(vf32 a, vf32 b) { return (vf32)_mm256_max_ps((__m256)a, (__m256)((vi32)b & INT32_MAX)); }
WORD int any_above(vf32 value, float bound) { return _mm256_movemask_ps(_mm256_cmp_ps((__m256)value, _mm256_set1_ps(bound), _CMP_GT_OQ)) != 0; }

WORD __m256i first_lanes(ptrdiff_t count) { return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }

WORD vf32 load_part_f32(const float *source, ptrdiff_t count) { return (vf32)_mm256_maskload_ps(source, first_lanes(count)); }
/* By halves: a store with a mask takes processors of AMD as long as twelve others. */
WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count)
{
    __m128 part = _mm256_castps256_ps128((__m256)value);
    if (count & 4) {
        _mm_storeu_ps(target, part);
        target += 4;
        part = _mm256_extractf128_ps((__m256)value, 1);
    }
    if (count & 2) {
        _mm_storel_pi((__m64 *)target, part);
        target += 2;
        part = _mm_movehl_ps(part, part);
    }
    if (count & 1)
        _mm_store_ss(target, part);
}

typedef vi32 vmask;
WORD vmask mask_of(vi32 lanes) { return lanes; }
WORD vf32 load_where_f32(const float *source, vmask mask) { return (vf32)_mm256_maskload_ps(source, (__m256i)mask); }
WORD vf32 load_between_f32(const float *source, ptrdiff_t begin, ptrdiff_t end)
{
    return (vf32)_mm256_maskload_ps(source, _mm256_andnot_si256(first_lanes(begin), first_lanes(end)));
}
WORD vf32 pick_f32(vf32 first, vf32 second, vi32 index)
{
    /* Bit 3 of an index, which says that the lane is of the second, becomes the sign. */
    const __m256 a = _mm256_permutevar8x32_ps((__m256)first, (__m256i)index), b = _mm256_permutevar8x32_ps((__m256)second, (__m256i)index);
    return (vf32)_mm256_blendv_ps(a, b, (__m256)(index << 28));
}
WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    return (vf32)_mm256_permutevar8x32_ps(_mm256_maskload_ps(source, first_lanes(count)), (__m256i)index);
}

WORD vi32 cells_of(vi8 first, vi8 second)
{
    return (vi32)_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(_mm_cvtsi64_si128((int64_t)first), _mm_cvtsi64_si128((int64_t)second)));
}

/* Packs 16-bit words within each half: the low bytes of the halves are joined afterwards. */
WORD vi8 narrow_i32(vi32 value)
{
    __m256i words = _mm256_packs_epi32((__m256i)value, (__m256i)value);
    __m256i bytes = _mm256_packs_epi16(words, words);
    return (vi8)_mm_cvtsi128_si64(_mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
}

WORD vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights) { return sum + (vi32)_mm256_madd_epi16((__m256i)cells, (__m256i)weights); }

WORD vi32 high_multiply(vi32 a, vi32 b)
{
    const __m256i half = _mm256_set1_epi64x(1 << 30);
    __m256i even = _mm256_add_epi64(_mm256_mul_epi32((__m256i)a, (__m256i)b), half);
    __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32)), half);
    return (vi32)_mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_add_epi64(odd, odd), 0xAA);
}

#else

#if defined(__aarch64__)
WORD vi32 min_i32(vi32 a, vi32 b) { return (vi32)vminq_s32((int32x4_t)a, (int32x4_t)b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return (vi32)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
#else
WORD vi32 min_i32(vi32 a, vi32 b) { return select_i32(a < b, a, b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return select_i32(a > b, a, b); }
#endif
#if defined(__SSE2__)
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)_mm_max_ps((__m128)bound, (__m128)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)_mm_min_ps((__m128)bound, (__m128)value); }
#else
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)select_i32((vi32)(value < bound), (vi32)bound, (vi32)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)select_i32((vi32)(value > bound), (vi32)bound, (vi32)value); }
#endif

WORD vf32 load_part_f32(const float *source, ptrdiff_t count)
{
    vf32 value = {0};
    copy_part(&value, source, count * 4);
    return value;
}

typedef vi32 vmask;
WORD vmask mask_of(vi32 lanes) { return lanes; }
WORD vf32 load_where_f32(const float *source, vmask mask)
{
    vf32 value = {0};
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
        if (mask[lane])
            value[lane] = source[lane];
    return value;
}

WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    vf32 value;
    (void)count;
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
        value[lane] = source[index[lane]];
    return value;
}

WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count) { copy_part(target, &value, count * 4); }

WORD vf32 with_sign_of(vf32 magnitude, vf32 sign) { return (vf32)((vi32)magnitude | ((vi32)sign & INT32_MIN)); }
WORD vf32 larger_magnitude(vf32 a, vf32 b)
{
    vf32 magnitude = (vf32)((vi32)b & INT32_MAX);
    return (vf32)select_i32(a > magnitude, (vi32)a, (vi32)magnitude);
}

#if defined(__SSE2__)

WORD vi32 round_f32(vf32 value) { return (vi32)_mm_cvtps_epi32((__m128)value); }
WORD int any_above(vf32 value, float bound) { return _mm_movemask_ps(_mm_cmpgt_ps((__m128)value, _mm_set1_ps(bound))) != 0; }

/* By turns, each byte into the top of its word, then shifted down with its sign. */
WORD vi32 cells_of(vi8 first, vi8 second)
{
    __m128i bytes = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int32_t)first), _mm_cvtsi32_si128((int32_t)second));
    return (vi32)_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}

WORD vi8 narrow_i32(vi32 value)
{
    __m128i words = _mm_packs_epi32((__m128i)value, (__m128i)value);
    return (vi8)_mm_cvtsi128_si32(_mm_packs_epi16(words, words));
}

#elif defined(__aarch64__)

WORD vi32 round_f32(vf32 value) { return (vi32)vcvtnq_s32_f32((float32x4_t)value); }
WORD int any_above(vf32 value, float bound) { return vmaxvq_f32((float32x4_t)value) > bound; }
WORD vi32 cells_of(vi8 first, vi8 second)
{
    return (__builtin_convertvector(first, vi32) & 0xFFFF) | (vi32)((vu32)__builtin_convertvector(second, vi32) << 16);
}
WORD vi8 narrow_i32(vi32 value) { return __builtin_convertvector(value, vi8); }

#else

/* 1.5 * 2**23: one unit in the last place of the sum is 1, so the addition itself rounds; beyond 2**21 any integer as far away will do. */
WORD vi32 round_f32(vf32 value)
{
    const vf32 magic = splat_f32(12582912.0f);
    return (vi32)(at_most_f32(at_least_f32(value, splat_f32(-2097152.0f)), splat_f32(2097152.0f)) + magic) - (vi32)magic;
}
WORD int any_above(vf32 value, float bound)
{
    int above = 0;
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
        above |= value[lane] > bound;
    return above;
}

WORD vi32 cells_of(vi8 first, vi8 second)
{
    return (__builtin_convertvector(first, vi32) & 0xFFFF) | (vi32)((vu32)__builtin_convertvector(second, vi32) << 16);
}
WORD vi8 narrow_i32(vi32 value) { return __builtin_convertvector(value, vi8); }

#endif

WORD vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights)
{
#if defined(__SSE2__)
    return sum + (vi32)_mm_madd_epi16((__m128i)cells, (__m128i)weights);
#elif defined(__aarch64__)
    int16x8_t x = (int16x8_t)cells, w = (int16x8_t)weights;
    return sum + (vi32)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(w)), vmull_high_s16(x, w));
#else
    return sum + ((vi32)((vu32)cells << 16) >> 16) * ((vi32)((vu32)weights << 16) >> 16) + (cells >> 16) * (weights >> 16);
#endif
}

WORD vi32 high_multiply(vi32 a, vi32 b)
{
#if defined(__aarch64__)
    return (vi32)vqrdmulhq_s32((int32x4_t)a, (int32x4_t)b);
#else
    vi32 high;
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
        high[lane] = (int32_t)(((int64_t)a[lane] * b[lane] + (1 << 30)) >> 31);
    return high;
#endif
}

#endif

#if VECTOR_BYTES != 64

WORD vi8 load_part_i8(const int8_t *source, ptrdiff_t count)
{
    vi8 value = {0};
    copy_part(&value, source, count);
    return value;
}

WORD void store_part_i8(int8_t *target, vi8 value, ptrdiff_t count) { copy_part(target, &value, count); }

#endif

#if VECTOR_BYTES == 16
WORD vf32 pick_f32(vf32 first, vf32 second, vi32 index) { return __builtin_shuffle(first, second, index); }
#endif

/* Lanes 0, 2, 4 .. of two vectors from the first on, 0 or 1. */
WORD vf32 every_second_f32(vf32 a, vf32 b, const int first)
{
    vi32 index;
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
        index[lane] = 2 * lane + first;
    return __builtin_shuffle(a, b, index);
}

/* LANES lanes of two vectors side by side, from lane `first` on, up to 3 from either end. */
WORD vf32 lanes_from(vf32 a, vf32 b, const int first)
{
#if VECTOR_BYTES == 64 /* What a compiler takes for a shuffle reads three vectors, for which Zen 4 has products wait. */
    switch (first) {
    case 1: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 1);
    case 2: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 2);
    case 3: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 3);
    case LANES - 3: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, LANES - 3);
    case LANES - 2: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, LANES - 2);
    case LANES - 1: return (vf32)_mm512_alignr_epi32((__m512i)b, (__m512i)a, LANES - 1);
    }
#endif
    vi32 index;
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
        index[i] = i + first;
    return __builtin_shuffle(a, b, index);
}

/* Lanes 0, 2, 4 .. of two vectors from the first on, 0 or 1, with pairs of lanes in another order, which seconds_in_order undoes. */
WORD vf32 seconds_of_f32(vf32 a, vf32 b, const int first)
{
#if VECTOR_BYTES == 64
    return (vf32)(first ? _mm512_shuffle_ps((__m512)a, (__m512)b, 0xDD) : _mm512_shuffle_ps((__m512)a, (__m512)b, 0x88));
#elif VECTOR_BYTES == 32
    return (vf32)(first ? _mm256_shuffle_ps((__m256)a, (__m256)b, 0xDD) : _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88));
#else
    return every_second_f32(a, b, first);
#endif
}
WORD vf32 seconds_in_order(vf32 value)
{
#if VECTOR_BYTES == 64
    return (vf32)_mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512d)value);
#elif VECTOR_BYTES == 32
    return (vf32)_mm256_permute4x64_pd((__m256d)value, 0xD8);
#else
    return value;
#endif
}

#if VECTOR_BYTES == 64
/* Of such lanes each the next one; the last takes that of `behind`, and where `halves` are each of its own the last of the lower half does. */
WORD vf32 next_seconds(vf32 seconds, vf32 behind, const int halves)
{
    const __m512i next = _mm512_setr_epi32(1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 2, 15, 15);
    return (vf32)_mm512_mask_permutexvar_ps((__m512)behind, halves ? 0x5FFF : 0x7FFF, next, (__m512)seconds);
}
#endif

WORD vf32 load_f32(const float *source, ptrdiff_t count) { return count >= LANES ? *(const vf32 *)source : load_part_f32(source, count); }

WORD void store_f32(float *target, vf32 value, ptrdiff_t count)
{
    if (count >= LANES)
        *(vf32 *)target = value;
    else
        store_part_f32(target, value, count);
}
/* The same without a jump, where that costs nothing. */
WORD void store_first_f32(float *target, vf32 value, ptrdiff_t count)
{
#if VECTOR_BYTES == 64
    store_part_f32(target, value, count);
#else
    store_f32(target, value, count);
#endif
}

/* The line between two vectors of float32 side by side that begin `skew` bytes beyond lines: the end of one and the beginning of the next. */
#if VECTOR_BYTES == 64
WORD vi32 order_of_joined(ptrdiff_t skew)
{
    return (vi32)_mm512_sub_epi32(_mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31), _mm512_set1_epi32((int)skew / 4));
}
WORD vf32 join_f32(vf32 before, vf32 value, vi32 order) { return (vf32)_mm512_permutex2var_ps((__m512)before, (__m512i)order, (__m512)value); }
#else
WORD vi32 order_of_joined(ptrdiff_t skew) { return (vi32){0} + (int)skew; }
WORD vf32 join_f32(vf32 before, vf32 value, vi32 order) { (void)before, (void)order; return value; }
#endif

/* What a build leaves to that of the next slower instruction set, which has the same: floats with VNNI. */
#if defined(__AVX512VNNI__)
enum { FLOATS = 0 };
#else
enum { FLOATS = 1 };
#endif
/* Whether int8 goes by pairs of rows: where that is worth the code. */
#if defined(__AVX512VNNI__) || VECTOR_BYTES == 32
enum { BY_PAIRS = 1 };
#else
enum { BY_PAIRS = 0 };
#endif

#if VECTOR_BYTES == 64

WORD vhalves load_part_halves(const void *source, ptrdiff_t count) { return (vhalves)_mm256_maskz_loadu_epi16(first_lanes(count), source); }
WORD void store_part_halves(char *target, vhalves value, ptrdiff_t count) { _mm256_mask_storeu_epi16(target, first_lanes(count), (__m256i)value); }
WORD void store_chosen_halves(char *target, vhalves value, ptrdiff_t mask) { _mm256_mask_storeu_epi16(target, (__mmask16)mask, (__m256i)value); }

#else

WORD vhalves load_part_halves(const void *source, ptrdiff_t count)
{
    vhalves value = {0};
    if (count >= LANES)
        return *(const vhalves *)source;
    copy_part(&value, source, count * 2);
    return value;
}

WORD void store_part_halves(char *target, vhalves value, ptrdiff_t count) { copy_part(target, &value, count * 2); }

#endif

/* Cells of LANES channels: `first` in the low and `second` in the high int16 of each lane. `flip`: bits to change in each byte. */
WORD vi32 load_cells(const int8_t *first, const int8_t *second, int flip, ptrdiff_t count)
{
    vi8 bits = (int8_t)flip - (vi8){0};
    vi8 low = count >= LANES ? *(const vi8 *)first : load_part_i8(first, count), high = count >= LANES ? *(const vi8 *)second : load_part_i8(second, count);
    return cells_of(low ^ bits, high ^ bits);
}

WORD vshort load_i16(const int16_t *source, ptrdiff_t count) { return count >= LANES ? *(const vshort *)source : (vshort)load_part_halves(source, count); }

WORD vi32 load_cells_i16(const int16_t *first, const int16_t *second, ptrdiff_t count)
{
    vi32 low = __builtin_convertvector(load_i16(first, count), vi32), high = __builtin_convertvector(load_i16(second, count), vi32);
    return (low & 0xFFFF) | (vi32)((vu32)high << 16);
}

/* Volatile: compilers that compute both sides of a condition, such as whether elements are int16, would read two bytes where there is one. */
WORD int lone_i16(const void *source) { return *(const volatile int16_t *)source; }

WORD int32_t cell_i32(int first, int second) { return (int32_t)(((uint32_t)first & 0xFFFFu) | ((uint32_t)second << 16)); }

/* Lanes are within int8 already. */
WORD void store_i8(int8_t *target, vi32 value, int flip, ptrdiff_t count)
{
    vi8 bytes = narrow_i32(value) ^ ((int8_t)flip - (vi8){0});
    if (count >= LANES)
        *(vi8 *)target = bytes;
    else
        store_part_i8(target, bytes, count);
}

/* Lanes are within int16 already. */
WORD void store_i16(int16_t *target, vi32 value, ptrdiff_t count)
{
    vshort halves = __builtin_convertvector(value, vshort);
    if (count >= LANES)
        *(vshort *)target = halves;
    else
        store_part_halves((char *)target, (vhalves)halves, count);
}

WORD void store_i32(int32_t *target, vi32 value, ptrdiff_t count) { store_f32((float *)target, (vf32)value, count); }

WORD vf32 scaled(vi32 sum, vf32 scale) { return __builtin_convertvector(sum, vf32) * scale; }

/* TensorFlow Lite's MultiplyByQuantizedMultiplier with double rounding. `left` and `right` in 0..31, one of them 0. */
WORD vi32 requantize_tflite(vi32 sum, vi32 multiplier, vi32 left, vi32 right)
{
    vi32 high = high_multiply((vi32)((vu32)sum << (vu32)left), multiplier);
    vi32 mask = (vi32)(((vu32)splat_i32(1) << (vu32)right) - 1);
    /* Half away from zero; a comparison gives -1 where it holds. */
    return (high >> right) - ((high & mask) > ((mask >> 1) - (high >> 31)));
}

/* The same where no sum is left-shifted, every shift is to the right, and no sum comes near the limits: `half` is half of 2**right. */
WORD vi32 requantize_plain(vi32 sum, vi32 multiplier, vi32 half, vi32 right)
{
    vi32 high = high_multiply(sum, multiplier);
    return (high + half + (high >> 31)) >> right;
}

/* XNNPACK's float scale, rounded half to even. The bounds are those of int8, so clamping before rounding gives the same integers. */
WORD vi32 requantize_float(vi32 sum, vf32 scale, vf32 low, vf32 high)
{
    /* 1.5 * 2**23: one unit in the last place of the sum is 1, so the addition itself rounds, and the low mantissa bits are the integer. */
    const vf32 magic = splat_f32(12582912.0f);
    vf32 value = __builtin_convertvector(sum, vf32) * scale;
    return (vi32)(at_most_f32(at_least_f32(value, low), high) + magic) - (vi32)magic;
}

#if VECTOR_BYTES == 64
#define FUSED 1
WORD vf32 multiply_add_f32(vf32 a, vf32 b, vf32 c) { return (vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(__FMA__)
#define FUSED 1
WORD vf32 multiply_add_f32(vf32 a, vf32 b, vf32 c) { return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#else
/* Not with one rounding: whoever needs that looks at FUSED. */
#define FUSED 0
WORD vf32 multiply_add_f32(vf32 a, vf32 b, vf32 c) { return a * b + c; }
#endif

/* Arithmetic that wraps, for the constants folded into the bias. */
WORD int32_t wrapping_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
WORD int32_t wrapping_multiply(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
WORD long long wrapping_add_64(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
WORD long long wrapping_multiply_64(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }

#endif

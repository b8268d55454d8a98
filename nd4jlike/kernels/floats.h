/* The words of float elements of any width: kernels compute on vectors of float32, or of doubles, whatever is in memory (ADR 0004, 0016). They are made of
 * those of simd.h.
 */
#ifndef ND4JLIKE_FLOATS_H
#define ND4JLIKE_FLOATS_H

#include "simd.h"

/* Conversions of float32 (ADR 0009): to nearest, half to even; NaN stays NaN, made quiet, with its sign and upper bits. */
#define SELECT(mask, yes, no) (((vu32)(mask) & (vu32)(yes)) | (~(vu32)(mask) & (vu32)(no)))

WORD vhalves brain_of_f32(vf32 value)
{
    vu32 bits = (vu32)value;
    vu32 rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
#if VECTOR_BYTES == 64 /* Which gcc converts by halves. */
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)value, (__m512)value, _CMP_UNORD_Q);
    return (vhalves)_mm512_cvtepi32_epi16(_mm512_mask_or_epi32((__m512i)rounded, nan, (__m512i)(bits >> 16), _mm512_set1_epi32(0x40)));
#else
    return __builtin_convertvector(SELECT(value != value, (bits >> 16) | 0x40, rounded), vhalves);
#endif
}

#if VECTOR_BYTES == 64
WORD vf32 f32_of_brain(vhalves brain) { return (vf32)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)brain), 16); }
#else
WORD vf32 f32_of_brain(vhalves brain) { return (vf32)(__builtin_convertvector(brain, vu32) << 16); }
#endif

WORD vhalves half_of_f32(vf32 value)
{
#if VECTOR_BYTES == 64
    return (vhalves)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif VECTOR_BYTES == 32
    return (vhalves)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    vu32 bits = (vu32)value & 0x7FFFFFFF, sign = ((vu32)value >> 16) & 0x8000;
    /* Exponents move by 127 - 15; below the smallest normal one, adding 0.5 leaves the half's bits at the end, rounded by the addition itself. */
    vu32 normal = (bits - ((127 - 15) << 23) + 0xFFF + ((bits >> 13) & 1)) >> 13;
    vu32 small = (vu32)((vf32)bits + 0.5f) - 0x3F000000;
    vu32 half = SELECT((vi32)bits < 113 << 23, small, normal);
    half = SELECT((vi32)bits >= 143 << 23, 0x7C00 - (vu32){0}, half);
    half = SELECT(value != value, ((bits >> 13) & 0x3FF) | 0x7E00, half);
    return __builtin_convertvector(half | sign, vhalves);
#endif
}

WORD vf32 f32_of_half(vhalves half)
{
#if VECTOR_BYTES == 64
    return (vf32)_mm512_cvtph_ps((__m256i)half);
#elif VECTOR_BYTES == 32
    return (vf32)_mm256_cvtph_ps((__m128i)half);
#else
    vu32 wide = __builtin_convertvector(half, vu32), sign = (wide & 0x8000) << 16, bits = (wide & 0x7FFF) << 13;
    vu32 normal = bits + ((127 - 15) << 23);
    /* An integer times the smallest half; exact. */
    vu32 small = (vu32)(__builtin_convertvector((vi32)(wide & 0x7FFF), vf32) * 5.9604644775390625e-8f);
    vu32 special = bits | 0x7F800000 | ((vu32)((vi32)bits > 31 << 23) & 0x400000);
    vu32 result = SELECT((vi32)bits < 1 << 23, small, normal);
    return (vf32)(SELECT((vi32)bits >= 31 << 23, special, result) | sign);
#endif
}

/* Whether there are tiles for halves: where they are widened by an instruction; else it is done once, in bands. */
#define WIDENS_HALVES (VECTOR_BYTES > 16)

/* float32 from memory that holds it, or half as many bits; `element` tells. */
WORD vf32 load_as_f32(const void *source, ptrdiff_t count, int element)
{
    vhalves halves;
    if (element == FLOAT32)
        return load_f32((const float *)source, count);
    halves = count >= LANES ? *(const vhalves *)source : load_part_halves(source, count);
    return element == FLOAT16 ? f32_of_half(halves) : f32_of_brain(halves);
}

WORD vf32 load_spread_as_f32(const void *source, vi32 index, ptrdiff_t count, int element)
{
    vhalves halves;
    if (element == FLOAT32)
        return load_spread_f32((const float *)source, index, count);
#if VECTOR_BYTES == 64
    if (element == FLOAT16 && count <= 8) { /* Narrower vectors are widened in half the time, or a third. */
        const __m128i few = _mm_maskz_loadu_epi16((__mmask8)first_lanes(count), source);
        return (vf32)_mm512_permutexvar_ps(
            (__m512i)index, count <= 4 ? _mm512_castps128_ps512(_mm_cvtph_ps(few)) : _mm512_castps256_ps512(_mm256_cvtph_ps(few)));
    }
    halves = load_part_halves(source, count);
    if (element == BFLOAT16) /* Each into the upper half of its lane. */
        return (vf32)_mm512_maskz_permutexvar_epi16(0xAAAAAAAA, (__m512i)(index << 16), _mm512_castsi256_si512((__m256i)halves));
#elif VECTOR_BYTES == 32
    (void)index, (void)count; /* One element in all lanes, as multiples of LANES filters have it: no others. */
    return element == FLOAT16 ? f32_of_half((vhalves)_mm_set1_epi16(*(const int16_t *)source)) : (vf32)splat_i32(*(const uint16_t *)source << 16);
#else
    halves = load_part_halves(source, count);
#endif
    return __builtin_shuffle(element == FLOAT16 ? f32_of_half(halves) : f32_of_brain(halves), index);
}

WORD void store_from_f32(char *target, vf32 value, ptrdiff_t count, int element)
{
    vhalves halves;
    if (element == FLOAT32) {
        store_f32((float *)target, value, count);
        return;
    }
    halves = element == FLOAT16 ? half_of_f32(value) : brain_of_f32(value);
    if (count >= LANES)
        *(vhalves *)target = halves;
    else
        store_part_halves(target, halves, count);
}

/* bfloat16 of a row of pixels. With instructions that move bytes within 16 of them, widening and narrowing are one and two of them if lane i holds
 * element row_lane(i, BFLOAT16) of a vector; narrowing takes no NaN but those whose lower half is 0. Other elements keep their order. */
#if VECTOR_BYTES >= 32

WORD int row_lane(int lane, int element) { return element == BFLOAT16 && LANES == 16 ? (lane & 3) | (lane & 4) << 1 | (lane & 8) >> 1 : lane; }

/* bfloat16 whose loads take one move of words; a type of tiles alone. On Zen 4, which moves words as fast as bytes, one of 32 bytes to both halves costs a move
 * more; Intel moves words in two. */
#define BRAINS_BY_WORDS ELEMENTS
#if VECTOR_BYTES == 64
WORD vf32 load_brains_by_words(const void *source)
{
    vi16 order;
#pragma GCC unroll 32
    for (int i = 0; i < 2 * LANES; i++)
        order[i] = (int16_t)row_lane(i / 2, BFLOAT16);
    return (vf32)_mm512_maskz_permutexvar_epi16(0xAAAAAAAA, (__m512i)order, _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)source)));
}
#endif

WORD vf32 load_brains(const void *source)
{
    vbytes order;
    /* Two bytes of 0, two of the source: the lower half of its 16 bytes, then the upper one. */
#pragma GCC unroll 64
    for (int i = 0; i < VECTOR_BYTES; i++)
        order[i] = (int8_t)(i & 2 ? i / (VECTOR_BYTES / 2) * 8 + i % 16 / 4 * 2 + (i & 1) : -1);
#if VECTOR_BYTES == 64
    return (vf32)_mm512_shuffle_epi8(_mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)source)), (__m512i)order);
#else
    return (vf32)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)source)), (__m256i)order);
#endif
}

/* In the upper halves. */
WORD vu32 rounded_to_brains(vf32 value)
{
    const vu32 bits = (vu32)value;
#if VECTOR_BYTES == 64
    /* The same in three instructions: less than the complement of the last bit, or 0x7FFE. Products wait for masks on Zen 4. */
    const __m512i above = _mm512_srli_epi32((__m512i)bits, 16);
    return bits - (vu32)_mm512_ternarylogic_epi32(above, _mm512_set1_epi32(1), _mm512_set1_epi32(0x7FFE), 0x15);
#else
    return bits + 0x7FFF + ((bits >> 16) & 1);
#endif
}

WORD vhalves narrow_brains(vf32 value)
{
    const vu32 rounded = rounded_to_brains(value);
#if VECTOR_BYTES == 64 /* AMD moves words in one instruction, Intel in the two of which it would consist. */
    vi16 order;
#pragma GCC unroll 32
    for (int i = 0; i < 2 * LANES; i++)
        order[i] = (int16_t)(2 * row_lane(i % LANES, BFLOAT16) + 1);
    return (vhalves)_mm512_castsi512_si256(_mm512_permutexvar_epi16((__m512i)order, (__m512i)rounded));
#else
    vbytes order;
#pragma GCC unroll 64
    for (int i = 0; i < VECTOR_BYTES; i++)
        order[i] = (int8_t)(i & 8 ? -1 : i % 8 / 2 * 4 + 2 + (i & 1));
    return (vhalves)_mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_shuffle_epi8((__m256i)rounded, (__m256i)order), 0x08));
#endif
}

#else

WORD int row_lane(int lane, int element) { return element == BFLOAT16 ? -1 : lane; } /* There are no such rows. */
WORD vf32 load_brains(const void *source) { return f32_of_brain(*(const vhalves *)source); }
WORD vhalves narrow_brains(vf32 value) { return brain_of_f32(value); }

#endif

WORD vf32 load_row(const void *source, int element)
{
#if VECTOR_BYTES == 64
    if (element == BRAINS_BY_WORDS)
        return load_brains_by_words(source);
#endif
    return element == BFLOAT16 ? load_brains(source) : element == FLOAT64 ? *(const vf32 *)source : load_as_f32(source, LANES, element);
}

/* Whether a part of a vector is stored by one instruction, as all of it. */
#define MASKS(element) (VECTOR_BYTES == 64 && element != FLOAT64)
#if VECTOR_BYTES < 64
#define store_chosen_f32 store_part_f32
#define store_chosen_halves store_part_halves
#endif
/* All lanes, or the first `count` of them, fewer; where there are masks, those of the mask `count`. */
WORD void store_row(char *target, vf32 value, ptrdiff_t count, const int element, const int whole)
{
    const int as_it_is = element == FLOAT32 || element == FLOAT64;
    vhalves halves;
    if (as_it_is && whole)
        *(vf32 *)target = value;
    else if (MASKS(element) && as_it_is)
        store_chosen_f32((float *)target, value, count);
    else if (as_it_is)
        store_part_f32((float *)target, value, element == FLOAT64 ? 2 * count : count);
    if (as_it_is)
        return;
    halves = element == FLOAT16 ? half_of_f32(value) : narrow_brains(value);
    if (whole)
        *(vhalves *)target = halves;
    else
        store_chosen_halves(target, halves, count);
}

/* Halves in their order, by as few instructions; narrowing takes no other NaN than above. */
WORD vf32 widen_halves(const void *source, ptrdiff_t count, int element)
{
#if VECTOR_BYTES == 64
    vi32 index;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        index[i] = i;
    if (element == BFLOAT16)
        return load_spread_as_f32(source, index, count, element);
#elif VECTOR_BYTES == 32
    if (element == BFLOAT16 && count >= LANES)
        return load_brains(source);
#endif
    return load_as_f32(source, count, element);
}

#if VECTOR_BYTES == 64
/* Those of a mask; the others are 0, and their memory is not read, by this one instruction: a compiler might take two, and a masked load of halves takes long. */
WORD vf32 widen_where(const char *source, vmask mask, const int element)
{
    vf32 value;
    if (element == FLOAT16)
        __asm__("vcvtph2ps %1, %0 %{%2%}%{z%}" : "=v"(value) : "m"(*(const vhalves *)source), "Yk"(mask));
    else
        __asm__("vpmovzxwd %1, %0 %{%2%}%{z%}" : "=v"(value) : "m"(*(const vhalves *)source), "Yk"(mask));
    return element == FLOAT16 ? value : (vf32)((vu32)value << 16);
}

/* Twice as many halves, two in each lane: a mask of the first LANES, and of those behind. */
WORD vf32 load_pairs_where(const char *source, vmask first, vmask behind)
{
    return (vf32)_mm512_maskz_loadu_epi16((__mmask32)behind << LANES | first, source);
}

/* The first or the second half of each lane. */
WORD vf32 widen_every_second(vf32 pairs, const int second, const int element)
{
    if (element == BFLOAT16)
        return second ? (vf32)((vu32)pairs & 0xFFFF0000) : (vf32)((vu32)pairs << 16);
    return f32_of_half((vhalves)_mm512_cvtepi32_epi16((__m512i)((vu32)pairs >> (second ? 16 : 0))));
}

/* And back to bfloat16, as narrow_halves: `count` lanes. */
WORD void store_brains(char *target, vf32 firsts, vf32 seconds, ptrdiff_t count)
{
    store_first_f32((float *)target, (vf32)(rounded_to_brains(firsts) >> 16 | (rounded_to_brains(seconds) & 0xFFFF0000)), count);
}
#endif

WORD vhalves halves_in_order(vf32 value, int element)
{
    if (element == FLOAT16)
        return half_of_f32(value);
#if VECTOR_BYTES == 64
    vbytes odd;
#pragma GCC unroll 64
    for (int i = 0; i < VECTOR_BYTES; i++)
        odd[i] = (int8_t)(i & 1 ? 0 : (i + 1) % 32);
    return (vhalves)_mm512_castsi512_si256(_mm512_permutexvar_epi16((__m512i)odd, (__m512i)rounded_to_brains(value)));
#else
    return narrow_brains(value);
#endif
}

WORD void narrow_halves(char *target, vf32 value, ptrdiff_t count, int element)
{
    const vhalves halves = halves_in_order(value, element);
    if (count >= LANES)
        *(vhalves *)target = halves;
    else
        store_part_halves(target, halves, count);
}

#if VECTOR_BYTES == 64
/* The first `count` of the lower half, and of the upper one. */
WORD void narrow_two(char *lower, char *upper, vf32 value, ptrdiff_t count, int element)
{
    const vhalves halves = halves_in_order(value, element);
    store_part_halves(lower, halves, count);
    store_part_halves(upper, (vhalves)_mm256_castsi128_si256(_mm256_extracti128_si256((__m256i)halves, 1)), count);
}
#endif

#if VECTOR_BYTES > 16
/* 8 lanes: as many elements, in order, or one in all of them; and back, as narrow_halves. */
WORD veight load_eight_as_f32(const char *source, const int element)
{
#if VECTOR_BYTES == 64
    if (element == FLOAT16)
        return (veight)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)source));
    if (element == BFLOAT16)
        return (veight)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)source)), 16);
#endif
    (void)element;
    return *(const veight *)source;
}

WORD veight splat_eight_as_f32(const char *source, const int element)
{
#if VECTOR_BYTES == 64
    const __m128i half = _mm_set1_epi16(*(const int16_t *)source);
    if (element == FLOAT16)
        return (veight)_mm256_cvtph_ps(half);
    if (element == BFLOAT16)
        return (veight)_mm256_maskz_broadcastw_epi16(0xAAAA, half);
#endif
    (void)element;
    return splat_eight((const float *)source);
}

WORD void store_eight_from_f32(char *target, veight value, const int element)
{
#if VECTOR_BYTES == 64
    if (element == FLOAT16) {
        _mm_storeu_si128((__m128i *)target, _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        return;
    }
    if (element == BFLOAT16) {
        const __m256i bits = (__m256i)value;
        const __m256i less = _mm256_ternarylogic_epi32(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1), _mm256_set1_epi32(0x7FFE), 0x15);
        const __m256i odd = _mm256_setr_epi16(1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15);
        _mm_storeu_si128((__m128i *)target, _mm256_castsi256_si128(_mm256_permutexvar_epi16(odd, _mm256_sub_epi32(bits, less))));
        return;
    }
#endif
    (void)element;
    *(veight *)target = value;
}
#endif

/* Doubles: half as many lanes. */
WORD vf64 splat_f64(double value) { return value - (vf64){0}; }
WORD vf64 at_least_f64(vf64 value, vf64 bound)
{
    vi64 below = value < bound;
    return (vf64)((below & (vi64)bound) | (~below & (vi64)value));
}
WORD vf64 at_most_f64(vf64 value, vf64 bound)
{
    vi64 above = value > bound;
    return (vf64)((above & (vi64)bound) | (~above & (vi64)value));
}
WORD vf64 load_f64(const double *source, ptrdiff_t count) { return (vf64)load_f32((const float *)source, 2 * count); }
WORD void store_f64(double *target, vf64 value, ptrdiff_t count) { store_f32((float *)target, (vf32)value, 2 * count); }

/* Vectors that hold doubles where the element is FLOAT64. */
WORD vf32 add_product(vf32 sum, vf32 a, vf32 b, const int element)
{
    if (element == FLOAT64)
        return (vf32)((vf64)sum + (vf64)a * (vf64)b);
    return sum + a * b;
}
WORD vf32 between(vf32 value, vf32 low, vf32 high, const int element)
{
    return element == FLOAT64 ? (vf32)at_most_f64(at_least_f64((vf64)value, (vf64)low), (vf64)high) : at_most_f32(at_least_f32(value, low), high);
}

#endif

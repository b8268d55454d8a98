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

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

enum { LANES = VECTOR_BYTES / 4 };

/* Aligned like their elements: loads and stores accept any address. */
typedef float vf32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t vi32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t vu32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int16_t vi16 __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef uint16_t vu16 __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef int8_t vbytes __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef int8_t vi8 __attribute__((vector_size(LANES), aligned(1), may_alias));

/* Inlined whatever the size: called with constants, the branches on them and the loops over registers disappear. */
#define WORD static inline __attribute__((always_inline, unused))

WORD vf32 splat_f32(float value) { return value - (vf32){0}; }

WORD vi32 splat_i32(int32_t value) { return value - (vi32){0}; }

WORD vi32 select_i32(vi32 mask, vi32 yes, vi32 no) { return (mask & yes) | (~mask & no); }

#if VECTOR_BYTES == 64

WORD vi32 min_i32(vi32 a, vi32 b) { return (vi32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return (vi32)_mm512_max_epi32((__m512i)a, (__m512i)b); }
/* value < bound ? bound : value and value > bound ? bound : value: a NaN value stays, as in std::min(std::max(x, lo), hi). */
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)_mm512_max_ps((__m512)bound, (__m512)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)_mm512_min_ps((__m512)bound, (__m512)value); }

WORD __mmask16 first_lanes(ptrdiff_t count) { return (__mmask16)((1u << count) - 1u); }

WORD vf32 load_part_f32(const float *source, ptrdiff_t count) { return (vf32)_mm512_maskz_loadu_ps(first_lanes(count), source); }
WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count) { _mm512_mask_storeu_ps(target, first_lanes(count), (__m512)value); }
/* Lanes whose mask is set; nothing else is touched, the other lanes are 0. */
WORD vf32 load_masked_f32(const float *source, vi32 mask) { return (vf32)_mm512_maskz_loadu_ps(_mm512_movepi32_mask((__m512i)mask), source); }
/* Lane i takes source[index[i]], 0 <= index[i] < count <= LANES. */
WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    /* A short load rarely crosses a cache line. */
    __m512 few = count <= 4 ? _mm512_castps128_ps512(_mm_maskz_loadu_ps((__mmask8)first_lanes(count), source))
                            : _mm512_maskz_loadu_ps(first_lanes(count), source);
    return (vf32)_mm512_permutexvar_ps((__m512i)index, few);
}
WORD vi8 load_part_i8(const int8_t *source, ptrdiff_t count) { return (vi8)_mm_maskz_loadu_epi8(first_lanes(count), source); }
WORD void store_part_i8(int8_t *target, vi8 value, ptrdiff_t count) { _mm_mask_storeu_epi8(target, first_lanes(count), (__m128i)value); }

/* Sign-extend, and cut off what int8 has no room for. */
WORD vi32 widen_i8(vi8 value) { return (vi32)_mm512_cvtepi8_epi32((__m128i)value); }
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

WORD __m256i first_lanes(ptrdiff_t count) { return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }

WORD vf32 load_part_f32(const float *source, ptrdiff_t count) { return (vf32)_mm256_maskload_ps(source, first_lanes(count)); }
WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count) { _mm256_maskstore_ps(target, first_lanes(count), (__m256)value); }

WORD vf32 load_masked_f32(const float *source, vi32 mask) { return (vf32)_mm256_maskload_ps(source, (__m256i)mask); }
WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    return (vf32)_mm256_permutevar8x32_ps(_mm256_maskload_ps(source, first_lanes(count)), (__m256i)index);
}

WORD vi32 widen_i8(vi8 value) { return (vi32)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128((int64_t)value)); }

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

WORD vi32 min_i32(vi32 a, vi32 b) { return select_i32(a < b, a, b); }
WORD vi32 max_i32(vi32 a, vi32 b) { return select_i32(a > b, a, b); }
WORD vf32 at_least_f32(vf32 value, vf32 bound) { return (vf32)select_i32((vi32)(value < bound), (vi32)bound, (vi32)value); }
WORD vf32 at_most_f32(vf32 value, vf32 bound) { return (vf32)select_i32((vi32)(value > bound), (vi32)bound, (vi32)value); }

WORD vf32 load_part_f32(const float *source, ptrdiff_t count)
{
    vf32 value = {0};
    memcpy(&value, source, (size_t)count * sizeof(float));
    return value;
}

WORD vf32 load_masked_f32(const float *source, vi32 mask)
{
    vf32 value = {0};
    for (int lane = 0; lane < LANES; lane++)
        if (mask[lane])
            value[lane] = source[lane];
    return value;
}

WORD vf32 load_spread_f32(const float *source, vi32 index, ptrdiff_t count)
{
    vf32 value;
    (void)count;
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = source[index[lane]];
    return value;
}

WORD void store_part_f32(float *target, vf32 value, ptrdiff_t count) { memcpy(target, &value, (size_t)count * sizeof(float)); }

#if defined(__SSE2__)

/* Each byte into the top of its lane, then shifted down with its sign. */
WORD vi32 widen_i8(vi8 value)
{
    __m128i bytes = _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi32_si128((int32_t)value));
    return (vi32)_mm_unpacklo_epi16(_mm_setzero_si128(), bytes) >> 24;
}

WORD vi8 narrow_i32(vi32 value)
{
    __m128i words = _mm_packs_epi32((__m128i)value, (__m128i)value);
    return (vi8)_mm_cvtsi128_si32(_mm_packs_epi16(words, words));
}

#else

WORD vi32 widen_i8(vi8 value) { return __builtin_convertvector(value, vi32); }
WORD vi8 narrow_i32(vi32 value) { return __builtin_convertvector(value, vi8); }

#endif

WORD vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights)
{
#if defined(__SSE2__)
    return sum + (vi32)_mm_madd_epi16((__m128i)cells, (__m128i)weights);
#else
    return sum + ((vi32)((vu32)cells << 16) >> 16) * ((vi32)((vu32)weights << 16) >> 16) + (cells >> 16) * (weights >> 16);
#endif
}

WORD vi32 high_multiply(vi32 a, vi32 b)
{
    vi32 high;
    for (int lane = 0; lane < LANES; lane++)
        high[lane] = (int32_t)(((int64_t)a[lane] * b[lane] + (1 << 30)) >> 31);
    return high;
}

#endif

#if VECTOR_BYTES != 64

/* The usual counts as constants: a byte-wise copy of unknown length costs more than the work on the bytes. */
WORD void copy_part_i8(void *target, const void *source, ptrdiff_t count)
{
    switch (count) {
    case 8: memcpy(target, source, 8); break;
    case 4: memcpy(target, source, 4); break;
    default: memcpy(target, source, (size_t)count);
    }
}

WORD vi8 load_part_i8(const int8_t *source, ptrdiff_t count)
{
    vi8 value = {0};
    copy_part_i8(&value, source, count);
    return value;
}

WORD void store_part_i8(int8_t *target, vi8 value, ptrdiff_t count) { copy_part_i8(target, &value, count); }

#endif

/* Lanes 0, 2, 4 .. of two vectors. */
WORD vf32 evens_f32(vf32 a, vf32 b)
{
    vi32 index;
    for (int lane = 0; lane < LANES; lane++)
        index[lane] = 2 * lane;
    return __builtin_shuffle(a, b, index);
}

WORD vf32 load_f32(const float *source, ptrdiff_t count) { return count >= LANES ? *(const vf32 *)source : load_part_f32(source, count); }

WORD void store_f32(float *target, vf32 value, ptrdiff_t count)
{
    if (count >= LANES)
        *(vf32 *)target = value;
    else
        store_part_f32(target, value, count);
}

/* Cells of LANES channels: `first` in the low and `second` in the high int16 of each lane. */
WORD vi32 load_cells(const int8_t *first, const int8_t *second, ptrdiff_t count)
{
    vi32 low = widen_i8(count >= LANES ? *(const vi8 *)first : load_part_i8(first, count));
    vi32 high = widen_i8(count >= LANES ? *(const vi8 *)second : load_part_i8(second, count));
    return (low & 0xFFFF) | (vi32)((vu32)high << 16);
}

WORD int32_t cell_i32(int first, int second) { return (int32_t)(((uint32_t)first & 0xFFFFu) | ((uint32_t)second << 16)); }

/* Lanes are within int8 already. */
WORD void store_i8(int8_t *target, vi32 value, ptrdiff_t count)
{
    vi8 bytes = narrow_i32(value);
    if (count >= LANES)
        *(vi8 *)target = bytes;
    else
        store_part_i8(target, bytes, count);
}

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

/* Bytes: one int8 of VECTOR_BYTES neighbouring channels. Four taps of them, interleaved, are four vectors of quads: the four taps of one channel
 * in each lane. The order of the channels is that of the unpack instructions, which the pack instructions undo: within each run of 16 channels,
 * quads k hold channels 4*k to 4*k+3. */
enum { QUADS = 4 };

#if VECTOR_BYTES == 64

WORD vbytes load_part_bytes(const int8_t *source, ptrdiff_t count)
{
    return (vbytes)_mm512_maskz_loadu_epi8((__mmask64)(((uint64_t)1 << count) - 1), source);
}
WORD void store_part_bytes(int8_t *target, vbytes value, ptrdiff_t count)
{
    _mm512_mask_storeu_epi8(target, (__mmask64)(((uint64_t)1 << count) - 1), (__m512i)value);
}
#define UNPACK(half, bits, a, b) ((vbytes)_mm512_unpack##half##_epi##bits((__m512i)(a), (__m512i)(b)))
WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm512_packs_epi32((__m512i)a, (__m512i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm512_packs_epi16((__m512i)a, (__m512i)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm512_adds_epi16((__m512i)a, (__m512i)b); }
WORD vi16 clamp_i16(vi16 value, vi16 low, vi16 high)
{
    return (vi16)_mm512_min_epi16(_mm512_max_epi16((__m512i)value, (__m512i)low), (__m512i)high);
}

#else

WORD vbytes load_part_bytes(const int8_t *source, ptrdiff_t count)
{
    vbytes value = {0};
    memcpy(&value, source, (size_t)count);
    return value;
}
WORD void store_part_bytes(int8_t *target, vbytes value, ptrdiff_t count) { memcpy(target, &value, (size_t)count); }

#if VECTOR_BYTES == 32

#define UNPACK(half, bits, a, b) ((vbytes)_mm256_unpack##half##_epi##bits((__m256i)(a), (__m256i)(b)))
WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm256_packs_epi32((__m256i)a, (__m256i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm256_packs_epi16((__m256i)a, (__m256i)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm256_adds_epi16((__m256i)a, (__m256i)b); }
WORD vi16 clamp_i16(vi16 value, vi16 low, vi16 high)
{
    return (vi16)_mm256_min_epi16(_mm256_max_epi16((__m256i)value, (__m256i)low), (__m256i)high);
}

#elif defined(__SSE2__)

#define UNPACK(half, bits, a, b) ((vbytes)_mm_unpack##half##_epi##bits((__m128i)(a), (__m128i)(b)))
WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm_packs_epi32((__m128i)a, (__m128i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm_packs_epi16((__m128i)a, (__m128i)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm_adds_epi16((__m128i)a, (__m128i)b); }
WORD vi16 clamp_i16(vi16 value, vi16 low, vi16 high) { return (vi16)_mm_min_epi16(_mm_max_epi16((__m128i)value, (__m128i)low), (__m128i)high); }

#else

/* Byte masks of the four unpack instructions, by name. */
#define UNPACK_lo_8 {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}
#define UNPACK_hi_8 {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}
#define UNPACK_lo_16 {0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23}
#define UNPACK_hi_16 {8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31}
#define UNPACK(half, bits, a, b) __builtin_shuffle((a), (b), (vbytes)UNPACK_##half##_##bits)
WORD int16_t saturated_i16(int32_t value) { return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value); }
WORD vi16 pack_i32(vi32 a, vi32 b)
{
    vi16 packed;
    for (int lane = 0; lane < LANES; lane++) {
        packed[lane] = saturated_i16(a[lane]);
        packed[lane + LANES] = saturated_i16(b[lane]);
    }
    return packed;
}
WORD vbytes pack_i16(vi16 a, vi16 b)
{
    vbytes packed;
    for (int lane = 0; lane < 2 * LANES; lane++) {
        packed[lane] = (int8_t)(a[lane] < INT8_MIN ? INT8_MIN : a[lane] > INT8_MAX ? INT8_MAX : a[lane]);
        packed[lane + 2 * LANES] = (int8_t)(b[lane] < INT8_MIN ? INT8_MIN : b[lane] > INT8_MAX ? INT8_MAX : b[lane]);
    }
    return packed;
}
WORD vi16 add_saturated_i16(vi16 a, vi16 b)
{
    vi16 sum;
    for (int lane = 0; lane < 2 * LANES; lane++)
        sum[lane] = saturated_i16(a[lane] + b[lane]);
    return sum;
}
WORD vi16 clamp_i16(vi16 value, vi16 low, vi16 high)
{
    vi16 below = value < low, above = value > high;
    value = (below & low) | (~below & value);
    return (above & high) | (~above & value);
}

#endif
#endif

WORD vi16 splat_i16(int value) { return (int16_t)value - (vi16){0}; }

WORD vbytes load_bytes(const int8_t *source, ptrdiff_t count) { return count >= VECTOR_BYTES ? *(const vbytes *)source : load_part_bytes(source, count); }

WORD void store_bytes(int8_t *target, vbytes value, ptrdiff_t count)
{
    if (count >= VECTOR_BYTES)
        *(vbytes *)target = value;
    else
        store_part_bytes(target, value, count);
}

/* Four taps interleaved. */
WORD void quads_of(vi32 *quads, vbytes a, vbytes b, vbytes c, vbytes d)
{
    vbytes ab = UNPACK(lo, 8, a, b), cd = UNPACK(lo, 8, c, d);
    quads[0] = (vi32)UNPACK(lo, 16, ab, cd);
    quads[1] = (vi32)UNPACK(hi, 16, ab, cd);
    ab = UNPACK(hi, 8, a, b);
    cd = UNPACK(hi, 8, c, d);
    quads[2] = (vi32)UNPACK(lo, 16, ab, cd);
    quads[3] = (vi32)UNPACK(hi, 16, ab, cd);
}

/* The weights of four taps as dot_quads takes them: WEIGHT_VECTORS vectors, `pitch` apart (put_weights: lanes, dot_quads: vectors). The instruction of VNNI takes unsigned inputs:
 * they are offset by INPUT_OFFSET, which whoever packs the weights takes back out of the bias. */
#if defined(__AVX512VNNI__)

enum { WEIGHT_VECTORS = 1, INPUT_OFFSET = 128 };

WORD void put_weights(int32_t *lane, ptrdiff_t pitch, int a, int b, int c, int d)
{
    (void)pitch;
    *lane = (int32_t)((uint32_t)(a & 0xFF) | (uint32_t)(b & 0xFF) << 8 | (uint32_t)(c & 0xFF) << 16 | (uint32_t)(d & 0xFF) << 24);
}
WORD vi32 dot_quads(vi32 sum, vi32 quads, const vi32 *weights, ptrdiff_t pitch)
{
    (void)pitch;
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)(quads ^ splat_i32((int32_t)0x80808080)), (__m512i)weights[0]);
}

#else

enum { WEIGHT_VECTORS = 2, INPUT_OFFSET = 0 };

WORD void put_weights(int32_t *lane, ptrdiff_t pitch, int a, int b, int c, int d)
{
    lane[0] = cell_i32(a, c);
    lane[pitch] = cell_i32(b, d);
}
WORD vi32 dot_quads(vi32 sum, vi32 quads, const vi32 *weights, ptrdiff_t pitch)
{
    vi16 even = (vi16)((vu16)quads << 8) >> 8, odd = (vi16)quads >> 8;
    return dot_i16(dot_i16(sum, (vi32)even, weights[0]), (vi32)odd, weights[pitch]);
}

#endif

/* From rescaled sums to bytes in the order of the channels: zero point, clamp, narrow; saturating all the way, so no sum is too large. */
WORD vbytes bytes_of(vi32 a, vi32 b, vi32 c, vi32 d, vi16 zero_point, vi16 low, vi16 high)
{
    vi16 first = clamp_i16(add_saturated_i16(pack_i32(a, b), zero_point), low, high);
    vi16 second = clamp_i16(add_saturated_i16(pack_i32(c, d), zero_point), low, high);
    return pack_i16(first, second);
}

/* Arithmetic that wraps, for the constants folded into the bias. */
WORD int32_t wrapping_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
WORD int32_t wrapping_multiply(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }

#endif

/* The words of bytes, once per instruction set (ADR 0004): int8 activations, the cells of four rows of which products are made, and the way from sums
 * back to int8 (ADR 0006). They are made of those of simd.h.
 */
#ifndef ND4JLIKE_BYTES_H
#define ND4JLIKE_BYTES_H

#include "simd.h"

/* vbytes holds one int8 of VECTOR_BYTES neighbouring channels, whose sums are QUADS vectors of int32. */
enum { QUADS = 4 };

#if VECTOR_BYTES == 64

WORD vbytes load_part_bytes(const int8_t *source, ptrdiff_t count)
{
    return (vbytes)_mm512_maskz_loadu_epi8((__mmask64)_bzhi_u64(UINT64_MAX, (unsigned)count), source);
}
WORD void store_part_bytes(int8_t *target, vbytes value, ptrdiff_t count)
{
    _mm512_mask_storeu_epi8(target, (__mmask64)_bzhi_u64(UINT64_MAX, (unsigned)count), (__m512i)value);
}
WORD vbytes load_halves(const int8_t *lower, const int8_t *upper)
{
    return (vbytes)_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)lower)), _mm256_loadu_si256((const __m256i *)upper), 1);
}
WORD void store_halves(int8_t *lower, int8_t *upper, vbytes value)
{
    _mm256_storeu_si256((__m256i *)lower, _mm512_castsi512_si256((__m512i)value));
    _mm256_storeu_si256((__m256i *)upper, _mm512_extracti64x4_epi64((__m512i)value, 1));
}
WORD void store_quarters(int8_t *target, ptrdiff_t apart, vbytes value)
{
    _mm_storeu_si128((__m128i *)target, _mm512_castsi512_si128((__m512i)value));
    _mm_storeu_si128((__m128i *)(target + apart), _mm512_extracti32x4_epi32((__m512i)value, 1));
    _mm_storeu_si128((__m128i *)(target + 2 * apart), _mm512_extracti32x4_epi32((__m512i)value, 2));
    _mm_storeu_si128((__m128i *)(target + 3 * apart), _mm512_extracti32x4_epi32((__m512i)value, 3));
}
/* The first `count` bytes of each half, of each quarter. */
WORD vbytes load_part_halves_of(const int8_t *lower, const int8_t *upper, ptrdiff_t count)
{
    const __mmask32 stored = (__mmask32)_bzhi_u32(UINT32_MAX, (unsigned)count);
    return (vbytes)_mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(stored, lower)), _mm256_maskz_loadu_epi8(stored, upper), 1);
}
WORD void store_part_halves_of(int8_t *lower, int8_t *upper, vbytes value, ptrdiff_t count)
{
    const __mmask32 stored = (__mmask32)_bzhi_u32(UINT32_MAX, (unsigned)count);
    _mm256_mask_storeu_epi8(lower, stored, _mm512_castsi512_si256((__m512i)value));
    _mm256_mask_storeu_epi8(upper, stored, _mm512_extracti64x4_epi64((__m512i)value, 1));
}
WORD vbytes load_part_quarters(const int8_t *a, const int8_t *b, const int8_t *c, const int8_t *d, ptrdiff_t count)
{
    const __mmask16 stored = (__mmask16)_bzhi_u32(UINT16_MAX, (unsigned)count);
    const __m256i left = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi8(stored, a)), _mm_maskz_loadu_epi8(stored, b), 1);
    const __m256i right = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi8(stored, c)), _mm_maskz_loadu_epi8(stored, d), 1);
    return (vbytes)_mm512_inserti64x4(_mm512_castsi256_si512(left), right, 1);
}
WORD void store_part_quarters(int8_t *target, ptrdiff_t apart, vbytes value, ptrdiff_t count)
{
    const __mmask16 stored = (__mmask16)_bzhi_u32(UINT16_MAX, (unsigned)count);
    _mm_mask_storeu_epi8(target, stored, _mm512_castsi512_si128((__m512i)value));
    _mm_mask_storeu_epi8(target + apart, stored, _mm512_extracti32x4_epi32((__m512i)value, 1));
    _mm_mask_storeu_epi8(target + 2 * apart, stored, _mm512_extracti32x4_epi32((__m512i)value, 2));
    _mm_mask_storeu_epi8(target + 3 * apart, stored, _mm512_extracti32x4_epi32((__m512i)value, 3));
}
#define UNPACK(half, bits, a, b) ((vbytes)_mm512_unpack##half##_epi##bits((__m512i)(a), (__m512i)(b)))
/* Runs of 4 bytes as a matrix of 4x4: in steps it is transposed, and in_order undoes that. */
WORD vbytes in_steps(vbytes value)
{
    return (vbytes)_mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), (__m512i)value);
}
WORD vbytes order_of(int steps)
{
    const __m512i as_is = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return steps ? in_steps((vbytes)as_is) : (vbytes)as_is;
}
WORD vbytes in_order(vbytes value, vbytes order) { return (vbytes)_mm512_permutexvar_epi32((__m512i)order, (__m512i)value); }
WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm512_packs_epi32((__m512i)a, (__m512i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm512_packs_epi16((__m512i)a, (__m512i)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm512_adds_epi16((__m512i)a, (__m512i)b); }
/* Whether any of them may have been beyond all integers, or NaN. */
WORD int any_least_i16(vi16 a, vi16 b)
{
    return _mm512_cmpeq_epi16_mask(_mm512_min_epi16((__m512i)a, (__m512i)b), _mm512_set1_epi16(INT16_MIN)) != 0;
}
WORD vbytes clamp_i8(vbytes value, vbytes low, vbytes high)
{
    return (vbytes)_mm512_min_epi8(_mm512_max_epi8((__m512i)value, (__m512i)low), (__m512i)high);
}

/* The low words of a and of b, by turns. Narrowed, two of these are by turns, too: in_fours gives four bytes of each quad. */
WORD vbytes words_swapped(void) { return (vbytes)_mm512_set4_epi32(0x0D0C0F0E, 0x09080B0A, 0x05040706, 0x01000302); }
#define ODD_WORDS 0xCCCCCCCCCCCCCCCCull
WORD vi16 low_words(vi32 a, vi32 b) { return (vi16)_mm512_mask_shuffle_epi8((__m512i)a, ODD_WORDS, (__m512i)b, (__m512i)words_swapped()); }
/* Neighbours, where a byte of another vector is to take the place of one. */
WORD vbytes bytes_swapped(void) { return (vbytes)_mm512_set4_epi32(0x0E0F0C0D, 0x0A0B0809, 0x06070405, 0x02030001); }
#define ODD_BYTES 0xAAAAAAAAAAAAAAAAull
/* Of fours, by turns. */
WORD vbytes in_twos(vbytes value)
{
    return (vbytes)_mm512_shuffle_epi8((__m512i)value, _mm512_set4_epi32(0x0F0B0E0A, 0x0D090C08, 0x07030602, 0x05010400));
}
WORD vbytes in_fours(vbytes value)
{
    return (vbytes)_mm512_shuffle_epi8((__m512i)value, _mm512_set4_epi32(0x0F0D0B09, 0x0E0C0A08, 0x07050301, 0x06040200));
}

#else

WORD vbytes load_part_bytes(const int8_t *source, ptrdiff_t count)
{
    vbytes value = {0};
    copy_part(&value, source, count);
    return value;
}
WORD void store_part_bytes(int8_t *target, vbytes value, ptrdiff_t count) { copy_part(target, &value, count); }
WORD void store_halves(int8_t *lower, int8_t *upper, vbytes value)
{
    memcpy(lower, &value, VECTOR_BYTES / 2);
    memcpy(upper, (const char *)&value + VECTOR_BYTES / 2, VECTOR_BYTES / 2);
}

#if VECTOR_BYTES == 32

#define UNPACK(half, bits, a, b) ((vbytes)_mm256_unpack##half##_epi##bits((__m256i)(a), (__m256i)(b)))
/* Packing works within 16 bytes: runs of 4 bytes, as a matrix of 2x4, are transposed afterwards; of 8 bytes, as one of 2x2, where sums are in the order of
 * unpack_cells. */
WORD vbytes order_of(int steps)
{
    return (vbytes)(steps ? _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7) : _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7));
}
WORD vbytes in_order(vbytes value, vbytes order) { return (vbytes)_mm256_permutevar8x32_epi32((__m256i)value, (__m256i)order); }
WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm256_packs_epi32((__m256i)a, (__m256i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm256_packs_epi16((__m256i)a, (__m256i)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm256_adds_epi16((__m256i)a, (__m256i)b); }
WORD int any_least_i16(vi16 a, vi16 b)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_min_epi16((__m256i)a, (__m256i)b), _mm256_set1_epi16(INT16_MIN))) != 0;
}
WORD vbytes clamp_i8(vbytes value, vbytes low, vbytes high)
{
    return (vbytes)_mm256_min_epi8(_mm256_max_epi8((__m256i)value, (__m256i)low), (__m256i)high);
}

#elif defined(__SSE2__)

WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)_mm_packs_epi32((__m128i)a, (__m128i)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)_mm_packs_epi16((__m128i)a, (__m128i)b); }
#define UNPACK(half, bits, a, b) ((vbytes)_mm_unpack##half##_epi##bits((__m128i)(a), (__m128i)(b)))
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)_mm_adds_epi16((__m128i)a, (__m128i)b); }
WORD int any_least_i16(vi16 a, vi16 b)
{
    return _mm_movemask_epi8(_mm_cmpeq_epi16(_mm_min_epi16((__m128i)a, (__m128i)b), _mm_set1_epi16(INT16_MIN))) != 0;
}

#elif defined(__aarch64__)

WORD vi16 pack_i32(vi32 a, vi32 b) { return (vi16)vqmovn_high_s32(vqmovn_s32((int32x4_t)a), (int32x4_t)b); }
WORD vbytes pack_i16(vi16 a, vi16 b) { return (vbytes)vqmovn_high_s16(vqmovn_s16((int16x8_t)a), (int16x8_t)b); }
WORD vi16 add_saturated_i16(vi16 a, vi16 b) { return (vi16)vqaddq_s16((int16x8_t)a, (int16x8_t)b); }
WORD int any_least_i16(vi16 a, vi16 b) { return vminvq_s16(vminq_s16((int16x8_t)a, (int16x8_t)b)) == INT16_MIN; }

#else

WORD int16_t saturated_i16(int32_t value) { return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value); }
WORD vi16 pack_i32(vi32 a, vi32 b)
{
    vi16 packed;
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++) {
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
/* NaN becomes anything here. */
WORD int any_least_i16(vi16 a, vi16 b)
{
    (void)a, (void)b;
    return 1;
}

#endif
#endif

#if VECTOR_BYTES == 16

WORD vbytes order_of(int steps) { return (int8_t)steps - (vbytes){0}; }
WORD vbytes in_order(vbytes value, vbytes order)
{
    (void)order;
    return value;
}
WORD vbytes clamp_i8(vbytes value, vbytes low, vbytes high)
{
    vbytes below = value < low, above = value > high;
    return (above & high) | (~above & ((below & low) | (~below & value)));
}

#endif

WORD vbytes splat_i8(int value) { return (int8_t)value - (vbytes){0}; }
WORD vi16 splat_i16(int value) { return (int16_t)value - (vi16){0}; }

WORD vbytes load_bytes(const int8_t *source, ptrdiff_t count) { return count >= VECTOR_BYTES ? *(const vbytes *)source : load_part_bytes(source, count); }

WORD void store_bytes(int8_t *target, vbytes value, ptrdiff_t count)
{
    if (count >= VECTOR_BYTES)
        *(vbytes *)target = value;
    else
        store_part_bytes(target, value, count);
}

/* Cells: the same four rows of the image for each channel, in the order of the channels, in CELL_PLANES planes of one int32 lane a channel.
 * VNNI takes all four bytes at once, unsigned: they are offset by INPUT_OFFSET, which whoever packs the weights takes back out of the bias.
 * Elsewhere a plane has two rows as int16. put_weights lays four taps out to match, planes `pitch` lanes apart. */
#if defined(__AVX512VNNI__)

enum { GROUP = 4, CELL_PLANES = 1, INPUT_OFFSET = 128, UNORDERED = 1, UNPACKED = 1, OVERLAPS = 0, SPLITS = 1 };
#define WINDOWS 1

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
/* The channel of a lane of one of the QUADS. */
WORD int unpacked_channel(int quad, int lane) { return lane / 4 * 16 + quad * 4 + lane % 4; }

WORD void put_weights(int32_t *lane, ptrdiff_t pitch, int a, int b, int c, int d)
{
    (void)pitch;
    *lane = (int32_t)((uint32_t)(a & 0xFF) | (uint32_t)(b & 0xFF) << 8 | (uint32_t)(c & 0xFF) << 16 | (uint32_t)(d & 0xFF) << 24);
}
WORD vi32 blank_cells(int value) { return splat_i32((int32_t)(((uint32_t)(value + 128) & 0xFF) * 0x01010101u)); }
/* The unpack instructions work within 16 bytes: to leave cells in the order of the channels, they want channels in steps of 4. */
WORD void interleave(char *target, ptrdiff_t plane, const int8_t *a, const int8_t *b, const int8_t *c, const int8_t *d, int flip,
                     ptrdiff_t count, const int ordered)
{
    const vbytes offset = splat_i8(INPUT_OFFSET ^ flip);
    vbytes rows[GROUP] = {load_bytes(a, count) ^ offset, load_bytes(b, count) ^ offset, load_bytes(c, count) ^ offset, load_bytes(d, count) ^ offset};
    (void)plane;
    if (ordered)
        for (int i = 0; i < GROUP; i++)
            rows[i] = in_steps(rows[i]);
    quads_of((vi32 *)target, rows[0], rows[1], rows[2], rows[3]);
}
/* Half a vector from `a` on, and as much `apart` bytes beyond. */
WORD void interleave_halves(char *target, const int8_t *const *a, const ptrdiff_t *apart, int flip)
{
    const vbytes offset = splat_i8(INPUT_OFFSET ^ flip);
    vbytes rows[GROUP];
    for (int i = 0; i < GROUP; i++)
        rows[i] = load_halves(a[i], a[i] + apart[i]) ^ offset;
    quads_of((vi32 *)target, rows[0], rows[1], rows[2], rows[3]);
}
WORD vi32 dot_cells(vi32 sum, vi32 cells, vi32 weights) { return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)cells, (__m512i)weights); }
WORD vi32 dot_in_order(vi32 sum, vi32 cells, vi32 weights) { return dot_cells(sum, cells, weights); }

/* Bytes `from` to `to` of a vector in memory, of which nothing else is read; else those of `blank`. */
WORD vbytes load_bytes_between(const int8_t *source, ptrdiff_t from, ptrdiff_t to, vbytes blank)
{
    const unsigned first = from < 0 ? 0 : from > 64 ? 64 : (unsigned)from, end = to < 0 ? 0 : to > 64 ? 64 : (unsigned)to;
    return (vbytes)_mm512_mask_loadu_epi8((__m512i)blank, (__mmask64)(_bzhi_u64(UINT64_MAX, end) & ~_bzhi_u64(UINT64_MAX, first)), source);
}
/* Words of 4 bytes in any order; then bytes within 16 in any order. */
WORD vbytes bytes_of_words(vbytes value, vbytes words, vbytes bytes)
{
    return (vbytes)_mm512_shuffle_epi8(_mm512_permutexvar_epi32((__m512i)words, (__m512i)value), (__m512i)bytes);
}
/* Four cells, over and over. */
WORD vi32 four_cells(const char *cells) { return (vi32)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)cells)); }
/* Runs of 2 bytes in any order. */
WORD vbytes in_order_of_twos(vbytes value, vbytes order) { return (vbytes)_mm512_permutexvar_epi16((__m512i)order, (__m512i)value); }

/* Runs of 2 bytes in any order; then bytes within 16 in any order. */
WORD vbytes bytes_of_twos(vbytes value, vbytes twos, vbytes bytes) { return (vbytes)_mm512_shuffle_epi8((__m512i)in_order_of_twos(value, twos), (__m512i)bytes); }

/* Two rows, interleaved, in the order of the unpack instructions. Two pairs are joined to the cells of one of the QUADS sums. */
enum { PAIR_VECTORS = 2 };

WORD void put_pair_of(char *target, vbytes a, vbytes b, int flip)
{
    const vbytes offset = splat_i8(INPUT_OFFSET ^ flip);
    a ^= offset;
    b ^= offset;
    ((vbytes *)target)[0] = UNPACK(lo, 8, a, b);
    ((vbytes *)target)[1] = UNPACK(hi, 8, a, b);
}
WORD void put_pair(char *target, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
{
    put_pair_of(target, load_bytes(a, count), load_bytes(b, count), flip);
}
/* Half a vector each: of the first row, of the second. */
WORD void put_pair_of_halves(
    char *target, const int8_t *a, const int8_t *a_upper, const int8_t *b, const int8_t *b_upper, int flip, ptrdiff_t count)
{
    put_pair_of(target, load_part_halves_of(a, a_upper, count), load_part_halves_of(b, b_upper, count), flip);
}
WORD void put_pair_of_quarters(char *target, const int8_t *const *a, const int8_t *const *b, int flip, ptrdiff_t count)
{
    put_pair_of(target, load_part_quarters(a[0], a[1], a[2], a[3], count), load_part_quarters(b[0], b[1], b[2], b[3], count), flip);
}
WORD void join_pairs(vi32 *cells, const char *a, const char *b, const int quad)
{
    const vbytes first = *(const vbytes *)(a + quad / 2 * VECTOR_BYTES), second = *(const vbytes *)(b + quad / 2 * VECTOR_BYTES);
    cells[0] = (vi32)(quad % 2 ? UNPACK(hi, 16, first, second) : UNPACK(lo, 16, first, second));
}

#else

enum { GROUP = 4, CELL_PLANES = 2, INPUT_OFFSET = 0, UNORDERED = 0, UNPACKED = VECTOR_BYTES == 32, OVERLAPS = VECTOR_BYTES == 32 };
/* Whether quads split columns by a step: not where their taps are gathered (gather.h). */
enum { SPLITS = VECTOR_BYTES != 32 };
#define WINDOWS 0

WORD void put_weights(int32_t *lane, ptrdiff_t pitch, int a, int b, int c, int d)
{
    lane[0] = cell_i32(a, b);
    lane[pitch] = cell_i32(c, d);
}
WORD vi32 blank_cells(int value) { return splat_i32(cell_i32(value, value)); }
/* Two vectors of lanes of two rows; of the second one nothing, where there are no more channels. */
#if VECTOR_BYTES == 32
static __attribute__((noinline)) void some_cells(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
#else
WORD void two_cells(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
#endif
{
    cells[0] = load_cells(a, b, flip, count);
    if (count > LANES)
        cells[1] = load_cells(a + LANES, b + LANES, flip, count - LANES);
}
#if VECTOR_BYTES == 32
WORD void two_cells(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
{
    if (count < 2 * LANES) {
        some_cells(cells, a, b, flip, count);
        return;
    }
    const __m128i bits = _mm_set1_epi8((char)flip);
    const __m128i first = _mm_loadu_si128((const __m128i *)a) ^ bits, second = _mm_loadu_si128((const __m128i *)b) ^ bits;
    cells[0] = (vi32)_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(first, second));
    cells[1] = (vi32)_mm256_cvtepi8_epi16(_mm_unpackhi_epi8(first, second));
}
#endif
/* The same where nobody minds the order of channels, as the unpack instructions leave it: widened as they are loaded, they take half the time. Where bits are
 * flipped, bytes are widened without a sign, and whoever packs the weights takes 128 times their sum back out of the bias. */
#if VECTOR_BYTES == 32
WORD __m256i widened(const int8_t *source, int flip)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)source);
    return flip ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}
WORD void unpack_16(vi32 *cells, const int8_t *a, const int8_t *b, int flip)
{
    const __m256i first = widened(a, flip), second = widened(b, flip);
    cells[0] = (vi32)_mm256_unpacklo_epi16(first, second);
    cells[1] = (vi32)_mm256_unpackhi_epi16(first, second);
}
static __attribute__((noinline)) void unpack_some(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
{
    const vbytes first = load_part_bytes(a, count), second = load_part_bytes(b, count);
    unpack_16(cells, (const int8_t *)&first, (const int8_t *)&second, flip);
}
WORD void unpack_cells(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
{
    if (count < 2 * LANES)
        unpack_some(cells, a, b, flip, count);
    else if (flip)
        unpack_16(cells, a, b, 1);
    else
        unpack_16(cells, a, b, 0);
}
WORD int unpacked_channel(int quad, int lane) { return quad / 2 * 16 + lane / 4 * 8 + quad % 2 * 4 + lane % 4; }
#else
WORD void unpack_cells(vi32 *cells, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count) { two_cells(cells, a, b, flip, count); }
WORD int unpacked_channel(int quad, int lane) { return quad * LANES + lane; }
#endif
WORD void interleave(char *target, ptrdiff_t plane, const int8_t *a, const int8_t *b, const int8_t *c, const int8_t *d, int flip,
                     ptrdiff_t count, const int ordered)
{
    for (int i = 0; i < VECTOR_BYTES && i < count; i += 2 * LANES)
        if (ordered) {
            two_cells((vi32 *)(target + i * 4), a + i, b + i, flip, count - i);
            two_cells((vi32 *)(target + i * 4 + plane), c + i, d + i, flip, count - i);
        } else {
            unpack_cells((vi32 *)(target + i * 4), a + i, b + i, flip, count - i);
            unpack_cells((vi32 *)(target + i * 4 + plane), c + i, d + i, flip, count - i);
        }
}
WORD void interleave_halves(char *target, const int8_t *const *a, const ptrdiff_t *apart, int flip)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < VECTOR_BYTES / 2; i += 2 * LANES) {
            char *to = target + (half * VECTOR_BYTES / 2 + i) * 4;
            unpack_cells((vi32 *)to, a[0] + half * apart[0] + i, a[1] + half * apart[1] + i, flip, 2 * LANES);
            unpack_cells((vi32 *)(to + QUADS * VECTOR_BYTES), a[2] + half * apart[2] + i, a[3] + half * apart[3] + i, flip, 2 * LANES);
        }
}
WORD vi32 dot_cells(vi32 sum, vi32 cells, vi32 weights) { return dot_i16(sum, cells, weights); }
/* The same, added up in the order it is written in: left to itself, a compiler sorts long sums as if registers were many. */
WORD vi32 dot_in_order(vi32 sum, vi32 cells, vi32 weights)
{
    sum = dot_cells(sum, cells, weights);
#if VECTOR_BYTES == 32
    __asm__ volatile("" : "+x"(sum));
#endif
    return sum;
}

enum { PAIR_VECTORS = QUADS };

WORD void put_pair(char *target, const int8_t *a, const int8_t *b, int flip, ptrdiff_t count)
{
    for (int i = 0; i < VECTOR_BYTES && i < count; i += 2 * LANES)
        unpack_cells((vi32 *)(target + i * 4), a + i, b + i, flip, count - i);
}
WORD void put_pair_of_halves(
    char *target, const int8_t *a, const int8_t *a_upper, const int8_t *b, const int8_t *b_upper, int flip, ptrdiff_t count)
{
    (void)count; /* All of them. */
    for (int i = 0; i < VECTOR_BYTES / 2; i += 2 * LANES) {
        unpack_cells((vi32 *)(target + i * 4), a + i, b + i, flip, 2 * LANES);
        unpack_cells((vi32 *)(target + (i + VECTOR_BYTES / 2) * 4), a_upper + i, b_upper + i, flip, 2 * LANES);
    }
}
#if VECTOR_BYTES == 32
/* Cells of 16 bytes in any order, or of lanes side by side, whose first row is at `a` and whose second one is at `b`. */
WORD vi32 pick_bytes(const int8_t *a, const int8_t *b, const vi32 *order, const int beside)
{
    const __m128i near = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)order));
    const __m128i far = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
    return (vi32)_mm256_cvtepi8_epi16(beside ? far : near);
}
WORD __m256i widened_quarters(const int8_t *a, const int8_t *b, int flip)
{
    const __m128i first = _mm_loadl_epi64((const __m128i *)a), second = _mm_loadl_epi64((const __m128i *)b);
    return flip ? _mm256_set_m128i(_mm_cvtepu8_epi16(second), _mm_cvtepu8_epi16(first)) : _mm256_set_m128i(_mm_cvtepi8_epi16(second), _mm_cvtepi8_epi16(first));
}
WORD void put_pair_of_quarters(char *target, const int8_t *const *a, const int8_t *const *b, int flip, ptrdiff_t count)
{
    (void)count;
    for (int part = 0; part < 4; part += 2, target += 2 * VECTOR_BYTES) {
        const __m256i upper = widened_quarters(a[part], a[part + 1], flip), lower = widened_quarters(b[part], b[part + 1], flip);
        ((vi32 *)target)[0] = (vi32)_mm256_unpacklo_epi16(upper, lower);
        ((vi32 *)target)[1] = (vi32)_mm256_unpackhi_epi16(upper, lower);
    }
}
WORD void store_quarters(int8_t *target, ptrdiff_t apart, vbytes value)
{
    for (int part = 0; part < 4; part++)
        memcpy(target + part * apart, (const char *)&value + part * 8, 8);
}
#else
WORD void put_pair_of_quarters(char *target, const int8_t *const *a, const int8_t *const *b, int flip, ptrdiff_t count)
{
    (void)target, (void)a, (void)b, (void)flip, (void)count;
}
#if VECTOR_BYTES != 64
WORD void store_quarters(int8_t *target, ptrdiff_t apart, vbytes value) { (void)target, (void)apart, (void)value; }
#endif
#endif
WORD void join_pairs(vi32 *cells, const char *a, const char *b, const int quad)
{
    cells[0] = *(const vi32 *)(a + quad * VECTOR_BYTES);
    cells[1] = *(const vi32 *)(b + quad * VECTOR_BYTES);
}

#endif

/* Lane i takes cell index[i]: of LANES cells, of twice as many, and of three times as many. */
#if VECTOR_BYTES == 64

WORD vi32 pick_near(const char *cells, vi32 index) { return (vi32)_mm512_permutexvar_epi32((__m512i)index, (__m512i)*(const vi32 *)cells); }
WORD vi32 pick_far(const char *cells, vi32 index)
{
    const vi32 *all = (const vi32 *)cells;
    return (vi32)_mm512_permutex2var_epi32((__m512i)all[0], (__m512i)index, (__m512i)all[1]);
}
enum { PICKS_FARTHER = 1 };
WORD vi32 pick_farther(const char *cells, vi32 index)
{
    const __mmask16 third = _mm512_test_epi32_mask((__m512i)index, _mm512_set1_epi32(2 * LANES));
    return (vi32)_mm512_mask_permutexvar_epi32((__m512i)pick_far(cells, index), third, (__m512i)index, (__m512i)((const vi32 *)cells)[2]);
}

#elif VECTOR_BYTES == 32

WORD vi32 pick_near(const char *cells, vi32 index) { return (vi32)_mm256_permutevar8x32_epi32((__m256i)*(const vi32 *)cells, (__m256i)index); }
WORD vi32 pick_far(const char *cells, vi32 index)
{
    return select_i32(index < LANES, pick_near(cells, index), pick_near(cells + VECTOR_BYTES, index));
}

#else

WORD vi32 pick_near(const char *cells, vi32 index)
{
    vi32 picked = {0};
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
        memcpy((char *)&picked + i * 4, cells + index[i] * 4, 4);
    return picked;
}
WORD vi32 pick_far(const char *cells, vi32 index) { return pick_near(cells, index); }

#endif

#if VECTOR_BYTES != 64
enum { PICKS_FARTHER = 0 };
WORD vi32 pick_farther(const char *cells, vi32 index) { return pick_far(cells, index); }
#endif

/* From the rescaled sums of VECTOR_BYTES neighbouring channels to their bytes: zero point, narrow, clamp; saturating all the way, so no sum is too large. */
WORD vbytes channels_of(vi16 first, vi16 second, vi16 zero_point, vbytes low, vbytes high, vbytes order)
{
    return in_order(clamp_i8(pack_i16(add_saturated_i16(first, zero_point), add_saturated_i16(second, zero_point)), low, high), order);
}

/* XNNPACK's float scale, rounded half to even, for the saturating narrowing of channels_of. What is too large for an int32 would become the least one. */
WORD vi32 round_scaled(vi32 sum, vf32 scale) { return round_f32(at_most_f32(__builtin_convertvector(sum, vf32) * scale, splat_f32(1 << 30))); }
/* The same where no product comes near it. */
WORD vi32 round_small(vi32 sum, vf32 scale) { return round_f32(__builtin_convertvector(sum, vf32) * scale); }

/* What requantize_plain gives, in float32, unless a lane of `worst` comes near a half: rounding twice is rounding once with the magnitude
 * raised by `step`, half of the last place that the first rounding kept (ADR 0006). */
WORD vi32 round_twice(vi32 sum, vf32 scale, vf32 step, vf32 *worst)
{
    vf32 value = __builtin_convertvector(sum, vf32);
    value = value * scale + with_sign_of(step, value);
    vi32 rounded = round_f32(value);
    *worst = larger_magnitude(*worst, value - __builtin_convertvector(rounded, vf32));
    return rounded;
}

/* Sums whose bits are those of a float32 between 2**23 and 2**24, where one unit in the last place is 1 (ADR 0006).
 * On a line: the offset holds 1.5 * 2**23, so the one rounding is that to an integer, which the low bits of the mantissa are. */
WORD vi32 bits_on_line(vi32 sum, vf32 scale, vf32 offset) { return (vi32)multiply_add_f32((vf32)sum, scale, offset); }
/* The same on two lines: sums below `zero` are moved, and have an offset of their own. */
WORD vi32 bits_on_two_lines(vi32 sum, vf32 scale, vf32 offset, vf32 zero, vf32 moved, vf32 lower)
{
#if VECTOR_BYTES == 64
    const __mmask16 below = _mm512_cmp_ps_mask((__m512)sum, (__m512)zero, _CMP_LT_OS);
    sum = (vi32)_mm512_mask_add_ps((__m512)sum, below, (__m512)sum, (__m512)moved);
    return bits_on_line(sum, scale, (vf32)_mm512_mask_blend_ps(below, (__m512)offset, (__m512)lower));
#else
    const vi32 below = (vi32)((vf32)sum < zero);
    return bits_on_line((vi32)((vf32)sum + (vf32)((vi32)moved & below)), scale, (vf32)select_i32(below, (vi32)lower, (vi32)offset));
#endif
}
/* On a scale: the offset takes out 2**23 times it, exactly, what remains is the product, and this is added to it, -128 in it. Lanes below 0 are off: a
 * clamp hides them. */
WORD float scale_bits(void) { return 12582912.0f - 128; }
/* The results that such bits are. */
WORD vi32 whole_of_bits(vi32 bits) { return bits - (vi32)splat_f32(12582912.0f); }
#if VECTOR_BYTES != 64
/* The low words of a and of b, which 16 bits hold; and from the bytes of two such vectors, narrowed, to four of each quad. */
WORD vi16 low_words(vi32 a, vi32 b) { return pack_i32(whole_of_bits(a), whole_of_bits(b)); }
WORD vbytes in_fours(vbytes value) { return value; }
#endif

/* Up to 257, a value is off by less than 2**-14 (two roundings of 2**-24 each in the product, one in the sum); beyond, the result saturates. */
WORD int near_a_tie(vf32 worst) { return any_above(worst, 0.5f - 1.0f / 16384); }

WORD vbytes changed(vbytes value, vbytes bits) { return value ^ bits; }

#endif

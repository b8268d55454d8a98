/* The words of a reorder: moving cells of 1, 2, 4 or 8 bytes, and tiles of them that change rows into columns (ADR 0004, 0009).
 *
 * A vector has PIECES pieces of 16 bytes. A piece holds PIECE / width cells of `width` bytes, and so many vectors are one tile: their pieces are
 * turned each by itself, so that loads choose which row each piece is of, and stores find whole runs of a column. `groups` is how many pieces of
 * a vector belong to one column: PIECES, a half or a quarter of it; the other pieces are further columns.
 * All distances are in bytes. Called with constants, every branch on `width`, `groups` and `stream` disappears.
 */
#ifndef ND4JLIKE_TILES_H
#define ND4JLIKE_TILES_H

#include "simd.h"

enum { PIECE = 16, PIECES = VECTOR_BYTES / PIECE, HALF_PIECES = PIECES < 2 ? PIECES : 2, LINE = 64 };

#if defined(__x86_64__)
#define ZIP(half, bits, a, b) UNPACK(half, bits, a, b)
#else
#define ZIP_lo_8 {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}
#define ZIP_hi_8 {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}
#define ZIP_lo_16 {0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23}
#define ZIP_hi_16 {8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31}
#define ZIP_lo_32 {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23}
#define ZIP_hi_32 {8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31}
#define ZIP_lo_64 {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}
#define ZIP_hi_64 {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31}
#define ZIP(half, bits, a, b) __builtin_shuffle((a), (b), (vbytes)ZIP_##half##_##bits)
#endif

typedef int8_t vpiece __attribute__((vector_size(16), aligned(1), may_alias));

WORD vbytes vector_of(const char *a, const char *b, const char *c, const char *d)
{
#if VECTOR_BYTES == 64
    /* As floats: the compiler then inserts from memory, which costs no permutation. */
    __m512 value = _mm512_castps128_ps512(_mm_loadu_ps((const float *)a));
    value = _mm512_insertf32x4(value, _mm_loadu_ps((const float *)b), 1);
    value = _mm512_insertf32x4(value, _mm_loadu_ps((const float *)c), 2);
    return (vbytes)_mm512_insertf32x4(value, _mm_loadu_ps((const float *)d), 3);
#elif VECTOR_BYTES == 32
    (void)c, (void)d;
    return (vbytes)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)a)), _mm_loadu_ps((const float *)b), 1);
#else
    (void)b, (void)c, (void)d;
    return *(const vbytes *)a;
#endif
}

/* Pieces [group * groups, (group + 1) * groups) of a vector, to `target`. */
WORD void store_pieces(char *target, vbytes value, int groups, int group)
{
    if (groups == PIECES)
        *(vbytes *)target = value;
#if VECTOR_BYTES == 64
    else if (groups == 2)
        _mm256_storeu_si256((__m256i *)target, group ? _mm512_extracti64x4_epi64((__m512i)value, 1) : _mm512_castsi512_si256((__m512i)value));
    else
        switch (group) {
        case 0: _mm_storeu_si128((__m128i *)target, _mm512_castsi512_si128((__m512i)value)); break;
        case 1: _mm_storeu_si128((__m128i *)target, _mm512_extracti32x4_epi32((__m512i)value, 1)); break;
        case 2: _mm_storeu_si128((__m128i *)target, _mm512_extracti32x4_epi32((__m512i)value, 2)); break;
        default: _mm_storeu_si128((__m128i *)target, _mm512_extracti32x4_epi32((__m512i)value, 3));
        }
#elif VECTOR_BYTES == 32
    else
        _mm_storeu_si128((__m128i *)target, group ? _mm256_extracti128_si256((__m256i)value, 1) : _mm256_castsi256_si128((__m256i)value));
#else
    (void)group;
#endif
}

/* Past the caches; whole vectors at multiples of their size. */
WORD void stream_vector(char *target, vbytes value)
{
#if VECTOR_BYTES == 64
    _mm512_stream_si512((__m512i *)target, (__m512i)value);
#elif VECTOR_BYTES == 32
    _mm256_stream_si256((__m256i *)target, (__m256i)value);
#elif defined(__SSE2__)
    _mm_stream_si128((__m128i *)target, (__m128i)value);
#else
    *(vbytes *)target = value;
#endif
}

/* Before others may see what was streamed. */
WORD void stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Into the caches, soon to be read or written; any address. */
WORD void touch(const char *line) { __builtin_prefetch(line, 1, 3); }

/* The first `bytes` bytes of a run, 0 <= bytes <= VECTOR_BYTES. */
WORD void copy_some(char *target, const char *source, ptrdiff_t bytes)
{
#if VECTOR_BYTES == 64
    /* The narrowest vector: what a mask leaves out crosses cache lines nevertheless. */
    const uint64_t mask = bytes < 64 ? ((uint64_t)1 << bytes) - 1 : ~(uint64_t)0;
    if (bytes <= 16)
        _mm_mask_storeu_epi8(target, (__mmask16)mask, _mm_maskz_loadu_epi8((__mmask16)mask, source));
    else if (bytes <= 32)
        _mm256_mask_storeu_epi8(target, (__mmask32)mask, _mm256_maskz_loadu_epi8((__mmask32)mask, source));
    else
        _mm512_mask_storeu_epi8(target, mask, _mm512_maskz_loadu_epi8(mask, source));
#else
    /* The last bytes overlap the first ones, all of them loaded before any is stored. */
    if (bytes >= 16) {
        vpiece first = *(const vpiece *)source, last = *(const vpiece *)(source + bytes - 16);
        *(vpiece *)target = first;
        *(vpiece *)(target + bytes - 16) = last;
    } else if (bytes >= 8) {
        uint64_t first, last;
        memcpy(&first, source, 8), memcpy(&last, source + bytes - 8, 8);
        memcpy(target, &first, 8), memcpy(target + bytes - 8, &last, 8);
    } else if (bytes >= 4) {
        uint32_t first, last;
        memcpy(&first, source, 4), memcpy(&last, source + bytes - 4, 4);
        memcpy(target, &first, 4), memcpy(target + bytes - 4, &last, 4);
    } else if (bytes >= 2) {
        uint16_t first, last;
        memcpy(&first, source, 2), memcpy(&last, source + bytes - 2, 2);
        memcpy(target, &first, 2), memcpy(target + bytes - 2, &last, 2);
    } else if (bytes) {
        *target = *source;
    }
#endif
}

/* A run of any length. */
WORD void copy_run(char *target, const char *source, ptrdiff_t bytes)
{
    ptrdiff_t done = 0;
    if (bytes >= 2048) {
        memcpy(target, source, (size_t)bytes);
        return;
    }
    for (; done + VECTOR_BYTES <= bytes; done += VECTOR_BYTES)
        *(vbytes *)(target + done) = *(const vbytes *)(source + done);
    if (done < bytes)
        copy_some(target + done, source + done, bytes - done);
}

/* A run of 2, 4, 8, .. 64 bytes, a constant. */
WORD void copy_piece(char *target, const char *source, int bytes, int stream)
{
    if (stream && bytes >= VECTOR_BYTES)
        _Pragma("GCC unroll 4") for (int i = 0; i < bytes; i += VECTOR_BYTES) stream_vector(target + i, *(const vbytes *)(source + i));
#if VECTOR_BYTES == 64
    else if (stream && bytes == 32)
        _mm256_stream_si256((__m256i *)target, _mm256_loadu_si256((const __m256i *)source));
#endif
#if VECTOR_BYTES >= 32
    else if (stream && bytes == 16)
        _mm_stream_si128((__m128i *)target, _mm_loadu_si128((const __m128i *)source));
#endif
    else
        memcpy(target, source, (size_t)bytes);
}

/* A run of `bytes` bytes, and after it the cells of `fill`: `room` bytes in all, a constant of 16, 32 or 64. */
WORD void copy_filled(char *target, const char *source, ptrdiff_t bytes, const char *fill, int room)
{
#if VECTOR_BYTES == 64
    const uint64_t mask = ((uint64_t)1 << bytes) - 1;
    if (room == 64)
        *(vbytes *)target = (vbytes)_mm512_mask_loadu_epi8(_mm512_loadu_si512(fill), mask, source);
    else if (room == 32)
        _mm256_storeu_si256((__m256i *)target, _mm256_mask_loadu_epi8(_mm256_loadu_si256((const __m256i *)fill), (__mmask32)mask, source));
    else
        _mm_storeu_si128((__m128i *)target, _mm_mask_loadu_epi8(_mm_loadu_si128((const __m128i *)fill), (__mmask16)mask, source));
#else
    _Pragma("GCC unroll 4") for (int i = 0; i < room; i += PIECE) *(vpiece *)(target + i) = *(const vpiece *)(fill + i);
    for (; bytes > VECTOR_BYTES; bytes -= VECTOR_BYTES, target += VECTOR_BYTES, source += VECTOR_BYTES)
        *(vbytes *)target = *(const vbytes *)source;
    copy_some(target, source, bytes);
#endif
}

/* The first `bytes` bytes of a group of pieces; they may be fewer than a piece. */
WORD void store_some(char *target, vbytes value, int groups, int group, ptrdiff_t bytes)
{
#if VECTOR_BYTES == 64
    const uint64_t mask = ((uint64_t)1 << bytes) - 1;
    if (groups == 4)
        _mm512_mask_storeu_epi8(target, mask, (__m512i)value);
    else if (groups == 2)
        _mm256_mask_storeu_epi8(target, (__mmask32)mask, group ? _mm512_extracti64x4_epi64((__m512i)value, 1) : _mm512_castsi512_si256((__m512i)value));
    else
        switch (group) {
        case 0: _mm_mask_storeu_epi8(target, (__mmask16)mask, _mm512_castsi512_si128((__m512i)value)); break;
        case 1: _mm_mask_storeu_epi8(target, (__mmask16)mask, _mm512_extracti32x4_epi32((__m512i)value, 1)); break;
        case 2: _mm_mask_storeu_epi8(target, (__mmask16)mask, _mm512_extracti32x4_epi32((__m512i)value, 2)); break;
        default: _mm_mask_storeu_epi8(target, (__mmask16)mask, _mm512_extracti32x4_epi32((__m512i)value, 3));
        }
#else
    /* Room on both sides that no copy reaches: the compiler does not see that, and warns. */
    vbytes cells[3] = {{0}, value, {0}};
    copy_some(target, (const char *)&cells[1] + group * groups * PIECE, bytes);
#endif
}

/* Rows into columns, within each piece: `count` = PIECE / width vectors. Each step interleaves the first half of the vectors with the second. */
#define TURN_STEP(bits, count, to, from)                       \
    _Pragma("GCC unroll 8") for (int i = 0; i < count / 2; i++) \
    {                                                          \
        to[2 * i] = ZIP(lo, bits, from[i], from[i + count / 2]); \
        to[2 * i + 1] = ZIP(hi, bits, from[i], from[i + count / 2]); \
    }

WORD void turn(int width, vbytes *cells)
{
    vbytes other[PIECE];
    switch (width) {
    case 8:
        TURN_STEP(64, 2, other, cells)
        cells[0] = other[0], cells[1] = other[1];
        break;
    case 4:
        TURN_STEP(32, 4, other, cells)
        TURN_STEP(32, 4, cells, other)
        break;
    case 2:
        TURN_STEP(16, 8, other, cells)
        TURN_STEP(16, 8, cells, other)
        TURN_STEP(16, 8, other, cells)
        _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) cells[i] = other[i];
        break;
    default:
        TURN_STEP(8, 16, other, cells)
        TURN_STEP(8, 16, cells, other)
        TURN_STEP(8, 16, other, cells)
        TURN_STEP(8, 16, cells, other)
    }
}

/* Rows of a tile are `row` apart; cells of a row, next to each other, become columns that are `column` apart. Reads groups * PIECE / width rows,
 * of each PIECES / groups * PIECE bytes; writes groups * PIECE bytes of each of the first `columns` of PIECES / groups * PIECE / width columns. */
WORD void move_tile(int width, int groups, int stream, const char *source, ptrdiff_t row, char *target, ptrdiff_t column, ptrdiff_t columns)
{
    vbytes cells[PIECE];
    const int count = PIECE / width;
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
        const char *first = source + k * row;
#define PIECE_AT(s) (first + (s) % groups * count * row + (s) / groups * PIECE)
        cells[k] = vector_of(PIECE_AT(0), PIECE_AT(1 % PIECES), PIECE_AT(2 % PIECES), PIECE_AT(3 % PIECES));
#undef PIECE_AT
    }
    turn(width, cells);
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
        if (stream)
            stream_vector(target + k * column, cells[k]);
        else
            _Pragma("GCC unroll 4") for (int group = 0; group < PIECES / groups; group++)
                if (group * count + k < columns)
                    store_pieces(target + (group * count + k) * column, cells[k], groups, group);
    }
}

/* `bytes`, a line or half of one, of each of LINE / width rows: columns of whole lines. */
WORD void move_square(int width, int bytes, int stream, const char *source, ptrdiff_t row, char *target, ptrdiff_t column)
{
    const int count = PIECE / width;
#if VECTOR_BYTES == 64
    /* Vectors of two rows, half a line of each: fewer insertions for one more step at the end, which joins the pieces of a column. */
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    _Pragma("GCC unroll 2") for (int left = 0; left < bytes; left += LINE / 2)
    {
        vbytes cells[2 * PIECE];
        _Pragma("GCC unroll 32") for (int k = 0; k < 2 * count; k++)
        {
            const char *first = source + left + k * row;
            cells[k] = (vbytes)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps((const float *)first)),
                                                  _mm256_loadu_ps((const float *)(first + 2 * count * row)), 1);
        }
        turn(width, cells);
        turn(width, cells + count);
        _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
        {
            vbytes one = (vbytes)_mm512_permutex2var_epi64((__m512i)cells[k], even, (__m512i)cells[count + k]);
            vbytes other = (vbytes)_mm512_permutex2var_epi64((__m512i)cells[k], odd, (__m512i)cells[count + k]);
            char *place = target + (left / width + k) * column;
            if (stream) {
                stream_vector(place, one);
                stream_vector(place + count * column, other);
            } else {
                *(vbytes *)place = one;
                *(vbytes *)(place + count * column) = other;
            }
        }
    }
#else
    for (int left = 0; left < bytes; left += PIECE)
        for (int top = 0; top < LINE; top += VECTOR_BYTES)
            move_tile(width, PIECES, stream, source + top / width * row + left, row, target + left / width * column + top, column, count);
#endif
}

/* A line of each of 32 / width rows, `row` apart: columns of half a line, next to each other. Cells of 4 bytes. */
WORD void move_pairs(const char *source, ptrdiff_t row, char *target)
{
#if VECTOR_BYTES == 64
    /* Pairs of cells turn as cells of 8 bytes; the last step puts the first ones of each pair in front of the second ones. */
    const __m512i even = _mm512_setr_epi32(0, 2, 16, 18, 8, 10, 24, 26, 1, 3, 17, 19, 9, 11, 25, 27);
    const __m512i odd = _mm512_setr_epi32(4, 6, 20, 22, 12, 14, 28, 30, 5, 7, 21, 23, 13, 15, 29, 31);
    _Pragma("GCC unroll 2") for (int left = 0; left < 2; left++)
    {
        vbytes cells[2 * PIECE];
        _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
        {
            const char *first = source + left * (LINE / 2) + k * row;
            cells[k] = (vbytes)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps((const float *)first)),
                                                  _mm256_loadu_ps((const float *)(first + 4 * row)), 1);
        }
        turn(8, cells);
        turn(8, cells + 2);
        _Pragma("GCC unroll 2") for (int k = 0; k < 2; k++)
        {
            *(vbytes *)(target + (left * 4 + k) * LINE) = (vbytes)_mm512_permutex2var_epi32((__m512i)cells[k], even, (__m512i)cells[2 + k]);
            *(vbytes *)(target + (left * 4 + 2 + k) * LINE) = (vbytes)_mm512_permutex2var_epi32((__m512i)cells[k], odd, (__m512i)cells[2 + k]);
        }
    }
#else
    for (int left = 0; left < LINE; left += PIECE)
        for (int top = 0; top < LINE / 2; top += VECTOR_BYTES)
            move_tile(4, PIECES, 0, source + top / 4 * row + left, row, target + left / 4 * (LINE / 2) + top, LINE / 2, PIECE / 4);
#endif
}

/* A tile of rows at any addresses, `offset` added, and for the first `bytes` bytes of the first `columns` columns. `rest`: where all pieces of a
 * column but the first come from, NULL for the rows. */
WORD void move_some(int width, int groups, const char *const *rows, ptrdiff_t offset, const char *rest, char *target, ptrdiff_t column, ptrdiff_t bytes,
                    ptrdiff_t columns)
{
    vbytes cells[PIECE];
    const int count = PIECE / width;
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
#define PIECE_AT(s) (rest && (s) % groups ? rest : rows[k + (s) % groups * count] + offset + (s) / groups * PIECE)
        cells[k] = vector_of(PIECE_AT(0), PIECE_AT(1 % PIECES), PIECE_AT(2 % PIECES), PIECE_AT(3 % PIECES));
#undef PIECE_AT
    }
    turn(width, cells);
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
        _Pragma("GCC unroll 4") for (int group = 0; group < PIECES / groups; group++)
        {
            if (group * count + k >= columns)
                continue;
            if (bytes == groups * PIECE)
                store_pieces(target + (group * count + k) * column, cells[k], groups, group);
            else
                store_some(target + (group * count + k) * column, cells[k], groups, group, bytes);
        }
}

/* round(value / scale) + zero_point, saturated; low and high are -128 and 127 without the zero point, and NaN counts as 0. */
WORD vi8 quantized(vf32 value, vf32 scale, vf32 low, vf32 high, vi32 zero_point)
{
    /* 1.5 * 2**23: one unit in the last place of the sum is 1, so the addition itself rounds, and the low mantissa bits are the integer. */
    const vf32 magic = splat_f32(12582912.0f);
    vf32 ratio = value / scale;
    ratio = (vf32)((vi32)ratio & (vi32)(ratio == ratio));
    vi32 code = (vi32)(at_most_f32(at_least_f32(ratio, low), high) + magic) - (vi32)magic + zero_point;
    return narrow_i32(code);
}

WORD vf32 dequantized(vi8 code, vf32 scale, vi32 zero_point) { return __builtin_convertvector(widen_i8(code) - zero_point, vf32) * scale; }

#endif

/* The words of a reorder, and of planes that become pixels: moving cells of 1, 2, 4 or 8 bytes, and tiles of them that change rows into columns (ADR 0004, 0009).
 *
 * A vector has PIECES pieces of 16 bytes. A piece holds PIECE / width cells of `width` bytes, and so many vectors are one tile: their pieces are
 * turned each by itself, so that loads choose which row each piece is of, and stores find whole runs of a column. `groups` is how many pieces of
 * a vector belong to one column: PIECES, a half or a quarter of it; the other pieces are further columns.
 * All distances are in bytes. Called with constants, every branch on `width`, `groups` and `stream` disappears.
 */
#ifndef ND4JLIKE_TILES_H
#define ND4JLIKE_TILES_H

#include "bytes.h"

enum { PIECE = 16, PIECES = VECTOR_BYTES / PIECE, HALF_PIECES = PIECES < 2 ? PIECES : 2, LINE = 64, CHOOSES = PIECES > 1 };

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
    const __m256 lower = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)a)), _mm_loadu_ps((const float *)b), 1);
    const __m256 upper = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)c)), _mm_loadu_ps((const float *)d), 1);
    return (vbytes)_mm512_insertf32x8(_mm512_castps256_ps512(lower), upper, 1);
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
WORD void touch_source(const char *line) { __builtin_prefetch(line, 0, 3); }
/* Into the second-level cache. */
WORD void touch_far(const char *line) { __builtin_prefetch(line, 0, 2); }

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
    else if (bytes >= VECTOR_BYTES)
        _Pragma("GCC unroll 4") for (int i = 0; i < bytes; i += VECTOR_BYTES) *(vbytes *)(target + i) = *(const vbytes *)(source + i);
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

/* Two lines become two lines: the lower halves of both are one, the upper halves the other. */
WORD void copy_halves(char *target, ptrdiff_t column, const char *source, ptrdiff_t row)
{
#if VECTOR_BYTES == 64
    const __m512i a = _mm512_loadu_si512(source), b = _mm512_loadu_si512(source + row);
    *(vbytes *)target = (vbytes)_mm512_shuffle_i64x2(a, b, 0x44);
    *(vbytes *)(target + column) = (vbytes)_mm512_shuffle_i64x2(a, b, 0xee);
#else
    copy_piece(target, source, LINE / 2, 0);
    copy_piece(target + LINE / 2, source + row, LINE / 2, 0);
    copy_piece(target + column, source + LINE / 2, LINE / 2, 0);
    copy_piece(target + column + LINE / 2, source + row + LINE / 2, LINE / 2, 0);
#endif
}

/* Four lines become four lines: the quarters of a place are a line. */
WORD void copy_quarters(char *target, ptrdiff_t column, const char *source, ptrdiff_t row)
{
#if VECTOR_BYTES == 64
    const __m512i a = _mm512_loadu_si512(source), b = _mm512_loadu_si512(source + row);
    const __m512i c = _mm512_loadu_si512(source + 2 * row), d = _mm512_loadu_si512(source + 3 * row);
    const __m512i even = _mm512_shuffle_i64x2(a, b, 0x88), odd = _mm512_shuffle_i64x2(a, b, 0xdd);
    const __m512i even_2 = _mm512_shuffle_i64x2(c, d, 0x88), odd_2 = _mm512_shuffle_i64x2(c, d, 0xdd);
    *(vbytes *)target = (vbytes)_mm512_shuffle_i64x2(even, even_2, 0x88);
    *(vbytes *)(target + column) = (vbytes)_mm512_shuffle_i64x2(odd, odd_2, 0x88);
    *(vbytes *)(target + 2 * column) = (vbytes)_mm512_shuffle_i64x2(even, even_2, 0xdd);
    *(vbytes *)(target + 3 * column) = (vbytes)_mm512_shuffle_i64x2(odd, odd_2, 0xdd);
#else
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) copy_piece(target + i / 4 * column + i % 4 * PIECE, source + i % 4 * row + i / 4 * PIECE, PIECE, 0);
#endif
}

/* Two lines, of runs that are one or a half or a quarter of one, to each of so many places past the caches; the runs of a place are `row` bytes apart, those of
 * the places side by side. What is `ahead` is fetched meanwhile. */
WORD void stream_parts(int bytes, char *target, ptrdiff_t column, const char *source, ptrdiff_t row, ptrdiff_t ahead)
{
    char lines[LINE / PIECE][2 * LINE] __attribute__((aligned(64)));
    const int places = LINE / bytes;
    for (int k = 0; k < 2; k++) {
        char *line = lines[0] + k * LINE;
        const char *first = source + k * places * row;
        if (places == 1)
            copy_piece(line, first, LINE, 0);
        else if (places == 2)
            copy_halves(line, 2 * LINE, first, row);
        else
            copy_quarters(line, 2 * LINE, first, row);
    }
    for (int i = 0; i < places; i++)
        for (int k = 0; k < 2; k++) {
            touch_source(source + (2 * i + k) * row + ahead);
            copy_piece(target + i * column + k * LINE, lines[i] + k * LINE, LINE, 1);
        }
}

/* A run of `bytes` bytes, and after it the cells of `fill`: `room` bytes in all, a constant of 8, 16, 32 or 64. */
WORD void copy_filled(char *target, const char *source, ptrdiff_t bytes, const char *fill, int room)
{
#if VECTOR_BYTES == 64
    const uint64_t mask = ((uint64_t)1 << bytes) - 1;
    if (room == 64) {
        /* The narrowest load, as in copy_some. */
        const __m512i cells = bytes <= PIECE ? _mm512_zextsi128_si512(_mm_maskz_loadu_epi8((__mmask16)mask, source)) : _mm512_maskz_loadu_epi8(mask, source);
        *(vbytes *)target = (vbytes)_mm512_mask_mov_epi8(_mm512_loadu_si512(fill), mask, cells);
    }
    else if (room == 32)
        _mm256_storeu_si256((__m256i *)target, _mm256_mask_loadu_epi8(_mm256_loadu_si256((const __m256i *)fill), (__mmask32)mask, source));
    else if (room == 16)
        _mm_storeu_si128((__m128i *)target, _mm_mask_loadu_epi8(_mm_loadu_si128((const __m128i *)fill), (__mmask16)mask, source));
    else
        _mm_storel_epi64((__m128i *)target, _mm_mask_loadu_epi8(_mm_loadu_si128((const __m128i *)fill), (__mmask16)mask, source));
#else
    if (room < PIECE)
        memcpy(target, fill, 8);
    else
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

/* The lower, or upper, halves of the pieces of two vectors, cells in turns. */
WORD vbytes zip_lower(int width, vbytes a, vbytes b)
{
    return width == 8 ? ZIP(lo, 64, a, b) : width == 4 ? ZIP(lo, 32, a, b) : width == 2 ? ZIP(lo, 16, a, b) : ZIP(lo, 8, a, b);
}
WORD vbytes zip_upper(int width, vbytes a, vbytes b)
{
    return width == 8 ? ZIP(hi, 64, a, b) : width == 4 ? ZIP(hi, 32, a, b) : width == 2 ? ZIP(hi, 16, a, b) : ZIP(hi, 8, a, b);
}

/* Rows into columns, within each piece: the cells of `count` vectors, a power of 2, side by side. Each step zips the first half of the vectors
 * with the second one. */
WORD void turn(int width, int count, vbytes *cells)
{
    vbytes other[PIECE];
    _Pragma("GCC unroll 4") for (int step = 0; step < 4; step++)
    {
        if (1 << step >= count)
            break;
        _Pragma("GCC unroll 8") for (int i = 0; i < count / 2; i++)
        {
            other[2 * i] = zip_lower(width, cells[i], cells[i + count / 2]);
            other[2 * i + 1] = zip_upper(width, cells[i], cells[i + count / 2]);
        }
        _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) cells[i] = other[i];
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
        cells[k] = groups == 1 ? *(const vbytes *)first : vector_of(PIECE_AT(0), PIECE_AT(1 % PIECES), PIECE_AT(2 % PIECES), PIECE_AT(3 % PIECES));
#undef PIECE_AT
    }
    turn(width, count, cells);
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

#if VECTOR_BYTES == 64

/* `bytes`, a line or half of one, of each of `rows` rows: columns of rows * width bytes, a power of 2 up to a line; of less than a line where
 * they are next to each other. Vectors of two rows, half a line of each: a step at the end joins what four rows have of a column. */
WORD void move_square(int width, int rows, int bytes, int stream, const char *source, ptrdiff_t row, char *target, ptrdiff_t column)
{
    const int count = rows / 4, run = count * width;
    const __m512i even = run == 16 ? _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13) : run == 8 ? _mm512_setr_epi64(0, 8, 4, 12, 1, 9, 5, 13)
                                   : _mm512_setr_epi32(0, 16, 8, 24, 1, 17, 9, 25, 2, 18, 10, 26, 3, 19, 11, 27);
    const __m512i odd = _mm512_add_epi32(even, run >= 8 ? _mm512_set1_epi64(2) : _mm512_set1_epi32(4));
    _Pragma("GCC unroll 1") for (int left = 0; left < bytes; left += LINE / 2)
    {
        vbytes cells[2 * PIECE];
        _Pragma("GCC unroll 32") for (int k = 0; k < 2 * count; k++)
        {
            const char *first = source + k * row;
            cells[k] = (vbytes)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps((const float *)first)),
                                                  _mm256_loadu_ps((const float *)(first + 2 * count * row)), 1);
        }
        turn(width, count, cells);
        turn(width, count, cells + count);
        _Pragma("GCC unroll 32") for (int k = 0; k < 2 * count; k++)
        {
            const __m512i a = (__m512i)cells[k / 2], order = k % 2 ? odd : even, b = (__m512i)cells[count + k / 2];
            __m512i value = run >= 8 ? _mm512_permutex2var_epi64(a, order, b) : _mm512_permutex2var_epi32(a, order, b);
            if (run == 2)
                value = _mm512_shuffle_epi8(value, _mm512_set4_epi32(0x0f0e0b0a, 0x07060302, 0x0d0c0908, 0x05040100));
            char *place = target + (k % 2 * PIECE / width + k / 2 * (PIECE / run)) * column;
            if (stream)
                stream_vector(place, (vbytes)value);
            else
                *(vbytes *)place = (vbytes)value;
        }
        source += LINE / 2;
        target += LINE / 2 / width * column;
    }
}

#else

/* A piece of each of `rows` rows: columns of less than a vector, next to each other. */
WORD void move_block(int width, int rows, const char *source, ptrdiff_t row, char *target)
{
    vbytes cells[PIECE];
    const int count = rows / PIECES, run = count * width;
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
        const char *first = source + k * row;
        cells[k] = vector_of(first, first + count * row, first, first);
    }
    turn(width, count, cells);
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
        vbytes value = cells[k];
#if VECTOR_BYTES == 32
        /* Runs of a column from both pieces, side by side. */
        value = run == 8 ? (vbytes)_mm256_permute4x64_epi64((__m256i)value, 0xd8) : in_order(value, order_of(1));
        if (run == 2)
            value = (vbytes)_mm256_shuffle_epi8((__m256i)value, _mm256_setr_epi64x(0x0706030205040100, 0x0f0e0b0a0d0c0908, 0x0706030205040100, 0x0f0e0b0a0d0c0908));
#endif
        (void)run;
        *(vbytes *)(target + k * VECTOR_BYTES) = value;
    }
}

WORD void move_square(int width, int rows, int bytes, int stream, const char *source, ptrdiff_t row, char *target, ptrdiff_t column)
{
    for (int left = 0; left < bytes; left += PIECE)
        if (rows * width < VECTOR_BYTES)
            move_block(width, rows, source + left, row, target + left / width * column);
        else
            for (int top = 0; top < rows * width; top += VECTOR_BYTES)
                move_tile(width, PIECES, stream, source + top / width * row + left, row, target + left / width * column + top, column, PIECE / width);
}

#endif

/* A line of each of so many rows that columns are lines. Those of bytes and halves are long enough to be called. */
#define WHOLE_SQUARE(width) \
    static __attribute__((noinline, noclone, unused)) void move_whole_##width(const char *source, ptrdiff_t row, char *target, ptrdiff_t column) \
    { \
        move_square(width, LINE / width, LINE, 0, source, row, target, column); \
    }
WHOLE_SQUARE(1)
WHOLE_SQUARE(2)
WORD void move_whole(int width, const char *source, ptrdiff_t row, char *target, ptrdiff_t column)
{
    if (width <= 2)
        (width == 1 ? move_whole_1 : move_whole_2)(source, row, target, column);
    else
        move_square(width, LINE / width, LINE, 0, source, row, target, column);
}

/* Squares of `bytes` of each row, one or two of them one below the other, stored past the caches, and between the stores as many lines fetched, `step` bytes
 * apart from `ahead` on, NULL for none, if `far` no nearer than a second-level cache. Memory takes the two lines of a column together 1.1 to 1.4 times as fast as lines that are far apart, and 1.1 times
 * as fast again where loads wait between them, not after them: both need the same buffers. */
#define STREAMED(width) \
    static __attribute__((noinline, noclone, unused)) void move_streamed_##width( \
        int bytes, int squares, const char *source, ptrdiff_t row, char *target, ptrdiff_t column, const char *ahead, ptrdiff_t step, \
        int far) \
    { \
        char lines[LINE / width][2 * LINE] __attribute__((aligned(64))); \
        _Pragma("GCC unroll 1") for (int k = 0; k < squares; k++) \
            if (width <= 2) \
                move_whole(width, source + k * (LINE / width) * row, row, lines[0] + k * LINE, 2 * LINE); \
            else \
                move_square(width, LINE / width, bytes, 0, source + k * (LINE / width) * row, row, lines[0] + k * LINE, 2 * LINE); \
        _Pragma("GCC unroll 1") for (int i = 0; i < bytes / width; i++) \
            _Pragma("GCC unroll 1") for (int k = 0; k < squares; k++) { \
                if (ahead) { \
                    if (far) \
                        touch_far(ahead); \
                    else \
                        touch_source(ahead); \
                    ahead += step; \
                } \
                copy_piece(target + i * column + k * LINE, lines[i] + k * LINE, LINE, 1); \
            } \
    }
STREAMED(1)
STREAMED(2)
STREAMED(4)
STREAMED(8)
WORD void move_streamed(
    int width, int bytes, int squares, const char *source, ptrdiff_t row, char *target, ptrdiff_t column, const char *ahead, ptrdiff_t step,
    int far)
{
    (width == 1 ? move_streamed_1 : width == 2 ? move_streamed_2 : width == 4 ? move_streamed_4 : move_streamed_8)(
        bytes, squares, source, row, target, column, ahead, step, far);
}

/* Rows of PIECE / together bytes, next to each other, a vector of cells for each column. */
WORD void move_short(int width, int together, const char *source, char *target, ptrdiff_t column)
{
    vbytes cells[PIECE];
    const int count = PIECE / together / width;
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++)
    {
        const char *first = source + k * PIECE;
        vbytes value = vector_of(first, first + count * PIECE, first + 2 * count * PIECE, first + 3 * count * PIECE);
        /* Cells of a column side by side. */
        for (int step = 1; step < together; step *= 2)
            value = zip_lower(width, value, ZIP(hi, 64, value, value));
        cells[k] = value;
    }
    turn(width * together, count, cells);
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++) *(vbytes *)(target + k * column) = cells[k];
}

#define EACH_OF_16(F) {F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15)}

/* Bytes of three vectors, chosen within pieces: byte i of a piece is byte PART(i) of a piece of the vector FROM(i). */
#if VECTOR_BYTES == 64
#define CHOOSE(value, mask) (vbytes)_mm512_shuffle_epi8((__m512i)(value), _mm512_broadcast_i32x4((__m128i)(vpiece)EACH_OF_16(mask)))
#elif VECTOR_BYTES == 32
#define CHOOSE(value, mask) (vbytes)_mm256_shuffle_epi8((__m256i)(value), _mm256_broadcastsi128_si256((__m128i)(vpiece)EACH_OF_16(mask)))
#endif

#if VECTOR_BYTES == 64
/* Cell i is cell AT(i) of three vectors in a row. */
#define OF_TWO(i) (AT(i) % 32)
#define OF_THIRD(i) ((AT(i) / 32) << i)
#define OR_16(F) (F(0) | F(1) | F(2) | F(3) | F(4) | F(5) | F(6) | F(7) | F(8) | F(9) | F(10) | F(11) | F(12) | F(13) | F(14) | F(15))
WORD vbytes of_three(vbytes a, vbytes b, vbytes c, __m512i cells, __mmask16 third)
{
    __m512i value = _mm512_permutex2var_epi32((__m512i)a, cells, (__m512i)b);
    return (vbytes)_mm512_mask_permutexvar_epi32(value, third, cells, (__m512i)c);
}
#endif

/* VECTOR_BYTES of each of three columns of rows of three cells, next to each other. */
WORD void part_three(int width, const char *source, char *target, ptrdiff_t column)
{
#if VECTOR_BYTES == 64
    if (width == 4) {
        const vbytes a = *(const vbytes *)source, b = *(const vbytes *)(source + 64), c = *(const vbytes *)(source + 128);
        _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++)
        {
#define AT(i) (3 * (i) + k)
            *(vbytes *)(target + k * column) = of_three(a, b, c, (__m512i)(vi32)EACH_OF_16(OF_TWO), OR_16(OF_THIRD));
#undef AT
        }
        return;
    }
#endif
#ifdef CHOOSE
    vbytes cells[3];
    for (int k = 0; k < 3; k++)
        cells[k] = vector_of(source + k * PIECE, source + (k + 3) * PIECE, source + (k + 6) * PIECE, source + (k + 9) * PIECE);
    _Pragma("GCC unroll 3") for (int c = 0; c < 3; c++)
    {
#define AT(i) ((3 * ((i) / width) + c) * width + (i) % width)
#define FIRST(i) (AT(i) / PIECE == 0 ? AT(i) % PIECE : -128)
#define SECOND(i) (AT(i) / PIECE == 1 ? AT(i) % PIECE : -128)
#define THIRD(i) (AT(i) / PIECE == 2 ? AT(i) % PIECE : -128)
        *(vbytes *)(target + c * column) = CHOOSE(cells[0], FIRST) | CHOOSE(cells[1], SECOND) | CHOOSE(cells[2], THIRD);
#undef AT
#undef FIRST
#undef SECOND
#undef THIRD
    }
#else
    (void)width, (void)source, (void)target, (void)column;
#endif
}

/* And back: VECTOR_BYTES of each of three rows. */
WORD void join_three(int width, const char *source, ptrdiff_t row, char *target)
{
#ifdef CHOOSE
    const vbytes a = *(const vbytes *)source, b = *(const vbytes *)(source + row), c = *(const vbytes *)(source + 2 * row);
#if VECTOR_BYTES == 64
    if (width == 4) {
        _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++)
        {
#define AT(i) ((i + 16 * k) % 3 * 16 + (i + 16 * k) / 3)
            *(vbytes *)(target + k * 64) = of_three(a, b, c, (__m512i)(vi32)EACH_OF_16(OF_TWO), OR_16(OF_THIRD));
#undef AT
        }
        return;
    }
#endif
    _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++)
    {
#define AT(i) ((k * PIECE + (i)) / width)
#define PART(i) (AT(i) / 3 * width + (i + k * PIECE) % width)
#define FIRST(i) (AT(i) % 3 == 0 ? PART(i) : -128)
#define SECOND(i) (AT(i) % 3 == 1 ? PART(i) : -128)
#define THIRD(i) (AT(i) % 3 == 2 ? PART(i) : -128)
        vbytes cells = CHOOSE(a, FIRST) | CHOOSE(b, SECOND) | CHOOSE(c, THIRD);
        _Pragma("GCC unroll 4") for (int piece = 0; piece < PIECES; piece++) store_pieces(target + (3 * piece + k) * PIECE, cells, 1, piece);
#undef AT
#undef PART
#undef FIRST
#undef SECOND
#undef THIRD
    }
#else
    (void)width, (void)source, (void)row, (void)target;
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
    turn(width, count, cells);
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

/* A vector of each of PIECE / width rows, `offset` added: columns of `room` bytes, 32 or 64, next to each other, a piece of cells and then fill. */
WORD void move_few(int width, int room, const char *const *rows, ptrdiff_t offset, const char *fill, char *target)
{
    vbytes cells[PIECE + 1];
    const vbytes rest = *(const vbytes *)fill;
    const int count = PIECE / width;
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k++) cells[k] = *(const vbytes *)(rows[k] + offset);
    turn(width, count, cells);
#if VECTOR_BYTES == 64
#define FEW(piece)                                                                                                                             \
    _Pragma("GCC unroll 16") for (int k = 0; k < count; k += 64 / room) *(vbytes *)(target + (piece * count + k) * room) =                       \
        (vbytes)_mm512_mask_shuffle_i32x4((__m512i)rest, room == 64 ? 0x000f : 0x0f0f, (__m512i)cells[k], (__m512i)cells[k + 64 / room - 1], piece * 0x55)
    FEW(0);
    FEW(1);
    FEW(2);
    FEW(3);
#undef FEW
#else
    _Pragma("GCC unroll 32") for (int k = 0; k < PIECES * count; k++)
    {
        _Pragma("GCC unroll 4") for (int i = room - VECTOR_BYTES; i > 0; i -= VECTOR_BYTES) *(vbytes *)(target + k * room + i) = rest;
#if VECTOR_BYTES == 32
        *(vbytes *)(target + k * room) = (vbytes)(k < count ? _mm256_permute2x128_si256((__m256i)cells[k], (__m256i)rest, 0x20)
                                                           : _mm256_permute2x128_si256((__m256i)cells[k - count], (__m256i)rest, 0x21));
#else
        *(vbytes *)(target + k * room) = cells[k];
#endif
    }
#endif
}

#endif

/* The register tile of int8 rows, in C: its loops over registers are unrolled whatever their length, which Cython cannot ask for.
 *
 * A filter walks down a strip of columns, two rows of the input at a time. These two rows, a *pair*, are interleaved once, and the last pairs that the
 * filter reaches stay in first-level cache. They serve all outputs that they reach: two output rows if the filter steps down by 1, one if it steps by 2.
 * Where products are of bytes (WINDOWS), two pairs are joined to cells of four rows (ADR 0004, bytes.h) in registers, and filters are 4x4, 5x5 or 7x7.
 * Elsewhere a pair is a cell of int16 as it lies, and filters of any size are a loop over their taps.
 */
#ifndef ND4JLIKE_PAIRS_H
#define ND4JLIKE_PAIRS_H

#include "strip.h"

#if WINDOWS

/* Entries of weights of one sum and output row: cells of four taps of a column; of 5x5 the last ones are of the first two taps of each of two columns. */
WORD int pairs_entries(const int taps) { return taps == 5 ? 8 : taps == 7 ? 14 : taps; }

/* Adds a cell, at column `column` of the tile, to all outputs that have it as one of their taps 0, step .. */
WORD void pairs_add(
    vi32 *sums, const vi32 *cell, const vi32 *weights, int column, const int taps, const int step, const int stride, const int rows, const int columns)
{
    /* Weights lie for two rows of outputs where the filter steps by 1. */
    const int packed = stride == 1 ? 2 : 1;
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap += step) {
        const int output = (column - tap) / stride;
        if (column < tap || (column - tap) % stride || output >= columns)
            continue;
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
            for (int plane = 0; plane < CELL_PLANES; plane++)
                sums[row * columns + output] = dot_in_order(
                    sums[row * columns + output], cell[plane], weights[(tap / step * packed + row) * CELL_PLANES + plane]);
    }
}

/* Columns `from` to `to` of a tile: cells of the pairs `upper` and `lower`; by steps of 2, of a column of the upper one and the next one. */
WORD void pairs_cells(
    const char *upper, const char *lower, const vi32 *weights, const int from, const int to, const int quad, const int count, vi32 sums[2][TILE_OUTPUTS],
    const int taps, const int step, const int stride, const int rows, const int columns)
{
    const int last = (columns - 1) * stride + taps - 1;
    vi32 cell[2];
#pragma GCC unroll 32
    for (int column = from; column < to; column++)
#pragma GCC unroll 2
        for (int i = 0; i < count; i++) {
            const char *const at = upper + column * PAIR_BYTES;
            join_pairs(cell, at, step == 1 ? lower + column * PAIR_BYTES : column < last ? at + PAIR_BYTES : at, quad + i);
            pairs_add(
                sums[i], cell, weights + i * pairs_entries(taps) * (stride == 1 ? 2 : 1) * CELL_PLANES, column, taps, step, stride, rows, columns);
        }
}

/* `count` of the QUADS sums from `quad` on, of `columns` outputs of each row. `at`: first column of the tile. */
WORD void pairs_sums(
    const PairsStrip *strip, ptrdiff_t at, const int quad, const int count, vi32 sums[2][TILE_OUTPUTS], const int taps, const int stride, const int rows,
    const int columns, const int edges)
{
    const int packed = stride == 1 ? 2 : 1, all = (columns - 1) * stride + taps, out = taps / 2;
    const char *a = strip->pairs[0] + at, *b = strip->pairs[1] + at, *c = strip->pairs[2] + at, *d = strip->pairs[3] + at;
    const vi32 *weights = strip->block + QUADS * PAIRS_CONSTANTS + quad * pairs_entries(taps) * packed * CELL_PLANES;
    const vi32 *others = weights + taps * packed * CELL_PLANES;
    /* Of 5x5, all taps of the two newer pairs, then those of the oldest one. */
    const char *first = taps == 5 ? b : a, *second = taps == 5 ? c : b, *third = taps == 5 ? a : c;
#pragma GCC unroll 2
    for (int i = 0; i < count; i++)
#pragma GCC unroll 16
        for (int output = 0; output < rows * columns; output++)
            sums[i][output] = strip->block[QUADS * PAIRS_BIAS + quad + i];
    if (!(edges & OUTSIDE_LEFT))
        pairs_cells(first, second, weights, 0, out, quad, count, sums, taps, 1, stride, rows, columns);
    pairs_cells(first, second, weights, out, all - out, quad, count, sums, taps, 1, stride, rows, columns);
    if (!(edges & OUTSIDE_RIGHT))
        pairs_cells(first, second, weights, all - out, all, quad, count, sums, taps, 1, stride, rows, columns);
    if (taps < 5 || edges & OUTSIDE_PAIRS)
        return;
    /* Cells of two columns reach one more. */
    const int step = taps == 5 ? 2 : 1, outside = taps == 5 ? out - 1 : out;
    if (!(edges & OUTSIDE_LEFT))
        pairs_cells(third, d, others, 0, outside, quad, count, sums, taps, step, stride, rows, columns);
    pairs_cells(third, d, others, outside, all - out, quad, count, sums, taps, step, stride, rows, columns);
    if (!(edges & OUTSIDE_RIGHT))
        pairs_cells(third, d, others, all - out, all, quad, count, sums, taps, step, stride, rows, columns);
}

/* Which of a tile's columns and pairs are outside the image, where their products are zero: as many columns as the filter reaches beyond its middle; of 5x5
 * the oldest pair, of 7x7 the two newest. */
WORD int pairs_edges(const PairsStrip *strip, ptrdiff_t first, const int taps, const int stride, const int columns)
{
    const ptrdiff_t from = first * stride, to = (first + columns - 1) * stride + taps, out = taps / 2;
    if (!WINDOWS || stride > 1 || taps < 5 || !strip->zeros)
        return 0;
    return strip->edges | (from + out <= strip->least_first ? OUTSIDE_LEFT : 0) | (to - out >= strip->largest_end ? OUTSIDE_RIGHT : 0);
}

#else

WORD int pairs_entries(const int taps) { return taps; }

/* A tap of a pair, of two rows of outputs or one: its weights stay in registers, and so do inputs that both rows want. */
WORD void pairs_tap(const char *at, const vi32 *weights, vi32 *sums, const int stride, const int rows, const int columns)
{
    vi32 w[2];
#pragma GCC unroll 2
    for (int row = 0; row < rows; row++) {
        w[row] = weights[row];
        __asm__ volatile("" : "+x"(w[row]));
    }
#pragma GCC unroll 8
    for (int column = 0; column < columns; column++) {
        vi32 cell = *(const vi32 *)(at + column * stride * PAIR_BYTES);
        if (rows > 1)
            __asm__ volatile("" : "+x"(cell));
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++)
            sums[row * columns + column] = dot_in_order(sums[row * columns + column], cell, w[row]);
    }
}

/* One of the QUADS sums. `taps`: of a square filter whose loops are unrolled, where every input is read once, else 0; the weights of two rows of outputs lie
 * side by side. */
WORD void pairs_sums(
    const PairsStrip *strip, ptrdiff_t at, const vi32 *weights, vi32 *sums, const int taps, const int stride, const int rows, const int columns)
{
    if (taps) {
#pragma GCC unroll 32
        for (int column = 0; column < (columns - 1) * stride + taps; column++)
#pragma GCC unroll 4
            for (int pair = 0; pair < (taps + 1) / 2; pair++) {
                const vi32 cell = *(const vi32 *)(strip->pairs[pair] + at + column * PAIR_BYTES);
#pragma GCC unroll 8
                for (int tap = 0; tap < taps; tap++) {
                    const int output = (column - tap) / stride;
                    if (column < tap || (column - tap) % stride || output >= columns)
                        continue;
#pragma GCC unroll 2
                    for (int row = 0; row < rows; row++)
                        sums[row * columns + output] = dot_in_order(sums[row * columns + output], cell, weights[(pair * taps + tap) * rows + row]);
                }
            }
        return;
    }
    const ptrdiff_t across = strip->taps_across * rows;
    ptrdiff_t pair = 0;
#pragma GCC unroll 1
    for (; pair < strip->lower; pair++) {
        const char *cell = strip->pairs[pair] + at;
#pragma GCC unroll 1
        for (const vi32 *const end = weights + across; weights < end; weights += rows, cell += PAIR_BYTES)
            pairs_tap(cell, weights, sums, stride, rows, columns);
    }
    if (rows == 1 || pair == strip->count)
        return;
    const char *cell = strip->pairs[pair] + at;
#pragma GCC unroll 1
    for (const vi32 *const end = weights + across; weights < end; weights += rows, cell += PAIR_BYTES)
        pairs_tap(cell, weights + 1, sums + columns, stride, 1, columns);
}

#endif

enum { PAIRS_COPIES = VECTOR_BYTES == 64 ? QUADS : 1 };

WORD void pairs_tile(
    const PairsStrip *strip, ptrdiff_t first, int8_t *y, ptrdiff_t stored_rows, const int taps, const int stride, const int rows, const int columns,
    int rescaling)
{
    /* As many sums at a time as registers hold. One text for all QUADS where no instruction needs to know which: four would not fit a cache of decoded ones. */
    const int outputs = rows * columns, count = VECTOR_BYTES == 64 ? 2 : 1;
    vi32 sums[2][TILE_OUTPUTS], all[TILE_OUTPUTS * QUADS];
    vi16 packed[2][TILE_OUTPUTS];
    vbytes bytes[TILE_OUTPUTS];
#if WINDOWS
    const int edges = pairs_edges(strip, first, taps, stride, columns);
#endif
#pragma GCC unroll PAIRS_COPIES
    for (int quad = 0; quad < QUADS; quad += count) {
        const ptrdiff_t at = first * stride * PAIR_BYTES;
#if WINDOWS
        pairs_sums(strip, at, quad, count, sums, taps, stride, rows, columns, edges);
#else
#pragma GCC unroll 8
        for (int output = 0; output < outputs; output++)
            sums[0][output] = strip->block[QUADS * PAIRS_BIAS + quad];
        pairs_sums(
            strip, at + quad * VECTOR_BYTES, strip->block + QUADS * PAIRS_CONSTANTS + quad * strip->weights, sums[0], taps, stride, rows, columns);
#endif
#pragma GCC unroll 2
        for (int i = 0; i < count; i++)
            if (rescaling != OTHERWISE)
                pairs_rescale(sums[i], strip->block, quad + i, outputs);
            else
#pragma GCC unroll 16
                for (int output = 0; output < outputs; output++)
                    all[output * QUADS + quad + i] = sums[i][output];
        if (rescaling == OTHERWISE)
            continue;
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
            if (count == 2)
                packed[quad / 2][output] = low_words(sums[0][output], sums[1][output]);
            else
                all[output * QUADS + quad] = sums[0][output];
    }
    if (count == 1 && rescaling != OTHERWISE)
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++)
                packed[i][output] = low_words(all[output * QUADS + 2 * i], all[output * QUADS + 2 * i + 1]);
    if (rescaling == OTHERWISE)
        pairs_otherwise(strip, all, bytes, outputs);
    else
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
            bytes[output] = pairs_bytes(strip, packed[0][output], packed[1][output]);
    pairs_clamp(strip, bytes, outputs);
    pairs_store(strip, bytes, y + first * strip->y_column, stored_rows, rows, columns);
}

/* 7x7 filters that step by 2, where products are of bytes: a row of outputs slides over the columns, one of the QUADS at a time, whose weights and cells, of the
 * upper four rows and of the lower three, stay in registers. The sums of all QUADS are rescaled afterwards. */
#if WINDOWS
enum { SLIDES = 1, SLIDE_COLUMNS = 16 };

WORD void slide_quad(const PairsStrip *strip, vi32 *sums, ptrdiff_t half, const int quad)
{
    const vi32 *bias = strip->block + QUADS * PAIRS_BIAS + 2 * half + quad, *weights = strip->block + QUADS * PAIRS_CONSTANTS + (2 * half + quad) * 14;
    const char *at[PAIRS];
    vi32 cells[2][7], w[2][7];
#pragma GCC unroll 4
    for (int i = 0; i < PAIRS; i++)
        at[i] = strip->pairs[i] + half * VECTOR_BYTES;
#pragma GCC unroll 7
    for (int i = 0; i < 7; i++) {
        w[0][i] = weights[i];
        w[1][i] = weights[i + 7];
        __asm__("" : "+v"(w[0][i]), "+v"(w[1][i]));
        if (i < 2)
            continue;
        join_pairs(&cells[0][i], at[0] + (i - 2) * PAIR_BYTES, at[1] + (i - 2) * PAIR_BYTES, quad);
        join_pairs(&cells[1][i], at[2] + (i - 2) * PAIR_BYTES, at[3] + (i - 2) * PAIR_BYTES, quad);
    }
    for (ptrdiff_t column = 0; column < strip->columns; column++) {
        vi32 upper = *bias, lower = splat_i32(0);
#pragma GCC unroll 7
        for (int i = 0; i < 7; i++) {
            if (i < 5) {
                cells[0][i] = cells[0][i + 2];
                cells[1][i] = cells[1][i + 2];
            } else {
                join_pairs(&cells[0][i], at[0] + (column * 2 + i) * PAIR_BYTES, at[1] + (column * 2 + i) * PAIR_BYTES, quad);
                join_pairs(&cells[1][i], at[2] + (column * 2 + i) * PAIR_BYTES, at[3] + (column * 2 + i) * PAIR_BYTES, quad);
            }
            upper = dot_cells(upper, cells[0][i], w[0][i]);
            lower = dot_cells(lower, cells[1][i], w[1][i]);
        }
        sums[column * QUADS + 2 * half + quad] = upper + lower;
    }
}

static __attribute__((noinline)) void slide_quads(const PairsStrip *strip, vi32 *sums)
{
#pragma GCC unroll 1
    for (ptrdiff_t half = 0; half < 2; half++) {
        slide_quad(strip, sums, half, 0);
        slide_quad(strip, sums, half, 1);
    }
}

/* `outputs` columns side by side, from their sums. */
WORD void slide_store(const PairsStrip *strip, const vi32 *all, int8_t *y, int rescaling, const int outputs)
{
    vi32 sums[QUADS][2];
    vbytes bytes[2];
    if (rescaling == OTHERWISE) {
        pairs_otherwise(strip, all, bytes, outputs);
    } else {
#pragma GCC unroll 4
        for (int quad = 0; quad < QUADS; quad++) {
#pragma GCC unroll 2
            for (int i = 0; i < outputs; i++)
                sums[quad][i] = all[i * QUADS + quad];
            pairs_rescale(sums[quad], strip->block, quad, outputs);
        }
#pragma GCC unroll 2
        for (int i = 0; i < outputs; i++)
            bytes[i] = pairs_bytes(strip, low_words(sums[0][i], sums[1][i]), low_words(sums[2][i], sums[3][i]));
    }
    pairs_clamp(strip, bytes, outputs);
    pairs_store(strip, bytes, y, 1, 1, outputs);
}

static __attribute__((noinline, noclone)) void slide_row(const PairsStrip *strip, int8_t *y, int rescaling)
{
    vi32 all[SLIDE_COLUMNS * QUADS];
    ptrdiff_t column = 0, columns = strip->columns;
    slide_quads(strip, all);
    for (; column + 1 < columns; column += 2)
        slide_store(strip, all + column * QUADS, y + column * strip->y_column, rescaling, 2);
    if (column < columns)
        slide_store(strip, all + column * QUADS, y + column * strip->y_column, rescaling, 1);
}
#else
enum { SLIDES = 0, SLIDE_COLUMNS = 1 };
WORD void slide_row(const PairsStrip *strip, int8_t *y, int rescaling) { (void)strip, (void)y, (void)rescaling; }
#endif

/* A row of tiles with tiles of their own for a last row and of three columns, as many of those at the end as leave nothing to compute twice. Each tile is a
 * function, and this is another one than the others' loop: a compiler that sees two tiles together runs out of registers. */
#if WINDOWS
#define PAIRS_TILE(name, taps, rows, columns) \
    static __attribute__((noinline, noclone)) void name##_##taps(const PairsStrip *strip, ptrdiff_t first, int8_t *y, int rescaling) \
    { \
        pairs_tile(strip, first, y, rows, taps, 1, rows, columns, rescaling); \
    }
#define PAIRS_TILES(taps) \
    PAIRS_TILE(pairs_whole, taps, 2, PAIRS_COLUMNS) \
    PAIRS_TILE(pairs_narrow, taps, 2, PAIRS_COLUMNS - 1) \
    PAIRS_TILE(pairs_low, taps, 1, PAIRS_COLUMNS)
PAIRS_TILES(5)
PAIRS_TILES(7)

WORD void pairs_exactly(const PairsStrip *strip, int8_t *y, ptrdiff_t count, const int taps, int rescaling)
{
    const ptrdiff_t columns = strip->columns, tiles = (columns + PAIRS_COLUMNS - 1) / PAIRS_COLUMNS, narrow = tiles * PAIRS_COLUMNS - columns;
    for (ptrdiff_t first = 0; first < columns;)
        if (count > 1 && narrow <= tiles && columns - first <= narrow * (PAIRS_COLUMNS - 1)) {
            (taps == 5 ? pairs_narrow_5 : pairs_narrow_7)(strip, first, y, rescaling);
            first += PAIRS_COLUMNS - 1;
        } else {
            (count == 1 ? taps == 5 ? pairs_low_5 : pairs_low_7 : taps == 5 ? pairs_whole_5 : pairs_whole_7)(
                strip, largest(least(first, columns - PAIRS_COLUMNS), 0), y, rescaling);
            first += PAIRS_COLUMNS;
        }
}
#else
WORD void pairs_exactly(const PairsStrip *strip, int8_t *y, ptrdiff_t count, const int taps, int rescaling)
{
    (void)strip, (void)y, (void)count, (void)taps, (void)rescaling;
}
#endif

#if WINDOWS
/* An image that is narrower than a tile, and has no parts: `rows` rows of the tile in `room` go to `y`. */
static __attribute__((noinline, noclone)) void pairs_narrow_rows(const PairsStrip *strip, const vbytes *room, int8_t *y, ptrdiff_t rows)
{
    for (; rows > 0; rows--, y += strip->y_row, room += PAIRS_COLUMNS)
        for (ptrdiff_t i = 0; i < strip->columns; i++)
            store_bytes(y + i * strip->y_column, room[i], strip->stored);
}
#endif

/* `count` rows of outputs, `step` at a time. The last tile of a row may compute some of them again. */
WORD void pairs_strip(
    PairsStrip *strip, ptrdiff_t count, const int taps, const int stride, const int step, const int columns, int rescaling, const int exact)
{
    const int pairs = taps ? (taps + 1) / 2 : (int)strip->count;
    ptrdiff_t row = 0;
    int8_t *y = strip->y;
    PairRows rows;
    /* Columns outside the image stay as they are. */
    for (int i = 0; i < pairs; i++) {
        pairs_outside(strip, strip->pairs[i], 0, strip->least_first);
        pairs_outside(strip, strip->pairs[i], strip->largest_end, strip->width);
    }
    for (; row < pairs - 1; row++) {
        rows = pair_rows(strip, 2 * row);
        pairs_inside(strip, &rows, strip->width, strip->pairs[row]);
    }
    for (; count > 0; count -= step, row++, y += step * strip->y_row) {
        char *newest = strip->pairs[pairs - 1];
        ptrdiff_t first = 0;
        rows = pair_rows(strip, 2 * row);
        /* Of short strips a call is a part of the time. */
        if (!WINDOWS && taps == 3 && !strip->flip)
            pairs_inside_of(strip, &rows, strip->width, newest, 0);
        else
            pairs_inside(strip, &rows, strip->width, newest);
        if (WINDOWS && taps == 5)
            strip->edges = 2 * (row - pairs) + 3 < strip->first_row ? OUTSIDE_PAIRS : 0;
        if (WINDOWS && taps == 7)
            strip->edges = 2 * row - 2 >= strip->end_row ? OUTSIDE_PAIRS : 0;
        int8_t *to = y;
#if WINDOWS
        /* A narrow image: as if the tile were the image. */
        const int aside = (taps < 7 || stride == 1) && strip->columns < PAIRS_COLUMNS;
        const ptrdiff_t y_row = strip->y_row, y_column = strip->y_column, stored = strip->stored;
        vbytes room[TILE_OUTPUTS];
        if (aside) {
            to = (int8_t *)room;
            strip->y_row = PAIRS_COLUMNS * VECTOR_BYTES;
            strip->y_column = strip->stored = VECTOR_BYTES;
        }
#endif
        if (exact)
            pairs_exactly(strip, to, count, taps, rescaling);
        else if (WINDOWS && taps == 7 && stride == 2)
            slide_row(strip, to, rescaling);
        else
            do {
                if (!WINDOWS && step == 1 && strip->columns - first <= columns / 2) {
                    first = largest(strip->columns - columns / 2, 0);
                    pairs_tile(strip, first, to, count, taps, stride, step, columns / 2, rescaling);
                    break;
                }
                if (first > strip->columns - columns)
                    first = largest(strip->columns - columns, 0);
                pairs_tile(strip, first, to, count, taps, stride, step, columns, rescaling);
                first += columns;
            } while (first < strip->columns);
#if WINDOWS
        if (aside) {
            strip->y_row = y_row;
            strip->y_column = y_column;
            strip->stored = stored;
            pairs_narrow_rows(strip, room, y, least(count, step));
        }
#endif
        char *spare = strip->pairs[0];
        for (int i = 0; i < pairs - 1; i++)
            strip->pairs[i] = strip->pairs[i + 1];
        strip->pairs[pairs - 1] = spare;
    }
}

#if WINDOWS

#define PAIRS_KERNEL(taps, stride, rescaling, text) \
    static __attribute__((unused)) void pairs_##taps##_##stride##_##rescaling(PairsStrip *strip, ptrdiff_t count) { text(strip, count, rescaling); }
/* One text for all ways of rescaling, where what rescales is a function, and one for each. */
#define PAIRS_KERNELS(taps, stride) \
    static __attribute__((noinline, noclone)) void pairs_##taps##_##stride(PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        pairs_strip(strip, count, taps, stride, 3 - stride, PAIRS_COLUMNS, rescaling, stride == 1); \
    } \
    PAIRS_KERNEL(taps, stride, OTHERWISE, pairs_##taps##_##stride) \
    PAIRS_KERNEL(taps, stride, BY_SCALE, pairs_##taps##_##stride)
#define PAIRS_KERNELS_BY_TWOS(taps) \
    WORD void pairs_##taps##_2(PairsStrip *strip, ptrdiff_t count, const int rescaling) \
    { \
        pairs_strip(strip, count, taps, 2, 1, PAIRS_COLUMNS, rescaling, 0); \
    } \
    PAIRS_KERNEL(taps, 2, OTHERWISE, pairs_##taps##_2) \
    PAIRS_KERNEL(taps, 2, BY_SCALE, pairs_##taps##_2)
/* Those of 3x3 are in window.h. */
PAIRS_KERNELS(5, 1)
PAIRS_KERNELS(7, 1)
PAIRS_KERNELS(7, 2)
PAIRS_KERNELS_BY_TWOS(4)
PAIRS_KERNELS_BY_TWOS(5)

#define PAIRS_CHOICE(rescaling) \
    {{0, pairs_4_2_##rescaling}, {pairs_5_1_##rescaling, pairs_5_2_##rescaling}, {0, 0}, {pairs_7_1_##rescaling, pairs_7_2_##rescaling}}

/* By a line is by a scale that none of the QUADS goes by, and two lines are told apart by their constants. */
WORD PairsKernel pairs_kernel(int rescaling, int taps, int rows, int stride)
{
    static const PairsKernel table[2][4][2] = {PAIRS_CHOICE(OTHERWISE), PAIRS_CHOICE(BY_SCALE)};
    (void)rows;
    return table[rescaling != OTHERWISE][taps - 4][stride - 1];
}

#else

/* By taps (0: a loop), rows of outputs and the step of columns; one text for all ways of rescaling, which is smaller, and faster besides. */
#define PAIRS_KERNELS(taps, rows, stride) \
    static __attribute__((noinline, noclone, unused)) void pairs_##taps##_##rows##_##stride(PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        pairs_strip(strip, count, taps, stride, rows, rows == 1 ? 2 * PAIRS_COLUMNS : PAIRS_COLUMNS, rescaling, 0); \
    } \
    static __attribute__((unused)) void pairs_##taps##_##rows##_##stride##_OTHERWISE(PairsStrip *strip, ptrdiff_t count) \
    { \
        pairs_##taps##_##rows##_##stride(strip, count, OTHERWISE); \
    } \
    static __attribute__((unused)) void pairs_##taps##_##rows##_##stride##_BY_SCALE(PairsStrip *strip, ptrdiff_t count) \
    { \
        pairs_##taps##_##rows##_##stride(strip, count, BY_SCALE); \
    }
PAIRS_KERNELS(0, 1, 1)
PAIRS_KERNELS(0, 1, 2)
PAIRS_KERNELS(0, 2, 1)
PAIRS_KERNELS(0, 2, 2)
PAIRS_KERNELS(3, 1, 2)
PAIRS_KERNELS(3, 2, 1)
PAIRS_KERNELS(5, 2, 1)
PAIRS_KERNELS(7, 2, 1)

#define PAIRS_CHOICE(rescaling) \
    {{pairs_0_1_1_##rescaling, pairs_0_1_2_##rescaling, pairs_0_2_1_##rescaling, pairs_0_2_2_##rescaling}, \
     {pairs_0_1_1_##rescaling, pairs_3_1_2_##rescaling, pairs_3_2_1_##rescaling, pairs_0_2_2_##rescaling}, \
     {pairs_0_1_1_##rescaling, pairs_0_1_2_##rescaling, pairs_5_2_1_##rescaling, pairs_0_2_2_##rescaling}, \
     {pairs_0_1_1_##rescaling, pairs_0_1_2_##rescaling, pairs_7_2_1_##rescaling, pairs_0_2_2_##rescaling}}

WORD PairsKernel pairs_kernel(int rescaling, int taps, int rows, int stride)
{
    static const PairsKernel table[2][4][4] = {PAIRS_CHOICE(OTHERWISE), PAIRS_CHOICE(BY_SCALE)};
    return table[rescaling != OTHERWISE][taps == 3 || taps == 5 || taps == 7 ? taps / 2 : 0][2 * rows + stride - 3];
}

#endif

#endif

/* The register tile of int8 rows, in C: its loops over registers are unrolled whatever their length, which Cython cannot ask for.
 *
 * A filter walks down a strip of columns, two rows of the input at a time. These two rows, a *pair*, are interleaved once, and the last pairs that the
 * filter reaches stay in first-level cache. They serve all outputs that they reach: two output rows if the filter steps down by 1, one if it steps by 2.
 * Where products are of bytes (WINDOWS), two pairs are joined to cells of four rows (ADR 0004, bytes.h) in registers, and filters are 4x4, 5x5 or 7x7.
 * Elsewhere a pair is a cell of int16 as it lies, and filters of any size are a loop over their taps.
 */
#ifndef ND4JLIKE_PAIRS_H
#define ND4JLIKE_PAIRS_H

#include "bytes.h"

enum { PAIRS = WINDOWS ? 4 : 8, PAIR_BYTES = VECTOR_BYTES * PAIR_VECTORS, PAIRS_COLUMNS = 4, TILE_OUTPUTS = 2 * PAIRS_COLUMNS };

/* How sums become bytes: by a line through all of them (ADR 0006), some of the QUADS by XNNPACK's scale, by a line each above and below zero, or in any
 * other way. */
enum { OTHERWISE, BY_LINE, BY_SCALE, BY_SPLIT };

/* Vectors of each of the QUADS sums before the weights of a block. */
enum { PAIRS_BIAS, PAIRS_SCALE, PAIRS_OFFSET, PAIRS_MULTIPLIER, PAIRS_LEFT, PAIRS_RIGHT, PAIRS_CONSTANTS };
/* Instead, by a line or a scale: a bit for each of the QUADS sums that go by scale where a clamp hides what is below zero, 1 << quad, or not,
 * ROUNDED << quad, and the zero point; what is added to these; their scale, if rounded. */
enum { PAIRS_SCALED = PAIRS_MULTIPLIER, PAIRS_ADDED = PAIRS_LEFT, PAIRS_ROUNDED = PAIRS_RIGHT, ROUNDED = 16 };
/* Split: the first bits that are not below zero, those of a float32, which are more than all of the above; what is added to those below, and their offset. */
enum { PAIRS_ZERO = PAIRS_MULTIPLIER, PAIRS_MOVED = PAIRS_LEFT, PAIRS_BELOW = PAIRS_RIGHT, SPLIT = 1 << 24 };

/* Which products of a tile are left out: all is zero there. */
enum { OUTSIDE_LEFT = 1, OUTSIDE_RIGHT = 2, OUTSIDE_PAIRS = 4 };

/* How sums are rescaled otherwise. */
enum { PAIRS_TWICE, PAIRS_ONCE, PAIRS_PLAIN, PAIRS_SMALL };

typedef struct {
    /* The input at row 0 and column 0 of the strip; bytes from a row and a column to the next, and to the columns of the next part of the lanes. */
    const int8_t *x;
    ptrdiff_t x_row, x_column, x_apart;
    /* Rows that exist; columns that do, of each part, of all, and of any; channels that may be read. */
    ptrdiff_t first_row, end_row, first[4], end[4], from, to, least_first, largest_end, readable;
    const int8_t *blank;
    /* From the oldest to the newest, and the columns of each. */
    char *pairs[PAIRS];
    ptrdiff_t width;
    /* Of lines (lines.h), where `width` is in bytes: rows of cells that four outputs reach, that one does; steps of the filter. */
    ptrdiff_t cells, cells_of_one, stride;
    /* Of outputs one by one (apart.h), besides `cells` and `stride`: rows and columns of the filter, the step down. */
    ptrdiff_t taps_down, taps_across, stride_down;
    /* Of several filters for a channel (spread.h), where `cells` are those of an output: at the first output; what the next vector stores less; the order of
     * pairs of bytes. */
    const char *const *entries;
    ptrdiff_t less;
    const vbytes *twos;
    const vi32 *block;
    /* The output; columns, and channels that are stored. */
    int8_t *y;
    ptrdiff_t y_row, y_column, y_apart, columns, stored;
    int parts, skips, rescaling;
    /* Of lines, from the channels of one half of the lanes to those of the other. */
    ptrdiff_t between;
    /* Whether products of what is outside the image are zero; OUTSIDE_LEFT .. */
    int zeros, edges;
    /* Of 3x3: whether what is left of weights beyond int8 follows the weights, and the bits of those of the QUADS that have some. */
    int wide;
    /* Whether results may be above the upper bound, or bits of the output differ. */
    int bounded;
    /* Bits that differ in bytes of the input, and of the output. */
    int flip;
    vbytes y_flip;
    vi16 zero_point;
    vbytes low, high, order;
    /* Of loops over taps, besides `taps_across`: the pairs that a filter reaches, of which those from `lower` on have no taps of the upper row of outputs; vectors of
     * weights of a sum. */
    ptrdiff_t count, lower, weights;
} PairsStrip;

/* The input rows of a pair, at column 0. One outside the image is zero points, without steps. */
typedef struct {
    const int8_t *at[2];
    ptrdiff_t columns[2], aparts[2];
} PairRows;

WORD PairRows pair_rows(const PairsStrip *strip, ptrdiff_t row)
{
    PairRows rows;
    for (int i = 0; i < 2; i++, row++) {
        int exists = row >= strip->first_row && row < strip->end_row;
        rows.at[i] = exists ? strip->x + row * strip->x_row : strip->blank;
        rows.columns[i] = exists ? strip->x_column : 0;
        rows.aparts[i] = exists ? strip->x_apart : 0;
    }
    return rows;
}

/* Columns begin to end of a pair, whatever exists. */
static __attribute__((noinline)) void pairs_columns(const PairsStrip *strip, const PairRows *rows, ptrdiff_t begin, ptrdiff_t end, char *target)
{
    for (; begin < end; begin++) {
        const int8_t *at[2][4];
        for (int part = 0; part < strip->parts; part++)
            for (int row = 0; row < 2; row++) {
                at[row][part] = rows->at[row] + begin * rows->columns[row] + part * rows->aparts[row];
                if (begin < strip->first[part] || begin >= strip->end[part])
                    at[row][part] = strip->blank;
            }
        if (strip->parts == 4)
            put_pair_of_quarters(target + begin * PAIR_BYTES, at[0], at[1], strip->flip);
        else if (strip->parts == 2)
            put_pair_of_halves(target + begin * PAIR_BYTES, at[0][0], at[0][1], at[1][0], at[1][1], strip->flip);
        else
            put_pair(target + begin * PAIR_BYTES, at[0][0], at[1][0], strip->flip, strip->readable);
    }
}

WORD ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
WORD ptrdiff_t largest(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Columns begin to end of a pair, outside the image. */
static __attribute__((noinline, unused)) void pairs_outside(const PairsStrip *strip, char *target, ptrdiff_t begin, ptrdiff_t end)
{
    for (; begin < least(end, strip->width); begin++)
        put_pair(target + begin * PAIR_BYTES, strip->blank, strip->blank, strip->flip, VECTOR_BYTES);
}

/* The same of those columns that exist in any part. */
WORD void pairs_inside_of(const PairsStrip *strip, const PairRows *rows, ptrdiff_t end, char *target, int flip)
{
    ptrdiff_t begin = strip->least_first;
    if (begin < least(end, strip->from))
        pairs_columns(strip, rows, begin, least(end, strip->from), target);
    begin = strip->from;
    ptrdiff_t stop = least(end, strip->to);
    if (begin < stop) {
        ptrdiff_t a_step = rows->columns[0], b_step = rows->columns[1], c_apart = rows->aparts[0], d_apart = rows->aparts[1];
        const int8_t *a = rows->at[0] + begin * a_step, *b = rows->at[1] + begin * b_step;
        char *at = target + begin * PAIR_BYTES, *past = target + stop * PAIR_BYTES;
        if (strip->parts == 4)
            for (; at < past; at += PAIR_BYTES, a += a_step, b += b_step) {
                const int8_t *const upper[4] = {a, a + c_apart, a + 2 * c_apart, a + 3 * c_apart};
                const int8_t *const lower[4] = {b, b + d_apart, b + 2 * d_apart, b + 3 * d_apart};
                put_pair_of_quarters(at, upper, lower, flip);
            }
        else if (strip->parts == 2)
            for (; at < past; at += PAIR_BYTES, a += a_step, b += b_step)
                put_pair_of_halves(at, a, a + c_apart, b, b + d_apart, flip);
        else if (strip->readable >= VECTOR_BYTES)
#pragma GCC unroll 2
            for (; at < past; at += PAIR_BYTES, a += a_step, b += b_step)
                put_pair(at, a, b, flip, VECTOR_BYTES);
        else
            for (; at < past; at += PAIR_BYTES, a += a_step, b += b_step)
                put_pair(at, a, b, flip, strip->readable);
        begin = stop;
    }
    end = least(end, strip->largest_end);
    if (begin < end)
        pairs_columns(strip, rows, begin, end, target);
}
#if WINDOWS
WORD void pairs_inside(const PairsStrip *strip, const PairRows *rows, ptrdiff_t end, char *target)
{
    pairs_inside_of(strip, rows, end, target, strip->flip);
}
#else
static __attribute__((noinline, unused)) void pairs_inside(const PairsStrip *strip, const PairRows *rows, ptrdiff_t end, char *target)
{
    if (strip->flip)
        pairs_inside_of(strip, rows, end, target, 1);
    else
        pairs_inside_of(strip, rows, end, target, 0);
}
#endif

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

/* What the quads compute, for any constants: a tile's sums, QUADS vectors an output, to bytes. */
#if WINDOWS
static __attribute__((noinline))
#else
static __attribute__((noinline, noclone))
#endif
void pairs_otherwise(const PairsStrip *strip, const vi32 *sums, vbytes *bytes, int outputs)
{
    const vi32 *block = strip->block;
    const vf32 *scales = (const vf32 *)block + QUADS * PAIRS_SCALE, *steps = (const vf32 *)block + QUADS * PAIRS_OFFSET;
    for (int output = 0; output < outputs; output++, sums += QUADS) {
        vi32 rounded[QUADS];
        vf32 worst = splat_f32(0);
        if (strip->rescaling == PAIRS_SMALL)
            for (int q = 0; q < QUADS; q++)
                rounded[q] = round_small(sums[q], scales[q]);
        else if (strip->rescaling == PAIRS_ONCE)
            for (int q = 0; q < QUADS; q++)
                rounded[q] = round_scaled(sums[q], scales[q]);
        else
            for (int q = 0; q < QUADS; q++)
                rounded[q] = round_twice(sums[q], scales[q], steps[q], &worst);
        if (strip->rescaling == PAIRS_TWICE || near_a_tie(worst))
            for (int q = 0; q < QUADS; q++)
                rounded[q] = requantize_tflite(
                    sums[q], block[QUADS * PAIRS_MULTIPLIER + q], block[QUADS * PAIRS_LEFT + q], block[QUADS * PAIRS_RIGHT + q]);
        bytes[output] = channels_of(
            pack_i32(rounded[0], rounded[1]), pack_i32(rounded[2], rounded[3]), strip->zero_point, strip->low, strip->high, strip->order);
    }
}

/* Sums of one of the QUADS, of `outputs` outputs, to their bits, whose low words are results: by a line, a scale or, with WINDOWS, two lines. */
WORD void pairs_rescale(vi32 *sums, const vi32 *block, const int quad, const int outputs)
{
    const vf32 *constants = (const vf32 *)block + quad, scale = constants[QUADS * PAIRS_SCALE], offset = constants[QUADS * PAIRS_OFFSET];
    const int scaled = *(const int *)(block + QUADS * PAIRS_SCALED);
    if (WINDOWS && scaled >= SPLIT) {
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
            sums[output] = bits_on_two_lines(
                sums[output], scale, offset, constants[QUADS * PAIRS_ZERO], constants[QUADS * PAIRS_MOVED], constants[QUADS * PAIRS_BELOW]);
        return;
    }
#pragma GCC unroll 16
    for (int output = 0; output < outputs; output++)
        sums[output] = bits_on_line(sums[output], scale, offset);
    if (scaled & 1 << quad)
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
            sums[output] = (vi32)((vf32)sums[output] + splat_f32(scale_bits()));
}

/* From their low words to bytes, in the order of the channels. */
WORD vbytes pairs_bytes(const PairsStrip *strip, vi16 first, vi16 second)
{
    const vbytes bytes = in_fours(pack_i16(first, second));
    return UNORDERED ? bytes : in_order(bytes, strip->order);
}

WORD void pairs_clamp(const PairsStrip *strip, vbytes *bytes, const int outputs)
{
    if (strip->bounded)
#pragma GCC unroll 16
        for (int output = 0; output < outputs; output++)
            bytes[output] = at_most_i8(bytes[output], strip->high) ^ strip->y_flip;
}

#if WINDOWS
WORD void pairs_store(const PairsStrip *strip, const vbytes *bytes, int8_t *y, ptrdiff_t stored_rows, const int rows, const int columns)
{
    ptrdiff_t move = strip->y_column, apart = strip->y_apart, stored = strip->stored;
#pragma GCC unroll 2
    for (int row = 0; row < rows; row++, y += strip->y_row) {
        if (row == stored_rows)
            break;
        if (strip->parts == 4) {
#pragma GCC unroll 8
            for (int i = 0; i < columns; i++)
                store_quarters(y + i * move, apart, bytes[row * columns + i]);
        } else if (strip->parts == 2) {
#pragma GCC unroll 8
            for (int i = 0; i < columns; i++)
                store_halves(y + i * move, y + i * move + apart, bytes[row * columns + i]);
        } else if (stored >= VECTOR_BYTES) {
#pragma GCC unroll 8
            for (int i = 0; i < columns; i++)
                store_bytes(y + i * move, bytes[row * columns + i], VECTOR_BYTES);
        } else {
#pragma GCC unroll 8
            for (int i = 0; i < columns; i++)
                store_bytes(y + i * move, bytes[row * columns + i], stored);
        }
    }
}
#else
/* An image may be narrower than a tile. Here: parts of the columns, and of a vector. */
static __attribute__((noinline, noclone)) void pairs_store_parts(const PairsStrip *strip, const vbytes *bytes, int8_t *y, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t move = strip->y_column, apart = strip->y_apart, stored_columns = least(columns, strip->columns);
    const int parts = strip->parts;
    for (ptrdiff_t row = 0; row < rows; row++, y += strip->y_row, bytes += columns)
        for (ptrdiff_t i = 0; i < stored_columns; i++)
            if (parts == 4)
                store_quarters(y + i * move, apart, bytes[i]);
            else if (parts == 2)
                store_halves(y + i * move, y + i * move + apart, bytes[i]);
            else
                store_bytes(y + i * move, bytes[i], strip->stored);
}

WORD void pairs_store(const PairsStrip *strip, const vbytes *bytes, int8_t *y, ptrdiff_t stored_rows, const int rows, const int columns)
{
    const ptrdiff_t move = strip->y_column, stored_columns = strip->columns;
    if (strip->parts > 1 || strip->stored < VECTOR_BYTES) {
        /* Of its own: what a function is given is in memory. */
        vbytes given[TILE_OUTPUTS];
#pragma GCC unroll 8
        for (int i = 0; i < rows * columns; i++)
            given[i] = bytes[i];
        pairs_store_parts(strip, given, y, least(stored_rows, rows), columns);
        return;
    }
#pragma GCC unroll 2
    for (int row = 0; row < rows; row++, y += strip->y_row) {
        if (row == stored_rows)
            break;
#pragma GCC unroll 8
        for (int i = 0; i < columns; i++) {
            if (i >= stored_columns)
                break;
            store_bytes(y + i * move, bytes[row * columns + i], VECTOR_BYTES);
        }
    }
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

WORD void slide_row(const PairsStrip *strip, int8_t *y, int rescaling)
{
    vi32 all[SLIDE_COLUMNS * QUADS];
    slide_quads(strip, all);
    for (ptrdiff_t column = 0; column < strip->columns; column++, y += strip->y_column) {
        vi32 sums[QUADS];
        vbytes bytes;
        if (rescaling == OTHERWISE) {
            pairs_otherwise(strip, all + column * QUADS, &bytes, 1);
        } else {
#pragma GCC unroll 4
            for (int quad = 0; quad < QUADS; quad++) {
                sums[quad] = all[column * QUADS + quad];
                pairs_rescale(sums + quad, strip->block, quad, 1);
            }
            bytes = pairs_bytes(strip, low_words(sums[0], sums[1]), low_words(sums[2], sums[3]));
        }
        pairs_clamp(strip, &bytes, 1);
        pairs_store(strip, &bytes, y, 1, 1, 1);
    }
}
#else
enum { SLIDES = 0, SLIDE_COLUMNS = 1 };
WORD void slide_row(const PairsStrip *strip, int8_t *y, int rescaling) { (void)strip, (void)y, (void)rescaling; }
#endif

/* A row of tiles with tiles of their own for a last row and of three columns, as many of those at the end as leave nothing to compute twice. Each tile is a
 * function, and this is another one than the others' loop: a compiler that sees two tiles together runs out of registers. */
#if WINDOWS
#define PAIRS_TILE(name, taps, rows, columns) \
    static __attribute__((noinline)) void name##_##taps(const PairsStrip *strip, ptrdiff_t first, int8_t *y) \
    { \
        pairs_tile(strip, first, y, rows, taps, 1, rows, columns, BY_SCALE); \
    }
#define PAIRS_TILES(taps) \
    PAIRS_TILE(pairs_whole, taps, 2, PAIRS_COLUMNS) \
    PAIRS_TILE(pairs_narrow, taps, 2, PAIRS_COLUMNS - 1) \
    PAIRS_TILE(pairs_low, taps, 1, PAIRS_COLUMNS)
PAIRS_TILES(5)
PAIRS_TILES(7)

WORD void pairs_exactly(const PairsStrip *strip, int8_t *y, ptrdiff_t count, const int taps)
{
    const ptrdiff_t columns = strip->columns, tiles = (columns + PAIRS_COLUMNS - 1) / PAIRS_COLUMNS, narrow = tiles * PAIRS_COLUMNS - columns;
    for (ptrdiff_t first = 0; first < columns;)
        if (count > 1 && narrow <= tiles && columns - first <= narrow * (PAIRS_COLUMNS - 1)) {
            (taps == 5 ? pairs_narrow_5 : pairs_narrow_7)(strip, first, y);
            first += PAIRS_COLUMNS - 1;
        } else {
            (count == 1 ? taps == 5 ? pairs_low_5 : pairs_low_7 : taps == 5 ? pairs_whole_5 : pairs_whole_7)(
                strip, least(first, columns - PAIRS_COLUMNS), y);
            first += PAIRS_COLUMNS;
        }
}
#else
WORD void pairs_exactly(const PairsStrip *strip, int8_t *y, ptrdiff_t count, const int taps)
{
    (void)strip, (void)y, (void)count, (void)taps;
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
        if (exact)
            pairs_exactly(strip, y, count, taps);
        else if (WINDOWS && taps == 7 && stride == 2)
            slide_row(strip, y, rescaling);
        else
            do {
                if (!WINDOWS && step == 1 && strip->columns - first <= columns / 2) {
                    first = largest(strip->columns - columns / 2, 0);
                    pairs_tile(strip, first, y, count, taps, stride, step, columns / 2, rescaling);
                    break;
                }
                if (first > strip->columns - columns)
                    first = OVERLAPS ? largest(strip->columns - columns, 0) : strip->columns - columns;
                pairs_tile(strip, first, y, count, taps, stride, step, columns, rescaling);
                first += columns;
            } while (first < strip->columns);
        char *spare = strip->pairs[0];
        for (int i = 0; i < pairs - 1; i++)
            strip->pairs[i] = strip->pairs[i + 1];
        strip->pairs[pairs - 1] = spare;
    }
}

typedef void (*PairsKernel)(PairsStrip *strip, ptrdiff_t count);

#if WINDOWS

#define PAIRS_KERNEL(taps, stride, rescaling) \
    static __attribute__((unused)) void pairs_##taps##_##stride##_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        pairs_strip(strip, count, taps, stride, 3 - stride, PAIRS_COLUMNS, rescaling, stride == 1 && rescaling != OTHERWISE); \
    }
#define PAIRS_KERNELS(taps, stride) PAIRS_KERNEL(taps, stride, OTHERWISE) PAIRS_KERNEL(taps, stride, BY_SCALE)
/* Those of 3x3 are in window.h. */
PAIRS_KERNELS(4, 2)
PAIRS_KERNELS(5, 1)
PAIRS_KERNELS(5, 2)
PAIRS_KERNELS(7, 1)
PAIRS_KERNELS(7, 2)

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

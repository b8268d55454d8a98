/* What the int8 kernels that make cells of channels side by side have in common (pairs.h, window.h, lines.h, apart.h, spread.h): the strip of outputs that one of
 * them is given, pairs of input rows, and the way from sums to the bytes that are stored.
 */
#ifndef ND4JLIKE_STRIP_H
#define ND4JLIKE_STRIP_H

#include "bytes.h"

enum { PAIRS = WINDOWS ? 4 : 16, PAIR_BYTES = VECTOR_BYTES * PAIR_VECTORS, PAIRS_COLUMNS = 4, TILE_OUTPUTS = 2 * PAIRS_COLUMNS };

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

/* Lanes: a vector of channels side by side; the left and the right half of the columns, of half as many channels, or four quarters of them; fewer channels. */
enum { WHOLE, HALVES, PART, QUARTERS };

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
    /* Whether results may be beyond the bounds, or bits of the output differ. */
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
            put_pair_of_quarters(target + begin * PAIR_BYTES, at[0], at[1], strip->flip, strip->stored);
        else if (strip->parts == 2)
            put_pair_of_halves(target + begin * PAIR_BYTES, at[0][0], at[0][1], at[1][0], at[1][1], strip->flip, strip->stored);
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
                put_pair_of_quarters(at, upper, lower, flip, strip->stored);
            }
        else if (strip->parts == 2)
            for (; at < past; at += PAIR_BYTES, a += a_step, b += b_step)
                put_pair_of_halves(at, a, a + c_apart, b, b + d_apart, flip, strip->stored);
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

typedef void (*PairsKernel)(PairsStrip *strip, ptrdiff_t count);

#if WINDOWS
/* `last`: of parts, the last one. */
WORD vbytes part_bytes(const int8_t *x, const int8_t *last, ptrdiff_t stored, const int kind)
{
    return kind == WHOLE ? load_bytes(x, VECTOR_BYTES) : kind == HALVES ? load_halves(x, last) : load_part_bytes(x, stored);
}
#endif

/* What the quads compute, for any constants: a tile's sums, QUADS vectors an output, to bytes. */
static __attribute__((noinline, noclone)) void pairs_otherwise(const PairsStrip *strip, const vi32 *sums, vbytes *bytes, int outputs)
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

/* Sums of one of the QUADS, of `outputs` outputs, to their bits, whose low words are results: by a line, a scale or two lines. */
WORD void pairs_rescale(vi32 *sums, const vi32 *block, const int quad, const int outputs)
{
    const vf32 *constants = (const vf32 *)block + quad, scale = constants[QUADS * PAIRS_SCALE], offset = constants[QUADS * PAIRS_OFFSET];
    const int scaled = *(const int *)(block + QUADS * PAIRS_SCALED);
    if (FUSED && scaled >= SPLIT) {
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
            bytes[output] = clamp_i8(bytes[output], strip->low, strip->high) ^ strip->y_flip;
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
                store_part_quarters(y + i * move, apart, bytes[row * columns + i], stored);
        } else if (strip->parts == 2) {
#pragma GCC unroll 8
            for (int i = 0; i < columns; i++)
                store_part_halves_of(y + i * move, y + i * move + apart, bytes[row * columns + i], stored);
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

#endif

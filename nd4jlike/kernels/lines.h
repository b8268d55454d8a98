/* int8 filters of one row or one column: four neighbours along the filter are a cell, and a cell serves every output that it reaches.
 *
 * Cells do not overlap. Those that four neighbouring outputs reach lie in a ring of rows of cells, a row for the places side by side of a strip: a row is
 * made once, and the weights are packed for each of the four outputs, shifted. `x_row` and `y_row` of a strip are steps along the filter, `x_column` and
 * `y_column` across. With VNNI, filters of up to 3 taps without a step keep nothing: a cell is used as it is made.
 */
#ifndef ND4JLIKE_LINES_H
#define ND4JLIKE_LINES_H

#include "strip.h"

enum { LINE_OUTPUTS = 4, LINE_CELL_BYTES = QUADS * CELL_PLANES * VECTOR_BYTES };

/* Four rows of inputs, at the first place. One outside the image is zero points, without steps. */
typedef struct {
    const int8_t *at[GROUP];
    ptrdiff_t steps[GROUP];
} LineRows;

WORD LineRows line_rows(const PairsStrip *strip, ptrdiff_t row)
{
    LineRows rows;
#pragma GCC unroll 4
    for (int i = 0; i < GROUP; i++) {
        ptrdiff_t along = row * GROUP + i;
        int exists = along >= strip->first_row && along < strip->end_row;
        rows.at[i] = exists ? strip->x + along * strip->x_row : strip->blank;
        rows.steps[i] = exists ? strip->x_column : 0;
    }
    return rows;
}

/* The cells of a place; then that of the next one. */
WORD void line_cells(const PairsStrip *strip, LineRows *rows, char *target, const int parts)
{
    if (parts == 2) {
        ptrdiff_t aparts[GROUP];
        for (int i = 0; i < GROUP; i++)
            aparts[i] = strip->x_apart * rows->steps[i] + (OVERLAPS && rows->at[i] != strip->blank ? strip->between : 0);
        interleave_halves(target, rows->at, aparts, strip->flip);
    } else
        interleave(target, QUADS * VECTOR_BYTES, rows->at[0], rows->at[1], rows->at[2], rows->at[3], strip->flip, strip->readable, 0);
#pragma GCC unroll 4
    for (int i = 0; i < GROUP; i++)
        rows->at[i] += rows->steps[i];
}

#if WINDOWS
WORD
#else
static __attribute__((noinline, noclone, unused))
#endif
void lines_fill(const PairsStrip *strip, ptrdiff_t row, char *target, const int parts)
{
    LineRows rows = line_rows(strip, row);
    for (ptrdiff_t i = 0; i < strip->columns; i++, target += LINE_CELL_BYTES)
        line_cells(strip, &rows, target, parts);
}

/* Adds `count` of the QUADS cells at `at` to the sums of outputs. */
WORD void lines_add(vi32 sums[][LINE_OUTPUTS], const char *at, const vi32 *weights, const int count, const int outputs)
{
#pragma GCC unroll 4
    for (int i = 0; i < count; i++)
#pragma GCC unroll 2
        for (int plane = 0; plane < CELL_PLANES; plane++) {
            const vi32 cell = *(const vi32 *)(at + (plane * QUADS + i) * VECTOR_BYTES);
#pragma GCC unroll 4
            for (int output = 0; output < outputs; output++)
                sums[i][output] = dot_cells(sums[i][output], cell, weights[(i * LINE_OUTPUTS + output) * CELL_PLANES + plane]);
        }
}

#if VECTOR_BYTES == 32
/* Outputs `from` to `to` from one plane of a cell. */
WORD void lines_plane(vi32 *sums, const char *at, const vi32 *weights, const int plane, const int from, const int to)
{
    const vi32 cell = *(const vi32 *)(at + plane * QUADS * VECTOR_BYTES);
#pragma GCC unroll 4
    for (int output = from; output < to; output++)
        sums[output] = dot_in_order(sums[output], cell, weights[output * CELL_PLANES + plane]);
}

/* The sums of one of the QUADS, of outputs a step of 1 apart. The first plane has no taps of the last two outputs, the last one none of the first two;
 * `planes`: those that all have taps in. */
WORD void lines_sums(vi32 *sums, const char *at, const char *end, ptrdiff_t round, ptrdiff_t width, const vi32 *weights, ptrdiff_t planes)
{
    lines_plane(sums, at, weights, 0, 0, 2);
    for (;; planes -= 2) {
        lines_plane(sums, at, weights, 1, 0, 4);
        at += width;
        at = at >= end ? at - round : at;
        weights += QUADS * LINE_OUTPUTS * CELL_PLANES;
        if (planes <= 2)
            break;
        lines_plane(sums, at, weights, 0, 0, 4);
    }
    if (planes == 2) {
        lines_plane(sums, at, weights, 0, 0, 4);
        lines_plane(sums, at, weights, 1, 2, 4);
    } else
        lines_plane(sums, at, weights, 0, 2, 4);
}
#endif

/* `outputs` outputs of one place, of which `stored` are stored. The last of their cells is at `newest`, and used first: there it was just made. The first
 * one is at `cell`; the ring ends at `end`, `round` bytes long. */
WORD void lines_tile(
    const PairsStrip *strip, const char *newest, const char *cell, const char *end, ptrdiff_t round, ptrdiff_t cells, int8_t *y, ptrdiff_t stored,
    const int outputs, int rescaling, const int parts)
{
    /* As many sums at a time as registers hold. */
    const int count = VECTOR_BYTES == 64 ? QUADS : 1, row_weights = QUADS * LINE_OUTPUTS * CELL_PLANES;
    const vi32 *block = strip->block;
    const vf32 *scales = (const vf32 *)block + QUADS * PAIRS_SCALE, *offsets = (const vf32 *)block + QUADS * PAIRS_OFFSET;
    const int scaled = *(const int *)(block + QUADS * PAIRS_SCALED);
    vi32 sums[QUADS][LINE_OUTPUTS], all[LINE_OUTPUTS * QUADS];
    vbytes bytes[LINE_OUTPUTS];
#pragma GCC unroll 1
    for (int quad = 0; quad < QUADS; quad += count) {
        const vi32 *weights = block + QUADS * PAIRS_CONSTANTS + quad * LINE_OUTPUTS * CELL_PLANES, *last = weights + (cells - 1) * row_weights;
        const char *at = cell;
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
#pragma GCC unroll 4
            for (int output = 0; output < outputs; output++)
                sums[i][output] = block[QUADS * PAIRS_BIAS + quad + i];
#if VECTOR_BYTES == 32
        if (outputs == LINE_OUTPUTS && strip->stride == 1)
            lines_sums(sums[0], cell + quad * VECTOR_BYTES, end, round, strip->width, weights, strip->taps_across / 2);
        else
#endif
        {
            lines_add(sums, newest + quad * VECTOR_BYTES, last, count, outputs);
#pragma GCC unroll 1
            for (; weights < last; weights += row_weights) {
                lines_add(sums, at + quad * VECTOR_BYTES, weights, count, outputs);
                at += strip->width;
                at = at >= end ? at - round : at;
            }
        }
        if (count == 1 && rescaling != OTHERWISE)
            pairs_rescale(sums[0], block, quad, outputs);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            if (count == 1 || rescaling == OTHERWISE)
#pragma GCC unroll 4
                for (int output = 0; output < outputs; output++)
                    all[output * QUADS + quad + i] = sums[i][output];
            else if (rescaling == BY_SPLIT)
#pragma GCC unroll 4
                for (int output = 0; output < outputs; output++)
                    sums[i][output] = bits_on_two_lines(
                        sums[i][output], scales[i], offsets[i], ((const vf32 *)block)[QUADS * PAIRS_ZERO + i],
                        ((const vf32 *)block)[QUADS * PAIRS_MOVED + i], ((const vf32 *)block)[QUADS * PAIRS_BELOW + i]);
            else
#pragma GCC unroll 4
                for (int output = 0; output < outputs; output++)
                    sums[i][output] = bits_on_line(sums[i][output], scales[i], offsets[i]);
            if (count > 1 && rescaling == BY_SCALE && scaled & 1 << i)
#pragma GCC unroll 4
                for (int output = 0; output < outputs; output++)
                    sums[i][output] = (vi32)((vf32)sums[i][output] + splat_f32(scale_bits()));
        }
    }
    if (rescaling == OTHERWISE)
        pairs_otherwise(strip, all, bytes, outputs);
#pragma GCC unroll 4
    for (int output = 0; output < outputs && rescaling != OTHERWISE; output++) {
        const vi32 *const of = all + output * QUADS;
        bytes[output] = count == 1 ? pairs_bytes(strip, low_words(of[0], of[1]), low_words(of[2], of[3]))
                                   : pairs_bytes(strip, low_words(sums[0][output], sums[1][output]), low_words(sums[2][output], sums[3][output]));
    }
    if (strip->bounded)
#pragma GCC unroll 4
        for (int output = 0; output < outputs; output++)
            bytes[output] = clamp_i8(bytes[output], strip->low, strip->high) ^ strip->y_flip;
#pragma GCC unroll 4
    for (int output = 0; output < outputs; output++, y += strip->y_row) {
        if (output == stored)
            break;
        if (parts == 2)
            store_halves(y, y + strip->y_apart, bytes[output]);
        else
            store_bytes(y, bytes[output], strip->stored);
    }
}

/* `count` outputs of each place, from the cells before the newest on. */
WORD void lines_row(
    const PairsStrip *strip, const char *oldest, char *newest, ptrdiff_t row, ptrdiff_t cells, int8_t *y, ptrdiff_t count, const int outputs,
    int rescaling, const int parts)
{
    const ptrdiff_t round = strip->cells * strip->width;
    const char *end = strip->pairs[0] + round;
    LineRows rows = line_rows(strip, row);
    for (ptrdiff_t i = 0; i < strip->columns; i++, y += strip->y_column, oldest += LINE_CELL_BYTES, newest += LINE_CELL_BYTES) {
        line_cells(strip, &rows, newest, parts);
        lines_tile(strip, newest, oldest, end, round, cells, y, count, outputs, rescaling, parts);
    }
}

/* `count` outputs of each place. A single output reads no more cells than it has taps in. */
WORD void lines_strip(const PairsStrip *strip, ptrdiff_t count, int rescaling, const int parts)
{
    const ptrdiff_t cells = strip->cells, round = cells * strip->width;
    char *ring = strip->pairs[0], *end = ring + round, *oldest = ring, *newest = ring;
    int8_t *y = strip->y;
    ptrdiff_t made = 0, needed = cells;
    for (; count > 0; count -= LINE_OUTPUTS, y += LINE_OUTPUTS * strip->y_row, needed += strip->stride) {
        const ptrdiff_t used = count == 1 && made == 0 ? strip->cells_of_one : cells, reached = needed - cells + used;
        for (; made < reached; made++) {
            if (made < reached - 1)
                lines_fill(strip, made, newest, parts);
            else if (count == 1)
                lines_row(strip, oldest, newest, made, used, y, 1, 1, rescaling, parts);
            else
                lines_row(strip, oldest, newest, made, used, y, count, LINE_OUTPUTS, rescaling, parts);
            newest += strip->width;
            newest = newest == end ? ring : newest;
        }
        oldest += strip->stride * strip->width;
        oldest = oldest >= end ? oldest - round : oldest;
    }
}

#if WINDOWS
/* The cells of a place whose first input is at `x`, row `row` of the strip. */
WORD void few_cells(const PairsStrip *strip, ptrdiff_t row, const int8_t *x, ptrdiff_t readable, vi32 *cells)
{
    const vbytes offset = splat_i8(INPUT_OFFSET ^ strip->flip);
    const ptrdiff_t step = strip->x_row;
    vbytes rows[GROUP];
    if (__builtin_expect(row >= strip->first_row && row + GROUP <= strip->end_row, 1))
#pragma GCC unroll 4
        for (int i = 0; i < GROUP; i++)
            rows[i] = load_bytes(x + i * step, readable) ^ offset;
    else
#pragma GCC unroll 4
        for (int i = 0; i < GROUP; i++)
            rows[i] = load_bytes(row + i >= strip->first_row && row + i < strip->end_row ? x + i * step : strip->blank, readable) ^ offset;
    quads_of(cells, rows[0], rows[1], rows[2], rows[3]);
}

/* Few taps, 3 at most, without a step: a cell has the inputs of two outputs side by side, and is used as it is made. Two of them at a time share what is read
 * of weights and constants; what lies closer in memory, outputs along the filter or places across, is the inner loop. */
WORD void few_taps(const PairsStrip *strip, ptrdiff_t count, ptrdiff_t readable, ptrdiff_t stored, int rescaling)
{
    const vi32 *const block = strip->block, *const weights = block + QUADS * PAIRS_CONSTANTS;
    const ptrdiff_t y_row = strip->y_row, pairs = (count + 1) / 2;
    const int along = strip->columns == 1 || (pairs > 1 && y_row < strip->y_column);
    const ptrdiff_t inner = along ? pairs : strip->columns, outer = along ? strip->columns : pairs;
    const ptrdiff_t x_inner = along ? 2 * strip->x_row : strip->x_column, x_outer = along ? strip->x_column : 2 * strip->x_row;
    const ptrdiff_t y_inner = along ? 2 * y_row : strip->y_column, y_outer = along ? strip->y_column : 2 * y_row;
    const int8_t *x_first = strip->x;
    int8_t *y_first = strip->y;
    for (ptrdiff_t i = 0; i < outer; i++, x_first += x_outer, y_first += y_outer) {
        const int8_t *x = x_first;
        int8_t *y = y_first;
        for (ptrdiff_t j = 0; j < inner; j += 2, x += 2 * x_inner, y += 2 * y_inner) {
            /* The last place may be there twice. */
            const ptrdiff_t more = j + 1 < inner;
            const ptrdiff_t row = 2 * (along ? j : i), next_row = along ? row + 2 * more : row;
            vi32 cells[2][QUADS], sums[QUADS][4];
            vbytes bytes[4];
            few_cells(strip, row, x, readable, cells[0]);
            few_cells(strip, next_row, x + more * x_inner, readable, cells[1]);
#pragma GCC unroll 4
            for (int quad = 0; quad < QUADS; quad++) {
#pragma GCC unroll 4
                for (int output = 0; output < 4; output++)
                    sums[quad][output] = dot_cells(block[QUADS * PAIRS_BIAS + quad], cells[output / 2][quad], weights[quad * LINE_OUTPUTS + output % 2]);
                if (rescaling != OTHERWISE)
                    pairs_rescale(sums[quad], block, quad, 4);
            }
            if (rescaling == OTHERWISE) {
                vi32 all[4 * QUADS];
#pragma GCC unroll 16
                for (int k = 0; k < 4 * QUADS; k++)
                    all[k] = sums[k % QUADS][k / QUADS];
                pairs_otherwise(strip, all, bytes, 4);
            } else
#pragma GCC unroll 4
                for (int output = 0; output < 4; output++)
                    bytes[output] = pairs_bytes(strip, low_words(sums[0][output], sums[1][output]), low_words(sums[2][output], sums[3][output]));
            pairs_clamp(strip, bytes, 4);
#pragma GCC unroll 2
            for (int place = 0; place <= 1; place++) {
                int8_t *to = y + place * more * y_inner;
                store_bytes(to, bytes[2 * place], stored);
                if ((place ? next_row : row) + 1 < count)
                    store_bytes(to + y_row, bytes[2 * place + 1], stored);
            }
        }
    }
}
static void few_OTHERWISE(PairsStrip *strip, ptrdiff_t count) { few_taps(strip, count, strip->readable, strip->stored, OTHERWISE); }
static void few_BY_SCALE(PairsStrip *strip, ptrdiff_t count)
{
    if (strip->stored >= VECTOR_BYTES)
        few_taps(strip, count, VECTOR_BYTES, VECTOR_BYTES, BY_SCALE);
    else
        few_taps(strip, count, strip->readable, strip->stored, BY_SCALE);
}
#endif

#define LINES_OF(parts, name) \
    static __attribute__((noinline, noclone, unused)) void name(const PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        lines_strip(strip, count, rescaling, parts); \
    }
/* One text, which is smaller, and as fast. */
LINES_OF(strip->parts, lines_whole)

#define LINES_KERNEL(rescaling) \
    static __attribute__((unused)) void lines_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        lines_whole(strip, count, rescaling); \
    }
LINES_KERNEL(OTHERWISE)
#if FUSED
LINES_KERNEL(BY_SCALE)
#endif
#if WINDOWS
LINES_KERNEL(BY_SPLIT)
#endif

/* `few`: taps of a block that is no parts. */
WORD PairsKernel lines_kernel(int rescaling, int few)
{
    (void)few;
#if WINDOWS
    if (few)
        return rescaling == OTHERWISE ? few_OTHERWISE : few_BY_SCALE;
    if (rescaling == BY_SPLIT)
        return lines_BY_SPLIT;
#endif
#if FUSED
    if (rescaling != OTHERWISE)
        return lines_BY_SCALE;
#endif
    (void)rescaling;
    return lines_OTHERWISE;
}

#endif

/* int8 filters whose windows share few inputs, or none, as those that step by 3: output by output.
 *
 * Two taps, in the order of the weights, are a cell of each channel. Nothing is kept from one output to the next; taps outside the image read zero points.
 */
#ifndef ND4JLIKE_APART_H
#define ND4JLIKE_APART_H

#include "strip.h"

enum { APART_TAPS = 128 };

#if WINDOWS

/* Quads are faster. */
WORD PairsKernel apart_kernel(int rescaling)
{
    (void)rescaling;
    return 0;
}

#else

/* Adds a cell of two of the QUADS: a tap at `a`, the next one at `b`. */
WORD void apart_add(vi32 *sums, const int8_t *a, const int8_t *b, const vi32 *weights, int flip)
{
    vi32 cells[2];
    unpack_cells(cells, a, b, flip, 2 * LANES);
    sums[0] = dot_cells(sums[0], cells[0], weights[0]);
    sums[1] = dot_cells(sums[1], cells[1], weights[1]);
}

/* The sums of an output: of channels at `x`, then of those `upper` bytes beyond. `taps`: how far they are from the first one. `square`: rows of a square filter
 * whose loops are unrolled, else 0. */
WORD void apart_sums(const PairsStrip *strip, const int8_t *x, ptrdiff_t upper, const ptrdiff_t *taps, vi32 *sums, const int square, const int flip)
{
    const ptrdiff_t down = strip->x_row, step = strip->x_column;
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++, x += upper, sums += 2) {
        const vi32 *weights = strip->block + QUADS * PAIRS_CONSTANTS + 2 * half;
        sums[0] = strip->block[QUADS * PAIRS_BIAS + 2 * half];
        sums[1] = strip->block[QUADS * PAIRS_BIAS + 2 * half + 1];
        if (square) {
            const int8_t *at[8];
#pragma GCC unroll 8
            for (int row = 0; row < square; row++)
                at[row] = row ? at[row - 1] + down : x;
#pragma GCC unroll 32
            for (int tap = 0; tap < square * square; tap += 2, weights += QUADS) {
                /* The last cell has no second tap. */
                const int next = tap + 1 < square * square ? tap + 1 : tap;
                apart_add(sums, at[tap / square] + tap % square * step, at[next / square] + next % square * step, weights, flip);
            }
            continue;
        }
        const ptrdiff_t *const end = taps + strip->taps_down * strip->taps_across;
#pragma GCC unroll 1
        for (const ptrdiff_t *tap = taps; tap < end; tap += 2, weights += QUADS)
            apart_add(sums, x + tap[0], x + tap[1], weights, flip);
    }
}

/* The same where taps may be outside the image, or no more than its channels may be read of a pixel. */
static __attribute__((noinline, unused)) void apart_edge(const PairsStrip *strip, ptrdiff_t top, ptrdiff_t left, vi32 *sums)
{
    const vi32 *weights = strip->block + QUADS * PAIRS_CONSTANTS;
    const ptrdiff_t across = strip->taps_across, taps = strip->taps_down * across;
    const int8_t *at[2][APART_TAPS + 1];
    for (int part = 0; part < strip->parts; part++) {
        const ptrdiff_t first = least(largest(strip->first[part] - left, 0), across), end = largest(least(strip->end[part] - left, across), first);
        const int8_t **to = at[part];
        for (ptrdiff_t i = top; i < top + strip->taps_down; i++, to += across) {
            const int exists = i >= strip->first_row && i < strip->end_row;
            const int8_t *x = exists ? strip->x + i * strip->x_row + left * strip->x_column + part * strip->x_apart : strip->blank;
            const ptrdiff_t step = exists ? strip->x_column : 0;
            for (ptrdiff_t j = 0; j < across; j++)
                to[j] = j >= first && j < end ? x + j * step : strip->blank;
        }
        *to = strip->blank;
    }
#pragma GCC unroll 1
    for (int half = 0; half < 2; half++, weights += 2) {
        const int8_t *const *const from = at[strip->parts == 1 ? 0 : half];
        const ptrdiff_t channel = strip->parts == 1 ? half * 2 * LANES : 0;
        vi32 two[2] = {strip->block[QUADS * PAIRS_BIAS + 2 * half], strip->block[QUADS * PAIRS_BIAS + 2 * half + 1]};
        /* What is read of a pixel is half a vector: one block overlaps another where less is left. */
        const ptrdiff_t read = channel < strip->readable ? taps : 0;
        const vi32 *w = weights;
#pragma GCC unroll 1
        for (ptrdiff_t tap = 0; tap < read; tap += 2, w += QUADS)
            apart_add(two, from[tap] + channel, from[tap + 1] + channel, w, strip->flip);
        sums[2 * half] = two[0];
        sums[2 * half + 1] = two[1];
    }
}

/* Rows of outputs. Taps are `taps_across` in a row of the filter; outputs are `stride_down` and `stride` inputs apart. */
WORD void apart_strip(const PairsStrip *strip, ptrdiff_t count, int rescaling, const int square, const int flip)
{
    const ptrdiff_t across = strip->taps_across, down = strip->taps_down, step = strip->stride * strip->x_column;
    const ptrdiff_t upper = strip->parts == 2 ? strip->x_apart : VECTOR_BYTES / 2;
    /* More channels than there are may be read where another pixel follows. */
    const ptrdiff_t more = VECTOR_BYTES / strip->parts - strip->readable;
    const ptrdiff_t to = more <= 0 ? strip->to : more <= strip->x_column ? strip->to - 1 : 0;
    /* Copies: what is stored might be a part of the strip, for all that a compiler knows. */
    const ptrdiff_t columns = strip->columns, stride = strip->stride, from = strip->from, stored = strip->stored, y_apart = strip->y_apart;
    const ptrdiff_t move = strip->y_column;
    const int halves = strip->parts == 2;
    ptrdiff_t taps[APART_TAPS];
    int8_t *y = strip->y;
    if (!square) {
        ptrdiff_t *tap = taps;
        for (ptrdiff_t i = 0; i < down; i++)
            for (ptrdiff_t j = 0; j < across; j++)
                *tap++ = i * strip->x_row + j * strip->x_column;
        *tap = 0;
    }
    for (ptrdiff_t row = 0; row < count; row++, y += strip->y_row) {
        const ptrdiff_t top = row * strip->stride_down;
        const int whole = top >= strip->first_row && top + down <= strip->end_row;
        const int8_t *x = strip->x + top * strip->x_row;
        int8_t *at_y = y;
        for (ptrdiff_t column = 0, left = 0; column < columns; column++, left += stride, x += step, at_y += move) {
            vi32 sums[QUADS];
            vbytes bytes;
            if (whole && left >= from && left + across <= to) {
                apart_sums(strip, x, upper, taps, sums, square, flip);
            } else {
                /* Of its own, as below: what a function is given is in memory. */
                vi32 edge[QUADS];
                apart_edge(strip, top, left, edge);
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    sums[quad] = edge[quad];
            }
            if (rescaling == OTHERWISE) {
                vi32 given[QUADS];
                vbytes results;
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    given[quad] = sums[quad];
                pairs_otherwise(strip, given, &results, 1);
                bytes = results;
            } else {
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    pairs_rescale(sums + quad, strip->block, quad, 1);
                bytes = pairs_bytes(strip, low_words(sums[0], sums[1]), low_words(sums[2], sums[3]));
            }
            pairs_clamp(strip, &bytes, 1);
            if (halves)
                store_halves(at_y, at_y + y_apart, bytes);
            else
                store_bytes(at_y, bytes, stored);
        }
    }
}

#define APART(name, square, flip) \
    static __attribute__((noinline, noclone, unused)) void apart_##name(const PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        apart_strip(strip, count, rescaling, square, flip); \
    }
APART(any, 0, 0)
APART(unsigned, 0, 1)
APART(3, 3, 0)
APART(5, 5, 0)

#define APART_KERNEL(rescaling) \
    static __attribute__((unused)) void apart_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        const ptrdiff_t square = strip->taps_across == strip->taps_down ? strip->taps_down : 0; \
        (strip->flip ? apart_unsigned : square == 3 ? apart_3 : square == 5 ? apart_5 : apart_any)(strip, count, rescaling); \
    }
APART_KERNEL(OTHERWISE)
#if FUSED
APART_KERNEL(BY_SCALE)
#endif

WORD PairsKernel apart_kernel(int rescaling)
{
#if FUSED
    if (rescaling != OTHERWISE)
        return apart_BY_SCALE;
#endif
    (void)rescaling;
    return apart_OTHERWISE;
}

#endif
#endif

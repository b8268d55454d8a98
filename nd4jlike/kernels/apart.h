/* int8 filters whose windows share few inputs, or none, as where a step is as wide as the filter: output by output.
 *
 * Two taps, in the order of the weights, are a cell of each channel. Nothing is kept from one output to the next; taps outside the image read zero points.
 */
#ifndef ND4JLIKE_APART_H
#define ND4JLIKE_APART_H

#include "pairs.h"

enum { APART_TAPS = 64 };

#if WINDOWS

/* Quads are faster. */
WORD PairsKernel apart_kernel(int rescaling)
{
    (void)rescaling;
    return 0;
}

#else

/* The sums of an output, of `quads` of the QUADS. `taps`: how far the taps are from the first one, which of each part is at `at`. */
WORD void apart_sums(const PairsStrip *strip, const int8_t *const *at, const ptrdiff_t *taps, vi32 *sums, const int quads, const int parts)
{
    const vi32 *weights = strip->block + QUADS * PAIRS_CONSTANTS;
    /* Two taps at a time: the last cell may have no others. */
    const ptrdiff_t *const end = taps + strip->taps_down * strip->taps_across;
#pragma GCC unroll 4
    for (int quad = 0; quad < QUADS; quad++)
        sums[quad] = strip->block[QUADS * PAIRS_BIAS + quad];
#pragma GCC unroll 1
    for (int plane = 0; taps < end; taps += 2, weights += plane ? QUADS * CELL_PLANES - 1 : 1, plane ^= 1)
#pragma GCC unroll 2
        for (int quad = 0; quad < quads; quad += 2) {
            const int8_t *const from = at[parts == 1 ? 0 : quad / 2] + (parts == 1 ? quad * LANES : 0);
            vi32 cells[2];
            if (quad + 1 == quads)
                cells[0] = load_cells(from + taps[0], from + taps[1], 0, LANES);
            else
                unpack_cells(cells, from + taps[0], from + taps[1], 2 * LANES);
            sums[quad] = dot_cells(sums[quad], cells[0], weights[quad * CELL_PLANES]);
            if (quad + 1 < quads)
                sums[quad + 1] = dot_cells(sums[quad + 1], cells[1], weights[(quad + 1) * CELL_PLANES]);
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
    for (int quad = 0; quad < QUADS; quad++)
        sums[quad] = strip->block[QUADS * PAIRS_BIAS + quad];
    for (ptrdiff_t tap = 0; tap < taps; tap += 2, weights += tap % 4 ? 1 : QUADS * CELL_PLANES - 1)
        for (int quad = 0; quad < QUADS; quad += 2) {
            const int8_t *const *const from = at[strip->parts == 1 ? 0 : quad / 2] + tap;
            const ptrdiff_t channel = strip->parts == 1 ? quad * LANES : 0;
            vi32 cells[2];
            if (channel >= strip->readable)
                break;
            unpack_cells(cells, from[0] + channel, from[1] + channel, OVERLAPS ? 2 * LANES : strip->readable - channel);
            sums[quad] = dot_cells(sums[quad], cells[0], weights[quad * CELL_PLANES]);
            if (channel + LANES < strip->readable)
                sums[quad + 1] = dot_cells(sums[quad + 1], cells[1], weights[(quad + 1) * CELL_PLANES]);
        }
}

/* Rows of outputs. Taps are `taps_across` in a row of the filter; outputs are `stride_down` and `stride` inputs apart. */
WORD void apart_strip(const PairsStrip *strip, ptrdiff_t count, int rescaling, const int quads, const int parts)
{
    const ptrdiff_t across = strip->taps_across, down = strip->taps_down, step = strip->stride * strip->x_column;
    /* More channels than there are may be read where another pixel follows. */
    const ptrdiff_t more = quads * LANES / parts - strip->readable;
    const ptrdiff_t to = more <= 0 ? strip->to : more <= strip->x_column ? strip->to - 1 : 0;
    ptrdiff_t taps[APART_TAPS] = {0};
    int8_t *y = strip->y;
    for (ptrdiff_t i = 0, tap = 0; i < down; i++)
        for (ptrdiff_t j = 0; j < across; j++, tap++)
            taps[tap] = i * strip->x_row + j * strip->x_column;
    for (ptrdiff_t row = 0; row < count; row++, y += strip->y_row) {
        const ptrdiff_t top = row * strip->stride_down;
        const int whole = top >= strip->first_row && top + down <= strip->end_row;
        const int8_t *x = strip->x + top * strip->x_row;
        int8_t *at_y = y;
        for (ptrdiff_t column = 0, left = 0; column < strip->columns; column++, left += strip->stride, x += step, at_y += strip->y_column) {
            const int8_t *const at[2] = {x, x + strip->x_apart};
            vi32 sums[QUADS];
            vbytes bytes;
            if (whole && left >= strip->from && left + across <= to)
                apart_sums(strip, at, taps, sums, quads, parts);
            else
                apart_edge(strip, top, left, sums);
            if (rescaling == OTHERWISE) {
                pairs_otherwise(strip, sums, &bytes, 1);
            } else {
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    pairs_rescale(sums + quad, strip->block, quad, 1);
                bytes = pairs_bytes(strip, low_words(sums[0], sums[1]), low_words(sums[2], sums[3]));
            }
            pairs_clamp(strip, &bytes, 1);
            if (parts == 2)
                store_halves(at_y, at_y + strip->y_apart, bytes);
            else
                store_bytes(at_y, bytes, strip->stored);
        }
    }
}

#define APART(name, quads, parts) \
    static __attribute__((noinline, noclone, unused)) void name(const PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        apart_strip(strip, count, rescaling, quads, parts); \
    }
APART(apart_whole, QUADS, 1)
APART(apart_three, QUADS - 1, 1)
APART(apart_halves, QUADS, 2)

#define APART_KERNEL(rescaling) \
    static __attribute__((unused)) void apart_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        if (strip->parts == 2) \
            apart_halves(strip, count, rescaling); \
        else if (!OVERLAPS && strip->stored <= (QUADS - 1) * LANES) \
            apart_three(strip, count, rescaling); \
        else \
            apart_whole(strip, count, rescaling); \
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

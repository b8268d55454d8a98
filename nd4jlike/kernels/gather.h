/* int8 filters that step over pixels of few channels: the taps of each output are gathered from rows of bytes.
 *
 * Rows of the input are copied first, with zero points around the image, so nothing after that knows a border. Lanes of a vector of sums are the channels of a
 * pixel, or of a few that follow it; a shuffle brings each lane its neighbouring taps of a row. Four vectors at a time are rescaled and stored, in a row of
 * results that is copied to the output.
 */
#ifndef ND4JLIKE_GATHER_H
#define ND4JLIKE_GATHER_H

#include "strip.h"

#if WINDOWS || VECTOR_BYTES == 32

/* Taps that a lane takes at a time; bytes of a row that they may come from. Vectors of a pixel at most, and taps in a row, or of one column,
 * for which this is the fastest. */
enum {
    GATHERS = 1, GATHER_TAPS = WINDOWS ? 4 : 2, GATHER_BYTES = WINDOWS ? 64 : 16, GATHER_BLOCKS = WINDOWS ? 1 : 4, GATHER_LEAST = WINDOWS ? 3 : 1,
    GATHER_WIDTH = WINDOWS ? 4 : 64
};

#if WINDOWS
/* Runs of 2 bytes in any order, then bytes within 16. */
WORD vi32 gather_cells(const int8_t *row, const int8_t *next, const vi32 *how, const int beside)
{
    (void)next, (void)beside;
    return (vi32)bytes_of_twos(load_bytes(row, VECTOR_BYTES), (vbytes)how[0], (vbytes)how[1]);
}
#else
/* Bytes within 16; where pixels are too far apart for that, those of lanes that are channels side by side. */
WORD vi32 gather_cells(const int8_t *row, const int8_t *next, const vi32 *how, const int beside) { return pick_bytes(row, next, how, beside); }
#endif

/* Where lanes find their taps, `lanes` of them with `outputs` a pixel, from output channel `first` on: `step` bytes from pixel to pixel, `apart` from tap to tap.
 * Whether one shuffle brings them. */
static __attribute__((cold, noinline)) int gather_order(
    int lanes, int outputs, int multiplier, int first, ptrdiff_t step, ptrdiff_t apart, ptrdiff_t taps, int8_t *how)
{
    memset(how, 0, 2 * VECTOR_BYTES);
    for (int lane = 0; lane < lanes; lane++) {
        int8_t *twos = how + lane / 4 * 16, *bytes = how + VECTOR_BYTES;
        for (int tap = 0; tap < GATHER_TAPS && tap < taps; tap++) {
            const ptrdiff_t place = lane / outputs * step + tap * apart + (first + lane % outputs) / multiplier - first / multiplier;
            int i = 0;
            if (place >= GATHER_BYTES)
                return 0;
            if (!WINDOWS) {
                how[lane * GATHER_TAPS + tap] = (int8_t)place;
                continue;
            }
            /* Which two bytes are there, so far, is in the bytes of `twos`: one more than it, 0 for none. */
            while (i < 8 && twos[2 * i] && twos[2 * i] != place / 2 + 1)
                i++;
            if (i == 8)
                return 0;
            twos[2 * i] = (int8_t)(place / 2 + 1);
            bytes[lane * 4 + tap] = (int8_t)(2 * i + place % 2);
        }
    }
    for (int i = 0; WINDOWS && i < VECTOR_BYTES; i += 2)
        how[i] -= how[i] > 0;
    return 1;
}

/* Rows of results: those of the vectors from `strip->y` on, `strip->y_apart` bytes apart. A row of the filter has `strip->taps_across` cells. */
WORD void gather_row(const PairsStrip *strip, ptrdiff_t rows, const int rescaling, const int beside, const ptrdiff_t across)
{
    const vi32 *const block = strip->block, *const first = block + QUADS * PAIRS_CONSTANTS, *const how = first + strip->weights;
    const ptrdiff_t step = strip->x_apart, plane = strip->x_column * GATHER_TAPS, apart = strip->y_apart, next = strip->x_column;
    const ptrdiff_t row_weights = strip->cells;
    const char *const *const entries = strip->entries, *const *const end = entries + rows;
    const vi32 bias = block[QUADS * PAIRS_BIAS];
    int8_t *y = strip->y;
    for (ptrdiff_t count = strip->columns, at = strip->between; count > 0; count -= 4, at += 4 * step, y += 4 * apart) {
        vi32 sums[4];
        vbytes bytes;
        const vi32 *weights = first;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sums[i] = bias;
#pragma GCC unroll 1
        for (const char *const *entry = entries; entry < end; entry++, weights += row_weights) {
            const int8_t *x = (const int8_t *)*entry + at;
#pragma GCC unroll 2
            for (ptrdiff_t cell = 0; cell < across; cell++, x += plane) {
                const vi32 w = weights[cell / CELL_PLANES * QUADS * CELL_PLANES + cell % CELL_PLANES];
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                    sums[i] = dot_in_order(sums[i], gather_cells(x + i * step, x + i * step + next, how, beside), w);
            }
        }
        if (rescaling == OTHERWISE) {
            /* Of its own: what a function is given is in memory. */
            vi32 given[4] = {sums[0], sums[1], sums[2], sums[3]};
            vbytes results;
            pairs_otherwise(strip, given, &results, 1);
            bytes = results;
        } else {
            pairs_rescale(sums, block, 0, 4);
            bytes = pairs_bytes(strip, low_words(sums[0], sums[1]), low_words(sums[2], sums[3]));
            if (UNORDERED)
                bytes = in_order(bytes, strip->order);
        }
        pairs_clamp(strip, &bytes, 1);
        store_quarters(y, apart, bytes);
    }
}

/* One text for all ways of rescaling, which is smaller; up to four taps in a row have one of their own where a cell has two. */
static __attribute__((noinline, noclone)) void gather_any(const PairsStrip *strip, ptrdiff_t rows, int rescaling)
{
    gather_row(strip, rows, rescaling, strip->wide, WINDOWS ? 1 : strip->taps_across);
}
#define GATHER_KERNEL(name, ...) \
    static void gather_##name(PairsStrip *strip, ptrdiff_t rows) { __VA_ARGS__; }
GATHER_KERNEL(OTHERWISE, gather_any(strip, rows, OTHERWISE))
GATHER_KERNEL(BY_SCALE, gather_any(strip, rows, BY_SCALE))
#if WINDOWS
WORD PairsKernel gather_kernel(int rescaling, int few, int beside)
{
    (void)few, (void)beside;
    return rescaling == OTHERWISE ? gather_OTHERWISE : gather_BY_SCALE;
}
#else
GATHER_KERNEL(FOUR, gather_row(strip, rows, BY_SCALE, 0, 2))
GATHER_KERNEL(BESIDE, gather_row(strip, rows, BY_SCALE, 1, 2))
WORD PairsKernel gather_kernel(int rescaling, int few, int beside)
{
    return rescaling == OTHERWISE ? gather_OTHERWISE : !few ? gather_BY_SCALE : beside ? gather_BESIDE : gather_FOUR;
}
#endif

/* A row's bytes as what products take. */
static __attribute__((noinline)) void gather_copy(int8_t *target, const int8_t *source, ptrdiff_t count, int flip)
{
    const vbytes bits = splat_i8(INPUT_OFFSET ^ flip);
    for (; count > 0; count -= VECTOR_BYTES, source += VECTOR_BYTES, target += VECTOR_BYTES)
        store_bytes(target, load_bytes(source, count) ^ bits, count);
}

#else

enum { GATHERS = 0, GATHER_TAPS = 1, GATHER_BLOCKS = 0, GATHER_LEAST = 0, GATHER_WIDTH = 0 };
WORD int gather_order(int lanes, int outputs, int multiplier, int first, ptrdiff_t step, ptrdiff_t apart, ptrdiff_t taps, int8_t *how)
{
    return (void)lanes, (void)outputs, (void)multiplier, (void)first, (void)step, (void)apart, (void)taps, (void)how, 0;
}
WORD PairsKernel gather_kernel(int rescaling, int few, int beside) { return (void)rescaling, (void)few, (void)beside, (PairsKernel)0; }
WORD void gather_copy(int8_t *target, const int8_t *source, ptrdiff_t count, int flip) { (void)target, (void)source, (void)count, (void)flip; }

#endif
#endif

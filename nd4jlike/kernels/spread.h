/* int8 filters of which several read the same channel, few channels side by side, where a product takes four taps of a row.
 *
 * A row of the input becomes cells once: the four neighbouring taps of each output column and channel, in the order of the outputs, however the filter
 * steps. So each cell is next to that of the next channel, or column. Of 8 or 16 filters, four of them are loaded over and over; of other even numbers,
 * lanes pick theirs, two lanes one.
 */
#ifndef ND4JLIKE_SPREAD_H
#define ND4JLIKE_SPREAD_H

#include "lines.h"

#if WINDOWS

/* The cells of a row of `bytes` bytes from byte `at` on, `count` vectors of them, `x_step` bytes of the row and `step` bytes of cells apart. Beyond the row
 * its bytes are those of `constants`, which also say what words are brought together, and which bytes of them make cells. */
static __attribute__((noinline)) void spread_cells(
    const int8_t *row, ptrdiff_t at, ptrdiff_t bytes, ptrdiff_t count, ptrdiff_t x_step, ptrdiff_t step, const vbytes *constants, int flip, char *target)
{
    const vbytes offset = splat_i8(INPUT_OFFSET ^ flip), outside = constants[0], words = constants[1], taps = constants[2];
    for (; count > 0; count--, at += x_step, target += step) {
        const int inside = at >= 0 && at + VECTOR_BYTES <= bytes;
        const vbytes value = inside ? load_bytes(row + at, VECTOR_BYTES) : load_bytes_between(row + at, -at, bytes - at, outside);
        *(vbytes *)target = bytes_of_words(value ^ offset, words, taps);
    }
}

/* `rows` rows of outputs, `places` vectors of them at a time; each output has `entries` cells, 3 where they are `few`. */
WORD void spread_outputs(
    const PairsStrip *strip, ptrdiff_t rows, const ptrdiff_t entries, const int few, const int places, const int fours, const int rescaling)
{
    const vi32 *const block = strip->block, *const weights = block + QUADS * PAIRS_CONSTANTS, *const picks = weights + QUADS * entries;
    const vf32 *const constants = (const vf32 *)block;
    const ptrdiff_t first = ((const int *)(picks + 2))[0], apart = ((const int *)(picks + 2))[1];
    const ptrdiff_t step = strip->width, y_step = strip->y_column, less = strip->less;
    const vbytes order = *strip->twos;
    const int scaled = rescaling == BY_SCALE ? *(const int *)(block + QUADS * PAIRS_SCALED) : 0, bounded = strip->bounded;
    const char *const *cells_of_row = strip->entries;
    int8_t *y_row = strip->y;
    vi32 biases[QUADS], kept[QUADS * 3];
    vf32 scales[QUADS];
#pragma GCC unroll 4
    for (int quad = 0; quad < QUADS; quad++) {
        biases[quad] = block[QUADS * PAIRS_BIAS + quad];
        scales[quad] = constants[QUADS * PAIRS_SCALE + quad];
        __asm__("" : "+v"(biases[quad]), "+v"(scales[quad]));
    }
    if (few)
#pragma GCC unroll 12
        for (int i = 0; i < QUADS * 3; i++) {
            kept[i] = weights[i];
            __asm__("" : "+v"(kept[i]));
        }
    for (; rows > 0; rows--, cells_of_row += entries, y_row += strip->y_row) {
        ptrdiff_t at = first, stored = strip->stored;
        int8_t *y = y_row;
        const char *kept_at[3];
        if (few)
            for (int i = 0; i < 3; i++)
                kept_at[i] = cells_of_row[i];
        for (ptrdiff_t count = strip->columns; count > 0; count -= places, at += places * step) {
            const ptrdiff_t next = count > 1 ? step : 0;
            vi32 sums[2][QUADS], cells[QUADS];
            vbytes bytes[2];
#pragma GCC unroll 2
            for (int place = 0; place < places; place++)
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    sums[place][quad] = biases[quad];
#pragma GCC unroll 3
            for (ptrdiff_t entry = 0; entry < entries; entry++)
#pragma GCC unroll 2
                for (int place = 0; place < places; place++) {
                    const char *cell = (few ? kept_at[entry] : cells_of_row[entry]) + at + place * next;
                    cells[0] = cells[1] = fours ? four_cells(cell) : pick_near(cell, picks[0]);
                    cells[2] = cells[3] = fours ? four_cells(cell + apart) : pick_near(cell + apart, picks[1]);
#pragma GCC unroll 4
                    for (int quad = 0; quad < QUADS; quad++)
                        sums[place][quad] = dot_cells(sums[place][quad], cells[quad], few ? kept[entry * QUADS + quad] : weights[entry * QUADS + quad]);
                }
            if (rescaling == OTHERWISE)
                pairs_otherwise(strip, sums[0], bytes, places);
#pragma GCC unroll 2
            for (int place = 0; place < places; place++) {
                vi32 *sum = sums[place];
                if (rescaling == OTHERWISE) {
                    bytes[place] = in_twos(bytes[place]);
                } else {
#pragma GCC unroll 4
                    for (int quad = 0; quad < QUADS; quad++)
                        if (rescaling == BY_SPLIT)
                            sum[quad] = bits_on_two_lines(
                                sum[quad], scales[quad], constants[QUADS * PAIRS_OFFSET + quad], constants[QUADS * PAIRS_ZERO + quad],
                                constants[QUADS * PAIRS_MOVED + quad], constants[QUADS * PAIRS_BELOW + quad]);
                        else
                            sum[quad] = bits_on_line(sum[quad], scales[quad], constants[QUADS * PAIRS_OFFSET + quad]);
                    if (__builtin_expect(scaled, 0))
#pragma GCC unroll 4
                        for (int quad = 0; quad < QUADS; quad++)
                            if (scaled & 1 << quad)
                                sum[quad] = (vi32)((vf32)sum[quad] + splat_f32(scale_bits()));
                    bytes[place] = pack_i16(low_words(sum[0], sum[1]), low_words(sum[2], sum[3]));
                }
                bytes[place] = in_order_of_twos(bytes[place], order);
                if (__builtin_expect(bounded, 0))
                    bytes[place] = clamp_i8(bytes[place], strip->low, strip->high) ^ strip->y_flip;
                if (place == 0 || count > 1)
                    store_bytes(y, bytes[place], stored);
                y += y_step;
                stored -= less;
            }
        }
    }
}

#define SPREAD_KERNEL(name, entries, few, places, fours, rescaling) \
    static void spread_##name(PairsStrip *strip, ptrdiff_t rows) { spread_outputs(strip, rows, entries, few, places, fours, rescaling); }
#define SPREAD_KERNELS(rescaling) \
    SPREAD_KERNEL(FOURS_3_##rescaling, 3, 1, 1, 1, rescaling) \
    SPREAD_KERNEL(FOURS_##rescaling, strip->cells, 0, 2, 1, rescaling) \
    SPREAD_KERNEL(PICKS_3_##rescaling, 3, 1, 1, 0, rescaling) \
    SPREAD_KERNEL(PICKS_##rescaling, strip->cells, 0, 2, 0, rescaling)
SPREAD_KERNELS(BY_SCALE)
SPREAD_KERNELS(BY_SPLIT)
SPREAD_KERNEL(OTHERWISE, strip->cells, 0, 1, 0, OTHERWISE)
#define SPREAD_CHOICES(rescaling) \
    { \
        {spread_PICKS_##rescaling, spread_PICKS_3_##rescaling}, {spread_FOURS_##rescaling, spread_FOURS_3_##rescaling} \
    }

WORD PairsKernel spread_kernel(int rescaling, int fours, ptrdiff_t entries)
{
    static const PairsKernel table[2][2][2] = {SPREAD_CHOICES(BY_SCALE), SPREAD_CHOICES(BY_SPLIT)};
    return rescaling == OTHERWISE ? spread_OTHERWISE : table[rescaling == BY_SPLIT][fours][entries == 3];
}

#else

WORD void spread_cells(
    const int8_t *row, ptrdiff_t at, ptrdiff_t bytes, ptrdiff_t count, ptrdiff_t x_step, ptrdiff_t step, const vbytes *constants, int flip, char *target)
{
    (void)row, (void)at, (void)bytes, (void)count, (void)x_step, (void)step, (void)constants, (void)flip, (void)target;
}
WORD PairsKernel spread_kernel(int rescaling, int fours, ptrdiff_t entries)
{
    (void)rescaling, (void)fours, (void)entries;
    return 0;
}

#endif
#endif

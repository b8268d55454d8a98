/* int8 windows of 3x3, where a product takes four taps of all channels of a vector: they slide over the columns, and nothing is kept but registers.
 *
 * A column comes in as four rows, interleaved to cells that serve two rows of outputs; the cells of three columns stay in registers, which take turns. Where
 * the filter steps by 2, one row of outputs takes three rows, two columns at a time: the cells of two columns of two rows, twice, and those of four columns of
 * the third row.
 */
#ifndef ND4JLIKE_WINDOW_H
#define ND4JLIKE_WINDOW_H

#include "pairs.h"

/* Lanes: a vector of channels side by side, the left and the right half of the columns, or fewer channels. */
enum { WHOLE, HALVES, PART };

#if WINDOWS

/* What slides. Places of columns are in bytes. */
typedef struct {
    const PairsStrip *strip;
    /* The input rows; `blank` where one is outside the image. */
    const int8_t *at[GROUP], *blank;
    /* From a column to the next, to that of the upper half of the lanes; where both halves exist, from where on and how far; each half; the end. */
    ptrdiff_t step, apart, from, width, first[2], length[2], end, stored, y_row;
    vbytes offset, outside;
} Window;

WORD vbytes window_bytes(const Window *window, const int8_t *lower, const int8_t *upper, const int kind)
{
    return kind == WHOLE ? load_bytes(lower, VECTOR_BYTES) : kind == HALVES ? load_halves(lower, upper) : load_part_bytes(lower, window->stored);
}

/* `count` columns of `inputs` rows, from `place` on. */
WORD void window_load(const Window *window, ptrdiff_t place, vbytes loaded[][2], const int inputs, const int count, const int kind)
{
    if (__builtin_expect((size_t)(place - window->from) < (size_t)window->width, 1)) {
#pragma GCC unroll 2
        for (int i = 0; i < count; i++, place += window->step)
#pragma GCC unroll 4
            for (int row = 0; row < inputs; row++) {
                const int8_t *at = window->at[row] + place;
                loaded[row][i] = window_bytes(window, at, at + window->apart, kind) ^ window->offset;
            }
    } else
#pragma GCC unroll 2
        for (int i = 0; i < count; i++, place += window->step) {
            int lower = (kind == HALVES || count > 1) && (size_t)(place - window->first[0]) < (size_t)window->length[0];
            int upper = kind == HALVES && (size_t)(place - window->first[1]) < (size_t)window->length[1];
#pragma GCC unroll 4
            for (int row = 0; row < inputs; row++) {
                const int8_t *at = window->at[row] + place;
                if (kind == HALVES)
                    loaded[row][i] = load_halves(lower ? at : window->blank, upper ? at + window->apart : window->blank) ^ window->offset;
                else if (lower)
                    loaded[row][i] = window_bytes(window, at, at, kind) ^ window->offset;
                else
                    loaded[row][i] = window->outside;
            }
        }
}

/* The outputs of `rows` rows at three products' cells; weights lie for `packed` rows. */
WORD void window_outputs(
    const Window *window, const vi32 *first, const vi32 *second, const vi32 *third, int8_t *y, const int rows, const int packed, const int kind,
    const int rescaling)
{
    const vi32 *block = window->strip->block, *const cells[] = {first, second, third};
    const vf32 *scales = (const vf32 *)block + QUADS * PAIRS_SCALE, *offsets = (const vf32 *)block + QUADS * PAIRS_OFFSET;
    vi32 sums[2 * QUADS];
    vi16 words[2][2];
    vbytes bytes[2];
#pragma GCC unroll 4
    for (int quad = 0; quad < QUADS; quad++) {
        const vi32 *weights = block + QUADS * PAIRS_CONSTANTS + quad * 3 * packed;
        vi32 bias = block[QUADS * PAIRS_BIAS + quad];
        vf32 scale = scales[quad], offset = offsets[quad];
        /* One load each. */
        __asm__("" : "+v"(bias), "+v"(scale), "+v"(offset));
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++)
            sums[row * QUADS + quad] = bias;
#pragma GCC unroll 3
        for (int tap = 0; tap < 3; tap++)
#pragma GCC unroll 2
            for (int row = 0; row < rows; row++)
                sums[row * QUADS + quad] = dot_cells(sums[row * QUADS + quad], cells[tap][quad], weights[tap * packed + row]);
        if (rescaling == OTHERWISE)
            continue;
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++) {
            vi32 *sum = &sums[row * QUADS + quad];
            *sum = rescaling == BY_LINE ? bits_on_line(*sum, scale, offset) : bits_on_scale(*sum, scale, offset);
            if (quad % 2)
                words[row][quad / 2] = low_words(sum[-1], sum[0]);
        }
    }
    if (rescaling == OTHERWISE)
        pairs_otherwise(window->strip, sums, bytes, rows);
    else
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++)
            bytes[row] = in_fours(pack_i16(words[row][0], words[row][1]));
    if (window->strip->bounded)
#pragma GCC unroll 2
        for (int row = 0; row < rows; row++)
            bytes[row] = at_most_i8(bytes[row], window->strip->high) ^ window->strip->y_flip;
    /* The first row last: where there is no second one, both are at one place. */
#pragma GCC unroll 2
    for (int row = rows - 1; row >= 0; row--) {
        int8_t *at = row ? y + window->y_row : y;
        if (kind == WHOLE)
            store_bytes(at, bytes[row], VECTOR_BYTES);
        else if (kind == HALVES)
            store_halves(at, at + window->strip->y_apart, bytes[row]);
        else
            store_part_bytes(at, bytes[row], window->stored);
    }
}

/* `rows` rows of outputs from input row `row` on. */
WORD void window_row(Window *window, ptrdiff_t row, int8_t *y, const int rows, const int stride, const int kind, const int rescaling)
{
    const PairsStrip *strip = window->strip;
    const int inputs = rows + 2;
    ptrdiff_t place = 2 * window->step;
    vbytes loaded[GROUP][2], d[2], e[2];
    vi32 a[QUADS], b[QUADS], c[QUADS];
    for (int i = 0; i < inputs; i++, row++)
        window->at[i] = row >= strip->first_row && row < strip->end_row ? strip->x + row * strip->x_row : window->blank;
#define ONE_COLUMN(place, cells) \
    window_load(window, place, loaded, inputs, 1, kind); \
    quads_of(cells, loaded[0][0], loaded[1][0], loaded[2][0], loaded[inputs - 1][0]);
#define TWO_COLUMNS(place, cells, third) \
    window_load(window, place, loaded, inputs, 2, kind); \
    squares_of(cells, third, loaded[0], loaded[1], loaded[2]);
#define NEXT_OUTPUTS(first, second, third) \
    window_outputs(window, first, second, third, y, rows, stride == 1 ? 2 : 1, kind, rescaling); \
    y += strip->y_column; \
    place += stride * window->step; \
    if (place == window->end) \
        break;
    if (stride == 1) {
        ONE_COLUMN(0, a)
        ONE_COLUMN(window->step, b)
        for (;;) {
            ONE_COLUMN(place, c)
            NEXT_OUTPUTS(a, b, c)
            ONE_COLUMN(place, a)
            NEXT_OUTPUTS(b, c, a)
            ONE_COLUMN(place, b)
            NEXT_OUTPUTS(c, a, b)
        }
    } else {
        TWO_COLUMNS(0, a, d)
        for (;;) {
            TWO_COLUMNS(place, b, e)
            join_columns(c, d, e);
            NEXT_OUTPUTS(a, b, c)
            TWO_COLUMNS(place, a, d)
            join_columns(c, e, d);
            NEXT_OUTPUTS(b, a, c)
        }
    }
#undef ONE_COLUMN
#undef TWO_COLUMNS
#undef NEXT_OUTPUTS
}

WORD void window_strip(const PairsStrip *strip, ptrdiff_t count, const int stride, const int kind, const int rescaling)
{
    const int rows = stride == 1 ? 2 : 1;
    const ptrdiff_t step = strip->x_column;
    Window window = {
        .strip = strip, .blank = strip->blank, .step = step, .apart = strip->x_apart, .from = strip->from * step,
        .width = largest(strip->to - strip->from - (stride - 1), 0) * step, .end = (strip->columns * stride + 2) * step,
        .stored = least(strip->stored, VECTOR_BYTES), .y_row = strip->y_row, .offset = splat_i8(INPUT_OFFSET ^ strip->flip),
    };
    window.outside = load_bytes(strip->blank, VECTOR_BYTES) ^ window.offset;
    for (int half = 0; half < 2; half++) {
        window.first[half] = strip->first[half] * step;
        window.length[half] = largest(strip->end[half] - strip->first[half], 0) * step;
    }
    int8_t *y = strip->y;
    ptrdiff_t row = 0;
    /* One row left: a tile of one where that pays. */
    for (; row + (kind == WHOLE ? rows : 1) <= count; row += rows, y += rows * strip->y_row) {
        if (row + rows > count)
            window.y_row = 0;
        window_row(&window, row * stride, y, rows, stride, kind, rescaling);
    }
    if (kind == WHOLE && row < count)
        window_row(&window, row * stride, y, 1, stride, kind, rescaling);
}

#define WINDOW_KERNEL(stride, kind, rescaling) \
    static void window_##stride##_##kind##_##rescaling(PairsStrip *strip, ptrdiff_t count) { window_strip(strip, count, stride, kind, rescaling); }
#define WINDOW_KERNELS(stride, kind) WINDOW_KERNEL(stride, kind, BY_LINE) WINDOW_KERNEL(stride, kind, BY_SCALE)
WINDOW_KERNELS(1, WHOLE)
WINDOW_KERNELS(1, HALVES)
WINDOW_KERNELS(1, PART)
WINDOW_KERNELS(2, WHOLE)
WINDOW_KERNELS(2, HALVES)
WINDOW_KERNELS(2, PART)
WINDOW_KERNEL(1, HALVES, OTHERWISE)
WINDOW_KERNEL(1, PART, OTHERWISE)
WINDOW_KERNEL(2, HALVES, OTHERWISE)
WINDOW_KERNEL(2, PART, OTHERWISE)

#define WINDOW_CHOICE(stride, kind, other) {window_##stride##_##other##_OTHERWISE, window_##stride##_##kind##_BY_LINE, window_##stride##_##kind##_BY_SCALE}
#define WINDOW_CHOICES(stride) {WINDOW_CHOICE(stride, WHOLE, PART), WINDOW_CHOICE(stride, HALVES, HALVES), WINDOW_CHOICE(stride, PART, PART)}

WORD PairsKernel window_kernel(int rescaling, int stride, int kind)
{
    static const PairsKernel table[2][3][3] = {WINDOW_CHOICES(1), WINDOW_CHOICES(2)};
    return table[stride - 1][kind][rescaling];
}

#else

WORD PairsKernel window_kernel(int rescaling, int stride, int kind)
{
    (void)rescaling, (void)stride, (void)kind;
    return 0;
}

#endif
#endif

/* int8 windows of 3x3, where a product takes four taps of all channels of a vector: they slide over the columns, whose cells stay in registers.
 *
 * Two rows of the input come in at a time, column by column; what lies above is in first-level cache, where the newer rows take its place. Where the filter
 * steps by 1, that is a pair of rows, too: both make cells of four rows, which serve two rows of outputs. Where it steps by 2, it is one row, and two columns
 * are taken at a time: their cells are the three rows of the first one and the lowest of the second one, whose other two rows are a product of their own.
 * Reading memory limits this as much as arithmetic does: so the constants of all sums stay in registers, too, and instructions are named where a compiler
 * copies more than it has to.
 */
#ifndef ND4JLIKE_WINDOW_H
#define ND4JLIKE_WINDOW_H

#include "pairs.h"

/* Lanes: a vector of channels side by side; the left and the right half of the columns, of half as many channels, or four quarters of them; fewer channels. */
enum { WHOLE, HALVES, PART, QUARTERS };
#define PARTED (kind == HALVES || kind == QUARTERS)
/* Of a column: two rows, or one. */
#define RING_STEP (stride == 1 ? PAIR_BYTES : VECTOR_BYTES)

#if WINDOWS

/* What slides over two rows and the pairs of the rows above: of those, all parts have the columns `from` to `stop`. */
typedef struct {
    const PairsStrip *strip;
    char *ring, *from, *stop;
    ptrdiff_t stored, y_row;
    int scaled;
    vbytes offset, outside;
} Window;

/* `last`: of parts, the last one. */
WORD vbytes window_bytes(const int8_t *x, ptrdiff_t apart, const int8_t *last, ptrdiff_t stored, const int kind)
{
    return kind == WHOLE ? load_bytes(x, VECTOR_BYTES) : kind == HALVES ? load_halves(x, last)
         : kind == QUARTERS ? load_quarters(x, x + apart, x + 2 * apart, last) : load_part_bytes(x, stored);
}

/* The same at a column that some parts have. */
WORD vbytes window_edge(const PairsStrip *strip, const int8_t *x, ptrdiff_t apart, ptrdiff_t column, const int kind)
{
    const int8_t *at[4];
    for (int i = 0; i < (kind == HALVES ? 2 : 4); i++)
        at[i] = column >= strip->first[i] && column < strip->end[i] ? x + i * apart : strip->blank;
    return kind == HALVES ? load_halves(at[0], at[1]) : load_quarters(at[0], at[1], at[2], at[3]);
}

/* Variables of a row. */
#define WINDOW_LOCALS(window, row) \
    const PairsStrip *const strip = (window)->strip; \
    const PairRows x_rows = pair_rows(strip, row); \
    const ptrdiff_t x_step0 = x_rows.columns[0], x_step1 = x_rows.columns[1], apart0 = x_rows.aparts[0], apart1 = x_rows.aparts[1]; \
    const ptrdiff_t stored = (window)->stored; \
    const vbytes offset = (window)->offset; \
    const int8_t *x0 = x_rows.at[0], *x1 = x_rows.at[1]; \
    /* What the next row of outputs reads and writes, far away. */ \
    const ptrdiff_t x_ahead = 2 * strip->x_row; \
    char *ring = (window)->ring, *const from = (window)->from, *const stop = (window)->stop;

/* Into the second-level cache: the first one may have no room for pixels that lie a power of two apart. */
#define WINDOW_FETCH(at) \
    if (ahead) \
        __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)(at)));
/* Whether the next column exists, in all parts. Where it does not, in none, all bytes are the same. */
#define WINDOW_INSIDE (ring >= from && ring < stop)
/* The same beyond the columns on the left of the first output. */
#define WINDOW_LEFT_OF_END __builtin_expect(ring < stop, 1)

/* The next column of both rows. Where not all parts have it, either `some` do, or all but the last one. */
#define WINDOW_BYTES(upper, lower, inside, some) \
    if (!PARTED || (inside)) { \
        upper = window_bytes(x0, apart0, x0 + (kind == HALVES ? 1 : 3) * apart0, stored, kind) ^ offset; \
        lower = window_bytes(x1, apart1, x1 + (kind == HALVES ? 1 : 3) * apart1, stored, kind) ^ offset; \
        WINDOW_FETCH(x0 + x_ahead) \
        WINDOW_FETCH(x1 + x_ahead) \
        __asm__("" : "+v"(upper), "+v"(lower)); \
    } else { \
        const ptrdiff_t column = (ring - strip->pairs[0]) / RING_STEP; \
        upper = some ? window_edge(strip, x0, apart0, column, kind) : window_bytes(x0, apart0, strip->blank, stored, kind); \
        lower = some ? window_edge(strip, x1, apart1, column, kind) : window_bytes(x1, apart1, strip->blank, stored, kind); \
        upper ^= offset; \
        lower ^= offset; \
        __asm__ volatile("" : "+v"(upper), "+v"(lower)); \
    }
#define WINDOW_STEP \
    x0 += x_step0; \
    x1 += x_step1; \
    ring += RING_STEP; \
    /* One after another, not from a common origin. */ \
    __asm__("" : "+r"(x0), "+r"(x1), "+r"(ring));

/* Its cells, where the filter steps by 1: the newer pair, and the one above, which it replaces. QUADS 0 and 2 have the even channels, the one above first,
 * 1 and 3 the odd ones, the newer pair first: then narrowing leaves the channels in order. */
#define WINDOW_PAIR(upper, lower, pair) \
    __asm__("vpunpcklbw %3, %2, %0\n\tvpunpckhbw %3, %2, %1" : "=&v"(pair[0]), "=v"(pair[1]) : "v"(upper), "v"(lower));
#define WINDOW_CELLS(window, cells, inside, some) \
    if ((inside) || (PARTED && ring < last)) { \
        vbytes upper, lower, pair[2]; \
        WINDOW_BYTES(upper, lower, inside, some) \
        WINDOW_PAIR(upper, lower, pair) \
        __asm__("vmovdqu64 (%6), %0\n\tvmovdqu64 (%6), %1\n\tvmovdqu64 64(%6), %2\n\tvmovdqu64 64(%6), %3\n\t" \
                "vpshufb %7, %4, %0%{%8%}\n\tvpshufb %7, %4, %1%{%9%}\n\tvpshufb %7, %5, %2%{%8%}\n\tvpshufb %7, %5, %3%{%9%}\n\t" \
                "vmovdqu64 %4, (%6)\n\tvmovdqu64 %5, 64(%6)" \
                : "=&v"(cells[0]), "=&v"(cells[1]), "=&v"(cells[2]), "=&v"(cells[3]) \
                : "v"(pair[0]), "v"(pair[1]), "r"(ring), "v"(swapped), "Yk"(odd), "Yk"(even) \
                : "memory"); \
    } else \
        __asm__ volatile("vmovdqu64 %4, %0\n\tvmovdqu64 %4, %1\n\tvmovdqu64 %4, %2\n\tvmovdqu64 %4, %3" \
                         : "=v"(cells[0]), "=v"(cells[1]), "=v"(cells[2]), "=v"(cells[3]) : "m"((window)->outside)); \
    WINDOW_STEP

/* The next two columns, where it steps by 2: the cells of the first one, the upper two rows of the second one, as words. */
#define WINDOW_COLUMN(upper, lower, inside, some) \
    if ((inside) || (PARTED && ring < last)) { \
        WINDOW_BYTES(upper, lower, inside, some) \
    } else { \
        upper = lower = window->outside; \
        __asm__ volatile("" : "+v"(upper), "+v"(lower)); \
    } \
    WINDOW_STEP
#define WINDOW_TWO(cells, words, first) \
    { \
        char *const above = ring; \
        vbytes upper, lower, next_upper, next_lower; \
        WINDOW_COLUMN(upper, lower, first ? WINDOW_INSIDE : WINDOW_LEFT_OF_END, first) \
        WINDOW_COLUMN(next_upper, next_lower, first ? WINDOW_INSIDE : WINDOW_LEFT_OF_END, first) \
        __asm__("vpunpcklbw (%8), %6, %0\n\tvpunpckhbw (%8), %6, %2\n\tvpunpcklbw %10, %9, %1\n\tvpunpckhbw %10, %9, %3\n\t" \
                "vpunpcklbw 64(%8), %7, %4\n\tvpunpckhbw 64(%8), %7, %5\n\tvmovdqu64 %9, (%8)\n\tvmovdqu64 %10, 64(%8)\n\t" \
                "vmovdqa64 %0, %6\n\tvmovdqa64 %2, %7\n\t" \
                "vpshufb %11, %1, %0%{%12%}\n\tvpshufb %11, %6, %1%{%13%}\n\tvpshufb %11, %3, %2%{%12%}\n\tvpshufb %11, %7, %3%{%13%}" \
                : "=&v"(cells[0]), "=&v"(cells[1]), "=&v"(cells[2]), "=&v"(cells[3]), "=&v"(words[0]), "=&v"(words[1]), "+v"(upper), "+v"(next_upper) \
                : "r"(above), "v"(lower), "v"(next_lower), "v"(swapped), "Yk"(odd), "Yk"(even) \
                : "memory"); \
    }

/* One of the QUADS sums of each row: the bias and the products of the first two columns; later that of the third one, and what makes bytes of the sum.
 * Weights lie for `packed` rows and are read where they are used. */
#define WINDOW_WEIGHT(place) "vpdpbusd %c[weights]+" place "(%[block]), "
#define WINDOW_OPERANDS(quad, column, packed) \
    [block] "r"(block), [bias] "i"((QUADS * PAIRS_BIAS + quad) * VECTOR_BYTES), \
        [weights] "i"((QUADS * PAIRS_CONSTANTS + (quad * 3 + (column)) * (packed)) * VECTOR_BYTES), [step] "i"((packed)*VECTOR_BYTES)
#define WINDOW_BEGIN(quad, a, b) \
    if (rows == 2) \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\tvmovdqa32 %[s], %[t]\n\t" WINDOW_WEIGHT("0") "%[a_], %[s]\n\t" \
                WINDOW_WEIGHT("64") "%[a_], %[t]\n\t" WINDOW_WEIGHT("128") "%[b_], %[s]\n\t" WINDOW_WEIGHT("192") "%[b_], %[t]" \
                : [s] "=&v"(sums[quad]), [t] "=&v"(sums[QUADS + quad]) \
                : [a_] "v"(a[quad]), [b_] "v"(b[quad]), WINDOW_OPERANDS(quad, 0, 2) \
                : "memory"); \
    else \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\t" WINDOW_WEIGHT("0") "%[a_], %[s]\n\t" WINDOW_WEIGHT("%c[step]") "%[b_], %[s]" \
                : [s] "=&v"(sums[quad]) \
                : [a_] "v"(a[quad]), [b_] "v"(b[stride == 1 ? quad : quad / 2]), WINDOW_OPERANDS(quad, 0, stride == 1 ? 2 : 1) \
                : "memory");
#define WINDOW_END(quad, c) \
    if (rows == 2) \
        __asm__(WINDOW_WEIGHT("0") "%[c_], %[s]\n\t" WINDOW_WEIGHT("64") "%[c_], %[t]" \
                : [s] "+v"(sums[quad]), [t] "+v"(sums[QUADS + quad]) \
                : [c_] "v"(c[quad]), WINDOW_OPERANDS(quad, 2, 2) \
                : "memory"); \
    else \
        __asm__(WINDOW_WEIGHT("0") "%[c_], %[s]" \
                : [s] "+v"(sums[quad]) \
                : [c_] "v"(c[quad]), WINDOW_OPERANDS(quad, 2, stride == 1 ? 2 : 1) \
                : "memory"); \
    if (rescaling != OTHERWISE) { \
        if (rescaling == BY_SPLIT) { \
            WINDOW_SPLIT(sums[quad], quad) \
            if (rows == 2) \
                WINDOW_SPLIT(sums[QUADS + quad], quad) \
        } else { \
            WINDOW_LINE(sums[quad], quad) \
            if (rows == 2) \
                WINDOW_LINE(sums[QUADS + quad], quad) \
        } \
        if (rescaling == BY_SCALE && rows == 2) \
            __asm__(WINDOW_SKIP WINDOW_ROUND("%[s]") WINDOW_ROUND("%[t]") WINDOW_ADD WINDOW_TO("%[s]") WINDOW_TO("%[t]") ".Lon_line%=:" \
                    : [s] "+v"(sums[quad]), [t] "+v"(sums[QUADS + quad]) : WINDOW_SCALED(quad) : "cc", "memory"); \
        else if (rescaling == BY_SCALE) \
            __asm__(WINDOW_SKIP WINDOW_ROUND("%[s]") WINDOW_ADD WINDOW_TO("%[s]") ".Lon_line%=:" \
                    : [s] "+v"(sums[quad]) : WINDOW_SCALED(quad) : "cc", "memory"); \
        if (quad % 2) { \
            WINDOW_WORDS(sums[quad - 1], sums[quad]); \
            if (rows == 2) \
                WINDOW_WORDS(sums[QUADS + quad - 1], sums[QUADS + quad]); \
        } \
    }
#define WINDOW_LINE(sum, quad) __asm__("vfmadd213ps %2, %1, %0" : "+v"(sum) : "v"(scales[quad]), "v"(offsets[quad]));
#define WINDOW_SPLIT(sum, quad) \
    { \
        vf32 offset_; \
        __mmask16 below; \
        __asm__("vcmpps $1, %c[zero](%[block]), %[s], %[k]\n\tvaddps %c[moved](%[block]), %[s], %[s]%{%[k]%}\n\t" \
                "vblendmps %c[lower](%[block]), %[upper], %[o]%{%[k]%}\n\tvfmadd213ps %[o], %[scale], %[s]" \
                : [s] "+v"(sum), [o] "=&v"(offset_), [k] "=&Yk"(below) \
                : [scale] "v"(scales[quad]), [upper] "v"(offsets[quad]), [block] "r"(block), [zero] "i"((QUADS * PAIRS_ZERO + quad) * VECTOR_BYTES), \
                  [moved] "i"((QUADS * PAIRS_MOVED + quad) * VECTOR_BYTES), [lower] "i"((QUADS * PAIRS_BELOW + quad) * VECTOR_BYTES) \
                : "memory"); \
    }
/* Of a rounded one, the line has made the sum itself: its product with the scale is rounded, then to a whole number, as the rule says. */
#define WINDOW_SKIP "test %[bits], %[scaled]\n\tjz .Lon_line%=\n\ttest %[rounded], %[scaled]\n\tjz .Ladd%=\n\t"
#define WINDOW_ROUND(sum) \
    "vmulps %c[by](%[block]), " sum ", " sum "\n\tvaddps %c[at](%[block]), " sum ", " sum "\n\tvpaddd %c[point](%[block]), " sum ", " sum "\n\t"
#define WINDOW_ADD "jmp .Lon_line%=\n.Ladd%=:\n\t"
#define WINDOW_TO(sum) "vaddps %c[at](%[block]), " sum ", " sum "\n\t"
#define WINDOW_SCALED(quad) \
    [scaled] "r"(scaled), [bits] "i"((1 + ROUNDED) << quad), [rounded] "i"(ROUNDED << quad), [block] "r"(block), \
        [at] "i"((QUADS * PAIRS_ADDED + quad) * VECTOR_BYTES), [by] "i"((QUADS * PAIRS_ROUNDED + quad) * VECTOR_BYTES), \
        [point] "i"((QUADS * PAIRS_SCALED + 1) * VECTOR_BYTES)
#define WINDOW_WORDS(a, b) __asm__("vpshufb %2, %1, %0%{%3%}" : "+v"(a) : "v"(b), "v"(swapped), "Yk"(odd))

/* The outputs at three columns. Most of the products come before the next columns' cells, which take the place of those that are done with, the others after
 * them: so nothing waits for what is just before it. The first row last: where there is no second one, both are at one place. */
#define WINDOW_OUTPUTS(window, a, b, c) \
    { \
        vi32 sums[2 * QUADS]; \
        vbytes bytes[2]; \
        WINDOW_BEGIN(0, a, b) \
        WINDOW_BEGIN(1, a, b) \
        WINDOW_BEGIN(2, a, b) \
        WINDOW_BEGIN(3, a, b) \
        if (stride == 2) { \
            WINDOW_TWO(a, b, 0) \
        } else { \
            WINDOW_CELLS(window, a, WINDOW_LEFT_OF_END, 0) \
        } \
        WINDOW_END(0, c) \
        WINDOW_END(1, c) \
        WINDOW_END(2, c) \
        WINDOW_END(3, c) \
        if (rescaling == OTHERWISE) \
            pairs_otherwise(strip, sums, bytes, rows); \
        for (int i = 0; i < rows && rescaling != OTHERWISE; i++) \
            bytes[i] = pack_i16((vi16)sums[i * QUADS], (vi16)sums[i * QUADS + 2]); \
        for (int i = 0; i < rows && rescaling == OTHERWISE; i++) \
            bytes[i] = in_twos(bytes[i]); \
        for (int i = rows - 1; i >= 0; i--) { \
            int8_t *at = i ? y + y_row : y; \
            if (__builtin_expect(bounded, 0)) \
                bytes[i] = at_most_i8(bytes[i], strip->high) ^ strip->y_flip; \
            WINDOW_FETCH(at + y_ahead) \
            if (kind == WHOLE) \
                store_bytes(at, bytes[i], VECTOR_BYTES); \
            else if (kind == HALVES) \
                store_halves(at, at + strip->y_apart, bytes[i]); \
            else if (kind == QUARTERS) \
                store_quarters(at, strip->y_apart, bytes[i]); \
            else \
                store_part_bytes(at, bytes[i], stored); \
        } \
        y += y_column; \
        __asm__("" : "+r"(y)); \
        if (ring == end) \
            break; \
    }

/* What lies above the first rows. */
WORD void window_first(const Window *window, const int stride, const int kind, const int ahead)
{
    WINDOW_LOCALS(window, 0);
    const char *const last = ring + strip->width * RING_STEP, *const end = stride == 2 ? last + RING_STEP : PARTED ? last : stop;
    vbytes upper, lower, pair[2];
    while (stride == 2 && ring < end) {
        WINDOW_COLUMN(upper, lower, WINDOW_INSIDE, 1)
        ((vbytes *)ring)[-1] = upper;
    }
    if (stride == 1 && !PARTED) {
        x0 += (from - ring) / RING_STEP * x_step0;
        x1 += (from - ring) / RING_STEP * x_step1;
        ring = from;
    }
    while (ring < end) {
        WINDOW_BYTES(upper, lower, WINDOW_INSIDE, 1)
        WINDOW_PAIR(upper, lower, pair)
        ((vbytes *)ring)[0] = pair[0];
        ((vbytes *)ring)[1] = pair[1];
        WINDOW_STEP
    }
}

/* `rows` rows of outputs; the newer rows of the input are `row` and the next one. */
WORD void window_row(
    const Window *window, const vf32 *scales, const vf32 *offsets, ptrdiff_t row, int8_t *y, const int rows, const int stride, const int kind,
    const int rescaling, const int ahead)
{
    WINDOW_LOCALS(window, row);
    const ptrdiff_t y_column = strip->y_column, y_row = window->y_row, y_ahead = rows * strip->y_row;
    const int bounded = strip->bounded;
    /* After the last column, and as many beyond it as an output takes: of those nothing is read. */
    const char *const last = ring + strip->width * RING_STEP, *const end = last + RING_STEP;
    const vi32 *const block = strip->block;
    const vbytes swapped = words_swapped();
    const uint64_t odd = ODD_WORDS, even = ~ODD_WORDS;
    int scaled = window->scaled;
    vi32 a[QUADS], b[QUADS], c[QUADS];
    if (stride == 2) {
        WINDOW_TWO(a, b, 1)
        for (;;)
            WINDOW_OUTPUTS(window, a, b, a)
    } else {
        WINDOW_CELLS(window, a, WINDOW_INSIDE, 1)
        WINDOW_CELLS(window, b, WINDOW_INSIDE, 1)
        WINDOW_CELLS(window, c, WINDOW_LEFT_OF_END, 0)
        for (;;) {
            WINDOW_OUTPUTS(window, a, b, c)
            WINDOW_OUTPUTS(window, b, c, a)
            WINDOW_OUTPUTS(window, c, a, b)
        }
    }
}

WORD void window_strip(const PairsStrip *strip, ptrdiff_t count, const int stride, const int kind, const int rescaling, const int ahead)
{
    const int rows = stride == 1 ? 2 : 1;
    Window window = {
        .strip = strip, .ring = strip->pairs[0], .from = strip->pairs[0] + strip->from * RING_STEP,
        .stop = strip->pairs[0] + largest(least(strip->to, strip->width), strip->from) * RING_STEP,
        .stored = least(strip->stored, VECTOR_BYTES), .y_row = strip->y_row,
        .scaled = *(const int *)(strip->block + QUADS * PAIRS_SCALED), .offset = splat_i8(INPUT_OFFSET ^ strip->flip),
    };
    int8_t *y = strip->y;
    ptrdiff_t row = 0;
    vf32 scales[QUADS], offsets[QUADS];
#pragma GCC unroll 4
    for (int quad = 0; quad < QUADS; quad++) {
        __asm__("vmovups %1, %0" : "=v"(scales[quad]) : "m"(strip->block[QUADS * PAIRS_SCALE + quad]));
        __asm__("vmovups %1, %0" : "=v"(offsets[quad]) : "m"(strip->block[QUADS * PAIRS_OFFSET + quad]));
    }
    window.outside = load_bytes(strip->blank, VECTOR_BYTES) ^ window.offset;
    window_first(&window, stride, kind, ahead);
    /* Every other row of those that a step of 1 has, where the filter steps by 2 down and by 1 along a row. */
    const int skips = stride == 1 && strip->skips, step = skips ? 1 : rows;
    for (; row < count; row += step, y += step * strip->y_row) {
        const ptrdiff_t x_row = (skips ? 2 * row : row * stride) + 3 - stride;
        /* One row: a tile of one where that pays. */
        if (skips || row + step > count) {
            if (!PARTED) {
                window_row(&window, scales, offsets, x_row, y, 1, stride, kind, rescaling, ahead);
                continue;
            }
            window.y_row = 0;
        }
        window_row(&window, scales, offsets, x_row, y, rows, stride, kind, rescaling, ahead);
    }
}

#define WINDOW_KERNEL(stride, kind, name, rescaling, ahead) \
    static void window_##stride##_##kind##_##name(PairsStrip *strip, ptrdiff_t count) { window_strip(strip, count, stride, kind, rescaling, ahead); }
#define WINDOW_KERNELS(stride, kind) \
    WINDOW_KERNEL(stride, kind, BY_LINE, BY_LINE, 0) \
    WINDOW_KERNEL(stride, kind, BY_SCALE, BY_SCALE, 0)
WINDOW_KERNELS(1, WHOLE)
WINDOW_KERNELS(1, HALVES)
WINDOW_KERNEL(1, PART, BY_SCALE, BY_SCALE, 0)
WINDOW_KERNELS(2, WHOLE)
WINDOW_KERNELS(2, HALVES)
WINDOW_KERNEL(2, PART, BY_SCALE, BY_SCALE, 0)
WINDOW_KERNEL(1, QUARTERS, BY_SCALE, BY_SCALE, 0)
WINDOW_KERNEL(2, QUARTERS, BY_SCALE, BY_SCALE, 0)
WINDOW_KERNEL(1, QUARTERS, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(2, QUARTERS, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(1, QUARTERS, BY_SPLIT, BY_SPLIT, 0)
WINDOW_KERNEL(2, QUARTERS, BY_SPLIT, BY_SPLIT, 0)
WINDOW_KERNEL(1, HALVES, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(1, PART, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(2, HALVES, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(2, PART, OTHERWISE, OTHERWISE, 0)
WINDOW_KERNEL(1, HALVES, BY_SPLIT, BY_SPLIT, 0)
WINDOW_KERNEL(1, PART, BY_SPLIT, BY_SPLIT, 0)
WINDOW_KERNEL(2, HALVES, BY_SPLIT, BY_SPLIT, 0)
WINDOW_KERNEL(2, PART, BY_SPLIT, BY_SPLIT, 0)
/* By a line, too. */
WINDOW_KERNEL(1, WHOLE, AHEAD, BY_SCALE, 1)
WINDOW_KERNEL(2, WHOLE, AHEAD, BY_SCALE, 1)

#define WINDOW_CHOICE(stride, kind, line, other) \
    { \
        window_##stride##_##other##_OTHERWISE, window_##stride##_##kind##_##line, window_##stride##_##kind##_BY_SCALE, window_##stride##_##other##_BY_SPLIT \
    }
#define WINDOW_CHOICES(stride) \
    { \
        WINDOW_CHOICE(stride, WHOLE, BY_LINE, PART), WINDOW_CHOICE(stride, HALVES, BY_LINE, HALVES), WINDOW_CHOICE(stride, PART, BY_SCALE, PART), \
            WINDOW_CHOICE(stride, QUARTERS, BY_SCALE, QUARTERS) \
    }

/* `ahead`: for images beyond the second-level cache. */
WORD PairsKernel window_kernel(int rescaling, int stride, int kind, int ahead)
{
    static const PairsKernel table[2][4][4] = {WINDOW_CHOICES(1), WINDOW_CHOICES(2)};
    if (ahead && kind == WHOLE && (rescaling == BY_LINE || rescaling == BY_SCALE))
        return stride == 1 ? window_1_WHOLE_AHEAD : window_2_WHOLE_AHEAD;
    return table[stride - 1][kind][rescaling];
}

#else

WORD PairsKernel window_kernel(int rescaling, int stride, int kind, int ahead)
{
    (void)rescaling, (void)stride, (void)kind, (void)ahead;
    return 0;
}

#endif
#endif

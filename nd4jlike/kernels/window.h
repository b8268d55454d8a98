/* int8 windows of 3x3, where a product takes four taps of all channels of a vector: they slide over the columns, whose cells stay in registers.
 *
 * Two rows of the input come in at a time, column by column; what lies above is in first-level cache, where the newer rows take its place. Where the filter
 * steps by 1, that is a pair of rows, too: both make cells of four rows, which serve two rows of outputs. Where it steps by 2, it is one row, and two columns
 * are taken at a time: their cells are the three rows of the first one and the lowest of the second one, whose other two rows are a product of their own.
 * Two columns of outputs are computed at a time, one of the QUADS after another: what is read for its sums, weights and constants, serves both, which is half
 * of what is read at all. Instructions are named where a compiler copies more than it has to.
 */
#ifndef ND4JLIKE_WINDOW_H
#define ND4JLIKE_WINDOW_H

#include "pairs.h"

#define PARTED (kind == HALVES || kind == QUARTERS)
/* Of a column: two rows, or one. */
#define RING_STEP (stride == 1 ? PAIR_BYTES : VECTOR_BYTES)

#if WINDOWS

/* What slides over two rows and the pairs of the rows above: of those, all parts have the columns `from` to `stop`. */
typedef struct {
    const PairsStrip *strip;
    char *ring, *from, *stop;
    ptrdiff_t stored, y_row;
    int scaled, wide;
    vbytes offset, outside;
} Window;

/* A vector at a column that some parts have. */
WORD vbytes window_edge(const PairsStrip *strip, const int8_t *x, ptrdiff_t apart, ptrdiff_t column, ptrdiff_t stored, const int kind)
{
    const int8_t *at[4];
    for (int i = 0; i < (kind == HALVES ? 2 : 4); i++)
        at[i] = column >= strip->first[i] && column < strip->end[i] ? x + i * apart : strip->blank;
    return kind == HALVES ? load_part_halves_of(at[0], at[1], stored) : load_part_quarters(at[0], at[1], at[2], at[3], stored);
}

WORD vbytes window_bytes(const int8_t *x, ptrdiff_t apart, const int8_t *last, ptrdiff_t stored, const int kind)
{
    return kind == HALVES ? load_part_halves_of(x, last, stored) : kind == QUARTERS ? load_part_quarters(x, x + apart, x + 2 * apart, last, stored)
         : part_bytes(x, last, stored, kind);
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
        upper = some ? window_edge(strip, x0, apart0, column, stored, kind) : window_bytes(x0, apart0, strip->blank, stored, kind); \
        lower = some ? window_edge(strip, x1, apart1, column, stored, kind) : window_bytes(x1, apart1, strip->blank, stored, kind); \
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

/* Its pairs, of the even channels and of the odd ones; its cells, where the filter steps by 1: the newer pair and the one above, which it replaces. QUADS 0
 * and 2 have the even channels, 1 and 3 the odd ones: narrowed, they are every other byte, and the odd ones take the places between. */
#define WINDOW_PAIR(upper, lower, pair) \
    __asm__("vmovdqa64 %2, %0\n\tvpshufb %4, %3, %0%{%5%}\n\tvpshufb %4, %2, %1%{%6%}" \
            : "=&v"(pair[0]), "=&v"(pair[1]) : "v"(upper), "1"(lower), "v"(swapped), "Yk"(odd), "Yk"(even));
#define WINDOW_CELLS(window, cells, inside, some) \
    if ((inside) || (PARTED && ring < last)) { \
        vbytes upper, lower, pair[2]; \
        WINDOW_BYTES(upper, lower, inside, some) \
        WINDOW_PAIR(upper, lower, pair) \
        __asm__("vmovdqu64 (%6), %2\n\tvmovdqu64 64(%6), %3\n\tvmovdqu64 %4, (%6)\n\tvmovdqu64 %5, 64(%6)\n\t" \
                "vpunpcklwd %2, %4, %0\n\tvpunpcklwd %3, %5, %1\n\tvpunpckhwd %2, %4, %2\n\tvpunpckhwd %3, %5, %3" \
                : "=&v"(cells[0]), "=&v"(cells[1]), "=&v"(cells[2]), "=&v"(cells[3]) \
                : "v"(pair[0]), "v"(pair[1]), "r"(ring) \
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
        __asm__("vmovdqu64 64(%8), %5\n\tvpunpcklbw %5, %7, %4\n\tvpunpckhbw %5, %7, %5\n\tvmovdqu64 (%8), %7\n\tvmovdqu64 %9, (%8)\n\t" \
                "vmovdqu64 %10, 64(%8)\n\t" \
                "vmovdqa64 %6, %0\n\tvpshufb %11, %7, %0%{%12%}\n\tvpshufb %11, %6, %7%{%13%}\n\t" \
                "vmovdqa64 %9, %2\n\tvpshufb %11, %10, %2%{%12%}\n\tvmovdqa64 %10, %6\n\tvpshufb %11, %9, %6%{%13%}\n\t" \
                "vpunpcklwd %6, %7, %1\n\tvpunpckhwd %6, %7, %3\n\tvmovdqa64 %0, %7\n\tvpunpcklwd %2, %7, %0\n\tvpunpckhwd %2, %7, %2" \
                : "=&v"(cells[0]), "=&v"(cells[1]), "=&v"(cells[2]), "=&v"(cells[3]), "=&v"(words[0]), "=&v"(words[1]), "+v"(upper), "+v"(next_upper) \
                : "r"(above), "v"(lower), "v"(next_lower), "v"(swapped), "Yk"(odd), "Yk"(even) \
                : "memory"); \
    }

/* One of the QUADS sums of each row, at one column of outputs or at two: the bias and the products of three columns each, of which the second one is words
 * where the filter steps by 2; then what makes bytes of the sums. Weights lie for `packed` rows. */
#define WINDOW_DOT(from, place, cell, sum) "vpdpbusd %c[" from "]+" place "(%[block]), %[" cell "], %[" sum "]\n\t"
#define WINDOW_DOTS(from, place, cell, sum, next_cell, next_sum) \
    "vmovdqu32 %c[" from "]+" place "(%[block]), %[w]\n\tvpdpbusd %[w], %[" cell "], %[" sum "]\n\tvpdpbusd %[w], %[" next_cell "], %[" next_sum "]\n\t"
#define WINDOW_OF_FOUR(from) \
    WINDOW_DOTS(from, "0", "a_", "s", "d_", "u") WINDOW_DOTS(from, "64", "a_", "t", "d_", "v") WINDOW_DOTS(from, "128", "b_", "s", "e_", "u") \
    WINDOW_DOTS(from, "192", "b_", "t", "e_", "v") WINDOW_DOTS(from, "256", "c_", "s", "f_", "u") WINDOW_DOTS(from, "320", "c_", "t", "f_", "v")
#define WINDOW_OF_ROWS(from) \
    WINDOW_DOT(from, "0", "a_", "s") WINDOW_DOT(from, "64", "a_", "t") WINDOW_DOT(from, "128", "b_", "s") WINDOW_DOT(from, "192", "b_", "t") \
    WINDOW_DOT(from, "256", "c_", "s") WINDOW_DOT(from, "320", "c_", "t")
#define WINDOW_OF_COLUMNS(from) \
    WINDOW_DOTS(from, "0", "a_", "s", "d_", "u") WINDOW_DOTS(from, "%c[step]", "b_", "s", "e_", "u") WINDOW_DOTS(from, "2*%c[step]", "c_", "s", "f_", "u")
#define WINDOW_OF_ONE(from) WINDOW_DOT(from, "0", "a_", "s") WINDOW_DOT(from, "%c[step]", "b_", "s") WINDOW_DOT(from, "2*%c[step]", "c_", "s")
/* What is left of weights beyond int8 is a product of its own, out of the way. */
#define WINDOW_PRODUCTS(of) \
    of("weights") "test %[wide_bit], %[wide]\n\tjnz .Lwide%=\n.Lall%=:\n\t.subsection 1\n.Lwide%=:\n\t" of("rest") "jmp .Lall%=\n\t.previous"
#define WINDOW_OPERANDS(quad, packed) \
    [block] "r"(block), [bias] "i"((QUADS * PAIRS_BIAS + quad) * VECTOR_BYTES), \
        [weights] "i"((QUADS * PAIRS_CONSTANTS + quad * 3 * (packed)) * VECTOR_BYTES), [step] "i"((packed)*VECTOR_BYTES), \
        [rest] "i"((QUADS * PAIRS_CONSTANTS + (QUADS + quad) * 3 * (packed)) * VECTOR_BYTES), [wide] "r"(wide), [wide_bit] "i"(1 << quad)
#define WINDOW_THREE(quad, a, b, c) [a_] "v"(a[quad]), [b_] "v"(b[stride == 1 ? quad : quad / 2]), [c_] "v"(c[quad])
#define WINDOW_NEXT_THREE(quad, d, e, f) [d_] "v"(d[quad]), [e_] "v"(e[stride == 1 ? quad : quad / 2]), [f_] "v"(f[quad])
#define WINDOW_SUMS(quad, a, b, c, d, e, f) \
    if (rows == 2 && outputs == 2) { \
        vi32 w; \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\tvmovdqa32 %[s], %[t]\n\tvmovdqa32 %[s], %[u]\n\tvmovdqa32 %[s], %[v]\n\t" \
                WINDOW_PRODUCTS(WINDOW_OF_FOUR) \
                : [s] "=&v"(sums[quad][0]), [t] "=&v"(sums[quad][1]), [u] "=&v"(sums[quad][2]), [v] "=&v"(sums[quad][3]), [w] "=&v"(w) \
                : WINDOW_THREE(quad, a, b, c), WINDOW_NEXT_THREE(quad, d, e, f), WINDOW_OPERANDS(quad, 2) \
                : "cc", "memory"); \
    } else if (rows == 2) { \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\tvmovdqa32 %[s], %[t]\n\t" WINDOW_PRODUCTS(WINDOW_OF_ROWS) \
                : [s] "=&v"(sums[quad][0]), [t] "=&v"(sums[quad][1]) \
                : WINDOW_THREE(quad, a, b, c), WINDOW_OPERANDS(quad, 2) \
                : "cc", "memory"); \
    } else if (outputs == 2) { \
        vi32 w; \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\tvmovdqa32 %[s], %[u]\n\t" WINDOW_PRODUCTS(WINDOW_OF_COLUMNS) \
                : [s] "=&v"(sums[quad][0]), [u] "=&v"(sums[quad][1]), [w] "=&v"(w) \
                : WINDOW_THREE(quad, a, b, c), WINDOW_NEXT_THREE(quad, d, e, f), WINDOW_OPERANDS(quad, stride == 1 ? 2 : 1) \
                : "cc", "memory"); \
    } else { \
        __asm__("vmovdqu32 %c[bias](%[block]), %[s]\n\t" WINDOW_PRODUCTS(WINDOW_OF_ONE) \
                : [s] "=&v"(sums[quad][0]) \
                : WINDOW_THREE(quad, a, b, c), WINDOW_OPERANDS(quad, stride == 1 ? 2 : 1) \
                : "cc", "memory"); \
    } \
    if (rescaling != OTHERWISE) { \
        vf32 scale, offset_; \
        __asm__("vmovups %c[by](%[block]), %0\n\tvmovups %c[at](%[block]), %1" \
                : "=v"(scale), "=v"(offset_) \
                : [block] "r"(block), [by] "i"((QUADS * PAIRS_SCALE + quad) * VECTOR_BYTES), [at] "i"((QUADS * PAIRS_OFFSET + quad) * VECTOR_BYTES) \
                : "memory"); \
        if (rescaling == BY_SPLIT) { \
            vf32 zero, moved, lower; \
            __asm__("vmovups %c[zero](%[block]), %0\n\tvmovups %c[moved](%[block]), %1\n\tvmovups %c[lower](%[block]), %2" \
                    : "=v"(zero), "=v"(moved), "=v"(lower) \
                    : [block] "r"(block), [zero] "i"((QUADS * PAIRS_ZERO + quad) * VECTOR_BYTES), \
                      [moved] "i"((QUADS * PAIRS_MOVED + quad) * VECTOR_BYTES), [lower] "i"((QUADS * PAIRS_BELOW + quad) * VECTOR_BYTES) \
                    : "memory"); \
            _Pragma("GCC unroll 4") for (int i = 0; i < rows * outputs; i++) \
                WINDOW_SPLIT(sums[quad][i]) \
        } else if (rows * outputs == 4) \
            __asm__(WINDOW_FOUR(WINDOW_LINE, WINDOW_ROUND, WINDOW_TO) \
                    : [s] "+v"(sums[quad][0]), [t] "+v"(sums[quad][1]), [u] "+v"(sums[quad][2]), [v] "+v"(sums[quad][3]) \
                    : WINDOW_SCALED(quad) : "cc", "memory"); \
        else if (rows * outputs == 2) \
            __asm__(WINDOW_TWICE(WINDOW_LINE, WINDOW_ROUND, WINDOW_TO) \
                    : [s] "+v"(sums[quad][0]), [t] "+v"(sums[quad][1]) : WINDOW_SCALED(quad) : "cc", "memory"); \
        else \
            __asm__(WINDOW_RESCALED(WINDOW_LINE("%[s]"), WINDOW_ROUND("%[s]"), WINDOW_TO("%[s]")) \
                    : [s] "+v"(sums[quad][0]) : WINDOW_SCALED(quad) : "cc", "memory"); \
        if (quad > 1) \
            _Pragma("GCC unroll 4") for (int i = 0; i < rows * outputs; i++) \
                sums[quad - 2][i] = (vi32)pack_i16((vi16)sums[quad - 2][i], (vi16)sums[quad][i]); \
    }
#define WINDOW_SPLIT(sum) \
    { \
        vf32 offset_of; \
        __mmask16 below; \
        __asm__("vcmpps $1, %[zero], %[s], %[k]\n\tvaddps %[moved], %[s], %[s]%{%[k]%}\n\t" \
                "vblendmps %[lower], %[upper], %[o]%{%[k]%}\n\tvfmadd213ps %[o], %[scale], %[s]" \
                : [s] "+v"(sum), [o] "=&v"(offset_of), [k] "=&Yk"(below) \
                : [scale] "v"(scale), [upper] "v"(offset_), [zero] "v"(zero), [moved] "v"(moved), [lower] "v"(lower)); \
    }
/* On a line; by a scale, out of the way: the product alone, or, rounded, the offset makes the sum itself, whose product with the scale is rounded, then to a
 * whole number, as the rule says. */
#define WINDOW_LINE(sum) "vfmadd213ps %[offset_], %[scale], " sum "\n\t"
#define WINDOW_ROUND(sum) \
    "vaddps %[offset_], " sum ", " sum "\n\tvmulps %c[rounded_by](%[block]), " sum ", " sum "\n\tvaddps %c[added](%[block]), " sum ", " sum "\n\t" \
    "vpaddd %c[point](%[block]), " sum ", " sum "\n\t"
#define WINDOW_TO(sum) "vaddps %c[added](%[block]), " sum ", " sum "\n\t"
#define WINDOW_RESCALED(line, round, to) \
    "test %[bits], %[scaled]\n\tjnz .Lscaled%=\n\t" line ".Lrescaled%=:\n\t.subsection 1\n.Lscaled%=:\n\ttest %[rounded], %[scaled]\n\tjnz .Lrounded%=\n\t" \
    line to "jmp .Lrescaled%=\n.Lrounded%=:\n\t" round "jmp .Lrescaled%=\n\t.previous"
#define WINDOW_TWICE(line, round, to) \
    WINDOW_RESCALED(line("%[s]") line("%[t]"), round("%[s]") round("%[t]"), to("%[s]") to("%[t]"))
#define WINDOW_FOUR(line, round, to) \
    WINDOW_RESCALED(line("%[s]") line("%[t]") line("%[u]") line("%[v]"), round("%[s]") round("%[t]") round("%[u]") round("%[v]"), \
                    to("%[s]") to("%[t]") to("%[u]") to("%[v]"))
#define WINDOW_SCALED(quad) \
    [scale] "v"(scale), [offset_] "v"(offset_), [scaled] "r"(scaled), [bits] "i"((1 + ROUNDED) << quad), [rounded] "i"(ROUNDED << quad), \
        [block] "r"(block), [added] "i"((QUADS * PAIRS_ADDED + quad) * VECTOR_BYTES), [rounded_by] "i"((QUADS * PAIRS_ROUNDED + quad) * VECTOR_BYTES), \
        [point] "i"((QUADS * PAIRS_SCALED + 1) * VECTOR_BYTES)

/* The outputs at a column, of a, b and c, or at two, the next one of d, e and f. The first row last: where there is no second one, both are at one place. */
#define WINDOW_OUTPUTS(at_once, a, b, c, d, e, f) \
    { \
        enum { outputs = at_once }; \
        vi32 sums[QUADS][4]; \
        vbytes bytes[4]; \
        WINDOW_SUMS(0, a, b, c, d, e, f) \
        WINDOW_SUMS(2, a, b, c, d, e, f) \
        WINDOW_SUMS(1, a, b, c, d, e, f) \
        WINDOW_SUMS(3, a, b, c, d, e, f) \
        if (rescaling == OTHERWISE) { \
            vi32 all[4 * QUADS]; \
            for (int i = 0; i < rows * outputs * QUADS; i++) \
                all[i] = sums[i % QUADS][i / QUADS]; \
            pairs_otherwise(strip, all, bytes, rows * outputs); \
        } \
        _Pragma("GCC unroll 4") for (int i = 0; i < rows * outputs; i++) \
            if (rescaling == OTHERWISE) \
                bytes[i] = in_twos(bytes[i]); \
            else \
                __asm__("vpshufb %3, %2, %0%{%4%}" : "=v"(bytes[i]) : "0"(sums[0][i]), "v"(sums[1][i]), "v"(swapped), "Yk"(odd)); \
        if (__builtin_expect(bounded, 0)) \
            _Pragma("GCC unroll 4") for (int i = 0; i < rows * outputs; i++) \
                bytes[i] = clamp_i8(bytes[i], strip->low, strip->high) ^ strip->y_flip; \
        _Pragma("GCC unroll 2") for (int column = 0; column < outputs; column++) { \
            _Pragma("GCC unroll 2") for (int row = rows - 1; row >= 0; row--) { \
                int8_t *at = row ? y + y_row : y; \
                const vbytes value = bytes[column * rows + row]; \
                WINDOW_FETCH(at + y_ahead) \
                if (kind == WHOLE) \
                    store_bytes(at, value, VECTOR_BYTES); \
                else if (kind == HALVES) \
                    store_part_halves_of(at, at + strip->y_apart, value, stored); \
                else if (kind == QUARTERS) \
                    store_part_quarters(at, strip->y_apart, value, stored); \
                else \
                    store_part_bytes(at, value, stored); \
            } \
            y += outputs == 2 && column == 0 ? y_step : y_column; \
            y_step = y_column; \
            __asm__("" : "+r"(y)); \
        } \
    }

/* What lies above the first rows. */
WORD void window_first(const Window *window, const int stride, const int kind, const int ahead)
{
    WINDOW_LOCALS(window, 0);
    const char *const last = ring + strip->width * RING_STEP, *const end = stride == 2 ? last + RING_STEP : PARTED ? last : stop;
    const vbytes swapped = bytes_swapped();
    const uint64_t odd = ODD_BYTES, even = ~ODD_BYTES;
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

#define WINDOW_MOVE(to, from, count) \
    _Pragma("GCC unroll 4") for (int i = 0; i < count; i++) \
        to[i] = from[i];

/* `rows` rows of outputs; the newer rows of the input are `row` and the next one. */
WORD void window_row(
    const Window *window, ptrdiff_t row, int8_t *y, const int rows, const int stride, const int kind, const int rescaling, const int ahead)
{
    WINDOW_LOCALS(window, row);
    const ptrdiff_t y_column = strip->y_column, y_row = window->y_row, y_ahead = rows * strip->y_row;
    const int bounded = strip->bounded;
    /* After the last column; an output takes `stride` of them, and what it takes beyond is not read. */
    const char *const last = ring + strip->width * RING_STEP, *const end = stride == 2 ? last + RING_STEP : last;
    const vi32 *const block = strip->block;
    const vbytes swapped = bytes_swapped();
    uint64_t odd = ODD_BYTES, even = ~ODD_BYTES;
    /* Not to be made anew. */
    __asm__("" : "+Yk"(odd), "+Yk"(even));
    /* Two columns at a time. Where it is worth its code, this is there twice, in other registers, so that nothing is moved, and the first one of an odd number
     * is computed alone; else it has another one before it, of nothing, whose place it takes. */
    const int twice = rescaling != OTHERWISE, again = twice && (kind == WHOLE || (kind == HALVES && rescaling == BY_SCALE)) && rows * stride == 2;
    const int single = again || !twice, uneven = strip->columns & 1;
    ptrdiff_t y_step = single || !uneven ? y_column : 0;
    const int scaled = window->scaled, wide = window->wide;
    vi32 a[QUADS], b[QUADS], c[QUADS], d[QUADS];
    if (stride == 2) {
        vi32 a_words[2], b_words[2], c_words[2];
        WINDOW_TWO(a, a_words, 1)
        if (!single && uneven) {
            WINDOW_MOVE(b, a, QUADS)
            WINDOW_MOVE(b_words, a_words, 2)
            goto second_of_two;
        }
        for (int one = twice ? uneven : 1; single && one; one = !twice && ring != end) {
            WINDOW_TWO(b, b_words, 0)
            WINDOW_OUTPUTS(1, a, a_words, b, a, a_words, b)
            WINDOW_MOVE(a, b, QUADS)
            WINDOW_MOVE(a_words, b_words, 2)
        }
        while (twice && ring != end) {
            WINDOW_TWO(b, b_words, 0)
        second_of_two:
            WINDOW_TWO(c, c_words, 0)
            WINDOW_OUTPUTS(2, a, a_words, b, b, b_words, c)
            if (!again) {
                WINDOW_MOVE(a, c, QUADS)
                WINDOW_MOVE(a_words, c_words, 2)
                continue;
            }
            if (ring == end)
                break;
            WINDOW_TWO(b, b_words, 0)
            WINDOW_TWO(a, a_words, 0)
            WINDOW_OUTPUTS(2, c, c_words, b, b, b_words, a)
        }
    } else {
        WINDOW_CELLS(window, a, WINDOW_INSIDE, 1)
        WINDOW_CELLS(window, b, WINDOW_INSIDE, 1)
        if (!single && uneven) {
            WINDOW_MOVE(c, b, QUADS)
            WINDOW_MOVE(b, a, QUADS)
            goto second;
        }
        for (int one = twice ? uneven : 1; single && one; one = !twice && ring != end) {
            WINDOW_CELLS(window, c, WINDOW_LEFT_OF_END, 0)
            WINDOW_OUTPUTS(1, a, b, c, a, b, c)
            WINDOW_MOVE(a, b, QUADS)
            WINDOW_MOVE(b, c, QUADS)
        }
        while (twice && ring != end) {
            WINDOW_CELLS(window, c, WINDOW_LEFT_OF_END, 0)
        second:
            WINDOW_CELLS(window, d, WINDOW_LEFT_OF_END, 0)
            WINDOW_OUTPUTS(2, a, b, c, b, c, d)
            if (!again) {
                WINDOW_MOVE(a, c, QUADS)
                WINDOW_MOVE(b, d, QUADS)
                continue;
            }
            if (ring == end)
                break;
            WINDOW_CELLS(window, a, WINDOW_LEFT_OF_END, 0)
            WINDOW_CELLS(window, b, WINDOW_LEFT_OF_END, 0)
            WINDOW_OUTPUTS(2, c, d, a, d, a, b)
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
        .wide = strip->wide ? *(const int *)(strip->block + QUADS * (PAIRS_CONSTANTS + 2 * 3 * rows)) : 0,
    };
    int8_t *y = strip->y;
    ptrdiff_t row = 0;
    window.outside = load_bytes(strip->blank, VECTOR_BYTES) ^ window.offset;
    window_first(&window, stride, kind, ahead);
    /* Every other row of those that a step of 1 has, where the filter steps by 2 down and by 1 along a row. */
    const int skips = stride == 1 && strip->skips, step = skips ? 1 : rows;
    for (; row < count; row += step, y += step * strip->y_row) {
        const ptrdiff_t x_row = (skips ? 2 * row : row * stride) + 3 - stride;
        /* One row: a tile of one where that pays. */
        if (skips || row + step > count) {
            if (!PARTED) {
                window_row(&window, x_row, y, 1, stride, kind, rescaling, ahead);
                continue;
            }
            window.y_row = 0;
        }
        window_row(&window, x_row, y, rows, stride, kind, rescaling, ahead);
    }
}

#define WINDOW_KERNEL(stride, kind, name, rescaling, ahead) \
    static void window_##stride##_##kind##_##name(PairsStrip *strip, ptrdiff_t count) { window_strip(strip, count, stride, kind, rescaling, ahead); }
#define WINDOW_KERNELS(stride, kind) \
    WINDOW_KERNEL(stride, kind, OTHERWISE, OTHERWISE, 0) \
    WINDOW_KERNEL(stride, kind, BY_SCALE, BY_SCALE, 0) \
    WINDOW_KERNEL(stride, kind, BY_SPLIT, BY_SPLIT, 0)
#define WINDOW_STRIDE(stride) \
    WINDOW_KERNELS(stride, HALVES) \
    WINDOW_KERNELS(stride, PART) \
    WINDOW_KERNELS(stride, QUARTERS) \
    WINDOW_KERNEL(stride, WHOLE, BY_SCALE, BY_SCALE, 0) \
    WINDOW_KERNEL(stride, WHOLE, BY_SPLIT, BY_SPLIT, 0) \
    WINDOW_KERNEL(stride, WHOLE, AHEAD, BY_SCALE, 1)
WINDOW_STRIDE(1)
WINDOW_STRIDE(2)

/* By a line is by a scale that none of the QUADS goes by. */
#define WINDOW_CHOICE(stride, kind, other) \
    { \
        window_##stride##_##other##_OTHERWISE, window_##stride##_##kind##_BY_SCALE, window_##stride##_##kind##_BY_SCALE, window_##stride##_##kind##_BY_SPLIT \
    }
#define WINDOW_CHOICES(stride) \
    { \
        WINDOW_CHOICE(stride, WHOLE, PART), WINDOW_CHOICE(stride, HALVES, HALVES), WINDOW_CHOICE(stride, PART, PART), \
            WINDOW_CHOICE(stride, QUARTERS, QUARTERS) \
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

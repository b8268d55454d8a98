/* int8 filters whose windows share few inputs, or none, as those that step by 3: output by output.
 *
 * Two taps, in the order of the weights, are a cell of each channel, or four where products are of bytes (WINDOWS): there two outputs at a time share what is
 * read of weights and constants. Nothing is kept from one output to the next; taps outside the image read zero points.
 */
#ifndef ND4JLIKE_APART_H
#define ND4JLIKE_APART_H

#include "strip.h"

enum { APART_TAPS = WINDOWS ? 64 : 128 };

#if WINDOWS

/* Two outputs of a row, or two of each part: where the inputs of each begin, how far its taps are from there, and those of the next part. */
typedef struct {
    const int8_t *x[2];
    const ptrdiff_t *taps[2];
    ptrdiff_t apart[2];
} Apart;

/* Adds the cells of the taps from `from` to `to`, of four, or `single`, of one alone. `rest`: from a cell's weights to what is left of them beyond int8. */
WORD const vi32 *apart_add(
    const Apart *two, ptrdiff_t from, ptrdiff_t to, const vi32 *weights, ptrdiff_t rest, ptrdiff_t stored, vbytes offset, vi32 *sums, const int single,
    const int kind)
{
#pragma GCC unroll 1
    for (; from < to; from += GROUP, weights += QUADS) {
        vi32 cells[2][QUADS], w[QUADS];
#pragma GCC unroll 4
        for (int quad = 0; quad < QUADS; quad++) {
            w[quad] = weights[quad];
            __asm__ volatile("" : "+v"(w[quad]));
        }
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            vbytes rows[GROUP];
#pragma GCC unroll 4
            for (int tap = 0; tap < GROUP; tap++) {
                const int8_t *x = two->x[i] + two->taps[i][from + (single ? 0 : tap)];
                rows[tap] = part_bytes(x, x + two->apart[i], stored, kind) ^ offset;
            }
            quads_of(cells[i], rows[0], rows[1], rows[2], rows[3]);
#pragma GCC unroll 4
            for (int quad = 0; quad < QUADS; quad++)
                sums[quad * 2 + i] = dot_cells(sums[quad * 2 + i], cells[i][quad], w[quad]);
        }
        if (__builtin_expect(rest != 0, 0))
#pragma GCC unroll 8
            for (int i = 0; i < 2 * QUADS; i++)
                sums[i] = dot_cells(sums[i], cells[i % 2][i / 2], weights[rest + i / 2]);
    }
    return weights;
}

/* Three rows of inputs, at the first tap of an output; one outside the image is zero points, without steps. */
typedef struct {
    const int8_t *at[3];
    ptrdiff_t steps[3], moves[3], aparts[3];
} ApartRows;

/* The same of 3x3, all of whose columns are there; the second output is `more` outputs beyond the first. */
WORD void apart_three(const ApartRows *three, ptrdiff_t more, const vi32 *weights, ptrdiff_t stored, vbytes offset, vi32 *sums, const int kind)
{
#pragma GCC unroll 3
    for (int cell = 0; cell < 3; cell++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            vi32 cells[QUADS];
            vbytes rows[GROUP];
#pragma GCC unroll 4
            for (int tap = 0; tap < GROUP; tap++) {
                const int at = cell == 2 ? 8 : cell * GROUP + tap, row = at / 3;
                const int8_t *x = three->at[row] + (i ? more * three->moves[row] : 0) + at % 3 * three->steps[row];
                rows[tap] = part_bytes(x, x + three->aparts[row], stored, kind) ^ offset;
            }
            quads_of(cells, rows[0], rows[1], rows[2], rows[3]);
#pragma GCC unroll 4
            for (int quad = 0; quad < QUADS; quad++)
                sums[quad * 2 + i] = dot_cells(sums[quad * 2 + i], cells[quad], weights[cell * QUADS + quad]);
        }
}

/* Bits of the columns, counted from `left`, that a part has. */
WORD uint64_t apart_columns(const PairsStrip *strip, ptrdiff_t part, ptrdiff_t left)
{
    const ptrdiff_t first = least(largest(strip->first[part] - left, 0), 63), end = least(largest(strip->end[part] - left, 0), 63);
    return ((uint64_t)1 << end) - ((uint64_t)1 << least(first, end));
}

/* Inputs of two halves, of which some may be outside the image, side by side. */
static __attribute__((noinline)) void apart_inputs(const PairsStrip *strip, ptrdiff_t top, ptrdiff_t left, vbytes *inputs)
{
    const ptrdiff_t apart = strip->x_apart, step = strip->x_column, across = strip->taps_across;
    const int8_t *const blank = strip->blank, *row = strip->x + top * strip->x_row + left * step;
    const uint64_t columns = apart_columns(strip, 0, left), upper_columns = apart_columns(strip, 1, left);
    for (ptrdiff_t i = top, end = top + strip->taps_down; i < end; i++, row += strip->x_row) {
        const int8_t *x = row;
        const int exists = i >= strip->first_row && i < strip->end_row;
        uint64_t bits = exists ? columns : 0, upper_bits = exists ? upper_columns : 0;
        for (ptrdiff_t j = 0; j < across; j++, x += step, bits >>= 1, upper_bits >>= 1)
            /* Without a jump. */
            *inputs++ = load_halves(
                blank + ((x - blank) & -(ptrdiff_t)(bits & 1)), blank + ((x + apart - blank) & -(ptrdiff_t)(upper_bits & 1)));
    }
}

/* How far taps are from the first one, in the image and side by side. Those of a last cell that do not exist are the first one. */
static __attribute__((noinline)) void apart_taps(const PairsStrip *strip, ptrdiff_t *taps, ptrdiff_t *beside)
{
    ptrdiff_t at = 0, column = 0, row = 0, all = strip->taps_down * strip->taps_across;
    for (ptrdiff_t tap = 0; tap < strip->cells * GROUP; tap++) {
        taps[tap] = tap < all ? at : 0;
        beside[tap] = tap < all ? tap * VECTOR_BYTES : 0;
        at += strip->x_column;
        if (++column == strip->taps_across) {
            column = 0;
            at = row += strip->x_row;
        }
    }
}

/* How far from `x` the inputs of an output are, of which some may be outside the image. */
static __attribute__((noinline)) void apart_places(const PairsStrip *strip, ptrdiff_t top, ptrdiff_t left, const int8_t *x, ptrdiff_t *places)
{
    const ptrdiff_t across = strip->taps_across, blank = strip->blank - x;
    const uint64_t columns = apart_columns(strip, 0, left);
    ptrdiff_t row = 0;
    for (ptrdiff_t i = top, end = top + strip->taps_down; i < end; i++, row += strip->x_row) {
        uint64_t bits = i >= strip->first_row && i < strip->end_row ? columns : 0;
        ptrdiff_t at = row;
        for (ptrdiff_t j = 0; j < across; j++, at += strip->x_column, bits >>= 1)
            /* Without a jump. */
            *places++ = blank + ((at - blank) & -(ptrdiff_t)(bits & 1));
    }
    /* Of a last cell. */
    places[0] = places[1] = places[2] = blank;
}

/* Rows of outputs. Taps are `taps_across` in a row of the filter; outputs are `stride_down` and `stride` inputs apart. */
WORD void apart_strip(const PairsStrip *strip, ptrdiff_t count, int rescaling, const int kind)
{
    const ptrdiff_t across = strip->taps_across, down = strip->taps_down, step = strip->stride * strip->x_column;
    /* Copies: what is stored might be a part of the strip, for all that a compiler knows. */
    const ptrdiff_t columns = strip->columns, stride = strip->stride, from = strip->from, to = strip->to, y_apart = strip->y_apart, apart = strip->x_apart;
    const ptrdiff_t move = strip->y_column, stored = least(strip->stored, VECTOR_BYTES), all = strip->cells * GROUP;
    const ptrdiff_t whole_cells = down * across % GROUP == 1 ? all - GROUP : all, rest = strip->wide ? strip->cells * QUADS : 0;
    const int square = across == 3 && down == 3 && !rest;
    const vi32 *const block = strip->block;
    const vbytes offset = splat_i8(INPUT_OFFSET ^ strip->flip);
    ptrdiff_t taps[APART_TAPS], beside[APART_TAPS];
    vbytes inputs[2][APART_TAPS];
    ptrdiff_t places[2][APART_TAPS + GROUP];
    int8_t *y = strip->y;
    apart_taps(strip, taps, beside);
    for (ptrdiff_t row = 0; row < count; row++, y += strip->y_row) {
        const ptrdiff_t top = row * strip->stride_down;
        const int whole = top >= strip->first_row && top + down <= strip->end_row;
        const int8_t *x = strip->x + top * strip->x_row;
        int8_t *at_y = y;
        ApartRows three;
        for (int i = 0; i < 3 && square; i++) {
            const int exists = top + i >= strip->first_row && top + i < strip->end_row;
            three.at[i] = exists ? x + i * strip->x_row : strip->blank;
            three.steps[i] = exists ? strip->x_column : 0;
            three.moves[i] = exists ? step : 0;
            three.aparts[i] = exists ? apart : 0;
        }
        for (ptrdiff_t column = 0, left = 0; column < columns; column += 2) {
            vi32 sums[2 * QUADS];
            vbytes bytes[2];
            Apart two;
            const ptrdiff_t more = column + 1 < columns ? 1 : 0;
            const int inside = square && left >= from && left + more * stride + across <= to;
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++) {
                two.x[i] = x;
                two.taps[i] = taps;
                two.apart[i] = apart;
                if (i && !more) {
                    two.x[i] = two.x[0];
                    two.taps[i] = two.taps[0];
                    two.apart[i] = two.apart[0];
                } else if (!inside && (!whole || left < from || left + across > to)) {
                    if (kind == HALVES) {
                        apart_inputs(strip, top, left, inputs[i]);
                        two.x[i] = (const int8_t *)inputs[i];
                        two.taps[i] = beside;
                        two.apart[i] = VECTOR_BYTES / 2;
                    } else {
                        apart_places(strip, top, left, x, places[i]);
                        two.taps[i] = places[i];
                    }
                }
                x += i || more ? step : 0;
                left += i || more ? stride : 0;
            }
#pragma GCC unroll 8
            for (int i = 0; i < 2 * QUADS; i++)
                sums[i] = block[QUADS * PAIRS_BIAS + i / 2];
            const vi32 *weights = block + QUADS * PAIRS_CONSTANTS;
            if (inside)
                apart_three(&three, more, weights, stored, offset, sums, kind);
            else {
                weights = apart_add(&two, 0, whole_cells, weights, rest, stored, offset, sums, 0, kind);
                apart_add(&two, whole_cells, all, weights, rest, stored, offset, sums, 1, kind);
            }
            if (rescaling == OTHERWISE) {
                /* Of its own: what a function is given is in memory. */
                vi32 given[2 * QUADS];
                vbytes results[2];
#pragma GCC unroll 8
                for (int i = 0; i < 2 * QUADS; i++)
                    given[i % 2 * QUADS + i / 2] = sums[i];
                pairs_otherwise(strip, given, results, 2);
                bytes[0] = results[0];
                bytes[1] = results[1];
            } else {
#pragma GCC unroll 4
                for (int quad = 0; quad < QUADS; quad++)
                    pairs_rescale(sums + 2 * quad, block, quad, 2);
#pragma GCC unroll 2
                for (int i = 0; i < 2; i++)
                    bytes[i] = pairs_bytes(strip, low_words(sums[i], sums[2 + i]), low_words(sums[4 + i], sums[6 + i]));
            }
            for (int i = 0; i < 3 && square; i++)
                three.at[i] += 2 * three.moves[i];
            pairs_clamp(strip, bytes, 2);
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++, at_y += move) {
                if (i > more)
                    break;
                if (kind == HALVES)
                    store_halves(at_y, at_y + y_apart, bytes[i]);
                else
                    store_bytes(at_y, bytes[i], kind == WHOLE ? VECTOR_BYTES : stored);
            }
        }
    }
}

#define APART(kind) \
    static __attribute__((noinline, noclone)) void apart_##kind(const PairsStrip *strip, ptrdiff_t count, int rescaling) \
    { \
        apart_strip(strip, count, rescaling, kind); \
    }
APART(HALVES)
APART(PART)
APART(WHOLE)

#define APART_KERNEL(rescaling) \
    static void apart_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        (strip->parts == 2 ? apart_HALVES : strip->stored < VECTOR_BYTES ? apart_PART : apart_WHOLE)(strip, count, rescaling); \
    }
APART_KERNEL(OTHERWISE)
APART_KERNEL(BY_SCALE)

WORD PairsKernel apart_kernel(int rescaling) { return rescaling == OTHERWISE ? apart_OTHERWISE : apart_BY_SCALE; }

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
APART(any, 0, strip->flip)
APART(3, 3, 0)
APART(5, 5, 0)

#define APART_KERNEL(rescaling) \
    static __attribute__((unused)) void apart_##rescaling(PairsStrip *strip, ptrdiff_t count) \
    { \
        const ptrdiff_t square = strip->taps_across == strip->taps_down ? strip->taps_down : 0; \
        (strip->flip ? apart_any : square == 3 ? apart_3 : square == 5 ? apart_5 : apart_any)(strip, count, rescaling); \
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

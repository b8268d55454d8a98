/* float32 planes by square filters with 16 registers, in C (see taps.h): outputs below each other, one vector of columns each, are a stack, whose sums stay in
 * registers with the weights of a column of taps. A tap of a row is added to all of them before the next one: a strip (plane_strips.h) would load its weights for
 * each row, or keep its sums in memory.
 */
#ifndef ND4JLIKE_STACKS_H
#define ND4JLIKE_STACKS_H

#include "plane_strips.h"

/* Outputs of a stack, and of one on few rows. */
enum { STACK_ROWS = 7, LOW_STACK = 4 };
/* By steps of 2, filters that have both taps of two columns side by side at a time: weights of more have no registers. */
enum { PAIRED_TAPS = 3 };

/* A vector of outputs: bytes from the inputs of its first tap, and from itself, to those of column 0; how many are stored; for each tap the columns inside the
 * image, and a bit, whether any is outside. */
typedef struct {
    ptrdiff_t x, y, lanes;
    const vi32 *masks;
    unsigned masked;
} StackColumns;

/* All outputs of `rows` rows of all planes. */
typedef struct {
    /* The weights of the first plane are those of plane `lead`. */
    ptrdiff_t planes, lead, multiplier, x_plane, y_plane;
    /* Rows of inputs above the first window, and of the image. */
    ptrdiff_t rows, pad, height;
    /* Rows of taps, and taps in a row; bytes, and those of a row of inputs. */
    ptrdiff_t high, taps, x_tap, x_row, y_row, x_bytes;
    /* Packed weights: a vector of biases, then one for each tap. */
    const float *blocks;
    ptrdiff_t block_vectors;
    /* Whether the rows of the next stacks are fetched meanwhile. */
    int count, fetches;
    StackColumns columns[COLUMNS_ACROSS];
} Stacks;

typedef void (*PlaneStacks)(const Stacks *stacks, const vf32 *limits, const char *x, char *y);

/* Pixels that share a vector have more weights than registers: of filters above 3x3 each is read for two vectors of 6 outputs. */
enum { PAIR_ROWS = 6, PAIR_ACROSS = 2, KEPT_WEIGHTS = 8 };
#define IN_PAIRS(high, mixed) ((mixed) && (high) > 3)

/* Bytes of what such a stack by any filter copies at most; and of a row of it. */
enum { WINDOW_BYTES = 32 << 10 };
WORD ptrdiff_t window_pitch(ptrdiff_t taps, ptrdiff_t x_tap)
{
    return ((taps - 1) * x_tap + (PAIR_ACROSS + 1) * VECTOR_BYTES - 1) & -VECTOR_BYTES;
}

#if VECTOR_BYTES == 32
/* The inputs of a tap, or, by steps of 2, those of it and of the next one. */
WORD void stack_cells(vf32 *cells, const char *at, const vmask *mask, const int stride, const int together, const int masked)
{
    const vf32 first = masked ? load_where_f32((const float *)at, mask[0]) : *(const vf32 *)at;
    vf32 second;
    cells[0] = first;
    if (stride == 1)
        return;
    at += VECTOR_BYTES;
    second = masked ? load_where_f32((const float *)at, mask[1]) : *(const vf32 *)at;
    cells[0] = seconds_of_f32(first, second, 0);
    if (together == 2)
        cells[1] = seconds_of_f32(first, second, 1);
}

/* One tap of a row, or two. Each input is loaded once for all outputs that it reaches; as many rows of them as a centred filter reaches may be outside, of a low
 * stack any. */
WORD void add_to_stack(
    vf32 *sums, const float *weight, ptrdiff_t pitch, const char *from, Steps steps, const vi32 *masks, ptrdiff_t above, ptrdiff_t below, const int rows,
    const int high, const int stride, const int together, const int masked)
{
    const int reach = (rows - 1) * stride + high;
    vmask mask[2] = {{0}, {0}};
    vf32 weights[2 * STRIP_TAPS];
#pragma GCC unroll 16
    for (int i = 0; i < together * high; i++) {
        weights[i] = splat_f32(weight[i / together * pitch + i % together * LANES]);
        __asm__("" : "+v"(weights[i]));
    }
    if (masked)
#pragma GCC unroll 2
        for (int i = 0; i < stride; i++)
            mask[i] = mask_of(masks[i]);
#pragma GCC unroll 32
    for (int row = 0; row < reach; row++) {
        const char *at = step_to(&from, steps, row);
        vf32 cells[2];
        if (((row < high / 2 || rows < STACK_ROWS) && row < above) || ((row >= reach - high / 2 || rows < STACK_ROWS) && row >= reach - below))
            continue;
        stack_cells(cells, at, mask, stride, together, masked);
#pragma GCC unroll 2
        for (int tap = 0; tap < together; tap++) {
            if (row && row < reach - 1)
                __asm__("" : "+v"(cells[tap])); /* Else it is loaded for each product. */
#pragma GCC unroll 8
            for (int output = 0; output < rows; output++)
                if (row >= output * stride && row < output * stride + high)
                    sums[output] += cells[tap] * weights[(row - output * stride) * together + tap];
        }
    }
}

/* All taps of pixels that share a vector, in the order of channels last: row by row of inputs, and of a row tap by tap. Of 3x3 most weights are kept; others
 * are read in the order that is written here, or the compiler reads them ahead and keeps sums in memory instead. */
WORD void add_mixed_to_stack(
    vf32 sums[][STACK_ROWS], const float *weight, const char *from, ptrdiff_t x_row, ptrdiff_t x_tap, ptrdiff_t beside, const vi32 *masks, ptrdiff_t above,
    ptrdiff_t below, const int rows, const int high, const int vectors, const int masked)
{
    const int reach = rows - 1 + high, held = high == 3 && rows == STACK_ROWS ? KEPT_WEIGHTS : 0;
    const vf32 *weights = (const vf32 *)weight;
    vf32 kept[KEPT_WEIGHTS];
    const Steps steps = steps_of(x_row);
#pragma GCC unroll 8
    for (int i = 0; i < held; i++) {
        kept[i] = weights[i];
        __asm__("" : "+x"(kept[i]));
    }
#pragma GCC unroll 16
    for (int row = 0; row < reach; row++) {
        const char *at = step_to(&from, steps, row);
        if (((row < high / 2 || rows < STACK_ROWS) && row < above) || ((row >= reach - high / 2 || rows < STACK_ROWS) && row >= reach - below))
            continue;
#define ADD_TAP(tap) \
    { \
        vf32 cells[PAIR_ACROSS]; \
        _Pragma("GCC unroll 2") \
        for (int v = 0; v < vectors; v++) { \
            const char *cell = at + (tap) * x_tap + v * beside; \
            cells[v] = masked ? load_where_f32((const float *)cell, mask_of(masks[tap])) : *(const vf32 *)cell; \
            __asm__ volatile("" : "+x"(cells[v]) : : "memory"); \
        } \
        _Pragma("GCC unroll 8") \
        for (int output = 0; output < rows; output++) \
            if (row >= output && row < output + high) { \
                const int place = (row - output) * high + (tap); \
                vf32 each = place < held ? kept[place] : weights[place]; \
                if (!held) \
                    __asm__ volatile("" : "+x"(each) : : "memory"); \
                _Pragma("GCC unroll 2") \
                for (int v = 0; v < vectors; v++) \
                    sums[v][output] += cells[v] * each; \
            } \
    }
        if (held) {
            ADD_TAP(0)
            ADD_TAP(1)
            ADD_TAP(2)
        } else
#pragma GCC unroll 1
            for (int tap = 0; tap < high; tap++)
                ADD_TAP(tap)
#undef ADD_TAP
    }
}

/* The rows of inputs of a stack, from `first` bytes of a row on, zeros where they are outside. */
static __attribute__((noinline)) void copy_window(
    char *window, ptrdiff_t pitch, ptrdiff_t rows, const Stacks *stacks, const char *x, ptrdiff_t first, ptrdiff_t above, ptrdiff_t below)
{
    const ptrdiff_t from = first < 0 ? -first : 0, left = stacks->x_bytes - first, end = left < pitch ? left : pitch;
    memset(window, 0, pitch * rows);
    for (ptrdiff_t row = above; row < rows - below && from < end; row++)
        memcpy(window + row * pitch + from, x + row * stacks->x_row + from, end - from);
}

/* The first lanes of some rows. */
static __attribute__((noinline)) void store_parts(const vf32 *parts, char *y, ptrdiff_t y_row, ptrdiff_t lanes, ptrdiff_t stored)
{
#pragma GCC unroll 1
    for (; stored > 0; stored--, parts++, y += y_row)
        store_f32((float *)y, *parts, lanes);
}

/* `stored` rows of a stack, all of one that is not low. */
WORD void store_stack(const vf32 *sums, const Stacks *stacks, char *y, ptrdiff_t lanes, ptrdiff_t stored, const int rows)
{
    const Steps steps = steps_of(stacks->y_row);
    const char *to = y;
    vf32 parts[STACK_ROWS];
    /* What a whole vector writes to the next row is written again. */
    if (rows > LOW_STACK && stored == rows && (lanes == LANES || (rows == STACK_ROWS && lanes >= LANES / 2 && stacks->y_row == 4 * lanes))) {
#pragma GCC unroll 8
        for (int i = 0; i < rows - 1; i++)
            *(vf32 *)step_to(&to, steps, i) = sums[i];
        store_f32((float *)step_to(&to, steps, rows - 1), sums[rows - 1], lanes);
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        parts[i] = sums[i];
    store_parts(parts, y, steps.one, lanes, stored);
}

/* `rows` outputs, the first of which has its first tap at x; all are stored, of a low stack `stored`. */
WORD void one_stack(
    const Stacks *stacks, const StackColumns *columns, const vf32 *limits, const float *block, const char *x, char *y, ptrdiff_t above, ptrdiff_t below,
    ptrdiff_t stored, const int rows, const int high, const int stride, const int mixed)
{
    const Steps steps = steps_of(stacks->x_row);
    const ptrdiff_t pitch = (high == 3 ? 3 : stacks->taps) * LANES;
    const vi32 *masks = columns->masks;
    const float *weight = block + LANES;
    const char *from = x;
    unsigned masked = columns->masked;
    const int vectors = IN_PAIRS(high, mixed) ? PAIR_ACROSS : 1;
    vf32 sums[PAIR_ACROSS][STACK_ROWS], low, most;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            sums[v][i] = plane_weight(block, mixed);
#define ADD_TO_STACK(together) \
    { \
        if (masked & ((1 << (together)) - 1) || rows < STACK_ROWS) \
            add_to_stack(sums[0], weight, pitch, from, steps, masks, above, below, rows, high, stride, together, 1); \
        else \
            add_to_stack(sums[0], weight, pitch, from, steps, masks, above, below, rows, high, stride, together, 0); \
        masked >>= together; \
        masks += (together) * stride; \
        from += (together) * stacks->x_tap; \
        weight += (together) * LANES; \
    }
    if (mixed) {
        const ptrdiff_t x_tap = stacks->x_tap, beside = vectors > 1 ? columns[1].x - columns[0].x : 0;
        ptrdiff_t x_row = stacks->x_row;
        vf32 window[vectors > 1 ? WINDOW_BYTES / VECTOR_BYTES : 1];
        if (vectors > 1 && (masked || columns[1].masked)) {
            x_row = window_pitch(high, x_tap);
            copy_window((char *)window, x_row, rows - 1 + high, stacks, x, columns->x, above, below > 0 ? below : 0);
            from = (const char *)window;
        }
        if (vectors == 1 && (masked || rows < STACK_ROWS))
            add_mixed_to_stack(sums, weight, from, x_row, x_tap, beside, masks, above, below, rows, high, vectors, 1);
        else
            add_mixed_to_stack(sums, weight, from, x_row, x_tap, beside, masks, above, below, rows, high, vectors, 0);
    } else if (high <= PAIRED_TAPS && stride == 2) {
        ADD_TO_STACK(2)
        if (high > 2)
            ADD_TO_STACK(1)
    } else if (high == 3 && rows == STACK_ROWS)
#pragma GCC unroll 3
        for (int tap = 0; tap < 3; tap++)
            ADD_TO_STACK(1)
    else
#pragma GCC unroll 1
        for (ptrdiff_t left = stacks->taps; left > 0; left--)
            ADD_TO_STACK(1)
#undef ADD_TO_STACK
    low = limits[0], most = limits[1];
    __asm__("" : "+v"(low), "+v"(most));
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            sums[v][i] = at_most_f32(at_least_f32(sums[v][i], low), most);
            if (stride == 2)
                sums[v][i] = seconds_in_order(sums[v][i]);
        }
        store_stack(sums[v], stacks, y + (columns[v].y - columns[0].y), columns[v].lanes, stored, rows);
    }
}

/* The rows that stacks add below these: inputs, and outputs of two vectors at a time, which share lines. */
WORD void fetch_below(const Stacks *stacks, const char *x, const char *y, int second, const int rows, const int high, const int stride)
{
    if (second || stride > 1) {
        x += ((rows - 1) * stride + high) * stacks->x_row;
#pragma GCC unroll 14
        for (int i = 0; i < rows * stride; i++, x += stacks->x_row)
            __builtin_prefetch(x, 0, 2);
    }
    if (second) {
        y += rows * stacks->y_row;
#pragma GCC unroll 7
        for (int i = 0; i < rows; i++, y += stacks->y_row)
            __builtin_prefetch(y, 1, 2);
    }
}

WORD void stacks_of(const Stacks *stacks, const vf32 *limits, const char *x, char *y, const int high, const int stride, const int mixed)
{
    const ptrdiff_t rows = stacks->rows;
    const int vectors = IN_PAIRS(high, mixed) ? PAIR_ACROSS : 1, few = IN_PAIRS(high, mixed) ? PAIR_ROWS : LOW_STACK;
    for (ptrdiff_t plane = 0; plane < stacks->planes; plane++) {
        const ptrdiff_t place = stacks->lead + plane;
        const float *block = stacks->blocks + place / LANES * stacks->block_vectors * LANES + place % LANES;
        /* A division takes as long as a row. */
        const char *of_plane = x + (stacks->multiplier == 1 ? plane : (ptrdiff_t)((uint32_t)plane / (uint32_t)stacks->multiplier)) * stacks->x_plane;
        char *to_plane = y + plane * stacks->y_plane;
        for (ptrdiff_t row = 0; row < rows;) {
            /* Of what is left rows before it are computed again. */
            ptrdiff_t first = row > rows - STACK_ROWS ? rows - STACK_ROWS : row, at = first * stride - stacks->pad;
            const int low = few == PAIR_ROWS || rows < STACK_ROWS || rows - row <= few || -at > high / 2
                || at + (STACK_ROWS - 1) * stride + high - stacks->height > high / 2;
            const StackColumns *columns = stacks->columns, *const last = columns + stacks->count;
            const char *from;
            char *to;
            ptrdiff_t above, below;
            if (low) {
                first = rows < few || row <= rows - few ? row : rows - few;
                at = first * stride - stacks->pad;
            }
            from = of_plane + at * stacks->x_row;
            to = to_plane + first * stacks->y_row;
            above = at < 0 ? -at : 0;
            below = at + ((low ? few : STACK_ROWS) - 1) * stride + high - stacks->height;
            row = first + (low ? few : STACK_ROWS);
            if (low)
                for (; columns < last; columns += vectors) {
                    if (columns + vectors > last)
                        columns = last - vectors;
                    if (stacks->fetches && few == PAIR_ROWS)
                        fetch_below(stacks, from + columns->x, to + columns->y, 1, few, high, stride);
                    one_stack(
                        stacks, columns, limits, block, from + columns->x, to + columns->y, above, below, rows < few ? rows : few, few, high, stride, mixed);
                }
            else
                for (; columns < last; columns++) {
                    if (stacks->fetches)
                        fetch_below(stacks, from + columns->x, to + columns->y, (columns - stacks->columns) & 1, STACK_ROWS, high, stride);
                    one_stack(stacks, columns, limits, block, from + columns->x, to + columns->y, above, below, STACK_ROWS, STACK_ROWS, high, stride, mixed);
                }
        }
    }
}

/* Pixels that share a vector by any filter: two vectors of 6 outputs, in the order of channels last. Stacks at edges are computed from a copy with zeros around. */
static __attribute__((noinline)) void mixed_stacks_any(const Stacks *stacks, const vf32 *limits, const char *x, char *y)
{
    const ptrdiff_t end = stacks->rows, high = stacks->high, reach = PAIR_ROWS - 1 + high, stored = least(end, PAIR_ROWS);
    const vf32 *const block = (const vf32 *)stacks->blocks;
    vf32 window[WINDOW_BYTES / VECTOR_BYTES];
    for (ptrdiff_t row = 0; row < end; row += PAIR_ROWS) {
        const ptrdiff_t first = row > end - stored ? end - stored : row, at = first - stacks->pad;
        const ptrdiff_t above = at < 0 ? -at : 0, below = at + reach > stacks->height ? at + reach - stacks->height : 0;
        const StackColumns *columns = stacks->columns, *const last = columns + stacks->count;
        for (; columns < last; columns += PAIR_ACROSS) {
            const char *from = x + at * stacks->x_row;
            char *to = y + first * stacks->y_row;
            ptrdiff_t x_row = stacks->x_row, beside;
            const vf32 *weight = block + 1;
            vf32 sums[PAIR_ACROSS][PAIR_ROWS], parts[PAIR_ACROSS][PAIR_ROWS];
            Steps steps;
            if (columns + PAIR_ACROSS > last)
                columns = last - PAIR_ACROSS;
            beside = columns[1].x - columns[0].x;
            from += columns->x;
            if (columns[0].masked | columns[1].masked || above || below) {
                const ptrdiff_t pitch = window_pitch(stacks->taps, stacks->x_tap);
                copy_window((char *)window, pitch, reach, stacks, from, columns->x, above, below);
                from = (const char *)window, x_row = pitch;
            }
            steps = steps_of(x_row);
#pragma GCC unroll 8
            for (int i = 0; i < PAIR_ROWS; i++)
                sums[0][i] = sums[1][i] = block[0];
            for (ptrdiff_t rows = high; rows > 0; rows--, from += x_row) {
                const char *tap = from;
#pragma GCC unroll 1
                for (ptrdiff_t taps = stacks->taps; taps > 0; taps--, tap += stacks->x_tap, weight++) {
                    const char *cell = tap, *other = tap + beside;
                    vf32 each = *weight;
                    __asm__ volatile("" : "+x"(each) : : "memory");
#pragma GCC unroll 8
                    for (int i = 0; i < PAIR_ROWS; i++) {
                        sums[0][i] += *(const vf32 *)step_to(&cell, steps, i) * each;
                        sums[1][i] += *(const vf32 *)step_to(&other, steps, i) * each;
                    }
                }
            }
            /* Sums whose address others know are not in registers. */
#pragma GCC unroll 8
            for (int i = 0; i < PAIR_ROWS; i++)
                parts[0][i] = sums[0][i], parts[1][i] = sums[1][i];
#pragma GCC unroll 1
            for (int v = 0; v < PAIR_ACROSS; v++) {
#pragma GCC unroll 1
                for (int i = 0; i < PAIR_ROWS; i++)
                    parts[v][i] = at_most_f32(at_least_f32(parts[v][i], limits[0]), limits[1]);
                store_parts(parts[v], to + columns[v].y, stacks->y_row, columns[v].lanes, stored);
            }
        }
    }
}

#define STACKS(name, high, stride, mixed) \
    static __attribute__((noinline)) void name(const Stacks *stacks, const vf32 *limits, const char *x, char *y) \
    { \
        stacks_of(stacks, limits, x, y, high, stride, mixed); \
    }
STACKS(stacks_2_2, 2, 2, 0)
STACKS(stacks_3_1, 3, 1, 0)
STACKS(stacks_3_2, 3, 2, 0)
STACKS(stacks_5_1, 5, 1, 0)
STACKS(stacks_5_2, 5, 2, 0)
STACKS(stacks_7_1, 7, 1, 0)
STACKS(mixed_stacks_3, 3, 1, 1)
STACKS(mixed_stacks_5, 5, 1, 1)
STACKS(mixed_stacks_7, 7, 1, 1)
#endif

/* By taps, the same down and across, and stride. */
static const PlaneStacks plane_stacks[STRIP_TAPS + 1][3] = {
#if VECTOR_BYTES == 32
    [2] = {[2] = stacks_2_2}, [3] = {[1] = stacks_3_1, [2] = stacks_3_2}, [5] = {[1] = stacks_5_1, [2] = stacks_5_2}, [7] = {[1] = stacks_7_1},
#endif
};

/* Of pixels that share a vector (`mixed`), each lane of which has weights of its own, at step 1: by taps, the same down and across; 0: any. */
static const PlaneStacks mixed_stacks[STRIP_TAPS + 1] = {
#if VECTOR_BYTES == 32
    [0] = mixed_stacks_any, [3] = mixed_stacks_3, [5] = mixed_stacks_5, [7] = mixed_stacks_7,
#endif
};

#endif

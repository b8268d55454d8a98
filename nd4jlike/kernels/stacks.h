/* float32 planes by square filters with 16 registers, in C (see taps.h): outputs below each other, one vector of columns each, are a stack, whose sums stay in
 * registers with the weights of a column of taps. A tap of a row is added to all of them before the next one: a strip (planes.h) would load its weights for
 * each row, or keep its sums in memory.
 */
#ifndef ND4JLIKE_STACKS_H
#define ND4JLIKE_STACKS_H

#include "planes.h"

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

/* All outputs of rows `begin` to `end`, of planes from the first to the end. */
typedef struct {
    /* `x` and `y` are at plane 0, whose weights are those of plane `lead`. */
    ptrdiff_t first_plane, end_plane, lead, multiplier, x_plane, y_plane;
    /* Rows of inputs above the first window, and of the image. */
    ptrdiff_t begin, end, pad, height;
    /* Taps in a row; bytes. */
    ptrdiff_t taps, x_tap, x_row, y_row;
    /* Packed weights: a vector of biases, then one for each tap. */
    const float *blocks;
    ptrdiff_t block_vectors;
    /* Whether the rows of the next stacks are fetched meanwhile. */
    int count, fetches;
    StackColumns columns[COLUMNS_ACROSS];
} Stacks;

typedef void (*PlaneStacks)(const Stacks *stacks, const vf32 *limits, const char *x, char *y);

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

/* `rows` outputs, the first of which has its first tap at x; all are stored, of a low stack `stored`. */
WORD void one_stack(
    const Stacks *stacks, const StackColumns *columns, const vf32 *limits, const float *block, const char *x, char *y, ptrdiff_t above, ptrdiff_t below,
    ptrdiff_t stored, const int rows, const int high, const int stride)
{
    const Steps steps = steps_of(stacks->x_row), y_steps = steps_of(stacks->y_row);
    const ptrdiff_t pitch = (high == 3 ? 3 : stacks->taps) * LANES, lanes = columns->lanes;
    const vi32 *masks = columns->masks;
    const float *weight = block + LANES;
    const char *to = y;
    unsigned masked = columns->masked;
    vf32 sums[STACK_ROWS], low, most;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        sums[i] = splat_f32(*block);
#define ADD_TO_STACK(together) \
    { \
        if (masked & ((1 << (together)) - 1) || rows < STACK_ROWS) \
            add_to_stack(sums, weight, pitch, x, steps, masks, above, below, rows, high, stride, together, 1); \
        else \
            add_to_stack(sums, weight, pitch, x, steps, masks, above, below, rows, high, stride, together, 0); \
        masked >>= together; \
        masks += (together) * stride; \
        x += (together) * stacks->x_tap; \
        weight += (together) * LANES; \
    }
    if (high <= PAIRED_TAPS && stride == 2) {
        ADD_TO_STACK(2)
        if (high > 2)
            ADD_TO_STACK(1)
    } else if (high == 3)
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
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        sums[i] = at_most_f32(at_least_f32(sums[i], low), most);
        if (stride == 2)
            sums[i] = seconds_in_order(sums[i]);
    }
    /* What a whole vector writes to the next row is written again. */
    if (rows == STACK_ROWS && (lanes == LANES || (lanes >= LANES / 2 && stacks->y_row == 4 * lanes))) {
#pragma GCC unroll 8
        for (int i = 0; i < rows - 1; i++)
            *(vf32 *)step_to(&to, y_steps, i) = sums[i];
        store_f32((float *)step_to(&to, y_steps, rows - 1), sums[rows - 1], lanes);
    } else {
        vf32 parts[STACK_ROWS];
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            parts[i] = sums[i];
#pragma GCC unroll 1
        for (ptrdiff_t i = 0; i < stored; i++, y += y_steps.one)
            store_f32((float *)y, parts[i], lanes);
    }
}

/* The rows that stacks add below these: inputs, and outputs of two vectors at a time, which share lines. */
WORD void fetch_below(const Stacks *stacks, const char *x, const char *y, int second, const int high, const int stride)
{
    if (second || stride > 1) {
        x += ((STACK_ROWS - 1) * stride + high) * stacks->x_row;
#pragma GCC unroll 14
        for (int i = 0; i < STACK_ROWS * stride; i++, x += stacks->x_row)
            __builtin_prefetch(x, 0, 2);
    }
    if (second) {
        y += STACK_ROWS * stacks->y_row;
#pragma GCC unroll 7
        for (int i = 0; i < STACK_ROWS; i++, y += stacks->y_row)
            __builtin_prefetch(y, 1, 2);
    }
}

WORD void stacks_of(const Stacks *stacks, const vf32 *limits, const char *x, char *y, const int high, const int stride)
{
    const ptrdiff_t end = stacks->end, rows = end - stacks->begin;
    for (ptrdiff_t plane = stacks->first_plane; plane < stacks->end_plane; plane++) {
        const ptrdiff_t place = stacks->lead + plane;
        const float *block = stacks->blocks + place / LANES * stacks->block_vectors * LANES + place % LANES;
        /* A division takes as long as a row. */
        const char *of_plane = x + (stacks->multiplier == 1 ? plane : (ptrdiff_t)((uint32_t)plane / (uint32_t)stacks->multiplier)) * stacks->x_plane;
        char *to_plane = y + plane * stacks->y_plane;
        for (ptrdiff_t row = stacks->begin; row < end;) {
            /* Of what is left rows before it are computed again. */
            ptrdiff_t first = row > end - STACK_ROWS ? end - STACK_ROWS : row, at = first * stride - stacks->pad;
            const int low = rows < STACK_ROWS || end - row <= LOW_STACK || -at > high / 2 || at + (STACK_ROWS - 1) * stride + high - stacks->height > high / 2;
            const StackColumns *columns = stacks->columns, *const last = columns + stacks->count;
            const char *from;
            char *to;
            ptrdiff_t above, below;
            if (low) {
                first = rows < LOW_STACK || row <= end - LOW_STACK ? row : end - LOW_STACK;
                at = first * stride - stacks->pad;
            }
            from = of_plane + at * stacks->x_row;
            to = to_plane + first * stacks->y_row;
            above = at < 0 ? -at : 0;
            below = at + ((low ? LOW_STACK : STACK_ROWS) - 1) * stride + high - stacks->height;
            row = first + (low ? LOW_STACK : STACK_ROWS);
            if (low)
                for (; columns < last; columns++)
                    one_stack(
                        stacks, columns, limits, block, from + columns->x, to + columns->y, above, below, rows < LOW_STACK ? rows : LOW_STACK, LOW_STACK,
                        high, stride);
            else
                for (; columns < last; columns++) {
                    if (stacks->fetches)
                        fetch_below(stacks, from + columns->x, to + columns->y, (columns - stacks->columns) & 1, high, stride);
                    one_stack(stacks, columns, limits, block, from + columns->x, to + columns->y, above, below, STACK_ROWS, STACK_ROWS, high, stride);
                }
        }
    }
}
#define STACKS(high, stride) \
    static __attribute__((noinline)) void stacks_##high##_##stride(const Stacks *stacks, const vf32 *limits, const char *x, char *y) \
    { \
        stacks_of(stacks, limits, x, y, high, stride); \
    }
STACKS(2, 2)
STACKS(3, 1)
STACKS(3, 2)
STACKS(5, 1)
STACKS(5, 2)
STACKS(7, 1)
#endif

/* By taps, the same down and across, and stride. */
static const PlaneStacks plane_stacks[STRIP_TAPS + 1][3] = {
#if VECTOR_BYTES == 32
    [2] = {[2] = stacks_2_2}, [3] = {[1] = stacks_3_1, [2] = stacks_3_2}, [5] = {[1] = stacks_5_1, [2] = stacks_5_2}, [7] = {[1] = stacks_7_1},
#endif
};

#endif

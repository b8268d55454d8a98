/* The register tile of gradients by weights, in C: its loops over registers are unrolled whatever their length, which Cython cannot ask for.
 *
 * A part is a rectangle of a filter's taps whose sums fit the registers. Each input and each gradient is loaded once for all sums that it goes to.
 * Coordinates of inputs count from the first tap of the first output, in steps of the dilation; rows and columns outside the image are left out.
 */
#ifndef ND4JLIKE_GRADIENTS_H
#define ND4JLIKE_GRADIENTS_H

#include "simd.h"

/* Outputs of a tile; widest part and longest step between outputs, in steps of the dilation, and one more; most sums. */
enum { TILE_OUTPUTS = 4, PART_TAPS = 8, PART_STRIDES = 3, MOST_SUMS = 25 };

/* Rows of a part by its taps: with TILE_OUTPUTS gradients and an input they fill 32 registers of the widest vectors, or 16. */
#define PART_ROWS(taps) (taps == 1 ? 4 : taps == 3 ? 3 : taps == 5 ? (VECTOR_BYTES == 64 ? 5 : 2) : VECTOR_BYTES == 64 ? 3 : 1)

/* A part on a run of outputs in one row. */
typedef struct {
    /* Bytes from an input to the one for the next row of taps, and to its neighbour; from a gradient to its neighbour. */
    ptrdiff_t x_row, x_column, grad_column;
    /* Vectors from a row of sums to the next. */
    ptrdiff_t sums_row;
    /* The sum of the gradients themselves, or NULL. */
    vf32 *total;
    /* Rows of taps that meet the image: begin to end. */
    int begin, end;
    /* Outputs, at least one; taps from `low` on and before `high` meet the image at the first output, a stride less at each following one. */
    ptrdiff_t outputs, low, high;
    /* Outputs from `first_whole` on and before `end_whole` meet the image with all taps of a row. */
    ptrdiff_t first_whole, end_whole;
    /* Spread inputs: the element that each lane takes, how many there are, and lanes in use. */
    vi32 index;
    ptrdiff_t sources, lanes;
} Strip;

/* `outputs` neighbours, all of whose columns are inside; `whole`: so are their rows. */
WORD void add_tile(
    const Strip *strip, vf32 *sums, vf32 *total, const char *x, const char *grad,
    const int outputs, const int taps, const int stride, const int rows, const int whole, const int spread)
{
    vf32 grads[TILE_OUTPUTS];
#pragma GCC unroll 4
    for (int i = 0; i < outputs; i++) {
        const float *from = (const float *)(grad + i * strip->grad_column);
        grads[i] = spread ? load_part_f32(from, strip->lanes) : *(const vf32 *)from;
    }
    if (strip->total) {
        vf32 sum = grads[0];
#pragma GCC unroll 4
        for (int i = 1; i < outputs; i++)
            sum += grads[i];
        *total += sum;
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++, x += strip->x_row) {
        if (!whole && (row < strip->begin || row >= strip->end))
            continue;
#pragma GCC unroll 16
        for (int column = 0; column < (outputs - 1) * stride + taps; column++) {
            const float *from = (const float *)(x + column * strip->x_column);
            const vf32 value = spread ? load_spread_f32(from, strip->index, strip->sources) : *(const vf32 *)from;
#pragma GCC unroll 8
            for (int tap = 0; tap < taps; tap++)
                if (column >= tap && (column - tap) % stride == 0 && (column - tap) / stride < outputs)
                    sums[row * taps + tap] += value * grads[(column - tap) / stride];
        }
    }
}

/* One output, some of whose columns may be outside. */
WORD void add_output(
    const Strip *strip, vf32 *sums, vf32 *total, const char *x, const char *grad, ptrdiff_t low, ptrdiff_t high,
    const int taps, const int rows, const int whole, const int spread)
{
    const vf32 one = spread ? load_part_f32((const float *)grad, strip->lanes) : *(const vf32 *)grad;
    if (strip->total)
        *total += one;
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap++) {
        if (tap < low || tap >= high)
            continue;
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
            if (!whole && (row < strip->begin || row >= strip->end))
                continue;
            const float *from = (const float *)(x + row * strip->x_row + tap * strip->x_column);
            sums[row * taps + tap] += one * (spread ? load_spread_f32(from, strip->index, strip->sources) : *(const vf32 *)from);
        }
    }
}

WORD void add_outputs(
    const Strip *shared, vf32 *memory, const char *x, const char *grad, const int taps, const int stride, const int rows, const int whole, const int spread)
{
    /* A copy, because the compiler must take a vector that is stored for one that may change the original. */
    const Strip strip = *shared;
    vf32 sums[MOST_SUMS], total = {0};
    ptrdiff_t output = 0;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++) {
        const int used = whole || (row >= strip.begin && row < strip.end);
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++)
            sums[row * taps + tap] = used ? memory[row * strip.sums_row + tap] : (vf32){0};
    }
    if (strip.total)
        total = *strip.total;
    while (1) {
        if (output >= strip.first_whole && output + TILE_OUTPUTS <= strip.end_whole) {
            add_tile(&strip, sums, &total, x, grad, TILE_OUTPUTS, taps, stride, rows, whole, spread);
            output += TILE_OUTPUTS;
            x += TILE_OUTPUTS * stride * strip.x_column;
            grad += TILE_OUTPUTS * strip.grad_column;
        } else {
            add_output(&strip, sums, &total, x, grad, strip.low - output * stride, strip.high - output * stride, taps, rows, whole, spread);
            output++;
            x += stride * strip.x_column;
            grad += strip.grad_column;
        }
        if (output >= strip.outputs)
            break;
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++) {
        const int used = whole || (row >= strip.begin && row < strip.end);
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++)
            if (used)
                memory[row * strip.sums_row + tap] = sums[row * taps + tap];
    }
    if (strip.total)
        *strip.total = total;
}

typedef void (*Adder)(const Strip *strip, vf32 *memory, const char *x, const char *grad);

#define ADDER(taps, stride, whole, spread) \
    static void add_##taps##_##stride##_##whole##_##spread(const Strip *strip, vf32 *memory, const char *x, const char *grad) \
    { \
        add_outputs(strip, memory, x, grad, taps, stride, PART_ROWS(taps), whole, spread); \
    }
#define ADDERS(taps, stride) ADDER(taps, stride, 0, 0) ADDER(taps, stride, 0, 1) ADDER(taps, stride, 1, 0)
ADDERS(1, 1)
ADDERS(3, 1)
ADDERS(3, 2)
ADDERS(5, 1)
ADDERS(5, 2)
ADDERS(7, 1)
ADDERS(7, 2)

/* By taps, stride, whether all rows meet the image, whether inputs are spread: those ask about each row, which costs 5 to 10 % and saves 20 KB of the wheel. */
#define ADDERS_OF(taps, stride) \
    [stride] = {{add_##taps##_##stride##_0_0, add_##taps##_##stride##_0_1}, {add_##taps##_##stride##_1_0, add_##taps##_##stride##_0_1}}
static const Adder adders[PART_TAPS][PART_STRIDES][2][2] = {
    [1] = {ADDERS_OF(1, 1)},
    [3] = {ADDERS_OF(3, 1), ADDERS_OF(3, 2)},
    [5] = {ADDERS_OF(5, 1), ADDERS_OF(5, 2)},
    [7] = {ADDERS_OF(7, 1), ADDERS_OF(7, 2)},
};
static const int part_rows[PART_TAPS] = {[1] = PART_ROWS(1), [3] = PART_ROWS(3), [5] = PART_ROWS(5), [7] = PART_ROWS(7)};

/* target[i] += source[i], and the source starts again. */
static inline void move_sums(double *target, float *source, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        target[i] += source[i];
        source[i] = 0;
    }
}

/* target[i * pitch] = the sum of the next `group` numbers of the source, `count` times for each of the pixels, which are `step` apart. */
WORD void sum_groups_of(
    const float *restrict source, float *restrict target, ptrdiff_t pixels, ptrdiff_t step, ptrdiff_t count, ptrdiff_t pitch, const ptrdiff_t group)
{
    for (; pixels > 0; pixels--, target += step)
        for (ptrdiff_t i = 0; i < count; i++, source += group) {
            float sum = source[0];
            for (ptrdiff_t j = 1; j < group; j++)
                sum += source[j];
            target[i * pitch] = sum;
        }
}

static inline void sum_groups_f32(
    const float *source, float *target, ptrdiff_t pixels, ptrdiff_t step, ptrdiff_t count, ptrdiff_t pitch, ptrdiff_t group)
{
    if (group == 2 && pitch == 1)
        sum_groups_of(source, target, pixels, step, count, 1, 2);
    else if (group == 4 && pitch == 1)
        sum_groups_of(source, target, pixels, step, count, 1, 4);
    else if (group == 8 && pitch == 1)
        sum_groups_of(source, target, pixels, step, count, 1, 8);
    else
        sum_groups_of(source, target, pixels, step, count, pitch, group);
}

#endif

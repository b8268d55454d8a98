/* Convolution of planes by any filter, in C (see taps.h): rows of float32 in scratch with zeros around, whose columns are split by the step along the row. So
 * the inputs of a tap for neighbouring outputs lie side by side, and none is outside. */
#ifndef ND4JLIKE_STAGED_H
#define ND4JLIKE_STAGED_H

#include "planes.h"

/* Rows of an image `x_row` bytes apart, whose cells are those from `begin` to before `end`: every one, or one of each `step`, up to PICKED_STEPS, and zeros
 * elsewhere, `count` of a row, to rows `row` bytes apart. A vector takes its cells out of `step` vectors, each of which adds the lanes whose cells it holds. */
enum { PICKED_STEPS = VECTOR_BYTES > 16 ? 4 : 2 };
WORD void stage_cells(
    char *target, ptrdiff_t row, const char *x, ptrdiff_t x_row, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, const vi32 *picks,
    const int step)
{
    for (; count > 0; count -= LANES, target += VECTOR_BYTES, x += step * VECTOR_BYTES, begin -= step * LANES, end -= step * LANES) {
        const int inside = begin <= 0 && end >= step * LANES;
        vmask masks[PICKED_STEPS];
#pragma GCC unroll 4
        for (int i = 0; i < step; i++)
            masks[i] = mask_of(lanes_between(begin - i * LANES, end - i * LANES));
        for (ptrdiff_t done = 0; done < rows; done++) {
            const float *from = (const float *)(x + done * x_row);
            vf32 value = inside ? *(const vf32 *)from : load_where_f32(from, masks[0]);
#pragma GCC unroll 4
            for (int i = 1; i < step; i++) {
                const vf32 next = inside ? *(const vf32 *)(from + i * LANES) : load_where_f32(from + i * LANES, masks[i]);
                value = step == 2 ? every_second_f32(value, next, 0) : pick_f32(value, next, picks[i]);
            }
            *(vf32 *)(target + done * row) = value;
        }
    }
}

static __attribute__((noinline)) void stage_rows(
    char *target, ptrdiff_t row, const char *x, ptrdiff_t x_row, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, ptrdiff_t step, const vi32 *picks)
{
    switch (step) {
    case 1: stage_cells(target, row, x, x_row, rows, begin, end, count, picks, 1); break;
    case 2: stage_cells(target, row, x, x_row, rows, begin, end, count, picks, 2); break;
#if VECTOR_BYTES > 16
    case 3: stage_cells(target, row, x, x_row, rows, begin, end, count, picks, 3); break;
    case 4: stage_cells(target, row, x, x_row, rows, begin, end, count, picks, 4); break;
#endif
    }
}

typedef struct {
    ptrdiff_t taps_down, taps_across;
    /* Bytes: from a staged row to the inputs of each tap across; from one tap down to the next; from a row of outputs to the next, of inputs and of
     * outputs. */
    const ptrdiff_t *offsets;
    ptrdiff_t x_tap, x_row, y_row;
    /* Taps down from the inputs of a row of outputs to those of the next, if a whole number; else 0. */
    ptrdiff_t step;
    /* Output rows, and columns of the last vector, that are stored. */
    ptrdiff_t rows, lanes;
} StagedTile;

WORD void store_staged(const StagedTile *tile, const vf32 *limits, const vf32 *sums, char *y, const int rows, const int vectors)
{
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++, y += tile->y_row) {
        if (row >= tile->rows)
            break;
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const vf32 value = at_most_f32(at_least_f32(sums[row * vectors + v], limits[0]), limits[1]);
            if (v == vectors - 1)
                store_f32((float *)(y + v * VECTOR_BYTES), value, tile->lanes);
            else
                *(vf32 *)(y + v * VECTOR_BYTES) = value;
        }
    }
}

/* `block` is at the channel's lane of its block: a vector of biases, then one for each tap. Sums enough not to wait for each other. */
WORD void staged_tile(const StagedTile *tile, const vf32 *limits, const float *block, const char *x, char *y, const int rows, const int vectors)
{
    vf32 sums[8];
    const float *weights = block + LANES;
#pragma GCC unroll 8
    for (int i = 0; i < rows * vectors; i++)
        sums[i] = splat_f32(*block);
    for (ptrdiff_t down = 0; down < tile->taps_down; down++, x += tile->x_tap)
#pragma GCC unroll 1
        for (ptrdiff_t tap = 0; tap < tile->taps_across; tap++, weights += LANES) {
            const char *from = x + tile->offsets[tap];
            const vf32 weight = splat_f32(*weights);
#pragma GCC unroll 8
            for (int row = 0; row < rows; row++, from += tile->x_row)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sums[row * vectors + v] += *(const vf32 *)(from + v * VECTOR_BYTES) * weight;
        }
    store_staged(tile, limits, sums, y, rows, vectors);
}

/* Two rows of outputs that share rows of inputs: a vector of these that crosses a line takes as long as two products. */
WORD void staged_pair(const StagedTile *tile, const vf32 *limits, const float *block, const char *x, char *y, const int vectors)
{
    vf32 sums[8];
    const ptrdiff_t taps = tile->taps_across * LANES, step = tile->step;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * vectors; i++)
        sums[i] = splat_f32(*block);
    for (ptrdiff_t down = 0; down < tile->taps_down + step; down++, x += tile->x_tap) {
        const float *upper = block + LANES + down * taps, *lower = upper - step * taps;
        if (down < tile->taps_down && down >= step)
#pragma GCC unroll 1
            for (ptrdiff_t tap = 0; tap < tile->taps_across; tap++, upper += LANES, lower += LANES)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) {
                    const vf32 value = *(const vf32 *)(x + tile->offsets[tap] + v * VECTOR_BYTES);
                    sums[v] += value * splat_f32(*upper);
                    sums[vectors + v] += value * splat_f32(*lower);
                }
        else if (down < tile->taps_down)
            for (ptrdiff_t tap = 0; tap < tile->taps_across; tap++, upper += LANES)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sums[v] += *(const vf32 *)(x + tile->offsets[tap] + v * VECTOR_BYTES) * splat_f32(*upper);
        else if (down >= step)
            for (ptrdiff_t tap = 0; tap < tile->taps_across; tap++, lower += LANES)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sums[vectors + v] += *(const vf32 *)(x + tile->offsets[tap] + v * VECTOR_BYTES) * splat_f32(*lower);
    }
    store_staged(tile, limits, sums, y, 2, vectors);
}

typedef void (*RunStaged)(const StagedTile *tile, const vf32 *limits, const float *block, const char *x, char *y);
#define STAGED(rows, vectors) \
    static __attribute__((noinline, unused)) void staged_##rows##_##vectors( \
        const StagedTile *tile, const vf32 *limits, const float *block, const char *x, char *y) \
    { \
        if (rows == 2 && tile->step) \
            staged_pair(tile, limits, block, x, y, vectors); \
        else \
            staged_tile(tile, limits, block, x, y, rows, vectors); \
    }
STAGED(8, 1)
STAGED(4, 1)
STAGED(4, 2)
STAGED(2, 3)
STAGED(2, 4)
STAGED(1, 4)

/* The tile of so many vectors side by side, and its rows, where there are so many. */
enum { STAGED_VECTORS = 4, STAGED_ROWS = 8 };
typedef struct {
    ptrdiff_t rows;
    RunStaged run;
} StagedChoice;

static inline StagedChoice staged_for(ptrdiff_t vectors, ptrdiff_t rows)
{
    switch (vectors) {
    case 1: return rows > 4 ? (StagedChoice){8, staged_8_1} : (StagedChoice){4, staged_4_1};
    case 2: return (StagedChoice){4, staged_4_2};
    case 3: return (StagedChoice){2, staged_2_3};
    default: return rows > 1 ? (StagedChoice){2, staged_2_4} : (StagedChoice){1, staged_1_4};
    }
}

#endif

/* Pairs of output rows of a square filter by fewer products, float32 (ADR 0019): down each column, three rows of taps make two outputs by four products instead of
 * six, F(2, 3), and two rows by three instead of four, F(2, 2). Groups of rows, the first of three, share their sums: what both rows of outputs have in common, its
 * sum and its difference, comes first; to each of them are added products of its own.
 */
#ifndef ND4JLIKE_WINOGRAD_H
#define ND4JLIKE_WINOGRAD_H

#include "taps.h"

/* Rows of outputs that a tile has at most, which finds what pairs share in the first-level cache. It has WIDE_TILE columns: the sums of a pair and the weights of a
 * row of taps take 28 of 32 registers; with 16 of them it is none the faster. */
enum { WINOGRAD_ROWS = 4 };
/* Vectors of weights behind those of the filter: of what both rows have in common, then of each row's own. */
#define WINOGRAD_VECTORS(taps) ((taps) * ((taps) + 1) / 2 + (taps) * ((taps)-1))

/* The products of one group: of each row's own, differences of rows that lie `apart`; else of what they have in common, of one row of inputs, or sum and difference
 * of two. */
WORD void add_transformed(
    vf32 *upper, vf32 *lower, const vf32 *weights, const char *x, ptrdiff_t x_row, ptrdiff_t apart, Steps steps, unsigned long long outside,
    const int ends, const int rows, const int taps, const int columns)
{
    const int last = columns + taps - 2;
#pragma GCC unroll 32
    for (int column = 0; column <= last; column++) {
        const char *cell = step_to(&x, steps, column);
        if (may_be_outside(EDGES, column, taps, last) && (outside >> column & 1))
            continue;
        vf32 first = *(const vf32 *)cell, second = {0};
        if (ends) {
            first -= *(const vf32 *)(cell + apart);
            second = *(const vf32 *)(cell + x_row) - *(const vf32 *)(cell + x_row + apart);
        } else if (rows == 2) {
            second = *(const vf32 *)(cell + x_row) - first;
            first += *(const vf32 *)(cell + x_row);
        }
#pragma GCC unroll 8
        for (int output = 0; output < columns; output++) {
            const int tap = column - output;
            if (tap < 0 || tap >= taps)
                continue;
            upper[output] += first * weights[tap];
            if (rows == 2)
                lower[output] += second * weights[taps + tap];
        }
    }
}

/* Pairs of rows, all of whose inputs are there but for columns at the edges. */
WORD void winograd_tile(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, const int taps)
{
    const int columns = WIDE_TILE;
    const unsigned long long outside = tile->outside;
    const Steps steps = steps_of(tile->x_column);
    const ptrdiff_t x_row = tile->x_row;
    const vf32 bias = block[0];
    block += 1 + taps * taps;
#pragma GCC unroll 1
    for (int row = 0; row < tile->rows; row += 2, x += 2 * x_row, y += 2 * tile->y_row) {
        vf32 sums[2 * WIDE_TILE];
        vf32 *const upper = sums, *const lower = sums + columns;
        const vf32 *weights = block;
        const char *from = x + x_row;
        ptrdiff_t apart = 2 * x_row;
        char *to = y;
        int stored = 2;
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++)
            upper[column] = bias, lower[column] = (vf32){0};
        add_transformed(upper, lower, weights, from, x_row, 0, steps, outside, 0, 2, taps, columns);
        weights += 2 * taps;
        from += 3 * x_row;
#pragma GCC unroll 1
        for (int group = 1; group < taps / 2; group++, weights += taps, from += 2 * x_row)
            add_transformed(upper, NULL, weights, from, x_row, 0, steps, outside, 0, 1, taps, columns);
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++) {
            const vf32 middle = upper[column];
            upper[column] = middle + lower[column];
            lower[column] = middle - lower[column];
        }
        from = x;
#pragma GCC unroll 1
        for (int group = 0; group < taps / 2; group++, weights += 2 * taps, from += apart + x_row, apart = x_row)
            add_transformed(upper, lower, weights, from, x_row, apart, steps, outside, 1, 2, taps, columns);
        if (row == 0 && (tile->cut & 1)) {
#pragma GCC unroll 8
            for (int column = 0; column < columns; column++)
                upper[column] = lower[column];
            to += tile->y_row;
            stored = 1;
        } else if (row + 2 == tile->rows && (tile->cut & 2)) {
            stored = 1;
        }
        store_outputs(to, sums, tile, lanes, stored, 2, columns, EDGES, FLOAT32);
    }
}

#endif

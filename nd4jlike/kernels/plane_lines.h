/* float32 by filters of one row or of one column, of any length, a row of outputs after another, in C (see taps.h): planes, and pixels of few channels that share a
 * vector (planes.h), whose weights are of their lanes. Vectors inside the image need no mask.
 */
#ifndef ND4JLIKE_PLANE_LINES_H
#define ND4JLIKE_PLANE_LINES_H

#include "planes.h"

WORD ptrdiff_t least_of(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* A row of outputs of a filter of one row or of one column, any number of taps; or COLUMN_ROWS of them, of a column. */
enum { LINE_VECTORS = 4, COLUMN_ROWS = 4, COLUMN_VECTORS = 2 };
typedef struct {
    /* Rows, and bytes from one to the next of the outputs. */
    ptrdiff_t rows, y_row;
    /* The first that is inside, and how many; bytes from the input of one to that of the next. */
    ptrdiff_t first, taps, tap;
    /* Columns outside before the first window, from tap to tap, and of the image; columns of a vector. */
    ptrdiff_t pad, dilation, width, lanes;
} PlaneLine;

#if VECTOR_BYTES > 16
/* `count` vectors inside the image. */
WORD void line_of(
    const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, const int count, const int mixed)
{
    const ptrdiff_t next = line->lanes * 4;
    vf32 sums[LINE_VECTORS];
#pragma GCC unroll 4
    for (int i = 0; i < count; i++)
        sums[i] = plane_weight(weights, mixed);
    weights += line->first * LANES;
#pragma GCC unroll 1
    for (ptrdiff_t tap = 0; tap < line->taps; tap++, x += line->tap) {
        const vf32 weight = plane_weight(weights += LANES, mixed);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            sums[i] += *(const vf32 *)(x + i * next) * weight;
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; i++)
        *(vf32 *)(y + i * next) = at_most_f32(at_least_f32(sums[i], limits[0]), limits[1]);
}

/* Outputs begin to end; `x` and `y` are at column 0. Vectors are stored whole where others follow, which store the lanes that they share again. */
WORD void line_from(
    const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, ptrdiff_t begin, ptrdiff_t end, const int mixed)
{
    const ptrdiff_t lanes = line->lanes, reach = (line->taps - 1) * line->dilation + LANES;
    while (begin < end) {
        const ptrdiff_t source = begin - line->pad;
        ptrdiff_t inside = source < 0 ? 0 : least_of(line->width - source - reach, end - begin - LANES);
        if (source >= 0 && inside >= (LINE_VECTORS - 1) * lanes) {
            line_of(line, limits, weights, x + source * 4, y + begin * 4, LINE_VECTORS, mixed);
            begin += LINE_VECTORS * lanes;
        } else if (source >= 0 && inside >= 0) {
            line_of(line, limits, weights, x + source * 4, y + begin * 4, 1, mixed);
            begin += lanes;
        } else {
            const ptrdiff_t count = least_of(lanes, end - begin);
            vf32 sum = plane_weight(weights, mixed);
            for (ptrdiff_t tap = 0; tap < line->taps; tap++) {
                const ptrdiff_t at = source + tap * line->dilation;
                sum += load_between_f32((const float *)(x + source * 4 + tap * line->tap), -at, least_of(count, line->width - at))
                    * plane_weight(weights + (1 + line->first + tap) * LANES, mixed);
            }
            sum = at_most_f32(at_least_f32(sum, limits[0]), limits[1]);
            if (VECTOR_BYTES == 32 && count == LANES)
                *(vf32 *)(y + begin * 4) = sum;
            else
                store_first_f32((float *)(y + begin * 4), sum, count);
            begin += lanes;
        }
    }
}

/* Of COLUMN_ROWS rows, whose inputs are all inside, of a filter of one column: each input is loaded once for all that it reaches. */
WORD void column_of(
    const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, const int mixed)
{
    const ptrdiff_t next = line->lanes * 4, taps = line->taps;
    vf32 sums[COLUMN_ROWS][COLUMN_VECTORS];
#pragma GCC unroll 4
    for (int row = 0; row < COLUMN_ROWS; row++)
#pragma GCC unroll 4
        for (int i = 0; i < COLUMN_VECTORS; i++)
            sums[row][i] = plane_weight(weights, mixed);
#pragma GCC unroll 1
    for (ptrdiff_t from = 0; from < taps + COLUMN_ROWS - 1; from++, x += line->tap) {
        const int all = from >= COLUMN_ROWS - 1 && from < taps;
        vf32 values[COLUMN_VECTORS];
        weights += LANES;
#pragma GCC unroll 4
        for (int i = 0; i < COLUMN_VECTORS; i++)
            values[i] = *(const vf32 *)(x + i * next);
#pragma GCC unroll 4
        for (int row = 0; row < COLUMN_ROWS; row++)
            if (all || (size_t)(from - row) < (size_t)taps) {
                const vf32 weight = plane_weight(weights - row * LANES, mixed);
#pragma GCC unroll 4
                for (int i = 0; i < COLUMN_VECTORS; i++)
                    sums[row][i] += values[i] * weight;
            }
    }
#pragma GCC unroll 4
    for (int row = 0; row < COLUMN_ROWS; row++, y += line->y_row)
#pragma GCC unroll 4
        for (int i = 0; i < COLUMN_VECTORS; i++)
            *(vf32 *)(y + i * next) = at_most_f32(at_least_f32(sums[row][i], limits[0]), limits[1]);
}

/* As line_from; columns outside the image, and the last ones, row by row. */
WORD void column_from(
    const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, ptrdiff_t begin, ptrdiff_t end, const int mixed)
{
    const ptrdiff_t lanes = line->lanes, first = line->pad > begin ? least_of(line->pad, end) : begin, last = least_of(end, line->pad + line->width);
    ptrdiff_t column = first;
    for (; last - column >= lanes + LANES; column += COLUMN_VECTORS * lanes)
        column_of(line, limits, weights, x + (column - line->pad) * 4, y + column * 4, mixed);
    for (int row = 0; row < COLUMN_ROWS; row++, x += line->tap, y += line->y_row) {
        line_from(line, limits, weights, x, y, begin, first, mixed);
        line_from(line, limits, weights, x, y, column, end, mixed);
    }
}

#define LINES(name, mixed) \
    static __attribute__((noinline)) void name##_line( \
        const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, ptrdiff_t begin, ptrdiff_t end) \
    { \
        if (line->rows == 1) \
            line_from(line, limits, weights, x, y, begin, end, mixed); \
        else \
            column_from(line, limits, weights, x, y, begin, end, mixed); \
    }
LINES(plane, 0)
LINES(mixed, 1)
#endif

typedef void (*OneLine)(const PlaneLine *line, const vf32 *limits, const float *weights, const char *x, char *y, ptrdiff_t begin, ptrdiff_t end);

/* Of planes, and of pixels that share a vector. */
static const OneLine line_kernels[2] = {
#if VECTOR_BYTES > 16
    plane_line, mixed_line,
#endif
};

#endif

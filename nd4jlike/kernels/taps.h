/* The register tile of rows of float32, of float64, or of halves that are widened as they are read, in C: its loops over registers are unrolled whatever
 * their length, which Cython cannot ask for. Vectors of doubles go by the type of those of floats; their words know better.
 *
 * A tile is up to 2 rows of `columns` outputs, `columns` a constant, or up to 4 where all inputs are there. Each input is loaded once and serves all outputs
 * that it reaches. Coordinates of inputs count from the first tap of the first output, in steps of the dilation; rows and columns outside the image are left
 * out, not multiplied.
 */
#ifndef ND4JLIKE_TAPS_H
#define ND4JLIKE_TAPS_H

#include "simd.h"

/* Columns of a tile, and of those that a narrow one is split into. A wide one serves outputs that are all stored, of inputs that are outside at the edges
 * at most; no spread ones. A general one serves any taps at a stride of 1; at others there are narrow ones, which load an input for each output that it reaches. */
enum { NARROW_TILE = 4, SPLIT_TILE = 2, WIDE_TILE = 7, GENERAL_TILE = 6, TILE_TAPS = 8, TILE_STRIDES = 3 };
/* Taps that a general tile adds at a time, and input columns of a tile at most. */
enum { TAPS_TOGETHER = 4, TILE_INPUTS = 63 };

/* Half open. */
typedef struct {
    int begin, end;
} Range;

/* What one row of inputs adds to, in blocks from `first` on. By tap: whether there is a row of outputs, whether it begins and ends with this row of inputs,
 * and, in bytes, where its sums wait and where it is stored. Sums of an output wait side by side, those of the next one `next` bytes behind. */
typedef struct {
    const vf32 *first;
    char *sums;
    ptrdiff_t next;
    unsigned present, begins, ends;
    ptrdiff_t held[TILE_TAPS], y[TILE_TAPS];
} Running;

typedef struct {
    /* Bytes. */
    ptrdiff_t x_row, x_column, y_row, y_column;
    /* Bytes from the inputs of an output to those of the next one of a tile. */
    ptrdiff_t x_output;
    /* Input rows that the upper output row alone, both, and the lower one alone reach. */
    Range upper, both, lower;
    /* Input rows from the first tap of the upper output row to that of the lower one. */
    int step;
    /* Output rows, 1 or 2, and columns that are stored. */
    int rows, stored;
    /* Taps in a row and stride. */
    int taps, stride;
    /* Input columns that are left out, a bit each. */
    unsigned long long outside;
    /* Blocks of LANES channels, so many bytes apart; then one that starts `tail` bytes from the first channel and stores that many elements. */
    ptrdiff_t whole_blocks, block_vectors, x_block, y_block, x_tail, y_tail, tail_lanes;
    /* Bytes that blocks after the first begin earlier, and that the first one does; the lanes of it that are stored, and of whole blocks. */
    ptrdiff_t back, ahead, first_lanes, whole_lanes;
    /* A power of 2 that all pixels, of input and output, are multiples of apart; 0: too small to matter. */
    ptrdiff_t period;
    /* Whether inputs are spread over the lanes: the last two vectors of a block tell how. */
    int spread;
    /* Of outputs; NULL: none. */
    const vf32 *limits;
    /* Of a whole tile: the first and last rows of inputs that are outside, as many as a centred filter reaches at most. */
    int above, below;
    /* What the next place along a row adds and is to be fetched before: bytes to its inputs and its outputs, rows and columns; 0 rows: nothing. */
    ptrdiff_t next_x, next_y;
    int new_rows, new_columns, next_rows, next_columns;
    /* Of planes that are pixels, with a stride: the inputs of the lanes in two vectors. */
    const vi32 *picked;
    /* Of a running tile. */
    const Running *running;
} Tile;

/* Which input columns of a tile may lie outside: none; as many on each side as a centred filter reaches; any. */
enum { INSIDE, EDGES, ANYWHERE };

WORD int may_be_outside(const int where, int column, const int taps, const int last)
{
    return where == ANYWHERE || (where == EDGES && (column < taps / 2 || column > last - taps / 2));
}

/* Vectors at the end of a block of spread inputs: the element that each lane takes; then, in the first lanes, the first channel and how many there are. */
enum { SPREAD_INDEX, SPREAD_SOURCE, SPREAD_VECTORS };

#define ITEM_BYTES(element) ((element) == FLOAT64 ? 8 : (element) == FLOAT32 ? 4 : 2)

/* A step in bytes, and 3 of them: loads and stores add a number times 1, 2, 4 or 8 by themselves. Opaque, else the compiler adds step after step. */
typedef struct {
    ptrdiff_t one, three;
} Steps;

WORD Steps steps_of(ptrdiff_t step)
{
    Steps steps = {step, 3 * step};
    __asm__("" : "+r"(steps.three));
    return steps;
}

/* The cell of a column, a constant that counts up from 0; `from` goes along, to the last multiple of 4. */
WORD char *step_to(const char **from, Steps steps, const int column)
{
    if (column && column % 4 == 0) {
        *from += 4 * steps.one;
        __asm__("" : "+r"(*from));
    }
    return (char *)*from + (column % 4 == 3 ? steps.three : column % 4 * steps.one);
}

WORD vf32 load_cell(const char *cell, vi32 index, ptrdiff_t sources, const int spread, const int element)
{
    return spread ? load_spread_as_f32(cell, index, sources, element) : load_row(cell, element);
}

/* A wide tile for two rows of outputs has one of 16 registers for all weights: 7 of them are read where they are needed, or the compiler loads them ahead
 * and keeps sums in memory instead. */
#define READS_WEIGHTS(taps, columns) (VECTOR_BYTES == 32 && columns == WIDE_TILE && (taps) == 7)

/* Some taps of one row of inputs, for one row of outputs or two; NULL: none. Each input is loaded once. */
WORD void add_taps(
    vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, Steps steps, unsigned long long outside,
    vi32 index, ptrdiff_t sources, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    const int last = (columns - 1) * stride + taps - 1;
#pragma GCC unroll 32
    for (int column = 0; column <= last; column++) {
        const char *cell = step_to(&x, steps, column);
        if (may_be_outside(where, column, taps, last) && (outside >> column & 1))
            continue;
        vf32 value = load_cell(cell, index, sources, spread, element);
        if (READS_WEIGHTS(taps, columns) && upper && lower)
            __asm__("" : "+r"(upper_weights), "+r"(lower_weights));
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++) {
            int output = (column - tap) / stride;
            if (column < tap || (column - tap) % stride != 0 || output >= columns)
                continue;
            if (upper)
                upper[output] = add_product(upper[output], value, upper_weights[tap], element);
            if (lower)
                lower[output] = add_product(lower[output], value, lower_weights[tap], element);
        }
    }
}

/* All taps of one row. Any number of them: some at a time, or with any stride one at a time, as if its outputs were neighbours. */
WORD void add_row(
    vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, Steps steps, unsigned long long outside,
    vi32 index, ptrdiff_t sources, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    int tap = 0;
    if (__builtin_constant_p(taps)) {
        add_taps(upper, lower, upper_weights, lower_weights, x, steps, outside, index, sources, spread, taps, stride, columns, where, element);
        return;
    }
    if (stride == 1)
#pragma GCC unroll 1
        for (; tap + TAPS_TOGETHER <= taps; tap += TAPS_TOGETHER)
            add_taps(
                upper, lower, upper_weights + tap, lower_weights + tap, x + tap * steps.one, steps, outside >> tap, index, sources,
                spread, TAPS_TOGETHER, 1, columns, where, element);
    const Steps outputs = steps_of(stride * steps.one);
    outside >>= tap;
#pragma GCC unroll 1
    for (; tap < taps; tap++, outside >>= 1) {
        const char *from = x + tap * steps.one;
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++) {
            const char *cell = step_to(&from, outputs, column);
            if (where != INSIDE && (outside >> column * stride & 1))
                continue;
            vf32 value = load_cell(cell, index, sources, spread, element);
            if (upper)
                upper[column] = add_product(upper[column], value, upper_weights[tap], element);
            if (lower)
                lower[column] = add_product(lower[column], value, lower_weights[tap], element);
        }
    }
}

/* Output rows of a tall tile: what the registers hold beside 9 weights. */
#define TALL_ROWS(columns) ((columns) == WIDE_TILE ? 3 : 4)

WORD void limit_outputs(vf32 *row, const Tile *tile, const int columns, const int element)
{
    if (tile->limits) {
        const vf32 low = tile->limits[0], high = tile->limits[1];
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++)
            row[column] = between(row[column], low, high, element);
    }
}

/* What is stored of the last block, out of the registers: a loop is small, and few blocks need it. */
#define STORE_PARTS(element) \
    static __attribute__((noinline, unused)) void store_parts_##element(const Tile *tile, char *y, const vf32 *sums, ptrdiff_t lanes, int rows, int columns) \
    { \
        const int stored = tile->stored < columns ? tile->stored : columns; \
        for (; rows > 0; rows--, y += tile->y_row, sums += columns) \
            for (int column = 0; column < stored; column++) \
                store_row(y + column * tile->y_column, sums[column], lanes, element, 0); \
    }
STORE_PARTS(FLOAT32)
STORE_PARTS(FLOAT64)
STORE_PARTS(FLOAT16)
STORE_PARTS(BFLOAT16)

/* Rows of outputs, `rows` of the most that a tile of these constants has. */
WORD void store_outputs(
    char *y, vf32 *sums, const Tile *tile, ptrdiff_t lanes, int rows, const int most, const int columns, const int where, const int element)
{
    const Steps steps = steps_of(tile->y_column);
    const int stored = tile->stored;
#pragma GCC unroll 4
    for (int row = 0; row < most; row++)
        limit_outputs(sums + row * columns, tile, columns, element);
    /* One question for all. */
    if (!MASKS(element) && __builtin_expect(lanes != LANES, 0)) {
        vf32 copies[TALL_ROWS(WIDE_TILE) * WIDE_TILE] __attribute__((aligned(VECTOR_BYTES)));
#pragma GCC unroll 32
        for (int output = 0; output < most * columns; output++)
            copies[output] = sums[output];
        (element == FLOAT32 ? store_parts_FLOAT32 : element == FLOAT64 ? store_parts_FLOAT64 : element == FLOAT16 ? store_parts_FLOAT16 : store_parts_BFLOAT16)(
            tile, y, copies, lanes, rows, columns);
        return;
    }
#pragma GCC unroll 4
    for (int row = 0; row < most; row++, y += tile->y_row) {
        const char *from = y;
        if (row && row == rows)
            return;
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++) {
            char *cell = step_to(&from, steps, column);
            if (where != ANYWHERE || column < stored)
                store_row(cell, sums[row * columns + column], lanes, element, !MASKS(element));
        }
    }
}

/* All taps of one block of channels: bias, then a weight vector for each tap. */
WORD void one_tile(
    const Tile *tile, unsigned long long outside, const vf32 *block, const char *x, char *y, ptrdiff_t lanes,
    const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    vf32 sums[2 * WIDE_TILE];
    vf32 *const upper = sums, *const lower = sums + columns;
    const ptrdiff_t behind = tile->step * taps;
    const Steps steps = steps_of(tile->x_column);
    const vf32 *weights;
    const char *from;
    const vi32 *how = (const vi32 *)(block + tile->block_vectors - SPREAD_VECTORS);
    const vi32 index = spread ? how[SPREAD_INDEX] : (vi32){0};
    const ptrdiff_t sources = spread ? how[SPREAD_SOURCE][1] : 0;
    int row;
    x += spread ? how[SPREAD_SOURCE][0] * ITEM_BYTES(element) : 0;
#pragma GCC unroll 8
    for (int column = 0; column < columns; column++)
        upper[column] = lower[column] = block[0];
    block++;
    weights = block + tile->upper.begin * taps;
    from = x + tile->upper.begin * tile->x_row;
#pragma GCC unroll 1
    for (row = tile->upper.begin; row < tile->upper.end; row++, weights += taps, from += tile->x_row)
        add_row(upper, NULL, weights, NULL, from, steps, outside, index, sources, spread, taps, stride, columns, where, element);
    if (tile->rows == 2) {
        weights = block + tile->both.begin * taps;
        from = x + tile->both.begin * tile->x_row;
#pragma GCC unroll 1
        for (row = tile->both.begin; row < tile->both.end; row++, weights += taps, from += tile->x_row)
            add_row(upper, lower, weights, weights - behind, from, steps, outside, index, sources, spread, taps, stride, columns, where, element);
        weights = block + tile->lower.begin * taps - behind;
        from = x + tile->lower.begin * tile->x_row;
#pragma GCC unroll 1
        for (row = tile->lower.begin; row < tile->lower.end; row++, weights += taps, from += tile->x_row)
            add_row(NULL, lower, NULL, weights, from, steps, outside, index, sources, spread, taps, stride, columns, where, element);
    }
    store_outputs(y, sums, tile, lanes, tile->rows, 2, columns, where, element);
}

/* Blocks whose outputs begin `skew` bytes beyond a line: those of the block before, and whether there is one, and one behind. */
typedef struct {
    vf32 *before;
    ptrdiff_t skew;
    int first, last;
} Joint;

/* A row of outputs as whole lines, which nobody reads before they are written, but for the ends of the first block and the last one. */
WORD void join_outputs(char *y, vf32 *row, const Tile *tile, const Joint *joint, vf32 *before, const int columns, const int where, const int element)
{
    const Steps steps = steps_of(tile->y_column);
    if (joint->first || joint->last)
        store_outputs(y, row, tile, tile->whole_lanes, 1, 1, columns, where, element);
    else
        limit_outputs(row, tile, columns, element);
    if (!joint->first) {
        const char *from = y - joint->skew;
        const vi32 order = order_of_joined(joint->skew);
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++)
            *(vf32 *)step_to(&from, steps, column) = join_f32(before[column], row[column], order);
    }
#pragma GCC unroll 8
    for (int column = 0; column < columns; column++)
        before[column] = row[column];
}

/* The same of a tile of `rows` rows and a filter of `high` rows of taps, of whose inputs as many are outside as a centred filter reaches at most, `above` and
 * `below`: no loops, each weight loaded once. */
WORD void whole_tile(
    const Tile *tile, unsigned long long outside, int above, int below, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, const Joint *joint,
    const int rows, const int high, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    /* Without a stride columns are side by side, while taps are dilated: input `column` is that of a tap for an output, which share none. */
    const int beside = stride == 0;
    const vi32 *how = (const vi32 *)(block + tile->block_vectors - SPREAD_VECTORS);
    const vi32 index = spread ? how[SPREAD_INDEX] : (vi32){0};
    const ptrdiff_t sources = spread ? how[SPREAD_SOURCE][1] : 0;
    vf32 sums[TALL_ROWS(WIDE_TILE) * WIDE_TILE];
    const Steps steps = steps_of(tile->x_column);
    const int last = beside ? columns * taps - 1 : (columns - 1) * stride + taps - 1, down_step = beside ? 1 : stride, reach = (rows - 1) * down_step + high;
    x += spread ? how[SPREAD_SOURCE][0] * ITEM_BYTES(element) : 0;
#pragma GCC unroll 32
    for (int output = 0; output < rows * columns; output++)
        sums[output] = block[0];
#pragma GCC unroll 16
    for (int row = 0; row < reach; row++, x += tile->x_row) {
        if ((row < high / 2 && row < above) || (row >= reach - high / 2 && row >= reach - below))
            continue;
        const char *from = x;
#pragma GCC unroll 32
        for (int column = 0; column <= last; column++) {
            const char *cell = beside ? from + column / columns * steps.one + column % columns * tile->x_output : step_to(&from, steps, column);
            if ((beside ? where != INSIDE && column / columns != taps / 2 : may_be_outside(where, column, taps, last)) && (outside >> column & 1))
                continue;
            vf32 value = load_cell(cell, index, sources, spread, element);
#pragma GCC unroll 32
            for (int output = 0; output < rows * columns; output++) {
                const int down = row - output / columns * down_step;
                const int across = !beside ? column - output % columns * stride : column % columns == output % columns ? column / columns : -1;
                if (down >= 0 && down < high && across >= 0 && across < taps)
                    sums[output] += value * block[1 + down * taps + across];
            }
        }
    }
    if (!joint) {
        store_outputs(y, sums, tile, lanes, rows, rows, columns, where, element);
        return;
    }
#pragma GCC unroll 4
    for (int row = 0; row < rows; row++, y += tile->y_row)
        join_outputs(y, sums + row * columns, tile, joint, joint->before + row * columns, columns, where, element);
}

/* Filters with variants for whole tiles. Others gain nothing, or lose where registers are few; those are too few for tall tiles that are not split. */
#define WHOLE_TILES(taps, element) ((VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && (taps) <= 3)) && (taps) > 1 && element == FLOAT32)
/* With vectors of 32 bytes 5x5 as well, wide ones at step 1: their loops over rows spill. */
#define WHOLE_WIDE(taps, stride, columns, element) (VECTOR_BYTES == 32 && (taps) == 5 && stride == 1 && columns == WIDE_TILE && element == FLOAT32)
/* Of spread halves, 3 taps wide, which load_spread_as_f32 can. */
#define SPREAD_TILES(taps, element) (element == FLOAT32 || ((taps) == 3 && element != FLOAT64))
/* Of halves those that are not tall. */
#define WHOLE_HALVES(taps, stride, columns, element) \
    (element != FLOAT32 && element != FLOAT64 && ((taps) <= 3 || (VECTOR_BYTES == 64 && (taps) == 5 && stride == 1 && columns == WIDE_TILE)) \
     && !TALL_TILES(taps, stride, element))
#define TALL_TILES(taps, stride, element) (VECTOR_BYTES == 64 && (taps) == 3 && stride == 1 && element != FLOAT64)
#define JOINING_TILES(taps, stride, element) (VECTOR_BYTES == 64 && (taps) == 3 && stride == 2 && element == FLOAT32)
#define SPLIT_TILES(taps, columns, element) (WHOLE_TILES(taps, element) && (taps) == 3 && columns == NARROW_TILE)
/* Whether float64 has tiles; of 5 and 7 taps wide ones only, at step 1. */
#define DOUBLES (VECTOR_BYTES == 64)

/* One place, `count` blocks of channels. What tiles differ in is read from memory again for each block: the compiler would keep it in registers, and
 * spill those. */
typedef void (*OneTile)(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count);

/* Blocks that are half a line, whose other half the block before has fetched. */
#define FETCHED_BEFORE(count) (VECTOR_BYTES == 32 && ((count) & 1))
/* Memory is read in more streams, one for each input and output of a tile, than prefetchers follow. */
static __attribute__((noinline)) void fetch_next(const Tile *tile, const char *x, const char *y)
{
    x += tile->next_x;
    y += tile->next_y;
    for (int row = 0; row < tile->new_rows; row++, x += tile->x_row)
        for (int column = 0; column < tile->new_columns; column++)
            __builtin_prefetch(x + column * tile->x_column, 0, 2);
    for (int row = 0; row < tile->next_rows; row++, y += tile->y_row)
        for (int column = 0; column < tile->next_columns; column++)
            __builtin_prefetch(y + column * tile->y_column, 1, 2);
    __asm__ volatile(""); /* Or the compiler takes all this for nothing. */
}

#define TILE(name, rows, spread, taps, stride, columns, where, element) TILE_OF(name, rows, taps, spread, taps, stride, columns, where, element)
#define TILE_OF(name, rows, high, spread, taps, stride, columns, where, element) \
    static __attribute__((unused)) void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        const unsigned long long outside = tile->outside; \
        do { \
            if (tile->new_rows && !FETCHED_BEFORE(count)) \
                fetch_next(tile, x, y); \
            if (rows) \
                whole_tile(tile, outside, tile->above, tile->below, block, x, y, lanes, NULL, rows, high, spread, taps, stride, columns, where, element); \
            else \
                one_tile(tile, outside, block, x, y, lanes, spread, taps, stride, columns, where, element); \
            block += tile->block_vectors; \
            x += (spread) ? 0 : tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }

/* Such a tile, a whole one; as many blocks as pay for the ends are joined where their outputs begin beyond lines. */
enum { JOINED_BLOCKS = 6 };
#define JOINING_TILE(name, plain, rows, taps, stride, columns, where) \
    static __attribute__((unused)) void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        vf32 before[(rows) * (columns)]; \
        Joint joint = {before, (uintptr_t)y % VECTOR_BYTES, 1, 0}; \
        if (joint.skew % 4 || joint.skew == 0 || count < JOINED_BLOCKS || tile->new_rows || tile->y_block != VECTOR_BYTES \
            || (tile->y_column | tile->y_row) % VECTOR_BYTES) { \
            plain(tile, block, x, y, lanes, count); \
            return; \
        } \
        do { \
            joint.last = count == 1; \
            whole_tile(tile, tile->outside, tile->above, tile->below, block, x, y, lanes, &joint, rows, taps, 0, taps, stride, columns, where, FLOAT32); \
            joint.first = 0; \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }

/* A whole image of WIDE_TILE rows and columns, of which one block after another stays in first-level cache, with its weights; no jumps but one. */
#define IMAGE_TILE(name, taps) \
    static __attribute__((unused)) void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        enum { EDGE = (taps) / 2, OUTSIDE = ((1 << EDGE) - 1) | (((1 << EDGE) - 1) << (EDGE + WIDE_TILE)) }; \
        do { \
            const char *from = x; \
            char *to = y; \
            _Pragma("GCC unroll 4") for (int row = 0; row < WIDE_TILE; row += 2) \
            { \
                const int rows = row + 1 < WIDE_TILE ? 2 : 1, last = row + rows - 1 + EDGE - (WIDE_TILE - 1); \
                whole_tile(tile, OUTSIDE, EDGE - row, last, block, from, to, lanes, NULL, rows, taps, 0, taps, 1, WIDE_TILE, EDGES, FLOAT32); \
                from += 2 * tile->x_row; \
                to += 2 * tile->y_row; \
                __asm__("" : "+r"(from), "+r"(to)); \
            } \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }

/* One row of inputs, for all rows of outputs that it reaches: sums that are not complete wait in memory, so that each input is loaded once, and those of a pixel
 * one after the other. */
WORD void running_tile(
    const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count, const int taps, const int stride, const int columns)
{
    const Running *running = tile->running;
    const int last = (columns - 1) * stride + taps - 1;
    const unsigned long long outside = tile->outside;
    const Steps steps = steps_of(tile->x_column), next = steps_of(running->next);
    const ptrdiff_t step = tile->block_vectors < 0 ? -VECTOR_BYTES : VECTOR_BYTES;
    char *sums = running->sums + (block - running->first) / tile->block_vectors * step;
    do {
        vf32 cells[2 * WIDE_TILE + 1];
        const char *from = x;
#pragma GCC unroll 32
        for (int column = 0; column <= last; column++) {
            const char *cell = step_to(&from, steps, column);
            if (!may_be_outside(EDGES, column, taps, last) || !(outside >> column & 1))
                cells[column] = *(const vf32 *)cell;
        }
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++) {
            vf32 row[WIDE_TILE];
            char *held = sums + running->held[tap];
            if (!(running->present >> tap & 1))
                continue;
            from = held;
            if (running->begins >> tap & 1)
#pragma GCC unroll 8
                for (int output = 0; output < columns; output++)
                    row[output] = block[0];
            else
#pragma GCC unroll 8
                for (int output = 0; output < columns; output++)
                    row[output] = *(const vf32 *)step_to(&from, next, output);
#pragma GCC unroll 32
            for (int column = 0; column <= last; column++) {
                if (may_be_outside(EDGES, column, taps, last) && (outside >> column & 1))
                    continue;
#pragma GCC unroll 8
                for (int output = 0; output < columns; output++) {
                    const int across = column - output * stride;
                    if (across >= 0 && across < taps)
                        row[output] += cells[column] * block[1 + tap * taps + across];
                }
            }
            from = held;
            if (running->ends >> tap & 1)
                store_outputs(y + running->y[tap], row, tile, lanes, 1, 1, columns, EDGES, FLOAT32);
            else
#pragma GCC unroll 8
                for (int output = 0; output < columns; output++)
                    *(vf32 *)step_to(&from, next, output) = row[output];
        }
        block += tile->block_vectors;
        x += tile->x_block;
        y += tile->y_block;
        sums += step;
    } while (--count);
}

#define RUNNING_TILE(taps, stride) \
    static void running_##taps##_##stride(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        running_tile(tile, block, x, y, lanes, count, taps, stride, WIDE_TILE); \
    }
#if VECTOR_BYTES == 64
RUNNING_TILE(3, 1)
RUNNING_TILE(3, 2)
#endif
/* By taps and stride. */
static const OneTile running_tiles[TILE_TAPS][TILE_STRIDES] = {
#if VECTOR_BYTES == 64
    [3] = {[1] = running_3_1, [2] = running_3_2},
#endif
};

/* Variants of a tile, each by place: up to 2 rows; those of spread inputs; 2 rows, and TALL_ROWS, of whole tiles; narrow tall ones by SPLIT_TILE columns. */
enum {
    SPREAD = ANYWHERE + 1,
    SPREAD_WHOLE = SPREAD + ANYWHERE + 1,
    WHOLE_TILE,
    TALL_TILE = WHOLE_TILE + EDGES + 1,
    SPLIT_TALL_TILE = TALL_TILE + EDGES + 1,
    VARIANTS = SPLIT_TALL_TILE + EDGES + 1
};

#define NAME_OF(variant, taps, stride, columns, element) tile_##variant##_##taps##_##stride##_##columns##_##element
#define TILES(taps, stride, columns, element) \
    TILE(NAME_OF(inside, taps, stride, columns, element), 0, 0, taps, stride, columns, INSIDE, element) \
    TILE(NAME_OF(edges, taps, stride, columns, element), 0, 0, taps, stride, columns, EDGES, element) \
    TILE(NAME_OF(any, taps, stride, columns, element), 0, 0, taps, stride, columns, ANYWHERE, element) \
    TILE(NAME_OF(spread, taps, stride, columns, element), 0, 1, taps, stride, columns, INSIDE, element) \
    TILE(NAME_OF(spread_any, taps, stride, columns, element), 0, 1, taps, stride, columns, ANYWHERE, element) \
    TILE(NAME_OF(spread_whole, taps, stride, columns, element), 2, 1, taps, stride, columns, EDGES, element) \
    TILE(NAME_OF(whole, taps, stride, columns, element), 2, 0, taps, stride, columns, INSIDE, element) \
    TILE(NAME_OF(whole_edges, taps, stride, columns, element), 2, 0, taps, stride, columns, EDGES, element) \
    JOINING_TILE(NAME_OF(joining, taps, stride, columns, element), NAME_OF(whole, taps, stride, columns, element), 2, taps, stride, columns, INSIDE) \
    JOINING_TILE(NAME_OF(joining_edges, taps, stride, columns, element), NAME_OF(whole_edges, taps, stride, columns, element), 2, taps, stride, columns, EDGES) \
    TILE(NAME_OF(tall, taps, stride, columns, element), TALL_ROWS(columns), 0, taps, stride, columns, INSIDE, element) \
    TILE(NAME_OF(tall_edges, taps, stride, columns, element), TALL_ROWS(columns), 0, taps, stride, columns, EDGES, element) \
    TILE(NAME_OF(split, taps, stride, columns, element), TALL_ROWS(columns), 0, taps, stride, SPLIT_TILE, INSIDE, element) \
    TILE(NAME_OF(split_edges, taps, stride, columns, element), TALL_ROWS(columns), 0, taps, stride, SPLIT_TILE, EDGES, element)

#define GENERAL_TILES(name, stride, columns, element) \
    TILE(name##_inside, 0, 0, tile->taps, stride, columns, INSIDE, element) \
    TILE(name##_any, 0, 0, tile->taps, stride, columns, ANYWHERE, element) \
    TILE(name##_spread, 0, 1, tile->taps, stride, columns, ANYWHERE, element)
#define ROW_OF_GENERAL_TILES(name, spread) {name##_inside, name##_any, name##_any, spread, spread, spread}
GENERAL_TILES(any_taps, 1, GENERAL_TILE, FLOAT32)
GENERAL_TILES(any_stride, tile->stride, NARROW_TILE, FLOAT32)
GENERAL_TILES(doubles_of_any_taps, 1, GENERAL_TILE, FLOAT64)
GENERAL_TILES(doubles_of_any_stride, tile->stride, NARROW_TILE, FLOAT64)
/* Fewer of halves; these serve others of theirs, too, where anything may be outside. */
TILE(halves_of_any_taps_inside, 0, 0, tile->taps, 1, GENERAL_TILE, INSIDE, FLOAT16)
TILE(halves_of_any_taps, 0, 0, tile->taps, 1, GENERAL_TILE, ANYWHERE, FLOAT16)
TILE(halves_of_any_stride, 0, 0, tile->taps, tile->stride, NARROW_TILE, ANYWHERE, FLOAT16)
TILE(brains_of_any_taps_inside, 0, 0, tile->taps, 1, GENERAL_TILE, INSIDE, BFLOAT16)
TILE(brains_of_any_taps, 0, 0, tile->taps, 1, GENERAL_TILE, ANYWHERE, BFLOAT16)
TILE(brains_of_any_stride, 0, 0, tile->taps, tile->stride, NARROW_TILE, ANYWHERE, BFLOAT16)
#define ROWS_OF_GENERAL_HALVES(name) \
    {{name##_of_any_taps_inside, name##_of_any_taps, name##_of_any_taps}, {name##_of_any_stride, name##_of_any_stride, name##_of_any_stride}}
/* By element type, and whether the stride is more than 1. */
static const OneTile general_tiles[BFLOAT16 + 1][2][VARIANTS] = {
    {ROW_OF_GENERAL_TILES(any_taps, any_taps_spread), ROW_OF_GENERAL_TILES(any_stride, any_stride_spread)},
#if DOUBLES
    [FLOAT64] = {ROW_OF_GENERAL_TILES(doubles_of_any_taps, NULL), ROW_OF_GENERAL_TILES(doubles_of_any_stride, NULL)},
#endif
#if WIDENS_HALVES
    [FLOAT16] = ROWS_OF_GENERAL_HALVES(halves), [BFLOAT16] = ROWS_OF_GENERAL_HALVES(brains),
#endif
};

/* Those that pay; what is not chosen is not compiled. Halves have fewer. */
#define CHOSEN(condition, variant, other, taps, stride, columns, element) \
    ((condition) ? NAME_OF(variant, taps, stride, columns, element) : NAME_OF(other, taps, stride, columns, element))
#define IF_CHOSEN(condition, variant, taps, stride, columns, element) ((condition) ? NAME_OF(variant, taps, stride, columns, element) : NULL)
#define ROW_OF_TILES(taps, stride, columns, element) \
    { \
        CHOSEN(WHOLE_TILES(taps, element) || WHOLE_WIDE(taps, stride, columns, element) || element != FLOAT32, edges, inside, taps, stride, columns, element), \
        NAME_OF(edges, taps, stride, columns, element), \
        columns == WIDE_TILE ? NAME_OF(edges, taps, stride, columns, element) \
            : (taps) == 3 || element == FLOAT32 || element == FLOAT64 ? NAME_OF(any, taps, stride, columns, element) \
            : element == FLOAT16 ? halves_of_any_stride : brains_of_any_stride, \
        element == FLOAT32 ? NAME_OF(spread, taps, stride, 4, element) : IF_CHOSEN(SPREAD_TILES(taps, element), spread_any, taps, stride, 4, element), \
        IF_CHOSEN(SPREAD_TILES(taps, element), spread_any, taps, stride, 4, element), \
        IF_CHOSEN(SPREAD_TILES(taps, element), spread_any, taps, stride, 4, element), \
        IF_CHOSEN((taps) == 3 && VECTOR_BYTES > 16 && element != FLOAT64, spread_whole, taps, stride, 4, element), \
        JOINING_TILES(taps, stride, element) ? NAME_OF(joining, taps, stride, columns, element) \
            : WHOLE_TILES(taps, element) ? CHOSEN((taps) <= 3, whole, whole_edges, taps, stride, columns, element) \
            : IF_CHOSEN(WHOLE_WIDE(taps, stride, columns, element) || WHOLE_HALVES(taps, stride, columns, element), whole_edges, taps, stride, columns, element), \
        JOINING_TILES(taps, stride, element) ? NAME_OF(joining_edges, taps, stride, columns, element) \
            : IF_CHOSEN( \
                WHOLE_TILES(taps, element) || WHOLE_WIDE(taps, stride, columns, element) || WHOLE_HALVES(taps, stride, columns, element), \
                whole_edges, taps, stride, columns, element), \
        IF_CHOSEN(TALL_TILES(taps, stride, element), tall, taps, stride, columns, element), \
        IF_CHOSEN(TALL_TILES(taps, stride, element), tall_edges, taps, stride, columns, element), \
        IF_CHOSEN(SPLIT_TILES(taps, columns, element), split, taps, stride, columns, element), \
        IF_CHOSEN(SPLIT_TILES(taps, columns, element), split_edges, taps, stride, columns, element), \
    }

/* Two columns side by side of a dilated filter: places inside, and at the edges. */
TILE(beside_inside, TALL_ROWS(NARROW_TILE), 0, 3, 0, SPLIT_TILE, INSIDE, FLOAT32)
TILE(beside_edges, TALL_ROWS(NARROW_TILE), 0, 3, 0, SPLIT_TILE, EDGES, FLOAT32)
static const OneTile beside_tiles[2] = {beside_inside, beside_edges};

/* 2 rows and columns of 3x3 by steps of 2: places inside, and at the edges. */
#if VECTOR_BYTES > 16
TILE(small_inside, 2, 0, 3, 2, SPLIT_TILE, INSIDE, FLOAT32)
TILE(small_edges, 2, 0, 3, 2, SPLIT_TILE, EDGES, FLOAT32)
static const OneTile small_tiles[EDGES + 1] = {small_inside, small_edges};
#else
static const OneTile small_tiles[EDGES + 1] = {NULL};
#endif

/* By taps. */
#if VECTOR_BYTES == 64
IMAGE_TILE(image_3, 3)
IMAGE_TILE(image_5, 5)
IMAGE_TILE(image_7, 7)
#endif
static const OneTile image_tiles[TILE_TAPS] = {
#if VECTOR_BYTES == 64
    [3] = image_3, [5] = image_5, [7] = image_7,
#endif
};

/* One output of a square filter whose steps leave it no inputs to share: its channels in a row, which is how prefetchers read. */
WORD void pixel_tile(
    const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count, const int taps, const int where)
{
    const vf32 low = tile->limits ? tile->limits[0] : splat_f32(-__builtin_inff()), high = tile->limits ? tile->limits[1] : splat_f32(__builtin_inff());
    const ptrdiff_t x_row = tile->x_row, x_column = tile->x_column, x_block = tile->x_block, y_block = tile->y_block, block_vectors = tile->block_vectors;
    const unsigned long long outside = tile->outside;
    const int above = tile->above, below = tile->below;
    ptrdiff_t outputs = tile->stored;
    do {
        const char *rows[3] = {x, x + x_row, x + 2 * x_row};
        const vf32 *weights = block;
        char *to = y;
        ptrdiff_t left = count;
        do {
            vf32 sum = weights[0];
#pragma GCC unroll 4
            for (int i = 0; i < taps; i++) {
                if (where != INSIDE && (i < above || i >= taps - below))
                    continue;
#pragma GCC unroll 4
                for (int j = 0; j < taps; j++)
                    if (where == INSIDE || !(outside >> j & 1))
                        sum += *(const vf32 *)(rows[i] + j * x_column) * weights[1 + i * taps + j];
            }
            sum = at_most_f32(at_least_f32(sum, low), high);
            if (MASKS(FLOAT32))
                store_chosen_f32((float *)to, sum, lanes);
            else
                store_f32((float *)to, sum, lanes);
            weights += block_vectors;
#pragma GCC unroll 4
            for (int i = 0; i < taps; i++)
                rows[i] += x_block;
            to += y_block;
        } while (--left);
        x += tile->x_output;
        y += tile->y_column;
    } while (--outputs);
}

#define PIXEL_TILE(taps) \
    static void pixel_##taps(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        if (tile->above || tile->below || tile->outside) \
            pixel_tile(tile, block, x, y, lanes, count, taps, EDGES); \
        else \
            pixel_tile(tile, block, x, y, lanes, count, taps, INSIDE); \
    }
PIXEL_TILE(2)
PIXEL_TILE(3)
static const OneTile pixel_tiles[TILE_TAPS][VARIANTS] = {[2] = {pixel_2, pixel_2, pixel_2}, [3] = {pixel_3, pixel_3, pixel_3}};

/* Whole tiles at step 1 of filters that have none above: of one row, a row of outputs at a time; of one column; square ones; and of one row where tiles are split. By
 * that, taps, and place. */
#define LINE_INSIDE(taps) TILE_OF(line_##taps, 1, 1, 0, taps, 1, GENERAL_TILE, INSIDE, FLOAT32)
#define ROW_TILE(taps, element) TILE_OF(row_##taps##_##element, 1, 1, 0, taps, 1, GENERAL_TILE, EDGES, element)
#define COLUMN_TILE(taps, element) TILE_OF(column_##taps##_##element, 2, taps, 0, 1, 1, NARROW_TILE, INSIDE, element)
#define LINE_TILES(taps, element) ROW_TILE(taps, element) COLUMN_TILE(taps, element)
#define SQUARE_TILE(taps, element) TILE_OF(square_##taps##_##element, 2, taps, 0, taps, 1, GENERAL_TILE, EDGES, element)
#define SPLIT_LINE_TILE(taps) TILE_OF(split_line_##taps, TALL_ROWS(NARROW_TILE), 1, 0, taps, 1, SPLIT_TILE, EDGES, FLOAT32)
#define ROW_OF(taps, element) [taps] = {row_##taps##_##element, row_##taps##_##element}
#define COLUMN_OF(taps, element) [taps] = {column_##taps##_##element}
#define SQUARE_OF(taps, element) [taps] = {square_##taps##_##element, square_##taps##_##element}
enum { ROW_LINE, COLUMN_LINE, SQUARE, SPLIT_LINE, LINE_KINDS };
#if VECTOR_BYTES > 16
LINE_TILES(2, FLOAT32) LINE_TILES(3, FLOAT32) LINE_TILES(4, FLOAT32) LINE_TILES(5, FLOAT32) LINE_TILES(7, FLOAT32)
LINE_INSIDE(2) LINE_INSIDE(3) LINE_INSIDE(4)
SQUARE_TILE(4, FLOAT32)
SPLIT_LINE_TILE(3) SPLIT_LINE_TILE(5)
#define HALVES_LINES(element) ROW_TILE(3, element) ROW_TILE(4, element) LINE_TILES(5, element) LINE_TILES(7, element) SQUARE_TILE(4, element)
HALVES_LINES(FLOAT16)
HALVES_LINES(BFLOAT16)
#define HALVES_OF_LINES(element) \
    {{ROW_OF(3, element), ROW_OF(4, element), ROW_OF(5, element), ROW_OF(7, element)}, {COLUMN_OF(5, element), COLUMN_OF(7, element)}, {SQUARE_OF(4, element)}}
#endif
static const OneTile line_tiles[BFLOAT16 + 1][LINE_KINDS][TILE_TAPS][EDGES + 1] = {
#if VECTOR_BYTES > 16
    [FLOAT32] = {
        {[2] = {line_2, row_2_FLOAT32}, [3] = {line_3, row_3_FLOAT32}, [4] = {line_4, row_4_FLOAT32}, ROW_OF(5, FLOAT32), ROW_OF(7, FLOAT32)},
        {COLUMN_OF(2, FLOAT32), COLUMN_OF(3, FLOAT32), COLUMN_OF(4, FLOAT32), COLUMN_OF(5, FLOAT32), COLUMN_OF(7, FLOAT32)},
        {SQUARE_OF(4, FLOAT32)},
        {[3] = {split_line_3, split_line_3}, [5] = {split_line_5, split_line_5}},
    },
    [FLOAT16] = HALVES_OF_LINES(FLOAT16), [BFLOAT16] = HALVES_OF_LINES(BFLOAT16),
#endif
};

/* Wide tiles where there is code to spare. */
#if VECTOR_BYTES > 16
#define TILES_OF_STRIDE(taps, stride, element) TILES(taps, stride, 4, element) TILES(taps, stride, 7, element)
#define TABLE_OF_STRIDE(taps, stride, element) [stride] = {ROW_OF_TILES(taps, stride, 4, element), ROW_OF_TILES(taps, stride, 7, element)}
#else
#define TILES_OF_STRIDE(taps, stride, element) TILES(taps, stride, 4, element)
#define TABLE_OF_STRIDE(taps, stride, element) [stride] = {ROW_OF_TILES(taps, stride, 4, element)}
#endif
#define TILES_OF_TAPS(taps, element) TILES_OF_STRIDE(taps, 1, element) TILES_OF_STRIDE(taps, 2, element)
#define TABLE_OF_TAPS(taps, element) [taps] = {TABLE_OF_STRIDE(taps, 1, element), TABLE_OF_STRIDE(taps, 2, element)}
#define TILES_OF(element) TILES_OF_TAPS(3, element) TILES_OF_TAPS(5, element) TILES_OF_TAPS(7, element)
TILES_OF_TAPS(1, FLOAT32)
/* Half a filter of 3x3: a phase of the gradient by the input of a stride of 2. */
TILES_OF_STRIDE(2, 1, FLOAT32)
TILES_OF(FLOAT32)
/* 4x4 by steps of 2; other places share the general tiles. */
#if VECTOR_BYTES > 16
TILE(even_edges, 0, 0, 4, 2, NARROW_TILE, EDGES, FLOAT32)
TILE(even_whole, 2, 0, 4, 2, NARROW_TILE, EDGES, FLOAT32)
#define TABLE_OF_EVEN_TAPS \
    [4] = {[2] = {{even_edges, even_edges, any_stride_any, any_stride_spread, any_stride_spread, any_stride_spread, NULL, even_whole, even_whole}}},
#else
#define TABLE_OF_EVEN_TAPS
#endif

#if DOUBLES
TILES_OF_TAPS(3, FLOAT64)
TILES_OF_STRIDE(5, 1, FLOAT64)
TILES_OF_STRIDE(7, 1, FLOAT64)
#endif
#if WIDENS_HALVES
#define COLUMNS_OF_HALVES(element, name) \
    [1] = {[1] = {{NAME_OF(inside, 1, 1, 4, element), NAME_OF(inside, 1, 1, 4, element), name##_of_any_stride}}}
TILE(NAME_OF(inside, 1, 1, 4, FLOAT16), 0, 0, 1, 1, 4, INSIDE, FLOAT16)
TILE(NAME_OF(inside, 1, 1, 4, BFLOAT16), 0, 0, 1, 1, 4, INSIDE, BFLOAT16)
TILES(2, 1, 4, FLOAT16)
TILES(2, 1, 4, BFLOAT16)
TILES_OF(FLOAT16)
TILES_OF(BFLOAT16)
#endif

/* By element type, taps in a row, stride in steps of the dilation, whether the tile is a wide one, and variant. */
static const OneTile tiles_table[BFLOAT16 + 1][TILE_TAPS][TILE_STRIDES][2][VARIANTS] = {
    [FLOAT32] = {
        TABLE_OF_TAPS(1, FLOAT32), [2] = {TABLE_OF_STRIDE(2, 1, FLOAT32)}, TABLE_OF_TAPS(3, FLOAT32), TABLE_OF_EVEN_TAPS
        TABLE_OF_TAPS(5, FLOAT32), TABLE_OF_TAPS(7, FLOAT32)},
#if DOUBLES
    [FLOAT64] = {TABLE_OF_TAPS(3, FLOAT64), [5] = {[1] = {[1] = ROW_OF_TILES(5, 1, 7, FLOAT64)}}, [7] = {[1] = {[1] = ROW_OF_TILES(7, 1, 7, FLOAT64)}}},
#endif
#if WIDENS_HALVES
    [FLOAT16] = {COLUMNS_OF_HALVES(FLOAT16, halves), [2] = {[1] = {ROW_OF_TILES(2, 1, 4, FLOAT16)}}, TABLE_OF_TAPS(3, FLOAT16), TABLE_OF_TAPS(5, FLOAT16), TABLE_OF_TAPS(7, FLOAT16)},
    [BFLOAT16] = {COLUMNS_OF_HALVES(BFLOAT16, brains), [2] = {[1] = {ROW_OF_TILES(2, 1, 4, BFLOAT16)}}, TABLE_OF_TAPS(3, BFLOAT16), TABLE_OF_TAPS(5, BFLOAT16), TABLE_OF_TAPS(7, BFLOAT16)},
#endif
};

/* Where the inputs of a tile lie. */
static int where_of(const Tile *tile, int columns)
{
    const unsigned long long edge = (1u << tile->taps / 2) - 1;
    if (tile->stored < columns)
        return ANYWHERE;
    return !tile->outside ? INSIDE : tile->outside & ~(edge | edge << ((columns - 1) * tile->stride + tile->taps - tile->taps / 2)) ? ANYWHERE : EDGES;
}

/* Until a store is done, a load whose address ends in the same 12 bits waits for it. Pixels a period apart all do so: outputs up to so many bytes behind
 * inputs, but for whole periods, delay the loads of the next blocks. */
enum { PAGE = 4096, DELAYED_BYTES = 256, DELAYED_PERIOD = 512 };

WORD void turn_blocks(Tile *tile)
{
    tile->block_vectors = -tile->block_vectors;
    tile->x_block = -tile->x_block;
    tile->y_block = -tile->y_block;
}

/* `count` places side by side, each with its blocks begin to end before the next; x and y are at channel 0. Parts of a split tile are such places, each with
 * the columns outside of the tile that it has. Blocks go down where stores would delay loads if they went up. */
static void run_tiles(
    Tile *tile, OneTile one, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, int columns, const char *x, char *y)
{
    const ptrdiff_t whole = end < tile->whole_blocks ? end : tile->whole_blocks, first = begin == 0 && tile->back ? 1 : begin;
    const ptrdiff_t shift = first ? tile->back : 0, x_tail = tile->spread ? 0 : tile->x_tail;
    const ptrdiff_t ahead = (y - x) & (tile->period - 1);
    const int down = tile->period && ahead && ahead <= DELAYED_BYTES;
    const ptrdiff_t from = down ? whole - 1 : first, x_from = tile->spread ? 0 : from * tile->x_block - shift, y_from = from * tile->y_block - shift;
    const vf32 *const from_block = blocks + from * tile->block_vectors, *const tail_block = blocks + tile->whole_blocks * tile->block_vectors;
    if (down)
        turn_blocks(tile);
    for (; count > 0; count--, x += columns * tile->x_output, y += columns * tile->y_column, tile->outside >>= columns * tile->stride) {
        if (begin < first)
            one(tile, blocks, x - tile->ahead, y - tile->ahead, tile->first_lanes, 1);
        if (first < whole)
            one(tile, from_block, x + x_from, y + y_from, tile->whole_lanes, whole - first);
        if (whole < end)
            one(tile, tail_block, x + x_tail, y + tile->y_tail, tile->tail_lanes, 1);
    }
    if (down)
        turn_blocks(tile);
}

#endif

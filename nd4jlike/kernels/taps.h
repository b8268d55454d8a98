/* The register tile of rows of float32, of float64, or of halves that are widened as they are read, in C: its loops over registers are unrolled whatever
 * their length, which Cython cannot ask for. Vectors of doubles go by the type of those of floats; their words know better.
 *
 * A tile is up to 2 rows of `columns` outputs, `columns` a constant, or up to 4 where all inputs are there. Each input is loaded once and serves all outputs
 * that it reaches. Coordinates of inputs count from the first tap of the first output, in steps of the dilation; rows and columns outside the image are left
 * out, not multiplied.
 */
#ifndef ND4JLIKE_TAPS_H
#define ND4JLIKE_TAPS_H

#include "floats.h"

/* Columns of a tile, and of those that a narrow one is split into. A wide one serves outputs that are all stored, of inputs that are outside at the edges
 * at most; no spread ones. A general one serves any taps at a stride of 1; at others there are narrow ones, which load an input for each output that it reaches. */
enum { NARROW_TILE = 4, SPLIT_TILE = 2, WIDE_TILE = 7, GENERAL_TILE = 6, TILE_TAPS = 8, TILE_STRIDES = 3 };
/* Taps that a general tile adds at a time, and input columns of a tile at most. */
enum { TAPS_TOGETHER = 4, TILE_INPUTS = 63 };

/* Half open. */
typedef struct {
    int begin, end;
} Range;

/* A row of outputs that a row of inputs adds to: the row of taps; in bytes, where its sums wait and where it is stored; whether it begins and ends there. */
typedef struct {
    ptrdiff_t tap, held, y;
    int begins, ends;
} Reached;

/* What one row of inputs adds to, in blocks from `first` on. Sums of an output wait side by side, those of the next one `next` bytes behind. */
enum { MOST_REACHED = 5 };
typedef struct {
    const vf32 *first;
    char *sums;
    ptrdiff_t next;
    int count;
    Reached rows[MOST_REACHED];
} Running;

/* The tiles of an image of which one block of channels comes after the other: along a row, in bytes from its first pixel, each with the columns of inputs that are
 * outside; rows of outputs, rows of inputs, and those above them that the first output reaches. */
enum { WALK_PLACES = 4 };
typedef struct {
    ptrdiff_t x[WALK_PLACES], y[WALK_PLACES];
    unsigned long long outside[WALK_PLACES];
    int places, rows, extent, above;
} Walk;

typedef struct Tile Tile;

/* Most rows and columns of square filters whose weights stay in registers. */
enum { RESIDENT_TAPS = 3 };

/* One place, `count` blocks of channels. What tiles differ in is read from memory again for each block: the compiler would keep it in registers, and
 * spill those. */
typedef void (*OneTile)(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count);

struct Tile {
    /* Bytes. */
    ptrdiff_t x_row, x_column, y_row, y_column;
    /* Bytes from the inputs of an output to those of the next one of a tile. */
    ptrdiff_t x_output;
    /* Input rows that the upper output row alone, both, and the lower one alone reach. */
    Range upper, both, lower;
    /* Input rows from the first tap of the upper output row to that of the lower one. */
    int step;
    /* Output rows, 1 or 2, and columns that are stored; of pairs of rows (winograd.h) an even number, and whether another one stores the first (1) or last (2). */
    int rows, stored, cut;
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
    /* Whether whole tiles that can touch the inputs of the next block, one vector on. */
    int touches;
    /* Of planes that are pixels, with a stride: the inputs of the lanes in two vectors. */
    const vi32 *picked;
    /* Of a running tile, and of a walking one. */
    const Running *running;
    const Walk *walk;
    /* Of a resident one: the outputs of a row that have a tap inside the image, begin to end. */
    ptrdiff_t begins[RESIDENT_TAPS], ends[RESIDENT_TAPS];
    /* The last 8 channels, where they are a block of their own: the tile that has them, NULL: none here; bytes to the first one; their block. */
    OneTile eight;
    ptrdiff_t eight_bytes, eight_block;
};

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

/* Of 16 registers a narrow tile of 7 taps has 8 for its sums, 4 for the inputs of a tap and one for its weight: tap by tap, in the order that is written here,
 * nothing else is needed, where a compiler left to itself keeps weights for later and sums in memory. */
#define GOES_BY_TAPS(taps, stride, columns, where, spread, element) \
    (VECTOR_BYTES == 32 && __builtin_constant_p(taps) && (taps) == 7 && stride == 1 && columns == NARROW_TILE && where == INSIDE && !(spread) \
     && element == FLOAT32)

/* As add_taps. */
WORD void add_by_taps(vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, Steps steps, const int taps)
{
    vf32 cells[NARROW_TILE];
#pragma GCC unroll 4
    for (int column = 0; column < NARROW_TILE - 1; column++, x += steps.one)
        cells[column] = *(const vf32 *)x;
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap++, x += steps.one) {
        cells[(tap + NARROW_TILE - 1) % NARROW_TILE] = *(const vf32 *)x;
#pragma GCC unroll 2
        for (int row = 0; row < 2; row++) {
            vf32 *const sums = row ? lower : upper;
            if (!sums)
                continue;
            vf32 weight = (row ? lower_weights : upper_weights)[tap];
            __asm__ volatile("" : "+x"(weight) : : "memory");
#pragma GCC unroll 4
            for (int output = 0; output < NARROW_TILE; output++)
                sums[output] += cells[(tap + output) % NARROW_TILE] * weight;
        }
    }
}

/* Some taps of one row of inputs, for one row of outputs or two; NULL: none. Each input is loaded once. */
WORD void add_taps(
    vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, Steps steps, unsigned long long outside,
    vi32 index, ptrdiff_t sources, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    const int last = (columns - 1) * stride + taps - 1;
    if (GOES_BY_TAPS(taps, stride, columns, where, spread, element)) {
        add_by_taps(upper, lower, upper_weights, lower_weights, x, steps, taps);
        return;
    }
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
        /* In registers: else each product would load two vectors. */
        vf32 weight = upper ? upper_weights[tap] : lower_weights[tap], lower_weight = lower ? lower_weights[tap] : weight;
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++) {
            const char *cell = step_to(&from, outputs, column);
            if (where != INSIDE && (outside >> column * stride & 1))
                continue;
            vf32 value = load_cell(cell, index, sources, spread, element);
            if (upper)
                upper[column] = add_product(upper[column], value, weight, element);
            if (lower)
                lower[column] = add_product(lower[column], value, lower_weight, element);
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

/* Instead of a stride: columns are side by side and taps 2 apart. */
enum { BESIDE_BY_TWO = -2 };

/* Which tap of an output of a row input `column` is, negative if none. */
WORD int tap_across(const int column, const int output, const int columns, const int stride)
{
    if (stride == 0)
        return column % columns == output ? column / columns : -1;
    if (stride == BESIDE_BY_TWO)
        return (column - output) % 2 == 0 ? (column - output) / 2 : -1;
    return column - output * stride;
}

/* Whether the rows of a tall tile are stored as soon as each is complete: what narrows them overlaps with products then. */
#if VECTOR_BYTES == 64
#define STORES_EARLY(rows, columns, element) (element == BRAINS_BY_WORDS && rows == TALL_ROWS(columns))
#else
#define STORES_EARLY(rows, columns, element) 0
#endif

/* The same of a tile of `rows` rows and a filter of `high` rows of taps, of whose inputs as many are outside as a centred filter reaches at most, `above` and
 * `below`: no loops, each weight loaded once. */
WORD void whole_tile(
    const Tile *tile, unsigned long long outside, int above, int below, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, const Joint *joint,
    const int touching, const int rows, const int high, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    /* Without a stride columns are side by side, while taps are dilated: input `column` is that of a tap for an output, which share none. Where taps are
     * known to be 2 apart, inputs follow each other, and outputs share every other one. */
    const int beside = stride == 0, twice = stride == BESIDE_BY_TWO, edge = twice ? 2 * taps - 1 : taps;
    const vi32 *how = (const vi32 *)(block + tile->block_vectors - SPREAD_VECTORS);
    const vi32 index = spread ? how[SPREAD_INDEX] : (vi32){0};
    const ptrdiff_t sources = spread ? how[SPREAD_SOURCE][1] : 0;
    vf32 sums[TALL_ROWS(WIDE_TILE) * WIDE_TILE];
    const Steps steps = steps_of(tile->x_column);
    const int last = beside ? columns * taps - 1 : twice ? columns + 2 * taps - 3 : (columns - 1) * stride + taps - 1;
    const int down_step = beside || twice ? 1 : stride, reach = (rows - 1) * down_step + high;
    const int early = STORES_EARLY(rows, columns, element);
    x += spread ? how[SPREAD_SOURCE][0] * ITEM_BYTES(element) : 0;
#pragma GCC unroll 32
    for (int output = 0; output < rows * columns; output++)
        sums[output] = block[0];
#pragma GCC unroll 16
    for (int row = 0; row < reach; row++, x += tile->x_row) {
        if (!((row < high / 2 && row < above) || (row >= reach - high / 2 && row >= reach - below))) {
            const char *from = x;
#pragma GCC unroll 32
            for (int column = 0; column <= last; column++) {
                const char *cell = beside ? from + column / columns * steps.one + column % columns * tile->x_output : step_to(&from, steps, column);
                if ((beside ? where != INSIDE && column / columns != taps / 2 : may_be_outside(where, column, edge, last)) && (outside >> column & 1))
                    continue;
                vf32 value = load_cell(cell, index, sources, spread, element);
                if (touching)
                    __builtin_prefetch(cell + VECTOR_BYTES, 0, 3);
#pragma GCC unroll 32
                for (int output = 0; output < rows * columns; output++) {
                    const int down = row - output / columns * down_step, across = tap_across(column, output % columns, columns, stride);
                    if (down >= 0 && down < high && across >= 0 && across < taps)
                        sums[output] += value * block[1 + down * taps + across];
                }
            }
        }
        if (early && row >= high - 1) {
            store_outputs(y, sums + (row - high + 1) * columns, tile, lanes, 1, 1, columns, where, element);
            y += tile->y_row;
        }
    }
    if (early)
        return;
    if (!joint) {
        store_outputs(y, sums, tile, lanes, rows, rows, columns, where, element);
        return;
    }
#pragma GCC unroll 4
    for (int row = 0; row < rows; row++, y += tile->y_row)
        join_outputs(y, sums + row * columns, tile, joint, joint->before + row * columns, columns, where, element);
}

/* A whole tile of 8 output channels, with vectors of 16 lanes half of one. Those that read the same input channel (`spread`): one element is loaded into all lanes
 * as fast as a vector, where any other order of lanes takes an instruction more. */
enum { EIGHT = 8, EIGHT_TAPS = 3 };
#if VECTOR_BYTES > 16
WORD void eight_tile(
    const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t count, const int rows, const int taps, const int stride, const int columns,
    const int spread, const int element)
{
    const int last = (columns - 1) * stride + taps - 1, reach = (rows - 1) * stride + taps;
    const unsigned long long outside = tile->outside;
    const Steps steps = steps_of(tile->x_column), y_steps = steps_of(tile->y_column);
    do {
        const ptrdiff_t source = spread ? ((const vi32 *)(block + tile->block_vectors - SPREAD_VECTORS))[SPREAD_SOURCE][0] * ITEM_BYTES(element) : 0;
        const char *from_row = x + source;
        char *to_row = y;
        veight sums[TALL_ROWS(WIDE_TILE) * WIDE_TILE];
#pragma GCC unroll 32
        for (int output = 0; output < rows * columns; output++)
            sums[output] = *(const veight *)block;
#pragma GCC unroll 16
        for (int row = 0; row < reach; row++, from_row += tile->x_row) {
            const char *from = from_row;
            if ((row < taps / 2 && row < tile->above) || (row >= reach - taps / 2 && row >= reach - tile->below))
                continue;
#pragma GCC unroll 32
            for (int column = 0; column <= last; column++) {
                const char *cell = step_to(&from, steps, column);
                if (may_be_outside(EDGES, column, taps, last) && (outside >> column & 1))
                    continue;
                const veight value = spread ? splat_eight_as_f32(cell, element) : load_eight_as_f32(cell, element);
#pragma GCC unroll 32
                for (int output = 0; output < rows * columns; output++) {
                    const int down = row - output / columns * stride, across = column - output % columns * stride;
                    if (down >= 0 && down < taps && across >= 0 && across < taps)
                        sums[output] += value * *(const veight *)(block + 1 + down * taps + across);
                }
            }
        }
        if (tile->limits) {
            const veight low = *(const veight *)tile->limits, high = *(const veight *)(tile->limits + 1);
#pragma GCC unroll 32
            for (int output = 0; output < rows * columns; output++)
                sums[output] = between_eight(sums[output], low, high);
        }
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++, to_row += tile->y_row) {
            const char *to = to_row;
#pragma GCC unroll 8
            for (int column = 0; column < columns; column++)
                store_eight_from_f32(step_to(&to, y_steps, column), sums[row * columns + column], element);
        }
        block += tile->block_vectors;
        y += tile->y_block;
    } while (--count);
}
#endif

/* A row of outputs, from the columns of a row of inputs. */
WORD void running_row(
    const Tile *tile, const Reached *reached, const vf32 *block, const vf32 *cells, unsigned long long outside, char *sums, char *y, ptrdiff_t lanes,
    const int taps, const int stride, const int columns)
{
    const int last = (columns - 1) * stride + taps - 1;
    const Steps next = steps_of(tile->running->next);
    const vf32 *const weights = block + 1 + reached->tap * taps;
    char *const held = sums + reached->held;
    const char *from = held;
    vf32 row[WIDE_TILE];
    if (reached->begins)
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
                row[output] += cells[column] * weights[across];
        }
    }
    from = held;
    if (reached->ends)
        store_outputs(y + reached->y, row, tile, lanes, 1, 1, columns, EDGES, FLOAT32);
    else
#pragma GCC unroll 8
        for (int output = 0; output < columns; output++)
            *(vf32 *)step_to(&from, next, output) = row[output];
}

/* One row of inputs, for all rows of outputs that it reaches: sums that are not complete wait in memory, so that each input is loaded once, and those of a pixel
 * one after the other. Branches of their own for each row of 3 are foretold better; 5 would be too much code. */
WORD void running_tile(
    const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count, const int taps, const int stride, const int columns)
{
    const Running *running = tile->running;
    const int last = (columns - 1) * stride + taps - 1;
    const unsigned long long outside = tile->outside;
    const Steps steps = steps_of(tile->x_column);
    const ptrdiff_t step = tile->block_vectors < 0 ? -VECTOR_BYTES : VECTOR_BYTES;
    char *sums = running->sums + (block - running->first) / tile->block_vectors * step;
    do {
        vf32 cells[2 * WIDE_TILE + 3];
        const char *from = x;
#pragma GCC unroll 32
        for (int column = 0; column <= last; column++) {
            const char *cell = step_to(&from, steps, column);
            if (!may_be_outside(EDGES, column, taps, last) || !(outside >> column & 1))
                cells[column] = *(const vf32 *)cell;
        }
        if (taps == 3)
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) {
                if (i < running->count)
                    running_row(tile, &running->rows[i], block, cells, outside, sums, y, lanes, taps, stride, columns);
            }
        else
#pragma GCC unroll 1
            for (int i = 0; i < running->count; i++)
                running_row(tile, &running->rows[i], block, cells, outside, sums, y, lanes, taps, stride, columns);
        block += tile->block_vectors;
        x += tile->x_block;
        y += tile->y_block;
        sums += step;
    } while (--count);
}

/* Outputs whose steps leave them few inputs to share, one by one: the channels of each in a row, which is how prefetchers read. `columns` of taps lie inside the
 * image, a constant, as prefetchers know a load by its instruction; and `high` rows, all that the filter has, or, if that is 0, those of tile->upper. */
WORD void pixel_tile(
    const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count, const int high, const int columns, const int element)
{
    const vf32 low = tile->limits ? tile->limits[0] : splat_f32(-__builtin_inff()), most = tile->limits ? tile->limits[1] : splat_f32(__builtin_inff());
    const ptrdiff_t x_row = tile->x_row, x_block = tile->x_block, y_block = tile->y_block, block_vectors = tile->block_vectors;
    const ptrdiff_t taps = high ? columns : tile->taps;
    const Steps steps = steps_of(tile->x_column);
    const int first = high ? 0 : __builtin_ctzll(~tile->outside);
    /* None where no column lies inside. */
    const ptrdiff_t rows = first < taps ? tile->upper.end - tile->upper.begin : 0;
    const vf32 *weights = block + 1 + tile->upper.begin * taps + first;
    ptrdiff_t outputs = tile->stored;
    x += tile->upper.begin * x_row + first * steps.one;
    do {
        const vf32 *bias = block, *of_block = weights;
        const char *pixel = x;
        char *to = y;
        ptrdiff_t left = count;
        do {
            const vf32 *of_row = of_block;
            const char *row = pixel;
            ptrdiff_t rest = rows;
            vf32 sum = *bias;
#define PIXEL_ROW \
    { \
        const char *from = row; \
        _Pragma("GCC unroll 8") for (int column = 0; column < columns; column++) \
            sum = add_product(sum, load_row(step_to(&from, steps, column), element), of_row[column], element); \
        of_row += taps; \
        row += x_row; \
    }
            if (high)
                _Pragma("GCC unroll 4") for (int i = 0; i < high; i++) PIXEL_ROW
            else
                _Pragma("GCC unroll 1") for (; rest > 0; rest--) PIXEL_ROW
#undef PIXEL_ROW
            sum = at_most_f32(at_least_f32(sum, low), most);
            store_row(to, sum, lanes, element, !MASKS(element) && lanes >= LANES);
            bias += block_vectors;
            of_block += block_vectors;
            pixel += x_block;
            to += y_block;
        } while (--left);
        x += tile->x_output;
        y += tile->y_column;
    } while (--outputs);
}

/* A row of outputs of a square filter that share few inputs: the weights of `together` blocks of channels, whose vectors lie side by side, stay in registers, and
 * what a row of outputs reaches of those blocks in the first-level cache. */
WORD void resident_tile(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t next_lanes, const int taps, const int together)
{
    const ptrdiff_t x_column = tile->x_column, x_output = tile->x_output, y_column = tile->y_column;
    const unsigned rows_inside = tile->upper.begin < tile->upper.end ? (1 << taps * tile->upper.end) - (1 << taps * tile->upper.begin) : 0;
    const char *rows[RESIDENT_TAPS];
    const vf32 *const limits = tile->limits, *const second = block + (together > 1 ? tile->block_vectors : 0);
    const vf32 low = limits ? limits[0] : block[0], high = limits ? limits[1] : block[0];
    vf32 weights[2 * RESIDENT_TAPS * RESIDENT_TAPS];
#pragma GCC unroll 32
    for (int i = 0; i < together * taps * taps; i++)
        weights[i] = (i % together ? second : block)[1 + i / together];
#pragma GCC unroll 4
    for (int i = 0; i < taps; i++)
        rows[i] = x + i * tile->x_row;
    for (ptrdiff_t output = 0; output < tile->stored;) {
        /* Outputs that have the same taps inside. */
        ptrdiff_t left = tile->stored;
        unsigned inside = 0;
#pragma GCC unroll 1
        for (int tap = 0; tap < taps; tap++) {
            const ptrdiff_t begin = tile->begins[tap], end = tile->ends[tap];
            if (begin <= output && output < end)
                inside |= (taps == 2 ? 5 : 0111) << tap;
            if (begin > output && begin < left)
                left = begin;
            if (end > output && end < left)
                left = end;
        }
        inside &= rows_inside;
        left -= output;
        output += left;
        do {
            vf32 sums[2] = {*block, *second};
            /* Asked each time: nine answers have no registers. */
            __asm__("" : "+r"(inside));
#pragma GCC unroll 16
            for (int tap = 0; tap < taps * taps; tap++)
                if (inside >> tap & 1)
#pragma GCC unroll 2
                    for (int i = 0; i < together; i++)
                        sums[i] += ((const vf32 *)(rows[tap / taps] + tap % taps * x_column))[i] * weights[tap * together + i];
            if (limits)
#pragma GCC unroll 2
                for (int i = 0; i < together; i++)
                    sums[i] = between(sums[i], low, high, FLOAT32);
#pragma GCC unroll 2
            for (int i = 0; i < together; i++)
                store_row(y + i * VECTOR_BYTES, sums[i], i ? next_lanes : lanes, FLOAT32, 0);
#pragma GCC unroll 4
            for (int i = 0; i < taps; i++)
                rows[i] += x_output;
            y += y_column;
        } while (--left);
    }
}

/* Outputs that a long filter adds to at a time. */
enum { LONG_TILE = 8 };

/* The input `column` pixels, a constant up to 7, behind x. */
WORD vf32 long_cell(const char *x, Steps steps, const int column)
{
    x += column >= 4 ? 4 * steps.one : 0;
    return *(const vf32 *)(x + (column % 4 == 3 ? steps.three : column % 4 * steps.one));
}

/* One tap for outputs `from` to `to`, the first of which has its input in `column`. */
WORD void add_tap(vf32 *sums, const vf32 *weight, const char *x, Steps steps, const int from, const int to, const int column)
{
#pragma GCC unroll 8
    for (int output = from; output < to; output++)
        sums[output] += long_cell(x, steps, column + output - from) * *weight;
}

/* `count` rows of inputs, for LONG_TILE outputs side by side of one row or two, whose sums wait, or begin with the bias; of two that are complete they are stored
 * in `y`, else it is NULL. The lower ones have their inputs `below` and their weights `behind` those of the upper ones. Of the inputs of a row of taps, counted
 * from the first tap of the first output, `begin` to `end` are inside; each output has some of them. */
WORD void add_long(
    const Tile *tile, const vf32 *bias, vf32 *waiting, const vf32 *weights, ptrdiff_t behind, const char *x, ptrdiff_t below, ptrdiff_t begin, ptrdiff_t end,
    int count, char *y, ptrdiff_t lanes, const int rows)
{
    const ptrdiff_t taps = tile->taps, all = end - LONG_TILE + 1, last = all < taps ? all : taps;
    const Steps steps = steps_of(tile->x_column);
    vf32 sums[2 * LONG_TILE];
    if (bias)
#pragma GCC unroll 16
        for (int i = 0; i < rows * LONG_TILE; i++)
            sums[i] = *bias;
    else
#pragma GCC unroll 16
        for (int i = 0; i < rows * LONG_TILE; i++)
            sums[i] = waiting[i];
    do {
        const vf32 *weight = weights;
        const char *from = x;
        ptrdiff_t left = last, rest = taps - all;
        /* In registers: else the compiler computes each of what follows ahead, and spills it. */
        __asm__("" : "+r"(left), "+r"(rest));
        /* Taps whose inputs are outside for the first outputs, by how many. */
        if (begin > 0) {
            weight += begin;
            from += begin * steps.one;
            left -= begin;
#pragma GCC unroll 8
            for (int missing = LONG_TILE - 1; missing > 0; missing--)
                if (missing <= begin)
#pragma GCC unroll 2
                    for (int row = 0; row < rows; row++)
                        add_tap(
                            sums + row * LONG_TILE, weight - missing + row * behind, from + row * below, steps, missing, LONG_TILE, 0);
        }
#pragma GCC unroll 1
        for (; left >= TAPS_TOGETHER; left -= TAPS_TOGETHER, weight += TAPS_TOGETHER, from += TAPS_TOGETHER * steps.one)
#pragma GCC unroll 2
            for (int row = 0; row < rows; row++)
                add_taps(
                    sums + row * LONG_TILE, NULL, weight + row * behind, NULL, from + row * below, steps, 0, (vi32){0}, 0, 0, TAPS_TOGETHER, 1, LONG_TILE, INSIDE,
                    FLOAT32);
#pragma GCC unroll 1
        for (; left > 0; left--, weight++, from += steps.one)
#pragma GCC unroll 2
            for (int row = 0; row < rows; row++)
                add_tap(sums + row * LONG_TILE, weight + row * behind, from + row * below, steps, 0, LONG_TILE, 0);
        /* The same for the last outputs. */
        if (rest > 0)
#pragma GCC unroll 8
            for (int missing = 1; missing < LONG_TILE; missing++)
                if (missing <= rest)
#pragma GCC unroll 2
                    for (int row = 0; row < rows; row++)
                        add_tap(
                            sums + row * LONG_TILE, weight + missing - 1 + row * behind, from + row * below, steps, 0, LONG_TILE - missing, missing - 1);
        weights += taps;
        x += tile->x_row;
    } while (--count > 0);
    if (rows == 2 && y) {
        store_outputs(y, sums, tile, lanes, rows, rows, LONG_TILE, EDGES, FLOAT32);
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows * LONG_TILE; i++)
        waiting[i] = sums[i];
}

#endif

/* The register tile of rows of float32, or of halves that are widened as they are read, in C: its loops over registers are unrolled whatever their length, which Cython cannot ask for.
 *
 * A tile is up to 2 rows of `columns` outputs, `columns` a constant. Each input is loaded once and serves all outputs that it reaches. Coordinates of
 * inputs count from the first tap of the first output, in steps of the dilation; rows and columns outside the image are left out, not multiplied.
 */
#ifndef ND4JLIKE_TAPS_H
#define ND4JLIKE_TAPS_H

#include "simd.h"

/* Columns of a tile. A wide one serves outputs that are all stored, of inputs that are outside at the edges at most; no spread ones. A general one serves
 * any taps and any stride, but loads an input for each output that it reaches. */
enum { NARROW_TILE = 4, WIDE_TILE = 7, GENERAL_TILE = 6, TILE_TAPS = 8, TILE_STRIDES = 3 };
/* Taps that a general tile adds at a time, and input columns of a tile at most. */
enum { TAPS_TOGETHER = 4, TILE_INPUTS = 63 };

/* Half open. */
typedef struct {
    int begin, end;
} Range;

typedef struct {
    /* Bytes. */
    ptrdiff_t x_row, x_column, y_row, y_column;
    /* Input rows that the upper output row alone, both, and the lower one alone reach. */
    Range upper, both, lower;
    /* Input rows from the first tap of the upper output row to that of the lower one. */
    int step;
    /* Output rows, 1 or 2, and columns that are stored. */
    int rows, stored;
    /* Taps in a row and stride, for the general tile. */
    int taps, stride;
    /* Input columns that are left out, a bit each. */
    unsigned long long outside;
    /* Blocks of LANES channels, so many bytes apart; then one that starts `tail` bytes from the first channel and stores that many elements. */
    ptrdiff_t whole_blocks, block_vectors, x_block, y_block, x_tail, y_tail, tail_lanes;
    /* Bytes that blocks after the first begin earlier. */
    ptrdiff_t back;
    /* Whether inputs are spread over the lanes: the last two vectors of a block tell how. */
    int spread;
} Tile;

/* Which input columns of a tile may lie outside: none; as many on each side as a centred filter reaches; any. */
enum { INSIDE, EDGES, ANYWHERE };

WORD int may_be_outside(const int where, int column, const int taps, const int last)
{
    return where == ANYWHERE || (where == EDGES && (column < taps / 2 || column > last - taps / 2));
}

/* Vectors at the end of a block of spread inputs: the element that each lane takes; then, in the first lanes, the first channel and how many there are. */
enum { SPREAD_INDEX, SPREAD_SOURCE, SPREAD_VECTORS };

#define ITEM_BYTES(element) ((element) == FLOAT32 ? 4 : 2)

/* Some taps of one row of inputs, for one row of outputs or two; NULL: none. Each input is loaded once. */
WORD void add_taps(
    vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, ptrdiff_t x_column, unsigned long long outside,
    vi32 index, ptrdiff_t sources, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    const int last = (columns - 1) * stride + taps - 1;
#pragma GCC unroll 32
    for (int column = 0; column <= last; column++) {
        if (may_be_outside(where, column, taps, last) && (outside >> column & 1))
            continue;
        const char *cell = x + column * x_column;
        vf32 value = spread ? load_spread_as_f32(cell, index, sources, element) : load_row(cell, element);
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++) {
            int output = (column - tap) / stride;
            if (column < tap || (column - tap) % stride != 0 || output >= columns)
                continue;
            if (upper)
                upper[output] += value * upper_weights[tap];
            if (lower)
                lower[output] += value * lower_weights[tap];
        }
    }
}

/* All taps of one row. Any number of them: some at a time, or with any stride one at a time, as if its outputs were neighbours. */
WORD void add_row(
    vf32 *upper, vf32 *lower, const vf32 *upper_weights, const vf32 *lower_weights, const char *x, ptrdiff_t x_column, unsigned long long outside,
    vi32 index, ptrdiff_t sources, const int spread, const int taps, const int stride, const int columns, const int where, const int element)
{
    int tap = 0;
    if (columns != GENERAL_TILE) {
        add_taps(upper, lower, upper_weights, lower_weights, x, x_column, outside, index, sources, spread, taps, stride, columns, where, element);
        return;
    }
    if (stride == 1)
#pragma GCC unroll 1
        for (; tap + TAPS_TOGETHER <= taps; tap += TAPS_TOGETHER)
            add_taps(
                upper, lower, upper_weights + tap, lower_weights + tap, x + tap * x_column, x_column, outside >> tap, index, sources,
                spread, TAPS_TOGETHER, 1, columns, where, element);
    const ptrdiff_t x_output = stride * x_column;
    x += tap * x_column;
    outside >>= tap;
#pragma GCC unroll 1
    for (; tap < taps; tap++, x += x_column, outside >>= 1) {
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++) {
            if (where != INSIDE && (outside >> column * stride & 1))
                continue;
            const char *cell = x + column * x_output;
            vf32 value = spread ? load_spread_as_f32(cell, index, sources, element) : load_row(cell, element);
            if (upper)
                upper[column] += value * upper_weights[tap];
            if (lower)
                lower[column] += value * lower_weights[tap];
        }
    }
}

WORD void store_outputs(
    char *y, const vf32 *row, ptrdiff_t y_column, vf32 low, vf32 high, ptrdiff_t lanes, int stored, const int columns, const int where, const int element)
{
    /* One question for all columns. */
    if (lanes == LANES) {
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++)
            if (where != ANYWHERE || column < stored)
                store_row(y + column * y_column, at_most_f32(at_least_f32(row[column], low), high), LANES, element, 1);
    } else {
#pragma GCC unroll 8
        for (int column = 0; column < columns; column++)
            if (where != ANYWHERE || column < stored)
                store_row(y + column * y_column, at_most_f32(at_least_f32(row[column], low), high), lanes, element, 0);
    }
}

/* All taps of one block of channels: bias, then a weight vector for each tap. */
WORD void one_tile(
    const Tile *tile, vf32 low, vf32 high, const vf32 *block, const char *x, char *y, ptrdiff_t lanes,
    const int spread, const int all_rows, const int taps, const int stride, const int columns, const int where, const int element)
{
    vf32 upper[WIDE_TILE], lower[WIDE_TILE];
    const ptrdiff_t behind = tile->step * taps;
    const vf32 *weights;
    const char *from;
    vi32 index = {0};
    ptrdiff_t sources = 0;
    int row;
    if (spread) {
        const vi32 *how = (const vi32 *)(block + tile->block_vectors - SPREAD_VECTORS);
        index = how[SPREAD_INDEX];
        x += how[SPREAD_SOURCE][0] * ITEM_BYTES(element);
        sources = how[SPREAD_SOURCE][1];
    }
#pragma GCC unroll 8
    for (int column = 0; column < columns; column++)
        upper[column] = lower[column] = block[0];
    block++;
    if (all_rows) {
#pragma GCC unroll 8
        for (row = 0; row < taps + stride; row++)
            add_row(
                row < taps ? upper : NULL, row < stride ? NULL : lower, block + row * taps, block + (row - stride) * taps, x + row * tile->x_row,
                tile->x_column, tile->outside, index, sources, spread, taps, stride, columns, where, element);
        store_outputs(y, upper, tile->y_column, low, high, lanes, tile->stored, columns, where, element);
        store_outputs(y + tile->y_row, lower, tile->y_column, low, high, lanes, tile->stored, columns, where, element);
        return;
    }
    weights = block + tile->upper.begin * taps;
    from = x + tile->upper.begin * tile->x_row;
#pragma GCC unroll 1
    for (row = tile->upper.begin; row < tile->upper.end; row++, weights += taps, from += tile->x_row)
        add_row(upper, NULL, weights, NULL, from, tile->x_column, tile->outside, index, sources, spread, taps, stride, columns, where, element);
    weights = block + tile->both.begin * taps;
    from = x + tile->both.begin * tile->x_row;
#pragma GCC unroll 1
    for (row = tile->both.begin; row < tile->both.end; row++, weights += taps, from += tile->x_row)
        add_row(upper, lower, weights, weights - behind, from, tile->x_column, tile->outside, index, sources, spread, taps, stride, columns, where, element);
    weights = block + tile->lower.begin * taps - behind;
    from = x + tile->lower.begin * tile->x_row;
#pragma GCC unroll 1
    for (row = tile->lower.begin; row < tile->lower.end; row++, weights += taps, from += tile->x_row)
        add_row(NULL, lower, NULL, weights, from, tile->x_column, tile->outside, index, sources, spread, taps, stride, columns, where, element);
    store_outputs(y, upper, tile->y_column, low, high, lanes, tile->stored, columns, where, element);
    if (tile->rows == 1)
        return;
    store_outputs(y + tile->y_row, lower, tile->y_column, low, high, lanes, tile->stored, columns, where, element);
}

WORD int at_edges(unsigned long long outside, const int taps, const int stride, const int columns)
{
    unsigned long long edge = (1u << taps / 2) - 1;
    return !(outside & ~(edge | edge << ((columns - 1) * stride + taps - taps / 2)));
}

/* `count` tiles side by side, each with its blocks begin to end before the next; x and y are at channel 0, whatever `begin`. */
WORD void row_of_tiles(
    const Tile *shared, const vf32 *limits, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, const char *x, char *y,
    const int spread, const int all_rows, const int taps, const int stride, const int columns, const int where, const int element)
{
    /* A copy, because the compiler must take a vector that is stored for one that may change the original. */
    const Tile tile = *shared;
    const vf32 low = limits[0], high = limits[1];
    for (; count > 0; count--, x += columns * stride * tile.x_column, y += columns * tile.y_column)
        for (ptrdiff_t block = begin; block < end; block++) {
            const int whole = block < tile.whole_blocks;
            const ptrdiff_t back = block ? tile.back : 0;
            const char *from = spread ? x : x + (whole ? block * tile.x_block - back : tile.x_tail);
            one_tile(
                &tile, low, high, blocks + block * tile.block_vectors, from, y + (whole ? block * tile.y_block - back : tile.y_tail),
                whole ? LANES : tile.tail_lanes, spread, all_rows, taps, stride, columns, where, element);
        }
}

/* Whether a tile has two rows of outputs, and all rows that they reach are inside. */
WORD int every_row(const Tile *tile, const int taps, const int stride)
{
    return tile->rows == 2 && tile->upper.begin == 0 && tile->upper.end == stride && tile->both.end == taps && tile->lower.end == taps + stride;
}

/* Filters with variants for such tiles: no loops over rows, each weight loaded once. Others gain nothing, or lose where registers are few. */
#define WHOLE_ROWS(taps, element) (VECTOR_BYTES > 16 && (taps) == 3 && element == FLOAT32)

typedef void (*Tiles)(
    const Tile *tile, const vf32 *limits, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, const char *x, char *y);

/* Halves have fewer variants. */
#define TILES(taps, stride, columns, element) \
    static void tiles_##taps##_##stride##_##columns##_##element( \
        const Tile *tile, const vf32 *limits, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, const char *x, char *y) \
    { \
        const int stored = tile->stored == columns, spread = columns != WIDE_TILE && tile->spread; \
        const int where = stored && tile->outside == 0 ? INSIDE : stored && at_edges(tile->outside, taps, stride, columns) ? EDGES : ANYWHERE; \
        const int most = columns == WIDE_TILE ? EDGES : INSIDE; \
        if (WHOLE_ROWS(taps, element) && !spread && where <= most && every_row(tile, taps, stride)) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 1, taps, stride, columns, most, element); \
        else if (spread && where == INSIDE && element == FLOAT32) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 1, 0, taps, stride, columns, INSIDE, element); \
        else if (spread) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 1, 0, taps, stride, columns, ANYWHERE, element); \
        else if (where == INSIDE && !WHOLE_ROWS(taps, element) && (columns == NARROW_TILE || element == FLOAT32)) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 0, taps, stride, columns, INSIDE, element); \
        else if (columns == WIDE_TILE || where != ANYWHERE) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 0, taps, stride, columns, EDGES, element); \
        else \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 0, taps, stride, columns, ANYWHERE, element); \
    }
#define GENERAL_TILES(name, stride) \
    static void name(const Tile *tile, const vf32 *limits, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t count, const char *x, char *y) \
    { \
        if (tile->spread) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 1, 0, tile->taps, stride, GENERAL_TILE, ANYWHERE, FLOAT32); \
        else if (tile->stored == GENERAL_TILE && tile->outside == 0) \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 0, tile->taps, stride, GENERAL_TILE, INSIDE, FLOAT32); \
        else \
            row_of_tiles(tile, limits, blocks, begin, end, count, x, y, 0, 0, tile->taps, stride, GENERAL_TILE, ANYWHERE, FLOAT32); \
    }
GENERAL_TILES(tiles_of_any_taps, 1)
GENERAL_TILES(tiles_of_any_stride, tile->stride)

/* Wide tiles where there is code to spare. */
#if VECTOR_BYTES > 16
#define TILES_OF_TAPS(taps, element) TILES(taps, 1, 4, element) TILES(taps, 1, 7, element) TILES(taps, 2, 4, element) TILES(taps, 2, 7, element)
#define TABLE_OF_TAPS(taps, element) \
    [taps] = {[1] = {tiles_##taps##_1_4_##element, tiles_##taps##_1_7_##element}, [2] = {tiles_##taps##_2_4_##element, tiles_##taps##_2_7_##element}}
#else
#define TILES_OF_TAPS(taps, element) TILES(taps, 1, 4, element) TILES(taps, 2, 4, element)
#define TABLE_OF_TAPS(taps, element) [taps] = {[1] = {tiles_##taps##_1_4_##element}, [2] = {tiles_##taps##_2_4_##element}}
#endif
#define TILES_OF(element) TILES_OF_TAPS(3, element) TILES_OF_TAPS(5, element) TILES_OF_TAPS(7, element)
TILES_OF_TAPS(1, FLOAT32)
TILES_OF(FLOAT32)

/* By element type, taps in a row, stride in steps of the dilation, and whether the tile is a wide one. */
#if WIDENS_HALVES
TILES_OF(FLOAT16)
TILES_OF(BFLOAT16)
#endif
static const Tiles tiles_table[BFLOAT16 + 1][TILE_TAPS][TILE_STRIDES][2] = {
    [FLOAT32] = {TABLE_OF_TAPS(1, FLOAT32), TABLE_OF_TAPS(3, FLOAT32), TABLE_OF_TAPS(5, FLOAT32), TABLE_OF_TAPS(7, FLOAT32)},
#if WIDENS_HALVES
    [FLOAT16] = {TABLE_OF_TAPS(3, FLOAT16), TABLE_OF_TAPS(5, FLOAT16), TABLE_OF_TAPS(7, FLOAT16)},
    [BFLOAT16] = {TABLE_OF_TAPS(3, BFLOAT16), TABLE_OF_TAPS(5, BFLOAT16), TABLE_OF_TAPS(7, BFLOAT16)},
#endif
};

#endif

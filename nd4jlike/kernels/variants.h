/* The tiles there are: which variants of taps.h are compiled, the tables that they are chosen from, and how the tiles of a row are run.
 */
#ifndef ND4JLIKE_VARIANTS_H
#define ND4JLIKE_VARIANTS_H

#include "taps.h"
#include "walks.h"
#include "winograd.h"

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
/* Which may touch the inputs of the next block with those of this one; another variant each. */
#define TOUCHING_TILES(taps, stride, columns, element) \
    (VECTOR_BYTES == 64 && ((taps) == 3 || (taps) == 5) && stride == 2 && columns == WIDE_TILE && element == FLOAT32)
#define SPLIT_TILES(taps, columns, element) (WHOLE_TILES(taps, element) && (taps) == 3 && columns == NARROW_TILE)
/* Whether float64 has tiles; of 5 and 7 taps wide ones only, at step 1. */
#define DOUBLES (VECTOR_BYTES == 64)

/* Blocks that are half a line, whose other half the block before has fetched. */
#define FETCHED_BEFORE(count) (VECTOR_BYTES == 32 && ((count) & 1))
/* Memory is read in more streams, one for each input and output of a tile, than prefetchers follow. Of a tile that has something new; loops ask at their end,
 * as compilers are not asked to turn them (setup.py). */
static __attribute__((noinline)) void fetch_next(const Tile *tile, const char *x, const char *y)
{
    /* Columns side by side, of dilated filters, have no stride. */
    const ptrdiff_t next = tile->stride ? tile->x_column : tile->x_output;
    x += tile->next_x;
    y += tile->next_y;
    int row = tile->new_rows, column;
    do {
        column = tile->new_columns - 1;
        do
            __builtin_prefetch(x + column * next, 0, 2);
        while (--column >= 0);
        x += tile->x_row;
    } while (--row > 0);
    row = tile->next_rows;
    if (row > 0)
        do {
            column = tile->next_columns - 1;
            do
                __builtin_prefetch(y + column * tile->y_column, 1, 2);
            while (--column >= 0);
            y += tile->y_row;
        } while (--row > 0);
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
            if ((rows) && TOUCHING_TILES(taps, stride, columns, element) && tile->touches) \
                whole_tile(tile, outside, tile->above, tile->below, block, x, y, lanes, NULL, 1, rows, high, spread, taps, stride, columns, where, element); \
            else if (rows) \
                whole_tile(tile, outside, tile->above, tile->below, block, x, y, lanes, NULL, 0, rows, high, spread, taps, stride, columns, where, element); \
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
            whole_tile(tile, tile->outside, tile->above, tile->below, block, x, y, lanes, &joint, 0, rows, taps, 0, taps, stride, columns, where, FLOAT32); \
            joint.first = 0; \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }

/* Rows of inputs, by taps, stride and columns. */
#define RUNNING_TILE(taps, stride, columns) \
    static void running_##taps##_##stride##_##columns(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        running_tile(tile, block, x, y, lanes, count, taps, stride, columns); \
    }
#define RUNNING_TILES(taps, stride) \
    RUNNING_TILE(taps, stride, 4) RUNNING_TILE(taps, stride, 5) RUNNING_TILE(taps, stride, 6) RUNNING_TILE(taps, stride, 7)
#define RUNNING_NAMES(taps, stride) \
    {[4] = running_##taps##_##stride##_4, running_##taps##_##stride##_5, running_##taps##_##stride##_6, running_##taps##_##stride##_7}
#if VECTOR_BYTES == 64
RUNNING_TILES(3, 1)
RUNNING_TILES(3, 2)
RUNNING_TILES(5, 1)
RUNNING_TILES(5, 2)
#endif
static const OneTile running_tiles[TILE_TAPS][TILE_STRIDES][WIDE_TILE + 1] = {
#if VECTOR_BYTES == 64
    [3] = {[1] = RUNNING_NAMES(3, 1), [2] = RUNNING_NAMES(3, 2)},
    [5] = {[1] = RUNNING_NAMES(5, 1), [2] = RUNNING_NAMES(5, 2)},
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
/* Fewer of float64 by steps, and of halves; these serve others of theirs, too, where anything may be outside. */
TILE(doubles_of_any_stride, 0, 0, tile->taps, tile->stride, NARROW_TILE, ANYWHERE, FLOAT64)
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
    [FLOAT64] = {ROW_OF_GENERAL_TILES(doubles_of_any_taps, NULL), {doubles_of_any_stride, doubles_of_any_stride, doubles_of_any_stride}},
#endif
#if WIDENS_HALVES
    [FLOAT16] = ROWS_OF_GENERAL_HALVES(halves), [BFLOAT16] = ROWS_OF_GENERAL_HALVES(brains),
#endif
};

/* Those that pay; what is not chosen is not compiled. Halves have fewer. */
#define CHOSEN(condition, variant, other, taps, stride, columns, element) \
    ((condition) ? NAME_OF(variant, taps, stride, columns, element) : NAME_OF(other, taps, stride, columns, element))
#define IF_CHOSEN(condition, variant, taps, stride, columns, element) ((condition) ? NAME_OF(variant, taps, stride, columns, element) : NULL)
/* Several filters of 7x7 for a channel are rare, by steps of 2 most of all: theirs are the tiles of any width, 1.7 times as slow and 14 KB of the wheel less;
 * so are those of 1x1 in rows of fewer outputs than a tile's, 1.2 times as slow and 5 KB less; and 7x7 by steps of 2 there. */
#define SPREAD_BY(general, inside, other, taps, stride, element) \
    ((general) && element == FLOAT32 ? any_stride_spread : element == FLOAT32 ? NAME_OF(inside, taps, stride, 4, element) \
     : IF_CHOSEN(SPREAD_TILES(taps, element), other, taps, stride, 4, element))
#define ROW_OF_TILES(taps, stride, columns, element) \
    { \
        CHOSEN(WHOLE_TILES(taps, element) || WHOLE_WIDE(taps, stride, columns, element) || element != FLOAT32, edges, inside, taps, stride, columns, element), \
        NAME_OF(edges, taps, stride, columns, element), \
        columns == WIDE_TILE ? NAME_OF(edges, taps, stride, columns, element) \
            : element == FLOAT32 && (taps) == 7 && stride == 2 ? any_stride_any \
            : (taps) == 3 || element == FLOAT32 || element == FLOAT64 ? NAME_OF(any, taps, stride, columns, element) \
            : element == FLOAT16 ? halves_of_any_stride : brains_of_any_stride, \
        SPREAD_BY((taps) == 7, spread, spread_any, taps, stride, element), \
        SPREAD_BY((taps) == 7 || (taps) == 1, spread_any, spread_any, taps, stride, element), \
        SPREAD_BY((taps) == 7 || (taps) == 1, spread_any, spread_any, taps, stride, element), \
        IF_CHOSEN((taps) == 3 && VECTOR_BYTES > 16 && element != FLOAT64, spread_whole, taps, stride, 4, element), \
        JOINING_TILES(taps, stride, element) ? NAME_OF(joining_edges, taps, stride, columns, element) \
            : WHOLE_TILES(taps, element) \
            ? CHOSEN((taps) <= 3 && columns != WIDE_TILE && VECTOR_BYTES < 64, whole, whole_edges, taps, stride, columns, element) \
            : IF_CHOSEN(WHOLE_WIDE(taps, stride, columns, element) || WHOLE_HALVES(taps, stride, columns, element), whole_edges, taps, stride, columns, element), \
        JOINING_TILES(taps, stride, element) ? NAME_OF(joining_edges, taps, stride, columns, element) \
            : IF_CHOSEN( \
                WHOLE_TILES(taps, element) || WHOLE_WIDE(taps, stride, columns, element) || WHOLE_HALVES(taps, stride, columns, element), \
                whole_edges, taps, stride, columns, element), \
        element != FLOAT32 ? IF_CHOSEN(TALL_TILES(taps, stride, element), tall_edges, taps, stride, columns, element) \
            : IF_CHOSEN(TALL_TILES(taps, stride, element), tall, taps, stride, columns, element), \
        IF_CHOSEN(TALL_TILES(taps, stride, element), tall_edges, taps, stride, columns, element), \
        VECTOR_BYTES == 64 ? IF_CHOSEN(SPLIT_TILES(taps, columns, element), split_edges, taps, stride, columns, element) \
            : IF_CHOSEN(SPLIT_TILES(taps, columns, element), split, taps, stride, columns, element), \
        IF_CHOSEN(SPLIT_TILES(taps, columns, element), split_edges, taps, stride, columns, element), \
    }

#define EIGHT_TILE(name, rows, taps, stride, columns, spread, element) \
    static void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        (void)lanes; \
        eight_tile(tile, block, x, y, count, rows, taps, stride, columns, spread, element); \
    }
/* Those of one input channel each, by step; of 3x3; and tall, where registers hold as many sums. */
#if VECTOR_BYTES > 16
#define EIGHT_TILES(type) \
    EIGHT_TILE(eight_1_##type, 2, EIGHT_TAPS, 1, NARROW_TILE, 1, ELEMENT_##type) EIGHT_TILE(eight_2_##type, 2, EIGHT_TAPS, 2, NARROW_TILE, 1, ELEMENT_##type)
EIGHT_TILES(f32)
#endif
#if VECTOR_BYTES == 64
#define TALL_EIGHTS(type) \
    EIGHT_TILE(tall_eight_1_##type, TALL_ROWS(NARROW_TILE), EIGHT_TAPS, 1, NARROW_TILE, 1, ELEMENT_##type) \
    EIGHT_TILE(tall_eight_2_##type, TALL_ROWS(NARROW_TILE), EIGHT_TAPS, 2, NARROW_TILE, 1, ELEMENT_##type)
EIGHT_TILES(f16)
EIGHT_TILES(bf16)
TALL_EIGHTS(f32)
TALL_EIGHTS(f16)
TALL_EIGHTS(bf16)
#else
#define tall_eight_1_f32 NULL
#define tall_eight_2_f32 NULL
#endif
#define TABLE_OF_EIGHTS(type) {[1] = {eight_1_##type, tall_eight_1_##type}, [2] = {eight_2_##type, tall_eight_2_##type}}
static const OneTile eight_tiles[4][TILE_STRIDES][2] = {
#if VECTOR_BYTES > 16
    [FLOAT32] = TABLE_OF_EIGHTS(f32),
#endif
#if VECTOR_BYTES == 64
    [FLOAT16] = TABLE_OF_EIGHTS(f16), [BFLOAT16] = TABLE_OF_EIGHTS(bf16),
#endif
};
/* The last ones of more, by element type, taps and step, of square filters; whether wide; and tall. */
#if VECTOR_BYTES == 64
#define EIGHT_ENDS(name, taps, stride, element) \
    EIGHT_TILE(name##_##taps##_##stride##_4, 2, taps, stride, NARROW_TILE, 0, element) \
    EIGHT_TILE(name##_##taps##_##stride##_7, 2, taps, stride, WIDE_TILE, 0, element)
#define TALL_ENDS(name, element) \
    EIGHT_ENDS(name, 3, 1, element) \
    EIGHT_TILE(tall_##name##_4, TALL_ROWS(NARROW_TILE), 3, 1, NARROW_TILE, 0, element) \
    EIGHT_TILE(tall_##name##_7, TALL_ROWS(WIDE_TILE), 3, 1, WIDE_TILE, 0, element)
#define ENDS_OF(taps, stride) [stride] = {{end_##taps##_##stride##_4}, {end_##taps##_##stride##_7}}
#define TALL_ENDS_OF(name) [1] = {{name##_3_1_4, tall_##name##_4}, {name##_3_1_7, tall_##name##_7}}
EIGHT_ENDS(end, 3, 2, FLOAT32) EIGHT_ENDS(end, 5, 1, FLOAT32) EIGHT_ENDS(end, 5, 2, FLOAT32)
TALL_ENDS(end, FLOAT32)
TALL_ENDS(end_f16, FLOAT16)
TALL_ENDS(end_bf16, BFLOAT16)
#endif
static const OneTile eight_ends[BFLOAT16 + 1][TILE_TAPS][TILE_STRIDES][2][2] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = {[3] = {TALL_ENDS_OF(end), ENDS_OF(3, 2)}, [5] = {ENDS_OF(5, 1), ENDS_OF(5, 2)}},
    [FLOAT16] = {[3] = {TALL_ENDS_OF(end_f16)}},
    [BFLOAT16] = {[3] = {TALL_ENDS_OF(end_bf16)}},
#endif
};

/* Columns side by side of a dilated filter, places inside, and at the edges: two; four of two rows, of one dilated by 2. */
#if VECTOR_BYTES == 64
#define beside_inside beside_edges
#else
TILE(beside_inside, TALL_ROWS(NARROW_TILE), 0, 3, 0, SPLIT_TILE, INSIDE, FLOAT32)
#endif
TILE(beside_edges, TALL_ROWS(NARROW_TILE), 0, 3, 0, SPLIT_TILE, EDGES, FLOAT32)
#if VECTOR_BYTES == 32
TILE(flat_inside, 2, 0, 3, BESIDE_BY_TWO, NARROW_TILE, INSIDE, FLOAT32)
TILE(flat_edges, 2, 0, 3, BESIDE_BY_TWO, NARROW_TILE, EDGES, FLOAT32)
#endif
static const OneTile beside_tiles[2][2] = {
    {beside_inside, beside_edges},
#if VECTOR_BYTES == 32
    {flat_inside, flat_edges},
#endif
};

/* 2 rows and columns, by taps and step: places inside, and at the edges. Of 3x3 without a step they are tall. */
#if VECTOR_BYTES > 16
TILE(small_inside, 2, 0, 3, 2, SPLIT_TILE, INSIDE, FLOAT32)
TILE(small_edges, 2, 0, 3, 2, SPLIT_TILE, EDGES, FLOAT32)
#endif
#if VECTOR_BYTES == 64
TILE(small_5_1, 2, 0, 5, 1, SPLIT_TILE, EDGES, FLOAT32)
TILE(small_5_2, 2, 0, 5, 2, SPLIT_TILE, EDGES, FLOAT32)
TILE(small_7_1, 2, 0, 7, 1, SPLIT_TILE, EDGES, FLOAT32)
TILE(small_7_2, 2, 0, 7, 2, SPLIT_TILE, EDGES, FLOAT32)
#endif
static const OneTile small_tiles[TILE_TAPS][TILE_STRIDES][EDGES + 1] = {
#if VECTOR_BYTES > 16
    [3] = {[2] = {small_inside, small_edges}},
#endif
#if VECTOR_BYTES == 64
    [5] = {[1] = {small_5_1, small_5_1}, [2] = {small_5_2, small_5_2}},
    [7] = {[1] = {small_7_1, small_7_1}, [2] = {small_7_2, small_7_2}},
#endif
};

/* Pairs of rows by fewer products, by taps. */
#define WINOGRAD_OF(taps) \
    static void winograd_##taps(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        do { \
            if (tile->new_rows && !FETCHED_BEFORE(count)) \
                fetch_next(tile, x, y); \
            winograd_tile(tile, block, x, y, lanes, taps); \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }
#if VECTOR_BYTES == 64
WINOGRAD_OF(5)
WINOGRAD_OF(7)
#endif
static const OneTile winograd_tiles[TILE_TAPS] = {
#if VECTOR_BYTES == 64
    [5] = winograd_5, [7] = winograd_7,
#endif
};

/* Outputs one by one: by the columns of taps inside the image, and all taps of 2x2 and 3x3. */
#define PIXEL_TILE(name, high, columns, element) \
    static void name##_##element(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        pixel_tile(tile, block, x, y, lanes, count, high, columns, element); \
    }
#define PIXEL_TILES(element, ...) \
    PIXEL_TILE(pixel_1, 0, 1, element) PIXEL_TILE(pixel_2, 0, 2, element) PIXEL_TILE(pixel_3, 0, 3, element) \
    PIXEL_TILE(square_2, 2, 2, element) PIXEL_TILE(square_3, 3, 3, element) \
    static void pixel_##element(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        static const OneTile by_columns[2][TILE_TAPS] = { \
            {pixel_1_##element, pixel_1_##element, pixel_2_##element, pixel_3_##element, __VA_ARGS__}, \
            {[2] = square_2_##element, [3] = square_3_##element}}; \
        const int rows = tile->upper.end - tile->upper.begin, columns = tile->taps - __builtin_popcountll(tile->outside); \
        const int whole = columns == tile->taps && rows == columns && rows / 2 == 1 && tile->block_vectors == 1 + rows * columns; \
        by_columns[whole][columns](tile, block, x, y, lanes, count); \
    }
PIXEL_TILE(pixel_4, 0, 4, FLOAT32)
PIXEL_TILE(pixel_5, 0, 5, FLOAT32)
PIXEL_TILE(pixel_6, 0, 6, FLOAT32)
PIXEL_TILE(pixel_7, 0, 7, FLOAT32)
PIXEL_TILES(FLOAT32, pixel_4_FLOAT32, pixel_5_FLOAT32, pixel_6_FLOAT32, pixel_7_FLOAT32)
#define PIXEL_OF(element) {pixel_##element, pixel_##element, pixel_##element}
#if WIDENS_HALVES
PIXEL_TILES(FLOAT16, NULL)
PIXEL_TILES(BFLOAT16, NULL)
#endif
/* By element type, and taps in a row. */
static const OneTile pixel_tiles[BFLOAT16 + 1][TILE_TAPS][VARIANTS] = {
    [FLOAT32] = {[1 ... TILE_TAPS - 1] = PIXEL_OF(FLOAT32)},
#if WIDENS_HALVES
    [FLOAT16] = {[1 ... 3] = PIXEL_OF(FLOAT16)}, [BFLOAT16] = {[1 ... 3] = PIXEL_OF(BFLOAT16)},
#endif
};

/* Whole tiles at step 1 of filters that have none above: of one column, tall where registers hold them; square ones; and of one row where tiles are split. By that,
 * taps, and place. Of bfloat16 they move words where they can. */
#define BRAINS_OF_LINES (VECTOR_BYTES == 64 ? BRAINS_BY_WORDS : BFLOAT16)
enum { UPRIGHT_ROWS = VECTOR_BYTES == 64 ? TALL_ROWS(NARROW_TILE) : 2 };
#define COLUMN_TILE(taps, name, element) TILE_OF(column_##taps##_##name, UPRIGHT_ROWS, taps, 0, 1, 1, NARROW_TILE, INSIDE, element)
#define SQUARE_TILE(name, element) TILE_OF(square_4_##name, 2, 4, 0, 4, 1, GENERAL_TILE, EDGES, element)
#define SPLIT_LINE_TILE(taps) TILE_OF(split_line_##taps, TALL_ROWS(NARROW_TILE), 1, 0, taps, 1, SPLIT_TILE, EDGES, FLOAT32)
#define COLUMN_OF(taps, name) [taps] = {column_##taps##_##name}
#define SQUARE_OF(name) {[4] = {square_4_##name, square_4_##name}}
enum { COLUMN_LINE, SQUARE, SPLIT_LINE, LINE_KINDS };
#if VECTOR_BYTES > 16
#define HALVES_LINES(name, element) COLUMN_TILE(5, name, element) COLUMN_TILE(7, name, element) SQUARE_TILE(name, element)
HALVES_LINES(f32, FLOAT32)
HALVES_LINES(f16, FLOAT16)
HALVES_LINES(bf16, BRAINS_OF_LINES)
#define SHORT_COLUMNS(name, element) COLUMN_TILE(3, name, element) COLUMN_TILE(4, name, element)
SHORT_COLUMNS(f32, FLOAT32)
#endif
#if VECTOR_BYTES == 64
SHORT_COLUMNS(f16, FLOAT16)
SHORT_COLUMNS(bf16, BRAINS_OF_LINES)
SPLIT_LINE_TILE(3) SPLIT_LINE_TILE(5)
#endif
#define COLUMNS_OF(name) COLUMN_OF(3, name), COLUMN_OF(4, name), COLUMN_OF(5, name), COLUMN_OF(7, name)
static const OneTile line_tiles[BFLOAT16 + 1][LINE_KINDS][TILE_TAPS][EDGES + 1] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = {{COLUMNS_OF(f32)}, SQUARE_OF(f32), {[3] = {split_line_3, split_line_3}, [5] = {split_line_5, split_line_5}}},
    [FLOAT16] = {{COLUMNS_OF(f16)}, SQUARE_OF(f16)}, [BFLOAT16] = {{COLUMNS_OF(bf16)}, SQUARE_OF(bf16)},
#elif VECTOR_BYTES == 32
    [FLOAT32] = {{COLUMNS_OF(f32)}, SQUARE_OF(f32)},
    [FLOAT16] = {{COLUMN_OF(5, f16), COLUMN_OF(7, f16)}, SQUARE_OF(f16)}, [BFLOAT16] = {{COLUMN_OF(5, bf16), COLUMN_OF(7, bf16)}, SQUARE_OF(bf16)},
#endif
};

/* Of filters of one row those of one row of outputs: by taps and columns. Some fit almost any row; 2 taps, and 4 and halves where registers are few, have those of 6. */
#define ROW_TILE(taps, columns, name, element) TILE_OF(row_##taps##_##columns##_##name, 1, 1, 0, taps, 1, columns, EDGES, element)
#define FITTING_TILES(taps, name, element) ROW_TILE(taps, 4, name, element) ROW_TILE(taps, 6, name, element) ROW_TILE(taps, 7, name, element)
#define FITTING_NAMES(taps, name) [taps] = {[NARROW_TILE] = row_##taps##_4_##name, [GENERAL_TILE] = row_##taps##_6_##name, row_##taps##_7_##name}
#define SIX_NAMES(taps, name) [taps] = {[GENERAL_TILE] = row_##taps##_6_##name}
#define ROWS_OF(kind, name) {kind##_NAMES(3, name), kind##_NAMES(4, name), kind##_NAMES(5, name), kind##_NAMES(7, name)}
#if VECTOR_BYTES > 16
ROW_TILE(2, 6, f32, FLOAT32)
FITTING_TILES(3, f32, FLOAT32) FITTING_TILES(5, f32, FLOAT32) FITTING_TILES(7, f32, FLOAT32)
#endif
#if VECTOR_BYTES == 64
#define FITTING_ROWS(name, element) FITTING_TILES(3, name, element) FITTING_TILES(4, name, element) FITTING_TILES(5, name, element) FITTING_TILES(7, name, element)
FITTING_TILES(4, f32, FLOAT32)
FITTING_ROWS(f16, FLOAT16)
FITTING_ROWS(bf16, BRAINS_OF_LINES)
#elif VECTOR_BYTES == 32
#define ROWS_OF_SIX(name, element) ROW_TILE(3, 6, name, element) ROW_TILE(4, 6, name, element) ROW_TILE(5, 6, name, element) ROW_TILE(7, 6, name, element)
ROW_TILE(4, 6, f32, FLOAT32)
ROWS_OF_SIX(f16, FLOAT16)
ROWS_OF_SIX(bf16, BRAINS_OF_LINES)
#endif
static const OneTile row_tiles[BFLOAT16 + 1][TILE_TAPS][WIDE_TILE + 1] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = {SIX_NAMES(2, f32), FITTING_NAMES(3, f32), FITTING_NAMES(4, f32), FITTING_NAMES(5, f32), FITTING_NAMES(7, f32)},
    [FLOAT16] = ROWS_OF(FITTING, f16), [BFLOAT16] = ROWS_OF(FITTING, bf16),
#elif VECTOR_BYTES == 32
    [FLOAT32] = {SIX_NAMES(2, f32), FITTING_NAMES(3, f32), SIX_NAMES(4, f32), FITTING_NAMES(5, f32), FITTING_NAMES(7, f32)},
    [FLOAT16] = ROWS_OF(SIX, f16), [BFLOAT16] = ROWS_OF(SIX, bf16),
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
#define EVEN_TILES(element) \
    TILE(even_edges_##element, 0, 0, 4, 2, NARROW_TILE, EDGES, element) TILE(even_whole_##element, 2, 0, 4, 2, NARROW_TILE, EDGES, element)
EVEN_TILES(FLOAT32)
EVEN_TILES(FLOAT16)
EVEN_TILES(BFLOAT16)
#define EVEN_TAPS(element, any, spread) \
    [4] = {[2] = {{even_edges_##element, even_edges_##element, any, spread, spread, spread, NULL, even_whole_##element, even_whole_##element}}},
#else
#define EVEN_TAPS(element, any, spread)
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
        TABLE_OF_TAPS(1, FLOAT32), [2] = {TABLE_OF_STRIDE(2, 1, FLOAT32)}, TABLE_OF_TAPS(3, FLOAT32), EVEN_TAPS(FLOAT32, any_stride_any, any_stride_spread)
        TABLE_OF_TAPS(5, FLOAT32), TABLE_OF_TAPS(7, FLOAT32)},
#if DOUBLES
    [FLOAT64] = {TABLE_OF_TAPS(3, FLOAT64), [5] = {[1] = {[1] = ROW_OF_TILES(5, 1, 7, FLOAT64)}}, [7] = {[1] = {[1] = ROW_OF_TILES(7, 1, 7, FLOAT64)}}},
#endif
#if WIDENS_HALVES
    [FLOAT16] = {COLUMNS_OF_HALVES(FLOAT16, halves), [2] = {[1] = {ROW_OF_TILES(2, 1, 4, FLOAT16)}}, TABLE_OF_TAPS(3, FLOAT16), EVEN_TAPS(FLOAT16, halves_of_any_stride, NULL) TABLE_OF_TAPS(5, FLOAT16), TABLE_OF_TAPS(7, FLOAT16)},
    [BFLOAT16] = {COLUMNS_OF_HALVES(BFLOAT16, brains), [2] = {[1] = {ROW_OF_TILES(2, 1, 4, BFLOAT16)}}, TABLE_OF_TAPS(3, BFLOAT16), EVEN_TAPS(BFLOAT16, brains_of_any_stride, NULL) TABLE_OF_TAPS(5, BFLOAT16), TABLE_OF_TAPS(7, BFLOAT16)},
#endif
};

/* Tall tiles of bfloat16 by 3x3, and by steps of 2 whole ones, where a move of words takes no longer than one of bytes: by step, and whether wide. */
#if VECTOR_BYTES == 64
#define WORDS_TILE(name, rows, stride, columns) TILE(name, rows, 0, 3, stride, columns, EDGES, BRAINS_BY_WORDS)
WORDS_TILE(words_1_4, TALL_ROWS(NARROW_TILE), 1, NARROW_TILE)
WORDS_TILE(words_1_7, TALL_ROWS(WIDE_TILE), 1, WIDE_TILE)
WORDS_TILE(words_2_4, 2, 2, NARROW_TILE)
WORDS_TILE(words_2_7, 2, 2, WIDE_TILE)
#endif
static const OneTile words_tiles[TILE_STRIDES][2] = {
#if VECTOR_BYTES == 64
    [1] = {words_1_4, words_1_7}, [2] = {words_2_4, words_2_7},
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
    const vf32 *const eight_block = tile->eight ? blocks + tile->eight_block * tile->block_vectors : NULL;
    if (down)
        turn_blocks(tile);
    for (; count > 0; count--, x += columns * tile->x_output, y += columns * tile->y_column, tile->outside >>= columns * tile->stride) {
        if (begin < first)
            one(tile, blocks, x - tile->ahead, y - tile->ahead, tile->first_lanes, 1);
        if (first < whole)
            one(tile, from_block, x + x_from, y + y_from, tile->whole_lanes, whole - first);
        if (whole < end && tile->eight)
            tile->eight(tile, eight_block, x + tile->eight_bytes, y + tile->eight_bytes, EIGHT, 1);
        else if (whole < end)
            one(tile, tail_block, x + x_tail, y + tile->y_tail, tile->tail_lanes, 1);
    }
    if (down)
        turn_blocks(tile);
}

/* Where a block lies from channel 0, and what is stored of it. */
static __attribute__((unused)) ptrdiff_t shift_of(const Tile *tile, ptrdiff_t index)
{
    return index >= tile->whole_blocks ? tile->x_tail : index ? index * VECTOR_BYTES - tile->back : -tile->ahead;
}
static __attribute__((unused)) ptrdiff_t lanes_of(const Tile *tile, ptrdiff_t index)
{
    return index >= tile->whole_blocks ? tile->tail_lanes : index ? tile->whole_lanes : tile->first_lanes;
}
/* One block or two, by taps. */
#define RESIDENT_TILE(name, taps, together) \
    static __attribute__((unused)) void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t next_lanes) \
    { \
        resident_tile(tile, block, x, y, lanes, next_lanes, taps, together); \
    }
RESIDENT_TILE(one_of_2, 2, 1)
RESIDENT_TILE(two_of_2, 2, 2)
RESIDENT_TILE(one_of_3, 3, 1)
RESIDENT_TILE(two_of_3, 3, 2)
/* A row of outputs; x and y are at channel 0. */
static __attribute__((unused)) void run_row(const Tile *tile, const vf32 *blocks, ptrdiff_t begin, ptrdiff_t end, const char *x, char *y)
{
    while (begin < end) {
        const ptrdiff_t at = shift_of(tile, begin), lanes = lanes_of(tile, begin);
        const vf32 *block = blocks + begin++ * tile->block_vectors;
        const int two = begin < end && shift_of(tile, begin) == at + VECTOR_BYTES;
        const ptrdiff_t next_lanes = two ? lanes_of(tile, begin) : 0;
        (tile->taps == 2 ? two ? two_of_2 : one_of_2 : two ? two_of_3 : one_of_3)(tile, block, x + at, y + at, lanes, next_lanes);
        begin += two;
    }
}

/* By rows of outputs. */
#define LONG_ROWS(name, rows) \
    static __attribute__((noinline, unused)) void name( \
        const Tile *tile, const vf32 *bias, vf32 *waiting, const vf32 *weights, ptrdiff_t behind, const char *x, ptrdiff_t below, ptrdiff_t begin, \
        ptrdiff_t end, int count, char *y, ptrdiff_t lanes) \
    { \
        add_long(tile, bias, waiting, weights, behind, x, below, begin, end, count, y, lanes, rows); \
    }
LONG_ROWS(add_row_of_long, 1)
LONG_ROWS(add_rows_of_long, 2)
/* A row of outputs, or two, of one block of channels after another; x and y are at channel 0. */
static __attribute__((unused)) void run_long(const Tile *tile, const vf32 *blocks, ptrdiff_t first, ptrdiff_t end, const char *x, char *y)
{
    const ptrdiff_t taps = tile->taps, step = tile->step * taps, last = tile->stored > LONG_TILE ? tile->stored - LONG_TILE : 0;
    const Range upper = tile->upper, both = tile->both, lower = tile->lower;
    for (; first < end; first++) {
        const vf32 *const block = blocks + first * tile->block_vectors, *const weights = block + 1;
        const ptrdiff_t at = shift_of(tile, first), lanes = lanes_of(tile, first);
        for (ptrdiff_t output = 0; output < tile->stored; output += LONG_TILE) {
            vf32 waiting[2 * LONG_TILE];
            /* The last outputs may be computed again. */
            output = output < last ? output : last;
            const char *from = x + at + output * tile->x_column;
            char *to = y + at + output * tile->y_column;
            const ptrdiff_t begin = tile->begins[0] - output, inside = tile->ends[0] - output;
            if (tile->new_rows)
                fetch_next(tile, from, to);
            if (tile->cut && upper.begin < upper.end && lower.begin < lower.end) {
                const int whole = tile->stored >= LONG_TILE;
                add_rows_of_long(tile, block, waiting, weights, 0, from, tile->x_row, begin, inside, 1, whole ? to : NULL, lanes);
                if (whole)
                    continue;
            } else {
                for (int i = 0; i < tile->rows * LONG_TILE; i++)
                    waiting[i] = *block;
                if (upper.begin < upper.end)
                    add_row_of_long(
                        tile, NULL, waiting, weights + upper.begin * taps, 0, from + upper.begin * tile->x_row, 0, begin, inside, upper.end - upper.begin, NULL, 0);
                if (both.begin < both.end)
                    add_rows_of_long(
                        tile, NULL, waiting, weights + both.begin * taps, -step, from + both.begin * tile->x_row, 0, begin, inside, both.end - both.begin, NULL, 0);
                if (lower.begin < lower.end)
                    add_row_of_long(
                        tile, NULL, waiting + LONG_TILE, weights + lower.begin * taps - step, 0, from + lower.begin * tile->x_row, 0, begin, inside,
                        lower.end - lower.begin, NULL, 0);
            }
            for (int row = 0; row < tile->rows; row++)
                store_outputs(to + row * tile->y_row, waiting + row * LONG_TILE, tile, lanes, 1, 1, LONG_TILE, ANYWHERE, FLOAT32);
        }
    }
}

#endif

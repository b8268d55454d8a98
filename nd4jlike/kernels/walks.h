/* All of an image, one block of channels after another (ADR 0017, D17, D18): images of one tile, and tiles that walk over larger ones; which there are.
 */
#ifndef ND4JLIKE_WALKS_H
#define ND4JLIKE_WALKS_H

#include "taps.h"

/* A whole image of `side` rows and columns, `together` rows at a time, of which one block after another stays in first-level cache, with its weights; no jumps
 * but one. */
#define IMAGE_TILE(name, taps, side, together, element) \
    static __attribute__((unused)) void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        enum { EDGE = (taps) / 2, OUTSIDE = ((1 << EDGE) - 1) | (((1 << EDGE) - 1) << (EDGE + (side))) }; \
        do { \
            const char *from = x; \
            char *to = y; \
            _Pragma("GCC unroll 4") for (int row = 0; row < (side); row += (together)) \
            { \
                const int rows = row + (together) <= (side) ? (together) : (side) - row, last = row + rows - 1 + EDGE - ((side) - 1); \
                whole_tile(tile, OUTSIDE, EDGE - row, last, block, from, to, lanes, NULL, 0, rows, taps, 0, taps, 1, side, EDGES, element); \
                from += (together) * tile->x_row; \
                to += (together) * tile->y_row; \
                __asm__("" : "+r"(from), "+r"(to)); \
            } \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }

/* By element type, taps, rows and columns. */
#if VECTOR_BYTES > 16
IMAGE_TILE(image_1_1, 1, 1, 1, FLOAT32)
IMAGE_TILE(image_3_2, 3, 2, 2, FLOAT32)
IMAGE_TILE(image_3_3, 3, 3, 3, FLOAT32)
IMAGE_TILE(image_3_5, 3, 5, 2, FLOAT32)
IMAGE_TILE(image_5_3, 5, 3, 3, FLOAT32)
IMAGE_TILE(image_5_5, 5, 5, 2, FLOAT32)
#endif
#if VECTOR_BYTES == 32
IMAGE_TILE(image_3_6, 3, 6, 2, FLOAT32)
#elif VECTOR_BYTES == 64
IMAGE_TILE(image_3_7, 3, 7, 2, FLOAT32)
IMAGE_TILE(image_5_7, 5, 7, 2, FLOAT32)
#endif
#if VECTOR_BYTES > 16
#define IMAGES_OF_HALVES(name, element) \
    IMAGE_TILE(image_1_1_##name, 1, 1, 1, element) \
    IMAGE_TILE(image_3_2_##name, 3, 2, 2, element) \
    IMAGE_TILE(image_3_3_##name, 3, 3, 3, element) \
    IMAGE_TILE(image_3_5_##name, 3, 5, 2, element)
#endif
#if VECTOR_BYTES == 64
IMAGES_OF_HALVES(f16, FLOAT16)
IMAGES_OF_HALVES(bf16, BRAINS_BY_WORDS)
IMAGE_TILE(image_5_5_f16, 5, 5, 2, FLOAT16)
IMAGE_TILE(image_5_5_bf16, 5, 5, 2, BRAINS_BY_WORDS)
IMAGE_TILE(image_3_7_bf16, 3, 7, 2, BRAINS_BY_WORDS)
#elif VECTOR_BYTES == 32
IMAGES_OF_HALVES(f16, FLOAT16)
IMAGES_OF_HALVES(bf16, BFLOAT16)
#endif
static const OneTile image_tiles[BFLOAT16 + 1][TILE_TAPS][TILE_TAPS] = {
#if VECTOR_BYTES == 32
    [FLOAT32] = {
        [1] = {[1] = image_1_1},
        [3] = {[2] = image_3_2, image_3_3, [5] = image_3_5, [6] = image_3_6},
        [5] = {[3] = image_5_3, [5] = image_5_5},
    },
    [FLOAT16] = {[1] = {[1] = image_1_1_f16}, [3] = {[2] = image_3_2_f16, image_3_3_f16, [5] = image_3_5_f16}},
    [BFLOAT16] = {[1] = {[1] = image_1_1_bf16}, [3] = {[2] = image_3_2_bf16, image_3_3_bf16, [5] = image_3_5_bf16}},
#elif VECTOR_BYTES == 64
    [FLOAT32] = {
        [1] = {[1] = image_1_1},
        [3] = {[2] = image_3_2, image_3_3, [5] = image_3_5, [7] = image_3_7},
        [5] = {[3] = image_5_3, [5] = image_5_5, [7] = image_5_7},
    },
    [FLOAT16] = {[1] = {[1] = image_1_1_f16}, [3] = {[2] = image_3_2_f16, image_3_3_f16, [5] = image_3_5_f16}, [5] = {[5] = image_5_5_f16}},
    [BFLOAT16] = {
        [1] = {[1] = image_1_1_bf16},
        [3] = {[2] = image_3_2_bf16, image_3_3_bf16, [5] = image_3_5_bf16, [7] = image_3_7_bf16},
        [5] = {[5] = image_5_5_bf16},
    },
#endif
};

/* A whole image of one block after another, 2 rows at a time, an odd row by itself; while the inputs of the next block come to the first-level cache, if it is
 * `touching`. */
#define WALKED(rows, taps, stride, columns, touching, element) \
    { \
        const int below = ((rows) - 1) * (stride) + (taps) - above - extent; \
        int place = 0; \
        do { \
            whole_tile( \
                tile, walk->outside[place], above, below, block, from + walk->x[place], to + walk->y[place], lanes, NULL, touching, rows, taps, 0, taps, stride, \
                columns, EDGES, element); \
        } while (++place < places); \
    }
#define WALKING_TILE(name, taps, stride, columns, touching, element) \
    static void name(const Tile *tile, const vf32 *block, const char *x, char *y, ptrdiff_t lanes, ptrdiff_t count) \
    { \
        const Walk *walk = tile->walk; \
        const int places = walk->places, extent = walk->extent; \
        do { \
            int left = walk->rows, above = walk->above; \
            const char *from = x; \
            char *to = y; \
            if (left > 1) \
                do { \
                    WALKED(2, taps, stride, columns, touching, element) \
                    left -= 2, above -= 2 * (stride), from += 2 * (stride) * tile->x_row, to += 2 * tile->y_row; \
                } while (left > 1); \
            if (left) \
                WALKED(1, taps, stride, columns, touching, element) \
            block += tile->block_vectors; \
            x += tile->x_block; \
            y += tile->y_block; \
        } while (--count); \
    }
#if VECTOR_BYTES == 64
WALKING_TILE(touching_3_1, 3, 1, WIDE_TILE, 1, FLOAT32)
WALKING_TILE(touching_3_2, 3, 2, WIDE_TILE, 1, FLOAT32)
WALKING_TILE(walking_3_1_7, 3, 1, 7, 0, FLOAT32)
WALKING_TILE(walking_3_2_4, 3, 2, 4, 0, FLOAT32)
WALKING_TILE(walking_3_2_7, 3, 2, 7, 0, FLOAT32)
#else
#define walking_3_1_7 NULL
#define walking_3_2_4 NULL
#define walking_3_2_7 NULL
#endif
#if VECTOR_BYTES > 16
WALKING_TILE(walking_3_1_5, 3, 1, 5, 0, FLOAT32)
WALKING_TILE(walking_3_1_6, 3, 1, 6, 0, FLOAT32)
WALKING_TILE(walking_3_2_3, 3, 2, 3, 0, FLOAT32)
WALKING_TILE(walking_3_2_5, 3, 2, 5, 0, FLOAT32)
WALKING_TILE(walking_3_2_6, 3, 2, 6, 0, FLOAT32)
WALKING_TILE(walking_5_1_5, 5, 1, 5, 0, FLOAT32)
WALKING_TILE(walking_5_1_6, 5, 1, 6, 0, FLOAT32)
WALKING_TILE(walking_5_2_5, 5, 2, 5, 0, FLOAT32)
WALKING_TILE(walking_5_2_6, 5, 2, 6, 0, FLOAT32)
#endif
#if VECTOR_BYTES == 32
#define WALKING_HALVES(name, element) \
    WALKING_TILE(walking_3_1_5_##name, 3, 1, 5, 0, element) \
    WALKING_TILE(walking_3_1_6_##name, 3, 1, 6, 0, element) \
    WALKING_TILE(walking_3_2_5_##name, 3, 2, 5, 0, element)
WALKING_HALVES(f16, FLOAT16)
WALKING_HALVES(bf16, BFLOAT16)
#define WALKS_OF_HALVES(name) {[3] = {[1] = {[5] = walking_3_1_5_##name, walking_3_1_6_##name}, [2] = {[5] = walking_3_2_5_##name}}}
#elif VECTOR_BYTES == 64
#define WALKING_HALVES(name, element) \
    WALKING_TILE(walking_3_1_5_##name, 3, 1, 5, 0, element) \
    WALKING_TILE(walking_3_1_6_##name, 3, 1, 6, 0, element) \
    WALKING_TILE(walking_3_2_3_##name, 3, 2, 3, 0, element) \
    WALKING_TILE(walking_3_2_5_##name, 3, 2, 5, 0, element) \
    WALKING_TILE(walking_3_2_6_##name, 3, 2, 6, 0, element) \
    WALKING_TILE(walking_5_1_5_##name, 5, 1, 5, 0, element) \
    WALKING_TILE(walking_5_1_6_##name, 5, 1, 6, 0, element) \
    WALKING_TILE(walking_5_2_5_##name, 5, 2, 5, 0, element) \
    WALKING_TILE(walking_5_2_6_##name, 5, 2, 6, 0, element)
WALKING_HALVES(f16, FLOAT16)
WALKING_HALVES(bf16, BRAINS_BY_WORDS)
#define WALKS_OF_HALVES(name) \
    { \
        [3] = {[1] = {[5] = walking_3_1_5_##name, walking_3_1_6_##name}, \
               [2] = {[3] = walking_3_2_3_##name, [5] = walking_3_2_5_##name, walking_3_2_6_##name}}, \
        [5] = {[1] = {[5] = walking_5_1_5_##name, walking_5_1_6_##name}, [2] = {[5] = walking_5_2_5_##name, walking_5_2_6_##name}}, \
    }
#endif
/* By element type, taps, stride and columns; those that touch the inputs of the next block, of float32 by 3x3, by stride. */
static const OneTile walking_tiles[BFLOAT16 + 1][TILE_TAPS][TILE_STRIDES][WIDE_TILE + 1] = {
#if VECTOR_BYTES > 16
    [FLOAT32] = {
        [3] = {[1] = {[5] = walking_3_1_5, walking_3_1_6, walking_3_1_7}, [2] = {[3] = walking_3_2_3, walking_3_2_4, walking_3_2_5, walking_3_2_6, walking_3_2_7}},
        [5] = {[1] = {[5] = walking_5_1_5, walking_5_1_6}, [2] = {[5] = walking_5_2_5, walking_5_2_6}},
    },
    [FLOAT16] = WALKS_OF_HALVES(f16), [BFLOAT16] = WALKS_OF_HALVES(bf16),
#endif
};
static const OneTile touching_tiles[TILE_STRIDES] = {
#if VECTOR_BYTES == 64
    [1] = touching_3_1, [2] = touching_3_2,
#endif
};
#define WALKED_NAME(columns) [columns] = "in place, tiles of 2 rows and " #columns " columns, all of one block before the next"
static const char *const walked_names[WIDE_TILE + 1] = {
#if VECTOR_BYTES > 16
    WALKED_NAME(3), WALKED_NAME(4), WALKED_NAME(5), WALKED_NAME(6), WALKED_NAME(7),
#endif
};

#endif

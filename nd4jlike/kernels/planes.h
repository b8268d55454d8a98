/* Convolution of planes, whose columns lie side by side as in NCHW, in C (see taps.h): vectors of neighbouring columns of one channel. */
#ifndef ND4JLIKE_PLANES_H
#define ND4JLIKE_PLANES_H

#include "taps.h"
#include "tiles.h"

/* Planes, whose columns lie side by side: vectors of neighbouring columns, `stride` columns of the input apart, each weight in all lanes. The masks
 * of a tap are set for the columns inside the image: `stride` vectors of them. */
WORD void add_plane_row(
    vf32 *upper, vf32 *lower, const float *upper_weights, const float *lower_weights, const char *x, ptrdiff_t dilation, int taps, const vi32 *masks,
    const int stride, const int vectors, const int masked, const int element)
{
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap++, x += dilation) {
#pragma GCC unroll 2
        for (int i = 0; i < vectors; i++) {
            const char *from = x + i * stride * LANES * ITEM_BYTES(element), *next = from + LANES * ITEM_BYTES(element);
            vf32 value = masked ? load_masked_as_f32(from, masks[tap * stride], element) : load_as_f32(from, LANES, element);
            if (stride == 2)
                value = every_second_f32(value, masked ? load_masked_as_f32(next, masks[tap * stride + 1], element) : load_as_f32(next, LANES, element), 0);
            if (upper)
                upper[i] += value * splat_f32(upper_weights[tap * LANES]);
            if (lower)
                lower[i] += value * splat_f32(lower_weights[tap * LANES]);
        }
    }
}

/* `block` is at the channel's lane of its block. */
WORD void one_plane_tile(
    const Tile *tile, const vf32 *limits, const float *block, int taps, const char *x, char *y, const vi32 *masks,
    const int stride, const int vectors, const int masked, const int element)
{
    const ptrdiff_t behind = (ptrdiff_t)tile->step * taps * LANES, pitch = taps * LANES, x_row = tile->x_row, dilation = tile->x_column;
    const float *weights = block + LANES;
    vf32 upper[2], lower[2];
    int row;
#pragma GCC unroll 2
    for (int i = 0; i < vectors; i++)
        upper[i] = lower[i] = splat_f32(block[0]);
    for (row = tile->upper.begin; row < tile->upper.end; row++)
        add_plane_row(upper, NULL, weights + row * pitch, NULL, x + row * x_row, dilation, taps, masks, stride, vectors, masked, element);
    for (row = tile->both.begin; row < tile->both.end; row++)
        add_plane_row(upper, lower, weights + row * pitch, weights + row * pitch - behind, x + row * x_row, dilation, taps, masks, stride, vectors, masked, element);
    for (row = tile->lower.begin; row < tile->lower.end; row++)
        add_plane_row(NULL, lower, NULL, weights + row * pitch - behind, x + row * x_row, dilation, taps, masks, stride, vectors, masked, element);
#pragma GCC unroll 2
    for (int i = 0; i < vectors; i++) {
        char *to = y + i * LANES * ITEM_BYTES(element);
        store_from_f32(to, at_most_f32(at_least_f32(upper[i], limits[0]), limits[1]), tile->tail_lanes, element);
        if (tile->rows == 2)
            store_from_f32(to + tile->y_row, at_most_f32(at_least_f32(lower[i], limits[0]), limits[1]), tile->tail_lanes, element);
    }
}

/* No masks: every column is inside the image. `taps` is a constant for the usual filters. */
WORD void plane_tile_of(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks, const int element)
{
    if (stride == 1 && masks)
        one_plane_tile(tile, limits, block, taps, x, y, masks, 1, 1, 1, element);
    else if (stride == 1 && vectors == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 1, 1, 0, element);
    else if (stride == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 1, 2, 0, element);
    else if (masks)
        one_plane_tile(tile, limits, block, taps, x, y, masks, 2, 1, 1, element);
    else if (vectors == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 2, 1, 0, element);
    else
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 2, 2, 0, element);
}

/* Calls, so that their registers are their own. */
static __attribute__((noinline)) void plane_tile_f32(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks)
{
    switch (taps) {
    case 3: plane_tile_of(tile, limits, block, 3, stride, vectors, x, y, masks, FLOAT32); break;
#if VECTOR_BYTES > 16
    case 5: plane_tile_of(tile, limits, block, 5, stride, vectors, x, y, masks, FLOAT32); break;
    case 7: plane_tile_of(tile, limits, block, 7, stride, vectors, x, y, masks, FLOAT32); break;
#endif
    default: plane_tile_of(tile, limits, block, taps, stride, vectors, x, y, masks, FLOAT32);
    }
}

#define PLANE_TILE(name, element) \
    static __attribute__((noinline)) void name( \
        const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks) \
    { \
        plane_tile_of(tile, limits, block, taps, stride, vectors, x, y, masks, element); \
    }
#if WIDENS_HALVES
PLANE_TILE(plane_tile_f16, FLOAT16)
PLANE_TILE(plane_tile_bf16, BFLOAT16)
#endif

typedef void (*PlaneTile)(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks);
static const PlaneTile plane_tiles[BFLOAT16 + 1] = {
    [FLOAT32] = plane_tile_f32,
#if WIDENS_HALVES
    [FLOAT16] = plane_tile_f16,
    [BFLOAT16] = plane_tile_bf16,
#endif
};

/* One vector of neighbouring output columns of the planes from the first to the end, all output rows from `begin` to `end`. Narrow: whole rows, of two
 * planes in the halves of a vector. */
typedef struct {
    ptrdiff_t first_plane, end_plane, multiplier, x_plane, y_plane;
    ptrdiff_t begin, end, pad, height;
    /* Bytes. */
    ptrdiff_t x_row, y_row;
    /* Columns that are stored; of narrow planes, columns of the image. */
    ptrdiff_t lanes, width;
    /* For each tap, of wide planes for each input vector of it: the columns inside the image. */
    const vi32 *masks;
    /* Of narrow planes, for each tap: where the lanes find their column in the rows of both. */
    const vi32 *index;
    /* Packed weights: a vector of biases, then one for each tap. */
    const float *blocks;
    ptrdiff_t block_vectors;
} PlaneStrip;

/* Taps in a row of a strip, at most; and planes that are computed at a time: twice as many sums that do not wait for each other. */
enum { STRIP_TAPS = 7, STRIP_PLANES = 4 };

/* By taps and stride, the same down and across, and whether planes are narrow. */
typedef void (*PlaneStrips)(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y);

#if VECTOR_BYTES > 16
/* One row of inputs as each tap takes them. */
WORD void load_strip_row(
    vf32 *value, ptrdiff_t width, const vi32 *index, const char *x, const char *other, const vmask *masks, const int taps, const int stride, const int narrow)
{
#if VECTOR_BYTES == 64
    if (narrow) {
        const vf32 first = load_part_f32((const float *)x, width), second = load_part_f32((const float *)other, width);
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++)
            value[tap] = pick_from_two(first, second, index[tap], masks[tap]);
        return;
    }
#endif
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap += stride) {
        const float *from = (const float *)x + tap;
        const vf32 first = load_where_f32(from, masks[tap * stride]);
        if (stride == 1) {
            value[tap] = first;
            continue;
        }
        const vf32 second = load_where_f32(from + LANES, masks[tap * stride + 1]);
        value[tap] = every_second_f32(first, second, 0);
        if (tap + 1 < taps)
            value[tap + 1] = every_second_f32(first, second, 1);
    }
}

/* One row of inputs, for all rows of outputs that it reaches: sums[i] takes the taps of filter row `row - i * stride`. */
WORD void add_strip_row(vf32 *sums, const vf32 *value, const vf32 *held, const float *weights, const int row, const int taps, const int stride)
{
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; tap++) {
#pragma GCC unroll 8
        for (int i = 0; row >= i * stride; i++) {
            const int place = (row - i * stride) * taps + tap;
            sums[i] += value[tap] * (held ? held[place] : splat_f32(weights[place * LANES]));
        }
    }
}

WORD vf32 strip_weight(const float *weights, const float *other, ptrdiff_t vector, const int narrow)
{
#if VECTOR_BYTES == 64
    if (narrow)
        return halves_f32(weights[vector * LANES], other[vector * LANES]);
#endif
    return splat_f32(weights[vector * LANES]);
}

WORD void store_strip_row(char *y, char *other, vf32 value, const vf32 *limits, ptrdiff_t lanes, const int narrow)
{
    value = at_most_f32(at_least_f32(value, limits[0]), limits[1]);
    store_first_f32((float *)y, value, lanes);
#if VECTOR_BYTES == 64
    if (narrow)
        store_first_f32((float *)other, upper_half_f32(value), lanes);
#endif
}

/* Each input row is loaded once. What is stored before the first row is replaced by it. */
WORD void strip_of(const PlaneStrip *given, const vf32 *limits, const char *x, char *y, const int taps, const int stride, const int narrow)
{
    const PlaneStrip copy = *given, *const strip = &copy;  /* no store to y changes it */
    const int kept = (taps - 1) / stride + 1, hold = narrow || (taps == 3 && VECTOR_BYTES == 64);
    const vf32 clamp[2] = {limits[0], limits[1]};
    const int count = narrow ? taps : taps * stride;
    vmask masks[2 * STRIP_TAPS];
#pragma GCC unroll 16
    for (int i = 0; i < count; i++)
        masks[i] = mask_of(strip->masks[i]);
    vi32 index[STRIP_TAPS];
    if (narrow) {
#pragma GCC unroll 8
        for (int i = 0; i < taps; i++)
            index[i] = strip->index[i];
    }
    ptrdiff_t plane = strip->first_plane;
    do {
        ptrdiff_t out = strip->begin - (kept - 1), row = out * stride - strip->pad + taps - stride;
        const float *weights[STRIP_PLANES];
        const char *from[STRIP_PLANES];
        char *to[STRIP_PLANES];
        vf32 held[STRIP_TAPS * STRIP_TAPS], held2[STRIP_TAPS * STRIP_TAPS], sums[STRIP_TAPS], sums2[STRIP_TAPS];
#pragma GCC unroll 4
        for (int i = 0; i < STRIP_PLANES; i++) {
            ptrdiff_t place = plane + (narrow ? i : i / 2);
            place = place < strip->end_plane ? place : strip->end_plane - 1;
            weights[i] = strip->blocks + place / LANES * strip->block_vectors * LANES + place % LANES;
            /* A division takes as long as a row. */
            from[i] = x + (strip->multiplier == 1 ? place : (ptrdiff_t)((uint32_t)place / (uint32_t)strip->multiplier)) * strip->x_plane + row * strip->x_row;
            to[i] = y + place * strip->y_plane;
        }
        const vf32 bias = strip_weight(weights[0], weights[1], 0, narrow), bias2 = strip_weight(weights[2], weights[3], 0, narrow);
        if (hold) {
#pragma GCC unroll 9
            for (int i = 0; i < taps * taps; i++) {
                held[i] = strip_weight(weights[0], weights[1], 1 + i, narrow);
                held2[i] = strip_weight(weights[2], weights[3], 1 + i, narrow);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kept; i++) {
            sums[i] = bias;
            sums2[i] = bias2;
        }
        do {
#pragma GCC unroll 2
            for (int i = 0; i < stride; i++, row++) {
                if ((size_t)row < (size_t)strip->height) {
                    vf32 value[STRIP_TAPS + 1];
                    load_strip_row(value, strip->width, index, from[0], from[1], masks, taps, stride, narrow);
                    add_strip_row(sums, value, hold ? held : NULL, weights[0] + LANES, taps - stride + i, taps, stride);
                    load_strip_row(value, strip->width, index, from[2], from[3], masks, taps, stride, narrow);
                    add_strip_row(sums2, value, hold ? held2 : NULL, weights[2] + LANES, taps - stride + i, taps, stride);
                }
#pragma GCC unroll 4
                for (int j = 0; j < STRIP_PLANES; j++)
                    from[j] += strip->x_row;
            }
            store_strip_row(to[0], to[1], sums[0], clamp, strip->lanes, narrow);
            store_strip_row(to[2], to[3], sums2[0], clamp, strip->lanes, narrow);
            if (out >= strip->begin) {
#pragma GCC unroll 4
                for (int j = 0; j < STRIP_PLANES; j++)
                    to[j] += strip->y_row;
            }
#pragma GCC unroll 8
            for (int i = 0; i + 1 < kept; i++) {
                sums[i] = sums[i + 1];
                sums2[i] = sums2[i + 1];
            }
            sums[kept - 1] = bias;
            sums2[kept - 1] = bias2;
        } while (++out < strip->end);
        plane += narrow ? STRIP_PLANES : STRIP_PLANES / 2;
    } while (plane < strip->end_plane);
}

#define STRIPS(name, taps, stride, narrow) \
    static __attribute__((noinline)) void name(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y) \
    { \
        strip_of(strip, limits, x, y, taps, stride, narrow); \
    }
#if VECTOR_BYTES == 64  /* narrow planes leave no lanes idle */
#define STRIPS_OF(taps, stride) STRIPS(strips_##taps##_##stride, taps, stride, 0) STRIPS(narrow_strips_##taps##_##stride, taps, stride, 1)
#define TABLE_OF_STRIPS(taps, stride) {strips_##taps##_##stride, narrow_strips_##taps##_##stride}
#else
#define STRIPS_OF(taps, stride) STRIPS(strips_##taps##_##stride, taps, stride, 0)
#define TABLE_OF_STRIPS(taps, stride) {strips_##taps##_##stride, NULL}
#endif
STRIPS_OF(3, 1)
STRIPS_OF(3, 2)
STRIPS(strips_5_1, 5, 1, 0)
STRIPS_OF(5, 2)
STRIPS(strips_7_1, 7, 1, 0)
#endif
static const PlaneStrips plane_strips[STRIP_TAPS + 1][3][2] = {
#if VECTOR_BYTES > 16  /* masks that cost little */
    [3] = {[1] = TABLE_OF_STRIPS(3, 1), [2] = TABLE_OF_STRIPS(3, 2)},
    [5] = {[1] = {strips_5_1, NULL}, [2] = TABLE_OF_STRIPS(5, 2)},
    [7] = {[1] = {strips_7_1, NULL}},
#endif
};

/* LANES planes of `count` cells, 4 or more, into pixels of LANES channels side by side. The last columns may be moved twice. */
static __attribute__((noinline, unused)) void turn_planes(const char *planes, ptrdiff_t plane, char *pixels, ptrdiff_t count)
{
    for (ptrdiff_t done = 0, at; done < count; done += 4) {
        at = done + 4 <= count ? done : count - 4;
        move_tile(4, PIECES, 0, planes + 4 * at, plane, pixels + VECTOR_BYTES * at, VECTOR_BYTES, 4);
    }
}

/* And back, LANES pixels or more. */
static __attribute__((noinline, unused)) void turn_pixels(const char *pixels, char *planes, ptrdiff_t plane, ptrdiff_t count)
{
    for (ptrdiff_t done = 0, at; done < count; done += LANES) {
        at = done + LANES <= count ? done : count - LANES;
        for (int lane = 0; lane < LANES; lane += 4)
            move_tile(4, PIECES, 0, pixels + VECTOR_BYTES * at + 4 * lane, VECTOR_BYTES, planes + lane * plane + 4 * at, plane, 4);
    }
}

#endif

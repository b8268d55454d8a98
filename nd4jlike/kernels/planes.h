/* Convolution of planes, whose columns lie side by side as in NCHW, in C (see taps.h): vectors of neighbouring columns of one channel. */
#ifndef ND4JLIKE_PLANES_H
#define ND4JLIKE_PLANES_H

#include "taps.h"
#include "tiles.h"

/* Pieces of a row that are cut at a time. */
enum { COLUMNS_ACROSS = VECTOR_BYTES == 32 ? 128 : 32 };

/* The mask of the lanes from `begin` to before `end`, which may lie anywhere. */
WORD vi32 lanes_between(ptrdiff_t begin, ptrdiff_t end)
{
    const int first = (int)(begin < 0 ? 0 : begin > LANES ? LANES : begin), last = (int)(end < 0 ? 0 : end > LANES ? LANES : end);
    vi32 lane;
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
        lane[i] = i;
    return (vi32)(lane >= first) & (vi32)(lane < last);
}

/* A weight in all lanes; where pixels share a vector (`mixed`) each lane has its own. */
WORD vf32 plane_weight(const float *weight, const int mixed) { return mixed ? *(const vf32 *)weight : splat_f32(*weight); }

/* Elements of a mask as float32; the others, whose memory is not read, are 0. */
WORD vf32 load_where(const char *source, vmask mask, const int element)
{
#if VECTOR_BYTES == 64
    if (element != FLOAT32)
        return widen_where(source, mask, element);
#endif
    return load_where_f32((const float *)source, mask);
}

#if VECTOR_BYTES == 64
/* The first `count` of them. */
WORD vf32 load_first(const char *source, ptrdiff_t count, const int element)
{
    return element == FLOAT32 ? load_part_f32((const float *)source, count) : widen_where(source, first_lanes(count), element);
}
#endif

/* Planes, whose columns lie side by side: a tap of one or two vectors of neighbouring columns, `step` bytes of the input apart. Its masks are set for the
 * columns inside the image: `stride` vectors of them. Pixels that share a vector are picked by `index` out of two where the stride is not 1. */
WORD void add_plane_tap(
    vf32 *upper, vf32 *lower, const float *upper_weights, const float *lower_weights, const char *x, ptrdiff_t step, ptrdiff_t tap,
    const vi32 *masks, const vi32 index, const int stride, const int vectors, const int masked, const int mixed, const int element)
{
#pragma GCC unroll 2
    for (int i = 0; i < vectors; i++, x += step) {
        const char *next = x + LANES * BYTES_OF(element);
        vf32 value = masked ? load_where(x, mask_of(masks[tap * stride]), element) : load_as_f32(x, LANES, element);
        if (stride == 2) {
            const vf32 second = masked ? load_where(next, mask_of(masks[tap * stride + 1]), element) : load_as_f32(next, LANES, element);
            value = mixed ? pick_f32(value, second, index) : seconds_of_f32(value, second, 0);
        }
        if (upper)
            upper[i] += value * plane_weight(upper_weights + tap * LANES, mixed);
        if (lower)
            lower[i] += value * plane_weight(lower_weights + tap * LANES, mixed);
    }
}

WORD void add_plane_row(
    vf32 *upper, vf32 *lower, const float *upper_weights, const float *lower_weights, const char *x, ptrdiff_t dilation, ptrdiff_t step, int taps,
    const vi32 *masks, const vi32 index, const int stride, const int vectors, const int masked, const int mixed, const int element)
{
    /* Unrolled where the number is known. */
    if (__builtin_constant_p(taps))
#pragma GCC unroll 8
        for (int tap = 0; tap < taps; tap++)
            add_plane_tap(upper, lower, upper_weights, lower_weights, x + tap * dilation, step, tap, masks, index, stride, vectors, masked, mixed, element);
    else
#pragma GCC unroll 1
        for (int tap = 0; tap < taps; tap++)
            add_plane_tap(upper, lower, upper_weights, lower_weights, x + tap * dilation, step, tap, masks, index, stride, vectors, masked, mixed, element);
}

/* `block` is at the channel's lane of its block. */
WORD void one_plane_tile(
    const Tile *tile, const vf32 *limits, const float *block, int taps, const char *x, char *y, const vi32 *masks,
    const int stride, const int vectors, const int masked, const int mixed, const int element)
{
    const ptrdiff_t to_next = mixed ? tile->y_column : VECTOR_BYTES, step = mixed ? tile->x_output : stride * to_next;
    const vi32 index = mixed && stride > 1 ? *tile->picked : (vi32){0};
    const ptrdiff_t behind = (ptrdiff_t)tile->step * taps * LANES, pitch = taps * LANES, x_row = tile->x_row, dilation = tile->x_column;
    const float *weights = block + LANES;
    vf32 upper[2], lower[2];
    int row;
#pragma GCC unroll 2
    for (int i = 0; i < vectors; i++)
        upper[i] = lower[i] = plane_weight(block, mixed);
    for (row = tile->upper.begin; row < tile->upper.end; row++)
        add_plane_row(upper, NULL, weights + row * pitch, NULL, x + row * x_row, dilation, step, taps, masks, index, stride, vectors, masked, mixed, element);
    for (row = tile->both.begin; row < tile->both.end; row++)
        add_plane_row(
            upper, lower, weights + row * pitch, weights + row * pitch - behind, x + row * x_row, dilation, step, taps, masks, index, stride, vectors, masked, mixed, element);
    for (row = tile->lower.begin; row < tile->lower.end; row++)
        add_plane_row(NULL, lower, NULL, weights + row * pitch - behind, x + row * x_row, dilation, step, taps, masks, index, stride, vectors, masked, mixed, element);
#pragma GCC unroll 2
    for (int i = 0; i < vectors; i++) {
        char *to = y + i * to_next;
        if (stride == 2 && !mixed)
            upper[i] = seconds_in_order(upper[i]), lower[i] = seconds_in_order(lower[i]);
        store_from_f32(to, at_most_f32(at_least_f32(upper[i], limits[0]), limits[1]), tile->tail_lanes, element);
        if (tile->rows == 2)
            store_from_f32(to + tile->y_row, at_most_f32(at_least_f32(lower[i], limits[0]), limits[1]), tile->tail_lanes, element);
    }
}

#if VECTOR_BYTES > 16
/* No masks: every column is inside the image. */
WORD void plane_tile_of(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks)
{
    if (stride == 1 && masks)
        one_plane_tile(tile, limits, block, taps, x, y, masks, 1, 1, 1, 0, FLOAT32);
    else if (stride == 1 && vectors == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 1, 1, 0, 0, FLOAT32);
    else if (stride == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 1, 2, 0, 0, FLOAT32);
    else if (masks)
        one_plane_tile(tile, limits, block, taps, x, y, masks, 2, 1, 1, 0, FLOAT32);
    else if (vectors == 1)
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 2, 1, 0, 0, FLOAT32);
    else
        one_plane_tile(tile, limits, block, taps, x, y, NULL, 2, 2, 0, 0, FLOAT32);
}

/* Calls, so that their registers are their own. 5 and 7 taps as a constant gain 5 to 13 % on wide planes, for 18 KB of the wheel; 3 where stacks (stacks.h) do not
 * have nearly all such filters. */
static __attribute__((noinline)) void plane_tile(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks)
{
    if (VECTOR_BYTES == 64 && taps == 3)
        plane_tile_of(tile, limits, block, 3, stride, vectors, x, y, masks);
    else
        plane_tile_of(tile, limits, block, taps, stride, vectors, x, y, masks);
}

/* Channels up to which rows of pixels are a plane, too, whose neighbouring columns are channels of neighbouring pixels, each with weights of its own: where
 * the stride is 1, and where it is not. Vectors hold whole pixels, and are `y_column` bytes apart, `x_output` in the input; single ones have masks. */
enum { MIXED_CHANNELS = VECTOR_BYTES == 64 ? 4 : 0, PICKED_CHANNELS = LANES / 2 };
#define MIXED_TILE(name, element) \
    static __attribute__((noinline, unused)) void name( \
        const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks) \
    { \
        if (element == FLOAT32 && stride == 1 && MIXED_CHANNELS && masks) \
            one_plane_tile(tile, limits, block, taps, x, y, masks, 1, 1, 1, 1, element); \
        else if (element == FLOAT32 && stride == 1 && MIXED_CHANNELS) \
            one_plane_tile(tile, limits, block, taps, x, y, NULL, 1, 2, 0, 1, element); \
        else if (masks) \
            one_plane_tile(tile, limits, block, taps, x, y, masks, 2, 1, 1, 1, element); \
        else \
            one_plane_tile(tile, limits, block, taps, x, y, NULL, 2, 2, 0, 1, element); \
    }
MIXED_TILE(mixed_tile_f32, FLOAT32)
#if VECTOR_BYTES == 64
MIXED_TILE(mixed_tile_f16, FLOAT16)
MIXED_TILE(mixed_tile_bf16, BFLOAT16)
#endif
#else
enum { MIXED_CHANNELS = 0, PICKED_CHANNELS = 0 };
#define plane_tile NULL
#endif

typedef void (*PlaneTile)(
    const Tile *tile, const vf32 *limits, const float *block, int taps, int stride, int vectors, const char *x, char *y, const vi32 *masks);

/* By element. */
static const PlaneTile mixed_tiles[4] = {
#if VECTOR_BYTES > 16
    [FLOAT32] = mixed_tile_f32,
#endif
#if VECTOR_BYTES == 64
    [FLOAT16] = mixed_tile_f16, [BFLOAT16] = mixed_tile_bf16,
#endif
};

/* Halves to float32, `runs` of `count` cells, so many floats and bytes apart; the last vector of each is written whole. And back. Of each type apart, or every
 * vector asks for its type. */
#define CONVERSIONS(name, element) \
    static __attribute__((noinline, unused)) void widen_##name( \
        float *target, ptrdiff_t pitch, const char *source, ptrdiff_t step, ptrdiff_t runs, ptrdiff_t count) \
    { \
        for (; runs > 0; runs--, target += pitch, source += step) { \
            ptrdiff_t i = 0; \
            for (; i + LANES <= count; i += LANES) \
                *(vf32 *)(target + i) = widen_halves(source + 2 * i, LANES, element); \
            if (i < count && i) \
                *(vf32 *)(target + (count - LANES)) = widen_halves(source + 2 * (count - LANES), LANES, element); \
            else if (i < count) \
                *(vf32 *)target = widen_halves(source, count, element); \
        } \
    } \
    static __attribute__((noinline, unused)) void narrow_##name( \
        char *target, ptrdiff_t step, const float *source, ptrdiff_t pitch, ptrdiff_t runs, ptrdiff_t count) \
    { \
        for (; runs > 0; runs--, target += step, source += pitch) { \
            ptrdiff_t i = 0; \
            for (; i + LANES <= count; i += LANES) \
                narrow_halves(target + 2 * i, *(const vf32 *)(source + i), LANES, element); \
            if (i < count && i) \
                narrow_halves(target + 2 * (count - LANES), *(const vf32 *)(source + (count - LANES)), LANES, element); \
            else if (i < count) \
                narrow_halves(target, *(const vf32 *)source, count, element); \
        } \
    }
CONVERSIONS(f16, FLOAT16)
CONVERSIONS(bf16, BFLOAT16)
/* float32, by whole lines of the target; what is left at both ends is written twice. */
static __attribute__((noinline, unused)) void copy_runs(
    char *target, ptrdiff_t pitch, const char *source, ptrdiff_t step, ptrdiff_t runs, ptrdiff_t count)
{
    const ptrdiff_t last = 4 * (count - LANES);
    for (; runs > 0; runs--, target += pitch, source += step) {
        ptrdiff_t i = -(uintptr_t)target % VECTOR_BYTES;
        if (last < 0) {
            memcpy(target, source, 4 * count);
            continue;
        }
        *(vf32 *)target = *(const vf32 *)source;
        for (; i <= last; i += VECTOR_BYTES)
            *(vf32 *)(target + i) = *(const vf32 *)(source + i);
        *(vf32 *)(target + last) = *(const vf32 *)(source + last);
    }
}
WORD void widen_runs(float *target, ptrdiff_t pitch, const char *source, ptrdiff_t step, ptrdiff_t runs, ptrdiff_t count, int element)
{
    if (element == FLOAT32) {
        copy_runs((char *)target, 4 * pitch, source, step, runs, count);
        return;
    }
    if (pitch == count && step == 2 * count)
        count *= runs, runs = 1;
    (element == FLOAT16 ? widen_f16 : widen_bf16)(target, pitch, source, step, runs, count);
}
WORD void narrow_runs(char *target, ptrdiff_t step, const float *source, ptrdiff_t pitch, ptrdiff_t runs, ptrdiff_t count, int element)
{
    if (element == FLOAT32) {
        copy_runs(target, step, (const char *)source, 4 * pitch, runs, count);
        return;
    }
    if (pitch == count && step == 2 * count)
        count *= runs, runs = 1;
    (element == FLOAT16 ? narrow_f16 : narrow_bf16)(target, step, source, pitch, runs, count);
}

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
        _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane += 4)
            move_tile(4, PIECES, 0, pixels + VECTOR_BYTES * at + 4 * lane, VECTOR_BYTES, planes + lane * plane + 4 * at, plane, 4);
    }
}

#endif

/* Convolution of planes, whose columns lie side by side as in NCHW, in C (see taps.h): vectors of neighbouring columns of one channel. */
#ifndef ND4JLIKE_PLANES_H
#define ND4JLIKE_PLANES_H

#include "taps.h"
#include "tiles.h"

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

/* Taps in a row of a strip, and vectors side by side, at most; pieces of a row that are cut at a time; sums and weights of a strip that have registers. */
enum { STRIP_TAPS = 7, STRIPS_ACROSS = 4, SHIFTED_ACROSS = 2, COLUMNS_ACROSS = VECTOR_BYTES == 32 ? 128 : 32, HELD_AND_SUMS = 22 };


/* How a strip gets the inputs of a tap: it loads them; whole rows are in two registers, or without a stride in one, which taps pick from, of two planes in
 * the halves of a vector (NARROW), or of one plane; vectors side by side, and their neighbours, are in registers, and shifted. MIXED: it loads them, of pixels that share a vector. DOUBLED: of
 * bfloat16, two vectors are every second column of twice as many, whose halves are two in a lane. */
enum { LOADED, NARROW, PICKED, SHIFTED, MIXED, DOUBLED };
/* Their places in the table, behind those that load. */
enum { NARROW_STRIPS = STRIPS_ACROSS, PICKED_STRIPS, SHIFTED_STRIPS, STRIP_KINDS };

/* Vectors of neighbouring output columns of the planes from the first to the end, all output rows from `begin` to `end`. */
typedef struct {
    /* `x` and `y` are at plane 0, whose weights are those of plane `lead`. */
    ptrdiff_t first_plane, end_plane, lead, multiplier, x_plane, y_plane;
    /* Columns between taps, where the stride is 1; rows between taps are steps from row to row. */
    ptrdiff_t dilation;
    ptrdiff_t begin, end, pad, height;
    /* Bytes. */
    ptrdiff_t x_row, y_row;
    /* Columns of the last vector that are stored; of whole rows, columns of the image. Rows of outputs that strips of
     * several vectors fetch ahead, with their inputs. */
    ptrdiff_t lanes, width, ahead;
    /* For each vector side by side: for each tap, of wide planes for each input vector of it, the columns inside the image. Of shifted ones only the first:
     * for each vector, from the one before on, to the one after; and whether these have any. Of doubled ones, for each two: from the column before on, at
     * every second column. */
    const vi32 *masks[STRIPS_ACROSS];
    int before, after;
    /* Of whole rows, for each tap: where the lanes find their column in the two registers. */
    const vi32 *index;
    /* Packed weights: a vector of biases, then one for each tap. */
    const float *blocks;
    ptrdiff_t block_vectors;
    /* Of pixels that share a vector: bytes from one vector to the next. */
    ptrdiff_t step;
} PlaneStrip;

typedef void (*PlaneStrips)(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y);

#if VECTOR_BYTES == 64  /* masks that cost little, and registers for weights beside the sums */
/* The inputs of a tap; those of every second column are loaded once for two taps, and in an order of their own. */
WORD vf32 load_strip(
    vf32 *pair, ptrdiff_t width, const vi32 *index, const char *x, const char *other, const vmask *masks, ptrdiff_t dilation, const int tap, const int stride,
    const int how, const int element)
{
    /* Without a stride one register holds them. */
    if (tap == 0 && how == NARROW && stride == 1)
        pair[0] = join_halves_f32(load_half_f32((const float *)x, width), load_half_f32((const float *)other, width));
    else if (tap == 0 && how == PICKED && stride == 1)
        pair[0] = load_part_f32((const float *)x, width);
    else if (tap == 0 && how == NARROW && width <= LANES / 2 && element == FLOAT32)
        pair[0] = load_half_f32((const float *)x, width), pair[1] = load_half_f32((const float *)other, width);
    else if (tap == 0 && how == NARROW)
        pair[0] = load_first(x, width, element), pair[1] = load_first(other, width, element);
    else if (tap == 0 && how == PICKED && width <= LANES)
        pair[0] = pair[1] = load_first(x, width, element);
    else if (tap == 0 && how == PICKED)
        pair[0] = load_first(x, LANES, element), pair[1] = load_first(x + LANES * BYTES_OF(element), width - LANES, element);
    if (how == NARROW || how == PICKED)
        return stride == 1 ? pick_from_one(pair[0], index[tap], masks[tap]) : pick_from_two(pair[0], pair[1], index[tap], masks[tap]);
    if (stride == 1)
        return load_where(x + tap * dilation * BYTES_OF(element), masks[tap], element);
    /* A lane has the halves of two columns. */
    if (element != FLOAT32) {
        if (tap % 2 == 0)
            pair[0] = load_pairs_where(x + 2 * tap, masks[tap * stride], masks[tap * stride + 1]);
        return widen_every_second(pair[0], tap % 2, element);
    }
    if (tap % 2 == 0) {
        pair[0] = load_where_f32((const float *)x + tap, masks[tap * stride]);
        pair[1] = load_where_f32((const float *)x + tap + LANES, masks[tap * stride + 1]);
    }
    return seconds_of_f32(pair[0], pair[1], tap % 2);
}

/* Lanes of the second of three vectors side by side, or so many columns behind or before them. */
WORD vf32 shifted_f32(const vf32 *beside, const int by)
{
    return by == 0 ? beside[1] : by < 0 ? lanes_from(beside[0], beside[1], LANES + by) : lanes_from(beside[1], beside[2], by);
}

WORD vf32 strip_weight(const float *weights, const float *other, ptrdiff_t vector, const int how)
{
    if (how == NARROW)
        return halves_f32(weights[vector * LANES], other[vector * LANES]);
    return plane_weight(weights + vector * LANES, how == MIXED);
}

/* Lines of memory, of inputs or of outputs (`write`): strips read and write less of a page than prefetchers follow. */
WORD void fetch_run(const char *from, const int bytes, const int write)
{
#pragma GCC unroll 8
    for (int i = 0; i < bytes; i += 64)
        if (write)
            __builtin_prefetch(from + i, 1, 2);
        else
            __builtin_prefetch(from + i, 0, 2);
}

/* `across` vectors side by side of each of `planes` planes, or pairs of narrow ones, at a time: sums that do not wait for each other. Each input row is
 * loaded once, for all rows of outputs that it reaches. */
WORD void strip_of(
    const PlaneStrip *given, const vf32 *limits, const char *x, char *y, const int high, const int taps, const int stride, const int across, const int planes,
    const int how, const int element)
{
    const PlaneStrip copy = *given, *const strip = &copy;  /* no store to y changes it */
    const int kept = (high - 1) / stride + 1, each = how == NARROW ? 2 : 1, vectors = across * planes;
    /* Weights in registers: all, or, where two vectors share them or each is a vector, as many as there are left; else products read them. */
    const int hold = how == NARROW || high * taps <= 9 ? high * taps : across == 2 || how == MIXED ? HELD_AND_SUMS - kept * vectors : 0;
    const int pointers = each * planes, turns = taps == 3 && how != PICKED ? planes : 1;
    const int count = how == SHIFTED ? across + 2 : how == DOUBLED ? taps : how == LOADED ? taps * stride : taps;
    const int rows_of_masks = how == SHIFTED ? 1 : how == DOUBLED ? across / 2 : across;
    const ptrdiff_t next = how == MIXED ? strip->step : LANES * BYTES_OF(element);
    const int clamps = limits[0][0] > -__builtin_inff() || limits[1][0] < __builtin_inff();
    vmask masks[STRIPS_ACROSS][2 * STRIP_TAPS];
#pragma GCC unroll 4
    for (int v = 0; v < rows_of_masks; v++)
#pragma GCC unroll 16
        for (int i = 0; i < count; i++)
            masks[v][i] = mask_of(strip->masks[v][i]);
    vi32 index[STRIP_TAPS];
    if (how == NARROW || how == PICKED) {
#pragma GCC unroll 8
        for (int i = 0; i < taps; i++)
            index[i] = strip->index[i];
    }
    ptrdiff_t plane = strip->first_plane;
    do {
        ptrdiff_t out = strip->begin - (kept - 1), row = out * stride - strip->pad + high - stride;
        const float *weights[4];
        const char *from[4];
        char *to[4];
        vf32 held[2][STRIP_TAPS * STRIP_TAPS], sums[STRIPS_ACROSS][STRIP_TAPS], bias[2];
#pragma GCC unroll 4
        for (int i = 0; i < pointers; i++) {
            const ptrdiff_t place = plane + i < strip->end_plane ? plane + i : strip->end_plane - 1;
            weights[i] = strip->blocks + (strip->lead + place) / LANES * strip->block_vectors * LANES + (strip->lead + place) % LANES;
            /* A division takes as long as a row. */
            from[i] = x + (strip->multiplier == 1 ? place : (ptrdiff_t)((uint32_t)place / (uint32_t)strip->multiplier)) * strip->x_plane + row * strip->x_row;
            to[i] = y + place * strip->y_plane;
        }
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++) {
            bias[p] = strip_weight(weights[p * each], weights[p * each + each - 1], 0, how);
#pragma GCC unroll 32
            for (int i = 0; i < hold; i++)
                held[p][i] = strip_weight(weights[p * each], weights[p * each + each - 1], 1 + i, how);
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
            for (int i = 0; i < kept; i++)
                sums[v][i] = bias[v / across];
        do {
#pragma GCC unroll 2
            for (int i = 0; i < stride; i++, row++) {
                if ((size_t)row < (size_t)strip->height) {
                    vf32 pairs[STRIPS_ACROSS][2], beside[SHIFTED_ACROSS + 2], columns[STRIPS_ACROSS / 2][4];
                    if (how == SHIFTED) {
#pragma GCC unroll 4
                        for (int v = 0; v < across; v++)
                            beside[v + 1] = load_where_f32((const float *)(from[0] + v * VECTOR_BYTES), masks[0][v + 1]);
                        beside[0] = beside[across + 1] = splat_f32(0);
                        if (strip->before)
                            beside[0] = load_where_f32((const float *)(from[0] - VECTOR_BYTES), masks[0][0]);
                        if (strip->after)
                            beside[across + 1] = load_where_f32((const float *)(from[0] + across * VECTOR_BYTES), masks[0][across + 1]);
                    }
                    /* Of the columns before the first tap and that tap, of it and the next, and so on. */
                    if (how == DOUBLED)
#pragma GCC unroll 2
                        for (int two = 0; two < across / 2; two++)
#pragma GCC unroll 4
                            for (int i = 0; i <= taps; i++) {
                                if (i % 2 || i == 0)
                                    pairs[two][0] = load_where_f32(
                                        (const float *)(from[0] + two * VECTOR_BYTES + (i ? i : -1) * BYTES_OF(element)), masks[two][(i + 1) / 2]);
                                columns[two][i] = widen_every_second(pairs[two][0], (i + 1) % 2, element);
                            }
#pragma GCC unroll 16
                    for (int step = 0; step < turns * taps; step++) {
                        const int tap = step % taps, first = step / taps * (vectors / turns);
                        vf32 value[STRIPS_ACROSS];
#pragma GCC unroll 4
                        for (int v = first; v < first + vectors / turns; v++)
                            value[v] = how == SHIFTED ? shifted_f32(beside + v, tap - taps / 2) : how == DOUBLED ? columns[v / 2][tap + v % 2]
                                : load_strip(
                                    pairs[v], strip->width, index, from[v / across * each] + v % across * stride * next,
                                    from[v / across * each + each - 1], masks[v % across], strip->dilation, tap, stride, how, element);
#pragma GCC unroll 8
                        for (int k = 0; high - stride + i >= k * stride; k++) {
                            const int place = (high - stride + i - k * stride) * taps + tap;
#pragma GCC unroll 4
                            for (int v = first; v < first + vectors / turns; v++)
                                sums[v][k] += value[v] * (place < hold ? held[v / across][place] : plane_weight(weights[v / across] + (1 + place) * LANES, how == MIXED));
                        }
                    }
                }
#pragma GCC unroll 4
                for (int j = 0; j < pointers; j++)
                    from[j] += strip->x_row;
            }
            if (across > 1 && strip->ahead)
#pragma GCC unroll 2
                for (int p = 0; p < planes; p++) {
#pragma GCC unroll 2
                    for (int i = 0; i < stride; i++)
                        fetch_run(from[p] + (strip->ahead * stride + i) * strip->x_row, stride * across * LANES * BYTES_OF(element), 0);
                    fetch_run(to[p] + strip->ahead * strip->y_row, across * LANES * BYTES_OF(element), 1);
                }
            if (out >= strip->begin) {
                if (clamps)
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++)
                        sums[v][0] = at_most_f32(at_least_f32(sums[v][0], limits[0]), limits[1]);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    const vf32 value = stride == 2 && how == LOADED && element == FLOAT32 ? seconds_in_order(sums[v][0]) : sums[v][0];
                    char *at = to[v / across * each] + v % across * next;
                    if (how == NARROW) {
                        if (element != FLOAT32) {
                            narrow_two(at, to[v * each + 1], value, strip->lanes, element);
                            continue;
                        }
                        store_half_f32((float *)at, value, strip->lanes);
                        store_half_f32((float *)to[v * each + 1], upper_half_f32(value), strip->lanes);
                        continue;
                    }
                    if (how == DOUBLED) {
                        if (v % 2)
                            store_brains(to[0] + v / 2 * VECTOR_BYTES, sums[v - 1][0], value, v == across - 1 ? strip->lanes / 2 : LANES);
                        continue;
                    }
                    if (element != FLOAT32)
                        narrow_halves(at, value, v % across == across - 1 ? strip->lanes : LANES, element);
                    else if (v % across == across - 1)
                        store_first_f32((float *)at, value, strip->lanes);
                    else
                        *(vf32 *)at = value;
                }
#pragma GCC unroll 4
                for (int j = 0; j < pointers; j++)
                    to[j] += strip->y_row;
            }
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 8
                for (int i = 0; i + 1 < kept; i++)
                    sums[v][i] = sums[v][i + 1];
                sums[v][kept - 1] = bias[v / across];
            }
        } while (++out < strip->end);
        plane += pointers;
    } while (plane < strip->end_plane);
}

/* By element (ELEMENT_). */
#define STRIPS(name, type, taps, stride, across, planes, how) STRIPS_OF(name, type, taps, taps, stride, across, planes, how)
#define STRIPS_OF(name, type, high, taps, stride, across, planes, how) \
    static __attribute__((noinline)) void name##_##type(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y) \
    { \
        strip_of(strip, limits, x, y, high, taps, stride, across, planes, how, ELEMENT_##type); \
    }
#define STRIPS_OF_3(type, stride) \
    STRIPS(strips_3_##stride, type, 3, stride, 1, 2, LOADED) STRIPS(strips_3_##stride##_2, type, 3, stride, 2, 1, LOADED) \
    STRIPS(strips_3_##stride##_3, type, 3, stride, 3, 1, LOADED) STRIPS(strips_3_##stride##_4, type, 3, stride, 4, 1, LOADED)
#define TABLE_OF_3(type, stride) strips_3_##stride##_##type, strips_3_##stride##_2_##type, strips_3_##stride##_3_##type, strips_3_##stride##_4_##type
#define WIDER_STRIPS(taps, stride) \
    STRIPS(strips_##taps##_##stride, f32, taps, stride, 1, 2, LOADED) STRIPS(picked_strips_##taps##_##stride, f32, taps, stride, 1, 2, PICKED)
#define TABLE_OF_WIDER(taps, stride) strips_##taps##_##stride##_f32, [PICKED_STRIPS] = picked_strips_##taps##_##stride##_f32
#define EVEN_STRIPS(taps) \
    STRIPS(strips_##taps##_2, f32, taps, 2, 1, 2, LOADED) STRIPS(narrow_strips_##taps##_2, f32, taps, 2, 1, 2, NARROW) \
    STRIPS(picked_strips_##taps##_2, f32, taps, 2, 1, 2, PICKED)
#define TABLE_OF_EVEN(taps) \
    [taps] = {[2] = {strips_##taps##_2_f32, [NARROW_STRIPS] = narrow_strips_##taps##_2_f32, [PICKED_STRIPS] = picked_strips_##taps##_2_f32}}
#define LINE_STRIPS(taps) \
    STRIPS_OF(row_strips_##taps, f32, 1, taps, 1, 1, 2, LOADED) STRIPS_OF(picked_row_strips_##taps, f32, 1, taps, 1, 1, 2, PICKED) \
    STRIPS_OF(shifted_row_strips_##taps, f32, 1, taps, 1, SHIFTED_ACROSS, 1, SHIFTED) \
    STRIPS_OF(column_strips_##taps, f32, taps, 1, 1, 1, 2, LOADED) STRIPS_OF(column_strips_##taps##_2, f32, taps, 1, 1, 2, 1, LOADED) \
    STRIPS_OF(mixed_columns_##taps, f32, taps, 1, 1, 1, 1, MIXED) STRIPS_OF(mixed_columns_##taps##_2, f32, taps, 1, 1, 2, 1, MIXED)
#define ROW_STRIPS(taps) \
    [taps] = {row_strips_##taps##_f32, [PICKED_STRIPS] = picked_row_strips_##taps##_f32, [SHIFTED_STRIPS] = shifted_row_strips_##taps##_f32}
#define COLUMN_STRIPS(taps) [taps] = {column_strips_##taps##_f32, column_strips_##taps##_2_f32}
#define MIXED_COLUMNS(taps) [taps] = {mixed_columns_##taps##_f32, mixed_columns_##taps##_2_f32}
EVEN_STRIPS(4)
LINE_STRIPS(3)
LINE_STRIPS(5)
LINE_STRIPS(7)
STRIPS(narrow_strips_3_1, f32, 3, 1, 1, 2, NARROW)
STRIPS(narrow_strips_3_2, f32, 3, 2, 1, 2, NARROW)
STRIPS(picked_strips_3_2, f32, 3, 2, 1, 2, PICKED)
STRIPS(narrow_strips_5_2, f32, 5, 2, 1, 2, NARROW)
STRIPS(shifted_strips_5, f32, 5, 1, SHIFTED_ACROSS, 1, SHIFTED)
STRIPS(shifted_strips_7, f32, 7, 1, SHIFTED_ACROSS, 1, SHIFTED)
STRIPS_OF_3(f16, 1)
STRIPS_OF_3(f16, 2)
STRIPS_OF_3(bf16, 1)
STRIPS_OF_3(bf16, 2)
STRIPS(narrow_strips_3_2, f16, 3, 2, 1, 2, NARROW)
STRIPS(narrow_strips_3_2, bf16, 3, 2, 1, 2, NARROW)
STRIPS(picked_strips_3_2, f16, 3, 2, 1, 2, PICKED)
STRIPS(doubled_strips_2, bf16, 3, 1, 2, 1, DOUBLED)
STRIPS(doubled_strips_4, bf16, 3, 1, 4, 1, DOUBLED)
#define MIXED_STRIPS(type) \
    STRIPS(mixed_strips_3_1, type, 3, 1, 1, 1, MIXED) STRIPS(mixed_strips_3_2, type, 3, 1, 2, 1, MIXED) \
    STRIPS(mixed_strips_3_3, type, 3, 1, 3, 1, MIXED) STRIPS(mixed_strips_3_4, type, 3, 1, 4, 1, MIXED) \
    STRIPS(mixed_strips_5_1, type, 5, 1, 1, 1, MIXED) STRIPS(mixed_strips_5_2, type, 5, 1, 2, 1, MIXED) \
    STRIPS(mixed_strips_7_1, type, 7, 1, 1, 1, MIXED) STRIPS(mixed_strips_7_2, type, 7, 1, 2, 1, MIXED)
#define TABLE_OF_MIXED(type) \
    { \
        [3] = {mixed_strips_3_1_##type, mixed_strips_3_2_##type, mixed_strips_3_3_##type, mixed_strips_3_4_##type}, \
        [5] = {mixed_strips_5_1_##type, mixed_strips_5_2_##type}, \
        [7] = {mixed_strips_7_1_##type, mixed_strips_7_2_##type}, \
    }
MIXED_STRIPS(f16)
MIXED_STRIPS(bf16)
STRIPS_OF_3(f32, 1)
STRIPS_OF_3(f32, 2)
WIDER_STRIPS(5, 1)
WIDER_STRIPS(5, 2)
STRIPS(strips_5_2_2, f32, 5, 2, 2, 1, LOADED)
WIDER_STRIPS(7, 1)
EVEN_STRIPS(2)
MIXED_STRIPS(f32)
#endif
/* By element, taps and stride, the same down and across; and vectors side by side, less one, or the kind. */
static const PlaneStrips plane_strips[4][STRIP_TAPS + 1][3][STRIP_KINDS] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = {
        TABLE_OF_EVEN(2),
        TABLE_OF_EVEN(4),
        [3] = {
            [1] = {TABLE_OF_3(f32, 1), [NARROW_STRIPS] = narrow_strips_3_1_f32},
            [2] = {TABLE_OF_3(f32, 2), [NARROW_STRIPS] = narrow_strips_3_2_f32, [PICKED_STRIPS] = picked_strips_3_2_f32}},
        [5] = {
            [1] = {TABLE_OF_WIDER(5, 1), [SHIFTED_STRIPS] = shifted_strips_5_f32},
            [2] = {TABLE_OF_WIDER(5, 2), [1] = strips_5_2_2_f32, [NARROW_STRIPS] = narrow_strips_5_2_f32}},
        [7] = {[1] = {TABLE_OF_WIDER(7, 1), [SHIFTED_STRIPS] = shifted_strips_7_f32}}},
    [FLOAT16] = {[3] = {[1] = {TABLE_OF_3(f16, 1)}, [2] = {TABLE_OF_3(f16, 2), [NARROW_STRIPS] = narrow_strips_3_2_f16, [PICKED_STRIPS] = picked_strips_3_2_f16}}},
    [BFLOAT16] = {[3] = {[1] = {TABLE_OF_3(bf16, 1)}, [2] = {TABLE_OF_3(bf16, 2), [NARROW_STRIPS] = narrow_strips_3_2_bf16}}},
#endif
};

/* float32 by filters of one row, and of one column, at step 1: by taps, and vectors side by side, less one. */
static const PlaneStrips line_strips[2][STRIP_TAPS + 1][STRIP_KINDS] = {
#if VECTOR_BYTES == 64
    {ROW_STRIPS(3), ROW_STRIPS(5), ROW_STRIPS(7)}, {COLUMN_STRIPS(3), COLUMN_STRIPS(5), COLUMN_STRIPS(7)},
#endif
};

/* Of bfloat16 by 3x3, at step 1: by twice LANES columns, less one. */
static const PlaneStrips doubled_strips[STRIPS_ACROSS] = {
#if VECTOR_BYTES == 64
    doubled_strips_2_bf16, doubled_strips_4_bf16,
#endif
};

/* Of pixels that share a vector, at step 1: by element, taps, and vectors side by side, less one. */
enum { MIXED_STRIP_CHANNELS = LANES / 2 };
static const PlaneStrips mixed_strips[4][STRIP_TAPS + 1][STRIPS_ACROSS] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = TABLE_OF_MIXED(f32), [FLOAT16] = TABLE_OF_MIXED(f16), [BFLOAT16] = TABLE_OF_MIXED(bf16),
#endif
};
/* The same by filters of one column. */
static const PlaneStrips mixed_columns[STRIP_TAPS + 1][STRIPS_ACROSS] = {
#if VECTOR_BYTES == 64
    MIXED_COLUMNS(3), MIXED_COLUMNS(5), MIXED_COLUMNS(7),
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

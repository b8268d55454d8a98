/* Planes by filters that are common, down strips of columns, in C (see taps.h): an input row is loaded once and added to the sums of all rows that it
 * reaches, which stay in registers, with the weights where these have room.
 */
#ifndef ND4JLIKE_PLANE_STRIPS_H
#define ND4JLIKE_PLANE_STRIPS_H

#include "planes.h"

/* Taps in a row of a strip, and vectors side by side, at most; sums and weights that have registers. */
enum { STRIP_TAPS = 7, STRIPS_ACROSS = 4, SHIFTED_ACROSS = 2, HELD_AND_SUMS = 22 };

/* How a strip gets the inputs of a tap: it loads them (LOADED); a row, of one plane (PICKED) or of two in the halves of a vector (NARROW), is in one
 * register, halves' by steps in two, which taps pick from; vectors side by side, and their neighbours, are in registers, and shifted (SHIFTED); it loads
 * them, of pixels that share a vector (MIXED); of bfloat16, two vectors are every second column of twice as many, whose halves are two in a lane (DOUBLED).
 * float32 by steps is loaded once for all taps, LOADED or NARROW: every second column, those between, and either moved by a lane (SECONDS). */
#define SECONDS(stride, element) ((stride) == 2 && (element) == FLOAT32)
#define PICKS(how, stride, element) ((how) == PICKED || ((how) == NARROW && !SECONDS(stride, element)))
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
/* The inputs of a tap; those of every second column are in an order of their own. */
WORD vf32 load_strip(
    vf32 *pair, ptrdiff_t width, const vi32 *index, const char *x, const char *other, const vmask *masks, unsigned inside, ptrdiff_t dilation, const int tap,
    const int stride, const int how, const int element)
{
    /* Without a stride one register holds them. */
    if (tap == 0 && how == NARROW && stride == 1)
        pair[0] = join_halves_f32(load_half_f32((const float *)x, width), load_half_f32((const float *)other, width));
    else if (tap == 0 && how == PICKED && stride == 1)
        pair[0] = load_part_f32((const float *)x, width);
    else if (tap == 0 && how == NARROW && element != FLOAT32)
        pair[0] = load_first(x, width, element), pair[1] = load_first(other, width, element);
    else if (tap == 0 && how == PICKED && width <= LANES)
        pair[0] = pair[1] = load_first(x, width, element);
    else if (tap == 0 && how == PICKED)
        pair[0] = load_first(x, LANES, element), pair[1] = load_first(x + LANES * BYTES_OF(element), width - LANES, element);
    if (PICKS(how, stride, element))
        return stride == 1 ? pick_from_one(pair[0], index[tap], masks[tap]) : pick_from_two(pair[0], pair[1], index[tap], masks[tap]);
    if (stride == 1)
        return load_where(x + tap * dilation * BYTES_OF(element), masks[tap], element);
    /* A lane has the halves of two columns. */
    if (element != FLOAT32) {
        if (tap % 2 == 0)
            pair[0] = load_pairs_where(x + 2 * tap, masks[tap * stride], masks[tap * stride + 1]);
        return widen_every_second(pair[0], tap % 2, element);
    }
    /* Those of every second column, from the first tap's on, and of the columns between; for taps behind, from lane to lane. */
    if (tap == 0) {
        const vf32 first = load_where_f32((const float *)x, masks[0]);
        const vf32 second = how == NARROW ? load_where_f32((const float *)other, masks[0]) : load_where_f32((const float *)x + LANES, masks[1]);
        pair[0] = seconds_of_f32(first, second, 0);
        pair[1] = seconds_of_f32(first, second, 1);
    } else if (tap >= 2) {
        const float *const lower = (const float *)x + LANES - 2 + tap;
        vf32 behind = splat_f32(0);
        if (inside >> tap & 1)
            behind = how == NARROW ? halves_of_seconds(*lower, ((const float *)other)[LANES - 2 + tap]) : splat_f32(lower[LANES]);
        pair[tap % 2] = next_seconds(pair[tap % 2], behind, how == NARROW);
    }
    return pair[tap % 2];
}

/* Lanes of the second of three vectors side by side, or so many columns behind or before them. */
WORD vf32 shifted_f32(const vf32 *beside, const int by)
{
    return by == 0 ? beside[1] : by < 0 ? lanes_from(beside[0], beside[1], LANES + by) : lanes_from(beside[1], beside[2], by);
}

/* The same of the lower half of a vector, beside the one before. */
WORD veight shifted_eight(const vf32 *beside, const int by)
{
    const veight lower = lower_eight(beside[1]);
    return by == 0 ? lower : by < 0 ? eight_from(upper_eight(beside[0]), lower, 8 + by) : eight_from(lower, upper_eight(beside[1]), by);
}

/* As load_strip, of half a vector. */
WORD veight load_eight(veight *pair, const float *x, const vmask *masks, unsigned inside, ptrdiff_t dilation, const int tap, const int stride)
{
    if (stride == 1)
        return load_eight_where(x + tap * dilation, masks[tap]);
    if (tap == 0) {
        const veight first = load_eight_where(x, masks[0]), second = load_eight_where(x + 8, masks[0] >> 8);
        pair[0] = seconds_of_eight(first, second, 0);
        pair[1] = seconds_of_eight(first, second, 1);
    } else if (tap >= 2) {
        const veight behind = inside >> tap & 1 ? splat_eight(x + LANES - 2 + tap) : lower_eight(splat_f32(0));
        pair[tap % 2] = next_of_eight(pair[tap % 2], behind);
    }
    return pair[tap % 2];
}

WORD vf32 strip_weight(const float *weights, const float *other, ptrdiff_t vector, const int how, const int seconds)
{
    const float lower = weights[vector * LANES], upper = other[vector * LANES];
    if (how == NARROW)
        return seconds ? halves_of_seconds(lower, upper) : halves_f32(lower, upper);
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
    const int how, const int element, const int halved)
{
    const PlaneStrip copy = *given, *const strip = &copy;  /* no store to y changes it */
    /* The last vector may be half of one, of 8 lanes. */
    const int kept = (high - 1) / stride + 1, each = how == NARROW ? 2 : 1, vectors = across * planes - halved;
    /* Weights in registers: all, or, where two vectors share them or each is a vector, as many as there are left; else products read them. */
    const int hold = how == NARROW || high * taps <= 9 ? high * taps : across == 2 || how == MIXED ? HELD_AND_SUMS - kept * (vectors + halved) : 0;
    const int pointers = each * planes, turns = taps == 3 && how != PICKED ? planes : 1;
    const int seconds = SECONDS(stride, element);
    const int count = how == SHIFTED ? across + 2 : how == DOUBLED ? taps : how == LOADED || seconds ? taps * stride : taps;
    const int rows_of_masks = how == SHIFTED ? 1 : how == DOUBLED ? across / 2 : across;
    const ptrdiff_t next = how == MIXED ? strip->step : LANES * BYTES_OF(element);
    const int clamps = limits[0][0] > -__builtin_inff() || limits[1][0] < __builtin_inff();
    vmask masks[STRIPS_ACROSS][2 * STRIP_TAPS];
#pragma GCC unroll 4
    for (int v = 0; v < rows_of_masks; v++)
#pragma GCC unroll 16
        for (int i = 0; i < count; i++)
            masks[v][i] = mask_of(strip->masks[v][i]);
    /* By steps, for each tap a bit, whether the last lane is inside. */
    unsigned inside[STRIPS_ACROSS] = {0};
    if (seconds)
#pragma GCC unroll 4
        for (int v = 0; v < across; v++)
#pragma GCC unroll 8
            for (int tap = 2; tap < taps; tap++)
                inside[v] |= (masks[v][tap * 2 + (how != NARROW && v < vectors)] >> (LANES - 2) & 1u) << tap;
    vi32 index[STRIP_TAPS];
    if (PICKS(how, stride, element)) {
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
        veight last[STRIP_TAPS];
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
            bias[p] = strip_weight(weights[p * each], weights[p * each + each - 1], 0, how, seconds);
#pragma GCC unroll 32
            for (int i = 0; i < hold; i++)
                held[p][i] = strip_weight(weights[p * each], weights[p * each + each - 1], 1 + i, how, seconds);
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
            for (int i = 0; i < kept; i++)
                sums[v][i] = bias[v / across];
        if (halved)
#pragma GCC unroll 8
            for (int i = 0; i < kept; i++)
                last[i] = lower_eight(bias[0]);
        do {
#pragma GCC unroll 2
            for (int i = 0; i < stride; i++, row++) {
                if ((size_t)row < (size_t)strip->height) {
                    vf32 pairs[STRIPS_ACROSS][2], beside[SHIFTED_ACROSS + 2], columns[STRIPS_ACROSS / 2][4];
                    veight pair_of_eight[2];
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
                                    from[v / across * each + each - 1], masks[v % across], inside[v % across], strip->dilation, tap, stride, how, element);
#pragma GCC unroll 8
                        for (int k = 0; high - stride + i >= k * stride; k++) {
                            const int place = (high - stride + i - k * stride) * taps + tap;
#pragma GCC unroll 4
                            for (int v = first; v < first + vectors / turns; v++) {
                                const float *const weight = weights[v / across] + (1 + place) * LANES;
                                sums[v][k] += value[v] * (place < hold ? held[v / across][place] : plane_weight(weight, how == MIXED));
                            }
                        }
                        if (halved) {
                            const float *const behind = (const float *)(from[0] + vectors * stride * next);
                            const veight few = how == SHIFTED ? shifted_eight(beside + vectors, tap - taps / 2)
                                : load_eight(pair_of_eight, behind, masks[vectors], inside[vectors], strip->dilation, tap, stride);
#pragma GCC unroll 8
                            for (int k = 0; high - stride + i >= k * stride; k++) {
                                const int place = (high - stride + i - k * stride) * taps + tap;
                                last[k] += few * (place < hold ? lower_eight(held[0][place]) : splat_eight(weights[0] + (1 + place) * LANES));
                            }
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
                    const vf32 value = seconds ? seconds_in_order(sums[v][0]) : sums[v][0];
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
                    else if (v % across == across - 1 && !halved)
                        store_first_f32((float *)at, value, strip->lanes);
                    else
                        *(vf32 *)at = value;
                }
                if (halved) {
                    const veight few = between_eight(last[0], lower_eight(limits[0]), lower_eight(limits[1]));
                    store_half_f32((float *)(to[0] + vectors * next), widened_eight(stride == 2 ? eight_in_order(few) : few), strip->lanes);
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
            if (halved) {
#pragma GCC unroll 8
                for (int i = 0; i + 1 < kept; i++)
                    last[i] = last[i + 1];
                last[kept - 1] = lower_eight(bias[0]);
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
        strip_of(strip, limits, x, y, high, taps, stride, across, planes, how, ELEMENT_##type, 0); \
    }
#define HALVED_STRIPS(name, taps, stride, across, how) \
    static __attribute__((noinline)) void name(const PlaneStrip *strip, const vf32 *limits, const char *x, char *y) \
    { \
        strip_of(strip, limits, x, y, taps, taps, stride, across, 1, how, FLOAT32, 1); \
    }
#define STRIPS_OF_3(type, stride) \
    STRIPS(strips_3_##stride, type, 3, stride, 1, 2, LOADED) STRIPS(strips_3_##stride##_2, type, 3, stride, 2, 1, LOADED) \
    STRIPS(strips_3_##stride##_3, type, 3, stride, 3, 1, LOADED) STRIPS(strips_3_##stride##_4, type, 3, stride, 4, 1, LOADED)
#define TABLE_OF_3(type, stride) strips_3_##stride##_##type, strips_3_##stride##_2_##type, strips_3_##stride##_3_##type, strips_3_##stride##_4_##type
#define WIDER_STRIPS(taps) STRIPS(strips_##taps##_1, f32, taps, 1, 1, 2, LOADED) STRIPS(picked_strips_##taps##_1, f32, taps, 1, 1, 2, PICKED)
#define TABLE_OF_WIDER(taps) strips_##taps##_1_f32, [PICKED_STRIPS] = picked_strips_##taps##_1_f32
#define EVEN_STRIPS(taps) \
    STRIPS(strips_##taps##_2, f32, taps, 2, 1, 2, LOADED) STRIPS(narrow_strips_##taps##_2, f32, taps, 2, 1, 2, NARROW)
#define TABLE_OF_EVEN(taps) \
    [taps] = {[2] = {strips_##taps##_2_f32, [NARROW_STRIPS] = narrow_strips_##taps##_2_f32}}
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
WIDER_STRIPS(5)
STRIPS(strips_5_2, f32, 5, 2, 1, 2, LOADED)
STRIPS(strips_5_2_2, f32, 5, 2, 2, 1, LOADED)
WIDER_STRIPS(7)
EVEN_STRIPS(2)
MIXED_STRIPS(f32)
HALVED_STRIPS(halved_strips_3_1_2, 3, 1, 2, LOADED)
HALVED_STRIPS(halved_strips_3_1_3, 3, 1, 3, LOADED)
HALVED_STRIPS(halved_strips_3_1_4, 3, 1, 4, LOADED)
HALVED_STRIPS(halved_strips_3_2_2, 3, 2, 2, LOADED)
HALVED_STRIPS(halved_strips_3_2_3, 3, 2, 3, LOADED)
HALVED_STRIPS(halved_strips_3_2_4, 3, 2, 4, LOADED)
HALVED_STRIPS(halved_strips_5_1, 5, 1, 2, SHIFTED)
HALVED_STRIPS(halved_strips_5_2, 5, 2, 2, LOADED)
HALVED_STRIPS(halved_strips_7, 7, 1, 2, SHIFTED)
#endif
/* By element, taps and stride, the same down and across; and vectors side by side, less one, or the kind. */
static const PlaneStrips plane_strips[4][STRIP_TAPS + 1][3][STRIP_KINDS] = {
#if VECTOR_BYTES == 64
    [FLOAT32] = {
        TABLE_OF_EVEN(2),
        TABLE_OF_EVEN(4),
        [3] = {
            [1] = {TABLE_OF_3(f32, 1), [NARROW_STRIPS] = narrow_strips_3_1_f32},
            [2] = {TABLE_OF_3(f32, 2), [NARROW_STRIPS] = narrow_strips_3_2_f32}},
        [5] = {
            [1] = {TABLE_OF_WIDER(5), [SHIFTED_STRIPS] = shifted_strips_5_f32},
            [2] = {strips_5_2_f32, strips_5_2_2_f32, [NARROW_STRIPS] = narrow_strips_5_2_f32}},
        [7] = {[1] = {TABLE_OF_WIDER(7), [SHIFTED_STRIPS] = shifted_strips_7_f32}}},
    [FLOAT16] = {[3] = {
        [1] = {TABLE_OF_3(f16, 1)},
        [2] = {TABLE_OF_3(f16, 2), [NARROW_STRIPS] = narrow_strips_3_2_f16, [PICKED_STRIPS] = picked_strips_3_2_f16}}},
    [BFLOAT16] = {[3] = {[1] = {TABLE_OF_3(bf16, 1)}, [2] = {TABLE_OF_3(bf16, 2), [NARROW_STRIPS] = narrow_strips_3_2_bf16}}},
#endif
};

/* float32, whose last vector is half of one: by taps, stride, and vectors side by side, less one. */
static const PlaneStrips halved_strips[STRIP_TAPS + 1][3][STRIPS_ACROSS] = {
#if VECTOR_BYTES == 64
    [3] = {
        [1] = {NULL, halved_strips_3_1_2, halved_strips_3_1_3, halved_strips_3_1_4},
        [2] = {NULL, halved_strips_3_2_2, halved_strips_3_2_3, halved_strips_3_2_4}},
    [5] = {[1] = {NULL, halved_strips_5_1}, [2] = {NULL, halved_strips_5_2}}, [7] = {[1] = {NULL, halved_strips_7}},
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

#endif

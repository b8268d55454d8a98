/* Bytes one after the other, each as often as it has filters: what repeats channels of pixels side by side (depthwise_repeated.pxi). */
#ifndef ND4JLIKE_REPEAT_H
#define ND4JLIKE_REPEAT_H

#include <stdint.h>
#include <string.h>

/* Of so many bytes at a time, up to as often, a shuffle makes each vector of the result. */
enum { REPEATED = 16 };

typedef uint8_t sixteen __attribute__((vector_size(REPEATED)));

/* `rows` rows of `runs` runs of `count` bytes, all of which lie one after the other in `target`. */
static __attribute__((noinline, unused)) void repeat_bytes(
    uint8_t *target, const uint8_t *source, ptrdiff_t rows, ptrdiff_t row, ptrdiff_t runs, ptrdiff_t run, ptrdiff_t count, int times)
{
    sixteen order[REPEATED], bytes;
    const int shuffled = times <= REPEATED;
    for (int i = 0; shuffled && i < REPEATED * times; i++)
        ((uint8_t *)order)[i] = (uint8_t)(i / times);
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < runs; j++) {
            const uint8_t *from = source + i * row + j * run, *end = from + count;
            for (; shuffled && end - from >= REPEATED; from += REPEATED) {
                memcpy(&bytes, from, REPEATED);
#pragma GCC unroll 1
                for (int k = 0; k < times; k++, target += REPEATED) {
                    const sixteen repeated = __builtin_shuffle(bytes, order[k]);
                    memcpy(target, &repeated, REPEATED);
                }
            }
            for (; from < end; from++)
                for (int k = 0; k < times; k++)
                    *target++ = *from;
        }
}

#endif

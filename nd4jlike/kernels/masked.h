/* Runs and fill after them, masked by hand (ADR 0009). */
#ifndef ND4JLIKE_MASKED_H
#define ND4JLIKE_MASKED_H

#include "tiles.h"

/* What copy_filled does, of `count` runs, where so many bytes may be read of each as whole vectors take, or `room`: without masks of the processor. */
WORD void copy_wide(char *target, ptrdiff_t column, const char *source, ptrdiff_t row, ptrdiff_t count, ptrdiff_t bytes, const char *fill, int room,
                    ptrdiff_t ahead)
{
#if VECTOR_BYTES < 64
    char masks[LINE], cells[LINE];
    for (int i = 0; i < LINE; i++) {
        masks[i] = i < bytes ? -1 : 0;
        cells[i] = i < bytes ? 0 : fill[i];
    }
#define MASKED(kind, i)                                                                   \
    {                                                                                     \
        kind value;                                                                       \
        memcpy(&value, source + (i) * sizeof(kind), sizeof(kind));                        \
        value = (value & keep[i]) | rest[i];                                              \
        memcpy(target + (i) * sizeof(kind), &value, sizeof(kind));                        \
    }
#define MASK_ALL(kind)                                                                    \
    {                                                                                     \
        kind keep[LINE / sizeof(kind)], rest[LINE / sizeof(kind)];                        \
        memcpy(keep, masks, LINE), memcpy(rest, cells, LINE);                             \
        for (ptrdiff_t k = 0; k < count; k++, source += row, target += column) {          \
            if (ahead)                                                                    \
                touch(source + ahead * row), touch(target + ahead * column);              \
            _Pragma("GCC unroll 4") for (int i = 0; i < (int)(room / sizeof(kind)); i++)  \
            {                                                                             \
                if (i * (int)sizeof(kind) < bytes)                                        \
                    MASKED(kind, i)                                                       \
                else                                                                      \
                    memcpy(target + i * sizeof(kind), &rest[i], sizeof(kind));            \
            }                                                                             \
        }                                                                                 \
    }
    if (room < PIECE)
        MASK_ALL(uint64_t)
    else if (room < VECTOR_BYTES)
        MASK_ALL(vpiece)
    else
        MASK_ALL(vbytes)
#undef MASKED
#undef MASK_ALL
#else
    (void)target, (void)column, (void)source, (void)row, (void)count, (void)bytes, (void)fill, (void)room, (void)ahead;
#endif
}

#endif

/* What this machine runs, by the names of ND4JLIKE_ISA (ADR 0004). __builtin_cpu_supports also asks whether the operating system saves the registers. */
#ifndef ND4JLIKE_CPU_H
#define ND4JLIKE_CPU_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* What the environment asks for, or nothing. What os.environ sets is set here too, and found in a twentieth of the time. */
static inline const char *forced_isa(void)
{
    const char *forced = getenv("ND4JLIKE_ISA");
    return forced ? forced : "";
}

typedef struct {
    long ways, bytes;
    int amd; /* Whether AMD describes it. */
} Cache;

/* The data or unified cache of a level, as the processor describes it: what one core reaches, where sysconf may add up those of a whole machine
 * (an AMD EPYC with 32 MB for each core: 335 MB). 0 where it does not tell. */
static inline Cache described(unsigned level)
{
    Cache cache = {0, 0, 0};
#if defined(__x86_64__)
    unsigned a, b, c, d, leaf = 4;
    if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0 || (a & 31) == 0)
        leaf = __get_cpuid(0x80000001, &a, &b, &c, &d) && c >> 22 & 1 ? 0x8000001D : 0; /* TopologyExtensions */
    for (unsigned i = 0; leaf && i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31) != 0; i++)
        if (cache.ways == 0 && (a >> 5 & 7) == level && ((a & 31) == 1 || (a & 31) == 3)) {
            cache.ways = (long)(b >> 22) + 1;
            cache.bytes = cache.ways * (long)((b >> 12 & 1023) + 1) * (long)((b & 4095) + 1) * ((long)c + 1); /* Partitions, bytes of a line, sets. */
            cache.amd = leaf != 4;
        }
#endif
    (void)level;
    return cache;
}

/* Of the first level; 32 KiB in 8 ways where nobody tells. */
static inline Cache first_level(void)
{
    const Cache cache = described(1);
    return cache.ways ? cache : (Cache){8, 1 << 15, 0};
}

/* Bytes of the cache of a level beyond the first, and its name for sysconf; at least so many. A processor is asked once: in a virtual machine each time takes a
 * microsecond and more. */
static inline long cache_bytes(unsigned level, int name, long least)
{
    static long known[4];
    if (known[level] == 0) {
        const Cache cache = described(level);
        const long told = cache.ways ? cache.bytes : sysconf(name);
        known[level] = told > least ? told : least;
    }
    return known[level];
}

static inline long second_level_bytes(void) { return cache_bytes(2, _SC_LEVEL2_CACHE_SIZE, 1 << 18); }

static inline long last_level_bytes(void) { return cache_bytes(3, _SC_LEVEL3_CACHE_SIZE, 1 << 22); }

/* Ask for large pages under memory that nobody has touched yet: each is one page fault instead of 512. A wish: without them all is as before. */
static inline void want_large_pages(char *memory, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    const uintptr_t page = 4096, first = ((uintptr_t)memory + page - 1) & ~(page - 1);
    (void)madvise((void *)first, (uintptr_t)memory + bytes - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

#if defined(__x86_64__)

enum { CPU_LEVELS = 4 };

/* Slowest first, as the rows of setup.py. */
static const char *const cpu_levels[CPU_LEVELS] = {"baseline", "avx2", "avx512", "avx512_vnni"};

static inline int cpu_supports(int level)
{
    int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
        && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe");
    int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    switch (level) {
    case 0: return 1;
    case 1: return v3;
    case 2: return v4;
    default: return v4 && __builtin_cpu_supports("avx512vnni");
    }
}

#else

enum { CPU_LEVELS = 1 };

static const char *const cpu_levels[CPU_LEVELS] = {"baseline"};

static inline int cpu_supports(int level) { return level == 0; }

#endif

#endif

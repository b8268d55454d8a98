/* What this machine can do at most, for the shares that bench_depthwise.py prints; compiled when it runs. One thread. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif

typedef float floats __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t words __attribute__((vector_size(BYTES), aligned(4), may_alias));

enum { CHAINS = 12, TURNS = 20000, TRIES = 20 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static words dot_of_pairs(words sum, words a, words b)
{
#if BYTES == 64 && defined(__AVX512VNNI__)
    return (words)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif BYTES == 64 && defined(__AVX512BW__)
    return sum + (words)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif BYTES == 32
    return sum + (words)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    return sum + (words)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return sum + a * b;
#endif
}

static words dot(words sum, words a, words b)
{
#if BYTES == 64 && defined(__AVX512VNNI__)
    return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#else
    return dot_of_pairs(sum, a, b);
#endif
}

#if BYTES == 64 && defined(__AVX512VNNI__)
enum { PRODUCTS = 4, PRODUCTS_OF_PAIRS = 2 };
#elif defined(__x86_64__)
enum { PRODUCTS = 2, PRODUCTS_OF_PAIRS = 2 };
#else
enum { PRODUCTS = 1, PRODUCTS_OF_PAIRS = 1 };
#endif

/* Multiplications and additions a second, in billions. One kind of sums a function: two do not fit 16 registers. `a` is anew for each product, else that is
 * computed once for all; and the order of sums is ours. */
#define PEAK(name, vector, products, sum_of) \
    static double peak_of_##name(void) \
    { \
        double best = 0; \
        for (int try = 0; try < TRIES; try++) { \
            vector sums[CHAINS] = {0}, a = {0}, b = {0}; \
            double begin = now(), rate; \
            __asm__ volatile("" : "+x"(a), "+x"(b)); \
            for (int turn = 0; turn < TURNS; turn++) { \
                _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) \
                { \
                    sums[i] = sum_of(sums[i], a, b); \
                    __asm__ volatile("" : "+x"(sums[i]), "+x"(a)); \
                } \
            } \
            rate = 2.0 * CHAINS * TURNS * (BYTES / 4) * (products) / (now() - begin) * 1e-9; \
            if (rate > best) \
                best = rate; \
        } \
        return best; \
    }

static floats add_product(floats sum, floats a, floats b) { return sum + a * b; }
PEAK(floats, floats, 1, add_product)
PEAK(pairs, words, PRODUCTS_OF_PAIRS, dot_of_pairs)
PEAK(bytes, words, PRODUCTS, dot)

/* Of float32 (4), of int16 (2), or of bytes (1). */
double peak(int itemsize) { return itemsize == 1 ? peak_of_bytes() : itemsize == 2 ? peak_of_pairs() : peak_of_floats(); }

/* Seconds of reading one run of bytes and writing another, lengths rounded down to whole vectors; the least of `tries`, each of `repeats`. */
double touch(const char *x, size_t read, char *y, size_t written, int repeats, int tries)
{
    double best = 1e9;
    for (; tries > 0; tries--) {
        double begin = now(), seconds;
        for (int repeat = 0; repeat < repeats; repeat++) {
            words a = {0}, b = {0}, c = {0}, d = {0};
            for (size_t i = 0; i + 4 * BYTES <= read; i += 4 * BYTES) {
                a ^= *(const words *)(x + i);
                b ^= *(const words *)(x + i + BYTES);
                c ^= *(const words *)(x + i + 2 * BYTES);
                d ^= *(const words *)(x + i + 3 * BYTES);
            }
            a ^= b ^ c ^ d;
            for (size_t i = 0; i + BYTES <= written; i += BYTES)
                *(words *)(y + i) = a;
            __asm__ volatile("" : : : "memory");
        }
        seconds = (now() - begin) / repeats;
        if (seconds < best)
            best = seconds;
    }
    return best;
}

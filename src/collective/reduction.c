// SPDX-License-Identifier: Apache-2.0
// Vectors are reduced in blocks that stay in the first cache. Each loop is compiled twice on
// x86-64, for every machine and for those with AVX2 and F16C; which is used is chosen once, at run
// time. Floats are compared so that a NaN of any rank comes through; integers wrap.
#include "collective/reduction.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "collective/descriptor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define WIDE __attribute__((target("avx2,f16c")))
#endif
#define INLINE static inline __attribute__((always_inline))

#define BLOCK 1024 // elements

typedef void combine_function(void *out, const void *left, const void *right, size_t count);
typedef void accumulate_function(void *out, const void *right, size_t count);
typedef void divide_function(void *out, int divisor, size_t count);
typedef void widen_function(float *out, const void *source, size_t count);
typedef void narrow_function(void *out, const float *source, size_t count);

enum accumulator { FLOAT, DOUBLE, INT32, INT64, ACCUMULATORS };
enum operation { SUM, MIN, MAX, OPERATIONS };

struct kernels {
    combine_function *combine[ACCUMULATORS][OPERATIONS];
    accumulate_function *accumulate[ACCUMULATORS][OPERATIONS];
    divide_function *divide[ACCUMULATORS];
    widen_function *widen_half, *widen_brain;
    narrow_function *narrow_half, *narrow_brain;
};

// ---- half types

static float widen_half_bits(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7FFF, bits;
    if (magnitude >= 0x7C00) {
        bits = 0x7F800000 | (magnitude & 0x3FF) << 13;
    } else if (magnitude >= 0x400) {
        bits = (magnitude << 13) + (112u << 23);
    } else {
        float small = (float)magnitude * 0x1p-24f;
        memcpy(&bits, &small, sizeof(bits));
    }
    bits |= sign;
    float number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static uint16_t narrow_half_bits(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (bits >> 13 & 0x3FF));
    if (bits >= 0x477FF000) // rounds beyond the largest
        return sign | 0x7C00;
    if (bits < 0x38800000) { // subnormal: the sum rounds to multiples of 2^-24
        float magnitude;
        memcpy(&magnitude, &bits, sizeof(magnitude));
        magnitude += 0.5f;
        memcpy(&bits, &magnitude, sizeof(bits));
        return (uint16_t)(sign | (bits - 0x3F000000));
    }
    bits += 0xFFF + (bits >> 13 & 1) - (112u << 23);
    return (uint16_t)(sign | bits >> 13);
}

INLINE void widen_brain(float *restrict out, const void *source, size_t count)
{
    const uint16_t *brains = source;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)brains[i] << 16;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

INLINE void narrow_brain(void *out, const float *restrict source, size_t count)
{
    uint16_t *brains = out;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &source[i], sizeof(bits));
        uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        brains[i] = (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? bits >> 16 | 0x40 : rounded);
    }
}

static void widen_half_plain(float *out, const void *source, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = widen_half_bits(((const uint16_t *)source)[i]);
}

static void narrow_half_plain(void *out, const float *source, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint16_t *)out)[i] = narrow_half_bits(source[i]);
}

// ---- loops

#define SUM_OF(a, b) ((a) + (b))
#define MIN_OF(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define MAX_OF(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define LESS_OF(a, b) ((b) < (a) ? (b) : (a))
#define MORE_OF(a, b) ((b) > (a) ? (b) : (a))

#define LOOPS(name, type, expression)                                                              \
    INLINE void combine_##name(void *out, const void *left, const void *right, size_t count)       \
    {                                                                                              \
        type *restrict to = out;                                                                   \
        const type *restrict from = left, *restrict other = right;                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = expression(from[i], other[i]);                                                 \
    }                                                                                              \
    INLINE void accumulate_##name(void *out, const void *right, size_t count)                      \
    {                                                                                              \
        type *restrict to = out;                                                                   \
        const type *restrict other = right;                                                        \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = expression(to[i], other[i]);                                                   \
    }

LOOPS(sum_float, float, SUM_OF)
LOOPS(min_float, float, MIN_OF)
LOOPS(max_float, float, MAX_OF)
LOOPS(sum_double, double, SUM_OF)
LOOPS(min_double, double, MIN_OF)
LOOPS(max_double, double, MAX_OF)
LOOPS(sum_int32, uint32_t, SUM_OF)
LOOPS(min_int32, int32_t, LESS_OF)
LOOPS(max_int32, int32_t, MORE_OF)
LOOPS(sum_int64, uint64_t, SUM_OF)
LOOPS(min_int64, int64_t, LESS_OF)
LOOPS(max_int64, int64_t, MORE_OF)

#define DIVISION(name, type)                                                                       \
    static void divide_##name(void *out, int divisor, size_t count)                                \
    {                                                                                              \
        type *numbers = out;                                                                       \
        for (size_t i = 0; i < count; i++)                                                         \
            numbers[i] /= (type)divisor;                                                           \
    }

DIVISION(float, float)
DIVISION(double, double)
DIVISION(int32, int32_t)
DIVISION(int64, int64_t)

// ---- the two ways

#define WAY(way, target, name)                                                                     \
    target static void combine_##name##_##way(void *out, const void *left, const void *right,      \
                                              size_t count)                                        \
    {                                                                                              \
        combine_##name(out, left, right, count);                                                   \
    }                                                                                              \
    target static void accumulate_##name##_##way(void *out, const void *right, size_t count)       \
    {                                                                                              \
        accumulate_##name(out, right, count);                                                      \
    }

#define ALL_WAYS(way, target)                                                                      \
    WAY(way, target, sum_float)                                                                    \
    WAY(way, target, min_float)                                                                    \
    WAY(way, target, max_float)                                                                    \
    WAY(way, target, sum_double)                                                                   \
    WAY(way, target, min_double)                                                                   \
    WAY(way, target, max_double)                                                                   \
    WAY(way, target, sum_int32)                                                                    \
    WAY(way, target, min_int32)                                                                    \
    WAY(way, target, max_int32)                                                                    \
    WAY(way, target, sum_int64)                                                                    \
    WAY(way, target, min_int64)                                                                    \
    WAY(way, target, max_int64)                                                                    \
    target static void widen_brain_##way(float *out, const void *source, size_t count)             \
    {                                                                                              \
        widen_brain(out, source, count);                                                           \
    }                                                                                              \
    target static void narrow_brain_##way(void *out, const float *source, size_t count)            \
    {                                                                                              \
        narrow_brain(out, source, count);                                                          \
    }

#define ROW(verb, way, type)                                                                       \
    {                                                                                              \
        verb##_sum_##type##_##way, verb##_min_##type##_##way, verb##_max_##type##_##way            \
    }

#define TABLE(verb, way)                                                                           \
    {                                                                                              \
        ROW(verb, way, float), ROW(verb, way, double), ROW(verb, way, int32),                      \
            ROW(verb, way, int64)                                                                  \
    }

#define KERNELS(way)                                                                               \
    {                                                                                              \
        .combine = TABLE(combine, way), .accumulate = TABLE(accumulate, way),                      \
        .divide = {divide_float, divide_double, divide_int32, divide_int64},                       \
        .widen_half = widen_half_##way, .widen_brain = widen_brain_##way,                          \
        .narrow_half = narrow_half_##way, .narrow_brain = narrow_brain_##way                       \
    }

ALL_WAYS(plain, )
static const struct kernels plain = KERNELS(plain);
static const struct kernels *chosen = &plain;

#if defined(__x86_64__)

ALL_WAYS(wide, WIDE)

WIDE static void widen_half_wide(float *out, const void *source, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                      (const void *)((const uint16_t *)source + i))));
    widen_half_plain(out + i, (const uint16_t *)source + i, count - i);
}

WIDE static void narrow_half_wide(void *out, const float *source, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *)((uint16_t *)out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
    narrow_half_plain((uint16_t *)out + i, source + i, count - i);
}

static const struct kernels wide = KERNELS(wide);

static void choose(void)
{
    unsigned eax, ebx, ecx, edx;
    // F16C came before AVX2, and its registers need no more of the kernel.
    if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) &&
        (ecx & bit_F16C))
        chosen = &wide;
}

#else

static void choose(void)
{
}

#endif

// ---- blocks

static enum accumulator accumulator_of(enum tfos_dtype dtype)
{
    switch ((int)dtype) {
    case TFOS_DTYPE_FLOAT64:
        return DOUBLE;
    case TFOS_DTYPE_INT32:
        return INT32;
    case TFOS_DTYPE_INT64:
        return INT64;
    default:
        return FLOAT;
    }
}

static enum operation operation_of(enum tfos_reduction kind)
{
    return kind == TFOS_REDUCE_MIN ? MIN : kind == TFOS_REDUCE_MAX ? MAX : SUM;
}

static void reduce_native(const struct kernels *kernels,
                          const struct tfos__collective_reduction *reduction, const void **sources,
                          int source_count, size_t count, size_t size, void *out)
{
    enum accumulator accumulator = accumulator_of(reduction->dtype);
    enum operation operation = operation_of(reduction->kind);
    if (source_count == 1)
        memcpy(out, sources[0], count * size);
    else
        kernels->combine[accumulator][operation](out, sources[0], sources[1], count);
    for (int i = 2; i < source_count; i++)
        kernels->accumulate[accumulator][operation](out, sources[i], count);
}

static void reduce_half(const struct kernels *kernels,
                        const struct tfos__collective_reduction *reduction, const void **sources,
                        int source_count, size_t count, float *sums)
{
    widen_function *widen =
        reduction->dtype == TFOS_DTYPE_FLOAT16 ? kernels->widen_half : kernels->widen_brain;
    enum operation operation = operation_of(reduction->kind);
    float numbers[BLOCK];
    widen(sums, sources[0], count);
    for (int i = 1; i < source_count; i++) {
        widen(numbers, sources[i], count);
        kernels->accumulate[FLOAT][operation](sums, numbers, count);
    }
}

/// Reduces a block. `out` is none of the sources.
static void reduce_block(const struct kernels *kernels,
                         const struct tfos__collective_reduction *reduction, const void **sources,
                         int source_count, size_t count, bool is_last, void *out)
{
    enum tfos_dtype dtype = reduction->dtype;
    bool is_half = dtype == TFOS_DTYPE_FLOAT16 || dtype == TFOS_DTYPE_BFLOAT16;
    float sums[BLOCK];
    void *result = is_half ? sums : out;
    if (is_half)
        reduce_half(kernels, reduction, sources, source_count, count, sums);
    else
        reduce_native(kernels, reduction, sources, source_count, count,
                      tfos__collective_element_size(dtype), out);
    if (is_last && reduction->kind == TFOS_REDUCE_MEAN)
        kernels->divide[accumulator_of(dtype)](result, reduction->rank_count, count);
    if (dtype == TFOS_DTYPE_FLOAT16)
        kernels->narrow_half(out, sums, count);
    else if (dtype == TFOS_DTYPE_BFLOAT16)
        kernels->narrow_brain(out, sums, count);
}

static void reduce(const struct kernels *kernels,
                   const struct tfos__collective_reduction *reduction, const void *const *sources,
                   int source_count, int64_t count, bool is_last, void *out, void *copy)
{
    size_t size = tfos__collective_element_size(reduction->dtype);
    bool is_source = false;
    for (int i = 0; i < source_count; i++)
        is_source |= sources[i] == out;
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        const void *blocks[TFOS_COLLECTIVE_MAX_RANKS];
        double block[BLOCK];
        size_t offset = (size_t)begin * size;
        size_t block_count = count - begin < BLOCK ? (size_t)(count - begin) : BLOCK;
        unsigned char *to = (unsigned char *)out + offset;
        void *result = is_source ? (void *)block : to;
        for (int i = 0; i < source_count; i++)
            blocks[i] = (const unsigned char *)sources[i] + offset;
        reduce_block(kernels, reduction, blocks, source_count, block_count, is_last, result);
        if (is_source)
            memcpy(to, block, block_count * size);
        if (copy)
            memcpy((unsigned char *)copy + offset, to, block_count * size);
    }
}

void tfos__collective_reduce(const struct tfos__collective_reduction *reduction,
                             const void *const *sources, int source_count, int64_t count,
                             bool is_last, void *out, void *copy)
{
    static pthread_once_t is_chosen = PTHREAD_ONCE_INIT;
    pthread_once(&is_chosen, choose);
    reduce(chosen, reduction, sources, source_count, count, is_last, out, copy);
}

void tfos__collective_reduce_plainly(const struct tfos__collective_reduction *reduction,
                                     const void *const *sources, int source_count, int64_t count,
                                     bool is_last, void *out, void *copy)
{
    reduce(&plain, reduction, sources, source_count, count, is_last, out, copy);
}

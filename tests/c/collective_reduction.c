// SPDX-License-Identifier: Apache-2.0
// The loops of reductions: both ways give the same bits, and half types are rounded as IEEE 754 has
// it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/reduction.h"
#include "harness.h"

#define COUNT 5003

static const enum tfos_dtype dtypes[] = {TFOS_DTYPE_FLOAT16, TFOS_DTYPE_BFLOAT16,
                                         TFOS_DTYPE_FLOAT32, TFOS_DTYPE_FLOAT64,
                                         TFOS_DTYPE_INT32,   TFOS_DTYPE_INT64};

static void fill(unsigned char *data, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (unsigned char)(seed >> 24);
    }
}

/// Whether the bits are a NaN's, whose payload the machine's instructions may choose.
static bool is_nan(const unsigned char *cell, enum tfos_dtype dtype)
{
    uint16_t half;
    memcpy(&half, cell, sizeof(half));
    if (dtype == TFOS_DTYPE_FLOAT16)
        return (half & 0x7FFF) > 0x7C00;
    if (dtype == TFOS_DTYPE_BFLOAT16)
        return (half & 0x7FFF) > 0x7F80;
    return false;
}

static void both_ways_give_the_same_bits(void **state)
{
    static unsigned char inputs[3][COUNT * 8], plain[COUNT * 8], wide[COUNT * 8], copy[COUNT * 8];
    (void)state;
    for (int i = 0; i < 3; i++)
        fill(inputs[i], sizeof(inputs[i]), (uint32_t)i + 1);
    const void *sources[] = {inputs[0], inputs[1], inputs[2]};
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
        for (enum tfos_reduction kind = TFOS_REDUCE_SUM; kind <= TFOS_REDUCE_MAX; kind++)
            for (int count = 1; count <= 3; count++) {
                const struct tfos__collective_reduction reduction = {dtypes[d], kind, 3};
                size_t size = d < 2 ? 2 : d == 2 || d == 4 ? 4 : 8;
                tfos__collective_reduce_plainly(&reduction, sources, count, COUNT, true, plain,
                                                NULL);
                tfos__collective_reduce(&reduction, sources, count, COUNT, true, wide, copy);
                assert_memory_equal(wide, copy, COUNT * size);
                for (size_t i = 0; i < COUNT; i++)
                    if (!is_nan(plain + i * size, dtypes[d]))
                        assert_memory_equal(plain + i * size, wide + i * size, size);
            }
}

/// Every half, widened and rounded again, is itself.
static void halves_keep_their_value(void **state)
{
    static uint16_t halves[65536], again[65536];
    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        const struct tfos__collective_reduction reduction = {dtypes[dtype], TFOS_REDUCE_SUM, 1};
        const void *source = halves;
        for (int i = 0; i < 65536; i++)
            halves[i] = (uint16_t)i;
        tfos__collective_reduce_plainly(&reduction, &source, 1, 65536, false, again, NULL);
        for (int i = 0; i < 65536; i++)
            if (!is_nan((unsigned char *)&halves[i], dtypes[dtype]))
                assert_int_equal(again[i], i);
            else
                assert_true(is_nan((unsigned char *)&again[i], dtypes[dtype]));
    }
}

static void check_sum(enum tfos_dtype dtype, uint16_t left, uint16_t right, uint16_t expected)
{
    const struct tfos__collective_reduction reduction = {dtype, TFOS_REDUCE_SUM, 2};
    const void *sources[] = {&left, &right};
    uint16_t plain, wide;
    tfos__collective_reduce_plainly(&reduction, sources, 2, 1, true, &plain, NULL);
    tfos__collective_reduce(&reduction, sources, 2, 1, true, &wide, NULL);
    assert_int_equal(plain, expected);
    assert_int_equal(wide, expected);
}

static void halves_are_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    check_sum(TFOS_DTYPE_FLOAT16, 0x6800, 0x3C00, 0x6800);  // 2048 + 1: a tie, to even
    check_sum(TFOS_DTYPE_FLOAT16, 0x6801, 0x3C00, 0x6802);  // 2050 + 1: a tie, to even
    check_sum(TFOS_DTYPE_FLOAT16, 0x7BFF, 0x4C00, 0x7C00);  // 65504 + 16: infinity
    check_sum(TFOS_DTYPE_FLOAT16, 0x7BFF, 0x4BFF, 0x7BFF);  // less
    check_sum(TFOS_DTYPE_FLOAT16, 0x0001, 0x0001, 0x0002);  // the smallest
    check_sum(TFOS_DTYPE_FLOAT16, 0x03FF, 0x0001, 0x0400);  // becomes normal
    check_sum(TFOS_DTYPE_BFLOAT16, 0x4380, 0x3F80, 0x4380); // 256 + 1: a tie, to even
    check_sum(TFOS_DTYPE_BFLOAT16, 0x4381, 0x3F80, 0x4382); // 258 + 1: a tie, to even
    check_sum(TFOS_DTYPE_BFLOAT16, 0x7F7F, 0x7F7F, 0x7F80); // infinity
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(both_ways_give_the_same_bits),
    cmocka_unit_test(halves_keep_their_value),
    cmocka_unit_test(halves_are_rounded_to_the_nearest_even),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// The copies into a ring, in each of their ways: those of a writer that takes the cache for shared,
// of one that does not, and of one that tries.
#include <stdlib.h>
#include <string.h>

#include "feed/copier.h"
#include "harness.h"

#define MOST (512 << 10)
#define GUARD 64

static const size_t sizes[] = {0,         1,
                               63,        64,
                               65,        4095,
                               4096,      4097,
                               65536,     131071,
                               128 << 10, (128 << 10) + 1,
                               200003,    (256 << 10) - 1,
                               300000,    MOST - 1,
                               MOST};

static void check_copies(struct tfos__feed_copier copier)
{
    uint8_t *source = malloc(MOST + 8), *target = aligned_alloc(64, MOST + GUARD);

    assert_non_null(source);
    assert_non_null(target);
    for (size_t i = 0; i < MOST + 8; i++)
        source[i] = (uint8_t)(i * 31 + i / 251);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t shift = 0; shift < 8; shift += 3) {
            memset(target, 0xee, MOST + GUARD);
            tfos__feed_copy(&copier, target, source + shift, sizes[i]);
            assert_memory_equal(target, source + shift, sizes[i]);
            for (size_t k = 0; k < GUARD; k++)
                assert_int_equal(target[sizes[i] + k], 0xee);
        }
    free(target);
    free(source);
}

static void copies_when_the_cache_is_shared(void **state)
{
    (void)state;
    check_copies((struct tfos__feed_copier){.large_count = 1, .votes = 100});
}

static void copies_when_it_is_not(void **state)
{
    (void)state;
    check_copies((struct tfos__feed_copier){.large_count = 1, .votes = -100});
}

// One of the large copies is a trial, another one each time.
static void copies_while_it_tries(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i += 5)
        check_copies((struct tfos__feed_copier){.large_count = i});
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(copies_when_the_cache_is_shared),
    cmocka_unit_test(copies_when_it_is_not),
    cmocka_unit_test(copies_while_it_tries),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Runs of varints of all lengths, by either way of decoding, each beside its bytes' own reading.
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "record/wire.h"

#define LIMIT 70 // values

static size_t encode(uint8_t *at, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        at[size++] = (uint8_t)(value | 0x80);
    at[size++] = (uint8_t)value;
    return size;
}

typedef bool decode(struct tfos__record_wire *wire, uint64_t *values, size_t limit, size_t *count);

static decode *const ways[] = {tfos__record_wire_read_varints,
                               tfos__record_wire_read_varints_plain};

static void check(const uint8_t *bytes, size_t size, const uint64_t *values, size_t count)
{
    for (size_t way = 0; way < 2; way++)
        for (size_t limit = 1; limit <= count; limit += limit < 20 ? 1 : 13) {
            uint64_t *decoded =
                malloc(limit * sizeof(*decoded)); // so that a sanitizer sees its end
            struct tfos__record_wire wire = {bytes, bytes + size};
            size_t done = 0;
            assert_true(ways[way](&wire, decoded, limit, &done));
            assert_int_equal(done, limit);
            assert_memory_equal(decoded, values, limit * sizeof(*values));
            assert_true(limit < count || wire.at == wire.end);
            free(decoded);
        }
    assert_int_equal(tfos__record_wire_count_varints((struct tfos_view){bytes, size}), count);
}

/// All ways in which lengths of one to three bytes can follow each other, and longer ones among
/// them.
static void lengths_of_all_kinds(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 4000; round++) {
        uint64_t values[LIMIT];
        uint8_t bytes[LIMIT * 10], *exact;
        size_t size = 0, count = 1 + (size_t)round % LIMIT;
        for (size_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            unsigned bits = random >> 24 < 250 ? (random >> 16) % 22 : (random >> 16) % 65;
            uint64_t mixed = random * UINT64_C(0x9E3779B97F4A7C15);
            values[i] = bits == 0 ? 0 : mixed >> (64 - bits);
            size += encode(bytes + size, values[i]);
        }
        exact = malloc(size);
        memcpy(exact, bytes, size);
        check(exact, size, values, count);
        free(exact);
    }
}

static void what_is_no_varint(void **state)
{
    (void)state;
    uint64_t values[LIMIT];
    size_t count;
    uint8_t bytes[40];
    memset(bytes, 1, sizeof(bytes));
    for (size_t way = 0; way < 2; way++) {
        memset(bytes + 9, 0xFF, 11); // eleven bytes that continue
        struct tfos__record_wire wire = {bytes, bytes + sizeof(bytes)};
        assert_false(ways[way](&wire, values, LIMIT, &count));
        memset(bytes + 9, 1, 11);
        bytes[39] = 0x81; // and then nothing
        wire = (struct tfos__record_wire){bytes, bytes + sizeof(bytes)};
        assert_false(ways[way](&wire, values, LIMIT, &count));
        bytes[39] = 1;
        wire = (struct tfos__record_wire){bytes, bytes};
        assert_true(ways[way](&wire, values, LIMIT, &count));
        assert_int_equal(count, 0);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(lengths_of_all_kinds),
    cmocka_unit_test(what_is_no_varint),
};

TEST_MAIN(cases)

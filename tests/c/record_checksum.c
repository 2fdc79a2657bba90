// SPDX-License-Identifier: Apache-2.0
// CRC-32C by known values, one way of computing it against the other, and TFRecord frames.
#include <string.h>
#include <tfos/record.h>

#include "harness.h"
#include "record/crc32c.h"

struct vector {
    const char *name;
    uint8_t bytes[48];
    size_t size;
    uint32_t crc;
};

/// RFC 3720, B.4, and the check value of the catalogue of CRCs.
static void make_vectors(struct vector vectors[6])
{
    static const uint8_t read_command[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0x14, 0, 0, 0,   0,
        0,    0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0,    0, 0, 0x02};
    memset(vectors, 0, 6 * sizeof(vectors[0]));
    vectors[0] = (struct vector){.name = "zeros", .size = 32, .crc = 0x8A9136AA};
    vectors[1] = (struct vector){.name = "ones", .size = 32, .crc = 0x62A8AB43};
    vectors[2] = (struct vector){.name = "rising", .size = 32, .crc = 0x46DD794E};
    vectors[3] = (struct vector){.name = "falling", .size = 32, .crc = 0x113FDB5C};
    vectors[4] = (struct vector){.name = "iSCSI read", .size = 48, .crc = 0xD9963A56};
    vectors[5] = (struct vector){.name = "digits", .size = 9, .crc = 0xE3069283};
    memset(vectors[1].bytes, 0xFF, 32);
    for (uint8_t i = 0; i < 32; i++) {
        vectors[2].bytes[i] = i;
        vectors[3].bytes[i] = (uint8_t)(31 - i);
    }
    memcpy(vectors[4].bytes, read_command, sizeof(read_command));
    memcpy(vectors[5].bytes, "123456789", 9);
}

static void known_values(void **state)
{
    (void)state;
    struct vector vectors[6];
    make_vectors(vectors);
    for (int i = 0; i < 6; i++) {
        const struct vector *vector = &vectors[i];
        uint32_t crc = tfos__record_crc32c(0, vector->bytes, vector->size);
        uint32_t by_tables =
            ~tfos__record_crc32c_by_tables(~UINT32_C(0), vector->bytes, vector->size);
        if (crc != vector->crc || by_tables != vector->crc)
            fail_msg("%s: %08x, by tables %08x, expected %08x", vector->name, crc, by_tables,
                     vector->crc);
    }
    assert_int_equal(tfos__record_crc32c(0, "", 0), 0);
}

static void the_instruction_agrees_with_the_tables(void **state)
{
    (void)state;
    tfos__record_crc32c_update *instruction = tfos__record_crc32c_instruction();
    uint8_t bytes[3300]; // two blocks of three lanes and a rest
    if (!instruction)
        skip();
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 151 ^ i >> 3);
    // Every alignment, and every length up to some words.
    for (size_t begin = 0; begin < 16; begin++)
        for (size_t size = 0; begin + size <= sizeof(bytes); size += size < 100 ? 1 : 17)
            assert_int_equal(instruction(0x12345678, bytes + begin, size),
                             tfos__record_crc32c_by_tables(0x12345678, bytes + begin, size));
}

static void a_checksum_goes_on_where_another_ended(void **state)
{
    (void)state;
    const char text[] = "the quick brown fox jumps over the lazy dog";
    size_t size = strlen(text);
    uint32_t whole = tfos__record_crc32c(0, text, size);
    for (size_t cut = 0; cut <= size; cut++)
        assert_int_equal(
            tfos__record_crc32c(tfos__record_crc32c(0, text, cut), text + cut, size - cut), whole);
}

static void frames_are_as_tensorflow_writes_them(void **state)
{
    (void)state;
    // What tf.io.TFRecordWriter puts around "tfos" and around an empty record.
    static const struct tfos_record_frame expected[] = {
        {{0x04, 0, 0, 0, 0, 0, 0, 0, 0x42, 0x45, 0x52, 0x04}, {0x17, 0x93, 0xfd, 0xad}},
        {{0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07}, {0xd8, 0xea, 0x82, 0xa2}},
    };
    static const char *const records[] = {"tfos", ""};
    for (int i = 0; i < 2; i++) {
        struct tfos_record_frame frame;
        tfos_record_frame_init(&frame, records[i], strlen(records[i]));
        assert_memory_equal(frame.head, expected[i].head, sizeof(frame.head));
        assert_memory_equal(frame.tail, expected[i].tail, sizeof(frame.tail));
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(known_values),
    cmocka_unit_test(the_instruction_agrees_with_the_tables),
    cmocka_unit_test(a_checksum_goes_on_where_another_ended),
    cmocka_unit_test(frames_are_as_tensorflow_writes_them),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Compressed TFRecord files: members, cuts, damage, and what is taken for what.
#include "record_fixture.h"

static const size_t SIZES[] = {300, 0, 2000, 41};
#define COUNT (sizeof SIZES / sizeof SIZES[0])

static struct memory_stream make_compressed(enum tfos_compression compression)
{
    struct tfos_record_writer_options options = {.compression = compression};
    return make_file(SIZES, COUNT, &options);
}

static void append(struct memory_stream *stream, const void *data, size_t size)
{
    assert_int_equal(stream->base.write(&stream->base, data, size, NULL), TFOS_OK);
}

static void gzip_members_follow_each_other(void **state)
{
    (void)state;
    struct memory_stream file = make_compressed(TFOS_COMPRESSION_GZIP);
    struct memory_stream member = make_compressed(TFOS_COMPRESSION_GZIP);
    append(&file, member.data, member.size);
    append(&file, "\0\0\0\0", 4); // as tape and block devices pad
    for (size_t step = 0; step < 3; step++) {
        file.step = step;
        struct reading reading = read_all(&file, NULL, 16);
        assert_int_equal(reading.status, TFOS_END);
        assert_int_equal(reading.count, 2 * COUNT);
        assert_record(&reading, 2 * COUNT - 1, COUNT - 1, SIZES[COUNT - 1]);
    }
    append(&file, "rest", 4);
    assert_int_equal(read_all(&file, NULL, 16).status, TFOS_CORRUPT);
    memory_clear(&file);
    memory_clear(&member);
}

static void bytes_behind_zlib_are_damage(void **state)
{
    (void)state;
    struct memory_stream file = make_compressed(TFOS_COMPRESSION_ZLIB);
    append(&file, "x", 1);
    struct reading reading = read_all(&file, NULL, 16);
    assert_int_equal(reading.status, TFOS_CORRUPT);
    assert_int_equal(reading.count, COUNT);
    assert_non_null(strstr(reading.err.message, "bytes follow its end"));
    memory_clear(&file);
}

static void s68_every_cut_of_a_compressed_file(void **state)
{
    (void)state;
    for (int compression = TFOS_COMPRESSION_GZIP; compression <= TFOS_COMPRESSION_ZLIB;
         compression++) {
        struct memory_stream whole = make_compressed(compression);
        for (size_t size = 1; size < whole.size; size++) {
            struct memory_stream file = memory_of(whole.data, size);
            struct tfos_record_reader_options options = {.compression = compression,
                                                         .name = "a.gz"};
            struct reading reading = read_all(&file, &options, 16);
            assert_int_equal(reading.status, TFOS_CORRUPT);
            assert_non_null(strstr(reading.err.message, "a.gz"));
            assert_non_null(strstr(reading.err.message, "it is cut"));
            for (size_t i = 0; i < reading.count; i++)
                assert_record(&reading, i, (uint32_t)i, SIZES[i]);
            options.mode = TFOS_RECORD_SKIP_RECORD;
            reading = read_all(&file, &options, 16);
            assert_int_equal(reading.status, TFOS_END);
            assert_int_equal(reading.counts.damages, 1);
            memory_clear(&file);
        }
        memory_clear(&whole);
    }
}

/// A flip is noticed, or changes nothing: deflate has bits that fill up a byte.
static void s68_every_flipped_bit_of_a_compressed_file(void **state)
{
    (void)state;
    struct memory_stream file = make_compressed(TFOS_COMPRESSION_GZIP);
    struct tfos_record_reader_options options = {.compression = TFOS_COMPRESSION_GZIP};
    size_t unnoticed = 0;
    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct reading reading = read_all(&file, &options, 16);
        if (reading.status == TFOS_END) {
            unnoticed++;
            assert_int_equal(reading.count, COUNT);
        } else {
            assert_int_equal(reading.status, TFOS_CORRUPT);
        }
        for (size_t i = 0; i < reading.count; i++)
            assert_record(&reading, i, (uint32_t)i, SIZES[i]);
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    // The time, the system and the kind of compression in gzip's header: 7 bytes.
    assert_true(unnoticed <= 8 * 7);
    memory_clear(&file);
}

static void s68_gzip_read_as_plain_says_so(void **state)
{
    (void)state;
    struct memory_stream file = make_compressed(TFOS_COMPRESSION_GZIP);
    struct tfos_record_reader_options options = {.compression = TFOS_COMPRESSION_NONE,
                                                 .name = "part-0"};
    struct reading reading = read_all(&file, &options, 16);
    assert_int_equal(reading.status, TFOS_CORRUPT);
    assert_non_null(strstr(reading.err.message, "part-0: offset 0"));
    assert_non_null(strstr(reading.err.message, "begins like one of gzip"));
    memory_clear(&file);
    file = make_file(SIZES, COUNT, NULL);
    options.compression = TFOS_COMPRESSION_GZIP;
    assert_int_equal(read_all(&file, &options, 16).status, TFOS_CORRUPT);
    memory_clear(&file);
}

/// 559,903 is 0x088B1F, and its file begins with gzip's mark.
static void a_plain_file_that_begins_like_gzip(void **state)
{
    (void)state;
    static const size_t sizes[] = {559903, 3};
    struct memory_stream file = make_file(sizes, 2, NULL);
    assert_int_equal(file.data[0], 0x1F);
    assert_int_equal(file.data[1], 0x8B);
    struct reading reading = read_all(&file, NULL, 16);
    assert_int_equal(reading.status, TFOS_END);
    assert_record(&reading, 0, 0, sizes[0]);
    memory_clear(&file);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(gzip_members_follow_each_other),
    cmocka_unit_test(bytes_behind_zlib_are_damage),
    cmocka_unit_test(s68_every_cut_of_a_compressed_file),
    cmocka_unit_test(s68_every_flipped_bit_of_a_compressed_file),
    cmocka_unit_test(s68_gzip_read_as_plain_says_so),
    cmocka_unit_test(a_plain_file_that_begins_like_gzip),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Compressed TFRecord files: members, cuts, damage, and what is taken for what.
#include "record_fixture.h"

static const size_t SIZES[] = {300, 0, 2000, 41};
#define COUNT (sizeof(SIZES) / sizeof(SIZES[0]))

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

/// The first bytes of files of other compressions, and names that say so where there is no mark.
static void s85_other_compressions_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *first, *words;
        size_t size;
        bool is_for_codec;
    } files[] = {
        {"a", "BZh91AY&SY~~~~", "compressed by bzip2, and what can be read is gzip", 14, false},
        {"a.bz2", "BZh91AY&SY~~~~", "with a codec for names that end in .bz2", 14, true},
        {"a.bz2", "BZh9\x17rE8P\x90\0\0\0\0", "compressed by bzip2", 14, true},
        {"a.bz2", "~~~~~~~~~~~~~~", "neither that nor a TFRecord file", 14, false},
        {"a.zst", "\x28\xB5\x2F\xFD~~~~~~~~", "compressed by zstd", 12, true},
        {"a.xz", "\xFD\x37zXZ\0~~~~~~", "compressed by xz", 12, true},
        {"a.lzo", "\x89LZO\0\r\n\x1A\n~~~", "compressed by lzo", 12, true},
        {"a.lz4", "\x04\x22\x4D\x18~~~~~~~~", "by lz4, and what can be read", 12, false},
        {"a.snappy", "\xFF\x06\0\0sNaPpY~~", "by TensorFlow: decompress it first", 12, false},
        {"a.lz4", "\0\0\1\0\0\0\0\x80~~~~", "Hadoop's lz4", 12, true},
        {"a.snappy", "\0\0\1\0\0\0\0\x80~~~~", "names that end in .snappy", 12, true},
        {"a.snappy", "\0\0\1", "Hadoop's snappy", 3, true},
        {"a.lz4", "\x08\x1D\0\0\0\0\0\x80~~~~", "Hadoop's lz4", 12, true}, // no zlib
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct tfos_view first = {files[i].first, files[i].size};
        assert_int_equal(tfos_record_is_for_codec(files[i].name, first), files[i].is_for_codec);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        for (int mode = TFOS_RECORD_STRICT; mode <= TFOS_RECORD_SKIP_FILE; mode++) {
            struct tfos_record_reader_options options = {.name = files[i].name, .mode = mode};
            struct memory_stream file = memory_of(files[i].first, files[i].size);
            struct reading reading = read_all(&file, &options, 16);
            assert_int_equal(reading.status, TFOS_UNSUPPORTED);
            if (!strstr(reading.err.message, files[i].words))
                fail_msg("\"%s\" is not in \"%s\"", files[i].words, reading.err.message);
            memory_clear(&file);
        }
}

static void s85_what_is_inside_counts_more_than_the_name(void **state)
{
    (void)state;
    static const char *const names[] = {"a.bz2", "a.zst", "a.lz4", "a.snappy", "a.xz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int compression = TFOS_COMPRESSION_NONE; compression <= TFOS_COMPRESSION_GZIP;
             compression++) {
            struct tfos_record_reader_options options = {.name = names[i]};
            struct memory_stream file = make_compressed(compression);
            struct reading reading = read_all(&file, &options, 16);
            assert_int_equal(reading.status, TFOS_END);
            assert_int_equal(reading.count, COUNT);
            assert_false(tfos_record_is_for_codec(names[i], (struct tfos_view){file.data, 12}));
            memory_clear(&file);
        }
    assert_false(tfos_record_is_for_codec("a.bz2", (struct tfos_view){"", 0}));
    assert_true(tfos_record_is_for_codec("a.other", (struct tfos_view){"~~~~~~~~~~~~", 12}));
    struct tfos_record_reader_options options = {.name = "a.bz2"};
    struct memory_stream empty = memory_open();
    assert_int_equal(read_all(&empty, &options, 16).status, TFOS_END);
    memory_clear(&empty);
}

static void s85_names_say_how_to_write(void **state)
{
    (void)state;
    struct tfos_error err = {0};
    enum tfos_compression compression = TFOS_COMPRESSION_ZLIB;
    assert_done(tfos_record_compression_of_name("a.gz", &compression, &err));
    assert_int_equal(compression, TFOS_COMPRESSION_GZIP);
    assert_done(tfos_record_compression_of_name("a.bz2/b", &compression, &err));
    assert_int_equal(compression, TFOS_COMPRESSION_NONE);
    assert_done(tfos_record_compression_of_name(".gz", &compression, &err));
    assert_int_equal(compression, TFOS_COMPRESSION_NONE);
    static const char *const names[] = {"a.tfrecord.bz2", "a.zst", "a.lz4", "a.snappy", "a.xz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(tfos_record_compression_of_name(names[i], &compression, &err),
                         TFOS_UNSUPPORTED);
        assert_non_null(strstr(err.message, names[i]));
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(gzip_members_follow_each_other),
    cmocka_unit_test(bytes_behind_zlib_are_damage),
    cmocka_unit_test(s68_every_cut_of_a_compressed_file),
    cmocka_unit_test(s68_every_flipped_bit_of_a_compressed_file),
    cmocka_unit_test(s68_gzip_read_as_plain_says_so),
    cmocka_unit_test(a_plain_file_that_begins_like_gzip),
    cmocka_unit_test(s85_other_compressions_are_named),
    cmocka_unit_test(s85_what_is_inside_counts_more_than_the_name),
    cmocka_unit_test(s85_names_say_how_to_write),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Reading that continues where another reader stopped, and every so many records of a file.
#include "record_fixture.h"

static const size_t SIZES[] = {30, 0, 7, 300, 0, 0, 21, 1, 90};
#define COUNT (sizeof(SIZES) / sizeof(SIZES[0]))
#define KINDS (sizeof(KINDS_OF_FILES) / sizeof(KINDS_OF_FILES[0]))

static const enum tfos_compression KINDS_OF_FILES[] = {TFOS_COMPRESSION_NONE, TFOS_COMPRESSION_GZIP,
                                                       TFOS_COMPRESSION_ZLIB};

static struct memory_stream make_kind(enum tfos_compression compression)
{
    struct tfos_record_writer_options options = {.compression = compression};
    return make_file(SIZES, COUNT, &options);
}

/// The place behind `count` calls of `capacity` records.
static struct tfos_record_position tell_behind(struct memory_stream *file,
                                               const struct tfos_record_reader_options *options,
                                               size_t count, size_t capacity)
{
    struct tfos_error err;
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[READ_LIMIT];
    size_t given;
    file->at = 0;
    assert_done(tfos_record_reader_open(&file->base, options, &reader, &err));
    for (size_t i = 0; i < count; i++)
        assert_done(tfos_record_reader_next_batch(reader, records, capacity, &given, &err));
    struct tfos_record_position position = tfos__record_reader_tell(reader);
    tfos_record_reader_close(reader);
    return position;
}

static void s88_reading_goes_on_behind_any_record(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct memory_stream file = make_kind(KINDS_OF_FILES[kind]);
        for (size_t count = 0; count <= COUNT; count++)
            for (int way = 0; way < 4; way++) { // seeking or not, reading much or little
                struct tfos_record_reader_options options = {0};
                file.base.seek = way & 1 ? memory_seek : NULL;
                file.step = way & 2 ? 3 : 0;
                options.start = tell_behind(&file, &options, count, 1);
                struct reading reading = read_all(&file, &options, 4);
                assert_int_equal(reading.status, TFOS_END);
                assert_int_equal(reading.count, COUNT - count);
                for (size_t i = 0; i < reading.count; i++)
                    assert_record(&reading, i, (uint32_t)(count + i), SIZES[count + i]);
            }
        memory_clear(&file);
    }
}

static void s88_a_file_that_became_shorter_is_refused(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct memory_stream file = make_kind(KINDS_OF_FILES[kind]);
        struct tfos_record_reader_options options = {0};
        options.start = tell_behind(&file, &options, COUNT, 1);
        options.start.offset++;
        struct reading reading = read_all(&file, &options, 4);
        assert_int_equal(reading.status, TFOS_INVALID);
        assert_non_null(strstr(reading.err.message, "the file: it ends at offset"));
        memory_clear(&file);
    }
}

static void s88_damage_is_met_again(void **state)
{
    (void)state;
    struct memory_stream file = make_kind(TFOS_COMPRESSION_NONE);
    file.data[file.size - 10] ^= 1; // of the last record
    struct tfos_record_reader_options options = {0};
    options.start = tell_behind(&file, &options, COUNT - 1, 1);
    assert_int_equal(read_all(&file, &options, 4).status, TFOS_CORRUPT);
    memory_clear(&file);
}

static void s92_each_record_belongs_to_one_residue(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct memory_stream file = make_kind(KINDS_OF_FILES[kind]);
        for (uint64_t stride = 1; stride < COUNT + 3; stride++)
            for (uint64_t residue = 0; residue < stride; residue++) {
                struct tfos_record_reader_options options = {.residue = residue, .stride = stride};
                struct reading reading = read_all(&file, &options, 2);
                size_t expected = (COUNT + stride - 1 - residue) / stride;
                assert_int_equal(reading.status, TFOS_END);
                assert_int_equal(reading.count, expected);
                assert_int_equal(reading.counts.records, expected);
                for (size_t i = 0; i < expected; i++) {
                    size_t number = residue + i * stride;
                    assert_record(&reading, i, (uint32_t)number, SIZES[number]);
                }
                for (size_t count = 0; count <= expected; count++) {
                    options.start = tell_behind(&file, &options, count, 1);
                    assert_int_equal(read_all(&file, &options, 2).count, expected - count);
                    options.start = (struct tfos_record_position){0};
                }
            }
        memory_clear(&file);
    }
}

static void s92_no_residue_reaches_the_stride(void **state)
{
    (void)state;
    struct memory_stream file = make_kind(TFOS_COMPRESSION_NONE);
    struct tfos_record_reader_options options = {.residue = 2, .stride = 2};
    struct reading reading = read_all(&file, &options, 2);
    assert_int_equal(reading.status, TFOS_INVALID);
    assert_non_null(strstr(reading.err.message, "must be less than stride"));
    memory_clear(&file);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s88_reading_goes_on_behind_any_record),
    cmocka_unit_test(s88_a_file_that_became_shorter_is_refused),
    cmocka_unit_test(s88_damage_is_met_again),
    cmocka_unit_test(s92_each_record_belongs_to_one_residue),
    cmocka_unit_test(s92_no_residue_reaches_the_stride),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// TFRecord files, whole ones and damaged ones: each cut and each flipped bit.
#include "record/crc32c.h"
#include "record_fixture.h"

static const size_t SMALL[] = {5, 0, 1, 40, 17};
#define SMALL_COUNT (sizeof(SMALL) / sizeof(SMALL[0]))

static void records_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 12, 3160, 262144, 262128, 300000, 7, 1 << 20, 0};
    const size_t count = sizeof(sizes) / sizeof(sizes[0]);
    for (int compression = TFOS_COMPRESSION_AUTO; compression <= TFOS_COMPRESSION_ZLIB;
         compression++) {
        struct tfos_record_writer_options options = {.compression = compression};
        struct memory_stream file = make_file(sizes, count, &options);
        for (int is_detected = 0; is_detected < 2; is_detected++) {
            struct tfos_record_reader_options reading_options = {
                .compression = is_detected ? TFOS_COMPRESSION_AUTO : compression};
            struct reading reading = read_all(&file, &reading_options, is_detected ? 1 : 16);
            assert_int_equal(reading.status, TFOS_END);
            assert_int_equal(reading.count, count);
            assert_int_equal(reading.counts.records, count);
            uint64_t offset = 0;
            for (size_t i = 0; i < count; i++) {
                assert_record(&reading, i, (uint32_t)i, sizes[i]);
                assert_int_equal(reading.offsets[i], offset);
                offset += sizes[i] + 16;
            }
            assert_int_equal(reading.counts.bytes + 16 * count, offset);
            assert_int_equal(reading.counts.damages, 0);
        }
        memory_clear(&file);
    }
}

static void s69_a_stream_that_gives_a_byte_at_a_time(void **state)
{
    (void)state;
    for (int compression = TFOS_COMPRESSION_NONE; compression <= TFOS_COMPRESSION_ZLIB;
         compression++) {
        struct tfos_record_writer_options options = {.compression = compression};
        struct memory_stream file = make_file(SMALL, SMALL_COUNT, &options);
        file.step = 1;
        struct reading reading = read_all(&file, NULL, 16);
        assert_int_equal(reading.status, TFOS_END);
        assert_int_equal(reading.count, SMALL_COUNT);
        for (size_t i = 0; i < SMALL_COUNT; i++)
            assert_record(&reading, i, (uint32_t)i, SMALL[i]);
        memory_clear(&file);
    }
}

static void an_empty_file_has_no_records(void **state)
{
    (void)state;
    struct memory_stream file = memory_of("", 0);
    assert_int_equal(read_all(&file, NULL, 1).status, TFOS_END);
    memory_clear(&file);
}

/// The frame that holds byte `at` of a file of SMALL, and where it begins.
static size_t frame_of(size_t at, uint64_t *begin)
{
    size_t index = 0;
    for (*begin = 0; *begin + SMALL[index] + 16 <= at; index++)
        *begin += SMALL[index] + 16;
    return index;
}

static void s68_every_cut(void **state)
{
    (void)state;
    struct memory_stream whole = make_file(SMALL, SMALL_COUNT, NULL);
    for (size_t size = 0; size < whole.size; size++) {
        uint64_t begin;
        size_t before = frame_of(size, &begin);
        struct memory_stream file = memory_of(whole.data, size);
        for (int mode = TFOS_RECORD_STRICT; mode <= TFOS_RECORD_SKIP_FILE; mode++) {
            struct tfos_record_reader_options options = {.mode = mode, .name = "a.tfrecord"};
            struct reading reading = read_all(&file, &options, 3);
            bool is_whole = size == begin;
            assert_int_equal(reading.count, before);
            assert_int_equal(reading.status,
                             is_whole || mode != TFOS_RECORD_STRICT ? TFOS_END : TFOS_CORRUPT);
            assert_int_equal(reading.counts.damages, !is_whole && mode != TFOS_RECORD_STRICT);
            if (reading.status == TFOS_CORRUPT) {
                char words[80];
                snprintf(words, sizeof(words), "a.tfrecord: offset %llu: the file ends within",
                         (unsigned long long)begin);
                assert_non_null(strstr(reading.err.message, words));
            }
            if (mode == TFOS_RECORD_SKIP_RECORD)
                assert_int_equal(reading.counts.skipped_bytes, size - begin);
        }
        memory_clear(&file);
    }
    memory_clear(&whole);
}

static void s68_every_flipped_bit(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SMALL, SMALL_COUNT, NULL);
    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        uint64_t begin;
        size_t damaged = frame_of(bit / 8, &begin);
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct tfos_record_reader_options options = {.name = "a.tfrecord"};
        struct reading reading = read_all(&file, &options, 3);
        assert_int_equal(reading.status, TFOS_CORRUPT);
        assert_int_equal(reading.count, damaged);
        bool is_head = bit / 8 - begin < 12;
        char words[100];
        snprintf(words, sizeof(words), "a.tfrecord: offset %llu: %s", (unsigned long long)begin,
                 tfos_record_damage_text(is_head ? TFOS_RECORD_BAD_SIZE_CHECKSUM
                                                 : TFOS_RECORD_BAD_CHECKSUM));
        assert_non_null(strstr(reading.err.message, words));
        // All others are found again.
        options.mode = TFOS_RECORD_SKIP_RECORD;
        reading = read_all(&file, &options, 3);
        assert_int_equal(reading.status, TFOS_END);
        assert_int_equal(reading.count, SMALL_COUNT - 1);
        for (size_t i = 0; i < reading.count; i++) {
            size_t number = i < damaged ? i : i + 1;
            assert_record(&reading, i, (uint32_t)number, SMALL[number]);
        }
        assert_int_equal(reading.counts.damages, 1);
        assert_int_equal(reading.counts.skipped_bytes, SMALL[damaged] + 16);
        options.mode = TFOS_RECORD_SKIP_FILE;
        reading = read_all(&file, &options, 3);
        assert_int_equal(reading.status, TFOS_END);
        assert_int_equal(reading.count, damaged);
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memory_clear(&file);
}

static void note_damage(void *context, const struct tfos_record_damage *damage)
{
    struct tfos_record_damage *noted = context;
    *noted = *damage;
    assert_non_null(strstr(damage->message, tfos_record_damage_text(damage->kind)));
    noted->message = NULL;
}

static void each_damage_is_told(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SMALL, SMALL_COUNT, NULL);
    struct tfos_record_damage noted = {0};
    struct tfos_record_reader_options options = {
        .mode = TFOS_RECORD_SKIP_RECORD, .on_damage = note_damage, .context = &noted};
    file.data[21 + 16] ^= 1; // the head of record 2
    assert_int_equal(read_all(&file, &options, 16).count, SMALL_COUNT - 1);
    assert_int_equal(noted.kind, TFOS_RECORD_BAD_SIZE_CHECKSUM);
    assert_int_equal(noted.offset, 37);
    assert_int_equal(noted.size, 17);
    memory_clear(&file);
}

static void too_large_records_are_refused_and_skipped(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SMALL, SMALL_COUNT, NULL);
    struct tfos_record_reader_options options = {.max_record_size = 20};
    struct reading reading = read_all(&file, &options, 16);
    assert_int_equal(reading.status, TFOS_CORRUPT);
    assert_int_equal(reading.count, 3);
    assert_non_null(strstr(reading.err.message, "40 bytes, where max_record_size is 20"));
    options.mode = TFOS_RECORD_SKIP_RECORD;
    reading = read_all(&file, &options, 16);
    assert_int_equal(reading.count, 4);
    assert_int_equal(reading.counts.skipped_bytes, 56);
    memory_clear(&file);
    // The largest of all sizes, with a checksum that is right.
    uint8_t head[12] = {0, 0, 0, 0, 0, 0, 0, 0x80};
    uint32_t masked = tfos__record_crc32c_mask(tfos__record_crc32c(0, head, 8));
    memcpy(head + 8, &masked, 4);
    file = memory_of(head, sizeof(head));
    reading = read_all(&file, NULL, 16);
    assert_int_equal(reading.status, TFOS_CORRUPT);
    assert_non_null(strstr(reading.err.message, "9223372036854775808 bytes"));
    reading = read_all(&file, &options, 16);
    assert_int_equal(reading.status, TFOS_END);
    assert_int_equal(reading.counts.damages, 1);
    memory_clear(&file);
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct tfos_error err;
    uint8_t bytes[300] = {0};
    struct tfos_view record = {bytes, sizeof(bytes)};
    for (int compression = TFOS_COMPRESSION_NONE; compression <= TFOS_COMPRESSION_ZLIB;
         compression++) {
        struct memory_stream file = memory_open();
        struct tfos_record_writer_options options = {.compression = compression};
        struct tfos_record_writer *writer = NULL;
        file.fail_at = 1;
        assert_done(tfos_record_writer_open(&file.base, &options, &writer, &err));
        assert_done(tfos_record_writer_append(writer, &record, 1, &err));
        assert_int_equal(tfos_record_writer_finish(writer, &err), TFOS_IO);
        assert_string_equal(err.message, "the disk is full");
        assert_false(file.is_finished);
        tfos_record_writer_close(writer);
        memory_clear(&file);
    }
}

static void wrong_levels_are_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream file = memory_open();
    struct tfos_record_writer_options options = {.level = 10};
    struct tfos_record_writer *writer = NULL;
    assert_int_equal(tfos_record_writer_open(&file.base, &options, &writer, &err), TFOS_INVALID);
    assert_null(writer);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(records_come_back),
    cmocka_unit_test(s69_a_stream_that_gives_a_byte_at_a_time),
    cmocka_unit_test(an_empty_file_has_no_records),
    cmocka_unit_test(s68_every_cut),
    cmocka_unit_test(s68_every_flipped_bit),
    cmocka_unit_test(each_damage_is_told),
    cmocka_unit_test(too_large_records_are_refused_and_skipped),
    cmocka_unit_test(a_full_disk_is_told),
    cmocka_unit_test(wrong_levels_are_refused),
};

TEST_MAIN(cases)

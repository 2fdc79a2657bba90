// SPDX-License-Identifier: Apache-2.0
// Files read in ranges: whatever the cuts, each record is read once, or an error says why not.
#include "record_fixture.h"

static const size_t SIZES[] = {30, 0, 7, 90, 0, 0, 21};
#define COUNT (sizeof(SIZES) / sizeof(SIZES[0]))

static struct reading read_range(struct memory_stream *file, uint64_t begin, uint64_t end,
                                 enum tfos_record_mode mode)
{
    struct tfos_record_reader_options options = {
        .compression = TFOS_COMPRESSION_NONE, .mode = mode, .begin = begin, .end = end};
    return read_all(file, &options, 4);
}

static void two_cuts_anywhere(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SIZES, COUNT, NULL);
    for (uint64_t first = 1; first < file.size; first++)
        for (uint64_t second = first; second < file.size + 5; second += 7) {
            const uint64_t cuts[] = {0, first, second, 0};
            uint32_t number = 0;
            for (int i = 0; i < 3; i++) {
                if (cuts[i] == cuts[i + 1])
                    continue; // nothing between
                struct reading reading =
                    read_range(&file, cuts[i], cuts[i + 1], TFOS_RECORD_STRICT);
                assert_int_equal(reading.status, TFOS_END);
                for (size_t k = 0; k < reading.count; k++, number++) {
                    assert_record(&reading, k, number, SIZES[number]);
                    assert_true(reading.offsets[k] >= cuts[i]);
                    assert_true(cuts[i + 1] == 0 || reading.offsets[k] < cuts[i + 1]);
                }
            }
            assert_int_equal(number, COUNT);
        }
    memory_clear(&file);
}

/// Damage that the next range would pass over in its search belongs to the one before.
static void damage_at_a_seam_is_noticed(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SIZES, COUNT, NULL);
    for (size_t bit = 0; bit < 8 * file.size; bit += 11) {
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        for (uint64_t cut = 1; cut < file.size; cut += 5) {
            struct reading before = read_range(&file, 0, cut, TFOS_RECORD_STRICT);
            struct reading behind = read_range(&file, cut, 0, TFOS_RECORD_STRICT);
            assert_true(before.status == TFOS_CORRUPT || behind.status == TFOS_CORRUPT);
            before = read_range(&file, 0, cut, TFOS_RECORD_SKIP_RECORD);
            behind = read_range(&file, cut, 0, TFOS_RECORD_SKIP_RECORD);
            assert_int_equal(before.count + behind.count, COUNT - 1);
            assert_true(before.counts.damages + behind.counts.damages >= 1);
        }
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memory_clear(&file);
}

/// A record that is a TFRecord file itself: a range that begins in it would find what lies in it.
static void records_in_records_are_not_mistaken(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream inner = make_file(SIZES, COUNT, NULL), file = memory_open();
    struct tfos_record_writer *writer = NULL;
    const struct tfos_view records[] = {{"first", 5}, {inner.data, inner.size}, {"last", 4}};
    assert_done(tfos_record_writer_open(&file.base, NULL, &writer, &err));
    assert_done(tfos_record_writer_append(writer, records, 3, &err));
    assert_done(tfos_record_writer_finish(writer, &err));
    tfos_record_writer_close(writer);
    for (uint64_t cut = 1; cut < file.size; cut++) {
        struct reading before = read_range(&file, 0, cut, TFOS_RECORD_STRICT);
        struct reading behind = read_range(&file, cut, 0, TFOS_RECORD_STRICT);
        if (before.status == TFOS_UNSUPPORTED) {
            assert_non_null(strstr(before.err.message, "the record at offset 21 holds records"));
            assert_int_equal(behind.status, TFOS_CORRUPT);
            assert_non_null(strstr(behind.err.message, "records themselves, read it whole"));
            continue;
        }
        assert_int_equal(before.status, TFOS_END);
        assert_int_equal(behind.status, TFOS_END);
        assert_int_equal(before.count + behind.count, 3);
    }
    assert_int_equal(read_range(&file, 0, 60, TFOS_RECORD_STRICT).status, TFOS_UNSUPPORTED);
    memory_clear(&file);
    memory_clear(&inner);
}

static void ranges_that_cannot_be(void **state)
{
    (void)state;
    struct memory_stream file = make_file(SIZES, COUNT, NULL);
    assert_int_equal(read_range(&file, 9, 3, TFOS_RECORD_STRICT).status, TFOS_INVALID);
    file.base.seek = NULL;
    struct reading reading = read_range(&file, 9, 0, TFOS_RECORD_STRICT);
    assert_int_equal(reading.status, TFOS_INVALID);
    assert_non_null(strstr(reading.err.message, "only goes forward"));
    memory_clear(&file);
    struct tfos_record_writer_options gzip = {.compression = TFOS_COMPRESSION_GZIP};
    struct tfos_record_reader_options options = {.begin = 4, .name = "x.gz"};
    file = make_file(SIZES, COUNT, &gzip);
    reading = read_all(&file, &options, 4);
    assert_int_equal(reading.status, TFOS_UNSUPPORTED);
    assert_non_null(strstr(reading.err.message, "x.gz: it is compressed"));
    memory_clear(&file);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(two_cuts_anywhere),
    cmocka_unit_test(damage_at_a_seam_is_noticed),
    cmocka_unit_test(records_in_records_are_not_mistaken),
    cmocka_unit_test(ranges_that_cannot_be),
};

TEST_MAIN(cases)

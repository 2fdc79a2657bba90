// SPDX-License-Identifier: Apache-2.0
// Indexes: as DALI's tfrecord2idx writes them, back from text, and against files that are not
// theirs.
#include <tfos/record_index.h>

#include "record_fixture.h"

static const size_t SIZES[] = {30, 0, 70000, 7, 90};
#define COUNT (sizeof(SIZES) / sizeof(SIZES[0]))
static const char TEXT[] = "0 46\n46 16\n62 70016\n70078 23\n70101 106\n";

static struct tfos_record_index *scan(struct memory_stream *file)
{
    struct tfos_error err;
    struct tfos_record_index *index = NULL;
    file->at = 0;
    assert_done(tfos_record_index_scan(&file->base, NULL, &index, &err));
    return index;
}

static enum tfos_status load(const char *text, size_t step, struct tfos_record_index **out,
                             struct tfos_error *err)
{
    struct memory_stream stream = memory_of(text, strlen(text));
    stream.step = step;
    enum tfos_status status = tfos_record_index_load(&stream.base, "a.idx", out, err);
    memory_clear(&stream);
    return status;
}

static void its_text_is_that_of_tfrecord2idx(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream file = make_file(SIZES, COUNT, NULL), text = memory_open();
    struct tfos_record_index *index = scan(&file);
    assert_int_equal(tfos_record_index_count(index), COUNT);
    assert_done(tfos_record_index_save(index, &text.base, &err));
    assert_int_equal(text.size, strlen(TEXT));
    assert_memory_equal(text.data, TEXT, text.size);
    assert_false(text.is_finished);
    tfos_record_index_close(index);
    memory_clear(&text);
    memory_clear(&file);
}

static void records_in_any_order(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream file = make_file(SIZES, COUNT, NULL);
    static const uint64_t order[] = {4, 0, 1, 2, 2, 3};
    for (size_t step = 0; step < 60; step += 13) {
        struct tfos_record_index *index = NULL;
        struct tfos_record_picker *picker = NULL;
        assert_done(load(TEXT, step, &index, &err));
        file.step = step;
        assert_done(tfos_record_picker_open(&file.base, index, NULL, &picker, &err));
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
            struct tfos_view record;
            assert_done(tfos_record_picker_get(picker, order[i], &record, &err));
            uint8_t *expected = make_record((uint32_t)order[i], SIZES[order[i]]);
            assert_int_equal(record.size, SIZES[order[i]]);
            assert_memory_equal(record.data, expected, record.size);
            free(expected);
        }
        struct tfos_view none;
        assert_int_equal(tfos_record_picker_get(picker, COUNT, &none, &err), TFOS_INVALID);
        tfos_record_picker_close(picker);
        tfos_record_index_close(index);
    }
    memory_clear(&file);
}

static void text_that_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"0 46\n46\n", "a.idx: line 2: it is not \"OFFSET SIZE\""},
        {"0 15\n", "line 1: it is not"},
        {"-0 46\n", "line 1: it is not"},
        {"0 46 1\n", "line 1: it is not"},
        {"\n0 46\n", "line 1: it is not"},
        {"4 46\n", "line 1: the record begins at 4, where the one before ends at 0"},
        {"0 46\n40 46\n", "line 2: the record begins at 40, where the one before ends at 46"},
        {"0 99999999999999999999\n", "line 1: it is not"},
        {"0 9000000000000000000\n9000000000000000000 9000000000000000000\n",
         "no file is that large"},
        {"0                                                                              46\n",
         "line 1: this is not the text of an index"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tfos_error err = {0};
        struct tfos_record_index *index = NULL;
        assert_int_equal(load(cases[i].text, 3, &index, &err), TFOS_CORRUPT);
        assert_non_null(strstr(err.message, cases[i].words));
    }
    struct tfos_error err;
    struct tfos_record_index *index = NULL;
    assert_done(load("0\t46\r\n46 16", 0, &index, &err)); // as Windows and numpy may leave it
    assert_int_equal(tfos_record_index_count(index), 2);
    tfos_record_index_close(index);
}

static void an_index_of_another_file(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream file = make_file(SIZES, COUNT, NULL);
    struct memory_stream shorter = make_file(SIZES, COUNT - 1, NULL), empty = memory_open();
    struct tfos_record_index *index = scan(&file), *none = scan(&empty);
    struct tfos_record_picker *picker = NULL;
    struct tfos_record_reader_options options = {.name = "a.tfrecord", .max_record_size = 100};
    assert_int_equal(tfos_record_picker_open(&shorter.base, index, &options, &picker, &err),
                     TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "a.tfrecord: its index is of a file of 70207 bytes, and "
                                        "this one is shorter"));
    assert_int_equal(tfos_record_picker_open(&file.base, none, &options, &picker, &err),
                     TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "this one is longer"));
    assert_done(tfos_record_picker_open(&empty.base, none, &options, &picker, &err));
    tfos_record_picker_close(picker);
    // As long, but other records in it.
    struct tfos_record_index *other = NULL;
    struct tfos_view record;
    assert_done(load("0 62\n62 70016\n70078 23\n70101 106\n", 0, &other, &err));
    assert_done(tfos_record_picker_open(&file.base, other, &options, &picker, &err));
    assert_int_equal(tfos_record_picker_get(picker, 0, &record, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "the index is not this file's"));
    assert_int_equal(tfos_record_picker_get(picker, 1, &record, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "offset 62: a record is too large"));
    assert_done(tfos_record_picker_get(picker, 3, &record, &err)); // of use as before
    file.data[70120] ^= 1;
    assert_int_equal(tfos_record_picker_get(picker, 3, &record, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "offset 70101: the checksum of a record is wrong"));
    tfos_record_picker_close(picker);
    file.base.seek = NULL;
    assert_int_equal(tfos_record_picker_open(&file.base, index, NULL, &picker, &err), TFOS_INVALID);
    tfos_record_index_close(other);
    tfos_record_index_close(none);
    tfos_record_index_close(index);
    memory_clear(&empty);
    memory_clear(&shorter);
    memory_clear(&file);
}

static void files_that_have_none(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_record_index *index = NULL;
    struct tfos_record_writer_options gzip = {.compression = TFOS_COMPRESSION_GZIP};
    struct tfos_record_reader_options options = {.name = "x"};
    struct memory_stream file = make_file(SIZES, COUNT, &gzip);
    assert_int_equal(tfos_record_index_scan(&file.base, &options, &index, &err), TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "x: it is compressed"));
    memory_clear(&file);
    file = make_file(SIZES, COUNT, NULL);
    file.size -= 2;
    assert_int_equal(tfos_record_index_scan(&file.base, &options, &index, &err), TFOS_CORRUPT);
    options.mode = TFOS_RECORD_SKIP_RECORD;
    assert_int_equal(tfos_record_index_scan(&file.base, &options, &index, &err), TFOS_INVALID);
    assert_null(index);
    memory_clear(&file);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(its_text_is_that_of_tfrecord2idx),
    cmocka_unit_test(records_in_any_order),
    cmocka_unit_test(text_that_is_none),
    cmocka_unit_test(an_index_of_another_file),
    cmocka_unit_test(files_that_have_none),
};

TEST_MAIN(cases)

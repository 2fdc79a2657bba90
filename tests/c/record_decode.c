// SPDX-License-Identifier: Apache-2.0
// Examples and SequenceExamples to columns: as protobuf reads them, and what is refused.
#include <math.h>

#include "record_proto.h"

/// Decodes records into one column and gives its array away.
static enum tfos_status decode(const char *column, enum tfos_record_type type,
                               const struct proto *records, size_t count, struct ArrowArray *out,
                               struct tfos_error *err)
{
    struct ArrowSchema schema = make_table(&column, 1);
    struct tfos_example_decoder *decoder = NULL;
    struct tfos_view views[8];
    size_t appended;
    const struct tfos_example_decoder_options options = {.type = type};
    enum tfos_status status = tfos_example_decoder_open(&schema, &options, &decoder, err);
    for (size_t i = 0; i < count; i++)
        views[i] = (struct tfos_view){records[i].data, records[i].size};
    if (status == TFOS_OK)
        status = tfos_example_decoder_append(decoder, views, count, &appended, err);
    if (status == TFOS_OK) {
        assert_int_equal(appended, count);
        assert_int_equal(tfos_example_decoder_row_count(decoder), count);
        status = tfos_example_decoder_take(decoder, out, err);
        assert_int_equal(tfos_example_decoder_row_count(decoder), 0);
    }
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
    return status;
}

#define ASSERT_COLUMN(array, type, ...)                                                            \
    do {                                                                                           \
        const type expected[] = {__VA_ARGS__};                                                     \
        assert_int_equal((array)->length, sizeof(expected) / sizeof(expected[0]));                 \
        assert_memory_equal((array)->buffers[1], expected, sizeof(expected));                      \
    } while (0)

static struct proto one_feature(const char *name, struct proto feature)
{
    struct proto example = {0};
    put_feature(&example, name, feature);
    return example;
}

static void integers_of_all_widths(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    const struct proto small[] = {one_feature("x", INT64S(-128)), one_feature("x", INT64S(127)),
                                  one_feature("x", INT64S(0))};
    assert_done(decode("x:c", TFOS_RECORD_EXAMPLE, small, 3, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int8_t, -128, 127, 0);
    batch.release(&batch);
    assert_done(decode("x:s", TFOS_RECORD_EXAMPLE, small, 3, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int16_t, -128, 127, 0);
    batch.release(&batch);
    assert_done(decode("x:i", TFOS_RECORD_EXAMPLE, small, 3, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int32_t, -128, 127, 0);
    batch.release(&batch);
    const struct proto large[] = {one_feature("x", INT64S(INT64_MIN)),
                                  one_feature("x", INT64S(INT64_MAX))};
    assert_done(decode("x:l", TFOS_RECORD_EXAMPLE, large, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int64_t, INT64_MIN, INT64_MAX);
    batch.release(&batch);
    static const struct {
        const char *column;
        int64_t value;
        const char *words;
    } refused[] = {
        {"x:c", 128, "column x: 128 does not fit int8: read it as int64"},
        {"x:s", -32769, "-32769 does not fit int16"},
        {"x:i", INT64_C(1) << 31, "2147483648 does not fit int32"},
        {"x:C", -1, "-1 does not fit uint8: read it as int64"},
        {"x:I", INT64_C(1) << 32, "4294967296 does not fit uint32"},
        {"x:L", -1, "-1 does not fit uint64"},
        {"x:b", 2, "2 does not fit bool: read it as int64"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct proto record = one_feature("x", INT64S(refused[i].value));
        assert_int_equal(decode(refused[i].column, TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err),
                         TFOS_CORRUPT);
        assert_non_null(strstr(err.message, "column x: "));
        assert_non_null(strstr(err.message, refused[i].words));
    }
}

static void long_lists_of_integers(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    int64_t values[90];
    // Runs of small ones, and all lengths of varints, at all alignments.
    for (int i = 0; i < 90; i++)
        values[i] = i % 3 == 0 || i > 60 ? i : (int64_t)(UINT64_C(0x123456789ABCDEF1) >> i % 64);
    values[40] = -1;
    for (size_t begin = 0; begin < 10; begin++) {
        struct proto record = one_feature("x", in_field(3, int64_list(values + begin, 90 - begin)));
        assert_done(decode("x:+l:l", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
        struct ArrowArray *list = batch.children[0];
        assert_int_equal(((const int32_t *)list->buffers[1])[1], 90 - begin);
        assert_memory_equal(list->children[0]->buffers[1], values + begin,
                            (90 - begin) * sizeof(values[0]));
        batch.release(&batch);
    }
}

static void booleans_are_bits(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    struct proto record = one_feature("x", INT64S(1, 0, 0, 1, 1, 0, 1, 1, 0, 1));
    assert_done(decode("x:+l:b", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
    const struct ArrowArray *values = batch.children[0]->children[0];
    assert_int_equal(values->length, 10);
    assert_memory_equal(values->buffers[1], ((const uint8_t[]){0xD9, 0x02}), 2);
    batch.release(&batch);
}

static void s61_s62_what_is_missing_is_null(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    struct proto nothing = {0};
    const struct proto records[] = {one_feature("x", INT64S(7)),
                                    nothing,
                                    one_feature("y", INT64S(8)),
                                    one_feature("x", (struct proto){0}), // a feature of no kind
                                    one_feature("x", in_field(3, (struct proto){0})),
                                    one_feature("x", INT64S(9))};
    assert_done(decode("x:l", TFOS_RECORD_EXAMPLE, records, 6, &batch, &err));
    assert_int_equal(batch.children[0]->null_count, 4);
    assert_int_equal(*(const uint8_t *)batch.children[0]->buffers[0] & 0x3F, 0x21);
    ASSERT_COLUMN(batch.children[0], int64_t, 7, 0, 0, 0, 0, 9);
    batch.release(&batch);
    // An empty list is one.
    assert_done(decode("x:+l:l", TFOS_RECORD_EXAMPLE, records, 6, &batch, &err));
    assert_int_equal(batch.children[0]->null_count, 3);
    assert_int_equal(*(const uint8_t *)batch.children[0]->buffers[0] & 0x3F, 0x31);
    assert_int_equal(((const int32_t *)batch.children[0]->buffers[1])[6], 2);
    batch.release(&batch);
    assert_int_equal(decode("x:l!", TFOS_RECORD_EXAMPLE, records, 6, &batch, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "column x: the record has none"));
}

static void floats_and_texts(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    const struct proto floats[] = {one_feature("x", FLOATS(1.5f)),
                                   one_feature("x", FLOATS(-2.25f))};
    assert_done(decode("x:f", TFOS_RECORD_EXAMPLE, floats, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], float, 1.5f, -2.25f);
    batch.release(&batch);
    assert_done(decode("x:g", TFOS_RECORD_EXAMPLE, floats, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], double, 1.5, -2.25);
    batch.release(&batch);
    assert_done(decode("x:d:5,1", TFOS_RECORD_EXAMPLE, floats, 1, &batch, &err));
    assert_memory_equal(batch.children[0]->buffers[1], ((const int64_t[]){15, 0}), 16);
    batch.release(&batch);
    const struct proto texts[] = {one_feature("x", TEXTS("a", "", "\xC3\xA9")),
                                  one_feature("x", TEXTS("b"))};
    assert_done(decode("x:+l:u", TFOS_RECORD_EXAMPLE, texts, 2, &batch, &err));
    const struct ArrowArray *values = batch.children[0]->children[0];
    assert_memory_equal(batch.children[0]->buffers[1], ((const int32_t[]){0, 3, 4}), 12);
    assert_int_equal(values->length, 4);
    assert_memory_equal(values->buffers[2],
                        "a\xC3\xA9"
                        "b",
                        4);
    batch.release(&batch);
    struct proto binary = one_feature("x", TEXTS("\xFF"));
    assert_int_equal(decode("x:u", TFOS_RECORD_EXAMPLE, &binary, 1, &batch, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "column x: bytes that are no UTF-8: read it as binary"));
    assert_done(decode("x:z", TFOS_RECORD_EXAMPLE, &binary, 1, &batch, &err));
    batch.release(&batch);
}

/// As protobuf's own parser reads what its own writer never writes.
static void unusual_but_allowed(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    struct proto record = {0}, list = {0}, feature = {0}, swapped = {0};
    put_feature(&record, "x", INT64S(1, 2));
    put_feature(&record, "x", INT64S(3)); // the later one counts
    put_varint(&record, 9 << 3 | 3);      // an unknown group, with one in it
    put_varint(&record, 8 << 3 | 3);
    put_varint(&record, 7 << 3);
    put_varint(&record, 300);
    put_varint(&record, 8 << 3 | 4);
    put_varint(&record, 9 << 3 | 4);
    put_varint(&record, 10 << 3 | 1); // and fixed ones
    put_raw(&record, "01234567", 8);
    put_varint(&record, 11 << 3 | 5);
    put_raw(&record, "0123", 4);
    assert_done(decode("x:l", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int64_t, 3);
    batch.release(&batch);
    // Unpacked, packed, unpacked; in two lists of one feature.
    put_varint(&list, 1 << 3);
    put_varint(&list, 4);
    put_field(&list, 1, "\5\6", 2);
    put_varint(&list, 1 << 3);
    put_varint(&list, 7);
    put_message(&feature, 3, list);
    put_message(&feature, 3, int64_list((const int64_t[]){8}, 1));
    record = one_feature("x", feature);
    assert_done(decode("x:+w:5:l", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
    ASSERT_COLUMN(batch.children[0]->children[0], int64_t, 4, 5, 6, 7, 8);
    batch.release(&batch);
    // One of another kind takes the place of those before.
    put_message(&feature, 2, float_list((const float[]){0.5f}, 1));
    record = one_feature("x", feature);
    assert_done(decode("x:f", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
    ASSERT_COLUMN(batch.children[0], float, 0.5f);
    batch.release(&batch);
    // A value in two parts, around its key.
    put_message(&swapped, 2, INT64S(1));
    put_field(&swapped, 1, "x", 1);
    put_message(&swapped, 2, INT64S(2));
    record = in_field(1, in_field(1, swapped));
    assert_done(decode("x:+w:2:l", TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err));
    ASSERT_COLUMN(batch.children[0]->children[0], int64_t, 1, 2);
    batch.release(&batch);
}

static void what_a_column_cannot_hold_is_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    static const struct {
        const char *column;
        const char *words;
    } cases[] = {
        {"x:l", "3 values, where int64 is one: read it as list<item: int64>"},
        {"x:u", "3 values, where string is one: read it as list<item: binary>"},
        {"x:+w:2:l", "a list of 3, where each of fixed_size_list<item: int64>[2] has 2"},
    };
    struct proto record = one_feature("x", INT64S(1, 2, 3));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(decode(cases[i].column, TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err),
                         TFOS_CORRUPT);
        assert_non_null(strstr(err.message, cases[i].words));
    }
    static const char *const types[][2] = {
        {"x:n", "cannot hold null: cast the column"},
        {"x:+l:+l:l", "an Example cannot hold list<item: list<item: int64>>, lists of lists: they "
                      "need the record type SequenceExample"},
        {"x:+l:+l:+l:l", "records cannot hold list<item: list<item: list<item: int64>>>"},
        {"x:d:39,0", "cannot hold decimal128(39, 0)"},
        {"x:d:5,6", "cannot hold decimal128(5, 6)"},
        {"x:e", "cannot hold halffloat"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_int_equal(decode(types[i][0], TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err),
                         TFOS_UNSUPPORTED);
        assert_non_null(strstr(err.message, "column x: "));
        assert_non_null(strstr(err.message, types[i][1]));
    }
}

/// A feature of another kind than its column.
static void values_of_other_kinds_are_converted_or_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    const struct proto none = {0};
    const struct proto numbers[] = {
        one_feature("x", INT64S(1 << 24, -1)), one_feature("x", FLOATS(1.5f)),
        one_feature("x", in_field(1, none)), one_feature("x", in_field(3, none))};
    assert_done(decode("x:+l:f", TFOS_RECORD_EXAMPLE, numbers, 4, &batch, &err));
    assert_int_equal(batch.children[0]->null_count, 0);
    ASSERT_COLUMN(batch.children[0]->children[0], float, 0x1p24f, -1, 1.5f);
    batch.release(&batch);
    assert_done(decode("x:+l:u", TFOS_RECORD_EXAMPLE, numbers, 4, &batch, &err));
    assert_memory_equal(batch.children[0]->children[0]->buffers[2], "16777216-11.5", 13);
    batch.release(&batch);
    const struct proto wide[] = {one_feature("x", INT64S(INT64_MIN)),
                                 one_feature("x", INT64S(INT64_C(1) << 53))};
    assert_done(decode("x:f", TFOS_RECORD_EXAMPLE, wide, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], float, -0x1p63f, 0x1p53f);
    batch.release(&batch);
    assert_done(decode("x:g", TFOS_RECORD_EXAMPLE, wide, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], double, -0x1p63, 0x1p53);
    batch.release(&batch);
    assert_done(decode("x:d:20,1", TFOS_RECORD_EXAMPLE, wide, 2, &batch, &err));
    const int64_t tenths[] = {0, -5, 90071992547409920, 0}; // two words each
    assert_memory_equal(batch.children[0]->buffers[1], tenths, sizeof(tenths));
    batch.release(&batch);
    const struct proto odd = one_feature("x", FLOATS(-NAN));
    assert_done(decode("x:z", TFOS_RECORD_EXAMPLE, &odd, 1, &batch, &err));
    assert_memory_equal(batch.children[0]->buffers[2], "nan", 3);
    batch.release(&batch);
    struct proto damaged = {0};
    put_field(&damaged, 1, "\x80", 1);
    const struct {
        const char *column;
        struct proto feature;
        const char *words;
    } refused[] = {
        {"x:f", INT64S((1 << 24) + 1),
         "column x: the feature is an int64_list, and its 16777217 does not fit float: read it as "
         "double, or as text"},
        {"x:f", INT64S(INT64_MAX), "9223372036854775807 does not fit float"},
        {"x:g", INT64S((INT64_C(1) << 53) + 1),
         "9007199254740993 does not fit double: read it as text"},
        {"x:g", INT64S(INT64_MAX), "9223372036854775807 does not fit double"},
        {"x:d:2,1", INT64S(10), "10 does not fit decimal128(2, 1): read it as text"},
        {"x:l", FLOATS(1),
         "the feature is a float_list, which int64 cannot hold: read it as float"},
        {"x:f", TEXTS("1"),
         "the feature is a bytes_list, which float cannot hold: read it as binary, or as text"},
        {"x:f", in_field(3, damaged), "column x: an int64_list is damaged"},
        {"x:u", in_field(2, damaged), "column x: a float_list is damaged"},
        {"x:f", in_field(1, (struct proto){.data = "\x0A\x05", .size = 2}),
         "column x: a bytes_list is damaged"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct proto record = one_feature("x", refused[i].feature);
        assert_int_equal(decode(refused[i].column, TFOS_RECORD_EXAMPLE, &record, 1, &batch, &err),
                         TFOS_CORRUPT);
        assert_non_null(strstr(err.message, refused[i].words));
    }
}

/// A record that is refused leaves no trace, and the next call can continue behind it.
static void rows_before_a_fault_are_kept(void **state)
{
    (void)state;
    struct tfos_error err;
    static const char *const columns[] = {"a:+l:z", "b:l", "c:+l:f"};
    struct ArrowSchema schema = make_table(columns, 3);
    struct tfos_example_decoder *decoder = NULL;
    struct proto good = {0}, bad = {0};
    put_feature(&good, "a", TEXTS("one", "two"));
    put_feature(&good, "b", INT64S(5));
    put_feature(&good, "c", FLOATS(1, 2, 3));
    put_feature(&bad, "a", TEXTS("lost"));
    put_feature(&bad, "c", TEXTS("1"));
    const struct tfos_view records[] = {
        {good.data, good.size}, {bad.data, bad.size}, {"\x0F", 1}, {good.data, good.size}};
    size_t appended;
    assert_done(tfos_example_decoder_open(&schema, NULL, &decoder, &err));
    assert_int_equal(tfos_example_decoder_append(decoder, records, 4, &appended, &err),
                     TFOS_CORRUPT);
    assert_int_equal(appended, 1);
    assert_non_null(strstr(err.message, "record: column c: "));
    assert_int_equal(tfos_example_decoder_append(decoder, records + 2, 2, &appended, &err),
                     TFOS_CORRUPT);
    assert_int_equal(appended, 0);
    assert_string_equal(err.message,
                        "record: the record is no Example but another message, or none: the "
                        "record type ByteArray gives its bytes as they are");
    assert_done(tfos_example_decoder_append(decoder, records + 3, 1, &appended, &err));
    struct ArrowArray batch;
    assert_done(tfos_example_decoder_take(decoder, &batch, &err));
    assert_int_equal(batch.length, 2);
    assert_int_equal(batch.children[0]->children[0]->length, 4);
    assert_memory_equal(batch.children[0]->children[0]->buffers[2], "onetwoonetwo", 12);
    ASSERT_COLUMN(batch.children[1], int64_t, 5, 5);
    assert_int_equal(batch.children[1]->null_count, 0);
    batch.release(&batch);
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
}

static struct proto sequence(struct proto context, struct proto lists)
{
    struct proto record = {0};
    put_message(&record, 1, context);
    put_message(&record, 2, lists);
    return record;
}

static void sequences_become_lists_of_lists(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    struct proto steps = {0}, lists = {0}, context = {0}, none = {0};
    put_message(&steps, 1, INT64S(1, 2));
    put_message(&steps, 1, in_field(3, (struct proto){0}));
    put_message(&steps, 1, INT64S(3));
    put_message(&lists, 1, entry("x", steps));
    put_message(&context, 1, entry("id", INT64S(9)));
    struct proto records[] = {sequence(context, lists), sequence(context, none)};
    enum tfos_record_type type = TFOS_RECORD_SEQUENCE_EXAMPLE;
    assert_done(decode("x:+l:+L:l", type, records, 2, &batch, &err));
    const struct ArrowArray *outer = batch.children[0], *inner = outer->children[0];
    assert_int_equal(outer->null_count, 1);
    assert_memory_equal(outer->buffers[1], ((const int32_t[]){0, 3, 3}), 12);
    assert_int_equal(inner->length, 3);
    assert_memory_equal(inner->buffers[1], ((const int64_t[]){0, 2, 2, 3}), 32);
    ASSERT_COLUMN(inner->children[0], int64_t, 1, 2, 3);
    batch.release(&batch);
    assert_done(decode("id:l", type, records, 2, &batch, &err));
    ASSERT_COLUMN(batch.children[0], int64_t, 9, 9);
    batch.release(&batch);
    assert_int_equal(decode("id:+l:+l:l", type, records, 2, &batch, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "a context feature, where"));
    assert_int_equal(decode("x:l", type, records, 2, &batch, &err), TFOS_CORRUPT);
    assert_int_equal(decode("x:+l:l", type, records, 2, &batch, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "feature 0 of the feature list has 2 values"));
    // Single values of a feature list may be one list.
    steps = in_field(1, INT64S(4));
    put_message(&steps, 1, INT64S(5));
    lists = in_field(1, entry("x", steps));
    records[0] = sequence(context, lists);
    assert_done(decode("x:+l:l", type, records, 1, &batch, &err));
    ASSERT_COLUMN(batch.children[0]->children[0], int64_t, 4, 5);
    batch.release(&batch);
}

static void plain_records_are_one_column(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray batch;
    struct proto records[2];
    memset(records, 0, sizeof(records));
    put_raw(&records[0], "any\xFF", 4);
    assert_done(decode("bytes:z", TFOS_RECORD_BYTES, records, 2, &batch, &err));
    assert_memory_equal(batch.children[0]->buffers[1], ((const int32_t[]){0, 4, 4}), 12);
    batch.release(&batch);
    assert_int_equal(decode("bytes:l", TFOS_RECORD_BYTES, records, 2, &batch, &err), TFOS_INVALID);
}

/// Every cut of a record is a row, or refused; none reads beyond it.
static void every_cut_of_a_record(void **state)
{
    (void)state;
    struct tfos_error err;
    static const char *const columns[] = {"a:+l:u", "b:+l:i", "c:+l:f"};
    struct proto whole = {0};
    put_feature(&whole, "a", TEXTS("one", "two"));
    put_feature(&whole, "b", INT64S(1, 300, 70000));
    put_feature(&whole, "c", FLOATS(1, 2));
    struct ArrowSchema schema = make_table(columns, 3);
    for (size_t size = 0; size < whole.size; size++) {
        struct tfos_example_decoder *decoder = NULL;
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, whole.data, size);
        uint8_t *exact = realloc(copy, size > 0 ? size : 1); // for the sanitizer to guard
        struct tfos_view record = {exact, size};
        size_t appended;
        assert_done(tfos_example_decoder_open(&schema, NULL, &decoder, &err));
        enum tfos_status status = tfos_example_decoder_append(decoder, &record, 1, &appended, &err);
        assert_true(status == TFOS_OK || status == TFOS_CORRUPT);
        tfos_example_decoder_close(decoder);
        free(exact);
    }
    clear_column(&schema);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(integers_of_all_widths),
    cmocka_unit_test(long_lists_of_integers),
    cmocka_unit_test(booleans_are_bits),
    cmocka_unit_test(s61_s62_what_is_missing_is_null),
    cmocka_unit_test(floats_and_texts),
    cmocka_unit_test(unusual_but_allowed),
    cmocka_unit_test(what_a_column_cannot_hold_is_refused),
    cmocka_unit_test(values_of_other_kinds_are_converted_or_refused),
    cmocka_unit_test(rows_before_a_fault_are_kept),
    cmocka_unit_test(sequences_become_lists_of_lists),
    cmocka_unit_test(plain_records_are_one_column),
    cmocka_unit_test(every_cut_of_a_record),
};

TEST_MAIN(cases)

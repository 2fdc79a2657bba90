// SPDX-License-Identifier: Apache-2.0
// Names of features and columns that differ in letter case.
#include "base/text.h"
#include "record_proto.h"

/// What became of records that were decoded into one column of int64.
struct outcome {
    enum tfos_status status;
    struct tfos_error error;
    int64_t null_count;
    int64_t values[4];
};

/// Decodes into the columns and keeps what the first holds.
static struct outcome decode(const char *const *columns, int64_t column_count, bool ignore_case,
                             const struct proto *records, size_t count)
{
    const struct tfos_example_decoder_options options = {.ignore_case = ignore_case};
    struct ArrowSchema schema = make_table(columns, column_count);
    struct tfos_example_decoder *decoder = NULL;
    struct outcome outcome = {0};
    struct tfos_view views[4];
    struct ArrowArray batch;
    size_t appended;
    for (size_t i = 0; i < count; i++)
        views[i] = (struct tfos_view){records[i].data, records[i].size};
    outcome.status = tfos_example_decoder_open(&schema, &options, &decoder, &outcome.error);
    if (outcome.status == TFOS_OK)
        outcome.status =
            tfos_example_decoder_append(decoder, views, count, &appended, &outcome.error);
    if (outcome.status == TFOS_OK) {
        assert_int_equal(tfos_example_decoder_take(decoder, &batch, NULL), TFOS_OK);
        outcome.null_count = batch.children[0]->null_count;
        memcpy(outcome.values, batch.children[0]->buffers[1], count * sizeof(int64_t));
        batch.release(&batch);
    }
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
    return outcome;
}

static struct proto record_of(const char *name, int64_t value)
{
    struct proto record = {0};
    put_feature(&record, name, INT64S(value));
    return record;
}

static void s80_the_same_but_for_letter_case(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"Label", "lABEL", true},
        {"x", "X", true},
        {"x", "y", false},
        {"Größe", "gRÖßE", true},
        {"ГОД", "год", true},
        {"Σίσυφος", "ΣΊΣΥΦΟΣ", true},
        {"\xC4", "\xE4", false},
        {"a\xFF", "A\xFF", true},
        {"\xF0\x90\x90\x80", "\xF0\x90\x90\xA8", true}, // Deseret
        {"ﬀ", "ff", false},
        {"", "", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tfos__buffer a = {0}, b = {0};
        struct tfos_error err;
        assert_done(
            tfos__text_fold_case((struct tfos_view){cases[i].a, strlen(cases[i].a)}, &a, &err));
        assert_done(
            tfos__text_fold_case((struct tfos_view){cases[i].b, strlen(cases[i].b)}, &b, &err));
        bool is_same = a.end == b.end && (a.end == 0 || memcmp(a.data, b.data, a.end) == 0);
        assert_int_equal(is_same, cases[i].is_same);
        tfos__buffer_clear(&a);
        tfos__buffer_clear(&b);
    }
}

static void s80_ignoring_letter_case_gives_the_values(void **state)
{
    (void)state;
    const char *columns[] = {"Größe:l"};
    const struct proto records[] = {record_of("gRÖßE", 1), record_of("Größe", 2),
                                    record_of("GRÖßE", 3), record_of("gRÖßE", 4)};
    struct outcome outcome = decode(columns, 1, true, records, 4);
    assert_int_equal(outcome.status, TFOS_OK);
    const int64_t expected[] = {1, 2, 3, 4};
    assert_memory_equal(outcome.values, expected, sizeof(expected));
    assert_int_equal(outcome.null_count, 0);
    // The later one of the same name counts, as protobuf has it.
    struct proto twice = record_of("größe", 1);
    put_feature(&twice, "größe", INT64S(7));
    outcome = decode(columns, 1, true, &twice, 1);
    assert_int_equal(outcome.status, TFOS_OK);
    assert_int_equal(outcome.values[0], 7);
}

static void s80_ignoring_letter_case_two_features_are_refused(void **state)
{
    (void)state;
    const char *columns[] = {"x:l"}, *twins[] = {"x:l", "X:l"};
    struct proto both = record_of("x", 1);
    put_feature(&both, "X", INT64S(2));
    struct outcome outcome = decode(columns, 1, true, &both, 1);
    assert_int_equal(outcome.status, TFOS_CORRUPT);
    assert_non_null(strstr(outcome.error.message, "column x: the record has the features x and X"));
    outcome = decode(twins, 2, true, &both, 1);
    assert_int_equal(outcome.status, TFOS_INVALID);
    assert_non_null(
        strstr(outcome.error.message, "the columns x and X differ in letter case only"));
}

static void s80_no_nulls_for_a_name_in_another_case(void **state)
{
    (void)state;
    const char *columns[] = {"Label:l"}, *twins[] = {"x:l", "X:l"};
    const struct proto record = record_of("label", 1), other = record_of("X", 1);
    struct outcome outcome = decode(columns, 1, false, &record, 1);
    assert_int_equal(outcome.status, TFOS_CORRUPT);
    assert_non_null(strstr(outcome.error.message,
                           "column Label: the record has no such feature, but "
                           "label"));
    // Both are columns: each is null where its own feature is not there.
    outcome = decode(twins, 2, false, &other, 1);
    assert_int_equal(outcome.status, TFOS_OK);
    assert_int_equal(outcome.null_count, 1);
    // A record that has both.
    struct proto both = record_of("Label", 1);
    put_feature(&both, "label", INT64S(2));
    outcome = decode(columns, 1, false, &both, 1);
    assert_int_equal(outcome.status, TFOS_OK);
    assert_int_equal(outcome.values[0], 1);
}

static void s80_a_name_that_is_exact(void **state)
{
    (void)state;
    static const char metadata[] = "\1\0\0\0\11\0\0\0tfos.name\5\0\0\0exact";
    const char *column = "x:l";
    const struct proto record = record_of("X", 1);
    struct ArrowSchema schema = make_table(&column, 1);
    struct tfos_view view = {record.data, record.size};
    struct tfos_example_decoder *decoder = NULL;
    struct tfos_error err;
    size_t appended;
    schema.children[0]->metadata = metadata;
    assert_done(tfos_example_decoder_open(&schema, NULL, &decoder, &err));
    assert_done(tfos_example_decoder_append(decoder, &view, 1, &appended, &err));
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
}

// More names than are kept, in records whose order changes.
static void s80_many_other_features(void **state)
{
    (void)state;
    enum { COUNT = 6000 };
    const char *column = "x:l";
    struct ArrowSchema schema = make_table(&column, 1);
    struct tfos_example_decoder *decoder = NULL;
    struct tfos_error err;
    struct ArrowArray batch;
    size_t appended;
    assert_done(tfos_example_decoder_open(&schema, NULL, &decoder, &err));
    for (int i = 0; i < COUNT; i++) {
        struct proto record = {0};
        char name[32];
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof(name), "other%d", (i + k * 7919) % COUNT);
            put_feature(&record, name, INT64S(k));
        }
        put_feature(&record, "x", INT64S(i));
        struct tfos_view view = {record.data, record.size};
        assert_done(tfos_example_decoder_append(decoder, &view, 1, &appended, &err));
    }
    assert_done(tfos_example_decoder_take(decoder, &batch, &err));
    const int64_t *values = batch.children[0]->buffers[1];
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(values[i], i);
    batch.release(&batch);
    const struct proto record = record_of("X", 1);
    struct tfos_view view = {record.data, record.size};
    assert_int_equal(tfos_example_decoder_append(decoder, &view, 1, &appended, &err), TFOS_CORRUPT);
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s80_the_same_but_for_letter_case),
    cmocka_unit_test(s80_ignoring_letter_case_gives_the_values),
    cmocka_unit_test(s80_ignoring_letter_case_two_features_are_refused),
    cmocka_unit_test(s80_no_nulls_for_a_name_in_another_case),
    cmocka_unit_test(s80_a_name_that_is_exact),
    cmocka_unit_test(s80_many_other_features),
};

TEST_MAIN(cases)

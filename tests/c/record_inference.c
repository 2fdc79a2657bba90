// SPDX-License-Identifier: Apache-2.0
// Schemas from records: by one inference or by several that are merged, the same.
#include <tfos/memory.h>

#include "record_proto.h"

#define RECORD_COUNT 5

/// Records of which each tells something that the others do not.
static void make_records(struct proto records[RECORD_COUNT])
{
    memset(records, 0, RECORD_COUNT * sizeof(records[0]));
    put_feature(&records[0], "scalar", INT64S(1));
    put_feature(&records[0], "grows", FLOATS(1));
    put_feature(&records[0], "rare", (struct proto){0});
    put_feature(&records[1], "grows", FLOATS(1, 2));
    put_feature(&records[1], "text", TEXTS("\xC3\xA9"));
    put_feature(&records[1], "bytes", TEXTS("a"));
    put_feature(&records[2], "bytes", TEXTS("\xFF"));
    put_feature(&records[2], "empty", in_field(3, (struct proto){0}));
    put_feature(&records[3], "scalar", INT64S(INT64_MIN));
    put_feature(&records[3], "never", (struct proto){0});
    put_feature(&records[4], "rare", INT64S(5));
    put_feature(&records[4], "empty", INT64S(1));
}

static struct tfos_schema_inference *inference_of(const struct proto *records, size_t count)
{
    struct tfos_error err;
    struct tfos_schema_inference *inference = NULL;
    assert_done(tfos_schema_inference_open(TFOS_RECORD_EXAMPLE, &inference, &err));
    for (size_t i = 0; i < count; i++) {
        struct tfos_view view = {records[i].data, records[i].size};
        size_t seen;
        assert_done(tfos_schema_inference_append(inference, &view, 1, &seen, &err));
        assert_int_equal(seen, 1);
    }
    return inference;
}

/// The schema as text: "name:format name:format".
static void describe(const struct tfos_schema_inference *inference, char text[512])
{
    struct tfos_error err;
    struct ArrowSchema schema;
    size_t size = 0;
    assert_done(tfos_schema_inference_schema(inference, &schema, &err));
    assert_string_equal(schema.format, "+s");
    text[0] = '\0';
    for (int64_t i = 0; i < schema.n_children; i++) {
        const struct ArrowSchema *item = schema.children[i];
        assert_int_equal(item->flags, ARROW_FLAG_NULLABLE);
        size += (size_t)snprintf(text + size, 512 - size, "%s%s", i > 0 ? " " : "", item->name);
        for (;; item = item->children[0]) {
            size += (size_t)snprintf(text + size, 512 - size, ":%s", item->format);
            if (item->n_children == 0)
                break;
        }
    }
    schema.release(&schema);
}

static const char EXPECTED[] = "scalar:l grows:+l:f rare:l text:u bytes:z empty:+l:l";

static void s62_s70_all_records_say_what_a_column_is(void **state)
{
    (void)state;
    struct proto records[RECORD_COUNT];
    char text[512];
    make_records(records);
    struct tfos_schema_inference *inference = inference_of(records, RECORD_COUNT);
    describe(inference, text);
    assert_string_equal(text, EXPECTED);
    tfos_schema_inference_close(inference);
}

/// However the records are shared out, and by way of text.
static void inferences_merge(void **state)
{
    (void)state;
    struct proto records[RECORD_COUNT];
    make_records(records);
    for (size_t cut = 0; cut <= RECORD_COUNT; cut++) {
        struct tfos_error err;
        char text[512], *json = NULL;
        struct tfos_schema_inference *first = inference_of(records, cut), *loaded = NULL;
        struct tfos_schema_inference *second = inference_of(records + cut, RECORD_COUNT - cut);
        assert_done(tfos_schema_inference_save(second, &json, &err));
        assert_done(tfos_schema_inference_load(json, &loaded, &err));
        tfos_free(json);
        assert_done(tfos_schema_inference_merge(first, loaded, &err));
        describe(first, text);
        assert_string_equal(text, EXPECTED);
        tfos_schema_inference_close(first);
        tfos_schema_inference_close(second);
        tfos_schema_inference_close(loaded);
    }
}

#define MIXED_COUNT 4

/// Features that are of several kinds: the common one is that of all their values.
static void make_mixed(struct proto records[MIXED_COUNT])
{
    memset(records, 0, MIXED_COUNT * sizeof(records[0]));
    put_feature(&records[0], "number", INT64S(1));
    put_feature(&records[0], "numbers", INT64S(1, 2));
    put_feature(&records[0], "text", INT64S(1));
    put_feature(&records[0], "bytes", FLOATS(1));
    put_feature(&records[0], "sparse", in_field(1, (struct proto){0}));
    put_feature(&records[0], "empty", in_field(3, (struct proto){0}));
    put_feature(&records[1], "number", FLOATS(1.5f));
    put_feature(&records[1], "numbers", FLOATS(1.5f));
    put_feature(&records[1], "text", FLOATS(1.5f));
    put_feature(&records[1], "bytes", TEXTS("\xFF"));
    put_feature(&records[1], "sparse", INT64S(1));
    put_feature(&records[2], "number", INT64S(2));
    put_feature(&records[2], "text", TEXTS("one"));
    put_feature(&records[2], "empty", in_field(2, (struct proto){0}));
    put_feature(&records[2], "sparse", in_field(2, (struct proto){0}));
    put_feature(&records[3], "text", INT64S(2));
    put_feature(&records[3], "bytes", INT64S(1));
}

static const char MIXED[] = "number:f numbers:+l:f text:u bytes:z sparse:+l:l empty:+l:f";

/// In any order of the records, by one inference and by one of each, merged by way of text.
static void kinds_that_differ_have_a_common_one(void **state)
{
    (void)state;
    struct proto records[MIXED_COUNT];
    make_mixed(records);
    for (int order = 0; order < 4 * 3 * 2; order++) {
        struct proto shuffled[MIXED_COUNT + 1] = {0};
        // The first record names all features, so that columns keep their order.
        put_feature(&shuffled[0], "number", (struct proto){0});
        put_feature(&shuffled[0], "numbers", (struct proto){0});
        put_feature(&shuffled[0], "text", (struct proto){0});
        put_feature(&shuffled[0], "bytes", (struct proto){0});
        put_feature(&shuffled[0], "sparse", (struct proto){0});
        put_feature(&shuffled[0], "empty", (struct proto){0});
        int taken[MIXED_COUNT] = {0}, left = order;
        for (int i = 0; i < MIXED_COUNT; i++) {
            int skip = left % (MIXED_COUNT - i), at = 0;
            left /= MIXED_COUNT - i;
            while (taken[at] || skip-- > 0)
                at++;
            taken[at] = 1;
            shuffled[i + 1] = records[at];
        }
        char text[512];
        struct tfos_schema_inference *inference = inference_of(shuffled, MIXED_COUNT + 1);
        describe(inference, text);
        assert_string_equal(text, MIXED);
        tfos_schema_inference_close(inference);
        inference = inference_of(shuffled, 1);
        for (int i = 1; i <= MIXED_COUNT; i++) {
            struct tfos_error err;
            char *json = NULL;
            struct tfos_schema_inference *one = inference_of(&shuffled[i], 1), *loaded = NULL;
            assert_done(tfos_schema_inference_save(one, &json, &err));
            assert_done(tfos_schema_inference_load(json, &loaded, &err));
            tfos_free(json);
            assert_done(tfos_schema_inference_merge(inference, loaded, &err));
            tfos_schema_inference_close(one);
            tfos_schema_inference_close(loaded);
        }
        describe(inference, text);
        assert_string_equal(text, MIXED);
        tfos_schema_inference_close(inference);
    }
}

static void feature_lists_are_lists_of_lists(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_schema_inference *inference = NULL;
    struct proto steps = {0}, record = {0}, clash = {0}, mixed = {0};
    char text[512];
    size_t seen;
    put_message(&mixed, 1, FLOATS(1));
    put_message(&mixed, 1, INT64S(1, 2));
    put_message(&steps, 1, TEXTS("a"));
    put_message(&record, 2, in_field(1, entry("mixed", mixed)));
    put_message(&record, 1, in_field(1, entry("id", INT64S(1))));
    put_message(&record, 2, in_field(1, entry("words", steps)));
    put_message(&clash, 1, in_field(1, entry("words", TEXTS("a"))));
    struct tfos_view view = {record.data, record.size}, clashing = {clash.data, clash.size};
    assert_done(tfos_schema_inference_open(TFOS_RECORD_SEQUENCE_EXAMPLE, &inference, &err));
    assert_done(tfos_schema_inference_append(inference, &view, 1, &seen, &err));
    describe(inference, text);
    assert_string_equal(text, "mixed:+l:+l:f id:l words:+l:+l:u");
    assert_int_equal(tfos_schema_inference_append(inference, &clashing, 1, &seen, &err),
                     TFOS_CORRUPT);
    assert_non_null(strstr(
        err.message, "feature words: a context feature, and a feature list in another record"));
    tfos_schema_inference_close(inference);
}

static void texts_that_are_no_inferences(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{\"type\": \"example\"}",
        "{\"type\": \"plain\", \"features\": []}",
        "{\"type\": \"example\", \"features\": [{\"name\": \"x\", \"kind\": \"double\"}]}",
        "{\"type\": \"example\", \"features\": [{\"kind\": \"int64\"}]}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tfos_error err;
        struct tfos_schema_inference *inference = NULL;
        assert_int_equal(tfos_schema_inference_load(texts[i], &inference, &err), TFOS_CORRUPT);
        assert_non_null(strstr(err.message, "record: a schema inference's text: "));
        assert_null(inference);
    }
}

static void names_that_are_no_text(void **state)
{
    (void)state;
    struct tfos_error err;
    struct proto record = {0};
    struct tfos_schema_inference *inference = NULL;
    size_t seen;
    put_feature(&record, "\xFF", INT64S(1));
    struct tfos_view view = {record.data, record.size};
    assert_done(tfos_schema_inference_open(TFOS_RECORD_EXAMPLE, &inference, &err));
    assert_int_equal(tfos_schema_inference_append(inference, &view, 1, &seen, &err), TFOS_CORRUPT);
    assert_string_equal(err.message, "record: a feature's name is no UTF-8 text");
    tfos_schema_inference_close(inference);
    assert_int_equal(tfos_schema_inference_open(TFOS_RECORD_BYTES, &inference, &err), TFOS_INVALID);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s62_s70_all_records_say_what_a_column_is),
    cmocka_unit_test(inferences_merge),
    cmocka_unit_test(kinds_that_differ_have_a_common_one),
    cmocka_unit_test(feature_lists_are_lists_of_lists),
    cmocka_unit_test(texts_that_are_no_inferences),
    cmocka_unit_test(names_that_are_no_text),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Spark's schema JSON as Arrow schemas: every type, what is refused and how it is named, hostile
// text, and memory that runs out.
#include <stdlib.h>
#include <string.h>
#include <tfos/spark_schema.h>

#include "base/memory.h"
#include "harness.h"

static struct tfos_error err;

/// "name:format?(children)", the question mark where null may stand.
static void describe(const struct ArrowSchema *schema, char *text, size_t size)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s:%s%s", schema->name, schema->format,
             schema->flags & ARROW_FLAG_NULLABLE ? "?" : "");
    for (int64_t i = 0; i < schema->n_children; i++) {
        strncat(text, i ? " " : "(", size - strlen(text) - 1);
        describe(schema->children[i], text, size);
    }
    if (schema->n_children)
        strncat(text, ")", size - strlen(text) - 1);
}

static void assert_schema(const char *json, const char *expected)
{
    struct ArrowSchema schema;
    char text[1024] = "";

    assert_done(tfos_spark_schema_parse(json, &schema, &err));
    describe(&schema, text, sizeof(text));
    schema.release(&schema);
    assert_null(schema.release);
    assert_string_equal(text, expected);
}

/// The schema of one column "c" of this type.
static void assert_type(const char *type, const char *expected)
{
    char json[1024], text[1024];

    snprintf(json, sizeof(json),
             "{\"type\":\"struct\",\"fields\":[{\"name\":\"c\",\"type\":%s,\"nullable\":true,"
             "\"metadata\":{}}]}",
             type);
    snprintf(text, sizeof(text), ":+s(c:%s)", expected);
    assert_schema(json, text);
}

static void assert_refused(const char *json, enum tfos_status status, const char *words)
{
    struct ArrowSchema schema = {.format = "untouched"};

    memset(&err, 0, sizeof(err));
    assert_int_equal(tfos_spark_schema_parse(json, &schema, &err), status);
    assert_string_equal(schema.format, "untouched");
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void keeps_how_a_field_is_encoded(void **state)
{
    static const char json[] = "{\"type\":\"struct\",\"fields\":["
                               "{\"name\":\"a\",\"type\":\"double\",\"nullable\":true,"
                               "\"metadata\":{\"tfos.encoding\":\"exact\",\"other\":1}},"
                               "{\"name\":\"b\",\"type\":\"double\",\"nullable\":true,"
                               "\"metadata\":{\"tfos.encoding\":7}}]}";
    struct ArrowSchema schema;
    char value[16];
    (void)state;

    assert_done(tfos_spark_schema_parse(json, &schema, &err));
    assert_true(tfos_arrow_metadata_find(schema.children[0]->metadata, "tfos.encoding", value,
                                         sizeof(value)));
    assert_string_equal(value, "exact");
    assert_null(schema.children[1]->metadata);
    schema.release(&schema);
}

static void reads_types_of_one_word(void **state)
{
    static const char *const pairs[][2] = {
        {"boolean", "b"},
        {"byte", "c"},
        {"short", "s"},
        {"integer", "i"},
        {"long", "l"},
        {"float", "f"},
        {"double", "g"},
        {"string", "u"},
        {"string collate UNICODE_CI", "u"},
        {"char(3)", "u"},
        {"varchar(65535)", "u"},
        {"binary", "z"},
        {"date", "tdD"},
        {"timestamp", "tsu:UTC"},
        {"timestamp_ntz", "tsu:"},
        {"time(6)", "ttn"},
        {"decimal", "d:10,0"},
        {"decimal(38,18)", "d:38,18"},
        {"decimal(1,0)", "d:1,0"},
        {"interval year to month", "tiM"},
        {"interval month", "tiM"},
        {"interval day to second", "tDu"},
        {"interval hour", "tDu"},
        {"interval", "tin"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char type[64], expected[64];
        snprintf(type, sizeof(type), "\"%s\"", pairs[i][0]);
        snprintf(expected, sizeof(expected), "%s?", pairs[i][1]);
        assert_type(type, expected);
    }
}

static void reads_nested_types(void **state)
{
    (void)state;

    assert_type("{\"type\":\"array\",\"elementType\":\"float\",\"containsNull\":false}",
                "+l?(element:f)");
    assert_type("{\"type\":\"array\",\"elementType\":{\"type\":\"array\",\"elementType\":\"short\","
                "\"containsNull\":true},\"containsNull\":true}",
                "+l?(element:+l?(element:s?))");
    assert_type("{\"type\":\"map\",\"keyType\":\"string\",\"valueType\":\"long\","
                "\"valueContainsNull\":true}",
                "+m?(entries:+s(key:u value:l?))");
    assert_type("{\"type\":\"struct\",\"fields\":[]}", "+s?");
    assert_type("{\"type\":\"struct\",\"fields\":[{\"name\":\"x.y\",\"type\":\"date\",\"nullable\":"
                "false,\"metadata\":{\"k\":[1]}},{\"name\":\"\",\"type\":\"binary\"}]}",
                "+s?(x.y:tdD :z?)");
}

static void reads_a_vector_as_what_it_stores(void **state)
{
    (void)state;

    assert_type("{\"type\":\"udt\",\"class\":\"org.apache.spark.ml.linalg.VectorUDT\",\"pyClass\":"
                "\"pyspark.ml.linalg.VectorUDT\",\"sqlType\":{\"type\":\"struct\",\"fields\":["
                "{\"name\":\"type\",\"type\":\"byte\",\"nullable\":false,\"metadata\":{}},"
                "{\"name\":\"size\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{}},"
                "{\"name\":\"indices\",\"type\":{\"type\":\"array\",\"elementType\":\"integer\","
                "\"containsNull\":false},\"nullable\":true,\"metadata\":{}},"
                "{\"name\":\"values\",\"type\":{\"type\":\"array\",\"elementType\":\"double\","
                "\"containsNull\":false},\"nullable\":true,\"metadata\":{}}]}}",
                "+s?(type:c size:i? indices:+l?(element:i) values:+l?(element:g))");
}

static void names_the_column_and_type_that_it_refuses(void **state)
{
    static const char *const types[] = {
        "variant",
        "object",
        "decimal(39,0)",
        "decimal(5,6)",
        "decimal(5,-2)",
        "decimal(0,0)",
        "decimal(5)",
        "void",
        "decimal(5,2",
        "decimal(5,2) x",
        "decimal(,)",
        "timestamp_nanos",
        "",
        "geometry(4326)",
        "decimal(99999999999999999999,0)",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char json[512], words[128];
        snprintf(json, sizeof(json),
                 "{\"type\":\"struct\",\"fields\":[{\"name\":\"person\",\"type\":{\"type\":"
                 "\"struct\",\"fields\":[{\"name\":\"m\",\"type\":{\"type\":\"map\",\"keyType\":"
                 "\"string\",\"valueType\":\"%s\"}}]}}]}",
                 types[i]);
        snprintf(words, sizeof(words), "spark: column person.m.value: the type %s cannot be fed",
                 types[i]);
        assert_refused(json, TFOS_UNSUPPORTED, words);
    }
}

static void refuses_what_is_no_schema(void **state)
{
    (void)state;

    assert_refused("", TFOS_CORRUPT, "json: cannot parse 0 bytes");
    assert_refused("[]", TFOS_CORRUPT, "expected an object");
    assert_refused("{}", TFOS_CORRUPT, "the row: expected a struct");
    assert_refused("{\"type\":\"array\",\"elementType\":\"long\"}", TFOS_CORRUPT,
                   "expected a struct");
    assert_refused("{\"type\":\"struct\"}", TFOS_CORRUPT, "the row: expected a list of fields");
    assert_refused("{\"type\":\"struct\",\"fields\":[1]}", TFOS_CORRUPT, "fields with names");
    assert_refused("{\"type\":\"struct\",\"fields\":[{\"name\":\"a\"}]}", TFOS_CORRUPT,
                   "spark: schema: a: expected a type");
    assert_refused(
        "{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"udt\"}}]}",
        TFOS_CORRUPT, "a: expected a type");
    assert_refused("{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":7}}]}",
                   TFOS_UNSUPPORTED, "column a: the type  cannot be fed");
}

/// `count` times `open`, then `core`, then as often `close`, as the type of column "deep".
static char *nest(const char *open, const char *core, const char *close, size_t count)
{
    static const char head[] = "{\"type\":\"struct\",\"fields\":[{\"name\":\"deep\",\"type\":";
    struct tfos__buffer text = {0};

    assert_done(tfos__buffer_append(&text, head, sizeof(head) - 1, &err));
    for (size_t i = 0; i < count; i++)
        assert_done(tfos__buffer_append(&text, open, strlen(open), &err));
    assert_done(tfos__buffer_append(&text, core, strlen(core), &err));
    for (size_t i = 0; i < count; i++)
        assert_done(tfos__buffer_append(&text, close, strlen(close), &err));
    assert_done(tfos__buffer_append(&text, "}]}", 4, &err));
    return (char *)text.data;
}

static void limits_depth_and_size(void **state)
{
    static const char *const opens[] = {"{\"type\":\"array\",\"elementType\":",
                                        "{\"type\":\"udt\",\"sqlType\":"};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        char *json = nest(opens[i], "\"long\"", "}", 100);
        assert_refused(json, TFOS_UNSUPPORTED, "column deep");
        tfos__free(json);
        json = nest(opens[i], "\"long\"", "}", 100000);
        assert_refused(json, TFOS_CORRUPT, "depth");
        tfos__free(json);
    }
    char *wide = nest("\"long\"},{\"name\":\"x\",\"type\":", "\"long\"", "", 70000);
    assert_refused(wide, TFOS_UNSUPPORTED, "more than 65536 fields");
    tfos__free(wide);
}

static void children_can_be_moved_away(void **state)
{
    struct ArrowSchema schema, moved;
    (void)state;

    assert_done(tfos_spark_schema_parse(
        "{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"array\","
        "\"elementType\":\"long\"}},{\"name\":\"b\",\"type\":\"long\"}]}",
        &schema, &err));
    moved = *schema.children[0];
    schema.children[0]->release = NULL;
    schema.release(&schema);
    assert_string_equal(moved.children[0]->format, "l");
    moved.release(&moved);
}

static void leaves_nothing_when_memory_runs_out(void **state)
{
    static const char json[] =
        "{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"map\",\"keyType\":"
        "\"string\",\"valueType\":{\"type\":\"array\",\"elementType\":\"long\"}}}]}";
    enum tfos_status status = TFOS_NO_MEMORY;
    (void)state;

    for (long n = 1; status != TFOS_OK; n++) {
        struct ArrowSchema schema;
        assert_true(n < 100);
        tfos__memory_fail_at(n);
        status = tfos_spark_schema_parse(json, &schema, &err);
        tfos__memory_fail_at(0);
        if (status == TFOS_OK)
            schema.release(&schema);
        else
            assert_int_equal(status, TFOS_NO_MEMORY);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(keeps_how_a_field_is_encoded),
    cmocka_unit_test(reads_types_of_one_word),
    cmocka_unit_test(reads_nested_types),
    cmocka_unit_test(reads_a_vector_as_what_it_stores),
    cmocka_unit_test(names_the_column_and_type_that_it_refuses),
    cmocka_unit_test(refuses_what_is_no_schema),
    cmocka_unit_test(limits_depth_and_size),
    cmocka_unit_test(children_can_be_moved_away),
    cmocka_unit_test(leaves_nothing_when_memory_runs_out),
};

TEST_MAIN(cases)

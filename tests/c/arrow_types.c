// SPDX-License-Identifier: Apache-2.0
// The table of types: what is read is written again, and what is in no table is refused with its
// name.
#include <string.h>

#include "arrow/arrow.h"
#include "harness.h"

static struct tfos_error err;

static const struct {
    const char *format, *arrow, *spark;
} LEAVES[] = {
    {"n", "null", "void"},
    {"b", "bool", "boolean"},
    {"c", "int8", "tinyint"},
    {"C", "uint8", "uint8"},
    {"s", "int16", "smallint"},
    {"S", "uint16", "uint16"},
    {"i", "int32", "int"},
    {"I", "uint32", "uint32"},
    {"l", "int64", "bigint"},
    {"L", "uint64", "uint64"},
    {"e", "halffloat", "float16"},
    {"f", "float", "float"},
    {"g", "double", "double"},
    {"u", "string", "string"},
    {"U", "large_string", "string"},
    {"z", "binary", "binary"},
    {"Z", "large_binary", "binary"},
    {"w:0", "fixed_size_binary[0]", "fixed_size_binary[0]"},
    {"w:16", "fixed_size_binary[16]", "fixed_size_binary[16]"},
    {"d:10,2", "decimal128(10, 2)", "decimal(10,2)"},
    {"d:5,-2,32", "decimal32(5, -2)", "decimal(5,-2)"},
    {"d:76,0,256", "decimal256(76, 0)", "decimal(76,0)"},
    {"tdD", "date32[day]", "date"},
    {"tdm", "date64[ms]", "date64[ms]"},
    {"tts", "time32[s]", "time32[s]"},
    {"ttn", "time64[ns]", "time"},
    {"tss:", "timestamp[s]", "timestamp[s]"},
    {"tsu:UTC", "timestamp[us, tz=UTC]", "timestamp"},
    {"tsu:", "timestamp[us]", "timestamp_ntz"},
    {"tsn:Europe/Vienna", "timestamp[ns, tz=Europe/Vienna]", "timestamp[ns, tz=Europe/Vienna]"},
    {"tDm", "duration[ms]", "duration[ms]"},
    {"tDu", "duration[us]", "interval day to second"},
    {"tiM", "month_interval", "interval year to month"},
    {"tin", "month_day_nano_interval", "interval"},
};

static void each_type_is_written_as_it_was_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(LEAVES) / sizeof(LEAVES[0]); i++) {
        const struct ArrowSchema schema = {.format = LEAVES[i].format};
        struct tfos__arrow_type type;
        char text[TFOS__ARROW_TEXT_SIZE];
        assert_done(tfos__arrow_type_read(&type, &schema, &err));
        assert_string_equal(tfos__arrow_type_format(&type, text), LEAVES[i].format);
        assert_string_equal(tfos__arrow_type_name(&type, TFOS_TYPE_NAMES_ARROW, text),
                            LEAVES[i].arrow);
        assert_string_equal(tfos__arrow_type_name(&type, TFOS_TYPE_NAMES_SPARK, text),
                            LEAVES[i].spark);
    }
}

static void lists_and_structs_are_written_as_they_were_read(void **state)
{
    static const char *const formats[] = {"+l", "+L", "+w:3", "+w:0", "+s"};
    struct ArrowSchema child = {.format = "i"}, *children[] = {&child};
    struct tfos__arrow_type type;
    char text[TFOS__ARROW_TEXT_SIZE];
    (void)state;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const struct ArrowSchema schema = {
            .format = formats[i], .n_children = 1, .children = children};
        assert_done(tfos__arrow_type_read(&type, &schema, &err));
        assert_string_equal(tfos__arrow_type_format(&type, text), formats[i]);
    }
}

static void types_are_found_by_what_they_are(void **state)
{
    static const struct {
        enum tfos__arrow_kind kind;
        int width;
        char unit;
        const char *format;
    } types[] = {
        {TFOS__ARROW_INT, 64, 0, "l"},
        {TFOS__ARROW_UINT, 8, 0, "C"},
        {TFOS__ARROW_FLOAT, 16, 0, "e"},
        {TFOS__ARROW_TEXT, 32, 0, "u"},
        {TFOS__ARROW_BINARY, 64, 0, "Z"},
        {TFOS__ARROW_LIST, 64, 0, "+L"},
        {TFOS__ARROW_TIMESTAMP, 64, 'm', "tsm:"},
        {TFOS__ARROW_DATE, 32, 'D', "tdD"},
        {TFOS__ARROW_STRUCT, 0, 0, "+s"},
        {TFOS__ARROW_NULL, 0, 0, "n"},
    };
    char text[TFOS__ARROW_TEXT_SIZE];
    (void)state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct tfos__arrow_type type =
            tfos__arrow_type_of(types[i].kind, types[i].width, types[i].unit);
        assert_string_equal(tfos__arrow_type_format(&type, text), types[i].format);
    }
    struct tfos__arrow_type list = tfos__arrow_fixed_list_type(7);
    struct tfos__arrow_type bytes = tfos__arrow_fixed_binary_type(5);
    assert_string_equal(tfos__arrow_type_format(&list, text), "+w:7");
    assert_string_equal(tfos__arrow_type_format(&bytes, text), "w:5");
}

static void expect_refused(const struct ArrowSchema *schema, enum tfos_status status,
                           const char *words)
{
    struct tfos__arrow_type type;

    assert_int_equal(tfos__arrow_type_read(&type, schema, &err), status);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void unknown_types_are_refused_by_their_format(void **state)
{
    static const char *const formats[] = {
        "",
        "x",
        "bb",
        "+vl",
        "+r",
        "+ud:0",
        "w:",
        "w:-1",
        "w:1,",
        "w: 1",
        "w:99999999999",
        "+w:",
        "+w:x",
        "d:10",
        "d:10,",
        "d:,2",
        "d:10,x",
        "d:10,2,",
        "d:10,2,24",
        "d:10,2,512",
        "d:10,2,32,",
        "d:9999999999999999999999,2",
        "tsx:",
        "ts",
        "tsu",
        "tdx",
        "d:0,0",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const struct ArrowSchema schema = {.format = formats[i]};
        char words[64];
        snprintf(words, sizeof(words), "its type, %s, is not known", formats[i]);
        expect_refused(&schema, TFOS_UNSUPPORTED, words);
    }
}

static void types_that_are_not_read_are_refused_by_their_name(void **state)
{
    struct ArrowSchema schema = {.format = "vu"};
    (void)state;

    expect_refused(&schema, TFOS_UNSUPPORTED, "its type, string_view, is not known");
    schema.format = "vz";
    expect_refused(&schema, TFOS_UNSUPPORTED, "its type, binary_view, is not known");
    schema.format = "tiD";
    expect_refused(&schema, TFOS_UNSUPPORTED, "its type, day_time_interval, is not known");
}

static void other_children_than_the_type_has_are_refused(void **state)
{
    struct ArrowSchema child = {.format = "i"}, *children[] = {&child, &child};
    struct ArrowSchema schema = {.format = "+l"};
    (void)state;

    expect_refused(&schema, TFOS_INVALID, "array, with 0 columns within it");
    schema = (struct ArrowSchema){.format = "i", .n_children = 1, .children = children};
    expect_refused(&schema, TFOS_INVALID, "int, with 1 columns within it");
    schema.format = "+m";
    expect_refused(&schema, TFOS_INVALID, "map");
    child = (struct ArrowSchema){.format = "+s", .n_children = 1, .children = children};
    expect_refused(&schema, TFOS_INVALID, "map");
    schema = (struct ArrowSchema){.format = "i", .dictionary = &child};
    expect_refused(&schema, TFOS_UNSUPPORTED, "dictionary");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(each_type_is_written_as_it_was_read),
    cmocka_unit_test(lists_and_structs_are_written_as_they_were_read),
    cmocka_unit_test(types_are_found_by_what_they_are),
    cmocka_unit_test(unknown_types_are_refused_by_their_format),
    cmocka_unit_test(types_that_are_not_read_are_refused_by_their_name),
    cmocka_unit_test(other_children_than_the_type_has_are_refused),
};

TEST_MAIN(cases)

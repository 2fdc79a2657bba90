// SPDX-License-Identifier: Apache-2.0
// Whole types as messages have them.
#include "arrow/arrow.h"
#include "record_proto.h"

static void s95_types_have_the_names_that_people_know(void **state)
{
    (void)state;
    static const struct {
        const char *column, *arrow, *spark;
    } cases[] = {
        {"x:b", "bool", "boolean"},
        {"x:c", "int8", "tinyint"},
        {"x:l", "int64", "bigint"},
        {"x:f", "float", "float"},
        {"x:U", "large_string", "string"},
        {"x:d:10,2", "decimal128(10, 2)", "decimal(10,2)"},
        {"x:d:40,2,256", "decimal256(40, 2)", "decimal(40,2)"},
        {"x:tdD", "date32[day]", "date"},
        {"x:tsu:UTC", "timestamp[us, tz=UTC]", "timestamp"},
        {"x:tsu:", "timestamp[us]", "timestamp_ntz"},
        {"x:tsn:", "timestamp[ns]", "timestamp[ns]"},
        {"x:tDu", "duration[us]", "interval day to second"},
        {"x:I", "uint32", "uint32"},
        {"x:w:16", "fixed_size_binary[16]", "fixed_size_binary[16]"},
        {"x:+l:+l:i", "list<item: list<item: int32>>", "array<array<int>>"},
        {"x:+L:u", "large_list<item: string>", "array<string>"},
        {"x:+w:3:g", "fixed_size_list<item: double>[3]", "array<double>"},
        {"x:?", "?", "?"},
    };
    char text[128];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ArrowSchema schema;
        make_column(cases[i].column, &schema);
        assert_string_equal(
            tfos_arrow_type_text(&schema, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)),
            cases[i].arrow);
        assert_string_equal(
            tfos_arrow_type_text(&schema, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)),
            cases[i].spark);
        clear_column(&schema);
    }
}

static void s95_structs_maps_and_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const columns[] = {"a:i", "b:+l:u"};
    struct ArrowSchema table = make_table(columns, 2), *pair = &table;
    struct ArrowSchema map = {.format = "+m", .n_children = 1, .children = &pair};
    struct ArrowSchema values = {.format = "u"};
    struct ArrowSchema coded = {.format = "i", .dictionary = &values};
    char text[64], small[12];
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)),
                        "struct<a: int32, b: list<item: string>>");
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)),
                        "struct<a:int,b:array<string>>");
    assert_string_equal(tfos_arrow_type_text(&map, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)),
                        "map<int,array<string>>");
    assert_string_equal(tfos_arrow_type_text(&coded, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)),
                        "dictionary<values=string>");
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_SPARK, small, sizeof(small)),
                        "struct<a:in");
    clear_column(&table);
}

static void values_in_lists(void **state)
{
    (void)state;
    const struct tfos__arrow_type value = tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
    char text[32];
    assert_string_equal(
        tfos__arrow_lists_text(&value, 0, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)), "int64");
    assert_string_equal(
        tfos__arrow_lists_text(&value, 2, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)),
        "list<item: list<item: int64>>");
    assert_string_equal(
        tfos__arrow_lists_text(&value, 2, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)),
        "array<array<bigint>>");
    assert_string_equal(tfos__arrow_lists_text(&value, 2, TFOS_TYPE_NAMES_SPARK, text, 10),
                        "array<arr");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s95_types_have_the_names_that_people_know),
    cmocka_unit_test(s95_structs_maps_and_what_does_not_fit),
    cmocka_unit_test(values_in_lists),
};

TEST_MAIN(cases)

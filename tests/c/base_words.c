// SPDX-License-Identifier: Apache-2.0
// Types and numbers as messages have them.
#include "record_proto.h"

#include "base/number.h"

#include <math.h>

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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ArrowSchema schema;
        make_column(cases[i].column, &schema);
        assert_string_equal(tfos_arrow_type_text(&schema, TFOS_TYPE_NAMES_ARROW, text, sizeof text),
                            cases[i].arrow);
        assert_string_equal(tfos_arrow_type_text(&schema, TFOS_TYPE_NAMES_SPARK, text, sizeof text),
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
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_ARROW, text, sizeof text),
                        "struct<a: int32, b: list<item: string>>");
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_SPARK, text, sizeof text),
                        "struct<a:int,b:array<string>>");
    assert_string_equal(tfos_arrow_type_text(&map, TFOS_TYPE_NAMES_SPARK, text, sizeof text),
                        "map<int,array<string>>");
    assert_string_equal(tfos_arrow_type_text(&coded, TFOS_TYPE_NAMES_ARROW, text, sizeof text),
                        "dictionary<values=string>");
    assert_string_equal(tfos_arrow_type_text(&table, TFOS_TYPE_NAMES_SPARK, small, sizeof small),
                        "struct<a:in");
    clear_column(&table);
}

static void s95_numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {1.1, "1.1"},           {0.1, "0.1"},        {100000, "100000"},
        {1e300, "1e+300"},      {-INFINITY, "-inf"}, {0.1 + 0.2, "0.30000000000000004"},
        {16777217, "16777217"},
    };
    char text[TFOS__NUMBER_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tfos__number_print(cases[i].number, text), cases[i].text);
    assert_string_equal(tfos__float_print(1.1f, text), "1.1");
    assert_string_equal(tfos__float_print(16777216.0f, text), "16777216");
    assert_string_equal(tfos__float_print(NAN, text), "nan");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s95_types_have_the_names_that_people_know),
    cmocka_unit_test(s95_structs_maps_and_what_does_not_fit),
    cmocka_unit_test(s95_numbers_have_the_fewest_digits),
};

TEST_MAIN(cases)

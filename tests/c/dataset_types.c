// SPDX-License-Identifier: Apache-2.0
// What becomes of each type: docs/types.md, cell by cell, and what Python's rows become.
#include "dataset_fixture.h"

static void numbers_keep_their_types(void **state)
{
    static const struct {
        const char *format;
        enum tfos_dtype dtype;
        size_t size;
    } types[] = {
        {"c", TFOS_DTYPE_INT8, 1},     {"C", TFOS_DTYPE_UINT8, 1},
        {"s", TFOS_DTYPE_INT16, 2},    {"S", TFOS_DTYPE_UINT16, 2},
        {"i", TFOS_DTYPE_INT32, 4},    {"I", TFOS_DTYPE_UINT32, 4},
        {"l", TFOS_DTYPE_INT64, 8},    {"L", TFOS_DTYPE_UINT64, 8},
        {"e", TFOS_DTYPE_FLOAT16, 2},  {"f", TFOS_DTYPE_FLOAT32, 4},
        {"g", TFOS_DTYPE_FLOAT64, 8},  {"tdD", TFOS_DTYPE_INT32, 4},
        {"tdm", TFOS_DTYPE_INT64, 8},  {"tts", TFOS_DTYPE_INT32, 4},
        {"ttu", TFOS_DTYPE_INT64, 8},  {"tsu:UTC", TFOS_DTYPE_INT64, 8},
        {"tsn:", TFOS_DTYPE_INT64, 8}, {"tDu", TFOS_DTYPE_INT64, 8},
        {"tiM", TFOS_DTYPE_INT32, 4},
    };
    uint8_t values[80];

    (void)state;
    for (size_t i = 0; i < sizeof(values); i++)
        values[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct tfos_dataset_options options = {0};
        struct made_column batch, column;
        struct scene scene;
        make_column(&column, "x", types[i].format, 10, values, NULL);
        make_batch(&batch, 10);
        add_child(&batch, &column);
        scene_open(&scene, &batch, &options);
        assert_int_equal(scene.specs.list[0].dtype, types[i].dtype);
        assert_int_equal(scene.tensors[0].dtype, types[i].dtype);
        assert_int_equal(scene.tensors[0].size, 10 * types[i].size);
        assert_memory_equal(scene.tensors[0].data, values, 10 * types[i].size);
        scene_close(&scene);
    }
}

static void calendar_intervals_have_three_parts(void **state)
{
    static const struct {
        int32_t months, days;
        int64_t nanoseconds;
    } values[] = {{1, 2, 3999}, {-14, 0, -5000}, {0, 7, INT64_MAX}};
    static const uint8_t validity[] = {5};
    static const char *const names[] = {"months", "days", "microseconds"};
    struct tfos_dataset_options options = {.null_value = "9", .shuffle_rows = 0};
    struct made_column batch, column;
    struct scene scene;

    (void)state;
    for (int shuffles = 0; shuffles < 2; shuffles++) {
        make_column(&column, "x", "tin", 3, values, validity);
        make_batch(&batch, 3);
        add_child(&batch, &column);
        options.shuffle_rows = shuffles; // one row at a time, in order
        scene_open(&scene, &batch, &options);
        assert_int_equal(scene.specs.count, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(scene.specs.list[i].depth, 2);
            assert_string_equal(scene.specs.list[i].path[1], names[i]);
            assert_int_equal(scene.specs.list[i].dtype,
                             i < 2 ? TFOS_DTYPE_INT32 : TFOS_DTYPE_INT64);
        }
        const int32_t *months = scene.tensors[0].data, *days = scene.tensors[1].data;
        const int64_t *microseconds = scene.tensors[2].data;
        assert_int_equal(months[0] + months[1] + months[2], 1 + 9 + 0);
        assert_int_equal(days[0] + days[1] + days[2], 2 + 9 + 7);
        assert_int_equal(microseconds[0] + microseconds[1] + microseconds[2],
                         3 + 9 + INT64_MAX / 1000);
        scene_close(&scene);
    }
}

static void booleans_become_bytes(void **state)
{
    static const uint8_t bits[] = {0x35, 0x02}, expected[] = {1, 0, 1, 0, 1, 1, 0, 0, 0, 1};
    struct tfos_dataset_options options = {0};
    struct made_column batch, column;
    struct scene scene;

    (void)state;
    make_column(&column, "x", "b", 10, bits, NULL);
    make_batch(&batch, 10);
    add_child(&batch, &column);
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.tensors[0].dtype, TFOS_DTYPE_BOOL);
    assert_memory_equal(scene.tensors[0].data, expected, 10);
    scene_close(&scene);
}

static void decimals_become_doubles(void **state)
{
    static const int64_t wide[] = {123456789012345,  0,  -1, -1, 5,         0,
                                   -999999999999999, -1, 0,  1,  INT64_MIN, INT64_MIN};
    static const int32_t narrow[] = {-1234, 0, 1, 99, 12, 7};
    struct tfos_dataset_options options = {0};
    struct made_column batch, a, b, c;
    struct scene scene;

    (void)state;
    make_column(&a, "a", "d:38,2", 6, wide, NULL);
    make_column(&b, "b", "d:9,3,32", 6, narrow, NULL);
    make_column(&c, "c", "d:9,-2,32", 6, narrow, NULL);
    make_batch(&batch, 6);
    add_child(&batch, &a);
    add_child(&batch, &b);
    add_child(&batch, &c);
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.list[0].dtype, TFOS_DTYPE_FLOAT64);
    assert_true(double_at(&scene.tensors[0], 0) == 1234567890123.45);
    assert_true(double_at(&scene.tensors[0], 1) == -0.01);
    assert_true(double_at(&scene.tensors[0], 2) == 0.05);
    assert_true(double_at(&scene.tensors[0], 3) == -9999999999999.99);
    assert_true(double_at(&scene.tensors[0], 4) == 18446744073709551616.0 / 100);
    assert_true(double_at(&scene.tensors[0], 5) < -1.6e36);
    assert_true(double_at(&scene.tensors[1], 0) == -1.234);
    assert_true(double_at(&scene.tensors[1], 3) == 0.099);
    assert_true(double_at(&scene.tensors[2], 3) == 9900);
    scene_close(&scene);
}

static void strings_of_each_width(void **state)
{
    static const int32_t narrow[] = {0, 1, 1, 4};
    static const int64_t wide[] = {0, 1, 1, 4};
    static const char bytes[] = "abcdefghi";
    struct tfos_dataset_options options = {0};
    struct made_column batch, u, z, large, block;
    struct scene scene;

    (void)state;
    make_text(&u, "u", "u", 3, narrow, bytes, NULL);
    make_text(&z, "z", "Z", 3, wide, bytes, NULL);
    make_text(&large, "large", "U", 3, wide, bytes, NULL);
    make_column(&block, "block", "w:3", 3, bytes, NULL);
    make_batch(&batch, 3);
    add_child(&batch, &u);
    add_child(&batch, &z);
    add_child(&batch, &large);
    add_child(&batch, &block);
    scene_open(&scene, &batch, &options);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(scene.specs.list[i].dtype, TFOS_DTYPE_STRING);
        check_text(&scene.tensors[i], 0, "a");
        check_text(&scene.tensors[i], 1, "");
        check_text(&scene.tensors[i], 2, "bcd");
    }
    check_text(&scene.tensors[3], 0, "abc");
    check_text(&scene.tensors[3], 2, "ghi");
    scene_close(&scene);
}

// A column of lists of doubles 0, 1, 2, ...
static void make_lists(struct made_column *batch, struct made_column *list,
                       struct made_column *items, int64_t rows, const int32_t *offsets)
{
    static double values[64];

    for (int i = 0; i < 64; i++)
        values[i] = i;
    make_column(items, "item", "g", offsets[rows], values, NULL);
    make_column(list, "x", "+l", rows, offsets, NULL);
    add_child(list, items);
    make_batch(batch, rows);
    add_child(batch, list);
}

static void lists_of_one_length_are_dense(void **state)
{
    static const int32_t offsets[] = {0, 6, 12, 18};
    static const int64_t shape[] = {2, 3};
    struct tfos_dataset_column column = {.name = "x", .shape = shape, .rank = 2};
    struct tfos_dataset_options options = {0};
    struct made_column batch, list, items;
    struct scene scene;

    (void)state;
    make_lists(&batch, &list, &items, 3, offsets);
    for (int asks = 0; asks < 2; asks++) {
        options.columns = &column;
        options.column_count = asks;
        scene_open(&scene, &batch, &options);
        assert_int_equal(scene.specs.count, 1);
        assert_int_equal(scene.specs.list[0].role, TFOS_TENSOR_DENSE);
        assert_int_equal(scene.specs.list[0].rank, 2 + asks);
        assert_int_equal(scene.specs.list[0].shape[1], asks ? 2 : 6);
        assert_int_equal(scene.tensors[0].rank, 2 + asks);
        assert_int_equal(scene.tensors[0].shape[0], 3);
        assert_int_equal(scene.tensors[0].shape[1 + asks], asks ? 3 : 6);
        for (int i = 0; i < 18; i++)
            assert_true(double_at(&scene.tensors[0], i) == i);
        scene_close(&scene);
    }
}

static void lists_of_any_length_are_ragged_or_padded(void **state)
{
    static const int32_t offsets[] = {0, 2, 2, 5};
    static const double padded[] = {0, 1, 7, 7, 7, 7, 2, 3, 4};
    static const int64_t shape[] = {4};
    struct tfos_dataset_column column = {.name = "x", .form = TFOS_FORM_PADDED};
    struct tfos_dataset_options options = {0};
    struct made_column batch, list, items;
    struct scene scene;

    (void)state;
    make_lists(&batch, &list, &items, 3, offsets);
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.count, 2);
    assert_int_equal(scene.specs.list[0].role, TFOS_TENSOR_RAGGED_VALUES);
    assert_int_equal(scene.specs.list[1].role, TFOS_TENSOR_ROW_SPLITS);
    assert_ptr_equal(scene.specs.list[0].path, scene.specs.list[1].path);
    assert_int_equal(scene.tensors[0].shape[0], 5);
    assert_int_equal(scene.tensors[1].shape[0], 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(int_at(&scene.tensors[1], i), offsets[i]);
    scene_close(&scene);

    options = (struct tfos_dataset_options){.columns = &column, .column_count = 1};
    column.null_value = "7";
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.list[0].shape[1], -1);
    assert_int_equal(scene.tensors[0].shape[1], 3);
    assert_memory_equal(scene.tensors[0].data, padded, sizeof(padded));
    scene_close(&scene);

    column = (struct tfos_dataset_column){
        .name = "x", .form = TFOS_FORM_PADDED, .shape = shape, .rank = 1};
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.list[0].shape[1], 4);
    assert_int_equal(scene.tensors[0].shape[1], 4);
    assert_true(double_at(&scene.tensors[0], 2) == 0);
    assert_true(double_at(&scene.tensors[0], 10) == 4);
    scene_close(&scene);
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    static const int32_t offsets[] = {0, 2, 4, 7};
    static const int64_t two[] = {2}, pair[] = {2, 2}, open[] = {-1};
    struct tfos_dataset_column column = {.name = "x", .shape = two, .rank = 1};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct made_column batch, list, items;

    (void)state;
    make_lists(&batch, &list, &items, 3, offsets);
    expect_refusal(&batch, &options, WORDS("partition 0", "row 2", "column x", "3 elements", "2"));
    column.form = TFOS_FORM_PADDED;
    expect_refusal(&batch, &options, WORDS("row 2", "column x", "3 elements"));
    column = (struct tfos_dataset_column){.name = "x", .form = TFOS_FORM_DENSE};
    expect_refusal(&batch, &options, WORDS("column x", "one length"));
    column = (struct tfos_dataset_column){.name = "x", .shape = open, .rank = 1};
    expect_refusal(&batch, &options, WORDS("column x", "varies"));
    column = (struct tfos_dataset_column){.name = "x", .form = TFOS_FORM_RAGGED, .shape = pair};
    expect_refusal(&batch, &options, WORDS("column x", "ragged"));
    column = (struct tfos_dataset_column){.name = "x", .form = TFOS_FORM_SPARSE};
    expect_refusal(&batch, &options, WORDS("column x", "MLlib"));
    column = (struct tfos_dataset_column){.name = "y"};
    expect_refusal(&batch, &options, WORDS("no column y", "x"));
    column = (struct tfos_dataset_column){.name = "x", .null_value = "many"};
    expect_refusal(&batch, &options, WORDS("column x", "many", "float64"));
}

static void nested_lists_keep_their_levels(void **state)
{
    static const int32_t outer[] = {0, 2, 3}, inner[] = {0, 1, 3, 3};
    static const int64_t values[] = {4, 5, 6};
    static const int64_t padded[] = {4, 0, 5, 6, 0, 0, 0, 0};
    struct tfos_dataset_column column = {.name = "x", .form = TFOS_FORM_PADDED};
    struct tfos_dataset_options options = {0};
    struct made_column batch, rows, lists, items;
    struct scene scene;

    (void)state;
    make_column(&items, "item", "l", 3, values, NULL);
    make_column(&lists, "item", "+l", 3, inner, NULL);
    add_child(&lists, &items);
    make_column(&rows, "x", "+l", 2, outer, NULL);
    add_child(&rows, &lists);
    make_batch(&batch, 2);
    add_child(&batch, &rows);
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.count, 3);
    assert_int_equal(scene.tensors[1].shape[0], 3);
    assert_int_equal(scene.tensors[2].shape[0], 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(int_at(&scene.tensors[1], i), outer[i]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(int_at(&scene.tensors[2], i), inner[i]);
    scene_close(&scene);
    options = (struct tfos_dataset_options){.columns = &column, .column_count = 1};
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.tensors[0].rank, 3);
    assert_int_equal(scene.tensors[0].shape[1], 2);
    assert_int_equal(scene.tensors[0].shape[2], 2);
    assert_memory_equal(scene.tensors[0].data, padded, sizeof(padded));
    scene_close(&scene);
}

static void structs_and_maps_are_taken_apart(void **state)
{
    static const int64_t ages[] = {30, 31}, counts[] = {7, 8, 9};
    static const int32_t name_offsets[] = {0, 3, 5}, key_offsets[] = {0, 1, 2, 3};
    static const int32_t map_offsets[] = {0, 2, 3};
    struct tfos_dataset_options options = {0};
    struct made_column batch, person, age, name, map, entries, key, value;
    struct scene scene;

    (void)state;
    make_column(&age, "age", "l", 2, ages, NULL);
    make_text(&name, "name", "u", 2, name_offsets, "AdaBo", NULL);
    make_column(&person, "person", "+s", 2, NULL, NULL);
    add_child(&person, &age);
    add_child(&person, &name);
    make_text(&key, "k", "u", 3, key_offsets, "abc", NULL);
    make_column(&value, "v", "l", 3, counts, NULL);
    make_column(&entries, "entries", "+s", 3, NULL, NULL);
    add_child(&entries, &key);
    add_child(&entries, &value);
    make_column(&map, "words", "+m", 2, map_offsets, NULL);
    add_child(&map, &entries);
    make_batch(&batch, 2);
    add_child(&batch, &person);
    add_child(&batch, &map);
    scene_open(&scene, &batch, &options);
    const struct tfos_tensor_spec *specs = scene.specs.list;
    assert_int_equal(scene.specs.count, 6);
    assert_int_equal(specs[0].depth, 2);
    assert_string_equal(specs[0].path[0], "person");
    assert_string_equal(specs[1].path[1], "name");
    assert_string_equal(specs[2].path[0], "words");
    assert_string_equal(specs[2].path[1], "key");
    assert_string_equal(specs[4].path[1], "value");
    assert_int_equal(int_at(&scene.tensors[0], 1), 31);
    check_text(&scene.tensors[1], 1, "Bo");
    check_text(&scene.tensors[2], 1, "b");
    assert_int_equal(int_at(&scene.tensors[3], 1), 2);
    assert_int_equal(int_at(&scene.tensors[4], 2), 9);
    scene_close(&scene);

    const char *selection[] = {"words.value", "person"};
    options = (struct tfos_dataset_options){.selection = selection, .selection_count = 2};
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.count, 4);
    assert_string_equal(scene.specs.list[0].path[1], "value");
    assert_string_equal(scene.specs.list[2].path[1], "age");
    assert_string_equal(scene.specs.list[3].path[1], "name");
    assert_int_equal(int_at(&scene.tensors[0], 2), 9);
    scene_close(&scene);
    selection[0] = "word";
    expect_refusal(&batch, &options, WORDS("no column word"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(numbers_keep_their_types),
    cmocka_unit_test(calendar_intervals_have_three_parts),
    cmocka_unit_test(booleans_become_bytes),
    cmocka_unit_test(decimals_become_doubles),
    cmocka_unit_test(strings_of_each_width),
    cmocka_unit_test(lists_of_one_length_are_dense),
    cmocka_unit_test(lists_of_any_length_are_ragged_or_padded),
    cmocka_unit_test(lists_that_do_not_fit_are_refused),
    cmocka_unit_test(nested_lists_keep_their_levels),
    cmocka_unit_test(structs_and_maps_are_taken_apart),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Nulls, MLlib's vectors, rows of Python, and schemas that change on the way.
#include "dataset_fixture.h"

static void nulls_are_refused_or_filled(void **state)
{
    static const uint8_t validity[] = {0x0b}; // the third is null
    static const int64_t values[] = {1, 2, 3, 4};
    static const int32_t offsets[] = {0, 1, 2, 3, 4};
    static const float floats[] = {1, 2, 3, 4};
    struct tfos_dataset_column columns[] = {
        {.name = "n", .null_value = "-7"}, {.name = "s", .null_value = "none"}, {.name = "f"}};
    struct tfos_dataset_options options = {.columns = columns, .column_count = 3};
    struct made_column batch, n, s, f;
    struct scene scene;

    (void)state;
    make_column(&n, "n", "l", 4, values, validity);
    make_text(&s, "s", "u", 4, offsets, "abcd", validity);
    make_column(&f, "f", "f", 4, floats, validity);
    make_batch(&batch, 4);
    add_child(&batch, &n);
    add_child(&batch, &s);
    add_child(&batch, &f);
    expect_refusal(&batch, &options,
                   WORDS("partition 0", "row 2", "column f", "null", "null_value"));
    columns[2].null_value = "nan";
    scene_open(&scene, &batch, &options);
    assert_int_equal(int_at(&scene.tensors[0], 1), 2);
    assert_int_equal(int_at(&scene.tensors[0], 2), -7);
    check_text(&scene.tensors[1], 1, "b");
    check_text(&scene.tensors[1], 2, "none");
    check_text(&scene.tensors[1], 3, "d");
    float filled = ((const float *)scene.tensors[2].data)[2];
    assert_true(filled != filled);
    scene_close(&scene);
}

static void null_values_are_of_the_column_type(void **state)
{
    static const struct {
        const char *format, *text;
        bool fits;
        uint64_t bits;
    } wanted[] = {
        {"c", "-128", true, 0x80},
        {"c", "128", false, 0},
        {"C", "255", true, 0xff},
        {"C", "-1", false, 0},
        {"s", "-2", true, 0xfffe},
        {"i", "2147483648", false, 0},
        {"l", "12x", false, 0},
        {"L", "18446744073709551615", true, UINT64_MAX},
        {"l", "", false, 0},
        {"e", "1.5", true, 0x3e00},
        {"e", "65504", true, 0x7bff},
        {"e", "-inf", true, 0xfc00},
        {"e", "6e-8", true, 1},
        {"f", "0.5", true, 0x3f000000},
        {"g", "1", true, 0x3ff0000000000000},
        {"b", "true", true, 1},
        {"b", "2", false, 0},
        {"tdD", "-1", true, 0xffffffff},
    };
    static const uint8_t none[] = {0};
    static const uint64_t values[2];
    struct tfos_dataset_column column = {.name = "x"};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};

    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct made_column batch, x;
        struct scene scene;
        make_column(&x, "x", wanted[i].format, 1, values, none);
        make_batch(&batch, 1);
        add_child(&batch, &x);
        column.null_value = wanted[i].text;
        if (!wanted[i].fits) {
            expect_refusal(&batch, &options, WORDS("column x", "null_value"));
            continue;
        }
        uint64_t bits = 0;
        scene_open(&scene, &batch, &options);
        memcpy(&bits, scene.tensors[0].data, (size_t)scene.tensors[0].size);
        assert_int_equal(bits, wanted[i].bits);
        scene_close(&scene);
    }
}

// Rows [0, 1], null, [2, null]; the null row spans values that nobody may see.
static void nulls_within_lists(void **state)
{
    static const uint8_t rows_validity[] = {0x05}, items_validity[] = {0x0f};
    static const int32_t offsets[] = {0, 2, 3, 5};
    static const int64_t values[] = {0, 1, 99, 2, 98};
    static const int64_t ragged[] = {0, 1, 2, -1}, padded[] = {0, 1, -1, -1, 2, -1};
    struct tfos_dataset_column column = {.name = "x", .form = TFOS_FORM_RAGGED};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct made_column batch, list, items;
    struct scene scene;

    (void)state;
    make_column(&items, "item", "l", 5, values, items_validity);
    make_column(&list, "x", "+l", 3, offsets, rows_validity);
    add_child(&list, &items);
    make_batch(&batch, 3);
    add_child(&batch, &list);
    expect_refusal(&batch, &options, WORDS("row 1", "column x", "null"));
    column.null_value = "-1";
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.tensors[0].shape[0], 4);
    assert_memory_equal(scene.tensors[0].data, ragged, sizeof(ragged));
    const int64_t splits[] = {0, 2, 2, 4};
    assert_memory_equal(scene.tensors[1].data, splits, sizeof(splits));
    scene_close(&scene);
    column.form = TFOS_FORM_PADDED;
    scene_open(&scene, &batch, &options);
    assert_memory_equal(scene.tensors[0].data, padded, sizeof(padded));
    scene_close(&scene);
    column.form = TFOS_FORM_DENSE;
    column.shape = (const int64_t[]){2};
    column.rank = 1;
    scene_open(&scene, &batch, &options);
    assert_memory_equal(scene.tensors[0].data, padded, sizeof(padded));
    scene_close(&scene);
}

static void a_null_struct_is_null_in_all_members(void **state)
{
    static const uint8_t validity[] = {0x02};
    static const int64_t ages[] = {1, 2};
    struct tfos_dataset_column column = {.name = "person.age", .null_value = "0"};
    struct tfos_dataset_options options = {0};
    struct made_column batch, person, age;
    struct scene scene;

    (void)state;
    make_column(&age, "age", "l", 2, ages, NULL);
    make_column(&person, "person", "+s", 2, NULL, validity);
    add_child(&person, &age);
    make_batch(&batch, 2);
    add_child(&batch, &person);
    expect_refusal(&batch, &options, WORDS("row 0", "person.age", "null"));
    options = (struct tfos_dataset_options){.columns = &column, .column_count = 1};
    scene_open(&scene, &batch, &options);
    assert_int_equal(int_at(&scene.tensors[0], 0), 0);
    assert_int_equal(int_at(&scene.tensors[0], 1), 2);
    scene_close(&scene);
}

/// A column of three vectors: dense [1, 0, 2], sparse {1: 5} of size 3, dense [0, 0, 0].
struct vectors {
    struct made_column batch, vector, type, size, indices, index, values, value;
    int8_t types[3];
    int32_t sizes[3], index_offsets[4], value_offsets[4], index_values[1];
    uint8_t size_validity[1], index_validity[1];
    double numbers[7];
};

static void make_vectors(struct vectors *all)
{
    *all = (struct vectors){.types = {1, 0, 1},
                            .sizes = {0, 3, 0},
                            .index_offsets = {0, 0, 1, 1},
                            .value_offsets = {0, 3, 4, 7},
                            .index_values = {1},
                            .size_validity = {2},
                            .index_validity = {2},
                            .numbers = {1, 0, 2, 5, 0, 0, 0}};
    make_column(&all->type, "type", "c", 3, all->types, NULL);
    make_column(&all->size, "size", "i", 3, all->sizes, all->size_validity);
    make_column(&all->index, "element", "i", 1, all->index_values, NULL);
    make_column(&all->indices, "indices", "+l", 3, all->index_offsets, all->index_validity);
    add_child(&all->indices, &all->index);
    make_column(&all->value, "element", "g", 7, all->numbers, NULL);
    make_column(&all->values, "values", "+l", 3, all->value_offsets, NULL);
    add_child(&all->values, &all->value);
    make_column(&all->vector, "features", "+s", 3, NULL, NULL);
    add_child(&all->vector, &all->type);
    add_child(&all->vector, &all->size);
    add_child(&all->vector, &all->indices);
    add_child(&all->vector, &all->values);
    make_batch(&all->batch, 3);
    add_child(&all->batch, &all->vector);
}

static void vectors_are_dense_or_sparse(void **state)
{
    static const double dense[] = {1, 0, 2, 0, 5, 0, 0, 0, 0};
    static const int64_t indices[] = {0, 0, 0, 1, 0, 2, 1, 1, 2, 0, 2, 1, 2, 2};
    struct tfos_dataset_column column = {.name = "features", .form = TFOS_FORM_SPARSE};
    struct tfos_dataset_options options = {0};
    struct vectors all;
    struct scene scene;

    (void)state;
    make_vectors(&all);
    scene_open(&scene, &all.batch, &options);
    assert_int_equal(scene.specs.count, 1);
    assert_int_equal(scene.specs.list[0].depth, 1);
    assert_int_equal(scene.specs.list[0].shape[1], 3);
    assert_memory_equal(scene.tensors[0].data, dense, sizeof(dense));
    scene_close(&scene);
    options = (struct tfos_dataset_options){.columns = &column, .column_count = 1};
    scene_open(&scene, &all.batch, &options);
    assert_int_equal(scene.specs.count, 3);
    assert_int_equal(scene.tensors[0].shape[0], 7);
    assert_memory_equal(scene.tensors[0].data, indices, sizeof(indices));
    assert_memory_equal(scene.tensors[1].data, all.numbers, sizeof(all.numbers));
    assert_int_equal(int_at(&scene.tensors[2], 0), 3);
    assert_int_equal(int_at(&scene.tensors[2], 1), 3);
    scene_close(&scene);
}

static void broken_vectors_are_refused(void **state)
{
    struct tfos_dataset_column column = {.name = "features"};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct vectors all;

    (void)state;
    make_vectors(&all);
    for (int i = 0; i < 2; i++) {
        column.form = i == 0 ? TFOS_FORM_DENSE : TFOS_FORM_SPARSE;
        all.index_values[0] = 3;
        expect_refusal(&all.batch, &options, WORDS("row 1", "features", "index 3", "size 3"));
        all.index_values[0] = -1;
        expect_refusal(&all.batch, &options, WORDS("row 1", "features", "index -1"));
        all.index_values[0] = 1;
    }
    column =
        (struct tfos_dataset_column){.name = "features", .shape = (const int64_t[]){3}, .rank = 1};
    all.sizes[1] = 4;
    expect_refusal(&all.batch, &options, WORDS("row 1", "features", "size 4", "3"));
    all.sizes[1] = 3;
    all.index_validity[0] = 0;
    expect_refusal(&all.batch, &options, WORDS("row 1", "features", "0 indices", "1 values"));
    column.form = TFOS_FORM_RAGGED;
    expect_refusal(&all.batch, &options, WORDS("features", "dense or sparse"));
}

static void null_vectors_are_filled(void **state)
{
    static const uint8_t validity[] = {0x05};
    static const double dense[] = {1, 0, 2, 9, 9, 9, 0, 0, 0};
    struct tfos_dataset_column column = {.name = "features"};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct vectors all;
    struct scene scene;

    (void)state;
    make_vectors(&all);
    all.vector.buffers[0] = validity;
    all.vector.array.null_count = 1;
    expect_refusal(&all.batch, &options, WORDS("row 1", "features", "null"));
    column.null_value = "9";
    scene_open(&scene, &all.batch, &options);
    assert_memory_equal(scene.tensors[0].data, dense, sizeof(dense));
    scene_close(&scene);
    column.form = TFOS_FORM_SPARSE;
    scene_open(&scene, &all.batch, &options);
    assert_int_equal(scene.tensors[1].shape[0], 6);
    scene_close(&scene);
}

static void rows_of_python_keep_their_structure(void **state)
{
    static const uint8_t bools[] = {1, 0};
    static const float images[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t pairs[] = {1, 2, 3, 4}, text_offsets[] = {0, 2, 3};
    static const struct {
        const char *row;
        enum tfos_row_structure structure;
        const char *first;
    } rows[] = {{"tuple", TFOS_ROW_TUPLE, "0"},
                {"list", TFOS_ROW_TUPLE, "0"},
                {"dict", TFOS_ROW_DICT, "flag"},
                {"row", TFOS_ROW_DICT, "flag"},
                {"named", TFOS_ROW_DICT, "flag"}}; // s83: namedtuples and dataclasses
    struct made_column batch, flag, image, pixels, pair, pair_items, text;
    struct scene scene;

    (void)state;
    make_column(&flag, "flag", "C", 2, bools, NULL);
    flag.schema.metadata = metadata_of("tfos.value", "bool");
    make_column(&pixels, "item", "f", 12, images, NULL);
    make_column(&image, "image", "+w:6", 2, NULL, NULL);
    image.schema.metadata = metadata_of("tfos.value", "array f4 2 3");
    add_child(&image, &pixels);
    make_column(&pair_items, "item", "l", 4, pairs, NULL);
    make_column(&pair, "pair", "+w:2", 2, NULL, NULL);
    pair.schema.metadata = metadata_of("tfos.value", "tuple int 2");
    add_child(&pair, &pair_items);
    make_text(&text, "text", "U", 2, text_offsets, "hi!", NULL);
    text.schema.metadata = metadata_of("tfos.value", "text");
    make_batch(&batch, 2);
    add_child(&batch, &flag);
    add_child(&batch, &image);
    add_child(&batch, &pair);
    add_child(&batch, &text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tfos_dataset_options options = {0};
        batch.schema.metadata = metadata_of("tfos.row", rows[i].row);
        scene_open(&scene, &batch, &options);
        assert_int_equal(scene.specs.structure, rows[i].structure);
        assert_int_equal(scene.specs.count, 4);
        assert_string_equal(scene.specs.list[0].path[0], rows[i].first);
        assert_int_equal(scene.tensors[0].dtype, TFOS_DTYPE_BOOL);
        assert_memory_equal(scene.tensors[0].data, bools, 2);
        assert_int_equal(scene.tensors[1].rank, 3);
        assert_int_equal(scene.specs.list[1].shape[1], 2);
        assert_int_equal(scene.tensors[1].shape[2], 3);
        assert_memory_equal(scene.tensors[1].data, images, sizeof(images));
        assert_int_equal(scene.tensors[2].shape[1], 2);
        check_text(&scene.tensors[3], 0, "hi");
        scene_close(&scene);
    }
}

static void single_values_of_python(void **state)
{
    static const double values[] = {1.5, 2.5};
    static const struct {
        const char *format, *value, *word; // NULL: it has a tensor form
    } kinds[] = {
        {"g", "float", NULL},          {"g", "scalar f8", NULL}, {"l", "int", NULL},
        {"w:8", "scalar c8", "numpy"}, {"C", "null", "type"},    {"Z", "pickle", "several types"},
    };
    static const int64_t offsets[] = {0, 1, 2};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct tfos_dataset_options options = {0};
        struct made_column batch, column;
        struct scene scene;
        if (kinds[i].format[0] == 'Z')
            make_text(&column, "", "Z", 2, offsets, "xy", NULL);
        else
            make_column(&column, "", kinds[i].format, 2, values, NULL);
        column.schema.metadata = metadata_of("tfos.value", kinds[i].value);
        make_batch(&batch, 2);
        batch.schema.metadata = metadata_of("tfos.row", "value");
        add_child(&batch, &column);
        if (kinds[i].word) {
            expect_refusal(&batch, &options, WORDS("column value", kinds[i].word));
            continue;
        }
        scene_open(&scene, &batch, &options);
        assert_int_equal(scene.specs.structure, TFOS_ROW_VALUE);
        assert_memory_equal(scene.tensors[0].data, values, sizeof(values));
        scene_close(&scene);
    }
}

// Feeds `second` as another partition after `first`, and reads both in one batch.
static enum tfos_status read_both(const struct made_column *first, const struct made_column *second,
                                  struct tfos_dataset_options *options, struct tfos_tensor *tensors,
                                  struct tfos_error *err)
{
    struct node node;
    const struct made_column *batches[] = {first, second};

    node_open(&node, 0);
    node_start(&node);
    for (int i = 0; i < 2; i++) {
        struct tfos__feed_writer *writer = feed_open(&node, 1, i);
        feed_append(writer, &batches[i]->schema, &batches[i]->array);
        feed_finish(writer);
    }
    node_end_epoch(&node, 1);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    options->batch_size = 100;
    struct tfos_dataset *dataset = dataset_of(&node, options);
    enum tfos_status status = tfos_dataset_next(dataset, tensors, err);
    tfos_dataset_close(dataset);
    node_close(&node);
    return status;
}

static void schemas_may_differ_where_types_do_not(void **state)
{
    static const int32_t narrow[] = {0, 1, 2};
    static const int64_t wide[] = {0, 1, 2}, numbers[] = {1, 2};
    struct tfos_dataset_options options = {0};
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct made_column first, second, a, b, n, m;
    struct tfos_error err;

    (void)state;
    make_text(&a, "s", "u", 2, narrow, "ab", NULL);
    make_column(&n, "n", "l", 2, numbers, NULL);
    make_batch(&first, 2);
    add_child(&first, &a);
    add_child(&first, &n);
    make_text(&b, "s", "U", 2, wide, "cd", NULL);
    make_column(&m, "n", "l", 2, numbers, NULL);
    make_batch(&second, 2);
    add_child(&second, &m); // another order, another width of offsets
    add_child(&second, &b);
    assert_done(read_both(&first, &second, &options, tensors, &err));
    assert_int_equal(tensors[0].shape[0], 4);
    check_text(&tensors[0], 1, "b");
    check_text(&tensors[0], 2, "c");
    assert_int_equal(int_at(&tensors[1], 3), 2);
    release_tensors(tensors, 2);

    m.schema.format = "g";
    assert_int_equal(read_both(&first, &second, &options, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "partition 1"));
    assert_non_null(strstr(err.message, "column n is float64"));
    assert_non_null(strstr(err.message, "int64"));
    m.schema = (struct ArrowSchema){.format = "l", .name = "m"};
    assert_int_equal(read_both(&first, &second, &options, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "column m"));
    make_batch(&second, 2);
    add_child(&second, &b);
    assert_int_equal(read_both(&first, &second, &options, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "column n of the first rows is missing"));
    second.schema.metadata = metadata_of("tfos.row", "value");
    assert_int_equal(read_both(&first, &second, &options, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "partition 1"));
}

// What had no value yet becomes nulls of the type that is known.
static void columns_of_none_fit_any_type(void **state)
{
    static const uint8_t none[] = {0}, bytes[2];
    static const int64_t numbers[] = {1, 2};
    struct tfos_dataset_column column = {.name = "n", .null_value = "5"};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct made_column first, second, n, nothing;
    struct tfos_error err;

    (void)state;
    make_column(&n, "n", "l", 2, numbers, NULL);
    n.schema.metadata = metadata_of("tfos.value", "int");
    make_batch(&first, 2);
    first.schema.metadata = metadata_of("tfos.row", "dict");
    add_child(&first, &n);
    make_column(&nothing, "n", "C", 2, bytes, none);
    nothing.schema.metadata = metadata_of("tfos.value", "null");
    make_batch(&second, 2);
    second.schema.metadata = metadata_of("tfos.row", "dict");
    add_child(&second, &nothing);
    assert_done(read_both(&first, &second, &options, tensors, &err));
    const int64_t expected[] = {1, 2, 5, 5};
    assert_memory_equal(tensors[0].data, expected, sizeof(expected));
    release_tensors(tensors, 1);
}

// A column of Python's numbers, of rows that are one value.
static void make_numbers(struct made_column *batch, struct made_column *column, const char *format,
                         const char *value, const void *numbers)
{
    make_column(column, "", format, 2, numbers, NULL);
    column->schema.metadata = metadata_of("tfos.value", value);
    make_batch(batch, 2);
    batch->schema.metadata = metadata_of("tfos.row", "value");
    add_child(batch, column);
}

static void s87_integers_are_floats_among_floats(void **state)
{
    static const double reals[] = {0.5, 1.5};
    static const int64_t integers[] = {2, -(INT64_C(1) << 53)};
    static const double expected[] = {0.5, 1.5, 2, -0x1p53};
    struct tfos_dataset_options options = {0};
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct made_column first, second, a, b;
    struct tfos_error err;

    (void)state;
    make_numbers(&first, &a, "g", "float", reals);
    make_numbers(&second, &b, "l", "int", integers);
    assert_done(read_both(&first, &second, &options, tensors, &err));
    assert_int_equal(tensors[0].dtype, TFOS_DTYPE_FLOAT64);
    assert_memory_equal(tensors[0].data, expected, sizeof(expected));
    release_tensors(tensors, 1);

    assert_int_equal(read_both(&second, &first, &options, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "column value is float64 where the first rows have int64: "
                                        "feed values of one type in all rows"));
    second.schema.metadata = b.schema.metadata = NULL; // a DataFrame's types are said
    first.schema.metadata = a.schema.metadata = NULL;
    assert_int_equal(read_both(&first, &second, &options, tensors, &err), TFOS_INVALID);
}

static void s87_values_are_read_beside_their_originals(void **state)
{
    static const double reals[] = {1, 0.5};
    static const uint8_t first_only[] = {1};
    static const int64_t offsets[] = {0, 3, 3};
    struct tfos_dataset_options options = {0};
    struct made_column batch, both, values, originals;
    struct scene scene;

    (void)state;
    make_column(&values, "value", "g", 2, reals, NULL);
    make_text(&originals, "original", "Z", 2, offsets, "1.\n", first_only);
    originals.schema.metadata = metadata_of("tfos.value", "pickle");
    make_column(&both, "x", "+s", 2, NULL, NULL);
    both.schema.metadata = metadata_of("tfos.value", "original");
    add_child(&both, &values);
    add_child(&both, &originals);
    make_batch(&batch, 2);
    batch.schema.metadata = metadata_of("tfos.row", "dict");
    add_child(&batch, &both);
    scene_open(&scene, &batch, &options);
    assert_int_equal(scene.specs.count, 1);
    assert_int_equal(scene.specs.list[0].depth, 1);
    assert_string_equal(scene.specs.list[0].path[0], "x");
    assert_memory_equal(scene.tensors[0].data, reals, sizeof(reals));
    scene_close(&scene);
    both.schema.n_children = both.array.n_children = 1;
    expect_refusal(&batch, &options, WORDS("column x", "originals"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(nulls_are_refused_or_filled),
    cmocka_unit_test(null_values_are_of_the_column_type),
    cmocka_unit_test(nulls_within_lists),
    cmocka_unit_test(a_null_struct_is_null_in_all_members),
    cmocka_unit_test(vectors_are_dense_or_sparse),
    cmocka_unit_test(broken_vectors_are_refused),
    cmocka_unit_test(null_vectors_are_filled),
    cmocka_unit_test(rows_of_python_keep_their_structure),
    cmocka_unit_test(single_values_of_python),
    cmocka_unit_test(schemas_may_differ_where_types_do_not),
    cmocka_unit_test(columns_of_none_fit_any_type),
    cmocka_unit_test(s87_integers_are_floats_among_floats),
    cmocka_unit_test(s87_values_are_read_beside_their_originals),
};

TEST_MAIN(cases)

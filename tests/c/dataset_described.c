// SPDX-License-Identifier: Apache-2.0
// Datasets that know of a description what their rows are, before the first of them.
#include "dataset_fixture.h"

/// A fake driver: one description, for which a dataset asks.
struct description {
    const struct made_column *batch; ///< its schema; NULL: nothing is known of the rows
    int64_t first_feed, last_feed;   ///< 0: nothing was said
    bool comes_late;                 ///< only who waits for it gets it
    enum tfos_status failure;
    int asked;
    int64_t interrupted_at; ///< the question that interrupts; 0: none does
};

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static enum tfos_status describe(void *context, int64_t feed, int64_t timeout_ms,
                                 struct ArrowSchema *schema, struct tfos_error *err)
{
    struct description *description = context;

    description->asked++;
    if (description->failure < 0) {
        snprintf(err->message, sizeof(err->message), "the node has gone");
        return description->failure;
    }
    if (feed < description->first_feed || feed > description->last_feed ||
        (description->comes_late && timeout_ms == 0))
        return TFOS_AGAIN;
    *schema = (struct ArrowSchema){0};
    if (description->batch) {
        *schema = description->batch->schema;
        schema->release = keep_schema;
    }
    return TFOS_OK;
}

static bool is_interrupted(void *context)
{
    const struct description *description = context;

    return description->interrupted_at > 0 && description->asked >= description->interrupted_at;
}

static struct tfos_dataset_options options_for(struct description *description)
{
    return (struct tfos_dataset_options){.batch_size = 2,
                                         .describe = describe,
                                         .is_interrupted = is_interrupted,
                                         .context = description};
}

/// Two rows: a number, text, and a list each.
struct rows {
    struct made_column batch, number, text, list, items;
};

static void make_rows(struct rows *rows, const int32_t offsets[3])
{
    static const int64_t numbers[] = {7, 8};
    static const int32_t text_offsets[] = {0, 1, 3};
    static const float values[] = {1, 2, 3, 4, 5, 6};

    make_column(&rows->number, "n", "l", 2, numbers, NULL);
    make_text(&rows->text, "t", "u", 2, text_offsets, "abb", NULL);
    make_column(&rows->items, "element", "f", offsets[2], values, NULL);
    make_column(&rows->list, "x", "+l", 2, offsets, NULL);
    add_child(&rows->list, &rows->items);
    make_batch(&rows->batch, 2);
    add_child(&rows->batch, &rows->number);
    add_child(&rows->batch, &rows->text);
    add_child(&rows->batch, &rows->list);
}

static void feed_rows(struct node *node, int64_t feed, const struct rows *rows)
{
    struct tfos__feed_writer *writer = feed_open(node, feed, 0);

    feed_append(writer, &rows->batch.schema, &rows->batch.array);
    feed_finish(writer);
    node_end_epoch(node, feed);
}

static const int32_t even[] = {0, 3, 6}, uneven[] = {0, 1, 3};

static void open_node(struct node *node)
{
    node_open(node, 0);
    node_start(node);
}

static void close_all(struct tfos_dataset *dataset, struct node *node)
{
    tfos_dataset_close(dataset);
    node_close(node);
}

static void specs_come_before_rows(void **state)
{
    const struct tfos_dataset_column columns[] = {
        {.name = "x", .form = TFOS_FORM_DENSE, .shape = (const int64_t[]){3}, .rank = 1},
    };
    struct node node;
    struct rows rows;
    struct description description = {.batch = &rows.batch, .first_feed = 1, .last_feed = 10};
    struct tfos_dataset_options options = options_for(&description);
    struct tfos_tensor tensors[TENSOR_LIMIT];

    (void)state;
    open_node(&node);
    make_rows(&rows, even);
    options.columns = columns;
    options.column_count = 1;
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    struct specs specs = specs_of(dataset);
    assert_int_equal(specs.structure, TFOS_ROW_DICT);
    assert_int_equal(specs.count, 3);
    assert_string_equal(specs.list[0].path[0], "n");
    assert_int_equal(specs.list[0].dtype, TFOS_DTYPE_INT64);
    assert_int_equal(specs.list[1].dtype, TFOS_DTYPE_STRING);
    assert_int_equal(specs.list[2].rank, 2);
    assert_int_equal(specs.list[2].shape[1], 3);
    assert_int_equal(description.asked, 1);
    feed_rows(&node, 1, &rows);
    assert_true(next_batch(dataset, tensors));
    assert_int_equal(int_at(&tensors[0], 1), 8);
    check_text(&tensors[1], 1, "bb");
    assert_int_equal(tensors[2].shape[1], 3);
    release_tensors(tensors, 3);
    assert_false(next_batch(dataset, tensors));
    close_all(dataset, &node);
}

static void what_does_not_go_with_a_description_is_refused(void **state)
{
    static const char *const selection[] = {"n", "missing"};
    const struct tfos_tensor_spec *list = NULL;
    enum tfos_row_structure structure = TFOS_ROW_DICT;
    struct node node;
    struct rows rows;
    struct description description = {.batch = &rows.batch, .first_feed = 1, .last_feed = 1};
    struct tfos_dataset_options options = options_for(&description);
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_error err;
    int64_t count = 0;

    (void)state;
    open_node(&node);
    make_rows(&rows, even);
    options.selection = selection;
    options.selection_count = 2;
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tfos_dataset_get_specs(dataset, -1, &list, &count, &structure, &err),
                         TFOS_INVALID);
        assert_non_null(strstr(err.message, "no column missing: the rows have n, t, x"));
    }
    assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_INVALID);
    assert_int_equal(description.asked, 1);
    close_all(dataset, &node);
}

static void rows_say_what_a_description_leaves_open(void **state)
{
    struct node node;
    struct rows rows;
    struct description description = {.batch = &rows.batch, .first_feed = 1, .last_feed = 1};
    struct tfos_dataset_options options = options_for(&description);
    const struct tfos_tensor_spec *list = NULL;
    enum tfos_row_structure structure = TFOS_ROW_DICT;
    struct tfos_error err;
    int64_t count = 0;

    (void)state;
    for (int is_even = 0; is_even < 2; is_even++) {
        open_node(&node);
        make_rows(&rows, is_even ? even : uneven);
        struct tfos_dataset *dataset = dataset_of(&node, &options);
        assert_int_equal(tfos_dataset_get_specs(dataset, 10, &list, &count, &structure, &err),
                         TFOS_TIMEOUT);
        feed_rows(&node, 1, &rows);
        struct specs specs = specs_of(dataset);
        assert_int_equal(specs.list[2].role,
                         is_even ? TFOS_TENSOR_DENSE : TFOS_TENSOR_RAGGED_VALUES);
        assert_int_equal(specs.list[2].shape[1], is_even ? 3 : 0);
        close_all(dataset, &node);
    }
}

static void an_epoch_without_rows_is_one(void **state)
{
    struct node node;
    struct rows rows;
    struct description description = {.batch = &rows.batch, .first_feed = 1, .last_feed = 3};
    struct tfos_dataset_options options = options_for(&description);
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_error err;

    (void)state;
    open_node(&node);
    make_rows(&rows, even);
    node_end_epoch(&node, 1);
    description.comes_late = true; // behind the epoch's end
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    struct specs specs = specs_of(dataset);
    assert_int_equal(specs.list[2].role, TFOS_TENSOR_DENSE);
    assert_int_equal(specs.list[2].shape[1], -1);
    assert_false(next_batch(dataset, tensors));
    feed_rows(&node, 2, &rows);
    assert_true(next_batch(dataset, tensors));
    assert_int_equal(tensors[2].shape[0], 2);
    assert_int_equal(tensors[2].shape[1], 3);
    assert_true(((const float *)tensors[2].data)[5] == 6);
    release_tensors(tensors, 3);
    assert_false(next_batch(dataset, tensors));
    make_rows(&rows, uneven);
    feed_rows(&node, 3, &rows);
    assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 1"));
    assert_non_null(strstr(err.message, "a list of 2 elements where each has 1"));
    close_all(dataset, &node);
}

static void nothing_but_a_description(void **state)
{
    struct node node;
    struct rows rows;
    struct description description = {.batch = &rows.batch, .first_feed = 1, .last_feed = 1};
    struct tfos_dataset_options options = options_for(&description);
    struct tfos_tensor tensors[TENSOR_LIMIT];

    (void)state;
    open_node(&node);
    make_rows(&rows, even);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(specs_of(dataset).count, 3);
    for (int i = 0; i < 3; i++)
        assert_false(next_batch(dataset, tensors));
    close_all(dataset, &node);
}

// A description of another feed, or of rows of which nothing is known, leaves it to the rows.
static void other_feeds_are_not_described(void **state)
{
    struct node node;
    struct rows rows;
    struct tfos_tensor tensors[TENSOR_LIMIT];

    (void)state;
    make_rows(&rows, even);
    rows.batch.schema.n_children = 2;
    rows.batch.array.n_children = 2;
    const struct description all[] = {{.batch = &rows.list, .first_feed = 3, .last_feed = 9},
                                      {.first_feed = 1, .last_feed = 9},
                                      {.batch = &rows.list}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct description description = all[i];
        struct tfos_dataset_options options = options_for(&description);
        open_node(&node);
        node_end_epoch(&node, 1); // without a row, and nothing is known: looked over
        feed_rows(&node, 2, &rows);
        struct tfos_dataset *dataset = dataset_of(&node, &options);
        assert_int_equal(specs_of(dataset).count, 2);
        assert_true(next_batch(dataset, tensors));
        release_tensors(tensors, 2);
        close_all(dataset, &node);
    }
}

static void waits_for_a_description_end(void **state)
{
    struct node node;
    struct rows rows;
    struct description description = {
        .batch = &rows.batch, .first_feed = 1, .last_feed = 1, .interrupted_at = 2};
    struct tfos_dataset_options options = options_for(&description);
    const struct tfos_tensor_spec *list = NULL;
    enum tfos_row_structure structure = TFOS_ROW_DICT;
    struct tfos_error err;
    int64_t count = 0;

    (void)state;
    open_node(&node);
    make_rows(&rows, even);
    description.comes_late = true;
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(tfos_dataset_get_specs(dataset, -1, &list, &count, &structure, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "interrupted"));
    description.failure = TFOS_CLOSED; // not for good
    assert_int_equal(tfos_dataset_get_specs(dataset, -1, &list, &count, &structure, &err),
                     TFOS_CLOSED);
    assert_string_equal(err.message, "the node has gone");
    description = (struct description){.first_feed = 1, .last_feed = 1};
    feed_rows(&node, 1, &rows);
    assert_int_equal(specs_of(dataset).count, 3);
    close_all(dataset, &node);
}

static void make_vectors(struct made_column *batch, struct made_column parts[7], int64_t rows)
{
    static const int8_t types[] = {1, 1};
    static const int32_t sizes[2], none[3], offsets[] = {0, 2, 4};
    static const double values[] = {1, 2, 3, 4};

    make_column(&parts[0], "v", "+s", rows, NULL, NULL);
    make_column(&parts[1], "type", "c", rows, types, NULL);
    make_column(&parts[2], "size", "i", rows, sizes, NULL);
    make_column(&parts[3], "indices", "+l", rows, none, NULL);
    make_column(&parts[4], "values", "+l", rows, offsets, NULL);
    make_column(&parts[5], "element", "i", 0, none, NULL);
    make_column(&parts[6], "element", "g", 4, values, NULL);
    add_child(&parts[3], &parts[5]);
    add_child(&parts[4], &parts[6]);
    for (int i = 1; i < 5; i++)
        add_child(&parts[0], &parts[i]);
    make_batch(batch, rows);
    add_child(batch, &parts[0]);
}

static void vectors_of_a_size_that_nobody_said(void **state)
{
    struct tfos_dataset_column column = {.name = "v"};
    struct made_column batch, parts[7];
    struct node node;
    struct description description = {.batch = &batch, .first_feed = 1, .last_feed = 2};
    struct tfos_dataset_options options = options_for(&description);
    struct tfos_tensor tensors[TENSOR_LIMIT];

    (void)state;
    make_vectors(&batch, parts, 2);
    options.columns = &column;
    options.column_count = 1;
    for (int is_sparse = 0; is_sparse < 2; is_sparse++) {
        column.form = is_sparse ? TFOS_FORM_SPARSE : TFOS_FORM_AUTO;
        open_node(&node);
        node_end_epoch(&node, 1);
        struct tfos_dataset *dataset = dataset_of(&node, &options);
        struct specs specs = specs_of(dataset);
        assert_int_equal(specs.count, is_sparse ? 3 : 1);
        if (!is_sparse)
            assert_int_equal(specs.list[0].shape[1], -1);
        assert_false(next_batch(dataset, tensors));
        feed_rows(&node, 2, &(struct rows){.batch = batch});
        assert_true(next_batch(dataset, tensors));
        if (is_sparse)
            assert_int_equal(int_at(&tensors[2], 1), 2);
        else
            assert_int_equal(tensors[0].shape[1], 2);
        assert_true(double_at(&tensors[is_sparse], 3) == 4);
        release_tensors(tensors, specs.count);
        close_all(dataset, &node);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(specs_come_before_rows),
    cmocka_unit_test(what_does_not_go_with_a_description_is_refused),
    cmocka_unit_test(rows_say_what_a_description_leaves_open),
    cmocka_unit_test(an_epoch_without_rows_is_one),
    cmocka_unit_test(nothing_but_a_description),
    cmocka_unit_test(other_feeds_are_not_described),
    cmocka_unit_test(waits_for_a_description_end),
    cmocka_unit_test(vectors_of_a_size_that_nobody_said),
};

TEST_MAIN(cases)

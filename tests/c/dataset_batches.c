// SPDX-License-Identifier: Apache-2.0
// Batches of a dataset alone: every row once and in order, whatever the batches of the ring;
// epochs; memory; failures.
#include "base/memory.h"
#include "dataset_fixture.h"

// Feeds three partitions one after the other and reads them in batches of `batch_size`.
static void read_through(int64_t batch_size, int64_t ring_rows, int64_t rows, bool drops)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = batch_size, .drop_remainder = drops};
    struct tfos_tensor tensors[TENSOR_LIMIT];
    int64_t expected = 0;

    node_open(&node, 0);
    node_start(&node);
    for (int64_t part = 0; part < 3; part++)
        feed_numbers(&node, 1, part, part * rows, rows, ring_rows, 7);
    node_end_epoch(&node, 1);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    struct specs specs = specs_of(dataset);
    assert_int_equal(specs.count, 2);
    assert_int_equal(specs.structure, TFOS_ROW_DICT);
    assert_string_equal(specs.list[0].path[0], "n");
    assert_int_equal(specs.list[0].dtype, TFOS_DTYPE_INT64);
    assert_int_equal(specs.list[0].rank, 1);
    assert_int_equal(specs.list[0].shape[0], drops ? batch_size : -1);
    assert_int_equal(specs.list[1].dtype, TFOS_DTYPE_STRING);
    bool is_short = false;
    while (next_batch(dataset, tensors)) {
        int64_t count = tensors[0].shape[0];
        assert_false(is_short);
        assert_true(count == batch_size || !drops);
        is_short = count < batch_size;
        assert_int_equal(tensors[0].size, count * 8);
        assert_int_equal(tensors[1].shape[0], count);
        for (int64_t i = 0; i < count; i++, expected++) {
            char text[8];
            memset(text, (int)(expected & 0xff), sizeof(text));
            assert_int_equal(int_at(&tensors[0], i), expected);
            assert_int_equal(int_at(&tensors[1], i + 1) - int_at(&tensors[1], i), 7);
            assert_memory_equal(tensors[1].bytes + int_at(&tensors[1], i), text, 7);
        }
        release_tensors(tensors, 2);
    }
    assert_int_equal(expected, drops ? 3 * rows / batch_size * batch_size : 3 * rows);
    assert_false(next_batch(dataset, tensors)); // the feed has ended
    assert_false(next_batch(dataset, tensors));
    tfos_dataset_close(dataset);
    node_close(&node);
}

static void rows_come_once_and_in_order(void **state)
{
    (void)state;
    read_through(10, 10, 100, false);
    read_through(1, 7, 20, false);
    read_through(64, 1, 50, false);
    read_through(1000, 33, 100, false);
    for (int round = 0; round < 6; round++)
        read_through(1 + (int64_t)random_below(50), 1 + (int64_t)random_below(50),
                     (int64_t)random_below(200) + 1, round % 2 == 0);
}

static void epochs_end_each_once(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 8};
    struct tfos_tensor tensors[TENSOR_LIMIT];

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    node_end_epoch(&node, 1); // an empty one is passed over before the structure is known
    for (int64_t epoch = 2; epoch <= 4; epoch++) {
        feed_numbers(&node, epoch, 0, 0, 20, 6, 0);
        node_end_epoch(&node, epoch);
    }
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    for (int epoch = 2; epoch <= 4; epoch++) {
        int64_t rows = 0;
        while (next_batch(dataset, tensors)) {
            rows += tensors[0].shape[0];
            release_tensors(tensors, 1);
        }
        assert_int_equal(rows, 20);
    }
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    assert_false(next_batch(dataset, tensors));
    tfos_dataset_close(dataset);
    node_close(&node);
}

// Where a batch is within one batch of the ring its memory is used in place; it outlives the
// dataset.
static void memory_is_lent(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 16};
    struct tfos_tensor first[TENSOR_LIMIT], second[TENSOR_LIMIT], third[TENSOR_LIMIT];

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    feed_numbers(&node, 1, 0, 0, 40, 40, 5);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_true(next_batch(dataset, first));
    assert_true(next_batch(dataset, second));
    // Neighbours in the ring, so nothing was copied.
    assert_ptr_equal((const char *)first[0].data + 16 * 8, second[0].data);
    assert_ptr_equal(first[1].bytes, second[1].bytes);
    struct tfos__feed_stats stats = node_stats(&node);
    assert_true(stats.used_size > 0);
    node_end_epoch(&node, 1);
    assert_true(next_batch(dataset, third));
    assert_int_equal(third[0].shape[0], 8);
    tfos_dataset_close(dataset);
    for (int64_t i = 0; i < 16; i++)
        assert_int_equal(int_at(&second[0], i), 16 + i);
    release_tensors(first, 2);
    release_tensors(second, 2);
    release_tensors(third, 2);
    node_close(&node);
}

static void datasets_are_found_by_number(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 1};
    struct tfos_dataset *found = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    struct tfos_dataset *other = dataset_of(&node, &options);
    int64_t number = tfos_dataset_number(dataset);
    assert_int_not_equal(number, tfos_dataset_number(other));
    assert_done(tfos_dataset_acquire(number, &found, &err));
    assert_ptr_equal(found, dataset);
    tfos_dataset_close(dataset);
    assert_done(tfos_dataset_acquire(number, &found, &err));
    tfos_dataset_close(found);
    tfos_dataset_close(found);
    assert_int_equal(tfos_dataset_acquire(number, &found, &err), TFOS_NOT_FOUND);
    tfos_dataset_close(other);
    tfos_dataset_close(NULL);
    node_close(&node);
}

static bool is_interrupted(void *context)
{
    return ++*(int *)context == 3;
}

static void waits_end(void **state)
{
    struct node node;
    int asked = 0;
    struct tfos_dataset_options options = {
        .batch_size = 4, .is_interrupted = is_interrupted, .context = &asked};
    const struct tfos_tensor_spec *specs = NULL;
    struct tfos_tensor tensors[TENSOR_LIMIT];
    enum tfos_row_structure structure;
    struct tfos_error err;
    int64_t count = 0;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(tfos_dataset_get_specs(dataset, 10, &specs, &count, &structure, &err),
                     TFOS_TIMEOUT);
    assert_int_equal(tfos_dataset_get_specs(dataset, -1, &specs, &count, &structure, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "interrupted"));
    feed_numbers(&node, 1, 0, 0, 6, 6, 0);
    assert_done(tfos_dataset_get_specs(dataset, WAIT_MS, &specs, &count, &structure, &err));
    assert_true(next_batch(dataset, tensors));
    release_tensors(tensors, 1);
    tfos_feed_reader_fail(node.reader, TFOS_CLOSED, "the node has gone");
    assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_CLOSED);
    assert_string_equal(err.message, "the node has gone");
    tfos_dataset_close(dataset);
    node_close(&node);
}

// The only member there is: it gets what it gives.
static enum tfos_status agree_alone(void *context, const char *name, const char *value,
                                    char **values, struct tfos_error *err)
{
    (void)context;
    (void)name;
    (void)err;
    *values = tfos__format("[%s]", value);
    return TFOS_OK;
}

static void a_wait_for_a_batch_can_be_ended(void **state)
{
    static const enum tfos_uneven ways[] = {TFOS_UNEVEN_IGNORE, TFOS_UNEVEN_JOIN, TFOS_UNEVEN_STOP};

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct node node;
        int asked = 0;
        struct tfos_dataset_options options = {.batch_size = 4,
                                               .uneven = ways[i],
                                               .agree = agree_alone,
                                               .name = "input",
                                               .is_interrupted = is_interrupted,
                                               .context = &asked};
        struct tfos_tensor tensors[TENSOR_LIMIT];
        struct tfos_error err;
        node_open(&node, 0);
        node_start(&node);
        struct tfos_dataset *dataset = dataset_of(&node, &options);
        assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_CLOSED);
        assert_non_null(strstr(err.message, "interrupted"));
        feed_numbers(&node, 1, 0, 0, 6, 6, 0);
        assert_true(next_batch(dataset, tensors));
        release_tensors(tensors, 1);
        asked = 0;
        assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_CLOSED);
        assert_int_equal(asked, 3);
        feed_numbers(&node, 1, 1, 6, 2, 2, 0);
        assert_true(next_batch(dataset, tensors));
        for (int64_t row = 0; row < 4; row++)
            assert_int_equal(int_at(&tensors[0], row), 4 + row);
        release_tensors(tensors, 1);
        tfos_dataset_close(dataset);
        node_close(&node);
    }
}

static void a_feed_without_rows_ends(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 4};
    const struct tfos_tensor_spec *specs = NULL;
    struct tfos_tensor tensors[TENSOR_LIMIT];
    enum tfos_row_structure structure;
    struct tfos_error err;
    int64_t count = 0;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    node_end_epoch(&node, 1);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(tfos_dataset_get_specs(dataset, -1, &specs, &count, &structure, &err),
                     TFOS_END);
    assert_false(next_batch(dataset, tensors));
    tfos_dataset_close(dataset);
    node_close(&node);
}

static void options_are_checked(void **state)
{
    struct tfos_feed_reader *reader = (struct tfos_feed_reader *)state; // never used
    struct tfos_dataset_column nameless = {0};
    const struct {
        struct tfos_dataset_options options;
        const char *word;
    } wrong[] = {
        {{.batch_size = 1}, "reader"},
        {{.reader = reader}, "batch_size"},
        {{.reader = reader, .batch_size = 1, .shuffle_rows = -1}, "shuffle_rows"},
        {{.reader = reader, .batch_size = 1, .uneven = TFOS_UNEVEN_PAD}, "agree"},
        {{.reader = reader, .batch_size = 1, .columns = &nameless, .column_count = 1}, "columns"},
    };
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(tfos_dataset_open(&wrong[i].options, &dataset, &err), TFOS_INVALID);
        assert_non_null(strstr(err.message, wrong[i].word));
    }
}

static void rows_for_inference_are_refused(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 4};
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options asked = writer_options(&node, 5);
    asked.feeder.has_results = true;
    assert_done(writer_open(&asked, &writer, &err));
    assert_done(append_rows(writer, 0, 4, 0, &err));
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "partition 5"));
    tfos__feed_writer_close(writer);
    tfos_dataset_close(dataset);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(rows_come_once_and_in_order),
    cmocka_unit_test(epochs_end_each_once),
    cmocka_unit_test(memory_is_lent),
    cmocka_unit_test(datasets_are_found_by_number),
    cmocka_unit_test(waits_end),
    cmocka_unit_test(a_wait_for_a_batch_can_be_ended),
    cmocka_unit_test(a_feed_without_rows_ends),
    cmocka_unit_test(options_are_checked),
    cmocka_unit_test(rows_for_inference_are_refused),
};

TEST_MAIN(cases)

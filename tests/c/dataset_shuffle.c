// SPDX-License-Identifier: Apache-2.0
// Rows that are held back: to be shuffled, or until a batch is whole that no ring could hold.
#include "dataset_fixture.h"

// Reads an epoch of rows with a payload of 1,000 bytes each; their order.
static void read_shuffled(struct tfos_dataset *dataset, int64_t rows, int64_t *order)
{
    struct tfos_tensor tensors[TENSOR_LIMIT];
    bool *seen = calloc((size_t)rows, sizeof(*seen));
    int64_t count = 0;

    while (next_batch(dataset, tensors)) {
        for (int64_t i = 0; i < tensors[0].shape[0]; i++) {
            int64_t value = int_at(&tensors[0], i);
            int64_t begin = int_at(&tensors[1], i);
            assert_in_range(value, 0, rows - 1);
            assert_false(seen[value]);
            seen[value] = true;
            assert_int_equal(int_at(&tensors[1], i + 1) - begin, 1000);
            assert_int_equal((uint8_t)tensors[1].bytes[begin], (uint8_t)value);
            assert_int_equal((uint8_t)tensors[1].bytes[begin + 999], (uint8_t)value);
            order[count++] = value;
        }
        release_tensors(tensors, 2);
    }
    assert_int_equal(count, rows);
    free(seen);
}

static void shuffle(int64_t shuffle_rows, uint64_t seed, int64_t rows, int64_t *first,
                    int64_t *second)
{
    struct node node;
    struct tfos_dataset_options options = {
        .batch_size = 32, .shuffle_rows = shuffle_rows, .seed = seed};

    node_open(&node, 0);
    node_start(&node);
    for (int64_t epoch = 1; epoch <= 2; epoch++) {
        feed_numbers(&node, epoch, 0, 0, rows, 150, 1000);
        node_end_epoch(&node, epoch);
    }
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    read_shuffled(dataset, rows, first);
    read_shuffled(dataset, rows, second);
    tfos_dataset_close(dataset);
    node_close(&node);
}

static void rows_are_shuffled_within_a_pool(void **state)
{
    enum { SHUFFLED = 1500 };
    static int64_t orders[3][2][SHUFFLED];
    size_t size = sizeof(orders[0][0]);

    (void)state;
    shuffle(400, 7, SHUFFLED, orders[0][0], orders[0][1]);
    shuffle(400, 7, SHUFFLED, orders[1][0], orders[1][1]);
    shuffle(400, 8, SHUFFLED, orders[2][0], orders[2][1]);
    assert_memory_equal(orders[0], orders[1], sizeof(orders[0])); // the same seed, the same order
    assert_memory_not_equal(orders[0][0], orders[0][1], size);    // another in each epoch
    assert_memory_not_equal(orders[0][0], orders[2][0], size);
    int64_t distance = 0;
    for (int64_t i = 0; i < SHUFFLED; i++) {
        // A row cannot be drawn before it is in the buffer.
        assert_true(orders[0][0][i] < i + 400);
        distance += llabs(orders[0][0][i] - i);
    }
    assert_true(distance / SHUFFLED > 100);
    shuffle(100000, 7, SHUFFLED, orders[0][0], orders[0][1]); // all rows in one buffer
    shuffle(1, 7, SHUFFLED, orders[0][0], orders[0][1]);
    for (int64_t i = 0; i < SHUFFLED; i++)
        assert_int_equal(orders[0][0][i], i);
}

static void *feed_large(void *argument)
{
    struct node *node = argument;
    struct writer_options options = writer_options(node, 0);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    assert_done(writer_open(&options, &writer, &err)); // 64 KiB
    for (int64_t row = 0; row < 200; row += 4)
        assert_done(append_rows(writer, row, 4, 4000, &err));
    feed_finish(writer);
    node_end_epoch(node, 1);
    node_set_state(node, TFOS__FEED_ENDED, NULL);
    return NULL;
}

// A batch of 800 kB is made of a ring of 64 KiB, while the one before is held.
static void batches_may_be_larger_than_the_ring(void **state)
{
    struct node node;
    struct tfos_dataset_options options = {.batch_size = 100};
    struct tfos_tensor first[TENSOR_LIMIT], second[TENSOR_LIMIT];
    pthread_t thread;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    pthread_create(&thread, NULL, feed_large, &node);
    assert_true(next_batch(dataset, first));
    assert_true(next_batch(dataset, second));
    for (int64_t i = 0; i < 100; i++) {
        assert_int_equal(int_at(&first[0], i), i);
        assert_int_equal(int_at(&second[0], i), 100 + i);
        assert_int_equal((uint8_t)second[1].bytes[int_at(&second[1], i)], (uint8_t)(100 + i));
    }
    pthread_join(thread, NULL);
    release_tensors(first, 2);
    release_tensors(second, 2);
    assert_false(next_batch(dataset, first));
    tfos_dataset_close(dataset);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(rows_are_shuffled_within_a_pool),
    cmocka_unit_test(batches_may_be_larger_than_the_ring),
};

TEST_MAIN(cases)

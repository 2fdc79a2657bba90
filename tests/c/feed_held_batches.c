// SPDX-License-Identifier: Apache-2.0
// Batches that are held for as long as their consumer likes: the writers continue, and held
// batches keep their addresses and values. Processes are forked before the node's thread starts.
#include "feed_held_batches.h"

static struct held_batches held;

static void nothing_is_ever_released(void **state)
{
    struct node node;
    struct task task;

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    pid_t pid = fork_task(&task);
    node_start(&node);
    struct mapped before = count_mapped();
    assert_int_equal(hold_partition(&node, &held), TOTAL_ROWS);
    wait_task(pid);
    struct mapped during = count_mapped();
    // The host's page, the reader's, and where batches are read now.
    assert_int_equal(during.channel_count, 3);
    assert_true(during.size > before.size + (uint64_t)(RINGS - 2) * RING_SIZE);
    check_held(&held);
    release_held(&held);
    struct mapped after = count_mapped();
    assert_int_equal(after.channel_count, 3);
    assert_true(after.size < before.size + (uint64_t)RINGS / 2 * RING_SIZE);
    assert_int_equal(node_stats(&node).rows_read, TOTAL_ROWS);
    assert_true(node_stats(&node).is_drained);
    node_close(&node);
    assert_int_equal(count_mapped().channel_count, 0);
}

static void the_first_batch_is_held_for_ever(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item first, item;
    int64_t rows = 0;

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    pid_t pid = fork_task(&task);
    node_start(&node);
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    const void *place = first.array.children[1]->buffers[2];
    assert_true(is_in_channel(&first));
    tfos_feed_batch_use(&first.array, 1);
    for (rows = first.array.length;; rows += item.array.length) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END)
            break;
        assert_int_equal(item.first_row, rows);
        check_whole(&item);
        check_batch(&first, PAYLOAD);
        // Only the first was moved, and once.
        assert_true(is_in_channel(&item));
        release_item(&item);
    }
    wait_task(pid);
    assert_int_equal(rows, TOTAL_ROWS);
    assert_false(is_in_channel(&first));
    assert_ptr_equal(first.array.children[1]->buffers[2], place);
    check_whole(&first);
    // Its rows were counted when it was moved.
    tfos_feed_batch_use(&first.array, BATCH_ROWS);
    assert_int_equal(node_stats(&node).rows_read, TOTAL_ROWS);
    // It may even outlive the reader.
    node_close(&node);
    check_whole(&first);
    release_item(&first);
    assert_int_equal(count_mapped().channel_count, 0);
}

// ---- threads that use held batches all the time

#define KEPT 64

struct keeper {
    pthread_mutex_t mutex;
    struct tfos_feed_item items[KEPT]; ///< array.release NULL: the place is free
    atomic_bool is_stopping;
    pthread_t thread;
    int64_t check_count;
};

static void *keeper_main(void *argument)
{
    struct keeper *keeper = argument;
    unsigned turn = 0;

    while (!atomic_load(&keeper->is_stopping)) {
        struct tfos_feed_item item;
        unsigned place = turn++ % KEPT;
        pthread_mutex_lock(&keeper->mutex);
        item = keeper->items[place];
        keeper->items[place].array.release = NULL;
        keeper->items[place].schema.release = NULL;
        pthread_mutex_unlock(&keeper->mutex);
        if (!item.array.release)
            continue;
        check_whole(&item);
        keeper->check_count++;
        // Most are given back, some stay for many rounds and in any order.
        bool is_kept = (item.first_row / BATCH_ROWS) % 3 == 0 && turn % 11 != 0;
        pthread_mutex_lock(&keeper->mutex);
        if (is_kept && !keeper->items[place].array.release) {
            keeper->items[place] = item;
            item.array.release = NULL;
            item.schema.release = NULL;
        }
        pthread_mutex_unlock(&keeper->mutex);
        release_item(&item);
    }
    return NULL;
}

static void give_to_keeper(struct keeper *keeper, struct tfos_feed_item *item)
{
    unsigned place = (unsigned)(item->first_row / BATCH_ROWS) % KEPT;

    pthread_mutex_lock(&keeper->mutex);
    struct tfos_feed_item previous = keeper->items[place];
    keeper->items[place] = *item;
    pthread_mutex_unlock(&keeper->mutex);
    release_item(&previous);
}

static void threads_read_what_moves(void **state)
{
    struct node node;
    struct task task;
    struct keeper keepers[2];
    struct tfos_feed_item item, first;
    int64_t rows = 0;

    (void)state;
    memset(keepers, 0, sizeof(keepers));
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    // A ring that 12 batches fill: held ones are in the way again and again.
    task.options.feeder.channel_size = 12 * BATCH_ROWS * PAYLOAD;
    pid_t pid = fork_task(&task);
    node_start(&node);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&keepers[i].mutex, NULL);
        assert_int_equal(pthread_create(&keepers[i].thread, NULL, keeper_main, &keepers[i]), 0);
    }
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    for (rows = first.array.length;; rows += item.array.length) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END)
            break;
        assert_int_equal(item.first_row, rows);
        give_to_keeper(&keepers[rows / BATCH_ROWS % 2], &item);
    }
    wait_task(pid);
    for (int i = 0; i < 2; i++) {
        atomic_store(&keepers[i].is_stopping, true);
        pthread_join(keepers[i].thread, NULL);
        assert_true(keepers[i].check_count > 0);
        for (int place = 0; place < KEPT; place++) {
            if (!keepers[i].items[place].array.release)
                continue;
            check_whole(&keepers[i].items[place]);
            release_item(&keepers[i].items[place]);
        }
        pthread_mutex_destroy(&keepers[i].mutex);
    }
    assert_int_equal(rows, TOTAL_ROWS);
    assert_false(is_in_channel(&first));
    check_whole(&first);
    release_item(&first);
    node_close(&node);
}

// Calls that do not wait move the batches too.
static void a_reader_that_polls_gets_on(void **state)
{
    struct node node;
    struct task task;
    int64_t rows = 0, deadline = tfos__deadline(WAIT_MS);

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    pid_t pid = fork_task(&task);
    node_start(&node);
    for (bool has_ended = false; !has_ended;) {
        struct tfos_feed_item *item = &held.items[held.count];
        struct tfos_error err;
        enum tfos_status status = tfos_feed_reader_next(node.reader, 0, item, &err);
        assert_true(status == TFOS_OK || status == TFOS_AGAIN);
        assert_true(tfos__now_ms() < deadline);
        if (status == TFOS_AGAIN)
            poll(NULL, 0, 1);
        else if (item->kind == TFOS_FEED_PARTITION_END)
            has_ended = true;
        else {
            rows += item->array.length;
            held.count++;
        }
    }
    wait_task(pid);
    assert_int_equal(rows, TOTAL_ROWS);
    check_held(&held);
    release_held(&held);
    node_close(&node);
}

static void remote_rows_may_be_held(void **state)
{
    struct node node;
    struct task task;

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    task.options.target.socket_name = NULL;
    task.options.target.address = node.address;
    pid_t pid = fork_task(&task);
    node_start(&node);
    assert_int_equal(hold_partition(&node, &held), TOTAL_ROWS);
    wait_task(pid);
    check_held(&held);
    release_held(&held);
    node_close(&node);
}

// An answered batch may be held as well, and the results take their own way.
static void answered_rows_may_be_held(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct writer_options options;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    options = held_batches_options(&node, 0);
    options.feeder.channel_size = 128 << 10;
    options.feeder.has_results = true;
    assert_done(writer_open(&options, &writer, &err));
    for (int64_t row = 0; row < 2000; row += BATCH_ROWS) {
        struct append_call call = {
            .writer = writer, .first = row, .rows = BATCH_ROWS, .payload = PAYLOAD};
        struct tfos_feed_item *item = &held.items[held.count++];
        struct test_batch batch;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
        assert_int_equal(next_item(&node, item), TFOS_OK);
        assert_int_equal(item->first_row, row);
        pthread_join(thread, NULL);
        assert_done(call.status);
        batch_init(&batch, row, item->array.length, 0);
        assert_done(tfos_feed_reader_put_results(node.reader, item->channel, &batch.schema,
                                                 &batch.array, NULL, &err));
        batch_clear(&batch);
        assert_done(tfos__feed_writer_next_result(writer, -1, &schema, &array, &err));
        assert_int_equal(number_at(&array, 0), row);
        schema.release(&schema);
        array.release(&array);
    }
    check_held(&held);
    assert_false(is_in_channel(&held.items[0]));
    release_held(&held);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(nothing_is_ever_released), cmocka_unit_test(the_first_batch_is_held_for_ever),
    cmocka_unit_test(threads_read_what_moves),  cmocka_unit_test(a_reader_that_polls_gets_on),
    cmocka_unit_test(remote_rows_may_be_held),  cmocka_unit_test(answered_rows_may_be_held),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Batches from writer to reader through shared memory: order, sizes, wrap-around, several writers,
// epochs.
#include "feed_task.h"

#define MANY 6

static void rows_arrive_in_order(void **state)
{
    static const struct {
        int64_t rows, batch_rows;
        int payload;
    } sizes[] = {{0, 1, 0},      {1, 1, 0},        {1000, 7, 0},  {5000, 100, 100},
                 {300, 3, 9000}, {200, 200, 3000}, {40, 1, 60000}};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct node node;
        struct task task;
        node_open(&node, 0);
        node_start(&node);
        task_init(&task, &node, 3, sizes[i].rows);
        task.batch_rows = sizes[i].batch_rows;
        task.payload = sizes[i].payload;
        task_run(&task);
        assert_int_equal(read_partition(&node, task.payload), sizes[i].rows);
        task_join(&task);
        assert_int_equal(task.row_count, sizes[i].rows);
        struct tfos__feed_event closed = node_wait_closed(&node, 1);
        assert_int_equal(closed.partition, 3);
        assert_int_equal(closed.rows, sizes[i].rows);
        assert_true(closed.complete);
        struct tfos__feed_stats stats = node_stats(&node);
        assert_int_equal(stats.rows_written, sizes[i].rows);
        assert_int_equal(stats.rows_read, sizes[i].rows);
        assert_true(stats.is_drained);
        assert_int_equal(stats.writer_count, 0);
        node_close(&node);
    }
}

// A batch larger than the ring comes in parts; no row is lost, doubled or moved.
static void batches_larger_than_the_ring_are_cut(void **state)
{
    struct node node;
    struct task task;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    task_init(&task, &node, 0, 5000);
    task.batch_rows = 5000;
    task.payload = 700;
    task_run(&task);
    assert_int_equal(read_partition(&node, 700), 5000);
    task_join(&task);
    assert_int_equal(node.channel_count, 1);
    node_close(&node);
}

// A row larger than the ring makes the channel grow; the attempt continues, and its rows stay in
// order.
static void rows_larger_than_the_ring_grow_the_channel(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_feed_item item;
    struct tfos_error err;
    static const int payloads[] = {100, 100, 200000, 300, 5000000, 64};
    int64_t row = 0;

    (void)state;
    node_open(&node, 1 << 20);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        // Appending waits for the channel only, never for a reader that has space to fill.
        pthread_t thread;
        struct append_call call = {writer, (int64_t)i, 1, payloads[i], TFOS_OK, {0}};
        assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.kind, TFOS_FEED_BATCH);
        assert_int_equal(item.first_row, row);
        check_batch(&item, payloads[i]);
        row += item.array.length;
        release_item(&item);
        pthread_join(thread, NULL);
        assert_int_equal(call.status, TFOS_OK);
    }
    assert_done(tfos__feed_writer_finish(writer, &err));
    assert_int_equal(tfos__feed_writer_row_count(writer), 6);
    tfos__feed_writer_close(writer);
    assert_int_equal(node_wait_closed(&node, 1).rows, 6);
    assert_true(node.closed[0].complete);
    assert_int_equal(node_stats(&node).rows_written, 6);
    assert_int_equal(node_stats(&node).rows_read, 6);
    node_close(&node);
}

// Two channels of one attempt: the second is not read before the first has been, even while the
// first is full.
static void a_larger_channel_waits_for_the_one_before(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    for (int64_t row = 0; row < 20; row++)
        assert_done(append_rows(writer, row, 1, 1000, &err));
    assert_done(append_rows(writer, 20, 1, 100000, &err));
    assert_done(tfos__feed_writer_finish(writer, &err));
    tfos__feed_writer_close(writer);
    for (int64_t row = 0; row <= 20; row++) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.first_row, row);
        release_item(&item);
    }
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_PARTITION_END);
    node_close(&node);
}

static void several_writers_share_the_reader(void **state)
{
    struct node node;
    struct task tasks[MANY];
    struct tfos_feed_item item;
    int64_t next_rows[MANY] = {0};
    int ended = 0;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    for (int i = 0; i < MANY; i++) {
        task_init(&tasks[i], &node, i, 2000 + i);
        tasks[i].payload = 200;
        task_run(&tasks[i]);
    }
    while (ended < MANY) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END) {
            assert_int_equal(next_rows[item.partition], 2000 + item.partition);
            ended++;
            continue;
        }
        assert_int_equal(item.first_row, next_rows[item.partition]);
        check_batch(&item, 200);
        next_rows[item.partition] += item.array.length;
        release_item(&item);
    }
    for (int i = 0; i < MANY; i++)
        task_join(&tasks[i]);
    node_close(&node);
}

// Room for two channels, six writers: they take turns, and no more memory is made.
static void writers_wait_for_a_channel_in_turn(void **state)
{
    struct node node;
    struct task tasks[MANY];
    struct tfos_feed_item item;
    int ended = 0;

    (void)state;
    node_open(&node, 2 * ((64 << 10) + 4096));
    node_start(&node);
    for (int i = 0; i < MANY; i++) {
        task_init(&tasks[i], &node, i, 500);
        tasks[i].payload = 500;
        task_run(&tasks[i]);
    }
    while (ended < MANY) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        ended += item.kind == TFOS_FEED_PARTITION_END;
        release_item(&item);
    }
    for (int i = 0; i < MANY; i++)
        task_join(&tasks[i]);
    assert_true(node.channel_count <= 2);
    assert_true(node.total_size_seen <= 2 * (64 << 10));
    node_close(&node);
}

// A channel of another size takes the memory of one that is not used.
static void unused_channels_make_room(void **state)
{
    static const int64_t sizes[] = {64 << 10, 128 << 10, 64 << 10, 32 << 10, 96 << 10};
    struct node node;

    (void)state;
    node_open(&node, (128 << 10) + 4096);
    node_start(&node);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct task task;
        task_init(&task, &node, (int64_t)i, 300);
        task.options.feeder.channel_size = sizes[i];
        task.payload = 900;
        task_run(&task);
        assert_int_equal(read_partition(&node, 900), 300);
        task_join(&task);
        node_wait_closed(&node, (int)i + 1);
    }
    assert_true(node.total_size_seen <= 128 << 10);
    assert_int_equal(node_stats(&node).rows_read, 5 * 300);
    assert_int_equal(node_stats(&node).rows_written, 5 * 300);
    node_close(&node);
}

// Batches may be given back in any order, and after the reader is gone; space returns in order.
static void batches_are_released_in_any_order(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item items[8], item;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    task_init(&task, &node, 0, 400);
    task.batch_rows = 5;
    task.payload = 1000;
    task_run(&task);
    for (int round = 0; round < 9; round++) {
        for (int i = 0; i < 8; i++)
            assert_int_equal(next_item(&node, &items[i]), TFOS_OK);
        for (int i = 0; i < 8; i++) {
            check_batch(&items[(i * 5 + 3) % 8], 1000);
            release_item(&items[(i * 5 + 3) % 8]);
        }
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_item(&node, &items[i]), TFOS_OK);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_PARTITION_END);
    task_join(&task);
    node_wait_closed(&node, 1);
    // A column may be moved away from its batch and outlives it.
    struct ArrowArray column = *items[7].array.children[0];
    items[7].array.children[0]->release = NULL;
    int64_t row = items[7].first_row;
    for (int i = 0; i < 8; i++)
        release_item(&items[i]);
    assert_int_equal(node_stats(&node).rows_read, 395);
    node_close(&node);
    assert_int_equal(((const int64_t *)column.buffers[1])[4], row + 4);
    column.release(&column);
}

static void feed_partition(struct node *node, int64_t feed, int64_t partition, int64_t rows)
{
    struct writer_options options = writer_options(node, partition);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    options.feeder.feed = feed;
    assert_done(writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, rows, 0, &err));
    assert_done(tfos__feed_writer_finish(writer, &err));
    tfos__feed_writer_close(writer);
}

static void expect(struct node *node, enum tfos_feed_item_kind kind, int64_t feed)
{
    struct tfos_feed_item item;

    assert_int_equal(next_item(node, &item), TFOS_OK);
    assert_int_equal(item.kind, kind);
    assert_int_equal(item.feed, feed);
    release_item(&item);
}

static void epochs_come_one_after_the_other(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    feed_partition(&node, 2, 0, 5);
    feed_partition(&node, 1, 1, 5);
    expect(&node, TFOS_FEED_BATCH, 1);
    expect(&node, TFOS_FEED_PARTITION_END, 1);
    // Feed 2 is there, but more of feed 1 may come.
    assert_int_equal(tfos_feed_reader_next(node.reader, 20, &item, &err), TFOS_AGAIN);
    feed_partition(&node, 1, 0, 5);
    expect(&node, TFOS_FEED_BATCH, 1);
    expect(&node, TFOS_FEED_PARTITION_END, 1);
    node_end_epoch(&node, 1);
    expect(&node, TFOS_FEED_EPOCH_END, 1);
    expect(&node, TFOS_FEED_BATCH, 2);
    expect(&node, TFOS_FEED_PARTITION_END, 2);
    assert_int_equal(tfos_feed_reader_next(node.reader, 0, &item, &err), TFOS_AGAIN);
    // This node was not fed in feed 3, but its epochs are as many as the others'.
    node_end_epoch(&node, 3);
    expect(&node, TFOS_FEED_EPOCH_END, 2);
    expect(&node, TFOS_FEED_EPOCH_END, 3);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    assert_int_equal(next_item(&node, &item), TFOS_END);
    assert_int_equal(next_item(&node, &item), TFOS_END);
    node_close(&node);
}

static void the_end_of_the_feed_ends_all_epochs(void **state)
{
    struct node node;
    struct tfos_feed_item item;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    feed_partition(&node, 1, 0, 5);
    feed_partition(&node, 4, 0, 5);
    feed_partition(&node, 3, 0, 5);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    for (int i = 0; i < 3; i++) {
        static const int64_t feeds[] = {1, 3, 4};
        expect(&node, TFOS_FEED_BATCH, feeds[i]);
        expect(&node, TFOS_FEED_PARTITION_END, feeds[i]);
        expect(&node, TFOS_FEED_EPOCH_END, feeds[i]);
    }
    assert_int_equal(next_item(&node, &item), TFOS_END);
    node_close(&node);
}

static void batches_of_a_stream_are_one_epoch(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    feed_partition(&node, 1, 0, 5);
    node_end_epoch(&node, 1);
    expect(&node, TFOS_FEED_BATCH, 1);
    expect(&node, TFOS_FEED_PARTITION_END, 1);
    expect(&node, TFOS_FEED_EPOCH_END, 1);
    feed_partition(&node, 3, 0, 5);
    feed_partition(&node, 2, 0, 5);
    expect(&node, TFOS_FEED_BATCH, 2);
    expect(&node, TFOS_FEED_PARTITION_END, 2);
    assert_int_equal(tfos_feed_reader_next(node.reader, 20, &item, &err), TFOS_AGAIN);
    node_end_batch(&node, 2);
    expect(&node, TFOS_FEED_BATCH, 3);
    expect(&node, TFOS_FEED_PARTITION_END, 3);
    // Batches without a row for this node are nothing to it.
    node_end_batch(&node, 7);
    assert_int_equal(tfos_feed_reader_next(node.reader, 20, &item, &err), TFOS_AGAIN);
    feed_partition(&node, 8, 0, 5);
    feed_partition(&node, 9, 0, 5);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    for (int64_t feed = 8; feed < 10; feed++) {
        expect(&node, TFOS_FEED_BATCH, feed);
        expect(&node, TFOS_FEED_PARTITION_END, feed);
    }
    expect(&node, TFOS_FEED_EPOCH_END, 9);
    assert_int_equal(next_item(&node, &item), TFOS_END);
    node_close(&node);
}

// The reader knows of all channels before it says that an epoch or the feed has ended.
static void no_end_before_the_last_channel_is_known(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node.keeps_channels = true;
    node_start(&node);
    feed_partition(&node, 1, 0, 5);
    node_end_epoch(&node, 1);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    node_wait_closed(&node, 1);
    assert_int_equal(tfos_feed_reader_next(node.reader, 20, &item, &err), TFOS_AGAIN);
    assert_done(tfos__feed_reader_add_channel(node.reader, node.kept_channel, node.kept_fd, &err));
    expect(&node, TFOS_FEED_BATCH, 1);
    expect(&node, TFOS_FEED_PARTITION_END, 1);
    expect(&node, TFOS_FEED_EPOCH_END, 1);
    assert_int_equal(next_item(&node, &item), TFOS_END);
    node_close(&node);
}

// Schemas may change from batch to batch, and each batch has its own.
static void schemas_change_between_batches(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    for (int64_t i = 0; i < 10; i++)
        assert_done(append_rows(writer, i, 1, i % 3 == 0 ? 0 : 10, &err));
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.schema.n_children, i % 3 == 0 ? 1 : 2);
        check_batch(&item, i % 3 == 0 ? 0 : 10);
        release_item(&item);
    }
    tfos__feed_writer_close(writer);
    assert_false(node_wait_closed(&node, 1).complete);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(rows_arrive_in_order),
    cmocka_unit_test(batches_larger_than_the_ring_are_cut),
    cmocka_unit_test(rows_larger_than_the_ring_grow_the_channel),
    cmocka_unit_test(a_larger_channel_waits_for_the_one_before),
    cmocka_unit_test(several_writers_share_the_reader),
    cmocka_unit_test(writers_wait_for_a_channel_in_turn),
    cmocka_unit_test(unused_channels_make_room),
    cmocka_unit_test(batches_are_released_in_any_order),
    cmocka_unit_test(epochs_come_one_after_the_other),
    cmocka_unit_test(the_end_of_the_feed_ends_all_epochs),
    cmocka_unit_test(batches_of_a_stream_are_one_epoch),
    cmocka_unit_test(no_end_before_the_last_channel_is_known),
    cmocka_unit_test(schemas_change_between_batches),
};

TEST_MAIN(cases)

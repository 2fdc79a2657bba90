// SPDX-License-Identifier: Apache-2.0
// Several queues of one host: each has its reader, its feeds and its state; memory is common.
#include "feed_task.h"

#define CHANNEL_SIZE (64 << 10)

static struct tfos_feed_item take(struct tfos_feed_reader *reader, enum tfos_feed_item_kind kind)
{
    struct tfos_feed_item item = {0};
    struct tfos_error err;

    assert_done(tfos_feed_reader_next(reader, WAIT_MS, &item, &err));
    assert_int_equal(item.kind, kind);
    return item;
}

static void take_row(struct tfos_feed_reader *reader, int64_t number)
{
    struct tfos_feed_item item = take(reader, TFOS_FEED_BATCH);

    assert_int_equal(item.array.length, 1);
    assert_int_equal(number_at(&item.array, 0), number);
    release_item(&item);
}

static void expect_nothing(struct tfos_feed_reader *reader)
{
    struct tfos_feed_item item;
    struct tfos_error err;

    assert_int_equal(tfos_feed_reader_next(reader, 0, &item, &err), TFOS_AGAIN);
}

static struct tfos__feed_writer *open_writer(struct node *node, const char *queue, int64_t feed)
{
    struct writer_options options = writer_options(node, 0);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    options.feeder.queue = queue;
    options.feeder.feed = feed;
    assert_done(writer_open(&options, &writer, &err));
    return writer;
}

static void finish(struct tfos__feed_writer *writer)
{
    struct tfos_error err;

    assert_done(tfos__feed_writer_finish(writer, &err));
    tfos__feed_writer_close(writer);
}

static void end_epoch(struct node *node, const char *queue, int64_t feed)
{
    pthread_mutex_lock(&node->mutex);
    tfos__feed_host_end_epoch(node->host, queue, feed);
    pthread_mutex_unlock(&node->mutex);
}

static struct tfos__feed_queue_stats queue_at(struct node *node, int number)
{
    struct tfos__feed_queue_stats queue = {0};

    pthread_mutex_lock(&node->mutex);
    assert_true(tfos__feed_host_get_queue(node->host, number, &queue));
    pthread_mutex_unlock(&node->mutex);
    return queue;
}

static void two_queues_are_read_alternately(void **state)
{
    struct node node;
    struct tfos_error err;

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node_start(&node);
    // The same feed, partition and attempt in both: they have nothing to do with one another.
    struct tfos__feed_writer *input = open_writer(&node, "input", 1);
    struct tfos__feed_writer *validation = open_writer(&node, "validation", 1);
    for (int64_t row = 0; row < 20; row++) {
        assert_done(append_rows(input, row, 1, 0, &err));
        assert_done(append_rows(validation, 1000 + row, 1, 0, &err));
    }
    finish(validation);
    finish(input);
    for (int64_t row = 0; row < 20; row++) {
        take_row(node.validation, 1000 + row);
        take_row(node.reader, row);
    }
    take(node.reader, TFOS_FEED_PARTITION_END);
    take(node.validation, TFOS_FEED_PARTITION_END);
    end_epoch(&node, "validation", 1);
    take(node.validation, TFOS_FEED_EPOCH_END);
    expect_nothing(node.reader);
    end_epoch(&node, NULL, 1);
    take(node.reader, TFOS_FEED_EPOCH_END);
    // The end of the feed is that of all.
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    struct tfos_feed_item item;
    assert_int_equal(tfos_feed_reader_next(node.reader, WAIT_MS, &item, &err), TFOS_END);
    assert_int_equal(tfos_feed_reader_next(node.validation, WAIT_MS, &item, &err), TFOS_END);
    assert_string_equal(node_wait_closed(&node, 1).queue, "validation");
    assert_string_equal(node_wait_closed(&node, 2).queue, "input");
    node_close(&node);
}

/// Who takes turns at several queues reads the last row of one, and continues with another before
/// the partition's end is there.
static void a_queue_is_drained_without_its_last_partitions_end(void **state)
{
    struct node node;
    struct tfos_error err;

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node_start(&node);
    struct tfos__feed_writer *input = open_writer(&node, "input", 1);
    assert_done(append_rows(input, 0, 1, 0, &err));
    assert_done(append_rows(input, 1, 1, 0, &err));
    take_row(node.reader, 0);
    finish(input);
    assert_false(queue_at(&node, 0).is_drained);
    take_row(node.reader, 1);
    assert_true(queue_at(&node, 0).is_drained);
    take(node.reader, TFOS_FEED_PARTITION_END);
    assert_true(queue_at(&node, 0).is_drained);
    node_close(&node);
}

static void a_reader_terminates_its_own_queue(void **state)
{
    struct node node;
    struct tfos_error err;

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node_start(&node);
    struct tfos__feed_writer *input = open_writer(&node, "input", 1);
    struct tfos__feed_writer *validation = open_writer(&node, "validation", 1);
    assert_done(append_rows(input, 0, 1, 0, &err));
    assert_done(append_rows(validation, 0, 1, 0, &err));
    tfos_feed_reader_terminate(node.validation);
    assert_int_equal(append_rows(validation, 1, 1, 0, &err), TFOS_END);
    assert_done(append_rows(input, 1, 1, 0, &err));
    assert_true(queue_at(&node, 1).is_terminated);
    assert_true(queue_at(&node, 1).is_drained);
    assert_string_equal(queue_at(&node, 1).name, "validation");
    assert_false(queue_at(&node, 0).is_terminated);
    assert_false(queue_at(&node, 0).is_drained);
    assert_false(node_stats(&node).is_terminated);
    assert_false(node_stats(&node).is_drained);
    take_row(node.reader, 0);
    take_row(node.reader, 1);
    assert_true(node_stats(&node).is_drained);
    node_set_state(&node, TFOS__FEED_TERMINATED, NULL);
    assert_true(node_stats(&node).is_terminated);
    tfos__feed_writer_close(validation);
    tfos__feed_writer_close(input);
    node_close(&node);
}

static void attempts_are_fenced_by_queue(void **state)
{
    struct node node;
    struct tfos_error err;
    struct tfos__feed_event fence = {.queue = "validation", .feed = 1, .attempt = 5};

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node_start(&node);
    struct tfos__feed_writer *input = open_writer(&node, "input", 1);
    struct tfos__feed_writer *validation = open_writer(&node, "validation", 1);
    assert_done(append_rows(input, 0, 7, 0, &err));
    assert_done(append_rows(validation, 0, 3, 0, &err));
    pthread_mutex_lock(&node.mutex);
    tfos__feed_host_fence(node.host, &fence);
    assert_int_equal(fence.rows, 3);
    fence.queue = "nothing";
    tfos__feed_host_fence(node.host, &fence);
    assert_int_equal(fence.rows, 0);
    pthread_mutex_unlock(&node.mutex);
    assert_int_equal(append_rows(validation, 3, 1, 0, &err), TFOS_BUSY);
    assert_done(append_rows(input, 7, 1, 0, &err));
    tfos__feed_writer_close(validation);
    tfos__feed_writer_close(input);
    node_close(&node);
}

/// The last rows of an epoch may fill the common memory while the reader wants the other queue.
static void a_queue_gets_a_channel_whatever_the_others_hold(void **state)
{
    struct node node;
    struct tfos_error err;

    (void)state;
    node_open_queues(&node, CHANNEL_SIZE, "input,validation"); // less than one channel
    node_start(&node);
    struct tfos__feed_writer *input = open_writer(&node, "input", 1);
    assert_done(append_rows(input, 0, 1, 0, &err));
    struct tfos__feed_writer *validation = open_writer(&node, "validation", 1);
    assert_done(append_rows(validation, 5, 1, 0, &err));
    take_row(node.validation, 5);
    // A second channel is another matter.
    struct writer_options options = writer_options(&node, 1);
    struct tfos__feed_writer *second = NULL;
    options.feeder.queue = "validation";
    options.feeder.wait.timeout_ms = 200;
    assert_int_equal(writer_open(&options, &second, &err), TFOS_TIMEOUT);
    tfos__feed_writer_close(validation);
    tfos__feed_writer_close(input);
    node_close(&node);
}

/// The timeout is longer than the second between two words of a proxy.
static void fill_until_timeout(struct node *node, bool is_remote)
{
    enum { TIMEOUT_MS = 1500, STEPS = 30, STEP_MS = 100 };
    struct writer_options options = writer_options(node, 0);
    // More than its ring and the sockets hold together.
    struct append_call call = {.rows = 20000, .payload = 1000, .status = TFOS_OK};
    struct tfos_error err;
    pthread_t thread;

    options.feeder.queue = "validation";
    options.feeder.wait.timeout_ms = TIMEOUT_MS;
    if (is_remote) {
        options.target.socket_name = NULL;
        options.target.address = node->address;
    }
    assert_done(writer_open(&options, &call.writer, &err));
    struct tfos__feed_writer *input = open_writer(node, "input", 1);
    assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
    // For twice its timeout the other queue is read, and that counts as progress.
    for (int64_t row = 0; row < STEPS; row++) {
        assert_done(append_rows(input, row, 1, 0, &err));
        take_row(node->reader, row);
        poll(NULL, 0, STEP_MS);
    }
    pthread_mutex_lock(&node->mutex);
    int stalled = node->stalled_count;
    pthread_mutex_unlock(&node->mutex);
    assert_int_equal(stalled, 0);
    // Then nothing is.
    pthread_join(thread, NULL);
    assert_int_equal(call.status, TFOS_TIMEOUT);
    assert_non_null(strstr(call.err.message, "queue \"validation\""));
    tfos__feed_writer_close(call.writer);
    tfos__feed_writer_close(input);
}

static void reading_another_queue_is_progress(void **state)
{
    struct node node;

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node.explanation = "";
    node_start(&node);
    fill_until_timeout(&node, false);
    node_close(&node);
}

static void reading_another_queue_is_progress_to_remote_writers(void **state)
{
    struct node node;

    (void)state;
    node_open_queues(&node, 0, "input,validation");
    node.explanation = "";
    node_start(&node);
    fill_until_timeout(&node, true);
    node_close(&node);
}

static void a_wrong_list_of_queues_is_refused(void **state)
{
    struct tfos__feed_host *host = NULL;
    struct tfos_error err;
    struct tfos__feed_host_options options = {.cluster_id = "test",
                                              .key = TEST_KEY,
                                              .socket_name = "tfos-feed-test-wrong-queues",
                                              .queues = "input,in put"};

    (void)state;
    assert_int_equal(tfos__feed_host_open(&options, &host, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "in put"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(two_queues_are_read_alternately),
    cmocka_unit_test(a_queue_is_drained_without_its_last_partitions_end),
    cmocka_unit_test(a_reader_terminates_its_own_queue),
    cmocka_unit_test(attempts_are_fenced_by_queue),
    cmocka_unit_test(a_queue_gets_a_channel_whatever_the_others_hold),
    cmocka_unit_test(reading_another_queue_is_progress),
    cmocka_unit_test(reading_another_queue_is_progress_to_remote_writers),
    cmocka_unit_test(a_wrong_list_of_queues_is_refused),
};

TEST_MAIN(cases)

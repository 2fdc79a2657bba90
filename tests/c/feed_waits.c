// SPDX-License-Identifier: Apache-2.0
// Who waits for whom: the host's sums of what writers and the reader have waited.
#include "feed_task.h"

#define PAYLOAD 1000 // 64 KiB of ring hold some sixty rows

static int64_t writer_wait(const struct tfos__feed_stats *stats)
{
    return stats->writer_wait_ms;
}

static int64_t reader_wait(const struct tfos__feed_stats *stats)
{
    return stats->reader_wait_ms;
}

/// Waits until the sum has grown beyond `before`, and gives it.
static int64_t await_growth(struct node *node, int64_t (*get)(const struct tfos__feed_stats *),
                            int64_t before)
{
    int64_t deadline = tfos__deadline(WAIT_MS);

    for (;;) {
        struct tfos__feed_stats stats = node_stats(node);
        if (get(&stats) > before)
            return get(&stats);
        if (tfos__now_ms() >= deadline)
            fail_msg("the sum of waits stays at %lld ms", (long long)before);
        poll(NULL, 0, 5);
    }
}

static void a_full_ring_counts_for_the_writer(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        struct node node;
        struct task task;
        node_open(&node, 0);
        node_start(&node);
        task_init(&task, &node, 0, 300);
        task.payload = PAYLOAD;
        if (is_remote) {
            task.options.target.socket_name = NULL;
            task.options.target.address = node.address;
        }
        task_run(&task);
        // It grows while the wait lasts, not only when it is over.
        int64_t waited = await_growth(&node, writer_wait, 0);
        waited = await_growth(&node, writer_wait, waited);
        assert_int_equal(node_stats(&node).reader_wait_ms, 0);
        assert_int_equal(read_partition(&node, PAYLOAD), 300);
        task_join(&task);
        assert_true(node_stats(&node).writer_wait_ms >= waited);
        node_close(&node);
    }
}

static void an_empty_ring_counts_for_the_reader(void **state)
{
    struct tfos_error err;
    struct node node;
    struct tfos_feed_item item;
    struct tfos__feed_writer *writer = NULL;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    assert_int_equal(tfos_feed_reader_next(node.reader, 20, &item, &err), TFOS_AGAIN);
    await_growth(&node, reader_wait, 0);
    assert_int_equal(node_stats(&node).writer_wait_ms, 0);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

static void channels_that_have_gone_still_count(void **state)
{
    struct node node;
    struct task task;

    (void)state;
    // Each task asks for a ring of its own size, and the limit has room for one of them.
    node_open(&node, 160 << 10);
    node_start(&node);
    int64_t waited = 0;
    for (int i = 0; i < 3; i++) {
        task_init(&task, &node, i, 300);
        task.payload = PAYLOAD;
        task.options.feeder.channel_size = (64 + 16 * i) << 10;
        task_run(&task);
        waited = await_growth(&node, writer_wait, waited);
        assert_int_equal(read_partition(&node, PAYLOAD), 300);
        task_join(&task);
        struct tfos__feed_stats stats = node_stats(&node);
        assert_true(stats.writer_wait_ms >= waited);
        assert_true(stats.total_size <= 160 << 10);
    }
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_full_ring_counts_for_the_writer),
    cmocka_unit_test(an_empty_ring_counts_for_the_reader),
    cmocka_unit_test(channels_that_have_gone_still_count),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// One attempt that feeds several nodes: what each knows of the partition, whatever becomes of the
// writer.
#include <signal.h>
#include <sys/wait.h>

#include "feed_fixture.h"

#define NODES 2

static struct writer_options options_for(const struct node *node, bool is_remote, bool is_extra)
{
    struct writer_options options = writer_options(node, 7);

    if (is_remote) {
        options.target.socket_name = NULL;
        options.target.address = node->address;
    }
    options.target.is_extra = is_extra;
    return options;
}

static void open_nodes(struct node *nodes, int64_t memory_limit)
{
    for (int i = 0; i < NODES; i++) {
        node_open(&nodes[i], memory_limit);
        node_start(&nodes[i]);
    }
}

static void close_nodes(struct node *nodes)
{
    for (int i = 0; i < NODES; i++)
        node_close(&nodes[i]);
}

// Reads a batch and checks its first row in the partition.
static void read_batch(struct node *node, int64_t first_row, int64_t rows)
{
    struct tfos_feed_item item;

    assert_int_equal(next_item(node, &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_BATCH);
    assert_int_equal(item.first_row, first_row);
    assert_int_equal(item.array.length, rows);
    check_batch(&item, 0);
    release_item(&item);
}

// Rows [0, 10) and [30, 40) to one node, [10, 30) and the end to the other.
static void feed_by_turns(bool is_remote)
{
    struct node nodes[NODES];
    struct tfos__feed_writer *writers[NODES];
    static const int64_t places[][3] = {{0, 0, 10}, {1, 10, 20}, {0, 30, 10}};
    struct tfos_error err;

    open_nodes(nodes, 0);
    for (int i = 0; i < NODES; i++) {
        struct writer_options options = options_for(&nodes[i], is_remote, i == 1);
        assert_done(writer_open(&options, &writers[i], &err));
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct tfos__feed_writer *writer = writers[places[i][0]];
        tfos__feed_writer_seek(writer, places[i][1]);
        assert_done(append_rows(writer, places[i][1], places[i][2], 0, &err));
        assert_done(tfos__feed_writer_confirm(writer, &err));
        // What is confirmed is there, before the writer does anything else.
        int64_t rows = node_stats(&nodes[places[i][0]]).rows_written;
        assert_int_equal(rows, i == 2 ? 20 : places[i][2]);
    }
    tfos__feed_writer_seek(writers[1], 40);
    assert_done(tfos__feed_writer_finish(writers[1], &err));
    for (int i = 0; i < NODES; i++)
        tfos__feed_writer_close(writers[i]);
    read_batch(&nodes[0], 0, 10);
    read_batch(&nodes[0], 30, 10);
    read_batch(&nodes[1], 10, 20);
    struct tfos_feed_item item;
    assert_int_equal(next_item(&nodes[1], &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_PARTITION_END);
    assert_int_equal(item.first_row, 40);
    for (int i = 0; i < NODES; i++) {
        struct tfos__feed_event closed = node_wait_closed(&nodes[i], 1);
        assert_int_equal(closed.rows, 40);
        assert_int_equal(closed.written, 20);
        assert_int_equal(closed.complete, i == 1);
        assert_int_equal(node_stats(&nodes[i]).rows_read, 20);
    }
    close_nodes(nodes);
}

static void s15_one_partition_goes_to_two_nodes(void **state)
{
    (void)state;
    feed_by_turns(false);
    feed_by_turns(true);
}

// A writer that is killed while it feeds two nodes by turns has published a prefix, which reaches
// to the highest row that one of them has; and another attempt continues there, at both.
static void kill_between_nodes(bool is_remote)
{
    struct node nodes[NODES];
    struct tfos_error err;

    for (int i = 0; i < NODES; i++)
        node_open(&nodes[i], 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct tfos__feed_writer *writers[NODES];
        enum tfos_status status = TFOS_OK;
        for (int i = 0; i < NODES && status == TFOS_OK; i++) {
            struct writer_options options = options_for(&nodes[i], is_remote, i == 1);
            status = writer_open(&options, &writers[i], &err);
        }
        for (int64_t row = 0; status == TFOS_OK; row += 10) {
            struct tfos__feed_writer *writer = writers[row / 10 % NODES];
            tfos__feed_writer_seek(writer, row);
            status = append_rows(writer, row, 10, 0, &err);
            if (status == TFOS_OK)
                status = tfos__feed_writer_confirm(writer, &err);
        }
        _exit(-status);
    }
    for (int i = 0; i < NODES; i++)
        node_start(&nodes[i]);
    // Both have more before one of them is read again, wherever the writer is then.
    for (int64_t row = 0; row < 400; row += 10)
        read_batch(&nodes[row / 10 % NODES], row, 10);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int64_t prefix = 0, written = 0;
    for (int i = 0; i < NODES; i++) {
        struct tfos__feed_event fence = {.feed = 1, .partition = 7, .attempt = 5};
        pthread_mutex_lock(&nodes[i].mutex);
        tfos__feed_host_fence(nodes[i].host, &fence);
        pthread_mutex_unlock(&nodes[i].mutex);
        prefix = fence.rows > prefix ? fence.rows : prefix;
        // Whoever noticed the death first counted the rows.
        written += nodes[i].closed_count ? nodes[i].closed[0].written : fence.written;
    }
    assert_int_equal(written, prefix);
    struct tfos__feed_writer *writers[NODES];
    for (int i = 0; i < NODES; i++) {
        struct writer_options options = options_for(&nodes[i], is_remote, i == 1);
        options.feeder.attempt = 6;
        options.target.first_row = prefix + 10 * i;
        assert_done(writer_open(&options, &writers[i], &err));
        assert_done(append_rows(writers[i], prefix + 10 * i, 10, 0, &err));
        assert_done(tfos__feed_writer_confirm(writers[i], &err));
    }
    for (int64_t row = 400; row < prefix; row += 10)
        read_batch(&nodes[row / 10 % NODES], row, 10);
    for (int i = 0; i < NODES; i++) {
        read_batch(&nodes[i], prefix + 10 * i, 10);
        tfos__feed_writer_close(writers[i]);
    }
    close_nodes(nodes);
}

static void s21_a_writer_is_killed_between_two_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        kill_between_nodes(false);
}

static void s21_a_remote_writer_is_killed_between_two_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        kill_between_nodes(true);
}

static void a_fenced_attempt_stops_at_the_first_node_that_says_so(void **state)
{
    struct node nodes[NODES];
    struct tfos__feed_writer *writers[NODES];
    struct tfos_error err;

    (void)state;
    open_nodes(nodes, 0);
    for (int i = 0; i < NODES; i++) {
        struct writer_options options = options_for(&nodes[i], false, i == 1);
        assert_done(writer_open(&options, &writers[i], &err));
        tfos__feed_writer_seek(writers[i], 10 * i);
        assert_done(append_rows(writers[i], 10 * i, 10, 0, &err));
    }
    struct tfos__feed_event fence = {.feed = 1, .partition = 7, .attempt = 1};
    pthread_mutex_lock(&nodes[1].mutex);
    tfos__feed_host_fence(nodes[1].host, &fence);
    pthread_mutex_unlock(&nodes[1].mutex);
    assert_int_equal(fence.rows, 20);
    assert_int_equal(fence.written, 10);
    tfos__feed_writer_seek(writers[1], 20);
    assert_int_equal(append_rows(writers[1], 20, 10, 0, &err), TFOS_BUSY);
    for (int i = 0; i < NODES; i++)
        tfos__feed_writer_close(writers[i]);
    // The table keeps what the attempt had published; the next fence closes none that lives.
    fence.attempt = 2;
    pthread_mutex_lock(&nodes[1].mutex);
    tfos__feed_host_fence(nodes[1].host, &fence);
    pthread_mutex_unlock(&nodes[1].mutex);
    assert_int_equal(fence.rows, 20);
    assert_int_equal(fence.written, 0);
    close_nodes(nodes);
}

// A writer that holds a channel elsewhere must not wait for one here: those who hold these may wait
// for it. It may grow, too.
static void an_extra_channel_comes_at_once(void **state)
{
    struct node node;
    struct tfos__feed_writer *first = NULL, *extra[3];
    struct tfos_error err;

    (void)state;
    node_open(&node, (64 << 10) + 4096);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &first, &err));
    assert_done(append_rows(first, 0, 10, 0, &err));
    options = writer_options(&node, 1);
    options.feeder.wait.timeout_ms = 100;
    struct tfos__feed_writer *other = NULL;
    assert_int_equal(writer_open(&options, &other, &err), TFOS_TIMEOUT);
    for (int i = 0; i < 3; i++) {
        options = writer_options(&node, 2 + i);
        options.target.is_extra = true;
        assert_done(writer_open(&options, &extra[i], &err));
        assert_done(append_rows(extra[i], 0, 1, 100000, &err));
    }
    for (int i = 0; i < 3; i++)
        tfos__feed_writer_close(extra[i]);
    tfos__feed_writer_close(first);
    for (int i = 0; i < 4; i++) {
        struct tfos_feed_item item;
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        check_batch(&item, item.partition == 0 ? 0 : 100000);
        release_item(&item);
    }
    // They are no burden on the limit once they are read.
    options = writer_options(&node, 9);
    assert_done(writer_open(&options, &other, &err));
    tfos__feed_writer_close(other);
    node_close(&node);
}

static bool is_set(void *context)
{
    return *(atomic_bool *)context;
}

static void *begin_to_read(void *argument)
{
    struct tfos_feed_item item;

    assert_int_equal(next_item(argument, &item), TFOS_OK);
    release_item(&item);
    return NULL;
}

static void a_writer_learns_how_its_reader_reads(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        struct node node;
        struct tfos__feed_writer *writer = NULL;
        struct tfos_error err;
        pthread_t thread;
        node_open(&node, 0);
        node_start(&node);
        struct writer_options options = options_for(&node, is_remote, false);
        atomic_bool is_interrupted = false;
        options.feeder.wait = (struct tfos_wait){WAIT_MS, is_set, &is_interrupted};
        assert_done(writer_open(&options, &writer, &err));
        assert_int_equal(tfos__feed_writer_step_rows(writer), 0);
        is_interrupted = true;
        assert_int_equal(tfos__feed_writer_await_reader(writer, &err), TFOS_CLOSED);
        is_interrupted = false;
        // Who just reads does so at its own pace.
        assert_int_equal(pthread_create(&thread, NULL, begin_to_read, &node), 0);
        assert_done(tfos__feed_writer_await_reader(writer, &err));
        assert_int_equal(tfos__feed_writer_step_rows(writer), -1);
        assert_done(append_rows(writer, 0, 1, 0, &err));
        pthread_join(thread, NULL);
        tfos__feed_reader_set_step_rows(node.reader, INT64_MAX);
        int64_t deadline = tfos__deadline(WAIT_MS);
        for (int64_t row = 1;
             tfos__feed_writer_step_rows(writer) != INT32_MAX && tfos__now_ms() < deadline; row++)
            assert_done(append_rows(writer, row, 1, 0, &err));
        assert_int_equal(tfos__feed_writer_step_rows(writer), INT32_MAX);
        tfos__feed_writer_close(writer);
        node_close(&node);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s15_one_partition_goes_to_two_nodes),
    cmocka_unit_test(s21_a_writer_is_killed_between_two_nodes),
    cmocka_unit_test(s21_a_remote_writer_is_killed_between_two_nodes),
    cmocka_unit_test(a_fenced_attempt_stops_at_the_first_node_that_says_so),
    cmocka_unit_test(an_extra_channel_comes_at_once),
    cmocka_unit_test(a_writer_learns_how_its_reader_reads),
};

TEST_MAIN(cases)

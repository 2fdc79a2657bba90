// SPDX-License-Identifier: Apache-2.0
// Writers and nodes that die, attempts that are superseded, readers that stop: what was delivered
// is exact, and nobody waits in vain. Processes are forked before the node's thread starts.
#include <signal.h>
#include <sys/wait.h>

#include "feed_task.h"

// Forks a process that appends batches of `batch_rows` until something ends it; it exits with the
// status, negated.
static pid_t fork_writer(const struct writer_options *options, int64_t batch_rows, int payload)
{
    pid_t pid = fork();
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    enum tfos_status status = writer_open(options, &writer, &err);
    for (int64_t row = options->target.first_row; status == TFOS_OK; row += batch_rows)
        status = append_rows(writer, row, batch_rows, payload, &err);
    tfos__feed_writer_close(writer);
    _exit(-status);
}

static int wait_exit(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Reads batches until `rows` have come, checking that they follow each other.
static int64_t read_rows(struct node *node, int64_t next_row, int64_t rows, int payload)
{
    struct tfos_feed_item item;

    while (next_row < rows) {
        assert_int_equal(next_item(node, &item), TFOS_OK);
        assert_int_equal(item.kind, TFOS_FEED_BATCH);
        assert_int_equal(item.first_row, next_row);
        check_batch(&item, payload);
        next_row += item.array.length;
        release_item(&item);
    }
    return next_row;
}

static void a_killed_writer_leaves_whole_batches(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        struct node node;
        struct task task;
        struct tfos_feed_item item;
        node_open(&node, 0);
        struct writer_options options = writer_options(&node, 5);
        options.feeder.channel_size = 1 << 20;
        pid_t pid = fork_writer(&options, 40, 5000);
        node_start(&node);
        int64_t rows = read_rows(&node, 0, 1 + round * 37, 5000);
        kill(pid, SIGKILL);
        assert_int_equal(wait_exit(pid), -SIGKILL);
        struct tfos__feed_event closed = node_wait_closed(&node, 1);
        assert_false(closed.complete);
        assert_int_equal(closed.partition, 5);
        rows = read_rows(&node, rows, closed.rows, 5000);
        assert_int_equal(rows, closed.rows);
        // The next attempt continues behind what was delivered: on the same channel, unless a
        // filler that nobody has passed over yet is left in it.
        task_init(&task, &node, 5, rows + 200);
        task.options.feeder.attempt = 1;
        task.options.target.first_row = rows;
        task.options.feeder.channel_size = 1 << 20;
        task.payload = 10;
        task_run(&task);
        assert_int_equal(read_rows(&node, rows, rows + 200, 10), rows + 200);
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.kind, TFOS_FEED_PARTITION_END);
        assert_int_equal(item.first_row, rows + 200);
        task_join(&task);
        assert_int_equal(task.row_count, 200);
        assert_int_equal(node_wait_closed(&node, 2).rows, rows + 200);
        assert_in_range(node.channel_count, 1, 2);
        node_close(&node);
    }
}

// A stopped process is fenced, its successor feeds the rest, and when it wakes up it can publish
// nothing.
static void a_zombie_publishes_nothing(void **state)
{
    struct node node;
    struct task task;
    struct tfos__feed_event fence = {.feed = 1, .attempt = 3}, again = fence;

    (void)state;
    node_open(&node, 0);
    struct writer_options options = writer_options(&node, 0);
    pid_t pid = fork_writer(&options, 10, 1000);
    node_start(&node);
    read_rows(&node, 0, 100, 1000);
    kill(pid, SIGSTOP);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    pthread_mutex_lock(&node.mutex);
    tfos__feed_host_fence(node.host, &fence);
    tfos__feed_host_fence(node.host, &again);
    pthread_mutex_unlock(&node.mutex);
    int64_t rows = fence.rows;
    assert_false(again.complete);
    assert_int_equal(rows, again.rows);
    assert_in_range(rows, 100, 100 + 65536 / 10);
    task_init(&task, &node, 0, rows + 50);
    task.options.feeder.attempt = 3;
    task.options.target.first_row = rows;
    task.payload = 1000;
    task_run(&task);
    kill(pid, SIGCONT);
    assert_int_equal(wait_exit(pid), -TFOS_BUSY);
    assert_int_equal(read_rows(&node, 100, rows, 1000), rows);
    assert_int_equal(read_rows(&node, rows, rows + 50, 1000), rows + 50);
    task_join(&task);
    node_close(&node);
}

static enum tfos_status try_open(const struct writer_options *options, struct tfos_error *err)
{
    struct tfos__feed_writer *writer = NULL;
    enum tfos_status status = writer_open(options, &writer, err);

    if (status == TFOS_OK)
        tfos__feed_writer_close(writer);
    return status;
}

static void rows_are_not_accepted_twice(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    struct tfos__feed_event fence = {.feed = 1, .attempt = 9};

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    options.feeder.attempt = 2;
    assert_done(writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 10, 0, &err));
    struct writer_options other = options;
    assert_int_equal(try_open(&other, &err), TFOS_BUSY);
    other.feeder.attempt = 1;
    assert_int_equal(try_open(&other, &err), TFOS_BUSY);
    // A later attempt supersedes the living one, but may not repeat what that delivered.
    other.feeder.attempt = 4;
    other.target.first_row = 5;
    assert_int_equal(try_open(&other, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "10 rows"));
    assert_int_equal(append_rows(writer, 10, 10, 0, &err), TFOS_BUSY);
    assert_int_equal(tfos__feed_writer_finish(writer, &err), TFOS_BUSY);
    assert_int_equal(tfos__feed_writer_row_count(writer), 10);
    tfos__feed_writer_close(writer);
    assert_int_equal(node_wait_closed(&node, 1).rows, 10);
    other.target.first_row = 10;
    assert_int_equal(try_open(&other, &err), TFOS_OK);
    pthread_mutex_lock(&node.mutex);
    tfos__feed_host_fence(node.host, &fence);
    assert_int_equal(fence.rows, 10);
    fence.partition = 77;
    tfos__feed_host_fence(node.host, &fence);
    assert_int_equal(fence.rows, 0);
    pthread_mutex_unlock(&node.mutex);
    other.feeder.attempt = 8;
    assert_int_equal(try_open(&other, &err), TFOS_BUSY);
    node_close(&node);
}

static void strangers_are_refused(void **state)
{
    struct node node;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    options.feeder.key = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    assert_int_equal(try_open(&options, &err), TFOS_DENIED);
    options.feeder.key = "short";
    assert_int_equal(try_open(&options, &err), TFOS_INVALID);
    options = writer_options(&node, 0);
    options.feeder.queue = "output";
    assert_int_equal(try_open(&options, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "output"));
    options = writer_options(&node, 0);
    options.target.socket_name = "tfos-feed-nobody-listens-here";
    assert_int_equal(try_open(&options, &err), TFOS_NOT_FOUND);
    options = writer_options(&node, 0);
    options.feeder.feed = 0;
    assert_int_equal(try_open(&options, &err), TFOS_INVALID);
    options = writer_options(&node, -1);
    assert_int_equal(try_open(&options, &err), TFOS_INVALID);
    assert_int_equal(node.closed_count, 0);
    node_close(&node);
}

// Appends until something other than OK comes back.
static void *fill_main(void *argument)
{
    struct append_call *call = argument;

    while (call->status == TFOS_OK) {
        call->status =
            append_rows(call->writer, call->first, call->rows, call->payload, &call->err);
        call->first += call->rows;
    }
    return NULL;
}

// A writer that waits for space in a full ring, and another that waits for a channel.
struct waiting {
    struct node node;
    struct append_call call;
    struct task task;
    pthread_t thread;
};

static void waiting_open(struct waiting *waiting)
{
    struct tfos_error err;

    node_open(&waiting->node, 64 << 10);
    node_start(&waiting->node);
    struct writer_options options = writer_options(&waiting->node, 0);
    waiting->call = (struct append_call){.rows = 10, .payload = 500};
    assert_done(writer_open(&options, &waiting->call.writer, &err));
    assert_int_equal(pthread_create(&waiting->thread, NULL, fill_main, &waiting->call), 0);
    task_init(&waiting->task, &waiting->node, 1, 10);
    task_run(&waiting->task);
    while (node_stats(&waiting->node).used_size < 50000)
        poll(NULL, 0, 2);
}

static void waiting_close(struct waiting *waiting)
{
    pthread_join(waiting->thread, NULL);
    pthread_join(waiting->task.thread, NULL);
    tfos__feed_writer_close(waiting->call.writer);
    node_close(&waiting->node);
}

static void a_failure_reaches_all_who_wait(void **state)
{
    struct waiting waiting;

    (void)state;
    waiting_open(&waiting);
    int64_t begin = tfos__now_ms();
    node_set_state(&waiting.node, TFOS__FEED_FAILED, "worker:1 has ended with signal 9");
    waiting_close(&waiting);
    assert_true(tfos__now_ms() - begin < 2000);
    assert_int_equal(waiting.call.status, TFOS_CLOSED);
    assert_non_null(strstr(waiting.call.err.message, "worker:1 has ended with signal 9"));
    assert_int_equal(waiting.task.status, TFOS_CLOSED);
    assert_non_null(strstr(waiting.task.err.message, "worker:1 has ended with signal 9"));
}

static void the_end_of_reading_reaches_all_who_wait(void **state)
{
    struct waiting waiting;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    waiting_open(&waiting);
    tfos_feed_reader_terminate(waiting.node.reader);
    assert_int_equal(tfos_feed_reader_next(waiting.node.reader, -1, &item, &err), TFOS_END);
    assert_true(node_stats(&waiting.node).is_terminated);
    assert_true(node_stats(&waiting.node).is_drained);
    struct writer_options options = writer_options(&waiting.node, 2);
    assert_int_equal(try_open(&options, &err), TFOS_END);
    waiting_close(&waiting);
    assert_int_equal(waiting.call.status, TFOS_END);
    assert_int_equal(waiting.task.status, TFOS_END);
}

static bool interrupt(void *context)
{
    return atomic_load((atomic_bool *)context);
}

static void a_wait_can_be_interrupted(void **state)
{
    struct node node;
    struct append_call call = {.rows = 10, .payload = 500};
    struct tfos_error err;
    atomic_bool is_interrupted = false;
    pthread_t thread;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    options.feeder.wait.is_interrupted = interrupt;
    options.feeder.wait.context = &is_interrupted;
    assert_done(writer_open(&options, &call.writer, &err));
    assert_int_equal(pthread_create(&thread, NULL, fill_main, &call), 0);
    while (node_stats(&node).used_size < 50000)
        poll(NULL, 0, 2);
    atomic_store(&is_interrupted, true);
    pthread_join(thread, NULL);
    assert_int_equal(call.status, TFOS_CLOSED);
    tfos__feed_writer_close(call.writer);
    node_close(&node);
}

// The reader fails or ends while somebody waits in next().
static void *fail_main(void *argument)
{
    poll(NULL, 0, 50);
    tfos_feed_reader_fail(argument, TFOS_CLOSED, "the node has gone");
    return NULL;
}

static void the_reader_wakes_when_its_node_goes(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;
    pthread_t thread;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    assert_int_equal(pthread_create(&thread, NULL, fail_main, node.reader), 0);
    assert_int_equal(tfos_feed_reader_next(node.reader, -1, &item, &err), TFOS_CLOSED);
    assert_string_equal(err.message, "the node has gone");
    pthread_join(thread, NULL);
    node_close(&node);
}

static void a_killed_node_is_noticed(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    pid_t pid = fork();
    if (pid == 0) {
        node_start(&node);
        pthread_join(node.thread, NULL);
        _exit(0);
    }
    struct writer_options options = writer_options(&node, 0);
    // This process holds the listening sockets too; the child accepts.
    assert_done(writer_open(&options, &writer, &err));
    kill(pid, SIGKILL);
    assert_int_equal(wait_exit(pid), -SIGKILL);
    struct append_call call = {writer, 0, 10, 500, TFOS_OK, {0}};
    fill_main(&call);
    assert_int_equal(call.status, TFOS_CLOSED);
    tfos__feed_writer_close(writer);
    tfos__feed_reader_close(node.reader);
    tfos__feed_host_close(node.host);
}

static void a_stalled_reader_is_explained(void **state)
{
    struct node node;
    struct append_call call = {.rows = 10, .payload = 500};
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node.explanation = "train.py:12 in step: time.sleep(9999)";
    node_start(&node);
    struct writer_options options = writer_options(&node, 4);
    options.feeder.wait.timeout_ms = 300;
    assert_done(writer_open(&options, &call.writer, &err));
    assert_done(append_rows(call.writer, 0, 10, 500, &err));
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    release_item(&item);
    call.first = 10;
    fill_main(&call);
    assert_int_equal(call.status, TFOS_TIMEOUT);
    assert_non_null(strstr(call.err.message, "partition 4"));
    assert_non_null(strstr(call.err.message, "10 taken"));
    assert_non_null(strstr(call.err.message, "time.sleep(9999)"));
    assert_int_equal(node.stalled_count, 1);
    tfos__feed_writer_close(call.writer);
    node_close(&node);
}

// A reader that takes something within each timeout may be as slow as it likes, also towards those
// who wait for a channel.
static void a_slow_reader_is_no_stalled_one(void **state)
{
    struct node node;
    struct task first, second;
    struct tfos_feed_item item;
    int ended = 0;

    (void)state;
    node_open(&node, 64 << 10);
    node_start(&node);
    task_init(&first, &node, 0, 250);
    first.payload = 2000;
    first.options.feeder.wait.timeout_ms = 1500;
    task_run(&first);
    while (node.channel_count == 0)
        poll(NULL, 0, 1);
    task_init(&second, &node, 1, 10);
    second.options.feeder.wait.timeout_ms = 1500;
    task_run(&second);
    int64_t begin = tfos__now_ms();
    while (ended < 2) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        ended += item.kind == TFOS_FEED_PARTITION_END;
        if (item.partition == 0)
            poll(NULL, 0, 200);
        release_item(&item);
    }
    assert_true(tfos__now_ms() - begin > 3 * 1500);
    task_join(&first);
    task_join(&second);
    node_close(&node);
}

// S12: so may one that takes a batch row by row.
static void a_reader_slow_over_one_batch_is_no_stalled_one(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item item;
    struct tfos__feed_stats stats;

    (void)state;
    node_open(&node, 64 << 10);
    node_start(&node);
    task_init(&task, &node, 0, 250);
    task.payload = 2000;
    task.options.feeder.wait.timeout_ms = 700;
    task_run(&task);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    for (int64_t row = 0; row < item.array.length; row++) {
        poll(NULL, 0, 2000 / (int)item.array.length);
        tfos_feed_batch_use(&item.array, 1);
    }
    pthread_mutex_lock(&node.mutex);
    tfos__feed_host_get_stats(node.host, &stats);
    pthread_mutex_unlock(&node.mutex);
    assert_int_equal(stats.rows_read, item.array.length);
    do
        release_item(&item);
    while (next_item(&node, &item) == TFOS_OK && item.kind != TFOS_FEED_PARTITION_END);
    task_join(&task);
    node_close(&node);
}

static void waiting_for_a_channel_ends(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 64 << 10);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    struct writer_options other = writer_options(&node, 1);
    other.feeder.wait.timeout_ms = 200;
    assert_int_equal(try_open(&other, &err), TFOS_TIMEOUT);
    assert_non_null(strstr(err.message, "partition 1"));
    tfos__feed_writer_close(writer);
    other.feeder.wait.timeout_ms = WAIT_MS;
    assert_int_equal(try_open(&other, &err), TFOS_OK);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_killed_writer_leaves_whole_batches),
    cmocka_unit_test(a_zombie_publishes_nothing),
    cmocka_unit_test(rows_are_not_accepted_twice),
    cmocka_unit_test(strangers_are_refused),
    cmocka_unit_test(a_failure_reaches_all_who_wait),
    cmocka_unit_test(the_end_of_reading_reaches_all_who_wait),
    cmocka_unit_test(a_wait_can_be_interrupted),
    cmocka_unit_test(the_reader_wakes_when_its_node_goes),
    cmocka_unit_test(a_killed_node_is_noticed),
    cmocka_unit_test(a_stalled_reader_is_explained),
    cmocka_unit_test(a_slow_reader_is_no_stalled_one),
    cmocka_unit_test(a_reader_slow_over_one_batch_is_no_stalled_one),
    cmocka_unit_test(waiting_for_a_channel_ends),
};

TEST_MAIN(cases)

// SPDX-License-Identifier: Apache-2.0
// Feeding over TCP: what holds for shared memory holds there too.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/channel.h"
#include "base/listener.h"
#include "base/socket.h"
#include "feed/record.h"
#include "feed_task.h"

static struct writer_options remote_options(const struct node *node, int64_t partition)
{
    struct writer_options options = writer_options(node, partition);

    options.target.socket_name = NULL;
    options.target.address = node->address;
    return options;
}

static void rows_arrive_in_order(void **state)
{
    static const struct {
        int64_t rows, batch_rows;
        int payload;
    } sizes[] = {{0, 1, 0},        {1, 1, 0},      {3000, 7, 100},
                 {300, 300, 3000}, {30, 1, 60000}, {20, 2, 300000}};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct node node;
        struct task task;
        node_open(&node, 0);
        node_start(&node);
        task_init(&task, &node, 3, sizes[i].rows);
        task.options = remote_options(&node, 3);
        task.batch_rows = sizes[i].batch_rows;
        task.payload = sizes[i].payload;
        task_run(&task);
        assert_int_equal(read_partition(&node, task.payload), sizes[i].rows);
        task_join(&task);
        struct tfos__feed_event closed = node_wait_closed(&node, 1);
        assert_int_equal(closed.rows, sizes[i].rows);
        assert_true(closed.complete);
        node_close(&node);
    }
}

static void several_writers_of_both_kinds(void **state)
{
    struct node node;
    struct task tasks[6];
    struct tfos_feed_item item;
    int64_t next_rows[6] = {0};
    int ended = 0;

    (void)state;
    node_open(&node, 3 * ((64 << 10) + 4096));
    node_start(&node);
    for (int i = 0; i < 6; i++) {
        task_init(&tasks[i], &node, i, 800);
        if (i % 2)
            tasks[i].options = remote_options(&node, i);
        tasks[i].payload = 700;
        task_run(&tasks[i]);
    }
    while (ended < 6) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.first_row, next_rows[item.partition]);
        if (item.kind == TFOS_FEED_PARTITION_END) {
            ended++;
            continue;
        }
        check_batch(&item, 700);
        next_rows[item.partition] += item.array.length;
        release_item(&item);
    }
    for (int i = 0; i < 6; i++)
        task_join(&tasks[i]);
    assert_true(node.channel_count <= 3);
    node_close(&node);
}

// More than the socket takes at once, and a writer that makes no further call: its next row may be
// a long time away.
static void all_that_was_appended_arrives_without_another_call(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    int64_t deadline = tfos__deadline(WAIT_MS);

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = remote_options(&node, 0);
    options.feeder.channel_size = 64 << 20;
    assert_done(writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 40, 600000, &err));
    while (node_stats(&node).rows_written < 40 && tfos__now_ms() < deadline)
        poll(NULL, 0, 5);
    assert_int_equal(node_stats(&node).rows_written, 40);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

static void a_killed_writer_leaves_whole_batches(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;
    int64_t rows = 0;

    (void)state;
    node_open(&node, 0);
    struct writer_options options = remote_options(&node, 5);
    options.feeder.channel_size = 1 << 20;
    pid_t pid = fork();
    if (pid == 0) {
        struct tfos__feed_writer *writer = NULL;
        enum tfos_status status = writer_open(&options, &writer, &err);
        for (int64_t row = 0; status == TFOS_OK; row += 40)
            status = append_rows(writer, row, 40, 5000, &err);
        _exit(-status);
    }
    node_start(&node);
    struct tfos__feed_event closed = {0};
    for (bool is_killed = false; !is_killed || rows < closed.rows;) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.first_row, rows);
        check_batch(&item, 5000);
        rows += item.array.length;
        release_item(&item);
        if (!is_killed && rows > 2000) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            closed = node_wait_closed(&node, 1);
            is_killed = true;
        }
    }
    assert_false(closed.complete);
    assert_int_equal(rows, closed.rows);
    // What comes next is the end, not a row that was counted by nobody.
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_EPOCH_END);
    assert_int_equal(next_item(&node, &item), TFOS_END);
    node_close(&node);
}

static void strangers_are_refused(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = remote_options(&node, 0);
    options.feeder.key = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    assert_int_equal(writer_open(&options, &writer, &err), TFOS_DENIED);
    options = remote_options(&node, 0);
    options.feeder.cluster_id = "another";
    assert_int_equal(writer_open(&options, &writer, &err), TFOS_DENIED);
    options = remote_options(&node, 0);
    options.target.address = "127.0.0.1:1";
    assert_int_equal(writer_open(&options, &writer, &err), TFOS_CLOSED);
    assert_int_equal(node.closed_count, 0);
    node_close(&node);
}

// Random bytes in place of TLS do not disturb those who belong here.
static void noise_is_ignored(void **state)
{
    struct node node;
    struct task task;
    int fds[20];

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    for (int i = 0; i < 20; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)tfos__feed_host_port(node.host)),
                                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
        char noise[300];
        memset(noise, 17 * i, sizeof(noise));
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
        (void)!send(fds[i], noise, (size_t)i * 15, MSG_NOSIGNAL);
    }
    task_init(&task, &node, 0, 100);
    task.options = remote_options(&node, 0);
    task_run(&task);
    assert_int_equal(read_partition(&node, 0), 100);
    task_join(&task);
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    node_close(&node);
}

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

// Opens a remote writer and lets it fill all there is to fill.
static void start_filling(struct node *node, struct append_call *call, pthread_t *thread,
                          int64_t timeout_ms)
{
    struct tfos_error err;
    int64_t used = -1;

    node_open(node, 0);
    node->explanation = "train.py:12 in step: time.sleep(9999)";
    node_start(node);
    struct writer_options options = remote_options(node, 4);
    options.feeder.wait.timeout_ms = timeout_ms;
    *call = (struct append_call){.rows = 10, .payload = 5000};
    assert_done(writer_open(&options, &call->writer, &err));
    assert_int_equal(pthread_create(thread, NULL, fill_main, call), 0);
    while (used < 40000) {
        used = node_stats(node).used_size;
        poll(NULL, 0, 5);
    }
}

static void stop_filling(struct node *node, struct append_call *call, pthread_t thread)
{
    pthread_join(thread, NULL);
    tfos__feed_writer_close(call->writer);
    node_close(node);
}

static void the_end_of_reading_is_told(void **state)
{
    struct node node;
    struct append_call call;
    pthread_t thread;

    (void)state;
    start_filling(&node, &call, &thread, WAIT_MS);
    tfos_feed_reader_terminate(node.reader);
    stop_filling(&node, &call, thread);
    assert_int_equal(call.status, TFOS_END);
}

static void a_failure_is_told(void **state)
{
    struct node node;
    struct append_call call;
    pthread_t thread;

    (void)state;
    start_filling(&node, &call, &thread, WAIT_MS);
    node_set_state(&node, TFOS__FEED_FAILED, "worker:1 has ended with signal 9");
    stop_filling(&node, &call, thread);
    assert_int_equal(call.status, TFOS_CLOSED);
    assert_non_null(strstr(call.err.message, "worker:1 has ended with signal 9"));
}

static void a_fenced_writer_is_told(void **state)
{
    struct node node;
    struct append_call call;
    struct tfos_feed_item item;
    pthread_t thread;
    struct tfos__feed_event fence = {.feed = 1, .partition = 4, .attempt = 1};
    int64_t read = 0;

    (void)state;
    start_filling(&node, &call, &thread, WAIT_MS);
    pthread_mutex_lock(&node.mutex);
    tfos__feed_host_fence(node.host, &fence);
    pthread_mutex_unlock(&node.mutex);
    assert_true(fence.rows >= 1);
    assert_false(fence.complete);
    pthread_join(thread, NULL);
    assert_int_equal(call.status, TFOS_BUSY);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    while (next_item(&node, &item) == TFOS_OK) {
        read += item.kind == TFOS_FEED_BATCH ? item.array.length : 0;
        release_item(&item);
    }
    assert_int_equal(read, fence.rows);
    tfos__feed_writer_close(call.writer);
    node_close(&node);
}

static void a_stalled_reader_is_explained(void **state)
{
    struct node node;
    struct append_call call;
    pthread_t thread;

    (void)state;
    start_filling(&node, &call, &thread, 400);
    stop_filling(&node, &call, thread);
    assert_int_equal(call.status, TFOS_TIMEOUT);
    assert_non_null(strstr(call.err.message, "time.sleep(9999)"));
}

// The node's end comes while its proxies are at work.
static void the_node_closes_under_way(void **state)
{
    struct node node;
    struct append_call call;
    pthread_t thread;

    (void)state;
    start_filling(&node, &call, &thread, WAIT_MS);
    int64_t begin = tfos__now_ms();
    node_close(&node);
    assert_true(tfos__now_ms() - begin < 2000);
    pthread_join(thread, NULL);
    assert_int_equal(call.status, TFOS_CLOSED);
    tfos__feed_writer_close(call.writer);
}

// A node that holds the key and is up to no good: it gives a channel, and answers the row with one
// record's head.
struct hostile_node {
    int listener;
    int64_t channel_size;
    size_t row_size;
    struct tfos__feed_record record;
    pthread_t thread;
};

static void *hostile_main(void *argument)
{
    struct hostile_node *node = argument;
    struct tfos__identity identity = {.cluster_id = "test"};
    struct tfos__channel *channel = NULL;
    struct tfos_error err;
    char peer[TFOS__ADDRESS_SIZE];
    json_t *message = NULL;
    size_t done = 0;
    int fd = -1;

    for (size_t i = 0; i < sizeof(identity.key); i++)
        identity.key[i] = (unsigned char)(i % 16 * 0x11);
    assert_done(tfos__socket_wait(node->listener, POLLIN, tfos__deadline(WAIT_MS), &err));
    assert_done(tfos__socket_accept(node->listener, &fd, peer, &err));
    assert_done(tfos__channel_open(fd, TFOS__CHANNEL_TLS_SERVER, &identity, peer, &channel, &err));
    assert_done(
        tfos__channel_receive(channel, &message, NULL, NULL, tfos__deadline(WAIT_MS), &err));
    json_decref(message);
    // The writer answers with records, which are no frames.
    assert_done(
        tfos__channel_queue(channel,
                            json_pack("{ss si sI si}", "type", "channel", "channel", 0, "size",
                                      (json_int_t)node->channel_size, "batch_rows", 0),
                            NULL, 0, &err));
    assert_done(tfos__channel_flush(channel, &err));
    size_t received = 0;
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK || status == TFOS_AGAIN) { // until the writer has gone
        uint8_t bytes[4096];
        (void)tfos__socket_wait(fd, POLLIN, tfos__deadline(WAIT_MS), &err);
        status = tfos__channel_read_some(channel, bytes, sizeof(bytes), &done, &err);
        bool had_row = received > node->row_size;
        received += done;
        if (status == TFOS_OK && !had_row && received > node->row_size)
            (void)!tfos__channel_write_some(channel, &node->record, sizeof(node->record), &done,
                                            &err);
    }
    tfos__channel_close(channel);
    return NULL;
}

// Opens a writer for a channel of 64 KiB, feeds a row, and gives how it ends.
static enum tfos_status meet_hostile_node(struct hostile_node *hostile, int64_t timeout_ms,
                                          struct tfos_error *out)
{
    struct node address;
    struct tfos_error err;
    struct tfos__feed_writer *writer = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    int port = 0;

    assert_done(tfos__listener_open("127.0.0.1", NULL, &hostile->listener, &port, &err));
    snprintf(address.address, sizeof(address.address), "127.0.0.1:%d", port);
    assert_int_equal(pthread_create(&hostile->thread, NULL, hostile_main, hostile), 0);
    struct writer_options options = remote_options(&address, 0);
    options.feeder.has_results = true;
    enum tfos_status status = writer_open(&options, &writer, &err);
    if (status == TFOS_OK)
        status = append_rows(writer, 0, 1, (int)hostile->row_size, &err);
    if (status == TFOS_OK || status == TFOS_AGAIN)
        status = tfos__feed_writer_next_result(writer, timeout_ms, &schema, &array, &err);
    tfos__feed_writer_close(writer);
    pthread_join(hostile->thread, NULL);
    close(hostile->listener);
    *out = err;
    return status;
}

static void a_result_larger_than_its_ring_is_refused(void **state)
{
    static const struct {
        uint32_t kind;
        uint64_t size;
        size_t row_size;
        enum tfos_status status;
    } tries[] = {
        {TFOS__FEED_RECORD_BATCH, 64 << 10, 0, TFOS_AGAIN}, // the rest of it does not come
        {TFOS__FEED_RECORD_BATCH, (64 << 10) + 64, 0, TFOS_CORRUPT},
        {TFOS__FEED_RECORD_SCHEMA, UINT64_C(1) << 40, 0, TFOS_CORRUPT},
        {TFOS__FEED_RECORD_PIECE, UINT64_C(1) << 38, 0, TFOS_CORRUPT},
        {TFOS__FEED_RECORD_MESSAGE, UINT64_C(1) << 40, 0, TFOS_CORRUPT},
        // For a larger row the node has a larger ring.
        {TFOS__FEED_RECORD_BATCH, 200000 / 64 * 64, 100000, TFOS_AGAIN},
        {TFOS__FEED_RECORD_BATCH, 300000 / 64 * 64, 100000, TFOS_CORRUPT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct hostile_node hostile = {.channel_size = 64 << 10,
                                       .row_size = tries[i].row_size,
                                       .record = {.kind = tries[i].kind, .size = tries[i].size}};
        struct tfos_error err;
        bool is_refused = tries[i].status == TFOS_CORRUPT;
        assert_int_equal(meet_hostile_node(&hostile, is_refused ? WAIT_MS : 100, &err),
                         tries[i].status);
        if (is_refused)
            assert_non_null(strstr(err.message, "of its ring"));
    }
}

static void a_channel_larger_than_was_asked_for_is_refused(void **state)
{
    struct hostile_node hostile = {.channel_size = (64 << 10) + 4096};
    struct tfos_error err;

    (void)state;
    assert_int_equal(meet_hostile_node(&hostile, WAIT_MS, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "69632 bytes, where 65536 were asked for"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(rows_arrive_in_order),
    cmocka_unit_test(several_writers_of_both_kinds),
    cmocka_unit_test(all_that_was_appended_arrives_without_another_call),
    cmocka_unit_test(a_killed_writer_leaves_whole_batches),
    cmocka_unit_test(strangers_are_refused),
    cmocka_unit_test(noise_is_ignored),
    cmocka_unit_test(a_result_larger_than_its_ring_is_refused),
    cmocka_unit_test(a_channel_larger_than_was_asked_for_is_refused),
    cmocka_unit_test(the_end_of_reading_is_told),
    cmocka_unit_test(a_failure_is_told),
    cmocka_unit_test(a_fenced_writer_is_told),
    cmocka_unit_test(a_stalled_reader_is_explained),
    cmocka_unit_test(the_node_closes_under_way),
};

TEST_MAIN(cases)

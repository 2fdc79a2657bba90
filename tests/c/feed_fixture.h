// SPDX-License-Identifier: Apache-2.0
/// A node in a thread, with a reader beside it, and batches to feed: what the tests of the feed
/// share. Writers run in threads or in processes forked before any thread.
#ifndef TFOS_TEST_FEED_FIXTURE_H
#define TFOS_TEST_FEED_FIXTURE_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "feed/feed.h"
#include "harness.h"

#define TEST_KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WAIT_MS 20000

struct node {
    struct tfos__feed_host *host;
    struct tfos_feed_reader *reader;
    struct tfos_feed_reader *validation; ///< of the second queue, if there is one
    char socket_name[64];
    char address[64];
    pthread_t thread;
    pthread_mutex_t mutex; ///< guards the host and what follows
    bool is_stopping;
    bool keeps_channels; ///< channels are not given to the reader, the last is kept here
    int kept_channel, kept_fd;
    atomic_int channel_count;
    _Atomic int64_t total_size_seen;
    struct tfos__feed_event closed[4096]; ///< attempts that ended
    atomic_int closed_count, stalled_count;
    const char *explanation;
};

static inline void node_handle_event(struct node *node, const struct tfos__feed_event *event)
{
    struct tfos_error err;

    if (event->kind == TFOS__FEED_ATTEMPT_CLOSED && node->closed_count < 4096)
        node->closed[node->closed_count++] = *event;
    if (event->kind == TFOS__FEED_STALLED) {
        node->stalled_count++;
        if (node->explanation)
            tfos__feed_host_explain(node->host, node->explanation);
    }
    if (event->kind == TFOS__FEED_CHANNEL_OPENED) {
        node->channel_count++;
        int fd = fcntl(event->fd, F_DUPFD_CLOEXEC, 3);
        node->kept_channel = event->channel;
        node->kept_fd = fd;
        if (!node->keeps_channels)
            assert_done(tfos__feed_reader_add_channel(
                strcmp(event->queue, "validation") == 0 ? node->validation : node->reader,
                event->channel, fd, &err));
    }
}

static inline void *node_run(void *argument)
{
    struct node *node = argument;
    bool is_stopping = false;

    while (!is_stopping) {
        struct pollfd descriptor = {tfos__feed_host_fd(node->host), POLLIN, 0};
        struct tfos__feed_event event;
        struct tfos_error err;
        poll(&descriptor, 1, 5);
        pthread_mutex_lock(&node->mutex);
        assert_done(tfos__feed_host_step(node->host, &err));
        while (tfos__feed_host_next_event(node->host, &event, &err) == TFOS_OK)
            node_handle_event(node, &event);
        struct tfos__feed_stats stats;
        tfos__feed_host_get_stats(node->host, &stats);
        if (stats.total_size > node->total_size_seen)
            node->total_size_seen = stats.total_size;
        is_stopping = node->is_stopping;
        pthread_mutex_unlock(&node->mutex);
    }
    return NULL;
}

static inline struct tfos_feed_reader *node_open_reader(struct node *node, const char *queue)
{
    struct tfos_feed_reader *reader;
    struct tfos_error err;
    int control_fd = tfos__feed_host_control_fd(node->host, queue);

    assert_done(tfos__feed_reader_open(fcntl(control_fd, F_DUPFD_CLOEXEC, 3), &reader, &err));
    return reader;
}

/// A node with these queues, "input" and perhaps "validation".
static inline void node_open_queues(struct node *node, int64_t memory_limit, const char *queues)
{
    static int number;
    struct tfos_error err;

    memset(node, 0, sizeof(*node));
    snprintf(node->socket_name, sizeof(node->socket_name), "tfos-feed-test-%d-%d", (int)getpid(),
             number++);
    struct tfos__feed_host_options options = {.cluster_id = "test",
                                              .key = TEST_KEY,
                                              .socket_name = node->socket_name,
                                              .listen_host = "127.0.0.1",
                                              .queues = queues,
                                              .memory_limit = memory_limit};
    assert_done(tfos__feed_host_open(&options, &node->host, &err));
    snprintf(node->address, sizeof(node->address), "127.0.0.1:%d",
             tfos__feed_host_port(node->host));
    node->reader = node_open_reader(node, NULL);
    if (tfos__feed_host_control_fd(node->host, "validation") >= 0)
        node->validation = node_open_reader(node, "validation");
    pthread_mutex_init(&node->mutex, NULL);
}

static inline void node_open(struct node *node, int64_t memory_limit)
{
    node_open_queues(node, memory_limit, NULL);
}

static inline void node_start(struct node *node)
{
    assert_int_equal(pthread_create(&node->thread, NULL, node_run, node), 0);
}

static inline void node_close(struct node *node)
{
    pthread_mutex_lock(&node->mutex);
    node->is_stopping = true;
    pthread_mutex_unlock(&node->mutex);
    pthread_join(node->thread, NULL);
    tfos__feed_reader_close(node->reader);
    tfos__feed_reader_close(node->validation);
    tfos__feed_host_close(node->host);
    pthread_mutex_destroy(&node->mutex);
}

static inline void node_set_state(struct node *node, enum tfos__feed_state state,
                                  const char *message)
{
    pthread_mutex_lock(&node->mutex);
    tfos__feed_host_set_state(node->host, state, message);
    pthread_mutex_unlock(&node->mutex);
}

static inline void node_end_epoch(struct node *node, int64_t feed)
{
    pthread_mutex_lock(&node->mutex);
    tfos__feed_host_end_epoch(node->host, NULL, feed);
    pthread_mutex_unlock(&node->mutex);
}

static inline void node_end_batch(struct node *node, int64_t feed)
{
    pthread_mutex_lock(&node->mutex);
    tfos__feed_host_end_batch(node->host, NULL, feed);
    pthread_mutex_unlock(&node->mutex);
}

static inline struct tfos__feed_stats node_stats(struct node *node)
{
    struct tfos__feed_stats stats;

    pthread_mutex_lock(&node->mutex);
    tfos__feed_host_get_stats(node->host, &stats);
    pthread_mutex_unlock(&node->mutex);
    return stats;
}

/// Waits until `count` attempts have ended and gives the last of them.
static inline struct tfos__feed_event node_wait_closed(struct node *node, int count)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    struct tfos__feed_event event = {0};

    for (;;) {
        pthread_mutex_lock(&node->mutex);
        int seen = node->closed_count;
        if (seen >= count)
            event = node->closed[count - 1];
        pthread_mutex_unlock(&node->mutex);
        if (seen >= count)
            return event;
        if (tfos__now_ms() >= deadline)
            fail_msg("only %d of %d attempts ended", seen, count);
        poll(NULL, 0, 2);
    }
}

/// What tfos__feed_writer_open() takes.
struct writer_options {
    struct tfos_feeder_options feeder;
    struct tfos__feed_target target;
};

static inline struct writer_options writer_options(const struct node *node, int64_t partition)
{
    return (struct writer_options){.feeder = {.cluster_id = "test",
                                              .key = TEST_KEY,
                                              .feed = 1,
                                              .partition = partition,
                                              .channel_size = 64 << 10,
                                              .wait.timeout_ms = WAIT_MS},
                                   .target.socket_name = node->socket_name};
}

static inline enum tfos_status writer_open(const struct writer_options *options,
                                           struct tfos__feed_writer **out, struct tfos_error *err)
{
    return tfos__feed_writer_open(&options->feeder, &options->target, out, err);
}

// ---- batches of one int64 column "n" and, with `payload`, a binary column "bytes" of so many
// bytes a row

struct test_batch {
    struct ArrowSchema schema, fields[2];
    struct ArrowSchema *schema_children[2];
    struct ArrowArray array, columns[2];
    struct ArrowArray *array_children[2];
    const void *root_buffers[1], *number_buffers[2], *payload_buffers[3];
    int64_t *numbers;
    int32_t *offsets;
    uint8_t *bytes;
};

/// Rows with the numbers from `first` on.
static inline void batch_init(struct test_batch *batch, int64_t first, int64_t rows, int payload)
{
    memset(batch, 0, sizeof(*batch));
    batch->numbers = malloc((size_t)(rows + 1) * sizeof(int64_t));
    batch->offsets = malloc((size_t)(rows + 1) * sizeof(int32_t));
    batch->bytes = malloc((size_t)(rows * payload) + 1);
    for (int64_t i = 0; i < rows; i++) {
        batch->numbers[i] = first + i;
        batch->offsets[i] = (int32_t)i * payload;
        memset(batch->bytes + i * payload, (int)(first + i), (size_t)payload);
    }
    batch->offsets[rows] = (int32_t)rows * payload;
    batch->number_buffers[1] = batch->numbers;
    batch->payload_buffers[1] = batch->offsets;
    batch->payload_buffers[2] = batch->bytes;
    batch->fields[0] = (struct ArrowSchema){.format = "l", .name = "n"};
    batch->fields[1] = (struct ArrowSchema){.format = "z", .name = "bytes"};
    batch->columns[0] =
        (struct ArrowArray){.length = rows, .n_buffers = 2, .buffers = batch->number_buffers};
    batch->columns[1] =
        (struct ArrowArray){.length = rows, .n_buffers = 3, .buffers = batch->payload_buffers};
    for (int i = 0; i < 2; i++) {
        batch->schema_children[i] = &batch->fields[i];
        batch->array_children[i] = &batch->columns[i];
    }
    int64_t count = payload > 0 ? 2 : 1;
    batch->schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = count, .children = batch->schema_children};
    batch->array = (struct ArrowArray){.length = rows,
                                       .n_buffers = 1,
                                       .buffers = batch->root_buffers,
                                       .n_children = count,
                                       .children = batch->array_children};
}

static inline void batch_clear(struct test_batch *batch)
{
    free(batch->numbers);
    free(batch->offsets);
    free(batch->bytes);
}

/// Appends rows [first, first + rows) and gives the status.
static inline enum tfos_status append_rows(struct tfos__feed_writer *writer, int64_t first,
                                           int64_t rows, int payload, struct tfos_error *err)
{
    struct test_batch batch;

    batch_init(&batch, first, rows, payload);
    enum tfos_status status = tfos__feed_writer_append(writer, &batch.schema, &batch.array, err);
    batch_clear(&batch);
    return status;
}

static inline int64_t number_at(const struct ArrowArray *array, int64_t row)
{
    return ((const int64_t *)array->children[0]->buffers[1])[row];
}

/// Checks that the batch has the numbers first_row, first_row + 1, ... and payloads to match.
static inline void check_batch(const struct tfos_feed_item *item, int payload)
{
    for (int64_t i = 0; i < item->array.length; i++) {
        assert_int_equal(number_at(&item->array, i), item->first_row + i);
        if (payload > 0) {
            const struct ArrowArray *bytes = item->array.children[1];
            const int32_t *offsets = bytes->buffers[1];
            const uint8_t *data = bytes->buffers[2];
            assert_int_equal(offsets[i + 1] - offsets[i], payload);
            assert_int_equal(data[offsets[i]], (uint8_t)(item->first_row + i));
            assert_int_equal(data[offsets[i + 1] - 1], (uint8_t)(item->first_row + i));
        }
    }
}

static inline void release_item(struct tfos_feed_item *item)
{
    if (item->schema.release)
        item->schema.release(&item->schema);
    if (item->array.release)
        item->array.release(&item->array);
}

/// The next item, waiting for it.
static inline enum tfos_status next_item(struct node *node, struct tfos_feed_item *item)
{
    struct tfos_error err;
    enum tfos_status status;

    memset(item, 0, sizeof(*item));
    status = tfos_feed_reader_next(node->reader, WAIT_MS, item, &err);
    if (status < 0)
        fail_msg("next: %s: %s", tfos_status_name(status), err.message);
    return status;
}

#endif

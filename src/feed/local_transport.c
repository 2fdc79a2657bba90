// SPDX-License-Identifier: Apache-2.0
// Through shared memory. The unix socket carries only what cannot be seen there: descriptors,
// messages, and the death of the node.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/writer.h"

#define FAILURE_WAIT_MS 1000 ///< how long the message of a failure may come after its state

static enum tfos_status add_channel(struct tfos__feed_writer *writer, int channel_fd,
                                    int control_fd, struct tfos_error *err)
{
    struct tfos__feed_local_state *local = &writer->local;
    struct tfos__feed_channel *channel = NULL;

    if (!local->control)
        TFOS__TRY(tfos__feed_control_map(control_fd, &local->control, err));
    TFOS__TRY(tfos__feed_channel_map(channel_fd, TFOS__FEED_CHANNEL_WRITER, local->control,
                                     &channel, err));
    if (writer->has_results && channel->result_size == 0) {
        tfos__feed_channel_release(channel);
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: the node gave a channel without room for results");
    }
    local->writer.has_results = writer->has_results;
    TFOS__TRY(tfos__feed_local_writer_add(&local->writer, channel, err));
    writer->ring_size = channel->size;
    writer->encoder.is_schema_sent = false;
    local->is_growing = false;
    return TFOS_OK;
}

static enum tfos_status attach(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    (void)message;
    if (fd_count != 2)
        status = tfos__fail(err, TFOS_CORRUPT,
                            "feed: the node's answer came with %d descriptors, not 2", fd_count);
    else
        status = add_channel(writer, fds[0], fds[1], err);
    for (int i = 0; i < fd_count; i++)
        close(fds[i]);
    return status;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    if (size <= writer->ring_size)
        return tfos__feed_producer_reserve(
            &tfos__feed_local_writer_last(&writer->local.writer)->producer, size, space, err);
    if (!writer->local.is_growing) {
        // Room for two such rows, so that one can be written while the other is read.
        TFOS__TRY(tfos__feed_writer_request_channel(writer, (int64_t)size * 2, err));
        writer->local.is_growing = true;
    }
    return TFOS_AGAIN;
}

static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               int64_t row_count, struct tfos_error *err)
{
    return tfos__feed_local_writer_commit(&writer->local.writer, size, rows, row_count, err);
}

// The state says that all has failed; the message comes over the socket.
static enum tfos_status wait_for_failure(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(FAILURE_WAIT_MS);

    while (writer->final_status == TFOS_OK && tfos__now_ms() < deadline) {
        TFOS__TRY(tfos__feed_writer_read_frames(writer, err));
        if (writer->final_status == TFOS_OK &&
            tfos__socket_wait(tfos__channel_fd(writer->connection), POLLIN, deadline, NULL) !=
                TFOS_OK)
            break;
    }
    if (writer->final_status != TFOS_OK)
        return tfos__feed_writer_final_status(writer, err);
    return tfos__fail(err, TFOS_CLOSED, "feed: %s: the cluster has failed", writer->place);
}

static enum tfos_status check(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_local_state *local = &writer->local;
    int64_t now = tfos__now_ms();

    if (writer->final_status == TFOS_OK && local->control) {
        uint32_t state = atomic_load(&local->control->page->state);
        if (state == TFOS__FEED_TERMINATED)
            return TFOS_END;
        if (state == TFOS__FEED_FAILED)
            return wait_for_failure(writer, err);
    }
    if (now - local->checked_ms >= TFOS__FEED_WRITER_SLICE_MS / 2 || local->is_growing) {
        local->checked_ms = now;
        TFOS__TRY(tfos__feed_writer_read_frames(writer, err));
    }
    return tfos__feed_writer_final_status(writer, err);
}

static enum tfos_status peek(struct tfos__feed_writer *writer,
                             const struct tfos__feed_record **record, const uint8_t **body,
                             struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = NULL;
    enum tfos_status status = tfos__feed_local_writer_peek(&writer->local.writer, &consumer, err);

    if (status == TFOS_OK) {
        *record = &consumer->record;
        *body = tfos__feed_consumer_body(consumer);
    }
    return status;
}

// Results leave the ring at once: whoever holds them must not keep the reader from writing more,
// and the channel may go to another writer while they are still in use.
static enum tfos_status take(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__feed_batch_owner *owner, struct tfos_error *err)
{
    const struct tfos__feed_consumer *consumer = &writer->local.writer.channels[0].shared->consumer;
    const struct tfos__feed_record *record = &consumer->record;

    if (owner) {
        uint8_t *copy = tfos__realloc(NULL, record->body_size + 1, 1);
        if (!copy)
            return tfos__no_memory(err, "feed", "a batch of results");
        memcpy(copy, tfos__feed_consumer_body(consumer), record->body_size);
        *owner = tfos__feed_batch_owner_of_memory(copy);
        *body = copy;
    }
    tfos__feed_local_writer_skip(&writer->local.writer, owner ? record->rows : 0);
    return TFOS_OK;
}

static void wait_for_space(struct tfos__feed_writer *writer, uint64_t size)
{
    if (writer->local.writer.count == 0 || writer->local.is_growing)
        (void)tfos__socket_wait(tfos__channel_fd(writer->connection), POLLIN,
                                tfos__deadline(TFOS__FEED_WRITER_SLICE_MS), NULL);
    else
        tfos__feed_local_writer_wait(&writer->local.writer, size, TFOS__FEED_WRITER_SLICE_MS);
}

static struct tfos__feed_progress progress(const struct tfos__feed_writer *writer)
{
    const struct tfos__feed_local_writer *local = &writer->local.writer;
    // What is committed lies in memory that the reader has too.
    struct tfos__feed_progress progress = {.sum = writer->answer_count,
                                           .taken_rows = tfos__feed_local_writer_taken_rows(local),
                                           .published_row = writer->committed_row,
                                           .is_delivered = true};

    if (writer->local.control) {
        progress.sum += atomic_load(&writer->local.control->page->others);
        progress.batch_rows = atomic_load(&writer->local.control->page->batch_rows);
        progress.step_rows = atomic_load(&writer->local.control->page->step_rows);
    }
    for (size_t i = 0; i < local->count; i++) {
        const struct tfos__feed_channel_page *page = local->channels[i].shared->page;
        progress.sum += atomic_load(&page->tail) + atomic_load(&page->rows_released) +
                        atomic_load(&page->result_head);
    }
    return progress;
}

static void close_transport(struct tfos__feed_writer *writer, json_t *message)
{
    tfos__feed_local_writer_clear(&writer->local.writer);
    tfos__feed_control_release(writer->local.control);
    // Unmapped before the node is notified and gives the channel to another writer.
    // The end of the connection would say the same.
    if (message)
        (void)tfos__feed_writer_send_frame(writer, message, NULL);
}

const struct tfos__feed_transport tfos__feed_local_transport = {
    .attach = attach,
    .reserve = reserve,
    .commit = commit,
    .check = check,
    .peek = peek,
    .take = take,
    .wait = wait_for_space,
    .progress = progress,
    .send = tfos__feed_writer_send_frame,
    .close = close_transport,
};

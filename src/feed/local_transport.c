// SPDX-License-Identifier: Apache-2.0
// The transport through shared memory. The unix socket carries only what cannot be seen there:
// descriptors, words, and the death of the node. A row that is larger than the ring makes the
// writer ask for a larger channel; the reader reads the old one to its end first. With results, old
// channels stay until their results have come.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/writer.h"

#define FAILURE_WAIT_MS 1000 ///< how long the words of a failure may come after its state

static struct tfos__feed_written_channel *last_channel(const struct tfos__feed_writer *writer)
{
    return &writer->shared.channels[writer->shared.channel_count - 1];
}

static void leave_first_channel(struct tfos__feed_writer *writer)
{
    struct tfos__feed_transport_shared_state *shared = &writer->shared;

    shared->left_count += shared->channels[0].row_count;
    tfos__feed_channel_release(shared->channels[0].channel);
    shared->channel_count--;
    memmove(shared->channels, shared->channels + 1,
            shared->channel_count * sizeof shared->channels[0]);
}

static enum tfos_status map_channel(struct tfos__feed_writer *writer, int channel_fd,
                                    int control_fd, struct tfos_error *err)
{
    struct tfos__feed_transport_shared_state *shared = &writer->shared;
    struct tfos__feed_written_channel *channels =
        tfos__realloc(shared->channels, shared->channel_count + 1, sizeof *channels);
    struct tfos__feed_channel *channel = NULL;

    if (!channels)
        return tfos__no_memory(err, "feed", "a list of lanes");
    shared->channels = channels;
    if (!shared->control)
        TFOS__TRY(tfos__feed_control_map(control_fd, &shared->control, err));
    TFOS__TRY(tfos__feed_channel_map(channel_fd, TFOS__FEED_CHANNEL_WRITER, shared->control,
                                     &channel, err));
    if (writer->has_results && channel->result_size == 0) {
        tfos__feed_channel_release(channel);
        return tfos__fail(err, TFOS_CORRUPT, "feed: the node gave a lane without room for results");
    }
    channels[shared->channel_count++] = (struct tfos__feed_written_channel){
        .channel = channel, .released_before = atomic_load(&channel->page->rows_released)};
    // Without results nothing more is to be had from the channel before.
    if (!writer->has_results && shared->channel_count > 1)
        leave_first_channel(writer);
    writer->encoder.is_sent = false;
    shared->is_growing = false;
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
        status = map_channel(writer, fds[0], fds[1], err);
    for (int i = 0; i < fd_count; i++)
        close(fds[i]);
    return status;
}

static uint64_t ring_size(const struct tfos__feed_writer *writer)
{
    return last_channel(writer)->channel->size;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    struct tfos__feed_channel *channel = last_channel(writer)->channel;

    if (size <= channel->size)
        return tfos__feed_producer_reserve(&channel->producer, size, space, err);
    if (!writer->shared.is_growing) {
        // Room for two such rows, so that one can be written while the other is read.
        TFOS__TRY(tfos__feed_writer_ask_channel(writer, (int64_t)size * 2, err));
        writer->shared.is_growing = true;
    }
    return TFOS_AGAIN;
}

static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               struct tfos_error *err)
{
    struct tfos__feed_written_channel *channel = last_channel(writer);
    int64_t before = (int64_t)(channel->channel->producer.rows & ~TFOS__FEED_ROWS_COMPLETE);

    TFOS__TRY(tfos__feed_producer_commit(&channel->channel->producer, size, rows, err));
    channel->row_count += (int64_t)(rows & ~TFOS__FEED_ROWS_COMPLETE) - before;
    return TFOS_OK;
}

// The state says that all has failed; the words come over the socket.
static enum tfos_status wait_for_failure(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(FAILURE_WAIT_MS);

    while (writer->verdict == TFOS_OK && tfos__now_ms() < deadline) {
        TFOS__TRY(tfos__feed_writer_read_frames(writer, err));
        if (writer->verdict == TFOS_OK && tfos__socket_wait(tfos__channel_fd(writer->connection),
                                                            POLLIN, deadline, NULL) != TFOS_OK)
            break;
    }
    if (writer->verdict != TFOS_OK)
        return tfos__feed_writer_verdict(writer, err);
    return tfos__fail(err, TFOS_CLOSED, "feed: %s: the cluster has failed", writer->place);
}

static enum tfos_status check(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t now = tfos__now_ms();

    if (writer->verdict == TFOS_OK && writer->shared.control) {
        uint32_t state = atomic_load(&writer->shared.control->page->state);
        if (state == TFOS__FEED_TERMINATED)
            return TFOS_END;
        if (state == TFOS__FEED_FAILED)
            return wait_for_failure(writer, err);
    }
    if (now - writer->shared.checked_ms >= TFOS__WRITER_SLICE_MS / 2 || writer->shared.is_growing) {
        writer->shared.checked_ms = now;
        TFOS__TRY(tfos__feed_writer_read_frames(writer, err));
    }
    return tfos__feed_writer_verdict(writer, err);
}

static enum tfos_status peek(struct tfos__feed_writer *writer,
                             const struct tfos__feed_record **record, const uint8_t **body,
                             struct tfos_error *err)
{
    struct tfos__feed_transport_shared_state *shared = &writer->shared;

    if (!writer->has_results)
        return TFOS_AGAIN;
    while (shared->channel_count > 1 &&
           shared->channels[0].result_count >= shared->channels[0].row_count) {
        leave_first_channel(writer);
        tfos__feed_schema_clear(&writer->result_schema);
    }
    struct tfos__feed_consumer *consumer = &shared->channels[0].channel->consumer;
    enum tfos_status status = tfos__feed_consumer_peek(consumer, err);
    if (status == TFOS_OK) {
        *record = &consumer->record;
        *body = tfos__feed_consumer_body(consumer);
    }
    return status;
}

static void skip(struct tfos__feed_writer *writer)
{
    tfos__feed_consumer_skip(&writer->shared.channels[0].channel->consumer);
}

static void free_body(void *body, uint64_t sequence)
{
    (void)sequence;
    tfos__free(body);
}

// Results leave the ring at once: whoever holds them must not keep the reader from writing more,
// and the channel may go to another writer while they are still in use.
static enum tfos_status take(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__feed_batch_owner *owner, struct tfos_error *err)
{
    struct tfos__feed_written_channel *channel = &writer->shared.channels[0];
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;
    uint8_t *copy = tfos__realloc(NULL, consumer->record.body_size + 1, 1);

    if (!copy)
        return tfos__no_memory(err, "feed", "a batch of results");
    memcpy(copy, tfos__feed_consumer_body(consumer), consumer->record.body_size);
    channel->result_count += consumer->record.rows;
    tfos__feed_consumer_skip(consumer);
    *owner = (struct tfos__feed_batch_owner){NULL, free_body, copy, 0};
    *body = copy;
    return TFOS_OK;
}

static bool has_news(struct tfos__feed_writer *writer, uint64_t size)
{
    struct tfos__feed_channel *last = last_channel(writer)->channel;

    if (size > 0 && size <= last->size && tfos__feed_producer_has_space(&last->producer, size))
        return true;
    return writer->has_results &&
           !tfos__feed_consumer_is_empty(&writer->shared.channels[0].channel->consumer);
}

static void wait_for_news(struct tfos__feed_writer *writer, uint64_t size)
{
    if (writer->shared.channel_count == 0 || writer->shared.is_growing) {
        (void)tfos__socket_wait(tfos__channel_fd(writer->connection), POLLIN,
                                tfos__deadline(TFOS__WRITER_SLICE_MS), NULL);
        return;
    }
    for (int i = 0; i < TFOS__FEED_SPIN_COUNT; i++) {
        if (has_news(writer, size))
            return;
        tfos__feed_futex_pause();
    }
    // Space is announced on the last channel's futex, results on the first's.
    struct tfos__feed_channel *channel =
        size > 0 ? last_channel(writer)->channel : writer->shared.channels[0].channel;
    uint32_t value = tfos__feed_futex_prepare(channel->futex);
    if (!has_news(writer, size))
        tfos__feed_futex_wait(channel->futex, value, TFOS__WRITER_SLICE_MS);
    tfos__feed_futex_cancel(channel->futex);
}

static int64_t taken(const struct tfos__feed_writer *writer)
{
    int64_t rows = writer->shared.left_count;

    for (size_t i = 0; i < writer->shared.channel_count; i++) {
        const struct tfos__feed_written_channel *channel = &writer->shared.channels[i];
        rows += (int64_t)(atomic_load(&channel->channel->page->rows_released) -
                          channel->released_before);
    }
    return rows;
}

static int64_t batch_rows(const struct tfos__feed_writer *writer)
{
    return writer->shared.control ? atomic_load(&writer->shared.control->page->batch_rows) : 0;
}

static uint64_t progress(const struct tfos__feed_writer *writer)
{
    uint64_t sum = writer->shared.answer_count;

    if (writer->shared.control)
        sum += atomic_load(&writer->shared.control->page->others);
    for (size_t i = 0; i < writer->shared.channel_count; i++) {
        struct tfos__feed_channel_page *page = writer->shared.channels[i].channel->page;
        sum += atomic_load(&page->tail) + atomic_load(&page->rows_released) +
               atomic_load(&page->result_head);
    }
    return sum;
}

static bool is_delivered(const struct tfos__feed_writer *writer)
{
    (void)writer; // what is committed lies in memory that the reader has too
    return true;
}

static enum tfos_status say(struct tfos__feed_writer *writer, json_t *message,
                            struct tfos_error *err)
{
    return tfos__feed_writer_send_frame(writer, message, err);
}

static void close_route(struct tfos__feed_writer *writer)
{
    struct tfos__feed_transport_shared_state *shared = &writer->shared;

    while (shared->channel_count > 0)
        leave_first_channel(writer);
    tfos__free(shared->channels);
    tfos__feed_control_release(shared->control);
    // The mappings are gone before the node hears of it and hands the channel to another writer.
    // The end of the connection would say the same.
    if (writer->connection && writer->is_attached)
        (void)say(writer,
                  json_pack("{ss sb sI}", "type", "close", "complete", writer->is_finished, "rows",
                            (json_int_t)(writer->first_row + writer->row_count)),
                  NULL);
}

const struct tfos__feed_transport tfos__feed_local_transport = {
    .attach = attach,
    .ring_size = ring_size,
    .reserve = reserve,
    .commit = commit,
    .check = check,
    .peek = peek,
    .skip = skip,
    .take = take,
    .wait = wait_for_news,
    .progress = progress,
    .taken = taken,
    .batch_rows = batch_rows,
    .is_delivered = is_delivered,
    .say = say,
    .close = close_route,
};

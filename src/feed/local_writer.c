// SPDX-License-Identifier: Apache-2.0
#include "feed/local_writer.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static void leave_first(struct tfos__feed_local_writer *writer)
{
    writer->left_count += writer->channels[0].row_count;
    tfos__feed_channel_release(writer->channels[0].shared);
    writer->count--;
    memmove(writer->channels, writer->channels + 1, writer->count * sizeof(writer->channels[0]));
}

enum tfos_status tfos__feed_local_writer_add(struct tfos__feed_local_writer *writer,
                                             struct tfos__feed_channel *channel,
                                             struct tfos_error *err)
{
    struct tfos__feed_written_channel *channels =
        tfos__realloc(writer->channels, writer->count + 1, sizeof(*channels));

    if (!channels) {
        tfos__feed_channel_release(channel);
        return tfos__no_memory(err, "feed", "a list of channels");
    }
    writer->channels = channels;
    channels[writer->count++] = (struct tfos__feed_written_channel){
        .shared = channel, .released_before = atomic_load(&channel->page->rows_released)};
    if (!writer->has_results && writer->count > 1)
        leave_first(writer);
    return TFOS_OK;
}

struct tfos__feed_channel *
tfos__feed_local_writer_last(const struct tfos__feed_local_writer *writer)
{
    return writer->channels[writer->count - 1].shared;
}

uint64_t tfos__feed_local_writer_rows(const struct tfos__feed_local_writer *writer)
{
    return tfos__feed_local_writer_last(writer)->producer.rows & ~TFOS__FEED_ROWS_COMPLETE;
}

enum tfos_status tfos__feed_local_writer_commit(struct tfos__feed_local_writer *writer,
                                                uint64_t size, uint64_t rows, int64_t row_count,
                                                struct tfos_error *err)
{
    struct tfos__feed_written_channel *last = &writer->channels[writer->count - 1];

    last->shared->producer.left_out += (rows & ~TFOS__FEED_ROWS_COMPLETE) -
                                       tfos__feed_local_writer_rows(writer) - (uint64_t)row_count;
    TFOS__TRY(tfos__feed_producer_commit(&last->shared->producer, size, rows, err));
    last->row_count += row_count;
    return TFOS_OK;
}

enum tfos_status tfos__feed_local_writer_peek(struct tfos__feed_local_writer *writer,
                                              struct tfos__feed_consumer **consumer,
                                              struct tfos_error *err)
{
    if (!writer->has_results)
        return TFOS_AGAIN;
    while (writer->count > 1 && writer->channels[0].result_count >= writer->channels[0].row_count)
        leave_first(writer);
    *consumer = &writer->channels[0].shared->consumer;
    return tfos__feed_consumer_peek(*consumer, err);
}

void tfos__feed_local_writer_skip(struct tfos__feed_local_writer *writer, int64_t result_count)
{
    writer->channels[0].result_count += result_count;
    tfos__feed_consumer_skip(&writer->channels[0].shared->consumer);
}

int64_t tfos__feed_local_writer_taken_rows(const struct tfos__feed_local_writer *writer)
{
    int64_t rows = writer->left_count;

    for (size_t i = 0; i < writer->count; i++) {
        const struct tfos__feed_written_channel *each = &writer->channels[i];
        rows += (int64_t)(atomic_load(&each->shared->page->rows_released) - each->released_before);
    }
    return rows;
}

static bool is_ready(struct tfos__feed_local_writer *writer, uint64_t size)
{
    struct tfos__feed_channel *last = tfos__feed_local_writer_last(writer);

    if (size > 0 && size <= last->size && tfos__feed_producer_has_space(&last->producer, size))
        return true;
    return writer->has_results &&
           !tfos__feed_consumer_is_empty(&writer->channels[0].shared->consumer);
}

void tfos__feed_local_writer_wait(struct tfos__feed_local_writer *writer, uint64_t size,
                                  int timeout_ms)
{
    for (int i = 0; i < TFOS__FEED_SPIN_COUNT; i++) {
        if (is_ready(writer, size))
            return;
        tfos__feed_futex_pause();
    }
    // Space is announced on the last channel's futex, results on the first's.
    struct tfos__feed_futex futex =
        (size > 0 ? tfos__feed_local_writer_last(writer) : writer->channels[0].shared)->futex;
    uint32_t value = tfos__feed_futex_prepare(futex);
    if (!is_ready(writer, size))
        tfos__feed_futex_wait(futex, value, timeout_ms);
    tfos__feed_futex_cancel(futex);
}

void tfos__feed_local_writer_clear(struct tfos__feed_local_writer *writer)
{
    while (writer->count > 0)
        leave_first(writer);
    tfos__free(writer->channels);
    writer->channels = NULL;
}

// SPDX-License-Identifier: Apache-2.0
// The transport over TCP: the records that would lie in a channel travel one after the other,
// results come the other way, and messages go between them. Nothing blocks in a write while results
// could come: both sides would wait for each other. A record is therefore taken whole into a
// buffer, and the next one only when that has gone out.
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/message.h"
#include "feed/writer.h"

#define CLOSE_MS 3000 ///< to write what is left

static uint64_t whole_pages(uint64_t size)
{
    return (size + TFOS__FEED_PAGE_SIZE - 1) / TFOS__FEED_PAGE_SIZE * TFOS__FEED_PAGE_SIZE;
}

static enum tfos_status attach(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err)
{
    int64_t size = 0;

    (void)fds;
    (void)fd_count; // none come over TCP
    TFOS__TRY(tfos__json_get_int(message, "size", TFOS__FEED_PAGE_SIZE,
                                 TFOS__FEED_CHANNEL_SIZE_LIMIT, &size, err));
    // What the node says bounds what we take from it, so it may not say anything.
    if ((uint64_t)size > whole_pages((uint64_t)writer->lane_size))
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: %s: the node gave a lane of %lld bytes, where %lld were asked for",
                          writer->place, (long long)size, (long long)writer->lane_size);
    writer->stream.ring_size = (uint64_t)size;
    if (writer->stream.ring_limit < writer->stream.ring_size)
        writer->stream.ring_limit = writer->stream.ring_size;
    writer->stream.batch_rows = tfos__json_int_or(message, "batch_rows", 0);
    return TFOS_OK;
}

static uint64_t ring_size(const struct tfos__feed_writer *writer)
{
    return writer->stream.ring_size;
}

// The connection is lost: with what the node said before, if it did.
static enum tfos_status lose(struct tfos__feed_writer *writer, enum tfos_status status,
                             const struct tfos_error *cause, struct tfos_error *err)
{
    return tfos__feed_writer_judge(writer, status, cause->message, err);
}

static enum tfos_status flush(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__buffer *out = &writer->stream.out;
    struct tfos_error cause;

    while (tfos__buffer_size(out) > 0) {
        size_t done = 0;
        enum tfos_status status = tfos__channel_write_some(
            writer->connection, out->data + out->begin, tfos__buffer_size(out), &done, &cause);
        if (status == TFOS_AGAIN)
            return status;
        if (status != TFOS_OK)
            return lose(writer, status, &cause, err);
        writer->stream.progress++;
        out->begin += done;
    }
    // The memory is kept: the next record needs as much, and new memory costs as much as a copy.
    out->begin = out->end = 0;
    return TFOS_OK;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    struct tfos__buffer *out = &writer->stream.out;
    enum tfos_status status = flush(writer, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(tfos__buffer_reserve(out, size, err));
    *space = out->data + out->end;
    return TFOS_OK;
}

static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               struct tfos_error *err)
{
    struct tfos__feed_transport_stream_state *stream = &writer->stream;

    (void)rows; // the node counts
    // For a record beyond the ring the node makes one of twice its size, and one like it for
    // results.
    if (size > stream->ring_size && whole_pages(size * 2) > stream->ring_limit)
        stream->ring_limit = whole_pages(size * 2);
    stream->out.end += size;
    enum tfos_status status = flush(writer, err);
    return status == TFOS_AGAIN ? TFOS_OK : status;
}

static enum tfos_status check_head(const struct tfos__feed_writer *writer, struct tfos_error *err)
{
    const struct tfos__feed_record *record = &writer->stream.record;
    uint64_t limit = record->kind == TFOS__FEED_RECORD_MESSAGE ? TFOS__FEED_CONTROL_MESSAGE_LIMIT
                                                               : writer->stream.ring_limit;

    if (!tfos__feed_record_is_valid(record) ||
        (record->kind != TFOS__FEED_RECORD_SCHEMA && record->kind != TFOS__FEED_RECORD_BATCH &&
         record->kind != TFOS__FEED_RECORD_PIECE && record->kind != TFOS__FEED_RECORD_MESSAGE))
        return tfos__fail(err, TFOS_CORRUPT, "feed: %s: the node sent a broken record of kind %u",
                          writer->place, record->kind);
    if (record->size > limit)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: %s: the node sent a record of kind %u with %llu bytes, which are "
                          "more than the %llu of its ring",
                          writer->place, record->kind, (unsigned long long)record->size,
                          (unsigned long long)limit);
    return TFOS_OK;
}

static void drop_record(struct tfos__feed_transport_stream_state *stream)
{
    tfos__free(stream->body);
    stream->body = NULL;
    stream->received = 0;
}

// Reads the record that comes in. OK once it is whole.
static enum tfos_status read_record(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_transport_stream_state *stream = &writer->stream;
    const size_t head_size = sizeof stream->record;
    struct tfos_error cause;

    for (;;) {
        if (stream->received >= head_size && !stream->body) {
            TFOS__TRY(check_head(writer, err));
            stream->body = tfos__alloc(1, stream->record.size);
            if (!stream->body)
                return tfos__no_memory(err, "feed", "a record");
        }
        if (stream->body && stream->received == stream->record.size)
            return TFOS_OK;
        uint8_t *data = stream->body ? stream->body : (uint8_t *)&stream->record;
        size_t end = stream->body ? stream->record.size : head_size;
        size_t done = 0;
        enum tfos_status status = tfos__channel_read_some(
            writer->connection, data + stream->received, end - stream->received, &done, &cause);
        if (status == TFOS_AGAIN)
            return status;
        if (status != TFOS_OK)
            return lose(writer, status, &cause, err);
        stream->received += done;
    }
}

static enum tfos_status hear(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_transport_stream_state *stream = &writer->stream;
    json_t *message = NULL;

    enum tfos_status status = tfos__feed_control_message_read(
        &stream->record, stream->body + sizeof stream->record, &message, err);
    drop_record(stream);
    if (status != TFOS_OK)
        return status;
    if (strcmp(tfos__json_string_or(message, "type", ""), "taken") == 0) {
        int64_t taken = tfos__json_int_or(message, "taken", 0);
        int64_t others = tfos__json_int_or(message, "others", 0);
        stream->progress += taken != stream->taken_count || others != stream->others;
        stream->taken_count = taken;
        stream->others = others;
        stream->batch_rows = tfos__json_int_or(message, "batch_rows", 0);
        stream->is_complete = tfos__json_bool_or(message, "complete", false);
    } else {
        status = tfos__feed_writer_hear(writer, message, NULL, 0, err);
    }
    json_decref(message);
    return status;
}

// Reads messages up to the next result. OK: a result is there.
static enum tfos_status read_in(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    for (;;) {
        enum tfos_status status = read_record(writer, err);
        if (status != TFOS_OK)
            return status;
        if (writer->stream.record.kind != TFOS__FEED_RECORD_MESSAGE)
            return TFOS_OK;
        TFOS__TRY(hear(writer, err));
    }
}

static enum tfos_status check(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    if (writer->verdict == TFOS_OK) {
        // A result that waits keeps what is behind it from being read: next_result() goes on.
        enum tfos_status status = read_in(writer, err);
        if (status < 0)
            return status;
    }
    return tfos__feed_writer_verdict(writer, err);
}

static enum tfos_status peek(struct tfos__feed_writer *writer,
                             const struct tfos__feed_record **record, const uint8_t **body,
                             struct tfos_error *err)
{
    struct tfos__feed_transport_stream_state *stream = &writer->stream;
    bool is_whole = stream->body && stream->received == stream->record.size;

    // After the node's last word the stream is not read any more: what came before it is.
    enum tfos_status status =
        is_whole || writer->verdict == TFOS_OK ? read_in(writer, err) : TFOS_AGAIN;
    if (status != TFOS_OK)
        return status > 0 ? TFOS_AGAIN : status;
    *record = &stream->record;
    *body = stream->body + sizeof stream->record;
    return TFOS_OK;
}

static void skip(struct tfos__feed_writer *writer)
{
    drop_record(&writer->stream);
}

static void free_body(void *body, uint64_t sequence)
{
    (void)sequence;
    tfos__free(body);
}

static enum tfos_status take(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__feed_batch_owner *owner, struct tfos_error *err)
{
    (void)err;
    *owner = (struct tfos__feed_batch_owner){NULL, free_body, writer->stream.body, 0};
    *body = writer->stream.body + sizeof writer->stream.record;
    writer->stream.body = NULL;
    writer->stream.received = 0;
    return TFOS_OK;
}

static void wait_for_news(struct tfos__feed_writer *writer, uint64_t size)
{
    short events = tfos__buffer_size(&writer->stream.out) > 0 ? POLLIN | POLLOUT : POLLIN;

    (void)size;
    (void)tfos__socket_wait(tfos__channel_fd(writer->connection), events,
                            tfos__deadline(TFOS__WRITER_SLICE_MS), NULL);
    (void)flush(writer, NULL);
}

static uint64_t progress(const struct tfos__feed_writer *writer)
{
    return writer->stream.progress;
}

static int64_t taken(const struct tfos__feed_writer *writer)
{
    return writer->stream.taken_count;
}

static int64_t batch_rows(const struct tfos__feed_writer *writer)
{
    return writer->stream.batch_rows;
}

static bool is_delivered(const struct tfos__feed_writer *writer)
{
    return writer->stream.is_complete;
}

static enum tfos_status say(struct tfos__feed_writer *writer, json_t *message,
                            struct tfos_error *err)
{
    TFOS__TRY(tfos__feed_control_message_append(&writer->stream.out, message, err));
    enum tfos_status status = flush(writer, err);
    return status == TFOS_AGAIN ? TFOS_OK : status;
}

static void close_route(struct tfos__feed_writer *writer)
{
    int64_t deadline = tfos__deadline(CLOSE_MS);

    if (writer->is_attached && writer->verdict == TFOS_OK) {
        enum tfos_status status =
            say(writer,
                json_pack("{ss sb sI}", "type", "close", "complete", writer->is_finished, "rows",
                          (json_int_t)(writer->first_row + writer->row_count)),
                NULL);
        // Rows that were appended go out as far as the node takes them; it counts them in any case.
        while (status == TFOS_OK && tfos__buffer_size(&writer->stream.out) > 0 &&
               tfos__now_ms() < deadline) {
            status = check(writer, NULL);
            if (status == TFOS_OK)
                wait_for_news(writer, 0);
        }
    }
    drop_record(&writer->stream);
    tfos__buffer_clear(&writer->stream.out);
}

const struct tfos__feed_transport tfos__feed_remote_transport = {
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

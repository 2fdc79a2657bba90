// SPDX-License-Identifier: Apache-2.0
// Over TCP: the records that would lie in a channel travel one after the other, results come the
// other way, and messages go between them. Nothing blocks in a write while results could come: both
// sides would wait for each other. A record is therefore taken whole into a buffer, and the next
// one only when that has gone out.
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/writer.h"

#define CLOSE_MS 3000 ///< to write what is left

static enum tfos_status attach(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err)
{
    int64_t size = 0;

    (void)fds;
    (void)fd_count; // none come over TCP
    TFOS__TRY(tfos__json_get_int(message, "size", TFOS__FEED_PAGE_SIZE,
                                 TFOS__FEED_CHANNEL_SIZE_LIMIT, &size, err));
    // What the node says bounds what we take from it, so it may not say anything.
    if ((uint64_t)size > tfos__feed_whole_pages((uint64_t)writer->channel_size))
        return tfos__fail(
            err, TFOS_CORRUPT,
            "feed: %s: the node gave a channel of %lld bytes, where %lld were asked for",
            writer->place, (long long)size, (long long)writer->channel_size);
    writer->ring_size = (uint64_t)size;
    if (writer->remote.ring_limit < writer->ring_size)
        writer->remote.ring_limit = writer->ring_size;
    writer->remote.batch_rows = tfos__json_int_or(message, "batch_rows", 0);
    writer->remote.step_rows = tfos__json_int_or(message, "step_rows", -1);
    writer->remote.published_row = writer->first_row;
    writer->remote.stream.connection = writer->connection;
    return TFOS_OK;
}

static enum tfos_status flush(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_record_stream *stream = &writer->remote.stream;
    uint64_t before = stream->write_count;
    struct tfos_error cause;
    enum tfos_status status = tfos__feed_record_stream_flush(stream, &cause);

    writer->remote.progress += stream->write_count - before;
    return status < 0 ? tfos__feed_writer_end(writer, status, cause.message, err) : status;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    struct tfos__buffer *out = &writer->remote.stream.out;
    enum tfos_status status = flush(writer, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(tfos__buffer_reserve(out, size, err));
    *space = out->data + out->end;
    return TFOS_OK;
}

static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               int64_t row_count, struct tfos_error *err)
{
    struct tfos__feed_remote_state *remote = &writer->remote;

    (void)rows; // the node counts
    (void)row_count;
    // For a record beyond the ring the node makes one of twice its size, and one like it for
    // results.
    if (size > writer->ring_size && tfos__feed_whole_pages(size * 2) > remote->ring_limit)
        remote->ring_limit = tfos__feed_whole_pages(size * 2);
    remote->stream.out.end += size;
    enum tfos_status status = flush(writer, err);
    return status == TFOS_AGAIN ? TFOS_OK : status;
}

static enum tfos_status check_head(const struct tfos__feed_writer *writer, struct tfos_error *err)
{
    const struct tfos__feed_record *record = &writer->remote.stream.record;
    uint64_t limit = record->kind == TFOS__FEED_RECORD_MESSAGE ? TFOS__FEED_MESSAGE_LIMIT
                                                               : writer->remote.ring_limit;

    if (!tfos__feed_record_is_valid(record) || record->kind == TFOS__FEED_RECORD_END ||
        record->kind == TFOS__FEED_RECORD_FILLER)
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

// Done with the record that came in.
static void begin_record(struct tfos__feed_remote_state *remote, uint8_t *body)
{
    tfos__free(body);
    remote->body = NULL;
    remote->stream.received = 0;
}

// Reads the record that comes in. OK once it is whole.
static enum tfos_status read_record(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_remote_state *remote = &writer->remote;
    struct tfos__feed_record_stream *stream = &remote->stream;
    struct tfos_error cause;
    enum tfos_status status = tfos__feed_record_stream_read_head(stream, &cause);

    if (status == TFOS_OK && !remote->body) {
        TFOS__TRY(check_head(writer, err));
        remote->body = tfos__alloc(1, stream->record.size);
        if (!remote->body)
            return tfos__no_memory(err, "feed", "a record");
    }
    if (status == TFOS_OK)
        status = tfos__feed_record_stream_read(stream, remote->body, stream->record.size, &cause);
    return status < 0 ? tfos__feed_writer_end(writer, status, cause.message, err) : status;
}

static enum tfos_status take_message(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_remote_state *remote = &writer->remote;
    const struct tfos__feed_record *record = &remote->stream.record;
    json_t *message = NULL;

    enum tfos_status status = tfos__json_parse((const char *)remote->body + sizeof(*record),
                                               record->body_size, &message, err);
    begin_record(remote, remote->body);
    if (status != TFOS_OK)
        return status;
    if (strcmp(tfos__json_string_or(message, "type", ""), "taken") == 0) {
        int64_t taken = tfos__json_int_or(message, "taken", 0);
        int64_t others = tfos__json_int_or(message, "others", 0);
        remote->progress += taken != remote->taken_count || others != remote->others;
        remote->taken_count = taken;
        remote->others = others;
        remote->batch_rows = tfos__json_int_or(message, "batch_rows", 0);
        remote->step_rows = tfos__json_int_or(message, "step_rows", -1);
        remote->published_row = tfos__json_int_or(message, "rows", 0);
        remote->is_complete = tfos__json_bool_or(message, "complete", false);
    } else {
        status = tfos__feed_writer_handle_message(writer, message, NULL, 0, err);
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
        if (writer->remote.stream.record.kind != TFOS__FEED_RECORD_MESSAGE)
            return TFOS_OK;
        TFOS__TRY(take_message(writer, err));
    }
}

static enum tfos_status check(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    if (writer->final_status == TFOS_OK) {
        // Nothing is read behind a result that waits: next_result() continues from there.
        enum tfos_status status = read_in(writer, err);
        if (status < 0)
            return status;
    }
    return tfos__feed_writer_final_status(writer, err);
}

static enum tfos_status peek(struct tfos__feed_writer *writer,
                             const struct tfos__feed_record **record, const uint8_t **body,
                             struct tfos_error *err)
{
    struct tfos__feed_remote_state *remote = &writer->remote;
    bool is_whole = remote->body && remote->stream.received == remote->stream.record.size;

    // After the node's final message the stream is not read any more: what came before it is.
    enum tfos_status status =
        is_whole || writer->final_status == TFOS_OK ? read_in(writer, err) : TFOS_AGAIN;
    if (status != TFOS_OK)
        return status > 0 ? TFOS_AGAIN : status;
    *record = &remote->stream.record;
    *body = remote->body + sizeof(remote->stream.record);
    return TFOS_OK;
}

static enum tfos_status take(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__feed_batch_owner *owner, struct tfos_error *err)
{
    struct tfos__feed_remote_state *remote = &writer->remote;

    (void)err;
    if (owner) {
        *owner = tfos__feed_batch_owner_of_memory(remote->body);
        *body = remote->body + sizeof(remote->stream.record);
    }
    begin_record(remote, owner ? NULL : remote->body);
    return TFOS_OK;
}

static void wait_for_socket(struct tfos__feed_writer *writer, uint64_t size)
{
    short events = tfos__buffer_size(&writer->remote.stream.out) > 0 ? POLLIN | POLLOUT : POLLIN;

    (void)size;
    (void)tfos__socket_wait(tfos__channel_fd(writer->connection), events,
                            tfos__deadline(TFOS__FEED_WRITER_SLICE_MS), NULL);
    (void)flush(writer, NULL);
}

static struct tfos__feed_progress progress(const struct tfos__feed_writer *writer)
{
    const struct tfos__feed_remote_state *remote = &writer->remote;

    return (struct tfos__feed_progress){.sum = remote->progress,
                                        .taken_rows = remote->taken_count,
                                        .batch_rows = remote->batch_rows,
                                        .step_rows = remote->step_rows,
                                        .published_row = remote->published_row,
                                        .is_delivered =
                                            tfos__buffer_size(&remote->stream.out) == 0 &&
                                            (!writer->is_finished || remote->is_complete)};
}

static enum tfos_status send_message(struct tfos__feed_writer *writer, json_t *message,
                                     struct tfos_error *err)
{
    TFOS__TRY(tfos__feed_record_append_message(&writer->remote.stream.out, message, err));
    enum tfos_status status = flush(writer, err);
    return status == TFOS_AGAIN ? TFOS_OK : status;
}

static void close_transport(struct tfos__feed_writer *writer, json_t *message)
{
    struct tfos__buffer *out = &writer->remote.stream.out;
    int64_t deadline = tfos__deadline(CLOSE_MS);

    if (message && writer->final_status == TFOS_OK) {
        enum tfos_status status = send_message(writer, message, NULL);
        // Rows that were appended go out as far as the node takes them; it counts them in any case.
        while (status == TFOS_OK && tfos__buffer_size(out) > 0 && tfos__now_ms() < deadline) {
            status = check(writer, NULL);
            if (status == TFOS_OK)
                wait_for_socket(writer, 0);
        }
    } else {
        json_decref(message);
    }
    begin_record(&writer->remote, writer->remote.body);
    tfos__buffer_clear(out);
}

const struct tfos__feed_transport tfos__feed_remote_transport = {
    .attach = attach,
    .reserve = reserve,
    .commit = commit,
    .check = check,
    .peek = peek,
    .take = take,
    .wait = wait_for_socket,
    .progress = progress,
    .send = send_message,
    .close = close_transport,
};

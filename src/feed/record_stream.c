// SPDX-License-Identifier: Apache-2.0
#include "feed/record_stream.h"

#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

enum tfos_status tfos__feed_record_stream_read_head(struct tfos__feed_record_stream *stream,
                                                    struct tfos_error *err)
{
    return tfos__feed_record_stream_read(stream, (uint8_t *)&stream->record, sizeof(stream->record),
                                         err);
}

enum tfos_status tfos__feed_record_stream_read(struct tfos__feed_record_stream *stream,
                                               uint8_t *data, size_t size, struct tfos_error *err)
{
    while (stream->received < size) {
        size_t done = 0;
        enum tfos_status status = tfos__channel_read_some(
            stream->connection, data + stream->received, size - stream->received, &done, err);
        if (status != TFOS_OK)
            return status;
        stream->received += done;
        stream->read_count++;
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_record_stream_write(struct tfos__feed_record_stream *stream,
                                                const uint8_t *data, size_t size, size_t *done,
                                                struct tfos_error *err)
{
    while (*done < size) {
        size_t step = 0;
        enum tfos_status status =
            tfos__channel_write_some(stream->connection, data + *done, size - *done, &step, err);
        if (status != TFOS_OK)
            return status;
        *done += step;
        stream->write_count++;
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_record_stream_flush(struct tfos__feed_record_stream *stream,
                                                struct tfos_error *err)
{
    struct tfos__buffer *out = &stream->out;
    enum tfos_status status =
        tfos__feed_record_stream_write(stream, out->data, out->end, &out->begin, err);

    // The memory is kept: the next record needs as much, and new memory costs as much as a copy.
    if (status == TFOS_OK)
        out->begin = out->end = 0;
    return status;
}

enum tfos_status tfos__feed_record_append_message(struct tfos__buffer *out, json_t *message,
                                                  struct tfos_error *err)
{
    char *text = message ? tfos__json_text(message) : NULL;

    json_decref(message);
    if (!text)
        return tfos__no_memory(err, "feed", "a message");
    uint64_t body_size = strlen(text);
    struct tfos__feed_record record = {.kind = TFOS__FEED_RECORD_MESSAGE,
                                       .size = tfos__feed_record_size(body_size),
                                       .body_size = body_size};
    // All or nothing: half a record would break the stream.
    enum tfos_status status = tfos__buffer_reserve(out, record.size, err);
    if (status == TFOS_OK) {
        uint8_t *space = out->data + out->end;
        memset(space + record.size - TFOS__FEED_RECORD_ALIGN, 0, TFOS__FEED_RECORD_ALIGN);
        memcpy(space, &record, sizeof(record));
        memcpy(space + sizeof(record), text, body_size);
        out->end += record.size;
    }
    tfos__free(text);
    return status;
}

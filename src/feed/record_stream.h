// SPDX-License-Identifier: Apache-2.0
/// Records over a connection (docs/protocol.md, "Feed: over TCP"), both ways and without waiting.
/// Control messages, JSON objects, travel as records too.
#ifndef TFOS_FEED_RECORD_STREAM_H
#define TFOS_FEED_RECORD_STREAM_H

#include <jansson.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "base/memory.h"
#include "feed/record.h"

#define TFOS__FEED_MESSAGE_LIMIT (1 << 20) ///< largest record that carries a control message

struct tfos__feed_record_stream {
    struct tfos__channel *connection; ///< borrowed
    struct tfos__buffer out;          ///< whole records on their way
    struct tfos__feed_record record;  ///< head of the record that comes in
    size_t received;                  ///< bytes of it, the head included
    uint64_t read_count, write_count; ///< go up with what is read and written
};

/// Reads what is missing of the record's head, or of `size` bytes of the record to `data`. OK when
/// all are there; AGAIN; CLOSED.
enum tfos_status tfos__feed_record_stream_read_head(struct tfos__feed_record_stream *stream,
                                                    struct tfos_error *err);
enum tfos_status tfos__feed_record_stream_read(struct tfos__feed_record_stream *stream,
                                               uint8_t *data, size_t size, struct tfos_error *err);

/// Writes bytes [*done, size) of a record, as many as go. OK when all have gone.
enum tfos_status tfos__feed_record_stream_write(struct tfos__feed_record_stream *stream,
                                                const uint8_t *data, size_t size, size_t *done,
                                                struct tfos_error *err);

/// Writes what is in `out`. OK when all has gone.
enum tfos_status tfos__feed_record_stream_flush(struct tfos__feed_record_stream *stream,
                                                struct tfos_error *err);

/// Appends a record with `message` (taken over) to `out`.
enum tfos_status tfos__feed_record_append_message(struct tfos__buffer *out, json_t *message,
                                                  struct tfos_error *err);

#endif

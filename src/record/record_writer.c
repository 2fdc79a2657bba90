// SPDX-License-Identifier: Apache-2.0
// Small records are collected into blocks; a large one is written directly.
#include <endian.h>
#include <string.h>
#include <tfos/record.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/compression.h"
#include "record/crc32c.h"

#define BLOCK_SIZE (256u << 10)
#define DEFAULT_LEVEL 6
#define SIZE_SIZE 8 // a record's size

struct tfos_record_writer {
    struct tfos_stream *stream;   ///< for frames: the caller's, or `deflated`
    struct tfos_stream *deflated; ///< owned; NULL when the file is plain
    struct tfos__buffer buffer;
};

static void put_checksum(uint8_t *place, const void *data, size_t size)
{
    uint32_t masked = htole32(tfos__record_crc32c_mask(tfos__record_crc32c(0, data, size)));
    memcpy(place, &masked, sizeof(masked));
}

void tfos_record_frame_init(struct tfos_record_frame *frame, const void *data, size_t size)
{
    uint64_t little_endian = htole64(size);
    memcpy(frame->head, &little_endian, SIZE_SIZE);
    put_checksum(frame->head + SIZE_SIZE, frame->head, SIZE_SIZE);
    put_checksum(frame->tail, data, size);
}

enum tfos_status tfos_record_writer_open(struct tfos_stream *stream,
                                         const struct tfos_record_writer_options *options,
                                         struct tfos_record_writer **out, struct tfos_error *err)
{
    enum tfos_compression compression = options ? options->compression : TFOS_COMPRESSION_NONE;
    int level = options && options->level != 0 ? options->level : DEFAULT_LEVEL;
    if (level < 1 || level > 9)
        return tfos__fail(err, TFOS_INVALID, "record: a level of compression from 1 to 9, not %d",
                          level);
    struct tfos_record_writer *writer = tfos__alloc(1, sizeof(*writer));
    if (!writer)
        return tfos__no_memory(err, "record", "a writer");
    writer->stream = stream;
    if (compression == TFOS_COMPRESSION_GZIP || compression == TFOS_COMPRESSION_ZLIB) {
        enum tfos_status status =
            tfos__record_deflate_open(stream, compression, level, &writer->deflated, err);
        if (status < 0) {
            tfos_record_writer_close(writer);
            return status;
        }
        writer->stream = writer->deflated;
    }
    *out = writer;
    return TFOS_OK;
}

static enum tfos_status flush(struct tfos_record_writer *writer, struct tfos_error *err)
{
    struct tfos__buffer *buffer = &writer->buffer;
    if (buffer->end > 0)
        TFOS__TRY(writer->stream->write(writer->stream, buffer->data, buffer->end, err));
    buffer->end = 0;
    return TFOS_OK;
}

static enum tfos_status put(struct tfos_record_writer *writer, const void *data, size_t size,
                            struct tfos_error *err)
{
    if (writer->buffer.end + size > BLOCK_SIZE)
        TFOS__TRY(flush(writer, err));
    if (size > BLOCK_SIZE)
        return writer->stream->write(writer->stream, data, size, err);
    return tfos__buffer_append(&writer->buffer, data, size, err);
}

enum tfos_status tfos_record_writer_append(struct tfos_record_writer *writer,
                                           const struct tfos_view *records, size_t count,
                                           struct tfos_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct tfos_record_frame frame;
        tfos_record_frame_init(&frame, records[i].data, records[i].size);
        TFOS__TRY(put(writer, frame.head, sizeof(frame.head), err));
        TFOS__TRY(put(writer, records[i].data, records[i].size, err));
        TFOS__TRY(put(writer, frame.tail, sizeof(frame.tail), err));
    }
    return TFOS_OK;
}

enum tfos_status tfos_record_writer_append_frames(struct tfos_record_writer *writer,
                                                  struct tfos_view frames, struct tfos_error *err)
{
    return put(writer, frames.data, frames.size, err);
}

enum tfos_status tfos_record_writer_finish(struct tfos_record_writer *writer,
                                           struct tfos_error *err)
{
    TFOS__TRY(flush(writer, err));
    return writer->stream->finish(writer->stream, err);
}

void tfos_record_writer_close(struct tfos_record_writer *writer)
{
    if (!writer)
        return;
    tfos_stream_close(writer->deflated);
    tfos__buffer_clear(&writer->buffer);
    tfos__free(writer);
}

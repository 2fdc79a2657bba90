// SPDX-License-Identifier: Apache-2.0
// Reads gzip and zlib. A gzip file may hold several members, one behind the other, and zeros behind
// the last. What came before a fault is given out first.
#include "record/inflate.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/memory.h"

#define INPUT_SIZE (64u << 10) // at least
#define WINDOW_BITS 15
#define GZIP_FORMAT 16 // added to the window's bits

struct inflate_stream {
    struct tfos_stream base;
    struct tfos_stream *source; ///< borrowed
    z_stream zlib;
    bool is_gzip;
    bool is_between;         ///< members: nothing of the next one has been read
    bool has_member;         ///< one has ended
    enum tfos_status status; ///< what read() gives from now on, unless OK
    struct tfos_error failure;
    size_t input_size;
    unsigned char input[];
};

static enum tfos_status corrupt(struct inflate_stream *stream, const char *cause)
{
    return tfos__fail(&stream->failure, TFOS_CORRUPT, "record: the %s data is damaged: %s",
                      stream->is_gzip ? "gzip" : "zlib", cause);
}

// END when the source has ended.
static enum tfos_status refill(struct inflate_stream *stream)
{
    size_t count = 0;
    enum tfos_status status = stream->source->read(stream->source, stream->input,
                                                   stream->input_size, &count, &stream->failure);
    if (status != TFOS_OK)
        return status;
    stream->zlib.next_in = stream->input;
    stream->zlib.avail_in = (uInt)count;
    return TFOS_OK;
}

// Behind a member: another one, zeros, or the end.
static enum tfos_status begin_member(struct inflate_stream *stream)
{
    z_stream *zlib = &stream->zlib;
    for (;;) {
        while (stream->has_member && zlib->avail_in > 0 && *zlib->next_in == 0) {
            zlib->next_in++;
            zlib->avail_in--;
        }
        if (zlib->avail_in > 0)
            break;
        enum tfos_status status = refill(stream);
        if (status == TFOS_END && !stream->has_member)
            return corrupt(stream, "there is none");
        if (status != TFOS_OK)
            return status;
    }
    if (stream->has_member && !stream->is_gzip)
        return corrupt(stream, "bytes follow its end");
    inflateReset(zlib);
    stream->is_between = false;
    return TFOS_OK;
}

static enum tfos_status inflate_some(struct inflate_stream *stream)
{
    z_stream *zlib = &stream->zlib;
    if (stream->is_between)
        return begin_member(stream);
    if (zlib->avail_in == 0) {
        enum tfos_status status = refill(stream);
        if (status == TFOS_END)
            return corrupt(stream, "it is cut");
        if (status != TFOS_OK)
            return status;
    }
    switch (inflate(zlib, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR: // wants more input
        return TFOS_OK;
    case Z_STREAM_END:
        stream->is_between = true;
        stream->has_member = true;
        return TFOS_OK;
    case Z_MEM_ERROR:
        return tfos__no_memory(&stream->failure, "record", "decompression");
    case Z_NEED_DICT:
        return corrupt(stream, "it needs a dictionary");
    default:
        return corrupt(stream, zlib->msg ? zlib->msg : "zlib does not say how");
    }
}

static enum tfos_status read_inflated(struct tfos_stream *base, void *data, size_t size,
                                      size_t *count, struct tfos_error *err)
{
    struct inflate_stream *stream = (struct inflate_stream *)base;
    uInt room = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
    stream->zlib.next_out = data;
    stream->zlib.avail_out = room;
    while (stream->status == TFOS_OK && stream->zlib.avail_out == room)
        stream->status = inflate_some(stream);
    *count = room - stream->zlib.avail_out;
    if (*count > 0)
        return TFOS_OK;
    if (stream->status < 0 && err)
        *err = stream->failure;
    return stream->status;
}

static void close_inflate(struct tfos_stream *base)
{
    struct inflate_stream *stream = (struct inflate_stream *)base;
    inflateEnd(&stream->zlib);
    tfos__free(stream);
}

enum tfos_status tfos__inflate_open(struct tfos_stream *source, struct tfos_view first,
                                    enum tfos_compression compression, struct tfos_stream **out,
                                    struct tfos_error *err)
{
    size_t input_size = first.size > INPUT_SIZE ? first.size : INPUT_SIZE;
    struct inflate_stream *stream = tfos__alloc(1, sizeof *stream + input_size);
    if (!stream)
        return tfos__no_memory(err, "record", "decompression");
    stream->input_size = input_size;
    stream->base.read = read_inflated;
    stream->base.close = close_inflate;
    stream->source = source;
    stream->is_gzip = compression == TFOS_COMPRESSION_GZIP;
    stream->is_between = true;
    if (first.size > 0)
        memcpy(stream->input, first.data, first.size);
    stream->zlib.next_in = stream->input;
    stream->zlib.avail_in = (uInt)first.size;
    if (inflateInit2(&stream->zlib, stream->is_gzip ? WINDOW_BITS + GZIP_FORMAT : WINDOW_BITS) !=
        Z_OK) {
        tfos__free(stream);
        return tfos__no_memory(err, "record", "decompression");
    }
    *out = &stream->base;
    return TFOS_OK;
}

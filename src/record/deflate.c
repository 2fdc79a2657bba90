// SPDX-License-Identifier: Apache-2.0
// Writes gzip and zlib.
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/inflate.h"

#define OUTPUT_SIZE (64u << 10)
#define WINDOW_BITS 15
#define GZIP_FORMAT 16 // added to the window's bits
#define MEMORY_LEVEL 8 // zlib's own default

struct deflate_stream {
    struct tfos_stream base;
    struct tfos_stream *target; ///< borrowed
    z_stream zlib;
    unsigned char output[OUTPUT_SIZE];
};

// Compresses what zlib has got, and writes what comes out of it: all of it when `flush` is
// Z_FINISH.
static enum tfos_status deflate_all(struct deflate_stream *stream, int flush,
                                    struct tfos_error *err)
{
    z_stream *zlib = &stream->zlib;
    int result = Z_OK;
    while (zlib->avail_in > 0 || (flush == Z_FINISH && result != Z_STREAM_END)) {
        zlib->next_out = stream->output;
        zlib->avail_out = OUTPUT_SIZE;
        result = deflate(zlib, flush);
        if (result == Z_STREAM_ERROR)
            return tfos__fail(err, TFOS_INVALID, "record: this writer was finished before");
        size_t size = OUTPUT_SIZE - zlib->avail_out;
        if (size > 0)
            TFOS__TRY(stream->target->write(stream->target, stream->output, size, err));
    }
    return TFOS_OK;
}

static enum tfos_status write_deflated(struct tfos_stream *base, const void *data, size_t size,
                                       struct tfos_error *err)
{
    struct deflate_stream *stream = (struct deflate_stream *)base;
    const unsigned char *bytes = data;
    while (size > 0) {
        uInt part = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
        stream->zlib.next_in = (unsigned char *)(uintptr_t)bytes; // zlib only reads there
        stream->zlib.avail_in = part;
        TFOS__TRY(deflate_all(stream, Z_NO_FLUSH, err));
        bytes += part;
        size -= part;
    }
    return TFOS_OK;
}

static enum tfos_status finish_deflate(struct tfos_stream *base, struct tfos_error *err)
{
    struct deflate_stream *stream = (struct deflate_stream *)base;
    TFOS__TRY(deflate_all(stream, Z_FINISH, err));
    return stream->target->finish(stream->target, err);
}

static void close_deflate(struct tfos_stream *base)
{
    struct deflate_stream *stream = (struct deflate_stream *)base;
    deflateEnd(&stream->zlib);
    tfos__free(stream);
}

enum tfos_status tfos__deflate_open(struct tfos_stream *target, enum tfos_compression compression,
                                    int level, struct tfos_stream **out, struct tfos_error *err)
{
    struct deflate_stream *stream = tfos__alloc(1, sizeof *stream);
    if (!stream)
        return tfos__no_memory(err, "record", "compression");
    stream->base.write = write_deflated;
    stream->base.finish = finish_deflate;
    stream->base.close = close_deflate;
    stream->target = target;
    int format = compression == TFOS_COMPRESSION_GZIP ? GZIP_FORMAT : 0;
    if (deflateInit2(&stream->zlib, level, Z_DEFLATED, WINDOW_BITS + format, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        tfos__free(stream);
        return tfos__no_memory(err, "record", "compression");
    }
    *out = &stream->base;
    return TFOS_OK;
}

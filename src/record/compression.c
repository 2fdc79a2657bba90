// SPDX-License-Identifier: Apache-2.0
// A plain file is recognised by its first checksum. Only where that is wrong do the magic numbers
// of formats count, and the file's name for formats that have none. A gzip file may hold several
// members, one behind the other, and zeros behind the last. What was decompressed before a fault is
// returned first.
#include "record/compression.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/crc32c.h"

#define SIZE_SIZE 8            // a record's size, with the checksum of that behind it
#define BLOCK_SIZE (64u << 10) // read at a time, at least; and written
#define WINDOW_BITS 15
#define GZIP_FORMAT 16 // added to the window's bits
#define MEMORY_LEVEL 8 // zlib's own default

// ---- formats

struct format {
    const char *name;
    const char *extension;
    bool is_codecs;         ///< Hadoop's codec for the extension reads it
    size_t offset;          ///< of the magic number
    struct tfos_view magic; ///< empty: the format has none
};

#define MAGIC(text)                                                                                \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

// Hadoop's own formats of lz4 and snappy, blocks after their sizes, have no magic number, and its
// codecs do not read the usual formats.
static const struct format formats[] = {
    {"bzip2", ".bz2", true, 4, MAGIC("1AY&SY")},
    {"bzip2", ".bz2", true, 4, MAGIC("\x17rE8P\x90")}, // of nothing
    {"zstd", ".zst", true, 0, MAGIC("\x28\xB5\x2F\xFD")},
    {"xz", ".xz", true, 0, MAGIC("\xFD\x37zXZ\0")}, // if somebody has brought a codec
    {"lzo", ".lzo", true, 0, MAGIC("\x89LZO\0\r\n\x1A\n")},
    {"lz4", ".lz4", false, 0, MAGIC("\x04\x22\x4D\x18")},
    {"snappy", ".snappy", false, 0, MAGIC("\xFF\x06\0\0sNaPpY")},
    {"Hadoop's lz4", ".lz4", true, 0, {NULL, 0}},
    {"Hadoop's snappy", ".snappy", true, 0, {NULL, 0}},
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

static bool ends_in(const char *name, const char *extension)
{
    size_t size = strlen(name), length = strlen(extension);
    return size > length && strcmp(name + size - length, extension) == 0;
}

static bool has_magic(const struct format *format, struct tfos_view first)
{
    size_t size = format->magic.size;
    return size > 0 && first.size >= format->offset + size &&
           memcmp((const char *)first.data + format->offset, format->magic.data, size) == 0;
}

// The format of a file by its magic number, else by its name: of those with that extension the
// last, which has no magic number if one of them has none. NULL: there is none.
static const struct format *find_format(const char *name, struct tfos_view first)
{
    const struct format *found = NULL;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (has_magic(&formats[i], first))
            return &formats[i];
        if (ends_in(name, formats[i].extension))
            found = &formats[i];
    }
    return found;
}

// Whether the first bytes are those of a plain file, or of gzip or zlib. The two bytes of zlib's
// header do not count where another format was found.
static bool find_own(struct tfos_view first, bool is_other, enum tfos_compression *compression)
{
    const uint8_t *data = first.data;
    *compression = TFOS_COMPRESSION_NONE;
    if (first.size < 2)
        return true;
    if (first.size >= TFOS__COMPRESSION_FIRST_SIZE &&
        tfos__record_crc32c_is_masked(data + SIZE_SIZE, data, SIZE_SIZE))
        return true;
    if (data[0] == 0x1F && data[1] == 0x8B)
        *compression = TFOS_COMPRESSION_GZIP;
    else if (!is_other && (data[0] & 0x0F) == 8 && data[0] >> 4 <= 7 &&
             (data[0] << 8 | data[1]) % 31 == 0)
        *compression = TFOS_COMPRESSION_ZLIB;
    return *compression != TFOS_COMPRESSION_NONE;
}

bool tfos_record_is_for_codec(const char *name, struct tfos_view first)
{
    enum tfos_compression compression;
    const struct format *format = find_format(name, first);
    if (find_own(first, format != NULL, &compression))
        return false;
    return !format || (format->is_codecs && (format->magic.size == 0 || has_magic(format, first)) &&
                       ends_in(name, format->extension));
}

enum tfos_status tfos__record_compression_detect(const char *name, struct tfos_view first,
                                                 enum tfos_compression *compression,
                                                 struct tfos_error *err)
{
    const struct format *format = find_format(name, first);
    if (find_own(first, format != NULL, compression) || !format)
        return TFOS_OK;
    if (format->magic.size > 0 && !has_magic(format, first))
        return tfos__fail(
            err, TFOS_UNSUPPORTED,
            "record: %s: its name says %s, and it is neither that nor a TFRecord file", name,
            format->name);
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "record: %s: it is compressed by %s, and what can be read is gzip, zlib and "
                      "no compression, as by TensorFlow: decompress it first%s%s",
                      name, format->name,
                      format->is_codecs ? ", or read it by Spark or Hadoop with a codec for "
                                          "names that end in "
                                        : "",
                      format->is_codecs ? format->extension : "");
}

enum tfos_status tfos_record_compression_of_name(const char *name,
                                                 enum tfos_compression *compression,
                                                 struct tfos_error *err)
{
    const struct format *format = find_format(name, (struct tfos_view){NULL, 0});
    if (format)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: %s: TensorFlow cannot read what its name says: it reads gzip, "
                          "zlib and no compression: take another name, or say one of these",
                          name);
    *compression = ends_in(name, ".gz") ? TFOS_COMPRESSION_GZIP : TFOS_COMPRESSION_NONE;
    return TFOS_OK;
}

// ---- decompressing

static int window_bits(enum tfos_compression compression)
{
    return compression == TFOS_COMPRESSION_GZIP ? WINDOW_BITS + GZIP_FORMAT : WINDOW_BITS;
}

struct inflate_stream {
    struct tfos_stream base;
    struct tfos_stream *source; ///< borrowed
    z_stream zlib;
    bool is_gzip;
    bool is_between;         ///< members: nothing of the next one has been read
    bool has_member;         ///< at least one has ended
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

enum tfos_status tfos__record_inflate_open(struct tfos_stream *source, struct tfos_view first,
                                           enum tfos_compression compression,
                                           struct tfos_stream **out, struct tfos_error *err)
{
    size_t input_size = first.size > BLOCK_SIZE ? first.size : BLOCK_SIZE;
    struct inflate_stream *stream = tfos__alloc(1, sizeof(*stream) + input_size);
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
    if (inflateInit2(&stream->zlib, window_bits(compression)) != Z_OK) {
        tfos__free(stream);
        return tfos__no_memory(err, "record", "decompression");
    }
    *out = &stream->base;
    return TFOS_OK;
}

// ---- compressing

struct deflate_stream {
    struct tfos_stream base;
    struct tfos_stream *target; ///< borrowed
    z_stream zlib;
    unsigned char output[BLOCK_SIZE];
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
        zlib->avail_out = BLOCK_SIZE;
        result = deflate(zlib, flush);
        if (result == Z_STREAM_ERROR)
            return tfos__fail(err, TFOS_INVALID, "record: this writer was finished before");
        size_t size = BLOCK_SIZE - zlib->avail_out;
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

enum tfos_status tfos__record_deflate_open(struct tfos_stream *target,
                                           enum tfos_compression compression, int level,
                                           struct tfos_stream **out, struct tfos_error *err)
{
    struct deflate_stream *stream = tfos__alloc(1, sizeof(*stream));
    if (!stream)
        return tfos__no_memory(err, "record", "compression");
    stream->base.write = write_deflated;
    stream->base.finish = finish_deflate;
    stream->base.close = close_deflate;
    stream->target = target;
    if (deflateInit2(&stream->zlib, level, Z_DEFLATED, window_bits(compression), MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        tfos__free(stream);
        return tfos__no_memory(err, "record", "compression");
    }
    *out = &stream->base;
    return TFOS_OK;
}

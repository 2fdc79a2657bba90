// SPDX-License-Identifier: Apache-2.0
// A plain file is known by its first checksum, which hardly comes about by chance; only where that
// is wrong do marks count, and the name where there is no mark.
#include "record/compression.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "record/crc32c.h"

#define SIZE_SIZE 8 // a record's size, with the checksum of that behind it

struct format {
    const char *name;
    const char *extension;
    bool is_codecs;        ///< Hadoop's codec for the extension reads it
    size_t offset;         ///< of the mark
    struct tfos_view mark; ///< what is in each such file; empty: there is none
};

#define MARK(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

// Hadoop's own forms of lz4 and snappy, blocks with their sizes before them, have no mark, and its
// codecs do not read the others.
static const struct format formats[] = {
    {"bzip2", ".bz2", true, 4, MARK("1AY&SY")},
    {"bzip2", ".bz2", true, 4, MARK("\x17rE8P\x90")}, // of nothing
    {"zstd", ".zst", true, 0, MARK("\x28\xB5\x2F\xFD")},
    {"xz", ".xz", true, 0, MARK("\xFD\x37zXZ\0")}, // if somebody has brought a codec
    {"lzo", ".lzo", true, 0, MARK("\x89LZO\0\r\n\x1A\n")},
    {"lz4", ".lz4", false, 0, MARK("\x04\x22\x4D\x18")},
    {"snappy", ".snappy", false, 0, MARK("\xFF\x06\0\0sNaPpY")},
    {"Hadoop's lz4", ".lz4", true, 0, {NULL, 0}},
    {"Hadoop's snappy", ".snappy", true, 0, {NULL, 0}},
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

static bool ends_in(const char *name, const char *extension)
{
    size_t size = strlen(name), length = strlen(extension);
    return size > length && strcmp(name + size - length, extension) == 0;
}

static bool has_mark(const struct format *format, struct tfos_view first)
{
    size_t size = format->mark.size;
    return size > 0 && first.size >= format->offset + size &&
           memcmp((const char *)first.data + format->offset, format->mark.data, size) == 0;
}

/// NULL: it is none of these. The last one for a name is that without a mark, if there is one.
static const struct format *find_format(const char *name, struct tfos_view first)
{
    const struct format *found = NULL;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (has_mark(&formats[i], first))
            return &formats[i];
        if (ends_in(name, formats[i].extension))
            found = &formats[i];
    }
    return found;
}

// Whether the first bytes are those of a plain file, or of one by gzip or zlib. Two bytes of zlib
// are no mark to rely on where there is another.
static bool find_own(struct tfos_view first, bool is_other, enum tfos_compression *compression)
{
    const uint8_t *data = first.data;
    uint32_t masked;
    *compression = TFOS_COMPRESSION_NONE;
    if (first.size < 2)
        return true;
    if (first.size >= SIZE_SIZE + sizeof masked) {
        memcpy(&masked, data + SIZE_SIZE, sizeof masked);
        if (le32toh(masked) == tfos__record_crc32c_mask(tfos__record_crc32c(0, data, SIZE_SIZE)))
            return true;
    }
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
    return !format || (format->is_codecs && (format->mark.size == 0 || has_mark(format, first)) &&
                       ends_in(name, format->extension));
}

enum tfos_status tfos__compression_detect(const char *name, struct tfos_view first,
                                          enum tfos_compression *compression,
                                          struct tfos_error *err)
{
    const struct format *format = find_format(name, first);
    if (find_own(first, format != NULL, compression) || !format)
        return TFOS_OK;
    if (format->mark.size > 0 && !has_mark(format, first))
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

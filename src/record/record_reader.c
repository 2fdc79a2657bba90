// SPDX-License-Identifier: Apache-2.0
// Reads frames. `offset` is that of the byte at buffer.begin; what the last call gave out lies
// there and is dropped by the next. What is at fault is dealt with when it is first in the buffer,
// behind all that was given out.
//
// Readers of neighbouring ranges must meet at the same frame, though only one of them knows by
// counting where frames begin, and the other looks for checksums that are right. So the one before
// makes sure, when it comes to its end, that the other cannot have found anything else
// (check_seam()).
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <tfos/record.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/compression.h"
#include "record/crc32c.h"
#include "record/inflate.h"
#include "record/record.h"

#define BLOCK_SIZE (256u << 10)            // read at a time, so that it stays in a cache
#define DEFAULT_MAX_RECORD_SIZE (1u << 30) // bytes
#define SIZE_SIZE 8                        // a record's size
#define HEAD_SIZE 12                       // that and its checksum
#define FRAME_SIZE 16                      // head, and checksum of the bytes

struct tfos_record_reader {
    struct tfos_record_reader_options options; ///< its name is owned
    struct tfos_stream *stream;                ///< of frames: the caller's, or `inflated`
    struct tfos_stream *inflated;              ///< owned; NULL when the file is plain
    struct tfos__buffer buffer;
    uint64_t offset;  ///< of the first byte in the buffer
    size_t given;     ///< bytes at the buffer's beginning that the last call went over
    uint64_t phase;   ///< number of the record behind those, modulo options.stride
    bool is_drained;  ///< the stream has ended
    bool is_searched; ///< it begins in the middle: the first frame is to be looked for
    struct tfos_record_counts counts;
    enum tfos_status status;   ///< what every call gives from now on, unless OK
    struct tfos_error failure; ///< written by whatever fails
};

const char *tfos_record_damage_text(enum tfos_record_damage_kind kind)
{
    static const char *const texts[] = {
        [TFOS_RECORD_BAD_SIZE_CHECKSUM] = "the checksum of a record's size is wrong",
        [TFOS_RECORD_BAD_CHECKSUM] = "the checksum of a record is wrong",
        [TFOS_RECORD_TOO_LARGE] = "a record is too large",
        [TFOS_RECORD_CUT] = "the file ends within a record",
        [TFOS_RECORD_BAD_COMPRESSION] = "the compressed data is damaged",
        [TFOS_RECORD_BAD_EXAMPLE] = "a record is not what it should be",
    };
    return (size_t)kind < sizeof texts / sizeof texts[0] ? texts[kind] : "unknown damage";
}

static const uint8_t *data_of(const struct tfos_record_reader *reader)
{
    return reader->buffer.data + reader->buffer.begin;
}

static size_t size_of(const struct tfos_record_reader *reader)
{
    return tfos__buffer_size(&reader->buffer);
}

static void drop(struct tfos_record_reader *reader, size_t size)
{
    reader->buffer.begin += size;
    reader->offset += size;
    if (reader->buffer.begin == reader->buffer.end)
        reader->buffer.begin = reader->buffer.end = 0;
}

static void tell(struct tfos_record_reader *reader, enum tfos_record_damage_kind kind,
                 uint64_t offset, uint64_t size)
{
    struct tfos_record_damage damage = {kind, offset, size, reader->failure.message};
    reader->counts.damages++;
    reader->counts.skipped_bytes += size;
    if (reader->options.on_damage)
        reader->options.on_damage(reader->options.context, &damage);
}

// What is behind the buffer cannot be decompressed, so nothing behind it can be found again.
static enum tfos_status pass_rest(struct tfos_record_reader *reader)
{
    uint64_t rest = size_of(reader);
    tfos__fail_prefix(&reader->failure, "record: %s: behind offset %llu", reader->options.name,
                      (unsigned long long)(reader->offset + rest));
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return TFOS_CORRUPT;
    tell(reader, TFOS_RECORD_BAD_COMPRESSION, reader->offset, rest);
    drop(reader, rest);
    return TFOS_END;
}

// Reads until `size` bytes are in the buffer, or all that there are. A size that a file claims is
// believed only as far as bytes come.
static enum tfos_status fill(struct tfos_record_reader *reader, uint64_t size)
{
    struct tfos__buffer *buffer = &reader->buffer;
    while (!reader->is_drained && size_of(reader) < size) {
        size_t have = size_of(reader), count = 0;
        size_t room = have < BLOCK_SIZE / 2 ? BLOCK_SIZE - have : have;
        TFOS__TRY(tfos__buffer_reserve(buffer, room, &reader->failure));
        enum tfos_status status = reader->stream->read(reader->stream, buffer->data + buffer->end,
                                                       room, &count, &reader->failure);
        if (status == TFOS_CORRUPT)
            status = pass_rest(reader);
        if (status < 0)
            return status;
        reader->is_drained = status == TFOS_END;
        buffer->end += status == TFOS_OK ? count : 0;
    }
    return TFOS_OK;
}

// Drops `size` bytes, or all that there are, and says how many.
static enum tfos_status discard(struct tfos_record_reader *reader, uint64_t size,
                                uint64_t *discarded)
{
    for (*discarded = 0; *discarded < size;) {
        TFOS__TRY(fill(reader, 1));
        uint64_t left = size - *discarded;
        size_t part = size_of(reader) < left ? size_of(reader) : (size_t)left;
        if (part == 0)
            break;
        drop(reader, part);
        *discarded += part;
    }
    return TFOS_OK;
}

static bool is_checksum(const uint8_t *place, const void *data, size_t size)
{
    uint32_t masked;
    memcpy(&masked, place, sizeof masked);
    return le32toh(masked) == tfos__record_crc32c_mask(tfos__record_crc32c(0, data, size));
}

/// What stands at some place of the buffer.
enum finding {
    WHOLE,
    UNREAD, ///< more bytes are needed, or the file is cut
    BAD_SIZE,
    BAD_BYTES,
    TOO_LARGE
};

struct look {
    enum finding finding;
    uint64_t needed; ///< bytes of the buffer that are to be there, unless BAD_SIZE or TOO_LARGE
    uint64_t size;   ///< of the record; unless BAD_SIZE
};

// Looks at the frame `at` bytes into the buffer.
static struct look look_at(const struct tfos_record_reader *reader, size_t at)
{
    const uint8_t *head = data_of(reader) + at, *bytes = head + HEAD_SIZE;
    size_t have = size_of(reader) - at;
    struct look look = {.finding = UNREAD, .needed = at + HEAD_SIZE};
    if (have < HEAD_SIZE)
        return look;
    uint64_t size;
    memcpy(&size, head, sizeof size);
    size = le64toh(size);
    look.size = size;
    if (!is_checksum(head + SIZE_SIZE, head, SIZE_SIZE)) {
        look.finding = BAD_SIZE;
    } else if (size > reader->options.max_record_size) {
        look.finding = TOO_LARGE;
    } else {
        look.needed = at + FRAME_SIZE + size;
        if (have >= FRAME_SIZE + size)
            look.finding = is_checksum(bytes + size, bytes, size) ? WHOLE : BAD_BYTES;
    }
    return look;
}

// The same, after reading what it needs.
static enum tfos_status read_at(struct tfos_record_reader *reader, size_t at, struct look *look)
{
    *look = look_at(reader, at);
    while (look->finding == UNREAD && !reader->is_drained) {
        TFOS__TRY(fill(reader, look->needed));
        *look = look_at(reader, at);
    }
    return TFOS_OK;
}

// Drops what is not a whole frame, and adds it to `*skipped`. END: there is no other frame.
static enum tfos_status find_frame(struct tfos_record_reader *reader, uint64_t *skipped)
{
    struct look look;
    for (;; drop(reader, 1), ++*skipped) {
        TFOS__TRY(read_at(reader, 0, &look));
        if (look.finding == WHOLE)
            return TFOS_OK;
        if (size_of(reader) == 0)
            return TFOS_END;
    }
}

static enum tfos_record_damage_kind kind_of(enum finding finding)
{
    static const enum tfos_record_damage_kind kinds[] = {
        [UNREAD] = TFOS_RECORD_CUT,
        [BAD_SIZE] = TFOS_RECORD_BAD_SIZE_CHECKSUM,
        [BAD_BYTES] = TFOS_RECORD_BAD_CHECKSUM,
        [TOO_LARGE] = TFOS_RECORD_TOO_LARGE,
    };
    return kinds[finding];
}

// Says in words what stands `at` bytes into the buffer. Always CORRUPT.
static enum tfos_status describe(struct tfos_record_reader *reader, size_t at, struct look look)
{
    const uint8_t *data = data_of(reader) + at;
    size_t have = size_of(reader) - at;
    uint64_t offset = reader->offset + at;
    char detail[160] = "";
    if (look.finding == TOO_LARGE)
        snprintf(detail, sizeof detail, ": %llu bytes, where max_record_size is %llu",
                 (unsigned long long)look.size,
                 (unsigned long long)reader->options.max_record_size);
    else if (look.finding == BAD_BYTES)
        snprintf(detail, sizeof detail, ": %llu bytes", (unsigned long long)look.size);
    else if (look.finding == UNREAD && have < HEAD_SIZE)
        snprintf(detail, sizeof detail, ": %zu bytes where %d precede a record", have, HEAD_SIZE);
    else if (look.finding == UNREAD)
        snprintf(detail, sizeof detail, ": %zu bytes, where a record of %llu takes %d more", have,
                 (unsigned long long)look.size, FRAME_SIZE);
    else if (offset == 0 && data[0] == 0x1F && data[1] == 0x8B)
        snprintf(detail, sizeof detail,
                 "; the file begins like one of gzip: let its compression be detected");
    else if (offset == 0)
        snprintf(detail, sizeof detail, "; perhaps it is no TFRecord file");
    char origin[160] = "";
    if (reader->options.begin > 0)
        snprintf(origin, sizeof origin,
                 "; this range's first record was searched for from offset %llu on: where records "
                 "may hold records themselves, read it whole",
                 (unsigned long long)reader->options.begin);
    return tfos__fail(&reader->failure, TFOS_CORRUPT, "record: %s: offset %llu: %s%s%s",
                      reader->options.name, (unsigned long long)offset,
                      tfos_record_damage_text(kind_of(look.finding)), detail, origin);
}

// What is first in the buffer is at fault. OK: reading can go on behind it.
static enum tfos_status pass_damage(struct tfos_record_reader *reader, struct look look)
{
    uint64_t offset = reader->offset, skipped = 0;
    enum tfos_status status = describe(reader, 0, look);
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return status;
    struct tfos_error words = reader->failure;
    if (reader->options.mode == TFOS_RECORD_SKIP_FILE) {
        status = TFOS_END;
    } else if (look.finding == BAD_BYTES || look.finding == TOO_LARGE) {
        // The size has a good checksum: the next frame is where it says.
        status = discard(reader, look.size + FRAME_SIZE, &skipped);
    } else {
        status = discard(reader, 1, &skipped);
        if (status == TFOS_OK)
            status = find_frame(reader, &skipped);
    }
    struct tfos_error cause = reader->failure;
    reader->failure = words;
    tell(reader, kind_of(look.finding), offset, skipped);
    reader->failure = cause;
    return status;
}

// Before the frame, `size` bytes long and first in the buffer, with which this range ends, is given
// out: whoever searches from options.end on must come to the frame behind it.
static enum tfos_status check_seam(struct tfos_record_reader *reader, uint64_t size)
{
    struct look look;
    for (size_t at = (size_t)(reader->options.end - reader->offset); at < size; at++) {
        TFOS__TRY(read_at(reader, at, &look));
        if (look.finding == WHOLE)
            return tfos__fail(&reader->failure, TFOS_UNSUPPORTED,
                              "record: %s: the record at offset %llu holds records itself (at "
                              "%llu), so the file cannot be read from its middle: read it whole",
                              reader->options.name, (unsigned long long)reader->offset,
                              (unsigned long long)(reader->offset + at));
    }
    return TFOS_OK;
}

// The first frame of the next range, which nobody else may find, is in order. Always END, or a
// failure.
static enum tfos_status end_range(struct tfos_record_reader *reader)
{
    struct look look;
    TFOS__TRY(read_at(reader, 0, &look));
    if (look.finding == WHOLE || size_of(reader) == 0)
        return TFOS_END;
    enum tfos_status status = describe(reader, 0, look);
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return status;
    tell(reader, kind_of(look.finding), reader->offset, 0);
    return TFOS_END;
}

// Brings a whole frame to the buffer's beginning.
static enum tfos_status advance(struct tfos_record_reader *reader, struct look *look)
{
    uint64_t end = reader->options.end, before = 0;
    enum tfos_status status = TFOS_OK;
    if (reader->is_searched)
        status = find_frame(reader, &before);
    reader->is_searched = false;
    while (status == TFOS_OK) {
        if (end > 0 && reader->offset >= end)
            return end_range(reader);
        TFOS__TRY(read_at(reader, 0, look));
        if (size_of(reader) == 0)
            return TFOS_END;
        if (look->finding == WHOLE)
            return end > 0 && reader->offset + look->needed > end ? check_seam(reader, look->needed)
                                                                  : TFOS_OK;
        status = pass_damage(reader, *look);
    }
    return status;
}

// Goes over a whole frame. Whether its record is one that is asked for.
static bool give(struct tfos_record_reader *reader, struct look look, struct tfos_view *record)
{
    bool is_wanted = reader->phase == reader->options.residue;
    if (is_wanted) {
        *record =
            (struct tfos_view){data_of(reader) + reader->given + HEAD_SIZE, (size_t)look.size};
        reader->counts.records++;
        reader->counts.bytes += look.size;
    }
    reader->given += FRAME_SIZE + (size_t)look.size;
    reader->phase = reader->phase + 1 < reader->options.stride ? reader->phase + 1 : 0;
    return is_wanted;
}

// Gives out what is wanted of the whole frames in the buffer, of which there is one.
static size_t give_batch(struct tfos_record_reader *reader, struct look look,
                         struct tfos_view *records, size_t capacity)
{
    uint64_t limit = reader->options.end > 0 ? reader->options.end : UINT64_MAX;
    size_t given = 0;
    do {
        given += give(reader, look, &records[given]);
        look = look_at(reader, reader->given);
    } while (given < capacity && look.finding == WHOLE && reader->offset + look.needed <= limit);
    return given;
}

enum tfos_status tfos_record_reader_next_batch(struct tfos_record_reader *reader,
                                               struct tfos_view *records, size_t capacity,
                                               size_t *count, struct tfos_error *err)
{
    struct look look = {.finding = UNREAD};
    size_t given = 0;
    while (given == 0) {
        drop(reader, reader->given);
        reader->given = 0;
        if (reader->status == TFOS_OK)
            reader->status = advance(reader, &look);
        if (reader->status < 0 && err)
            *err = reader->failure;
        if (reader->status != TFOS_OK)
            return reader->status;
        given = give_batch(reader, look, records, capacity);
    }
    *count = given;
    return TFOS_OK;
}

enum tfos_status tfos_record_reader_next(struct tfos_record_reader *reader,
                                         struct tfos_view *record, struct tfos_error *err)
{
    size_t count;
    return tfos_record_reader_next_batch(reader, record, 1, &count, err);
}

uint64_t tfos__record_reader_offset(const struct tfos_record_reader *reader,
                                    struct tfos_view record)
{
    return reader->offset + (size_t)((const uint8_t *)record.data - HEAD_SIZE - data_of(reader));
}

struct tfos_record_position tfos__record_reader_tell(const struct tfos_record_reader *reader)
{
    return (struct tfos_record_position){reader->offset + reader->given, reader->phase};
}

enum tfos_status tfos_record_reader_reject(struct tfos_record_reader *reader,
                                           struct tfos_view record, struct tfos_error *err)
{
    static const char module[] = "record: ";
    uint64_t offset = tfos__record_reader_offset(reader, record);
    const char *cause = err ? err->message : "";
    if (strncmp(cause, module, strlen(module)) == 0)
        cause += strlen(module);
    tfos__fail(&reader->failure, TFOS_CORRUPT, "record: %s: offset %llu: %s", reader->options.name,
               (unsigned long long)offset, cause);
    if (err)
        *err = reader->failure;
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return reader->status = TFOS_CORRUPT;
    bool is_end = reader->options.mode == TFOS_RECORD_SKIP_FILE;
    reader->counts.records--;
    reader->counts.bytes -= record.size;
    tell(reader, TFOS_RECORD_BAD_EXAMPLE, offset, is_end ? 0 : FRAME_SIZE + record.size);
    if (is_end)
        reader->status = TFOS_END;
    return is_end ? TFOS_END : TFOS_OK;
}

struct tfos_record_counts tfos_record_reader_get_counts(const struct tfos_record_reader *reader)
{
    return reader->counts;
}

// What was read to find out about compression is read again.
static enum tfos_status jump(struct tfos_record_reader *reader, uint64_t offset)
{
    reader->buffer.begin = reader->buffer.end = 0;
    reader->is_drained = false;
    reader->offset = offset;
    return reader->stream->seek(reader->stream, offset, &reader->failure);
}

// Goes to where the range begins.
static enum tfos_status begin_range(struct tfos_record_reader *reader)
{
    if (reader->options.begin == 0)
        return TFOS_OK;
    if (!reader->stream->seek)
        return tfos__fail(&reader->failure, TFOS_INVALID,
                          "record: %s: offset %llu: a stream that only goes forward cannot be read "
                          "from its middle",
                          reader->options.name, (unsigned long long)reader->options.begin);
    reader->is_searched = true;
    return jump(reader, reader->options.begin);
}

// Goes to where reading is to go on: the last byte before that shows that the file is as long.
static enum tfos_status begin_at(struct tfos_record_reader *reader, uint64_t start)
{
    uint64_t passed = 0;
    if (start == 0)
        return TFOS_OK;
    reader->is_searched = false;
    if (reader->stream->seek)
        TFOS__TRY(jump(reader, start - 1));
    TFOS__TRY(discard(reader, start - reader->offset, &passed));
    if (reader->offset < start)
        return tfos__fail(&reader->failure, TFOS_INVALID,
                          "record: %s: it ends at offset %llu, and was read up to offset %llu "
                          "before: it has become another file since",
                          reader->options.name, (unsigned long long)reader->offset,
                          (unsigned long long)start);
    return TFOS_OK;
}

static enum tfos_status decompress(struct tfos_record_reader *reader,
                                   enum tfos_compression compression)
{
    struct tfos_view first = {data_of(reader), size_of(reader)};
    if (reader->options.begin > 0 || reader->options.end > 0)
        return tfos__fail(&reader->failure, TFOS_UNSUPPORTED,
                          "record: %s: it is compressed, so no range of it can be read",
                          reader->options.name);
    TFOS__TRY(tfos__inflate_open(reader->stream, first, compression, &reader->inflated,
                                 &reader->failure));
    reader->buffer.begin = reader->buffer.end = 0;
    reader->is_drained = false;
    reader->stream = reader->inflated;
    return TFOS_OK;
}

static enum tfos_status begin(struct tfos_record_reader *reader)
{
    enum tfos_compression compression = reader->options.compression;
    if (reader->options.end > 0 && reader->options.end < reader->options.begin)
        return tfos__fail(&reader->failure, TFOS_INVALID, "record: %s: a range from %llu to %llu",
                          reader->options.name, (unsigned long long)reader->options.begin,
                          (unsigned long long)reader->options.end);
    if (reader->options.residue >= reader->options.stride ||
        reader->phase >= reader->options.stride)
        return tfos__fail(&reader->failure, TFOS_INVALID,
                          "record: %s: residue and start.phase must be less than stride",
                          reader->options.name);
    if (compression == TFOS_COMPRESSION_AUTO) {
        TFOS__TRY(fill(reader, TFOS__COMPRESSION_FIRST_SIZE));
        struct tfos_view first = {data_of(reader), size_of(reader)};
        TFOS__TRY(
            tfos__compression_detect(reader->options.name, first, &compression, &reader->failure));
    }
    TFOS__TRY(compression != TFOS_COMPRESSION_NONE ? decompress(reader, compression)
                                                   : begin_range(reader));
    return begin_at(reader, reader->options.start.offset);
}

enum tfos_status tfos_record_reader_open(struct tfos_stream *stream,
                                         const struct tfos_record_reader_options *options,
                                         struct tfos_record_reader **out, struct tfos_error *err)
{
    struct tfos_record_reader *reader = tfos__alloc(1, sizeof *reader);
    if (!reader)
        return tfos__no_memory(err, "record", "a reader");
    reader->stream = stream;
    if (options)
        reader->options = *options;
    reader->options.name = tfos__strdup(options && options->name ? options->name : "the file");
    // There is always a buffer, so that there is always a place in it.
    if (tfos__buffer_reserve(&reader->buffer, BLOCK_SIZE, err) < 0) {
        tfos_record_reader_close(reader);
        return TFOS_NO_MEMORY;
    }
    if (reader->options.max_record_size == 0)
        reader->options.max_record_size = DEFAULT_MAX_RECORD_SIZE;
    if (reader->options.stride == 0)
        reader->options.stride = 1;
    reader->phase = reader->options.start.phase;
    enum tfos_status status = reader->options.name
                                  ? begin(reader)
                                  : tfos__no_memory(&reader->failure, "record", "a name");
    if (status < 0) {
        if (err)
            *err = reader->failure;
        tfos_record_reader_close(reader);
        return status;
    }
    *out = reader;
    return TFOS_OK;
}

void tfos_record_reader_close(struct tfos_record_reader *reader)
{
    if (!reader)
        return;
    tfos_stream_close(reader->inflated);
    tfos__buffer_clear(&reader->buffer);
    tfos__free((char *)(uintptr_t)reader->options.name);
    tfos__free(reader);
}

// SPDX-License-Identifier: Apache-2.0
// Reads frames. `offset` is that of the byte at buffer.begin. The records of the last call lie
// there, and the next call drops them. A faulty frame is handled when it is the first in the
// buffer.
//
// Readers of adjacent ranges must split the file at the same frame. The reader of the first range
// knows where frames begin, that of the second searches for right checksums. At its end the first
// reader checks that the second cannot have found another frame (check_boundary()).
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <tfos/record.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/compression.h"
#include "record/crc32c.h"
#include "record/record.h"

#define BLOCK_SIZE (256u << 10) // read at a time, so that it stays in a cache
#define SIZE_SIZE 8             // a record's size

struct tfos_record_reader {
    struct tfos_record_reader_options options; ///< its name is owned
    struct tfos_stream *stream;                ///< of frames: the caller's, or `inflated`
    struct tfos_stream *inflated;              ///< owned; NULL when the file is plain
    struct tfos__buffer buffer;
    uint64_t offset;  ///< of the first byte in the buffer
    size_t used;      ///< bytes at the buffer's beginning that the last call has read
    uint64_t phase;   ///< number of the record behind those, modulo options.stride
    bool is_drained;  ///< the stream has ended
    bool is_searched; ///< the range begins within the file: its first frame is to be found
    struct tfos_record_counts counts;
    enum tfos_status status;   ///< what every call returns from now on, unless OK
    struct tfos_error failure; ///< of the last function that failed
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
    return (size_t)kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : "unknown damage";
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

static void report(struct tfos_record_reader *reader, enum tfos_record_damage_kind kind,
                   uint64_t offset, uint64_t size)
{
    struct tfos_record_damage damage = {kind, offset, size, reader->failure.message};
    reader->counts.damages++;
    reader->counts.skipped_bytes += size;
    if (reader->options.on_damage)
        reader->options.on_damage(reader->options.context, &damage);
}

// The bytes behind the buffer cannot be decompressed: no frame behind it can be found.
static enum tfos_status skip_rest(struct tfos_record_reader *reader)
{
    uint64_t rest = size_of(reader);
    tfos__fail_prefix(&reader->failure, "record: %s: behind offset %llu", reader->options.name,
                      (unsigned long long)(reader->offset + rest));
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return TFOS_CORRUPT;
    report(reader, TFOS_RECORD_BAD_COMPRESSION, reader->offset, rest);
    drop(reader, rest);
    return TFOS_END;
}

// Reads until `size` bytes, or all that there are, are in the buffer. The buffer grows with the
// bytes that come, not with a size that the file claims.
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
            status = skip_rest(reader);
        if (status < 0)
            return status;
        reader->is_drained = status == TFOS_END;
        buffer->end += status == TFOS_OK ? count : 0;
    }
    return TFOS_OK;
}

// Drops `size` bytes, or all that there are; `*discarded` is their number.
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

#define WHOLE (-1)

/// What was found at a place of the buffer.
struct frame {
    int fault;       ///< WHOLE, or an enum tfos_record_damage_kind; CUT: more bytes are needed
    uint64_t needed; ///< bytes of the buffer that must be there; WHOLE, CUT and BAD_CHECKSUM
    uint64_t size;   ///< of the record; not BAD_SIZE_CHECKSUM
};

// Checks the frame `at` bytes into the buffer.
static struct frame check_frame(const struct tfos_record_reader *reader, size_t at)
{
    const uint8_t *head = data_of(reader) + at, *bytes = head + TFOS__RECORD_HEAD_SIZE;
    size_t have = size_of(reader) - at;
    struct frame frame = {.fault = TFOS_RECORD_CUT, .needed = at + TFOS__RECORD_HEAD_SIZE};
    if (have < TFOS__RECORD_HEAD_SIZE)
        return frame;
    uint64_t size;
    memcpy(&size, head, sizeof(size));
    size = le64toh(size);
    frame.size = size;
    if (!tfos__record_crc32c_is_masked(head + SIZE_SIZE, head, SIZE_SIZE)) {
        frame.fault = TFOS_RECORD_BAD_SIZE_CHECKSUM;
    } else if (size > reader->options.max_record_size) {
        frame.fault = TFOS_RECORD_TOO_LARGE;
    } else {
        frame.needed = at + TFOS__RECORD_FRAME_SIZE + size;
        if (have >= TFOS__RECORD_FRAME_SIZE + size)
            frame.fault = tfos__record_crc32c_is_masked(bytes + size, bytes, size)
                              ? WHOLE
                              : TFOS_RECORD_BAD_CHECKSUM;
    }
    return frame;
}

// Reads what the frame `at` bytes into the buffer needs, and checks it.
static enum tfos_status read_frame(struct tfos_record_reader *reader, size_t at,
                                   struct frame *frame)
{
    *frame = check_frame(reader, at);
    while (frame->fault == TFOS_RECORD_CUT && !reader->is_drained) {
        TFOS__TRY(fill(reader, frame->needed));
        *frame = check_frame(reader, at);
    }
    return TFOS_OK;
}

// Drops bytes up to a whole frame, and adds their number to `*skipped`. END: there is no frame.
static enum tfos_status find_frame(struct tfos_record_reader *reader, uint64_t *skipped)
{
    struct frame frame;
    for (;; drop(reader, 1), ++*skipped) {
        TFOS__TRY(read_frame(reader, 0, &frame));
        if (frame.fault == WHOLE)
            return TFOS_OK;
        if (size_of(reader) == 0)
            return TFOS_END;
    }
}

// Writes the message about the frame `at` bytes into the buffer. Always CORRUPT.
static enum tfos_status describe(struct tfos_record_reader *reader, size_t at, struct frame frame)
{
    const uint8_t *data = data_of(reader) + at;
    size_t have = size_of(reader) - at;
    uint64_t offset = reader->offset + at;
    char detail[160] = "";
    if (frame.fault == TFOS_RECORD_TOO_LARGE)
        snprintf(detail, sizeof(detail), ": %llu bytes, where max_record_size is %llu",
                 (unsigned long long)frame.size,
                 (unsigned long long)reader->options.max_record_size);
    else if (frame.fault == TFOS_RECORD_BAD_CHECKSUM)
        snprintf(detail, sizeof(detail), ": %llu bytes", (unsigned long long)frame.size);
    else if (frame.fault == TFOS_RECORD_CUT && have < TFOS__RECORD_HEAD_SIZE)
        snprintf(detail, sizeof(detail), ": %zu bytes where %d precede a record", have,
                 TFOS__RECORD_HEAD_SIZE);
    else if (frame.fault == TFOS_RECORD_CUT)
        snprintf(detail, sizeof(detail), ": %zu bytes, where a record of %llu takes %d more", have,
                 (unsigned long long)frame.size, TFOS__RECORD_FRAME_SIZE);
    else if (offset == 0 && data[0] == 0x1F && data[1] == 0x8B)
        snprintf(detail, sizeof(detail),
                 "; the file begins like one of gzip: let its compression be detected");
    else if (offset == 0)
        snprintf(detail, sizeof(detail), "; perhaps it is no TFRecord file");
    char origin[160] = "";
    if (reader->options.begin > 0)
        snprintf(origin, sizeof(origin),
                 "; this range's first record was searched for from offset %llu on: where records "
                 "may hold records themselves, read it whole",
                 (unsigned long long)reader->options.begin);
    return tfos__fail(&reader->failure, TFOS_CORRUPT, "record: %s: offset %llu: %s%s%s",
                      reader->options.name, (unsigned long long)offset,
                      tfos_record_damage_text((enum tfos_record_damage_kind)frame.fault), detail,
                      origin);
}

// Handles a faulty frame at the buffer's beginning. OK: reading can continue behind it.
static enum tfos_status skip_damage(struct tfos_record_reader *reader, struct frame frame)
{
    uint64_t offset = reader->offset, skipped = 0;
    enum tfos_status status = describe(reader, 0, frame);
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return status;
    struct tfos_error words = reader->failure;
    if (reader->options.mode == TFOS_RECORD_SKIP_FILE) {
        status = TFOS_END;
    } else if (frame.fault == TFOS_RECORD_BAD_CHECKSUM || frame.fault == TFOS_RECORD_TOO_LARGE) {
        // The checksum of the size is right: the next frame begins behind so many bytes.
        status = discard(reader, frame.size + TFOS__RECORD_FRAME_SIZE, &skipped);
    } else {
        status = discard(reader, 1, &skipped);
        if (status == TFOS_OK)
            status = find_frame(reader, &skipped);
    }
    struct tfos_error cause = reader->failure;
    reader->failure = words;
    report(reader, (enum tfos_record_damage_kind)frame.fault, offset, skipped);
    reader->failure = cause;
    return status;
}

// Checks the last frame of this range, `size` bytes at the buffer's beginning, before it is
// returned: a search from options.end on must find the frame behind it.
static enum tfos_status check_boundary(struct tfos_record_reader *reader, uint64_t size)
{
    struct frame frame;
    for (size_t at = (size_t)(reader->options.end - reader->offset); at < size; at++) {
        TFOS__TRY(read_frame(reader, at, &frame));
        if (frame.fault == WHOLE)
            return tfos__fail(&reader->failure, TFOS_UNSUPPORTED,
                              "record: %s: the record at offset %llu holds records itself (at "
                              "%llu), so the file cannot be read from its middle: read it whole",
                              reader->options.name, (unsigned long long)reader->offset,
                              (unsigned long long)(reader->offset + at));
    }
    return TFOS_OK;
}

// Checks the first frame of the next range: if it is faulty, no other reader may find it. Always
// END, or a failure.
static enum tfos_status end_range(struct tfos_record_reader *reader)
{
    struct frame frame;
    TFOS__TRY(read_frame(reader, 0, &frame));
    if (frame.fault == WHOLE || size_of(reader) == 0)
        return TFOS_END;
    enum tfos_status status = describe(reader, 0, frame);
    if (reader->options.mode == TFOS_RECORD_STRICT)
        return status;
    report(reader, (enum tfos_record_damage_kind)frame.fault, reader->offset, 0);
    return TFOS_END;
}

// Moves on to the next whole frame.
static enum tfos_status advance(struct tfos_record_reader *reader, struct frame *frame)
{
    uint64_t end = reader->options.end, before = 0;
    enum tfos_status status = TFOS_OK;
    if (reader->is_searched)
        status = find_frame(reader, &before);
    reader->is_searched = false;
    while (status == TFOS_OK) {
        if (end > 0 && reader->offset >= end)
            return end_range(reader);
        TFOS__TRY(read_frame(reader, 0, frame));
        if (size_of(reader) == 0)
            return TFOS_END;
        if (frame->fault == WHOLE)
            return end > 0 && reader->offset + frame->needed > end
                       ? check_boundary(reader, frame->needed)
                       : TFOS_OK;
        status = skip_damage(reader, *frame);
    }
    return status;
}

// Returns the record of a whole frame, if it is one that is asked for.
static bool return_frame(struct tfos_record_reader *reader, struct frame frame,
                         struct tfos_view *record)
{
    bool is_wanted = reader->phase == reader->options.residue;
    if (is_wanted) {
        *record = (struct tfos_view){data_of(reader) + reader->used + TFOS__RECORD_HEAD_SIZE,
                                     (size_t)frame.size};
        reader->counts.records++;
        reader->counts.bytes += frame.size;
    }
    reader->used += TFOS__RECORD_FRAME_SIZE + (size_t)frame.size;
    reader->phase = reader->phase + 1 < reader->options.stride ? reader->phase + 1 : 0;
    return is_wanted;
}

// Returns the records that are asked for of the whole frames in the buffer; there is at least one
// frame.
static size_t return_batch(struct tfos_record_reader *reader, struct frame frame,
                           struct tfos_view *records, size_t capacity)
{
    uint64_t limit = reader->options.end > 0 ? reader->options.end : UINT64_MAX;
    size_t given = 0;
    do {
        given += return_frame(reader, frame, &records[given]);
        frame = check_frame(reader, reader->used);
    } while (given < capacity && frame.fault == WHOLE && reader->offset + frame.needed <= limit);
    return given;
}

enum tfos_status tfos_record_reader_next_batch(struct tfos_record_reader *reader,
                                               struct tfos_view *records, size_t capacity,
                                               size_t *count, struct tfos_error *err)
{
    struct frame frame = {.fault = TFOS_RECORD_CUT};
    size_t given = 0;
    while (given == 0) {
        drop(reader, reader->used);
        reader->used = 0;
        if (reader->status == TFOS_OK)
            reader->status = advance(reader, &frame);
        if (reader->status < 0 && err)
            *err = reader->failure;
        if (reader->status != TFOS_OK)
            return reader->status;
        given = return_batch(reader, frame, records, capacity);
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
    return reader->offset +
           (size_t)((const uint8_t *)record.data - TFOS__RECORD_HEAD_SIZE - data_of(reader));
}

struct tfos_record_position tfos__record_reader_tell(const struct tfos_record_reader *reader)
{
    return (struct tfos_record_position){reader->offset + reader->used, reader->phase};
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
    report(reader, TFOS_RECORD_BAD_EXAMPLE, offset,
           is_end ? 0 : TFOS__RECORD_FRAME_SIZE + record.size);
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

// Goes to where reading is to begin. Reading the byte before it shows that the file is as long.
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
    TFOS__TRY(tfos__record_inflate_open(reader->stream, first, compression, &reader->inflated,
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
        TFOS__TRY(tfos__record_compression_detect(reader->options.name, first, &compression,
                                                  &reader->failure));
    }
    TFOS__TRY(compression != TFOS_COMPRESSION_NONE ? decompress(reader, compression)
                                                   : begin_range(reader));
    return begin_at(reader, reader->options.start.offset);
}

enum tfos_status tfos_record_reader_open(struct tfos_stream *stream,
                                         const struct tfos_record_reader_options *options,
                                         struct tfos_record_reader **out, struct tfos_error *err)
{
    struct tfos_record_reader *reader = tfos__alloc(1, sizeof(*reader));
    if (!reader)
        return tfos__no_memory(err, "record", "a reader");
    reader->stream = stream;
    if (options)
        reader->options = *options;
    reader->options.name = tfos__strdup(options && options->name ? options->name : "the file");
    // The buffer must have memory, as places in it are computed also while it is empty.
    if (tfos__buffer_reserve(&reader->buffer, BLOCK_SIZE, err) < 0) {
        tfos_record_reader_close(reader);
        return TFOS_NO_MEMORY;
    }
    if (reader->options.max_record_size == 0)
        reader->options.max_record_size = TFOS__RECORD_SIZE_LIMIT;
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

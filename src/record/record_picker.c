// SPDX-License-Identifier: Apache-2.0
// Reads single records at the places of an index. The index is checked against the file: its end
// once, each frame when it is read.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tfos/record_index.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

struct tfos_record_picker {
    struct tfos_stream *stream;            ///< borrowed
    const struct tfos_record_index *index; ///< borrowed
    char *name;                            ///< owned
    uint64_t max_record_size;
    uint64_t offset; ///< of the stream; UINT64_MAX: not known
    struct tfos__buffer frame;
};

// Reads `size` bytes, or up to the file's end.
static enum tfos_status read_up_to(struct tfos_record_picker *picker, uint8_t *data, size_t size,
                                   size_t *have, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    for (*have = 0; *have < size && status == TFOS_OK;) {
        size_t count = 0;
        status = picker->stream->read(picker->stream, data + *have, size - *have, &count, err);
        *have += status == TFOS_OK ? count : 0;
    }
    return status < 0 ? status : TFOS_OK;
}

static enum tfos_status check_end(struct tfos_record_picker *picker, struct tfos_error *err)
{
    uint64_t count = tfos_record_index_count(picker->index), end = 0;
    uint8_t bytes[2];
    size_t have = 0;
    if (count > 0) {
        struct tfos_record_place last = tfos_record_index_get(picker->index, count - 1);
        end = last.offset + last.size;
    }
    size_t before = end > 0 ? 1 : 0;
    TFOS__TRY(picker->stream->seek(picker->stream, end - before, err));
    TFOS__TRY(read_up_to(picker, bytes, before + 1, &have, err));
    if (have == before)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT,
                      "record: %s: its index is of a file of %llu bytes, and this one is %s: make "
                      "the index again",
                      picker->name, (unsigned long long)end, have > before ? "longer" : "shorter");
}

enum tfos_status tfos_record_picker_open(struct tfos_stream *stream,
                                         const struct tfos_record_index *index,
                                         const struct tfos_record_reader_options *options,
                                         struct tfos_record_picker **out, struct tfos_error *err)
{
    const char *name = options && options->name ? options->name : "the file";
    if (!stream->seek)
        return tfos__fail(err, TFOS_INVALID,
                          "record: %s: a stream that only goes forward has no records to pick",
                          name);
    struct tfos_record_picker *picker = tfos__alloc(1, sizeof(*picker));
    if (!picker)
        return tfos__no_memory(err, "record", "a picker");
    *picker = (struct tfos_record_picker){
        .stream = stream, .index = index, .name = tfos__strdup(name), .offset = UINT64_MAX};
    picker->max_record_size = options && options->max_record_size > 0 ? options->max_record_size
                                                                      : TFOS__RECORD_SIZE_LIMIT;
    enum tfos_status status =
        picker->name ? check_end(picker, err) : tfos__no_memory(err, "record", "a picker");
    if (status < 0)
        tfos_record_picker_close(picker);
    else
        *out = picker;
    return status;
}

static enum tfos_status refuse(const struct tfos_record_picker *picker, uint64_t offset,
                               const char *what, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "record: %s: offset %llu: %s", picker->name,
                      (unsigned long long)offset, what);
}

static enum tfos_status read_frame(struct tfos_record_picker *picker,
                                   struct tfos_record_place place, struct tfos_error *err)
{
    size_t have = 0;
    picker->frame.begin = picker->frame.end = 0;
    TFOS__TRY(tfos__buffer_reserve(&picker->frame, (size_t)place.size, err));
    uint64_t at = picker->offset;
    picker->offset = UINT64_MAX; // until it is known again
    if (at != place.offset)
        TFOS__TRY(picker->stream->seek(picker->stream, place.offset, err));
    TFOS__TRY(read_up_to(picker, picker->frame.data, (size_t)place.size, &have, err));
    if (have < place.size)
        return refuse(picker, place.offset, tfos_record_damage_text(TFOS_RECORD_CUT), err);
    picker->offset = place.offset + place.size;
    return TFOS_OK;
}

enum tfos_status tfos_record_picker_get(struct tfos_record_picker *picker, uint64_t number,
                                        struct tfos_view *record, struct tfos_error *err)
{
    uint64_t count = tfos_record_index_count(picker->index);
    if (number >= count)
        return tfos__fail(err, TFOS_INVALID, "record: %s: there is no record %llu of %llu",
                          picker->name, (unsigned long long)number, (unsigned long long)count);
    struct tfos_record_place place = tfos_record_index_get(picker->index, number);
    uint64_t size = place.size - TFOS__RECORD_FRAME_SIZE;
    if (size > picker->max_record_size)
        return refuse(picker, place.offset, tfos_record_damage_text(TFOS_RECORD_TOO_LARGE), err);
    TFOS__TRY(read_frame(picker, place, err));
    const uint8_t *bytes = picker->frame.data + TFOS__RECORD_HEAD_SIZE;
    struct tfos_record_frame frame;
    tfos_record_frame_init(&frame, bytes, (size_t)size);
    if (memcmp(picker->frame.data, frame.head, sizeof(frame.head)) != 0)
        return refuse(picker, place.offset,
                      "no record of the size that the index says begins here: the index is not "
                      "this file's, or the file is damaged",
                      err);
    if (memcmp(bytes + size, frame.tail, sizeof(frame.tail)) != 0)
        return refuse(picker, place.offset, tfos_record_damage_text(TFOS_RECORD_BAD_CHECKSUM), err);
    *record = (struct tfos_view){bytes, (size_t)size};
    return TFOS_OK;
}

void tfos_record_picker_close(struct tfos_record_picker *picker)
{
    if (!picker)
        return;
    tfos__buffer_clear(&picker->frame);
    tfos__free(picker->name);
    tfos__free(picker);
}

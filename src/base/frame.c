// SPDX-License-Identifier: Apache-2.0
// The length is checked as soon as its four bytes are there, before anything is allocated for the
// body.
#include "base/frame.h"

#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

struct text_sink {
    struct tfos__buffer *out;
    size_t room; // bytes of body that the limit still allows
};

static int append_text(const char *text, size_t size, void *context)
{
    struct text_sink *sink = context;
    if (size > sink->room) {
        sink->room = 0;
        return -1;
    }
    sink->room -= size;
    return tfos__buffer_append(sink->out, text, size, NULL) == TFOS_OK ? 0 : -1;
}

enum tfos_status tfos__frame_append(struct tfos__buffer *out, const json_t *message,
                                    struct tfos_error *err)
{
    if (!json_is_object(message))
        return tfos__fail(err, TFOS_INVALID, "frame: a message must be a JSON object");
    size_t old_size = tfos__buffer_size(out);
    unsigned char header[TFOS__FRAME_HEADER_SIZE] = {0};
    TFOS__TRY(tfos__buffer_append(out, header, sizeof header, err));
    struct text_sink sink = {.out = out, .room = TFOS__FRAME_LIMIT};
    if (json_dump_callback(message, append_text, &sink, JSON_COMPACT) != 0) {
        out->end = out->begin + old_size;
        if (sink.room == 0)
            return tfos__fail(err, TFOS_INVALID,
                              "frame: the message is larger than the limit of %u bytes",
                              TFOS__FRAME_LIMIT);
        return tfos__no_memory(err, "frame", "the text of a message");
    }
    uint32_t size = TFOS__FRAME_LIMIT - (uint32_t)sink.room;
    unsigned char *at = out->data + out->begin + old_size;
    at[0] = (unsigned char)(size >> 24);
    at[1] = (unsigned char)(size >> 16);
    at[2] = (unsigned char)(size >> 8);
    at[3] = (unsigned char)size;
    return TFOS_OK;
}

static uint32_t body_size(const struct tfos__buffer *in)
{
    const unsigned char *at = in->data + in->begin;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

enum tfos_status tfos__frame_check(const struct tfos__buffer *in, struct tfos_error *err)
{
    if (tfos__buffer_size(in) < TFOS__FRAME_HEADER_SIZE)
        return TFOS_OK;
    uint32_t size = body_size(in);
    if (size == 0 || size > TFOS__FRAME_LIMIT)
        return tfos__fail(err, TFOS_CORRUPT, "frame: a length of %u bytes is not from 1 to %u",
                          (unsigned)size, TFOS__FRAME_LIMIT);
    return TFOS_OK;
}

enum tfos_status tfos__frame_take(struct tfos__buffer *in, json_t **message, size_t *size,
                                  struct tfos_error *err)
{
    TFOS__TRY(tfos__frame_check(in, err));
    if (tfos__buffer_size(in) < TFOS__FRAME_HEADER_SIZE)
        return TFOS_AGAIN;
    size_t frame_size = TFOS__FRAME_HEADER_SIZE + body_size(in);
    if (tfos__buffer_size(in) < frame_size)
        return TFOS_AGAIN;
    const char *body = (const char *)in->data + in->begin + TFOS__FRAME_HEADER_SIZE;
    TFOS__TRY(tfos__json_parse(body, frame_size - TFOS__FRAME_HEADER_SIZE, message, err));
    tfos__buffer_consume(in, frame_size);
    *size = frame_size;
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// A message is a record like the others, so that the stream needs one way of reading only.
#include "feed/message.h"

#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

enum tfos_status tfos__feed_control_message_append(struct tfos__buffer *out, json_t *message,
                                                   struct tfos_error *err)
{
    char *text = message ? tfos__json_text(message) : NULL;

    json_decref(message);
    if (!text)
        return tfos__no_memory(err, "feed", "a message");
    uint64_t body_size = strlen(text);
    struct tfos__feed_record record = {.kind = TFOS__FEED_RECORD_MESSAGE,
                                       .size = tfos__feed_record_size(body_size),
                                       .body_size = body_size};
    static const uint8_t padding[TFOS__FEED_RECORD_ALIGN];
    // All or nothing: half a record would break the stream.
    enum tfos_status status = tfos__buffer_reserve(out, record.size, err);
    if (status == TFOS_OK)
        status = tfos__buffer_append(out, &record, sizeof record, err);
    if (status == TFOS_OK)
        status = tfos__buffer_append(out, text, body_size, err);
    if (status == TFOS_OK)
        status = tfos__buffer_append(out, padding, record.size - sizeof record - body_size, err);
    tfos__free(text);
    return status;
}

enum tfos_status tfos__feed_control_message_read(const struct tfos__feed_record *record,
                                                 const uint8_t *body, json_t **out,
                                                 struct tfos_error *err)
{
    return tfos__json_parse((const char *)body, record->body_size, out, err);
}

// SPDX-License-Identifier: Apache-2.0
/// JSON messages between records, as the feed over TCP carries them.
#ifndef TFOS_FEED_MESSAGE_H
#define TFOS_FEED_MESSAGE_H

#include <jansson.h>
#include <tfos/status.h>

#include "base/memory.h"
#include "feed/record.h"

#define TFOS__MESSAGE_LIMIT (1 << 20) ///< largest record that carries a message

/// Appends a record with `message` (taken over) to `out`.
enum tfos_status tfos__message_append(struct tfos__buffer *out, json_t *message,
                                      struct tfos_error *err);

/// Reads the body of such a record.
enum tfos_status tfos__message_read(const struct tfos__record *record, const uint8_t *body,
                                    json_t **out, struct tfos_error *err);

#endif

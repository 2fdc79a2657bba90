// SPDX-License-Identifier: Apache-2.0
/// Text from programs: any bytes, made into the valid UTF-8 that JSON asks for.
#ifndef TFOS_NODE_TEXT_H
#define TFOS_NODE_TEXT_H

#include <jansson.h>
#include <stddef.h>

/// A JSON string of `size` bytes, in which what is not UTF-8 has become U+FFFD; NULL when out of
/// memory.
json_t *tfos__text_to_json(const char *data, size_t size);

/// The start of the last character boundary at or after `data + size - limit`: where to cut so that
/// the newest `limit` bytes stay.
const char *tfos__text_tail(const char *data, size_t size, size_t limit);

#endif

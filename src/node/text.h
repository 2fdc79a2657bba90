// SPDX-License-Identifier: Apache-2.0
/// Text from programs: any bytes, made into the valid UTF-8 that JSON asks for.
#ifndef TFOS_NODE_TEXT_H
#define TFOS_NODE_TEXT_H

#include <jansson.h>
#include <stddef.h>

/// A copy of `size` bytes, ended by NUL, in which what is not UTF-8 has become U+FFFD. The caller
/// frees it with tfos__free(); NULL when out of memory.
char *tfos__text_repair(const char *data, size_t size);

/// The same as a JSON string; NULL when out of memory.
json_t *tfos__text_to_json(const char *data, size_t size);

/// Where to begin so that the last `limit` bytes stay, or a few less to begin at a character.
const char *tfos__text_tail(const char *data, size_t size, size_t limit);

#endif

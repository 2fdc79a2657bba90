// SPDX-License-Identifier: Apache-2.0
/// Text: UTF-8 and what is made of it, numbers in messages, and bytes as hexadecimal digits.
#ifndef TFOS_BASE_TEXT_H
#define TFOS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/stream.h>

#include "base/memory.h"

#define TFOS__NUMBER_TEXT 32 ///< room for a number
#define TFOS__DIGEST_TEXT 65 ///< room for a digest

/// Whether the bytes are whole characters in UTF-8: each in its shortest form, no surrogates.
bool tfos__text_is_utf8(const void *text, size_t size);

/// A copy of `size` bytes, ended by NUL, in which NUL and what is not UTF-8 have become U+FFFD. The
/// caller frees it with tfos__free(); NULL when out of memory.
char *tfos__text_repair(const char *data, size_t size);

/// The last `limit` bytes of `text` at most, from the beginning of a character.
const char *tfos__text_tail(const char *text, size_t limit);

/// Appends the text to `out` in a form that is equal for texts that differ in letter case only, as
/// Java's equalsIgnoreCase() defines it. Only ASCII letters are folded where the text is not UTF-8
/// or the machine lacks the locale C.UTF-8.
enum tfos_status tfos__text_fold_case(struct tfos_view text, struct tfos__buffer *out,
                                      struct tfos_error *err);

/// Writes a number with as few digits as make the same double again, or the same float where it is
/// one: 1.1, and not 1.1000000000000001. Returns `text`.
const char *tfos__number_print(double number, char text[TFOS__NUMBER_TEXT]);
const char *tfos__float_print(float number, char text[TFOS__NUMBER_TEXT]);

/// Writes two hexadecimal digits for each of the `size` bytes, and NUL.
void tfos__text_print_hex(const void *data, size_t size, char *text);

/// Writes the SHA-256 of `data` in hexadecimal digits; `module` begins a message.
enum tfos_status tfos__text_print_digest(struct tfos_view data, const char *module,
                                         char text[TFOS__DIGEST_TEXT], struct tfos_error *err);

#endif

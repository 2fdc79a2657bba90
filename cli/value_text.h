// SPDX-License-Identifier: Apache-2.0
/// Values of records as text, and back: numbers, base64 (RFC 4648) and JSON.
#ifndef TFOS_CLI_VALUE_TEXT_H
#define TFOS_CLI_VALUE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>

#include "bytes.h"

#define NUMBER_TEXT_SIZE 32

/// A whole number of 64 bits, digits with or without a minus sign. `is_plain`, if not NULL: it is
/// written as a number is, without zeros before it.
bool integer_parse(const char *text, int64_t *value, bool *is_plain);

/// A decimal number, or nan, inf, -inf.
bool real_parse(const char *text, double *value);

/// The nearest float. False: `value` has more digits than a float keeps (0.1 has not, though no
/// float is that number exactly: written with as many digits it comes back), or lies beyond its
/// range.
bool real_to_float(double value, float *out);

/// As few digits as make the same float again.
void real_print(float value, char text[NUMBER_TEXT_SIZE]);

/// Adds the base64 text of `size` bytes.
void base64_encode(struct bytes *text, const void *data, size_t size);

/// Adds the bytes that the text encodes. False: it is no base64.
bool base64_decode(struct bytes *bytes, const char *text, size_t size);

bool is_utf8(const char *text, size_t size);

/// Value `index` of an array of int64, float, string, binary, lists or structs of these, as an
/// inferred schema has them. Numbers that JSON does not have are the texts "nan", "inf" and "-inf";
/// bytes that are no text are {"base64": ...}.
json_t *value_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                      int64_t index);

/// A text as JSON has it; what is no UTF-8 in it becomes U+FFFD.
json_t *text_to_json(const char *text);

/// Adds the JSON text of `value`, which it gives up.
void bytes_add_json(struct bytes *text, json_t *value);

/// Prints a line of JSON and gives up the value.
void print_json(json_t *value);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Numbers of records as decimal text, and back.
#ifndef TFOS_CLI_NUMBER_TEXT_H
#define TFOS_CLI_NUMBER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

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
void real_write(float value, char text[NUMBER_TEXT_SIZE]);

#endif

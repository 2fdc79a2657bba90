// SPDX-License-Identifier: Apache-2.0
/// Decimals of 128 bits, as Arrow has them (two's complement, little-endian), as text and as
/// numbers.
#ifndef TFOS_ARROW_DECIMAL_H
#define TFOS_ARROW_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFOS__ARROW_DECIMAL_SIZE 16
#define TFOS__ARROW_DECIMAL_TEXT 64 ///< room for a sign, 38 digits, a point and the end

/// Reads "-12.5". False: it is no number, or one that `precision` digits, `scale` of them behind
/// the point, cannot hold.
bool tfos__arrow_decimal_parse(const char *text, size_t size, int precision, int scale,
                               uint8_t value[TFOS__ARROW_DECIMAL_SIZE]);

/// The number as text with `scale` digits behind the point.
void tfos__arrow_decimal_print(const uint8_t value[TFOS__ARROW_DECIMAL_SIZE], int scale,
                               char text[TFOS__ARROW_DECIMAL_TEXT]);

/// The decimal nearest to a number. False: it cannot be held.
bool tfos__arrow_decimal_of(double number, int precision, int scale,
                            uint8_t value[TFOS__ARROW_DECIMAL_SIZE]);

#endif

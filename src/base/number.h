// SPDX-License-Identifier: Apache-2.0
/// Numbers in messages.
#ifndef TFOS_BASE_NUMBER_H
#define TFOS_BASE_NUMBER_H

#include <stddef.h>

#define TFOS__NUMBER_TEXT 32 ///< room for a number

/// Writes a number with as few digits as make the same double again, or the same float where it is
/// one: 1.1, and not 1.1000000000000001. Returns `text`.
const char *tfos__number_print(double number, char text[TFOS__NUMBER_TEXT]);
const char *tfos__float_print(float number, char text[TFOS__NUMBER_TEXT]);

#endif

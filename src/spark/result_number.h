// SPDX-License-Identifier: Apache-2.0
/// Numbers and booleans of one type as those of another, where nothing is lost by it.
#ifndef TFOS_SPARK_RESULT_NUMBER_H
#define TFOS_SPARK_RESULT_NUMBER_H

#include <stdint.h>
#include <tfos/status.h>

#include "spark/result_source.h"

/// Writes `count` values from `first` on, packed, as numbers of the declared type (a boolean is a
/// byte, 0 or 1). A null becomes zero. INVALID: an integer is not in the range of its new type, or
/// a fraction would be cut off, or an integer is larger than those that a floating-point type has
/// all of. A float takes the nearest of a double.
enum tfos_status tfos__result_convert(const struct tfos__result_source *source, int64_t first,
                                      int64_t count, const struct tfos__result_type *type, void *to,
                                      struct tfos_error *err);

#endif

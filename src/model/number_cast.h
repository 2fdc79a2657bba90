// SPDX-License-Identifier: Apache-2.0
/// Numbers of a column in the type of a tensor.
#ifndef TFOS_MODEL_NUMBER_CAST_H
#define TFOS_MODEL_NUMBER_CAST_H

#include "model/tensorflow.h"

#define TFOS__MODEL_NUMBER_TEXT 40 ///< room for a number in words

/// Whether values of the type are numbers, or counted by integers.
bool tfos__model_is_number(const struct tfos__arrow_type *type);

/// Whether values lie in memory as those of a tensor of the other type do.
bool tfos__model_is_same(const struct tfos__arrow_type *from, const struct tfos__model_type *to);

/// Casts `count` values at `values`, of booleans bits, from `first` on to those at `out`. False,
/// with the first of them as text: an integer or boolean would have another value. A float becomes
/// the nearest.
bool tfos__model_numbers_cast(const struct tfos__arrow_type *from, const void *values,
                              int64_t first, int64_t count, const struct tfos__model_type *to,
                              void *out, char wrong[TFOS__MODEL_NUMBER_TEXT]);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column that grows by what the features of its name hold, a row each. AGAIN, anywhere: its
/// 32-bit offsets reach no further. After that, and after a failure, it is to be truncated.
#ifndef TFOS_RECORD_EXAMPLE_COLUMN_H
#define TFOS_RECORD_EXAMPLE_COLUMN_H

#include "record/example_plan.h"

struct tfos__example_column {
    const struct tfos__example_field *field; ///< borrowed
    struct tfos__feature plain, list;        ///< of the record at hand
};

/// Adds the row that `plain` and `list` hold.
enum tfos_status tfos__example_column_append(struct tfos__example_column *column,
                                             struct tfos_error *err);

/// Adds the values of a list of another kind than the field's: an integer as float, double or
/// decimal, if it is one exactly, and a number as its decimal text. An empty list fits any field.
enum tfos_status tfos__example_values_convert(const struct tfos__example_field *field,
                                              enum tfos__feature_kind kind, struct tfos_view list,
                                              struct tfos_error *err);

/// Adds the values of a list of the field's kind.
enum tfos_status tfos__example_values_append(const struct tfos__example_field *field,
                                             struct tfos_view list, struct tfos_error *err);

/// Adds a string or some bytes.
enum tfos_status tfos__example_values_append_text(const struct tfos__example_field *field,
                                                  struct tfos_view text, struct tfos_error *err);

void tfos__example_column_clear(struct tfos__example_column *column);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column that grows by what the features of its name hold, a row each.
#ifndef TFOS_RECORD_EXAMPLE_COLUMN_H
#define TFOS_RECORD_EXAMPLE_COLUMN_H

#include "base/aligned.h"
#include "record/example_plan.h"

/// How far a column has come.
struct tfos__example_extent {
    int64_t rows;
    int64_t null_count;
    int64_t list_counts[TFOS__EXAMPLE_LEVELS]; ///< of the lists of each level; [0] is `rows`
    int64_t value_count;
    size_t byte_count;
};

struct tfos__example_column {
    const struct tfos__example_field *field; ///< borrowed
    struct tfos__feature plain, list;        ///< of the record at hand
    struct tfos__example_extent extent;
    struct tfos__aligned validity; ///< from the first null on
    struct tfos__aligned offsets[TFOS__EXAMPLE_LEVELS];
    struct tfos__aligned values; ///< of text and binary: offsets
    struct tfos__aligned bytes;  ///< of text and binary
};

/// Adds the row that `plain` and `list` hold. AGAIN: the 32-bit offsets reach no further. After
/// that, and after a failure, the column is to be cut back.
enum tfos_status tfos__example_column_append(struct tfos__example_column *column,
                                             struct tfos_error *err);

/// Room for `count` more values of a fixed width.
static inline enum tfos_status tfos__example_column_reserve(struct tfos__example_column *column,
                                                            size_t count, struct tfos_error *err)
{
    size_t width = column->field->width;
    return tfos__aligned_reserve(&column->values, (size_t)column->extent.value_count * width,
                                 count * width, err);
}

/// Where the next of them goes.
static inline uint8_t *tfos__example_column_end(const struct tfos__example_column *column)
{
    return column->values.data + (size_t)column->extent.value_count * column->field->width;
}

/// Adds the values of a list of another kind than the field's: an integer as float, double or
/// decimal, if it is one exactly, and a number as its decimal text. An empty list fits any field.
enum tfos_status tfos__example_values_convert(struct tfos__example_column *column,
                                              enum tfos__feature_kind kind, struct tfos_view list,
                                              struct tfos_error *err);

/// Adds the values of a list of the field's kind; `column->extent.value_count` counts them.
enum tfos_status tfos__example_values_append(struct tfos__example_column *column,
                                             struct tfos_view list, struct tfos_error *err);

/// Adds a string or some bytes. Offsets of 32 bits may overflow: the caller looks at
/// `column->extent.byte_count`.
enum tfos_status tfos__example_values_append_text(struct tfos__example_column *column,
                                                  struct tfos_view text, struct tfos_error *err);

/// Adds a value that stands for none: zero, empty.
enum tfos_status tfos__example_values_append_zeros(struct tfos__example_column *column,
                                                   int64_t count, struct tfos_error *err);

/// Makes the array of a column and hands its memory over to it; the column is empty then.
enum tfos_status tfos__example_column_take(struct tfos__example_column *column,
                                           struct ArrowArray *out, struct tfos_error *err);

void tfos__example_column_clear(struct tfos__example_column *column);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The columns of a batch of Spark's rows: how their values lie in a row, beside the Arrow columns
/// that grow as values come.
#ifndef TFOS_UNSAFE_ROW_ROW_COLUMN_H
#define TFOS_UNSAFE_ROW_ROW_COLUMN_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "arrow/arrow.h"
#include "unsafe_row/row_format.h"

/// Values are the same bytes on both sides, but for these: a boolean is a byte in Spark; a decimal
/// is a long in Spark, or, of more than 18 digits, up to 16 bytes in big-endian order in its
/// variable part; an interval is there too, and ends with microseconds, in Arrow with nanoseconds.
struct tfos__unsafe_row_column {
    struct tfos__arrow_builder *values; ///< borrowed
    bool is_variable;                   ///< a value lies in Spark's variable part
    uint32_t element_size;              ///< bytes of a value in one of Spark's arrays
    uint32_t null_bit;                  ///< of the field in its row's null bits, and
    size_t null_word;                   ///< the word that it is in
    size_t slot;                        ///< of the field in its row
    size_t fixed_size;                  ///< a struct's null bits and slots
    int64_t child_count;
    struct tfos__unsafe_row_column *children; ///< owned
    uint8_t *null_row; ///< a struct's row of nulls, which a null is read as; owned
    char *path;        ///< names from the top, for messages; owned
};

/// Makes `column`, zeroed, for the Arrow field `schema`, and those below it; `values` grows by
/// them. On failure the caller clears it too. UNSUPPORTED names the column and its type.
enum tfos_status tfos__unsafe_row_column_init(struct tfos__unsafe_row_column *column,
                                              const struct ArrowSchema *schema,
                                              struct tfos__arrow_builder *values,
                                              struct tfos_error *err);

void tfos__unsafe_row_column_clear(struct tfos__unsafe_row_column *column);

static inline enum tfos__arrow_kind
tfos__unsafe_row_column_kind(const struct tfos__unsafe_row_column *column)
{
    return column->values->type.kind;
}

#endif

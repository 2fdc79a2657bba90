// SPDX-License-Identifier: Apache-2.0
/// Reads Spark's rows into columns.
#ifndef TFOS_UNSAFE_ROW_ROW_READER_H
#define TFOS_UNSAFE_ROW_ROW_READER_H

#include "unsafe_row/row_column.h"

/// A row or an array in memory; its offsets count from its base.
struct tfos__unsafe_row_region {
    const uint8_t *base; ///< borrowed
    uint32_t size;
    uint32_t left; ///< bytes that values in its variable part may still take
};

/// Appends up to 64 rows, each of at least column->fixed_size bytes, to the children of `column`, a
/// struct, and raises its length by the number of rows that are whole. A failure is that of the row
/// behind them, and names the column; children may then be longer.
enum tfos_status tfos__unsafe_row_read_rows(struct tfos__unsafe_row_column *column,
                                            struct tfos__unsafe_row_region *rows, unsigned count,
                                            struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A declared column of results with the values that a batch has for it.
#ifndef TFOS_UNSAFE_ROW_RESULT_COLUMN_H
#define TFOS_UNSAFE_ROW_RESULT_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "unsafe_row/result_source.h"

/// Rows under construction, whose null bits are zero.
struct tfos__unsafe_row_chunk {
    int64_t first; ///< number of the first in its batch
    unsigned count;
    size_t slots; ///< where they begin in a row
    uint8_t *rows[TFOS__ROW_CHUNK];
    uint32_t used[TFOS__ROW_CHUNK];  ///< bytes that are written
    uint64_t sizes[TFOS__ROW_CHUNK]; ///< of the whole rows
};

struct tfos__unsafe_row_result_column {
    struct tfos__unsafe_row_result_type type;
    struct tfos__unsafe_row_source *sources; ///< owned
    int64_t source_count, source_capacity;
    bool is_zipped; ///< a value is an array, of which each source has one element
};

/// Makes room for the sources of the next batch.
enum tfos_status
tfos__unsafe_row_result_column_reserve(struct tfos__unsafe_row_result_column *column, int64_t count,
                                       struct tfos_error *err);

/// Whether the sources' type can be cast to the declared one. INVALID names both.
enum tfos_status
tfos__unsafe_row_result_column_check(const struct tfos__unsafe_row_result_column *column,
                                     struct tfos_error *err);

/// Adds what the column takes of the rows' variable parts to their sizes.
void tfos__unsafe_row_result_column_measure(const struct tfos__unsafe_row_result_column *column,
                                            struct tfos__unsafe_row_chunk *chunk);

/// Writes the column's values into the rows' field `field`. INVALID names the column.
enum tfos_status
tfos__unsafe_row_result_column_write(const struct tfos__unsafe_row_result_column *column,
                                     int64_t field, struct tfos__unsafe_row_chunk *chunk,
                                     struct tfos_error *err);

void tfos__unsafe_row_result_column_clear(struct tfos__unsafe_row_result_column *column);

#endif

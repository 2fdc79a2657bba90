// SPDX-License-Identifier: Apache-2.0
/// A declared column of results with the values that a batch has for it.
#ifndef TFOS_SPARK_RESULT_COLUMN_H
#define TFOS_SPARK_RESULT_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "spark/result_source.h"

#define TFOS__RESULT_CHUNK 64 ///< rows that are written at a time

/// Rows under construction, whose null bits are zero.
struct tfos__result_chunk {
    int64_t first; ///< number of the first in its batch
    unsigned count;
    size_t slots; ///< where they begin in a row
    uint8_t *rows[TFOS__RESULT_CHUNK];
    uint32_t used[TFOS__RESULT_CHUNK];  ///< bytes that are written
    uint64_t sizes[TFOS__RESULT_CHUNK]; ///< of the whole rows
};

struct tfos__result_column {
    struct tfos__result_type type;
    struct tfos__result_source *sources; ///< owned
    int64_t source_count, source_capacity;
    bool is_gathered; ///< a value is an array, of which each source has one element
};

/// Makes room for the sources of the next batch.
enum tfos_status tfos__result_column_reserve(struct tfos__result_column *column, int64_t count,
                                             struct tfos_error *err);

/// Whether the sources' type can be cast to the declared one. INVALID names both.
enum tfos_status tfos__result_column_check(const struct tfos__result_column *column,
                                           struct tfos_error *err);

/// Adds what the column takes of the rows' variable parts to their sizes.
void tfos__result_column_measure(const struct tfos__result_column *column,
                                 struct tfos__result_chunk *chunk);

/// Writes the column's values into the rows' field `field`. INVALID names the column.
enum tfos_status tfos__result_column_write(const struct tfos__result_column *column, int64_t field,
                                           struct tfos__result_chunk *chunk,
                                           struct tfos_error *err);

void tfos__result_column_clear(struct tfos__result_column *column);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Reading values out of Spark's rows into columns. Messages name the column, not the row.
#ifndef TFOS_SPARK_UNSAFE_VALUE_H
#define TFOS_SPARK_UNSAFE_VALUE_H

#include <stdint.h>
#include <string.h>
#include <tfos/status.h>

#include "spark/unsafe_column.h"

/// A row or an array in memory; what it points to is relative to its base.
struct tfos__unsafe_region {
    const uint8_t *base; ///< borrowed
    uint32_t size;
    uint32_t left; ///< bytes that values in its variable part may still take
};

/// An array whose head has been checked.
struct tfos__unsafe_elements {
    struct tfos__unsafe_region region;
    const uint8_t *nulls;
    const uint8_t *values;
    int64_t count;
};

/// Slots that are read at a time: from 64 rows, or from one array.
struct tfos__unsafe_cells {
    struct tfos__unsafe_region *regions;
    unsigned region_step; ///< 1: cell i is of regions[i]; 0: all are of regions[0]
    unsigned count;
    uint64_t nulls;
    uint64_t words[TFOS__UNSAFE_CHUNK]; ///< not set where null
};

/// Appends up to 64 rows, each of at least column->fixed_size bytes, to the children of `column`, a
/// struct, and raises its length by the number of rows that are whole. A failure is that of the row
/// behind them; children may then be longer.
enum tfos_status tfos__unsafe_read_rows(struct tfos__unsafe_column *column,
                                        struct tfos__unsafe_region *rows, unsigned count,
                                        struct tfos_error *err);

/// Appends an array's elements. A failure is that of the element behind the column's length.
enum tfos_status tfos__unsafe_read_elements(struct tfos__unsafe_column *column,
                                            struct tfos__unsafe_elements *elements,
                                            struct tfos_error *err);

/// Appends values of a type that lies in the variable part; their nulls are marked already. A
/// failure is that of the cell behind the column's length.
enum tfos_status tfos__unsafe_read_cells(struct tfos__unsafe_column *column,
                                         struct tfos__unsafe_cells *cells, struct tfos_error *err);

/// Rows lie wherever the caller has them, so nothing is aligned for sure.
static inline uint64_t tfos__unsafe_load_word(const uint8_t *at)
{
    uint64_t word = 0;

    memcpy(&word, at, sizeof word);
    return word;
}

#endif

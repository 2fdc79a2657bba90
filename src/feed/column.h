// SPDX-License-Identifier: Apache-2.0
/// What an Arrow format string says about the buffers of a column.
#ifndef TFOS_FEED_COLUMN_H
#define TFOS_FEED_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

#define TFOS__COLUMN_BUFFERS 3 ///< most buffers that a supported column has

enum tfos__column_kind {
    TFOS__COLUMN_FIXED,      ///< validity, values of `width` bits
    TFOS__COLUMN_VARIABLE,   ///< validity, offsets of `width` bits, bytes
    TFOS__COLUMN_LIST,       ///< validity, offsets of `width` bits; one child
    TFOS__COLUMN_FIXED_LIST, ///< validity; one child with `width` values a row
    TFOS__COLUMN_STRUCT      ///< validity; any number of children
};

struct tfos__column {
    enum tfos__column_kind kind;
    int64_t width;
};

/// False for a format that the feed does not carry.
bool tfos__column_parse(const char *format, struct tfos__column *column);

static inline int tfos__column_buffer_count(const struct tfos__column *column)
{
    switch (column->kind) {
    case TFOS__COLUMN_VARIABLE:
        return 3;
    case TFOS__COLUMN_FIXED:
    case TFOS__COLUMN_LIST:
        return 2;
    default:
        return 1;
    }
}

/// Bytes of `length` items of `width` bits; false when that is beyond 64 bits or `length` is
/// negative.
static inline bool tfos__column_size(int64_t length, int64_t width, uint64_t *size)
{
    uint64_t bits = 0;

    if (length < 0 || __builtin_mul_overflow((uint64_t)length, (uint64_t)width, &bits) ||
        bits > UINT64_MAX - 7)
        return false;
    *size = (bits + 7) / 8;
    return true;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// The columns of a batch of Spark's rows: what their types are, and the Arrow buffers that grow as
/// values come.
#ifndef TFOS_SPARK_UNSAFE_COLUMN_H
#define TFOS_SPARK_UNSAFE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "base/aligned.h"

#define TFOS__UNSAFE_WORD 8    ///< bytes of a slot, and of a word of null bits
#define TFOS__UNSAFE_CHUNK 64  ///< values that are read at a time: a word of null bits
#define TFOS__UNSAFE_DEPTH 64  ///< deepest nesting of columns
#define TFOS__UNSAFE_BUFFERS 3 ///< most buffers that a column has

enum tfos__unsafe_kind {
    TFOS__UNSAFE_NULL,        ///< no values; no buffers
    TFOS__UNSAFE_BOOLEAN,     ///< a byte in Spark, a bit in Arrow
    TFOS__UNSAFE_FIXED,       ///< `width` bytes, the same on both sides
    TFOS__UNSAFE_DECIMAL,     ///< a long in Spark, 16 bytes in Arrow
    TFOS__UNSAFE_BIG_DECIMAL, ///< up to 16 bytes in big-endian order in Spark's variable part
    TFOS__UNSAFE_INTERVAL, ///< 16 bytes in Spark's variable part, which ends with microseconds; in
                           ///< Arrow it ends with nanoseconds
    TFOS__UNSAFE_BYTES,    ///< strings and binary: offsets, bytes
    TFOS__UNSAFE_LIST,     ///< offsets; one child
    TFOS__UNSAFE_MAP,      ///< offsets; one child, a struct of key and value
    TFOS__UNSAFE_STRUCT    ///< children
};

struct tfos__unsafe_column {
    enum tfos__unsafe_kind kind;
    bool is_wide;          ///< offsets of 64 bits
    bool has_validity;     ///< from the first null on
    uint32_t width;        ///< bytes of a value in Arrow
    uint32_t element_size; ///< bytes of a value in one of Spark's arrays
    uint32_t null_bit;     ///< of the field in its row's null bits, and the word that it is in
    size_t null_word;
    size_t slot;       ///< of the field in its row
    size_t fixed_size; ///< a struct's null bits and slots
    int64_t length;
    int64_t null_count;
    size_t byte_count;           ///< of `bytes`
    struct tfos__aligned bits;   ///< validity
    struct tfos__aligned values; ///< or offsets
    struct tfos__aligned bytes;
    int64_t child_count;
    struct tfos__unsafe_column *children; ///< owned
    uint8_t *null_row; ///< a struct's row of nulls, which a null is read as; owned
    char *path;        ///< names from the top, for messages; owned
    const void *shown[TFOS__UNSAFE_BUFFERS];
    struct ArrowSchema schema; ///< with its strings and list of children owned
    struct ArrowArray array;   ///< with its list of children owned
};

/// Makes `column`, zeroed, for the Arrow field `schema`, and those below it. On failure the caller
/// clears it too. UNSUPPORTED names the column and its type.
enum tfos_status tfos__unsafe_column_init(struct tfos__unsafe_column *column,
                                          const struct ArrowSchema *schema, struct tfos_error *err);

void tfos__unsafe_column_clear(struct tfos__unsafe_column *column);

/// Makes room in `buffer`, which holds `used` bytes of `column`, for `size` more.
enum tfos_status tfos__unsafe_buffer_reserve(const struct tfos__unsafe_column *column,
                                             struct tfos__aligned *buffer, size_t used, size_t size,
                                             struct tfos_error *err);

/// The same for `count` more of the column's values of `width` bytes.
enum tfos_status tfos__unsafe_column_reserve(struct tfos__unsafe_column *column, int64_t count,
                                             struct tfos_error *err);

/// Writes the low `count` bits of `word` (64 at most) behind the first `at` bits.
void tfos__unsafe_buffer_put_bits(struct tfos__aligned *buffer, int64_t at, uint64_t word,
                                  unsigned count);

/// Notes which of the `count` values (64 at most) from `at` on are null.
enum tfos_status tfos__unsafe_column_mark(struct tfos__unsafe_column *column, int64_t at,
                                          uint64_t nulls, unsigned count, struct tfos_error *err);

/// Forgets all but the first `length` values, of children too, however far each of them had come.
void tfos__unsafe_column_truncate(struct tfos__unsafe_column *column, int64_t length);

/// Brings `column->array`, and those below it, up to date.
void tfos__unsafe_column_show(struct tfos__unsafe_column *column);

/// The low `count` bits, 64 at most.
static inline uint64_t tfos__unsafe_mask(unsigned count)
{
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/// Bytes of the words that hold `count` bits.
static inline size_t tfos__unsafe_bits_size(int64_t count)
{
    return (size_t)(count + 63) / 64 * sizeof(uint64_t);
}

/// Where the next value of `width` bytes goes.
static inline uint8_t *tfos__unsafe_column_end(const struct tfos__unsafe_column *column)
{
    return column->values.data + (size_t)column->length * column->width;
}

static inline int64_t tfos__unsafe_column_offset(const struct tfos__unsafe_column *column,
                                                 int64_t index)
{
    const void *offsets = column->values.data;

    return column->is_wide ? ((const int64_t *)offsets)[index] : ((const int32_t *)offsets)[index];
}

#endif

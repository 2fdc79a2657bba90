// SPDX-License-Identifier: Apache-2.0
/// Elements: what single values of an Arrow format become in a tensor, and what takes a null's
/// place.
#ifndef TFOS_DATASET_ELEMENT_H
#define TFOS_DATASET_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

enum tfos__element_kind {
    TFOS__ELEMENT_PLAIN,     ///< of `width` bytes, as the tensor wants them
    TFOS__ELEMENT_BITS,      ///< one bit each, becomes a byte
    TFOS__ELEMENT_DECIMAL,   ///< an integer of `width` bytes, becomes a double
    TFOS__ELEMENT_INTEGER,   ///< of 8 bytes, becomes the nearest double
    TFOS__ELEMENT_TEXT,      ///< bytes behind offsets of 4 bytes
    TFOS__ELEMENT_WIDE_TEXT, ///< bytes behind offsets of 8 bytes
    TFOS__ELEMENT_BLOCK,     ///< `width` bytes, becomes a string
    TFOS__ELEMENT_MONTHS,    ///< of an interval of 16 bytes; the whole, where parts do not matter
    TFOS__ELEMENT_DAYS,      ///< of such an interval
    TFOS__ELEMENT_MICROSECONDS, ///< of such an interval, which ends with nanoseconds
    TFOS__ELEMENT_NOTHING       ///< nulls only: the type of a column that has had no value yet
};

struct tfos__element {
    enum tfos__element_kind kind;
    enum tfos_dtype dtype;
    int64_t width;
    int scale; ///< of a decimal: digits behind the point
};

/// False for a format that has no tensor form, lists and structs among them.
bool tfos__element_parse(const char *format, struct tfos__element *element);

/// Bytes of a number in a tensor; 0 for a string.
size_t tfos__dtype_size(enum tfos_dtype dtype);

/// "int64"; NULL for no dtype.
const char *tfos__dtype_name(enum tfos_dtype dtype);

/// 0 when there is none of that name.
enum tfos_dtype tfos__dtype_find(const char *name);

/// Writes `count` values from number `first` on, which are no strings, to `out`.
void tfos__element_copy(const struct tfos__element *element, const void *values, int64_t first,
                        int64_t count, uint8_t *out);

/// A value to fill places with. All zero is a zero, or an empty string.
struct tfos__filler {
    unsigned char bytes[8]; ///< a number, in the dtype's size
    char *text;             ///< a string, owned
    size_t text_size;
};

/// Reads what a column's user wants in place of nulls. INVALID, naming the column, when `text` is
/// no value of the dtype.
enum tfos_status tfos__filler_init(struct tfos__filler *filler, enum tfos_dtype dtype,
                                   const char *text, const char *column, struct tfos_error *err);

void tfos__filler_clear(struct tfos__filler *filler);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Elements: what single values of an Arrow type become in a tensor, and what takes a null's place.
#ifndef TFOS_DATASET_ELEMENT_H
#define TFOS_DATASET_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "arrow/arrow.h"

/// What of a value becomes an element.
enum tfos__element_part {
    TFOS__PART_WHOLE,
    TFOS__PART_DOUBLE, ///< the nearest double to an integer of 64 bits
    TFOS__PART_MONTHS, ///< of an interval
    TFOS__PART_DAYS,
    TFOS__PART_MICROSECONDS, ///< of an interval, which ends with nanoseconds
    TFOS__PART_NOTHING       ///< nulls only: the type of a column that has had no value yet
};

struct tfos__element {
    struct tfos__arrow_type type;
    enum tfos__element_part part;
    enum tfos_dtype dtype;
};

/// The whole of a value. False for a type that has no tensor form, lists and structs among them.
bool tfos__element_init(struct tfos__element *element, const struct tfos__arrow_type *type);

/// Whether the buffer of values, or of bytes, is as the tensor wants it.
bool tfos__element_is_plain(const struct tfos__element *element);

/// Bytes of a number in a tensor; 0 for a string.
size_t tfos__dtype_size(enum tfos_dtype dtype);

/// "int64"; NULL for no dtype.
const char *tfos__dtype_name(enum tfos_dtype dtype);

/// 0 when there is none of that name.
enum tfos_dtype tfos__dtype_find(const char *name);

/// Writes `count` values of an array from number `first` on, which are no strings, to `out`.
void tfos__element_copy(const struct tfos__element *element, const struct ArrowArray *array,
                        int64_t first, int64_t count, uint8_t *out);

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

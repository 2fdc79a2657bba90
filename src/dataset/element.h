// SPDX-License-Identifier: Apache-2.0
/// Elements of tensors: which dtype the values of an Arrow type have, their conversion, and the
/// values that replace nulls.
#ifndef TFOS_DATASET_ELEMENT_H
#define TFOS_DATASET_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "arrow/arrow.h"

/// Which part of a value becomes the element.
enum tfos__dataset_element_part {
    TFOS__PART_WHOLE,
    TFOS__PART_DOUBLE, ///< the double nearest to an integer of 64 bits
    TFOS__PART_MONTHS, ///< of an interval
    TFOS__PART_DAYS,
    TFOS__PART_MICROSECONDS, ///< of an interval, from its nanoseconds
    TFOS__PART_NOTHING       ///< all values are null: the column has no type yet
};

struct tfos__dataset_element {
    struct tfos__arrow_type type;
    enum tfos__dataset_element_part part;
    enum tfos_dtype dtype;
};

/// The element that is the whole value. False: the type, which may be a list or a struct, has no
/// tensor form.
bool tfos__dataset_element_init(struct tfos__dataset_element *element,
                                const struct tfos__arrow_type *type);

/// Whether the tensor can use the array's buffer without a conversion.
bool tfos__dataset_element_is_plain(const struct tfos__dataset_element *element);

/// Writes `count` values of an array from number `first` on, which are not strings, to `out`.
void tfos__dataset_element_copy(const struct tfos__dataset_element *element,
                                const struct ArrowArray *array, int64_t first, int64_t count,
                                uint8_t *out);

/// Bytes of a number in a tensor; 0 for a string.
size_t tfos__dataset_type_size(enum tfos_dtype dtype);

/// "int64".
const char *tfos__dataset_type_name(enum tfos_dtype dtype);

/// The dtype of that name; 0: none.
enum tfos_dtype tfos__dataset_type_find(const char *name);

/// The value of elements that no row has. All zero: 0, or an empty string.
struct tfos__dataset_fill_value {
    unsigned char bytes[8]; ///< a number, in the dtype's size
    char *text;             ///< a string, owned
    size_t text_size;
};

/// Parses the option null_value of a column. INVALID, with the column's name: `text` is not a value
/// of the dtype.
enum tfos_status tfos__dataset_fill_value_init(struct tfos__dataset_fill_value *value,
                                               enum tfos_dtype dtype, const char *text,
                                               const char *column, struct tfos_error *err);

void tfos__dataset_fill_value_clear(struct tfos__dataset_fill_value *value);

#endif

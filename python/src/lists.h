// SPDX-License-Identifier: Apache-2.0
/// Lists of numbers whose length their type leaves open, as one array: possible where all of them
/// have one length, at each level of lists. `index` counts from the array's own offset. The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_LISTS_H
#define TFOS_PYTHON_LISTS_H

#include "row_schema.h"

/// Whether `count` values are such lists, with none of them, nor a list within, None. `*type` is
/// then ARRAY with the shape that each of them has.
bool tfos__py_lists_find_shape(const struct tfos__py_column *layout,
                            const struct ArrowArray *array, int64_t index, int64_t count,
                            struct tfos__py_value_type *type);

/// Copies the elements of values of one shape to `to`. Returns the first value that has a None
/// inside, or -1.
int64_t tfos__py_lists_copy(const struct tfos__py_column *layout, const struct ArrowArray *array,
                         int64_t index, int64_t count, void *to);

/// The type that one list of the packer's numbers has as an array: of one dimension, any length.
struct tfos__py_value_type tfos__py_lists_array_type(const struct tfos__py_value_type *type);

#endif

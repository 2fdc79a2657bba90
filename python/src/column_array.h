// SPDX-License-Identifier: Apache-2.0
/// Values of a column as numpy arrays. Numbers have no None; `index` counts from the array's
/// offset. The caller holds the GIL.
#ifndef TFOS_PYTHON_COLUMN_ARRAY_H
#define TFOS_PYTHON_COLUMN_ARRAY_H

#include "row_schema.h"

/// Whether `count` values go into one array: numbers, or lists of them that have one length at each
/// level, with no list None. `*type` is then that of each value.
bool tfos__py_column_array_find_shape(const struct tfos__py_column *column,
                                      const struct ArrowArray *array, int64_t index, int64_t count,
                                      struct tfos__py_value_type *type);

/// Copies `count` values for which find_shape() found a type to `to`, in the form of its dtype.
/// Returns the first that is None or has one inside, or -1.
int64_t tfos__py_column_array_copy(const struct tfos__py_column *column,
                                   const struct ArrowArray *array, int64_t index, int64_t count,
                                   void *to);

/// One value as an element of an array of objects, in which lists of numbers are arrays themselves.
/// NULL without an exception: it has a None among numbers.
PyObject *tfos__py_column_array_object(const struct tfos__py_column *column,
                                       const struct ArrowArray *array, int64_t index);

#endif

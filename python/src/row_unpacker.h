// SPDX-License-Identifier: Apache-2.0
/// Makes the rows of a batch again as Python objects, straight from the batch's memory. The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_UNPACKER_H
#define TFOS_PYTHON_UNPACKER_H

#include "row_schema.h"

/// Appends the rows from `start` to `start + count` of a checked array to the list `rows`. -1 with
/// an exception.
int tfos__py_unpack_rows(const struct tfos__py_row_schema *layout, const struct ArrowArray *array,
                      int64_t start, int64_t count, PyObject *rows);

/// One value of a column, a new reference. `column` is the column's array and `index` counts in it
/// from its offset.
PyObject *tfos__py_unpack_value(const struct tfos__py_column *layout,
                             const struct ArrowArray *column, int64_t index);

#endif

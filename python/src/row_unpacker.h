// SPDX-License-Identifier: Apache-2.0
/// Makes the rows of a batch again as Python objects, straight from the batch's memory. The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_ROW_UNPACKER_H
#define TFOS_PYTHON_ROW_UNPACKER_H

#include "row_schema.h"

/// Appends the rows from `start` to `start + count` of a checked array to the list `list`. -1 with
/// an exception.
int tfos__py_unpack_rows(const struct tfos__py_row_schema *rows, const struct ArrowArray *array,
                         int64_t start, int64_t count, PyObject *list);

/// The rows of a batch, a new list. NULL with an exception.
PyObject *tfos__py_unpack_batch(const struct ArrowSchema *schema, const struct ArrowArray *array);

/// One value of a column, a new reference; NULL with an exception. `array` is the column's and
/// `index` counts in it from its offset.
PyObject *tfos__py_unpack_value(const struct tfos__py_column *column,
                                const struct ArrowArray *array, int64_t index);

/// What a list holds, counted from the offset of the array's child. false with an exception: it
/// leaves the child.
bool tfos__py_find_list(const struct tfos__py_column *column, const struct ArrowArray *array,
                        int64_t index, struct tfos__arrow_span *span);

#endif

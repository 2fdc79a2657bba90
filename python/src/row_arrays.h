// SPDX-License-Identifier: Apache-2.0
/// Concatenates rows of one or several batches to numpy arrays, one a column, that own their
/// memory. The caller holds the GIL.
#ifndef TFOS_PYTHON_ROW_ARRAYS_H
#define TFOS_PYTHON_ROW_ARRAYS_H

#include "column_selection.h"

struct tfos__py_row_arrays;

/// Will take `count` rows at most, and of them the columns that `names` selects; NULL: all. NULL
/// with an exception.
struct tfos__py_row_arrays *tfos__py_row_arrays_open(int64_t count, PyObject *names);

/// Copies the rows from `start` to `start + count` of a checked array. -1 with an exception:
/// InvalidError, naming partition, row and column, when they do not go into one array with those
/// before.
int tfos__py_row_arrays_append(struct tfos__py_row_arrays *arrays,
                               const struct tfos__py_row_schema *rows,
                               const struct ArrowArray *array, int64_t start, int64_t count,
                               const struct tfos__py_row_origin *origin);

/// The arrays: a tuple, a dict or one array, as the rows are, or a tuple of the selected ones. At
/// least one row must have been appended. A new reference; NULL with an exception.
PyObject *tfos__py_row_arrays_finish(struct tfos__py_row_arrays *arrays);

/// NULL is accepted.
void tfos__py_row_arrays_close(struct tfos__py_row_arrays *arrays);

#endif

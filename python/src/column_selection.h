// SPDX-License-Identifier: Apache-2.0
/// Columns of rows that a reader chooses: by name where rows have names, else the first ones by
/// their place. `names` is a tuple of str. The caller holds the GIL.
#ifndef TFOS_PYTHON_COLUMN_SELECTION_H
#define TFOS_PYTHON_COLUMN_SELECTION_H

#include "row_schema.h"

/// Where rows come from, for messages.
struct tfos__py_row_origin {
    int64_t partition;
    int64_t first_row; ///< number in its partition of the array's row 0
};

/// The place of each column among those of the rows, whose rows have columns. -1 with an
/// exception: InvalidError that names the column that is not there, as everywhere here.
int tfos__py_selection_find(PyObject *names, const struct tfos__py_row_schema *rows,
                            const struct tfos__py_row_origin *origin, int64_t row, int64_t *places);

/// Appends the values of rows `start` to `start + count` to a tuple of lists, one a column. Rows
/// that are one value are looked into: each may be another object.
int tfos__py_selection_unpack(PyObject *names, const struct tfos__py_row_schema *rows,
                              const struct ArrowArray *array, int64_t start, int64_t count,
                              const struct tfos__py_row_origin *origin, PyObject *lists);

#endif

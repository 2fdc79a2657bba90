// SPDX-License-Identifier: Apache-2.0
/// Plain columns: those that say no more than Arrow's formats, as Spark and pyarrow write them
/// (docs/protocol.md, "Feed: plain Arrow batches"). In all functions `index` counts from the
/// array's own offset. The caller holds the GIL.
#ifndef TFOS_PYTHON_PLAIN_H
#define TFOS_PYTHON_PLAIN_H

#include "row_schema.h"

/// Reads a schema into a zeroed column, also when it fails to be ended by clear(). -1 with an
/// exception: UnsupportedError that names the field.
int tfos__py_plain_init(struct tfos__py_column *column, const struct ArrowSchema *schema);

/// Whether the array has the children and lengths that the column says.
bool tfos__py_plain_check(const struct tfos__py_column *column, const struct ArrowArray *array);

void tfos__py_plain_clear(struct tfos__py_column *column);

/// The values of one list or map, which are values `*first` to `*first + *count` of the array's
/// child.
void tfos__py_plain_find(const struct tfos__py_column *column, const struct ArrowArray *array,
                      int64_t index, int64_t *first, int64_t *count);

/// One value as collect() gives it; a new reference, NULL with an exception.
PyObject *tfos__py_plain_value(const struct tfos__py_column *column,
                            const struct ArrowArray *array, int64_t index);

/// Whether `count` values go into one array: numbers, or lists of them that have one length at each
/// level, with no list None. `*type` is then that of each value, as of a column of such numbers or
/// arrays.
bool tfos__py_plain_find_shape(const struct tfos__py_column *column,
                            const struct ArrowArray *array, int64_t index, int64_t count,
                            struct tfos__py_value_type *type);

/// Copies `count` values for which find_shape() found a type to `to`, in the form of its dtype.
/// Returns the first that is None or has one inside, or -1.
int64_t tfos__py_plain_copy(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t index, int64_t count, void *to);

/// One value of a column that is no number as an element of an array of objects: lists are arrays
/// themselves. NULL without an exception: it has a None among numbers.
PyObject *tfos__py_plain_object(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index);

#endif

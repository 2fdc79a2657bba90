// SPDX-License-Identifier: Apache-2.0
/// Arrays as a batch: the columns of many rows at once, shown where they lie. The other way of
/// row_arrays.h. The caller holds the GIL.
#ifndef TFOS_PYTHON_ARRAY_BATCH_H
#define TFOS_PYTHON_ARRAY_BATCH_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>

struct tfos__py_array_batch;

/// Takes one numpy array, a tuple of them, or a dict of them by name: a row is then one value, a
/// tuple or a dict. All have one length, that of their first dimension. NULL with an exception that
/// names the column. `wants_columns`: as of a packer, for arrays of objects.
struct tfos__py_array_batch *tfos__py_array_batch_open(PyObject *arrays, bool wants_columns);

int64_t tfos__py_array_batch_row_count(const struct tfos__py_array_batch *batch);

/// The batch, once; both live as long as this one, and have nothing to be released. -1 with an
/// exception.
int tfos__py_array_batch_show(struct tfos__py_array_batch *batch, const struct ArrowSchema **schema,
                              const struct ArrowArray **array);

/// NULL is accepted.
void tfos__py_array_batch_close(struct tfos__py_array_batch *batch);

#endif

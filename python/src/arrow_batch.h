// SPDX-License-Identifier: Apache-2.0
/// ArrowBatch: a batch for other libraries. The caller holds the GIL.
#ifndef TFOS_PYTHON_ARROW_BATCH_H
#define TFOS_PYTHON_ARROW_BATCH_H

#include <Python.h>

#include <tfos/arrow.h>

/// An object whose __arrow_c_array__() gives the batch, which it takes over, also on failure. NULL
/// with an exception.
PyObject *tfos__py_arrow_batch_new(struct ArrowSchema *schema, struct ArrowArray *array);

#endif

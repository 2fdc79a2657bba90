// SPDX-License-Identifier: Apache-2.0
/// Batches for other libraries, by Arrow's PyCapsule interface
/// (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). The caller holds
/// the GIL.
#ifndef TFOS_PYTHON_ARROW_BATCH_H
#define TFOS_PYTHON_ARROW_BATCH_H

#include <Python.h>
#include <tfos/arrow.h>

/// An object whose __arrow_c_array__() gives the batch, which it takes over, also on failure. NULL
/// with an exception.
PyObject *tfos__py_arrow_batch_new(struct ArrowSchema *schema, struct ArrowArray *array);

/// A capsule of the schema, which it takes over, also on failure. NULL with an exception.
PyObject *tfos__py_arrow_schema_wrap(struct ArrowSchema *schema);

#endif

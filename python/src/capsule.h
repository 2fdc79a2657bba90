// SPDX-License-Identifier: Apache-2.0
/// Batches of other libraries and for them, by Arrow's PyCapsule interface
/// (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). The caller holds
/// the GIL.
#ifndef TFOS_PYTHON_CAPSULE_H
#define TFOS_PYTHON_CAPSULE_H

#include <Python.h>

#include <tfos/arrow.h>

struct tfos__py_capsule {
    const struct ArrowSchema *schema; ///< both live until clear(), and stay their producer's
    const struct ArrowArray *array;
    PyObject *pair; ///< of the capsules; owned
};

/// Asks anything with __arrow_c_array__ for its batch: a struct of columns of which no row is null.
/// -1 with an exception.
int tfos__py_capsule_init(struct tfos__py_capsule *capsule, PyObject *batch);

/// Asks anything with __arrow_c_schema__ for its schema, a struct of columns: `*view`, which lives
/// as long as the capsule, which the caller owns. A capsule is taken as it is. NULL with an
/// exception.
PyObject *tfos__py_capsule_schema(PyObject *schema, const struct ArrowSchema **view);

void tfos__py_capsule_clear(struct tfos__py_capsule *capsule);

/// Capsules of a schema and an array, which they take over, also on failure. NULL with an
/// exception.
PyObject *tfos__py_capsule_wrap_schema(struct ArrowSchema *schema);
PyObject *tfos__py_capsule_wrap_array(struct ArrowArray *array);

#endif

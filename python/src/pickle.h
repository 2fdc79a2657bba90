// SPDX-License-Identifier: Apache-2.0
/// Python's pickle, for values that have no column form. The caller holds the GIL.
#ifndef TFOS_PYTHON_PICKLE_H
#define TFOS_PYTHON_PICKLE_H

#include <Python.h>

/// The value as a new bytes object (protocol 5). NULL with an exception.
PyObject *tfos__pickle_dump(PyObject *value);

/// The value again. Only for bytes that dump() made in a process of this cluster. NULL with an
/// exception.
PyObject *tfos__pickle_load(const void *data, Py_ssize_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Python's pickle, for values that have no column form. The caller holds the GIL.
#ifndef TFOS_PYTHON_PICKLE_H
#define TFOS_PYTHON_PICKLE_H

#include <Python.h>

/// The value as a new bytes object (protocol 5). What pickle cannot find by its name, as a class of
/// the driver's __main__, goes along by value, as with Spark. NULL with an exception.
PyObject *tfos__py_pickle_dump(PyObject *value);

/// The value again. Only for bytes that dump() made in a process of this cluster. NULL with an
/// exception.
PyObject *tfos__py_pickle_load(const void *data, Py_ssize_t size);

/// The same for an object that nobody changes, a class: the one loaded last is remembered.
PyObject *tfos__py_pickle_load_shared(const void *data, Py_ssize_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The library's statuses as Python exceptions. The caller holds the GIL.
#ifndef TFOS_PYTHON_ERROR_H
#define TFOS_PYTHON_ERROR_H

#include <Python.h>

#include <tfos/status.h>

/// Adds Error and its subclasses to the module; -1 with an exception.
int tfos__py_errors_add(PyObject *module);

/// Raises the class of a negative status with the library's message; returns NULL.
PyObject *tfos__py_raise(enum tfos_status status, const struct tfos_error *err);

/// 0, or -1 with that exception for a negative status.
int tfos__py_check(enum tfos_status status, const struct tfos_error *err);

/// The same as raise() with the exception in `*cause`, which is cleared, as its cause, or that
/// alone where it is no Exception (KeyboardInterrupt). NULL, or NULL in it: there is none.
PyObject *tfos__py_raise_from(enum tfos_status status, const struct tfos_error *err,
                              PyObject **cause);

/// The same with a message of our own, in the form of PyUnicode_FromFormat().
PyObject *tfos__py_raise_format(enum tfos_status status, const char *format, ...);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Rows of classes whose fields have names: namedtuples and dataclasses, which are made again of
/// their class and their fields' values. Those with a state or a way of pickling of their own are
/// not known here. The caller holds the GIL.
#ifndef TFOS_PYTHON_NAMED_ROW_H
#define TFOS_PYTHON_NAMED_ROW_H

#include <Python.h>
#include <stdbool.h>

/// The names of a row's fields, a tuple of str and a new reference, or NULL without an exception:
/// its class is of no such kind.
PyObject *tfos__py_named_row_fields(PyObject *row);

/// Whether a row of a class with `names` has its fields and nothing else. -1 with an exception.
int tfos__py_named_row_is_whole(PyObject *row, PyObject *names);

/// The value of a field, a new reference. NULL with an exception.
PyObject *tfos__py_named_row_value(PyObject *row, PyObject *names, Py_ssize_t index);

/// A row of a class, of values that it takes over (NULL with an exception is passed on): a tuple.
/// NULL with an exception.
PyObject *tfos__py_named_row_make(PyObject *class, PyObject *names, PyObject *values);

#endif

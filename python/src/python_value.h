// SPDX-License-Identifier: Apache-2.0
/// What a Python value is. Classes are compared exactly: a value of a subclass of int or str has a
/// type only by its base. The caller holds the GIL.
#ifndef TFOS_PYTHON_PYTHON_VALUE_H
#define TFOS_PYTHON_PYTHON_VALUE_H

#include <Python.h>

#include "value_type.h"

/// The kind of a value that is neither a sequence nor numpy's, BOOL to BYTES; OPAQUE when it has no
/// column form of its own. -1 with an exception.
int tfos__py_value_kind_of(PyObject *value, enum tfos__py_value_kind *kind);

/// The type of any value; kind OPAQUE: it has none. -1 with an exception.
int tfos__py_value_classify(PyObject *value, struct tfos__py_value_type *type);

/// UTF-8 of a str, a new reference; NULL without an exception for one that has none (lone
/// surrogates), else with.
PyObject *tfos__py_value_encode(PyObject *text);

/// The value as None, list, tuple, int, float, bool, str or bytes, if it is one of these or numpy's
/// or of a subclass of int, float, str or bytes; anything else as it is. `*leaf`, which may be
/// NULL, becomes the type of the leaves of numpy's numbers, and else is left alone. A new
/// reference; NULL with an exception.
PyObject *tfos__py_value_plain(PyObject *value, struct tfos__py_value_type *leaf);

/// What leaves of nested lists are whose elements numpy calls so; kind OPAQUE: none.
struct tfos__py_value_type tfos__py_value_leaf(const struct tfos__py_value_type *elements);

static inline bool tfos__py_value_is_list(PyObject *value)
{
    return Py_TYPE(value) == &PyList_Type || Py_TYPE(value) == &PyTuple_Type;
}

typedef PyObject *tfos__py_item_getter(PyObject *list, Py_ssize_t index); // borrowed reference

static inline tfos__py_item_getter *tfos__py_value_getter(PyObject *list)
{
    return Py_TYPE(list) == &PyList_Type ? PyList_GetItem : PyTuple_GetItem;
}

/// Whether it is of one of the classes that tfos__py_value_plain() makes.
static inline bool tfos__py_value_is_plain(PyObject *value)
{
    PyTypeObject *class = Py_TYPE(value);

    return class == &PyFloat_Type || class == &PyLong_Type || tfos__py_value_is_list(value) ||
           value == Py_None || class == &PyBool_Type || class == &PyUnicode_Type ||
           class == &PyBytes_Type;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Objects are made as pickle makes those of classes that say nothing of it: without their __init__,
// and with the state put into the new object.
#include "named_row.h"

/// An attribute; NULL: there is none.
static PyObject *find(PyObject *object, const char *name)
{
    PyObject *found = PyObject_GetAttrString(object, name);

    if (found == NULL && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return found;
}

/// Whether a class has a method of its own, and not object's, or one that its decorator made.
static bool has_own(PyObject *class, const char *name)
{
    PyObject *method = find(class, name);
    PyObject *other = method != NULL ? find((PyObject *)&PyBaseObject_Type, name) : NULL;
    PyObject *module = method != NULL && method != other ? find(method, "__module__") : NULL;
    bool is_own = method != NULL && method != other;

    if (module != NULL && PyUnicode_Check(module) &&
        PyUnicode_CompareWithASCIIString(module, "dataclasses") == 0)
        is_own = false;
    Py_XDECREF(module);
    Py_XDECREF(other);
    Py_XDECREF(method);
    return is_own;
}

static bool is_pickled_otherwise(PyObject *class)
{
    return has_own(class, "__reduce__") || has_own(class, "__reduce_ex__") ||
           has_own(class, "__getstate__") || has_own(class, "__setstate__");
}

/// A namedtuple's names.
static PyObject *find_tuple_fields(PyObject *class)
{
    PyObject *names = find(class, "_fields");

    if (names != NULL && (!PyTuple_Check(names) || is_pickled_otherwise(class)))
        Py_CLEAR(names);
    return names;
}

/// A dataclass's names.
static PyObject *find_class_fields(PyObject *class)
{
    PyObject *module = NULL, *fields = NULL, *names = NULL;
    PyObject *marker = find(class, "__dataclass_fields__");

    if (marker == NULL)
        return NULL;
    Py_DECREF(marker);
    if (has_own(class, "__new__") || has_own(class, "__getnewargs__") ||
        has_own(class, "__getnewargs_ex__") || is_pickled_otherwise(class))
        return NULL;
    module = PyImport_ImportModule("dataclasses");
    fields = module != NULL ? PyObject_CallMethod(module, "fields", "O", class) : NULL;
    names = fields != NULL ? PyTuple_New(PyTuple_Size(fields)) : NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(fields); i++) {
        PyObject *name = PyObject_GetAttrString(PyTuple_GetItem(fields, i), "name");
        if (name == NULL || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    Py_XDECREF(fields);
    Py_XDECREF(module);
    return names;
}

PyObject *tfos__py_named_row_fields(PyObject *row)
{
    PyObject *class = (PyObject *)Py_TYPE(row);

    if (PyErr_Occurred())
        return NULL;
    return PyTuple_Check(row) ? find_tuple_fields(class) : find_class_fields(class);
}

int tfos__py_named_row_is_whole(PyObject *row, PyObject *names)
{
    PyObject *state = find(row, "__dict__");
    Py_ssize_t count = PyTuple_Size(names), own_count = PyTuple_Check(row) ? 0 : count;
    int is_whole = !PyErr_Occurred();

    if (state != NULL && (!PyDict_Check(state) || PyDict_Size(state) != own_count))
        is_whole = 0;
    if (PyTuple_Check(row) && PyTuple_Size(row) != count)
        is_whole = 0;
    for (Py_ssize_t i = 0; is_whole && i < own_count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        PyObject *value = NULL;
        if (state != NULL)
            is_whole = PyDict_GetItemWithError(state, name) != NULL;
        else if ((value = PyObject_GenericGetAttr(row, name)) == NULL)
            is_whole = 0;
        Py_XDECREF(value);
    }
    Py_XDECREF(state);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return is_whole;
}

PyObject *tfos__py_named_row_value(PyObject *row, PyObject *names, Py_ssize_t index)
{
    PyObject *value = NULL;

    if (!PyTuple_Check(row))
        return PyObject_GenericGetAttr(row, PyTuple_GetItem(names, index));
    value = PyTuple_GetItem(row, index);
    Py_XINCREF(value);
    return value;
}

static PyObject *make_tuple(PyObject *class, PyObject *values)
{
    static PyObject *make; // guarded by the GIL

    if (make == NULL)
        make = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__");
    return make != NULL ? PyObject_CallFunctionObjArgs(make, class, values, NULL) : NULL;
}

static PyObject *make_object(PyObject *class, PyObject *names, PyObject *values)
{
    PyObject *row = PyObject_CallMethod(class, "__new__", "O", class);

    for (Py_ssize_t i = 0; row != NULL && i < PyTuple_Size(names); i++) {
        if (PyObject_GenericSetAttr(row, PyTuple_GetItem(names, i), PyTuple_GetItem(values, i)) < 0)
            Py_CLEAR(row);
    }
    return row;
}

PyObject *tfos__py_named_row_make(PyObject *class, PyObject *names, PyObject *values)
{
    PyObject *row = NULL;

    if (values == NULL)
        return NULL;
    if (!PyType_Check(class))
        PyErr_Format(PyExc_TypeError, "feed: rows have a class that is none: %R", class);
    else if (PyType_IsSubtype((PyTypeObject *)class, &PyTuple_Type))
        row = make_tuple(class, values);
    else
        row = make_object(class, names, values);
    Py_DECREF(values);
    return row;
}

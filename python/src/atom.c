// SPDX-License-Identifier: Apache-2.0
// Classes are compared exactly: a value of a subclass of int or str has a form only by its base.
#include "atom.h"

PyObject *tfos__py_atom_encode(PyObject *text)
{
    PyObject *bytes = PyUnicode_AsUTF8String(text);

    if (bytes == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    return bytes;
}

int tfos__py_atom_classify(PyObject *value, enum tfos__py_value_kind *kind)
{
    *kind = TFOS__VALUE_OPAQUE;
    if (value == Py_True || value == Py_False) {
        *kind = TFOS__VALUE_BOOL;
    } else if (Py_TYPE(value) == &PyFloat_Type) {
        *kind = TFOS__VALUE_FLOAT;
    } else if (Py_TYPE(value) == &PyLong_Type) {
        int overflow = 0;
        PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0)
            *kind = TFOS__VALUE_INT;
    } else if (Py_TYPE(value) == &PyUnicode_Type) {
        PyObject *bytes = tfos__py_atom_encode(value);
        if (bytes == NULL)
            return PyErr_Occurred() ? -1 : 0;
        Py_DECREF(bytes);
        *kind = TFOS__VALUE_TEXT;
    } else if (Py_TYPE(value) == &PyBytes_Type) {
        *kind = TFOS__VALUE_BYTES;
    }
    return 0;
}

static bool is_of_subclass(PyObject *value, PyTypeObject *class)
{
    return Py_TYPE(value) != class && PyType_IsSubtype(Py_TYPE(value), class);
}

PyObject *tfos__py_atom_base(PyObject *value)
{
    int overflow = 0;

    if (is_of_subclass(value, &PyUnicode_Type))
        return PyUnicode_FromObject(value);
    if (is_of_subclass(value, &PyBytes_Type))
        return PyBytes_FromStringAndSize(PyBytes_AsString(value), PyBytes_Size(value));
    if (is_of_subclass(value, &PyFloat_Type))
        return PyFloat_FromDouble(PyFloat_AsDouble(value));
    if (is_of_subclass(value, &PyLong_Type) && Py_TYPE(value) != &PyBool_Type) {
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0)
            return PyLong_FromLongLong(number);
    }
    Py_INCREF(value);
    return value;
}

// SPDX-License-Identifier: Apache-2.0
// Classes are compared exactly: a subclass of int or str is an object like any other.
#include "atom.h"

PyObject *tfos__atom_encode(PyObject *text)
{
    PyObject *bytes = PyUnicode_AsUTF8String(text);

    if (bytes == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    return bytes;
}

int tfos__atom_classify(PyObject *value, enum tfos__value_kind *kind)
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
        PyObject *bytes = tfos__atom_encode(value);
        if (bytes == NULL)
            return PyErr_Occurred() ? -1 : 0;
        Py_DECREF(bytes);
        *kind = TFOS__VALUE_TEXT;
    } else if (Py_TYPE(value) == &PyBytes_Type) {
        *kind = TFOS__VALUE_BYTES;
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// JSON by Python's module, since the extension sees only the library's public interface.
#include "document.h"
#include "classes.h"

#include <tfos/memory.h>

/// Calls a function of the module json; takes over the reference to `argument`, NULL being what a
/// failed maker gave.
static PyObject *call(const char *function, PyObject *argument)
{
    PyObject *module = argument != NULL ? PyImport_ImportModule("json") : NULL;
    PyObject *result = NULL;

    if (module != NULL)
        result = PyObject_CallMethod(module, function, "O", argument);
    Py_XDECREF(module);
    Py_XDECREF(argument);
    return result;
}

PyObject *tfos__document_parse(char *json)
{
    PyObject *message = call("loads", tfos__class_text(json));

    if (message != NULL && !PyDict_Check(message)) {
        PyErr_Format(PyExc_ValueError, "a message is no JSON object but %R", message);
        Py_CLEAR(message);
    }
    return message;
}

PyObject *tfos__document_write(PyObject *object)
{
    PyObject *text = NULL, *bytes = NULL;

    Py_INCREF(object);
    text = call("dumps", object);
    if (text != NULL)
        bytes = PyUnicode_AsUTF8String(text);
    Py_XDECREF(text);
    return bytes;
}

PyObject *tfos__document_get(PyObject *message, const char *name)
{
    PyObject *value = PyDict_GetItemString(message, name);

    return value != NULL ? value : Py_None;
}

bool tfos__document_is(PyObject *message, const char *name, const char *text)
{
    PyObject *value = tfos__document_get(message, name);

    return PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, text) == 0;
}

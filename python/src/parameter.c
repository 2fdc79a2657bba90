// SPDX-License-Identifier: Apache-2.0
// Arguments by name. Invariant: what is written to an output that points into an object stays valid
// as long as the list of kept objects, or the caller's arguments, live.
#include "parameter.h"

#include <string.h>

#include "capsule.h"

static int wrong_type(const char *function, const char *name, const char *expected, PyObject *value)
{
    PyErr_Format(PyExc_TypeError, "%s(): %s: expected %s, not %R", function, name, expected,
                 (PyObject *)Py_TYPE(value));
    return -1;
}

static int read_text(const char *function, const struct tfos__py_parameter *parameter,
                     PyObject *value, PyObject *kept)
{
    bool is_optional = parameter->kind == TFOS__OPTIONAL_TEXT;
    const char *text = NULL;
    PyObject *bytes = NULL;
    int result = -1;

    if (value == Py_None && is_optional) {
        *(const char **)parameter->out = NULL;
        return 0;
    }
    if (!PyUnicode_Check(value))
        return wrong_type(function, parameter->name, is_optional ? "a str or None" : "a str",
                          value);
    bytes = parameter->kind == TFOS__PATH ? PyUnicode_EncodeFSDefault(value)
                                          : PyUnicode_AsUTF8String(value);
    if (!bytes)
        return -1;
    text = PyBytes_AsString(bytes);
    if (strlen(text) != (size_t)PyBytes_Size(bytes)) {
        PyErr_Format(PyExc_ValueError, "%s(): %s: expected text without a null character", function,
                     parameter->name);
    } else {
        *(const char **)parameter->out = text;
        result = PyList_Append(kept, bytes);
    }
    Py_DECREF(bytes);
    return result;
}

static int read_int(const char *function, const struct tfos__py_parameter *parameter,
                    PyObject *value)
{
    PyObject *index = PyBool_Check(value) ? NULL : PyNumber_Index(value);
    int overflow = 0;
    int64_t number = 0;

    if (!index) {
        PyErr_Clear();
        return wrong_type(function, parameter->name, "an int", value);
    }
    number = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0 || number < parameter->min || number > parameter->max) {
        PyErr_Format(PyExc_ValueError, "%s(): %s: expected an int from %lld to %lld, not %S",
                     function, parameter->name, (long long)parameter->min,
                     (long long)parameter->max, value);
        return -1;
    }
    *(int64_t *)parameter->out = number;
    return 0;
}

static int read_schema(const struct tfos__py_parameter *parameter, PyObject *value, PyObject *kept)
{
    PyObject *capsule = tfos__py_capsule_schema(value, parameter->out);
    int result = capsule ? PyList_Append(kept, capsule) : -1;

    Py_XDECREF(capsule);
    return result;
}

static int read_value(const char *function, const struct tfos__py_parameter *parameter,
                      PyObject *value, PyObject *kept)
{
    switch (parameter->kind) {
    case TFOS__TEXT:
    case TFOS__OPTIONAL_TEXT:
    case TFOS__PATH:
        return read_text(function, parameter, value, kept);
    case TFOS__INT:
        return read_int(function, parameter, value);
    case TFOS__BOOL:
        if (!PyBool_Check(value))
            return wrong_type(function, parameter->name, "a bool", value);
        *(bool *)parameter->out = value == Py_True;
        return 0;
    case TFOS__BYTES:
        if (!PyBytes_Check(value))
            return wrong_type(function, parameter->name, "bytes", value);
        *(struct tfos_view *)parameter->out =
            (struct tfos_view){PyBytes_AsString(value), (size_t)PyBytes_Size(value)};
        return 0;
    case TFOS__SCHEMA:
        return read_schema(parameter, value, kept);
    default:
        *(PyObject **)parameter->out = value;
        return 0;
    }
}

/// Refuses keywords that are none of the parameters.
static int check_keywords(const char *function, const struct tfos__py_parameter *parameters,
                          PyObject *kwargs)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;

    while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
        Py_ssize_t i = 0;
        while (parameters[i].name && PyUnicode_CompareWithASCIIString(key, parameters[i].name) != 0)
            i++;
        if (!parameters[i].name) {
            PyErr_Format(PyExc_TypeError, "%s() has no argument named %R", function, key);
            return -1;
        }
    }
    return 0;
}

static int read_all(const char *function, const struct tfos__py_parameter *parameters,
                    PyObject *args, PyObject *kwargs, PyObject *kept)
{
    Py_ssize_t given = PyTuple_Size(args), count = 0;

    while (parameters[count].name)
        count++;
    if (given > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments at most, not %zd", function, count,
                     given);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *named = NULL, *value = i < given ? PyTuple_GetItem(args, i) : NULL;
        if (kwargs)
            named = PyDict_GetItemString(kwargs, parameters[i].name);
        if (named && value) {
            PyErr_Format(PyExc_TypeError, "%s(): %s was given twice", function, parameters[i].name);
            return -1;
        }
        value = value ? value : named;
        if (!value && parameters[i].is_required) {
            PyErr_Format(PyExc_TypeError, "%s(): %s is missing", function, parameters[i].name);
            return -1;
        }
        if (value && read_value(function, &parameters[i], value, kept) < 0)
            return -1;
    }
    return check_keywords(function, parameters, kwargs);
}

int tfos__py_parameters_read(const char *function, const struct tfos__py_parameter *parameters,
                             PyObject *args, PyObject *kwargs, PyObject **kept)
{
    PyObject *list = PyList_New(0);

    if (!list)
        return -1;
    if (read_all(function, parameters, args, kwargs, list) < 0) {
        Py_DECREF(list);
        return -1;
    }
    *kept = list;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// One exception class for each negative status, made from the library's own list: a status that is
// added there without a class here does not compile.
#include "error.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/// Users know the classes from there; the extension module has them too.
#define MODULE "tensorflowonspark.errors."

/// Class and, beside Error, the built-in exceptions that it is too.
#define CLASS_OK NULL, NULL, NULL
#define CLASS_END NULL, NULL, NULL
#define CLASS_AGAIN NULL, NULL, NULL
#define CLASS_INVALID MODULE "InvalidError", &PyExc_ValueError, NULL
#define CLASS_NO_MEMORY MODULE "NoMemoryError", &PyExc_MemoryError, NULL
#define CLASS_IO MODULE "IoError", &PyExc_OSError, NULL
#define CLASS_NOT_FOUND MODULE "NotFoundError", &PyExc_LookupError, &PyExc_FileNotFoundError
#define CLASS_CORRUPT MODULE "CorruptError", NULL, NULL
#define CLASS_DENIED MODULE "DeniedError", &PyExc_PermissionError, NULL
#define CLASS_TIMEOUT MODULE "TimedOutError", &PyExc_TimeoutError, NULL
#define CLASS_CLOSED MODULE "ClosedError", &PyExc_ConnectionError, NULL
#define CLASS_BUSY MODULE "BusyError", NULL, NULL
#define CLASS_UNSUPPORTED MODULE "UnsupportedError", NULL, NULL

static const struct {
    enum tfos_status status;
    const char *status_name, *text;
    const char *class_name;
    PyObject **builtin, **other_builtin;
} errors[] = {
#define X(name, value, text) {TFOS_##name, #name, text, CLASS_##name},
    TFOS_STATUS_MAP(X)
#undef X
};

#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

static PyObject *base; // Error; set when the module is made, kept until the process ends
static PyObject *classes[ERROR_COUNT]; // as base; NULL for those that are no failure

/// A class with `status` as an attribute, added to the module under its short name; NULL with an
/// exception.
static PyObject *add_class(PyObject *module, const char *name, const char *doc, PyObject *bases,
                           const char *status)
{
    PyObject *attributes = Py_BuildValue("{s:s,s:i}", "status", status, "os_errno", 0);
    PyObject *class = NULL;

    if (!attributes)
        return NULL;
    class = PyErr_NewExceptionWithDoc(name, doc, bases, attributes);
    Py_DECREF(attributes);
    if (!class)
        return NULL;
    Py_INCREF(class);
    if (PyModule_AddObject(module, name + strlen(MODULE), class) < 0) {
        Py_DECREF(class);
        Py_DECREF(class);
        return NULL;
    }
    return class;
}

int tfos__py_errors_add(PyObject *module)
{
    base = add_class(module, MODULE "Error", "A failed call; str() is the library's message.",
                     PyExc_RuntimeError, "UNKNOWN");
    if (!base)
        return -1;
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        PyObject *bases = NULL;
        if (!errors[i].class_name)
            continue;
        if (!errors[i].builtin)
            bases = PyTuple_Pack(1, base);
        else if (!errors[i].other_builtin)
            bases = PyTuple_Pack(2, base, *errors[i].builtin);
        else
            bases = PyTuple_Pack(3, base, *errors[i].builtin, *errors[i].other_builtin);
        if (!bases)
            return -1;
        classes[i] =
            add_class(module, errors[i].class_name, errors[i].text, bases, errors[i].status_name);
        Py_DECREF(bases);
        if (!classes[i])
            return -1;
    }
    return 0;
}

static PyObject *class_of(enum tfos_status status)
{
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (errors[i].status == status && classes[i])
            return classes[i];
    }
    return base;
}

/// Takes over the reference to `message`.
static PyObject *raise_text(enum tfos_status status, int os_errno, PyObject *message)
{
    PyObject *class = class_of(status);
    PyObject *error = NULL, *number = NULL;

    if (!message)
        return NULL;
    error = PyObject_CallFunctionObjArgs(class, message, NULL);
    Py_DECREF(message);
    if (!error)
        return NULL;
    number = PyLong_FromLong(os_errno);
    if (number && PyObject_SetAttrString(error, "os_errno", number) == 0)
        PyErr_SetObject(class, error);
    Py_XDECREF(number);
    Py_DECREF(error);
    return NULL;
}

PyObject *tfos__py_raise(enum tfos_status status, const struct tfos_error *err)
{
    const char *message = err->message[0] != '\0' ? err->message : tfos_status_text(status);

    return raise_text(status, err->os_errno,
                      PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace"));
}

int tfos__py_check(enum tfos_status status, const struct tfos_error *err)
{
    if (status < 0)
        tfos__py_raise(status, err);
    return status < 0 ? -1 : 0;
}

PyObject *tfos__py_raise_format(enum tfos_status status, const char *format, ...)
{
    PyObject *message = NULL;
    va_list arguments;

    va_start(arguments, format);
    message = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    return raise_text(status, 0, message);
}

PyObject *tfos__py_raise_from(enum tfos_status status, const struct tfos_error *err,
                              PyObject **cause)
{
    PyObject *found = cause ? *cause : NULL, *type = NULL, *value = NULL, *trace = NULL;

    if (!found)
        return tfos__py_raise(status, err);
    *cause = NULL;
    if (!PyObject_IsInstance(found, PyExc_Exception)) {
        PyErr_SetObject((PyObject *)Py_TYPE(found), found);
        Py_DECREF(found);
        return NULL;
    }
    tfos__py_raise(status, err);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyException_SetCause(value, found); // which takes it over
    PyErr_Restore(type, value, trace);
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// The module gc, since the limited API of Python 3.9 has no functions for it.
#include "collector.h"

#include <Python.h>

static PyObject *module; // guarded by the GIL

/// Calls a function of gc without arguments; NULL, and no exception, when that fails: then all
/// stays as it is.
static PyObject *call(const char *name)
{
    PyObject *result = NULL;

    if (module == NULL)
        module = PyImport_ImportModule("gc");
    if (module != NULL)
        result = PyObject_CallMethod(module, name, NULL);
    if (result == NULL)
        PyErr_Clear();
    return result;
}

bool tfos__py_collector_pause(void)
{
    PyObject *enabled = call("isenabled");
    bool was_enabled = enabled == Py_True;

    Py_XDECREF(enabled);
    if (was_enabled)
        Py_XDECREF(call("disable"));
    return was_enabled;
}

void tfos__py_collector_resume(void)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;

    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(call("enable"));
    PyErr_Restore(type, value, trace);
}

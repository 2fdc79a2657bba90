// SPDX-License-Identifier: Apache-2.0
// The two functions of Python's pickle module, looked up once.
#include "pickle.h"

#define READ_ONLY 0x100 // PyBUF_READ, which the limited API shows only from Python 3.11 on

static PyObject *dumps, *loads, *protocol; // guarded by the GIL; complete once protocol is set

static int load_module(void)
{
    PyObject *module = NULL;

    if (protocol != NULL)
        return 0;
    module = PyImport_ImportModule("pickle");
    if (module == NULL)
        return -1;
    Py_XDECREF(dumps);
    dumps = PyObject_GetAttrString(module, "dumps");
    Py_XDECREF(loads);
    loads = PyObject_GetAttrString(module, "loads");
    Py_DECREF(module);
    if (dumps != NULL && loads != NULL)
        protocol = PyLong_FromLong(5);
    return protocol != NULL ? 0 : -1;
}

PyObject *tfos__pickle_dump(PyObject *value)
{
    PyObject *bytes = NULL;

    if (load_module() < 0)
        return NULL;
    bytes = PyObject_CallFunctionObjArgs(dumps, value, protocol, NULL);
    if (bytes != NULL && !PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "pickle.dumps gave no bytes");
        Py_DECREF(bytes);
        return NULL;
    }
    return bytes;
}

PyObject *tfos__pickle_load(const void *data, Py_ssize_t size)
{
    PyObject *view = NULL, *value = NULL;

    if (load_module() < 0)
        return NULL;
    view = PyMemoryView_FromMemory((char *)data, size, READ_ONLY);
    if (view == NULL)
        return NULL;
    value = PyObject_CallFunctionObjArgs(loads, view, NULL);
    Py_DECREF(view);
    return value;
}

// SPDX-License-Identifier: Apache-2.0
// The functions of Python's pickle module, looked up once, and of Spark's cloudpickle: classes that
// came by Spark are the same objects again where that has seen them.
#include "pickle.h"

#include <string.h>

#define READ_ONLY 0x100 // PyBUF_READ, which the limited API shows only from Python 3.11 on

static PyObject *dumps, *loads, *protocol; // guarded by the GIL; complete once protocol is set
static PyObject *cloud_dumps;              // guarded by the GIL
static PyObject *last_bytes, *last_object; // what load_shared() gave last; guarded by the GIL

static int load_module(void)
{
    PyObject *module = NULL;

    if (protocol)
        return 0;
    module = PyImport_ImportModule("pickle");
    if (!module)
        return -1;
    Py_XDECREF(dumps);
    dumps = PyObject_GetAttrString(module, "dumps");
    Py_XDECREF(loads);
    loads = PyObject_GetAttrString(module, "loads");
    Py_DECREF(module);
    if (dumps && loads)
        protocol = PyLong_FromLong(5);
    return protocol ? 0 : -1;
}

/// cloudpickle's dumps, borrowed; NULL without an exception where there is none.
static PyObject *find_cloud_dumps(void)
{
    static const char *const names[] = {"pyspark.cloudpickle", "cloudpickle"};

    for (size_t i = 0; !cloud_dumps && i < sizeof(names) / sizeof(names[0]); i++) {
        PyObject *module = PyImport_ImportModule(names[i]);
        if (module)
            cloud_dumps = PyObject_GetAttrString(module, "dumps");
        Py_XDECREF(module);
        PyErr_Clear();
    }
    return cloud_dumps;
}

/// Pickles by value what pickle has refused; its exception stays where nothing else can be done.
static PyObject *dump_by_value(PyObject *value)
{
    PyObject *type = NULL, *error = NULL, *trace = NULL, *bytes = NULL;

    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return NULL;
    PyErr_Fetch(&type, &error, &trace);
    if (find_cloud_dumps())
        bytes = PyObject_CallFunctionObjArgs(cloud_dumps, value, protocol, NULL);
    if (bytes) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return bytes;
    }
    PyErr_Restore(type, error, trace); // drops cloudpickle's, which says it in more words
    return NULL;
}

PyObject *tfos__py_pickle_dump(PyObject *value)
{
    PyObject *bytes = NULL;

    if (load_module() < 0)
        return NULL;
    bytes = PyObject_CallFunctionObjArgs(dumps, value, protocol, NULL);
    if (!bytes)
        bytes = dump_by_value(value);
    if (bytes && !PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "pickle.dumps gave no bytes");
        Py_DECREF(bytes);
        return NULL;
    }
    return bytes;
}

PyObject *tfos__py_pickle_load(const void *data, Py_ssize_t size)
{
    PyObject *view = NULL, *value = NULL;

    if (load_module() < 0)
        return NULL;
    view = PyMemoryView_FromMemory((char *)data, size, READ_ONLY);
    if (!view)
        return NULL;
    value = PyObject_CallFunctionObjArgs(loads, view, NULL);
    Py_DECREF(view);
    return value;
}

PyObject *tfos__py_pickle_load_shared(const void *data, Py_ssize_t size)
{
    PyObject *bytes = NULL, *object = NULL;

    if (!last_bytes || PyBytes_Size(last_bytes) != size ||
        memcmp(PyBytes_AsString(last_bytes), data, (size_t)size) != 0) {
        bytes = PyBytes_FromStringAndSize(data, size);
        object = bytes ? tfos__py_pickle_load(data, size) : NULL;
        if (!object) {
            Py_XDECREF(bytes);
            return NULL;
        }
        Py_XDECREF(last_bytes);
        Py_XDECREF(last_object);
        last_bytes = bytes;
        last_object = object;
    }
    Py_INCREF(last_object);
    return last_object;
}

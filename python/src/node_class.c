// SPDX-License-Identifier: Apache-2.0
// The class Node: tfos_node_launch_*, one thread at a time.
#include "classes.h"
#include "handle.h"
#include "parameter.h"

#include <tfos/node.h>

static void close_launch(struct tfos__py_handle *handle, void *launch)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_node_launch_close(launch);
    Py_END_ALLOW_THREADS
}

static const struct tfos__py_handle_kind kind = {
    .name = "node", .state = "started", .is_exclusive = true, .close = close_launch};

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(class, &kind);
}

static int launch(struct tfos__py_handle *self, const char *executable, const char *config,
                  PyObject *payload)
{
    struct tfos_error err = {0};
    struct tfos_node_launch *handle = NULL;
    enum tfos_status status = TFOS_OK;
    Py_ssize_t size = 0;
    char *data = NULL;

    if (tfos__py_handle_check_new(self) < 0 || PyBytes_AsStringAndSize(payload, &data, &size) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_node_launch(executable, config, data, (size_t)size, &handle, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_adopt(self, handle, status, &err);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const char *executable = NULL, *config = NULL;
    PyObject *payload = NULL, *kept = NULL;
    int result = 0;
    const struct tfos__py_parameter parameters[] = {
        {"executable", TFOS__TEXT, true, 0, 0, &executable},
        {"config", TFOS__TEXT, true, 0, 0, &config},
        {"payload", TFOS__BYTES, true, 0, 0, &payload},
    };

    if (tfos__py_parameters_read("Node", parameters, 3, args, kwargs, &kept) < 0)
        return -1;
    result = launch((struct tfos__py_handle *)object, executable, config, payload);
    Py_DECREF(kept);
    return result;
}

static enum tfos_status wait_message(void *handle, int64_t timeout_ms, char **json,
                                     struct tfos_error *err)
{
    return tfos_node_launch_next(handle, timeout_ms, json, err);
}

static PyObject *next_message(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return tfos__py_handle_wait_text(self, "Node.next", args, kwargs, wait_message);
}

static PyObject *detach(PyObject *object, PyObject *unused)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)unused;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_node_launch_detach(self->object, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_conclude(self, status, &err);
}

static PyMethodDef methods[] = {
    {"next", TFOS__KEYWORDS(next_message),
     "The node's next message as JSON text; None after the timeout."},
    {"detach", detach, METH_NOARGS, "Lets the node live on after close()."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Ends the node unless it was detached."},
    {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, NULL},
    {"__exit__", tfos__py_handle_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A node process that this process started. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.Node",
    .basicsize = sizeof(struct tfos__py_handle),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_node_class_add(PyObject *module)
{
    return tfos__py_class_add(module, &spec) != NULL ? 0 : -1;
}

PyObject *tfos__py_node_find_executor(PyObject *module, PyObject *args, PyObject *kwargs)
{
    int64_t pid = 0, executor = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"pid", TFOS__INT, true, 1, INT32_MAX, &pid},
    };

    (void)module;
    if (tfos__py_parameters_read("find_executor", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    Py_BEGIN_ALLOW_THREADS
    executor = tfos_process_find_executor(pid);
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(executor);
}

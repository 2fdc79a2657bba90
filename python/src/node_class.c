// SPDX-License-Identifier: Apache-2.0
// The class Node: tfos_node_launch_*, one thread at a time.
#include "classes.h"
#include "error.h"
#include "gate.h"
#include "parameter.h"
#include "slice.h"

#include <tfos/node.h>

struct node {
    PyObject_HEAD
    struct tfos__gate gate;
    struct tfos_node_launch *handle; ///< owned; NULL before init and after close
};

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    struct node *self = (struct node *)PyType_GenericNew(class, args, kwargs);

    if (self != NULL)
        tfos__gate_init(&self->gate, "node");
    return (PyObject *)self;
}

static int launch(struct node *self, const char *executable, const char *config, PyObject *payload)
{
    struct tfos_error err = {0};
    struct tfos_node_launch *handle = NULL;
    enum tfos_status status = TFOS_OK;
    Py_ssize_t size = 0;
    char *data = NULL;

    if (self->handle != NULL || self->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "node: it was started before");
        return -1;
    }
    if (PyBytes_AsStringAndSize(payload, &data, &size) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_node_launch(executable, config, data, (size_t)size, &handle, &err);
    Py_END_ALLOW_THREADS
    if (status < 0) {
        tfos__raise(status, &err);
        return -1;
    }
    self->handle = handle;
    return 0;
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const char *executable = NULL, *config = NULL;
    PyObject *payload = NULL, *kept = NULL;
    int result = 0;
    const struct tfos__parameter parameters[] = {
        {"executable", TFOS__TEXT, true, 0, 0, &executable},
        {"config", TFOS__TEXT, true, 0, 0, &config},
        {"payload", TFOS__BYTES, true, 0, 0, &payload},
    };

    if (tfos__parameters_read("Node", parameters, 3, args, kwargs, &kept) < 0)
        return -1;
    result = launch((struct node *)object, executable, config, payload);
    Py_DECREF(kept);
    return result;
}

static int take(struct node *self)
{
    if (self->handle == NULL && !self->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "node: it was not started");
        return -1;
    }
    return tfos__gate_take(&self->gate);
}

static PyObject *next_in_slices(struct node *self, int64_t timeout_ms)
{
    int64_t deadline = tfos__slice_deadline(timeout_ms);
    struct tfos_error err = {0};

    for (;;) {
        int64_t slice = tfos__slice_next(deadline);
        enum tfos_status status = TFOS_OK;
        char *json = NULL;
        Py_BEGIN_ALLOW_THREADS
        status = tfos_node_launch_next(self->handle, slice, &json, &err);
        Py_END_ALLOW_THREADS
        if (status < 0)
            return tfos__raise(status, &err);
        if (status == TFOS_OK)
            return tfos__class_text(json);
        if (tfos__gate_check(&self->gate) < 0)
            return NULL;
        if (tfos__slice_next(deadline) == 0)
            Py_RETURN_NONE;
    }
}

static PyObject *next_message(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct node *self = (struct node *)object;
    int64_t timeout_ms = 0;
    PyObject *kept = NULL, *result = NULL;
    const struct tfos__parameter parameters[] = {
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
    };

    if (tfos__parameters_read("Node.next", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (take(self) < 0)
        return NULL;
    result = next_in_slices(self, timeout_ms);
    tfos__gate_give_back(&self->gate);
    return result;
}

static PyObject *detach(PyObject *object, PyObject *unused)
{
    struct node *self = (struct node *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)unused;
    if (take(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_node_launch_detach(self->handle, &err);
    Py_END_ALLOW_THREADS
    tfos__gate_give_back(&self->gate);
    if (status < 0)
        return tfos__raise(status, &err);
    Py_RETURN_NONE;
}

static PyObject *close_handle(PyObject *object, PyObject *unused)
{
    struct node *self = (struct node *)object;

    (void)unused;
    if (tfos__gate_shut(&self->gate)) {
        struct tfos_node_launch *handle = self->handle;
        self->handle = NULL;
        Py_BEGIN_ALLOW_THREADS
        tfos_node_launch_close(handle);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyObject *enter_context(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static void dealloc(PyObject *object)
{
    struct node *self = (struct node *)object;

    Py_XDECREF(close_handle(object, NULL));
    tfos__gate_clear(&self->gate);
    tfos__class_free(object);
}

static PyMethodDef methods[] = {
    {"next", (PyCFunction)(void (*)(void))next_message, METH_VARARGS | METH_KEYWORDS,
     "The node's next message as JSON text; None after the timeout."},
    {"detach", detach, METH_NOARGS, "Lets the node live on after close()."},
    {"close", close_handle, METH_NOARGS, "Ends the node unless it was detached."},
    {"__enter__", enter_context, METH_NOARGS, NULL},
    {"__exit__", close_handle, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A node process that this process started. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.Node",
    .basicsize = sizeof(struct node),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__node_class_add(PyObject *module)
{
    return tfos__class_add(module, &spec) != NULL ? 0 : -1;
}

PyObject *tfos__node_find_executor(PyObject *module, PyObject *args, PyObject *kwargs)
{
    int64_t pid = 0, executor = 0;
    PyObject *kept = NULL;
    const struct tfos__parameter parameters[] = {
        {"pid", TFOS__INT, true, 1, INT32_MAX, &pid},
    };

    (void)module;
    if (tfos__parameters_read("find_executor", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    Py_BEGIN_ALLOW_THREADS
    executor = tfos_process_find_executor(pid);
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(executor);
}

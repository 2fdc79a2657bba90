// SPDX-License-Identifier: Apache-2.0
// Handles. Invariant: the object is closed once, when the gate is shut and nobody is inside any
// more.
#include "handle.h"
#include "classes.h"
#include "error.h"
#include "parameter.h"
#include "slice.h"

PyObject *tfos__handle_new(PyTypeObject *class, const struct tfos__handle_kind *kind)
{
    struct tfos__handle *handle = (struct tfos__handle *)PyType_GenericAlloc(class, 0);

    if (handle != NULL) {
        handle->kind = kind;
        tfos__gate_init(&handle->gate, kind->name, kind->is_exclusive);
    }
    return (PyObject *)handle;
}

int tfos__handle_check_new(const struct tfos__handle *handle)
{
    if (handle->object == NULL && !handle->gate.is_closed)
        return 0;
    tfos__raise_format(TFOS_INVALID, "%s: it was %s before", handle->kind->name,
                       handle->kind->state);
    return -1;
}

int tfos__handle_adopt(struct tfos__handle *handle, void *object, enum tfos_status status,
                       const struct tfos_error *err)
{
    if (status < 0) {
        tfos__raise(status, err);
        return -1;
    }
    handle->object = object;
    return 0;
}

int tfos__handle_enter(struct tfos__handle *handle)
{
    if (handle->object == NULL && !handle->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "%s: it was not %s", handle->kind->name,
                           handle->kind->state);
        return -1;
    }
    return tfos__gate_enter(&handle->gate);
}

void tfos__handle_leave(struct tfos__handle *handle)
{
    tfos__gate_leave(&handle->gate);
}

PyObject *tfos__handle_conclude(struct tfos__handle *handle, enum tfos_status status,
                                const struct tfos_error *err)
{
    tfos__handle_leave(handle);
    if (status < 0)
        return tfos__raise(status, err);
    Py_RETURN_NONE;
}

PyObject *tfos__handle_conclude_text(struct tfos__handle *handle, char *text,
                                     enum tfos_status status, const struct tfos_error *err)
{
    tfos__handle_leave(handle);
    return status < 0 ? tfos__raise(status, err) : tfos__class_text(text);
}

static PyObject *wait_in_slices(struct tfos__handle *handle, int64_t timeout_ms,
                                tfos__handle_waiter *wait)
{
    int64_t deadline = tfos__slice_deadline(timeout_ms);
    struct tfos_error err = {0};

    for (;;) {
        int64_t slice = tfos__slice_next(deadline);
        enum tfos_status status = TFOS_OK;
        char *text = NULL;
        Py_BEGIN_ALLOW_THREADS
        status = wait(handle->object, slice, &text, &err);
        Py_END_ALLOW_THREADS
        if (status < 0)
            return tfos__raise(status, &err);
        if (status == TFOS_OK)
            return tfos__class_text(text);
        if (tfos__gate_check(&handle->gate) < 0)
            return NULL;
        if (tfos__slice_next(deadline) == 0)
            Py_RETURN_NONE;
    }
}

PyObject *tfos__handle_wait_text(PyObject *self, const char *function, PyObject *args,
                                 PyObject *kwargs, tfos__handle_waiter *wait)
{
    struct tfos__handle *handle = (struct tfos__handle *)self;
    int64_t timeout_ms = 0;
    PyObject *kept = NULL, *result = NULL;
    const struct tfos__parameter parameters[] = {
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
    };

    if (tfos__parameters_read(function, parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (tfos__handle_enter(handle) < 0)
        return NULL;
    result = wait_in_slices(handle, timeout_ms, wait);
    tfos__handle_leave(handle);
    return result;
}

PyObject *tfos__handle_close(PyObject *self, PyObject *unused)
{
    struct tfos__handle *handle = (struct tfos__handle *)self;
    bool is_first = tfos__gate_shut(&handle->gate);

    (void)unused;
    if (is_first && handle->object != NULL && handle->kind->interrupt != NULL)
        handle->kind->interrupt(handle, handle->object);
    tfos__gate_drain(&handle->gate);
    if (is_first) {
        void *object = handle->object;
        handle->object = NULL;
        handle->kind->close(handle, object);
    }
    Py_RETURN_NONE;
}

PyObject *tfos__handle_enter_context(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

void tfos__handle_dealloc(PyObject *self)
{
    Py_XDECREF(tfos__handle_close(self, NULL));
    tfos__gate_clear(&((struct tfos__handle *)self)->gate);
    tfos__class_free(self);
}

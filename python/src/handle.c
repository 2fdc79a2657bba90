// SPDX-License-Identifier: Apache-2.0
// Handles. Invariant: the object is closed once, when the gate is shut and nobody is inside any
// more.
#include "handle.h"
#include "classes.h"
#include "error.h"
#include "parameter.h"
#include "slice.h"

PyObject *tfos__py_handle_new(PyTypeObject *class, const struct tfos__py_handle_kind *kind)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)PyType_GenericAlloc(class, 0);

    if (handle != NULL) {
        handle->kind = kind;
        tfos__py_guard_init(&handle->gate, kind->name, kind->is_exclusive);
    }
    return (PyObject *)handle;
}

int tfos__py_handle_check_new(const struct tfos__py_handle *handle)
{
    if (handle->object == NULL && !handle->gate.is_closed)
        return 0;
    tfos__py_raise_format(TFOS_INVALID, "%s: it was %s before", handle->kind->name,
                       handle->kind->state);
    return -1;
}

int tfos__py_handle_adopt(struct tfos__py_handle *handle, void *object, enum tfos_status status,
                       const struct tfos_error *err)
{
    if (status < 0) {
        tfos__py_raise(status, err);
        return -1;
    }
    handle->object = object;
    return 0;
}

int tfos__py_handle_enter(struct tfos__py_handle *handle)
{
    if (handle->object == NULL && !handle->gate.is_closed) {
        tfos__py_raise_format(TFOS_INVALID, "%s: it was not %s", handle->kind->name,
                           handle->kind->state);
        return -1;
    }
    return tfos__py_guard_enter(&handle->gate);
}

void tfos__py_handle_leave(struct tfos__py_handle *handle)
{
    tfos__py_guard_leave(&handle->gate);
}

PyObject *tfos__py_handle_conclude(struct tfos__py_handle *handle, enum tfos_status status,
                                const struct tfos_error *err)
{
    tfos__py_handle_leave(handle);
    if (status < 0)
        return tfos__py_raise(status, err);
    Py_RETURN_NONE;
}

PyObject *tfos__py_handle_conclude_text(struct tfos__py_handle *handle, char *text,
                                     enum tfos_status status, const struct tfos_error *err)
{
    tfos__py_handle_leave(handle);
    return status < 0 ? tfos__py_raise(status, err) : tfos__py_class_text(text);
}

static PyObject *wait_in_slices(struct tfos__py_handle *handle, int64_t timeout_ms,
                                tfos__py_handle_waiter *wait)
{
    int64_t deadline = tfos__py_slice_deadline(timeout_ms);
    struct tfos_error err = {0};

    for (;;) {
        int64_t slice = tfos__py_slice_next(deadline);
        enum tfos_status status = TFOS_OK;
        char *text = NULL;
        Py_BEGIN_ALLOW_THREADS
        status = wait(handle->object, slice, &text, &err);
        Py_END_ALLOW_THREADS
        if (status < 0)
            return tfos__py_raise(status, &err);
        if (status == TFOS_OK)
            return tfos__py_class_text(text);
        if (tfos__py_guard_check(&handle->gate) < 0)
            return NULL;
        if (tfos__py_slice_next(deadline) == 0)
            Py_RETURN_NONE;
    }
}

PyObject *tfos__py_handle_wait_text(PyObject *self, const char *function, PyObject *args,
                                 PyObject *kwargs, tfos__py_handle_waiter *wait)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;
    int64_t timeout_ms = 0;
    PyObject *kept = NULL, *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
    };

    if (tfos__py_parameters_read(function, parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (tfos__py_handle_enter(handle) < 0)
        return NULL;
    result = wait_in_slices(handle, timeout_ms, wait);
    tfos__py_handle_leave(handle);
    return result;
}

PyObject *tfos__py_handle_close(PyObject *self, PyObject *unused)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;
    bool is_first = tfos__py_guard_close(&handle->gate);

    (void)unused;
    if (is_first && handle->object != NULL && handle->kind->interrupt != NULL)
        handle->kind->interrupt(handle, handle->object);
    tfos__py_guard_drain(&handle->gate);
    if (is_first) {
        void *object = handle->object;
        handle->object = NULL;
        handle->kind->close(handle, object);
    }
    Py_RETURN_NONE;
}

PyObject *tfos__py_handle_enter_context(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

void tfos__py_handle_dealloc(PyObject *self)
{
    Py_XDECREF(tfos__py_handle_close(self, NULL));
    tfos__py_guard_clear(&((struct tfos__py_handle *)self)->gate);
    tfos__py_class_free(self);
}

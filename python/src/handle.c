// SPDX-License-Identifier: Apache-2.0
// Types are made of the classes' tables when the module is loaded. Invariant: a handle's object is
// closed once, after its guard was closed and the last call has left.
#include "handle.h"

#include <string.h>
#include <tfos/memory.h>
#include <time.h>

#include "error.h"

static struct tfos__py_class *const classes[] = {
    &tfos__py_rendezvous_class,      &tfos__py_node_class,           &tfos__py_feed_writer_class,
    &tfos__py_result_iterator_class, &tfos__py_arrow_batch_class,    &tfos__py_trainer_class,
    &tfos__py_feed_reader_class,     &tfos__py_dataset_class,        &tfos__py_example_reader_class,
    &tfos__py_example_writer_class,  &tfos__py_record_dataset_class, &tfos__py_file_writer_class,
    &tfos__py_file_reader_class,     &tfos__py_collective_class,     &tfos__py_gpu_class,
};

static PyMethodDef *const functions[] = {
    tfos__py_rendezvous_functions, tfos__py_node_functions,       tfos__py_schema_functions,
    tfos__py_file_name_functions,  tfos__py_conversion_functions, tfos__py_gpu_functions,
};

#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

/// The class of a new object.
static const struct tfos__py_class *class_of(PyTypeObject *type)
{
    size_t i = 0;

    while (i + 1 < CLASS_COUNT && classes[i]->type != type)
        i++;
    return classes[i];
}

void tfos__py_class_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

// ---- handles

static PyObject *new_handle(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)PyType_GenericAlloc(type, 0);

    (void)args;
    (void)kwargs;
    if (handle) {
        handle->class = class_of(type);
        tfos__py_guard_init(&handle->guard, handle->class->label, handle->class->is_exclusive);
    }
    return (PyObject *)handle;
}

PyObject *tfos__py_handle_new(const struct tfos__py_class *class)
{
    return new_handle(class->type, NULL, NULL);
}

void tfos__py_handle_dealloc(PyObject *self)
{
    Py_XDECREF(tfos__py_handle_close(self, NULL));
    tfos__py_guard_clear(&((struct tfos__py_handle *)self)->guard);
    tfos__py_class_free(self);
}

PyObject *tfos__py_handle_close(PyObject *self, PyObject *unused)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;
    bool is_first = tfos__py_guard_close(&handle->guard);

    (void)unused;
    if (is_first && handle->object && handle->class->interrupt)
        handle->class->interrupt(handle, handle->object);
    tfos__py_guard_drain(&handle->guard);
    if (is_first) {
        void *object = handle->object;
        handle->object = NULL;
        handle->class->close(handle, object);
    }
    Py_RETURN_NONE;
}

PyObject *tfos__py_handle_enter_context(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

int tfos__py_handle_check_new(const struct tfos__py_handle *handle)
{
    if (!handle->object && !handle->guard.is_closed)
        return 0;
    tfos__py_raise_format(TFOS_INVALID, "%s: it was opened before", handle->class->label);
    return -1;
}

int tfos__py_handle_enter(struct tfos__py_handle *handle)
{
    if (handle->object || handle->guard.is_closed)
        return tfos__py_guard_enter(&handle->guard);
    tfos__py_raise_format(TFOS_INVALID, "%s: it was not opened", handle->class->label);
    return -1;
}

void tfos__py_handle_leave(struct tfos__py_handle *handle)
{
    tfos__py_guard_leave(&handle->guard);
}

// ---- classes

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    (void)args;
    (void)kwargs;
    PyErr_SetString(PyExc_TypeError,
                    "a FeedReader comes from Trainer.open_feed(), a ResultIterator "
                    "from FeedWriter.results(), an ArrowBatch from result_batches()");
    return NULL;
}

static PyObject *iterate(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

/// Adds a class to the module under the last part of its name. -1 with an exception.
static int add(PyObject *module, struct tfos__py_class *class)
{
    PyType_Slot slots[9] = {{Py_tp_doc, (void *)(uintptr_t) class->doc}};
    PyType_Spec spec = {
        .name = class->name, .basicsize = class->size, .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    PyType_Slot *slot = &slots[1];
    PyObject *type = NULL;

    *slot++ = (PyType_Slot){Py_tp_new, class->init ? new_handle : refuse_new};
    *slot++ =
        (PyType_Slot){Py_tp_dealloc, class->dealloc ? class->dealloc : tfos__py_handle_dealloc};
    if (class->init)
        *slot++ = (PyType_Slot){Py_tp_init, class->init};
    if (class->methods)
        *slot++ = (PyType_Slot){Py_tp_methods, class->methods};
    if (class->properties)
        *slot++ = (PyType_Slot){Py_tp_getset, class->properties};
    if (class->next) {
        *slot++ = (PyType_Slot){Py_tp_iter, iterate};
        *slot++ = (PyType_Slot){Py_tp_iternext, class->next};
    }
    type = PyType_FromSpec(&spec);
    if (!type)
        return -1;
    class->type = (PyTypeObject *)type;
    Py_INCREF(type);
    if (PyModule_AddObject(module, strrchr(class->name, '.') + 1, type) == 0)
        return 0;
    Py_DECREF(type);
    return -1;
}

int tfos__py_classes_add(PyObject *module)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < CLASS_COUNT; i++)
        result = add(module, classes[i]);
    for (size_t i = 0; result == 0 && i < sizeof(functions) / sizeof(functions[0]); i++)
        result = PyModule_AddFunctions(module, functions[i]);
    return result;
}

// ---- calls

static bool begin(struct tfos__py_call *call, PyObject *self, bool is_new)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;

    *call = (struct tfos__py_call){.handle = handle, .watch.guard = &handle->guard};
    if (is_new ? tfos__py_handle_check_new(handle) < 0 || tfos__py_guard_enter(&handle->guard) < 0
               : tfos__py_handle_enter(handle) < 0)
        return false;
    call->object = handle->object;
    call->thread = PyEval_SaveThread();
    return true;
}

static bool read_and_begin(struct tfos__py_call *call, PyObject *self, const char *function,
                           const struct tfos__py_parameter *parameters, PyObject *args,
                           PyObject *kwargs, bool is_new)
{
    PyObject *kept = NULL;

    if (tfos__py_parameters_read(function, parameters, args, kwargs, &kept) < 0)
        return false;
    if (begin(call, self, is_new)) {
        call->kept = kept;
        return true;
    }
    Py_DECREF(kept);
    return false;
}

bool tfos__py_call_begin(struct tfos__py_call *call, PyObject *self, const char *function,
                         const struct tfos__py_parameter *parameters, PyObject *args,
                         PyObject *kwargs)
{
    return read_and_begin(call, self, function, parameters, args, kwargs, false);
}

bool tfos__py_call_begin_new(struct tfos__py_call *call, PyObject *self, const char *function,
                             const struct tfos__py_parameter *parameters, PyObject *args,
                             PyObject *kwargs)
{
    return read_and_begin(call, self, function, parameters, args, kwargs, true);
}

bool tfos__py_call_enter(struct tfos__py_call *call, PyObject *self)
{
    return begin(call, self, false);
}

bool tfos__py_call_enter_new(struct tfos__py_call *call, PyObject *self)
{
    return begin(call, self, true);
}

struct tfos_wait tfos__py_call_wait(struct tfos__py_call *call, int64_t timeout_ms)
{
    return (struct tfos_wait){timeout_ms, tfos__py_guard_is_interrupted, &call->watch};
}

void tfos__py_call_resume(struct tfos__py_call *call)
{
    if (call->thread)
        PyEval_RestoreThread(call->thread);
    call->thread = NULL;
}

int tfos__py_call_leave(struct tfos__py_call *call)
{
    tfos__py_call_resume(call);
    tfos__py_handle_leave(call->handle);
    Py_CLEAR(call->kept);
    if (!call->watch.is_interrupted && call->status < 0)
        tfos__py_raise_from(call->status, &call->err, call->cause);
    return call->watch.is_interrupted || call->status < 0 ? -1 : 0;
}

int tfos__py_call_leave_new(struct tfos__py_call *call, void *object)
{
    if (call->status >= 0)
        call->handle->object = object;
    return tfos__py_call_leave(call);
}

PyObject *tfos__py_call_end(struct tfos__py_call *call)
{
    if (tfos__py_call_leave(call) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *tfos__py_call_end_text(struct tfos__py_call *call, char *text)
{
    return tfos__py_call_leave(call) < 0 ? NULL : tfos__py_text(text);
}

PyObject *tfos__py_text(char *text)
{
    PyObject *object = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    tfos_free(text);
    return object;
}

// ---- waits

int64_t tfos__py_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t tfos__py_deadline(int64_t timeout_ms)
{
    int64_t now = tfos__py_now_ms();

    return timeout_ms < 0 || timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

int64_t tfos__py_next_slice(int64_t deadline)
{
    int64_t left = deadline == INT64_MAX ? TFOS__SLICE_MS : deadline - tfos__py_now_ms();

    if (left < 0)
        return 0;
    return left < TFOS__SLICE_MS ? left : TFOS__SLICE_MS;
}

PyObject *tfos__py_handle_wait_text(PyObject *self, const char *function, PyObject *args,
                                    PyObject *kwargs, tfos__py_text_waiter *wait)
{
    struct tfos__py_call call;
    int64_t timeout_ms = 0, deadline = 0;
    char *text = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, function, parameters, args, kwargs))
        return NULL;
    deadline = tfos__py_deadline(timeout_ms);
    do {
        call.status = wait(call.object, tfos__py_next_slice(deadline), &text, &call.err);
    } while (call.status == TFOS_AGAIN && !tfos__py_guard_is_interrupted(&call.watch) &&
             tfos__py_next_slice(deadline) > 0);
    if (call.status == TFOS_AGAIN)
        return tfos__py_call_end(&call);
    return tfos__py_call_end_text(&call, text);
}

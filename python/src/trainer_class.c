// SPDX-License-Identifier: Apache-2.0
// The class Trainer: tfos_trainer_*, thread-safe. It owns the place in its feed, so that every
// FeedReader of it reads on where the one before stopped.
#include "trainer_class.h"
#include "classes.h"
#include "error.h"
#include "parameter.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGREE_TIMEOUT_MS 600000

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    struct tfos__trainer_object *self =
        (struct tfos__trainer_object *)PyType_GenericNew(class, args, kwargs);

    if (self != NULL)
        tfos__gate_init(&self->gate, "trainer");
    return (PyObject *)self;
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    struct tfos_trainer *handle = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t fd = TFOS_TRAINER_FD;
    PyObject *kept = NULL;
    const struct tfos__parameter parameters[] = {
        {"fd", TFOS__INT, false, 0, INT32_MAX, &fd},
    };

    if (tfos__parameters_read("Trainer", parameters, 1, args, kwargs, &kept) < 0)
        return -1;
    Py_DECREF(kept);
    if (self->handle != NULL || self->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "trainer: it was opened before");
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_trainer_open((int)fd, &handle, &err);
    Py_END_ALLOW_THREADS
    if (status < 0) {
        tfos__raise(status, &err);
        return -1;
    }
    self->handle = handle;
    return 0;
}

static int enter(struct tfos__trainer_object *self)
{
    if (self->handle == NULL && !self->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "trainer: it was not opened");
        return -1;
    }
    return tfos__gate_enter(&self->gate);
}

/// None, or the exception of a call that ended with `status`.
static PyObject *conclude(enum tfos_status status, const struct tfos_error *err)
{
    if (status < 0)
        return tfos__raise(status, err);
    Py_RETURN_NONE;
}

static PyObject *get_context(PyObject *object, void *closure)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    PyObject *context = NULL;

    (void)closure;
    if (enter(self) < 0)
        return NULL;
    context = PyUnicode_FromString(tfos_trainer_context(self->handle));
    tfos__gate_leave(&self->gate);
    return context;
}

/// Reads exactly `size` bytes from the start of `fd`; 0, or errno.
static int read_whole(int fd, char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = pread(fd, data + done, size - done, (off_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : EIO;
        done += (size_t)count;
    }
    return 0;
}

static PyObject *read_payload(int fd)
{
    struct tfos_error err = {.message = "trainer: cannot read the payload that the node gave"};
    PyObject *payload = NULL;
    struct stat info;
    char *data = NULL;

    if (fd < 0)
        return PyBytes_FromStringAndSize(NULL, 0);
    if (fstat(fd, &info) != 0) {
        err.os_errno = errno;
        return tfos__raise(TFOS_IO, &err);
    }
    payload = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)info.st_size);
    if (payload == NULL)
        return NULL;
    data = PyBytes_AsString(payload);
    Py_BEGIN_ALLOW_THREADS
    err.os_errno = read_whole(fd, data, (size_t)info.st_size);
    Py_END_ALLOW_THREADS
    if (err.os_errno == 0)
        return payload;
    Py_DECREF(payload);
    return tfos__raise(TFOS_IO, &err);
}

static PyObject *get_payload(PyObject *object, PyObject *unused)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    PyObject *payload = NULL;

    (void)unused;
    if (enter(self) < 0)
        return NULL;
    payload = read_payload(tfos_trainer_payload_fd(self->handle));
    tfos__gate_leave(&self->gate);
    return payload;
}

/// Opens the queue unless it is open.
static PyObject *open_queue(struct tfos__trainer_object *self, const char *name)
{
    struct tfos_feed_reader *reader = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_trainer_open_feed(self->handle, name, &reader, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        return tfos__raise(status, &err);
    // Another thread may have come first while the GIL was released; there is one reader a process.
    if (self->cursor == NULL)
        self->cursor = tfos__cursor_open(reader, &self->gate);
    if (self->cursor == NULL)
        return NULL;
    return tfos__reader_new(self);
}

static PyObject *open_feed(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    const char *name = "input";
    PyObject *kept = NULL, *reader = NULL;
    const struct tfos__parameter parameters[] = {
        {"queue", TFOS__TEXT, false, 0, 0, &name},
    };

    if (tfos__parameters_read("Trainer.open_feed", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    if (enter(self) == 0) {
        reader = open_queue(self, name);
        tfos__gate_leave(&self->gate);
    }
    Py_DECREF(kept);
    return reader;
}

static PyObject *agree(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    const char *name = NULL, *value = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t timeout_ms = 0;
    PyObject *kept = NULL;
    char *values = NULL;
    const struct tfos__parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &name},
        {"value_json", TFOS__TEXT, true, 0, 0, &value},
        {"timeout_ms", TFOS__INT, false, 0, INT64_MAX, &timeout_ms},
    };

    if (tfos__parameters_read("Trainer.agree", parameters, 3, args, kwargs, &kept) < 0)
        return NULL;
    if (enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_trainer_agree(self->handle, name, value,
                                timeout_ms > 0 ? timeout_ms : AGREE_TIMEOUT_MS, &values, &err);
    Py_END_ALLOW_THREADS
    tfos__gate_leave(&self->gate);
    Py_DECREF(kept);
    return status < 0 ? tfos__raise(status, &err) : tfos__class_text(values);
}

typedef enum tfos_status say_text(struct tfos_trainer *handle, const char *text,
                                  struct tfos_error *err);

/// A call with one text.
static PyObject *say(PyObject *object, PyObject *args, PyObject *kwargs, const char *function,
                     const char *parameter, say_text *call)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *text = NULL;
    PyObject *kept = NULL;
    const struct tfos__parameter parameters[] = {
        {parameter, TFOS__TEXT, true, 0, 0, &text},
    };

    if (tfos__parameters_read(function, parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    if (enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = call(self->handle, text, &err);
    Py_END_ALLOW_THREADS
    tfos__gate_leave(&self->gate);
    Py_DECREF(kept);
    return conclude(status, &err);
}

static PyObject *report(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return say(self, args, kwargs, "Trainer.report", "values_json", tfos_trainer_report);
}

static PyObject *fail(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return say(self, args, kwargs, "Trainer.fail", "message", tfos_trainer_fail);
}

typedef enum tfos_status tell(struct tfos_trainer *handle, struct tfos_error *err);

static PyObject *tell_node(PyObject *object, tell *call)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = call(self->handle, &err);
    Py_END_ALLOW_THREADS
    tfos__gate_leave(&self->gate);
    return conclude(status, &err);
}

static PyObject *release_port(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tell_node(self, tfos_trainer_release_port);
}

static PyObject *terminate(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tell_node(self, tfos_trainer_terminate);
}

static PyObject *close_handle(PyObject *object, PyObject *unused)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;

    (void)unused;
    if (tfos__gate_shut(&self->gate)) {
        struct tfos_trainer *handle = self->handle;
        tfos__cursor_close(self->cursor); // gives the batch it holds back to the reader
        self->cursor = NULL;
        self->handle = NULL;
        Py_BEGIN_ALLOW_THREADS
        tfos_trainer_close(handle);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    struct tfos__trainer_object *self = (struct tfos__trainer_object *)object;

    Py_XDECREF(close_handle(object, NULL));
    tfos__gate_clear(&self->gate);
    tfos__class_free(object);
}

static PyMethodDef methods[] = {
    {"payload", get_payload, METH_NOARGS, "The pickled function and its arguments."},
    {"open_feed", (PyCFunction)(void (*)(void))open_feed, METH_VARARGS | METH_KEYWORDS,
     "The FeedReader of a queue."},
    {"agree", (PyCFunction)(void (*)(void))agree, METH_VARARGS | METH_KEYWORDS,
     "Gives a value and gets the JSON array of all members' values."},
    {"report", (PyCFunction)(void (*)(void))report, METH_VARARGS | METH_KEYWORDS,
     "Shows figures, a JSON object, beside this node."},
    {"release_port", release_port, METH_NOARGS, "Gives up the node's hold of TensorFlow's port."},
    {"terminate", terminate, METH_NOARGS, "Tells the cluster that this node wants no more rows."},
    {"fail", (PyCFunction)(void (*)(void))fail, METH_VARARGS | METH_KEYWORDS,
     "The reason to report when this process now ends with a failure."},
    {"close", close_handle, METH_NOARGS, "Ends the link and its readers."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"context", get_context, NULL, "What the node says of itself, as JSON text.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "This process's link to its node. One a process; thread-safe."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.Trainer",
    .basicsize = sizeof(struct tfos__trainer_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__trainer_class_add(PyObject *module)
{
    return tfos__class_add(module, &spec) != NULL ? 0 : -1;
}

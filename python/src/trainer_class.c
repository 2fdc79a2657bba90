// SPDX-License-Identifier: Apache-2.0
// The class Trainer: tfos_trainer_*, thread-safe. It owns the position in each queue, so that each
// FeedReader of a queue continues where the one before stopped.
#include "trainer_class.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collective_class.h"
#include "error.h"

/// Ends the datasets, which TensorFlow's threads may be waiting in.
static void interrupt_trainer(struct tfos__py_handle *handle, void *trainer)
{
    struct tfos__py_trainer *self = (struct tfos__py_trainer *)handle;

    (void)trainer;
    atomic_store(&self->is_closing, true);
    for (struct tfos__py_trainer_queue *queue = self->queues; queue; queue = queue->next)
        tfos_feed_reader_fail(tfos__py_row_iterator_reader(queue->iterator), TFOS_CLOSED,
                              "trainer: its link to the node was closed");
    for (struct tfos__py_trainer_queue *queue = self->queues; queue; queue = queue->next) {
        if (queue->dataset)
            Py_DECREF(tfos__py_handle_close((PyObject *)queue->dataset, NULL));
    }
}

static void close_trainer(struct tfos__py_handle *handle, void *trainer)
{
    struct tfos__py_trainer *self = (struct tfos__py_trainer *)handle;

    for (struct tfos__py_trainer_queue *queue = self->queues; queue; queue = queue->next) {
        tfos__py_guard_close(&queue->feed);
        tfos__py_guard_drain(&queue->feed);
        tfos__py_row_iterator_close(queue->iterator); // gives the batch it holds back to the reader
        queue->iterator = NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    tfos_trainer_close(trainer);
    Py_END_ALLOW_THREADS
}

static void dealloc(PyObject *object)
{
    struct tfos__py_trainer *self = (struct tfos__py_trainer *)object;

    Py_XDECREF(tfos__py_handle_close(object, NULL));
    while (self->queues) {
        struct tfos__py_trainer_queue *queue = self->queues;
        self->queues = queue->next;
        tfos__py_guard_clear(&queue->feed);
        PyMem_Free(queue->name);
        PyMem_Free(queue);
    }
    tfos__py_handle_dealloc(object);
}

struct tfos__py_trainer *tfos__py_trainer_of(PyObject *object, const char *function)
{
    if (PyObject_TypeCheck(object, tfos__py_trainer_class.type))
        return (struct tfos__py_trainer *)object;
    PyErr_Format(PyExc_TypeError, "%s(): trainer: expected a Trainer, not %R", function,
                 (PyObject *)Py_TYPE(object));
    return NULL;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_trainer *trainer = NULL;
    int64_t fd = TFOS_TRAINER_FD;
    const struct tfos__py_parameter parameters[] = {
        {"fd", TFOS__INT, false, 0, INT32_MAX, &fd},
        {0},
    };

    if (!tfos__py_call_begin_new(&call, self, "Trainer", parameters, args, kwargs))
        return -1;
    call.status = tfos_trainer_open((int)fd, &trainer, &call.err);
    return tfos__py_call_leave_new(&call, trainer);
}

static PyObject *get_context(PyObject *object, void *closure)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    PyObject *context = NULL;

    (void)closure;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    context = PyUnicode_FromString(tfos_trainer_context(self->object));
    tfos__py_handle_leave(self);
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
        return tfos__py_raise(TFOS_IO, &err);
    }
    payload = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)info.st_size);
    if (!payload)
        return NULL;
    data = PyBytes_AsString(payload);
    Py_BEGIN_ALLOW_THREADS
    err.os_errno = read_whole(fd, data, (size_t)info.st_size);
    Py_END_ALLOW_THREADS
    if (err.os_errno == 0)
        return payload;
    Py_DECREF(payload);
    return tfos__py_raise(TFOS_IO, &err);
}

static PyObject *get_payload(PyObject *object, PyObject *unused)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    PyObject *payload = NULL;

    (void)unused;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    payload = read_payload(tfos_trainer_payload_fd(self->object));
    tfos__py_handle_leave(self);
    return payload;
}

// ---- queues

static struct tfos__py_trainer_queue *find_queue(const struct tfos__py_trainer *self,
                                                 const char *name)
{
    struct tfos__py_trainer_queue *queue = self->queues;

    while (queue && strcmp(queue->name, name) != 0)
        queue = queue->next;
    return queue;
}

static struct tfos__py_trainer_queue *add_queue(struct tfos__py_trainer *self, const char *name,
                                                struct tfos_feed_reader *reader)
{
    struct tfos__py_trainer_queue *queue = PyMem_Calloc(1, sizeof(*queue));
    size_t size = strlen(name) + 1;

    if (queue) {
        queue->name = PyMem_Malloc(size);
        queue->iterator = tfos__py_row_iterator_open(reader, &self->handle.guard, &queue->feed);
    }
    if (!queue || !queue->name || !queue->iterator) {
        if (queue) {
            PyMem_Free(queue->name);
            tfos__py_row_iterator_close(queue->iterator);
        }
        PyMem_Free(queue);
        PyErr_NoMemory();
        return NULL;
    }
    queue->trainer = self;
    memcpy(queue->name, name, size);
    tfos__py_guard_init(&queue->feed, "feed", true);
    queue->next = self->queues;
    self->queues = queue;
    return queue;
}

static int check_processes(const struct tfos__py_handle *self)
{
    struct tfos_error err = {0};
    enum tfos_status status = self->object ? tfos_trainer_check(self->object, &err) : TFOS_OK;

    if (status < 0)
        tfos__py_raise(status, &err);
    return status < 0 ? -1 : 0;
}

int tfos__py_trainer_enter(struct tfos__py_trainer *self)
{
    // Behind the guard, a forked process would only get the error that it cannot use the trainer.
    return check_processes(&self->handle) < 0 ? -1 : tfos__py_handle_enter(&self->handle);
}

static PyObject *check(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (check_processes((struct tfos__py_handle *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

struct tfos__py_trainer_queue *tfos__py_trainer_open_queue(struct tfos__py_trainer *self,
                                                           const char *name)
{
    struct tfos__py_trainer_queue *queue = NULL;
    struct tfos_feed_reader *reader = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_trainer_open_feed(self->handle.object, name, &reader, &err);
    Py_END_ALLOW_THREADS
    if (status < 0) {
        tfos__py_raise(status, &err);
        return NULL;
    }
    // Another thread may have come first while the GIL was released; there is one reader a process
    // and queue.
    queue = find_queue(self, name);
    return queue ? queue : add_queue(self, name, reader);
}

static PyObject *open_feed(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_trainer *self = (struct tfos__py_trainer *)object;
    const char *name = "input";
    PyObject *kept = NULL, *reader = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"queue", TFOS__TEXT, false, 0, 0, &name},
        {0},
    };

    if (tfos__py_parameters_read("Trainer.open_feed", parameters, args, kwargs, &kept) < 0)
        return NULL;
    if (tfos__py_trainer_enter(self) == 0) {
        struct tfos__py_trainer_queue *queue = tfos__py_trainer_open_queue(self, name);
        if (queue)
            reader = tfos__py_feed_reader_new(queue);
        tfos__py_handle_leave(&self->handle);
    }
    Py_DECREF(kept);
    return reader;
}

// ---- calls

static PyObject *agree(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *name = NULL, *value = NULL;
    int64_t timeout_ms = 0;
    char *values = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &name},
        {"value_json", TFOS__TEXT, true, 0, 0, &value},
        {"timeout_ms", TFOS__INT, false, 0, INT64_MAX, &timeout_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Trainer.agree", parameters, args, kwargs))
        return NULL;
    struct tfos_wait wait = tfos__py_call_wait(&call, timeout_ms);
    call.status = tfos_trainer_agree(call.object, name, value, &wait, &values, &call.err);
    return tfos__py_call_end_text(&call, values);
}

static PyObject *open_collective(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos__py_collective_options options = {0};
    struct tfos_collective *collective = NULL;
    const struct tfos__py_parameter parameters[] = {
        TFOS__COLLECTIVE_PARAMETERS(options),
        {0},
    };
    PyObject *kept = NULL, *result = NULL;

    if (tfos__py_parameters_read("Trainer.open_collective", parameters, args, kwargs, &kept) < 0)
        return NULL;
    if (tfos__py_collective_read_transport(&options, "Trainer.open_collective") == 0 &&
        tfos__py_call_enter(&call, self)) {
        struct tfos_wait wait = tfos__py_call_wait(&call, 0);
        call.status = tfos_trainer_open_collective(call.object, &options.library, &wait,
                                                   &collective, &call.err);
        if (call.status == TFOS_OK && call.watch.is_interrupted)
            tfos_collective_close(collective);
        if (tfos__py_call_leave(&call) == 0)
            result = tfos__py_collective_new(collective);
    }
    Py_DECREF(kept);
    return result;
}

static PyObject *get_description(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *queue = "input";
    int64_t timeout_ms = 0;
    char *schema = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"queue", TFOS__TEXT, false, 0, 0, &queue},
        {"timeout_ms", TFOS__INT, false, 0, INT64_MAX, &timeout_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Trainer.description", parameters, args, kwargs))
        return NULL;
    struct tfos_wait wait = tfos__py_call_wait(&call, timeout_ms);
    call.status = tfos_trainer_await_description(call.object, queue, &wait, &schema, &call.err);
    if (call.status != TFOS_TIMEOUT)
        return tfos__py_call_end_text(&call, schema);
    call.status = TFOS_AGAIN;
    return tfos__py_call_end(&call);
}

typedef enum tfos_status say_text(struct tfos_trainer *handle, const char *text,
                                  struct tfos_error *err);

/// A call with one text.
static PyObject *say(PyObject *self, PyObject *args, PyObject *kwargs, const char *function,
                     const char *parameter, say_text *send)
{
    struct tfos__py_call call;
    const char *text = NULL;
    const struct tfos__py_parameter parameters[] = {
        {parameter, TFOS__TEXT, true, 0, 0, &text},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, function, parameters, args, kwargs))
        return NULL;
    call.status = send(call.object, text, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *report(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return say(self, args, kwargs, "Trainer.report", "values_json", tfos_trainer_report);
}

static PyObject *put_result(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return say(self, args, kwargs, "Trainer.put_result", "text", tfos_trainer_put_result);
}

static PyObject *fail(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return say(self, args, kwargs, "Trainer.fail", "message", tfos_trainer_fail);
}

static PyObject *release_port(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_trainer_release_port(call.object, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *terminate(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_trainer_terminate(call.object, &call.err);
    return tfos__py_call_end(&call);
}

static PyMethodDef methods[] = {
    {"payload", get_payload, METH_NOARGS, "The pickled function and its arguments."},
    {"open_feed", TFOS__KEYWORDS(open_feed), "The FeedReader of a queue."},
    {"check", check, METH_NOARGS,
     "InvalidError when a process forked from this one has tried to read a queue."},
    {"agree", TFOS__KEYWORDS(agree),
     "Gives a value and gets the JSON array of all members' values."},
    {"open_collective", TFOS__KEYWORDS(open_collective),
     "A group of all chiefs, masters and workers, in the order of executor ids."},
    {"description", TFOS__KEYWORDS(get_description),
     "What the driver said of a queue's rows, as JSON text; None after the timeout."},
    {"report", TFOS__KEYWORDS(report), "Shows figures, a JSON object, beside this node."},
    {"put_result", TFOS__KEYWORDS(put_result), "Passes a part of the function's result on."},
    {"release_port", release_port, METH_NOARGS, "Gives up the node's hold of TensorFlow's port."},
    {"terminate", terminate, METH_NOARGS,
     "Reports to the cluster that this node wants no more rows."},
    {"fail", TFOS__KEYWORDS(fail),
     "The reason to report when this process now ends with a failure."},
    TFOS__CLOSE_METHODS("Ends the link and its readers."),
    {0},
};

static PyGetSetDef properties[] = {
    {"context", get_context, NULL, "What the node says of itself, as JSON text.", NULL},
    {0},
};

struct tfos__py_class tfos__py_trainer_class = {
    .name = "tensorflowonspark._tfos.Trainer",
    .doc = "This process's link to its node. One a process; thread-safe.",
    .size = sizeof(struct tfos__py_trainer),
    .methods = methods,
    .properties = properties,
    .init = init,
    .dealloc = dealloc,
    .label = "trainer",
    .interrupt = interrupt_trainer,
    .close = close_trainer,
};

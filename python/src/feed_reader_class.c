// SPDX-License-Identifier: Apache-2.0
// The class FeedReader: the row iterator of a queue, seen from Python. It keeps its Trainer alive;
// every call enters the trainer, so that none finds the iterator closed.
#include "error.h"
#include "trainer_class.h"

struct reader {
    PyObject_HEAD
    struct tfos__py_trainer_queue *queue; ///< with a reference to its trainer
};

PyObject *tfos__py_feed_reader_new(struct tfos__py_trainer_queue *queue)
{
    struct reader *self = (struct reader *)PyType_GenericAlloc(tfos__py_feed_reader_class.type, 0);

    if (self) {
        Py_INCREF((PyObject *)queue->trainer);
        self->queue = queue;
    }
    return (PyObject *)self;
}

static int enter(struct reader *self)
{
    const struct tfos__py_row_iterator *iterator = self->queue->iterator;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    // Rows that the iterator holds are another process's, too.
    if (iterator)
        status = tfos_feed_reader_check(tfos__py_row_iterator_reader(iterator), &err);
    if (status < 0)
        tfos__py_raise(status, &err);
    return status < 0 ? -1 : tfos__py_handle_enter(&self->queue->trainer->handle);
}

static void leave(struct reader *self)
{
    tfos__py_handle_leave(&self->queue->trainer->handle);
}

typedef PyObject *next_function(struct tfos__py_row_iterator *iterator,
                                const struct tfos__py_row_iterator_request *request);

/// Makes a tuple of names of what a user gave. NULL with an exception.
static PyObject *read_names(const char *function, PyObject *columns)
{
    PyObject *names = PySequence_Tuple(columns);

    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (PyUnicode_Check(name))
            continue;
        PyErr_Format(PyExc_TypeError, "%s(): columns: expected names, not %R", function, name);
        Py_DECREF(names);
        return NULL;
    }
    return names;
}

static PyObject *next(PyObject *object, const char *function, bool needs_partition, PyObject *args,
                      PyObject *kwargs, next_function *call)
{
    struct reader *self = (struct reader *)object;
    struct tfos__py_row_iterator_request request = {.timeout_ms = -1};
    PyObject *kept = NULL, *result = NULL, *columns = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"count", TFOS__INT, true, 1, INT64_MAX / 4, &request.count},
        {"stop_at_partition", TFOS__BOOL, needs_partition, 0, 0, &request.stop_at_partition},
        {"stop_at_epoch", TFOS__BOOL, false, 0, 0, &request.stop_at_epoch},
        {"timeout_ms", TFOS__INT, false, INT64_MIN, INT64_MAX, &request.timeout_ms},
        {"columns", TFOS__ANY, false, 0, 0, &columns},
        {0},
    };

    if (tfos__py_parameters_read(function, parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (columns && columns != Py_None) {
        request.columns = read_names(function, columns);
        if (!request.columns)
            return NULL;
    }
    if (enter(self) == 0) {
        result = call(self->queue->iterator, &request);
        leave(self);
    }
    Py_XDECREF(request.columns);
    return result;
}

static PyObject *next_rows(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return next(self, "FeedReader.next_rows", true, args, kwargs, tfos__py_row_iterator_next_rows);
}

static PyObject *next_arrays(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return next(self, "FeedReader.next_arrays", false, args, kwargs,
                tfos__py_row_iterator_next_arrays);
}

/// Leaves after a call that gave -1 with an exception, or not.
static PyObject *conclude(struct reader *self, int result)
{
    leave(self);
    if (result < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *put_results(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct reader *self = (struct reader *)object;
    PyObject *kept = NULL, *results = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"results", TFOS__ANY, true, 0, 0, &results},
        {0},
    };

    if (tfos__py_parameters_read("FeedReader.put_results", parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (!PyList_Check(results)) {
        PyErr_Format(PyExc_TypeError, "FeedReader.put_results(): results: expected a list, not %R",
                     (PyObject *)Py_TYPE(results));
        return NULL;
    }
    if (enter(self) < 0)
        return NULL;
    return conclude(self, tfos__py_row_iterator_put_results(self->queue->iterator, results));
}

static PyObject *put_arrays(PyObject *object, PyObject *arrays)
{
    struct reader *self = (struct reader *)object;

    if (enter(self) < 0)
        return NULL;
    return conclude(self, tfos__py_row_iterator_put_arrays(self->queue->iterator, arrays));
}

static PyObject *get_at_end(PyObject *object, void *closure)
{
    struct reader *self = (struct reader *)object;
    int result = 0;

    (void)closure;
    if (enter(self) < 0)
        return NULL;
    result = tfos__py_row_iterator_is_at_end(self->queue->iterator);
    leave(self);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

static PyObject *terminate(PyObject *object, PyObject *unused)
{
    struct reader *self = (struct reader *)object;

    (void)unused;
    if (enter(self) < 0)
        return NULL;
    tfos__py_row_iterator_terminate(self->queue->iterator);
    return conclude(self, 0);
}

static void dealloc(PyObject *object)
{
    struct reader *self = (struct reader *)object;

    if (self->queue)
        Py_DECREF((PyObject *)self->queue->trainer);
    tfos__py_class_free(object);
}

static PyMethodDef methods[] = {
    {"next_rows", TFOS__KEYWORDS(next_rows),
     "Up to count rows as the objects that were fed, or lists of their columns."},
    {"next_arrays", TFOS__KEYWORDS(next_arrays), "The same rows as numpy arrays."},
    {"put_results", TFOS__KEYWORDS(put_results), "Results for the oldest rows that have none yet."},
    {"put_arrays", put_arrays, METH_O, "The same as numpy arrays."},
    {"terminate", terminate, METH_NOARGS, "No more rows are wanted. From any thread."},
    {0},
};

static PyGetSetDef properties[] = {
    {"at_end", get_at_end, NULL, "Whether the feed has ended and all rows were given out.", NULL},
    {0},
};

struct tfos__py_class tfos__py_feed_reader_class = {
    .name = "tensorflowonspark._tfos.FeedReader",
    .doc = "Rows and arrays from the node's feed. Thread-safe.",
    .size = sizeof(struct reader),
    .methods = methods,
    .properties = properties,
    .dealloc = dealloc,
};

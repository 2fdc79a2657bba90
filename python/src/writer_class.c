// SPDX-License-Identifier: Apache-2.0
// The class FeedWriter: a feeder, one thread at a time.
#include "writer_class.h"
#include "classes.h"
#include "error.h"
#include "parameter.h"

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    struct tfos__writer_object *self =
        (struct tfos__writer_object *)PyType_GenericNew(class, args, kwargs);

    if (self != NULL)
        tfos__gate_init(&self->gate, "feed writer");
    return (PyObject *)self;
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;
    struct tfos__feeder_options options = {.queue = "input"};
    PyObject *kept = NULL;
    const struct tfos__parameter parameters[] = {
        {"address", TFOS__TEXT, true, 0, 0, &options.address},
        {"cluster_id", TFOS__TEXT, true, 0, 0, &options.cluster_id},
        {"key", TFOS__TEXT, true, 0, 0, &options.key},
        {"feed", TFOS__INT, true, 1, INT64_MAX, &options.feed},
        {"partition", TFOS__INT, true, 0, INT64_MAX, &options.partition},
        {"attempt", TFOS__INT, true, 0, INT64_MAX, &options.attempt},
        {"results", TFOS__BOOL, false, 0, 0, &options.has_results},
        {"queue", TFOS__TEXT, false, 0, 0, &options.queue},
        {"timeout_ms", TFOS__INT, false, 0, INT64_MAX, &options.timeout_ms},
        {"lane_size", TFOS__INT, false, 0, INT64_MAX, &options.lane_size},
        {"remote", TFOS__BOOL, false, 0, 0, &options.is_remote},
    };

    if (tfos__parameters_read("FeedWriter", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    if (self->feeder != NULL || self->gate.is_closed)
        tfos__raise_format(TFOS_INVALID, "feed writer: it was opened before");
    else if (tfos__gate_take(&self->gate) == 0) {
        self->feeder = tfos__feeder_open(&options, &self->gate);
        tfos__gate_give_back(&self->gate);
    }
    Py_DECREF(kept);
    return PyErr_Occurred() ? -1 : 0;
}

static int take(struct tfos__writer_object *self)
{
    if (self->feeder == NULL && !self->gate.is_closed) {
        tfos__raise_format(TFOS_INVALID, "feed writer: it was not opened");
        return -1;
    }
    return tfos__gate_take(&self->gate);
}

static PyObject *get_node(PyObject *object, void *closure)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;
    PyObject *node = NULL;

    (void)closure;
    if (take(self) < 0)
        return NULL;
    node = tfos__feeder_node(self->feeder);
    Py_INCREF(node);
    tfos__gate_give_back(&self->gate);
    return node;
}

/// Feeds the rows and the partition's end; stops early when the reader wants no more.
static int feed_all(struct tfos__feeder *feeder, PyObject *iterator)
{
    enum tfos__feeder_result result = TFOS__FEEDER_DONE;

    while (result == TFOS__FEEDER_DONE) {
        result = tfos__feeder_fill(feeder, iterator);
        if (result == TFOS__FEEDER_END)
            return tfos__feeder_finish(feeder) == TFOS__FEEDER_FAILED ? -1 : 0;
        if (result == TFOS__FEEDER_DONE)
            result = tfos__feeder_append(feeder);
    }
    return result == TFOS__FEEDER_FAILED ? -1 : 0;
}

/// The iterator of the rows that a call is to feed; NULL with an exception. A writer feeds once.
static PyObject *begin(struct tfos__writer_object *self, PyObject *rows, bool wants_results)
{
    PyObject *iterator = NULL;

    if (tfos__feeder_has_results(self->feeder) != wants_results)
        return tfos__raise_format(
            TFOS_INVALID, "feed writer: it was opened with results=%s: use %s()",
            wants_results ? "False" : "True", wants_results ? "feed" : "results");
    if (self->is_used)
        return tfos__raise_format(TFOS_INVALID,
                                  "feed writer: it has fed its rows: open one for each attempt");
    iterator = PyObject_GetIter(rows);
    if (iterator == NULL && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "rows: expected an iterable, not %R",
                     (PyObject *)Py_TYPE(rows));
    self->is_used = iterator != NULL;
    return iterator;
}

static PyObject *feed(PyObject *object, PyObject *rows)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;
    PyObject *iterator = NULL, *count = NULL;

    if (take(self) < 0)
        return NULL;
    iterator = begin(self, rows, false);
    if (iterator != NULL &&
        (tfos__feeder_node(self->feeder) == Py_None || feed_all(self->feeder, iterator) == 0))
        count = PyLong_FromLongLong(tfos__feeder_row_count(self->feeder));
    Py_XDECREF(iterator);
    tfos__gate_give_back(&self->gate);
    return count;
}

static PyObject *results(PyObject *object, PyObject *rows)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;
    PyObject *iterator = NULL, *iterable = NULL;

    if (take(self) < 0)
        return NULL;
    iterator = begin(self, rows, true);
    if (iterator != NULL)
        iterable = tfos__results_new(self, iterator);
    Py_XDECREF(iterator);
    tfos__gate_give_back(&self->gate);
    return iterable;
}

static PyObject *close_feeder(PyObject *object, PyObject *unused)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;

    (void)unused;
    if (tfos__gate_shut(&self->gate)) {
        struct tfos__feeder *feeder = self->feeder;
        self->feeder = NULL;
        tfos__feeder_close(feeder);
    }
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    struct tfos__writer_object *self = (struct tfos__writer_object *)object;

    Py_XDECREF(close_feeder(object, NULL));
    tfos__gate_clear(&self->gate);
    tfos__class_free(object);
}

static PyMethodDef methods[] = {
    {"feed", feed, METH_O, "Feeds the rows; returns how many."},
    {"results", results, METH_O, "Feeds the rows and gives an iterator of one result a row."},
    {"close", close_feeder, METH_NOARGS, "Ends the attempt."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"node", get_node, NULL, "The node that is fed, or None when the partition is skipped.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "One attempt to feed one partition. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.FeedWriter",
    .basicsize = sizeof(struct tfos__writer_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__writer_class_add(PyObject *module)
{
    return tfos__class_add(module, &spec) != NULL ? 0 : -1;
}

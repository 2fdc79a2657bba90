// SPDX-License-Identifier: Apache-2.0
// The class FeedWriter: a feeder, one thread at a time.
#include "writer_class.h"
#include "capsule.h"
#include "classes.h"
#include "error.h"
#include "parameter.h"

static void close_feeder(struct tfos__py_handle *handle, void *feeder)
{
    (void)handle;
    tfos__py_row_feeder_close(feeder);
}

static const struct tfos__py_handle_kind kind = {
    .name = "feed writer", .state = "opened", .is_exclusive = true, .close = close_feeder};

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(class, &kind);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos__py_row_feeder_options options = {
        .queue = "input", .stage = -1, .allows_pickle = true};
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"address", TFOS__TEXT, true, 0, 0, &options.address},
        {"cluster_id", TFOS__TEXT, true, 0, 0, &options.cluster_id},
        {"key", TFOS__TEXT, true, 0, 0, &options.key},
        {"feed", TFOS__INT, true, 1, INT64_MAX, &options.feed},
        {"partition", TFOS__INT, true, 0, INT64_MAX, &options.partition},
        {"attempt", TFOS__INT, true, 0, INT64_MAX, &options.attempt},
        {"results", TFOS__BOOL, false, 0, 0, &options.has_results},
        {"queue", TFOS__TEXT, false, 0, 0, &options.queue},
        {"job", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.job},
        {"timeout_ms", TFOS__INT, false, 0, INT64_MAX, &options.timeout_ms},
        {"lane_size", TFOS__INT, false, 0, INT64_MAX, &options.lane_size},
        {"remote", TFOS__BOOL, false, 0, 0, &options.is_remote},
        {"ahead_rows", TFOS__INT, false, 0, INT64_MAX, &options.ahead_rows},
        {"stage", TFOS__INT, false, 0, UINT32_MAX, &options.stage},
        {"allow_pickle", TFOS__BOOL, false, 0, 0, &options.allows_pickle},
    };

    if (tfos__py_parameters_read("FeedWriter", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    // Opening waits for the driver, and close() in another thread ends that.
    if (tfos__py_handle_check_new(self) == 0 && tfos__py_guard_enter(&self->gate) == 0) {
        self->object = tfos__py_row_feeder_open(&options, &self->gate);
        tfos__py_guard_leave(&self->gate);
    }
    Py_DECREF(kept);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *get_node(PyObject *object, void *closure)
{
    struct tfos__py_writer *self = (struct tfos__py_writer *)object;
    PyObject *node = NULL;

    (void)closure;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    node = tfos__py_row_feeder_node(self->handle.object);
    Py_INCREF(node);
    tfos__py_handle_leave(&self->handle);
    return node;
}

/// Feeds the rows and the partition's end; stops early when the reader wants no more.
static int feed_all(struct tfos__py_row_feeder *feeder, PyObject *iterator)
{
    enum tfos__py_row_feeder_result result = TFOS__ROW_FEEDER_DONE;

    while (result == TFOS__ROW_FEEDER_DONE) {
        result = tfos__py_row_feeder_fill(feeder, iterator);
        if (result == TFOS__ROW_FEEDER_END)
            return tfos__py_row_feeder_finish(feeder) == TFOS__ROW_FEEDER_FAILED ? -1 : 0;
        if (result == TFOS__ROW_FEEDER_DONE)
            result = tfos__py_row_feeder_append(feeder);
    }
    return result == TFOS__ROW_FEEDER_FAILED ? -1 : 0;
}

static PyObject *refuse_more(void)
{
    return tfos__py_raise_format(TFOS_INVALID,
                              "feed writer: it has fed its rows: open one for each attempt");
}

/// The iterator of the rows that a call is to feed; NULL with an exception. A writer feeds once.
static PyObject *begin(struct tfos__py_writer *self, PyObject *rows, bool wants_results)
{
    PyObject *iterator = NULL;

    if (tfos__py_row_feeder_has_results(self->handle.object) != wants_results)
        return tfos__py_raise_format(
            TFOS_INVALID, "feed writer: it was opened with results=%s: use %s()",
            wants_results ? "False" : "True", wants_results ? "feed" : "results");
    if (self->is_used || self->has_batches)
        return refuse_more();
    iterator = PyObject_GetIter(rows);
    if (iterator == NULL && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "rows: expected an iterable, not %R",
                     (PyObject *)Py_TYPE(rows));
    self->is_used = iterator != NULL;
    return iterator;
}

static PyObject *feed(PyObject *object, PyObject *rows)
{
    struct tfos__py_writer *self = (struct tfos__py_writer *)object;
    PyObject *iterator = NULL, *count = NULL;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    iterator = begin(self, rows, false);
    if (iterator != NULL && (tfos__py_row_feeder_node(self->handle.object) == Py_None ||
                             feed_all(self->handle.object, iterator) == 0))
        count = PyLong_FromLongLong(tfos__py_row_feeder_row_count(self->handle.object));
    Py_XDECREF(iterator);
    tfos__py_handle_leave(&self->handle);
    return count;
}

/// Feeds a batch; -1 with an exception.
static int append_batch(struct tfos__py_writer *self, const struct tfos__py_capsule *capsule)
{
    enum tfos__py_row_feeder_result result = TFOS__ROW_FEEDER_END;

    if (tfos__py_row_feeder_has_results(self->handle.object)) {
        tfos__py_raise_format(TFOS_INVALID,
                           "feed writer: it was opened with results=True: use results()");
        return -1;
    }
    if (self->is_used) {
        refuse_more();
        return -1;
    }
    self->has_batches = true;
    if (!self->is_over && tfos__py_row_feeder_node(self->handle.object) != Py_None)
        result =
            tfos__py_row_feeder_append_batch(self->handle.object, capsule->schema, capsule->array);
    self->is_over = result == TFOS__ROW_FEEDER_END;
    return result == TFOS__ROW_FEEDER_FAILED ? -1 : 0;
}

static PyObject *append(PyObject *object, PyObject *batch)
{
    struct tfos__py_writer *self = (struct tfos__py_writer *)object;
    struct tfos__py_capsule capsule;
    PyObject *goes_on = NULL;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    if (tfos__py_capsule_init(&capsule, batch) == 0) {
        if (append_batch(self, &capsule) == 0)
            goes_on = PyBool_FromLong(!self->is_over);
        tfos__py_capsule_clear(&capsule);
    }
    tfos__py_handle_leave(&self->handle);
    return goes_on;
}

static PyObject *finish(PyObject *object, PyObject *unused)
{
    struct tfos__py_writer *self = (struct tfos__py_writer *)object;
    struct tfos__py_row_feeder *feeder = NULL;
    PyObject *count = NULL;

    (void)unused;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    feeder = self->handle.object;
    if (tfos__py_row_feeder_has_results(feeder))
        tfos__py_raise_format(TFOS_INVALID,
                           "feed writer: it was opened with results=True: use results()");
    else if (self->is_used)
        refuse_more();
    else if (self->is_over || tfos__py_row_feeder_node(feeder) == Py_None ||
             tfos__py_row_feeder_finish(feeder) != TFOS__ROW_FEEDER_FAILED)
        count = PyLong_FromLongLong(tfos__py_row_feeder_row_count(feeder));
    self->is_used = self->is_used || count != NULL;
    tfos__py_handle_leave(&self->handle);
    return count;
}

static PyObject *make_results(PyObject *object, PyObject *rows, bool has_columns)
{
    struct tfos__py_writer *self = (struct tfos__py_writer *)object;
    PyObject *iterator = NULL, *iterable = NULL;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    iterator = begin(self, rows, true);
    if (iterator != NULL)
        iterable = tfos__py_results_new(self, iterator, has_columns);
    Py_XDECREF(iterator);
    tfos__py_handle_leave(&self->handle);
    return iterable;
}

static PyObject *results(PyObject *self, PyObject *rows)
{
    return make_results(self, rows, false);
}

static PyObject *result_batches(PyObject *self, PyObject *batches)
{
    return make_results(self, batches, true);
}

static PyMethodDef methods[] = {
    {"feed", feed, METH_O, "Feeds the rows; returns how many."},
    {"append", append, METH_O, "Feeds an Arrow batch; False once the reader wants no more."},
    {"finish", finish, METH_NOARGS, "Marks the end of the batches; returns how many rows."},
    {"results", results, METH_O, "Feeds the rows and gives an iterator of one result a row."},
    {"result_batches", result_batches, METH_O,
     "Feeds the Arrow batches and gives an iterator of batches of results."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Ends the attempt."},
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
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.FeedWriter",
    .basicsize = sizeof(struct tfos__py_writer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_writer_class_add(PyObject *module)
{
    return tfos__py_class_add(module, &spec) != NULL ? 0 : -1;
}

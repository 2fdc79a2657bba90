// SPDX-License-Identifier: Apache-2.0
// The class FeedWriter: a feeder, one thread at a time; and ResultIterator, which its results() and
// result_batches() give. The iterator feeds a batch when no result waits, and takes results when no
// batch can be fed; so it holds one batch of rows and one of results, whatever the size of the
// partition. Columns stay columns both ways.
#include "capsule.h"
#include "error.h"
#include "handle.h"
#include "row_feeder.h"

struct writer {
    struct tfos__py_handle handle; ///< of a struct tfos__py_row_feeder
    bool is_used;                  ///< rows were fed, or the partition's end
    bool has_batches;              ///< batches were
    bool is_over;                  ///< the reader wants no more, or the partition is skipped
};

static void close_feeder(struct tfos__py_handle *handle, void *feeder)
{
    (void)handle;
    tfos__py_row_feeder_close(feeder);
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
        {"channel_size", TFOS__INT, false, 0, INT64_MAX, &options.channel_size},
        {"remote", TFOS__BOOL, false, 0, 0, &options.is_remote},
        {"ahead_rows", TFOS__INT, false, 0, INT64_MAX, &options.ahead_rows},
        {"stage", TFOS__INT, false, 0, UINT32_MAX, &options.stage},
        {"allow_pickle", TFOS__BOOL, false, 0, 0, &options.allows_pickle},
        {0},
    };

    if (tfos__py_parameters_read("FeedWriter", parameters, args, kwargs, &kept) < 0)
        return -1;
    // Opening waits for the driver, and close() in another thread ends that.
    if (tfos__py_handle_check_new(self) == 0 && tfos__py_guard_enter(&self->guard) == 0) {
        self->object = tfos__py_row_feeder_open(&options, &self->guard);
        tfos__py_guard_leave(&self->guard);
    }
    Py_DECREF(kept);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *get_node(PyObject *object, void *closure)
{
    struct writer *self = (struct writer *)object;
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
    enum tfos_status result = TFOS_OK;

    while (result == TFOS_OK) {
        result = tfos__py_row_feeder_fill(feeder, iterator);
        if (result == TFOS_END)
            return tfos__py_row_feeder_finish(feeder) < 0 ? -1 : 0;
        if (result == TFOS_OK)
            result = tfos__py_row_feeder_append(feeder);
    }
    return result < 0 ? -1 : 0;
}

static PyObject *refuse_more(void)
{
    return tfos__py_raise_format(TFOS_INVALID,
                                 "feed writer: it has fed its rows: open one for each attempt");
}

/// The iterator of the rows that a call is to feed; NULL with an exception. A writer feeds once.
static PyObject *begin(struct writer *self, PyObject *rows, bool wants_results)
{
    PyObject *iterator = NULL;

    if (tfos__py_row_feeder_has_results(self->handle.object) != wants_results)
        return tfos__py_raise_format(
            TFOS_INVALID, "feed writer: it was opened with results=%s: use %s()",
            wants_results ? "False" : "True", wants_results ? "feed" : "results");
    if (self->is_used || self->has_batches)
        return refuse_more();
    iterator = PyObject_GetIter(rows);
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "rows: expected an iterable, not %R",
                     (PyObject *)Py_TYPE(rows));
    self->is_used = iterator != NULL;
    return iterator;
}

static PyObject *feed(PyObject *object, PyObject *rows)
{
    struct writer *self = (struct writer *)object;
    PyObject *iterator = NULL, *count = NULL;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    iterator = begin(self, rows, false);
    if (iterator && (tfos__py_row_feeder_node(self->handle.object) == Py_None ||
                     feed_all(self->handle.object, iterator) == 0))
        count = PyLong_FromLongLong(tfos__py_row_feeder_row_count(self->handle.object));
    Py_XDECREF(iterator);
    tfos__py_handle_leave(&self->handle);
    return count;
}

/// Feeds a batch; -1 with an exception.
static int append_batch(struct writer *self, const struct tfos__py_capsule *capsule)
{
    enum tfos_status result = TFOS_END;

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
    self->is_over = result == TFOS_END;
    return result < 0 ? -1 : 0;
}

static PyObject *append(PyObject *object, PyObject *batch)
{
    struct writer *self = (struct writer *)object;
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
    struct writer *self = (struct writer *)object;
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
             tfos__py_row_feeder_finish(feeder) >= 0)
        count = PyLong_FromLongLong(tfos__py_row_feeder_row_count(feeder));
    self->is_used = self->is_used || count;
    tfos__py_handle_leave(&self->handle);
    return count;
}

// ---- results

enum phase { FILLING, APPENDING, FINISHING, DRAINING, OVER };

struct results {
    PyObject_HEAD
    struct writer *writer;       ///< owned reference
    PyObject *rows;              ///< iterator of rows or batches; owned
    bool has_columns;            ///< batches are fed and given
    struct tfos__py_capsule fed; ///< the batch that is fed, while there is one
    enum phase phase;
    PyObject *batch;  ///< list of results, or a batch of columns; owned
    Py_ssize_t index; ///< next of them
};

static PyObject *new_results(struct writer *writer, PyObject *iterator, bool has_columns)
{
    struct results *self =
        (struct results *)PyType_GenericAlloc(tfos__py_result_iterator_class.type, 0);

    if (!self)
        return NULL;
    Py_INCREF((PyObject *)writer);
    self->writer = writer;
    Py_INCREF(iterator);
    self->rows = iterator;
    self->has_columns = has_columns;
    return (PyObject *)self;
}

/// The next result of the batch, a new reference; NULL without an exception when there is none.
static PyObject *next_of_batch(struct results *self)
{
    PyObject *result = NULL;

    if (!self->batch)
        return NULL;
    if (self->has_columns) {
        result = self->batch;
        self->batch = NULL;
    } else if (self->index < PyList_Size(self->batch)) {
        result = PyList_GetItem(self->batch, self->index++);
        Py_INCREF(result);
    } else {
        Py_CLEAR(self->batch);
    }
    return result;
}

/// Takes the next batch of columns. END: there are no more.
static enum tfos_status fill_columns(struct results *self)
{
    PyObject *batch = PyIter_Next(self->rows);
    int result = 0;

    if (!batch)
        return PyErr_Occurred() ? TFOS_INVALID : TFOS_END;
    result = tfos__py_capsule_init(&self->fed, batch);
    Py_DECREF(batch);
    return result < 0 ? TFOS_INVALID : TFOS_OK;
}

static enum tfos_status append_columns(struct results *self)
{
    enum tfos_status result = tfos__py_row_feeder_append_batch(self->writer->handle.object,
                                                               self->fed.schema, self->fed.array);

    if (result != TFOS_AGAIN)
        tfos__py_capsule_clear(&self->fed);
    return result;
}

/// Feeds on by one step. AGAIN: a result must be taken.
static enum tfos_status feed_on(struct results *self)
{
    struct tfos__py_row_feeder *feeder = self->writer->handle.object;
    enum tfos_status result = TFOS_AGAIN;

    switch (self->phase) {
    case FILLING:
        result =
            self->has_columns ? fill_columns(self) : tfos__py_row_feeder_fill(feeder, self->rows);
        self->phase = result == TFOS_END ? FINISHING : APPENDING;
        return result == TFOS_END ? TFOS_OK : result;
    case APPENDING:
        result = self->has_columns ? append_columns(self) : tfos__py_row_feeder_append(feeder);
        if (result == TFOS_OK)
            self->phase = FILLING;
        break;
    case FINISHING:
        result = tfos__py_row_feeder_finish(feeder);
        if (result == TFOS_OK)
            self->phase = DRAINING;
        break;
    default:
        break;
    }
    if (result == TFOS_END) // the reader takes no more: what it still answers is all
                            // there will be
        self->phase = DRAINING;
    return result == TFOS_END ? TFOS_OK : result;
}

/// Moves on until a batch of results is there. END: there are no more.
static enum tfos_status advance(struct results *self)
{
    struct tfos__py_row_feeder *feeder = self->writer->handle.object;
    bool must_wait = false;

    for (;;) {
        enum tfos_status result = TFOS_OK;
        result =
            tfos__py_row_feeder_take_results(feeder, must_wait, self->has_columns, &self->batch);
        self->index = 0;
        if (result != TFOS_AGAIN)
            return result;
        result = feed_on(self);
        if (result < 0)
            return result;
        must_wait = result == TFOS_AGAIN || self->phase == DRAINING;
    }
}

/// A partition that is skipped: well if it is empty.
static enum tfos_status skip(struct results *self)
{
    PyObject *row = PyIter_Next(self->rows);

    if (!row)
        return PyErr_Occurred() ? TFOS_INVALID : TFOS_END;
    Py_DECREF(row);
    return tfos__py_row_feeder_take_results(self->writer->handle.object, false, self->has_columns,
                                            &self->batch);
}

static PyObject *next_of_feed(struct results *self)
{
    for (;;) {
        PyObject *result = next_of_batch(self);
        enum tfos_status state = TFOS_END;
        if (result)
            return result;
        if (tfos__py_row_feeder_node(self->writer->handle.object) == Py_None)
            state = skip(self);
        else
            state = advance(self);
        if (state != TFOS_OK) { // an iterator that ended or failed stays so
            self->phase = OVER;
            return NULL;
        }
    }
}

static PyObject *next(PyObject *object)
{
    struct results *self = (struct results *)object;
    PyObject *result = NULL;

    if (self->phase == OVER || tfos__py_handle_enter(&self->writer->handle) < 0)
        return NULL;
    result = next_of_feed(self);
    tfos__py_handle_leave(&self->writer->handle);
    return result;
}

static void dealloc(PyObject *object)
{
    struct results *self = (struct results *)object;

    tfos__py_capsule_clear(&self->fed);
    Py_XDECREF(self->batch);
    Py_XDECREF(self->rows);
    Py_XDECREF((PyObject *)self->writer);
    tfos__py_class_free(object);
}

struct tfos__py_class tfos__py_result_iterator_class = {
    .name = "tensorflowonspark._tfos.ResultIterator",
    .doc = "One result a row, in order, as they come.",
    .size = sizeof(struct results),
    .dealloc = dealloc,
    .next = next,
};

static PyObject *make_results(PyObject *object, PyObject *rows, bool has_columns)
{
    struct writer *self = (struct writer *)object;
    PyObject *iterator = NULL, *iterable = NULL;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    iterator = begin(self, rows, true);
    if (iterator)
        iterable = new_results(self, iterator, has_columns);
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
    TFOS__CLOSE_METHODS("Ends the attempt."),
    {0},
};

static PyGetSetDef properties[] = {
    {"node", get_node, NULL, "The node that is fed, or None when the partition is skipped.", NULL},
    {0},
};

struct tfos__py_class tfos__py_feed_writer_class = {
    .name = "tensorflowonspark._tfos.FeedWriter",
    .doc = "One attempt to feed one partition. One thread at a time.",
    .size = sizeof(struct writer),
    .methods = methods,
    .properties = properties,
    .init = init,
    .label = "feed writer",
    .is_exclusive = true,
    .close = close_feeder,
};

// SPDX-License-Identifier: Apache-2.0
// The iterator that FeedWriter.results() and result_batches() give. It feeds a batch when no result
// waits, and takes results when no batch can go on; so it holds one batch of rows and one of
// results, whatever the size of the partition. Columns stay columns both ways.
#include "capsule.h"
#include "classes.h"
#include "error.h"
#include "writer_class.h"

enum phase { FILLING, APPENDING, FINISHING, DRAINING, OVER };

struct results {
    PyObject_HEAD
    struct tfos__py_writer *writer; ///< owned reference
    PyObject *rows;                     ///< iterator of rows or batches; owned
    bool has_columns;                   ///< batches are fed and given
    struct tfos__py_capsule fed;           ///< the batch at hand, while one is
    enum phase phase;
    PyObject *batch;  ///< list of results, or a batch of columns; owned
    Py_ssize_t index; ///< next of them
};

static PyTypeObject *class; // set when the module is made, kept until the process ends

PyObject *tfos__py_results_new(struct tfos__py_writer *writer, PyObject *iterator,
                            bool has_columns)
{
    struct results *self = (struct results *)PyType_GenericAlloc(class, 0);

    if (self == NULL)
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

    if (self->batch == NULL)
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
static enum tfos__py_row_feeder_result fill_columns(struct results *self)
{
    PyObject *batch = PyIter_Next(self->rows);
    int result = 0;

    if (batch == NULL)
        return PyErr_Occurred() ? TFOS__ROW_FEEDER_FAILED : TFOS__ROW_FEEDER_END;
    result = tfos__py_capsule_init(&self->fed, batch);
    Py_DECREF(batch);
    return result < 0 ? TFOS__ROW_FEEDER_FAILED : TFOS__ROW_FEEDER_DONE;
}

static enum tfos__py_row_feeder_result append_columns(struct results *self)
{
    enum tfos__py_row_feeder_result result = tfos__py_row_feeder_append_batch(
        self->writer->handle.object, self->fed.schema, self->fed.array);

    if (result != TFOS__ROW_FEEDER_AGAIN)
        tfos__py_capsule_clear(&self->fed);
    return result;
}

/// Feeds on by one step. AGAIN: a result must be taken.
static enum tfos__py_row_feeder_result feed(struct results *self)
{
    struct tfos__py_row_feeder *feeder = self->writer->handle.object;
    enum tfos__py_row_feeder_result result = TFOS__ROW_FEEDER_AGAIN;

    switch (self->phase) {
    case FILLING:
        result = self->has_columns ? fill_columns(self) : tfos__py_row_feeder_fill(feeder, self->rows);
        self->phase = result == TFOS__ROW_FEEDER_END ? FINISHING : APPENDING;
        return result == TFOS__ROW_FEEDER_END ? TFOS__ROW_FEEDER_DONE : result;
    case APPENDING:
        result = self->has_columns ? append_columns(self) : tfos__py_row_feeder_append(feeder);
        if (result == TFOS__ROW_FEEDER_DONE)
            self->phase = FILLING;
        break;
    case FINISHING:
        result = tfos__py_row_feeder_finish(feeder);
        if (result == TFOS__ROW_FEEDER_DONE)
            self->phase = DRAINING;
        break;
    default:
        break;
    }
    if (result == TFOS__ROW_FEEDER_END) // the reader takes no more: what it still answers is all
                                        // there will be
        self->phase = DRAINING;
    return result == TFOS__ROW_FEEDER_END ? TFOS__ROW_FEEDER_DONE : result;
}

/// Moves on until a batch of results is there. END: there are no more.
static enum tfos__py_row_feeder_result advance(struct results *self)
{
    struct tfos__py_row_feeder *feeder = self->writer->handle.object;
    bool must_wait = false;

    for (;;) {
        enum tfos__py_row_feeder_result result = TFOS__ROW_FEEDER_DONE;
        result = tfos__py_row_feeder_take_results(feeder, must_wait, self->has_columns, &self->batch);
        self->index = 0;
        if (result != TFOS__ROW_FEEDER_AGAIN)
            return result;
        result = feed(self);
        if (result == TFOS__ROW_FEEDER_FAILED)
            return result;
        must_wait = result == TFOS__ROW_FEEDER_AGAIN || self->phase == DRAINING;
    }
}

/// A partition that is skipped: well if it is empty.
static enum tfos__py_row_feeder_result skip(struct results *self)
{
    PyObject *row = PyIter_Next(self->rows);

    if (row == NULL)
        return PyErr_Occurred() ? TFOS__ROW_FEEDER_FAILED : TFOS__ROW_FEEDER_END;
    Py_DECREF(row);
    return tfos__py_row_feeder_take_results(self->writer->handle.object, false, self->has_columns,
                                         &self->batch);
}

static PyObject *next_of_feed(struct results *self)
{
    for (;;) {
        PyObject *result = next_of_batch(self);
        enum tfos__py_row_feeder_result state = TFOS__ROW_FEEDER_END;
        if (result != NULL)
            return result;
        if (tfos__py_row_feeder_node(self->writer->handle.object) == Py_None)
            state = skip(self);
        else
            state = advance(self);
        if (state != TFOS__ROW_FEEDER_DONE) { // an iterator that ended or failed stays so
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

static PyObject *iterate(PyObject *self)
{
    Py_INCREF(self);
    return self;
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

static PyType_Slot slots[] = {
    {Py_tp_doc, "One result a row, in order, as they come."},
    {Py_tp_new, tfos__py_class_refuse_new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_iter, iterate},
    {Py_tp_iternext, next},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.ResultIterator",
    .basicsize = sizeof(struct results),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_results_class_add(PyObject *module)
{
    class = tfos__py_class_add(module, &spec);
    return class != NULL ? 0 : -1;
}

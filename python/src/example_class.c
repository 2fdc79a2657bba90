// SPDX-License-Identifier: Apache-2.0
// The classes ExampleReader and ExampleWriter: a file of Examples as Arrow batches, and the other
// way.
#include <tfos/example_file.h>

#include "arrow/arrow.h"
#include "arrow_batch.h"
#include "capsule.h"
#include "dataset_options.h"
#include "error.h"
#include "file_object.h"
#include "handle.h"

struct example_reader {
    struct tfos__py_handle handle; ///< of a struct tfos_example_reader
    struct tfos_stream *stream;    ///< owned
    struct ArrowSchema schema;     ///< owned when it has a release
    PyObject *damages;             ///< a list; owned
    PyObject *failure;             ///< what the file object has raised; owned, or NULL
};

struct example_writer {
    struct tfos__py_handle handle; ///< of a struct tfos_example_writer
    struct tfos_stream *stream;    ///< owned
    PyObject *failure;             ///< what the file object has raised; owned, or NULL
};

static void close_reader(struct tfos__py_handle *handle, void *object)
{
    struct example_reader *self = (struct example_reader *)handle;

    tfos_example_reader_close(object);
    tfos_stream_close(self->stream);
    self->stream = NULL;
    tfos__arrow_schema_release(&self->schema);
    Py_CLEAR(self->damages);
    Py_CLEAR(self->failure);
}

/// The `on_damage` of a reader whose context is a Python list: adds (kind, offset, size, message).
/// Damage is rare enough to take the GIL for. What cannot be added is written to stderr.
static void add_damage(void *list, const struct tfos_record_damage *damage)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *note = Py_BuildValue("(sKKs)", tfos_record_damage_text(damage->kind),
                                   (unsigned long long)damage->offset,
                                   (unsigned long long)damage->size, damage->message);

    if (!note || PyList_Append(list, note) < 0)
        PyErr_WriteUnraisable(list);
    Py_XDECREF(note);
    PyGILState_Release(state);
}

/// Opens the file with the schema, which is a view that the caller holds. -1 with an exception.
static int open_reader(struct example_reader *self, PyObject *file, const char *path,
                       const struct ArrowSchema *schema,
                       struct tfos_example_reader_options *options)
{
    struct tfos__py_call call;
    struct tfos_example_reader *reader = NULL;

    options->record.name = path;
    options->record.on_damage = add_damage;
    options->record.context = self->damages;
    self->stream = tfos__py_file_object_open_reader(file, path, &self->failure);
    if (!self->stream || !tfos__py_call_enter_new(&call, (PyObject *)self))
        return -1;
    call.cause = &self->failure;
    call.status = tfos_arrow_schema_copy(schema, &self->schema, &call.err);
    if (call.status == TFOS_OK)
        call.status = tfos_example_reader_open(self->stream, schema, options, &reader, &call.err);
    return tfos__py_call_leave_new(&call, reader);
}

static int init_reader(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct example_reader *self = (struct example_reader *)object;
    const char *path = NULL;
    int64_t type = 0, compression = 0, mode = 0, batch_rows = 0, max_size = 0, begin = 0, end = 0;
    const struct ArrowSchema *schema = NULL;
    PyObject *kept = NULL, *file = Py_None;
    int result = -1;
    const struct tfos__py_parameter parameters[] = {
        {"path", TFOS__PATH, true, 0, 0, &path},
        {"schema", TFOS__SCHEMA, true, 0, 0, &schema},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"batch_rows", TFOS__INT, false, 0, INT64_MAX, &batch_rows},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
        {"begin", TFOS__INT, false, 0, INT64_MAX, &begin},
        {"end", TFOS__INT, false, 0, INT64_MAX, &end},
        {"file", TFOS__ANY, false, 0, 0, &file},
        {0},
    };

    if (tfos__py_handle_check_new(&self->handle) < 0 ||
        tfos__py_parameters_read("ExampleReader", parameters, args, kwargs, &kept) < 0)
        return -1;
    Py_XDECREF(self->damages); // of an attempt to open it that failed
    self->damages = PyList_New(0);
    if (self->damages) {
        struct tfos_example_reader_options options = {
            .record = {.compression = (enum tfos_compression)compression,
                       .mode = (enum tfos_record_mode)mode,
                       .max_record_size = (uint64_t)max_size,
                       .begin = (uint64_t)begin,
                       .end = (uint64_t)end},
            .type = (enum tfos_record_type)type,
            .batch_rows = batch_rows,
        };
        result = open_reader(self, file, path, schema, &options);
    }
    Py_DECREF(kept);
    return result;
}

static PyObject *next(PyObject *object, PyObject *unused)
{
    struct example_reader *self = (struct example_reader *)object;
    struct tfos__py_call call;
    struct ArrowSchema schema;
    struct ArrowArray array;

    (void)unused;
    if (!tfos__py_call_enter(&call, object))
        return NULL;
    call.cause = &self->failure;
    call.status = tfos_example_reader_next(call.object, &array, &call.err);
    if (call.status == TFOS_END)
        return tfos__py_call_end(&call);
    if (call.status == TFOS_OK) {
        call.status = tfos_arrow_schema_copy(&self->schema, &schema, &call.err);
        if (call.status < 0)
            array.release(&array);
    }
    return tfos__py_call_leave(&call) < 0 ? NULL : tfos__py_arrow_batch_new(&schema, &array);
}

static PyObject *take_damages(PyObject *object, PyObject *unused)
{
    struct example_reader *self = (struct example_reader *)object;
    PyObject *damages = NULL;

    (void)unused;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    damages = PyList_GetSlice(self->damages, 0, PyList_Size(self->damages));
    if (damages && PyList_SetSlice(self->damages, 0, PyList_Size(damages), NULL) < 0)
        Py_CLEAR(damages);
    tfos__py_handle_leave(&self->handle);
    return damages;
}

static PyObject *get_counts(PyObject *self, void *closure)
{
    struct tfos__py_call call;

    (void)closure;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    struct tfos_record_counts counts = tfos_example_reader_get_counts(call.object);
    return tfos__py_call_leave(&call) < 0 ? NULL : tfos__py_record_counts_tuple(&counts);
}

static PyMethodDef reader_methods[] = {
    {"next", next, METH_NOARGS, "The next ArrowBatch; None at the end."},
    {"take_damages", take_damages, METH_NOARGS,
     "What was skipped since the last call: (kind, offset, size, message) each."},
    TFOS__CLOSE_METHODS("Closes the file."),
    {0},
};

static PyGetSetDef reader_properties[] = {
    {"counts", get_counts, NULL, "(records, bytes, damages, skipped bytes) so far.", NULL},
    {0},
};

struct tfos__py_class tfos__py_example_reader_class = {
    .name = "tensorflowonspark._tfos.ExampleReader",
    .doc = "A file of Examples as Arrow batches. One thread at a time.",
    .size = sizeof(struct example_reader),
    .methods = reader_methods,
    .properties = reader_properties,
    .init = init_reader,
    .label = "example reader",
    .is_exclusive = true,
    .close = close_reader,
};

// ---- ExampleWriter

static void close_writer(struct tfos__py_handle *handle, void *object)
{
    struct example_writer *self = (struct example_writer *)handle;

    tfos_example_writer_close(object);
    tfos_stream_close(self->stream);
    self->stream = NULL;
    Py_CLEAR(self->failure);
}

static int open_writer(struct example_writer *self, PyObject *file, const char *path,
                       const struct ArrowSchema *schema,
                       const struct tfos_example_writer_options *options)
{
    struct tfos__py_call call;
    struct tfos_example_writer *writer = NULL;

    self->stream = tfos__py_file_object_open_writer(file, path, &self->failure);
    if (!self->stream || !tfos__py_call_enter_new(&call, (PyObject *)self))
        return -1;
    call.status = tfos_example_writer_open(self->stream, schema, options, &writer, &call.err);
    return tfos__py_call_leave_new(&call, writer);
}

static int init_writer(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct example_writer *self = (struct example_writer *)object;
    const char *path = NULL;
    int64_t type = 0, compression = 0, level = 0;
    bool is_exact = false;
    const struct ArrowSchema *schema = NULL;
    PyObject *kept = NULL, *file = Py_None;
    const struct tfos__py_parameter parameters[] = {
        {"path", TFOS__PATH, true, 0, 0, &path},
        {"schema", TFOS__SCHEMA, true, 0, 0, &schema},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"level", TFOS__INT, false, 0, 9, &level},
        {"exact", TFOS__BOOL, false, 0, 0, &is_exact},
        {"file", TFOS__ANY, false, 0, 0, &file},
        {0},
    };

    if (tfos__py_handle_check_new(&self->handle) < 0 ||
        tfos__py_parameters_read("ExampleWriter", parameters, args, kwargs, &kept) < 0)
        return -1;
    struct tfos_example_writer_options options = {
        .record = {.compression = (enum tfos_compression)compression, .level = (int)level},
        .example = {.type = (enum tfos_record_type)type, .exact = is_exact},
    };
    int result = open_writer(self, file, path, schema, &options);
    Py_DECREF(kept);
    return result;
}

static PyObject *append(PyObject *object, PyObject *batch)
{
    struct example_writer *self = (struct example_writer *)object;
    struct tfos__py_capsule capsule = {0};
    struct tfos__py_call call;
    int result = -1;

    if (tfos__py_capsule_init(&capsule, batch) < 0)
        return NULL;
    if (tfos__py_call_enter(&call, object)) {
        call.cause = &self->failure;
        call.status = tfos_example_writer_append(call.object, capsule.array, &call.err);
        result = tfos__py_call_leave(&call);
    }
    tfos__py_capsule_clear(&capsule);
    if (result < 0)
        return NULL;
    Py_RETURN_NONE;
}

/// [(column, rounded, infinite), ...] of the columns that were changed.
static PyObject *list_losses(const struct tfos_example_writer *writer)
{
    size_t count = 0;
    const struct tfos_example_loss *losses = tfos_example_writer_losses(writer, &count);
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = NULL;
        if (losses[i].rounded == 0)
            continue;
        item = Py_BuildValue("(sKK)", losses[i].column, (unsigned long long)losses[i].rounded,
                             (unsigned long long)losses[i].infinite);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *finish(PyObject *object, PyObject *unused)
{
    struct example_writer *self = (struct example_writer *)object;
    struct tfos__py_call call;
    PyObject *losses = NULL;

    (void)unused;
    if (!tfos__py_call_enter(&call, object))
        return NULL;
    call.cause = &self->failure;
    call.status = tfos_example_writer_finish(call.object, &call.err);
    tfos__py_call_resume(&call);
    if (call.status == TFOS_OK)
        losses = list_losses(call.object);
    return tfos__py_call_leave(&call) < 0 ? NULL : losses;
}

static PyMethodDef writer_methods[] = {
    {"append", append, METH_O, "Writes a record for each row of an Arrow batch."},
    {"finish", finish, METH_NOARGS,
     "Makes the file appear; gives (column, rounded, infinite) of the columns with rounded "
     "values."},
    TFOS__CLOSE_METHODS("Gives up what was not finished."),
    {0},
};

struct tfos__py_class tfos__py_example_writer_class = {
    .name = "tensorflowonspark._tfos.ExampleWriter",
    .doc = "Arrow batches to a file of Examples. One thread at a time.",
    .size = sizeof(struct example_writer),
    .methods = writer_methods,
    .init = init_writer,
    .label = "example writer",
    .is_exclusive = true,
    .close = close_writer,
};

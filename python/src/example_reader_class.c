// SPDX-License-Identifier: Apache-2.0
// The class ExampleReader: a file of Examples as Arrow batches.
#include "arrow/arrow.h"
#include "arrow_batch.h"
#include "capsule.h"
#include "classes.h"
#include "damage_list.h"
#include "error.h"
#include "file_object.h"
#include "handle.h"
#include "parameter.h"

#include <string.h>
#include <tfos/example_file.h>

struct reader {
    struct tfos__py_handle handle; ///< of a struct tfos_example_reader
    struct tfos_stream *stream; ///< owned
    struct ArrowSchema schema;  ///< owned when it has a release
    PyObject *damages;          ///< a list; owned
    PyObject *failure;          ///< what the file object has raised; owned, or NULL
};

static PyTypeObject *class; // set when the module is made, kept until the process ends

static void close_reader(struct tfos__py_handle *handle, void *object)
{
    struct reader *self = (struct reader *)handle;

    tfos_example_reader_close(object);
    tfos_stream_close(self->stream);
    self->stream = NULL;
    tfos__arrow_schema_release(&self->schema);
    Py_CLEAR(self->damages);
    Py_CLEAR(self->failure);
}

static const struct tfos__py_handle_kind kind = {
    .name = "example reader", .state = "opened", .is_exclusive = true, .close = close_reader};

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(type, &kind);
}

/// Opens the file with the schema, which is a view that the caller holds. -1 with an exception.
static int open_reader(struct reader *self, PyObject *file, const char *path,
                       const struct ArrowSchema *schema,
                       struct tfos_example_reader_options *options)
{
    struct tfos_example_reader *object = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    options->record.name = path;
    options->record.on_damage = tfos__py_damage_list_add;
    options->record.context = self->damages;
    self->stream = tfos__py_file_object_open_reader(file, path, &self->failure);
    if (self->stream == NULL)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_arrow_schema_copy(schema, &self->schema, &err);
    if (status == TFOS_OK)
        status = tfos_example_reader_open(self->stream, schema, options, &object, &err);
    Py_END_ALLOW_THREADS
    if (status < 0) {
        tfos__py_file_object_raise(status, &err, &self->failure);
        return -1;
    }
    return tfos__py_handle_adopt(&self->handle, object, status, &err);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct reader *self = (struct reader *)object;
    const char *path = NULL;
    int64_t type = 0, compression = 0, mode = 0, batch_rows = 0, max_size = 0, begin = 0, end = 0;
    PyObject *kept = NULL, *schema = NULL, *capsule = NULL, *file = Py_None;
    int result = -1;
    const struct tfos__py_parameter parameters[] = {
        {"path", TFOS__PATH, true, 0, 0, &path},
        {"schema", TFOS__ANY, true, 0, 0, &schema},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"batch_rows", TFOS__INT, false, 0, INT64_MAX, &batch_rows},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
        {"begin", TFOS__INT, false, 0, INT64_MAX, &begin},
        {"end", TFOS__INT, false, 0, INT64_MAX, &end},
        {"file", TFOS__ANY, false, 0, 0, &file},
    };

    if (tfos__py_handle_check_new(&self->handle) < 0 ||
        tfos__py_parameters_read("ExampleReader", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    self->damages = PyList_New(0);
    capsule = self->damages != NULL ? tfos__py_capsule_schema(schema) : NULL;
    if (capsule != NULL) {
        struct tfos_example_reader_options options = {
            .record = {.compression = (enum tfos_compression)compression,
                       .mode = (enum tfos_record_mode)mode,
                       .max_record_size = (uint64_t)max_size,
                       .begin = (uint64_t)begin,
                       .end = (uint64_t)end},
            .type = (enum tfos_record_type)type,
            .batch_rows = batch_rows,
        };
        result =
            open_reader(self, file, path, PyCapsule_GetPointer(capsule, "arrow_schema"), &options);
        Py_DECREF(capsule);
    }
    Py_DECREF(kept);
    return result;
}

static PyObject *next(PyObject *object, PyObject *unused)
{
    struct reader *self = (struct reader *)object;
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)unused;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_example_reader_next(self->handle.object, &array, &err);
    if (status == TFOS_OK) {
        status = tfos_arrow_schema_copy(&self->schema, &schema, &err);
        if (status < 0)
            array.release(&array);
    }
    Py_END_ALLOW_THREADS
    tfos__py_handle_leave(&self->handle);
    if (status < 0)
        return tfos__py_file_object_raise(status, &err, &self->failure);
    if (status == TFOS_END)
        Py_RETURN_NONE;
    return tfos__py_arrow_batch_new(&schema, &array);
}

static PyObject *take_damages(PyObject *object, PyObject *unused)
{
    struct reader *self = (struct reader *)object;
    PyObject *damages = NULL;

    (void)unused;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    damages = PyList_GetSlice(self->damages, 0, PyList_Size(self->damages));
    if (damages != NULL && PyList_SetSlice(self->damages, 0, PyList_Size(damages), NULL) < 0)
        Py_CLEAR(damages);
    tfos__py_handle_leave(&self->handle);
    return damages;
}

static PyObject *get_counts(PyObject *object, void *closure)
{
    struct reader *self = (struct reader *)object;
    struct tfos_record_counts counts;

    (void)closure;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    counts = tfos_example_reader_get_counts(self->handle.object);
    tfos__py_handle_leave(&self->handle);
    return tfos__py_record_counts_tuple(&counts);
}

static PyMethodDef methods[] = {
    {"next", next, METH_NOARGS, "The next ArrowBatch; None at the end."},
    {"take_damages", take_damages, METH_NOARGS,
     "What was passed over since the last call: (kind, offset, size, message) each."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Closes the file."},
    {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, "The reader."},
    {"__exit__", tfos__py_handle_close, METH_VARARGS, "Closes the file."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"counts", get_counts, NULL, "(records, bytes, damages, skipped bytes) so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A file of Examples as Arrow batches. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.ExampleReader",
    .basicsize = sizeof(struct reader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_example_reader_class_add(PyObject *module)
{
    class = tfos__py_class_add(module, &spec);
    return class != NULL ? 0 : -1;
}

// SPDX-License-Identifier: Apache-2.0
// The class ExampleWriter: Arrow batches to a file of Examples.
#include "capsule.h"
#include "classes.h"
#include "error.h"
#include "file_object.h"
#include "handle.h"
#include "parameter.h"

#include <tfos/example_file.h>

struct writer {
    struct tfos__py_handle handle; ///< of a struct tfos_example_writer
    struct tfos_stream *stream; ///< owned
    PyObject *failure;          ///< what the file object has raised; owned, or NULL
};

static PyTypeObject *class; // set when the module is made, kept until the process ends

static void close_writer(struct tfos__py_handle *handle, void *object)
{
    struct writer *self = (struct writer *)handle;

    tfos_example_writer_close(object);
    tfos_stream_close(self->stream);
    self->stream = NULL;
    Py_CLEAR(self->failure);
}

static const struct tfos__py_handle_kind kind = {
    .name = "example writer", .state = "opened", .is_exclusive = true, .close = close_writer};

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(type, &kind);
}

static int open_writer(struct writer *self, PyObject *file, const char *path,
                       const struct ArrowSchema *schema,
                       const struct tfos_example_writer_options *options)
{
    struct tfos_example_writer *object = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    self->stream = tfos__py_file_object_open_writer(file, path, &self->failure);
    if (self->stream == NULL)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_example_writer_open(self->stream, schema, options, &object, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_adopt(&self->handle, object, status, &err);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct writer *self = (struct writer *)object;
    const char *path = NULL;
    int64_t type = 0, compression = 0, level = 0;
    bool is_exact = false;
    PyObject *kept = NULL, *schema = NULL, *capsule = NULL, *file = Py_None;
    int result = -1;
    const struct tfos__py_parameter parameters[] = {
        {"path", TFOS__PATH, true, 0, 0, &path},
        {"schema", TFOS__ANY, true, 0, 0, &schema},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"level", TFOS__INT, false, 0, 9, &level},
        {"exact", TFOS__BOOL, false, 0, 0, &is_exact},
        {"file", TFOS__ANY, false, 0, 0, &file},
    };

    if (tfos__py_handle_check_new(&self->handle) < 0 ||
        tfos__py_parameters_read("ExampleWriter", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    capsule = tfos__py_capsule_schema(schema);
    if (capsule != NULL) {
        struct tfos_example_writer_options options = {
            .record = {.compression = (enum tfos_compression)compression, .level = (int)level},
            .example = {.type = (enum tfos_record_type)type, .exact = is_exact},
        };
        result =
            open_writer(self, file, path, PyCapsule_GetPointer(capsule, "arrow_schema"), &options);
        Py_DECREF(capsule);
    }
    Py_DECREF(kept);
    return result;
}

static PyObject *append(PyObject *object, PyObject *batch)
{
    struct writer *self = (struct writer *)object;
    struct tfos__py_capsule capsule = {0};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    if (tfos__py_capsule_init(&capsule, batch) < 0) {
        tfos__py_handle_leave(&self->handle);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_example_writer_append(self->handle.object, capsule.array, &err);
    Py_END_ALLOW_THREADS
    tfos__py_capsule_clear(&capsule);
    tfos__py_handle_leave(&self->handle);
    if (status < 0)
        return tfos__py_file_object_raise(status, &err, &self->failure);
    Py_RETURN_NONE;
}

/// [(column, rounded, infinite), ...] of the columns that were changed.
static PyObject *list_losses(const struct tfos_example_writer *writer)
{
    size_t count = 0;
    const struct tfos_example_loss *losses = tfos_example_writer_losses(writer, &count);
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = NULL;
        if (losses[i].rounded == 0)
            continue;
        item = Py_BuildValue("(sKK)", losses[i].column, (unsigned long long)losses[i].rounded,
                             (unsigned long long)losses[i].infinite);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *finish(PyObject *object, PyObject *unused)
{
    struct writer *self = (struct writer *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    PyObject *losses = NULL;

    (void)unused;
    if (tfos__py_handle_enter(&self->handle) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_example_writer_finish(self->handle.object, &err);
    Py_END_ALLOW_THREADS
    if (status == TFOS_OK)
        losses = list_losses(self->handle.object);
    tfos__py_handle_leave(&self->handle);
    if (status < 0)
        return tfos__py_file_object_raise(status, &err, &self->failure);
    return losses;
}

static PyMethodDef methods[] = {
    {"append", append, METH_O, "Writes a record for each row of an Arrow batch."},
    {"finish", finish, METH_NOARGS,
     "Makes the file appear; gives (column, rounded, infinite) of the columns with rounded "
     "values."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Gives up what was not finished."},
    {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, "The writer."},
    {"__exit__", tfos__py_handle_close, METH_VARARGS, "Gives up what was not finished."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Arrow batches to a file of Examples. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.ExampleWriter",
    .basicsize = sizeof(struct writer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_example_writer_class_add(PyObject *module)
{
    class = tfos__py_class_add(module, &spec);
    return class != NULL ? 0 : -1;
}

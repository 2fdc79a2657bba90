// SPDX-License-Identifier: Apache-2.0
// The class FileWriter: bytes to a file that appears when it is whole.
#include "classes.h"
#include "handle.h"
#include "parameter.h"

#include <tfos/stream.h>

static PyTypeObject *class; // set when the module is made, kept until the process ends

static void close_stream(struct tfos__py_handle *handle, void *object)
{
    (void)handle;
    tfos_stream_close(object);
}

static const struct tfos__py_handle_kind kind = {
    .name = "file writer", .state = "opened", .is_exclusive = true, .close = close_stream};

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(type, &kind);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_stream *stream = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *path = NULL;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {{"path", TFOS__PATH, true, 0, 0, &path}};

    if (tfos__py_handle_check_new(self) < 0 ||
        tfos__py_parameters_read("FileWriter", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_stream_open_writer(path, &stream, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    return tfos__py_handle_adopt(self, stream, status, &err);
}

static PyObject *write_bytes(PyObject *object, PyObject *bytes)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    char *data = NULL;
    Py_ssize_t size = 0;

    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0 || tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    struct tfos_stream *stream = self->object;
    status = stream->write(stream, data, (size_t)size, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_conclude(self, status, &err);
}

static PyObject *finish(PyObject *object, PyObject *unused)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)unused;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    struct tfos_stream *stream = self->object;
    status = stream->finish(stream, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_conclude(self, status, &err);
}

static PyMethodDef methods[] = {
    {"write", write_bytes, METH_O, "Writes bytes."},
    {"finish", finish, METH_NOARGS, "Makes the file appear."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Gives up what was not finished."},
    {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, "The writer."},
    {"__exit__", tfos__py_handle_close, METH_VARARGS, "Gives up what was not finished."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Bytes to a file that appears when it is whole. One thread at a time."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.FileWriter",
    .basicsize = sizeof(struct tfos__py_handle),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_file_writer_class_add(PyObject *module)
{
    class = tfos__py_class_add(module, &spec);
    return class != NULL ? 0 : -1;
}

// SPDX-License-Identifier: Apache-2.0
// Streams of file objects, and the classes FileWriter and FileReader, which are the other way
// round.
#include "file_object.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "handle.h"

#ifndef PyBUF_WRITE // which the limited API has from 3.11 on; its value is part of the stable ABI
#define PyBUF_WRITE 0x200
#endif

struct file_object {
    struct tfos_stream base;
    PyObject *file;     ///< owned
    PyObject **failure; ///< borrowed
    bool has_readinto;
    PyObject *name; ///< bytes; owned
};

/// Keeps the exception and writes its text as the error. Always IO.
static enum tfos_status keep_failure(const struct file_object *self, const char *what,
                                     struct tfos_error *err)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL, *text = NULL, *bytes = NULL;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        PyException_SetTraceback(value, trace);
    text = PyUnicode_FromFormat("%S: %S", type, value);
    bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    if (err) {
        err->os_errno = 0;
        snprintf(err->message, sizeof(err->message), "stream: cannot %s %s: %s", what,
                 PyBytes_AsString(self->name),
                 bytes ? PyBytes_AsString(bytes) : "an exception without a text");
    }
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (!*self->failure)
        *self->failure = value;
    else
        Py_XDECREF(value);
    return TFOS_IO;
}

/// Bytes read into `data`, or -1 with an exception. The view is released, so that nobody can write
/// to the memory later.
static Py_ssize_t read_into(struct file_object *self, void *data, Py_ssize_t size)
{
    PyObject *view = PyMemoryView_FromMemory(data, size, PyBUF_WRITE);
    PyObject *result = view ? PyObject_CallMethod(self->file, "readinto", "O", view) : NULL;
    PyObject *released = result ? PyObject_CallMethod(view, "release", NULL) : NULL;
    Py_ssize_t count = released ? PyLong_AsSsize_t(result) : -1;

    Py_XDECREF(released);
    Py_XDECREF(result);
    Py_XDECREF(view);
    return count;
}

static Py_ssize_t read_bytes(struct file_object *self, void *data, Py_ssize_t size)
{
    PyObject *bytes = PyObject_CallMethod(self->file, "read", "n", size);
    Py_ssize_t count = -1;
    char *text = NULL;

    if (bytes && PyBytes_AsStringAndSize(bytes, &text, &count) < 0)
        count = -1;
    if (count > 0 && count <= size)
        memcpy(data, text, (size_t)count);
    Py_XDECREF(bytes);
    return count;
}

static enum tfos_status read_object(struct tfos_stream *stream, void *data, size_t size,
                                    size_t *count, struct tfos_error *err)
{
    struct file_object *self = (struct file_object *)stream;
    Py_ssize_t room = size < PY_SSIZE_T_MAX ? (Py_ssize_t)size : PY_SSIZE_T_MAX, got = 0;
    enum tfos_status status = TFOS_OK;
    PyGILState_STATE state = PyGILState_Ensure();

    got = self->has_readinto ? read_into(self, data, room) : read_bytes(self, data, room);
    if (got > room || (got < 0 && !PyErr_Occurred()))
        PyErr_Format(PyExc_ValueError, "it gave %zd bytes where %zd were asked for", got, room);
    if (PyErr_Occurred())
        status = keep_failure(self, "read", err);
    else if (got == 0)
        status = TFOS_END;
    else
        *count = (size_t)got;
    PyGILState_Release(state);
    return status;
}

static enum tfos_status seek_object(struct tfos_stream *stream, uint64_t offset,
                                    struct tfos_error *err)
{
    struct file_object *self = (struct file_object *)stream;
    enum tfos_status status = TFOS_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallMethod(self->file, "seek", "K", (unsigned long long)offset);

    if (!result)
        status = keep_failure(self, "seek in", err);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

/// Raw files may write less than they are given. How much, or -1 with an exception.
static Py_ssize_t write_some(struct file_object *self, const char *data, Py_ssize_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(data, size);
    PyObject *result = bytes ? PyObject_CallMethod(self->file, "write", "O", bytes) : NULL;
    Py_ssize_t count = size; // where it does not say

    if (!result)
        count = -1;
    else if (PyLong_Check(result))
        count = PyLong_AsSsize_t(result);
    if (!PyErr_Occurred() && (count < 0 || count > size || (count == 0 && size > 0)))
        PyErr_Format(PyExc_ValueError, "it wrote %zd bytes of %zd", count, size);
    Py_XDECREF(result);
    Py_XDECREF(bytes);
    return PyErr_Occurred() ? -1 : count;
}

static enum tfos_status write_object(struct tfos_stream *stream, const void *data, size_t size,
                                     struct tfos_error *err)
{
    struct file_object *self = (struct file_object *)stream;
    const char *bytes = data;
    enum tfos_status status = TFOS_OK;
    PyGILState_STATE state = PyGILState_Ensure();

    while (size > 0 && status == TFOS_OK) {
        Py_ssize_t count = write_some(self, bytes, (Py_ssize_t)size);
        if (count < 0) {
            status = keep_failure(self, "write to", err);
        } else {
            bytes += count;
            size -= (size_t)count;
        }
    }
    PyGILState_Release(state);
    return status;
}

static enum tfos_status finish_object(struct tfos_stream *stream, struct tfos_error *err)
{
    struct file_object *self = (struct file_object *)stream;
    enum tfos_status status = TFOS_OK;
    PyGILState_STATE state = PyGILState_Ensure();

    if (PyObject_HasAttrString(self->file, "flush")) {
        PyObject *result = PyObject_CallMethod(self->file, "flush", NULL);
        if (!result)
            status = keep_failure(self, "write to", err);
        Py_XDECREF(result);
    }
    PyGILState_Release(state);
    return status;
}

static void close_object(struct tfos_stream *stream)
{
    struct file_object *self = (struct file_object *)stream;
    PyGILState_STATE state = PyGILState_Ensure();

    Py_DECREF(self->file);
    Py_DECREF(self->name);
    PyMem_Free(self);
    PyGILState_Release(state);
}

/// NULL with an exception.
static struct file_object *make_object(PyObject *file, const char *name, const char *method,
                                       PyObject **failure)
{
    struct file_object *self = NULL;
    PyObject *kept_name = NULL;

    if (!PyObject_HasAttrString(file, method)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a binary file object, which has %s(), not %R",
                     name, method, (PyObject *)Py_TYPE(file));
        return NULL;
    }
    kept_name = PyBytes_FromString(name);
    self = kept_name ? PyMem_Malloc(sizeof(*self)) : NULL;
    if (!self) {
        Py_XDECREF(kept_name);
        return (struct file_object *)PyErr_NoMemory();
    }
    *self = (struct file_object){
        .base.close = close_object, .file = file, .failure = failure, .name = kept_name};
    Py_INCREF(file);
    return self;
}

/// Whether seekable() is true; -1 with an exception.
static int is_seekable(PyObject *file)
{
    PyObject *answer = NULL;
    int result = 0;

    if (!PyObject_HasAttrString(file, "seekable") || !PyObject_HasAttrString(file, "seek"))
        return 0;
    answer = PyObject_CallMethod(file, "seekable", NULL);
    result = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return result;
}

static struct tfos_stream *make_reader(PyObject *file, const char *name, PyObject **failure)
{
    struct file_object *self = make_object(file, name, "read", failure);
    int can_seek = self ? is_seekable(file) : -1;

    if (!self)
        return NULL;
    if (can_seek < 0) {
        tfos_stream_close(&self->base);
        return NULL;
    }
    self->has_readinto = PyObject_HasAttrString(file, "readinto");
    self->base.read = read_object;
    self->base.seek = can_seek ? seek_object : NULL;
    return &self->base;
}

static struct tfos_stream *make_writer(PyObject *file, const char *name, PyObject **failure)
{
    struct file_object *self = make_object(file, name, "write", failure);

    if (!self)
        return NULL;
    self->base.write = write_object;
    self->base.finish = finish_object;
    return &self->base;
}

static struct tfos_stream *open_path(const char *path,
                                     enum tfos_status (*open)(const char *, struct tfos_stream **,
                                                              struct tfos_error *))
{
    struct tfos_stream *stream = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = open(path, &stream, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        tfos__py_raise(status, &err);
    return stream;
}

struct tfos_stream *tfos__py_file_object_open_reader(PyObject *file, const char *path,
                                                     PyObject **failure)
{
    return file == Py_None ? open_path(path, tfos_stream_open_reader)
                           : make_reader(file, path, failure);
}

struct tfos_stream *tfos__py_file_object_open_writer(PyObject *file, const char *path,
                                                     PyObject **failure)
{
    return file == Py_None ? open_path(path, tfos_stream_open_writer)
                           : make_writer(file, path, failure);
}

// ---- FileWriter

static void close_stream(struct tfos__py_handle *handle, void *object)
{
    (void)handle;
    tfos_stream_close(object);
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_stream *stream = NULL;
    const char *path = NULL;
    const struct tfos__py_parameter parameters[] = {{"path", TFOS__PATH, true, 0, 0, &path}, {0}};

    if (!tfos__py_call_begin_new(&call, self, "FileWriter", parameters, args, kwargs))
        return -1;
    call.status = tfos_stream_open_writer(path, &stream, &call.err);
    return tfos__py_call_leave_new(&call, stream);
}

static PyObject *write_bytes(PyObject *self, PyObject *bytes)
{
    struct tfos__py_call call;
    char *data = NULL;
    Py_ssize_t size = 0;

    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0 || !tfos__py_call_enter(&call, self))
        return NULL;
    struct tfos_stream *stream = call.object;
    call.status = stream->write(stream, data, (size_t)size, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *finish(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    struct tfos_stream *stream = call.object;
    call.status = stream->finish(stream, &call.err);
    return tfos__py_call_end(&call);
}

static PyMethodDef methods[] = {
    {"write", write_bytes, METH_O, "Writes bytes."},
    {"finish", finish, METH_NOARGS, "Makes the file appear."},
    TFOS__CLOSE_METHODS("Gives up what was not finished."),
    {0},
};

struct tfos__py_class tfos__py_file_writer_class = {
    .name = "tensorflowonspark._tfos.FileWriter",
    .doc = "Bytes to a file that appears when it is whole. One thread at a time.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .init = init,
    .label = "file writer",
    .is_exclusive = true,
    .close = close_stream,
};

// ---- FileReader

static int init_reader(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_stream *stream = NULL;
    const char *path = NULL;
    const struct tfos__py_parameter parameters[] = {{"path", TFOS__PATH, true, 0, 0, &path}, {0}};

    if (!tfos__py_call_begin_new(&call, self, "FileReader", parameters, args, kwargs))
        return -1;
    call.status = tfos_stream_open_reader(path, &stream, &call.err);
    return tfos__py_call_leave_new(&call, stream);
}

static PyObject *read_some(PyObject *self, PyObject *size)
{
    struct tfos__py_call call;
    Py_ssize_t room = PyLong_AsSsize_t(size);
    size_t count = 0;
    PyObject *bytes = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(NULL, room),
             *result = NULL;

    if (!bytes || !tfos__py_call_enter(&call, self)) {
        Py_XDECREF(bytes);
        return NULL;
    }
    struct tfos_stream *stream = call.object;
    if (room > 0)
        call.status =
            stream->read(stream, PyBytes_AsString(bytes), (size_t)room, &count, &call.err);
    if (tfos__py_call_leave(&call) == 0)
        result = PyBytes_FromStringAndSize(PyBytes_AsString(bytes), (Py_ssize_t)count);
    Py_DECREF(bytes);
    return result;
}

static PyObject *seek_to(PyObject *self, PyObject *offset)
{
    struct tfos__py_call call;
    unsigned long long place = PyLong_AsUnsignedLongLong(offset);

    if (PyErr_Occurred() || !tfos__py_call_enter(&call, self))
        return NULL;
    struct tfos_stream *stream = call.object;
    if (stream->seek) {
        call.status = stream->seek(stream, place, &call.err);
    } else {
        call.status = TFOS_UNSUPPORTED;
        snprintf(call.err.message, sizeof(call.err.message), "stream: a pipe only goes forward");
    }
    return tfos__py_call_end(&call);
}

static PyMethodDef reader_methods[] = {
    {"read", read_some, METH_O, "Reads bytes, at most so many."},
    {"seek", seek_to, METH_O, "Goes to a byte."},
    TFOS__CLOSE_METHODS("Closes the file."),
    {0},
};

struct tfos__py_class tfos__py_file_reader_class = {
    .name = "tensorflowonspark._tfos.FileReader",
    .doc = "Bytes of a file. One thread at a time.",
    .size = sizeof(struct tfos__py_handle),
    .methods = reader_methods,
    .init = init_reader,
    .label = "file reader",
    .is_exclusive = true,
    .close = close_stream,
};

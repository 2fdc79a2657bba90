// SPDX-License-Identifier: Apache-2.0
// Names are str, which Python makes of a file system's bytes and back. Invariant: while a file
// system of Python's is asked the GIL is held, and what it raises stays set until the end.
#include <string.h>
#include <tfos/file_list.h>
#include <tfos/record.h>

#include "error.h"
#include "handle.h"
#include "parameter.h"

/// A file system as an object: look(name) gives an enum tfos_file_kind, list(folder) pairs of name
/// and kind.
struct object_system {
    struct tfos_file_system base;
    PyObject *object; ///< borrowed
};

/// What `method` gives for a name; NULL with an exception.
static PyObject *ask(const struct tfos_file_system *system, const char *method, const char *name)
{
    PyObject *object = ((const struct object_system *)system)->object;
    PyObject *text = PyUnicode_DecodeFSDefault(name);
    PyObject *answer = text ? PyObject_CallMethod(object, method, "O", text) : NULL;

    Py_XDECREF(text);
    return answer;
}

static enum tfos_status look(struct tfos_file_system *system, const char *name,
                             struct tfos_file_info *info, struct tfos_error *err)
{
    PyObject *answer = ask(system, "look", name);

    (void)err;
    if (!answer)
        return TFOS_IO;
    *info = (struct tfos_file_info){.kind = (enum tfos_file_kind)PyLong_AsLong(answer)};
    Py_DECREF(answer);
    return PyErr_Occurred() ? TFOS_IO : TFOS_OK;
}

static enum tfos_status add_entry(PyObject *entry, tfos_file_taker *take, void *entries,
                                  struct tfos_error *err)
{
    PyObject *name = NULL, *bytes = NULL;
    int kind = TFOS_FILE_NONE;
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    enum tfos_status status = TFOS_IO;

    if (!PyArg_ParseTuple(entry, "Oi", &name, &kind))
        return status;
    bytes = PyUnicode_EncodeFSDefault(name);
    info.kind = (enum tfos_file_kind)kind;
    if (bytes)
        status = take(entries, PyBytes_AsString(bytes), &info, err);
    Py_XDECREF(bytes);
    return status;
}

static enum tfos_status list(struct tfos_file_system *system, const char *folder,
                             tfos_file_taker *take, void *entries, struct tfos_error *err)
{
    PyObject *answer = ask(system, "list", folder);
    Py_ssize_t count = answer ? PyList_Size(answer) : -1;
    enum tfos_status status = count < 0 ? TFOS_IO : TFOS_OK;

    for (Py_ssize_t i = 0; status == TFOS_OK && i < count; i++)
        status = add_entry(PyList_GetItem(answer, i), take, entries, err);
    Py_XDECREF(answer);
    return status;
}

/// A list of str.
static PyObject *make_names(const struct tfos_file_list *found)
{
    PyObject *names = PyList_New(0);

    for (size_t i = 0; names && i < tfos_file_list_count(found); i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(tfos_file_list_get(found, i));
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *find_files(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct object_system system = {.base = {.look = look, .list = list}, .object = Py_None};
    struct tfos_file_list *found = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *name = NULL;
    PyObject *kept = NULL, *names = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__PATH, true, 0, 0, &name},
        {"system", TFOS__ANY, false, 0, 0, &system.object},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("find_files", parameters, args, kwargs, &kept) < 0)
        return NULL;
    if (system.object == Py_None) {
        Py_BEGIN_ALLOW_THREADS
        status = tfos_file_list_find(name, NULL, &found, &err);
        Py_END_ALLOW_THREADS
    } else {
        status = tfos_file_list_find(name, &system.base, &found, &err);
    }
    if (status == TFOS_OK)
        names = make_names(found);
    else if (!PyErr_Occurred())
        tfos__py_raise(status, &err);
    tfos_file_list_close(found);
    Py_DECREF(kept);
    return names;
}

/// The bytes of a str that is a name, or several; NULL with an exception.
static PyObject *encode(PyObject *name)
{
    PyObject *bytes = PyUnicode_EncodeFSDefault(name);

    if (bytes && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes)) {
        PyErr_Format(PyExc_ValueError, "%R has a null character", name);
        Py_CLEAR(bytes);
    }
    return bytes;
}

static PyObject *new_file(PyObject *module, PyObject *name)
{
    struct tfos_error err = {0};
    const char *path = NULL;
    PyObject *bytes = encode(name), *result = NULL;
    enum tfos_status status = TFOS_OK;

    (void)module;
    if (!bytes)
        return NULL;
    status = tfos_file_name_get_new(PyBytes_AsString(bytes), &path, &err);
    if (status < 0)
        tfos__py_raise(status, &err);
    else
        result = path ? PyUnicode_DecodeFSDefault(path) : Py_BuildValue("");
    Py_DECREF(bytes);
    return result;
}

static PyObject *look_at(PyObject *module, PyObject *name)
{
    struct tfos_error err = {0};
    struct tfos_file_info info;
    PyObject *bytes = encode(name);
    enum tfos_status status = TFOS_OK;

    (void)module;
    if (!bytes)
        return NULL;
    const char *text = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS
    struct tfos_file_system *system = tfos_file_system_of(text);
    status = system->look(system, text, &info, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    return status < 0 ? tfos__py_raise(status, &err)
                      : Py_BuildValue("iK", (int)info.kind, (unsigned long long)info.size);
}

static PyObject *set_hadoop_jars(PyObject *module, PyObject *folder)
{
    struct tfos_error err = {0};
    PyObject *bytes = encode(folder);
    enum tfos_status status = TFOS_OK;

    (void)module;
    if (!bytes)
        return NULL;
    status = tfos_hadoop_set_jars(PyBytes_AsString(bytes), &err);
    Py_DECREF(bytes);
    return status < 0 ? tfos__py_raise(status, &err) : Py_BuildValue("");
}

static PyObject *compression_of_name(PyObject *module, PyObject *name)
{
    struct tfos_error err = {0};
    enum tfos_compression compression = TFOS_COMPRESSION_NONE;
    PyObject *bytes = encode(name);
    enum tfos_status status = TFOS_OK;

    (void)module;
    if (!bytes)
        return NULL;
    status = tfos_record_compression_of_name(PyBytes_AsString(bytes), &compression, &err);
    Py_DECREF(bytes);
    return status < 0 ? tfos__py_raise(status, &err) : PyLong_FromLong(compression);
}

static PyObject *split_names(PyObject *module, PyObject *names)
{
    PyObject *bytes = encode(names), *list = bytes ? PyList_New(0) : NULL;
    const char *text = bytes ? PyBytes_AsString(bytes) : NULL;

    (void)module;
    while (list && text) {
        size_t size = tfos_file_names_first(text);
        PyObject *name = PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)size);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
        text = text[size] == ',' ? text + size + 1 : NULL;
    }
    Py_XDECREF(bytes);
    return list;
}

static PyObject *split_uri(PyObject *module, PyObject *name)
{
    PyObject *bytes = encode(name), *head = NULL, *path = NULL, *result = NULL;
    const char *text = bytes ? PyBytes_AsString(bytes) : NULL;

    (void)module;
    if (!text)
        return NULL;
    size_t offset = tfos_file_name_path_offset(text);
    head = PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)offset);
    path = head ? PyUnicode_DecodeFSDefault(text + offset) : NULL;
    if (path)
        result = PyTuple_Pack(2, head, path);
    Py_XDECREF(head);
    Py_XDECREF(path);
    Py_DECREF(bytes);
    return result;
}

PyMethodDef tfos__py_file_name_functions[] = {
    {"find_files", TFOS__KEYWORDS(find_files), "The files that a name matches."},
    {"new_file", new_file, METH_O, "The path of a file that is to be written."},
    {"look_at", look_at, METH_O, "What is there under a name, and its size."},
    {"set_hadoop_jars", set_hadoop_jars, METH_O, "Where Hadoop's jars are."},
    {"compression_of_name", compression_of_name, METH_O,
     "How a file of this name is to be written."},
    {"split_names", split_names, METH_O, "The names that commas divide."},
    {"split_uri", split_uri, METH_O, "Scheme and host of a URI, and its path."},
    {0},
};

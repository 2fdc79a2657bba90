// SPDX-License-Identifier: Apache-2.0
// Names are str, which Python makes of a file system's bytes and back. Invariant: while a file
// system of Python's is asked the GIL is held, and what it raises stays set until the end.
#include "file_finder.h"
#include "error.h"
#include "parameter.h"

#include <string.h>
#include <tfos/file_list.h>
#include <tfos/record.h>

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
    PyObject *answer = text != NULL ? PyObject_CallMethod(object, method, "O", text) : NULL;

    Py_XDECREF(text);
    return answer;
}

static enum tfos_status look(struct tfos_file_system *system, const char *name,
                             enum tfos_file_kind *kind, struct tfos_error *err)
{
    PyObject *answer = ask(system, "look", name);

    (void)err;
    if (answer == NULL)
        return TFOS_IO;
    *kind = (enum tfos_file_kind)PyLong_AsLong(answer);
    Py_DECREF(answer);
    return PyErr_Occurred() ? TFOS_IO : TFOS_OK;
}

static enum tfos_status add_entry(PyObject *entry,
                                  enum tfos_status (*add)(void *entries, const char *name,
                                                          enum tfos_file_kind kind,
                                                          struct tfos_error *err),
                                  void *entries, struct tfos_error *err)
{
    PyObject *name = NULL, *bytes = NULL;
    int kind = TFOS_FILE_NONE;
    enum tfos_status status = TFOS_IO;

    if (!PyArg_ParseTuple(entry, "Oi", &name, &kind))
        return status;
    bytes = PyUnicode_EncodeFSDefault(name);
    if (bytes != NULL)
        status = add(entries, PyBytes_AsString(bytes), (enum tfos_file_kind)kind, err);
    Py_XDECREF(bytes);
    return status;
}

static enum tfos_status list(struct tfos_file_system *system, const char *folder,
                             enum tfos_status (*add)(void *entries, const char *name,
                                                     enum tfos_file_kind kind,
                                                     struct tfos_error *err),
                             void *entries, struct tfos_error *err)
{
    PyObject *answer = ask(system, "list", folder);
    Py_ssize_t count = answer != NULL ? PyList_Size(answer) : -1;
    enum tfos_status status = count < 0 ? TFOS_IO : TFOS_OK;

    for (Py_ssize_t i = 0; status == TFOS_OK && i < count; i++)
        status = add_entry(PyList_GetItem(answer, i), add, entries, err);
    Py_XDECREF(answer);
    return status;
}

/// A list of str.
static PyObject *make_names(const struct tfos_file_list *found)
{
    PyObject *names = PyList_New(0);

    for (size_t i = 0; names != NULL && i < tfos_file_list_count(found); i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(tfos_file_list_get(found, i));
        if (name == NULL || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyObject *tfos__find_files(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct object_system system = {.base = {look, list}, .object = Py_None};
    struct tfos_file_list *found = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *name = NULL;
    PyObject *kept = NULL, *names = NULL;
    const struct tfos__parameter parameters[] = {
        {"name", TFOS__PATH, true, 0, 0, &name},
        {"system", TFOS__ANY, false, 0, 0, &system.object},
    };

    (void)module;
    if (tfos__parameters_read("find_files", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
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
        tfos__raise(status, &err);
    tfos_file_list_close(found);
    Py_DECREF(kept);
    return names;
}

PyObject *tfos__new_file(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    const char *name = NULL, *path = NULL;
    PyObject *kept = NULL, *result = NULL;
    const struct tfos__parameter parameters[] = {{"name", TFOS__PATH, true, 0, 0, &name}};

    (void)module;
    if (tfos__parameters_read("new_file", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return NULL;
    enum tfos_status status = tfos_file_name_get_new(name, &path, &err);
    if (status < 0)
        tfos__raise(status, &err);
    else
        result = path != NULL ? PyUnicode_DecodeFSDefault(path) : Py_BuildValue("");
    Py_DECREF(kept);
    return result;
}

PyObject *tfos__compression_of_name(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    enum tfos_compression compression = TFOS_COMPRESSION_NONE;
    const char *name = NULL;
    PyObject *kept = NULL;
    const struct tfos__parameter parameters[] = {{"name", TFOS__PATH, true, 0, 0, &name}};

    (void)module;
    if (tfos__parameters_read("compression_of_name", parameters, TFOS__PARAMETER_COUNT(parameters),
                              args, kwargs, &kept) < 0)
        return NULL;
    enum tfos_status status = tfos_record_compression_of_name(name, &compression, &err);
    Py_DECREF(kept);
    return status < 0 ? tfos__raise(status, &err) : PyLong_FromLong(compression);
}

PyObject *tfos__split_names(PyObject *module, PyObject *args, PyObject *kwargs)
{
    const char *names = NULL;
    PyObject *kept = NULL, *list = NULL;
    const struct tfos__parameter parameters[] = {{"names", TFOS__PATH, true, 0, 0, &names}};

    (void)module;
    if (tfos__parameters_read("split_names", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return NULL;
    list = PyList_New(0);
    while (list != NULL && names != NULL) {
        size_t size = tfos_file_names_first(names);
        PyObject *name = PyUnicode_DecodeFSDefaultAndSize(names, (Py_ssize_t)size);
        if (name == NULL || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
        names = names[size] == ',' ? names + size + 1 : NULL;
    }
    Py_DECREF(kept);
    return list;
}

PyObject *tfos__split_uri(PyObject *module, PyObject *args, PyObject *kwargs)
{
    const char *name = NULL;
    PyObject *kept = NULL, *head = NULL, *path = NULL, *result = NULL;
    const struct tfos__parameter parameters[] = {{"name", TFOS__PATH, true, 0, 0, &name}};

    (void)module;
    if (tfos__parameters_read("split_uri", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return NULL;
    size_t offset = tfos_file_name_path_offset(name);
    head = PyUnicode_DecodeFSDefaultAndSize(name, (Py_ssize_t)offset);
    path = head != NULL ? PyUnicode_DecodeFSDefault(name + offset) : NULL;
    if (path != NULL)
        result = PyTuple_Pack(2, head, path);
    Py_XDECREF(head);
    Py_XDECREF(path);
    Py_DECREF(kept);
    return result;
}

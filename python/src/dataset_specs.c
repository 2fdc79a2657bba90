// SPDX-License-Identifier: Apache-2.0
#include "dataset_specs.h"
#include "dataset_options.h"

/// A tuple of texts.
static PyObject *make_path(const struct tfos_tensor_spec *spec)
{
    PyObject *path = PyTuple_New(spec->depth);

    for (int i = 0; path != NULL && i < spec->depth; i++) {
        PyObject *name = PyUnicode_FromString(spec->path[i]);
        if (name == NULL || PyTuple_SetItem(path, i, name) < 0)
            Py_CLEAR(path);
    }
    return path;
}

/// A tuple of ints, None for what varies.
static PyObject *make_shape(const struct tfos_tensor_spec *spec)
{
    PyObject *shape = PyTuple_New(spec->rank);

    for (int i = 0; shape != NULL && i < spec->rank; i++) {
        PyObject *size = Py_None;
        if (spec->shape[i] < 0)
            Py_INCREF(size);
        else
            size = PyLong_FromLongLong(spec->shape[i]);
        if (size == NULL || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *make_spec(const struct tfos_tensor_spec *spec)
{
    PyObject *path = make_path(spec), *shape = make_shape(spec), *made = NULL;

    if (path != NULL && shape != NULL)
        made = Py_BuildValue("(OssO)", path, tfos__py_dataset_role_name(spec->role),
                             tfos__py_dataset_dtype_name(spec->dtype), shape);
    Py_XDECREF(path);
    Py_XDECREF(shape);
    return made;
}

PyObject *tfos__py_dataset_specs_make(const struct tfos_tensor_spec *specs, int64_t count,
                                   enum tfos_row_structure structure)
{
    PyObject *list = PyList_New(0);

    for (int64_t i = 0; list != NULL && i < count; i++) {
        PyObject *spec = make_spec(&specs[i]);
        if (spec == NULL || PyList_Append(list, spec) < 0)
            Py_CLEAR(list);
        Py_XDECREF(spec);
    }
    if (list == NULL)
        return NULL;
    return Py_BuildValue("(sN)", tfos__py_dataset_structure_name(structure), list);
}

// SPDX-License-Identifier: Apache-2.0
// The arguments of Dataset(), its structure, and the words for the library's enums.
#include "dataset_options.h"

#include <string.h>

#include "handle.h"
#include "parameter.h"

static const char *const uneven_names[] = {
    [TFOS_UNEVEN_IGNORE] = "ignore",
    [TFOS_UNEVEN_PAD] = "pad",
    [TFOS_UNEVEN_JOIN] = "join",
    [TFOS_UNEVEN_STOP] = "stop",
};

static const char *const form_names[] = {
    [TFOS_FORM_AUTO] = "auto",     [TFOS_FORM_DENSE] = "dense",   [TFOS_FORM_RAGGED] = "ragged",
    [TFOS_FORM_PADDED] = "padded", [TFOS_FORM_SPARSE] = "sparse",
};

/// As numpy and TensorFlow call them.
static const char *const dtype_names[] = {
    [TFOS_DTYPE_BOOL] = "bool",       [TFOS_DTYPE_INT8] = "int8",
    [TFOS_DTYPE_INT16] = "int16",     [TFOS_DTYPE_INT32] = "int32",
    [TFOS_DTYPE_INT64] = "int64",     [TFOS_DTYPE_UINT8] = "uint8",
    [TFOS_DTYPE_UINT16] = "uint16",   [TFOS_DTYPE_UINT32] = "uint32",
    [TFOS_DTYPE_UINT64] = "uint64",   [TFOS_DTYPE_FLOAT16] = "float16",
    [TFOS_DTYPE_FLOAT32] = "float32", [TFOS_DTYPE_FLOAT64] = "float64",
    [TFOS_DTYPE_STRING] = "string",
};

static const char *const role_names[] = {
    [TFOS_TENSOR_DENSE] = "dense",
    [TFOS_TENSOR_RAGGED_VALUES] = "ragged_values",
    [TFOS_TENSOR_ROW_SPLITS] = "row_splits",
    [TFOS_TENSOR_SPARSE_INDICES] = "sparse_indices",
    [TFOS_TENSOR_SPARSE_VALUES] = "sparse_values",
    [TFOS_TENSOR_SPARSE_SHAPE] = "sparse_shape",
    [TFOS_TENSOR_WEIGHTS] = "weights",
};

static const char *const structure_names[] = {
    [TFOS_ROW_TUPLE] = "tuple",
    [TFOS_ROW_DICT] = "dict",
    [TFOS_ROW_VALUE] = "value",
};

/// The number of `name` among `count` names; -1 with an exception.
static int find_name(const char *what, const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    PyErr_Format(PyExc_ValueError, "Dataset(): %s: there is no %s", what, name);
    return -1;
}

#define NAME_COUNT(names) ((int)(sizeof(names) / sizeof((names)[0])))

/// Text of a str, valid as long as `kept`; NULL with an exception.
static const char *read_text(PyObject *value, PyObject *(*encode)(PyObject *text), PyObject *kept)
{
    PyObject *bytes = encode(value);
    const char *text = NULL;

    if (!bytes)
        return NULL;
    if (strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes))
        PyErr_Format(PyExc_ValueError, "Dataset(): %R has a null character", value);
    else if (PyList_Append(kept, bytes) == 0)
        text = PyBytes_AsString(bytes);
    Py_DECREF(bytes);
    return text;
}

/// A shape, a tuple of ints or None. Its numbers are kept in a bytes object.
static int read_shape(struct tfos_dataset_column *column, PyObject *value, PyObject *kept)
{
    Py_ssize_t rank = value == Py_None ? 0 : PyTuple_Size(value);
    int64_t shape[TFOS_DATASET_MAX_RANK];
    PyObject *bytes = NULL;
    int result = 0;

    if (rank < 0)
        return -1;
    if (value == Py_None)
        return 0;
    if (rank >= TFOS_DATASET_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "Dataset(): the shape of column %s has more than %d numbers",
                     column->name, TFOS_DATASET_MAX_RANK - 1);
        return -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GetItem(value, i));
        if (shape[i] == -1 && PyErr_Occurred())
            return -1;
    }
    bytes = PyBytes_FromStringAndSize((const char *)shape, rank * (Py_ssize_t)sizeof(shape[0]));
    if (!bytes)
        return -1;
    column->shape = (const int64_t *)(void *)PyBytes_AsString(bytes);
    column->rank = (int)rank;
    result = PyList_Append(kept, bytes);
    Py_DECREF(bytes);
    return result;
}

/// One (name, form, shape, null_value).
static int read_column(struct tfos_dataset_column *column, PyObject *value, PyObject *kept)
{
    PyObject *name = NULL, *form = NULL, *shape = NULL, *null_value = NULL;
    const char *form_name = NULL;
    int number = -1;

    if (!PyArg_ParseTuple(value, "OOOO", &name, &form, &shape, &null_value))
        return -1;
    column->name = read_text(name, PyUnicode_AsUTF8String, kept);
    form_name = read_text(form, PyUnicode_AsUTF8String, kept);
    if (!column->name || !form_name)
        return -1;
    number = find_name("form", form_name, form_names, NAME_COUNT(form_names));
    if (number < 0)
        return -1;
    column->form = (enum tfos_column_form)number;
    if (null_value != Py_None) {
        column->null_value = read_text(null_value, PyUnicode_AsUTF8String, kept);
        if (!column->null_value)
            return -1;
    }
    return read_shape(column, shape, kept);
}

int tfos__py_dataset_columns_read(struct tfos__py_dataset_options *options, PyObject *columns)
{
    Py_ssize_t count = columns ? PyList_Size(columns) : 0;

    if (count < 0)
        return -1;
    options->columns = PyMem_Calloc((size_t)count + 1, sizeof(*options->columns));
    if (!options->columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_column(&options->columns[i], PyList_GetItem(columns, i), options->kept) < 0)
            return -1;
    }
    options->library.columns = options->columns;
    options->library.column_count = count;
    return 0;
}

int tfos__py_dataset_texts_read(PyObject *list, PyObject *(*encode)(PyObject *text), PyObject *kept,
                                const char ***texts, int64_t *count)
{
    bool is_given = list && list != Py_None;
    Py_ssize_t size = is_given ? PyList_Size(list) : 0;

    *texts = NULL;
    *count = 0;
    if (!is_given)
        return 0;
    if (size < 0)
        return -1;
    *texts = PyMem_Calloc((size_t)size + 1, sizeof(**texts));
    if (!*texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        (*texts)[i] = read_text(PyList_GetItem(list, i), encode, kept);
        if (!(*texts)[i])
            return -1;
    }
    *count = size;
    return 0;
}

static int read_selection(struct tfos__py_dataset_options *options, PyObject *selection)
{
    int result =
        tfos__py_dataset_texts_read(selection, PyUnicode_AsUTF8String, options->kept,
                                    &options->selection, &options->library.selection_count);

    options->library.selection = options->selection;
    return result;
}

int tfos__py_dataset_uneven_read(struct tfos__py_dataset_options *options, const char *uneven)
{
    int number = find_name("uneven", uneven, uneven_names, NAME_COUNT(uneven_names));

    if (number < 0)
        return -1;
    options->library.uneven = (enum tfos_uneven)number;
    return 0;
}

int tfos__py_dataset_options_read(struct tfos__py_dataset_options *options, PyObject *args,
                                  PyObject *kwargs)
{
    struct tfos_dataset_options *library = &options->library;
    PyObject *columns = NULL, *selection = NULL;
    const char *uneven = "ignore";
    int64_t seed = 0;
    const struct tfos__py_parameter parameters[] = {
        {"trainer", TFOS__ANY, true, 0, 0, &options->trainer},
        {"batch_size", TFOS__INT, true, 1, INT32_MAX, &library->batch_size},
        {"drop_remainder", TFOS__BOOL, false, 0, 0, &library->drop_remainder},
        {"uneven", TFOS__TEXT, false, 0, 0, &uneven},
        {"columns", TFOS__ANY, false, 0, 0, &columns},
        {"selection", TFOS__ANY, false, 0, 0, &selection},
        {"null_value", TFOS__OPTIONAL_TEXT, false, 0, 0, &library->null_value},
        {"shuffle_rows", TFOS__INT, false, 0, INT64_MAX, &library->shuffle_rows},
        {"seed", TFOS__INT, false, INT64_MIN, INT64_MAX, &seed},
        {"queue", TFOS__TEXT, false, 0, 0, &options->queue},
        {"like", TFOS__ANY, false, 0, 0, &options->like},
        {"agree_timeout_ms", TFOS__INT, false, 0, INT64_MAX, &options->agree_timeout_ms},
        {0},
    };

    *options = (struct tfos__py_dataset_options){.queue = "input", .like = Py_None};
    if (tfos__py_parameters_read("Dataset", parameters, args, kwargs, &options->kept) < 0)
        return -1;
    if (tfos__py_dataset_uneven_read(options, uneven) < 0)
        return -1;
    library->seed = (uint64_t)seed;
    return tfos__py_dataset_columns_read(options, columns) < 0 ? -1
                                                               : read_selection(options, selection);
}

void tfos__py_dataset_options_clear(struct tfos__py_dataset_options *options)
{
    PyMem_Free(options->columns);
    PyMem_Free(options->selection);
    Py_XDECREF(options->kept);
}

// ---- structure

/// A tuple of texts.
static PyObject *make_path(const struct tfos_tensor_spec *spec)
{
    PyObject *path = PyTuple_New(spec->depth);

    for (int i = 0; path && i < spec->depth; i++) {
        PyObject *name = PyUnicode_FromString(spec->path[i]);
        if (!name || PyTuple_SetItem(path, i, name) < 0)
            Py_CLEAR(path);
    }
    return path;
}

/// A tuple of ints, None for what varies.
static PyObject *make_shape(const struct tfos_tensor_spec *spec)
{
    PyObject *shape = PyTuple_New(spec->rank);

    for (int i = 0; shape && i < spec->rank; i++) {
        PyObject *size = Py_None;
        if (spec->shape[i] < 0)
            Py_INCREF(size);
        else
            size = PyLong_FromLongLong(spec->shape[i]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *make_spec(const struct tfos_tensor_spec *spec)
{
    PyObject *path = make_path(spec), *shape = make_shape(spec), *made = NULL;

    if (path && shape)
        made =
            Py_BuildValue("(OssO)", path, role_names[spec->role], dtype_names[spec->dtype], shape);
    Py_XDECREF(path);
    Py_XDECREF(shape);
    return made;
}

PyObject *tfos__py_dataset_specs_make(const struct tfos_tensor_spec *specs, int64_t count,
                                      enum tfos_row_structure structure)
{
    PyObject *list = PyList_New(0);

    for (int64_t i = 0; list && i < count; i++) {
        PyObject *spec = make_spec(&specs[i]);
        if (!spec || PyList_Append(list, spec) < 0)
            Py_CLEAR(list);
        Py_XDECREF(spec);
    }
    if (!list)
        return NULL;
    return Py_BuildValue("(sN)", structure_names[structure], list);
}

PyObject *tfos__py_record_counts_tuple(const struct tfos_record_counts *counts)
{
    return Py_BuildValue("(KKKK)", (unsigned long long)counts->records,
                         (unsigned long long)counts->bytes, (unsigned long long)counts->damages,
                         (unsigned long long)counts->skipped_bytes);
}

PyObject *tfos__py_dataset_number(PyObject *self, void *closure)
{
    struct tfos__py_call call;

    (void)closure;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    int64_t number = tfos_dataset_number(call.object);
    return tfos__py_call_leave(&call) < 0 ? NULL : PyLong_FromLongLong(number);
}

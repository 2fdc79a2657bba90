// SPDX-License-Identifier: Apache-2.0
// A column is never taken for another: where rows have names, a name that is not there is an error.
#include "column_selection.h"

#include "error.h"
#include "row_unpacker.h"

static int refuse(const struct tfos__py_row_origin *origin, int64_t row, PyObject *what)
{
    if (what)
        tfos__py_raise_format(TFOS_INVALID, "feed: partition %lld, row %lld: %U",
                              (long long)origin->partition, (long long)(origin->first_row + row),
                              what);
    Py_XDECREF(what);
    return -1;
}

static int64_t find_name(PyObject *names, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        if (PyUnicode_Compare(PyTuple_GetItem(names, i), name) == 0)
            return i;
    }
    return -1;
}

int tfos__py_selection_find(PyObject *names, const struct tfos__py_row_schema *rows,
                            const struct tfos__py_row_origin *origin, int64_t row, int64_t *places)
{
    int64_t count = PyTuple_Size(names);

    if (rows->kind == TFOS__ROW_VALUE)
        return refuse(origin, row,
                      PyUnicode_FromString("the row is one value, or has other columns than those "
                                           "before it, and input_mapping needs columns: feed "
                                           "tuples, dicts or Rows of one kind"));
    if (!tfos__py_row_kind_has_names(rows->kind) && rows->column_count < count)
        return refuse(origin, row,
                      PyUnicode_FromFormat("the row has %lld columns and no names, and "
                                           "input_mapping names %lld: feed tuples of all of "
                                           "them, in the order of their sorted names",
                                           (long long)rows->column_count, (long long)count));
    for (int64_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, (Py_ssize_t)i);
        places[i] = tfos__py_row_kind_has_names(rows->kind) ? find_name(rows->names, name) : i;
        if (places[i] < 0)
            return refuse(origin, row,
                          PyUnicode_FromFormat("there is no column %R, which input_mapping names: "
                                               "the row has %R",
                                               name, rows->names));
    }
    return 0;
}

/// A column of a row that is an object of any class, a new reference.
static PyObject *find_item(PyObject *row, PyObject *name, Py_ssize_t index)
{
    if (PyDict_Check(row) || PyObject_HasAttrString(row, "__fields__") ||
        (PyObject_HasAttrString(row, "keys") && PyObject_HasAttrString(row, "__getitem__")))
        return PyObject_GetItem(row, name);
    if (PyObject_HasAttrString(row, "__dataclass_fields__") ||
        (PyTuple_Check(row) && PyObject_HasAttrString(row, "_fields")))
        return PyObject_GetAttr(row, name);
    return PySequence_GetItem(row, index);
}

static int append_items(PyObject *names, PyObject *row, const struct tfos__py_row_origin *origin,
                        int64_t number, PyObject *lists)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        PyObject *item = find_item(row, name, i);
        int result = item ? PyList_Append(PyTuple_GetItem(lists, i), item) : -1;
        Py_XDECREF(item);
        if (!item && PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Clear();
            return refuse(origin, number,
                          PyUnicode_FromFormat("there is no column %R, which input_mapping names, "
                                               "in the row, which is of class %R",
                                               name, (PyObject *)Py_TYPE(row)));
        }
        if (result < 0)
            return -1;
    }
    return 0;
}

static int unpack_objects(PyObject *names, const struct tfos__py_row_schema *rows,
                          const struct ArrowArray *array, int64_t start, int64_t count,
                          const struct tfos__py_row_origin *origin, PyObject *lists)
{
    for (int64_t i = start; i < start + count; i++) {
        PyObject *row =
            tfos__py_unpack_value(&rows->columns[0], array->children[0], array->offset + i);
        int result = row ? append_items(names, row, origin, i, lists) : -1;
        Py_XDECREF(row);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int append_values(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t start, int64_t count, PyObject *list)
{
    for (int64_t i = start; i < start + count; i++) {
        PyObject *value = tfos__py_unpack_value(column, array, i);
        int result = value ? PyList_Append(list, value) : -1;
        Py_XDECREF(value);
        if (result < 0)
            return -1;
    }
    return 0;
}

int tfos__py_selection_unpack(PyObject *names, const struct tfos__py_row_schema *rows,
                              const struct ArrowArray *array, int64_t start, int64_t count,
                              const struct tfos__py_row_origin *origin, PyObject *lists)
{
    Py_ssize_t column_count = PyTuple_Size(names);
    int64_t *places = NULL;
    int result = 0;

    if (rows->kind == TFOS__ROW_VALUE)
        return unpack_objects(names, rows, array, start, count, origin, lists);
    places = PyMem_Calloc((size_t)column_count + 1, sizeof(*places));
    if (!places) {
        PyErr_NoMemory();
        return -1;
    }
    result = tfos__py_selection_find(names, rows, origin, start, places);
    for (Py_ssize_t i = 0; i < column_count && result == 0; i++)
        result = append_values(&rows->columns[places[i]], array->children[places[i]],
                               array->offset + start, count, PyTuple_GetItem(lists, i));
    PyMem_Free(places);
    return result;
}

// SPDX-License-Identifier: Apache-2.0
// Plain columns into numpy arrays. Invariant: numbers have no None; where a caller meets one, it
// gets no array.
#include "numpy.h"
#include "plain.h"

#include <string.h>

static bool is_list(const struct tfos__py_column *column)
{
    return column->plain == TFOS__PLAIN_LIST || column->plain == TFOS__PLAIN_FIXED_LIST;
}

/// The first of the values that is None itself, or -1.
static int64_t find_none(const struct ArrowArray *array, int64_t index, int64_t count)
{
    if (array->null_count == 0 || array->buffers[0] == NULL)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (tfos__arrow_is_null(array, index + i))
            return i;
    }
    return -1;
}

/// The first of the values that is None or has one inside, or -1. Lists have one length.
static int64_t find_null(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t index, int64_t count)
{
    int64_t found = find_none(array, index, count);
    int64_t before = found < 0 ? count : found, first = 0, size = 0;

    if (is_list(column) && before > 0)
        tfos__py_plain_find(column, array, index, &first, &size);
    if (size > 0) {
        int64_t inside = find_null(&column->children[0], array->children[0], first, before * size);
        if (inside >= 0)
            found = inside / size;
    }
    return found;
}

/// Where the elements of `count` lists begin, and how many each has: false when that differs.
static bool find_length(const struct tfos__py_column *column, const struct ArrowArray *array,
                        int64_t index, int64_t count, int64_t *first, int64_t *size)
{
    *first = 0;
    *size = column->plain == TFOS__PLAIN_FIXED_LIST ? column->list_size : 0;
    if (count > 0)
        tfos__py_plain_find(column, array, index, first, size);
    for (int64_t i = 1; i < count; i++) {
        int64_t other_first = 0, other_size = 0;
        tfos__py_plain_find(column, array, index + i, &other_first, &other_size);
        if (other_size != *size)
            return false;
    }
    return true;
}

bool tfos__py_plain_find_shape(const struct tfos__py_column *column,
                            const struct ArrowArray *array, int64_t index, int64_t count,
                            struct tfos__py_value_type *type)
{
    int64_t sizes[TFOS__MAX_DIMENSIONS];
    int depth = 0, inner = 0;

    for (; !tfos__py_value_type_is_numeric(&column->type); column = &column->children[0]) {
        int64_t first = 0;
        if (!is_list(column) || depth == TFOS__MAX_DIMENSIONS ||
            find_none(array, index, count) >= 0 ||
            !find_length(column, array, index, count, &first, &sizes[depth]))
            return false;
        index = first;
        count *= sizes[depth++];
        array = array->children[0];
    }
    inner = column->type.dimension_count;
    if (depth + inner > TFOS__MAX_DIMENSIONS)
        return false;
    *type = column->type;
    if (depth > 0) {
        type->kind = TFOS__VALUE_ARRAY;
        type->is_fixed = true;
        type->dimension_count = depth + inner;
        memcpy(type->shape, sizes, (size_t)depth * sizeof(sizes[0]));
        memcpy(&type->shape[depth], column->type.shape, (size_t)inner * sizeof(sizes[0]));
    }
    return true;
}

int64_t tfos__py_plain_copy(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t index, int64_t count, void *to)
{
    int64_t null = find_null(column, array, index, count), place = 0, size = 0;
    const unsigned char *from = NULL;

    if (null >= 0)
        return null;
    for (; is_list(column) && count > 0; column = &column->children[0]) {
        tfos__py_plain_find(column, array, index, &index, &size);
        count *= size;
        array = array->children[0];
    }
    if (count == 0)
        return -1;
    place = array->offset + index;
    from = array->buffers[1];
    if (column->plain == TFOS__PLAIN_BOOL) {
        for (int64_t i = 0; i < count; i++, place++)
            ((unsigned char *)to)[i] = from[place / 8] >> (place % 8) & 1;
    } else if (column->plain == TFOS__PLAIN_DATE) { // numpy's have 8 bytes
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)to)[i] = ((const int32_t *)array->buffers[1])[place + i];
    } else {
        memcpy(to, from + place * column->width, (size_t)count * (size_t)column->width);
    }
    return -1;
}

/// An array of values of this type.
static PyObject *make_numbers(const struct tfos__py_column *column,
                              const struct tfos__py_value_type *type, const struct ArrowArray *array,
                              int64_t index, int64_t count)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    PyObject *dtype = numpy != NULL ? tfos__py_numpy_dtype(numpy, type) : NULL, *numbers = NULL;
    void *data = NULL;

    if (dtype != NULL)
        numbers = tfos__py_numpy_new_array(numpy, type, dtype, count, &data);
    Py_XDECREF(dtype);
    if (numbers != NULL && tfos__py_plain_copy(column, array, index, count, data) >= 0)
        Py_CLEAR(numbers);
    return numbers;
}

static PyObject *make_arrays(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index, int64_t count);

static PyObject *make_objects(const struct tfos__py_column *column,
                              const struct ArrowArray *array, int64_t index, int64_t count)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    PyObject *objects = numpy != NULL ? tfos__py_numpy_new_objects(numpy, (Py_ssize_t)count) : NULL;

    for (int64_t i = 0; objects != NULL && i < count; i++) {
        PyObject *object = tfos__py_plain_object(column, array, index + i);
        if (object == NULL || PySequence_SetItem(objects, (Py_ssize_t)i, object) < 0)
            Py_CLEAR(objects);
        Py_XDECREF(object);
    }
    return objects;
}

/// A dict of the fields' arrays.
static PyObject *make_fields(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index, int64_t count)
{
    PyObject *fields = NULL;

    for (int64_t i = index; i < index + count; i++) {
        if (tfos__arrow_is_null(array, i))
            return NULL;
    }
    fields = PyDict_New();
    for (int64_t i = 0; fields != NULL && i < column->child_count; i++) {
        PyObject *values =
            make_arrays(&column->children[i], array->children[i], array->offset + index, count);
        if (values == NULL ||
            PyDict_SetItem(fields, PyTuple_GetItem(column->names, (Py_ssize_t)i), values) < 0)
            Py_CLEAR(fields);
        Py_XDECREF(values);
    }
    return fields;
}

/// `count` values as an array of that length, lists of numbers of one length as one of more
/// dimensions, structs as a dict of such. NULL without an exception:
/// as object().
static PyObject *make_arrays(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index, int64_t count)
{
    struct tfos__py_value_type type;

    if (tfos__py_plain_find_shape(column, array, index, count, &type))
        return make_numbers(column, &type, array, index, count);
    if (column->plain == TFOS__PLAIN_STRUCT)
        return make_fields(column, array, index, count);
    return make_objects(column, array, index, count);
}

PyObject *tfos__py_plain_object(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index)
{
    int64_t first = 0, count = 0;

    if (!is_list(column) || tfos__arrow_is_null(array, index))
        return tfos__py_plain_value(column, array, index);
    tfos__py_plain_find(column, array, index, &first, &count);
    return make_arrays(&column->children[0], array->children[0], first, count);
}

// SPDX-License-Identifier: Apache-2.0
// Invariant: elements of lists of one length lie one behind the other, so that they are copied as
// one piece.
#include "column_array.h"

#include <string.h>

#include "numpy.h"
#include "row_unpacker.h"

/// The first of the values that is None or has one inside, or -1. Lists have one length.
static int64_t find_null(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t index, int64_t count)
{
    int64_t found = tfos__arrow_find_null(array, index, count);
    int64_t before = found < 0 ? count : found;

    if (!tfos__py_column_is_list(column) || before == 0)
        return found;
    struct tfos__arrow_span span = tfos__arrow_lists(&column->arrow, array, index, before);
    int64_t inside =
        span.count > 0 ? find_null(&column->children[0], array->children[0], span.first, span.count)
                       : -1;
    return inside >= 0 ? inside / (span.count / before) : found;
}

/// Steps down to the elements of `count` lists, whose length is `*size`: false when that differs or
/// one is None. Whoever unpacks lists that leave their column says that they do.
static bool step_down(const struct tfos__py_column *column, const struct ArrowArray *array,
                      int64_t *index, int64_t *count, int64_t *size)
{
    struct tfos__arrow_span span = {0};

    if (tfos__arrow_find_null(array, *index, *count) >= 0)
        return false;
    *size = column->arrow.layout == TFOS__ARROW_FIXED_LIST ? column->arrow.list_size : 0;
    if (*count > 0)
        *size = tfos__arrow_list(&column->arrow, array, *index).count;
    for (int64_t i = 1; i < *count && column->arrow.layout == TFOS__ARROW_OFFSETS; i++) {
        if (tfos__arrow_list(&column->arrow, array, *index + i).count != *size)
            return false;
    }
    if (*count > 0)
        span = tfos__arrow_lists(&column->arrow, array, *index, *count);
    *index = span.first;
    *count = span.count;
    return span.first >= 0 && *size >= 0 && span.first <= array->children[0]->length - span.count;
}

bool tfos__py_column_array_find_shape(const struct tfos__py_column *column,
                                      const struct ArrowArray *array, int64_t index, int64_t count,
                                      struct tfos__py_value_type *type)
{
    int64_t sizes[TFOS__MAX_DIMENSIONS];
    int depth = 0, inner = 0;

    for (; !tfos__py_value_type_is_numeric(&column->type); column = &column->children[0]) {
        if (!tfos__py_column_is_list(column) || depth == TFOS__MAX_DIMENSIONS ||
            !step_down(column, array, &index, &count, &sizes[depth]))
            return false;
        depth++;
        array = array->children[0];
    }
    inner = column->type.dimension_count;
    if (depth + inner > TFOS__MAX_DIMENSIONS)
        return false;
    *type = column->type;
    if (depth > 0) {
        *type = tfos__py_value_type_elements(&column->type);
        type->kind = TFOS__VALUE_ARRAY;
        type->is_fixed = true;
        type->dimension_count = depth + inner;
        memcpy(type->shape, sizes, (size_t)depth * sizeof(sizes[0]));
        memcpy(&type->shape[depth], column->type.shape, (size_t)inner * sizeof(sizes[0]));
    }
    return true;
}

int64_t tfos__py_column_array_copy(const struct tfos__py_column *column,
                                   const struct ArrowArray *array, int64_t index, int64_t count,
                                   void *to)
{
    int64_t null = find_null(column, array, index, count);

    if (null >= 0)
        return null;
    for (; tfos__py_column_is_list(column) && count > 0; column = &column->children[0]) {
        struct tfos__arrow_span span = tfos__arrow_lists(&column->arrow, array, index, count);
        index = span.first;
        count = span.count;
        array = array->children[0];
    }
    if (count == 0)
        return -1;
    if (column->arrow.kind == TFOS__ARROW_BOOL) {
        for (int64_t i = 0; i < count; i++)
            ((bool *)to)[i] = tfos__arrow_bit(array->buffers[1], array->offset + index + i);
    } else if (column->arrow.kind == TFOS__ARROW_DATE) { // numpy's have 8 bytes
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)to)[i] = tfos__arrow_integer(&column->arrow, array, index + i);
    } else {
        memcpy(to, tfos__arrow_value(&column->arrow, array, index),
               (size_t)(count * (column->arrow.width / 8)));
    }
    return -1;
}

/// An array of values of this type.
static PyObject *make_numbers(const struct tfos__py_column *column,
                              const struct tfos__py_value_type *type,
                              const struct ArrowArray *array, int64_t index, int64_t count)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    PyObject *dtype = numpy ? tfos__py_numpy_dtype(numpy, type) : NULL, *numbers = NULL;
    void *data = NULL;

    if (dtype)
        numbers = tfos__py_numpy_new_array(numpy, type, dtype, count, &data);
    Py_XDECREF(dtype);
    if (numbers && tfos__py_column_array_copy(column, array, index, count, data) >= 0)
        Py_CLEAR(numbers);
    return numbers;
}

static PyObject *make_objects(const struct tfos__py_column *column, const struct ArrowArray *array,
                              int64_t index, int64_t count)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    PyObject *objects = numpy ? tfos__py_numpy_new_objects(numpy, (Py_ssize_t)count) : NULL;

    for (int64_t i = 0; objects && i < count; i++) {
        PyObject *object = tfos__py_column_array_object(column, array, index + i);
        if (!object || PySequence_SetItem(objects, (Py_ssize_t)i, object) < 0)
            Py_CLEAR(objects);
        Py_XDECREF(object);
    }
    return objects;
}

/// `count` values as an array of that length, lists of numbers of one length as one of more
/// dimensions, structs as a dict of such. NULL without an exception: as object().
static PyObject *make_array(const struct tfos__py_column *column, const struct ArrowArray *array,
                            int64_t index, int64_t count)
{
    struct tfos__py_value_type type;
    PyObject *fields = NULL;

    if (tfos__py_column_array_find_shape(column, array, index, count, &type))
        return make_numbers(column, &type, array, index, count);
    if (!tfos__py_column_is_struct(column))
        return make_objects(column, array, index, count);
    if (tfos__arrow_find_null(array, index, count) >= 0)
        return NULL;
    fields = PyDict_New();
    for (int64_t i = 0; fields && i < column->child_count; i++) {
        PyObject *values =
            make_array(&column->children[i], array->children[i], array->offset + index, count);
        if (!values ||
            PyDict_SetItem(fields, PyTuple_GetItem(column->names, (Py_ssize_t)i), values) < 0)
            Py_CLEAR(fields);
        Py_XDECREF(values);
    }
    return fields;
}

PyObject *tfos__py_column_array_object(const struct tfos__py_column *column,
                                       const struct ArrowArray *array, int64_t index)
{
    // Of what was packed only numbers become arrays, and arrays are some already.
    bool is_value =
        !tfos__py_column_is_list(column) ||
        (column->is_packed && (column->type.kind == TFOS__VALUE_ARRAY ||
                               tfos__py_value_type_elements(&column->type).letter == '\0'));
    struct tfos__arrow_span span;

    if (is_value || tfos__arrow_is_null(array, index))
        return tfos__py_unpack_value(column, array, index);
    if (!tfos__py_find_list(column, array, index, &span))
        return NULL;
    return make_array(&column->children[0], array->children[0], span.first, span.count);
}

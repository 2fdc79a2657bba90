// SPDX-License-Identifier: Apache-2.0
// Columns into rows. Objects are made new for each row and share nothing with the batch, so that
// the batch's memory can go back to its writer at once.
#include "row_unpacker.h"
#include "collector.h"
#include "error.h"
#include "named_row.h"
#include "numpy.h"
#include "pickle.h"
#include "plain.h"
#include "spark_value.h"

#include <string.h>

/// The place of the variable-size element `index`, which counts from the start of the buffers.
static const char *find_bytes(const struct ArrowArray *elements, int64_t index, Py_ssize_t *size)
{
    const int64_t *ends = elements->buffers[1];

    *size = (Py_ssize_t)(ends[index + 1] - ends[index]);
    return (const char *)elements->buffers[2] + ends[index];
}

static PyObject *make_bool(const struct ArrowArray *elements, int64_t index)
{
    return PyBool_FromLong(((const unsigned char *)elements->buffers[1])[index]);
}

static PyObject *make_int(const struct ArrowArray *elements, int64_t index)
{
    return PyLong_FromLongLong(((const int64_t *)elements->buffers[1])[index]);
}

static PyObject *make_float(const struct ArrowArray *elements, int64_t index)
{
    return PyFloat_FromDouble(((const double *)elements->buffers[1])[index]);
}

static PyObject *make_text(const struct ArrowArray *elements, int64_t index)
{
    Py_ssize_t size = 0;
    const char *data = find_bytes(elements, index, &size);

    return PyUnicode_DecodeUTF8(data, size, NULL);
}

static PyObject *make_bytes(const struct ArrowArray *elements, int64_t index)
{
    Py_ssize_t size = 0;
    const char *data = find_bytes(elements, index, &size);

    return PyBytes_FromStringAndSize(data, size);
}

static PyObject *make_opaque(const struct ArrowArray *elements, int64_t index)
{
    Py_ssize_t size = 0;
    const char *data = find_bytes(elements, index, &size);

    return tfos__py_pickle_load(data, size);
}

typedef PyObject *element_maker(const struct ArrowArray *elements, int64_t index);

static element_maker *maker_of(enum tfos__py_value_kind kind)
{
    switch (kind) {
    case TFOS__VALUE_BOOL:
        return make_bool;
    case TFOS__VALUE_INT:
        return make_int;
    case TFOS__VALUE_FLOAT:
        return make_float;
    case TFOS__VALUE_TEXT:
        return make_text;
    case TFOS__VALUE_BYTES:
        return make_bytes;
    default:
        return make_opaque;
    }
}

/// The elements of the sequence at `place` of the column's buffers. -1 with an exception.
static int find_elements(const struct tfos__py_value_type *type, const struct ArrowArray *column,
                         int64_t place, int64_t *first, int64_t *count)
{
    const struct ArrowArray *elements = column->children[0];
    const int64_t *ends = NULL;

    if (type->is_fixed) {
        *count = tfos__py_value_type_item_count(type);
        *first = elements->offset + place * *count;
        return 0;
    }
    ends = column->buffers[1];
    *count = ends[place + 1] - ends[place];
    *first = elements->offset + ends[place];
    if (*count >= 0 && ends[place] >= 0 && ends[place + 1] <= elements->length)
        return 0;
    tfos__py_raise_format(TFOS_CORRUPT, "feed: a batch cannot be unpacked: a list leaves its column");
    return -1;
}

/// The loop that next_rows() lives by.
static int fill_floats(PyObject *sequence, int (*set)(PyObject *, Py_ssize_t, PyObject *),
                       const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = PyFloat_FromDouble(from[i]);
        if (item == NULL || set(sequence, (Py_ssize_t)i, item) < 0)
            return -1;
    }
    return 0;
}

static int fill(PyObject *sequence, int (*set)(PyObject *, Py_ssize_t, PyObject *),
                enum tfos__py_value_kind kind, const struct ArrowArray *elements, int64_t first,
                int64_t count)
{
    element_maker *make = maker_of(kind);

    if (kind == TFOS__VALUE_FLOAT)
        return fill_floats(sequence, set, (const double *)elements->buffers[1] + first, count);
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = make(elements, first + i);
        if (item == NULL || set(sequence, (Py_ssize_t)i, item) < 0)
            return -1;
    }
    return 0;
}

static PyObject *make_array(const struct tfos__py_column *layout,
                            const struct ArrowArray *column, int64_t place)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct tfos__py_value_type type = layout->type;
    size_t width = (size_t)type.itemsize;
    int64_t first = 0, count = 0;
    PyObject *array = NULL;
    void *data = NULL;

    if (numpy == NULL || find_elements(&type, column, place, &first, &count) < 0)
        return NULL;
    if (!type.is_fixed)
        type.shape[0] = count;
    array = tfos__py_numpy_new_array(numpy, &type, layout->dtype, -1, &data);
    if (array != NULL && count > 0)
        memcpy(data, (const char *)column->children[0]->buffers[1] + (size_t)first * width,
               (size_t)count * width);
    return array;
}

/// A list or tuple of numpy's scalars.
static PyObject *make_scalars(const struct tfos__py_column *layout,
                              const struct ArrowArray *column, int64_t place)
{
    struct tfos__py_column as_array = *layout;
    PyObject *array = NULL, *scalars = NULL;

    as_array.type.kind = TFOS__VALUE_ARRAY;
    as_array.type.dimension_count = 1;
    array = make_array(&as_array, column, place);
    if (array != NULL)
        scalars = layout->type.kind == TFOS__VALUE_LIST ? PySequence_List(array)
                                                        : PySequence_Tuple(array);
    Py_XDECREF(array);
    return scalars;
}

static PyObject *make_sequence(const struct tfos__py_column *layout,
                               const struct ArrowArray *column, int64_t place)
{
    const struct tfos__py_value_type *type = &layout->type;
    const struct ArrowArray *elements = column->children[0];
    bool is_list = type->kind == TFOS__VALUE_LIST;
    int (*set)(PyObject *, Py_ssize_t, PyObject *) = is_list ? PyList_SetItem : PyTuple_SetItem;
    PyObject *sequence = NULL;
    int64_t first = 0, count = 0;

    if (type->item == TFOS__VALUE_SCALAR)
        return make_scalars(layout, column, place);
    if (find_elements(type, column, place, &first, &count) < 0)
        return NULL;
    if (type->item == TFOS__VALUE_NULL && count > 0)
        return tfos__py_raise_format(
            TFOS_CORRUPT,
            "feed: a batch cannot be unpacked: a list that says it is empty has "
            "%lld elements",
            (long long)count);
    sequence = is_list ? PyList_New((Py_ssize_t)count) : PyTuple_New((Py_ssize_t)count);
    if (sequence != NULL && fill(sequence, set, type->item, elements, first, count) < 0)
        Py_CLEAR(sequence);
    return sequence;
}

static PyObject *make_scalar(const struct tfos__py_column *layout,
                             const struct ArrowArray *column, int64_t place)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct tfos__py_value_type type = {.kind = TFOS__VALUE_ARRAY, .is_fixed = true};
    PyObject *array = NULL, *index = NULL, *scalar = NULL;
    void *data = NULL;

    // An array of no dimension, indexed by (), is the scalar, bit for bit whatever its type.
    array = numpy != NULL ? tfos__py_numpy_new_array(numpy, &type, layout->dtype, -1, &data) : NULL;
    if (array == NULL)
        return NULL;
    memcpy(data, (const char *)column->buffers[1] + (size_t)place * (size_t)layout->type.itemsize,
           (size_t)layout->type.itemsize);
    index = PyTuple_New(0);
    if (index != NULL)
        scalar = PyObject_GetItem(array, index);
    Py_XDECREF(index);
    Py_DECREF(array);
    return scalar;
}

/// The original of a value where there is one, else what the value itself makes.
static PyObject *make_original(const struct tfos__py_column *layout,
                               const struct ArrowArray *column, int64_t place)
{
    int child = tfos__arrow_is_null(column->children[1], place) ? 0 : 1;

    return tfos__py_unpack_value(&layout->children[child], column->children[child], place);
}

PyObject *tfos__py_unpack_value(const struct tfos__py_column *layout,
                             const struct ArrowArray *column, int64_t index)
{
    int64_t place = column->offset + index;

    if (layout->has_originals)
        return make_original(layout, column, place);
    if (layout->plain != TFOS__PLAIN_NONE)
        return tfos__py_plain_value(layout, column, index);
    if (layout->type.kind == TFOS__VALUE_NULL || tfos__arrow_is_null(column, index)) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    switch (layout->type.kind) {
    case TFOS__VALUE_LIST:
    case TFOS__VALUE_TUPLE:
        return make_sequence(layout, column, place);
    case TFOS__VALUE_ARRAY:
        return make_array(layout, column, place);
    case TFOS__VALUE_SCALAR:
        return make_scalar(layout, column, place);
    default:
        return maker_of(layout->type.kind)(column, place);
    }
}

/// A row of columns as a list or a tuple.
static PyObject *make_sequence_row(const struct tfos__py_row_schema *layout,
                                   const struct ArrowArray *array, int64_t index)
{
    bool is_list = layout->kind == TFOS__ROW_LIST;
    Py_ssize_t count = (Py_ssize_t)layout->column_count;
    PyObject *row = is_list ? PyList_New(count) : PyTuple_New(count);

    for (Py_ssize_t i = 0; row != NULL && i < count; i++) {
        PyObject *value = tfos__py_unpack_value(&layout->columns[i], array->children[i], index);
        if (value == NULL ||
            (is_list ? PyList_SetItem(row, i, value) : PyTuple_SetItem(row, i, value)) < 0)
            Py_CLEAR(row);
    }
    return row;
}

static PyObject *make_dict_row(const struct tfos__py_row_schema *layout, const struct ArrowArray *array,
                               int64_t index)
{
    PyObject *row = PyDict_New();

    for (int64_t i = 0; row != NULL && i < layout->column_count; i++) {
        PyObject *value = tfos__py_unpack_value(&layout->columns[i], array->children[i], index);
        if (value == NULL ||
            PyDict_SetItem(row, PyTuple_GetItem(layout->names, (Py_ssize_t)i), value) < 0)
            Py_CLEAR(row);
        Py_XDECREF(value);
    }
    return row;
}

/// `class` is that of NAMED.
static PyObject *make_row(const struct tfos__py_row_schema *layout, const struct ArrowArray *array,
                          int64_t index, PyObject *class)
{
    switch (layout->kind) {
    case TFOS__ROW_VALUE:
        return tfos__py_unpack_value(&layout->columns[0], array->children[0], index);
    case TFOS__ROW_DICT:
        return make_dict_row(layout, array, index);
    case TFOS__ROW_SPARK:
        return tfos__py_spark_row(make_sequence_row(layout, array, index), layout->fields);
    case TFOS__ROW_NAMED:
        return tfos__py_named_row_make(class, layout->names, make_sequence_row(layout, array, index));
    default:
        return make_sequence_row(layout, array, index);
    }
}

static int append_rows(const struct tfos__py_row_schema *layout, const struct ArrowArray *array,
                       int64_t start, int64_t count, PyObject *rows)
{
    PyObject *class = NULL;
    int result = 0;

    if (layout->kind == TFOS__ROW_NAMED) {
        class =
            tfos__py_pickle_load_shared(layout->pickled_class, (Py_ssize_t)layout->pickled_class_size);
        if (class == NULL)
            return -1;
    }
    for (int64_t i = start; i < start + count && result == 0; i++) {
        PyObject *row = make_row(layout, array, array->offset + i, class);
        result = row != NULL ? PyList_Append(rows, row) : -1;
        Py_XDECREF(row);
    }
    Py_XDECREF(class);
    return result;
}

int tfos__py_unpack_rows(const struct tfos__py_row_schema *layout, const struct ArrowArray *array,
                      int64_t start, int64_t count, PyObject *rows)
{
    bool was_collecting = tfos__py_collector_pause();
    int result = append_rows(layout, array, start, count, rows);

    if (was_collecting)
        tfos__py_collector_resume();
    return result;
}

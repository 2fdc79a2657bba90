// SPDX-License-Identifier: Apache-2.0
// Columns into numpy arrays. Invariant: each numeric column has an array of `capacity` rows whose
// first `length` are filled, each other column a list of `length` objects.
#include "arrays.h"
#include "error.h"
#include "numpy.h"
#include "unpacker.h"

#include <assert.h>
#include <string.h>

#define FIRST_SIZE                                                                                 \
    (32 << 20) ///< bytes of a column reserved before it is known whether so many rows come

struct gathered {
    struct tfos__value_type type;
    PyObject *array;     ///< numeric: the array; owned
    unsigned char *data; ///< its memory; borrowed
    size_t row_size;     ///< bytes of a row in it
    PyObject *objects;   ///< otherwise: a list; owned
};

struct tfos__arrays {
    int64_t limit;
    int64_t capacity, length;
    bool has_columns;
    enum tfos__row_kind kind;
    int64_t column_count;
    struct gathered *columns; ///< owned
    PyObject *names;          ///< tuple of str; owned
};

struct tfos__arrays *tfos__arrays_open(int64_t count)
{
    struct tfos__arrays *arrays = PyMem_Calloc(1, sizeof(*arrays));

    if (arrays == NULL)
        PyErr_NoMemory();
    else
        arrays->limit = count;
    return arrays;
}

static size_t row_size(const struct tfos__value_type *type)
{
    return (size_t)tfos__value_item_count(type) * (size_t)tfos__value_width(type);
}

static int make_array(struct gathered *column, int64_t capacity)
{
    const struct tfos__numpy *numpy = tfos__numpy_load();
    PyObject *dtype = NULL;
    void *data = NULL;
    char text[8];

    if (numpy == NULL)
        return -1;
    tfos__value_dtype(&column->type, text);
    dtype = PyUnicode_FromString(text);
    if (dtype == NULL)
        return -1;
    column->row_size = row_size(&column->type);
    column->array = tfos__numpy_new_array(numpy, &column->type, dtype, capacity, &data);
    column->data = data;
    Py_DECREF(dtype);
    return column->array != NULL ? 0 : -1;
}

/// Rows to reserve: all that were asked for, unless that is much more than is known to come.
static int64_t choose_capacity(const struct tfos__arrays *arrays, const struct tfos__layout *layout,
                               int64_t count)
{
    size_t widest = 1;
    int64_t capacity = 0;

    for (int64_t i = 0; i < layout->column_count; i++) {
        const struct tfos__value_type *type = &layout->columns[i].type;
        if (tfos__value_is_numeric(type) && row_size(type) > widest)
            widest = row_size(type);
    }
    capacity = (int64_t)(FIRST_SIZE / widest);
    if (capacity < count)
        capacity = count;
    return capacity < arrays->limit ? capacity : arrays->limit;
}

static int begin(struct tfos__arrays *arrays, const struct tfos__layout *layout, int64_t count)
{
    arrays->columns = PyMem_Calloc((size_t)layout->column_count + 1, sizeof(*arrays->columns));
    if (arrays->columns == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    arrays->kind = layout->kind;
    arrays->column_count = layout->column_count;
    arrays->capacity = choose_capacity(arrays, layout, count);
    Py_INCREF(layout->names);
    arrays->names = layout->names;
    arrays->has_columns = true;
    for (int64_t i = 0; i < layout->column_count; i++) {
        struct gathered *column = &arrays->columns[i];
        column->type = layout->columns[i].type;
        if (tfos__value_is_numeric(&column->type)) {
            if (make_array(column, arrays->capacity) < 0)
                return -1;
        } else {
            column->objects = PyList_New(0);
            if (column->objects == NULL)
                return -1;
        }
    }
    return 0;
}

static int refuse_rows(const struct tfos__arrays *arrays, const struct tfos__layout *layout,
                       const struct tfos__arrays_source *source, int64_t row)
{
    tfos__raise_format(
        TFOS_INVALID,
        "feed: partition %lld, row %lld: rows are of kind '%s' with %lld columns here, "
        "and of kind '%s' with %lld before, so they do not go into the same arrays: "
        "feed rows of one kind, or use next_rows()",
        (long long)source->partition, (long long)(source->first_row + row),
        tfos__row_names[layout->kind], (long long)layout->column_count,
        tfos__row_names[arrays->kind], (long long)arrays->column_count);
    return -1;
}

static int refuse_type(const struct tfos__arrays *arrays, const struct tfos__layout *layout,
                       const struct tfos__arrays_source *source, int64_t row, int64_t column)
{
    PyObject *name = tfos__layout_column_name(layout, column);
    char was[TFOS__VALUE_TEXT_SIZE], is[TFOS__VALUE_TEXT_SIZE];

    tfos__value_describe(&arrays->columns[column].type, was);
    tfos__value_describe(&layout->columns[column].type, is);
    if (name != NULL)
        tfos__raise_format(
            TFOS_INVALID,
            "feed: partition %lld, row %lld, column %U: was %s, is now %s, so they do "
            "not go into one array: feed values of one type and shape, or use "
            "next_rows()",
            (long long)source->partition, (long long)(source->first_row + row), name, was, is);
    Py_XDECREF(name);
    return -1;
}

static int refuse_null(const struct tfos__layout *layout, const struct tfos__arrays_source *source,
                       int64_t row, int64_t column)
{
    PyObject *name = tfos__layout_column_name(layout, column);
    char is[TFOS__VALUE_TEXT_SIZE];

    tfos__value_describe(&layout->columns[column].type, is);
    if (name != NULL)
        tfos__raise_format(
            TFOS_INVALID,
            "feed: partition %lld, row %lld, column %U: is None among values that are "
            "%s, and an array of numbers has no None: feed a number instead, or use "
            "next_rows()",
            (long long)source->partition, (long long)(source->first_row + row), name, is);
    Py_XDECREF(name);
    return -1;
}

/// Whether the rows go into the arrays begun; objects of any kind go into one array of objects.
static int check(const struct tfos__arrays *arrays, const struct tfos__layout *layout,
                 const struct tfos__arrays_source *source, int64_t row)
{
    int has_same_names = 1;

    if (layout->kind != arrays->kind || layout->column_count != arrays->column_count)
        return refuse_rows(arrays, layout, source, row);
    if (layout->kind == TFOS__ROW_DICT || layout->kind == TFOS__ROW_SPARK)
        has_same_names = PyObject_RichCompareBool(layout->names, arrays->names, Py_EQ);
    if (has_same_names <= 0)
        return has_same_names < 0 ? -1 : refuse_rows(arrays, layout, source, row);
    for (int64_t i = 0; i < layout->column_count; i++) {
        const struct tfos__value_type *was = &arrays->columns[i].type;
        const struct tfos__value_type *is = &layout->columns[i].type;
        bool are_objects = !tfos__value_is_numeric(was) && !tfos__value_is_numeric(is);
        if (!are_objects && !tfos__value_equals(was, is))
            return refuse_type(arrays, layout, source, row, i);
    }
    return 0;
}

static int resize(struct gathered *column, int64_t capacity)
{
    const struct tfos__numpy *numpy = tfos__numpy_load();
    struct tfos__value_type *type = &column->type;
    PyObject *method = PyObject_GetAttrString(column->array, "resize");
    PyObject *shape = PyTuple_New(1 + type->dimension_count);
    PyObject *arguments = NULL, *done = NULL, *capsule = NULL;
    const struct tfos__array_interface *interface = NULL;

    for (int i = 0; shape != NULL && i <= type->dimension_count; i++) {
        PyObject *size = PyLong_FromLongLong(i == 0 ? capacity : type->shape[i - 1]);
        if (size == NULL || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    arguments = shape != NULL ? PyTuple_Pack(1, shape) : NULL;
    // Nobody else has seen the array yet, so its memory may move.
    if (method != NULL && arguments != NULL)
        done = PyObject_Call(method, arguments, numpy->no_check);
    if (done != NULL)
        interface = tfos__numpy_interface(column->array, &capsule);
    if (interface != NULL)
        column->data = interface->data;
    Py_XDECREF(capsule);
    Py_XDECREF(done);
    Py_XDECREF(arguments);
    Py_XDECREF(shape);
    Py_XDECREF(method);
    return interface != NULL ? 0 : -1;
}

static int resize_all(struct tfos__arrays *arrays, int64_t capacity)
{
    for (int64_t i = 0; i < arrays->column_count; i++) {
        if (arrays->columns[i].array != NULL && resize(&arrays->columns[i], capacity) < 0)
            return -1;
    }
    arrays->capacity = capacity;
    return 0;
}

static void copy_numbers(struct gathered *column, int64_t length, const struct ArrowArray *array,
                         int64_t place, int64_t count)
{
    const struct tfos__value_type *type = &column->type;
    const unsigned char *from = NULL;

    if (column->row_size == 0)
        return;
    if (tfos__value_is_sequence(type)) {
        const struct ArrowArray *elements = array->children[0];
        from = (const unsigned char *)elements->buffers[1] +
               (size_t)elements->offset * (size_t)tfos__value_width(type);
    } else {
        from = array->buffers[1];
    }
    memcpy(column->data + (size_t)length * column->row_size,
           from + (size_t)place * column->row_size, (size_t)count * column->row_size);
}

/// The first of the rows that is None, or -1.
static int64_t find_null(const struct ArrowArray *column, int64_t start, int64_t count)
{
    if (column->null_count == 0 || column->buffers[0] == NULL)
        return -1;
    for (int64_t i = start; i < start + count; i++) {
        if (tfos__unpack_is_null(column, i))
            return i;
    }
    return -1;
}

/// A sequence of numbers becomes an array, so that all elements of an array of objects are arrays.
static PyObject *make_object(const struct tfos__layout_column *layout,
                             const struct ArrowArray *column, int64_t index)
{
    struct tfos__layout_column as_array = *layout;
    bool is_numeric = tfos__value_is_sequence(&layout->type) &&
                      layout->type.item >= TFOS__VALUE_BOOL &&
                      layout->type.item <= TFOS__VALUE_FLOAT;
    PyObject *object = NULL;
    char text[8];

    if (!is_numeric || layout->type.kind == TFOS__VALUE_ARRAY)
        return tfos__unpack_value(layout, column, index);
    tfos__value_dtype(&layout->type, text);
    as_array.type = (struct tfos__value_type){
        .kind = TFOS__VALUE_ARRAY,
        .letter = text[0],
        .itemsize = tfos__value_width(&layout->type),
        .dimension_count = 1,
    };
    as_array.dtype = PyUnicode_FromString(text);
    if (as_array.dtype == NULL)
        return NULL;
    object = tfos__unpack_value(&as_array, column, index);
    Py_DECREF(as_array.dtype);
    return object;
}

static int append_objects(struct gathered *column, const struct tfos__layout_column *layout,
                          const struct ArrowArray *array, int64_t start, int64_t count)
{
    for (int64_t i = start; i < start + count; i++) {
        PyObject *object = make_object(layout, array, i);
        int result = object != NULL ? PyList_Append(column->objects, object) : -1;
        Py_XDECREF(object);
        if (result < 0)
            return -1;
    }
    return 0;
}

int tfos__arrays_append(struct tfos__arrays *arrays, const struct tfos__layout *layout,
                        const struct ArrowArray *array, int64_t start, int64_t count,
                        const struct tfos__arrays_source *source)
{
    int64_t needed = arrays->length + count, first = array->offset + start;

    assert(needed <= arrays->limit);
    if (!arrays->has_columns && begin(arrays, layout, count) < 0)
        return -1;
    if (check(arrays, layout, source, start) < 0)
        return -1;
    if (needed > arrays->capacity) {
        int64_t capacity =
            arrays->capacity > arrays->limit / 2 ? arrays->limit : arrays->capacity * 2;
        if (resize_all(arrays, capacity > needed ? capacity : needed) < 0)
            return -1;
    }
    for (int64_t i = 0; i < layout->column_count; i++) {
        struct gathered *column = &arrays->columns[i];
        const struct ArrowArray *from = array->children[i];
        if (column->objects != NULL) {
            if (append_objects(column, &layout->columns[i], from, first, count) < 0)
                return -1;
        } else {
            int64_t null = find_null(from, first, count);
            if (null >= 0)
                return refuse_null(layout, source, null - array->offset, i);
            copy_numbers(column, arrays->length, from, from->offset + first, count);
        }
    }
    arrays->length = needed;
    return 0;
}

/// A one-dimensional array of the list's objects, each put by itself so that numpy does not look
/// into them.
static PyObject *make_object_array(PyObject *objects)
{
    const struct tfos__numpy *numpy = tfos__numpy_load();
    Py_ssize_t count = PyList_Size(objects);
    PyObject *array = NULL;

    if (numpy != NULL)
        array = PyObject_CallFunction(numpy->empty, "nO", count, (PyObject *)&PyBaseObject_Type);
    for (Py_ssize_t i = 0; array != NULL && i < count; i++) {
        if (PySequence_SetItem(array, i, PyList_GetItem(objects, i)) < 0)
            Py_CLEAR(array);
    }
    return array;
}

static PyObject *finish_column(struct gathered *column)
{
    if (column->objects != NULL)
        return make_object_array(column->objects);
    Py_INCREF(column->array);
    return column->array;
}

PyObject *tfos__arrays_finish(struct tfos__arrays *arrays)
{
    bool has_names = arrays->kind == TFOS__ROW_DICT || arrays->kind == TFOS__ROW_SPARK;
    PyObject *result = NULL;

    assert(arrays->has_columns);
    if (arrays->length < arrays->capacity && resize_all(arrays, arrays->length) < 0)
        return NULL;
    if (arrays->kind == TFOS__ROW_VALUE)
        return finish_column(&arrays->columns[0]);
    result = has_names ? PyDict_New() : PyTuple_New((Py_ssize_t)arrays->column_count);
    for (int64_t i = 0; result != NULL && i < arrays->column_count; i++) {
        PyObject *array = finish_column(&arrays->columns[i]);
        int done = -1;
        if (array != NULL && has_names) {
            done = PyDict_SetItem(result, PyTuple_GetItem(arrays->names, (Py_ssize_t)i), array);
            Py_DECREF(array);
        } else if (array != NULL) {
            done = PyTuple_SetItem(result, (Py_ssize_t)i, array);
        }
        if (done < 0)
            Py_CLEAR(result);
    }
    return result;
}

void tfos__arrays_close(struct tfos__arrays *arrays)
{
    if (arrays == NULL)
        return;
    for (int64_t i = 0; arrays->columns != NULL && i < arrays->column_count; i++) {
        Py_XDECREF(arrays->columns[i].array);
        Py_XDECREF(arrays->columns[i].objects);
    }
    PyMem_Free(arrays->columns);
    Py_XDECREF(arrays->names);
    PyMem_Free(arrays);
}

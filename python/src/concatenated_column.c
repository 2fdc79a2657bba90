// SPDX-License-Identifier: Apache-2.0
// Invariant: a column is exactly one of three: an array, a list of
// objects, or a struct of columns.
#include "concatenated_column.h"

#include <stdio.h>
#include <string.h>

#include "column_array.h"
#include "numpy.h"
#include "row_unpacker.h"

static int init_children(struct tfos__py_concatenated *column,
                         const struct tfos__py_concatenated_values *values)
{
    const struct tfos__py_column *source = values->column;
    struct tfos__py_concatenated_values field = {
        .index = values->array->offset + values->index,
        .count = values->count,
    };

    Py_INCREF(source->names);
    column->names = source->names;
    column->children = PyMem_Calloc((size_t)source->child_count + 1, sizeof(*column->children));
    if (!column->children) {
        PyErr_NoMemory();
        return -1;
    }
    column->child_count = source->child_count;
    for (int64_t i = 0; i < column->child_count; i++) {
        field.column = &source->children[i];
        field.array = values->array->children[i];
        if (tfos__py_concatenated_init(&column->children[i], &field) < 0)
            return -1;
    }
    return 0;
}

int tfos__py_concatenated_init(struct tfos__py_concatenated *column,
                               const struct tfos__py_concatenated_values *values)
{
    column->type = values->column->type;
    if (tfos__py_column_is_struct(values->column))
        return init_children(column, values);
    column->is_shaped =
        !tfos__py_value_type_is_numeric(&column->type) &&
        tfos__py_column_array_find_shape(values->column, values->array, values->index,
                                         values->count, &column->type);
    if (tfos__py_value_type_is_numeric(&column->type)) {
        column->row_size = (size_t)tfos__py_value_type_item_count(&column->type) *
                           (size_t)tfos__py_value_type_width(&column->type);
        return 0;
    }
    column->objects = PyList_New(0);
    return column->objects ? 0 : -1;
}

size_t tfos__py_concatenated_row_size(const struct tfos__py_concatenated *column)
{
    size_t widest = column->row_size;

    for (int64_t i = 0; i < column->child_count; i++) {
        size_t size = tfos__py_concatenated_row_size(&column->children[i]);
        widest = size > widest ? size : widest;
    }
    return widest;
}

static bool has_fields(const struct tfos__py_concatenated *column,
                       const struct tfos__py_column *source)
{
    int is_same = 0;

    if (column->child_count != source->child_count)
        return false;
    is_same = PyObject_RichCompareBool(column->names, source->names, Py_EQ);
    if (is_same < 0)
        PyErr_Clear(); // two tuples of str: only memory can be lacking
    for (int64_t i = 0; is_same == 1 && i < column->child_count; i++)
        is_same = tfos__py_concatenated_fits(&column->children[i], &source->children[i]);
    return is_same == 1;
}

/// How rows of one array go into that of others.
enum match {
    MATCH_NONE,
    MATCH_SAME,
    MATCH_NARROW, ///< they are integers, the others floats
    MATCH_WIDE    ///< they are floats, the others integers
};

/// Python's integers and floats are one column, as np.array() has it.
static enum match match_types(const struct tfos__py_value_type *column,
                              const struct tfos__py_value_type *values)
{
    struct tfos__py_value_type types[2] = {*column, *values}, elements[2];
    bool are_floats[2];

    for (int i = 0; i < 2; i++) {
        if (!tfos__py_value_type_is_numeric(&types[i]))
            return MATCH_NONE;
        elements[i] = tfos__py_value_type_elements(&types[i]);
        are_floats[i] = elements[i].letter == 'f';
        types[i].kind =
            tfos__py_value_type_is_sequence(&types[i]) ? TFOS__VALUE_ARRAY : TFOS__VALUE_SCALAR;
        types[i].letter = 'b'; // the shapes are what is compared of them
        types[i].itemsize = 1;
        types[i].unit = 0;
    }
    if (!tfos__py_value_type_equals(&types[0], &types[1]))
        return MATCH_NONE;
    if (tfos__py_value_type_equals(&elements[0], &elements[1]))
        return MATCH_SAME;
    for (int i = 0; i < 2; i++) {
        if (elements[i].itemsize != 8 || (elements[i].letter != 'f' && elements[i].letter != 'i'))
            return MATCH_NONE;
    }
    return are_floats[0] ? MATCH_NARROW : are_floats[1] ? MATCH_WIDE : MATCH_NONE;
}

bool tfos__py_concatenated_fits(const struct tfos__py_concatenated *column,
                                const struct tfos__py_column *source)
{
    bool is_struct = tfos__py_column_is_struct(source);

    if (column->names || is_struct)
        return column->names && is_struct && has_fields(column, source);
    if ((column->objects || column->is_shaped) && !tfos__py_value_type_is_numeric(&source->type))
        return true;
    return match_types(&column->type, &source->type) != MATCH_NONE;
}

static int make_array(struct tfos__py_concatenated *column, int64_t capacity)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    PyObject *dtype = NULL;
    void *data = NULL;

    if (!numpy)
        return -1;
    dtype = tfos__py_numpy_dtype(numpy, &column->type);
    if (!dtype)
        return -1;
    column->array = tfos__py_numpy_new_array(numpy, &column->type, dtype, capacity, &data);
    column->data = data;
    Py_DECREF(dtype);
    return column->array ? 0 : -1;
}

static int resize_array(struct tfos__py_concatenated *column, int64_t capacity)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct tfos__py_value_type *type = &column->type;
    PyObject *method = PyObject_GetAttrString(column->array, "resize");
    PyObject *shape = PyTuple_New(1 + type->dimension_count);
    PyObject *arguments = NULL, *done = NULL, *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface = NULL;

    for (int i = 0; shape && i <= type->dimension_count; i++) {
        PyObject *size = PyLong_FromLongLong(i == 0 ? capacity : type->shape[i - 1]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    arguments = shape ? PyTuple_Pack(1, shape) : NULL;
    // Nobody else has seen the array yet, so its memory may move.
    if (method && arguments)
        done = PyObject_Call(method, arguments, numpy->no_check);
    if (done)
        interface = tfos__py_numpy_interface(column->array, &capsule);
    if (interface)
        column->data = interface->data;
    Py_XDECREF(capsule);
    Py_XDECREF(done);
    Py_XDECREF(arguments);
    Py_XDECREF(shape);
    Py_XDECREF(method);
    return interface ? 0 : -1;
}

int tfos__py_concatenated_resize(struct tfos__py_concatenated *column, int64_t capacity)
{
    for (int64_t i = 0; i < column->child_count; i++) {
        if (tfos__py_concatenated_resize(&column->children[i], capacity) < 0)
            return -1;
    }
    if (column->names || column->objects)
        return 0;
    return column->array ? resize_array(column, capacity) : make_array(column, capacity);
}

/// What append() says of a None.
static int note_null(struct tfos__py_concatenated_null *null,
                     const struct tfos__py_concatenated_values *values, int64_t row)
{
    null->is_found = true;
    null->is_inside = !tfos__arrow_is_null(values->array, values->index + row);
    null->row = row;
    null->column = values->column;
    null->path = PyUnicode_FromString("");
    return -1;
}

/// Makes the first `length` rows objects of their own, for others of another shape to follow.
static int take_apart(struct tfos__py_concatenated *column, int64_t length)
{
    column->objects = PyList_New(0);
    for (int64_t i = 0; i < length && column->objects; i++) {
        PyObject *row = PySequence_GetItem(column->array, (Py_ssize_t)i);
        PyObject *copy = row ? PyObject_CallMethod(row, "copy", NULL) : NULL;
        if (!copy || PyList_Append(column->objects, copy) < 0)
            Py_CLEAR(column->objects);
        Py_XDECREF(copy);
        Py_XDECREF(row);
    }
    column->is_shaped = false;
    column->type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    column->row_size = 0;
    Py_CLEAR(column->array);
    return column->objects ? 0 : -1;
}

/// How the values go into the array: lists, whose length their type leaves open, by that which they
/// have.
static enum match match_values(const struct tfos__py_concatenated *column,
                               const struct tfos__py_concatenated_values *values)
{
    struct tfos__py_value_type type;

    if (tfos__py_value_type_is_numeric(&values->column->type))
        return match_types(&column->type, &values->column->type);
    return tfos__py_column_array_find_shape(values->column, values->array, values->index,
                                            values->count, &type)
               ? match_types(&column->type, &type)
               : MATCH_NONE;
}

/// Makes the array's integers floats.
static int make_floats(struct tfos__py_concatenated *column)
{
    PyObject *floats = PyObject_CallMethod(column->array, "astype", "s", "f8"), *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface =
        floats ? tfos__py_numpy_interface(floats, &capsule) : NULL;

    if (!interface) {
        Py_XDECREF(floats);
        return -1;
    }
    column->data = interface->data;
    Py_DECREF(capsule);
    Py_DECREF(column->array);
    column->array = floats;
    column->type.kind =
        tfos__py_value_type_is_sequence(&column->type) ? TFOS__VALUE_ARRAY : TFOS__VALUE_SCALAR;
    column->type.letter = 'f';
    column->type.itemsize = 8;
    return 0;
}

/// Makes integers floats that were copied into an array of such.
static void convert_copied(unsigned char *data, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(double)) {
        int64_t number = 0;
        double real = 0;
        memcpy(&number, data + at, sizeof(number));
        real = (double)number;
        memcpy(data + at, &real, sizeof(real));
    }
}

static int append_objects(struct tfos__py_concatenated *column,
                          const struct tfos__py_concatenated_values *values,
                          struct tfos__py_concatenated_null *null)
{
    for (int64_t i = 0; i < values->count; i++) {
        PyObject *object =
            tfos__py_column_array_object(values->column, values->array, values->index + i);
        int result = 0;
        if (!object && values->is_python && !PyErr_Occurred())
            object = tfos__py_unpack_value(values->column, values->array, values->index + i);
        if (!object)
            return PyErr_Occurred() ? -1 : note_null(null, values, i);
        result = PyList_Append(column->objects, object);
        Py_DECREF(object);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int append_fields(struct tfos__py_concatenated *column, int64_t length,
                         const struct tfos__py_concatenated_values *values,
                         struct tfos__py_concatenated_null *null)
{
    struct tfos__py_concatenated_values field = {
        .index = values->array->offset + values->index,
        .count = values->count,
    };

    for (int64_t i = 0; i < values->count; i++) {
        if (tfos__arrow_is_null(values->array, values->index + i))
            return note_null(null, values, i);
    }
    for (int64_t i = 0; i < column->child_count; i++) {
        field.column = &values->column->children[i];
        field.array = values->array->children[i];
        if (tfos__py_concatenated_append(&column->children[i], length, &field, null) == 0)
            continue;
        if (null->path) {
            PyObject *path = null->path;
            null->path =
                PyUnicode_FromFormat(".%U%U", PyTuple_GetItem(column->names, (Py_ssize_t)i), path);
            Py_DECREF(path);
        }
        return -1;
    }
    return 0;
}

int tfos__py_concatenated_append(struct tfos__py_concatenated *column, int64_t length,
                                 const struct tfos__py_concatenated_values *values,
                                 struct tfos__py_concatenated_null *null)
{
    enum match match = MATCH_NONE;
    int64_t row = 0;

    if (column->names)
        return append_fields(column, length, values, null);
    if (column->array)
        match = match_values(column, values);
    if (match == MATCH_NONE && column->array && take_apart(column, length) < 0)
        return -1;
    if (column->objects)
        return append_objects(column, values, null);
    if (match == MATCH_WIDE && make_floats(column) < 0)
        return -1;
    row = tfos__py_column_array_copy(values->column, values->array, values->index, values->count,
                                     column->data + (size_t)length * column->row_size);
    if (row >= 0 && values->is_python && column->is_shaped &&
        !tfos__arrow_is_null(values->array, values->index + row))
        return take_apart(column, length) < 0 ? -1 : append_objects(column, values, null);
    if (row >= 0)
        return note_null(null, values, row);
    if (match == MATCH_NARROW)
        convert_copied(column->data + (size_t)length * column->row_size,
                       (size_t)values->count * column->row_size);
    return 0;
}

PyObject *tfos__py_concatenated_finish(struct tfos__py_concatenated *column)
{
    PyObject *fields = NULL;

    if (column->objects)
        return tfos__py_numpy_object_array(column->objects);
    if (column->array) {
        Py_INCREF(column->array);
        return column->array;
    }
    fields = PyDict_New();
    for (int64_t i = 0; fields && i < column->child_count; i++) {
        PyObject *values = tfos__py_concatenated_finish(&column->children[i]);
        if (!values ||
            PyDict_SetItem(fields, PyTuple_GetItem(column->names, (Py_ssize_t)i), values) < 0)
            Py_CLEAR(fields);
        Py_XDECREF(values);
    }
    return fields;
}

void tfos__py_concatenated_describe(const struct tfos__py_concatenated *column, bool is_frame,
                                    char text[TFOS__VALUE_TEXT_SIZE])
{
    if (column->names)
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "struct");
    else if (column->is_shaped && !is_frame)
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "list of numbers");
    else
        tfos__py_column_describe_numbers(&column->type, is_frame, text);
}

void tfos__py_concatenated_clear(struct tfos__py_concatenated *column)
{
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__py_concatenated_clear(&column->children[i]);
    PyMem_Free(column->children);
    Py_XDECREF(column->names);
    Py_XDECREF(column->array);
    Py_XDECREF(column->objects);
}

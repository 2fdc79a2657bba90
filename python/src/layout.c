// SPDX-License-Identifier: Apache-2.0
// Layouts. Invariant: a layout's types agree with the formats of the schema that it was read from,
// and an array that was checked has as many values and elements as they say.
#include "layout.h"
#include "error.h"
#include "numpy.h"
#include "series.h"

#include <string.h>

static int corrupt(const char *what, int64_t column)
{
    tfos__raise_format(TFOS_CORRUPT, "feed: a batch cannot be unpacked: column %lld %s",
                       (long long)column, what);
    return -1;
}

static int read_kind(const struct ArrowSchema *schema, enum tfos__row_kind *kind)
{
    char text[16];

    if (strcmp(schema->format, "+s") == 0 &&
        tfos__metadata_find(schema->metadata, "tfos.row", text, sizeof(text))) {
        for (int i = 0; i < 5; i++) {
            if (strcmp(text, tfos__row_names[i]) == 0) {
                *kind = (enum tfos__row_kind)i;
                return 0;
            }
        }
    }
    tfos__raise_format(
        TFOS_CORRUPT,
        "feed: a batch cannot be unpacked: its schema does not say what its rows are");
    return -1;
}

static int find_dtype(struct tfos__layout_column *column)
{
    const struct tfos__numpy *numpy = tfos__numpy_load();
    char text[8];

    if (numpy == NULL)
        return -1;
    tfos__value_dtype(&column->type, text);
    column->dtype = PyObject_CallFunction(numpy->dtype, "s", text);
    if (column->dtype == NULL)
        return -1;
    if (column->type.kind == TFOS__VALUE_SCALAR)
        column->scalar = tfos__numpy_scalar_type(numpy, column->type.letter, column->type.itemsize);
    return 0;
}

static int read_column(struct tfos__layout *layout, int64_t index, const struct ArrowSchema *schema)
{
    struct tfos__layout_column *column = &layout->columns[index];
    char text[TFOS__VALUE_TEXT_SIZE], item_format[TFOS__FORMAT_SIZE];
    PyObject *name = NULL;

    if (!tfos__metadata_find(schema->metadata, "tfos.value", text, sizeof(text)) ||
        !tfos__value_read(text, schema->format, &column->type))
        return corrupt("does not say what its values are", index);
    if (tfos__value_is_sequence(&column->type)) {
        tfos__value_item_format(&column->type, item_format);
        if (schema->n_children != 1 || strcmp(schema->children[0]->format, item_format) != 0)
            return corrupt("has elements of another type than it says", index);
    }
    if (column->type.kind == TFOS__VALUE_SCALAR || column->type.kind == TFOS__VALUE_ARRAY) {
        if (find_dtype(column) < 0)
            return -1;
        if (column->type.kind == TFOS__VALUE_SCALAR && column->scalar == NULL)
            return corrupt("has scalars of a type that numpy does not have", index);
    }
    name = PyUnicode_FromString(schema->name != NULL ? schema->name : "");
    return name != NULL ? PyTuple_SetItem(layout->names, (Py_ssize_t)index, name) : -1;
}

static int find_spark_row(struct tfos__layout *layout)
{
    PyObject *module = PyImport_ImportModule("pyspark.sql.types");

    if (module == NULL)
        return -1;
    layout->spark_row = PyObject_GetAttrString(module, "Row");
    Py_DECREF(module);
    layout->make_tuple = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__");
    layout->fields = PySequence_List(layout->names);
    return PyErr_Occurred() ? -1 : 0;
}

int tfos__layout_init(struct tfos__layout *layout, const struct ArrowSchema *schema)
{
    memset(layout, 0, sizeof(*layout));
    if (read_kind(schema, &layout->kind) < 0)
        return -1;
    if (layout->kind == TFOS__ROW_VALUE && schema->n_children != 1)
        return corrupt("is missing or not alone, though each row is one value", 0);
    layout->column_count = schema->n_children;
    layout->columns = PyMem_Calloc((size_t)schema->n_children + 1, sizeof(*layout->columns));
    if (layout->columns == NULL)
        PyErr_NoMemory();
    else
        layout->names = PyTuple_New((Py_ssize_t)schema->n_children);
    if (layout->names == NULL)
        goto clear;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (read_column(layout, i, schema->children[i]) < 0)
            goto clear;
    }
    if (layout->kind == TFOS__ROW_SPARK && find_spark_row(layout) < 0)
        goto clear;
    return 0;

clear:
    tfos__layout_clear(layout);
    return -1;
}

int tfos__layout_check(const struct tfos__layout *layout, const struct ArrowArray *array)
{
    if (array->n_children != layout->column_count) {
        tfos__raise_format(TFOS_CORRUPT, "feed: a batch has %lld columns, its schema %lld",
                           (long long)array->n_children, (long long)layout->column_count);
        return -1;
    }
    for (int64_t i = 0; i < layout->column_count; i++) {
        const struct ArrowArray *column = array->children[i];
        const struct tfos__value_type *type = &layout->columns[i].type;
        int64_t count = tfos__value_item_count(type);
        if (column->length < array->offset + array->length)
            return corrupt("has fewer values than the batch has rows", i);
        if (!tfos__value_is_sequence(type))
            continue;
        if (column->n_children != 1 ||
            (count > 0 && column->children[0]->length / count < column->offset + column->length))
            return corrupt("has fewer elements than its values need", i);
    }
    return 0;
}

PyObject *tfos__layout_column_name(const struct tfos__layout *layout, int64_t column)
{
    if (layout->kind == TFOS__ROW_DICT || layout->kind == TFOS__ROW_SPARK)
        return PyUnicode_FromFormat("%R", PyTuple_GetItem(layout->names, (Py_ssize_t)column));
    return PyUnicode_FromFormat("%lld", (long long)column);
}

void tfos__layout_clear(struct tfos__layout *layout)
{
    for (int64_t i = 0; layout->columns != NULL && i < layout->column_count; i++)
        Py_XDECREF(layout->columns[i].dtype);
    PyMem_Free(layout->columns);
    Py_XDECREF(layout->names);
    Py_XDECREF(layout->fields);
    Py_XDECREF(layout->spark_row);
    Py_XDECREF(layout->make_tuple);
    memset(layout, 0, sizeof(*layout));
}

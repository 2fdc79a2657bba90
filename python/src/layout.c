// SPDX-License-Identifier: Apache-2.0
// Layouts. Invariant: a layout's types agree with the formats of the schema that it was read from,
// and its array has as many values and elements as they say.
#include "layout.h"
#include "error.h"
#include "numpy.h"
#include "plain.h"
#include "series.h"

#include <stdio.h>
#include <string.h>

static int corrupt(const char *what, int64_t column)
{
    tfos__raise_format(TFOS_CORRUPT, "feed: a batch cannot be unpacked: column %lld %s",
                       (long long)column, what);
    return -1;
}

/// Rows of a batch that does not say what they are have named columns, as Spark's have.
static int read_kind(const struct ArrowSchema *schema, enum tfos__row_kind *kind)
{
    char text[16];

    *kind = TFOS__ROW_SPARK;
    if (strcmp(schema->format, "+s") == 0) {
        if (!tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof(text)))
            return 0;
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

/// A column that the packer has packed.
static int read_packed(struct tfos__layout_column *column, int64_t index, const char *text,
                       const struct ArrowSchema *schema)
{
    char item_format[TFOS__FORMAT_SIZE];

    if (!tfos__value_read(text, schema->format, &column->type))
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
    return 0;
}

static int read_column(struct tfos__layout *layout, int64_t index, const struct ArrowSchema *schema)
{
    struct tfos__layout_column *column = &layout->columns[index];
    char text[TFOS__VALUE_TEXT_SIZE];
    PyObject *name = NULL;
    int result = 0;

    if (tfos_arrow_metadata_find(schema->metadata, "tfos.value", text, sizeof(text)))
        result = read_packed(column, index, text, schema);
    else
        result = tfos__plain_init(column, schema);
    if (result < 0)
        return -1;
    name = PyUnicode_FromString(schema->name != NULL ? schema->name : "");
    return name != NULL ? PyTuple_SetItem(layout->names, (Py_ssize_t)index, name) : -1;
}

static int read_schema(struct tfos__layout *layout, const struct ArrowSchema *schema)
{
    if (read_kind(schema, &layout->kind) < 0)
        return -1;
    if (layout->kind == TFOS__ROW_VALUE && schema->n_children != 1)
        return corrupt("is missing or not alone, though each row is one value", 0);
    layout->columns = PyMem_Calloc((size_t)schema->n_children + 1, sizeof(*layout->columns));
    if (layout->columns == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    layout->column_count = schema->n_children;
    layout->names = PyTuple_New((Py_ssize_t)schema->n_children);
    if (layout->names == NULL)
        return -1;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (read_column(layout, i, schema->children[i]) < 0)
            return -1;
    }
    if (layout->kind == TFOS__ROW_SPARK)
        layout->fields = PySequence_List(layout->names);
    return PyErr_Occurred() ? -1 : 0;
}

static int check(const struct tfos__layout *layout, const struct ArrowArray *array)
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
        bool is_plain = layout->columns[i].plain != TFOS__PLAIN_NONE;
        if (column->length < array->offset + array->length)
            return corrupt("has fewer values than the batch has rows", i);
        if (is_plain && !tfos__plain_check(&layout->columns[i], column))
            return corrupt("has fewer elements than its values need", i);
        if (is_plain || !tfos__value_is_sequence(type))
            continue;
        if (column->n_children != 1 ||
            (count > 0 && column->children[0]->length / count < column->offset + column->length))
            return corrupt("has fewer elements than its values need", i);
    }
    return 0;
}

int tfos__layout_init(struct tfos__layout *layout, const struct ArrowSchema *schema,
                      const struct ArrowArray *array)
{
    memset(layout, 0, sizeof(*layout));
    if (read_schema(layout, schema) == 0 && check(layout, array) == 0)
        return 0;
    tfos__layout_clear(layout);
    return -1;
}

PyObject *tfos__layout_column_name(const struct tfos__layout *layout, int64_t column)
{
    if (layout->kind == TFOS__ROW_DICT || layout->kind == TFOS__ROW_SPARK)
        return PyUnicode_FromFormat("%R", PyTuple_GetItem(layout->names, (Py_ssize_t)column));
    return PyUnicode_FromFormat("%lld", (long long)column);
}

void tfos__layout_describe(const struct tfos__layout_column *column,
                           char text[TFOS__VALUE_TEXT_SIZE])
{
    if (column->plain == TFOS__PLAIN_STRUCT)
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "struct");
    else if (column->plain == TFOS__PLAIN_LIST)
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "list of numbers");
    else
        tfos__value_describe(&column->type, text);
}

void tfos__layout_clear(struct tfos__layout *layout)
{
    for (int64_t i = 0; i < layout->column_count; i++) {
        Py_XDECREF(layout->columns[i].dtype);
        tfos__plain_clear(&layout->columns[i]);
    }
    PyMem_Free(layout->columns);
    Py_XDECREF(layout->names);
    Py_XDECREF(layout->fields);
    memset(layout, 0, sizeof(*layout));
}

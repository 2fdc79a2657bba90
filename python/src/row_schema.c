// SPDX-License-Identifier: Apache-2.0
// Layouts. Invariant: a layout's types agree with the formats of the schema that it was read from,
// and its array has as many values and elements as they say.
#include "row_schema.h"
#include "error.h"
#include "numpy.h"
#include "plain.h"
#include "series.h"

#include <stdio.h>
#include <string.h>

static int corrupt(const char *what, int64_t column)
{
    tfos__py_raise_format(TFOS_CORRUPT, "feed: a batch cannot be unpacked: column %lld %s",
                       (long long)column, what);
    return -1;
}

/// Rows of a batch that does not say what they are have named columns, as Spark's have.
static int read_kind(const struct ArrowSchema *schema, struct tfos__py_row_schema *layout)
{
    char text[16];

    layout->kind = TFOS__ROW_SPARK;
    if (strcmp(schema->format, "+s") == 0) {
        layout->is_frame =
            !tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof(text));
        if (layout->is_frame)
            return 0;
        for (int i = 0; i < TFOS__ROW_KINDS; i++) {
            if (strcmp(text, tfos__py_row_kind_names[i]) == 0) {
                layout->kind = (enum tfos__py_row_kind)i;
                return 0;
            }
        }
    }
    tfos__py_raise_format(
        TFOS_CORRUPT,
        "feed: a batch cannot be unpacked: its schema does not say what its rows are");
    return -1;
}

static int find_dtype(struct tfos__py_column *column)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();

    if (numpy == NULL)
        return -1;
    column->dtype = tfos__py_numpy_dtype(numpy, &column->type);
    if (column->type.kind == TFOS__VALUE_SCALAR)
        column->scalar = tfos__py_numpy_scalar_type(numpy, &column->type);
    return column->dtype != NULL ? 0 : -1;
}

/// A column of one type that the packer has packed.
static int read_packed(struct tfos__py_column *column, int64_t index, const char *text,
                       const struct ArrowSchema *schema)
{
    char item_format[TFOS__FORMAT_SIZE];

    if (!tfos__py_value_type_read(text, schema->format, &column->type))
        return corrupt("does not say what its values are", index);
    if (tfos__py_value_type_is_sequence(&column->type)) {
        tfos__py_value_type_item_format(&column->type, item_format);
        if (schema->n_children != 1 || strcmp(schema->children[0]->format, item_format) != 0)
            return corrupt("has elements of another type than it says", index);
    }
    if (column->type.letter != 0) {
        if (find_dtype(column) < 0)
            return -1;
        if (column->type.kind == TFOS__VALUE_SCALAR && column->scalar == NULL)
            return corrupt("has scalars of a type that numpy does not have", index);
    }
    return 0;
}

static int read_values(struct tfos__py_column *column, int64_t index,
                       const struct ArrowSchema *schema);

static int read_originals(struct tfos__py_column *column, int64_t index,
                          const struct ArrowSchema *schema)
{
    const struct tfos__py_column *originals = NULL;

    if (strcmp(schema->format, "+s") != 0 || schema->n_children != 2)
        return corrupt("has no originals beside its values", index);
    column->type.kind = TFOS__VALUE_OPAQUE;
    column->has_originals = true;
    column->children = PyMem_Calloc(2, sizeof(*column->children));
    if (column->children == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; column->child_count < 2; column->child_count++) {
        if (read_values(&column->children[column->child_count], index,
                        schema->children[column->child_count]) < 0) {
            tfos__py_column_clear(&column->children[column->child_count]);
            return -1;
        }
    }
    originals = &column->children[1];
    if (column->children[0].has_originals || originals->has_originals ||
        originals->plain != TFOS__PLAIN_NONE || originals->type.kind != TFOS__VALUE_OPAQUE)
        return corrupt("has originals that are not pickled", index);
    return 0;
}

static int read_values(struct tfos__py_column *column, int64_t index,
                       const struct ArrowSchema *schema)
{
    char text[TFOS__VALUE_TEXT_SIZE];

    if (!tfos_arrow_metadata_find(schema->metadata, "tfos.value", text, sizeof(text)))
        return tfos__py_plain_init(column, schema);
    if (strcmp(text, "original") == 0)
        return read_originals(column, index, schema);
    return read_packed(column, index, text, schema);
}

int tfos__py_column_init(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    return read_values(column, 0, schema);
}

void tfos__py_column_clear(struct tfos__py_column *column)
{
    for (int64_t i = 0; column->has_originals && i < column->child_count; i++)
        tfos__py_column_clear(&column->children[i]);
    if (column->has_originals)
        column->child_count = 0;
    Py_XDECREF(column->dtype);
    tfos__py_plain_clear(column);
    memset(column, 0, sizeof(*column));
}

static int read_column(struct tfos__py_row_schema *layout, int64_t index, const struct ArrowSchema *schema)
{
    PyObject *name = NULL;

    if (read_values(&layout->columns[index], index, schema) < 0)
        return -1;
    name = PyUnicode_FromString(schema->name != NULL ? schema->name : "");
    return name != NULL ? PyTuple_SetItem(layout->names, (Py_ssize_t)index, name) : -1;
}

static int read_schema(struct tfos__py_row_schema *layout, const struct ArrowSchema *schema)
{
    if (read_kind(schema, layout) < 0)
        return -1;
    if (layout->kind == TFOS__ROW_NAMED) {
        layout->pickled_class =
            tfos_arrow_metadata_get(schema->metadata, "tfos.class", &layout->pickled_class_size);
        if (layout->pickled_class == NULL)
            return corrupt("has no class beside its names", 0);
    }
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

/// Whether a column's array has `length` values, and as many elements as they need.
static int check_column(const struct tfos__py_column *column, const struct ArrowArray *array,
                        int64_t length, int64_t index)
{
    const struct tfos__py_value_type *type = &column->type;
    int64_t count = tfos__py_value_type_item_count(type);

    if (array->length < length)
        return corrupt("has fewer values than the batch has rows", index);
    if (column->has_originals) {
        if (array->n_children != 2)
            return corrupt("has no originals beside its values", index);
        return check_column(&column->children[0], array->children[0], array->offset + length,
                            index) < 0
                   ? -1
                   : check_column(&column->children[1], array->children[1], array->offset + length,
                                  index);
    }
    if (column->plain != TFOS__PLAIN_NONE)
        return tfos__py_plain_check(column, array)
                   ? 0
                   : corrupt("has fewer elements than its values need", index);
    if (tfos__py_value_type_is_sequence(type) &&
        (array->n_children != 1 ||
         (count > 0 && array->children[0]->length / count < array->offset + array->length)))
        return corrupt("has fewer elements than its values need", index);
    return 0;
}

static int check(const struct tfos__py_row_schema *layout, const struct ArrowArray *array)
{
    if (array->n_children != layout->column_count) {
        tfos__py_raise_format(TFOS_CORRUPT, "feed: a batch has %lld columns, its schema %lld",
                           (long long)array->n_children, (long long)layout->column_count);
        return -1;
    }
    for (int64_t i = 0; i < layout->column_count; i++) {
        if (check_column(&layout->columns[i], array->children[i], array->offset + array->length,
                         i) < 0)
            return -1;
    }
    return 0;
}

int tfos__py_row_schema_init(struct tfos__py_row_schema *layout, const struct ArrowSchema *schema,
                      const struct ArrowArray *array)
{
    memset(layout, 0, sizeof(*layout));
    if (read_schema(layout, schema) == 0 && check(layout, array) == 0)
        return 0;
    tfos__py_row_schema_clear(layout);
    return -1;
}

PyObject *tfos__py_row_schema_column_name(const struct tfos__py_row_schema *layout, int64_t column)
{
    if (tfos__py_row_kind_has_names(layout->kind))
        return PyUnicode_FromFormat("%R", PyTuple_GetItem(layout->names, (Py_ssize_t)column));
    return PyUnicode_FromFormat("%lld", (long long)column);
}

void tfos__py_row_schema_clear(struct tfos__py_row_schema *layout)
{
    for (int64_t i = 0; i < layout->column_count; i++)
        tfos__py_column_clear(&layout->columns[i]);
    PyMem_Free(layout->columns);
    Py_XDECREF(layout->names);
    Py_XDECREF(layout->fields);
    memset(layout, 0, sizeof(*layout));
}

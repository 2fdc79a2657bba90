// SPDX-License-Identifier: Apache-2.0
// Invariant: the columns' types agree with the schema that they were read from, and the array has
// as many values and elements as they say.
#include "row_schema.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "numpy.h"

static int corrupt(const char *what, int64_t column)
{
    tfos__py_raise_format(TFOS_CORRUPT, "feed: a batch cannot be unpacked: column %lld %s",
                          (long long)column, what);
    return -1;
}

/// Rows of a batch that does not say what they are have named columns, as Spark's have.
static int read_kind(const struct ArrowSchema *schema, struct tfos__py_row_schema *rows)
{
    char text[16];

    rows->kind = TFOS__ROW_SPARK;
    if (tfos__arrow_is_struct(schema)) {
        rows->is_frame =
            !tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof(text));
        if (rows->is_frame)
            return 0;
        for (int i = 0; i < TFOS__ROW_KINDS; i++) {
            if (strcmp(text, tfos__py_row_kind_names[i]) == 0) {
                rows->kind = (enum tfos__py_row_kind)i;
                return 0;
            }
        }
    }
    tfos__py_raise_format(
        TFOS_CORRUPT,
        "feed: a batch cannot be unpacked: its schema does not say what its rows are");
    return -1;
}

static int make_children(struct tfos__py_column *column, int64_t count)
{
    column->children = PyMem_Calloc((size_t)count + 1, sizeof(*column->children));
    if (column->children) {
        column->child_count = count;
        return 0;
    }
    PyErr_NoMemory();
    return -1;
}

// ---- plain columns

static int refuse(const struct ArrowSchema *schema)
{
    char text[TFOS_TYPE_TEXT_SIZE];

    tfos__py_raise_format(
        TFOS_UNSUPPORTED,
        "feed: column '%s': rows have no values of its type, %s: cast the column "
        "before it is fed, to numbers, text, bytes, dates, or lists or structs of "
        "these",
        schema->name ? schema->name : "",
        tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_ARROW, text, sizeof(text)));
    return -1;
}

/// Whether Python's rows have values of a type that src/arrow knows.
static bool has_values(const struct tfos__arrow_type *arrow)
{
    return arrow->kind != TFOS__ARROW_NULL && arrow->kind != TFOS__ARROW_OTHER &&
           !(arrow->kind == TFOS__ARROW_DATE && arrow->width != 32) &&
           !(arrow->kind == TFOS__ARROW_TIME && arrow->width != 64);
}

/// How numpy has single numbers, dates and times; OPAQUE where it has none.
static struct tfos__py_value_type scalar_of(const struct tfos__arrow_type *arrow)
{
    static const char letters[] = {
        [TFOS__ARROW_BOOL] = 'b',  [TFOS__ARROW_INT] = 'i',      [TFOS__ARROW_UINT] = 'u',
        [TFOS__ARROW_FLOAT] = 'f', [TFOS__ARROW_DATE] = 'M',     [TFOS__ARROW_TIMESTAMP] = 'M',
        [TFOS__ARROW_TIME] = 'i',  [TFOS__ARROW_DURATION] = 'm', [TFOS__ARROW_MONTHS] = 'i',
    };
    char letter = (size_t)arrow->kind < sizeof(letters) ? letters[arrow->kind] : '\0';
    bool is_moment = letter == 'M' || letter == 'm';

    if (letter == '\0')
        return (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    return (struct tfos__py_value_type){
        .kind = TFOS__VALUE_SCALAR,
        .letter = letter,
        .itemsize = is_moment       ? 8
                    : letter == 'b' ? 1
                                    : (int)(arrow->width / 8),
        .unit = is_moment ? arrow->unit : '\0',
    };
}

static int read_names(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    column->names = PyTuple_New((Py_ssize_t)schema->n_children);
    for (int64_t i = 0; column->names && i < schema->n_children; i++) {
        const char *text = schema->children[i]->name;
        PyObject *name = PyUnicode_FromString(text ? text : "");
        if (!name || PyTuple_SetItem(column->names, (Py_ssize_t)i, name) < 0)
            return -1;
    }
    column->fields = column->names ? PySequence_List(column->names) : NULL;
    return column->fields ? 0 : -1;
}

/// Fixed lists of numbers are numbers of one dimension more.
static void set_shape(struct tfos__py_column *column)
{
    const struct tfos__py_value_type *element = &column->children[0].type;

    if (!tfos__py_value_type_is_numeric(element) ||
        element->dimension_count == TFOS__MAX_DIMENSIONS)
        return;
    column->type = *element;
    column->type.kind = TFOS__VALUE_ARRAY;
    column->type.is_fixed = true;
    column->type.dimension_count = element->dimension_count + 1;
    column->type.shape[0] = column->arrow.list_size;
    memcpy(&column->type.shape[1], element->shape,
           (size_t)element->dimension_count * sizeof(element->shape[0]));
}

static int read_plain(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    if (tfos__arrow_type_read(&column->arrow, schema, NULL) < 0 || !has_values(&column->arrow)) {
        column->arrow = (struct tfos__arrow_type){0};
        return refuse(schema);
    }
    column->type = scalar_of(&column->arrow);
    if (make_children(column, schema->n_children) < 0)
        return -1;
    for (int64_t i = 0; i < column->child_count; i++) {
        if (read_plain(&column->children[i], schema->children[i]) < 0)
            return -1;
    }
    if (column->arrow.layout == TFOS__ARROW_FIXED_LIST)
        set_shape(column);
    return column->arrow.kind == TFOS__ARROW_STRUCT ? read_names(column, schema) : 0;
}

// ---- packed columns

static int find_dtype(struct tfos__py_column *column, int64_t index)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();

    if (!numpy)
        return -1;
    column->dtype = tfos__py_numpy_dtype(numpy, &column->type);
    if (!column->dtype)
        return -1;
    if (column->type.kind == TFOS__VALUE_SCALAR &&
        !tfos__py_numpy_scalar_type(numpy, &column->type))
        return corrupt("has scalars of a type that numpy does not have", index);
    return 0;
}

/// What one element of a sequence is.
static struct tfos__py_value_type element_type(const struct tfos__py_value_type *type)
{
    struct tfos__py_value_type element = {
        .kind = type->kind == TFOS__VALUE_ARRAY ? TFOS__VALUE_SCALAR : type->item,
        .letter = type->letter,
        .itemsize = type->itemsize,
        .unit = type->unit,
    };

    return element;
}

static int read_packed(struct tfos__py_column *column, int64_t index, const char *text,
                       const struct ArrowSchema *schema)
{
    struct tfos__arrow_type item, expected;

    if (tfos__arrow_type_read(&column->arrow, schema, NULL) < 0 ||
        !tfos__py_value_type_read(text, &column->arrow, &column->type))
        return corrupt("does not say what its values are", index);
    column->is_packed = true;
    if (tfos__py_value_type_is_sequence(&column->type)) {
        expected = tfos__py_value_type_item_arrow(&column->type);
        if (tfos__arrow_type_read(&item, schema->children[0], NULL) < 0 ||
            !tfos__arrow_type_equals(&item, &expected))
            return corrupt("has elements of another type than it says", index);
        if (make_children(column, 1) < 0)
            return -1;
        column->children[0] = (struct tfos__py_column){
            .arrow = item, .type = element_type(&column->type), .is_packed = true};
    }
    return column->type.letter != 0 ? find_dtype(column, index) : 0;
}

static int read_column(struct tfos__py_column *column, int64_t index,
                       const struct ArrowSchema *schema);

static int read_originals(struct tfos__py_column *column, int64_t index,
                          const struct ArrowSchema *schema)
{
    const struct tfos__py_column *values = NULL, *originals = NULL;

    if (!tfos__arrow_is_struct(schema) || schema->n_children != 2)
        return corrupt("has no originals beside its values", index);
    column->arrow = tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0);
    column->type.kind = TFOS__VALUE_OPAQUE;
    column->has_originals = true;
    if (make_children(column, 2) < 0)
        return -1;
    values = &column->children[0];
    originals = &column->children[1];
    for (int i = 0; i < 2; i++) {
        if (read_column(&column->children[i], index, schema->children[i]) < 0)
            return -1;
    }
    if (values->has_originals || originals->has_originals || !originals->is_packed ||
        originals->type.kind != TFOS__VALUE_OPAQUE)
        return corrupt("has originals that are not pickled", index);
    return 0;
}

static int read_column(struct tfos__py_column *column, int64_t index,
                       const struct ArrowSchema *schema)
{
    char text[TFOS__VALUE_TEXT_SIZE];

    if (!tfos_arrow_metadata_find(schema->metadata, "tfos.value", text, sizeof(text)))
        return read_plain(column, schema);
    if (strcmp(text, "original") == 0)
        return read_originals(column, index, schema);
    return read_packed(column, index, text, schema);
}

int tfos__py_column_init(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    return read_column(column, 0, schema);
}

void tfos__py_column_clear(struct tfos__py_column *column)
{
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__py_column_clear(&column->children[i]);
    PyMem_Free(column->children);
    Py_XDECREF(column->dtype);
    Py_XDECREF(column->names);
    Py_XDECREF(column->fields);
    memset(column, 0, sizeof(*column));
}

// ---- rows

static int read_named_column(struct tfos__py_row_schema *rows, int64_t index,
                             const struct ArrowSchema *schema)
{
    PyObject *name = NULL;

    if (read_column(&rows->columns[index], index, schema) < 0)
        return -1;
    name = PyUnicode_FromString(schema->name ? schema->name : "");
    return name ? PyTuple_SetItem(rows->names, (Py_ssize_t)index, name) : -1;
}

static int read_schema(struct tfos__py_row_schema *rows, const struct ArrowSchema *schema)
{
    if (read_kind(schema, rows) < 0)
        return -1;
    if (rows->kind == TFOS__ROW_NAMED) {
        rows->pickled_class =
            tfos_arrow_metadata_get(schema->metadata, "tfos.class", &rows->pickled_class_size);
        if (!rows->pickled_class)
            return corrupt("has no class beside its names", 0);
    }
    if (rows->kind == TFOS__ROW_VALUE && schema->n_children != 1)
        return corrupt("is missing or not alone, though each row is one value", 0);
    rows->columns = PyMem_Calloc((size_t)schema->n_children + 1, sizeof(*rows->columns));
    if (!rows->columns) {
        PyErr_NoMemory();
        return -1;
    }
    rows->column_count = schema->n_children;
    rows->names = PyTuple_New((Py_ssize_t)schema->n_children);
    if (!rows->names)
        return -1;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (read_named_column(rows, i, schema->children[i]) < 0)
            return -1;
    }
    if (rows->kind == TFOS__ROW_SPARK)
        rows->fields = PySequence_List(rows->names);
    return PyErr_Occurred() ? -1 : 0;
}

/// Whether a column's array has `length` values, and as many elements as they need.
static bool has_elements(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t length)
{
    int64_t end = array->offset + array->length;

    if (array->length < length || array->n_children != column->child_count)
        return false;
    if (column->arrow.layout == TFOS__ARROW_FIXED_LIST && column->arrow.list_size > 0 &&
        array->children[0]->length / column->arrow.list_size < end)
        return false;
    for (int64_t i = 0; i < column->child_count; i++) {
        bool is_field = column->arrow.layout == TFOS__ARROW_FIELDS;
        if (!has_elements(&column->children[i], array->children[i], is_field ? end : 0))
            return false;
    }
    return true;
}

static int check(const struct tfos__py_row_schema *rows, const struct ArrowArray *array)
{
    if (array->n_children != rows->column_count) {
        tfos__py_raise_format(TFOS_CORRUPT, "feed: a batch has %lld columns, its schema %lld",
                              (long long)array->n_children, (long long)rows->column_count);
        return -1;
    }
    for (int64_t i = 0; i < rows->column_count; i++) {
        if (!has_elements(&rows->columns[i], array->children[i], array->offset + array->length))
            return corrupt("has fewer values or elements than the batch has rows", i);
    }
    return 0;
}

int tfos__py_row_schema_init(struct tfos__py_row_schema *rows, const struct ArrowSchema *schema,
                             const struct ArrowArray *array)
{
    memset(rows, 0, sizeof(*rows));
    if (read_schema(rows, schema) == 0 && check(rows, array) == 0)
        return 0;
    tfos__py_row_schema_clear(rows);
    return -1;
}

PyObject *tfos__py_row_schema_column_name(const struct tfos__py_row_schema *rows, int64_t column)
{
    if (tfos__py_row_kind_has_names(rows->kind))
        return PyUnicode_FromFormat("%R", PyTuple_GetItem(rows->names, (Py_ssize_t)column));
    return PyUnicode_FromFormat("%lld", (long long)column);
}

void tfos__py_row_schema_clear(struct tfos__py_row_schema *rows)
{
    for (int64_t i = 0; i < rows->column_count; i++)
        tfos__py_column_clear(&rows->columns[i]);
    PyMem_Free(rows->columns);
    Py_XDECREF(rows->names);
    Py_XDECREF(rows->fields);
    memset(rows, 0, sizeof(*rows));
}

// ---- words

void tfos__py_column_describe_numbers(const struct tfos__py_value_type *type, bool is_frame,
                                      char text[TFOS__VALUE_TEXT_SIZE])
{
    struct tfos__py_value_type elements = tfos__py_value_type_elements(type);
    struct tfos__arrow_type arrow = tfos__py_value_type_plain_arrow(&elements);
    int depth = tfos__py_value_type_is_sequence(type) ? type->dimension_count : 0;

    if (is_frame && arrow.kind != TFOS__ARROW_NULL)
        tfos__arrow_lists_text(&arrow, depth, TFOS_TYPE_NAMES_SPARK, text, TFOS__VALUE_TEXT_SIZE);
    else
        tfos__py_value_type_describe(type, text);
}

/// Python's type of a plain value that the packer has shown, so that it can be made again.
static struct tfos__py_value_type python_type(const struct tfos__py_column *column)
{
    struct tfos__py_value_type type = column->type;

    if (column->is_packed)
        return type;
    if (column->arrow.kind == TFOS__ARROW_TEXT || column->arrow.kind == TFOS__ARROW_BINARY)
        type.kind = column->arrow.kind == TFOS__ARROW_TEXT ? TFOS__VALUE_TEXT : TFOS__VALUE_BYTES;
    else if (column->arrow.kind == TFOS__ARROW_BOOL)
        type.kind = TFOS__VALUE_BOOL;
    else if (tfos__arrow_type_is(&column->arrow, TFOS__ARROW_INT, 64))
        type.kind = TFOS__VALUE_INT;
    else if (tfos__arrow_type_is(&column->arrow, TFOS__ARROW_FLOAT, 64))
        type.kind = TFOS__VALUE_FLOAT;
    return type;
}

void tfos__py_column_describe(const struct tfos__py_column *column, bool is_frame,
                              char text[TFOS__VALUE_TEXT_SIZE])
{
    const char *prefix = is_frame ? "array<" : "list of ", *suffix = is_frame ? ">" : "";
    bool is_plain_list = !column->is_packed && tfos__py_column_is_list(column) &&
                         (is_frame || column->arrow.layout == TFOS__ARROW_OFFSETS);
    struct tfos__py_value_type type = python_type(column);
    char element[TFOS__VALUE_TEXT_SIZE];

    if (is_plain_list) {
        tfos__py_column_describe(&column->children[0], is_frame, element);
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s%.200s%s", prefix, element, suffix);
    } else if (is_frame && !column->is_packed) {
        tfos__arrow_lists_text(&column->arrow, 0, TFOS_TYPE_NAMES_SPARK, text,
                               TFOS__VALUE_TEXT_SIZE);
    } else if (column->is_packed && is_frame) {
        tfos__py_column_describe_numbers(&type, is_frame, text);
    } else {
        tfos__py_value_type_describe(&type, text);
    }
}

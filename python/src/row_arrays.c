// SPDX-License-Identifier: Apache-2.0
// Columns into numpy arrays. Invariant: each column holds the first `length` rows, and has room for
// `capacity`.
#include "row_arrays.h"

#include <assert.h>

#include "concatenated_column.h"
#include "error.h"

#define FIRST_SIZE                                                                                 \
    (32 << 20) ///< bytes of a column reserved before it is known whether so many rows come

struct tfos__py_row_arrays {
    int64_t limit;
    int64_t capacity, length;
    bool has_columns;
    enum tfos__py_row_kind kind;
    int64_t column_count;
    struct tfos__py_concatenated *columns; ///< owned
    int64_t *places;                       ///< of the columns among those of the last rows; owned
    PyObject *names;    ///< of all columns of the first rows: tuple of str; owned
    PyObject *selected; ///< names of the columns; NULL: all; owned
};

struct tfos__py_row_arrays *tfos__py_row_arrays_open(int64_t count, PyObject *names)
{
    struct tfos__py_row_arrays *arrays = PyMem_Calloc(1, sizeof(*arrays));

    if (!arrays) {
        PyErr_NoMemory();
        return NULL;
    }
    arrays->limit = count;
    Py_XINCREF(names);
    arrays->selected = names;
    return arrays;
}

/// Rows to reserve: all that were asked for, unless that is much more than is known to come.
static int64_t choose_capacity(const struct tfos__py_row_arrays *arrays, int64_t count)
{
    size_t widest = 1;
    int64_t capacity = 0;

    for (int64_t i = 0; i < arrays->column_count; i++) {
        size_t size = tfos__py_concatenated_row_size(&arrays->columns[i]);
        widest = size > widest ? size : widest;
    }
    capacity = (int64_t)(FIRST_SIZE / widest);
    if (capacity < count)
        capacity = count;
    return capacity < arrays->limit ? capacity : arrays->limit;
}

static int resize_all(struct tfos__py_row_arrays *arrays, int64_t capacity)
{
    for (int64_t i = 0; i < arrays->column_count; i++) {
        if (tfos__py_concatenated_resize(&arrays->columns[i], capacity) < 0)
            return -1;
    }
    arrays->capacity = capacity;
    return 0;
}

/// The rows of a column's values, without their originals.
static const struct tfos__py_column *values_column(const struct tfos__py_row_schema *rows,
                                                   int64_t column)
{
    const struct tfos__py_column *values = &rows->columns[column];

    return values->has_originals ? &values->children[0] : values;
}

/// Rows of a column: `first` counts from the start of the columns.
static struct tfos__py_concatenated_values values_of(const struct tfos__py_row_schema *rows,
                                                     const struct ArrowArray *array, int64_t column,
                                                     int64_t first, int64_t count)
{
    struct tfos__py_concatenated_values values = {&rows->columns[column], array->children[column],
                                                  first, count, !rows->is_frame};

    tfos__py_column_find_values(&values.column, &values.array, &values.index);
    return values;
}

/// Finds the columns among those of a rows.
static int find_places(struct tfos__py_row_arrays *arrays, const struct tfos__py_row_schema *rows,
                       const struct tfos__py_row_origin *origin, int64_t row)
{
    if (arrays->selected)
        return tfos__py_selection_find(arrays->selected, rows, origin, row, arrays->places);
    for (int64_t i = 0; i < arrays->column_count; i++)
        arrays->places[i] = i;
    return 0;
}

/// Begins columns for such rows: `first` counts from the start of the columns.
static int begin(struct tfos__py_row_arrays *arrays, const struct tfos__py_row_schema *rows,
                 const struct ArrowArray *array, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < arrays->column_count; i++) {
        struct tfos__py_concatenated_values values =
            values_of(rows, array, arrays->places[i], first, count);
        if (tfos__py_concatenated_init(&arrays->columns[i], &values) < 0)
            return -1;
    }
    return resize_all(arrays, choose_capacity(arrays, count));
}

/// Makes room for as many columns as such rows have, or are selected.
static int make_columns(struct tfos__py_row_arrays *arrays, const struct tfos__py_row_schema *rows)
{
    int64_t count = arrays->selected ? (int64_t)PyTuple_Size(arrays->selected) : rows->column_count;

    arrays->columns = PyMem_Calloc((size_t)count + 1, sizeof(*arrays->columns));
    arrays->places = PyMem_Calloc((size_t)count + 1, sizeof(*arrays->places));
    if (!arrays->columns || !arrays->places) {
        PyErr_NoMemory();
        return -1;
    }
    arrays->kind = rows->kind;
    arrays->column_count = count;
    Py_INCREF(rows->names);
    arrays->names = rows->names;
    return 0;
}

static int refuse_rows(const struct tfos__py_row_arrays *arrays,
                       const struct tfos__py_row_schema *rows,
                       const struct tfos__py_row_origin *origin, int64_t row)
{
    tfos__py_raise_format(
        TFOS_INVALID,
        "feed: partition %lld, row %lld: rows are of kind '%s' with %lld columns here, "
        "and of kind '%s' with %lld before, so they do not go into the same arrays: "
        "feed rows of one kind, or use next_rows()",
        (long long)origin->partition, (long long)(origin->first_row + row),
        tfos__py_row_kind_names[rows->kind], (long long)rows->column_count,
        tfos__py_row_kind_names[arrays->kind], (long long)arrays->column_count);
    return -1;
}

/// Says where a value is that does not go into its array, and what it is.
static int refuse_value(const struct tfos__py_row_schema *rows,
                        const struct tfos__py_row_origin *origin, int64_t row, int64_t column,
                        PyObject *path, PyObject *what)
{
    PyObject *name = tfos__py_row_schema_column_name(rows, column);

    if (name && path && what)
        tfos__py_raise_format(TFOS_INVALID, "feed: partition %lld, row %lld, column %U%U: %U",
                              (long long)origin->partition, (long long)(origin->first_row + row),
                              name, path, what);
    Py_XDECREF(name);
    Py_XDECREF(path);
    Py_XDECREF(what);
    return -1;
}

static int refuse_type(const struct tfos__py_row_arrays *arrays,
                       const struct tfos__py_row_schema *rows,
                       const struct tfos__py_row_origin *origin, int64_t row, int64_t column)
{
    char was[TFOS__VALUE_TEXT_SIZE], is[TFOS__VALUE_TEXT_SIZE];

    tfos__py_concatenated_describe(&arrays->columns[column], rows->is_frame, was);
    tfos__py_column_describe(values_column(rows, arrays->places[column]), rows->is_frame, is);
    return refuse_value(
        rows, origin, row, arrays->places[column], PyUnicode_FromString(""),
        PyUnicode_FromFormat("was %s, is now %s, so they do not go into one array: feed values of "
                             "one type and shape, or use next_rows()",
                             was, is));
}

/// `null->path` is taken over.
static int refuse_null(const struct tfos__py_row_schema *rows,
                       const struct tfos__py_row_origin *origin, int64_t row, int64_t column,
                       struct tfos__py_concatenated_null *null)
{
    char is[TFOS__VALUE_TEXT_SIZE];

    tfos__py_column_describe(null->column, rows->is_frame, is);
    return refuse_value(
        rows, origin, row, column, null->path,
        PyUnicode_FromFormat("%s None among values that are %s, and an array of numbers has no "
                             "None: feed a number instead, or use next_rows()",
                             null->is_inside ? "has a" : "is", is));
}

/// Whether rows are of the kind of those before, where all their columns are asked for.
static int check_kind(const struct tfos__py_row_arrays *arrays,
                      const struct tfos__py_row_schema *rows,
                      const struct tfos__py_row_origin *origin, int64_t row)
{
    int has_same_names = 1;

    if (arrays->selected)
        return 0;
    if (rows->kind != arrays->kind || rows->column_count != arrays->column_count)
        return refuse_rows(arrays, rows, origin, row);
    if (tfos__py_row_kind_has_names(rows->kind))
        has_same_names = PyObject_RichCompareBool(rows->names, arrays->names, Py_EQ);
    if (has_same_names <= 0)
        return has_same_names < 0 ? -1 : refuse_rows(arrays, rows, origin, row);
    return 0;
}

/// Whether the rows' values go into the arrays begun.
static int check_types(const struct tfos__py_row_arrays *arrays,
                       const struct tfos__py_row_schema *rows,
                       const struct tfos__py_row_origin *origin, int64_t row)
{
    for (int64_t i = 0; i < arrays->column_count; i++) {
        if (!tfos__py_concatenated_fits(&arrays->columns[i],
                                        values_column(rows, arrays->places[i])))
            return refuse_type(arrays, rows, origin, row, i);
    }
    return 0;
}

int tfos__py_row_arrays_append(struct tfos__py_row_arrays *arrays,
                               const struct tfos__py_row_schema *rows,
                               const struct ArrowArray *array, int64_t start, int64_t count,
                               const struct tfos__py_row_origin *origin)
{
    int64_t needed = arrays->length + count, first = array->offset + start;

    assert(needed <= arrays->limit);
    if (!arrays->columns && make_columns(arrays, rows) < 0)
        return -1;
    if (check_kind(arrays, rows, origin, start) < 0 || find_places(arrays, rows, origin, start) < 0)
        return -1;
    if (!arrays->has_columns && begin(arrays, rows, array, first, count) < 0)
        return -1;
    arrays->has_columns = true;
    if (check_types(arrays, rows, origin, start) < 0)
        return -1;
    if (needed > arrays->capacity) {
        int64_t capacity =
            arrays->capacity > arrays->limit / 2 ? arrays->limit : arrays->capacity * 2;
        if (resize_all(arrays, capacity > needed ? capacity : needed) < 0)
            return -1;
    }
    for (int64_t i = 0; i < arrays->column_count; i++) {
        struct tfos__py_concatenated_values values =
            values_of(rows, array, arrays->places[i], first, count);
        struct tfos__py_concatenated_null null = {0};
        if (tfos__py_concatenated_append(&arrays->columns[i], arrays->length, &values, &null) < 0)
            return null.is_found
                       ? refuse_null(rows, origin, start + null.row, arrays->places[i], &null)
                       : -1;
    }
    arrays->length = needed;
    return 0;
}

PyObject *tfos__py_row_arrays_finish(struct tfos__py_row_arrays *arrays)
{
    bool is_selected = arrays->selected != NULL;
    bool has_names = tfos__py_row_kind_has_names(arrays->kind) && !is_selected;
    PyObject *result = NULL;

    assert(arrays->has_columns);
    if (arrays->length < arrays->capacity && resize_all(arrays, arrays->length) < 0)
        return NULL;
    if (arrays->kind == TFOS__ROW_VALUE && !is_selected)
        return tfos__py_concatenated_finish(&arrays->columns[0]);
    result = has_names ? PyDict_New() : PyTuple_New((Py_ssize_t)arrays->column_count);
    for (int64_t i = 0; result && i < arrays->column_count; i++) {
        PyObject *array = tfos__py_concatenated_finish(&arrays->columns[i]);
        int done = -1;
        if (array && has_names) {
            done = PyDict_SetItem(result, PyTuple_GetItem(arrays->names, (Py_ssize_t)i), array);
            Py_DECREF(array);
        } else if (array) {
            done = PyTuple_SetItem(result, (Py_ssize_t)i, array);
        }
        if (done < 0)
            Py_CLEAR(result);
    }
    return result;
}

void tfos__py_row_arrays_close(struct tfos__py_row_arrays *arrays)
{
    if (!arrays)
        return;
    for (int64_t i = 0; arrays->columns && i < arrays->column_count; i++)
        tfos__py_concatenated_clear(&arrays->columns[i]);
    PyMem_Free(arrays->columns);
    PyMem_Free(arrays->places);
    Py_XDECREF(arrays->selected);
    Py_XDECREF(arrays->names);
    PyMem_Free(arrays);
}

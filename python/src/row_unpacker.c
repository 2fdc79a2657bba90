// SPDX-License-Identifier: Apache-2.0
// Columns into rows. Objects are made new for each row and share nothing with the batch, so that
// the batch's memory can go back to its writer at once.
#include "row_unpacker.h"

#include <string.h>

#include "error.h"
#include "numpy.h"
#include "pickle.h"
#include "spark_value.h"

typedef int item_setter(PyObject *sequence, Py_ssize_t index, PyObject *item);

bool tfos__py_find_list(const struct tfos__py_column *column, const struct ArrowArray *array,
                        int64_t index, struct tfos__arrow_span *span)
{
    *span = tfos__arrow_list(&column->arrow, array, index);
    if (span->first >= 0 && span->count >= 0 &&
        span->first <= array->children[0]->length - span->count)
        return true;
    tfos__py_raise_format(TFOS_CORRUPT,
                          "feed: a batch cannot be unpacked: a list leaves its column");
    return false;
}

// ---- lists

/// The loop that decides how fast rows with lists of floats are read.
static int fill_floats(PyObject *sequence, item_setter *set, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = PyFloat_FromDouble(from[i]);
        if (!item || set(sequence, (Py_ssize_t)i, item) < 0)
            return -1;
    }
    return 0;
}

static int fill_ints(PyObject *sequence, item_setter *set, const int64_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = PyLong_FromLongLong(from[i]);
        if (!item || set(sequence, (Py_ssize_t)i, item) < 0)
            return -1;
    }
    return 0;
}

static int fill(PyObject *sequence, item_setter *set, const struct tfos__py_column *column,
                const struct ArrowArray *array, struct tfos__arrow_span span)
{
    const struct tfos__arrow_type *arrow = &column->arrow;
    bool is_number = arrow->width == 64 && !tfos__arrow_has_nulls(array);

    if (is_number && arrow->kind == TFOS__ARROW_FLOAT)
        return fill_floats(sequence, set, tfos__arrow_value(arrow, array, span.first), span.count);
    if (is_number && arrow->kind == TFOS__ARROW_INT)
        return fill_ints(sequence, set, tfos__arrow_value(arrow, array, span.first), span.count);
    for (int64_t i = 0; i < span.count; i++) {
        PyObject *item = tfos__py_unpack_value(column, array, span.first + i);
        if (!item || set(sequence, (Py_ssize_t)i, item) < 0)
            return -1;
    }
    return 0;
}

static PyObject *make_array(const struct tfos__py_column *column, const struct ArrowArray *array,
                            int64_t index)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct tfos__py_value_type type = column->type;
    struct tfos__arrow_span span;
    PyObject *made = NULL;
    void *data = NULL;

    if (!numpy || !tfos__py_find_list(column, array, index, &span))
        return NULL;
    if (!type.is_fixed) {
        type.dimension_count = 1;
        type.shape[0] = span.count;
    }
    made = tfos__py_numpy_new_array(numpy, &type, column->dtype, -1, &data);
    if (made && span.count > 0)
        memcpy(data, tfos__arrow_value(&column->children[0].arrow, array->children[0], span.first),
               (size_t)span.count * (size_t)type.itemsize);
    return made;
}

/// A list or tuple of numpy's scalars.
static PyObject *make_scalars(const struct tfos__py_column *column, const struct ArrowArray *array,
                              int64_t index, bool is_list)
{
    PyObject *elements = make_array(column, array, index), *scalars = NULL;

    if (elements)
        scalars = is_list ? PySequence_List(elements) : PySequence_Tuple(elements);
    Py_XDECREF(elements);
    return scalars;
}

static PyObject *make_list(const struct tfos__py_column *column, const struct ArrowArray *array,
                           int64_t index)
{
    bool is_list = column->type.kind != TFOS__VALUE_TUPLE;
    struct tfos__arrow_span span;
    PyObject *list = NULL;

    if (column->is_packed && column->type.item == TFOS__VALUE_SCALAR)
        return make_scalars(column, array, index, is_list);
    if (!tfos__py_find_list(column, array, index, &span))
        return NULL;
    if (column->is_packed && column->type.item == TFOS__VALUE_NULL && span.count > 0)
        return tfos__py_raise_format(
            TFOS_CORRUPT,
            "feed: a batch cannot be unpacked: a list that says it is empty has %lld elements",
            (long long)span.count);
    list = is_list ? PyList_New((Py_ssize_t)span.count) : PyTuple_New((Py_ssize_t)span.count);
    if (list && fill(list, is_list ? PyList_SetItem : PyTuple_SetItem, &column->children[0],
                     array->children[0], span) < 0)
        Py_CLEAR(list);
    return list;
}

// ---- values

static PyObject *make_map(const struct tfos__py_column *column, const struct ArrowArray *array,
                          int64_t index)
{
    const struct tfos__py_column *entry = &column->children[0];
    const struct ArrowArray *entries = array->children[0];
    struct tfos__arrow_span span;
    PyObject *map = NULL;

    if (!tfos__py_find_list(column, array, index, &span))
        return NULL;
    map = PyDict_New();
    span.first += entries->offset;
    for (int64_t i = span.first; map && i < span.first + span.count; i++) {
        PyObject *key = tfos__py_unpack_value(&entry->children[0], entries->children[0], i);
        PyObject *value = tfos__py_unpack_value(&entry->children[1], entries->children[1], i);
        if (!key || !value || PyDict_SetItem(map, key, value) < 0)
            Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return map;
}

static PyObject *make_struct(const struct tfos__py_column *column, const struct ArrowArray *array,
                             int64_t index)
{
    PyObject *values = PyTuple_New((Py_ssize_t)column->child_count);

    for (int64_t i = 0; values && i < column->child_count; i++) {
        PyObject *value =
            tfos__py_unpack_value(&column->children[i], array->children[i], array->offset + index);
        if (!value || PyTuple_SetItem(values, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(values);
    }
    return tfos__py_spark_row(values, column->fields);
}

static PyObject *make_interval(const struct tfos__arrow_type *arrow, const struct ArrowArray *array,
                               int64_t index)
{
    struct {
        int32_t months, days;
        int64_t nanoseconds;
    } interval;

    memcpy(&interval, tfos__arrow_value(arrow, array, index), sizeof(interval));
    return Py_BuildValue("(iiL)", (int)interval.months, (int)interval.days,
                         (long long)(interval.nanoseconds / 1000));
}

/// A numpy scalar, bit for bit whatever its type: an array of no dimension, indexed by ().
static PyObject *make_scalar(const struct tfos__py_column *column, const struct ArrowArray *array,
                             int64_t index)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct tfos__py_value_type type = {.kind = TFOS__VALUE_ARRAY, .is_fixed = true};
    PyObject *whole = NULL, *key = NULL, *scalar = NULL;
    void *data = NULL;

    whole = numpy ? tfos__py_numpy_new_array(numpy, &type, column->dtype, -1, &data) : NULL;
    if (!whole)
        return NULL;
    memcpy(data, tfos__arrow_value(&column->arrow, array, index), (size_t)column->type.itemsize);
    key = PyTuple_New(0);
    if (key)
        scalar = PyObject_GetItem(whole, key);
    Py_XDECREF(key);
    Py_DECREF(whole);
    return scalar;
}

/// A value as Arrow's type says, as pyspark's collect() gives it.
static PyObject *make_plain(const struct tfos__py_column *column, const struct ArrowArray *array,
                            int64_t index)
{
    const struct tfos__arrow_type *arrow = &column->arrow;
    struct tfos_view bytes;

    switch (arrow->kind) {
    case TFOS__ARROW_BOOL:
        return PyBool_FromLong((long)tfos__arrow_integer(arrow, array, index));
    case TFOS__ARROW_INT:
    case TFOS__ARROW_MONTHS:
        return PyLong_FromLongLong(tfos__arrow_integer(arrow, array, index));
    case TFOS__ARROW_UINT:
        return PyLong_FromUnsignedLongLong((uint64_t)tfos__arrow_integer(arrow, array, index));
    case TFOS__ARROW_FLOAT:
        return PyFloat_FromDouble(tfos__arrow_real(arrow, array, index));
    case TFOS__ARROW_TEXT:
        bytes = tfos__arrow_bytes(arrow, array, index);
        return PyUnicode_DecodeUTF8(bytes.data, (Py_ssize_t)bytes.size, NULL);
    case TFOS__ARROW_BINARY:
        bytes = tfos__arrow_bytes(arrow, array, index);
        return PyBytes_FromStringAndSize(bytes.data, (Py_ssize_t)bytes.size);
    case TFOS__ARROW_DATE:
        return tfos__py_spark_date(tfos__arrow_integer(arrow, array, index));
    case TFOS__ARROW_TIMESTAMP:
        return tfos__py_spark_timestamp(tfos__arrow_integer(arrow, array, index),
                                        tfos__arrow_per_second(arrow), *arrow->time_zone != '\0');
    case TFOS__ARROW_TIME:
        return tfos__py_spark_time(tfos__arrow_integer(arrow, array, index),
                                   tfos__arrow_per_second(arrow));
    case TFOS__ARROW_DURATION:
        return tfos__py_spark_duration(tfos__arrow_integer(arrow, array, index),
                                       tfos__arrow_per_second(arrow));
    case TFOS__ARROW_INTERVAL:
        return make_interval(arrow, array, index);
    case TFOS__ARROW_DECIMAL:
        return tfos__py_spark_decimal(tfos__arrow_value(arrow, array, index),
                                      (int)(arrow->width / 8), arrow->scale);
    case TFOS__ARROW_STRUCT:
        return make_struct(column, array, index);
    case TFOS__ARROW_MAP:
        return make_map(column, array, index);
    default:
        return make_list(column, array, index);
    }
}

/// The original of a value where there is one, else what the value itself makes.
static PyObject *make_original(const struct tfos__py_column *column, const struct ArrowArray *array,
                               int64_t index)
{
    int64_t place = array->offset + index;
    int child = tfos__arrow_is_null(array->children[1], place) ? 0 : 1;

    return tfos__py_unpack_value(&column->children[child], array->children[child], place);
}

/// A value of a type that Arrow's does not say.
static PyObject *make_packed(const struct tfos__py_column *column, const struct ArrowArray *array,
                             int64_t index)
{
    struct tfos_view bytes;

    switch (column->type.kind) {
    case TFOS__VALUE_BOOL:
        return PyBool_FromLong((long)tfos__arrow_integer(&column->arrow, array, index));
    case TFOS__VALUE_OPAQUE:
        bytes = tfos__arrow_bytes(&column->arrow, array, index);
        return tfos__py_pickle_load(bytes.data, (Py_ssize_t)bytes.size);
    case TFOS__VALUE_SCALAR:
        return make_scalar(column, array, index);
    case TFOS__VALUE_ARRAY:
        return make_array(column, array, index);
    default:
        return make_plain(column, array, index);
    }
}

PyObject *tfos__py_unpack_value(const struct tfos__py_column *column,
                                const struct ArrowArray *array, int64_t index)
{
    bool is_none = column->is_packed && column->type.kind == TFOS__VALUE_NULL;

    if (column->has_originals)
        return make_original(column, array, index);
    if (is_none || tfos__arrow_is_null(array, index)) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    return column->is_packed ? make_packed(column, array, index) : make_plain(column, array, index);
}

// ---- rows

/// A row of columns as a list or a tuple.
static PyObject *make_sequence_row(const struct tfos__py_row_schema *rows,
                                   const struct ArrowArray *array, int64_t index)
{
    bool is_list = rows->kind == TFOS__ROW_LIST;
    Py_ssize_t count = (Py_ssize_t)rows->column_count;
    PyObject *row = is_list ? PyList_New(count) : PyTuple_New(count);

    for (Py_ssize_t i = 0; row && i < count; i++) {
        PyObject *value = tfos__py_unpack_value(&rows->columns[i], array->children[i], index);
        if (!value ||
            (is_list ? PyList_SetItem(row, i, value) : PyTuple_SetItem(row, i, value)) < 0)
            Py_CLEAR(row);
    }
    return row;
}

static PyObject *make_dict_row(const struct tfos__py_row_schema *rows,
                               const struct ArrowArray *array, int64_t index)
{
    PyObject *row = PyDict_New();

    for (int64_t i = 0; row && i < rows->column_count; i++) {
        PyObject *value = tfos__py_unpack_value(&rows->columns[i], array->children[i], index);
        if (!value || PyDict_SetItem(row, PyTuple_GetItem(rows->names, (Py_ssize_t)i), value) < 0)
            Py_CLEAR(row);
        Py_XDECREF(value);
    }
    return row;
}

/// `class` is that of NAMED.
static PyObject *make_row(const struct tfos__py_row_schema *rows, const struct ArrowArray *array,
                          int64_t index, PyObject *class)
{
    switch (rows->kind) {
    case TFOS__ROW_VALUE:
        return tfos__py_unpack_value(&rows->columns[0], array->children[0], index);
    case TFOS__ROW_DICT:
        return make_dict_row(rows, array, index);
    case TFOS__ROW_SPARK:
        return tfos__py_spark_row(make_sequence_row(rows, array, index), rows->fields);
    case TFOS__ROW_NAMED:
        return tfos__py_named_row_make(class, rows->names, make_sequence_row(rows, array, index));
    default:
        return make_sequence_row(rows, array, index);
    }
}

static int append_rows(const struct tfos__py_row_schema *rows, const struct ArrowArray *array,
                       int64_t start, int64_t count, PyObject *list)
{
    PyObject *class = NULL;
    int result = 0;

    if (rows->kind == TFOS__ROW_NAMED) {
        class =
            tfos__py_pickle_load_shared(rows->pickled_class, (Py_ssize_t)rows->pickled_class_size);
        if (!class)
            return -1;
    }
    for (int64_t i = start; i < start + count && result == 0; i++) {
        PyObject *row = make_row(rows, array, array->offset + i, class);
        result = row ? PyList_Append(list, row) : -1;
        Py_XDECREF(row);
    }
    Py_XDECREF(class);
    return result;
}

/// Calls a function of the module gc without arguments, since the limited API of Python 3.9 has
/// none for it; NULL, and no exception, when that fails: then all stays as it is.
static PyObject *call_gc(const char *name)
{
    static PyObject *module; // guarded by the GIL
    PyObject *result = NULL;

    if (!module)
        module = PyImport_ImportModule("gc");
    if (module)
        result = PyObject_CallMethod(module, name, NULL);
    if (!result)
        PyErr_Clear();
    return result;
}

// While many rows are made the cyclic garbage collector is off: with rows of 784 floats its looks
// at them take a fifth of the time.
int tfos__py_unpack_rows(const struct tfos__py_row_schema *rows, const struct ArrowArray *array,
                         int64_t start, int64_t count, PyObject *list)
{
    PyObject *enabled = call_gc("isenabled"), *type = NULL, *value = NULL, *trace = NULL;
    bool was_enabled = enabled == Py_True;
    int result = 0;

    Py_XDECREF(enabled);
    if (was_enabled)
        Py_XDECREF(call_gc("disable"));
    result = append_rows(rows, array, start, count, list);
    if (was_enabled) {
        PyErr_Fetch(&type, &value, &trace);
        Py_XDECREF(call_gc("enable"));
        PyErr_Restore(type, value, trace);
    }
    return result;
}

PyObject *tfos__py_unpack_batch(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__py_row_schema rows;
    PyObject *list = NULL;

    if (tfos__py_row_schema_init(&rows, schema, array) < 0)
        return NULL;
    list = PyList_New(0);
    if (list && tfos__py_unpack_rows(&rows, array, 0, array->length, list) < 0)
        Py_CLEAR(list);
    tfos__py_row_schema_clear(&rows);
    return list;
}

// SPDX-License-Identifier: Apache-2.0
// Plain columns into the values of rows, as pyspark's collect() gives them.
#include "plain.h"
#include "spark_value.h"

#include <math.h>
#include <string.h>

static int64_t offset_at(const struct tfos__py_column *column, const struct ArrowArray *array,
                         int64_t index)
{
    size_t place = (size_t)(array->offset + index);

    return column->width == 4 ? ((const int32_t *)array->buffers[1])[place]
                              : ((const int64_t *)array->buffers[1])[place];
}

void tfos__py_plain_find(const struct tfos__py_column *column, const struct ArrowArray *array,
                      int64_t index, int64_t *first, int64_t *count)
{
    if (column->plain == TFOS__PLAIN_FIXED_LIST) {
        *first = (array->offset + index) * column->list_size;
        *count = column->list_size;
    } else {
        *first = offset_at(column, array, index);
        *count = offset_at(column, array, index + 1) - *first;
    }
}

/// An integer of 1, 2, 4 or 8 bytes.
static int64_t read_int(const unsigned char *data, int width)
{
    int64_t number = 0;
    int shift = 64 - 8 * width;

    memcpy(&number, data, (size_t)width); // little-endian, as this library's machines are
    return (int64_t)((uint64_t)number << shift) >> shift;
}

static uint64_t read_unsigned(const unsigned char *data, int width)
{
    uint64_t number = 0;

    memcpy(&number, data, (size_t)width);
    return number;
}

static double read_half(const unsigned char *data)
{
    uint64_t bits = read_unsigned(data, 2);
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double number = 0;

    if (exponent == 31)
        number = fraction == 0 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        number = ldexp(fraction, -24);
    else
        number = ldexp(fraction + 1024, exponent - 25);
    return (bits & 0x8000) != 0 ? -number : number;
}

static double read_float(const unsigned char *data, int width)
{
    double number = 0;
    float narrow = 0;

    if (width == 2)
        return read_half(data);
    if (width == 4) {
        memcpy(&narrow, data, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&number, data, sizeof(number));
    return number;
}

/// Text or bytes.
static PyObject *make_string(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index)
{
    int64_t first = 0, size = 0;
    const char *data = NULL;

    if (column->width == 0) { // bytes of one size
        data = (const char *)array->buffers[1] + (array->offset + index) * column->list_size;
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)column->list_size);
    }
    tfos__py_plain_find(column, array, index, &first, &size);
    data = size > 0 ? (const char *)array->buffers[2] + first : "";
    if (column->plain == TFOS__PLAIN_TEXT)
        return PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, NULL);
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

static PyObject *make_list(const struct tfos__py_column *column, const struct ArrowArray *array,
                           int64_t index)
{
    int64_t first = 0, count = 0;
    PyObject *list = NULL;

    tfos__py_plain_find(column, array, index, &first, &count);
    list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = tfos__py_plain_value(&column->children[0], array->children[0], first + i);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *make_map(const struct tfos__py_column *column, const struct ArrowArray *array,
                          int64_t index)
{
    const struct tfos__py_column *entry = &column->children[0];
    const struct ArrowArray *entries = array->children[0];
    int64_t first = 0, count = 0;
    PyObject *map = PyDict_New();

    tfos__py_plain_find(column, array, index, &first, &count);
    first += entries->offset;
    for (int64_t i = first; map != NULL && i < first + count; i++) {
        PyObject *key = tfos__py_plain_value(&entry->children[0], entries->children[0], i);
        PyObject *value = tfos__py_plain_value(&entry->children[1], entries->children[1], i);
        if (key == NULL || value == NULL || PyDict_SetItem(map, key, value) < 0)
            Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return map;
}

static PyObject *make_struct(const struct tfos__py_column *column,
                             const struct ArrowArray *array, int64_t index)
{
    PyObject *values = PyTuple_New((Py_ssize_t)column->child_count);

    for (int64_t i = 0; values != NULL && i < column->child_count; i++) {
        PyObject *value =
            tfos__py_plain_value(&column->children[i], array->children[i], array->offset + index);
        if (value == NULL || PyTuple_SetItem(values, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(values);
    }
    return tfos__py_spark_row(values, column->fields);
}

PyObject *tfos__py_plain_value(const struct tfos__py_column *column,
                            const struct ArrowArray *array, int64_t index)
{
    int64_t place = array->offset + index;
    const unsigned char *data = NULL;

    if (tfos__arrow_is_null(array, index)) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    if (column->plain < TFOS__PLAIN_LIST)
        data = (const unsigned char *)array->buffers[1] + place * column->width;
    switch (column->plain) {
    case TFOS__PLAIN_BOOL:
        data = array->buffers[1];
        return PyBool_FromLong(data[place / 8] >> (place % 8) & 1);
    case TFOS__PLAIN_INT:
        return PyLong_FromLongLong(read_int(data, column->width));
    case TFOS__PLAIN_UNSIGNED:
        return PyLong_FromUnsignedLongLong(read_unsigned(data, column->width));
    case TFOS__PLAIN_FLOAT:
        return PyFloat_FromDouble(read_float(data, column->width));
    case TFOS__PLAIN_DATE:
        return tfos__py_spark_date(read_int(data, column->width));
    case TFOS__PLAIN_TIMESTAMP:
        return tfos__py_spark_timestamp(read_int(data, column->width), column->per_second,
                                     column->is_local);
    case TFOS__PLAIN_TIME:
        return tfos__py_spark_time(read_int(data, column->width), column->per_second);
    case TFOS__PLAIN_DURATION:
        return tfos__py_spark_duration(read_int(data, column->width), column->per_second);
    case TFOS__PLAIN_INTERVAL:
        return Py_BuildValue("(LLL)", (long long)read_int(data, 4),
                             (long long)read_int(data + 4, 4),
                             (long long)(read_int(data + 8, 8) / 1000));
    case TFOS__PLAIN_DECIMAL:
        return tfos__py_spark_decimal(data, column->width, column->scale);
    case TFOS__PLAIN_STRUCT:
        return make_struct(column, array, index);
    case TFOS__PLAIN_MAP:
        return make_map(column, array, index);
    case TFOS__PLAIN_LIST:
    case TFOS__PLAIN_FIXED_LIST:
        return make_list(column, array, index);
    default:
        return make_string(column, array, index);
    }
}

// SPDX-License-Identifier: Apache-2.0
// Python's and pyspark's own classes, looked up once.
#include "spark_value.h"

#include <stdio.h>

#define EPOCH_ORDINAL 719163 ///< of 1970-01-01 in datetime.date

/// Looks up an attribute of a module once; `*found` is kept until the process ends. NULL with an
/// exception.
static PyObject *find(PyObject **found, const char *module_name, const char *name)
{
    PyObject *module = NULL;

    if (*found)
        return *found;
    module = PyImport_ImportModule(module_name);
    if (!module)
        return NULL;
    *found = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
    return *found;
}

PyObject *tfos__py_spark_row(PyObject *values, PyObject *fields)
{
    static PyObject *class, *make_tuple; // guarded by the GIL
    PyObject *row = NULL;

    if (!values)
        return NULL;
    if (!make_tuple)
        make_tuple = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__");
    // As pyspark's own unpickling makes it: the tuple of values, then __fields__.
    if (make_tuple && find(&class, "pyspark.sql.types", "Row"))
        row = PyObject_CallFunctionObjArgs(make_tuple, class, values, NULL);
    Py_DECREF(values);
    if (row && PyObject_SetAttrString(row, "__fields__", fields) < 0)
        Py_CLEAR(row);
    return row;
}

PyObject *tfos__py_spark_date(int64_t days)
{
    static PyObject *class; // guarded by the GIL

    if (!find(&class, "datetime", "date"))
        return NULL;
    return PyObject_CallMethod(class, "fromordinal", "L", (long long)(days + EPOCH_ORDINAL));
}

/// `seconds` since 1970 in the local time zone, and `microseconds`.
static PyObject *make_local(PyObject *class, int64_t seconds, int microseconds)
{
    PyObject *time = PyObject_CallMethod(class, "fromtimestamp", "L", (long long)seconds);
    PyObject *replace = NULL, *nothing = NULL, *keywords = NULL, *result = NULL;

    if (!time || microseconds == 0)
        return time;
    replace = PyObject_GetAttrString(time, "replace");
    nothing = PyTuple_New(0);
    keywords = Py_BuildValue("{s:i}", "microsecond", microseconds);
    if (replace && nothing && keywords)
        result = PyObject_Call(replace, nothing, keywords);
    Py_XDECREF(keywords);
    Py_XDECREF(nothing);
    Py_XDECREF(replace);
    Py_DECREF(time);
    return result;
}

/// The same in no time zone.
static PyObject *make_naive(PyObject *class, int64_t seconds, int microseconds)
{
    static PyObject *epoch, *interval; // guarded by the GIL
    PyObject *since = NULL, *time = NULL;

    if (!epoch)
        epoch = PyObject_CallFunction(class, "iii", 1970, 1, 1);
    if (!epoch || !find(&interval, "datetime", "timedelta"))
        return NULL;
    since = PyObject_CallFunction(interval, "iLi", 0, (long long)seconds, microseconds);
    if (since)
        time = PyNumber_Add(epoch, since);
    Py_XDECREF(since);
    return time;
}

/// Cuts a count of parts of a second into whole seconds and microseconds, which are not negative.
static int split_seconds(int64_t count, int64_t per_second, int64_t *seconds)
{
    int64_t rest = count % per_second;

    *seconds = count / per_second;
    if (rest < 0) {
        (*seconds)--;
        rest += per_second;
    }
    return (int)(per_second < 1000000 ? rest * (1000000 / per_second)
                                      : rest / (per_second / 1000000));
}

PyObject *tfos__py_spark_timestamp(int64_t time, int64_t per_second, bool is_local)
{
    static PyObject *class; // guarded by the GIL
    int64_t seconds = 0;
    int microseconds = split_seconds(time, per_second, &seconds);

    if (!find(&class, "datetime", "datetime"))
        return NULL;
    return is_local ? make_local(class, seconds, microseconds)
                    : make_naive(class, seconds, microseconds);
}

PyObject *tfos__py_spark_time(int64_t time, int64_t per_second)
{
    static PyObject *class; // guarded by the GIL
    int64_t seconds = 0;
    int microseconds = split_seconds(time, per_second, &seconds);

    if (!find(&class, "datetime", "time"))
        return NULL;
    return PyObject_CallFunction(class, "LLLi", (long long)(seconds / 3600),
                                 (long long)(seconds / 60 % 60), (long long)(seconds % 60),
                                 microseconds);
}

PyObject *tfos__py_spark_duration(int64_t duration, int64_t per_second)
{
    static PyObject *class; // guarded by the GIL
    int64_t seconds = 0;
    int microseconds = split_seconds(duration, per_second, &seconds);

    if (!find(&class, "datetime", "timedelta"))
        return NULL;
    return PyObject_CallFunction(class, "iLi", 0, (long long)seconds, microseconds);
}

PyObject *tfos__py_spark_decimal(const void *data, int size, int scale)
{
    static PyObject *class; // guarded by the GIL
    char hex[2 * 32 + 1];
    const unsigned char *bytes = data;
    PyObject *number = NULL, *text = NULL, *decimal = NULL;
    bool is_negative = bytes[size - 1] >= 0x80;

    if (!find(&class, "decimal", "Decimal"))
        return NULL;
    // A negative number is -1 minus its complement, which is not negative.
    for (int i = 0; i < size; i++)
        snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x",
                 is_negative ? bytes[size - 1 - i] ^ 0xff : bytes[size - 1 - i]);
    number = PyLong_FromString(hex, NULL, 16);
    if (number && is_negative) {
        PyObject *complement = number;
        number = PyNumber_Invert(complement);
        Py_DECREF(complement);
    }
    // Made of text, a Decimal has all its digits, whatever the context's precision.
    if (number)
        text = PyUnicode_FromFormat("%SE%d", number, -scale);
    if (text)
        decimal = PyObject_CallFunctionObjArgs(class, text, NULL);
    Py_XDECREF(text);
    Py_XDECREF(number);
    return decimal;
}

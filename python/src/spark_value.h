// SPDX-License-Identifier: Apache-2.0
/// Values as pyspark's collect() gives them for Spark's types. The caller holds the GIL; all give a
/// new reference, or NULL with an exception.
#ifndef TFOS_PYTHON_SPARK_VALUE_H
#define TFOS_PYTHON_SPARK_VALUE_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/// A pyspark.sql.Row with these values (a tuple, taken over; NULL is passed on) and names (a list).
PyObject *tfos__py_spark_row(PyObject *values, PyObject *fields);

/// DateType: a datetime.date, from days since 1970.
PyObject *tfos__py_spark_date(int64_t days);

/// TimestampType (`is_local`: in the local time zone of this process) and TimestampNTZType: a naive
/// datetime.datetime, from a time since 1970 of which a second has `per_second`.
PyObject *tfos__py_spark_timestamp(int64_t time, int64_t per_second, bool is_local);

/// TimeType: a datetime.time, from the time since midnight.
PyObject *tfos__py_spark_time(int64_t time, int64_t per_second);

/// DayTimeIntervalType: a datetime.timedelta.
PyObject *tfos__py_spark_duration(int64_t duration, int64_t per_second);

/// DecimalType: a decimal.Decimal, from a little-endian integer of `size` bytes and the digits
/// behind its point.
PyObject *tfos__py_spark_decimal(const void *data, int size, int scale);

#endif

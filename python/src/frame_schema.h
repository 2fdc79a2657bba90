// SPDX-License-Identifier: Apache-2.0
/// Whether the rows of a DataFrame can be fed, or made of results, told from a schema alone.
#ifndef TFOS_PYTHON_FRAME_SCHEMA_H
#define TFOS_PYTHON_FRAME_SCHEMA_H

#include <Python.h>

/// check_spark_schema(json): None, or an exception that names the column and its type.
PyObject *tfos__py_frame_schema_check(PyObject *module, PyObject *json);

/// check_result_schema(json): the same of results that become rows in the JVM.
PyObject *tfos__py_frame_schema_check_results(PyObject *module, PyObject *json);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Packing and unpacking without a feed between them: what the tests of packing call.
#ifndef TFOS_PYTHON_SAMPLE_H
#define TFOS_PYTHON_SAMPLE_H

#include <Python.h>

/// pack(rows): the rows, packed into batches and unpacked again.
PyObject *tfos__py_sample_pack(PyObject *module, PyObject *rows);

/// pack_columns(rows): the same as results for a DataFrame, which become columns.
PyObject *tfos__py_sample_pack_columns(PyObject *module, PyObject *rows);

/// pack_arrays(rows): the arrays of the rows' batches.
PyObject *tfos__py_sample_pack_arrays(PyObject *module, PyObject *rows);

/// unpack(batch): the rows of an Arrow batch, anything with __arrow_c_array__.
PyObject *tfos__py_sample_unpack(PyObject *module, PyObject *batch);

/// unpack_arrays(batch): its arrays.
PyObject *tfos__py_sample_unpack_arrays(PyObject *module, PyObject *batch);

#endif

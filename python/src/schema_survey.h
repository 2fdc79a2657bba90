// SPDX-License-Identifier: Apache-2.0
/// Schemas learned from files of records.
#ifndef TFOS_PYTHON_SCHEMA_SURVEY_H
#define TFOS_PYTHON_SCHEMA_SURVEY_H

#include <Python.h>

/// `survey_examples(paths, type, compression, mode, limit, max_record_size, file)`: what the files'
/// records say, as JSON text.
PyObject *tfos__py_survey_examples(PyObject *module, PyObject *args, PyObject *kwargs);

/// `merge_surveys(surveys)`: the schema, as a capsule, of a list of such texts.
PyObject *tfos__py_survey_merge(PyObject *module, PyObject *surveys);

#endif

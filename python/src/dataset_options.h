// SPDX-License-Identifier: Apache-2.0
/// Options of a dataset from Python's objects, and its structure and number as such. The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_DATASET_OPTIONS_H
#define TFOS_PYTHON_DATASET_OPTIONS_H

#include <Python.h>

#include <tfos/dataset.h>
#include <tfos/record.h>

/// What Python gave, in the library's words.
struct tfos__py_dataset_options {
    struct tfos_dataset_options library; ///< points into the rest
    const char *queue;
    int64_t agree_timeout_ms;            ///< 0: the library's own
    struct tfos_dataset_column *columns; ///< owned, with their shapes
    const char **selection;              ///< owned
    PyObject *trainer, *like;            ///< borrowed from the arguments; like: or None
    PyObject *kept;                      ///< owned: keeps texts alive
};

/// Reads a list of texts or None, which gives NULL, into memory that the caller frees with
/// PyMem_Free(); the texts live as long as the list `kept`. `encode` makes bytes of a str:
/// PyUnicode_AsUTF8String, or for paths PyUnicode_EncodeFSDefault. -1 with an exception.
int tfos__py_dataset_texts_read(PyObject *list, PyObject *(*encode)(PyObject *text), PyObject *kept,
                                const char ***texts, int64_t *count);

/// Reads the word for `uneven`. -1 with an exception.
int tfos__py_dataset_uneven_read(struct tfos__py_dataset_options *options, const char *uneven);

/// Reads `columns`, a list of (name, form, shape, null_value), into the options, whose `kept` there
/// is. -1 with an exception.
int tfos__py_dataset_columns_read(struct tfos__py_dataset_options *options, PyObject *columns);

/// Reads the arguments of Dataset(). -1 with an exception; what clear() frees is set in either
/// case.
int tfos__py_dataset_options_read(struct tfos__py_dataset_options *options, PyObject *args,
                                  PyObject *kwargs);

void tfos__py_dataset_options_clear(struct tfos__py_dataset_options *options);

/// (structure, [(path, role, dtype, shape)]); None in a shape for what varies. NULL with an
/// exception.
PyObject *tfos__py_dataset_specs_make(const struct tfos_tensor_spec *specs, int64_t count,
                                      enum tfos_row_structure structure);

/// The attribute `number` of an object whose handle is of a struct tfos_dataset. NULL with an
/// exception.
PyObject *tfos__py_dataset_number(PyObject *self, void *closure);

/// (records, bytes, damages, skipped bytes). NULL with an exception.
PyObject *tfos__py_record_counts_tuple(const struct tfos_record_counts *counts);

#endif

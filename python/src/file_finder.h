// SPDX-License-Identifier: Apache-2.0
/// Names of files. Functions of the module.
#ifndef TFOS_PYTHON_FILE_FINDER_H
#define TFOS_PYTHON_FILE_FINDER_H

#include <Python.h>

/// `find_files(name, system=None)`.
PyObject *tfos__py_find_files(PyObject *module, PyObject *args, PyObject *kwargs);

/// `new_file(name)`.
PyObject *tfos__py_new_file(PyObject *module, PyObject *name);

/// `compression_of_name(name)`.
PyObject *tfos__py_compression_of_name(PyObject *module, PyObject *name);

/// `split_names(names)`.
PyObject *tfos__py_split_names(PyObject *module, PyObject *names);

/// `split_uri(name)`.
PyObject *tfos__py_split_uri(PyObject *module, PyObject *name);

#endif

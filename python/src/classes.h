// SPDX-License-Identifier: Apache-2.0
/// The classes of the extension: each file of theirs adds its own to the module, and shares what
/// others need of it.
#ifndef TFOS_PYTHON_CLASSES_H
#define TFOS_PYTHON_CLASSES_H

#include <Python.h>

/// Each adds its class; -1 with an exception.
int tfos__py_rendezvous_class_add(PyObject *module);
int tfos__py_node_class_add(PyObject *module);
int tfos__py_writer_class_add(PyObject *module);
int tfos__py_results_class_add(PyObject *module);
int tfos__py_arrow_batch_class_add(PyObject *module);
int tfos__py_trainer_class_add(PyObject *module);
int tfos__py_reader_class_add(PyObject *module);
int tfos__py_dataset_class_add(PyObject *module);
int tfos__py_example_reader_class_add(PyObject *module);
int tfos__py_example_writer_class_add(PyObject *module);
int tfos__py_record_dataset_class_add(PyObject *module);
int tfos__py_file_writer_class_add(PyObject *module);

/// Makes a class of its spec and adds it to the module under the last part of its name; NULL with
/// an exception. The reference is kept until the process ends.
PyTypeObject *tfos__py_class_add(PyObject *module, PyType_Spec *spec);

/// The flags and function of a method that takes keywords.
#define TFOS__KEYWORDS(function)                                                                   \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/// The tp_new of a class whose objects only others make.
PyObject *tfos__py_class_refuse_new(PyTypeObject *class, PyObject *args, PyObject *kwargs);

/// The last step of a dealloc: frees the object and lets go of its class.
void tfos__py_class_free(PyObject *self);

/// Text of the library as a str, which it frees; NULL with an exception.
PyObject *tfos__py_class_text(char *text);

/// `status_query(timeout_ms)`.
PyObject *tfos__py_rendezvous_query(PyObject *module, PyObject *args, PyObject *kwargs);

/// `find_executor(pid)`.
PyObject *tfos__py_node_find_executor(PyObject *module, PyObject *args, PyObject *kwargs);

#endif

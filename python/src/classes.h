// SPDX-License-Identifier: Apache-2.0
/// The classes of the extension: each file of theirs adds its own to the module, and shares what
/// others need of it.
#ifndef TFOS_PYTHON_CLASSES_H
#define TFOS_PYTHON_CLASSES_H

#include <Python.h>

/// Each adds its class; -1 with an exception.
int tfos__rendezvous_class_add(PyObject *module);
int tfos__node_class_add(PyObject *module);
int tfos__writer_class_add(PyObject *module);
int tfos__results_class_add(PyObject *module);
int tfos__arrow_batch_class_add(PyObject *module);
int tfos__trainer_class_add(PyObject *module);
int tfos__reader_class_add(PyObject *module);
int tfos__dataset_class_add(PyObject *module);
int tfos__example_reader_class_add(PyObject *module);
int tfos__example_writer_class_add(PyObject *module);
int tfos__record_dataset_class_add(PyObject *module);
int tfos__file_writer_class_add(PyObject *module);

/// Makes a class of its spec and adds it to the module under the last part of its name; NULL with
/// an exception. The reference is kept until the process ends.
PyTypeObject *tfos__class_add(PyObject *module, PyType_Spec *spec);

/// The flags and function of a method that takes keywords.
#define TFOS__KEYWORDS(function)                                                                   \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/// The tp_new of a class whose objects only others make.
PyObject *tfos__class_refuse_new(PyTypeObject *class, PyObject *args, PyObject *kwargs);

/// The last step of a dealloc: frees the object and lets go of its class.
void tfos__class_free(PyObject *self);

/// Text of the library as a str, which it frees; NULL with an exception.
PyObject *tfos__class_text(char *text);

/// `status_query(timeout_ms)`.
PyObject *tfos__rendezvous_query(PyObject *module, PyObject *args, PyObject *kwargs);

/// `find_executor(pid)`.
PyObject *tfos__node_find_executor(PyObject *module, PyObject *args, PyObject *kwargs);

#endif

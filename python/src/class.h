// SPDX-License-Identifier: Apache-2.0
/// The classes and functions of the extension. Each file defines its own; class.c lists them. The
/// caller holds the GIL.
#ifndef TFOS_PYTHON_CLASS_H
#define TFOS_PYTHON_CLASS_H

#include <Python.h>
#include <stdbool.h>

struct tfos__py_handle;

struct tfos__py_class {
    const char *name; ///< with its module
    const char *doc;
    int size; ///< of an object
    PyMethodDef *methods;
    PyGetSetDef *properties;
    initproc init;      ///< NULL: only the extension makes such objects
    destructor dealloc; ///< NULL: the object is a handle and has nothing more
    iternextfunc next;  ///< of iterators
    PyTypeObject *type; ///< set when the module is made; kept until the process ends

    // Of classes with init(), whose objects begin with a struct tfos__py_handle:
    const char *label; ///< for messages
    bool is_exclusive; ///< an object belongs to one thread at a time
    /// Ends what would keep other threads in a call, if not NULL. Called before close(), with the
    /// GIL held, when there is an object.
    void (*interrupt)(struct tfos__py_handle *handle, void *object);
    /// Closes `object`, which may be NULL. Called once, with the GIL held, while no call is in it.
    void (*close)(struct tfos__py_handle *handle, void *object);
};

extern struct tfos__py_class tfos__py_rendezvous_class, tfos__py_node_class,
    tfos__py_feed_writer_class, tfos__py_result_iterator_class, tfos__py_arrow_batch_class,
    tfos__py_trainer_class, tfos__py_feed_reader_class, tfos__py_dataset_class,
    tfos__py_example_reader_class, tfos__py_example_writer_class, tfos__py_record_dataset_class,
    tfos__py_file_writer_class;

extern PyMethodDef tfos__py_rendezvous_functions[], tfos__py_node_functions[],
    tfos__py_schema_functions[], tfos__py_file_name_functions[], tfos__py_conversion_functions[];

/// Adds all classes and functions to the module. -1 with an exception.
int tfos__py_classes_add(PyObject *module);

/// The class of a new object.
const struct tfos__py_class *tfos__py_class_of(PyTypeObject *type);

/// The flags and function of a method that takes keywords.
#define TFOS__KEYWORDS(function)                                                                   \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/// The last step of a dealloc: frees the object and lets go of its class.
void tfos__py_class_free(PyObject *self);

#endif

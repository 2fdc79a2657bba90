// SPDX-License-Identifier: Apache-2.0
/// numpy without its C headers: its types, taken from the module when it is loaded, and the memory
/// of an array through
/// __array_struct__ (https://numpy.org/doc/stable/reference/arrays.interface.html). The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_NUMPY_H
#define TFOS_PYTHON_NUMPY_H

#include <Python.h>

#include <stdbool.h>

#include "value_type.h"

#define TFOS__NUMPY_SCALAR_COUNT 16

/// All references are kept until the process ends.
struct tfos__py_numpy {
    PyTypeObject *ndarray;
    PyTypeObject *memmap; ///< an array like any other, once its elements are copied
    PyObject *dtype, *empty, *ascontiguousarray;
    PyObject *no_check; ///< {"refcheck": False}
    PyTypeObject *scalars[TFOS__NUMPY_SCALAR_COUNT];
};

/// The struct behind __array_struct__.
struct tfos__py_numpy_interface_struct {
    int two;
    int nd;
    char typekind;
    int itemsize;
    int flags;
    intptr_t *shape;
    intptr_t *strides;
    void *data;
    PyObject *descr;
};

/// Imports numpy when needed. NULL with an exception.
const struct tfos__py_numpy *tfos__py_numpy_load(void);

/// The same, but NULL without an exception when the process has not imported numpy: then no value
/// is numpy's. NULL with an exception when its import failed.
const struct tfos__py_numpy *tfos__py_numpy_find(void);

/// The array's interface; lives as long as `*capsule`, which the caller owns. NULL with an
/// exception.
const struct tfos__py_numpy_interface_struct *tfos__py_numpy_interface(PyObject *array,
                                                                       PyObject **capsule);

/// Whether it is an array of numpy's own class. Subclasses may have a state of their own.
static inline bool tfos__py_numpy_is_array(const struct tfos__py_numpy *numpy, PyObject *value)
{
    return Py_TYPE(value) == numpy->ndarray || Py_TYPE(value) == numpy->memmap;
}

/// The type of a scalar or array that has a column form, in the machine's byte order. false: it has
/// none, or, with an exception, failed.
bool tfos__py_numpy_classify(const struct tfos__py_numpy *numpy, PyObject *value,
                             struct tfos__py_value_type *type);

/// Reads letter, itemsize and unit of the elements of a scalar, or an array of any class.
/// `*is_native`: they are in the machine's byte order. false: they have no code of ours, or, with
/// an exception, failed.
bool tfos__py_numpy_read_elements(const struct tfos__py_numpy *numpy, PyObject *value,
                                  struct tfos__py_value_type *type, bool *is_native);

/// numpy's dtype of the type's elements, a new reference. NULL with an exception.
PyObject *tfos__py_numpy_dtype(const struct tfos__py_numpy *numpy,
                               const struct tfos__py_value_type *type);

/// The class of scalars of this kind and size; borrowed. NULL when there is none.
PyTypeObject *tfos__py_numpy_scalar_type(const struct tfos__py_numpy *numpy,
                                         const struct tfos__py_value_type *type);

/// A new array of `count` objects, None so far. NULL with an exception.
PyObject *tfos__py_numpy_new_objects(const struct tfos__py_numpy *numpy, Py_ssize_t count);

/// A one-dimensional array of the list's objects, each put by itself so that numpy does not look
/// into them. NULL with an exception.
PyObject *tfos__py_numpy_object_array(PyObject *objects);

/// A new C-contiguous array that is not filled, of `count` rows (negative: no row dimension) of
/// `type`'s shape, and its memory. NULL with an exception.
PyObject *tfos__py_numpy_new_array(const struct tfos__py_numpy *numpy,
                                   const struct tfos__py_value_type *type, PyObject *dtype,
                                   int64_t count, void **data);

#endif

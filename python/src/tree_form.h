// SPDX-License-Identifier: Apache-2.0
/// What a value of a tree is made of. The caller holds the GIL.
#ifndef TFOS_PYTHON_TREE_FORM_H
#define TFOS_PYTHON_TREE_FORM_H

#include <Python.h>
#include <stdbool.h>

#include "value_type.h"

#define TFOS__TREE_DEPTH 32 ///< levels of lists; as many as Spark's side reads

/// The type of leaves has `kind` BOOL to BYTES, or NULL while there is none; numbers have numpy's
/// letter and itemsize too.
struct tfos__py_tree_form {
    int depth;      ///< levels of lists, at least
    int leaf_depth; ///< -1: there is no leaf
    struct tfos__py_value_type leaf;
    bool has_large; ///< an integer that no float equals
    bool is_mixed;  ///< leaves of several kinds
    bool is_other;  ///< not only lists and Python's own leaves
};

/// Surveys a value. `mixes_bools`: booleans beside numbers are numbers too. 1: done, 0: it has no
/// such form, -1: an exception.
int tfos__py_tree_form_init(struct tfos__py_tree_form *form, PyObject *value, bool mixes_bools);

/// The form of values of a typed column. False: they have none.
bool tfos__py_tree_form_of_type(struct tfos__py_tree_form *form, const struct tfos__py_value_type *type);

/// The value as None, list, tuple, int, float, bool, str or bytes, if it is one of these or numpy's
/// or of a subclass of a leaf's; anything else as it is. A new reference; NULL with an exception.
PyObject *tfos__py_tree_form_plain(PyObject *value);

static inline bool tfos__py_tree_form_is_list(PyObject *value)
{
    return Py_TYPE(value) == &PyList_Type || Py_TYPE(value) == &PyTuple_Type;
}

static inline PyObject *tfos__py_tree_form_item(PyObject *list, Py_ssize_t index)
{
    return Py_TYPE(list) == &PyList_Type ? PyList_GetItem(list, index)
                                         : PyTuple_GetItem(list, index);
}

/// The type that holds leaves of both; kind OPAQUE: there is none.
struct tfos__py_value_type tfos__py_tree_form_widen(const struct tfos__py_value_type *a,
                                              const struct tfos__py_value_type *b, bool mixes_bools);

#endif

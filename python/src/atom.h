// SPDX-License-Identifier: Apache-2.0
/// Single values of Python: those that are neither sequences nor numpy's. The caller holds the GIL.
#ifndef TFOS_PYTHON_ATOM_H
#define TFOS_PYTHON_ATOM_H

#include <Python.h>

#include "value_type.h"

/// What a value is, BOOL to BYTES; OPAQUE when it has no column form of its own. -1 with an
/// exception.
int tfos__py_atom_classify(PyObject *value, enum tfos__py_value_kind *kind);

/// The int, float, str or bytes that a value of a subclass of these is, anything else as it is: a
/// new reference. NULL with an exception.
PyObject *tfos__py_atom_base(PyObject *value);

/// UTF-8 of a str, a new reference; NULL without an exception for one that has none (lone
/// surrogates), else with.
PyObject *tfos__py_atom_encode(PyObject *text);

#endif

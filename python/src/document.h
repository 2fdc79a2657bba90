// SPDX-License-Identifier: Apache-2.0
/// Messages of the rendezvous as Python objects, by Python's own json. The caller holds the GIL.
#ifndef TFOS_PYTHON_DOCUMENT_H
#define TFOS_PYTHON_DOCUMENT_H

#include <Python.h>
#include <stdbool.h>

/// The object that a JSON text of the library says; frees the text. NULL with an exception.
PyObject *tfos__document_parse(char *json);

/// An object as JSON text (bytes). NULL with an exception.
PyObject *tfos__document_write(PyObject *object);

/// A member of a message, borrowed: None when it is missing.
PyObject *tfos__document_get(PyObject *message, const char *name);

/// Whether the member is this text.
bool tfos__document_is(PyObject *message, const char *name, const char *text);

#endif

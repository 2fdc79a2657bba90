// SPDX-License-Identifier: Apache-2.0
/// What the iterator of results shares with its FeedWriter.
#ifndef TFOS_PYTHON_WRITER_CLASS_H
#define TFOS_PYTHON_WRITER_CLASS_H

#include "feeder.h"
#include "gate.h"

#include <Python.h>

struct tfos__writer_object {
    PyObject_HEAD
    struct tfos__gate gate;
    struct tfos__feeder *feeder; ///< owned; NULL before init and after close
    bool is_used;                ///< rows were fed
};

/// An iterator of results, which takes rows from `iterator` (borrowed). NULL with an exception.
PyObject *tfos__results_new(struct tfos__writer_object *writer, PyObject *iterator);

#endif

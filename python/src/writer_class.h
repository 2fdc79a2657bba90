// SPDX-License-Identifier: Apache-2.0
/// What the iterator of results shares with its FeedWriter.
#ifndef TFOS_PYTHON_WRITER_CLASS_H
#define TFOS_PYTHON_WRITER_CLASS_H

#include "handle.h"
#include "row_feeder.h"

#include <Python.h>

struct tfos__py_writer {
    struct tfos__py_handle handle; ///< of a struct tfos__py_row_feeder
    bool is_used;               ///< rows were fed, or the partition's end
    bool has_batches;           ///< batches were
    bool is_over;               ///< the reader wants no more, or the partition is skipped
};

/// An iterator of results, which takes rows from `iterator` (borrowed), or `has_columns`, Arrow
/// batches, and gives such. NULL with an exception.
PyObject *tfos__py_results_new(struct tfos__py_writer *writer, PyObject *iterator,
                            bool has_columns);

#endif

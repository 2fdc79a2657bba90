// SPDX-License-Identifier: Apache-2.0
/// Arguments of Python calls, checked by name: the limited API's own parsing reports only the
/// argument's number. The caller holds the GIL.
#ifndef TFOS_PYTHON_PARAMETER_H
#define TFOS_PYTHON_PARAMETER_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <tfos/stream.h>

enum tfos__py_parameter_kind {
    TFOS__TEXT,          ///< str; `out` is a const char ** (UTF-8)
    TFOS__OPTIONAL_TEXT, ///< str or None, which gives NULL
    TFOS__PATH,          ///< the same as TEXT, in the bytes that the file system has for it
    TFOS__INT,           ///< an integer in [min, max]; int64_t *
    TFOS__BOOL,          ///< bool *
    TFOS__BYTES,         ///< bytes; struct tfos_view *, into the argument
    TFOS__SCHEMA,        ///< an Arrow schema of columns; const struct ArrowSchema **
    TFOS__ANY            ///< PyObject **, borrowed
};

/// One parameter; `out` keeps its value when the argument is left out. A zeroed one ends a table.
struct tfos__py_parameter {
    const char *name;
    enum tfos__py_parameter_kind kind;
    bool is_required;
    int64_t min, max; ///< INT
    void *out;
};

/// Reads positional and keyword arguments of `function`. On success `*kept`, owned by the caller,
/// keeps texts and schemas alive. -1 with TypeError or ValueError, which name the argument and what
/// was expected.
int tfos__py_parameters_read(const char *function, const struct tfos__py_parameter *parameters,
                             PyObject *args, PyObject *kwargs, PyObject **kept);

#endif

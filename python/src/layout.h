// SPDX-License-Identifier: Apache-2.0
/// What the rows of a batch are, read from its schema: the other end of the packer. The caller
/// holds the GIL.
#ifndef TFOS_PYTHON_LAYOUT_H
#define TFOS_PYTHON_LAYOUT_H

#include "packer.h"
#include "value.h"

#include <Python.h>
#include <tfos/arrow.h>

struct tfos__layout_column {
    struct tfos__value_type type;
    PyObject *dtype;      ///< numpy's dtype, for SCALAR and ARRAY; owned
    PyTypeObject *scalar; ///< SCALAR: the class; borrowed from numpy
};

struct tfos__layout {
    enum tfos__row_kind kind;
    int64_t column_count;
    struct tfos__layout_column *columns; ///< owned
    PyObject *names;                     ///< tuple of str; owned
    PyObject *fields;                    ///< SPARK: the names as a list, for __fields__; owned
    PyObject *spark_row;                 ///< SPARK: the class Row; owned
    PyObject *make_tuple;                ///< SPARK: tuple.__new__; owned
};

/// Reads a schema into `layout`, to be ended by clear(). -1 with an exception (CorruptError); then
/// there is nothing to clear.
int tfos__layout_init(struct tfos__layout *layout, const struct ArrowSchema *schema);

/// Checks that the array has the columns that the layout says. -1 with an exception (CorruptError).
int tfos__layout_check(const struct tfos__layout *layout, const struct ArrowArray *array);

/// How messages call a column: its name in quotes, or its number. A new reference.
PyObject *tfos__layout_column_name(const struct tfos__layout *layout, int64_t column);

void tfos__layout_clear(struct tfos__layout *layout);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column of values of one Python type, of which the reader makes the same values again, or of
/// any values, pickled. The caller holds the GIL.
#ifndef TFOS_PYTHON_TYPED_H
#define TFOS_PYTHON_TYPED_H

#include "row_packer.h"
#include "series.h"

struct tfos__py_typed {
    struct tfos__py_series series;
    PyObject *dtype;      ///< of numpy's elements; owned
    PyTypeObject *scalar; ///< of numpy's scalars: their class; borrowed from numpy
    bool is_established;  ///< a batch of this type was taken
    bool takes_any;       ///< values that have no type are pickled
    bool refuses_moments; ///< numpy's dates and durations have no type here
};

/// An empty column of unknown type in zeroed memory; -1 with an exception (as everywhere here).
int tfos__py_typed_init(struct tfos__py_typed *typed);

/// What a value is; kind OPAQUE: it has no type.
int tfos__py_typed_classify(const struct tfos__py_typed *typed, PyObject *value,
                         struct tfos__py_value_type *type);

/// Puts a value at the end. REFUSED when the column's type is too narrow; then it is as it was.
enum tfos__py_pack_result tfos__py_typed_append(struct tfos__py_typed *typed, PyObject *value);

/// Empties the column and gives it a type.
int tfos__py_typed_reset(struct tfos__py_typed *typed, const struct tfos__py_value_type *type);

void tfos__py_typed_clear(struct tfos__py_typed *typed);

#endif

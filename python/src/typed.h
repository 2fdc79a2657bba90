// SPDX-License-Identifier: Apache-2.0
/// A column of values of one Python type, of which the reader makes the same values again, or of
/// any values, pickled. The caller holds the GIL.
#ifndef TFOS_PYTHON_TYPED_H
#define TFOS_PYTHON_TYPED_H

#include "packer.h"
#include "series.h"

struct tfos__typed {
    struct tfos__series series;
    PyObject *dtype;      ///< of numpy's elements; owned
    PyTypeObject *scalar; ///< of numpy's scalars: their class; borrowed from numpy
    bool is_established;  ///< a batch of this type was taken
    bool takes_any;       ///< values that have no type are pickled
    bool refuses_moments; ///< numpy's dates and durations have no type here
};

/// An empty column of unknown type in zeroed memory; -1 with an exception (as everywhere here).
int tfos__typed_init(struct tfos__typed *typed);

/// What a value is; kind OPAQUE: it has no type.
int tfos__typed_classify(const struct tfos__typed *typed, PyObject *value,
                         struct tfos__value_type *type);

/// Puts a value at the end. REFUSED when the column's type is too narrow; then it is as it was.
enum tfos__pack_result tfos__typed_append(struct tfos__typed *typed, PyObject *value);

/// Empties the column and gives it a type.
int tfos__typed_reset(struct tfos__typed *typed, const struct tfos__value_type *type);

void tfos__typed_clear(struct tfos__typed *typed);

#endif

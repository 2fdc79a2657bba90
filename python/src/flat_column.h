// SPDX-License-Identifier: Apache-2.0
/// A column that takes values of one Python type, of which the reader makes the same values again,
/// or any values, pickled. The caller holds the GIL.
#ifndef TFOS_PYTHON_FLAT_COLUMN_H
#define TFOS_PYTHON_FLAT_COLUMN_H

#include "python_value.h"

enum tfos__py_pack_result {
    TFOS__PACK_ERROR = -1, ///< with an exception
    TFOS__PACK_DONE = 0,   ///< the value or row is in the column or batch
    TFOS__PACK_REFUSED = 1 ///< it does not fit
};

struct tfos__py_flat_column {
    struct tfos__py_value_type type;
    struct tfos__arrow_builder values; ///< sequences are lists here, also those of one length
    PyObject *dtype;                   ///< of numpy's elements; owned
    PyTypeObject *scalar;              ///< of numpy's scalars: their class; borrowed from numpy
    bool is_established;               ///< a batch of this type was taken
    bool takes_any;                    ///< values that have no type are pickled
    bool refuses_moments;              ///< numpy's dates and durations have no type here
};

/// Empties the column and gives it a type; a zeroed one too. -1 with an exception (as everywhere
/// here).
int tfos__py_flat_column_reset(struct tfos__py_flat_column *column,
                               const struct tfos__py_value_type *type);

/// What a value is; kind OPAQUE: it has no type.
int tfos__py_flat_column_classify(const struct tfos__py_flat_column *column, PyObject *value,
                                  struct tfos__py_value_type *type);

/// Puts a value at the end. REFUSED when the column's type is too narrow; then it is as it was.
enum tfos__py_pack_result tfos__py_flat_column_append(struct tfos__py_flat_column *column,
                                                      PyObject *value);

/// Makes a zeroed schema, which the caller releases, and brings `column->values.array` up to date.
int tfos__py_flat_column_show(struct tfos__py_flat_column *column, const char *name,
                              struct ArrowSchema *schema);

void tfos__py_flat_column_clear(struct tfos__py_flat_column *column);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column that takes Python values. The caller holds the GIL.
#ifndef TFOS_PYTHON_FIELD_H
#define TFOS_PYTHON_FIELD_H

#include "packer.h"
#include "series.h"

struct tfos__field {
    struct tfos__series series;
    PyObject *dtype;      ///< ARRAY: that of the arrays; owned
    PyTypeObject *scalar; ///< SCALAR: the values' class; borrowed from numpy
    bool is_established;  ///< a batch of this type was taken
};

/// An empty field of unknown type in zeroed memory; -1 with an exception.
int tfos__field_init(struct tfos__field *field);

/// Puts a value at the end. REFUSED when the field's type is too narrow; then it is as it was.
enum tfos__pack_result tfos__field_append(struct tfos__field *field, PyObject *value);

/// Empties the field and gives it a type that takes `value` as well as what it took before. -1 with
/// an exception.
int tfos__field_widen(struct tfos__field *field, PyObject *value);

/// Empties the field and makes it take any value. -1 with an exception.
int tfos__field_make_opaque(struct tfos__field *field);

/// The batch was taken: drops the values, keeps the type.
void tfos__field_reset(struct tfos__field *field);

void tfos__field_clear(struct tfos__field *field);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column that takes Python values. The caller holds the GIL.
#ifndef TFOS_PYTHON_FIELD_H
#define TFOS_PYTHON_FIELD_H

#include "packer.h"
#include "series.h"
#include "tree.h"

struct tfos__field {
    struct tfos__series series;
    PyObject *dtype;         ///< ARRAY: that of the arrays; owned
    PyTypeObject *scalar;    ///< SCALAR: the values' class; borrowed from numpy
    bool is_established;     ///< a batch of this type was taken
    bool takes_trees;        ///< whoever reads it wants columns, not the same Python objects
    struct tfos__tree *tree; ///< has the values, and the series none; owned; mostly NULL
};

/// An empty field of unknown type in zeroed memory; -1 with an exception.
int tfos__field_init(struct tfos__field *field);

/// Puts a value at the end. REFUSED when the field's type is too narrow; then it is as it was.
enum tfos__pack_result tfos__field_append(struct tfos__field *field, PyObject *value);

/// Empties the field and gives it a type that takes `value` as well as what it took before. -1 with
/// an exception.
int tfos__field_widen(struct tfos__field *field, PyObject *value);

/// Empties the field and makes it a tree. -1 with an exception.
int tfos__field_make_tree(struct tfos__field *field);

/// Empties the field and makes it take any value. -1 with an exception.
int tfos__field_make_opaque(struct tfos__field *field);

/// Drops values from the end until `length` are left.
void tfos__field_truncate(struct tfos__field *field, int64_t length);

/// Bytes of the values, about.
size_t tfos__field_size(const struct tfos__field *field);

/// The column, which lives until the field changes. `name` is borrowed.
void tfos__field_show(struct tfos__field *field, const char *name, struct ArrowSchema **schema,
                      struct ArrowArray **array);

/// The batch was taken: drops the values, keeps the type.
void tfos__field_reset(struct tfos__field *field);

void tfos__field_clear(struct tfos__field *field);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column that takes Python values: a typed one as long as all values are of one type, else a
/// tree if they are numbers, texts or lists of such, else one of pickled values. Beside a tree
/// those values are pickled that it does not make again, unless the reader wants columns. The
/// caller holds the GIL.
#ifndef TFOS_PYTHON_FIELD_H
#define TFOS_PYTHON_FIELD_H

#include "row_packer.h"
#include "tree.h"
#include "typed.h"

struct tfos__py_field {
    struct tfos__py_typed typed;
    bool wants_columns;             ///< as of a packer
    struct tfos__py_tree *tree;        ///< has the values, and `typed` none; owned; mostly NULL
    struct tfos__py_series *originals; ///< of a tree's values those that it does not make again,
                                    ///< pickled; NULL: there are none; owned
    struct tfos__py_field_view *view;  ///< of both; owned
};

/// An empty field of unknown type in zeroed memory; -1 with an exception.
int tfos__py_field_init(struct tfos__py_field *field, bool wants_columns);

/// Puts a value at the end. REFUSED when the field's type is too narrow; then it is as it was.
enum tfos__py_pack_result tfos__py_field_append(struct tfos__py_field *field, PyObject *value);

/// Makes a tree of the values and puts the one behind them that was refused, unless a batch was
/// taken before. REFUSED when that cannot be; then the field is as it was.
enum tfos__py_pack_result tfos__py_field_convert(struct tfos__py_field *field, PyObject *value);

/// Empties the field and gives it a type that takes `value` as well as what it took before. -1 with
/// an exception.
int tfos__py_field_widen(struct tfos__py_field *field, PyObject *value);

/// Empties the field and makes it a tree. -1 with an exception.
int tfos__py_field_make_tree(struct tfos__py_field *field);

/// Empties the field and makes it take any value. -1 with an exception.
int tfos__py_field_make_opaque(struct tfos__py_field *field);

/// Drops values from the end until `length` are left.
void tfos__py_field_truncate(struct tfos__py_field *field, int64_t length);

/// Bytes of the values, about.
size_t tfos__py_field_size(const struct tfos__py_field *field);

/// The column, which lives until the field changes. `name` is borrowed.
void tfos__py_field_show(struct tfos__py_field *field, const char *name, struct ArrowSchema **schema,
                      struct ArrowArray **array);

/// The batch was taken: drops the values, keeps the type.
void tfos__py_field_reset(struct tfos__py_field *field);

void tfos__py_field_clear(struct tfos__py_field *field);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column of values in lists of lists, to any depth: what a DataFrame can have and a flat column
/// cannot. Lists, tuples and numpy's arrays are the same here, None may be anywhere, integers
/// beside floats are floats, and a value of a subclass of int, float, str or bytes is one of these.
/// It is shown as plain Arrow, of which those values that are lists of Python's own numbers, texts
/// and bytes can be made again; append() reports the others. The caller holds the GIL.
#ifndef TFOS_PYTHON_NESTED_COLUMN_H
#define TFOS_PYTHON_NESTED_COLUMN_H

#include "flat_column.h"

#define TFOS__NESTED_DEPTH 32 ///< levels of lists; as many as Spark's side reads

struct tfos__py_nested_column {
    bool mixes_bools;                ///< booleans beside numbers are numbers too
    int depth;                       ///< of the leaves
    struct tfos__py_value_type leaf; ///< kind BOOL to BYTES; NULL while there is none
    struct tfos__arrow_builder values;
    struct tfos__arrow_builder *levels[TFOS__NESTED_DEPTH + 1]; ///< `values` and what is in it
};

/// An empty column, of the type of `like` if that is not NULL. NULL with an exception.
struct tfos__py_nested_column *
tfos__py_nested_column_open(const struct tfos__py_nested_column *like, bool mixes_bools);

/// Puts a value at the end. `*is_same`: it can be made again from the column. REFUSED, with the
/// column as it was: it is of no such kind, its values are at another depth than those before, or
/// the type that holds both is not that of those before.
enum tfos__py_pack_result tfos__py_nested_column_append(struct tfos__py_nested_column *column,
                                                        PyObject *value, bool *is_same);

/// Gives an empty column a type that also takes `value`, or values of a flat column. Results as of
/// append().
enum tfos__py_pack_result tfos__py_nested_column_widen(struct tfos__py_nested_column *column,
                                                       PyObject *value);
enum tfos__py_pack_result tfos__py_nested_column_widen_by(struct tfos__py_nested_column *column,
                                                          const struct tfos__py_value_type *type);

/// Drops all values, and the type. -1 with an exception.
int tfos__py_nested_column_reset(struct tfos__py_nested_column *column);

/// As tfos__py_flat_column_show().
int tfos__py_nested_column_show(struct tfos__py_nested_column *column, const char *name,
                                struct ArrowSchema *schema);

/// NULL is accepted.
void tfos__py_nested_column_close(struct tfos__py_nested_column *column);

#endif

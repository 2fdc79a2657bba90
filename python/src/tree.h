// SPDX-License-Identifier: Apache-2.0
/// A column of values in lists of lists, to any depth: what a DataFrame can have and the forms of a
/// series cannot. Lists, tuples and numpy's arrays are the same here, None may stand anywhere,
/// integers beside floats are floats, and a value of a subclass of int, float, str or bytes is one
/// of these. It is shown as plain Arrow, of which those values that are lists of Python's own
/// numbers, texts and bytes can be made again; append() tells of the others. The caller holds the
/// GIL.
#ifndef TFOS_PYTHON_TREE_H
#define TFOS_PYTHON_TREE_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>

#include "row_packer.h"
#include "value_type.h"

struct tfos__py_tree;

/// An empty tree, of the type of `like` if that is not NULL. `mixes_bools`: booleans beside numbers
/// are numbers too. NULL with an exception.
struct tfos__py_tree *tfos__py_tree_open(const struct tfos__py_tree *like, bool mixes_bools);

/// Puts a value at the end. `*is_same`: it can be made again from the column. REFUSED, with the
/// tree as it was: it is of no such kind, its values are at another depth than those before, or the
/// type that holds both is not that of those before.
enum tfos__py_pack_result tfos__py_tree_append(struct tfos__py_tree *tree, PyObject *value, bool *is_same);

/// Gives an empty tree a type that also takes `value`. Results as of append().
enum tfos__py_pack_result tfos__py_tree_widen(struct tfos__py_tree *tree, PyObject *value);

/// Gives an empty tree a type that also takes values of a typed column. Results as of append().
enum tfos__py_pack_result tfos__py_tree_widen_by(struct tfos__py_tree *tree,
                                           const struct tfos__py_value_type *type);

/// Drops values from the end until `length` are left.
void tfos__py_tree_truncate(struct tfos__py_tree *tree, int64_t length);

/// Drops all values, and the type.
void tfos__py_tree_reset(struct tfos__py_tree *tree);

int64_t tfos__py_tree_length(const struct tfos__py_tree *tree);

/// Bytes of the values, about.
size_t tfos__py_tree_size(const struct tfos__py_tree *tree);

/// The column; both live until the tree changes, and have nothing to be released. `name` is
/// borrowed.
void tfos__py_tree_show(struct tfos__py_tree *tree, const char *name, struct ArrowSchema **schema,
                     struct ArrowArray **array);

/// NULL is accepted.
void tfos__py_tree_close(struct tfos__py_tree *tree);

#endif

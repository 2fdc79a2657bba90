// SPDX-License-Identifier: Apache-2.0
/// A column of values in lists of lists, to any depth: what a DataFrame can have and the forms of a
/// series cannot. Lists, tuples and numpy's arrays are the same here, None may stand anywhere, and
/// integers beside floats are floats; so the Python objects cannot be made again, only columns of
/// the same values. It is shown as plain Arrow. The caller holds the GIL.
#ifndef TFOS_PYTHON_TREE_H
#define TFOS_PYTHON_TREE_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>

#include "packer.h"

struct tfos__tree;

/// NULL with an exception.
struct tfos__tree *tfos__tree_open(void);

/// Puts a value at the end. REFUSED, with the tree as it was: it is of no such kind, or its values
/// are at another depth or of another type than those before, where no float can stand for both.
enum tfos__pack_result tfos__tree_append(struct tfos__tree *tree, PyObject *value);

/// Drops values from the end until `length` are left; of an empty tree also the type.
void tfos__tree_truncate(struct tfos__tree *tree, int64_t length);

/// Bytes of the values, about.
size_t tfos__tree_size(const struct tfos__tree *tree);

/// The column; both live until the tree changes, and have nothing to be released. `name` is
/// borrowed.
void tfos__tree_show(struct tfos__tree *tree, const char *name, struct ArrowSchema **schema,
                     struct ArrowArray **array);

/// NULL is accepted.
void tfos__tree_close(struct tfos__tree *tree);

#endif

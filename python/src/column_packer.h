// SPDX-License-Identifier: Apache-2.0
/// A column that takes Python values: a flat one as long as all values are of one type, else a
/// nested one if they are numbers, texts or lists of such, else one of pickled values. Beside a
/// nested column those values are pickled that it does not make again, unless the reader wants
/// columns. The caller holds the GIL.
#ifndef TFOS_PYTHON_COLUMN_PACKER_H
#define TFOS_PYTHON_COLUMN_PACKER_H

#include "nested_column.h"

struct tfos__py_column_packer {
    struct tfos__py_flat_column flat;
    bool wants_columns;                    ///< as of a row packer
    struct tfos__py_nested_column *nested; ///< has the values, and `flat` none; owned; mostly NULL
    /// Of the nested column's values those that it does not make again, pickled; of type BINARY
    /// when there are some
    struct tfos__arrow_builder originals;
    struct ArrowArray both, *both_children[2]; ///< the nested column and the originals
};

/// An empty column of unknown type in zeroed memory; -1 with an exception.
int tfos__py_column_packer_init(struct tfos__py_column_packer *packer, bool wants_columns);

/// Puts a value at the end. REFUSED when the column's type is too narrow; then it is as it was.
enum tfos__py_pack_result tfos__py_column_packer_append(struct tfos__py_column_packer *packer,
                                                        PyObject *value);

/// Makes a nested column of the values and puts the one behind them that was refused, unless a
/// batch was taken before. REFUSED when that cannot be; then the column is as it was.
enum tfos__py_pack_result tfos__py_column_packer_convert(struct tfos__py_column_packer *packer,
                                                         PyObject *value);

/// Empties the column and gives it a type that takes `value` as well as what it took before. -1
/// with an exception.
int tfos__py_column_packer_widen(struct tfos__py_column_packer *packer, PyObject *value);

/// Empties the column and makes it a nested one. -1 with an exception.
int tfos__py_column_packer_make_nested(struct tfos__py_column_packer *packer);

/// Empties the column and makes it take any value. -1 with an exception.
int tfos__py_column_packer_make_opaque(struct tfos__py_column_packer *packer);

/// Drops values from the end until `length` are left.
void tfos__py_column_packer_truncate(struct tfos__py_column_packer *packer, int64_t length);

/// Bytes of the values, about.
size_t tfos__py_column_packer_size(const struct tfos__py_column_packer *packer);

/// Makes a zeroed schema, which the caller releases also on failure. The array lives until the
/// column changes. NULL with an exception.
struct ArrowArray *tfos__py_column_packer_show(struct tfos__py_column_packer *packer,
                                               const char *name, struct ArrowSchema *schema);

/// The batch was taken: drops the values, keeps the type. -1 with an exception.
int tfos__py_column_packer_reset(struct tfos__py_column_packer *packer);

void tfos__py_column_packer_clear(struct tfos__py_column_packer *packer);

#endif

// SPDX-License-Identifier: Apache-2.0
/// What the rows of a batch are, read from its schema: the other end of the packer, or of any other
/// producer of Arrow's columns ("plain" ones, which have no metadata of ours). The caller holds the
/// GIL.
#ifndef TFOS_PYTHON_LAYOUT_H
#define TFOS_PYTHON_LAYOUT_H

#include "row_type.h"
#include "value_type.h"

#include <Python.h>
#include <tfos/arrow.h>

#include "arrow/arrow.h"

enum tfos__py_plain_kind {
    TFOS__PLAIN_NONE, ///< the column is one of ours; `type` says all
    TFOS__PLAIN_BOOL, ///< bits
    TFOS__PLAIN_INT,
    TFOS__PLAIN_UNSIGNED,
    TFOS__PLAIN_FLOAT,
    TFOS__PLAIN_DATE,      ///< days since 1970
    TFOS__PLAIN_TIMESTAMP, ///< since 1970, of a second `per_second`
    TFOS__PLAIN_TIME,      ///< of a day, of a second `per_second`
    TFOS__PLAIN_DURATION,  ///< of a second `per_second`
    TFOS__PLAIN_INTERVAL,  ///< months, days, nanoseconds
    TFOS__PLAIN_TEXT,
    TFOS__PLAIN_BYTES,
    TFOS__PLAIN_DECIMAL,
    TFOS__PLAIN_LIST,
    TFOS__PLAIN_FIXED_LIST,
    TFOS__PLAIN_STRUCT,
    TFOS__PLAIN_MAP
};

struct tfos__py_column {
    /// Of plain columns: SCALAR where each value is one number or date, ARRAY where it is a fixed
    /// number of them, OPAQUE elsewhere.
    struct tfos__py_value_type type;
    PyObject *dtype;      ///< numpy's dtype, of numpy's elements of ours; owned
    PyTypeObject *scalar; ///< SCALAR of ours: the class; borrowed from numpy

    bool has_originals; ///< of ours: two children, the values and, pickled, the originals of some
    enum tfos__py_plain_kind plain;
    int width;          ///< bytes of a value, or of an offset to values of varying size
    int64_t list_size;  ///< FIXED_LIST
    int64_t per_second; ///< TIMESTAMP, TIME, DURATION
    bool is_local;      ///< TIMESTAMP: with a time zone
    int scale;          ///< DECIMAL
    PyObject *names;    ///< STRUCT: tuple of str; owned
    PyObject *fields;   ///< STRUCT: the same as a list, for Row.__fields__; owned
    int64_t child_count;
    struct tfos__py_column *children; ///< owned
};

struct tfos__py_row_schema {
    enum tfos__py_row_kind kind;
    bool is_frame; ///< rows of a DataFrame, or of another who does not say what they are
    int64_t column_count;
    struct tfos__py_column *columns; ///< owned
    PyObject *names;                     ///< tuple of str; owned
    PyObject *fields;                    ///< SPARK: the names as a list, for __fields__; owned
    const char *pickled_class;           ///< NAMED: borrowed from the schema
    size_t pickled_class_size;
};

/// Reads a batch's schema into `layout`, to be ended by clear(), and checks that the array has the
/// columns that it says. -1 with an exception (CorruptError, or UnsupportedError that names a
/// column of a format that rows do not have); then there is nothing to clear.
int tfos__py_row_schema_init(struct tfos__py_row_schema *layout, const struct ArrowSchema *schema,
                      const struct ArrowArray *array);

/// Reads the schema of one column into `column`, zeroed before, also when it fails to be ended by
/// clear(). -1 with an exception as from init(), which does not say which column.
int tfos__py_column_init(struct tfos__py_column *column, const struct ArrowSchema *schema);

void tfos__py_column_clear(struct tfos__py_column *column);

/// How messages call a column: its name in quotes, or its number. A new reference.
PyObject *tfos__py_row_schema_column_name(const struct tfos__py_row_schema *layout, int64_t column);

void tfos__py_row_schema_clear(struct tfos__py_row_schema *layout);

/// Steps from a column with originals down to its values: `index` counts from the array's offset.
static inline void tfos__py_column_find_values(const struct tfos__py_column **column,
                                            const struct ArrowArray **array, int64_t *index)
{
    if (!(*column)->has_originals)
        return;
    *column = &(*column)->children[0];
    *index += (*array)->offset;
    *array = (*array)->children[0];
}

#endif

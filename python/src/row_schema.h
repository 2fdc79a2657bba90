// SPDX-License-Identifier: Apache-2.0
/// What the rows of a batch are, read from its schema: what the packer has packed, or any other
/// producer of Arrow's columns ("plain" ones, which have no metadata of ours: docs/protocol.md,
/// "Feed: plain Arrow batches"). The caller holds the GIL.
#ifndef TFOS_PYTHON_ROW_SCHEMA_H
#define TFOS_PYTHON_ROW_SCHEMA_H

#include <Python.h>

#include <tfos/arrow.h>

#include "arrow/arrow.h"
#include "row_type.h"
#include "value_type.h"

struct tfos__py_column {
    struct tfos__arrow_type arrow; ///< its time zone is the schema's
    /// Of plain columns: SCALAR where each value is one number or date, ARRAY where it is a fixed
    /// number of them, OPAQUE elsewhere.
    struct tfos__py_value_type type;
    bool is_packed;     ///< by the packer: `type` says what Python values they are
    bool has_originals; ///< two children, the values and, pickled, the originals of some
    PyObject *dtype;    ///< numpy's dtype, of numpy's elements that were packed; owned
    PyObject *names;    ///< STRUCT: tuple of str; owned
    PyObject *fields;   ///< STRUCT: the same as a list, for Row.__fields__; owned
    int64_t child_count;
    struct tfos__py_column *children; ///< owned; of lists one, their elements
};

struct tfos__py_row_schema {
    enum tfos__py_row_kind kind;
    bool is_frame; ///< rows of a DataFrame, or of another who does not say what they are
    int64_t column_count;
    struct tfos__py_column *columns; ///< owned
    PyObject *names;                 ///< tuple of str; owned
    PyObject *fields;                ///< SPARK: the names as a list, for __fields__; owned
    const char *pickled_class;       ///< NAMED: borrowed from the schema
    size_t pickled_class_size;
};

/// Reads a batch's schema, to be ended by clear() before that is released, and checks that the
/// array has the columns that it says. -1 with an exception (CorruptError, or UnsupportedError that
/// names a column of a type that rows do not have); then there is nothing to clear.
int tfos__py_row_schema_init(struct tfos__py_row_schema *rows, const struct ArrowSchema *schema,
                             const struct ArrowArray *array);

/// Reads the schema of one column into `column`, zeroed before, also when it fails to be ended by
/// clear(). -1 with an exception as from init(), which does not say which column.
int tfos__py_column_init(struct tfos__py_column *column, const struct ArrowSchema *schema);

void tfos__py_column_clear(struct tfos__py_column *column);

/// How messages call a column: its name in quotes, or its number. A new reference.
PyObject *tfos__py_row_schema_column_name(const struct tfos__py_row_schema *rows, int64_t column);

void tfos__py_row_schema_clear(struct tfos__py_row_schema *rows);

static inline bool tfos__py_column_is_list(const struct tfos__py_column *column)
{
    return column->arrow.kind == TFOS__ARROW_LIST;
}

/// A plain column of structs.
static inline bool tfos__py_column_is_struct(const struct tfos__py_column *column)
{
    return column->names != NULL;
}

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

/// The column's type as text, for messages: Spark's of a DataFrame's columns ("array<int>"), else
/// Python's and numpy's ("list of 784 float").
void tfos__py_column_describe(const struct tfos__py_column *column, bool is_frame,
                              char text[TFOS__VALUE_TEXT_SIZE]);

/// The same of numbers of a type, in arrays.
void tfos__py_column_describe_numbers(const struct tfos__py_value_type *type, bool is_frame,
                                      char text[TFOS__VALUE_TEXT_SIZE]);

#endif

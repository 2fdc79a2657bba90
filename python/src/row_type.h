// SPDX-License-Identifier: Apache-2.0
/// What rows of one batch have in common: their kind, class and names. The caller holds the GIL.
#ifndef TFOS_PYTHON_ROW_TYPE_H
#define TFOS_PYTHON_ROW_TYPE_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>

enum tfos__py_row_kind {
    TFOS__ROW_VALUE, ///< the row is one value
    TFOS__ROW_TUPLE,
    TFOS__ROW_LIST,
    TFOS__ROW_DICT,
    TFOS__ROW_SPARK, ///< pyspark.sql.Row
    TFOS__ROW_NAMED  ///< a namedtuple or dataclass
};

#define TFOS__ROW_KINDS 6

/// As metadata says it ("tfos.row").
extern const char *const tfos__py_row_kind_names[TFOS__ROW_KINDS];

static inline bool tfos__py_row_kind_has_names(enum tfos__py_row_kind kind)
{
    return kind == TFOS__ROW_DICT || kind == TFOS__ROW_SPARK || kind == TFOS__ROW_NAMED;
}

/// All zero is the type of rows that are one value.
struct tfos__py_row_type {
    enum tfos__py_row_kind kind;
    PyTypeObject *class;     ///< SPARK, NAMED: of all rows, VALUE: of the last; owned
    int64_t column_count;    ///< but for VALUE
    PyObject *names;         ///< of kinds that have them: tuple of str; owned
    PyObject *encoded_names; ///< the same as bytes; owned
    PyObject *spark_fields;  ///< SPARK: the __fields__ that were compared last; owned
    PyObject *pickled_class; ///< NAMED: bytes; NULL: its readers want columns; owned
};

/// Takes the type of a row into a zeroed one, which is to be ended by clear() whatever comes. 1:
/// done, 0: such rows cannot be columns, -1: an exception. `wants_columns`: as of a packer.
int tfos__py_row_type_init(struct tfos__py_row_type *type, PyObject *row, bool wants_columns);

/// Whether a row is of the type. -1 with an exception.
int tfos__py_row_type_fits(struct tfos__py_row_type *type, PyObject *row);

/// The row's value in a column, a new reference. NULL: it has none (a dict with other keys), or an
/// exception.
PyObject *tfos__py_row_type_value(const struct tfos__py_row_type *type, PyObject *row,
                                  int64_t column);

/// The column's name, "" where there is none; borrowed.
const char *tfos__py_row_type_name(const struct tfos__py_row_type *type, int64_t column);

/// Makes a schema of such rows, a struct of so many columns that are still to be made. -1 with an
/// exception.
int tfos__py_row_type_write(const struct tfos__py_row_type *type, int64_t column_count,
                            struct ArrowSchema *schema);

void tfos__py_row_type_clear(struct tfos__py_row_type *type);

/// A row of a class, of values that it takes over (NULL with an exception is passed on): a tuple.
/// NULL with an exception.
PyObject *tfos__py_named_row_make(PyObject *class, PyObject *names, PyObject *values);

#endif

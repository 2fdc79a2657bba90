// SPDX-License-Identifier: Apache-2.0
/// A column of the values of several batches: numbers, and lists of them while all have one
/// shape, in an array with room for more, other objects in a list, structs in a column for each
/// field. The caller holds the GIL.
#ifndef TFOS_PYTHON_CONCATENATED_COLUMN_H
#define TFOS_PYTHON_CONCATENATED_COLUMN_H

#include "row_schema.h"

struct tfos__py_concatenated {
    struct tfos__py_value_type type; ///< of a row in the array
    bool is_shaped;                  ///< it is what the rows were so far; their type leaves it open
    PyObject *array;                 ///< numbers: the array, once there is room; owned
    unsigned char *data;             ///< its memory; borrowed
    size_t row_size;                 ///< bytes of a row in it
    PyObject *objects;               ///< objects: a list; owned
    PyObject *names;                 ///< structs: tuple of str; owned
    int64_t child_count;
    struct tfos__py_concatenated *children; ///< owned
};

/// Values to put in: `count` of `array`, from `index` on, which counts from its offset.
struct tfos__py_concatenated_values {
    const struct tfos__py_column *column;
    const struct ArrowArray *array;
    int64_t index, count;
    bool is_python; ///< of rows of Python, whose lists with None are objects
};

/// A None that was met where there can be none.
struct tfos__py_concatenated_null {
    bool is_found;
    bool is_inside; ///< a value, though not None itself, has one
    int64_t row;    ///< of the rows given
    PyObject *path; ///< "" or the way to the field, as in ".position.x"; owned
    const struct tfos__py_column *column;
};

/// Begins, in zeroed memory and without room, a column that fits these values. -1 with an
/// exception; clear() is then due all the same (as everywhere here).
int tfos__py_concatenated_init(struct tfos__py_concatenated *column,
                               const struct tfos__py_concatenated_values *values);

/// Bytes of a row in the widest array of the column.
size_t tfos__py_concatenated_row_size(const struct tfos__py_concatenated *column);

/// Whether values of such a column go into the column; objects of any kind go among objects.
bool tfos__py_concatenated_fits(const struct tfos__py_concatenated *column,
                                const struct tfos__py_column *source);

/// Makes room for `capacity` values.
int tfos__py_concatenated_resize(struct tfos__py_concatenated *column, int64_t capacity);

/// Puts values behind the first `length`. Lists of another shape make all of them objects. -1 with
/// an exception, or without one but with `null` filled in.
int tfos__py_concatenated_append(struct tfos__py_concatenated *column, int64_t length,
                                 const struct tfos__py_concatenated_values *values,
                                 struct tfos__py_concatenated_null *null);

/// An array, or a dict of those of the fields; a new reference. NULL with an exception.
PyObject *tfos__py_concatenated_finish(struct tfos__py_concatenated *column);

/// The column's type as text. `is_frame`: it is a DataFrame's.
void tfos__py_concatenated_describe(const struct tfos__py_concatenated *column, bool is_frame,
                                    char text[TFOS__VALUE_TEXT_SIZE]);

void tfos__py_concatenated_clear(struct tfos__py_concatenated *column);

#endif

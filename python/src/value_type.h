// SPDX-License-Identifier: Apache-2.0
/// What the values of one column are: the bridge between Python's types and Arrow's. A type is
/// written into the metadata of the column's schema (docs/protocol.md, "Feed: rows of Python"), so
/// that the reader can make the same Python objects again.
#ifndef TFOS_PYTHON_VALUE_TYPE_H
#define TFOS_PYTHON_VALUE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arrow/arrow.h"

#define TFOS__MAX_DIMENSIONS 8    ///< arrays of more travel as opaque values
#define TFOS__VALUE_TEXT_SIZE 256 ///< room for any type as text

enum tfos__py_value_kind {
    TFOS__VALUE_NULL, ///< None, and nothing else so far
    TFOS__VALUE_BOOL, ///< one byte, 0 or 1
    TFOS__VALUE_INT,
    TFOS__VALUE_FLOAT,
    TFOS__VALUE_TEXT,
    TFOS__VALUE_BYTES,
    TFOS__VALUE_OPAQUE, ///< pickled
    TFOS__VALUE_SCALAR, ///< a numpy scalar
    TFOS__VALUE_LIST,
    TFOS__VALUE_TUPLE,
    TFOS__VALUE_ARRAY ///< a numpy array
};

struct tfos__py_value_type {
    enum tfos__py_value_kind kind;
    /// LIST, TUPLE: BOOL to BYTES, or SCALAR; NULL while all of them were empty
    enum tfos__py_value_kind item;
    char letter;         ///< numpy's elements: their kind, one of "biufcMm"
    char unit;           ///< "M", "m": "D", "s", "m" (milliseconds), "u" or "n"
    int itemsize;        ///< numpy's elements: bytes of one
    bool is_fixed;       ///< LIST, TUPLE, ARRAY: all have `shape`
    int dimension_count; ///< fixed: dimensions; ARRAY of varying length: 1
    int64_t shape[TFOS__MAX_DIMENSIONS];
};

/// Whether values are sequences of elements: LIST, TUPLE or ARRAY.
bool tfos__py_value_type_is_sequence(const struct tfos__py_value_type *type);

/// Elements of one value; for sequences that are not fixed there is no answer, and it is 0.
int64_t tfos__py_value_type_item_count(const struct tfos__py_value_type *type);

/// Bytes of one element, 0 when elements differ in size (text, bytes, pickles).
int tfos__py_value_type_width(const struct tfos__py_value_type *type);

/// Whether values have a numpy dtype, so that many of them make one array.
bool tfos__py_value_type_is_numeric(const struct tfos__py_value_type *type);

/// Whether elements are dates, times or durations of numpy.
bool tfos__py_value_type_is_moment(const struct tfos__py_value_type *type);

/// numpy's code of the elements' dtype ("f8", "M8[us]"); only for those that have one.
void tfos__py_value_type_dtype(const struct tfos__py_value_type *type, char text[8]);

/// Reads such a code into letter, itemsize and unit. False for a text that is none.
bool tfos__py_value_type_read_dtype(const char *text, struct tfos__py_value_type *type);

/// The letter, itemsize and unit of the elements' dtype, also of Python's numbers; letter 0: they
/// have none.
struct tfos__py_value_type tfos__py_value_type_elements(const struct tfos__py_value_type *type);

/// Whether values of type `b` can be elements of a column of type `a` as it is.
bool tfos__py_value_type_equals(const struct tfos__py_value_type *a,
                                const struct tfos__py_value_type *b);

/// The narrowest type that holds values of both.
struct tfos__py_value_type tfos__py_value_type_widen(const struct tfos__py_value_type *a,
                                                     const struct tfos__py_value_type *b);

/// Arrow's types of the column, and of the elements of a sequence.
struct tfos__arrow_type tfos__py_value_type_arrow(const struct tfos__py_value_type *type);
struct tfos__arrow_type tfos__py_value_type_item_arrow(const struct tfos__py_value_type *type);

/// Arrow's type of numpy's elements by which others know what they are: of dates as dates.
/// complex numbers and those of other sizes have none: NULL.
struct tfos__arrow_type tfos__py_value_type_plain_arrow(const struct tfos__py_value_type *type);

/// The type as metadata text, and read again. read() says false for a text that is none, and takes
/// from the column's type whether the type is fixed.
void tfos__py_value_type_write(const struct tfos__py_value_type *type,
                               char text[TFOS__VALUE_TEXT_SIZE]);
bool tfos__py_value_type_read(const char *text, const struct tfos__arrow_type *arrow,
                              struct tfos__py_value_type *type);

/// The type as text, for messages: "list of 784 float".
void tfos__py_value_type_describe(const struct tfos__py_value_type *type,
                                  char text[TFOS__VALUE_TEXT_SIZE]);

#endif

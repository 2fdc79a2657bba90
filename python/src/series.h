// SPDX-License-Identifier: Apache-2.0
/// A column that grows value by value and shows itself as Arrow C data without a copy. A value is
/// put in two steps: its elements are written behind the end, then commit() makes them the next
/// value; elements that were not committed do not exist. The caller holds the GIL (memory is
/// Python's).
#ifndef TFOS_PYTHON_SERIES_H
#define TFOS_PYTHON_SERIES_H

#include "value_type.h"

#include <tfos/arrow.h>

/// Memory that grows; owned.
struct tfos__py_block {
    unsigned char *data;
    size_t capacity;
};

/// Makes room for `size` bytes; false: out of memory.
bool tfos__py_block_grow(struct tfos__py_block *block, size_t size);

/// The Arrow structs that show() fills; their pointers lead into the column.
struct tfos__py_series_view {
    struct ArrowSchema schema, item_schema;
    struct ArrowSchema *schema_child;
    struct ArrowArray array, item_array;
    struct ArrowArray *array_child;
    const void *buffers[3], *item_buffers[3];
    char format[TFOS__FORMAT_SIZE], item_format[TFOS__FORMAT_SIZE];
    char metadata[TFOS__VALUE_TEXT_SIZE + 32];
};

struct tfos__py_series {
    struct tfos__py_value_type type;
    int64_t length; ///< values
    int64_t null_count;
    int width;                       ///< bytes of an element; 0: its end is in element_ends
    int64_t element_count;           ///< elements committed; for sequences the sum of their lengths
    struct tfos__py_block validity;     ///< bits; meaningful only while null_count > 0
    struct tfos__py_block value_ends;   ///< int64 offsets, for sequences that are not fixed
    struct tfos__py_block element_ends; ///< int64 offsets, where width is 0
    struct tfos__py_block elements;     ///< the elements' bytes
    struct tfos__py_series_view view;
};

/// An empty column of `type`; memory that it has is kept. false: out of memory (as everywhere
/// here).
bool tfos__py_series_init(struct tfos__py_series *series, const struct tfos__py_value_type *type);

/// Gives a column whose elements have no type yet (only None, only empty sequences) a type that
/// widens its own.
bool tfos__py_series_adopt(struct tfos__py_series *series, const struct tfos__py_value_type *type);

/// Makes a column of sequences of one length one of sequences of any length.
bool tfos__py_series_vary(struct tfos__py_series *series);

/// Room for `count` elements of fixed width behind the end; NULL: out of memory.
void *tfos__py_series_reserve(struct tfos__py_series *series, int64_t count);

/// Writes the element of varying width that is `index` places behind the end; in order.
bool tfos__py_series_write(struct tfos__py_series *series, int64_t index, const void *data, size_t size);

/// Makes the `count` elements written behind the end the next value.
bool tfos__py_series_commit(struct tfos__py_series *series, int64_t count);

bool tfos__py_series_commit_null(struct tfos__py_series *series);

/// Drops values from the end until `length` are left.
void tfos__py_series_truncate(struct tfos__py_series *series, int64_t length);

/// Bytes of the values, about.
size_t tfos__py_series_size(const struct tfos__py_series *series);

/// Fills the column's view, which lives until the column changes. `name` is borrowed.
struct tfos__py_series_view *tfos__py_series_show(struct tfos__py_series *series, const char *name);

/// Frees what it owns.
void tfos__py_series_clear(struct tfos__py_series *series);

/// Writes one key and value in the encoding of ArrowSchema.metadata.
void tfos__py_metadata_write(const char *key, const char *value, char *metadata);

/// The same in steps: how many pairs there will be, then one after the other. Each gives the place
/// behind what it wrote.
char *tfos__py_metadata_begin(int32_t pair_count, char *metadata);
char *tfos__py_metadata_add(const char *key, const void *value, size_t size, char *place);

#endif

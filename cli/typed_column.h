// SPDX-License-Identifier: Apache-2.0
/// Columns of a table on its way between text and records: their types, and their values as Arrow
/// has them.
#ifndef TFOS_CLI_TYPED_COLUMN_H
#define TFOS_CLI_TYPED_COLUMN_H

#include "allocation.h"
#include "arrow/arrow.h"

#include <stdbool.h>
#include <stdint.h>
#include <tfos.h>

#define COLUMN_DEPTH 2      // of lists
#define COLUMN_TYPE_SIZE 96 // of a type as text

enum column_kind {
    COLUMN_NOTHING, ///< no value has been seen
    COLUMN_INTEGER, ///< bigint
    COLUMN_REAL,    ///< float
    COLUMN_TEXT,    ///< string
    COLUMN_BYTES    ///< binary
};

struct column {
    char *name; ///< owned
    enum column_kind kind;
    int depth;                          ///< of lists; 0: one value a row
    struct tfos__arrow_builder *values; ///< of `rows`, once the columns are described
    uint64_t rounded, infinite;         ///< numbers that were rounded; beyond a float
};

/// The rows, a struct in Arrow.
struct columns {
    struct column *items; ///< owned
    size_t count;
    struct ArrowSchema schema;       ///< owned, once the columns are described
    struct tfos__arrow_builder rows; ///< whoever has added a value to each column raises its length
};

/// Of the values of such columns.
struct tfos__arrow_type column_type(enum column_kind kind);

/// "bigint", "array<float>": into `text`.
void column_type_text(const struct column *column, char text[COLUMN_TYPE_SIZE]);

/// Adds a column; the name is copied.
struct column *columns_add(struct columns *columns, const char *name, size_t name_size,
                           enum column_kind kind, int depth);

/// NULL: there is none of that name.
struct column *columns_find(const struct columns *columns, const char *name);

/// Reads "name TYPE, other array<TYPE>", or what `tfos record schema` prints; names in backquotes
/// may have any characters. False after saying what is wrong.
bool columns_parse(struct columns *columns, const char *text);

/// Takes over the columns of a schema that records have. False after naming a column that has
/// another type.
bool columns_of_schema(struct columns *columns, const struct ArrowSchema *schema);

/// Makes the schema, when all columns are there; values may be added then.
const struct ArrowSchema *columns_describe(struct columns *columns);

/// A list is what was added to the level below since the last one.
void column_add_null(struct column *column);
void column_end_list(struct column *column, int level);
void column_add_integer(struct column *column, int64_t value);
void column_add_real(struct column *column, float value);
/// False: there are too many bytes for a batch.
bool column_add_bytes(struct column *column, const void *data, size_t size);

/// The rows so far as a batch, valid until a value is added.
const struct ArrowArray *columns_batch(struct columns *columns);

void columns_clear(struct columns *columns);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Columns of a table on its way from text into records: their types, and their values as Arrow
/// has them.
#ifndef TFOS_CLI_COLUMNS_H
#define TFOS_CLI_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "arrow/arrow.h"
#include "bytes.h"

#define COLUMN_DEPTH 2 // of lists

struct column {
    char *name;                 ///< owned
    enum tfos__arrow_kind kind; ///< NULL (no value has been seen), INT, FLOAT, TEXT or BINARY
    int depth;                  ///< of lists; 0: one value a row
    struct tfos__arrow_builder *values; ///< of `rows`, once the columns are described
    uint64_t rounded, infinite;         ///< numbers that were rounded; beyond a float
};

/// The rows, a struct in Arrow.
struct columns {
    struct column *items; ///< owned
    size_t count;
    bool is_exact;                   ///< numbers that would be rounded are refused
    struct ArrowSchema schema;       ///< owned, once the columns are described
    struct tfos__arrow_builder rows; ///< who has added a value to each column raises its length
    struct bytes decoded;            ///< the last value of base64
};

/// Adds a column; the name is copied.
struct column *columns_add(struct columns *columns, const char *name, size_t name_size,
                           enum tfos__arrow_kind kind, int depth);

/// NULL: there is none of that name.
struct column *columns_find(const struct columns *columns, const char *name);

/// Reads "name TYPE, other array<TYPE>", or what `tfos record schema` prints; names in backquotes
/// may have any characters. False after an error message.
bool columns_parse(struct columns *columns, const char *text);

/// Makes the schema, when all columns are there; values may be added then.
const struct ArrowSchema *columns_describe(struct columns *columns);

/// Makes the column's type one that has room for the text of a cell too, and for a JSON value.
/// Returns NULL, or why there is none.
void column_widen_by_text(struct column *column, const char *text, size_t size, bool is_quoted);
const char *column_widen_by_json(struct column *column, const json_t *value);

/// Adds the text of a cell, which has a NUL behind, and a JSON value, of which NULL is null.
/// Returns NULL, or why the column cannot hold it.
const char *column_add_text(struct columns *columns, struct column *column, const char *text,
                            size_t size, bool is_quoted);
const char *column_add_json(struct columns *columns, struct column *column, const json_t *value);

/// The rows so far as a batch, valid until a value is added.
const struct ArrowArray *columns_show(struct columns *columns);

void columns_clear(struct columns *columns);

#endif

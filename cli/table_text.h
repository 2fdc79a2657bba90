// SPDX-License-Identifier: Apache-2.0
/// Tables as text: comma-separated values (RFC 4180) and lines of JSON.
#ifndef TFOS_CLI_TABLE_TEXT_H
#define TFOS_CLI_TABLE_TEXT_H

#include "text_file.h"
#include "typed_column.h"

#include <jansson.h>

enum text_outcome {
    TEXT_ROW,  ///< one was read
    TEXT_OVER, ///< there is no more
    TEXT_WRONG ///< it was said why
};

/// A text that is read as rows of columns.
struct table_input {
    struct text_input text;
    struct columns *columns;
    bool has_schema;    ///< the columns were said, not found
    bool has_header;    ///< of CSV
    bool is_exact;      ///< numbers that would be rounded are refused
    struct bytes line;  ///< of JSON
    struct bytes cells; ///< of CSV: struct csv_cell each
    struct bytes values;
    struct column **order; ///< of CSV: the columns as they stand in a line; owned
    size_t order_count;
};

/// A kind of text. All return an exit status but next().
struct table_format {
    /// Finds the columns and their types by reading the whole text; not where they were said.
    int (*survey)(struct table_input *input);
    /// Begins to read rows.
    int (*begin)(struct table_input *input);
    /// Adds the next row to the columns.
    enum text_outcome (*next)(struct table_input *input);
    void (*write_header)(struct bytes *text, const struct ArrowSchema *schema);
    void (*write_row)(struct bytes *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *batch, int64_t row);
};

extern const struct table_format csv_format, json_format;

/// Makes the column's kind one that has room for values of `kind` too. False: there is none.
bool column_widen(struct column *column, enum column_kind kind);

/// Adds a JSON value to a column. False, with the reason in words in `why`.
bool column_add_json(struct table_input *input, struct column *column, const json_t *value,
                     const char **why);

/// Adds a number to a column of floats, which is rounded and counted. False: the input is exact.
/// `is_rounded`: the number has more digits than `value` already.
bool column_add_number(const struct table_input *input, struct column *column, double value,
                       bool is_rounded);

#define NOT_EXACT                                                                                  \
    "a float, which is what records hold, cannot hold it with all its digits, and --exact refuses" \
    " that"

#endif

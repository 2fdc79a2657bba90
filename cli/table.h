// SPDX-License-Identifier: Apache-2.0
/// Tables as text: comma-separated values (RFC 4180) and lines of JSON.
#ifndef TFOS_CLI_TABLE_H
#define TFOS_CLI_TABLE_H

#include "columns.h"
#include "text_file.h"

/// A text that is read as rows of columns.
struct table {
    struct text_input text;
    struct columns columns;
    bool has_schema;       ///< the columns were given, not found
    bool has_header;       ///< of CSV
    struct bytes line;     ///< of JSON; of CSV the values of its cells, with a NUL behind each
    struct bytes cells;    ///< of CSV: struct csv_cell each
    struct column **order; ///< of CSV: the columns as they stand in a line; owned
    size_t order_count;
};

struct table_format {
    /// Begins to read rows; NULL: nothing is before them.
    enum tfos_status (*begin)(struct table *table);
    /// Reads the next row, and adds it to the columns, or makes their types ones that have room for
    /// it (`is_search`). END: there are no more. A failure was reported.
    enum tfos_status (*next)(struct table *table, bool is_search);
    /// NULL: there is none.
    void (*write_header)(struct bytes *text, const struct ArrowSchema *schema);
    void (*write_row)(struct bytes *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *batch, int64_t row);
};

extern const struct table_format csv_format, json_format;

#endif

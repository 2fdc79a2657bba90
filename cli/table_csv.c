// SPDX-License-Identifier: Apache-2.0
// Comma-separated values, quoted as RFC 4180 says. An empty cell is null, "" an empty text. Lists
// are JSON within a cell, bytes are base64.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "value_text.h"

struct csv_cell {
    size_t offset, size; ///< of the value in the line
    bool is_quoted;
    unsigned long long line, column;
};

static struct csv_cell *cells_of(const struct table *table)
{
    return (struct csv_cell *)(void *)table->cells.data; // realloc() aligns it
}

static size_t cell_count(const struct table *table)
{
    return table->cells.size / sizeof(struct csv_cell);
}

static const char *text_of(const struct table *table, const struct csv_cell *cell)
{
    return table->line.data + cell->offset;
}

// ---- lines

// Reads up to the quote that ends the cell, and the byte that ends it: a comma, '\n' or -1.
static enum tfos_status read_quoted(struct table *table, const struct csv_cell *cell, int *last)
{
    static const bool ends[256] = {['"'] = true};
    struct text_input *text = &table->text;
    int byte = text_input_read_until(text, &table->line, ends);
    while (byte >= 0 && text_input_peek(text) == '"') {
        bytes_add_byte(&table->line, (char)text_input_next(text));
        byte = text_input_read_until(text, &table->line, ends);
    }
    if (byte < 0)
        return text->has_failed
                   ? TFOS_IO
                   : text_input_refuse(text, cell->line, cell->column, "the quote is not closed");
    *last = text_input_next(text);
    if (*last == '\r' && text_input_peek(text) == '\n')
        *last = text_input_next(text);
    if (*last == ',' || *last == '\n' || *last < 0)
        return TFOS_OK;
    return text_input_refuse(text, text->line, text->column > 1 ? text->column - 1 : 1,
                             "a comma or the end of the line was expected behind a quoted cell");
}

static enum tfos_status read_plain(struct table *table, int *last)
{
    static const bool ends[256] = {[','] = true, ['\n'] = true, ['\r'] = true, ['"'] = true};
    struct text_input *text = &table->text;
    for (;;) {
        if (*last == '"')
            return text_input_refuse(text, text->line, text->column - 1,
                                     "a quote within a cell that is not quoted");
        if (*last == ',' || *last == '\n' || *last < 0)
            return TFOS_OK;
        bool is_return = *last == '\r';
        if (is_return && text_input_peek(text) != '\n')
            return text_input_refuse(text, text->line, text->column - 1,
                                     "a carriage return that no line feed follows, in a cell that "
                                     "is not quoted: lines end with a line feed");
        if (!is_return)
            bytes_add_byte(&table->line, (char)*last);
        *last = text_input_read_until(text, &table->line, ends);
    }
}

// Reads the cells of a line, which continues behind a quoted line end.
static enum tfos_status read_cells(struct table *table)
{
    struct text_input *text = &table->text;
    enum tfos_status status = TFOS_OK;
    int byte = text_input_peek(text);
    table->cells.size = table->line.size = 0;
    if (byte < 0)
        return text_input_status(text);
    do {
        struct csv_cell cell = {
            .offset = table->line.size, .line = text->line, .column = text->column};
        byte = text_input_next(text);
        cell.is_quoted = byte == '"';
        status = cell.is_quoted ? read_quoted(table, &cell, &byte) : read_plain(table, &byte);
        cell.size = table->line.size - cell.offset;
        bytes_add_byte(&table->line, '\0');
        bytes_add(&table->cells, &cell, sizeof(cell));
    } while (status == TFOS_OK && byte == ',');
    return text->has_failed ? TFOS_IO : status;
}

// The same, but for lines with nothing in them, where there are more columns than one.
static enum tfos_status read_line(struct table *table)
{
    enum tfos_status status;
    do
        status = read_cells(table);
    while (status == TFOS_OK && table->order_count > 1 && cell_count(table) == 1 &&
           cells_of(table)->size == 0 && !cells_of(table)->is_quoted);
    if (status != TFOS_OK || cell_count(table) == table->order_count)
        return status;
    const struct csv_cell *last = cells_of(table) + cell_count(table) - 1;
    return text_input_refuse(&table->text, last->line, last->column,
                             "the line has %zu cells, and there are %zu columns", cell_count(table),
                             table->order_count);
}

// ---- the header

// The cell of that name among the first `count`, or NULL.
static const struct csv_cell *find_cell(const struct table *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text_of(table, &cells_of(table)[i]), name) == 0)
            return &cells_of(table)[i];
    return NULL;
}

// Adds the column of a cell where columns are found.
static enum tfos_status take_name(struct table *table, size_t place)
{
    const struct csv_cell *cell = &cells_of(table)[place];
    const char *name = text_of(table, cell), *why = NULL;
    bool is_known = columns_find(&table->columns, name);
    if (cell->size == 0) {
        why = "the column has no name (pandas writes one so for the index, unless to_csv() is told "
              "index=False)";
    } else if (strlen(name) != cell->size || !is_utf8(name, cell->size)) {
        why = "this is no name of a column";
        name = "";
    } else if (table->has_schema && !is_known)
        why = "--schema has no column ";
    else if (find_cell(table, place, name))
        why = "there are two columns ";
    else if (!is_known)
        columns_add(&table->columns, name, cell->size, TFOS__ARROW_NULL, 0);
    return why ? text_input_refuse(&table->text, cell->line, cell->column, "%s%s", why, name)
               : TFOS_OK;
}

static enum tfos_status read_header(struct table *table)
{
    static const char mark[] = "\xEF\xBB\xBF"; // that some programs begin UTF-8 with
    enum tfos_status status = read_cells(table);
    if (status == TFOS_END)
        return text_input_refuse(&table->text, 1, 1, "there is no line with the names of columns");
    struct csv_cell *cells = cells_of(table);
    if (status == TFOS_OK && cells->size >= 3 && memcmp(table->line.data, mark, 3) == 0) {
        cells->offset += 3;
        cells->size -= 3;
    }
    for (size_t i = 0; status == TFOS_OK && i < cell_count(table); i++)
        status = take_name(table, i);
    for (size_t i = 0; status == TFOS_OK && i < table->columns.count; i++)
        if (!find_cell(table, cell_count(table), table->columns.items[i].name))
            status = text_input_refuse(&table->text, 1, 1, "there is no column %s",
                                       table->columns.items[i].name);
    return status;
}

static enum tfos_status begin_csv(struct table *table)
{
    struct columns *columns = &table->columns;
    enum tfos_status status = table->has_header ? read_header(table) : TFOS_OK;
    if (status != TFOS_OK)
        return status;
    free(table->order);
    table->order_count = columns->count;
    table->order = allocate(columns->count, sizeof(struct column *));
    for (size_t i = 0; i < columns->count; i++)
        table->order[i] = table->has_header
                              ? columns_find(columns, text_of(table, &cells_of(table)[i]))
                              : &columns->items[i];
    return TFOS_OK;
}

// ---- rows

static enum tfos_status next_line(struct table *table, bool is_search)
{
    enum tfos_status status = read_line(table);
    if (status != TFOS_OK)
        return status;
    for (size_t i = 0; i < table->order_count; i++) {
        const struct csv_cell *cell = &cells_of(table)[i];
        const char *text = text_of(table, cell), *why = NULL;
        if (is_search)
            column_widen_by_text(table->order[i], text, cell->size, cell->is_quoted);
        else
            why = column_add_text(&table->columns, table->order[i], text, cell->size,
                                  cell->is_quoted);
        if (why)
            return text_input_refuse(&table->text, cell->line, cell->column,
                                     "\"%.40s\" in column %s: %s", text, table->order[i]->name,
                                     why);
    }
    table->columns.rows.length += !is_search;
    return TFOS_OK;
}

static void write_cell(struct bytes *text, const char *data, size_t size)
{
    bool is_plain = size > 0;
    for (size_t i = 0; i < size && is_plain; i++)
        is_plain = !strchr(",\"\r\n", data[i]) || data[i] == '\0';
    if (is_plain) {
        bytes_add(text, data, size);
        return;
    }
    bytes_add_byte(text, '"');
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '"')
            bytes_add_byte(text, '"');
        bytes_add_byte(text, data[i]);
    }
    bytes_add_byte(text, '"');
}

static void write_value(struct bytes *text, const struct ArrowSchema *schema,
                        const struct ArrowArray *array, int64_t row)
{
    struct tfos__arrow_type type;
    char number[NUMBER_TEXT_SIZE];
    if (tfos__arrow_type_read(&type, schema, NULL) < 0 || tfos__arrow_is_null(array, row))
        return;
    if (type.kind == TFOS__ARROW_LIST) {
        struct bytes json = {0};
        bytes_add_json(&json, value_to_json(schema, array, row));
        write_cell(text, json.data, json.size);
        free(json.data);
    } else if (type.kind == TFOS__ARROW_INT) {
        snprintf(number, sizeof(number), "%lld", (long long)tfos__arrow_integer(&type, array, row));
        bytes_add(text, number, strlen(number));
    } else if (type.kind == TFOS__ARROW_FLOAT) {
        real_print((float)tfos__arrow_real(&type, array, row), number);
        bytes_add(text, number, strlen(number));
    } else {
        struct tfos_view bytes = tfos__arrow_bytes(&type, array, row);
        if (type.kind == TFOS__ARROW_BINARY && bytes.size > 0)
            base64_encode(text, bytes.data, bytes.size);
        else
            write_cell(text, bytes.data, bytes.size);
    }
}

static void write_line(struct bytes *text, const struct ArrowSchema *schema,
                       const struct ArrowArray *batch, int64_t row)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (i > 0)
            bytes_add_byte(text, ',');
        write_value(text, schema->children[i], batch->children[i], row);
    }
    bytes_add_byte(text, '\n');
}

static void write_header(struct bytes *text, const struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (i > 0)
            bytes_add_byte(text, ',');
        write_cell(text, schema->children[i]->name, strlen(schema->children[i]->name));
    }
    bytes_add_byte(text, '\n');
}

const struct table_format csv_format = {begin_csv, next_line, write_header, write_line};

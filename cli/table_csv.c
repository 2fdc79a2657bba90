// SPDX-License-Identifier: Apache-2.0
// Comma-separated values, quoted as RFC 4180 says. An empty cell is null, "" an empty text. Lists
// are JSON within a cell, bytes are base64.
#include "arrow_json.h"
#include "base64.h"
#include "number_text.h"
#include "table_text.h"

#include <stdlib.h>
#include <string.h>

#define TOO_LONG "there are more than 2 GiB of it in a batch"

struct csv_cell {
    size_t offset, size; ///< in the values, with a NUL behind
    bool is_quoted;
    unsigned long long line, column;
};

static struct csv_cell *cells_of(const struct table_input *input)
{
    return (struct csv_cell *)(void *)input->cells.data; // calloc() aligns it
}

static size_t cell_count(const struct table_input *input)
{
    return input->cells.size / sizeof(struct csv_cell);
}

// What follows a cell: a comma, a line's end (which is read), TEXT_END, or TEXT_FAILED.
static int end_cell(struct table_input *input, int byte)
{
    struct text_input *text = &input->text;
    if (byte == '\r' && text_input_peek(text) == '\n')
        byte = text_input_next(text);
    if (byte == ',' || byte == '\n' || byte < 0)
        return byte;
    text_input_refuse(text, text->line, text->column > 1 ? text->column - 1 : 1,
                      "a comma or the end of the line was expected behind a quoted cell");
    return TEXT_FAILED;
}

// Reads up to the quote that ends it.
static int read_quoted(struct table_input *input, const struct csv_cell *cell)
{
    struct text_input *text = &input->text;
    for (;;) {
        int byte = text_input_next(text);
        if (byte == '"' && text_input_peek(text) != '"')
            return end_cell(input, text_input_next(text));
        if (byte == '"')
            text_input_next(text);
        if (byte == TEXT_END)
            text_input_refuse(text, cell->line, cell->column, "the quote is not closed");
        if (byte < 0)
            return TEXT_FAILED;
        bytes_add_byte(&input->values, (char)byte);
    }
}

static int read_plain(struct table_input *input, int byte)
{
    struct text_input *text = &input->text;
    for (; byte >= 0 && byte != ',' && byte != '\n'; byte = text_input_next(text)) {
        if (byte == '\r' && text_input_peek(text) == '\n')
            continue;
        if (byte == '"' || byte == '\r') {
            text_input_refuse(text, text->line, text->column - 1,
                              byte == '"' ? "a quote within a cell that is not quoted"
                                          : "a carriage return that no line feed follows, in a "
                                            "cell that is not quoted: lines end with a line feed");
            return TEXT_FAILED;
        }
        bytes_add_byte(&input->values, (char)byte);
    }
    return byte;
}

// Reads the cells of a line, which goes on behind a line's end that is quoted.
static enum text_outcome read_cells(struct table_input *input)
{
    struct text_input *text = &input->text;
    int byte = text_input_peek(text);
    input->cells.size = input->values.size = 0;
    if (byte == TEXT_END)
        return TEXT_OVER;
    do {
        struct csv_cell cell = {
            .offset = input->values.size, .line = text->line, .column = text->column};
        byte = text_input_next(text);
        cell.is_quoted = byte == '"';
        byte = cell.is_quoted ? read_quoted(input, &cell) : read_plain(input, byte);
        cell.size = input->values.size - cell.offset;
        bytes_add_byte(&input->values, '\0');
        bytes_add(&input->cells, &cell, sizeof cell);
    } while (byte == ',');
    return byte == TEXT_FAILED ? TEXT_WRONG : TEXT_ROW;
}

// The same, but for lines with nothing in them, where there are more columns than one.
static enum text_outcome read_line(struct table_input *input)
{
    enum text_outcome outcome;
    do
        outcome = read_cells(input);
    while (outcome == TEXT_ROW && input->order_count > 1 && cell_count(input) == 1 &&
           cells_of(input)->size == 0 && !cells_of(input)->is_quoted);
    if (outcome == TEXT_ROW && cell_count(input) != input->order_count) {
        const struct csv_cell *last = cells_of(input) + cell_count(input) - 1;
        text_input_refuse(&input->text, last->line, last->column,
                          "the line has %zu cells, and there are %zu columns", cell_count(input),
                          input->order_count);
        return TEXT_WRONG;
    }
    return outcome;
}

static int refuse(const struct table_input *input, const struct csv_cell *cell,
                  const char *column_name, const char *why)
{
    return text_input_refuse(&input->text, cell->line, cell->column, "\"%.40s\" in column %s: %s",
                             input->values.data + cell->offset, column_name, why);
}

static bool is_utf8(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (signed char)text[i] >= 0)
        i++;
    json_t *string = i < size ? json_stringn(text, size) : NULL; // NULL: it is none
    json_decref(string);
    return i == size || string;
}

// Finds the column of a header's cell, or adds it where columns are found.
static int take_name(struct table_input *input, const struct csv_cell *cell, size_t place)
{
    const char *name = input->values.data + cell->offset;
    struct column *column = columns_find(input->columns, name);
    if (cell->size == 0)
        return text_input_refuse(&input->text, cell->line, cell->column,
                                 "the column has no name (pandas writes one so for the index, "
                                 "unless to_csv() is told index=False)");
    if (strlen(name) != cell->size || !is_utf8(name, cell->size))
        return text_input_refuse(&input->text, cell->line, cell->column,
                                 "this is no name of a column");
    if (!input->has_schema && !column)
        column = columns_add(input->columns, name, cell->size, COLUMN_NOTHING, 0);
    else if (!column)
        return text_input_refuse(&input->text, cell->line, cell->column,
                                 "--schema has no column %s", name);
    for (size_t i = 0; i < place; i++)
        if (strcmp(input->values.data + cells_of(input)[i].offset, name) == 0)
            return text_input_refuse(&input->text, cell->line, cell->column,
                                     "there are two columns %s", name);
    return 0;
}

// Of the columns that --schema says, each is in the header.
static int check_header(const struct table_input *input)
{
    for (size_t i = 0; i < input->columns->count; i++) {
        const char *name = input->columns->items[i].name;
        size_t place = 0;
        while (place < cell_count(input) &&
               strcmp(input->values.data + cells_of(input)[place].offset, name) != 0)
            place++;
        if (place == cell_count(input))
            return text_input_refuse(&input->text, 1, 1, "there is no column %s", name);
    }
    return 0;
}

static int read_header(struct table_input *input)
{
    static const char mark[] = "\xEF\xBB\xBF"; // that some programs begin UTF-8 with
    enum text_outcome outcome = read_cells(input);
    if (outcome == TEXT_OVER)
        return text_input_refuse(&input->text, 1, 1, "there is no line with the names of columns");
    if (outcome == TEXT_WRONG)
        return 1;
    struct csv_cell *cells = cells_of(input);
    if (cells->size >= 3 && memcmp(input->values.data, mark, 3) == 0) {
        cells->offset += 3;
        cells->size -= 3;
    }
    for (size_t i = 0; i < cell_count(input); i++) {
        int status = take_name(input, &cells[i], i);
        if (status != 0)
            return status;
    }
    return check_header(input);
}

// What the cells of a line are, once all columns are there.
static int begin_csv(struct table_input *input)
{
    struct columns *columns = input->columns;
    free(input->order);
    input->order = NULL;
    if (input->has_header && read_header(input) != 0)
        return 1;
    input->order_count = input->has_header ? cell_count(input) : columns->count;
    input->order = allocate(input->order_count, sizeof(struct column *));
    for (size_t i = 0; i < input->order_count; i++)
        input->order[i] =
            input->has_header
                ? columns_find(columns, input->values.data + cells_of(input)[i].offset)
                : &columns->items[i];
    return 0;
}

static void survey_cell(struct column *column, const char *text, const struct csv_cell *cell)
{
    int64_t integer;
    double real;
    bool is_plain = false;
    if (cell->size == 0 && !cell->is_quoted)
        return;
    enum column_kind kind = COLUMN_TEXT;
    if (strlen(text) == cell->size && !cell->is_quoted) {
        if (integer_parse(text, &integer, &is_plain))
            kind = is_plain                  ? COLUMN_INTEGER
                   : strcmp(text, "-0") == 0 ? COLUMN_REAL
                                             : COLUMN_TEXT; // 007 is no number
        else if (real_parse(text, &real))
            kind = COLUMN_REAL;
    }
    if (!column_widen(column, kind))
        column->kind = COLUMN_TEXT;
}

static int survey_csv(struct table_input *input)
{
    int status = begin_csv(input);
    if (status != 0)
        return status;
    for (;;) {
        enum text_outcome outcome = read_line(input);
        if (outcome != TEXT_ROW)
            return outcome == TEXT_WRONG;
        for (size_t i = 0; i < input->order_count; i++) {
            const struct csv_cell *cell = &cells_of(input)[i];
            survey_cell(input->order[i], input->values.data + cell->offset, cell);
        }
    }
}

static bool add_list(struct table_input *input, struct column *column, const struct csv_cell *cell,
                     const char **why)
{
    json_error_t error;
    json_t *value = json_loadb(input->values.data + cell->offset, cell->size, 0, &error);
    struct bytes decoding = {0}, values = input->values;
    *why = "it is no list in JSON";
    if (!json_is_array(value)) {
        json_decref(value);
        return false;
    }
    input->values = decoding; // the cells stay as they are
    bool is_added = column_add_json(input, column, value, why);
    free(input->values.data);
    input->values = values;
    json_decref(value);
    return is_added;
}

static bool add_base64(struct column *column, const char *text, size_t size, const char **why)
{
    struct bytes decoded = {0};
    *why = "it is no base64";
    bool is_good = base64_decode(&decoded, text, size);
    if (is_good) {
        *why = TOO_LONG;
        is_good = column_add_bytes(column, decoded.data, decoded.size);
    }
    free(decoded.data);
    return is_good;
}

static bool add_cell(struct table_input *input, struct column *column, const struct csv_cell *cell,
                     const char **why)
{
    const char *text = input->values.data + cell->offset;
    bool is_whole = strlen(text) == cell->size;
    int64_t integer;
    double real;
    if (cell->size == 0 && !cell->is_quoted) {
        column_add_null(column);
        return true;
    }
    if (column->depth > 0)
        return add_list(input, column, cell, why);
    switch (column->kind) {
    case COLUMN_INTEGER:
        *why = "it is no whole number of 64 bits";
        if (!is_whole || !integer_parse(text, &integer, NULL))
            return false;
        column_add_integer(column, integer);
        return true;
    case COLUMN_REAL:
        *why = "it is no number";
        if (!is_whole || !real_parse(text, &real))
            return false;
        *why = NOT_EXACT;
        return column_add_number(input, column, real, false);
    case COLUMN_BYTES:
        return add_base64(column, text, cell->size, why);
    default:
        *why = "it is no UTF-8";
        if (!is_utf8(text, cell->size))
            return false;
        *why = TOO_LONG;
        return column_add_bytes(column, text, cell->size);
    }
}

static enum text_outcome next_csv(struct table_input *input)
{
    enum text_outcome outcome = read_line(input);
    const char *why = NULL;
    if (outcome != TEXT_ROW)
        return outcome;
    for (size_t i = 0; i < input->order_count; i++) {
        const struct csv_cell *cell = &cells_of(input)[i];
        if (!add_cell(input, input->order[i], cell, &why)) {
            refuse(input, cell, input->order[i]->name, why);
            return TEXT_WRONG;
        }
    }
    input->columns->rows.length++;
    return TEXT_ROW;
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

static void write_csv_header(struct bytes *text, const struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (i > 0)
            bytes_add_byte(text, ',');
        write_cell(text, schema->children[i]->name, strlen(schema->children[i]->name));
    }
    bytes_add_byte(text, '\n');
}

static void write_json_cell(struct bytes *text, const struct ArrowSchema *schema,
                            const struct ArrowArray *array, int64_t row)
{
    json_t *value = arrow_value_to_json(schema, array, row);
    char *json = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    write_cell(text, json ? json : "", json ? strlen(json) : 0);
    free(json);
    json_decref(value);
}

static void write_value(struct bytes *text, const struct ArrowSchema *schema,
                        const struct ArrowArray *array, int64_t row)
{
    struct tfos__arrow_type type;
    char number[NUMBER_TEXT_SIZE];
    if (tfos__arrow_type_read(&type, schema, NULL) < 0 || tfos__arrow_is_null(array, row))
        return;
    if (type.kind == TFOS__ARROW_LIST) {
        write_json_cell(text, schema, array, row);
    } else if (type.kind == TFOS__ARROW_INT) {
        snprintf(number, sizeof number, "%lld", (long long)tfos__arrow_integer(&type, array, row));
        bytes_add(text, number, strlen(number));
    } else if (type.kind == TFOS__ARROW_FLOAT) {
        real_write((float)tfos__arrow_real(&type, array, row), number);
        bytes_add(text, number, strlen(number));
    } else {
        struct tfos_view bytes = tfos__arrow_bytes(&type, array, row);
        if (type.kind == TFOS__ARROW_BINARY && bytes.size > 0)
            base64_encode(text, bytes.data, bytes.size);
        else
            write_cell(text, bytes.data, bytes.size);
    }
}

static void write_csv_row(struct bytes *text, const struct ArrowSchema *schema,
                          const struct ArrowArray *batch, int64_t row)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (i > 0)
            bytes_add_byte(text, ',');
        write_value(text, schema->children[i], batch->children[i], row);
    }
    bytes_add_byte(text, '\n');
}

const struct table_format csv_format = {survey_csv, begin_csv, next_csv, write_csv_header,
                                        write_csv_row};

// SPDX-License-Identifier: Apache-2.0
// Lines of JSON: an object a row, a key a column. What is missing is null.
#include "arrow_json.h"
#include "base64.h"
#include "number_text.h"
#include "table_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOO_LONG "there are more than 2 GiB of it in a batch"

bool column_widen(struct column *column, enum column_kind kind)
{
    enum column_kind low = column->kind < kind ? column->kind : kind;
    enum column_kind high = column->kind < kind ? kind : column->kind;
    // Integers are reals, text is bytes, and nothing is either.
    if (low != high && low != COLUMN_NOTHING && !(low == COLUMN_INTEGER && high == COLUMN_REAL) &&
        !(low == COLUMN_TEXT && high == COLUMN_BYTES))
        return false;
    column->kind = high;
    return true;
}

bool column_add_number(const struct table_input *input, struct column *column, double value,
                       bool is_rounded)
{
    float nearest;
    if (!real_to_float(value, &nearest) || is_rounded) {
        if (input->is_exact)
            return false;
        column->rounded++;
        column->infinite += isinf(nearest) != 0;
    }
    column_add_real(column, nearest);
    return true;
}

/// {"base64": "..."}
static const json_t *base64_of(const json_t *value)
{
    return json_is_object(value) && json_object_size(value) == 1 ? json_object_get(value, "base64")
                                                                 : NULL;
}

static bool add_text(struct table_input *input, struct column *column, const json_t *value,
                     const char **why)
{
    const json_t *encoded = base64_of(value);
    double number;
    *why = TOO_LONG;
    if (json_is_string(encoded)) {
        input->values.size = 0;
        *why = "it is no base64";
        if (!base64_decode(&input->values, json_string_value(encoded), json_string_length(encoded)))
            return false;
        *why = "it is no text";
        return column->kind == COLUMN_BYTES &&
               column_add_bytes(column, input->values.data, input->values.size);
    }
    if (column->kind == COLUMN_TEXT || column->kind == COLUMN_BYTES)
        return column_add_bytes(column, json_string_value(value), json_string_length(value));
    *why = "it is text, where the column has numbers";
    if (column->kind != COLUMN_REAL || !real_parse(json_string_value(value), &number))
        return false;
    *why = NOT_EXACT;
    return column_add_number(input, column, number, false);
}

static bool add_number(struct table_input *input, struct column *column, const json_t *value,
                       const char **why)
{
    bool is_integer = !json_is_real(value);
    int64_t integer = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    if (column->kind == COLUMN_INTEGER && is_integer) {
        column_add_integer(column, integer);
        return true;
    }
    if (column->kind != COLUMN_REAL) {
        *why = column->kind == COLUMN_INTEGER ? "it is no whole number"
                                              : "it is a number, where the column has text";
        return false;
    }
    *why = NOT_EXACT;
    double number = is_integer ? (double)integer : json_real_value(value);
    bool is_rounded = is_integer && (number >= 0x1p63 || (int64_t)number != integer);
    return column_add_number(input, column, number, is_rounded);
}

static bool add_value(struct table_input *input, struct column *column, int level,
                      const json_t *value, const char **why)
{
    if (level < column->depth) {
        // A value alone stands for a list of one, as `tfos record cat` prints it.
        if (!json_is_array(value)) {
            *why = "it is no list of lists";
            if (level + 1 < column->depth || !add_value(input, column, level + 1, value, why))
                return false;
        }
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!add_value(input, column, level + 1, json_array_get(value, i), why))
                return false;
        column_end_list(column, level);
        return true;
    }
    *why = "it is null within a list, which records cannot hold";
    if (json_is_null(value))
        return false;
    if (json_is_string(value) || base64_of(value))
        return add_text(input, column, value, why);
    *why = json_is_array(value) ? "it is a list" : "it is an object, which records cannot hold";
    if (json_is_array(value) || json_is_object(value))
        return false;
    return add_number(input, column, value, why);
}

bool column_add_json(struct table_input *input, struct column *column, const json_t *value,
                     const char **why)
{
    if (value && !json_is_null(value))
        return add_value(input, column, 0, value, why);
    column_add_null(column);
    return true;
}

// Reads a line that is not blank, and its object. NULL, with what it is.
static json_t *read_object(struct table_input *input, enum text_outcome *outcome)
{
    struct text_input *text = &input->text;
    unsigned long long line;
    bool is_blank;
    int byte;
    do {
        line = text->line;
        is_blank = true;
        input->line.size = 0;
        while ((byte = text_input_next(text)) >= 0 && byte != '\n') {
            is_blank = is_blank && (byte == ' ' || byte == '\t' || byte == '\r');
            bytes_add_byte(&input->line, (char)byte);
        }
    } while (is_blank && byte == '\n');
    *outcome = byte == TEXT_FAILED ? TEXT_WRONG : TEXT_OVER;
    if (byte == TEXT_FAILED || is_blank)
        return NULL;
    json_error_t error;
    json_t *object = json_loadb(input->line.data, input->line.size, JSON_REJECT_DUPLICATES, &error);
    *outcome = TEXT_WRONG;
    if (!object)
        text_input_refuse(text, line, error.column > 0 ? (unsigned long long)error.column : 1, "%s",
                          error.text);
    else if (!json_is_object(object))
        text_input_refuse(text, line, 1, "a row is an object, {\"COLUMN\": VALUE, ...}");
    else
        *outcome = TEXT_ROW;
    if (*outcome != TEXT_ROW) {
        json_decref(object);
        return NULL;
    }
    return object;
}

// The number of the line that was read last.
static unsigned long long last_line(const struct table_input *input)
{
    return input->text.column == 1 ? input->text.line - 1 : input->text.line;
}

// Where a key stands in the line, about: for messages.
static unsigned long long column_of(const struct table_input *input, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i + size + 2 <= input->line.size; i++)
        if (input->line.data[i] == '"' && memcmp(input->line.data + i + 1, key, size) == 0 &&
            input->line.data[i + size + 1] == '"')
            return i + 1;
    return 1;
}

static int refuse(const struct table_input *input, const char *key, const char *why)
{
    return text_input_refuse(&input->text, last_line(input), column_of(input, key), "\"%s\": %s",
                             key, why);
}

// The words for numbers that JSON does not have say nothing: they may be text too.
static enum column_kind kind_of(const json_t *value)
{
    double number;
    const char *text = json_string_value(value);
    if (text)
        return real_parse(text, &number) && !isfinite(number) ? COLUMN_NOTHING : COLUMN_TEXT;
    if (base64_of(value))
        return COLUMN_BYTES;
    if (json_is_real(value))
        return COLUMN_REAL;
    return json_is_integer(value) || json_is_boolean(value) ? COLUMN_INTEGER : COLUMN_NOTHING;
}

// Widens a column to a value. NULL, or what is wrong.
static const char *survey_value(struct column *column, const json_t *value, int depth)
{
    if (json_is_null(value))
        return NULL;
    if (json_is_array(value)) {
        const char *why = NULL;
        if (++depth > COLUMN_DEPTH)
            return "records hold lists of lists, no deeper";
        column->depth = column->depth > depth ? column->depth : depth;
        for (size_t i = 0; i < json_array_size(value) && !why; i++)
            why = survey_value(column, json_array_get(value, i), depth);
        return why;
    }
    if (json_is_object(value) && !base64_of(value))
        return "it is an object, which records cannot hold";
    return column_widen(column, kind_of(value))
               ? NULL
               : "it is text here and a number elsewhere: --schema says what it is to be";
}

static int survey_object(struct table_input *input, json_t *object)
{
    const char *key, *why;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        struct column *column = columns_find(input->columns, key);
        if (!column)
            column = columns_add(input->columns, key, strlen(key), COLUMN_NOTHING, 0);
        why = survey_value(column, value, 0);
        if (why)
            return refuse(input, key, why);
    }
    return 0;
}

static int survey_json(struct table_input *input)
{
    enum text_outcome outcome = TEXT_ROW;
    int status = 0;
    while (status == 0 && outcome == TEXT_ROW) {
        json_t *object = read_object(input, &outcome);
        if (object)
            status = survey_object(input, object);
        json_decref(object);
    }
    return outcome == TEXT_WRONG ? 1 : status;
}

static int begin_json(struct table_input *input)
{
    (void)input;
    return 0;
}

static int add_object(struct table_input *input, json_t *object)
{
    const char *key, *why = NULL;
    json_t *value;
    size_t known = 0;
    for (size_t i = 0; i < input->columns->count; i++) {
        struct column *column = &input->columns->items[i];
        value = json_object_get(object, column->name);
        known += value != NULL;
        if (!column_add_json(input, column, value, &why))
            return refuse(input, column->name, why);
    }
    if (known < json_object_size(object))
        json_object_foreach(
            object, key,
            value) if (!columns_find(input->columns,
                                     key)) return refuse(input, key, "--schema has no such column");
    input->columns->rows.length++;
    return 0;
}

static enum text_outcome next_json(struct table_input *input)
{
    enum text_outcome outcome;
    json_t *object = read_object(input, &outcome);
    if (object && add_object(input, object) != 0)
        outcome = TEXT_WRONG;
    json_decref(object);
    return outcome;
}

static void write_json_header(struct bytes *text, const struct ArrowSchema *schema)
{
    (void)text;
    (void)schema;
}

static void write_json_row(struct bytes *text, const struct ArrowSchema *schema,
                           const struct ArrowArray *batch, int64_t row)
{
    json_t *value = arrow_value_to_json(schema, batch, row);
    char *line = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    bytes_add(text, line ? line : "null", strlen(line ? line : "null"));
    bytes_add_byte(text, '\n');
    free(line);
    json_decref(value);
}

const struct table_format json_format = {survey_json, begin_json, next_json, write_json_header,
                                         write_json_row};

// SPDX-License-Identifier: Apache-2.0
// Lines of JSON: an object a row, a key a column. What is missing is null.
#include <string.h>

#include "table.h"
#include "value_text.h"

static bool is_blank(const struct bytes *line)
{
    size_t i = 0;
    while (i < line->size &&
           (line->data[i] == ' ' || line->data[i] == '\t' || line->data[i] == '\r'))
        i++;
    return i == line->size;
}

// Reads a line that is not blank, and its object.
static enum tfos_status read_object(struct table *table, json_t **object)
{
    struct text_input *text = &table->text;
    static const bool ends[256] = {['\n'] = true};
    unsigned long long line;
    int byte;
    do {
        line = text->line;
        table->line.size = 0;
        byte = text_input_read_until(text, &table->line, ends);
    } while (byte >= 0 && is_blank(&table->line));
    if (text->has_failed || is_blank(&table->line))
        return text_input_status(text);
    json_error_t error;
    *object = json_loadb(table->line.data, table->line.size, JSON_REJECT_DUPLICATES, &error);
    if (!*object)
        return text_input_refuse(
            text, line, error.column > 0 ? (unsigned long long)error.column : 1, "%s", error.text);
    if (json_is_object(*object))
        return TFOS_OK;
    json_decref(*object);
    return text_input_refuse(text, line, 1, "a row is an object, {\"COLUMN\": VALUE, ...}");
}

// About where a key is in the line: for messages.
static unsigned long long column_of(const struct table *table, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i + size + 2 <= table->line.size; i++)
        if (table->line.data[i] == '"' && memcmp(table->line.data + i + 1, key, size) == 0 &&
            table->line.data[i + size + 1] == '"')
            return i + 1;
    return 1;
}

// Of the line that was read last.
static enum tfos_status refuse(const struct table *table, const char *key, const char *why)
{
    unsigned long long line = table->text.column == 1 ? table->text.line - 1 : table->text.line;
    return text_input_refuse(&table->text, line, column_of(table, key), "\"%s\": %s", key, why);
}

static enum tfos_status search_object(struct table *table, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        struct column *column = columns_find(&table->columns, key);
        if (!column)
            column = columns_add(&table->columns, key, strlen(key), TFOS__ARROW_NULL, 0);
        const char *why = column_widen_by_json(column, value);
        if (why)
            return refuse(table, key, why);
    }
    return TFOS_OK;
}

static enum tfos_status add_object(struct table *table, json_t *object)
{
    const char *key;
    json_t *value;
    size_t known = 0;
    for (size_t i = 0; i < table->columns.count; i++) {
        struct column *column = &table->columns.items[i];
        value = json_object_get(object, column->name);
        known += value != NULL;
        const char *why = column_add_json(&table->columns, column, value);
        if (why)
            return refuse(table, column->name, why);
    }
    json_object_foreach(object, key, value)
    {
        if (known == json_object_size(object))
            break;
        if (!columns_find(&table->columns, key))
            return refuse(table, key, "--schema has no such column");
    }
    table->columns.rows.length++;
    return TFOS_OK;
}

static enum tfos_status next_object(struct table *table, bool is_search)
{
    json_t *object = NULL;
    enum tfos_status status = read_object(table, &object);
    if (status == TFOS_OK) {
        status = is_search ? search_object(table, object) : add_object(table, object);
        json_decref(object);
    }
    return status;
}

static void write_object(struct bytes *text, const struct ArrowSchema *schema,
                         const struct ArrowArray *batch, int64_t row)
{
    bytes_add_json(text, value_to_json(schema, batch, row));
    bytes_add_byte(text, '\n');
}

const struct table_format json_format = {.next = next_object, .write_row = write_object};

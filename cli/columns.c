// SPDX-License-Identifier: Apache-2.0
// Cells of CSV are text, which the column's type says how to read: lists are JSON, bytes are
// base64. JSON says itself what its values are.
#include "columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value_text.h"

#define NOT_EXACT                                                                                  \
    "a float, which is what records hold, cannot hold it with all its digits, and --exact refuses" \
    " that"

static const char no_object[] = "it is an object, which records cannot hold";

static struct tfos__arrow_type type_of(enum tfos__arrow_kind kind)
{
    static const int64_t widths[] = {[TFOS__ARROW_INT] = 64,
                                     [TFOS__ARROW_FLOAT] = 32,
                                     [TFOS__ARROW_TEXT] = 32,
                                     [TFOS__ARROW_BINARY] = 32};
    return tfos__arrow_type_of(kind, widths[kind], 0);
}

// Only memory can be lacking for what is asked of Arrow here. NULL, or why it is too much.
static const char *require(enum tfos_status status)
{
    if (status < 0)
        check_memory(NULL);
    return status == TFOS_OK ? NULL : "there are more than 2 GiB of it in a batch";
}

struct column *columns_add(struct columns *columns, const char *name, size_t name_size,
                           enum tfos__arrow_kind kind, int depth)
{
    size_t count = columns->count;
    // Room doubles whenever the count is a power of two.
    if ((count & (count - 1)) == 0)
        columns->items = check_memory(
            realloc(columns->items, (count > 0 ? 2 * count : 1) * sizeof(*columns->items)));
    struct column *column = &columns->items[columns->count++];
    *column = (struct column){.kind = kind, .depth = depth};
    column->name = check_memory(strndup(name, name_size));
    return column;
}

struct column *columns_find(const struct columns *columns, const char *name)
{
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->items[i].name, name) == 0)
            return &columns->items[i];
    return NULL;
}

// ---- types as text, in Spark's words

static bool refuse(const char *text, const char *at, const char *what)
{
    fprintf(stderr, "tfos record: --schema: character %d: %s\n", (int)(at - text) + 1, what);
    return false;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

// A name, plain or in backquotes, of which two stand for one.
static bool parse_name(const char *text, const char **at, struct bytes *name)
{
    name->size = 0;
    if (**at != '`') {
        size_t size = strcspn(*at, " \t\r\n,<>`:");
        bytes_add(name, *at, size);
        *at += size;
    } else {
        for (++*at; **at != '\0' && (**at != '`' || (*at)[1] == '`'); ++*at) {
            *at += **at == '`';
            bytes_add_byte(name, **at);
        }
        if (**at != '`')
            return refuse(text, *at, "a backquote is missing");
        ++*at;
    }
    return name->size > 0 || refuse(text, *at, "the name of a column is missing");
}

static bool parse_type(const char *text, const char **at, enum tfos__arrow_kind *kind, int *depth)
{
    static const enum tfos__arrow_kind kinds[] = {TFOS__ARROW_INT, TFOS__ARROW_FLOAT,
                                                  TFOS__ARROW_TEXT, TFOS__ARROW_BINARY};
    char name[TFOS__ARROW_TEXT_SIZE];
    for (*depth = 0; strncmp(*at, "array<", 6) == 0;) {
        *at = skip_blanks(*at + 6);
        if (++*depth > COLUMN_DEPTH)
            return refuse(text, *at, "records hold lists of lists, no deeper");
    }
    size_t size = strcspn(*at, " \t\r\n,<>`:");
    *kind = TFOS__ARROW_NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct tfos__arrow_type type = type_of(kinds[i]);
        tfos__arrow_type_name(&type, TFOS_TYPE_NAMES_SPARK, name);
        if (strlen(name) == size && strncmp(*at, name, size) == 0)
            *kind = kinds[i];
    }
    if (*kind == TFOS__ARROW_NULL)
        return refuse(text, *at,
                      "a type is bigint, float, string or binary, or array<...> of one, which is "
                      "what records hold");
    *at += size;
    for (int i = 0; i < *depth; i++) {
        *at = skip_blanks(*at);
        if (**at != '>')
            return refuse(text, *at, "\">\" is missing");
        ++*at;
    }
    return true;
}

static bool parse_column(struct columns *columns, const char *text, const char **at,
                         struct bytes *name)
{
    enum tfos__arrow_kind kind;
    int depth;
    const char *begin = *at;
    if (!parse_name(text, at, name))
        return false;
    *at = skip_blanks(*at);
    if (**at == ':')
        *at = skip_blanks(*at + 1);
    if (!parse_type(text, at, &kind, &depth))
        return false;
    bytes_add_byte(name, '\0');
    if (columns_find(columns, name->data))
        return refuse(text, begin, "there is a column of this name already");
    columns_add(columns, name->data, name->size - 1, kind, depth);
    return true;
}

bool columns_parse(struct columns *columns, const char *text)
{
    struct bytes name = {0};
    bool is_good = true;
    const char *at = skip_blanks(text);
    while (is_good && (*at != '\0' || columns->count == 0)) {
        is_good = parse_column(columns, text, &at, &name);
        const char *behind = skip_blanks(at);
        // A new line divides too, as in what `tfos record schema` prints.
        bool is_divided = *behind == ',' || memchr(at, '\n', (size_t)(behind - at));
        if (is_good && *behind != '\0' && !is_divided)
            is_good = refuse(text, behind, "a comma is missing");
        at = skip_blanks(*behind == ',' ? behind + 1 : behind);
    }
    free(name.data);
    return is_good;
}

// ---- in Arrow

static void describe_level(const struct column *column, int level, struct ArrowSchema *schema)
{
    bool is_list = level < column->depth;
    struct tfos__arrow_type type =
        is_list ? tfos__arrow_type_of(TFOS__ARROW_LIST, 32, 0) : type_of(column->kind);
    require(
        tfos__arrow_schema_init(schema, type, level == 0 ? column->name : "item", is_list, NULL));
    schema->flags = level == 0 ? ARROW_FLAG_NULLABLE : 0;
    if (is_list)
        describe_level(column, level + 1, schema->children[0]);
}

const struct ArrowSchema *columns_describe(struct columns *columns)
{
    require(tfos__arrow_schema_init_struct(&columns->schema, (int64_t)columns->count, NULL));
    for (size_t i = 0; i < columns->count; i++)
        describe_level(&columns->items[i], 0, columns->schema.children[i]);
    require(tfos__arrow_builder_init(&columns->rows, &columns->schema, NULL));
    for (size_t i = 0; i < columns->count; i++)
        columns->items[i].values = &columns->rows.children[i];
    return &columns->schema;
}

const struct ArrowArray *columns_show(struct columns *columns)
{
    require(tfos__arrow_builder_show(&columns->rows, NULL));
    return &columns->rows.array;
}

static struct tfos__arrow_builder *level_of(const struct column *column, int level)
{
    struct tfos__arrow_builder *values = column->values;
    while (level-- > 0)
        values = values->children;
    return values;
}

/// The text of {"base64": "..."}; NULL: it is something else.
static const json_t *base64_of(const json_t *value)
{
    const json_t *text = json_object_size(value) == 1 ? json_object_get(value, "base64") : NULL;
    return json_is_string(text) ? text : NULL;
}

// ---- finding types

static bool widen(struct column *column, enum tfos__arrow_kind kind)
{
    enum tfos__arrow_kind low = column->kind < kind ? column->kind : kind;
    enum tfos__arrow_kind high = column->kind < kind ? kind : column->kind;
    // Integers are reals, text is bytes, and nothing is either.
    if (low != high && low != TFOS__ARROW_NULL &&
        !(low == TFOS__ARROW_INT && high == TFOS__ARROW_FLOAT) &&
        !(low == TFOS__ARROW_TEXT && high == TFOS__ARROW_BINARY))
        return false;
    column->kind = high;
    return true;
}

void column_widen_by_text(struct column *column, const char *text, size_t size, bool is_quoted)
{
    int64_t integer;
    double real;
    bool is_plain = false;
    enum tfos__arrow_kind kind = TFOS__ARROW_TEXT;
    if (size == 0 && !is_quoted)
        return;
    if (strlen(text) == size && !is_quoted) {
        if (integer_parse(text, &integer, &is_plain))
            kind = is_plain                  ? TFOS__ARROW_INT
                   : strcmp(text, "-0") == 0 ? TFOS__ARROW_FLOAT
                                             : TFOS__ARROW_TEXT; // 007 is no number
        else if (real_parse(text, &real))
            kind = TFOS__ARROW_FLOAT;
    }
    if (!widen(column, kind))
        column->kind = TFOS__ARROW_TEXT;
}

// The words for numbers that JSON does not have may be text too: they widen nothing.
static enum tfos__arrow_kind kind_of(const json_t *value)
{
    double number;
    const char *text = json_string_value(value);
    if (text)
        return real_parse(text, &number) && !isfinite(number) ? TFOS__ARROW_NULL : TFOS__ARROW_TEXT;
    if (base64_of(value))
        return TFOS__ARROW_BINARY;
    return json_is_real(value) ? TFOS__ARROW_FLOAT : TFOS__ARROW_INT;
}

static const char *widen_level(struct column *column, const json_t *value, int depth)
{
    const char *why = NULL;
    if (json_is_null(value))
        return NULL;
    if (json_is_array(value)) {
        if (++depth > COLUMN_DEPTH)
            return "records hold lists of lists, no deeper";
        column->depth = column->depth > depth ? column->depth : depth;
        for (size_t i = 0; i < json_array_size(value) && !why; i++)
            why = widen_level(column, json_array_get(value, i), depth);
        return why;
    }
    if (json_is_object(value) && !base64_of(value))
        return no_object;
    return widen(column, kind_of(value))
               ? NULL
               : "it is text here and a number elsewhere: --schema says what it is to be";
}

const char *column_widen_by_json(struct column *column, const json_t *value)
{
    return widen_level(column, value, 0);
}

// ---- adding values

static const char *add_bytes(struct column *column, const void *data, size_t size)
{
    return require(
        tfos__arrow_builder_append_bytes(level_of(column, column->depth), data, size, NULL));
}

static const char *add_base64(struct columns *columns, struct column *column, const char *text,
                              size_t size)
{
    columns->decoded.size = 0;
    if (!base64_decode(&columns->decoded, text, size))
        return "it is no base64";
    return add_bytes(column, columns->decoded.data, columns->decoded.size);
}

static const char *add_number(struct column *column, const void *number, size_t size)
{
    struct tfos__arrow_builder *values = level_of(column, column->depth);
    require(tfos__arrow_builder_reserve(values, 1, NULL));
    memcpy(tfos__arrow_builder_end(values), number, size);
    values->length++;
    return NULL;
}

// `is_rounded`: the number has more digits than `value` already.
static const char *add_real(const struct columns *columns, struct column *column, double value,
                            bool is_rounded)
{
    float nearest;
    if (!real_to_float(value, &nearest) || is_rounded) {
        if (columns->is_exact)
            return NOT_EXACT;
        column->rounded++;
        column->infinite += isinf(nearest) != 0;
    }
    return add_number(column, &nearest, sizeof(nearest));
}

static const char *add_list_text(struct columns *columns, struct column *column, const char *text,
                                 size_t size)
{
    json_error_t error;
    json_t *value = json_loadb(text, size, 0, &error);
    const char *why =
        json_is_array(value) ? column_add_json(columns, column, value) : "it is no list in JSON";
    json_decref(value);
    return why;
}

const char *column_add_text(struct columns *columns, struct column *column, const char *text,
                            size_t size, bool is_quoted)
{
    bool is_whole = strlen(text) == size;
    int64_t integer;
    double real;
    if (size == 0 && !is_quoted)
        return column_add_json(columns, column, NULL);
    if (column->depth > 0)
        return add_list_text(columns, column, text, size);
    switch (column->kind) {
    case TFOS__ARROW_INT:
        if (!is_whole || !integer_parse(text, &integer, NULL))
            return "it is no whole number of 64 bits";
        return add_number(column, &integer, sizeof(integer));
    case TFOS__ARROW_FLOAT:
        if (!is_whole || !real_parse(text, &real))
            return "it is no number";
        return add_real(columns, column, real, false);
    case TFOS__ARROW_BINARY:
        return add_base64(columns, column, text, size);
    default:
        return is_utf8(text, size) ? add_bytes(column, text, size) : "it is no UTF-8";
    }
}

static const char *add_json_text(struct columns *columns, struct column *column,
                                 const json_t *value)
{
    const json_t *encoded = base64_of(value);
    bool is_binary = column->kind == TFOS__ARROW_BINARY;
    double number;
    if (encoded)
        return is_binary ? add_base64(columns, column, json_string_value(encoded),
                                      json_string_length(encoded))
                         : "it is no text";
    if (is_binary || column->kind == TFOS__ARROW_TEXT)
        return add_bytes(column, json_string_value(value), json_string_length(value));
    if (column->kind != TFOS__ARROW_FLOAT || !real_parse(json_string_value(value), &number))
        return "it is text, where the column has numbers";
    return add_real(columns, column, number, false);
}

static const char *add_json_number(struct columns *columns, struct column *column,
                                   const json_t *value)
{
    bool is_integer = !json_is_real(value);
    int64_t integer = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    if (column->kind == TFOS__ARROW_INT)
        return is_integer ? add_number(column, &integer, sizeof(integer)) : "it is no whole number";
    if (column->kind != TFOS__ARROW_FLOAT)
        return "it is a number, where the column has text";
    double number = is_integer ? (double)integer : json_real_value(value);
    bool is_rounded = is_integer && (number >= 0x1p63 || (int64_t)number != integer);
    return add_real(columns, column, number, is_rounded);
}

static const char *add_json_value(struct columns *columns, struct column *column,
                                  const json_t *value)
{
    if (json_is_null(value))
        return "it is null within a list, which records cannot hold";
    if (json_is_string(value) || base64_of(value))
        return add_json_text(columns, column, value);
    if (json_is_array(value) || json_is_object(value))
        return json_is_array(value) ? "it is a list" : no_object;
    return add_json_number(columns, column, value);
}

static const char *add_level(struct columns *columns, struct column *column, int level,
                             const json_t *value)
{
    const char *why = NULL;
    if (level == column->depth)
        return add_json_value(columns, column, value);
    // A value alone means a list of one, as `tfos record cat` prints it.
    if (!json_is_array(value))
        why = level + 1 < column->depth ? "it is no list of lists"
                                        : add_level(columns, column, level + 1, value);
    for (size_t i = 0; i < json_array_size(value) && !why; i++)
        why = add_level(columns, column, level + 1, json_array_get(value, i));
    return why ? why : require(tfos__arrow_builder_end_list(level_of(column, level), NULL));
}

const char *column_add_json(struct columns *columns, struct column *column, const json_t *value)
{
    return value && !json_is_null(value)
               ? add_level(columns, column, 0, value)
               : require(tfos__arrow_builder_append_null(column->values, NULL));
}

void columns_clear(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        free(columns->items[i].name);
    free(columns->items);
    free(columns->decoded.data);
    tfos__arrow_builder_clear(&columns->rows);
    tfos__arrow_schema_release(&columns->schema);
    *columns = (struct columns){0};
}

// SPDX-License-Identifier: Apache-2.0
// Types of columns as text, in Spark's words, and from the schemas that records have.
#include "typed_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"nothing", "bigint", "float", "string", "binary"};
#define KIND_COUNT (sizeof names / sizeof names[0])

void column_type_text(const struct column *column, char text[64])
{
    static const char *const begins[] = {"", "array<", "array<array<"};
    static const char *const ends[] = {"", ">", ">>"};
    snprintf(text, 64, "%s%s%s", begins[column->depth], names[column->kind], ends[column->depth]);
}

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

static bool parse_type(const char *text, const char **at, enum column_kind *kind, int *depth)
{
    *depth = 0;
    while (strncmp(*at, "array<", 6) == 0) {
        *at = skip_blanks(*at + 6);
        if (++*depth > COLUMN_DEPTH)
            return refuse(text, *at, "records hold lists of lists, no deeper");
    }
    size_t size = strcspn(*at, " \t\r\n,<>`:");
    *kind = COLUMN_NOTHING;
    for (size_t i = 1; i < KIND_COUNT; i++)
        if (strlen(names[i]) == size && strncmp(*at, names[i], size) == 0)
            *kind = (enum column_kind)i;
    if (*kind == COLUMN_NOTHING)
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
    enum column_kind kind;
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

static bool add_schema_column(struct columns *columns, const struct ArrowSchema *schema)
{
    const struct ArrowSchema *value = schema;
    int depth = 0;
    for (; strcmp(value->format, "+l") == 0 && depth < COLUMN_DEPTH; depth++)
        value = value->children[0];
    static const char formats[] = "?lfuz";
    const char *found = value->format[1] == '\0' ? strchr(formats + 1, value->format[0]) : NULL;
    if (!found) {
        fprintf(stderr, "tfos: column %s: there is no type for %s here\n", schema->name,
                value->format);
        return false;
    }
    columns_add(columns, schema->name, strlen(schema->name), (enum column_kind)(found - formats),
                depth);
    return true;
}

bool columns_of_schema(struct columns *columns, const struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (!add_schema_column(columns, schema->children[i]))
            return false;
    return true;
}

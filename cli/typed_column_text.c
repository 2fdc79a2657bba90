// SPDX-License-Identifier: Apache-2.0
// Types of columns as text, in Spark's words.
#include "typed_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void column_type_text(const struct column *column, char text[COLUMN_TYPE_SIZE])
{
    struct tfos__arrow_type type = column_type(column->kind);
    tfos__arrow_lists_text(&type, column->depth, TFOS_TYPE_NAMES_SPARK, text, COLUMN_TYPE_SIZE);
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
    for (enum column_kind i = COLUMN_INTEGER; i <= COLUMN_BYTES; i++) {
        char name[TFOS__ARROW_TEXT_SIZE];
        struct tfos__arrow_type type = column_type(i);
        tfos__arrow_type_name(&type, TFOS_TYPE_NAMES_SPARK, name);
        if (strlen(name) == size && strncmp(*at, name, size) == 0)
            *kind = i;
    }
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

// SPDX-License-Identifier: Apache-2.0
// Names of types as people know them, with those of what is within them.
#include <stdarg.h>
#include <stdio.h>
#include <tfos/arrow.h>

#include "arrow/type.h"

#define DEPTH_LIMIT 8 // levels that a name has

/// A name on its way.
struct text {
    enum tfos_type_names names;
    char *data;
    size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    size_t room = text->size - text->used;
    va_start(arguments, format);
    int count = vsnprintf(text->data + text->used, room, format, arguments);
    va_end(arguments);
    if (count > 0)
        text->used += (size_t)count < room ? (size_t)count : room - 1;
}

static void add_type(struct text *text, const struct ArrowSchema *schema, int depth);

static void add_list(struct text *text, const struct tfos__arrow_type *type,
                     const struct ArrowSchema *item, int depth)
{
    char name[TFOS__ARROW_TEXT_SIZE];
    bool is_spark = text->names == TFOS_TYPE_NAMES_SPARK;
    add(text, "%s<", tfos__arrow_type_name(type, text->names, name));
    if (!is_spark)
        add(text, "%s: ", item->name ? item->name : "item");
    add_type(text, item, depth + 1);
    add(text, ">");
    if (type->layout == TFOS__ARROW_FIXED_LIST && !is_spark)
        add(text, "[%lld]", (long long)type->list_size);
}

static void add_fields(struct text *text, const struct ArrowSchema *schema, int depth)
{
    bool is_spark = text->names == TFOS_TYPE_NAMES_SPARK;
    add(text, "struct<");
    for (int64_t i = 0; i < schema->n_children && text->used + 1 < text->size; i++) {
        const struct ArrowSchema *field = schema->children[i];
        add(text, "%s%s:%s",
            i == 0     ? ""
            : is_spark ? ","
                       : ", ",
            field->name ? field->name : "", is_spark ? "" : " ");
        add_type(text, field, depth + 1);
    }
    add(text, ">");
}

static void add_map(struct text *text, const struct ArrowSchema *pair, int depth)
{
    add(text, "map<");
    add_type(text, pair->children[0], depth + 1);
    add(text, text->names == TFOS_TYPE_NAMES_SPARK ? "," : ", ");
    add_type(text, pair->children[1], depth + 1);
    add(text, ">");
}

static void add_type(struct text *text, const struct ArrowSchema *schema, int depth)
{
    char name[TFOS__ARROW_TEXT_SIZE];
    struct tfos__arrow_type type;
    bool is_known = tfos__arrow_type_parse(schema->format, &type);
    bool has_item = is_known && schema->n_children == 1;
    if (depth == DEPTH_LIMIT) {
        add(text, "...");
    } else if (schema->dictionary) {
        add(text, "dictionary<values=");
        add_type(text, schema->dictionary, depth + 1);
        add(text, ">");
    } else if (has_item && type.kind == TFOS__ARROW_LIST) {
        add_list(text, &type, schema->children[0], depth);
    } else if (has_item && type.kind == TFOS__ARROW_MAP && schema->children[0]->n_children == 2) {
        add_map(text, schema->children[0], depth);
    } else if (is_known && type.kind == TFOS__ARROW_STRUCT) {
        add_fields(text, schema, depth);
    } else {
        add(text, "%s",
            is_known ? tfos__arrow_type_name(&type, text->names, name) : schema->format);
    }
}

const char *tfos_arrow_type_text(const struct ArrowSchema *schema, enum tfos_type_names names,
                                 char *text, size_t size)
{
    struct text name = {.names = names, .data = text, .size = size};
    if (size > 0) {
        text[0] = '\0';
        add_type(&name, schema, 0);
    }
    return text;
}

const char *tfos__arrow_lists_text(const struct tfos__arrow_type *value, int level_count,
                                   enum tfos_type_names names, char *text, size_t size)
{
    char name[TFOS__ARROW_TEXT_SIZE];
    struct text whole = {.names = names, .data = text, .size = size};
    for (int i = 0; i < level_count; i++)
        add(&whole, "%s", names == TFOS_TYPE_NAMES_SPARK ? "array<" : "list<item: ");
    add(&whole, "%s", tfos__arrow_type_name(value, names, name));
    for (int i = 0; i < level_count; i++)
        add(&whole, ">");
    return text;
}

// SPDX-License-Identifier: Apache-2.0
// Names of types as people know them, from Arrow's format strings.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/arrow.h>

#define DEPTH_LIMIT 8 // levels that a name has

/// Types without children. A format that ends with ':' is the beginning of one.
static const struct name {
    const char *format, *arrow, *spark;
} names_of_types[] = {
    {"n", "null", "void"},
    {"b", "bool", "boolean"},
    {"c", "int8", "tinyint"},
    {"C", "uint8", NULL},
    {"s", "int16", "smallint"},
    {"S", "uint16", NULL},
    {"i", "int32", "int"},
    {"I", "uint32", NULL},
    {"l", "int64", "bigint"},
    {"L", "uint64", NULL},
    {"e", "halffloat", NULL},
    {"f", "float", "float"},
    {"g", "double", "double"},
    {"u", "string", "string"},
    {"U", "large_string", "string"},
    {"z", "binary", "binary"},
    {"Z", "large_binary", "binary"},
    {"vu", "string_view", "string"},
    {"vz", "binary_view", "binary"},
    {"tdD", "date32[day]", "date"},
    {"tdm", "date64[ms]", NULL},
    {"tts", "time32[s]", NULL},
    {"ttm", "time32[ms]", NULL},
    {"ttu", "time64[us]", NULL},
    {"ttn", "time64[ns]", "time"},
    {"tDs", "duration[s]", NULL},
    {"tDm", "duration[ms]", NULL},
    {"tDu", "duration[us]", "interval day to second"},
    {"tDn", "duration[ns]", NULL},
    {"tiM", "month_interval", "interval year to month"},
    {"tiD", "day_time_interval", NULL},
    {"tin", "month_day_nano_interval", "interval"},
    {"tss:", "timestamp[s", NULL},
    {"tsm:", "timestamp[ms", NULL},
    {"tsu:", "timestamp[us", "timestamp"},
    {"tsn:", "timestamp[ns", NULL},
};

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

static bool add_plain(struct text *text, const char *format)
{
    bool is_spark = text->names == TFOS_TYPE_NAMES_SPARK;
    for (size_t i = 0; i < sizeof names_of_types / sizeof names_of_types[0]; i++) {
        const struct name *name = &names_of_types[i];
        size_t size = strlen(name->format);
        bool is_zoned = name->format[size - 1] == ':';
        if (is_zoned ? strncmp(format, name->format, size) != 0 : strcmp(format, name->format) != 0)
            continue;
        const char *zone = is_zoned ? format + size : "";
        if (is_spark && name->spark)
            add(text, "%s%s", name->spark, is_zoned && *zone == '\0' ? "_ntz" : "");
        else if (is_zoned)
            add(text, "%s%s%s]", name->arrow, *zone ? ", tz=" : "", zone);
        else
            add(text, "%s", name->arrow);
        return true;
    }
    return false;
}

// "d:10,2", "d:10,2,256".
static bool add_decimal(struct text *text, const char *format)
{
    if (strncmp(format, "d:", 2) != 0)
        return false;
    char *end;
    long precision = strtol(format + 2, &end, 10);
    if (precision < 1 || *end != ',')
        return false;
    long scale = strtol(end + 1, &end, 10);
    long bits = *end == ',' ? strtol(end + 1, &end, 10) : 128;
    if (text->names == TFOS_TYPE_NAMES_SPARK)
        add(text, "decimal(%ld,%ld)", precision, scale);
    else
        add(text, "decimal%ld(%ld, %ld)", bits, precision, scale);
    return true;
}

static void add_type(struct text *text, const struct ArrowSchema *schema, int depth);

static void add_list(struct text *text, const struct ArrowSchema *schema, int depth)
{
    const struct ArrowSchema *item = schema->children[0];
    bool is_fixed = strncmp(schema->format, "+w:", 3) == 0;
    if (text->names == TFOS_TYPE_NAMES_SPARK)
        add(text, "array<");
    else
        add(text, "%slist<%s: ",
            is_fixed                   ? "fixed_size_"
            : schema->format[1] == 'L' ? "large_"
                                       : "",
            item->name ? item->name : "item");
    add_type(text, item, depth + 1);
    add(text, ">");
    if (is_fixed && text->names == TFOS_TYPE_NAMES_ARROW)
        add(text, "[%s]", schema->format + 3);
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
    const char *format = schema->format;
    bool is_list =
        strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 || strncmp(format, "+w:", 3) == 0;
    bool is_map = strcmp(format, "+m") == 0 && schema->n_children == 1 &&
                  schema->children[0]->n_children == 2;
    if (depth == DEPTH_LIMIT)
        add(text, "...");
    else if (schema->dictionary) {
        add(text, "dictionary<values=");
        add_type(text, schema->dictionary, depth + 1);
        add(text, ">");
    } else if (is_list && schema->n_children == 1)
        add_list(text, schema, depth);
    else if (strcmp(format, "+s") == 0)
        add_fields(text, schema, depth);
    else if (is_map)
        add_map(text, schema->children[0], depth);
    else if (strncmp(format, "w:", 2) == 0)
        add(text, "fixed_size_binary[%s]", format + 2);
    else if (!add_plain(text, format) && !add_decimal(text, format))
        add(text, "%s", format);
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

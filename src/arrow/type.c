// SPDX-License-Identifier: Apache-2.0
// A format that ends with a colon in the table is followed by numbers, or by a time zone.
#include "arrow/type.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

static const struct row {
    const char *format, *arrow, *spark; ///< the names for people; Spark has no word for each
    enum tfos__arrow_kind kind;
    enum tfos__arrow_layout layout;
    int64_t width;
    char unit;
} rows[] = {
    {"n", "null", "void", TFOS__ARROW_NULL, TFOS__ARROW_NOTHING, 0, 0},
    {"b", "bool", "boolean", TFOS__ARROW_BOOL, TFOS__ARROW_FIXED, 1, 0},
    {"c", "int8", "tinyint", TFOS__ARROW_INT, TFOS__ARROW_FIXED, 8, 0},
    {"C", "uint8", NULL, TFOS__ARROW_UINT, TFOS__ARROW_FIXED, 8, 0},
    {"s", "int16", "smallint", TFOS__ARROW_INT, TFOS__ARROW_FIXED, 16, 0},
    {"S", "uint16", NULL, TFOS__ARROW_UINT, TFOS__ARROW_FIXED, 16, 0},
    {"i", "int32", "int", TFOS__ARROW_INT, TFOS__ARROW_FIXED, 32, 0},
    {"I", "uint32", NULL, TFOS__ARROW_UINT, TFOS__ARROW_FIXED, 32, 0},
    {"l", "int64", "bigint", TFOS__ARROW_INT, TFOS__ARROW_FIXED, 64, 0},
    {"L", "uint64", NULL, TFOS__ARROW_UINT, TFOS__ARROW_FIXED, 64, 0},
    {"e", "halffloat", "float16", TFOS__ARROW_FLOAT, TFOS__ARROW_FIXED, 16, 0},
    {"f", "float", "float", TFOS__ARROW_FLOAT, TFOS__ARROW_FIXED, 32, 0},
    {"g", "double", "double", TFOS__ARROW_FLOAT, TFOS__ARROW_FIXED, 64, 0},
    {"u", "string", "string", TFOS__ARROW_TEXT, TFOS__ARROW_VARIABLE, 32, 0},
    {"U", "large_string", "string", TFOS__ARROW_TEXT, TFOS__ARROW_VARIABLE, 64, 0},
    {"z", "binary", "binary", TFOS__ARROW_BINARY, TFOS__ARROW_VARIABLE, 32, 0},
    {"Z", "large_binary", "binary", TFOS__ARROW_BINARY, TFOS__ARROW_VARIABLE, 64, 0},
    {"tdD", "date32[day]", "date", TFOS__ARROW_DATE, TFOS__ARROW_FIXED, 32, 'D'},
    {"tdm", "date64[ms]", NULL, TFOS__ARROW_DATE, TFOS__ARROW_FIXED, 64, 'm'},
    {"tts", "time32[s]", NULL, TFOS__ARROW_TIME, TFOS__ARROW_FIXED, 32, 's'},
    {"ttm", "time32[ms]", NULL, TFOS__ARROW_TIME, TFOS__ARROW_FIXED, 32, 'm'},
    {"ttu", "time64[us]", NULL, TFOS__ARROW_TIME, TFOS__ARROW_FIXED, 64, 'u'},
    {"ttn", "time64[ns]", "time", TFOS__ARROW_TIME, TFOS__ARROW_FIXED, 64, 'n'},
    {"tDs", "duration[s]", NULL, TFOS__ARROW_DURATION, TFOS__ARROW_FIXED, 64, 's'},
    {"tDm", "duration[ms]", NULL, TFOS__ARROW_DURATION, TFOS__ARROW_FIXED, 64, 'm'},
    {"tDu", "duration[us]", "interval day to second", TFOS__ARROW_DURATION, TFOS__ARROW_FIXED, 64,
     'u'},
    {"tDn", "duration[ns]", NULL, TFOS__ARROW_DURATION, TFOS__ARROW_FIXED, 64, 'n'},
    {"tiM", "month_interval", "interval year to month", TFOS__ARROW_MONTHS, TFOS__ARROW_FIXED, 32,
     0},
    {"tin", "month_day_nano_interval", "interval", TFOS__ARROW_INTERVAL, TFOS__ARROW_FIXED, 128, 0},
    {"vu", "string_view", "string", TFOS__ARROW_OTHER, TFOS__ARROW_NOTHING, 0, 'u'},
    {"vz", "binary_view", "binary", TFOS__ARROW_OTHER, TFOS__ARROW_NOTHING, 0, 'z'},
    {"tiD", "day_time_interval", NULL, TFOS__ARROW_OTHER, TFOS__ARROW_NOTHING, 0, 'D'},
    {"+l", "list", "array", TFOS__ARROW_LIST, TFOS__ARROW_OFFSETS, 32, 0},
    {"+L", "large_list", "array", TFOS__ARROW_LIST, TFOS__ARROW_OFFSETS, 64, 0},
    {"+m", "map", "map", TFOS__ARROW_MAP, TFOS__ARROW_OFFSETS, 32, 0},
    {"+s", "struct", "struct", TFOS__ARROW_STRUCT, TFOS__ARROW_FIELDS, 0, 0},
    {"tss:", "timestamp[s", NULL, TFOS__ARROW_TIMESTAMP, TFOS__ARROW_FIXED, 64, 's'},
    {"tsm:", "timestamp[ms", NULL, TFOS__ARROW_TIMESTAMP, TFOS__ARROW_FIXED, 64, 'm'},
    {"tsu:", "timestamp[us", "timestamp", TFOS__ARROW_TIMESTAMP, TFOS__ARROW_FIXED, 64, 'u'},
    {"tsn:", "timestamp[ns", NULL, TFOS__ARROW_TIMESTAMP, TFOS__ARROW_FIXED, 64, 'n'},
    {"d:", "decimal", "decimal", TFOS__ARROW_DECIMAL, TFOS__ARROW_FIXED, 128, 0},
    {"w:", "fixed_size_binary", NULL, TFOS__ARROW_BINARY, TFOS__ARROW_FIXED, 0, 0},
    {"+w:", "fixed_size_list", "array", TFOS__ARROW_LIST, TFOS__ARROW_FIXED_LIST, 0, 0},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/// Of a type; its width does not matter where each type of the row says its own.
static const struct row *find_row(enum tfos__arrow_kind kind, enum tfos__arrow_layout layout,
                                  int64_t width, char unit)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        bool has_own_width = kind == TFOS__ARROW_DECIMAL || row->width == 0;
        if (row->kind == kind && row->layout == layout && row->unit == unit &&
            (row->width == width || has_own_width))
            return row;
    }
    return NULL;
}

struct tfos__arrow_type tfos__arrow_type_of(enum tfos__arrow_kind kind, int64_t width, char unit)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].kind == kind && rows[i].width == width && rows[i].unit == unit)
            return (struct tfos__arrow_type){.kind = kind,
                                             .layout = rows[i].layout,
                                             .width = width,
                                             .unit = unit,
                                             .time_zone = ""};
    assert(false);
    return (struct tfos__arrow_type){0};
}

struct tfos__arrow_type tfos__arrow_fixed_list_type(int64_t size)
{
    return (struct tfos__arrow_type){
        .kind = TFOS__ARROW_LIST, .layout = TFOS__ARROW_FIXED_LIST, .list_size = size};
}

struct tfos__arrow_type tfos__arrow_fixed_binary_type(int64_t size)
{
    return (struct tfos__arrow_type){
        .kind = TFOS__ARROW_BINARY, .layout = TFOS__ARROW_FIXED, .width = 8 * size};
}

// ---- reading

/// Takes a number that a comma or the end follows.
static bool take_number(const char **text, int64_t least, int64_t most, int64_t *number)
{
    const char *digits = *text + (**text == '-');
    char *end = NULL;
    if (*digits < '0' || *digits > '9')
        return false;
    *number = strtoll(*text, &end, 10); // beyond 64 bits it is the greatest or least of them
    *text = end + (*end == ',');
    return (*end == ',' || *end == '\0') && *number >= least && *number <= most;
}

/// "10,2", or "10,2,256" with the bits of a value.
static bool read_decimal(const char *text, struct tfos__arrow_type *type)
{
    int64_t precision = 0, scale = 0;
    const char *comma = strchr(text, ',');
    if (!comma || !take_number(&text, 1, INT16_MAX, &precision) ||
        !take_number(&text, INT16_MIN, INT16_MAX, &scale) ||
        (text[-1] == ',' && !take_number(&text, 32, 256, &type->width)))
        return false;
    type->precision = (int)precision;
    type->scale = (int)scale;
    return *text == '\0' && text[-1] != ',' && (type->width & (type->width - 1)) == 0;
}

static bool read_rest(const char *text, struct tfos__arrow_type *type)
{
    int64_t size = 0;
    if (type->kind == TFOS__ARROW_TIMESTAMP) {
        type->time_zone = text;
        return true;
    }
    if (type->kind == TFOS__ARROW_DECIMAL)
        return read_decimal(text, type);
    if (strchr(text, ',') || !take_number(&text, 0, INT32_MAX, &size))
        return false;
    if (type->layout == TFOS__ARROW_FIXED_LIST)
        type->list_size = size;
    else
        type->width = 8 * size;
    return true;
}

bool tfos__arrow_type_parse(const char *format, struct tfos__arrow_type *type)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (*rows[i].format != *format)
            continue;
        size_t size = strlen(rows[i].format);
        bool goes_on = rows[i].format[size - 1] == ':';
        if (goes_on ? strncmp(format, rows[i].format, size) != 0
                    : strcmp(format, rows[i].format) != 0)
            continue;
        *type = (struct tfos__arrow_type){.kind = rows[i].kind,
                                          .layout = rows[i].layout,
                                          .width = rows[i].width,
                                          .unit = rows[i].unit,
                                          .time_zone = ""};
        return !goes_on || read_rest(format + size, type);
    }
    return false;
}

enum tfos_status tfos__arrow_type_read(struct tfos__arrow_type *type,
                                       const struct ArrowSchema *schema, struct tfos_error *err)
{
    struct tfos__arrow_type read;
    char name[TFOS_TYPE_TEXT_SIZE];
    int64_t count = schema->n_children;
    if (schema->dictionary)
        return tfos__fail(err, TFOS_UNSUPPORTED, "it is encoded by a dictionary: decode it first");
    if (!tfos__arrow_type_parse(schema->format, &read) || read.kind == TFOS__ARROW_OTHER)
        return tfos__fail(err, TFOS_UNSUPPORTED, "its type, %s, is not known here",
                          tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_ARROW, name, sizeof(name)));
    bool is_list = read.layout == TFOS__ARROW_OFFSETS || read.layout == TFOS__ARROW_FIXED_LIST;
    if (count < 0 || (read.layout != TFOS__ARROW_FIELDS && count != is_list))
        return tfos__fail(err, TFOS_INVALID, "its type, %s, with %lld columns within it",
                          tfos__arrow_type_name(&read, TFOS_TYPE_NAMES_SPARK, name),
                          (long long)count);
    if (read.kind == TFOS__ARROW_MAP &&
        (!tfos__arrow_is_struct(schema->children[0]) || schema->children[0]->n_children != 2))
        return tfos__fail(err, TFOS_INVALID,
                          "the child of a map is no struct of a key and a value");
    *type = read;
    return TFOS_OK;
}

bool tfos__arrow_is_struct(const struct ArrowSchema *schema)
{
    return strcmp(schema->format, "+s") == 0;
}

enum tfos_status tfos__arrow_check_struct(const struct ArrowSchema *schema,
                                          enum tfos_type_names names, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    if (tfos__arrow_is_struct(schema))
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID, "a batch is a struct of columns, not %s",
                      tfos_arrow_type_text(schema, names, text, sizeof(text)));
}

// ---- writing

const char *tfos__arrow_type_format(const struct tfos__arrow_type *type,
                                    char text[TFOS__ARROW_TEXT_SIZE])
{
    const struct row *row = find_row(type->kind, type->layout, type->width, type->unit);
    const size_t size = TFOS__ARROW_TEXT_SIZE;
    assert(row);
    if (type->kind == TFOS__ARROW_TIMESTAMP)
        snprintf(text, size, "%s%s", row->format, type->time_zone);
    else if (type->kind == TFOS__ARROW_DECIMAL && type->width == 128)
        snprintf(text, size, "d:%d,%d", type->precision, type->scale);
    else if (type->kind == TFOS__ARROW_DECIMAL)
        snprintf(text, size, "d:%d,%d,%lld", type->precision, type->scale, (long long)type->width);
    else if (type->layout == TFOS__ARROW_FIXED_LIST)
        snprintf(text, size, "+w:%lld", (long long)type->list_size);
    else if (row->width == 0 && type->layout == TFOS__ARROW_FIXED)
        snprintf(text, size, "w:%lld", (long long)type->width / 8);
    else
        snprintf(text, size, "%s", row->format);
    return text;
}

const char *tfos__arrow_type_name(const struct tfos__arrow_type *type, enum tfos_type_names names,
                                  char text[TFOS__ARROW_TEXT_SIZE])
{
    const struct row *row = find_row(type->kind, type->layout, type->width, type->unit);
    const size_t size = TFOS__ARROW_TEXT_SIZE;
    assert(row);
    bool is_spark = names == TFOS_TYPE_NAMES_SPARK && row->spark;
    const char *name = is_spark ? row->spark : row->arrow;
    if (type->kind == TFOS__ARROW_DECIMAL && is_spark)
        snprintf(text, size, "%s(%d,%d)", name, type->precision, type->scale);
    else if (type->kind == TFOS__ARROW_DECIMAL)
        snprintf(text, size, "%s%d(%d, %d)", name, (int)type->width, type->precision, type->scale);
    else if (type->kind == TFOS__ARROW_TIMESTAMP && is_spark)
        snprintf(text, size, "%s%s", name, *type->time_zone ? "" : "_ntz");
    else if (type->kind == TFOS__ARROW_TIMESTAMP)
        snprintf(text, size, "%s%s%s]", name, *type->time_zone ? ", tz=" : "", type->time_zone);
    else if (type->kind == TFOS__ARROW_BINARY && type->layout == TFOS__ARROW_FIXED)
        snprintf(text, size, "%s[%lld]", name, (long long)type->width / 8);
    else
        snprintf(text, size, "%s", name);
    return text;
}

bool tfos__arrow_type_equals(const struct tfos__arrow_type *a, const struct tfos__arrow_type *b)
{
    return a->kind == b->kind && a->layout == b->layout && a->width == b->width &&
           a->list_size == b->list_size && a->precision == b->precision && a->scale == b->scale &&
           a->unit == b->unit;
}

int64_t tfos__arrow_per_second(const struct tfos__arrow_type *type)
{
    static const char units[] = "smun";
    int64_t parts = 1;
    for (const char *unit = units; *unit && *unit != type->unit; unit++)
        parts *= 1000;
    return parts;
}

// ---- names with those of what is within a type

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

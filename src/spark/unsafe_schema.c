// SPDX-License-Identifier: Apache-2.0
// From Spark's Arrow schema to columns: how a value of each type lies in a row, and a copy of the
// schema that lives as long as the batch. The types and widths are those of UnsafeRowWriter and
// UnsafeArrayWriter.
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "spark/unsafe_column.h"

#define LONG_DIGITS 18 ///< decimals of so many digits are longs
#define MOST_DIGITS 38

struct type {
    const char *format;
    enum tfos__unsafe_kind kind;
    uint32_t width;
    uint32_t element_size;
    bool is_wide;
};

static const struct type types[] = {
    {"n", TFOS__UNSAFE_NULL, 0, 8, false},    {"b", TFOS__UNSAFE_BOOLEAN, 0, 1, false},
    {"c", TFOS__UNSAFE_FIXED, 1, 1, false},   {"s", TFOS__UNSAFE_FIXED, 2, 2, false},
    {"i", TFOS__UNSAFE_FIXED, 4, 4, false},   {"l", TFOS__UNSAFE_FIXED, 8, 8, false},
    {"f", TFOS__UNSAFE_FIXED, 4, 4, false},   {"g", TFOS__UNSAFE_FIXED, 8, 8, false},
    {"tdD", TFOS__UNSAFE_FIXED, 4, 4, false}, {"tsu:", TFOS__UNSAFE_FIXED, 8, 8, false},
    {"ttn", TFOS__UNSAFE_FIXED, 8, 8, false}, {"tDu", TFOS__UNSAFE_FIXED, 8, 8, false},
    {"tiM", TFOS__UNSAFE_FIXED, 4, 4, false}, {"tin", TFOS__UNSAFE_INTERVAL, 16, 8, false},
    {"u", TFOS__UNSAFE_BYTES, 4, 8, false},   {"U", TFOS__UNSAFE_BYTES, 8, 8, true},
    {"z", TFOS__UNSAFE_BYTES, 4, 8, false},   {"Z", TFOS__UNSAFE_BYTES, 8, 8, true},
    {"+l", TFOS__UNSAFE_LIST, 4, 8, false},   {"+L", TFOS__UNSAFE_LIST, 8, 8, true},
    {"+m", TFOS__UNSAFE_MAP, 4, 8, false},    {"+s", TFOS__UNSAFE_STRUCT, 0, 8, false},
};

// Types whose values Spark's own Arrow writer makes from something else than what a row holds.
static const char *const struct_types[] = {"variant", "geometry", "geography"};

static bool parse_decimal(const char *text, struct tfos__unsafe_column *column)
{
    char *end = NULL;

    long digits = strtol(text, &end, 10);
    if (end == text || *end != ',' || digits < 1 || digits > MOST_DIGITS)
        return false;
    const char *scale = end + 1;
    strtol(scale, &end, 10);
    if (end == scale || (*end != '\0' && strcmp(end, ",128") != 0))
        return false;
    column->kind = digits <= LONG_DIGITS ? TFOS__UNSAFE_DECIMAL : TFOS__UNSAFE_BIG_DECIMAL;
    column->width = 16;
    column->element_size = TFOS__UNSAFE_WORD;
    return true;
}

static bool parse_format(const char *format, struct tfos__unsafe_column *column)
{
    // The time zone of a timestamp does not matter here.
    bool is_timestamp = strncmp(format, "tsu:", 4) == 0;

    if (strncmp(format, "d:", 2) == 0)
        return parse_decimal(format + 2, column);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(is_timestamp ? "tsu:" : format, types[i].format) == 0) {
            column->kind = types[i].kind;
            column->width = types[i].width;
            column->element_size = types[i].element_size;
            column->is_wide = types[i].is_wide;
            return true;
        }
    return false;
}

// Whether `block`, a length and its bytes, is `text`; moves `*block` behind it.
static bool take_text(const char **block, const char *text)
{
    int32_t size = 0;

    memcpy(&size, *block, sizeof size);
    const char *bytes = *block + sizeof size;
    *block = bytes + size;
    return strlen(text) == (size_t)size && memcmp(bytes, text, (size_t)size) == 0;
}

// Arrow's metadata: a count of pairs, then key and value, each with its 4-byte length. The size of
// it all; `*type` is the one of struct_types that a pair names.
static size_t read_metadata(const char *metadata, const char **type)
{
    const char *block = metadata;
    int32_t count = 0;

    memcpy(&count, block, sizeof count);
    block += sizeof count;
    for (; count > 0; count--) {
        const char *key = block;
        const char *found = NULL;
        for (size_t i = 0; i < sizeof struct_types / sizeof struct_types[0]; i++) {
            block = key;
            if (take_text(&block, struct_types[i]))
                found = struct_types[i];
        }
        if (take_text(&block, "true") && found)
            *type = found;
    }
    return (size_t)(block - metadata);
}

static enum tfos_status copy_schema(struct tfos__unsafe_column *column,
                                    const struct ArrowSchema *schema, struct tfos_error *err)
{
    struct ArrowSchema *copy = &column->schema;
    const char *type = NULL;

    copy->flags = schema->flags;
    copy->n_children = schema->n_children;
    copy->format = tfos__strdup(schema->format);
    copy->name = tfos__strdup(schema->name ? schema->name : "");
    size_t size = schema->metadata ? read_metadata(schema->metadata, &type) : 0;
    char *metadata = schema->metadata ? tfos__alloc(size, 1) : NULL;
    if (metadata)
        memcpy(metadata, schema->metadata, size);
    copy->metadata = metadata;
    if (!copy->format || !copy->name || (schema->metadata && !metadata))
        return tfos__no_memory(err, "spark", "a schema");
    if (type && column->kind == TFOS__UNSAFE_STRUCT)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "spark: column %s: its type, %s, is not read from Spark's rows; cast it "
                          "or leave it out",
                          column->path, type);
    return TFOS_OK;
}

static enum tfos_status check_shape(const struct tfos__unsafe_column *column,
                                    const struct ArrowSchema *schema, int depth,
                                    struct tfos_error *err)
{
    bool is_list = column->kind == TFOS__UNSAFE_LIST || column->kind == TFOS__UNSAFE_MAP;

    if (schema->n_children < 0 ||
        (column->kind != TFOS__UNSAFE_STRUCT && schema->n_children != is_list))
        return tfos__fail(err, TFOS_INVALID,
                          "spark: column %s: Arrow's format \"%s\" with %lld children",
                          column->path, schema->format, (long long)schema->n_children);
    if (column->kind == TFOS__UNSAFE_MAP &&
        (strcmp(schema->children[0]->format, "+s") != 0 || schema->children[0]->n_children != 2))
        return tfos__fail(err, TFOS_INVALID,
                          "spark: column %s: the child of a map is no struct of key and value",
                          column->path);
    if (depth > TFOS__UNSAFE_DEPTH)
        return tfos__fail(err, TFOS_UNSUPPORTED, "spark: column %s: nested deeper than %d levels",
                          column->path, TFOS__UNSAFE_DEPTH);
    return TFOS_OK;
}

static enum tfos_status resolve_type(struct tfos__unsafe_column *column,
                                     const struct ArrowSchema *schema, struct tfos_error *err)
{
    const char *format = schema->format;
    char text[TFOS_TYPE_TEXT_SIZE];

    if (schema->dictionary)
        return tfos__fail(err, TFOS_UNSUPPORTED, "spark: column %s: is encoded by a dictionary",
                          column->path);
    if (parse_format(format, column))
        return TFOS_OK;
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "spark: column %s: its type, %s, is not read from Spark's rows; cast it or "
                      "leave it out",
                      column->path,
                      tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_SPARK, text, sizeof text));
}

// A row in which all is null: its null bits, then its slots.
static enum tfos_status make_null_row(struct tfos__unsafe_column *column, struct tfos_error *err)
{
    size_t slots = (size_t)column->child_count * TFOS__UNSAFE_WORD;
    size_t bits = ((size_t)column->child_count + 63) / 64 * TFOS__UNSAFE_WORD;

    column->fixed_size = bits + slots;
    column->null_row = tfos__alloc(column->fixed_size, 1);
    if (!column->null_row)
        return tfos__no_memory(err, "spark", "a row of nulls");
    memset(column->null_row, 0xFF, bits);
    for (int64_t i = 0; i < column->child_count; i++) {
        struct tfos__unsafe_column *child = &column->children[i];
        child->null_word = (size_t)i / 64 * TFOS__UNSAFE_WORD;
        child->null_bit = (uint32_t)(i % 64);
        child->slot = bits + (size_t)i * TFOS__UNSAFE_WORD;
    }
    return TFOS_OK;
}

static enum tfos_status init_column(struct tfos__unsafe_column *column,
                                    const struct ArrowSchema *schema, const char *parent, int depth,
                                    struct tfos_error *err)
{
    static const int64_t buffer_counts[] = {
        [TFOS__UNSAFE_NULL] = 0,     [TFOS__UNSAFE_BOOLEAN] = 2,     [TFOS__UNSAFE_FIXED] = 2,
        [TFOS__UNSAFE_DECIMAL] = 2,  [TFOS__UNSAFE_BIG_DECIMAL] = 2, [TFOS__UNSAFE_BYTES] = 3,
        [TFOS__UNSAFE_INTERVAL] = 2, [TFOS__UNSAFE_LIST] = 2,        [TFOS__UNSAFE_MAP] = 2,
        [TFOS__UNSAFE_STRUCT] = 1,
    };
    const char *name = schema->name ? schema->name : "";

    column->path = depth > 1 ? tfos__format("%s.%s", parent, name) : tfos__strdup(name);
    if (!column->path)
        return tfos__no_memory(err, "spark", "a schema");
    TFOS__TRY(resolve_type(column, schema, err));
    TFOS__TRY(check_shape(column, schema, depth, err));
    TFOS__TRY(copy_schema(column, schema, err));
    size_t count = (size_t)schema->n_children;
    column->children = tfos__alloc(count, sizeof *column->children);
    column->schema.children = tfos__alloc(count, sizeof *column->schema.children);
    column->array.children = tfos__alloc(count, sizeof *column->array.children);
    if (!column->children || !column->schema.children || !column->array.children)
        return tfos__no_memory(err, "spark", "the columns of a batch");
    column->child_count = schema->n_children;
    column->array.n_children = schema->n_children;
    column->array.n_buffers = buffer_counts[column->kind];
    column->array.buffers = column->shown;
    for (size_t i = 0; i < count; i++) {
        struct tfos__unsafe_column *child = &column->children[i];
        column->schema.children[i] = &child->schema;
        column->array.children[i] = &child->array;
        TFOS__TRY(init_column(child, schema->children[i], column->path, depth + 1, err));
    }
    return column->kind == TFOS__UNSAFE_STRUCT ? make_null_row(column, err) : TFOS_OK;
}

enum tfos_status tfos__unsafe_column_init(struct tfos__unsafe_column *column,
                                          const struct ArrowSchema *schema, struct tfos_error *err)
{
    return init_column(column, schema, "", 0, err);
}

// SPDX-License-Identifier: Apache-2.0
// Spark writes a type as a word ("integer", "decimal(10,2)", "interval day to second") or, where it
// holds others, as an object whose "type" is struct, array, map or udt. A tree that is half made
// can be released.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/spark_schema.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define MAX_DEPTH 64
#define MAX_FIELDS 65536
#define MAX_PRECISION 38
#define PATH_SIZE 768

/// Where in the schema: the way from the row to the field that is read, innermost first.
struct place {
    const struct place *parent; ///< NULL: the row itself
    const char *name;
    int depth;
    int *field_count; ///< of the whole schema so far
};

struct word {
    const char *text;
    enum tfos__arrow_kind kind;
    int width;
    char unit;
};

/// Types of one word.
static const struct word words[] = {
    {"boolean", TFOS__ARROW_BOOL, 1, 0},
    {"byte", TFOS__ARROW_INT, 8, 0},
    {"short", TFOS__ARROW_INT, 16, 0},
    {"integer", TFOS__ARROW_INT, 32, 0},
    {"long", TFOS__ARROW_INT, 64, 0},
    {"float", TFOS__ARROW_FLOAT, 32, 0},
    {"double", TFOS__ARROW_FLOAT, 64, 0},
    {"string", TFOS__ARROW_TEXT, 32, 0},
    {"binary", TFOS__ARROW_BINARY, 32, 0},
    {"date", TFOS__ARROW_DATE, 32, 'D'},
    {"timestamp", TFOS__ARROW_TIMESTAMP, 64, 'u'},
    {"timestamp_ntz", TFOS__ARROW_TIMESTAMP, 64, 'u'},
    {"interval", TFOS__ARROW_INTERVAL, 128, 0},
    {"interval year", TFOS__ARROW_MONTHS, 32, 0},
    {"interval month", TFOS__ARROW_MONTHS, 32, 0},
    {"interval year to month", TFOS__ARROW_MONTHS, 32, 0},
    {"interval day", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval hour", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval minute", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval second", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval day to hour", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval day to minute", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval day to second", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval hour to minute", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval hour to second", TFOS__ARROW_DURATION, 64, 'u'},
    {"interval minute to second", TFOS__ARROW_DURATION, 64, 'u'},
};

/// Types with something after the word.
static const struct word prefixes[] = {
    {"char(", TFOS__ARROW_TEXT, 32, 0},
    {"varchar(", TFOS__ARROW_TEXT, 32, 0},
    {"string collate ", TFOS__ARROW_TEXT, 32, 0},
    {"time(", TFOS__ARROW_TIME, 64, 'n'},
};

static enum tfos_status build(const struct place *place, const json_t *type, bool is_nullable,
                              struct ArrowSchema *node, struct tfos_error *err);

// ---- errors

/// "person.friends.element", or "the row". Outer names that do not fit are left out.
static const char *path_of(const struct place *place, char path[PATH_SIZE])
{
    size_t begin = PATH_SIZE - 1;
    if (place->parent && strlen(place->name) > begin)
        return "with the longest name";

    path[begin] = '\0';
    for (; place->parent; place = place->parent) {
        size_t size = strlen(place->name);
        size_t dot = path[begin] ? 1 : 0;
        if (size + dot > begin)
            break;
        begin -= size + dot;
        memcpy(path + begin, place->name, size);
        if (dot)
            path[begin + size] = '.';
    }
    return path[begin] ? path + begin : "the row";
}

static enum tfos_status fail_corrupt(const struct place *place, const char *expected,
                                     struct tfos_error *err)
{
    char path[PATH_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "spark: schema: %s: expected %s", path_of(place, path),
                      expected);
}

static enum tfos_status fail_unsupported(const struct place *place, const char *type,
                                         struct tfos_error *err)
{
    char path[PATH_SIZE];
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "spark: column %s: the type %.200s cannot be fed; select other columns, or "
                      "cast this one",
                      path_of(place, path), type);
}

// ---- nodes

static enum tfos_status init_node(const struct place *place, struct tfos__arrow_type type,
                                  bool is_nullable, int64_t child_count, struct ArrowSchema *node,
                                  struct tfos_error *err)
{
    TFOS__TRY(tfos__arrow_schema_init(node, type, place->name, child_count, err));
    node->flags = is_nullable ? ARROW_FLAG_NULLABLE : 0;
    return TFOS_OK;
}

static enum tfos_status build_child(const struct place *parent, const char *name,
                                    const json_t *type, bool is_nullable, struct ArrowSchema *node,
                                    struct tfos_error *err)
{
    struct place place = {parent, name, parent->depth + 1, parent->field_count};
    return build(&place, type, is_nullable, node, err);
}

// ---- types

/// Whether `text` is "decimal(p,s)", with the two numbers.
static bool parse_decimal(const char *text, long *precision, long *scale)
{
    static const char prefix[] = "decimal(";
    char *end = NULL;
    if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
        return false;
    errno = 0;
    *precision = strtol(text + sizeof(prefix) - 1, &end, 10);
    if (*end != ',')
        return false;
    *scale = strtol(end + 1, &end, 10);
    return errno == 0 && strcmp(end, ")") == 0;
}

static bool find_word(const char *text, struct tfos__arrow_type *type)
{
    const struct word *word = NULL;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i].text) == 0)
            word = &words[i];
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(text, prefixes[i].text, strlen(prefixes[i].text)) == 0)
            word = &prefixes[i];
    if (!word)
        return false;
    *type = tfos__arrow_type_of(word->kind, word->width, word->unit);
    return true;
}

/// Reads a type that is a word. False: it is not known.
static bool read_word(const char *text, struct tfos__arrow_type *type)
{
    long precision = 10, scale = 0;
    if (find_word(text, type)) {
        type->time_zone = strcmp(text, "timestamp") == 0 ? "UTC" : "";
        return true;
    }
    if (strcmp(text, "decimal") != 0 && !parse_decimal(text, &precision, &scale))
        return false;
    *type = tfos__arrow_type_of(TFOS__ARROW_DECIMAL, 128, 0);
    type->precision = (int)precision;
    type->scale = (int)scale;
    return precision >= 1 && precision <= MAX_PRECISION && scale >= 0 && scale <= precision;
}

static enum tfos_status build_word(const struct place *place, const char *text, bool is_nullable,
                                   struct ArrowSchema *node, struct tfos_error *err)
{
    struct tfos__arrow_type type;
    if (!read_word(text, &type))
        return fail_unsupported(place, text, err);
    return init_node(place, type, is_nullable, 0, node, err);
}

/// Gives the node some of a field's metadata.
static enum tfos_status add_metadata(struct ArrowSchema *node, const json_t *metadata,
                                     struct tfos_error *err)
{
    static const char *const keys[] = {"tfos.encoding", "tfos.name"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = json_string_value(json_object_get(metadata, keys[i]));
        if (value)
            TFOS__TRY(tfos__arrow_schema_note(node, keys[i],
                                              (struct tfos_view){value, strlen(value)}, err));
    }
    return TFOS_OK;
}

static enum tfos_status build_field(const struct place *parent, const json_t *field,
                                    struct ArrowSchema *node, struct tfos_error *err)
{
    const char *name = json_string_value(json_object_get(field, "name"));
    // A name with a NUL in it never comes: Jansson refuses it.
    if (!name)
        return fail_corrupt(parent, "fields with names", err);
    TFOS__TRY(build_child(parent, name, json_object_get(field, "type"),
                          tfos__json_bool_or(field, "nullable", true), node, err));
    return add_metadata(node, json_object_get(field, "metadata"), err);
}

static enum tfos_status build_struct(const struct place *place, const json_t *type,
                                     bool is_nullable, struct ArrowSchema *node,
                                     struct tfos_error *err)
{
    const json_t *fields = json_object_get(type, "fields");
    if (!json_is_array(fields))
        return fail_corrupt(place, "a list of fields", err);
    TFOS__TRY(init_node(place, tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0), is_nullable,
                        (int64_t)json_array_size(fields), node, err));
    for (int64_t i = 0; i < node->n_children; i++)
        TFOS__TRY(build_field(place, json_array_get(fields, (size_t)i), node->children[i], err));
    return TFOS_OK;
}

static enum tfos_status build_array(const struct place *place, const json_t *type, bool is_nullable,
                                    struct ArrowSchema *node, struct tfos_error *err)
{
    TFOS__TRY(
        init_node(place, tfos__arrow_type_of(TFOS__ARROW_LIST, 32, 0), is_nullable, 1, node, err));
    return build_child(place, "element", json_object_get(type, "elementType"),
                       tfos__json_bool_or(type, "containsNull", true), node->children[0], err);
}

static enum tfos_status build_map(const struct place *place, const json_t *type, bool is_nullable,
                                  struct ArrowSchema *node, struct tfos_error *err)
{
    struct place entries = {place, "entries", place->depth + 1, place->field_count};
    // Keys and values are named after the map: its entries are Arrow's notion only.
    struct place inside = {place->parent, place->name, place->depth + 1, place->field_count};

    TFOS__TRY(
        init_node(place, tfos__arrow_type_of(TFOS__ARROW_MAP, 32, 0), is_nullable, 1, node, err));
    struct ArrowSchema *pair = node->children[0];
    TFOS__TRY(
        init_node(&entries, tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0), false, 2, pair, err));
    TFOS__TRY(build_child(&inside, "key", json_object_get(type, "keyType"), false,
                          pair->children[0], err));
    return build_child(&inside, "value", json_object_get(type, "valueType"),
                       tfos__json_bool_or(type, "valueContainsNull", true), pair->children[1], err);
}

static enum tfos_status build_object(const struct place *place, const json_t *type,
                                     bool is_nullable, struct ArrowSchema *node,
                                     struct tfos_error *err)
{
    const char *kind = tfos__json_string_or(type, "type", "");
    if (strcmp(kind, "struct") == 0)
        return build_struct(place, type, is_nullable, node, err);
    if (strcmp(kind, "array") == 0)
        return build_array(place, type, is_nullable, node, err);
    if (strcmp(kind, "map") == 0)
        return build_map(place, type, is_nullable, node, err);
    if (strcmp(kind, "udt") != 0)
        return fail_unsupported(place, kind, err);
    struct place stored = {place->parent, place->name, place->depth + 1, place->field_count};
    return build(&stored, json_object_get(type, "sqlType"), is_nullable, node, err);
}

/// Fills a zeroed node. After a failure it is to be released where it has a release.
static enum tfos_status build(const struct place *place, const json_t *type, bool is_nullable,
                              struct ArrowSchema *node, struct tfos_error *err)
{
    char path[PATH_SIZE];
    if (place->depth > MAX_DEPTH)
        return tfos__fail(err, TFOS_UNSUPPORTED, "spark: column %s: nested deeper than %d levels",
                          path_of(place, path), MAX_DEPTH);
    if (++*place->field_count > MAX_FIELDS)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "spark: column %s: the schema has more than %d fields in all",
                          path_of(place, path), MAX_FIELDS);
    if (json_is_string(type))
        return build_word(place, json_string_value(type), is_nullable, node, err);
    if (json_is_object(type))
        return build_object(place, type, is_nullable, node, err);
    return fail_corrupt(place, "a type", err);
}

static enum tfos_status build_row(const json_t *json, struct ArrowSchema *row,
                                  struct tfos_error *err)
{
    int field_count = 0;
    const struct place place = {NULL, "", 0, &field_count};
    if (strcmp(tfos__json_string_or(json, "type", ""), "struct") != 0)
        return fail_corrupt(&place, "a struct", err);
    return build(&place, json, false, row, err);
}

enum tfos_status tfos_spark_schema_parse(const char *json, struct ArrowSchema *out,
                                         struct tfos_error *err)
{
    struct ArrowSchema row = {0};
    json_t *parsed = NULL;
    TFOS__TRY(tfos__json_parse(json, strlen(json), &parsed, err));
    enum tfos_status status = build_row(parsed, &row, err);
    json_decref(parsed);
    if (status == TFOS_OK)
        *out = row;
    else if (row.release)
        row.release(&row);
    return status;
}

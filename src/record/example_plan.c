// SPDX-License-Identifier: Apache-2.0
// Formats are those of the Arrow C data interface.
#include "record/example_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define DEPTH_LIMIT 64
#define DECIMAL_DIGITS 38 // of 128 bits
#define WORD_SIZE 16      // most bytes of a metadata's value

/// Types by format, or the beginning of one that ends with ':'.
static const struct type {
    const char *format;
    enum tfos__feature_kind kind;
    enum tfos__example_value value;
    uint8_t width;
    bool is_unsigned, is_wide;
} types[] = {
    {"b", TFOS__FEATURE_INT64, TFOS__VALUE_BOOLEAN, 1, true, false},
    {"c", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 1, false, false},
    {"C", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 1, true, false},
    {"s", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 2, false, false},
    {"S", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 2, true, false},
    {"i", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, false, false},
    {"I", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, true, false},
    {"l", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"L", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, true, false},
    {"f", TFOS__FEATURE_FLOAT, TFOS__VALUE_FLOAT, 4, false, false},
    {"g", TFOS__FEATURE_FLOAT, TFOS__VALUE_DOUBLE, 8, false, false},
    {"d:", TFOS__FEATURE_FLOAT, TFOS__VALUE_DECIMAL, 16, false, false},
    {"u", TFOS__FEATURE_BYTES, TFOS__VALUE_TEXT, 0, false, false},
    {"U", TFOS__FEATURE_BYTES, TFOS__VALUE_TEXT, 0, false, true},
    {"z", TFOS__FEATURE_BYTES, TFOS__VALUE_BINARY, 0, false, false},
    {"Z", TFOS__FEATURE_BYTES, TFOS__VALUE_BINARY, 0, false, true},
    {"tdD", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, false, false},
    {"tdm", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tts", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, false, false},
    {"ttm", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, false, false},
    {"ttu", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"ttn", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tss:", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tsm:", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tsu:", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tsn:", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tDs", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tDm", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tDu", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tDn", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 8, false, false},
    {"tiM", TFOS__FEATURE_INT64, TFOS__VALUE_INTEGER, 4, false, false},
};

static const struct type *find_type(const char *format)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t size = strlen(types[i].format);
        bool is_prefix = types[i].format[size - 1] == ':';
        if (is_prefix ? strncmp(format, types[i].format, size) == 0
                      : strcmp(format, types[i].format) == 0)
            return &types[i];
    }
    return NULL;
}

const char *tfos__example_type_of(const struct tfos__example_field *field,
                                  enum tfos__feature_kind kind, int level_count,
                                  char text[TFOS_TYPE_TEXT_SIZE])
{
    static const char *const formats[] = {"n", "z", "f", "l"};
    struct ArrowSchema levels[TFOS__EXAMPLE_LEVELS + 1];
    struct ArrowSchema *children[TFOS__EXAMPLE_LEVELS + 1];
    for (int i = 0; i <= level_count; i++) {
        bool is_list = i < level_count;
        children[i] = &levels[i + is_list];
        levels[i] = (struct ArrowSchema){.format = is_list ? "+l" : formats[kind],
                                         .name = "item",
                                         .n_children = is_list,
                                         .children = &children[i]};
    }
    return tfos_arrow_type_text(&levels[0], field->type_names, text, TFOS_TYPE_TEXT_SIZE);
}

static enum tfos_status unsupported(const struct tfos__example_field *field, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "record: column %s: records cannot hold %s: cast the column or leave it out",
                      field->name, field->type);
}

// A list at a level that records of this type do not have.
static enum tfos_status too_deep(const struct tfos__example_field *field,
                                 const struct ArrowSchema *inner, enum tfos_record_type type,
                                 struct tfos_error *err)
{
    if (type == TFOS_RECORD_BYTES)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: column %s: the record type ByteArray is one column of binary or "
                          "string, not %s",
                          field->name, field->type);
    if (type == TFOS_RECORD_EXAMPLE && inner->format[0] != '+')
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: column %s: an Example cannot hold %s, lists of lists: they need "
                          "the record type SequenceExample",
                          field->name, field->type);
    return unsupported(field, err);
}

// "d:10,2"; other sizes than 128 bits follow a second comma.
static enum tfos_status read_decimal(const char *format, struct tfos__example_field *field,
                                     struct tfos_error *err)
{
    char *end;
    long precision = strtol(format + 2, &end, 10);
    long scale = *end == ',' ? strtol(end + 1, &end, 10) : -1;
    bool is_known = *end == '\0' || strcmp(end, ",128") == 0;
    if (!is_known || precision < 1 || precision > DECIMAL_DIGITS || scale < 0 || scale > precision)
        return unsupported(field, err);
    field->precision = (int)precision;
    field->scale = (int)scale;
    return TFOS_OK;
}

static enum tfos_status read_encoding(const struct ArrowSchema *schema,
                                      struct tfos__example_field *field, struct tfos_error *err)
{
    char encoding[WORD_SIZE];
    if (!tfos_arrow_metadata_find(schema->metadata, "tfos.encoding", encoding, sizeof encoding))
        return TFOS_OK;
    bool can_be = field->value == TFOS__VALUE_DOUBLE || field->value == TFOS__VALUE_DECIMAL;
    if (strcmp(encoding, "exact") != 0 || !can_be)
        return tfos__fail(err, TFOS_INVALID, "record: column %s: there is no encoding \"%s\" of %s",
                          field->name, encoding, field->type);
    field->is_exact = true;
    field->kind = TFOS__FEATURE_BYTES;
    return TFOS_OK;
}

static enum tfos_status read_value(const struct ArrowSchema *schema,
                                   struct tfos__example_field *field, struct tfos_error *err)
{
    const struct type *type = schema->dictionary ? NULL : find_type(schema->format);
    if (!type)
        return unsupported(field, err);
    field->kind = type->kind;
    field->value = type->value;
    field->width = type->width;
    field->is_unsigned = type->is_unsigned;
    field->has_wide_bytes = type->is_wide;
    if (type->value == TFOS__VALUE_DECIMAL)
        TFOS__TRY(read_decimal(schema->format, field, err));
    return TFOS_OK;
}

// One of the lists around a value. False: it is none.
static bool read_level(const struct ArrowSchema *schema, bool *is_wide, int64_t *fixed_size)
{
    *is_wide = strcmp(schema->format, "+L") == 0;
    *fixed_size =
        strncmp(schema->format, "+w:", 3) == 0 ? strtoll(schema->format + 3, NULL, 10) : -1;
    return (*is_wide || *fixed_size >= 0 || strcmp(schema->format, "+l") == 0) &&
           schema->n_children == 1;
}

static enum tfos_status read_leaf(const struct ArrowSchema *schema, enum tfos_record_type type,
                                  struct tfos__example_field *field, struct tfos_error *err)
{
    const struct ArrowSchema *top = schema;
    int limit = type == TFOS_RECORD_SEQUENCE_EXAMPLE ? 2 : type == TFOS_RECORD_EXAMPLE ? 1 : 0;
    bool is_wide;
    int64_t fixed_size;
    field->is_nullable = (schema->flags & ARROW_FLAG_NULLABLE) != 0;
    for (; read_level(schema, &is_wide, &fixed_size); schema = schema->children[0]) {
        if (field->level_count == limit)
            return too_deep(field, schema->children[0], type, err);
        field->levels[field->level_count].is_wide = is_wide;
        field->levels[field->level_count++].fixed_size = fixed_size;
    }
    TFOS__TRY(read_value(schema, field, err));
    return read_encoding(top, field, err);
}

static enum tfos_status name_type(const struct ArrowSchema *schema,
                                  struct tfos__example_field *field, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    tfos_arrow_type_text(schema, field->type_names, text, sizeof text);
    field->type = tfos__strdup(text);
    return field->type ? TFOS_OK : tfos__no_memory(err, "record", "a schema");
}

static enum tfos_status grow(void **items, size_t count, size_t *capacity, size_t size,
                             struct tfos_error *err)
{
    if (count < *capacity)
        return TFOS_OK;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = tfos__realloc(*items, wanted, size);
    if (!grown)
        return tfos__no_memory(err, "record", "a schema");
    *items = grown;
    *capacity = wanted;
    return TFOS_OK;
}

static enum tfos_status add_shape(struct tfos__example_plan *plan, int64_t shape,
                                  struct tfos_error *err)
{
    void *items = plan->shape;
    enum tfos_status status =
        grow(&items, plan->shape_count, &plan->shape_capacity, sizeof *plan->shape, err);
    plan->shape = items;
    if (status == TFOS_OK)
        plan->shape[plan->shape_count++] = shape;
    return status;
}

static bool is_name_exact(const struct ArrowSchema *schema)
{
    char word[WORD_SIZE];
    return tfos_arrow_metadata_find(schema->metadata, "tfos.name", word, sizeof word) &&
           strcmp(word, "exact") == 0;
}

// Takes over `name`.
static enum tfos_status add_leaf(struct tfos__example_plan *plan, const struct ArrowSchema *schema,
                                 char *name, bool is_exact, struct tfos_error *err)
{
    void *items = plan->fields;
    enum tfos_status status =
        grow(&items, plan->field_count, &plan->field_capacity, sizeof *plan->fields, err);
    plan->fields = items;
    if (status < 0) {
        tfos__free(name);
        return status;
    }
    struct tfos__example_field *field = &plan->fields[plan->field_count++];
    *field = (struct tfos__example_field){.name = name,
                                          .name_size = strlen(name),
                                          .type_names = plan->type_names,
                                          .is_name_exact = is_exact};
    TFOS__TRY(name_type(schema, field, err));
    TFOS__TRY(add_shape(plan, -1, err));
    return read_leaf(schema, plan->type, field, err);
}

// `parent` is the path with a dot behind it, or empty; `is_exact`: names below it are.
static enum tfos_status add_fields(struct tfos__example_plan *plan,
                                   const struct ArrowSchema *schema, const char *parent, int depth,
                                   bool is_exact, struct tfos_error *err)
{
    if (depth == DEPTH_LIMIT)
        return tfos__fail(err, TFOS_UNSUPPORTED, "record: column %s: structs %d deep", parent,
                          depth);
    TFOS__TRY(add_shape(plan, schema->n_children, err));
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        bool is_struct = strcmp(child->format, "+s") == 0;
        bool is_child_exact = is_exact || is_name_exact(child);
        char *name =
            tfos__format("%s%s%s", parent, child->name ? child->name : "", is_struct ? "." : "");
        if (!name)
            return tfos__no_memory(err, "record", "a column's name");
        if (!is_struct) {
            TFOS__TRY(add_leaf(plan, child, name, is_child_exact, err));
            continue;
        }
        enum tfos_status status = add_fields(plan, child, name, depth + 1, is_child_exact, err);
        tfos__free(name);
        TFOS__TRY(status);
    }
    return TFOS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum tfos_status check_names(const struct tfos__example_plan *plan, struct tfos_error *err)
{
    const char **names = tfos__alloc(plan->field_count, sizeof *names);
    enum tfos_status status = TFOS_OK;
    if (!names)
        return tfos__no_memory(err, "record", "a schema");
    for (size_t i = 0; i < plan->field_count; i++)
        names[i] = plan->fields[i].name;
    qsort(names, plan->field_count, sizeof *names, compare_names);
    for (size_t i = 1; i < plan->field_count && status == TFOS_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status =
                tfos__fail(err, TFOS_INVALID, "record: two columns have the name %s", names[i]);
    tfos__free(names);
    return status;
}

static enum tfos_status check_plain(const struct tfos__example_plan *plan, struct tfos_error *err)
{
    if (plan->field_count == 1 && plan->fields[0].value >= TFOS__VALUE_TEXT)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "record: the record type ByteArray is one column of binary or string, not "
                      "%zu columns%s%s%s%s",
                      plan->field_count, plan->field_count > 0 ? ", the first of which is " : "",
                      plan->field_count > 0 ? plan->fields[0].name : "",
                      plan->field_count > 0 ? " of " : "",
                      plan->field_count > 0 ? plan->fields[0].type : "");
}

enum tfos_status tfos__example_plan_init(struct tfos__example_plan *plan,
                                         const struct ArrowSchema *schema, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    if (strcmp(schema->format, "+s") != 0)
        return tfos__fail(err, TFOS_INVALID, "record: a schema is a struct of columns, not %s",
                          tfos_arrow_type_text(schema, plan->type_names, text, sizeof text));
    TFOS__TRY(add_fields(plan, schema, "", 0, false, err));
    if (plan->type == TFOS_RECORD_BYTES)
        return check_plain(plan, err);
    return check_names(plan, err);
}

void tfos__example_plan_clear(struct tfos__example_plan *plan)
{
    for (size_t i = 0; i < plan->field_count; i++) {
        tfos__free(plan->fields[i].name);
        tfos__free(plan->fields[i].type);
    }
    tfos__free(plan->fields);
    tfos__free(plan->shape);
    *plan = (struct tfos__example_plan){0};
}

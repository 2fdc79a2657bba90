// SPDX-License-Identifier: Apache-2.0
#include "record/record_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define DECIMAL_DIGITS 38 // of 128 bits
#define WORD_SIZE 16      // most bytes of a metadata's value

// What a list of such values is; NONE: there is none.
static enum tfos__record_feature_kind kind_of(const struct tfos__arrow_type *type)
{
    switch (type->kind) {
    case TFOS__ARROW_BOOL:
    case TFOS__ARROW_INT:
    case TFOS__ARROW_UINT:
    case TFOS__ARROW_DATE:
    case TFOS__ARROW_TIME:
    case TFOS__ARROW_TIMESTAMP:
    case TFOS__ARROW_DURATION:
    case TFOS__ARROW_MONTHS:
        return TFOS__FEATURE_INT64;
    case TFOS__ARROW_FLOAT:
        return type->width == 16 ? TFOS__FEATURE_NONE : TFOS__FEATURE_FLOAT;
    case TFOS__ARROW_DECIMAL:
        return type->width == 128 && type->precision >= 1 && type->precision <= DECIMAL_DIGITS &&
                       type->scale >= 0 && type->scale <= type->precision
                   ? TFOS__FEATURE_FLOAT
                   : TFOS__FEATURE_NONE;
    case TFOS__ARROW_TEXT:
        return TFOS__FEATURE_BYTES;
    default:
        return type->kind == TFOS__ARROW_BINARY && type->layout == TFOS__ARROW_VARIABLE
                   ? TFOS__FEATURE_BYTES
                   : TFOS__FEATURE_NONE;
    }
}

const char *tfos__record_field_type_for(const struct tfos__record_field *field,
                                        enum tfos__record_feature_kind kind, int level_count,
                                        char text[TFOS_TYPE_TEXT_SIZE])
{
    static const struct {
        enum tfos__arrow_kind kind;
        int64_t width;
    } types[] = {[TFOS__FEATURE_NONE] = {TFOS__ARROW_NULL, 0},
                 [TFOS__FEATURE_BYTES] = {TFOS__ARROW_BINARY, 32},
                 [TFOS__FEATURE_FLOAT] = {TFOS__ARROW_FLOAT, 32},
                 [TFOS__FEATURE_INT64] = {TFOS__ARROW_INT, 64}};
    struct tfos__arrow_type value = tfos__arrow_type_of(types[kind].kind, types[kind].width, 0);
    return tfos__arrow_lists_text(&value, level_count, field->type_names, text,
                                  TFOS_TYPE_TEXT_SIZE);
}

static enum tfos_status unsupported(const struct tfos__record_field *field, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "record: column %s: records cannot hold %s: cast the column or leave it out",
                      field->name, field->type);
}

// A list of `inner` at a level that records of this type do not have.
static enum tfos_status too_deep(const struct tfos__record_field *field,
                                 const struct tfos__arrow_type *inner, enum tfos_record_type type,
                                 struct tfos_error *err)
{
    if (type == TFOS_RECORD_BYTES)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: column %s: the record type ByteArray is one column of binary or "
                          "string, not %s",
                          field->name, field->type);
    if (type == TFOS_RECORD_EXAMPLE && inner->kind < TFOS__ARROW_LIST)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: column %s: an Example cannot hold %s, lists of lists: they need "
                          "the record type SequenceExample",
                          field->name, field->type);
    return unsupported(field, err);
}

static enum tfos_status read_encoding(const struct ArrowSchema *schema,
                                      struct tfos__record_field *field, struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &tfos__record_field_values(field)->type;
    char encoding[WORD_SIZE];
    if (!tfos_arrow_metadata_find(schema->metadata, "tfos.encoding", encoding, sizeof(encoding)))
        return TFOS_OK;
    bool can_be =
        tfos__arrow_type_is(type, TFOS__ARROW_FLOAT, 64) || type->kind == TFOS__ARROW_DECIMAL;
    if (strcmp(encoding, "exact") != 0 || !can_be)
        return tfos__fail(err, TFOS_INVALID, "record: column %s: there is no encoding \"%s\" of %s",
                          field->name, encoding, field->type);
    field->is_exact = true;
    field->kind = TFOS__FEATURE_BYTES;
    return TFOS_OK;
}

static enum tfos_status read_leaf(const struct ArrowSchema *schema,
                                  struct tfos__arrow_builder *column, enum tfos_record_type type,
                                  struct tfos__record_field *field, struct tfos_error *err)
{
    int limit = type == TFOS_RECORD_SEQUENCE_EXAMPLE ? 2 : type == TFOS_RECORD_EXAMPLE ? 1 : 0;
    field->is_nullable = (schema->flags & ARROW_FLAG_NULLABLE) != 0;
    for (; column->type.kind == TFOS__ARROW_LIST; column = column->children) {
        if (field->level_count == limit)
            return too_deep(field, &column->children->type, type, err);
        field->levels[field->level_count++] = column;
    }
    field->levels[field->level_count] = column;
    field->kind = kind_of(&column->type);
    if (field->kind == TFOS__FEATURE_NONE)
        return unsupported(field, err);
    return read_encoding(schema, field, err);
}

static enum tfos_status name_type(const struct ArrowSchema *schema,
                                  struct tfos__record_field *field, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    tfos_arrow_type_text(schema, field->type_names, text, sizeof(text));
    field->type = tfos__strdup(text);
    return field->type ? TFOS_OK : tfos__no_memory(err, "record", "a schema");
}

static bool is_name_exact(const struct ArrowSchema *schema)
{
    char word[WORD_SIZE];
    return tfos_arrow_metadata_find(schema->metadata, "tfos.name", word, sizeof(word)) &&
           strcmp(word, "exact") == 0;
}

// Takes over `name`.
static enum tfos_status add_leaf(struct tfos__record_schema *schema, const struct ArrowSchema *node,
                                 struct tfos__arrow_builder *column, char *name, bool is_exact,
                                 struct tfos_error *err)
{
    void *fields = tfos__array_grow(schema->fields, schema->field_count, sizeof(*schema->fields));
    if (!fields) {
        tfos__free(name);
        return tfos__no_memory(err, "record", "a schema");
    }
    schema->fields = fields;
    struct tfos__record_field *field = &schema->fields[schema->field_count++];
    *field = (struct tfos__record_field){.name = name,
                                         .name_size = strlen(name),
                                         .type_names = schema->type_names,
                                         .is_name_exact = is_exact};
    TFOS__TRY(name_type(node, field, err));
    return read_leaf(node, column, schema->type, field, err);
}

// `parent` is the path with a dot behind it, or empty; `is_exact`: names below it are.
static enum tfos_status add_fields(struct tfos__record_schema *schema,
                                   const struct ArrowSchema *node,
                                   struct tfos__arrow_builder *column, const char *parent,
                                   bool is_exact, struct tfos_error *err)
{
    for (int64_t i = 0; i < node->n_children; i++) {
        const struct ArrowSchema *child = node->children[i];
        bool is_struct = column->children[i].type.kind == TFOS__ARROW_STRUCT;
        bool is_child_exact = is_exact || is_name_exact(child);
        char *name =
            tfos__format("%s%s%s", parent, child->name ? child->name : "", is_struct ? "." : "");
        if (!name)
            return tfos__no_memory(err, "record", "a column's name");
        if (!is_struct) {
            TFOS__TRY(add_leaf(schema, child, &column->children[i], name, is_child_exact, err));
            continue;
        }
        enum tfos_status status =
            add_fields(schema, child, &column->children[i], name, is_child_exact, err);
        tfos__free(name);
        TFOS__TRY(status);
    }
    return TFOS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum tfos_status check_names(const struct tfos__record_schema *schema,
                                    struct tfos_error *err)
{
    const char **names = tfos__alloc(schema->field_count, sizeof(*names));
    enum tfos_status status = TFOS_OK;
    if (!names)
        return tfos__no_memory(err, "record", "a schema");
    for (size_t i = 0; i < schema->field_count; i++)
        names[i] = schema->fields[i].name;
    qsort(names, schema->field_count, sizeof(*names), compare_names);
    for (size_t i = 1; i < schema->field_count && status == TFOS_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status =
                tfos__fail(err, TFOS_INVALID, "record: two columns have the name %s", names[i]);
    tfos__free(names);
    return status;
}

static enum tfos_status check_plain(const struct tfos__record_schema *schema,
                                    struct tfos_error *err)
{
    if (schema->field_count == 1 && schema->fields[0].kind == TFOS__FEATURE_BYTES)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "record: the record type ByteArray is one column of binary or string, not "
                      "%zu columns%s%s%s%s",
                      schema->field_count,
                      schema->field_count > 0 ? ", the first of which is " : "",
                      schema->field_count > 0 ? schema->fields[0].name : "",
                      schema->field_count > 0 ? " of " : "",
                      schema->field_count > 0 ? schema->fields[0].type : "");
}

enum tfos_status tfos__record_schema_init(struct tfos__record_schema *schema,
                                          const struct ArrowSchema *node, struct tfos_error *err)
{
    enum tfos_status status = tfos__arrow_check_struct(node, schema->type_names, err);
    if (status == TFOS_OK)
        status = tfos__arrow_builder_init(&schema->rows, node, err);
    TFOS__TRY(tfos__fail_in(err, status, "record"));
    TFOS__TRY(add_fields(schema, node, &schema->rows, "", false, err));
    if (schema->type == TFOS_RECORD_BYTES)
        return check_plain(schema, err);
    return check_names(schema, err);
}

void tfos__record_schema_clear(struct tfos__record_schema *schema)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        tfos__free(schema->fields[i].name);
        tfos__free(schema->fields[i].type);
    }
    tfos__free(schema->fields);
    tfos__arrow_builder_clear(&schema->rows);
    *schema = (struct tfos__record_schema){0};
}

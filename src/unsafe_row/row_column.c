// SPDX-License-Identifier: Apache-2.0
// How a value of each type lies in a row. The types and widths are those of UnsafeRowWriter and
// UnsafeArrayWriter.
#include "unsafe_row/row_column.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define LONG_DIGITS 18 ///< decimals of so many digits are longs
#define MOST_DIGITS 38

// Types whose values Spark's own Arrow writer makes from something else than what a row holds.
static const char *const struct_types[] = {"variant", "geometry", "geography"};

static bool is_read(const struct tfos__arrow_type *type)
{
    switch (type->kind) {
    case TFOS__ARROW_UINT:
        return false;
    case TFOS__ARROW_FLOAT:
        return type->width > 16;
    case TFOS__ARROW_DATE:
        return type->unit == 'D';
    case TFOS__ARROW_TIME:
        return type->unit == 'n';
    case TFOS__ARROW_TIMESTAMP:
    case TFOS__ARROW_DURATION:
        return type->unit == 'u';
    case TFOS__ARROW_DECIMAL:
        return type->width == 128 && type->precision >= 1 && type->precision <= MOST_DIGITS;
    case TFOS__ARROW_BINARY:
        return type->layout == TFOS__ARROW_VARIABLE;
    case TFOS__ARROW_LIST:
        return type->layout == TFOS__ARROW_OFFSETS;
    default:
        return true;
    }
}

static bool is_variable(const struct tfos__arrow_type *type)
{
    return type->kind >= TFOS__ARROW_TEXT || type->kind == TFOS__ARROW_INTERVAL ||
           (type->kind == TFOS__ARROW_DECIMAL && type->precision > LONG_DIGITS);
}

static uint32_t element_size(const struct tfos__arrow_type *type)
{
    if (type->kind == TFOS__ARROW_NULL || type->kind == TFOS__ARROW_DECIMAL || is_variable(type))
        return TFOS__ROW_WORD;
    return type->kind == TFOS__ARROW_BOOL ? 1 : (uint32_t)type->width / 8;
}

static enum tfos_status refuse(const struct tfos__unsafe_row_column *column, const char *type,
                               struct tfos_error *err)
{
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "spark: column %s: its type, %s, is not read from Spark's rows; cast it or "
                      "leave it out",
                      column->path, type);
}

static enum tfos_status read_type(struct tfos__unsafe_row_column *column,
                                  const struct ArrowSchema *schema, struct tfos_error *err)
{
    struct tfos__arrow_type type;
    char text[TFOS_TYPE_TEXT_SIZE];
    enum tfos_status status = tfos__arrow_type_read(&type, schema, err);
    const char *name = tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_SPARK, text, sizeof(text));
    if (status == TFOS_UNSUPPORTED && !schema->dictionary)
        return refuse(column, name, err);
    TFOS__TRY(tfos__fail_in(err, status, "spark: column %s", column->path));
    column->is_variable = is_variable(&type);
    column->element_size = element_size(&type);
    if (!is_read(&type))
        return refuse(column, name, err);
    for (size_t i = 0; i < sizeof(struct_types) / sizeof(struct_types[0]); i++)
        if (type.kind == TFOS__ARROW_STRUCT &&
            tfos_arrow_metadata_find(schema->metadata, struct_types[i], text, sizeof(text)) &&
            strcmp(text, "true") == 0)
            return refuse(column, struct_types[i], err);
    return TFOS_OK;
}

// A row in which all is null: its null bits, then its slots.
static enum tfos_status make_null_row(struct tfos__unsafe_row_column *column,
                                      struct tfos_error *err)
{
    size_t slots = (size_t)column->child_count * TFOS__ROW_WORD;
    size_t bits = tfos__unsafe_row_null_bits_size(column->child_count);
    column->fixed_size = bits + slots;
    column->null_row = tfos__alloc(column->fixed_size, 1);
    if (!column->null_row)
        return tfos__no_memory(err, "spark", "a row of nulls");
    memset(column->null_row, 0xFF, bits);
    for (int64_t i = 0; i < column->child_count; i++) {
        struct tfos__unsafe_row_column *child = &column->children[i];
        child->null_word = (size_t)i / 64 * TFOS__ROW_WORD;
        child->null_bit = (uint32_t)(i % 64);
        child->slot = bits + (size_t)i * TFOS__ROW_WORD;
    }
    return TFOS_OK;
}

static enum tfos_status init_column(struct tfos__unsafe_row_column *column,
                                    const struct ArrowSchema *schema, const char *parent, int depth,
                                    struct tfos_error *err)
{
    const char *name = schema->name ? schema->name : "";
    column->path = depth > 1 ? tfos__format("%s.%s", parent, name) : tfos__strdup(name);
    if (!column->path)
        return tfos__no_memory(err, "spark", "a schema");
    if (depth > TFOS__ARROW_DEPTH)
        return tfos__fail(err, TFOS_UNSUPPORTED, "spark: column %s: nested deeper than %d levels",
                          column->path, TFOS__ARROW_DEPTH);
    TFOS__TRY(read_type(column, schema, err));
    column->children = tfos__alloc((size_t)schema->n_children, sizeof(*column->children));
    if (!column->children)
        return tfos__no_memory(err, "spark", "the columns of a batch");
    column->child_count = schema->n_children;
    for (int64_t i = 0; i < column->child_count; i++)
        TFOS__TRY(
            init_column(&column->children[i], schema->children[i], column->path, depth + 1, err));
    return tfos__arrow_is_struct(schema) ? make_null_row(column, err) : TFOS_OK;
}

static void bind(struct tfos__unsafe_row_column *column, struct tfos__arrow_builder *values)
{
    column->values = values;
    for (int64_t i = 0; i < column->child_count; i++)
        bind(&column->children[i], &values->children[i]);
}

enum tfos_status tfos__unsafe_row_column_init(struct tfos__unsafe_row_column *column,
                                              const struct ArrowSchema *schema,
                                              struct tfos__arrow_builder *values,
                                              struct tfos_error *err)
{
    TFOS__TRY(init_column(column, schema, "", 0, err));
    TFOS__TRY(tfos__arrow_builder_init(values, schema, err));
    bind(column, values);
    return TFOS_OK;
}

void tfos__unsafe_row_column_clear(struct tfos__unsafe_row_column *column)
{
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__unsafe_row_column_clear(&column->children[i]);
    tfos__free(column->children);
    tfos__free(column->null_row);
    tfos__free(column->path);
}

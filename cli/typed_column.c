// SPDX-License-Identifier: Apache-2.0
#include "typed_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tfos__arrow_type column_type(enum column_kind kind)
{
    switch (kind) {
    case COLUMN_INTEGER:
        return tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
    case COLUMN_REAL:
        return tfos__arrow_type_of(TFOS__ARROW_FLOAT, 32, 0);
    case COLUMN_TEXT:
        return tfos__arrow_type_of(TFOS__ARROW_TEXT, 32, 0);
    case COLUMN_BYTES:
        return tfos__arrow_type_of(TFOS__ARROW_BINARY, 32, 0);
    default:
        return tfos__arrow_type_of(TFOS__ARROW_NULL, 0, 0);
    }
}

// Only memory can be lacking for what is asked of a column here.
static void require(enum tfos_status status)
{
    if (status < 0)
        allocate(SIZE_MAX, 1);
}

struct column *columns_add(struct columns *columns, const char *name, size_t name_size,
                           enum column_kind kind, int depth)
{
    size_t count = columns->count;
    // Room doubles whenever the count is a power of two.
    if ((count & (count - 1)) == 0) {
        struct column *items = allocate(count > 0 ? 2 * count : 1, sizeof *items);
        if (count > 0)
            memcpy(items, columns->items, count * sizeof *items);
        free(columns->items);
        columns->items = items;
    }
    struct column *column = &columns->items[columns->count++];
    *column = (struct column){.kind = kind, .depth = depth};
    column->name = allocate(name_size + 1, 1);
    memcpy(column->name, name, name_size);
    return column;
}

struct column *columns_find(const struct columns *columns, const char *name)
{
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->items[i].name, name) == 0)
            return &columns->items[i];
    return NULL;
}

static void describe_level(const struct column *column, int level, struct ArrowSchema *schema)
{
    bool is_list = level < column->depth;
    struct tfos__arrow_type type =
        is_list ? tfos__arrow_type_of(TFOS__ARROW_LIST, 32, 0) : column_type(column->kind);
    require(
        tfos__arrow_schema_init(schema, type, level == 0 ? column->name : "item", is_list, NULL));
    schema->flags = level == 0 ? ARROW_FLAG_NULLABLE : 0;
    if (is_list)
        describe_level(column, level + 1, schema->children[0]);
}

const struct ArrowSchema *columns_describe(struct columns *columns)
{
    require(tfos__arrow_schema_init_struct(&columns->schema, (int64_t)columns->count, NULL));
    for (size_t i = 0; i < columns->count; i++)
        describe_level(&columns->items[i], 0, columns->schema.children[i]);
    require(tfos__arrow_builder_init(&columns->rows, &columns->schema, NULL));
    for (size_t i = 0; i < columns->count; i++)
        columns->items[i].values = &columns->rows.children[i];
    return &columns->schema;
}

static struct tfos__arrow_builder *level_of(const struct column *column, int level)
{
    struct tfos__arrow_builder *values = column->values;
    while (level-- > 0)
        values = values->children;
    return values;
}

void column_add_null(struct column *column)
{
    require(tfos__arrow_builder_append_null(column->values, NULL));
}

void column_end_list(struct column *column, int level)
{
    require(tfos__arrow_builder_end_list(level_of(column, level), NULL));
}

static void add_number(struct column *column, const void *number, size_t size)
{
    struct tfos__arrow_builder *values = level_of(column, column->depth);
    require(tfos__arrow_builder_reserve(values, 1, NULL));
    memcpy(tfos__arrow_builder_end(values), number, size);
    values->length++;
}

void column_add_integer(struct column *column, int64_t value)
{
    add_number(column, &value, sizeof value);
}

void column_add_real(struct column *column, float value)
{
    add_number(column, &value, sizeof value);
}

bool column_add_bytes(struct column *column, const void *data, size_t size)
{
    enum tfos_status status =
        tfos__arrow_builder_append_bytes(level_of(column, column->depth), data, size, NULL);
    require(status);
    return status == TFOS_OK;
}

const struct ArrowArray *columns_batch(struct columns *columns)
{
    require(tfos__arrow_builder_show(&columns->rows, NULL));
    return &columns->rows.array;
}

static bool add_schema_column(struct columns *columns, const struct ArrowSchema *schema)
{
    struct tfos__arrow_type type;
    const struct ArrowSchema *value = schema;
    enum column_kind kind = COLUMN_NOTHING;
    enum tfos_status status = tfos__arrow_type_read(&type, value, NULL);
    int depth = 0;
    for (; status == TFOS_OK && type.kind == TFOS__ARROW_LIST && depth < COLUMN_DEPTH; depth++) {
        value = value->children[0];
        status = tfos__arrow_type_read(&type, value, NULL);
    }
    for (enum column_kind i = COLUMN_INTEGER; status == TFOS_OK && i <= COLUMN_BYTES; i++) {
        struct tfos__arrow_type known = column_type(i);
        if (tfos__arrow_type_equals(&type, &known))
            kind = i;
    }
    if (kind == COLUMN_NOTHING) {
        fprintf(stderr, "tfos: column %s: there is no type for it here\n", schema->name);
        return false;
    }
    columns_add(columns, schema->name, strlen(schema->name), kind, depth);
    return true;
}

bool columns_of_schema(struct columns *columns, const struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (!add_schema_column(columns, schema->children[i]))
            return false;
    return true;
}

void columns_clear(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        free(columns->items[i].name);
    free(columns->items);
    tfos__arrow_builder_clear(&columns->rows);
    tfos__arrow_schema_release(&columns->schema);
    *columns = (struct columns){0};
}

// SPDX-License-Identifier: Apache-2.0
#include "typed_column.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"n", "l", "f", "u", "z"};

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
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

static void describe_level(struct column *column, int level)
{
    struct column_level *here = &column->levels[level];
    bool is_list = level < column->depth;
    here->schema = (struct ArrowSchema){
        .format = is_list ? "+l" : formats[column->kind],
        .name = level == 0 ? column->name : "item",
        .flags = level == 0 ? ARROW_FLAG_NULLABLE : 0,
        .n_children = is_list,
        .children = is_list ? &here->schema_child : NULL,
        .release = release_schema,
    };
    here->schema_child = is_list ? &column->levels[level + 1].schema : NULL;
}

const struct ArrowSchema *columns_schema(struct columns *columns)
{
    free(columns->schema_children);
    columns->schema_children = allocate(columns->count, sizeof *columns->schema_children);
    for (size_t i = 0; i < columns->count; i++) {
        struct column *column = &columns->items[i];
        for (int level = column->depth; level >= 0; level--)
            describe_level(column, level);
        columns->schema_children[i] = &column->levels[0].schema;
    }
    columns->schema = (struct ArrowSchema){.format = "+s",
                                           .name = "",
                                           .n_children = (int64_t)columns->count,
                                           .children = columns->schema_children,
                                           .release = release_schema};
    return &columns->schema;
}

static void add_validity(struct column_level *level, bool is_valid)
{
    if (level->length % 8 == 0)
        bytes_add_byte(&level->validity, 0);
    if (is_valid)
        level->validity.data[level->length / 8] |= (char)(1 << level->length % 8);
    level->null_count += !is_valid;
    level->length++;
}

static void add_offset(struct column_level *level, int64_t end)
{
    int32_t offset = (int32_t)end, zero = 0;
    if (level->offsets.size == 0)
        bytes_add(&level->offsets, &zero, sizeof zero);
    bytes_add(&level->offsets, &offset, sizeof offset);
}

// Ends a value of any level but that of numbers.
static void end_value(struct column *column, int level)
{
    struct column_level *here = &column->levels[level];
    if (level < column->depth)
        add_offset(here, column->levels[level + 1].length);
    else if (column->kind == COLUMN_TEXT || column->kind == COLUMN_BYTES)
        add_offset(here, (int64_t)column->values.size);
}

void column_add_null(struct column *column, int level)
{
    static const char zeros[sizeof(int64_t)];
    if (level == column->depth && column->kind == COLUMN_INTEGER)
        bytes_add(&column->values, zeros, sizeof(int64_t));
    if (level == column->depth && column->kind == COLUMN_REAL)
        bytes_add(&column->values, zeros, sizeof(float));
    end_value(column, level);
    add_validity(&column->levels[level], false);
}

void column_end_list(struct column *column, int level)
{
    end_value(column, level);
    add_validity(&column->levels[level], true);
}

void column_add_integer(struct column *column, int64_t value)
{
    bytes_add(&column->values, &value, sizeof value);
    add_validity(&column->levels[column->depth], true);
}

void column_add_real(struct column *column, float value)
{
    bytes_add(&column->values, &value, sizeof value);
    add_validity(&column->levels[column->depth], true);
}

bool column_add_bytes(struct column *column, const void *data, size_t size)
{
    if (size > INT32_MAX - column->values.size)
        return false;
    bytes_add(&column->values, data, size);
    end_value(column, column->depth);
    add_validity(&column->levels[column->depth], true);
    return true;
}

size_t columns_size(const struct columns *columns)
{
    size_t size = 0;
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->items[i];
        size += column->values.size;
        for (int level = 0; level <= column->depth; level++)
            size += column->levels[level].offsets.size;
    }
    return size;
}

static void make_array(struct column *column, int level)
{
    static const int32_t no_offsets[1];
    struct column_level *here = &column->levels[level];
    bool is_list = level < column->depth;
    bool is_text = column->kind == COLUMN_TEXT || column->kind == COLUMN_BYTES;
    const void *offsets = here->offsets.size > 0 ? (const void *)here->offsets.data : no_offsets;
    here->buffers[0] = here->null_count > 0 ? here->validity.data : NULL;
    here->buffers[1] = is_list || is_text ? offsets : (const void *)column->values.data;
    here->buffers[2] = column->values.data;
    here->array_child = is_list ? &column->levels[level + 1].array : NULL;
    here->array = (struct ArrowArray){
        .length = here->length,
        .null_count = here->null_count,
        .n_buffers = !is_list && is_text ? 3 : 2,
        .n_children = is_list,
        .buffers = here->buffers,
        .children = is_list ? &here->array_child : NULL,
        .release = release_array,
    };
}

const struct ArrowArray *columns_batch(struct columns *columns)
{
    free(columns->array_children);
    columns->array_children = allocate(columns->count, sizeof *columns->array_children);
    for (size_t i = 0; i < columns->count; i++) {
        struct column *column = &columns->items[i];
        for (int level = column->depth; level >= 0; level--)
            make_array(column, level);
        columns->array_children[i] = &column->levels[0].array;
    }
    columns->array = (struct ArrowArray){.length = columns->row_count,
                                         .n_buffers = 1,
                                         .n_children = (int64_t)columns->count,
                                         .buffers = columns->buffers,
                                         .children = columns->array_children,
                                         .release = release_array};
    return &columns->array;
}

void columns_empty(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        struct column *column = &columns->items[i];
        column->values.size = 0;
        for (int level = 0; level <= column->depth; level++) {
            struct column_level *here = &column->levels[level];
            here->validity.size = here->offsets.size = 0;
            here->length = here->null_count = 0;
        }
    }
    columns->row_count = 0;
}

void columns_clear(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        struct column *column = &columns->items[i];
        free(column->name);
        free(column->values.data);
        for (int level = 0; level <= COLUMN_DEPTH; level++) {
            free(column->levels[level].validity.data);
            free(column->levels[level].offsets.data);
        }
    }
    free(columns->items);
    free(columns->schema_children);
    free(columns->array_children);
    *columns = (struct columns){0};
}

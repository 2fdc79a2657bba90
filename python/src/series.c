// SPDX-License-Identifier: Apache-2.0
// Growable columns. Invariant: element_count and length count only what was committed, and the
// offsets up to them are right; everything behind is scratch.
#include "series.h"

#include <Python.h>
#include <assert.h>
#include <string.h>

bool tfos__py_block_grow(struct tfos__py_block *block, size_t size)
{
    size_t capacity = block->capacity < 256 ? 256 : block->capacity;
    unsigned char *data = NULL;

    if (size <= block->capacity)
        return true;
    while (capacity < size)
        capacity *= 2;
    data = PyMem_Realloc(block->data, capacity);
    if (data == NULL)
        return false;
    block->data = data;
    block->capacity = capacity;
    return true;
}

static bool write_end(struct tfos__py_block *block, int64_t index, int64_t end)
{
    if (!tfos__py_block_grow(block, (size_t)(index + 1) * sizeof(end)))
        return false;
    memcpy(block->data + (size_t)index * sizeof(end), &end, sizeof(end));
    return true;
}

static int64_t read_end(const struct tfos__py_block *block, int64_t index)
{
    int64_t end = 0;

    memcpy(&end, block->data + (size_t)index * sizeof(end), sizeof(end));
    return end;
}

static bool has_value_ends(const struct tfos__py_series *series)
{
    return tfos__py_value_type_is_sequence(&series->type) && !series->type.is_fixed;
}

bool tfos__py_series_init(struct tfos__py_series *series, const struct tfos__py_value_type *type)
{
    series->type = *type;
    series->width = tfos__py_value_type_width(type);
    series->length = 0;
    series->null_count = 0;
    series->element_count = 0;
    return write_end(&series->value_ends, 0, 0) && write_end(&series->element_ends, 0, 0);
}

bool tfos__py_series_adopt(struct tfos__py_series *series, const struct tfos__py_value_type *type)
{
    int64_t length = series->length;
    bool was_null = series->type.kind == TFOS__VALUE_NULL;

    assert(was_null || series->element_count == 0);
    if (!was_null) {
        series->type = *type;
        series->width = tfos__py_value_type_width(type);
        return true;
    }
    if (!tfos__py_series_init(series, type))
        return false;
    while (series->length < length) {
        if (!tfos__py_series_commit_null(series))
            return false;
    }
    return true;
}

bool tfos__py_series_vary(struct tfos__py_series *series)
{
    int64_t count = tfos__py_value_type_item_count(&series->type);

    assert(series->type.is_fixed && series->type.dimension_count == 1);
    for (int64_t i = 1; i <= series->length; i++) {
        if (!write_end(&series->value_ends, i, i * count))
            return false;
    }
    series->type.is_fixed = false;
    return true;
}

void *tfos__py_series_reserve(struct tfos__py_series *series, int64_t count)
{
    size_t used = (size_t)series->element_count * (size_t)series->width;

    assert(series->width > 0);
    if (!tfos__py_block_grow(&series->elements, used + (size_t)count * (size_t)series->width + 1))
        return NULL;
    return series->elements.data + used;
}

bool tfos__py_series_write(struct tfos__py_series *series, int64_t index, const void *data, size_t size)
{
    int64_t place = series->element_count + index;
    size_t start = (size_t)read_end(&series->element_ends, place);

    assert(series->width == 0);
    if (!tfos__py_block_grow(&series->elements, start + size) ||
        !write_end(&series->element_ends, place + 1, (int64_t)(start + size)))
        return false;
    if (size > 0)
        memcpy(series->elements.data + start, data, size);
    return true;
}

static bool mark(struct tfos__py_series *series, bool is_valid)
{
    size_t index = (size_t)series->length;
    unsigned char bit = (unsigned char)(1u << (index % 8));

    if (!tfos__py_block_grow(&series->validity, index / 8 + 1))
        return false;
    if (series->null_count == 0) // the first None: everything before it is valid
        memset(series->validity.data, 0xff, index / 8 + 1);
    if (is_valid)
        series->validity.data[index / 8] |= bit;
    else
        series->validity.data[index / 8] &= (unsigned char)~bit;
    return true;
}

bool tfos__py_series_commit(struct tfos__py_series *series, int64_t count)
{
    if (series->null_count > 0 && !mark(series, true))
        return false;
    if (has_value_ends(series) &&
        !write_end(&series->value_ends, series->length + 1, series->element_count + count))
        return false;
    series->element_count += count;
    series->length++;
    return true;
}

bool tfos__py_series_commit_null(struct tfos__py_series *series)
{
    int64_t count = tfos__py_value_type_item_count(&series->type);

    if (series->width > 0) {
        void *room = tfos__py_series_reserve(series, count);
        if (room == NULL)
            return false;
        memset(room, 0, (size_t)count * (size_t)series->width);
    } else {
        for (int64_t i = 0; i < count; i++) {
            if (!tfos__py_series_write(series, i, NULL, 0))
                return false;
        }
    }
    if (!mark(series, false))
        return false;
    series->null_count++;
    // The value's own bit is written; commit() would set it again.
    if (has_value_ends(series) &&
        !write_end(&series->value_ends, series->length + 1, series->element_count + count)) {
        series->null_count--;
        return false;
    }
    series->element_count += count;
    series->length++;
    return true;
}

void tfos__py_series_truncate(struct tfos__py_series *series, int64_t length)
{
    while (series->length > length) {
        size_t index = (size_t)--series->length;
        if (series->null_count > 0 && (series->validity.data[index / 8] >> (index % 8) & 1) == 0)
            series->null_count--;
    }
    if (has_value_ends(series))
        series->element_count = read_end(&series->value_ends, length);
    else
        series->element_count = length * tfos__py_value_type_item_count(&series->type);
}

static size_t element_size(const struct tfos__py_series *series)
{
    if (series->width > 0)
        return (size_t)series->element_count * (size_t)series->width;
    return (size_t)read_end(&series->element_ends, series->element_count);
}

size_t tfos__py_series_size(const struct tfos__py_series *series)
{
    size_t size = element_size(series);

    if (series->width == 0)
        size += (size_t)series->element_count * sizeof(int64_t);
    if (has_value_ends(series))
        size += (size_t)series->length * sizeof(int64_t);
    return size;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/// Fills an array that holds the elements, and the buffers behind it; `null_count` concerns values.
static void show_elements(const struct tfos__py_series *series, int64_t null_count,
                          const void *buffers[3], struct ArrowArray *array)
{
    static const unsigned char nothing[8];
    const void *elements = series->elements.data != NULL ? series->elements.data : nothing;

    buffers[0] = null_count > 0 ? series->validity.data : NULL;
    buffers[1] = series->width > 0 ? elements : series->element_ends.data;
    buffers[2] = elements;
    *array = (struct ArrowArray){
        .length = series->element_count,
        .null_count = null_count,
        .n_buffers = series->width > 0 ? 2 : 3,
        .buffers = buffers,
        .release = release_array,
    };
}

struct tfos__py_series_view *tfos__py_series_show(struct tfos__py_series *series, const char *name)
{
    struct tfos__py_series_view *view = &series->view;
    char text[TFOS__VALUE_TEXT_SIZE];

    tfos__py_value_type_write(&series->type, text);
    tfos__py_metadata_write("tfos.value", text, view->metadata);
    tfos__py_value_type_format(&series->type, view->format);
    view->schema = (struct ArrowSchema){
        .format = view->format,
        .name = name,
        .metadata = view->metadata,
        .flags = ARROW_FLAG_NULLABLE,
        .release = release_schema,
    };
    if (!tfos__py_value_type_is_sequence(&series->type)) {
        show_elements(series, series->null_count, view->buffers, &view->array);
        return view;
    }
    tfos__py_value_type_item_format(&series->type, view->item_format);
    view->item_schema = (struct ArrowSchema){
        .format = view->item_format,
        .name = "item",
        .release = release_schema,
    };
    view->schema_child = &view->item_schema;
    view->schema.n_children = 1;
    view->schema.children = &view->schema_child;
    show_elements(series, 0, view->item_buffers, &view->item_array);
    view->array_child = &view->item_array;
    view->buffers[0] = series->null_count > 0 ? series->validity.data : NULL;
    view->buffers[1] = series->value_ends.data;
    view->array = (struct ArrowArray){
        .length = series->length,
        .null_count = series->null_count,
        .n_buffers = series->type.is_fixed ? 1 : 2,
        .buffers = view->buffers,
        .n_children = 1,
        .children = &view->array_child,
        .release = release_array,
    };
    return view;
}

void tfos__py_series_clear(struct tfos__py_series *series)
{
    PyMem_Free(series->validity.data);
    PyMem_Free(series->value_ends.data);
    PyMem_Free(series->element_ends.data);
    PyMem_Free(series->elements.data);
    memset(series, 0, sizeof(*series));
}

static char *write_counted(char *to, const void *data, size_t size)
{
    int32_t count = (int32_t)size;

    memcpy(to, &count, sizeof(count));
    memcpy(to + sizeof(count), data, size);
    return to + sizeof(count) + size;
}

char *tfos__py_metadata_begin(int32_t pair_count, char *metadata)
{
    memcpy(metadata, &pair_count, sizeof(pair_count));
    return metadata + sizeof(pair_count);
}

char *tfos__py_metadata_add(const char *key, const void *value, size_t size, char *place)
{
    return write_counted(write_counted(place, key, strlen(key)), value, size);
}

void tfos__py_metadata_write(const char *key, const char *value, char *metadata)
{
    tfos__py_metadata_add(key, value, strlen(value), tfos__py_metadata_begin(1, metadata));
}

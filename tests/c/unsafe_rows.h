// SPDX-License-Identifier: Apache-2.0
/// Rows in UnsafeRow format made by hand, and what a batch made of them shows.
#ifndef TFOS_TEST_UNSAFE_ROWS_H
#define TFOS_TEST_UNSAFE_ROWS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/unsafe_row.h>

#include "harness.h"

/// A row or an array under construction. Its own memory, given up when it is put into another.
struct image {
    uint8_t *data;
    size_t size;
    size_t nulls; ///< where the null bits begin
    size_t slots;
    size_t width; ///< of a slot
};

static inline size_t padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

static inline struct image make_row(int64_t fields)
{
    struct image row = {.slots = (size_t)(fields + 63) / 64 * 8, .width = 8};

    row.size = row.slots + (size_t)fields * 8;
    row.data = calloc(row.size + 1, 1);
    return row;
}

static inline struct image make_array(int64_t count, size_t width)
{
    struct image array = {.nulls = 8, .slots = 8 + (size_t)(count + 63) / 64 * 8, .width = width};

    array.size = padded(array.slots + (size_t)count * width);
    array.data = calloc(array.size + 1, 1);
    memcpy(array.data, &count, sizeof(count));
    return array;
}

static inline void set_value(struct image *image, int64_t index, const void *value, size_t size)
{
    memcpy(image->data + image->slots + (size_t)index * image->width, value, size);
}

#define SET(image, index, type, value) set_value((image), (index), &(type){value}, sizeof(type))

static inline void set_null(struct image *image, int64_t index)
{
    image->data[image->nulls + (size_t)index / 8] |= (uint8_t)(1 << index % 8);
}

/// Appends `bytes` to the variable part and points slot `index` there.
static inline void put_bytes(struct image *image, int64_t index, const void *bytes, size_t size)
{
    uint64_t word = (uint64_t)image->size << 32 | size;

    image->data = realloc(image->data, image->size + padded(size) + 1);
    memset(image->data + image->size, 0, padded(size));
    if (size > 0)
        memcpy(image->data + image->size, bytes, size);
    image->size += padded(size);
    set_value(image, index, &word, sizeof(word));
}

static inline void put_text(struct image *image, int64_t index, const char *text)
{
    put_bytes(image, index, text, strlen(text));
}

/// The same for a struct, an array or a map, which is freed.
static inline void put_image(struct image *image, int64_t index, struct image part)
{
    put_bytes(image, index, part.data, part.size);
    free(part.data);
}

static inline struct image make_map(struct image keys, struct image values)
{
    struct image map = {.size = 8 + keys.size + values.size};
    uint64_t size = keys.size;

    map.data = malloc(map.size);
    memcpy(map.data, &size, sizeof(size));
    memcpy(map.data + 8, keys.data, keys.size);
    memcpy(map.data + 8 + keys.size, values.data, values.size);
    free(keys.data);
    free(values.data);
    return map;
}

/// Rows one behind the other, as append() takes them.
struct rows {
    uint8_t *data;
    size_t size;
    int64_t count;
};

/// Adds a row, which is freed.
static inline void add_row(struct rows *rows, struct image row)
{
    uint64_t head = row.size;

    rows->data = realloc(rows->data, rows->size + 8 + row.size);
    memcpy(rows->data + rows->size, &head, sizeof(head));
    memcpy(rows->data + rows->size + 8, row.data, row.size);
    rows->size += 8 + row.size;
    rows->count++;
    free(row.data);
}

/// Schemas without a release function, in memory of the function that they are written in.
#define LEAF(field_name, field_format)                                                             \
    (&(struct ArrowSchema){                                                                        \
        .format = (field_format), .name = (field_name), .flags = ARROW_FLAG_NULLABLE})
#define NEST(field_name, field_format, ...)                                                        \
    (&(struct ArrowSchema){.format = (field_format),                                               \
                           .name = (field_name),                                                   \
                           .flags = ARROW_FLAG_NULLABLE,                                           \
                           .n_children =                                                           \
                               sizeof((struct ArrowSchema *[]){__VA_ARGS__}) / sizeof(void *),     \
                           .children = (struct ArrowSchema *[]){__VA_ARGS__}})
#define BATCH(...) NEST("", "+s", __VA_ARGS__)
#define MAP(field_name, key, value) NEST(field_name, "+m", NEST("entries", "+s", key, value))

/// A batch with what it shows.
struct shown {
    struct tfos_row_batch *batch;
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    struct tfos_error err;
};

static inline int64_t rows_of(struct tfos_row_batch *batch)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    tfos_row_batch_show(batch, &schema, &array);
    return array->length;
}

static inline void open_batch(struct shown *shown, const struct ArrowSchema *schema)
{
    struct tfos_error err = {0};

    assert_done(tfos_row_batch_open(schema, &shown->batch, &err));
}

/// Appends and frees `rows`. What a sanitizer guards ends where they end.
static inline enum tfos_status append_rows(struct shown *shown, struct rows *rows)
{
    enum tfos_status status = tfos_row_batch_append(shown->batch, rows->data, (int64_t)rows->size,
                                                    rows->count, &shown->err);

    free(rows->data);
    *rows = (struct rows){0};
    tfos_row_batch_show(shown->batch, &shown->schema, &shown->array);
    return status;
}

static inline void append_good(struct shown *shown, struct rows *rows)
{
    enum tfos_status status = append_rows(shown, rows);

    if (status != TFOS_OK)
        fail_msg("append: %s: %s", tfos_status_name(status), shown->err.message);
}

/// Fails the case unless those values of `column` are null that are 'n' in `pattern`.
static inline void assert_nulls(const struct ArrowArray *column, const char *pattern)
{
    const uint8_t *bits = column->buffers[0];
    int64_t null_count = 0;

    assert_int_equal(column->length, strlen(pattern));
    for (int64_t i = 0; i < column->length; i++) {
        bool is_valid = !bits || bits[i / 8] >> i % 8 & 1;
        null_count += pattern[i] == 'n';
        assert_int_equal(is_valid, pattern[i] != 'n');
    }
    assert_int_equal(column->null_count, null_count);
    assert_int_equal(!bits, null_count == 0);
}

static inline void assert_values(const struct ArrowArray *column, const void *values, size_t size)
{
    assert_memory_equal(column->buffers[1], values, size);
}

#define ASSERT_VALUES(column, type, ...)                                                           \
    assert_values((column), (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}))

/// Offsets of 32 bits.
#define ASSERT_OFFSETS(column, ...) ASSERT_VALUES(column, int32_t, __VA_ARGS__)

static inline void assert_bytes(const struct ArrowArray *column, const char *text)
{
    assert_memory_equal(column->buffers[2], text, strlen(text));
}

#endif

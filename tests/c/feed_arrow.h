// SPDX-License-Identifier: Apache-2.0
/// Random Arrow arrays of any supported format, with offsets into larger buffers, and their
/// comparison value by value.
#ifndef TFOS_TEST_FEED_ARROW_H
#define TFOS_TEST_FEED_ARROW_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/arrow.h>

#include "harness.h"

#define TEST_CHILDREN 4

/// A format with its children, as a tree.
struct shape {
    const char *format;
    const struct shape *children;
    int child_count;
};

static uint64_t random_state = 1;

static inline uint64_t random_below(uint64_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit ? (random_state >> 33) % limit : 0;
}

static inline int64_t test_width(const char *format)
{
    static const struct {
        const char *formats;
        int64_t width;
    } widths[] = {{"b", 1}, {"cC", 8}, {"sSe", 16}, {"iIf", 32}, {"lLg", 64}};

    if (format[0] == 'w')
        return 8 * strtol(format + 2, NULL, 10);
    if (format[0] == 'd') {
        const char *bits = strchr(strchr(format, ',') + 1, ',');
        return bits ? strtol(bits + 1, NULL, 10) : 128;
    }
    if (format[0] == 't')
        return strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 ||
                       strcmp(format, "ttm") == 0 || strcmp(format, "tiM") == 0
                   ? 32
                   : 64;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (strchr(widths[i].formats, format[0]))
            return widths[i].width;
    return 0;
}

static inline void release_test_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    free(schema->private_data);
    schema->release = NULL;
}

static inline void make_schema(const struct shape *shape, const char *name,
                               struct ArrowSchema *schema)
{
    char *copy = malloc(strlen(name) + 1);

    strcpy(copy, name);
    *schema = (struct ArrowSchema){.format = shape->format,
                                   .name = copy,
                                   .flags = (int64_t)random_below(8),
                                   .n_children = shape->child_count,
                                   .release = release_test_schema,
                                   .private_data = copy};
    schema->children = malloc((size_t)(shape->child_count + 1) * sizeof(void *));
    for (int i = 0; i < shape->child_count; i++) {
        char child_name[64];
        snprintf(child_name, sizeof(child_name), "%.20s.%d", name, i);
        schema->children[i] = malloc(sizeof(struct ArrowSchema));
        make_schema(&shape->children[i], child_name, schema->children[i]);
    }
}

static inline void release_test_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)(uintptr_t)array->buffers[i]);
    free(array->children);
    free(array->buffers);
    array->release = NULL;
}

static inline void *random_bytes(int64_t size)
{
    uint8_t *bytes = malloc((size_t)size + 1);

    for (int64_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_below(256);
    return bytes;
}

/// Rising offsets for `count` values, not from 0 on; `*last` is the last of them.
static inline void *random_offsets(int64_t count, bool is_wide, int64_t *last)
{
    int64_t *wide = malloc((size_t)(count + 1) * sizeof(*wide));
    int32_t *narrow = malloc((size_t)(count + 1) * sizeof(*narrow));
    int64_t offset = (int64_t)random_below(5);

    for (int64_t i = 0; i <= count; i++) {
        wide[i] = offset;
        narrow[i] = (int32_t)offset;
        *last = offset;
        offset += (int64_t)random_below(4);
    }
    free(is_wide ? (void *)narrow : (void *)wide);
    return is_wide ? (void *)wide : (void *)narrow;
}

/// An array of `length` values behind a random offset, in buffers that go beyond it.
static inline void make_array(const struct shape *shape, int64_t length, struct ArrowArray *array)
{
    const char *format = shape->format;
    int64_t offset = random_below(2) ? (int64_t)random_below(20) : 0;
    int64_t count = offset + length + (int64_t)random_below(3);
    int64_t child_count = count, last = 0;
    bool has_nulls = random_below(2);

    *array = (struct ArrowArray){.length = length,
                                 .null_count = has_nulls ? -1 : 0,
                                 .offset = offset,
                                 .n_buffers = 1,
                                 .n_children = shape->child_count,
                                 .release = release_test_array};
    array->buffers = calloc(3, sizeof(void *));
    array->children = malloc((size_t)(shape->child_count + 1) * sizeof(void *));
    if (has_nulls || random_below(4) == 0)
        array->buffers[0] = random_bytes((count + 7) / 8);
    if (strchr("uzUZ", format[0]) || (format[0] == '+' && strchr("lLm", format[1]))) {
        array->buffers[1] =
            random_offsets(count, strchr("UZ", format[0]) || format[1] == 'L', &last);
        array->n_buffers = 2;
        child_count = last;
    } else if (strncmp(format, "+w:", 3) == 0) {
        child_count = count * strtol(format + 3, NULL, 10);
    } else if (format[0] != '+') {
        array->buffers[1] = random_bytes((count * test_width(format) + 7) / 8);
        array->n_buffers = 2;
    }
    if (strchr("uzUZ", format[0])) {
        array->buffers[2] = random_bytes(last);
        array->n_buffers = 3;
    }
    for (int i = 0; i < shape->child_count; i++) {
        array->children[i] = malloc(sizeof(struct ArrowArray));
        make_array(&shape->children[i], child_count, array->children[i]);
    }
}

static inline bool is_null(const struct ArrowArray *array, int64_t index)
{
    const uint8_t *bits = array->buffers[0];

    index += array->offset;
    return array->null_count != 0 && bits && !(bits[index / 8] >> (index % 8) & 1);
}

static inline int64_t test_offset(const struct ArrowArray *array, bool is_wide, int64_t index)
{
    index += array->offset;
    return is_wide ? ((const int64_t *)array->buffers[1])[index]
                   : ((const int32_t *)array->buffers[1])[index];
}

/// Fails the case unless value `i` of `a` equals value `j` of `b`.
static inline void compare_value(const struct ArrowSchema *schema, const struct ArrowArray *a,
                                 int64_t i, const struct ArrowArray *b, int64_t j)
{
    const char *format = schema->format;
    bool is_wide = strchr("UZ", format[0]) || format[1] == 'L';

    assert_int_equal(is_null(a, i), is_null(b, j));
    if (is_null(a, i))
        return;
    if (strcmp(format, "+s") == 0) {
        for (int64_t child = 0; child < schema->n_children; child++)
            compare_value(schema->children[child], a->children[child], a->offset + i,
                          b->children[child], b->offset + j);
        return;
    }
    int64_t first_a = 0, first_b = 0, count = 1;
    if (strncmp(format, "+w:", 3) == 0) {
        count = strtol(format + 3, NULL, 10);
        first_a = (a->offset + i) * count;
        first_b = (b->offset + j) * count;
    } else if (strchr("uzUZ+", format[0])) {
        first_a = test_offset(a, is_wide, i);
        first_b = test_offset(b, is_wide, j);
        count = test_offset(a, is_wide, i + 1) - first_a;
        assert_int_equal(test_offset(b, is_wide, j + 1) - first_b, count);
    }
    if (format[0] == '+') {
        for (int64_t k = 0; k < count; k++)
            compare_value(schema->children[0], a->children[0], first_a + k, b->children[0],
                          first_b + k);
    } else if (strchr("uzUZ", format[0])) {
        assert_memory_equal((const char *)a->buffers[2] + first_a,
                            (const char *)b->buffers[2] + first_b, (size_t)count);
    } else if (format[0] == 'b') {
        const uint8_t *bits_a = a->buffers[1], *bits_b = b->buffers[1];
        i += a->offset;
        j += b->offset;
        assert_int_equal(bits_a[i / 8] >> (i % 8) & 1, bits_b[j / 8] >> (j % 8) & 1);
    } else {
        size_t size = (size_t)test_width(format) / 8;
        assert_memory_equal((const char *)a->buffers[1] + (size_t)(a->offset + i) * size,
                            (const char *)b->buffers[1] + (size_t)(b->offset + j) * size, size);
    }
}

static inline void compare_schema(const struct ArrowSchema *a, const struct ArrowSchema *b)
{
    assert_string_equal(a->format, b->format);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->n_children, b->n_children);
    assert_int_equal(!a->metadata, !b->metadata);
    for (int64_t i = 0; i < a->n_children; i++)
        compare_schema(a->children[i], b->children[i]);
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// Protocol buffers written by hand, and schemas to read them with.
#ifndef TFOS_TEST_RECORD_PROTO_H
#define TFOS_TEST_RECORD_PROTO_H

#include <stdlib.h>
#include <string.h>
#include <tfos/example.h>

#include "harness.h"

/// A message under construction; it fits.
struct proto {
    uint8_t data[1024];
    size_t size;
};

static inline void put_varint(struct proto *proto, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        proto->data[proto->size++] = (uint8_t)(value | 0x80);
    proto->data[proto->size++] = (uint8_t)value;
}

static inline void put_raw(struct proto *proto, const void *data, size_t size)
{
    assert_true(proto->size + size <= sizeof(proto->data));
    if (size > 0)
        memcpy(proto->data + proto->size, data, size);
    proto->size += size;
}

static inline void put_field(struct proto *proto, uint32_t field, const void *data, size_t size)
{
    put_varint(proto, field << 3 | 2);
    put_varint(proto, size);
    put_raw(proto, data, size);
}

static inline void put_message(struct proto *proto, uint32_t field, struct proto message)
{
    put_field(proto, field, message.data, message.size);
}

/// An Int64List, packed.
static inline struct proto int64_list(const int64_t *values, size_t count)
{
    struct proto packed = {0}, list = {0};
    for (size_t i = 0; i < count; i++)
        put_varint(&packed, (uint64_t)values[i]);
    put_message(&list, 1, packed);
    return list;
}

static inline struct proto float_list(const float *values, size_t count)
{
    struct proto list = {0};
    put_field(&list, 1, values, count * sizeof(*values));
    return list;
}

static inline struct proto bytes_list(const char *const *values, size_t count)
{
    struct proto list = {0};
    for (size_t i = 0; i < count; i++)
        put_field(&list, 1, values[i], strlen(values[i]));
    return list;
}

/// A message with one field.
static inline struct proto in_field(uint32_t field, struct proto message)
{
    struct proto outer = {0};
    put_message(&outer, field, message);
    return outer;
}

/// A map's entry.
static inline struct proto entry(const char *name, struct proto value)
{
    struct proto entry = {0};
    put_field(&entry, 1, name, strlen(name));
    put_message(&entry, 2, value);
    return entry;
}

#define INT64S(...)                                                                                \
    in_field(3, int64_list((const int64_t[]){__VA_ARGS__},                                         \
                           sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define FLOATS(...)                                                                                \
    in_field(2, float_list((const float[]){__VA_ARGS__},                                           \
                           sizeof((const float[]){__VA_ARGS__}) / sizeof(float)))
#define TEXTS(...)                                                                                 \
    in_field(1, bytes_list((const char *const[]){__VA_ARGS__},                                     \
                           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/// Adds a feature to an Example, as a Features message of its own.
static inline void put_feature(struct proto *example, const char *name, struct proto feature)
{
    put_message(example, 1, in_field(1, entry(name, feature)));
}

/// A column: "name:format", lists outermost first, as in "x:+l:f". With '!' at its end it holds no
/// nulls.
static inline void make_column(const char *text, struct ArrowSchema *schema)
{
    static char storage[64][64];
    static int used;
    char *copy = storage[used++ % 64], *part = strchr(strcpy(copy, text), ':');
    size_t size = strlen(copy);
    *schema = (struct ArrowSchema){.name = copy, .flags = ARROW_FLAG_NULLABLE};
    if (copy[size - 1] == '!') {
        copy[size - 1] = '\0';
        schema->flags = 0;
    }
    while (part) {
        *part++ = '\0';
        schema->format = part;
        bool is_list = part[0] == '+';
        part = is_list ? strchr(part + (part[1] == 'w' ? 3 : 0), ':') : NULL;
        if (!is_list)
            break;
        schema->n_children = 1;
        schema->children = malloc(sizeof(void *));
        schema->children[0] = calloc(1, sizeof(struct ArrowSchema));
        schema = schema->children[0];
        schema->name = "item";
        schema->flags = ARROW_FLAG_NULLABLE;
    }
}

static inline void clear_column(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        clear_column(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
}

/// A schema of such columns.
static inline struct ArrowSchema make_table(const char *const *columns, int64_t count)
{
    struct ArrowSchema schema = {.format = "+s", .name = "", .n_children = count};
    schema.children = malloc((size_t)(count + 1) * sizeof(void *));
    for (int64_t i = 0; i < count; i++) {
        schema.children[i] = malloc(sizeof(struct ArrowSchema));
        make_column(columns[i], schema.children[i]);
    }
    return schema;
}

#endif

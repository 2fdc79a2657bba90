// SPDX-License-Identifier: Apache-2.0
// A hash table with open addressing, at most half full. Before it the name is compared with the one
// that the last round had at the same place.
#include "record/name_index.h"

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define FIRST_CAPACITY 16

static uint32_t hash(struct tfos_view name)
{
    const uint8_t *bytes = name.data;
    uint32_t state = 2166136261u; // FNV-1a
    for (size_t i = 0; i < name.size; i++)
        state = (state ^ bytes[i]) * 16777619u;
    return state;
}

static bool is_name(const struct tfos__record_name_index *index, uint32_t number,
                    struct tfos_view name)
{
    struct tfos_view own = index->names[number].text;
    return own.size == name.size && (name.size == 0 || memcmp(own.data, name.data, name.size) == 0);
}

// The bucket where a name is or would be.
static uint32_t *find_bucket(const struct tfos__record_name_index *index, struct tfos_view name)
{
    uint32_t at = hash(name) % index->bucket_count;
    while (index->buckets[at] != TFOS__NAME_UNKNOWN && !is_name(index, index->buckets[at], name))
        at = (at + 1) % index->bucket_count;
    return &index->buckets[at];
}

// Twice as much room. On failure the index is as it was.
static enum tfos_status grow(struct tfos__record_name_index *index, struct tfos_error *err)
{
    uint32_t capacity = index->capacity > 0 ? 2 * index->capacity : FIRST_CAPACITY;
    struct tfos__record_name *names = tfos__realloc(index->names, capacity, sizeof(*names));
    if (names)
        index->names = names;
    uint32_t *order = tfos__realloc(index->order, 2 * (size_t)capacity, sizeof(*order));
    if (order)
        index->order = order;
    uint32_t *buckets = tfos__alloc(2 * (size_t)capacity, sizeof(*buckets));
    if (!names || !order || !buckets) {
        tfos__free(buckets);
        return tfos__no_memory(err, "record", "names");
    }
    memset(order + index->order_count, 0xFF, (2 * capacity - index->order_count) * sizeof(*order));
    memset(buckets, 0xFF, 2 * (size_t)capacity * sizeof(*buckets));
    tfos__free(index->buckets);
    index->buckets = buckets;
    index->bucket_count = index->order_count = 2 * capacity;
    index->capacity = capacity;
    for (uint32_t i = 0; i < index->count; i++)
        *find_bucket(index, names[i].text) = i;
    return TFOS_OK;
}

enum tfos_status tfos__record_name_index_add(struct tfos__record_name_index *index,
                                             struct tfos_view name, uint32_t value,
                                             struct tfos_error *err)
{
    if (index->count == index->capacity)
        TFOS__TRY(grow(index, err));
    char *copy = tfos__alloc(name.size + 1, 1);
    if (!copy)
        return tfos__no_memory(err, "record", "names");
    if (name.size > 0)
        memcpy(copy, name.data, name.size);
    *find_bucket(index, name) = index->count;
    index->names[index->count++] = (struct tfos__record_name){{copy, name.size}, value};
    return TFOS_OK;
}

uint32_t tfos__record_name_index_find(const struct tfos__record_name_index *index,
                                      struct tfos_view name)
{
    return index->count > 0 ? *find_bucket(index, name) : TFOS__NAME_UNKNOWN;
}

uint32_t tfos__record_name_index_next(struct tfos__record_name_index *index, struct tfos_view name)
{
    uint32_t position = index->position++, number = TFOS__NAME_UNKNOWN;
    if (index->count == 0)
        return number;
    if (position < index->order_count)
        number = index->order[position];
    if (number != TFOS__NAME_UNKNOWN && is_name(index, number, name))
        return number;
    number = *find_bucket(index, name);
    if (position < index->order_count)
        index->order[position] = number;
    return number;
}

void tfos__record_name_index_clear(struct tfos__record_name_index *index)
{
    for (uint32_t i = 0; i < index->count; i++)
        tfos__free((void *)(uintptr_t)index->names[i].text.data);
    tfos__free(index->names);
    tfos__free(index->buckets);
    tfos__free(index->order);
    *index = (struct tfos__record_name_index){0};
}

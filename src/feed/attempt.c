// SPDX-License-Identifier: Apache-2.0
// A hash table with linear probing, never more than half full. Entries go only when their feed has
// ended, all at once, and the table is then made anew: there are no gravestones.
#include "feed/attempt.h"

#include "base/memory.h"

#define FIRST_CAPACITY 64

static size_t place_of(const struct tfos__attempt_table *table, int64_t feed, int64_t partition)
{
    uint64_t hash = (uint64_t)feed * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)partition;

    hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    size_t place = (size_t)(hash ^ hash >> 32) & (table->capacity - 1);
    while (table->places[place].feed != 0 &&
           (table->places[place].feed != feed || table->places[place].partition != partition))
        place = (place + 1) & (table->capacity - 1);
    return place;
}

struct tfos__attempt *tfos__attempt_find(const struct tfos__attempt_table *table, int64_t feed,
                                         int64_t partition)
{
    if (table->capacity == 0)
        return NULL;
    struct tfos__attempt *entry = &table->places[place_of(table, feed, partition)];
    return entry->feed != 0 ? entry : NULL;
}

// Makes a table of `capacity` places without the dead entries of feeds up to `forgotten_feed`.
static bool rebuild(struct tfos__attempt_table *table, size_t capacity, int64_t forgotten_feed)
{
    struct tfos__attempt_table next = {.capacity = capacity};

    next.places = tfos__alloc(capacity, sizeof *next.places);
    if (!next.places)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        const struct tfos__attempt *entry = &table->places[i];
        if (entry->feed == 0 || (entry->feed <= forgotten_feed && !entry->connection))
            continue;
        next.places[place_of(&next, entry->feed, entry->partition)] = *entry;
        next.count++;
    }
    tfos__attempt_table_clear(table);
    *table = next;
    return true;
}

enum tfos_status tfos__attempt_get(struct tfos__attempt_table *table, int64_t feed,
                                   int64_t partition, struct tfos__attempt **out,
                                   struct tfos_error *err)
{
    *out = tfos__attempt_find(table, feed, partition);
    if (*out)
        return TFOS_OK;
    if (table->count * 2 >= table->capacity &&
        !rebuild(table, table->capacity ? table->capacity * 2 : FIRST_CAPACITY, 0))
        return tfos__no_memory(err, "feed", "a list of attempts");
    *out = &table->places[place_of(table, feed, partition)];
    **out = (struct tfos__attempt){.feed = feed, .partition = partition, .attempt = -1};
    table->count++;
    return TFOS_OK;
}

void tfos__attempt_forget(struct tfos__attempt_table *table, int64_t feed)
{
    // Without memory the entries stay, which does no harm.
    if (table->count > 0)
        (void)rebuild(table, table->capacity, feed);
}

void tfos__attempt_table_clear(struct tfos__attempt_table *table)
{
    tfos__free(table->places);
    *table = (struct tfos__attempt_table){0};
}

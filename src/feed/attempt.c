// SPDX-License-Identifier: Apache-2.0
// A hash table with linear probing, never more than half full. Entries go only when their feed has
// ended or the table is full, all at once, and the table is then made anew: there are no
// gravestones.
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

static bool is_dead(const struct tfos__attempt *entry, int64_t forgotten_feed)
{
    return !entry->connection &&
           (entry->feed <= forgotten_feed || (entry->has_results && !entry->is_fenced));
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
        if (entry->feed == 0 || is_dead(entry, forgotten_feed))
            continue;
        next.places[place_of(&next, entry->feed, entry->partition)] = *entry;
        next.count++;
    }
    tfos__attempt_table_clear(table);
    *table = next;
    return true;
}

// Room for one more, and for as many as a quarter of the table before this is called again.
static bool make_room(struct tfos__attempt_table *table)
{
    size_t count = 0, capacity = table->capacity ? table->capacity : FIRST_CAPACITY;

    if (table->count * 2 < table->capacity)
        return true;
    for (size_t i = 0; i < table->capacity; i++)
        count += table->places[i].feed != 0 && !is_dead(&table->places[i], 0);
    return rebuild(table, count * 4 > capacity ? capacity * 2 : capacity, 0);
}

enum tfos_status tfos__attempt_get(struct tfos__attempt_table *table, int64_t feed,
                                   int64_t partition, struct tfos__attempt **out,
                                   struct tfos_error *err)
{
    *out = tfos__attempt_find(table, feed, partition);
    if (*out)
        return TFOS_OK;
    if (!make_room(table))
        return tfos__no_memory(err, "feed", "a list of attempts");
    *out = &table->places[place_of(table, feed, partition)];
    **out = (struct tfos__attempt){.feed = feed, .partition = partition, .attempt = -1};
    table->count++;
    return TFOS_OK;
}

void tfos__attempt_fence(struct tfos__attempt *entry, int64_t attempt)
{
    if (attempt <= entry->superseded)
        return;
    entry->superseded = attempt;
    // The rendezvous fences each attempt that ended before its node said so. Where that is the
    // latest one, none between is missing: such entries would be all there are.
    entry->is_fenced |= attempt > entry->attempt + 1;
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

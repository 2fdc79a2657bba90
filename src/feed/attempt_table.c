// SPDX-License-Identifier: Apache-2.0
// Entries go when their feed has ended, or when room is needed, all at once.
#include "feed/attempt_table.h"

#include "base/fail.h"
#include "base/memory.h"

struct tfos__feed_attempt *tfos__feed_attempt_table_find(const struct tfos__partition_table *table,
                                                         int64_t feed, int64_t partition)
{
    return (struct tfos__feed_attempt *)tfos__partition_table_find(table, feed, partition);
}

// `context`: the number of a feed.
static bool is_needed(struct tfos__partition *base, void *context)
{
    const struct tfos__feed_attempt *entry = (struct tfos__feed_attempt *)base;

    return entry->connection ||
           (base->feed > *(const int64_t *)context && (!entry->has_results || entry->is_fenced));
}

// Room for one more, and for as many as half of the table before this is called again.
static bool make_room(struct tfos__partition_table *table)
{
    if (!tfos__partition_table_is_full(table))
        return true;
    tfos__feed_attempt_table_forget(table, 0);
    return table->count * 2 < table->bucket_count || tfos__partition_table_grow(table);
}

enum tfos_status tfos__feed_attempt_table_get(struct tfos__partition_table *table, int64_t feed,
                                              int64_t partition, struct tfos__feed_attempt **out,
                                              struct tfos_error *err)
{
    *out = tfos__feed_attempt_table_find(table, feed, partition);
    if (*out)
        return TFOS_OK;
    struct tfos__feed_attempt *entry = tfos__alloc(1, sizeof(*entry));
    if (!entry)
        return tfos__no_memory(err, "feed", "an attempt");
    entry->base.feed = feed;
    entry->base.number = partition;
    entry->attempt = -1;
    if (!make_room(table) || !tfos__partition_table_add(table, &entry->base)) {
        tfos__free(entry);
        return tfos__no_memory(err, "feed", "a list of attempts");
    }
    *out = entry;
    return TFOS_OK;
}

void tfos__feed_attempt_fence(struct tfos__feed_attempt *entry, int64_t attempt)
{
    if (attempt <= entry->superseded)
        return;
    entry->superseded = attempt;
    // The rendezvous fences each attempt that ended before its node said so. Where that is the
    // latest one, none between is missing: such entries would be all there are.
    entry->is_fenced |= attempt > entry->attempt + 1;
}

void tfos__feed_attempt_table_forget(struct tfos__partition_table *table, int64_t feed)
{
    tfos__partition_table_filter(table, is_needed, &feed);
}

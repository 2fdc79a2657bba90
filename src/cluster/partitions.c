// SPDX-License-Identifier: Apache-2.0
// A chained hash table that doubles when it is full. Partitions of finished feeds are pruned, and
// those with results released one by one, so it holds about one feed's partitions of each queue
// however long a stream goes on.
#include "cluster/partitions.h"

#include "base/memory.h"

#define FIRST_BUCKET_COUNT 64 // a power of two, and so are all later counts

static size_t hash(struct tfos__partition_key key, size_t bucket_count)
{
    // Fibonacci hashing: the multiplier is 2^64 divided by the golden ratio.
    uint64_t mixed = ((uint64_t)key.feed * 0x9E3779B97F4A7C15u) ^ (uint64_t)key.number ^
                     (uint64_t)key.queue << 60;
    mixed *= 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 32) & (bucket_count - 1);
}

static bool grow(struct tfos__partition_table *table)
{
    if (table->partition_count < table->bucket_count)
        return true;
    size_t count = table->bucket_count ? table->bucket_count * 2 : FIRST_BUCKET_COUNT;
    struct tfos__partition **buckets = tfos__alloc(count, sizeof(struct tfos__partition *));
    if (!buckets)
        return table->bucket_count > 0; // a fuller table is only slower
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct tfos__partition *next;
        for (struct tfos__partition *partition = table->buckets[i]; partition; partition = next) {
            size_t place = hash(partition->key, count);
            next = partition->next;
            partition->next = buckets[place];
            buckets[place] = partition;
        }
    }
    tfos__free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = count;
    return true;
}

struct tfos__partition *tfos__partitions_find(const struct tfos__partition_table *table,
                                              struct tfos__partition_key key)
{
    if (!table->bucket_count)
        return NULL;
    struct tfos__partition *partition = table->buckets[hash(key, table->bucket_count)];
    while (partition && (partition->key.queue != key.queue || partition->key.feed != key.feed ||
                         partition->key.number != key.number))
        partition = partition->next;
    return partition;
}

struct tfos__partition *tfos__partitions_add(struct tfos__partition_table *table,
                                             struct tfos__partition_key key)
{
    struct tfos__partition *partition = tfos__partitions_find(table, key);
    if (partition || !grow(table))
        return partition;
    partition = tfos__alloc(1, sizeof(*partition));
    if (!partition)
        return NULL;
    size_t place = hash(key, table->bucket_count);
    partition->key = key;
    partition->newest_attempt = -1;
    partition->granted_attempt = -1;
    partition->next = table->buckets[place];
    table->buckets[place] = partition;
    table->partition_count++;
    return partition;
}

bool tfos__partitions_begin(struct tfos__partition_table *table, struct tfos__partition *partition,
                            struct tfos__entry *entry, int64_t number)
{
    struct tfos__attempt *attempt = tfos__alloc(1, sizeof(*attempt));
    if (!attempt)
        return false;
    attempt->entry = entry;
    attempt->number = number;
    attempt->next = partition->attempts;
    partition->attempts = attempt;
    if (partition->granted_attempt < number)
        partition->granted_attempt = number;
    table->unsettled_count++;
    return true;
}

void tfos__partitions_settle(struct tfos__partition_table *table, struct tfos__partition *partition,
                             const struct tfos__entry *entry, int64_t number)
{
    struct tfos__attempt **link = &partition->attempts;
    while (*link) {
        struct tfos__attempt *attempt = *link;
        if (attempt->entry != entry || attempt->number > number) {
            link = &attempt->next;
            continue;
        }
        *link = attempt->next;
        tfos__free(attempt);
        table->unsettled_count--;
    }
}

void tfos__partitions_settle_all(struct tfos__partition_table *table,
                                 const struct tfos__entry *entry)
{
    for (size_t i = 0; i < table->bucket_count; i++)
        for (struct tfos__partition *partition = table->buckets[i]; partition;
             partition = partition->next)
            tfos__partitions_settle(table, partition, entry, INT64_MAX);
}

static void free_partition(struct tfos__partition_table *table, struct tfos__partition *partition)
{
    while (partition->attempts) {
        struct tfos__attempt *attempt = partition->attempts;
        partition->attempts = attempt->next;
        tfos__free(attempt);
        table->unsettled_count--;
    }
    tfos__free(partition);
    table->partition_count--;
}

void tfos__partitions_release(struct tfos__partition_table *table,
                              struct tfos__partition *partition)
{
    if (!partition->has_results || partition->attempts || partition->feeder_count > 0)
        return;
    struct tfos__partition **link = &table->buckets[hash(partition->key, table->bucket_count)];
    while (*link != partition)
        link = &(*link)->next;
    *link = partition->next;
    free_partition(table, partition);
}

static void prune_bucket(struct tfos__partition_table *table, struct tfos__partition **link,
                         int queue, int64_t feed)
{
    while (*link) {
        struct tfos__partition *partition = *link;
        if (partition->key.queue != queue || partition->key.feed > feed || partition->attempts) {
            link = &partition->next;
            continue;
        }
        *link = partition->next;
        free_partition(table, partition);
    }
}

void tfos__partitions_prune(struct tfos__partition_table *table, int queue, int64_t feed)
{
    for (size_t i = 0; i < table->bucket_count; i++)
        prune_bucket(table, &table->buckets[i], queue, feed);
}

void tfos__partitions_clear(struct tfos__partition_table *table)
{
    for (size_t i = 0; i < table->bucket_count; i++) {
        while (table->buckets[i]) {
            struct tfos__partition *partition = table->buckets[i];
            table->buckets[i] = partition->next;
            free_partition(table, partition);
        }
    }
    tfos__free(table->buckets);
    table->buckets = NULL;
    table->bucket_count = 0;
}

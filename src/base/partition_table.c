// SPDX-License-Identifier: Apache-2.0
// Chains in buckets, which are doubled when there are as many partitions.
#include "base/partition_table.h"

#include "base/memory.h"

#define FIRST_BUCKET_COUNT 64 // a power of two, and so are all later counts

static struct tfos__partition **bucket_of(struct tfos__partition **buckets, size_t bucket_count,
                                          int64_t feed, int64_t number)
{
    // Fibonacci hashing: the multiplier is 2^64 divided by the golden ratio. Both numbers may be
    // composed of others, in their high bits.
    uint64_t mixed = (uint64_t)feed * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32 ^ (uint64_t)number) * 0x9E3779B97F4A7C15u;
    return &buckets[(size_t)(mixed >> 32) & (bucket_count - 1)];
}

struct tfos__partition *tfos__partition_table_find(const struct tfos__partition_table *table,
                                                   int64_t feed, int64_t number)
{
    if (!table->buckets)
        return NULL;
    struct tfos__partition *partition =
        *bucket_of(table->buckets, table->bucket_count, feed, number);
    while (partition && (partition->feed != feed || partition->number != number))
        partition = partition->next;
    return partition;
}

bool tfos__partition_table_is_full(const struct tfos__partition_table *table)
{
    return table->count >= table->bucket_count;
}

static void insert(struct tfos__partition **buckets, size_t bucket_count,
                   struct tfos__partition *partition)
{
    struct tfos__partition **bucket =
        bucket_of(buckets, bucket_count, partition->feed, partition->number);
    partition->next = *bucket;
    *bucket = partition;
}

bool tfos__partition_table_grow(struct tfos__partition_table *table)
{
    size_t count = table->bucket_count ? table->bucket_count * 2 : FIRST_BUCKET_COUNT;
    struct tfos__partition **buckets = tfos__alloc(count, sizeof(struct tfos__partition *));
    if (!buckets)
        return table->bucket_count > 0; // a fuller table is only slower
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct tfos__partition *next;
        for (struct tfos__partition *each = table->buckets[i]; each; each = next) {
            next = each->next;
            insert(buckets, count, each);
        }
    }
    tfos__free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = count;
    return true;
}

bool tfos__partition_table_add(struct tfos__partition_table *table,
                               struct tfos__partition *partition)
{
    if (tfos__partition_table_is_full(table) && !tfos__partition_table_grow(table))
        return false;
    insert(table->buckets, table->bucket_count, partition);
    table->count++;
    return true;
}

void tfos__partition_table_filter(struct tfos__partition_table *table,
                                  bool (*keeps)(struct tfos__partition *partition, void *context),
                                  void *context)
{
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct tfos__partition **link = &table->buckets[i];
        while (*link) {
            struct tfos__partition *partition = *link;
            if (keeps(partition, context)) {
                link = &partition->next;
                continue;
            }
            *link = partition->next;
            tfos__free(partition);
            table->count--;
        }
    }
}

void tfos__partition_table_remove(struct tfos__partition_table *table,
                                  struct tfos__partition *partition)
{
    struct tfos__partition **link =
        bucket_of(table->buckets, table->bucket_count, partition->feed, partition->number);
    while (*link != partition)
        link = &(*link)->next;
    *link = partition->next;
    tfos__free(partition);
    table->count--;
}

static bool keeps_none(struct tfos__partition *partition, void *context)
{
    (void)partition;
    (void)context;
    return false;
}

void tfos__partition_table_clear(struct tfos__partition_table *table)
{
    tfos__partition_table_filter(table, keeps_none, NULL);
    tfos__free(table->buckets);
    *table = (struct tfos__partition_table){0};
}

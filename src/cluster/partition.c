// SPDX-License-Identifier: Apache-2.0
// An attempt leaves its partition when its node reports how far it came, or is over.
#include "cluster/partition.h"

#include "base/memory.h"

struct tfos__cluster_partition *
tfos__cluster_partition_find(const struct tfos__cluster_partitions *partitions, int64_t feed,
                             int64_t number)
{
    return (struct tfos__cluster_partition *)tfos__partition_table_find(&partitions->table, feed,
                                                                        number);
}

struct tfos__cluster_partition *
tfos__cluster_partition_add(struct tfos__cluster_partitions *partitions, int64_t feed,
                            int64_t number)
{
    struct tfos__cluster_partition *partition =
        tfos__cluster_partition_find(partitions, feed, number);
    if (partition)
        return partition;
    partition = tfos__alloc(1, sizeof(*partition));
    if (!partition)
        return NULL;
    partition->base.feed = feed;
    partition->base.number = number;
    partition->newest_attempt = -1;
    partition->granted_attempt = -1;
    if (!tfos__partition_table_add(&partitions->table, &partition->base)) {
        tfos__free(partition);
        return NULL;
    }
    return partition;
}

struct tfos__cluster_attempt *
tfos__cluster_partition_attempt(const struct tfos__cluster_partition *partition,
                                const struct tfos__cluster_node *node)
{
    struct tfos__cluster_attempt *attempt = partition->attempts;
    while (attempt && attempt->node != node)
        attempt = attempt->next;
    return attempt;
}

struct tfos__cluster_attempt *
tfos__cluster_partition_begin(struct tfos__cluster_partitions *partitions,
                              struct tfos__cluster_partition *partition,
                              struct tfos__cluster_node *node, int64_t number)
{
    struct tfos__cluster_attempt *attempt = tfos__cluster_partition_attempt(partition, node);
    if (attempt)
        return attempt;
    attempt = tfos__alloc(1, sizeof(*attempt));
    if (!attempt)
        return NULL;
    attempt->node = node;
    attempt->number = number;
    attempt->next = partition->attempts;
    partition->attempts = attempt;
    if (partition->granted_attempt < number)
        partition->granted_attempt = number;
    partitions->unsettled_count++;
    return attempt;
}

void tfos__cluster_partition_settle(struct tfos__cluster_partitions *partitions,
                                    struct tfos__cluster_partition *partition,
                                    const struct tfos__cluster_node *node, int64_t number)
{
    struct tfos__cluster_attempt **link = &partition->attempts;
    while (*link) {
        struct tfos__cluster_attempt *attempt = *link;
        if (attempt->node != node || attempt->number > number) {
            link = &attempt->next;
            continue;
        }
        *link = attempt->next;
        tfos__free(attempt);
        partitions->unsettled_count--;
    }
}

struct settling {
    struct tfos__cluster_partitions *partitions;
    const struct tfos__cluster_node *node;
};

static bool settle_and_keep(struct tfos__partition *partition, void *context)
{
    const struct settling *settling = context;
    tfos__cluster_partition_settle(settling->partitions,
                                   (struct tfos__cluster_partition *)partition, settling->node,
                                   INT64_MAX);
    return true;
}

void tfos__cluster_partition_settle_all(struct tfos__cluster_partitions *partitions,
                                        const struct tfos__cluster_node *node)
{
    struct settling settling = {partitions, node};
    tfos__partition_table_filter(&partitions->table, settle_and_keep, &settling);
}

void tfos__cluster_partition_release(struct tfos__cluster_partitions *partitions,
                                     struct tfos__cluster_partition *partition)
{
    if (partition->has_results && !partition->attempts && partition->feeder_count == 0)
        tfos__partition_table_remove(&partitions->table, &partition->base);
}

static bool is_of_later_feed(struct tfos__partition *base, void *context)
{
    const struct tfos__cluster_partition *partition = (struct tfos__cluster_partition *)base;
    return base->feed > *(const int64_t *)context || partition->attempts;
}

void tfos__cluster_partition_prune(struct tfos__cluster_partitions *partitions, int64_t feed)
{
    tfos__partition_table_filter(&partitions->table, is_of_later_feed, &feed);
}

static bool free_attempts(struct tfos__partition *base, void *context)
{
    struct tfos__cluster_partition *partition = (struct tfos__cluster_partition *)base;
    (void)context;
    while (partition->attempts) {
        struct tfos__cluster_attempt *attempt = partition->attempts;
        partition->attempts = attempt->next;
        tfos__free(attempt);
    }
    return false;
}

void tfos__cluster_partition_clear(struct tfos__cluster_partitions *partitions)
{
    tfos__partition_table_filter(&partitions->table, free_attempts, NULL);
    tfos__partition_table_clear(&partitions->table);
    partitions->unsettled_count = 0;
}

// SPDX-License-Identifier: Apache-2.0
/// What is known of each partition that was fed: how many of its rows were delivered, whether its
/// end was, and which attempts are under way at which node.
#ifndef TFOS_CLUSTER_PARTITIONS_H
#define TFOS_CLUSTER_PARTITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/registry.h"

/// An attempt that has a target and is not known to be closed.
struct tfos__attempt {
    struct tfos__attempt *next;
    struct tfos__entry *entry; ///< borrowed
    int64_t number;
    int64_t fence; ///< the node was told that attempts below this one are superseded; 0: nothing
};

struct tfos__partition_key {
    int queue; ///< its place in the cluster's list
    int64_t feed, number;
};

struct tfos__partition {
    struct tfos__partition *next; ///< in its bucket
    struct tfos__partition_key key;
    int64_t rows;                   ///< delivered by the attempts that are closed
    int64_t newest_attempt;         ///< highest number that asked
    int64_t granted_attempt;        ///< highest number that got a target; -1: none
    bool is_complete;               ///< its end was delivered
    bool has_results;               ///< an inference's, which may have no end that is told
    int64_t feeder_count;           ///< open feeders that ask for it
    struct tfos__attempt *attempts; ///< owned; those not settled
};

/// All zero is an empty table.
struct tfos__partition_table {
    struct tfos__partition **buckets; ///< owned
    size_t bucket_count, partition_count;
    size_t unsettled_count; ///< attempts that have a target and are not known to be closed
};

/// The partition, or NULL.
struct tfos__partition *tfos__partitions_find(const struct tfos__partition_table *table,
                                              struct tfos__partition_key key);

/// The partition, made if it is new; NULL when out of memory.
struct tfos__partition *tfos__partitions_add(struct tfos__partition_table *table,
                                             struct tfos__partition_key key);

/// Notes that attempt `number` is under way at `entry`; false when out of memory.
bool tfos__partitions_begin(struct tfos__partition_table *table, struct tfos__partition *partition,
                            struct tfos__entry *entry, int64_t number);

/// Removes the attempts of `partition` at `entry` up to `number`.
void tfos__partitions_settle(struct tfos__partition_table *table, struct tfos__partition *partition,
                             const struct tfos__entry *entry, int64_t number);

/// Removes all attempts at `entry`.
void tfos__partitions_settle_all(struct tfos__partition_table *table,
                                 const struct tfos__entry *entry);

/// Forgets the partition if it is over for good: it had results, and neither an attempt nor a
/// feeder is left. Whoever computes it again begins anew.
void tfos__partitions_release(struct tfos__partition_table *table,
                              struct tfos__partition *partition);

/// Forgets the partitions of the queue's feeds up to `feed` that have no attempt under way.
void tfos__partitions_prune(struct tfos__partition_table *table, int queue, int64_t feed);

/// Forgets all there is.
void tfos__partitions_clear(struct tfos__partition_table *table);

#endif

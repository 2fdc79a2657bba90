// SPDX-License-Identifier: Apache-2.0
/// What is known of each partition of a queue that was fed: how many of its rows were delivered,
/// whether its end was, and which attempts are under way at which node.
#ifndef TFOS_CLUSTER_PARTITION_H
#define TFOS_CLUSTER_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/partition_table.h"
#include "cluster/node_table.h"

/// An attempt that has a target and is not known to be closed, at one of the nodes that it feeds.
struct tfos__cluster_attempt {
    struct tfos__cluster_attempt *next;
    struct tfos__cluster_node *node; ///< borrowed
    int64_t number;
    int64_t assigned_rows; ///< to the node, of a balanced feed
    int64_t fence;         ///< the number of the fence that was sent to the node; 0: none
};

struct tfos__cluster_partition {
    struct tfos__partition base; ///< first; its feed and number
    int64_t rows; ///< delivered by the attempts that are closed: what they published is a prefix
    int64_t newest_attempt;                 ///< highest number that asked
    int64_t granted_attempt;                ///< highest number that got a target; -1: none
    bool is_complete;                       ///< its end was delivered
    bool has_results;                       ///< an inference's, whose end may not be reported
    int64_t feeder_count;                   ///< open feeders that ask for it
    struct tfos__cluster_attempt *attempts; ///< owned; those not settled
};

/// The partitions of a queue. All zero: none is known. Those of finished feeds are pruned, and
/// those with results released one by one, so that it holds about one feed's partitions however
/// long a stream runs.
struct tfos__cluster_partitions {
    struct tfos__partition_table table;
    size_t unsettled_count; ///< attempts that have a target and are not known to be closed
};

/// The partition, or NULL.
struct tfos__cluster_partition *
tfos__cluster_partition_find(const struct tfos__cluster_partitions *partitions, int64_t feed,
                             int64_t number);

/// The partition, made if it is new; NULL when out of memory.
struct tfos__cluster_partition *
tfos__cluster_partition_add(struct tfos__cluster_partitions *partitions, int64_t feed,
                            int64_t number);

/// Notes that attempt `number` is under way at `node`, unless it is noted already. NULL when out of
/// memory.
struct tfos__cluster_attempt *
tfos__cluster_partition_begin(struct tfos__cluster_partitions *partitions,
                              struct tfos__cluster_partition *partition,
                              struct tfos__cluster_node *node, int64_t number);

/// The attempt at `node`, which there is one of at a time; NULL: none is under way.
struct tfos__cluster_attempt *
tfos__cluster_partition_attempt(const struct tfos__cluster_partition *partition,
                                const struct tfos__cluster_node *node);

/// Removes the attempts of `partition` at `node` up to `number`.
void tfos__cluster_partition_settle(struct tfos__cluster_partitions *partitions,
                                    struct tfos__cluster_partition *partition,
                                    const struct tfos__cluster_node *node, int64_t number);

/// Removes all attempts at `node`.
void tfos__cluster_partition_settle_all(struct tfos__cluster_partitions *partitions,
                                        const struct tfos__cluster_node *node);

/// Forgets the partition if it is over for good: it had results, and neither an attempt nor a
/// feeder is left. Whoever computes it again begins anew.
void tfos__cluster_partition_release(struct tfos__cluster_partitions *partitions,
                                     struct tfos__cluster_partition *partition);

/// Forgets the partitions of feeds up to `feed` that have no attempt under way.
void tfos__cluster_partition_prune(struct tfos__cluster_partitions *partitions, int64_t feed);

/// Forgets all there is.
void tfos__cluster_partition_clear(struct tfos__cluster_partitions *partitions);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Feeding: which node a feeder feeds and from which row on. Rows reach a trainer once: an attempt
/// to feed a partition gets a node only when all earlier attempts are known to be closed, and
/// starts after what they delivered.
#ifndef TFOS_CLUSTER_FEEDING_H
#define TFOS_CLUSTER_FEEDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/queues.h"
#include "cluster/registry.h"

struct tfos__cluster;
struct tfos__partition;
struct tfos__peer;

enum tfos__feeder_state {
    TFOS__FEEDER_UNDECIDED, ///< waits for the start, or for earlier attempts to be closed
    TFOS__FEEDER_FEEDING,   ///< has its target
    TFOS__FEEDER_DISMISSED  ///< was told to skip, or that it failed
};

struct tfos__feeder {
    struct tfos__feeder *previous, *next; ///< all open feeders
    struct tfos__peer *peer;              ///< borrowed
    enum tfos__feeder_state state;
    int queue;             ///< its place in the cluster's list
    bool is_for_evaluator; ///< else for trainers
    int64_t feed, partition, attempt;
    char host[TFOS__HOST_SIZE];
    int64_t executor_pid;
    bool has_results;
    bool is_counted;           ///< its partition knows of it
    struct tfos__entry *entry; ///< borrowed; whom it feeds
};

/// What the driver says of the rows of some feeds.
struct tfos__description {
    char *schema;       ///< owned; JSON; NULL: nothing was said
    int64_t first_feed; ///< from 1
    int64_t last_feed;  ///< 0: all that follow
};

/// Which node was fed each partition last, by the partition's number.
struct tfos__homes {
    struct tfos__entry **entries; ///< owned array of borrowed entries; NULL: not fed
    int64_t count;
};

/// What is known of a queue.
struct tfos__feeding_queue {
    int64_t feed;                         ///< highest number seen
    int64_t ended_feed;                   ///< feeds up to this number are complete
    int64_t row_count;                    ///< taken from it by all nodes, ever
    struct tfos__description description; ///< the newest
    struct tfos__homes homes;
};

struct tfos__feeding {
    struct tfos__feeding_queue queues[TFOS__QUEUE_LIMIT];
    struct tfos__feeder *feeders; ///< list; each is owned by its peer
    int undecided_count;
    struct tfos__partition **buckets; ///< owned hash table of partitions
    size_t bucket_count, partition_count;
    size_t unsettled_count; ///< attempts that have a target and are not known to be closed
    int64_t fed_sequence;   ///< of the newest target
    bool is_in_step;        ///< there are trainers that agree on their steps
    int64_t progress_ms;    ///< when a row was last taken, or a feeder came or went
};

/// A feeder has said hello with `message`; it gets its answer now or later. INVALID names the
/// member that is wrong. A queue that does not exist is a matter of the task, which gets told.
enum tfos_status tfos__feeding_open(struct tfos__cluster *cluster, struct tfos__peer *peer,
                                    const json_t *message, struct tfos_error *err);

/// The feeder's connection has ended. Its node is asked how far it came.
void tfos__feeding_close(struct tfos__cluster *cluster, struct tfos__feeder *feeder);

/// `entry` reports an attempt closed, or answers a fence.
enum tfos_status tfos__feeding_settle(struct tfos__cluster *cluster, struct tfos__entry *entry,
                                      const json_t *message, struct tfos_error *err);

/// `entry` is over: no attempt on it is under way any more.
void tfos__feeding_leave(struct tfos__cluster *cluster, struct tfos__entry *entry);

/// Decides about the feeders that wait, as far as can be now. To be called when the cluster has
/// started or failed, or a node has ended.
void tfos__feeding_advance(struct tfos__cluster *cluster);

/// The cluster has failed: feeders that feed are told, too.
void tfos__feeding_fail(struct tfos__cluster *cluster);

/// All partitions of the queue up to feed `feed` have been fed.
void tfos__feeding_end_epoch(struct tfos__cluster *cluster, int queue, int64_t feed);

/// Whether what was fed has been taken by trainers, or nobody is left to take it.
bool tfos__feeding_is_drained(const struct tfos__cluster *cluster);

/// The queues of `entry`, a bit each, that hold rows which it is still to take.
uint32_t tfos__feeding_unread_queues(const struct tfos__cluster *cluster,
                                     const struct tfos__entry *entry);

/// Whether `entry` is a node that feeders may be sent to, now or earlier.
bool tfos__feeding_is_fed(const struct tfos__cluster *cluster, const struct tfos__entry *entry);

void tfos__feeding_clear(struct tfos__cluster *cluster);

#endif

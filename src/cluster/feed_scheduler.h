// SPDX-License-Identifier: Apache-2.0
/// The feed scheduler: assigns feeding tasks to nodes, and the row from which on they feed. Each
/// row reaches a trainer once: an attempt to feed a partition is assigned a node only when all
/// earlier attempts are known to be closed, and starts after what they delivered.
#ifndef TFOS_CLUSTER_FEED_SCHEDULER_H
#define TFOS_CLUSTER_FEED_SCHEDULER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/queue_names.h"
#include "cluster/node_table.h"
#include "cluster/partition.h"

struct tfos__cluster_session;

/// The reasons sent to feeders that came too late, or whose rows no node takes.
#define TFOS__FEEDER_SUPERSEDED                                                                    \
    "rendezvous: this attempt is superseded: another with this number or a higher one feeds the "  \
    "partition"
#define TFOS__FEEDER_UNWANTED "the trainers want no more rows or have returned"

enum tfos__cluster_feeder_state {
    TFOS__FEEDER_UNDECIDED, ///< waits for the start, or for earlier attempts to be closed
    TFOS__FEEDER_FEEDING,   ///< has its node
    TFOS__FEEDER_DISMISSED  ///< got `skip` or `failed`
};

/// A feeding task that is connected.
struct tfos__cluster_feeder {
    struct tfos__cluster_feeder *previous, *next; ///< all open feeders
    struct tfos__cluster_session *session;        ///< borrowed
    enum tfos__cluster_feeder_state state;
    int queue;             ///< its place in the cluster's list
    bool is_for_evaluator; ///< else for trainers
    int64_t feed, partition, attempt;
    char host[TFOS__HOST_SIZE];
    int64_t executor_pid;
    bool has_results;
    bool is_counted;                 ///< in its partition's feeder_count
    struct tfos__cluster_node *node; ///< borrowed; the one that it feeds
};

/// The driver's description of the rows of some feeds, before the first comes. Nodes that are fed
/// get the newest, also those that register later.
struct tfos__cluster_feed_description {
    char *schema;       ///< owned; JSON; NULL: there is none
    int64_t first_feed; ///< from 1
    int64_t last_feed;  ///< 0: all that follow
};

/// What is known of a queue.
struct tfos__cluster_feed_queue {
    int64_t feed;                                      ///< highest number seen
    int64_t ended_feed;                                ///< feeds up to this number are complete
    int64_t row_count;                                 ///< taken from it by all nodes, ever
    struct tfos__cluster_feed_description description; ///< the newest
    struct tfos__cluster_partitions partitions;
};

/// Begins with the first six set and the rest zero.
struct tfos__cluster_scheduler {
    const struct tfos__cluster_node_table *table; ///< borrowed, as are the next three
    const struct tfos__queue_names *names;        ///< of the queues
    const char *cluster_id;
    struct tfos__cluster_eta *eta; ///< gets what is fed
    bool is_feeding;               ///< nodes are fed
    bool has_evaluator;

    bool is_started;     ///< "start" was sent to the nodes
    bool is_ended;       ///< nothing more will be fed
    const char *failure; ///< borrowed; of the cluster; NULL: it has not failed
    struct tfos__cluster_feed_queue queues[TFOS__QUEUE_LIMIT];
    struct tfos__cluster_feeder *feeders; ///< list; each is owned by its session
    int undecided_count;
    int64_t fed_sequence; ///< of the newest assignment
    int64_t progress_ms;  ///< when a row was last taken, or a feeder came or went
};

/// A feeder has connected with the hello `message`; it is answered now or later. INVALID names the
/// member that is wrong. A queue that does not exist is the task's error, which its answer carries.
enum tfos_status tfos__cluster_scheduler_open(struct tfos__cluster_scheduler *scheduler,
                                              struct tfos__cluster_session *session,
                                              const json_t *message, struct tfos_error *err);

/// The feeder's connection has ended. Its nodes are asked how far it came.
void tfos__cluster_scheduler_close(struct tfos__cluster_scheduler *scheduler,
                                   struct tfos__cluster_feeder *feeder);

/// `node` reports an attempt closed, or answers a fence.
enum tfos_status tfos__cluster_scheduler_settle(struct tfos__cluster_scheduler *scheduler,
                                                struct tfos__cluster_node *node,
                                                const json_t *message, struct tfos_error *err);

/// `node` is over: no attempt on it is under way any more.
void tfos__cluster_scheduler_leave(struct tfos__cluster_scheduler *scheduler,
                                   struct tfos__cluster_node *node);

/// The cluster has failed: feeders get `message`, which must live on.
void tfos__cluster_scheduler_fail(struct tfos__cluster_scheduler *scheduler, const char *message);

/// Decides about the feeders that wait, as far as can be now: after `is_started` or `is_ended` was
/// set, or another state of the cluster has changed.
void tfos__cluster_scheduler_advance(struct tfos__cluster_scheduler *scheduler);

/// Keeps a copy of `description` for the queue and sends it to the nodes. NOT_FOUND lists the
/// queues; INVALID when its numbers are wrong, or the schema is no JSON or too large.
enum tfos_status
tfos__cluster_scheduler_describe(struct tfos__cluster_scheduler *scheduler, const char *queue,
                                 const struct tfos__cluster_feed_description *description,
                                 struct tfos_error *err);

/// Sends a node that has just registered what is known of the queues' rows.
void tfos__cluster_scheduler_send_descriptions(const struct tfos__cluster_scheduler *scheduler,
                                               const struct tfos__cluster_node *node);

/// All partitions of the queue up to feed `feed` have been fed, which was a batch of a stream,
/// whose epoch continues, or the end of an epoch.
void tfos__cluster_scheduler_end_feed(struct tfos__cluster_scheduler *scheduler, int queue,
                                      int64_t feed, bool is_batch);

/// Whether what was fed has been taken by trainers, or nobody is left to take it.
bool tfos__cluster_scheduler_is_drained(const struct tfos__cluster_scheduler *scheduler);

/// The queues of `node`, a bit each, that hold rows which it is still to take.
uint32_t tfos__cluster_scheduler_unread_queues(const struct tfos__cluster_scheduler *scheduler,
                                               const struct tfos__cluster_node *node);

/// The partition that the feeder feeds; NULL: its feed has ended.
struct tfos__cluster_partition *
tfos__cluster_scheduler_find_partition(struct tfos__cluster_scheduler *scheduler,
                                       const struct tfos__cluster_feeder *feeder);

/// Whether the feeder may be sent to `node`, now or earlier.
bool tfos__cluster_scheduler_is_candidate(const struct tfos__cluster_scheduler *scheduler,
                                          const struct tfos__cluster_feeder *feeder,
                                          const struct tfos__cluster_node *node);

/// Whether `node` takes rows of the queue now.
bool tfos__cluster_scheduler_takes_rows(const struct tfos__cluster_node *node, int queue);

/// How the feeder reaches `node`, as messages say it; NULL when out of memory.
json_t *tfos__cluster_scheduler_describe_node(const struct tfos__cluster_scheduler *scheduler,
                                              const struct tfos__cluster_feeder *feeder,
                                              const struct tfos__cluster_node *node);

/// Whether `node` is a node that feeders may be sent to, now or earlier.
bool tfos__cluster_scheduler_is_fed(const struct tfos__cluster_scheduler *scheduler,
                                    const struct tfos__cluster_node *node);

void tfos__cluster_scheduler_clear(struct tfos__cluster_scheduler *scheduler);

#endif

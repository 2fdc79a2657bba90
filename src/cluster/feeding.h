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
#include "cluster/forecast.h"
#include "cluster/partition.h"
#include "cluster/registry.h"

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

/// What the driver says of the rows of some feeds, before the first comes. Nodes that are fed get
/// the newest, also those that register later.
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
    struct tfos__cluster_partitions partitions;
    struct tfos__homes homes;
};

/// Begins with the first six set and the rest zero.
struct tfos__feeding {
    const struct tfos__node_table *nodes; ///< borrowed, as are the next three
    const struct tfos__queues *names;     ///< of the queues
    const char *cluster_id;
    struct tfos__forecast *forecast; ///< told of what is fed
    bool is_feeding;                 ///< nodes are fed
    bool has_evaluator;

    bool is_started;     ///< the nodes were told to start
    bool is_ended;       ///< nothing more will be fed
    const char *failure; ///< borrowed; of the cluster; NULL: it has not failed
    struct tfos__feeding_queue queues[TFOS__QUEUE_LIMIT];
    struct tfos__feeder *feeders; ///< list; each is owned by its peer
    int undecided_count;
    int64_t fed_sequence; ///< of the newest target
    bool is_in_step;      ///< there are trainers that agree on their steps
    int64_t progress_ms;  ///< when a row was last taken, or a feeder came or went
};

/// A feeder has said hello with `message`; it gets its answer now or later. INVALID names the
/// member that is wrong. A queue that does not exist is a matter of the task, which gets told.
enum tfos_status tfos__feeding_open(struct tfos__feeding *feeding, struct tfos__peer *peer,
                                    const json_t *message, struct tfos_error *err);

/// The feeder's connection has ended. Its node is asked how far it came.
void tfos__feeding_close(struct tfos__feeding *feeding, struct tfos__feeder *feeder);

/// `entry` reports an attempt closed, or answers a fence.
enum tfos_status tfos__feeding_settle(struct tfos__feeding *feeding, struct tfos__entry *entry,
                                      const json_t *message, struct tfos_error *err);

/// `entry` is over: no attempt on it is under way any more.
void tfos__feeding_leave(struct tfos__feeding *feeding, struct tfos__entry *entry);

/// The nodes were told to start.
void tfos__feeding_start(struct tfos__feeding *feeding);

/// Nothing more will be fed.
void tfos__feeding_end(struct tfos__feeding *feeding);

/// The cluster has failed, `message` (which must live on) says why: feeders are told.
void tfos__feeding_fail(struct tfos__feeding *feeding, const char *message);

/// Decides about the feeders that wait, as far as can be now.
void tfos__feeding_advance(struct tfos__feeding *feeding);

/// Keeps a copy of `description` for the queue and tells the nodes. NOT_FOUND lists the queues;
/// INVALID when its numbers are wrong, or the schema is no JSON or too large.
enum tfos_status tfos__feeding_describe(struct tfos__feeding *feeding, const char *queue,
                                        const struct tfos__description *description,
                                        struct tfos_error *err);

/// Tells a node that has just registered what is known of the queues' rows.
void tfos__feeding_tell_descriptions(const struct tfos__feeding *feeding,
                                     const struct tfos__entry *entry);

/// All partitions of the queue up to feed `feed` have been fed.
void tfos__feeding_end_epoch(struct tfos__feeding *feeding, int queue, int64_t feed);

/// Whether what was fed has been taken by trainers, or nobody is left to take it.
bool tfos__feeding_is_drained(const struct tfos__feeding *feeding);

/// The queues of `entry`, a bit each, that hold rows which it is still to take.
uint32_t tfos__feeding_unread_queues(const struct tfos__feeding *feeding,
                                     const struct tfos__entry *entry);

/// Whether `entry` is a node that feeders may be sent to, now or earlier.
bool tfos__feeding_is_fed(const struct tfos__feeding *feeding, const struct tfos__entry *entry);

void tfos__feeding_clear(struct tfos__feeding *feeding);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The cluster as the driver knows it: who has registered, how far it has come, and why it failed.
/// Nothing here touches a socket, waits or locks: the rendezvous' lock guards all of it, and
/// messages go out through sessions.
#ifndef TFOS_CLUSTER_CLUSTER_STATE_H
#define TFOS_CLUSTER_CLUSTER_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/rendezvous.h>

#include "base/queue_names.h"
#include "base/socket.h"
#include "cluster/agreement.h"
#include "cluster/feed_scheduler.h"
#include "cluster/node_table.h"

#define TFOS__CLUSTER_ID_SIZE 65           ///< room for a cluster's id
#define TFOS__EVENT_LIMIT 10000            ///< most events that wait
#define TFOS__EVENT_SIZE_LIMIT (64u << 20) ///< most bytes of their texts together

/// The queue of events for the driver's user, JSON texts in order, bounded in number and bytes: a
/// driver that never reads it does not grow.
struct tfos__cluster_event_queue {
    char **texts;          ///< owned; a ring of TFOS__EVENT_LIMIT places
    size_t first, count;   ///< the oldest one's place, and how many wait
    size_t size;           ///< bytes of all texts
    int64_t dropped_count; ///< lost since the last one was taken
};

enum tfos__cluster_state {
    TFOS__CLUSTER_WAITING, ///< for nodes to register and acknowledge the spec
    TFOS__CLUSTER_RUNNING, ///< "start" was sent
    TFOS__CLUSTER_FAILED,  ///< the first failure is in failure_message
    TFOS__CLUSTER_ENDED    ///< every node has ended
};

struct tfos__cluster {
    char cluster_id[TFOS__CLUSTER_ID_SIZE];
    char address[TFOS__ADDRESS_SIZE]; ///< of the rendezvous, for others
    struct tfos__cluster_roles roles;
    struct tfos__queue_names queues; ///< of each node that is fed
    int64_t heartbeat_timeout_ms, hello_timeout_ms, grace_ms;
    int64_t ticked_ms; ///< when silence was last looked for

    enum tfos__cluster_state state;
    struct tfos__cluster_node_table table;
    bool is_stopped;        ///< "stop" was sent to all: nodes that are missing stay so
    bool is_stop_requested; ///< from outside: nothing more is to be fed
    enum tfos_status failure;
    char failure_message[sizeof(((struct tfos_error *)NULL)->message)];

    struct tfos__cluster_agreement agreement;
    struct tfos__cluster_scheduler scheduler;
    struct tfos__cluster_eta eta;
    struct tfos__cluster_event_queue events;
    bool has_changed; ///< set with every change that a wait may be for; cleared by who wakes the
                      ///< waits
};

/// Checks and copies `options`. INVALID names the option. The caller ends it with
/// tfos__cluster_clear().
enum tfos_status tfos__cluster_init(struct tfos__cluster *cluster,
                                    const struct tfos_rendezvous_options *options,
                                    struct tfos_error *err);

/// Puts an event about `node` (NULL: about the cluster) into the queue. `members`, taken over, are
/// its own.
void tfos__cluster_push_event(struct tfos__cluster *cluster, const struct tfos__cluster_node *node,
                              const char *event, json_t *members);

/// The oldest, which the caller frees with tfos__free(); NULL when there is none.
char *tfos__cluster_event_queue_take(struct tfos__cluster_event_queue *events);

/// The first failure counts, later ones are consequences: nodes stop, feeders and waits get the
/// message.
void tfos__cluster_fail(struct tfos__cluster *cluster, enum tfos_status status,
                        const char *message);

/// A node's port, or its presence, has changed before the start: all get the spec of a new
/// generation once all have registered.
void tfos__cluster_renew_spec(struct tfos__cluster *cluster);

/// A node has acknowledged: when it was the last, all start.
void tfos__cluster_try_start(struct tfos__cluster *cluster);

/// `node` has ended: `state` is how, `exit` in words. What depended on it is settled.
/// With `failure` (NULL: none) the cluster fails with this message.
void tfos__cluster_end_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                            enum tfos__cluster_node_state state, const char *exit,
                            const char *failure);

/// `node` is lost: its connection ended or it is silent, `cause` in words. Before the start it may
/// come again; after it the cluster fails, unless it was stopping or had ended.
void tfos__cluster_lose_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                             const char *cause);

/// Sends one node "stop".
void tfos__cluster_stop_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                             int64_t grace_ms, const char *reason);

/// What is known of a feed of a training.
void tfos__cluster_plan_feed(struct tfos__cluster *cluster, int queue, int64_t feed,
                             const struct tfos_feed_plan *plan);

void tfos__cluster_end_epoch(struct tfos__cluster *cluster, int queue, int64_t feed);
void tfos__cluster_end_batch(struct tfos__cluster *cluster, int queue, int64_t feed);
void tfos__cluster_end_feed(struct tfos__cluster *cluster);
void tfos__cluster_stop(struct tfos__cluster *cluster, int64_t grace_ms);

/// Sends the nodes that no more rows are wanted: what is left of the feed is skipped.
void tfos__cluster_terminate_feed(struct tfos__cluster *cluster);

/// A process of this user, `pid`, asks that the cluster ends in order. Of a cluster that is fed the
/// driver ends the feed, since it knows what feeds it; the trainers of any other get SIGTERM.
void tfos__cluster_request_stop(struct tfos__cluster *cluster, int64_t pid);

/// Whether the cluster has come to `phase`.
bool tfos__cluster_has_reached(const struct tfos__cluster *cluster,
                               enum tfos_rendezvous_phase phase);

/// Finds nodes that have been silent for too long; to be called several times within the heartbeat
/// timeout.
void tfos__cluster_tick(struct tfos__cluster *cluster, int64_t now_ms);

void tfos__cluster_clear(struct tfos__cluster *cluster);

#endif

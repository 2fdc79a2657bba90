// SPDX-License-Identifier: Apache-2.0
/// The rendezvous: the server in the driver that nodes register with. It assigns roles and the
/// cluster spec, relays agreement, heartbeats, output lines and the end, and assigns a node to each
/// feeder. It runs on one thread of its own around epoll. Every function here is thread-safe.
/// docs/protocol.md has the messages.
#ifndef TFOS_RENDEZVOUS_H
#define TFOS_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

struct tfos_rendezvous;

/// All borrowed for the call. Zero means the default.
struct tfos_rendezvous_options {
    const char *cluster_id;  ///< letters, digits, '-'; 64 at most
    const char *key;         ///< 64 hexadecimal digits: the cluster's pre-shared key
    const char *listen_host; ///< address to bind; NULL: all
    const char *host;  ///< address to advertise; NULL: TFOS_SERVER_HOST, else the first that fits
    const char *ports; ///< "0", "40001", "40001-40002"; NULL: TFOS_SERVER_PORT, else "0"
    int node_count;    ///< nodes in all, at least ps_count + 1
    int ps_count;      ///< the first ps_count nodes are parameter servers
    const char *master_name; ///< "chief" or "master" (any name of letters): the next node has this
                             ///< role; NULL: none
    bool has_evaluator;      ///< the next one is the evaluator
    bool is_feeding;         ///< all but parameter servers can be fed by Spark (InputMode.SPARK)
    int64_t heartbeat_timeout_ms; ///< a node that says nothing for this long is lost; 0: 30,000
    int64_t hello_timeout_ms; ///< who connects and does not say who it is in this time is dropped;
                              ///< 0: 10,000
    int64_t feed_stop_grace_ms; ///< time a node has to end its trainer when the cluster failed; 0:
                                ///< 5,000
    const char *queues; ///< names of the queues of each fed node, divided by commas: 1 to 64
                        ///< letters, digits, '-', '_', '.' each, 16 at most; NULL: "input". As in
                        ///< the nodes' configuration
};

/// Starts the server. On success the caller owns `*out` and ends it with tfos_rendezvous_close().
/// INVALID names the option; BUSY names the port range and who holds it.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_open(const struct tfos_rendezvous_options *options, struct tfos_rendezvous **out,
                     struct tfos_error *err);

/// "host:port" to give to nodes and feeders; valid until close.
TFOS_API const char *tfos_rendezvous_address(const struct tfos_rendezvous *rendezvous);

/// The roles by executor id as JSON: {"ps": [0], "chief": [1], "worker": [2, 3]}. The caller frees
/// it with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_get_roles(struct tfos_rendezvous *rendezvous, char **json, struct tfos_error *err);

/// What wait() waits for.
enum tfos_rendezvous_phase {
    TFOS_PHASE_RUNNING = 1, ///< all nodes registered, agreed on one spec and were sent `start`
    TFOS_PHASE_DRAINED =
        2, ///< what was fed so far has been taken by the trainers (or they ended or terminated)
    TFOS_PHASE_WORKED = 3, ///< every chief, master and worker has ended
    TFOS_PHASE_ENDED = 4   ///< every node has ended
};

/// Waits until the cluster has come to `phase`. TIMEOUT says which nodes are missing, and for
/// RUNNING how many registered, on which executors, and why others usually do not come. For DRAINED
/// the timeout counts from the last progress. Any failure of the cluster (below) ends the wait with
/// its status (CLOSED, unless fail() gave another) and message, except for ENDED, which comes to
/// failed clusters too. CLOSED also once close() has begun. A negative timeout waits without limit;
/// callers poll in slices so that they can be interrupted.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_rendezvous_wait(struct tfos_rendezvous *rendezvous,
                                                               enum tfos_rendezvous_phase phase,
                                                               int64_t timeout_ms,
                                                               struct tfos_error *err);

/// Milliseconds since feeding last made progress: a row was taken, or a feeder came or went. For
/// callers that wait for DRAINED in slices, whose own timeout counts from there.
TFOS_API int64_t tfos_rendezvous_idle_ms(struct tfos_rendezvous *rendezvous);

/// The TIMEOUT of a caller that has waited in slices, with the message that wait() gives after
/// `waited_ms`.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_time_out(struct tfos_rendezvous *rendezvous, enum tfos_rendezvous_phase phase,
                         int64_t waited_ms, struct tfos_error *err);

/// OK while nothing has failed, else the status and message of the first failure: node, cause, last
/// lines, what to do.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_rendezvous_check(struct tfos_rendezvous *rendezvous,
                                                                struct tfos_error *err);

/// Makes the cluster fail with this message (the launching Spark job failed, say): nodes stop,
/// waits end.
TFOS_API void tfos_rendezvous_fail(struct tfos_rendezvous *rendezvous, enum tfos_status status,
                                   const char *message);

/// The part of a training that a feed is; only for its status.
struct tfos_feed_plan {
    int64_t epoch;           ///< 1, 2, ...
    int64_t epoch_count;     ///< of the training
    int64_t partition_count; ///< that Spark feeds in this epoch; 0: not known (yet)
    const char *queue;       ///< of the feed; NULL: "input"
};

/// Announces feed `feed`, from which the status has the training's progress and the time that it
/// will take. May be repeated when more is known. Epoch 1 begins a training. INVALID says what does
/// not fit.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_plan_feed(struct tfos_rendezvous *rendezvous, int64_t feed,
                          const struct tfos_feed_plan *plan, struct tfos_error *err);

/// Ends the epoch of feed `feed` (1, 2, ... within each queue) of `queue` (NULL: "input"): all its
/// partitions have been fed. NOT_FOUND names the queues that there are.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_end_epoch(struct tfos_rendezvous *rendezvous, const char *queue, int64_t feed,
                          struct tfos_error *err);

/// Feed `feed` of `queue` was a batch of a stream, and all its partitions have been fed. The epoch
/// continues: it has all feeds of the queue that follow and ends with
/// tfos_rendezvous_end_feed().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_end_batch(struct tfos_rendezvous *rendezvous, const char *queue, int64_t feed,
                          struct tfos_error *err);

/// Tells the trainers what the rows of feeds `first_feed` to `last_feed` (0: and of all that
/// follow) of `queue` (NULL: "input") look like, before the first comes: `schema_json` is any JSON,
/// 1 MiB at most; "null" says that they are about to come and nothing is known of them.
/// tfos_trainer_await_description() gives the newest out unchanged, also to trainers that start
/// later; of the JSON of a Spark schema a dataset knows its structure (tfos_trainer_get_schema()).
/// NOT_FOUND names the queues that there are.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_describe_feed(struct tfos_rendezvous *rendezvous, const char *queue,
                              int64_t first_feed, int64_t last_feed, const char *schema_json,
                              struct tfos_error *err);

/// Tells the nodes that nothing more will be fed, to any queue: their readers come to their end.
TFOS_API void tfos_rendezvous_end_feed(struct tfos_rendezvous *rendezvous);

/// Tells the nodes that nobody wants rows any more, of any queue: readers come to their end at
/// once, and feeders skip what they have left.
TFOS_API void tfos_rendezvous_terminate_feed(struct tfos_rendezvous *rendezvous);

/// Tells the nodes to stop: trainers still running get SIGTERM, and SIGKILL `grace_ms` later.
TFOS_API void tfos_rendezvous_stop(struct tfos_rendezvous *rendezvous, int64_t grace_ms);

/// The next event, a JSON object (docs/protocol.md, "Events"): output lines, nodes that register,
/// start, end or fail, refused connections, reports. AGAIN after `timeout_ms` without one; CLOSED
/// once close() has begun. The oldest are dropped, and counted in the next event, when 10,000 wait.
/// The caller frees `*json` with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_next_event(struct tfos_rendezvous *rendezvous, int64_t timeout_ms, char **json,
                           struct tfos_error *err);

/// The state of the cluster, a JSON object (docs/protocol.md, "Status"). Freed with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_rendezvous_get_status(struct tfos_rendezvous *rendezvous, char **json, struct tfos_error *err);

/// Ends the server, its thread and its connections (nodes take that for the end of the driver).
/// Calls that wait in other threads return first. NULL is accepted.
TFOS_API void tfos_rendezvous_close(struct tfos_rendezvous *rendezvous);

/// The status documents of all clusters whose driver runs on this machine under this user, as a
/// JSON array. Freed with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_status_query(int64_t timeout_ms, char **json,
                                                            struct tfos_error *err);

/// Asks the driver of a cluster to end it in order. It runs on this machine under this user, which
/// the kernel vouches for. `cluster` is its id, the beginning of its id, or the address of its
/// rendezvous. The driver gets the event `stop_requested` and ends what it feeds; where
/// it feeds nothing, the trainers get SIGTERM, and SIGKILL 30 s later. `*json` is `{"cluster_id",
/// "feeding"}`, freed with tfos_free(). NOT_FOUND and INVALID name the clusters that there are.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_cluster_request_stop(const char *cluster,
                                                                    int64_t timeout_ms, char **json,
                                                                    struct tfos_error *err);

#endif

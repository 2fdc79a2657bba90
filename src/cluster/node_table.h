// SPDX-License-Identifier: Apache-2.0
/// Roles, and the table of nodes: one entry an executor id, from before its node registers until
/// the cluster is closed. Nodes stay where they are, so others may point at them.
///
/// The first executor ids are parameter servers, then come the chief (or master), the evaluator,
/// and the workers. That is a pure function of the options, so that all sides can rely on it.
#ifndef TFOS_CLUSTER_NODE_TABLE_H
#define TFOS_CLUSTER_NODE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/rendezvous.h>

#include "base/queue_names.h"
#include "cluster/feed_progress.h"
#include "cluster/step_progress.h"

#define TFOS__NODE_LIMIT 10000        ///< most nodes of a cluster
#define TFOS__JOB_NAME_SIZE 64        ///< room for a job's name
#define TFOS__HOST_SIZE 256           ///< room for a host's name
#define TFOS__REPORT_SIZE_LIMIT 16384 ///< most bytes of a trainer's report

struct tfos__cluster_roles {
    int node_count;
    int ps_count;
    bool has_evaluator;
    char master_name[TFOS__JOB_NAME_SIZE]; ///< "" without one
};

/// Checks the counts and names of `options` and copies them. INVALID names the option.
enum tfos_status tfos__cluster_roles_init(struct tfos__cluster_roles *roles,
                                          const struct tfos_rendezvous_options *options,
                                          struct tfos_error *err);

/// Whether the role has rows to read: all but parameter servers.
bool tfos__cluster_roles_is_fed(const char *job_name);

/// {"ps": [0], "worker": [1, 2]}, in the order of the ids; NULL when out of memory.
json_t *tfos__cluster_roles_json(const struct tfos__cluster_roles *roles);

struct tfos__cluster_session;

enum tfos__cluster_node_state {
    TFOS__CLUSTER_NODE_MISSING,    ///< not registered, or disconnected again before the start
    TFOS__CLUSTER_NODE_REGISTERED, ///< its trainer does not run yet
    TFOS__CLUSTER_NODE_RUNNING,    ///< its trainer runs
    TFOS__CLUSTER_NODE_ENDED,      ///< its trainer ended well, or was stopped
    TFOS__CLUSTER_NODE_FAILED,     ///< its trainer or itself failed
    TFOS__CLUSTER_NODE_LOST ///< disconnected, or silent, while the trainer is not known to have
                            ///< ended
};

/// Where a node is and what it last reported.
struct tfos__cluster_node {
    int executor_id;
    const char *job_name; ///< borrowed from the roles
    int task_index;
    char name[TFOS__JOB_NAME_SIZE + 16]; ///< "worker:0"
    enum tfos__cluster_node_state state;
    struct tfos__cluster_session *session; ///< borrowed; NULL when it is not connected

    char host[TFOS__HOST_SIZE];
    char executor[128]; ///< Spark's id of the executor
    int port;
    int feed_port; ///< 0: not fed
    int64_t pid, executor_pid, trainer_pid;
    int64_t launch;
    int64_t generation; ///< of the spec that it has acknowledged

    int64_t received_ms; ///< when its last message came
    int64_t rows_written, rows_read, bytes_written, ring_used, ring_size,
        writers;                                ///< as it reports
    int64_t reader_wait_ms, writer_wait_ms;     ///< the same
    struct tfos__cluster_throughput throughput; ///< of the last seconds
    struct tfos__cluster_step_progress steps;   ///< the same
    int64_t figures_ms;                         ///< when the figures were last sent to it
    uint32_t drained;    ///< a bit for each queue, by its place in the list: nothing is left in it
    uint32_t terminated; ///< the same: it wants no more rows
    int64_t queue_rows[TFOS__QUEUE_LIMIT];    ///< taken from each queue
    int64_t assigned_rows[TFOS__QUEUE_LIMIT]; ///< of each queue's epoch, while its feed is balanced
    bool is_stopping;                         ///< "stop" was sent: its end is no failure
    bool has_overflowed;                      ///< a report was too large; reported once
    json_t *report;                           ///< owned; NULL for none
    json_t *gpus;                             ///< owned; as it reports them; NULL: nothing yet
    char exit[256];          ///< how its trainer ended, or why the node is gone; "" until then
    char *tensorboard;       ///< owned; NULL for none
    int64_t tensorboard_pid; ///< 0: not known

    int feeder_count;     ///< open connections of feeders that feed it
    int64_t fed_sequence; ///< rises with each feeder it gets; the lowest was fed longest ago
};

/// The nodes of a cluster.
struct tfos__cluster_node_table {
    struct tfos__cluster_node *nodes; ///< owned; by executor id
    int count;
    int64_t opened_ms;  ///< since when nodes may register
    int64_t generation; ///< of the newest spec; 0: none was sent
};

#define TFOS__CLUSTER_EACH_NODE(node, table)                                                       \
    for (struct tfos__cluster_node *node = (table)->nodes; node < (table)->nodes + (table)->count; \
         node++)

/// Makes one entry for each node, all missing. The caller ends them with
/// tfos__cluster_node_table_clear().
enum tfos_status tfos__cluster_node_table_init(struct tfos__cluster_node_table *table,
                                               const struct tfos__cluster_roles *roles,
                                               struct tfos_error *err);

/// The cluster spec, {job: ["host:port", ...]}, jobs sorted by name and tasks by index: the same
/// text for everybody. All nodes have registered. NULL when out of memory.
json_t *tfos__cluster_node_table_spec(const struct tfos__cluster_node_table *table);

/// Another launch, with `hello`, takes the place of `node`; what the last one reported is
/// forgotten.
void tfos__cluster_node_reset(struct tfos__cluster_node *node,
                              const struct tfos__cluster_node *hello);

/// Whether the node's life is over.
bool tfos__cluster_node_is_over(const struct tfos__cluster_node *node);

/// Whether the node takes part in training (chief, master, worker).
bool tfos__cluster_node_is_trainer(const struct tfos__cluster_node *node);

/// The word for a state in the status document.
const char *tfos__cluster_node_state_name(enum tfos__cluster_node_state state);

void tfos__cluster_node_table_clear(struct tfos__cluster_node_table *table);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Which executor id has which role: the first are parameter servers, then the chief (or master),
/// then the evaluator, and workers are the rest. A pure function of the options, so that all sides
/// can rely on it.
#ifndef TFOS_CLUSTER_ROLES_H
#define TFOS_CLUSTER_ROLES_H

#include <jansson.h>
#include <stdbool.h>
#include <tfos/rendezvous.h>

#define TFOS__NODE_LIMIT 10000 ///< most nodes of a cluster
#define TFOS__JOB_NAME_SIZE 64 ///< room for a job's name

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

/// The role of `executor_id`, which is in range. `*job_name` lives as long as `roles`.
void tfos__cluster_roles_find(const struct tfos__cluster_roles *roles, int executor_id,
                              const char **job_name, int *task_index);

/// Whether the role trains (chief, master, worker) rather than serves or evaluates.
bool tfos__cluster_roles_is_trainer(const char *job_name);

/// Whether the role has rows to read: all but parameter servers.
bool tfos__cluster_roles_is_fed(const char *job_name);

/// {"ps": [0], "worker": [1, 2]}, in the order of the ids; NULL when out of memory.
json_t *tfos__cluster_roles_json(const struct tfos__cluster_roles *roles);

#endif

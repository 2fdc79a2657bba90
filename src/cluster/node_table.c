// SPDX-License-Identifier: Apache-2.0
// Executor ids give the tasks of a job in order, so only the jobs of a spec need sorting.
#include "cluster/node_table.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/socket.h"

enum tfos_status tfos__cluster_node_table_init(struct tfos__cluster_node_table *table,
                                               const struct tfos__cluster_roles *roles,
                                               struct tfos_error *err)
{
    struct tfos__cluster_node *nodes = tfos__alloc((size_t)roles->node_count, sizeof(*nodes));
    if (!nodes)
        return tfos__no_memory(err, "rendezvous", "the table of nodes");
    for (int id = 0; id < roles->node_count; id++) {
        struct tfos__cluster_node *node = &nodes[id];
        node->executor_id = id;
        tfos__cluster_roles_find(roles, id, &node->job_name, &node->task_index);
        snprintf(node->name, sizeof(node->name), "%s:%d", node->job_name, node->task_index);
        node->drained = UINT32_MAX;
    }
    *table = (struct tfos__cluster_node_table){
        .nodes = nodes, .count = roles->node_count, .opened_ms = tfos__now_ms()};
    return TFOS_OK;
}

void tfos__cluster_node_reset(struct tfos__cluster_node *node)
{
    struct tfos__cluster_node fresh = {.executor_id = node->executor_id,
                                       .job_name = node->job_name,
                                       .task_index = node->task_index,
                                       .drained = UINT32_MAX};
    snprintf(fresh.name, sizeof(fresh.name), "%s", node->name);
    json_decref(node->report);
    tfos__free(node->tensorboard);
    *node = fresh;
}

bool tfos__cluster_node_is_over(const struct tfos__cluster_node *node)
{
    return node->state >= TFOS__CLUSTER_NODE_ENDED;
}

bool tfos__cluster_node_is_trainer(const struct tfos__cluster_node *node)
{
    return tfos__cluster_roles_is_trainer(node->job_name);
}

const char *tfos__cluster_node_state_name(enum tfos__cluster_node_state state)
{
    static const char *const names[] = {"missing", "registered", "running",
                                        "ended",   "failed",     "lost"};
    return names[state];
}

/// The job whose name comes next after `name` (NULL: the first), or NULL.
static const char *next_job(const struct tfos__cluster_node_table *table, const char *name)
{
    const char *next = NULL;
    for (int id = 0; id < table->count; id++) {
        const char *candidate = table->nodes[id].job_name;
        if ((!name || strcmp(candidate, name) > 0) && (!next || strcmp(candidate, next) < 0))
            next = candidate;
    }
    return next;
}

json_t *tfos__cluster_node_table_spec(const struct tfos__cluster_node_table *table)
{
    json_t *spec = json_object();
    if (!spec)
        return NULL;
    for (const char *job = next_job(table, NULL); job; job = next_job(table, job)) {
        json_t *tasks = json_array();
        if (json_object_set_new(spec, job, tasks) != 0)
            goto release_spec;
        for (int id = 0; id < table->count; id++) {
            char address[TFOS__ADDRESS_SIZE];
            if (strcmp(table->nodes[id].job_name, job) != 0)
                continue;
            tfos__address_join(table->nodes[id].host, table->nodes[id].port, address);
            if (json_array_append_new(tasks, json_string(address)) != 0)
                goto release_spec;
        }
    }
    return spec;

release_spec:
    json_decref(spec);
    return NULL;
}

void tfos__cluster_node_table_clear(struct tfos__cluster_node_table *table)
{
    for (int id = 0; id < table->count; id++) {
        json_decref(table->nodes[id].report);
        tfos__free(table->nodes[id].tensorboard);
    }
    tfos__free(table->nodes);
    *table = (struct tfos__cluster_node_table){0};
}

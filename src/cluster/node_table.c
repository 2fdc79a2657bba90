// SPDX-License-Identifier: Apache-2.0
// Roles are assigned by executor id, in the order that TensorFlowOnSpark's users know, so that
// only the jobs of a spec need sorting.
#include "cluster/node_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"

// ---- roles

static enum tfos_status check_master_name(const char *name, struct tfos_error *err)
{
    size_t size = strlen(name);
    bool is_valid = size > 0 && size < TFOS__JOB_NAME_SIZE;
    for (size_t i = 0; i < size && is_valid; i++)
        is_valid = isascii((unsigned char)name[i]) && isalpha((unsigned char)name[i]);
    if (!is_valid)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: master_name is \"%.80s\": expected 1 to %d letters, such as "
                          "\"chief\"",
                          name, TFOS__JOB_NAME_SIZE - 1);
    if (!strcmp(name, "ps") || !strcmp(name, "worker") || !strcmp(name, "evaluator"))
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: master_name is \"%s\", the name of another role: use "
                          "\"chief\" or \"master\"",
                          name);
    return TFOS_OK;
}

enum tfos_status tfos__cluster_roles_init(struct tfos__cluster_roles *roles,
                                          const struct tfos_rendezvous_options *options,
                                          struct tfos_error *err)
{
    if (options->node_count < 1 || options->node_count > TFOS__NODE_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: node_count is %d: expected 1 to %d",
                          options->node_count, TFOS__NODE_LIMIT);
    if (options->ps_count < 0)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: ps_count is %d: expected 0 or more",
                          options->ps_count);
    if (options->ps_count > options->node_count - 1)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: node_count is %d: ps_count %d needs %lld nodes at least, "
                          "the parameter servers and one more to train",
                          options->node_count, options->ps_count, (long long)options->ps_count + 1);
    if (options->master_name)
        TFOS__TRY(check_master_name(options->master_name, err));
    const char *trainer = options->master_name ? options->master_name : "worker";
    int needed = options->ps_count + (options->has_evaluator ? 1 : 0) + 1;
    if (options->node_count < needed)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: node_count is %d: ps_count %d, an evaluator (has_evaluator) "
                          "and a %s need %d nodes at least",
                          options->node_count, options->ps_count, trainer, needed);
    *roles = (struct tfos__cluster_roles){.node_count = options->node_count,
                                          .ps_count = options->ps_count,
                                          .has_evaluator = options->has_evaluator};
    if (options->master_name)
        memcpy(roles->master_name, options->master_name, strlen(options->master_name) + 1);
    return TFOS_OK;
}

// The role of `executor_id`, which is in range. `*job_name` lives as long as `roles`.
static void find_role(const struct tfos__cluster_roles *roles, int executor_id,
                      const char **job_name, int *task_index)
{
    int index = executor_id;
    if (index < roles->ps_count) {
        *job_name = "ps";
        *task_index = index;
        return;
    }
    index -= roles->ps_count;
    if (roles->master_name[0] && index-- == 0) {
        *job_name = roles->master_name;
        *task_index = 0;
        return;
    }
    if (roles->has_evaluator && index-- == 0) {
        *job_name = "evaluator";
        *task_index = 0;
        return;
    }
    *job_name = "worker";
    *task_index = index;
}

bool tfos__cluster_roles_is_fed(const char *job_name)
{
    return strcmp(job_name, "ps") != 0;
}

json_t *tfos__cluster_roles_json(const struct tfos__cluster_roles *roles)
{
    json_t *object = json_object();
    for (int id = 0; id < roles->node_count; id++) {
        const char *job_name;
        int task_index;
        find_role(roles, id, &job_name, &task_index);
        json_t *ids = json_object_get(object, job_name);
        if (!ids) {
            ids = json_array();
            if (json_object_set_new(object, job_name, ids) != 0)
                goto release_object;
        }
        if (json_array_append_new(ids, json_integer(id)) != 0)
            goto release_object;
    }
    return object;

release_object:
    json_decref(object);
    return NULL;
}

// ---- nodes

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
        find_role(roles, id, &node->job_name, &node->task_index);
        snprintf(node->name, sizeof(node->name), "%s:%d", node->job_name, node->task_index);
        node->drained = UINT32_MAX;
    }
    *table = (struct tfos__cluster_node_table){
        .nodes = nodes, .count = roles->node_count, .opened_ms = tfos__now_ms()};
    return TFOS_OK;
}

void tfos__cluster_node_reset(struct tfos__cluster_node *node,
                              const struct tfos__cluster_node *hello)
{
    struct tfos__cluster_node fresh = *hello;
    fresh.executor_id = node->executor_id;
    fresh.job_name = node->job_name;
    fresh.task_index = node->task_index;
    fresh.drained = UINT32_MAX;
    memcpy(fresh.name, node->name, sizeof(fresh.name));
    json_decref(node->report);
    json_decref(node->gpus);
    tfos__free(node->tensorboard);
    *node = fresh;
}

bool tfos__cluster_node_is_over(const struct tfos__cluster_node *node)
{
    return node->state >= TFOS__CLUSTER_NODE_ENDED;
}

bool tfos__cluster_node_is_trainer(const struct tfos__cluster_node *node)
{
    return strcmp(node->job_name, "ps") != 0 && strcmp(node->job_name, "evaluator") != 0;
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
    TFOS__CLUSTER_EACH_NODE (node, table) {
        const char *candidate = node->job_name;
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
        TFOS__CLUSTER_EACH_NODE (node, table) {
            char address[TFOS__ADDRESS_SIZE];
            if (strcmp(node->job_name, job) != 0)
                continue;
            tfos__address_join(node->host, node->port, address);
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
    TFOS__CLUSTER_EACH_NODE (node, table) {
        json_decref(node->report);
        json_decref(node->gpus);
        tfos__free(node->tensorboard);
    }
    tfos__free(table->nodes);
    *table = (struct tfos__cluster_node_table){0};
}

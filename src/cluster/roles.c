// SPDX-License-Identifier: Apache-2.0
// Gives out roles by executor id, in the order that TensorFlowOnSpark's users know.
#include "cluster/roles.h"

#include <ctype.h>
#include <string.h>

#include "base/fail.h"

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

void tfos__cluster_roles_find(const struct tfos__cluster_roles *roles, int executor_id,
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

bool tfos__cluster_roles_is_trainer(const char *job_name)
{
    return strcmp(job_name, "ps") != 0 && strcmp(job_name, "evaluator") != 0;
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
        tfos__cluster_roles_find(roles, id, &job_name, &task_index);
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

// SPDX-License-Identifier: Apache-2.0
// Executor ids give the tasks of a job in order, so only the jobs of a spec need sorting.
#include "cluster/registry.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/memory.h"

enum tfos_status tfos__registry_init(struct tfos__node_table *table,
                                     const struct tfos__roles *roles, struct tfos_error *err)
{
    struct tfos__entry *entries = tfos__alloc((size_t)roles->node_count, sizeof(*entries));
    if (!entries)
        return tfos__no_memory(err, "rendezvous", "the table of nodes");
    for (int id = 0; id < roles->node_count; id++) {
        struct tfos__entry *entry = &entries[id];
        entry->executor_id = id;
        tfos__roles_find(roles, id, &entry->job_name, &entry->task_index);
        snprintf(entry->name, sizeof(entry->name), "%s:%d", entry->job_name, entry->task_index);
        entry->drained = UINT32_MAX;
    }
    *table = (struct tfos__node_table){
        .entries = entries, .count = roles->node_count, .opened_ms = tfos__now_ms()};
    return TFOS_OK;
}

void tfos__registry_reset(struct tfos__entry *entry)
{
    struct tfos__entry fresh = {.executor_id = entry->executor_id,
                                .job_name = entry->job_name,
                                .task_index = entry->task_index,
                                .drained = UINT32_MAX};
    snprintf(fresh.name, sizeof(fresh.name), "%s", entry->name);
    json_decref(entry->report);
    tfos__free(entry->tensorboard);
    *entry = fresh;
}

bool tfos__registry_is_over(const struct tfos__entry *entry)
{
    return entry->state >= TFOS__ENTRY_ENDED;
}

bool tfos__registry_is_trainer(const struct tfos__entry *entry)
{
    return tfos__roles_is_trainer(entry->job_name);
}

const char *tfos__registry_state_name(enum tfos__entry_state state)
{
    static const char *const names[] = {"missing", "registered", "running",
                                        "ended",   "failed",     "lost"};
    return names[state];
}

/// The job whose name comes next after `name` (NULL: the first), or NULL.
static const char *next_job(const struct tfos__node_table *table, const char *name)
{
    const char *next = NULL;
    for (int id = 0; id < table->count; id++) {
        const char *candidate = table->entries[id].job_name;
        if ((!name || strcmp(candidate, name) > 0) && (!next || strcmp(candidate, next) < 0))
            next = candidate;
    }
    return next;
}

json_t *tfos__spec_json(const struct tfos__node_table *table)
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
            if (strcmp(table->entries[id].job_name, job) != 0)
                continue;
            tfos__address_join(table->entries[id].host, table->entries[id].port, address);
            if (json_array_append_new(tasks, json_string(address)) != 0)
                goto release_spec;
        }
    }
    return spec;

release_spec:
    json_decref(spec);
    return NULL;
}

void tfos__registry_clear(struct tfos__node_table *table)
{
    for (int id = 0; id < table->count; id++) {
        json_decref(table->entries[id].report);
        tfos__free(table->entries[id].tensorboard);
    }
    tfos__free(table->entries);
    *table = (struct tfos__node_table){0};
}

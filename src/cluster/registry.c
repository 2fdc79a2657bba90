// SPDX-License-Identifier: Apache-2.0
// The entries of the nodes. Entries stay where they are for the life of the cluster, so others may
// point at them.
#include "cluster/registry.h"

#include <stdio.h>

#include "base/memory.h"

enum tfos_status tfos__registry_init(const struct tfos__roles *roles, struct tfos__entry **entries,
                                     struct tfos_error *err)
{
    struct tfos__entry *table = tfos__alloc((size_t)roles->node_count, sizeof(*table));
    if (!table)
        return tfos__no_memory(err, "rendezvous", "the table of nodes");
    for (int id = 0; id < roles->node_count; id++) {
        struct tfos__entry *entry = &table[id];
        entry->executor_id = id;
        tfos__roles_find(roles, id, &entry->job_name, &entry->task_index);
        snprintf(entry->name, sizeof(entry->name), "%s:%d", entry->job_name, entry->task_index);
        entry->drained = UINT32_MAX;
    }
    *entries = table;
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

void tfos__registry_clear(struct tfos__entry *entries, int count)
{
    if (!entries)
        return;
    for (int id = 0; id < count; id++) {
        json_decref(entries[id].report);
        tfos__free(entries[id].tensorboard);
    }
    tfos__free(entries);
}

// SPDX-License-Identifier: Apache-2.0
// Builds the cluster spec. Executor ids give the tasks of a job in order, so only the jobs need
// sorting.
#include "cluster/spec.h"

#include <string.h>

#include "base/address.h"

/// The job whose name comes next after `name` (NULL: the first), or NULL.
static const char *next_job(const struct tfos__entry *entries, int count, const char *name)
{
    const char *next = NULL;
    for (int id = 0; id < count; id++) {
        const char *candidate = entries[id].job_name;
        if ((!name || strcmp(candidate, name) > 0) && (!next || strcmp(candidate, next) < 0))
            next = candidate;
    }
    return next;
}

json_t *tfos__spec_json(const struct tfos__entry *entries, int count)
{
    json_t *spec = json_object();
    if (!spec)
        return NULL;
    for (const char *job = next_job(entries, count, NULL); job;
         job = next_job(entries, count, job)) {
        json_t *tasks = json_array();
        if (json_object_set_new(spec, job, tasks) != 0)
            goto release_spec;
        for (int id = 0; id < count; id++) {
            char address[TFOS__ADDRESS_SIZE];
            if (strcmp(entries[id].job_name, job) != 0)
                continue;
            tfos__address_join(entries[id].host, entries[id].port, address);
            if (json_array_append_new(tasks, json_string(address)) != 0)
                goto release_spec;
        }
    }
    return spec;

release_spec:
    json_decref(spec);
    return NULL;
}

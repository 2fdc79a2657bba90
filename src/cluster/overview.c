// SPDX-License-Identifier: Apache-2.0
// Writes the state of a cluster down for people and programs that watch it.
#include "cluster/overview.h"

#include <unistd.h>

#include "base/clock.h"
#include "cluster/cluster.h"

static const char *state_name(enum tfos__cluster_state state)
{
    static const char *const names[] = {"waiting", "running", "failed", "ended"};
    return names[state];
}

static json_t *describe(const struct tfos__entry *entry, int64_t now_ms)
{
    json_int_t age_ms = entry->peer ? (json_int_t)(now_ms - entry->heard_ms) : -1;
    json_t *node =
        json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:I, s:I, s:s, s:I}", "executor_id",
                  entry->executor_id, "executor", entry->executor, "job_name", entry->job_name,
                  "task_index", entry->task_index, "host", entry->host, "port", entry->port, "pid",
                  (json_int_t)entry->pid, "trainer_pid", (json_int_t)entry->trainer_pid, "state",
                  tfos__registry_state_name(entry->state), "heartbeat_age_ms", age_ms);
    json_t *figures = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:O?, s:s?, s:s?}", "rows_written",
        (json_int_t)entry->rows_written, "rows_read", (json_int_t)entry->rows_read, "bytes_written",
        (json_int_t)entry->bytes_written, "ring_used", (json_int_t)entry->ring_used, "ring_size",
        (json_int_t)entry->ring_size, "writers", (json_int_t)entry->writers, "terminated",
        (int)entry->is_terminated, "report", entry->report, "exit",
        entry->exit[0] ? entry->exit : NULL, "tensorboard", entry->tensorboard);
    if (json_object_update(node, figures) != 0) {
        json_decref(node);
        node = NULL;
    }
    json_decref(figures);
    return node;
}

json_t *tfos__overview_json(const struct tfos__cluster *cluster)
{
    int64_t now_ms = tfos__now_ms();
    int registered = 0;
    json_t *nodes = json_array();
    for (int id = 0; id < cluster->roles.node_count; id++) {
        registered += cluster->entries[id].state != TFOS__ENTRY_MISSING;
        if (json_array_append_new(nodes, describe(&cluster->entries[id], now_ms)) != 0) {
            json_decref(nodes);
            return NULL;
        }
    }
    return json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:i, s:i, s:I, s:o}", "type", "status", "cluster_id",
        cluster->cluster_id, "pid", (json_int_t)getpid(), "address", cluster->address, "state",
        state_name(cluster->state), "message", cluster->failure_message, "uptime_s",
        (json_int_t)((now_ms - cluster->opened_ms) / 1000), "node_count", cluster->roles.node_count,
        "registered", registered, "feed", (json_int_t)cluster->feeding.feed, "nodes", nodes);
}

// SPDX-License-Identifier: Apache-2.0
// Writes the state of a cluster down for people and programs that watch it.
#include "cluster/overview.h"

#include <unistd.h>

#include "base/clock.h"
#include "cluster/cluster_state.h"

#define ROUNDED_LIMIT 1e12 // numbers above it are as good as whole

static const char *state_name(enum tfos__cluster_state state)
{
    static const char *const names[] = {"waiting", "running", "failed", "ended"};
    return names[state];
}

/// Three digits behind the point, for no watcher wants more; null for a negative value.
static json_t *rounded(double value)
{
    if (value < 0)
        return json_null();
    return json_real(value < ROUNDED_LIMIT ? (double)(int64_t)(value * 1000 + 0.5) / 1000 : value);
}

/// The members that say how fast rows go; all null while nobody knows.
static json_t *describe_rates(const struct tfos__rates *rates)
{
    bool is_known = rates->is_known;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "rows_per_second",
                     rounded(is_known ? rates->rows_per_second : -1), "bytes_per_second",
                     rounded(is_known ? rates->bytes_per_second : -1), "ring_fill",
                     rounded(is_known ? rates->ring_fill : -1), "reader_wait",
                     rounded(is_known ? rates->reader_wait : -1), "writer_wait",
                     rounded(is_known ? rates->writer_wait : -1));
}

static json_t *describe_side(const struct tfos__rates *rates, bool is_moving)
{
    static const char *const names[] = {NULL, "spark", "trainer"};
    const char *name = is_moving && rates->is_known ? names[tfos__pace_side(rates)] : NULL;
    return name ? json_string(name) : json_null();
}

/// Adds the members of `more`, taken over, to `object`, which it gives back; NULL when out of
/// memory, without `object` then.
static json_t *joined(json_t *object, json_t *more)
{
    if (!object || json_object_update(object, more) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

static json_t *describe_queues(const struct tfos__cluster *cluster, const struct tfos__entry *entry)
{
    json_t *queues = json_object();
    for (int i = 0; i < cluster->queues.count && tfos__feeding_is_fed(&cluster->feeding, entry);
         i++)
        json_object_set_new(queues, cluster->queues.names[i],
                            json_pack("{s:b, s:b}", "drained", entry->drained >> i & 1,
                                      "terminated", entry->terminated >> i & 1));
    return queues;
}

static json_t *describe(const struct tfos__cluster *cluster, const struct tfos__entry *entry,
                        int64_t now_ms)
{
    uint32_t all = tfos__queues_mask(&cluster->queues);
    json_int_t age_ms = entry->peer ? (json_int_t)(now_ms - entry->heard_ms) : -1;
    struct tfos__rates rates = tfos__pace_rates(&entry->pace, now_ms);
    json_t *node =
        json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:I, s:I, s:s, s:I}", "executor_id",
                  entry->executor_id, "executor", entry->executor, "job_name", entry->job_name,
                  "task_index", entry->task_index, "host", entry->host, "port", entry->port, "pid",
                  (json_int_t)entry->pid, "trainer_pid", (json_int_t)entry->trainer_pid, "state",
                  tfos__registry_state_name(entry->state), "heartbeat_age_ms", age_ms);
    json_t *figures = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:O?, s:s?, s:s?, s:o}", "rows_written",
        (json_int_t)entry->rows_written, "rows_read", (json_int_t)entry->rows_read, "bytes_written",
        (json_int_t)entry->bytes_written, "ring_used", (json_int_t)entry->ring_used, "ring_size",
        (json_int_t)entry->ring_size, "writers", (json_int_t)entry->writers, "reader_wait_ms",
        (json_int_t)entry->reader_wait_ms, "writer_wait_ms", (json_int_t)entry->writer_wait_ms,
        "terminated", (entry->terminated & all) == all, "report", entry->report, "exit",
        entry->exit[0] ? entry->exit : NULL, "tensorboard", entry->tensorboard, "slower",
        describe_side(&rates, tfos__overview_is_moving(cluster)));
    node = joined(joined(node, figures), describe_rates(&rates));
    if (node && json_object_set_new(node, "queues", describe_queues(cluster, entry)) != 0) {
        json_decref(node);
        node = NULL;
    }
    return node;
}

/// What a trainer says of itself; in a synchronous cluster they all say about the same.
static json_t *first_report(const struct tfos__cluster *cluster)
{
    for (int id = 0; id < cluster->nodes.count; id++)
        if (json_object_size(cluster->nodes.entries[id].report) > 0)
            return cluster->nodes.entries[id].report;
    return NULL;
}

static bool is_reading(const struct tfos__cluster *cluster, const struct tfos__entry *entry)
{
    uint32_t all = tfos__queues_mask(&cluster->queues);
    return tfos__feeding_is_fed(&cluster->feeding, entry) && entry->state == TFOS__ENTRY_RUNNING &&
           (entry->terminated & all) != all;
}

/// Rates of all nodes that are fed: sums of what moves, means of shares.
static struct tfos__rates sum_rates(const struct tfos__cluster *cluster, int64_t now_ms)
{
    struct tfos__rates sum = {0};
    int count = 0;
    for (int id = 0; id < cluster->nodes.count; id++) {
        struct tfos__rates rates = tfos__pace_rates(&cluster->nodes.entries[id].pace, now_ms);
        if (!rates.is_known || !is_reading(cluster, &cluster->nodes.entries[id]))
            continue;
        count++;
        sum.rows_per_second += rates.rows_per_second;
        sum.bytes_per_second += rates.bytes_per_second;
        sum.ring_fill += rates.ring_fill;
        sum.reader_wait += rates.reader_wait;
        sum.writer_wait += rates.writer_wait;
    }
    if (count == 0)
        return sum;
    sum.is_known = true;
    sum.ring_fill /= count;
    sum.reader_wait /= count;
    sum.writer_wait /= count;
    return sum;
}

static int64_t count_feeders(const struct tfos__cluster *cluster)
{
    int64_t count = 0;
    for (const struct tfos__feeder *feeder = cluster->feeding.feeders; feeder;
         feeder = feeder->next)
        count += feeder->state == TFOS__FEEDER_FEEDING &&
                 feeder->queue == cluster->forecast.feed.queue &&
                 feeder->feed == cluster->forecast.feed.number;
    return count;
}

/// A count, or null for 0.
static json_t *count_or_null(int64_t count)
{
    return count > 0 ? json_integer(count) : json_null();
}

static json_t *describe_progress(const struct tfos__cluster *cluster, int64_t now_ms)
{
    const struct tfos__forecast *forecast = &cluster->forecast;
    struct tfos__moment moment = {.now_ms = now_ms,
                                  .row_count =
                                      cluster->feeding.queues[forecast->feed.queue].row_count,
                                  .feeder_count = count_feeders(cluster)};
    struct tfos__outlook outlook = tfos__forecast_look(forecast, &moment);
    struct tfos__rates rates = sum_rates(cluster, now_ms);
    bool is_moving = tfos__overview_is_moving(cluster);
    json_t *progress = json_pack(
        "{s:b, s:I, s:o, s:o, s:{s:I, s:o}, s:o, s:o, s:o, s:O?}", "feeding", (int)is_moving,
        "rows", (json_int_t)outlook.row_count, "epoch", count_or_null(forecast->plan.epoch),
        "epochs", count_or_null(forecast->plan.epoch_count), "partitions", "done",
        (json_int_t)forecast->complete_count, "total",
        count_or_null(forecast->plan.partition_count), "fraction", rounded(outlook.fraction),
        "seconds_left", rounded(outlook.seconds_left), "slower", describe_side(&rates, is_moving),
        "report", first_report(cluster));
    return joined(progress, describe_rates(&rates));
}

bool tfos__overview_is_moving(const struct tfos__cluster *cluster)
{
    const struct tfos__feeding *feeding = &cluster->feeding;
    bool is_moving = feeding->feeders != NULL;
    for (int queue = 0; queue < cluster->queues.count && !is_moving; queue++)
        is_moving = feeding->queues[queue].feed > feeding->queues[queue].ended_feed;
    for (int id = 0; id < cluster->nodes.count && !is_moving; id++)
        is_moving =
            tfos__feeding_unread_queues(&cluster->feeding, &cluster->nodes.entries[id]) != 0;
    return is_moving && cluster->state == TFOS__CLUSTER_RUNNING;
}

json_t *tfos__overview_figures(const struct tfos__cluster *cluster)
{
    int64_t now_ms = tfos__now_ms();
    json_t *nodes = json_object();
    for (int id = 0; id < cluster->nodes.count; id++) {
        const struct tfos__entry *entry = &cluster->nodes.entries[id];
        struct tfos__rates rates = tfos__pace_rates(&entry->pace, now_ms);
        if (tfos__feeding_is_fed(&cluster->feeding, entry))
            (void)json_object_set_new(nodes, entry->name, describe_rates(&rates));
    }
    return json_pack("{s:s, s:I, s:o, s:o}", "type", "figures", "uptime_s",
                     (json_int_t)((now_ms - cluster->nodes.opened_ms) / 1000), "progress",
                     describe_progress(cluster, now_ms), "nodes", nodes);
}

json_t *tfos__overview_json(const struct tfos__cluster *cluster)
{
    int64_t now_ms = tfos__now_ms();
    int registered = 0;
    json_t *nodes = json_array();
    for (int id = 0; id < cluster->nodes.count; id++) {
        registered += cluster->nodes.entries[id].state != TFOS__ENTRY_MISSING;
        if (json_array_append_new(nodes, describe(cluster, &cluster->nodes.entries[id], now_ms)) !=
            0) {
            json_decref(nodes);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:i, s:i, s:I, s:o, s:o}", "type",
                     "status", "cluster_id", cluster->cluster_id, "pid", (json_int_t)getpid(),
                     "address", cluster->address, "state", state_name(cluster->state), "message",
                     cluster->failure_message, "uptime_s",
                     (json_int_t)((now_ms - cluster->nodes.opened_ms) / 1000), "node_count",
                     cluster->nodes.count, "registered", registered, "feed",
                     (json_int_t)cluster->feeding.queues[0].feed, "progress",
                     describe_progress(cluster, now_ms), "nodes", nodes);
}

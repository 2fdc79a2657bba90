// SPDX-License-Identifier: Apache-2.0
// The state of a cluster for people and programs that watch it.
#include "cluster/status_document.h"

#include <unistd.h>

#include "base/clock.h"
#include "cluster/cluster_state.h"

#define ROUNDED_LIMIT 1e12 // numbers above it are as good as whole

static const char *state_name(enum tfos__cluster_state state)
{
    static const char *const names[] = {"waiting", "running", "failed", "ended"};
    return names[state];
}

/// Three digits behind the point; null for a negative value.
static json_t *rounded(double value)
{
    if (value < 0)
        return json_null();
    return json_real(value < ROUNDED_LIMIT ? (double)(int64_t)(value * 1000 + 0.5) / 1000 : value);
}

/// The members for the rates; all null while they are not known.
static json_t *describe_rates(const struct tfos__cluster_rates *rates)
{
    bool is_known = rates->is_known;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "rows_per_second",
                     rounded(is_known ? rates->rows_per_second : -1), "bytes_per_second",
                     rounded(is_known ? rates->bytes_per_second : -1), "ring_fill",
                     rounded(is_known ? rates->ring_fill : -1), "reader_wait",
                     rounded(is_known ? rates->reader_wait : -1), "writer_wait",
                     rounded(is_known ? rates->writer_wait : -1));
}

/// A share of the time of a step; null while there are no steps.
static json_t *step_part(const struct tfos__cluster_step_split *split, double share)
{
    return split->is_stepping ? rounded(split->step_ms * share) : json_null();
}

/// The most steps that a node has pushed.
static int64_t most_pushed(const struct tfos__cluster *cluster, int64_t now_ms)
{
    int64_t most = 0;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        int64_t steps = tfos__cluster_step_progress_split(&node->steps, now_ms).pushed_steps;
        most = steps > most ? steps : most;
    }
    return most;
}

/// The members for steps; `most`: of most_pushed().
static json_t *describe_steps(const struct tfos__cluster_step_split *split, int64_t most)
{
    bool has_pushed = split->is_stepping && split->staleness > 0;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "step_ms",
                     step_part(split, 1), "step_compute_ms", step_part(split, split->compute),
                     "step_exchange_ms", step_part(split, split->exchange), "step_wait_ms",
                     step_part(split, split->wait), "step_data_ms",
                     split->has_data ? step_part(split, split->data) : json_null(), "steps_pushed",
                     has_pushed ? json_integer(split->pushed_steps) : json_null(), "steps_behind",
                     has_pushed ? json_integer(most - split->pushed_steps) : json_null(),
                     "staleness", has_pushed ? rounded(split->stale_steps) : json_null(),
                     "staleness_limit", has_pushed ? json_integer(split->staleness) : json_null());
}

/// Which node the others wait for, and why; null when there is none.
static json_t *describe_straggler(const struct tfos__cluster *cluster, int64_t now_ms)
{
    static const char *const causes[] = {NULL, "compute", "data", "silent"};
    struct tfos__cluster_step_tally tally = {0};
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        struct tfos__cluster_step_split split =
            tfos__cluster_step_progress_split(&node->steps, now_ms);
        if (node->state == TFOS__CLUSTER_NODE_RUNNING)
            tfos__cluster_step_tally_add(&tally, node->executor_id, &split);
    }
    enum tfos__cluster_delay delay = tfos__cluster_step_tally_delay(&tally);
    if (delay == TFOS__DELAY_NONE)
        return json_null();
    const struct tfos__cluster_node *last = &cluster->table.nodes[tally.last];
    struct tfos__cluster_rates rates = tfos__cluster_throughput_rates(&last->throughput, now_ms);
    // A loop of the user's own does not tell when it waits for data; the feed does.
    if (delay == TFOS__DELAY_COMPUTE && !tally.split.has_data &&
        tfos__cluster_throughput_bottleneck(&rates) == TFOS__BOTTLENECK_SPARK)
        delay = TFOS__DELAY_DATA;
    return json_pack("{s:i, s:s, s:s, s:o}", "executor_id", last->executor_id, "node", last->name,
                     "cause", causes[delay], "wait", rounded(tally.most));
}

static json_t *describe_bottleneck(const struct tfos__cluster_rates *rates, bool is_feeding)
{
    static const char *const names[] = {NULL, "spark", "trainer"};
    const char *name =
        is_feeding && rates->is_known ? names[tfos__cluster_throughput_bottleneck(rates)] : NULL;
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

static json_t *describe_queues(const struct tfos__cluster *cluster,
                               const struct tfos__cluster_node *node)
{
    json_t *queues = json_object();
    for (int i = 0;
         i < cluster->queues.count && tfos__cluster_scheduler_is_fed(&cluster->scheduler, node);
         i++)
        json_object_set_new(queues, cluster->queues.names[i],
                            json_pack("{s:b, s:b}", "drained", node->drained >> i & 1, "terminated",
                                      node->terminated >> i & 1));
    return queues;
}

static json_t *describe(const struct tfos__cluster *cluster, const struct tfos__cluster_node *node,
                        int64_t most, int64_t now_ms)
{
    uint32_t all = tfos__queue_names_mask(&cluster->queues);
    json_int_t age_ms = node->session ? (json_int_t)(now_ms - node->received_ms) : -1;
    struct tfos__cluster_rates rates = tfos__cluster_throughput_rates(&node->throughput, now_ms);
    struct tfos__cluster_step_split split = tfos__cluster_step_progress_split(&node->steps, now_ms);
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:I, s:I, s:s, s:I}", "executor_id",
                  node->executor_id, "executor", node->executor, "job_name", node->job_name,
                  "task_index", node->task_index, "host", node->host, "port", node->port, "pid",
                  (json_int_t)node->pid, "trainer_pid", (json_int_t)node->trainer_pid, "state",
                  tfos__cluster_node_state_name(node->state), "heartbeat_age_ms", age_ms);
    json_t *figures = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:O?, s:s?, s:s?, s:I, s:o}", "rows_written",
        (json_int_t)node->rows_written, "rows_read", (json_int_t)node->rows_read, "bytes_written",
        (json_int_t)node->bytes_written, "ring_used", (json_int_t)node->ring_used, "ring_size",
        (json_int_t)node->ring_size, "writers", (json_int_t)node->writers, "reader_wait_ms",
        (json_int_t)node->reader_wait_ms, "writer_wait_ms", (json_int_t)node->writer_wait_ms,
        "terminated", (node->terminated & all) == all, "report", node->report, "exit",
        node->exit[0] ? node->exit : NULL, "tensorboard", node->tensorboard, "tensorboard_pid",
        (json_int_t)node->tensorboard_pid, "slower",
        describe_bottleneck(&rates, tfos__cluster_status_is_feeding(cluster)));
    object = joined(joined(object, figures), describe_rates(&rates));
    object = joined(object, describe_steps(&split, most));
    json_t *gpus = node->gpus ? json_incref(node->gpus) : json_array();
    if (object && (json_object_set_new(object, "gpus", gpus) != 0 ||
                   json_object_set_new(object, "queues", describe_queues(cluster, node)) != 0)) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

/// The report of a trainer; in a synchronous cluster they are all about the same.
static json_t *first_report(const struct tfos__cluster *cluster)
{
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        if (json_object_size(node->report) > 0)
            return node->report;
    return NULL;
}

static bool is_reading(const struct tfos__cluster *cluster, const struct tfos__cluster_node *node)
{
    uint32_t all = tfos__queue_names_mask(&cluster->queues);
    return tfos__cluster_scheduler_is_fed(&cluster->scheduler, node) &&
           node->state == TFOS__CLUSTER_NODE_RUNNING && (node->terminated & all) != all;
}

/// Rates of all nodes that are fed: sums of what moves, means of shares.
static struct tfos__cluster_rates sum_rates(const struct tfos__cluster *cluster, int64_t now_ms)
{
    struct tfos__cluster_rates sum = {0};
    int count = 0;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        struct tfos__cluster_rates rates =
            tfos__cluster_throughput_rates(&node->throughput, now_ms);
        if (!rates.is_known || !is_reading(cluster, node))
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
    for (const struct tfos__cluster_feeder *feeder = cluster->scheduler.feeders; feeder;
         feeder = feeder->next)
        count += feeder->state == TFOS__FEEDER_FEEDING &&
                 feeder->queue == cluster->eta.feed.queue &&
                 feeder->feed == cluster->eta.feed.number;
    return count;
}

/// A count, or null for 0.
static json_t *count_or_null(int64_t count)
{
    return count > 0 ? json_integer(count) : json_null();
}

static json_t *describe_progress(const struct tfos__cluster *cluster, int64_t now_ms)
{
    const struct tfos__cluster_eta *eta = &cluster->eta;
    struct tfos__cluster_eta_moment moment = {
        .now_ms = now_ms,
        .row_count = cluster->scheduler.queues[eta->feed.queue].row_count,
        .feeder_count = count_feeders(cluster)};
    struct tfos__cluster_progress progress = tfos__cluster_eta_estimate(eta, &moment);
    struct tfos__cluster_rates rates = sum_rates(cluster, now_ms);
    bool is_feeding = tfos__cluster_status_is_feeding(cluster);
    json_t *object = json_pack(
        "{s:b, s:I, s:I, s:o, s:o, s:{s:I, s:o}, s:o, s:o, s:o, s:O?, s:o}", "feeding",
        (int)is_feeding, "epochs_passed", (json_int_t)progress.passed_epoch_count, "rows",
        (json_int_t)progress.row_count, "epoch", count_or_null(eta->plan.epoch), "epochs",
        count_or_null(eta->plan.epoch_count), "partitions", "done", (json_int_t)eta->complete_count,
        "total", count_or_null(eta->plan.partition_count), "fraction", rounded(progress.fraction),
        "seconds_left", rounded(progress.seconds_left), "slower",
        describe_bottleneck(&rates, is_feeding), "report", first_report(cluster), "straggler",
        describe_straggler(cluster, now_ms));
    return joined(object, describe_rates(&rates));
}

bool tfos__cluster_status_is_feeding(const struct tfos__cluster *cluster)
{
    const struct tfos__cluster_scheduler *scheduler = &cluster->scheduler;
    bool is_feeding = scheduler->feeders != NULL;
    for (int queue = 0; queue < cluster->queues.count && !is_feeding; queue++)
        is_feeding = scheduler->queues[queue].feed > scheduler->queues[queue].ended_feed;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        is_feeding |= tfos__cluster_scheduler_unread_queues(scheduler, node) != 0;
    return is_feeding && cluster->state == TFOS__CLUSTER_RUNNING;
}

bool tfos__cluster_status_has_figures(const struct tfos__cluster *cluster, int64_t now_ms)
{
    if (tfos__cluster_status_is_feeding(cluster))
        return true;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        if (tfos__cluster_step_progress_split(&node->steps, now_ms).is_stepping)
            return true;
    return false;
}

json_t *tfos__cluster_status_figures(const struct tfos__cluster *cluster)
{
    int64_t now_ms = tfos__now_ms(), most = most_pushed(cluster, now_ms);
    json_t *nodes = json_object();
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        struct tfos__cluster_rates rates =
            tfos__cluster_throughput_rates(&node->throughput, now_ms);
        struct tfos__cluster_step_split split =
            tfos__cluster_step_progress_split(&node->steps, now_ms);
        if (tfos__cluster_scheduler_is_fed(&cluster->scheduler, node) || split.is_known)
            (void)json_object_set_new(nodes, node->name,
                                      joined(describe_rates(&rates), describe_steps(&split, most)));
    }
    return json_pack("{s:s, s:I, s:o, s:o}", "type", "figures", "uptime_s",
                     (json_int_t)((now_ms - cluster->table.opened_ms) / 1000), "progress",
                     describe_progress(cluster, now_ms), "nodes", nodes);
}

json_t *tfos__cluster_status_document(const struct tfos__cluster *cluster)
{
    int64_t now_ms = tfos__now_ms(), most = most_pushed(cluster, now_ms);
    int registered = 0;
    json_t *nodes = json_array();
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        registered += node->state != TFOS__CLUSTER_NODE_MISSING;
        if (json_array_append_new(nodes, describe(cluster, node, most, now_ms)) != 0) {
            json_decref(nodes);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:b, s:I, s:i, s:i, s:I, s:o, s:o}", "type",
                     "status", "cluster_id", cluster->cluster_id, "pid", (json_int_t)getpid(),
                     "address", cluster->address, "state", state_name(cluster->state), "message",
                     cluster->failure_message, "stop_requested", (int)cluster->is_stop_requested,
                     "uptime_s", (json_int_t)((now_ms - cluster->table.opened_ms) / 1000),
                     "node_count", cluster->table.count, "registered", registered, "feed",
                     (json_int_t)cluster->scheduler.queues[0].feed, "progress",
                     describe_progress(cluster, now_ms), "nodes", nodes);
}

// SPDX-License-Identifier: Apache-2.0
// A feeder is undecided until the cluster runs and every earlier attempt of its partition is
// settled: its node reported how far it came, or is over. While any is not, the node gets a fence,
// which makes it answer.
#include "cluster/feed_scheduler.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/session.h"

#define SCHEMA_LIMIT (1 << 20)

static void note_progress(struct tfos__cluster_scheduler *scheduler)
{
    scheduler->progress_ms = tfos__now_ms();
}

static void dismiss(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder,
                    const char *type, const char *key, const char *reason)
{
    if (feeder->state == TFOS__FEEDER_UNDECIDED)
        scheduler->undecided_count--;
    feeder->state = TFOS__FEEDER_DISMISSED;
    tfos__cluster_session_send(feeder->session, json_pack("{s:s, s:s}", "type", type, key, reason));
}

static void skip(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder,
                 const char *reason)
{
    dismiss(scheduler, feeder, "skip", "reason", reason);
}

static void fail(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder,
                 const char *message)
{
    dismiss(scheduler, feeder, "failed", "message", message);
}

bool tfos__cluster_scheduler_is_fed(const struct tfos__cluster_scheduler *scheduler,
                                    const struct tfos__cluster_node *node)
{
    return scheduler->is_feeding && node->feed_port > 0 &&
           tfos__cluster_roles_is_fed(node->job_name);
}

static uint32_t bit_of(int queue)
{
    return UINT32_C(1) << queue;
}

bool tfos__cluster_scheduler_takes_rows(const struct tfos__cluster_node *node, int queue)
{
    return node->session && !tfos__cluster_node_is_over(node) &&
           !(node->terminated & bit_of(queue)) && !node->is_stopping;
}

/// How near `node` is to the feeder: 2 in the same executor, 1 on the same host, else 0.
static int locality(const struct tfos__cluster_feeder *feeder,
                    const struct tfos__cluster_node *node)
{
    if (strcmp(feeder->host, node->host) != 0)
        return 0;
    return feeder->executor_pid == node->executor_pid ? 2 : 1;
}

bool tfos__cluster_scheduler_is_candidate(const struct tfos__cluster_scheduler *scheduler,
                                          const struct tfos__cluster_feeder *feeder,
                                          const struct tfos__cluster_node *node)
{
    return tfos__cluster_scheduler_is_fed(scheduler, node) &&
           tfos__cluster_node_is_trainer(node) != feeder->is_for_evaluator;
}

/// The node to feed, or NULL when the feeder should skip: no node takes rows, or its own executor's
/// have stopped to.
static struct tfos__cluster_node *choose(const struct tfos__cluster_scheduler *scheduler,
                                         const struct tfos__cluster_feeder *feeder)
{
    struct tfos__cluster_node *best = NULL;
    bool has_own = false;
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table) {
        if (!tfos__cluster_scheduler_is_candidate(scheduler, feeder, node))
            continue;
        int near = locality(feeder, node);
        has_own = has_own || near == 2;
        if (!tfos__cluster_scheduler_takes_rows(node, feeder->queue))
            continue;
        int gain = best ? near - locality(feeder, best) : 1;
        if (gain == 0)
            gain = best->feeder_count - node->feeder_count;
        if (gain > 0 || (gain == 0 && node->fed_sequence < best->fed_sequence))
            best = node;
    }
    return best && has_own && locality(feeder, best) < 2 ? NULL : best;
}

static struct tfos__cluster_partitions *partitions_of(struct tfos__cluster_scheduler *scheduler,
                                                      const struct tfos__cluster_feeder *feeder)
{
    return &scheduler->queues[feeder->queue].partitions;
}

struct tfos__cluster_partition *
tfos__cluster_scheduler_find_partition(struct tfos__cluster_scheduler *scheduler,
                                       const struct tfos__cluster_feeder *feeder)
{
    return tfos__cluster_partition_find(partitions_of(scheduler, feeder), feeder->feed,
                                        feeder->partition);
}

/// Whether all earlier attempts are closed; sends fences to the nodes of those that are not.
static bool is_settled(const struct tfos__cluster_scheduler *scheduler, int queue,
                       struct tfos__cluster_partition *partition, int64_t attempt_number)
{
    const struct tfos__partition *key = &partition->base;
    for (struct tfos__cluster_attempt *attempt = partition->attempts; attempt;
         attempt = attempt->next) {
        if (attempt->fence >= attempt_number)
            continue;
        attempt->fence = attempt_number;
        tfos__cluster_session_send(
            attempt->node->session,
            json_pack("{s:s, s:s, s:I, s:I, s:I}", "type", "fence", "queue",
                      scheduler->names->names[queue], "feed", (json_int_t)key->feed, "partition",
                      (json_int_t)key->number, "attempt", (json_int_t)attempt_number));
    }
    return !partition->attempts;
}

json_t *tfos__cluster_scheduler_describe_node(const struct tfos__cluster_scheduler *scheduler,
                                              const struct tfos__cluster_feeder *feeder,
                                              const struct tfos__cluster_node *node)
{
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(node->host, node->feed_port, address);
    char *socket_name = tfos__format("tfos-feed-%s-%d", scheduler->cluster_id, node->executor_id);
    json_t *description =
        socket_name ? json_pack("{s:i, s:s, s:b, s:s, s:s}", "executor_id", node->executor_id,
                                "node", node->name, "local", locality(feeder, node) > 0,
                                "socket_name", socket_name, "address", address)
                    : NULL;
    tfos__free(socket_name);
    return description;
}

static int count_trainers(const struct tfos__cluster_scheduler *scheduler,
                          const struct tfos__cluster_feeder *feeder)
{
    int count = 0;
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table)
        count += tfos__cluster_scheduler_is_candidate(scheduler, feeder, node) &&
                 tfos__cluster_scheduler_takes_rows(node, feeder->queue);
    return count;
}

static void grant(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder,
                  struct tfos__cluster_partition *partition, struct tfos__cluster_node *node)
{
    json_t *target = json_pack("{s:s, s:s, s:I, s:i}", "type", "target", "queue",
                               scheduler->names->names[feeder->queue], "first_row",
                               (json_int_t)(feeder->has_results ? 0 : partition->rows), "trainers",
                               count_trainers(scheduler, feeder));
    json_t *place = tfos__cluster_scheduler_describe_node(scheduler, feeder, node);
    bool is_ready = target && place && json_object_update(target, place) == 0 &&
                    tfos__cluster_partition_begin(partitions_of(scheduler, feeder), partition, node,
                                                  feeder->attempt);
    json_decref(place);
    if (!is_ready) {
        json_decref(target);
        fail(scheduler, feeder, "rendezvous: no memory for a feeder");
        return;
    }
    node->feeder_count++;
    node->fed_sequence = ++scheduler->fed_sequence;
    node->drained &= ~bit_of(feeder->queue);
    feeder->node = node;
    feeder->state = TFOS__FEEDER_FEEDING;
    scheduler->undecided_count--;
    tfos__cluster_session_send(feeder->session, target);
}

static void decide(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder)
{
    if (scheduler->failure) {
        fail(scheduler, feeder, scheduler->failure);
        return;
    }
    if (!scheduler->is_started)
        return;
    if (!scheduler->is_feeding) {
        fail(scheduler, feeder,
             "rendezvous: the nodes of this cluster read their data themselves: start it "
             "with InputMode.SPARK to feed it");
        return;
    }
    if (feeder->is_for_evaluator && !scheduler->has_evaluator) {
        fail(scheduler, feeder,
             "rendezvous: this cluster has no evaluator to feed: start it with eval_node=True");
        return;
    }
    if (scheduler->is_ended || feeder->feed <= scheduler->queues[feeder->queue].ended_feed) {
        skip(scheduler, feeder, "the feed has ended");
        return;
    }
    struct tfos__cluster_partition *partition =
        tfos__cluster_scheduler_find_partition(scheduler, feeder);
    if (!partition) {
        skip(scheduler, feeder, "the feed has ended");
        return;
    }
    if (feeder->attempt < partition->newest_attempt ||
        feeder->attempt <= partition->granted_attempt) {
        fail(scheduler, feeder, TFOS__FEEDER_SUPERSEDED);
        return;
    }
    if (!is_settled(scheduler, feeder->queue, partition, feeder->attempt))
        return;
    struct tfos__cluster_node *node = choose(scheduler, feeder);
    if (node)
        grant(scheduler, feeder, partition, node);
    else
        skip(scheduler, feeder,
             feeder->is_for_evaluator ? "the evaluator wants no more rows or has returned"
                                      : TFOS__FEEDER_UNWANTED);
}

void tfos__cluster_scheduler_advance(struct tfos__cluster_scheduler *scheduler)
{
    if (scheduler->undecided_count == 0)
        return;
    for (struct tfos__cluster_feeder *feeder = scheduler->feeders; feeder; feeder = feeder->next)
        if (feeder->state == TFOS__FEEDER_UNDECIDED)
            decide(scheduler, feeder);
}

static enum tfos_status read_job(const json_t *message, struct tfos__cluster_feeder *feeder,
                                 struct tfos_error *err)
{
    const char *job = tfos__json_string_or(message, "job", "trainers");
    feeder->is_for_evaluator = strcmp(job, "evaluator") == 0;
    if (!feeder->is_for_evaluator && strcmp(job, "trainers") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"job\" of a feeder is \"%.40s\": expected \"trainers\" or "
                          "\"evaluator\"",
                          job);
    return TFOS_OK;
}

static enum tfos_status read_hello(const json_t *message, struct tfos__cluster_feeder *feeder,
                                   struct tfos_error *err)
{
    const char *host;
    TFOS__TRY(read_job(message, feeder, err));
    TFOS__TRY(tfos__json_get_int(message, "feed", 1, INT64_MAX - 1, &feeder->feed, err));
    TFOS__TRY(tfos__json_get_int(message, "partition", 0, INT64_MAX - 1, &feeder->partition, err));
    TFOS__TRY(tfos__json_get_int(message, "attempt", 0, INT64_MAX - 1, &feeder->attempt, err));
    TFOS__TRY(
        tfos__json_get_int(message, "executor_pid", 0, INT32_MAX, &feeder->executor_pid, err));
    TFOS__TRY(tfos__json_get_string(message, "host", &host, err));
    if (strlen(host) >= sizeof(feeder->host))
        return tfos__fail(err, TFOS_INVALID, "rendezvous: host of a feeder: longer than %zu bytes",
                          sizeof(feeder->host) - 1);
    memcpy(feeder->host, host, strlen(host) + 1);
    feeder->has_results = tfos__json_bool_or(message, "results", false);
    return TFOS_OK;
}

enum tfos_status tfos__cluster_scheduler_open(struct tfos__cluster_scheduler *scheduler,
                                              struct tfos__cluster_session *session,
                                              const json_t *message, struct tfos_error *err)
{
    struct tfos__cluster_feeder hello = {.session = session};
    struct tfos_error unknown;
    TFOS__TRY(read_hello(message, &hello, err));
    enum tfos_status known = tfos__queue_names_get(
        scheduler->names, tfos__json_string_or(message, "queue", NULL), &hello.queue, &unknown);
    struct tfos__cluster_feeder *feeder = tfos__alloc(1, sizeof(*feeder));
    if (!feeder)
        return tfos__no_memory(err, "rendezvous", "a feeder");
    *feeder = hello;
    feeder->next = scheduler->feeders;
    if (feeder->next)
        feeder->next->previous = feeder;
    scheduler->feeders = feeder;
    scheduler->undecided_count++;
    session->kind = TFOS__SESSION_FEEDER;
    session->feeder = feeder;
    note_progress(scheduler);
    if (known < 0) {
        tfos__fail_prefix(&unknown, "rendezvous");
        fail(scheduler, feeder, unknown.message);
        return TFOS_OK;
    }
    struct tfos__cluster_feed_queue *queue = &scheduler->queues[feeder->queue];
    if (!feeder->has_results && queue->feed < feeder->feed)
        queue->feed = feeder->feed; // feeds with results are numbered apart
    if (feeder->feed <= queue->ended_feed) {
        skip(scheduler, feeder, "the feed has ended");
        return TFOS_OK;
    }
    struct tfos__cluster_partition *partition =
        tfos__cluster_partition_add(&queue->partitions, feeder->feed, feeder->partition);
    if (!partition)
        return tfos__no_memory(err, "rendezvous", "a partition");
    if (partition->newest_attempt < feeder->attempt)
        partition->newest_attempt = feeder->attempt;
    partition->has_results = feeder->has_results;
    partition->feeder_count++;
    feeder->is_counted = true;
    tfos__cluster_scheduler_advance(scheduler);
    return TFOS_OK;
}

void tfos__cluster_scheduler_close(struct tfos__cluster_scheduler *scheduler,
                                   struct tfos__cluster_feeder *feeder)
{
    if (feeder->state == TFOS__FEEDER_UNDECIDED)
        scheduler->undecided_count--;
    struct tfos__cluster_partition *partition =
        feeder->is_counted ? tfos__cluster_scheduler_find_partition(scheduler, feeder) : NULL;
    if (feeder->state == TFOS__FEEDER_FEEDING) {
        feeder->node->feeder_count--;
        // A task that died between its target and its channel is unknown to the node; a fence
        // settles it.
        if (partition)
            (void)is_settled(scheduler, feeder->queue, partition, feeder->attempt + 1);
    }
    if (partition) {
        partition->feeder_count--;
        tfos__cluster_partition_release(partitions_of(scheduler, feeder), partition);
    }
    if (feeder->previous)
        feeder->previous->next = feeder->next;
    else
        scheduler->feeders = feeder->next;
    if (feeder->next)
        feeder->next->previous = feeder->previous;
    feeder->session->feeder = NULL;
    tfos__free(feeder);
    note_progress(scheduler);
}

/// Rows that were assigned to an attempt and never written count for its node no more.
static void take_off_unwritten(const struct tfos__cluster_scheduler *scheduler, int queue,
                               const struct tfos__cluster_partition *partition,
                               struct tfos__cluster_node *node, const json_t *message)
{
    const struct tfos__cluster_attempt *attempt = tfos__cluster_partition_attempt(partition, node);
    if (!attempt || attempt->assigned_rows == 0 ||
        attempt->number > tfos__json_int_or(message, "attempt", 0) ||
        partition->base.feed <= scheduler->queues[queue].ended_feed)
        return;
    int64_t written = tfos__json_int_or(message, "written", 0);
    int64_t unwritten = attempt->assigned_rows - (written > 0 ? written : 0);
    int64_t *rows = &node->assigned_rows[queue];
    if (unwritten > 0)
        *rows = *rows > unwritten ? *rows - unwritten : 0;
}

enum tfos_status tfos__cluster_scheduler_settle(struct tfos__cluster_scheduler *scheduler,
                                                struct tfos__cluster_node *node,
                                                const json_t *message, struct tfos_error *err)
{
    int number;
    int64_t feed, partition_number, attempt, rows;
    TFOS__TRY(tfos__queue_names_get(scheduler->names, tfos__json_string_or(message, "queue", NULL),
                                    &number, err));
    TFOS__TRY(tfos__json_get_int(message, "feed", 1, INT64_MAX - 1, &feed, err));
    TFOS__TRY(tfos__json_get_int(message, "partition", 0, INT64_MAX - 1, &partition_number, err));
    TFOS__TRY(tfos__json_get_int(message, "attempt", 0, INT64_MAX, &attempt, err));
    TFOS__TRY(tfos__json_get_int(message, "rows", 0, INT64_MAX, &rows, err));
    // The node's last heartbeat may be from before this attempt's rows; the next one counts.
    node->drained &= ~bit_of(number);
    note_progress(scheduler);
    struct tfos__cluster_partitions *partitions = &scheduler->queues[number].partitions;
    struct tfos__cluster_partition *partition =
        tfos__cluster_partition_find(partitions, feed, partition_number);
    if (!partition)
        return TFOS_OK; // of a feed that has ended
    if (partition->rows < rows)
        partition->rows = rows;
    if (tfos__json_bool_or(message, "complete", false) && !partition->is_complete) {
        partition->is_complete = true;
        tfos__cluster_eta_complete(scheduler->eta, (struct tfos__cluster_eta_feed){number, feed},
                                   partition->rows);
    }
    take_off_unwritten(scheduler, number, partition, node, message);
    tfos__cluster_partition_settle(partitions, partition, node, attempt);
    tfos__cluster_partition_release(partitions, partition);
    tfos__cluster_scheduler_advance(scheduler);
    return TFOS_OK;
}

void tfos__cluster_scheduler_leave(struct tfos__cluster_scheduler *scheduler,
                                   struct tfos__cluster_node *node)
{
    for (int queue = 0; queue < scheduler->names->count; queue++)
        tfos__cluster_partition_settle_all(&scheduler->queues[queue].partitions, node);
    note_progress(scheduler);
    tfos__cluster_scheduler_advance(scheduler);
}

void tfos__cluster_scheduler_fail(struct tfos__cluster_scheduler *scheduler, const char *message)
{
    scheduler->failure = message;
    for (struct tfos__cluster_feeder *feeder = scheduler->feeders; feeder; feeder = feeder->next)
        if (feeder->state == TFOS__FEEDER_FEEDING)
            tfos__cluster_session_send(feeder->session, json_pack("{s:s, s:s}", "type", "failed",
                                                                  "message", scheduler->failure));
    tfos__cluster_scheduler_advance(scheduler);
}

void tfos__cluster_scheduler_end_feed(struct tfos__cluster_scheduler *scheduler, int number,
                                      int64_t feed, bool is_batch)
{
    struct tfos__cluster_feed_queue *queue = &scheduler->queues[number];
    if (queue->feed < feed)
        queue->feed = feed;
    if (queue->ended_feed < feed)
        queue->ended_feed = feed;
    tfos__cluster_partition_prune(&queue->partitions, feed);
    if (!is_batch)
        TFOS__CLUSTER_EACH_NODE (node, scheduler->table)
            node->assigned_rows[number] = 0;
    note_progress(scheduler);
    tfos__cluster_scheduler_advance(scheduler);
}

// A schema travels as text within a message, so that the nodes get it byte by byte as it was given.
static enum tfos_status check_description(const struct tfos__cluster_feed_description *description,
                                          struct tfos_error *err)
{
    const char *schema_json = description->schema;

    if (description->first_feed < 1 || description->last_feed < 0 ||
        (description->last_feed > 0 && description->last_feed < description->first_feed))
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of feeds %lld to %lld: numbers begin with 1, and "
                          "the last is 0 or no less than the first",
                          (long long)description->first_feed, (long long)description->last_feed);
    size_t size = strlen(schema_json);
    if (size > SCHEMA_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of a feed has %d bytes at most, not %zu",
                          SCHEMA_LIMIT, size);
    json_error_t cause;
    json_t *schema =
        json_loadb(schema_json, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &cause);
    if (!schema)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of a feed is no JSON: %s at byte %d", cause.text,
                          cause.position);
    json_decref(schema);
    return TFOS_OK;
}

static void send_description(const struct tfos__cluster_scheduler *scheduler,
                             const struct tfos__cluster_node *node, int queue)
{
    const struct tfos__cluster_feed_description *description =
        &scheduler->queues[queue].description;

    if (tfos__cluster_scheduler_is_fed(scheduler, node))
        tfos__cluster_session_send(
            node->session, json_pack("{s:s, s:s, s:s, s:I, s:I}", "type", "describe", "queue",
                                     scheduler->names->names[queue], "schema", description->schema,
                                     "first_feed", (json_int_t)description->first_feed, "last_feed",
                                     (json_int_t)description->last_feed));
}

enum tfos_status
tfos__cluster_scheduler_describe(struct tfos__cluster_scheduler *scheduler, const char *queue,
                                 const struct tfos__cluster_feed_description *description,
                                 struct tfos_error *err)
{
    int number;
    TFOS__TRY(tfos__fail_in(err, tfos__queue_names_get(scheduler->names, queue, &number, err),
                            "rendezvous"));
    TFOS__TRY(check_description(description, err));
    struct tfos__cluster_feed_description copy = *description;
    copy.schema = tfos__strdup(description->schema);
    if (!copy.schema)
        return tfos__no_memory(err, "rendezvous", "the schema of a feed");
    tfos__free(scheduler->queues[number].description.schema);
    scheduler->queues[number].description = copy;
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table)
        send_description(scheduler, node, number);
    return TFOS_OK;
}

void tfos__cluster_scheduler_send_descriptions(const struct tfos__cluster_scheduler *scheduler,
                                               const struct tfos__cluster_node *node)
{
    for (int queue = 0; queue < scheduler->names->count; queue++)
        if (scheduler->queues[queue].description.schema)
            send_description(scheduler, node, queue);
}

uint32_t tfos__cluster_scheduler_unread_queues(const struct tfos__cluster_scheduler *scheduler,
                                               const struct tfos__cluster_node *node)
{
    if (!tfos__cluster_scheduler_is_fed(scheduler, node) || tfos__cluster_node_is_over(node))
        return 0;
    return ~node->drained & ~node->terminated & tfos__queue_names_mask(scheduler->names);
}

bool tfos__cluster_scheduler_is_drained(const struct tfos__cluster_scheduler *scheduler)
{
    if (scheduler->undecided_count > 0)
        return false;
    for (int queue = 0; queue < scheduler->names->count; queue++)
        if (scheduler->queues[queue].partitions.unsettled_count > 0)
            return false;
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table)
        if (tfos__cluster_scheduler_unread_queues(scheduler, node) != 0 ||
            (node->feeder_count > 0 && !tfos__cluster_node_is_over(node)))
            return false;
    return true;
}

void tfos__cluster_scheduler_clear(struct tfos__cluster_scheduler *scheduler)
{
    while (scheduler->feeders) {
        struct tfos__cluster_feeder *feeder = scheduler->feeders;
        scheduler->feeders = feeder->next;
        feeder->session->feeder = NULL;
        tfos__free(feeder);
    }
    for (int queue = 0; queue < TFOS__QUEUE_LIMIT; queue++) {
        tfos__cluster_partition_clear(&scheduler->queues[queue].partitions);
        tfos__free(scheduler->queues[queue].description.schema);
    }
    *scheduler = (struct tfos__cluster_scheduler){0};
}

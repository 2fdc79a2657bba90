// SPDX-License-Identifier: Apache-2.0
// The cluster's own transitions. A node's state only moves forward, except that one that is lost
// before the start is missing again; the cluster's failure, once set, stays. Events are kept as
// text: smaller than a tree of values, and of known size.
#include "cluster/cluster_state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/failure_text.h"
#include "cluster/session.h"

#define HEARTBEAT_TIMEOUT_MS 30000
#define HELLO_TIMEOUT_MS 10000
#define GRACE_MS 5000
#define REQUESTED_STOP_GRACE_MS 30000 // for trainers to end after SIGTERM

// ---- events

static enum tfos_status init_events(struct tfos__cluster_event_queue *events,
                                    struct tfos_error *err)
{
    *events = (struct tfos__cluster_event_queue){0};
    events->texts = tfos__alloc(TFOS__EVENT_LIMIT, sizeof(*events->texts));
    if (!events->texts)
        return tfos__no_memory(err, "rendezvous", "the queue of events");
    return TFOS_OK;
}

static char *remove_first_event(struct tfos__cluster_event_queue *events)
{
    char *text = events->texts[events->first];
    events->texts[events->first] = NULL;
    events->first = (events->first + 1) % TFOS__EVENT_LIMIT;
    events->count--;
    events->size -= strlen(text);
    return text;
}

// Appends `event` (taken over; NULL, for want of memory, counts as dropped), dropping the oldest
// beyond the limits.
static void push_event(struct tfos__cluster_event_queue *events, json_t *event)
{
    char *text = event ? tfos__json_text(event) : NULL;
    json_decref(event);
    if (!text) {
        events->dropped_count++;
        return;
    }
    size_t size = strlen(text);
    while (events->count > 0 &&
           (events->count == TFOS__EVENT_LIMIT || events->size + size > TFOS__EVENT_SIZE_LIMIT)) {
        tfos__free(remove_first_event(events));
        events->dropped_count++;
    }
    events->texts[(events->first + events->count) % TFOS__EVENT_LIMIT] = text;
    events->count++;
    events->size += size;
}

char *tfos__cluster_event_queue_take(struct tfos__cluster_event_queue *events)
{
    if (events->dropped_count > 0) {
        char *text = tfos__format("{\"event\":\"dropped\",\"node\":\"\",\"count\":%lld}",
                                  (long long)events->dropped_count);
        if (text)
            events->dropped_count = 0;
        return text;
    }
    return events->count > 0 ? remove_first_event(events) : NULL;
}

static void clear_events(struct tfos__cluster_event_queue *events)
{
    while (events->count > 0)
        tfos__free(remove_first_event(events));
    tfos__free(events->texts);
    *events = (struct tfos__cluster_event_queue){0};
}

// ---- the cluster

static enum tfos_status read_time(const char *name, int64_t given_ms, int64_t default_ms,
                                  int64_t *out, struct tfos_error *err)
{
    if (given_ms < 0)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: %s is %lld: expected 0 (%lld s) or more",
                          name, (long long)given_ms, (long long)default_ms / 1000);
    *out = given_ms ? given_ms : default_ms;
    return TFOS_OK;
}

enum tfos_status tfos__cluster_init(struct tfos__cluster *cluster,
                                    const struct tfos_rendezvous_options *options,
                                    struct tfos_error *err)
{
    *cluster = (struct tfos__cluster){0};
    size_t size = options->cluster_id ? strlen(options->cluster_id) : 0;
    bool is_valid = size > 0 && size < sizeof(cluster->cluster_id);
    for (size_t i = 0; is_valid && i < size; i++) {
        unsigned char c = (unsigned char)options->cluster_id[i];
        is_valid = isascii(c) && (isalnum(c) || c == '-');
    }
    if (!is_valid)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: cluster_id is \"%.80s\": expected 1 to %zu letters, digits "
                          "and '-'",
                          options->cluster_id ? options->cluster_id : "",
                          sizeof(cluster->cluster_id) - 1);
    TFOS__TRY(read_time("heartbeat_timeout_ms", options->heartbeat_timeout_ms, HEARTBEAT_TIMEOUT_MS,
                        &cluster->heartbeat_timeout_ms, err));
    TFOS__TRY(read_time("hello_timeout_ms", options->hello_timeout_ms, HELLO_TIMEOUT_MS,
                        &cluster->hello_timeout_ms, err));
    TFOS__TRY(read_time("feed_stop_grace_ms", options->feed_stop_grace_ms, GRACE_MS,
                        &cluster->grace_ms, err));
    TFOS__TRY(tfos__cluster_roles_init(&cluster->roles, options, err));
    TFOS__TRY(tfos__fail_in(err, tfos__queue_names_init(&cluster->queues, options->queues, err),
                            "rendezvous"));
    memcpy(cluster->cluster_id, options->cluster_id, size + 1);
    cluster->ticked_ms = tfos__now_ms();
    cluster->agreement.table = &cluster->table;
    cluster->scheduler = (struct tfos__cluster_scheduler){.table = &cluster->table,
                                                          .names = &cluster->queues,
                                                          .cluster_id = cluster->cluster_id,
                                                          .eta = &cluster->eta,
                                                          .is_feeding = options->is_feeding,
                                                          .has_evaluator = options->has_evaluator,
                                                          .progress_ms = cluster->ticked_ms};
    TFOS__TRY(init_events(&cluster->events, err));
    enum tfos_status status = tfos__cluster_node_table_init(&cluster->table, &cluster->roles, err);
    if (status < 0)
        clear_events(&cluster->events);
    return status;
}

void tfos__cluster_push_event(struct tfos__cluster *cluster, const struct tfos__cluster_node *node,
                              const char *event, json_t *members)
{
    json_t *object = json_pack("{s:s, s:s}", "event", event, "node", node ? node->name : "");
    if (node && object)
        json_object_set_new(object, "executor_id", json_integer(node->executor_id));
    if (object && json_object_update(object, members) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(members);
    push_event(&cluster->events, object);
    cluster->has_changed = true;
}

// Sends `message`, taken over, to all nodes. NULL, for want of memory, ends their connections.
static void broadcast(struct tfos__cluster *cluster, json_t *message)
{
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        tfos__cluster_session_send(node->session, json_incref(message));
    json_decref(message);
}

void tfos__cluster_stop_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                             int64_t grace_ms, const char *reason)
{
    if (!node->session || tfos__cluster_node_is_over(node))
        return;
    node->is_stopping = true;
    cluster->has_changed = true;
    tfos__cluster_session_send(node->session,
                               json_pack("{s:s, s:I, s:s}", "type", "stop", "grace_ms",
                                         (json_int_t)grace_ms, "reason", reason));
}

void tfos__cluster_fail(struct tfos__cluster *cluster, enum tfos_status status, const char *message)
{
    if (cluster->state == TFOS__CLUSTER_FAILED)
        return;
    cluster->state = TFOS__CLUSTER_FAILED;
    cluster->failure = status;
    cluster->has_changed = true;
    tfos__cluster_failure_text_copy(cluster->failure_message, sizeof(cluster->failure_message),
                                    message);
    tfos__cluster_push_event(cluster, NULL, "failed",
                             json_pack("{s:s}", "message", cluster->failure_message));
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        tfos__cluster_stop_node(cluster, node, cluster->grace_ms, cluster->failure_message);
    tfos__cluster_scheduler_fail(&cluster->scheduler, cluster->failure_message);
}

void tfos__cluster_renew_spec(struct tfos__cluster *cluster)
{
    if (cluster->scheduler.is_started || cluster->state != TFOS__CLUSTER_WAITING)
        return;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        if (node->state != TFOS__CLUSTER_NODE_REGISTERED)
            return;
    cluster->table.generation++;
    json_t *message = json_pack("{s:s, s:I, s:o, s:i}", "type", "spec", "generation",
                                (json_int_t)cluster->table.generation, "cluster_spec",
                                tfos__cluster_node_table_spec(&cluster->table), "node_count",
                                cluster->table.count);
    broadcast(cluster, message);
}

void tfos__cluster_try_start(struct tfos__cluster *cluster)
{
    if (cluster->scheduler.is_started || cluster->state != TFOS__CLUSTER_WAITING ||
        cluster->table.generation == 0)
        return;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        if (node->state != TFOS__CLUSTER_NODE_REGISTERED ||
            node->generation != cluster->table.generation)
            return;
    cluster->scheduler.is_started = true;
    cluster->state = TFOS__CLUSTER_RUNNING;
    broadcast(cluster, json_pack("{s:s, s:I}", "type", "start", "generation",
                                 (json_int_t)cluster->table.generation));
    tfos__cluster_push_event(
        cluster, NULL, "running",
        json_pack("{s:o}", "cluster_spec", tfos__cluster_node_table_spec(&cluster->table)));
    tfos__cluster_scheduler_advance(&cluster->scheduler);
}

void tfos__cluster_end_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                            enum tfos__cluster_node_state state, const char *exit,
                            const char *failure)
{
    if (tfos__cluster_node_is_over(node))
        return;
    node->state = state;
    cluster->has_changed = true;
    tfos__cluster_failure_text_copy(node->exit, sizeof(node->exit), exit);
    tfos__cluster_push_event(
        cluster, node, "ended",
        json_pack("{s:s, s:b}", "exit", node->exit, "ok", state == TFOS__CLUSTER_NODE_ENDED));
    // Before what depended on it is settled: those that still wait get the failure.
    if (failure)
        tfos__cluster_fail(cluster, TFOS_CLOSED, failure);
    bool all_over = true;
    TFOS__CLUSTER_EACH_NODE (each, &cluster->table)
        all_over = all_over && tfos__cluster_node_is_over(each);
    if (all_over && cluster->state == TFOS__CLUSTER_RUNNING)
        cluster->state = TFOS__CLUSTER_ENDED;
    tfos__cluster_agreement_leave(&cluster->agreement, node);
    tfos__cluster_scheduler_leave(&cluster->scheduler, node);
}

void tfos__cluster_lose_node(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                             const char *cause)
{
    if (node->session)
        node->session->node = NULL;
    node->session = NULL;
    cluster->has_changed = true;
    if (tfos__cluster_node_is_over(node))
        return;
    if (node->is_stopping) {
        tfos__cluster_end_node(cluster, node, TFOS__CLUSTER_NODE_ENDED, "stopped", NULL);
        return;
    }
    if (!cluster->scheduler.is_started) {
        // Spark may run its task again, and that one takes its place.
        node->state = TFOS__CLUSTER_NODE_MISSING;
        tfos__cluster_failure_text_copy(node->exit, sizeof(node->exit), cause);
        tfos__cluster_push_event(
            cluster, node, "warning",
            json_pack("{s:s++}", "message", node->name, " went away: ", cause));
        return;
    }
    char message[sizeof(cluster->failure_message)];
    tfos__cluster_failure_text_of_loss(node, cause, message, sizeof(message));
    tfos__cluster_end_node(cluster, node, TFOS__CLUSTER_NODE_LOST, cause, message);
}

void tfos__cluster_plan_feed(struct tfos__cluster *cluster, int queue, int64_t feed,
                             const struct tfos_feed_plan *plan)
{
    tfos__cluster_eta_plan(&cluster->eta, (struct tfos__cluster_eta_feed){queue, feed}, plan,
                           cluster->scheduler.queues[queue].row_count);
}

/// Forgets the partitions of the feed and sends the nodes a message of `type` to do the same.
static void end_feed_number(struct tfos__cluster *cluster, int queue, int64_t feed,
                            const char *type, bool is_batch)
{
    tfos__cluster_scheduler_end_feed(&cluster->scheduler, queue, feed, is_batch);
    cluster->has_changed = true;
    broadcast(cluster, json_pack("{s:s, s:s, s:I}", "type", type, "queue",
                                 cluster->queues.names[queue], "feed", (json_int_t)feed));
}

void tfos__cluster_end_epoch(struct tfos__cluster *cluster, int queue, int64_t feed)
{
    tfos__cluster_eta_end_epoch(&cluster->eta, (struct tfos__cluster_eta_feed){queue, feed});
    end_feed_number(cluster, queue, feed, "end_epoch", false);
}

void tfos__cluster_end_batch(struct tfos__cluster *cluster, int queue, int64_t feed)
{
    end_feed_number(cluster, queue, feed, "end_batch", true);
}

void tfos__cluster_end_feed(struct tfos__cluster *cluster)
{
    if (cluster->scheduler.is_ended)
        return;
    cluster->scheduler.is_ended = true;
    broadcast(cluster, json_pack("{s:s}", "type", "end_feed"));
    tfos__cluster_scheduler_advance(&cluster->scheduler);
    cluster->has_changed = true;
}

void tfos__cluster_stop(struct tfos__cluster *cluster, int64_t grace_ms)
{
    cluster->is_stopped = true;
    cluster->has_changed = true;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table)
        tfos__cluster_stop_node(cluster, node, grace_ms, "the driver ends the cluster");
    tfos__cluster_scheduler_advance(&cluster->scheduler);
}

void tfos__cluster_terminate_feed(struct tfos__cluster *cluster)
{
    broadcast(cluster, json_pack("{s:s}", "type", "terminate"));
}

void tfos__cluster_request_stop(struct tfos__cluster *cluster, int64_t pid)
{
    if (cluster->is_stop_requested)
        return;
    cluster->is_stop_requested = true;
    tfos__cluster_push_event(cluster, NULL, "stop_requested",
                             json_pack("{s:I}", "pid", (json_int_t)pid));
    if (cluster->state == TFOS__CLUSTER_WAITING)
        tfos__cluster_fail(cluster, TFOS_CLOSED,
                           "cluster: it was asked to stop before all its nodes had registered");
    else if (!cluster->scheduler.is_feeding)
        tfos__cluster_stop(cluster, REQUESTED_STOP_GRACE_MS);
}

bool tfos__cluster_has_reached(const struct tfos__cluster *cluster,
                               enum tfos_rendezvous_phase phase)
{
    if (phase == TFOS_PHASE_RUNNING)
        return cluster->scheduler.is_started;
    if (phase == TFOS_PHASE_DRAINED)
        return tfos__cluster_scheduler_is_drained(&cluster->scheduler);
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        if (phase == TFOS_PHASE_WORKED && !tfos__cluster_node_is_trainer(node))
            continue;
        bool never_comes = (cluster->is_stopped || cluster->state == TFOS__CLUSTER_FAILED) &&
                           node->state == TFOS__CLUSTER_NODE_MISSING;
        if (!tfos__cluster_node_is_over(node) && !never_comes)
            return false;
    }
    return true;
}

void tfos__cluster_tick(struct tfos__cluster *cluster, int64_t now_ms)
{
    // A machine that slept, or a driver that was stopped, has received nothing: that time does not
    // count.
    int64_t gap_ms = now_ms - cluster->ticked_ms;
    bool has_slept = gap_ms > cluster->heartbeat_timeout_ms / 2;
    cluster->ticked_ms = now_ms;
    TFOS__CLUSTER_EACH_NODE (node, &cluster->table) {
        if (has_slept && node->session)
            node->received_ms += gap_ms;
        int64_t silence_ms = now_ms - node->received_ms;
        if (!node->session || silence_ms <= cluster->heartbeat_timeout_ms)
            continue;
        char cause[128];
        snprintf(cause, sizeof(cause), "it has said nothing for %.1f s",
                 (double)silence_ms / 1000.0);
        tfos__cluster_session_send(node->session,
                                   json_pack("{s:s, s:i, s:s}", "type", "stop", "grace_ms", 0,
                                             "reason", "the driver has not heard of this node"));
        tfos__cluster_session_end(node->session);
        tfos__cluster_lose_node(cluster, node, cause);
    }
}

void tfos__cluster_clear(struct tfos__cluster *cluster)
{
    tfos__cluster_scheduler_clear(&cluster->scheduler);
    tfos__cluster_agreement_clear(&cluster->agreement);
    tfos__cluster_node_table_clear(&cluster->table);
    clear_events(&cluster->events);
    *cluster = (struct tfos__cluster){0};
}

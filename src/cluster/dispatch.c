// SPDX-License-Identifier: Apache-2.0
// One handler a type of message, in tables. A handler checks all that it takes before it changes
// anything.
#include "cluster/dispatch.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/cluster_state.h"
#include "cluster/failure_text.h"
#include "cluster/feed_balance.h"
#include "cluster/session.h"
#include "cluster/status_document.h"

#define PROTOCOL_VERSION 1
#define URL_LIMIT 2048
#define FIGURES_INTERVAL_MS 1500 // every second heartbeat

/// A handler of messages from nodes.
struct handler {
    const char *type;
    enum tfos_status (*handle)(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                               const json_t *message, struct tfos_error *err);
};

/// Ends a session with its last message, of `type`. `reason` is taken over; NULL for want of
/// memory.
static void reject(struct tfos__cluster_session *session, const char *type, char *reason)
{
    tfos__cluster_session_send(
        session, reason ? json_pack("{s:s, s:s}", "type", type, "message", reason) : NULL);
    tfos__free(reason);
    tfos__cluster_session_end(session);
}

/// Copies a name that must not be empty, nor have spaces or control characters in it.
static enum tfos_status read_name(const json_t *message, const char *key, char *to, size_t capacity,
                                  struct tfos_error *err)
{
    const char *name;
    TFOS__TRY(tfos__json_get_string(message, key, &name, err));
    size_t size = strlen(name);
    bool is_valid = size > 0 && size < capacity;
    for (size_t i = 0; is_valid && i < size; i++)
        is_valid = !isspace((unsigned char)name[i]) && !iscntrl((unsigned char)name[i]);
    if (!is_valid)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"%s\" of a hello: expected 1 to %zu bytes without spaces",
                          key, capacity - 1);
    memcpy(to, name, size + 1);
    return TFOS_OK;
}

static enum tfos_status read_node(const json_t *message, struct tfos__cluster_node *hello,
                                  struct tfos_error *err)
{
    int64_t port, feed_port;
    TFOS__TRY(read_name(message, "host", hello->host, sizeof(hello->host), err));
    TFOS__TRY(read_name(message, "executor", hello->executor, sizeof(hello->executor), err));
    TFOS__TRY(tfos__json_get_int(message, "port", 1, 65535, &port, err));
    TFOS__TRY(tfos__json_get_int(message, "feed_port", 0, 65535, &feed_port, err));
    TFOS__TRY(tfos__json_get_int(message, "pid", 1, INT32_MAX, &hello->pid, err));
    TFOS__TRY(tfos__json_get_int(message, "executor_pid", 0, INT32_MAX, &hello->executor_pid, err));
    TFOS__TRY(tfos__json_get_int(message, "launch", 0, INT64_MAX, &hello->launch, err));
    hello->port = (int)port;
    hello->feed_port = (int)feed_port;
    return TFOS_OK;
}

/// Why a node that sends a hello cannot have the place of `node`, NULL without memory; false when
/// it can.
static bool is_taken(const struct tfos__cluster *cluster, const struct tfos__cluster_node *node,
                     int64_t launch, char **reason)
{
    if (cluster->state == TFOS__CLUSTER_FAILED)
        *reason = tfos__format("rendezvous: the cluster has failed: %s", cluster->failure_message);
    else if (cluster->is_stopped)
        *reason = tfos__format("rendezvous: the driver is ending the cluster");
    else if (cluster->scheduler.is_started)
        *reason =
            tfos__format("rendezvous: %s (executor id %d) cannot be replaced: the cluster has "
                         "started with the one on host %s (pid %lld)",
                         node->name, node->executor_id, node->host, (long long)node->pid);
    else if (node->session && launch <= node->launch)
        *reason =
            tfos__format("rendezvous: %s (executor id %d) is running already, on host %s (pid "
                         "%lld)",
                         node->name, node->executor_id, node->host, (long long)node->pid);
    else
        return false;
    return true;
}

static void take_place(struct tfos__cluster *cluster, struct tfos__cluster_session *session,
                       struct tfos__cluster_node *node, const struct tfos__cluster_node *hello)
{
    if (node->session) {
        struct tfos__cluster_session *old = node->session;
        tfos__cluster_stop_node(cluster, node, 0, "Spark has launched this node again");
        old->node = NULL;
        tfos__cluster_session_end(old);
    }
    tfos__cluster_node_reset(node, hello);
    node->state = TFOS__CLUSTER_NODE_REGISTERED;
    node->received_ms = tfos__now_ms();
    node->session = session;
    session->kind = TFOS__SESSION_NODE;
    session->node = node;
    tfos__cluster_session_send(session, json_pack("{s:s, s:s, s:i}", "type", "role", "job_name",
                                                  node->job_name, "task_index", node->task_index));
    tfos__cluster_scheduler_send_descriptions(&cluster->scheduler, node);
    tfos__cluster_push_event(cluster, node, "registered",
                             json_pack("{s:s, s:i, s:s}", "host", node->host, "port", node->port,
                                       "executor", node->executor));
    tfos__cluster_renew_spec(cluster);
}

static enum tfos_status accept_node(struct tfos__cluster_session *session, const json_t *message,
                                    struct tfos_error *err)
{
    struct tfos__cluster *cluster = session->cluster;
    int64_t executor_id;
    TFOS__TRY(tfos__json_get_int(message, "executor_id", INT64_MIN, INT64_MAX, &executor_id, err));
    if (executor_id < 0 || executor_id >= cluster->table.count) {
        reject(session, "refused",
               tfos__format("rendezvous: executor id %lld is out of range: the cluster has %d "
                            "nodes",
                            (long long)executor_id, cluster->table.count));
        return TFOS_OK;
    }
    struct tfos__cluster_node hello = {0};
    TFOS__TRY(read_node(message, &hello, err));
    struct tfos__cluster_node *node = &cluster->table.nodes[executor_id];
    char *reason;
    if (is_taken(cluster, node, hello.launch, &reason))
        reject(session, "refused", reason);
    else
        take_place(cluster, session, node, &hello);
    return TFOS_OK;
}

static enum tfos_status accept_hello(struct tfos__cluster_session *session, const json_t *message,
                                     struct tfos_error *err)
{
    const char *kind;
    int64_t version;
    TFOS__TRY(tfos__json_get_string(message, "kind", &kind, err));
    TFOS__TRY(tfos__json_get_int(message, "version", INT64_MIN, INT64_MAX, &version, err));
    bool is_node = !strcmp(kind, "node");
    if (!is_node && strcmp(kind, "feeder") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"kind\" of a hello: expected \"node\" or \"feeder\"");
    if (version != PROTOCOL_VERSION) {
        reject(session, is_node ? "refused" : "failed",
               tfos__format("rendezvous: this %s speaks version %lld of the protocol, the driver "
                            "version %d: install the same tfos on both",
                            kind, (long long)version, PROTOCOL_VERSION));
        return TFOS_OK;
    }
    if (is_node)
        return accept_node(session, message, err);
    session->cluster->has_changed = true;
    return tfos__cluster_scheduler_open(&session->cluster->scheduler, session, message, err);
}

static enum tfos_status handle_port(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                                    const json_t *message, struct tfos_error *err)
{
    int64_t port;
    TFOS__TRY(tfos__json_get_int(message, "port", 1, 65535, &port, err));
    if (cluster->scheduler.is_started)
        return TFOS_OK;
    node->port = (int)port;
    cluster->has_changed = true;
    tfos__cluster_renew_spec(cluster);
    return TFOS_OK;
}

static enum tfos_status handle_ack(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                                   const json_t *message, struct tfos_error *err)
{
    TFOS__TRY(tfos__json_get_int(message, "generation", 1, cluster->table.generation,
                                 &node->generation, err));
    cluster->has_changed = true;
    tfos__cluster_try_start(cluster);
    return TFOS_OK;
}

static enum tfos_status handle_trainer(struct tfos__cluster *cluster,
                                       struct tfos__cluster_node *node, const json_t *message,
                                       struct tfos_error *err)
{
    const char *state;
    TFOS__TRY(tfos__json_get_string(message, "state", &state, err));
    if (!cluster->scheduler.is_started && !node->is_stopping)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: a trainer has %.40s before the start",
                          state);
    if (!strcmp(state, "started")) {
        TFOS__TRY(tfos__json_get_int(message, "pid", 1, INT32_MAX, &node->trainer_pid, err));
        if (node->state == TFOS__CLUSTER_NODE_REGISTERED)
            node->state = TFOS__CLUSTER_NODE_RUNNING;
        cluster->has_changed = true;
        return TFOS_OK;
    }
    if (strcmp(state, "ended") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"state\" of a trainer: expected \"started\" or \"ended\"");
    char exit[sizeof(node->exit)], failure[sizeof(cluster->failure_message)];
    const char *cause = tfos__json_string_or(message, "cause", "trainer");
    bool is_lost = !strcmp(cause, "executor_lost") || !strcmp(cause, "task_lost");
    bool is_done = tfos__json_int_or(message, "signal", 0) == 0 &&
                   tfos__json_int_or(message, "exit_status", -1) == 0;
    tfos__cluster_failure_text_of_exit(message, exit, sizeof(exit));
    if (node->is_stopping || (is_done && !is_lost)) {
        tfos__cluster_end_node(cluster, node, TFOS__CLUSTER_NODE_ENDED, exit, NULL);
        return TFOS_OK;
    }
    tfos__cluster_failure_text_of_end(node, message, exit, failure, sizeof(failure));
    tfos__cluster_end_node(cluster, node,
                           is_lost ? TFOS__CLUSTER_NODE_LOST : TFOS__CLUSTER_NODE_FAILED, exit,
                           failure);
    return TFOS_OK;
}

static enum tfos_status handle_lines(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                                     const json_t *message, struct tfos_error *err)
{
    const json_t *lines = json_object_get(message, "lines"), *line;
    size_t i;
    if (!json_is_array(lines))
        return tfos__fail(err, TFOS_INVALID, "rendezvous: \"lines\": expected an array");
    json_array_foreach(lines, i, line)
    {
        json_t *stream = json_array_get(line, 0), *text = json_array_get(line, 1);
        if (!json_is_string(stream) || !json_is_string(text))
            return tfos__fail(err, TFOS_INVALID,
                              "rendezvous: \"lines\": expected pairs of strings");
        tfos__cluster_push_event(cluster, node, "line",
                                 json_pack("{s:O, s:O}", "stream", stream, "text", text));
    }
    return TFOS_OK;
}

static int64_t read_count(const json_t *message, const char *key, int64_t before)
{
    int64_t count = tfos__json_int_or(message, key, before);
    return count < 0 ? before : count;
}

static void take_report(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                        json_t *report)
{
    if (!json_is_object(report))
        return;
    if (json_dumpb(report, NULL, 0, JSON_COMPACT) <= TFOS__REPORT_SIZE_LIMIT) {
        json_decref(node->report);
        node->report = json_incref(report);
    } else if (!node->has_overflowed) {
        node->has_overflowed = true;
        tfos__cluster_push_event(
            cluster, node, "warning",
            json_pack("{s:s}", "message",
                      "a report of this trainer is not shown: it is larger than "
                      "16,384 bytes"));
    }
}

static void take_gpus(struct tfos__cluster_node *node, json_t *gpus)
{
    if (!json_is_array(gpus) || json_dumpb(gpus, NULL, 0, JSON_COMPACT) > TFOS__REPORT_SIZE_LIMIT)
        return;
    json_decref(node->gpus);
    node->gpus = json_incref(gpus);
}

static void note_throughput(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                            int64_t now_ms)
{
    double size = (double)node->ring_size;
    struct tfos__cluster_sample sample = {
        .at_ms = now_ms,
        .row_count = node->rows_read,
        .byte_count = node->bytes_written - node->ring_used,
        .reader_wait_ms = node->reader_wait_ms,
        .writer_wait_ms = node->writer_wait_ms,
        .writer_count = node->writers,
        .ring_fill = size > 0 ? (double)node->ring_used / size : 0,
    };
    tfos__cluster_throughput_add(&node->throughput, &sample);
    tfos__cluster_eta_take_rows(
        &cluster->eta, cluster->scheduler.queues[cluster->eta.feed.queue].row_count, now_ms);
}

static void take_steps(struct tfos__cluster_node *node, const json_t *steps, int64_t now_ms)
{
    struct tfos__cluster_step_sample sample = {
        .at_us = read_count(steps, "at_us", 0),
        .count = read_count(steps, "count", 0),
        .data_us = read_count(steps, "data_us", -1),
        .exchange_us = read_count(steps, "exchange_us", 0),
        .wait_us = read_count(steps, "wait_us", 0),
        .pushed_steps = read_count(steps, "pushed_steps", 0),
        .push_count = read_count(steps, "push_count", 0),
        .stale_steps = read_count(steps, "stale_steps", 0),
        .staleness = read_count(steps, "staleness", 0),
    };
    if (json_is_object(steps))
        tfos__cluster_step_progress_add(&node->steps, &sample, now_ms);
}

/// Sends a node that shows them the figures of the whole cluster, while there are any.
static void answer_figures(const struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                           int64_t now_ms)
{
    if (now_ms - node->figures_ms < FIGURES_INTERVAL_MS ||
        !tfos__cluster_status_has_figures(cluster, now_ms))
        return;
    node->figures_ms = now_ms;
    tfos__cluster_session_send(node->session, tfos__cluster_status_figures(cluster));
}

static void take_rows(struct tfos__cluster *cluster, struct tfos__cluster_node *node, int queue,
                      int64_t count)
{
    int64_t *sum = &cluster->scheduler.queues[queue].row_count;
    // Modulo 2^64, whatever nodes report.
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)count - (uint64_t)node->queue_rows[queue]);
    node->queue_rows[queue] = count;
}

/// The state of each queue. One that wants no more rows stays so.
static void take_queues(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                        json_t *queues)
{
    const char *name;
    json_t *state;
    json_object_foreach(queues, name, state)
    {
        int queue = tfos__queue_names_find(&cluster->queues, name);
        if (queue < 0)
            continue;
        uint32_t bit = UINT32_C(1) << queue;
        take_rows(cluster, node, queue, read_count(state, "rows_read", node->queue_rows[queue]));
        node->drained = tfos__json_bool_or(state, "drained", false) ? node->drained | bit
                                                                    : node->drained & ~bit;
        if (!tfos__json_bool_or(state, "terminated", false) || node->terminated & bit)
            continue;
        node->terminated |= bit;
        tfos__cluster_push_event(cluster, node, "terminated", json_pack("{s:s}", "queue", name));
    }
}

static enum tfos_status handle_heartbeat(struct tfos__cluster *cluster,
                                         struct tfos__cluster_node *node, const json_t *message,
                                         struct tfos_error *err)
{
    (void)err;
    int64_t now_ms = tfos__now_ms();
    int64_t rows_read = read_count(message, "rows_read", node->rows_read);
    if (rows_read > node->rows_read)
        cluster->scheduler.progress_ms = now_ms;
    node->rows_read = rows_read;
    node->rows_written = read_count(message, "rows_written", node->rows_written);
    node->bytes_written = read_count(message, "bytes_written", node->bytes_written);
    node->ring_used = read_count(message, "ring_used", node->ring_used);
    node->ring_size = read_count(message, "ring_size", node->ring_size);
    node->writers = read_count(message, "writers", node->writers);
    node->reader_wait_ms = read_count(message, "reader_wait_ms", node->reader_wait_ms);
    node->writer_wait_ms = read_count(message, "writer_wait_ms", node->writer_wait_ms);
    take_queues(cluster, node, json_object_get(message, "queues"));
    take_report(cluster, node, json_object_get(message, "report"));
    take_gpus(node, json_object_get(message, "gpus"));
    take_steps(node, json_object_get(message, "steps"), now_ms);
    cluster->has_changed = true;
    note_throughput(cluster, node, now_ms);
    if (tfos__json_bool_or(message, "figures", false))
        answer_figures(cluster, node, now_ms);
    return TFOS_OK;
}

static enum tfos_status read_round(const json_t *message, const char **name, struct tfos_error *err)
{
    TFOS__TRY(tfos__json_get_string(message, "name", name, err));
    if (strlen(*name) > TFOS__ROUND_NAME_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"name\" of an agreement: longer than %d bytes",
                          TFOS__ROUND_NAME_LIMIT);
    return TFOS_OK;
}

static enum tfos_status handle_agree(struct tfos__cluster *cluster, struct tfos__cluster_node *node,
                                     const json_t *message, struct tfos_error *err)
{
    const char *name;
    json_t *value = json_object_get(message, "value");
    TFOS__TRY(read_round(message, &name, err));
    if (!value)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: \"value\" of an agreement is missing");
    tfos__cluster_agreement_give(&cluster->agreement, node, name, value);
    return TFOS_OK;
}

static enum tfos_status handle_pending(struct tfos__cluster *cluster,
                                       struct tfos__cluster_node *node, const json_t *message,
                                       struct tfos_error *err)
{
    const char *name;
    TFOS__TRY(read_round(message, &name, err));
    tfos__cluster_agreement_send_pending(&cluster->agreement, node, name);
    return TFOS_OK;
}

static enum tfos_status handle_partition(struct tfos__cluster *cluster,
                                         struct tfos__cluster_node *node, const json_t *message,
                                         struct tfos_error *err)
{
    cluster->has_changed = true;
    return tfos__cluster_scheduler_settle(&cluster->scheduler, node, message, err);
}

static enum tfos_status handle_tensorboard(struct tfos__cluster *cluster,
                                           struct tfos__cluster_node *node, const json_t *message,
                                           struct tfos_error *err)
{
    const char *url;
    TFOS__TRY(tfos__json_get_string(message, "url", &url, err));
    if (strlen(url) > URL_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: \"url\": longer than %d bytes",
                          URL_LIMIT);
    char *copy = tfos__strdup(url);
    if (!copy)
        return tfos__no_memory(err, "rendezvous", "TensorBoard's address");
    tfos__free(node->tensorboard);
    node->tensorboard = copy;
    node->tensorboard_pid = tfos__json_int_or(message, "pid", 0);
    tfos__cluster_push_event(cluster, node, "tensorboard", json_pack("{s:s}", "url", url));
    return TFOS_OK;
}

static enum tfos_status handle_warning(struct tfos__cluster *cluster,
                                       struct tfos__cluster_node *node, const json_t *message,
                                       struct tfos_error *err)
{
    const char *text;
    TFOS__TRY(tfos__json_get_string(message, "message", &text, err));
    tfos__cluster_push_event(cluster, node, "warning", json_pack("{s:s}", "message", text));
    return TFOS_OK;
}

static enum tfos_status handle_result(struct tfos__cluster *cluster,
                                      struct tfos__cluster_node *node, const json_t *message,
                                      struct tfos_error *err)
{
    const char *text;
    TFOS__TRY(tfos__json_get_string(message, "text", &text, err));
    tfos__cluster_push_event(cluster, node, "result", json_pack("{s:s}", "text", text));
    return TFOS_OK;
}

static enum tfos_status handle_failed(struct tfos__cluster *cluster,
                                      struct tfos__cluster_node *node, const json_t *message,
                                      struct tfos_error *err)
{
    const char *text;
    TFOS__TRY(tfos__json_get_string(message, "message", &text, err));
    if (node->is_stopping) {
        tfos__cluster_end_node(cluster, node, TFOS__CLUSTER_NODE_ENDED, text, NULL);
        return TFOS_OK;
    }
    char failure[sizeof(cluster->failure_message)];
    tfos__cluster_failure_text_of_failure(node, text, failure, sizeof(failure));
    tfos__cluster_end_node(cluster, node, TFOS__CLUSTER_NODE_FAILED, text, failure);
    return TFOS_OK;
}

static const struct handler handlers[] = {
    {"port", handle_port},
    {"ack", handle_ack},
    {"trainer", handle_trainer},
    {"lines", handle_lines},
    {"heartbeat", handle_heartbeat},
    {"agree", handle_agree},
    {"pending", handle_pending},
    {"partition", handle_partition},
    {"tensorboard", handle_tensorboard},
    {"warning", handle_warning},
    {"result", handle_result},
    {"failed", handle_failed},
};

static enum tfos_status handle_node(struct tfos__cluster_session *session, const char *type,
                                    const json_t *message, struct tfos_error *err)
{
    if (!session->node)
        return TFOS_OK; // its place is another launch's
    session->node->received_ms = tfos__now_ms();
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
        if (!strcmp(type, handlers[i].type))
            return handlers[i].handle(session->cluster, session->node, message, err);
    return tfos__fail(err, TFOS_INVALID, "rendezvous: unknown type \"%.40s\" of a message", type);
}

/// The node whose rows the feeder could not write: one of those assigned to it, or its own.
static const struct tfos__cluster_node *find_node(const struct tfos__cluster_session *session,
                                                  const json_t *message)
{
    const struct tfos__cluster_node_table *table = &session->cluster->table;
    int64_t id = tfos__json_int_or(message, "executor_id", -1);
    if (id >= 0 && id < table->count)
        return &table->nodes[id];
    return session->feeder->node;
}

/// A feeder asks where its rows go, or reports why it gives up. That its node takes no rows is no
/// fault of the task, which Spark would only run again: the cluster has failed.
static enum tfos_status handle_feeder(struct tfos__cluster_session *session, const char *type,
                                      const json_t *message, struct tfos_error *err)
{
    const char *text;
    if (!session->feeder)
        return TFOS_OK;
    if (!strcmp(type, "assign"))
        return tfos__cluster_balance_assign(&session->cluster->scheduler, session->feeder, message,
                                            err);
    if (strcmp(type, "timed_out") != 0)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: unknown type \"%.40s\" of a message",
                          type);
    TFOS__TRY(tfos__json_get_string(message, "message", &text, err));
    const struct tfos__cluster_node *node = find_node(session, message);
    char *failure = tfos__format("%s: %s", node ? node->name : "a feeding task", text);
    tfos__cluster_fail(session->cluster, TFOS_TIMEOUT, failure ? failure : text);
    tfos__free(failure);
    return TFOS_OK;
}

static enum tfos_status send_status(struct tfos__cluster_session *session)
{
    session->kind = TFOS__SESSION_WATCHER;
    tfos__cluster_session_send(session, tfos__cluster_status_document(session->cluster));
    tfos__cluster_session_end(session);
    return TFOS_OK;
}

static enum tfos_status take_stop_request(struct tfos__cluster_session *session,
                                          const json_t *message)
{
    struct tfos__cluster *cluster = session->cluster;
    session->kind = TFOS__SESSION_WATCHER;
    tfos__cluster_request_stop(cluster, tfos__json_int_or(message, "pid", 0));
    tfos__cluster_session_send(session, json_pack("{s:s, s:s, s:b}", "type", "stopping",
                                                  "cluster_id", cluster->cluster_id, "feeding",
                                                  (int)cluster->scheduler.is_feeding));
    tfos__cluster_session_end(session);
    return TFOS_OK;
}

/// What a process of this user asks on the status socket.
static enum tfos_status handle_local(struct tfos__cluster_session *session, const char *type,
                                     const json_t *message, struct tfos_error *err)
{
    if (!strcmp(type, "status"))
        return send_status(session);
    if (!strcmp(type, "stop"))
        return take_stop_request(session, message);
    return tfos__fail(err, TFOS_INVALID, "rendezvous: unexpected type \"%.40s\" of a message",
                      type);
}

enum tfos_status tfos__cluster_dispatch_message(struct tfos__cluster_session *session,
                                                const json_t *message, struct tfos_error *err)
{
    const char *type;
    if (session->is_ending)
        return TFOS_OK;
    TFOS__TRY(tfos__json_get_string(message, "type", &type, err));
    if (session->kind == TFOS__SESSION_NODE)
        return handle_node(session, type, message, err);
    if (session->kind == TFOS__SESSION_FEEDER)
        return handle_feeder(session, type, message, err);
    if (session->kind == TFOS__SESSION_NEW && session->is_local)
        return handle_local(session, type, message, err);
    if (session->kind == TFOS__SESSION_NEW && !strcmp(type, "hello"))
        return accept_hello(session, message, err);
    return tfos__fail(err, TFOS_INVALID, "rendezvous: unexpected type \"%.40s\" of a message",
                      type);
}

void tfos__cluster_dispatch_end(struct tfos__cluster_session *session, const char *cause)
{
    if (session->node)
        tfos__cluster_lose_node(session->cluster, session->node, cause);
    if (session->feeder)
        tfos__cluster_scheduler_close(&session->cluster->scheduler, session->feeder);
    session->cluster->has_changed = true;
    session->node = NULL;
}

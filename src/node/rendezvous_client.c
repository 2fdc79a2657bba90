// SPDX-License-Identifier: Apache-2.0
// The node's side of the rendezvous (docs/protocol.md, "Rendezvous: node"): it registers, checks
// and acknowledges each generation of the cluster spec, starts the trainer on `start`, and reports.
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/listener.h"
#include "base/memory.h"
#include "node/node.h"

#define ROLE_TIMEOUT_MS 60000
#define HEARTBEAT_INTERVAL_MS 1000
#define PORT_ATTEMPTS 8

enum tfos_status tfos__node_rendezvous_join(struct tfos__node *node, const struct tfos_wait *wait,
                                            struct tfos_error *err)
{
    const struct tfos__node_config *config = &node->config;
    TFOS__TRY(tfos__cluster_join(config->address, config->cluster_id, config->key, wait,
                                 &node->driver, err));
    if (!config->host)
        TFOS__TRY(tfos__address_local_host(tfos__channel_fd(node->driver), node->host, err));
    else if (strlen(config->host) >= sizeof(node->host))
        return tfos__fail(err, TFOS_INVALID, "node: config: \"host\" is longer than %zu bytes",
                          sizeof(node->host) - 1);
    else
        memcpy(node->host, config->host, strlen(config->host) + 1);
    TFOS__TRY(tfos__listener_reserve((int)config->tf_port, &node->port_fd, &node->port, err));
    if (config->is_feeding)
        TFOS__TRY(tfos__node_feed_open(node, err));
    node->role_deadline = tfos__deadline(ROLE_TIMEOUT_MS);
    node->is_member = true;
    node->heartbeat_at = tfos__deadline(HEARTBEAT_INTERVAL_MS);
    tfos__node_rendezvous_send(
        node,
        json_pack("{s:s, s:s, s:i, s:I, s:s, s:i, s:i, s:I, s:s, s:i, s:I}", "type", "hello",
                  "kind", "node", "version", 1, "executor_id", (json_int_t)config->executor_id,
                  "host", node->host, "port", node->port, "pid", (int)getpid(), "executor_pid",
                  (json_int_t)config->executor_pid, "executor", config->executor, "feed_port",
                  node->feed ? tfos__feed_host_port(node->feed) : 0, "launch",
                  (json_int_t)config->launch));
    if (node->gpu_warning)
        tfos__node_rendezvous_send(
            node, json_pack("{s:s, s:s}", "type", "warning", "message", node->gpu_warning));
    return TFOS_OK;
}

static void driver_ended(struct tfos__node *node, const struct tfos_error *err)
{
    node->is_driver_lost = true;
    tfos__node_end(node, TFOS__CAUSE_DRIVER_LOST, TFOS__NODE_LOSS_GRACE_MS,
                   "the driver at %s has gone: %s", node->config.address, err->message);
}

void tfos__node_rendezvous_send(struct tfos__node *node, json_t *message)
{
    struct tfos_error err;
    if (!node->is_member || node->is_driver_lost) {
        json_decref(message);
        return;
    }
    // A driver that misses a message would wait for it: the node ends instead.
    if (tfos__channel_queue(node->driver, message, NULL, 0, &err) < 0)
        driver_ended(node, &err);
}

bool tfos__node_rendezvous_is_behind(const struct tfos__node *node)
{
    return (tfos__channel_events(node->driver) & EPOLLOUT) != 0;
}

static enum tfos_status take_role(struct tfos__node *node, const json_t *message,
                                  struct tfos_error *err)
{
    const char *job_name;
    int64_t task_index;
    TFOS__TRY(tfos__json_get_string(message, "job_name", &job_name, err));
    TFOS__TRY(tfos__json_get_int(message, "task_index", 0, INT32_MAX, &task_index, err));
    char *job = tfos__strdup(job_name);
    if (!job || strlen(job_name) > sizeof(node->name) - sizeof(":2147483647")) {
        tfos__free(job);
        return tfos__fail(err, TFOS_INVALID, "node: the role \"%s\" cannot be taken", job_name);
    }
    snprintf(node->name, sizeof(node->name), "%s:%lld", job_name, (long long)task_index);
    tfos__free(node->job_name);
    node->job_name = job;
    node->task_index = task_index;
    node->role_deadline = TFOS__NEVER;
    if (strcmp(job, "ps") == 0)
        tfos__node_feed_close(node);
    tfos__node_launcher_send(node, json_pack("{s:s, s:s, s:I}", "type", "registered", "job_name",
                                             job_name, "task_index", (json_int_t)task_index));
    return TFOS_OK;
}

/// Reserves another port and gives up the one that another process serves.
static enum tfos_status change_port(struct tfos__node *node, struct tfos_error *err)
{
    if (node->config.tf_port != 0)
        return tfos__fail(
            err, TFOS_BUSY,
            "node: TensorFlow's port %d on %s is served by another process; end it, or do not "
            "ask for this port (TENSORFLOW_PORT)",
            node->port, node->host);
    for (int attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
        int fd, port;
        TFOS__TRY(tfos__listener_reserve(0, &fd, &port, err));
        // Closed only now: the kernel might else give the same port again.
        close(node->port_fd);
        node->port_fd = fd;
        node->port = port;
        if (!tfos__listener_is_served(port))
            return TFOS_OK;
    }
    return tfos__fail(err, TFOS_BUSY,
                      "node: each of %d ports kept for TensorFlow on %s was taken by "
                      "another process",
                      PORT_ATTEMPTS, node->host);
}

static enum tfos_status take_spec(struct tfos__node *node, const json_t *message,
                                  struct tfos_error *err)
{
    if (node->trainer.child.pid != 0)
        return TFOS_OK;
    int64_t generation;
    TFOS__TRY(tfos__json_get_int(message, "generation", 1, INT64_MAX, &generation, err));
    json_t *spec = json_object_get(message, "cluster_spec");
    if (!json_is_object(spec))
        return tfos__fail(err, TFOS_INVALID, "node: the driver's spec has no \"cluster_spec\"");
    json_decref(node->cluster_spec);
    node->cluster_spec = json_incref(spec);
    node->generation = generation;
    bool is_taken = tfos__listener_is_served(node->port);
    if (is_taken)
        TFOS__TRY(change_port(node, err));
    json_t *answer = json_pack("{s:s, s:I}", "type", is_taken ? "port" : "ack", "generation",
                               (json_int_t)generation);
    if (is_taken)
        json_object_set_new(answer, "port", json_integer(node->port));
    tfos__node_rendezvous_send(node, answer);
    return TFOS_OK;
}

static enum tfos_status take_start(struct tfos__node *node, const json_t *message,
                                   struct tfos_error *err)
{
    bool is_current = tfos__json_int_or(message, "generation", -1) == node->generation;
    if (!is_current || !node->job_name || node->trainer.child.pid != 0 || node->is_ending)
        return TFOS_OK;
    TFOS__TRY(tfos__node_trainer_start(node, err));
    tfos__node_tensorboard_start(node);
    return TFOS_OK;
}

static enum tfos_status take_refusal(struct tfos__node *node, const json_t *message,
                                     struct tfos_error *err)
{
    node->is_member = false;
    return tfos__fail(err, TFOS_INVALID, "node: the driver at %s refused executor %lld: %s",
                      node->config.address, (long long)node->config.executor_id,
                      tfos__json_string_or(message, "message", "no reason given"));
}

static enum tfos_status take_stop(struct tfos__node *node, const json_t *message)
{
    int64_t grace_ms = tfos__json_int_or(message, "grace_ms", 0);
    tfos__node_end(node, TFOS__CAUSE_STOPPED, grace_ms > 0 ? grace_ms : 0, "%s",
                   tfos__json_string_or(message, "reason", "the driver stopped it"));
    return TFOS_OK;
}

static enum tfos_status follow(struct tfos__node *node, json_t *message, struct tfos_error *err)
{
    const char *type = tfos__json_string_or(message, "type", "");
    if (strcmp(type, "role") == 0)
        return take_role(node, message, err);
    if (strcmp(type, "refused") == 0)
        return take_refusal(node, message, err);
    if (strcmp(type, "spec") == 0)
        return take_spec(node, message, err);
    if (strcmp(type, "start") == 0)
        return take_start(node, message, err);
    if (strcmp(type, "stop") == 0)
        return take_stop(node, message);
    if (strcmp(type, "agreed") == 0 || strcmp(type, "disagreed") == 0 ||
        strcmp(type, "pending") == 0)
        tfos__node_trainer_send(node, json_incref(message), NULL, 0);
    else if (strcmp(type, "figures") == 0)
        tfos__node_tensorboard_show(node, message);
    else if (!tfos__node_feed_follow(node, type, message))
        return tfos__fail(err, TFOS_CORRUPT,
                          "node: the driver at %s sent a message of unknown type \"%s\"",
                          node->config.address, type);
    return TFOS_OK;
}

enum tfos_status tfos__node_rendezvous_step(struct tfos__node *node, struct tfos_error *err)
{
    struct tfos_error lost;
    json_t *message;
    enum tfos_status status;
    (void)!tfos__channel_pump(node->driver, NULL); // next() gives its failure
    while ((status = tfos__channel_next(node->driver, &message, NULL, NULL, &lost)) == TFOS_OK) {
        status = follow(node, message, err);
        json_decref(message);
        TFOS__TRY(status);
    }
    if (status < 0 && !node->is_driver_lost)
        driver_ended(node, &lost);
    return TFOS_OK;
}

/// {"input": {"drained": true, "terminated": false, "rows_read": 7}}, and notes that the driver
/// gets it.
static json_t *describe_queues(struct tfos__node *node)
{
    struct tfos__feed_queue_stats queue;
    json_t *queues = json_object();
    node->was_drained = node->was_terminated = 0;
    for (int i = 0; node->feed && tfos__feed_host_get_queue(node->feed, i, &queue); i++) {
        node->was_drained |= (uint32_t)queue.is_drained << i;
        node->was_terminated |= (uint32_t)queue.is_terminated << i;
        json_object_set_new(queues, queue.name,
                            json_pack("{s:b, s:b, s:I}", "drained", (int)queue.is_drained,
                                      "terminated", (int)queue.is_terminated, "rows_read",
                                      (json_int_t)queue.rows_read));
    }
    return queues;
}

static void send_heartbeat(struct tfos__node *node)
{
    struct tfos__feed_stats stats = {0};
    if (node->feed)
        tfos__feed_host_get_stats(node->feed, &stats);
    json_t *message = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:b, s:o}", "type", "heartbeat",
        "rows_written", (json_int_t)stats.rows_written, "rows_read", (json_int_t)stats.rows_read,
        "bytes_written", (json_int_t)stats.bytes_written, "ring_used", (json_int_t)stats.used_size,
        "ring_size", (json_int_t)stats.total_size, "writers", stats.writer_count, "reader_wait_ms",
        (json_int_t)stats.reader_wait_ms, "writer_wait_ms", (json_int_t)stats.writer_wait_ms,
        "figures", (int)tfos__node_tensorboard_wants_figures(node), "queues",
        describe_queues(node));
    if (message) {
        json_object_set_new(message, "report",
                            node->trainer.report ? json_incref(node->trainer.report)
                                                 : json_object());
        if (node->trainer.steps)
            json_object_set(message, "steps", node->trainer.steps);
        if (node->config.gpu_count > 0)
            json_object_set_new(message, "gpus", tfos__node_gpus_figures(node));
    }
    tfos__node_rendezvous_send(node, message);
    node->heartbeat_at = tfos__deadline(HEARTBEAT_INTERVAL_MS);
}

void tfos__node_rendezvous_flush_lines(struct tfos__node *node)
{
    json_t *lines = tfos__node_output_take_lines(node->trainer.output);
    if (lines)
        tfos__node_rendezvous_send(node, json_pack("{s:s, s:o}", "type", "lines", "lines", lines));
}

void tfos__node_rendezvous_tick(struct tfos__node *node)
{
    // While the driver does not keep up, heartbeats would only be older when it reads them, and
    // lines wait in their bounded batch, not in the queue.
    if (!node->is_member || node->is_driver_lost || tfos__node_rendezvous_is_behind(node))
        return;
    if (tfos__remaining_ms(node->heartbeat_at) == 0)
        send_heartbeat(node);
    if (node->trainer.output &&
        tfos__remaining_ms(tfos__node_output_due(node->trainer.output)) == 0)
        tfos__node_rendezvous_flush_lines(node);
}

// SPDX-License-Identifier: Apache-2.0
/// The life of the trainer as its node sees it: the start, its messages, its end. Its end is
/// reported once, after everything it wrote and said has been read.
#include "node/supervisor.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "node/environment.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/// Least time between two heartbeats that only bring a new report: a trainer may report each step.
#define REPORT_INTERVAL_MS 100
/// How long the log may hold up the report of a death.
#define DRAIN_TIMEOUT_MS 300
/// What a dead trainer's own children have to put their things in order.
#define LEFTOVERS_GRACE_MS 1000

/// Bytes that wait for the trainer when its requests are left unread.
#define ANSWERS_LIMIT ((size_t)1 << 20)

extern char **environ;

static enum tfos_status make_environment(const struct tfos__node *node,
                                         struct tfos__environment *environment,
                                         struct tfos_error *err)
{
    char *tf_config;
    TFOS__TRY(tfos__environment_tf_config(node->cluster_spec, node->job_name, node->task_index,
                                          &tf_config, err));
    enum tfos_status status = tfos__environment_init(environment, environ, err);
    if (status == TFOS_OK)
        status = tfos__environment_set(environment, "TF_CONFIG", tf_config, err);
    // Lets TensorFlow's server listen on the port that this node keeps from others meanwhile.
    if (status == TFOS_OK)
        status = tfos__environment_set(environment, "TF_GRPC_REUSE_PORT", "true", err);
    if (status == TFOS_OK)
        status = tfos__environment_apply(environment, node->config.environment, err);
    tfos__free(tf_config);
    if (status < 0)
        tfos__environment_clear(environment);
    return status;
}

static json_t *make_context(const struct tfos__node *node)
{
    json_t *context =
        json_pack("{s:s, s:I, s:s, s:I, s:O, s:s, s:i, s:b, s:s?}", "type", "context",
                  "executor_id", (json_int_t)node->config.executor_id, "job_name", node->job_name,
                  "task_index", (json_int_t)node->task_index, "cluster_spec", node->cluster_spec,
                  "cluster_id", node->config.cluster_id, "node_pid", (int)getpid(), "fed",
                  node->feed != NULL, "queues", node->config.queues);
    static const char *const passed_on[] = {"default_fs", "working_dir", "release_port",
                                            "allow_pickle", "user"};
    for (size_t i = 0; context && i < sizeof passed_on / sizeof *passed_on; i++) {
        json_t *value = json_object_get(node->config.object, passed_on[i]);
        json_object_set_new(context, passed_on[i], value ? json_incref(value) : json_null());
    }
    return context;
}

static enum tfos_status spawn(struct tfos__node *node, char *const *envp, int link_fd,
                              struct tfos_error *err)
{
    size_t count = json_array_size(node->config.argv);
    char **argv = tfos__alloc(count + 1, sizeof *argv);
    if (!argv)
        return tfos__no_memory(err, "node", "the trainer's command");
    // execve() takes the strings as not const, but does not write to them.
    for (size_t i = 0; i < count; i++)
        argv[i] = (char *)json_string_value(json_array_get(node->config.argv, i));
    struct tfos__spawn_options options = {
        .argv = argv,
        .envp = envp,
        .directory = node->config.directory,
        .stdin_fd = -1,
        .stdout_fd = tfos__output_writer_fd(node->output, TFOS__OUTPUT_STDOUT),
        .stderr_fd = tfos__output_writer_fd(node->output, TFOS__OUTPUT_STDERR),
        .inherited_fds = &link_fd,
        .inherited_count = 1,
    };
    enum tfos_status status = tfos__child_start(&node->trainer, &options, err);
    node->trainer_session = node->trainer.pid;
    tfos__free(argv);
    return status;
}

/// Starts the process with one end of a socket pair and keeps the other.
static enum tfos_status start_linked(struct tfos__node *node, char *const *envp,
                                     struct tfos_error *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot make the trainer's socket");
    enum tfos_status status =
        tfos__channel_open(fds[0], TFOS__CHANNEL_UNIX, NULL, "trainer", &node->trainer_link, err);
    if (status == TFOS_OK)
        status = spawn(node, envp, fds[1], err);
    close(fds[1]);
    tfos__output_close_writers(node->output);
    return status;
}

enum tfos_status tfos__trainer_start(struct tfos__node *node, struct tfos_error *err)
{
    struct tfos__environment environment;
    TFOS__TRY(make_environment(node, &environment, err));
    enum tfos_status status = tfos__output_open(true, &node->output, err);
    if (status == TFOS_OK)
        status = start_linked(node, environment.items, err);
    tfos__environment_clear(&environment);
    if (status < 0) {
        tfos__fail_prefix(err, "node: %s cannot start its trainer", node->name);
        return status;
    }
    tfos__trainer_tell(node, make_context(node), &node->payload_fd, node->payload_fd >= 0);
    tfos__feeders_tell_descriptions(node);
    tfos__driver_tell(node, json_pack("{s:s, s:s, s:i}", "type", "trainer", "state", "started",
                                      "pid", (int)node->trainer.pid));
    tfos__launcher_tell(node, json_pack("{s:s, s:O, s:i}", "type", "running", "cluster_spec",
                                        node->cluster_spec, "trainer_pid", (int)node->trainer.pid));
    return TFOS_OK;
}

static void give_up(struct tfos__node *node, const struct tfos_error *err)
{
    node->is_trainer_deaf = true;
    tfos__free(node->trainer_message);
    node->trainer_message = tfos__format(
        "the node ended it, because it could not be told what it has to know: %s", err->message);
    tfos__child_stop(&node->trainer, 0);
}

void tfos__trainer_tell(struct tfos__node *node, json_t *message, const int *fds, int fd_count)
{
    if (!node->trainer_link || node->is_trainer_deaf) {
        json_decref(message);
        return;
    }
    struct tfos_error err;
    if (tfos__channel_tell(node->trainer_link, message, fds, fd_count, TFOS__NODE_QUEUE_LIMIT,
                           &err) < 0)
        give_up(node, &err);
}

static bool takes_answers(const struct tfos__node *node)
{
    return tfos__channel_pending_size(node->trainer_link) <= ANSWERS_LIMIT;
}

uint32_t tfos__trainer_events(const struct tfos__node *node)
{
    uint32_t events = tfos__channel_events(node->trainer_link);
    return takes_answers(node) ? events : events & (uint32_t)EPOLLOUT;
}

static void take_report(struct tfos__node *node, const json_t *message)
{
    json_t *values = json_object_get(message, "values");
    if (!json_is_object(values))
        return;
    json_decref(node->report);
    node->report = json_incref(values);
    int64_t soon = tfos__deadline(REPORT_INTERVAL_MS);
    if (soon < node->heartbeat_at)
        node->heartbeat_at = soon;
}

static void follow(struct tfos__node *node, const json_t *message)
{
    const char *type = tfos__json_string_or(message, "type", "");
    if (strcmp(type, "open_feed") == 0) {
        tfos__feeders_attach(node, tfos__json_string_or(message, "queue", ""));
    } else if (strcmp(type, "agree") == 0) {
        json_t *value = json_object_get(message, "value");
        tfos__driver_tell(node,
                          json_pack("{s:s, s:s, s:O?}", "type", "agree", "name",
                                    tfos__json_string_or(message, "name", ""), "value", value));
    } else if (strcmp(type, "pending") == 0) {
        tfos__driver_tell(node, json_pack("{s:s, s:s}", "type", "pending", "name",
                                          tfos__json_string_or(message, "name", "")));
    } else if (strcmp(type, "report") == 0) {
        take_report(node, message);
    } else if (strcmp(type, "release_port") == 0) {
        if (node->port_fd >= 0)
            close(node->port_fd);
        node->port_fd = -1;
        tfos__trainer_tell(node, json_pack("{s:s}", "type", "port_released"), NULL, 0);
    } else if (strcmp(type, "terminate") == 0) {
        tfos__feeders_set_state(node, TFOS__FEED_TERMINATED, NULL);
    } else if (strcmp(type, "done") == 0) {
        node->is_trainer_done = true;
    } else if (strcmp(type, "fail") == 0) {
        tfos__free(node->trainer_message);
        node->trainer_message = tfos__strdup(tfos__json_string_or(message, "message", ""));
    }
}

/// Follows what the trainer says; `is_last`: to the end, whatever it takes of the answers.
static void hear(struct tfos__node *node, bool is_last)
{
    struct tfos_error err;
    json_t *message;
    enum tfos_status status = TFOS_AGAIN;
    // A failure comes again from next(), behind the last message; no answer will be taken then.
    is_last |= (is_last || takes_answers(node) ? tfos__channel_pump(node->trainer_link, &err)
                                               : tfos__channel_flush(node->trainer_link, &err)) < 0;
    while ((is_last || takes_answers(node)) &&
           (status = tfos__channel_next(node->trainer_link, &message, NULL, NULL, &err)) ==
               TFOS_OK) {
        follow(node, message);
        json_decref(message);
    }
    node->is_trainer_unread = !takes_answers(node);
    // A trainer may close its link and go on; its end is that of its process. One that breaks the
    // protocol is heard no more.
    if (status < 0) {
        tfos__channel_close(node->trainer_link);
        node->trainer_link = NULL;
    }
}

void tfos__trainer_step(struct tfos__node *node)
{
    hear(node, false);
}

void tfos__trainer_tick(struct tfos__node *node)
{
    if (node->trainer_link && node->is_trainer_unread && takes_answers(node))
        hear(node, false);
}

static const char *cause_name(enum tfos__node_cause cause)
{
    switch (cause) {
    case TFOS__CAUSE_STOPPED:
        return "stopped";
    case TFOS__CAUSE_EXECUTOR_LOST:
        return "executor_lost";
    case TFOS__CAUSE_TASK_LOST:
    case TFOS__CAUSE_DRIVER_LOST:
        return "task_lost";
    case TFOS__CAUSE_TRAINER:
        break;
    }
    return "trainer";
}

static void tell_feeders(struct tfos__node *node, bool is_ok, const char *words, const char *reason,
                         const json_t *last_lines)
{
    if (is_ok) {
        tfos__feeders_set_state(node, TFOS__FEED_TERMINATED, NULL);
        return;
    }
    const char *last =
        json_string_value(json_array_get(last_lines, json_array_size(last_lines) - 1));
    bool has_reason = reason[0] != '\0';
    char *message = tfos__format("the trainer of %s on %s ended with %s%s%s", node->name,
                                 node->host, words, has_reason || last ? ": " : "",
                                 has_reason ? reason
                                 : last     ? last
                                            : "");
    tfos__feeders_set_state(node, TFOS__FEED_FAILED, message ? message : "the trainer has failed");
    tfos__free(message);
}

static void tell_end(struct tfos__node *node, bool is_ok, const char *words, const char *reason,
                     json_t *last_lines)
{
    int wait_status = node->trainer.wait_status;
    bool is_signal = WIFSIGNALED(wait_status);
    tfos__driver_tell(node,
                      json_pack("{s:s, s:s, s:i, s:b, s:s, s:O, s:s}", "type", "trainer", "state",
                                "ended", is_signal ? "signal" : "exit_status",
                                is_signal ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                                "killed_by_node", (int)node->trainer.was_stopped, "message", reason,
                                "last_lines", last_lines, "cause", cause_name(node->cause)));
    tfos__launcher_tell(node, json_pack("{s:s, s:b, s:s, s:s}", "type", "ended", "ok", (int)is_ok,
                                        "exit", words, "message", reason));
}

void tfos__trainer_ended(struct tfos__node *node)
{
    if (node->trainer_link)
        hear(node, true);
    tfos__output_finish(node->output, DRAIN_TIMEOUT_MS);
    tfos__driver_flush_lines(node);
    char words[64];
    tfos__process_describe(node->trainer.wait_status, words);
    const char *reason = node->trainer_message ? node->trainer_message : "";
    if (node->cause != TFOS__CAUSE_TRAINER && node->end_message)
        reason = node->end_message;
    bool is_ok = node->trainer.wait_status == 0 || node->cause == TFOS__CAUSE_STOPPED;
    json_t *last_lines = tfos__output_get_last_lines(node->output);
    tell_feeders(node, is_ok, words, reason, last_lines);
    tell_end(node, is_ok, words, reason, last_lines);
    json_decref(last_lines);
    tfos__channel_close(node->trainer_link);
    node->trainer_link = NULL;
    struct tfos__child *spared[] = {&node->board.child};
    tfos__child_sweep(SIGTERM, spared, 1);
    node->leftovers_end_at = tfos__deadline(LEFTOVERS_GRACE_MS);
    // Feeders have still to be told how it ended, and TensorBoard shows what there is, until the
    // driver says stop.
    if (!node->feed && !node->board.child.is_running)
        node->is_ending = true;
}

// SPDX-License-Identifier: Apache-2.0
// The life of the trainer as its node sees it: the start, its messages, its end. Its end is
// reported once, after everything it wrote and said has been read. A trainer whose function makes
// its process a daemon forks and ends, and the forked process runs on in a session of its own: that
// is the trainer then, and its end is the trainer's.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "node/node.h"

// Least time between two heartbeats that only carry a new report: a trainer may report each step.
#define REPORT_INTERVAL_MS 100
// How long a full log may delay the report of an end.
#define DRAIN_TIMEOUT_MS 300
// For the children of a trainer that has ended to end by themselves.
#define LEFTOVERS_GRACE_MS 1000

// With more bytes waiting for the trainer, its requests are left unread.
#define ANSWERS_LIMIT ((size_t)1 << 20)

#define COMMAND_SIZE 4096
#define NAME_SIZE 15     // of a process's name, as the kernel keeps it
#define FORKED_ONLY 0x40 // of the kernel's flags of a process: it was forked and did not exec
// From the end of the one process to the other's setsid().
#define DAEMON_TIMEOUT_MS 1000
#define LOOK_INTERVAL_MS 10
#define STACK_TIMEOUT_MS 1000
#define STATUS_SIZE 4096

extern char **environ;

static const char *argument(const struct tfos__node *node, size_t index)
{
    return json_string_value(json_array_get(node->config.argv, index));
}

static enum tfos_status make_environment(const struct tfos__node *node,
                                         struct tfos__node_strings *environment,
                                         struct tfos_error *err)
{
    char *tf_config;
    TFOS__TRY(tfos__node_environment_tf_config(node->cluster_spec, node->job_name, node->task_index,
                                               &tf_config, err));
    enum tfos_status status = tfos__node_environment_init(environment, environ, err);
    if (status == TFOS_OK)
        status = tfos__node_environment_set(environment, "TF_CONFIG", tf_config, err);
    // Lets TensorFlow's server listen on the port that this node reserves.
    if (status == TFOS_OK)
        status = tfos__node_environment_set(environment, "TF_GRPC_REUSE_PORT", "true", err);
    if (status == TFOS_OK)
        status = tfos__node_gpus_set_environment(node, environment, err);
    if (status == TFOS_OK)
        status = tfos__node_environment_apply(environment, node->config.environment, err);
    tfos__free(tf_config);
    if (status < 0)
        tfos__node_strings_clear(environment);
    return status;
}

static json_t *make_context(const struct tfos__node *node)
{
    json_t *context = json_pack(
        "{s:s, s:I, s:s, s:I, s:O, s:s, s:i, s:b, s:s?, s:o}", "type", "context", "executor_id",
        (json_int_t)node->config.executor_id, "job_name", node->job_name, "task_index",
        (json_int_t)node->task_index, "cluster_spec", node->cluster_spec, "cluster_id",
        node->config.cluster_id, "node_pid", (int)getpid(), "fed", node->feed != NULL, "queues",
        node->config.queues, "gpus", tfos__node_gpus_context(node));
    static const char *const passed_on[] = {"default_fs", "working_dir", "release_port",
                                            "allow_pickle", "user"};
    for (size_t i = 0; context && i < sizeof(passed_on) / sizeof(*passed_on); i++) {
        json_t *value = json_object_get(node->config.object, passed_on[i]);
        json_object_set_new(context, passed_on[i], value ? json_incref(value) : json_null());
    }
    return context;
}

/// The context and, beside what users see of it, the key of groups of trainers. NULL with the
/// reason.
static json_t *make_first_message(const struct tfos__node *node, struct tfos_error *err)
{
    unsigned char key[TFOS__KEY_SIZE];
    char text[TFOS__KEY_PROOF_SIZE];
    if (tfos__cluster_key_read(node->config.key, "node", key, err) < 0)
        return NULL;
    enum tfos_status status = tfos__cluster_key_derive(key, "collective", "node", key, err);
    json_t *context = status == TFOS_OK ? make_context(node) : NULL;
    tfos__cluster_key_print(key, text);
    if (context && json_object_set_new(context, "collective_key", json_string(text)) != 0) {
        json_decref(context);
        context = NULL;
    }
    explicit_bzero(key, sizeof(key));
    explicit_bzero(text, sizeof(text));
    return context;
}

static enum tfos_status spawn(struct tfos__node *node, char *const *envp, int channel_fd,
                              struct tfos_error *err)
{
    struct tfos__node_strings arguments = {0};
    enum tfos_status status = TFOS_OK;
    for (size_t i = 0; status == TFOS_OK && i < json_array_size(node->config.argv); i++)
        status = tfos__node_strings_append(&arguments, tfos__strdup(argument(node, i)), err);
    // The GPUs are the trainer's too: it may outlive a node that is killed.
    int fds[1 + TFOS_GPU_LINK_LIMIT] = {channel_fd};
    int gpu_count = tfos__node_gpus_descriptors(node, fds + 1, TFOS_GPU_LINK_LIMIT);
    if (status == TFOS_OK) {
        struct tfos__spawn_options options = {.argv = arguments.items,
                                              .envp = envp,
                                              .directory = node->config.directory,
                                              .inherited_fds = fds,
                                              .inherited_count = 1 + gpu_count};
        status = tfos__node_child_start(&node->trainer.child, &options, node->trainer.output,
                                        node->forker, err);
    }
    node->trainer.session = node->trainer.child.pid;
    tfos__node_strings_clear(&arguments);
    return status;
}

static enum tfos_status start(struct tfos__node *node, struct tfos_error *err)
{
    struct tfos__node_strings environment;
    int channel_fd;
    TFOS__TRY(tfos__node_gpus_start(node, err));
    TFOS__TRY(make_environment(node, &environment, err));
    enum tfos_status status = tfos__node_output_open(true, &node->trainer.output, err);
    if (status == TFOS_OK)
        status = tfos__channel_open_pair("trainer", &node->trainer.channel, &channel_fd, err);
    if (status == TFOS_OK) {
        status = spawn(node, environment.items, channel_fd, err);
        close(channel_fd);
    }
    tfos__node_strings_clear(&environment);
    return status;
}

enum tfos_status tfos__node_trainer_start(struct tfos__node *node, struct tfos_error *err)
{
    TFOS__TRY(
        tfos__fail_in(err, start(node, err), "node: %s cannot start its trainer", node->name));
    tfos__node_trainer_send(node, make_first_message(node, err), &node->payload_fd,
                            node->payload_fd >= 0);
    tfos__node_feed_send_descriptions(node);
    tfos__node_rendezvous_send(node, json_pack("{s:s, s:s, s:i}", "type", "trainer", "state",
                                               "started", "pid", (int)node->trainer.child.pid));
    tfos__node_launcher_send(node, json_pack("{s:s, s:O, s:i}", "type", "running", "cluster_spec",
                                             node->cluster_spec, "trainer_pid",
                                             (int)node->trainer.child.pid));
    return TFOS_OK;
}

static void give_up(struct tfos__node *node, const struct tfos_error *err)
{
    node->trainer.is_given_up = true;
    tfos__free(node->trainer.message);
    node->trainer.message = tfos__format(
        "the node ended it, because it could not be told what it has to know: %s", err->message);
    tfos__node_child_stop(&node->trainer.child, 0);
}

void tfos__node_trainer_send(struct tfos__node *node, json_t *message, const int *fds, int fd_count)
{
    if (!node->trainer.channel || node->trainer.is_given_up) {
        json_decref(message);
        return;
    }
    struct tfos_error err;
    if (tfos__channel_send_bounded(node->trainer.channel, message, fds, fd_count,
                                   TFOS__NODE_QUEUE_LIMIT, &err) < 0)
        give_up(node, &err);
}

static bool can_answer(const struct tfos__node *node)
{
    return tfos__channel_pending_size(node->trainer.channel) <= ANSWERS_LIMIT;
}

uint32_t tfos__node_trainer_events(const struct tfos__node *node)
{
    uint32_t events = tfos__channel_events(node->trainer.channel);
    return can_answer(node) ? events : events & (uint32_t)EPOLLOUT;
}

static void take_report(struct tfos__node *node, const json_t *message)
{
    json_t *values = json_object_get(message, "values");
    if (!json_is_object(values))
        return;
    json_decref(node->trainer.report);
    node->trainer.report = json_incref(values);
    int64_t soon = tfos__deadline(REPORT_INTERVAL_MS);
    if (soon < node->heartbeat_at)
        node->heartbeat_at = soon;
}

static void take_steps(struct tfos__node *node, const json_t *message)
{
    static const char *const names[] = {"at_us",       "count",       "data_us",
                                        "exchange_us", "wait_us",     "pushed_steps",
                                        "push_count",  "stale_steps", "staleness"};
    const json_t *figures = json_object_get(message, "figures");
    if (!json_is_object(figures))
        return;
    json_decref(node->trainer.steps);
    node->trainer.steps = json_object();
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        json_object_set_new(node->trainer.steps, names[i],
                            json_integer(tfos__json_int_or(figures, names[i], 0)));
}

static void follow(struct tfos__node *node, const json_t *message)
{
    const char *type = tfos__json_string_or(message, "type", "");
    if (strcmp(type, "open_feed") == 0) {
        tfos__node_feed_attach(node, tfos__json_string_or(message, "queue", ""));
    } else if (strcmp(type, "agree") == 0) {
        json_t *value = json_object_get(message, "value");
        tfos__node_rendezvous_send(node, json_pack("{s:s, s:s, s:O?}", "type", "agree", "name",
                                                   tfos__json_string_or(message, "name", ""),
                                                   "value", value));
    } else if (strcmp(type, "pending") == 0) {
        tfos__node_rendezvous_send(node, json_pack("{s:s, s:s}", "type", "pending", "name",
                                                   tfos__json_string_or(message, "name", "")));
    } else if (strcmp(type, "report") == 0) {
        take_report(node, message);
    } else if (strcmp(type, "steps") == 0) {
        take_steps(node, message);
    } else if (strcmp(type, "result") == 0) {
        tfos__node_rendezvous_send(node, json_pack("{s:s, s:s}", "type", "result", "text",
                                                   tfos__json_string_or(message, "text", "")));
    } else if (strcmp(type, "release_port") == 0) {
        if (node->port_fd >= 0)
            close(node->port_fd);
        node->port_fd = -1;
        tfos__node_trainer_send(node, json_pack("{s:s}", "type", "port_released"), NULL, 0);
    } else if (strcmp(type, "terminate") == 0) {
        tfos__node_feed_set_state(node, TFOS__FEED_TERMINATED, NULL);
    } else if (strcmp(type, "done") == 0) {
        node->trainer.is_done = true;
    } else if (strcmp(type, "fail") == 0) {
        tfos__free(node->trainer.message);
        node->trainer.message = tfos__strdup(tfos__json_string_or(message, "message", ""));
    }
}

/// Follows the trainer's messages; `is_last`: all of them, also when it takes no answers.
static void read_messages(struct tfos__node *node, bool is_last)
{
    struct tfos_error err;
    json_t *message;
    enum tfos_status status = TFOS_AGAIN;
    // next() gives a failure behind the last message; no answer will be taken then.
    is_last |= (is_last || can_answer(node) ? tfos__channel_pump(node->trainer.channel, &err)
                                            : tfos__channel_flush(node->trainer.channel, &err)) < 0;
    while ((is_last || can_answer(node)) &&
           (status = tfos__channel_next(node->trainer.channel, &message, NULL, NULL, &err)) ==
               TFOS_OK) {
        follow(node, message);
        json_decref(message);
    }
    node->trainer.is_unread = !can_answer(node);
    // A trainer may close its channel and run on; its end is that of its process. Nothing more is
    // read from one that breaks the protocol.
    if (status < 0) {
        tfos__channel_close(node->trainer.channel);
        node->trainer.channel = NULL;
    }
}

void tfos__node_trainer_step(struct tfos__node *node)
{
    read_messages(node, false);
}

void tfos__node_trainer_tick(struct tfos__node *node)
{
    if (node->trainer.channel && node->trainer.is_unread && can_answer(node))
        read_messages(node, false);
}

// ---- the stack report

/// The value of a line of /proc/<pid>/status, found by its name with the colon ("State:"), or NULL.
static const char *find_field(pid_t pid, const char *name, char text[STATUS_SIZE])
{
    tfos__process_read(pid, "status", text, STATUS_SIZE);
    char *field = strstr(text, name);
    if (!field)
        return NULL;
    field += strlen(name);
    field += strspn(field, "\t ");
    field[strcspn(field, "\n")] = '\0';
    return field;
}

/// SIGUSR2 ends a process that has no handler for it.
static bool has_handler(pid_t pid)
{
    char text[STATUS_SIZE];
    const char *caught = find_field(pid, "SigCgt:", text);
    return caught && (strtoull(caught, NULL, 16) >> (SIGUSR2 - 1) & 1);
}

void tfos__node_trainer_ask_stack(struct tfos__node *node)
{
    if (node->trainer.is_stack_asked)
        return;
    node->trainer.is_stack_asked = true;
    node->trainer.stack_answer_at = tfos__now_ms();
    if (!has_handler(node->trainer.child.pid))
        return;
    node->trainer.stack_answer_at += STACK_TIMEOUT_MS;
    tfos__node_output_start_capture(node->trainer.output);
    kill(node->trainer.child.pid, SIGUSR2);
}

int64_t tfos__node_trainer_stack_due(const struct tfos__node *node)
{
    return node->trainer.is_stack_asked ? node->trainer.stack_answer_at : TFOS__NEVER;
}

char *tfos__node_trainer_take_stack(struct tfos__node *node)
{
    char text[STATUS_SIZE];
    node->trainer.is_stack_asked = false;
    char *capture = tfos__node_output_take_capture(node->trainer.output);
    if (capture)
        return capture;
    const char *state = find_field(node->trainer.child.pid, "State:", text);
    return tfos__format(
        "the trainer (pid %d) is in state %s; it gave no stack trace (a Python trainer does "
        "on SIGUSR2)",
        (int)node->trainer.child.pid, state ? state : "unknown");
}

// ---- the end

/// Whether the process has the trainer's command line, as one that was forked from it has.
static bool has_command(const struct tfos__node *node, pid_t pid)
{
    char command[COMMAND_SIZE];
    size_t size = tfos__process_read(pid, "cmdline", command, sizeof(command)), place = 0;
    for (size_t i = 0; i < json_array_size(node->config.argv); i++) {
        size_t word_size = strlen(argument(node, i)) + 1;
        if (word_size > size - place || memcmp(command + place, argument(node, i), word_size) != 0)
            return false;
        place += word_size;
    }
    return true;
}

/// Whether the process has ended, had the trainer's name, and had been forked without an exec. Its
/// command line is gone.
static bool had_name(const struct tfos__node *node, pid_t pid)
{
    struct tfos__process_stat stat;
    const char *slash = strrchr(argument(node, 0), '/');
    const char *name = slash ? slash + 1 : argument(node, 0);
    return tfos__process_get_stat(pid, &stat) && stat.state == 'Z' && (stat.flags & FORKED_ONLY) &&
           strncmp(stat.command, name, NAME_SIZE) == 0;
}

struct search {
    const struct tfos__node *node;
    bool is_any;  ///< a process that was forked from the trainer
    pid_t daemon; ///< one of these that has a session of its own; 0: none
};

static void examine(void *context, pid_t pid)
{
    struct search *search = context;
    if (pid == search->node->tensorboard.child.pid)
        return;
    bool has_own_session = getsid(pid) != search->node->trainer.session;
    bool is_forked = has_command(search->node, pid);
    search->is_any |= is_forked;
    if (has_own_session && (is_forked || had_name(search->node, pid)))
        search->daemon = pid;
}

void tfos__node_trainer_examine_orphan(void *context, pid_t pid, int wait_status)
{
    struct tfos__node *node = context;
    bool is_first =
        node->trainer.child.is_running && node->trainer.child.pid == node->trainer.session;
    if (wait_status != 0 && is_first && getsid(pid) != node->trainer.session && had_name(node, pid))
        node->trainer.orphan_status = wait_status;
}

/// Whether the trainer, which has ended, was made a daemon: a process that was forked from it is
/// the trainer from now on. If one has failed before it, its end is the trainer's.
static bool is_daemonized(struct tfos__node *node)
{
    struct tfos__node_child *trainer = &node->trainer.child;
    if (node->trainer.channel)
        read_messages(node, false);
    if (trainer->wait_status != 0 || trainer->was_stopped || node->trainer.is_done ||
        node->is_ending)
        return false;
    int64_t deadline = tfos__deadline(DAEMON_TIMEOUT_MS);
    struct search search = {.node = node};
    // Two searches without any: one that ended during the first has left its own child, which only
    // the second finds.
    for (int misses = 0; misses < 2 && search.daemon == 0 && tfos__remaining_ms(deadline) != 0;) {
        search.is_any = false;
        tfos__node_child_visit(examine, &search);
        misses = search.is_any ? 0 : misses + 1;
        if (search.daemon == 0)
            poll(NULL, 0, LOOK_INTERVAL_MS);
    }
    if (search.daemon == 0) {
        trainer->wait_status = node->trainer.orphan_status;
        return false;
    }
    trainer->pid = search.daemon;
    trainer->is_running = true;
    return true;
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

static void notify_feeders(struct tfos__node *node, bool is_ok, const char *words,
                           const char *reason, const json_t *last_lines)
{
    if (is_ok) {
        tfos__node_feed_set_state(node, TFOS__FEED_TERMINATED, NULL);
        return;
    }
    const char *last =
        json_string_value(json_array_get(last_lines, json_array_size(last_lines) - 1));
    struct tfos_error message;
    if (!reason[0] && last)
        reason = last;
    tfos__fail(&message, TFOS_CLOSED, "the trainer of %s on %s ended with %s%s%s", node->name,
               node->host, words, reason[0] ? ": " : "", reason);
    tfos__node_feed_set_state(node, TFOS__FEED_FAILED, message.message);
}

static void report_end(struct tfos__node *node, bool is_ok, const char *words, const char *reason,
                       json_t *last_lines)
{
    int wait_status = node->trainer.child.wait_status;
    bool is_signal = WIFSIGNALED(wait_status);
    tfos__node_rendezvous_send(
        node, json_pack("{s:s, s:s, s:i, s:b, s:s, s:O, s:s}", "type", "trainer", "state", "ended",
                        is_signal ? "signal" : "exit_status",
                        is_signal ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                        "killed_by_node", (int)node->trainer.child.was_stopped, "message", reason,
                        "last_lines", last_lines, "cause", cause_name(node->cause)));
    tfos__node_launcher_send(node, json_pack("{s:s, s:b, s:s, s:s}", "type", "ended", "ok",
                                             (int)is_ok, "exit", words, "message", reason));
}

void tfos__node_trainer_ended(struct tfos__node *node)
{
    if (is_daemonized(node))
        return;
    if (node->trainer.channel)
        read_messages(node, true);
    tfos__node_output_finish(node->trainer.output, DRAIN_TIMEOUT_MS);
    tfos__node_rendezvous_flush_lines(node);
    char words[64];
    tfos__process_describe(node->trainer.child.wait_status, words);
    const char *reason = node->trainer.message ? node->trainer.message : "";
    if (node->cause != TFOS__CAUSE_TRAINER)
        reason = node->end_message;
    bool is_ok = node->trainer.child.wait_status == 0 || node->cause == TFOS__CAUSE_STOPPED;
    json_t *last_lines = tfos__node_output_get_last_lines(node->trainer.output);
    node->heartbeat_at = tfos__now_ms(); // the rows that it has read at last
    tfos__node_rendezvous_tick(node);
    notify_feeders(node, is_ok, words, reason, last_lines);
    report_end(node, is_ok, words, reason, last_lines);
    json_decref(last_lines);
    tfos__channel_close(node->trainer.channel);
    node->trainer.channel = NULL;
    tfos__node_gpus_close(node);
    struct tfos__node_child *spared[] = {&node->tensorboard.child};
    tfos__node_child_sweep(SIGTERM, spared, 1);
    node->trainer.leftovers_end_at = tfos__deadline(LEFTOVERS_GRACE_MS);
    // The node answers feeders, and TensorBoard serves, until the driver sends `stop`.
    if (!node->feed && !node->tensorboard.child.is_running)
        node->is_ending = true;
}

// SPDX-License-Identifier: Apache-2.0
/// The process beside an executor: one thread around one poll loop, from the launcher's first
/// message to the end of the last process it started. It ends by itself when the trainer has ended
/// and nobody needs it any more, when the driver says stop or is gone, when the executor ends, and,
/// before `detach`, when the launcher does.
#include "node/node.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <tfos/node.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define END_GRACE_MS 1000
#define CLOSE_TIMEOUT_MS 2000

enum slot {
    SLOT_SIGNAL,
    SLOT_EXECUTOR,
    SLOT_LAUNCHER,
    SLOT_DRIVER,
    SLOT_FEED,
    SLOT_TRAINER,
    SLOT_OUTPUT,
    SLOT_TENSORBOARD = SLOT_OUTPUT + TFOS__OUTPUT_STREAMS,
    SLOT_PROBE = SLOT_TENSORBOARD + TFOS__OUTPUT_STREAMS,
    SLOT_COUNT
};

void tfos__node_end(struct tfos__node *node, enum tfos__node_cause cause, int64_t grace_ms,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!node->is_ending && !(node->trainer.child.pid && !node->trainer.child.is_running)) {
        struct tfos__bounded_text message = {node->end_message, sizeof(node->end_message), 0};
        node->cause = cause;
        tfos__bounded_text_append_list(&message, format, arguments);
    }
    va_end(arguments);
    node->is_ending = true;
    tfos__node_child_stop(&node->trainer.child, grace_ms);
    tfos__node_child_stop(&node->tensorboard.child,
                          grace_ms < END_GRACE_MS ? grace_ms : END_GRACE_MS);
}

static enum tfos_status open_signals(struct tfos__node *node, sigset_t *old_mask,
                                     struct tfos_error *err)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    // Never read: blocked, it turns writing to a log that nobody reads into an error.
    sigaddset(&mask, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &mask, old_mask) != 0)
        return tfos__fail(err, TFOS_IO, "node: cannot block signals");
    sigdelset(&mask, SIGPIPE);
    node->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (node->signal_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot watch signals");
    return tfos__node_child_adopt_orphans(err);
}

static void reap(struct tfos__node *node)
{
    struct tfos__node_child *children[] = {&node->trainer.child, &node->tensorboard.child};
    const struct tfos__node_child *ended;
    while ((ended = tfos__node_child_reap(children, 2, tfos__node_trainer_examine_orphan, node))) {
        if (ended == &node->tensorboard.child)
            tfos__node_tensorboard_ended(node);
        else
            tfos__node_trainer_ended(node);
    }
}

static void take_signals(struct tfos__node *node)
{
    struct signalfd_siginfo info;
    while (read(node->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        tfos__node_end(node, TFOS__CAUSE_TASK_LOST, TFOS__NODE_LOSS_GRACE_MS,
                       "the node process got signal %u (%s) from process %u", info.ssi_signo,
                       strsignal((int)info.ssi_signo), info.ssi_pid);
    }
    reap(node);
}

static short poll_events(uint32_t events)
{
    return (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0));
}

static void fill(const struct tfos__node *node, struct pollfd slots[SLOT_COUNT])
{
    for (int i = 0; i < SLOT_COUNT; i++)
        slots[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    slots[SLOT_SIGNAL].fd = node->signal_fd;
    slots[SLOT_EXECUTOR].fd = node->executor_fd;
    if (node->launcher) {
        slots[SLOT_LAUNCHER].fd = tfos__channel_fd(node->launcher);
        slots[SLOT_LAUNCHER].events = poll_events(tfos__channel_events(node->launcher));
    }
    if (node->driver && !node->is_driver_lost) {
        slots[SLOT_DRIVER].fd = tfos__channel_fd(node->driver);
        slots[SLOT_DRIVER].events = poll_events(tfos__channel_events(node->driver));
    }
    if (node->feed)
        slots[SLOT_FEED].fd = tfos__feed_host_fd(node->feed);
    if (node->trainer.channel) {
        slots[SLOT_TRAINER].fd = tfos__channel_fd(node->trainer.channel);
        slots[SLOT_TRAINER].events = poll_events(tfos__node_trainer_events(node));
    }
    if (node->trainer.output)
        tfos__node_output_get_poll(node->trainer.output, &slots[SLOT_OUTPUT]);
    if (node->tensorboard.output)
        tfos__node_output_get_poll(node->tensorboard.output, &slots[SLOT_TENSORBOARD]);
    if (node->tensorboard.is_probing)
        slots[SLOT_PROBE] = (struct pollfd){.fd = node->tensorboard.probe_fd, .events = POLLOUT};
}

// Events of those that the node depends on: the executor, senders of signals, and the launcher.
static void handle_owners(struct tfos__node *node, const struct pollfd slots[SLOT_COUNT])
{
    if (slots[SLOT_EXECUTOR].revents)
        tfos__node_launcher_executor_ended(node);
    if (slots[SLOT_SIGNAL].revents)
        take_signals(node);
    if (slots[SLOT_LAUNCHER].revents && node->launcher)
        tfos__node_launcher_step(node);
}

// Called while the node joins, before its loop runs.
static bool must_end(void *context)
{
    struct tfos__node *node = context;
    struct pollfd slots[SLOT_COUNT];
    fill(node, slots);
    if (poll(slots, SLOT_COUNT, 0) > 0)
        handle_owners(node, slots);
    return node->is_ending;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_deadline(const struct tfos__node *node)
{
    int64_t deadline = node->role_deadline;
    // When a driver that is behind takes bytes again, its socket becomes writable.
    if (!node->is_driver_lost && !tfos__node_rendezvous_is_behind(node)) {
        deadline = earlier(deadline, node->heartbeat_at);
        if (node->trainer.output)
            deadline = earlier(deadline, tfos__node_output_due(node->trainer.output));
    }
    if (node->trainer.child.is_running)
        deadline = earlier(deadline, node->trainer.child.kill_at);
    if (node->feed)
        deadline =
            earlier(deadline, earlier(node->feed_step_at, tfos__node_trainer_stack_due(node)));
    deadline = earlier(deadline, node->trainer.leftovers_end_at);
    return earlier(deadline, tfos__node_tensorboard_due(&node->tensorboard));
}

/// What is due by the clock, whatever descriptor woke the loop.
static enum tfos_status tick(struct tfos__node *node, struct tfos_error *err)
{
    if (tfos__remaining_ms(node->role_deadline) == 0)
        return tfos__fail(err, TFOS_TIMEOUT,
                          "node: the driver at %s did not answer the hello of executor %lld",
                          node->config.address, (long long)node->config.executor_id);
    tfos__node_child_tick(&node->trainer.child);
    tfos__node_tensorboard_tick(node);
    tfos__node_trainer_tick(node);
    if (tfos__remaining_ms(node->trainer.leftovers_end_at) == 0) {
        struct tfos__node_child *spared[] = {&node->tensorboard.child};
        tfos__node_child_sweep(SIGKILL, spared, 1);
        node->trainer.leftovers_end_at = TFOS__NEVER;
    }
    if (node->feed && (tfos__remaining_ms(node->feed_step_at) == 0 ||
                       tfos__remaining_ms(tfos__node_trainer_stack_due(node)) == 0))
        TFOS__TRY(tfos__node_feed_step(node, err));
    tfos__node_rendezvous_tick(node);
    return TFOS_OK;
}

/// Runs until the end has been reached, in order. It fails when the node cannot continue.
static enum tfos_status run(struct tfos__node *node, struct tfos_error *err)
{
    while (!node->is_ending || node->trainer.child.is_running) {
        struct pollfd slots[SLOT_COUNT];
        fill(node, slots);
        if (poll(slots, SLOT_COUNT, tfos__remaining_ms(next_deadline(node))) < 0) {
            if (errno != EINTR)
                return tfos__fail_errno(err, TFOS_IO, "node: cannot wait for events");
            continue;
        }
        if (slots[SLOT_OUTPUT].revents || slots[SLOT_OUTPUT + 1].revents)
            tfos__node_output_step(node->trainer.output);
        if (slots[SLOT_TENSORBOARD].revents || slots[SLOT_TENSORBOARD + 1].revents)
            tfos__node_output_step(node->tensorboard.output);
        if (slots[SLOT_PROBE].revents)
            tfos__node_tensorboard_step(node);
        if (slots[SLOT_TRAINER].revents)
            tfos__node_trainer_step(node);
        handle_owners(node, slots);
        if (slots[SLOT_DRIVER].revents)
            TFOS__TRY(tfos__node_rendezvous_step(node, err));
        if (slots[SLOT_FEED].revents)
            TFOS__TRY(tfos__node_feed_step(node, err));
        TFOS__TRY(tick(node, err));
    }
    return TFOS_OK;
}

static enum tfos_status begin(struct tfos__node *node, int fd, struct tfos_error *err)
{
    TFOS__TRY(tfos__node_launcher_open(node, fd, err));
    snprintf(node->name, sizeof(node->name), "executor %lld", (long long)node->config.executor_id);
    TFOS__TRY(tfos__node_launcher_watch_executor(node, err));
    struct tfos_wait wait = {
        .timeout_ms = node->config.join_timeout_ms, .is_interrupted = must_end, .context = node};
    enum tfos_status status = tfos__node_gpus_take(node, &wait, err);
    if (status == TFOS_OK)
        status = tfos__node_rendezvous_join(node, &wait, err);
    return node->is_ending ? TFOS_OK : status;
}

// Reports a failure where there is no end of a trainer to report.
static void report_failure(struct tfos__node *node, enum tfos_status status, const char *message)
{
    if (node->cause != TFOS__CAUSE_STOPPED)
        tfos__node_rendezvous_send(node,
                                   json_pack("{s:s, s:s}", "type", "failed", "message", message));
    tfos__node_launcher_send(node, json_pack("{s:s, s:s, s:s}", "type", "failed", "status",
                                             tfos_status_name(status), "message", message));
}

static void close_all(struct tfos__node *node)
{
    tfos__node_launcher_close(node);
    tfos__channel_finish(node->driver, node->is_driver_lost ? 0 : CLOSE_TIMEOUT_MS);
    tfos__node_feed_close(node);
    tfos__channel_close(node->trainer.channel);
    tfos__node_output_close(node->trainer.output);
    tfos__node_tensorboard_close(&node->tensorboard);
    tfos__node_gpus_close(node);
    const int fds[] = {node->payload_fd, node->signal_fd, node->executor_fd, node->port_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    json_decref(node->cluster_spec);
    json_decref(node->trainer.report);
    json_decref(node->trainer.steps);
    tfos__free(node->job_name);
    tfos__free(node->trainer.message);
    tfos__node_config_clear(&node->config);
}

enum tfos_status tfos_node_run(int fd, const struct tfos_node_forker *forker,
                               struct tfos_error *err)
{
    struct tfos_error local;
    err = err ? err : &local;
    struct tfos__node *node = tfos__alloc(1, sizeof(*node));
    if (!node)
        return tfos__no_memory(err, "node", "a node");
    node->forker = forker;
    node->payload_fd = node->signal_fd = node->executor_fd = node->port_fd = -1;
    node->role_deadline = node->trainer.leftovers_end_at = TFOS__NEVER;
    sigset_t old_mask;
    enum tfos_status status = open_signals(node, &old_mask, err);
    if (status == TFOS_OK)
        status = begin(node, fd, err);
    else
        close(fd);
    if (status == TFOS_OK)
        status = run(node, err);
    struct tfos__node_child *children[] = {&node->trainer.child, &node->tensorboard.child};
    if (status < 0)
        report_failure(node, status, err->message);
    else if (!node->trainer.child.pid)
        report_failure(node, TFOS_CLOSED, node->end_message);
    tfos__node_child_end_all(END_GRACE_MS, children, 2);
    close_all(node);
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    tfos__free(node);
    return status;
}

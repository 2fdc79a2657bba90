// SPDX-License-Identifier: Apache-2.0
/// A child is signalled by its pid, which is safe: nobody else gets that pid before this process,
/// its parent, has reaped it. Children found by sweep() are those whose parent, by /proc, is this
/// process.
#include "node/child.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define UNKILLABLE_MS 5000
#define SWEEP_INTERVAL_MS 20

enum tfos_status tfos__node_child_adopt_orphans(struct tfos_error *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot become a subreaper");
    return TFOS_OK;
}

/// In the new process it does not return.
static enum tfos_status start_fork(const struct tfos__spawn_options *options,
                                   const struct tfos_node_forker *forker, pid_t *pid,
                                   struct tfos_error *err)
{
    *pid = forker->fork(forker->context);
    if (*pid < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot fork process %d", (int)getpid());
    if (*pid > 0)
        return TFOS_OK;
    if (tfos__process_become(options, err) < 0) {
        dprintf(STDERR_FILENO, "%s\n", err->message);
        _exit(EXIT_FAILURE);
    }
    const char *slash = strrchr(options->argv[0], '/');
    (void)prctl(PR_SET_NAME, slash ? slash + 1 : options->argv[0], 0, 0, 0);
    forker->run(forker->context, options->envp);
    _exit(EXIT_FAILURE);
}

enum tfos_status tfos__node_child_start(struct tfos__node_child *child,
                                        struct tfos__spawn_options *options,
                                        struct tfos__node_output *output,
                                        const struct tfos_node_forker *forker,
                                        struct tfos_error *err)
{
    pid_t pid;
    options->new_session = true;
    options->stdin_fd = -1;
    options->stdout_fd = output ? tfos__node_output_writer_fd(output, TFOS__OUTPUT_STDOUT) : -1;
    options->stderr_fd = output ? tfos__node_output_writer_fd(output, TFOS__OUTPUT_STDERR) : -1;
    enum tfos_status status =
        forker ? start_fork(options, forker, &pid, err) : tfos__process_spawn(options, &pid, err);
    if (output)
        tfos__node_output_close_writers(output);
    if (status == TFOS_OK)
        *child = (struct tfos__node_child){.pid = pid, .is_running = true, .kill_at = TFOS__NEVER};
    return status;
}

/// The child and its group, which it need not lead.
static void signal_group(const struct tfos__node_child *child, int signal_number)
{
    pid_t group = getpgid(child->pid);
    if (group > 0 && group != getpgrp())
        kill(-group, signal_number);
    kill(child->pid, signal_number);
}

void tfos__node_child_stop(struct tfos__node_child *child, int64_t grace_ms)
{
    if (!child->is_running)
        return;
    if (!child->was_stopped && grace_ms > 0)
        signal_group(child, SIGTERM);
    child->was_stopped = true;
    int64_t kill_at = tfos__deadline(grace_ms);
    if (kill_at < child->kill_at)
        child->kill_at = kill_at;
    tfos__node_child_tick(child);
}

void tfos__node_child_tick(struct tfos__node_child *child)
{
    if (!child->is_running || tfos__remaining_ms(child->kill_at) != 0)
        return;
    signal_group(child, SIGKILL);
    child->kill_at = TFOS__NEVER;
}

/// The one of `children` that runs with this pid, or NULL.
static struct tfos__node_child *find_running(struct tfos__node_child *const *children, int count,
                                             pid_t pid)
{
    for (int i = 0; i < count; i++)
        if (children[i]->is_running && children[i]->pid == pid)
            return children[i];
    return NULL;
}

struct tfos__node_child *
tfos__node_child_reap(struct tfos__node_child *const *children, int count,
                      void (*examine)(void *context, pid_t pid, int wait_status), void *context)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
        struct tfos__node_child *child = find_running(children, count, info.si_pid);
        int wait_status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
        if (!child && examine)
            examine(context, info.si_pid, wait_status);
        waitpid(info.si_pid, &wait_status, 0);
        if (child) {
            child->is_running = false;
            child->wait_status = wait_status;
            return child;
        }
    }
    return NULL;
}

/// Reaps all that have ended. False when this process has no child left.
static bool reap_all(struct tfos__node_child *const *children, int count)
{
    while (tfos__node_child_reap(children, count, NULL, NULL))
        continue;
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void tfos__node_child_visit(void (*visit)(void *context, pid_t pid), void *context)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    pid_t self = getpid();
    const struct dirent *entry;
    while ((entry = readdir(processes))) {
        struct tfos__process_stat stat;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && tfos__process_get_stat(pid, &stat) && stat.parent == self)
            visit(context, pid);
    }
    closedir(processes);
}

struct sweep {
    int signal_number;
    struct tfos__node_child *const *spared;
    int count;
};

static void sweep(void *context, pid_t pid)
{
    const struct sweep *self = context;
    if (!find_running(self->spared, self->count, pid))
        kill(pid, self->signal_number);
}

void tfos__node_child_sweep(int signal_number, struct tfos__node_child *const *spared, int count)
{
    struct sweep context = {signal_number, spared, count};
    tfos__node_child_visit(sweep, &context);
}

void tfos__node_child_end_all(int64_t grace_ms, struct tfos__node_child *const *children, int count)
{
    if (!reap_all(children, count))
        return;
    for (int i = 0; i < count; i++)
        tfos__node_child_stop(children[i], grace_ms);
    tfos__node_child_sweep(SIGTERM, children, count);
    int64_t kill_at = tfos__deadline(grace_ms);
    int64_t give_up_at = tfos__deadline(grace_ms + UNKILLABLE_MS);
    while (reap_all(children, count) && tfos__remaining_ms(give_up_at) != 0) {
        for (int i = 0; i < count; i++)
            tfos__node_child_tick(children[i]);
        if (tfos__remaining_ms(kill_at) == 0)
            tfos__node_child_sweep(SIGKILL, NULL, 0);
        poll(NULL, 0, SWEEP_INTERVAL_MS);
    }
}

// SPDX-License-Identifier: Apache-2.0
/// A child is signalled by its pid, which is safe: nobody else gets that pid before this process,
/// its parent, has reaped it. Children found by sweep() are those whose parent, by /proc, is this
/// process.
#include "node/child.h"

#include "base/clock.h"
#include "base/fail.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNKILLABLE_MS 5000
#define SWEEP_INTERVAL_MS 20

enum tfos_status tfos__child_adopt_orphans(struct tfos_error *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot become a subreaper");
    return TFOS_OK;
}

enum tfos_status tfos__child_start(struct tfos__child *child, struct tfos__spawn_options *options,
                                   struct tfos_error *err)
{
    options->new_session = true;
    pid_t pid;
    TFOS__TRY(tfos__process_spawn(options, &pid, err));
    *child = (struct tfos__child){.pid = pid, .is_running = true, .kill_at = TFOS__NEVER};
    return TFOS_OK;
}

/// The child and its group, which it need not lead.
static void signal_group(const struct tfos__child *child, int signal_number)
{
    pid_t group = getpgid(child->pid);
    if (group > 0 && group != getpgrp())
        kill(-group, signal_number);
    kill(child->pid, signal_number);
}

void tfos__child_stop(struct tfos__child *child, int64_t grace_ms)
{
    if (!child->is_running)
        return;
    if (!child->was_stopped && grace_ms > 0)
        signal_group(child, SIGTERM);
    child->was_stopped = true;
    int64_t kill_at = tfos__deadline(grace_ms);
    if (kill_at < child->kill_at)
        child->kill_at = kill_at;
    tfos__child_tick(child);
}

void tfos__child_tick(struct tfos__child *child)
{
    if (!child->is_running || tfos__remaining_ms(child->kill_at) != 0)
        return;
    signal_group(child, SIGKILL);
    child->kill_at = TFOS__NEVER;
}

struct tfos__child *tfos__child_reap(struct tfos__child *const *children, int count)
{
    pid_t pid;
    int wait_status;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        for (int i = 0; i < count; i++) {
            if (children[i]->is_running && children[i]->pid == pid) {
                children[i]->is_running = false;
                children[i]->wait_status = wait_status;
                return children[i];
            }
        }
    }
    return NULL;
}

/// Reaps all that have ended. False when this process has no child left.
static bool reap_all(struct tfos__child *const *children, int count)
{
    while (tfos__child_reap(children, count))
        continue;
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// The parent of `pid`, or 0. The name in its stat may hold any character, so the fields are
/// counted from its last bracket.
static pid_t parent_of(pid_t pid)
{
    char text[512];
    const char *bracket = NULL;
    if (tfos__process_read(pid, "stat", text, sizeof text) > 0)
        bracket = strrchr(text, ')');
    return bracket && strlen(bracket) > 4 ? (pid_t)strtol(bracket + 4, NULL, 10) : 0;
}

void tfos__child_visit(void (*visit)(void *context, pid_t pid), void *context)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    pid_t self = getpid();
    const struct dirent *entry;
    while ((entry = readdir(processes))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && parent_of(pid) == self)
            visit(context, pid);
    }
    closedir(processes);
}

static bool is_spared(pid_t pid, struct tfos__child *const *spared, int count)
{
    for (int i = 0; i < count; i++) {
        if (spared[i]->is_running && spared[i]->pid == pid)
            return true;
    }
    return false;
}

struct sweep {
    int signal_number;
    struct tfos__child *const *spared;
    int count;
};

static void sweep(void *context, pid_t pid)
{
    const struct sweep *self = context;
    if (!is_spared(pid, self->spared, self->count))
        kill(pid, self->signal_number);
}

void tfos__child_sweep(int signal_number, struct tfos__child *const *spared, int count)
{
    struct sweep context = {signal_number, spared, count};
    tfos__child_visit(sweep, &context);
}

void tfos__child_end_all(int64_t grace_ms, struct tfos__child *const *children, int count)
{
    if (!reap_all(children, count))
        return;
    for (int i = 0; i < count; i++)
        tfos__child_stop(children[i], grace_ms);
    tfos__child_sweep(SIGTERM, children, count);
    int64_t kill_at = tfos__deadline(grace_ms);
    int64_t give_up_at = tfos__deadline(grace_ms + UNKILLABLE_MS);
    while (reap_all(children, count) && tfos__remaining_ms(give_up_at) != 0) {
        for (int i = 0; i < count; i++)
            tfos__child_tick(children[i]);
        if (tfos__remaining_ms(kill_at) == 0)
            tfos__child_sweep(SIGKILL, NULL, 0);
        poll(NULL, 0, SWEEP_INTERVAL_MS);
    }
}

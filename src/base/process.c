// SPDX-License-Identifier: Apache-2.0
// Starting and watching processes. A new one begins with an empty signal mask, default dispositions
// and exactly the descriptors that were named: sources are first duplicated above all targets, so
// that no dup2 overwrites one that is still needed.
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

#define FIRST_INHERITED 3
#define ANCESTORS_MAX 64 // a chain that is longer is a race with reused process ids

struct spawn_plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int *sources; // duplicates; target i comes from sources[i], -1: /dev/null
    int count;
};

int tfos__process_standard_fd(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

static int source_of(const struct tfos__spawn_options *options, int target)
{
    switch (target) {
    case STDIN_FILENO:
        return options->stdin_fd;
    case STDOUT_FILENO:
        return options->stdout_fd;
    case STDERR_FILENO:
        return options->stderr_fd;
    default:
        return options->inherited_fds[target - FIRST_INHERITED];
    }
}

/// Fills `plan->sources`, also when it fails.
static enum tfos_status duplicate_sources(const struct tfos__spawn_options *options,
                                          struct spawn_plan *plan, struct tfos_error *err)
{
    int count = FIRST_INHERITED + options->inherited_count;
    plan->sources = tfos__alloc((size_t)count, sizeof(*plan->sources));
    if (!plan->sources)
        return tfos__no_memory(err, "process", "a list of descriptors");
    for (int target = 0; target < count; target++) {
        int source = source_of(options, target);
        int copy = -1;
        if (source >= 0 || target >= FIRST_INHERITED) {
            copy = fcntl(source, F_DUPFD_CLOEXEC, count);
            if (copy < 0)
                return tfos__fail_errno(err, TFOS_IO, "process: cannot pass descriptor %d on to %s",
                                        source,
                                        options->argv ? options->argv[0] : "a forked process");
        }
        plan->sources[target] = copy;
        plan->count = target + 1;
    }
    return TFOS_OK;
}

#if __GLIBC_PREREQ(2, 34)
static int close_others(posix_spawn_file_actions_t *actions, int first)
{
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
#else
// What another thread opens without close-on-exec after this list was read gets through; nothing in
// this library does.
static int close_others(posix_spawn_file_actions_t *actions, int first)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return errno;
    int fault = 0;
    const struct dirent *entry;
    while (fault == 0 && (entry = readdir(folder))) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (fd >= first && fd != dirfd(folder))
            fault = posix_spawn_file_actions_addclose(actions, (int)fd);
    }
    closedir(folder);
    return fault;
}
#endif

static int plan_descriptors(const struct tfos__spawn_options *options, struct spawn_plan *plan)
{
    int fault = 0;
    for (int target = 0; target < plan->count && fault == 0; target++) {
        if (plan->sources[target] >= 0)
            fault = posix_spawn_file_actions_adddup2(&plan->actions, plan->sources[target], target);
        else
            fault =
                posix_spawn_file_actions_addopen(&plan->actions, target, "/dev/null", O_RDWR, 0);
    }
    if (fault == 0)
        fault = close_others(&plan->actions, plan->count);
    if (fault == 0 && options->directory)
        fault = posix_spawn_file_actions_addchdir_np(&plan->actions, options->directory);
    return fault;
}

static int plan_attributes(const struct tfos__spawn_options *options, struct spawn_plan *plan)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (options->new_session)
        flags |= POSIX_SPAWN_SETSID;
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int fault = posix_spawnattr_setflags(&plan->attributes, flags);
    if (fault == 0)
        fault = posix_spawnattr_setsigmask(&plan->attributes, &none);
    if (fault == 0)
        fault = posix_spawnattr_setsigdefault(&plan->attributes, &all);
    return fault;
}

static enum tfos_status fail_spawn(const struct tfos__spawn_options *options, int fault,
                                   struct tfos_error *err)
{
    struct stat state;
    const char *directory = options->directory;
    if (fault == ENOENT && directory && stat(directory, &state) != 0)
        return tfos__fail_errno(err, TFOS_NOT_FOUND, "process: cannot start %s in directory %s",
                                options->argv[0], directory);
    errno = fault;
    enum tfos_status status = fault == ENOENT ? TFOS_NOT_FOUND : TFOS_IO;
    return tfos__fail_errno(err, status, "process: cannot start %s", options->argv[0]);
}

enum tfos_status tfos__process_spawn(const struct tfos__spawn_options *options, pid_t *pid,
                                     struct tfos_error *err)
{
    struct spawn_plan plan = {0};
    int fault = posix_spawn_file_actions_init(&plan.actions);
    if (fault != 0)
        return fail_spawn(options, fault, err);
    fault = posix_spawnattr_init(&plan.attributes);
    if (fault != 0) {
        posix_spawn_file_actions_destroy(&plan.actions);
        return fail_spawn(options, fault, err);
    }
    enum tfos_status status = duplicate_sources(options, &plan, err);
    if (status == TFOS_OK) {
        pid_t started;
        fault = plan_descriptors(options, &plan);
        if (fault == 0)
            fault = plan_attributes(options, &plan);
        if (fault == 0)
            fault = posix_spawnp(&started, options->argv[0], &plan.actions, &plan.attributes,
                                 options->argv, options->envp);
        if (fault == 0)
            *pid = started;
        else
            status = fail_spawn(options, fault, err);
    }
    for (int i = 0; i < plan.count; i++) {
        if (plan.sources[i] >= 0)
            close(plan.sources[i]);
    }
    tfos__free(plan.sources);
    posix_spawnattr_destroy(&plan.attributes);
    posix_spawn_file_actions_destroy(&plan.actions);
    return status;
}

enum tfos_status tfos__process_spawn_session(char *const *argv, char *const *envp, int fd,
                                             pid_t *pid, struct tfos_error *err)
{
    struct tfos__spawn_options options = {
        .argv = argv,
        .envp = envp,
        .stdin_fd = -1,
        .stdout_fd = tfos__process_standard_fd(STDOUT_FILENO),
        .stderr_fd = tfos__process_standard_fd(STDERR_FILENO),
        .inherited_fds = &fd,
        .inherited_count = 1,
        .new_session = true,
    };
    return tfos__process_spawn(&options, pid, err);
}

static void close_from(int first)
{
#if __GLIBC_PREREQ(2, 34)
    closefrom(first);
#else
    long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < limit; fd++)
        close(fd);
#endif
}

static bool take_descriptors(const struct spawn_plan *plan)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool is_done = null_fd >= 0;
    // Above the targets, as the other sources are.
    int empty = is_done ? fcntl(null_fd, F_DUPFD_CLOEXEC, plan->count) : -1;
    is_done = empty >= 0;
    for (int target = 0; is_done && target < plan->count; target++)
        is_done = dup2(plan->sources[target] >= 0 ? plan->sources[target] : empty, target) >= 0;
    close_from(plan->count);
    return is_done;
}

enum tfos_status tfos__process_become(const struct tfos__spawn_options *options,
                                      struct tfos_error *err)
{
    struct spawn_plan plan = {0};
    sigset_t none;
    sigemptyset(&none);
    enum tfos_status status = duplicate_sources(options, &plan, err);
    if (status == TFOS_OK &&
        (!take_descriptors(&plan) || sigprocmask(SIG_SETMASK, &none, NULL) != 0 ||
         (options->new_session && setsid() < 0)))
        status = tfos__fail_errno(err, TFOS_IO, "process: cannot set up the forked process %d",
                                  (int)getpid());
    if (status == TFOS_OK && options->directory && chdir(options->directory) != 0)
        status = tfos__fail_errno(err, TFOS_NOT_FOUND, "process: cannot work in directory %s",
                                  options->directory);
    tfos__free(plan.sources);
    return status;
}

enum tfos_status tfos__process_watch(pid_t pid, int *pidfd, struct tfos_error *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0); // always close-on-exec
    if (fd >= 0) {
        *pidfd = fd;
        return TFOS_OK;
    }
    enum tfos_status status = TFOS_IO;
    if (errno == ESRCH)
        status = TFOS_NOT_FOUND;
    else if (errno == EINVAL)
        status = TFOS_INVALID;
    else if (errno == ENOSYS)
        status = TFOS_UNSUPPORTED;
    return tfos__fail_errno(err, status, "process: cannot watch process %d", (int)pid);
}

size_t tfos__process_read(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    text[0] = '\0';
    if (fd < 0)
        return 0;
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = '\0';
    return length;
}

bool tfos__process_get_stat(pid_t pid, struct tfos__process_stat *stat)
{
    char text[1024];
    *stat = (struct tfos__process_stat){0};
    if (tfos__process_read(pid, "stat", text, sizeof(text)) == 0)
        return false;
    // "12 (a (strange) name) S 1 ...": the name may hold anything, so its end is the last
    // parenthesis.
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (!begin || !end || end < begin)
        return false;
    snprintf(stat->command, sizeof(stat->command), "%.*s", (int)(end - begin - 1), begin + 1);
    return sscanf(end + 1, " %c %d %*d %*d %*d %*d %lu", &stat->state, &stat->parent,
                  &stat->flags) == 3;
}

// Spark starts its Python daemon, and the daemon its workers, as "python -m pyspark.daemon".
static bool is_pyspark(pid_t pid)
{
    char text[4096];
    size_t size = tfos__process_read(pid, "cmdline", text, sizeof(text));
    const char *name = strrchr(text, '/');
    if (size == 0 ||
        strncmp(name && name < text + strlen(text) ? name + 1 : text, "python", 6) != 0)
        return false;
    for (size_t at = strlen(text) + 1; at < size; at += strlen(text + at) + 1) {
        if (strncmp(text + at, "pyspark.", 8) == 0)
            return true;
    }
    return false;
}

pid_t tfos__process_find_executor(pid_t pid)
{
    struct tfos__process_stat stat;
    pid_t found = 0, process = pid;
    for (int i = 0; i < ANCESTORS_MAX && process > 0; i++) {
        tfos__process_get_stat(process, &stat);
        if (strcmp(stat.command, "java") == 0)
            return process;
        if (i == 0 || is_pyspark(process))
            found = stat.parent;
        process = stat.parent;
    }
    return found;
}

char *tfos__process_describe(int wait_status, char text[64])
{
    if (WIFEXITED(wait_status)) {
        snprintf(text, 64, "exit status %d", WEXITSTATUS(wait_status));
        return text;
    }
    int number = WTERMSIG(wait_status);
    const char *name = NULL;
#if __GLIBC_PREREQ(2, 32)
    name = sigdescr_np(number);
#endif
    if (name)
        snprintf(text, 64, "signal %d (%s)", number, name);
    else
        snprintf(text, 64, "signal %d", number);
    return text;
}

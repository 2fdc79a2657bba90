// SPDX-License-Identifier: Apache-2.0
/// Processes: starting one without fork, watching one by pidfd, and finding the executor above a
/// Spark worker.
#ifndef TFOS_BASE_PROCESS_H
#define TFOS_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <tfos/status.h>

/// What a new process gets. All borrowed. Descriptors not named here are closed in it.
struct tfos__spawn_options {
    char *const *argv;        ///< argv[0] is looked up in PATH unless it has a slash
    char *const *envp;        ///< the whole environment
    const char *directory;    ///< working directory; NULL: the same
    int stdin_fd;             ///< -1: /dev/null
    int stdout_fd;            ///< -1: /dev/null
    int stderr_fd;            ///< -1: /dev/null
    const int *inherited_fds; ///< they become 3, 4, ... in the new process, in this order
    int inherited_count;
    bool new_session; ///< setsid, so that signals to the parent's group do not reach it
};

/// One of this process's standard descriptors, or -1 when it is closed.
int tfos__process_standard_fd(int fd);

/// Starts a process by posix_spawn (never fork). NOT_FOUND names the program; IO otherwise.
enum tfos_status tfos__process_spawn(const struct tfos__spawn_options *options, pid_t *pid,
                                     struct tfos_error *err);

/// Starts a process in a session of its own, with this process's standard output and error, and
/// `fd` as its descriptor 3. As tfos__process_spawn().
enum tfos_status tfos__process_spawn_session(char *const *argv, char *const *envp, int fd,
                                             pid_t *pid, struct tfos_error *err);

/// Makes this process, which was just forked and has one thread, what spawn() would have started:
/// with exactly these descriptors, no blocked signals, its directory and session. `argv` and `envp`
/// do not count. After a failure it can only end. NOT_FOUND names the directory; IO otherwise.
enum tfos_status tfos__process_become(const struct tfos__spawn_options *options,
                                      struct tfos_error *err);

/// A pidfd (close-on-exec), readable once the process has ended. NOT_FOUND when there is none such;
/// UNSUPPORTED before Linux 5.3.
enum tfos_status tfos__process_watch(pid_t pid, int *pidfd, struct tfos_error *err);

/// The JVM of the executor that `pid` works for: the nearest ancestor (or itself) whose command is
/// "java"; if there is none, the parent of the outermost ancestor that is a Python of pyspark, else
/// the parent of `pid`.
pid_t tfos__process_find_executor(pid_t pid);

/// Reads /proc/<pid>/<name>, as much as fits, and ends it by a null; the number of bytes, 0 when it
/// cannot be read.
size_t tfos__process_read(pid_t pid, const char *name, char *text, size_t size);

/// What /proc tells of a process.
struct tfos__process_stat {
    char command[32]; ///< its name, 15 bytes at most
    char state;       ///< as ps(1) has it
    pid_t parent;
    unsigned long flags; ///< the kernel's
};

/// False, and all zero, when there is no such process.
bool tfos__process_get_stat(pid_t pid, struct tfos__process_stat *stat);

/// In words, as "exit status 3" or "signal 9 (Killed)", from waitpid's status; returns `text`.
char *tfos__process_describe(int wait_status, char text[64]);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A node: the process beside an executor that joins the rendezvous, starts the trainer and
/// supervises it. A Spark task launches it; the process itself calls tfos_node_run().
#ifndef TFOS_NODE_H
#define TFOS_NODE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tfos/status.h>

struct tfos_node_launch;

/// Starts `executable` (the tfos command) as a node process in a session of its own, with this
/// process's environment and directory, and gives it `config` (JSON; docs/protocol.md, "Node") and
/// `payload` (any bytes, given to the trainer unchanged). With "preload" in `config` the node is
/// forked from the executor's fork server instead, which is started if there is none; this waits
/// until that has imported its modules. On success the caller owns `*out`. One thread at a time.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_node_launch(const char *executable, const char *config, const void *payload,
                 size_t payload_size, struct tfos_node_launch **out, struct tfos_error *err);

/// The node's next message to its launcher ("registered", "running", "ended", "failed";
/// docs/protocol.md). AGAIN after `timeout_ms`; CLOSED, with the node's exit status, when the
/// process ended without a message. Freed with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_node_launch_next(struct tfos_node_launch *launch,
                                                                int64_t timeout_ms, char **json,
                                                                struct tfos_error *err);

/// Lets the node run on after close().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_node_launch_detach(struct tfos_node_launch *launch,
                                                                  struct tfos_error *err);

/// Ends the launcher's side. A node that is not detached ends its trainer and itself. NULL is
/// accepted.
TFOS_API void tfos_node_launch_close(struct tfos_node_launch *launch);

/// The pid of the executor that process `pid` works for: the nearest JVM above it, or what takes
/// its place. docs/protocol.md calls it `executor_pid`.
TFOS_API int64_t tfos_process_find_executor(int64_t pid);

/// How a process of a language's interpreter is forked.
struct tfos_node_forker {
    pid_t (*fork)(void *context); ///< as fork(2)
    /// Runs the trainer, in its process, and does not return. `environment` ends with NULL.
    void (*run)(void *context, char *const *environment);
    void *context;
};

/// The whole life of a node, in the process that tfos_node_launch() started; `fd` is the launcher's
/// socket. The trainer is the program that the launcher names or, with `forker`, a fork of this
/// process. Returns when all is over and nothing is left running.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_node_run(int fd, const struct tfos_node_forker *forker, struct tfos_error *err);

/// The variable that tells a trainer's program to be a fork server: the executor's pid, a space,
/// and what to import. Descriptor 3 is the listening socket then.
#define TFOS_FORK_SERVER_VARIABLE "TFOS_FORK_SERVER"

/// The life of a fork server: a process that has imported what trainers need, of which each
/// launch gets a fork, which is its node, whose trainer is a fork again. `listener_fd` is taken
/// over. Returns when the executor has ended, or after ten minutes without a node; nodes that
/// run then are not ended. One thread, the process's only one that is not the libraries' own.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_node_serve_forks(int listener_fd, int64_t executor_pid, const struct tfos_node_forker *forker,
                      struct tfos_error *err);

#endif

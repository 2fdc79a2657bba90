// SPDX-License-Identifier: Apache-2.0
/// A node: the process beside an executor that joins the rendezvous, starts the trainer and
/// watches over it. A Spark task launches it; the process itself calls tfos_node_run().
#ifndef TFOS_NODE_H
#define TFOS_NODE_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

struct tfos_node_launch;

/// Starts `executable` (the tfos command) as a node process in a session of its own, with this
/// process's environment and directory, and gives it `config` (JSON; docs/protocol.md, "Node") and
/// `payload` (any bytes, given to the trainer unchanged). On success the caller owns `*out`. One
/// thread at a time.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_node_launch(const char *executable, const char *config, const void *payload,
                 size_t payload_size, struct tfos_node_launch **out, struct tfos_error *err);

/// The node's next message to its launcher ("registered", "running", "ended", "failed";
/// docs/protocol.md). AGAIN after `timeout_ms`; CLOSED, with the node's exit status, when the
/// process ended without a word. Freed with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_node_launch_next(struct tfos_node_launch *launch,
                                                                int64_t timeout_ms, char **json,
                                                                struct tfos_error *err);

/// Lets the node live on after close().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_node_launch_detach(struct tfos_node_launch *launch,
                                                                  struct tfos_error *err);

/// Ends the launcher's side. A node that is not detached ends its trainer and itself. NULL is
/// accepted.
TFOS_API void tfos_node_launch_close(struct tfos_node_launch *launch);

/// The pid of the executor that process `pid` works for: the nearest JVM above it, or what stands
/// for one. docs/protocol.md calls it `executor_pid`.
TFOS_API int64_t tfos_process_find_executor(int64_t pid);

/// The whole life of a node, in the process that tfos_node_launch() started; `fd` is the launcher's
/// socket. Returns when all is over and nothing is left running.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_node_run(int fd, struct tfos_error *err);

#endif

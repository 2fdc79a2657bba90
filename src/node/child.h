// SPDX-License-Identifier: Apache-2.0
/// Child processes of a node: the trainer and TensorBoard, each in a session of its own, and
/// whatever they leave behind. The node is a subreaper: an orphaned grandchild becomes its child,
/// and is ended with it.
#ifndef TFOS_NODE_CHILD_H
#define TFOS_NODE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <tfos/node.h>

#include "base/process.h"
#include "node/output.h"

/// All zero: not started.
struct tfos__node_child {
    pid_t pid;        ///< 0 until started; stays after the end
    bool is_running;  ///< started and not yet reaped
    bool was_stopped; ///< stop() was called while it ran
    int64_t kill_at;  ///< when stop() becomes SIGKILL; TFOS__NEVER: not
    int wait_status;  ///< as of waitpid(), once it has ended
};

/// Makes this process the one that orphaned descendants come to.
enum tfos_status tfos__node_child_adopt_orphans(struct tfos_error *err);

/// Starts it as the leader of a new session, without input. What it writes goes to `output`, whose
/// writers are closed here then, also when it fails; NULL: to nowhere. Of `options`, the rest
/// counts. With `forker` it is no new program, but a fork of this process.
enum tfos_status tfos__node_child_start(struct tfos__node_child *child,
                                        struct tfos__spawn_options *options,
                                        struct tfos__node_output *output,
                                        const struct tfos_node_forker *forker,
                                        struct tfos_error *err);

/// SIGTERM to the whole group, and SIGKILL `grace_ms` later by tick(); at once when 0. A second
/// call can only bring the SIGKILL nearer.
void tfos__node_child_stop(struct tfos__node_child *child, int64_t grace_ms);

/// Sends the SIGKILL that is due.
void tfos__node_child_tick(struct tfos__node_child *child);

/// Reaps children of this process that have ended, in the order in which they became its children,
/// up to one of those in `children`, whose end it notes and which it gives. NULL: no other has
/// ended. `examine`, unless it is NULL, is called with each of the others before it is reaped, and
/// with its wait status.
struct tfos__node_child *
tfos__node_child_reap(struct tfos__node_child *const *children, int count,
                      void (*examine)(void *context, pid_t pid, int wait_status), void *context);

/// Calls `visit` with the pid of every child of this process, whoever started it.
void tfos__node_child_visit(void (*visit)(void *context, pid_t pid), void *context);

/// Signals every child of this process but those in `spared` that run.
void tfos__node_child_sweep(int signal_number, struct tfos__node_child *const *spared, int count);

/// Ends every child of this process, whoever started it: SIGTERM, after `grace_ms` SIGKILL, again
/// and again while their orphans come up. Gives up after 5 more seconds on what even SIGKILL does
/// not end.
void tfos__node_child_end_all(int64_t grace_ms, struct tfos__node_child *const *children,
                              int count);

#endif

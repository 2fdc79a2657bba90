// SPDX-License-Identifier: Apache-2.0
/// Who lives: a thread that beats to rank 0, or on rank 0 to all, hears the others' beats, notices
/// the end of a rank, and carries failures to all.
#ifndef TFOS_COLLECTIVE_LIVENESS_H
#define TFOS_COLLECTIVE_LIVENESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "collective/failure.h"
#include "collective/links.h"
#include "collective/roster.h"
#include "collective/shared_segment.h"

struct tfos__collective_liveness {
    const struct tfos__collective_roster *roster; ///< borrowed, as is what follows
    struct tfos__collective_links *links;         ///< its control connections are the thread's
    struct tfos__collective_failure *failure;
    const struct tfos__collective_segment *segment; ///< may be without memory
    int64_t silence_timeout_ms, stall_timeout_ms;
    _Atomic uint64_t reached[TFOS_COLLECTIVE_MAX_RANKS]; ///< the newest operation of each rank
    _Atomic int64_t
        blocked_us[TFOS_COLLECTIVE_MAX_RANKS]; ///< in waits of operations, since the open
    /// Beats in whose time a rank waited least for the others, by rank: where ranks have several
    /// hosts, none sees who comes last.
    _Atomic int64_t awaited[TFOS_COLLECTIVE_MAX_RANKS];

    int wake_fd; ///< owned; an eventfd: there is a failure to tell, or the end has come
    pthread_t thread;
    bool has_thread;
    _Atomic uint64_t leaving; ///< the first operation that this rank takes no part in; 0: it stays
    int pid_fds[TFOS_COLLECTIVE_MAX_RANKS];       ///< owned; of the host's others; -1: not watched
    int64_t judged_us[TFOS_COLLECTIVE_MAX_RANKS]; ///< `blocked_us` when rank 0 last judged
    int64_t received_ms[TFOS_COLLECTIVE_MAX_RANKS];
    bool has_left[TFOS_COLLECTIVE_MAX_RANKS]; ///< in order, or is known to have ended
};

/// Starts the thread. On failure stop() still is to be called.
enum tfos_status tfos__collective_liveness_start(struct tfos__collective_liveness *liveness,
                                                 struct tfos_error *err);

/// Tells the others that this rank takes no part in operation `first` and what follows, and ends
/// the thread.
void tfos__collective_liveness_stop(struct tfos__collective_liveness *liveness, uint64_t first);

#endif

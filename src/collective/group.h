// SPDX-License-Identifier: Apache-2.0
/// The state of a group.
#ifndef TFOS_COLLECTIVE_GROUP_H
#define TFOS_COLLECTIVE_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/collective.h>

#include "base/fork_guard.h"
#include "base/number_table.h"
#include "collective/failure.h"
#include "collective/gpu_communicator.h"
#include "collective/host_ring.h"
#include "collective/links.h"
#include "collective/liveness.h"
#include "collective/operation.h"
#include "collective/remote_parameters.h"
#include "collective/roster.h"
#include "collective/shared_parameters.h"
#include "collective/shared_segment.h"
#include "collective/step_clock.h"

struct tfos_collective {
    struct tfos__number_entry entry; ///< first; the number and the holds
    struct tfos__fork_guard guard;
    char *name; ///< owned
    int rank, size;
    bool is_trusted_network; ///< between hosts nothing needs to be encrypted
    int64_t stall_timeout_ms;
    uint64_t step; ///< of the pipeline; the operation's under way

    struct tfos__collective_roster roster;
    struct tfos__collective_segment segment; ///< without memory where each rank has its own host
    struct tfos__collective_links links;
    struct tfos__collective_ring ring; ///< without connections where this rank is in none
    struct tfos__collective_failure failure;
    struct tfos__collective_liveness liveness;       ///< without a thread for one rank
    struct tfos__collective_parameters parameters;   ///< of an operation, as is what follows
    struct tfos__collective_parameter_server server; ///< on rank 0
    _Atomic int64_t met_us; ///< when the ranks had come to the operation under way; 0: not yet
    float *pulled;          ///< owned; the values as this rank has pulled them; NULL: none are open
    bool has_pulled;        ///< and not pushed since
    struct tfos__collective_gpu gpu; ///< without a driver before the first operation on its memory

    pthread_mutex_t mutex; ///< guards all that follows
    bool is_used;          ///< an operation is under way
    int64_t begin_us;      ///< of the operation under way
    bool is_closed;
    uint64_t sequence;                      ///< of the last operation that was begun
    struct tfos_collective_figures figures; ///< of operations that have ended
    struct tfos__collective_step_clock steps;
    int64_t last_counts[TFOS_COLLECTIVE_MAX_RANKS]; ///< how often the rank came last, since the
                                                    ///< last look
};

#endif

// SPDX-License-Identifier: Apache-2.0
/// An operation under way: what it is, and what it runs on.
#ifndef TFOS_COLLECTIVE_OPERATION_H
#define TFOS_COLLECTIVE_OPERATION_H

#include <stdint.h>

#include "collective/descriptor.h"
#include "collective/failure.h"
#include "collective/roster.h"
#include "collective/shared_segment.h"

struct tfos__collective_ring;

struct tfos__collective_operation {
    struct tfos__collective_descriptor descriptor;
    const struct tfos__collective_roster *roster;   ///< borrowed, as is what follows
    const struct tfos__collective_segment *segment; ///< without memory where the group is flat
    struct tfos__collective_ring *ring;             ///< NULL: this rank is in none
    struct tfos__collective_failure *failure;
    const _Atomic uint64_t *reached; ///< the newest operation of each rank, as last heard
    uint64_t *step; ///< of the group: the first one of the operation, and at its end the next
    int64_t stall_timeout_ms;

    int64_t wait_us;    ///< for ranks that had not come to the operation
    int64_t blocked_us; ///< in waits of any kind
    int last_rank;      ///< who came last; -1: not known
};

/// The TIMEOUT of a wait for other hosts, with the ranks that have not come to the operation.
enum tfos_status
tfos__collective_operation_fail_stalled(const struct tfos__collective_operation *operation,
                                        struct tfos_error *err);

/// The failure INVALID of ranks whose operations differ.
enum tfos_status tfos__collective_operation_fail_mismatch(
    const struct tfos__collective_operation *operation, int other_rank,
    const struct tfos__collective_descriptor *other, struct tfos_error *err);

#endif

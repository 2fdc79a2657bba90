// SPDX-License-Identifier: Apache-2.0
/// The ring of hosts: the leader of each sends to the next and receives from the one before, both
/// at once. What a leader has received it sends on while more of it comes.
#ifndef TFOS_COLLECTIVE_HOST_RING_H
#define TFOS_COLLECTIVE_HOST_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "collective/links.h"
#include "collective/operation.h"
#include "collective/reduction.h"
#include "collective/span_vector.h"

struct tfos__collective_ring {
    struct tfos__channel *next, *previous; ///< borrowed
    int host, host_count;
    unsigned char *received; ///< owned; what is to be reduced
};

enum tfos_status tfos__collective_ring_init(struct tfos__collective_ring *ring,
                                            const struct tfos__collective_links *links,
                                            const struct tfos__collective_roster *roster,
                                            struct tfos_error *err);
void tfos__collective_ring_clear(struct tfos__collective_ring *ring);

/// Exchanges the operation's header with the neighbours and compares. With `counts` (by rank, those
/// of this host are set) it returns when all hosts have come to the operation, with all counts.
enum tfos_status tfos__collective_ring_meet(struct tfos__collective_operation *operation,
                                            int64_t *counts, struct tfos_error *err);

/// Reduces the vectors of all hosts.
enum tfos_status tfos__collective_ring_all_reduce(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const struct tfos__collective_reduction *reduction, struct tfos_error *err);

/// `size` bytes from the root's host to all.
enum tfos_status tfos__collective_ring_broadcast(struct tfos__collective_operation *operation,
                                                 void *data, int64_t size, struct tfos_error *err);
enum tfos_status
tfos__collective_ring_broadcast_vector(struct tfos__collective_operation *operation,
                                       const struct tfos__collective_vector *vector,
                                       struct tfos_error *err);

/// The vector has `counts[host]` elements of each host; this one's are set.
enum tfos_status tfos__collective_ring_all_gather(struct tfos__collective_operation *operation,
                                                  const struct tfos__collective_vector *vector,
                                                  const int64_t *counts, struct tfos_error *err);

/// The vector has `counts[host]` elements for each host; this one's are reduced.
enum tfos_status tfos__collective_ring_reduce_scatter(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const int64_t *counts, const struct tfos__collective_reduction *reduction,
    struct tfos_error *err);

#endif

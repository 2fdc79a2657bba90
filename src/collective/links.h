// SPDX-License-Identifier: Apache-2.0
/// The connections of a rank: one of control between rank 0 and each other; where there are several
/// hosts, of their leaders to the next leader and from the one before; and, if the group has
/// parameters, between rank 0 and each rank of another host.
#ifndef TFOS_COLLECTIVE_LINKS_H
#define TFOS_COLLECTIVE_LINKS_H

#include <stdint.h>
#include <tfos/status.h>

#include "collective/peer_connection.h"
#include "collective/roster.h"

struct tfos__collective_links {
    struct tfos__collective_peer control[TFOS_COLLECTIVE_MAX_RANKS]; ///< by the other's rank
    struct tfos__collective_peer next, previous; ///< of the ring; without a channel: no ring
    /// By the other's rank, between rank 0 and those of other hosts, in a group with parameters.
    struct tfos__collective_peer parameters[TFOS_COLLECTIVE_MAX_RANKS];
};

/// Makes the connections, over the listening socket too, and returns when all ranks have theirs.
/// TIMEOUT at the deadline, with the ranks that are missing; DENIED; CLOSED. clear() is to be
/// called in any case.
enum tfos_status tfos__collective_links_open(struct tfos__collective_links *links, int listener,
                                             const struct tfos__collective_roster *roster,
                                             const struct tfos__collective_credentials *credentials,
                                             int64_t deadline, struct tfos_error *err);

void tfos__collective_links_clear(struct tfos__collective_links *links);

#endif

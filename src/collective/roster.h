// SPDX-License-Identifier: Apache-2.0
/// The ranks of a group: their addresses and the hosts on which they share memory, as all have
/// exchanged them.
#ifndef TFOS_COLLECTIVE_ROSTER_H
#define TFOS_COLLECTIVE_ROSTER_H

#include <stdbool.h>
#include <sys/types.h>
#include <tfos/collective.h>

#include "base/cluster_key.h"
#include "collective/failure.h"
#include "collective/shared_segment.h"

struct tfos__collective_member {
    char *address; ///< owned; "host:port"
    char *label;   ///< owned; "rank 2 (10.0.0.3, pid 4711)"
    char *host_id; ///< owned; equal where memory may be shared
    char *token;   ///< owned; of its memfd
    pid_t pid;
    int fd;       ///< of its memfd
    int host;     ///< number of its host, in the order of their leaders
    int index;    ///< its place among the host's ranks
    bool has_gpu; ///< as its options say
};

struct tfos__collective_roster {
    int rank, size;
    bool has_parameters; ///< as the options say
    struct tfos__collective_member members[TFOS_COLLECTIVE_MAX_RANKS];
    int host_count;
    int leaders[TFOS_COLLECTIVE_MAX_RANKS]; ///< rank, by host
    int counts[TFOS_COLLECTIVE_MAX_RANKS];  ///< ranks, by host
};

/// Exchanges what the ranks need to know of each other, and finds out which share memory: `segment`
/// is the host's then, with its size, and not yet mapped. `port` is this rank's; `host_label` is
/// part of the host's identity (tests have several on one machine; NULL: none). DENIED names the
/// ranks with another key, INVALID those with other options. clear() is to be called in any case.
enum tfos_status tfos__collective_roster_exchange(struct tfos__collective_roster *roster,
                                                  const struct tfos_collective_options *options,
                                                  const char *host_label, int port,
                                                  struct tfos__collective_segment *segment,
                                                  struct tfos_error *err);

void tfos__collective_roster_clear(struct tfos__collective_roster *roster);

/// Whether rank `rank` reaches the group's parameters by a connection to rank 0.
bool tfos__collective_roster_is_remote(const struct tfos__collective_roster *roster, int rank);

/// The rank at place `index` of `host`.
int tfos__collective_roster_rank(const struct tfos__collective_roster *roster, int host, int index);

#endif

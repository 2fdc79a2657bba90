// SPDX-License-Identifier: Apache-2.0
/// Agreement: the chief, the master and the workers each give a value under a name, and when all
/// have, each gets all. Members train in step, so a member that has ended makes every agreement it
/// gave no value to impossible, and who waits is told so at once.
#ifndef TFOS_CLUSTER_AGREEMENT_H
#define TFOS_CLUSTER_AGREEMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "cluster/registry.h"

struct tfos__round;

#define TFOS__ROUND_LIMIT 1024     ///< most agreements under way at once
#define TFOS__ROUND_NAME_LIMIT 256 ///< longest name, in bytes
#define TFOS__ROUND_SIZE (2 << 20) ///< most text of all values of one agreement, in bytes

/// Begins with `nodes` set and the rest zero.
struct tfos__agreement {
    const struct tfos__node_table *nodes; ///< borrowed
    struct tfos__round *rounds;           ///< owned list
    int count;
};

/// `entry` gives `value` (borrowed). Answers go to the members by their peers.
void tfos__agreement_give(struct tfos__agreement *agreement, struct tfos__entry *entry,
                          const char *name, json_t *value);

/// Tells `entry` who has given no value yet; nothing when the round is over, for then its answer is
/// on its way.
void tfos__agreement_tell_pending(struct tfos__agreement *agreement, struct tfos__entry *entry,
                                  const char *name);

/// `entry` has ended: rounds that lack its value fail.
void tfos__agreement_leave(struct tfos__agreement *agreement, struct tfos__entry *entry);

void tfos__agreement_clear(struct tfos__agreement *agreement);

#endif

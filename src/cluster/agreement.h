// SPDX-License-Identifier: Apache-2.0
/// Agreement: the chief, the master and the workers each give a value under a name, and when all
/// have, each gets all. Members train in step, so the end of a member fails every agreement that
/// lacks its value, at once.
#ifndef TFOS_CLUSTER_AGREEMENT_H
#define TFOS_CLUSTER_AGREEMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "cluster/node_table.h"

struct tfos__cluster_round;

#define TFOS__ROUND_LIMIT 1024     ///< most agreements under way at once
#define TFOS__ROUND_NAME_LIMIT 256 ///< longest name, in bytes
#define TFOS__ROUND_SIZE (2 << 20) ///< most text of all values of one agreement, in bytes

/// Begins with `table` set and the rest zero.
struct tfos__cluster_agreement {
    const struct tfos__cluster_node_table *table; ///< borrowed
    struct tfos__cluster_round *rounds;           ///< owned list
    int count;
};

/// `node` gives `value` (borrowed). Answers go to the sessions of the members.
void tfos__cluster_agreement_give(struct tfos__cluster_agreement *agreement,
                                  struct tfos__cluster_node *node, const char *name, json_t *value);

/// Sends `node` the list of those that have given no value yet; nothing when the round is over,
/// whose answer has been sent.
void tfos__cluster_agreement_send_pending(struct tfos__cluster_agreement *agreement,
                                          struct tfos__cluster_node *node, const char *name);

/// `node` has ended: rounds that lack its value fail.
void tfos__cluster_agreement_leave(struct tfos__cluster_agreement *agreement,
                                   struct tfos__cluster_node *node);

void tfos__cluster_agreement_clear(struct tfos__cluster_agreement *agreement);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The plan that all nodes agree on: a node without rows takes it from the others.
#ifndef TFOS_DATASET_ACCORD_H
#define TFOS_DATASET_ACCORD_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"

struct tfos__accord {
    const struct tfos_dataset_options *options; ///< borrowed: name, uneven, agree()
    int64_t epoch;                              ///< from 1; each has its own exchanges
    const struct tfos__plan *own;               ///< borrowed, sorted; NULL: this node has no rows
    bool is_over;                               ///< this node's feed is over
};

/// Makes the common plan, sorted, which the caller clears. Lists of different lengths become ragged
/// where no form was asked for. AGAIN when no node has rows, END when moreover all feeds are over.
/// INVALID, the same on all, says in which column two nodes have different structures.
enum tfos_status tfos__accord_reach(const struct tfos__accord *accord, struct tfos__plan *plan,
                                    struct tfos_error *err);

#endif

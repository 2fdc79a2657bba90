// SPDX-License-Identifier: Apache-2.0
/// The plan that all nodes agree on: a node without rows takes it from the others.
#ifndef TFOS_DATASET_ACCORD_H
#define TFOS_DATASET_ACCORD_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"

/// How it stands with a node's rows.
enum tfos__arrival {
    TFOS__ARRIVAL_AWAITED, ///< none is there yet
    TFOS__ARRIVAL_NONE,    ///< none is there, and the epoch has ended
    TFOS__ARRIVAL_ROWS,    ///< some are there
    TFOS__ARRIVAL_FULL     ///< so many are there that Spark may be waiting for this node
};

struct tfos__accord {
    const struct tfos_dataset_options *options; ///< borrowed: name, uneven, agree()
    int64_t round;                              ///< from 1; each has its own exchanges
    const struct tfos__plan *own; ///< borrowed, sorted; NULL: nothing is known of the rows
    enum tfos__arrival arrival;
    bool is_over; ///< this node's feed is over
};

/// What all nodes do before they ask each other again.
enum tfos__accord_next {
    TFOS__ACCORD_WAIT,  ///< wait for rows
    TFOS__ACCORD_OPEN,  ///< decide without rows: there are none in this epoch
    TFOS__ACCORD_EPOCH, ///< look at the next epoch: of this one nothing is known
};

/// Makes the common plan, sorted, which the caller clears, of those plans that are decided. Lists
/// of different lengths become ragged where no form was asked for. AGAIN: there is none yet. END:
/// no node knows anything, and all feeds are over. INVALID, the same on all, says in which column
/// two nodes have different structures.
enum tfos_status tfos__accord_reach(const struct tfos__accord *accord, struct tfos__plan *plan,
                                    enum tfos__accord_next *next, struct tfos_error *err);

#endif

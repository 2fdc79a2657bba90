// SPDX-License-Identifier: Apache-2.0
/// Plan agreement: nodes that train in step decide on one plan, also for those that have no rows.
/// One node proposes its plan, the others answer in what theirs differ.
#ifndef TFOS_DATASET_PLAN_AGREEMENT_H
#define TFOS_DATASET_PLAN_AGREEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"

/// A node's rows of the epoch.
enum tfos__dataset_row_state {
    TFOS__ROWS_AWAITED, ///< none has come yet
    TFOS__ROWS_NONE,    ///< none has come, and the epoch has ended
    TFOS__ROWS_READY,   ///< some have come
    TFOS__ROWS_FULL     ///< so many have come that Spark may wait for this node
};

struct tfos__dataset_plan_agreement {
    const struct tfos_dataset_options *options; ///< borrowed: name, uneven, agree()
    int64_t round;                              ///< from 1; each has exchanges of its own
    const struct tfos__dataset_plan *own;       ///< borrowed, sorted; NULL: nothing is known
    enum tfos__dataset_row_state rows;
    bool is_over; ///< no further epoch comes to this node
};

/// What all nodes do before the next round.
enum tfos__dataset_plan_agreement_next {
    TFOS__PLAN_WAIT,       ///< wait for rows
    TFOS__PLAN_LEAVE_OPEN, ///< decide without rows: this epoch has none
    TFOS__PLAN_NEXT_EPOCH  ///< begin the next epoch: this one has no rows, and no known schema
};

/// Runs a round. Makes the common plan, sorted, which the caller clears. Lists of different lengths
/// become ragged where the options ask for no form. AGAIN: there is no plan yet. END: no node knows
/// anything, and no further epoch comes. INVALID, the same on all nodes, names a column in which
/// two nodes differ.
enum tfos_status tfos__dataset_plan_agreement_reach(
    const struct tfos__dataset_plan_agreement *agreement, struct tfos__dataset_plan *plan,
    enum tfos__dataset_plan_agreement_next *next, struct tfos_error *err);

#endif

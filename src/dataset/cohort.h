// SPDX-License-Identifier: Apache-2.0
/// Nodes in step: how many batches all of them give out before they ask each other again.
#ifndef TFOS_DATASET_COHORT_H
#define TFOS_DATASET_COHORT_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#define TFOS__COHORT_STEPS 16 ///< most batches that a node looks ahead

/// What one node tells the others.
struct tfos__standing {
    int64_t batch_count; ///< it could give out now without waiting
    bool is_ended;       ///< these are the epoch's last
    bool is_full;        ///< it reads no further, so that Spark may have to wait for it
    bool is_over;        ///< there will be no further epoch
};

struct tfos__cohort {
    const struct tfos_dataset_options *options; ///< borrowed: name, uneven, agree()
    int64_t epoch;                              ///< from 1
    int64_t exchange_count;                     ///< of this epoch
    int64_t steps;                              ///< to be done before the next exchange
    int64_t step_count;                         ///< done in this epoch
    int64_t first_step_count;                   ///< of the epoch that this one repeats; 0: none
    bool is_last;                               ///< the epoch ends after them
    bool is_pressed;                            ///< with STOP: who is full must read on
    bool is_over;                               ///< and there will be no further one, anywhere
};

/// Exchanges standings with the others and sets `steps` and what follows it. No steps, though it is
/// not the last: somebody has no batch yet, and all ask again.
enum tfos_status tfos__cohort_agree(struct tfos__cohort *cohort,
                                    const struct tfos__standing *standing, struct tfos_error *err);

/// What follows from the standings of all: `values` is a JSON array of them. INVALID when it is
/// none.
enum tfos_status tfos__cohort_decide(struct tfos__cohort *cohort, const char *values,
                                     struct tfos_error *err);

/// With PAD, when an epoch that repeats another has ended: the steps of filling up that make it as
/// long as that one, unless it had none at all.
int64_t tfos__cohort_missing_steps(const struct tfos__cohort *cohort);

/// Goes on to the next epoch; whether it has the rows of this one again.
void tfos__cohort_begin_epoch(struct tfos__cohort *cohort, bool is_repeat);

#endif

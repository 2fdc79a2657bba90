// SPDX-License-Identifier: Apache-2.0
/// A dataset from within.
#ifndef TFOS_DATASET_STATE_H
#define TFOS_DATASET_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tfos/dataset.h>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "dataset/binding.h"
#include "dataset/catalogue.h"
#include "dataset/cohort.h"
#include "dataset/outlook.h"
#include "dataset/plan.h"
#include "dataset/shuffle.h"
#include "dataset/supply.h"
#include "dataset/wishes.h"
#include "feed/feed.h"

#define TFOS__AHEAD_SIZE (TFOS__FEED_LANE_SIZE / 2) ///< most bytes that are read ahead

struct tfos_dataset {
    struct tfos__card card;
    struct tfos__fork_guard guard;
    struct tfos_dataset_options options; ///< columns and selection are in `wishes`
    struct tfos__wishes wishes;
    char *name; ///< owned; options.name

    atomic_bool is_ready; ///< what follows is set and does not change any more
    struct tfos__plan plan;
    struct tfos_tensor_spec *specs; ///< owned
    int64_t spec_count;

    pthread_mutex_t mutex;        ///< guards what follows
    struct tfos__outlook outlook; ///< until the structure is known
    int64_t layout_count;         ///< rounds of exchanges about it
    struct tfos__supply supply;
    struct tfos__shuffle pool;
    struct tfos__binding *binding; ///< of the piece that was bound last; NULL: none
    struct tfos__cohort cohort;
    bool has_begun;   ///< this epoch has had rows here
    bool is_forsaken; ///< rows were waited for in vain, and none has come since
    bool is_rest;     ///< the pass began with what is left of an epoch that it does not end with
    struct tfos__run_list batch;
    int64_t given_count;      ///< rows that were given out, in all epochs
    int64_t batch_count;      ///< batches that were asked for and not found to be an epoch's end
    enum tfos_status failure; ///< what the structure was found to be wrong with, for good
    struct tfos_error failure_error;
};

/// Takes over the structure of `like`, while nobody else has the dataset. INVALID: it is not known.
enum tfos_status tfos__dataset_adopt(struct tfos_dataset *dataset, const struct tfos_dataset *like,
                                     struct tfos_error *err);

/// Finds the structure, with the mutex held. Statuses as for tfos_dataset_get_specs().
enum tfos_status tfos__dataset_prepare(struct tfos_dataset *dataset, int64_t timeout_ms,
                                       struct tfos_error *err);

/// INVALID in a process that was forked from the one that opened the dataset: it has neither its
/// threads nor a claim to its rows.
enum tfos_status tfos__dataset_check_process(const struct tfos_dataset *dataset,
                                             struct tfos_error *err);

/// Passes over the next batch, with the mutex held. END as from tfos_dataset_next().
enum tfos_status tfos__dataset_skip(struct tfos_dataset *dataset, struct tfos_error *err);

/// Until when a node in step waits for rows before the others hear that it has none. Spark starts
/// the tasks that feed the nodes of an epoch one after the other: the first rows are given time, so
/// that nobody goes steps of filling up before them. Later rows are not, nor rows that were waited
/// for in vain: they may have to wait for the step.
int64_t tfos__dataset_patience(const struct tfos_dataset *dataset);

#endif

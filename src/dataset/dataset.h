// SPDX-License-Identifier: Apache-2.0
/// The state of a dataset.
#ifndef TFOS_DATASET_DATASET_H
#define TFOS_DATASET_DATASET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tfos/dataset.h>

#include "base/fork_guard.h"
#include "base/number_table.h"
#include "dataset/batch_queue.h"
#include "dataset/column_options.h"
#include "dataset/dataset_step_agreement.h"
#include "dataset/plan.h"
#include "dataset/schema_binding.h"
#include "dataset/schema_discovery.h"
#include "dataset/shuffle_buffer.h"

struct tfos_dataset {
    struct tfos__number_entry entry; ///< first; the handle

    struct tfos__fork_guard guard;
    struct tfos_dataset_options options; ///< what it points to is in `column_options`
    struct tfos__dataset_column_options column_options;
    char *name; ///< owned; options.name

    atomic_bool is_ready; ///< what follows is set and does not change any more
    struct tfos__dataset_plan plan;
    struct tfos_tensor_spec *specs; ///< owned
    int64_t spec_count;

    pthread_mutex_t mutex; ///< guards what follows
    struct tfos__dataset_schema_discovery discovery;
    struct tfos__dataset_batch_queue queue;
    struct tfos__dataset_shuffle_buffer shuffle;
    struct tfos__dataset_schema_binding *binding; ///< of the batch that was bound last; NULL: none
    struct tfos__dataset_step_agreement steps;
    bool is_remainder; ///< the pass began in an epoch that it does not end with
    struct tfos__dataset_row_slices batch;
    int64_t given_count; ///< rows given out, in all epochs
    int64_t batch_count; ///< batches asked for, without those that were the end of an epoch
};

/// Finds the plan, with the mutex held. Statuses are those of tfos_dataset_get_specs().
enum tfos_status tfos__dataset_prepare(struct tfos_dataset *dataset, int64_t timeout_ms,
                                       struct tfos_error *err);

/// INVALID in a process that was forked from the one that opened the dataset: that has neither its
/// threads nor the right to its rows.
enum tfos_status tfos__dataset_check_process(const struct tfos_dataset *dataset,
                                             struct tfos_error *err);

/// Skips the next batch, with the mutex held. END as from tfos_dataset_next().
enum tfos_status tfos__dataset_skip(struct tfos_dataset *dataset, struct tfos_error *err);

#endif

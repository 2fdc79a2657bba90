// SPDX-License-Identifier: Apache-2.0
/// Schema discovery: how a dataset finds its plan. It uses a description of the rows, or the first
/// rows, and in step what the other nodes know.
#ifndef TFOS_DATASET_SCHEMA_DISCOVERY_H
#define TFOS_DATASET_SCHEMA_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "dataset/batch_queue.h"
#include "dataset/dataset_step_agreement.h"
#include "dataset/plan.h"
#include "feed/feed.h"

#define TFOS__READ_AHEAD_SIZE (TFOS__FEED_CHANNEL_SIZE / 2) ///< most bytes that are read ahead

struct tfos__dataset_schema_discovery {
    const struct tfos_dataset_options *options; ///< this and what follows: borrowed
    const struct tfos__dataset_column_options *columns;
    struct tfos__dataset_batch_queue *queue;
    struct tfos__dataset_step_agreement *steps;
    struct tfos__dataset_schema_binding **binding; ///< of the batch that was bound last

    struct tfos__dataset_plan plan; ///< this node's; without features: nothing is known
    int64_t feed;                   ///< that describes the rows; 0: not yet known
    bool is_announced;              ///< the rows of this feed will come
    int64_t round_count;            ///< of plan agreement
    enum tfos_status failure;       ///< END or a failure that stays
    struct tfos_error failure_error;
};

/// Finds the plan, which is complete and the caller's. Statuses are those of
/// tfos_dataset_get_specs().
enum tfos_status
tfos__dataset_schema_discovery_run(struct tfos__dataset_schema_discovery *discovery,
                                   struct tfos__dataset_plan *plan, int64_t timeout_ms,
                                   struct tfos_error *err);

void tfos__dataset_schema_discovery_clear(struct tfos__dataset_schema_discovery *discovery);

#endif

// SPDX-License-Identifier: Apache-2.0
/// How the rows of a feed are split among trainers that read in step, so that all take equally many
/// steps.
#ifndef TFOS_CLUSTER_FEED_BALANCE_H
#define TFOS_CLUSTER_FEED_BALANCE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "cluster/feed_scheduler.h"

/// What one node gets.
struct tfos__cluster_share {
    struct tfos__cluster_node *node; ///< borrowed
    int64_t assigned_rows;           ///< of the epoch, before
    int64_t rows;                    ///< of those that are split
};

/// Splits `row_count` rows block by block, each of `block_rows` rows. A block goes to a share that
/// has fewest whole blocks, the first of several. Steps that are whole blocks long are as few as
/// can be then.
void tfos__cluster_balance_split(struct tfos__cluster_share *shares, size_t count,
                                 int64_t row_count, int64_t block_rows);

/// The feeder asks to which nodes its next rows go, with the message `assign`. INVALID names what
/// is wrong with it.
enum tfos_status tfos__cluster_balance_assign(struct tfos__cluster_scheduler *scheduler,
                                              struct tfos__cluster_feeder *feeder,
                                              const json_t *message, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Progress and estimated time of arrival of a training. The driver announces epochs and
/// partitions, nodes report rows and closed partitions.
#ifndef TFOS_CLUSTER_ETA_H
#define TFOS_CLUSTER_ETA_H

#include <stdint.h>
#include <tfos/rendezvous.h>

/// A feed by its queue and its number there.
struct tfos__cluster_eta_feed {
    int queue; ///< its place in the cluster's list
    int64_t number;
};

/// All zero: no training was announced.
struct tfos__cluster_eta {
    struct tfos__cluster_eta_feed feed; ///< the one that `plan` is of
    struct tfos_feed_plan plan;
    int64_t complete_count, complete_rows; ///< its partitions that are fed whole, and their rows
    int64_t epoch_rows;                    ///< of an epoch that is over; 0: none is
    int64_t rows_before;                   ///< taken before the first epoch
    int64_t first_row_ms;                  ///< when the first row was taken; 0: none was
};

/// What an estimate is made of.
struct tfos__cluster_eta_moment {
    int64_t now_ms;
    int64_t row_count;    ///< taken by all nodes from the plan's queue, ever
    int64_t feeder_count; ///< tasks that feed the plan's feed
};

struct tfos__cluster_progress {
    int64_t row_count;   ///< taken since the first epoch began
    double fraction;     ///< of the whole training, 0 to 1; negative: unknown
    double seconds_left; ///< negative: unknown
};

/// Takes up what is known about `feed`: a new one, or more about the present one. The first epoch
/// begins a training; `row_count` is as in a moment.
void tfos__cluster_eta_plan(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed,
                            const struct tfos_feed_plan *plan, int64_t row_count);

/// A partition of `feed` has been fed whole.
void tfos__cluster_eta_complete(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed,
                                int64_t row_count);

/// All partitions of `feed` have been fed.
void tfos__cluster_eta_end_epoch(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed);

/// Rows may have been taken. The time before the first row is left out of the estimate.
void tfos__cluster_eta_take_rows(struct tfos__cluster_eta *eta, int64_t row_count, int64_t now_ms);

struct tfos__cluster_progress
tfos__cluster_eta_estimate(const struct tfos__cluster_eta *eta,
                           const struct tfos__cluster_eta_moment *moment);

#endif

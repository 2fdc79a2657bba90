// SPDX-License-Identifier: Apache-2.0
/// How far a training has come and how long it will take, as far as can be told: the driver says
/// how many epochs and partitions there are, the nodes what became of them.
#ifndef TFOS_CLUSTER_FORECAST_H
#define TFOS_CLUSTER_FORECAST_H

#include <stdint.h>
#include <tfos/rendezvous.h>

/// A feed by its queue and its number there.
struct tfos__forecast_feed {
    int queue; ///< its place in the cluster's list
    int64_t number;
};

/// All zero: no training was announced.
struct tfos__forecast {
    struct tfos__forecast_feed feed; ///< the one that `plan` is of
    struct tfos_feed_plan plan;
    int64_t complete_count, complete_rows; ///< its partitions that are fed whole, and their rows
    int64_t epoch_rows;                    ///< of an epoch that is over; 0: none is
    int64_t rows_before;                   ///< taken before the first epoch
    int64_t moved_ms;                      ///< when the first row was taken; 0: none was
};

/// What the cluster is doing at the moment that is asked about.
struct tfos__moment {
    int64_t now_ms;
    int64_t row_count;    ///< taken by all nodes from the plan's queue, ever
    int64_t feeder_count; ///< tasks that feed the plan's feed
};

struct tfos__outlook {
    int64_t row_count;   ///< taken since the first epoch began
    double fraction;     ///< of the whole training, 0 to 1; negative: unknown
    double seconds_left; ///< negative: unknown
};

/// Takes up what is known about `feed`: a new one, or more about the present one. The first epoch
/// begins a training; `row_count` is as in a moment.
void tfos__forecast_plan(struct tfos__forecast *forecast, struct tfos__forecast_feed feed,
                         const struct tfos_feed_plan *plan, int64_t row_count);

/// A partition of `feed` has been fed whole.
void tfos__forecast_complete(struct tfos__forecast *forecast, struct tfos__forecast_feed feed,
                             int64_t row_count);

/// All partitions of `feed` have been fed.
void tfos__forecast_end_epoch(struct tfos__forecast *forecast, struct tfos__forecast_feed feed);

/// To be told when rows are taken: the time that it took until the first was is not extrapolated.
void tfos__forecast_move(struct tfos__forecast *forecast, int64_t row_count, int64_t now_ms);

struct tfos__outlook tfos__forecast_look(const struct tfos__forecast *forecast,
                                         const struct tfos__moment *moment);

#endif

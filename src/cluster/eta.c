// SPDX-License-Identifier: Apache-2.0
// Rows are the measure, as soon as it is known how many there are: exactly after the first epoch,
// before that from the partitions that are through. Partitions alone are coarse, but are never
// wrong, so they bound the guess: what no task has begun is not done.
#include "cluster/eta.h"

#include <stdbool.h>

static bool is_planned(const struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed)
{
    return feed.queue == eta->feed.queue && feed.number == eta->feed.number;
}

void tfos__cluster_eta_plan(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed,
                            const struct tfos_feed_plan *plan, int64_t row_count)
{
    if (is_planned(eta, feed)) {
        eta->plan = *plan;
        return;
    }
    bool is_next = plan->epoch > 1 && plan->epoch == eta->plan.epoch + 1 &&
                   plan->epoch_count == eta->plan.epoch_count;
    *eta = (struct tfos__cluster_eta){
        .feed = feed,
        .plan = *plan,
        .epoch_rows = is_next ? eta->epoch_rows : 0,
        .rows_before = is_next ? eta->rows_before : row_count,
        .first_row_ms = is_next ? eta->first_row_ms : 0,
    };
}

void tfos__cluster_eta_complete(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed,
                                int64_t row_count)
{
    if (!is_planned(eta, feed))
        return;
    eta->complete_count++;
    eta->complete_rows += row_count < INT64_MAX - eta->complete_rows ? row_count : 0;
}

void tfos__cluster_eta_end_epoch(struct tfos__cluster_eta *eta, struct tfos__cluster_eta_feed feed)
{
    if (is_planned(eta, feed))
        eta->epoch_rows = eta->complete_rows;
}

void tfos__cluster_eta_take_rows(struct tfos__cluster_eta *eta, int64_t row_count, int64_t now_ms)
{
    if (eta->first_row_ms == 0 && row_count > eta->rows_before)
        eta->first_row_ms = now_ms;
}

static double bounded(double value, double limit)
{
    return value < limit ? value : limit;
}

/// How much of an epoch is done whose rows nobody has counted; negative when nothing tells.
static double part_of_epoch(const struct tfos__cluster_eta *eta, double rows, int64_t feeder_count)
{
    double partitions = (double)eta->plan.partition_count;
    double complete = bounded((double)eta->complete_count, partitions);

    if (partitions < 1)
        return -1;
    double begun = bounded((complete + (double)feeder_count) / partitions, 1);
    if (eta->complete_rows < 1)
        return bounded(complete / partitions, 1);
    double expected = (double)eta->complete_rows / complete * partitions;
    return bounded(rows / expected, begun);
}

struct tfos__cluster_progress
tfos__cluster_eta_estimate(const struct tfos__cluster_eta *eta,
                           const struct tfos__cluster_eta_moment *moment)
{
    struct tfos__cluster_progress progress = {.fraction = -1, .seconds_left = -1};
    double epochs = (double)eta->plan.epoch_count;

    if (moment->row_count > eta->rows_before)
        progress.row_count = (int64_t)((uint64_t)moment->row_count - (uint64_t)eta->rows_before);
    if (epochs < 1)
        return progress;
    double rows = (double)progress.row_count;
    double part = eta->epoch_rows > 0 ? rows / (double)eta->epoch_rows
                                      : part_of_epoch(eta, rows, moment->feeder_count);
    if (part < 0)
        return progress;
    // Epochs without a row leave no count behind.
    if (eta->epoch_rows == 0)
        part += (double)eta->plan.epoch - 1;
    progress.fraction = bounded(part / epochs, 1);
    double seconds = (double)(moment->now_ms - eta->first_row_ms) / 1000;
    if (eta->first_row_ms > 0 && progress.fraction > 0)
        progress.seconds_left = seconds * (1 - progress.fraction) / progress.fraction;
    return progress;
}

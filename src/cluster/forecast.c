// SPDX-License-Identifier: Apache-2.0
// Rows are the measure, as soon as it is known how many there are: exactly after the first epoch,
// before that from the partitions that are through. Partitions alone are coarse, but are never
// wrong, so they bound the guess: what no task has begun is not done.
#include "cluster/forecast.h"

#include <stdbool.h>

static bool is_planned(const struct tfos__forecast *forecast, struct tfos__forecast_feed feed)
{
    return feed.queue == forecast->feed.queue && feed.number == forecast->feed.number;
}

void tfos__forecast_plan(struct tfos__forecast *forecast, struct tfos__forecast_feed feed,
                         const struct tfos_feed_plan *plan, int64_t row_count)
{
    if (is_planned(forecast, feed)) {
        forecast->plan = *plan;
        return;
    }
    bool is_next = plan->epoch > 1 && plan->epoch == forecast->plan.epoch + 1 &&
                   plan->epoch_count == forecast->plan.epoch_count;
    *forecast = (struct tfos__forecast){
        .feed = feed,
        .plan = *plan,
        .epoch_rows = is_next ? forecast->epoch_rows : 0,
        .rows_before = is_next ? forecast->rows_before : row_count,
        .moved_ms = is_next ? forecast->moved_ms : 0,
    };
}

void tfos__forecast_complete(struct tfos__forecast *forecast, struct tfos__forecast_feed feed,
                             int64_t row_count)
{
    if (!is_planned(forecast, feed))
        return;
    forecast->complete_count++;
    forecast->complete_rows += row_count < INT64_MAX - forecast->complete_rows ? row_count : 0;
}

void tfos__forecast_end_epoch(struct tfos__forecast *forecast, struct tfos__forecast_feed feed)
{
    if (is_planned(forecast, feed))
        forecast->epoch_rows = forecast->complete_rows;
}

void tfos__forecast_move(struct tfos__forecast *forecast, int64_t row_count, int64_t now_ms)
{
    if (forecast->moved_ms == 0 && row_count > forecast->rows_before)
        forecast->moved_ms = now_ms;
}

static double bounded(double value, double limit)
{
    return value < limit ? value : limit;
}

/// How much of an epoch is done whose rows nobody has counted; negative when nothing tells.
static double part_of_epoch(const struct tfos__forecast *forecast, double rows,
                            int64_t feeder_count)
{
    double partitions = (double)forecast->plan.partition_count;
    double complete = bounded((double)forecast->complete_count, partitions);

    if (partitions < 1)
        return -1;
    double begun = bounded((complete + (double)feeder_count) / partitions, 1);
    if (forecast->complete_rows < 1)
        return bounded(complete / partitions, 1);
    double expected = (double)forecast->complete_rows / complete * partitions;
    return bounded(rows / expected, begun);
}

struct tfos__outlook tfos__forecast_look(const struct tfos__forecast *forecast,
                                         const struct tfos__moment *moment)
{
    struct tfos__outlook outlook = {.fraction = -1, .seconds_left = -1};
    double epochs = (double)forecast->plan.epoch_count;

    if (moment->row_count > forecast->rows_before)
        outlook.row_count =
            (int64_t)((uint64_t)moment->row_count - (uint64_t)forecast->rows_before);
    if (epochs < 1)
        return outlook;
    double rows = (double)outlook.row_count;
    double part = forecast->epoch_rows > 0 ? rows / (double)forecast->epoch_rows
                                           : part_of_epoch(forecast, rows, moment->feeder_count);
    if (part < 0)
        return outlook;
    // Epochs without a row leave no count behind.
    if (forecast->epoch_rows == 0)
        part += (double)forecast->plan.epoch - 1;
    outlook.fraction = bounded(part / epochs, 1);
    double seconds = (double)(moment->now_ms - forecast->moved_ms) / 1000;
    if (forecast->moved_ms > 0 && outlook.fraction > 0)
        outlook.seconds_left = seconds * (1 - outlook.fraction) / outlook.fraction;
    return outlook;
}

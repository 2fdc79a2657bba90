// SPDX-License-Identifier: Apache-2.0
// Samples are kept in order of time, spaced so that the window always fits: heartbeats come once a
// second, but also when something happens, which may be often.
//
// Of a training, rows are the measure, as soon as it is known how many there are: exactly after the
// first epoch, before that from the partitions that are through. Partitions alone are coarse, but
// are never wrong, so they bound the estimate: what no task has begun is not done.
#include "cluster/feed_progress.h"

#include <string.h>

#define SLOWER_SHARE 0.25 // of its time that a side must wait for the other to be called slower

// ---- throughput

void tfos__cluster_throughput_add(struct tfos__cluster_throughput *throughput,
                                  const struct tfos__cluster_sample *sample)
{
    struct tfos__cluster_sample *samples = throughput->samples;
    int outdated = 0;

    if (throughput->count >= 2 &&
        sample->at_ms - samples[throughput->count - 2].at_ms < TFOS__THROUGHPUT_SPACING_MS) {
        samples[throughput->count - 1] = *sample;
        return;
    }
    // One sample from before the window stays, so that the window is whole.
    while (outdated + 1 < throughput->count &&
           sample->at_ms - samples[outdated + 1].at_ms >= TFOS__THROUGHPUT_WINDOW_MS)
        outdated++;
    if (outdated == 0 && throughput->count == TFOS__THROUGHPUT_LIMIT)
        outdated = 1;
    throughput->count -= outdated;
    memmove(samples, samples + outdated, (size_t)throughput->count * sizeof(samples[0]));
    samples[throughput->count++] = *sample;
}

/// The growth of a counter in a unit of time; one that began anew has not grown.
static double rate(int64_t before, int64_t after, double time)
{
    return after > before ? (double)(after - before) / time : 0;
}

static double share(double value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

struct tfos__cluster_rates
tfos__cluster_throughput_rates(const struct tfos__cluster_throughput *throughput, int64_t now_ms)
{
    struct tfos__cluster_rates rates = {0};
    double writer_count = 0;

    if (throughput->count < 2)
        return rates;
    const struct tfos__cluster_sample *first = &throughput->samples[0];
    const struct tfos__cluster_sample *last = &throughput->samples[throughput->count - 1];
    double time_ms = (double)(last->at_ms - first->at_ms);
    if (time_ms < TFOS__THROUGHPUT_SPACING_MS || now_ms - last->at_ms > TFOS__THROUGHPUT_WINDOW_MS)
        return rates;
    for (int i = 1; i < throughput->count; i++) {
        double weight =
            (double)(throughput->samples[i].at_ms - throughput->samples[i - 1].at_ms) / time_ms;
        rates.ring_fill += weight * throughput->samples[i].ring_fill;
        writer_count += weight * (double)throughput->samples[i].writer_count;
    }
    rates.is_known = true;
    rates.ring_fill = share(rates.ring_fill);
    rates.rows_per_second = rate(first->row_count, last->row_count, time_ms / 1000);
    rates.bytes_per_second = rate(first->byte_count, last->byte_count, time_ms / 1000);
    rates.reader_wait = share(rate(first->reader_wait_ms, last->reader_wait_ms, time_ms));
    // Writers wait side by side: the sum is of all of them.
    rates.writer_wait = share(rate(first->writer_wait_ms, last->writer_wait_ms, time_ms) /
                              (writer_count > 1 ? writer_count : 1));
    return rates;
}

enum tfos__cluster_bottleneck
tfos__cluster_throughput_bottleneck(const struct tfos__cluster_rates *rates)
{
    if (rates->reader_wait >= SLOWER_SHARE)
        return TFOS__BOTTLENECK_SPARK;
    return rates->writer_wait >= SLOWER_SHARE ? TFOS__BOTTLENECK_TRAINER : TFOS__BOTTLENECK_NONE;
}

// ---- the estimated time of arrival

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

/// How much of an epoch is done whose rows are not counted yet; negative when it is not known.
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
    if (eta->epoch_rows > 0 && progress.row_count > 0)
        progress.passed_epoch_count = (progress.row_count - 1) / eta->epoch_rows;
    if (epochs < 1)
        return progress;
    if (progress.passed_epoch_count >= eta->plan.epoch_count)
        progress.passed_epoch_count = eta->plan.epoch_count - 1;
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

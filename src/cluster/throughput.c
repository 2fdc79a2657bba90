// SPDX-License-Identifier: Apache-2.0
// Samples are kept in order of time, spaced so that the window always fits: heartbeats come once a
// second, but also when something happens, which may be often.
#include "cluster/throughput.h"

#include <string.h>

#define SLOWER_SHARE 0.25 // of its time that a side must wait for the other to be called slower

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
    memmove(samples, samples + outdated, (size_t)throughput->count * sizeof samples[0]);
    samples[throughput->count++] = *sample;
}

/// What was added a unit of time; a counter that began anew has added nothing.
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

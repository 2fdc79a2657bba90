// SPDX-License-Identifier: Apache-2.0
// Samples are kept in order of time, spaced so that the window always fits: heartbeats come once a
// second, but also when something happens, which may be often.
#include "cluster/pace.h"

#include <string.h>

#define SLOWER_SHARE 0.25 // of its time that a side must wait for the other to be called slower

void tfos__pace_note(struct tfos__pace *pace, const struct tfos__sample *sample)
{
    struct tfos__sample *samples = pace->samples;
    int outdated = 0;

    if (pace->count >= 2 &&
        sample->at_ms - samples[pace->count - 2].at_ms < TFOS__PACE_SPACING_MS) {
        samples[pace->count - 1] = *sample;
        return;
    }
    // One sample from before the window stays, so that the window is whole.
    while (outdated + 1 < pace->count &&
           sample->at_ms - samples[outdated + 1].at_ms >= TFOS__PACE_WINDOW_MS)
        outdated++;
    if (outdated == 0 && pace->count == TFOS__PACE_LIMIT)
        outdated = 1;
    pace->count -= outdated;
    memmove(samples, samples + outdated, (size_t)pace->count * sizeof samples[0]);
    samples[pace->count++] = *sample;
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

struct tfos__rates tfos__pace_rates(const struct tfos__pace *pace, int64_t now_ms)
{
    struct tfos__rates rates = {0};
    double writer_count = 0;

    if (pace->count < 2)
        return rates;
    const struct tfos__sample *first = &pace->samples[0];
    const struct tfos__sample *last = &pace->samples[pace->count - 1];
    double time_ms = (double)(last->at_ms - first->at_ms);
    if (time_ms < TFOS__PACE_SPACING_MS || now_ms - last->at_ms > TFOS__PACE_WINDOW_MS)
        return rates;
    for (int i = 1; i < pace->count; i++) {
        double weight = (double)(pace->samples[i].at_ms - pace->samples[i - 1].at_ms) / time_ms;
        rates.ring_fill += weight * pace->samples[i].ring_fill;
        writer_count += weight * (double)pace->samples[i].writer_count;
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

enum tfos__side tfos__pace_side(const struct tfos__rates *rates)
{
    if (rates->reader_wait >= SLOWER_SHARE)
        return TFOS__SIDE_SPARK;
    return rates->writer_wait >= SLOWER_SHARE ? TFOS__SIDE_TRAINER : TFOS__SIDE_NEITHER;
}

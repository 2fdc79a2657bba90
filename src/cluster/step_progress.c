// SPDX-License-Identifier: Apache-2.0
// All times are of the trainer's own clock, so that how long a heartbeat takes changes nothing.
#include "cluster/step_progress.h"

#include <string.h>

#define LEAST_STEPS 5    // that make a mean
#define WAITED_SHARE 0.1 // of its time that a node must wait longer than the one it waits for

static const struct tfos__cluster_step_sample *
newest(const struct tfos__cluster_step_progress *progress)
{
    return &progress->samples[progress->count - 1];
}

/// Whether the counters of a trainer continue from `before` to `after`.
static bool is_continued(const struct tfos__cluster_step_sample *before,
                         const struct tfos__cluster_step_sample *after)
{
    return after->at_us > before->at_us && after->count >= before->count &&
           after->exchange_us >= before->exchange_us && after->wait_us >= before->wait_us &&
           after->data_us >= before->data_us && after->push_count >= before->push_count &&
           after->stale_steps >= before->stale_steps;
}

void tfos__cluster_step_progress_add(struct tfos__cluster_step_progress *progress,
                                     const struct tfos__cluster_step_sample *sample, int64_t now_ms)
{
    struct tfos__cluster_step_sample *samples = progress->samples;
    if (sample->push_count > 0 && sample->staleness == 0) {
        progress->count = 0; // it has taken its last step, and waits for the end of the others
        return;
    }
    if (progress->count > 0 && sample->at_us == newest(progress)->at_us)
        return; // reported again
    if (progress->count > 0 && !is_continued(newest(progress), sample))
        progress->count = 0;
    progress->received_ms = now_ms;
    if (progress->count >= 2 &&
        sample->at_us - samples[progress->count - 2].at_us < TFOS__STEP_SPACING_US) {
        samples[progress->count - 1] = *sample;
        return;
    }
    if (progress->count == TFOS__STEP_SAMPLE_LIMIT) {
        progress->count--;
        memmove(samples, samples + 1, (size_t)progress->count * sizeof(samples[0]));
    }
    samples[progress->count++] = *sample;
}

/// The sample from which on steps count.
static const struct tfos__cluster_step_sample *
find_first(const struct tfos__cluster_step_progress *progress)
{
    const struct tfos__cluster_step_sample *last = newest(progress), *first = last;
    while (first > progress->samples && (last->at_us - first->at_us < TFOS__STEP_WINDOW_US ||
                                         last->count - first->count < LEAST_STEPS))
        first--;
    return first;
}

static double share(int64_t before, int64_t after, double time)
{
    double value = (double)(after - before) / time;
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

struct tfos__cluster_step_split
tfos__cluster_step_progress_split(const struct tfos__cluster_step_progress *progress,
                                  int64_t now_ms)
{
    struct tfos__cluster_step_split split = {0};
    if (progress->count < 2)
        return split;
    split.is_known = true;
    split.is_silent = now_ms - progress->received_ms > TFOS__STEP_SILENCE_MS;
    if (split.is_silent)
        return split;
    const struct tfos__cluster_step_sample *last = newest(progress), *first = find_first(progress);
    double time_us = (double)(last->at_us - first->at_us);
    int64_t steps = last->count - first->count;
    split.has_data = first->data_us >= 0;
    split.exchange = share(first->exchange_us, last->exchange_us, time_us);
    split.wait = share(first->wait_us, last->wait_us, time_us);
    split.data = split.has_data ? share(first->data_us, last->data_us, time_us) : 0;
    split.compute = 1 - split.exchange - split.wait - split.data;
    split.compute = split.compute < 0 ? 0 : split.compute;
    int64_t pushes = last->push_count - first->push_count;
    split.staleness = last->staleness;
    split.pushed_steps = last->pushed_steps;
    split.stale_steps =
        pushes > 0 ? (double)(last->stale_steps - first->stale_steps) / (double)pushes : 0;
    split.is_stepping = steps > 0 || split.exchange + split.wait > 0;
    split.step_ms = time_us / 1000 / (double)(steps > 0 ? steps : 1);
    return split;
}

// ---- who is waited for

void tfos__cluster_step_tally_add(struct tfos__cluster_step_tally *tally, int number,
                                  const struct tfos__cluster_step_split *split)
{
    if (!split->is_known)
        return;
    if (tally->count == 0 || split->wait < tally->least) {
        tally->last = number;
        tally->least = split->wait;
        tally->split = *split;
    }
    tally->most = split->wait > tally->most ? split->wait : tally->most;
    tally->compute += split->compute;
    tally->data += split->data;
    tally->count++;
}

enum tfos__cluster_delay
tfos__cluster_step_tally_delay(const struct tfos__cluster_step_tally *tally)
{
    if (tally->count < 2 || tally->most - tally->least < WAITED_SHARE)
        return TFOS__DELAY_NONE;
    if (tally->split.is_silent)
        return TFOS__DELAY_SILENT;
    double others = tally->count - 1;
    double more_data = tally->split.data - (tally->data - tally->split.data) / others;
    double more_compute = tally->split.compute - (tally->compute - tally->split.compute) / others;
    return more_data > more_compute ? TFOS__DELAY_DATA : TFOS__DELAY_COMPUTE;
}

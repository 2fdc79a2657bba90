// SPDX-License-Identifier: Apache-2.0
/// Progress of steps: what the time of a training step on a node is spent on, from the counters in
/// its heartbeats, and which node the others wait for.
#ifndef TFOS_CLUSTER_STEP_PROGRESS_H
#define TFOS_CLUSTER_STEP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define TFOS__STEP_WINDOW_US 5000000  ///< what "the last seconds" are
#define TFOS__STEP_SPACING_US 2500000 ///< between two samples that are kept
#define TFOS__STEP_SAMPLE_LIMIT 32    ///< they reach a minute back
#define TFOS__STEP_SILENCE_MS 4000    ///< without a report, after which a trainer does not answer

/// A trainer's counters at one moment.
struct tfos__cluster_step_sample {
    int64_t at_us; ///< by the trainer's clock
    int64_t count;
    int64_t data_us;     ///< in waits for data; -1: not known
    int64_t exchange_us; ///< in exchanges, without waits
    int64_t wait_us;     ///< in waits for other nodes to come to an exchange
    /// Of parameters that are trained asynchronously (struct tfos_collective_figures). With pushes,
    /// but without a bound, the trainer takes no more steps.
    int64_t pushed_steps, push_count, stale_steps, staleness;
};

/// All zero: nothing is known.
struct tfos__cluster_step_progress {
    struct tfos__cluster_step_sample samples[TFOS__STEP_SAMPLE_LIMIT]; ///< the oldest first
    int count;
    int64_t received_ms; ///< when the newest sample came
};

/// How a node's time was spent: shares of it, from 0 to 1.
struct tfos__cluster_step_split {
    bool is_known;     ///< else all others are 0
    bool is_silent;    ///< the trainer sends no reports any more; then only `is_known` is set, too
    bool is_stepping;  ///< there were steps or exchanges
    bool has_data;     ///< `data` is known; else it is 0, and the time is part of `compute`
    double step_ms;    ///< of one step; where none has ended, the time until now
    double compute;    ///< what is not in the others
    double exchange;   ///< the exchange of gradients and other operations
    double wait;       ///< for other nodes to come to an exchange
    double data;       ///< for the data of a step
    int64_t staleness; ///< the bound of asynchronous training; 0: there is none
    int64_t pushed_steps; ///< steps whose changes the node has pushed
    double stale_steps;   ///< mean over its pushes: how stale the weights were
};

/// Adds a sample. One with smaller counters than the last begins anew.
void tfos__cluster_step_progress_add(struct tfos__cluster_step_progress *progress,
                                     const struct tfos__cluster_step_sample *sample,
                                     int64_t now_ms);

/// The split of the last seconds, or of as long as some steps take, up to a minute.
struct tfos__cluster_step_split
tfos__cluster_step_progress_split(const struct tfos__cluster_step_progress *progress,
                                  int64_t now_ms);

/// Splits of nodes that step together. All zero: none.
struct tfos__cluster_step_tally {
    int count;
    int last;     ///< the number of the node that waited least for the others
    double least; ///< its share
    double most;  ///< the largest share of another's waits
    struct tfos__cluster_step_split split; ///< of the last one
    double compute, data;                  ///< sums over all nodes
};

/// Counts node `number`, if its split is known.
void tfos__cluster_step_tally_add(struct tfos__cluster_step_tally *tally, int number,
                                  const struct tfos__cluster_step_split *split);

enum tfos__cluster_delay {
    TFOS__DELAY_NONE,    ///< no node is waited for
    TFOS__DELAY_COMPUTE, ///< the last one computes longer
    TFOS__DELAY_DATA,    ///< the last one waits for data
    TFOS__DELAY_SILENT   ///< the last one's trainer does not answer
};

/// Why the others wait for the last one: NONE if they wait hardly longer than it does.
enum tfos__cluster_delay
tfos__cluster_step_tally_delay(const struct tfos__cluster_step_tally *tally);

#endif

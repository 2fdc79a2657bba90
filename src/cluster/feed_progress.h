// SPDX-License-Identifier: Apache-2.0
/// Progress of feeding: the throughput of a node over the last seconds and which side is the
/// bottleneck, from the counters in its heartbeats; and how far a training is and its estimated
/// time of arrival. The driver announces epochs and partitions, nodes report rows and closed
/// partitions.
#ifndef TFOS_CLUSTER_FEED_PROGRESS_H
#define TFOS_CLUSTER_FEED_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/rendezvous.h>

#define TFOS__THROUGHPUT_WINDOW_MS 5000 ///< what "the last seconds" are
#define TFOS__THROUGHPUT_SPACING_MS 500 ///< between two samples that are kept
#define TFOS__THROUGHPUT_LIMIT 12       ///< samples; the window and one on each side of it

/// A node's counters at one moment.
struct tfos__cluster_sample {
    int64_t at_ms;
    int64_t row_count;  ///< taken by the reader
    int64_t byte_count; ///< the same
    int64_t reader_wait_ms, writer_wait_ms;
    int64_t writer_count;
    double ring_fill; ///< 0 to 1
};

/// All zero: nothing is known.
struct tfos__cluster_throughput {
    struct tfos__cluster_sample samples[TFOS__THROUGHPUT_LIMIT]; ///< the oldest first
    int count;
};

struct tfos__cluster_rates {
    bool is_known; ///< else all others are 0
    double rows_per_second, bytes_per_second;
    double ring_fill;   ///< mean, 0 to 1
    double reader_wait; ///< share of the time in which the reader waited for rows, 0 to 1
    double writer_wait; ///< share of their time in which writers waited for space, 0 to 1
};

enum tfos__cluster_bottleneck {
    TFOS__BOTTLENECK_NONE,
    TFOS__BOTTLENECK_SPARK,  ///< trainers wait for rows
    TFOS__BOTTLENECK_TRAINER ///< Spark waits for space
};

/// Adds a sample, which is not older than those before it.
void tfos__cluster_throughput_add(struct tfos__cluster_throughput *throughput,
                                  const struct tfos__cluster_sample *sample);

/// The rates of the last seconds; unknown before there are two samples, and of a node that
/// reports nothing any more.
struct tfos__cluster_rates
tfos__cluster_throughput_rates(const struct tfos__cluster_throughput *throughput, int64_t now_ms);

/// Which side is the slower one: Spark, when the reader waits for a quarter of its time, whatever
/// writers do (one may wait for space while another has nothing to write); else the trainer, when
/// writers wait for a quarter of theirs.
enum tfos__cluster_bottleneck
tfos__cluster_throughput_bottleneck(const struct tfos__cluster_rates *rates);

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
    int64_t row_count;          ///< taken since the first epoch began
    int64_t passed_epoch_count; ///< epochs that are taken, and rows behind them too: what nodes do
                                ///< at the end of an epoch is done for these
    double fraction;            ///< of the whole training, 0 to 1; negative: unknown
    double seconds_left;        ///< negative: unknown
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

// SPDX-License-Identifier: Apache-2.0
/// Throughput of a node's feed over the last seconds, and which side is the bottleneck, computed
/// from the counters in its heartbeats.
#ifndef TFOS_CLUSTER_THROUGHPUT_H
#define TFOS_CLUSTER_THROUGHPUT_H

#include <stdbool.h>
#include <stdint.h>

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

/// The rates of the last seconds; unknown before there are two samples, and of a node that says
/// nothing any more.
struct tfos__cluster_rates
tfos__cluster_throughput_rates(const struct tfos__cluster_throughput *throughput, int64_t now_ms);

/// Which side is the slower one: Spark, when the reader waits for a quarter of its time, whatever
/// writers do (one may wait for space while another has nothing to write); else the trainer, when
/// writers wait for a quarter of theirs.
enum tfos__cluster_bottleneck
tfos__cluster_throughput_bottleneck(const struct tfos__cluster_rates *rates);

#endif

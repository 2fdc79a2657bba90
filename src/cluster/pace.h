// SPDX-License-Identifier: Apache-2.0
/// How fast a node is fed, over the last seconds, and which side holds the other up. Plain
/// arithmetic on what heartbeats say.
#ifndef TFOS_CLUSTER_PACE_H
#define TFOS_CLUSTER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define TFOS__PACE_WINDOW_MS 5000 ///< what "the last seconds" are
#define TFOS__PACE_SPACING_MS 500 ///< between two samples that are kept
#define TFOS__PACE_LIMIT 12       ///< samples; the window and one on each side of it

/// A node's counters at one moment.
struct tfos__sample {
    int64_t at_ms;
    int64_t row_count;  ///< taken by the reader
    int64_t byte_count; ///< the same
    int64_t reader_wait_ms, writer_wait_ms;
    int64_t writer_count;
    double ring_fill; ///< 0 to 1
};

/// All zero: nothing is known.
struct tfos__pace {
    struct tfos__sample samples[TFOS__PACE_LIMIT]; ///< the oldest first
    int count;
};

struct tfos__rates {
    bool is_known; ///< else all others are 0
    double rows_per_second, bytes_per_second;
    double ring_fill;   ///< mean, 0 to 1
    double reader_wait; ///< share of the time in which the reader waited for rows, 0 to 1
    double writer_wait; ///< share of their time in which writers waited for space, 0 to 1
};

enum tfos__side {
    TFOS__SIDE_NEITHER,
    TFOS__SIDE_SPARK,  ///< trainers wait for rows
    TFOS__SIDE_TRAINER ///< Spark waits for space
};

/// Takes up a sample, which is not older than those before it.
void tfos__pace_note(struct tfos__pace *pace, const struct tfos__sample *sample);

/// The rates of the last seconds; unknown before there are two samples, and of a node that says
/// nothing any more.
struct tfos__rates tfos__pace_rates(const struct tfos__pace *pace, int64_t now_ms);

/// Which side is the slower one. A reader that waits for a quarter of its time wants rows, whatever
/// writers do: one may wait for its turn while another has nothing to write. Else, writers that
/// wait for a quarter of theirs have rows that nobody takes.
enum tfos__side tfos__pace_side(const struct tfos__rates *rates);

#endif

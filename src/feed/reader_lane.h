// SPDX-License-Identifier: Apache-2.0
/// One lane as the reader sees it: its next record, its schema, and the account of rows given out
/// and answered.
#ifndef TFOS_FEED_READER_LANE_H
#define TFOS_FEED_READER_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/feed.h>

#include "feed/lane.h"
#include "feed/sender.h"

struct tfos__reader_lane {
    int number;              ///< the host's
    struct tfos__lane *lane; ///< counted
    struct tfos__schema schema;
    uint64_t turn_size; ///< bytes given out since the reader came to this lane
    int handle;         ///< of the attempt at hand; -1 before the first
    int64_t feed, partition, attempt;
    int64_t row; ///< number of the attempt's first row on this lane
    int64_t given_count, answered_count;
    struct tfos__sender answers; ///< what it refuses is refused of the writer, too
    uint8_t *spill;      ///< body of a batch of results that is larger than their ring; owned
    uint64_t spill_sent; ///< bytes of it that are in the ring or through it
    int64_t spill_rows;
    bool is_obstructed; ///< batches that are held keep the writer waiting
    uint64_t oldest;    ///< the oldest of them
    int64_t relief_ms;  ///< when they are evacuated
};

/// Takes up the next batch or end, over any schema before it. AGAIN; CORRUPT: the lane is given up.
enum tfos_status tfos__reader_lane_peek(struct tfos__reader_lane *lane, struct tfos_error *err);

/// To be called when peek() finds nothing: evacuates batches that have kept the writer waiting for
/// too long. Gives the time at which to call again, TFOS__NEVER when nothing is in the way.
int64_t tfos__reader_lane_relieve(struct tfos__reader_lane *lane);

/// The record that peek() found.
const struct tfos__record *tfos__reader_lane_record(const struct tfos__reader_lane *lane);

/// Gives the record out. `next_handle` is used, and raised, when another attempt begins.
enum tfos_status tfos__reader_lane_take(struct tfos__reader_lane *lane, int *next_handle,
                                        struct tfos_feed_item *item, struct tfos_error *err);

/// Takes up the schema of the next results, and drops what is unsent of those before.
enum tfos_status tfos__reader_lane_begin_answer(struct tfos__reader_lane *lane,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err);

/// Writes results from row `row` of `array` on, as much as there is space for, and says in `*rows`
/// how many. AGAIN: no space. CLOSED: the writer has gone.
enum tfos_status tfos__reader_lane_answer(struct tfos__reader_lane *lane,
                                          const struct ArrowArray *array, int64_t row,
                                          int64_t *rows, struct tfos_error *err);

/// Whether answer() would get further than it did when it gave AGAIN.
bool tfos__reader_lane_can_answer(struct tfos__reader_lane *lane);

void tfos__reader_lane_free(struct tfos__reader_lane *lane);

#endif

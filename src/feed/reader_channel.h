// SPDX-License-Identifier: Apache-2.0
/// One channel as the reader sees it: its next record, its schema, and the account of rows given
/// out and answered.
#ifndef TFOS_FEED_READER_CHANNEL_H
#define TFOS_FEED_READER_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/feed.h>

#include "feed/batch_encoder.h"
#include "feed/feed_channel.h"

struct tfos__feed_reader_channel {
    int number;                        ///< the host's
    struct tfos__feed_channel *shared; ///< counted
    struct tfos__feed_schema schema;
    uint64_t burst_size; ///< bytes returned since the reader switched to this channel
    int handle;          ///< of the current attempt; -1 before the first
    int64_t feed, partition, attempt;
    int64_t row; ///< number of the attempt's first row on this channel
    int64_t given_count, answered_count;
    struct tfos__feed_batch_encoder answers; ///< what it refuses is refused of the writer, too
    bool is_blocking;                        ///< batches that are held keep the writer waiting
    uint64_t oldest;                         ///< the oldest of them
    int64_t unblock_ms;                      ///< when they are detached
};

/// Takes up the next batch or end, over any schema before it. AGAIN; CORRUPT: the channel is given
/// up.
enum tfos_status tfos__feed_reader_channel_peek(struct tfos__feed_reader_channel *channel,
                                                struct tfos_error *err);

/// To be called when peek() finds nothing: detaches batches that have kept the writer waiting for
/// too long. Gives the time at which to call again, TFOS__NEVER when nothing is in the way.
int64_t tfos__feed_reader_channel_unblock(struct tfos__feed_reader_channel *channel);

/// Gives the record out. `next_handle` is used, and raised, when another attempt begins.
enum tfos_status tfos__feed_reader_channel_take(struct tfos__feed_reader_channel *channel,
                                                int *next_handle, struct tfos_feed_item *item,
                                                struct tfos_error *err);

/// Takes up the schema of the next results, and drops what is unsent of those before.
enum tfos_status tfos__feed_reader_channel_begin_answer(struct tfos__feed_reader_channel *channel,
                                                        const struct ArrowSchema *schema,
                                                        const struct ArrowArray *array,
                                                        struct tfos_error *err);

/// Writes the results, from where the last call left off. OK once all are written; AGAIN: no space.
/// CLOSED: the writer has gone.
enum tfos_status tfos__feed_reader_channel_answer(struct tfos__feed_reader_channel *channel,
                                                  const struct ArrowArray *array,
                                                  struct tfos_error *err);

/// Whether answer() would get further than it did when it gave AGAIN.
bool tfos__feed_reader_channel_can_answer(struct tfos__feed_reader_channel *channel);

void tfos__feed_reader_channel_free(struct tfos__feed_reader_channel *channel);

#endif

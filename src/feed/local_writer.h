// SPDX-License-Identifier: Apache-2.0
/// The channels that one attempt writes to on this machine: those of a local writer, or of the
/// proxy of a remote one. Where a record needs a larger channel, the attempt changes to that; with
/// results, the earlier channels stay until their results have come. One thread at a time.
#ifndef TFOS_FEED_LOCAL_WRITER_H
#define TFOS_FEED_LOCAL_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/feed_channel.h"

struct tfos__feed_written_channel {
    struct tfos__feed_channel *shared; ///< counted
    uint64_t released_before;          ///< the channel's count of rows released before this attempt
    int64_t row_count;                 ///< rows that were written to it
    int64_t result_count;              ///< results that were taken from it
};

/// All zero but for `has_results` to begin with.
struct tfos__feed_local_writer {
    bool has_results;
    struct tfos__feed_written_channel *channels; ///< owned; the last is written to, results come
                                                 ///< from the first
    size_t count;
    int64_t left_count; ///< rows written to channels that were left
};

/// Writes to `channel` (taken over, also on failure) from now on.
enum tfos_status tfos__feed_local_writer_add(struct tfos__feed_local_writer *writer,
                                             struct tfos__feed_channel *channel,
                                             struct tfos_error *err);

/// The channel that is written to. There must be one.
struct tfos__feed_channel *
tfos__feed_local_writer_last(const struct tfos__feed_local_writer *writer);

/// Rows of the partition up to the last one published, at first `first_row`.
uint64_t tfos__feed_local_writer_rows(const struct tfos__feed_local_writer *writer);

/// tfos__feed_producer_commit() on that channel, of a record with `row_count` rows.
enum tfos_status tfos__feed_local_writer_commit(struct tfos__feed_local_writer *writer,
                                                uint64_t size, uint64_t rows, int64_t row_count,
                                                struct tfos_error *err);

/// Finds the next record of results: `*consumer` has it. AGAIN; CORRUPT.
enum tfos_status tfos__feed_local_writer_peek(struct tfos__feed_local_writer *writer,
                                              struct tfos__feed_consumer **consumer,
                                              struct tfos_error *err);

/// Done with that record, which counts as so many results.
void tfos__feed_local_writer_skip(struct tfos__feed_local_writer *writer, int64_t result_count);

/// Rows of this attempt that the reader has used.
int64_t tfos__feed_local_writer_taken_rows(const struct tfos__feed_local_writer *writer);

/// Sleeps until there is space for `size` bytes (0: not wanted) or a result, `timeout_ms` at most.
void tfos__feed_local_writer_wait(struct tfos__feed_local_writer *writer, uint64_t size,
                                  int timeout_ms);

void tfos__feed_local_writer_clear(struct tfos__feed_local_writer *writer);

#endif

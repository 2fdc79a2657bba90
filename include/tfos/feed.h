// SPDX-License-Identifier: Apache-2.0
/// The reader of a feed, in a trainer: batches of rows that Spark's tasks write, in place in shared
/// memory, and results back. A node may have several queues, each with a reader of its own; feeds
/// are numbered within a queue. A batch belongs to (feed, partition, attempt) and starts at a row
/// number; it is delivered whole or not at all, and each row of a partition once, whatever attempts
/// Spark makes. A channel is what one writer writes to. Batches cross
/// this interface as Arrow C data: a struct array whose children are the columns. Schema metadata
/// travels with it unchanged.
#ifndef TFOS_FEED_H
#define TFOS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>
#include <tfos/wait.h>

/// What tfos_trainer_open_feed() gives; next() and put_results() from one thread at a time, the
/// others from any. Belongs to the process that opened it. In one that is forked from that, calls
/// which can fail give INVALID and all others do nothing: the rows are the opener's. Arrays that
/// next() returned before the fork stay valid in both.
struct tfos_feed_reader;

enum tfos_feed_item_kind {
    TFOS_FEED_BATCH = 1,         ///< rows
    TFOS_FEED_PARTITION_END = 2, ///< the partition of this channel has ended
    TFOS_FEED_EPOCH_END = 3 ///< all partitions of this feed, on all channels, have been returned
};

/// What next() gives. For a batch the caller owns `schema` and `array` and releases both, from any
/// thread and in any order. The array's memory is the ring's own, and the space returns to the
/// writer with the release. It may be held without limit, even beyond close(): when the writer
/// waits for space and next() has nothing else to give, next() moves the batches held to memory of
/// their own, behind the same pointers. They count as used then. What a consumer may hold is
/// therefore not limited by the ring. Memory that is held must not be registered with a device.
struct tfos_feed_item {
    enum tfos_feed_item_kind kind;
    int channel; ///< for put_results(): each attempt in a channel has a number of its own; -1 at
                 ///< the end of an epoch
    bool has_results; ///< the writer waits for a result a row
    int64_t feed;
    int64_t partition;
    int64_t first_row; ///< number of the batch's first row in its partition
    struct ArrowSchema schema;
    struct ArrowArray array;
};

/// INVALID in a forked process; from then on also in the process that opened the reader, whose
/// next() gives it too, because the failure of the other may not be seen. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_reader_check(const struct tfos_feed_reader *reader, struct tfos_error *err);

/// The next item. Feeds come in order of their numbers: items of feed n+1 wait for the end of epoch
/// n. Those that want results wait for no other feed. AGAIN after `timeout_ms` (negative: no
/// limit). END after the end of the feed, once all items were returned, and after terminate().
/// CLOSED with the message of fail(). CORRUPT: a channel broke its format; it is not read any more,
/// nor is one with pickles that are refused (UNSUPPORTED).
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_reader_next(struct tfos_feed_reader *reader,
                                                                int64_t timeout_ms,
                                                                struct tfos_feed_item *item,
                                                                struct tfos_error *err);

/// Notes that `row_count` more rows of a batch from next() have been used, though it is not
/// released yet: a reader that is slow over a large batch makes progress then, for the writer's
/// timeout and in the figures. Any thread.
TFOS_API void tfos_feed_batch_use(const struct ArrowArray *array, int64_t row_count);

/// Sends results for the next rows of `channel`'s partition, in order. INVALID, with the partition
/// and both counts, when there are more results than rows returned, or `channel` was not. CLOSED
/// when the writer has gone (the caller may drop them and continue), or the wait was interrupted.
/// `wait` has no limit: a writer that takes nothing for its own timeout closes. After a wait that
/// ended early it is not known how many of the results were sent.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_reader_put_results(struct tfos_feed_reader *reader, int channel,
                             const struct ArrowSchema *schema, const struct ArrowArray *array,
                             const struct tfos_wait *wait, struct tfos_error *err);

/// No more rows are wanted: writers get END, next() gives END.
TFOS_API void tfos_feed_reader_terminate(struct tfos_feed_reader *reader);

/// Ends all waits with this status and message (the node has gone).
TFOS_API void tfos_feed_reader_fail(struct tfos_feed_reader *reader, enum tfos_status status,
                                    const char *message);

/// A channel of a node, as its memory says at one moment.
struct tfos_feed_channel_state {
    int fd;             ///< of the process that was looked into
    int64_t size, used; ///< bytes of the ring of batches, and of those that are not released
    int64_t result_size, result_used; ///< the same of results
    int64_t rows_published;           ///< of the writer's partition, by all its attempts
    int64_t rows_released;            ///< since the channel was made
    int64_t space_wanted;             ///< bytes that a writer waits for; 0: for none
    int64_t writer_wait_us;           ///< for which writers have waited for space so far
    bool is_partition_published;      ///< its end, too
    bool is_fenced;                   ///< its writer may publish no more
    bool is_abandoned;                ///< the reader found it corrupt
    bool is_retired;                  ///< the node has freed it
};

/// Looks into the channels that process `pid`, a node, has open, and calls `visit` with each,
/// without disturbing it: the figures of a channel that is in use may be of different moments.
/// NOT_FOUND: no such process, or it has no channel; DENIED: another user's.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_inspect(int64_t pid,
                  void (*visit)(void *context, const struct tfos_feed_channel_state *state),
                  void *context, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The channels of a host: made, handed to writers, taken back when their writer has gone and their
/// reader has drained them, handed out again, and freed when memory is wanted for others.
#ifndef TFOS_FEED_CHANNEL_POOL_H
#define TFOS_FEED_CHANNEL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/queue_names.h"
#include "feed/feed_channel.h"

#define TFOS__FEED_CHANNEL_COUNT_LIMIT 1024

struct tfos__feed_pool_channel {
    int number;
    int queue;         ///< number of the queue whose reader knows the channel
    int fd;            ///< owned
    bool is_announced; ///< the node knows of it: before that it is neither freed nor handed out
                       ///< again
    struct tfos__feed_channel_page *page; ///< owned mapping of the first page
    uint64_t size, result_size;
    const void *owner;  ///< who writes to it or waits for its results; NULL: nobody
    bool is_written;    ///< the owner may still write to it
    uint64_t first_row; ///< count of rows when it was handed out
    bool is_extra;      ///< not counted in the limit
};

struct tfos__feed_channel_pool {
    uint64_t memory_limit;
    struct tfos__feed_pool_channel **channels; ///< owned
    size_t count;
    uint64_t total_size; ///< bytes of all channels but the extra ones
    uint64_t extra_size; ///< of those
    int next_number;
    uint64_t gone_rows_written, gone_bytes,
        gone_waited_us;                         ///< of earlier writers and freed channels
    uint64_t gone_rows_read[TFOS__QUEUE_LIMIT]; ///< the same, of each queue
};

/// What a writer needs.
struct tfos__feed_channel_request {
    int queue;
    uint64_t size, result_size;
    uint64_t first_row; ///< where the channel's count of rows begins
    const void *owner;
    bool is_extra; ///< whatever the limit
};

/// A channel: a used one or a new one (`*is_new`). AGAIN when memory does not allow it now.
enum tfos_status tfos__feed_channel_pool_take(struct tfos__feed_channel_pool *pool,
                                              const struct tfos__feed_channel_request *request,
                                              struct tfos__feed_pool_channel **out, bool *is_new,
                                              struct tfos_error *err);

/// The writer has left the channel of itself, but still waits for its results.
void tfos__feed_channel_pool_leave(struct tfos__feed_channel_pool *pool,
                                   struct tfos__feed_pool_channel *channel);

/// The writer may publish nothing more in this channel: what it had published is final.
void tfos__feed_channel_pool_fence(struct tfos__feed_channel_pool *pool,
                                   struct tfos__feed_pool_channel *channel);

/// The owner needs the channel no more. It is handed out again once the reader has drained it.
void tfos__feed_channel_pool_give_back(struct tfos__feed_channel_pool *pool,
                                       struct tfos__feed_pool_channel *channel);

/// Frees unused channels while all together are above the limit.
void tfos__feed_channel_pool_trim(struct tfos__feed_channel_pool *pool);

/// What has been published up to the last record in the channel, at first first_row rows.
struct tfos__feed_rows tfos__feed_pool_channel_rows(const struct tfos__feed_pool_channel *channel);

/// Rows published in the channel since it was handed out.
uint64_t tfos__feed_pool_channel_written(const struct tfos__feed_pool_channel *channel);

/// Whether nothing is left in the channel.
bool tfos__feed_pool_channel_is_drained(const struct tfos__feed_pool_channel *channel);

/// Whether no row is left in it: its partition's end may be, which the reader finds when it next
/// reads its queue.
bool tfos__feed_pool_channel_is_read(const struct tfos__feed_pool_channel *channel);

/// A number that changes whenever a reader of this queue takes something.
uint64_t tfos__feed_channel_pool_progress(const struct tfos__feed_channel_pool *pool, int queue);

void tfos__feed_channel_pool_clear(struct tfos__feed_channel_pool *pool);

#endif

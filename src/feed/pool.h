// SPDX-License-Identifier: Apache-2.0
/// The lanes of a host: made, handed to writers, taken back when their writer has gone and their
/// reader has drained them, handed out again, and freed when memory is wanted for others.
#ifndef TFOS_FEED_POOL_H
#define TFOS_FEED_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/queue_names.h"
#include "feed/lane.h"

#define TFOS__LANE_COUNT_LIMIT 1024

struct tfos__pool_lane {
    int number;
    int queue;         ///< number of the queue whose reader knows the lane
    int fd;            ///< owned
    bool is_announced; ///< the node knows of it: before that it is neither freed nor handed out
                       ///< again
    struct tfos__lane_page *page; ///< owned mapping of the first page
    uint64_t size, result_size;
    const void *owner;  ///< who writes to it or waits for its results; NULL: nobody
    bool is_written;    ///< the owner may still write to it
    uint64_t first_row; ///< count of rows when it was handed out
};

struct tfos__pool {
    uint64_t memory_limit;
    struct tfos__pool_lane **lanes; ///< owned
    size_t count, capacity;
    uint64_t total_size; ///< bytes of all lanes
    int next_number;
    uint64_t gone_rows_written, gone_bytes, gone_waited_us; ///< of earlier writers and freed lanes
    uint64_t gone_rows_read[TFOS__QUEUE_LIMIT];             ///< the same, of each queue
};

/// What a writer needs.
struct tfos__pool_request {
    int queue;
    uint64_t size, result_size;
    uint64_t first_row; ///< where the lane's count of rows begins
    const void *owner;
};

/// A lane: a used one or a new one (`*is_new`). AGAIN when memory does not allow it now.
enum tfos_status tfos__pool_take(struct tfos__pool *pool, const struct tfos__pool_request *request,
                                 struct tfos__pool_lane **out, bool *is_new,
                                 struct tfos_error *err);

/// The writer has left the lane of itself, but still waits for its results.
void tfos__pool_leave(struct tfos__pool *pool, struct tfos__pool_lane *lane);

/// The writer may publish nothing more in this lane: what it had published is final.
void tfos__pool_fence(struct tfos__pool *pool, struct tfos__pool_lane *lane);

/// The owner needs the lane no more. It is handed out again once the reader has drained it.
void tfos__pool_give_back(struct tfos__pool *pool, struct tfos__pool_lane *lane);

/// Frees unused lanes while all together are above the limit.
void tfos__pool_trim(struct tfos__pool *pool);

/// Rows published in the lane, first_row included, and whether the partition's end was.
uint64_t tfos__pool_lane_rows(const struct tfos__pool_lane *lane, bool *is_complete);

/// Whether nothing is left in the lane.
bool tfos__pool_lane_is_drained(const struct tfos__pool_lane *lane);

/// Whether no row is left in it: its partition's end may be, which the reader finds when it next
/// reads its queue.
bool tfos__pool_lane_is_read(const struct tfos__pool_lane *lane);

/// A number that changes whenever a reader of this queue takes something.
uint64_t tfos__pool_progress(const struct tfos__pool *pool, int queue);

void tfos__pool_clear(struct tfos__pool *pool);

#endif

// SPDX-License-Identifier: Apache-2.0
/// What the host knows of each partition of a queue: its latest attempt, and how many of its rows
/// were published. In a struct tfos__partition_table.
#ifndef TFOS_FEED_ATTEMPT_TABLE_H
#define TFOS_FEED_ATTEMPT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/partition_table.h"

struct tfos__feed_connection;

struct tfos__feed_attempt {
    struct tfos__partition base; ///< first; its feed and number
    int64_t attempt;             ///< the latest
    int64_t superseded;          ///< attempts below this one may publish nothing more
    int64_t rows;                ///< of the partition, up to the last published by closed attempts
    bool is_fenced;              ///< attempts that never came may be among those superseded
    bool is_complete;
    bool has_results; ///< when its attempt is closed nobody asks what became of it
    uint64_t last_channel,
        last_head; ///< where the latest closed attempt ended; see before_channel of a channel
    struct tfos__feed_connection *connection; ///< of the open attempt, or NULL
};

/// The entry of a partition, or NULL when nothing is known of it.
struct tfos__feed_attempt *tfos__feed_attempt_table_find(const struct tfos__partition_table *table,
                                                         int64_t feed, int64_t partition);

/// The entry of a partition, made if need be. Closed ones that had results go when room is needed:
/// their feeds may have no end. Those that are fenced stay: an attempt below the fence that comes
/// late is refused by nothing else.
enum tfos_status tfos__feed_attempt_table_get(struct tfos__partition_table *table, int64_t feed,
                                              int64_t partition, struct tfos__feed_attempt **out,
                                              struct tfos_error *err);

/// Attempts below `attempt` may publish nothing more.
void tfos__feed_attempt_fence(struct tfos__feed_attempt *entry, int64_t attempt);

/// Forgets the partitions of feeds up to `feed` that have no open attempt.
void tfos__feed_attempt_table_forget(struct tfos__partition_table *table, int64_t feed);

#endif

// SPDX-License-Identifier: Apache-2.0
/// What the host knows of each partition: its latest attempt, and how many of its rows were
/// published.
#ifndef TFOS_FEED_ATTEMPT_H
#define TFOS_FEED_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

struct tfos__connection;

struct tfos__attempt {
    int64_t feed; ///< 0: the place is free
    int64_t partition;
    int64_t attempt;    ///< the latest
    int64_t superseded; ///< attempts below this one may publish nothing more
    int64_t rows;       ///< published by closed attempts, first_row included
    bool is_fenced;     ///< attempts that never came may be among those superseded
    bool is_complete;
    bool has_results; ///< when its attempt is closed nobody asks what became of it
    uint64_t last_lane,
        last_head; ///< where the latest closed attempt ended; see before_lane of a lane
    struct tfos__connection *connection; ///< of the living attempt, or NULL
};

/// All zero is an empty table. Pointers to entries live until the next get() or forget().
struct tfos__attempt_table {
    struct tfos__attempt *places; ///< owned; open addressing, a power of two
    size_t capacity, count;
};

/// The entry of a partition, or NULL when nothing is known of it.
struct tfos__attempt *tfos__attempt_find(const struct tfos__attempt_table *table, int64_t feed,
                                         int64_t partition);

/// The entry of a partition, made if need be. Closed ones that had results go when room is needed:
/// their feeds may have no end. Those that are fenced stay: an attempt below the fence that comes
/// late is refused by nothing else.
enum tfos_status tfos__attempt_get(struct tfos__attempt_table *table, int64_t feed,
                                   int64_t partition, struct tfos__attempt **out,
                                   struct tfos_error *err);

/// Attempts below `attempt` may publish nothing more.
void tfos__attempt_fence(struct tfos__attempt *entry, int64_t attempt);

/// Forgets the partitions of feeds up to `feed` that have no living attempt.
void tfos__attempt_forget(struct tfos__attempt_table *table, int64_t feed);

void tfos__attempt_table_clear(struct tfos__attempt_table *table);

#endif

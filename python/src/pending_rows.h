// SPDX-License-Identifier: Apache-2.0
/// The rows that were returned and have no result yet, oldest first. The caller holds the GIL.
#ifndef TFOS_PYTHON_PENDING_ROWS_H
#define TFOS_PYTHON_PENDING_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/feed.h>

/// Rows of one partition.
struct tfos__py_pending {
    int channel;
    int64_t partition;
    int64_t count;
    bool is_frame; ///< they came from a DataFrame, and their results go to one
};

struct tfos__py_pending_rows {
    struct tfos__py_pending *partitions; ///< owned
    size_t count, capacity;
};

/// Adds `count` rows of a batch, if they want results. -1 with an exception.
int tfos__py_pending_rows_add(struct tfos__py_pending_rows *pending,
                              const struct tfos_feed_item *batch, int64_t count);

/// The oldest; NULL: there are none.
const struct tfos__py_pending *
tfos__py_pending_rows_oldest(const struct tfos__py_pending_rows *pending);

/// Whether `count` results are for rows of the oldest partition. -1 with an exception: they are
/// more.
int tfos__py_pending_rows_check(const struct tfos__py_pending_rows *pending, int64_t count);

/// The oldest `count` rows, all of one partition, have results now.
void tfos__py_pending_rows_remove(struct tfos__py_pending_rows *pending, int64_t count);

void tfos__py_pending_rows_clear(struct tfos__py_pending_rows *pending);

#endif

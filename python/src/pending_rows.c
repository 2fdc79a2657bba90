// SPDX-License-Identifier: Apache-2.0
#include "pending_rows.h"

#include <string.h>

#include "error.h"

int tfos__py_pending_rows_add(struct tfos__py_pending_rows *pending,
                              const struct tfos_feed_item *batch, int64_t count)
{
    struct tfos__py_pending *last =
        pending->count > 0 ? &pending->partitions[pending->count - 1] : NULL;
    char kind[16];

    if (!batch->has_results)
        return 0;
    if (last && last->channel == batch->channel) {
        last->count += count;
        return 0;
    }
    if (pending->count == pending->capacity) {
        size_t capacity = pending->capacity * 2 + 8;
        struct tfos__py_pending *more =
            PyMem_Realloc(pending->partitions, capacity * sizeof(*more));
        if (!more) {
            PyErr_NoMemory();
            return -1;
        }
        pending->partitions = more;
        pending->capacity = capacity;
    }
    pending->partitions[pending->count++] = (struct tfos__py_pending){
        .channel = batch->channel,
        .partition = batch->partition,
        .count = count,
        .is_frame =
            !tfos_arrow_metadata_find(batch->schema.metadata, "tfos.row", kind, sizeof(kind)),
    };
    return 0;
}

const struct tfos__py_pending *
tfos__py_pending_rows_oldest(const struct tfos__py_pending_rows *pending)
{
    return pending->count > 0 ? &pending->partitions[0] : NULL;
}

int tfos__py_pending_rows_check(const struct tfos__py_pending_rows *pending, int64_t count)
{
    const struct tfos__py_pending *oldest = tfos__py_pending_rows_oldest(pending);

    if (oldest && count <= oldest->count)
        return 0;
    if (oldest)
        tfos__py_raise_format(
            TFOS_INVALID,
            "feed: partition %lld: %lld results for the %lld rows that have none yet: give "
            "one result for each row, before the next partition's",
            (long long)oldest->partition, (long long)count, (long long)oldest->count);
    else
        tfos__py_raise_format(
            TFOS_INVALID,
            "feed: %lld results, but no row waits for one: all have theirs, or they were "
            "fed for training",
            (long long)count);
    return -1;
}

void tfos__py_pending_rows_remove(struct tfos__py_pending_rows *pending, int64_t count)
{
    struct tfos__py_pending *oldest = &pending->partitions[0];

    oldest->count -= count;
    if (oldest->count > 0)
        return;
    pending->count--;
    memmove(oldest, oldest + 1, pending->count * sizeof(*oldest));
}

void tfos__py_pending_rows_clear(struct tfos__py_pending_rows *pending)
{
    PyMem_Free(pending->partitions);
}

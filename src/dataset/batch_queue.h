// SPDX-License-Identifier: Apache-2.0
/// The queue of batches that were read and whose rows were not yet taken. It reads one epoch at a
/// time, and keeps the order in which the rows came.
#ifndef TFOS_DATASET_BATCH_QUEUE_H
#define TFOS_DATASET_BATCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>

#include "base/memory.h"
#include "dataset/shared_batch.h"

struct tfos__dataset_batch_queue {
    const struct tfos_dataset_options *options; ///< borrowed: where batches come from
    struct tfos__buffer batches;                ///< of pointers, each held
    int64_t position;                           ///< first row left in the first batch
    int64_t row_count;                          ///< rows left
    int64_t size;                               ///< bytes of the batches
    int64_t batch_count;                        ///< batches read
    bool is_ended;                              ///< the epoch has no rows but these
    bool is_over;                               ///< no further epoch comes
    bool has_begun;                             ///< rows of this epoch have come
    bool is_idle;                               ///< the last wait for rows was in vain
};

/// Reads one item of the epoch. AGAIN when none came within `timeout_ms` (negative: no limit); END
/// at the epoch's end. Fails as tfos_feed_reader_next() does.
enum tfos_status tfos__dataset_batch_queue_read(struct tfos__dataset_batch_queue *queue,
                                                int64_t timeout_ms, struct tfos_error *err);

/// Reads one item before `deadline`. CLOSED when the options' is_interrupted() ends the wait, which
/// loses no row.
enum tfos_status tfos__dataset_batch_queue_await(struct tfos__dataset_batch_queue *queue,
                                                 int64_t deadline, struct tfos_error *err);

/// Until when a node that trains in step waits for rows before it reports to the other nodes that
/// it has none. Spark starts the tasks that feed the nodes one after the other, so the first rows
/// of an epoch get more time. Later rows, and rows that were waited for in vain, may depend on the
/// next step of the nodes.
int64_t tfos__dataset_batch_queue_deadline(const struct tfos__dataset_batch_queue *queue);

/// Moves the next `count` rows, or all that are left, to the slices. The reader counts them as
/// used.
enum tfos_status tfos__dataset_batch_queue_take(struct tfos__dataset_batch_queue *queue,
                                                int64_t count,
                                                struct tfos__dataset_row_slices *slices,
                                                struct tfos_error *err);

/// The batch of the next row; NULL: there is none.
struct tfos__dataset_shared_batch *
tfos__dataset_batch_queue_first(const struct tfos__dataset_batch_queue *queue);

/// Drops all rows that are left.
void tfos__dataset_batch_queue_drop(struct tfos__dataset_batch_queue *queue);

/// Goes back to the state in which nothing was read.
void tfos__dataset_batch_queue_restart(struct tfos__dataset_batch_queue *queue);

/// Begins the next epoch, if there is one.
void tfos__dataset_batch_queue_begin_epoch(struct tfos__dataset_batch_queue *queue);

void tfos__dataset_batch_queue_clear(struct tfos__dataset_batch_queue *queue);

#endif

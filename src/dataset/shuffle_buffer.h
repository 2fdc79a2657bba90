// SPDX-License-Identifier: Apache-2.0
/// A shuffle buffer: rows of which each draw takes one at random. Its memory is about that of its
/// rows: when most rows of a batch have been drawn, the others are copied and the batch is
/// released.
#ifndef TFOS_DATASET_SHUFFLE_BUFFER_H
#define TFOS_DATASET_SHUFFLE_BUFFER_H

#include <stdint.h>

#include "dataset/batch_queue.h"

struct tfos__dataset_shuffle_slot;
struct tfos__dataset_shuffle_batch;

struct tfos__dataset_shuffle_buffer {
    int64_t limit; ///< rows of a full buffer; 0: rows are not shuffled
    int64_t count; ///< rows
    int64_t capacity;
    struct tfos__dataset_shuffle_slot *slots;   ///< owned; one for each row
    struct tfos__dataset_shuffle_batch *newest; ///< the batch that was added last, while held
    uint64_t random_state;
};

/// Begins an epoch. Its order depends on both numbers and on the order in which the rows come.
void tfos__dataset_shuffle_buffer_begin(struct tfos__dataset_shuffle_buffer *buffer, uint64_t seed,
                                        int64_t epoch);

/// Draws `count` rows, or all that are left. Refills the buffer from the queue before each.
enum tfos_status tfos__dataset_shuffle_buffer_draw(struct tfos__dataset_shuffle_buffer *buffer,
                                                   struct tfos__dataset_batch_queue *queue,
                                                   int64_t count,
                                                   struct tfos__dataset_row_slices *slices,
                                                   struct tfos_error *err);

/// The state of a buffer, from which another can be brought to the same state.
struct tfos__dataset_shuffle_point {
    int64_t drawn_count; ///< rows drawn since the beginning
    int64_t added_count; ///< rows added since the beginning
    int64_t first; ///< number of the queue's next row among those added; no row before it is in
                   ///< the buffer
};

/// Fills an empty buffer, that has begun an epoch, to the state `point`, with rows from the queue.
/// `plan` and `binding` are as for tfos__dataset_shared_batch_bind(). END: the queue has fewer
/// rows.
enum tfos_status tfos__dataset_shuffle_buffer_resume(
    struct tfos__dataset_shuffle_buffer *buffer, struct tfos__dataset_batch_queue *queue,
    const struct tfos__dataset_shuffle_point *point, const struct tfos__dataset_plan *plan,
    struct tfos__dataset_schema_binding **binding, struct tfos_error *err);

/// Drops the rows.
void tfos__dataset_shuffle_buffer_drop(struct tfos__dataset_shuffle_buffer *buffer);

void tfos__dataset_shuffle_buffer_clear(struct tfos__dataset_shuffle_buffer *buffer);

/// A random number by SplitMix64.
static inline uint64_t tfos__dataset_random_next(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// The memory that tensors share: buffers with a count of references, batches of rows as the reader
/// gave them, and slices of their rows.
#ifndef TFOS_DATASET_SHARED_BATCH_H
#define TFOS_DATASET_SHARED_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/feed.h>

#include "dataset/schema_binding.h"

/// Freed when the last reference is released.
struct tfos__dataset_shared_buffer {
    atomic_int reference_count;
    void (*free)(struct tfos__dataset_shared_buffer *buffer); ///< called by the last release
};

/// `size` bytes, not zeroed, aligned for vector instructions. The buffer holds `parent` (NULL:
/// none) as long as it lives. NULL: no memory.
struct tfos__dataset_shared_buffer *
tfos__dataset_shared_buffer_open(size_t size, struct tfos__dataset_shared_buffer *parent,
                                 uint8_t **data);

void tfos__dataset_shared_buffer_hold(struct tfos__dataset_shared_buffer *buffer);

/// Any thread. NULL is accepted.
void tfos__dataset_shared_buffer_release(struct tfos__dataset_shared_buffer *buffer);

/// A tensor with memory for the elements of its shape, whose dtype is not string.
enum tfos_status tfos__dataset_tensor_init(struct tfos_tensor *tensor, enum tfos_dtype dtype,
                                           int rank, const int64_t *shape, uint8_t **data,
                                           struct tfos_error *err);

struct tfos__dataset_shared_batch {
    struct tfos__dataset_shared_buffer buffer; ///< first
    struct ArrowSchema schema;                 ///< moves to the binding, once there is one
    struct ArrowArray array;
    struct tfos__dataset_schema_binding *binding; ///< NULL until tfos__dataset_shared_batch_bind()
    int64_t partition;
    const char *partition_name; ///< in messages; NULL: "partition" and its number; borrowed
    int64_t number;             ///< among the batches of the queue, from 0
    int64_t first_row, row_step;
    int64_t *row_numbers; ///< owned; of rows that do not follow each other; NULL: they do
    int64_t size;         ///< approximate bytes
    bool is_in_ring;      ///< the memory is the ring's
};

/// Takes over the batch in `item`, also on failure.
enum tfos_status tfos__dataset_shared_batch_open(struct tfos_feed_item *item,
                                                 struct tfos__dataset_shared_batch **out,
                                                 struct tfos_error *err);

/// Makes a batch of copies of those rows of a bound batch that the spans name.
enum tfos_status tfos__dataset_shared_batch_extract(const struct tfos__dataset_shared_batch *batch,
                                                    const struct tfos__arrow_span *spans,
                                                    int64_t span_count,
                                                    struct tfos__dataset_shared_batch **out,
                                                    struct tfos_error *err);

/// Binds the batch to the plan, unless it is bound. `last` is the binding of an earlier batch: it
/// is used when it is for the same schema, and replaced otherwise.
enum tfos_status tfos__dataset_shared_batch_bind(struct tfos__dataset_shared_batch *batch,
                                                 const struct tfos__dataset_plan *plan,
                                                 struct tfos__dataset_schema_binding **last,
                                                 struct tfos_error *err);

/// Prefixes the message in `err` with the batch's partition, and its row unless `row` is negative.
void tfos__dataset_shared_batch_locate(const struct tfos__dataset_shared_batch *batch, int64_t row,
                                       struct tfos_error *err);

void tfos__dataset_shared_batch_hold(struct tfos__dataset_shared_batch *batch);
void tfos__dataset_shared_batch_release(struct tfos__dataset_shared_batch *batch);

/// Rows of one batch that follow each other.
struct tfos__dataset_row_slice {
    struct tfos__dataset_shared_batch *batch; ///< held
    int64_t first, count;
};

/// The rows of a batch of tensors, used again and again: those of the slices, then rows of zeros.
struct tfos__dataset_row_slices {
    struct tfos__dataset_row_slice *slices; ///< owned
    int64_t count, capacity;
    int64_t row_count;  ///< of all slices
    int64_t zero_count; ///< rows of zeros behind them
};

/// Adds a slice, which holds its batch. Joins it to the last slice where it follows that.
enum tfos_status tfos__dataset_row_slices_add(struct tfos__dataset_row_slices *list,
                                              struct tfos__dataset_shared_batch *batch,
                                              int64_t first, int64_t count, struct tfos_error *err);

/// Releases the batches.
void tfos__dataset_row_slices_drop(struct tfos__dataset_row_slices *list);

void tfos__dataset_row_slices_clear(struct tfos__dataset_row_slices *list);

#endif

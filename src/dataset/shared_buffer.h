// SPDX-License-Identifier: Apache-2.0
/// Buffers with a count of references: the memory of tensors, freed when the last of them is
/// released.
#ifndef TFOS_DATASET_SHARED_BUFFER_H
#define TFOS_DATASET_SHARED_BUFFER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/dataset.h>

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

#endif

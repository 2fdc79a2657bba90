// SPDX-License-Identifier: Apache-2.0
// A buffer is one allocation: its header, then the data at the next multiple of the alignment.
#include "dataset/shared_buffer.h"

#include "base/memory.h"
#include "dataset/element.h"

#define ALIGNMENT 64 // bytes

struct block {
    struct tfos__dataset_shared_buffer buffer;
    struct tfos__dataset_shared_buffer *parent; ///< held
};

static void free_block(struct tfos__dataset_shared_buffer *buffer)
{
    struct block *block = (struct block *)buffer;

    tfos__dataset_shared_buffer_release(block->parent);
    tfos__free(block);
}

struct tfos__dataset_shared_buffer *
tfos__dataset_shared_buffer_open(size_t size, struct tfos__dataset_shared_buffer *parent,
                                 uint8_t **data)
{
    size_t whole = 0;

    if (__builtin_add_overflow(size, sizeof(struct block) + ALIGNMENT, &whole))
        return NULL;
    struct block *block = tfos__realloc(NULL, whole, 1);
    if (!block)
        return NULL;
    *block = (struct block){.buffer = {.reference_count = 1, .free = free_block}, .parent = parent};
    if (parent)
        tfos__dataset_shared_buffer_hold(parent);
    uintptr_t end = (uintptr_t)(block + 1);
    *data = (uint8_t *)(block + 1) + (-end & (ALIGNMENT - 1));
    return &block->buffer;
}

void tfos__dataset_shared_buffer_hold(struct tfos__dataset_shared_buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->reference_count, 1, memory_order_relaxed);
}

void tfos__dataset_shared_buffer_release(struct tfos__dataset_shared_buffer *buffer)
{
    if (buffer && atomic_fetch_sub(&buffer->reference_count, 1) == 1)
        buffer->free(buffer);
}

enum tfos_status tfos__dataset_tensor_init(struct tfos_tensor *tensor, enum tfos_dtype dtype,
                                           int rank, const int64_t *shape, uint8_t **data,
                                           struct tfos_error *err)
{
    int64_t size = (int64_t)tfos__dataset_type_size(dtype);

    *tensor = (struct tfos_tensor){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        tensor->shape[i] = shape[i];
        if (__builtin_mul_overflow(size, shape[i], &size))
            return tfos__no_memory(err, "dataset", "a batch of tensors");
    }
    tensor->owner = tfos__dataset_shared_buffer_open((size_t)size, NULL, data);
    if (!tensor->owner)
        return tfos__no_memory(err, "dataset", "a batch of tensors");
    tensor->data = *data;
    tensor->size = size;
    return TFOS_OK;
}

void tfos_tensor_release(struct tfos_tensor *tensor)
{
    tfos__dataset_shared_buffer_release(tensor->owner);
    *tensor = (struct tfos_tensor){0};
}

// SPDX-License-Identifier: Apache-2.0
// A block is one request: its head, then the data at the next multiple of the alignment.
#include "dataset/lease.h"

#include "base/memory.h"

struct block {
    struct tfos__lease lease;
    struct tfos__lease *parent; ///< held
};

void tfos__lease_hold(struct tfos__lease *lease)
{
    atomic_fetch_add_explicit(&lease->references, 1, memory_order_relaxed);
}

void tfos__lease_release(struct tfos__lease *lease)
{
    if (lease && atomic_fetch_sub(&lease->references, 1) == 1)
        lease->end(lease);
}

static void end_block(struct tfos__lease *lease)
{
    struct block *block = (struct block *)lease;

    tfos__lease_release(block->parent);
    tfos__free(block);
}

struct tfos__lease *tfos__block_open(size_t size, struct tfos__lease *parent, uint8_t **data)
{
    size_t whole = 0;

    if (__builtin_add_overflow(size, sizeof(struct block) + TFOS__LEASE_ALIGN, &whole))
        return NULL;
    struct block *block = tfos__realloc(NULL, whole, 1);
    if (!block)
        return NULL;
    *block = (struct block){.lease = {.references = 1, .end = end_block}, .parent = parent};
    if (parent)
        tfos__lease_hold(parent);
    uintptr_t place = (uintptr_t)(block + 1);
    *data = (uint8_t *)(block + 1) + (-place & (TFOS__LEASE_ALIGN - 1));
    return &block->lease;
}

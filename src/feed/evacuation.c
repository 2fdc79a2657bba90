// SPDX-License-Identifier: Apache-2.0
// A batch is lent in place and may be held for ever, but its writer needs the space. So a reader
// reads each channel through a mapping of its own, its mapping, and can detach it: the channel gets
// another mapping, a second mapping of the same file; the batches held are copied to fresh private
// memory; and one mremap() puts that memory at the old mapping's addresses. Then nothing refers to
// the ring, and its tail moves on. The old mapping goes when the last of its batches is released.
//
// The invariant: the bytes at an address that was given out never change while the batch is held.
// Before the exchange they are the ring's, whose tail has not passed them; after it they are the
// copy's. Between, the kernel holds off every access: it takes the old pages away and puts the new
// ones there under one lock, for which a page fault waits. Nothing else is ever read at a mapping
// that was left: what is not read yet, be it in the same page, is read through the channel's new
// mapping. The channel's page and its ring of results have a mapping that is never exchanged.
//
// A device that had pinned the pages would go on reading the ring: whoever registers batches with
// one must copy them.
#include "feed/evacuation.h"

#include <sys/mman.h>

#include "base/fail.h"
#include "base/memory.h"

enum tfos_status tfos__feed_mapping_create(struct tfos__feed_channel *channel, void *base,
                                           struct tfos__feed_mapping **out, struct tfos_error *err)
{
    uint64_t size = tfos__feed_channel_total_size(channel);
    struct tfos__feed_mapping *mapping = tfos__alloc(1, sizeof *mapping);

    if (!mapping) {
        munmap(base, size);
        return tfos__no_memory(err, "feed", "a mapping of a lane");
    }
    mapping->references = 1;
    mapping->channel = channel;
    mapping->base = base;
    mapping->size = size;
    *out = mapping;
    return TFOS_OK;
}

void tfos__feed_mapping_release(struct tfos__feed_mapping *mapping)
{
    if (!mapping || atomic_fetch_sub(&mapping->references, 1) != 1)
        return;
    munmap(mapping->base, mapping->size);
    tfos__free(mapping);
}

static void use_lent(void *holder, uint64_t sequence, uint64_t rows)
{
    struct tfos__feed_channel *channel = ((struct tfos__feed_mapping *)holder)->channel;

    if (!tfos__feed_channel_is_inherited(channel))
        tfos__feed_consumer_use(&channel->consumer, sequence, rows);
}

static void release_lent(void *holder, uint64_t sequence)
{
    struct tfos__feed_mapping *mapping = holder;
    struct tfos__feed_channel *channel = mapping->channel;

    if (tfos__feed_channel_is_inherited(channel))
        return;
    tfos__feed_consumer_release(&channel->consumer, sequence);
    tfos__feed_mapping_release(mapping);
    tfos__feed_channel_release(channel);
}

struct tfos__feed_batch_owner tfos__feed_mapping_borrow(struct tfos__feed_mapping *mapping,
                                                        uint64_t sequence)
{
    atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
    tfos__feed_channel_share(mapping->channel);
    return (struct tfos__feed_batch_owner){use_lent, release_lent, mapping, sequence};
}

// A second mapping of the channel's file, made of the first: its descriptor is not kept.
static enum tfos_status map_again(struct tfos__feed_channel *channel,
                                  struct tfos__feed_mapping **out, struct tfos_error *err)
{
    uint64_t size = tfos__feed_channel_total_size(channel);
    void *base = mremap(channel->page, 0, size, MREMAP_MAYMOVE);

    if (base == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_IO, "feed: cannot map %llu bytes of a lane a second time",
                                (unsigned long long)size);
    return tfos__feed_mapping_create(channel, base, out, err);
}

// Puts private copies of the held batches in the place of the mapping's pages.
static enum tfos_status detach(struct tfos__feed_mapping *mapping, struct tfos_error *err)
{
    // Nothing is reserved for the parts that stay empty, and the move needs no reservation either:
    // one that was refused half way would leave a hole.
    uint8_t *copy = mmap(NULL, mapping->size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (copy == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_NO_MEMORY, "feed: no memory for %llu bytes of batches",
                                (unsigned long long)mapping->size);
    tfos__feed_consumer_copy_held(&mapping->channel->consumer, copy + TFOS__FEED_PAGE_SIZE);
    if (mremap(copy, mapping->size, mapping->size, MREMAP_MAYMOVE | MREMAP_FIXED, mapping->base) ==
        MAP_FAILED) {
        enum tfos_status status = tfos__fail_errno(
            err, TFOS_NO_MEMORY, "feed: cannot move %llu bytes of batches out of a lane",
            (unsigned long long)mapping->size);
        munmap(copy, mapping->size);
        // Should the kernel have taken the ring's pages away before it failed, they come back.
        (void)mremap(mapping->channel->page, 0, mapping->size, MREMAP_MAYMOVE | MREMAP_FIXED,
                     mapping->base);
        return status;
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_channel_detach_batches(struct tfos__feed_channel *channel,
                                                   struct tfos_error *err)
{
    struct tfos__feed_mapping *old = channel->mapping, *next = NULL;

    TFOS__TRY(map_again(channel, &next, err));
    enum tfos_status status = detach(old, err);
    if (status != TFOS_OK) {
        tfos__feed_mapping_release(next);
        return status;
    }
    channel->mapping = next;
    tfos__feed_consumer_rebase(&channel->consumer, next->base + TFOS__FEED_PAGE_SIZE);
    tfos__feed_mapping_release(old);
    return TFOS_OK;
}

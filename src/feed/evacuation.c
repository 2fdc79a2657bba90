// SPDX-License-Identifier: Apache-2.0
// A batch is lent in place and may be held for ever, but its writer needs the space. So a reader
// reads each lane through a mapping of its own, its site, and can evacuate it: the lane gets
// another site, a second mapping of the same file; the batches held are copied to fresh private
// memory; and one mremap() puts that memory at the old site's addresses. Then nothing refers to the
// ring, and its tail moves on. The old site goes when the last of its batches is released.
//
// The invariant: the bytes at an address that was given out never change while the batch is held.
// Before the exchange they are the ring's, whose tail has not passed them; after it they are the
// copy's. Between, the kernel holds off every access: it takes the old pages away and puts the new
// ones there under one lock, for which a page fault waits. Nothing else is ever read at a site that
// was left: what is not read yet, be it in the same page, is read through the lane's new site. The
// lane's page and its ring of results have a mapping that is never exchanged.
//
// A device that had pinned the pages would go on reading the ring: whoever registers batches with
// one must copy them.
#include "feed/evacuation.h"

#include <sys/mman.h>

#include "base/fail.h"
#include "base/memory.h"

enum tfos_status tfos__site_create(struct tfos__lane *lane, void *base, struct tfos__site **out,
                                   struct tfos_error *err)
{
    uint64_t size = tfos__lane_whole_size(lane);
    struct tfos__site *site = tfos__alloc(1, sizeof *site);

    if (!site) {
        munmap(base, size);
        return tfos__no_memory(err, "feed", "a mapping of a lane");
    }
    site->references = 1;
    site->lane = lane;
    site->base = base;
    site->size = size;
    *out = site;
    return TFOS_OK;
}

void tfos__site_release(struct tfos__site *site)
{
    if (!site || atomic_fetch_sub(&site->references, 1) != 1)
        return;
    munmap(site->base, site->size);
    tfos__free(site);
}

static void use_lent(void *holder, uint64_t sequence, uint64_t rows)
{
    struct tfos__lane *lane = ((struct tfos__site *)holder)->lane;

    if (!tfos__lane_is_inherited(lane))
        tfos__outlet_use(&lane->outlet, sequence, rows);
}

static void release_lent(void *holder, uint64_t sequence)
{
    struct tfos__site *site = holder;
    struct tfos__lane *lane = site->lane;

    if (tfos__lane_is_inherited(lane))
        return;
    tfos__outlet_release(&lane->outlet, sequence);
    tfos__site_release(site);
    tfos__lane_release(lane);
}

struct tfos__batch_owner tfos__site_lend(struct tfos__site *site, uint64_t sequence)
{
    atomic_fetch_add_explicit(&site->references, 1, memory_order_relaxed);
    tfos__lane_share(site->lane);
    return (struct tfos__batch_owner){use_lent, release_lent, site, sequence};
}

// A second mapping of the lane's file, made of the first: its descriptor is not kept.
static enum tfos_status map_again(struct tfos__lane *lane, struct tfos__site **out,
                                  struct tfos_error *err)
{
    uint64_t size = tfos__lane_whole_size(lane);
    void *base = mremap(lane->page, 0, size, MREMAP_MAYMOVE);

    if (base == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_IO, "feed: cannot map %llu bytes of a lane a second time",
                                (unsigned long long)size);
    return tfos__site_create(lane, base, out, err);
}

// Puts private copies of the held batches in the place of the site's pages.
static enum tfos_status detach(struct tfos__site *site, struct tfos_error *err)
{
    // Nothing is reserved for the parts that stay empty, and the move needs no reservation either:
    // one that was refused half way would leave a hole.
    uint8_t *copy = mmap(NULL, site->size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (copy == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_NO_MEMORY, "feed: no memory for %llu bytes of batches",
                                (unsigned long long)site->size);
    tfos__outlet_copy_held(&site->lane->outlet, copy + TFOS__PAGE_SIZE);
    if (mremap(copy, site->size, site->size, MREMAP_MAYMOVE | MREMAP_FIXED, site->base) ==
        MAP_FAILED) {
        enum tfos_status status = tfos__fail_errno(
            err, TFOS_NO_MEMORY, "feed: cannot move %llu bytes of batches out of a lane",
            (unsigned long long)site->size);
        munmap(copy, site->size);
        // Should the kernel have taken the ring's pages away before it failed, they come back.
        (void)mremap(site->lane->page, 0, site->size, MREMAP_MAYMOVE | MREMAP_FIXED, site->base);
        return status;
    }
    return TFOS_OK;
}

enum tfos_status tfos__lane_evacuate(struct tfos__lane *lane, struct tfos_error *err)
{
    struct tfos__site *old = lane->site, *next = NULL;

    TFOS__TRY(map_again(lane, &next, err));
    enum tfos_status status = detach(old, err);
    if (status != TFOS_OK) {
        tfos__site_release(next);
        return status;
    }
    lane->site = next;
    tfos__outlet_let_go(&lane->outlet, next->base + TFOS__PAGE_SIZE);
    tfos__site_release(old);
    return TFOS_OK;
}

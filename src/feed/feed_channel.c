// SPDX-License-Identifier: Apache-2.0
// memfds are sealed against shrinking: a peer that truncated a mapped file would kill this process
// by SIGBUS. Maps are made only of files that carry the seal and have exactly the size that their
// first page names.
#include "feed/feed_channel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tfos/fork.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch_decoder.h"

#define READ_TRIES 100

// Where a reader's batches lie. It lives as long as the channel reads through it, or any batch of
// it is held.
struct tfos__feed_mapping {
    atomic_int references;
    struct tfos__feed_channel *channel; // borrowed; each batch that is held counts it
    uint8_t *base;                      // owned; laid out as the channel's file
    uint64_t size;
};

static const char control_magic[8] = {'T', 'F', 'O', 'S', 'C', 'T', 'L', '1'};
static const char channel_magic[8] = {'T', 'F', 'O', 'S', 'C', 'H', 'N', '1'};

static enum tfos_status create_memory(const char *name, uint64_t size, const void *head,
                                      size_t head_size, int *out, struct tfos_error *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "feed: cannot make shared memory");
    if (ftruncate(fd, (off_t)size) != 0 || pwrite(fd, head, head_size, 0) != (ssize_t)head_size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        enum tfos_status status =
            tfos__fail_errno(err, TFOS_IO, "feed: cannot make shared memory of %llu bytes",
                             (unsigned long long)size);
        close(fd);
        return status;
    }
    *out = fd;
    return TFOS_OK;
}

// The size of a sealed memfd.
static enum tfos_status check_memory(int fd, uint64_t *size, struct tfos_error *err)
{
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &info) != 0 ||
        info.st_size < TFOS__FEED_PAGE_SIZE)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: descriptor %d is no sealed shared memory of the feed", fd);
    *size = (uint64_t)info.st_size;
    return TFOS_OK;
}

static enum tfos_status map_memory(int fd, uint64_t size, void **out, struct tfos_error *err)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_IO, "feed: cannot map %llu bytes of shared memory",
                                (unsigned long long)size);
    // Has an effect only where the administrator allows huge pages in shared memory on advice.
    (void)madvise(base, size, MADV_HUGEPAGE);
    *out = base;
    return TFOS_OK;
}

enum tfos_status tfos__feed_control_create(int *fd, struct tfos_error *err)
{
    return create_memory("tfos-control", TFOS__FEED_PAGE_SIZE, control_magic, sizeof(control_magic),
                         fd, err);
}

enum tfos_status tfos__feed_control_map(int fd, struct tfos__feed_control **out,
                                        struct tfos_error *err)
{
    uint64_t size = 0;
    void *page = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, TFOS__FEED_PAGE_SIZE, &page, err));
    struct tfos__feed_control *control = tfos__alloc(1, sizeof(*control));
    enum tfos_status status = TFOS_OK;
    if (!control)
        status = tfos__no_memory(err, "feed", "a control page");
    else if (memcmp(page, control_magic, sizeof(control_magic)) != 0)
        status = tfos__fail(err, TFOS_CORRUPT, "feed: descriptor %d is no control page", fd);
    if (status != TFOS_OK) {
        munmap(page, TFOS__FEED_PAGE_SIZE);
        tfos__free(control);
        return status;
    }
    control->references = 1;
    control->page = page;
    *out = control;
    return TFOS_OK;
}

void tfos__feed_control_release(struct tfos__feed_control *control)
{
    if (!control || atomic_fetch_sub(&control->references, 1) != 1)
        return;
    munmap(control->page, TFOS__FEED_PAGE_SIZE);
    tfos__free(control);
}

struct tfos__feed_futex tfos__feed_control_futex(const struct tfos__feed_control *control)
{
    return (struct tfos__feed_futex){&control->page->word, &control->page->waiters};
}

enum tfos_status tfos__feed_channel_create(uint64_t size, uint64_t result_size, int *fd,
                                           struct tfos_error *err)
{
    struct tfos__feed_channel_page page = {.size = size, .result_size = result_size};

    memcpy(page.magic, channel_magic, sizeof(page.magic));
    return create_memory(TFOS__FEED_CHANNEL_NAME, TFOS__FEED_PAGE_SIZE + size + result_size, &page,
                         sizeof(page), fd, err);
}

enum tfos_status tfos__feed_channel_page_map(int fd, struct tfos__feed_channel_page **out,
                                             struct tfos_error *err)
{
    void *page = NULL;

    TFOS__TRY(map_memory(fd, TFOS__FEED_PAGE_SIZE, &page, err));
    *out = page;
    return TFOS_OK;
}

void tfos__feed_channel_page_unmap(struct tfos__feed_channel_page *page)
{
    munmap(page, TFOS__FEED_PAGE_SIZE);
}

struct tfos__feed_rows tfos__feed_channel_page_rows(const struct tfos__feed_channel_page *page,
                                                    uint64_t first_row)
{
    uint64_t count = first_row, left_out = 0;

    // A living writer may publish between the looks; a fenced one cannot, and the first try
    // succeeds.
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t head = atomic_load(&page->head) & ~TFOS__FEED_HEAD_FENCED;
        bool is_found = false;
        for (int slot = 0; slot < 2 && !is_found; slot++) {
            const struct tfos__feed_published *published = &page->published[slot];
            is_found = atomic_load_explicit(&published->head, memory_order_acquire) == head;
            if (is_found) {
                count = atomic_load_explicit(&published->rows, memory_order_acquire);
                left_out = atomic_load_explicit(&published->left_out, memory_order_acquire);
            }
        }
        if (is_found && (atomic_load(&page->head) & ~TFOS__FEED_HEAD_FENCED) == head)
            break;
    }
    return (struct tfos__feed_rows){.count = count & ~TFOS__FEED_ROWS_COMPLETE,
                                    .left_out = left_out,
                                    .is_complete = count & TFOS__FEED_ROWS_COMPLETE};
}

struct tfos__feed_futex tfos__feed_channel_page_futex(struct tfos__feed_channel_page *page)
{
    return (struct tfos__feed_futex){&page->writer_word, &page->writer_waiters};
}

static bool is_ring_size(uint64_t size)
{
    return size % TFOS__FEED_PAGE_SIZE == 0 && size <= (uint64_t)TFOS__FEED_CHANNEL_SIZE_LIMIT;
}

static uint64_t total_size(const struct tfos__feed_channel *channel)
{
    return TFOS__FEED_PAGE_SIZE + channel->size + channel->result_size;
}

// Takes over the pages at `base`, also on failure.
static enum tfos_status make_mapping(struct tfos__feed_channel *channel, void *base,
                                     struct tfos__feed_mapping **out, struct tfos_error *err)
{
    struct tfos__feed_mapping *mapping = tfos__alloc(1, sizeof(*mapping));

    if (!mapping) {
        munmap(base, total_size(channel));
        return tfos__no_memory(err, "feed", "a mapping of a channel");
    }
    *mapping = (struct tfos__feed_mapping){1, channel, base, total_size(channel)};
    *out = mapping;
    return TFOS_OK;
}

static void release_mapping(struct tfos__feed_mapping *mapping)
{
    if (!mapping || atomic_fetch_sub(&mapping->references, 1) != 1)
        return;
    munmap(mapping->base, mapping->size);
    tfos__free(mapping);
}

// Points both ends at the page's words, by the side that this process is on.
static enum tfos_status connect_ends(struct tfos__feed_channel *channel,
                                     enum tfos__feed_channel_side side, struct tfos_error *err)
{
    struct tfos__feed_channel_page *page = channel->page;
    uint8_t *data = (uint8_t *)page + TFOS__FEED_PAGE_SIZE;
    uint8_t *results = data + channel->size;
    const uint8_t *batches =
        channel->mapping ? channel->mapping->base + TFOS__FEED_PAGE_SIZE : data;
    struct tfos__feed_futex reader_futex = tfos__feed_control_futex(channel->control);
    struct tfos__feed_futex writer_futex = tfos__feed_channel_page_futex(page);

    if (side == TFOS__FEED_CHANNEL_WRITER) {
        channel->futex = writer_futex;
        channel->producer = (struct tfos__feed_producer){.data = data,
                                                         .size = channel->size,
                                                         .head = &page->head,
                                                         .tail = &page->tail,
                                                         .wanted = &page->wanted,
                                                         .waited_us = &page->waited_us,
                                                         .published = page->published,
                                                         .consumer_futex = reader_futex};
        channel->consumer = (struct tfos__feed_consumer){.data = results,
                                                         .size = channel->result_size,
                                                         .head = &page->result_head,
                                                         .tail = &page->result_tail,
                                                         .producer_futex = reader_futex};
    } else {
        channel->futex = reader_futex;
        channel->producer = (struct tfos__feed_producer){.data = results,
                                                         .size = channel->result_size,
                                                         .head = &page->result_head,
                                                         .tail = &page->result_tail,
                                                         .consumer_futex = writer_futex};
        channel->consumer = (struct tfos__feed_consumer){.data = batches,
                                                         .size = channel->size,
                                                         .head = &page->head,
                                                         .tail = &page->tail,
                                                         .wanted = &page->wanted,
                                                         .rows_released = &page->rows_released,
                                                         .producer_futex = writer_futex};
    }
    TFOS__TRY(tfos__feed_consumer_init(&channel->consumer, err));
    tfos__feed_producer_init(&channel->producer);
    return TFOS_OK;
}

enum tfos_status tfos__feed_channel_map(int fd, enum tfos__feed_channel_side side,
                                        struct tfos__feed_control *control,
                                        struct tfos__feed_channel **out, struct tfos_error *err)
{
    uint64_t size = 0;
    void *base = NULL, *batches = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, size, &base, err));
    struct tfos__feed_channel *channel = tfos__alloc(1, sizeof(*channel));
    enum tfos_status status = TFOS_OK;
    if (!channel) {
        status = tfos__no_memory(err, "feed", "a channel");
        goto unmap;
    }
    channel->references = 1;
    channel->generation = tfos_fork_generation();
    channel->page = base;
    channel->control = control;
    // These two never change; a peer that changes them all the same meets our copies.
    channel->size = *(volatile uint64_t *)&channel->page->size;
    channel->result_size = *(volatile uint64_t *)&channel->page->result_size;
    if (memcmp(channel->page->magic, channel_magic, sizeof(channel_magic)) != 0 ||
        channel->size == 0 || !is_ring_size(channel->size) || !is_ring_size(channel->result_size) ||
        size != TFOS__FEED_PAGE_SIZE + channel->size + channel->result_size)
        status =
            tfos__fail(err, TFOS_CORRUPT,
                       "feed: descriptor %d is no channel: %llu bytes with rings of %llu and %llu",
                       fd, (unsigned long long)size, (unsigned long long)channel->size,
                       (unsigned long long)channel->result_size);
    // Batches are read through a mapping of their own, which may be exchanged.
    else if (side == TFOS__FEED_CHANNEL_READER &&
             (status = map_memory(fd, size, &batches, err)) == TFOS_OK)
        status = make_mapping(channel, batches, &channel->mapping, err);
    if (status == TFOS_OK)
        status = connect_ends(channel, side, err);
    if (status != TFOS_OK)
        goto free_channel;
    atomic_fetch_add(&control->references, 1);
    *out = channel;
    return TFOS_OK;
free_channel:
    release_mapping(channel->mapping);
    tfos__free(channel);
unmap:
    munmap(base, size);
    return status;
}

void tfos__feed_channel_release(struct tfos__feed_channel *channel)
{
    if (!channel || atomic_fetch_sub(&channel->references, 1) != 1)
        return;
    tfos__feed_consumer_clear(&channel->consumer);
    release_mapping(channel->mapping);
    munmap(channel->page, total_size(channel));
    tfos__feed_control_release(channel->control);
    tfos__free(channel);
}

// ---- batches that are held

// A process that was forked from the one that mapped the channel gives nothing back.
static bool is_inherited(const struct tfos__feed_channel *channel)
{
    return channel->generation != tfos_fork_generation();
}

static void use_held(void *holder, uint64_t sequence, uint64_t rows)
{
    struct tfos__feed_channel *channel = ((struct tfos__feed_mapping *)holder)->channel;

    if (!is_inherited(channel))
        tfos__feed_consumer_use(&channel->consumer, sequence, rows);
}

static void release_held(void *holder, uint64_t sequence)
{
    struct tfos__feed_mapping *mapping = holder;
    struct tfos__feed_channel *channel = mapping->channel;

    if (is_inherited(channel))
        return;
    tfos__feed_consumer_release(&channel->consumer, sequence);
    release_mapping(mapping);
    tfos__feed_channel_release(channel);
}

enum tfos_status tfos__feed_channel_hold(struct tfos__feed_channel *channel,
                                         struct tfos__feed_batch_owner *owner,
                                         struct tfos_error *err)
{
    uint64_t sequence = 0;

    TFOS__TRY(tfos__feed_consumer_hold(&channel->consumer, &sequence, err));
    atomic_fetch_add_explicit(&channel->mapping->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&channel->references, 1, memory_order_relaxed);
    *owner = (struct tfos__feed_batch_owner){use_held, release_held, channel->mapping, sequence};
    return TFOS_OK;
}

// Detaching held batches. A batch is read in place and may be held for ever, but its writer needs
// the space. So the channel gets a second mapping of its file; the batches held are copied to fresh
// private memory; and one mremap() puts that memory at the old mapping's addresses. Then nothing
// refers to the ring, and its tail moves on. The old mapping goes when the last of its batches is
// released.
//
// The invariant: the bytes at an address that was given out never change while the batch is held.
// Before the exchange they are the ring's, whose tail has not passed them; after it they are the
// copy's. Between, the kernel holds off every access: it takes the old pages away and puts the new
// ones there under one lock, for which a page fault waits. Nothing else is read through a mapping
// that was left: what is not read yet, be it in the same page, is read through the new one. The
// channel's page and its ring of results have a mapping that is never exchanged.
//
// A device that had pinned the pages would go on reading the ring: whoever registers batches with
// one must copy them.

// A second mapping of the channel's file, made of the first: its descriptor is not kept.
static enum tfos_status map_again(struct tfos__feed_channel *channel,
                                  struct tfos__feed_mapping **out, struct tfos_error *err)
{
    uint64_t size = total_size(channel);
    void *base = mremap(channel->page, 0, size, MREMAP_MAYMOVE);

    if (base == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_IO,
                                "feed: cannot map %llu bytes of a channel a second time",
                                (unsigned long long)size);
    return make_mapping(channel, base, out, err);
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
            err, TFOS_NO_MEMORY, "feed: cannot move %llu bytes of batches out of a channel",
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
        release_mapping(next);
        return status;
    }
    channel->mapping = next;
    tfos__feed_consumer_rebase(&channel->consumer, next->base + TFOS__FEED_PAGE_SIZE);
    release_mapping(old);
    return TFOS_OK;
}

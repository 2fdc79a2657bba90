// SPDX-License-Identifier: Apache-2.0
// memfds are sealed against shrinking: a peer that truncated a mapped file would kill this process
// by SIGBUS. Maps are made only of files that carry the seal and have exactly the size that their
// first page names.
#include "feed/channel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tfos/fork.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch.h"
#include "feed/evacuation.h"

static const char futex_magic[8] = {'T', 'F', 'O', 'S', 'B', 'E', 'L', '1'};
static const char channel_magic[8] = {'T', 'F', 'O', 'S', 'L', 'A', 'N', '1'};

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
    return create_memory("tfos-bell", TFOS__FEED_PAGE_SIZE, futex_magic, sizeof futex_magic, fd,
                         err);
}

enum tfos_status tfos__feed_control_map(int fd, struct tfos__feed_control **out,
                                        struct tfos_error *err)
{
    uint64_t size = 0;
    void *page = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, TFOS__FEED_PAGE_SIZE, &page, err));
    struct tfos__feed_control *control = tfos__alloc(1, sizeof *control);
    enum tfos_status status = TFOS_OK;
    if (!control)
        status = tfos__no_memory(err, "feed", "a bell");
    else if (memcmp(page, futex_magic, sizeof futex_magic) != 0)
        status = tfos__fail(err, TFOS_CORRUPT, "feed: descriptor %d is no bell", fd);
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

    memcpy(page.magic, channel_magic, sizeof page.magic);
    return create_memory("tfos-lane", TFOS__FEED_PAGE_SIZE + size + result_size, &page, sizeof page,
                         fd, err);
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

struct tfos__feed_futex tfos__feed_channel_page_futex(struct tfos__feed_channel_page *page)
{
    return (struct tfos__feed_futex){&page->writer_word, &page->writer_waiters};
}

static bool is_ring_size(uint64_t size)
{
    return size % TFOS__FEED_PAGE_SIZE == 0 && size <= (uint64_t)TFOS__FEED_CHANNEL_SIZE_LIMIT;
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

uint64_t tfos__feed_channel_total_size(const struct tfos__feed_channel *channel)
{
    return TFOS__FEED_PAGE_SIZE + channel->size + channel->result_size;
}

// Batches are read through a mapping of their own, which may be exchanged.
static enum tfos_status add_mapping(struct tfos__feed_channel *channel, int fd,
                                    struct tfos_error *err)
{
    void *base = NULL;

    TFOS__TRY(map_memory(fd, tfos__feed_channel_total_size(channel), &base, err));
    return tfos__feed_mapping_create(channel, base, &channel->mapping, err);
}

enum tfos_status tfos__feed_channel_map(int fd, enum tfos__feed_channel_side side,
                                        struct tfos__feed_control *control,
                                        struct tfos__feed_channel **out, struct tfos_error *err)
{
    uint64_t size = 0;
    void *base = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, size, &base, err));
    struct tfos__feed_channel *channel = tfos__alloc(1, sizeof *channel);
    enum tfos_status status = TFOS_OK;
    if (!channel) {
        status = tfos__no_memory(err, "feed", "a lane");
        goto unmap;
    }
    channel->references = 1;
    channel->generation = tfos_fork_generation();
    channel->page = base;
    channel->control = control;
    // These two never change; a peer that changes them all the same meets our copies.
    channel->size = *(volatile uint64_t *)&channel->page->size;
    channel->result_size = *(volatile uint64_t *)&channel->page->result_size;
    if (memcmp(channel->page->magic, channel_magic, sizeof channel_magic) != 0 ||
        channel->size == 0 || !is_ring_size(channel->size) || !is_ring_size(channel->result_size) ||
        size != TFOS__FEED_PAGE_SIZE + channel->size + channel->result_size)
        status =
            tfos__fail(err, TFOS_CORRUPT,
                       "feed: descriptor %d is no lane: %llu bytes with rings of %llu and %llu", fd,
                       (unsigned long long)size, (unsigned long long)channel->size,
                       (unsigned long long)channel->result_size);
    else if (side == TFOS__FEED_CHANNEL_READER)
        status = add_mapping(channel, fd, err);
    if (status == TFOS_OK)
        status = connect_ends(channel, side, err);
    if (status != TFOS_OK)
        goto free_channel;
    atomic_fetch_add(&control->references, 1);
    *out = channel;
    return TFOS_OK;
free_channel:
    tfos__feed_mapping_release(channel->mapping);
    tfos__free(channel);
unmap:
    munmap(base, size);
    return status;
}

struct tfos__feed_channel *tfos__feed_channel_share(struct tfos__feed_channel *channel)
{
    atomic_fetch_add_explicit(&channel->references, 1, memory_order_relaxed);
    return channel;
}

void tfos__feed_channel_release(struct tfos__feed_channel *channel)
{
    if (!channel || atomic_fetch_sub(&channel->references, 1) != 1)
        return;
    tfos__feed_consumer_clear(&channel->consumer);
    tfos__feed_mapping_release(channel->mapping);
    munmap(channel->page, tfos__feed_channel_total_size(channel));
    tfos__feed_control_release(channel->control);
    tfos__free(channel);
}

bool tfos__feed_channel_is_inherited(const struct tfos__feed_channel *channel)
{
    return channel->generation != tfos_fork_generation();
}

static void use_held(void *holder, uint64_t sequence, uint64_t rows)
{
    struct tfos__feed_channel *channel = holder;

    if (!tfos__feed_channel_is_inherited(channel))
        tfos__feed_consumer_use(&channel->consumer, sequence, rows);
}

static void release_held(void *holder, uint64_t sequence)
{
    struct tfos__feed_channel *channel = holder;

    if (tfos__feed_channel_is_inherited(channel))
        return;
    tfos__feed_consumer_release(&channel->consumer, sequence);
    tfos__feed_channel_release(channel);
}

enum tfos_status tfos__feed_channel_hold(struct tfos__feed_channel *channel,
                                         struct tfos__feed_batch_owner *owner,
                                         struct tfos_error *err)
{
    uint64_t sequence = 0;

    TFOS__TRY(tfos__feed_consumer_hold(&channel->consumer, &sequence, err));
    if (channel->mapping)
        *owner = tfos__feed_mapping_borrow(channel->mapping, sequence);
    else
        *owner = (struct tfos__feed_batch_owner){use_held, release_held,
                                                 tfos__feed_channel_share(channel), sequence};
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// memfds are sealed against shrinking: a peer that truncated a mapped file would kill this process
// by SIGBUS. Maps are made only of files that carry the seal and have exactly the size that their
// first page names.
#include "feed/lane.h"

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

static const char bell_magic[8] = {'T', 'F', 'O', 'S', 'B', 'E', 'L', '1'};
static const char lane_magic[8] = {'T', 'F', 'O', 'S', 'L', 'A', 'N', '1'};

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
        info.st_size < TFOS__PAGE_SIZE)
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

enum tfos_status tfos__board_create(int *fd, struct tfos_error *err)
{
    return create_memory("tfos-bell", TFOS__PAGE_SIZE, bell_magic, sizeof bell_magic, fd, err);
}

enum tfos_status tfos__board_map(int fd, struct tfos__board **out, struct tfos_error *err)
{
    uint64_t size = 0;
    void *page = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, TFOS__PAGE_SIZE, &page, err));
    struct tfos__board *board = tfos__alloc(1, sizeof *board);
    enum tfos_status status = TFOS_OK;
    if (!board)
        status = tfos__no_memory(err, "feed", "a bell");
    else if (memcmp(page, bell_magic, sizeof bell_magic) != 0)
        status = tfos__fail(err, TFOS_CORRUPT, "feed: descriptor %d is no bell", fd);
    if (status != TFOS_OK) {
        munmap(page, TFOS__PAGE_SIZE);
        tfos__free(board);
        return status;
    }
    board->references = 1;
    board->page = page;
    *out = board;
    return TFOS_OK;
}

void tfos__board_release(struct tfos__board *board)
{
    if (!board || atomic_fetch_sub(&board->references, 1) != 1)
        return;
    munmap(board->page, TFOS__PAGE_SIZE);
    tfos__free(board);
}

struct tfos__bell tfos__board_bell(const struct tfos__board *board)
{
    return (struct tfos__bell){&board->page->word, &board->page->sleepers};
}

enum tfos_status tfos__lane_create(uint64_t size, uint64_t result_size, int *fd,
                                   struct tfos_error *err)
{
    struct tfos__lane_page page = {.size = size, .result_size = result_size};

    memcpy(page.magic, lane_magic, sizeof page.magic);
    return create_memory("tfos-lane", TFOS__PAGE_SIZE + size + result_size, &page, sizeof page, fd,
                         err);
}

enum tfos_status tfos__lane_page_map(int fd, struct tfos__lane_page **out, struct tfos_error *err)
{
    void *page = NULL;

    TFOS__TRY(map_memory(fd, TFOS__PAGE_SIZE, &page, err));
    *out = page;
    return TFOS_OK;
}

void tfos__lane_page_unmap(struct tfos__lane_page *page)
{
    munmap(page, TFOS__PAGE_SIZE);
}

struct tfos__bell tfos__lane_page_bell(struct tfos__lane_page *page)
{
    return (struct tfos__bell){&page->writer_word, &page->writer_sleepers};
}

static bool is_ring_size(uint64_t size)
{
    return size % TFOS__PAGE_SIZE == 0 && size <= (uint64_t)TFOS__LANE_SIZE_LIMIT;
}

// Points both ends at the page's words, by the side that this process is on.
static enum tfos_status connect_ends(struct tfos__lane *lane, enum tfos__lane_side side,
                                     struct tfos_error *err)
{
    struct tfos__lane_page *page = lane->page;
    uint8_t *data = (uint8_t *)page + TFOS__PAGE_SIZE;
    uint8_t *results = data + lane->size;
    const uint8_t *batches = lane->site ? lane->site->base + TFOS__PAGE_SIZE : data;
    struct tfos__bell reader_bell = tfos__board_bell(lane->board);
    struct tfos__bell writer_bell = tfos__lane_page_bell(page);

    if (side == TFOS__LANE_WRITER) {
        lane->bell = writer_bell;
        lane->inlet = (struct tfos__inlet){.data = data,
                                           .size = lane->size,
                                           .head = &page->head,
                                           .tail = &page->tail,
                                           .wanted = &page->wanted,
                                           .waited_us = &page->waited_us,
                                           .published = page->published,
                                           .consumer = reader_bell};
        lane->outlet = (struct tfos__outlet){.data = results,
                                             .size = lane->result_size,
                                             .head = &page->result_head,
                                             .tail = &page->result_tail,
                                             .producer = reader_bell};
    } else {
        lane->bell = reader_bell;
        lane->inlet = (struct tfos__inlet){.data = results,
                                           .size = lane->result_size,
                                           .head = &page->result_head,
                                           .tail = &page->result_tail,
                                           .consumer = writer_bell};
        lane->outlet = (struct tfos__outlet){.data = batches,
                                             .size = lane->size,
                                             .head = &page->head,
                                             .tail = &page->tail,
                                             .wanted = &page->wanted,
                                             .rows_released = &page->rows_released,
                                             .producer = writer_bell};
    }
    TFOS__TRY(tfos__outlet_init(&lane->outlet, err));
    tfos__inlet_init(&lane->inlet);
    return TFOS_OK;
}

uint64_t tfos__lane_whole_size(const struct tfos__lane *lane)
{
    return TFOS__PAGE_SIZE + lane->size + lane->result_size;
}

// Batches are read through a mapping of their own, which may be exchanged.
static enum tfos_status add_site(struct tfos__lane *lane, int fd, struct tfos_error *err)
{
    void *base = NULL;

    TFOS__TRY(map_memory(fd, tfos__lane_whole_size(lane), &base, err));
    return tfos__site_create(lane, base, &lane->site, err);
}

enum tfos_status tfos__lane_map(int fd, enum tfos__lane_side side, struct tfos__board *board,
                                struct tfos__lane **out, struct tfos_error *err)
{
    uint64_t size = 0;
    void *base = NULL;

    TFOS__TRY(check_memory(fd, &size, err));
    TFOS__TRY(map_memory(fd, size, &base, err));
    struct tfos__lane *lane = tfos__alloc(1, sizeof *lane);
    enum tfos_status status = TFOS_OK;
    if (!lane) {
        status = tfos__no_memory(err, "feed", "a lane");
        goto unmap;
    }
    lane->references = 1;
    lane->generation = tfos_fork_generation();
    lane->page = base;
    lane->board = board;
    // These two never change; a peer that changes them all the same meets our copies.
    lane->size = *(volatile uint64_t *)&lane->page->size;
    lane->result_size = *(volatile uint64_t *)&lane->page->result_size;
    if (memcmp(lane->page->magic, lane_magic, sizeof lane_magic) != 0 || lane->size == 0 ||
        !is_ring_size(lane->size) || !is_ring_size(lane->result_size) ||
        size != TFOS__PAGE_SIZE + lane->size + lane->result_size)
        status =
            tfos__fail(err, TFOS_CORRUPT,
                       "feed: descriptor %d is no lane: %llu bytes with rings of %llu and %llu", fd,
                       (unsigned long long)size, (unsigned long long)lane->size,
                       (unsigned long long)lane->result_size);
    else if (side == TFOS__LANE_READER)
        status = add_site(lane, fd, err);
    if (status == TFOS_OK)
        status = connect_ends(lane, side, err);
    if (status != TFOS_OK)
        goto free_lane;
    atomic_fetch_add(&board->references, 1);
    *out = lane;
    return TFOS_OK;
free_lane:
    tfos__site_release(lane->site);
    tfos__free(lane);
unmap:
    munmap(base, size);
    return status;
}

struct tfos__lane *tfos__lane_share(struct tfos__lane *lane)
{
    atomic_fetch_add_explicit(&lane->references, 1, memory_order_relaxed);
    return lane;
}

void tfos__lane_release(struct tfos__lane *lane)
{
    if (!lane || atomic_fetch_sub(&lane->references, 1) != 1)
        return;
    tfos__outlet_clear(&lane->outlet);
    tfos__site_release(lane->site);
    munmap(lane->page, tfos__lane_whole_size(lane));
    tfos__board_release(lane->board);
    tfos__free(lane);
}

bool tfos__lane_is_inherited(const struct tfos__lane *lane)
{
    return lane->generation != tfos_fork_generation();
}

static void use_held(void *holder, uint64_t sequence, uint64_t rows)
{
    struct tfos__lane *lane = holder;

    if (!tfos__lane_is_inherited(lane))
        tfos__outlet_use(&lane->outlet, sequence, rows);
}

static void release_held(void *holder, uint64_t sequence)
{
    struct tfos__lane *lane = holder;

    if (tfos__lane_is_inherited(lane))
        return;
    tfos__outlet_release(&lane->outlet, sequence);
    tfos__lane_release(lane);
}

enum tfos_status tfos__lane_hold(struct tfos__lane *lane, struct tfos__batch_owner *owner,
                                 struct tfos_error *err)
{
    uint64_t sequence = 0;

    TFOS__TRY(tfos__outlet_hold(&lane->outlet, &sequence, err));
    if (lane->site)
        *owner = tfos__site_lend(lane->site, sequence);
    else
        *owner =
            (struct tfos__batch_owner){use_held, release_held, tfos__lane_share(lane), sequence};
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Looks into the channels of another process by way of /proc. Nothing is written to them, and what
// is read may be hostile.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tfos/feed.h>
#include <unistd.h>

#include "base/fail.h"
#include "feed/feed_channel.h"

#define LINK "/memfd:" TFOS__FEED_CHANNEL_NAME

static int64_t used_of(uint64_t head, uint64_t tail, uint64_t size)
{
    uint64_t used = (head & ~TFOS__FEED_HEAD_FENCED) - (tail & ~TFOS__FEED_TAIL_ABANDONED);
    return (int64_t)(used <= size ? used : size);
}

static struct tfos_feed_channel_state read_state(struct tfos__feed_channel_page *page, int fd)
{
    uint64_t head = atomic_load(&page->head), tail = atomic_load(&page->tail);
    struct tfos__feed_rows rows = tfos__feed_channel_page_rows(page, 0);
    return (struct tfos_feed_channel_state){
        .fd = fd,
        .size = (int64_t)page->size,
        .used = used_of(head, tail, page->size),
        .result_size = (int64_t)page->result_size,
        .result_used = used_of(atomic_load(&page->result_head), atomic_load(&page->result_tail),
                               page->result_size),
        .rows_published = (int64_t)rows.count,
        .rows_released = (int64_t)atomic_load(&page->rows_released),
        .space_wanted = (int64_t)atomic_load(&page->wanted),
        .writer_wait_us = (int64_t)atomic_load(&page->waited_us),
        .is_partition_published = rows.is_complete,
        .is_fenced = head & TFOS__FEED_HEAD_FENCED,
        .is_abandoned = tail & TFOS__FEED_TAIL_ABANDONED,
        .is_retired = atomic_load(&page->is_retired),
    };
}

/// Whether entry `name` of the folder is a channel: then visits it. One that was closed meanwhile
/// is none.
static bool visit_entry(int folder, const char *name,
                        void (*visit)(void *context, const struct tfos_feed_channel_state *state),
                        void *context)
{
    char link[64] = "";
    if (readlinkat(folder, name, link, sizeof(link) - 1) < 0 ||
        strncmp(link, LINK, strlen(LINK)) != 0)
        return false;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    struct stat info = {0};
    void *page = fd >= 0 && fstat(fd, &info) == 0 && info.st_size >= TFOS__FEED_PAGE_SIZE
                     ? mmap(NULL, TFOS__FEED_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED)
        return false;
    struct tfos_feed_channel_state state = read_state(page, (int)strtol(name, NULL, 10));
    munmap(page, TFOS__FEED_PAGE_SIZE);
    visit(context, &state);
    return true;
}

enum tfos_status tfos_feed_inspect(int64_t pid,
                                   void (*visit)(void *context,
                                                 const struct tfos_feed_channel_state *state),
                                   void *context, struct tfos_error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%lld/fd", (long long)pid);
    DIR *folder = opendir(path);
    if (!folder && errno == ENOENT)
        return tfos__fail(err, TFOS_NOT_FOUND, "feed: there is no process %lld", (long long)pid);
    if (!folder)
        return tfos__fail_errno(err, errno == EACCES ? TFOS_DENIED : TFOS_IO,
                                "feed: cannot look into process %lld", (long long)pid);
    bool is_found = false;
    const struct dirent *entry;
    while ((entry = readdir(folder)))
        is_found |= visit_entry(dirfd(folder), entry->d_name, visit, context);
    closedir(folder);
    return is_found
               ? TFOS_OK
               : tfos__fail(err, TFOS_NOT_FOUND,
                            "feed: process %lld has no channel; a node that is fed has one for "
                            "each writer (tfos status --json has the pids of nodes)",
                            (long long)pid);
}

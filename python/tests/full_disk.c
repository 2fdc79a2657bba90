// SPDX-License-Identifier: Apache-2.0
/// Preloaded into a process: below FULL_DISK_FOLDER it has a disk on which, after FULL_DISK_ROOM
/// bytes, there is no space left, whatever is removed there.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long written;

static bool is_on_disk(int fd)
{
    const char *folder = getenv("FULL_DISK_FOLDER");
    char link[64], target[4096];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, target, sizeof target);
    return folder && size > (ssize_t)strlen(folder) && memcmp(target, folder, strlen(folder)) == 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    int saved = errno;
    bool is_limited = size > 0 && is_on_disk(fd);
    errno = saved;
    if (!is_limited)
        return syscall(SYS_write, fd, data, size);
    const char *room = getenv("FULL_DISK_ROOM");
    long left = (room ? atol(room) : 0) - written;
    if (left <= 0) {
        errno = ENOSPC;
        return -1;
    }
    ssize_t put = syscall(SYS_write, fd, data, size < (size_t)left ? size : (size_t)left);
    if (put > 0)
        written += put;
    return put;
}

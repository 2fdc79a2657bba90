// SPDX-License-Identifier: Apache-2.0
#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_SIZE (64u << 10)

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] != '\0' ? folder : "/tmp";
}

int open_temporary_file(void)
{
    const char *folder = temporary_folder();
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0)
        return fd;
    // Not every file system has files without a name.
    int size = snprintf(path, sizeof path, "%s/tfos-XXXXXX", folder);
    if (size > 0 && (size_t)size < sizeof path)
        fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    else
        fprintf(stderr, "tfos: cannot write a temporary file in %s: %s (TMPDIR names another)\n",
                folder, strerror(errno));
    return fd;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, data, size);
        if (put < 0 && errno != EINTR)
            return false;
        data += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

// Copies the standard input. False with errno.
static bool copy_input(int fd)
{
    char block[BLOCK_SIZE];
    for (;;) {
        ssize_t got = read(STDIN_FILENO, block, sizeof block);
        if (got == 0)
            return lseek(fd, 0, SEEK_SET) == 0;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0 && !write_all(fd, block, (size_t)got))
            return false;
    }
}

int open_seekable_input(void)
{
    if (lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    int fd = open_temporary_file();
    if (fd >= 0 && !copy_input(fd)) {
        fprintf(stderr, "tfos: cannot keep the standard input in %s: %s\n", temporary_folder(),
                strerror(errno));
        close(fd);
        fd = -1;
    }
    return fd;
}

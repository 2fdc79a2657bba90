// SPDX-License-Identifier: Apache-2.0
#include "io/file_replacement.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

#define MOST_LINKS 40 // as the kernel has it

static const char access_list[] = "system.posix_acl_access";

static bool is_in(const char *path, const char *folder)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

enum tfos_status tfos__io_replacement_follow_links(const char *path, char **out,
                                                   bool *is_descriptor, struct tfos_error *err)
{
    char target[PATH_MAX];
    char *place = tfos__strdup(path);
    *is_descriptor = false;
    for (int i = 0; place && i < MOST_LINKS; i++) {
        ssize_t size = readlink(place, target, sizeof target);
        *is_descriptor = size >= 0 && (is_in(place, "/proc/") || is_in(place, "/dev/fd/"));
        if (size < 0 || *is_descriptor) {
            *out = place;
            return TFOS_OK;
        }
        const char *slash = strrchr(place, '/');
        int folder_size = slash && target[0] != '/' ? (int)(slash - place + 1) : 0;
        char *next = tfos__format("%.*s%.*s", folder_size, place, (int)size, target);
        tfos__free(place);
        place = next;
    }
    if (!place)
        return tfos__no_memory(err, "stream", path);
    tfos__free(place);
    errno = ELOOP;
    return tfos__fail_errno(err, TFOS_IO, "stream: cannot write to %s", path);
}

static enum tfos_status copy_group(int fd, const char *path, const struct stat *state,
                                   const struct stat *own, struct tfos_error *err)
{
    if (own->st_gid != state->st_gid && fchown(fd, (uid_t)-1, state->st_gid) != 0)
        return tfos__fail_errno(err, TFOS_DENIED,
                                "stream: %s cannot be replaced by a file of its group, %u: write "
                                "another file, or remove this one first",
                                path, (unsigned)state->st_gid);
    return TFOS_OK;
}

// An access list, or that there is none where the folder gives its files one.
static bool copy_access_list(int fd, const char *path)
{
    char list[4096];
    ssize_t size = getxattr(path, access_list, list, sizeof list);
    if (size >= 0)
        return fsetxattr(fd, access_list, list, (size_t)size, 0) == 0;
    if (errno != ENODATA && errno != EOPNOTSUPP)
        return false;
    return fremovexattr(fd, access_list) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
}

enum tfos_status tfos__io_replacement_copy_permissions(int fd, const char *path,
                                                       const struct stat *state,
                                                       struct tfos_error *err)
{
    struct stat own;
    if (fstat(fd, &own) != 0)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot write to %s", path);
    TFOS__TRY(copy_group(fd, path, state, &own, err));
    if (own.st_uid != state->st_uid && fchown(fd, state->st_uid, (gid_t)-1) != 0 && errno != EPERM)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot keep the owner of %s", path);
    if (!copy_access_list(fd, path) || fchmod(fd, state->st_mode & 07777) != 0)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot keep the permissions of %s", path);
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Streams over descriptors: files, pipes, devices. A regular file that is written has no name until
// it is finished, so that nobody takes a part for the whole, and a process that is killed leaves
// none behind; where the file system cannot do that (O_TMPFILE), it has another name.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <tfos/stream.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "io/local_files.h"
#include "io/part_file.h"

#define MOST_LINKS 40 // as the kernel has it

struct file_stream {
    struct tfos_stream base;
    int fd;
    bool is_borrowed; ///< the descriptor is
    char *path;       ///< for messages; owned
    char *place;      ///< where the file appears, which is written; owned
    char *part_path;  ///< what it is called until then, or NULL; owned
    bool is_unnamed;  ///< not yet called `part_path`
    bool shows_early; ///< it appears with its first flush
};

static enum tfos_status read_file(struct tfos_stream *stream, void *data, size_t size,
                                  size_t *count, struct tfos_error *err)
{
    struct file_stream *file = (struct file_stream *)stream;
    ssize_t got;
    do
        got = read(file->fd, data, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot read %s", file->path);
    *count = (size_t)got;
    return got > 0 ? TFOS_OK : TFOS_END;
}

static enum tfos_status seek_file(struct tfos_stream *stream, uint64_t offset,
                                  struct tfos_error *err)
{
    struct file_stream *file = (struct file_stream *)stream;
    if (offset > INT64_MAX || lseek(file->fd, (off_t)offset, SEEK_SET) < 0)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot go to byte %llu of %s",
                                (unsigned long long)offset, file->path);
    return TFOS_OK;
}

static enum tfos_status write_file(struct tfos_stream *stream, const void *data, size_t size,
                                   struct tfos_error *err)
{
    struct file_stream *file = (struct file_stream *)stream;
    const char *bytes = data;
    while (size > 0) {
        ssize_t put = write(file->fd, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tfos__fail_errno(err, TFOS_IO, "stream: cannot write to %s", file->path);
        bytes += put;
        size -= (size_t)put;
    }
    return TFOS_OK;
}

static void name_descriptor(int fd, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", fd);
}

// A file cannot be linked in place of another, so it is given the other name first.
static enum tfos_status give_name(struct file_stream *file, struct tfos_error *err)
{
    char name[32];
    if (!file->is_unnamed)
        return TFOS_OK;
    name_descriptor(file->fd, name);
    if (linkat(AT_FDCWD, name, AT_FDCWD, file->part_path, AT_SYMLINK_FOLLOW) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "stream: cannot name %s",
                                file->part_path);
    file->is_unnamed = false;
    return TFOS_OK;
}

static enum tfos_status take_place(struct file_stream *file, struct tfos_error *err)
{
    if (!file->part_path)
        return TFOS_OK;
    if (rename(file->part_path, file->place) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "stream: cannot rename %s to %s",
                                file->part_path, file->path);
    tfos__free(file->part_path);
    file->part_path = NULL;
    return TFOS_OK;
}

static enum tfos_status flush_file(struct tfos_stream *stream, bool to_disk, struct tfos_error *err)
{
    struct file_stream *file = (struct file_stream *)stream;
    if (to_disk && fdatasync(file->fd) != 0 && errno != EINVAL && errno != EROFS)
        return tfos__fail_errno(err, TFOS_IO, "stream: cannot write to %s", file->path);
    if (!file->shows_early)
        return TFOS_OK;
    TFOS__TRY(give_name(file, err));
    return take_place(file, err);
}

// Errors of writing may come as late as this. The lock stays until the part has its name.
static enum tfos_status finish_file(struct tfos_stream *stream, struct tfos_error *err)
{
    struct file_stream *file = (struct file_stream *)stream;
    if (file->is_borrowed)
        return TFOS_OK;
    TFOS__TRY(give_name(file, err));
    int fd = file->fd, locked = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    file->fd = -1;
    enum tfos_status status =
        close(fd) == 0 ? take_place(file, err)
                       : tfos__fail_errno(err, TFOS_IO, "stream: cannot write to %s", file->path);
    if (locked >= 0)
        close(locked);
    return status;
}

static void close_file(struct tfos_stream *stream)
{
    struct file_stream *file = (struct file_stream *)stream;
    if (file->fd >= 0 && !file->is_borrowed)
        close(file->fd);
    if (file->part_path && !file->is_unnamed)
        unlink(file->part_path);
    tfos__free(file->part_path);
    tfos__free(file->place);
    tfos__free(file->path);
    tfos__free(file);
}

static struct file_stream *make_stream(int fd, const char *path, struct tfos_error *err)
{
    struct file_stream *file = tfos__alloc(1, sizeof(*file));
    char *copy = tfos__strdup(path);
    if (!file || !copy) {
        tfos__free(file);
        tfos__free(copy);
        tfos__no_memory(err, "stream", path);
        return NULL;
    }
    *file = (struct file_stream){.fd = fd, .path = copy};
    file->base.close = close_file;
    return file;
}

static void let_read(struct file_stream *file)
{
    file->base.read = read_file;
    if (lseek(file->fd, 0, SEEK_CUR) >= 0) {
        file->base.seek = seek_file;
        posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
}

static void let_write(struct file_stream *file)
{
    file->base.write = write_file;
    file->base.flush = flush_file;
    file->base.finish = finish_file;
}

enum tfos_status tfos__io_local_open_reader(const char *path, struct tfos_stream **out,
                                            struct tfos_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat state;
    if (fd < 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "stream: cannot open %s", path);
    struct file_stream *file = make_stream(fd, path, err);
    if (!file) {
        close(fd);
        return TFOS_NO_MEMORY;
    }
    if (fstat(fd, &state) == 0 && S_ISDIR(state.st_mode)) {
        close_file(&file->base);
        return tfos__fail(err, TFOS_IO, "stream: cannot read %s: it is a folder", path);
    }
    let_read(file);
    *out = &file->base;
    return TFOS_OK;
}

// ---- the file that is replaced

static const char access_list[] = "system.posix_acl_access";

static bool is_in(const char *path, const char *folder)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

// Where the file is, or will be, to which `path` leads through symbolic links. `*is_descriptor`: it
// is one that a process has open, such as /dev/stdout, and has no other name for sure.
static enum tfos_status follow_links(const char *path, char **out, bool *is_descriptor,
                                     struct tfos_error *err)
{
    char target[PATH_MAX];
    char *place = tfos__strdup(path);
    *is_descriptor = false;
    for (int i = 0; place && i < MOST_LINKS; i++) {
        ssize_t size = readlink(place, target, sizeof(target));
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
    ssize_t size = getxattr(path, access_list, list, sizeof(list));
    if (size >= 0)
        return fsetxattr(fd, access_list, list, (size_t)size, 0) == 0;
    if (errno != ENODATA && errno != EOPNOTSUPP)
        return false;
    return fremovexattr(fd, access_list) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
}

// Gives the file `fd` owner, group, mode and access list of the one at `path`, whose state is
// `state`. DENIED: its group cannot be kept. The owner changes where only root could keep it.
static enum tfos_status copy_permissions(int fd, const char *path, const struct stat *state,
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

// ---- writing

// The size of the folder's name in a path, with the slash behind it.
static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path + 1) : 0;
}

// A file without a name in the folder of `path`, or -1. It needs /proc to get one.
static int open_unnamed(const char *path, mode_t mode)
{
    size_t size = folder_size(path);
    char *folder = size > 0 ? tfos__format("%.*s", (int)size, path) : tfos__strdup(".");
    int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode) : -1;
    char name[32];
    tfos__free(folder);
    name_descriptor(fd, name);
    if (fd >= 0 && access(name, F_OK) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

// Its writer has a lock of it until it has its name, also on NFS, where each host sees it.
static bool is_abandoned(const char *part)
{
    int fd = open(part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return is_free;
}

// A file that takes the place of one at `path`, whose state is `state` unless there is none (NULL).
static enum tfos_status open_part(struct file_stream *file, const struct stat *state,
                                  struct tfos_error *err)
{
    mode_t mode = state ? 0600 : 0666;
    if (state && faccessat(AT_FDCWD, file->place, W_OK, AT_EACCESS) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "stream: cannot write to %s",
                                file->path);
    file->part_path = tfos__io_part_make_name(file->place);
    if (!file->part_path)
        return tfos__no_memory(err, "stream", file->path);
    file->fd = open_unnamed(file->place, mode);
    file->is_unnamed = file->fd >= 0;
    if (!file->is_unnamed)
        file->fd = open(file->part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file->fd < 0) {
        tfos__free(file->part_path);
        file->part_path = NULL;
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "stream: cannot write to %s",
                                file->path);
    }
    (void)flock(file->fd, LOCK_EX | LOCK_NB); // a file system without locks has none to ask for
    if (!file->is_unnamed)
        tfos__io_parts_clean(file->part_path, is_abandoned);
    return state ? copy_permissions(file->fd, file->place, state, err) : TFOS_OK;
}

static enum tfos_status open_special(struct file_stream *file, struct tfos_error *err)
{
    // A file that is open already is not written from its beginning.
    file->fd = open(file->place, O_WRONLY | O_APPEND | O_CLOEXEC);
    return file->fd >= 0 ? TFOS_OK
                         : tfos__fail_errno(err, tfos__io_status_of_errno(),
                                            "stream: cannot write to %s", file->path);
}

// What is appended goes to the file itself.
static enum tfos_status open_end(struct file_stream *file, struct tfos_error *err)
{
    file->fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return file->fd >= 0 ? TFOS_OK
                         : tfos__fail_errno(err, tfos__io_status_of_errno(),
                                            "stream: cannot write to %s", file->path);
}

// A file that appears when it is whole.
static enum tfos_status open_whole(struct file_stream *file, struct tfos_error *err)
{
    struct stat state;
    bool is_descriptor;
    TFOS__TRY(follow_links(file->path, &file->place, &is_descriptor, err));
    bool is_there = stat(file->place, &state) == 0;
    return is_descriptor || (is_there && !S_ISREG(state.st_mode))
               ? open_special(file, err)
               : open_part(file, is_there ? &state : NULL, err);
}

enum tfos_status tfos__io_local_open_writer(const char *path, enum tfos_file_writing how,
                                            struct tfos_stream **out, struct tfos_error *err)
{
    struct file_stream *file = make_stream(-1, path, err);
    if (!file)
        return TFOS_NO_MEMORY;
    bool is_end = how == TFOS_FILE_APPEND && access(path, F_OK) == 0;
    enum tfos_status status = is_end ? open_end(file, err) : open_whole(file, err);
    file->shows_early = how != TFOS_FILE_REPLACE;
    if (status < 0) {
        close_file(&file->base);
        return status;
    }
    let_write(file);
    *out = &file->base;
    return TFOS_OK;
}

enum tfos_status tfos_stream_open_reader(const char *name, struct tfos_stream **out,
                                         struct tfos_error *err)
{
    struct tfos_file_system *system = tfos_file_system_of(name);
    return system->open_reader(system, name, out, err);
}

enum tfos_status tfos_stream_open_writer(const char *name, struct tfos_stream **out,
                                         struct tfos_error *err)
{
    struct tfos_file_system *system = tfos_file_system_of(name);
    return system->open_writer(system, name, TFOS_FILE_REPLACE, out, err);
}

enum tfos_status tfos_stream_open_fd(int fd, struct tfos_stream **out, struct tfos_error *err)
{
    static const char *const names[] = {"the standard input", "the standard output",
                                        "the standard error output"};
    char name[64];
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return tfos__fail_errno(err, TFOS_INVALID, "stream: descriptor %d", fd);
    if (fd >= 0 && fd < 3)
        snprintf(name, sizeof(name), "%s", names[fd]);
    else
        snprintf(name, sizeof(name), "descriptor %d", fd);
    struct file_stream *file = make_stream(fd, name, err);
    if (!file)
        return TFOS_NO_MEMORY;
    file->is_borrowed = true;
    if ((flags & O_ACCMODE) != O_WRONLY)
        let_read(file);
    if ((flags & O_ACCMODE) != O_RDONLY)
        let_write(file);
    *out = &file->base;
    return TFOS_OK;
}

void tfos_stream_close(struct tfos_stream *stream)
{
    if (stream)
        stream->close(stream);
}

// SPDX-License-Identifier: Apache-2.0
#include "io/local_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "io/file_name.h"

enum tfos_status tfos__io_status_of_errno(void)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return TFOS_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return TFOS_DENIED;
    default:
        return TFOS_IO;
    }
}

// ---- what is there

static enum tfos_file_kind kind_of(const struct stat *state)
{
    if (S_ISDIR(state->st_mode))
        return TFOS_FILE_FOLDER;
    return S_ISREG(state->st_mode) ? TFOS_FILE_REGULAR : TFOS_FILE_SPECIAL;
}

static void describe(const struct stat *state, struct tfos_file_info *info)
{
    *info = (struct tfos_file_info){
        .kind = kind_of(state),
        .has_details = true,
        .mode = state->st_mode & 07777,
        .size = S_ISDIR(state->st_mode) ? 0 : (uint64_t)state->st_size,
        .modified_ms = (int64_t)state->st_mtim.tv_sec * 1000 + state->st_mtim.tv_nsec / 1000000,
    };
    snprintf(info->owner, sizeof(info->owner), "%u", (unsigned)state->st_uid);
    snprintf(info->group, sizeof(info->group), "%u", (unsigned)state->st_gid);
}

// A link to nothing counts as a file: opening it says what is wrong.
static enum tfos_status look(struct tfos_file_system *system, const char *name,
                             struct tfos_file_info *info, struct tfos_error *err)
{
    struct stat state;
    const char *path;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    if (stat(path, &state) == 0) {
        describe(&state, info);
        return TFOS_OK;
    }
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
        return tfos__fail_errno(err, errno == EACCES ? TFOS_DENIED : TFOS_IO,
                                "files: cannot look at %s", path);
    if (lstat(path, &state) == 0) {
        describe(&state, info);
        info->kind = TFOS_FILE_REGULAR;
    } else {
        *info = (struct tfos_file_info){.kind = TFOS_FILE_NONE, .has_details = true};
    }
    return TFOS_OK;
}

static enum tfos_file_kind kind_of_entry(DIR *folder, const struct dirent *entry)
{
    struct stat state;
    if (entry->d_type == DT_REG)
        return TFOS_FILE_REGULAR;
    if (entry->d_type == DT_DIR)
        return TFOS_FILE_FOLDER;
    return fstatat(dirfd(folder), entry->d_name, &state, 0) == 0 ? kind_of(&state)
                                                                 : TFOS_FILE_REGULAR;
}

// Entries come without details, which cost a call each.
static enum tfos_status list(struct tfos_file_system *system, const char *name,
                             tfos_file_taker *take, void *entries, struct tfos_error *err)
{
    const char *folder;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &folder, err));
    DIR *open = opendir(*folder ? folder : ".");
    const struct dirent *entry;
    enum tfos_status status = TFOS_OK;
    if (!open && (errno == ENOENT || errno == ENOTDIR))
        return TFOS_OK;
    if (!open)
        return tfos__fail_errno(err, errno == EACCES ? TFOS_DENIED : TFOS_IO,
                                "files: cannot read the folder %s", folder);
    errno = 0;
    while (status == TFOS_OK && (entry = readdir(open))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            struct tfos_file_info info = {.kind = kind_of_entry(open, entry)};
            status = take(entries, entry->d_name, &info, err);
        }
        errno = 0;
    }
    if (status == TFOS_OK && errno != 0)
        status = tfos__fail_errno(err, TFOS_IO, "files: cannot read the folder %s", folder);
    closedir(open);
    return status;
}

// ---- streams

static enum tfos_status open_reader(struct tfos_file_system *system, const char *name,
                                    struct tfos_stream **out, struct tfos_error *err)
{
    const char *path;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    return tfos__io_local_open_reader(path, out, err);
}

static enum tfos_status open_writer(struct tfos_file_system *system, const char *name,
                                    enum tfos_file_writing how, struct tfos_stream **out,
                                    struct tfos_error *err)
{
    const char *path;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    return tfos__io_local_open_writer(path, how, out, err);
}

// ---- changes

static bool is_folder(const char *path)
{
    struct stat state;
    return stat(path, &state) == 0 && S_ISDIR(state.st_mode);
}

// mkdir(2) of each folder of a path, from the first. Its errno tells what failed.
static bool make_folders(char *path)
{
    for (char *at = path + 1; at[-1] != '\0'; at++) {
        char end = *at;
        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && !is_folder(path)) {
            errno = errno == EEXIST && end == '/' ? ENOTDIR : errno;
            return false;
        }
        *at = end;
    }
    return true;
}

static enum tfos_status make_folder(struct tfos_file_system *system, const char *name,
                                    struct tfos_error *err)
{
    const char *path;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    char *copy = tfos__strdup(path);
    if (!copy)
        return tfos__no_memory(err, "files", path);
    enum tfos_status status = TFOS_OK;
    if (path[0] == '\0' || !make_folders(copy))
        status = tfos__fail_errno(err, tfos__io_status_of_errno(),
                                  "files: cannot make the folder %s", path);
    tfos__free(copy);
    return status;
}

static enum tfos_status rename_file(struct tfos_file_system *system, const char *from,
                                    const char *to, struct tfos_error *err)
{
    const char *source, *target;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(from, &source, err));
    TFOS__TRY(tfos__io_file_name_get_path(to, &target, err));
    if (rename(source, target) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "files: cannot rename %s to %s",
                                source, target);
    return TFOS_OK;
}

static enum tfos_status remove_tree(int parent, const char *name, const char *path,
                                    struct tfos_error *err);

// Deletes what is in the folder `fd`, which is closed.
static enum tfos_status remove_entries(int fd, const char *path, struct tfos_error *err)
{
    DIR *open = fdopendir(fd);
    const struct dirent *entry;
    enum tfos_status status = TFOS_OK;
    if (!open) {
        close(fd);
        return tfos__fail_errno(err, TFOS_IO, "files: cannot read the folder %s", path);
    }
    while (status == TFOS_OK && (entry = readdir(open)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = remove_tree(dirfd(open), entry->d_name, path, err);
    closedir(open);
    return status;
}

// Symbolic links are deleted, and not followed.
static enum tfos_status remove_tree(int parent, const char *name, const char *path,
                                    struct tfos_error *err)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        TFOS__TRY(remove_entries(fd, path, err));
    if (unlinkat(parent, name, fd >= 0 ? AT_REMOVEDIR : 0) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "files: cannot delete %s in %s",
                                name, path);
    return TFOS_OK;
}

static enum tfos_status remove_file(struct tfos_file_system *system, const char *name,
                                    bool is_recursive, struct tfos_error *err)
{
    const char *path;
    (void)system;
    TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    if (is_recursive && is_folder(path))
        return remove_tree(AT_FDCWD, path, path, err);
    if (remove(path) != 0)
        return tfos__fail_errno(err, tfos__io_status_of_errno(), "files: cannot delete %s", path);
    return TFOS_OK;
}

struct tfos_file_system tfos__io_local_files = {
    .look = look,
    .list = list,
    .open_reader = open_reader,
    .open_writer = open_writer,
    .make_folder = make_folder,
    .rename = rename_file,
    .remove = remove_file,
};

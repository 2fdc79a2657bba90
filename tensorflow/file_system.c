// SPDX-License-Identifier: Apache-2.0
// Hadoop's file systems for TensorFlow: the tables that it asks a plugin for. All memory that it
// gets is freed by free(), which it calls through them, and so is made by malloc() and its like.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/export.h>
#include <tfos/file_list.h>

#include "file_streams.h"
#include "plugin.h"

#define MODULE "libtfos_tf"
#define MOST_SCHEMES 32
#define SCHEME_SIZE 16

static char schemes[MOST_SCHEMES][SCHEME_SIZE];
static size_t scheme_count;

/// Before the plugin is registered: a scheme that it is registered for. False: there are too many.
TFOS_API bool tfos_tf_add_scheme(const char *scheme);

/// What TensorFlow calls when the plugin is registered.
TFOS_API void TF_InitPlugin(struct TF_FilesystemPluginInfo *info);

bool tfos_tf_add_scheme(const char *scheme)
{
    if (scheme_count == MOST_SCHEMES || strlen(scheme) >= SCHEME_SIZE)
        return false;
    memcpy(schemes[scheme_count++], scheme, strlen(scheme) + 1);
    return true;
}

// ---- the file system

static void init(struct TF_Filesystem *system, struct TF_Status *status)
{
    (void)system;
    tfos__tf.SetStatus(status, TF_OK, "");
}

static void cleanup(struct TF_Filesystem *system)
{
    (void)system;
}

static void make_folders(const struct TF_Filesystem *system, const char *path,
                         struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *files = tfos_file_system_of(path);
    (void)system;
    tfos__files_set_status(status, files->make_folder(files, path, &err), &err);
}

// The folder that a path is in, or NULL.
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t offset = tfos_file_name_path_offset(path), size = slash ? (size_t)(slash - path) : 0;
    return strndup(path, size > offset ? size : offset + 1);
}

// A folder in one that is there.
static void make_folder(const struct TF_Filesystem *system, const char *path,
                        struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    char *parent = NULL;
    if (tfos__files_look(path, &info, status)) {
        tfos__files_refuse(status, TF_ALREADY_EXISTS, path, "it exists already");
        return;
    }
    if (tfos__tf.GetCode(status) != TF_NOT_FOUND)
        return;
    parent = parent_of(path);
    if (!parent)
        tfos__files_refuse_memory(status, path);
    else if (tfos__files_look(parent, &info, status))
        make_folders(system, path, status);
    free(parent);
}

static void delete (const char *path, bool is_recursive, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *files = tfos_file_system_of(path);
    tfos__files_set_status(status, files->remove(files, path, is_recursive, &err), &err);
}

static void delete_file(const struct TF_Filesystem *system, const char *path,
                        struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    (void)system;
    if (!tfos__files_look(path, &info, status))
        return;
    if (info.kind == TFOS_FILE_FOLDER)
        tfos__files_refuse(status, TF_FAILED_PRECONDITION, path, "it is a folder");
    else
        delete (path, false, status);
}

static void delete_folder(const struct TF_Filesystem *system, const char *path,
                          struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    (void)system;
    if (!tfos__files_look(path, &info, status))
        return;
    if (info.kind != TFOS_FILE_FOLDER)
        tfos__files_refuse(status, TF_FAILED_PRECONDITION, path, "it is no folder");
    else
        delete (path, false, status);
}

static void delete_tree(const struct TF_Filesystem *system, const char *path,
                        uint64_t *undeleted_files, uint64_t *undeleted_dirs,
                        struct TF_Status *status)
{
    (void)system;
    delete (path, true, status);
    *undeleted_files = 0;
    *undeleted_dirs = tfos__op_is_ok(status) ? 0 : 1;
}

static void rename_file(const struct TF_Filesystem *system, const char *source, const char *target,
                        struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *files = tfos_file_system_of(source);
    (void)system;
    tfos__files_set_status(status, files->rename(files, source, target, &err), &err);
}

static void find_path(const struct TF_Filesystem *system, const char *path,
                      struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    (void)tfos__files_look(path, &info, status);
}

static void get_stat(const struct TF_Filesystem *system, const char *path,
                     struct TF_FileStatistics *statistics, struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    if (tfos__files_look(path, &info, status))
        *statistics = (struct TF_FileStatistics){(int64_t)info.size, info.modified_ms * 1000000,
                                                 info.kind == TFOS_FILE_FOLDER};
}

static bool is_folder(const struct TF_Filesystem *system, const char *path,
                      struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    if (!tfos__files_look(path, &info, status))
        return false;
    if (info.kind != TFOS_FILE_FOLDER)
        tfos__files_refuse(status, TF_FAILED_PRECONDITION, path, "it is no folder");
    return info.kind == TFOS_FILE_FOLDER;
}

static int64_t get_size(const struct TF_Filesystem *system, const char *path,
                        struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    return tfos__files_look(path, &info, status) ? (int64_t)info.size : -1;
}

// A name that means the same without empty parts, "." and "..", as TensorFlow itself has paths.
static char *clean_name(const struct TF_Filesystem *system, const char *uri)
{
    size_t offset = tfos_file_name_path_offset(uri), end = offset;
    char *clean = malloc(strlen(uri) + 2);
    (void)system;
    if (!clean)
        return NULL;
    memcpy(clean, uri, offset);
    for (const char *part = uri + offset; *part != '\0';) {
        part += strspn(part, "/");
        size_t size = strcspn(part, "/");
        if (size == 2 && memcmp(part, "..", 2) == 0) {
            while (end > offset && clean[--end] != '/')
                continue;
        } else if (size > 0 && !(size == 1 && *part == '.')) {
            clean[end++] = '/';
            memcpy(clean + end, part, size);
            end += size;
        }
        part += size;
    }
    if (end == offset)
        clean[end++] = '/';
    clean[end] = '\0';
    return clean;
}

struct names {
    char **items;
    size_t count, capacity;
};

static enum tfos_status take_name(void *context, const char *name,
                                  const struct tfos_file_info *info, struct tfos_error *err)
{
    struct names *names = context;
    (void)info;
    if (tfos_file_name_is_part(name))
        return TFOS_OK; // to TensorFlow, whose patterns match hidden names, it is not yet there
    if (names->count == names->capacity) {
        size_t capacity = names->capacity > 0 ? 2 * names->capacity : 16;
        char **items = realloc(names->items, capacity * sizeof(*items));
        if (items) {
            names->items = items;
            names->capacity = capacity;
        }
    }
    char *copy = names->count < names->capacity ? strdup(name) : NULL;
    if (!copy) {
        snprintf(err->message, sizeof(err->message), MODULE ": no memory for names");
        return TFOS_NO_MEMORY;
    }
    names->items[names->count++] = copy;
    return TFOS_OK;
}

static int get_children(const struct TF_Filesystem *system, const char *path, char ***entries,
                        struct TF_Status *status)
{
    struct names names = {0};
    struct tfos_error err = {0};
    struct tfos_file_system *files = tfos_file_system_of(path);
    enum tfos_status result = files->list(files, path, take_name, &names, &err);
    tfos__files_set_status(status, result, &err);
    // A folder that is missing, and a file, are as empty.
    if (result == TFOS_OK && names.count == 0 && !is_folder(system, path, status))
        result = TFOS_NOT_FOUND;
    if (result == TFOS_OK && !names.items)
        names.items = malloc(sizeof(*names.items));
    if (result < 0 || !names.items) {
        for (size_t i = 0; i < names.count; i++)
            free(names.items[i]);
        free(names.items);
        return -1;
    }
    *entries = names.items;
    return (int)names.count;
}

// ---- the plugin

static struct TF_FilesystemOps system_ops = {
    .init = init,
    .cleanup = cleanup,
    .new_random_access_file = tfos__files_open_readable,
    .new_writable_file = tfos__files_open_writable,
    .new_appendable_file = tfos__files_open_appendable,
    .new_read_only_memory_region_from_file = tfos__files_open_region,
    .create_dir = make_folder,
    .recursively_create_dir = make_folders,
    .delete_file = delete_file,
    .delete_dir = delete_folder,
    .delete_recursively = delete_tree,
    .rename_file = rename_file,
    .path_exists = find_path,
    .stat = get_stat,
    .is_directory = is_folder,
    .get_file_size = get_size,
    .translate_name = clean_name,
    .get_children = get_children,
};

// A table of its own, which TensorFlow frees.
static void *copy_table(const void *table, size_t size)
{
    void *copy = malloc(size);
    return copy ? memcpy(copy, table, size) : NULL;
}

void TF_InitPlugin(struct TF_FilesystemPluginInfo *info)
{
    info->plugin_memory_allocate = malloc;
    info->plugin_memory_free = free;
    info->ops = calloc(scheme_count > 0 ? scheme_count : 1, sizeof(*info->ops));
    info->num_schemes = info->ops ? scheme_count : 0;
    for (size_t i = 0; i < info->num_schemes; i++)
        info->ops[i] = (struct TF_FilesystemPluginOps){
            .scheme = strdup(schemes[i]),
            .filesystem_ops_size = sizeof(system_ops),
            .filesystem_ops = copy_table(&system_ops, sizeof(system_ops)),
            .random_access_file_ops_size = sizeof(tfos__files_readable_ops),
            .random_access_file_ops =
                copy_table(&tfos__files_readable_ops, sizeof(tfos__files_readable_ops)),
            .writable_file_ops_size = sizeof(tfos__files_writable_ops),
            .writable_file_ops =
                copy_table(&tfos__files_writable_ops, sizeof(tfos__files_writable_ops)),
            .read_only_memory_region_ops_size = sizeof(tfos__files_region_ops),
            .read_only_memory_region_ops =
                copy_table(&tfos__files_region_ops, sizeof(tfos__files_region_ops)),
        };
    scheme_count = 0;
}

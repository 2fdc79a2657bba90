// SPDX-License-Identifier: Apache-2.0
// Hadoop's file systems for TensorFlow: the tables that it asks a plugin for. All memory that it gets
// is freed by free(), which it calls through them, and so is made by malloc() and its like. Files that are
// written are there at once, as TensorFlow expects of each file system: it writes checkpoints under
// other names itself, and others read event files that still grow.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/export.h>
#include <tfos/file_list.h>
#include <tfos/file_system.h>

#include "file_system_api.h"
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

// ---- statuses

static int code_of_errno(int code)
{
    switch (code) {
    case EEXIST:
        return TF_ALREADY_EXISTS;
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
        return TF_FAILED_PRECONDITION;
    case EDQUOT:
    case ENOSPC:
        return TF_RESOURCE_EXHAUSTED;
    case EBUSY:
    case ECONNREFUSED:
    case EHOSTUNREACH:
        return TF_UNAVAILABLE;
    default:
        return TF_OK;
    }
}

static void set_status(struct TF_Status *status, enum tfos_status result,
                       const struct tfos_error *err)
{
    if (result == TFOS_OK)
        tfos__tf.SetStatus(status, TF_OK, "");
    else if (result < 0 && code_of_errno(err->os_errno) != TF_OK)
        tfos__tf.SetStatus(status, code_of_errno(err->os_errno), err->message);
    else
        tfos__op_set_status(status, result, err);
}

static void refuse(struct TF_Status *status, int code, const char *path, const char *cause)
{
    char message[4096];
    snprintf(message, sizeof(message), MODULE ": %s: %s", path, cause);
    tfos__tf.SetStatus(status, code, message);
}

static void refuse_missing(struct TF_Status *status, const char *path)
{
    refuse(status, TF_NOT_FOUND, path, "it does not exist");
}

static void refuse_memory(struct TF_Status *status, const char *path)
{
    refuse(status, TF_RESOURCE_EXHAUSTED, path, "there is no memory");
}

// What is there, which is something; false with a status.
static bool look(const char *path, struct tfos_file_info *info, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *system = tfos_file_system_of(path);
    enum tfos_status result = system->look(system, path, info, &err);
    set_status(status, result, &err);
    if (result == TFOS_OK && info->kind == TFOS_FILE_NONE)
        refuse_missing(status, path);
    return tfos__op_is_ok(status);
}

// ---- files that are read

// TensorFlow reads a file in several threads.
struct readable {
    pthread_mutex_t lock;
    struct tfos_stream *stream;
    uint64_t offset; ///< in the file, of what the stream reads next
};

static void open_readable(const struct TF_Filesystem *system, const char *path,
                          struct TF_RandomAccessFile *file, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct readable *opened = calloc(1, sizeof(*opened));
    (void)system;
    file->plugin_file = NULL;
    if (!opened) {
        refuse_memory(status, path);
        return;
    }
    enum tfos_status result = tfos_stream_open_reader(path, &opened->stream, &err);
    set_status(status, result, &err);
    if (result < 0) {
        free(opened);
        return;
    }
    pthread_mutex_init(&opened->lock, NULL);
    file->plugin_file = opened;
}

static void close_readable(struct TF_RandomAccessFile *file)
{
    struct readable *opened = file->plugin_file;
    if (!opened)
        return;
    tfos_stream_close(opened->stream);
    pthread_mutex_destroy(&opened->lock);
    free(opened);
}

// As many bytes as there are, up to `size`.
static enum tfos_status read_whole(struct readable *file, char *data, size_t size, size_t *got,
                                   struct tfos_error *err)
{
    enum tfos_status result = TFOS_OK;
    while (result == TFOS_OK && *got < size) {
        size_t count = 0;
        result = file->stream->read(file->stream, data + *got, size - *got, &count, err);
        *got += count;
        file->offset += count;
    }
    return result;
}

static int64_t read_at(const struct TF_RandomAccessFile *file, uint64_t offset, size_t size,
                       char *data, struct TF_Status *status)
{
    struct readable *opened = file->plugin_file;
    struct tfos_error err = {0};
    enum tfos_status result = TFOS_OK;
    size_t got = 0;
    pthread_mutex_lock(&opened->lock);
    if (offset != opened->offset)
        result = opened->stream->seek(opened->stream, offset, &err);
    if (result == TFOS_OK) {
        opened->offset = offset;
        result = read_whole(opened, data, size, &got, &err);
    }
    pthread_mutex_unlock(&opened->lock);
    if (result == TFOS_END)
        tfos__tf.SetStatus(status, TF_OUT_OF_RANGE, MODULE ": the file has ended");
    else
        set_status(status, result, &err);
    return result < 0 ? -1 : (int64_t)got;
}

// ---- files that are written

struct writable {
    struct tfos_stream *stream;
    int64_t size; ///< of the file with what was written
};

static void open_to_write(const char *path, enum tfos_file_writing how,
                          struct TF_WritableFile *file, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *system = tfos_file_system_of(path);
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    struct writable *opened = calloc(1, sizeof(*opened));
    enum tfos_status result = TFOS_OK;
    file->plugin_file = NULL;
    if (!opened) {
        refuse_memory(status, path);
        return;
    }
    if (how == TFOS_FILE_APPEND)
        result = system->look(system, path, &info, &err);
    if (result == TFOS_OK)
        result = system->open_writer(system, path, how, &opened->stream, &err);
    set_status(status, result, &err);
    if (result < 0) {
        free(opened);
        return;
    }
    opened->size = (int64_t)info.size;
    file->plugin_file = opened;
}

static void open_writable(const struct TF_Filesystem *system, const char *path,
                          struct TF_WritableFile *file, struct TF_Status *status)
{
    (void)system;
    open_to_write(path, TFOS_FILE_CREATE, file, status);
}

static void open_appendable(const struct TF_Filesystem *system, const char *path,
                            struct TF_WritableFile *file, struct TF_Status *status)
{
    (void)system;
    open_to_write(path, TFOS_FILE_APPEND, file, status);
}

static void close_writable(struct TF_WritableFile *file)
{
    struct writable *opened = file->plugin_file;
    if (!opened)
        return;
    tfos_stream_close(opened->stream);
    free(opened);
}

static void append(const struct TF_WritableFile *file, const char *data, size_t size,
                   struct TF_Status *status)
{
    struct writable *opened = file->plugin_file;
    struct tfos_error err = {0};
    enum tfos_status result = TFOS_OK;
    if (size > 0)
        result = opened->stream->write(opened->stream, data, size, &err);
    if (result == TFOS_OK)
        opened->size += (int64_t)size;
    set_status(status, result, &err);
}

static int64_t tell(const struct TF_WritableFile *file, struct TF_Status *status)
{
    const struct writable *opened = file->plugin_file;
    tfos__tf.SetStatus(status, TF_OK, "");
    return opened->size;
}

static void flush_to(const struct TF_WritableFile *file, bool to_disk, struct TF_Status *status)
{
    struct tfos_stream *stream = ((struct writable *)file->plugin_file)->stream;
    struct tfos_error err = {0};
    set_status(status, stream->flush ? stream->flush(stream, to_disk, &err) : TFOS_OK, &err);
}

static void flush(const struct TF_WritableFile *file, struct TF_Status *status)
{
    flush_to(file, false, status);
}

static void sync_file(const struct TF_WritableFile *file, struct TF_Status *status)
{
    flush_to(file, true, status);
}

static void finish(const struct TF_WritableFile *file, struct TF_Status *status)
{
    struct tfos_stream *stream = ((struct writable *)file->plugin_file)->stream;
    struct tfos_error err = {0};
    set_status(status, stream->finish(stream, &err), &err);
}

// ---- files as memory

struct region {
    char *data;
    uint64_t size;
};

static void clear_region(struct TF_ReadOnlyMemoryRegion *region)
{
    struct region *copy = region->plugin_memory_region;
    if (copy)
        free(copy->data);
    free(copy);
}

static const void *region_data(const struct TF_ReadOnlyMemoryRegion *region)
{
    return ((const struct region *)region->plugin_memory_region)->data;
}

static uint64_t region_length(const struct TF_ReadOnlyMemoryRegion *region)
{
    return ((const struct region *)region->plugin_memory_region)->size;
}

static void open_region(const struct TF_Filesystem *system, const char *path,
                        struct TF_ReadOnlyMemoryRegion *region, struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    struct TF_RandomAccessFile file;
    region->plugin_memory_region = NULL;
    if (!look(path, &info, status))
        return;
    open_readable(system, path, &file, status);
    if (!tfos__op_is_ok(status))
        return;
    struct region *copy = calloc(1, sizeof(*copy));
    char *data = copy ? malloc(info.size > 0 ? info.size : 1) : NULL;
    int64_t got = -1;
    if (data)
        got = read_at(&file, 0, info.size, data, status);
    else
        refuse_memory(status, path);
    close_readable(&file);
    if (got < 0) {
        free(data);
        free(copy);
        return;
    }
    *copy = (struct region){data, (uint64_t)got};
    region->plugin_memory_region = copy;
    tfos__tf.SetStatus(status, TF_OK, "");
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
    set_status(status, files->make_folder(files, path, &err), &err);
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
    if (look(path, &info, status)) {
        refuse(status, TF_ALREADY_EXISTS, path, "it exists already");
        return;
    }
    if (tfos__tf.GetCode(status) != TF_NOT_FOUND)
        return;
    parent = parent_of(path);
    if (!parent)
        refuse_memory(status, path);
    else if (look(parent, &info, status))
        make_folders(system, path, status);
    free(parent);
}

static void delete(const char *path, bool is_recursive, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *files = tfos_file_system_of(path);
    set_status(status, files->remove(files, path, is_recursive, &err), &err);
}

static void delete_file(const struct TF_Filesystem *system, const char *path,
                        struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    (void)system;
    if (!look(path, &info, status))
        return;
    if (info.kind == TFOS_FILE_FOLDER)
        refuse(status, TF_FAILED_PRECONDITION, path, "it is a folder");
    else
        delete (path, false, status);
}

static void delete_folder(const struct TF_Filesystem *system, const char *path,
                          struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    (void)system;
    if (!look(path, &info, status))
        return;
    if (info.kind != TFOS_FILE_FOLDER)
        refuse(status, TF_FAILED_PRECONDITION, path, "it is no folder");
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
    set_status(status, files->rename(files, source, target, &err), &err);
}

static void find_path(const struct TF_Filesystem *system, const char *path,
                      struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    (void)look(path, &info, status);
}

static void get_stat(const struct TF_Filesystem *system, const char *path,
                     struct TF_FileStatistics *statistics, struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    if (look(path, &info, status))
        *statistics = (struct TF_FileStatistics){(int64_t)info.size, info.modified_ms * 1000000,
                                                 info.kind == TFOS_FILE_FOLDER};
}

static bool is_folder(const struct TF_Filesystem *system, const char *path,
                      struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    if (!look(path, &info, status))
        return false;
    if (info.kind != TFOS_FILE_FOLDER)
        refuse(status, TF_FAILED_PRECONDITION, path, "it is no folder");
    return info.kind == TFOS_FILE_FOLDER;
}

static int64_t get_size(const struct TF_Filesystem *system, const char *path,
                        struct TF_Status *status)
{
    struct tfos_file_info info;
    (void)system;
    return look(path, &info, status) ? (int64_t)info.size : -1;
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
    set_status(status, result, &err);
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

static struct TF_RandomAccessFileOps readable_ops = {.cleanup = close_readable, .read = read_at};

static struct TF_WritableFileOps writable_ops = {
    .cleanup = close_writable,
    .append = append,
    .tell = tell,
    .flush = flush,
    .sync = sync_file,
    .close = finish,
};

static struct TF_ReadOnlyMemoryRegionOps region_ops = {
    .cleanup = clear_region, .data = region_data, .length = region_length};

static struct TF_FilesystemOps system_ops = {
    .init = init,
    .cleanup = cleanup,
    .new_random_access_file = open_readable,
    .new_writable_file = open_writable,
    .new_appendable_file = open_appendable,
    .new_read_only_memory_region_from_file = open_region,
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
            .random_access_file_ops_size = sizeof(readable_ops),
            .random_access_file_ops = copy_table(&readable_ops, sizeof(readable_ops)),
            .writable_file_ops_size = sizeof(writable_ops),
            .writable_file_ops = copy_table(&writable_ops, sizeof(writable_ops)),
            .read_only_memory_region_ops_size = sizeof(region_ops),
            .read_only_memory_region_ops = copy_table(&region_ops, sizeof(region_ops)),
        };
    scheme_count = 0;
}

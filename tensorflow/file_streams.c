// SPDX-License-Identifier: Apache-2.0
// Files that are written appear with their first flush, as event files, which others read while
// they grow, or when they are closed, as copies and models, which nobody is to read before.
#include "file_streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define MODULE "libtfos_tf"

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
    case EAGAIN:
    case EBUSY:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
        return TF_UNAVAILABLE;
    default:
        return TF_OK;
    }
}

void tfos__files_set_status(struct TF_Status *status, enum tfos_status result,
                            const struct tfos_error *err)
{
    if (result == TFOS_OK)
        tfos__tf.SetStatus(status, TF_OK, "");
    else if (result < 0 && code_of_errno(err->os_errno) != TF_OK)
        tfos__tf.SetStatus(status, code_of_errno(err->os_errno), err->message);
    else
        tfos__op_set_status(status, result, err);
}

void tfos__files_refuse(struct TF_Status *status, int code, const char *path, const char *cause)
{
    char message[4096];
    snprintf(message, sizeof(message), MODULE ": %s: %s", path, cause);
    tfos__tf.SetStatus(status, code, message);
}

static void refuse_missing(struct TF_Status *status, const char *path)
{
    tfos__files_refuse(status, TF_NOT_FOUND, path, "it does not exist");
}

void tfos__files_refuse_memory(struct TF_Status *status, const char *path)
{
    tfos__files_refuse(status, TF_RESOURCE_EXHAUSTED, path, "there is no memory");
}

// What is there, which is something; false with a status.
bool tfos__files_look(const char *path, struct tfos_file_info *info, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct tfos_file_system *system = tfos_file_system_of(path);
    enum tfos_status result = system->look(system, path, info, &err);
    tfos__files_set_status(status, result, &err);
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

void tfos__files_open_readable(const struct TF_Filesystem *system, const char *path,
                               struct TF_RandomAccessFile *file, struct TF_Status *status)
{
    struct tfos_error err = {0};
    struct readable *opened = calloc(1, sizeof(*opened));
    (void)system;
    file->plugin_file = NULL;
    if (!opened) {
        tfos__files_refuse_memory(status, path);
        return;
    }
    enum tfos_status result = tfos_stream_open_reader(path, &opened->stream, &err);
    tfos__files_set_status(status, result, &err);
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
        tfos__files_set_status(status, result, &err);
    return result < 0 ? -1 : (int64_t)got;
}

// ---- files that are written

struct writable {
    struct tfos_stream *stream;
    int64_t size;  ///< of the file with what was written
    bool is_ended; ///< nothing more can come of it: it was closed, or a write has failed
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
        tfos__files_refuse_memory(status, path);
        return;
    }
    if (how == TFOS_FILE_APPEND)
        result = system->look(system, path, &info, &err);
    if (result == TFOS_OK)
        result = system->open_writer(system, path, how, &opened->stream, &err);
    tfos__files_set_status(status, result, &err);
    if (result < 0) {
        free(opened);
        return;
    }
    opened->size = (int64_t)info.size;
    file->plugin_file = opened;
}

void tfos__files_open_writable(const struct TF_Filesystem *system, const char *path,
                               struct TF_WritableFile *file, struct TF_Status *status)
{
    (void)system;
    open_to_write(path, TFOS_FILE_CREATE, file, status);
}

void tfos__files_open_appendable(const struct TF_Filesystem *system, const char *path,
                                 struct TF_WritableFile *file, struct TF_Status *status)
{
    (void)system;
    open_to_write(path, TFOS_FILE_APPEND, file, status);
}

// A program may drop a file without closing it: TensorFlow's own file systems close it then.
static void close_writable(struct TF_WritableFile *file)
{
    struct writable *opened = file->plugin_file;
    if (!opened)
        return;
    if (!opened->is_ended)
        (void)opened->stream->finish(opened->stream, NULL);
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
    else
        opened->is_ended = true;
    tfos__files_set_status(status, result, &err);
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
    tfos__files_set_status(status, stream->flush ? stream->flush(stream, to_disk, &err) : TFOS_OK,
                           &err);
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
    struct writable *opened = file->plugin_file;
    struct tfos_error err = {0};
    opened->is_ended = true;
    tfos__files_set_status(status, opened->stream->finish(opened->stream, &err), &err);
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

void tfos__files_open_region(const struct TF_Filesystem *system, const char *path,
                             struct TF_ReadOnlyMemoryRegion *region, struct TF_Status *status)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    struct TF_RandomAccessFile file;
    region->plugin_memory_region = NULL;
    if (!tfos__files_look(path, &info, status))
        return;
    tfos__files_open_readable(system, path, &file, status);
    if (!tfos__op_is_ok(status))
        return;
    struct region *copy = calloc(1, sizeof(*copy));
    char *data = copy ? malloc(info.size > 0 ? info.size : 1) : NULL;
    int64_t got = -1;
    if (data)
        got = read_at(&file, 0, info.size, data, status);
    else
        tfos__files_refuse_memory(status, path);
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

// ---- the tables

const struct TF_RandomAccessFileOps tfos__files_readable_ops = {.cleanup = close_readable,
                                                                .read = read_at};

const struct TF_WritableFileOps tfos__files_writable_ops = {
    .cleanup = close_writable,
    .append = append,
    .tell = tell,
    .flush = flush,
    .sync = sync_file,
    .close = finish,
};

const struct TF_ReadOnlyMemoryRegionOps tfos__files_region_ops = {
    .cleanup = clear_region, .data = region_data, .length = region_length};

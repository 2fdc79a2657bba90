// SPDX-License-Identifier: Apache-2.0
// Java reads into native memory: of large reads into the caller's own, of small ones into a buffer,
// which is filled ahead. Not every file system of Hadoop's can do that (EOPNOTSUPP in its words),
// then an array of Java's is between. What is written is gathered until an array is full.
//
// A new file is written under a hidden name beside its own and renamed, unless the file system has
// "abortable" streams: those of object stores, where a file appears at its end and not before, and
// a rename is a copy.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/hadoop.h"
#include "io/part_file.h"

#define BUFFER_SIZE (256 << 10)
#define LARGE (64 << 10)  // that is read straight into the caller's memory
#define RECOVERY_MS 30000 // that the name node may take to end what a killed writer has left
#define RETRY_MS 250
#define ABORTABLE "fs.capability.outputstream.abortable"

struct hadoop_stream {
    struct tfos_stream base;
    char *name;            ///< owned
    char *part_name;       ///< what it is called until it is finished, or NULL; owned
    void *java;            ///< the stream; a global reference, or NULL: closed
    void *array;           ///< of BUFFER_SIZE bytes; a global reference, or NULL
    unsigned char *buffer; ///< of BUFFER_SIZE bytes; owned
    size_t begin, end;     ///< of what is in the buffer
    uint64_t offset;       ///< in the file, of what Java reads next
    bool is_elsewhere;     ///< Java is to go there first
    bool has_no_buffers;   ///< Java reads into arrays only
    bool can_abort, is_hdfs, is_finished;
    bool shows_early; ///< it has its name with its first flush
    bool has_failed;  ///< something that was written is not in the file
};

static struct hadoop_stream *make_stream(const char *name, struct tfos_error *err)
{
    struct hadoop_stream *file = tfos__alloc(1, sizeof(*file));
    char *copy = tfos__strdup(name);
    unsigned char *buffer = tfos__alloc(BUFFER_SIZE, 1);
    if (!file || !copy || !buffer) {
        tfos__free(file);
        tfos__free(copy);
        tfos__free(buffer);
        tfos__no_memory(err, "hadoop", name);
        return NULL;
    }
    *file = (struct hadoop_stream){.name = copy, .buffer = buffer};
    return file;
}

static void free_stream(struct hadoop_stream *file)
{
    tfos__free(file->buffer);
    tfos__free(file->part_name);
    tfos__free(file->name);
    tfos__free(file);
}

static void drop(struct tfos__jni *env, void **reference)
{
    if (*reference)
        env->call->DeleteGlobalRef(env, *reference);
    *reference = NULL;
}

// The array, made by its first use; NULL with an exception.
static void *array_of(struct hadoop_stream *file, struct tfos__jni *env)
{
    if (!file->array) {
        void *array = env->call->NewByteArray(env, BUFFER_SIZE);
        file->array = array ? env->call->NewGlobalRef(env, array) : NULL;
    }
    return file->array;
}

// ---- reading

static int32_t read_array(struct hadoop_stream *file, struct tfos__jni *env, void *data,
                          size_t size)
{
    union tfos__jni_value arguments[3] = {{.l = array_of(file, env)}};
    if (!arguments[0].l)
        return -1;
    arguments[1].i = 0;
    arguments[2].i = size < BUFFER_SIZE ? (int32_t)size : BUFFER_SIZE;
    int32_t got =
        env->call->CallIntMethodA(env, file->java, tfos__hadoop.reader_read_array, arguments);
    if (got > 0 && !env->call->ExceptionCheck(env))
        env->call->GetByteArrayRegion(env, file->array, 0, got, data);
    return got;
}

static int32_t read_direct(struct hadoop_stream *file, struct tfos__jni *env, void *data,
                           size_t size)
{
    union tfos__jni_value argument = {.l = env->call->NewDirectByteBuffer(
                                          env, data, size < INT32_MAX ? (int64_t)size : INT32_MAX)};
    return argument.l ? env->call->CallIntMethodA(env, file->java, tfos__hadoop.reader_read_buffer,
                                                  &argument)
                      : -1;
}

static enum tfos_status seek_java(struct hadoop_stream *file, struct tfos__jni *env,
                                  struct tfos_error *err)
{
    union tfos__jni_value offset = {.j = (int64_t)file->offset};
    env->call->CallVoidMethodA(env, file->java, tfos__hadoop.reader_seek, &offset);
    enum tfos_status status = tfos__io_java_check(env, err, "cannot go to byte %" PRIu64 " of %s",
                                                  file->offset, file->name);
    if (status == TFOS_OK)
        file->is_elsewhere = false;
    return status < 0 && err->os_errno == ENODATA ? TFOS_END : status; // it has no such byte
}

static enum tfos_status read_java(struct hadoop_stream *file, struct tfos__jni *env, void *data,
                                  size_t size, size_t *count, struct tfos_error *err)
{
    struct tfos_error own;
    err = err ? err : &own;
    if (file->is_elsewhere)
        TFOS__PASS(seek_java(file, env, err));
    file->is_elsewhere = true; // until it has read: nobody knows where a failure leaves it
    int32_t got = file->has_no_buffers ? read_array(file, env, data, size)
                                       : read_direct(file, env, data, size);
    enum tfos_status status =
        tfos__io_java_check(env, err, "cannot read %s at byte %" PRIu64, file->name, file->offset);
    if (status == TFOS_UNSUPPORTED && !file->has_no_buffers) {
        file->has_no_buffers = true;
        return read_java(file, env, data, size, count, err);
    }
    TFOS__TRY(status);
    file->is_elsewhere = false;
    if (got <= 0)
        return TFOS_END;
    file->offset += (uint64_t)got;
    *count = (size_t)got;
    return TFOS_OK;
}

static enum tfos_status read_file(struct tfos_stream *stream, void *data, size_t size,
                                  size_t *count, struct tfos_error *err)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    struct tfos__jni *env;
    size_t there = file->end - file->begin, got = 0;
    if (there == 0) {
        bool is_large = size >= LARGE;
        TFOS__TRY(tfos__io_jvm_enter(&env, err));
        enum tfos_status status = read_java(file, env, is_large ? data : file->buffer,
                                            is_large ? size : BUFFER_SIZE, &got, err);
        tfos__io_jvm_leave(env);
        TFOS__PASS(status);
        file->begin = 0;
        file->end = is_large ? 0 : got;
        if (is_large) {
            *count = got;
            return TFOS_OK;
        }
        there = got;
    }
    *count = size < there ? size : there;
    memcpy(data, file->buffer + file->begin, *count);
    file->begin += *count;
    return TFOS_OK;
}

static enum tfos_status seek_file(struct tfos_stream *stream, uint64_t offset,
                                  struct tfos_error *err)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    if (offset > INT64_MAX)
        return tfos__fail(err, TFOS_INVALID,
                          "hadoop: no file has a byte %" PRIu64 ", as is asked of %s", offset,
                          file->name);
    if (offset <= file->offset && file->offset - offset <= file->end) {
        file->begin = file->end - (size_t)(file->offset - offset);
        return TFOS_OK;
    }
    file->begin = file->end = 0;
    file->offset = offset;
    file->is_elsewhere = true;
    return TFOS_OK;
}

static void close_reader(struct tfos_stream *stream)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    struct tfos__jni *env;
    if (tfos__io_jvm_is_here() && tfos__io_jvm_enter(&env, NULL) == TFOS_OK) {
        if (file->java)
            env->call->CallVoidMethodA(env, file->java, tfos__hadoop.reader_close, NULL);
        env->call->ExceptionClear(env);
        drop(env, &file->java);
        drop(env, &file->array);
        tfos__io_jvm_leave(env);
    }
    free_stream(file);
}

// Java has the same exceptions for a folder as for files that are missing, or there already.
static enum tfos_status refuse_folder(const char *name, enum tfos_status status,
                                      struct tfos_error *err)
{
    struct tfos_file_info info;
    bool may_be_one = status == TFOS_NOT_FOUND || (err && err->os_errno == EEXIST);
    if (!may_be_one || tfos__io_hadoop_look(NULL, name, &info, NULL) < 0 ||
        info.kind != TFOS_FILE_FOLDER)
        return status;
    status = tfos__fail(err, TFOS_IO, "hadoop: cannot open %s: it is a folder", name);
    if (err)
        err->os_errno = EISDIR;
    return status;
}

// Messages of the stream are to have the host too.
static void take_name(struct hadoop_stream *file, struct tfos__hadoop_call *call)
{
    if (!call->full_name)
        return;
    tfos__free(file->name);
    file->name = call->full_name;
    call->full_name = NULL;
}

// Calls a method of the file system that opens a file; `*method` is known once calls have begun.
// `name` is that of the file, or of its part.
static enum tfos_status open_java(struct hadoop_stream *file, const char *name, void *const *method,
                                  const char *verb, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    TFOS__TRY(tfos__io_hadoop_begin(&call, name, err));
    const union tfos__jni_value arguments[] = {{.l = call.path}, {.z = true}}; // overwrites
    void *made = call.env->call->CallObjectMethodA(call.env, call.system, *method, arguments);
    if (name == file->name)
        take_name(file, &call);
    enum tfos_status status = tfos__io_java_check(call.env, err, "cannot %s %s", verb, file->name);
    if (status == TFOS_OK)
        file->java = call.env->call->NewGlobalRef(call.env, made);
    return tfos__io_hadoop_end(&call, status);
}

enum tfos_status tfos__io_hadoop_open_reader(struct tfos_file_system *system, const char *name,
                                             struct tfos_stream **out, struct tfos_error *err)
{
    struct hadoop_stream *file = make_stream(name, err);
    (void)system;
    if (!file)
        return TFOS_NO_MEMORY;
    file->base = (struct tfos_stream){.read = read_file, .seek = seek_file, .close = close_reader};
    enum tfos_status status = open_java(file, file->name, &tfos__hadoop.system_open, "open", err);
    if (status < 0) {
        free_stream(file);
        return refuse_folder(name, status, err);
    }
    *out = &file->base;
    return TFOS_OK;
}

// ---- writing

static enum tfos_status write_java(struct hadoop_stream *file, struct tfos__jni *env,
                                   const unsigned char *data, size_t size, struct tfos_error *err)
{
    union tfos__jni_value arguments[3] = {{.l = array_of(file, env)}};
    while (size > 0 && arguments[0].l && !env->call->ExceptionCheck(env)) {
        int32_t part = size < BUFFER_SIZE ? (int32_t)size : BUFFER_SIZE;
        arguments[1].i = 0;
        arguments[2].i = part;
        env->call->SetByteArrayRegion(env, file->array, 0, part, data);
        env->call->CallVoidMethodA(env, file->java, tfos__hadoop.writer_write, arguments);
        data += part;
        size -= (size_t)part;
    }
    enum tfos_status status = tfos__io_java_check(env, err, "cannot write to %s", file->name);
    file->has_failed |= status < 0;
    return status;
}

// Writes what was gathered, and then `size` bytes.
static enum tfos_status write_through(struct hadoop_stream *file, const void *data, size_t size,
                                      struct tfos_error *err)
{
    struct tfos__jni *env;
    TFOS__TRY(tfos__io_jvm_enter(&env, err));
    enum tfos_status status = write_java(file, env, file->buffer, file->end, err);
    file->end = 0;
    if (status == TFOS_OK)
        status = write_java(file, env, data, size, err);
    tfos__io_jvm_leave(env);
    return status;
}

static enum tfos_status write_file(struct tfos_stream *stream, const void *data, size_t size,
                                   struct tfos_error *err)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    if (size > BUFFER_SIZE - file->end)
        return write_through(file, data, size, err);
    memcpy(file->buffer + file->end, data, size);
    file->end += size;
    return TFOS_OK;
}

static enum tfos_status give_name(struct hadoop_stream *file, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    TFOS__TRY(tfos__io_hadoop_begin(&call, file->name, err));
    void *part = tfos__io_hadoop_make_path(call.env, file->part_name);
    if (part)
        tfos__io_hadoop_rename(&call, part, call.path);
    enum tfos_status status =
        tfos__io_java_check(call.env, err, "cannot rename %s to %s", file->part_name, file->name);
    if (status == TFOS_OK) {
        tfos__free(file->part_name);
        file->part_name = NULL;
    }
    return tfos__io_hadoop_end(&call, status);
}

static enum tfos_status flush_file(struct tfos_stream *stream, bool to_disk, struct tfos_error *err)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    struct tfos__jni *env;
    TFOS__TRY(write_through(file, NULL, 0, err));
    TFOS__TRY(tfos__io_jvm_enter(&env, err));
    env->call->CallVoidMethodA(env, file->java,
                               to_disk ? tfos__hadoop.writer_sync : tfos__hadoop.writer_show, NULL);
    enum tfos_status status = tfos__io_java_check(env, err, "cannot flush %s", file->name);
    tfos__io_jvm_leave(env);
    if (status == TFOS_UNSUPPORTED)
        return TFOS_OK; // an object store shows whole files only
    return status == TFOS_OK && file->shows_early && file->part_name ? give_name(file, err)
                                                                     : status;
}

static enum tfos_status close_java(struct hadoop_stream *file, struct tfos__jni *env,
                                   struct tfos_error *err)
{
    env->call->CallVoidMethodA(env, file->java, tfos__hadoop.writer_close, NULL);
    drop(env, &file->java);
    return tfos__io_java_check(env, err, "cannot write to %s", file->name);
}

static enum tfos_status finish_file(struct tfos_stream *stream, struct tfos_error *err)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    struct tfos__jni *env;
    if (file->has_failed)
        return tfos__fail(err, TFOS_IO, "hadoop: cannot finish %s: writing to it has failed before",
                          file->name);
    TFOS__TRY(write_through(file, NULL, 0, err));
    TFOS__TRY(tfos__io_jvm_enter(&env, err));
    enum tfos_status status = close_java(file, env, err);
    tfos__io_jvm_leave(env);
    if (status == TFOS_OK && file->part_name)
        status = give_name(file, err);
    file->is_finished = status == TFOS_OK;
    return status;
}

// What was not finished is discarded: an object store drops it, and elsewhere it is deleted unless
// it has the file's own name.
static void give_up(struct hadoop_stream *file, struct tfos__jni *env)
{
    if (file->java && file->can_abort)
        env->call->CallObjectMethodA(env, file->java, tfos__hadoop.writer_abort, NULL);
    else if (file->java)
        (void)write_java(file, env, file->buffer, file->part_name ? 0 : file->end, NULL);
    env->call->ExceptionClear(env);
    if (file->java)
        (void)close_java(file, env, NULL);
    if (file->part_name) {
        struct tfos_file_system *system = tfos_file_system_of(file->name);
        (void)system->remove(system, file->part_name, false, NULL);
    }
}

static void close_writer(struct tfos_stream *stream)
{
    struct hadoop_stream *file = (struct hadoop_stream *)stream;
    struct tfos__jni *env;
    if (tfos__io_jvm_is_here() && tfos__io_jvm_enter(&env, NULL) == TFOS_OK) {
        if (!file->is_finished)
            give_up(file, env);
        drop(env, &file->java);
        drop(env, &file->array);
        tfos__io_jvm_leave(env);
    }
    free_stream(file);
}

static bool is_a(struct tfos__jni *env, void *object, void *class)
{
    return class && env->call->IsInstanceOf(env, object, class);
}

static bool can_abort(const struct tfos__hadoop_call *call)
{
    const union tfos__jni_value arguments[] = {
        {.l = call->path}, {.l = tfos__io_jvm_make_string(call->env, ABORTABLE)}};
    bool answer = tfos__hadoop.system_has_capability && tfos__hadoop.writer_abort &&
                  call->env->call->CallBooleanMethodA(
                      call->env, call->system, tfos__hadoop.system_has_capability, arguments);
    bool has_failed = call->env->call->ExceptionCheck(call->env);
    call->env->call->ExceptionClear(call->env);
    return answer && !has_failed;
}

// HDFS closes what a killed writer has left once its lease has ended.
static bool is_abandoned(const char *part)
{
    struct tfos__hadoop_call call = {0};
    union tfos__jni_value path;
    if (tfos__io_hadoop_begin(&call, part, NULL) < 0)
        return false;
    path.l = call.path;
    bool is_closed = call.env->call->CallBooleanMethodA(call.env, call.system,
                                                        tfos__hadoop.hdfs_is_closed, &path);
    is_closed &= !call.env->call->ExceptionCheck(call.env);
    (void)tfos__io_hadoop_end(&call, TFOS_OK);
    return is_closed;
}

static enum tfos_status open_part(struct hadoop_stream *file, struct tfos_error *err)
{
    struct tfos_file_info info;
    TFOS__TRY(tfos__io_hadoop_look(NULL, file->name, &info, err));
    if (info.kind == TFOS_FILE_FOLDER)
        return refuse_folder(file->name, TFOS_NOT_FOUND, err);
    if (!file->can_abort) {
        file->part_name = tfos__io_part_make_name(file->name);
        if (!file->part_name)
            return tfos__no_memory(err, "hadoop", file->name);
    }
    TFOS__TRY(open_java(file, file->part_name ? file->part_name : file->name,
                        &tfos__hadoop.system_create, "write to", err));
    if (file->part_name && file->is_hdfs && tfos__hadoop.hdfs_is_closed)
        tfos__io_parts_clean(file->part_name, is_abandoned);
    return TFOS_OK;
}

// HDFS alone is known to let a file be renamed while it is written, also below viewfs; elsewhere it
// has its own name from the beginning.
static enum tfos_status open_early(struct hadoop_stream *file, struct tfos_error *err)
{
    struct tfos__jni *env;
    TFOS__TRY(open_part(file, err));
    file->shows_early = true;
    TFOS__TRY(tfos__io_jvm_enter(&env, err));
    bool is_right = !file->part_name || is_a(env, file->java, tfos__hadoop.hdfs_writer_class);
    if (!is_right)
        give_up(file, env);
    tfos__io_jvm_leave(env);
    if (is_right)
        return TFOS_OK;
    tfos__free(file->part_name);
    file->part_name = NULL;
    return open_java(file, file->name, &tfos__hadoop.system_create, "write to", err);
}

// Where the file's last writer was killed, asking to append is what begins the recovery of its last
// block, and is refused until that has ended.
static enum tfos_status open_end(struct hadoop_stream *file, struct tfos_error *err)
{
    struct tfos_file_info info;
    struct tfos_error own;
    err = err ? err : &own;
    TFOS__TRY(tfos__io_hadoop_look(NULL, file->name, &info, err));
    if (info.kind == TFOS_FILE_NONE)
        return open_early(file, err);
    for (int64_t deadline = tfos__deadline(RECOVERY_MS);;) {
        enum tfos_status status =
            open_java(file, file->name, &tfos__hadoop.system_append, "append to", err);
        if (status == TFOS_OK || err->os_errno != EAGAIN || tfos__remaining_ms(deadline) == 0)
            return status;
        poll(NULL, 0, RETRY_MS);
    }
}

static enum tfos_status open_to_write(struct hadoop_stream *file, enum tfos_file_writing how,
                                      struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    TFOS__TRY(tfos__io_hadoop_begin(&call, file->name, err));
    file->can_abort = can_abort(&call);
    file->is_hdfs = is_a(call.env, call.system, tfos__hadoop.hdfs_class);
    take_name(file, &call);
    (void)tfos__io_hadoop_end(&call, TFOS_OK);
    if (how == TFOS_FILE_REPLACE)
        return open_part(file, err);
    return how == TFOS_FILE_CREATE ? open_early(file, err) : open_end(file, err);
}

enum tfos_status tfos__io_hadoop_open_writer(struct tfos_file_system *system, const char *name,
                                             enum tfos_file_writing how, struct tfos_stream **out,
                                             struct tfos_error *err)
{
    struct hadoop_stream *file = make_stream(name, err);
    (void)system;
    if (!file)
        return TFOS_NO_MEMORY;
    file->base = (struct tfos_stream){
        .write = write_file, .flush = flush_file, .finish = finish_file, .close = close_writer};
    enum tfos_status status = open_to_write(file, how, err);
    if (status < 0) {
        free_stream(file);
        return refuse_folder(name, status, err);
    }
    *out = &file->base;
    return TFOS_OK;
}

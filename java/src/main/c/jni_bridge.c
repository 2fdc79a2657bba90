// SPDX-License-Identifier: Apache-2.0
// What is looked up once, when the library is loaded, and how text, errors and streams pass between
// C and Java. Bytes of a stream move through an array of the Java object's, a quarter of a MiB a
// call into Java. Of a source, [begin, end) of it is still to be read; of a sink, [0, end) is still
// to be written.
#include "jni_bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION JNI_VERSION_1_8

/// The exception's Python class.
#define CLASS_OK "Error"
#define CLASS_END "Error"
#define CLASS_AGAIN "Error"
#define CLASS_INVALID "InvalidError"
#define CLASS_NO_MEMORY "NoMemoryError"
#define CLASS_IO "IoError"
#define CLASS_NOT_FOUND "NotFoundError"
#define CLASS_CORRUPT "CorruptError"
#define CLASS_DENIED "DeniedError"
#define CLASS_TIMEOUT "TimedOutError"
#define CLASS_CLOSED "ClosedError"
#define CLASS_BUSY "BusyError"
#define CLASS_UNSUPPORTED "UnsupportedError"

// Written by JNI_OnLoad, before any native can be called.
static JavaVM *java_vm;
static jclass exception_class;   // global reference, for as long as the library is loaded
static jmethodID make_exception; // of exception_class, from bytes
static struct {
    jmethodID fill, can_seek, seek; // of org.tfos.ByteSource
    jmethodID drain, finish;        // of org.tfos.ByteSink
    jfieldID source_buffer, sink_buffer;
} ids;

/// False with an exception.
static bool find_stream_methods(JNIEnv *env)
{
    jclass source = (*env)->FindClass(env, "org/tfos/ByteSource");
    jclass sink = source ? (*env)->FindClass(env, "org/tfos/ByteSink") : NULL;

    return sink && (ids.fill = (*env)->GetMethodID(env, source, "fill", "()I")) &&
           (ids.can_seek = (*env)->GetMethodID(env, source, "canSeek", "()Z")) &&
           (ids.seek = (*env)->GetMethodID(env, source, "seek", "(J)V")) &&
           (ids.source_buffer = (*env)->GetFieldID(env, source, "buffer", "[B")) &&
           (ids.drain = (*env)->GetMethodID(env, sink, "drain", "(I)V")) &&
           (ids.finish = (*env)->GetMethodID(env, sink, "finish", "()V")) &&
           (ids.sink_buffer = (*env)->GetFieldID(env, sink, "buffer", "[B"));
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    JNIEnv *env = NULL;
    (void)reserved;

    if ((*vm)->GetEnv(vm, (void **)&env, VERSION) != JNI_OK)
        return JNI_ERR;
    java_vm = vm;
    jclass found = (*env)->FindClass(env, "org/tfos/TfosException");
    if (!found)
        return JNI_ERR;
    make_exception = (*env)->GetMethodID(env, found, "<init>", "([B)V");
    exception_class = (*env)->NewGlobalRef(env, found);
    return make_exception && exception_class && find_stream_methods(env) ? VERSION : JNI_ERR;
}

JNIEnv *tfos__jni_env(void)
{
    JNIEnv *env = NULL;

    return (*java_vm)->GetEnv(java_vm, (void **)&env, VERSION) == JNI_OK ? env : NULL;
}

static const char *class_of(enum tfos_status status)
{
    static const struct {
        enum tfos_status status;
        const char *name;
    } classes[] = {
#define X(name, value, text) {TFOS_##name, CLASS_##name},
        TFOS_STATUS_MAP(X)
#undef X
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (classes[i].status == status)
            return classes[i].name;
    return "Error";
}

bool tfos__jni_check(JNIEnv *env, enum tfos_status status, const struct tfos_error *err)
{
    char text[sizeof(err->message) + 64];

    if (status >= 0 || (*env)->ExceptionCheck(env))
        return status == TFOS_OK;
    snprintf(text, sizeof(text), "%s: %s", class_of(status),
             err->message[0] ? err->message : tfos_status_text(status));
    jbyteArray bytes = tfos__jni_bytes(env, text);
    jobject exception =
        bytes ? (*env)->NewObject(env, exception_class, make_exception, bytes) : NULL;
    if (exception)
        (*env)->Throw(env, exception);
    return false;
}

void *tfos__jni_alloc(JNIEnv *env, size_t size, const char *what)
{
    struct tfos_error err = {0};
    void *block = calloc(1, size);

    if (!block) {
        snprintf(err.message, sizeof(err.message), "java: no memory for %s", what);
        tfos__jni_check(env, TFOS_NO_MEMORY, &err);
    }
    return block;
}

jbyteArray tfos__jni_bytes(JNIEnv *env, const char *text)
{
    jsize size = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, size);

    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, size, (const jbyte *)text);
    return bytes;
}

char *tfos__jni_text(JNIEnv *env, jbyteArray bytes)
{
    jsize size = (*env)->GetArrayLength(env, bytes);
    char *text = tfos__jni_alloc(env, (size_t)size + 1, "a text");

    if (text)
        (*env)->GetByteArrayRegion(env, bytes, 0, size, (jbyte *)text);
    return text;
}

json_t *tfos__jni_json(JNIEnv *env, jbyteArray bytes, const char *what)
{
    struct tfos_error err = {0};
    json_error_t fault;
    char *text = tfos__jni_text(env, bytes);
    json_t *json = text ? json_loads(text, 0, &fault) : NULL;

    free(text);
    if (text && !json) {
        snprintf(err.message, sizeof(err.message), "java: %s: %s", what, fault.text);
        tfos__jni_check(env, TFOS_INVALID, &err);
    }
    return json;
}

enum tfos_status tfos__jni_write_rows(JNIEnv *env, struct tfos_result_rows *rows, jbyteArray buffer,
                                      jlong used, int64_t *size, struct tfos_error *err)
{
    jsize capacity = (*env)->GetArrayLength(env, buffer);
    jbyte *data = (*env)->GetPrimitiveArrayCritical(env, buffer, NULL);

    if (!data) {
        snprintf(err->message, sizeof(err->message), "java: no memory for results");
        return TFOS_NO_MEMORY;
    }
    enum tfos_status status = tfos_result_rows_next(rows, data + used, capacity - used, size, err);
    (*env)->ReleasePrimitiveArrayCritical(env, buffer, data, 0);
    return status;
}

// ---- streams

struct tfos__jni_stream {
    struct tfos_stream base;
    jobject object;   ///< the source or sink; global reference, owned
    jbyteArray array; ///< its buffer; global reference, owned
    jsize capacity;   ///< of the buffer
    jsize begin, end;
};

static enum tfos_status fail(struct tfos_error *err, enum tfos_status status, const char *text)
{
    if (err) {
        *err = (struct tfos_error){0};
        for (size_t i = 0; text[i] && i + 1 < sizeof(err->message); i++)
            err->message[i] = text[i];
    }
    return status;
}

/// NULL, and why in `*err`, where Java cannot be called.
static JNIEnv *enter(struct tfos_error *err)
{
    JNIEnv *env = tfos__jni_env();

    if (!env)
        fail(err, TFOS_IO, "java: a stream of Java's was used by a thread that is not Java's");
    else if ((*env)->ExceptionCheck(env))
        fail(err, TFOS_IO, "java: a stream was used after it had failed");
    else
        return env;
    return NULL;
}

/// After a call into Java.
static enum tfos_status leave(JNIEnv *env, struct tfos_error *err)
{
    return (*env)->ExceptionCheck(env) ? fail(err, TFOS_IO, "java: a stream failed by an exception")
                                       : TFOS_OK;
}

static enum tfos_status fill(JNIEnv *env, struct tfos__jni_stream *stream, struct tfos_error *err)
{
    jint count = (*env)->CallIntMethod(env, stream->object, ids.fill);
    enum tfos_status status = leave(env, err);

    if (status == TFOS_OK) {
        stream->begin = 0;
        stream->end = count > 0 ? count : 0;
        status = count > 0 ? TFOS_OK : TFOS_END;
    }
    return status;
}

static enum tfos_status read_source(struct tfos_stream *base, void *data, size_t size,
                                    size_t *count, struct tfos_error *err)
{
    struct tfos__jni_stream *stream = (struct tfos__jni_stream *)base;
    JNIEnv *env = enter(err);
    enum tfos_status status = env ? TFOS_OK : TFOS_IO;

    if (status == TFOS_OK && stream->begin == stream->end)
        status = fill(env, stream, err);
    if (status != TFOS_OK)
        return status;
    jsize have = stream->end - stream->begin, part = size < (size_t)have ? (jsize)size : have;
    (*env)->GetByteArrayRegion(env, stream->array, stream->begin, part, data);
    stream->begin += part;
    *count = (size_t)part;
    return TFOS_OK;
}

static enum tfos_status seek_source(struct tfos_stream *base, uint64_t offset,
                                    struct tfos_error *err)
{
    struct tfos__jni_stream *stream = (struct tfos__jni_stream *)base;
    JNIEnv *env = enter(err);

    if (!env)
        return TFOS_IO;
    if (offset > INT64_MAX)
        return fail(err, TFOS_INVALID, "java: a stream has no byte behind 2^63 - 1");
    stream->begin = stream->end = 0;
    (*env)->CallVoidMethod(env, stream->object, ids.seek, (jlong)offset);
    return leave(env, err);
}

static enum tfos_status drain(JNIEnv *env, struct tfos__jni_stream *stream, struct tfos_error *err)
{
    jint size = stream->end;

    stream->end = 0;
    if (size == 0)
        return TFOS_OK;
    (*env)->CallVoidMethod(env, stream->object, ids.drain, size);
    return leave(env, err);
}

static enum tfos_status write_sink(struct tfos_stream *base, const void *data, size_t size,
                                   struct tfos_error *err)
{
    struct tfos__jni_stream *stream = (struct tfos__jni_stream *)base;
    const jbyte *bytes = data;
    JNIEnv *env = enter(err);
    enum tfos_status status = env ? TFOS_OK : TFOS_IO;

    while (status == TFOS_OK && size > 0) {
        jsize room = stream->capacity - stream->end;
        jsize part = size < (size_t)room ? (jsize)size : room;
        (*env)->SetByteArrayRegion(env, stream->array, stream->end, part, bytes);
        stream->end += part;
        bytes += part;
        size -= (size_t)part;
        if (stream->end == stream->capacity)
            status = drain(env, stream, err);
    }
    return status;
}

static enum tfos_status finish_sink(struct tfos_stream *base, struct tfos_error *err)
{
    struct tfos__jni_stream *stream = (struct tfos__jni_stream *)base;
    JNIEnv *env = enter(err);
    enum tfos_status status = env ? drain(env, stream, err) : TFOS_IO;

    if (status != TFOS_OK)
        return status;
    (*env)->CallVoidMethod(env, stream->object, ids.finish);
    return leave(env, err);
}

// Deleting references is allowed while an exception is on its way.
static void close_stream(struct tfos_stream *base)
{
    struct tfos__jni_stream *stream = (struct tfos__jni_stream *)base;
    JNIEnv *env = tfos__jni_env();

    if (env) {
        (*env)->DeleteGlobalRef(env, stream->object);
        (*env)->DeleteGlobalRef(env, stream->array);
    }
    free(stream);
}

static enum tfos_status open_stream(JNIEnv *env, jobject object, jfieldID buffer,
                                    struct tfos__jni_stream **out, struct tfos_error *err)
{
    jobject array = (*env)->GetObjectField(env, object, buffer);
    struct tfos__jni_stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return fail(err, TFOS_NO_MEMORY, "java: no memory for a stream");
    stream->base.close = close_stream;
    stream->object = (*env)->NewGlobalRef(env, object);
    stream->array = (*env)->NewGlobalRef(env, array);
    if (!stream->object || !stream->array) {
        close_stream(&stream->base);
        return fail(err, TFOS_NO_MEMORY, "java: no memory for a stream");
    }
    stream->capacity = (*env)->GetArrayLength(env, array);
    *out = stream;
    return TFOS_OK;
}

enum tfos_status tfos__jni_stream_open_source(JNIEnv *env, jobject source, struct tfos_stream **out,
                                              struct tfos_error *err)
{
    struct tfos__jni_stream *stream = NULL;
    enum tfos_status status = open_stream(env, source, ids.source_buffer, &stream, err);

    if (status != TFOS_OK)
        return status;
    stream->base.read = read_source;
    if ((*env)->CallBooleanMethod(env, source, ids.can_seek))
        stream->base.seek = seek_source;
    *out = &stream->base;
    return TFOS_OK;
}

enum tfos_status tfos__jni_stream_open_sink(JNIEnv *env, jobject sink, struct tfos_stream **out,
                                            struct tfos_error *err)
{
    struct tfos__jni_stream *stream = NULL;
    enum tfos_status status = open_stream(env, sink, ids.sink_buffer, &stream, err);

    if (status != TFOS_OK)
        return status;
    stream->base.write = write_sink;
    stream->base.finish = finish_sink;
    *out = &stream->base;
    return TFOS_OK;
}

enum tfos_status tfos__jni_stream_unrange(struct tfos_stream *stream, enum tfos_status status,
                                          struct tfos_record_reader_options *options,
                                          struct tfos_error *err)
{
    if (status != TFOS_UNSUPPORTED || options->begin + options->end == 0)
        return status;
    if (options->begin > 0)
        return TFOS_END;
    options->end = 0;
    return stream->seek ? stream->seek(stream, 0, err) : status;
}

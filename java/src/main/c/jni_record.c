// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.RecordNative: records in batches, in memory that Java sees without a
// copy.
#include <org_tfos_RecordNative.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/record.h>

#include "jni_bridge.h"
#include "jni_stream.h"

#define BATCH_RECORDS 1024      // as in RawRecordReader.java
#define FIRST_SIZE 12           // bytes, as in ByteSource.java
#define STAGE_SIZE (256u << 10) // bytes

struct input {
    struct tfos_stream *stream;        ///< owned
    struct tfos_record_reader *reader; ///< owned
    jobject listener;                  ///< RawRecordReader; reference of the call that is on
    jmethodID note_damage;             ///< of that
    size_t count, given;               ///< views, and how many of them Java has got
    struct tfos_view views[BATCH_RECORDS];
};

struct output {
    struct tfos_stream *stream;        ///< owned
    struct tfos_record_writer *writer; ///< owned
    uint8_t stage[STAGE_SIZE];
};

static void throw_no_memory(JNIEnv *env)
{
    struct tfos_error err = {.message = "java: no memory for a TFRecord file"};

    tfos__jni_throw(env, TFOS_NO_MEMORY, &err);
}

// ---- reading

static void note_damage(void *context, const struct tfos_record_damage *damage)
{
    struct input *input = context;
    JNIEnv *env = tfos__jni_env();
    jbyteArray message = (*env)->ExceptionCheck(env) ? NULL : tfos__jni_bytes(env, damage->message);

    if (!message)
        return;
    (*env)->CallVoidMethod(env, input->listener, input->note_damage, (jlong)damage->size, message);
    (*env)->DeleteLocalRef(env, message);
}

static void close_input(struct input *input)
{
    tfos_record_reader_close(input->reader);
    tfos_stream_close(input->stream);
    free(input);
}

/// END: no record of the file belongs to the range.
static enum tfos_status open_records(struct input *input,
                                     struct tfos_record_reader_options *options,
                                     struct tfos_error *err)
{
    struct tfos_stream *stream = input->stream;
    enum tfos_status status = tfos_record_reader_open(stream, options, &input->reader, err);

    // So it is with a compressed file and a range.
    if (status != TFOS_UNSUPPORTED)
        return status;
    if (options->begin > 0)
        return TFOS_END;
    options->end = 0;
    status = stream->seek ? stream->seek(stream, 0, err) : status;
    return status == TFOS_OK ? tfos_record_reader_open(stream, options, &input->reader, err)
                             : status;
}

JNIEXPORT jlong JNICALL Java_org_tfos_RecordNative_openReader(JNIEnv *env, jclass class,
                                                              jobject source, jbyteArray name,
                                                              jint mode, jlongArray limits,
                                                              jobject listener)
{
    enum { BEGIN, END, MAX_RECORD_SIZE, COUNT };
    jlong numbers[COUNT] = {0};
    struct tfos_error err = {0};
    struct input *input = calloc(1, sizeof *input);
    char *text = input ? tfos__jni_text(env, name) : NULL;
    (void)class;

    if (!text) {
        free(input);
        throw_no_memory(env);
        return 0;
    }
    (*env)->GetLongArrayRegion(env, limits, 0, COUNT, numbers);
    struct tfos_record_reader_options options = {
        .mode = (enum tfos_record_mode)mode,
        .name = text,
        .begin = (uint64_t)numbers[BEGIN],
        .end = (uint64_t)numbers[END],
        .max_record_size = (uint64_t)numbers[MAX_RECORD_SIZE],
        .on_damage = note_damage,
        .context = input,
    };
    input->listener = listener;
    input->note_damage =
        (*env)->GetMethodID(env, (*env)->GetObjectClass(env, listener), "noteDamage", "(J[B)V");
    enum tfos_status status = input->note_damage
                                  ? tfos__jni_stream_open_source(env, source, &input->stream, &err)
                                  : TFOS_INVALID;
    if (status == TFOS_OK)
        status = open_records(input, &options, &err);
    free(text);
    if (status == TFOS_OK)
        return tfos__jni_handle(input);
    close_input(input);
    if (status < 0)
        tfos__jni_throw(env, status, &err);
    return 0;
}

JNIEXPORT jboolean JNICALL Java_org_tfos_RecordNative_isForCodec(JNIEnv *env, jclass class,
                                                                 jbyteArray name, jbyteArray first)
{
    jbyte bytes[FIRST_SIZE] = {0};
    jsize size = (*env)->GetArrayLength(env, first);
    char *text = tfos__jni_text(env, name);
    (void)class;

    if (!text) {
        throw_no_memory(env);
        return JNI_FALSE;
    }
    size = size < FIRST_SIZE ? size : FIRST_SIZE;
    (*env)->GetByteArrayRegion(env, first, 0, size, bytes);
    bool is_for_codec = tfos_record_is_for_codec(text, (struct tfos_view){bytes, (size_t)size});
    free(text);
    return is_for_codec ? JNI_TRUE : JNI_FALSE;
}

/// Shows Java the views from `given` on, as far as a ByteBuffer reaches.
static jobject show(JNIEnv *env, struct input *input, jintArray places)
{
    const struct tfos_view *first = &input->views[input->given];
    const uint8_t *base = first->data;
    jint numbers[1 + 2 * BATCH_RECORDS];
    size_t count = 0, size = 0;

    for (; input->given + count < input->count; count++) {
        size_t begin = (size_t)((const uint8_t *)first[count].data - base);
        if (begin + first[count].size > INT32_MAX)
            break;
        size = begin + first[count].size;
        numbers[1 + 2 * count] = (jint)begin;
        numbers[2 + 2 * count] = (jint)first[count].size;
    }
    numbers[0] = (jint)count;
    input->given += count;
    (*env)->SetIntArrayRegion(env, places, 0, (jsize)(1 + 2 * count), numbers);
    return (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)base, (jlong)size);
}

JNIEXPORT jobject JNICALL Java_org_tfos_RecordNative_next(JNIEnv *env, jclass class, jlong handle,
                                                          jintArray places, jobject listener)
{
    struct input *input = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    (void)class;

    input->listener = listener;
    if (input->given == input->count) {
        input->given = input->count = 0;
        status = tfos_record_reader_next_batch(input->reader, input->views, BATCH_RECORDS,
                                               &input->count, &err);
    }
    if (status < 0)
        tfos__jni_throw(env, status, &err);
    return status == TFOS_OK && !(*env)->ExceptionCheck(env) ? show(env, input, places) : NULL;
}

JNIEXPORT void JNICALL Java_org_tfos_RecordNative_closeReader(JNIEnv *env, jclass class,
                                                              jlong handle)
{
    (void)env;
    (void)class;
    close_input(tfos__jni_pointer(handle));
}

// ---- writing

static void close_output(struct output *output)
{
    tfos_record_writer_close(output->writer);
    tfos_stream_close(output->stream);
    free(output);
}

JNIEXPORT jlong JNICALL Java_org_tfos_RecordNative_openWriter(JNIEnv *env, jclass class,
                                                              jobject sink, jint compression,
                                                              jint level)
{
    struct tfos_record_writer_options options = {
        .compression = (enum tfos_compression)compression,
        .level = level,
    };
    struct tfos_error err = {0};
    struct output *output = calloc(1, sizeof *output);
    (void)class;

    if (!output) {
        throw_no_memory(env);
        return 0;
    }
    enum tfos_status status = tfos__jni_stream_open_sink(env, sink, &output->stream, &err);
    if (status == TFOS_OK)
        status = tfos_record_writer_open(output->stream, &options, &output->writer, &err);
    if (status == TFOS_OK)
        return tfos__jni_handle(output);
    tfos__jni_throw(env, status, &err);
    close_output(output);
    return 0;
}

JNIEXPORT jobject JNICALL Java_org_tfos_RecordNative_stage(JNIEnv *env, jclass class, jlong handle)
{
    struct output *output = tfos__jni_pointer(handle);
    (void)class;

    return (*env)->NewDirectByteBuffer(env, output->stage, STAGE_SIZE);
}

static void append_records(JNIEnv *env, struct output *output, const struct tfos_view *records,
                           size_t count)
{
    struct tfos_error err = {0};
    enum tfos_status status = tfos_record_writer_append(output->writer, records, count, &err);

    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_RecordNative_append(JNIEnv *env, jclass class, jlong handle,
                                                         jint size)
{
    struct output *output = tfos__jni_pointer(handle);
    struct tfos_view records[256];
    size_t count = 0;
    (void)class;

    for (jint at = 0; at < size && !(*env)->ExceptionCheck(env);) {
        int32_t record_size;
        memcpy(&record_size, output->stage + at, sizeof record_size);
        at += (jint)sizeof record_size;
        records[count++] = (struct tfos_view){output->stage + at, (size_t)record_size};
        at += record_size;
        if (at == size || count == sizeof records / sizeof records[0]) {
            append_records(env, output, records, count);
            count = 0;
        }
    }
}

JNIEXPORT void JNICALL Java_org_tfos_RecordNative_appendLarge(JNIEnv *env, jclass class,
                                                              jlong handle, jbyteArray data,
                                                              jint offset, jint size)
{
    struct tfos_view record = {malloc((size_t)size), (size_t)size};
    (void)class;

    if (!record.data) {
        throw_no_memory(env);
        return;
    }
    (*env)->GetByteArrayRegion(env, data, offset, size, (jbyte *)(uintptr_t)record.data);
    if (!(*env)->ExceptionCheck(env))
        append_records(env, tfos__jni_pointer(handle), &record, 1);
    free((void *)(uintptr_t)record.data);
}

JNIEXPORT void JNICALL Java_org_tfos_RecordNative_finish(JNIEnv *env, jclass class, jlong handle)
{
    struct output *output = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    enum tfos_status status = tfos_record_writer_finish(output->writer, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_RecordNative_closeWriter(JNIEnv *env, jclass class,
                                                              jlong handle)
{
    (void)env;
    (void)class;
    close_output(tfos__jni_pointer(handle));
}

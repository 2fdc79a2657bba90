// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.RecordNative: records in batches, in memory that Java sees without a
// copy.
#include <org_tfos_RecordNative.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/record.h>

#include "jni_bridge.h"

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

TFOS__NATIVE(jlong, RecordNative, openReader, jobject source, jbyteArray name, jint mode,
             jlongArray limits, jobject listener)
{
    enum { BEGIN, END, MAX_RECORD_SIZE, COUNT };
    jlong numbers[COUNT] = {0};
    struct tfos_error err = {0};
    struct input *input = tfos__jni_alloc(env, sizeof(*input), "a TFRecord file");
    char *text = input ? tfos__jni_text(env, name) : NULL;

    if (!text) {
        free(input);
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
        status = tfos_record_reader_open(input->stream, &options, &input->reader, &err);
    if (status == TFOS_UNSUPPORTED) {
        status = tfos__jni_stream_unrange(input->stream, status, &options, &err);
        if (status == TFOS_OK)
            status = tfos_record_reader_open(input->stream, &options, &input->reader, &err);
    }
    free(text);
    if (tfos__jni_check(env, status, &err))
        return tfos__jni_handle(input);
    close_input(input);
    return 0;
}

TFOS__NATIVE(jboolean, RecordNative, isForCodec, jbyteArray name, jbyteArray first)
{
    jbyte bytes[FIRST_SIZE] = {0};
    jsize size = (*env)->GetArrayLength(env, first);
    char *text = tfos__jni_text(env, name);

    if (!text)
        return JNI_FALSE;
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

TFOS__NATIVE(jobject, RecordNative, next, jlong handle, jintArray places, jobject listener)
{
    struct input *input = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    input->listener = listener;
    if (input->given == input->count) {
        input->given = input->count = 0;
        status = tfos_record_reader_next_batch(input->reader, input->views, BATCH_RECORDS,
                                               &input->count, &err);
    }
    return tfos__jni_check(env, status, &err) && !(*env)->ExceptionCheck(env)
               ? show(env, input, places)
               : NULL;
}

TFOS__NATIVE(void, RecordNative, closeReader, jlong handle)
{
    close_input(tfos__jni_pointer(handle));
}

// ---- writing

static void close_output(struct output *output)
{
    tfos_record_writer_close(output->writer);
    tfos_stream_close(output->stream);
    free(output);
}

TFOS__NATIVE(jlong, RecordNative, openWriter, jobject sink, jint compression, jint level)
{
    struct tfos_record_writer_options options = {
        .compression = (enum tfos_compression)compression,
        .level = level,
    };
    struct tfos_error err = {0};
    struct output *output = tfos__jni_alloc(env, sizeof(*output), "a TFRecord file");

    if (!output)
        return 0;
    enum tfos_status status = tfos__jni_stream_open_sink(env, sink, &output->stream, &err);
    if (status == TFOS_OK)
        status = tfos_record_writer_open(output->stream, &options, &output->writer, &err);
    if (tfos__jni_check(env, status, &err))
        return tfos__jni_handle(output);
    close_output(output);
    return 0;
}

TFOS__NATIVE(jobject, RecordNative, stage, jlong handle)
{
    struct output *output = tfos__jni_pointer(handle);

    return (*env)->NewDirectByteBuffer(env, output->stage, STAGE_SIZE);
}

static void append_records(JNIEnv *env, struct output *output, const struct tfos_view *records,
                           size_t count)
{
    struct tfos_error err = {0};

    tfos__jni_check(env, tfos_record_writer_append(output->writer, records, count, &err), &err);
}

TFOS__NATIVE(void, RecordNative, append, jlong handle, jint size)
{
    struct output *output = tfos__jni_pointer(handle);
    struct tfos_view records[256];
    size_t count = 0;

    for (jint at = 0; at < size && !(*env)->ExceptionCheck(env);) {
        int32_t record_size;
        memcpy(&record_size, output->stage + at, sizeof(record_size));
        at += (jint)sizeof(record_size);
        records[count++] = (struct tfos_view){output->stage + at, (size_t)record_size};
        at += record_size;
        if (at == size || count == sizeof(records) / sizeof(records[0])) {
            append_records(env, output, records, count);
            count = 0;
        }
    }
}

TFOS__NATIVE(void, RecordNative, appendLarge, jlong handle, jbyteArray data, jint offset, jint size)
{
    void *copy = tfos__jni_alloc(env, (size_t)size, "a record");

    if (!copy)
        return;
    (*env)->GetByteArrayRegion(env, data, offset, size, copy);
    if (!(*env)->ExceptionCheck(env))
        append_records(env, tfos__jni_pointer(handle), &(struct tfos_view){copy, (size_t)size}, 1);
    free(copy);
}

TFOS__NATIVE(void, RecordNative, finish, jlong handle)
{
    struct output *output = tfos__jni_pointer(handle);
    struct tfos_error err = {0};

    tfos__jni_check(env, tfos_record_writer_finish(output->writer, &err), &err);
}

TFOS__NATIVE(void, RecordNative, closeWriter, jlong handle)
{
    close_output(tfos__jni_pointer(handle));
}

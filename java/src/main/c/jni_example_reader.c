// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.ExampleReaderNative.
#include <assert.h>
#include <jni.h>
#include <org_tfos_ExampleReaderNative.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/example_file.h>

#include "jni_bridge.h"
#include "jni_stream.h"

static_assert(org_tfos_ExampleReaderNative_STRICT == TFOS_RECORD_STRICT, "as Java has it");
static_assert(org_tfos_ExampleReaderNative_SKIP_RECORD == TFOS_RECORD_SKIP_RECORD, "as Java does");
static_assert(org_tfos_ExampleReaderNative_SKIP_FILE == TFOS_RECORD_SKIP_FILE, "as Java has it");

struct reading {
    struct tfos_stream *stream;         ///< owned
    struct tfos_example_reader *reader; ///< owned
    size_t damage_size;
    char damage[8192]; ///< what was passed over since it was asked for: lines, one cut if need be
};

static void note_damage(void *context, const struct tfos_record_damage *damage)
{
    struct reading *reading = context;
    size_t room = sizeof reading->damage - reading->damage_size;
    size_t size = strnlen(damage->message, room > 1 ? room - 1 : 0);

    if (size == 0)
        return;
    memcpy(reading->damage + reading->damage_size, damage->message, size);
    reading->damage_size += size;
    reading->damage[reading->damage_size++] = '\n';
}

static void close_reading(struct reading *reading)
{
    tfos_example_reader_close(reading->reader);
    tfos_stream_close(reading->stream);
    free(reading);
}

/// END: it is compressed, and another range's.
static enum tfos_status open_reader(struct reading *reading, const struct ArrowSchema *schema,
                                    struct tfos_example_reader_options *options,
                                    struct tfos_error *err)
{
    struct tfos_stream *stream = reading->stream;
    enum tfos_status status =
        tfos_example_reader_open(stream, schema, options, &reading->reader, err);
    if (status != TFOS_UNSUPPORTED || options->record.begin + options->record.end == 0)
        return status;
    // The driver has checked the schema, so this is about the file.
    if (options->record.begin > 0)
        return TFOS_END;
    options->record.end = 0;
    status = stream->seek ? stream->seek(stream, 0, err) : status;
    return status < 0 ? status
                      : tfos_example_reader_open(stream, schema, options, &reading->reader, err);
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleReaderNative_check(JNIEnv *env, jclass class,
                                                               jlong schema, jint type)
{
    const struct tfos_example_decoder_options options = {.type = (enum tfos_record_type)type,
                                                         .type_names = TFOS_TYPE_NAMES_SPARK};
    struct tfos_error err = {0};
    struct tfos_example_decoder *decoder = NULL;
    enum tfos_status status =
        tfos_example_decoder_open(tfos__jni_pointer(schema), &options, &decoder, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
    tfos_example_decoder_close(decoder);
}

JNIEXPORT jlong JNICALL Java_org_tfos_ExampleReaderNative_open(JNIEnv *env, jclass class,
                                                               jobject source, jbyteArray name,
                                                               jlong schema, jint type, jint mode,
                                                               jboolean ignore_case,
                                                               jlongArray limits)
{
    struct tfos_error err = {0};
    jlong numbers[4]; // begin, end, rows, size
    (*env)->GetLongArrayRegion(env, limits, 0, 4, numbers);
    char *name_text = tfos__jni_text(env, name);
    struct reading *reading = calloc(1, sizeof *reading);
    enum tfos_status status = name_text && reading ? TFOS_OK : TFOS_NO_MEMORY;
    (void)class;

    if (status == TFOS_OK)
        status = tfos__jni_stream_open_source(env, source, &reading->stream, &err);
    if (status == TFOS_OK) {
        struct tfos_example_reader_options options = {
            .record = {.mode = (enum tfos_record_mode)mode,
                       .name = name_text,
                       .begin = (uint64_t)numbers[0],
                       .end = (uint64_t)numbers[1],
                       .on_damage = note_damage,
                       .context = reading},
            .type = (enum tfos_record_type)type,
            .batch_rows = numbers[2],
            .batch_size = numbers[3],
            .ignore_case = ignore_case,
            .type_names = TFOS_TYPE_NAMES_SPARK};
        status = open_reader(reading, tfos__jni_pointer(schema), &options, &err);
    }
    free(name_text);
    if (status < 0)
        tfos__jni_throw(env, status, &err);
    if (status == TFOS_OK)
        return tfos__jni_handle(reading);
    if (reading)
        close_reading(reading);
    return 0;
}

JNIEXPORT jboolean JNICALL Java_org_tfos_ExampleReaderNative_next(JNIEnv *env, jclass class,
                                                                  jlong handle, jlong array)
{
    struct tfos_error err = {0};
    struct reading *reading = tfos__jni_pointer(handle);
    enum tfos_status status =
        tfos_example_reader_next(reading->reader, tfos__jni_pointer(array), &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
    return status == TFOS_OK;
}

JNIEXPORT jbyteArray JNICALL Java_org_tfos_ExampleReaderNative_takeDamage(JNIEnv *env, jclass class,
                                                                          jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);
    (void)class;

    if (reading->damage_size == 0)
        return NULL;
    reading->damage[reading->damage_size - 1] = '\0'; // the last line's end
    reading->damage_size = 0;
    return tfos__jni_bytes(env, reading->damage);
}

JNIEXPORT jlong JNICALL Java_org_tfos_ExampleReaderNative_damageCount(JNIEnv *env, jclass class,
                                                                      jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);
    (void)env, (void)class;

    return (jlong)tfos_example_reader_get_counts(reading->reader).damages;
}

JNIEXPORT jlong JNICALL Java_org_tfos_ExampleReaderNative_skippedBytes(JNIEnv *env, jclass class,
                                                                       jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);
    (void)env, (void)class;

    return (jlong)tfos_example_reader_get_counts(reading->reader).skipped_bytes;
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleReaderNative_close(JNIEnv *env, jclass class,
                                                               jlong handle)
{
    (void)env, (void)class;
    if (handle)
        close_reading(tfos__jni_pointer(handle));
}

// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.ExampleWriterNative. Invariant: a writing's batch has no rows between two
// calls.
#include <jni.h>
#include <org_tfos_ExampleWriterNative.h>
#include <stdlib.h>
#include <tfos/example_file.h>
#include <tfos/unsafe_row.h>

#include "jni_bridge.h"
#include "jni_stream.h"

struct writing {
    struct tfos_stream *stream;         ///< owned
    struct tfos_row_batch *batch;       ///< owned
    struct tfos_example_writer *writer; ///< owned
};

static void close_writing(struct writing *writing)
{
    tfos_example_writer_close(writing->writer);
    tfos_row_batch_close(writing->batch);
    tfos_stream_close(writing->stream);
    free(writing);
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleWriterNative_check(JNIEnv *env, jclass class,
                                                               jlong schema, jint type)
{
    const struct tfos_example_encoder_options options = {.type = (enum tfos_record_type)type,
                                                         .type_names = TFOS_TYPE_NAMES_SPARK};
    struct tfos_error err = {0};
    struct tfos_example_encoder *encoder = NULL;
    enum tfos_status status =
        tfos_example_encoder_open(tfos__jni_pointer(schema), &options, &encoder, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
    tfos_example_encoder_close(encoder);
}

JNIEXPORT jlong JNICALL Java_org_tfos_ExampleWriterNative_open(JNIEnv *env, jclass class,
                                                               jobject sink, jlong schema,
                                                               jint type, jint compression,
                                                               jboolean is_exact)
{
    const struct tfos_example_writer_options options = {
        .record = {.compression = (enum tfos_compression)compression},
        .example = {.type = (enum tfos_record_type)type,
                    .exact = is_exact,
                    .type_names = TFOS_TYPE_NAMES_SPARK}};
    const struct ArrowSchema *columns = tfos__jni_pointer(schema);
    struct tfos_error err = {0};
    struct writing *writing = calloc(1, sizeof *writing);
    enum tfos_status status = writing ? TFOS_OK : TFOS_NO_MEMORY;
    (void)class;

    if (status == TFOS_OK)
        status = tfos_row_batch_open(columns, &writing->batch, &err);
    if (status == TFOS_OK)
        status = tfos__jni_stream_open_sink(env, sink, &writing->stream, &err);
    if (status == TFOS_OK)
        status =
            tfos_example_writer_open(writing->stream, columns, &options, &writing->writer, &err);
    if (status == TFOS_OK)
        return tfos__jni_handle(writing);
    tfos__jni_throw(env, status, &err);
    if (writing)
        close_writing(writing);
    return 0;
}

/// Rows to columns, and these to the file.
static enum tfos_status append_rows(struct writing *writing, const void *data, int64_t size,
                                    int64_t row_count, struct tfos_error *err)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    enum tfos_status status = tfos_row_batch_append(writing->batch, data, size, row_count, err);

    if (status == TFOS_OK) {
        tfos_row_batch_show(writing->batch, &schema, &array);
        status = tfos_example_writer_append(writing->writer, array, err);
    }
    tfos_row_batch_clear(writing->batch);
    return status;
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleWriterNative_append(JNIEnv *env, jclass class,
                                                                jlong handle, jlong address,
                                                                jlong size, jlong row_count)
{
    struct tfos_error err = {0};
    enum tfos_status status =
        append_rows(tfos__jni_pointer(handle), tfos__jni_pointer(address), size, row_count, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleWriterNative_finish(JNIEnv *env, jclass class,
                                                                jlong handle)
{
    struct tfos_error err = {0};
    struct writing *writing = tfos__jni_pointer(handle);
    enum tfos_status status = tfos_example_writer_finish(writing->writer, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT jlongArray JNICALL Java_org_tfos_ExampleWriterNative_losses(JNIEnv *env, jclass class,
                                                                      jlong handle)
{
    struct writing *writing = tfos__jni_pointer(handle);
    size_t count = 0;
    const struct tfos_example_loss *losses = tfos_example_writer_losses(writing->writer, &count);
    jlongArray array = (*env)->NewLongArray(env, (jsize)(2 * count));
    (void)class;

    for (size_t i = 0; array && i < count; i++) {
        const jlong numbers[] = {(jlong)losses[i].rounded, (jlong)losses[i].infinite};
        (*env)->SetLongArrayRegion(env, array, (jsize)(2 * i), 2, numbers);
    }
    return array;
}

JNIEXPORT jbyteArray JNICALL Java_org_tfos_ExampleWriterNative_columnName(JNIEnv *env, jclass class,
                                                                          jlong handle, jint column)
{
    struct writing *writing = tfos__jni_pointer(handle);
    size_t count = 0;
    (void)class;

    return tfos__jni_bytes(env, tfos_example_writer_losses(writing->writer, &count)[column].column);
}

JNIEXPORT void JNICALL Java_org_tfos_ExampleWriterNative_close(JNIEnv *env, jclass class,
                                                               jlong handle)
{
    (void)env, (void)class;
    if (handle)
        close_writing(tfos__jni_pointer(handle));
}

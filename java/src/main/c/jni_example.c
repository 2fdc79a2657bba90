// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.ArrowNative, SchemaInferenceNative, ExampleReaderNative,
// ExampleWriterNative and RowEncoderNative: Examples as columns.
#include <assert.h>
#include <org_tfos_ArrowNative.h>
#include <org_tfos_ExampleReaderNative.h>
#include <org_tfos_ExampleWriterNative.h>
#include <org_tfos_RowEncoderNative.h>
#include <org_tfos_SchemaInferenceNative.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/example_file.h>
#include <tfos/memory.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>
#include <jni.h>

#include "jni_bridge.h"

static_assert(org_tfos_ExampleReaderNative_STRICT == TFOS_RECORD_STRICT, "as Java has it");
static_assert(org_tfos_ExampleReaderNative_SKIP_RECORD == TFOS_RECORD_SKIP_RECORD, "as Java does");
static_assert(org_tfos_ExampleReaderNative_SKIP_FILE == TFOS_RECORD_SKIP_FILE, "as Java has it");

// ---- ArrowNative

TFOS__NATIVE(void, ArrowNative, releaseArray, jlong address)
{
    struct ArrowArray *array = tfos__jni_pointer(address);

    if (array->release)
        array->release(array);
}

TFOS__NATIVE(void, ArrowNative, releaseSchema, jlong address)
{
    struct ArrowSchema *schema = tfos__jni_pointer(address);

    if (schema->release)
        schema->release(schema);
}

TFOS__NATIVE(void, ArrowNative, parseSchema, jbyteArray json, jlong address)
{
    struct tfos_error err = {0};
    char *text = tfos__jni_text(env, json);

    if (text)
        tfos__jni_check(env, tfos_spark_schema_parse(text, tfos__jni_pointer(address), &err), &err);
    free(text);
}

TFOS__NATIVE(jbyteArray, ArrowNative, typeText, jlong schema)
{
    char text[TFOS_TYPE_TEXT_SIZE];

    return tfos__jni_bytes(env, tfos_arrow_type_text(tfos__jni_pointer(schema),
                                                     TFOS_TYPE_NAMES_ARROW, text, sizeof(text)));
}

// ---- SchemaInferenceNative: an inference lives for one call; between two it is JSON

/// The inference as bytes, or NULL with an exception. Ends it.
static jbyteArray save_inference(JNIEnv *env, enum tfos_status status,
                                 struct tfos_schema_inference *inference, struct tfos_error *err)
{
    char *json = NULL;

    if (status == TFOS_OK)
        status = tfos_schema_inference_save(inference, &json, err);
    jbyteArray bytes = tfos__jni_check(env, status, err) ? tfos__jni_bytes(env, json) : NULL;
    tfos_free(json);
    tfos_schema_inference_close(inference);
    return bytes;
}

/// The inference in the bytes; NULL with an exception.
static struct tfos_schema_inference *load_inference(JNIEnv *env, jbyteArray bytes)
{
    struct tfos_error err = {0};
    struct tfos_schema_inference *inference = NULL;
    char *json = tfos__jni_text(env, bytes);

    if (json)
        tfos__jni_check(env, tfos_schema_inference_load(json, &inference, &err), &err);
    free(json);
    return inference;
}

TFOS__NATIVE(jbyteArray, SchemaInferenceNative, read, jobject source, jbyteArray name, jint type,
             jint mode, jlong limit)
{
    struct tfos_error err = {0};
    struct tfos_stream *stream = NULL;
    struct tfos_schema_inference *inference = NULL;
    const struct tfos_record_reader_options options = {.mode = (enum tfos_record_mode)mode,
                                                       .name = tfos__jni_text(env, name)};
    uint64_t seen;

    if (!options.name)
        return NULL;
    enum tfos_status status =
        tfos_schema_inference_open((enum tfos_record_type)type, &inference, &err);
    if (status == TFOS_OK)
        status = tfos__jni_stream_open_source(env, source, &stream, &err);
    if (status == TFOS_OK)
        status =
            tfos_schema_inference_read(inference, stream, &options, (uint64_t)limit, &seen, &err);
    tfos_stream_close(stream);
    free((char *)options.name);
    return save_inference(env, status, inference, &err);
}

TFOS__NATIVE(jbyteArray, SchemaInferenceNative, merge, jbyteArray inference_json,
             jbyteArray other_json)
{
    struct tfos_error err = {0};
    struct tfos_schema_inference *inference = load_inference(env, inference_json);
    struct tfos_schema_inference *other = inference ? load_inference(env, other_json) : NULL;

    if (!other) {
        tfos_schema_inference_close(inference);
        return NULL;
    }
    enum tfos_status status = tfos_schema_inference_merge(inference, other, &err);
    tfos_schema_inference_close(other);
    return save_inference(env, status, inference, &err);
}

TFOS__NATIVE(void, SchemaInferenceNative, schema, jbyteArray json, jlong schema)
{
    struct tfos_error err = {0};
    struct tfos_schema_inference *inference = load_inference(env, json);

    if (inference)
        tfos__jni_check(
            env, tfos_schema_inference_schema(inference, tfos__jni_pointer(schema), &err), &err);
    tfos_schema_inference_close(inference);
}

// ---- ExampleReaderNative

struct reading {
    struct tfos_stream *stream;         ///< owned
    struct tfos_example_reader *reader; ///< owned
    size_t damage_size;
    char damage[8192]; ///< what was skipped since it was asked for: lines, one cut if need be
};

static void note_damage(void *context, const struct tfos_record_damage *damage)
{
    struct reading *reading = context;
    size_t room = sizeof(reading->damage) - reading->damage_size;
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

TFOS__NATIVE(void, ExampleReaderNative, check, jlong schema, jint type)
{
    const struct tfos_example_decoder_options options = {.type = (enum tfos_record_type)type,
                                                         .type_names = TFOS_TYPE_NAMES_SPARK};
    struct tfos_error err = {0};
    struct tfos_example_decoder *decoder = NULL;

    tfos__jni_check(
        env, tfos_example_decoder_open(tfos__jni_pointer(schema), &options, &decoder, &err), &err);
    tfos_example_decoder_close(decoder);
}

TFOS__NATIVE(jlong, ExampleReaderNative, open, jobject source, jbyteArray name, jlong schema,
             jboolean ignore_case, jlongArray settings)
{
    enum { TYPE, MODE, BEGIN, END, ROWS, SIZE, COUNT };
    struct tfos_error err = {0};
    jlong numbers[COUNT];
    (*env)->GetLongArrayRegion(env, settings, 0, COUNT, numbers);
    struct reading *reading = tfos__jni_alloc(env, sizeof(*reading), "a TFRecord file");
    char *name_text = reading ? tfos__jni_text(env, name) : NULL;
    enum tfos_status status =
        name_text ? tfos__jni_stream_open_source(env, source, &reading->stream, &err)
                  : TFOS_NO_MEMORY;
    struct tfos_example_reader_options options = {
        .record = {.mode = (enum tfos_record_mode)numbers[MODE],
                   .name = name_text,
                   .begin = (uint64_t)numbers[BEGIN],
                   .end = (uint64_t)numbers[END],
                   .on_damage = note_damage,
                   .context = reading},
        .type = (enum tfos_record_type)numbers[TYPE],
        .batch_rows = numbers[ROWS],
        .batch_size = numbers[SIZE],
        .ignore_case = ignore_case,
        .type_names = TFOS_TYPE_NAMES_SPARK};

    if (status == TFOS_OK)
        status = tfos_example_reader_open(reading->stream, tfos__jni_pointer(schema), &options,
                                          &reading->reader, &err);
    // The driver has checked the schema, so this is about the file.
    if (status == TFOS_UNSUPPORTED) {
        status = tfos__jni_stream_unrange(reading->stream, status, &options.record, &err);
        if (status == TFOS_OK)
            status = tfos_example_reader_open(reading->stream, tfos__jni_pointer(schema), &options,
                                              &reading->reader, &err);
    }
    free(name_text);
    if (tfos__jni_check(env, status, &err))
        return tfos__jni_handle(reading);
    if (reading)
        close_reading(reading);
    return 0;
}

TFOS__NATIVE(jboolean, ExampleReaderNative, next, jlong handle, jlong array)
{
    struct tfos_error err = {0};
    struct reading *reading = tfos__jni_pointer(handle);

    return tfos__jni_check(
        env, tfos_example_reader_next(reading->reader, tfos__jni_pointer(array), &err), &err);
}

TFOS__NATIVE(jbyteArray, ExampleReaderNative, takeDamage, jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);

    if (reading->damage_size == 0)
        return NULL;
    reading->damage[reading->damage_size - 1] = '\0'; // the last line's end
    reading->damage_size = 0;
    return tfos__jni_bytes(env, reading->damage);
}

TFOS__NATIVE(jlong, ExampleReaderNative, damageCount, jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);

    return (jlong)tfos_example_reader_get_counts(reading->reader).damages;
}

TFOS__NATIVE(jlong, ExampleReaderNative, skippedBytes, jlong handle)
{
    struct reading *reading = tfos__jni_pointer(handle);

    return (jlong)tfos_example_reader_get_counts(reading->reader).skipped_bytes;
}

TFOS__NATIVE(void, ExampleReaderNative, close, jlong handle)
{
    if (handle)
        close_reading(tfos__jni_pointer(handle));
}

// ---- ExampleWriterNative: a writing's batch has no rows between two calls

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

TFOS__NATIVE(void, ExampleWriterNative, check, jlong schema, jint type)
{
    const struct tfos_example_encoder_options options = {.type = (enum tfos_record_type)type,
                                                         .type_names = TFOS_TYPE_NAMES_SPARK};
    struct tfos_error err = {0};
    struct tfos_example_encoder *encoder = NULL;

    tfos__jni_check(
        env, tfos_example_encoder_open(tfos__jni_pointer(schema), &options, &encoder, &err), &err);
    tfos_example_encoder_close(encoder);
}

TFOS__NATIVE(jlong, ExampleWriterNative, open, jobject sink, jlong schema, jint type,
             jint compression, jboolean is_exact)
{
    const struct tfos_example_writer_options options = {
        .record = {.compression = (enum tfos_compression)compression},
        .example = {.type = (enum tfos_record_type)type,
                    .exact = is_exact,
                    .type_names = TFOS_TYPE_NAMES_SPARK}};
    const struct ArrowSchema *columns = tfos__jni_pointer(schema);
    struct tfos_error err = {0};
    struct writing *writing = tfos__jni_alloc(env, sizeof(*writing), "a TFRecord file");

    if (!writing)
        return 0;
    enum tfos_status status = tfos_row_batch_open(columns, &writing->batch, &err);
    if (status == TFOS_OK)
        status = tfos__jni_stream_open_sink(env, sink, &writing->stream, &err);
    if (status == TFOS_OK)
        status =
            tfos_example_writer_open(writing->stream, columns, &options, &writing->writer, &err);
    if (tfos__jni_check(env, status, &err))
        return tfos__jni_handle(writing);
    close_writing(writing);
    return 0;
}

/// Rows to columns, and these to the file.
TFOS__NATIVE(void, ExampleWriterNative, append, jlong handle, jlong address, jlong size,
             jlong row_count)
{
    struct writing *writing = tfos__jni_pointer(handle);
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct tfos_error err = {0};
    enum tfos_status status =
        tfos_row_batch_append(writing->batch, tfos__jni_pointer(address), size, row_count, &err);

    if (status == TFOS_OK) {
        tfos_row_batch_show(writing->batch, &schema, &array);
        status = tfos_example_writer_append(writing->writer, array, &err);
    }
    tfos_row_batch_clear(writing->batch);
    tfos__jni_check(env, status, &err);
}

TFOS__NATIVE(void, ExampleWriterNative, finish, jlong handle)
{
    struct tfos_error err = {0};
    struct writing *writing = tfos__jni_pointer(handle);

    tfos__jni_check(env, tfos_example_writer_finish(writing->writer, &err), &err);
}

TFOS__NATIVE(jlongArray, ExampleWriterNative, losses, jlong handle)
{
    struct writing *writing = tfos__jni_pointer(handle);
    size_t count = 0;
    const struct tfos_example_loss *losses = tfos_example_writer_losses(writing->writer, &count);
    jlongArray array = (*env)->NewLongArray(env, (jsize)(2 * count));

    for (size_t i = 0; array && i < count; i++) {
        const jlong numbers[] = {(jlong)losses[i].rounded, (jlong)losses[i].infinite};
        (*env)->SetLongArrayRegion(env, array, (jsize)(2 * i), 2, numbers);
    }
    return array;
}

TFOS__NATIVE(jbyteArray, ExampleWriterNative, columnName, jlong handle, jint column)
{
    struct writing *writing = tfos__jni_pointer(handle);
    size_t count = 0;

    return tfos__jni_bytes(env, tfos_example_writer_losses(writing->writer, &count)[column].column);
}

TFOS__NATIVE(void, ExampleWriterNative, close, jlong handle)
{
    if (handle)
        close_writing(tfos__jni_pointer(handle));
}

// ---- RowEncoderNative: an encoding's batch has no rows between two calls

struct encoding {
    struct tfos_row_batch *batch;         ///< owned
    struct tfos_example_encoder *encoder; ///< owned
};

static void close_encoding(struct encoding *encoding)
{
    tfos_example_encoder_close(encoding->encoder);
    tfos_row_batch_close(encoding->batch);
    free(encoding);
}

TFOS__NATIVE(jlong, RowEncoderNative, open, jlong schema, jint type)
{
    const struct tfos_example_encoder_options options = {.type = (enum tfos_record_type)type,
                                                         .type_names = TFOS_TYPE_NAMES_SPARK};
    const struct ArrowSchema *columns = tfos__jni_pointer(schema);
    struct tfos_error err = {0};
    struct encoding *encoding = tfos__jni_alloc(env, sizeof(*encoding), "an encoder of rows");

    if (!encoding)
        return 0;
    enum tfos_status status = tfos_row_batch_open(columns, &encoding->batch, &err);
    if (status == TFOS_OK)
        status = tfos_example_encoder_open(columns, &options, &encoding->encoder, &err);
    if (tfos__jni_check(env, status, &err))
        return tfos__jni_handle(encoding);
    close_encoding(encoding);
    return 0;
}

TFOS__NATIVE(jbyteArray, RowEncoderNative, encode, jlong handle, jlong address, jlong size)
{
    struct encoding *encoding = tfos__jni_pointer(handle);
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    const struct tfos_view *record = NULL;
    struct tfos_view frames;
    struct tfos_error err = {0};
    jbyteArray bytes = NULL;
    enum tfos_status status =
        tfos_row_batch_append(encoding->batch, tfos__jni_pointer(address), size, 1, &err);

    if (status == TFOS_OK) {
        tfos_row_batch_show(encoding->batch, &schema, &array);
        status = tfos_example_encoder_encode(encoding->encoder, array, &frames, &record, &err);
    }
    if (tfos__jni_check(env, status, &err))
        bytes = (*env)->NewByteArray(env, (jsize)record->size);
    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, (jsize)record->size, record->data);
    tfos_row_batch_clear(encoding->batch);
    return bytes;
}

TFOS__NATIVE(void, RowEncoderNative, close, jlong handle)
{
    if (handle)
        close_encoding(tfos__jni_pointer(handle));
}

// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.Native: an attempt of a Spark task to feed one partition. Invariant: a
// feeder that was given out holds a batch without rows between two calls.
#include <jansson.h>
#include <jni.h>
#include <org_tfos_Native.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/feeder.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>
#include <tfos/version.h>

#include "jni_bridge.h"

struct feeding {
    struct tfos_feeder *feeder;   ///< owned
    struct tfos_row_batch *batch; ///< owned
    jobject context;              ///< global reference to the TaskContext; owned
    jmethodID is_interrupted;     ///< of the TaskContext
};

/// Asked by the library while it waits.
static bool ask_context(void *context)
{
    struct feeding *feeding = context;
    JNIEnv *env = tfos__jni_env();
    jboolean answer = (*env)->CallBooleanMethod(env, feeding->context, feeding->is_interrupted);

    return (*env)->ExceptionCheck(env) || answer;
}

// ---- opening

static enum tfos_status open_batch(const char *schema_json, struct tfos_row_batch **out,
                                   struct tfos_error *err)
{
    struct ArrowSchema schema;
    enum tfos_status status = tfos_spark_schema_parse(schema_json, &schema, err);

    if (status != TFOS_OK)
        return status;
    status = tfos_row_batch_open(&schema, out, err);
    schema.release(&schema);
    return status;
}

static enum tfos_status open_feeding(struct feeding *feeding, json_t *json,
                                     struct tfos_feeder_options *options, struct tfos_error *err)
{
    const char *schema = NULL;
    json_int_t feed = 0, timeout_ms = 0;
    json_error_t fault;

    if (json_unpack_ex(json, &fault, 0, "{s:s, s:s, s:s, s:s, s?s, s:I, s:I, s:s}", "address",
                       &options->address, "cluster_id", &options->cluster_id, "key", &options->key,
                       "queue", &options->queue, "job", &options->job, "feed", &feed, "timeout_ms",
                       &timeout_ms, "schema", &schema)) {
        snprintf(err->message, sizeof err->message, "java: the feeder's options: %s", fault.text);
        return TFOS_INVALID;
    }
    options->feed = feed;
    options->wait = (struct tfos_wait){timeout_ms, ask_context, feeding};
    enum tfos_status status = open_batch(schema, &feeding->batch, err);
    return status == TFOS_OK ? tfos_feeder_open(options, &feeding->feeder, err) : status;
}

static void close_feeding(JNIEnv *env, struct feeding *feeding)
{
    tfos_feeder_close(feeding->feeder);
    tfos_row_batch_close(feeding->batch);
    (*env)->DeleteGlobalRef(env, feeding->context);
    free(feeding);
}

/// NULL when the bytes are no JSON or memory is short; an exception then.
static json_t *parse_bytes(JNIEnv *env, jbyteArray bytes)
{
    struct tfos_error err = {0};
    json_error_t fault;
    jbyte *text = (*env)->GetByteArrayElements(env, bytes, NULL);

    if (!text)
        return NULL;
    json_t *json =
        json_loadb((const char *)text, (size_t)(*env)->GetArrayLength(env, bytes), 0, &fault);
    (*env)->ReleaseByteArrayElements(env, bytes, text, JNI_ABORT);
    if (!json) {
        snprintf(err.message, sizeof err.message, "java: the feeder's options: %s", fault.text);
        tfos__jni_throw(env, TFOS_INVALID, &err);
    }
    return json;
}

/// NULL with an exception.
static struct feeding *make_feeding(JNIEnv *env, jobject context)
{
    struct feeding *feeding = calloc(1, sizeof *feeding);

    if (feeding) {
        jclass class = (*env)->GetObjectClass(env, context);
        feeding->is_interrupted = (*env)->GetMethodID(env, class, "isInterrupted", "()Z");
        feeding->context = (*env)->NewGlobalRef(env, context);
        if (feeding->is_interrupted && feeding->context)
            return feeding;
        close_feeding(env, feeding);
    }
    struct tfos_error err = {.message = "java: no memory for a feeder"};
    tfos__jni_throw(env, TFOS_NO_MEMORY, &err);
    return NULL;
}

JNIEXPORT jlong JNICALL Java_org_tfos_Native_open(JNIEnv *env, jclass class, jbyteArray options,
                                                  jlong partition, jlong attempt, jobject context)
{
    struct tfos_feeder_options feeder_options = {.partition = partition, .attempt = attempt};
    struct tfos_error err = {0};
    json_t *json = parse_bytes(env, options);
    struct feeding *feeding = json ? make_feeding(env, context) : NULL;
    (void)class;

    if (feeding) {
        enum tfos_status status = open_feeding(feeding, json, &feeder_options, &err);
        if (status != TFOS_OK) {
            tfos__jni_throw(env, status, &err);
            close_feeding(env, feeding);
            feeding = NULL;
        }
    }
    json_decref(json);
    return tfos__jni_handle(feeding);
}

// ---- use

JNIEXPORT jbyteArray JNICALL Java_org_tfos_Native_version(JNIEnv *env, jclass class)
{
    (void)class;
    return tfos__jni_bytes(env, tfos_version());
}

JNIEXPORT jlong JNICALL Java_org_tfos_Native_firstRow(JNIEnv *env, jclass class, jlong handle)
{
    struct feeding *feeding = tfos__jni_pointer(handle);
    (void)env;
    (void)class;

    return tfos_feeder_node(feeding->feeder) ? tfos_feeder_first_row(feeding->feeder) : -1;
}

/// Rows to columns, and these to the node.
static enum tfos_status append_rows(struct feeding *feeding, const void *data, int64_t size,
                                    int64_t row_count, struct tfos_error *err)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    enum tfos_status status = tfos_row_batch_append(feeding->batch, data, size, row_count, err);

    if (status == TFOS_OK) {
        tfos_row_batch_show(feeding->batch, &schema, &array);
        status = tfos_feeder_append(feeding->feeder, schema, array, err);
    }
    tfos_row_batch_clear(feeding->batch);
    return status;
}

JNIEXPORT jboolean JNICALL Java_org_tfos_Native_append(JNIEnv *env, jclass class, jlong handle,
                                                       jlong address, jlong size, jlong row_count)
{
    const void *data = tfos__jni_pointer(address);
    struct tfos_error err = {0};
    enum tfos_status status = append_rows(tfos__jni_pointer(handle), data, size, row_count, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
    return status == TFOS_OK;
}

JNIEXPORT void JNICALL Java_org_tfos_Native_finish(JNIEnv *env, jclass class, jlong handle)
{
    struct tfos_error err = {0};
    enum tfos_status status =
        tfos_feeder_finish(((struct feeding *)tfos__jni_pointer(handle))->feeder, &err);
    (void)class;

    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_Native_close(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    if (handle)
        close_feeding(env, tfos__jni_pointer(handle));
}

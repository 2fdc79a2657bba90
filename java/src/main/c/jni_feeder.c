// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.Native: an attempt of a Spark task to feed one partition, and to take its
// results. Invariant: between two calls a feeder's batch has rows only after append() gave AGAIN.
#include <jansson.h>
#include <org_tfos_Native.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/feeder.h>
#include <tfos/result_rows.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>
#include <tfos/version.h>
#include <jni.h>

#include "jni_bridge.h"

struct feeding {
    struct tfos_feeder *feeder;       ///< owned
    struct tfos_row_batch *batch;     ///< owned
    struct tfos_result_rows *results; ///< owned; NULL: the rows get no results
    jobject context;                  ///< global reference to the TaskContext; owned
    jmethodID is_interrupted;         ///< of the TaskContext
    jmethodID is_completed;           ///< the same
};

/// Asked by the library while it waits. A task that has failed is over while another thread of it,
/// which writes to a Python worker, may still be here.
static bool ask_context(void *context)
{
    struct feeding *feeding = context;
    JNIEnv *env = tfos__jni_env();
    bool answer = (*env)->CallBooleanMethod(env, feeding->context, feeding->is_interrupted);

    if (!answer && !(*env)->ExceptionCheck(env))
        answer = (*env)->CallBooleanMethod(env, feeding->context, feeding->is_completed);
    return answer || (*env)->ExceptionCheck(env);
}

// ---- opening

static void release(struct ArrowSchema *schema)
{
    if (schema->release)
        schema->release(schema);
}

static enum tfos_status open_feeding(struct feeding *feeding, json_t *json, int64_t stage,
                                     struct tfos_feeder_options *options, struct tfos_error *err)
{
    const char *schema = NULL, *results = NULL;
    json_int_t feed = 0, timeout_ms = 0, ahead_rows = 0;
    struct ArrowSchema rows = {0}, result_rows = {0};
    json_error_t fault;

    if (json_unpack_ex(json, &fault, 0, "{s:s, s:s, s:s, s:s, s?s, s:I, s:I, s:s, s?s, s?I}",
                       "address", &options->address, "cluster_id", &options->cluster_id, "key",
                       &options->key, "queue", &options->queue, "job", &options->job, "feed", &feed,
                       "timeout_ms", &timeout_ms, "schema", &schema, "results", &results,
                       "ahead_rows", &ahead_rows)) {
        snprintf(err->message, sizeof(err->message), "java: the feeder's options: %s", fault.text);
        return TFOS_INVALID;
    }
    options->feed = feed;
    options->ahead_rows = ahead_rows;
    options->wait = (struct tfos_wait){timeout_ms, ask_context, feeding};
    enum tfos_status status = tfos_spark_schema_parse(schema, &rows, err);
    if (status == TFOS_OK)
        status = tfos_row_batch_open(&rows, &feeding->batch, err);
    if (status == TFOS_OK && results) {
        options->has_results = true;
        tfos_feeder_number_lazily(options, stage);
        status = tfos_spark_schema_parse(results, &result_rows, err);
        if (status == TFOS_OK)
            status = tfos_result_rows_open(&result_rows, &feeding->results, err);
    }
    release(&rows);
    release(&result_rows);
    return status == TFOS_OK ? tfos_feeder_open(options, &feeding->feeder, err) : status;
}

static void close_feeding(JNIEnv *env, struct feeding *feeding)
{
    tfos_feeder_close(feeding->feeder);
    tfos_row_batch_close(feeding->batch);
    tfos_result_rows_close(feeding->results);
    (*env)->DeleteGlobalRef(env, feeding->context);
    free(feeding);
}

/// NULL with an exception.
static struct feeding *make_feeding(JNIEnv *env, jobject context)
{
    struct feeding *feeding = tfos__jni_alloc(env, sizeof(*feeding), "a feeder");
    struct tfos_error err = {.message = "java: no memory for a feeder"};

    if (!feeding)
        return NULL;
    jclass class = (*env)->GetObjectClass(env, context);
    feeding->is_interrupted = (*env)->GetMethodID(env, class, "isInterrupted", "()Z");
    feeding->is_completed = (*env)->GetMethodID(env, class, "isCompleted", "()Z");
    feeding->context = (*env)->NewGlobalRef(env, context);
    if (feeding->is_interrupted && feeding->is_completed && feeding->context)
        return feeding;
    close_feeding(env, feeding);
    tfos__jni_check(env, TFOS_NO_MEMORY, &err);
    return NULL;
}

TFOS__NATIVE(jlong, Native, open, jbyteArray options, jlong stage, jlong partition, jlong attempt,
             jobject context)
{
    struct tfos_feeder_options feeder_options = {.partition = partition, .attempt = attempt};
    struct tfos_error err = {0};
    json_t *json = tfos__jni_json(env, options, "the feeder's options");
    struct feeding *feeding = json ? make_feeding(env, context) : NULL;

    if (feeding &&
        !tfos__jni_check(env, open_feeding(feeding, json, stage, &feeder_options, &err), &err)) {
        close_feeding(env, feeding);
        feeding = NULL;
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

TFOS__NATIVE(jlong, Native, firstRow, jlong handle)
{
    struct feeding *feeding = tfos__jni_pointer(handle);

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
    if (status != TFOS_AGAIN)
        tfos_row_batch_clear(feeding->batch);
    return status;
}

TFOS__NATIVE(jint, Native, append, jlong handle, jlong address, jlong size, jlong row_count)
{
    struct tfos_error err = {0};
    enum tfos_status status =
        append_rows(tfos__jni_pointer(handle), tfos__jni_pointer(address), size, row_count, &err);

    tfos__jni_check(env, status, &err);
    return status;
}

TFOS__NATIVE(jint, Native, finish, jlong handle)
{
    struct feeding *feeding = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    enum tfos_status status = tfos_feeder_finish(feeding->feeder, &err);

    tfos__jni_check(env, status, &err);
    return status;
}

// ---- results

/// Takes the next batch of results. AGAIN: there is none yet; END: there are no more.
static enum tfos_status take_results(struct feeding *feeding, bool waiting, struct tfos_error *err)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    enum tfos_status status =
        tfos_feeder_next_result(feeding->feeder, waiting ? -1 : 0, &schema, &array, err);

    return status == TFOS_OK ? tfos_result_rows_take(feeding->results, &schema, &array, err)
                             : status;
}

/// Fills the buffer with rows of all batches that are there. `*used` becomes the bytes written; if
/// it is 0, AGAIN comes with the bytes that the next row needs, or with 0 when no results are
/// there.
static enum tfos_status fill(JNIEnv *env, struct feeding *feeding, jbyteArray buffer, bool waiting,
                             int64_t *used, int64_t *needed, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    *used = *needed = 0;
    while (status == TFOS_OK) {
        int64_t size = 0;
        status = tfos__jni_write_rows(env, feeding->results, buffer, *used, &size, err);
        if (status == TFOS_OK)
            *used += size;
        else if (status == TFOS_AGAIN)
            *needed = size;
        else if (status == TFOS_END)
            status = take_results(feeding, waiting && *used == 0, err);
    }
    return status;
}

TFOS__NATIVE(jlong, Native, nextRows, jlong handle, jbyteArray buffer, jboolean waiting)
{
    struct tfos_error err = {0};
    int64_t used = 0, needed = 0;
    enum tfos_status status =
        fill(env, tfos__jni_pointer(handle), buffer, waiting, &used, &needed, &err);

    tfos__jni_check(env, status, &err);
    if (used > 0 || status < 0)
        return used;
    return status == TFOS_END ? -1 : -needed;
}

TFOS__NATIVE(void, Native, close, jlong handle)
{
    if (handle)
        close_feeding(env, tfos__jni_pointer(handle));
}

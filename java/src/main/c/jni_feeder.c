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

static jclass exception_class;   // global reference, for as long as the library is loaded
static jmethodID make_exception; // of exception_class, from bytes
static jmethodID is_interrupted; // of org.apache.spark.TaskContext

struct feeding {
    struct tfos_feeder *feeder;   ///< owned
    struct tfos_row_batch *batch; ///< owned
    JNIEnv *env;                  ///< of the thread that is in a call
    jobject context;              ///< global reference to the TaskContext; owned
};

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    JNIEnv *env = NULL;
    (void)reserved;

    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK)
        return JNI_ERR;
    jclass found = (*env)->FindClass(env, "org/tfos/TfosException");
    jclass context = (*env)->FindClass(env, "org/apache/spark/TaskContext");
    if (!found || !context)
        return JNI_ERR;
    make_exception = (*env)->GetMethodID(env, found, "<init>", "([B)V");
    is_interrupted = (*env)->GetMethodID(env, context, "isInterrupted", "()Z");
    exception_class = (*env)->NewGlobalRef(env, found);
    return make_exception && is_interrupted && exception_class ? JNI_VERSION_1_8 : JNI_ERR;
}

// ---- between C and Java

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

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].status == status)
            return classes[i].name;
    return "Error";
}

/// NULL with an exception.
static jbyteArray bytes_of(JNIEnv *env, const char *text)
{
    jsize size = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, size);

    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, size, (const jbyte *)text);
    return bytes;
}

/// Throws a TfosException, unless something has been thrown already.
static void throw_error(JNIEnv *env, enum tfos_status status, const struct tfos_error *err)
{
    char text[sizeof err->message + 64];

    if ((*env)->ExceptionCheck(env))
        return;
    snprintf(text, sizeof text, "%s: %s", class_of(status),
             err->message[0] ? err->message : tfos_status_text(status));
    jbyteArray bytes = bytes_of(env, text);
    jobject exception =
        bytes ? (*env)->NewObject(env, exception_class, make_exception, bytes) : NULL;
    if (exception)
        (*env)->Throw(env, exception);
}

/// Asked by the library while it waits.
static bool ask_context(void *context)
{
    struct feeding *feeding = context;
    JNIEnv *env = feeding->env;
    jboolean answer = (*env)->CallBooleanMethod(env, feeding->context, is_interrupted);

    return (*env)->ExceptionCheck(env) || answer;
}

static struct feeding *feeding_of(JNIEnv *env, jlong handle)
{
    struct feeding *feeding =
        (struct feeding *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)

    feeding->env = env;
    return feeding;
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

static void close_feeding(struct feeding *feeding)
{
    tfos_feeder_close(feeding->feeder);
    tfos_row_batch_close(feeding->batch);
    (*feeding->env)->DeleteGlobalRef(feeding->env, feeding->context);
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
        throw_error(env, TFOS_INVALID, &err);
    }
    return json;
}

/// NULL with an exception.
static struct feeding *make_feeding(JNIEnv *env, jobject context)
{
    struct feeding *feeding = calloc(1, sizeof *feeding);

    if (feeding) {
        feeding->env = env;
        feeding->context = (*env)->NewGlobalRef(env, context);
        if (feeding->context)
            return feeding;
        free(feeding);
    }
    struct tfos_error err = {.message = "java: no memory for a feeder"};
    throw_error(env, TFOS_NO_MEMORY, &err);
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
            throw_error(env, status, &err);
            close_feeding(feeding);
            feeding = NULL;
        }
    }
    json_decref(json);
    return (jlong)(intptr_t)feeding;
}

// ---- use

JNIEXPORT jbyteArray JNICALL Java_org_tfos_Native_version(JNIEnv *env, jclass class)
{
    (void)class;
    return bytes_of(env, tfos_version());
}

JNIEXPORT jlong JNICALL Java_org_tfos_Native_firstRow(JNIEnv *env, jclass class, jlong handle)
{
    struct feeding *feeding = feeding_of(env, handle);
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
    const void *data = (const void *)(intptr_t)address; // NOLINT(performance-no-int-to-ptr)
    struct tfos_error err = {0};
    enum tfos_status status = append_rows(feeding_of(env, handle), data, size, row_count, &err);
    (void)class;

    if (status < 0)
        throw_error(env, status, &err);
    return status == TFOS_OK;
}

JNIEXPORT void JNICALL Java_org_tfos_Native_finish(JNIEnv *env, jclass class, jlong handle)
{
    struct tfos_error err = {0};
    enum tfos_status status = tfos_feeder_finish(feeding_of(env, handle)->feeder, &err);
    (void)class;

    if (status < 0)
        throw_error(env, status, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_Native_close(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    if (handle)
        close_feeding(feeding_of(env, handle));
}

// SPDX-License-Identifier: Apache-2.0
/// What every class of natives needs to exchange data with Java. A class whose natives these are is
/// called org.tfos.SomethingNative; text that goes through is UTF-8 in a byte[].
#ifndef TFOS_JNI_BRIDGE_H
#define TFOS_JNI_BRIDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/record.h>
#include <tfos/result_rows.h>
#include <jni.h>

/// Begins the definition of native method `name` of org.tfos.`class`.
#define TFOS__NATIVE(type, class, name, ...)                                                       \
    JNIEXPORT type JNICALL Java_org_tfos_##class##_##name(                                         \
        JNIEnv *env __attribute__((unused)), jclass self __attribute__((unused)), __VA_ARGS__)

/// The JNIEnv of the thread that calls; NULL on a thread that is not Java's. Never kept: the next
/// call may come from another thread.
JNIEnv *tfos__jni_env(void);

/// Whether a call is OK. Where its status is negative, throws a TfosException, "NotFoundError: "
/// and so on before the message, unless an exception is on its way already: what Java code below
/// has thrown reaches Java as it is.
bool tfos__jni_check(JNIEnv *env, enum tfos_status status, const struct tfos_error *err);

/// Zeroed memory, for free(); NULL with an exception, which says that there is none for `what`.
void *tfos__jni_alloc(JNIEnv *env, size_t size, const char *what);

/// The text as a byte[]; NULL with an exception.
jbyteArray tfos__jni_bytes(JNIEnv *env, const char *text);

/// The bytes of a byte[] as a C string, to be freed by free(); NULL with an exception.
char *tfos__jni_text(JNIEnv *env, jbyteArray bytes);

/// The JSON in a byte[], for json_decref(); NULL with an exception, which names `what`.
json_t *tfos__jni_json(JNIEnv *env, jbyteArray bytes, const char *what);

/// tfos_result_rows_next() behind the `used` bytes of `buffer`, which is held in place meanwhile.
TFOS_MUST_CHECK enum tfos_status tfos__jni_write_rows(JNIEnv *env, struct tfos_result_rows *rows,
                                                      jbyteArray buffer, jlong used, int64_t *size,
                                                      struct tfos_error *err);

/// A handle, as Java holds it, and back. 0 is NULL.
static inline void *tfos__jni_pointer(jlong handle)
{
    return (void *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

static inline jlong tfos__jni_handle(const void *pointer)
{
    return (jlong)(intptr_t)pointer;
}

// Streams over Java's: C reads an org.tfos.ByteSource and writes an org.tfos.ByteSink, and so
// whatever Hadoop's file systems reach. Java opens and closes the object; the C stream only borrows
// it and is closed before.
//
// A call may come from any thread of Java's, one at a time. An exception that Java throws stays on
// its way: the call fails with IO, and so do all further ones until the native has returned to
// Java, where the exception then comes out.

/// A stream that reads from `source`, an org.tfos.ByteSource, at its position. It can seek if the
/// source can. The caller owns `*out` and ends it with tfos_stream_close().
TFOS_MUST_CHECK enum tfos_status tfos__jni_stream_open_source(JNIEnv *env, jobject source,
                                                              struct tfos_stream **out,
                                                              struct tfos_error *err);

/// A stream that writes to `sink`, an org.tfos.ByteSink. Its finish() writes what is held back and
/// finishes the sink.
TFOS_MUST_CHECK enum tfos_status tfos__jni_stream_open_sink(JNIEnv *env, jobject sink,
                                                            struct tfos_stream **out,
                                                            struct tfos_error *err);

/// What to do where opening a reader of a range of the stream gave `status`: a compressed file has
/// no ranges. OK: open it again, `options` are for the whole file. END: it is another range's.
TFOS_MUST_CHECK enum tfos_status
tfos__jni_stream_unrange(struct tfos_stream *stream, enum tfos_status status,
                         struct tfos_record_reader_options *options, struct tfos_error *err);

#endif

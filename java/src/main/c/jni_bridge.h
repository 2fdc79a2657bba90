// SPDX-License-Identifier: Apache-2.0
/// What every class of natives needs to speak with Java. A class whose natives these are is called
/// org.tfos.SomethingNative, its C jni_something.c; text that goes through is UTF-8 in a byte[].
#ifndef TFOS_JNI_BRIDGE_H
#define TFOS_JNI_BRIDGE_H

#include <jni.h>
#include <stdint.h>
#include <tfos/status.h>

/// The JNIEnv of the thread that calls; NULL on a thread that is not Java's. Never kept: the next
/// call may come from another thread.
JNIEnv *tfos__jni_env(void);

/// Throws a TfosException, "NotFoundError: " and so on before the message, unless an exception is
/// on its way already: what Java code below has thrown reaches Java as it is. `err` may be NULL.
void tfos__jni_throw(JNIEnv *env, enum tfos_status status, const struct tfos_error *err);

/// The text as a byte[]; NULL with an exception.
jbyteArray tfos__jni_bytes(JNIEnv *env, const char *text);

/// The bytes of a byte[] as a C string, to be freed by free(); NULL with an exception.
char *tfos__jni_text(JNIEnv *env, jbyteArray bytes);

/// A handle, as Java holds it, and back. 0 is NULL.
static inline void *tfos__jni_pointer(jlong handle)
{
    return (void *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

static inline jlong tfos__jni_handle(const void *pointer)
{
    return (jlong)(intptr_t)pointer;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// What is found out once, when the library is loaded, and the ways of text and errors into Java.
#include "jni_bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jni_stream.h"

#define VERSION JNI_VERSION_1_8

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

// Written by JNI_OnLoad, before any native can be called.
static JavaVM *java_vm;
static jclass exception_class;   // global reference, for as long as the library is loaded
static jmethodID make_exception; // of exception_class, from bytes

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    JNIEnv *env = NULL;
    (void)reserved;

    if ((*vm)->GetEnv(vm, (void **)&env, VERSION) != JNI_OK)
        return JNI_ERR;
    java_vm = vm;
    jclass found = (*env)->FindClass(env, "org/tfos/TfosException");
    if (!found)
        return JNI_ERR;
    make_exception = (*env)->GetMethodID(env, found, "<init>", "([B)V");
    exception_class = (*env)->NewGlobalRef(env, found);
    return make_exception && exception_class && tfos__jni_stream_load(env) ? VERSION : JNI_ERR;
}

JNIEnv *tfos__jni_env(void)
{
    JNIEnv *env = NULL;

    return (*java_vm)->GetEnv(java_vm, (void **)&env, VERSION) == JNI_OK ? env : NULL;
}

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

void tfos__jni_throw(JNIEnv *env, enum tfos_status status, const struct tfos_error *err)
{
    char text[sizeof err->message + 64];

    if ((*env)->ExceptionCheck(env))
        return;
    snprintf(text, sizeof text, "%s: %s", class_of(status),
             err && err->message[0] ? err->message : tfos_status_text(status));
    jbyteArray bytes = tfos__jni_bytes(env, text);
    jobject exception =
        bytes ? (*env)->NewObject(env, exception_class, make_exception, bytes) : NULL;
    if (exception)
        (*env)->Throw(env, exception);
}

jbyteArray tfos__jni_bytes(JNIEnv *env, const char *text)
{
    jsize size = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, size);

    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, size, (const jbyte *)text);
    return bytes;
}

char *tfos__jni_text(JNIEnv *env, jbyteArray bytes)
{
    jsize size = (*env)->GetArrayLength(env, bytes);
    char *text = malloc((size_t)size + 1);

    if (!text) {
        struct tfos_error err = {.message = "java: no memory for a text"};
        tfos__jni_throw(env, TFOS_NO_MEMORY, &err);
        return NULL;
    }
    (*env)->GetByteArrayRegion(env, bytes, 0, size, (jbyte *)text);
    text[size] = '\0';
    return text;
}

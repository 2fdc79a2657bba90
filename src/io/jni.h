// SPDX-License-Identifier: Apache-2.0
/// The part of Java's native interface that is used here, so that no JDK is needed to build it.
/// Names, parameters and places in the tables are those of the JNI specification, version 1.8,
/// which later versions only add to. An object is a `void *`, as is a class; a method and a field,
/// too.
#ifndef TFOS_IO_JNI_H
#define TFOS_IO_JNI_H

#include <stdint.h>

#define TFOS__JNI_VERSION 0x00010008
#define TFOS__JNI_OK 0
#define TFOS__JNI_DETACHED (-2)

union tfos__jni_value {
    uint8_t z;
    int16_t s;
    int32_t i;
    int64_t j;
    void *l;
};

struct tfos__jni_functions;

/// A thread's view of the JVM (JNIEnv).
struct tfos__jni {
    const struct tfos__jni_functions *call;
};

struct tfos__jni_functions {
    void *slots_0[6];
    void *(*FindClass)(struct tfos__jni *, const char *name);
    void *slots_7[3];
    void *(*GetSuperclass)(struct tfos__jni *, void *class);
    void *slots_11[4];
    void *(*ExceptionOccurred)(struct tfos__jni *);
    void (*ExceptionDescribe)(struct tfos__jni *);
    void (*ExceptionClear)(struct tfos__jni *);
    void *slots_18;
    int32_t (*PushLocalFrame)(struct tfos__jni *, int32_t capacity);
    void *(*PopLocalFrame)(struct tfos__jni *, void *result);
    void *(*NewGlobalRef)(struct tfos__jni *, void *object);
    void (*DeleteGlobalRef)(struct tfos__jni *, void *object);
    void (*DeleteLocalRef)(struct tfos__jni *, void *object);
    void *slots_24[6];
    void *(*NewObjectA)(struct tfos__jni *, void *class, void *method,
                        const union tfos__jni_value *arguments);
    void *(*GetObjectClass)(struct tfos__jni *, void *object);
    uint8_t (*IsInstanceOf)(struct tfos__jni *, void *object, void *class);
    void *(*GetMethodID)(struct tfos__jni *, void *class, const char *name, const char *signature);
    void *slots_34[2];
    void *(*CallObjectMethodA)(struct tfos__jni *, void *object, void *method,
                               const union tfos__jni_value *arguments);
    void *slots_37[2];
    uint8_t (*CallBooleanMethodA)(struct tfos__jni *, void *object, void *method,
                                  const union tfos__jni_value *arguments);
    void *slots_40[8];
    int16_t (*CallShortMethodA)(struct tfos__jni *, void *object, void *method,
                                const union tfos__jni_value *arguments);
    void *slots_49[2];
    int32_t (*CallIntMethodA)(struct tfos__jni *, void *object, void *method,
                              const union tfos__jni_value *arguments);
    void *slots_52[2];
    int64_t (*CallLongMethodA)(struct tfos__jni *, void *object, void *method,
                               const union tfos__jni_value *arguments);
    void *slots_55[8];
    void (*CallVoidMethodA)(struct tfos__jni *, void *object, void *method,
                            const union tfos__jni_value *arguments);
    void *slots_64[49];
    void *(*GetStaticMethodID)(struct tfos__jni *, void *class, const char *name,
                               const char *signature);
    void *slots_114[29];
    void (*CallStaticVoidMethodA)(struct tfos__jni *, void *class, void *method,
                                  const union tfos__jni_value *arguments);
    void *(*GetStaticFieldID)(struct tfos__jni *, void *class, const char *name,
                              const char *signature);
    void *(*GetStaticObjectField)(struct tfos__jni *, void *class, void *field);
    void *slots_146[21];
    void *(*NewStringUTF)(struct tfos__jni *, const char *text);
    void *slots_168[3];
    int32_t (*GetArrayLength)(struct tfos__jni *, void *array);
    void *(*NewObjectArray)(struct tfos__jni *, int32_t size, void *class, void *first);
    void *slots_173[3];
    void *(*NewByteArray)(struct tfos__jni *, int32_t size);
    void *slots_177[23];
    void (*GetByteArrayRegion)(struct tfos__jni *, void *array, int32_t begin, int32_t size,
                               void *data);
    void *slots_201[7];
    void (*SetByteArrayRegion)(struct tfos__jni *, void *array, int32_t begin, int32_t size,
                               const void *data);
    void *slots_209[19];
    uint8_t (*ExceptionCheck)(struct tfos__jni *);
    void *(*NewDirectByteBuffer)(struct tfos__jni *, void *data, int64_t size);
};

struct tfos__java_vm_functions;

/// The JVM itself (JavaVM).
struct tfos__java_vm {
    const struct tfos__java_vm_functions *call;
};

struct tfos__java_vm_functions {
    void *slots_0[5];
    int32_t (*DetachCurrentThread)(struct tfos__java_vm *);
    int32_t (*GetEnv)(struct tfos__java_vm *, struct tfos__jni **env, int32_t version);
    int32_t (*AttachCurrentThreadAsDaemon)(struct tfos__java_vm *, struct tfos__jni **env,
                                           void *arguments);
};

struct tfos__java_vm_option {
    const char *text;
    void *extra;
};

/// What JNI_CreateJavaVM takes.
struct tfos__java_vm_arguments {
    int32_t version;
    int32_t option_count;
    struct tfos__java_vm_option *options;
    uint8_t ignores_unknown;
};

#endif

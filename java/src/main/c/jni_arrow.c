// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.ArrowNative.
#include <jni.h>
#include <org_tfos_ArrowNative.h>
#include <stdint.h>
#include <tfos/arrow.h>

JNIEXPORT void JNICALL Java_org_tfos_ArrowNative_releaseArray(JNIEnv *env, jclass class,
                                                              jlong address)
{
    struct ArrowArray *array =
        (struct ArrowArray *)(intptr_t)address; // NOLINT(performance-no-int-to-ptr)
    (void)env, (void)class;

    if (array->release)
        array->release(array);
}

JNIEXPORT void JNICALL Java_org_tfos_ArrowNative_releaseSchema(JNIEnv *env, jclass class,
                                                               jlong address)
{
    struct ArrowSchema *schema =
        (struct ArrowSchema *)(intptr_t)address; // NOLINT(performance-no-int-to-ptr)
    (void)env, (void)class;

    if (schema->release)
        schema->release(schema);
}

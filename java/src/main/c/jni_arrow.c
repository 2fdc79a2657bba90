// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.ArrowNative.
#include <jni.h>
#include <org_tfos_ArrowNative.h>
#include <stdlib.h>
#include <tfos/arrow.h>
#include <tfos/spark_schema.h>

#include "jni_bridge.h"

JNIEXPORT void JNICALL Java_org_tfos_ArrowNative_releaseArray(JNIEnv *env, jclass class,
                                                              jlong address)
{
    struct ArrowArray *array = tfos__jni_pointer(address);
    (void)env, (void)class;

    if (array->release)
        array->release(array);
}

JNIEXPORT void JNICALL Java_org_tfos_ArrowNative_releaseSchema(JNIEnv *env, jclass class,
                                                               jlong address)
{
    struct ArrowSchema *schema = tfos__jni_pointer(address);
    (void)env, (void)class;

    if (schema->release)
        schema->release(schema);
}

JNIEXPORT void JNICALL Java_org_tfos_ArrowNative_parseSchema(JNIEnv *env, jclass class,
                                                             jbyteArray json, jlong address)
{
    struct tfos_error err = {0};
    char *text = tfos__jni_text(env, json);
    (void)class;

    if (!text)
        return;
    enum tfos_status status = tfos_spark_schema_parse(text, tfos__jni_pointer(address), &err);
    free(text);
    if (status < 0)
        tfos__jni_throw(env, status, &err);
}

JNIEXPORT jbyteArray JNICALL Java_org_tfos_ArrowNative_typeText(JNIEnv *env, jclass class,
                                                                jlong schema)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    (void)class;

    return tfos__jni_bytes(env, tfos_arrow_type_text(tfos__jni_pointer(schema),
                                                     TFOS_TYPE_NAMES_ARROW, text, sizeof text));
}

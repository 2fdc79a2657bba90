// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.SurveyNative. A survey lives for one call; between two it is JSON.
#include <jni.h>
#include <org_tfos_SurveyNative.h>
#include <stdlib.h>
#include <tfos/example_file.h>
#include <tfos/memory.h>

#include "jni_bridge.h"
#include "jni_stream.h"

/// The survey as bytes, or an exception. Ends it.
static jbyteArray give(JNIEnv *env, enum tfos_status status, struct tfos_schema_inference *survey,
                       struct tfos_error *err)
{
    jbyteArray bytes = NULL;
    char *json = NULL;

    if (status == TFOS_OK)
        status = tfos_schema_inference_save(survey, &json, err);
    if (status == TFOS_OK)
        bytes = tfos__jni_bytes(env, json);
    else
        tfos__jni_throw(env, status, err);
    tfos_free(json);
    tfos_schema_inference_close(survey);
    return bytes;
}

/// The survey in the bytes; false with an exception.
static bool load(JNIEnv *env, jbyteArray bytes, struct tfos_schema_inference **out)
{
    struct tfos_error err = {0};
    char *json = tfos__jni_text(env, bytes);

    if (!json)
        return false;
    enum tfos_status status = tfos_schema_inference_load(json, out, &err);
    free(json);
    if (status < 0)
        tfos__jni_throw(env, status, &err);
    return status == TFOS_OK;
}

JNIEXPORT jbyteArray JNICALL Java_org_tfos_SurveyNative_read(JNIEnv *env, jclass class,
                                                             jobject source, jbyteArray name,
                                                             jint type, jint mode, jlong limit)
{
    struct tfos_error err = {0};
    struct tfos_stream *stream = NULL;
    struct tfos_schema_inference *survey = NULL;
    char *name_text = tfos__jni_text(env, name);
    uint64_t seen;
    (void)class;

    if (!name_text)
        return NULL;
    enum tfos_status status =
        tfos_schema_inference_open((enum tfos_record_type)type, &survey, &err);
    if (status == TFOS_OK)
        status = tfos__jni_stream_open_source(env, source, &stream, &err);
    if (status == TFOS_OK) {
        const struct tfos_record_reader_options options = {.mode = (enum tfos_record_mode)mode,
                                                           .name = name_text};
        status = tfos_schema_inference_read(survey, stream, &options, (uint64_t)limit, &seen, &err);
    }
    tfos_stream_close(stream);
    free(name_text);
    return give(env, status, survey, &err);
}

JNIEXPORT jbyteArray JNICALL Java_org_tfos_SurveyNative_merge(JNIEnv *env, jclass class,
                                                              jbyteArray survey_json,
                                                              jbyteArray other_json)
{
    struct tfos_error err = {0};
    struct tfos_schema_inference *survey = NULL, *other = NULL;
    (void)class;

    if (!load(env, survey_json, &survey))
        return NULL;
    if (!load(env, other_json, &other)) {
        tfos_schema_inference_close(survey);
        return NULL;
    }
    enum tfos_status status = tfos_schema_inference_merge(survey, other, &err);
    tfos_schema_inference_close(other);
    return give(env, status, survey, &err);
}

JNIEXPORT void JNICALL Java_org_tfos_SurveyNative_schema(JNIEnv *env, jclass class, jbyteArray json,
                                                         jlong schema)
{
    struct tfos_error err = {0};
    struct tfos_schema_inference *survey = NULL;
    (void)class;

    if (!load(env, json, &survey))
        return;
    enum tfos_status status = tfos_schema_inference_schema(survey, tfos__jni_pointer(schema), &err);
    if (status < 0)
        tfos__jni_throw(env, status, &err);
    tfos_schema_inference_close(survey);
}

// SPDX-License-Identifier: Apache-2.0
// The natives of org.tfos.TransformNative: a task's rows through a model, a batch at a time. The
// columns of a batch are TensorFlow's while it refers to them; the next batch has other ones then.
#include <jansson.h>
#include <org_tfos_TransformNative.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/model.h>
#include <tfos/result_rows.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>
#include <jni.h>

#include "jni_bridge.h"

/// Columns that the task fills, and TensorFlow may hold.
struct rows {
    struct tfos_row_batch *batch; ///< owned
    atomic_int reference_count;
};

struct transform {
    struct tfos_model_call *call;     ///< owned
    struct tfos_result_rows *results; ///< owned
    struct ArrowSchema schema;        ///< owned; of the rows
    struct rows *rows;                ///< held; NULL: none yet
    bool has_run;                     ///< the rows are those of the batch before
};

static enum tfos_status refuse(struct tfos_error *err, enum tfos_status status, const char *text)
{
    snprintf(err->message, sizeof(err->message), "java: %s", text);
    return status;
}

static void release_schema(struct ArrowSchema *schema)
{
    if (schema->release)
        schema->release(schema);
}

// ---- rows

static void let_go(struct rows *rows)
{
    if (!rows || atomic_fetch_sub(&rows->reference_count, 1) > 1)
        return;
    tfos_row_batch_close(rows->batch);
    free(rows);
}

static void release_array(struct ArrowArray *array)
{
    let_go(array->private_data);
    array->release = NULL;
}

/// Empty columns for the next batch: those of the one before, unless TensorFlow holds them.
static enum tfos_status renew_rows(struct transform *transform, struct tfos_error *err)
{
    transform->has_run = false;
    if (transform->rows && atomic_load(&transform->rows->reference_count) == 1) {
        tfos_row_batch_clear(transform->rows->batch);
        return TFOS_OK;
    }
    let_go(transform->rows);
    transform->rows = calloc(1, sizeof(*transform->rows));
    if (!transform->rows)
        return refuse(err, TFOS_NO_MEMORY, "no memory for rows");
    atomic_init(&transform->rows->reference_count, 1);
    return tfos_row_batch_open(&transform->schema, &transform->rows->batch, err);
}

TFOS__NATIVE(void, TransformNative, append, jlong handle, jlong address, jlong size,
             jlong row_count)
{
    struct transform *transform = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (!transform->rows || transform->has_run)
        status = renew_rows(transform, &err);
    if (status == TFOS_OK)
        status = tfos_row_batch_append(transform->rows->batch, tfos__jni_pointer(address), size,
                                       row_count, &err);
    tfos__jni_check(env, status, &err);
}

static enum tfos_status run(struct transform *transform, struct tfos_error *err)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct ArrowSchema results_schema = {0};
    struct ArrowArray results = {0};

    tfos_row_batch_show(transform->rows->batch, &schema, &array);
    struct ArrowArray lent = *array;
    lent.release = release_array;
    lent.private_data = transform->rows;
    atomic_fetch_add(&transform->rows->reference_count, 1);
    transform->has_run = true;
    enum tfos_status status =
        tfos_model_call_run(transform->call, schema, &lent, &results_schema, &results, err);
    return status == TFOS_OK
               ? tfos_result_rows_take(transform->results, &results_schema, &results, err)
               : status;
}

TFOS__NATIVE(void, TransformNative, run, jlong handle)
{
    struct tfos_error err = {0};

    tfos__jni_check(env, run(tfos__jni_pointer(handle), &err), &err);
}

TFOS__NATIVE(jlong, TransformNative, nextRows, jlong handle, jbyteArray buffer)
{
    struct transform *transform = tfos__jni_pointer(handle);
    struct tfos_error err = {0};
    int64_t size = 0;
    enum tfos_status status = tfos__jni_write_rows(env, transform->results, buffer, 0, &size, &err);

    tfos__jni_check(env, status, &err);
    return status == TFOS_OK ? size : status == TFOS_AGAIN ? -size : -1;
}

// ---- models

TFOS__NATIVE(jlong, TransformNative, load, jbyteArray tensorflow, jbyteArray path, jbyteArray tags,
             jint threads)
{
    char *folder = tfos__jni_text(env, tensorflow),
         *place = folder ? tfos__jni_text(env, path) : NULL;
    json_t *list = place ? tfos__jni_json(env, tags, "the tags of a model") : NULL;
    size_t count = json_array_size(list);
    const char **texts = list ? tfos__jni_alloc(env, (count + 1) * sizeof(*texts), "tags") : NULL;
    struct tfos_model *model = NULL;
    struct tfos_error err = {0};

    if (texts) {
        for (size_t i = 0; i < count; i++)
            texts[i] = json_string_value(json_array_get(list, i));
        struct tfos_model_options options = {folder, place, texts, (int)count, threads};
        tfos__jni_check(env, tfos_model_open(&options, &model, &err), &err);
    }
    free((void *)texts);
    json_decref(list);
    free(place);
    free(folder);
    return tfos__jni_handle(model);
}

TFOS__NATIVE(void, TransformNative, unload, jlong handle)
{
    tfos_model_close(tfos__jni_pointer(handle));
}

// ---- opening

/// The inputs and outputs of a call, as JSON has them.
struct signature {
    size_t input_count, output_count;
    struct tfos_model_input *inputs;        ///< owned
    struct tfos_model_output *outputs;      ///< owned
    int64_t (*shapes)[TFOS_MODEL_MAX_RANK]; ///< owned; of the inputs
};

static bool read_input(const json_t *json, struct tfos_model_input *input, int64_t *shape)
{
    json_t *sizes = NULL;

    if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:s, s:s, s:o}", "name", &input->name,
                    "tensor", &input->tensor, "column", &input->column, "shape", &sizes) ||
        json_array_size(sizes) > TFOS_MODEL_MAX_RANK)
        return false;
    for (size_t i = 0; i < json_array_size(sizes); i++)
        shape[i] = json_integer_value(json_array_get(sizes, i));
    input->shape = shape;
    input->rank = json_is_array(sizes) ? (int)json_array_size(sizes) : -1;
    return true;
}

static enum tfos_status read_signature(const json_t *inputs, const json_t *outputs,
                                       struct signature *signature, struct tfos_error *err)
{
    bool is_whole = true;

    signature->input_count = json_array_size(inputs);
    signature->output_count = json_array_size(outputs);
    signature->inputs = calloc(signature->input_count + 1, sizeof(*signature->inputs));
    signature->shapes = calloc(signature->input_count + 1, sizeof(*signature->shapes));
    signature->outputs = calloc(signature->output_count + 1, sizeof(*signature->outputs));
    if (!signature->inputs || !signature->shapes || !signature->outputs)
        return refuse(err, TFOS_NO_MEMORY, "no memory for a signature");
    for (size_t i = 0; is_whole && i < signature->input_count; i++)
        is_whole =
            read_input(json_array_get(inputs, i), &signature->inputs[i], signature->shapes[i]);
    for (size_t i = 0; is_whole && i < signature->output_count; i++) {
        struct tfos_model_output *output = &signature->outputs[i];
        is_whole = json_unpack(json_array_get(outputs, i), "{s:s, s:s, s:s, s:i}", "name",
                               &output->name, "tensor", &output->tensor, "column", &output->column,
                               "rank", &output->rank) == 0;
    }
    return is_whole ? TFOS_OK
                    : refuse(err, TFOS_INVALID, "an input or output of a signature is not whole");
}

static enum tfos_status open_transform(struct transform *transform, struct tfos_model *model,
                                       json_t *json, struct tfos_error *err)
{
    const char *rows = NULL, *results = NULL;
    json_t *inputs = NULL, *outputs = NULL;
    struct signature signature = {0};
    struct ArrowSchema result_schema = {0};
    json_error_t fault;

    if (json_unpack_ex(json, &fault, 0, "{s:s, s:s, s:o, s:o}", "schema", &rows, "results",
                       &results, "inputs", &inputs, "outputs", &outputs))
        return refuse(err, TFOS_INVALID, fault.text);
    enum tfos_status status = tfos_spark_schema_parse(rows, &transform->schema, err);
    if (status == TFOS_OK)
        status = tfos_spark_schema_parse(results, &result_schema, err);
    if (status == TFOS_OK)
        status = tfos_result_rows_open(&result_schema, &transform->results, err);
    if (status == TFOS_OK)
        status = read_signature(inputs, outputs, &signature, err);
    if (status == TFOS_OK)
        status = tfos_model_call_open(model, signature.inputs, (int)signature.input_count,
                                      signature.outputs, (int)signature.output_count,
                                      &transform->call, err);
    release_schema(&result_schema);
    free(signature.inputs);
    free(signature.outputs);
    free(signature.shapes);
    return status;
}

static void close_transform(struct transform *transform)
{
    tfos_result_rows_close(transform->results);
    tfos_model_call_close(transform->call);
    let_go(transform->rows);
    release_schema(&transform->schema);
    free(transform);
}

TFOS__NATIVE(jlong, TransformNative, open, jlong model, jbyteArray options)
{
    struct tfos_error err = {0};
    json_t *json = tfos__jni_json(env, options, "a transform's options");
    struct transform *transform =
        json ? tfos__jni_alloc(env, sizeof(*transform), "a transform") : NULL;

    if (transform &&
        !tfos__jni_check(env, open_transform(transform, tfos__jni_pointer(model), json, &err),
                         &err)) {
        close_transform(transform);
        transform = NULL;
    }
    json_decref(json);
    return tfos__jni_handle(transform);
}

TFOS__NATIVE(void, TransformNative, close, jlong handle)
{
    close_transform(tfos__jni_pointer(handle));
}

// SPDX-License-Identifier: Apache-2.0
#include "model/saved_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define CONFIG_SIZE 64

/// Writes a ConfigProto: {device_count = 1 {"GPU": 0}, intra_op_parallelism_threads = 2,
/// inter_op_parallelism_threads = 5: -1, which is the calling thread}. Returns its size.
static size_t write_config(int threads, uint8_t config[CONFIG_SIZE])
{
    static const uint8_t no_gpu[] = {1 << 3 | 2, 7, 1 << 3 | 2, 3, 'G', 'P', 'U', 2 << 3, 0};
    static const uint8_t calling_thread[] = {5 << 3, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff,   0xff, 0xff, 0xff, 1};
    size_t size = sizeof(no_gpu);
    memcpy(config, no_gpu, sizeof(no_gpu));
    config[size++] = 2 << 3;
    for (unsigned rest = (unsigned)threads;; rest >>= 7) {
        config[size++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        if (rest <= 0x7f)
            break;
    }
    memcpy(config + size, calling_thread, sizeof(calling_thread));
    return size + sizeof(calling_thread);
}

static enum tfos_status load(struct tfos_model *model, const struct tfos_model_options *options,
                             struct tfos_error *err)
{
    const struct tfos__model_tensorflow *tf = model->tf;
    struct TF_Status *status = tf->NewStatus();
    struct TF_SessionOptions *session_options = tf->NewSessionOptions();
    uint8_t config[CONFIG_SIZE];
    enum tfos_status result = TFOS_OK;

    model->graph = tf->NewGraph();
    size_t size = write_config(getenv("TF_NUM_INTRAOP_THREADS") ? 0 : options->threads, config);
    tf->SetConfig(session_options, config, size, status);
    if (tf->GetCode(status) == 0)
        model->session =
            tf->LoadSessionFromSavedModel(session_options, NULL, options->path, options->tags,
                                          options->tag_count, model->graph, NULL, status);
    if (tf->GetCode(status) != 0)
        result = tfos__fail(err, TFOS_INVALID, "model: the SavedModel in '%s' cannot be loaded: %s",
                            options->path, tf->Message(status));
    tf->DeleteSessionOptions(session_options);
    tf->DeleteStatus(status);
    return result;
}

enum tfos_status tfos_model_open(const struct tfos_model_options *options, struct tfos_model **out,
                                 struct tfos_error *err)
{
    struct tfos_model *model = tfos__alloc(1, sizeof(*model));
    enum tfos_status status = TFOS_OK;

    if (!model)
        return tfos__no_memory(err, "model", "a model");
    model->path = tfos__strdup(options->path);
    if (!model->path)
        status = tfos__no_memory(err, "model", "a model");
    if (status == TFOS_OK)
        status = tfos__model_tensorflow_load(options->tensorflow, &model->tf, err);
    if (status == TFOS_OK)
        status = load(model, options, err);
    if (status == TFOS_OK)
        *out = model;
    else
        tfos_model_close(model);
    return status;
}

void tfos_model_close(struct tfos_model *model)
{
    if (!model)
        return;
    if (model->session) {
        struct TF_Status *status = model->tf->NewStatus();
        model->tf->CloseSession(model->session, status);
        model->tf->DeleteSession(model->session, status);
        model->tf->DeleteStatus(status);
    }
    if (model->graph)
        model->tf->DeleteGraph(model->graph);
    tfos__free(model->path);
    tfos__free(model);
}

// SPDX-License-Identifier: Apache-2.0
// Calls of a model: columns become tensors, the session runs on the calling thread, tensors become
// columns.
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/input_tensor.h"
#include "model/output_column.h"
#include "model/saved_model.h"

struct tfos_model_call {
    struct tfos_model *model; ///< borrowed
    int input_count, output_count;
    struct tfos__model_input *inputs;   ///< owned
    struct tfos__model_output *outputs; ///< owned
    struct tfos__model_tensor *begins;  ///< owned; of the inputs, in the graph
    struct tfos__model_tensor *ends;    ///< owned; of the outputs
    struct TF_Tensor **given;           ///< owned; room for the inputs' tensors
    struct TF_Tensor **made;            ///< owned; room for the outputs'
};

// ---- preparing

/// Finds "operation:index", and its type.
static enum tfos_status find_tensor(const struct tfos_model *model, const char *name,
                                    struct tfos__model_tensor *tensor,
                                    const struct tfos__model_type **type, struct tfos_error *err)
{
    const struct tfos__model_tensorflow *tf = model->tf;
    const char *colon = strrchr(name, ':');
    char *operation = tfos__strdup(name);
    if (!operation)
        return tfos__no_memory(err, "model", "a tensor's name");
    if (colon)
        operation[colon - name] = '\0';
    tensor->operation = tf->GraphOperationByName(model->graph, operation);
    tensor->index = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
    tfos__free(operation);
    if (!tensor->operation || tensor->index < 0 ||
        tensor->index >= tf->OperationNumOutputs(tensor->operation))
        return tfos__fail(err, TFOS_INVALID, "model: the graph of '%s' has no tensor '%s'",
                          model->path, name);
    int code = tf->OperationOutputType(*tensor);
    *type = tfos__model_type_of(code);
    if (!*type)
        return tfos__fail(err, TFOS_INVALID,
                          "model: tensor '%s' of '%s' is of type %d (TF_DataType), which no column "
                          "has",
                          name, model->path, code);
    return TFOS_OK;
}

static enum tfos_status copy_names(const char *name, const char *column, char **own_name,
                                   char **own_column, struct tfos_error *err)
{
    *own_name = tfos__strdup(name);
    *own_column = tfos__strdup(column);
    return *own_name && *own_column ? TFOS_OK : tfos__no_memory(err, "model", "a name");
}

static enum tfos_status take_input(struct tfos_model_call *call, int place,
                                   const struct tfos_model_input *input, struct tfos_error *err)
{
    struct tfos__model_input *own = &call->inputs[place];
    own->rank = input->rank;
    if (input->rank == 0 || input->rank > TFOS_MODEL_MAX_RANK)
        return tfos__fail(err, TFOS_INVALID,
                          "model: input '%s' has %d dimensions: rows need 1 to %d", input->name,
                          input->rank, TFOS_MODEL_MAX_RANK);
    for (int i = 0; i < input->rank; i++)
        own->shape[i] = input->shape[i];
    TFOS__TRY(copy_names(input->name, input->column, &own->name, &own->column, err));
    return find_tensor(call->model, input->tensor, &call->begins[place], &own->type, err);
}

static enum tfos_status take_output(struct tfos_model_call *call, int place,
                                    const struct tfos_model_output *output, struct tfos_error *err)
{
    struct tfos__model_output *own = &call->outputs[place];
    own->rank = output->rank;
    TFOS__TRY(copy_names(output->name, output->column, &own->name, &own->column, err));
    return find_tensor(call->model, output->tensor, &call->ends[place], &own->type, err);
}

static enum tfos_status make_room(struct tfos_model_call *call, struct tfos_error *err)
{
    size_t inputs = (size_t)call->input_count, outputs = (size_t)call->output_count;
    call->inputs = tfos__alloc(inputs, sizeof(*call->inputs));
    call->outputs = tfos__alloc(outputs, sizeof(*call->outputs));
    call->begins = tfos__alloc(inputs, sizeof(*call->begins));
    call->ends = tfos__alloc(outputs, sizeof(*call->ends));
    call->given = tfos__alloc(inputs, sizeof(struct TF_Tensor *));
    call->made = tfos__alloc(outputs, sizeof(struct TF_Tensor *));
    return call->inputs && call->outputs && call->begins && call->ends && call->given && call->made
               ? TFOS_OK
               : tfos__no_memory(err, "model", "calls");
}

enum tfos_status tfos_model_call_open(struct tfos_model *model,
                                      const struct tfos_model_input *inputs, int input_count,
                                      const struct tfos_model_output *outputs, int output_count,
                                      struct tfos_model_call **out, struct tfos_error *err)
{
    struct tfos_model_call *call = tfos__alloc(1, sizeof(*call));
    if (!call)
        return tfos__no_memory(err, "model", "calls");
    *call = (struct tfos_model_call){
        .model = model, .input_count = input_count, .output_count = output_count};
    enum tfos_status status = make_room(call, err);
    for (int i = 0; status == TFOS_OK && i < input_count; i++)
        status = take_input(call, i, &inputs[i], err);
    for (int i = 0; status == TFOS_OK && i < output_count; i++)
        status = take_output(call, i, &outputs[i], err);
    if (status == TFOS_OK)
        *out = call;
    else
        tfos_model_call_close(call);
    return status;
}

void tfos_model_call_close(struct tfos_model_call *call)
{
    if (!call)
        return;
    for (int i = 0; call->inputs && i < call->input_count; i++) {
        tfos__free(call->inputs[i].name);
        tfos__free(call->inputs[i].column);
    }
    for (int i = 0; call->outputs && i < call->output_count; i++) {
        tfos__free(call->outputs[i].name);
        tfos__free(call->outputs[i].column);
    }
    tfos__free(call->inputs);
    tfos__free(call->outputs);
    tfos__free(call->begins);
    tfos__free(call->ends);
    tfos__free((void *)call->given);
    tfos__free((void *)call->made);
    tfos__free(call);
}

// ---- running

static enum tfos_status run_session(struct tfos_model_call *call, int64_t row_count,
                                    struct tfos_error *err)
{
    const struct tfos_model *model = call->model;
    const struct tfos__model_tensorflow *tf = model->tf;
    struct TF_Status *outcome = tf->NewStatus();
    enum tfos_status status = TFOS_OK;
    memset((void *)call->made, 0, (size_t)call->output_count * sizeof(struct TF_Tensor *));
    tf->SessionRun(model->session, NULL, call->begins, call->given, call->input_count, call->ends,
                   call->made, call->output_count, NULL, 0, NULL, outcome);
    if (tf->GetCode(outcome) != 0)
        status = tfos__fail(err, TFOS_INVALID, "model: the model in '%s' fails with %lld rows: %s",
                            model->path, (long long)row_count, tf->Message(outcome));
    tf->DeleteStatus(outcome);
    return status;
}

/// Makes the inputs' tensors. `*count` becomes how many there are, also on failure.
static enum tfos_status make_inputs(struct tfos_model_call *call, const struct ArrowSchema *schema,
                                    struct tfos__model_batch *batch, int *count,
                                    struct tfos_error *err)
{
    if (batch->array.n_children != call->input_count || schema->n_children != call->input_count)
        return tfos__fail(err, TFOS_INVALID, "model: %lld columns for %d inputs",
                          (long long)batch->array.n_children, call->input_count);
    for (; *count < call->input_count; (*count)++)
        TFOS__TRY(tfos__model_input_make(&call->inputs[*count], call->model->tf, schema, batch,
                                         *count, &call->given[*count], err));
    return TFOS_OK;
}

enum tfos_status tfos_model_call_run(struct tfos_model_call *call, const struct ArrowSchema *schema,
                                     struct ArrowArray *array, struct ArrowSchema *results_schema,
                                     struct ArrowArray *results, struct tfos_error *err)
{
    struct tfos__model_batch *batch = NULL;
    int64_t row_count = array->length;
    int given_count = 0;
    TFOS__TRY(tfos__model_batch_open(array, &batch, err));
    enum tfos_status status = make_inputs(call, schema, batch, &given_count, err);
    if (status == TFOS_OK)
        status = run_session(call, row_count, err);
    for (int i = 0; i < given_count; i++)
        call->model->tf->DeleteTensor(call->given[i]);
    tfos__model_batch_release(batch);
    if (status != TFOS_OK)
        return status;
    return tfos__model_outputs_make(call->outputs, call->output_count, call->model->tf, call->made,
                                    row_count, results_schema, results, err);
}

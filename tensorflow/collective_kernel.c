// SPDX-License-Identifier: Apache-2.0
// The kernels of the ops of a group. They block: TensorFlow's C API lends an asynchronous kernel a
// callback that is gone once the call returns. Outputs take over the memory of inputs that nobody
// else looks at, and are reduced in place. On GPUs other outputs are filled by the operation
// itself: the host cannot copy there.
#include "collective_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/collective_gpu.h>

#include "plugin.h"

#define MODULE "libtfos_tf"
#define STOPPED MODULE ": a rank has stopped" // Python looks for it
#define MAX_DIMENSIONS 254                    // TensorFlow's own limit

/// One run of a kernel.
struct call {
    struct TF_OpKernelContext *context;
    struct TF_Status *status;
    const struct tfos__collective_kernel *kernel;
    struct tfos_collective *group;
};

static void fail(struct call *call, int code, const char *message)
{
    tfos__tf.SetStatus(call->status, code, message);
}

/// Makes a failure of the library that of the op; returns whether there was none.
static bool check(struct call *call, enum tfos_status result, const struct tfos_error *err)
{
    if (result != TFOS_OK)
        tfos__op_set_status(call->status, result, err);
    return result == TFOS_OK;
}

static int64_t count_elements(const struct TF_Tensor *tensor)
{
    int64_t count = 1;

    for (int i = 0; i < tfos__tf.NumDims(tensor); i++)
        count *= tfos__tf.Dim(tensor, i);
    return count;
}

/// `to` may be `from`.
static void scale(void *to, const void *from, int64_t count, enum tfos_dtype dtype, double factor)
{
    if (dtype == TFOS_DTYPE_FLOAT32) {
        const float *values = from;
        float *scaled = to, by = (float)factor;
        for (int64_t i = 0; i < count; i++)
            scaled[i] = values[i] * by;
    } else {
        const double *values = from;
        double *scaled = to;
        for (int64_t i = 0; i < count; i++)
            scaled[i] = values[i] * factor;
    }
}

/// Writes the values times `factor`. A factor of 0 takes no part in anything, NaN included. Below 0
/// nothing is written.
static void copy_scaled(struct TF_Tensor *to, const struct TF_Tensor *from, double factor)
{
    void *data = tfos__tf.TensorData(to);
    size_t size = tfos__tf.TensorByteSize(to);

    if (size == 0 || factor < 0)
        return;
    if (factor == 0)
        memset(data, 0, size);
    else if (factor != 1)
        scale(data, tfos__tf.TensorData(from), count_elements(to),
              tfos__op_dtype_of(tfos__tf.TensorType(to)), factor);
    else if (data != tfos__tf.TensorData(from))
        memcpy(data, tfos__tf.TensorData(from), size);
}

/// Makes an output with the values of an input times `factor`: in the input's own memory, if nobody
/// else looks at that. Another output on a GPU gets no values: `*source`, to be deleted, has them.
static struct TF_Tensor *take_input(struct call *call, int input, int output, double factor,
                                    struct TF_Tensor **source)
{
    struct TF_Tensor *from = NULL, *made = NULL;
    int64_t shape[MAX_DIMENSIONS];
    int rank = 0, forwarded = -1;

    tfos__tf.GetInput(call->context, input, &from, call->status);
    if (!tfos__op_is_ok(call->status))
        return NULL;
    rank = tfos__tf.NumDims(from);
    for (int i = 0; i < rank; i++)
        shape[i] = tfos__tf.Dim(from, i);
    tfos__tf.DeleteTensor(from); // a second reference would keep the memory from being taken
    made = tfos__tf.ForwardInputOrAllocateOutput(call->context, &input, 1, output, shape, rank,
                                                 &forwarded, call->status);
    if (!tfos__op_is_ok(call->status))
        return NULL;
    if (forwarded == input) {
        if (!call->kernel->is_on_gpu)
            copy_scaled(made, made, factor);
        return made;
    }
    tfos__tf.GetInput(call->context, input, &from, call->status);
    if (!tfos__op_is_ok(call->status)) {
        tfos__tf.DeleteTensor(made);
        return NULL;
    }
    if (call->kernel->is_on_gpu) {
        *source = from;
        return made;
    }
    copy_scaled(made, from, factor);
    tfos__tf.DeleteTensor(from);
    return made;
}

/// Outputs, with the memory of each.
struct outputs {
    struct TF_Tensor **tensors, **sources;      ///< of a source NULL: the tensor itself
    struct tfos_collective_span *spans;         ///< room for one a tensor
    struct tfos_collective_gpu_span *gpu_spans; ///< the same, for operations on GPU memory
    int count;
};

static void make_room(struct call *call, int count, struct outputs *out)
{
    size_t room = count > 0 ? (size_t)count : 1;

    *out = (struct outputs){calloc(room, sizeof(*out->tensors)),
                            calloc(room, sizeof(*out->sources)), calloc(room, sizeof(*out->spans)),
                            calloc(room, sizeof(*out->gpu_spans)), 0};
    if (!out->tensors || !out->sources || !out->spans || !out->gpu_spans)
        fail(call, TF_RESOURCE_EXHAUSTED, MODULE ": no memory for a list of tensors");
}

/// Makes the outputs from `first` on of the inputs from `first_input` on.
static void open_outputs(struct call *call, int first_input, int first, double factor,
                         struct outputs *out)
{
    int count = tfos__tf.NumInputs(call->context) - first_input;

    make_room(call, count, out);
    for (int i = 0; i < count && tfos__op_is_ok(call->status); i++) {
        out->tensors[i] = take_input(call, first_input + i, first + i, factor, &out->sources[i]);
        out->count += out->tensors[i] ? 1 : 0;
    }
}

/// The inputs from `first_input` on, which are only read, in place of outputs.
static void open_inputs(struct call *call, int first_input, struct outputs *out)
{
    int count = tfos__tf.NumInputs(call->context) - first_input;

    make_room(call, count, out);
    for (int i = 0; i < count && tfos__op_is_ok(call->status); i++) {
        tfos__tf.GetInput(call->context, first_input + i, &out->tensors[i], call->status);
        out->count += out->tensors[i] ? 1 : 0;
    }
}

static void close_outputs(struct outputs *out)
{
    for (int i = 0; i < out->count; i++) {
        tfos__tf.DeleteTensor(out->tensors[i]);
        if (out->sources[i])
            tfos__tf.DeleteTensor(out->sources[i]);
    }
    free(out->tensors);
    free(out->sources);
    free(out->spans);
    free(out->gpu_spans);
}

/// Fills the spans with the tensors of a dtype; returns how many there are.
static int64_t select_spans(struct outputs *out, enum tfos_dtype dtype)
{
    int64_t count = 0;

    for (int i = 0; i < out->count; i++) {
        struct TF_Tensor *tensor = out->tensors[i];
        int64_t elements = count_elements(tensor);
        if (tfos__op_dtype_of(tfos__tf.TensorType(tensor)) != dtype || elements == 0)
            continue;
        void *data = tfos__tf.TensorData(tensor);
        out->spans[count] = (struct tfos_collective_span){data, elements};
        out->gpu_spans[count++] = (struct tfos_collective_gpu_span){
            data, out->sources[i] ? tfos__tf.TensorData(out->sources[i]) : data, elements};
    }
    return count;
}

/// `factor`, on a GPU: what the tensors are still to be multiplied by; NULL: by nothing.
static void reduce(struct call *call, struct outputs *out, enum tfos_dtype dtype,
                   enum tfos_reduction reduction, const double *factor)
{
    int64_t count = select_spans(out, dtype);
    const char *name = call->kernel->operation;
    struct tfos_error err = {0};

    if (count > 0 && call->kernel->is_on_gpu)
        (void)check(call,
                    tfos_collective_gpu_all_reduce(call->group, name, out->gpu_spans, count, dtype,
                                                   reduction, factor, &err),
                    &err);
    else if (count > 0)
        (void)check(call,
                    tfos_collective_all_reduce(call->group, name, out->spans, count, dtype,
                                               reduction, &err),
                    &err);
}

static void all_reduce(struct call *call)
{
    struct outputs out;

    open_outputs(call, TFOS__COLLECTIVE_TENSORS, 0, 1, &out);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, tfos__op_dtype_of(tfos__tf.TensorType(out.tensors[0])),
               call->kernel->reduction, NULL);
    close_outputs(&out);
}

/// What a rank's gradients count.
struct weighing {
    double share; ///< of this rank's weight in the sum of all
    bool all_are_equal;
};

/// Memory for all_gather(): the weights of all ranks.
static void *give_room(void *context, const int64_t *counts, int64_t total)
{
    (void)counts;
    return total <= TFOS_COLLECTIVE_MAX_RANKS ? context : NULL;
}

static bool weigh(struct call *call, struct weighing *out)
{
    double weights[TFOS_COLLECTIVE_MAX_RANKS] = {0}, weight = 0, sum = 0;
    struct TF_Tensor *input = NULL;
    char name[sizeof(call->kernel->operation) + 16];
    int size = tfos_collective_size(call->group);
    struct tfos_error err = {0};

    tfos__tf.GetInput(call->context, TFOS__COLLECTIVE_WEIGHT, &input, call->status);
    if (!tfos__op_is_ok(call->status))
        return false;
    weight = count_elements(input) == 1 ? *(const double *)tfos__tf.TensorData(input) : 0;
    tfos__tf.DeleteTensor(input);
    snprintf(name, sizeof(name), "%.240s: weight", call->kernel->operation);
    if (!check(call,
               tfos_collective_all_gather(call->group, name, &weight, 1, TFOS_DTYPE_FLOAT64,
                                          give_room, weights, &err),
               &err))
        return false;
    *out = (struct weighing){0, true};
    for (int rank = 0; rank < size; rank++) {
        if (weights[rank] < 0) {
            fail(call, TF_OUT_OF_RANGE, STOPPED);
            return false;
        }
        sum += weights[rank];
        out->all_are_equal = out->all_are_equal && weights[rank] == weight;
    }
    if (!(sum > 0))
        return check(call, TFOS_END, NULL);
    out->share = weight / sum;
    return true;
}

static void mean_gradients(struct call *call)
{
    struct weighing weighing;
    struct outputs out;
    struct TF_Tensor *share = NULL;
    enum tfos_reduction reduction = TFOS_REDUCE_SUM;
    const double *factor = &weighing.share;

    if (!weigh(call, &weighing))
        return;
    // Equal weights cost no pass over the gradients: the reduction divides by the number of ranks.
    if (weighing.all_are_equal) {
        reduction = TFOS_REDUCE_MEAN;
        factor = NULL;
    }
    open_outputs(call, TFOS__COLLECTIVE_GRADIENTS, 1, factor ? *factor : 1, &out);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, TFOS_DTYPE_FLOAT32, reduction, factor);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, TFOS_DTYPE_FLOAT64, reduction, factor);
    if (tfos__op_is_ok(call->status) && out.count > 0)
        tfos_collective_mark_step(call->group, TFOS_COLLECTIVE_STEP_GRADIENTS);
    if (tfos__op_is_ok(call->status))
        share = tfos__tf.AllocateOutput(call->context, 0, TF_DOUBLE, NULL, 0, sizeof(double),
                                        call->status);
    if (share) {
        memcpy(tfos__tf.TensorData(share), &weighing.share, sizeof(weighing.share));
        tfos__tf.DeleteTensor(share);
    }
    close_outputs(&out);
}

static void send(struct call *call, struct outputs *out, enum tfos_dtype dtype)
{
    int64_t count = select_spans(out, dtype);
    const char *name = call->kernel->operation;
    int root = (int)call->kernel->root;
    struct tfos_error err = {0};

    if (count > 0 && call->kernel->is_on_gpu)
        (void)check(call,
                    tfos_collective_gpu_broadcast(call->group, name, out->gpu_spans, count, dtype,
                                                  root, &err),
                    &err);
    else if (count > 0)
        (void)check(
            call,
            tfos_collective_broadcast(call->group, name, out->spans, count, dtype, root, &err),
            &err);
}

static void broadcast(struct call *call)
{
    struct outputs out;

    open_outputs(call, TFOS__COLLECTIVE_TENSORS, 0, 1, &out);
    for (int dtype = TFOS_DTYPE_BOOL; dtype <= TFOS_DTYPE_BFLOAT16 && tfos__op_is_ok(call->status);
         dtype++)
        send(call, &out, (enum tfos_dtype)dtype);
    close_outputs(&out);
}

/// One tensor that is gathered.
struct gathering {
    struct call *call;
    struct TF_Tensor *input, *made;
    int index;
};

/// Memory for all_gather(): the output, whose first dimension is that of all ranks together.
static void *allocate_gathered(void *context, const int64_t *counts, int64_t total)
{
    struct gathering *gathering = context;
    int rank = tfos__tf.NumDims(gathering->input);
    int64_t shape[MAX_DIMENSIONS + 1] = {0}, row_count = 1;

    (void)counts;
    for (int i = 1; i < rank; i++) {
        shape[i] = tfos__tf.Dim(gathering->input, i);
        row_count *= shape[i];
    }
    if (row_count == 0 || total % row_count != 0)
        return NULL;
    shape[0] = total / row_count;
    gathering->made = tfos__tf.AllocateOutput(
        gathering->call->context, gathering->index, tfos__tf.TensorType(gathering->input), shape,
        rank > 0 ? rank : 1,
        (size_t)total * tfos__op_size_of(tfos__op_dtype_of(tfos__tf.TensorType(gathering->input))),
        gathering->call->status);
    if (!gathering->made)
        return NULL;
    // No memory belongs to an empty tensor, but none is no answer.
    return total > 0 ? tfos__tf.TensorData(gathering->made) : context;
}

static void gather(struct call *call, int index)
{
    struct gathering gathering = {call, NULL, NULL, index};
    struct tfos_error err = {0};
    enum tfos_status result = TFOS_OK;
    bool is_on_gpu = call->kernel->is_on_gpu;

    tfos__tf.GetInput(call->context, TFOS__COLLECTIVE_TENSORS + index, &gathering.input,
                      call->status);
    if (!tfos__op_is_ok(call->status))
        return;
    result = (is_on_gpu ? tfos_collective_gpu_all_gather : tfos_collective_all_gather)(
        call->group, call->kernel->operation, tfos__tf.TensorData(gathering.input),
        count_elements(gathering.input), tfos__op_dtype_of(tfos__tf.TensorType(gathering.input)),
        allocate_gathered, &gathering, &err);
    if (tfos__op_is_ok(call->status))
        (void)check(call, result, &err);
    if (gathering.made)
        tfos__tf.DeleteTensor(gathering.made);
    tfos__tf.DeleteTensor(gathering.input);
}

static void all_gather(struct call *call)
{
    int count = tfos__tf.NumOutputs(call->context);

    for (int i = 0; i < count && tfos__op_is_ok(call->status); i++)
        gather(call, i);
}

/// What the ops on parameters have in common; a close has no steps.
typedef enum tfos_status parameter_call(struct tfos_collective *group, const char *name,
                                        const struct tfos_collective_span *spans,
                                        int64_t span_count, int64_t steps, struct tfos_error *err);

static enum tfos_status close_parameters(struct tfos_collective *group, const char *name,
                                         const struct tfos_collective_span *spans,
                                         int64_t span_count, int64_t steps, struct tfos_error *err)
{
    (void)steps;
    return tfos_collective_close_parameters(group, name, spans, span_count, err);
}

/// Calls `work` with the tensors: the outputs, or, if it has none, the inputs. `factor`: what
/// open_outputs() makes of the inputs.
static void exchange_parameters(struct call *call, parameter_call *work, double factor)
{
    struct outputs out = {0};
    struct tfos_error err = {0};
    int64_t steps =
        tfos__op_read_number(call->context, TFOS__COLLECTIVE_STEPS, MODULE ": steps", call->status);

    if (tfos__tf.NumOutputs(call->context) > 0)
        open_outputs(call, TFOS__COLLECTIVE_PARAMETERS, 0, factor, &out);
    else
        open_inputs(call, TFOS__COLLECTIVE_PARAMETERS, &out);
    if (tfos__op_is_ok(call->status))
        (void)check(call,
                    work(call->group, call->kernel->operation, out.spans,
                         select_spans(&out, TFOS_DTYPE_FLOAT32), steps, &err),
                    &err);
    close_outputs(&out);
}

static void open_parameters(struct call *call)
{
    exchange_parameters(call, tfos_collective_open_parameters, 1);
}

static void pull_parameters(struct call *call)
{
    exchange_parameters(call, tfos_collective_pull_parameters, -1);
}

static void push_parameters(struct call *call)
{
    exchange_parameters(call, tfos_collective_push_parameters, 1);
}

static void end_parameters(struct call *call)
{
    exchange_parameters(call, close_parameters, -1);
}

static void await_rows(struct call *call)
{
    struct tfos_error err = {0};
    int64_t is_waiting = tfos__op_read_number(call->context, TFOS__COLLECTIVE_STEPS,
                                              MODULE ": is_waiting", call->status);

    if (tfos__op_is_ok(call->status))
        (void)check(
            call,
            tfos_collective_await_rows(call->group, call->kernel->operation, is_waiting != 0, &err),
            &err);
}

/// Calls `work` with the group whose number is the first input.
static void with_group(void *kernel, struct TF_OpKernelContext *context,
                       void (*work)(struct call *call))
{
    struct call call = {context, tfos__tf.NewStatus(), kernel, NULL};
    int64_t number =
        tfos__op_read_number(context, TFOS__COLLECTIVE_GROUP, MODULE ": group", call.status);
    struct tfos_error err = {0};

    if (tfos__op_is_ok(call.status) &&
        check(&call, tfos_collective_acquire(number, &call.group, &err), &err)) {
        work(&call);
        tfos_collective_release(call.group);
    }
    if (!tfos__op_is_ok(call.status))
        tfos__tf.OpKernelContext_Failure(context, call.status);
    tfos__tf.DeleteStatus(call.status);
}

void tfos__collective_compute_all_reduce(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, all_reduce);
}

void tfos__collective_compute_mean(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, mean_gradients);
}

void tfos__collective_compute_broadcast(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, broadcast);
}

void tfos__collective_compute_all_gather(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, all_gather);
}

void tfos__collective_compute_open(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, open_parameters);
}

void tfos__collective_compute_pull(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, pull_parameters);
}

void tfos__collective_compute_push(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, push_parameters);
}

void tfos__collective_compute_close(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, end_parameters);
}

void tfos__collective_compute_await_rows(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, await_rows);
}

static void have_data(struct call *call)
{
    tfos_collective_mark_step(call->group, TFOS_COLLECTIVE_STEP_HAS_DATA);
}

void tfos__collective_compute_have(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, have_data);
}

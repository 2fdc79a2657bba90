// SPDX-License-Identifier: Apache-2.0
// The ops of the group of processes whose number is their first input. Each has the attribute
// `operation`, a name that is the same on all ranks and that messages have.
//
// TfosAllReduce reduces tensors of one dtype element by element. TfosMeanGradients gives the mean
// of gradients, in which each rank counts by its weight, and the share that this rank's weight has
// in the sum. It ends with OUT_OF_RANGE, on all ranks at once, when no rank has a weight, or when
// one gives a negative weight, by which it says that it stops. TfosBroadcast gives the tensors of
// rank `root`. TfosAllGather joins the tensors of all ranks along their first dimension, which may
// differ from rank to rank.
//
// The kernels block: TensorFlow's C API lends an asynchronous kernel a callback that is gone once
// the call returns. They are stateful, so that a graph runs them in the order of the program, which
// is the same on all ranks; there is never more than one operation of a group under way.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/collective.h>

#include "plugin.h"

#define REDUCE_OP "TfosAllReduce"
#define MEAN_OP "TfosMeanGradients"
#define BROADCAST_OP "TfosBroadcast"
#define GATHER_OP "TfosAllGather"
#define MODULE "libtfos_tf"
#define STOPPED MODULE ": a rank has stopped" // Python looks for it
#define MAX_DIMENSIONS 254                    // TensorFlow's own limit

enum { GROUP, TENSORS, WEIGHT = TENSORS, GRADIENTS };

/// What a node of a graph says of its op.
struct kernel {
    char operation[256];
    enum tfos_reduction reduction;
    int64_t root;
};

/// One run of a kernel.
struct call {
    struct TF_OpKernelContext *context;
    struct TF_Status *status;
    const struct kernel *kernel;
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

/// Writes the values times `factor`. A factor of 0 takes no part in anything, NaN included.
static void copy_scaled(struct TF_Tensor *to, const struct TF_Tensor *from, double factor)
{
    void *data = tfos__tf.TensorData(to);
    size_t size = tfos__tf.TensorByteSize(to);

    if (size == 0)
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
/// else looks at that.
static struct TF_Tensor *take_input(struct call *call, int input, int output, double factor)
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
        copy_scaled(made, made, factor);
        return made;
    }
    tfos__tf.GetInput(call->context, input, &from, call->status);
    if (!tfos__op_is_ok(call->status)) {
        tfos__tf.DeleteTensor(made);
        return NULL;
    }
    copy_scaled(made, from, factor);
    tfos__tf.DeleteTensor(from);
    return made;
}

/// Outputs, with the memory of each.
struct outputs {
    struct TF_Tensor **tensors;
    struct tfos_collective_span *spans; ///< room for one a tensor
    int count;
};

/// Makes the outputs from `first` on of the inputs from `first_input` on.
static void open_outputs(struct call *call, int first_input, int first, double factor,
                         struct outputs *out)
{
    int count = tfos__tf.NumInputs(call->context) - first_input;
    size_t room = count > 0 ? (size_t)count : 1;

    *out =
        (struct outputs){calloc(room, sizeof(*out->tensors)), calloc(room, sizeof(*out->spans)), 0};
    if (!out->tensors || !out->spans) {
        fail(call, TF_RESOURCE_EXHAUSTED, MODULE ": no memory for a list of tensors");
        return;
    }
    for (int i = 0; i < count && tfos__op_is_ok(call->status); i++) {
        out->tensors[i] = take_input(call, first_input + i, first + i, factor);
        out->count += out->tensors[i] ? 1 : 0;
    }
}

static void close_outputs(struct outputs *out)
{
    for (int i = 0; i < out->count; i++)
        tfos__tf.DeleteTensor(out->tensors[i]);
    free(out->tensors);
    free(out->spans);
}

/// Fills the spans with the tensors of a dtype; returns how many there are.
static int64_t select_spans(struct outputs *out, enum tfos_dtype dtype)
{
    int64_t count = 0;

    for (int i = 0; i < out->count; i++) {
        struct TF_Tensor *tensor = out->tensors[i];
        if (tfos__op_dtype_of(tfos__tf.TensorType(tensor)) == dtype && count_elements(tensor) > 0)
            out->spans[count++] =
                (struct tfos_collective_span){tfos__tf.TensorData(tensor), count_elements(tensor)};
    }
    return count;
}

static void reduce(struct call *call, struct outputs *out, enum tfos_dtype dtype,
                   enum tfos_reduction reduction)
{
    int64_t count = select_spans(out, dtype);
    struct tfos_error err = {0};

    if (count > 0)
        (void)check(call,
                    tfos_collective_all_reduce(call->group, call->kernel->operation, out->spans,
                                               count, dtype, reduction, &err),
                    &err);
}

static void all_reduce(struct call *call)
{
    struct outputs out;

    open_outputs(call, TENSORS, 0, 1, &out);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, tfos__op_dtype_of(tfos__tf.TensorType(out.tensors[0])),
               call->kernel->reduction);
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
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS];
    double weights[TFOS_COLLECTIVE_MAX_RANKS] = {0}, weight = 0, sum = 0;
    struct TF_Tensor *input = NULL;
    char name[sizeof(call->kernel->operation) + 16];
    int size = tfos_collective_size(call->group);
    struct tfos_error err = {0};

    tfos__tf.GetInput(call->context, WEIGHT, &input, call->status);
    if (!tfos__op_is_ok(call->status))
        return false;
    weight = count_elements(input) == 1 ? *(const double *)tfos__tf.TensorData(input) : 0;
    tfos__tf.DeleteTensor(input);
    snprintf(name, sizeof(name), "%.240s: weight", call->kernel->operation);
    if (!check(call,
               tfos_collective_all_gather(call->group, name, &weight, 1, TFOS_DTYPE_FLOAT64, counts,
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

    if (!weigh(call, &weighing))
        return;
    // Equal weights cost no pass over the gradients: the reduction divides by the number of ranks.
    if (weighing.all_are_equal)
        reduction = TFOS_REDUCE_MEAN;
    open_outputs(call, GRADIENTS, 1, weighing.all_are_equal ? 1 : weighing.share, &out);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, TFOS_DTYPE_FLOAT32, reduction);
    if (tfos__op_is_ok(call->status))
        reduce(call, &out, TFOS_DTYPE_FLOAT64, reduction);
    if (tfos__op_is_ok(call->status))
        share = tfos__tf.AllocateOutput(call->context, 0, TF_DOUBLE, NULL, 0, sizeof(double),
                                        call->status);
    if (share) {
        memcpy(tfos__tf.TensorData(share), &weighing.share, sizeof(weighing.share));
        tfos__tf.DeleteTensor(share);
    }
    close_outputs(&out);
}

static void broadcast(struct call *call)
{
    struct outputs out;
    struct tfos_error err = {0};

    open_outputs(call, TENSORS, 0, 1, &out);
    for (int dtype = TFOS_DTYPE_BOOL; dtype <= TFOS_DTYPE_BFLOAT16; dtype++) {
        int64_t count =
            tfos__op_is_ok(call->status) ? select_spans(&out, (enum tfos_dtype)dtype) : 0;
        if (count > 0)
            (void)check(call,
                        tfos_collective_broadcast(call->group, call->kernel->operation, out.spans,
                                                  count, (enum tfos_dtype)dtype,
                                                  (int)call->kernel->root, &err),
                        &err);
    }
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
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS];
    struct tfos_error err = {0};
    enum tfos_status result = TFOS_OK;

    tfos__tf.GetInput(call->context, TENSORS + index, &gathering.input, call->status);
    if (!tfos__op_is_ok(call->status))
        return;
    result = tfos_collective_all_gather(
        call->group, call->kernel->operation, tfos__tf.TensorData(gathering.input),
        count_elements(gathering.input), tfos__op_dtype_of(tfos__tf.TensorType(gathering.input)),
        counts, allocate_gathered, &gathering, &err);
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

/// Calls `work` with the group whose number is the first input.
static void with_group(void *kernel, struct TF_OpKernelContext *context,
                       void (*work)(struct call *call))
{
    struct call call = {context, tfos__tf.NewStatus(), kernel, NULL};
    int64_t number = tfos__op_read_number(context, GROUP, MODULE ": group", call.status);
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

static void compute_all_reduce(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, all_reduce);
}

static void compute_mean(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, mean_gradients);
}

static void compute_broadcast(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, broadcast);
}

static void compute_all_gather(void *kernel, struct TF_OpKernelContext *context)
{
    with_group(kernel, context, all_gather);
}

/// Reads an attribute that is text.
static void read_text(struct TF_OpKernelConstruction *construction, const char *attr, char *text,
                      size_t size, struct TF_Status *status)
{
    int32_t list_size = 0, text_size = 0;

    if (tfos__op_is_ok(status))
        tfos__tf.OpKernelConstruction_GetAttrSize(construction, attr, &list_size, &text_size,
                                                  status);
    if (!tfos__op_is_ok(status))
        return;
    if (text_size < 0 || (size_t)text_size >= size)
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT, MODULE ": operation is too long a name");
    else
        tfos__tf.OpKernelConstruction_GetAttrString(construction, attr, text, size, status);
}

static enum tfos_reduction reduction_of(const char *name)
{
    static const char *const names[] = {[TFOS_REDUCE_SUM] = "sum",
                                        [TFOS_REDUCE_MEAN] = "mean",
                                        [TFOS_REDUCE_MIN] = "min",
                                        [TFOS_REDUCE_MAX] = "max"};
    int reduction = TFOS_REDUCE_SUM;

    while (reduction < TFOS_REDUCE_MAX && strcmp(names[reduction], name) != 0)
        reduction++;
    return (enum tfos_reduction)reduction;
}

/// Reads `operation`, and the attribute that the op has besides: `reduction`, `root`, or none.
static void *create(struct TF_OpKernelConstruction *construction, const char *other)
{
    struct TF_Status *status = tfos__tf.NewStatus();
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    char name[8] = "";

    if (!kernel)
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, MODULE ": no memory for a kernel");
    else
        read_text(construction, "operation", kernel->operation, sizeof(kernel->operation), status);
    if (other && strcmp(other, "reduction") == 0 && tfos__op_is_ok(status)) {
        read_text(construction, other, name, sizeof(name), status);
        kernel->reduction = reduction_of(name);
    } else if (other && tfos__op_is_ok(status)) {
        tfos__tf.OpKernelConstruction_GetAttrInt64(construction, other, &kernel->root, status);
    }
    if (!tfos__op_is_ok(status))
        tfos__tf.OpKernelConstruction_Failure(construction, status);
    tfos__tf.DeleteStatus(status);
    return kernel;
}

static void *create_reduction(struct TF_OpKernelConstruction *construction)
{
    return create(construction, "reduction");
}

static void *create_broadcast(struct TF_OpKernelConstruction *construction)
{
    return create(construction, "root");
}

static void *create_plain(struct TF_OpKernelConstruction *construction)
{
    return create(construction, NULL);
}

/// Gives the outputs from `first_output` on the shapes of the inputs from `first_input` on.
static void keep_shapes(struct TF_ShapeInferenceContext *context, int first_input, int first_output,
                        struct TF_Status *status)
{
    int count = (int)tfos__tf.ShapeInferenceContextNumInputs(context);

    for (int i = first_input; i < count && tfos__op_is_ok(status); i++) {
        struct TF_ShapeHandle *shape = tfos__tf.NewShapeHandle();
        tfos__tf.ShapeInferenceContextGetInput(context, i, shape, status);
        if (tfos__op_is_ok(status))
            tfos__tf.ShapeInferenceContextSetOutput(context, i - first_input + first_output, shape,
                                                    status);
        tfos__tf.DeleteShapeHandle(shape);
    }
}

static void infer_same(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    keep_shapes(context, TENSORS, 0, status);
}

static void infer_mean(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    struct TF_ShapeHandle *scalar = tfos__tf.ShapeInferenceContextScalar(context);

    tfos__tf.ShapeInferenceContextSetOutput(context, 0, scalar, status);
    tfos__tf.DeleteShapeHandle(scalar);
    keep_shapes(context, GRADIENTS, 1, status);
}

static struct TF_OpDefinitionBuilder *begin_op(const char *name, const char *types)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(name);

    tfos__tf.OpDefinitionBuilderSetIsStateful(op, true);
    tfos__tf.OpDefinitionBuilderAddAttr(op, "operation: string");
    tfos__tf.OpDefinitionBuilderAddAttr(op, types);
    tfos__tf.OpDefinitionBuilderAddInput(op, "group: int64");
    return op;
}

static struct TF_OpDefinitionBuilder *define_all_reduce(void)
{
    struct TF_OpDefinitionBuilder *op =
        begin_op(REDUCE_OP, "T: {half, bfloat16, float, double, int32, int64}");

    tfos__tf.OpDefinitionBuilderAddAttr(op, "N: int >= 1");
    tfos__tf.OpDefinitionBuilderAddAttr(op, "reduction: {'sum', 'mean', 'min', 'max'} = 'sum'");
    tfos__tf.OpDefinitionBuilderAddInput(op, "tensors: N * T");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "reduced: N * T");
    return op;
}

static struct TF_OpDefinitionBuilder *define_mean(void)
{
    struct TF_OpDefinitionBuilder *op = begin_op(MEAN_OP, "T: list({float, double}) >= 0");

    tfos__tf.OpDefinitionBuilderAddInput(op, "weight: double");
    tfos__tf.OpDefinitionBuilderAddInput(op, "gradients: T");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "share: double");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "means: T");
    return op;
}

#define FIXED                                                                                      \
    "T: list({bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, half, bfloat16, "    \
    "float, double}) >= 1"

static struct TF_OpDefinitionBuilder *define_broadcast(void)
{
    struct TF_OpDefinitionBuilder *op = begin_op(BROADCAST_OP, FIXED);

    tfos__tf.OpDefinitionBuilderAddAttr(op, "root: int >= 0");
    tfos__tf.OpDefinitionBuilderAddInput(op, "tensors: T");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "sent: T");
    return op;
}

static struct TF_OpDefinitionBuilder *define_gather(void)
{
    struct TF_OpDefinitionBuilder *op = begin_op(GATHER_OP, FIXED);

    tfos__tf.OpDefinitionBuilderAddInput(op, "tensors: T");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "gathered: T");
    return op;
}

void tfos__collective_ops_register(struct TF_Status *status)
{
    const struct tfos__op_kernel kernels[] = {
        {REDUCE_OP, create_reduction, compute_all_reduce, free, infer_same},
        {MEAN_OP, create_plain, compute_mean, free, infer_mean},
        {BROADCAST_OP, create_broadcast, compute_broadcast, free, infer_same},
        {GATHER_OP, create_plain, compute_all_gather, free, NULL},
    };

    tfos__op_register(define_all_reduce(), &kernels[0], status);
    tfos__op_register(define_mean(), &kernels[1], status);
    tfos__op_register(define_broadcast(), &kernels[2], status);
    tfos__op_register(define_gather(), &kernels[3], status);
}

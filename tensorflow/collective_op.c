// SPDX-License-Identifier: Apache-2.0
// The ops of the group of processes whose number is their first input. Each has the attribute
// `operation`, a name that is the same on all ranks and that messages have.
//
// TfosAllReduce reduces tensors of one dtype element by element. TfosMeanGradients gives the mean
// of gradients, in which each rank counts by its weight, and the share that this rank's weight has
// in the sum. It ends with OUT_OF_RANGE, on all ranks at once, when no rank has a weight, or when
// one gives a negative weight, by which it says that it stops. TfosBroadcast gives the tensors of
// rank `root`. TfosAllGather joins the tensors of all ranks along their first dimension, which may
// differ from rank to rank. TfosHaveData, which has no tensors, notes that a step has its data: it
// runs when what it depends on has.
//
// Of parameters that are trained asynchronously, TfosOpenParameters gives those of rank 0,
// TfosPullParameters and TfosCloseParameters those that all share, and TfosPushParameters adds to
// them. TfosAwaitRows notes that this rank waits for its data, or has it.
//
// Those that move tensors but parameters have kernels for GPUs, too (<tfos/collective_gpu.h>).
//
// All are stateful, so that a graph runs them in the order of the program, which is the same on
// all ranks; there is never more than one operation of a group under way.
#include <stdlib.h>
#include <string.h>

#include "collective_kernel.h"
#include "plugin.h"

#define REDUCE_OP "TfosAllReduce"
#define MEAN_OP "TfosMeanGradients"
#define BROADCAST_OP "TfosBroadcast"
#define GATHER_OP "TfosAllGather"
#define OPEN_OP "TfosOpenParameters"
#define PULL_OP "TfosPullParameters"
#define PUSH_OP "TfosPushParameters"
#define CLOSE_OP "TfosCloseParameters"
#define ROWS_OP "TfosAwaitRows"
#define HAVE_OP "TfosHaveData"
#define MODULE "libtfos_tf"

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
    struct tfos__collective_kernel *kernel = calloc(1, sizeof(*kernel));
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

static void *put_on_gpu(struct tfos__collective_kernel *kernel)
{
    if (kernel)
        kernel->is_on_gpu = true;
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

static void *create_reduction_on_gpu(struct TF_OpKernelConstruction *construction)
{
    return put_on_gpu(create_reduction(construction));
}

static void *create_broadcast_on_gpu(struct TF_OpKernelConstruction *construction)
{
    return put_on_gpu(create_broadcast(construction));
}

static void *create_plain_on_gpu(struct TF_OpKernelConstruction *construction)
{
    return put_on_gpu(create_plain(construction));
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
    keep_shapes(context, TFOS__COLLECTIVE_TENSORS, 0, status);
}

static void infer_parameters(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    keep_shapes(context, TFOS__COLLECTIVE_PARAMETERS, 0, status);
}

static void infer_mean(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    struct TF_ShapeHandle *scalar = tfos__tf.ShapeInferenceContextScalar(context);

    tfos__tf.ShapeInferenceContextSetOutput(context, 0, scalar, status);
    tfos__tf.DeleteShapeHandle(scalar);
    keep_shapes(context, TFOS__COLLECTIVE_GRADIENTS, 1, status);
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

static struct TF_OpDefinitionBuilder *define_parameters(const char *name)
{
    struct TF_OpDefinitionBuilder *op = begin_op(name, "N: int >= 1");

    tfos__tf.OpDefinitionBuilderAddInput(op, "steps: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "parameters: N * float");
    if (strcmp(name, PUSH_OP) != 0)
        tfos__tf.OpDefinitionBuilderAddOutput(op, "shared: N * float");
    return op;
}

static struct TF_OpDefinitionBuilder *define_rows(void)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(ROWS_OP);

    tfos__tf.OpDefinitionBuilderSetIsStateful(op, true);
    tfos__tf.OpDefinitionBuilderAddAttr(op, "operation: string");
    tfos__tf.OpDefinitionBuilderAddInput(op, "group: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "is_waiting: int64");
    return op;
}

static struct TF_OpDefinitionBuilder *define_have(void)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(HAVE_OP);

    tfos__tf.OpDefinitionBuilderSetIsStateful(op, true);
    tfos__tf.OpDefinitionBuilderAddInput(op, "group: int64");
    return op;
}

/// Sums of int32 stay on the CPU, where TensorFlow has such numbers.
static void register_on_gpu(struct TF_Status *status)
{
    static const int types[] = {TF_HALF, TF_BFLOAT16, TF_FLOAT, TF_DOUBLE, TF_INT64};
    static const char *const group[] = {"group", NULL};
    static const char *const numbers[] = {"group", "weight", "share", NULL};
    const struct tfos__op_kernel reduction = {REDUCE_OP, create_reduction_on_gpu,
                                              tfos__collective_compute_all_reduce, free, NULL};
    const struct tfos__op_kernel others[] = {
        {MEAN_OP, create_plain_on_gpu, tfos__collective_compute_mean, free, NULL},
        {BROADCAST_OP, create_broadcast_on_gpu, tfos__collective_compute_broadcast, free, NULL},
        {GATHER_OP, create_plain_on_gpu, tfos__collective_compute_all_gather, free, NULL},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        tfos__op_register_on_gpu(&reduction, types[i], group, status);
    for (int i = 0; i < 3; i++)
        tfos__op_register_on_gpu(&others[i], 0, i == 0 ? numbers : group, status);
}

void tfos__collective_ops_register(struct TF_Status *status)
{
    const struct tfos__op_kernel kernels[] = {
        {REDUCE_OP, create_reduction, tfos__collective_compute_all_reduce, free, infer_same},
        {MEAN_OP, create_plain, tfos__collective_compute_mean, free, infer_mean},
        {BROADCAST_OP, create_broadcast, tfos__collective_compute_broadcast, free, infer_same},
        {GATHER_OP, create_plain, tfos__collective_compute_all_gather, free, NULL},
        {OPEN_OP, create_plain, tfos__collective_compute_open, free, infer_parameters},
        {PULL_OP, create_plain, tfos__collective_compute_pull, free, infer_parameters},
        {PUSH_OP, create_plain, tfos__collective_compute_push, free, NULL},
        {CLOSE_OP, create_plain, tfos__collective_compute_close, free, infer_parameters},
        {ROWS_OP, create_plain, tfos__collective_compute_await_rows, free, NULL},
        {HAVE_OP, NULL, tfos__collective_compute_have, NULL, NULL},
    };

    tfos__op_register(define_all_reduce(), &kernels[0], status);
    tfos__op_register(define_mean(), &kernels[1], status);
    tfos__op_register(define_broadcast(), &kernels[2], status);
    tfos__op_register(define_gather(), &kernels[3], status);
    for (int i = 4; i < 8; i++)
        tfos__op_register(define_parameters(kernels[i].name), &kernels[i], status);
    tfos__op_register(define_rows(), &kernels[8], status);
    tfos__op_register(define_have(), &kernels[9], status);
    register_on_gpu(status);
}

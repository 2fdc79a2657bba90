// SPDX-License-Identifier: Apache-2.0
// What happens when libtfos_tf is loaded: the ops are registered while tf.load_op_library()
// listens. In a process without TensorFlow nothing happens.
#include "plugin.h"

#include <stdio.h>
#include <tfos/export.h>

static char failure[512];

/// Why the library registered nothing; NULL: it registered its ops. For the program that loads it.
TFOS_API const char *tfos_tf_failure(void);

TFOS_API const char *tfos_tf_failure(void)
{
    return failure[0] != '\0' ? failure : NULL;
}

__attribute__((constructor)) static void register_all(void)
{
    const char *reason = tfos__tensorflow_find();

    if (reason) {
        snprintf(failure, sizeof(failure), "libtfos_tf: %s", reason);
        return;
    }
    struct TF_Status *status = tfos__tf.NewStatus();
    tfos__batch_ops_register(status);
    tfos__pass_op_register(status);
    tfos__collective_ops_register(status);
    if (!tfos__op_is_ok(status))
        snprintf(failure, sizeof(failure), "libtfos_tf: TensorFlow refuses the ops: %s",
                 tfos__tf.Message(status));
    tfos__tf.DeleteStatus(status);
}

static void infer_nothing(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    tfos__tf.ShapeInferenceContextSetUnknownShape(context, status);
}

void tfos__op_register(struct TF_OpDefinitionBuilder *op, const struct tfos__op_kernel *kernel,
                       struct TF_Status *status)
{
    tfos__tf.OpDefinitionBuilderSetShapeInferenceFunction(
        op, kernel->infer_shapes ? kernel->infer_shapes : infer_nothing);
    if (tfos__op_is_ok(status))
        tfos__tf.RegisterOpDefinition(op, status);
    if (tfos__op_is_ok(status))
        tfos__tf.RegisterKernelBuilder(kernel->name,
                                       tfos__tf.NewKernelBuilder(kernel->name, "CPU",
                                                                 kernel->create, kernel->compute,
                                                                 kernel->destroy),
                                       status);
}

void tfos__op_register_on_gpu(const struct tfos__op_kernel *kernel, int type,
                              const char *const *host_arguments, struct TF_Status *status)
{
    if (!tfos__op_is_ok(status))
        return;
    struct TF_KernelBuilder *builder = tfos__tf.NewKernelBuilder(
        kernel->name, "GPU", kernel->create, kernel->compute, kernel->destroy);
    for (; *host_arguments; host_arguments++)
        tfos__tf.KernelBuilder_HostMemory(builder, *host_arguments);
    if (type != 0)
        tfos__tf.KernelBuilder_TypeConstraint(builder, "T", type, status);
    if (tfos__op_is_ok(status))
        tfos__tf.RegisterKernelBuilder(kernel->name, builder, status);
}

bool tfos__op_is_ok(const struct TF_Status *status)
{
    return tfos__tf.GetCode(status) == TF_OK;
}

// UNAVAILABLE would fit some of them better, but TensorFlow changes it to INTERNAL when it comes
// from an op that does not communicate.
static int code_of(enum tfos_status status)
{
    switch (status) {
    case TFOS_END:
        return TF_OUT_OF_RANGE;
    case TFOS_INVALID:
        return TF_INVALID_ARGUMENT;
    case TFOS_NO_MEMORY:
        return TF_RESOURCE_EXHAUSTED;
    case TFOS_NOT_FOUND:
        return TF_NOT_FOUND;
    case TFOS_CORRUPT:
        return TF_DATA_LOSS;
    case TFOS_DENIED:
        return TF_PERMISSION_DENIED;
    case TFOS_TIMEOUT:
        return TF_DEADLINE_EXCEEDED;
    case TFOS_CLOSED:
    case TFOS_BUSY:
        return TF_ABORTED;
    case TFOS_UNSUPPORTED:
        return TF_UNIMPLEMENTED;
    default:
        return TF_INTERNAL;
    }
}

void tfos__op_set_status(struct TF_Status *status, enum tfos_status result,
                         const struct tfos_error *err)
{
    tfos__tf.SetStatus(status, code_of(result), result < 0 ? err->message : "the epoch has ended");
}

int64_t tfos__op_read_number(struct TF_OpKernelContext *context, int index, const char *name,
                             struct TF_Status *status)
{
    struct TF_Tensor *input = NULL;
    char message[64];
    int64_t number = 0;

    if (tfos__op_is_ok(status))
        tfos__tf.GetInput(context, index, &input, status);
    if (!tfos__op_is_ok(status))
        return 0;
    if (tfos__tf.NumDims(input) == 0 && tfos__tf.TensorType(input) == TF_INT64) {
        number = *(const int64_t *)tfos__tf.TensorData(input);
    } else {
        snprintf(message, sizeof(message), "%s must be one int64", name);
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT, message);
    }
    tfos__tf.DeleteTensor(input);
    return number;
}

static const struct {
    int type;
    size_t size;
} types[] = {
    [TFOS_DTYPE_BOOL] = {TF_BOOL, 1},     [TFOS_DTYPE_INT8] = {TF_INT8, 1},
    [TFOS_DTYPE_INT16] = {TF_INT16, 2},   [TFOS_DTYPE_INT32] = {TF_INT32, 4},
    [TFOS_DTYPE_INT64] = {TF_INT64, 8},   [TFOS_DTYPE_UINT8] = {TF_UINT8, 1},
    [TFOS_DTYPE_UINT16] = {TF_UINT16, 2}, [TFOS_DTYPE_UINT32] = {TF_UINT32, 4},
    [TFOS_DTYPE_UINT64] = {TF_UINT64, 8}, [TFOS_DTYPE_FLOAT16] = {TF_HALF, 2},
    [TFOS_DTYPE_FLOAT32] = {TF_FLOAT, 4}, [TFOS_DTYPE_FLOAT64] = {TF_DOUBLE, 8},
    [TFOS_DTYPE_STRING] = {TF_STRING, 0}, [TFOS_DTYPE_BFLOAT16] = {TF_BFLOAT16, 2},
};

int tfos__op_type_of(enum tfos_dtype dtype)
{
    return types[dtype].type;
}

enum tfos_dtype tfos__op_dtype_of(int type)
{
    int dtype = TFOS_DTYPE_BFLOAT16;

    while (dtype > 0 && types[dtype].type != type)
        dtype--;
    return (enum tfos_dtype)dtype;
}

size_t tfos__op_size_of(enum tfos_dtype dtype)
{
    return types[dtype].size;
}

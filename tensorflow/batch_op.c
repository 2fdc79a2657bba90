// SPDX-License-Identifier: Apache-2.0
// TfosNextBatch. Invariant: each tensor that the dataset gives is released once, by TensorFlow when
// it has done with the memory, or here.
//
// The call may wait as long as the feed does: TensorFlow's C API tells kernels nothing of
// cancellation. It ends with a batch, with the end of the epoch or of the feed, and when the
// cluster fails.
#include "batch_op.h"
#include "outcome.h"
#include "registration.h"
#include "tensorflow_api.h"

#include <stdlib.h>
#include <tfos/dataset.h>

#define OP "TfosNextBatch"

static int type_of(enum tfos_dtype dtype)
{
    static const int types[] = {
        [TFOS_DTYPE_BOOL] = TF_BOOL,     [TFOS_DTYPE_INT8] = TF_INT8,
        [TFOS_DTYPE_INT16] = TF_INT16,   [TFOS_DTYPE_INT32] = TF_INT32,
        [TFOS_DTYPE_INT64] = TF_INT64,   [TFOS_DTYPE_UINT8] = TF_UINT8,
        [TFOS_DTYPE_UINT16] = TF_UINT16, [TFOS_DTYPE_UINT32] = TF_UINT32,
        [TFOS_DTYPE_UINT64] = TF_UINT64, [TFOS_DTYPE_FLOAT16] = TF_HALF,
        [TFOS_DTYPE_FLOAT32] = TF_FLOAT, [TFOS_DTYPE_FLOAT64] = TF_DOUBLE,
        [TFOS_DTYPE_STRING] = TF_STRING,
    };

    return types[dtype];
}

/// TensorFlow's deallocator: gives the memory back to the ring.
static void release(void *data, size_t size, void *argument)
{
    (void)data;
    (void)size;
    tfos_tensor_release(argument);
    free(argument);
}

/// Lends the memory to TensorFlow, which copies it where it is not aligned for it.
static void lend_output(struct TF_OpKernelContext *context, int index, struct tfos_tensor *tensor,
                        struct TF_Status *status)
{
    struct tfos_tensor *lent = malloc(sizeof *lent);
    struct TF_Tensor *made = NULL;

    if (lent == NULL) {
        tfos_tensor_release(tensor);
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, OP ": no memory for a tensor");
        return;
    }
    *lent = *tensor;
    // The data is writable: a kernel that overwrites its input writes into a batch that nobody else
    // reads. The deallocator is also called when no tensor is made.
    made = tfos__tf.NewTensor(type_of(tensor->dtype), tensor->shape, tensor->rank,
                              (void *)(uintptr_t)tensor->data, (size_t)tensor->size, release, lent);
    if (made == NULL) {
        tfos__tf.SetStatus(status, TF_INTERNAL, OP ": a tensor's size does not fit its shape");
        return;
    }
    tfos__tf.SetOutput(context, index, made, status);
    tfos__tf.DeleteTensor(made);
}

static int64_t element_count(const struct tfos_tensor *tensor)
{
    int64_t count = 1;

    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

static void copy_strings(const struct tfos_tensor *tensor, const struct TF_Tensor *made)
{
    const int64_t *offsets = tensor->data;
    int64_t count = element_count(tensor);
    char *string = tfos__tf.TensorData(made);
    size_t step = count > 0 ? tfos__tf.TensorByteSize(made) / (size_t)count : 0;

    for (int64_t i = 0; i < count; i++, string += step)
        tfos__tf.StringCopy(string, tensor->bytes + offsets[i],
                            (size_t)(offsets[i + 1] - offsets[i]));
}

/// Strings are TensorFlow's own objects, and no data is worth no lease: both are allocated by it.
static void copy_output(struct TF_OpKernelContext *context, int index, struct tfos_tensor *tensor,
                        struct TF_Status *status)
{
    bool is_text = tensor->dtype == TFOS_DTYPE_STRING;
    size_t size = is_text ? (size_t)element_count(tensor) * TFOS__TF_STRING_SIZE : 0;
    struct TF_Tensor *made = tfos__tf.AllocateOutput(context, index, type_of(tensor->dtype),
                                                     tensor->shape, tensor->rank, size, status);

    if (tfos__outcome_is_ok(status) && is_text)
        copy_strings(tensor, made);
    if (made != NULL)
        tfos__tf.DeleteTensor(made);
    tfos_tensor_release(tensor);
}

/// Takes over `tensor`.
static void set_output(struct TF_OpKernelContext *context, int index, struct tfos_tensor *tensor,
                       struct TF_Status *status)
{
    if (tfos__tf.ExpectedOutputDataType(context, index) != type_of(tensor->dtype)) {
        tfos_tensor_release(tensor);
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           OP ": output_types are not those of the dataset");
    } else if (tensor->dtype == TFOS_DTYPE_STRING || tensor->size == 0) {
        copy_output(context, index, tensor, status);
    } else {
        lend_output(context, index, tensor, status);
    }
}

static void set_outputs(struct TF_OpKernelContext *context, struct tfos_tensor *tensors, int count,
                        struct TF_Status *status)
{
    int i = 0;

    for (; i < count && tfos__outcome_is_ok(status); i++)
        set_output(context, i, &tensors[i], status);
    for (; i < count; i++)
        tfos_tensor_release(&tensors[i]);
}

/// The next batch of `dataset` as the outputs.
static void give(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                 struct TF_Status *status)
{
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    int64_t count = 0;
    struct tfos_tensor *tensors = NULL;
    struct tfos_error err = {0};
    enum tfos_status outcome = tfos_dataset_get_specs(dataset, 0, &specs, &count, &structure, &err);

    if (outcome != TFOS_OK) {
        tfos__outcome_set(status, outcome, &err);
        return;
    }
    if (count != tfos__tf.NumOutputs(context)) {
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           OP ": output_types are not as many as the dataset's tensors");
        return;
    }
    tensors = calloc((size_t)count, sizeof *tensors);
    if (tensors == NULL) {
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, OP ": no memory for the tensors");
        return;
    }
    outcome = tfos_dataset_next(dataset, tensors, &err);
    if (outcome == TFOS_OK)
        set_outputs(context, tensors, (int)count, status);
    else
        tfos__outcome_set(status, outcome, &err);
    free(tensors);
}

static void compute(void *kernel, struct TF_OpKernelContext *context)
{
    struct TF_Status *status = tfos__tf.NewStatus();
    int64_t number = tfos__outcome_read_number(context, 0, "dataset", status);
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err = {0};

    (void)kernel;
    if (tfos__outcome_is_ok(status)) {
        enum tfos_status outcome = tfos_dataset_acquire(number, &dataset, &err);
        if (outcome == TFOS_OK)
            give(context, dataset, status);
        else
            tfos__outcome_set(status, outcome, &err);
        tfos_dataset_close(dataset);
    }
    if (!tfos__outcome_is_ok(status))
        tfos__tf.OpKernelContext_Failure(context, status);
    tfos__tf.DeleteStatus(status);
}

void tfos__batch_op_register(struct TF_Status *status)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(OP);

    tfos__tf.OpDefinitionBuilderAddAttr(op, "output_types: list(type) >= 1");
    tfos__tf.OpDefinitionBuilderAddInput(op, "dataset: int64");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "components: output_types");
    tfos__registration_finish(op, OP, compute, status);
}

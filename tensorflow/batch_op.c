// SPDX-License-Identifier: Apache-2.0
// The ops of the dataset whose number is their first input. TfosNextBatch gives the next batch; its
// index in the pass says where a pass begins. For passes over files, TfosReadBatch gives the batch
// that is so many behind a position, and TfosPassPosition the position that is so many batches
// behind another. These two have no state that TensorFlow would have to save: an iterator over
// files is saved and restored by their inputs.
//
// Invariant: each tensor that a dataset gives is released once, by TensorFlow when it no longer
// uses the memory, or here.
//
// A call may wait as long as the feed does, since TensorFlow's C API does not tell kernels of
// cancellation. It ends with a batch, with the end of the epoch or of the feed, and when the
// cluster fails.
#include <stdlib.h>
#include <tfos/record_dataset.h>

#include "plugin.h"

#define NEXT_OP "TfosNextBatch"
#define READ_OP "TfosReadBatch"
#define POSITION_OP "TfosPassPosition"
#define MODULE "libtfos_tf"

enum input { DATASET, INDEX, POSITION = INDEX, BATCH_COUNT };

/// TensorFlow's deallocator.
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
    struct tfos_tensor *lent = malloc(sizeof(*lent));
    struct TF_Tensor *made = NULL;

    if (!lent) {
        tfos_tensor_release(tensor);
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, MODULE ": no memory for a tensor");
        return;
    }
    *lent = *tensor;
    // A kernel may overwrite its input: nobody else reads the batch. The deallocator is also called
    // when no tensor is made.
    made = tfos__tf.NewTensor(tfos__op_type_of(tensor->dtype), tensor->shape, tensor->rank,
                              (void *)(uintptr_t)tensor->data, (size_t)tensor->size, release, lent);
    if (!made) {
        tfos__tf.SetStatus(status, TF_INTERNAL, MODULE ": a tensor's size does not fit its shape");
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

/// Copies strings, which are TensorFlow's own objects. Empty tensors are not worth lending either.
static void copy_output(struct TF_OpKernelContext *context, int index, struct tfos_tensor *tensor,
                        struct TF_Status *status)
{
    bool is_text = tensor->dtype == TFOS_DTYPE_STRING;
    size_t size = is_text ? (size_t)element_count(tensor) * TFOS__TF_STRING_SIZE : 0;
    struct TF_Tensor *made = tfos__tf.AllocateOutput(
        context, index, tfos__op_type_of(tensor->dtype), tensor->shape, tensor->rank, size, status);

    if (tfos__op_is_ok(status) && is_text)
        copy_strings(tensor, made);
    if (made)
        tfos__tf.DeleteTensor(made);
    tfos_tensor_release(tensor);
}

/// Takes over `tensor`.
static void set_output(struct TF_OpKernelContext *context, int index, struct tfos_tensor *tensor,
                       struct TF_Status *status)
{
    if (tfos__tf.ExpectedOutputDataType(context, index) != tfos__op_type_of(tensor->dtype)) {
        tfos_tensor_release(tensor);
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           MODULE ": output_types are not those of the dataset");
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

    for (; i < count && tfos__op_is_ok(status); i++)
        set_output(context, i, &tensors[i], status);
    for (; i < count; i++)
        tfos_tensor_release(&tensors[i]);
}

/// Makes the next batch, or the first of a pass, the outputs.
static void output_batch(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                         bool is_first, struct TF_Status *status)
{
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    int64_t count = 0;
    struct tfos_tensor *tensors = NULL;
    struct tfos_error err = {0};
    enum tfos_status result = tfos_dataset_get_specs(dataset, 0, &specs, &count, &structure, &err);

    if (result != TFOS_OK) {
        tfos__op_set_status(status, result, &err);
        return;
    }
    if (count != tfos__tf.NumOutputs(context)) {
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           MODULE ": output_types are not as many as the dataset's tensors");
        return;
    }
    tensors = calloc((size_t)count, sizeof(*tensors));
    if (!tensors) {
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, MODULE ": no memory for the tensors");
        return;
    }
    result = is_first ? tfos_dataset_first(dataset, tensors, &err)
                      : tfos_dataset_next(dataset, tensors, &err);
    if (result == TFOS_OK)
        set_outputs(context, tensors, (int)count, status);
    else
        tfos__op_set_status(status, result, &err);
    free(tensors);
}

static void next_batch(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                       struct TF_Status *status)
{
    int64_t index = tfos__op_read_number(context, INDEX, MODULE ": index", status);

    if (tfos__op_is_ok(status))
        output_batch(context, dataset, index == 0, status);
}

/// Goes to the batch of the inputs: a position and a number of batches behind it. An empty position
/// is that of a new pass. END: the pass has fewer batches.
static enum tfos_status go_to_batch(struct TF_OpKernelContext *context,
                                    struct tfos_dataset *dataset, struct TF_Status *status)
{
    int64_t batch_count =
        tfos__op_read_number(context, BATCH_COUNT, MODULE ": batch_count", status);
    struct TF_Tensor *input = NULL;
    struct tfos_error err = {0};
    enum tfos_status result = TFOS_OK;

    if (tfos__op_is_ok(status))
        tfos__tf.GetInput(context, POSITION, &input, status);
    if (!tfos__op_is_ok(status))
        return TFOS_INVALID;
    if (tfos__tf.NumDims(input) != 1 || tfos__tf.TensorType(input) != TF_INT64)
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           MODULE ": the position must be a vector of int64");
    else if (tfos__tf.Dim(input, 0) > 0)
        result = tfos_record_dataset_set_position(dataset, tfos__tf.TensorData(input),
                                                  tfos__tf.Dim(input, 0), batch_count, &err);
    if (result < 0)
        tfos__op_set_status(status, result, &err);
    tfos__tf.DeleteTensor(input);
    return result;
}

static void read_batch(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                       struct TF_Status *status)
{
    enum tfos_status result = go_to_batch(context, dataset, status);

    if (result == TFOS_END)
        tfos__op_set_status(status, result, NULL);
    else if (tfos__op_is_ok(status))
        output_batch(context, dataset, false, status);
}

/// Outputs the position. Behind the end of the pass, it is that of the end, so TensorFlow still
/// saves the same pass.
static void give_position(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                          struct TF_Status *status)
{
    int64_t count = tfos_record_dataset_position_count(dataset);
    struct TF_Tensor *made = NULL;
    struct tfos_error err = {0};

    (void)go_to_batch(context, dataset, status);
    if (tfos__op_is_ok(status))
        made = tfos__tf.AllocateOutput(context, 0, TF_INT64, &count, 1,
                                       (size_t)count * sizeof(int64_t), status);
    if (tfos__op_is_ok(status)) {
        enum tfos_status result =
            tfos_record_dataset_get_position(dataset, tfos__tf.TensorData(made), &err);
        if (result != TFOS_OK)
            tfos__op_set_status(status, result, &err);
    }
    if (made)
        tfos__tf.DeleteTensor(made);
}

/// Calls `work` with the dataset whose number is the first input.
static void with_dataset(struct TF_OpKernelContext *context,
                         void (*work)(struct TF_OpKernelContext *context,
                                      struct tfos_dataset *dataset, struct TF_Status *status))
{
    struct TF_Status *status = tfos__tf.NewStatus();
    int64_t number = tfos__op_read_number(context, DATASET, MODULE ": dataset", status);
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err = {0};

    if (tfos__op_is_ok(status)) {
        enum tfos_status result = tfos_dataset_acquire(number, &dataset, &err);
        if (result == TFOS_OK)
            work(context, dataset, status);
        else
            tfos__op_set_status(status, result, &err);
        tfos_dataset_close(dataset);
    }
    if (!tfos__op_is_ok(status))
        tfos__tf.OpKernelContext_Failure(context, status);
    tfos__tf.DeleteStatus(status);
}

static void compute_next(void *kernel, struct TF_OpKernelContext *context)
{
    (void)kernel;
    with_dataset(context, next_batch);
}

static void compute_read(void *kernel, struct TF_OpKernelContext *context)
{
    (void)kernel;
    with_dataset(context, read_batch);
}

static void compute_position(void *kernel, struct TF_OpKernelContext *context)
{
    (void)kernel;
    with_dataset(context, give_position);
}

static struct TF_OpDefinitionBuilder *begin_op(const char *name)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(name);

    tfos__tf.OpDefinitionBuilderAddInput(op, "dataset: int64");
    return op;
}

static void add_position(struct TF_OpDefinitionBuilder *op)
{
    tfos__tf.OpDefinitionBuilderAddInput(op, "position: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "batch_count: int64");
}

static void add_components(struct TF_OpDefinitionBuilder *op)
{
    tfos__tf.OpDefinitionBuilderAddAttr(op, "output_types: list(type) >= 1");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "components: output_types");
}

void tfos__batch_ops_register(struct TF_Status *status)
{
    struct TF_OpDefinitionBuilder *next = begin_op(NEXT_OP);
    struct TF_OpDefinitionBuilder *read = begin_op(READ_OP);
    struct TF_OpDefinitionBuilder *position = begin_op(POSITION_OP);

    // The flag is ignored by TensorFlow: any call sets it.
    tfos__tf.OpDefinitionBuilderSetIsStateful(next, true);
    tfos__tf.OpDefinitionBuilderAddInput(next, "index: int64");
    add_components(next);
    add_position(read);
    add_components(read);
    add_position(position);
    tfos__tf.OpDefinitionBuilderAddOutput(position, "next: int64");
    tfos__op_register(next, &(struct tfos__op_kernel){.name = NEXT_OP, .compute = compute_next},
                      status);
    tfos__op_register(read, &(struct tfos__op_kernel){.name = READ_OP, .compute = compute_read},
                      status);
    tfos__op_register(position,
                      &(struct tfos__op_kernel){.name = POSITION_OP, .compute = compute_position},
                      status);
}

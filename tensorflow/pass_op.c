// SPDX-License-Identifier: Apache-2.0
// TfosBeginPass opens a pass of the dataset whose number is its first input, and outputs the number
// of that, for TfosReadBatch. The number is in memory of this library. TensorFlow releases it with
// the iterator that holds the tensor, and that closes the dataset.
// Invariant: each dataset that is opened here is closed so, once.
//
// The shard follows from two elements of 0, 1, 2, ... after tf.data has left out those of other
// shards: the first is the shard's index, and the step to the second is the number of shards.
#include <stdlib.h>
#include <tfos/record_dataset.h>

#include "plugin.h"

#define OP "TfosBeginPass"
#define ALIGNMENT 64 // bytes; TensorFlow copies memory with a smaller alignment

enum input { DATASET, ELEMENTS, PARALLEL_READS, SHUFFLE_FILES, SEED };

/// The memory of the output.
struct pass {
    int64_t number; ///< first: the tensor's value
    struct tfos_dataset *dataset;
};

/// TensorFlow's deallocator.
static void close_pass(void *data, size_t size, void *argument)
{
    struct pass *pass = argument;

    (void)data;
    (void)size;
    tfos_dataset_close(pass->dataset);
    free(pass);
}

/// Makes the output, which owns the dataset from then on.
static void give(struct TF_OpKernelContext *context, struct tfos_dataset *dataset,
                 struct TF_Status *status)
{
    struct pass *pass = aligned_alloc(ALIGNMENT, ALIGNMENT);
    struct TF_Tensor *made = NULL;

    if (!pass) {
        tfos_dataset_close(dataset);
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, OP ": no memory for a number");
        return;
    }
    *pass = (struct pass){tfos_dataset_number(dataset), dataset};
    made = tfos__tf.NewTensor(TF_INT64, NULL, 0, pass, sizeof(pass->number), close_pass, pass);
    if (!made) {
        tfos__tf.SetStatus(status, TF_INTERNAL, OP ": no tensor can be made of a number");
        return;
    }
    tfos__tf.SetOutput(context, 0, made, status);
    tfos__tf.DeleteTensor(made);
}

static void read_shard(struct TF_OpKernelContext *context, struct tfos_record_pass *pass,
                       struct TF_Status *status)
{
    struct TF_Tensor *input = NULL;

    tfos__tf.GetInput(context, ELEMENTS, &input, status);
    if (!tfos__op_is_ok(status))
        return;
    if (tfos__tf.NumDims(input) == 1 && tfos__tf.TensorType(input) == TF_INT64 &&
        tfos__tf.Dim(input, 0) == 2) {
        const int64_t *elements = tfos__tf.TensorData(input);
        pass->shard_index = elements[0];
        pass->shard_count = elements[1] - elements[0];
    } else {
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT, OP ": elements must be two int64");
    }
    tfos__tf.DeleteTensor(input);
}

static void begin(struct TF_OpKernelContext *context, int64_t number,
                  const struct tfos_record_pass *pass, struct TF_Status *status)
{
    struct tfos_dataset *like = NULL, *dataset = NULL;
    struct tfos_error err = {0};
    enum tfos_status result = tfos_dataset_acquire(number, &like, &err);

    if (result == TFOS_OK)
        result = tfos_record_dataset_repeat(like, pass, &dataset, &err);
    tfos_dataset_close(like);
    if (result == TFOS_OK)
        give(context, dataset, status);
    else
        tfos__op_set_status(status, result, &err);
}

static void compute(void *kernel, struct TF_OpKernelContext *context)
{
    struct TF_Status *status = tfos__tf.NewStatus();
    int64_t number = tfos__op_read_number(context, DATASET, OP ": dataset", status);
    struct tfos_record_pass pass = {0};

    (void)kernel;
    pass.parallel_reads =
        tfos__op_read_number(context, PARALLEL_READS, OP ": parallel_reads", status);
    pass.shuffle_files =
        tfos__op_read_number(context, SHUFFLE_FILES, OP ": shuffle_files", status) != 0;
    pass.seed = (uint64_t)tfos__op_read_number(context, SEED, OP ": seed", status);
    if (tfos__op_is_ok(status))
        read_shard(context, &pass, status);
    if (tfos__op_is_ok(status))
        begin(context, number, &pass, status);
    if (!tfos__op_is_ok(status))
        tfos__tf.OpKernelContext_Failure(context, status);
    tfos__tf.DeleteStatus(status);
}

void tfos__pass_op_register(struct TF_Status *status)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(OP);

    tfos__tf.OpDefinitionBuilderAddInput(op, "dataset: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "elements: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "parallel_reads: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "shuffle_files: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "seed: int64");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "number: int64");
    tfos__op_register(op, &(struct tfos__op_kernel){.name = OP, .compute = compute}, status);
}

// SPDX-License-Identifier: Apache-2.0
// TfosBeginPass: opens a dataset like the one whose number is its input, over the files whose names
// are, and gives its number, for TfosNextBatch. The number lies in memory of ours: TensorFlow frees
// it when nobody holds the tensor any more, with the iterator that does, and then the dataset is
// closed. Invariant: each dataset that is opened here is closed by that, once.
#include "pass_op.h"
#include "outcome.h"
#include "registration.h"
#include "tensorflow_api.h"

#include <stdlib.h>
#include <string.h>
#include <tfos/record_dataset.h>

#define OP "TfosBeginPass"
#define ALIGNMENT 64 ///< that TensorFlow takes memory with; it copies other memory

enum input { DATASET, PATHS, SEED, PARALLEL_READS };

/// What the tensor of a pass lies in.
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

    if (pass == NULL) {
        tfos_dataset_close(dataset);
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, OP ": no memory for a number");
        return;
    }
    *pass = (struct pass){tfos_dataset_number(dataset), dataset};
    made = tfos__tf.NewTensor(TF_INT64, NULL, 0, pass, sizeof pass->number, close_pass, pass);
    if (made == NULL) {
        tfos__tf.SetStatus(status, TF_INTERNAL, OP ": no tensor can be made of a number");
        return;
    }
    tfos__tf.SetOutput(context, 0, made, status);
    tfos__tf.DeleteTensor(made);
}

/// The texts of a vector, in one block that the caller frees; NULL with a failure in `status`.
static char **copy_texts(const struct TF_Tensor *tensor, int64_t *count, struct TF_Status *status)
{
    const char *string = tfos__tf.TensorData(tensor);
    size_t size = 0;
    char **texts = NULL, *text = NULL;

    *count = tfos__tf.Dim(tensor, 0);
    for (int64_t i = 0; i < *count; i++)
        size += sizeof(char *) + tfos__tf.StringGetSize(string + i * TFOS__TF_STRING_SIZE) + 1;
    texts = malloc(size + 1);
    if (texts == NULL) {
        tfos__tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, OP ": no memory for the paths");
        return NULL;
    }
    text = (char *)(texts + *count);
    for (int64_t i = 0; i < *count; i++, string += TFOS__TF_STRING_SIZE) {
        size = tfos__tf.StringGetSize(string);
        texts[i] = text;
        memcpy(text, tfos__tf.StringGetDataPointer(string), size);
        text[size] = '\0';
        text += size + 1;
    }
    return texts;
}

static char **read_paths(struct TF_OpKernelContext *context, int64_t *count,
                         struct TF_Status *status)
{
    struct TF_Tensor *input = NULL;
    char **paths = NULL;

    tfos__tf.GetInput(context, PATHS, &input, status);
    if (!tfos__outcome_is_ok(status))
        return NULL;
    if (tfos__tf.NumDims(input) == 1 && tfos__tf.TensorType(input) == TF_STRING)
        paths = copy_texts(input, count, status);
    else
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT, OP ": paths must be a vector of strings");
    tfos__tf.DeleteTensor(input);
    return paths;
}

static void begin(struct TF_OpKernelContext *context, int64_t number,
                  const struct tfos_record_pass *pass, struct TF_Status *status)
{
    struct tfos_dataset *like = NULL, *dataset = NULL;
    struct tfos_error err = {0};
    enum tfos_status outcome = tfos_dataset_acquire(number, &like, &err);

    if (outcome == TFOS_OK)
        outcome = tfos_record_dataset_repeat(like, pass, &dataset, &err);
    tfos_dataset_close(like);
    if (outcome == TFOS_OK)
        give(context, dataset, status);
    else
        tfos__outcome_set(status, outcome, &err);
}

static void compute(void *kernel, struct TF_OpKernelContext *context)
{
    struct TF_Status *status = tfos__tf.NewStatus();
    struct tfos_record_pass pass = {0};
    char **paths = read_paths(context, &pass.path_count, status);
    int64_t number = 0;

    (void)kernel;
    if (tfos__outcome_is_ok(status))
        number = tfos__outcome_read_number(context, DATASET, OP ": dataset", status);
    if (tfos__outcome_is_ok(status))
        pass.seed = (uint64_t)tfos__outcome_read_number(context, SEED, OP ": seed", status);
    if (tfos__outcome_is_ok(status))
        pass.parallel_reads =
            tfos__outcome_read_number(context, PARALLEL_READS, OP ": parallel_reads", status);
    pass.paths = (const char *const *)paths;
    if (tfos__outcome_is_ok(status))
        begin(context, number, &pass, status);
    if (!tfos__outcome_is_ok(status))
        tfos__tf.OpKernelContext_Failure(context, status);
    free(paths);
    tfos__tf.DeleteStatus(status);
}

void tfos__pass_op_register(struct TF_Status *status)
{
    struct TF_OpDefinitionBuilder *op = tfos__tf.NewOpDefinitionBuilder(OP);

    tfos__tf.OpDefinitionBuilderAddInput(op, "dataset: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "paths: string");
    tfos__tf.OpDefinitionBuilderAddInput(op, "seed: int64");
    tfos__tf.OpDefinitionBuilderAddInput(op, "parallel_reads: int64");
    tfos__tf.OpDefinitionBuilderAddOutput(op, "number: int64");
    tfos__registration_finish(op, OP, compute, status);
}

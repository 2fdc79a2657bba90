// SPDX-License-Identifier: Apache-2.0
/// Columns as the tensors that a model takes. The rules and the messages are those of
/// python/tensorflowonspark/tensors.py.
#ifndef TFOS_MODEL_INPUT_TENSOR_H
#define TFOS_MODEL_INPUT_TENSOR_H

#include <stdatomic.h>
#include <tfos/model.h>

#include "model/tensorflow.h"

/// A batch whose memory tensors refer to; the last to let go of it releases it.
struct tfos__model_batch {
    struct ArrowArray array; ///< owned
    atomic_int reference_count;
};

/// Takes over the array, also on failure, with one reference.
enum tfos_status tfos__model_batch_open(struct ArrowArray *array, struct tfos__model_batch **out,
                                        struct tfos_error *err);
void tfos__model_batch_release(struct tfos__model_batch *batch);

struct tfos__model_input {
    char *name, *column; ///< owned
    const struct tfos__model_type *type;
    int64_t shape[TFOS_MODEL_MAX_RANK];
    int rank; ///< -1: any shape
};

/// Makes the tensor of column `place`.
enum tfos_status tfos__model_input_make(const struct tfos__model_input *input,
                                        const struct tfos__model_tensorflow *tf,
                                        const struct ArrowSchema *schema,
                                        struct tfos__model_batch *batch, int place,
                                        struct TF_Tensor **out, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A model's tensors as columns, in TensorFlow's memory.
#ifndef TFOS_MODEL_OUTPUT_COLUMN_H
#define TFOS_MODEL_OUTPUT_COLUMN_H

#include <tfos/model.h>

#include "model/tensorflow.h"

struct tfos__model_output {
    char *name, *column; ///< owned
    const struct tfos__model_type *type;
    int rank;
};

/// Makes a batch of `row_count` rows of the outputs' tensors, which it takes over, also on failure:
/// those that are NULL are left out of that.
enum tfos_status tfos__model_outputs_make(const struct tfos__model_output *outputs, int count,
                                          const struct tfos__model_tensorflow *tf,
                                          struct TF_Tensor **tensors, int64_t row_count,
                                          struct ArrowSchema *schema, struct ArrowArray *array,
                                          struct tfos_error *err);

#endif

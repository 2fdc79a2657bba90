// SPDX-License-Identifier: Apache-2.0
/// Tensors of one column, made of runs of rows: lent where the rows lie together as the tensor
/// wants them, else gathered.
#ifndef TFOS_DATASET_TENSOR_H
#define TFOS_DATASET_TENSOR_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/piece.h"
#include "dataset/plan.h"

/// The rows of a batch: those of the runs, then `zero_count` rows of zeros.
struct tfos__rows {
    const struct tfos__run *runs; ///< of bound pieces
    int64_t run_count;
    int64_t row_count;
    int64_t zero_count;
};

/// Tensors that a feature has.
int tfos__feature_tensor_count(const struct tfos__feature *feature);

/// Makes the tensors of feature `number`. INVALID names partition, row and column.
enum tfos_status tfos__tensors_make(const struct tfos__plan *plan, int64_t number,
                                    const struct tfos__rows *rows, struct tfos_tensor *tensors,
                                    struct tfos_error *err);

/// A vector with 1 for rows and 0 for filling.
enum tfos_status tfos__weights_make(const struct tfos__rows *rows, struct tfos_tensor *tensor,
                                    struct tfos_error *err);

/// A tensor with room for its shape's elements of a dtype that is no string.
enum tfos_status tfos__tensor_init(struct tfos_tensor *tensor, enum tfos_dtype dtype, int rank,
                                   const int64_t *shape, uint8_t **data, struct tfos_error *err);

/// Says where `status`, a failure at some row of a run, comes from: `check` fails for that row
/// alone.
enum tfos_status tfos__row_locate(const struct tfos__run *run,
                                  enum tfos_status (*check)(void *context, int64_t row,
                                                            struct tfos_error *err),
                                  void *context, struct tfos_error *err);

#endif

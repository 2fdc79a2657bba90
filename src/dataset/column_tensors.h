// SPDX-License-Identifier: Apache-2.0
/// The tensors of one feature in a batch. They refer to the memory of the rows where it is
/// contiguous and in the tensor's form; otherwise the values are copied.
#ifndef TFOS_DATASET_COLUMN_TENSORS_H
#define TFOS_DATASET_COLUMN_TENSORS_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"
#include "dataset/shared_batch.h"

/// Makes the tensors of feature `number` for rows of bound batches. INVALID names partition, row
/// and column.
enum tfos_status tfos__dataset_column_tensors_make(const struct tfos__dataset_plan *plan,
                                                   int64_t number,
                                                   const struct tfos__dataset_row_slices *rows,
                                                   struct tfos_tensor *tensors,
                                                   struct tfos_error *err);

/// Makes the weights: 1 for rows, and -0.0 for rows of zeros: a weight of 0 by which nobody's own
/// weights of 0 are mistaken for it.
enum tfos_status tfos__dataset_weights_make(const struct tfos__dataset_row_slices *rows,
                                            struct tfos_tensor *tensor, struct tfos_error *err);

/// Finds the lengths of the shortest and the longest lists of a batch, level by level, or the sizes
/// of its vectors; longest -1: there are none.
enum tfos_status tfos__dataset_column_measure(const struct tfos__dataset_feature *feature,
                                              const struct tfos__dataset_leaf_path *path,
                                              const struct ArrowArray *batch, int64_t *shortest,
                                              int64_t *longest, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Columns of MLlib vectors, each of which is dense or sparse, as dense or sparse tensors.
#ifndef TFOS_DATASET_VECTOR_H
#define TFOS_DATASET_VECTOR_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/dataset_feature.h"
#include "dataset/shared_batch.h"

/// As tfos__dataset_column_tensors_make().
enum tfos_status tfos__dataset_vectors_make(const struct tfos__dataset_feature *feature,
                                            int64_t number,
                                            const struct tfos__dataset_row_slices *rows,
                                            struct tfos_tensor *tensors, struct tfos_error *err);

/// The sizes of the shortest and the longest vector of a batch; longest -1: there is none.
enum tfos_status tfos__dataset_vectors_measure(const struct tfos__dataset_leaf_path *path,
                                               const struct ArrowArray *batch, int64_t *shortest,
                                               int64_t *longest, struct tfos_error *err);

#endif

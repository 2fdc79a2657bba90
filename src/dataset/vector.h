// SPDX-License-Identifier: Apache-2.0
/// Columns of MLlib vectors, which are dense or sparse row by row, as dense or sparse tensors.
#ifndef TFOS_DATASET_VECTOR_H
#define TFOS_DATASET_VECTOR_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/tensor.h"

/// As tfos__tensors_make().
enum tfos_status tfos__vectors_make(const struct tfos__feature *feature, int64_t number,
                                    const struct tfos__rows *rows, struct tfos_tensor *tensors,
                                    struct tfos_error *err);

/// The shortest and longest vector of a batch; longest -1: there is none.
enum tfos_status tfos__vectors_measure(const struct tfos__route *route,
                                       const struct ArrowArray *batch, int64_t *shortest,
                                       int64_t *longest, struct tfos_error *err);

#endif

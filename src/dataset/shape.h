// SPDX-License-Identifier: Apache-2.0
/// The form and shape of a feature, from its type and what is asked of it.
#ifndef TFOS_DATASET_SHAPE_H
#define TFOS_DATASET_SHAPE_H

#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/leaf.h"
#include "dataset/plan.h"

/// Sets all but path and filler. `wish` is NULL when nothing is asked. INVALID, naming the
/// column, when its type cannot be what is asked.
enum tfos_status tfos__feature_shape(struct tfos__feature *feature, const struct tfos__leaf *leaf,
                                     const struct tfos_dataset_column *wish,
                                     struct tfos_error *err);

/// Elements of one row in the shape given out; -1 when it varies.
int64_t tfos__feature_size(const struct tfos__feature *feature);

#endif

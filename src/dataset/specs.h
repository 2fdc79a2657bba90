// SPDX-License-Identifier: Apache-2.0
/// What a plan's tensors are, as the user sees them before the first batch.
#ifndef TFOS_DATASET_SPECS_H
#define TFOS_DATASET_SPECS_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"

/// Lists the tensors of a batch of `rows` rows (-1: varies), and the weights if there are any.
/// Paths are the plan's. The caller frees the list.
enum tfos_status tfos__specs_make(const struct tfos__plan *plan, int64_t rows, bool has_weights,
                                  struct tfos_tensor_spec **out, int64_t *count,
                                  struct tfos_error *err);

#endif

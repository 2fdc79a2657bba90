// SPDX-License-Identifier: Apache-2.0
/// What the ops tell TensorFlow, and the numbers that it gives them.
#ifndef TFOS_TENSORFLOW_OUTCOME_H
#define TFOS_TENSORFLOW_OUTCOME_H

#include "tensorflow_api.h"

#include <tfos/status.h>

/// Says a status of the library, END or a failure, in TensorFlow's words.
void tfos__outcome_set(struct TF_Status *status, enum tfos_status outcome,
                       const struct tfos_error *err);

bool tfos__outcome_is_ok(const struct TF_Status *status);

/// The scalar int64 that input `index`, `name` in messages, is to be; 0 with a failure in `status`.
int64_t tfos__outcome_read_number(struct TF_OpKernelContext *context, int index, const char *name,
                                  struct TF_Status *status);

#endif

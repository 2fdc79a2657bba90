// SPDX-License-Identifier: Apache-2.0
/// What the ops have in common: registration, statuses, and inputs that are numbers.
#ifndef TFOS_TENSORFLOW_PLUGIN_H
#define TFOS_TENSORFLOW_PLUGIN_H

#include <tfos/status.h>

#include "tensorflow_api.h"

/// Register the ops of a file, with kernels for the CPU.
void tfos__batch_ops_register(struct TF_Status *status);
void tfos__pass_op_register(struct TF_Status *status);

/// Registers an op and its kernel, which has no state. Shapes are unknown: Python, which has the
/// dataset's specs, sets them where it uses the op.
void tfos__op_register(struct TF_OpDefinitionBuilder *op, const char *name,
                       void (*compute)(void *kernel, struct TF_OpKernelContext *context),
                       struct TF_Status *status);

bool tfos__op_is_ok(const struct TF_Status *status);

/// Makes END, or a failure of the library, the status of the op.
void tfos__op_set_status(struct TF_Status *status, enum tfos_status result,
                         const struct tfos_error *err);

/// The scalar int64 of input `index`; 0 with a failure in `status`, which calls it `name`.
int64_t tfos__op_read_number(struct TF_OpKernelContext *context, int index, const char *name,
                             struct TF_Status *status);

#endif

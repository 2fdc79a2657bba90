// SPDX-License-Identifier: Apache-2.0
/// What registering the ops has in common.
#ifndef TFOS_TENSORFLOW_REGISTRATION_H
#define TFOS_TENSORFLOW_REGISTRATION_H

struct TF_OpDefinitionBuilder;
struct TF_OpKernelContext;
struct TF_Status;

/// Registers an op of any shapes (Python sets them where it uses an op: it has the
/// dataset's specs), and its kernel for the CPU, which has no state.
void tfos__registration_finish(struct TF_OpDefinitionBuilder *op, const char *name,
                               void (*compute)(void *kernel, struct TF_OpKernelContext *context),
                               struct TF_Status *status);

#endif

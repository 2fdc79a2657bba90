// SPDX-License-Identifier: Apache-2.0
/// The ops TfosNextBatch, TfosReadBatch and TfosPassPosition, of the dataset whose number is their
/// input.
#ifndef TFOS_TENSORFLOW_BATCH_OP_H
#define TFOS_TENSORFLOW_BATCH_OP_H

struct TF_Status;

/// Tells TensorFlow of the ops and of their kernels for the CPU.
void tfos__batch_ops_register(struct TF_Status *status);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The op TfosNextBatch: the next batch of the dataset whose number is its input.
#ifndef TFOS_TENSORFLOW_BATCH_OP_H
#define TFOS_TENSORFLOW_BATCH_OP_H

struct TF_Status;

/// Tells TensorFlow of the op and of its kernel for the CPU.
void tfos__batch_op_register(struct TF_Status *status);

#endif

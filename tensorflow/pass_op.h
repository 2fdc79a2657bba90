// SPDX-License-Identifier: Apache-2.0
/// The op TfosBeginPass: a dataset of files of its own for one pass over them.
#ifndef TFOS_TENSORFLOW_PASS_OP_H
#define TFOS_TENSORFLOW_PASS_OP_H

struct TF_Status;

/// Tells TensorFlow of the op and of its kernel for the CPU.
void tfos__pass_op_register(struct TF_Status *status);

#endif

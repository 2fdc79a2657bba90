// SPDX-License-Identifier: Apache-2.0
/// What the ops of a group compute: the first input is the group's number, the others are tensors.
#ifndef TFOS_TENSORFLOW_COLLECTIVE_KERNEL_H
#define TFOS_TENSORFLOW_COLLECTIVE_KERNEL_H

#include <tfos/collective.h>

#include "tensorflow_api.h"

enum {
    TFOS__COLLECTIVE_GROUP,
    TFOS__COLLECTIVE_TENSORS,
    TFOS__COLLECTIVE_WEIGHT = TFOS__COLLECTIVE_TENSORS,
    TFOS__COLLECTIVE_STEPS = TFOS__COLLECTIVE_TENSORS,
    TFOS__COLLECTIVE_GRADIENTS,
    TFOS__COLLECTIVE_PARAMETERS = TFOS__COLLECTIVE_GRADIENTS
};

/// What a node of a graph says of its op.
struct tfos__collective_kernel {
    char operation[256];
    enum tfos_reduction reduction;
    int64_t root;
    bool is_on_gpu; ///< tensors are in GPU memory, but for numbers
};

/// `kernel` is a struct tfos__collective_kernel.
void tfos__collective_compute_all_reduce(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_mean(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_broadcast(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_all_gather(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_open(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_pull(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_push(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_close(void *kernel, struct TF_OpKernelContext *context);
void tfos__collective_compute_await_rows(void *kernel, struct TF_OpKernelContext *context);

/// Without state: `kernel` is NULL.
void tfos__collective_compute_have(void *kernel, struct TF_OpKernelContext *context);

#endif

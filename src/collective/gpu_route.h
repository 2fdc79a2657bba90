// SPDX-License-Identifier: Apache-2.0
/// How a group's data in GPU memory goes: by NCCL or through the host. The first operation finds
/// out, on all ranks at once, by operations of the group.
#ifndef TFOS_COLLECTIVE_GPU_ROUTE_H
#define TFOS_COLLECTIVE_GPU_ROUTE_H

#include <tfos/collective.h>

/// Begins an operation on GPU memory, for leave() to end: the group's `gpu` has its driver, and
/// NCCL where that is used. BUSY; INVALID without a CUDA context or in another one than before.
enum tfos_status tfos__collective_gpu_enter(struct tfos_collective *group, const char *name,
                                            struct tfos_error *err);
void tfos__collective_gpu_leave(struct tfos_collective *group);

/// Fails the next operation of the group, on all ranks, by a failure that keeps this rank from it.
/// Returns `status`.
enum tfos_status tfos__collective_gpu_give_up(struct tfos_collective *group, const char *name,
                                              enum tfos_status status,
                                              const struct tfos_error *cause,
                                              struct tfos_error *err);

#endif

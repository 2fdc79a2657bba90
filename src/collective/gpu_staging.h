// SPDX-License-Identifier: Apache-2.0
/// The operations on GPU memory without NCCL: on copies in the host's memory.
#ifndef TFOS_COLLECTIVE_GPU_STAGING_H
#define TFOS_COLLECTIVE_GPU_STAGING_H

#include <tfos/collective_gpu.h>

#include "collective/gpu_communicator.h"

/// What an operation on GPU memory works on.
struct tfos__collective_gpu_work {
    const char *name;
    enum tfos_dtype dtype;
    size_t element_size;
    const struct tfos_collective_gpu_span *spans; ///< of an all-gather one
    int64_t span_count, count;                    ///< spans; elements of all
    enum tfos_reduction reduction;
    const double *factor; ///< NULL: none
    int scaled_sum;       ///< NCCL's number of the reduction with the factor
    int root;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS]; ///< of each rank's part of an all-gather
    void *result;                              ///< of an all-gather, once allocated
    void *(*allocate)(void *context, const int64_t *counts, int64_t total);
    void *context;
};

/// Gets the memory for an all-gather, whose counts are known, and waits for what may still use it.
enum tfos_status tfos__collective_gpu_allocate(const struct tfos__collective_gpu *gpu,
                                               struct tfos__collective_gpu_work *work, int rank,
                                               int size, struct tfos_error *err);

/// The operations.
typedef enum tfos_status tfos__collective_gpu_stage_call(struct tfos_collective *group,
                                                         struct tfos__collective_gpu_work *work,
                                                         struct tfos_error *err);
tfos__collective_gpu_stage_call tfos__collective_gpu_stage_all_reduce,
    tfos__collective_gpu_stage_broadcast, tfos__collective_gpu_stage_all_gather;

#endif

// SPDX-License-Identifier: Apache-2.0
/// Collective operations on memory of a GPU (CUDA). They are as those of <tfos/collective.h>, which
/// says what all operations of a group have in common. Data goes from GPU to GPU by NCCL; where
/// NCCL cannot be used, it goes through the host's memory. Driver and NCCL are loaded when the
/// first operation needs them, and not linked.
///
/// Memory is that of the calling thread's CUDA context. An operation waits first, on the host, for
/// all work that the context has begun, since other streams write its inputs and may still use the
/// memory of its outputs; it returns when the results are there. So nothing else runs on the GPU
/// meanwhile: an operation costs what the GPU idles while the ranks meet (tens of microseconds on
/// a host, some round trips between hosts) and until the caller has begun new work. Through the
/// host's memory each element is copied to the host and back, too. An operation waits for those of
/// other groups on the GPU, so the groups of a process must take turns.
///
/// NCCL is used when each rank of the group has the option `has_gpu` and a GPU of its own, and all
/// have NCCL 2.14 or later; among several hosts in a trusted network only, for NCCL neither
/// encrypts nor authenticates. The first operation finds out, and all ranks come to the same.
/// Within such a group an operation is on GPU memory on all ranks or on none. TFOS_NCCL=0 in the
/// environment of a rank keeps its group from NCCL.
#ifndef TFOS_COLLECTIVE_GPU_H
#define TFOS_COLLECTIVE_GPU_H

#include <tfos/collective.h>

/// Elements in GPU memory.
struct tfos_collective_gpu_span {
    void *data;       ///< where the results go
    const void *from; ///< this rank's elements; `data`, or memory that does not overlap it
    int64_t count;    ///< elements
};

/// As tfos_collective_all_reduce(). With `factor`, which is for sums of float32 and float64, this
/// rank's elements are multiplied by it first, and 0 leaves them out, NaN included. Either all
/// ranks give a factor or none does. Half types are summed as NCCL does it.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_gpu_all_reduce(struct tfos_collective *collective, const char *name,
                               const struct tfos_collective_gpu_span *spans, int64_t span_count,
                               enum tfos_dtype dtype, enum tfos_reduction reduction,
                               const double *factor, struct tfos_error *err);

/// As tfos_collective_broadcast().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_gpu_broadcast(struct tfos_collective *collective, const char *name,
                              const struct tfos_collective_gpu_span *spans, int64_t span_count,
                              enum tfos_dtype dtype, int root, struct tfos_error *err);

/// As tfos_collective_all_gather(); `allocate` gives GPU memory.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_collective_gpu_all_gather(
    struct tfos_collective *collective, const char *name, const void *data, int64_t count,
    enum tfos_dtype dtype, void *(*allocate)(void *context, const int64_t *counts, int64_t total),
    void *context, struct tfos_error *err);

/// How tensors in GPU memory go, in a sentence with "by NCCL 2.27.3", or "through the host: rank 1
/// (10.0.0.3, pid 4711) has no GPU". NULL before the first operation on such memory has found out.
/// It stays valid until the group is closed.
TFOS_API const char *tfos_collective_gpu_route(const struct tfos_collective *collective);

#endif

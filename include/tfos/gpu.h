// SPDX-License-Identifier: Apache-2.0
/// The NVIDIA GPUs of this machine, as the driver's own library (NVML) lists them.
#ifndef TFOS_GPU_H
#define TFOS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/export.h>
#include <tfos/status.h>

struct tfos_gpu {
    char name[96]; ///< "NVIDIA A100"
    bool is_free;  ///< it answers, and no process computes on it
};

/// Lists the GPUs in the order of their indices, which CUDA_VISIBLE_DEVICES takes too. The caller
/// frees `*out` by tfos_free(). UNSUPPORTED: there is no driver, or it does not answer; the message
/// is what to say of this machine. Thread-safe.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_gpu_list(struct tfos_gpu **out, size_t *count,
                                                        struct tfos_error *err);

#endif

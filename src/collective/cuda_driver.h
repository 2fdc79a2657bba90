// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's driver, loaded and not linked: most machines have none. Its handles are opaque
/// pointers, so its header is not needed (https://docs.nvidia.com/cuda/cuda-driver-api/). The
/// functions are those to which cuda.h maps their names.
#ifndef TFOS_COLLECTIVE_CUDA_DRIVER_H
#define TFOS_COLLECTIVE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#define TFOS__CUDA_NOT_READY 600         ///< CUDA_ERROR_NOT_READY
#define TFOS__CUDA_STREAM_NON_BLOCKING 1 ///< CU_STREAM_NON_BLOCKING
#define TFOS__CUDA_UUID_SIZE 16

/// Its functions; 0 is success.
struct tfos__collective_cuda {
    int (*get_context)(void **context);
    int (*set_context)(void *context);
    int (*synchronize)(void); ///< with all streams of the current context
    int (*get_device)(int *device);
    int (*get_uuid)(unsigned char uuid[TFOS__CUDA_UUID_SIZE], int device);
    int (*open_stream)(void **stream, unsigned int flags);
    int (*close_stream)(void *stream);
    int (*query_stream)(void *stream);
    int (*zero)(uint64_t place, unsigned char value, size_t size, void *stream);
    int (*copy_to_host)(void *to, uint64_t from, size_t size);
    int (*copy_to_gpu)(uint64_t to, const void *from, size_t size);
    int (*alloc_host)(void **memory, size_t size); ///< memory that the GPU reaches by itself
    int (*free_host)(void *memory);
    int (*describe)(int result, const char **text);
};

/// The driver, loaded once. UNSUPPORTED: why there is none.
enum tfos_status tfos__collective_cuda_find(const struct tfos__collective_cuda **out,
                                            struct tfos_error *err);

/// Fails with the driver's words for `result`, a failure of `what`.
enum tfos_status tfos__collective_cuda_fail(const struct tfos__collective_cuda *driver, int result,
                                            const char *what, struct tfos_error *err);

#endif

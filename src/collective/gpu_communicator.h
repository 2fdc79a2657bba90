// SPDX-License-Identifier: Apache-2.0
/// What a rank has on its GPU: a communicator of NCCL with a stream of its own, or host memory
/// through which data goes instead.
#ifndef TFOS_COLLECTIVE_GPU_COMMUNICATOR_H
#define TFOS_COLLECTIVE_GPU_COMMUNICATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "collective/cuda_driver.h"
#include "collective/nccl.h"
#include "collective/operation.h"

struct tfos__collective_gpu {
    pthread_mutex_t mutex; ///< held by an operation on GPU memory; guards what follows
    const struct tfos__collective_cuda *driver; ///< borrowed; NULL: there was no operation yet
    const struct tfos__collective_nccl *nccl;   ///< borrowed; NULL: data goes through the host
    void *context;                              ///< borrowed; where the communicator is
    void *stream, *communicator;                ///< owned; NULL: none
    struct {
        unsigned char *data; ///< owned
        size_t size;
    } staging[2]; ///< host memory
    _Atomic bool has_route;
    char route[2 * TFOS__COLLECTIVE_TEXT_SIZE]; ///< in words, once `has_route`
};

/// Joins the ranks' communicator, in the thread's context. TIMEOUT after `timeout_ms`; or as
/// fail() below. What it has made then is gone.
enum tfos_status tfos__collective_gpu_connect(struct tfos__collective_gpu *gpu,
                                              const struct tfos__collective_nccl *nccl,
                                              const struct tfos__collective_nccl_id *id, int rank,
                                              int size, int64_t timeout_ms,
                                              struct tfos__collective_failure *failure,
                                              struct tfos_error *err);

/// Waits for all that the thread's context has to do.
enum tfos_status tfos__collective_gpu_settle(const struct tfos__collective_gpu *gpu,
                                             struct tfos_error *err);

/// Fails with NCCL's words for `result`: CLOSED, if another rank has failed before; else IO.
enum tfos_status tfos__collective_gpu_fail(const struct tfos__collective_gpu *gpu, int result,
                                           struct tfos_error *err);

/// Waits until what was launched for the operation is done.
enum tfos_status tfos__collective_gpu_await(const struct tfos__collective_gpu *gpu,
                                            struct tfos__collective_operation *operation,
                                            struct tfos_error *err);

/// Ends what is under way, and the communicator.
void tfos__collective_gpu_abort(struct tfos__collective_gpu *gpu);

/// Host memory of `size` bytes, until the next call for that place of `staging`.
enum tfos_status tfos__collective_gpu_stage(struct tfos__collective_gpu *gpu, int place,
                                            size_t size, unsigned char **out,
                                            struct tfos_error *err);

enum tfos_status tfos__collective_gpu_copy_to_host(const struct tfos__collective_gpu *gpu, void *to,
                                                   const void *from, size_t size,
                                                   struct tfos_error *err);
enum tfos_status tfos__collective_gpu_copy_to_gpu(const struct tfos__collective_gpu *gpu, void *to,
                                                  const void *from, size_t size,
                                                  struct tfos_error *err);

/// Frees all. `is_orderly`: the others get what this rank's last operation sent, if they close
/// their groups, too.
void tfos__collective_gpu_clear(struct tfos__collective_gpu *gpu, bool is_orderly);

#endif

// SPDX-License-Identifier: Apache-2.0
// The communicator does not block: NCCL is asked again and again for what it has come to, so that
// the death of a rank ends a wait, and each wait has an end.
#include "collective/gpu_communicator.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"

#define SPIN_COUNT 1000 // looks before a wait sleeps between them
#define SLEEP_NS 50000
#define FINALIZE_MS 1000

enum tfos_status tfos__collective_gpu_fail(const struct tfos__collective_gpu *gpu, int result,
                                           struct tfos_error *err)
{
    const char *last = gpu->nccl->get_last_error(gpu->communicator);
    return tfos__fail(err, result == TFOS__NCCL_REMOTE_ERROR ? TFOS_CLOSED : TFOS_IO,
                      "NCCL: %s%s%.300s; NCCL_DEBUG=WARN in the executors' environment tells more, "
                      "and with TFOS_NCCL=0 tensors go through the host",
                      gpu->nccl->describe(result), last && last[0] ? ": " : "", last ? last : "");
}

static void pause_between(int looks)
{
    if (looks < SPIN_COUNT)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

/// Waits until NCCL has done what it was asked for on the host and, if `has_launched`, on the GPU.
/// OK; the failure of operation `sequence`; IO; TIMEOUT without words.
static enum tfos_status poll_communicator(const struct tfos__collective_gpu *gpu, bool has_launched,
                                          struct tfos__collective_failure *failure,
                                          uint64_t sequence, int64_t deadline,
                                          struct tfos_error *err)
{
    for (int looks = 0;; looks += looks < SPIN_COUNT) {
        int result = TFOS__NCCL_SUCCESS, ready = TFOS__CUDA_NOT_READY;
        int asked = gpu->nccl->get_async_error(gpu->communicator, &result);
        if (asked != TFOS__NCCL_SUCCESS)
            result = asked;
        if (result == TFOS__NCCL_SUCCESS)
            ready = has_launched ? gpu->driver->query_stream(gpu->stream) : 0;
        if (ready == 0)
            return TFOS_OK;
        if (ready != TFOS__CUDA_NOT_READY)
            return tfos__collective_cuda_fail(gpu->driver, ready, "cuStreamQuery", err);
        TFOS__TRY(tfos__collective_failure_check(failure, sequence, err));
        if (result != TFOS__NCCL_SUCCESS && result != TFOS__NCCL_IN_PROGRESS) {
            // A rank that has ended is the better reason, and will be heard of.
            if (has_launched)
                TFOS__TRY(tfos__collective_failure_await(
                    failure, sequence, tfos__deadline(TFOS__COLLECTIVE_REASON_MS), err));
            return tfos__collective_gpu_fail(gpu, result, err);
        }
        if (tfos__remaining_ms(deadline) == 0)
            return TFOS_TIMEOUT;
        pause_between(looks);
    }
}

enum tfos_status tfos__collective_gpu_connect(struct tfos__collective_gpu *gpu,
                                              const struct tfos__collective_nccl *nccl,
                                              const struct tfos__collective_nccl_id *id, int rank,
                                              int size, int64_t timeout_ms,
                                              struct tfos__collective_failure *failure,
                                              struct tfos_error *err)
{
    struct tfos__collective_nccl_config config = {.size = sizeof(config),
                                                  .magic = TFOS__NCCL_MAGIC,
                                                  .version = TFOS__NCCL_VERSION_MIN,
                                                  .blocking = 0};
    enum tfos_status status = TFOS_OK;
    gpu->nccl = nccl;
    int result = gpu->driver->open_stream(&gpu->stream, TFOS__CUDA_STREAM_NON_BLOCKING);
    if (result != 0) {
        gpu->stream = NULL;
        status = tfos__collective_cuda_fail(gpu->driver, result, "cuStreamCreate", err);
    } else {
        result = nccl->open(&gpu->communicator, size, *id, rank, &config);
        if (result != TFOS__NCCL_SUCCESS && result != TFOS__NCCL_IN_PROGRESS)
            status = tfos__collective_gpu_fail(gpu, result, err);
        else
            status = poll_communicator(gpu, false, failure, TFOS__COLLECTIVE_ANY,
                                       tfos__deadline(timeout_ms), err);
        if (status == TFOS_TIMEOUT)
            tfos__fail(
                err, status,
                "NCCL: the ranks did not reach each other within %.10g s: NCCL_SOCKET_IFNAME "
                "in the executors' environment names the network interface",
                (double)timeout_ms / 1000.0);
    }
    if (status < 0) {
        tfos__collective_gpu_abort(gpu);
        gpu->nccl = NULL;
    }
    return status;
}

enum tfos_status tfos__collective_gpu_settle(const struct tfos__collective_gpu *gpu,
                                             struct tfos_error *err)
{
    int result = gpu->driver->synchronize();
    return result == 0 ? TFOS_OK
                       : tfos__collective_cuda_fail(gpu->driver, result,
                                                    "what the GPU did before has failed", err);
}

enum tfos_status tfos__collective_gpu_await(const struct tfos__collective_gpu *gpu,
                                            struct tfos__collective_operation *operation,
                                            struct tfos_error *err)
{
    int64_t begin_us = tfos__now_us();
    enum tfos_status status =
        poll_communicator(gpu, true, operation->failure, operation->descriptor.sequence,
                          tfos__deadline(operation->stall_timeout_ms), err);
    operation->blocked_us += tfos__now_us() - begin_us;
    return status == TFOS_TIMEOUT ? tfos__collective_operation_fail_stalled(operation, err)
                                  : status;
}

void tfos__collective_gpu_abort(struct tfos__collective_gpu *gpu)
{
    if (gpu->communicator)
        gpu->nccl->abort(gpu->communicator);
    if (gpu->stream)
        gpu->driver->close_stream(gpu->stream);
    gpu->communicator = gpu->stream = NULL;
}

enum tfos_status tfos__collective_gpu_stage(struct tfos__collective_gpu *gpu, int place,
                                            size_t size, unsigned char **out,
                                            struct tfos_error *err)
{
    if (size > gpu->staging[place].size) {
        void *memory = NULL;
        if (gpu->staging[place].data)
            gpu->driver->free_host(gpu->staging[place].data);
        gpu->staging[place].data = NULL;
        gpu->staging[place].size = 0;
        int result = gpu->driver->alloc_host(&memory, size);
        if (result != 0) {
            tfos__collective_cuda_fail(gpu->driver, result, "cuMemAllocHost", err);
            return TFOS_NO_MEMORY;
        }
        gpu->staging[place].data = memory;
        gpu->staging[place].size = size;
    }
    *out = gpu->staging[place].data;
    return TFOS_OK;
}

enum tfos_status tfos__collective_gpu_copy_to_host(const struct tfos__collective_gpu *gpu, void *to,
                                                   const void *from, size_t size,
                                                   struct tfos_error *err)
{
    int result = size > 0 ? gpu->driver->copy_to_host(to, (uintptr_t)from, size) : 0;
    return result == 0 ? TFOS_OK
                       : tfos__collective_cuda_fail(gpu->driver, result, "a copy to the host", err);
}

enum tfos_status tfos__collective_gpu_copy_to_gpu(const struct tfos__collective_gpu *gpu, void *to,
                                                  const void *from, size_t size,
                                                  struct tfos_error *err)
{
    int result = size > 0 ? gpu->driver->copy_to_gpu((uintptr_t)to, from, size) : 0;
    return result == 0 ? TFOS_OK
                       : tfos__collective_cuda_fail(gpu->driver, result, "a copy to the GPU", err);
}

/// Sends what is still to be sent, and ends the communicator with the others.
static void finalize(struct tfos__collective_gpu *gpu)
{
    int64_t deadline = tfos__deadline(FINALIZE_MS);
    int result = gpu->nccl->finalize(gpu->communicator);
    for (int looks = 0; result == TFOS__NCCL_IN_PROGRESS && tfos__remaining_ms(deadline) > 0;
         looks += looks < SPIN_COUNT) {
        pause_between(looks);
        if (gpu->nccl->get_async_error(gpu->communicator, &result) != TFOS__NCCL_SUCCESS)
            break;
    }
    if (result != TFOS__NCCL_SUCCESS)
        return;
    gpu->nccl->destroy(gpu->communicator);
    gpu->communicator = NULL;
}

void tfos__collective_gpu_clear(struct tfos__collective_gpu *gpu, bool is_orderly)
{
    void *before = NULL;
    pthread_mutex_destroy(&gpu->mutex);
    if (!gpu->driver)
        return;
    bool is_switched = gpu->context && gpu->driver->get_context(&before) == 0 &&
                       gpu->driver->set_context(gpu->context) == 0;
    if (gpu->communicator && is_orderly)
        finalize(gpu);
    tfos__collective_gpu_abort(gpu);
    for (int place = 0; place < 2; place++)
        if (gpu->staging[place].data)
            gpu->driver->free_host(gpu->staging[place].data);
    if (is_switched)
        gpu->driver->set_context(before);
}

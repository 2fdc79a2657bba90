// SPDX-License-Identifier: Apache-2.0
// Two exchanges: what each rank has, and whether it has joined the communicator. Whatever keeps a
// rank from it is told there, so that all ranks come to the same, and none waits in vain.
#include "collective/gpu_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/collective_gpu.h>

#include "base/fail.h"
#include "collective/group.h"
#include "collective/operation_call.h"

#define CONNECT_MS 120000
#define FAULT_SIZE 400
#define UNTRUSTED                                                                                  \
    " is on another host than others, and NCCL does not encrypt: trusted_network=True allows it"

/// What ranks tell each other, as bytes: all have the same version of the library.
struct tfos__collective_gpu_identity {
    unsigned char uuid[TFOS__CUDA_UUID_SIZE]; ///< of its GPU
    struct tfos__collective_nccl_id id;       ///< of the communicator, from rank 0
    char fault[FAULT_SIZE];                   ///< why NCCL cannot be used; empty: it can
};

/// What a rank's attempt to join the communicator gave. CLOSED: another's has failed.
struct outcome {
    int32_t status;
    char fault[FAULT_SIZE];
};

struct gathered {
    void *data;
    int64_t size;
};

static void *give_room(void *context, const int64_t *counts, int64_t total)
{
    const struct gathered *gathered = context;
    (void)counts;
    return total == gathered->size ? gathered->data : NULL;
}

static enum tfos_status exchange(struct tfos_collective *group, const char *name, const void *own,
                                 size_t size, void *all, struct tfos_error *err)
{
    struct gathered gathered = {all, (int64_t)size * group->size};
    return tfos_collective_all_gather(group, name, own, (int64_t)size, TFOS_DTYPE_UINT8, give_room,
                                      &gathered, err);
}

static const char *label_of(const struct tfos_collective *group, int rank)
{
    return group->size > 1 ? group->roster.members[rank].label : "this process";
}

/// `reason`, of `rank`: why NCCL is not used.
static void set_route(struct tfos_collective *group, int rank, const char *reason,
                      const char *detail)
{
    struct tfos__collective_gpu *gpu = &group->gpu;
    struct tfos__bounded_text text = {.data = gpu->route, .capacity = sizeof(gpu->route)};
    tfos__bounded_text_append(&text, "collective: %s: tensors in GPU memory go ", group->name);
    if (gpu->nccl)
        tfos__bounded_text_append(&text, "by NCCL %d.%d.%d", gpu->nccl->version / 10000,
                                  gpu->nccl->version / 100 % 100, gpu->nccl->version % 100);
    else
        tfos__bounded_text_append(&text, "through the host: %s%s%s", label_of(group, rank), reason,
                                  detail);
    atomic_store(&gpu->has_route, true);
}

static enum tfos_status describe_self(const struct tfos_collective *group,
                                      const struct tfos__collective_nccl *nccl, const char *why,
                                      struct tfos__collective_gpu_identity *own,
                                      struct tfos_error *err)
{
    const struct tfos__collective_cuda *driver = group->gpu.driver;
    const char *switched = getenv("TFOS_NCCL");
    int device = 0;
    int result = driver->get_device(&device);
    if (result == 0)
        result = driver->get_uuid(own->uuid, device);
    if (result != 0)
        return tfos__collective_cuda_fail(driver, result, "cuDeviceGetUuid", err);
    if (switched && strcmp(switched, "0") == 0)
        why = "TFOS_NCCL is 0";
    else if (nccl && group->rank == 0 && (result = nccl->get_id(&own->id)) != 0)
        why = nccl->describe(result);
    snprintf(own->fault, sizeof(own->fault), "%s", why);
    return TFOS_OK;
}

/// Whether nothing that a rank has told keeps the group from NCCL; else the route is set.
static bool is_possible(struct tfos_collective *group,
                        const struct tfos__collective_gpu_identity *all)
{
    for (int rank = 0; rank < group->size; rank++)
        if (all[rank].fault[0] != '\0') {
            set_route(group, rank, ": ", all[rank].fault);
            return false;
        }
    for (int rank = 0; rank < group->size; rank++)
        for (int other = 0; other < rank; other++)
            if (memcmp(all[other].uuid, all[rank].uuid, sizeof(all[rank].uuid)) == 0) {
                set_route(group, rank, " has the same GPU, and NCCL wants one for each, as ",
                          label_of(group, other));
                return false;
            }
    return true;
}

/// The rank that kept the others from the communicator; -1: all have joined.
static int find_culprit(const struct outcome *all, int size)
{
    int culprit = -1;
    for (int rank = size - 1; rank >= 0; rank--)
        if (all[rank].status < 0 &&
            (culprit < 0 || all[rank].status != TFOS_CLOSED || all[culprit].status == TFOS_CLOSED))
            culprit = rank;
    return culprit;
}

static enum tfos_status connect_ranks(struct tfos_collective *group,
                                      const struct tfos__collective_nccl *nccl,
                                      const struct tfos__collective_nccl_id *id,
                                      struct tfos_error *err)
{
    struct outcome own = {0}, all[TFOS_COLLECTIVE_MAX_RANKS];
    struct tfos_error cause = {0};
    int64_t timeout_ms = group->stall_timeout_ms / 2; // who waits for this rank waits longer
    if (timeout_ms > CONNECT_MS)
        timeout_ms = CONNECT_MS;
    own.status = tfos__collective_gpu_connect(&group->gpu, nccl, id, group->rank, group->size,
                                              timeout_ms, &group->failure, &cause);
    snprintf(own.fault, sizeof(own.fault), "%.*s", FAULT_SIZE - 1, cause.message);
    TFOS__TRY(exchange(group, "NCCL is ready", &own, sizeof(own), all, err));
    int culprit = find_culprit(all, group->size);
    if (culprit >= 0) {
        tfos__collective_gpu_abort(&group->gpu);
        group->gpu.nccl = NULL;
    }
    set_route(group, culprit, ": ", culprit >= 0 ? all[culprit].fault : "");
    return TFOS_OK;
}

static enum tfos_status decide(struct tfos_collective *group, struct tfos_error *err)
{
    struct tfos__collective_gpu_identity own = {0}, all[TFOS_COLLECTIVE_MAX_RANKS];
    const char *why;
    for (int rank = 0; rank < group->size && group->size > 1; rank++)
        if (!group->roster.members[rank].has_gpu) {
            set_route(group, rank, " has no GPU", "");
            return TFOS_OK;
        }
    if (group->roster.host_count > 1 && !group->is_trusted_network) {
        set_route(group, group->size - 1, UNTRUSTED, "");
        return TFOS_OK;
    }
    const struct tfos__collective_nccl *nccl = tfos__collective_nccl_find(&why);
    TFOS__TRY(describe_self(group, nccl, why, &own, err));
    TFOS__TRY(exchange(group, "NCCL", &own, sizeof(own), all, err));
    return is_possible(group, all) ? connect_ranks(group, nccl, &all[0].id, err) : TFOS_OK;
}

static enum tfos_status enter(struct tfos_collective *group, struct tfos_error *err)
{
    struct tfos__collective_gpu *gpu = &group->gpu;
    void *context = NULL;
    if (!gpu->driver)
        TFOS__TRY(tfos__collective_cuda_find(&gpu->driver, err));
    int result = gpu->driver->get_context(&context);
    if (result != 0)
        return tfos__collective_cuda_fail(gpu->driver, result, "cuCtxGetCurrent", err);
    if (!context)
        return tfos__fail(err, TFOS_INVALID,
                          "the calling thread has no CUDA context, whose memory it could be");
    if (!gpu->has_route) {
        gpu->context = context;
        return decide(group, err);
    }
    if (context != gpu->context && gpu->nccl)
        return tfos__fail(err, TFOS_INVALID,
                          "the tensors are on another GPU than those before, and NCCL has one GPU "
                          "a rank: use one, or set TFOS_NCCL=0 in the executors' environment");
    return TFOS_OK;
}

enum tfos_status tfos__collective_gpu_give_up(struct tfos_collective *group, const char *name,
                                              enum tfos_status status,
                                              const struct tfos_error *cause,
                                              struct tfos_error *err)
{
    pthread_mutex_lock(&group->mutex);
    uint64_t next = group->sequence + 1;
    pthread_mutex_unlock(&group->mutex);
    tfos__collective_failure_set(&group->failure, next, status, cause->message);
    tfos__collective_failure_await_sent(&group->failure);
    return tfos__collective_call_refuse(group, status, name, cause->message, err);
}

enum tfos_status tfos__collective_gpu_enter(struct tfos_collective *group, const char *name,
                                            struct tfos_error *err)
{
    struct tfos_error cause;
    if (pthread_mutex_trylock(&group->gpu.mutex) != 0)
        return tfos__collective_call_refuse(group, TFOS_BUSY, name,
                                            "another operation on GPU memory is under way", err);
    enum tfos_status status = enter(group, &cause);
    if (status == TFOS_OK) {
        tfos__number_table_hold(&group->entry);
        return TFOS_OK;
    }
    pthread_mutex_unlock(&group->gpu.mutex);
    // The failure of an exchange is the group's already, and has its words.
    if (status != TFOS_BUSY &&
        tfos__collective_failure_check(&group->failure, UINT64_MAX, NULL) == TFOS_OK)
        return tfos__collective_gpu_give_up(group, name, status, &cause, err);
    return tfos__fail(err, status, "%s", cause.message);
}

void tfos__collective_gpu_leave(struct tfos_collective *group)
{
    pthread_mutex_unlock(&group->gpu.mutex);
    tfos_collective_release(group);
}

const char *tfos_collective_gpu_route(const struct tfos_collective *group)
{
    return atomic_load(&group->gpu.has_route) ? group->gpu.route : NULL;
}

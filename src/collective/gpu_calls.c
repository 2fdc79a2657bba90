// SPDX-License-Identifier: Apache-2.0
// The operations on GPU memory by NCCL: the ranks meet as for any other operation, and then NCCL's
// calls are launched and awaited. Without NCCL gpu_staging.c does the same through the host.
#include <tfos/collective_gpu.h>

#include "base/fail.h"
#include "collective/gpu_route.h"
#include "collective/gpu_staging.h"
#include "collective/operation_call.h"

#define BYTES_MAX (INT64_C(1) << 56)

typedef int launch(const struct tfos__collective_gpu *gpu, struct tfos__collective_gpu_work *work,
                   int rank, int size);

static bool is_fine(int result)
{
    return result == TFOS__NCCL_SUCCESS || result == TFOS__NCCL_IN_PROGRESS;
}

static int launch_all_reduce(const struct tfos__collective_gpu *gpu,
                             struct tfos__collective_gpu_work *work, int rank, int size)
{
    int dtype = tfos__collective_nccl_dtype(work->dtype), result = TFOS__NCCL_SUCCESS;
    int reduction =
        work->factor ? work->scaled_sum : tfos__collective_nccl_reduction(work->reduction);
    (void)rank, (void)size;
    for (int64_t i = 0; i < work->span_count && is_fine(result); i++) {
        const struct tfos_collective_gpu_span *span = &work->spans[i];
        const void *from = work->factor && *work->factor == 0 ? span->data : span->from;
        if (span->count > 0)
            result = gpu->nccl->all_reduce(from, span->data, (size_t)span->count, dtype, reduction,
                                           gpu->communicator, gpu->stream);
    }
    return result;
}

static int launch_broadcast(const struct tfos__collective_gpu *gpu,
                            struct tfos__collective_gpu_work *work, int rank, int size)
{
    int result = TFOS__NCCL_SUCCESS;
    (void)rank, (void)size;
    for (int64_t i = 0; i < work->span_count && is_fine(result); i++) {
        const struct tfos_collective_gpu_span *span = &work->spans[i];
        if (span->count > 0)
            result = gpu->nccl->broadcast(
                span->from, span->data, (size_t)span->count * work->element_size, TFOS__NCCL_UINT8,
                work->root, gpu->communicator, gpu->stream);
    }
    return result;
}

static int launch_all_gather(const struct tfos__collective_gpu *gpu,
                             struct tfos__collective_gpu_work *work, int rank, int size)
{
    unsigned char *place = work->result;
    int result = TFOS__NCCL_SUCCESS;
    for (int root = 0; root < size && is_fine(result); root++) {
        size_t part = (size_t)work->counts[root] * work->element_size;
        if (part > 0)
            result = gpu->nccl->broadcast(root == rank ? work->spans[0].from : place, place, part,
                                          TFOS__NCCL_UINT8, root, gpu->communicator, gpu->stream);
        place += part;
    }
    return result;
}

/// Makes the reduction that multiplies this rank's elements by the factor.
static enum tfos_status make_scaled_sum(const struct tfos__collective_gpu *gpu,
                                        struct tfos__collective_gpu_work *work,
                                        struct tfos_error *err)
{
    float narrow = (float)*work->factor;
    double wide = *work->factor;
    void *scalar = work->dtype == TFOS_DTYPE_FLOAT32 ? (void *)&narrow : (void *)&wide;
    int result = gpu->nccl->make_scaled_sum(&work->scaled_sum, scalar,
                                            tfos__collective_nccl_dtype(work->dtype),
                                            TFOS__NCCL_HOST_IMMEDIATE, gpu->communicator);
    if (result != TFOS__NCCL_SUCCESS)
        return tfos__collective_gpu_fail(gpu, result, err);
    // 0 times NaN would be NaN.
    for (int64_t i = 0; i < work->span_count && wide == 0 && result == 0; i++)
        if (work->spans[i].count > 0)
            result =
                gpu->driver->zero((uintptr_t)work->spans[i].data, 0,
                                  (size_t)work->spans[i].count * work->element_size, gpu->stream);
    return result == 0 ? TFOS_OK
                       : tfos__collective_cuda_fail(gpu->driver, result, "cuMemsetD8Async", err);
}

// ---- the operations

/// By kind. `has_counts`: ranks have parts, or one might go on before another has come.
static const struct {
    launch *launch;
    tfos__collective_gpu_stage_call *stage;
    bool has_counts;
} ways[] = {
    [TFOS__COLLECTIVE_ALL_REDUCE] = {launch_all_reduce, tfos__collective_gpu_stage_all_reduce,
                                     false},
    [TFOS__COLLECTIVE_BROADCAST] = {launch_broadcast, tfos__collective_gpu_stage_broadcast, true},
    [TFOS__COLLECTIVE_ALL_GATHER] = {launch_all_gather, tfos__collective_gpu_stage_all_gather,
                                     true},
};

/// What comes once the ranks have met.
static enum tfos_status exchange(struct tfos__collective_call *call,
                                 struct tfos__collective_gpu_work *work, struct tfos_error *err)
{
    struct tfos_collective *group = call->group;
    const struct tfos__collective_gpu *gpu = &group->gpu;
    if (work->allocate)
        TFOS__TRY(tfos__collective_gpu_allocate(gpu, work, group->rank, group->size, err));
    if (work->factor)
        TFOS__TRY(make_scaled_sum(gpu, work, err));
    int result = gpu->nccl->begin_group();
    if (is_fine(result)) {
        result = ways[call->operation.descriptor.kind].launch(gpu, work, group->rank, group->size);
        int ended = gpu->nccl->end_group();
        if (is_fine(result))
            result = ended;
    }
    if (!is_fine(result))
        return tfos__collective_gpu_fail(gpu, result, err);
    TFOS__TRY(tfos__collective_gpu_await(gpu, &call->operation, err));
    if (work->factor)
        gpu->nccl->free_reduction(work->scaled_sum, gpu->communicator);
    return TFOS_OK;
}

static enum tfos_status run(struct tfos_collective *group, enum tfos__collective_kind kind,
                            struct tfos__collective_gpu_work *work, struct tfos_error *err)
{
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(work->name, kind, work->dtype, work->count);
    struct tfos__collective_call call;
    struct tfos_error cause;
    descriptor.is_gpu = 1;
    descriptor.reduction = (uint8_t)work->reduction;
    descriptor.root = (uint8_t)work->root;
    TFOS__TRY(tfos__collective_call_begin(&call, group, &descriptor, err));
    enum tfos_status status = tfos__collective_gpu_settle(&group->gpu, &cause);
    if (status == TFOS_OK)
        status =
            tfos__collective_call_meet(&call, ways[kind].has_counts ? work->counts : NULL, &cause);
    if (status == TFOS_OK)
        status = exchange(&call, work, &cause);
    if (status < 0)
        tfos__collective_gpu_abort(&group->gpu);
    return tfos__collective_call_end(&call, status, &cause, err);
}

static enum tfos_status check_spans(const struct tfos_collective *group,
                                    struct tfos__collective_gpu_work *work, struct tfos_error *err)
{
    work->element_size = tfos__collective_element_size(work->dtype);
    int64_t limit = BYTES_MAX / (int64_t)work->element_size;
    bool is_valid = work->span_count == 0 || (work->span_count > 0 && work->spans);
    for (int64_t i = 0; is_valid && i < work->span_count; i++) {
        const struct tfos_collective_gpu_span *span = &work->spans[i];
        is_valid = span->count >= 0 && span->count <= limit - work->count &&
                   (span->count == 0 || (span->data && span->from));
        work->count += is_valid ? span->count : 0;
    }
    return is_valid ? TFOS_OK
                    : tfos__collective_call_refuse(group, TFOS_INVALID, work->name,
                                                   "there is no memory for this count", err);
}

/// Calls an operation whose arguments are checked but for the spans.
static enum tfos_status call(struct tfos_collective *group, enum tfos__collective_kind kind,
                             struct tfos__collective_gpu_work *work, struct tfos_error *err)
{
    TFOS__TRY(check_spans(group, work, err));
    TFOS__TRY(tfos__collective_gpu_enter(group, work->name, err));
    enum tfos_status status =
        group->gpu.nccl ? run(group, kind, work, err) : ways[kind].stage(group, work, err);
    tfos__collective_gpu_leave(group);
    return status;
}

/// Whether a rank that is alone has nothing to do.
static bool is_done(const struct tfos_collective *group,
                    const struct tfos_collective_gpu_span *spans, int64_t span_count)
{
    bool is_in_place = group->size == 1;
    for (int64_t i = 0; is_in_place && i < span_count; i++)
        is_in_place = spans[i].from == spans[i].data;
    return is_in_place;
}

enum tfos_status tfos_collective_gpu_all_reduce(struct tfos_collective *group, const char *name,
                                                const struct tfos_collective_gpu_span *spans,
                                                int64_t span_count, enum tfos_dtype dtype,
                                                enum tfos_reduction reduction, const double *factor,
                                                struct tfos_error *err)
{
    struct tfos__collective_gpu_work work = {.name = name,
                                             .dtype = dtype,
                                             .spans = spans,
                                             .span_count = span_count,
                                             .reduction = reduction,
                                             .factor = factor};
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, true, reduction, err));
    if (factor && (reduction != TFOS_REDUCE_SUM ||
                   (dtype != TFOS_DTYPE_FLOAT32 && dtype != TFOS_DTYPE_FLOAT64)))
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "a factor is for sums of float32 and float64", err);
    if (!factor && is_done(group, spans, span_count))
        return tfos_collective_all_reduce(group, name, NULL, 0, dtype, reduction, err);
    return call(group, TFOS__COLLECTIVE_ALL_REDUCE, &work, err);
}

enum tfos_status tfos_collective_gpu_broadcast(struct tfos_collective *group, const char *name,
                                               const struct tfos_collective_gpu_span *spans,
                                               int64_t span_count, enum tfos_dtype dtype, int root,
                                               struct tfos_error *err)
{
    struct tfos__collective_gpu_work work = {
        .name = name, .dtype = dtype, .spans = spans, .span_count = span_count, .root = root};
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, false, 0, err));
    if (root < 0 || root >= group->size || is_done(group, spans, span_count))
        return tfos_collective_broadcast(group, name, NULL, 0, dtype, root, err);
    return call(group, TFOS__COLLECTIVE_BROADCAST, &work, err);
}

enum tfos_status tfos_collective_gpu_all_gather(
    struct tfos_collective *group, const char *name, const void *data, int64_t count,
    enum tfos_dtype dtype, void *(*allocate)(void *context, const int64_t *counts, int64_t total),
    void *context, struct tfos_error *err)
{
    const struct tfos_collective_gpu_span span = {(void *)data, data, count};
    struct tfos__collective_gpu_work work = {.name = name,
                                             .dtype = dtype,
                                             .spans = &span,
                                             .span_count = 1,
                                             .allocate = allocate,
                                             .context = context};
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, false, 0, err));
    return call(group, TFOS__COLLECTIVE_ALL_GATHER, &work, err);
}

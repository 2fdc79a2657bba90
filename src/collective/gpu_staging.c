// SPDX-License-Identifier: Apache-2.0
// Copies are made before an operation begins and after it has ended; their failures are the whole
// group's nevertheless.
#include "collective/gpu_staging.h"

#include <string.h>

#include "base/fail.h"
#include "collective/gpu_route.h"
#include "collective/group.h"

enum { GIVEN, GOT }; // places of the staging memory

enum tfos_status tfos__collective_gpu_allocate(const struct tfos__collective_gpu *gpu,
                                               struct tfos__collective_gpu_work *work, int rank,
                                               int size, struct tfos_error *err)
{
    int64_t total = 0;
    for (int other = 0; other < size; other++)
        total += work->counts[other];
    work->result = work->allocate(work->context, work->counts, total);
    if (!work->result)
        return tfos__fail(err, TFOS_NO_MEMORY, "rank %d has no memory for %lld elements", rank,
                          (long long)total);
    return tfos__collective_gpu_settle(gpu, err);
}

static void scale(unsigned char *data, const struct tfos__collective_gpu_work *work)
{
    double factor = *work->factor;
    if (factor == 0) { // 0 times NaN would be NaN
        memset(data, 0, (size_t)work->count * work->element_size);
    } else if (work->dtype == TFOS_DTYPE_FLOAT32) {
        float *values = (float *)data, by = (float)factor;
        for (int64_t i = 0; i < work->count; i++)
            values[i] *= by;
    } else {
        double *values = (double *)data;
        for (int64_t i = 0; i < work->count; i++)
            values[i] *= factor;
    }
}

/// Copies the spans to the host, one behind the other.
static enum tfos_status copy_in(struct tfos_collective *group,
                                struct tfos__collective_gpu_work *work, unsigned char **out,
                                struct tfos_error *err)
{
    struct tfos__collective_gpu *gpu = &group->gpu;
    struct tfos_error cause;
    enum tfos_status status = tfos__collective_gpu_settle(gpu, &cause);
    if (status == TFOS_OK)
        status = tfos__collective_gpu_stage(gpu, GIVEN, (size_t)work->count * work->element_size,
                                            out, &cause);
    unsigned char *place = status == TFOS_OK ? *out : NULL;
    for (int64_t i = 0; i < work->span_count && status == TFOS_OK; i++) {
        size_t size = (size_t)work->spans[i].count * work->element_size;
        status = tfos__collective_gpu_copy_to_host(gpu, place, work->spans[i].from, size, &cause);
        place += size;
    }
    if (status == TFOS_OK)
        return TFOS_OK;
    return tfos__collective_gpu_give_up(group, work->name, status, &cause, err);
}

/// Copies what an operation has left in the host's memory to the spans.
static enum tfos_status copy_out(struct tfos_collective *group, const char *name,
                                 const struct tfos_collective_gpu_span *spans, int64_t span_count,
                                 size_t element_size, const unsigned char *data,
                                 struct tfos_error *err)
{
    const struct tfos__collective_gpu *gpu = &group->gpu;
    struct tfos_error cause;
    enum tfos_status status = TFOS_OK;
    for (int64_t i = 0; i < span_count && status == TFOS_OK; i++) {
        size_t size = (size_t)spans[i].count * element_size;
        status = tfos__collective_gpu_copy_to_gpu(gpu, spans[i].data, data, size, &cause);
        data += size;
    }
    if (status == TFOS_OK)
        status = tfos__collective_gpu_settle(gpu, &cause);
    if (status == TFOS_OK)
        return TFOS_OK;
    return tfos__collective_gpu_give_up(group, name, status, &cause, err);
}

enum tfos_status tfos__collective_gpu_stage_all_reduce(struct tfos_collective *group,
                                                       struct tfos__collective_gpu_work *work,
                                                       struct tfos_error *err)
{
    unsigned char *data;
    TFOS__TRY(copy_in(group, work, &data, err));
    if (work->factor)
        scale(data, work);
    const struct tfos_collective_span span = {data, work->count};
    TFOS__TRY(
        tfos_collective_all_reduce(group, work->name, &span, 1, work->dtype, work->reduction, err));
    return copy_out(group, work->name, work->spans, work->span_count, work->element_size, data,
                    err);
}

enum tfos_status tfos__collective_gpu_stage_broadcast(struct tfos_collective *group,
                                                      struct tfos__collective_gpu_work *work,
                                                      struct tfos_error *err)
{
    unsigned char *data;
    TFOS__TRY(copy_in(group, work, &data, err));
    const struct tfos_collective_span span = {data, work->count};
    TFOS__TRY(tfos_collective_broadcast(group, work->name, &span, 1, work->dtype, work->root, err));
    return copy_out(group, work->name, work->spans, work->span_count, work->element_size, data,
                    err);
}

/// The all-gather on the host, for its memory.
struct gathering {
    struct tfos_collective *group;
    struct tfos__collective_gpu_work *work;
    unsigned char *got;
    int64_t total;
};

static void *allocate(void *context, const int64_t *counts, int64_t total)
{
    struct gathering *gathering = context;
    struct tfos_collective *group = gathering->group;
    gathering->total = total;
    memcpy(gathering->work->counts, counts, (size_t)group->size * sizeof(*counts));
    if (tfos__collective_gpu_allocate(&group->gpu, gathering->work, group->rank, group->size,
                                      NULL) < 0 ||
        tfos__collective_gpu_stage(&group->gpu, GOT,
                                   (size_t)total * gathering->work->element_size + 1,
                                   &gathering->got, NULL) < 0)
        return NULL;
    return gathering->got;
}

enum tfos_status tfos__collective_gpu_stage_all_gather(struct tfos_collective *group,
                                                       struct tfos__collective_gpu_work *work,
                                                       struct tfos_error *err)
{
    struct gathering gathering = {.group = group, .work = work};
    unsigned char *data;
    TFOS__TRY(copy_in(group, work, &data, err));
    TFOS__TRY(tfos_collective_all_gather(group, work->name, data, work->count, work->dtype,
                                         allocate, &gathering, err));
    const struct tfos_collective_gpu_span all = {work->result, NULL, gathering.total};
    return copy_out(group, work->name, &all, 1, work->element_size, gathering.got, err);
}

// SPDX-License-Identifier: Apache-2.0
// The operations of a group that all ranks call in one order.
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "collective/operation_call.h"
#include "collective/slab_pipeline.h"

enum tfos_status tfos_collective_all_reduce(struct tfos_collective *group, const char *name,
                                            const struct tfos_collective_span *spans,
                                            int64_t span_count, enum tfos_dtype dtype,
                                            enum tfos_reduction reduction, struct tfos_error *err)
{
    struct tfos__collective_vector vector;
    struct tfos__collective_call call;
    struct tfos_error cause;
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, true, reduction, err));
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, span_count, size, err));
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(name, TFOS__COLLECTIVE_ALL_REDUCE, dtype, vector.count);
    descriptor.reduction = (uint8_t)reduction;
    enum tfos_status status = tfos__collective_call_begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        const struct tfos__collective_reduction how = {dtype, reduction, group->size};
        status = tfos__collective_call_meet(&call, NULL, &cause);
        if (status == TFOS_OK && group->segment.head)
            status = tfos__collective_pipeline_all_reduce(&call.operation, &vector, &how, &cause);
        else if (status == TFOS_OK && call.operation.ring)
            status = tfos__collective_ring_all_reduce(&call.operation, &vector, &how, &cause);
        status = tfos__collective_call_end(&call, status, &cause, err);
    }
    tfos__collective_vector_clear(&vector);
    return status;
}

enum tfos_status tfos_collective_broadcast(struct tfos_collective *group, const char *name,
                                           const struct tfos_collective_span *spans,
                                           int64_t span_count, enum tfos_dtype dtype, int root,
                                           struct tfos_error *err)
{
    struct tfos__collective_vector vector;
    struct tfos__collective_call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, false, 0, err));
    if (root < 0 || root >= group->size)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name, "the group has no such root",
                                            err);
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, span_count, size, err));
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(name, TFOS__COLLECTIVE_BROADCAST, dtype, vector.count);
    descriptor.root = (uint8_t)root;
    enum tfos_status status = tfos__collective_call_begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        // The root needs nothing of the others, so that it would not notice who calls something
        // else.
        status = tfos__collective_call_meet(&call, counts, &cause);
        if (status == TFOS_OK && group->segment.head)
            status = tfos__collective_pipeline_broadcast(&call.operation, &vector, &cause);
        else if (status == TFOS_OK && call.operation.ring)
            status = tfos__collective_ring_broadcast_vector(&call.operation, &vector, &cause);
        status = tfos__collective_call_end(&call, status, &cause, err);
    }
    tfos__collective_vector_clear(&vector);
    return status;
}

/// What comes after the counts are known.
static enum tfos_status gather(struct tfos__collective_call *call, const void *data,
                               const int64_t *counts, void *result, struct tfos_error *err)
{
    const struct tfos__collective_operation *operation = &call->operation;
    size_t size = tfos__collective_element_size(operation->descriptor.dtype);
    int64_t total = 0, before = 0;
    for (int rank = 0; rank < call->group->size; rank++) {
        before += rank < call->group->rank ? counts[rank] : 0;
        total += counts[rank];
    }
    if (operation->descriptor.count > 0)
        memcpy((unsigned char *)result + (size_t)before * size, data,
               (size_t)operation->descriptor.count * size);
    if (operation->segment->head)
        return tfos__collective_pipeline_all_gather(&call->operation, data, counts, result, err);
    if (!operation->ring)
        return TFOS_OK;
    const struct tfos_collective_span span = {result, total};
    struct tfos__collective_vector vector;
    TFOS__TRY(tfos__collective_vector_init(&vector, &span, 1, size, err));
    enum tfos_status status =
        tfos__collective_ring_all_gather(&call->operation, &vector, counts, err);
    tfos__collective_vector_clear(&vector);
    return status;
}

enum tfos_status
tfos_collective_all_gather(struct tfos_collective *group, const char *name, const void *data,
                           int64_t element_count, enum tfos_dtype dtype,
                           void *(*allocate)(void *context, const int64_t *counts, int64_t total),
                           void *context, struct tfos_error *err)
{
    struct tfos__collective_call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, false, 0, err));
    if (element_count < 0 || (element_count > 0 && !data))
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "there is no memory for this count", err);
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(name, TFOS__COLLECTIVE_ALL_GATHER, dtype, element_count);
    TFOS__TRY(tfos__collective_call_begin(&call, group, &descriptor, err));
    enum tfos_status status = tfos__collective_call_meet(&call, counts, &cause);
    int64_t total = 0;
    for (int rank = 0; rank < group->size; rank++)
        total += counts[rank];
    void *result = NULL;
    if (status == TFOS_OK) {
        result = allocate(context, counts, total);
        if (!result)
            status = tfos__fail(&cause, TFOS_NO_MEMORY, "rank %d has no memory for %lld elements",
                                group->rank, (long long)total);
    }
    if (status == TFOS_OK)
        status = gather(&call, data, counts, result, &cause);
    return tfos__collective_call_end(&call, status, &cause, err);
}

/// FNV-1a of the counts: enough to tell programs that differ.
static uint64_t digest_of(const int64_t *counts, int count_count)
{
    uint64_t digest = 0xCBF29CE484222325u;
    for (int i = 0; i < count_count; i++)
        for (int shift = 0; shift < 64; shift += 8)
            digest = (digest ^ ((uint64_t)counts[i] >> shift & 0xFF)) * 0x100000001B3u;
    return digest;
}

static enum tfos_status scatter(struct tfos__collective_call *call,
                                const struct tfos__collective_vector *vector, const int64_t *counts,
                                const struct tfos__collective_reduction *how, void *result,
                                struct tfos_error *err)
{
    struct tfos__collective_operation *operation = &call->operation;
    bool is_piped = operation->segment->head != NULL;
    if (is_piped && operation->roster->host_count == 1)
        return tfos__collective_pipeline_reduce_scatter(operation, vector->spans[0].data, counts,
                                                        how, result, err);
    if (is_piped)
        TFOS__TRY(tfos__collective_pipeline_all_reduce(operation, vector, how, err));
    else if (operation->ring)
        TFOS__TRY(tfos__collective_ring_reduce_scatter(operation, vector, counts, how, err));
    int64_t before = 0;
    for (int rank = 0; rank < call->group->rank; rank++)
        before += counts[rank];
    tfos__collective_vector_read(vector, before, counts[call->group->rank], result);
    return TFOS_OK;
}

enum tfos_status tfos_collective_reduce_scatter(struct tfos_collective *group, const char *name,
                                                void *data, const int64_t *counts,
                                                enum tfos_dtype dtype,
                                                enum tfos_reduction reduction, void *result,
                                                struct tfos_error *err)
{
    struct tfos__collective_vector vector;
    struct tfos__collective_call call;
    struct tfos_error cause;
    TFOS__TRY(tfos__collective_call_check(group, name, dtype, true, reduction, err));
    struct tfos_collective_span span = {data, 0};
    for (int rank = 0; rank < group->size; rank++) {
        if (counts[rank] < 0 || counts[rank] > INT64_MAX / 128 - span.count)
            return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                                "a count is out of range", err);
        span.count += counts[rank];
    }
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, &span, 1, size, err));
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(name, TFOS__COLLECTIVE_REDUCE_SCATTER, dtype, vector.count);
    descriptor.reduction = (uint8_t)reduction;
    descriptor.digest = digest_of(counts, group->size);
    enum tfos_status status = tfos__collective_call_begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        const struct tfos__collective_reduction how = {dtype, reduction, group->size};
        status = tfos__collective_call_meet(&call, NULL, &cause);
        if (status == TFOS_OK)
            status = scatter(&call, &vector, counts, &how, result, &cause);
        status = tfos__collective_call_end(&call, status, &cause, err);
    }
    tfos__collective_vector_clear(&vector);
    return status;
}

enum tfos_status tfos_collective_barrier(struct tfos_collective *group, const char *name,
                                         struct tfos_error *err)
{
    struct tfos__collective_call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(tfos__collective_call_check(group, name, TFOS_DTYPE_BOOL, false, 0, err));
    struct tfos__collective_descriptor descriptor =
        tfos__collective_call_describe(name, TFOS__COLLECTIVE_BARRIER, 0, 0);
    TFOS__TRY(tfos__collective_call_begin(&call, group, &descriptor, err));
    return tfos__collective_call_end(&call, tfos__collective_call_meet(&call, counts, &cause),
                                     &cause, err);
}

// SPDX-License-Identifier: Apache-2.0
// The operations of a group. Arguments are checked before an operation begins: what is wrong with
// them is this rank's own affair. Once it has begun, its failure is the whole group's.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "collective/group.h"
#include "collective/slab_pipeline.h"

static enum tfos_status refuse(const struct tfos_collective *group, enum tfos_status status,
                               const char *name, const char *why, struct tfos_error *err)
{
    return tfos__fail(err, status, "collective: %s: \"%.64s\": %s", group->name, name, why);
}

/// What all operations ask of their arguments.
static enum tfos_status check(const struct tfos_collective *group, const char *name,
                              enum tfos_dtype dtype, bool is_reduced, enum tfos_reduction reduction,
                              struct tfos_error *err)
{
    if (tfos__fork_guard_is_inherited(&group->guard))
        return tfos__fail(err, TFOS_INVALID,
                          "collective: %s: process %d, which was forked from process %d, is no "
                          "rank of the group: open a group in each process that is to be one",
                          group->name, (int)getpid(), group->guard.pid);
    size_t size = strlen(name);
    if (size > TFOS__COLLECTIVE_NAME_LIMIT || !tfos__text_is_utf8(name, size))
        return refuse(group, TFOS_INVALID, name, "the name has 255 bytes of UTF-8 at most", err);
    if (tfos__collective_element_size(dtype) == 0)
        return refuse(group, TFOS_INVALID, name, "elements of this dtype have no fixed size", err);
    if (is_reduced && !tfos__collective_is_reducible(dtype))
        return refuse(group, TFOS_INVALID, name,
                      "only float16, bfloat16, float32, float64, int32 and int64 are reduced", err);
    if (is_reduced && (reduction < TFOS_REDUCE_SUM || reduction > TFOS_REDUCE_MAX))
        return refuse(group, TFOS_INVALID, name, "the reduction is unknown", err);
    return TFOS_OK;
}

/// The call of an operation.
struct call {
    struct tfos_collective *group;
    struct tfos__collective_operation operation;
    int64_t begin_us;
};

/// Takes the group for an operation, whose descriptor lacks only its number.
static enum tfos_status begin(struct call *call, struct tfos_collective *group,
                              const struct tfos__collective_descriptor *descriptor,
                              struct tfos_error *err)
{
    *call = (struct call){
        .group = group,
        .begin_us = tfos__now_us(),
        .operation = {.descriptor = *descriptor,
                      .roster = &group->roster,
                      .segment = &group->segment,
                      .ring = group->ring.next ? &group->ring : NULL,
                      .failure = &group->failure,
                      .reached = group->liveness.reached,
                      .step = &group->step,
                      .stall_timeout_ms = group->stall_timeout_ms,
                      .last_rank = -1},
    };
    pthread_mutex_lock(&group->mutex);
    bool is_busy = group->is_used;
    if (!is_busy) {
        group->is_used = true;
        group->begin_us = call->begin_us;
        atomic_store(&group->met_us, 0);
        call->operation.descriptor.sequence = ++group->sequence;
        atomic_store(&group->liveness.reached[group->rank], group->sequence);
        tfos__number_table_hold(&group->entry);
    }
    pthread_mutex_unlock(&group->mutex);
    if (!is_busy)
        return TFOS_OK;
    return refuse(group, TFOS_BUSY, descriptor->name,
                  "another operation is under way; a group has one at a time, so that all ranks "
                  "have them in one order",
                  err);
}

static void count(struct tfos_collective *group, const struct call *call)
{
    const struct tfos__collective_operation *operation = &call->operation;
    struct tfos_collective_figures *figures = &group->figures;
    int64_t now_us = tfos__now_us();
    size_t size = tfos__collective_element_size(operation->descriptor.dtype);
    figures->operation_count++;
    figures->byte_count += operation->descriptor.count * (int64_t)size;
    figures->duration_us += now_us - call->begin_us;
    figures->wait_us += operation->wait_us;
    group->steps.operated_us = now_us;
    atomic_fetch_add(&group->liveness.blocked_us[group->rank], operation->blocked_us);
    if (operation->last_rank >= 0 && group->roster.host_count == 1)
        group->last_counts[operation->last_rank]++;
}

/// Ends the operation: a failure becomes the group's, unless that has another. Then its message is
/// this one's.
static enum tfos_status end(struct call *call, enum tfos_status status,
                            const struct tfos_error *cause, struct tfos_error *err)
{
    struct tfos_collective *group = call->group;
    struct tfos_error first;
    if (status < 0) {
        tfos__collective_failure_set(&group->failure, call->operation.descriptor.sequence, status,
                                     cause->message);
        status = tfos__collective_failure_check(&group->failure, UINT64_MAX, &first);
        tfos__collective_failure_await_told(&group->failure);
        char label[TFOS__COLLECTIVE_TEXT_SIZE];
        tfos__fail(err, status, "collective: %s: %s: %s", group->name,
                   tfos__collective_descriptor_label(&call->operation.descriptor, label),
                   first.message);
    }
    pthread_mutex_lock(&group->mutex);
    group->is_used = false;
    count(group, call);
    pthread_mutex_unlock(&group->mutex);
    tfos_collective_release(group);
    return status;
}

/// Waits until the ranks have come to the operation. `counts`: as the pipeline has it.
static enum tfos_status meet(struct call *call, int64_t *counts, struct tfos_error *err)
{
    struct tfos__collective_operation *operation = &call->operation;
    TFOS__TRY(
        tfos__collective_failure_check(operation->failure, operation->descriptor.sequence, err));
    if (counts)
        counts[call->group->rank] = operation->descriptor.count;
    enum tfos_status status = TFOS_OK;
    if (operation->segment->head) {
        tfos__collective_pipeline_arrive(operation);
        status = tfos__collective_pipeline_meet(operation, counts, err);
    } else if (operation->ring) {
        status = tfos__collective_ring_meet(operation, counts, err);
    }
    int64_t met_us = tfos__now_us();
    operation->wait_us = met_us - call->begin_us;
    atomic_store(&call->group->met_us, met_us);
    return status;
}

static struct tfos__collective_descriptor describe(const char *name,
                                                   enum tfos__collective_kind kind,
                                                   enum tfos_dtype dtype, int64_t element_count)
{
    struct tfos__collective_descriptor descriptor = {
        .kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .count = element_count};
    memcpy(descriptor.name, name, strlen(name));
    return descriptor;
}

enum tfos_status tfos_collective_all_reduce(struct tfos_collective *group, const char *name,
                                            const struct tfos_collective_span *spans,
                                            int64_t span_count, enum tfos_dtype dtype,
                                            enum tfos_reduction reduction, struct tfos_error *err)
{
    struct tfos__collective_vector vector;
    struct call call;
    struct tfos_error cause;
    TFOS__TRY(check(group, name, dtype, true, reduction, err));
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, span_count, size, err));
    struct tfos__collective_descriptor descriptor =
        describe(name, TFOS__COLLECTIVE_ALL_REDUCE, dtype, vector.count);
    descriptor.reduction = (uint8_t)reduction;
    enum tfos_status status = begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        const struct tfos__collective_reduction how = {dtype, reduction, group->size};
        status = meet(&call, NULL, &cause);
        if (status == TFOS_OK && group->segment.head)
            status = tfos__collective_pipeline_all_reduce(&call.operation, &vector, &how, &cause);
        else if (status == TFOS_OK && call.operation.ring)
            status = tfos__collective_ring_all_reduce(&call.operation, &vector, &how, &cause);
        status = end(&call, status, &cause, err);
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
    struct call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(check(group, name, dtype, false, 0, err));
    if (root < 0 || root >= group->size)
        return refuse(group, TFOS_INVALID, name, "the group has no such root", err);
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, span_count, size, err));
    struct tfos__collective_descriptor descriptor =
        describe(name, TFOS__COLLECTIVE_BROADCAST, dtype, vector.count);
    descriptor.root = (uint8_t)root;
    enum tfos_status status = begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        // The root needs nothing of the others, so that it would not notice who calls something
        // else.
        status = meet(&call, counts, &cause);
        if (status == TFOS_OK && group->segment.head)
            status = tfos__collective_pipeline_broadcast(&call.operation, &vector, &cause);
        else if (status == TFOS_OK && call.operation.ring)
            status = tfos__collective_ring_broadcast_vector(&call.operation, &vector, &cause);
        status = end(&call, status, &cause, err);
    }
    tfos__collective_vector_clear(&vector);
    return status;
}

/// What comes after the counts are known.
static enum tfos_status gather(struct call *call, const void *data, const int64_t *counts,
                               void *result, struct tfos_error *err)
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
    struct call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(check(group, name, dtype, false, 0, err));
    if (element_count < 0 || (element_count > 0 && !data))
        return refuse(group, TFOS_INVALID, name, "there is no memory for this count", err);
    struct tfos__collective_descriptor descriptor =
        describe(name, TFOS__COLLECTIVE_ALL_GATHER, dtype, element_count);
    TFOS__TRY(begin(&call, group, &descriptor, err));
    enum tfos_status status = meet(&call, counts, &cause);
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
    return end(&call, status, &cause, err);
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

static enum tfos_status scatter(struct call *call, const struct tfos__collective_vector *vector,
                                const int64_t *counts, const struct tfos__collective_reduction *how,
                                void *result, struct tfos_error *err)
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
    struct call call;
    struct tfos_error cause;
    TFOS__TRY(check(group, name, dtype, true, reduction, err));
    struct tfos_collective_span span = {data, 0};
    for (int rank = 0; rank < group->size; rank++) {
        if (counts[rank] < 0 || counts[rank] > INT64_MAX / 128 - span.count)
            return refuse(group, TFOS_INVALID, name, "a count is out of range", err);
        span.count += counts[rank];
    }
    size_t size = tfos__collective_element_size(dtype);
    TFOS__TRY(tfos__collective_vector_init(&vector, &span, 1, size, err));
    struct tfos__collective_descriptor descriptor =
        describe(name, TFOS__COLLECTIVE_REDUCE_SCATTER, dtype, vector.count);
    descriptor.reduction = (uint8_t)reduction;
    descriptor.digest = digest_of(counts, group->size);
    enum tfos_status status = begin(&call, group, &descriptor, err);
    if (status == TFOS_OK) {
        const struct tfos__collective_reduction how = {dtype, reduction, group->size};
        status = meet(&call, NULL, &cause);
        if (status == TFOS_OK)
            status = scatter(&call, &vector, counts, &how, result, &cause);
        status = end(&call, status, &cause, err);
    }
    tfos__collective_vector_clear(&vector);
    return status;
}

enum tfos_status tfos_collective_barrier(struct tfos_collective *group, const char *name,
                                         struct tfos_error *err)
{
    struct call call;
    struct tfos_error cause;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    TFOS__TRY(check(group, name, TFOS_DTYPE_BOOL, false, 0, err));
    struct tfos__collective_descriptor descriptor = describe(name, TFOS__COLLECTIVE_BARRIER, 0, 0);
    TFOS__TRY(begin(&call, group, &descriptor, err));
    return end(&call, meet(&call, counts, &cause), &cause, err);
}

// SPDX-License-Identifier: Apache-2.0
// Arguments are checked before an operation begins: what is wrong with them is this rank's own
// affair. Once it has begun, its failure is the whole group's.
#include "collective/operation_call.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/text.h"
#include "collective/slab_pipeline.h"

enum tfos_status tfos__collective_call_refuse(const struct tfos_collective *group,
                                              enum tfos_status status, const char *name,
                                              const char *why, struct tfos_error *err)
{
    return tfos__fail(err, status, "collective: %s: \"%.64s\": %s", group->name, name, why);
}

enum tfos_status tfos__collective_call_check(const struct tfos_collective *group, const char *name,
                                             enum tfos_dtype dtype, bool is_reduced,
                                             enum tfos_reduction reduction, struct tfos_error *err)
{
    if (tfos__fork_guard_is_inherited(&group->guard))
        return tfos__fail(err, TFOS_INVALID,
                          "collective: %s: process %d, which was forked from process %d, is no "
                          "rank of the group: open a group in each process that is to be one",
                          group->name, (int)getpid(), group->guard.pid);
    size_t size = strlen(name);
    if (size > TFOS__COLLECTIVE_NAME_LIMIT || !tfos__text_is_utf8(name, size))
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "the name has 255 bytes of UTF-8 at most", err);
    if (tfos__collective_element_size(dtype) == 0)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "elements of this dtype have no fixed size", err);
    if (is_reduced && !tfos__collective_is_reducible(dtype))
        return tfos__collective_call_refuse(
            group, TFOS_INVALID, name,
            "only float16, bfloat16, float32, float64, int32 and int64 are reduced", err);
    if (is_reduced && (reduction < TFOS_REDUCE_SUM || reduction > TFOS_REDUCE_MAX))
        return tfos__collective_call_refuse(group, TFOS_INVALID, name, "the reduction is unknown",
                                            err);
    return TFOS_OK;
}

enum tfos_status tfos__collective_call_begin(struct tfos__collective_call *call,
                                             struct tfos_collective *group,
                                             const struct tfos__collective_descriptor *descriptor,
                                             struct tfos_error *err)
{
    *call = (struct tfos__collective_call){
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
        call->operation.descriptor.sequence = group->sequence + 1;
        if (descriptor->kind != TFOS__COLLECTIVE_PUSH_PULL)
            group->sequence++; // all ranks call it
        atomic_store(&group->liveness.reached[group->rank], group->sequence);
        tfos__number_table_hold(&group->entry);
    }
    pthread_mutex_unlock(&group->mutex);
    if (!is_busy)
        return TFOS_OK;
    return tfos__collective_call_refuse(
        group, TFOS_BUSY, descriptor->name,
        "another operation is under way; a group has one at a time, so that all ranks "
        "have them in one order",
        err);
}

enum tfos_status tfos__collective_call_meet(struct tfos__collective_call *call, int64_t *counts,
                                            struct tfos_error *err)
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

static void count(struct tfos_collective *group, const struct tfos__collective_call *call)
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

enum tfos_status tfos__collective_call_end(struct tfos__collective_call *call,
                                           enum tfos_status status, const struct tfos_error *cause,
                                           struct tfos_error *err)
{
    struct tfos_collective *group = call->group;
    struct tfos_error first;
    if (status < 0) {
        tfos__collective_failure_set(&group->failure, call->operation.descriptor.sequence, status,
                                     cause->message);
        status = tfos__collective_failure_check(&group->failure, UINT64_MAX, &first);
        tfos__collective_failure_await_sent(&group->failure);
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

struct tfos__collective_descriptor tfos__collective_call_describe(const char *name,
                                                                  enum tfos__collective_kind kind,
                                                                  enum tfos_dtype dtype,
                                                                  int64_t element_count)
{
    struct tfos__collective_descriptor descriptor = {
        .kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .count = element_count};
    memcpy(descriptor.name, name, strlen(name));
    return descriptor;
}

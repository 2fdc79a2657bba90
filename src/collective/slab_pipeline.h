// SPDX-License-Identifier: Apache-2.0
/// Operations among the ranks of a host, through slabs in shared memory, in steps that are small
/// enough to stay in the cache; and, where there are other hosts, with these by the leader's ring,
/// step by step.
#ifndef TFOS_COLLECTIVE_SLAB_PIPELINE_H
#define TFOS_COLLECTIVE_SLAB_PIPELINE_H

#include <tfos/status.h>

#include "collective/operation.h"
#include "collective/reduction.h"
#include "collective/span_vector.h"

/// Tells the host's ranks that this one has come to the operation.
void tfos__collective_pipeline_arrive(const struct tfos__collective_operation *operation);

/// Waits for them and for the hosts beside this one, and compares. With `counts` it returns when
/// all ranks have come, with the count of each.
enum tfos_status tfos__collective_pipeline_meet(struct tfos__collective_operation *operation,
                                                int64_t *counts, struct tfos_error *err);

/// As the public operations; all ranks have met.
enum tfos_status tfos__collective_pipeline_all_reduce(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const struct tfos__collective_reduction *reduction, struct tfos_error *err);
enum tfos_status tfos__collective_pipeline_broadcast(struct tfos__collective_operation *operation,
                                                     const struct tfos__collective_vector *vector,
                                                     struct tfos_error *err);
enum tfos_status tfos__collective_pipeline_all_gather(struct tfos__collective_operation *operation,
                                                      const void *data, const int64_t *counts,
                                                      void *result, struct tfos_error *err);

/// One host only.
enum tfos_status tfos__collective_pipeline_reduce_scatter(
    struct tfos__collective_operation *operation, const void *data, const int64_t *counts,
    const struct tfos__collective_reduction *reduction, void *result, struct tfos_error *err);

#endif

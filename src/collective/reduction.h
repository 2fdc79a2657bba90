// SPDX-License-Identifier: Apache-2.0
/// Reducing vectors, element by element. Half types are widened to float32 and rounded once.
#ifndef TFOS_COLLECTIVE_REDUCTION_H
#define TFOS_COLLECTIVE_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/collective.h>

struct tfos__collective_reduction {
    enum tfos_dtype dtype; ///< one that can be reduced
    enum tfos_reduction kind;
    int rank_count; ///< what a mean is divided by
};

/// Reduces `source_count` (1 or more) vectors, in their order, into `out` and, if it is not NULL,
/// `copy`. Either may be one of the sources, but may not overlap one otherwise. A mean is divided
/// if `is_last`.
void tfos__collective_reduce(const struct tfos__collective_reduction *reduction,
                             const void *const *sources, int source_count, int64_t count,
                             bool is_last, void *out, void *copy);

/// The same with the widest instructions that every machine has: for tests.
void tfos__collective_reduce_plainly(const struct tfos__collective_reduction *reduction,
                                     const void *const *sources, int source_count, int64_t count,
                                     bool is_last, void *out, void *copy);

#endif

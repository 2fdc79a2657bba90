// SPDX-License-Identifier: Apache-2.0
/// A column of an Arrow batch as the encoder reads it: where its values are, whatever the offsets
/// of the arrays around them.
#ifndef TFOS_RECORD_EXAMPLE_SOURCE_H
#define TFOS_RECORD_EXAMPLE_SOURCE_H

#include "record/example_plan.h"

/// Validity bits and the place of the first one. NULL: nothing is null.
struct tfos__example_bits {
    const uint8_t *bits;
    int64_t offset;
};

struct tfos__example_source {
    const struct tfos__example_field *field; ///< borrowed
    struct tfos__example_bits validity;      ///< of the rows
    struct {
        struct tfos__example_bits validity; ///< of the lists
        const void *offsets;                ///< NULL where lists have a fixed size
        int64_t offset;                     ///< of the first list
    } levels[TFOS__EXAMPLE_LEVELS];
    struct tfos__example_bits value_validity;
    const void *values; ///< of text and binary: offsets
    int64_t offset;     ///< of the first value
    const uint8_t *bytes;
};

/// Some of the values, or of the lists, of a column.
struct tfos__example_range {
    int64_t begin, end;
};

/// Finds the columns of a plan in a batch; `sources` has room for all. INVALID: the batch is not of
/// the plan's schema, or a struct in it is null.
enum tfos_status tfos__example_sources_find(const struct tfos__example_plan *plan,
                                            const struct ArrowArray *batch,
                                            struct tfos__example_source *sources,
                                            struct tfos_error *err);

/// What list number `index` of a level holds. INVALID: it is null.
enum tfos_status tfos__example_source_list(const struct tfos__example_source *source, int level,
                                           int64_t index, struct tfos__example_range *range,
                                           struct tfos_error *err);

static inline bool tfos__example_is_null(struct tfos__example_bits validity, int64_t index)
{
    int64_t bit = validity.offset + index;
    return validity.bits && !(validity.bits[bit / 8] >> bit % 8 & 1);
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column of an Arrow batch as the encoder reads it: where its lists and values are.
#ifndef TFOS_RECORD_EXAMPLE_SOURCE_H
#define TFOS_RECORD_EXAMPLE_SOURCE_H

#include "record/example_plan.h"

struct tfos__example_source {
    const struct tfos__example_field *field; ///< borrowed
    int64_t offset;                          ///< of the first row in levels[0], as its index
    /// Of the lists, outermost first, and behind them of the values; borrowed from the batch.
    const struct ArrowArray *levels[TFOS__EXAMPLE_LEVELS + 1];
};

/// Finds the columns of a plan in a batch; `sources` has room for all. INVALID: the batch is not of
/// the plan's schema, or a struct in it is null.
enum tfos_status tfos__example_sources_find(const struct tfos__example_plan *plan,
                                            const struct ArrowArray *batch,
                                            struct tfos__example_source *sources,
                                            struct tfos_error *err);

/// What list number `index` of a level holds. INVALID: it is null.
enum tfos_status tfos__example_source_list(const struct tfos__example_source *source, int level,
                                           int64_t index, struct tfos__arrow_span *span,
                                           struct tfos_error *err);

/// The type of the values, and their array.
static inline const struct tfos__arrow_type *
tfos__example_source_type(const struct tfos__example_source *source)
{
    return &tfos__example_values(source->field)->type;
}

static inline const struct ArrowArray *
tfos__example_source_values(const struct tfos__example_source *source)
{
    return source->levels[source->field->level_count];
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// A column of a batch of results, as the trainer gave it: where its values lie.
#ifndef TFOS_SPARK_RESULT_SOURCE_H
#define TFOS_SPARK_RESULT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "spark/result_type.h"

/// Values of one depth. They are counted from 0 on, `offset` values behind the buffers' first.
struct tfos__result_level {
    const uint8_t *validity; ///< NULL: no nulls
    const void *ends;        ///< offsets of lists or bytes; NULL: lists of `count` values
    int64_t offset, count;
    bool is_wide; ///< offsets of 64 bits
};

/// All but the name is borrowed from the batch.
struct tfos__result_source {
    int depth;
    char code;
    const uint8_t *data;                                      ///< numbers, or bytes
    struct tfos__result_level levels[TFOS__RESULT_DEPTH + 1]; ///< levels[depth]: the values
};

struct tfos__result_range {
    int64_t first, end;
};

/// Finds the values of a column. UNSUPPORTED: it is pickled, or has a type that is not read here;
/// `name` is what messages call it.
enum tfos_status tfos__result_source_init(struct tfos__result_source *source,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, const char *name,
                                          struct tfos_error *err);

/// Whether a value of that depth is null.
static inline bool tfos__result_is_null(const struct tfos__result_source *source, int depth,
                                        int64_t index)
{
    const struct tfos__result_level *level = &source->levels[depth];

    if (source->code == TFOS__RESULT_NOTHING && depth == source->depth)
        return true;
    index += level->offset;
    return level->validity && !(level->validity[index / 8] >> index % 8 & 1);
}

/// What a list or bytes consist of: values of the next depth, or bytes of `data`.
static inline struct tfos__result_range tfos__result_range(const struct tfos__result_source *source,
                                                           int depth, int64_t index)
{
    const struct tfos__result_level *level = &source->levels[depth];

    index += level->offset;
    if (!level->ends)
        return (struct tfos__result_range){index * level->count, (index + 1) * level->count};
    if (level->is_wide) {
        const int64_t *ends = level->ends;
        return (struct tfos__result_range){ends[index], ends[index + 1]};
    }
    const int32_t *ends = level->ends;
    return (struct tfos__result_range){ends[index], ends[index + 1]};
}

#endif

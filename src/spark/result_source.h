// SPDX-License-Identifier: Apache-2.0
/// A column of a batch of results, as the trainer gave it: where its values lie.
#ifndef TFOS_SPARK_RESULT_SOURCE_H
#define TFOS_SPARK_RESULT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "spark/result_type.h"

/// Lists of one depth.
struct tfos__result_level {
    const struct ArrowArray *array; ///< NULL: inner dimensions of an array; none of them is null
    struct tfos__arrow_type type;
};

/// All but the name is borrowed from the batch.
struct tfos__result_source {
    int depth;
    struct tfos__arrow_type type; ///< of the values; NULL: they are all null
    bool is_boolean;              ///< bytes are booleans
    const struct ArrowArray *values;
    struct tfos__result_level levels[TFOS__RESULT_DEPTH];
};

/// Finds the values of a column. UNSUPPORTED: it is pickled, or has a type that is not read here;
/// `name` is what messages call it.
enum tfos_status tfos__result_source_init(struct tfos__result_source *source,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, const char *name,
                                          struct tfos_error *err);

/// The same as tfos__result_type_say() says of a type.
const char *tfos__result_source_say(char name[TFOS__RESULT_NAME],
                                    const struct tfos__result_source *source, int depth);

static inline bool tfos__result_has_nulls(const struct tfos__result_source *source)
{
    return source->type.kind == TFOS__ARROW_NULL || tfos__arrow_has_nulls(source->values);
}

/// Whether a value of that depth is null.
static inline bool tfos__result_is_null(const struct tfos__result_source *source, int depth,
                                        int64_t index)
{
    const struct ArrowArray *array =
        depth == source->depth ? source->values : source->levels[depth].array;

    if (source->type.kind == TFOS__ARROW_NULL && depth == source->depth)
        return true;
    return array && tfos__arrow_is_null(array, index);
}

/// What a list consists of: values of the next depth.
static inline struct tfos__arrow_span tfos__result_list(const struct tfos__result_source *source,
                                                        int depth, int64_t index)
{
    const struct tfos__result_level *level = &source->levels[depth];
    int64_t size = level->type.list_size;

    return level->array ? tfos__arrow_list(&level->type, level->array, index)
                        : (struct tfos__arrow_span){index * size, size};
}

#endif

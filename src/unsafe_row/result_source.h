// SPDX-License-Identifier: Apache-2.0
/// The declared type of a column of results, and the column of a batch that it is cast from. Both
/// are lists in lists around values of one type.
#ifndef TFOS_UNSAFE_ROW_RESULT_SOURCE_H
#define TFOS_UNSAFE_ROW_RESULT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "arrow/arrow.h"
#include "unsafe_row/row_format.h"

#define TFOS__RESULT_DEPTH 32 ///< most lists around a value
#define TFOS__RESULT_NAME 448 ///< bytes of a type's name

/// A declared column.
struct tfos__unsafe_row_result_type {
    const char *name;              ///< borrowed from the schema
    int depth;                     ///< lists around a value
    struct tfos__arrow_type value; ///< BOOL, INT, FLOAT (not of 16 bits), TEXT or BINARY
    uint32_t element_size;         ///< bytes of a value in one of Spark's arrays
    uint64_t required;             ///< bit d: what lies within d lists must not be null
};

/// Reads the type of a column of a struct. UNSUPPORTED names it.
enum tfos_status tfos__unsafe_row_result_type_init(struct tfos__unsafe_row_result_type *type,
                                                   const struct ArrowSchema *schema,
                                                   struct tfos_error *err);

/// Writes what messages call such values in `depth` lists, as Spark does: "array<double>". Returns
/// `name`.
const char *tfos__unsafe_row_result_type_name(char name[TFOS__RESULT_NAME],
                                              const struct tfos__arrow_type *value, int depth);

static inline bool tfos__unsafe_row_is_bytes(const struct tfos__arrow_type *value)
{
    return value->kind == TFOS__ARROW_TEXT || value->kind == TFOS__ARROW_BINARY;
}

/// Whether a value takes a part of a row's or an array's variable part.
static inline bool tfos__unsafe_row_is_variable(const struct tfos__unsafe_row_result_type *type,
                                                int depth)
{
    return depth < type->depth || tfos__unsafe_row_is_bytes(&type->value);
}

/// Lists of one depth.
struct tfos__unsafe_row_level {
    const struct ArrowArray *array; ///< NULL: inner dimensions of an array; none of them is null
    struct tfos__arrow_type type;
};

/// All but the name is borrowed from the batch.
struct tfos__unsafe_row_source {
    int depth;
    struct tfos__arrow_type type; ///< of the values; NULL: they are all null
    bool is_boolean;              ///< bytes are booleans
    const struct ArrowArray *values;
    struct tfos__unsafe_row_level levels[TFOS__RESULT_DEPTH];
};

/// Finds the values of a column. UNSUPPORTED: it is pickled, or has a type that is not read here;
/// `name` is what messages call it.
enum tfos_status tfos__unsafe_row_source_init(struct tfos__unsafe_row_source *source,
                                              const struct ArrowSchema *schema,
                                              const struct ArrowArray *array, const char *name,
                                              struct tfos_error *err);

/// The same as tfos__unsafe_row_result_type_name() says of a type.
const char *tfos__unsafe_row_source_type_name(char name[TFOS__RESULT_NAME],
                                              const struct tfos__unsafe_row_source *source,
                                              int depth);

static inline bool tfos__unsafe_row_source_has_nulls(const struct tfos__unsafe_row_source *source)
{
    return source->type.kind == TFOS__ARROW_NULL || tfos__arrow_has_nulls(source->values);
}

/// Whether a value of that depth is null.
static inline bool tfos__unsafe_row_source_is_null(const struct tfos__unsafe_row_source *source,
                                                   int depth, int64_t index)
{
    const struct ArrowArray *array =
        depth == source->depth ? source->values : source->levels[depth].array;
    if (source->type.kind == TFOS__ARROW_NULL && depth == source->depth)
        return true;
    return array && tfos__arrow_is_null(array, index);
}

/// What a list consists of: values of the next depth.
static inline struct tfos__arrow_span
tfos__unsafe_row_source_list(const struct tfos__unsafe_row_source *source, int depth, int64_t index)
{
    const struct tfos__unsafe_row_level *level = &source->levels[depth];
    int64_t size = level->type.list_size;
    return level->array ? tfos__arrow_list(&level->type, level->array, index)
                        : (struct tfos__arrow_span){index * size, size};
}

/// Writes `count` values from `first` on, packed, as numbers of the declared type (a boolean is a
/// byte, 0 or 1). A null becomes zero. INVALID: an integer is not in the range of its new type, or
/// a fraction would be cut off, or an integer is larger than those that a floating-point type has
/// all of. A float takes the nearest of a double.
enum tfos_status tfos__unsafe_row_source_cast(const struct tfos__unsafe_row_source *source,
                                              int64_t first, int64_t count,
                                              const struct tfos__unsafe_row_result_type *type,
                                              void *to, struct tfos_error *err);

#endif

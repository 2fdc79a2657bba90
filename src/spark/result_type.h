// SPDX-License-Identifier: Apache-2.0
/// Types of results: what is declared of a column, and what came. Both are lists in lists around
/// values of one type.
#ifndef TFOS_SPARK_RESULT_TYPE_H
#define TFOS_SPARK_RESULT_TYPE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "arrow/arrow.h"

#define TFOS__RESULT_DEPTH 32 ///< most lists around a value
#define TFOS__RESULT_NAME 448 ///< bytes of a type's name

/// A declared column.
struct tfos__result_type {
    const char *name;              ///< borrowed from the schema
    int depth;                     ///< lists around a value
    struct tfos__arrow_type value; ///< BOOL, INT, FLOAT (not of 16 bits), TEXT or BINARY
    uint32_t element_size;         ///< bytes of a value in one of Spark's arrays
    uint64_t required;             ///< bit d: what lies within d lists must not be null
};

/// Reads the type of a column of a struct. UNSUPPORTED names it.
enum tfos_status tfos__result_type_init(struct tfos__result_type *type,
                                        const struct ArrowSchema *schema, struct tfos_error *err);

/// Writes what messages call such values in `depth` lists, as Spark does: "array<double>". Returns
/// `name`.
const char *tfos__result_type_say(char name[TFOS__RESULT_NAME],
                                  const struct tfos__arrow_type *value, int depth);

static inline bool tfos__result_is_bytes(const struct tfos__arrow_type *value)
{
    return value->kind == TFOS__ARROW_TEXT || value->kind == TFOS__ARROW_BINARY;
}

/// Whether a value takes a part of a row's or an array's variable part.
static inline bool tfos__result_is_variable(const struct tfos__result_type *type, int depth)
{
    return depth < type->depth || tfos__result_is_bytes(&type->value);
}

#endif

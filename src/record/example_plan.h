// SPDX-License-Identifier: Apache-2.0
/// How the columns of a schema stand in records: a flat list of features, and the tree that they
/// are columns of.
#ifndef TFOS_RECORD_EXAMPLE_PLAN_H
#define TFOS_RECORD_EXAMPLE_PLAN_H

#include <stdbool.h>
#include <tfos/arrow.h>
#include <tfos/example.h>

#include "arrow/arrow.h"
#include "record/feature.h"

#define TFOS__EXAMPLE_LEVELS 2 ///< most lists around a value

struct tfos__example_field {
    char *name; ///< of the feature; owned
    size_t name_size;
    char *type; ///< its name, for messages; owned
    enum tfos_type_names type_names;
    enum tfos__feature_kind kind;
    bool is_exact; ///< doubles and decimals as bytes
    bool is_nullable;
    bool is_name_exact; ///< another column's name differs from it in letter case only
    int level_count;    ///< lists around a value
    /// The columns of the lists, outermost first, and behind them that of the values; borrowed.
    struct tfos__arrow_builder *levels[TFOS__EXAMPLE_LEVELS + 1];
};

struct tfos__example_plan {
    enum tfos_record_type type;
    enum tfos_type_names type_names;
    struct tfos__example_field *fields; ///< owned; the leaves in the order of the schema
    size_t field_count, field_capacity;
    struct tfos__arrow_builder rows; ///< what a decoder fills; to an encoder, only the types
};

/// Makes the plan of a schema; it stays where it is, zeroed but for the kind of records and of
/// names. On failure the caller clears it too.
enum tfos_status tfos__example_plan_init(struct tfos__example_plan *plan,
                                         const struct ArrowSchema *schema, struct tfos_error *err);

/// Writes the name of the type that holds all that a feature of this kind may have, within
/// `level_count` lists, in the words of the column's own. Returns `text`.
const char *tfos__example_type_of(const struct tfos__example_field *field,
                                  enum tfos__feature_kind kind, int level_count,
                                  char text[TFOS_TYPE_TEXT_SIZE]);

void tfos__example_plan_clear(struct tfos__example_plan *plan);

/// The column of the values.
static inline struct tfos__arrow_builder *
tfos__example_values(const struct tfos__example_field *field)
{
    return field->levels[field->level_count];
}

#endif

// SPDX-License-Identifier: Apache-2.0
/// The columns of an Arrow schema as features of records: a flat list of fields, and the tree of
/// columns that they are leaves of.
#ifndef TFOS_RECORD_RECORD_SCHEMA_H
#define TFOS_RECORD_RECORD_SCHEMA_H

#include <stdbool.h>
#include <tfos/arrow.h>
#include <tfos/example.h>

#include "arrow/arrow.h"
#include "record/feature.h"

#define TFOS__EXAMPLE_LEVELS 2 ///< most lists around a value

struct tfos__record_field {
    char *name; ///< of the feature; owned
    size_t name_size;
    char *type; ///< its name, for messages; owned
    enum tfos_type_names type_names;
    enum tfos__record_feature_kind kind;
    bool is_exact; ///< doubles and decimals are stored as bytes
    bool is_nullable;
    bool is_name_exact; ///< another column's name differs from it in letter case only
    int level_count;    ///< lists around a value
    /// The columns of the lists, outermost first, and behind them that of the values; borrowed.
    struct tfos__arrow_builder *levels[TFOS__EXAMPLE_LEVELS + 1];
};

struct tfos__record_schema {
    enum tfos_record_type type;
    enum tfos_type_names type_names;
    struct tfos__record_field *fields; ///< owned; the leaves in the order of the schema
    size_t field_count;
    struct tfos__arrow_builder rows; ///< a decoder fills them; an encoder uses only their types
};

/// Reads an Arrow schema. `schema` is zeroed but for its type and type_names, and must not move. On
/// failure the caller clears it too.
enum tfos_status tfos__record_schema_init(struct tfos__record_schema *schema,
                                          const struct ArrowSchema *node, struct tfos_error *err);

/// Writes the name of the type that holds every value of a feature of this kind, in `level_count`
/// lists. Returns `text`.
const char *tfos__record_field_type_for(const struct tfos__record_field *field,
                                        enum tfos__record_feature_kind kind, int level_count,
                                        char text[TFOS_TYPE_TEXT_SIZE]);

void tfos__record_schema_clear(struct tfos__record_schema *schema);

/// The column of the values.
static inline struct tfos__arrow_builder *
tfos__record_field_values(const struct tfos__record_field *field)
{
    return field->levels[field->level_count];
}

#endif

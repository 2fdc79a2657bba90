// SPDX-License-Identifier: Apache-2.0
/// How the columns of a schema stand in records: a flat list of features, and the tree that they
/// are columns of.
#ifndef TFOS_RECORD_EXAMPLE_PLAN_H
#define TFOS_RECORD_EXAMPLE_PLAN_H

#include <stdbool.h>
#include <tfos/arrow.h>
#include <tfos/example.h>

#include "record/feature.h"

#define TFOS__EXAMPLE_LEVELS 2 ///< most lists around a value

enum tfos__example_value {
    TFOS__VALUE_BOOLEAN, ///< a bit in Arrow; 0 or 1
    TFOS__VALUE_INTEGER, ///< of `width` bytes
    TFOS__VALUE_FLOAT,
    TFOS__VALUE_DOUBLE,
    TFOS__VALUE_DECIMAL, ///< 16 bytes
    TFOS__VALUE_TEXT,    ///< offsets and bytes, which are UTF-8
    TFOS__VALUE_BINARY   ///< offsets and bytes
};

struct tfos__example_field {
    char *name; ///< of the feature; owned
    size_t name_size;
    char *type; ///< its name, for messages; owned
    enum tfos_type_names type_names;
    enum tfos__feature_kind kind;
    enum tfos__example_value value;
    bool is_unsigned; ///< integers
    bool is_exact;    ///< doubles and decimals as bytes
    bool is_nullable;
    bool is_name_exact;  ///< another column's name differs from it in letter case only
    bool has_wide_bytes; ///< text and binary: offsets of 64 bits
    uint8_t width;       ///< bytes of a value in Arrow; of a boolean 1, as it is decoded; or 0
    int precision, scale;
    int level_count; ///< lists around a value
    struct {
        bool is_wide;       ///< offsets of 64 bits
        int64_t fixed_size; ///< of every list, which then has no offsets; -1 for any
    } levels[TFOS__EXAMPLE_LEVELS];
};

struct tfos__example_plan {
    enum tfos_record_type type;
    enum tfos_type_names type_names;
    struct tfos__example_field *fields; ///< owned; the leaves in the order of the schema
    size_t field_count, field_capacity;
    /// The tree in pre-order: of a struct how many fields it has, of a leaf -1. Owned. The first is
    /// the batch itself.
    int64_t *shape;
    size_t shape_count, shape_capacity;
};

/// Makes the plan of a schema; `plan` is zeroed but for the kind of records and of names. On
/// failure the caller clears it too.
enum tfos_status tfos__example_plan_init(struct tfos__example_plan *plan,
                                         const struct ArrowSchema *schema, struct tfos_error *err);

/// Writes the name of the type that holds all that a feature of this kind may have, within
/// `level_count` lists, in the words of the column's own. Returns `text`.
const char *tfos__example_type_of(const struct tfos__example_field *field,
                                  enum tfos__feature_kind kind, int level_count,
                                  char text[TFOS_TYPE_TEXT_SIZE]);

void tfos__example_plan_clear(struct tfos__example_plan *plan);

#endif

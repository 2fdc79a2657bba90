// SPDX-License-Identifier: Apache-2.0
/// A schema that the feed carries: the tree of a batch's columns, and their types in one list.
#ifndef TFOS_FEED_SCHEMA_H
#define TFOS_FEED_SCHEMA_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "arrow/arrow.h"

struct tfos__feed_field {
    struct tfos__arrow_type type;
    const char *name, *metadata; ///< into the tree
    int64_t child_count;
};

/// All zero is none.
struct tfos__feed_schema {
    struct ArrowSchema tree;         ///< owned
    struct tfos__feed_field *fields; ///< owned; depth first; fields[0] is the struct of all columns
    size_t field_count;
};

/// Makes the schema of the batches that come next, in place of the one before, with a copy of
/// `arrow`. INVALID; UNSUPPORTED names a column whose type the feed does not carry.
enum tfos_status tfos__feed_schema_take(struct tfos__feed_schema *schema,
                                        const struct ArrowSchema *arrow, struct tfos_error *err);

/// The same with what a schema record's body says, which may be hostile. CORRUPT, UNSUPPORTED.
enum tfos_status tfos__feed_schema_decode(struct tfos__feed_schema *schema, const uint8_t *body,
                                          size_t size, struct tfos_error *err);

/// UNSUPPORTED, naming column and type, when a column, at any depth, or the rows are of a type that
/// is not known to be read without Python's pickle, which runs what the bytes say. The schema is
/// cleared then.
enum tfos_status tfos__feed_schema_refuse_pickles(struct tfos__feed_schema *schema,
                                                  struct tfos_error *err);

void tfos__feed_schema_clear(struct tfos__feed_schema *schema);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A schema: the tree of a batch's columns, its form as a record's body, and its form as an
/// ArrowSchema.
#ifndef TFOS_FEED_SCHEMA_H
#define TFOS_FEED_SCHEMA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "base/buffer.h"
#include "feed/column.h"

#define TFOS__SCHEMA_DEPTH 64     ///< deepest nesting
#define TFOS__SCHEMA_FIELDS 65536 ///< most fields of one schema, all levels together

struct tfos__field {
    const char *format; ///< into schema->text, as the two below
    const char *name;
    const char *metadata; ///< NULL: none
    int64_t flags;
    int64_t child_count;
    struct tfos__column column;
};

/// Immutable once made; shared by all batches that follow it, and by views of them in any thread.
struct tfos__schema {
    atomic_int references;
    size_t field_count;
    struct tfos__field *fields; ///< depth first; fields[0] is the struct of all columns
    char *text;
};

/// Writes the body of a schema record into `body`, in place of what it held. INVALID, naming the
/// field, when it has a dictionary or is too deep.
enum tfos_status tfos__schema_encode(const struct ArrowSchema *arrow, struct tfos__buffer *body,
                                     struct tfos_error *err);

/// Reads a body, which may be hostile. CORRUPT; UNSUPPORTED names a field's format that the feed
/// does not carry.
enum tfos_status tfos__schema_decode(const uint8_t *body, size_t size, struct tfos__schema **out,
                                     struct tfos_error *err);

struct tfos__schema *tfos__schema_share(struct tfos__schema *schema);
void tfos__schema_release(struct tfos__schema *schema); ///< NULL is accepted

/// Makes an ArrowSchema, which the caller releases.
enum tfos_status tfos__schema_export(struct tfos__schema *schema, struct ArrowSchema *arrow,
                                     struct tfos_error *err);

#endif

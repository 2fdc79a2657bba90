// SPDX-License-Identifier: Apache-2.0
/// Arrow schemas that own all that they are made of, and their form as bytes.
#ifndef TFOS_ARROW_SCHEMA_TREE_H
#define TFOS_ARROW_SCHEMA_TREE_H

#include <tfos/arrow.h>
#include <tfos/stream.h>

#include "arrow/type.h"
#include "base/memory.h"

#define TFOS__ARROW_FIELDS_LIMIT 65536 ///< most nodes of a schema that is read from bytes

/// Makes a node that is nullable, with a copy of the name. Its children are zeroed, to be filled
/// where they are; those that are not do no harm when it is released.
enum tfos_status tfos__arrow_schema_init(struct ArrowSchema *schema, struct tfos__arrow_type type,
                                         const char *name, int64_t child_count,
                                         struct tfos_error *err);

/// Makes a node of a struct, which is not nullable, as that of a batch is.
enum tfos_status tfos__arrow_schema_init_struct(struct ArrowSchema *schema, int64_t child_count,
                                                struct tfos_error *err);

/// Adds a pair to the metadata of a node of init().
enum tfos_status tfos__arrow_schema_note(struct ArrowSchema *schema, const char *key,
                                         struct tfos_view value, struct tfos_error *err);

/// Whether formats, names, metadata and children are the same.
bool tfos__arrow_schema_equals(const struct ArrowSchema *a, const struct ArrowSchema *b);

/// Releases it unless it has been, or is zeroed.
void tfos__arrow_schema_release(struct ArrowSchema *schema);

/// Writes a schema as bytes (docs/protocol.md, "Records") into `body`, in place of what it held.
/// INVALID, naming the column, when it is no struct, has a dictionary or is too deep.
enum tfos_status tfos__arrow_schema_encode(const struct ArrowSchema *schema,
                                           struct tfos__buffer *body, struct tfos_error *err);

/// Reads such bytes, which may be hostile and may change meanwhile. The caller owns the schema, a
/// struct. CORRUPT. Its types are still to be read.
enum tfos_status tfos__arrow_schema_decode(const uint8_t *body, size_t size,
                                           struct ArrowSchema *schema, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// Arrow schemas that own all that they are made of, their metadata, and their encoding as bytes.
#ifndef TFOS_ARROW_ARROW_SCHEMA_H
#define TFOS_ARROW_ARROW_SCHEMA_H

#include <tfos/arrow.h>
#include <tfos/stream.h>

#include "arrow/type.h"
#include "base/memory.h"

#define TFOS__ARROW_FIELDS_LIMIT 65536 ///< most nodes of a schema that is read from bytes

/// Makes a nullable node with a copy of the name. Its children are zeroed: the caller makes them in
/// place. Releasing the node skips those that are still zeroed.
enum tfos_status tfos__arrow_schema_init(struct ArrowSchema *schema, struct tfos__arrow_type type,
                                         const char *name, int64_t child_count,
                                         struct tfos_error *err);

/// Makes a struct that is not nullable, as that of a batch is.
enum tfos_status tfos__arrow_schema_init_struct(struct ArrowSchema *schema, int64_t child_count,
                                                struct tfos_error *err);

/// Adds a pair to the metadata of a node that init() made.
enum tfos_status tfos__arrow_schema_note(struct ArrowSchema *schema, const char *key,
                                         struct tfos_view value, struct tfos_error *err);

/// Whether formats, names, metadata and children are equal.
bool tfos__arrow_schema_equals(const struct ArrowSchema *a, const struct ArrowSchema *b);

/// Releases it unless it has been, or is zeroed.
void tfos__arrow_schema_release(struct ArrowSchema *schema);

/// Encodes a schema as bytes (docs/protocol.md, "Records") into `body`, whose content is replaced.
/// INVALID, naming the column, when it is no struct, has a dictionary or is too deep.
enum tfos_status tfos__arrow_schema_encode(const struct ArrowSchema *schema,
                                           struct tfos__buffer *body, struct tfos_error *err);

/// Decodes such bytes, which may be hostile and may change meanwhile. The caller owns the schema, a
/// struct. CORRUPT: the bytes are no schema. Its types are not checked.
enum tfos_status tfos__arrow_schema_decode(const uint8_t *body, size_t size,
                                           struct ArrowSchema *schema, struct tfos_error *err);

/// Bytes of metadata: 0 for NULL, SIZE_MAX where it does not end within `limit`.
/// tfos_arrow_metadata_find() reads it.
size_t tfos__arrow_metadata_size(const char *metadata, size_t limit);

/// A copy of metadata, which may be NULL, with one more pair; the caller frees it. NULL: there is
/// no memory.
char *tfos__arrow_metadata_add(const char *metadata, const char *key, struct tfos_view value);

#endif

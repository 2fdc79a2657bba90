// SPDX-License-Identifier: Apache-2.0
/// Arrow schemas that own all that they are made of.
#ifndef TFOS_BASE_ARROW_SCHEMA_H
#define TFOS_BASE_ARROW_SCHEMA_H

#include <tfos/arrow.h>
#include <tfos/status.h>

/// Makes a schema with copies of the texts. Its children are zeroed, to be filled where they are;
/// those that are not do no harm when it is released.
enum tfos_status tfos__schema_init(struct ArrowSchema *schema, const char *format, const char *name,
                                   int64_t child_count, struct tfos_error *err);

/// Bytes of a schema's metadata, of which NULL has none.
size_t tfos__metadata_size(const char *metadata);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The metadata of a schema's node: pairs of key and value, in Arrow's encoding.
/// tfos_arrow_metadata_find() looks into them.
#ifndef TFOS_ARROW_METADATA_H
#define TFOS_ARROW_METADATA_H

#include <stddef.h>
#include <tfos/stream.h>

/// Bytes of metadata, of which NULL has none; SIZE_MAX when it does not end within `limit`.
size_t tfos__arrow_metadata_size(const char *metadata, size_t limit);

/// A copy of metadata, which may be NULL, with one more pair; to be freed. NULL: no memory.
char *tfos__arrow_metadata_add(const char *metadata, const char *key, struct tfos_view value);

#endif

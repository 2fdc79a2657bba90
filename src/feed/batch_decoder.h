// SPDX-License-Identifier: Apache-2.0
/// Batches read in place from the bodies of their records (docs/protocol.md, "Records").
#ifndef TFOS_FEED_BATCH_DECODER_H
#define TFOS_FEED_BATCH_DECODER_H

#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "feed/schema.h"

/// The owner of a decoded batch's memory, which it notifies: `use`, which may be NULL, when rows of
/// it have been used, and `release` once no view of it is left.
struct tfos__feed_batch_owner {
    void (*use)(void *holder, uint64_t sequence, uint64_t rows);
    void (*release)(void *holder, uint64_t sequence);
    void *holder;
    uint64_t sequence;
};

/// That of a batch in memory from tfos__alloc(), which is freed with it.
struct tfos__feed_batch_owner tfos__feed_batch_owner_of_memory(void *memory);

/// Makes a view of a body of `size` bytes with `rows` rows, and a copy of its schema: the caller
/// releases both. The body may be hostile and may change meanwhile: what memory safety depends on,
/// offsets above all, is copied out and checked. CORRUPT. On failure the owner's release() has been
/// called.
enum tfos_status tfos__feed_batch_decode(const struct tfos__feed_schema *schema,
                                         const uint8_t *body, uint64_t size, int64_t rows,
                                         const struct tfos__feed_batch_owner *owner,
                                         struct ArrowSchema *schema_out,
                                         struct ArrowArray *array_out, struct tfos_error *err);

#endif

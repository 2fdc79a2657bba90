// SPDX-License-Identifier: Apache-2.0
/// Copies into memory that another core will read next, and that it has read a moment ago.
#ifndef TFOS_FEED_COPIER_H
#define TFOS_FEED_COPIER_H

#include <stddef.h>

/// What one writer has learnt about the machine. Zeroed to begin with.
struct tfos__feed_copier {
    unsigned large_count; ///< large copies so far
    int votes;            ///< above 0: writer and reader seem to share a cache
};

/// memcpy() for a `target` at a multiple of 64. The bytes are visible to others before anything
/// stored after the call.
void tfos__feed_copy(struct tfos__feed_copier *copier, void *target, const void *source,
                     size_t size);

#endif

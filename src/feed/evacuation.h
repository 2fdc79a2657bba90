// SPDX-License-Identifier: Apache-2.0
/// Where a reader's batches lie in memory, and how batches that are held are moved out of the
/// writer's way without moving their addresses.
#ifndef TFOS_FEED_DETACHMENT_H
#define TFOS_FEED_DETACHMENT_H

#include <stdatomic.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/batch.h"
#include "feed/channel.h"

/// A mapping of a channel through which batches are lent. It lives as long as the channel reads
/// through it, or any batch that was lent from it is held.
struct tfos__feed_mapping {
    atomic_int references;
    struct tfos__feed_channel *channel; ///< borrowed; each batch that is lent counts it
    uint8_t *base;                      ///< owned; laid out as the channel's file
    uint64_t size;
};

/// Makes a mapping of the mapping at `base`, as large as the channel, which is taken over, also on
/// failure.
enum tfos_status tfos__feed_mapping_create(struct tfos__feed_channel *channel, void *base,
                                           struct tfos__feed_mapping **out, struct tfos_error *err);

/// The owner of a batch that lies at this mapping and that the channel's consumer holds as
/// `sequence`.
struct tfos__feed_batch_owner tfos__feed_mapping_borrow(struct tfos__feed_mapping *mapping,
                                                        uint64_t sequence);

void tfos__feed_mapping_release(struct tfos__feed_mapping *mapping); ///< NULL is accepted

/// Gives the space of all batches held from `channel` back to its writer. To be called by the
/// thread that reads the channel, or while it cannot. On failure all is as it was.
enum tfos_status tfos__feed_channel_detach_batches(struct tfos__feed_channel *channel,
                                                   struct tfos_error *err);

#endif

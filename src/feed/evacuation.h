// SPDX-License-Identifier: Apache-2.0
/// Where a reader's batches lie in memory, and how batches that are held are moved out of the
/// writer's way without moving their addresses.
#ifndef TFOS_FEED_EVACUATION_H
#define TFOS_FEED_EVACUATION_H

#include <stdatomic.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/batch.h"
#include "feed/lane.h"

/// A mapping of a lane through which batches are lent. It lives as long as the lane reads through
/// it, or any batch that was lent from it is held.
struct tfos__site {
    atomic_int references;
    struct tfos__lane *lane; ///< borrowed; each batch that is lent counts it
    uint8_t *base;           ///< owned; laid out as the lane's file
    uint64_t size;
};

/// Makes a site of the mapping at `base`, as large as the lane, which is taken over, also on
/// failure.
enum tfos_status tfos__site_create(struct tfos__lane *lane, void *base, struct tfos__site **out,
                                   struct tfos_error *err);

/// The owner of a batch that lies at this site and that the lane's outlet holds as `sequence`.
struct tfos__batch_owner tfos__site_lend(struct tfos__site *site, uint64_t sequence);

void tfos__site_release(struct tfos__site *site); ///< NULL is accepted

/// Gives the space of all batches held from `lane` back to its writer. To be called by the thread
/// that reads the lane, or while it cannot. On failure all is as it was.
enum tfos_status tfos__lane_evacuate(struct tfos__lane *lane, struct tfos_error *err);

#endif

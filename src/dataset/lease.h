// SPDX-License-Identifier: Apache-2.0
/// Leases: memory that tensors share, freed when the last of them is released.
#ifndef TFOS_DATASET_LEASE_H
#define TFOS_DATASET_LEASE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TFOS__LEASE_ALIGN 64 ///< of the data: what vector instructions want

struct tfos__lease {
    atomic_int references;
    void (*end)(struct tfos__lease *lease);
};

void tfos__lease_hold(struct tfos__lease *lease);

/// Any thread. NULL is accepted.
void tfos__lease_release(struct tfos__lease *lease);

/// Memory of `size` bytes, not zeroed, that keeps `parent` (NULL: nobody) as long as it lives.
/// NULL: there is none.
struct tfos__lease *tfos__block_open(size_t size, struct tfos__lease *parent, uint8_t **data);

#endif

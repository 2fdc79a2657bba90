// SPDX-License-Identifier: Apache-2.0
/// Memory for the buffers of Arrow arrays: aligned to 64 bytes, and it only grows.
#ifndef TFOS_BASE_ALIGNED_H
#define TFOS_BASE_ALIGNED_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

/// All zero is an empty one.
struct tfos__aligned {
    uint8_t *data;
    size_t capacity;
    void *block;          ///< owned; `data` lies in it
    size_t last_capacity; ///< of what was taken away, and will be needed again
};

/// Makes room behind the first `used` bytes for `size` more; the bytes may move.
enum tfos_status tfos__aligned_reserve(struct tfos__aligned *memory, size_t used, size_t size,
                                       struct tfos_error *err);

/// Hands the memory over; what is left is empty, and the next memory will be as large at once.
struct tfos__aligned tfos__aligned_take(struct tfos__aligned *memory);

void tfos__aligned_clear(struct tfos__aligned *memory);

#endif

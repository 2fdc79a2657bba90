// SPDX-License-Identifier: Apache-2.0
/// Memory for the command: where there is none left, it says so and ends with exit status 1. Files
/// that are being written have no name yet, so nothing stays behind.
#ifndef TFOS_CLI_BYTES_H
#define TFOS_CLI_BYTES_H

#include <stddef.h>

/// Returns `block`; NULL ends the program: there is no memory left.
void *check_memory(void *block);

/// Zeroed memory, for free().
void *allocate(size_t count, size_t size);

/// Bytes that grow at their end. All zero is an empty one.
struct bytes {
    char *data; ///< owned, for free()
    size_t size, capacity;
};

/// Room for `size` more bytes: where they go. The caller raises `size`.
void *bytes_reserve(struct bytes *bytes, size_t size);

void bytes_add(struct bytes *bytes, const void *data, size_t size);
void bytes_add_byte(struct bytes *bytes, char byte);

#endif

// SPDX-License-Identifier: Apache-2.0
/// A growing run of bytes that is filled at its end and used up at its beginning. All zero is an
/// empty one.
#ifndef TFOS_BASE_BUFFER_H
#define TFOS_BASE_BUFFER_H

#include <stddef.h>
#include <tfos/status.h>

struct tfos__buffer {
    unsigned char *data; ///< owned
    size_t capacity;
    size_t begin; ///< of the bytes not yet used
    size_t end;   ///< of the bytes not yet used; from here to capacity there is room
};

/// Bytes that are there to be used.
size_t tfos__buffer_size(const struct tfos__buffer *buffer);

/// Makes room for `size` more bytes at `data + end`; the caller writes there and raises `end`.
/// Moves the bytes already there.
enum tfos_status tfos__buffer_reserve(struct tfos__buffer *buffer, size_t size,
                                      struct tfos_error *err);

enum tfos_status tfos__buffer_append(struct tfos__buffer *buffer, const void *data, size_t size,
                                     struct tfos_error *err);

/// Drops `size` bytes at the beginning. A large buffer that becomes empty gives its memory back.
void tfos__buffer_consume(struct tfos__buffer *buffer, size_t size);

void tfos__buffer_clear(struct tfos__buffer *buffer);

#endif

// SPDX-License-Identifier: Apache-2.0
/// All heap memory of the library. Sizes are checked for overflow; a test can make the n-th request
/// fail.
#ifndef TFOS_BASE_MEMORY_H
#define TFOS_BASE_MEMORY_H

#include <stddef.h>
#include <tfos/status.h>

/// Zeroed memory for `count` items of `size` bytes, or NULL. A count of 0 gives a pointer to free.
void *tfos__alloc(size_t count, size_t size) __attribute__((warn_unused_result, malloc));

/// Grows or shrinks a block to `count` items of `size` bytes; new bytes are not zeroed. NULL leaves
/// the old block as it was.
void *tfos__realloc(void *block, size_t count, size_t size) __attribute__((warn_unused_result));

/// Room for one more item behind the `count` of an array that begins as NULL and gets its items
/// one at a time: its length doubles when the count is a power of two. NULL leaves it as it was.
void *tfos__array_grow(void *array, size_t count, size_t item_size)
    __attribute__((warn_unused_result));

/// A copy of a C string, or NULL.
char *tfos__strdup(const char *text) __attribute__((warn_unused_result, malloc));

/// A new string made by printf, or NULL.
char *tfos__format(const char *format, ...)
    __attribute__((warn_unused_result, format(printf, 1, 2)));

/// NULL is accepted.
void tfos__free(void *block);

/// The status and message of a failed request: `module: no memory for what`.
enum tfos_status tfos__no_memory(struct tfos_error *err, const char *module, const char *what);

/// For tests: the n-th request from now (1 is the next) fails, once; 0 turns it off. Per process.
void tfos__memory_fail_at(long n);

/// A growing run of bytes that is filled at its end and used up at its beginning. All zero is an
/// empty one.
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

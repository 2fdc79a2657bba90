// SPDX-License-Identifier: Apache-2.0
/// Values of Arrow columns as a feature's list.
#ifndef TFOS_RECORD_EXAMPLE_LISTS_H
#define TFOS_RECORD_EXAMPLE_LISTS_H

#include "base/memory.h"
#include "record/example_source.h"

/// Checks that a message with this column in it can have `size` bytes: protobuf's limit is 2 GiB.
/// INVALID names the column.
enum tfos_status tfos__example_size_check(const struct tfos__example_field *field, size_t size,
                                          struct tfos_error *err);

/// Appends the BytesList, FloatList or Int64List of some values. `loss` counts the numbers that are
/// rounded; where it is NULL they are refused. INVALID names the column.
enum tfos_status tfos__example_list_write(const struct tfos__example_source *source,
                                          struct tfos__arrow_span range, struct tfos__buffer *out,
                                          struct tfos_example_loss *loss, struct tfos_error *err);

#define TFOS__VARINT_SIZE 10 ///< bytes at most

/// Writes a varint and gives the place behind it.
static inline uint8_t *tfos__wire_write_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/// Bytes of a field of type BYTES, numbered up to 15, that holds `size` bytes.
static inline size_t tfos__wire_bytes_size(size_t size)
{
    return 1 + (size_t)(63 - __builtin_clzll((uint64_t)size | 1)) / 7 + 1 + size;
}

/// Writes the tag of a field of type BYTES and the size of what it holds; gives the place behind.
uint8_t *tfos__wire_write_head(uint8_t *at, uint32_t field, size_t size);

/// Writes the head of a field of type BYTES, numbered up to 15, before what `out` holds of it,
/// which begins `*room` bytes behind `begin`; if it needs other room, moves that and says so.
enum tfos_status tfos__wire_insert_head(struct tfos__buffer *out, uint32_t field, size_t begin,
                                        size_t *room, struct tfos_error *err);

/// Appends a field of type BYTES, numbered up to 15: its tag, the size of `data`, `data`.
enum tfos_status tfos__wire_append_bytes(struct tfos__buffer *out, uint32_t field, const void *data,
                                         size_t size, struct tfos_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding): reading
/// messages in place, and writing them. A function that returns a bool returns false where the
/// bytes are not in the format.
#ifndef TFOS_RECORD_WIRE_H
#define TFOS_RECORD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/stream.h>

#include "base/memory.h"

enum tfos__record_wire_type {
    TFOS__WIRE_VARINT = 0,
    TFOS__WIRE_FIXED64 = 1,
    TFOS__WIRE_BYTES = 2,
    TFOS__WIRE_GROUP = 3,
    TFOS__WIRE_GROUP_END = 4,
    TFOS__WIRE_FIXED32 = 5
};

#define TFOS__VARINT_SIZE 10 ///< most bytes of a varint

/// The bytes not yet read.
struct tfos__record_wire {
    const uint8_t *at, *end;
};

static inline struct tfos__record_wire tfos__record_wire_of(struct tfos_view view)
{
    const uint8_t *data = view.data;
    return (struct tfos__record_wire){data, data + view.size};
}

/// tfos__record_wire_read_varint() for more than one byte.
bool tfos__record_wire_read_long_varint(struct tfos__record_wire *wire, uint64_t *value);

static inline bool tfos__record_wire_read_varint(struct tfos__record_wire *wire, uint64_t *value)
{
    if (wire->at < wire->end && *wire->at < 0x80) {
        *value = *wire->at++;
        return true;
    }
    return tfos__record_wire_read_long_varint(wire, value);
}

/// The number and type of the next field.
bool tfos__record_wire_read_tag(struct tfos__record_wire *wire, uint32_t *field,
                                enum tfos__record_wire_type *type);

/// The value of a field of type BYTES.
static inline bool tfos__record_wire_read_bytes(struct tfos__record_wire *wire,
                                                struct tfos_view *bytes)
{
    uint64_t size;
    if (!tfos__record_wire_read_varint(wire, &size) || size > (uint64_t)(wire->end - wire->at))
        return false;
    *bytes = (struct tfos_view){wire->at, (size_t)size};
    wire->at += size;
    return true;
}

/// tfos__record_wire_next() for a field whose tag is not that of one it looks for.
enum tfos_status tfos__record_wire_find_next(struct tfos__record_wire *wire, uint32_t limit,
                                             uint32_t *field, struct tfos_view *bytes);

/// Returns the next field of type BYTES with a number from 1 to `limit`, 15 at most. Skips other
/// fields. END at the end, CORRUPT where the bytes are not in the format.
static inline enum tfos_status tfos__record_wire_next(struct tfos__record_wire *wire,
                                                      uint32_t limit, uint32_t *field,
                                                      struct tfos_view *bytes)
{
    if (wire->at == wire->end)
        return TFOS_END;
    uint32_t tag = *wire->at, number = tag >> 3;
    if ((tag & 7) != TFOS__WIRE_BYTES || number == 0 || number > limit)
        return tfos__record_wire_find_next(wire, limit, field, bytes);
    wire->at++;
    *field = number;
    return tfos__record_wire_read_bytes(wire, bytes) ? TFOS_OK : TFOS_CORRUPT;
}

/// tfos__record_wire_next_numbers() for a field whose tag is not that of packed numbers.
enum tfos_status tfos__record_wire_find_numbers(struct tfos__record_wire *wire,
                                                enum tfos__record_wire_type single,
                                                struct tfos_view *numbers);

/// Returns the next numbers of field 1: packed ones, or a single one, whose type is `single`. Skips
/// other fields. END and CORRUPT as above.
static inline enum tfos_status tfos__record_wire_next_numbers(struct tfos__record_wire *wire,
                                                              enum tfos__record_wire_type single,
                                                              struct tfos_view *numbers)
{
    if (wire->at == wire->end)
        return TFOS_END;
    if (*wire->at != (1 << 3 | TFOS__WIRE_BYTES))
        return tfos__record_wire_find_numbers(wire, single, numbers);
    wire->at++;
    return tfos__record_wire_read_bytes(wire, numbers) ? TFOS_OK : TFOS_CORRUPT;
}

/// The number of varints that end in these bytes.
size_t tfos__record_wire_count_varints(struct tfos_view packed);

/// Decodes up to `limit` varints; `*count` is their number.
bool tfos__record_wire_read_varints(struct tfos__record_wire *wire, uint64_t *values, size_t limit,
                                    size_t *count);

/// The same without special instructions: what read_varints() does on a CPU that has none.
bool tfos__record_wire_read_varints_plain(struct tfos__record_wire *wire, uint64_t *values,
                                          size_t limit, size_t *count);

/// Writes a varint and returns the place behind it.
static inline uint8_t *tfos__record_wire_write_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

// The following write fields of type BYTES, whose numbers are 15 at most.

/// Bytes of a field that holds `size` bytes.
static inline size_t tfos__record_wire_bytes_size(size_t size)
{
    return 1 + (size_t)(63 - __builtin_clzll((uint64_t)size | 1)) / 7 + 1 + size;
}

/// Appends the tag and the size of a field, and reserves room for the `size` bytes that follow.
enum tfos_status tfos__record_wire_append_head(struct tfos__buffer *out, uint32_t field,
                                               size_t size, struct tfos_error *err);

/// Appends a field that holds `data`.
enum tfos_status tfos__record_wire_append_bytes(struct tfos__buffer *out, uint32_t field,
                                                const void *data, size_t size,
                                                struct tfos_error *err);

/// Writes the tag and the size of a field before its content, which ends `out` and begins `*room`
/// bytes behind `begin`. Where they need another number of bytes, the content is moved and `*room`
/// becomes that number.
enum tfos_status tfos__record_wire_insert_head(struct tfos__buffer *out, uint32_t field,
                                               size_t begin, size_t *room, struct tfos_error *err);

#endif

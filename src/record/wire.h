// SPDX-License-Identifier: Apache-2.0
/// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding): reading
/// it in place. What gives a bool gives false where the bytes are not in it.
#ifndef TFOS_RECORD_WIRE_H
#define TFOS_RECORD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/stream.h>

enum tfos__wire_type {
    TFOS__WIRE_VARINT = 0,
    TFOS__WIRE_FIXED64 = 1,
    TFOS__WIRE_BYTES = 2,
    TFOS__WIRE_GROUP = 3,
    TFOS__WIRE_GROUP_END = 4,
    TFOS__WIRE_FIXED32 = 5
};

/// The bytes not yet read.
struct tfos__wire {
    const uint8_t *at, *end;
};

/// The bits that say whether a byte of eight is the last of its varint.
#define TFOS__WIRE_CONTINUES UINT64_C(0x8080808080808080)

/// A varint of more than one byte, or none.
bool tfos__wire_read_long_varint(struct tfos__wire *wire, uint64_t *value);

/// Passes over the value of a field.
bool tfos__wire_skip(struct tfos__wire *wire, uint32_t field, enum tfos__wire_type type);

static inline struct tfos__wire tfos__wire_of(struct tfos_view view)
{
    const uint8_t *data = view.data;
    return (struct tfos__wire){data, data + view.size};
}

static inline bool tfos__wire_read_varint(struct tfos__wire *wire, uint64_t *value)
{
    if (wire->at < wire->end && *wire->at < 0x80) {
        *value = *wire->at++;
        return true;
    }
    return tfos__wire_read_long_varint(wire, value);
}

/// The number and type of the next field.
static inline bool tfos__wire_read_tag(struct tfos__wire *wire, uint32_t *field,
                                       enum tfos__wire_type *type)
{
    uint64_t tag;
    if (!tfos__wire_read_varint(wire, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    *field = (uint32_t)(tag >> 3);
    *type = (enum tfos__wire_type)(tag & 7);
    return true;
}

/// The value of a field of type BYTES.
static inline bool tfos__wire_read_bytes(struct tfos__wire *wire, struct tfos_view *bytes)
{
    uint64_t size;
    if (!tfos__wire_read_varint(wire, &size) || size > (uint64_t)(wire->end - wire->at))
        return false;
    *bytes = (struct tfos_view){wire->at, (size_t)size};
    wire->at += size;
    return true;
}

/// tfos__wire_next() for a field that it does not know at first sight.
enum tfos_status tfos__wire_find_next(struct tfos__wire *wire, uint32_t limit, uint32_t *field,
                                      struct tfos_view *bytes);

/// Brings the next field of type BYTES that is numbered from 1 to `limit`, which is at most 15,
/// passing over others. END at the end, CORRUPT where the bytes are not in the format.
static inline enum tfos_status tfos__wire_next(struct tfos__wire *wire, uint32_t limit,
                                               uint32_t *field, struct tfos_view *bytes)
{
    if (wire->at == wire->end)
        return TFOS_END;
    uint32_t tag = *wire->at, number = tag >> 3;
    if ((tag & 7) != TFOS__WIRE_BYTES || number == 0 || number > limit)
        return tfos__wire_find_next(wire, limit, field, bytes);
    wire->at++;
    *field = number;
    return tfos__wire_read_bytes(wire, bytes) ? TFOS_OK : TFOS_CORRUPT;
}

/// tfos__wire_next_numbers() for what it does not know at first sight.
enum tfos_status tfos__wire_find_numbers(struct tfos__wire *wire, enum tfos__wire_type single,
                                         struct tfos_view *numbers);

/// Brings the next numbers of field 1: packed ones, or a single one, whose type is `single`. Passes
/// over other fields. END and CORRUPT as above.
static inline enum tfos_status tfos__wire_next_numbers(struct tfos__wire *wire,
                                                       enum tfos__wire_type single,
                                                       struct tfos_view *numbers)
{
    if (wire->at == wire->end)
        return TFOS_END;
    if (*wire->at != (1 << 3 | TFOS__WIRE_BYTES))
        return tfos__wire_find_numbers(wire, single, numbers);
    wire->at++;
    return tfos__wire_read_bytes(wire, numbers) ? TFOS_OK : TFOS_CORRUPT;
}

#endif

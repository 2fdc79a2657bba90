// SPDX-License-Identifier: Apache-2.0
// As protobuf reads it: a varint has ten bytes at most and its bits beyond 64 are dropped; groups
// are passed over whole.
#include "record/wire.h"

#define VARINT_LIMIT 10 // bytes
#define DEPTH_LIMIT 100 // of groups

bool tfos__wire_read_long_varint(struct tfos__wire *wire, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < VARINT_LIMIT && wire->at + i < wire->end; i++) {
        uint8_t byte = wire->at[i];
        result |= (uint64_t)(byte & 0x7F) << 7 * i;
        if (byte < 0x80) {
            wire->at += i + 1;
            *value = result;
            return true;
        }
    }
    return false;
}

static bool skip_fixed(struct tfos__wire *wire, size_t size)
{
    if ((size_t)(wire->end - wire->at) < size)
        return false;
    wire->at += size;
    return true;
}

static bool skip_plain(struct tfos__wire *wire, enum tfos__wire_type type)
{
    uint64_t value;
    struct tfos_view bytes;
    switch (type) {
    case TFOS__WIRE_VARINT:
        return tfos__wire_read_varint(wire, &value);
    case TFOS__WIRE_FIXED64:
        return skip_fixed(wire, 8);
    case TFOS__WIRE_BYTES:
        return tfos__wire_read_bytes(wire, &bytes);
    case TFOS__WIRE_FIXED32:
        return skip_fixed(wire, 4);
    default:
        return false;
    }
}

bool tfos__wire_skip(struct tfos__wire *wire, uint32_t field, enum tfos__wire_type type)
{
    uint32_t open[DEPTH_LIMIT];
    int depth = 0;
    if (type != TFOS__WIRE_GROUP)
        return skip_plain(wire, type);
    open[depth++] = field;
    while (depth > 0) {
        if (!tfos__wire_read_tag(wire, &field, &type))
            return false;
        if (type == TFOS__WIRE_GROUP) {
            if (depth == DEPTH_LIMIT)
                return false;
            open[depth++] = field;
        } else if (type == TFOS__WIRE_GROUP_END) {
            if (open[--depth] != field)
                return false;
        } else if (!skip_plain(wire, type)) {
            return false;
        }
    }
    return true;
}

enum tfos_status tfos__wire_find_next(struct tfos__wire *wire, uint32_t limit, uint32_t *field,
                                      struct tfos_view *bytes)
{
    while (wire->at < wire->end) {
        enum tfos__wire_type type;
        if (!tfos__wire_read_tag(wire, field, &type))
            return TFOS_CORRUPT;
        if (type == TFOS__WIRE_BYTES && *field <= limit)
            return tfos__wire_read_bytes(wire, bytes) ? TFOS_OK : TFOS_CORRUPT;
        if (!tfos__wire_skip(wire, *field, type))
            return TFOS_CORRUPT;
    }
    return TFOS_END;
}

enum tfos_status tfos__wire_find_numbers(struct tfos__wire *wire, enum tfos__wire_type single,
                                         struct tfos_view *numbers)
{
    while (wire->at < wire->end) {
        uint32_t field;
        enum tfos__wire_type type;
        if (!tfos__wire_read_tag(wire, &field, &type))
            return TFOS_CORRUPT;
        if (field == 1 && type == TFOS__WIRE_BYTES)
            return tfos__wire_read_bytes(wire, numbers) ? TFOS_OK : TFOS_CORRUPT;
        const uint8_t *begin = wire->at;
        if (!tfos__wire_skip(wire, field, type))
            return TFOS_CORRUPT;
        if (field == 1 && type == single) {
            *numbers = (struct tfos_view){begin, (size_t)(wire->at - begin)};
            return TFOS_OK;
        }
    }
    return TFOS_END;
}

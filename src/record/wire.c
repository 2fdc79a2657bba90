// SPDX-License-Identifier: Apache-2.0
// Reads what protobuf reads: a varint has ten bytes at most, and its bits beyond 64 are dropped;
// unknown groups are skipped as a whole.
#include "record/wire.h"

#include <string.h>

#if defined(__x86_64__)
#include <pthread.h>
#include <tmmintrin.h>
#endif

#include "base/fail.h"

#define DEPTH_LIMIT 100 // of groups
#define CONTINUATION_BITS                                                                          \
    UINT64_C(0x8080808080808080) // set in each byte that does not end a varint

bool tfos__record_wire_read_long_varint(struct tfos__record_wire *wire, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < TFOS__VARINT_SIZE && wire->at + i < wire->end; i++) {
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

bool tfos__record_wire_read_tag(struct tfos__record_wire *wire, uint32_t *field,
                                enum tfos__record_wire_type *type)
{
    uint64_t tag;
    if (!tfos__record_wire_read_varint(wire, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    *field = (uint32_t)(tag >> 3);
    *type = (enum tfos__record_wire_type)(tag & 7);
    return true;
}

static bool skip_fixed(struct tfos__record_wire *wire, size_t size)
{
    if ((size_t)(wire->end - wire->at) < size)
        return false;
    wire->at += size;
    return true;
}

static bool skip_plain(struct tfos__record_wire *wire, enum tfos__record_wire_type type)
{
    uint64_t value;
    struct tfos_view bytes;
    switch (type) {
    case TFOS__WIRE_VARINT:
        return tfos__record_wire_read_varint(wire, &value);
    case TFOS__WIRE_FIXED64:
        return skip_fixed(wire, 8);
    case TFOS__WIRE_BYTES:
        return tfos__record_wire_read_bytes(wire, &bytes);
    case TFOS__WIRE_FIXED32:
        return skip_fixed(wire, 4);
    default:
        return false;
    }
}

// Skips the value of a field.
static bool skip(struct tfos__record_wire *wire, uint32_t field, enum tfos__record_wire_type type)
{
    uint32_t open[DEPTH_LIMIT];
    int depth = 0;
    if (type != TFOS__WIRE_GROUP)
        return skip_plain(wire, type);
    open[depth++] = field;
    while (depth > 0) {
        if (!tfos__record_wire_read_tag(wire, &field, &type))
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

enum tfos_status tfos__record_wire_find_next(struct tfos__record_wire *wire, uint32_t limit,
                                             uint32_t *field, struct tfos_view *bytes)
{
    while (wire->at < wire->end) {
        enum tfos__record_wire_type type;
        if (!tfos__record_wire_read_tag(wire, field, &type))
            return TFOS_CORRUPT;
        if (type == TFOS__WIRE_BYTES && *field <= limit)
            return tfos__record_wire_read_bytes(wire, bytes) ? TFOS_OK : TFOS_CORRUPT;
        if (!skip(wire, *field, type))
            return TFOS_CORRUPT;
    }
    return TFOS_END;
}

enum tfos_status tfos__record_wire_find_numbers(struct tfos__record_wire *wire,
                                                enum tfos__record_wire_type single,
                                                struct tfos_view *numbers)
{
    while (wire->at < wire->end) {
        uint32_t field;
        enum tfos__record_wire_type type;
        if (!tfos__record_wire_read_tag(wire, &field, &type))
            return TFOS_CORRUPT;
        if (field == 1 && type == TFOS__WIRE_BYTES)
            return tfos__record_wire_read_bytes(wire, numbers) ? TFOS_OK : TFOS_CORRUPT;
        const uint8_t *begin = wire->at;
        if (!skip(wire, field, type))
            return TFOS_CORRUPT;
        if (field == 1 && type == single) {
            *numbers = (struct tfos_view){begin, (size_t)(wire->at - begin)};
            return TFOS_OK;
        }
    }
    return TFOS_END;
}

// ---- packed varints
//
// Eight bytes are examined together. Their highest bits say where varints end. There are 256
// combinations; for each, a table says how many varints of up to two bytes the word begins with and
// where they are. On x86-64 one SSSE3 instruction moves them to their places. Without it, only
// eight varints of one byte each are recognised together.

size_t tfos__record_wire_count_varints(struct tfos_view packed)
{
    const uint8_t *data = packed.data;
    size_t count = 0, i = 0;
    for (; i + sizeof(uint64_t) <= packed.size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, data + i, sizeof(word));
        count += (size_t)__builtin_popcountll(~word & CONTINUATION_BITS);
    }
    for (; i < packed.size; i++)
        count += data[i] < 0x80;
    return count;
}

// The low seven bits of the bytes of `word` as one number.
static uint64_t join_sevens(uint64_t word)
{
    word = (word & 0x007F007F007F007F) | (word & 0x7F007F007F007F00) >> 1;
    word = (word & 0x00003FFF00003FFF) | (word & 0x3FFF00003FFF0000) >> 2;
    return (word & 0x000000000FFFFFFF) | (word & 0x0FFFFFFF00000000) >> 4;
}

// Decodes one varint, of at most the eight bytes of `word`, without a branch on its length.
static bool decode_one(struct tfos__record_wire *wire, uint64_t word, uint64_t *value)
{
    uint64_t stops = ~word & CONTINUATION_BITS;
    if (stops == 0)
        return tfos__record_wire_read_varint(wire, value);
    *value = join_sevens(word & (stops ^ (stops - 1)) & ~CONTINUATION_BITS);
    wire->at += __builtin_ctzll(stops) / 8 + 1;
    return true;
}

static bool decode_rest(struct tfos__record_wire *wire, uint64_t *values, size_t limit,
                        size_t *count)
{
    for (; *count < limit && wire->at < wire->end; ++*count)
        if (!tfos__record_wire_read_varint(wire, &values[*count]))
            return false;
    return true;
}

bool tfos__record_wire_read_varints_plain(struct tfos__record_wire *wire, uint64_t *values,
                                          size_t limit, size_t *count)
{
    size_t done = 0;
    while (done + 8 <= limit && wire->end - wire->at >= 8) {
        uint64_t word;
        memcpy(&word, wire->at, sizeof(word));
        if ((word & CONTINUATION_BITS) == 0) {
            for (int i = 0; i < 8; i++)
                values[done + (size_t)i] = wire->at[i];
            done += 8;
            wire->at += 8;
        } else if (!decode_one(wire, word, &values[done++])) {
            return false;
        }
    }
    *count = done;
    return decode_rest(wire, values, limit, count);
}

#if defined(__x86_64__)

/// The varints of up to two bytes that a word begins with.
struct layout {
    uint8_t places[16]; ///< for each varint the places of its two bytes; NO_BYTE: it has only one
    uint8_t count;      ///< of varints
    uint8_t size;       ///< bytes of them all
};

#define NO_BYTE 0x80 // the instruction writes zero for it

// The highest bits of the bytes of a word as one number; that of the first byte is the lowest.
static unsigned gather(uint64_t stops)
{
    return (unsigned)((stops >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

static struct layout layouts[256]; ///< by the set of bytes that end a varint
static pthread_once_t layouts_made = PTHREAD_ONCE_INIT;

static void make_layouts(void)
{
    for (unsigned ends = 0; ends < 256; ends++) {
        struct layout *layout = &layouts[ends];
        unsigned size;
        memset(layout->places, NO_BYTE, sizeof(layout->places));
        for (unsigned left = ends; left & 3; left >>= size) {
            uint8_t *place = &layout->places[2 * layout->count++];
            size = left & 1 ? 1 : 2;
            for (unsigned i = 0; i < size; i++)
                place[i] = layout->size++;
        }
    }
}

__attribute__((target("ssse3"))) static void put_words(uint64_t *values, __m128i words)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i low = _mm_unpacklo_epi16(words, zero), high = _mm_unpackhi_epi16(words, zero);
    __m128i *to = (__m128i *)(void *)values;
    _mm_storeu_si128(to, _mm_unpacklo_epi32(low, zero));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(low, zero));
    _mm_storeu_si128(to + 2, _mm_unpacklo_epi32(high, zero));
    _mm_storeu_si128(to + 3, _mm_unpackhi_epi32(high, zero));
}

// Each step writes eight values and counts those that are varints.
__attribute__((target("ssse3"))) static bool
decode_by_table(struct tfos__record_wire *wire, uint64_t *values, size_t limit, size_t *count)
{
    struct tfos__record_wire rest = *wire; // not in memory that `values` may overlap
    size_t done = 0;
    pthread_once(&layouts_made, make_layouts);
    while (done + 8 <= limit && rest.end - rest.at >= 8) {
        uint64_t word;
        memcpy(&word, rest.at, sizeof(word));
        const struct layout *layout = &layouts[gather(~word & CONTINUATION_BITS)];
        if (layout->count == 0) {
            if (!decode_one(&rest, word, &values[done++]))
                return false;
            continue;
        }
        __m128i pairs = _mm_shuffle_epi8(_mm_cvtsi64_si128((long long)word),
                                         _mm_loadu_si128((const __m128i *)(const void *)layout));
        __m128i low = _mm_and_si128(pairs, _mm_set1_epi16(0x007F));
        __m128i high = _mm_srli_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0x7F00)), 1);
        put_words(values + done, _mm_or_si128(low, high));
        done += layout->count;
        rest.at += layout->size;
    }
    *wire = rest;
    *count = done;
    return decode_rest(wire, values, limit, count);
}

bool tfos__record_wire_read_varints(struct tfos__record_wire *wire, uint64_t *values, size_t limit,
                                    size_t *count)
{
    return __builtin_cpu_supports("ssse3")
               ? decode_by_table(wire, values, limit, count)
               : tfos__record_wire_read_varints_plain(wire, values, limit, count);
}

#else

bool tfos__record_wire_read_varints(struct tfos__record_wire *wire, uint64_t *values, size_t limit,
                                    size_t *count)
{
    return tfos__record_wire_read_varints_plain(wire, values, limit, count);
}

#endif

// ---- writing

static uint8_t *write_head(uint8_t *at, uint32_t field, size_t size)
{
    *at++ = (uint8_t)(field << 3 | TFOS__WIRE_BYTES);
    return tfos__record_wire_write_varint(at, size);
}

enum tfos_status tfos__record_wire_append_head(struct tfos__buffer *out, uint32_t field,
                                               size_t size, struct tfos_error *err)
{
    TFOS__TRY(tfos__buffer_reserve(out, tfos__record_wire_bytes_size(size), err));
    out->end = (size_t)(write_head(out->data + out->end, field, size) - out->data);
    return TFOS_OK;
}

enum tfos_status tfos__record_wire_append_bytes(struct tfos__buffer *out, uint32_t field,
                                                const void *data, size_t size,
                                                struct tfos_error *err)
{
    TFOS__TRY(tfos__record_wire_append_head(out, field, size, err));
    if (size > 0)
        memcpy(out->data + out->end, data, size);
    out->end += size;
    return TFOS_OK;
}

enum tfos_status tfos__record_wire_insert_head(struct tfos__buffer *out, uint32_t field,
                                               size_t begin, size_t *room, struct tfos_error *err)
{
    size_t size = out->end - begin - *room, head_size = tfos__record_wire_bytes_size(size) - size;
    if (head_size != *room) {
        TFOS__TRY(tfos__buffer_reserve(out, head_size, err));
        memmove(out->data + begin + head_size, out->data + begin + *room, size);
        *room = head_size;
    }
    write_head(out->data + begin, field, size);
    out->end = begin + head_size + size;
    return TFOS_OK;
}

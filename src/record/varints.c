// SPDX-License-Identifier: Apache-2.0
// Eight bytes are looked at together. Their highest bits say where varints end; there are 256 ways,
// and for each a table says how many varints of up to two bytes they begin with and where those
// are. x86-64 puts them in their places by one instruction of SSSE3; without it, eight values of a
// byte each are told apart from others only.
#include "record/varints.h"

#include <string.h>

#if defined(__x86_64__)
#include <pthread.h>
#include <tmmintrin.h>
#endif

size_t tfos__varints_count(struct tfos_view packed)
{
    const uint8_t *data = packed.data;
    size_t count = 0, i = 0;
    for (; i + sizeof(uint64_t) <= packed.size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, data + i, sizeof word);
        count += (size_t)__builtin_popcountll(~word & TFOS__WIRE_CONTINUES);
    }
    for (; i < packed.size; i++)
        count += data[i] < 0x80;
    return count;
}

// The seven low bits of each byte of `word`, put together.
static uint64_t join_sevens(uint64_t word)
{
    word = (word & 0x007F007F007F007F) | (word & 0x7F007F007F007F00) >> 1;
    word = (word & 0x00003FFF00003FFF) | (word & 0x3FFF00003FFF0000) >> 2;
    return (word & 0x000000000FFFFFFF) | (word & 0x0FFFFFFF00000000) >> 4;
}

// One varint, of which eight bytes are there, found without a branch on its length.
static bool decode_one(struct tfos__wire *wire, uint64_t word, uint64_t *value)
{
    uint64_t stops = ~word & TFOS__WIRE_CONTINUES;
    if (stops == 0)
        return tfos__wire_read_varint(wire, value);
    *value = join_sevens(word & (stops ^ (stops - 1)) & ~TFOS__WIRE_CONTINUES);
    wire->at += __builtin_ctzll(stops) / 8 + 1;
    return true;
}

static bool decode_rest(struct tfos__wire *wire, uint64_t *values, size_t limit, size_t *count)
{
    for (; *count < limit && wire->at < wire->end; ++*count)
        if (!tfos__wire_read_varint(wire, &values[*count]))
            return false;
    return true;
}

bool tfos__varints_decode_plain(struct tfos__wire *wire, uint64_t *values, size_t limit,
                                size_t *count)
{
    size_t done = 0;
    while (done + 8 <= limit && wire->end - wire->at >= 8) {
        uint64_t word;
        memcpy(&word, wire->at, sizeof word);
        if ((word & TFOS__WIRE_CONTINUES) == 0) {
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

/// What a word begins with.
struct layout {
    uint8_t places[16]; ///< for each varint its two bytes; GONE: it has only one
    uint8_t count;      ///< of varints
    uint8_t size;       ///< of them all
};

#define GONE 0x80 // the instruction makes a zero of it

// The bits of TFOS__WIRE_CONTINUES of a word, together: that of its first byte is the lowest.
static unsigned gather(uint64_t stops)
{
    return (unsigned)((stops >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

static struct layout layouts[256]; ///< by which bytes end a varint
static pthread_once_t layouts_made = PTHREAD_ONCE_INIT;

static void make_layouts(void)
{
    for (unsigned ends = 0; ends < 256; ends++) {
        struct layout *layout = &layouts[ends];
        unsigned size;
        memset(layout->places, GONE, sizeof layout->places);
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

// Eight values are written each time, however many they are.
__attribute__((target("ssse3"))) static bool
decode_by_table(struct tfos__wire *wire, uint64_t *values, size_t limit, size_t *count)
{
    size_t done = 0;
    pthread_once(&layouts_made, make_layouts);
    while (done + 8 <= limit && wire->end - wire->at >= 8) {
        uint64_t word;
        memcpy(&word, wire->at, sizeof word);
        const struct layout *layout = &layouts[gather(~word & TFOS__WIRE_CONTINUES)];
        if (layout->count == 0) {
            if (!decode_one(wire, word, &values[done++]))
                return false;
            continue;
        }
        __m128i pairs = _mm_shuffle_epi8(_mm_cvtsi64_si128((long long)word),
                                         _mm_loadu_si128((const __m128i *)(const void *)layout));
        __m128i low = _mm_and_si128(pairs, _mm_set1_epi16(0x007F));
        __m128i high = _mm_srli_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0x7F00)), 1);
        put_words(values + done, _mm_or_si128(low, high));
        done += layout->count;
        wire->at += layout->size;
    }
    *count = done;
    return decode_rest(wire, values, limit, count);
}

bool tfos__varints_decode(struct tfos__wire *wire, uint64_t *values, size_t limit, size_t *count)
{
    return __builtin_cpu_supports("ssse3") ? decode_by_table(wire, values, limit, count)
                                           : tfos__varints_decode_plain(wire, values, limit, count);
}

#else

bool tfos__varints_decode(struct tfos__wire *wire, uint64_t *values, size_t limit, size_t *count)
{
    return tfos__varints_decode_plain(wire, values, limit, count);
}

#endif

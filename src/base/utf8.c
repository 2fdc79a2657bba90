// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080) ///< of 8 bytes: set where one is no ASCII

static bool is_ascii(const uint8_t *data, size_t size)
{
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + sizeof bits <= size; i += sizeof bits) {
        uint64_t word;
        memcpy(&word, data + i, sizeof word);
        bits |= word;
    }
    for (; i < size; i++)
        bits |= data[i];
    return (bits & HIGH_BITS) == 0;
}

// Bytes behind the first of a character, or -1 where it cannot be a first one.
static int continuation_count(uint8_t byte)
{
    if (byte < 0x80)
        return 0;
    if (byte >= 0xC2 && byte < 0xE0)
        return 1;
    if (byte >= 0xE0 && byte < 0xF0)
        return 2;
    return byte >= 0xF0 && byte < 0xF5 ? 3 : -1;
}

bool tfos__is_utf8(const void *text, size_t size)
{
    const uint8_t *at = text, *end = at + size;

    if (is_ascii(at, size))
        return true;
    while (at < end) {
        int count = continuation_count(*at);
        if (count < 0 || end - at <= count)
            return false;
        // Neither surrogates, nor longer than needed, nor beyond the last character.
        if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F) ||
            (*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F))
            return false;
        for (at++; count > 0; count--, at++)
            if ((*at & 0xC0) != 0x80)
                return false;
    }
    return true;
}

// SPDX-License-Identifier: Apache-2.0
/// UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. A NUL byte counts
/// as invalid too, because text in this library ends at it.
#include "node/text.h"

#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

/// U+FFFD
static const char replacement[] = {'\xef', '\xbf', '\xbd'};

/// The size of the valid character that begins at `data`, or 0.
static size_t character_size(const unsigned char *data, size_t size)
{
    unsigned char first = data[0];
    if (first < 0x80)
        return first != 0;
    size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || size < count)
        return 0;
    for (size_t i = 1; i < count; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_overlong = (first == 0xe0 && data[1] < 0xa0) || (first == 0xf0 && data[1] < 0x90);
    bool is_surrogate = first == 0xed && data[1] >= 0xa0;
    bool is_too_large = first == 0xf4 && data[1] >= 0x90;
    return is_overlong || is_surrogate || is_too_large ? 0 : count;
}

char *tfos__text_repair(const char *data, size_t size)
{
    char *clean = tfos__alloc(size * sizeof replacement + 1, 1);
    if (!clean)
        return NULL;
    size_t clean_size = 0;
    for (size_t i = 0; i < size;) {
        size_t count = character_size((const unsigned char *)data + i, size - i);
        const char *source = count > 0 ? data + i : replacement;
        size_t source_size = count > 0 ? count : sizeof replacement;
        memcpy(clean + clean_size, source, source_size);
        clean_size += source_size;
        i += count > 0 ? count : 1;
    }
    return clean;
}

json_t *tfos__text_to_json(const char *data, size_t size)
{
    char *clean = tfos__text_repair(data, size);
    json_t *text = clean ? json_string_nocheck(clean) : NULL;
    tfos__free(clean);
    return text;
}

const char *tfos__text_tail(const char *data, size_t size, size_t limit)
{
    if (size <= limit)
        return data;
    const char *start = data + (size - limit);
    while (start < data + size && ((unsigned char)*start & 0xc0) == 0x80)
        start++;
    return start;
}

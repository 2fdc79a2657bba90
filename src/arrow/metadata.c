// SPDX-License-Identifier: Apache-2.0
// Metadata: a count of pairs, then of each pair the key and the value, each as its size and its
// bytes. All numbers have 4 bytes, in the machine's byte order, wherever they fall.
#include "arrow/metadata.h"

#include <stdint.h>
#include <string.h>
#include <tfos/arrow.h>

#include "base/memory.h"

// The number at `*metadata`, which moves behind it.
static int32_t take_number(const char **metadata)
{
    int32_t number = 0;

    memcpy(&number, *metadata, sizeof number);
    *metadata += sizeof number;
    return number;
}

static const char *take_text(const char **metadata, size_t *size)
{
    *size = (size_t)take_number(metadata);
    const char *text = *metadata;
    *metadata += *size;
    return text;
}

size_t tfos__arrow_metadata_size(const char *metadata, size_t limit)
{
    const char *end = metadata;

    if (!metadata)
        return 0;
    if (limit < sizeof(int32_t))
        return SIZE_MAX;
    for (int64_t left = 2 * (int64_t)take_number(&end); left > 0; left--) {
        if (limit - (size_t)(end - metadata) < sizeof(int32_t))
            return SIZE_MAX;
        int32_t size = take_number(&end);
        if (size < 0 || limit - (size_t)(end - metadata) < (size_t)size)
            return SIZE_MAX;
        end += size;
    }
    return (size_t)(end - metadata);
}

const char *tfos_arrow_metadata_get(const char *metadata, const char *key, size_t *size)
{
    size_t wanted_size = strlen(key), key_size = 0;

    if (!metadata)
        return NULL;
    for (int32_t left = take_number(&metadata); left > 0; left--) {
        const char *found_key = take_text(&metadata, &key_size);
        const char *found = take_text(&metadata, size);
        if (key_size == wanted_size && memcmp(found_key, key, key_size) == 0)
            return found;
    }
    return NULL;
}

bool tfos_arrow_metadata_find(const char *metadata, const char *key, char *value, size_t size)
{
    size_t value_size = 0;
    const char *found = tfos_arrow_metadata_get(metadata, key, &value_size);

    if (!found || value_size >= size)
        return false;
    memcpy(value, found, value_size);
    value[value_size] = '\0';
    return true;
}

char *tfos__arrow_metadata_add(const char *metadata, const char *key, struct tfos_view value)
{
    const struct tfos_view texts[] = {{key, strlen(key)}, value};
    size_t old_size = metadata ? tfos__arrow_metadata_size(metadata, SIZE_MAX) : 0;
    int32_t number = metadata ? take_number(&metadata) + 1 : 1;
    size_t used = sizeof number;
    char *made =
        tfos__alloc((old_size ? old_size : used) + 2 * used + texts[0].size + value.size, 1);

    if (!made)
        return NULL;
    memcpy(made, &number, sizeof number);
    if (old_size > 0) {
        memcpy(made + used, metadata, old_size - used);
        used = old_size;
    }
    for (int i = 0; i < 2; i++) {
        number = (int32_t)texts[i].size;
        memcpy(made + used, &number, sizeof number);
        used += sizeof number;
        if (number > 0)
            memcpy(made + used, texts[i].data, texts[i].size);
        used += texts[i].size;
    }
    return made;
}

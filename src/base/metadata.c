// SPDX-License-Identifier: Apache-2.0
// Metadata: a count of pairs, then of each pair the key and the value, each as its size and its
// bytes. All numbers have 4 bytes, in the machine's byte order, wherever they fall.
#include <string.h>
#include <tfos/arrow.h>

#include "base/arrow_schema.h"

// Moves `*metadata` behind the next counted text.
static const char *take_text(const char **metadata, size_t *size)
{
    int32_t count = 0;

    memcpy(&count, *metadata, sizeof count);
    const char *text = *metadata + sizeof count;
    *size = (size_t)count;
    *metadata = text + *size;
    return text;
}

size_t tfos__metadata_size(const char *metadata)
{
    const char *end = metadata;
    int32_t pair_count = 0;
    size_t size = 0;

    if (!metadata)
        return 0;
    memcpy(&pair_count, end, sizeof pair_count);
    end += sizeof pair_count;
    for (int32_t i = 0; i < 2 * pair_count; i++)
        take_text(&end, &size);
    return (size_t)(end - metadata);
}

const char *tfos_arrow_metadata_get(const char *metadata, const char *key, size_t *size)
{
    size_t wanted_size = strlen(key), key_size = 0, value_size = 0;
    int32_t pair_count = 0;

    if (!metadata)
        return NULL;
    memcpy(&pair_count, metadata, sizeof pair_count);
    metadata += sizeof pair_count;
    for (int32_t i = 0; i < pair_count; i++) {
        const char *found_key = take_text(&metadata, &key_size);
        const char *found = take_text(&metadata, &value_size);
        if (key_size != wanted_size || memcmp(found_key, key, key_size) != 0)
            continue;
        *size = value_size;
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

// SPDX-License-Identifier: Apache-2.0
// Growth doubles, and bytes are moved to the front only when at least as much has been used up, so
// that each byte is copied a constant number of times however small the steps are.
#include "base/buffer.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_CAPACITY 1024u
#define KEPT_CAPACITY (256u << 10) // an empty buffer keeps no more than this

size_t tfos__buffer_size(const struct tfos__buffer *buffer)
{
    return buffer->end - buffer->begin;
}

enum tfos_status tfos__buffer_reserve(struct tfos__buffer *buffer, size_t size,
                                      struct tfos_error *err)
{
    if (buffer->capacity - buffer->end >= size)
        return TFOS_OK;
    size_t used = tfos__buffer_size(buffer);
    if (used <= buffer->begin && buffer->capacity - used >= size) {
        memmove(buffer->data, buffer->data + buffer->begin, used);
        buffer->begin = 0;
        buffer->end = used;
        return TFOS_OK;
    }
    if (size > SIZE_MAX / 4 - buffer->end)
        return tfos__no_memory(err, "buffer", "so many bytes");
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
    while (capacity - buffer->end < size)
        capacity *= 2;
    unsigned char *data = tfos__realloc(buffer->data, capacity, 1);
    if (!data)
        return tfos__no_memory(err, "buffer", "queued bytes");
    buffer->data = data;
    buffer->capacity = capacity;
    return TFOS_OK;
}

enum tfos_status tfos__buffer_append(struct tfos__buffer *buffer, const void *data, size_t size,
                                     struct tfos_error *err)
{
    enum tfos_status status = tfos__buffer_reserve(buffer, size, err);
    if (status == TFOS_OK && size > 0) {
        memcpy(buffer->data + buffer->end, data, size);
        buffer->end += size;
    }
    return status;
}

void tfos__buffer_consume(struct tfos__buffer *buffer, size_t size)
{
    assert(size <= tfos__buffer_size(buffer));
    buffer->begin += size;
    if (buffer->begin < buffer->end)
        return;
    if (buffer->capacity > KEPT_CAPACITY)
        tfos__buffer_clear(buffer);
    buffer->begin = 0;
    buffer->end = 0;
}

void tfos__buffer_clear(struct tfos__buffer *buffer)
{
    tfos__free(buffer->data);
    *buffer = (struct tfos__buffer){0};
}

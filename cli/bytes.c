// SPDX-License-Identifier: Apache-2.0
#include "bytes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *check_memory(void *block)
{
    if (block)
        return block;
    fputs("tfos: there is no memory left\n", stderr);
    exit(1);
}

void *allocate(size_t count, size_t size)
{
    return check_memory(calloc(count > 0 ? count : 1, size));
}

void *bytes_reserve(struct bytes *bytes, size_t size)
{
    if (size > SIZE_MAX / 4 - bytes->size)
        check_memory(NULL);
    if (bytes->size + size > bytes->capacity) {
        size_t capacity = 2 * (bytes->size + size) + 64;
        bytes->data = check_memory(realloc(bytes->data, capacity));
        bytes->capacity = capacity;
    }
    return bytes->data + bytes->size;
}

void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    void *room = bytes_reserve(bytes, size);
    if (size > 0)
        memcpy(room, data, size);
    bytes->size += size;
}

void bytes_add_byte(struct bytes *bytes, char byte)
{
    if (bytes->size == bytes->capacity)
        bytes_reserve(bytes, 1);
    bytes->data[bytes->size++] = byte;
}

// SPDX-License-Identifier: Apache-2.0
// Growth doubles.
#include "base/aligned.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define ALIGNMENT 64
#define FIRST_CAPACITY 256

enum tfos_status tfos__aligned_reserve(struct tfos__aligned *memory, size_t used, size_t size,
                                       struct tfos_error *err)
{
    if (memory->block && memory->capacity >= used && memory->capacity - used >= size)
        return TFOS_OK;
    size_t capacity = memory->capacity > 0        ? 2 * memory->capacity
                      : memory->last_capacity > 0 ? memory->last_capacity
                                                  : FIRST_CAPACITY;
    void *block = NULL;
    if (size < SIZE_MAX / 4 - used) {
        while (capacity < used + size)
            capacity *= 2;
        block = tfos__realloc(NULL, capacity + ALIGNMENT, 1);
    }
    if (!block)
        return tfos__fail(err, TFOS_NO_MEMORY, "column: no memory for %zu bytes", used + size);
    uint8_t *data = block;
    data += -(uintptr_t)block % ALIGNMENT;
    if (used > 0)
        memcpy(data, memory->data, used);
    tfos__free(memory->block);
    *memory = (struct tfos__aligned){.data = data, .capacity = capacity, .block = block};
    return TFOS_OK;
}

struct tfos__aligned tfos__aligned_take(struct tfos__aligned *memory)
{
    struct tfos__aligned taken = *memory;
    *memory = (struct tfos__aligned){.last_capacity = taken.capacity};
    return taken;
}

void tfos__aligned_clear(struct tfos__aligned *memory)
{
    tfos__free(memory->block);
    *memory = (struct tfos__aligned){0};
}

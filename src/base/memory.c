// SPDX-License-Identifier: Apache-2.0
// The only callers of malloc. Each request first asks is_denied(), which is how tests reach every
// path that runs out of memory. A buffer doubles, and moves its bytes to the front only when at
// least as many have been used up, so that each is copied a constant number of times however small
// the steps are.
#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/memory.h>

#include "base/fail.h"

#define FIRST_CAPACITY 1024u
#define KEPT_CAPACITY (256u << 10) // an empty buffer keeps no more than this

static atomic_long requests_until_denied; // 0: never

static bool is_denied(void)
{
    long left = atomic_load_explicit(&requests_until_denied, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak(&requests_until_denied, &left, left - 1))
            return left == 1;
    }
    return false;
}

static bool is_overflow(size_t count, size_t size)
{
    return size > 0 && count > SIZE_MAX / size;
}

void tfos__memory_fail_at(long n)
{
    atomic_store(&requests_until_denied, n);
}

void *tfos__alloc(size_t count, size_t size)
{
    if (is_denied() || is_overflow(count, size))
        return NULL;
    size_t total = count * size;
    return calloc(total > 0 ? total : 1, 1);
}

void *tfos__realloc(void *block, size_t count, size_t size)
{
    if (is_denied() || is_overflow(count, size))
        return NULL;
    size_t total = count * size;
    return realloc(block, total > 0 ? total : 1);
}

void *tfos__array_grow(void *array, size_t count, size_t item_size)
{
    if ((count & (count - 1)) != 0)
        return array;
    return tfos__realloc(array, count > 0 ? 2 * count : 1, item_size);
}

char *tfos__strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tfos__alloc(size, 1);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *tfos__format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : tfos__alloc((size_t)length + 1, 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void tfos__free(void *block)
{
    free(block);
}

void tfos_free(void *block)
{
    tfos__free(block);
}

char *tfos_strdup(const char *text)
{
    return tfos__strdup(text);
}

enum tfos_status tfos__no_memory(struct tfos_error *err, const char *module, const char *what)
{
    return tfos__fail(err, TFOS_NO_MEMORY, "%s: no memory for %s", module, what);
}

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

// SPDX-License-Identifier: Apache-2.0
// A place is found by bisection: a vector has hundreds of spans at most, and is used in pieces of
// many kilobytes.
#include "collective/span_vector.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define BYTES_MAX (INT64_C(1) << 56)

enum tfos_status tfos__collective_vector_init(struct tfos__collective_vector *vector,
                                              const struct tfos_collective_span *spans,
                                              int64_t span_count, size_t element_size,
                                              struct tfos_error *err)
{
    *vector = (struct tfos__collective_vector){
        .spans = spans, .span_count = span_count, .element_size = element_size};
    if (span_count < 0 || (span_count > 0 && !spans))
        return tfos__fail(err, TFOS_INVALID, "collective: there are no %lld spans",
                          (long long)span_count);
    vector->ends = tfos__alloc((size_t)span_count, sizeof(*vector->ends));
    if (!vector->ends)
        return tfos__no_memory(err, "collective", "a vector");
    enum tfos_status status = TFOS_OK;
    for (int64_t i = 0; i < span_count && status == TFOS_OK; i++) {
        int64_t limit = BYTES_MAX / (int64_t)element_size - vector->count;
        if (spans[i].count < 0 || spans[i].count > limit || (spans[i].count > 0 && !spans[i].data))
            status = tfos__fail(err, TFOS_INVALID,
                                "collective: span %lld cannot have %lld elements%s", (long long)i,
                                (long long)spans[i].count, spans[i].data ? "" : " without memory");
        else
            vector->ends[i] = vector->count += spans[i].count;
    }
    if (status < 0)
        tfos__collective_vector_clear(vector);
    return status;
}

void tfos__collective_vector_clear(struct tfos__collective_vector *vector)
{
    tfos__free(vector->ends);
    vector->ends = NULL;
}

unsigned char *tfos__collective_vector_at(const struct tfos__collective_vector *vector,
                                          int64_t offset, int64_t *size)
{
    int64_t element_size = (int64_t)vector->element_size, element = offset / element_size;
    int64_t low = 0, high = vector->span_count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (vector->ends[middle] > element)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t begin = (vector->ends[low] - vector->spans[low].count) * element_size;
    *size = vector->ends[low] * element_size - offset;
    return (unsigned char *)vector->spans[low].data + (offset - begin);
}

void tfos__collective_vector_read(const struct tfos__collective_vector *vector, int64_t begin,
                                  int64_t count, void *data)
{
    int64_t offset = begin * (int64_t)vector->element_size;
    unsigned char *to = data;
    for (int64_t left = count * (int64_t)vector->element_size, size; left > 0; left -= size) {
        const unsigned char *from = tfos__collective_vector_at(vector, offset, &size);
        if (size > left)
            size = left;
        memcpy(to, from, (size_t)size);
        offset += size;
        to += size;
    }
}

void tfos__collective_vector_write(const struct tfos__collective_vector *vector, int64_t begin,
                                   int64_t count, const void *data)
{
    int64_t offset = begin * (int64_t)vector->element_size;
    const unsigned char *from = data;
    for (int64_t left = count * (int64_t)vector->element_size, size; left > 0; left -= size) {
        unsigned char *to = tfos__collective_vector_at(vector, offset, &size);
        if (size > left)
            size = left;
        memcpy(to, from, (size_t)size);
        offset += size;
        from += size;
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "arrow/array.h"

#include <math.h>

int64_t tfos__arrow_run(const struct ArrowArray *array, int64_t index, int64_t count, bool *is_null)
{
    int64_t run = 0;
    *is_null = tfos__arrow_is_null(array, index);
    if (!tfos__arrow_has_nulls(array))
        return count;
    while (run < count) {
        unsigned step = count - run < 64 ? (unsigned)(count - run) : 64;
        uint64_t valid = tfos__arrow_bits(array->buffers[0], array->offset + index + run, step);
        uint64_t other = (*is_null ? valid : ~valid) & tfos__arrow_mask(step);
        if (other != 0)
            return run + __builtin_ctzll(other) + (run == 0 && (other & 1));
        run += step;
    }
    return count;
}

int64_t tfos__arrow_find_null(const struct ArrowArray *array, int64_t index, int64_t count)
{
    bool is_null = false;
    int64_t run = count > 0 ? tfos__arrow_run(array, index, count, &is_null) : 0;
    return is_null ? index : run < count ? index + run : -1;
}

static double read_half(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 0x1F)
        value = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -value : value;
}

double tfos__arrow_real(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                        int64_t index)
{
    const void *from = tfos__arrow_value(type, array, index);
    uint16_t half = 0;
    float narrow = 0;
    double number = 0;
    if (type->width == 64) {
        memcpy(&number, from, sizeof(number));
        return number;
    }
    if (type->width == 32) {
        memcpy(&narrow, from, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&half, from, sizeof(half));
    return read_half(half);
}

bool tfos__arrow_fits(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                      int64_t child_count)
{
    return array->n_buffers == tfos__arrow_buffer_count(type) && array->n_children == child_count &&
           !array->dictionary;
}

void tfos__arrow_array_release(struct ArrowArray *array)
{
    if (array->release)
        array->release(array);
}

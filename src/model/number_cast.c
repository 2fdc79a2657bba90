// SPDX-License-Identifier: Apache-2.0
// Values go through 64-bit integers or doubles, so many at a time that these stay in the cache.
#include "model/number_cast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHUNK 256

union numbers {
    int64_t integers[CHUNK];
    double reals[CHUNK];
};

bool tfos__model_is_number(const struct tfos__arrow_type *type)
{
    switch (type->kind) {
    case TFOS__ARROW_BOOL:
    case TFOS__ARROW_INT:
    case TFOS__ARROW_DATE:
    case TFOS__ARROW_TIME:
    case TFOS__ARROW_TIMESTAMP:
    case TFOS__ARROW_DURATION:
        return true;
    case TFOS__ARROW_FLOAT:
        return type->width != 16;
    default:
        return false;
    }
}

bool tfos__model_is_same(const struct tfos__arrow_type *from, const struct tfos__model_type *to)
{
    enum tfos__arrow_kind kind = from->kind == TFOS__ARROW_FLOAT ? from->kind : TFOS__ARROW_INT;
    return from->kind != TFOS__ARROW_BOOL && kind == to->kind && from->width == to->width;
}

#define LOAD(type, member)                                                                         \
    do {                                                                                           \
        const type *source = values;                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            numbers->member[i] = (__typeof__(numbers->member[0]))source[first + i];                \
    } while (0)

static void load(const struct tfos__arrow_type *from, const void *values, int64_t first,
                 int64_t count, union numbers *numbers)
{
    bool is_real = from->kind == TFOS__ARROW_FLOAT;
    if (from->kind == TFOS__ARROW_BOOL)
        for (int64_t i = 0; i < count; i++)
            numbers->integers[i] = tfos__arrow_bit(values, first + i);
    else if (is_real && from->width == 32)
        LOAD(float, reals);
    else if (is_real)
        LOAD(double, reals);
    else if (from->width == 8)
        LOAD(int8_t, integers);
    else if (from->width == 16)
        LOAD(int16_t, integers);
    else if (from->width == 32)
        LOAD(int32_t, integers);
    else
        LOAD(int64_t, integers);
}

/// Makes integers of doubles; the count of those before the first that is none.
static int64_t make_integers(union numbers *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double real = numbers->reals[i];
        if (!(real >= -0x1p63 && real < 0x1p63 && trunc(real) == real))
            return i;
        numbers->integers[i] = (int64_t)real;
    }
    return count;
}

/// How many of the integers come before the first that the type does not hold.
static int64_t count_fitting(const int64_t *integers, int64_t count,
                             const struct tfos__model_type *to)
{
    bool is_signed = to->kind == TFOS__ARROW_INT;
    int bits = to->kind == TFOS__ARROW_BOOL ? 1 : to->width - is_signed;
    int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    int64_t least = is_signed ? -most - 1 : 0;
    int64_t i = 0;
    while (i < count && integers[i] >= least && integers[i] <= most)
        i++;
    return i;
}

#define STORE(type, member)                                                                        \
    do {                                                                                           \
        type *target = out;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            target[i] = (type)numbers->member[i];                                                  \
    } while (0)

static void store_integers(const union numbers *numbers, int64_t count, int width, void *out)
{
    // Integers of either sign have the same bits once they are known to fit.
    if (width == 8)
        STORE(uint8_t, integers);
    else if (width == 16)
        STORE(uint16_t, integers);
    else if (width == 32)
        STORE(uint32_t, integers);
    else
        STORE(uint64_t, integers);
}

static void store_reals(const union numbers *numbers, bool are_integers, int64_t count, int width,
                        void *out)
{
    if (are_integers && width == 32)
        STORE(float, integers);
    else if (are_integers)
        STORE(double, integers);
    else if (width == 32)
        STORE(float, reals);
    else
        STORE(double, reals);
}

bool tfos__model_numbers_cast(const struct tfos__arrow_type *from, const void *values,
                              int64_t first, int64_t count, const struct tfos__model_type *to,
                              void *out, char wrong[TFOS__MODEL_NUMBER_TEXT])
{
    bool are_integers = from->kind != TFOS__ARROW_FLOAT;
    for (int64_t done = 0; done < count; done += CHUNK) {
        union numbers numbers;
        int64_t part = count - done < CHUNK ? count - done : CHUNK;
        void *target = (uint8_t *)out + done * (to->width / 8);
        load(from, values, first + done, part, &numbers);
        if (to->kind == TFOS__ARROW_FLOAT) {
            store_reals(&numbers, are_integers, part, to->width, target);
            continue;
        }
        int64_t whole = are_integers ? part : make_integers(&numbers, part);
        int64_t fitting = count_fitting(numbers.integers, whole, to);
        if (fitting < whole)
            snprintf(wrong, TFOS__MODEL_NUMBER_TEXT, "%lld", (long long)numbers.integers[fitting]);
        else if (whole < part)
            snprintf(wrong, TFOS__MODEL_NUMBER_TEXT, "%.15g", numbers.reals[whole]);
        if (fitting < part)
            return false;
        store_integers(&numbers, part, to->width, target);
    }
    return true;
}

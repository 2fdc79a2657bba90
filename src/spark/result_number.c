// SPDX-License-Identifier: Apache-2.0
// Numbers of one type are copied; others go through 64-bit integers or doubles, 64 at a time. The
// rules are those of pyarrow's safe casts.
#include "spark/result_number.h"

#include "base/fail.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define CHUNK 64

/// The largest integers up to which a type of floating-point numbers has all.
#define FLOAT_INTEGERS (INT64_C(1) << 24)
#define DOUBLE_INTEGERS (INT64_C(1) << 53)

union numbers {
    int64_t integers[CHUNK];
    double reals[CHUNK];
};

static bool is_real(const struct tfos__arrow_type *type)
{
    return type->kind == TFOS__ARROW_FLOAT;
}

/// Reads up to 64 values. A null has no value: whatever lies in its place is not looked at.
/// Integers beyond 63 bits come out negative.
static void load(const struct tfos__result_source *source, int64_t first, int64_t count,
                 union numbers *numbers)
{
    const struct tfos__arrow_type *type = &source->type;
    const struct ArrowArray *array = source->values;

    if (is_real(type))
        for (int64_t i = 0; i < count; i++)
            numbers->reals[i] = tfos__arrow_real(type, array, first + i);
    else
        for (int64_t i = 0; i < count; i++)
            numbers->integers[i] = tfos__arrow_integer(type, array, first + i);
    for (int64_t i = 0; tfos__arrow_has_nulls(array) && i < count; i++)
        if (tfos__arrow_is_null(array, first + i))
            numbers->integers[i] = 0;
}

static enum tfos_status check_range(const int64_t *integers, int64_t count, int64_t least,
                                    int64_t most, struct tfos_error *err)
{
    int64_t smallest = 0, largest = 0;

    for (int64_t i = 0; i < count; i++) {
        smallest = integers[i] < smallest ? integers[i] : smallest;
        largest = integers[i] > largest ? integers[i] : largest;
    }
    if (smallest < least || largest > most)
        return tfos__fail(err, TFOS_INVALID, "Integer value %lld not in range: %lld to %lld",
                          (long long)(smallest < least ? smallest : largest), (long long)least,
                          (long long)most);
    return TFOS_OK;
}

/// Cuts nothing off: what is no integer of 64 bits is refused.
static enum tfos_status to_integers(union numbers *numbers, int64_t count,
                                    const struct tfos__arrow_type *type, struct tfos_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        double real = numbers->reals[i];
        // The bounds are powers of 2, which a double has. NaN is in no range.
        bool is_integer = real >= -0x1p63 && real < 0x1p63 && (double)(int64_t)real == real;
        if (!is_integer) {
            char name[TFOS__RESULT_NAME], value[TFOS__NUMBER_TEXT];
            bool is_float = (double)(float)real == real;
            return tfos__fail(err, TFOS_INVALID, "Float value %s was truncated converting to %s",
                              is_float ? tfos__float_print((float)real, value)
                                       : tfos__number_print(real, value),
                              tfos__result_type_say(name, type, 0));
        }
        numbers->integers[i] = (int64_t)real;
    }
    return TFOS_OK;
}

static enum tfos_status to_reals(union numbers *numbers, int64_t count, int64_t width,
                                 struct tfos_error *err)
{
    int64_t most = width == 32 ? FLOAT_INTEGERS : DOUBLE_INTEGERS;

    TFOS__TRY(check_range(numbers->integers, count, -most, most, err));
    for (int64_t i = 0; i < count; i++)
        numbers->reals[i] = (double)numbers->integers[i];
    return TFOS_OK;
}

#define STORE(type, in)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                            \
        ((type *)to)[i] = (type)numbers->in[i];                                                    \
    break

static enum tfos_status store_integers(const union numbers *numbers, int64_t count, int64_t width,
                                       void *to, struct tfos_error *err)
{
    switch (width) {
    case 8:
        TFOS__TRY(check_range(numbers->integers, count, INT8_MIN, INT8_MAX, err));
        STORE(int8_t, integers);
    case 16:
        TFOS__TRY(check_range(numbers->integers, count, INT16_MIN, INT16_MAX, err));
        STORE(int16_t, integers);
    case 32:
        TFOS__TRY(check_range(numbers->integers, count, INT32_MIN, INT32_MAX, err));
        STORE(int32_t, integers);
    default:
        STORE(int64_t, integers);
    }
    return TFOS_OK;
}

static void store_truths(const union numbers *numbers, int64_t count, bool are_reals, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = are_reals ? numbers->reals[i] != 0 : numbers->integers[i] != 0;
}

static enum tfos_status store(union numbers *numbers, int64_t count, bool are_reals,
                              const struct tfos__arrow_type *type, void *to, struct tfos_error *err)
{
    if (type->kind == TFOS__ARROW_BOOL) {
        store_truths(numbers, count, are_reals, to);
        return TFOS_OK;
    }
    if (!is_real(type)) {
        if (are_reals)
            TFOS__TRY(to_integers(numbers, count, type, err));
        return store_integers(numbers, count, type->width, to, err);
    }
    if (!are_reals)
        TFOS__TRY(to_reals(numbers, count, type->width, err));
    switch (type->width) {
    case 32:
        STORE(float, reals);
    default:
        STORE(double, reals);
    }
    return TFOS_OK;
}

static enum tfos_status convert_chunk(const struct tfos__result_source *source, int64_t first,
                                      int64_t count, const struct tfos__arrow_type *type, void *to,
                                      struct tfos_error *err)
{
    union numbers numbers;

    load(source, first, count, &numbers);
    // Only here can a negative integer be too large a one.
    if (tfos__arrow_type_is(&source->type, TFOS__ARROW_UINT, 64) && type->kind != TFOS__ARROW_BOOL)
        TFOS__TRY(check_range(numbers.integers, count, 0, INT64_MAX, err));
    return store(&numbers, count, is_real(&source->type), type, to, err);
}

enum tfos_status tfos__result_convert(const struct tfos__result_source *source, int64_t first,
                                      int64_t count, const struct tfos__result_type *type, void *to,
                                      struct tfos_error *err)
{
    size_t width = type->element_size;
    uint8_t *next = to;

    if (source->type.kind == TFOS__ARROW_NULL) {
        memset(to, 0, (size_t)count * width);
    } else if (tfos__arrow_type_equals(&source->type, &type->value) &&
               type->value.kind != TFOS__ARROW_BOOL && !tfos__result_has_nulls(source)) {
        if (count > 0)
            memcpy(to, tfos__arrow_value(&source->type, source->values, first),
                   (size_t)count * width);
    } else {
        for (; count > 0; first += CHUNK, count -= CHUNK, next += CHUNK * width)
            TFOS__TRY(convert_chunk(source, first, count < CHUNK ? count : CHUNK, &type->value,
                                    next, err));
    }
    return TFOS_OK;
}

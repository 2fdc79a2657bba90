// SPDX-License-Identifier: Apache-2.0
// Numbers of one type are copied; others go through 64-bit integers or doubles, 64 at a time. The
// rules are those of pyarrow's safe casts.
#include "spark/result_number.h"

#include "base/fail.h"
#include "base/number.h"

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

static uint32_t width_of(char code)
{
    switch (code) {
    case 's':
    case 'S':
    case 'e':
        return 2;
    case 'i':
    case 'I':
    case 'f':
        return 4;
    case 'l':
    case 'L':
    case 'g':
        return 8;
    default:
        return 1;
    }
}

static bool is_real(char code)
{
    return code == 'e' || code == 'f' || code == 'g';
}

static double read_half(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1F;
    int fraction = bits & 0x3FF;
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);

    if (exponent == 0x1F)
        value = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -value : value;
}

#define LOAD(type, out)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                            \
        numbers->out[i] = ((const type *)from)[i];                                                 \
    break

static void load_bits(const uint8_t *bits, int64_t at, int64_t count, int64_t *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = bits[(at + i) / 8] >> (at + i) % 8 & 1;
}

/// Reads up to 64 values. Integers beyond 63 bits come out negative.
static void load(const struct tfos__result_source *source, int64_t at, int64_t count,
                 union numbers *numbers)
{
    const void *from = source->data + (source->code == 'b' ? 0 : at * width_of(source->code));

    switch (source->code) {
    case 'b':
        load_bits(from, at, count, numbers->integers);
        break;
    case 'c': // the sign is the highest bit
        for (int64_t i = 0; i < count; i++)
            numbers->integers[i] = (((const uint8_t *)from)[i] ^ 0x80) - 0x80;
        break;
    case 's':
        LOAD(int16_t, integers);
    case 'S':
        LOAD(uint16_t, integers);
    case 'i':
        LOAD(int32_t, integers);
    case 'I':
        LOAD(uint32_t, integers);
    case 'l':
    case 'L':
        LOAD(int64_t, integers);
    case 'e':
        for (int64_t i = 0; i < count; i++)
            numbers->reals[i] = read_half(((const uint16_t *)from)[i]);
        break;
    case 'f':
        LOAD(float, reals);
    case 'g':
        LOAD(double, reals);
    default: // bytes: small numbers, and booleans
        LOAD(uint8_t, integers);
    }
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
static enum tfos_status to_integers(union numbers *numbers, int64_t count, char code,
                                    struct tfos_error *err)
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
                              tfos__result_type_say(name, code, 0));
        }
        numbers->integers[i] = (int64_t)real;
    }
    return TFOS_OK;
}

static enum tfos_status to_reals(union numbers *numbers, int64_t count, char code,
                                 struct tfos_error *err)
{
    int64_t most = code == 'f' ? FLOAT_INTEGERS : DOUBLE_INTEGERS;

    TFOS__TRY(check_range(numbers->integers, count, -most, most, err));
    for (int64_t i = 0; i < count; i++)
        numbers->reals[i] = (double)numbers->integers[i];
    return TFOS_OK;
}

#define STORE(type, in)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                            \
        ((type *)to)[i] = (type)numbers->in[i];                                                    \
    break

static enum tfos_status store_integers(const union numbers *numbers, int64_t count, char code,
                                       void *to, struct tfos_error *err)
{
    switch (code) {
    case 'c':
        TFOS__TRY(check_range(numbers->integers, count, INT8_MIN, INT8_MAX, err));
        STORE(int8_t, integers);
    case 's':
        TFOS__TRY(check_range(numbers->integers, count, INT16_MIN, INT16_MAX, err));
        STORE(int16_t, integers);
    case 'i':
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

static enum tfos_status store(union numbers *numbers, int64_t count, bool are_reals, char code,
                              void *to, struct tfos_error *err)
{
    if (code == 'b') {
        store_truths(numbers, count, are_reals, to);
        return TFOS_OK;
    }
    if (!is_real(code)) {
        if (are_reals)
            TFOS__TRY(to_integers(numbers, count, code, err));
        return store_integers(numbers, count, code, to, err);
    }
    if (!are_reals)
        TFOS__TRY(to_reals(numbers, count, code, err));
    switch (code) {
    case 'f':
        STORE(float, reals);
    default:
        STORE(double, reals);
    }
    return TFOS_OK;
}

/// Nulls have no value: whatever lies in their place is not looked at.
static void zero_nulls(const struct tfos__result_source *source, int64_t first, int64_t count,
                       int64_t *words)
{
    bool has_nulls = source->levels[source->depth].validity != NULL;

    for (int64_t i = 0; has_nulls && i < count; i++)
        if (tfos__result_is_null(source, source->depth, first + i))
            words[i] = 0;
}

static enum tfos_status convert_chunk(const struct tfos__result_source *source, int64_t first,
                                      int64_t count, char code, void *to, struct tfos_error *err)
{
    union numbers numbers;

    load(source, first + source->levels[source->depth].offset, count, &numbers);
    zero_nulls(source, first, count, numbers.integers);
    // Only here can a negative integer be too large a one.
    if (source->code == 'L' && code != 'b')
        TFOS__TRY(check_range(numbers.integers, count, 0, INT64_MAX, err));
    return store(&numbers, count, is_real(source->code), code, to, err);
}

enum tfos_status tfos__result_convert(const struct tfos__result_source *source, int64_t first,
                                      int64_t count, char code, void *to, struct tfos_error *err)
{
    const struct tfos__result_level *values = &source->levels[source->depth];
    size_t width = width_of(code);
    uint8_t *next = to;

    if (source->code == TFOS__RESULT_NOTHING) {
        memset(to, 0, (size_t)count * width);
    } else if (source->code == code && code != 'b' && !values->validity) {
        if (count > 0)
            memcpy(to, source->data + (size_t)(first + values->offset) * width,
                   (size_t)count * width);
    } else {
        for (; count > 0; first += CHUNK, count -= CHUNK, next += CHUNK * width)
            TFOS__TRY(convert_chunk(source, first, count < CHUNK ? count : CHUNK, code, next, err));
    }
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Formats:
// https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
// The feed has checked them against its own table; what is not in this one has no tensor form.
#include "dataset/element.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *format;
    struct tfos__element element;
} elements[] = {
    {"b", {TFOS__ELEMENT_BITS, TFOS_DTYPE_BOOL, 0, 0}},
    {"c", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT8, 1, 0}},
    {"C", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_UINT8, 1, 0}},
    {"s", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT16, 2, 0}},
    {"S", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_UINT16, 2, 0}},
    {"i", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT32, 4, 0}},
    {"I", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_UINT32, 4, 0}},
    {"l", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT64, 8, 0}},
    {"L", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_UINT64, 8, 0}},
    {"e", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_FLOAT16, 2, 0}},
    {"f", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_FLOAT32, 4, 0}},
    {"g", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_FLOAT64, 8, 0}},
    {"tdD", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT32, 4, 0}},
    {"tdm", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT64, 8, 0}},
    {"tts", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT32, 4, 0}},
    {"ttm", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT32, 4, 0}},
    {"ttu", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT64, 8, 0}},
    {"ttn", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT64, 8, 0}},
    {"tiM", {TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT32, 4, 0}},
    {"tin", {TFOS__ELEMENT_MONTHS, TFOS_DTYPE_INT32, 16, 0}},
    {"u", {TFOS__ELEMENT_TEXT, TFOS_DTYPE_STRING, 0, 0}},
    {"z", {TFOS__ELEMENT_TEXT, TFOS_DTYPE_STRING, 0, 0}},
    {"U", {TFOS__ELEMENT_WIDE_TEXT, TFOS_DTYPE_STRING, 0, 0}},
    {"Z", {TFOS__ELEMENT_WIDE_TEXT, TFOS_DTYPE_STRING, 0, 0}},
};

#define ELEMENT_COUNT (sizeof elements / sizeof elements[0])

// "d:precision,scale" and, unless they are 128, the bits of a value.
static bool parse_decimal(const char *format, struct tfos__element *element)
{
    char *end = NULL;
    long bits = 128;

    const char *comma = strchr(format, ',');
    if (!comma)
        return false;
    long scale = strtol(comma + 1, &end, 10);
    if (*end == ',')
        bits = strtol(end + 1, &end, 10);
    if (*end != '\0' || scale < -1000 || scale > 1000 ||
        (bits != 32 && bits != 64 && bits != 128 && bits != 256))
        return false;
    *element =
        (struct tfos__element){TFOS__ELEMENT_DECIMAL, TFOS_DTYPE_FLOAT64, bits / 8, (int)scale};
    return true;
}

bool tfos__element_parse(const char *format, struct tfos__element *element)
{
    for (size_t i = 0; i < ELEMENT_COUNT; i++)
        if (strcmp(format, elements[i].format) == 0) {
            *element = elements[i].element;
            return true;
        }
    if (strncmp(format, "d:", 2) == 0)
        return parse_decimal(format, element);
    if (strncmp(format, "w:", 2) == 0) {
        *element = (struct tfos__element){TFOS__ELEMENT_BLOCK, TFOS_DTYPE_STRING,
                                          strtol(format + 2, NULL, 10), 0};
        return true;
    }
    if (strncmp(format, "ts", 2) == 0 || strncmp(format, "tD", 2) == 0) {
        *element = (struct tfos__element){TFOS__ELEMENT_PLAIN, TFOS_DTYPE_INT64, 8, 0};
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [TFOS_DTYPE_BOOL] = {"bool", 1},       [TFOS_DTYPE_INT8] = {"int8", 1},
    [TFOS_DTYPE_INT16] = {"int16", 2},     [TFOS_DTYPE_INT32] = {"int32", 4},
    [TFOS_DTYPE_INT64] = {"int64", 8},     [TFOS_DTYPE_UINT8] = {"uint8", 1},
    [TFOS_DTYPE_UINT16] = {"uint16", 2},   [TFOS_DTYPE_UINT32] = {"uint32", 4},
    [TFOS_DTYPE_UINT64] = {"uint64", 8},   [TFOS_DTYPE_FLOAT16] = {"float16", 2},
    [TFOS_DTYPE_FLOAT32] = {"float32", 4}, [TFOS_DTYPE_FLOAT64] = {"float64", 8},
    [TFOS_DTYPE_STRING] = {"string", 0},
};

#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

size_t tfos__dtype_size(enum tfos_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *tfos__dtype_name(enum tfos_dtype dtype)
{
    return dtypes[dtype].name;
}

enum tfos_dtype tfos__dtype_find(const char *name)
{
    for (size_t i = 1; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum tfos_dtype)i;
    return (enum tfos_dtype)0;
}

// 10 to the power of `exponent`. Exact up to 22.
static double power_of_ten(int exponent)
{
    double power = 1;

    for (int i = 0; i < exponent; i++)
        power *= 10;
    return power;
}

// The nearest double to an integer of `width` bytes, lowest first.
static double integer_at(const uint8_t *bytes, int64_t width)
{
    bool is_negative = bytes[width - 1] & 0x80;
    uint64_t words[4];
    double number = 0;

    memset(words, is_negative ? 0xff : 0, sizeof words);
    memcpy(words, bytes, (size_t)width);
    if (is_negative) {
        bool carries = true;
        for (int i = 0; i < 4; i++) {
            words[i] = ~words[i] + carries;
            carries = carries && words[i] == 0;
        }
    }
    for (int i = 3; i >= 0; i--)
        number = number * 18446744073709551616.0 + (double)words[i];
    return is_negative ? -number : number;
}

// Numbers of up to 15 digits and the power of ten are exact, so that their quotient is the double
// nearest to the decimal.
static void copy_decimals(const struct tfos__element *element, const uint8_t *values, int64_t count,
                          uint8_t *out)
{
    double power = power_of_ten(element->scale < 0 ? -element->scale : element->scale);

    for (int64_t i = 0; i < count; i++) {
        double number = integer_at(values + i * element->width, element->width);
        number = element->scale < 0 ? number * power : number / power;
        memcpy(out + i * (int64_t)sizeof number, &number, sizeof number);
    }
}

static void copy_integers(const uint8_t *values, int64_t count, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t integer = 0;
        memcpy(&integer, values + i * (int64_t)sizeof integer, sizeof integer);
        double number = (double)integer;
        memcpy(out + i * (int64_t)sizeof number, &number, sizeof number);
    }
}

// Months and days, 4 bytes each, and nanoseconds: what is finer than a microsecond is cut off.
static void copy_parts(const struct tfos__element *element, const uint8_t *values, int64_t count,
                       uint8_t *out)
{
    size_t offset = element->kind == TFOS__ELEMENT_DAYS ? 4 : 0;
    int64_t nanoseconds = 0;

    for (int64_t i = 0; i < count; i++, values += element->width) {
        if (element->kind != TFOS__ELEMENT_MICROSECONDS) {
            memcpy(out + (size_t)i * 4, values + offset, 4);
            continue;
        }
        memcpy(&nanoseconds, values + 8, sizeof nanoseconds);
        nanoseconds /= 1000;
        memcpy(out + (size_t)i * sizeof nanoseconds, &nanoseconds, sizeof nanoseconds);
    }
}

void tfos__element_copy(const struct tfos__element *element, const void *values, int64_t first,
                        int64_t count, uint8_t *out)
{
    const uint8_t *bytes = values;

    if (count == 0) // there may be no buffers then
        return;
    if (element->kind == TFOS__ELEMENT_PLAIN) {
        memcpy(out, bytes + first * element->width, (size_t)(count * element->width));
    } else if (element->kind == TFOS__ELEMENT_BITS) {
        for (int64_t i = 0; i < count; i++)
            out[i] = bytes[(first + i) / 8] >> ((first + i) % 8) & 1;
    } else if (element->kind == TFOS__ELEMENT_DECIMAL) {
        copy_decimals(element, bytes + first * element->width, count, out);
    } else if (element->kind == TFOS__ELEMENT_INTEGER) {
        copy_integers(bytes + first * element->width, count, out);
    } else {
        copy_parts(element, bytes + first * element->width, count, out);
    }
}

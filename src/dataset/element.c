// SPDX-License-Identifier: Apache-2.0
#include "dataset/element.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static enum tfos_dtype integer_dtype(bool is_signed, int64_t width)
{
    switch (width) {
    case 8:
        return is_signed ? TFOS_DTYPE_INT8 : TFOS_DTYPE_UINT8;
    case 16:
        return is_signed ? TFOS_DTYPE_INT16 : TFOS_DTYPE_UINT16;
    case 32:
        return is_signed ? TFOS_DTYPE_INT32 : TFOS_DTYPE_UINT32;
    default:
        return is_signed ? TFOS_DTYPE_INT64 : TFOS_DTYPE_UINT64;
    }
}

static enum tfos_dtype dtype_of(const struct tfos__arrow_type *type)
{
    switch (type->kind) {
    case TFOS__ARROW_BOOL:
        return TFOS_DTYPE_BOOL;
    case TFOS__ARROW_UINT:
        return integer_dtype(false, type->width);
    case TFOS__ARROW_FLOAT:
        return type->width == 16   ? TFOS_DTYPE_FLOAT16
               : type->width == 32 ? TFOS_DTYPE_FLOAT32
                                   : TFOS_DTYPE_FLOAT64;
    case TFOS__ARROW_DECIMAL:
        return TFOS_DTYPE_FLOAT64;
    case TFOS__ARROW_TEXT:
    case TFOS__ARROW_BINARY:
        return TFOS_DTYPE_STRING;
    case TFOS__ARROW_NULL:
    case TFOS__ARROW_INTERVAL: // three elements
    case TFOS__ARROW_LIST:
    case TFOS__ARROW_MAP:
    case TFOS__ARROW_STRUCT:
        return (enum tfos_dtype)0;
    default: // INT, and what is counted by integers
        return integer_dtype(true, type->width);
    }
}

bool tfos__dataset_element_init(struct tfos__dataset_element *element,
                                const struct tfos__arrow_type *type)
{
    *element = (struct tfos__dataset_element){.type = *type, .dtype = dtype_of(type)};
    return element->dtype != 0;
}

bool tfos__dataset_element_is_plain(const struct tfos__dataset_element *element)
{
    const struct tfos__arrow_type *type = &element->type;

    return element->part == TFOS__PART_WHOLE && type->kind != TFOS__ARROW_BOOL &&
           type->kind != TFOS__ARROW_DECIMAL &&
           (type->kind != TFOS__ARROW_BINARY || type->layout == TFOS__ARROW_VARIABLE);
}

static const struct {
    const char *name;
    size_t size; // bytes of a number
} dtypes[] = {
    [TFOS_DTYPE_BOOL] = {"bool", 1},       [TFOS_DTYPE_INT8] = {"int8", 1},
    [TFOS_DTYPE_INT16] = {"int16", 2},     [TFOS_DTYPE_INT32] = {"int32", 4},
    [TFOS_DTYPE_INT64] = {"int64", 8},     [TFOS_DTYPE_UINT8] = {"uint8", 1},
    [TFOS_DTYPE_UINT16] = {"uint16", 2},   [TFOS_DTYPE_UINT32] = {"uint32", 4},
    [TFOS_DTYPE_UINT64] = {"uint64", 8},   [TFOS_DTYPE_FLOAT16] = {"float16", 2},
    [TFOS_DTYPE_FLOAT32] = {"float32", 4}, [TFOS_DTYPE_FLOAT64] = {"float64", 8},
    [TFOS_DTYPE_STRING] = {"string", 0},
};

#define DTYPE_COUNT (sizeof(dtypes) / sizeof(dtypes[0]))

size_t tfos__dataset_type_size(enum tfos_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *tfos__dataset_type_name(enum tfos_dtype dtype)
{
    return dtypes[dtype].name;
}

enum tfos_dtype tfos__dataset_type_find(const char *name)
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

    memset(words, is_negative ? 0xff : 0, sizeof(words));
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
static void copy_decimals(const struct tfos__arrow_type *type, const uint8_t *values, int64_t count,
                          uint8_t *out)
{
    double power = power_of_ten(type->scale < 0 ? -type->scale : type->scale);
    int64_t width = type->width / 8;

    for (int64_t i = 0; i < count; i++) {
        double number = integer_at(values + i * width, width);
        number = type->scale < 0 ? number * power : number / power;
        memcpy(out + i * (int64_t)sizeof(number), &number, sizeof(number));
    }
}

static void copy_as_doubles(const uint8_t *values, int64_t count, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++, values += 8, out += 8) {
        int64_t integer = 0;
        memcpy(&integer, values, sizeof(integer));
        double number = (double)integer;
        memcpy(out, &number, sizeof(number));
    }
}

// Months and days, 4 bytes each, and nanoseconds: what is finer than a microsecond is cut off.
static void copy_parts(enum tfos__dataset_element_part part, const uint8_t *values, int64_t count,
                       uint8_t *out)
{
    size_t offset = part == TFOS__PART_DAYS ? 4 : 0;
    int64_t nanoseconds = 0;

    for (int64_t i = 0; i < count; i++, values += 16) {
        if (part != TFOS__PART_MICROSECONDS) {
            memcpy(out + (size_t)i * 4, values + offset, 4);
            continue;
        }
        memcpy(&nanoseconds, values + 8, sizeof(nanoseconds));
        nanoseconds /= 1000;
        memcpy(out + (size_t)i * sizeof(nanoseconds), &nanoseconds, sizeof(nanoseconds));
    }
}

void tfos__dataset_element_copy(const struct tfos__dataset_element *element,
                                const struct ArrowArray *array, int64_t first, int64_t count,
                                uint8_t *out)
{
    const struct tfos__arrow_type *type = &element->type;

    if (count == 0) // there may be no buffers then
        return;
    const uint8_t *values = tfos__arrow_value(type, array, first);
    if (type->kind == TFOS__ARROW_BOOL)
        for (int64_t i = 0; i < count; i++)
            out[i] = tfos__arrow_bit(array->buffers[1], array->offset + first + i);
    else if (type->kind == TFOS__ARROW_DECIMAL)
        copy_decimals(type, values, count, out);
    else if (element->part == TFOS__PART_DOUBLE)
        copy_as_doubles(values, count, out);
    else if (element->part != TFOS__PART_WHOLE)
        copy_parts(element->part, values, count, out);
    else
        memcpy(out, values, (size_t)(count * (type->width / 8)));
}

// ---- fill values

static bool read_integer(const char *text, bool is_signed, size_t size,
                         struct tfos__dataset_fill_value *value)
{
    unsigned bits = 8 * (unsigned)size;
    char *end = NULL;

    errno = 0;
    uint64_t number = is_signed ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    // How much of a number is left above its bits: nothing, or copies of its sign.
    uint64_t rest =
        is_signed ? (uint64_t)((int64_t)number >> (bits - 1)) : number >> (bits - 1) >> 1;
    if (errno != 0 || end == text || *end != '\0' || (!is_signed && strchr(text, '-')) ||
        (rest != 0 && !(is_signed && rest == UINT64_MAX)))
        return false;
    memcpy(value->bytes, &number, sizeof(number));
    return true;
}

// The nearest half, or infinity; ties go to the even one.
static uint16_t half_of(float number)
{
    uint32_t bits = 0;

    memcpy(&bits, &number, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) // not a number
        return sign | 0x7e00;
    if (magnitude >= 0x47800000) // 65,536 and more
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { // below the normal halves: the float unit aligns and rounds
        float shifted = 0, unit = 0.5f;
        memcpy(&shifted, &magnitude, sizeof(shifted));
        shifted += unit;
        uint32_t aligned = 0, base = 0;
        memcpy(&aligned, &shifted, sizeof(aligned));
        memcpy(&base, &unit, sizeof(base));
        return (uint16_t)(sign | (aligned - base));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (UINT32_C(112) << 23);
    return (uint16_t)(sign | rounded >> 13);
}

static bool read_floating(const char *text, enum tfos_dtype dtype,
                          struct tfos__dataset_fill_value *value)
{
    char *end = NULL;
    double number = strtod(text, &end);
    float single = (float)number;
    uint16_t half = half_of(single);

    if (end == text || *end != '\0')
        return false;
    if (dtype == TFOS_DTYPE_FLOAT64)
        memcpy(value->bytes, &number, sizeof(number));
    else if (dtype == TFOS_DTYPE_FLOAT32)
        memcpy(value->bytes, &single, sizeof(single));
    else
        memcpy(value->bytes, &half, sizeof(half));
    return true;
}

static bool read_bool(const char *text, struct tfos__dataset_fill_value *value)
{
    bool is_true = strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || strcmp(text, "True") == 0;

    value->bytes[0] = is_true;
    return is_true || strcmp(text, "0") == 0 || strcmp(text, "false") == 0 ||
           strcmp(text, "False") == 0;
}

enum tfos_status tfos__dataset_fill_value_init(struct tfos__dataset_fill_value *value,
                                               enum tfos_dtype dtype, const char *text,
                                               const char *column, struct tfos_error *err)
{
    bool is_read = false;

    *value = (struct tfos__dataset_fill_value){0};
    if (dtype == TFOS_DTYPE_STRING) {
        value->text = tfos__strdup(text);
        value->text_size = strlen(text);
        return value->text ? TFOS_OK : tfos__no_memory(err, "dataset", "a null_value");
    }
    if (dtype == TFOS_DTYPE_BOOL)
        is_read = read_bool(text, value);
    else if (dtype >= TFOS_DTYPE_FLOAT16)
        is_read = read_floating(text, dtype, value);
    else
        is_read =
            read_integer(text, dtype < TFOS_DTYPE_UINT8, tfos__dataset_type_size(dtype), value);
    if (!is_read)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: column %s: null_value \"%s\" is not a value of its type, %s",
                          column, text, tfos__dataset_type_name(dtype));
    return TFOS_OK;
}

void tfos__dataset_fill_value_clear(struct tfos__dataset_fill_value *value)
{
    tfos__free(value->text);
    *value = (struct tfos__dataset_fill_value){0};
}

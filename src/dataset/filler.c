// SPDX-License-Identifier: Apache-2.0
// What takes a null's place is read once, in the type of its column, and refused when it is none.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/element.h"

static bool is_floating(enum tfos_dtype dtype)
{
    return dtype >= TFOS_DTYPE_FLOAT16 && dtype <= TFOS_DTYPE_FLOAT64;
}

static bool read_unsigned(const char *text, size_t size, struct tfos__filler *filler)
{
    char *end = NULL;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || strchr(text, '-') ||
        (size < 8 && number >> (8 * size) != 0))
        return false;
    memcpy(filler->bytes, &number, sizeof number);
    return true;
}

static bool read_signed(const char *text, size_t size, struct tfos__filler *filler)
{
    int64_t limit = size < 8 ? INT64_C(1) << (8 * size - 1) : INT64_MAX;
    char *end = NULL;

    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' ||
        (size < 8 && (number < -limit || number >= limit)))
        return false;
    memcpy(filler->bytes, &number, sizeof number);
    return true;
}

// The nearest half, or infinity; ties go to the even one.
static uint16_t half_of(float number)
{
    uint32_t bits = 0;

    memcpy(&bits, &number, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) // not a number
        return sign | 0x7e00;
    if (magnitude >= 0x47800000) // 65,536 and more
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { // below the normal halves: the float unit aligns and rounds
        float shifted = 0, unit = 0.5f;
        memcpy(&shifted, &magnitude, sizeof shifted);
        shifted += unit;
        uint32_t aligned = 0, base = 0;
        memcpy(&aligned, &shifted, sizeof aligned);
        memcpy(&base, &unit, sizeof base);
        return (uint16_t)(sign | (aligned - base));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (UINT32_C(112) << 23);
    return (uint16_t)(sign | rounded >> 13);
}

static bool read_floating(const char *text, enum tfos_dtype dtype, struct tfos__filler *filler)
{
    char *end = NULL;
    double number = strtod(text, &end);
    float single = (float)number;
    uint16_t half = half_of(single);

    if (end == text || *end != '\0')
        return false;
    if (dtype == TFOS_DTYPE_FLOAT64)
        memcpy(filler->bytes, &number, sizeof number);
    else if (dtype == TFOS_DTYPE_FLOAT32)
        memcpy(filler->bytes, &single, sizeof single);
    else
        memcpy(filler->bytes, &half, sizeof half);
    return true;
}

static bool read_bool(const char *text, struct tfos__filler *filler)
{
    bool is_true = strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || strcmp(text, "True") == 0;

    filler->bytes[0] = is_true;
    return is_true || strcmp(text, "0") == 0 || strcmp(text, "false") == 0 ||
           strcmp(text, "False") == 0;
}

enum tfos_status tfos__filler_init(struct tfos__filler *filler, enum tfos_dtype dtype,
                                   const char *text, const char *column, struct tfos_error *err)
{
    bool is_read = false;

    *filler = (struct tfos__filler){0};
    if (dtype == TFOS_DTYPE_STRING) {
        filler->text = tfos__strdup(text);
        filler->text_size = strlen(text);
        return filler->text ? TFOS_OK : tfos__no_memory(err, "dataset", "a null_value");
    }
    if (dtype == TFOS_DTYPE_BOOL)
        is_read = read_bool(text, filler);
    else if (is_floating(dtype))
        is_read = read_floating(text, dtype, filler);
    else if (dtype >= TFOS_DTYPE_UINT8 && dtype <= TFOS_DTYPE_UINT64)
        is_read = read_unsigned(text, tfos__dtype_size(dtype), filler);
    else
        is_read = read_signed(text, tfos__dtype_size(dtype), filler);
    if (!is_read)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: column %s: null_value \"%s\" is no value of its type, %s",
                          column, text, tfos__dtype_name(dtype));
    return TFOS_OK;
}

void tfos__filler_clear(struct tfos__filler *filler)
{
    tfos__free(filler->text);
    *filler = (struct tfos__filler){0};
}

// SPDX-License-Identifier: Apache-2.0
// Binary fractions and decimals are converted through text: the C library rounds it correctly.
#include "arrow/decimal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_SIZE 512 // bytes: the largest double has 309 digits before the point

__extension__ typedef unsigned __int128 wide;

// 10 to the `exponent`-th, of at most 38.
static wide power_of_ten(int exponent)
{
    wide result = 1;
    while (exponent-- > 0)
        result *= 10;
    return result;
}

// Adds a digit behind those of `*number`. False: too many.
static bool add_digit(wide *number, int digit, wide limit)
{
    if (*number > (limit - 1 - (unsigned)digit) / 10)
        return false;
    *number = *number * 10 + (unsigned)digit;
    return true;
}

static void store(wide number, bool is_negative, uint8_t value[TFOS__ARROW_DECIMAL_SIZE])
{
    number = is_negative ? -number : number;
    for (int i = 0; i < TFOS__ARROW_DECIMAL_SIZE; i++)
        value[i] = (uint8_t)(number >> 8 * i);
}

bool tfos__arrow_decimal_parse(const char *text, size_t size, int precision, int scale,
                               uint8_t value[TFOS__ARROW_DECIMAL_SIZE])
{
    const char *end = text + size;
    bool is_negative = size > 0 && *text == '-';
    wide number = 0, limit = power_of_ten(precision);
    int digit_count = 0, behind_point = -1;
    for (text += is_negative; text < end; text++) {
        if (*text == '.' && behind_point < 0) {
            behind_point = 0;
            continue;
        }
        if (*text < '0' || *text > '9')
            return false;
        digit_count++;
        // Zeros beyond the scale say nothing.
        if (behind_point >= scale ? *text != '0' : !add_digit(&number, *text - '0', limit))
            return false;
        behind_point += behind_point >= 0 && behind_point < scale;
    }
    for (int i = behind_point < 0 ? 0 : behind_point; i < scale; i++)
        if (!add_digit(&number, 0, limit))
            return false;
    if (digit_count == 0)
        return false;
    store(number, is_negative, value);
    return true;
}

void tfos__arrow_decimal_print(const uint8_t value[TFOS__ARROW_DECIMAL_SIZE], int scale,
                               char text[TFOS__ARROW_DECIMAL_TEXT])
{
    wide number = 0;
    for (int i = TFOS__ARROW_DECIMAL_SIZE - 1; i >= 0; i--)
        number = number << 8 | value[i];
    bool is_negative = value[TFOS__ARROW_DECIMAL_SIZE - 1] >= 0x80;
    number = is_negative ? -number : number;
    char digits[TFOS__ARROW_DECIMAL_TEXT];
    int count = 0;
    for (; number > 0 || count <= scale; number /= 10) {
        if (count == scale && scale > 0)
            digits[count++] = '.';
        digits[count++] = (char)('0' + (int)(number % 10));
        if (count == scale && scale > 0 && number < 10)
            number = 0;
    }
    if (is_negative)
        *text++ = '-';
    while (count > 0)
        *text++ = digits[--count];
    *text = '\0';
}

bool tfos__arrow_decimal_of(double number, int precision, int scale,
                            uint8_t value[TFOS__ARROW_DECIMAL_SIZE])
{
    char text[NUMBER_SIZE];
    if (!isfinite(number))
        return false;
    int size = snprintf(text, sizeof(text), "%.*f", scale, number);
    return size > 0 && (size_t)size < sizeof(text) &&
           tfos__arrow_decimal_parse(text, (size_t)size, precision, scale, value);
}

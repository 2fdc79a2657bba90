// SPDX-License-Identifier: Apache-2.0
#include "number_text.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_DIGITS FLT_DIG        // that every float keeps
#define MOST_DIGITS FLT_DECIMAL_DIG // that tell every float from others

bool integer_parse(const char *text, int64_t *value, bool *is_plain)
{
    const char *digits = text + (*text == '-');
    char *end;
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (is_plain)
        *is_plain = (*digits != '0' || digits[1] == '\0') && strcmp(text, "-0") != 0;
    return errno == 0 && *end == '\0';
}

bool real_parse(const char *text, double *value)
{
    static const char *const words[] = {"nan", "inf", "-inf"};
    char *end;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i == 0 ? (double)NAN : i == 1 ? HUGE_VAL : -HUGE_VAL;
            return true;
        }
    if (*text == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    errno = 0;
    *value = strtod(text, &end);
    return *end == '\0' && end > text && isfinite(*value);
}

bool real_to_float(double value, float *out)
{
    char wanted[NUMBER_TEXT_SIZE], kept[NUMBER_TEXT_SIZE];
    *out = (float)value;
    if ((double)*out == value || isnan(value))
        return true;
    if (isinf(*out))
        return false;
    for (int digits = LEAST_DIGITS; digits <= MOST_DIGITS; digits++) {
        snprintf(wanted, sizeof wanted, "%.*g", digits, value);
        if (strtod(wanted, NULL) != value)
            continue;
        snprintf(kept, sizeof kept, "%.*g", digits, (double)*out);
        return strcmp(wanted, kept) == 0;
    }
    return false;
}

void real_write(float value, char text[NUMBER_TEXT_SIZE])
{
    int digits = LEAST_DIGITS;
    if (isnan(value)) { // never "-nan"
        snprintf(text, NUMBER_TEXT_SIZE, "nan");
        return;
    }
    do
        snprintf(text, NUMBER_TEXT_SIZE, "%.*g", digits, (double)value);
    while (strtof(text, NULL) != value && ++digits <= MOST_DIGITS);
}

// SPDX-License-Identifier: Apache-2.0
// The C library prints and reads decimals correctly rounded.
#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *tfos__number_print(double number, char text[TFOS__NUMBER_TEXT])
{
    for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, TFOS__NUMBER_TEXT, "%.*g", digits, number);
        if (isnan(number) || strtod(text, NULL) == number)
            break;
    }
    return text;
}

const char *tfos__float_print(float number, char text[TFOS__NUMBER_TEXT])
{
    for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
        snprintf(text, TFOS__NUMBER_TEXT, "%.*g", digits, (double)number);
        if (isnan(number) || strtof(text, NULL) == number)
            break;
    }
    return text;
}

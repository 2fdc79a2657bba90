// SPDX-License-Identifier: Apache-2.0
// Format strings:
// https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
#include "feed/column.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *format;
    struct tfos__column column;
} columns[] = {
    {"b", {TFOS__COLUMN_FIXED, 1}},     {"c", {TFOS__COLUMN_FIXED, 8}},
    {"C", {TFOS__COLUMN_FIXED, 8}},     {"s", {TFOS__COLUMN_FIXED, 16}},
    {"S", {TFOS__COLUMN_FIXED, 16}},    {"i", {TFOS__COLUMN_FIXED, 32}},
    {"I", {TFOS__COLUMN_FIXED, 32}},    {"l", {TFOS__COLUMN_FIXED, 64}},
    {"L", {TFOS__COLUMN_FIXED, 64}},    {"e", {TFOS__COLUMN_FIXED, 16}},
    {"f", {TFOS__COLUMN_FIXED, 32}},    {"g", {TFOS__COLUMN_FIXED, 64}},
    {"tdD", {TFOS__COLUMN_FIXED, 32}},  {"tdm", {TFOS__COLUMN_FIXED, 64}},
    {"tts", {TFOS__COLUMN_FIXED, 32}},  {"ttm", {TFOS__COLUMN_FIXED, 32}},
    {"ttu", {TFOS__COLUMN_FIXED, 64}},  {"ttn", {TFOS__COLUMN_FIXED, 64}},
    {"tDs", {TFOS__COLUMN_FIXED, 64}},  {"tDm", {TFOS__COLUMN_FIXED, 64}},
    {"tDu", {TFOS__COLUMN_FIXED, 64}},  {"tDn", {TFOS__COLUMN_FIXED, 64}},
    {"tiM", {TFOS__COLUMN_FIXED, 32}},  {"tin", {TFOS__COLUMN_FIXED, 128}},
    {"u", {TFOS__COLUMN_VARIABLE, 32}}, {"U", {TFOS__COLUMN_VARIABLE, 64}},
    {"z", {TFOS__COLUMN_VARIABLE, 32}}, {"Z", {TFOS__COLUMN_VARIABLE, 64}},
    {"+l", {TFOS__COLUMN_LIST, 32}},    {"+L", {TFOS__COLUMN_LIST, 64}},
    {"+m", {TFOS__COLUMN_LIST, 32}},    {"+s", {TFOS__COLUMN_STRUCT, 0}},
};

// The number that ends a format, as in "w:16".
static bool parse_count(const char *text, int64_t *count)
{
    char *end = NULL;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *count = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && *count <= INT_MAX;
}

// Decimals: precision, scale and, unless they are 128, the bits of a value.
static bool parse_decimal(const char *text, int64_t *width)
{
    char *end = NULL;

    if (*text < '0' || *text > '9')
        return false;
    strtoll(text, &end, 10);
    if (*end++ != ',' || !((*end >= '0' && *end <= '9') || *end == '-'))
        return false;
    strtoll(end, &end, 10);
    *width = 128;
    if (*end == '\0')
        return true;
    return *end == ',' && parse_count(end + 1, width) &&
           (*width == 32 || *width == 64 || *width == 128 || *width == 256);
}

bool tfos__column_parse(const char *format, struct tfos__column *column)
{
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (strcmp(format, columns[i].format) == 0) {
            *column = columns[i].column;
            return true;
        }
    int64_t count = 0;
    if (strncmp(format, "w:", 2) == 0 && parse_count(format + 2, &count)) {
        *column = (struct tfos__column){TFOS__COLUMN_FIXED, count * 8};
        return true;
    }
    if (strncmp(format, "d:", 2) == 0 && parse_decimal(format + 2, &count)) {
        *column = (struct tfos__column){TFOS__COLUMN_FIXED, count};
        return true;
    }
    if (strncmp(format, "+w:", 3) == 0 && parse_count(format + 3, &count)) {
        *column = (struct tfos__column){TFOS__COLUMN_FIXED_LIST, count};
        return true;
    }
    // Timestamps: ts, the unit, a colon and any time zone.
    if (strncmp(format, "ts", 2) == 0 && format[2] && strchr("smun", format[2]) &&
        format[3] == ':') {
        *column = (struct tfos__column){TFOS__COLUMN_FIXED, 64};
        return true;
    }
    return false;
}

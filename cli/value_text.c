// SPDX-License-Identifier: Apache-2.0
#include "value_text.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"

#define LEAST_DIGITS FLT_DIG        // that every float keeps
#define MOST_DIGITS FLT_DECIMAL_DIG // that distinguish all floats

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// ---- numbers

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
        snprintf(wanted, sizeof(wanted), "%.*g", digits, value);
        if (strtod(wanted, NULL) != value)
            continue;
        snprintf(kept, sizeof(kept), "%.*g", digits, (double)*out);
        return strcmp(wanted, kept) == 0;
    }
    return false;
}

void real_print(float value, char text[NUMBER_TEXT_SIZE])
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

// ---- bytes

void base64_encode(struct bytes *text, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    char *at = bytes_reserve(text, size / 3 * 4 + 4);
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        *at++ = letters[group >> 18];
        *at++ = letters[group >> 12 & 63];
        *at++ = left > 1 ? letters[group >> 6 & 63] : '=';
        *at++ = left > 2 ? letters[group & 63] : '=';
    }
    text->size = (size_t)(at - text->data);
}

static int value_of(char letter)
{
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    return found ? (int)(found - letters) : -1;
}

bool base64_decode(struct bytes *bytes, const char *text, size_t size)
{
    if (size % 4 != 0)
        return false;
    for (size_t i = 0; i < size; i += 4) {
        int padding = 0;
        if (i + 4 == size)
            padding = (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=');
        uint32_t group = 0;
        for (int k = 0; k < 4; k++) {
            int value = k < 4 - padding ? value_of(text[i + (size_t)k]) : 0;
            if (value < 0)
                return false;
            group = group << 6 | (uint32_t)value;
        }
        for (int k = 0; k < 3 - padding; k++)
            bytes_add_byte(bytes, (char)(group >> (16 - 8 * k)));
    }
    return true;
}

bool is_utf8(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (signed char)text[i] >= 0)
        i++;
    json_t *string = i < size ? json_stringn(text, size) : NULL; // NULL: it is none
    json_decref(string);
    return i == size || string;
}

// ---- JSON

static json_t *float_to_json(float number)
{
    if (isnan(number))
        return json_string("nan");
    if (isinf(number))
        return json_string(number > 0 ? "inf" : "-inf");
    return json_real((double)number);
}

static json_t *bytes_to_json(struct tfos_view bytes)
{
    struct bytes encoded = {0};
    json_t *value = json_stringn(bytes.data, bytes.size); // NULL when it is no UTF-8
    if (!value) {
        base64_encode(&encoded, bytes.data, bytes.size);
        value = json_pack("{s:s%}", "base64", encoded.data, encoded.size);
        free(encoded.data);
    }
    return value;
}

json_t *value_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                      int64_t index)
{
    struct tfos__arrow_type type;
    if (tfos__arrow_type_read(&type, schema, NULL) < 0 || tfos__arrow_is_null(array, index))
        return json_null();
    if (type.kind == TFOS__ARROW_INT)
        return json_integer(tfos__arrow_integer(&type, array, index));
    if (type.kind == TFOS__ARROW_FLOAT)
        return float_to_json((float)tfos__arrow_real(&type, array, index));
    if (type.kind == TFOS__ARROW_STRUCT) {
        json_t *object = json_object();
        for (int64_t i = 0; i < schema->n_children; i++)
            json_object_set_new(
                object, schema->children[i]->name,
                value_to_json(schema->children[i], array->children[i], array->offset + index));
        return object;
    }
    if (type.kind == TFOS__ARROW_LIST) {
        struct tfos__arrow_span span = tfos__arrow_list(&type, array, index);
        json_t *list = json_array();
        for (int64_t i = 0; i < span.count; i++)
            json_array_append_new(
                list, value_to_json(schema->children[0], array->children[0], span.first + i));
        return list;
    }
    return bytes_to_json(tfos__arrow_bytes(&type, array, index));
}

json_t *text_to_json(const char *text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    json_t *value = json_string(text);
    struct bytes shown = {0};
    while (!value && *text != '\0') {
        size_t size = 1;
        while (size < strnlen(text, 4) && !is_utf8(text, size))
            size++;
        bool is_character = is_utf8(text, size);
        bytes_add(&shown, is_character ? text : replacement,
                  is_character ? size : sizeof(replacement) - 1);
        text += is_character ? size : 1;
    }
    if (!value)
        value = json_stringn(shown.data, shown.size);
    free(shown.data);
    return value;
}

static int add_part(const char *part, size_t size, void *text)
{
    bytes_add(text, part, size);
    return 0;
}

void bytes_add_json(struct bytes *text, json_t *value)
{
    if (!value ||
        json_dump_callback(value, add_part, text, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0)
        check_memory(NULL);
    json_decref(value);
}

void print_json(json_t *value)
{
    struct bytes line = {0};
    bytes_add_json(&line, value);
    bytes_add_byte(&line, '\n');
    fwrite(line.data, 1, line.size, stdout);
    free(line.data);
}

// SPDX-License-Identifier: Apache-2.0
#include "base64.h"

#include <stdint.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

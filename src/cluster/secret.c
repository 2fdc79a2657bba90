// SPDX-License-Identifier: Apache-2.0
// Reads a key from hexadecimal digits.
#include "cluster/secret.h"

#include <string.h>

#include "base/fail.h"

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

enum tfos_status tfos__secret_read(const char *text, const char *module,
                                   unsigned char key[TFOS__KEY_SIZE], struct tfos_error *err)
{
    unsigned char bytes[TFOS__KEY_SIZE];
    size_t size = text ? strlen(text) : 0;
    bool is_valid = size == 2 * sizeof(bytes);
    for (size_t i = 0; is_valid && i < size; i += 2) {
        int high = digit_value(text[i]), low = digit_value(text[i + 1]);
        is_valid = high >= 0 && low >= 0;
        if (is_valid)
            bytes[i / 2] = (unsigned char)(high << 4 | low);
    }
    if (is_valid)
        memcpy(key, bytes, sizeof(bytes));
    explicit_bzero(bytes, sizeof(bytes));
    if (!is_valid)
        return tfos__fail(err, TFOS_INVALID,
                          "%s: key has %zu characters: expected exactly %zu hexadecimal digits",
                          module, size, 2 * sizeof(bytes));
    return TFOS_OK;
}

// SPDX-License-Identifier: Apache-2.0
// The token is the HMAC-SHA256 of the text "feed" under the cluster's key: it proves the key to a
// node on the same machine without showing it.
#include "feed/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/fail.h"

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

enum tfos_status tfos__token_read_key(const char *digits, unsigned char key[TFOS__KEY_SIZE],
                                      struct tfos_error *err)
{
    bool is_key = digits && strlen(digits) == 2 * TFOS__KEY_SIZE;

    for (size_t i = 0; is_key && i < TFOS__KEY_SIZE; i++) {
        int high = digit_value(digits[2 * i]);
        int low = digit_value(digits[2 * i + 1]);
        is_key = high >= 0 && low >= 0;
        key[i] = (unsigned char)(high * 16 + low);
    }
    return is_key ? TFOS_OK
                  : tfos__fail(err, TFOS_INVALID, "feed: a cluster's key is %d hexadecimal digits",
                               2 * TFOS__KEY_SIZE);
}

enum tfos_status tfos__token_make(const unsigned char key[TFOS__KEY_SIZE],
                                  char token[TFOS__TOKEN_SIZE], struct tfos_error *err)
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char text[4] = {'f', 'e', 'e', 'd'};
    unsigned char code[EVP_MAX_MD_SIZE];
    unsigned int size = 0;

    if (!HMAC(EVP_sha256(), key, TFOS__KEY_SIZE, text, sizeof text, code, &size) ||
        2 * size + 1 != TFOS__TOKEN_SIZE)
        return tfos__fail(err, TFOS_IO, "feed: cannot compute the token");
    for (unsigned int i = 0; i < size; i++) {
        token[2 * i] = digits[code[i] >> 4];
        token[2 * i + 1] = digits[code[i] & 15];
    }
    token[2 * size] = '\0';
    explicit_bzero(code, sizeof code);
    return TFOS_OK;
}

bool tfos__token_matches(const char *token, const char expected[TFOS__TOKEN_SIZE])
{
    return strlen(token) == TFOS__TOKEN_SIZE - 1 &&
           CRYPTO_memcmp(token, expected, TFOS__TOKEN_SIZE - 1) == 0;
}

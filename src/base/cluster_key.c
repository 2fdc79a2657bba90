// SPDX-License-Identifier: Apache-2.0
// The proof is the HMAC-SHA256 of the text "feed" under the key, in hexadecimal digits.
#include "base/cluster_key.h"

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

enum tfos_status tfos__cluster_key_read(const char *text, const char *module,
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

enum tfos_status tfos__cluster_key_prove(const unsigned char key[TFOS__KEY_SIZE],
                                         const char *module, char proof[TFOS__KEY_PROOF_SIZE],
                                         struct tfos_error *err)
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char text[4] = {'f', 'e', 'e', 'd'};
    unsigned char code[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!HMAC(EVP_sha256(), key, TFOS__KEY_SIZE, text, sizeof(text), code, &size) ||
        2 * size + 1 != TFOS__KEY_PROOF_SIZE)
        return tfos__fail(err, TFOS_IO, "%s: cannot compute the proof of the cluster's key",
                          module);
    for (unsigned int i = 0; i < size; i++) {
        proof[2 * i] = digits[code[i] >> 4];
        proof[2 * i + 1] = digits[code[i] & 15];
    }
    proof[2 * size] = '\0';
    explicit_bzero(code, sizeof(code));
    return TFOS_OK;
}

bool tfos__cluster_key_is_proven(const char *proof, const char expected[TFOS__KEY_PROOF_SIZE])
{
    return strlen(proof) == TFOS__KEY_PROOF_SIZE - 1 &&
           CRYPTO_memcmp(proof, expected, TFOS__KEY_PROOF_SIZE - 1) == 0;
}

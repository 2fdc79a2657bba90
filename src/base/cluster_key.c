// SPDX-License-Identifier: Apache-2.0
// A derived key is the HMAC-SHA256 of the label under the key; a proof is that in hexadecimal
// digits.
#include "base/cluster_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

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

enum tfos_status tfos__cluster_key_derive(const unsigned char key[TFOS__KEY_SIZE],
                                          const char *label, const char *module,
                                          unsigned char derived[TFOS__KEY_SIZE],
                                          struct tfos_error *err)
{
    unsigned char code[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!HMAC(EVP_sha256(), key, TFOS__KEY_SIZE, (const unsigned char *)label, strlen(label), code,
              &size) ||
        size != TFOS__KEY_SIZE)
        return tfos__fail(err, TFOS_IO, "%s: cannot derive from the cluster's key", module);
    memcpy(derived, code, TFOS__KEY_SIZE);
    explicit_bzero(code, sizeof(code));
    return TFOS_OK;
}

void tfos__cluster_key_print(const unsigned char key[TFOS__KEY_SIZE],
                             char text[TFOS__KEY_PROOF_SIZE])
{
    tfos__text_print_hex(key, TFOS__KEY_SIZE, text);
}

enum tfos_status tfos__cluster_key_prove(const unsigned char key[TFOS__KEY_SIZE], const char *label,
                                         const char *module, char proof[TFOS__KEY_PROOF_SIZE],
                                         struct tfos_error *err)
{
    unsigned char code[TFOS__KEY_SIZE];
    TFOS__TRY(tfos__cluster_key_derive(key, label, module, code, err));
    tfos__cluster_key_print(code, proof);
    explicit_bzero(code, sizeof(code));
    return TFOS_OK;
}

bool tfos__cluster_key_is_proven(const char *proof, const char expected[TFOS__KEY_PROOF_SIZE])
{
    return strlen(proof) == TFOS__KEY_PROOF_SIZE - 1 &&
           CRYPTO_memcmp(proof, expected, TFOS__KEY_PROOF_SIZE - 1) == 0;
}

// SPDX-License-Identifier: Apache-2.0
// UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. In folded text each
// character is the lower case of its upper case: some letters have two lower cases. The C library
// prints and reads decimals correctly rounded.
#include "base/text.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "base/fail.h"

#define HIGH_BITS UINT64_C(0x8080808080808080) // of 8 bytes: set where one is no ASCII
#define CHARACTER_SIZE 4                       // bytes at most in UTF-8

static const char replacement[] = {'\xef', '\xbf', '\xbd'}; // U+FFFD

static bool is_ascii(const uint8_t *data, size_t size)
{
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + sizeof(bits) <= size; i += sizeof(bits)) {
        uint64_t word;
        memcpy(&word, data + i, sizeof(word));
        bits |= word;
    }
    for (; i < size; i++)
        bits |= data[i];
    return (bits & HIGH_BITS) == 0;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

// The size of the valid character that begins at `at`, which is before `end`; 0: there is none.
static size_t character_size(const uint8_t *at, const uint8_t *end)
{
    if (*at < 0x80)
        return 1;
    size_t size = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;
    if (*at < 0xC2 || *at > 0xF4 || (size_t)(end - at) < size)
        return 0;
    if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F) ||
        (*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F))
        return 0;
    for (size_t i = 1; i < size; i++)
        if (!is_continuation((char)at[i]))
            return 0;
    return size;
}

bool tfos__text_is_utf8(const void *text, size_t size)
{
    const uint8_t *at = text, *end = at + size;
    if (is_ascii(at, size))
        return true;
    for (size_t step; at < end; at += step) {
        step = character_size(at, end);
        if (step == 0)
            return false;
    }
    return true;
}

char *tfos__text_repair(const char *data, size_t size)
{
    char *clean = tfos__alloc(size * sizeof(replacement) + 1, 1);
    if (!clean)
        return NULL;
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    char *to = clean;
    while (at < end) {
        size_t count = *at ? character_size(at, end) : 0;
        size_t source_size = count > 0 ? count : sizeof(replacement);
        memcpy(to, count > 0 ? (const char *)at : replacement, source_size);
        to += source_size;
        at += count > 0 ? count : 1;
    }
    return clean;
}

const char *tfos__text_tail(const char *text, size_t limit)
{
    size_t size = strlen(text);
    if (size <= limit)
        return text;
    text += size - limit;
    while (is_continuation(*text))
        text++;
    return text;
}

static locale_t unicode; // none: 0; kept until the process ends
static pthread_once_t unicode_opened = PTHREAD_ONCE_INIT;

static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint8_t fold_ascii(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

// Reads the character that begins with `*at`, which is no ASCII, and moves behind it.
static wint_t read_character(const uint8_t **at)
{
    int more = **at >= 0xF0 ? 3 : **at >= 0xE0 ? 2 : 1;
    wint_t character = *(*at)++ & (0x3Fu >> more);
    while (more-- > 0)
        character = character << 6 | (*(*at)++ & 0x3Fu);
    return character;
}

static uint8_t *write_character(uint8_t *at, wint_t character)
{
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    *at++ = (uint8_t)(character >> 6 * more | (more > 0 ? ~(0x7Fu >> more) : 0));
    while (more-- > 0)
        *at++ = (uint8_t)((character >> 6 * more & 0x3F) | 0x80);
    return at;
}

enum tfos_status tfos__text_fold_case(struct tfos_view text, struct tfos__buffer *out,
                                      struct tfos_error *err)
{
    const uint8_t *at = text.data, *end = at + text.size;
    TFOS__TRY(tfos__buffer_reserve(out, text.size * CHARACTER_SIZE, err));
    pthread_once(&unicode_opened, open_unicode);
    bool is_plain = !unicode || !tfos__text_is_utf8(text.data, text.size);
    uint8_t *to = out->data + out->end;
    while (at < end)
        if (is_plain || *at < 0x80)
            *to++ = fold_ascii(*at++);
        else
            to = write_character(to, towlower_l(towupper_l(read_character(&at), unicode), unicode));
    out->end = (size_t)(to - out->data);
    return TFOS_OK;
}

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

void tfos__text_print_hex(const void *data, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = '\0';
}

enum tfos_status tfos__text_print_digest(struct tfos_view data, const char *module,
                                         char text[TFOS__DIGEST_TEXT], struct tfos_error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!EVP_Digest(data.data, data.size, digest, &size, EVP_sha256(), NULL))
        return tfos__fail(err, TFOS_IO, "%s: OpenSSL cannot compute a SHA-256", module);
    assert(2 * size + 1 == TFOS__DIGEST_TEXT);
    tfos__text_print_hex(digest, size, text);
    return TFOS_OK;
}
